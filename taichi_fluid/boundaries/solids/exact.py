"""Shapes in a table: which they are and where, all in one unit of length, for kernels that ask how far away they are."""

import functools
from collections.abc import Sequence

import numpy as np

from ..._ti import argument, local, subscript, ti, traced
from ...operators.shapes import SHAPES
from ...operators.vectors import length
from .shapes import Placed, SampledDistance


def row_length(dim: int) -> int:
    """Numbers of a shape: which it is, its pivot, its rotation, ``a``, ``b`` and the radius.

    Of a lattice ``a`` is its first point, ``b`` how many there are along each axis, and the radius the way between two.
    """
    return 2 + 3 * dim + dim * dim


def row_of(which: int, placed: Placed, origin: Sequence[float], unit: float) -> list[float]:
    """The row of a shape, which is number ``which`` of those that a kernel knows, seen from ``origin``, in units of so many metres."""
    shape, pivot = placed.solid.shape, np.subtract(placed.pose.pivot, origin) / unit
    a, b, radius = (np.asarray(part) / unit for part in (placed.a, placed.b, placed.solid.radius))
    if isinstance(shape, SampledDistance):
        a, b, radius = np.asarray(shape.origin) / unit, shape.values.shape, shape.spacing / unit
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
class Lattice:
    """Distances at the points of a lattice, the values of which begin at ``start``."""

    values: object
    start: object

    @ti.func
    def distance_to(self, x, first, count, spacing):
        """Linear interpolation of those around ``x``; outside of the lattice, the value at its edge and the way there."""
        q, size = (x - first) / spacing, ti.cast(count, ti.i32)
        inside = ti.min(ti.max(q, x * ti.f32(0.0)), count - ti.f32(1.0))
        corner = ti.min(ti.cast(inside, ti.i32), size - 2)
        f = inside - ti.cast(corner, ti.f32)
        total = ti.f32(0.0)
        for vertex in ti.static(range(2**x.n)):
            w, at = ti.f32(1.0), ti.i32(0)
            for axis in ti.static(range(x.n)):
                if ti.static((vertex >> axis) & 1):
                    at = at * size[axis] + corner[axis] + 1
                    w *= f[axis]
                else:
                    at = at * size[axis] + corner[axis]
                    w *= ti.f32(1.0) - f[axis]
            total += w * self.values[self.start + at]
        return total + length(q - inside) * spacing


@argument
class PlacedShape:
    """A shape where it is, loaded from its row."""

    which: object  # the number of its function, one more for a lattice; below 0 of a row without any
    pivot: object
    rotation: object
    a: object
    b: object
    radius: object
    functions: object
    lattice: object
    sampled: object  # whether there are lattices

    @ti.func
    def distance_to(self, x):
        """Signed distance from the place ``x``."""
        turned, distance = self.rotation.transpose() @ (x - self.pivot), ti.f32(0.0)
        for number in ti.static(range(len(self.functions))):
            if self.which == number:
                distance = self.functions[number](turned, self.a, self.b, self.radius)
        if ti.static(self.sampled):
            if self.which == ti.static(len(self.functions)):
                distance = self.lattice.distance_to(turned, self.a, self.b, self.radius)
        return distance


@traced
def shape_at(table, row, dim, functions, lattice=None):
    """The shape of the row that begins at ``row``; a kernel knows the ``functions``, a tuple, and the values of a ``lattice``."""

    def number(k):
        return subscript(table, row + k)

    def vector(k):
        return local(ti.Vector([number(k + axis) for axis in range(dim)]))

    rotation = local(ti.Matrix([[number(1 + dim + i * dim + j) for j in range(dim)] for i in range(dim)]))
    end = 1 + dim + dim * dim
    which, radius = local(ti.cast(number(0), ti.i32)), local(number(end + 2 * dim))
    parts = which, vector(1), rotation, vector(end), vector(end + dim), radius
    return PlacedShape(*parts, functions, lattice, lattice is not None)


@argument
class SolidShapes:
    """The shapes of all solids, a row of a table for each, in metres from the lower corner of the box."""

    table: object
    lattices: object  # the values of all lattices, one after the other
    starts: object  # where those of a solid begin
    functions: object
    sampled: object  # whether there are lattices

    @traced
    def of(self, index, dim):
        """The shape of a solid."""
        lattice = Lattice(self.lattices, local(subscript(self.starts, index))) if self.sampled else None
        return shape_at(self.table, local(index * row_length(dim)), dim, self.functions, lattice)
