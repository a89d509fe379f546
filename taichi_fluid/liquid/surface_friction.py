"""What friction does to faces just above the surface of a liquid, shared with those below it, which a step keeps.

Where a surface lies below the middle of a cell, the faces along it in that cell have some of the liquid around them, and friction
acts on that; the velocity that they have afterwards is continued from the liquid, though, as no pressure holds them. Of waves,
which lose energy by the stress at their surface alone, up to four tenths of that was gone. So each such face and those beside it
in the liquid change by one mean, weighed by how much liquid is around each: together they keep their momentum. The thicker the
liquid, and the longer a step, the more of what acts on such a face the implicit solve has handed on by itself, so that it counts by
1 / (1 + ν dt / dx²): without that ripples on a film of honey went at 0.6 of their speed, with it at 0.99 to 1.03.
"""

from .._ti import argument, loaded, ti
from ..grid import Grid
from ..kernels import Array, cells_of, kernel_family
from ..operators.ghosts import across_seams
from ..operators.shapes import coverage
from .sides import Seams


@argument
class _Rubbed:
    """A velocity after friction and ``before`` it, distances to the surface, and how far faces are open.

    Axes and neighbours are numbers of the program that runs: of all of them told apart as it is compiled that took six seconds.
    """

    u: object
    before: object
    phi: object
    open: object
    n: object
    dx: object
    share: object
    wrap: object

    @ti.func
    def stride(self, s, axis):
        """From a cell to the next one along an axis."""
        found = s[0] * 0
        for d in ti.static(range(s.n)):
            found = ti.select(d == axis, s[d], found)
        return found

    @ti.func
    def beside(self, I, neighbour):
        """The cell on one side of another, across a seam too; ``neighbour`` counts both sides of the first axis first."""
        J = I
        for d in ti.static(range(I.n)):
            J[d] += ti.select(neighbour // 2 == d, 2 * (neighbour % 2) - 1, 0)
        return across_seams(J, self.n, self.wrap)

    @ti.func
    def is_open(self, c, I, s, axis):
        """Whether the lower face of a cell lies in the box or on a side of it, and solids leave any of it."""
        inside = ti.i32(1)
        for d in ti.static(range(I.n)):
            inside &= ti.cast((I[d] >= 1) & (I[d] <= self.n[d] + ti.cast(d == axis, ti.i32)), ti.i32)
        if inside == 1:
            inside = ti.cast(self.open[c + axis * cells_of(s, self.n)] > 0, ti.i32)
        return inside == 1

    @ti.func
    def is_wet(self, c, s, axis):
        """Whether the lower face of a cell is beside one in the liquid, so that the pressure holds it."""
        return ti.min(self.phi[c], self.phi[c - self.stride(s, axis)]) < 0

    @ti.func
    def distance(self, c, s, axis):
        """From the lower face of a cell to the surface, in cells."""
        return ti.f32(0.5) * (self.phi[c] + self.phi[c - self.stride(s, axis)]) / self.dx

    @ti.func
    def mass(self, c, s, axis):
        """Part of the cube around the lower face of a cell that is liquid, by what is open of that."""
        part = coverage(self.distance(c, s, axis), ti.f32(1.0))
        return part * self.open[c + axis * cells_of(s, self.n)]

    @ti.func
    def change(self, c, s, axis):
        """What friction has done to the lower face of a cell, m/s."""
        face = c + axis * cells_of(s, self.n)
        return self.u[face] - self.before[face]

    @ti.func
    def nearness(self, c, I, s, axis):
        """By how much the wet faces beside the lower one of a cell are nearer to the liquid than that, together, in cells."""
        total, here = ti.f32(0.0), self.distance(c, s, axis)
        for neighbour in range(2 * s.n):
            J = self.beside(I, neighbour)
            there = c + (J - I).dot(s)
            if self.is_open(there, J, s, axis):
                if self.is_wet(there, s, axis):
                    total += ti.max(here - self.distance(there, s, axis), ti.f32(0.0))
        return total


@ti.func
def _share_at(c, I, s, given):
    rubbed = loaded(given)
    for axis in range(s.n):
        is_wet = ti.i32(0)
        if rubbed.is_open(c, I, s, axis):
            is_wet = ti.cast(rubbed.is_wet(c, s, axis), ti.i32)
        if is_wet == 1:
            here, weight = rubbed.distance(c, s, axis), rubbed.mass(c, s, axis)
            gain = weight * rubbed.change(c, s, axis)
            for neighbour in range(2 * s.n):
                J = rubbed.beside(I, neighbour)
                there = c + (J - I).dot(s)
                if rubbed.is_open(there, J, s, axis):
                    nearer = rubbed.distance(there, s, axis) - here
                    if nearer > 0 and not rubbed.is_wet(there, s, axis):
                        part = rubbed.share * rubbed.mass(there, s, axis) * nearer / rubbed.nearness(there, J, s, axis)
                        weight += part
                        gain += part * rubbed.change(there, s, axis)
            face = c + axis * cells_of(s, rubbed.n)
            if weight > 0:
                given.u[face] = given.before[face] + gain / weight


@kernel_family
def sharing_kernels(loops):
    Index = loops.IntVector

    @ti.kernel
    def share(u: Array, before: Array, phi: Array, open: Array, n: Index, dx: ti.f32, share: ti.f32, wrap: Index):
        loops.each_cell(n, _share_at, (_Rubbed(u, before, phi, open, n, dx, share, wrap),))

    return {"share": share}


def share_friction(grid: Grid, velocity, before, phi, open, step: float, seams: Seams) -> None:
    """Let what friction has made of a velocity, which was ``before`` that, be shared across the surface of a liquid.

    ``step`` is ν dt / dx², of the friction. Only wet faces change, and of the faces beside one only those are read that are not: none that another thread writes.
    """
    sharing_kernels(grid.loops).share(velocity, before, phi, open, grid.n, grid.dx, 1.0 / (1.0 + step), seams.wrap)
