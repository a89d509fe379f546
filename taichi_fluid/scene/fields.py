"""The fields of a scene: what each is, with its unit, its meaning and its range, from which a panel can be made.

Nothing here needs Taichi. What hangs on the table of what is carried is added by ``rows``, what must hold among fields
stands in ``rules``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, core_schema

from ..boundaries.checks import check_sides
from ..boundaries.sides import Boundary, Part, Profile, Side
from ..carried import CARRIED, MEASURED
from ..limits import is_number
from .profiles import FASTEST, PlacesOfSide, checked_mean, computed_by, profiles_of


def number(
    default: Any,
    unit: str,
    description: str,
    slider: tuple[float, float] | None = None,
    *,
    of_box: bool = False,
    start: Any = None,
    **limits: float,
) -> Any:
    """A field with a unit. ``slider`` is the range in which it is usually moved, in that unit.

    With ``of_box`` that range is in longest edges of the box, as the field's unit begins with a length. ``start`` is
    what a value that may be left out becomes when it is switched on.
    """
    extra: dict[str, Any] = {"unit": unit, "start": start}
    if slider is not None:
        extra |= {"slider": list(slider), "of_box": of_box}
    return Field(default, description=description, json_schema_extra=extra, **limits)


Coordinate = Annotated[float, Field(ge=-1e6, le=1e6)]
Vector = Annotated[tuple[Coordinate, ...], Field(strict=False, min_length=2, max_length=3)]
Told = Annotated[tuple[Coordinate | str, ...], Field(strict=False, min_length=2, max_length=3)]
"""A vector of numbers, or of expressions."""
Edge = Annotated[float, Field(ge=1e-4, le=1e6)]
Edges = Annotated[tuple[Edge, ...], Field(strict=False, min_length=2, max_length=3)]
Limit = Annotated[float, Field(ge=-1e30, le=1e30)]
Colour = Annotated[
    tuple[
        Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)]
    ],
    Field(strict=False),
]
Turn = Annotated[float, Field(ge=-1e4, le=1e4)]
Angle = Turn | str
"""A number, or an expression."""


class OneOf:
    """Makes a text one of some names, which are asked for when it is checked: a table may have gained a row."""

    def __init__(self, names: Callable[[], Iterable[str]]):
        self.names = names

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_plain_validator_function(self._known)

    def _known(self, value: Any) -> str:
        names = list(self.names())
        if not isinstance(value, str) or value not in names:
            *others, last = map(repr, names)
            raise PydanticCustomError("literal_error", f"Input should be {', '.join(others)} or {last}")  # pyright: ignore
        return value


def choices(field: FieldInfo, annotation: Any) -> tuple[str, ...]:
    """The texts that a field may have; empty if it has no such list."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return tuple(name for entry in field.metadata if isinstance(entry, OneOf) for name in entry.names())


SideKind = Annotated[str, OneOf(lambda: Boundary)]


class Config(BaseModel):
    """A table of a scene: frozen, and refused where a key is unknown or a value of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=True)


class _OnSide(Config):
    """What stands on a side of the box, or on a part of one; ``rows`` adds each quantity's value there, and its flux."""

    kind: SideKind = Field(description="kind of the side")
    velocity: Told | None = Field(
        None, description="of a moving wall or an inflow, m/s: numbers, or expressions in x, y, z and t"
    )

    def _side(self, places: PlacesOfSide, parts: Sequence[Part] = ()) -> Side:
        kind = Boundary(self.kind)
        values = {name: getattr(self, name, None) for name in CARRIED}
        fluxes = {name: getattr(self, flux_field(name), None) for name in CARRIED}
        # What flows in from elsewhere has what is outside; a wall holds that only if it says so.
        unsaid = {name: None if kind.is_closed else row.outside_value for name, row in CARRIED.items()}
        values = {
            name: profiles_of(name, value, CARRIED[name].limit, places)
            for name, value in values.items()
            if value not in (None, unsaid[name])
        }
        fluxes = {
            name: profiles_of(flux_field(name), flux, CARRIED[name].limit, places)
            for name, flux in fluxes.items()
            if flux is not None
        }
        velocity, profiles = list(self.velocity or ()), {}
        for k, each in enumerate(velocity):
            if isinstance(each, str):
                mean, varies = checked_mean(each, f"velocity: component {k},", FASTEST, places.of(k))
                velocity[k] = mean
                profiles[k] = Profile(computed_by(each, places.dim), varies)
        return Side(kind, tuple(velocity), values, fluxes, profiles, tuple(parts))


class PartOfSide(_OnSide):
    """A rectangle of a side, in 2D a stretch of it, on which something else stands."""

    lower: Annotated[tuple[Coordinate, ...], Field(strict=False, min_length=1, max_length=2)] = Field(
        description="its lower corner, m: coordinates along the axes that the side has, in their order; within a cell, as much flows "
        "in there, and is given by a wall, as lies in the part, and all else goes by centres of cells"
    )
    upper: Annotated[tuple[Coordinate, ...], Field(strict=False, min_length=1, max_length=2)] = Field(
        description="its upper corner, m"
    )

    def part(self, places: PlacesOfSide) -> Part:
        """The part as the solver has it."""
        if len(self.lower) != places.dim - 1 or len(self.upper) != places.dim - 1:
            raise ValueError(
                f"lower is {list(self.lower)} and upper is {list(self.upper)}; the side has {places.dim - 1} axes"
            )
        return Part(self.lower, self.upper, self._side(places._replace(corners=(self.lower, self.upper))))


class SideOfBox(_OnSide):
    """A side of the box that says more than its kind."""

    parts: Annotated[tuple[PartOfSide, ...], Field(strict=False)] = Field(
        (), description="where it is otherwise, each in the place of what stands before it"
    )

    def side(self, places: PlacesOfSide) -> Side:
        """The side as the solver has it.

        Raises:
            ValueError: that begins with the key of what cannot be.
        """
        parts = []
        for i, part in enumerate(self.parts):
            try:
                parts.append(part.part(places))
            except ValueError as error:
                raise ValueError(f"parts[{i}].{error}") from None
        return self._side(places, parts)


def flux_field(name: str) -> str:
    """Name of the field of a side that holds the flux of a quantity."""
    return f"{name}_flux"


AnySide = SideKind | SideOfBox
SidePair = Annotated[tuple[AnySide, AnySide], Field(strict=False)]


class Domain(Config):
    """The box and its cells."""

    size: Edges = Field((1.0, 1.0, 1.0), description="edge lengths of the box, m; two make a 2D scene")
    resolution: int = Field(64, ge=1, le=8192, description="cells along the longest edge; others are rounded to cells")
    grid: Literal["staggered", "collocated"] = Field(
        "staggered", description="where the velocity lies: on the faces of the cells, or with all else at their centres"
    )
    boundaries: Annotated[tuple[SidePair, ...], Field(strict=False)] | SideKind = Field(
        "free-slip",
        description="kind of all sides, or one pair (lower, upper) per axis, each a kind or a table that says more",
    )

    @property
    def dx(self) -> float:
        """Edge of a cell, m."""
        return max(self.size) / self.resolution

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of cells along each axis."""
        return tuple(max(1, round(edge / self.dx)) for edge in self.size)

    @property
    def sides(self) -> tuple[tuple[Side, Side], ...]:
        """``sides[axis][side]``."""
        if isinstance(self.boundaries, str):
            side = Side(Boundary(self.boundaries))
            return ((side, side),) * len(self.size)
        return tuple(
            (self._side(pair[0], axis, 0), self._side(pair[1], axis, 1)) for axis, pair in enumerate(self.boundaries)
        )

    def _side(self, side: AnySide, axis: int, end: int) -> Side:
        if isinstance(side, str):
            return Side(Boundary(side))
        size = tuple(n * self.dx for n in self.shape)
        try:
            return side.side(PlacesOfSide(self.shape, size, axis, end, self.grid == "staggered"))
        except ValueError as error:
            raise ValueError(f"boundaries[{axis}][{end}].{error}") from None

    @property
    def has_open(self) -> bool:
        """Whether as much leaves through any side as has to."""
        return any(side.lets_out for pair in self.sides for side in pair)

    @model_validator(mode="after")
    def _check(self):
        if len(self.sides) != len(self.size):
            raise ValueError(f"boundaries has {len(self.sides)} pairs; size has {len(self.size)} axes")
        check_sides(self.sides, self.shape, self.dx, fills=True)  # of a gas the scene looks at that
        if self.grid == "collocated" and any(side.parts for pair in self.sides for side in pair):
            raise ValueError("grid is 'collocated', whose sides have no parts: they need the 'staggered' grid")
        if self.grid == "collocated" and any(side.is_convected for pair in self.sides for side in pair):
            raise ValueError("grid is 'collocated', which has no outflow: that needs the 'staggered' grid")
        return self


class Fluid(Config):
    """The fluid, the forces on it, and what becomes of what it carries."""

    rho: float = number(1.2, "kg/m³", "density of the fluid", slider=(0.1, 10), gt=0, le=1e5)
    viscosity: float = number(0.0, "m²/s", "kinematic viscosity", slider=(0, 0.01), ge=0, le=10)
    gravity: Vector | None = number(
        None, "m/s²", "gravity; left out, 9.81 down the second axis", slider=(-20, 20), start=(0.0, -9.81, 0.0)
    )
    expansion: float = number(
        1 / 300, "1/K", "buoyancy of heat: relative change of volume", slider=(0, 0.02), ge=0, le=1
    )
    smoke_weight: float = number(0.0, "1", "relative weight of one unit of smoke", slider=(-0.5, 0.5), ge=-10, le=10)
    body_force: Told | None = number(
        None, "m/s²", "uniform acceleration: numbers, or expressions in t", slider=(-10, 10)
    )
    confinement: float = number(
        0.0,
        "m/s",
        "vorticity confinement: the epsilon·h of the textbook, epsilon in 1/s",
        slider=(0, 0.06),
        of_box=True,
        ge=0,
        le=1,
    )
    smoke_diffusion: float = number(0.0, "m²/s", "diffusivity of smoke, dye and fuel", slider=(0, 0.01), ge=0, le=10)
    heat_diffusion: float = number(0.0, "m²/s", "diffusivity of temperature", slider=(0, 0.01), ge=0, le=10)
    smoke_dissipation: float = number(0.0, "1/s", "rate at which smoke and dye fade", slider=(0, 3), ge=0, le=100)
    smoke_fade: float = number(
        0.0, "1/s", "smoke and dye that vanish each second, until none is left", slider=(0, 1), ge=0, le=1e4
    )
    velocity_fade: float = number(
        0.0,
        "m/s²",
        "what each component of the velocity loses each second, until none is left",
        slider=(0, 1),
        ge=0,
        le=1e4,
    )
    cooling: float = number(0.0, "1/s", "rate at which temperature falls to ambient", slider=(0, 3), ge=0, le=100)
    radiation: float = number(
        0.0,
        "1/s",
        "rate at which gas 1000 K above ambient cools by radiation; with the third power of that",
        slider=(0, 3),
        ge=0,
        le=100,
    )


class Combustion(Config):
    """How fuel burns, and what comes of it."""

    burn_rate: float = number(0.0, "1/s", "rate at which fuel burns; 0 burns nothing", slider=(0, 20), ge=0, le=1e4)
    ignition: float = number(
        0.0, "K", "temperature above ambient from which fuel burns; 0 is any", slider=(0, 1000), ge=0, le=1e6
    )
    heat: float = number(0.0, "K", "rise in temperature for each unit of fuel burnt", slider=(0, 3000), ge=-1e6, le=1e6)
    soot: float = number(0.0, "1", "smoke made of each unit of fuel burnt", slider=(0, 5), ge=0, le=1e4)
    expansion: float = number(
        0.0,
        "1",
        "relative growth of volume for each unit of fuel burnt; needs an open side",
        slider=(0, 10),
        ge=0,
        le=1e3,
    )


class ArrayFile(Config):
    """An array over the whole box, from a file; see ``beginnings``."""

    file: str = Field(description="path of a .npy file; in a scene file relative to it", min_length=1)


class Given:
    """Makes a field what a flow begins with: of so many components, each a number or an expression, or all of a file.

    Args:
        components: How many; None for as many as the box has axes.
    """

    def __init__(self, components: int | None):
        self.components = components

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_plain_validator_function(self._checked)

    def _checked(self, value: Any) -> Any:
        if value is None or isinstance(value, ArrayFile):
            return value
        if isinstance(value, Mapping):
            if set(value) == {"file"} and isinstance(value["file"], str) and value["file"]:
                return ArrayFile(file=value["file"])
        elif self.components == 1:
            if _is_part(value):
                return value
        elif isinstance(value, list | tuple) and all(map(_is_part, value)):
            if len(value) == self.components or (self.components is None and len(value) in (2, 3)):
                return tuple(value)
        one = "a finite number, an expression"
        if self.components != 1:
            one = f"a list of {self.components or 'as many as the box has axes'}, each {one.replace(', ', ' or ')},"
        raise PydanticCustomError("beginning", f"Input should be {one} or {{ file = ... }}")  # pyright: ignore


def _is_part(value: Any) -> bool:
    return isinstance(value, str) or is_number(value)


NOT_CARRIED = {"velocity": None, "level_set": 1}
"""What ``[initial]`` may hold beside what is carried, and its components, None for one an axis; the level set is a liquid's."""


class Initial(Config):
    """What a flow begins with, in place of rest and of what is outside; ``rows`` adds each quantity."""

    velocity: Annotated[Any, Given(NOT_CARRIED["velocity"])] = Field(
        None, description="velocity at time 0, m/s: one for each axis"
    )
    projected: bool = Field(False, description="whether that velocity is made free of divergence")
    level_set: Annotated[Any, Given(NOT_CARRIED["level_set"])] = Field(
        None, description="below 0 where a liquid is at time 0 beside its bodies, and nowhere else"
    )

    @property
    def given(self) -> dict[str, Any]:
        """What is given, by name."""
        values = {name: getattr(self, name, None) for name in (*NOT_CARRIED, *CARRIED)}
        return {name: value for name, value in values.items() if value is not None}

    @staticmethod
    def components(name: str, dim: int) -> int:
        """Of what is given by this name."""
        return (NOT_CARRIED[name] or dim) if name in NOT_CARRIED else CARRIED[name].components


class Solver(Config):
    """How the equations are solved."""

    pressure: Literal["auto", "spectral", "multigrid-cg", "multigrid", "cg", "gauss-seidel", "jacobi"] = Field(
        "auto",
        description="solver of the pressure; auto is spectral, by transforms on a CPU, where it can be, and else multigrid-cg",
    )
    faces: Literal["fractions", "voxels"] = Field("fractions", description="faces beside solids: open in part, or not")
    tolerance: float = number(1e-4, "1", "relative residual of the pressure, L2", slider=(1e-6, 1e-2), gt=0, lt=1)
    max_iterations: int = number(
        200, "1", "iterations after which the solver gives up", slider=(1, 500), ge=1, le=100_000
    )
    sweeps: int | None = number(
        None,
        "1",
        "sweeps of red-black Gauss-Seidel for pressure and diffusion, in place of solver and tolerance; left out, solve",
        slider=(1, 100),
        start=20,
        ge=1,
        le=100_000,
    )
    scheme: Literal["splitting", "reflection"] = Field(
        "reflection",
        description="time integration on the staggered grid: advection-reflection, which is of second order and keeps the "
        "energy of vortices, or advection and projection one after the other, in half the time a step, of a liquid in 0.94",
    )
    advection: Literal["maccormack", "semi-lagrangian"] = Field("maccormack", description="advection scheme")
    trace: Literal["euler", "rk2", "rk3"] = Field("rk2", description="how paths are followed")
    conserve: bool = Field(
        True, description="keep the amount of all that is carried, whatever advection makes of it or loses"
    )
    dt: float | None = number(
        None, "s", "fixed time step; left out, from the CFL number", slider=(1e-3, 0.05), start=0.01, ge=1e-7, le=10
    )
    cfl: float = number(1.5, "1", "cells that the fastest fluid may cross in a step", slider=(0.2, 5), ge=0.01, le=100)
    max_dt: float = number(1 / 24, "s", "longest time step", slider=(1e-3, 0.1), ge=1e-7, le=10)


class Look(Config):
    """What the picture looks like."""

    view: Literal["volume", "slice", "sheets", "arrows", "tracers", "surface"] = Field(
        "volume",
        description="lit smoke, a colour-mapped plane, smoke as a stack of sheets, arrows of the velocity on a plane, "
        "points that drift with the flow, or the surface of a liquid, for which it is the default",
    )
    extinction: float = number(40.0, "1/m", "opacity of one unit of smoke", slider=(0, 100), ge=0, le=1e5)
    incandescence: float = number(
        0.0, "1/m", "opacity of gas that is hot enough to glow", slider=(0, 100), ge=0, le=1e5
    )
    albedo: Colour = Field((0.92, 0.92, 0.95), description="colour of smoke")
    light: Colour = Field((1.0, 0.96, 0.9), description="colour of the light")
    light_strength: float = number(2.6, "1", "brightness of the light", slider=(0, 6), ge=0, le=100)
    light_direction: Vector | None = number(None, "1", "towards the light", slider=(-1, 1), start=(0.55, 0.75, 0.35))
    ambient: Colour = Field((0.22, 0.28, 0.4), description="light from everywhere")
    exposure: float = number(1.0, "1", "brightness of the picture", slider=(0.1, 4), gt=0, le=100)
    background_top: Colour = Field((0.03, 0.04, 0.07), description="background, upper edge")
    background_bottom: Colour = Field((0.12, 0.13, 0.16), description="background, lower edge")
    quantity: Annotated[str, OneOf(lambda: [*CARRIED, *MEASURED])] = Field(
        "smoke", description="quantity of a slice, and of the plane below arrows; tracers show their speed"
    )
    colour_map: Literal["viridis", "inferno", "magma", "plasma", "cividis", "gray", "balance"] = Field(
        "inferno", description="colours of a slice and of tracers"
    )
    legend: bool = Field(True, description="show what the colours mean, in pictures of 160 pixels and more")
    compare: bool = Field(
        False,
        description="run and show the staggered grid on the left and the collocated one on the right, with the "
        "divergence that each leaves",
    )
    axis: int = Field(2, ge=0, le=2, description="axis that a slice is perpendicular to")
    position: float = number(0.5, "1", "place of a slice along its axis", ge=0, le=1)
    limits: Annotated[tuple[Limit, Limit], Field(strict=False)] | None = Field(
        None, description="values at the ends of the colour map; left out, those in the slice"
    )
    sheets: int = Field(24, ge=1, le=1024, description="planes in a stack of sheets")
    arrows: int = Field(32, ge=1, le=1024, description="arrows along the longest edge of the plane")
    arrow_speed: float | None = number(
        None, "m/s", "speed of the longest arrow; left out, the fastest in the plane", slider=(0.01, 10), gt=0, le=1e6
    )
    tracers: int = Field(20_000, ge=1, le=1_000_000, description="points that drift with the flow")
    tracer_life: float = number(3.0, "s", "how long such a point lives", slider=(0.1, 10), gt=1e-3, le=1e6)


class Camera(Config):
    """An orbit camera around the middle of the box."""

    azimuth: float = number(25.0, "degrees", "turn around the vertical axis", slider=(-180, 180), ge=-3600, le=3600)
    elevation: float = number(8.0, "degrees", "height above the horizon", slider=(-89, 89), ge=-89, le=89)
    distance: float = number(3.2, "longest edges", "from the middle of the box", slider=(0.3, 6), gt=0.1, le=100)
    field_of_view: float = number(28.0, "degrees", "vertical", slider=(10, 90), gt=1, lt=150)
    center: Vector | None = number(
        None, "m", "what it looks at; left out, the middle of the box", slider=(0, 1), of_box=True
    )


class Live(Config):
    """How fast a scene is shown, and what the pointer does in a window."""

    pace: float = number(
        1.0, "1", "seconds of the scene in a second, in a window at most", slider=(0.05, 4), ge=0.01, le=100
    )
    radius: float = number(0.06, "longest edges", "reach of the pointer", slider=(0.01, 0.25), gt=0, le=1)
    push: float = number(1.0, "1", "velocity that a drag gives, of the pointer's own", slider=(0, 4), ge=0, le=100)
    paint: float = number(1.0, "1", "smoke or dye that a drag leaves", slider=(0, 10), ge=0, le=1e4)
    heat: float = number(0.0, "K", "temperature that a drag leaves", slider=(0, 500), ge=0, le=1e6)
    fuel: float = number(0.0, "1", "fuel that a drag leaves", slider=(0, 10), ge=0, le=1e4)
    colour: Colour = Field((1.0, 0.35, 0.05), description="colour of the dye that a drag leaves")
    add: bool = Field(
        False, description="whether a drag adds, 60 times a second, what it otherwise sets, so that it piles up"
    )
    pour: bool = Field(False, description="whether a drag leaves liquid, which falls from where the pointer is")


class Output(Config):
    """What a recording is made of."""

    frames: int = Field(96, ge=1, le=100_000, description="pictures to record")
    fps: float = number(
        24.0, "1/s", "pictures in a second of simulated time; a film shows as many times live.pace", ge=0.1, le=1000
    )
    width: int | None = Field(
        None,
        ge=16,
        le=8192,
        description="pixels; left out, width and height take the shape of the box, 480 x 480 of a cube",
    )
    height: int | None = Field(None, ge=16, le=8192, description="pixels, as width")
