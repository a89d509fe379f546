"""Diffusion of what solids hold at a value, or give at a rate, at their surfaces.

A cell whose centre lies in a solid that holds something is not solved for; a neighbour of it reaches the surface after a
part of the way between their centres, and the difference there counts over that part. (Gibou, Fedkiw, Cheng, Kang 2002.)
What a solid gives enters each cell through the area of surface in it, which is what its open faces leave to close it.
"""

from .._ti import argument, ti
from ..boundaries.solids import Solids
from ..kernels import Array, cells_of, kernel_family
from ..operators.interpolation import step_to_corner
from ..operators.vectors import length

NEAREST = 0.1
"""Part of a cell nearer than which a surface does not count."""
ROW = 3
"""Numbers of one solid: whether it holds a value, which, and what it gives each second through each m²."""


@argument
class Surfaces:
    """Where solids are and what each has, in rows of ``ROW``."""

    distance: object
    owner: object
    table: object

    @ti.func
    def depth_at(self, c, s):
        """Distance from the centre of a cell to the nearest surface, m; below 0 inside a solid."""
        total = ti.f32(0.0)
        for corner in ti.static(range(2**s.n)):
            total += self.distance[c + step_to_corner(corner, s)]
        return total * ti.f32(0.5**s.n)

    @ti.func
    def row_at(self, c, s):
        """Where the row of the solid begins that is nearest to a cell."""
        best, index = self.distance[c], self.owner[c]
        for corner in ti.static(range(1, 2**s.n)):
            node = c + step_to_corner(corner, s)
            if self.distance[node] < best:
                best, index = self.distance[node], self.owner[node]
        return ti.static(ROW) * ti.cast(index, ti.i32)

    @ti.func
    def holds_at(self, c, s):
        """Whether the centre of a cell lies in a solid that holds a value, 0 or 1."""
        inside = 0
        if self.depth_at(c, s) <= 0:
            inside = ti.cast(self.table[self.row_at(c, s)], ti.i32)
        return inside

    @ti.func
    def weight_at(self, c, place, s):
        """1 over the part of the way from a cell to its neighbour that lies before the surface."""
        here, there = ti.max(self.depth_at(c, s), ti.f32(0.0)), ti.max(-self.depth_at(place, s), ti.f32(0.0))
        return ti.f32(1.0) / ti.max(here / ti.max(here + there, ti.f32(1e-20)), ti.f32(NEAREST))


@argument
class Solved:
    """Which cells are solved for, above 0 in ``mask``, on a grid of ``n``; ``wrap`` is 1 along periodic axes."""

    mask: object
    n: object
    wrap: object


@ti.func
def _mark_free_at(c, I, s, fluid: Array, surfaces, free: Array):
    free[c] = ti.f32(0.0)
    if fluid[c] > 0 and surfaces.holds_at(c, s) == 0:
        free[c] = ti.f32(1.0)


@ti.func
def _set_held_at(c, I, s, a: Array, offset, fluid: Array, surfaces):
    if fluid[c] > 0 and surfaces.holds_at(c, s) == 1:
        a[offset + c] = surfaces.table[surfaces.row_at(c, s) + 1]


@ti.func
def _write_beside_surfaces(c, I, s, a: Array, offset, solved, surfaces, held: Array, out: Array):
    """The Laplacian where solids hold a scalar, and what they add to the diagonal."""
    value, total = ti.f32(0.0), ti.f32(0.0)
    if solved.mask[c] > 0:
        for axis in ti.static(range(s.n)):
            for side in ti.static((-1, 1)):
                neighbour = c + side * s[axis]
                at_end = I[axis] == (solved.n[axis] if ti.static(side == 1) else 1)
                if solved.mask[neighbour] > 0 or (at_end and solved.wrap[axis] == 0):
                    value += a[offset + neighbour] - a[offset + c]
                else:
                    place = neighbour
                    if at_end:
                        place = c - side * (solved.n[axis] - 1) * s[axis]
                    row = surfaces.row_at(place, s)
                    if surfaces.table[row] > 0:
                        weight = surfaces.weight_at(c, place, s)
                        total += weight
                        value += weight * (surfaces.table[row + 1] - a[offset + c])
    out[c] = value
    held[c] = total


@ti.func
def _add_given_at(c, I, s, mask: Array, surfaces, open: Array, n, scale, out: Array):
    if mask[c] > 0:
        flux = surfaces.table[surfaces.row_at(c, s) + 2]
        if flux != 0:
            area = ti.cast(s, ti.f32) * ti.f32(0.0)
            for axis in ti.static(range(s.n)):
                face = c + axis * cells_of(s, n)
                area[axis] = open[face + s[axis]] - open[face]
            out[c] = out[c] + scale * flux * length(area)


@kernel_family
def warm_solid_kernels(loops):
    Index, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def mark_free(fluid: Array, free: Array, n: Index, distance: Array, owner: Array, table: Array):
        each_cell(n, _mark_free_at, (fluid, Surfaces(distance, owner, table), free))

    @ti.kernel
    def set_held(a: Array, offset: ti.i32, fluid: Array, n: Index, distance: Array, owner: Array, table: Array):
        each_cell(n, _set_held_at, (a, offset, fluid, Surfaces(distance, owner, table)))

    @ti.kernel
    def compute_beside_surfaces(
        a: Array, offset: ti.i32, mask: Array, wrap: Index, held: Array, out: Array, n: Index,
        distance: Array, owner: Array, table: Array,
    ):  # fmt: skip
        surfaces = Surfaces(distance, owner, table)
        each_cell(n, _write_beside_surfaces, (a, offset, Solved(mask, n, wrap), surfaces, held, out))

    @ti.kernel
    def add_given(
        mask: Array, open: Array, scale: ti.f32, out: Array, n: Index, distance: Array, owner: Array, table: Array
    ):
        each_cell(n, _add_given_at, (mask, Surfaces(distance, owner, table), open, n, scale, out))

    return mark_free, set_held, compute_beside_surfaces, add_given


class WarmSolids:
    """What the solids of one grid hold or give, as diffusion sees it.

    Args:
        solids: The solids.
    """

    def __init__(self, solids: Solids):
        self.solids, self.grid = solids, solids.grid
        self.free = self.grid.array()
        self._kernels = warm_solid_kernels(self.grid.loops)

    def _where(self, name: str, k: int) -> tuple:
        return self.grid.n, self.solids.distance, self.solids.owner, self.solids.conditions(name, k)

    def mark(self, name: str, k: int) -> None:
        """Note in ``free`` which cells are solved for."""
        self._kernels.mark_free(self.solids.fluid, self.free, *self._where(name, k))

    def compute(self, a, offset: int, name: str, system, held, rhs) -> None:
        """dx² times the Laplacian of ``a[offset:…]`` into ``rhs``, and what solids add to the diagonal into ``held``."""
        where = self._where(name, offset // self.grid.cells)
        self._kernels.compute_beside_surfaces(a, offset, system.unknown, system.wrap, held, rhs, *where)

    def add_given(self, rhs, mask, name: str, k: int, scale: float) -> None:
        """``scale`` times what solids give, to the cells in which their surfaces lie."""
        self._kernels.add_given(mask, self.solids.open, scale, rhs, *self._where(name, k))

    def set_held(self, a, offset: int, name: str) -> None:
        """Set cells whose centre lies in a solid to what that holds."""
        self._kernels.set_held(a, offset, self.solids.fluid, *self._where(name, offset // self.grid.cells))
