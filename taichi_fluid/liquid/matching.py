"""Particles that fill what lies below a given surface, moved until the surface found from them is the given one.

A lattice that is not aligned with the surface ends in steps, and so does what is found from it, by up to a tenth of a cell: waves
no higher than that would feel the pressure of others.
"""

from .._ti import ti
from ..boundaries.solids import Solids
from ..kernels import Array, kernel_family
from ..operators.interpolation import inside_box, sample, uphill, wrapped
from .lattice import bare_solids, ground_of
from .motion import distance_at
from .particles import Particles, set_vector, vector_at
from .sides import Seams

TIMES = 3
"""How often they are moved: a quarter of what is off is left then. Moved six times, drops by FLIP swung up to 5 % too slowly."""
EVEN, LAST = 0.5, 3.0
"""Cells below the surface down to which all move as far, and from which on none does: so that they crowd nowhere."""
MOST = 0.2
"""Cells by which the surface may be off; where it is farther, as at an edge or a drop of a few, no lattice is the reason."""
BESIDE = 2.0
"""Cells from a solid within which all stay, as surfaces are found in another way there."""


@ti.func
def _off_by(x, found: Array, given: Array, solids):
    """By how much a place is to be moved, in cells: as far as beyond where it lies nearest to the given surface that is found."""
    n, dx, q, half = solids.n, solids.dx, x + ti.f32(0.5), x * ti.f32(0.0) + ti.f32(0.5)
    depth = -sample(given, 0, inside_box(q, n), n) / dx
    outwards = uphill(given, q, 0.5, 0.0, n, solids.period, solids.wraps)
    nearest = inside_box(wrapped(q + depth * outwards, half, solids.period, solids.wraps), n)
    off = (sample(found, 0, nearest, n) - sample(given, 0, nearest, n)) / dx
    part = ti.min(ti.max((ti.f32(LAST) - depth) * ti.f32(1.0 / (LAST - EVEN)), ti.f32(0.0)), ti.f32(1.0))
    return ti.select(ti.abs(off) < ti.f32(MOST), part * off, ti.f32(0.0)) * outwards


@kernel_family
def matching_kernels(loops, given, wraps):
    Index, Point = loops.IntVector, loops.FloatVector

    @ti.kernel
    def match(
        position: Array,
        room: ti.i32,
        number: ti.i32,
        found: Array,
        wanted: Array,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        period: Point,
    ):
        for p in range(number):
            x, solids = vector_at(position, p, room, origin), bare_solids(distance, n, origin, dx, period, wraps)
            off = _off_by(x, found, wanted, solids)
            if ti.static(given):
                if distance_at(solids, x) < BESIDE:
                    off *= ti.f32(0.0)
            set_vector(position, p, room, wrapped(x + off, off * ti.f32(0.0), period, wraps))

    return (match,)


def match(particles: Particles, solids: Solids | None, seams: Seams, found, given) -> None:
    """Move particles by as much as the surface ``found`` from them is off the one that is ``given``, both distances in m."""
    grid = particles.grid
    grid.require(found=found, given=given)
    kernels = matching_kernels(grid.costly_loops, solids is not None, seams.any)
    where = ground_of(grid, solids, found, seams)
    kernels.match(particles.position, particles.room, particles.count, found, given, *where)
    particles.scattered()
