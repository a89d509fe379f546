"""Where particles crowd, or lack, in the liquid: a divergence that spreads or gathers them.

How many there are is what they weigh on the faces of a cell, beside what as many weigh as fill what lies around. Counts of whole
cells would not do: where a flow strains a lattice of particles its rows pass from cell to cell one at a time, and what is
then found to be too many or too few drives a wave. Beside solids, the core and sides that let liquid through, where faces have
particles on one side only, there are only counts.
"""

import math
from collections.abc import Mapping
from typing import Any

from .._ti import argument, ti
from ..boundaries.solids import Solids
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import Array, cells_of, copy_values, flat, int_vector, kernel_family, neighbour
from ..kernels.layout import IntArray
from ..operators.differences import centre_velocity_at
from ..operators.interpolation import sample, wrapped
from .core import BELOW, Core, cover_of
from .lattice import Ground, bare_solids, ground_of
from .level_set import MOST_OFF
from .motion import distance_at
from .particles import FULL, PER_AXIS, Particles, zero_of
from .sides import OPEN, Seams, closed_all_over

RESTORED = 0.1
"""Part of what particles are too many or too few, in the mean around a cell, that a step of a cell or more spreads or gathers."""
LASTS = 1.0
"""Cells that the fastest cross while a mean over time follows what is found: each change of it from step to step is a blow of pressure.
For more of them what is stirred is spread so late that more lies below the surface: `docs/design.md`."""
UNSURE = 0.15
"""What particles beside solids may be too many by before they are spread."""
DEEP = BELOW - max(MOST_OFF.values()) - 0.01
"""How far below the surface, in cells, the centre of a cell lies at least that is full: a surface that stays is known no deeper."""
TOO_FULL = 16.0
"""Cells of liquid that a box without a way out holds beyond its room where nothing is spread any more: the less the more there are. What
an inflow had brought too much went into the last of the air in each step, the faster the shorter that was."""
NEAR = 2.5
"""Cells from a solid within which a cell lies beside it."""
BESIDE = {dim: sum(max(0.5 - (k + 0.5) / m, 0.0) for k in range(m)) / m for dim, m in PER_AXIS.items()}
"""Part of the weights on a face, a tent two cells wide along each axis, that a full row of cells beside its own has."""


@ti.func
def _weighed(c, I, s, weight: Array, ground):
    """What particles are too many, or too few, around a cell by their weights on its faces, as a part of all that there should be."""
    mass, room, n = ti.f32(0.0), ti.f32(0.0), ground.solids.n
    for axis in ti.static(range(s.n)):
        face, part = c + axis * cells_of(s, n), ti.f32(2.0)
        mass += weight[face] + weight[face + s[axis]]
        for k in ti.static(range(s.n)):
            # Beyond a side of the box there is nothing, and half of what a face on it might weigh.
            ends = ti.cast(I[k] == 1, ti.f32) + ti.cast(I[k] == n[k], ti.f32)
            ends *= ti.cast(ground.solids.ends(k), ti.f32)
            part *= ti.f32(1.0) - (ti.f32(0.25) if ti.static(k == axis) else ti.f32(BESIDE[s.n])) * ends
        room += part
    return mass / (ti.f32(1.0 * FULL[s.n]) * room) - ti.f32(1.0)


@ti.func
def _counted(I, s, starts: IntArray, ground, beside):
    """The same by counts: a mean with weights 1, 2, 1 along each axis.

    With equal ones a row that is too full between two that are too empty would count as too empty, gather still more, and so
    grow.
    """
    full, total, room = ti.f32(1.0 * FULL[s.n]), ti.i32(0), ti.f32(0.0)
    for around in range(ti.static(3**s.n)):
        J, weight = neighbour(I, around), ti.i32(1)
        for axis in ti.static(range(s.n)):
            weight *= 2 - ti.abs(J[axis] - I[axis])
        cell, share = _within(J, s, ground), ti.cast(weight, ti.f32)
        if ti.static(ground.given):
            if beside == 1:
                away = distance_at(ground.solids, ti.cast(J, ti.f32) - ti.f32(0.5))
                share *= ti.min(ti.max(ti.f32(0.5) + away, ti.f32(0.0)), ti.f32(1.0))
        count = starts[cell + 1] - starts[cell]
        total += weight * ti.select(ground.cored_at(cell) == 1, ti.i32(FULL[s.n]), count)
        room += share
    return ti.cast(total, ti.f32) / (full * ti.max(room, ti.f32(2.0**s.n))) - ti.f32(1.0)


@ti.func
def _within(J, s, ground):
    """The cell of the box that is nearest to ``J``, or that it is an image of."""
    n = ground.solids.n
    return ti.cast(flat(ti.min(ti.max(ground.solids.across(J), 1), n), s), ti.i32)


@argument
class _Past:
    """What was found in the step before, which has gone along with a velocity since: ``shift`` is cells for each m/s.

    ``follows`` is by how much it counts in the unit of what is found now, and ``news`` by how much that; ``rate`` is by how much
    that does alone.
    """

    found: object
    velocity: object
    shift: object
    follows: object
    news: object
    rate: object

    @ti.func
    def mean_with(self, new, c, I, solids):
        """What is found now, in the mean with it."""
        found, n = self.news * new, solids.n
        if self.follows > 0:
            q = ti.cast(I, ti.f32) - self.shift * centre_velocity_at(self.velocity, c, n)
            q = wrapped(q, zero_of(n) + ti.f32(0.5), solids.period, solids.wraps)
            for axis in ti.static(range(n.n)):
                if solids.ends(axis) == 1:
                    q[axis] = ti.min(ti.max(q[axis], ti.f32(1.0)), ti.cast(n[axis], ti.f32))
            found += self.follows * sample(self.found, 0, q, n)
        return found


@ti.func
def _write_crowding(c, I, s, weight: Array, starts: IntArray, phi: Array, out: Array, ground, past):
    """The divergence, 1/s, that takes a part of what particles are too many for the room around, or deep down too few."""
    out[c] = ti.f32(0.0)
    if phi[c] < 0 and ground.cored_at(c) == 0:
        n, dx = ground.solids.n, ground.solids.dx
        highest, passes, beside, within = ti.f32(-1e9), ti.i32(0), ti.i32(0), ti.i32(0)
        for axis in ti.static(range(s.n)):
            passes = passes | ti.cast(I[axis] == 1, ti.i32) * ti.cast(ground.closed[2 * axis] == OPEN, ti.i32)
            passes = passes | ti.cast(I[axis] == n[axis], ti.i32) * ti.cast(ground.closed[2 * axis + 1] == OPEN, ti.i32)
        rough = passes
        for around in range(ti.static(3**s.n)):
            cell = _within(neighbour(I, around), s, ground)
            highest = ti.max(highest, phi[cell])
            rough = rough | ground.cored_at(cell)
        if ti.static(ground.given):
            nearest = distance_at(ground.solids, ti.cast(I, ti.f32) - ti.f32(0.5))
            beside, within = ti.cast(nearest < ti.f32(NEAR), ti.i32), ti.cast(nearest < 0, ti.i32)
            rough = rough | beside
        crowd = ti.f32(0.0)
        if rough == 0:
            crowd = _weighed(c, I, s, weight, ground)
        else:
            crowd = _counted(I, s, starts, ground, beside)
            if beside == 1 or passes == 1:
                # What flows in through a side comes a row of particles at a time, and lacks half of one on average.
                crowd = ti.max(crowd - ti.f32(UNSURE), ti.f32(0.0))
        cell = ti.cast(c, ti.i32)
        own = ti.cast(starts[cell + 1] - starts[cell], ti.f32) / ti.f32(1.0 * FULL[s.n])
        crowd = ti.max(crowd, ti.f32(0.5) * own - ti.f32(1.0))
        # Beside the surface cells are not full, and lack nothing: what they have too many is no mean of what there was.
        if within == 0:
            if highest <= ti.f32(-DEEP) * dx:
                out[c] = past.mean_with(crowd, c, I, ground.solids)
            else:
                out[c] = past.rate * ti.max(crowd, ti.f32(0.0))


@kernel_family
def crowding_kernels(loops, given, cored, wraps):
    Index, Point, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell
    Flags = int_vector(2 * loops.dim)

    @ti.kernel
    def find_crowding(
        weight: Array,
        starts: IntArray,
        phi: Array,
        core: IntArray,
        out: Array,
        closed: Flags,
        before: Array,
        velocity: Array,
        shift: ti.f32,
        follows: ti.f32,
        news: ti.f32,
        rate: ti.f32,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        period: Point,
    ):
        ground = Ground(bare_solids(distance, n, origin, dx, period, wraps), given, core, cored, closed)
        past = _Past(before, velocity, shift, follows, news, rate)
        each_cell(n, _write_crowding, (weight, starts, phi, out, ground, past))

    return (find_crowding,)


class Crowding:
    """Finds where particles of one grid crowd.

    Args:
        grid: The grid.
        walls: Its sides.
        solids: What stands in it, where it is now.
        core: What of the liquid has no particles, and is full.

    Attributes:
        rate: What part of too many particles the divergence that was found last takes in a second; 0 where there is none.
    """

    def __init__(self, grid: Grid, walls: Walls, solids: Solids | None, core: Core | None = None):
        self._closed, self._seams = closed_all_over(walls), Seams(grid, walls)
        self.grid, self.solids, self._core, self._nothing = grid, solids, core, ti.ndarray(ti.f32, 1)
        self._ends, self._covered, self.rate = not walls.has_open, -1.0, 0.0

    def find(self, particles: Particles, weight, phi, velocity, out, room, dt: float, crossed: float = 1.0) -> None:
        """Set ``out`` to the divergence, 1/s, that over ``dt`` spreads or gathers ``RESTORED`` of too many or too few.

        Less where the fastest have ``crossed`` less than a cell: else short steps would stir the liquid by what is noise.
        ``weight`` and ``velocity`` are what ``Transfer.to_faces`` has found, ``out`` is what this did the step before, ``room`` any array.
        """
        spread = RESTORED * min(max(1.0 - self._beyond_room(particles) / TOO_FULL, 0.0), 1.0)
        rate, news = min(crossed, 1.0) * spread / dt, -math.expm1(-crossed / LASTS)
        follows = (1.0 - news) * rate / self.rate if self.rate > 0 else 0.0
        self.rate = rate
        copy_values(out, room)
        self._seams.close(room)
        core, cored = cover_of(self._core, particles.starts)
        kernels = crowding_kernels(self.grid.costly_loops, self.solids is not None, cored, self._seams.any)
        where = ground_of(self.grid, self.solids, self._nothing, self._seams)
        past = room, velocity, dt / self.grid.dx, follows, news * rate, rate
        kernels.find_crowding(weight, particles.starts, phi, core, out, self._closed, *past, *where)

    def state(self) -> dict[str, float]:
        """What it is between two steps."""
        return {"spreads": self.rate, "covered": self._covered}

    def restore_state(self, numbers: Mapping[str, Any]) -> None:
        """Be what ``state`` has found, as far as that was kept."""
        self.rate, self._covered = float(numbers.get("spreads", 0.0)), float(numbers.get("covered", -1.0))

    def _beyond_room(self, particles: Particles) -> float:
        """Cells of liquid that are there beyond what a box without a way out has room for; what solids take is counted where it is nearly full."""
        if not self._ends:
            return 0.0
        count = particles.count if self._core is None else self._core.held_with(particles)
        room, held = math.prod(self.grid.shape), count / FULL[self.grid.dim]
        if self.solids is not None:
            if self._covered < 0 or held > 0.98 * (room - self._covered):
                self._covered = room - float(self.grid.to_numpy(self.solids.fluid).sum())
            room -= self._covered
        return held - room
