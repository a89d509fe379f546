"""What a scene has in its box: sources, solids and pictures. See ``fields``."""

import contextlib
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from ..carried import CARRIED
from .expressions import is_told, known_at
from .fields import Angle, Colour, Config, Edges, OneOf, Told, Turn, Vector, flux_field, number
from .pictures import PillowMissing, paintable, read_picture, text_picture
from .shapes import Ball, Block, Geometry, Long, moved

MOST_PIECES = 32
"""Of the way of a source in a step."""


def _parts(value: Any) -> tuple[Any, ...]:
    """The components of a value, which of one alone may stand without a list."""
    return value if isinstance(value, tuple) else (value,)


class _Source(Config):
    """What a source of any shape has; ``rows`` adds the rate of each quantity."""

    blast: float = number(
        0.0,
        "1/s",
        "divergence there: relative growth of volume each second; needs an open side",
        slider=(0, 50),
        ge=0,
        le=1e4,
    )
    velocity: Vector | None = number(
        None, "m/s", "velocity to which the fluid is set there", slider=(-3, 3), of_box=True
    )
    path: Told | None = Field(None, description="how far it has gone from there, m: numbers, or expressions in t")
    begin: float = number(0.0, "s", "time at which the source starts", slider=(0, 10), ge=0, le=1e6)
    end: float | None = number(
        None, "s", "time at which it stops; left out, never", slider=(0, 20), start=5.0, ge=0, le=1e6
    )
    sink: bool = Field(False, description="whether a liquid leaves there instead, as through a hole to the air")
    mottle: float = number(
        0.0, "1", "0 emits evenly, 1 in patches, which go by six of their sizes in a second", ge=0, le=1
    )
    mottle_size: float = number(0.1, "m", "size of a patch", slider=(0.01, 0.5), of_box=True, ge=1e-4, le=1e6)

    @property
    def rates(self) -> dict[str, tuple[float, ...]]:
        """What it brings in each second, by the quantity's name; nothing that is 0 throughout."""
        rates = {name: _parts(getattr(self, name, 0.0)) for name in CARRIED}
        return {name: rate for name, rate in rates.items() if any(rate)}

    @property
    def moves(self) -> bool:
        """Whether it goes along."""
        return is_told(self.path or ())

    def placed(self, time: float) -> Geometry:
        """Where its shape lies at a time, s.

        Raises:
            NotFinite: if its path is nowhere then.
        """
        geometry: Geometry = self.geometry()
        if self.path is None:
            return geometry
        return moved(self.shape, geometry, known_at(self.path, time, f"the path {list(self.path)} of a source"))

    def pieces(self, begin: float, end: float) -> int:
        """In how many pieces of its way it emits, so that these overlap: the way of each is at most a quarter of its width."""
        (first, b, radius), (last, _, _) = self.placed(begin), self.placed(end)
        reach = min(b) if self.shape == "box" else radius
        return min(max(math.ceil(2.0 * math.dist(first, last) / reach), 1), MOST_PIECES)

    def active(self, time: float) -> bool:
        """Whether it emits at ``time``."""
        return self.begin <= time and (self.end is None or time < self.end)

    def lasts(self, time: float, dt: float) -> float:
        """For how many seconds it emits in a step of ``dt`` seconds from ``time`` on."""
        end = time + dt if self.end is None else min(self.end, time + dt)
        return max(end - max(self.begin, time), 0.0)


class SphereSource(Ball, _Source):
    """A ball; in 2D a disk."""

    shape: Literal["sphere"] = "sphere"
    center: Vector = number(..., "m", "middle of the ball", slider=(0, 1), of_box=True)
    radius: float = number(..., "m", "radius of the ball", slider=(0.01, 0.3), of_box=True, ge=1e-4, le=1e6)


class _LongSource(Long, _Source):
    ends: Annotated[tuple[Vector, Vector], Field(strict=False)] = number(
        ..., "m", "both ends of its axis", slider=(0, 1), of_box=True
    )
    radius: float = number(
        ..., "m", "distance from the axis that is covered", slider=(0.01, 0.3), of_box=True, ge=1e-4, le=1e6
    )


class CapsuleSource(_LongSource):
    """All points within ``radius`` of the line between two ends."""

    shape: Literal["capsule"] = "capsule"


class CylinderSource(_LongSource):
    """A cylinder with flat ends; in 2D a rectangle of width 2 · ``radius``."""

    shape: Literal["cylinder"] = "cylinder"


class BoxSource(Block, _Source):
    """A box parallel to the axes."""

    shape: Literal["box"] = "box"
    center: Vector = number(..., "m", "middle of the box", slider=(0, 1), of_box=True)
    size: Edges = number(..., "m", "edge lengths of the box", slider=(0.01, 1), of_box=True)


SOURCES = {"sphere": SphereSource, "capsule": CapsuleSource, "cylinder": CylinderSource, "box": BoxSource}
Source = Annotated[SphereSource | CapsuleSource | CylinderSource | BoxSource, Field(discriminator="shape")]


class _Solid(Config):
    velocity: Vector | None = Field(None, description="steady motion, m/s")
    swing: Vector | None = Field(
        None,
        description="amplitude of a swing to and fro along each axis, m; at time 0 it is in its middle, at its fastest",
    )
    swing_period: float = number(1.0, "s", "duration of a whole swing", ge=1e-3, le=1e6)
    angular_velocity: Annotated[tuple[Turn, Turn, Turn], Field(strict=False)] | Turn = Field(
        0.0, description="rad/s: one number in 2D, a vector in 3D"
    )
    path: Told | None = Field(None, description="how far it has gone beside that, m: numbers, or expressions in t")
    turn: Annotated[tuple[Angle, Angle, Angle], Field(strict=False)] | Angle = Field(
        0.0,
        description="by how much it is turned beside that, rad, one in 2D, a vector along the axis in 3D: numbers, or expressions in t",
    )
    pivot: Vector | None = Field(None, description="what it turns about at time 0, m; left out, its middle")
    slip: bool = Field(
        False, description="whether the fluid slides along it, its speed along the surface the same at it and beside it"
    )
    begin: float = number(0.0, "s", "time at which it appears", slider=(0, 10), ge=0, le=1e6)
    end: float | None = number(
        None,
        "s",
        "time at which it is gone, a gas there as beside it, of a liquid air; left out, never",
        slider=(0, 20),
        ge=0,
        le=1e6,
    )
    colour: Colour = Field((0.42, 0.42, 0.45), description="colour of its surface")

    @property
    def values(self) -> dict[str, Any]:
        """What it holds at its surface, by the quantity's name."""
        values = {name: getattr(self, name, None) for name in CARRIED}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def fluxes(self) -> dict[str, Any]:
        """What it gives, by the quantity's name."""
        fluxes = {name: getattr(self, flux_field(name), None) for name in CARRIED}
        return {name: flux for name, flux in fluxes.items() if flux is not None}

    @property
    def spin(self) -> tuple[float, ...]:
        """Angular velocity as a tuple of one or three numbers."""
        return _parts(self.angular_velocity)

    @property
    def turned(self) -> tuple[float | str, ...]:
        """By how much it is turned besides, as a tuple of one or three."""
        return _parts(self.turn)


class SphereSolid(Ball, _Solid):
    """A ball; in 2D a disk."""

    shape: Literal["sphere"] = "sphere"
    center: Vector = Field(description="middle of the ball, m")
    radius: float = number(..., "m", "radius of the ball", slider=(0.01, 0.3), of_box=True, ge=1e-4, le=1e6)


class BoxSolid(Block, _Solid):
    """A box, parallel to the axes at time 0."""

    shape: Literal["box"] = "box"
    center: Vector = Field(description="middle of the box, m")
    size: Edges = Field(description="edge lengths of the box, m")
    rounding: float = number(0.0, "m", "radius of its edges", ge=0, le=1e6)

    def geometry(self) -> Geometry:
        """Its middle, its half edges and the radius of its edges."""
        return *super().geometry()[:2], self.rounding


class _LongSolid(Long, _Solid):
    ends: Annotated[tuple[Vector, Vector], Field(strict=False)] = Field(description="both ends of its axis, m")
    radius: float = number(
        ..., "m", "distance of its surface from the axis", slider=(0.01, 0.3), of_box=True, ge=1e-4, le=1e6
    )


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
    size: float | None = number(
        None, "m", "longest edge of its bounding box; left out, as the file has it", ge=1e-4, le=1e6
    )
    points: int = Field(64, ge=4, le=512, description="lattice points along that edge")

    def geometry(self) -> Geometry:
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
    SphereSolid | CapsuleSolid | CylinderSolid | BoxSolid | MeshSolid,
    Field(discriminator="shape"),
]


class Picture(Config):
    """Text, or an image from a file, that lies in the fluid at time 0; in 2D only. See ``pictures``."""

    text: str | None = Field(None, description="what is written, of one or more lines; with the package's extra text")
    file: str | None = Field(
        None, description="path of a PNG or JPEG image in place of text; in a scene file relative to it"
    )
    center: Vector = number(..., "m", "middle of the picture", slider=(0, 1), of_box=True)
    width: float = number(..., "m", "its width; its height follows", slider=(0.05, 1), of_box=True, ge=1e-4, le=1e6)
    quantity: Annotated[str, OneOf(paintable)] = Field("dye", description="what it is painted in")
    colour: Colour = Field((1.0, 1.0, 1.0), description="colour of the dye: of text, and a tint of an image")
    amount: float = number(
        1.0, "1 or K", "what lies where it is full, in the unit of what it is painted in", slider=(0, 10), ge=0, le=1e6
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
