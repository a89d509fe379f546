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
from .kernels import Array, at_least, at_most, cells_of, flat, kernel_family, strides_of
from .operators.interpolation import blend, corners_at, inside_box
from .operators.placement import Placement
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
        axis: Velocity component whose faces are traced, or ``SCALAR`` for cell centres.
        wraps: Whether an axis is periodic.
        solids: Whether paths must keep out of solids.
        passage: Whether they may leave the box.
        on: Where the velocity lies.
    """

    trace: Trace
    axis: int
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
def _velocity_in_box(u: ti.template(), q, n, period, course: ti.template()):
    return course.on.sample(u, inside_box(_wrapped(q, period, course), n), n)


@ti.func
def _euler_mean(u: ti.template(), q, first, step, n, period, course: ti.template()):
    return first


@ti.func
def _rk2_mean(u: ti.template(), q, first, step, n, period, course: ti.template()):
    return _velocity_in_box(u, q + ti.f32(0.5) * step * first, n, period, course)


@ti.func
def _rk3_mean(u: ti.template(), q, first, step, n, period, course: ti.template()):
    second = _velocity_in_box(u, q + ti.f32(0.5) * step * first, n, period, course)
    third = _velocity_in_box(u, q + ti.f32(0.75) * step * second, n, period, course)
    return ti.f32(2.0 / 9.0) * first + ti.f32(3.0 / 9.0) * second + ti.f32(4.0 / 9.0) * third


_MEAN_VELOCITY = {Trace.EULER: _euler_mean, Trace.RK2: _rk2_mean, Trace.RK3: _rk3_mean}


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
def _mean_ahead(u: ti.template(), q, first, back, step, n, period, course: ti.template(), mean: ti.template()):
    """Mean velocity of the way ahead from ``q``, given that of the way ``back``.

    For a velocity in a closed box the way back is mirrored, which is as accurate as two stages and costs no samples: the
    two differ by dt² times second derivatives, and only what MacCormack corrects by depends on it. A flow that may
    leave is traced: the jumps of velocity beside open sides, mirrored, would feed it with energy.
    """
    if ti.static(course.axis >= 0 and course.trace == Trace.RK2 and not course.passage):
        return ti.f32(2.0) * first - back
    else:
        return mean(u, q, first, step, n, period, course)


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
def _place(I, axis: ti.template()):
    """Where the values with integer position ``I`` lie: face centres of a velocity component, or cell centres (-1)."""
    q = ti.cast(I, ti.f32)
    if ti.static(axis >= 0):
        q[axis] -= ti.f32(0.5)
    return q


@ti.func
def _way_back(
    u: ti.template(), q, first, open: ti.template(), distance: ti.template(), inv_dx, n, lower, upper, period, step,
    course: ti.template(), mean: ti.template(),
):  # fmt: skip
    """Displacement to the departure point, kept inside the box; how much of it is free of solids; mean velocity."""
    back = mean(u, q, first, -step, n, period, course)
    end = q - step * back
    free = _before_solids(q, end, open, distance, inv_dx, n, period, course)
    end = _wrapped(q + free * (end - q), period, course)
    return at_most(at_least(end, lower), upper) - q, free, back


@ti.func
def _way_ahead(
    u: ti.template(), q, first, back, free, open: ti.template(), distance: ti.template(), inv_dx, n, period, step,
    course: ti.template(), mean: ti.template(),
):  # fmt: skip
    """Displacement to the arrival point: the value that arrives stays inside the box, what lies beyond is not carried back.

    A path that ends at a solid, ``free`` being less than 1 on the way back, or has left through a side, is not traced
    back again: its arrival says so.
    """
    ahead = q + step * _mean_ahead(u, q, first, back, step, n, period, course, mean)
    beyond = _before_solids(q, ahead, open, distance, inv_dx, n, period, course)
    ahead = _wrapped(ahead, period, course)
    inside = inside_box(ahead, n)
    forward = inside - q
    if ti.min(free, beyond) < 1:
        forward[0] = ti.f32(_NO_WAY_BACK)
    if ti.static(course.passage):
        if (inside - ahead).norm_sqr() > 0:
            forward[0] = ti.f32(_NO_WAY_BACK)
    return forward


@ti.func
def _put_vector(a: ti.template(), c, v, n):
    cells = cells_of(strides_of(n), n)
    for d in ti.static(range(n.n)):
        a[c + d * cells] = v[d]


@ti.func
def _write_departure(
    c, I, s, u: ti.template(), open: ti.template(), distance: ti.template(), inv_dx, departure: ti.template(), n,
    lower, upper, period, step, course: ti.template(), mean: ti.template(),
):  # fmt: skip
    q, first = _place(I, ti.static(course.axis)), course.on.start(u, c, ti.static(course.axis), n)
    backward, _, _ = _way_back(
        u, q, first, open, distance, inv_dx, n, lower, upper, period, step, course, mean
    )  # fmt: skip
    _put_vector(departure, c, backward, n)


@ti.func
def _write_departure_and_arrival(
    c, I, s, u: ti.template(), open: ti.template(), distance: ti.template(), inv_dx, departure: ti.template(),
    arrival: ti.template(), n, lower, upper, period, step, course: ti.template(), mean: ti.template(),
):  # fmt: skip
    q, first = _place(I, ti.static(course.axis)), course.on.start(u, c, ti.static(course.axis), n)
    backward, free, back = _way_back(
        u, q, first, open, distance, inv_dx, n, lower, upper, period, step, course, mean
    )  # fmt: skip
    _put_vector(departure, c, backward, n)
    forward = _way_ahead(u, q, first, back, free, open, distance, inv_dx, n, period, step, course, mean)
    _put_vector(arrival, c, forward, n)


@ti.func
def _carry_component_at(
    c, I, s, u: ti.template(), open: ti.template(), distance: ti.template(), inv_dx, out: ti.template(), n, lower,
    upper, period, step, course: ti.template(), mean: ti.template(),
):  # fmt: skip
    """Trace and carry at once: what one component of a velocity needs its paths for is itself alone."""
    q, first = _place(I, ti.static(course.axis)), course.on.start(u, c, ti.static(course.axis), n)
    backward, _, _ = _way_back(
        u, q, first, open, distance, inv_dx, n, lower, upper, period, step, course, mean
    )  # fmt: skip
    offset = course.axis * cells_of(s, n)
    value, low, high = _sample_between(u, offset, ti.cast(I, ti.f32) + backward, n)
    out[offset + c] = at_most(at_least(value, low), high)


@ti.func
def _predict_component_at(
    c, I, s, u: ti.template(), open: ti.template(), distance: ti.template(), inv_dx, arrival: ti.template(),
    predicted: ti.template(), least: ti.template(), most: ti.template(), n, lower, upper, period, step,
    course: ti.template(), mean: ti.template(),
):  # fmt: skip
    q, first = _place(I, ti.static(course.axis)), course.on.start(u, c, ti.static(course.axis), n)
    backward, free, back = _way_back(
        u, q, first, open, distance, inv_dx, n, lower, upper, period, step, course, mean
    )  # fmt: skip
    forward = _way_ahead(u, q, first, back, free, open, distance, inv_dx, n, period, step, course, mean)
    _put_vector(arrival, c, forward, n)
    offset = course.axis * cells_of(s, n)
    value, low, high = _sample_between(u, offset, ti.cast(I, ti.f32) + backward, n)
    predicted[c] = value
    least[c] = low
    most[c] = high


@ti.func
def moved_point(displacement: ti.template(), c, I, n):
    """Index-space point that lies ``displacement`` away from ``I``."""
    cells = cells_of(strides_of(n), n)
    q = ti.cast(I, ti.f32)
    for d in ti.static(range(n.n)):
        q[d] += displacement[c + d * cells]
    return q


@ti.func
def _range_of(values):
    """The least and the largest of a vector."""
    low, high = values[0], values[0]
    for k in ti.static(range(1, values.n)):
        low, high = at_most(low, values[k]), at_least(high, values[k])
    return low, high


@ti.func
def _sample_between(a: ti.template(), offset, q, n):
    """Linear interpolation of ``a`` at ``q``, and the least and the largest of the values it is made of."""
    values, fraction = corners_at(a, offset, q, n)
    low, high = _range_of(values)
    return blend(values, fraction), low, high


@ti.func
def _sample_beside(
    a: ti.template(), offset, q, n, open: ti.template(), distance: ti.template(), inv_dx, beside: ti.template()
):
    """The same, but near solids only cells count that can be seen from the one that holds ``q``.

    So nothing comes through a wall.
    """
    value, low, high = _sample_between(a, offset, q, n)
    if ti.static(beside):
        s = strides_of(n)
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
            value = here
            if weights > ti.f32(1e-6):
                value = total / weights
    return value, low, high


@ti.func
def _semi_lagrangian_at(
    c, I, s, a: ti.template(), departure: ti.template(), out: ti.template(), n, offset, open: ti.template(),
    distance: ti.template(), inv_dx, beside: ti.template(),
):  # fmt: skip
    value, low, high = _sample_beside(
        a, offset, moved_point(departure, c, I, n), n, open, distance, inv_dx, beside
    )  # fmt: skip
    # Rounding may carry the blend past a corner by one unit in the last place.
    out[offset + c] = at_most(at_least(value, low), high)


@ti.func
def _predict_at(
    c, I, s, a: ti.template(), departure: ti.template(), predicted: ti.template(), least: ti.template(),
    most: ti.template(), n, offset, open: ti.template(), distance: ti.template(), inv_dx, beside: ti.template(),
):  # fmt: skip
    value, low, high = _sample_beside(
        a, offset, moved_point(departure, c, I, n), n, open, distance, inv_dx, beside
    )  # fmt: skip
    predicted[c] = value
    least[c] = low
    most[c] = high


@ti.func
def _correct_at(
    c, I, s, a: ti.template(), predicted: ti.template(), least: ti.template(), most: ti.template(),
    arrival: ti.template(), out: ti.template(), n, offset, open: ti.template(), distance: ti.template(), inv_dx,
    beside: ti.template(),
):  # fmt: skip
    """MacCormack: add half of what is lost on the way back and forth, limited to the values it came from."""
    corrected = predicted[c]
    if arrival[c] < ti.f32(_NO_WAY_BACK):
        back_again, _, _ = _sample_beside(
            predicted, 0, moved_point(arrival, c, I, n), n, open, distance, inv_dx, beside
        )
        corrected += ti.f32(0.5) * (a[offset + c] - back_again)
    out[offset + c] = at_most(at_least(corrected, least[c]), most[c])


@kernel_family
def trace_kernels(loops, course):
    IntVector, FloatVector, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell
    mean_velocity = _MEAN_VELOCITY[course.trace]

    @ti.kernel
    def trace_back(
        velocity: Array, open: Array, distance: Array, inv_dx: ti.f32, departure: Array, n: IntVector,
        lower: FloatVector, upper: FloatVector, period: FloatVector, step: ti.f32,
    ):  # fmt: skip
        each_cell(
            n, _write_departure,
            (velocity, open, distance, inv_dx, departure, n, lower, upper, period, step, course, mean_velocity),
        )  # fmt: skip

    @ti.kernel
    def trace_both_ways(
        velocity: Array, open: Array, distance: Array, inv_dx: ti.f32, departure: Array, arrival: Array, n: IntVector,
        lower: FloatVector, upper: FloatVector, period: FloatVector, step: ti.f32,
    ):  # fmt: skip
        each_cell(
            n, _write_departure_and_arrival,
            (velocity, open, distance, inv_dx, departure, arrival, n, lower, upper, period, step, course,
             mean_velocity),
        )  # fmt: skip

    @ti.kernel
    def carry_component(
        velocity: Array, open: Array, distance: Array, inv_dx: ti.f32, out: Array, n: IntVector, lower: FloatVector,
        upper: FloatVector, period: FloatVector, step: ti.f32,
    ):  # fmt: skip
        each_cell(
            n, _carry_component_at,
            (velocity, open, distance, inv_dx, out, n, lower, upper, period, step, course, mean_velocity),
        )  # fmt: skip

    @ti.kernel
    def predict_component(
        velocity: Array, open: Array, distance: Array, inv_dx: ti.f32, arrival: Array, predicted: Array, least: Array,
        most: Array, n: IntVector, lower: FloatVector, upper: FloatVector, period: FloatVector, step: ti.f32,
    ):  # fmt: skip
        each_cell(
            n, _predict_component_at,
            (velocity, open, distance, inv_dx, arrival, predicted, least, most, n, lower, upper, period, step, course,
             mean_velocity),
        )  # fmt: skip

    return {
        "trace_back": trace_back,
        "trace_both_ways": trace_both_ways,
        "carry_component": carry_component,
        "predict_component": predict_component,
    }


@kernel_family
def advection_kernels(loops, beside):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def semi_lagrangian(
        a: Array, departure: Array, out: Array, n: IntVector, offset: ti.i32, open: Array, distance: Array,
        inv_dx: ti.f32,
    ):  # fmt: skip
        each_cell(n, _semi_lagrangian_at, (a, departure, out, n, offset, open, distance, inv_dx, beside))

    @ti.kernel
    def predict(
        a: Array, departure: Array, predicted: Array, least: Array, most: Array, n: IntVector, offset: ti.i32,
        open: Array, distance: Array, inv_dx: ti.f32,
    ):  # fmt: skip
        each_cell(
            n, _predict_at, (a, departure, predicted, least, most, n, offset, open, distance, inv_dx, beside)
        )  # fmt: skip

    @ti.kernel
    def correct(
        a: Array, predicted: Array, least: Array, most: Array, arrival: Array, out: Array, n: IntVector,
        offset: ti.i32, open: Array, distance: Array, inv_dx: ti.f32,
    ):  # fmt: skip
        each_cell(
            n, _correct_at, (a, predicted, least, most, arrival, out, n, offset, open, distance, inv_dx, beside)
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
        ``carry_velocity`` for the velocity itself.
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
        walls, place = self.walls, SCALAR if component == SCALAR else self.grid.place(component)
        wraps, solids = any(walls.periodic), self.solids is not None
        course = Course(self.trace, place, wraps, solids, walls.has_passage, self.grid.placement)
        kernels, dx = trace_kernels(self.grid.costly_loops, course), self.grid.dx
        near = (*((self.solids.open, self.solids.distance) if self.solids else self._nothing), 1.0 / dx)
        return kernels, (velocity, *near), (self.grid.n, *walls.path_limits(component), dt / dx)

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
        near = (*((solids.open, solids.distance) if solids else self._nothing), 1.0 / self.grid.dx)
        return advection_kernels(self.grid.costly_loops, solids is not None), near

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
            kernels.predict_component(*paths, self._arrival, self._predicted, *self._limits, *where)
            self._correct(velocity, out, axis, offset)
