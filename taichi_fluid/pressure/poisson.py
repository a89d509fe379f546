"""The elliptic problem behind pressure and implicit diffusion, and its operator.

    (A x)_c = sum over the 2·dim neighbours of (x_c - x_neighbour) + shift · x_c = rhs_c

in units of 1/dx². With ``shift = 0`` and walls that count for nothing this is minus the Laplacian with Neumann walls:
the divergence of the gradient, with the same boundary rule. ``shift = dx² / (nu dt)`` makes it implicit diffusion.

The unknown is kept exactly 0 wherever it is not solved for, and what is stored is the reciprocal of the diagonal,
0 there. So ``(rhs + sum of all neighbours) · inv_diag`` is right beside walls, solids and open sides without a branch
and without a mask, and ``inv_diag > 0`` *is* the mask. Beside solids that cut cells each difference carries the open
fraction of the face between; there the sum reads coefficients, elsewhere it does not. A periodic axis has the values
of its other end in its ghosts.
"""

from typing import NamedTuple

from .._ti import ti
from ..boundaries.coefficients import BoundaryCoefficients
from ..grid import Grid
from ..kernels import (
    Array,
    add,
    along_run,
    cell_of_run,
    cells_of,
    flat,
    float_vector,
    int_vector,
    kernel_family,
    largest,
    write_run,
)  # fmt: skip
from ..operators.differences import difference_sum, open_difference_sum
from ..operators.ghosts import ghost_kernels, wrap_or_clear


class Coupling(NamedTuple):
    """What the kernels of the operator depend on beside their loop shape.

    Attributes:
        cut: Whether faces are open in part, as beside solids; else the operator needs no coefficients.
        wraps: Whether an axis is periodic.
    """

    cut: bool = False
    wraps: bool = False


@ti.func
def needs_faces(inv):
    """Whether a cell with this reciprocal diagonal has a neighbour that it sees through a face that is not wholly open.

    The last bit of the mantissa says so. In all other cells a plain sum is right: their neighbours hold 0 or weigh 1.
    """
    return ti.bit_cast(inv, ti.i32) & ti.i32(1)


@ti.func
def _with_last_bit(value, bit):
    return ti.bit_cast((ti.bit_cast(value, ti.i32) & ti.i32(-2)) | ti.i32(bit), ti.f32)


@ti.func
def _gather_bit(k, c, inv_diag: ti.template(), bits: ti.template()):
    bits |= needs_faces(inv_diag[cell_of_run(c, k)])


@ti.func
def write_run_of_operator(
    c, I, m, s, out: ti.template(), width: ti.template(), value: ti.template(), args: ti.template(),
    plain_args: ti.template(), inv_diag: ti.template(), cut: ti.template(),
):  # fmt: skip
    """``write_run`` with ``args`` where a cell of the run needs its faces, else with ``plain_args``, which is faster."""
    if ti.static(cut):
        bits = 0
        along_run(m, width, _gather_bit, (c, inv_diag, bits))
        if bits != 0:
            write_run(c, I, m, s, out, width, value, args)
        else:
            write_run(c, I, m, s, out, width, value, plain_args)
    else:
        write_run(c, I, m, s, out, width, value, plain_args)


@ti.func
def neighbour_sum(x: ti.template(), inv_diag: ti.template(), open: ti.template(), c, s, n, cut: ti.template()):
    """Sum of the 2·dim neighbours of ``c``, each weighted by how far the face between is open.

    Most cells do not need their coefficients, which are then not even read.
    """
    total = x[c - s[0]] + x[c + s[0]]
    for a in ti.static(range(1, s.n)):
        total += x[c - s[a]] + x[c + s[a]]
    if ti.static(cut):
        if needs_faces(inv_diag[c]):
            cells = cells_of(s, n)
            total = ti.f32(0.0)
            for a in ti.static(range(s.n)):
                face = c + a * cells
                total += open[face] * x[c - s[a]] + open[face + s[a]] * x[c + s[a]]
    return total


@ti.func
def apply_at(x: ti.template(), inv_diag: ti.template(), open: ti.template(), c, s, n, shift, cut: ti.template()):
    """(A x) at a cell ``c`` that is solved for.

    The sum is taken over differences: ``diagonal · x_c - sum`` would lose a rounding error of the size of x_c in every
    cell, which in f32 is what limits the residual of a large grid.
    """
    # Beside walls: a neighbour that is not solved for holds 0 and so counted once; it may count for less or more.
    neighbours = ti.cast(2 * s.n, ti.f32)
    walls = ti.f32(0.0)
    free = ti.f32(1.0) / (neighbours + shift)
    if ti.static(cut):
        free = _with_last_bit(free, 0)
    if inv_diag[c] != free:
        walls = ti.f32(1.0) / inv_diag[c] - shift - neighbours
        # A whole number but beside solids that stand between two values.
        whole = ti.floor(walls + ti.f32(0.5))
        if ti.abs(walls - whole) < ti.f32(1e-3):
            walls = whole
    result = (walls + shift) * x[c] - difference_sum(x, c, s, n)
    if ti.static(cut):
        if needs_faces(inv_diag[c]):
            # A value that is held beyond an open side is a neighbour like any other; a closed face weighs 0.
            result = -open_difference_sum(x, open, c, s, n)
    return result


@ti.func
def _write_inv_diag(
    c, I, s, unknown: ti.template(), held: ti.template(), inv_diag: ti.template(), n, first, box, inside, shift,
    has_held: ti.template(),
):  # fmt: skip
    diagonal = shift
    if ti.static(has_held):
        diagonal += held[c]
    for a in ti.static(range(s.n)):
        for side in ti.static(range(2)):
            neighbour = c + (2 * side - 1) * s[a]
            at_wall = I[a] == (n[a] if ti.static(side == 1) else first[a])
            if unknown[neighbour] > 0:
                diagonal += ti.f32(1.0)
            elif at_wall:
                diagonal += box[2 * a + side]
            elif ti.static(not has_held):
                diagonal += inside[a]
    inv_diag[c] = ti.f32(0.0)
    if unknown[c] > 0 and diagonal > 0:
        inv_diag[c] = ti.f32(1.0) / diagonal


@ti.func
def _write_cut_inv_diag(c, I, s, open: ti.template(), inv_diag: ti.template(), n):
    cells = cells_of(s, n)
    diagonal = ti.f32(0.0)
    for a in ti.static(range(s.n)):
        face = c + a * cells
        diagonal += open[face] + open[face + s[a]]
    inv_diag[c] = ti.f32(0.0)
    if diagonal > 0:
        inv_diag[c] = ti.f32(1.0) / diagonal


@ti.func
def _mark_faces_at(c, I, s, open: ti.template(), inv_diag: ti.template(), n):
    """Note where ``needs_faces``; no sign changes, which is all that neighbours look at."""
    cells = cells_of(s, n)
    bit = 0
    for a in ti.static(range(s.n)):
        for side in ti.static(range(2)):
            face = open[c + a * cells + side * s[a]]
            if (face > 0 and face < 1) or (face != 1 and inv_diag[c + (2 * side - 1) * s[a]] > 0):
                bit = 1
    if inv_diag[c] > 0:
        inv_diag[c] = _with_last_bit(inv_diag[c], bit)


@ti.func
def _is_inside(c, I, s, unknown: ti.template(), first):
    inside = ti.f32(1.0)
    for a in ti.static(range(s.n)):
        if I[a] < first[a]:
            inside = ti.f32(0.0)
    unknown[c] = inside


@ti.func
def _mark_if_positive(c, I, s, values: ti.template(), offset, unknown: ti.template(), first):
    _is_inside(c, I, s, unknown, first)
    if values[offset + c] <= 0:
        unknown[c] = ti.f32(0.0)


@ti.func
def _close_at(c, I, s, open: ti.template(), n, axis: ti.template(), kept):
    """Close the faces on the two sides of an axis, but for those with ``kept[2 axis + side] = 1``."""
    first = c + axis * cells_of(s, n) + s[axis]
    if kept[2 * axis] == 0:
        open[first] = ti.f32(0.0)
    if kept[2 * axis + 1] == 0:
        open[first + n[axis] * s[axis]] = ti.f32(0.0)


@ti.func
def _coarsen_at(c, I, s, fine: ti.template(), coarse: ti.template(), n, fine_n, fine_s):
    """Whether any child is solved for; where an odd axis was rounded down, the last cell has three along it."""
    any_child = ti.f32(0.0)
    for child in range(3**s.n):
        J = I * 2 - 1
        rest, inside = child, 1
        for a in ti.static(range(s.n)):
            along = rest % ti.i32(3)
            rest = rest // ti.i32(3)
            J[a] += along
            if J[a] > fine_n[a] or (along == 2 and I[a] < n[a]):
                inside = 0
        if inside == 1:
            any_child = ti.max(any_child, fine[flat(J, fine_s)])
    coarse[c] = any_child


@ti.func
def _drop_split_at(c, I, s, fine: ti.template(), open: ti.template(), coarse: ti.template(), fine_n, fine_s):
    """Do not solve for a coarse cell that a wall runs through: it would have one value for both sides of the wall.

    Along each axis its children stand face to face; where most pairs cannot see each other, there is a wall.
    """
    fine_cells = cells_of(fine_s, fine_n)
    for axis in ti.static(range(s.n)):
        walled, clear = 0, 0
        for part in ti.static(range(2 ** (s.n - 1))):
            J = I * 2 - 1
            for a in ti.static(range(s.n)):
                if ti.static(a != axis):
                    J[a] += ti.static((part >> (a - (1 if a > axis else 0))) & 1)
            J[axis] += 1
            inside = 1
            for a in ti.static(range(s.n)):
                if J[a] > fine_n[a]:
                    inside = 0
            if inside == 1:
                child = flat(J, fine_s)
                if fine[child] > 0 and fine[child - fine_s[axis]] > 0:
                    if open[child + axis * fine_cells] > 0:
                        clear += 1
                    else:
                        walled += 1
        if walled > clear:
            coarse[c] = ti.f32(0.0)


@ti.func
def _coarsen_open_at(
    c, I, s, fine: ti.template(), coarse: ti.template(), unknown: ti.template(), n, fine_n, fine_s, wrap
):
    """Openness of the lower faces of a coarse cell, the last layer of upper faces included: the mean of its parts.

    Faces of cells that are not solved for are closed, but for those on the sides of the box.
    """
    fine_cells, cells = cells_of(fine_s, fine_n), cells_of(s, n)
    for axis in ti.static(range(s.n)):
        total, count = ti.f32(0.0), ti.f32(0.0)
        for part in ti.static(range(2 ** (s.n - 1))):
            J = I * 2 - 1
            inside = 1
            for a in ti.static(range(s.n)):
                if ti.static(a != axis):
                    J[a] += ti.static((part >> (a - (1 if a > axis else 0))) & 1)
                    if J[a] > fine_n[a]:
                        inside = 0
            if I[axis] == n[axis] + 1:
                J[axis] = fine_n[axis] + 1
            if inside == 1:
                total += fine[flat(J, fine_s) + axis * fine_cells]
                count += ti.f32(1.0)
        above = I[axis] > n[axis] and wrap[axis] == 0
        below = I[axis] == 1 and wrap[axis] == 0
        if (unknown[c] == 0 and not above) or (unknown[c - s[axis]] == 0 and not below):
            total = ti.f32(0.0)
        coarse[c + axis * cells] = total / ti.max(count, ti.f32(1.0))


@ti.func
def _scale_side_at(c, I, s, open: ti.template(), n, axis: ti.template(), factors):
    first = c + axis * cells_of(s, n) + s[axis]
    last = first + n[axis] * s[axis]
    open[first] = factors[2 * axis] * open[first]
    open[last] = factors[2 * axis + 1] * open[last]


@kernel_family
def setup_kernels(loops, has_held):
    IntVector, FloatVector, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell
    each_cell_in, each_on_plane, dim = loops.each_cell_in, loops.each_on_plane, loops.dim
    Box, Flags = ti.types.vector(2 * dim, ti.f32), ti.types.vector(2 * dim, ti.i32)

    @ti.kernel
    def mark_box(unknown: Array, n: IntVector, first: IntVector):
        each_cell(n, _is_inside, (unknown, first))

    @ti.kernel
    def mark_positive(values: Array, offset: ti.i32, unknown: Array, n: IntVector, first: IntVector):
        each_cell(n, _mark_if_positive, (values, offset, unknown, first))

    @ti.kernel
    def close_sides(open: Array, n: IntVector, kept: Flags):
        for axis in ti.static(range(dim)):
            each_on_plane(n, axis, _close_at, (open, n, axis, kept))

    @ti.kernel
    def scale_sides(open: Array, n: IntVector, factors: Box):
        for axis in ti.static(range(dim)):
            each_on_plane(n, axis, _scale_side_at, (open, n, axis, factors))

    @ti.kernel
    def coarsen_unknowns(fine: Array, coarse: Array, n: IntVector, fine_n: IntVector, fine_s: IntVector):
        each_cell(n, _coarsen_at, (fine, coarse, n, fine_n, fine_s))

    @ti.kernel
    def drop_split(fine: Array, open: Array, coarse: Array, n: IntVector, fine_n: IntVector, fine_s: IntVector):
        each_cell(n, _drop_split_at, (fine, open, coarse, fine_n, fine_s))

    @ti.kernel
    def coarsen_open(
        fine: Array, coarse: Array, unknown: Array, n: IntVector, fine_n: IntVector, fine_s: IntVector, wrap: IntVector
    ):
        each_cell_in(n * 0 + 1, n + 2, n, _coarsen_open_at, (fine, coarse, unknown, n, fine_n, fine_s, wrap))

    @ti.kernel
    def compute_inv_diag(
        unknown: Array, held: Array, inv_diag: Array, n: IntVector, first: IntVector, box: Box, inside: FloatVector,
        shift: ti.f32,
    ):  # fmt: skip
        each_cell(n, _write_inv_diag, (unknown, held, inv_diag, n, first, box, inside, shift, has_held))

    @ti.kernel
    def compute_cut_inv_diag(open: Array, inv_diag: Array, n: IntVector):
        each_cell(n, _write_cut_inv_diag, (open, inv_diag, n))

    @ti.kernel
    def mark_faces(open: Array, inv_diag: Array, n: IntVector):
        each_cell(n, _mark_faces_at, (open, inv_diag, n))

    @ti.kernel
    def set_ghosts(a: Array, n: IntVector, wrap: IntVector):
        """Ghosts as a periodic axis has them; 0 where the axis is not periodic."""
        for axis in ti.static(range(dim)):
            each_on_plane(n, axis, wrap_or_clear, (a, n, wrap, axis))

    return {
        "mark_box": mark_box,
        "mark_positive": mark_positive,
        "close_sides": close_sides,
        "scale_sides": scale_sides,
        "coarsen_unknowns": coarsen_unknowns,
        "drop_split": drop_split,
        "coarsen_open": coarsen_open,
        "compute_inv_diag": compute_inv_diag,
        "compute_cut_inv_diag": compute_cut_inv_diag,
        "mark_faces": mark_faces,
        "set_ghosts": set_ghosts,
        "Box": Box,
        "Flags": Flags,
    }


@ti.func
def unknown_value_at(c, I, s, x: ti.template(), inv_diag: ti.template()):
    """The value where it is solved for, else 0."""
    value = x[c]
    if inv_diag[c] == 0:
        value = ti.f32(0.0)
    return value


@ti.func
def product_at(c, I, s, a: ti.template(), b: ti.template()):
    """What a cell adds to the inner product of two arrays."""
    return a[c] * b[c]


@ti.func
def _one_at(c, I, s, inv_diag: ti.template()):
    value = ti.f32(0.0)
    if inv_diag[c] > 0:
        value = ti.f32(1.0)
    return value


@ti.func
def subtract_at(c, I, s, x: ti.template(), inv_diag: ti.template(), mean):
    """Take ``mean`` out of what is solved for."""
    if inv_diag[c] > 0:
        x[c] = x[c] - mean


@ti.func
def _size_at(c, I, s, x: ti.template(), inv_diag: ti.template()):
    value = ti.abs(x[c])
    if inv_diag[c] == 0:
        value = ti.f32(0.0)
    return value


@kernel_family
def mean_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell
    reduce_to = loops.reduce_to

    @ti.kernel
    def count_unknowns(inv_diag: Array, n: IntVector, partials: Array, sums: Array):
        """Write the count of unknowns to ``sums[1]``."""
        reduce_to(sums, 1, n, partials, ti.f32(0.0), add, _one_at, (inv_diag,))

    @ti.kernel
    def remove_mean(x: Array, inv_diag: Array, n: IntVector, partials: Array, sums: Array):
        """Make ``x`` orthogonal to the constant, the null space of a problem without fixed values.

        ``sums[1]`` holds the count of unknowns, from ``count_unknowns``.
        """
        reduce_to(sums, 0, n, partials, ti.f32(0.0), add, unknown_value_at, (x, inv_diag))
        each_cell(n, subtract_at, (x, inv_diag, sums[0] / sums[1]))

    @ti.kernel
    def find_largest(x: Array, inv_diag: Array, n: IntVector, partials: Array, sums: Array):
        """Write the largest |value| of what is solved for to ``sums[0]``."""
        reduce_to(sums, 0, n, partials, ti.f32(0.0), largest, _size_at, (x, inv_diag))

    return {"count_unknowns": count_unknowns, "remove_mean": remove_mean, "find_largest": find_largest}


def renewed(vector, values: list[int]):
    """``vector`` if it holds ``values``, else a new one: recorded launches keep theirs."""
    return vector if list(vector) == values else int_vector(len(values))(*values)


class PoissonLevel:
    """The operator on one grid: its size and ``inv_diag``, which without solids is all that A depends on.

    Attributes:
        inv_diag: Reciprocal diagonal; 0 where nothing is solved for. With coefficients its last bit is ``needs_faces``.
        open: How far each lower face is open, 0 to 1; empty until ``set_open`` is called.
        coupling: Which kernels serve this operator.
        wrap: Per axis, 1 if it is periodic here. An axis of one cell is its own neighbour, which is no coupling at all.
    """

    def __init__(self, grid: Grid):
        self.grid = grid
        self.n = grid.n
        self.inv_diag = grid.array()
        self.unknown = grid.array()
        self._nothing = self._open = ti.ndarray(ti.f32, 1)
        self.coupling = Coupling()
        self.wrap = int_vector(grid.dim)(*(0,) * grid.dim)
        self._kernels = setup_kernels(grid.loops, False)

    @property
    def open(self):
        """The coefficients, or one word where there are none."""
        return self._open if self.coupling.cut else self._nothing

    def set_sides(self, sides: BoundaryCoefficients, cut: bool) -> None:
        """Say which axes are periodic, and whether coefficients are to come."""
        wraps = [int(p and n > 1) for p, n in zip(sides.periodic, self.grid.shape, strict=True)]
        self.wrap = renewed(self.wrap, wraps)
        self._kept = self._kernels.Flags(*(int(box > 0) or wraps[i // 2] for i, box in enumerate(sides.box)))
        self.coupling = Coupling(cut, any(wraps))
        if cut and self._open is self._nothing:
            self._open = self.grid.array(self.grid.dim)

    def set_ghosts(self, array, wrap) -> None:
        """Ghosts of an array that is 0 outside the box but for its periodic axes."""
        self._kernels.set_ghosts(array, self.n, wrap)

    def mark_box(self, first: tuple[int, ...]) -> None:
        """Solve where the integer position is at least ``first`` along every axis."""
        self._kernels.mark_box(self.unknown, self.n, int_vector(self.grid.dim)(*first))

    def mark_positive(self, values, first: tuple[int, ...], offset: int = 0) -> None:
        """Solve where ``values[offset:…]`` is positive, from the integer position ``first`` upwards."""
        self._kernels.mark_positive(values, offset, self.unknown, self.n, int_vector(self.grid.dim)(*first))

    def set_open(self, open) -> None:
        """Take the openness of all faces."""
        self.open.copy_from(open)
        self._close_sides()

    def _close_sides(self) -> None:
        """Close the faces on sides that neither hold a value nor wrap; a periodic axis has the same at both ends."""
        self._kernels.close_sides(self.open, self.n, self._kept)
        if any(self.wrap):
            for axis in range(self.grid.dim):
                ghost_kernels(self.grid.loops).wrap_ghosts(self.open, self.n, axis * self.grid.cells, self.wrap)

    def coarsen(self, fine: "PoissonLevel") -> None:
        """Solve where any child in the finer grid is solved for, but in no cell that a wall runs through."""
        vector = int_vector(self.grid.dim)
        sizes = (self.n, fine.n, vector(*fine.grid.strides))
        self._kernels.coarsen_unknowns(fine.unknown, self.unknown, *sizes)
        if self.coupling.cut:
            self._kernels.drop_split(fine.unknown, fine.open, self.unknown, *sizes)
            self.set_ghosts(self.unknown, self.wrap)
            self._kernels.coarsen_open(fine.open, self.open, self.unknown, *sizes, self.wrap)
            self._close_sides()

    def scale_held(self, factors: tuple[float, ...]) -> None:
        """Multiply the openness of the faces on each side of the box, flat as in ``BoundaryCoefficients.box``."""
        self._kernels.scale_sides(self.open, self.n, self._kernels.Box(*factors))

    def set_diagonal(self, sides: BoundaryCoefficients, first: tuple[int, ...], shift: float, held=None) -> None:
        """Compute ``inv_diag`` where ``unknown`` says so; ``first`` is the lowest position of all unknowns.

        ``held``, an array over the grid, stands for ``sides.inside`` where it differs from cell to cell.
        """
        if self.coupling.cut:
            self._kernels.compute_cut_inv_diag(self.open, self.inv_diag, self.n)
            self.set_ghosts(self.inv_diag, self.wrap)
            self._kernels.mark_faces(self.open, self.inv_diag, self.n)
        else:
            self.set_ghosts(self.unknown, self.wrap)
            dim, kernels = self.grid.dim, setup_kernels(self.grid.loops, held is not None)
            held = self._nothing if held is None else held
            kernels.compute_inv_diag(
                self.unknown, held, self.inv_diag, self.n, int_vector(dim)(*first), kernels.Box(*sides.box),
                float_vector(dim)(*sides.inside), shift,
            )  # fmt: skip
        self.set_ghosts(self.inv_diag, self.wrap)
