"""Loops over cells, planes and pixels, one way on every arch.

A physical operator is a ``ti.func`` that knows an index: ``body(c, I, s, *args)``, where ``c`` is the flat index of
the cell, ``I`` its integer position (the first interior cell is 1 along every axis) and ``s`` the strides.
A kernel chooses the loop and passes the operator in. Two loop shapes serve every arch:

* *rows* (CPU): parallel over shares of the rows, a plain inner loop along the last axis. Taichi calls the body of a
  parallel loop through a pointer, so a loop over cells would pay a call and two divisions for each cell; and it hands
  out iterations 512 at a time, so a loop over fewer rows than that would run on one thread.
* *cells* (GPU): each of so many threads takes every so-many-th cell, the last axis fastest, so that neighbouring
  threads read neighbouring words. How many threads is known to the compiler: of a loop whose end only the running kernel
  knows Taichi makes two launches, the first to find the end, and small grids are all launches. What a loop is over is
  worked out inside it for the same reason, so ``n`` and the corners of a box are handed on as ``ti.template()``.
"""

from types import SimpleNamespace
from typing import NamedTuple

from .. import backend
from .._ti import argument, impl, subscript, ti, traced
from .layout import ARRAY_BITS, CPU_ARCHS, address, arch, flat, float_vector, int_vector, strides_of

SERIAL_CELLS = 48**3
"""On a CPU a loop over fewer cells than this is not worth waking the thread pool for: waking takes 20 to 100 µs."""

COSTLY_SERIAL_CELLS = 16**3
"""The same for a loop whose body takes ten times as long as that of a smoother: paths, interpolation, rays."""

BLOCK = 512
"""Iterations of a parallel loop that Taichi hands to a CPU thread at a time, whatever ``block_dim`` says."""

GPU_THREADS, CUDA_THREADS, SOFTWARE_THREADS = 2**16, 2**18, 2**13
"""Threads of a loop on a GPU: as many as Taichi itself starts at the most elsewhere, as a large one of NVIDIA holds, and where
the device is software, whose processor begins each of them in turn: as few as reductions can do with."""

TASKS_PER_THREAD, MOST_TASKS = 4, 64
"""Shares into which a parallel loop over rows is cut: some for each thread, as they may take unequal times."""


class LoopShape(NamedTuple):
    """What the loops of a kernel depend on, apart from sizes: the key of a kernel family."""

    dim: int  # number of axes
    rows: bool  # whether they go over rows, as on a CPU, and not over cells
    serial: bool = False  # whether they are not worth waking threads for
    threads: int = 1  # among how many threads rows or cells are shared out


def loop_shape(dim: int, serial: bool = False) -> LoopShape:
    """The loop shape for the arch that is running; ``serial`` (small grids) means something on a CPU only."""
    if arch() not in CPU_ARCHS:
        return LoopShape(dim, rows=False, threads=_threads_of_device())
    return LoopShape(dim, True, serial, max(impl.current_cfg().cpu_max_num_threads, 1))


def _threads_of_device() -> int:
    if arch() == ti.cuda:
        return CUDA_THREADS
    return SOFTWARE_THREADS if arch() == ti.vulkan and backend.software_that_runs() else GPU_THREADS


@argument
class Operator:
    """What is done at each place, ``body(…, *args)``."""

    body: object
    args: object


@argument
class Shared:
    """What is done in each share of so many things, ``body(begin, end, *args)``, of which there are ``count(*args)``."""

    count: object
    body: object
    args: object


@ti.func
def position_in_box(index, lower, upper, last: ti.template()):
    """``index``-th integer position of the box ``[lower, upper)`` counted over its axes up to ``last``, that fastest.

    With all axes it is a cell; without the last one it is the first cell of a row.
    """
    I = lower
    rest = index
    for a in ti.static(range(last, 0, -1)):
        width = ti.cast(upper[a] - lower[a], ti.i32)
        I[a] = lower[a] + ti.raw_mod(rest, width)
        rest = ti.raw_div(rest, width)
    I[0] = lower[0] + rest
    return I


@traced
def rows_in(lower, upper, *_):
    """Rows of a box of cells."""
    rows = subscript(upper, 0) - subscript(lower, 0)
    for a in range(1, lower.n - 1):
        rows = rows * (subscript(upper, a) - subscript(lower, a))
    return rows


@traced
def rows_of(n, *_):
    """Rows of a grid."""
    rows = subscript(n, 0)
    for a in range(1, n.n - 1):
        rows = rows * subscript(n, a)
    return rows


@ti.func
def part(count, which, parts):
    """Where one of equal parts of ``count`` things begins."""
    return ti.cast(ti.cast(count, ti.i64) * which // parts, ti.i32)


@traced
def _plane_end(n, axis):
    """End of the box of indices that lie in the lower ghost layer along ``axis``."""
    return ti.Vector([ti.cast(1, ti.i32) if a == axis else subscript(n, a) + 2 for a in range(n.n)])


def namespace(*functions, **others) -> SimpleNamespace:
    """Functions by their names, and other things by theirs."""
    return SimpleNamespace(**{function.__name__: function for function in functions}, **others)


def share_loop(shape: LoopShape):
    """``each_share(shared, serial)``: shares among threads, or all as one."""
    tasks = min(TASKS_PER_THREAD * shape.threads, MOST_TASKS)

    @ti.func
    def each_share(shared, serial: ti.template()):
        if ti.static(serial):
            ti.loop_config(serialize=True)
            for whole in range(1):
                shared.body(whole, shared.count(*shared.args), *shared.args)
        else:
            for index in range(ti.static(BLOCK * tasks)):
                if index % ti.static(BLOCK) == 0:
                    task, count = index // ti.static(BLOCK), shared.count(*shared.args)
                    shared.body(
                        part(count, task, ti.static(tasks)), part(count, task + 1, ti.static(tasks)), *shared.args
                    )

    return each_share


def cell_loops(shape: LoopShape) -> SimpleNamespace:
    """``each_cell``, ``…_in``, ``…_alone``, ``each_on_plane``, ``each_side``, and the rows that they are made of."""
    dim, rows, serial, _ = shape
    last, each_share = dim - 1, share_loop(shape)

    @ti.func
    def cells_from(I, n, step: ti.template(), count, operator):
        """So many cells of a row from ``I`` on, every ``step``-th."""
        s = strides_of(n)
        base = flat(I, s)
        for k in range(count):
            J = I
            J[last] += ti.i32(step) * k
            operator.body(base + address(step * k, ARRAY_BITS), J, s, *operator.args)

    @ti.func
    def rows_of_box(begin, end, lower, upper, n, operator):
        for row in range(begin, end):
            cells_from(position_in_box(row, lower, upper, last - 1), n, 1, upper[last] - lower[last], operator)

    @ti.func
    def every_so_many(thread, lower, upper, n, operator):
        """What one thread does on a GPU."""
        s, index, count = strides_of(n), thread, rows_in(lower, upper) * (upper[last] - lower[last])
        while index < count:
            I = position_in_box(index, lower, upper, last)
            operator.body(flat(I, s), I, s, *operator.args)
            index += ti.static(shape.threads)

    @ti.func
    def cells_in(lower: ti.template(), upper: ti.template(), n: ti.template(), operator, alone: ti.template()):
        if ti.static(rows):
            first, end, size = lower, upper, n
            each_share(Shared(rows_in, rows_of_box, (first, end, size, operator)), alone)
        else:
            for thread in range(ti.static(shape.threads)):
                every_so_many(thread, lower, upper, n, operator)

    @ti.func
    def across_rows(n, operator):
        """The first index of every row, ghosts among them: what a loop over rows would have one of in each."""
        ti.loop_config(serialize=True)
        for _ in range(1):
            s, side = strides_of(n), ti.static(last - 1)
            for plane in range(n[0] + 2 if ti.static(dim == 3) else 1):
                I = n * 0
                I[0] = plane
                base = flat(I, s)
                for k in range(n[side] + 2):
                    J = I
                    J[side] = k
                    operator.body(base + address(k * s[side], ARRAY_BITS), J, s, *operator.args)

    @ti.func
    def each_cell_in(
        lower: ti.template(), upper: ti.template(), n: ti.template(), body: ti.template(), args: ti.template()
    ):
        """Every cell of a box of integer positions, from ``lower`` to below ``upper``."""
        cells_in(lower, upper, n, Operator(body, args), serial)

    @ti.func
    def each_cell(n: ti.template(), body: ti.template(), args: ti.template()):
        """Every cell."""
        cells_in(n * 0 + 1, n + 1, n, Operator(body, args), serial)

    @ti.func
    def each_cell_alone(n, body: ti.template(), args: ti.template()):
        """Every cell, row by row, inside a serial task: for grids of a few cells."""
        rows_of_box(0, rows_of(n), n * 0 + 1, n + 1, n, Operator(body, args))

    @ti.func
    def each_on_plane(n: ti.template(), axis: ti.template(), body: ti.template(), args: ti.template()):
        """Every index of the lower ghost layer along ``axis``, the ghosts of the other axes included.

        A plane is too little work for the thread pool: waking it costs more than the plane of a 256³ grid.
        """
        if ti.static(rows and axis == last):
            across_rows(n, Operator(body, args))
        else:
            cells_in(n * 0, _plane_end(n, axis), n, Operator(body, args), True)

    @ti.func
    def each_side(n: ti.template(), body: ti.template(), args: ti.template()):
        """``each_on_plane`` along one axis after the other, as ``body(c, I, s, *args, axis)``."""
        for axis in ti.static(range(dim)):
            each_on_plane(n, axis, body, args + (axis,))

    types = {"IntVector": int_vector(dim), "FloatVector": float_vector(dim)}
    made = (each_cell, each_cell_in, each_cell_alone, each_on_plane, each_side, cells_from, each_share)
    return namespace(*made, dim=dim, **types)


def colour_loops(shape: LoopShape, cells: SimpleNamespace) -> SimpleNamespace:
    """``each_of_colour``: every other cell, as on a chessboard."""
    last, rows, serial = shape.dim - 1, shape.rows, shape.serial
    cells_from, each_share = cells.cells_from, cells.each_share

    @ti.func
    def colour_from(I, n, colour, operator):
        """The cells of a colour in the row that begins at ``I``."""
        J = I
        J[last] += (I.sum() + colour) & 1
        cells_from(J, n, 2, (n[last] - J[last]) // 2 + 1, operator)

    @ti.func
    def rows_of_colour(begin, end, n, colour, operator):
        for row in range(begin, end):
            colour_from(position_in_box(row, n * 0 + 1, n + 1, last - 1), n, colour, operator)

    @ti.func
    def every_so_many_of_colour(thread, n, colour, operator):
        """What one thread does on a GPU."""
        s, index, width = strides_of(n), thread, (n[last] + 1) // 2
        while index < rows_of(n) * width:
            I = position_in_box(ti.raw_div(index, width), n * 0 + 1, n + 1, last - 1)
            I[last] += ((I.sum() + colour) & 1) + 2 * ti.raw_mod(index, width)
            if I[last] <= n[last]:
                operator.body(flat(I, s), I, s, *operator.args)
            index += ti.static(shape.threads)

    @ti.func
    def each_of_colour(n: ti.template(), colour: ti.template(), body: ti.template(), args: ti.template()):
        """Every other cell: those whose integer position sums to ``colour`` modulo 2."""
        if ti.static(rows):
            size, which = n, ti.cast(colour, ti.i32)
            each_share(Shared(rows_of, rows_of_colour, (size, which, Operator(body, args))), serial)
        else:
            for thread in range(ti.static(shape.threads)):
                every_so_many_of_colour(thread, n, ti.cast(colour, ti.i32), Operator(body, args))

    return namespace(colour_from, each_of_colour)


def pixel_loops(shape: LoopShape) -> SimpleNamespace:
    """``each_pixel``."""
    tasks = min(TASKS_PER_THREAD * shape.threads, MOST_TASKS)

    @ti.func
    def each_pixel(size: ti.template(), body: ti.template(), args: ti.template()):
        """Every pixel of an image of so many across and down, as ``body(x, y, *args)``; y = 0 is the top row."""
        if ti.static(shape.rows):
            for index in range(ti.static(BLOCK * tasks)):
                if index % ti.static(BLOCK) == 0:
                    # Every so-many-th row: what is dear in a picture stands together.
                    y = index // ti.static(BLOCK)
                    while y < size[1]:
                        for x in range(size[0]):
                            body(x, y, *args)
                        y += ti.static(tasks)
        else:
            for thread in range(ti.static(shape.threads)):
                pixel, across, count = thread, size[0], size[0] * size[1]
                while pixel < count:
                    body(ti.raw_mod(pixel, across), ti.raw_div(pixel, across), *args)
                    pixel += ti.static(shape.threads)

    return namespace(each_pixel)
