"""What the flow carries: a table with one row for each quantity, which everything that knows of them reads.

``CARRIED.add(Carried("salt", unit="g/kg", weight=8e-4))`` is all that another takes: from then on sources and sides of
a scene bring it in by its name, ``fluid`` has its rates, and it is carried, diffused, faded, diluted, painted,
resampled, reset, checked and shown like the engine's own. Nothing here needs Taichi.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

from .limits import is_number, whole
from .tables import Table

UNITS = {"speed": "m/s", "pressure": "Pa", "divergence": "1/s", "vorticity": "1/s"}
MEASURED = tuple(UNITS)
"""What slices show beside it, and in what unit."""

TAKEN = ("velocity", "level_set", "projected", "fluid", *MEASURED, "self", "engine", "a", "b", "add")
"""Names that pictures, ``[initial]``, ``Simulation.to_numpy`` and ``Simulation.paint`` have for something else."""

DRAWN = ("smoke", "dye", "temperature")
"""As what lit views show a quantity: what takes light away, what gives it, what glows when it is hot."""


@dataclass(frozen=True)
class Carried:
    """A quantity that the flow carries.

    A rate is a number or the name of a field of a scene's ``fluid``. A number is where a field of its own begins: of
    ``Carried("salt", diffusivity=1e-9)`` that is ``fluid.salt_diffusion``.

    Args:
        name: What it is called, also in scenes: a name as Python has them.
        components: Values in a cell.
        unit: Of its values; ``"1"`` for pure numbers.
        meaning: What it is, in a few words; left out, its name.
        colours: Whether its three components are red, green and blue.
        diffusivity: In m²/s.
        decay: Part that is lost each second, 1/s.
        fade: What is lost each second until none is left, in ``unit``/s.
        weight: How much heavier one unit makes the fluid, as part of its own weight; of one component only.
        lift: The same upwards.
        dilutes: Whether gas that expands thins it out, as what is counted per volume.
        outside: What comes in through an open side, and through an inflow that says nothing else; a number, or one for
            each component.
        painted: Whether a picture can be painted in it.
        drawn: As what lit views show it, one of ``DRAWN``; left out, only slices and arrows do.
        signed: Whether its colours lie evenly about 0.
        slider: The range in which a source is usually moved, in ``unit``/s.
        limit: Size of the largest rate of a source or value of an inflow.
    """

    name: str
    components: int = 1
    _: KW_ONLY
    unit: str = "1"
    meaning: str = ""
    colours: bool = False
    diffusivity: float | str = 0.0
    decay: float | str = 0.0
    fade: float | str = 0.0
    weight: float | str = 0.0
    lift: float | str = 0.0
    dilutes: bool = True
    outside: float | Sequence[float] = 0.0
    painted: bool = True
    drawn: str = ""
    signed: bool = False
    slider: tuple[float, float] = (0, 20)
    limit: float = 1e4

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name or self.name in TAKEN:
            raise ValueError(f"a quantity is called {self.name!r}; it must have a name, and not {' or '.join(TAKEN)}")
        object.__setattr__(self, "components", whole(f"components of {self.name}", self.components, 1))
        object.__setattr__(self, "slider", tuple(self.slider))  # as a checkpoint has it that is a list
        if self.colours and self.components != 3:
            raise ValueError(f"components of {self.name} is {self.components}; red, green and blue are 3")
        if isinstance(self.outside, Sequence):
            object.__setattr__(self, "outside", tuple(self.outside))
            if len(self.outside) != self.components:
                raise ValueError(f"outside of {self.name} is {self.outside}; it has {self.components} components")
        for field in ("diffusivity", "decay", "fade", "weight", "lift", "limit"):
            value = getattr(self, field)
            if not isinstance(value, str) and not is_number(value):
                raise ValueError(f"{field} of {self.name} is {value!r}; it must be a finite number")
        if self.components > 1 and (self.weight or self.lift):
            raise ValueError(f"{self.name} has {self.components} components; only what has one weighs anything")
        if self.drawn and self.drawn not in DRAWN:
            raise ValueError(f"drawn of {self.name} is {self.drawn!r}; it must be one of {', '.join(DRAWN)}")
        if self.drawn and (self.colours if self.drawn == "dye" else self.components == 1) is False:
            needed = "red, green and blue" if self.drawn == "dye" else "one component"
            raise ValueError(f"drawn of {self.name} is {self.drawn!r}, for which it needs {needed}")

    @property
    def outside_values(self) -> tuple[float, ...]:
        """What is outside, of each component."""
        outside = self.outside
        return tuple(outside) if isinstance(outside, Sequence) else (outside,) * self.components

    @property
    def outside_value(self) -> float | tuple[float, ...]:
        """What is outside, as a scene has it: a number, or a tuple of one for each component."""
        return self.outside_values if self.components > 1 else self.outside_values[0]


@dataclass(frozen=True)
class Rate:
    """A column of ``Carried`` that holds a rate, and the field of ``fluid`` that another quantity gets for it."""

    column: str
    suffix: str
    unit: str
    meaning: str
    slider: tuple[float, float]
    least: float
    most: float

    def field(self, row: Carried) -> str:
        """Name of the field of ``fluid`` that holds it for a quantity."""
        own = getattr(row, self.column)
        return own if isinstance(own, str) else f"{row.name}_{self.suffix}"


RATES = (
    Rate("diffusivity", "diffusion", "m²/s", "diffusivity of {}", (0, 0.01), 0, 10),
    Rate("decay", "dissipation", "1/s", "rate at which {} fades", (0, 3), 0, 100),
    Rate("fade", "fade", "{}/s", "{} that vanishes each second, until none is left", (0, 1), 0, 1e4),
    Rate("weight", "weight", "1", "relative weight of one unit of {}", (-0.5, 0.5), -10, 10),
)


def diffusivity_field(row: Carried) -> str:
    """Name of the field of ``fluid`` that holds the diffusivity of a quantity."""
    return next(rate.field(row) for rate in RATES if rate.column == "diffusivity")


def rate_of(fluid: Any, row: Carried, column: str) -> float:
    """A rate of a quantity in a scene's ``fluid``: what that says, else what the row says."""
    own = getattr(row, column)
    if isinstance(own, str):
        return getattr(fluid, own)
    if CARRIED.is_own(row.name) or row.name not in CARRIED:
        return own
    field = next((rate.field(row) for rate in RATES if rate.column == column), "")
    return getattr(fluid, field, own)


_SMOKE = {"diffusivity": "smoke_diffusion", "decay": "smoke_dissipation", "fade": "smoke_fade"}

CARRIED = Table(
    "quantity",
    (
        Carried("smoke", **_SMOKE, weight="smoke_weight", drawn="smoke"),
        Carried(
            "temperature",
            unit="K",
            meaning="temperature above ambient",
            diffusivity="heat_diffusion",
            decay="cooling",
            lift="expansion",
            dilutes=False,
            drawn="temperature",
            slider=(0, 500),
            limit=1e6,
        ),
        Carried("dye", 3, meaning="red, green and blue dye", colours=True, **_SMOKE, drawn="dye"),
        Carried("fuel", diffusivity="smoke_diffusion", painted=False),
    ),
)
"""What a scene may bring in for the flow to carry."""


def unit_of(quantity: str) -> str:
    """Unit of what is carried, of what slices show beside it or of a velocity; ``"1"`` for a pure number."""
    return CARRIED[quantity].unit if quantity in CARRIED else UNITS.get(quantity, "m/s")


def require_names() -> None:
    """Raise ValueError for a row whose name no scene can have."""
    for name in CARRIED:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
            raise ValueError(
                f"a quantity is called {name!r}; it must be letters, digits and _, and begin with a letter"
            )


CARRIED.watch(require_names)


def require_values(what: str, given: Mapping[str, Any]) -> None:
    """Raise ValueError unless ``given`` has of quantities that are carried a finite number, or one for each component.

    What is neither a number nor a text, such as a function, is left for whom it is meant for.
    """
    for name, value in given.items():
        if name not in CARRIED:
            raise ValueError(f"{what} has {name!r}, which no flow carries; it may have {', '.join(CARRIED)}")
        each, count = [value], CARRIED[name].components
        if isinstance(value, Sequence) and not isinstance(value, str):
            each = value
            if len(value) != count:
                raise ValueError(f"{what} has {len(value)} numbers of {name}; it has {count}, one for each component")
        for one in each:
            if isinstance(one, str) or (isinstance(one, Real) and not is_number(one)):
                raise ValueError(f"{what} has {name} = {one!r}; it must be a finite number")
