"""Where particles crowd, or lack, in the liquid: a divergence that spreads or gathers them.

How many there are for the room around is a mean with weights 1, 2, 1 along each axis. With equal ones a row that is too full
between two that are too empty would count as too empty, gather still more, and so grow.
"""

from .._ti import ti
from ..boundaries.solids import Solids
from ..grid import Grid
from ..kernels import Array, flat, kernel_family, neighbour
from ..kernels.layout import IntArray
from .core import BELOW, Core, cover_of
from .lattice import Ground, bare_solids, ground_of
from .motion import distance_at
from .particles import FULL, Cloud, Particles

RESTORED = 0.1
"""Part of what particles are too many or too few, in the mean of 3^dim cells, that a step of a cell or more spreads or gathers."""
UNSURE = 0.15
"""What particles beside solids may be too many by before they are spread."""


@ti.func
def _write_crowding(c, I, s, cloud, phi: Array, out: Array, ground, rate):
    """The divergence, 1/s, that takes ``rate`` of what particles are too many for the room around, or deep down too few."""
    out[c] = ti.f32(0.0)
    if phi[c] < 0 and ground.cored_at(c) == 0:
        full, beside, within = ti.f32(1.0 * FULL[s.n]), ti.i32(0), ti.i32(0)
        if ti.static(ground.given):
            nearest = distance_at(ground.solids, ti.cast(I, ti.f32) - ti.f32(0.5))
            beside, within = ti.cast(nearest < ti.f32(2.5), ti.i32), ti.cast(nearest < 0, ti.i32)
        total, room, highest = ti.i32(0), ti.f32(0.0), ti.f32(-1e9)
        for around in range(ti.static(3**s.n)):
            J, weight = neighbour(I, around), ti.i32(1)
            for axis in ti.static(range(s.n)):
                weight *= 2 - ti.abs(J[axis] - I[axis])
            J, share = ti.min(ti.max(J, 1), ground.solids.n), ti.cast(weight, ti.f32)
            cell = ti.cast(flat(J, s), ti.i32)
            if ti.static(ground.given):
                if beside == 1:
                    away = distance_at(ground.solids, ti.cast(J, ti.f32) - ti.f32(0.5))
                    share *= ti.min(ti.max(ti.f32(0.5) + away, ti.f32(0.0)), ti.f32(1.0))
            count = cloud.starts[cell + 1] - cloud.starts[cell]
            count = ti.select(ground.cored_at(cell) == 1, ti.i32(FULL[s.n]), count)
            total += weight * count
            room += share
            highest = ti.max(highest, phi[cell])
        own = ti.cast(cloud.starts[ti.cast(c, ti.i32) + 1] - cloud.starts[ti.cast(c, ti.i32)], ti.f32) / full
        crowd = ti.cast(total, ti.f32) / (full * ti.max(room, ti.f32(2.0**s.n))) - ti.f32(1.0)
        if beside == 1:
            crowd = ti.max(crowd - ti.f32(UNSURE), ti.f32(0.0))
        crowd = ti.max(crowd, ti.f32(0.5) * own - ti.f32(1.0))
        # Beside the surface cells are not full, and lack nothing.
        if within == 0 and (crowd > 0 or highest <= ti.f32(-BELOW) * ground.solids.dx):
            out[c] = rate * crowd


@kernel_family
def crowding_kernels(loops, given, cored):
    Index, Point, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell

    @ti.kernel
    def find_crowding(
        position: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        phi: Array,
        core: IntArray,
        out: Array,
        rate: ti.f32,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = Ground(bare_solids(distance, n, origin, dx), given, core, cored)
        cloud = Cloud(position, position, position, order, starts, room)
        each_cell(n, _write_crowding, (cloud, phi, out, ground, rate))

    return (find_crowding,)


class Crowding:
    """Finds where particles of one grid crowd.

    Args:
        grid: The grid.
        solids: What stands in it, where it is now.
        core: What of the liquid has no particles, and is full.
    """

    def __init__(self, grid: Grid, solids: Solids | None, core: Core | None = None):
        self.grid, self.solids, self._core, self._nothing = grid, solids, core, ti.ndarray(ti.f32, 1)

    def find(self, particles: Particles, phi, out, dt: float, crossed: float = 1.0) -> None:
        """Set ``out`` to the divergence, 1/s, that over ``dt`` spreads or gathers ``RESTORED`` of too many or too few.

        Less where the fastest have ``crossed`` less than a cell: else short steps would stir the liquid by what is noise.
        """
        position, _, _, order, starts, room = particles.arrays()
        rate = min(crossed, 1.0) * RESTORED / dt
        core, cored = cover_of(self._core, starts)
        kernels = crowding_kernels(self.grid.costly_loops, self.solids is not None, cored)
        where = ground_of(self.grid, self.solids, self._nothing)
        kernels.find_crowding(position, order, starts, room, phi, core, out, rate, *where)
