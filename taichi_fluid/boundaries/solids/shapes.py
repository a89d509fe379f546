"""What a solid is: a shape, how it moves, and when it is there."""

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...carried import require_values
from ...grid import Grid
from ...operators.shapes import SHAPES
from .motion import Pose


@dataclass(frozen=True, eq=False)
class SampledDistance:
    """A signed distance given by its values on a lattice, as ``mesh.sample_mesh`` makes one.

    Args:
        values: One number per lattice point, m; negative inside.
        origin: Of the first lattice point, relative to the pivot, m.
        spacing: Between lattice points, m.
    """

    values: np.ndarray
    origin: tuple[float, ...]
    spacing: float


_SHAPE = f"it is one of {', '.join(SHAPES)}, a ti.func or a SampledDistance"


@dataclass(frozen=True)
class Solid:
    """One solid.

    Args:
        shape: ``"sphere"``, ``"capsule"``, ``"cylinder"``, ``"box"``; a ``ti.func`` of one vector, the place in metres
            relative to the pivot before any rotation, that returns the signed distance in metres; or a
            ``SampledDistance``.
        a: Centre; of a capsule or cylinder one end of its axis. At time 0, m. Not read for distances of one's own.
        b: Half edges of a box, other end of a capsule or cylinder, m.
        radius: Of a sphere, capsule or cylinder; rounds the corners of a box. m.
        motion: Anything with ``at(time) -> Pose`` and ``moves``; left out, it stands still. It is asked once for each
            time, and once for time 0 when the flow is built, to which ``a`` and ``b`` belong from then on: it may say
            where a thing of one's own is just now.
        slip: Whether the fluid slides along it without friction.
        begin: Time at which it appears, s.
        end: Time at which it is gone, s.
        values: What it holds at its surface, of quantities by name: one number or one for each component.
        fluxes: What it gives the fluid each second through each m² of it (2D: m), in the quantity's unit times m/s.
    """

    shape: Any
    a: tuple[float, ...] = ()
    b: tuple[float, ...] = ()
    radius: float = 0.0
    motion: Any = None
    slip: bool = False
    begin: float = 0.0
    end: float = math.inf
    values: Mapping[str, float | Sequence[float]] = field(default_factory=dict)
    fluxes: Mapping[str, float | Sequence[float]] = field(default_factory=dict)

    def __post_init__(self):
        require_values("a solid", self.values)
        require_values("what a solid gives", self.fluxes)
        for name in self.values:
            if name in self.fluxes:
                raise ValueError(f"a solid has a value and a flux of {name}; it has one of them")
        for name in ("a", "b"):
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        self._require_shape()
        if not self.end > self.begin:
            raise ValueError(f"end is {self.end}; it must be later than begin, {self.begin} s")

    def _require_shape(self) -> None:
        """Raise ValueError for a shape that there is not, or nothing of which is there."""
        if isinstance(self.shape, SampledDistance):
            return
        if not isinstance(self.shape, str):
            if not getattr(self.shape, "_is_taichi_function", False):
                raise ValueError(f"shape is {self.shape!r}; {_SHAPE}")
            if (count := len(inspect.signature(self.shape).parameters)) != 1:
                raise ValueError(f"shape is a ti.func of {count} arguments; it takes one, the place, m")
            return
        if self.shape not in SHAPES:
            raise ValueError(f"shape is {self.shape!r}; {_SHAPE}")
        if self.shape != "sphere" and len(self.b) != len(self.a):
            raise ValueError(f"b is {self.b}; a {self.shape} needs {len(self.a)} coordinates there, as a has")
        if self.shape == "box" and not min(self.b, default=1.0) > 0:
            raise ValueError(f"b is {self.b}; half edges of a box must be more than 0 m")
        if not (self.radius > 0 or (self.shape == "box" and self.radius == 0)):
            least = "0 or more" if self.shape == "box" else "more than 0"
            raise ValueError(f"radius is {self.radius}; it must be a number of metres, {least}")

    def require(self, dim: int, name: str) -> None:
        """Raise ValueError if this solid does not fit a grid of ``dim`` axes; ``name`` is what to call it."""
        if isinstance(self.shape, str) and len(self.a) != dim:
            raise ValueError(f"{name}.a is {self.a}; it has {dim} coordinates on a grid of {dim} axes")
        if isinstance(self.shape, SampledDistance):
            shape = self.shape.values.shape
            if len(shape) != dim or min(shape) < 2:
                raise ValueError(f"{name}.shape has values of shape {shape}; it has {dim} axes of two points or more")

    def middle_from(self, pivot: Sequence[float]) -> np.ndarray:
        """Its middle at time 0, seen from its pivot, m; of a distance of one's own that is where it is thought to be."""
        if isinstance(self.shape, SampledDistance):
            return self.shape.origin + 0.5 * self.shape.spacing * (np.array(self.shape.values.shape) - 1.0)
        if not isinstance(self.shape, str):
            return np.zeros(len(pivot))
        middle = np.array(self.a)
        return (0.5 * (middle + self.b) if self.shape in ("capsule", "cylinder") else middle) - pivot

    def present(self, time: float) -> bool:
        """Whether it is there at ``time``."""
        return self.begin <= time < self.end


class Placed(NamedTuple):
    """A solid where it is.

    Attributes:
        solid: The solid.
        pose: Where its pivot is, one of its images, and how it is turned.
        a, b: As those of the solid, relative to the pivot before any rotation, m; 0 of shapes of one's own.
    """

    solid: Solid
    pose: Pose
    a: tuple[float, ...]
    b: tuple[float, ...]

    @property
    def thickness(self) -> float:
        """The least way through it, m; what of it lies beyond a side that it stands on counts. Infinite if its shape does not say."""
        width = 2 * self.solid.radius
        if self.solid.shape == "box":
            return 2 * min(self.b)
        if self.solid.shape == "cylinder":
            return min(width, math.dist(self.a, self.b))
        return width if isinstance(self.solid.shape, str) else math.inf


def beyond_sides(
    grid: Grid,
    shape: str,
    a: Sequence[float],
    b: Sequence[float],
    within: float,
    by: float,
    periodic: Sequence[bool] = (),
    stays: bool = True,
) -> tuple[list[float], list[float]]:
    """Points ``a`` and ``b`` of a named shape that is not turned, made longer ``by`` cells where it ends flat at a side of the grid.

    It does so if that end lies beyond the side or ``within`` so many cells of it, if the shape ``stays``; a ``periodic`` axis has no
    sides, but what is as long as that meets itself wherever it is. Neither has a surface there, on which a distance to it would be 0.
    """
    start, end = np.array(a, float), np.array(b, float)
    wraps = np.array(periodic, bool) if len(periodic) else np.zeros(grid.dim, bool)
    lowest, highest = np.add(grid.origin, within * grid.dx), np.add(grid.origin, grid.size) - within * grid.dx
    sided, whole = ~wraps & stays, highest - lowest
    if shape == "box":
        low, high = start - end, start + end
        meets = wraps & (high - low > whole)
        low = low - by * grid.dx * (meets | sided & (low < lowest))
        high = high + by * grid.dx * (meets | sided & (high > highest))
        start, end = 0.5 * (low + high), 0.5 * (high - low)
    elif shape == "cylinder":
        outwards = (end - start) / max(math.dist(a, b), 1e-20)
        meets = wraps & (np.abs(end - start) > whole)
        for place, out in ((start, -outwards), (end, outwards)):
            at_side = sided & ((place < lowest) & (out < -0.5) | (place > highest) & (out > 0.5))
            if (at_side | meets & (np.abs(out) > 0.5)).any():
                place += by * grid.dx * out
    return start.tolist(), end.tolist()
