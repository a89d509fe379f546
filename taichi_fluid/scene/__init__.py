"""A scene as data: a frozen, validated value tree that can be loaded from TOML and dumped again.

Nothing here needs Taichi, so bad input is refused before a backend starts. Every number carries its unit, its meaning
and its range in the field's metadata, from which a panel of sliders can be made.
"""

import contextlib
import difflib
import importlib.util
import math
import sys
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args

import numpy as np
import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..boundaries.sides import Boundary, Side, check_sides
from .pictures import PillowMissing, picture_bounds, read_picture, require_touch, text_picture

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]


class SceneError(ValueError):
    """A scene that cannot be; the message names the thing, its value and what is allowed, in one sentence."""


def _quantity(
    default: Any, unit: str, description: str, slider: tuple[float, float] | None = None, of_box: bool = False,
    start: Any = None, **limits: float,
) -> Any:  # fmt: skip
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
Edge = Annotated[float, Field(ge=1e-4, le=1e6)]
Edges = Annotated[tuple[Edge, ...], Field(strict=False, min_length=2, max_length=3)]
Limit = Annotated[float, Field(ge=-1e30, le=1e30)]
Rate = Annotated[float, Field(ge=-1e4, le=1e4)]
Colour = Annotated[
    tuple[
        Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)], Annotated[float, Field(ge=0, le=1)]
    ],
    Field(strict=False),
]
SideKind = Literal["free-slip", "no-slip", "moving-wall", "inflow", "open", "periodic"]
Turn = Annotated[float, Field(ge=-1e4, le=1e4)]

CARRIED = {"smoke": 1, "temperature": 1, "dye": 3, "fuel": 1}
"""What a scene may bring in for the flow to carry, with the number of components."""


class _Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, validate_default=True)


class SideOfBox(_Config):
    """A side of the box that says more than its kind."""

    kind: SideKind = Field(description="kind of the side")
    velocity: Vector | None = Field(None, description="of a moving wall or an inflow, m/s")
    smoke: float = _quantity(0.0, "1", "smoke in what flows in", slider=(0, 20), ge=-1e4, le=1e4)
    temperature: float = _quantity(
        0.0, "K", "temperature above ambient of what flows in", slider=(0, 500), ge=-1e6, le=1e6
    )
    dye: Annotated[tuple[Rate, Rate, Rate], Field(strict=False)] = Field(
        (0.0, 0.0, 0.0), description="red, green and blue dye in what flows in"
    )
    fuel: float = _quantity(0.0, "1", "fuel in what flows in", slider=(0, 20), ge=-1e4, le=1e4)

    @property
    def side(self) -> Side:
        """The side as the solver has it."""
        values = {"smoke": self.smoke, "temperature": self.temperature, "dye": self.dye, "fuel": self.fuel}
        values = {name: value for name, value in values.items() if value not in (0.0, (0.0, 0.0, 0.0))}
        return Side(Boundary(self.kind), tuple(self.velocity or ()), values)


AnySide = SideKind | SideOfBox
SidePair = Annotated[tuple[AnySide, AnySide], Field(strict=False)]


class Domain(_Config):
    """The box and its cells."""

    size: Edges = Field((1.0, 1.0, 1.0), description="edge lengths of the box, m; two make a 2D scene")
    resolution: int = Field(64, ge=1, le=8192, description="cells along the longest edge")
    grid: Literal["staggered", "collocated"] = Field(
        "staggered", description="where the velocity lies: on the faces of the cells, or with all else at their centres"
    )
    boundaries: Annotated[tuple[SidePair, ...], Field(strict=False)] | SideKind = Field(
        "free-slip", description="kind of all sides, or one pair (lower, upper) per axis"
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
        pairs = [[side.side if isinstance(side, SideOfBox) else Side(Boundary(side)) for side in pair]
                 for pair in self.boundaries]  # fmt: skip
        return tuple((lower, upper) for lower, upper in pairs)

    @property
    def has_open(self) -> bool:
        """Whether any side is open."""
        return any(side.kind is Boundary.OPEN for pair in self.sides for side in pair)

    @model_validator(mode="after")
    def _check(self):
        if len(self.sides) != len(self.size):
            raise ValueError(f"boundaries has {len(self.sides)} pairs; size has {len(self.size)} axes")
        check_sides(self.sides, self.shape)
        return self


class Fluid(_Config):
    """The fluid, the forces on it, and what becomes of what it carries."""

    rho: float = _quantity(1.2, "kg/m³", "density of the fluid", slider=(0.1, 10), gt=0, le=1e5)
    viscosity: float = _quantity(0.0, "m²/s", "kinematic viscosity", slider=(0, 0.01), ge=0, le=10)
    gravity: Vector | None = _quantity(
        None, "m/s²", "gravity; left out, 9.81 down the second axis", slider=(-20, 20), start=(0.0, -9.81, 0.0)
    )
    expansion: float = _quantity(
        1 / 300, "1/K", "buoyancy of heat: relative change of volume", slider=(0, 0.02), ge=0, le=1
    )
    smoke_weight: float = _quantity(0.0, "1", "relative weight of one unit of smoke", slider=(-0.5, 0.5), ge=-10, le=10)
    body_force: Vector | None = _quantity(None, "m/s²", "uniform acceleration", slider=(-10, 10))
    confinement: float = _quantity(
        0.0, "m", "vorticity confinement: the epsilon·h of the textbook", slider=(0, 0.06), of_box=True, ge=0, le=1
    )
    smoke_diffusion: float = _quantity(0.0, "m²/s", "diffusivity of smoke, dye and fuel", slider=(0, 0.01), ge=0, le=10)
    heat_diffusion: float = _quantity(0.0, "m²/s", "diffusivity of temperature", slider=(0, 0.01), ge=0, le=10)
    smoke_dissipation: float = _quantity(0.0, "1/s", "rate at which smoke and dye fade", slider=(0, 3), ge=0, le=100)
    smoke_fade: float = _quantity(
        0.0, "1/s", "smoke and dye that vanish each second, until none is left", slider=(0, 1), ge=0, le=1e4
    )
    velocity_fade: float = _quantity(
        0.0, "m/s²", "what each component of the velocity loses each second, until none is left", slider=(0, 1),
        ge=0, le=1e4,
    )  # fmt: skip
    cooling: float = _quantity(0.0, "1/s", "rate at which temperature falls to ambient", slider=(0, 3), ge=0, le=100)
    radiation: float = _quantity(
        0.0, "1/s", "rate at which gas 1000 K above ambient cools by radiation; with the third power of that",
        slider=(0, 3), ge=0, le=100,
    )  # fmt: skip


class Combustion(_Config):
    """How fuel burns, and what comes of it."""

    burn_rate: float = _quantity(0.0, "1/s", "rate at which fuel burns; 0 burns nothing", slider=(0, 20), ge=0, le=1e4)
    ignition: float = _quantity(
        0.0, "K", "temperature above ambient from which fuel burns; 0 is any", slider=(0, 1000), ge=0, le=1e6
    )
    heat: float = _quantity(
        0.0, "K", "rise in temperature for each unit of fuel burnt", slider=(0, 3000), ge=-1e6, le=1e6
    )
    soot: float = _quantity(0.0, "1", "smoke made of each unit of fuel burnt", slider=(0, 5), ge=0, le=1e4)
    expansion: float = _quantity(
        0.0, "1", "relative growth of volume for each unit of fuel burnt; needs an open side", slider=(0, 10), ge=0,
        le=1e3,
    )  # fmt: skip


class _Source(_Config):
    smoke: float = _quantity(0.0, "1/s", "smoke added each second", slider=(0, 20), ge=-1e4, le=1e4)
    temperature: float = _quantity(0.0, "K/s", "heating rate", slider=(0, 500), ge=-1e6, le=1e6)
    dye: Annotated[tuple[Rate, Rate, Rate], Field(strict=False)] = _quantity(
        (0.0, 0.0, 0.0), "1/s", "red, green and blue dye added each second", slider=(0, 20)
    )
    fuel: float = _quantity(0.0, "1/s", "fuel added each second", slider=(0, 20), ge=-1e4, le=1e4)
    blast: float = _quantity(
        0.0, "1/s", "divergence there: relative growth of volume each second; needs an open side", slider=(0, 50),
        ge=0, le=1e4,
    )  # fmt: skip
    velocity: Vector | None = _quantity(
        None, "m/s", "velocity to which the fluid is set there", slider=(-3, 3), of_box=True
    )
    begin: float = _quantity(0.0, "s", "time at which the source starts", slider=(0, 10), ge=0, le=1e6)
    end: float | None = _quantity(
        None, "s", "time at which it stops; left out, never", slider=(0, 20), start=5.0, ge=0, le=1e6
    )
    mottle: float = _quantity(0.0, "1", "0 emits evenly, 1 in patches", ge=0, le=1)
    mottle_size: float = _quantity(0.1, "m", "size of a patch", slider=(0.01, 0.5), of_box=True, ge=1e-4, le=1e6)

    def active(self, time: float) -> bool:
        """Whether it emits at ``time``."""
        return self.begin <= time and (self.end is None or time < self.end)


class SphereSource(_Source):
    """A ball; in 2D a disk."""

    shape: Literal["sphere"] = "sphere"
    center: Vector = _quantity(..., "m", "middle of the ball", slider=(0, 1), of_box=True)
    radius: float = _quantity(..., "m", "radius of the ball", slider=(0.01, 0.3), of_box=True, ge=1e-4, le=1e6)

    def geometry(self) -> tuple[Sequence[float], Sequence[float], float]:
        """Points ``a``, ``b`` and radius, as ``operators.shapes`` has them."""
        return self.center, self.center, self.radius


class CapsuleSource(_Source):
    """All points within ``radius`` of the line between two ends."""

    shape: Literal["capsule"] = "capsule"
    ends: Annotated[tuple[Vector, Vector], Field(strict=False)] = _quantity(
        ..., "m", "both ends of the line", slider=(0, 1), of_box=True
    )
    radius: float = _quantity(
        ..., "m", "distance from the line that is covered", slider=(0.01, 0.3), of_box=True, ge=1e-4, le=1e6
    )

    def geometry(self) -> tuple[Sequence[float], Sequence[float], float]:
        """Points ``a``, ``b`` and radius, as ``operators.shapes`` has them."""
        return self.ends[0], self.ends[1], self.radius


class BoxSource(_Source):
    """A box parallel to the axes."""

    shape: Literal["box"] = "box"
    center: Vector = _quantity(..., "m", "middle of the box", slider=(0, 1), of_box=True)
    size: Edges = _quantity(..., "m", "edge lengths of the box", slider=(0.01, 1), of_box=True)

    def geometry(self) -> tuple[Sequence[float], Sequence[float], float]:
        """Points ``a``, ``b`` and radius, as ``operators.shapes`` has them."""
        return self.center, tuple(0.5 * edge for edge in self.size), 0.0


SOURCES = {"sphere": SphereSource, "capsule": CapsuleSource, "box": BoxSource}
Source = Annotated[Union[SphereSource, CapsuleSource, BoxSource], Field(discriminator="shape")]  # noqa: UP007


class _Solid(_Config):
    velocity: Vector | None = Field(None, description="steady motion, m/s")
    swing: Vector | None = Field(None, description="amplitude of a swing to and fro along each axis, m")
    swing_period: float = _quantity(1.0, "s", "duration of a whole swing", ge=1e-3, le=1e6)
    angular_velocity: Annotated[tuple[Turn, Turn, Turn], Field(strict=False)] | Turn = Field(
        0.0, description="rad/s: one number in 2D, a vector in 3D"
    )
    pivot: Vector | None = Field(None, description="what it turns about at time 0, m; left out, its middle")
    slip: bool = Field(False, description="whether the fluid slides along it without friction")
    begin: float = _quantity(0.0, "s", "time at which it appears", slider=(0, 10), ge=0, le=1e6)
    end: float | None = _quantity(None, "s", "time at which it is gone; left out, never", slider=(0, 20), ge=0, le=1e6)
    colour: Colour = Field((0.42, 0.42, 0.45), description="colour of its surface")

    @property
    def spin(self) -> tuple[float, ...]:
        """Angular velocity as a tuple of one or three numbers."""
        return self.angular_velocity if isinstance(self.angular_velocity, tuple) else (self.angular_velocity,)


class SphereSolid(_Solid):
    """A ball; in 2D a disk."""

    shape: Literal["sphere"] = "sphere"
    center: Vector = Field(description="middle of the ball, m")
    radius: float = _quantity(..., "m", "radius of the ball", slider=(0.01, 0.3), of_box=True, ge=1e-4, le=1e6)

    def geometry(self) -> tuple[Sequence[float], Sequence[float], float]:
        """Points ``a``, ``b`` and radius, as ``operators.shapes`` has them."""
        return self.center, (), self.radius

    @property
    def middle(self) -> Sequence[float]:
        """Its middle at time 0."""
        return self.center


class BoxSolid(_Solid):
    """A box, parallel to the axes at time 0."""

    shape: Literal["box"] = "box"
    center: Vector = Field(description="middle of the box, m")
    size: Edges = Field(description="edge lengths of the box, m")
    rounding: float = _quantity(0.0, "m", "radius of its edges", ge=0, le=1e6)

    def geometry(self) -> tuple[Sequence[float], Sequence[float], float]:
        """Points ``a``, ``b`` and radius, as ``operators.shapes`` has them."""
        return self.center, tuple(0.5 * edge for edge in self.size), self.rounding

    @property
    def middle(self) -> Sequence[float]:
        """Its middle at time 0."""
        return self.center


class _LongSolid(_Solid):
    ends: Annotated[tuple[Vector, Vector], Field(strict=False)] = Field(description="both ends of its axis, m")
    radius: float = _quantity(
        ..., "m", "distance of its surface from the axis", slider=(0.01, 0.3), of_box=True, ge=1e-4, le=1e6
    )

    def geometry(self) -> tuple[Sequence[float], Sequence[float], float]:
        """Points ``a``, ``b`` and radius, as ``operators.shapes`` has them."""
        return self.ends[0], self.ends[1], self.radius

    @property
    def middle(self) -> Sequence[float]:
        """Its middle at time 0."""
        return tuple(0.5 * (one + two) for one, two in zip(*self.ends, strict=True))


class CapsuleSolid(_LongSolid):
    """All points within ``radius`` of the line between two ends."""

    shape: Literal["capsule"] = "capsule"


class CylinderSolid(_LongSolid):
    """A cylinder with flat ends; in 2D a rectangle of width 2 · ``radius``."""

    shape: Literal["cylinder"] = "cylinder"


class MeshSolid(_Solid):
    """A triangle mesh from a file (OBJ, STL, PLY); in 3D only, and with the package's extra ``mesh``."""

    shape: Literal["mesh"] = "mesh"
    file: str = Field(description="path of the file; in a scene file relative to it", min_length=1)
    center: Vector = Field(description="where the middle of its bounding box is at time 0, m")
    size: float = _quantity(..., "m", "longest edge of its bounding box", ge=1e-4, le=1e6)
    points: int = Field(64, ge=4, le=512, description="lattice points along that edge")

    def geometry(self) -> tuple[Sequence[float], Sequence[float], float]:
        """Its middle, and nothing else that the other shapes have."""
        return self.center, (), 0.0

    @property
    def middle(self) -> Sequence[float]:
        """Its middle at time 0."""
        return self.center


SOLIDS = {
    "sphere": SphereSolid,
    "capsule": CapsuleSolid,
    "cylinder": CylinderSolid,
    "box": BoxSolid,
    "mesh": MeshSolid,
}
AnySolid = Annotated[
    Union[SphereSolid, CapsuleSolid, CylinderSolid, BoxSolid, MeshSolid],  # noqa: UP007
    Field(discriminator="shape"),
]


class Picture(_Config):
    """Text, or an image from a file, that lies in the fluid at time 0; in 2D only. See ``pictures``."""

    text: str | None = Field(None, description="what is written, of one or more lines; with the package's extra text")
    file: str | None = Field(
        None, description="path of a PNG or JPEG image in place of text; in a scene file relative to it"
    )
    center: Vector = _quantity(..., "m", "middle of the picture", slider=(0, 1), of_box=True)
    width: float = _quantity(..., "m", "its width; its height follows", slider=(0.05, 1), of_box=True, ge=1e-4, le=1e6)
    quantity: Literal["dye", "smoke", "temperature"] = Field("dye", description="what it is painted in")
    colour: Colour = Field((1.0, 1.0, 1.0), description="colour of the dye: of text, and a tint of an image")
    amount: float = _quantity(
        1.0, "1 or K", "what lies where it is full: of dye, smoke or temperature", slider=(0, 10), ge=0, le=1e6
    )

    @property
    def pixels(self) -> np.ndarray:
        """Its pixels, as ``pictures`` has them."""
        return read_picture(self.file) if self.file is not None else text_picture(self.text or "")

    @model_validator(mode="after")
    def _check(self):
        if (self.text is None) == (self.file is None):
            given = f"text is {self.text!r} and file is {self.file!r}"
            raise ValueError(f"{given}; a picture has one of the two")
        with contextlib.suppress(PillowMissing):  # asked for when the scene is run
            _ = self.pixels  # says why there are none
        return self


class Solver(_Config):
    """How the equations are solved."""

    pressure: Literal["auto", "spectral", "multigrid-cg", "multigrid", "cg", "gauss-seidel", "jacobi"] = Field(
        "auto",
        description="solver of the pressure; auto is spectral, by transforms on a CPU, where it can be, and else multigrid-cg",
    )
    faces: Literal["fractions", "voxels"] = Field("fractions", description="faces beside solids: open in part, or not")
    tolerance: float = _quantity(1e-4, "1", "relative residual of the pressure, L2", slider=(1e-6, 1e-2), gt=0, lt=1)
    max_iterations: int = _quantity(
        200, "1", "iterations after which the solver gives up", slider=(1, 500), ge=1, le=100_000
    )
    sweeps: int | None = _quantity(
        None, "1", "sweeps of red-black Gauss-Seidel for pressure and diffusion, in place of solver and tolerance; left out, solve",
        slider=(1, 100), start=20, ge=1, le=100_000,
    )  # fmt: skip
    advection: Literal["maccormack", "semi-lagrangian"] = Field("maccormack", description="advection scheme")
    trace: Literal["euler", "rk2", "rk3"] = Field("rk2", description="how paths are followed")
    dt: float | None = _quantity(
        None, "s", "fixed time step; left out, from the CFL number", slider=(1e-3, 0.05), start=0.01, ge=1e-7, le=10
    )
    cfl: float = _quantity(
        1.5, "1", "cells that the fastest fluid may cross in a step", slider=(0.2, 5), ge=0.01, le=100
    )
    max_dt: float = _quantity(1 / 24, "s", "longest time step", slider=(1e-3, 0.1), ge=1e-7, le=10)


class Look(_Config):
    """What the picture looks like."""

    view: Literal["volume", "slice", "sheets", "arrows", "tracers"] = Field(
        "volume",
        description="lit smoke, a colour-mapped plane, smoke as a stack of sheets, arrows of the velocity on a plane, "
        "or points that drift with the flow",
    )
    extinction: float = _quantity(40.0, "1/m", "opacity of one unit of smoke", slider=(0, 100), ge=0, le=1e5)
    incandescence: float = _quantity(
        0.0, "1/m", "opacity of gas that is hot enough to glow", slider=(0, 100), ge=0, le=1e5
    )
    albedo: Colour = Field((0.92, 0.92, 0.95), description="colour of smoke")
    light: Colour = Field((1.0, 0.96, 0.9), description="colour of the light")
    light_strength: float = _quantity(2.6, "1", "brightness of the light", slider=(0, 6), ge=0, le=100)
    light_direction: Vector | None = _quantity(None, "1", "towards the light", slider=(-1, 1), start=(0.55, 0.75, 0.35))
    ambient: Colour = Field((0.22, 0.28, 0.4), description="light from everywhere")
    exposure: float = _quantity(1.0, "1", "brightness of the picture", slider=(0.1, 4), gt=0, le=100)
    background_top: Colour = Field((0.03, 0.04, 0.07), description="background, upper edge")
    background_bottom: Colour = Field((0.12, 0.13, 0.16), description="background, lower edge")
    quantity: Literal["smoke", "temperature", "dye", "fuel", "speed", "pressure", "divergence", "vorticity"] = Field(
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
    position: float = _quantity(0.5, "1", "place of a slice along its axis", ge=0, le=1)
    limits: Annotated[tuple[Limit, Limit], Field(strict=False)] | None = Field(
        None, description="values at the ends of the colour map; left out, those in the slice"
    )
    sheets: int = Field(24, ge=1, le=1024, description="planes in a stack of sheets")
    arrows: int = Field(32, ge=1, le=1024, description="arrows along the longest edge of the plane")
    arrow_speed: float | None = _quantity(
        None, "m/s", "speed of the longest arrow; left out, the fastest in the plane", slider=(0.01, 10), gt=0, le=1e6
    )
    tracers: int = Field(20_000, ge=1, le=1_000_000, description="points that drift with the flow")
    tracer_life: float = _quantity(3.0, "s", "how long such a point lives", slider=(0.1, 10), gt=1e-3, le=1e6)


class Camera(_Config):
    """An orbit camera around the middle of the box."""

    azimuth: float = _quantity(25.0, "degrees", "turn around the vertical axis", slider=(-180, 180), ge=-3600, le=3600)
    elevation: float = _quantity(8.0, "degrees", "height above the horizon", slider=(-89, 89), ge=-89, le=89)
    distance: float = _quantity(2.6, "longest edges", "from the middle of the box", slider=(0.3, 6), gt=0.1, le=100)
    field_of_view: float = _quantity(28.0, "degrees", "vertical", slider=(10, 90), gt=1, lt=150)
    center: Vector | None = _quantity(
        None, "m", "what it looks at; left out, the middle of the box", slider=(0, 1), of_box=True
    )


class Live(_Config):
    """How a window runs the scene, and what the pointer does in it."""

    pace: float = _quantity(1.0, "1", "seconds of the scene in a second, at most", slider=(0.05, 4), ge=0.01, le=100)
    radius: float = _quantity(0.06, "longest edges", "reach of the pointer", slider=(0.01, 0.25), gt=0, le=1)
    push: float = _quantity(1.0, "1", "velocity that a drag gives, of the pointer's own", slider=(0, 4), ge=0, le=100)
    paint: float = _quantity(1.0, "1", "smoke or dye that a drag leaves", slider=(0, 10), ge=0, le=1e4)
    heat: float = _quantity(0.0, "K", "temperature that a drag leaves", slider=(0, 500), ge=0, le=1e6)
    fuel: float = _quantity(0.0, "1", "fuel that a drag leaves", slider=(0, 10), ge=0, le=1e4)
    colour: Colour = Field((1.0, 0.35, 0.05), description="colour of the dye that a drag leaves")
    add: bool = Field(
        False, description="whether a drag adds, 60 times a second, what it otherwise sets, so that it piles up"
    )


class Output(_Config):
    """What a recording is made of."""

    frames: int = Field(96, ge=1, le=100_000, description="pictures to record")
    fps: float = _quantity(24.0, "1/s", "pictures in a second of simulated time", ge=0.1, le=1000)
    width: int = Field(480, ge=16, le=8192, description="pixels")
    height: int = Field(480, ge=16, le=8192, description="pixels")


class Scene(_Config):
    """Everything a run needs.

    Raises:
        SceneError: from ``load``, ``loads`` and ``with_values``, for anything that cannot be.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="also the name of the files it records")
    description: str = ""
    domain: Domain = Domain()
    fluid: Fluid = Fluid()
    combustion: Combustion = Combustion()
    sources: Annotated[tuple[Source, ...], Field(strict=False)] = ()
    solids: Annotated[tuple[AnySolid, ...], Field(strict=False)] = ()
    pictures: Annotated[tuple[Picture, ...], Field(strict=False)] = ()
    solver: Solver = Solver()
    look: Look = Look()
    camera: Camera = Camera()
    live: Live = Live()
    output: Output = Output()

    @property
    def dim(self) -> int:
        """2 or 3."""
        return len(self.domain.size)

    @property
    def gravity(self) -> tuple[float, ...]:
        """Gravity in m/s², as given or 9.81 down the second axis."""
        return self.fluid.gravity or (0.0, -9.81, 0.0)[: self.dim]

    @property
    def carried(self) -> dict[str, int]:
        """Names of the quantities that the flow carries, with their components."""
        entering = {name for pair in self.domain.sides for side in pair for name in side.values}
        entering |= {picture.quantity for picture in self.pictures}
        carried, burns = {}, self.combustion.burn_rate > 0
        if any(source.temperature for source in self.sources) or "temperature" in entering or burns:
            carried["temperature"] = 1
        if any(source.fuel for source in self.sources) or "fuel" in entering or burns:
            carried["fuel"] = 1
        if any(any(source.dye) for source in self.sources) or "dye" in entering:
            carried["dye"] = 3
        soot = burns and self.combustion.soot > 0
        if any(source.smoke for source in self.sources) or "smoke" in entering or soot or not (self.sources or carried):
            carried = {"smoke": 1, **carried}
        return carried

    @property
    def expands(self) -> bool:
        """Whether anything prescribes a divergence: fuel that expands as it burns, or a source's blast."""
        burns = self.combustion.burn_rate > 0 and self.combustion.expansion > 0
        return burns or any(source.blast for source in self.sources)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences about what can be, but is most often not meant."""
        remarks = []
        fuel = [f"sources[{i}].fuel" for i, source in enumerate(self.sources) if source.fuel]
        if fuel and not self.combustion.burn_rate:
            remarks.append(f"{fuel[0]} brings in fuel and combustion.burn_rate is 0: nothing burns.")
        for i, source in enumerate(self.sources):
            if source.end is not None and source.end <= source.begin:
                remarks.append(
                    f"sources[{i}] ends at {source.end:g} s and begins at {source.begin:g} s: it never acts."
                )
        return tuple(remarks)

    @property
    def quantities(self) -> tuple[str, ...]:
        """What ``look.quantity`` may be: all but what nothing brings into this scene."""
        every = get_args(Look.model_fields["quantity"].annotation)
        return tuple(name for name in every if name in self.carried or name not in CARRIED)

    @model_validator(mode="after")
    def _check(self):
        if self.solids and self.domain.grid == "collocated":
            raise ValueError("domain.grid is 'collocated', which holds no solids: they need the 'staggered' grid")
        if self.solids and self.look.compare:
            raise ValueError("look.compare is true, which shows the collocated grid too, and that holds no solids")
        quantity = self.look.quantity
        if self.look.view in ("slice", "arrows") and quantity not in self.quantities:
            raise ValueError(f"look.quantity is {quantity!r}, which nothing brings into this scene")
        vectors: dict[str, Any] = {
            "fluid.gravity": self.fluid.gravity,
            "fluid.body_force": self.fluid.body_force,
            "look.light_direction": self.look.light_direction,
            "camera.center": self.camera.center,
        }
        light = self.look.light_direction
        if light is not None and not 1e-6 <= math.hypot(*light) <= 1e6:
            raise ValueError(f"look.light_direction is {list(light)}; its length must be from 1e-6 to 1e6")
        for i, source in enumerate(self.sources):
            a, b, _ = source.geometry()
            vectors |= {f"sources[{i}].velocity": source.velocity, f"sources[{i}] (its place)": a}
            vectors |= {f"sources[{i}] (its extent)": b}
        for i, solid in enumerate(self.solids):
            a, b, _ = solid.geometry()
            vectors |= {f"solids[{i}].{name}": getattr(solid, name) for name in ("velocity", "swing", "pivot")}
            vectors |= {f"solids[{i}] (its place)": a, f"solids[{i}] (its extent)": b or None}
            if any(solid.spin) and len(solid.spin) != (1 if self.dim == 2 else 3):
                wanted = "one number in a 2D box" if self.dim == 2 else "three numbers in a 3D box"
                raise ValueError(f"solids[{i}].angular_velocity is {solid.angular_velocity}; it is {wanted}")
            if isinstance(solid, MeshSolid):
                if self.dim != 3:
                    raise ValueError(f"solids[{i}].shape is 'mesh'; a box of {self.dim} axes has no meshes")
                if not _is_file(solid.file):
                    raise ValueError(f"solids[{i}].file is {solid.file!r}; there is no such file")
            if isinstance(solid, BoxSolid) and 2 * solid.rounding > min(solid.size):
                raise ValueError(
                    f"solids[{i}].rounding is {solid.rounding:g} m; it is at most half of the shortest edge, "
                    f"{0.5 * min(solid.size):g} m"
                )
            if solid.end is not None and solid.end <= solid.begin:
                raise ValueError(f"solids[{i}].end is {solid.end:g} s; it must be after begin, {solid.begin:g} s")
        for i, picture in enumerate(self.pictures):
            if self.dim != 2:
                raise ValueError(f"pictures[{i}] is in a box of {self.dim} axes; only a box of 2 axes has pictures")
            vectors[f"pictures[{i}].center"] = picture.center
        self._check_expansion()
        for where, vector in vectors.items():
            if vector is not None and len(vector) != self.dim:
                raise ValueError(f"{where} has {len(vector)} coordinates; the box has {self.dim} axes")
        for i, source in enumerate(self.sources):
            a, b, radius = source.geometry()
            points, reach = ([a], b) if source.shape == "box" else ([a, b], (radius,) * self.dim)
            for axis, edge in enumerate(self.domain.size):
                low = min(p[axis] for p in points) - reach[axis]
                high = max(p[axis] for p in points) + reach[axis]
                if high <= 0 or low >= edge:
                    raise ValueError(
                        f"sources[{i}] reaches from {low:g} to {high:g} m along axis {axis}; it must touch the box, "
                        f"which reaches from 0 to {edge:g} m"
                    )
        for i, picture in enumerate(self.pictures):
            try:
                shape, edges = picture.pixels.shape, self.domain.size
            except PillowMissing:  # how high it is shows when it is drawn
                shape, edges = (1, 1), self.domain.size[:1]
            require_touch(*picture_bounds(shape, picture.center, picture.width), edges, f"pictures[{i}]")
        return self

    def _check_expansion(self) -> None:
        """What expands must have somewhere to go."""
        if self.domain.has_open:
            return
        growing = {"combustion.expansion": self.combustion.expansion}
        growing |= {f"sources[{i}].blast": source.blast for i, source in enumerate(self.sources)}
        for where, amount in growing.items():
            if amount:
                raise ValueError(f"{where} is {amount:g}; without an open side of the box it must be 0")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Scene":
        """Build a scene from nested values; SceneError names what is wrong."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise SceneError(_sentence(error, values)) from None

    @classmethod
    def loads(cls, text: str, where: str = "the scene", folder: str | Path = ".") -> "Scene":
        """Build a scene from TOML text; files that it names are looked for in ``folder``."""
        try:
            values = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise SceneError(f"{where} is not valid TOML: {str(error).splitlines()[0]}.") from None
        for tables in (values.get("solids"), values.get("pictures")):
            for table in tables if isinstance(tables, list) else []:
                if isinstance(table, dict) and isinstance(table.get("file"), str):
                    table["file"] = str(Path(folder) / table["file"])
        return cls.from_dict(values)

    @classmethod
    def load(cls, path: str | Path) -> "Scene":
        """Build a scene from a TOML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise SceneError(f"there is no scene file {str(path)!r}.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise SceneError(f"the scene file {str(path)!r} cannot be read: {error}.") from None
        return cls.loads(text, where=repr(str(path)), folder=Path(path).parent)

    def dumps(self) -> str:
        """The whole scene as TOML; ``Scene.loads`` gives the same scene back."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    def with_values(self, changes: Mapping[str, Any]) -> "Scene":
        """A copy with values changed by dotted key, such as ``{"fluid.viscosity": 1e-4, "sources.0.smoke": 2.0}``."""
        values = self.model_dump(mode="json", exclude_none=True)
        for key, value in changes.items():
            node: Any = values
            *parents, leaf = key.split(".")
            for depth, part in enumerate(parents):
                if isinstance(node, list):
                    node = node[_index(node, part, key)]
                elif isinstance(node, dict) and part in node:
                    node = node[part]
                else:
                    raise SceneError(_unknown(parents[:depth], part, values, key))
            if isinstance(node, list):
                node[_index(node, leaf, key)] = value
            elif isinstance(node, dict):
                node[leaf] = value
            else:
                raise SceneError(f"unknown key {key!r}: {'.'.join(parents)} is a value and has no keys.")
        return type(self).from_dict(values)


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False


def _index(node: list, part: str, key: str) -> int:
    if part.isascii() and part.isdecimal() and len(part) < 10 and int(part) < len(node):
        return int(part)
    raise SceneError(f"unknown key {key!r}: {part!r} is no place in a list of {len(node)} (the first is 0).")


def _keys(parents: Sequence[int | str], values: Mapping[str, Any]) -> list[str]:
    """Keys allowed in the table that ``parents`` lead to."""
    if not parents:
        return list(Scene.model_fields)
    models = {"sources": SOURCES, "solids": SOLIDS}.get(str(parents[0]))
    if models is not None:
        if len(parents) != 2:
            return []
        shape = values[str(parents[0])][int(parents[1])].get("shape")
        return list(models.get(shape, models["sphere"]).model_fields)
    if parents[0] == "pictures":
        return list(Picture.model_fields) if len(parents) == 2 else []
    if parents[:2] == ["domain", "boundaries"]:
        return list(SideOfBox.model_fields) if len(parents) == 4 else []
    model = Scene.model_fields[str(parents[0])].annotation if len(parents) == 1 else None
    return list(getattr(model, "model_fields", {}))


def _unknown(parents: Sequence[int | str], leaf: int | str, values: Mapping[str, Any], key: str) -> str:
    keys = _keys(parents, values)
    parent = ".".join(map(str, parents)) or "a scene"
    near = difflib.get_close_matches(str(leaf), keys, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown key {key!r}: {hint}" + (
        f"The keys of {parent} are {', '.join(keys)}." if keys else f"{parent} has no keys."
    )


def _path(location: Sequence[int | str], values: Any) -> list[int | str]:
    """``location`` without what pydantic adds to it: the names of alternatives that it tried."""
    path, node = [], values
    for i, part in enumerate(location):
        if i == 2 and location[0] in ("sources", "solids"):
            continue
        inside = (
            part in node if isinstance(node, Mapping) else isinstance(node, (list, tuple)) and part in range(len(node))
        )
        if inside:
            node = node[part]
        elif not isinstance(node, Mapping) or i + 1 < len(location):
            continue
        path.append(part)
    return path


def _sentence(error: ValidationError, values: Mapping[str, Any]) -> str:
    """The first problem as one sentence that names the key, its value and what is allowed."""
    problems = error.errors(include_url=False)
    # A side is a kind or a table; of a table that fails, what is wrong inside it says more.
    in_table = (p for p in problems if SideOfBox.__name__ in p["loc"][:-1])
    problem = next(in_table, problems[0])
    path, value, kind = _path(problem["loc"], values), problem["input"], problem["type"]
    where = ".".join(map(str, path))
    shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."
    if kind == "extra_forbidden":
        return _unknown(path[:-1], path[-1], values, where)
    if kind == "missing" and (path[:2] != ["domain", "boundaries"] or isinstance(path[-1], str)):
        return f"{where} is missing: it has no default."
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        *shapes, last = map(repr, SOLIDS if path[0] == "solids" else SOURCES)
        given = f"is {value.get('shape')!r}" if kind == "union_tag_invalid" else "is missing"
        return f"{where}.shape {given}: it should be {', '.join(shapes)} or {last}."
    if kind == "value_error":
        prefix = f"{where}: " if where else ""
        return f"{prefix}{problem.get('ctx', {}).get('error', problem['msg'])}."
    if path[:2] == ["domain", "boundaries"] and (len(path) < 5 or path[4] == "kind"):
        return (
            f"{where} is {shown}: boundaries are one kind for all sides or a pair (lower, upper) per axis, each a kind "
            f"or a table with kind, velocity, smoke, temperature, dye and fuel; kinds are {', '.join(get_args(SideKind))}."
        )
    allowed = problem["msg"].replace("Input should be", "it should be", 1)
    return f"{where} is {shown}: {allowed[0].lower() + allowed[1:]}."


def preset_names() -> list[str]:
    """Names of the scenes inside the package."""
    folder = resources.files("taichi_fluid") / "scenes"
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))


def preset(name: str) -> Scene:
    """A scene from inside the package.

    Raises:
        SceneError: if there is none of that name.
    """
    if name not in preset_names():
        near = difflib.get_close_matches(name, preset_names(), n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SceneError(f"unknown scene {name!r}: {hint}The scenes are {', '.join(preset_names())}.")
    return Scene.loads((resources.files("taichi_fluid") / "scenes" / f"{name}.toml").read_text(encoding="utf-8"))


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


def bytes_needed(scene: Scene) -> int:
    """Device memory that the scene takes, simulated on one grid or on both, in bytes; an estimate from above."""
    padded = math.prod(n + 2 for n in scene.domain.shape)
    dim = scene.dim
    words = 2 * dim + 2 * sum(scene.carried.values())  # velocity and what it carries, twice
    words += dim + 3 + (dim if scene.domain.grid == "collocated" else 0)  # room to work in
    words += 1 + 1 + 3 + (6 if dim == 3 else 8) / 2  # pressure, its residual, finest and coarser levels
    if scene.expands or scene.combustion.burn_rate:
        words += 2  # the prescribed divergence, and what is left beside it
    if scene.solids:
        words += 3 + dim + dim * 1.34 + 2  # distance, owner, fluid, open faces, those of all levels, pockets
    if scene.fluid.viscosity or scene.fluid.smoke_diffusion or scene.fluid.heat_diffusion:
        words += 2 + 4 + 3 + 4  # the same again for diffusion
    words += 4 + 1  # the picture's optical volume and light
    if scene.look.view in ("slice", "arrows", "tracers"):
        words += 1 + dim  # the quantity and the velocity that are shown
    if scene.look.view == "tracers":
        words += 8 * scene.look.tracers / padded
    picture = 3 * scene.output.width * scene.output.height
    grids = 2 if scene.look.compare else 1
    # The picture, and with two grids its halves; the rest: partial sums, scalars of the solvers.
    return grids * (int(4 * (words * padded + picture)) + 2**20)
