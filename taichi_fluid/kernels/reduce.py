"""Reductions in two stages, always in the same order: the same bits on any number of threads."""

from types import SimpleNamespace

from .._ti import argument, ti, traced
from .layout import Array, flat, strides_of
from .loops import LoopShape, Shared, namespace, part, position_in_box, rows_of

ROW_PARTIALS = 64
CELL_PARTIALS = 8192
CELL_FOLDS = 128
PARTIALS = CELL_PARTIALS + CELL_FOLDS
"""Length of the buffer that a reduction needs for its partial results; ``wavefront`` needs one for each plane."""


@argument
class Reduction:
    """What is reduced: ``combine(…, body(c, I, s, *args))`` over all cells, from ``start`` on."""

    start: object
    combine: object
    body: object
    args: object


@ti.func
def add(a, b):
    """Combination of a sum."""
    return a + b


@ti.func
def largest(a, b):
    """Combination of a maximum."""
    return ti.max(a, b)


@traced
def _partials_of_rows(*_):
    return ti.cast(ROW_PARTIALS, ti.i32)


def reductions(shape: LoopShape, cells: SimpleNamespace) -> SimpleNamespace:
    """``reduce_cells``, ``reduced``, ``reduce_to`` and, for others to build on, ``reduced_row``."""
    last, rows, serial, each_share = shape.dim - 1, shape.rows, shape.serial, cells.each_share

    @ti.func
    def reduced_row(I, n, reduction):
        """Of the row that begins at ``I``."""
        s = strides_of(n)
        base = flat(I, s)
        along_row = reduction.start
        for k in range(n[last]):
            J = I
            J[last] += k
            along_row = reduction.combine(along_row, reduction.body(base + k, J, s, *reduction.args))
        return along_row

    @ti.func
    def reduce_chunks(begin, end, n, partials: Array, reduction):
        for chunk in range(begin, end):
            rows_here, total = rows_of(n), reduction.start
            first, end_row = part(rows_here, chunk, ROW_PARTIALS), part(rows_here, chunk + 1, ROW_PARTIALS)
            for row in range(first, end_row):
                I = position_in_box(row, n * 0 + 1, n + 1, last - 1)
                total = reduction.combine(total, reduced_row(I, n, reduction))
            partials[chunk] = total

    @ti.func
    def reduce_cells(n, partials: Array, start, combine: ti.template(), body: ti.template(), args: ti.template()):
        """First stage: partial results of ``combine`` over ``body(c, I, s, *args)``, always in the same order."""
        reduction = Reduction(start, combine, body, args)
        if ti.static(rows):
            each_share(Shared(_partials_of_rows, reduce_chunks, (n, partials, reduction)), serial)
        else:
            for thread in range(CELL_PARTIALS):
                s = strides_of(n)
                count = rows_of(n) * n[last]
                total = reduction.start
                index = thread
                while index < count:
                    I = position_in_box(index, n * 0 + 1, n + 1, last)
                    total = reduction.combine(total, reduction.body(flat(I, s), I, s, *reduction.args))
                    index += CELL_PARTIALS
                partials[thread] = total
            for fold in range(CELL_FOLDS):
                folded = reduction.start
                for k in range(CELL_PARTIALS // CELL_FOLDS):
                    folded = reduction.combine(folded, partials[fold + k * CELL_FOLDS])
                partials[CELL_PARTIALS + fold] = folded

    @ti.func
    def reduced(partials: Array, start, combine: ti.template()):
        """Second stage, inside a serial task: the one number that the partial results make."""
        total = start
        if ti.static(rows):
            for chunk in range(ROW_PARTIALS):
                total = combine(total, partials[chunk])
        else:
            for fold in range(CELL_FOLDS):
                total = combine(total, partials[CELL_PARTIALS + fold])
        return total

    @ti.func
    def reduce_to(
        out: Array, place, n, partials: Array, start, combine: ti.template(), body: ti.template(), args: ti.template()
    ):
        """``reduce_cells``, and the one number that it makes in a place of ``out``."""
        reduce_cells(n, partials, start, combine, body, args)
        # Not marked serial a loop of one iteration would wake a thread.
        ti.loop_config(serialize=True)
        for _ in range(1):
            out[place] = reduced(partials, start, combine)

    return namespace(reduced_row, reduce_cells, reduced, reduce_to)
