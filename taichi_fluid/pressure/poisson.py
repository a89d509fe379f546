"""The elliptic problem behind pressure and implicit diffusion, and its operator.

    (A x)_c = sum over the 2·dim neighbours of (x_c - x_neighbour) + shift · x_c = rhs_c

in units of 1/dx². With ``shift = 0`` and walls that count for nothing this is minus the Laplacian with Neumann walls:
the divergence of the gradient, with the same boundary rule. ``shift = dx² / (nu dt)`` makes it implicit diffusion.

The unknown is kept exactly 0 wherever it is not solved for, and what is stored is the reciprocal of the diagonal,
0 there. So ``(rhs + sum of all neighbours) · inv_diag`` is right beside walls, solids and open sides without a branch
and without a mask, and ``inv_diag > 0`` *is* the mask.
"""

from dataclasses import dataclass

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, add, flat, int_vector, kernel_family
from ..operators.differences import difference_sum


@dataclass(frozen=True, kw_only=True)
class Sides:
    """What the neighbours that are not solved for add to the diagonal, and so which wall they are.

    0 is a Neumann wall (nothing crosses it), 1 a value held at the neighbour's own place (Dirichlet), 2 a value held
    half a cell away, at the wall itself.

    Attributes:
        box: One number for the lower and one for the upper side of each axis, flat: ``(x-, x+, y-, y+, …)``.
        inside: The same for cells inside the box that are not solved for.
        shift: Added to every diagonal.
    """

    box: tuple[float, ...]
    inside: float = 0.0
    shift: float = 0.0

    @classmethod
    def closed(cls, dim: int) -> "Sides":
        """Neumann everywhere: the pressure of a closed box."""
        return cls(box=(0.0,) * (2 * dim))

    @property
    def singular(self) -> bool:
        """Whether the solution is determined up to a constant only."""
        return self.shift == 0 and self.inside == 0 and not any(self.box)


@ti.func
def neighbour_sum(x: ti.template(), c, s):
    """Sum of the 2·dim neighbours of ``c``."""
    total = x[c - s[0]] + x[c + s[0]]
    for a in ti.static(range(1, s.n)):
        total += x[c - s[a]] + x[c + s[a]]
    return total


@ti.func
def apply_at(x: ti.template(), inv_diag: ti.template(), c, s, shift):
    """(A x) at a cell ``c`` that is solved for.

    The sum is taken over differences: ``diagonal · x_c - sum`` would lose a rounding error of the size of x_c in every
    cell, which in f32 is what limits the residual of a large grid.
    """
    # Beside walls: a neighbour that is not solved for holds 0 and so counted once; it may count for less or more.
    neighbours = ti.cast(2 * s.n, ti.f32)
    walls = ti.f32(0.0)
    if inv_diag[c] != ti.f32(1.0) / (neighbours + shift):
        walls = ti.floor(ti.f32(1.0) / inv_diag[c] - shift + ti.f32(0.5)) - neighbours
    return (walls + shift) * x[c] - difference_sum(x, c, s)


@ti.func
def _write_inv_diag(c, I, s, unknown: ti.template(), inv_diag: ti.template(), n, box, inside, shift):
    diagonal = shift
    for a in ti.static(range(s.n)):
        for side in ti.static(range(2)):
            neighbour = c + (2 * side - 1) * s[a]
            at_wall = I[a] == (n[a] if ti.static(side == 1) else 1)
            if unknown[neighbour] > 0:
                diagonal += ti.f32(1.0)
            elif at_wall:
                diagonal += box[2 * a + side]
            else:
                diagonal += inside
    inv_diag[c] = ti.f32(0.0)
    if unknown[c] > 0 and diagonal > 0:
        inv_diag[c] = ti.f32(1.0) / diagonal


@ti.func
def _is_inside(c, I, s, unknown: ti.template(), first):
    inside = ti.f32(1.0)
    for a in ti.static(range(s.n)):
        if I[a] < first[a]:
            inside = ti.f32(0.0)
    unknown[c] = inside


@ti.func
def _coarsen_at(c, I, s, fine: ti.template(), coarse: ti.template(), fine_n, fine_s):
    any_child = ti.f32(0.0)
    for child in ti.static(range(2**s.n)):
        J = I * 2 - 1
        inside = 1
        for a in ti.static(range(s.n)):
            J[a] += ti.static((child >> a) & 1)
            if J[a] > fine_n[a]:
                inside = 0
        if inside == 1:
            any_child = ti.max(any_child, fine[flat(J, fine_s)])
    coarse[c] = any_child


@kernel_family
def setup_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell
    Box = ti.types.vector(2 * loops.dim, ti.f32)

    @ti.kernel
    def mark_unknowns(unknown: Array, n: IntVector, first: IntVector):
        each_cell(n, _is_inside, (unknown, first))

    @ti.kernel
    def coarsen_unknowns(fine: Array, coarse: Array, n: IntVector, fine_n: IntVector, fine_s: IntVector):
        each_cell(n, _coarsen_at, (fine, coarse, fine_n, fine_s))

    @ti.kernel
    def compute_inv_diag(unknown: Array, inv_diag: Array, n: IntVector, box: Box, inside: ti.f32, shift: ti.f32):
        each_cell(n, _write_inv_diag, (unknown, inv_diag, n, box, inside, shift))

    return {
        "mark_unknowns": mark_unknowns,
        "coarsen_unknowns": coarsen_unknowns,
        "compute_inv_diag": compute_inv_diag,
        "Box": Box,
    }


@ti.func
def unknown_value_at(c, I, s, x: ti.template(), inv_diag: ti.template()):
    """The value where it is solved for, else 0."""
    value = x[c] * ti.f32(0.0)
    if inv_diag[c] > 0:
        value = x[c]
    return value


@ti.func
def _one_at(c, I, s, inv_diag: ti.template()):
    value = ti.f32(0.0)
    if inv_diag[c] > 0:
        value = ti.f32(1.0)
    return value


@ti.func
def _subtract_at(c, I, s, x: ti.template(), inv_diag: ti.template(), mean):
    if inv_diag[c] > 0:
        x[c] = x[c] - mean


@kernel_family
def mean_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell
    reduce_cells, reduced = loops.reduce_cells, loops.reduced

    @ti.kernel
    def count_unknowns(inv_diag: Array, n: IntVector, partials: Array, sums: Array):
        """Write the count of unknowns to ``sums[1]``."""
        reduce_cells(n, partials, ti.f32(0.0), add, _one_at, (inv_diag,))
        for _ in range(1):
            sums[1] = reduced(partials, ti.f32(0.0), add)

    @ti.kernel
    def remove_mean(x: Array, inv_diag: Array, n: IntVector, partials: Array, sums: Array):
        """Make ``x`` orthogonal to the constant, the null space of a problem without fixed values.

        ``sums[1]`` holds the count of unknowns, from ``count_unknowns``.
        """
        reduce_cells(n, partials, ti.f32(0.0), add, unknown_value_at, (x, inv_diag))
        for _ in range(1):
            sums[0] = reduced(partials, ti.f32(0.0), add)
        each_cell(n, _subtract_at, (x, inv_diag, sums[0] / sums[1]))

    return {"count_unknowns": count_unknowns, "remove_mean": remove_mean}


class PoissonLevel:
    """The operator on one grid: its size and ``inv_diag``, which is all that A depends on."""

    def __init__(self, grid: Grid):
        self.grid = grid
        self.n = grid.n
        self.inv_diag = grid.array()
        self._kernels = setup_kernels(grid.loops)

    def set_diagonal(self, unknown, sides: Sides, shift: float) -> None:
        """Compute ``inv_diag`` for the cells with ``unknown > 0`` (an array over the grid, ghosts 0)."""
        box = self._kernels.Box(*sides.box)
        self._kernels.compute_inv_diag(unknown, self.inv_diag, self.n, box, sides.inside, shift)

    def mark_box(self, unknown, first: tuple[int, ...]) -> None:
        """Set ``unknown`` to 1 where the integer position is at least ``first`` along every axis."""
        self._kernels.mark_unknowns(unknown, self.n, int_vector(self.grid.dim)(*first))

    def coarsen(self, fine_unknown, fine: Grid, unknown) -> None:
        """Set ``unknown`` to 1 where any child in the finer grid is solved for."""
        vector = int_vector(self.grid.dim)
        self._kernels.coarsen_unknowns(fine_unknown, unknown, self.n, fine.n, vector(*fine.strides))
