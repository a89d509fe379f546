"""The kernel floor: one way to loop over cells on every arch, deterministic reductions, launch graphs.

A physical operator is a ``ti.func`` that knows an index: ``body(c, I, s, *args)``, where ``c`` is the flat index of
the cell, ``I`` its integer position (the first interior cell is 1 along every axis) and ``s`` the strides.
A kernel chooses the loop and passes the operator in. Two loop shapes serve every arch:

* *rows* (CPU): parallel over shares of the rows, a plain inner loop along the last axis. Taichi calls the body of a
  parallel loop through a pointer, so a loop over cells would pay a call and two divisions for each cell; and it hands
  out iterations 512 at a time, so a loop over fewer rows than that would run on one thread.
* *cells* (GPU): one thread per cell, the last axis fastest, so that neighbouring threads read neighbouring words.

Kernels live in families: ``@kernel_family`` turns a function that defines kernels for a loop shape into a cached
lookup by grid, so every kernel is built once for a dimension and a loop shape, whatever the size of the grid.

A body writes ``a[c] = a[c] + x``, never ``a[c] += x``: on an array the latter is an atomic in Taichi, which on a CPU
costs ten times as much.
"""

import contextlib
import ctypes
import functools
import warnings
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from .._ti import MatrixType, handle_exception_from_cpp, impl, local, subscript, ti, traced

Array = ti.types.ndarray(dtype=ti.f32, ndim=1)
"""Annotation of every array argument of a kernel: flat, scalar, f32."""

IntArray = ti.types.ndarray(dtype=ti.i32, ndim=1)
"""Annotation of an array of indices."""

CPU_ARCHS = (ti.x64, ti.arm64)

SERIAL_CELLS = 48**3
"""On a CPU a loop over fewer cells than this is not worth waking the thread pool for: waking takes 20 to 100 µs."""

BLOCK = 512
"""Iterations of a parallel loop that Taichi hands to a CPU thread at a time, whatever ``block_dim`` says."""

TASKS_PER_THREAD, MOST_TASKS = 4, 64
"""Shares into which a parallel loop over rows is cut: some for each thread, as they may take unequal times."""

COSTLY_SERIAL_CELLS = 16**3
"""The same for a loop whose body takes ten times as long as that of a smoother: paths, interpolation, rays."""

RUN, LONG_RUN = 16, 32
"""Cells of a row that a CPU may treat together: what they have in common is a loop that its compiler can vectorise.

The long ones are for little that stands between two steps: every value of it costs compiling, and a loop over a local
matrix of more than 64 values is not made vectors of."""

ARRAY_BITS = 29
"""An array holds fewer than 2 to this power values, which are less than 2 GiB; one component of several half of that."""

RED, BLACK, EVERY, RUNS, LONG_RUNS = range(5)
"""What a pass of ``in_turn`` goes over: the cells of one colour, all, or runs of them, of ``width`` or of ``long``."""

ROW_PARTIALS = 64
CELL_PARTIALS = 8192
CELL_FOLDS = 128
PARTIALS = CELL_PARTIALS + CELL_FOLDS
"""Length of the buffer that a reduction needs for its partial results; ``in_turn`` needs one for each plane."""


class LoopShape(NamedTuple):
    """What the loops of a kernel depend on, apart from sizes: the key of a kernel family.

    Attributes:
        dim: Number of axes.
        rows: Whether they go over rows, as on a CPU, and not over cells.
        serial: Whether they are not worth waking threads for.
        threads: Among how many threads rows are shared out.
    """

    dim: int
    rows: bool
    serial: bool = False
    threads: int = 1


def arch():
    """The Taichi arch that is running.

    Raises:
        RuntimeError: if ``ti.init`` has not been called.
    """
    if impl.get_runtime().prog is None:
        raise RuntimeError("Taichi is not running: call ti.init(arch=...) before building a Grid or a Simulation.")
    return impl.current_cfg().arch


def loop_shape(dim: int, serial: bool = False) -> LoopShape:
    """The loop shape for the arch that is running; ``serial`` (small grids) means something on a CPU only."""
    rows = arch() in CPU_ARCHS
    return LoopShape(dim, rows, serial and rows, max(impl.current_cfg().cpu_max_num_threads, 1) if rows else 1)


def compiled_kernels() -> int:
    """How many kernels Taichi has compiled since ``ti.init``, for this project and for everybody else."""
    return sum(len(kernel.compiled_kernels) for kernel in impl.get_runtime().kernels)


@functools.cache
def int_vector(dim: int):
    """The Taichi type of a grid's shape: ``dim`` integers."""
    return ti.types.vector(dim, ti.i32)


@functools.cache
def float_vector(dim: int):
    """The Taichi type of a point or a velocity: ``dim`` numbers of f32."""
    return ti.types.vector(dim, ti.f32)


def memory_of(array) -> np.ndarray | None:
    """On a CPU the values of an f32 array themselves, for as long as it lives; None where a device holds them.

    ``to_numpy`` launches a kernel of 90 µs, which counts where a few values are looked at again and again.
    """
    if not _on_cpu():
        return None
    program: Any = impl.get_runtime().prog
    pointer = program.get_ndarray_data_ptr_as_int(array.arr)
    return np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), array.shape)


def _on_cpu() -> bool:
    return arch() in CPU_ARCHS


@traced
def address(i, bits):
    """``i``, which is from 0 to below 2**bits, in the form that makes the cheapest address.

    An index is 32 bits wide to Taichi, and a sum of two could overflow as far as a CPU's compiler knows, so that it
    extends each one by itself. Of 64 bits that it can see to be few it makes one address and small distances from it.
    """
    return ti.cast(i, ti.i64) & (2**bits - 1) if _on_cpu() else i


@traced
def strides_of(n):
    """Strides of the flat padded array (``n + 2`` per axis, last axis fastest) of a grid of ``n`` cells."""
    steps = [ti.cast(1, ti.i32)]
    for a in range(n.n - 1, 0, -1):
        steps.insert(0, steps[0] * (subscript(n, a) + 2))
    return ti.Vector([address(step, ARRAY_BITS - 1) for step in steps])


@traced
def cells_of(s, n):
    """Length of a padded scalar array: the way from one component to the next."""
    return address(subscript(s, 0) * (subscript(n, 0) + 2), ARRAY_BITS - 1)


@traced
def flat(I, s):
    """Flat index of the integer position ``I``."""
    return address(sum(subscript(I, a) * subscript(s, a) for a in range(s.n)), ARRAY_BITS)


@traced
def at_most(x, bound):
    """``x``, or ``bound`` where it is larger or NaN, in one instruction on a CPU, where ``ti.min`` takes four."""
    if not _on_cpu():
        return ti.min(x, bound)
    x, bound = local(x), local(bound)
    return ti.select(x < bound, x, bound)


@traced
def at_least(x, bound):
    """``x``, or ``bound`` where it is smaller or NaN."""
    if not _on_cpu():
        return ti.max(x, bound)
    x, bound = local(x), local(bound)
    return ti.select(x > bound, x, bound)


@ti.func
def along_run(m, width: ti.template(), phase: ti.template(), args: ti.template()):
    """``phase(k, *args)`` for the cells ``k`` of a run of ``m``, at most ``width``, which for one cell is no loop."""
    if ti.static(width == 1):
        # A number by itself has the type ``default_ip``, and a place in a local matrix must not be of 64 bits.
        phase(ti.i32(0), *args)
    else:
        for k in range(m):
            phase(k, *args)


@traced
def cell_of_run(c, k):
    """Cell ``k`` of the run that begins at ``c``: a sum that a compiler sees not to overflow, and so to be one way on."""
    return c + address(k, LONG_RUN.bit_length() + 2)


@traced
def position_in_run(I, k, axis):
    """Integer position along ``axis`` of cell ``k`` of the run that begins at ``I``."""
    return subscript(I, axis) + k if axis == I.n - 1 else subscript(I, axis)


@traced
def beside(c, distance, k):
    """What lies ``distance`` from cell ``k`` of the run that begins at ``c``, or, with a ``k`` of 0, from a cell ``c``.

    The way that all of a run has in common comes first, so that of the sum a compiler sees what ``cell_of_run`` says.
    """
    return cell_of_run(address(c + distance, ARRAY_BITS), k)


@ti.func
def _value_of_run(k, c, I, s, values: ti.template(), value: ti.template(), args: ti.template()):
    J = I
    J[s.n - 1] += k
    values[ti.i32(0), k] = value(cell_of_run(c, k), J, s, *args)


@ti.func
def put_run(k, a: ti.template(), c, values: ti.template(), line: ti.template()):
    """Write the value that cell ``k`` of a run, which begins at ``c``, has in a line of ``values``."""
    a[cell_of_run(c, k)] = values[ti.i32(line), k]


@ti.func
def write_run(
    c, I, m, s, out: ti.template(), width: ti.template(), value: ti.template(), args: ti.template()
):  # fmt: skip
    """``write_cells`` for one run, which has at most ``width`` cells."""
    values = ti.Matrix.zero(ti.f32, 1, width)
    along_run(m, width, _value_of_run, (c, I, s, values, value, args))
    along_run(m, width, put_run, (out, c, values, 0))


@ti.func
def _position(index, lower, upper, last: ti.template()):
    """``index``-th integer position of the box ``[lower, upper)`` counted over its axes up to ``last``, that fastest.

    With all axes it is a cell; without the last one it is the first cell of a row.
    """
    I = lower
    rest = index
    for a in ti.static(range(last, 0, -1)):
        width = ti.cast(upper[a] - lower[a], ti.i32)
        I[a] = lower[a] + rest % width
        rest = rest // width
    I[0] = lower[0] + rest
    return I


@ti.func
def _rows_in(lower, upper):
    rows = upper[0] - lower[0]
    for a in ti.static(range(1, lower.n - 1)):
        rows *= upper[a] - lower[a]
    return rows


@ti.func
def _part(count, part, parts):
    """Where the ``part``-th of ``parts`` equal parts of ``count`` things begins."""
    return ti.cast(ti.cast(count, ti.i64) * part // parts, ti.i32)


@ti.func
def _plane_end(n, axis: ti.template()):
    """End of the box of indices that lie in the lower ghost layer along ``axis``."""
    end = n + 2
    end[axis] = 1
    return end


@ti.func
def add(a, b):
    """Combination of a sum."""
    return a + b


@ti.func
def largest(a, b):
    """Combination of a maximum."""
    return ti.max(a, b)


@functools.cache
def loops(shape: LoopShape) -> SimpleNamespace:
    """The loops for one loop shape, as ``ti.func`` to be called at the top level of a kernel.

    Returns:
        A namespace of ``each_cell(n, body, args)``, ``each_cell_in(lower, upper, n, body, args)``,
        ``each_cell_alone(n, body, args)``,
        ``each_run(n, width, body, args)`` with a ``width`` and a ``long`` one, ``write_cells(n, out, value, args)``,
        ``each_of_colour(n, colour, body, args)``, ``each_on_plane(n, axis, body, args)``,
        ``each_pixel(width, height, body, args)``,
        ``reduce_cells(n, partials, start, combine, body, args)`` and ``reduced(partials, start, combine)``,
        ``reduce_to(out, place, n, partials, start, combine, body, args)``, which is both,
        ``in_turn(n, passes, total)`` and ``total_of(n, partials)``.
    """
    dim, rows, serial, threads = shape
    last = dim - 1
    # Shares of a parallel loop.
    tasks, pipes = min(TASKS_PER_THREAD * threads, MOST_TASKS), min(threads, MOST_TASKS)
    # Then they take less time than it does to wake the thread pool.
    few_seams = pipes <= 2 or dim == 2

    @ti.func
    def share_begin(count, task):
        return _part(count, task, ti.static(tasks))

    @ti.func
    def cells_from(I, n, step: ti.template(), count, body: ti.template(), args: ti.template()):
        """So many cells of a row from ``I`` on, every ``step``-th."""
        s = strides_of(n)
        base = flat(I, s)
        for k in range(count):
            J = I
            J[last] += ti.i32(step) * k
            body(base + address(step * k, ARRAY_BITS), J, s, *args)

    @ti.func
    def each_row_of_box(begin, end, lower, upper, n, body: ti.template(), args: ti.template()):
        for row in range(begin, end):
            cells_from(_position(row, lower, upper, last - 1), n, 1, upper[last] - lower[last], body, args)

    def box_loop(serialize: bool):
        @ti.func
        def each_cell_in(lower, upper, n, body: ti.template(), args: ti.template()):
            if ti.static(rows and serialize):
                ti.loop_config(serialize=True)
                for whole in range(1):
                    each_row_of_box(whole, _rows_in(lower, upper), lower, upper, n, body, args)
            elif ti.static(rows):
                for index in range(ti.static(BLOCK * tasks)):
                    if index % ti.static(BLOCK) == 0:
                        task, count = index // ti.static(BLOCK), _rows_in(lower, upper)
                        begin, end = share_begin(count, task), share_begin(count, task + 1)
                        each_row_of_box(begin, end, lower, upper, n, body, args)
            else:
                for index in range(_rows_in(lower, upper) * (upper[last] - lower[last])):
                    s = strides_of(n)
                    I = _position(index, lower, upper, last)
                    body(flat(I, s), I, s, *args)

        return each_cell_in

    each_cell_in = box_loop(serial)
    # A plane is too little work for the thread pool: waking it costs more than the plane of a 256³ grid.
    each_cell_of_plane = box_loop(True)

    @ti.func
    def each_cell(n, body: ti.template(), args: ti.template()):
        each_cell_in(n * 0 + 1, n + 1, n, body, args)

    @ti.func
    def each_cell_alone(n, body: ti.template(), args: ti.template()):
        """Every cell, row by row, inside a serial task: for grids of a few cells."""
        each_row_of_box(0, _rows_in(n * 0 + 1, n + 1), n * 0 + 1, n + 1, n, body, args)

    width, long = (RUN, LONG_RUN) if rows else (1, 1)

    @ti.func
    def runs_from(c, I, s, length, width: ti.template(), body: ti.template(), args: ti.template()):
        """A cell as a run of one; of a row of this length that begins here all runs."""
        if ti.static(rows):
            first = 0
            while first < length:
                J = I
                J[last] += first
                body(address(c + first, ARRAY_BITS), J, ti.min(width, length - first), s, *args)
                first += width
        else:
            body(c, I, 1, s, *args)

    @ti.func
    def each_run_to(end, n, width: ti.template(), body: ti.template(), args: ti.template()):
        """``each_run`` of the box of integer positions from 1 to below ``end``."""
        begins = end
        if ti.static(rows):
            begins[last] = ti.i32(2)
        each_cell_in(n * 0 + 1, begins, n, runs_from, (end[last] - 1, width, body, args))

    @ti.func
    def each_run(n, width: ti.template(), body: ti.template(), args: ti.template()):
        """Runs of at most ``width`` cells along the last axis, as ``body(c, I, m, s, *args)`` with m cells from c on.

        ``width`` is that of these loops, or their ``long`` one.
        """
        each_run_to(n + 1, n, width, body, args)

    @ti.func
    def write_cells(n, out: ti.template(), value: ti.template(), args: ti.template()):
        """``out[c] = value(c, I, s, *args)`` for every cell; of ``out`` itself ``value`` may read the cell alone."""
        each_run(n, long, write_run, (out, long, value, args))

    @ti.func
    def colour_from(I, n, colour, body: ti.template(), args: ti.template()):
        """The cells of a colour in the row that begins at ``I``."""
        J = I
        J[last] += (I.sum() + colour) & 1
        cells_from(J, n, 2, (n[last] - J[last]) // 2 + 1, body, args)

    @ti.func
    def each_row_of_colour(begin, end, n, colour, body: ti.template(), args: ti.template()):
        for row in range(begin, end):
            colour_from(_position(row, n * 0 + 1, n + 1, last - 1), n, colour, body, args)

    @ti.func
    def each_of_colour(n, colour, body: ti.template(), args: ti.template()):
        """Every other cell: those whose integer position sums to ``colour`` modulo 2."""
        if ti.static(rows and serial):
            ti.loop_config(serialize=True)
            for whole in range(1):
                each_row_of_colour(whole, _rows_in(n * 0 + 1, n + 1), n, colour, body, args)
        elif ti.static(rows):
            for index in range(ti.static(BLOCK * tasks)):
                if index % ti.static(BLOCK) == 0:
                    task, count = index // ti.static(BLOCK), _rows_in(n * 0 + 1, n + 1)
                    each_row_of_colour(share_begin(count, task), share_begin(count, task + 1), n, colour, body, args)
        else:
            width = (n[last] + 1) // 2
            for index in range(_rows_in(n * 0 + 1, n + 1) * width):
                s = strides_of(n)
                I = _position(index // width, n * 0 + 1, n + 1, last - 1)
                I[last] += ((I.sum() + colour) & 1) + 2 * (index % width)
                if I[last] <= n[last]:
                    body(flat(I, s), I, s, *args)

    @ti.func
    def each_on_plane(n, axis: ti.template(), body: ti.template(), args: ti.template()):
        """Every index of the lower ghost layer along ``axis``, the ghosts of the other axes included."""
        each_cell_of_plane(n * 0, _plane_end(n, axis), n, body, args)

    @ti.func
    def each_pixel(width, height, body: ti.template(), args: ti.template()):
        """Every pixel of an image, as ``body(x, y, *args)``; y = 0 is the top row."""
        if ti.static(rows):
            for index in range(ti.static(BLOCK * tasks)):
                if index % ti.static(BLOCK) == 0:
                    # Every so-many-th row: what is dear in a picture stands together.
                    y = index // ti.static(BLOCK)
                    while y < height:
                        for x in range(width):
                            body(x, y, *args)
                        y += ti.static(tasks)
        else:
            for pixel in range(width * height):
                body(pixel % width, pixel // width, *args)

    @ti.func
    def reduced_row(I, n, start, combine: ti.template(), body: ti.template(), args: ti.template()):
        s = strides_of(n)
        base = flat(I, s)
        along_row = start
        for k in range(n[last]):
            J = I
            J[last] += k
            along_row = combine(along_row, body(base + k, J, s, *args))
        return along_row

    @ti.func
    def reduce_chunks(
        begin, end, n, partials: ti.template(), start, combine: ti.template(), body: ti.template(), args: ti.template()
    ):
        for chunk in range(begin, end):
            rows_here = _rows_in(n * 0 + 1, n + 1)
            total = start
            first, end_row = _part(rows_here, chunk, ROW_PARTIALS), _part(rows_here, chunk + 1, ROW_PARTIALS)
            for row in range(first, end_row):
                I = _position(row, n * 0 + 1, n + 1, last - 1)
                total = combine(total, reduced_row(I, n, start, combine, body, args))
            partials[chunk] = total

    @ti.func
    def reduce_cells(
        n, partials: ti.template(), start, combine: ti.template(), body: ti.template(), args: ti.template()
    ):
        """First stage: partial results of ``combine`` over ``body(c, I, s, *args)``, always in the same order."""
        if ti.static(rows and serial):
            ti.loop_config(serialize=True)
            for whole in range(1):
                reduce_chunks(whole, ROW_PARTIALS, n, partials, start, combine, body, args)
        elif ti.static(rows):
            for index in range(ti.static(BLOCK * tasks)):
                if index % ti.static(BLOCK) == 0:
                    task = index // ti.static(BLOCK)
                    begin, end = share_begin(ROW_PARTIALS, task), share_begin(ROW_PARTIALS, task + 1)
                    reduce_chunks(begin, end, n, partials, start, combine, body, args)
        else:
            for thread in range(CELL_PARTIALS):
                s = strides_of(n)
                cells = _rows_in(n * 0 + 1, n + 1) * n[last]
                total = start
                index = thread
                while index < cells:
                    I = _position(index, n * 0 + 1, n + 1, last)
                    total = combine(total, body(flat(I, s), I, s, *args))
                    index += CELL_PARTIALS
                partials[thread] = total
            for fold in range(CELL_FOLDS):
                folded = start
                for k in range(CELL_PARTIALS // CELL_FOLDS):
                    folded = combine(folded, partials[fold + k * CELL_FOLDS])
                partials[CELL_PARTIALS + fold] = folded

    @ti.func
    def reduced(partials: ti.template(), start, combine: ti.template()):
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
        out: ti.template(), place: ti.template(), n, partials: ti.template(), start, combine: ti.template(),
        body: ti.template(), args: ti.template(),
    ):  # fmt: skip
        """``reduce_cells``, and the one number that it makes in a place of ``out``."""
        reduce_cells(n, partials, start, combine, body, args)
        # Not marked serial a loop of one iteration would wake a thread.
        ti.loop_config(serialize=True)
        for _ in range(1):
            out[place] = reduced(partials, start, combine)

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
    def pass_on_plane(i, n, part: ti.template(), body: ti.template(), args: ti.template()):
        for row in range(rows_of_plane(n)):
            I = row_of_plane(i, row, n)
            if ti.static(part in (RUNS, LONG_RUNS)):
                s = strides_of(n)
                runs_from(flat(I, s), I, s, n[last], ti.static(long if part == LONG_RUNS else width), body, args)
            elif ti.static(part == EVERY):
                cells_from(I, n, 1, n[last], body, args)
            else:
                colour_from(I, n, part, body, args)

    @ti.func
    def sum_of_plane(i, n, partials: ti.template(), summand: ti.template(), args: ti.template()):
        along_rows = ti.f64(0.0)
        for row in range(rows_of_plane(n)):
            along_rows += ti.cast(reduced_row(row_of_plane(i, row, n), n, ti.f32(0.0), add, summand, args), ti.f64)
        partials[i - 1] = ti.cast(along_rows, ti.f32)

    @ti.func
    def nth_pass_on_plane(i, n, p: ti.template(), passes: ti.template(), total: ti.template()):
        pass_on_plane(i, n, *passes[p])
        if ti.static(p + 1 == len(passes) and len(total) > 0):
            sum_of_plane(i, n, *total)

    @ti.func
    def pipeline(begin, end, n, passes: ti.template(), total: ti.template()):
        """All passes over planes of one share, each a plane behind the one before it.

        What would need a plane of the next share is left out: ``p`` planes by pass ``p``.
        """
        for front in range(begin, end + ti.static(len(passes) - 1)):
            for p in ti.static(range(len(passes))):
                i, lower, upper = front - p, begin, end
                if begin > 1:
                    lower += p
                if end <= n[0]:
                    upper -= p
                if i >= lower and i < upper:
                    nth_pass_on_plane(i, n, p, passes, total)

    @ti.func
    def shares_of_planes(n, passes: ti.template()):
        """So many that on either side of a seam there are as many planes as the last pass is behind the first, and one."""
        return ti.max(ti.min(n[0] // ti.static(2 * len(passes) - 1), ti.static(pipes)), 1)

    @ti.func
    def close_seam(share, n, passes: ti.template(), total: ti.template()):
        """What was left out between this share of the planes and the one before it."""
        shares = shares_of_planes(n, passes)
        if share > 0 and share < shares:
            seam = _part(n[0], share, shares) + 1
            for p in ti.static(range(1, len(passes))):
                for i in range(seam - p, seam + p):
                    nth_pass_on_plane(i, n, p, passes, total)

    @ti.func
    def each_part(n, part: ti.template(), body: ti.template(), args: ti.template()):
        if ti.static(part in (RUNS, LONG_RUNS)):
            each_run(n, ti.static(long if part == LONG_RUNS else width), body, args)
        elif ti.static(part == EVERY):
            each_cell(n, body, args)
        else:
            each_of_colour(n, part, body, args)

    @ti.func
    def sum_cells(n, partials: ti.template(), summand: ti.template(), args: ti.template()):
        reduce_cells(n, partials, ti.f32(0.0), add, summand, args)

    @ti.func
    def in_turn(n, passes: ti.template(), total: ti.template()):
        """Passes over the grid, one after the other: ``((part, body, args), …)``.

        On a CPU each follows the one before it by a plane, so that it finds in the cache what that has read and written;
        each thread has a share of the planes, so a grid of few planes along its first axis keeps few threads busy.
        A pass may read what another one writes in its own plane and in the two beside it, not further away, and of what
        it writes itself only the cell that it is at.

        Args:
            n: Cells.
            passes: For each the cells that it covers (``EVERY``, ``RED``, …), its body and arguments.
            total: ``(partials, summand, args)``: after the last pass ``total_of(n, partials)`` is the sum over all cells
                of ``summand(c, I, s, *args)``, which reads nothing but its cell. Empty: no sum.
        """
        if ti.static(rows and serial):
            ti.loop_config(serialize=True)
            for _ in range(1):
                pipeline(1, n[0] + 1, n, passes, total)
        elif ti.static(rows):
            for index in range(ti.static(BLOCK * pipes)):
                if index % ti.static(BLOCK) == 0:
                    share, shares = index // ti.static(BLOCK), shares_of_planes(n, passes)
                    if share < shares:
                        pipeline(_part(n[0], share, shares) + 1, _part(n[0], share + 1, shares) + 1, n, passes, total)
            if ti.static(len(passes) > 1 and few_seams):
                ti.loop_config(serialize=True)
                for share in range(1, ti.static(pipes)):
                    close_seam(share, n, passes, total)
            elif ti.static(len(passes) > 1):
                for index in range(ti.static(BLOCK * pipes)):
                    if index % ti.static(BLOCK) == 0:
                        close_seam(index // ti.static(BLOCK), n, passes, total)
        else:
            for p in ti.static(range(len(passes))):
                each_part(n, *passes[p])
            if ti.static(len(total) > 0):
                sum_cells(n, *total)

    @ti.func
    def total_of(n, partials: ti.template()):
        """The sum that ``in_turn`` has left, inside a serial task."""
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

    return SimpleNamespace(
        dim=dim,
        IntVector=int_vector(dim),
        FloatVector=float_vector(dim),
        each_cell=each_cell,
        each_cell_in=each_cell_in,
        each_cell_alone=each_cell_alone,
        each_run=each_run,
        each_run_to=each_run_to,
        write_cells=write_cells,
        width=width,
        long=long,
        each_of_colour=each_of_colour,
        each_on_plane=each_on_plane,
        each_pixel=each_pixel,
        reduce_cells=reduce_cells,
        reduced=reduced,
        reduce_to=reduce_to,
        in_turn=in_turn,
        total_of=total_of,
    )


@contextlib.contextmanager
def _compiling():
    """Let Taichi compile in silence: with a ``default_ip`` of 64 bits it warns of every literal in a ``range``.

    No loop of ours is as long as 2**31. What it prints itself, on precision, is not silenced: types say what is meant.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Casting range_for boundary values")
        yield


class Launcher:
    """A kernel, launched without what Taichi does anew in Python each time, which for a vector takes 15 µs.

    Taichi compiles and checks at the first launch after each ``ti.init``. After it arrays, numbers and vectors of the
    types that are announced go straight to the launch; anything else takes Taichi's own way, with its messages.
    """

    def __init__(self, kernel):
        functools.update_wrapper(self, kernel)
        self._kernel, self._primal = kernel, kernel._primal
        annotations = [argument.annotation for argument in self._primal.arguments]
        self._setters = None if self._primal.return_type else _setters(annotations)
        self._ready: tuple[Any, Any] = (None, None)

    def __call__(self, *args, **kwargs) -> None:
        if not self._primal.compiled_kernels:
            with _compiling():
                self._kernel(*args, **kwargs)
        elif kwargs or not self.launch(args):
            self._kernel(*args, **kwargs)

    def launch(self, args) -> bool:
        """Launch straight away if this is possible."""
        runtime, compiled = impl.get_runtime(), self._primal.compiled_kernels
        if self._setters is None or len(compiled) != 1 or len(args) != len(self._setters):
            return False
        if runtime.target_tape or runtime.fwd_mode_manager:
            return False
        (one,) = compiled.values()
        program: Any = runtime.prog
        known, data = self._ready
        context = one.make_launch_context()
        for index, (setter, value) in enumerate(zip(self._setters, args, strict=True)):
            if not setter(context, index, value):
                return False
        try:
            if one is not known:
                data = program.compile_kernel(program.config(), program.get_device_caps(), one)
                self._ready = one, data
            program.launch_kernel(data, context)
        except Exception as error:
            raise handle_exception_from_cpp(error) from None
        return True


def _setters(annotations):
    """A function for each argument, ``set(context, index, value)``, that says whether it has taken it; None for none."""
    setters = [_setter(annotation) for annotation in annotations]
    return None if None in setters else setters


def _setter(annotation):
    if isinstance(annotation, ti.types.ndarray):
        return functools.partial(_set_array, annotation.dtype) if annotation.ndim == 1 else None
    if annotation is ti.f32:
        return _set_float
    if annotation is ti.i32:
        return _set_int
    if isinstance(annotation, MatrixType) and annotation.ndim == 1 and annotation.dtype in (ti.f32, ti.i32):
        return functools.partial(_set_vector, annotation.n, annotation.dtype == ti.f32)
    return None


def _set_array(dtype, context, index, value) -> bool:
    fits = type(value) is ti.ScalarNdarray and value.grad is None and value.dtype == dtype and len(value.shape) == 1
    if fits:
        context.set_arg_ndarray((index,), value.arr)
    return fits


def _set_float(context, index, value) -> bool:
    fits = isinstance(value, (float, int))
    if fits:
        context.set_arg_float((index,), float(value))
    return fits


def _set_int(context, index, value) -> bool:
    fits = isinstance(value, int)
    if fits:
        context.set_arg_int((index,), int(value))
    return fits


def _set_vector(count, real, context, index, value) -> bool:
    entries: Any = value.entries if isinstance(value, ti.Matrix) else None
    fits = isinstance(entries, np.ndarray) and entries.size == count and entries.dtype.kind in ("fi" if real else "i")
    if fits:
        put, kind = (context.set_struct_arg_float, float) if real else (context.set_struct_arg_int, int)
        for k, entry in enumerate(entries.tolist()):
            put((index, k), kind(entry))
    return fits


def kernel_family(define):
    """Make ``define(loops, *extra)``, which returns kernels, a lookup ``family(shape, *extra)`` that builds each once."""

    @functools.cache
    def family(shape: LoopShape, *extra) -> SimpleNamespace:
        made = define(loops(shape), *extra)
        return SimpleNamespace(**{
            name: Launcher(value) if hasattr(value, "_primal") else value for name, value in made.items()
        })  # fmt: skip

    return functools.update_wrapper(family, define)


class Replay:
    """Recorded launches; a call makes them all, from C++.

    Attributes:
        launches: What was recorded: each kernel, with the values that it is given.
    """

    def __init__(self, graph, values, launches):
        self._graph, self._values = graph, values
        self.launches = tuple(launches)

    def __call__(self) -> None:
        self._graph.run(self._values)


class GraphRecorder:
    """Records kernel launches once, to be replayed from C++ without Python between them.

    A launch through Python costs some ten microseconds; a replayed one a few. The recorder keeps the arrays by name,
    so a recording is written as ordinary calls: ``recorder.launch(kernel, array, shape, 1.0)``.
    """

    def __init__(self):
        self._builder = ti.graph.GraphBuilder()
        self._values = {}
        self._symbols = {}
        self._launches = []

    def _symbol(self, value):
        key = id(value) if not isinstance(value, (int, float)) else (type(value), value)
        if key not in self._symbols:
            name = f"a{len(self._symbols)}"
            if isinstance(value, ti.Ndarray):
                symbol = ti.graph.Arg(ti.graph.ArgKind.NDARRAY, name, value.dtype, ndim=1)
            elif isinstance(value, ti.Matrix) and value.ndim == 1:
                entries = np.asarray(value.entries)
                vector = (float_vector if entries.dtype.kind == "f" else int_vector)(entries.size)
                symbol = ti.graph.Arg(ti.graph.ArgKind.MATRIX, name, vector)
            elif isinstance(value, (int, float)):
                symbol = ti.graph.Arg(ti.graph.ArgKind.SCALAR, name, ti.i32 if isinstance(value, int) else ti.f32)
            else:
                raise ValueError(f"a launch cannot be recorded with {value!r}; it takes arrays, vectors and numbers")
            self._symbols[key] = symbol
            self._values[name] = value
        return self._symbols[key]

    def launch(self, kernel, *args) -> None:
        """Record one launch of ``kernel``. Arrays must be distinct: Taichi miscompiles an aliased pair in silence.

        Raises:
            ValueError: for an array that is given twice, or what is no array, vector, ``int`` or ``float``.
        """
        arrays = [id(value) for value in args if isinstance(value, ti.Ndarray)]
        if len(set(arrays)) != len(arrays):
            raise ValueError("the same array was given twice to one kernel")
        with _compiling():
            self._builder.dispatch(kernel, *(self._symbol(value) for value in args))
        self._launches.append((kernel, args))

    def finish(self) -> Replay:
        """Close the recording and return what replays it."""
        return Replay(self._builder.compile(), self._values, self._launches)
