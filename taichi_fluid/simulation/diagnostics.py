"""Numbers that say how a flow is doing: each is one reduction on the device and one number read back."""

import math
from typing import NamedTuple

import numpy as np

from .._ti import ti
from ..boundaries.solids import CutCells, Solids
from ..grid import Grid, given
from ..kernels import (
    ARRAY_BITS,
    Array,
    Reduction,
    Strip,
    add,
    address,
    cell_of_strip,
    cells_of,
    kernel_family,
    largest,
    numbers_of,
    room_for_partials,
)
from ..operators.differences import vorticity_at
from ..operators.shapes import coverage, covered_part
from ..operators.vectors import is_finite, length

NOT_FINITE = 3e38
"""What ``largest_magnitude`` counts a value as that is NaN or infinite."""


@ti.func
def _find_largest(k, c, a: Array, bits: ti.template()):
    """Without its sign a number is the larger the larger its bits are as a whole number, and what is not finite the largest."""
    here = ti.bit_cast(a[cell_of_strip(c, k)], ti.i32) & ti.i32(0x7FFFFFFF)
    bits = ti.select(here > bits, here, bits)


@ti.func
def _largest_of(c, I, m, s, a: Array, components: ti.template(), n, width: ti.template()):
    bits = ti.i32(0)
    for k in ti.static(range(components)):
        Strip(c, I, m, width).each(_find_largest, (address(c + k * cells_of(s, n), ARRAY_BITS), a, bits))
    value = ti.bit_cast(bits, ti.f32)
    return ti.select(is_finite(value), value, ti.f32(NOT_FINITE))


@ti.func
def _value_at(c, I, s, a: Array, offset):
    return a[offset + c]


@ti.func
def _amount_at(c, I, s, a: Array, offset, fluid: Array):
    return fluid[c] * a[offset + c]


@ti.func
def _outflow_at(c, I, s, u: Array, n, on):
    return ti.abs(on.outflow(u, c, s, n))


@ti.func
def _outflow_square_at(c, I, s, u: Array, n, on):
    value = on.outflow(u, c, s, n)
    return value * value


@ti.func
def _square_at(c, I, s, a: Array, components, n):
    """Sum of the squares of the components of a cell: of a velocity each inner face is counted once."""
    total = ti.f32(0.0)
    for k in range(components):
        value = a[c + k * cells_of(s, n)]
        total += value * value
    return total


@ti.func
def _write_speed(c, I, s, u: Array, out: Array, n, scale, on):
    out[c] = scale * length(on.at_centre(u, c, n))


@ti.func
def _write_divergence(c, I, s, u: Array, out: Array, n, scale, on):
    out[c] = scale * on.outflow(u, c, s, n)


@ti.func
def _write_cut_divergence(c, I, s, u: Array, out: Array, fluid: Array, solids):
    out[c] = ti.select(fluid[c] > 0, solids.outflow_at(u, c, I, s) / solids.dx, ti.f32(0.0))


@ti.func
def _mean_at(c, I, s, a: Array, b: Array, out: Array):
    out[c] = ti.f32(0.5) * (a[c] + b[c])


@ti.func
def _subtract_at(c, I, s, a: Array, b: Array):
    a[c] = a[c] - b[c]


@ti.func
def _clear_air_at(c, I, s, a: Array, level: Array):
    if level[c] >= 0:
        a[c] = ti.f32(0.0)


@ti.func
def _clear_past_edges_at(c, I, s, a: Array, level: Array, open: Array, n):
    """0 in cells that air comes into through what a solid leaves of a face: it may be held back there (``FreeSurface.hold_back``)."""
    for axis in ti.static(range(s.n)):
        for end in ti.static(range(2)):
            face, beyond = c + end * s[axis] + axis * cells_of(s, n), c + (2 * end - 1) * s[axis]
            if open[face] > 0 and open[face] < 1 and level[beyond] >= 0:
                a[c] = ti.f32(0.0)


@ti.func
def _wet_square_at(c, I, s, u: Array, level: Array, fluid: Array, n, given: ti.template()):
    """Sum of the squares of the components of a cell, each as far as what lies around its face is liquid, and in no solid."""
    total = ti.f32(0.0)
    for axis in range(s.n):
        value, part = u[c + axis * cells_of(s, n)], covered_part(level[c], level[c - s[axis]])
        if ti.static(given):
            # The level goes on into solids. Beyond a side of the box there is as much as before it.
            part *= ti.f32(0.5) * (fluid[c] + fluid[c - ti.select(I[axis] > 1, s[axis], 0)])
        total += part * value * value
    return total


@ti.func
def _write_wet_component(c, I, s, u: Array, level: Array, out: Array, n, axis, weighed):
    """A component on lower faces by the part of what lies around that is liquid, or, if it is not ``weighed``, where any is."""
    part = covered_part(level[c], level[c - s[axis]])
    out[c] = u[c + axis * cells_of(s, n)] * ti.select(weighed == 1, part, ti.cast(part > 0, ti.f32))


@ti.func
def _write_wet_part(c, I, s, level: Array, out: Array, inv_dx):
    out[c] = coverage(level[c], inv_dx)


@ti.func
def _write_vorticity(c, I, s, u: Array, out: Array, n, scale, on):
    w = vorticity_at(u, c, n, on.derivative)
    out[c] = scale * (length(w) if ti.static(n.n == 3) else w[2])


@ti.func
def _write_squared_vorticity(c, I, s, u: Array, out: Array, n, scale, on):
    out[c] = scale * on.squared_vorticity(u, c, n)


@kernel_family
def magnitude_kernels(loops, components):
    IntVector, reduce, reduced, width = loops.IntVector, loops.reduce, loops.reduced, loops.long

    @ti.kernel
    def largest_magnitude(a: Array, n: IntVector, partials: Array, out: Array):
        reduce(n, partials, Reduction(ti.f32(0.0), largest, _largest_of, (a, components, n, width), width))
        ti.loop_config(serialize=True)
        for _ in range(1):
            out[0] = reduced(partials, ti.f32(0.0), largest)

    return {"largest_magnitude": largest_magnitude}


@kernel_family
def wet_kernels(loops, given):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def clear_air(a: Array, level: Array, n: IntVector):
        each_cell(n, _clear_air_at, (a, level))

    @ti.kernel
    def clear_past_edges(a: Array, level: Array, open: Array, n: IntVector):
        each_cell(n, _clear_past_edges_at, (a, level, open, n))

    @ti.kernel
    def write_wet_component(velocity: Array, level: Array, out: Array, n: IntVector, axis: ti.i32, weighed: ti.i32):
        each_cell(n, _write_wet_component, (velocity, level, out, n, axis, weighed))

    @ti.kernel
    def write_wet_part(level: Array, out: Array, n: IntVector, inv_dx: ti.f32):
        each_cell(n, _write_wet_part, (level, out, inv_dx))

    @ti.kernel
    def wet_squares(velocity: Array, level: Array, fluid: Array, n: IntVector, partials: Array, out: Array):
        none = ti.f32(0.0)
        loops.reduce_to(out, 0, n, partials, none, add, _wet_square_at, (velocity, level, fluid, n, given))

    return {
        "clear_air": clear_air,
        "clear_past_edges": clear_past_edges,
        "write_wet_component": write_wet_component,
        "write_wet_part": write_wet_part,
        "wet_squares": wet_squares,
    }


@kernel_family
def cut_kernels(loops):
    IntVector, FloatVector, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell

    @ti.kernel
    def compute_divergence(
        velocity: Array, out: Array, fluid: Array, open: Array, distance: Array, owner: Array, motions: Array,
        n: IntVector, origin: FloatVector, dx: ti.f32,
    ):  # fmt: skip
        solids = CutCells(open, distance, owner, motions, n, origin, dx)
        each_cell(n, _write_cut_divergence, (velocity, out, fluid, solids))

    @ti.kernel
    def amount(a: Array, fluid: Array, n: IntVector, offset: ti.i32, partials: Array, out: Array):
        loops.reduce_to(out, 0, n, partials, ti.f32(0.0), add, _amount_at, (a, offset, fluid))

    return {"compute_divergence": compute_divergence, "amount": amount}


@kernel_family
def diagnostic_kernels(loops, on):
    IntVector, each_cell = loops.IntVector, loops.each_cell
    reduce_to = loops.reduce_to

    @ti.kernel
    def squares(a: Array, components: ti.i32, n: IntVector, partials: Array, out: Array):
        reduce_to(out, 0, n, partials, ti.f32(0.0), add, _square_at, (a, components, n))

    @ti.kernel
    def total(a: Array, n: IntVector, offset: ti.i32, partials: Array, out: Array):
        reduce_to(out, 0, n, partials, ti.f32(0.0), add, _value_at, (a, offset))

    @ti.kernel
    def subtract(a: Array, b: Array, n: IntVector):
        each_cell(n, _subtract_at, (a, b))

    @ti.kernel
    def compute_mean(a: Array, b: Array, out: Array, n: IntVector):
        each_cell(n, _mean_at, (a, b, out))

    @ti.kernel
    def outflows(velocity: Array, n: IntVector, partials: Array, out: Array):
        reduce_to(out, 0, n, partials, ti.f32(0.0), largest, _outflow_at, (velocity, n, on))
        reduce_to(out, 1, n, partials, ti.f32(0.0), add, _outflow_square_at, (velocity, n, on))

    @ti.kernel
    def compute_speed(velocity: Array, out: Array, n: IntVector, scale: ti.f32):
        each_cell(n, _write_speed, (velocity, out, n, scale, on))

    @ti.kernel
    def compute_divergence(velocity: Array, out: Array, n: IntVector, scale: ti.f32):
        each_cell(n, _write_divergence, (velocity, out, n, scale, on))

    @ti.kernel
    def compute_vorticity(velocity: Array, out: Array, n: IntVector, scale: ti.f32):
        each_cell(n, _write_vorticity, (velocity, out, n, scale, on))

    @ti.kernel
    def square_vorticity(velocity: Array, out: Array, n: IntVector, scale: ti.f32):
        each_cell(n, _write_squared_vorticity, (velocity, out, n, scale, on))

    return {
        "squares": squares,
        "total": total,
        "subtract": subtract,
        "compute_mean": compute_mean,
        "outflows": outflows,
        "compute_speed": compute_speed,
        "compute_divergence": compute_divergence,
        "compute_vorticity": compute_vorticity,
        "square_vorticity": square_vorticity,
    }


class Divergence(NamedTuple):
    """Largest and root-mean-square divergence, in 1/s."""

    max: float
    rms: float


class Diagnostics:
    """Measures the quantities of one grid.

    Args:
        grid: The grid.
        solids: What stands in it: a cell that it cuts has the divergence of its fluid and its solid part together.
        level: Signed distance to the surface of a liquid, negative in it, at cell centres: what is measured of the
            velocity is then that of the liquid, and 0 in the air.
    """

    def __init__(self, grid: Grid, solids: Solids | None = None, level=None):
        self.grid, self.solids, self.level = grid, solids, level
        self._array = None
        self._partials = room_for_partials()
        self._out = ti.ndarray(ti.f32, 2)
        self._kernels = diagnostic_kernels(grid.loops, grid.placement)
        self._wet, self._nothing = wet_kernels(grid.loops, solids is not None), ti.ndarray(ti.f32, 1)

    def largest_magnitude(self, array) -> float:
        """Largest |value| over the cells, every component of a vector; infinite if any value is not finite."""
        self.grid.require(None, array=array)
        components = array.shape[0] // self.grid.cells
        kernels = magnitude_kernels(self.grid.loops, components)
        kernels.largest_magnitude(array, self.grid.n, self._partials, self._out)
        value = numbers_of(self._out)[0]
        return math.inf if value >= NOT_FINITE else value

    def not_finite(self, array) -> tuple[tuple[int, ...], int]:
        """Of the cells in which a value is not finite the first, counted from 0 along each axis, and how many there are.

        It reads all of the array: for what ``largest_magnitude`` has found.
        """
        bad = ~(np.abs(self.grid.to_numpy(array)) < NOT_FINITE)
        cells = np.argwhere(bad if bad.ndim == self.grid.dim else bad.any(axis=0))
        return tuple(int(i) for i in cells[0]) if len(cells) else (), len(cells)

    def integral(self, array, offset: int = 0) -> float:
        """Integral over the box of the scalar that begins at ``offset``: mean times volume (2D: times area)."""
        self.grid.require(None, offset, array=array)
        self._kernels.total(array, self.grid.n, offset, self._partials, self._out)
        return numbers_of(self._out)[0] * self.grid.cell_volume

    def amount(self, array, offset: int = 0) -> float:
        """The integral of a carried scalar over the fluid: a cell that solids cut counts as far as it is fluid."""
        if self.solids is None:
            return self.integral(array, offset)
        self.grid.require(None, offset, array=array)
        kernels = cut_kernels(self.grid.loops)
        kernels.amount(array, self.solids.fluid, self.grid.n, offset, self._partials, self._out)
        return numbers_of(self._out)[0] * self.grid.cell_volume

    def kinetic_energy(self, velocity, rho: float = 1.0) -> float:
        """Half of rho times the integral of |u|² over the inner faces or the cells, in J (2D: J/m); of a liquid, over what it fills."""
        self.grid.require(self.grid.dim, velocity=velocity)
        if self.level is None:
            self._kernels.squares(velocity, self.grid.dim, self.grid.n, self._partials, self._out)
        else:
            fluid = self._nothing if self.solids is None else self.solids.fluid
            self._wet.wet_squares(velocity, self.level, fluid, self.grid.n, self._partials, self._out)
        return 0.5 * rho * numbers_of(self._out)[0] * self.grid.cell_volume

    def enstrophy(self, velocity) -> float:
        """Half of the integral of the square of the vorticity, in m³/s² (2D: m²/s²); without solids, and of a liquid without air."""
        self.grid.require(self.grid.dim, velocity=velocity)
        squares = self._stored()
        self._kernels.square_vorticity(velocity, squares, self.grid.n, 0.5 / self.grid.dx**2)
        if self.solids is not None:
            self.solids.clear_scalar(squares)
        self._clear_air(squares)
        return self.integral(squares)

    def divergence(self, velocity, expansion=None) -> Divergence:
        """Divergence that a velocity has left; on the collocated grid by differences over two cells.

        Of a liquid without that of cells that air comes into past the edge of a solid, which have another one.

        Args:
            velocity: Velocity of the grid, m/s.
            expansion: The divergence that it should have, at cell centres, 1/s, which is then taken off; left out, 0.
                ``Simulation.expansion`` is that of a running flow.
        """
        self.grid.require(**given(expansion=expansion))
        self.grid.require(self.grid.dim, velocity=velocity)
        if self.solids is not None or expansion is not None or self.level is not None:
            return self._stored_divergence(velocity, expansion)
        self._kernels.outflows(velocity, self.grid.n, self._partials, self._out)
        largest_outflow, squares = numbers_of(self._out)
        mean_square = squares / math.prod(self.grid.shape)
        return Divergence(largest_outflow / self.grid.dx, math.sqrt(mean_square) / self.grid.dx)

    def _stored_divergence(self, velocity, expansion) -> Divergence:
        divergence = self._stored()
        self.compute_divergence(velocity, divergence)
        if expansion is not None:
            self._kernels.subtract(divergence, expansion, self.grid.n)
            self._clear_air(divergence)
            if self.level is not None and self.solids is not None:
                self._wet.clear_past_edges(divergence, self.level, self.solids.open, self.grid.n)
        largest = self.largest_magnitude(divergence)
        self._kernels.squares(divergence, 1, self.grid.n, self._partials, self._out)
        return Divergence(largest, math.sqrt(numbers_of(self._out)[0] / math.prod(self.grid.shape)))

    def _clear_air(self, array) -> None:
        """Set a scalar to 0 in the air, where there is a liquid."""
        if self.level is not None:
            self._wet.clear_air(array, self.level, self.grid.n)

    def _stored(self):
        """An array to measure in, made at its first use."""
        if self._array is None:
            self._array = self.grid.array()
        return self._array

    def _require(self, velocity, out) -> None:
        self.grid.require(self.grid.dim, velocity=velocity)
        self.grid.require(out=out)

    def compute_mean(self, a, b, out) -> None:
        """The mean of two scalars."""
        self.grid.require(a=a, b=b, out=out)
        self._kernels.compute_mean(a, b, out, self.grid.n)

    def compute_wet_component(self, velocity, axis: int, out, weighed: bool) -> None:
        """A component of the velocity of a liquid on the lower faces of cells, m/s, 0 in the air.

        ``weighed`` by the part of what lies around a face that is liquid, so that the sum is the flow of all of it.
        """
        self._require(velocity, out)
        assert self.level is not None
        self._wet.write_wet_component(velocity, self.level, out, self.grid.n, axis, int(weighed))

    def compute_wet_part(self, out) -> None:
        """What part of each cell lies below the surface of a liquid, solids left aside."""
        self.grid.require(out=out)
        assert self.level is not None
        self._wet.write_wet_part(self.level, out, self.grid.n, 1.0 / self.grid.dx)

    def compute_speed(self, velocity, out) -> None:
        """|u| at the cell centres, m/s."""
        self._require(velocity, out)
        self._kernels.compute_speed(velocity, out, self.grid.n, 1.0)
        self._clear_air(out)

    def compute_divergence(self, velocity, out) -> None:
        """Divergence of each cell, 1/s; 0 inside solids."""
        self._require(velocity, out)
        if self.solids is not None:
            kernels = cut_kernels(self.grid.loops)
            kernels.compute_divergence(velocity, out, self.solids.fluid, *self.solids.arguments())
        else:
            self._kernels.compute_divergence(velocity, out, self.grid.n, 1.0 / self.grid.dx)
        self._clear_air(out)

    def compute_vorticity(self, velocity, out) -> None:
        """Vorticity at the cell centres, 1/s: its magnitude in 3D, with its sign in 2D."""
        self._require(velocity, out)
        self._kernels.compute_vorticity(velocity, out, self.grid.n, 1.0 / self.grid.dx)
        self._clear_air(out)
