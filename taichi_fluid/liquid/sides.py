"""What the sides of a box are to a liquid: which stop it, which let it out, and which are one with the other side of their axis."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._ti import ti
from ..boundaries.patches import places_on_side, shares_of
from ..boundaries.sides import Boundary, Side
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import array_of, float_vector, int_vector
from ..operators.ghosts import ghost_kernels
from ..operators.shapes import extent_of

OPEN, CLOSED, IN_PART, WRAPS = range(4)
"""What sides are: ways out all over, nowhere, or in part; or periodic."""

NEAR = 2.0
"""Cells from a shape within which it says how far its surface is, and how fast faces are."""

Body = tuple[str, Sequence[float], Sequence[float], float]
"""A shape of ``operators.shapes``, its two places, m, and its radius, m."""


class Seams:
    """The periodic axes of a box, as kernels take them.

    Attributes:
        any: Whether there are any.
        wrap: Per axis, 1 if it is periodic.
        period: Cells per axis until the box begins again, 0 where it does not.

    Args:
        grid: The grid.
        walls: Its sides; left out, no axis is periodic.
    """

    def __init__(self, grid: Grid, walls: Walls | None = None):
        self.grid, self.any = grid, walls is not None and any(walls.periodic)
        nothing = (0,) * grid.dim
        self.wrap = int_vector(grid.dim)(*nothing) if walls is None else walls.wrap
        self.period = float_vector(grid.dim)(*nothing) if walls is None else walls.periods

    def images(self, shape: str, a: Sequence[float], b: Sequence[float], radius: float) -> Iterator[Body]:
        """A shape of ``operators.shapes``, in metres, brought back into the box along periodic axes, and those of its copies that reach into it.

        Or near it.
        """
        low, high = extent_of(shape, np.array(a), np.array(b), radius)
        least, near = np.array(self.grid.origin), NEAR * self.grid.dx
        back = -np.floor((0.5 * (low + high) - least) / self.grid.size) * self.grid.size * np.array(self.wrap)
        steps = [(-1, 0, 1) if wraps else (0,) for wraps in self.wrap]
        for step in itertools.product(*steps):
            away = np.array(step) * self.grid.size + back
            touches = (high + away > least - near) & (low + away < least + self.grid.size + near)
            if not any(step) or touches.all():
                other = list(b) if shape in ("box", "sphere") else np.add(b, away).tolist()
                yield shape, np.add(a, away).tolist(), other, radius

    def mirror(self, a) -> None:
        """Set the ghosts of an array over the grid: as in mirrors, or wrapped."""
        ghost_kernels(self.grid.loops).mirror_ghosts(a, self.grid.n, self.wrap)

    def close(self, a, components: int = 1) -> None:
        """Let an array of some components be the same on both sides of each seam: as it is on the lower one."""
        if self.any:
            for k in range(components):
                ghost_kernels(self.grid.loops).wrap_ghosts(a, self.grid.n, k * self.grid.cells, self.wrap)

    def fold(self, a, components: int = 1) -> None:
        """Add what ghosts beyond seams hold to what they are images of, and ``close``."""
        if self.any:
            for k in range(components):
                ghost_kernels(self.grid.loops).fold_ghosts(a, self.grid.n, k * self.grid.cells, self.wrap)


def _flags(walls: Walls, of) -> object:
    """A whole number for each side, axis by axis."""
    sides = [side for pair in walls.sides for side in pair]
    return int_vector(len(sides))(*map(int, map(of, sides)))


def ways_out(walls: Walls):
    """Of each side, axis by axis, whether there is a way out."""

    def way_out(side: Side) -> int:
        if side.kind.wraps:
            return WRAPS
        return CLOSED if not side.is_open else OPEN if side.is_all_open else IN_PART

    return _flags(walls, way_out)


def closed_all_over(walls: Walls):
    """``CLOSED`` for each side through which nothing passes anywhere, axis by axis, ``WRAPS`` for periodic ones, else ``OPEN``."""

    def closed(side: Side) -> int:
        return WRAPS if side.kind.wraps else CLOSED if side.kind.is_closed and not side.parts else OPEN

    return _flags(walls, closed)


def exits_of(walls: Walls) -> tuple:
    """Where particles leave a box: 1 for each side that is open all over; and for each ghost beyond a part that is, of sides in parts."""
    grid, sides = walls.grid, [side for pair in walls.sides for side in pair]
    exits = np.zeros(grid.padded if walls.open_in_part else 1, np.int32)
    for i, side in enumerate(sides):
        if side.is_open and not side.is_all_open:
            axis, end = divmod(i, 2)
            places = places_on_side(grid.shape, grid.size, axis, end, -1)
            shares = shares_of(side, places, axis, grid.dx)
            here = [slice(1, -1)] * grid.dim
            here[axis] = slice(-1, None) if end else slice(0, 1)
            exits[tuple(here)] = sum(
                share * patch.kind.is_open for share, patch in zip(shares, side.patches, strict=True)
            )
    return _flags(walls, lambda side: side.is_all_open), array_of(exits, ti.i32)


def smooth_walls(walls: Walls) -> Walls:
    """Sides of a box as particles see them: friction is for ``Viscosity`` alone, which knows how far from a wall it reaches.

    Nor does an inflow hold what passes along it: what comes in has its own velocity, and what is there another.
    """

    def smooth(side: Side) -> Side:
        changed: dict[str, Any] = {"parts": tuple(replace(part, side=smooth(part.side)) for part in side.parts)}
        if side.kind.is_closed:
            changed |= {"kind": Boundary.FREE_SLIP, "velocity": (), "profiles": {}, "values": {}, "fluxes": {}}
        elif side.kind.through == "given":
            changed |= {"kind": replace(side.kind, slip_length=math.inf)}
        return replace(side, **changed)

    return Walls(walls.grid, [[smooth(side) for side in pair] for pair in walls.sides], fills=True)
