"""Shapes in a table: which they are and where, all in one unit of length, for kernels that ask how far away they are."""

import functools
from collections.abc import Sequence

import numpy as np

from ..._ti import argument, local, subscript, ti, traced
from ...operators.shapes import SHAPES
from .shapes import Placed, SampledDistance


def row_length(dim: int) -> int:
    """Numbers of a shape: which it is, its pivot, its rotation, ``a``, ``b`` and the radius."""
    return 2 + 3 * dim + dim * dim


def row_of(which: int, placed: Placed, origin: Sequence[float], unit: float) -> list[float]:
    """The row of a shape, which is number ``which`` of those that a kernel knows, seen from ``origin``, in units of so many metres."""
    pivot = np.subtract(placed.pose.pivot, origin) / unit
    a, b, radius = (np.asarray(part) / unit for part in (placed.a, placed.b, placed.solid.radius))
    return [which, *pivot, *np.ravel(placed.pose.rotation), *a, *b, radius]


def function_of(shape):
    """The signed distance to a shape, a function of x, a, b and radius; None where it is values on a lattice."""
    if isinstance(shape, SampledDistance):
        return None
    return SHAPES[shape] if isinstance(shape, str) else _own(shape)


@functools.cache
def _own(shape):
    @ti.func
    def distance(x, a, b, radius):
        return ti.cast(shape(x), ti.f32)

    return distance


@argument
class PlacedShape:
    """A shape where it is, loaded from its row."""

    which: object  # the number of its function; below 0 of a row without any
    pivot: object
    rotation: object
    a: object
    b: object
    radius: object
    functions: object

    @ti.func
    def distance_to(self, x):
        """Signed distance from the place ``x``."""
        turned, distance = self.rotation.transpose() @ (x - self.pivot), ti.f32(0.0)
        for number in ti.static(range(len(self.functions))):
            if self.which == number:
                distance = self.functions[number](turned, self.a, self.b, self.radius)
        return distance


@traced
def shape_at(table, row, dim, functions):
    """The shape of the row that begins at ``row``; a kernel knows the ``functions``, a tuple."""

    def number(k):
        return subscript(table, row + k)

    def vector(k):
        return local(ti.Vector([number(k + axis) for axis in range(dim)]))

    rotation = local(ti.Matrix([[number(1 + dim + i * dim + j) for j in range(dim)] for i in range(dim)]))
    end = 1 + dim + dim * dim
    radius = local(number(end + 2 * dim))
    which = local(ti.cast(number(0), ti.i32))
    return PlacedShape(which, vector(1), rotation, vector(end), vector(end + dim), radius, functions)
