"""Linear interpolation in 2D and 3D, and where a point may lie.

Points are in index space: a value with integer position ``I`` lies at ``q = I``. For a quantity at cell centres the
box then reaches from 0.5 to n + 0.5 along every axis; for the velocity component ``axis``, which lies on lower faces,
from 1 to n + 1 along its own axis. A displacement in cells is the same in all of these spaces.
"""

from .._ti import subscript, ti, traced
from ..kernels import ARRAY_BITS, address, at_least, at_most, cells_of, flat, strides_of


@traced
def step_to_corner(corner, s):
    """From the lowest of the 2^dim cells around a point to another; bit ``axis`` says whether that is the upper one."""
    if isinstance(corner, int):
        return sum(subscript(s, axis) for axis in range(s.n) if (corner >> axis) & 1)
    return sum(((corner >> axis) & 1) * subscript(s, axis) for axis in range(s.n))


@traced
def strides_across(s, axis):
    """Strides of the other axes, for an axis that only the running kernel knows."""
    return ti.Vector([ti.select(axis <= k, subscript(s, k + 1), subscript(s, k)) for k in range(s.n - 1)])


@ti.func
def lower_corner_at(q, n):
    """Flat index of the lowest of the 2^dim cells around ``q``, and where ``q`` lies between them (0 to 1)."""
    I = ti.min(ti.cast(q, ti.i32), n)
    return flat(I, strides_of(n)), q - ti.cast(I, ti.f32)


@ti.func
def corners_at(a: ti.template(), offset, q, n):
    """The 2^dim values around ``q``, first axis in the lowest bit, and where ``q`` lies between them (0 to 1)."""
    s = strides_of(n)
    base, fraction = lower_corner_at(q, n)
    values = ti.Vector([ti.f32(0.0)] * 2**q.n)
    first = address(offset + base, ARRAY_BITS)
    for corner in ti.static(range(2**q.n)):
        values[corner] = a[first + step_to_corner(corner, s)]
    return values, fraction


@ti.func
def blend(values, fraction):
    """Multilinear blend of 2^dim corner values; a constant comes out as the same constant, bit for bit."""
    v = values
    for axis in ti.static(range(fraction.n - 1, -1, -1)):
        for corner in ti.static(range(2**axis)):
            v[corner] += fraction[axis] * (v[corner + 2**axis] - v[corner])
    return v[0]


@ti.func
def sample(a: ti.template(), offset, q, n):
    """Linear interpolation of ``a[offset + …]`` at ``q``."""
    values, fraction = corners_at(a, offset, q, n)
    return blend(values, fraction)


@ti.func
def sample_velocity(u: ti.template(), q, n):
    """Velocity of the staggered grid at the point ``q`` of the cell-centred index space."""
    cells = cells_of(strides_of(n), n)
    v = q
    for axis in ti.static(range(q.n)):
        face = q
        face[axis] += ti.f32(0.5)
        v[axis] = sample(u, axis * cells, face, n)
    return v


@ti.func
def face_velocity_at(u: ti.template(), c, axis, n):
    """Velocity at the lower face of cell ``c`` along ``axis``, on the staggered grid.

    Exactly what interpolation gives there, with fewer loads: one component is stored on the spot, which here is the mean
    of itself, the others are means of four.
    """
    s = strides_of(n)
    cells = cells_of(s, n)
    along = s[0] * 0
    for d in ti.static(range(n.n)):
        along = ti.select(d == axis, s[d], along)
    v = ti.cast(n, ti.f32)
    for d in ti.static(range(n.n)):
        lower, upper = address(d * cells, ARRAY_BITS), address(d * cells + ti.select(d == axis, 0, s[d]), ARRAY_BITS)
        back = ti.select(d == axis, 0, along)
        v[d] = ti.f32(0.25) * ((u[c + lower] + u[c + upper]) + (u[c + lower - back] + u[c + upper - back]))
    return v


@ti.func
def inside_box(q, n):
    """``q`` moved to the nearest point of the box, in the cell-centred index space."""
    p = q
    for axis in ti.static(range(q.n)):
        p[axis] = at_most(at_least(q[axis], ti.f32(0.5)), ti.cast(n[axis], ti.f32) + ti.f32(0.5))
    return p
