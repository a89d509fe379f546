"""Linear interpolation in 2D and 3D, and where a point may lie.

Points are in index space: a value with integer position ``I`` lies at ``q = I``. For a quantity at cell centres the
box then reaches from 0.5 to n + 0.5 along every axis; for the velocity component ``axis``, which lies on lower faces,
from 1 to n + 1 along its own axis. A displacement in cells is the same in all of these spaces.
"""

from .._ti import argument, local, subscript, ti, traced
from ..kernels import ARRAY_BITS, Array, address, cells_of, fast_max, fast_min, flat, strides_of
from .vectors import length


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
def mean_of_corners(values: Array, c, s):
    """What lies at lower corners of cells, in the middle of cell ``c``."""
    total = ti.f32(0.0)
    for corner in ti.static(range(2**s.n)):
        total += values[c + step_to_corner(corner, s)]
    return total * ti.f32(0.5**s.n)


@ti.func
def blend(values, fraction):
    """Multilinear blend of 2^dim corner values; a constant comes out as the same constant, bit for bit."""
    v = values
    for axis in ti.static(range(fraction.n - 1, -1, -1)):
        for corner in ti.static(range(2**axis)):
            v[corner] += fraction[axis] * (v[corner + 2**axis] - v[corner])
    return v[0]


@ti.func
def corner_weight(fraction, corner: ti.template()):
    """The weight of one of the 2^dim places around, in multilinear interpolation."""
    weight = ti.f32(1.0)
    for axis in ti.static(range(fraction.n)):
        weight *= fraction[axis] if ti.static((corner >> axis) & 1) else ti.f32(1.0) - fraction[axis]
    return weight


@argument
class Place:
    """A point between the 2^dim cells around it."""

    first: object  # flat index of the lowest of them
    fraction: object  # where the point lies between them, 0 to 1
    s: object  # strides of the grid


@traced
def place_of(q, n):
    """The place of the point ``q``."""
    q, s = local(q), local(strides_of(n))
    I = local(ti.min(ti.cast(q, ti.i32), n))
    return Place(local(flat(I, s)), local(q - ti.cast(I, ti.f32)), s)


@traced
def sample_at(a, offset, place):
    """Linear interpolation of ``a[offset + …]`` at a place; a constant comes out as the same, bit for bit."""

    def blended(cell, axis):
        if axis == place.s.n:
            return subscript(a, cell)
        low = local(blended(cell, axis + 1))
        return low + subscript(place.fraction, axis) * (blended(cell + subscript(place.s, axis), axis + 1) - low)

    return local(blended(local(address(offset + place.first, ARRAY_BITS)), 0))


@traced
def sample(a, offset, q, n):
    """Linear interpolation of ``a[offset + …]`` at ``q``."""
    return sample_at(a, offset, place_of(q, n))


@ti.func
def sample_velocity(u: Array, q, n):
    """Velocity of the staggered grid at the point ``q`` of the cell-centred index space."""
    cells = cells_of(strides_of(n), n)
    v = q
    for axis in ti.static(range(q.n)):
        face = q
        face[axis] += ti.f32(0.5)
        v[axis] = sample(u, axis * cells, face, n)
    return v


@ti.func
def face_velocity_at(u: Array, c, axis, n):
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


@traced
def inside_box(q, n):
    """``q`` moved to the nearest point of the box, in the cell-centred index space."""
    half = ti.cast(0.5, ti.f32)
    return fast_min(fast_max(q, half), ti.cast(n, ti.f32) + half)


@ti.func
def wrapped(q, lower, period, wraps: ti.template()):
    """``q`` moved by whole periods into the box, which begins at ``lower``, along axes that have one."""
    p = q
    if ti.static(wraps):
        for axis in ti.static(range(q.n)):
            if period[axis] > 0:
                p[axis] -= period[axis] * ti.floor((q[axis] - lower[axis]) / period[axis])
    return p


@ti.func
def has_ends(axis: ti.template(), period, wraps: ti.template()):
    """Whether an axis is not periodic."""
    ends = ti.i32(1)
    if ti.static(wraps):
        ends = ti.cast(period[axis] == 0, ti.i32)
    return ends


@ti.func
def uphill(a: Array, q, reach, shift, n, period=None, wraps: ti.template() = False):
    """Unit vector along which a distance ``a`` grows fastest at ``q``, by differences over ``reach`` cells to both sides.

    0 where it grows nowhere. ``a`` lies at centres for a ``shift`` of 0, at the lower corners of cells for a half. Where any axis
    ``wraps``, its ``period`` is given, in cells.
    """
    slope = q * ti.f32(0.0)
    for axis in ti.static(range(q.n)):
        before, behind = q, q
        before[axis] -= ti.f32(reach)
        behind[axis] += ti.f32(reach)
        before = wrapped(before, q * ti.f32(0.0) + ti.f32(0.5), period, wraps)
        behind = wrapped(behind, q * ti.f32(0.0) + ti.f32(0.5), period, wraps)
        slope[axis] = sample(a, 0, inside_box(behind, n) + ti.f32(shift), n) - sample(
            a, 0, inside_box(before, n) + ti.f32(shift), n
        )
    return slope / ti.max(length(slope), ti.f32(1e-20))
