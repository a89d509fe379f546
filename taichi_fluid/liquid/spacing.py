"""Particles that a slow flow has drawn up in lines, pushed apart to where they lie in a full cell.

What strains a liquid for long strains the lattice of its particles: where a thread of honey spreads on a floor they come to lie
closely above one another and far apart sideways, and what is found from them, surface and crowds, differs from line to line. No
splash mixes them. So each goes a little away from those that are nearer than in the lattice, near the surface along it (after
Ando, Tsuruno 2011, and Xu, Stansby, Laurence 2009).
"""

from .._ti import argument, ti
from ..boundaries.solids import Solids
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import Array, flat, kernel_family, strides_of
from ..kernels.layout import IntArray
from ..operators.interpolation import inside_box, sample, uphill, wrapped
from ..operators.vectors import length
from .lattice import Ground, bare_solids, ground_of
from .motion import CLEARANCE, away_from, distance_at
from .particles import PER_AXIS, Particles, set_vector, vector_at
from .sides import Seams

STRENGTH = 0.2
"""What two in the same place are pushed by in a step in which the fastest cross a cell, as part of the lattice's spacing."""
MOST = 0.1
"""How far one goes at the most, in cells."""
SHALLOW = 0.9
"""Depth below the surface, in cells, down to which particles go along that; what is not below it stays where it is: spray flies on its own."""


@argument
class _Crowd:
    """Particles by the cell that they are in, and how near, in cells, two of them may be."""

    position: object
    order: object
    starts: object
    room: object
    spacing: object

    @ti.func
    def apart(self, d):
        """How far one is to go from another that is ``d`` away, as part of the spacing."""
        r = length(d)
        near = ti.max(ti.f32(1.0) - r / self.spacing, ti.f32(0.0))
        return near * near * d / ti.max(r, ti.f32(1e-6))

    @ti.func
    def push_at(self, p, x, ground):
        """Away from those around particle ``p`` at ``x``, and off sides and solids as from its own mirror image."""
        n, push = ground.solids.n, x * ti.f32(0.0)
        s, first = strides_of(n), ti.cast(ti.floor(x - ti.f32(0.5)), ti.i32) + 1
        for corner in range(ti.static(2**x.n)):
            J = first
            for axis in ti.static(range(x.n)):
                J[axis] += (corner >> axis) & 1
            K = ground.solids.across(J)
            if (K >= 1).all() and (n >= K).all():
                cell, y = ti.cast(flat(K, s), ti.i32), x + ti.cast(K - J, ti.f32)
                for i in range(self.starts[cell], self.starts[cell + 1]):
                    other = self.order[i]
                    d = y - vector_at(self.position, other, self.room, x)
                    # Of those in the cells around one in fifteen is so near.
                    if d.dot(d) < self.spacing * self.spacing and other != p:
                        push += self.apart(d)
        for axis in ti.static(range(x.n)):
            below, above = x * ti.f32(0.0), x * ti.f32(0.0)
            below[axis], above[axis] = ti.f32(2.0) * x[axis], ti.f32(2.0) * (x[axis] - ti.cast(n[axis], ti.f32))
            if ground.solids.ends(axis) == 1:
                push += self.apart(below) + self.apart(above)
        if ti.static(ground.given):
            push += self.apart(ti.f32(2.0) * distance_at(ground.solids, x) * away_from(ground.solids, x))
        return push


@ti.func
def _moved(p, x, crowd, phi: Array, ground, strength):
    """Where particle ``p``, which is at ``x``, goes."""
    n, y = ground.solids.n, x
    depth = -sample(phi, 0, inside_box(x + ti.f32(0.5), n), n) / ground.solids.dx
    if depth > 0:
        push = strength * crowd.spacing * crowd.push_at(p, x, ground)
        if depth < SHALLOW:
            outwards = uphill(phi, x + ti.f32(0.5), 0.5, 0.0, n, ground.solids.period, ground.solids.wraps)
            push -= push.dot(outwards) * outwards
        push *= ti.min(ti.f32(MOST) / ti.max(length(push), ti.f32(MOST)), ti.f32(1.0))
        there = wrapped(x + push, x * ti.f32(0.0), ground.solids.period, ground.solids.wraps)
        for axis in ti.static(range(x.n)):
            if ground.solids.ends(axis) == 1:
                end = ti.cast(n[axis], ti.f32) - ti.f32(CLEARANCE)
                there[axis] = ti.min(ti.max(there[axis], ti.f32(CLEARANCE)), end)
        y = ti.select(ground.is_free(there) == 1, there, x)
    return y


@kernel_family
def spacing_kernels(loops, given, wraps):
    Index, Point, spacing = loops.IntVector, loops.FloatVector, 1.0 / PER_AXIS[loops.dim]

    @ti.kernel
    def push_apart(
        position: Array,
        order: IntArray,
        starts: IntArray,
        there: Array,
        room: ti.i32,
        number: ti.i32,
        phi: Array,
        strength: ti.f32,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        period: Point,
    ):
        for p in range(number):
            crowd = _Crowd(position, order, starts, room, ti.f32(spacing))
            ground = Ground(bare_solids(distance, n, origin, dx, period, wraps), given)
            x = vector_at(position, p, room, origin)
            set_vector(there, p, room, _moved(p, x, crowd, phi, ground, strength))

    return (push_apart,)


class Spacing:
    """Pushes particles of one grid apart.

    Args:
        grid: The grid.
        solids: What stands in it.
        walls: Its sides; left out, no axis is periodic.
    """

    def __init__(self, grid: Grid, solids: Solids | None, walls: Walls | None = None):
        self.grid, self.solids, self._seams = grid, solids, Seams(grid, walls)

    def restore(self, particles: Particles, phi, crossed: float) -> None:
        """Let particles go where they are less near to others, farther the farther the fastest have gone: ``crossed`` cells.

        Their velocities stay: ``Transfer.from_faces`` is to come, and ``sort`` before anything asks for the particles of a cell.
        """
        kernels = spacing_kernels(self.grid.costly_loops, self.solids is not None, self._seams.any)
        position, _, _, order, starts, room = particles.arrays()
        there = particles.spare("position")
        strength = STRENGTH * min(crossed, 1.0)
        where = ground_of(self.grid, self.solids, phi, self._seams)
        kernels.push_apart(position, order, starts, there, room, particles.count, phi, strength, *where)
        particles.take("position")
        particles.scattered()
