"""What the fluid does to solids: force and torque, of pressure and of friction.

Both are what the step itself takes from the fluid. The pressure of a cell presses on what solids cover of its faces, the
transpose of how their motion enters its divergence, so that its power is the work that the moving faces do. (Batty,
Bertails, Bridson 2007.) By that a pressure that rises evenly presses with its slope times what is covered of faces, a sum
that lacks 1.7 % of a disk of 8 cells radius; where it is weight that makes the pressure, as in a liquid, that is how much a solid
seems to hold, so there the slope acts on what is covered of cells. Friction is what diffusion exchanges with each face that a solid closes.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._ti import argument, local, subscript, ti, traced
from ..boundaries.solids import CutCells, Solids
from ..boundaries.solids.cut_cells import MOTION_ROW
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import (
    Array,
    Reduction,
    add,
    cells_of,
    copy_values,
    int_vector,
    kernel_family,
    numbers_of,
    room_for_partials,
)
from ..limits import require_not_negative
from ..operators.vectors import cross
from .friction import NEAREST, Component, Surface, Unknowns, beside_solids_kernels

NUMBERS = 6
"""Of a load: three of the force and three of the torque, in 2D with zeros between."""


@dataclass(frozen=True)
class Load:
    """Force and torque of the fluid on a solid, in 2D for each metre of depth.

    Attributes:
        pressure: Force of the pressure, N (2D: N/m), one number for each axis.
        friction: Force of friction, N (2D: N/m).
        pressure_torque: Torque of the pressure about the solid's pivot, N m (2D: N), one number in 2D, three in 3D.
        friction_torque: Torque of friction about it.
    """

    pressure: tuple[float, ...]
    friction: tuple[float, ...]
    pressure_torque: tuple[float, ...]
    friction_torque: tuple[float, ...]

    @classmethod
    def of(cls, pressure: np.ndarray, friction: np.ndarray, dim: int) -> "Load":
        """A load of what ``Loads`` has measured on a grid of ``dim`` axes."""
        turns = slice(2, 3) if dim == 2 else slice(3)
        forces, torques = zip(pressure, friction, strict=True)
        return cls(
            *(tuple(map(float, row[:dim])) for row in forces), *(tuple(map(float, row[turns])) for row in torques)
        )

    @property
    def force(self) -> tuple[float, ...]:
        """All of the force, N (2D: N/m)."""
        return _sum(self.pressure, self.friction)

    @property
    def torque(self) -> tuple[float, ...]:
        """All of the torque about the solid's pivot, N m (2D: N)."""
        return _sum(self.pressure_torque, self.friction_torque)


def _sum(one: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
    return tuple(a + b for a, b in zip(one, other, strict=True))


@argument
class Rows:
    """The rows of the table of motions that a solid and its images have: from ``begin`` to ``end``."""

    begin: object
    end: object

    @ti.func
    def has(self, row):
        """Whether a row is one of them."""
        return self.begin <= row and row < self.end


def rows_of(solids: Solids, index: int) -> tuple[int, int]:
    """Where the rows of a solid and its images begin and end in the table of motions."""
    rows = MOTION_ROW * solids.images
    return index * rows, (index + 1) * rows


@traced
def _three(x):
    """A vector with a third component, 0 in 2D."""
    x = local(x)
    return ti.Vector([subscript(x, k) if k < x.n else ti.cast(0.0, ti.f32) for k in range(3)])


@traced
def no_load(count=NUMBERS):
    """Force and torque of 0, or so many zeros."""
    return ti.Vector([ti.cast(0.0, ti.f32)] * count)


@ti.func
def load_of(solids, row, x, axis, force):
    """A force along ``axis`` that acts at ``x`` on the solid of a row, and its torque."""
    lever, along = _three(x), no_load(3)
    for k in ti.static(range(3)):
        lever[k] -= solids.motions[row + 6 + k]
    along[axis] = force
    torque = cross(lever, along)
    return ti.Vector([along[0], along[1], along[2], torque[0], torque[1], torque[2]])


@ti.func
def _pressure_load_at(c, I, s, pressure: Array, solved: Array, rows, solids):
    """Of one cell: its pressure times what is covered of each of its faces."""
    total = no_load()
    if solved[c] > 0:
        for axis in range(s.n):
            for side in range(2):
                lower, J = c + side * s[axis], I
                J[axis] += side
                covered = ti.f32(1.0) - solids.open[lower + axis * cells_of(s, solids.n)]
                if covered > 0:
                    row, out = solids.row_at(lower, s, axis), ti.f32(2.0) * ti.cast(side, ti.f32) - ti.f32(1.0)
                    if rows.has(row):
                        total += load_of(solids, row, solids.middle_of(J, axis), axis, out * covered * pressure[c])
    return total


@ti.func
def _slope_at(c, s, axis, pressure: Array, weight: Array, solids):
    """How much the pressure rises along ``axis`` in cell ``c``, Pa in a cell, by what is known on both sides of it, or on one.

    A face weighs its open part over the part of the way on which the pressure changes: less than a cell at a surface.
    """
    rise, way = ti.f32(0.0), ti.f32(0.0)
    for side in range(2):
        place = c + side * s[axis]
        face = place + axis * cells_of(s, solids.n)
        if weight[face] > 0:
            rise += pressure[place] - pressure[place - s[axis]]
            way += solids.open[face] / weight[face]
    return rise / ti.max(way, ti.f32(1e-20))


@ti.func
def _volume_load_at(c, I, s, pressure: Array, solved: Array, weight: Array, rows, solids):
    """Of one cell: what the slope of its pressure does to what is covered of it, beyond what faces say that is."""
    total = no_load()
    if solved[c] > 0:
        covered = solids.covered_volume_at(c, s)
        if covered > 0:
            for axis in range(s.n):
                J, lower = I, c + axis * cells_of(s, solids.n)
                J[axis] += 1
                by_faces = ti.f32(1.0) - ti.f32(0.5) * (solids.open[lower] + solids.open[lower + s[axis]])
                fuller = ti.cast(solids.open[lower + s[axis]] < solids.open[lower], ti.i32)
                row = solids.row_at(c + fuller * s[axis], s, axis)
                if rows.has(row):
                    push = (by_faces - covered) * _slope_at(c, s, axis, pressure, weight, solids)
                    middle = ti.f32(0.5) * (solids.middle_of(I, axis) + solids.middle_of(J, axis))
                    total += load_of(solids, row, middle, axis, push)
    return total


@ti.func
def _turning_at(solids, row, axis: ti.template(), component):
    """How fast the velocity of a turning solid changes along ``axis``, 1/s."""
    spin, step = ti.Vector([solids.motions[row + 3 + k] for k in ti.static(range(3))]), no_load(3)
    step[axis] = ti.f32(1.0)
    turning = cross(spin, step)
    return turning[component]


@ti.func
def _friction_load_at(c, I, s, u, unknowns, rows, surface):
    """Of one face of a component, a value at its middle: what it rubs against the solids beside it.

    The stress is that of what moves relative to the solid: without the change of its own velocity along the way.
    """
    total, component, solids = no_load(), u.component, surface.solids
    if unknowns.mask[c] > 0 and I[component] >= unknowns.first[component]:
        for axis in ti.static(range(s.n)):
            for side in ti.static((-1, 1)):
                step = unknowns.step(I, axis, side)
                place = c + step * s[axis]
                row = solids.row_at(place, s, component)
                if step != 0 and unknowns.mask[place] <= 0 and rows.has(row):
                    J = I
                    J[axis] += step
                    pull = surface.pull_at(u, c, s, J, step, axis, side)
                    if pull[0] > 0:
                        slope = side * _turning_at(solids, row, axis, component) - pull[1] / solids.dx
                        x = surface.crossing_at(c, s, J, step, component, axis, side)
                        total += load_of(solids, row, x, component, slope)
    return total


def load_sum(loops):
    """What kernels call after reducing loads: it writes their sum from the partial ones."""

    @ti.func
    def write_sum(out: Array, partials: Array):
        ti.loop_config(serialize=True)
        for _ in range(1):
            total = loops.reduced(partials, no_load(), add)
            for k in ti.static(range(NUMBERS)):
                out[k] = total[k]

    return write_sum


@kernel_family
def load_kernels(loops):
    IntVector, FloatVector, reduce, write_sum = loops.IntVector, loops.FloatVector, loops.reduce, load_sum(loops)

    @ti.kernel
    def sum_pressure(
        pressure: Array,
        solved: Array,
        begin: ti.i32,
        end: ti.i32,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: IntVector,
        origin: FloatVector,
        dx: ti.f32,
        partials: Array,
        out: Array,
    ):
        rows, solids = Rows(begin, end), CutCells(open, distance, owner, motions, n, origin, dx)
        reduce(n, partials, Reduction(no_load(), add, _pressure_load_at, (pressure, solved, rows, solids)))
        write_sum(out, partials)

    @ti.kernel
    def sum_volumes(
        pressure: Array,
        solved: Array,
        weight: Array,
        begin: ti.i32,
        end: ti.i32,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: IntVector,
        origin: FloatVector,
        dx: ti.f32,
        partials: Array,
        out: Array,
    ):
        rows, solids = Rows(begin, end), CutCells(open, distance, owner, motions, n, origin, dx)
        load = Reduction(no_load(), add, _volume_load_at, (pressure, solved, weight, rows, solids))
        reduce(n, partials, load)
        write_sum(out, partials)

    @ti.kernel
    def sum_friction(
        a: Array,
        offset: ti.i32,
        component: ti.i32,
        nearest: ti.f32,
        clearance: Array,
        first: IntVector,
        wrap: IntVector,
        begin: ti.i32,
        end: ti.i32,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: IntVector,
        origin: FloatVector,
        dx: ti.f32,
        partials: Array,
        out: Array,
    ):
        surface = Surface(CutCells(open, distance, owner, motions, n, origin, dx), clearance, nearest)
        unknowns, rows = Unknowns(clearance, first, wrap, n), Rows(begin, end)
        u = Component(a, offset, component)
        reduce(n, partials, Reduction(no_load(), add, _friction_load_at, (u, unknowns, rows, surface)))
        write_sum(out, partials)

    return sum_pressure, sum_volumes, sum_friction


class Loads:
    """Measures the loads on the solids of one grid, each sum in two stages that are always in the same order.

    Args:
        grid: The grid.
        walls: Its sides.
        solids: What stands in it.
    """

    def __init__(self, grid: Grid, walls: Walls, solids: Solids):
        self.grid, self.walls, self.solids = grid, walls, solids
        self._partials, self._out = room_for_partials(NUMBERS), ti.ndarray(ti.f32, NUMBERS)
        self._kernels = load_kernels(grid.costly_loops)

    def pressure(self, index: int, pressure, solved, weight=None) -> np.ndarray:
        """Force, N, and torque about its pivot, N m, of a pressure on the solid of a number: two rows of three.

        Args:
            index: Which solid.
            pressure: At cell centres, Pa.
            solved: Above 0 in the cells in which that is known.
            weight: What a face weighs in the system that the pressure of a liquid solves: its slope acts on volumes then.
        """
        self.grid.require(pressure=pressure, solved=solved)
        where = *rows_of(self.solids, index), *self.solids.arguments(), self._partials, self._out
        self._kernels.sum_pressure(pressure, solved, *where)
        total = self._sum(1.0)
        if weight is not None:
            self.grid.require(self.grid.dim, weight=weight)
            self._kernels.sum_volumes(pressure, solved, weight, *where)
            total += self._sum(1.0)
        return total

    def friction(self, index: int, velocity, viscosity: float, nearest: float = NEAREST) -> np.ndarray:
        """Force, N, and torque about its pivot, N m, of a velocity on the solid of a number: two rows of three.

        Args:
            index: Which solid.
            velocity: Of the staggered grid, m/s, ghosts filled.
            viscosity: Dynamic, Pa s.
            nearest: Part of a cell nearer than which a surface does not count.
        """
        self.grid.require(self.grid.dim, velocity=velocity)
        require_not_negative("viscosity", viscosity, "Pa s")
        grid, walls, solids, middles = self.grid, self.walls, self.solids.arguments(), self._middles
        copy_values(velocity, middles)
        total = np.zeros((2, 3))
        for component in range(grid.dim):
            where = middles, component * grid.cells, component
            beside_solids_kernels(grid.loops).to_middles(*where, self._clearance, *solids)
            walls.fill(middles, component, component * grid.cells)
            unknowns = self._clearance, int_vector(grid.dim)(*walls.first_unknown(component)), walls.wrap
            results = self._partials, self._out
            self._kernels.sum_friction(*where, nearest, *unknowns, *rows_of(self.solids, index), *solids, *results)
            total += self._sum(viscosity)
        return total

    @functools.cached_property
    def _middles(self):
        return self.grid.velocity()

    @functools.cached_property
    def _clearance(self):
        return self.grid.array()

    def _sum(self, scale: float) -> np.ndarray:
        return scale * self.grid.dx ** (self.grid.dim - 1) * np.array(numbers_of(self._out)).reshape(2, 3)
