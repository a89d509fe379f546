"""Signed distances, in metres, negative inside; and how much of a cell a shape covers.

Every shape is described by two points ``a`` and ``b`` and a radius: a sphere by its centre ``a``, a capsule and a
cylinder by the ends ``a`` and ``b`` of the axis, a box by its centre ``a`` and half edges ``b``, its corners rounded by
the radius.
"""

import functools
import math

import numpy as np

from .._ti import ti
from .vectors import length


@ti.func
def sphere_distance(x, a, b, radius):
    """Distance to a sphere (2D: a disk)."""
    return length(x - a) - radius


@ti.func
def capsule_distance(x, a, b, radius):
    """Distance to all points within ``radius`` of the segment from ``a`` to ``b``."""
    axis = b - a
    along = (x - a).dot(axis) / ti.max(axis.dot(axis), ti.f32(1e-20))
    return length(x - a - ti.min(ti.max(along, ti.f32(0.0)), ti.f32(1.0)) * axis) - radius


@ti.func
def box_distance(x, a, b, radius):
    """Distance to a box with centre ``a`` and half edges ``b``."""
    beyond = ti.abs(x - a) - (b - radius)
    outside = length(ti.max(beyond, x * ti.f32(0.0)))
    return outside + ti.min(beyond.max(), ti.f32(0.0)) - radius


@ti.func
def _beyond_cylinder(x, a, b, radius):
    """How far beyond the side of a cylinder, and beyond its ends, a place is; negative within each."""
    axis = b - a
    height = ti.max(length(axis), ti.f32(1e-20))
    along = (x - a).dot(axis) / height
    across = length(x - a - along / height * axis) - radius
    return across, ti.abs(along - ti.f32(0.5) * height) - ti.f32(0.5) * height


@ti.func
def cylinder_distance(x, a, b, radius):
    """Distance to a cylinder with flat ends ``a`` and ``b``; in 2D a rectangle of half width ``radius``."""
    across, beyond = _beyond_cylinder(x, a, b, radius)
    outside = ti.sqrt(ti.max(across, ti.f32(0.0)) ** 2 + ti.max(beyond, ti.f32(0.0)) ** 2)
    return outside + ti.min(ti.max(across, beyond), ti.f32(0.0))


@ti.func
def covered_part(a, b):
    """Part of a segment where a distance that goes linearly from ``a`` to ``b`` is negative."""
    part = ti.f32(0.0)
    if a < 0 and b < 0:
        part = ti.f32(1.0)
    elif a < 0:
        part = a / (a - b)
    elif b < 0:
        part = b / (b - a)
    return part


@ti.func
def covered_triangle(a, b, c):
    """Part of a triangle where a distance, linear between the corners, is negative."""
    negative = ti.cast(a < 0, ti.i32) + ti.cast(b < 0, ti.i32) + ti.cast(c < 0, ti.i32)
    part = ti.f32(1.0)
    if negative == 0:
        part = ti.f32(0.0)
    elif negative < 3:
        # The corner that is alone on its side cuts off a triangle.
        alone, one, two = a, b, c
        if (a < 0) == (c < 0):
            alone, one = b, a
        elif (a < 0) == (b < 0):
            alone, two = c, a
        part = alone / (alone - one) * (alone / (alone - two))
        if negative == 2:
            part = ti.f32(1.0) - part
    return part


@ti.func
def covered_square(corners):
    """Part of a square where a distance is negative, from its four ``corners`` one after the other around it."""
    covered = ti.f32(0.0)
    if corners.max() < 0:
        covered = ti.f32(1.0)
    elif corners.min() < 0:
        # Four triangles around the middle: no diagonal is preferred.
        middle = ti.f32(0.25) * corners.sum()
        for k in range(4):
            covered += ti.f32(0.25) * covered_triangle(corners[k], corners[(k + ti.i32(1)) % ti.i32(4)], middle)
    return covered


@ti.func
def open_moment(a, b, c):
    """Mean over a triangle of a distance, linear between the corners, that counts as 0 where it is negative."""
    covered, least, most = covered_triangle(a, b, c), ti.min(a, b, c), ti.max(a, b, c)
    moment = (a + b + c - covered * least) / ti.f32(3.0)
    if a + b + c - least - most <= 0:
        moment = (ti.f32(1.0) - covered) * ti.max(most, ti.f32(0.0)) / ti.f32(3.0)
    return moment


@ti.func
def coverage(distance, inv_dx):
    """Fraction of a cell, 0 to 1, that lies inside a shape whose surface is ``distance`` away from its centre."""
    return ti.min(ti.max(ti.f32(0.5) - distance * inv_dx, ti.f32(0.0)), ti.f32(1.0))


@ti.func
def _between(beyond, width, inv_dx):
    """Part of a cell between two planes ``width`` apart, from how far its centre is ``beyond`` the nearer; one may hold both."""
    return ti.min(coverage(beyond, inv_dx), width * inv_dx)


@ti.func
def _box_cover(x, a, b, radius, inv_dx):
    """Along each axis by itself, which is exact; of the distance alone an edge would cover as much as the nearest of its sides."""
    covered = ti.f32(1.0)
    for axis in ti.static(range(x.n)):
        covered *= _between(ti.abs(x[axis] - a[axis]) - b[axis], ti.f32(2.0) * b[axis], inv_dx)
    return covered


@ti.func
def _cylinder_cover(x, a, b, radius, inv_dx):
    """Across and along by themselves, as of a box."""
    across, beyond = _beyond_cylinder(x, a, b, radius)
    return coverage(across, inv_dx) * _between(beyond, length(b - a), inv_dx)


def cover_of(shape: str):
    """What fraction of a cell around ``x`` one of the ``SHAPES`` covers, a function of x, a, b, radius and 1 / dx; edges are sharp.

    Where it is round, by its distance, as if its surface were a plane there. So cells around cover more of it than there is:
    for amounts it is ``fitted``.
    """
    if shape in ("box", "cylinder"):
        return _box_cover if shape == "box" else _cylinder_cover
    distance = SHAPES[shape]

    @ti.func
    def cover(x, a, b, radius, inv_dx):
        return coverage(distance(x, a, b, radius), inv_dx)

    return cover


@functools.lru_cache(maxsize=64)  # a source that moves asks for each piece of its way
def fitted(shape: str, dim: int, long: float, radius: float) -> tuple[float, float]:
    """A radius, and by how much what cells of edge 1 then cover counts, so that it is the volume of a shape together.

    They cover the mean of what there is at radii from half a cell less to half a cell more, on average over where they lie. What is so small that
    it might lie between their centres is made larger, and counts less.

    Args:
        shape: One of ``SHAPES``.
        dim: Number of axes.
        long: Distance of the ends of a capsule, in cells.
        radius: In cells; of a box it means nothing.
    """
    ball = {2: math.pi, 3: 4 / 3 * math.pi}[dim]
    powers = {
        "sphere": {dim: 1.0},
        "capsule": {dim: ball, dim - 1: long * (2.0 if dim == 2 else math.pi)},
        "cylinder": {dim - 1: 1.0},
    }.get(shape)
    if powers is None:
        return radius, 1.0
    volume = sum(times * radius**n for n, times in powers.items())

    def covered(at: float) -> float:
        return sum(times * ((at + 0.5) ** (n + 1) - (at - 0.5) ** (n + 1)) / (n + 1) for n, times in powers.items())

    low, high = 0.5 * math.sqrt(dim), radius
    if covered(low) >= volume:
        return low, volume / covered(low)
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if covered(middle) > volume else (middle, high)
    return high, 1.0


SHAPES = {"sphere": sphere_distance, "capsule": capsule_distance, "box": box_distance, "cylinder": cylinder_distance}


def extent_of(shape: str, a: np.ndarray, b: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corner of a box around a shape."""
    if shape == "box":
        return a - b, a + b
    other = a if shape == "sphere" else b
    return np.minimum(a, other) - radius, np.maximum(a, other) + radius
