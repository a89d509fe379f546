"""Reductions in two stages, always in the same order: the same bits on any number of threads."""

from types import SimpleNamespace

from .._ti import Expr, argument, ti, traced
from .layout import ARRAY_BITS, Array, address, flat, strides_of
from .loops import LoopShape, Shared, loop_shape, namespace, part, position_in_box, rows_of

ROW_PARTIALS = 64
FOLDED, GROUP = 128, 32
"""Partial results that a GPU makes one of before a single thread takes what is left, so many at a time."""


def _partials_of(shape: LoopShape) -> tuple[int, int]:
    """Partial results on the way: from the threads, of which a large GPU wants many to read fast, and folded."""
    threads = shape.threads // 2
    return (ROW_PARTIALS, 0) if shape.rows else (threads, threads // FOLDED)


def room_for_partials(components: int = 1, planes: int = 0, shape: LoopShape | None = None):
    """An array for the partial results of reductions to numbers, or to vectors of so many components.

    Args:
        components: Of what is reduced to.
        planes: Of the grid that ``wavefront`` goes over, which needs one for each.
        shape: Of the loops; None takes any of those that this arch has.
    """
    return ti.ndarray(ti.f32, max(components * sum(_partials_of(shape or loop_shape(1))), planes))


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
def _put_partial(partials: Array, place, length: ti.template(), value):
    """Put a partial result in a place of a room of this length for each component."""
    if ti.static(_is_vector(value)):
        for line in ti.static(range(value.n)):
            partials[place + line * length] = value[line]
    else:
        partials[place] = value


@ti.func
def _partial(partials: Array, place, length: ti.template(), start):
    """The partial result in a place, a number or a vector as ``start`` is."""
    value = start
    if ti.static(_is_vector(start)):
        for line in ti.static(range(start.n)):
            value[line] = partials[place + line * length]
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


@ti.func
def _combined(
    partials: Array,
    first,
    count: ti.template(),
    step: ti.template(),
    length: ti.template(),
    start,
    combine: ti.template(),
):
    """Of so many partial results, from a place on, ``step`` apart."""
    total = start
    for k in range(ti.static(count)):
        total = combine(total, _partial(partials, first + k * ti.static(step), length, start))
    return total


@ti.func
def _reduced_by_thread(thread, threads: ti.template(), n, reduction):
    """Of what one thread of a GPU takes, every so-many-th cell."""
    last = ti.static(n.n - 1)
    s, index, total = strides_of(n), thread, reduction.start
    while index < rows_of(n) * n[last]:
        I = position_in_box(index, n * 0 + 1, n + 1, last)
        if ti.static(reduction.width > 0):
            total = reduction.combine(total, reduction.body(flat(I, s), I, 1, s, *reduction.args))
        else:
            total = reduction.combine(total, reduction.body(flat(I, s), I, s, *reduction.args))
        index += ti.static(threads)
    return total


def reductions(shape: LoopShape, cells: SimpleNamespace) -> SimpleNamespace:
    """``reduce_cells``, ``reduced``, ``reduce_to`` and, for others to build on, ``reduced_row`` and ``reduce``."""
    last, rows, serial, each_share = shape.dim - 1, shape.rows, shape.serial, cells.each_share
    parts, folds = _partials_of(shape)
    length = parts + folds

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
            _put_partial(partials, chunk, length, total)

    @ti.func
    def reduce(n: ti.template(), partials: ti.template(), reduction):
        """First stage: partial results, always in the same order."""
        if ti.static(rows):
            size = n
            each_share(Shared(_partials_of_rows, reduce_chunks, (size, partials, reduction)), serial)
        else:
            for thread in range(ti.static(parts)):
                _put_partial(partials, thread, length, _reduced_by_thread(thread, parts, n, reduction))
            for fold in range(ti.static(folds)):
                folded = _combined(partials, fold, FOLDED, folds, length, reduction.start, reduction.combine)
                _put_partial(partials, ti.static(parts) + fold, length, folded)

    @ti.func
    def reduce_cells(
        n: ti.template(),
        partials: ti.template(),
        start: ti.template(),
        combine: ti.template(),
        body: ti.template(),
        args: ti.template(),
    ):
        """First stage: partial results of ``combine`` over ``body(c, I, s, *args)``, always in the same order."""
        reduce(n, partials, Reduction(start, combine, body, args))

    @ti.func
    def reduced(partials: Array, start, combine: ti.template()):
        """Second stage, inside a serial task: the one number, or vector, that the partial results make."""
        total = start
        if ti.static(rows):
            total = _combined(partials, 0, ROW_PARTIALS, 1, length, start, combine)
        else:
            # In groups, as what rounding leaves of a sum grows with how many are added one after the other.
            for group in range(ti.static(folds // GROUP)):
                begin = ti.static(parts) + group * ti.static(GROUP)
                total = combine(total, _combined(partials, begin, GROUP, 1, length, start, combine))
        return total

    @ti.func
    def reduce_to(
        out: ti.template(),
        place: ti.template(),
        n: ti.template(),
        partials: ti.template(),
        start: ti.template(),
        combine: ti.template(),
        body: ti.template(),
        args: ti.template(),
    ):
        """``reduce_cells``, and the one number that it makes in a place of ``out``."""
        reduce(n, partials, Reduction(start, combine, body, args))
        # Not marked serial a loop of one iteration would wake a thread.
        ti.loop_config(serialize=True)
        for _ in range(1):
            out[place] = reduced(partials, start, combine)

    return namespace(reduced_row, reduce, reduce_cells, reduced, reduce_to)
