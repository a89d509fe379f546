"""Passes over a grid that follow one another by a plane, so that each finds in the cache what the last one wrote.

Skewed (wavefront) blocking: on a CPU each thread has a share of the planes, and what a share leaves out at its ends,
the seams, is closed afterwards.
"""

from types import SimpleNamespace

from .._ti import argument, subscript, ti, traced
from .layout import Array, flat, strides_of
from .loops import BLOCK, MOST_TASKS, LoopShape, Operator, namespace, part
from .reduce import Reduction, add

RED, BLACK, EVERY, STRIPS, LONG_STRIPS = range(5)
"""What a pass of ``wavefront`` goes over: the cells of one colour, all, or strips of them, of ``width`` or of ``long``."""


UNEVEN = {2: 2, 3: 4}
"""Shares for each thread where rows are left out: a liquid may lie on one side of a box. In 2D one thread closes all seams."""

LEFT_OUT = -1.0
"""What marks a row as left out, in the ghost below it."""


@ti.func
def leave_out(marks: Array, first, out):
    """Let passes leave out the row that begins at ``first``, or not: ``marks`` is an array over the grid."""
    marks[first - 1] = ti.select(out, ti.f32(LEFT_OUT), ti.f32(0.0))


@traced
def _is_left_out(marks, first):
    return subscript(marks[0], first - 1) == ti.cast(LEFT_OUT, ti.f32) if marks else False


@traced
def _with_marks(passes):
    """Passes with a tuple of the marks, which may be empty."""
    return tuple(each if len(each) == 4 else (*each, ()) for each in passes)


@traced
def _shares_at_most(threads, dim, passes):
    """Shares of the planes: one for each thread, and more where rows are left out, as those may lie anywhere."""
    return min(threads * (UNEVEN[dim] if any(each[3] for each in passes) else 1), MOST_TASKS)


@argument
class Passes:
    """``((part, body, args, marks), …)``, and the sum after the last one: ``(partials, summand, args)``, or empty."""

    passes: object
    total: object


def wavefront_loops(shape: LoopShape, below: SimpleNamespace) -> SimpleNamespace:
    """``wavefront`` and ``total_of``."""
    passes_over = _passes_over(shape, below)
    pipeline, shares_of, close_seam = _pipelines(passes_over.nth_pass)
    dim, threads, rows, serial, each_part = shape.dim, shape.threads, shape.rows, shape.serial, passes_over.each_part
    reduce_cells, reduced = below.reduce_cells, below.reduced

    @ti.func
    def wavefront(n: ti.template(), passes: ti.template(), total: ti.template()):
        """Passes over the grid, one after the other: ``((part, body, args), …)``, where a part is ``EVERY``, ``RED``, ….

        On a CPU each follows the one before it by a plane, so that it finds in the cache what that has read and written;
        each thread has shares of the planes, so a grid of few planes along its first axis keeps few threads busy.
        A pass may read what another one writes in its own plane and in the two beside it, not further away, and of what
        it writes itself only the cell that it is at. A fourth thing of a pass is ``(marks,)``: on a CPU it leaves
        those rows out of which ``leave_out`` says so there, as they have what it would write. Where ``total`` is not empty but ``(partials, summand, args)``, after
        the last pass ``total_of(n, partials)`` is the sum of ``summand(c, I, s, *args)``, which reads only its cell.
        """
        work = Passes(_with_marks(passes), total)
        pipes = ti.static(_shares_at_most(threads, dim, _with_marks(passes)))
        # Then they take less time than it does to wake the thread pool.
        few_seams = ti.static(pipes <= 2 or dim == 2)
        if ti.static(rows and serial):
            ti.loop_config(serialize=True)
            for _ in range(1):
                pipeline(1, n[0] + 1, n, work)
        elif ti.static(rows):
            for index in range(ti.static(BLOCK * pipes)):
                if index % ti.static(BLOCK) == 0:
                    share, shares = index // ti.static(BLOCK), shares_of(n, work, pipes)
                    if share < shares:
                        pipeline(part(n[0], share, shares) + 1, part(n[0], share + 1, shares) + 1, n, work)
            if ti.static(len(passes) > 1 and few_seams):
                ti.loop_config(serialize=True)
                for share in range(1, ti.static(pipes)):
                    close_seam(share, n, work, pipes)
            elif ti.static(len(passes) > 1):
                for index in range(ti.static(BLOCK * pipes)):
                    if index % ti.static(BLOCK) == 0:
                        close_seam(index // ti.static(BLOCK), n, work, pipes)
        else:
            for p in ti.static(range(len(passes))):
                each_part(n, *work.passes[p])
            if ti.static(len(total) > 0):
                reduce_cells(n, total[0], ti.f32(0.0), add, total[1], total[2])

    @ti.func
    def total_of(n, partials: ti.template()):
        """The sum that ``wavefront`` has left, inside a serial task."""
        total = ti.f32(0.0)
        if ti.static(rows):
            # There may be thousands of planes, and a mean is taken out of what is summed next.
            precise = ti.f64(0.0)
            for plane in range(n[0]):
                precise += ti.cast(partials[plane], ti.f64)
            total = ti.cast(precise, ti.f32)
        else:
            total = reduced(partials, ti.f32(0.0), add)
        return total

    return namespace(wavefront, total_of)


def _passes_over(shape: LoopShape, below: SimpleNamespace) -> SimpleNamespace:
    """One pass: over a plane on a CPU, over the grid elsewhere."""
    dim, last = shape.dim, shape.dim - 1
    width, long, strips_from, cells_from = below.width, below.long, below.strips_from, below.cells_from
    colour_from, reduced_row = below.colour_from, below.reduced_row
    each_strip, each_cell, each_of_colour = below.each_strip, below.each_cell, below.each_of_colour

    @ti.func
    def row_of_plane(i, row, n):
        """First cell of a row of the plane whose first coordinate is ``i``."""
        I = n * 0 + 1
        I[0] = i
        if ti.static(dim == 3):
            I[1] += row
        return I

    @ti.func
    def rows_of_plane(n):
        rows_here = 1
        for a in ti.static(range(1, last)):
            rows_here *= n[a]
        return rows_here

    @ti.func
    def pass_on_row(I, n, cells: ti.template(), operator):
        if ti.static(cells in (STRIPS, LONG_STRIPS)):
            s = strides_of(n)
            strips_from(flat(I, s), I, s, n[last], ti.static(long if cells == LONG_STRIPS else width), operator)
        elif ti.static(cells == EVERY):
            cells_from(I, n, 1, n[last], operator)
        else:
            colour_from(I, n, cells, operator)

    @ti.func
    def pass_on_plane(i, n, cells: ti.template(), body: ti.template(), args: ti.template(), marks: ti.template()):
        for row in range(rows_of_plane(n)):
            I = row_of_plane(i, row, n)
            if not _is_left_out(marks, flat(I, strides_of(n))):
                pass_on_row(I, n, cells, Operator(body, args))

    @ti.func
    def sum_of_plane(i, n, partials: ti.template(), summand: ti.template(), args: ti.template()):
        along_rows = ti.f64(0.0)
        for row in range(rows_of_plane(n)):
            of_row = reduced_row(row_of_plane(i, row, n), n, Reduction(ti.f32(0.0), add, summand, args))
            along_rows += ti.cast(of_row, ti.f64)
        partials[i - 1] = ti.cast(along_rows, ti.f32)

    @ti.func
    def nth_pass(i, n, p: ti.template(), work):
        pass_on_plane(i, n, *work.passes[p])
        if ti.static(p + 1 == len(work.passes) and len(work.total) > 0):
            sum_of_plane(i, n, *work.total)

    @ti.func
    def each_part(
        n: ti.template(), cells: ti.template(), body: ti.template(), args: ti.template(), _marks: ti.template()
    ):
        if ti.static(cells in (STRIPS, LONG_STRIPS)):
            each_strip(n, ti.static(long if cells == LONG_STRIPS else width), body, args)
        elif ti.static(cells == EVERY):
            each_cell(n, body, args)
        else:
            each_of_colour(n, cells, body, args)

    return namespace(nth_pass, each_part)


def _pipelines(nth_pass):
    """All passes over a share of the planes, how many shares there are, and what is left between two of them."""

    @ti.func
    def pipeline(begin, end, n, work):
        """All passes over planes of one share, each a plane behind the one before it.

        What would need a plane of the next share is left out: ``p`` planes by pass ``p``.
        """
        for front in range(begin, end + ti.static(len(work.passes) - 1)):
            for p in ti.static(range(len(work.passes))):
                i, lower, upper = front - p, begin, end
                if begin > 1:
                    lower += p
                if end <= n[0]:
                    upper -= p
                if i >= lower and i < upper:
                    nth_pass(i, n, p, work)

    @ti.func
    def shares_of(n, work, pipes: ti.template()):
        """So many that on either side of a seam there are as many planes as the last pass is behind the first, and one."""
        return ti.max(ti.min(n[0] // ti.static(2 * len(work.passes) - 1), ti.static(pipes)), 1)

    @ti.func
    def close_seam(share, n, work, pipes: ti.template()):
        """What was left out between this share of the planes and the one before it."""
        shares = shares_of(n, work, pipes)
        if share > 0 and share < shares:
            seam = part(n[0], share, shares) + 1
            for p in ti.static(range(1, len(work.passes))):
                for i in range(seam - p, seam + p):
                    nth_pass(i, n, p, work)

    return pipeline, shares_of, close_seam
