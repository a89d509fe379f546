"""Solids by the shapes that they are: pictures show their edges sharp, where distances on a grid round them by a cell.

A table names the shapes that are there and where they are now, all in cells of the grid. A flow knows its solids by the distances
at the corners of its cells, and so does a picture of solids with distances of their own, of meshes, and of very many.
"""

import numpy as np

from .._ti import argument, ti
from ..boundaries.solids import Placed
from ..grid import Grid
from ..operators.shapes import SHAPES

MOST_SHAPES = 32
"""Of more a ray that comes near one would ask each for longer than edges are worth."""
NEAR = 1.5
"""Distance in cells within which shapes are asked, and beyond which the grid's distance will do."""

_NAMES = tuple(SHAPES)
_FUNCTIONS = tuple(SHAPES.values())


def _row_length(dim: int) -> int:
    """Numbers of a shape: which it is, its pivot, its rotation, ``a``, ``b`` and the radius."""
    return 2 + 3 * dim + dim * dim


def table_length(dim: int) -> int:
    """Numbers of a table, which begins with how many shapes it has."""
    return 1 + MOST_SHAPES * _row_length(dim)


def table_of(placed: list[Placed], grid: Grid) -> np.ndarray:
    """The table of what is there; one of no shapes where distances on the grid must do."""
    table = np.zeros(table_length(grid.dim), np.float32)
    if len(placed) > MOST_SHAPES or not all(isinstance(each.solid.shape, str) for each in placed):
        return table
    table[0] = len(placed)
    for row, each in zip(table[1:].reshape(MOST_SHAPES, -1), placed, strict=False):
        pivot = (np.asarray(each.pose.pivot) - grid.origin) / grid.dx
        a, b, radius = (np.asarray(part) / grid.dx for part in (each.a, each.b, each.solid.radius))
        row[:] = _NAMES.index(each.solid.shape), *pivot, *np.ravel(each.pose.rotation), *a, *b, radius
    return table


@argument
class ExactShapes:
    """The shapes of a table, as points meet them."""

    table: object

    @ti.func
    def _distance_to(self, row, x):
        """Signed distance in cells from the place ``x``, in cells from the corner of the box, to the shape of a row."""
        table = ti.static(self.table)
        dim = ti.static(x.n)
        turned, a, b = x * ti.f32(0.0), x * ti.f32(0.0), x * ti.f32(0.0)
        for i in ti.static(range(dim)):
            a[i], b[i] = table[row + (1 + dim + dim * dim + i)], table[row + (1 + 2 * dim + dim * dim + i)]
            for j in ti.static(range(dim)):
                turned[i] += table[row + (1 + dim + j * dim + i)] * (x[j] - table[row + (1 + j)])
        which, radius, distance = ti.cast(table[row], ti.i32), table[row + (1 + 3 * dim + dim * dim)], ti.f32(0.0)
        for number in ti.static(range(len(_FUNCTIONS))):
            if which == number:
                distance = _FUNCTIONS[number](turned, a, b, radius)
        return distance

    @ti.func
    def count(self):
        """How many there are."""
        return ti.cast(self.table[0], ti.i32)

    @ti.func
    def depth_at(self, q, otherwise):
        """Signed distance in cells from a point ``q`` of index space; ``otherwise`` if the table has no shapes."""
        nearest = otherwise
        for k in range(self.count()):
            away = self._distance_to(1 + k * ti.static(_row_length(q.n)), q - ti.f32(0.5))
            nearest = away if k == 0 else ti.min(nearest, away)
        return nearest
