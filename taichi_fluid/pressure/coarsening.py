"""The coarse systems of multigrid: what they solve for, and how far their faces are open."""

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
    """What the coarser grid solves for, 0 where that is air or solid and -1 where a wall is; its faces, cells and seams.

    With a ``surface`` the pressure is held in the air.
    """

    unknown: object
    open: object
    n: object
    wrap: object
    surface: object

    @ti.func
    def closes(self, c):
        """Whether nothing goes through the faces of a cell."""
        mark = self.unknown[c]
        return mark < 0 if ti.static(self.surface) else mark <= 0


@ti.func
def _coarsen_at(c, I, s, fine, coarse: Array, n):
    """Whether any child is solved for; where an odd axis was rounded down, the last cell has three along it."""
    any_child = ti.f32(0.0)
    for child in range(3**s.n):
        J = I * 2 - 1
        rest, inside = child, 1
        for a in ti.static(range(s.n)):
            along = rest % ti.i32(3)
            rest = rest // ti.i32(3)
            J[a] += along
            if J[a] > fine.n[a] or (along == 2 and I[a] < n[a]):
                inside = 0
        if inside == 1:
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
    """Mark, by -1, a coarse cell that a wall runs through: it would have one value for both sides of the wall.

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
            coarse[c] = ti.f32(-1.0)


@ti.func
def _coarsen_open_at(c, I, s, fine, coarse):
    """Openness of the lower faces of a coarse cell, the last layer of upper faces included: the mean of its parts.

    Faces of cells that are not solved for are closed, but for those on the sides of the box, and with a ``surface`` for
    those of air, where the pressure is held: as far away as a centre, which costs an iteration or two.
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
                    # What is held nearer than the next centre counts for more; on sides that is what it is to do.
                    if J[axis] > 1 and J[axis] <= fine.n[axis]:
                        part_open = ti.min(part_open, ti.f32(1.0))
                total += part_open
                count += ti.f32(1.0)
        above = I[axis] > n[axis] and coarse.wrap[axis] == 0
        below = I[axis] == 1 and coarse.wrap[axis] == 0
        if (coarse.closes(c) and not above) or (coarse.closes(c - s[axis]) and not below):
            total = ti.f32(0.0)
        coarse.open[c + axis * cells] = total / ti.max(count, ti.f32(1.0))


@ti.func
def _scale_side_at(c, I, s, open: Array, n, factors, axis: ti.template()):
    first = c + axis * cells_of(s, n) + s[axis]
    last = first + n[axis] * s[axis]
    open[first] = factors[2 * axis] * open[first]
    open[last] = factors[2 * axis + 1] * open[last]


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
        loops.each_cell_in(
            n * 0 + 1, n + 2, n, _coarsen_open_at, (finer, _Coarse(unknown, coarse, n, wrap, surface))
        )

    @ti.kernel
    def scale_sides(open: Array, n: IntVector, factors: Box):
        loops.each_side(n, _scale_side_at, (open, n, factors))

    return coarsen_unknowns, drop_split, coarsen_open, scale_sides


def coarsen(fine: LinearSystem, coarse: LinearSystem, factors: tuple[float, ...]) -> None:
    """Solve where any child in the finer grid is solved for, but in no cell that a wall runs through.

    ``factors`` multiply what is open of the faces on each side of the box, flat as in ``BoundaryCoefficients.box``.
    """
    coarse.surface = fine.surface
    kernels = coarsening_kernels(coarse.grid.loops, fine.surface)
    kernels.coarsen_unknowns(fine.unknown, coarse.unknown, coarse.n, fine.n)
    if coarse.coupling.cut:
        kernels.drop_split(fine.unknown, fine.open, coarse.unknown, coarse.n, fine.n)
        coarse.set_ghosts(coarse.unknown, coarse.wrap)
        kernels.coarsen_open(fine.open, coarse.open, coarse.unknown, coarse.n, fine.n, coarse.wrap)
        coarse.close_sides()
        kernels.scale_sides(coarse.open, coarse.n, float_vector(len(factors))(*factors))
