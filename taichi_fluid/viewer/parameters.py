"""What a panel shows of a scene, read off the scene's own fields: names, units, ranges and choices.

A field that a class of the scene gains is in the panel without a line here.
"""

import types
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ..carried import CARRIED
from ..scene import Colour, Scene, choices

NOT_STEERED = (
    "domain.size",
    "domain.resolution",
    "domain.boundaries",
    "initial",
    "liquid.bodies",
    "solids",
    "probes",
    "output",
    "solver.faces",
    "path",
)
"""What is built into the arrays or lies in them at time 0, or goes into the files that a recording writes; of a source, by the name alone,
what is mostly told as expressions."""
ONLY_3D = ("camera", "look.axis", "look.position")
"""What means nothing in 2D, where the picture shows the whole plane."""
AT_RESET = ("pictures",)
"""What a change reaches with the next reset only."""
ONLY_OPEN = ("combustion.expansion", "blast")
"""What a box without an open side has no room for; of a source, the name alone."""
OF_LIQUID = {
    "fluid": ("rho", "viscosity", "gravity", "body_force"),
    "combustion": (),
    "domain": (),
    "solver": ("pressure", "tolerance", "max_iterations", "dt", "cfl", "max_dt"),
    "live": ("pace", "radius", "push", "pour"),
    "sources": ("velocity", "begin", "end", "center", "radius", "ends", "size"),
}
"""Of tables that a gas has too, what a liquid has to do with."""
NOT_OF_LIQUID = ("extinction", "incandescence", "albedo", "compare", "sheets", "tracers", "tracer_life")
"""What a picture of a liquid has nothing of."""
ONLY_LIQUID = ("live.pour", "sink")
"""What only a liquid has to do with; of a source, the name alone."""
AXES, COLOURS = "xyz", ("red", "green", "blue")
LOG_FROM = 1000.0
"""Ratio of the ends of a range from which a slider moves along the logarithm."""
DIGITS = 6
"""Significant digits of a value that comes from a slider, which works in f32."""
BESIDE = 1e-3
"""How far beside an end that is not allowed itself a slider stops: part of that end; beside 0 its square."""


class Kind(Enum):
    """What moves a parameter."""

    FLOAT = "slider"
    INT = "slider of whole numbers"
    BOOL = "check box"
    CHOICE = "button that goes on to the next one"
    COLOUR = "colour"
    OPTIONAL = "check box that switches a value on that may be left out"


class Parameter(NamedTuple):
    """A value of a scene that can be changed while it runs.

    Attributes:
        key: Dotted, as ``Scene.with_values`` takes it.
        place: Where in that value the number stands: ``(1,)`` is its second component.
        label: What it is called.
        unit: Its unit; ``"1"`` for a pure number.
        kind: What moves it.
        value: What it is now; of an OPTIONAL whether it has one.
        low, high: Range of a slider, in ``unit``.
        choices: Of a CHOICE.
        whole: The value of ``key``, of which this may be a part; of an OPTIONAL what switching it on gives.
    """

    key: str
    place: tuple[int, ...]
    label: str
    unit: str
    kind: Kind
    value: Any
    low: float = 0.0
    high: float = 1.0
    choices: tuple[str, ...] = ()
    whole: Any = None

    @property
    def name(self) -> str:
        """Key and place in one: unique in a scene."""
        return ".".join([self.key, *map(str, self.place)]) + (" given" if self.kind is Kind.OPTIONAL else "")

    @property
    def logarithmic(self) -> bool:
        """Whether its slider moves along the logarithm to base ten."""
        return self.low > 0 and self.high >= LOG_FROM * self.low

    @property
    def factor(self) -> float:
        """What the numbers on its slider, which has three decimals, are multiples of."""
        if self.logarithmic:
            return 1.0
        factor, top = 1.0, max(abs(self.low), abs(self.high))
        while top < 0.1 * factor:
            factor /= 1000
        return factor

    @property
    def title(self) -> str:
        """Label and unit, with the multiple of it that the slider shows."""
        if self.logarithmic:
            unit = "" if self.unit == "1" else f" {self.unit}"
            return f"{self.label} {self.value:.2g}{unit}, log"
        if self.factor == 1.0:
            return self.label if self.unit == "1" else f"{self.label}  {self.unit}"
        if self.unit in ("m", "s") and self.factor == 1e-3:
            return f"{self.label}  m{self.unit}"
        return f"{self.label}  {self.factor:.0e} {self.unit if self.unit != '1' else ''}".replace("e-0", "e-").rstrip()

    @property
    def next_choice(self) -> str:
        """Of a CHOICE the one after the present one."""
        return self.choices[(self.choices.index(self.value) + 1) % len(self.choices)]

    def changed(self, value: Any) -> dict[str, Any]:
        """The change of the scene that gives this parameter ``value``, for ``Scene.with_values``."""
        if self.kind is Kind.OPTIONAL:
            return {self.key: self.whole if value else None}
        if self.kind is Kind.FLOAT:
            value = float(f"{value:.{DIGITS}g}")
        return {self.key: _replaced(self.whole, self.place, value)}


class Section(NamedTuple):
    """The parameters of one table of a scene."""

    title: str
    parameters: list[Parameter]


def sections(scene: Scene) -> list[Section]:
    """Every parameter that can be changed while the scene runs, table by table."""
    found = []
    for name, value in scene:
        if _hidden(scene, name):
            continue
        if isinstance(value, BaseModel):
            found.append(Section(name, list(_parameters(scene, value, name))))
        elif isinstance(value, tuple):
            for i, each in enumerate(value):
                title = f"{name[:-1]} {i + 1}" + (", from reset on" if name in AT_RESET else "")
                found.append(Section(title, list(_parameters(scene, each, f"{name}.{i}"))))
    return found


def _hidden(scene: Scene, key: str) -> bool:
    name = key.rpartition(".")[2] if key.startswith("sources.") else key
    confined = name in ONLY_OPEN and not scene.domain.has_open
    foreign = name in ONLY_LIQUID if scene.liquid is None else _of_gas(scene, key)
    return name in NOT_STEERED or (scene.dim == 2 and key in ONLY_3D) or confined or foreign


def _of_gas(scene: Scene, key: str) -> bool:
    """Whether a key has nothing to do with a liquid."""
    table, name = key.partition(".")[0], key.rpartition(".")[2]
    if name == table:
        return not OF_LIQUID.get(table, name)
    return name not in OF_LIQUID.get(table, (name,)) or (table == "look" and name in NOT_OF_LIQUID)


def _parameters(scene: Scene, config: BaseModel, prefix: str) -> Iterator[Parameter]:
    for name, field in type(config).model_fields.items():
        value, key, label = getattr(config, name), f"{prefix}.{name}", name.replace("_", " ")
        if _hidden(scene, key):
            continue
        annotation, optional = _without_none(field.annotation)
        if annotation is str and not choices(field, annotation):  # no widget takes text
            continue
        unit = _extra(field).get("unit") or "1"
        pours = scene.liquid is not None and prefix.startswith("sources.") and name == "velocity"
        if optional and not pours:
            whole = _start(scene, field, annotation) if value is None else value
            yield Parameter(key, (), label, unit, Kind.OPTIONAL, value is not None, whole=_plain(whole))
        if value is not None:
            yield from _parts(scene, field, annotation, Parameter(key, (), label, unit, Kind.FLOAT, value))


def _parts(scene: Scene, field: FieldInfo, annotation: Any, whole: Parameter) -> Iterator[Parameter]:
    """The parameter, or one for each component of it."""
    value = whole.value
    whole = whole._replace(whole=_plain(value))
    of_scene = {"look.quantity": "quantities", "look.view": "views"}.get(whole.key)
    texts = getattr(scene, of_scene) if of_scene else choices(field, annotation)
    if texts:
        if len(texts) > 1 and value in texts:
            yield whole._replace(kind=Kind.CHOICE, choices=texts)
    elif isinstance(value, bool):
        yield whole._replace(kind=Kind.BOOL)
    elif annotation == get_args(Colour)[0]:
        yield whole._replace(kind=Kind.COLOUR)
    elif isinstance(value, (int, float)):
        low, high = _range(scene, field, value, whole.unit, None)
        yield whole._replace(kind=Kind.INT if isinstance(value, int) else Kind.FLOAT, low=low, high=high)
    elif isinstance(value, tuple):
        for place, number in _numbers(value):
            if isinstance(number, str):  # an expression, which no widget takes
                continue
            low, high = _range(scene, field, number, whole.unit, place[-1])
            names = _components(whole.key, len(value))
            label = " ".join([whole.label, *(str(i + 1) for i in place[:-1]), names[place[-1]]])
            yield whole._replace(place=place, label=label, value=number, low=low, high=high)


def _components(key: str, count: int) -> Sequence[str]:
    """What the components of a value are called: of a quantity that a source brings in, or of a vector."""
    row = CARRIED.get(key.rpartition(".")[2])
    if row is None:
        return AXES
    return COLOURS if row.colours else [str(i + 1) for i in range(count)]


def _range(scene: Scene, field: FieldInfo, value: float, unit: str, axis: int | None) -> tuple[float, float]:
    """Ends of a slider: the field's own, in the box if it says so; never beyond what is allowed, never short of now."""
    extra = _extra(field)
    least, most = bounds_of(field)
    if extra.get("slider"):
        low, high = extra["slider"]
        if extra["of_box"]:
            edges = scene.domain.size
            # A place along an axis reaches over its own edge, a length or a speed is measured by the longest.
            edge = edges[axis] if unit == "m" and axis is not None else max(edges)
            low, high = low * edge, high * edge
    elif least is not None and most is not None and most - least <= 1000:
        low, high = least, most
    else:
        high = 2.0 * abs(value) or 1.0
        low = -high if least is None or least < 0 else least
    low = min(low if least is None else max(low, least), value)
    high = max(high if most is None else min(high, most), value)
    return low, high


def bounds_of(field: FieldInfo) -> tuple[float | None, float | None]:
    """Least and largest value that are allowed; where the end itself is not, a little inside."""
    least = most = None
    for limit in field.metadata:
        if isinstance(limit, Ge):
            least = limit.ge
        elif isinstance(limit, Gt):
            least = limit.gt + (BESIDE * abs(limit.gt) or BESIDE**2)  # pyright: ignore
        elif isinstance(limit, Le):
            most = limit.le
        elif isinstance(limit, Lt):
            most = limit.lt - (BESIDE * abs(limit.lt) or BESIDE**2)  # pyright: ignore
    return least, most  # pyright: ignore[reportReturnType]


def _extra(field: FieldInfo) -> Mapping[str, Any]:
    extra = field.json_schema_extra
    return extra if isinstance(extra, dict) else {}


def _start(scene: Scene, field: FieldInfo, annotation: Any) -> Any:
    """What a value that is left out becomes when it is switched on."""
    extra = _extra(field)
    start = extra.get("start")
    if get_origin(annotation) is not tuple:
        if start is None:
            return 1.0 if bounds_of(field)[0] else 0.0
        return start
    if start is None and extra.get("of_box") and extra["unit"] == "m":
        return tuple(0.5 * edge for edge in scene.domain.size)
    arguments = get_args(annotation)
    count = scene.dim if Ellipsis in arguments else len(arguments)
    return tuple(start or (0.0, 1.0, 0.0))[:count]


def _without_none(annotation: Any) -> tuple[Any, bool]:
    """The annotation of a value that is there, and whether it may be left out."""
    if get_origin(annotation) not in (Union, types.UnionType) or type(None) not in get_args(annotation):
        return annotation, False
    (inner,) = (each for each in get_args(annotation) if each is not type(None))
    return (get_args(inner)[0] if hasattr(inner, "__metadata__") else inner), True


def _numbers(value: tuple, place: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], float]]:
    for i, each in enumerate(value):
        if isinstance(each, tuple):
            yield from _numbers(each, (*place, i))
        else:
            yield (*place, i), each


def _plain(value: Any) -> Any:
    """Tuples as lists, as a scene's dump has them."""
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _replaced(whole: Any, place: tuple[int, ...], value: Any) -> Any:
    if not place:
        return list(value) if isinstance(value, tuple) else value
    copy = list(whole)
    copy[place[0]] = _replaced(copy[place[0]], place[1:], value)
    return copy
