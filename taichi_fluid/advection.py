"""Advection: everything is carried with the flow, by tracing back to where it came from.

A trace gives each place its displacement to the departure point (and, for MacCormack, to the arrival point), in cells.
Then one function carries every scalar and every velocity component alike. (Stam 1999; Selle et al. 2008 for clamped
MacCormack; Ralston 1962 for the third-order trace.)
"""

from enum import Enum
from typing import NamedTuple

from ._ti import ti
from .boundary import SCALAR, Walls
from .grid import Grid, Scratch
from .kernels import (
    Array,
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
from .operators.interpolation import face_velocity_at, inside_box
from .operators.placement import Placement
from .operators.runs import (
    LEAST,
    MOST,
    VALUE,
    column,
    sample_run,
    sample_run_with_limits,
    sample_velocity_of_run,
    set_column,
)  # fmt: skip
from .solids import Solids


class Scheme(Enum):
    """How a value is carried: first order and diffusive, or second order with a limiter."""

    SEMI_LAGRANGIAN = "semi-lagrangian"
    MACCORMACK = "maccormack"


class Trace(Enum):
    """How a path is followed: one, two or three stages of Runge-Kutta."""

    EULER = "euler"
    RK2 = "rk2"
    RK3 = "rk3"


_NO_WAY_BACK = 1e9
"""In place of the displacement to an arrival point: the value that was predicted stands."""


_LOOKS_PER_CELL = 2.0
"""How often a path near a solid looks which cell it is in, so that it never steps over one."""

_CLEAR = 3.5
"""Distance in cells from the lower corner of a cell from which no solid is in it or in any of the cells around it."""


class Course(NamedTuple):
    """What a trace depends on, and the kernels with it.

    Attributes:
        trace: How many stages.
        faces: Whether paths begin at the faces of a velocity component, or at cell centres.
        wraps: Whether an axis is periodic.
        solids: Whether paths must keep out of solids.
        passage: Whether they may leave the box.
        on: Where the velocity lies.
    """

    trace: Trace
    faces: bool
    wraps: bool
    solids: bool
    passage: bool
    on: Placement


@ti.func
def _wrapped(q, period, course: ti.template()):
    """``q`` moved by whole periods into the box, along axes that have one."""
    p = q
    if ti.static(course.wraps):
        for axis in ti.static(range(q.n)):
            if period[axis] > 0:
                p[axis] -= period[axis] * ti.floor((q[axis] - ti.f32(0.5)) / period[axis])
    return p


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
    k, begin: ti.template(), velocity: ti.template(), step, points: ti.template(), n, period, course: ti.template()
):
    q = column(begin, k) + step * column(velocity, k)
    set_column(points, k, inside_box(_wrapped(q, period, course), n))


@ti.func
def _combine_stages(k, first: ti.template(), second: ti.template(), third: ti.template(), mean: ti.template()):
    weighted = ti.f32(2.0 / 9.0) * column(first, k) + ti.f32(3.0 / 9.0) * column(second, k)
    set_column(mean, k, weighted + ti.f32(4.0 / 9.0) * column(third, k))


@ti.func
def _copy_column(k, a: ti.template(), b: ti.template()):
    set_column(b, k, column(a, k))


@ti.func
def _find_mean_velocity(
    m, u: ti.template(), begin: ti.template(), first: ti.template(), step, mean: ti.template(), n, period,
    course: ti.template(), width: ti.template(),
):  # fmt: skip
    """Mean velocity of the ways of a run from ``begin``, where the velocity is ``first``, for ``step`` = ±dt / dx."""
    points = ti.Matrix.zero(ti.f32, n.n, width)
    staggered = ti.static(not course.on.collocated)
    if ti.static(course.trace == Trace.EULER):
        along_run(m, width, _copy_column, (first, mean))
    elif ti.static(course.trace == Trace.RK2):
        along_run(m, width, _point_on_way, (begin, first, ti.f32(0.5) * step, points, n, period, course))
        sample_velocity_of_run(m, u, points, mean, n, staggered, width)
    else:
        second, third = ti.Matrix.zero(ti.f32, n.n, width), ti.Matrix.zero(ti.f32, n.n, width)
        along_run(m, width, _point_on_way, (begin, first, ti.f32(0.5) * step, points, n, period, course))
        sample_velocity_of_run(m, u, points, second, n, staggered, width)
        along_run(m, width, _point_on_way, (begin, second, ti.f32(0.75) * step, points, n, period, course))
        sample_velocity_of_run(m, u, points, third, n, staggered, width)
        along_run(m, width, _combine_stages, (first, second, third, mean))


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
        length = (end - q).norm()
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
                if free == 1 and inside == 1 and _sees(home, there, open, s, cells_of(s, n)) == 0:
                    free = ti.cast(k - 1, ti.f32) / ti.cast(steps, ti.f32)
                if inside == 1:
                    H = P
                    home = there
                    for axis in ti.static(range(n.n)):
                        if home[axis] < 1:
                            home[axis] += n[axis]
                        if home[axis] > n[axis]:
                            home[axis] -= n[axis]
    return free


@ti.func
def _end_way_back(
    k, begin: ti.template(), mean: ti.template(), open: ti.template(), distance: ti.template(), inv_dx, n, lower,
    upper, period, step, course: ti.template(), backward: ti.template(), free: ti.template(),
):  # fmt: skip
    """Displacement to the departure point, kept inside the box, and how much of the way there is free of solids."""
    q = column(begin, k)
    end = q - step * column(mean, k)
    if ti.static(course.solids):
        free[k] = _before_solids(q, end, open, distance, inv_dx, n, period, course)
        end = q + free[k] * (end - q)
    set_column(backward, k, at_most(at_least(_wrapped(end, period, course), lower), upper) - q)


@ti.func
def _end_way_ahead(
    k, begin: ti.template(), mean: ti.template(), open: ti.template(), distance: ti.template(), inv_dx, n, period,
    step, course: ti.template(), forward: ti.template(), free: ti.template(),
):  # fmt: skip
    """Displacement to the arrival point: the value that arrives stays inside the box, what lies beyond is not carried back.

    A path that ends at a solid, ``free`` being less than 1 on the way back, or has left through a side, is not traced
    back again: its arrival says so.
    """
    q = column(begin, k)
    end = q + step * column(mean, k)
    ahead = _wrapped(end, period, course)
    inside = inside_box(ahead, n)
    arrival = inside - q
    if ti.static(course.solids):
        if ti.min(free[k], _before_solids(q, end, open, distance, inv_dx, n, period, course)) < 1:
            arrival[0] = ti.f32(_NO_WAY_BACK)
    if ti.static(course.passage):
        if (inside - ahead).norm_sqr() > 0:
            arrival[0] = ti.f32(_NO_WAY_BACK)
    set_column(forward, k, arrival)


@ti.func
def _find_ways(
    m, c, I, u: ti.template(), axis, open: ti.template(), distance: ti.template(), inv_dx, n, lower, upper, period, step,
    backward: ti.template(), forward: ti.template(), ahead: ti.template(), course: ti.template(), width: ti.template(),
):  # fmt: skip
    """The displacements of a run of values: ``backward``, and where ``ahead`` is asked for ``forward``."""
    begin, first = ti.Matrix.zero(ti.f32, n.n, width), ti.Matrix.zero(ti.f32, n.n, width)
    mean, free = ti.Matrix.zero(ti.f32, n.n, width), ti.Vector([ti.f32(1.0)] * width)
    along_run(m, width, _begin_path, (c, I, u, axis, begin, first, n, course))
    _find_mean_velocity(m, u, begin, first, -step, mean, n, period, course, width)
    along_run(
        m, width, _end_way_back,
        (begin, mean, open, distance, inv_dx, n, lower, upper, period, step, course, backward, free),
    )  # fmt: skip
    if ti.static(ahead):
        _find_mean_velocity(m, u, begin, first, step, mean, n, period, course, width)
        along_run(
            m, width, _end_way_ahead,
            (begin, mean, open, distance, inv_dx, n, period, step, course, forward, free),
        )  # fmt: skip


@ti.func
def _put_columns(k, a: ti.template(), c, columns: ti.template(), n):
    cells = cells_of(strides_of(n), n)
    for d in ti.static(range(n.n)):
        a[cell_of_run(c, k) + d * cells] = columns[ti.i32(d), k]


@ti.func
def _put_within(k, out: ti.template(), c, found: ti.template()):
    """Rounding may carry a blend past a corner by one unit in the last place."""
    out[cell_of_run(c, k)] = at_most(at_least(found[ti.i32(VALUE), k], found[ti.i32(LEAST), k]), found[ti.i32(MOST), k])


@ti.func
def _write_ways(
    c, I, m, s, u: ti.template(), axis, open: ti.template(), distance: ti.template(), inv_dx, departure: ti.template(),
    arrival: ti.template(), n, lower, upper, period, step, ahead: ti.template(), course: ti.template(),
    width: ti.template(),
):  # fmt: skip
    backward, forward = ti.Matrix.zero(ti.f32, n.n, width), ti.Matrix.zero(ti.f32, n.n, width)
    _find_ways(
        m, c, I, u, axis, open, distance, inv_dx, n, lower, upper, period, step, backward, forward, ahead, course, width
    )  # fmt: skip
    along_run(m, width, _put_columns, (departure, c, backward, n))
    if ti.static(ahead):
        along_run(m, width, _put_columns, (arrival, c, forward, n))


@ti.func
def _move(k, I, displacement: ti.template(), points: ti.template()):
    """The index-space points that lie the displacements away from the cells of a run."""
    J = I
    J[I.n - 1] += k
    set_column(points, k, ti.cast(J, ti.f32) + column(displacement, k))


@ti.func
def _carry_component_of_run(
    c, I, m, s, u: ti.template(), axis, open: ti.template(), distance: ti.template(), inv_dx, out: ti.template(), n, lower,
    upper, period, step, course: ti.template(), width: ti.template(),
):  # fmt: skip
    """Trace and carry at once: what one component of a velocity needs its paths for is itself alone."""
    ways, points = ti.Matrix.zero(ti.f32, n.n, width), ti.Matrix.zero(ti.f32, n.n, width)
    found = ti.Matrix.zero(ti.f32, 3, width)
    _find_ways(
        m, c, I, u, axis, open, distance, inv_dx, n, lower, upper, period, step, ways, ways, False, course, width
    )
    along_run(m, width, _move, (I, ways, points))
    offset = axis * cells_of(s, n)
    sample_run_with_limits(m, u, offset, points, found, n, width)
    along_run(m, width, _put_within, (out, offset + c, found))


@ti.func
def _put_prediction(
    m, c, found: ti.template(), predicted: ti.template(), least: ti.template(), most: ti.template(),
    width: ti.template(),
):  # fmt: skip
    """Write what is predicted for a run, and the limits that its correction will be kept in."""
    along_run(m, width, put_run, (predicted, c, found, VALUE))
    along_run(m, width, put_run, (least, c, found, LEAST))
    along_run(m, width, put_run, (most, c, found, MOST))


@ti.func
def _predict_component_of_run(
    c, I, m, s, u: ti.template(), axis, open: ti.template(), distance: ti.template(), inv_dx, arrival: ti.template(),
    predicted: ti.template(), least: ti.template(), most: ti.template(), n, lower, upper, period, step,
    course: ti.template(), width: ti.template(),
):  # fmt: skip
    backward, forward = ti.Matrix.zero(ti.f32, n.n, width), ti.Matrix.zero(ti.f32, n.n, width)
    found = ti.Matrix.zero(ti.f32, 3, width)
    _find_ways(
        m, c, I, u, axis, open, distance, inv_dx, n, lower, upper, period, step, backward, forward, True, course, width
    )  # fmt: skip
    along_run(m, width, _put_columns, (arrival, c, forward, n))
    along_run(m, width, _move, (I, backward, forward))
    sample_run_with_limits(m, u, axis * cells_of(s, n), forward, found, n, width)
    _put_prediction(m, c, found, predicted, least, most, width)


@ti.func
def _move_along(k, c, I, displacement: ti.template(), points: ti.template(), n):
    """The same with displacements from an array."""
    cells = cells_of(strides_of(n), n)
    q = ti.cast(I, ti.f32)
    q[n.n - 1] += ti.cast(k, ti.f32)
    for d in ti.static(range(n.n)):
        q[d] += displacement[cell_of_run(c, k) + d * cells]
    set_column(points, k, q)


@ti.func
def _look_beside(
    k, a: ti.template(), offset, points: ti.template(), found: ti.template(), n, open: ti.template(),
    distance: ti.template(), inv_dx,
):  # fmt: skip
    """Near solids only cells count that can be seen from the one that holds the point: nothing comes through a wall."""
    s, q = strides_of(n), column(points, k)
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


@ti.func
def _sample_departures(
    m, c, I, a: ti.template(), departure: ti.template(), found: ti.template(), n, offset, open: ti.template(),
    distance: ti.template(), inv_dx, beside: ti.template(), width: ti.template(),
):  # fmt: skip
    """What lies at the departure points of a run, with its limits."""
    points = ti.Matrix.zero(ti.f32, n.n, width)
    along_run(m, width, _move_along, (c, I, departure, points, n))
    sample_run_with_limits(m, a, offset, points, found, n, width)
    if ti.static(beside):
        along_run(m, width, _look_beside, (a, offset, points, found, n, open, distance, inv_dx))


@ti.func
def _semi_lagrangian_of_run(
    c, I, m, s, a: ti.template(), departure: ti.template(), out: ti.template(), n, offset, open: ti.template(),
    distance: ti.template(), inv_dx, beside: ti.template(), width: ti.template(),
):  # fmt: skip
    found = ti.Matrix.zero(ti.f32, 3, width)
    _sample_departures(m, c, I, a, departure, found, n, offset, open, distance, inv_dx, beside, width)
    along_run(m, width, _put_within, (out, offset + c, found))


@ti.func
def _predict_run(
    c, I, m, s, a: ti.template(), departure: ti.template(), predicted: ti.template(), least: ti.template(),
    most: ti.template(), n, offset, open: ti.template(), distance: ti.template(), inv_dx, beside: ti.template(),
    width: ti.template(),
):  # fmt: skip
    found = ti.Matrix.zero(ti.f32, 3, width)
    _sample_departures(m, c, I, a, departure, found, n, offset, open, distance, inv_dx, beside, width)
    _put_prediction(m, c, found, predicted, least, most, width)


@ti.func
def _correct_run(
    c, I, m, s, a: ti.template(), predicted: ti.template(), least: ti.template(), most: ti.template(),
    arrival: ti.template(), out: ti.template(), n, offset, open: ti.template(), distance: ti.template(), inv_dx,
    beside: ti.template(), width: ti.template(),
):  # fmt: skip
    points, found = ti.Matrix.zero(ti.f32, n.n, width), ti.Matrix.zero(ti.f32, 1, width)
    along_run(m, width, _move_along, (c, I, arrival, points, n))
    sample_run(m, predicted, 0, points, found, n, width)
    if ti.static(beside):
        along_run(m, width, _look_beside, (predicted, 0, points, found, n, open, distance, inv_dx))
    along_run(m, width, _correct, (c, a, offset, predicted, arrival, found, least, most))
    along_run(m, width, put_run, (out, offset + c, found, VALUE))


@ti.func
def _correct(
    k, c, a: ti.template(), offset, predicted: ti.template(), arrival: ti.template(), found: ti.template(),
    least: ti.template(), most: ti.template(),
):  # fmt: skip
    """MacCormack: add half of what is lost on the way back and forth, limited to the values it came from."""
    here = cell_of_run(c, k)
    lost = ti.select(arrival[here] < ti.f32(_NO_WAY_BACK), a[offset + here] - found[ti.i32(VALUE), k], ti.f32(0.0))
    found[ti.i32(VALUE), k] = at_most(at_least(predicted[here] + ti.f32(0.5) * lost, least[here]), most[here])


@kernel_family
def trace_kernels(loops, course):
    IntVector, FloatVector, each_run, width = loops.IntVector, loops.FloatVector, loops.each_run, loops.width

    @ti.kernel
    def trace_back(
        velocity: Array, axis: ti.i32, open: Array, distance: Array, inv_dx: ti.f32, departure: Array, n: IntVector,
        lower: FloatVector, upper: FloatVector, period: FloatVector, step: ti.f32,
    ):  # fmt: skip
        each_run(
            n, width, _write_ways,
            (velocity, axis, open, distance, inv_dx, departure, departure, n, lower, upper, period, step, False, course, width),
        )  # fmt: skip

    @ti.kernel
    def trace_both_ways(
        velocity: Array, axis: ti.i32, open: Array, distance: Array, inv_dx: ti.f32, departure: Array, arrival: Array, n: IntVector,
        lower: FloatVector, upper: FloatVector, period: FloatVector, step: ti.f32,
    ):  # fmt: skip
        each_run(
            n, width, _write_ways,
            (velocity, axis, open, distance, inv_dx, departure, arrival, n, lower, upper, period, step, True, course, width),
        )  # fmt: skip

    @ti.kernel
    def carry_component(
        velocity: Array, axis: ti.i32, open: Array, distance: Array, inv_dx: ti.f32, out: Array, n: IntVector, lower: FloatVector,
        upper: FloatVector, period: FloatVector, step: ti.f32,
    ):  # fmt: skip
        each_run(
            n, width, _carry_component_of_run,
            (velocity, axis, open, distance, inv_dx, out, n, lower, upper, period, step, course, width),
        )  # fmt: skip

    @ti.kernel
    def predict_component(
        velocity: Array, axis: ti.i32, open: Array, distance: Array, inv_dx: ti.f32, arrival: Array, predicted: Array, least: Array,
        most: Array, n: IntVector, lower: FloatVector, upper: FloatVector, period: FloatVector, step: ti.f32,
    ):  # fmt: skip
        each_run(
            n, width, _predict_component_of_run,
            (velocity, axis, open, distance, inv_dx, arrival, predicted, least, most, n, lower, upper, period, step, course, width),
        )  # fmt: skip

    return {
        "trace_back": trace_back,
        "trace_both_ways": trace_both_ways,
        "carry_component": carry_component,
        "predict_component": predict_component,
    }


@kernel_family
def advection_kernels(loops, beside):
    IntVector, each_run, width = loops.IntVector, loops.each_run, loops.width

    @ti.kernel
    def semi_lagrangian(
        a: Array, departure: Array, out: Array, n: IntVector, offset: ti.i32, open: Array, distance: Array,
        inv_dx: ti.f32,
    ):  # fmt: skip
        each_run(
            n, width, _semi_lagrangian_of_run, (a, departure, out, n, offset, open, distance, inv_dx, beside, width)
        )

    @ti.kernel
    def predict(
        a: Array, departure: Array, predicted: Array, least: Array, most: Array, n: IntVector, offset: ti.i32,
        open: Array, distance: Array, inv_dx: ti.f32,
    ):  # fmt: skip
        each_run(
            n, width, _predict_run,
            (a, departure, predicted, least, most, n, offset, open, distance, inv_dx, beside, width),
        )  # fmt: skip

    @ti.kernel
    def correct(
        a: Array, predicted: Array, least: Array, most: Array, arrival: Array, out: Array, n: IntVector,
        offset: ti.i32, open: Array, distance: Array, inv_dx: ti.f32,
    ):  # fmt: skip
        each_run(
            n, width, _correct_run,
            (a, predicted, least, most, arrival, out, n, offset, open, distance, inv_dx, beside, width),
        )  # fmt: skip

    return {"semi_lagrangian": semi_lagrangian, "predict": predict, "correct": correct}


class Advection:
    """Carries quantities with a velocity.

    Args:
        grid: The grid.
        walls: Its sides.
        scratch: Arrays to work in.
        scheme: Semi-Lagrangian or clamped MacCormack.
        trace: How paths are followed.
        solids: What paths must keep out of; its distance is read whenever paths are traced.

    Use:
        ``trace_paths`` once for the places of a quantity, then ``carry`` each quantity that lies there;
        ``carry_velocity`` for the velocity itself. Paths last until anything else works in ``scratch``.
    """

    def __init__(
        self, grid: Grid, walls: Walls, scratch: Scratch, scheme: Scheme, trace: Trace, solids: Solids | None = None
    ):  # fmt: skip
        self.grid, self.walls, self.solids = grid, walls, solids
        self.scheme, self.trace = Scheme(scheme), Trace(trace)
        self._arrival, self._predicted, self._limits = scratch.vector, scratch.first, (scratch.second, scratch.third)
        self._departure = self._own_departure = None
        self._nothing = ti.ndarray(ti.f32, 1), ti.ndarray(ti.f32, 1)

    def trace_paths(self, velocity, dt: float, component: int = SCALAR, departure=None) -> None:
        """Follow the flow for ``dt`` from the cell centres, or from the faces of a velocity component.

        ``departure`` is an array of ``dim`` components that holds the paths as long as something is carried along
        them; left out, one is made and kept.
        """
        if departure is None:
            if self._own_departure is None:
                self._own_departure = self.grid.array(self.grid.dim)
            departure = self._own_departure
        self._departure = departure
        kernels, paths, where = self._trace(velocity, dt, component)
        if self.scheme is Scheme.SEMI_LAGRANGIAN:
            kernels.trace_back(*paths, departure, *where)
        else:
            kernels.trace_both_ways(*paths, departure, self._arrival, *where)

    def _trace(self, velocity, dt: float, component: int):
        """The kernels that trace paths from these places, and their first and last arguments."""
        self.grid.require_runtime()
        walls, faces = self.walls, component != SCALAR and not self.grid.collocated
        wraps, solids = any(walls.periodic), self.solids is not None
        course = Course(self.trace, faces, wraps, solids, walls.has_passage, self.grid.placement)
        kernels, dx = trace_kernels(self.grid.costly_loops, course), self.grid.dx
        return (
            kernels,
            (velocity, component, *self._near(self.solids)),
            (self.grid.n, *walls.path_limits(component), dt / dx),
        )

    def carry(self, current, out, component: int = SCALAR, offset: int = 0, name: str | None = None) -> None:
        """``out`` = ``current`` carried along the traced paths, ghosts filled; both at ``offset`` in their arrays.

        ``name`` is that of a scalar, by which the sides know what enters.
        """
        if current is out:
            raise ValueError("current and out are the same array")
        if self._departure is None:
            raise RuntimeError("trace_paths() comes before carry()")
        self.grid.require_runtime()
        kernels, near = self._carriers(component)
        if self.scheme is Scheme.SEMI_LAGRANGIAN:
            kernels.semi_lagrangian(current, self._departure, out, self.grid.n, offset, *near)
            self.walls.fill(out, component, offset, name)
        else:
            kernels.predict(current, self._departure, self._predicted, *self._limits, self.grid.n, offset, *near)
            self._correct(current, out, component, offset, name)

    def _carriers(self, component: int):
        """The kernels that carry a quantity, and what they know of solids: a velocity may be read beside them."""
        solids = self.solids if component == SCALAR else None
        return advection_kernels(self.grid.costly_loops, solids is not None), self._near(solids)

    def _near(self, solids: Solids | None):
        """What kernels are told of solids, or two words where there are none, and 1/dx."""
        return (*((solids.open, solids.distance) if solids else self._nothing), 1.0 / self.grid.dx)

    def _correct(self, current, out, component: int, offset: int, name: str | None = None) -> None:
        kernels, near = self._carriers(component)
        self.walls.fill(self._predicted, component)
        kernels.correct(
            current, self._predicted, *self._limits, self._arrival, out, self.grid.n, offset, *near
        )  # fmt: skip
        self.walls.fill(out, component, offset, name)

    def carry_velocity(self, velocity, out, dt: float) -> None:
        """``out`` = the velocity carried with itself."""
        for axis in range(self.grid.dim):
            self.carry_component(velocity, out, axis, dt)

    def carry_component(self, velocity, out, axis: int, dt: float) -> None:
        """Do so with one component of it, the first one first: where all lie together, they have its paths."""
        offset = axis * self.grid.cells
        if self.grid.collocated:
            if axis == 0:
                self.trace_paths(velocity, dt, axis)
            self.carry(velocity, out, axis, offset)
            return
        if velocity is out:
            raise ValueError("velocity and out are the same array")
        kernels, paths, where = self._trace(velocity, dt, axis)
        if self.scheme is Scheme.SEMI_LAGRANGIAN:
            kernels.carry_component(*paths, out, *where)
            self.walls.fill(out, axis, offset)
        else:
            # Paths that were traced before end here: their arrivals are overwritten.
            self._departure = None
            kernels.predict_component(*paths, self._arrival, self._predicted, *self._limits, *where)
            self._correct(velocity, out, axis, offset)
