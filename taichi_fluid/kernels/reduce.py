"""Reductions in two stages, always in the same order: the same bits on any number of threads."""

from types import SimpleNamespace

from .._ti import Expr, argument, ti, traced
from .layout import ARRAY_BITS, Array, address, flat, strides_of
from .loops import LoopShape, Shared, namespace, part, position_in_box, rows_of

ROW_PARTIALS = 64
CELL_PARTIALS = 8192
CELL_FOLDS = 128
PARTIALS = CELL_PARTIALS + CELL_FOLDS
"""Length of the buffer that a reduction needs for its partial results, and one to a vector for each component of them;
``wavefront`` needs one for each plane."""


@argument
class Reduction:
    """What is reduced: ``combine(…, body(c, I, s, *args))`` over all cells, from ``start`` on: numbers, or vectors.

    With a ``width`` it is ``body(c, I, m, s, *args)``, which makes one of the ``m`` cells of a strip of at most that many.
    """

    start: object
    combine: object
    body: object
    args: object
    width: int = 0


@ti.func
def add(a, b):
    """Combination of a sum."""
    return a + b


@ti.func
def largest(a, b):
    """Combination of a maximum."""
    return ti.max(a, b)


def _is_vector(value) -> bool:
    return isinstance(value, ti.Matrix) or (isinstance(value, Expr) and value.is_tensor())


@ti.func
def _put_partial(partials: Array, place, value):
    if ti.static(_is_vector(value)):
        for line in ti.static(range(value.n)):
            partials[place + line * PARTIALS] = value[line]
    else:
        partials[place] = value


@ti.func
def _partial(partials: Array, place, start):
    """The partial result in a place, a number or a vector as ``start`` is."""
    value = start
    if ti.static(_is_vector(start)):
        for line in ti.static(range(start.n)):
            value[line] = partials[place + line * PARTIALS]
    else:
        value = partials[place]
    return value


@traced
def _partials_of_rows(*_):
    return ti.cast(ROW_PARTIALS, ti.i32)


@ti.func
def _reduced_strips(I, n, reduction):
    """Of the strips of the row that begins at ``I``."""
    s, along_row, first = strides_of(n), reduction.start, ti.i32(0)
    last = ti.static(n.n - 1)
    base = flat(I, s)
    while first < n[last]:
        J, m = I, ti.min(ti.i32(reduction.width), n[last] - first)
        J[last] += first
        found = reduction.body(address(base + first, ARRAY_BITS), J, m, s, *reduction.args)
        along_row = reduction.combine(along_row, found)
        first += ti.i32(reduction.width)
    return along_row


def reductions(shape: LoopShape, cells: SimpleNamespace) -> SimpleNamespace:
    """``reduce_cells``, ``reduced``, ``reduce_to`` and, for others to build on, ``reduced_row`` and ``reduce``."""
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
                if ti.static(reduction.width > 0):
                    total = reduction.combine(total, _reduced_strips(I, n, reduction))
                else:
                    total = reduction.combine(total, reduced_row(I, n, reduction))
            _put_partial(partials, chunk, total)

    @ti.func
    def reduce(n, partials: Array, reduction):
        """First stage: partial results, always in the same order."""
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
                    if ti.static(reduction.width > 0):
                        total = reduction.combine(total, reduction.body(flat(I, s), I, 1, s, *reduction.args))
                    else:
                        total = reduction.combine(total, reduction.body(flat(I, s), I, s, *reduction.args))
                    index += CELL_PARTIALS
                _put_partial(partials, thread, total)
            for fold in range(CELL_FOLDS):
                folded = reduction.start
                for k in range(CELL_PARTIALS // CELL_FOLDS):
                    folded = reduction.combine(folded, _partial(partials, fold + k * CELL_FOLDS, reduction.start))
                _put_partial(partials, CELL_PARTIALS + fold, folded)

    @ti.func
    def reduce_cells(n, partials: Array, start, combine: ti.template(), body: ti.template(), args: ti.template()):
        """First stage: partial results of ``combine`` over ``body(c, I, s, *args)``, always in the same order."""
        reduce(n, partials, Reduction(start, combine, body, args))

    @ti.func
    def reduced(partials: Array, start, combine: ti.template()):
        """Second stage, inside a serial task: the one number, or vector, that the partial results make."""
        total = start
        if ti.static(rows):
            for chunk in range(ROW_PARTIALS):
                total = combine(total, _partial(partials, chunk, start))
        else:
            for fold in range(CELL_FOLDS):
                total = combine(total, _partial(partials, CELL_PARTIALS + fold, start))
        return total

    @ti.func
    def reduce_to(
        out: Array, place, n, partials: Array, start, combine: ti.template(), body: ti.template(), args: ti.template()
    ):
        """``reduce_cells``, and the one number that it makes in a place of ``out``."""
        reduce(n, partials, Reduction(start, combine, body, args))
        # Not marked serial a loop of one iteration would wake a thread.
        ti.loop_config(serialize=True)
        for _ in range(1):
            out[place] = reduced(partials, start, combine)

    return namespace(reduced_row, reduce, reduce_cells, reduced, reduce_to)
