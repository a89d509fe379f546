"""A scene, and what must hold among its fields."""

import importlib.util
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import tomli_w
from pydantic import Field, ValidationError, model_validator

from ..boundaries.checks import check_balance
from ..boundaries.sides import Profile, Side
from ..carried import CARRIED, diffusivity_field, rate_of
from ..limits import LEAST_BAND
from .beginnings import BeginningError, read_expression, require_array
from .bodies import AnySolid, BoxSolid, MeshSolid, Picture, Source
from .expressions import ExpressionError, at_time
from .fields import (
    MEASURED,
    ArrayFile,
    Camera,
    Combustion,
    Config,
    Domain,
    Fluid,
    Initial,
    Live,
    Look,
    Output,
    Solver,
    flux_field,
)
from .liquid import GAS_VIEWS, LIQUID_VIEWS, PLANES, Liquid, require_liquid, with_defaults
from .pictures import PillowMissing, picture_bounds, require_touch
from .probes import Probe, require_probes
from .text import SceneError, find_files, read_file, read_toml, sentence, set_value

MOST_FORCE, FARTHEST, MOST_TURNED = 1e6, 1e6, 1e4
"""Of each component of a body force, m/s², of a path, m, and of a turn, rad, that are expressions, at time 0."""

PICTURE = 480
"""Pixels along an edge of the picture of a square, or of a cube, of which no size is given: others have as many in all."""

_UNNAMED = re.compile(r"[^A-Za-z0-9_-]+")
"""What no name of a scene has."""

FLATTEST = {2: 4.0, 3: 1.5}
"""Width of such a picture over its height at the most, and the least of it the other way: a box in 3D is looked at aslant."""


class Scene(Config):
    """Everything a run needs.

    Raises:
        SceneError: from ``load``, ``loads`` and ``with_values``, for anything that cannot be.
    """

    name: str = Field(
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="also the name of the files it records: letters, digits, _ and -, 64 at most; of a file left out, the file's",
    )
    description: str = ""
    domain: Domain = Domain()
    # Made anew each time, as `initial` is: with the fields that rows have added since.
    fluid: Fluid = Field(default_factory=lambda: Fluid())
    combustion: Combustion = Combustion()
    liquid: Liquid | None = Field(None, description="a liquid with a surface, in place of a gas")
    initial: Initial = Field(default_factory=lambda: Initial())
    sources: Annotated[tuple[Source, ...], Field(strict=False)] = ()
    solids: Annotated[tuple[AnySolid, ...], Field(strict=False)] = ()
    pictures: Annotated[tuple[Picture, ...], Field(strict=False)] = ()
    probes: Annotated[tuple[Probe, ...], Field(strict=False)] = ()
    solver: Solver = Solver()
    look: Look = Look()
    camera: Camera = Camera()
    live: Live = Live()
    output: Output = Output()

    def __init__(self, /, **values: Any):
        """A scene of these tables; SceneError names what is wrong."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SceneError(sentence(error, type(self), values)) from None

    @property
    def dim(self) -> int:
        """2 or 3."""
        return len(self.domain.size)

    @property
    def picture_size(self) -> tuple[int, int]:
        """Width and height of its pictures in pixels, as given or in the shape of the box: even, for films."""
        wide, high = self.domain.size[0], self.domain.size[1]
        if self.dim == 3:
            wide = max(wide, self.domain.size[2])
        flattest = FLATTEST[self.dim]
        shape = min(max(wide / high, 1 / flattest), flattest) * (2 if self.look.compare else 1)
        width, height = self.output.width, self.output.height
        if width is None:
            width = _even(PICTURE * math.sqrt(shape) if height is None else height * shape)
        return width, height if height is not None else _even(width / shape)

    @property
    def gravity(self) -> tuple[float, ...]:
        """Gravity in m/s², as given or 9.81 down the second axis."""
        return self.fluid.gravity or (0.0, -9.81, 0.0)[: self.dim]

    @property
    def carried(self) -> dict[str, int]:
        """Names of the quantities that the flow carries, with their components."""
        if self.liquid is not None:
            return {}
        entering = {name for _, side in self._sides() for name in (*side.values, *side.fluxes)}
        entering |= {name for solid in self.solids for name in (*solid.values, *solid.fluxes)}
        entering |= {name for source in self.sources for name in source.rates}
        entering |= {picture.quantity for picture in self.pictures}
        entering |= {name for name in self.initial.given if name in CARRIED}
        if self.combustion.burn_rate > 0:
            entering |= {"temperature", "fuel"} | ({"smoke"} if self.combustion.soot > 0 else set())
        if not (self.sources or entering):
            entering = {"smoke"}
        return {name: row.components for name, row in CARRIED.items() if name in entering}

    @property
    def views(self) -> tuple[str, ...]:
        """What ``look.view`` may be."""
        return GAS_VIEWS if self.liquid is None else LIQUID_VIEWS

    @property
    def expands(self) -> bool:
        """Whether anything prescribes a divergence: fuel that expands as it burns, or a source's blast."""
        burns = self.combustion.burn_rate > 0 and self.combustion.expansion > 0
        return burns or any(source.blast for source in self.sources)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences about what can be, but is most often not meant."""
        remarks = []
        fuel = [f"sources[{i}].fuel" for i, source in enumerate(self.sources) if "fuel" in source.rates]
        if fuel and not self.combustion.burn_rate:
            remarks.append(f"{fuel[0]} brings in fuel and combustion.burn_rate is 0: nothing burns.")
        if self.liquid is not None and 0 < self.liquid.band < LEAST_BAND:
            remarks.append(f"liquid.band is {self.liquid.band}, which counts as {LEAST_BAND}.")
        for i, source in enumerate(self.sources):
            if source.end is not None and source.end <= source.begin:
                remarks.append(
                    f"sources[{i}] ends at {source.end:g} s and begins at {source.begin:g} s: it never acts."
                )
        for i, side in self._sides():
            for name in side.values:
                if side.holds(name) and not rate_of(self.fluid, CARRIED[name], "diffusivity"):
                    field = diffusivity_field(CARRIED[name])
                    remarks.append(
                        f"domain.boundaries.{i} holds {name} and fluid.{field} is 0: the fluid hardly feels it."
                    )
        return tuple(remarks)

    @property
    def quantities(self) -> tuple[str, ...]:
        """What ``look.quantity`` may be: all but what nothing brings into this scene."""
        carried = self.carried
        return (*(name for name in CARRIED if name in carried), *MEASURED)

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, values: Any) -> Any:
        return with_defaults(values)

    @model_validator(mode="after")
    def _check(self):
        require_liquid(self)
        if self.liquid is None:  # of which the air makes room for more
            check_balance(self.domain.sides, self.domain.shape, self.domain.dx)
        self._check_look()
        self._check_solids()
        self._check_expansion()
        self._check_fluxes()
        self._check_initial()
        self._check_axes()
        self._check_in_time()
        self._check_places()
        there = tuple(self.carried), len(self.solids), self.liquid is not None
        require_probes(self.probes, self.domain.size, self.domain.dx, *there)
        return self

    def _check_look(self) -> None:
        if self.solids and self.domain.grid == "collocated":
            raise ValueError("domain.grid is 'collocated', which holds no solids: they need the 'staggered' grid")
        if self.solids and self.look.compare:
            raise ValueError("look.compare is true, which shows the collocated grid too, and that holds no solids")
        if self.look.compare and any(side.parts for _, side in self._sides()):
            raise ValueError("look.compare is true, which shows the collocated grid too, whose sides have no parts")
        if self.look.compare and any(side.is_convected for _, side in self._sides()):
            raise ValueError("look.compare is true, which shows the collocated grid too, and that has no outflow")
        quantity = self.look.quantity
        if self.look.view in PLANES and quantity not in self.quantities:
            known = ", ".join(self.quantities)
            raise ValueError(f"look.quantity is {quantity!r}, which nothing brings into this scene; it may be {known}")
        light = self.look.light_direction
        if light is not None and not 1e-6 <= math.hypot(*light) <= 1e6:
            raise ValueError(f"look.light_direction is {list(light)}; its length must be from 1e-6 to 1e6")

    def _check_solids(self) -> None:
        for i, solid in enumerate(self.solids):
            for name, parts in (("angular_velocity", solid.spin), ("turn", solid.turned)):
                if any(parts) and len(parts) != (1 if self.dim == 2 else 3):
                    wanted = "one number in a 2D box" if self.dim == 2 else "three numbers in a 3D box"
                    raise ValueError(f"solids[{i}].{name} is {getattr(solid, name)}; it is {wanted}")
            if isinstance(solid, MeshSolid):
                if self.dim != 3:
                    raise ValueError(f"solids[{i}].shape is 'mesh'; a box of {self.dim} axes has no meshes")
                if not _is_file(solid.file):
                    why = "it must be a file" if os.path.lexists(solid.file) else "there is no such file"
                    raise ValueError(f"solids[{i}].file is {solid.file!r}; {why}")
            if isinstance(solid, BoxSolid) and 2 * solid.rounding > min(solid.size):
                raise ValueError(
                    f"solids[{i}].rounding is {solid.rounding:g} m; it is at most half of the shortest edge, "
                    f"{0.5 * min(solid.size):g} m"
                )
            if solid.end is not None and solid.end <= solid.begin:
                raise ValueError(f"solids[{i}].end is {solid.end:g} s; it must be after begin, {solid.begin:g} s")

    def _check_axes(self) -> None:
        """Every vector has as many coordinates as the box has axes."""
        vectors: dict[str, Any] = {
            "fluid.gravity": self.fluid.gravity,
            "fluid.body_force": self.fluid.body_force,
            "look.light_direction": self.look.light_direction,
            "camera.center": self.camera.center,
        }
        for i, source in enumerate(self.sources):
            a, b, _ = source.geometry()
            vectors |= {f"sources[{i}].{name}": getattr(source, name) for name in ("velocity", "path")}
            vectors |= {f"sources[{i}] (its place)": a}
            vectors |= {f"sources[{i}] (its extent)": b}
        for i, solid in enumerate(self.solids):
            a, b, _ = solid.geometry()
            vectors |= {f"solids[{i}].{name}": getattr(solid, name) for name in ("velocity", "swing", "path", "pivot")}
            vectors |= {f"solids[{i}] (its place)": a, f"solids[{i}] (its extent)": b or None}
        for i, picture in enumerate(self.pictures):
            if self.dim != 2:
                raise ValueError(f"pictures[{i}] is in a box of {self.dim} axes; only a box of 2 axes has pictures")
            vectors[f"pictures[{i}].center"] = picture.center
        for where, vector in vectors.items():
            if vector is not None and len(vector) != self.dim:
                raise ValueError(f"{where} has {len(vector)} coordinates; the box has {self.dim} axes")

    def _check_in_time(self) -> None:
        """What is an expression in t can be read, and is a number that is allowed when the flow begins."""
        told: dict[str, tuple[Sequence[float | str], float, str]] = {}
        told["fluid.body_force"] = self.fluid.body_force or (), MOST_FORCE, "m/s²"
        for i, source in enumerate(self.sources):
            told[f"sources[{i}].path"] = source.path or (), FARTHEST, "m"
        for i, solid in enumerate(self.solids):
            told[f"solids[{i}].path"] = solid.path or (), FARTHEST, "m"
            told[f"solids[{i}].turn"] = solid.turned, MOST_TURNED, "rad"
        for where, (parts, most, unit) in told.items():
            for k, part in enumerate(parts):
                try:
                    (begun,) = at_time([part], 0.0)
                except ExpressionError as error:
                    raise ValueError(f"{where}.{k}: {error}") from None
                if not abs(begun) <= most:
                    raise ValueError(f"{where}.{k}: {part!r} is {begun:g} at t = 0; it must be within {most:g} {unit}")

    def _check_places(self) -> None:
        """Sources that stay where they are, bodies of liquid and pictures touch the box."""
        resting = {f"sources[{i}]": source for i, source in enumerate(self.sources) if not source.moves}
        placed = {where: (source.shape, source.placed(0.0)) for where, source in resting.items()}
        if self.liquid is not None:
            placed |= {
                f"liquid.bodies[{i}]": (body.shape, body.geometry()) for i, body in enumerate(self.liquid.bodies)
            }
        for where, (shape, (a, b, radius)) in placed.items():
            points, reach = ([a], b) if shape == "box" else ([a, b], (radius,) * self.dim)
            for axis, edge in enumerate(self.domain.size):
                low = min(p[axis] for p in points) - reach[axis]
                high = max(p[axis] for p in points) + reach[axis]
                if high <= 0 or low >= edge:
                    raise ValueError(
                        f"{where} reaches from {low:g} to {high:g} m along axis {axis}; it must touch the box, "
                        f"which reaches from 0 to {edge:g} m"
                    )
        for i, picture in enumerate(self.pictures):
            try:
                shape, edges = picture.pixels.shape, self.domain.size
            except PillowMissing:  # how high it is shows when it is drawn
                shape, edges = (1, 1), self.domain.size[:1]
            require_touch(*picture_bounds(shape, picture.center, picture.width), edges, f"pictures[{i}]")

    def _check_expansion(self) -> None:
        """What expands must have somewhere to go."""
        if self.domain.has_open:
            return
        growing = {"combustion.expansion": self.combustion.expansion}
        growing |= {f"sources[{i}].blast": source.blast for i, source in enumerate(self.sources)}
        for where, amount in growing.items():
            if amount:
                raise ValueError(f"{where} is {amount:g}; without an open side of the box it must be 0")

    def _check_fluxes(self) -> None:
        """What a wall gives must be able to spread."""
        for i, side in self._sides():
            for name in side.fluxes:
                row = CARRIED[name]
                each = [side.flux(name, k) for k in range(row.components)]
                if any(each) and not rate_of(self.fluid, row, "diffusivity"):
                    said = "an expression" if any(isinstance(one, Profile) for one in each) else side.fluxes[name]
                    raise ValueError(
                        f"domain.boundaries.{i}.{flux_field(name)} is {said}; it needs a "
                        f"fluid.{diffusivity_field(row)} above 0 m²/s"
                    )
        for i, solid in enumerate(self.solids):
            for name in (*solid.values, *solid.fluxes):
                if name in solid.values and name in solid.fluxes:
                    raise ValueError(f"solids[{i}] has a value and a flux of {name}; a solid has one of them")
                if not rate_of(self.fluid, CARRIED[name], "diffusivity"):
                    field = name if name in solid.values else flux_field(name)
                    given = {**solid.values, **{flux_field(key): flux for key, flux in solid.fluxes.items()}}[field]
                    raise ValueError(
                        f"solids[{i}].{field} is {given}; it needs a "
                        f"fluid.{diffusivity_field(CARRIED[name])} above 0 m²/s"
                    )

    def _check_initial(self) -> None:
        """Expressions can be read, and files hold arrays of this many axes and components."""
        for name, value in self.initial.given.items():
            where = f"initial.{name}"
            count = self.initial.components(name, self.dim)
            if isinstance(value, ArrayFile):
                try:
                    require_array(value.file, self.dim, count)
                except BeginningError as error:
                    raise ValueError(f"{where}.{error}") from None
                continue
            parts = {where: value}
            if isinstance(value, tuple):
                parts = {f"{where}.{k}": part for k, part in enumerate(value)}
                if len(value) != count:
                    raise ValueError(f"{where} has {len(value)} components; the box has {self.dim} axes")
            for place, part in parts.items():
                if isinstance(part, str):
                    try:
                        read_expression(part, self.dim)
                    except BeginningError as error:
                        raise ValueError(f"{place}: {error}") from None

    @property
    def files(self) -> dict[str, str]:
        """The files that it reads, by the dotted keys of their paths."""
        tables = {f"solids.{i}": solid for i, solid in enumerate(self.solids)}
        tables |= {f"pictures.{i}": picture for i, picture in enumerate(self.pictures)}
        tables |= {f"initial.{name}": value for name, value in self.initial.given.items()}
        found = {f"{key}.file": getattr(table, "file", None) for key, table in tables.items()}
        return {key: file for key, file in found.items() if file is not None}

    def _sides(self) -> Iterator[tuple[str, Side]]:
        """The sides of the box and their parts, each with its place in ``domain.boundaries``."""
        for axis, pair in enumerate(self.domain.sides):
            for end, side in enumerate(pair):
                yield f"{axis}.{end}", side
                for i, part in enumerate(side.parts):
                    yield f"{axis}.{end}.parts.{i}", part.side

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Scene":
        """Build a scene from nested values; SceneError names what is wrong."""
        return cls(**{str(key): value for key, value in values.items()})

    @classmethod
    def loads(cls, text: str, where: str = "the scene", folder: str | Path = ".") -> "Scene":
        """Build a scene from TOML text; files that it names are looked for in ``folder``."""
        return cls.from_dict(read_toml(text, where, folder))

    @classmethod
    def load(cls, path: str | Path) -> "Scene":
        """Build a scene from a TOML file, which is called as that if it has no name; SceneError names the file."""
        values = read_toml(read_file(path), repr(str(path)), Path(path).parent)
        if not values:
            raise SceneError(f"{str(path)!r} is empty: it should have the tables of a scene.")
        try:
            return cls.from_dict({"name": _UNNAMED.sub("_", Path(path).stem)[:64], **values})
        except SceneError as error:
            raise SceneError(f"{str(path)!r}: {error}") from None

    def dumps(self, absolute: bool = False) -> str:
        """The whole scene as TOML; ``Scene.loads`` gives the same scene back, from any folder if its files are ``absolute``."""
        values = self._plain()
        if absolute:
            find_files(values, Path.cwd())
        return tomli_w.dumps(values)

    def _plain(self) -> dict[str, Any]:
        """Nested plain values; no warnings, as a scene may be older than a field that a new row has made."""
        return self.model_dump(mode="json", exclude_none=True, warnings=False)

    def with_values(self, changes: Mapping[str, Any]) -> "Scene":
        """A copy with values changed by dotted key, such as ``{"fluid.viscosity": 1e-4, "sources.0.smoke": 2.0}``.

        A plane of what the scene then has not is one of something else, if the changes do not say what it shows.
        """
        values = self._plain()
        for key, value in changes.items():
            set_value(values, type(self), key, value)
        if (
            changes.get("look.view") in PLANES
            and "look.quantity" not in changes
            and self.look.quantity not in self.quantities
        ):
            shown = {"look.view": self.look.view}  # which asks for no quantity
            known = self.with_values({**changes, **shown}).quantities
            if self.look.quantity not in known:
                set_value(values, type(self), "look.quantity", known[0])
        return type(self).from_dict(values)


def _even(pixels: float) -> int:
    return min(max(2 * round(pixels / 2), 16), 8192)


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def require_installed(scene: Scene) -> None:
    """Raise SceneError where running the scene, unlike reading it, needs an extra of the package that is not here."""
    for i, solid in enumerate(scene.solids):
        if isinstance(solid, MeshSolid) and importlib.util.find_spec("trimesh") is None:
            raise SceneError(f"solids[{i}].shape is 'mesh', which needs trimesh: pip install 'taichi-fluid[mesh]'.")
    for i, picture in enumerate(scene.pictures):
        try:
            _ = picture.pixels
        except PillowMissing as error:
            raise SceneError(f"pictures[{i}]: {error}.") from None
