"""What falls from a lid: where air has a way in, nothing holds a liquid to a closed side or a solid from which forces lead away.

A cell that a wall closes would else have as much come in as leaves, by a pressure below that of the air: a film under a lid hung there
for seconds. That walls press and never pull (Batty, Bertails, Bridson 2007) is right for films: what is deep is held, as no air comes
there in a step. On floors nothing parts: what is sucked at there, a film that becomes thinner as it flows, parted as much for noise.
"""

from collections.abc import Sequence

from .._ti import argument, ti
from ..boundaries.solids import CutCells, Solids
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import Array, cells_of, copy_values, float_vector, int_vector, kernel_family
from .sides import CLOSED, Seams, closed_all_over

THIN = 2
"""Cells that a film has at the most: behind one so far from a wall there is air."""
PARTED = 0.02
"""How far beyond the surface a cell counts that has parted from a wall, in cells: so near that the faces of the next one lie in the liquid."""


@argument
class _Walls:
    """Which sides are ``closed`` all over, the ``force`` there is, and solids where they are ``given``, with what of each cell they leave
    to the ``fluid``; and what suction a surface ``withstands``.
    """

    closed: object
    force: object
    solids: object
    fluid: object
    given: bool
    withstands: object = 0.0

    @ti.func
    def is_side(self, I, axis: ti.template(), end: ti.template()):
        """Whether a cell lies at a closed side, at this end of an axis."""
        at_end = I[axis] == (self.solids.n[axis] if ti.static(end) else ti.i32(1))
        return ti.cast(at_end & (self.closed[2 * axis + end] == CLOSED), ti.i32)

    @ti.func
    def is_lid(self, c, I, s, axis: ti.template(), end: ti.template()):
        """Whether a cell has a closed side there, or a solid that fills the next cell, from which the force leads away."""
        wall = self.is_side(I, axis, end)
        if ti.static(self.given):
            face, beyond = c + end * s[axis] + axis * cells_of(s, self.solids.n), c + (2 * end - 1) * s[axis]
            solid = (self.solids.open[face] == 0) & (self.fluid[c] > 0) & (self.fluid[beyond] == 0)
            wall = wall | ti.cast(solid, ti.i32)
        return wall & ti.cast(self.force[axis] * ti.f32(1.0 - 2.0 * end) > 0, ti.i32)

    @ti.func
    def speed(self, c, I, s, axis: ti.template(), end: ti.template()):
        """How fast that wall goes along the axis."""
        speed = ti.f32(0.0)
        if ti.static(self.given):
            if self.is_side(I, axis, end) == 0:
                J = I
                J[axis] += end
                speed = self.solids.velocity_at(c + end * s[axis], J, s, axis)
        return speed

    @ti.func
    def is_film(self, c, I, s, before: Array, axis: ti.template(), end: ti.template()):
        """Whether a cell at a wall has air within ``THIN`` cells, away from that."""
        back, room = 1 - 2 * end, I[axis] - 1 if ti.static(end) else self.solids.n[axis] - I[axis]
        film, free = ti.i32(0), ti.i32(1)
        for steps in ti.static(range(1, THIN + 1)):
            if room >= steps:
                there = c + steps * back * s[axis]
                if ti.static(self.given):
                    free = free & ti.cast(self.fluid[there] > 0, ti.i32)
                film = film | (free & ti.cast(before[there] >= 0, ti.i32))
        return film


@ti.func
def _part_at(c, I, s, before: Array, phi: Array, was: Array, pressure: Array, u: Array, walls):
    """A cell of a film that was sucked at a lid, or has parted from it and moves away, counts as air."""
    if before[c] < 0:
        parts = ti.i32(0)
        for axis in ti.static(range(s.n)):
            for end in ti.static(range(2)):
                if walls.is_lid(c, I, s, axis, end) == 1:
                    low = c + axis * cells_of(s, walls.solids.n)
                    here, opposite = u[low + end * s[axis]], u[low + (1 - end) * s[axis]]
                    away = (opposite - walls.speed(c, I, s, axis, end)) * ti.f32(1.0 - 2.0 * end)
                    # ``let_go`` gives both the same, bit for bit, in what was in the air; in the liquid, where a solid has come, chance does.
                    parted = here == opposite and away > 0
                    if ti.static(walls.given):
                        parted = parted and was[c] >= 0
                    if parted or (pressure[c] < -walls.withstands and walls.is_film(c, I, s, before, axis, end) == 1):
                        parts = ti.i32(1)
        if parts == 1:
            phi[c] = ti.f32(PARTED) * walls.solids.dx


@ti.func
def _let_go_at(c, I, s, u: Array, also: Array, phi: Array, walls):
    """In a cell in the air a lid holds nothing that moves away from it: its face has the velocity of the opposite one."""
    if phi[c] >= 0:
        for axis in ti.static(range(s.n)):
            for end in ti.static(range(2)):
                if walls.is_lid(c, I, s, axis, end) == 1:
                    low = c + axis * cells_of(s, walls.solids.n)
                    here, opposite = low + end * s[axis], low + (1 - end) * s[axis]
                    if (u[opposite] - u[here]) * ti.f32(1.0 - 2.0 * end) > 0:
                        u[here], also[here] = u[opposite], also[opposite]


@kernel_family
def parting_kernels(loops, given):
    Index, Point = loops.IntVector, loops.FloatVector
    Flags = int_vector(2 * loops.dim)

    @ti.kernel
    def part(
        before: Array,
        phi: Array,
        was: Array,
        pressure: Array,
        u: Array,
        closed: Flags,
        force: Point,
        withstands: ti.f32,
        fluid: Array,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        walls = _Walls(closed, force, CutCells(open, distance, owner, motions, n, origin, dx), fluid, given, withstands)
        loops.each_cell(n, _part_at, (before, phi, was, pressure, u, walls))

    @ti.kernel
    def let_go(u: Array, also: Array, phi: Array, closed: Flags, force: Point, fluid: Array, open: Array, n: Index):
        # In place: of the two cells beside a wall's face one alone is none of a solid's.
        walls = _Walls(closed, force, CutCells(open, None, None, None, n, None, None), fluid, given)
        loops.each_cell(n, _let_go_at, (u, also, phi, walls))

    return part, let_go


class Parting:
    """Lets the liquid of one grid part from what is above it.

    Args:
        grid: A staggered grid.
        walls: Its sides.
        solids: What stands in it.
        before: An array of the grid to work in.

    Attributes:
        force: What the liquid falls by, m/s².
    """

    def __init__(self, grid: Grid, walls: Walls, solids: Solids | None, before):
        self.grid, self.solids, self._before = grid, solids, before
        self._closed, self._seams = closed_all_over(walls), Seams(grid, walls)
        self._kernels, self._nothing = parting_kernels(grid.loops, solids is not None), ti.ndarray(ti.f32, 1)
        self.force: Sequence[float] = (0.0,) * grid.dim

    def part(self, phi, was, pressure, velocity, force: Sequence[float], withstands: float = 0.0) -> None:
        """Let the cells of films that leave a lid count as air in ``phi``, m, the distance to the surface.

        Args:
            phi: At centres; its ghosts are set.
            was: What it was in that step; read where there are solids.
            pressure: Of the step before, Pa.
            velocity: On the faces, m/s, as that step has left it, walls' faces as ``let_go`` has.
            force: What the liquid falls by, m/s², from now on.
            withstands: The suction that does not part it, Pa.
        """
        grid, nothing = self.grid, self._nothing
        others = (nothing,) * 5 + (grid.n, float_vector(grid.dim)(*grid.origin), grid.dx)
        if self.solids is not None:
            others = (self.solids.fluid, *self.solids.arguments())
        self.force = force
        copy_values(phi, self._before)
        self._kernels.part(self._before, phi, was, pressure, velocity, self._closed, self._fall(), withstands, *others)
        self._seams.mirror(phi)

    def let_go(self, velocity, also, phi) -> None:
        """Let lids have the velocity of what moves away from them in cells in the air, and of what is ``also`` given as much."""
        grid, nothing = self.grid, self._nothing
        fluid, open = (nothing, nothing) if self.solids is None else (self.solids.fluid, self.solids.open)
        self._kernels.let_go(velocity, also, phi, self._closed, self._fall(), fluid, open, grid.n)

    def _fall(self):
        return float_vector(self.grid.dim)(*self.force)
