"""Advection: everything is carried with the flow, by tracing back to where it came from.

A trace gives each place its displacement to the departure point (and, for MacCormack, to the arrival point), in cells.
Then one function carries every scalar and every velocity component alike. (Stam 1999; Selle et al. 2008 for clamped
MacCormack; Ralston 1962 for the third-order trace.)
"""

import math
from enum import Enum
from typing import NamedTuple

from .._ti import ti
from ..boundaries.solids import Solids
from ..boundaries.walls import SCALAR, Walls
from ..grid import Grid, Scratch, given
from ..kernels import (
    ARRAY_BITS,
    RUN,
    Array,
    IntArray,
    address,
    along_run,
    at_least,
    at_most,
    cell_of_run,
    cells_of,
    flat,
    kernel_family,
    put_run,
    strides_of,
)
from ..operators.differences import centre_velocity_at
from ..operators.ghosts import wrap_pair
from ..operators.interpolation import face_velocity_at, inside_box
from ..operators.placement import Placement
from ..operators.runs import (
    LEAST,
    MOST,
    VALUE,
    column,
    put_columns,
    sample_run,
    sample_velocity_of_run,
    set_column,
)  # fmt: skip


class Scheme(Enum):
    """How a value is carried: first order and diffusive, or second order with a limiter."""

    SEMI_LAGRANGIAN = "semi-lagrangian"
    MACCORMACK = "maccormack"


class Trace(Enum):
    """How a path is followed: one, two or three stages of Runge-Kutta."""

    EULER = "euler"
    RK2 = "rk2"
    RK3 = "rk3"


_CUT = 4096.0
"""Added to a displacement ahead that a solid cuts, so that nothing is corrected along it; the rest is good to 5e-4 cells."""

_FARTHEST = 0.1 * _CUT
"""Cells that a path may lead where there are solids: of the mean of four, what is no multiple of ``_CUT`` / 4 is the way."""

_NEAR = 2
"""Cells around a run outside of which nobody looks when no path is that long."""

_LOOKS_PER_CELL = 2.0
"""How often a path near a solid looks which cell it is in, so that it never steps over one."""

_CLEAR = 3.5
"""Distance in cells from the lower corner of a cell from which no solid is in it or in any of the cells around it."""


class Course(NamedTuple):
    """What a trace depends on, and the kernels with it.

    Attributes:
        trace: How many stages.
        faces: Whether paths begin at the faces of the velocity components, or at cell centres.
        wraps: Whether an axis is periodic.
        solids: Whether paths must keep out of solids.
        ahead: Whether the ways ahead are asked for too.
        sparse: Whether to note that a way back is longer than ``_NEAR`` cells.
        on: Where the velocity lies.
    """

    trace: Trace
    faces: bool
    wraps: bool
    solids: bool
    ahead: bool
    sparse: bool
    on: Placement


class Cargo(NamedTuple):
    """What carrying a quantity along paths depends on.

    Attributes:
        faces: Whether it is a velocity component on its faces, or lies at cell centres.
        between: Whether it lies at cell centres and the paths begin at the faces around.
        wraps: Whether an axis is periodic.
        solids: Whether paths may end at solids.
        passage: Whether they may leave the box.
        beside: Whether only cells count that are seen from a departure point, no solid being between.
        sparse: Whether what comes from where there is nothing is not looked at.
    """

    faces: bool
    between: bool
    wraps: bool
    solids: bool
    passage: bool
    beside: bool
    sparse: bool


@ti.func
def _wrapped(q, lower, period, wraps: ti.template()):
    """``q`` moved by whole periods into the box, which begins at ``lower``, along axes that have one."""
    p = q
    if ti.static(wraps):
        for axis in ti.static(range(q.n)):
            if period[axis] > 0:
                p[axis] -= period[axis] * ti.floor((q[axis] - lower[axis]) / period[axis])
    return p


@ti.func
def _along_axis(v, axis):
    """The component of ``v`` along an axis that is known only as the program runs."""
    own = v[0]
    for d in ti.static(range(1, v.n)):
        own = ti.select(d == axis, v[d], own)
    return own


@ti.func
def _begin_path(
    k, c, I, u: ti.template(), axis, begin: ti.template(), first: ti.template(), n, course: ti.template()
):  # fmt: skip
    """Where the values with these integer positions lie, and the velocity there."""
    q = ti.cast(I, ti.f32)
    q[n.n - 1] += ti.cast(k, ti.f32)
    if ti.static(course.faces):
        for d in ti.static(range(n.n)):
            q[d] -= ti.select(d == axis, ti.f32(0.5), ti.f32(0.0))
        set_column(first, k, face_velocity_at(u, cell_of_run(c, k), axis, n))
    else:
        set_column(first, k, course.on.at_centre(u, cell_of_run(c, k), n))
    set_column(begin, k, q)


@ti.func
def _point_on_way(
    k, begin: ti.template(), velocity: ti.template(), step, n, period, course: ti.template(), own: ti.template(), axis
):  # fmt: skip
    """Where a path has come to, in the index space of the centres, or in that of the faces along ``axis`` as ``own``."""
    q = column(begin, k) + step * column(velocity, k)
    p = inside_box(_wrapped(q, ti.Vector([ti.f32(0.5)] * n.n), period, course.wraps), n)
    if ti.static(own):
        for d in ti.static(range(n.n)):
            p[d] += ti.select(d == axis, ti.f32(0.5), ti.f32(0.0))
    return p


@ti.func
def _combine_stages(
    k, first: ti.template(), second: ti.template(), mean: ti.template(), own: ti.template(), axis
):  # fmt: skip
    """The mean of three stages, the third of which is in ``mean``."""
    weighted = ti.f32(2.0 / 9.0) * column(first, k) + ti.f32(3.0 / 9.0) * column(second, k)
    if ti.static(own):
        mean[ti.i32(0), k] = _along_axis(weighted, axis) + ti.f32(4.0 / 9.0) * mean[ti.i32(0), k]
    else:
        set_column(mean, k, weighted + ti.f32(4.0 / 9.0) * column(mean, k))


@ti.func
def _take_first_stage(k, first: ti.template(), mean: ti.template(), own: ti.template(), axis):
    if ti.static(own):
        mean[ti.i32(0), k] = _along_axis(column(first, k), axis)
    else:
        set_column(mean, k, column(first, k))


@ti.func
def _sample_on_way(
    m, c, I, u: ti.template(), begin: ti.template(), velocity: ti.template(), step, out: ti.template(), n, period,
    course: ti.template(), own: ti.template(), axis, width: ti.template(),
):  # fmt: skip
    """Velocity where the paths of a run have come to after ``step`` times a velocity, or only its ``own`` component."""
    if ti.static(own):
        sample_run(
            m, c, I, u, axis * cells_of(strides_of(n), n),
            _point_on_way, (begin, velocity, step, n, period, course, own, axis), out, n, width,
        )  # fmt: skip
    else:
        sample_velocity_of_run(
            m, u, _point_on_way, (begin, velocity, step, n, period, course, own, axis), out, n,
            ti.static(not course.on.collocated), width,
        )  # fmt: skip


@ti.func
def _find_mean_velocity(
    m, c, I, u: ti.template(), begin: ti.template(), first: ti.template(), step, mean: ti.template(), n, period,
    course: ti.template(), own: ti.template(), axis, width: ti.template(),
):  # fmt: skip
    """Mean velocity of the ways of a run from ``begin``, where the velocity is ``first``, for ``step`` = ±dt / dx.

    ``own`` asks for nothing but its component along ``axis``, in the first line of ``mean``.
    """
    if ti.static(course.trace == Trace.EULER):
        along_run(m, width, _take_first_stage, (first, mean, own, axis))
    elif ti.static(course.trace == Trace.RK2):
        _sample_on_way(
            m, c, I, u, begin, first, ti.f32(0.5) * step, mean, n, period, course, own, axis, width
        )  # fmt: skip
    else:
        second = ti.Matrix.zero(ti.f32, n.n, width)
        _sample_on_way(
            m, c, I, u, begin, first, ti.f32(0.5) * step, second, n, period, course, False, axis, width
        )  # fmt: skip
        _sample_on_way(
            m, c, I, u, begin, second, ti.f32(0.75) * step, mean, n, period, course, own, axis, width
        )  # fmt: skip
        along_run(m, width, _combine_stages, (first, second, mean, own, axis))


@ti.func
def _sees(H, P, open: ti.template(), s, cells):
    """Whether cell ``P`` is reached from its neighbour ``H`` through open faces, along the axes in one order or the other."""
    seen = 0
    for backwards in ti.static(range(2)):
        J = H
        clear = 1
        for k in ti.static(range(s.n)):
            axis = ti.static(s.n - 1 - k if backwards else k)
            if P[axis] != J[axis]:
                face = flat(J, s) + axis * cells
                if P[axis] > J[axis]:
                    face += s[axis]
                if open[face] == 0:
                    clear = 0
                J[axis] = P[axis]
        seen = ti.max(seen, clear)
    return seen


@ti.func
def _before_solids(q, end, open: ti.template(), distance: ti.template(), inv_dx, n, period, course: ti.template()):
    """How much of the straight way from ``q`` to ``end`` leads through open faces, 0 to 1."""
    free = ti.f32(1.0)
    if ti.static(course.solids):
        s = strides_of(n)
        length = ti.sqrt((end - q).norm_sqr())
        H = ti.cast(ti.floor(q + ti.f32(0.5)), ti.i32)
        if distance[flat(ti.min(ti.max(H, 1), n), s)] * inv_dx < length + ti.f32(_CLEAR):
            home, steps = H, ti.cast(ti.ceil(length * ti.f32(_LOOKS_PER_CELL)), ti.i32)
            for k in range(1, steps + 1):
                part = ti.cast(k, ti.f32) / ti.cast(steps, ti.f32)
                P = ti.cast(ti.floor(q + part * (end - q) + ti.f32(0.5)), ti.i32)
                there = home + P - H
                inside = 1
                for axis in ti.static(range(n.n)):
                    # Beyond a side of the box there is nothing to run into.
                    if period[axis] == 0 and (there[axis] < 1 or there[axis] > n[axis]):
                        inside = 0
                if inside == 1:
                    # Taichi evaluates all of a condition, and outside the box there are no faces to look at.
                    if free == 1:
                        if _sees(home, there, open, s, cells_of(s, n)) == 0:
                            free = ti.cast(k - 1, ti.f32) / ti.cast(steps, ti.f32)
                    H = P
                    home = there
                    for axis in ti.static(range(n.n)):
                        if home[axis] < 1:
                            home[axis] += n[axis]
                        if home[axis] > n[axis]:
                            home[axis] -= n[axis]
    return free


@ti.func
def _end_way(
    k, begin: ti.template(), mean: ti.template(), open: ti.template(), distance: ti.template(), inv_dx, n, period, step,
    course: ti.template(), ahead: ti.template(), free: ti.template(), displacement: ti.template(),
):  # fmt: skip
    """Displacement to where a path ends, at the latest at a solid; ``free`` is how much of the way there leads.

    What goes back as far as a solid, or ``ahead`` as far as one, is not traced there and back: ``_CUT`` says so.
    """
    q = column(begin, k)
    way = step * column(mean, k)
    if ti.static(course.solids):
        way = at_most(at_least(way, ti.f32(-_FARTHEST)), ti.f32(_FARTHEST))
        part = _before_solids(q, q + way, open, distance, inv_dx, n, period, course)
        way *= part
        if ti.static(ahead):
            if ti.min(free[k], part) < 1:
                way += ti.f32(_CUT)
        else:
            free[k] = part
    set_column(displacement, k, way)


@ti.func
def _find_ways(
    m, c, I, u: ti.template(), axis, open: ti.template(), distance: ti.template(), inv_dx, n, period, step,
    backward: ti.template(), forward: ti.template(), course: ti.template(), width: ti.template(),
):  # fmt: skip
    """The displacements of a run of values: ``backward``, and where they are asked for ``forward``."""
    begin, first = ti.Matrix.zero(ti.f32, n.n, width), ti.Matrix.zero(ti.f32, n.n, width)
    mean, free = ti.Matrix.zero(ti.f32, n.n, width), ti.Vector([ti.f32(1.0)] * width)
    along_run(m, width, _begin_path, (c, I, u, axis, begin, first, n, course))
    _find_mean_velocity(m, c, I, u, begin, first, -step, mean, n, period, course, False, axis, width)
    along_run(
        m, width, _end_way,
        (begin, mean, open, distance, inv_dx, n, period, -step, course, False, free, backward),
    )  # fmt: skip
    if ti.static(course.ahead):
        _find_mean_velocity(m, c, I, u, begin, first, step, mean, n, period, course, False, axis, width)
        along_run(
            m, width, _end_way,
            (begin, mean, open, distance, inv_dx, n, period, step, course, True, free, forward),
        )  # fmt: skip


@ti.func
def _find_far(k, step, ways: ti.template(), far: ti.template()):
    for line in ti.static(range(ways.n)):
        # Rounding must not take a path that is just near to a cell further away.
        far |= ti.cast(ti.abs(step * ways[ti.i32(line), k]) > ti.f32(_NEAR - 0.01), ti.i32)


@ti.func
def _note_far(m, step, ways: ti.template(), occupied: ti.template(), course: ti.template(), width: ti.template()):
    """Say in the last place of ``occupied`` that some way of a run, of ``step`` times what is given, is not near."""
    if ti.static(course.sparse):
        far = 0
        along_run(m, width, _find_far, (step, ways, far))
        if far != 0:
            occupied[occupied.shape[0] - 1] = ti.i32(1)


@ti.func
def _put_within(k, out: ti.template(), c, found: ti.template()):
    """Rounding may carry a blend past a corner by one unit in the last place."""
    out[cell_of_run(c, k)] = at_most(at_least(found[ti.i32(VALUE), k], found[ti.i32(LEAST), k]), found[ti.i32(MOST), k])


@ti.func
def _put_own(k, a: ti.template(), c, axis, step, columns: ti.template(), n):
    """Write the displacement along ``axis``: what ``columns`` says of it, or all that they say, times ``step``."""
    own = columns[ti.i32(0), k] if ti.static(columns.n == 1) else _along_axis(column(columns, k), axis)
    a[cell_of_run(c, k) + axis * cells_of(strides_of(n), n)] = step * own


@ti.func
def _write_own_ways(
    m, c, I, u: ti.template(), axis, open: ti.template(), distance: ti.template(), inv_dx, departure: ti.template(),
    arrival: ti.template(), n, period, step, occupied: ti.template(), course: ti.template(), width: ti.template(),
):  # fmt: skip
    """Of the ways that begin at the faces along ``axis`` the displacements along it: all that anybody reads there."""
    if ti.static(course.solids):
        backward, forward = ti.Matrix.zero(ti.f32, n.n, width), ti.Matrix.zero(ti.f32, n.n, width)
        _find_ways(m, c, I, u, axis, open, distance, inv_dx, n, period, step, backward, forward, course, width)
        along_run(m, width, _put_own, (departure, c, axis, ti.f32(1.0), backward, n))
        if ti.static(course.ahead):
            along_run(m, width, _put_own, (arrival, c, axis, ti.f32(1.0), forward, n))
    else:
        begin, first = ti.Matrix.zero(ti.f32, n.n, width), ti.Matrix.zero(ti.f32, n.n, width)
        mean = ti.Matrix.zero(ti.f32, 1, width)
        along_run(m, width, _begin_path, (c, I, u, axis, begin, first, n, course))
        # One code for both ways: two would compile for more than twice as long.
        for way in range(ti.static(2 if course.ahead else 1)):
            signed = ti.select(way == 0, -step, step)
            _find_mean_velocity(m, c, I, u, begin, first, signed, mean, n, period, course, True, axis, width)
            if way == 0:
                along_run(m, width, _put_own, (departure, c, axis, signed, mean, n))
                _note_far(m, step, mean, occupied, course, width)
            else:
                along_run(m, width, _put_own, (arrival, c, axis, signed, mean, n))


@ti.func
def _write_ways(
    c, I, m, s, u: ti.template(), open: ti.template(), distance: ti.template(), inv_dx, departure: ti.template(),
    arrival: ti.template(), n, period, step, occupied: ti.template(), course: ti.template(), width: ti.template(),
):  # fmt: skip
    if ti.static(course.faces):
        for axis in range(n.n):
            _write_own_ways(
                m, c, I, u, axis, open, distance, inv_dx, departure, arrival, n, period, step, occupied, course, width
            )  # fmt: skip
    else:
        backward, forward = ti.Matrix.zero(ti.f32, n.n, width), ti.Matrix.zero(ti.f32, n.n, width)
        _find_ways(m, c, I, u, 0, open, distance, inv_dx, n, period, step, backward, forward, course, width)
        along_run(m, width, put_columns, (departure, c, backward, n))
        _note_far(m, ti.f32(1.0), backward, occupied, course, width)
        if ti.static(course.ahead):
            along_run(m, width, put_columns, (arrival, c, forward, n))


@ti.func
def _write_own_ways_at(
    c, I, s, u: ti.template(), axis, open: ti.template(), distance: ti.template(), inv_dx, departure: ti.template(),
    arrival: ti.template(), n, period, step, occupied: ti.template(), course: ti.template(),
):  # fmt: skip
    _write_own_ways(1, c, I, u, axis, open, distance, inv_dx, departure, arrival, n, period, step, occupied, course, 1)


@ti.func
def _end_paths_at(c, I, s, paths: ti.template(), n, period, closed, axis: ti.template(), component: ti.template()):
    """What the mean of four of the displacements along ``component`` reads beside those that were traced."""
    lower = component * cells_of(s, n) + c
    if period[axis] > 0:
        wrap_pair(paths, lower, s, n, axis)
    elif ti.static(axis != component):
        paths[lower] = paths[lower + s[axis]]
    elif closed[axis] == 1:
        paths[lower + (n[axis] + 1) * s[axis]] = ti.f32(0.0)


@ti.func
def _uncut(way):
    """A displacement, or the mean of four, without what says that solids cut it."""
    return way - ti.f32(_CUT / 4) * ti.floor(way * ti.f32(4 / _CUT) + ti.f32(0.5))


@ti.func
def _way_at(paths: ti.template(), c, axis, n, cargo: ti.template()):
    """Displacement of what is carried, along its own axis with the mark of a cut."""
    way = ti.cast(n, ti.f32)
    if ti.static(cargo.faces):
        way = face_velocity_at(paths, c, axis, n)
    elif ti.static(cargo.between):
        way = centre_velocity_at(paths, c, n)
    else:
        for d in ti.static(range(n.n)):
            way[d] = paths[c + d * cells_of(strides_of(n), n)]
    return way


@ti.func
def _end_of_path(
    k, c, I, paths: ti.template(), axis, known: ti.template(), n, lower, upper, period, cargo: ti.template()
):  # fmt: skip
    """Where a path of a run ends, in the index space of what is carried; ``known`` becomes 1 if something lies there."""
    q, there = ti.cast(I, ti.f32), ti.f32(1.0)
    q[n.n - 1] += ti.cast(k, ti.f32)
    way = _way_at(paths, cell_of_run(c, k), axis, n, cargo)
    if ti.static(cargo.solids):
        there = ti.select(_along_axis(way, axis) < ti.f32(_CUT / 2), there, ti.f32(0.0))
        way = _uncut(way)
    end = _wrapped(q + way, lower, period, cargo.wraps)
    inside = at_most(at_least(end, lower), upper)
    if ti.static(cargo.passage):
        for d in ti.static(range(n.n)):
            there = ti.select(inside[d] == end[d], there, ti.f32(0.0))
    if ti.static(cargo.passage or cargo.solids):
        known[k] = there
    return inside


@ti.func
def _look_beside(
    k, a: ti.template(), offset, place: ti.template(), args: ti.template(), found: ti.template(), n,
    open: ti.template(), distance: ti.template(), inv_dx,
):  # fmt: skip
    """Near solids only cells count that can be seen from the one that holds the point: nothing comes through a wall."""
    s, q = strides_of(n), place(k, *args)
    home = ti.min(ti.max(ti.cast(q + ti.f32(0.5), ti.i32), 1), n)
    if distance[flat(home, s)] * inv_dx < ti.f32(_CLEAR):
        here = a[offset + flat(home, s)]
        total, weights = here * ti.f32(0.0), here * ti.f32(0.0)
        low, high = here, here
        for corner in range(2**n.n):
            P = home
            w = ti.f32(1.0)
            for axis in ti.static(range(n.n)):
                base = ti.min(ti.cast(q[axis], ti.i32), n[axis])
                f = q[axis] - ti.cast(base, ti.f32)
                if (corner >> axis) & 1:
                    P[axis] = base + 1
                    w *= f
                else:
                    P[axis] = base
                    w *= ti.f32(1.0) - f
            if _sees(home, P, open, s, cells_of(s, n)) == 1:
                there = a[offset + flat(P, s)]
                total += w * there
                weights += w
                low, high = at_most(low, there), at_least(high, there)
        if weights > ti.f32(1e-6):
            here = total / weights
        found[ti.i32(VALUE), k] = here
        if ti.static(found.n > 1):
            found[ti.i32(LEAST), k] = low
            found[ti.i32(MOST), k] = high


@ti.pyfunc
def _stretches_of_row(cells):
    """A row is a ghost, stretches of ``RUN`` cells as runs have them, and what is left with the other ghost."""
    return cells // RUN + 2


@ti.func
def _stretch_at(I, stretch, n):
    """Place of a stretch of the row of ``I`` among all."""
    row = I[0]
    for axis in ti.static(range(1, n.n - 1)):
        row = row * (n[axis] + 2) + I[axis]
    return row * _stretches_of_row(n[n.n - 1]) + stretch


@ti.func
def _stretch_of_run(I):
    return (I[I.n - 1] + RUN - 1) // RUN


@ti.func
def _noted_at(I, occupied: ti.template(), n):
    """Where the prediction says whether it has found anything: in the half that nobody looks at any more."""
    place = _stretch_at(I, _stretch_of_run(I), n)
    if ti.static(n.n == 2):
        place += occupied.shape[0] // 2
    return place


@ti.func
def _mark_stretch_at(c, I, s, a: ti.template(), offset, occupied: ti.template(), n):
    """Note whether anything but 0 is within ``_NEAR`` cells of a stretch of this row.

    Which one stands in the place of the last coordinate.
    """
    last = ti.static(n.n - 1)
    first = ti.max(I[last] * RUN - (RUN - 1) - _NEAR, 0)
    end = ti.min(I[last] * RUN + 1 + _NEAR, n[last] + 2)
    J = I
    J[last] = first
    start = address(offset + flat(J, s), ARRAY_BITS)
    bits = 0
    for k in range(end - first):
        bits |= ti.bit_cast(a[cell_of_run(start, k)], ti.i32)
    occupied[_stretch_at(I, I[last], n)] = ti.cast((bits & ti.i32(0x7FFFFFFF)) != 0, ti.i32)


@ti.func
def _any_beside(place, along, step, last, noted: ti.template()):
    """Whether any of the rows is marked that lie within ``_NEAR`` of the one at ``along``, ``step`` apart in ``noted``."""
    anything = ti.i32(0)
    for k in ti.static(range(-_NEAR, _NEAR + 1)):
        anything |= noted[place + (ti.min(ti.max(along + k, 0), last) - along) * step]
    return anything


@ti.func
def _spread_mark_at(c, I, s, occupied: ti.template(), n):
    """The same of the rows beside it in its plane."""
    place = _stretch_at(I, I[2], n)
    occupied[occupied.shape[0] // 2 + place] = _any_beside(place, I[1], _stretches_of_row(n[2]), n[1] + 1, occupied)


@ti.func
def _is_anything_near(I, occupied: ti.template(), n):
    """Whether anything but 0 may be where the paths of a run come from."""
    place, step = _stretch_at(I, _stretch_of_run(I), n), _stretches_of_row(n[n.n - 1])
    if ti.static(n.n == 3):
        place += occupied.shape[0] // 2
        step *= n[1] + 2
    return occupied[occupied.shape[0] - 1] | _any_beside(place, I[0], step, n[0] + 1, occupied)


@ti.func
def _put_nothing(k, a: ti.template(), c):
    a[cell_of_run(c, k)] = ti.f32(0.0)


@ti.func
def _sample_ends(
    m, c, I, a: ti.template(), paths: ti.template(), axis, known: ti.template(), found: ti.template(), n, offset, lower,
    upper, period, open: ti.template(), distance: ti.template(), inv_dx, cargo: ti.template(), width: ti.template(),
):  # fmt: skip
    """What lies where the paths of a run end; ``known`` and ``found`` as in ``_end_of_path`` and ``sample_run``."""
    sample_run(
        m, c, I, a, offset, _end_of_path, (c, I, paths, axis, known, n, lower, upper, period, cargo), found, n, width
    )  # fmt: skip
    if ti.static(cargo.beside):
        along_run(
            m, width, _look_beside,
            (a, offset, _end_of_path, (c, I, paths, axis, known, n, lower, upper, period, cargo), found, n, open, distance, inv_dx),
        )  # fmt: skip


@ti.func
def _semi_lagrangian_of_run(
    c, I, m, s, a: ti.template(), departure: ti.template(), axis, out: ti.template(), n, offset, lower, upper, period,
    open: ti.template(), distance: ti.template(), inv_dx, occupied: ti.template(), cargo: ti.template(),
    width: ti.template(),
):  # fmt: skip
    anything = 1
    if ti.static(cargo.sparse):
        anything = _is_anything_near(I, occupied, n)
    if anything == 1:
        found, known = ti.Matrix.zero(ti.f32, 3, width), ti.Vector([ti.f32(1.0)] * width)
        _sample_ends(
            m, c, I, a, departure, axis, known, found, n, offset, lower, upper, period, open, distance, inv_dx, cargo, width
        )  # fmt: skip
        along_run(m, width, _put_within, (out, offset + c, found))
    else:
        along_run(m, width, _put_nothing, (out, offset + c))


@ti.func
def _predict_run(
    c, I, m, s, a: ti.template(), departure: ti.template(), axis, predicted: ti.template(), least: ti.template(),
    most: ti.template(), n, offset, lower, upper, period, open: ti.template(), distance: ti.template(), inv_dx,
    occupied: ti.template(), cargo: ti.template(), width: ti.template(),
):  # fmt: skip
    anything = ti.i32(1)
    if ti.static(cargo.sparse):
        anything = _is_anything_near(I, occupied, n)
        occupied[_noted_at(I, occupied, n)] = anything
    if anything == 1:
        found, known = ti.Matrix.zero(ti.f32, 3, width), ti.Vector([ti.f32(1.0)] * width)
        _sample_ends(
            m, c, I, a, departure, axis, known, found, n, offset, lower, upper, period, open, distance, inv_dx, cargo, width
        )  # fmt: skip
        along_run(m, width, put_run, (predicted, c, found, VALUE))
        along_run(m, width, put_run, (least, c, found, LEAST))
        along_run(m, width, put_run, (most, c, found, MOST))
    else:
        # Where nothing is found nobody asks for the limits.
        along_run(m, width, _put_nothing, (predicted, c))


@ti.func
def _correct_run(
    c, I, m, s, a: ti.template(), predicted: ti.template(), least: ti.template(), most: ti.template(),
    arrival: ti.template(), axis, out: ti.template(), n, offset, lower, upper, period, open: ti.template(),
    distance: ti.template(), inv_dx, occupied: ti.template(), cargo: ti.template(), width: ti.template(),
):  # fmt: skip
    anything = 1
    if ti.static(cargo.sparse):
        anything = occupied[_noted_at(I, occupied, n)]
    if anything == 1:
        found, known = ti.Matrix.zero(ti.f32, 1, width), ti.Vector([ti.f32(1.0)] * width)
        _sample_ends(
            m, c, I, predicted, arrival, axis, known, found, n, 0, lower, upper, period, open, distance, inv_dx, cargo, width
        )  # fmt: skip
        along_run(m, width, _correct, (c, a, offset, predicted, found, known, least, most, cargo))
        along_run(m, width, put_run, (out, offset + c, found, VALUE))
    else:
        along_run(m, width, _put_nothing, (out, offset + c))


@ti.func
def _correct(
    k, c, a: ti.template(), offset, predicted: ti.template(), found: ti.template(), known: ti.template(),
    least: ti.template(), most: ti.template(), cargo: ti.template(),
):  # fmt: skip
    """MacCormack: add half of what is lost on the way back and forth, limited to the values it came from."""
    here = cell_of_run(c, k)
    lost = a[offset + here] - found[ti.i32(VALUE), k]
    if ti.static(cargo.passage or cargo.solids):
        lost = ti.select(known[k] > 0, lost, ti.f32(0.0))
    found[ti.i32(VALUE), k] = at_most(at_least(predicted[here] + ti.f32(0.5) * lost, least[here]), most[here])


@kernel_family
def trace_kernels(loops, course):
    IntVector, FloatVector, each_run, width = loops.IntVector, loops.FloatVector, loops.each_run, loops.width
    each_cell_in, each_on_plane, dim = loops.each_cell_in, loops.each_on_plane, loops.dim

    @ti.kernel
    def trace(
        velocity: Array, open: Array, distance: Array, inv_dx: ti.f32, departure: Array, arrival: Array, n: IntVector,
        period: FloatVector, step: ti.f32, occupied: IntArray,
    ):  # fmt: skip
        if ti.static(course.sparse):
            ti.loop_config(serialize=True)
            for _ in range(1):
                occupied[occupied.shape[0] - 1] = ti.i32(0)
        each_run(
            n, width, _write_ways,
            (velocity, open, distance, inv_dx, departure, arrival, n, period, step, occupied, course, width),
        )  # fmt: skip

    @ti.kernel
    def trace_box(
        velocity: Array, open: Array, distance: Array, inv_dx: ti.f32, departure: Array, arrival: Array, n: IntVector,
        period: FloatVector, step: ti.f32, occupied: IntArray, axis: ti.i32, lower: IntVector, upper: IntVector,
    ):  # fmt: skip
        """From the faces along one axis between two integer positions."""
        each_cell_in(
            lower, upper, n, _write_own_ways_at,
            (velocity, axis, open, distance, inv_dx, departure, arrival, n, period, step, occupied, course),
        )  # fmt: skip

    @ti.kernel
    def end_paths(paths: Array, n: IntVector, period: FloatVector, closed: IntVector):
        """Ghosts of displacements along faces, and the faces on upper sides that nothing passes."""
        for component in ti.static(range(dim)):
            for k in ti.static(range(dim)):
                axis = ti.static((component + k) % dim)
                each_on_plane(n, axis, _end_paths_at, (paths, n, period, closed, axis, component))

    return {"trace": trace, "trace_box": trace_box, "end_paths": end_paths}


@kernel_family
def advection_kernels(loops, cargo):
    IntVector, FloatVector, each_run, width = loops.IntVector, loops.FloatVector, loops.each_run, loops.width
    each_cell_in, dim = loops.each_cell_in, loops.dim

    @ti.kernel
    def mark_occupied(a: Array, offset: ti.i32, occupied: IntArray, n: IntVector):
        ends = n + 2
        ends[dim - 1] = _stretches_of_row(n[dim - 1])
        each_cell_in(n * 0, ends, n, _mark_stretch_at, (a, offset, occupied, n))
        if ti.static(dim == 3):
            each_cell_in(n * 0, ends, n, _spread_mark_at, (occupied, n))

    @ti.kernel
    def semi_lagrangian(
        a: Array, departure: Array, axis: ti.i32, out: Array, n: IntVector, offset: ti.i32, lower: FloatVector,
        upper: FloatVector, period: FloatVector, open: Array, distance: Array, inv_dx: ti.f32,
        occupied: IntArray,
    ):  # fmt: skip
        each_run(
            n, width, _semi_lagrangian_of_run,
            (a, departure, axis, out, n, offset, lower, upper, period, open, distance, inv_dx, occupied, cargo, width),
        )  # fmt: skip

    @ti.kernel
    def predict(
        a: Array, departure: Array, axis: ti.i32, predicted: Array, least: Array, most: Array, n: IntVector,
        offset: ti.i32, lower: FloatVector, upper: FloatVector, period: FloatVector, open: Array, distance: Array,
        inv_dx: ti.f32, occupied: IntArray,
    ):  # fmt: skip
        each_run(
            n, width, _predict_run,
            (a, departure, axis, predicted, least, most, n, offset, lower, upper, period, open, distance, inv_dx, occupied, cargo, width),
        )  # fmt: skip

    @ti.kernel
    def correct(
        a: Array, predicted: Array, least: Array, most: Array, arrival: Array, axis: ti.i32, out: Array, n: IntVector,
        offset: ti.i32, lower: FloatVector, upper: FloatVector, period: FloatVector, open: Array, distance: Array,
        inv_dx: ti.f32, occupied: IntArray,
    ):  # fmt: skip
        """``out`` may be ``a``, of which each cell reads its own value before it writes it."""
        each_run(
            n, width, _correct_run,
            (a, predicted, least, most, arrival, axis, out, n, offset, lower, upper, period, open, distance, inv_dx, occupied, cargo, width),
        )  # fmt: skip

    return {"mark_occupied": mark_occupied, "semi_lagrangian": semi_lagrangian, "predict": predict, "correct": correct}


class Advection:
    """Carries quantities with a velocity.

    Args:
        grid: The grid.
        walls: Its sides.
        scratch: Arrays to work in.
        scheme: Semi-Lagrangian or clamped MacCormack.
        trace: How paths are followed.
        solids: What paths must keep out of; its distance is read whenever paths are traced.

    Attributes:
        in_place: Whether ``carry`` may write to the array that it reads, as MacCormack's correction can.
        shares_paths: Whether what lies at centres can be carried along the paths of the faces. Not beside solids: from
            half a cell away something else may be in the way.

    Use:
        ``trace_paths`` once for the places of a quantity, then ``carry`` each quantity that lies there, or between;
        ``carry_velocity`` for the velocity itself. Paths last until anything else works in ``scratch``.
    """

    def __init__(
        self, grid: Grid, walls: Walls, scratch: Scratch, scheme: Scheme, trace: Trace, solids: Solids | None = None
    ):  # fmt: skip
        self.grid, self.walls, self.solids = grid, walls, solids
        self.scheme, self.trace = Scheme(scheme), Trace(trace)
        self.in_place = self.scheme is Scheme.MACCORMACK
        self.shares_paths = solids is None
        self._room, self._predicted, self._limits = scratch.vector, scratch.first, (scratch.second, scratch.third)
        self._worked_in = (self._room, self._predicted, *self._limits)
        self._departure = self._own_departure = None
        self._on_faces = False
        self._nothing = ti.ndarray(ti.f32, 1), ti.ndarray(ti.f32, 1)
        # What comes from where there is nothing need not be looked at, which pays where a loop takes rows. On the other
        # side of a seam nobody looks.
        self._sparse = grid.costly_loops.rows and not any(walls.periodic)
        self._occupied = ti.ndarray(ti.i32, 2 * self._stretches + 1 if self._sparse else 1)

    def trace_paths(self, velocity, dt: float, *, faces: bool = False, departure=None) -> None:
        """Follow the flow for ``dt`` from the cell centres, or from the faces of a velocity that lies there.

        Args:
            velocity: What to follow.
            dt: Seconds.
            faces: Paths for the components of a velocity, and, where ``shares_paths`` says so, means of them for what
                lies at centres. On the collocated grid they are those of the centres.
            departure: An array of ``dim`` components that MacCormack's paths lie in as long as something is carried
                along them; left out, one is made and kept.

        Raises:
            ValueError: if ``departure`` is the velocity or an array that is worked in, and for arrays that are not of
                the grid.
        """
        self.grid.require(self.grid.dim, velocity=velocity, **given(departure=departure))
        if departure is not None and any(departure is array for array in (velocity, *self._worked_in)):
            raise ValueError("departure is the velocity or an array of scratch: give it one of its own")
        grid, walls, solids = self.grid, self.walls, self.solids
        self._on_faces = faces and not grid.collocated
        both = self.scheme is Scheme.MACCORMACK
        course = Course(
            self.trace, self._on_faces, any(walls.periodic), solids is not None, both, self._sparse, grid.placement
        )
        kernels, period = trace_kernels(grid.costly_loops, course), walls.periods
        if not both:
            departure = self._room
        elif departure is None:
            if self._own_departure is None:
                self._own_departure = grid.array(grid.dim)
            departure = self._own_departure
        self._departure = departure
        arrival = self._room if both else self._nothing[0]
        paths = (velocity, *self._near(solids), departure, arrival, grid.n, period, dt / grid.dx, self._occupied)
        kernels.trace(*paths)
        if self._on_faces:
            for axis, lower, upper in walls.upper_passages:
                kernels.trace_box(*paths, axis, lower, upper)
            for array in (departure, arrival) if both else (departure,):
                kernels.end_paths(array, grid.n, period, walls.closed)

    def carry(self, current, out, component: int = SCALAR, offset: int = 0, name: str | None = None) -> None:
        """``out`` = ``current`` carried along the traced paths, ghosts filled; both at ``offset`` in their arrays.

        Where ``in_place`` says so ``out`` may be ``current``. ``name`` is that of a scalar, by which the sides know
        what enters.

        Raises:
            ValueError: for arrays that are not of the grid, or no component that begins at ``offset``, and for one array
                where there must be two.
            RuntimeError: if no paths have been traced for what lies there.
        """
        self.grid.require(None, offset, current=current, out=out)
        if current is out and not self.in_place:
            raise ValueError("current and out are the same array")
        if out is self._departure:
            raise ValueError("out holds the paths along which it would be carried")
        on_faces = component != SCALAR and not self.grid.collocated
        between = self._on_faces and not on_faces
        if self._departure is None or on_faces > self._on_faces or between > self.shares_paths:
            raise RuntimeError(f"trace_paths(faces={component != SCALAR}) comes before carry() of what lies there")
        grid, walls = self.grid, self.walls
        # A velocity may be read beside solids.
        near = self.solids if component == SCALAR else None
        sparse = component == SCALAR and self._sparse
        cargo = Cargo(
            on_faces, between, any(walls.periodic), self.solids is not None, walls.has_passage, near is not None, sparse
        )
        kernels, axis = advection_kernels(grid.costly_loops, cargo), max(component, 0)
        if sparse:
            kernels.mark_occupied(current, offset, self._occupied, grid.n)
        around = (*self._near(near), self._occupied)
        where = (grid.n, offset, *walls.path_limits(component), walls.periods, *around)
        if self.scheme is Scheme.SEMI_LAGRANGIAN:
            kernels.semi_lagrangian(current, self._departure, axis, out, *where)
        else:
            kernels.predict(current, self._departure, axis, self._predicted, *self._limits, *where)
            walls.fill(self._predicted, component)
            where = (grid.n, offset, *walls.box_limits(component), walls.periods, *around)
            kernels.correct(current, self._predicted, *self._limits, self._room, axis, out, *where)
        walls.fill(out, component, offset, name)

    @property
    def _stretches(self) -> int:
        """Stretches of ``RUN`` cells in all rows, ghosts included."""
        *across, along = self.grid.shape
        return math.prod(n + 2 for n in across) * _stretches_of_row(along)

    def _near(self, solids: Solids | None):
        """What kernels are told of solids, or two words where there are none, and 1/dx."""
        return (*((solids.open, solids.distance) if solids else self._nothing), 1.0 / self.grid.dx)

    def carry_velocity(self, velocity, out, dt: float) -> None:
        """``out`` = the velocity carried with itself."""
        self.grid.require(self.grid.dim, velocity=velocity, out=out)
        if velocity is out and not self.in_place:
            raise ValueError("velocity and out are the same array")
        self.trace_paths(velocity, dt, faces=True)
        for axis in range(self.grid.dim):
            self.carry(velocity, out, axis, axis * self.grid.cells)
