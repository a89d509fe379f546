"""Particles for what the core has left: as many as it would have had there."""

import math

from .._ti import argument, ti
from ..boundaries.solids import Solids
from ..grid import Grid
from ..kernels import Array, flat, float_vector, kernel_family
from ..kernels.layout import IntArray, strides_of
from .core import LEFT, Core
from .lattice import MOST, SPREAD, Ground, Places, Wanted, bare_solids, count_wanted, ground_of, seed_of, spread
from .motion import Way
from .particles import FULL, Cloud, Particles
from .sides import Seams

TURNS = {2: (0.7548777, 0.5698403), 3: (0.8191725, 0.6710436, 0.5497005)}
"""Part of a cell by which the lattice moves from step to step that fills what a core has left: however little that is, as many
places are in it as belong there (R sequences, Roberts 2018)."""


@argument
class Change:
    """How a core changes: what it ``was`` before a step, and a way back to there, by the velocity with which it has gone."""

    was: object
    way: object
    shift: object  # of the lattice that fills what it has left; it differs from cell to cell

    @ti.func
    def asks(self, c, I, present, ground):
        """Whether the core has come into a cell and is not found there again."""
        return ground.cored_at(c) == LEFT


@ti.func
def _wants_left(c, I, place, cloud, ground, change):
    """Whether a place was in the core before the step, and is left by it.

    Also one that a solid has come upon, as on any particle, which it then pushes aside.
    """
    seed = seed_of(I, place, spread(c, change.shift))
    x = seed + change.way.shift_of(seed)
    J = ti.min(ti.max(ti.cast(ti.floor(x), ti.i32) + 1, 1), ground.solids.n)
    return ti.cast(change.was[flat(J, strides_of(ground.solids.n))] == 1, ti.i32)


@kernel_family
def refill_kernels(loops, given, wraps):
    Index, Point, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell

    @ti.kernel
    def count_left(
        position: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        counts: IntArray,
        places: IntArray,
        was: IntArray,
        velocity: Array,
        step: ti.f32,
        part: ti.f32,
        shift: Point,
        core: IntArray,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        period: Point,
    ):
        ground = Ground(bare_solids(distance, n, origin, dx, period, wraps), given, core, True)
        cloud = Cloud(position, position, position, order, starts, room)
        change = Change(was, Way(velocity, n, step, part=part), shift)
        each_cell(
            n,
            count_wanted,
            (_wants_left, (cloud, ground, change), Wanted(counts, places, FULL[loops.dim]), MOST[loops.dim]),
        )

    return (count_left,)


class Refill:
    """Makes the particles of what the core of a liquid has left.

    Args:
        grid: The grid.
        solids: What stands in it, where it is now.
        places: Those of the grid.
        seams: Its periodic axes.
    """

    def __init__(self, grid: Grid, solids: Solids | None, places: Places, seams: Seams):
        self.grid, self.solids, self._places, self._seams = grid, solids, places, seams

    def put(self, particles: Particles, velocity, core: Core, draw: int) -> None:
        """Fill what ``core`` has left in the last step, with the velocity on the faces; ``draw`` is the number of the step."""
        where = ground_of(self.grid, self.solids, self._places.nothing, self._seams)
        kernels = refill_kernels(self.grid.costly_loops, self.solids is not None, self._seams.any)
        position, _, _, order, starts, room = particles.arrays()
        turns = (math.fmod(draw * part, 1.0) for part in TURNS[self.grid.dim])
        shift, wanted = float_vector(self.grid.dim)(*turns), (self._places.counts, self._places.places)
        change = core.was, core.went, -core.step, core.part, shift, core.change
        kernels.count_left(position, order, starts, room, *wanted, *change, *where)
        self._places.fill(particles, shift, faces=velocity, lattice=SPREAD)
