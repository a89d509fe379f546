"""Interpolation for the cells of a run together, step by step: where, what stands around, the blend of it.

On a CPU a run is up to ``kernels.RUN`` cells of a row. Taken step by step, only the reading is scattered, and a compiler
makes vectors of the rest; taken cell by cell, nothing is. On a GPU a run is one cell, and all of this is straight code
for it. What stands between two steps are matrices with a column for each cell. Their lines are named as ``ti.i32``: a
number by itself has the type ``default_ip``, and a place in a local matrix must not be of 64 bits.
"""

from .._ti import ti
from ..kernels import (
    ARRAY_BITS,
    address,
    along_run,
    at_least,
    at_most,
    cell_of_run,
    cells_of,
    position_in_run,
    strides_of,
)
from .interpolation import blend

VALUE, LEAST, MOST = range(3)
"""Lines of what is sampled with its limits."""


@ti.func
def column(a: ti.template(), k):
    """Column ``k`` as a vector."""
    v = ti.Vector([ti.f32(0.0)] * a.n)
    for row in ti.static(range(a.n)):
        v[row] = a[ti.i32(row), k]
    return v


@ti.func
def set_column(a: ti.template(), k, v):
    """Write a vector into column ``k``."""
    for row in ti.static(range(a.n)):
        a[ti.i32(row), k] = v[row]


@ti.func
def put_columns(k, a: ti.template(), c, columns: ti.template(), n):
    """Write column ``k`` as the vector of cell ``k`` of the run that begins at ``c``."""
    cells = cells_of(strides_of(n), n)
    for d in ti.static(range(n.n)):
        a[cell_of_run(c, k) + d * cells] = columns[ti.i32(d), k]


@ti.func
def _locate(
    k, points: ti.template(), base: ti.template(), fraction: ti.template(), up_fraction: ti.template(), n,
    staggered: ti.template(),
):  # fmt: skip
    """Flat index of the lowest of the 2^dim cells around a point, and where the point lies between them, 0 to 1.

    ``staggered`` asks for one index per component: along its own axis, in its own index space, a point is half a cell
    higher, and lies at ``up_fraction``.
    """
    s, first = strides_of(n), ti.i32(0)
    for axis in ti.static(range(n.n)):
        x, stride = points[ti.i32(axis), k], ti.cast(s[axis], ti.i32)
        lowest = ti.min(ti.cast(x, ti.i32), n[axis])
        fraction[ti.i32(axis), k] = x - ti.cast(lowest, ti.f32)
        first += lowest * stride
        if ti.static(staggered):
            up = ti.min(ti.cast(x + ti.f32(0.5), ti.i32), n[axis])
            up_fraction[ti.i32(axis), k] = x + ti.f32(0.5) - ti.cast(up, ti.f32)
            base[ti.i32(axis), k] = (up - lowest) * stride
    if ti.static(staggered):
        for axis in ti.static(range(n.n)):
            base[ti.i32(axis), k] = base[ti.i32(axis), k] + first
    else:
        base[ti.i32(0), k] = first


@ti.func
def _beyond(corner: ti.template(), s):
    """Distance in the flat array from the lowest corner to another."""
    distance = s[0] * 0
    for axis in ti.static(range(s.n)):
        if ti.static((corner >> axis) & 1):
            distance += s[axis]
    return distance


@ti.func
def _gather_rows(
    k, a: ti.template(), offset, base: ti.template(), line: ti.template(), fraction: ti.template(),
    rows: ti.template(), n,
):  # fmt: skip
    """The values around, already blended along the last axis."""
    s, f = strides_of(n), fraction[ti.i32(n.n - 1), k]
    first = address(offset + base[ti.i32(line), k], ARRAY_BITS)
    for row in ti.static(range(2 ** (n.n - 1))):
        c = first + _beyond(row, s)
        here = a[c]
        rows[ti.i32(row), k] = here + f * (a[c + 1] - here)


@ti.func
def _blend_rows(
    k, rows: ti.template(), fraction: ti.template(), up_fraction: ti.template(), moved: ti.template(),
    out: ti.template(), line: ti.template(), n,
):  # fmt: skip
    """Blend them along the other axes, and write what comes out into a line of ``out``."""
    values = column(rows, k)
    for d in ti.static(range(n.n - 2, -1, -1)):
        f = up_fraction[ti.i32(d), k] if ti.static(d == moved) else fraction[ti.i32(d), k]
        for row in ti.static(range(2**d)):
            values[row] += f * (values[row + 2**d] - values[row])
    out[ti.i32(line), k] = values[0]


@ti.func
def sample_velocity_of_run(
    m, u: ti.template(), place: ti.template(), args: ti.template(), out: ti.template(), n, staggered: ti.template(),
    width: ti.template(),
):  # fmt: skip
    """Velocity at the points ``place(k, *args)`` of the cell-centred index space, by linear interpolation."""
    points = ti.Matrix.zero(ti.f32, n.n, width)
    along_run(m, width, _put_point, (place, args, points))
    base = ti.Matrix.zero(ti.i32, ti.static(n.n if staggered else 1), width)
    fraction, up_fraction = ti.Matrix.zero(ti.f32, n.n, width), ti.Matrix.zero(ti.f32, n.n, width)
    rows = ti.Matrix.zero(ti.f32, 2 ** (n.n - 1), width)
    cells = cells_of(strides_of(n), n)
    along_run(m, width, _locate, (points, base, fraction, up_fraction, n, staggered))
    for axis in ti.static(range(n.n)):
        moved = ti.static(axis if staggered else -1)
        if ti.static(staggered and axis == n.n - 1):
            along_run(m, width, _gather_rows, (u, axis * cells, base, axis, up_fraction, rows, n))
        else:
            along_run(
                m, width, _gather_rows, (u, axis * cells, base, ti.static(axis if staggered else 0), fraction, rows, n)
            )
        along_run(m, width, _blend_rows, (rows, fraction, up_fraction, moved, out, axis, n))


@ti.func
def _put_point(k, place: ti.template(), args: ti.template(), points: ti.template()):
    set_column(points, k, place(k, *args))


@ti.func
def _sample_scattered(
    m, a: ti.template(), offset, place: ti.template(), args: ti.template(), out: ti.template(), n, width: ti.template()
):  # fmt: skip
    """``sample_run`` wherever the points are."""
    points = ti.Matrix.zero(ti.f32, n.n, width)
    base, fraction = ti.Matrix.zero(ti.i32, 1, width), ti.Matrix.zero(ti.f32, n.n, width)
    along_run(m, width, _put_point, (place, args, points))
    along_run(m, width, _locate, (points, base, fraction, fraction, n, False))
    if ti.static(out.n > 1):
        corners = ti.Matrix.zero(ti.f32, 2**n.n, width)
        along_run(m, width, _gather_corners, (a, offset, base, corners, n))
        along_run(m, width, _blend_corners, (corners, fraction, out))
    else:
        rows = ti.Matrix.zero(ti.f32, 2 ** (n.n - 1), width)
        along_run(m, width, _gather_rows, (a, offset, base, 0, fraction, rows, n))
        along_run(m, width, _blend_rows, (rows, fraction, fraction, -1, out, 0, n))


@ti.func
def _gather_corners(k, a: ti.template(), offset, base: ti.template(), corners: ti.template(), n):
    s, first = strides_of(n), address(offset + base[ti.i32(0), k], ARRAY_BITS)
    for corner in ti.static(range(2**n.n)):
        corners[ti.i32(corner), k] = a[first + _beyond(corner, s)]


@ti.func
def _blend_corners(
    k, corners: ti.template(), fraction: ti.template(), out: ti.template()
):  # fmt: skip
    values = column(corners, k)
    least, most = values[0], values[0]
    for corner in ti.static(range(1, corners.n)):
        least, most = at_most(least, values[corner]), at_least(most, values[corner])
    out[ti.i32(VALUE), k] = blend(values, column(fraction, k))
    out[ti.i32(LEAST), k] = least
    out[ti.i32(MOST), k] = most


@ti.func
def _find_shift(k, I, place: ti.template(), args: ti.template(), shifts: ti.template(), far: ti.template()):
    """How far a point lies from its own cell, and whether that is a cell or more along any axis.

    A whole cell is far: a blend with a part of 1 would be what is there only to rounding.
    """
    point = place(k, *args)
    for axis in ti.static(range(I.n)):
        shift = point[axis] - ti.cast(position_in_run(I, k, axis), ti.f32)
        shifts[ti.i32(axis), k] = shift
        far |= ti.cast(ti.abs(shift) >= ti.f32(1.0), ti.i32)


@ti.func
def _blend_around(k, a: ti.template(), c, s, shifts: ti.template(), out: ti.template()):
    """What lies at a point less than a cell from its own one, that of the run which begins at ``c``.

    All neighbours are read, wherever the point is: those of cells beside each other lie beside each other.
    """
    last = ti.static(s.n - 1)
    limited = ti.static(out.n > 1)
    f = column(shifts, k)
    value = ti.Vector([ti.f32(0.0)] * ti.static(3 ** (s.n - 1)))
    low, high = value, value
    for row in ti.static(range(3 ** (s.n - 1))):
        first = c - 1
        for axis in ti.static(range(s.n - 1)):
            first += ti.static(row // 3**axis % 3 - 1) * s[axis]
        # The same for all of the run, and of few bits, so that three addresses are one and small distances from it.
        cell = cell_of_run(address(first, ARRAY_BITS), k)
        own, there = a[cell + 1], ti.select(f[last] >= 0, a[cell + 2], a[cell])
        value[row] = own + ti.abs(f[last]) * (there - own)
        if ti.static(limited):
            low[row], high[row] = at_most(own, there), at_least(own, there)
    for axis in ti.static(range(s.n - 2, -1, -1)):
        up = f[axis] >= 0
        for row in ti.static(range(3**axis)):
            own = ti.static(row + 3**axis)
            above = ti.static(row + 2 * 3**axis)
            value[row] = value[own] + ti.abs(f[axis]) * (ti.select(up, value[above], value[row]) - value[own])
            if ti.static(limited):
                low[row] = at_most(low[own], ti.select(up, low[above], low[row]))
                high[row] = at_least(high[own], ti.select(up, high[above], high[row]))
    out[ti.i32(VALUE), k] = value[0]
    if ti.static(limited):
        out[ti.i32(LEAST), k] = low[0]
        out[ti.i32(MOST), k] = high[0]


@ti.func
def sample_run(
    m, c, I, a: ti.template(), offset, place: ti.template(), args: ti.template(), out: ti.template(), n,
    width: ti.template(),
):  # fmt: skip
    """Linear interpolation of ``a[offset + …]`` at the points ``place(k, *args)`` of the index space of ``a``.

    The run begins at ``I``, whose flat index is ``c``. What is found goes into the first line of ``out``; if that has
    three, the least and the largest of what each is made of go into the others: lines ``VALUE``, ``LEAST``, ``MOST``.
    """
    if ti.static(width == 1):
        _sample_scattered(m, a, offset, place, args, out, n, width)
    else:
        far, shifts = 0, ti.Matrix.zero(ti.f32, n.n, width)
        along_run(m, width, _find_shift, (I, place, args, shifts, far))
        if far == 0:
            along_run(m, width, _blend_around, (a, offset + c, strides_of(n), shifts, out))
        else:
            _sample_scattered(m, a, offset, place, args, out, n, width)
