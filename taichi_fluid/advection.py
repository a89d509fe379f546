"""Advection: everything is carried with the flow, by tracing back to where it came from.

A trace gives each place its displacement to the departure point (and, for MacCormack, to the arrival point), in cells.
Then one function carries every scalar and every velocity component alike. (Stam 1999; Selle et al. 2008 for clamped
MacCormack; Ralston 1962 for the third-order trace.)
"""

from enum import Enum

from ._ti import ti
from .boundary import SCALAR, Walls
from .grid import Grid
from .kernels import Array, kernel_family, strides_of
from .operators.interpolation import blend, corners_at, inside_box, sample, sample_velocity, velocity_at


class Scheme(Enum):
    """How a value is carried: first order and diffusive, or second order with a limiter."""

    SEMI_LAGRANGIAN = "semi-lagrangian"
    MACCORMACK = "maccormack"


class Trace(Enum):
    """How a path is followed: one, two or three stages of Runge-Kutta."""

    EULER = "euler"
    RK2 = "rk2"
    RK3 = "rk3"


@ti.func
def _euler_mean(u: ti.template(), q, first, step, n):
    return first


@ti.func
def _rk2_mean(u: ti.template(), q, first, step, n):
    return sample_velocity(u, inside_box(q + ti.f32(0.5) * step * first, n), n)


@ti.func
def _rk3_mean(u: ti.template(), q, first, step, n):
    second = sample_velocity(u, inside_box(q + ti.f32(0.5) * step * first, n), n)
    third = sample_velocity(u, inside_box(q + ti.f32(0.75) * step * second, n), n)
    return ti.f32(2.0 / 9.0) * first + ti.f32(3.0 / 9.0) * second + ti.f32(4.0 / 9.0) * third


_MEAN_VELOCITY = {Trace.EULER: _euler_mean, Trace.RK2: _rk2_mean, Trace.RK3: _rk3_mean}


@ti.func
def _displacement(u: ti.template(), q, first, step, n, mean_velocity: ti.template()):
    """Displacement, in cells, from ``q`` along the flow for ``step`` = ±dt / dx, kept inside the box."""
    return inside_box(q + step * mean_velocity(u, q, first, step, n), n) - q


@ti.func
def _place(I, axis: ti.template()):
    """Where the values with integer position ``I`` lie: face centres of a velocity component, or cell centres (-1)."""
    q = ti.cast(I, ti.f32)
    if ti.static(axis >= 0):
        q[axis] -= ti.f32(0.5)
    return q


@ti.func
def _write_departure(
    c, I, s, u: ti.template(), departure: ti.template(), n, step, axis: ti.template(), mean: ti.template()
):
    cells = s[0] * (n[0] + 2)
    backward = _displacement(u, _place(I, axis), velocity_at(u, c, axis, n), -step, n, mean)
    for d in ti.static(range(n.n)):
        departure[c + d * cells] = backward[d]


@ti.func
def _write_departure_and_arrival(
    c, I, s, u: ti.template(), departure: ti.template(), arrival: ti.template(), n, step,
    axis: ti.template(), mean: ti.template(),
):  # fmt: skip
    cells = s[0] * (n[0] + 2)
    q, first = _place(I, axis), velocity_at(u, c, axis, n)
    backward = _displacement(u, q, first, -step, n, mean)
    forward = _displacement(u, q, first, step, n, mean)
    for d in ti.static(range(n.n)):
        departure[c + d * cells] = backward[d]
        arrival[c + d * cells] = forward[d]


@ti.func
def moved_point(displacement: ti.template(), c, I, n):
    """Index-space point that lies ``displacement`` away from ``I``."""
    cells = strides_of(n)[0] * (n[0] + 2)
    q = ti.cast(I, ti.f32)
    for d in ti.static(range(n.n)):
        q[d] += displacement[c + d * cells]
    return q


@ti.func
def _semi_lagrangian_at(c, I, s, a: ti.template(), departure: ti.template(), out: ti.template(), n, offset):
    values, fraction = corners_at(a, offset, moved_point(departure, c, I, n), n)
    # Rounding may carry the blend past a corner by one unit in the last place.
    out[offset + c] = ti.min(ti.max(blend(values, fraction), values.min()), values.max())


@ti.func
def _predict_at(c, I, s, a: ti.template(), departure: ti.template(), predicted: ti.template(), n, offset):
    predicted[c] = sample(a, offset, moved_point(departure, c, I, n), n)


@ti.func
def _correct_at(
    c, I, s, a: ti.template(), predicted: ti.template(), departure: ti.template(), arrival: ti.template(),
    out: ti.template(), n, offset,
):  # fmt: skip
    """MacCormack: add half of what is lost on the way back and forth, limited to the values it came from."""
    back_again = sample(predicted, 0, moved_point(arrival, c, I, n), n)
    corrected = predicted[c] + ti.f32(0.5) * (a[offset + c] - back_again)
    donors, _ = corners_at(a, offset, moved_point(departure, c, I, n), n)
    out[offset + c] = ti.min(ti.max(corrected, donors.min()), donors.max())


@kernel_family
def trace_kernels(loops, trace, axis):
    IntVector, each_cell = loops.IntVector, loops.each_cell
    mean_velocity = _MEAN_VELOCITY[trace]

    @ti.kernel
    def trace_back(velocity: Array, departure: Array, n: IntVector, step: ti.f32):
        each_cell(n, _write_departure, (velocity, departure, n, step, axis, mean_velocity))

    @ti.kernel
    def trace_both_ways(velocity: Array, departure: Array, arrival: Array, n: IntVector, step: ti.f32):
        each_cell(n, _write_departure_and_arrival, (velocity, departure, arrival, n, step, axis, mean_velocity))

    return {"trace_back": trace_back, "trace_both_ways": trace_both_ways}


@kernel_family
def advection_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def semi_lagrangian(a: Array, departure: Array, out: Array, n: IntVector, offset: ti.i32):
        each_cell(n, _semi_lagrangian_at, (a, departure, out, n, offset))

    @ti.kernel
    def predict(a: Array, departure: Array, predicted: Array, n: IntVector, offset: ti.i32):
        each_cell(n, _predict_at, (a, departure, predicted, n, offset))

    @ti.kernel
    def correct(a: Array, predicted: Array, departure: Array, arrival: Array, out: Array, n: IntVector, offset: ti.i32):
        each_cell(n, _correct_at, (a, predicted, departure, arrival, out, n, offset))

    return {"semi_lagrangian": semi_lagrangian, "predict": predict, "correct": correct}


class Advection:
    """Carries quantities with a staggered velocity.

    Args:
        grid: The grid.
        walls: Its sides.
        scratch: Arrays to work in: two of ``dim`` components and one scalar.
        scheme: Semi-Lagrangian or clamped MacCormack.
        trace: How paths are followed.

    Use:
        ``trace_paths`` once for the places of a quantity, then ``carry`` each quantity that lies there.
    """

    def __init__(self, grid: Grid, walls: Walls, scratch, scheme: Scheme, trace: Trace):
        self.grid, self.walls = grid, walls
        self.scheme, self.trace = Scheme(scheme), Trace(trace)
        self._departure, self._arrival, self._predicted = scratch
        self._kernels = advection_kernels(grid.loops)

    def trace_paths(self, velocity, dt: float, component: int = SCALAR) -> None:
        """Follow the flow for ``dt`` from the cell centres, or from the faces of a velocity component."""
        self.grid.require_runtime()
        kernels, step = trace_kernels(self.grid.loops, self.trace, component), dt / self.grid.dx
        if self.scheme is Scheme.SEMI_LAGRANGIAN:
            kernels.trace_back(velocity, self._departure, self.grid.n, step)
        else:
            kernels.trace_both_ways(velocity, self._departure, self._arrival, self.grid.n, step)

    def carry(self, current, out, component: int = SCALAR, offset: int = 0) -> None:
        """``out`` = ``current`` carried along the traced paths, ghosts filled; both at ``offset`` in their arrays."""
        if current is out:
            raise ValueError("current and out are the same array")
        self.grid.require_runtime()
        n = self.grid.n
        if self.scheme is Scheme.SEMI_LAGRANGIAN:
            self._kernels.semi_lagrangian(current, self._departure, out, n, offset)
        else:
            self._kernels.predict(current, self._departure, self._predicted, n, offset)
            self.walls.fill(self._predicted, component)
            self._kernels.correct(current, self._predicted, self._departure, self._arrival, out, n, offset)
        self.walls.fill(out, component, offset)

    def carry_velocity(self, velocity, out, dt: float) -> None:
        """``out`` = the velocity carried with itself."""
        for axis in range(self.grid.dim):
            self.trace_paths(velocity, dt, axis)
            self.carry(velocity, out, component=axis, offset=axis * self.grid.cells)
