"""The linear system behind pressure and implicit diffusion, and its operator.

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

from .._ti import Expr, argument, loaded, local, ti, traced
from ..boundaries.coefficients import BoundaryCoefficients
from ..grid import Grid
from ..kernels import (
    Array,
    along_strip,
    cell_of_strip,
    cells_of,
    copy_values,
    float_vector,
    int_vector,
    kernel_family,
    leave_out,
    write_plain_strip,
)
from ..operators.differences import difference_sum, open_difference_sum, open_sum
from ..operators.ghosts import ghost_kernels, wrap_or_clear

NEAREST = 1e-3
"""How near to a centre a surface is taken to be at the least, in cells."""


class Coupling(NamedTuple):
    """What the kernels of the operator depend on beside their loop shape."""

    cut: bool = False  # whether faces are open in part, as beside solids; else the operator needs no coefficients
    wraps: bool = False  # whether an axis is periodic


@argument
class System:
    """A x = rhs as the functions of a kernel take it."""

    inv_diag: object  # reciprocal diagonal, 0 where nothing is solved for
    n: object  # cells along each axis
    open: object = None  # how far each lower face is open
    cut: object = False  # whether ``open`` has to be read
    x: object = None  # the unknown, or whatever else A is applied to
    rhs: object = None  # right-hand side


@traced
def _uncut(system):
    """The same where no cell needs its faces."""
    return System(system.inv_diag, system.n, x=system.x, rhs=system.rhs)


@traced
def rows_of(system):
    """The marks of rows in which nothing is solved for, as ``wavefront`` takes them: only a surface leaves many."""
    return (system.inv_diag,) if system.cut else ()


@ti.func
def needs_faces(inv):
    """Whether a cell with this reciprocal diagonal has a neighbour that it sees through a face that is not wholly open.

    The last bit of the mantissa says so. In all other cells a plain sum is right: their neighbours hold 0 or weigh 1.
    """
    return ti.bit_cast(inv, ti.i32) & ti.i32(1)


@ti.func
def with_need_of_faces(inv, needs):
    """A reciprocal diagonal of which ``needs_faces`` says ``needs``, 0 or 1."""
    return ti.bit_cast((ti.bit_cast(inv, ti.i32) & ti.i32(-2)) | ti.i32(needs), ti.f32)


@ti.func
def where_solved(value, inv):
    """A value of a cell with this reciprocal diagonal; 0 where nothing is solved for."""
    result = value
    if inv == 0:
        result = ti.f32(0.0)
    return result


@ti.func
def _gather_need(k, c, inv_diag: Array, needs: ti.template()):
    needs |= needs_faces(inv_diag[cell_of_strip(c, k)])


@ti.func
def product_at(c, I, s, a: Array, b: Array):
    """What a cell adds to the inner product of two arrays."""
    return a[c] * b[c]


@traced
def _together(system, args):
    """Arguments of a function of a cell, numbers among them loaded once."""
    return (system, *(local(value) if isinstance(value, Expr) else value for value in args))


@ti.func
def write_strip_of_system(
    c, I, m, s, system, out: Array, width: ti.template(), value: ti.template(), args: ti.template()
):
    """``write_plain_strip`` of ``value(c, I, s, system, *args)``, which reads faces in a strip with a cell that needs them only."""
    own = loaded(system)
    if ti.static(own.cut):
        needs = 0
        along_strip(m, width, _gather_need, (c, own.inv_diag, needs))
        if needs != 0:
            write_plain_strip(c, I, m, s, out, width, value, _together(own, args))
        else:
            write_plain_strip(c, I, m, s, out, width, value, _together(_uncut(own), args))
    else:
        write_plain_strip(c, I, m, s, out, width, value, _together(own, args))


@ti.func
def neighbour_sum(c, s, system):
    """Sum of the 2·dim neighbours of ``c``, each weighted by how far the face between is open.

    Most cells do not need their coefficients, which are then not even read.
    """
    x = ti.static(system.x)
    total = x[c - s[0]] + x[c + s[0]]
    for a in ti.static(range(1, s.n)):
        total += x[c - s[a]] + x[c + s[a]]
    if ti.static(system.cut):
        if needs_faces(system.inv_diag[c]):
            cells = cells_of(s, system.n)
            total = ti.f32(0.0)
            for a in ti.static(range(s.n)):
                face = c + a * cells
                total += system.open[face] * x[c - s[a]] + system.open[face + s[a]] * x[c + s[a]]
    return total


@ti.func
def apply_at(c, s, system, shift):
    """(A x) at a cell ``c`` that is solved for.

    The sum is taken over differences: ``diagonal · x_c - sum`` would lose a rounding error of the size of x_c in every
    cell, which in f32 is what limits the residual of a large grid.
    """
    x = ti.static(system.x)
    inv = system.inv_diag[c]
    # Beside walls: a neighbour that is not solved for holds 0 and so counted once; it may count for less or more.
    neighbours = ti.cast(2 * s.n, ti.f32)
    walls = ti.f32(0.0)
    free = ti.f32(1.0) / (neighbours + shift)
    if ti.static(system.cut):
        free = with_need_of_faces(free, 0)
    if inv != free:
        walls = ti.f32(1.0) / inv - shift - neighbours
        # A whole number but beside solids that stand between two values.
        whole = ti.floor(walls + ti.f32(0.5))
        if ti.abs(walls - whole) < ti.f32(1e-3):
            walls = whole
    result = (walls + shift) * x[c] - difference_sum(x, c, s, system.n)
    if ti.static(system.cut):
        if needs_faces(inv):
            # A value that is held beyond an open side is a neighbour like any other; a closed face weighs 0.
            result = -open_difference_sum(x, system.open, c, s, system.n)
            if shift > 0:
                result += (ti.f32(1.0) / inv - open_sum(system.open, c, s, system.n)) * x[c]
    return result


@argument
class _Coefficients:
    """What the neighbours that are not solved for add to the diagonal; see ``BoundaryCoefficients``.

    ``held``, where ``by_cell``, stands for ``inside``.
    """

    box: object
    inside: object
    shift: object
    held: object
    by_cell: object


@ti.func
def _write_inv_diag(c, I, s, unknown: Array, inv_diag: Array, n, first, coefficients):
    diagonal = coefficients.shift
    if ti.static(coefficients.by_cell):
        diagonal += coefficients.held[c]
    for a in ti.static(range(s.n)):
        for side in ti.static(range(2)):
            neighbour = c + (2 * side - 1) * s[a]
            at_wall = I[a] == (n[a] if ti.static(side == 1) else first[a])
            if unknown[neighbour] > 0:
                diagonal += ti.f32(1.0)
            elif at_wall:
                diagonal += coefficients.box[2 * a + side]
            elif ti.static(not coefficients.by_cell):
                diagonal += coefficients.inside[a]
    inv_diag[c] = ti.select(unknown[c] > 0 and diagonal > 0, ti.f32(1.0) / diagonal, ti.f32(0.0))


@ti.func
def _write_cut_inv_diag(c, I, s, open: Array, inv_diag: Array, n):
    diagonal = open_sum(open, c, s, n)
    inv_diag[c] = ti.select(diagonal > 0, ti.f32(1.0) / diagonal, ti.f32(0.0))


@ti.func
def _marked_diagonal_at(c, I, s, open: Array, inv_diag: Array, n):
    """Note where ``needs_faces``; no sign changes, which is all that neighbours look at."""
    cells = cells_of(s, n)
    needs = ti.i32(0)
    for a in ti.static(range(s.n)):
        for side in ti.static(range(2)):
            face, beyond = open[c + a * cells + side * s[a]], inv_diag[c + (2 * side - 1) * s[a]]
            needs |= ti.cast(((face > 0) & (face < 1)) | ((face != 1) & (beyond > 0)), ti.i32)
    return ti.select(inv_diag[c] > 0, with_need_of_faces(inv_diag[c], needs), inv_diag[c])


@ti.func
def _mark_row_at(c, I, s, inv_diag: Array, n):
    """Leave out a row in which nothing is solved for."""
    k, length = ti.i32(0), n[n.n - 1]
    while k < length and inv_diag[c + k] == 0:
        k += 1
    leave_out(inv_diag, c, k == length)


@ti.func
def _is_inside(c, I, s, unknown: Array, first):
    inside = ti.f32(1.0)
    for a in ti.static(range(s.n)):
        if I[a] < first[a]:
            inside = ti.f32(0.0)
    unknown[c] = inside


@ti.func
def _mark_if_positive(c, I, s, values: Array, unknown: Array, first):
    _is_inside(c, I, s, unknown, first)
    if values[c] <= 0:
        unknown[c] = ti.f32(0.0)


@ti.func
def _close_at(c, I, s, open: Array, n, kept, axis: ti.template()):
    """Close the faces on the two sides of an axis, but for those with ``kept[2 axis + side] = 1``."""
    first = c + axis * cells_of(s, n) + s[axis]
    if kept[2 * axis] == 0:
        open[first] = ti.f32(0.0)
    if kept[2 * axis + 1] == 0:
        open[first + n[axis] * s[axis]] = ti.f32(0.0)


@ti.func
def _keep_marked_at(c, I, s, inv_diag: Array, unknown: Array, held: Array, holds: ti.template()):
    if unknown[c] <= 0:
        inv_diag[c] = ti.f32(0.0)
    elif ti.static(holds):
        if held[c] > 0:
            faces = ti.f32(0.0)
            if inv_diag[c] > 0:
                faces = ti.f32(1.0) / inv_diag[c]
            inv_diag[c] = ti.f32(1.0) / (faces + held[c])


@ti.func
def part_to_surface(a, b):
    """Of the way between the centres of two cells at these distances from a surface, the part that lies in the liquid.

    0 between two cells of air, 1 between two of liquid, else at least ``NEAREST`` (Gibou et al. 2002).
    """
    wet, dry = ti.min(a, b), ti.max(a, b)
    part = ti.f32(1.0)
    if wet >= 0:
        part = ti.f32(0.0)
    elif dry >= 0:
        part = ti.max(wet / (wet - dry), ti.f32(NEAREST))
    return part


@ti.func
def _is_wet_at(c, I, s, phi: Array, open: Array, unknown: Array, n):
    cells, passage = cells_of(s, n), ti.f32(0.0)
    for a in ti.static(range(s.n)):
        passage += open[c + a * cells] + open[c + a * cells + s[a]]
    unknown[c] = ti.select(phi[c] < 0 and passage > 0, ti.f32(1.0), ti.f32(0.0))


@ti.func
def _divide_by_part_at(c, I, s, phi: Array, open: Array, n):
    """Between liquid and air the pressure is held where the surface is, so near as that is; see ``part_to_surface``."""
    for a in ti.static(range(s.n)):
        if (phi[c] < 0) != (phi[c - s[a]] < 0):
            face = c + a * cells_of(s, n)
            open[face] = open[face] / part_to_surface(phi[c], phi[c - s[a]])


@kernel_family
def setup_kernels(loops, held_by_cell):
    Index, Point, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell
    Box, Flags = float_vector(2 * loops.dim), int_vector(2 * loops.dim)

    @ti.kernel
    def mark_box(unknown: Array, n: Index, first: Index):
        each_cell(n, _is_inside, (unknown, first))

    @ti.kernel
    def mark_positive(values: Array, unknown: Array, n: Index, first: Index):
        each_cell(n, _mark_if_positive, (values, unknown, first))

    @ti.kernel
    def close_sides(open: Array, n: Index, kept: Flags):
        loops.each_side(n, _close_at, (open, n, kept))

    @ti.kernel
    def compute_inv_diag(
        unknown: Array, held: Array, inv_diag: Array, n: Index, first: Index, box: Box, inside: Point, shift: ti.f32
    ):
        coefficients = _Coefficients(box, inside, shift, held, held_by_cell)
        each_cell(n, _write_inv_diag, (unknown, inv_diag, n, first, coefficients))

    @ti.kernel
    def compute_cut_inv_diag(open: Array, inv_diag: Array, n: Index):
        each_cell(n, _write_cut_inv_diag, (open, inv_diag, n))

    @ti.kernel
    def keep_marked(inv_diag: Array, unknown: Array, n: Index):
        each_cell(n, _keep_marked_at, (inv_diag, unknown, inv_diag, False))

    @ti.kernel
    def add_held(inv_diag: Array, unknown: Array, held: Array, n: Index):
        each_cell(n, _keep_marked_at, (inv_diag, unknown, held, True))

    @ti.kernel
    def mark_wet(phi: Array, open: Array, unknown: Array, n: Index):
        each_cell(n, _is_wet_at, (phi, open, unknown, n))

    @ti.kernel
    def divide_by_part(phi: Array, open: Array, n: Index):
        loops.each_cell_in(n * 0 + 1, n + 2, n, _divide_by_part_at, (phi, open, n))

    @ti.kernel
    def mark_faces(open: Array, inv_diag: Array, n: Index):
        loops.write_strips(n, ((inv_diag, 0),), _marked_diagonal_at, (open, inv_diag, n))

    @ti.kernel
    def mark_rows(inv_diag: Array, n: Index):
        end = n + 1
        end[loops.dim - 1] = 2
        loops.each_cell_in(n * 0 + 1, end, n, _mark_row_at, (inv_diag, n))

    @ti.kernel
    def set_ghosts(a: Array, n: Index, wrap: Index):
        """Ghosts as a periodic axis has them; 0 where the axis is not periodic."""
        loops.each_side(n, wrap_or_clear, (a, n, wrap))

    made = (mark_box, mark_positive, close_sides, compute_inv_diag, compute_cut_inv_diag, mark_faces, set_ghosts)
    return *made, keep_marked, add_held, mark_wet, divide_by_part, mark_rows


def renewed(vector, values: list[int]):
    """``vector`` if it holds ``values``, else a new one: recorded launches keep theirs."""
    return vector if list(vector) == values else int_vector(len(values))(*values)


class LinearSystem:
    """A of one grid: its size and ``inv_diag``, which without solids is all that A depends on.

    Attributes:
        inv_diag: Reciprocal diagonal; 0 where nothing is solved for. With coefficients its last bit is ``needs_faces``.
        open: How far each lower face is open, 0 to 1; nothing that is read before ``set_sides`` asks for it.
        coupling: Which kernels serve this operator.
        surface: Whether the unknowns end at a surface at which the value is 0, nearer than the next centre.
        held: What such a surface adds to the diagonal of each cell of a coarse grid, where it runs within cells.
        walled: Whether faces between two cells that are solved for may be closed.
        wrap: Per axis, 1 if it is periodic here. An axis of one cell is its own neighbour, which is no coupling at all.
    """

    def __init__(self, grid: Grid):
        self.grid = grid
        self.n = grid.n
        self.inv_diag = grid.array()
        self.unknown = grid.array()
        self.open = self._nothing = ti.ndarray(ti.f32, 1)
        self.coupling, self.surface, self.held = Coupling(), False, None
        self.walled = True
        self.wrap = int_vector(grid.dim)(*(0,) * grid.dim)
        self._kernels = setup_kernels(grid.loops, False)

    def kernels(self, family):
        """Those of a family that depends on the loop shape and the coupling."""
        return family(self.grid.loops, self.coupling)

    def set_sides(self, sides: BoundaryCoefficients, cut: bool) -> None:
        """Say which axes are periodic, and whether coefficients are to come."""
        wraps = [int(p and n > 1) for p, n in zip(sides.periodic, self.grid.shape, strict=True)]
        self.wrap = renewed(self.wrap, wraps)
        self._kept = int_vector(2 * self.grid.dim)(*(int(box > 0) or wraps[i // 2] for i, box in enumerate(sides.box)))
        self.coupling, self.surface, self.walled = Coupling(cut, any(wraps)), False, True
        if cut and self.open is self._nothing:
            self.open = self.grid.array(self.grid.dim)

    @property
    def hides(self) -> bool:
        """Whether a closed face may hide one cell that is solved for from another."""
        return self.coupling.cut and self.walled

    @property
    def leaves_out(self) -> bool:
        """Whether passes leave out rows in which nothing is solved for, where all that they write has to be 0 before."""
        return self.surface and self.grid.loops.rows and not any(self.wrap)

    def set_ghosts(self, array, wrap) -> None:
        """Ghosts of an array that is 0 outside the box but for its periodic axes."""
        self._kernels.set_ghosts(array, self.n, wrap)

    def mark_box(self, first: tuple[int, ...]) -> None:
        """Solve where the integer position is at least ``first`` along every axis."""
        self._kernels.mark_box(self.unknown, self.n, int_vector(self.grid.dim)(*first))

    def mark_positive(self, values, first: tuple[int, ...]) -> None:
        """Solve where ``values`` are positive, from the integer position ``first`` upwards."""
        self._kernels.mark_positive(values, self.unknown, self.n, int_vector(self.grid.dim)(*first))

    def set_open(self, open) -> None:
        """Take the openness of all faces."""
        copy_values(open, self.open)
        self.close_sides()

    def set_surface(self, open, phi, walled: bool = True) -> None:
        """Solve where ``phi`` is negative and a face open, with 0 held where it is 0: a liquid below its surface.

        Args:
            open: As ``set_open`` has it.
            phi: Signed distance to the surface at centres, ghosts filled.
            walled: Whether any face is closed but for those on sides.
        """
        self.surface, self.walled = True, walled
        self.set_open(open)
        self._kernels.mark_wet(phi, self.open, self.unknown, self.n)
        self.set_ghosts(self.unknown, self.wrap)
        self._kernels.divide_by_part(phi, self.open, self.n)

    def end_at_surface(self) -> None:
        """Make room for what a surface within the cells holds."""
        self.surface = True
        if self.held is None:
            self.held = self.grid.array()

    def close_sides(self) -> None:
        """Close the faces on sides that neither hold a value nor wrap; a periodic axis has the same at both ends."""
        self._kernels.close_sides(self.open, self.n, self._kept)
        if any(self.wrap):
            for axis in range(self.grid.dim):
                ghost_kernels(self.grid.loops).wrap_ghosts(self.open, self.n, axis * self.grid.cells, self.wrap)

    def set_diagonal(self, sides: BoundaryCoefficients, first: tuple[int, ...], shift: float, held=None) -> None:
        """Compute ``inv_diag`` where ``unknown`` says so; ``first`` is the lowest position of all unknowns.

        ``held``, an array over the grid, stands for ``sides.inside`` where it differs from cell to cell; where faces are
        open in part, for all that is added to them.
        """
        if self.coupling.cut:
            self._kernels.compute_cut_inv_diag(self.open, self.inv_diag, self.n)
            if held is not None:
                self._kernels.add_held(self.inv_diag, self.unknown, held, self.n)
            elif self.surface and self.held is not None:
                self._kernels.add_held(self.inv_diag, self.unknown, self.held, self.n)
            elif self.surface:
                self._kernels.keep_marked(self.inv_diag, self.unknown, self.n)
            self.mark_faces()
        else:
            self.set_ghosts(self.unknown, self.wrap)
            dim, kernels = self.grid.dim, setup_kernels(self.grid.loops, held is not None)
            held, lowest = self._nothing if held is None else held, int_vector(dim)(*first)
            box, inside = float_vector(2 * dim)(*sides.box), float_vector(dim)(*sides.inside)
            kernels.compute_inv_diag(self.unknown, held, self.inv_diag, self.n, lowest, box, inside, shift)
        self.set_ghosts(self.inv_diag, self.wrap)
        if self.leaves_out:
            self._kernels.mark_rows(self.inv_diag, self.n)

    def mark_faces(self) -> None:
        """Note in the diagonal which cells need their faces."""
        self.set_ghosts(self.inv_diag, self.wrap)
        self._kernels.mark_faces(self.open, self.inv_diag, self.n)
