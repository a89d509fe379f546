"""Transfers between a grid and the next coarser one: linear prolongation, and restriction, which is its transpose.

Between cell centres a fine cell weighs the coarse ones around it by 3/4 and 1/4 along each axis. Coarse cells that are
not solved for, and those behind a closed face, are left out, and what is left is normalised. Only red cells take part:
black ones have no residual, and what is prolonged to them would be overwritten (see ``multigrid``).

Kernels that ``hide`` read faces for that. Where none is closed between two cells that are solved for, as none is below a
surface in a box without solids, the cells alone say enough.
"""

from .._ti import argument, loaded, ti
from ..kernels import (
    ARRAY_BITS,
    LONG_STRIPS,
    Array,
    address,
    along_strip,
    cell_of_strip,
    cells_of,
    fast_min,
    flat,
    kernel_family,
    lane,
    position_of,
    strides_of,
)
from ..operators.ghosts import wrap_or_clear
from .relaxation import BACK, DOWN, passes_of, relaxed_at
from .system import System, product_at, rows_of, where_solved, write_strip_of_system


@argument
class Transfer:
    """Between an array of a grid and one of the next coarser grid."""

    fine: object  # what is restricted, or prolonged to
    coarse: object  # what is prolonged, or restricted to
    open: object  # how far each lower face of the finer grid is open
    visible: object  # 1 for coarse cells of which no face hides any of the fine cells around
    n: object  # cells of the finer grid along each axis
    coarse_n: object  # those of the coarser one
    hides: object  # whether ``open`` and ``visible`` have to be read


@ti.func
def _visibility_at(I, J, transfer, fine_s):
    """Linear weight between coarse cell ``I`` and fine cell ``J``, which sees a neighbour of its parent by a face."""
    w = ti.f32(1.0)
    fine, cells = flat(J, fine_s), cells_of(fine_s, transfer.n)
    for a in ti.static(range(I.n)):
        if (J[a] + 1) // 2 == I[a]:
            w *= ti.f32(0.75)
        else:
            face = fine + a * cells + (1 - (J[a] & 1)) * fine_s[a]
            # What is held at a surface nearer than the next centre counts for more, and hides nothing.
            w *= ti.f32(0.25) * fast_min(transfer.open[face], ti.f32(1.0))
    return w


@ti.func
def _parent_at(I, corner: ti.template()):
    """The coarse cell in one corner of those around fine cell ``I``; in corner 0 its parent."""
    P = (I + 1) // 2
    for a in ti.static(range(I.n)):
        if ti.static((corner >> a) & 1):
            P[a] += 1 - 2 * (I[a] & 1)
    return P


@ti.func
def _runtime_parent_at(I, corner):
    """The same for a corner that only the running kernel knows: where it is rare, a loop compiles once."""
    P = (I + 1) // 2
    for a in ti.static(range(I.n)):
        P[a] += ((corner >> a) & 1) * (1 - 2 * (I[a] & 1))
    return P


@ti.func
def _normalise_at(c, I, s, transfer, weight: Array):
    """1 / (sum of the linear weights of the coarse cells that are solved for and seen); 0 where nothing is.

    Coarse cells of which any is hidden from this one by a face are not ``visible``: there faces have to be read.
    """
    coarse_s, hidden, total = strides_of(transfer.coarse_n), ti.i32(0), ti.f32(0.0)
    if ti.static(transfer.hides):
        # All that a cell is weighed with lies behind the same face of it along each axis.
        for a in ti.static(range(s.n)):
            if transfer.open[c + a * cells_of(s, transfer.n) + (1 - (I[a] & 1)) * s[a]] < 1:
                hidden = ti.i32(1)
    if transfer.fine[c] > 0 or hidden == 1:
        for corner in ti.static(range(2**s.n)):
            if transfer.coarse[flat(_parent_at(I, corner), coarse_s)] > 0:
                total += ti.f32(ti.static(0.25 ** _ones(corner) * 0.75 ** (s.n - _ones(corner))))
    if ti.static(transfer.hides):
        if hidden == 1 and total > 0:
            seen = ti.f32(0.0)
            for corner in range(2**s.n):
                P = _runtime_parent_at(I, corner)
                if transfer.coarse[flat(P, coarse_s)] > 0:
                    seen += _visibility_at(P, I, transfer, s)
            if seen < total:
                total = seen
                for corner in range(2**s.n):
                    transfer.visible[flat(_runtime_parent_at(I, corner), coarse_s)] = ti.f32(0.0)
    weight[c] = ti.f32(0.0)
    if transfer.fine[c] > 0 and total > 0:
        weight[c] = ti.f32(1.0) / total


@ti.func
def _is_solved(k, c, transfer, solved: ti.template()):
    solved |= ti.cast(transfer.fine[lane(c, k)] > 0, ti.i32)


@ti.func
def _is_hidden(k, c, I, s, transfer, hidden: ti.template()):
    """Whether a face hides any of what a cell is weighed with; those on the sides of the box have nothing beyond them."""
    at, cells, last = lane(c, k), cells_of(s, transfer.n), ti.static(s.n - 1)
    for a in ti.static(range(s.n - 1)):
        side = 1 - (I[a] & 1)
        within = (I[a] + side >= 2) & (I[a] + side <= transfer.n[a])
        hidden |= ti.cast(within & (transfer.open[at + (a * cells + side * s[a])] < 1), ti.i32)
    i = I[last] + k
    lower, upper = transfer.open[at + last * cells] < 1, transfer.open[at + (last * cells + 1)] < 1
    behind = ti.select(i & 1 == 1, ti.cast((i >= 2) & lower, ti.i32), ti.cast((i < transfer.n[last]) & upper, ti.i32))
    hidden |= behind


@ti.func
def _is_any_missing(I, first, end, s, transfer):
    """Whether any coarse cell around those of a row from ``first`` to below ``end`` is not solved for."""
    last, missing, coarse_s = ti.static(s.n - 1), ti.i32(0), strides_of(transfer.coarse_n)
    for corner in ti.static(range(2 ** (s.n - 1))):
        P = _parent_at(I, corner)
        P[last] = first // 2
        for k in range((end - 1) // 2 - first // 2 + 2):
            missing |= ti.cast(transfer.coarse[flat(P, coarse_s) + address(k, ARRAY_BITS)] <= 0, ti.i32)
    return missing


@ti.func
def _put_one(k, c, transfer, weight: Array):
    weight[cell_of_strip(c, k)] = ti.select(transfer.fine[cell_of_strip(c, k)] > 0, ti.f32(1.0), ti.f32(0.0))


@ti.func
def _normalise_strip(c, I, m, s, transfer, weight: Array, width: ti.template()):
    """``_normalise_at`` for a strip. Where nothing is hidden, and nothing or everything solved for, that is 0 or 1."""
    last, hidden, solved, each = ti.static(s.n - 1), ti.i32(0), ti.i32(0), ti.i32(1)
    along_strip(m, width, _is_solved, (c, transfer, solved))
    if ti.static(transfer.hides):
        along_strip(m, width, _is_hidden, (c, I, s, transfer, hidden))
    # Beside the sides of the box some of what is around lies beyond them.
    first, end = ti.max(I[last], 2), ti.min(I[last] + m, transfer.n[last])
    if hidden == 0 and (solved == 0 or _is_any_missing(I, first, end, s, transfer) == 0):
        along_strip(m, width, _put_one, (c, transfer, weight))
        each = solved
    else:
        first = end
    for k in range(m):
        i = I[last] + k
        if each == 1 and (i < first or i >= end):
            _normalise_at(cell_of_strip(c, k), position_of(I, k), s, transfer, weight)


@ti.func
def _gather_marks_at(c, I, s, visible: Array, n, across, axis: ti.template()):
    """A mark on a ghost beyond the seam of a periodic axis is meant for the cell at its other end."""
    if across[axis] == 1:
        upper = c + (n[axis] + 1) * s[axis]
        visible[c + s[axis]] = ti.min(visible[c + s[axis]], visible[upper])
        visible[upper - s[axis]] = ti.min(visible[upper - s[axis]], visible[c])


@ti.func
def _one_at(c, I, s, a: Array):
    a[c] = ti.f32(1.0)


@ti.func
def _weighted_residual_at(c, I, s, system, weight: Array):
    """Of all cells: a compiler makes vectors of that. Only what it says of red ones is looked at."""
    value = (relaxed_at(c, s, system) - system.x[c]) / system.inv_diag[c] * weight[c]
    return where_solved(value, system.inv_diag[c])


@ti.func
def _hidden_residual(I, s, transfer):
    """What coarse cell ``I`` gathers where faces hide some of the cells around it."""
    n = transfer.n
    total = ti.f32(0.0)
    for pair in range(4**s.n // 2):
        J = I * 2 - 2
        rest = pair
        inside = 1
        for a in ti.static(range(s.n - 1)):
            J[a] += rest & 3
            rest = rest >> 2
            if J[a] > n[a] + 1:
                inside = 0
        # Black cells and those outside have no residual; a ghost of a periodic axis is its other end.
        J[s.n - 1] += 2 * rest + (J.sum() & 1)
        if inside == 1 and J[s.n - 1] <= n[s.n - 1] + 1:
            value = transfer.fine[flat(J, s)]
            if value != 0:
                total += _visibility_at(I, J, transfer, s) * value
    return total


def _digit(offset: int, axis: int) -> int:
    return (offset // 4**axis) % 4


def _digit_sum(offset: int, dim: int) -> int:
    return sum(_digit(offset, axis) for axis in range(dim))


def _ones(corner: int) -> int:
    return corner.bit_count()


@argument
class _Last:
    """The last of the four rows around a coarse one along each axis: where it is, and what it weighs; 0 outside."""

    step: object
    weight: object


@ti.func
def _red_rows_at(c, s, last, odd: ti.template(), residual: Array):
    """Of the 4^(dim-1) rows around a coarse one, weighted, those whose red cells have the parity ``odd``.

    ``c`` is in the first of them.
    """
    total = ti.f32(0.0)
    for rest in ti.static(range(4 ** (s.n - 1))):
        if ti.static(_digit_sum(rest, s.n - 1) % 2 == odd):
            w = ti.f32(1.0)
            row = c
            for a in ti.static(range(s.n - 1)):
                along = ti.static(_digit(rest, a))
                if ti.static(along == 3):
                    w *= last.weight[a]
                    row += last.step[a]
                else:
                    w *= ti.f32(ti.static((0.25, 0.75, 0.75)[along]))
                    row += along * s[a]
            total += w * residual[row]
    return total


@ti.func
def _gather_rows(k, c, s, last, residual: Array, rows: ti.template()):
    for odd in ti.static(range(2)):
        rows[ti.i32(odd), k] = _red_rows_at(cell_of_strip(c, k), s, last, odd, residual)


@ti.func
def _restrict_cell(k, c, I, rows: ti.template(), transfer, scale):
    near = rows[ti.i32(1), ti.i32(2 * k + 1)] + rows[ti.i32(0), ti.i32(2 * k + 2)]
    far = rows[ti.i32(0), ti.i32(2 * k)] + rows[ti.i32(1), ti.i32(2 * k + 3)]
    total = ti.f32(0.75) * near + ti.f32(0.25) * far
    if ti.static(transfer.hides):
        if transfer.visible[c + k] == 0:
            J = I
            J[I.n - 1] += k
            total = _hidden_residual(J, strides_of(transfer.n), transfer)
    transfer.coarse[cell_of_strip(c, k)] = total * scale


@ti.func
def _restrict_strip(c, I, m, s, transfer, scale, width: ti.template()):
    """Transpose of linear prolongation, over the red cells of the 4^dim around each coarse cell of a strip."""
    last_axis = ti.static(s.n - 1)
    n = transfer.n
    fine_s = strides_of(n)
    last_step, last_weight = fine_s * 3, ti.Vector.zero(ti.f32, s.n) + ti.f32(0.25)
    for a in ti.static(range(s.n)):
        if I[a] * 2 > n[a]:
            last_step[a] = fine_s[a]
            last_weight[a] = ti.f32(0.0)
    last = _Last(last_step, last_weight)
    rows = ti.Matrix.zero(ti.f32, 2, 2 * width + 2)
    base = flat(I * 2 - 2, fine_s)
    # Where an odd axis was rounded up, the last places are outside.
    places = ti.min(2 * m + 2, n[last_axis] + 4 - 2 * I[last_axis])
    if ti.static(width == 1):
        for k in ti.static(range(4)):
            if k < places:
                _gather_rows(k, base, fine_s, last, transfer.fine, rows)
    else:
        along_strip(places, width, _gather_rows, (base, fine_s, last, transfer.fine, rows))
    along_strip(m, width, _restrict_cell, (c, I, rows, transfer, scale))


@ti.func
def _hidden_correction(P, J, s, fine_s, transfer):
    """What fine cell ``J`` with parent ``P`` is corrected by where faces hide some of the coarse cells around it."""
    total = ti.f32(0.0)
    for corner in range(2**s.n):
        Q = P
        for a in ti.static(range(s.n)):
            Q[a] += ((corner >> a) & 1) * (1 - 2 * (J[a] & 1))
        total += _visibility_at(Q, J, transfer, fine_s) * transfer.coarse[flat(Q, s)]
    return total


@ti.func
def _coarse_rows_at(c, step, coarse: Array):
    """Interpolation across the rows: of the 2^(dim-1) nearest coarse ones, at place ``c`` of the nearest."""
    total = ti.f32(0.0)
    for corner in ti.static(range(2 ** (step.n - 1))):
        far = ti.static(_ones(corner))
        row = c
        for a in ti.static(range(step.n - 1)):
            if ti.static((corner >> a) & 1):
                row += step[a]
        total += ti.f32(ti.static(0.25**far * 0.75 ** (step.n - 1 - far))) * coarse[row]
    return total


@ti.func
def _interpolate_rows(k, c, step, coarse: Array, line: ti.template()):
    line[ti.i32(0), k] = _coarse_rows_at(cell_of_strip(c, k), step, coarse)


@ti.func
def _prolong_cell(c, J, P, s, coarse_s, value, transfer, weight: Array):
    total = value
    if ti.static(transfer.hides):
        if transfer.visible[flat(P, coarse_s)] == 0:
            total = _hidden_correction(P, J, coarse_s, s, transfer)
    transfer.fine[c] = transfer.fine[c] + total * weight[c]


@ti.func
def _prolong_strip(c, I, m, s, transfer, weight: Array, width: ti.template()):
    """Add the interpolated correction to the red cells of a strip."""
    last = ti.static(s.n - 1)
    own = loaded(transfer)
    coarse_s = strides_of(own.coarse_n)
    P = (I + 1) // 2
    parent = flat(P, coarse_s)
    step = coarse_s
    for a in ti.static(range(s.n)):
        step[a] = coarse_s[a] * (1 - 2 * (I[a] & 1))
    if ti.static(width == 1):
        if I.sum() % 2 == 0:
            value = ti.f32(0.75) * _coarse_rows_at(parent, step, own.coarse)
            value += ti.f32(0.25) * _coarse_rows_at(parent + step[last], step, own.coarse)
            _prolong_cell(c, I, P, s, coarse_s, value, own, weight)
    else:
        # A strip begins at an odd place. The line begins a coarse cell before its parent.
        line = ti.Matrix.zero(ti.f32, 1, width // 2 + 2)
        along_strip(m // 2 + 2, width, _interpolate_rows, (parent - 1, step, own.coarse, line))
        even = I.sum() & 1
        for k in range((m + 1 - even) // 2):
            J, Q = I, P
            J[last] += even + 2 * k
            Q[last] += k
            value = ti.f32(0.75) * line[ti.i32(0), ti.i32(k + 1)] + ti.f32(0.25) * line[ti.i32(0), ti.i32(k + 2 * even)]
            _prolong_cell(c + even + 2 * k, J, Q, s, coarse_s, value, own, weight)


@kernel_family
def transfer_kernels(loops, coupling, hides):
    Index, each_side, each_strip, width = loops.IntVector, loops.each_side, loops.each_strip, loops.long
    cut, wraps = coupling

    @ti.kernel
    def compute_weight(
        unknown: Array,
        open: Array,
        coarse: Array,
        weight: Array,
        visible: Array,
        n: Index,
        coarse_n: Index,
        across: Index,
    ):
        if ti.static(hides):
            loops.each_cell_in(coarse_n * 0, coarse_n + 2, coarse_n, _one_at, (visible,))
        transfer = Transfer(unknown, coarse, open, visible, n, coarse_n, hides)
        if ti.static(not wraps and width > 1):
            each_strip(n, loops.width, _normalise_strip, (transfer, weight, loops.width))
        else:
            loops.each_cell(n, _normalise_at, (transfer, weight))
        if ti.static(hides and wraps):
            each_side(coarse_n, _gather_marks_at, (visible, coarse_n, across))

    @ti.kernel
    def compute_residual(
        x: Array, rhs: Array, inv_diag: Array, open: Array, weight: Array, residual: Array, n: Index, across: Index
    ):
        system = System(inv_diag, n, open, cut, x, rhs)
        each_strip(n, width, write_strip_of_system, (system, residual, width, _weighted_residual_at, (weight,)))
        if ti.static(wraps):
            each_side(n, wrap_or_clear, (residual, n, across))

    @ti.kernel
    def restrict(residual: Array, open: Array, visible: Array, rhs: Array, n: Index, fine_n: Index, scale: ti.f32):
        each_strip(n, width, _restrict_strip, (Transfer(residual, rhs, open, visible, fine_n, n, hides), scale, width))

    @ti.kernel
    def prolong(
        coarse: Array, x: Array, weight: Array, open: Array, visible: Array, n: Index, coarse_n: Index,
        across: Index, wrap: Index,
    ):  # fmt: skip
        each_side(coarse_n, wrap_or_clear, (coarse, coarse_n, across))
        each_strip(n, width, _prolong_strip, (Transfer(x, coarse, open, visible, n, coarse_n, hides), weight, width))
        each_side(n, wrap_or_clear, (x, n, wrap))

    return compute_weight, compute_residual, restrict, prolong


@kernel_family
def cycle_kernels(loops, coupling, hides):
    """Transfers in one traverse of the grid with the sweeps before or after them, where no axis is periodic."""
    cut = coupling.cut
    Index, wavefront, each_strip, width = loops.IntVector, loops.wavefront, loops.each_strip, loops.long

    @ti.kernel
    def smooth_and_restrict(
        x: Array, rhs: Array, inv_diag: Array, open: Array, weight: Array, residual: Array, visible: Array,
        coarse_rhs: Array, n: Index, coarse_n: Index, scale: ti.f32,
    ):  # fmt: skip
        """Black, red, black from x = 0, and restriction of the residual that they leave."""
        system = System(inv_diag, n, open, cut, x, rhs)
        measured = ti.static((system, residual, width, _weighted_residual_at, (weight,)))
        wavefront(n, passes_of(system, DOWN) + ((LONG_STRIPS, write_strip_of_system, measured, rows_of(system)),), ())
        transfer = Transfer(residual, coarse_rhs, open, visible, n, coarse_n, hides)
        each_strip(coarse_n, width, _restrict_strip, (transfer, scale, width))

    @ti.func
    def prolong_then_smooth(given, between, weight: Array, total: ti.template()):
        system, transfer = loaded(given), loaded(between)
        prolongation = ti.static((LONG_STRIPS, _prolong_strip, (transfer, weight, width), rows_of(system)))
        wavefront(system.n, (prolongation,) + passes_of(system, BACK), total)

    @ti.kernel
    def prolong_and_smooth(
        coarse: Array, x: Array, rhs: Array, inv_diag: Array, weight: Array, open: Array, visible: Array, n: Index,
        coarse_n: Index,
    ):  # fmt: skip
        """Prolongation, black, red and black."""
        transfer = Transfer(x, coarse, open, visible, n, coarse_n, hides)
        prolong_then_smooth(System(inv_diag, n, open, cut, x, rhs), transfer, weight, ())

    @ti.kernel
    def prolong_smooth_and_sum(
        coarse: Array, x: Array, rhs: Array, inv_diag: Array, weight: Array, open: Array, visible: Array, n: Index,
        coarse_n: Index, partials: Array,
    ):  # fmt: skip
        """The same, and rhs · x in ``partials`` as ``wavefront`` leaves it."""
        transfer = Transfer(x, coarse, open, visible, n, coarse_n, hides)
        system = System(inv_diag, n, open, cut, x, rhs)
        prolong_then_smooth(system, transfer, weight, (partials, product_at, (rhs, x)))

    return smooth_and_restrict, prolong_and_smooth, prolong_smooth_and_sum
