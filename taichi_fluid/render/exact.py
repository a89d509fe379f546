"""Solids by the shapes that they are: pictures show their edges sharp, where distances on a grid round them by a cell.

A table names the shapes that are there and where they are now, all in cells of the grid. But for how far its faces are open a flow
knows its solids by the distances at the corners of its cells, and so does a picture of solids with distances of their own, of meshes,
and of very many.
"""

import numpy as np

from .._ti import argument, ti
from ..boundaries.solids import Placed, row_length, row_of, shape_at
from ..grid import Grid
from ..operators.shapes import SHAPES

MOST_SHAPES = 32
"""Of more a ray that comes near one would ask each for longer than edges are worth."""
NEAR = 1.5
"""Distance in cells within which shapes are asked, and beyond which the grid's distance will do."""

_NAMES = tuple(SHAPES)
_FUNCTIONS = tuple(SHAPES.values())


def table_length(dim: int) -> int:
    """Numbers of a table, which begins with how many shapes it has."""
    return 1 + MOST_SHAPES * row_length(dim)


def table_of(placed: list[Placed], grid: Grid) -> np.ndarray:
    """The table of what is there; one of no shapes where distances on the grid must do."""
    table = np.zeros(table_length(grid.dim), np.float32)
    if len(placed) > MOST_SHAPES or not all(isinstance(each.solid.shape, str) for each in placed):
        return table
    table[0] = len(placed)
    for row, each in zip(table[1:].reshape(MOST_SHAPES, -1), placed, strict=False):
        row[:] = row_of(_NAMES.index(each.solid.shape), each, grid.origin, grid.dx)
    return table


@argument
class ExactShapes:
    """The shapes of a table, as points meet them."""

    table: object

    @ti.func
    def count(self):
        """How many there are."""
        return ti.cast(self.table[0], ti.i32)

    @ti.func
    def depth_at(self, q, otherwise):
        """Signed distance in cells from a point ``q`` of index space; ``otherwise`` if the table has no shapes."""
        nearest = otherwise
        for k in range(self.count()):
            away = shape_at(self.table, 1 + k * ti.static(row_length(q.n)), q.n, _FUNCTIONS).distance_to(
                q - ti.f32(0.5)
            )
            nearest = away if k == 0 else ti.min(nearest, away)
        return nearest
