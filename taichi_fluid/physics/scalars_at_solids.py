"""Diffusion of scalars beside solids, through which nothing passes, or which hold a value, or give at a rate, at their surfaces.

A cell counts as far as it is fluid, and exchanges with its neighbours through what is open of the faces between, as a
volume that is cut. (Johansen, Colella 1998; the difference of two centres stands for the slope at the open part.) What a
solid gives enters each cell through the area of surface in it, which is what its open faces leave to close it.

A cell whose centre lies in a solid that holds something is not solved for; a neighbour of it reaches the surface after a
part of the way between their centres, and the difference there counts over that part; beside such a solid cells and faces
count whole. (Gibou, Fedkiw, Cheng, Kang 2002.)
"""

from dataclasses import replace

from .._ti import argument, ti
from ..boundaries.coefficients import BoundaryCoefficients
from ..boundaries.solids import Solids
from ..kernels import Array, add, cells_of, int_vector, kernel_family, numbers_of, room_for_partials
from ..operators.differences import covered_area
from ..operators.interpolation import mean_of_corners, step_to_corner
from ..operators.sampling import Component
from ..operators.vectors import length
from ..pressure.solver import EllipticSolver

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
        return mean_of_corners(self.distance, c, s)

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
    def is_held_beside(self, c, s):
        """Whether the solid that is nearest to a cell holds a value."""
        return self.table[self.row_at(c, s)] > 0

    @ti.func
    def weight_at(self, c, place, s):
        """1 over the part of the way from a cell to its neighbour that lies before the surface."""
        here, there = ti.max(self.depth_at(c, s), ti.f32(0.0)), ti.max(-self.depth_at(place, s), ti.f32(0.0))
        return ti.f32(1.0) / ti.max(here / ti.max(here + there, ti.f32(1e-20)), ti.f32(NEAREST))


@argument
class Solved:
    """Which cells are solved for, above 0 in ``mask``, on a grid of ``n``, and how.

    Attributes:
        wrap: 1 along periodic axes.
        open: How far each lower face is open.
        weights: What it counts for.
        part: How much of a cell counts.
        box: What sides hold, as ``BoundaryCoefficients`` has it.
        shift: What a whole cell has in the diagonal.
    """

    mask: object
    n: object
    wrap: object
    open: object
    weights: object
    part: object
    box: object = None
    shift: object = None

    @ti.func
    def ends_at(self, I, axis: ti.template(), side: ti.template()):
        """Whether a cell stands at a side of the box."""
        return I[axis] == (self.n[axis] if ti.static(side == 1) else 1)

    @ti.func
    def beside(self, c, I, s, axis: ti.template(), side: ti.template()):
        """The neighbour of a cell, round the box if it stands at a side."""
        place = c + side * s[axis]
        if self.ends_at(I, axis, side):
            place = c - side * (self.n[axis] - 1) * s[axis]
        return place


@ti.func
def is_free(c, s, fluid: Array, surfaces):
    """Whether a cell has its own value: it is fluid, and its centre lies in no solid that holds one."""
    free = ti.i32(0)
    if fluid[c] > 0:
        free = ti.i32(1) - surfaces.holds_at(c, s)
    return free


@ti.func
def _mark_free_at(c, I, s, fluid: Array, surfaces, free: Array):
    free[c] = ti.cast(is_free(c, s, fluid, surfaces), ti.f32)


@ti.func
def _set_held_at(c, I, s, a: Array, offset, fluid: Array, surfaces):
    if fluid[c] > 0 and surfaces.holds_at(c, s) == 1:
        a[offset + c] = surfaces.table[surfaces.row_at(c, s) + 1]


@ti.func
def _write_weights_at(c, I, s, fluid: Array, solved, surfaces):
    """How much of a cell counts, and of its lower faces."""
    whole = surfaces.is_held_beside(c, s)
    solved.part[c] = ti.select(whole, ti.f32(1.0), fluid[c])
    for axis in ti.static(range(s.n)):
        face = c + axis * cells_of(s, solved.n)
        weight = ti.f32(0.0)
        if solved.mask[c] > 0 and solved.mask[c - s[axis]] > 0:
            weight = solved.open[face]
            if weight > 0 and (whole or surfaces.is_held_beside(solved.beside(c, I, s, axis, -1), s)):
                weight = ti.f32(1.0)
        solved.weights[face] = weight


@ti.func
def _write_beside_surfaces(c, I, s, a, solved, surfaces, held: Array, out: Array):
    """The Laplacian, and what sides, solids and the shift add to the diagonal."""
    value, total = ti.f32(0.0), ti.f32(0.0)
    if solved.mask[c] > 0:
        total, here = solved.shift * solved.part[c], a.array[a.offset + c]
        for axis in ti.static(range(s.n)):
            for side in ti.static((-1, 1)):
                neighbour, end = c + side * s[axis], ti.static((side + 1) // 2)
                face = c + axis * cells_of(s, solved.n) + end * s[axis]
                if solved.wrap[axis] == 0 and solved.ends_at(I, axis, side):
                    total += solved.box[2 * axis + end] * solved.open[face]
                    value += solved.open[face] * (a.array[a.offset + neighbour] - here)
                elif solved.mask[neighbour] > 0:
                    value += solved.weights[face] * (a.array[a.offset + neighbour] - here)
                else:
                    place = solved.beside(c, I, s, axis, side)
                    row = surfaces.row_at(place, s)
                    if surfaces.table[row] > 0:
                        weight = surfaces.weight_at(c, place, s)
                        total += weight
                        value += weight * (surfaces.table[row + 1] - here)
    out[c] = value
    held[c] = total


@ti.func
def _divide_by_part_at(c, I, s, a: Array, mask: Array, part: Array):
    if mask[c] > 0:
        a[c] = a[c] / part[c]


@ti.func
def _add_given_at(c, I, s, mask: Array, surfaces, open: Array, n, scale, out: Array):
    if mask[c] > 0:
        flux = surfaces.table[surfaces.row_at(c, s) + 2]
        if flux != 0:
            out[c] = out[c] + scale * flux * length(covered_area(open, c, s, n))


@ti.func
def _exchanged_at(c, I, s, a, fluid: Array, solved, surfaces, rows, spread):
    """What the solids of some ``rows``, from the first to before the last, give a cell, over the area of a face, m/s times its unit."""
    value = ti.f32(0.0)
    if is_free(c, s, fluid, surfaces) == 1:
        for axis in ti.static(range(s.n)):
            for side in ti.static((-1, 1)):
                place = solved.beside(c, I, s, axis, side)
                if solved.wrap[axis] == 1 or not solved.ends_at(I, axis, side):
                    row = surfaces.row_at(place, s)
                    if is_free(place, s, fluid, surfaces) == 0 and rows[0] <= row < rows[1]:
                        held = surfaces.table[row] * (surfaces.table[row + 1] - a.array[a.offset + c])
                        value += spread * surfaces.weight_at(c, place, s) * held
        own = surfaces.row_at(c, s)
        if rows[0] <= own < rows[1]:
            value += surfaces.table[own + 2] * length(covered_area(solved.open, c, s, solved.n))
    return value


@kernel_family
def scalar_kernels(loops):
    Index, Box, each_cell = loops.IntVector, ti.types.vector(2 * loops.dim, ti.f32), loops.each_cell

    @ti.kernel
    def mark_free(fluid: Array, free: Array, n: Index, distance: Array, owner: Array, table: Array):
        each_cell(n, _mark_free_at, (fluid, Surfaces(distance, owner, table), free))

    @ti.kernel
    def set_held(a: Array, offset: ti.i32, fluid: Array, n: Index, distance: Array, owner: Array, table: Array):
        each_cell(n, _set_held_at, (a, offset, fluid, Surfaces(distance, owner, table)))

    @ti.kernel
    def compute_weights(
        fluid: Array,
        mask: Array,
        wrap: Index,
        open: Array,
        weights: Array,
        part: Array,
        n: Index,
        distance: Array,
        owner: Array,
        table: Array,
    ):
        solved = Solved(mask, n, wrap, open, weights, part)
        each_cell(n, _write_weights_at, (fluid, solved, Surfaces(distance, owner, table)))

    @ti.kernel
    def compute_beside_surfaces(
        a: Array,
        offset: ti.i32,
        held: Array,
        out: Array,
        box: Box,
        shift: ti.f32,
        mask: Array,
        wrap: Index,
        open: Array,
        weights: Array,
        part: Array,
        n: Index,
        distance: Array,
        owner: Array,
        table: Array,
    ):
        solved, surfaces = Solved(mask, n, wrap, open, weights, part, box, shift), Surfaces(distance, owner, table)
        each_cell(n, _write_beside_surfaces, (Component(a, offset), solved, surfaces, held, out))

    @ti.kernel
    def add_given(
        mask: Array, open: Array, scale: ti.f32, out: Array, n: Index, distance: Array, owner: Array, table: Array
    ):
        each_cell(n, _add_given_at, (mask, Surfaces(distance, owner, table), open, n, scale, out))

    @ti.kernel
    def divide_by_part(a: Array, mask: Array, part: Array, n: Index):
        each_cell(n, _divide_by_part_at, (a, mask, part))

    @ti.kernel
    def sum_exchanged(
        a: Array,
        offset: ti.i32,
        spread: ti.f32,
        rows: ti.types.vector(2, ti.i32),
        fluid: Array,
        open: Array,
        wrap: Index,
        sums: Array,
        out: Array,
        n: Index,
        distance: Array,
        owner: Array,
        table: Array,
    ):
        solved, surfaces = Solved(None, n, wrap, open, None, None), Surfaces(distance, owner, table)
        what = Component(a, offset)
        loops.reduce_to(out, 0, n, sums, ti.f32(0.0), add, _exchanged_at, (what, fluid, solved, surfaces, rows, spread))

    made = (mark_free, set_held, compute_weights, compute_beside_surfaces, add_given, divide_by_part, sum_exchanged)
    return {each.__name__: each for each in made} | {"Box": Box}


class ScalarsAtSolids:
    """Solids of one grid as the diffusion of scalars sees them.

    Args:
        solids: The solids.
    """

    def __init__(self, solids: Solids):
        self.solids, self.grid = solids, solids.grid
        self._free, self._part = self.grid.array(), self.grid.array()
        self._kernels = scalar_kernels(self.grid.loops)

    def _where(self, name: str | None, k: int) -> tuple:
        return self.grid.n, self.solids.distance, self.solids.owner, self.solids.conditions(name, k)

    def set_up(
        self, solver: EllipticSolver, sides: BoundaryCoefficients, a, offset: int, name: str | None, arrays
    ) -> None:
        """Mark what ``solver`` solves for, and say how far its faces are open.

        Args:
            solver: For which ``setup_marked`` ends the work.
            sides: As ``Walls.diffusion_sides`` has them.
            a: What is diffused, ghosts filled.
            offset: Where the scalar begins in it.
            name: Of the scalar.
            arrays: Two: for what is to be in the diagonal beside faces, and dx² times the Laplacian.
        """
        kernels, solids, where = self._kernels, self.solids, self._where(name, offset // self.grid.cells)
        kernels.mark_free(solids.fluid, self._free, *where)
        solver.mark((1,) * self.grid.dim, replace(sides, box=(0.0,) * len(sides.box)), self._free, cut=True)
        system = solver.system
        solved = system.unknown, system.wrap, solids.open, system.open, self._part
        kernels.compute_weights(solids.fluid, *solved, *where)
        system.close_sides()
        coefficients = kernels.Box(*sides.box), sides.shift
        kernels.compute_beside_surfaces(a, offset, *arrays, *coefficients, *solved, *where)

    def add_given(self, rhs, mask, name: str | None, k: int, scale: float) -> None:
        """``scale`` times what solids give, to the cells in which their surfaces lie."""
        self._kernels.add_given(mask, self.solids.open, scale, rhs, *self._where(name, k))

    def spread(self, rhs, mask) -> None:
        """Make of what cells gain by how much their values rise."""
        self._kernels.divide_by_part(rhs, mask, self._part, self.grid.n)

    def set_held(self, a, offset: int, name: str | None) -> None:
        """Set cells whose centre lies in a solid to what that holds."""
        self._kernels.set_held(a, offset, self.solids.fluid, *self._where(name, offset // self.grid.cells))


class Exchange:
    """What solids of one grid give to what is carried, and take.

    Args:
        solids: The solids.
    """

    def __init__(self, solids: Solids):
        self.solids, self.grid = solids, solids.grid
        self._room = room_for_partials(), ti.ndarray(ti.f32, 1)

    def given(self, index: int, a, offset: int, name: str, diffusivity: float) -> float:
        """What the solid of a number gives of a scalar in a second: its unit times m³/s (2D: m²/s), as ``a`` is now.

        ``diffusivity`` is in m²/s. What it holds enters by the difference to the cells beside it, what it gives as it says.
        """
        grid, solids, images = self.grid, self.solids, self.solids.images
        rows = int_vector(2)(ROW * index * images, ROW * (index + 1) * images)
        what, wrap = (a, offset, diffusivity / grid.dx, rows), int_vector(grid.dim)(*map(int, solids.walls.periodic))
        where = grid.n, solids.distance, solids.owner, solids.conditions(name, offset // grid.cells)
        kernels = scalar_kernels(grid.loops)
        kernels.sum_exchanged(*what, solids.fluid, solids.open, wrap, *self._room, *where)
        return numbers_of(self._room[1])[0] * grid.dx ** (grid.dim - 1)
