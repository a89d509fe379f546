"""Interpolation for the cells of a strip together, stage by stage: where, what stands around, the blend of it.

On a CPU a strip is up to ``kernels.STRIP`` cells of a row. Taken stage by stage, only the reading is scattered, and a
compiler makes vectors of the rest; taken cell by cell, nothing is. On a GPU a strip is one cell, and all of this is
straight code for it. What stands between two stages are matrices with a column for each cell.
"""

from .._ti import argument, local, subscript, ti, traced
from ..kernels import (
    ARRAY_BITS,
    address,
    cell_of_strip,
    cells_of,
    column,
    fast_max,
    fast_min,
    position_in_strip,
    set_column,
    strides_of,
)
from .ghosts import around_axis
from .interpolation import blend, step_to_corner

VALUE, LEAST, MOST = range(3)
"""Lines of what is sampled with its limits."""


@argument
class Component:
    """One component of an array: ``array[offset + …]``."""

    array: object
    offset: object


@argument
class Located:
    """Points of a strip, a column for each, between the 2^dim cells around them.

    If ``staggered`` there is a ``base`` for each component in its own index space, where a point is half a cell higher
    along the component's axis; else one for all, and ``up_fraction`` is not asked for.
    """

    points: object  # in index space
    base: object  # flat index of the lowest of the cells
    fraction: object  # where the point lies between them along each axis, 0 to 1
    up_fraction: object  # the same half a cell higher
    staggered: bool


@ti.func
def _put_point(k, points: ti.template(), place):
    set_column(points, k, place.body(k, *place.args))


@ti.func
def _locate(k, at, n):
    s, first = strides_of(n), ti.i32(0)
    for axis in ti.static(range(n.n)):
        x, stride = at.points[ti.i32(axis), k], ti.cast(s[axis], ti.i32)
        lowest = ti.min(ti.cast(x, ti.i32), n[axis])
        at.fraction[ti.i32(axis), k] = x - ti.cast(lowest, ti.f32)
        first += lowest * stride
        if ti.static(at.staggered):
            up = ti.min(ti.cast(x + ti.f32(0.5), ti.i32), n[axis])
            at.up_fraction[ti.i32(axis), k] = x + ti.f32(0.5) - ti.cast(up, ti.f32)
            at.base[ti.i32(axis), k] = (up - lowest) * stride
    if ti.static(at.staggered):
        for axis in ti.static(range(n.n)):
            at.base[ti.i32(axis), k] = at.base[ti.i32(axis), k] + first
    else:
        at.base[ti.i32(0), k] = first


@ti.func
def _gather_rows(k, a, at, line: ti.template(), up: ti.template(), rows: ti.template(), n):
    """The values around, already blended along the last axis; ``up`` where that is the axis of the component."""
    s, last = strides_of(n), ti.i32(n.n - 1)
    f = at.up_fraction[last, k] if ti.static(up) else at.fraction[last, k]
    first = address(a.offset + at.base[ti.i32(line), k], ARRAY_BITS)
    for row in ti.static(range(2 ** (n.n - 1))):
        c = first + step_to_corner(row, s)
        here = a.array[c]
        rows[ti.i32(row), k] = here + f * (a.array[c + 1] - here)


@ti.func
def _blend_rows(k, rows: ti.template(), at, moved: ti.template(), out: ti.template(), line: ti.template(), n):
    """Blend them along the other axes, and write what comes out into a line of ``out``."""
    values = column(rows, k)
    for d in ti.static(range(n.n - 2, -1, -1)):
        f = at.up_fraction[ti.i32(d), k] if ti.static(d == moved) else at.fraction[ti.i32(d), k]
        for row in ti.static(range(2**d)):
            values[row] += f * (values[row + 2**d] - values[row])
    out[ti.i32(line), k] = values[0]


@ti.func
def sample_strip_velocity(strip, u: ti.template(), place, out: ti.template(), n, staggered: ti.template()):
    """Velocity at the points ``place`` of the cell-centred index space, by linear interpolation, a column for each."""
    points, base = strip.matrix(n.n), strip.integers(ti.static(n.n if staggered else 1))
    at = Located(points, base, strip.matrix(n.n), strip.matrix(n.n), staggered)
    rows, cells = strip.matrix(2 ** (n.n - 1)), cells_of(strides_of(n), n)
    strip.each(_put_point, (points, place))
    strip.each(_locate, (at, n))
    for axis in ti.static(range(n.n)):
        own = ti.static(axis if staggered else 0)
        up = ti.static(staggered and axis == n.n - 1)
        strip.each(_gather_rows, (Component(u, axis * cells), at, own, up, rows, n))
        strip.each(_blend_rows, (rows, at, ti.static(axis if staggered else -1), out, axis, n))


@ti.func
def _sample_scattered(strip, a, place, out: ti.template(), n):
    """``sample_strip`` wherever the points are."""
    points, fraction = strip.matrix(n.n), strip.matrix(n.n)
    at = Located(points, strip.integers(1), fraction, fraction, False)
    strip.each(_put_point, (points, place))
    strip.each(_locate, (at, n))
    if ti.static(out.n > 1):
        corners = strip.matrix(2**n.n)
        strip.each(_gather_corners, (a, at, corners, n))
        strip.each(_blend_corners, (corners, at, out))
    else:
        rows = strip.matrix(2 ** (n.n - 1))
        strip.each(_gather_rows, (a, at, 0, False, rows, n))
        strip.each(_blend_rows, (rows, at, -1, out, 0, n))


@ti.func
def _gather_line(k, a, at, axis: ti.template(), own, line: ti.template(), n, period, wraps: ti.template()):
    """The four values along an axis on whose nearest line each point lies; one of them for all beside the ends of the grid.

    Beyond the end of a periodic axis are those of its other end.
    """
    s, first = strides_of(n), at.base[ti.i32(0), k]
    for other in ti.static(range(n.n)):
        if ti.static(other != axis):
            first += ti.select(at.fraction[ti.i32(other), k] > 0.5, ti.cast(s[other], ti.i32), 0)
    lowest = ti.cast(at.points[ti.i32(axis), k], ti.i32)
    within = (lowest >= ti.select(axis == own, 2, 1)) & (lowest < n[axis])
    if ti.static(wraps):
        for place in ti.static(range(4)):
            step = ti.static(place - 1)
            back = around_axis(lowest + step, n[axis]) - lowest
            far = ti.select(period[axis] > 0, back, ti.select(within, step, 0)) * ti.cast(s[axis], ti.i32)
            line[ti.i32(place), k] = a.array[address(a.offset + (first + far), ARRAY_BITS)]
    else:
        low = address(a.offset + first, ARRAY_BITS)
        step = address(ti.select(within, ti.cast(s[axis], ti.i32), 0), ARRAY_BITS - 1)
        for place in ti.static(range(4)):
            line[ti.i32(place), k] = a.array[low + (place - 1) * step]


@ti.func
def bend_cubic(k, at, axis: ti.template(), line: ti.template(), out: ti.template()):
    """Add what Lagrange's cubic through four values adds to what is linear between the middle ones."""
    f, a, b = at.fraction[ti.i32(axis), k], line[ti.i32(1), k], line[ti.i32(2), k]
    lower, upper = line[ti.i32(0), k] - ti.f32(2.0) * a + b, a - ti.f32(2.0) * b + line[ti.i32(3), k]
    bent = (ti.f32(2.0) - f) * lower + (ti.f32(1.0) + f) * upper
    out[ti.i32(VALUE), k] = out[ti.i32(VALUE), k] - f * (ti.f32(1.0) - f) * ti.f32(1.0 / 6.0) * bent


@ti.func
def bend_limited(k, at, axis: ti.template(), line: ti.template(), out: ti.template()):
    """``bend_cubic``, but bent no more than twice as much as on either side (after van Leer 1977).

    Where the values are bent to either side, as beside a kink, that is nothing.
    """
    f, a, b = at.fraction[ti.i32(axis), k], line[ti.i32(1), k], line[ti.i32(2), k]
    lower, upper = line[ti.i32(0), k] - ti.f32(2.0) * a + b, a - ti.f32(2.0) * b + line[ti.i32(3), k]
    mean = ((ti.f32(2.0) - f) * lower + (ti.f32(1.0) + f) * upper) * ti.f32(1.0 / 3.0)
    most = ti.f32(2.0) * fast_min(ti.abs(lower), ti.abs(upper))
    bent = ti.select(lower * upper > 0, fast_max(fast_min(mean, most), -most), ti.f32(0.0))
    out[ti.i32(VALUE), k] = out[ti.i32(VALUE), k] - f * (ti.f32(1.0) - f) * ti.f32(0.5) * bent


@ti.func
def sample_strip_bent(
    strip, a, place, out: ti.template(), n, own, bend: ti.template(), period=None, wraps: ti.template() = False
):
    """A component at the points ``place.body(k, *place.args)`` of its index space: linear, and what ``bend`` adds along each axis.

    ``bend_cubic`` is of third order; gone back along a uniform flow no wave grows, whatever the step. ``bend_limited`` is of third
    where values are smooth, and makes little of kinks. Values are those of the nearest line along the axis; nothing is added
    beside the ends of the grid: ghosts stand beyond those of all axes but the ``own`` one of a velocity component. Where any axis
    ``wraps``, its ``period`` is given, in cells; of a velocity component that is not provided for. What is found goes into the first
    line of ``out``.
    """
    points, fraction, values = strip.matrix(n.n), strip.matrix(n.n), strip.matrix(4)
    at = Located(points, strip.integers(1), fraction, fraction, False)
    strip.each(_put_point, (points, place))
    strip.each(_locate, (at, n))
    rows = strip.matrix(2 ** (n.n - 1))
    strip.each(_gather_rows, (a, at, 0, False, rows, n))
    strip.each(_blend_rows, (rows, at, -1, out, VALUE, n))
    for axis in ti.static(range(n.n)):
        strip.each(_gather_line, (a, at, axis, own, values, n, period, wraps))
        strip.each(bend, (at, axis, values, out))


@ti.func
def _gather_corners(k, a, at, corners: ti.template(), n):
    s, first = strides_of(n), address(a.offset + at.base[ti.i32(0), k], ARRAY_BITS)
    for corner in ti.static(range(2**n.n)):
        corners[ti.i32(corner), k] = a.array[first + step_to_corner(corner, s)]


@ti.func
def _blend_corners(k, corners: ti.template(), at, out: ti.template()):
    _put_blend(k, column(corners, k), column(at.fraction, k), out)


@ti.func
def _put_blend(k, values, fraction, out: ti.template()):
    """The blend of 2^dim values around, and if ``out`` has lines for them their least and largest."""
    out[ti.i32(VALUE), k] = blend(values, fraction)
    if ti.static(out.n > 1):
        least, most = values[0], values[0]
        for corner in ti.static(range(1, values.n)):
            least, most = fast_min(least, values[corner]), fast_max(most, values[corner])
        out[ti.i32(LEAST), k] = least
        out[ti.i32(MOST), k] = most


@ti.func
def _find_shift(k, I, place, shifts: ti.template(), far: ti.template()):
    """How far a point lies from its own cell, and whether that is a cell or more along any axis.

    A whole cell is far: a blend with a part of 1 would be what is there only to rounding.
    """
    point = place.body(k, *place.args)
    for axis in ti.static(range(I.n)):
        shift = point[axis] - ti.cast(position_in_strip(I, k, axis), ti.f32)
        shifts[ti.i32(axis), k] = shift
        far |= ti.cast(ti.abs(shift) >= ti.f32(1.0), ti.i32)


@traced
def _corners_around(k, a, c, s, shift):
    """The values around a point ``shift`` from its own cell, that of the strip which begins at ``c``.

    Along each axis these are its own and the one that the point lies towards, for which bit ``axis`` of a corner is 1.
    """
    side = [local(subscript(shift, axis) >= 0) for axis in range(s.n)]

    def chosen(first, axis):
        if axis == s.n - 1:
            # The same for all of the strip, and of few bits, so that three addresses are one and small distances from it.
            cell = local(cell_of_strip(local(address(first - 1, ARRAY_BITS)), k))
            below, own, above = ([local(subscript(a.array, cell + step))] for step in range(3))
        else:
            below, own, above = (chosen(first + step * subscript(s, axis), axis + 1) for step in (-1, 0, 1))
        beside = [local(ti.select(side[axis], *pair)) for pair in zip(above, below, strict=True)]
        return [value for pair in zip(own, beside, strict=True) for value in pair]

    return ti.Vector(chosen(c, 0))


@ti.func
def _blend_around(k, a, c, s, shifts: ti.template(), out: ti.template()):
    """What lies at a point less than a cell from its own one, that of the strip which begins at ``c``.

    All neighbours are read, wherever the point is: those of cells beside each other lie beside each other.
    """
    shift = column(shifts, k)
    _put_blend(k, _corners_around(k, a, c, s, shift), abs(shift), out)


@ti.func
def sample_strip(strip, a, place, out: ti.template(), n):
    """Linear interpolation of a component at the points ``place.body(k, *place.args)`` of its index space.

    What is found goes into the first line of ``out``; if that has three, the least and the largest of what each is made
    of go into the others: lines ``VALUE``, ``LEAST``, ``MOST``.
    """
    if ti.static(strip.width == 1):
        _sample_scattered(strip, a, place, out, n)
    else:
        far, shifts = 0, strip.matrix(n.n)
        strip.each(_find_shift, (strip.I, place, shifts, far))
        if far == 0:
            strip.each(_blend_around, (a, a.offset + strip.first, strides_of(n), shifts, out))
        else:
            _sample_scattered(strip, a, place, out, n)
