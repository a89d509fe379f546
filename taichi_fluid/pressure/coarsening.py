"""The coarse systems of multigrid: what they solve for, and how far their faces are open."""

from collections.abc import Sequence

from .._ti import argument, ti
from ..boundaries.solids.rasterise import is_face_of_box
from ..kernels import Array, cells_of, flat, float_vector, kernel_family, strides_of
from .system import LinearSystem


@argument
class _Fine:
    """What the finer grid solves for, how far its faces are open, its cells and its strides."""

    unknown: object
    open: object
    n: object
    s: object


@argument
class _Coarse:
    """What the coarser grid solves for, how far its faces are open, its cells and seams; whether it ends at a ``surface``."""

    unknown: object
    open: object
    n: object
    wrap: object
    surface: object


@ti.func
def _coarsen_at(c, I, s, fine, coarse: Array, n):
    """Whether any child is solved for; where an odd axis was rounded down, the last cell has three along it."""
    any_child, third = ti.f32(0.0), ti.i32(0)
    for child in ti.static(range(2**s.n)):
        J = I * 2 - 1
        for a in ti.static(range(s.n)):
            J[a] = ti.min(J[a] + ti.static((child >> a) & 1), fine.n[a])
        any_child = ti.max(any_child, fine.unknown[flat(J, fine.s)])
    for a in ti.static(range(s.n)):
        third |= ti.cast((I[a] == n[a]) & (fine.n[a] > 2 * n[a]), ti.i32)
    if third == 1:
        for child in range(3**s.n):
            J, rest = I * 2 - 1, child
            for a in ti.static(range(s.n)):
                along = rest % ti.i32(3)
                rest = rest // ti.i32(3)
                J[a] = ti.min(J[a] + ti.select(I[a] < n[a], ti.min(along, 1), along), fine.n[a])
            any_child = ti.max(any_child, fine.unknown[flat(J, fine.s)])
    coarse[c] = any_child


@ti.func
def _child_beside(I, axis: ti.template(), part: ti.template()):
    """First child of coarse cell ``I`` along ``axis``, in one of the places that there are across it."""
    J = I * 2 - 1
    for a in ti.static(range(I.n)):
        if ti.static(a != axis):
            J[a] += ti.static((part >> (a - (1 if a > axis else 0))) & 1)
    return J


@ti.func
def _drop_split_at(c, I, s, fine, coarse: Array):
    """Do not solve for a coarse cell that a wall runs through: it would have one value for both sides of the wall.

    Along each axis its children stand face to face; where most pairs cannot see each other, there is a wall.
    """
    fine_cells = cells_of(fine.s, fine.n)
    for axis in ti.static(range(s.n)):
        walled, clear = 0, 0
        for part in ti.static(range(2 ** (s.n - 1))):
            J = _child_beside(I, axis, part)
            J[axis] += 1
            inside = 1
            for a in ti.static(range(s.n)):
                if J[a] > fine.n[a]:
                    inside = 0
            if inside == 1:
                child = flat(J, fine.s)
                if fine.unknown[child] > 0 and fine.unknown[child - fine.s[axis]] > 0:
                    if fine.open[child + axis * fine_cells] > 0:
                        clear += 1
                    else:
                        walled += 1
        if walled > clear:
            coarse[c] = ti.f32(0.0)


@ti.func
def _coarsen_open_at(c, I, s, fine, coarse):
    """Openness of the lower faces of a coarse cell, the last layer of upper faces included: the mean of its parts.

    Faces of cells that are not solved for are closed, but for those on the sides of the box. What is held at a surface
    goes into the diagonal; see ``_coarsen_held_at``.
    """
    n, fine_cells, cells = coarse.n, cells_of(fine.s, fine.n), cells_of(s, coarse.n)
    for axis in ti.static(range(s.n)):
        total, count = ti.f32(0.0), ti.f32(0.0)
        for part in ti.static(range(2 ** (s.n - 1))):
            J = _child_beside(I, axis, part)
            if I[axis] == n[axis] + 1:
                J[axis] = fine.n[axis] + 1
            if is_face_of_box(J, fine.n, axis):
                part_open = fine.open[flat(J, fine.s) + axis * fine_cells]
                if ti.static(coarse.surface):
                    # What is held nearer than the next centre weighs more than 1; on sides it is to do so here too.
                    if J[axis] > 1 and J[axis] <= fine.n[axis]:
                        part_open = ti.min(part_open, ti.f32(1.0))
                total += part_open
                count += ti.f32(1.0)
        above = I[axis] > n[axis] and coarse.wrap[axis] == 0
        below = I[axis] == 1 and coarse.wrap[axis] == 0
        unseen, unseen_below = coarse.unknown[c] == 0, coarse.unknown[c - s[axis]] == 0
        if (unseen and not above) or (unseen_below and not below):
            total = ti.f32(0.0)
        coarse.open[c + axis * cells] = total / ti.max(count, ti.f32(1.0))


@ti.func
def _held_by_faces(c, I, s, fine):
    """What faces between a cell that is solved for and air hold of it."""
    held, cells = ti.f32(0.0), cells_of(fine.s, fine.n)
    if fine.unknown[c] > 0:
        for axis in ti.static(range(s.n)):
            for side in ti.static(range(2)):
                on_side = I[axis] == (fine.n[axis] if ti.static(side == 1) else 1)
                if fine.unknown[c + (2 * side - 1) * s[axis]] == 0 and not on_side:
                    held += fine.open[c + axis * cells + side * s[axis]]
    return held


@ti.func
def _coarsen_held_at(c, I, s, fine, held: Array, coarse: Array, finest: ti.template()):
    """What is held of the children, over the number of faces that a coarse face is made of: as near as to them."""
    total = ti.f32(0.0)
    for child in range(2**s.n):
        J, inside = I * 2 - 1, 1
        for a in ti.static(range(s.n)):
            J[a] += (child >> a) & 1
            if J[a] > fine.n[a]:
                inside = 0
        if inside == 1:
            if ti.static(finest):
                total += _held_by_faces(flat(J, fine.s), J, fine.s, fine)
            else:
                total += held[flat(J, fine.s)]
    coarse[c] = total * ti.f32(0.5 ** (s.n - 1))


@ti.func
def _scale_side_at(c, I, s, open: Array, n, factors, axis: ti.template()):
    first = c + axis * cells_of(s, n) + s[axis]
    last = first + n[axis] * s[axis]
    open[first] = factors[2 * axis] * open[first]
    open[last] = factors[2 * axis + 1] * open[last]


@ti.func
def _write_shifted_inv_diag(c, I, s, open: Array, unknown: Array, inv_diag: Array, n, box, shift):
    """With a shift, of which a cell has the part that its faces are open on the mean: what is near enough for a coarse grid."""
    cells, faces, closed, diagonal = cells_of(s, n), ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)
    for a in ti.static(range(s.n)):
        for side in ti.static(range(2)):
            face = open[c + a * cells + side * s[a]]
            faces += face
            if I[a] == (n[a] if ti.static(side == 1) else 1) and face == 0:
                closed += ti.f32(1.0)
                diagonal += box[2 * a + side]
    diagonal += faces + shift * faces / ti.max(ti.cast(2 * s.n, ti.f32) - closed, ti.f32(1.0))
    inv_diag[c] = ti.select(unknown[c] > 0 and faces > 0, ti.f32(1.0) / diagonal, ti.f32(0.0))


@kernel_family
def coarsening_kernels(loops, surface):
    IntVector, Box, each_cell = loops.IntVector, float_vector(2 * loops.dim), loops.each_cell

    @ti.kernel
    def coarsen_unknowns(fine: Array, coarse: Array, n: IntVector, fine_n: IntVector):
        each_cell(n, _coarsen_at, (_Fine(fine, fine, fine_n, strides_of(fine_n)), coarse, n))

    @ti.kernel
    def drop_split(fine: Array, open: Array, coarse: Array, n: IntVector, fine_n: IntVector):
        each_cell(n, _drop_split_at, (_Fine(fine, open, fine_n, strides_of(fine_n)), coarse))

    @ti.kernel
    def coarsen_open(fine: Array, coarse: Array, unknown: Array, n: IntVector, fine_n: IntVector, wrap: IntVector):
        finer = _Fine(fine, fine, fine_n, strides_of(fine_n))
        loops.each_cell_in(n * 0 + 1, n + 2, n, _coarsen_open_at, (finer, _Coarse(unknown, coarse, n, wrap, surface)))

    @ti.kernel
    def scale_sides(open: Array, n: IntVector, factors: Box):
        loops.each_side(n, _scale_side_at, (open, n, factors))

    @ti.kernel
    def coarsen_held(fine: Array, open: Array, held: Array, coarse: Array, n: IntVector, fine_n: IntVector):
        each_cell(n, _coarsen_held_at, (_Fine(fine, open, fine_n, strides_of(fine_n)), held, coarse, False))

    @ti.kernel
    def hold(fine: Array, open: Array, held: Array, coarse: Array, n: IntVector, fine_n: IntVector):
        each_cell(n, _coarsen_held_at, (_Fine(fine, open, fine_n, strides_of(fine_n)), held, coarse, True))

    @ti.kernel
    def compute_shifted_inv_diag(open: Array, unknown: Array, inv_diag: Array, n: IntVector, box: Box, shift: ti.f32):
        each_cell(n, _write_shifted_inv_diag, (open, unknown, inv_diag, n, box, shift))

    return coarsen_unknowns, drop_split, coarsen_open, scale_sides, coarsen_held, hold, compute_shifted_inv_diag


def set_shifted_diagonal(coarse: LinearSystem, box: Sequence[float], shift: float) -> None:
    """The diagonal of a coarse grid with faces open in part and a shift; ``box`` is what sides hold."""
    kernels, held = coarsening_kernels(coarse.grid.loops, False), float_vector(len(box))(*box)
    kernels.compute_shifted_inv_diag(coarse.open, coarse.unknown, coarse.inv_diag, coarse.n, held, shift)
    coarse.mark_faces()
    coarse.set_ghosts(coarse.inv_diag, coarse.wrap)


def coarsen(fine: LinearSystem, coarse: LinearSystem, factors: tuple[float, ...]) -> None:
    """Solve where any child in the finer grid is solved for, but in no cell that a wall runs through.

    ``factors`` multiply what is open of the faces on each side of the box, flat as in ``BoundaryCoefficients.box``.
    """
    coarse.walled = fine.walled
    if fine.surface:
        coarse.end_at_surface()
    # They look at every cell of the finer grid: whether that is worth waking threads for is for that to say.
    kernels = coarsening_kernels(fine.grid.loops, fine.surface)
    kernels.coarsen_unknowns(fine.unknown, coarse.unknown, coarse.n, fine.n)
    if coarse.coupling.cut:
        if fine.walled:
            kernels.drop_split(fine.unknown, fine.open, coarse.unknown, coarse.n, fine.n)
        coarse.set_ghosts(coarse.unknown, coarse.wrap)
        kernels.coarsen_open(fine.open, coarse.open, coarse.unknown, coarse.n, fine.n, coarse.wrap)
        coarse.close_sides()
        kernels.scale_sides(coarse.open, coarse.n, float_vector(len(factors))(*factors))
        if fine.surface:
            hold = kernels.hold if fine.held is None else kernels.coarsen_held
            held = fine.open if fine.held is None else fine.held
            hold(fine.unknown, fine.open, held, coarse.held, coarse.n, fine.n)
