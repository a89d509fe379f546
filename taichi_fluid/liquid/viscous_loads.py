"""What friction within a liquid does to solids: the mean of a step.

Some of that a liquid has of the step before, by its ``Kick``: where solids move they were elsewhere then. So what the stress pushes
each closed face with is kept, and whose face it is, is asked afterwards: the nearest solid's, though that it was of has gone.
"""

import numpy as np

from .._ti import ti
from ..boundaries.solids import CutCells, Solids
from ..grid import Grid
from ..kernels import Array, Reduction, add, cells_of, kernel_family, numbers_of
from ..kernels.reduce import room_for_partials
from ..physics.loads import NUMBERS, Rows, load_of, load_sum, no_load, rows_of
from .sides import Seams
from .stress import SolidFaces, Stress


@ti.func
def _keep_at(c, I, s, u: Array, borne: Array, stress, solids, kept, again):
    """What the stress pushes closed faces with, ``again`` its ``rest`` alone: it takes as much from the liquid."""
    for axis in ti.static(range(s.n)):
        face, push = c + axis * cells_of(s, solids.cut.n), ti.f32(0.0)
        if solids.on_side(I, axis) == 0 and solids.leave(c, s, axis) == 0:
            if again == 0:
                push = stress.push(u, c, s, axis)
            push += stress.rest(u, c, s, axis, again)
        had = ti.select(kept > 0, kept * borne[face], ti.f32(0.0))  # that is no number after a flow that blew up
        borne[face] = had + push


@ti.func
def _load_at(c, I, s, borne: Array, solids, rows):
    total = no_load()
    for axis in ti.static(range(s.n)):
        push = borne[c + axis * cells_of(s, solids.n)]
        if push != 0:
            row = solids.row_at(c, s, axis)
            if rows.has(row):
                total += load_of(solids, row, solids.middle_of(I, axis), axis, push)
    return total


@kernel_family
def keeping_kernels(loops):
    Index, Point = loops.IntVector, loops.FloatVector

    @ti.kernel
    def keep(
        u: Array,
        borne: Array,
        felt: Array,
        pushed: ti.f32,
        kept: ti.f32,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        wrap: Index,
        again: ti.i32,
    ):
        solids = SolidFaces(CutCells(open, distance, owner, motions, n, origin, dx), True, wrap)
        stress = Stress(None, felt, solids.cut, pushed, True)  # of which nobody asks how much is liquid
        loops.each_cell(n, _keep_at, (u, borne, stress, solids, kept, again))

    return {"keep": keep}


@kernel_family
def viscous_load_kernels(loops):
    Index, Point, write_sum = loops.IntVector, loops.FloatVector, load_sum(loops)

    @ti.kernel
    def sum_load(
        borne: Array,
        begin: ti.i32,
        end: ti.i32,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        partials: Array,
        out: Array,
    ):
        solids = CutCells(open, distance, owner, motions, n, origin, dx)
        loops.reduce(n, partials, Reduction(no_load(), add, _load_at, (borne, solids, Rows(begin, end))))
        write_sum(out, partials)

    return {"sum_load": sum_load}


class ViscousLoads:
    """What friction within a liquid has done to the solids in it, in the last step.

    Attributes:
        borne: What pushes each closed face, over density and, in 3D, a length: m²/s², on the faces of a velocity.

    Args:
        grid: A staggered grid.
        solids: What stands in it.
        seams: Its periodic axes.
    """

    def __init__(self, grid: Grid, solids: Solids, seams: Seams):
        self.grid, self.solids, self._seams = grid, solids, seams
        self.borne = grid.velocity()
        self._partials, self._out = room_for_partials(NUMBERS), ti.ndarray(ti.f32, NUMBERS)

    def keep(self, velocity, felt, pushed: float, kept: float, again: bool = False) -> None:
        """Keep what friction does in a step.

        Args:
            velocity: By which it does, m/s, closed at seams.
            felt: See ``Stress``.
            pushed: Kinematic viscosity, m²/s, times the part of the step for which it is so.
            kept: The part of what is kept already that stays.
            again: Whether it is the ``rest`` of the stress that does.
        """
        solids, wrap = self.solids.arguments(), self._seams.wrap
        keeping_kernels(self.grid.loops).keep(velocity, self.borne, felt, pushed, kept, *solids, wrap, int(again))

    def clear(self) -> None:
        """Have friction do nothing until it acts."""
        self.borne.fill(0.0)

    def load(self, index: int, rho: float) -> np.ndarray:
        """Force, N (2D: N/m), and torque about its pivot on the solid of a number: two rows of three; of a liquid of so many kg/m³."""
        arguments = *rows_of(self.solids, index), *self.solids.arguments()
        kernels = viscous_load_kernels(self.grid.costly_loops)
        kernels.sum_load(self.borne, *arguments, self._partials, self._out)
        return rho * self.grid.dx ** (self.grid.dim - 2) * np.array(numbers_of(self._out)).reshape(2, 3)
