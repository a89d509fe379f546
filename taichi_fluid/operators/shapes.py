"""Signed distances, in metres, negative inside; and how much of a cell a shape covers.

Every shape is described by two points ``a`` and ``b`` and a radius: a sphere by its centre ``a``, a capsule by the ends
``a`` and ``b`` of its axis, a box by its centre ``a`` and half edges ``b``, its corners rounded by the radius.
"""

from .._ti import ti


@ti.func
def sphere_distance(x, a, b, radius):
    """Distance to a sphere (2D: a disk)."""
    return (x - a).norm() - radius


@ti.func
def capsule_distance(x, a, b, radius):
    """Distance to all points within ``radius`` of the segment from ``a`` to ``b``."""
    axis = b - a
    along = (x - a).dot(axis) / ti.max(axis.dot(axis), ti.f32(1e-20))
    return (x - a - ti.min(ti.max(along, ti.f32(0.0)), ti.f32(1.0)) * axis).norm() - radius


@ti.func
def box_distance(x, a, b, radius):
    """Distance to a box with centre ``a`` and half edges ``b``."""
    beyond = ti.abs(x - a) - (b - radius)
    outside = ti.max(beyond, x * ti.f32(0.0)).norm()
    return outside + ti.min(beyond.max(), ti.f32(0.0)) - radius


@ti.func
def coverage(distance, inv_dx):
    """Fraction of a cell, 0 to 1, that lies inside a shape whose surface is ``distance`` away from its centre."""
    return ti.min(ti.max(ti.f32(0.5) - distance * inv_dx, ti.f32(0.0)), ti.f32(1.0))


SHAPES = {"sphere": sphere_distance, "capsule": capsule_distance, "box": box_distance}
