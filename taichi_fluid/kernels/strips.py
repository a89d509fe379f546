"""Strips: some cells of a row, taken together on a CPU, where what they have in common is a loop of vectors.

An operator is told once, for one cell: ``value(c, I, s, *args)`` with neighbours at ``c + s[axis]``. On a GPU, and
where there are no strips, ``c`` is an index. In a strip it is a ``Lane``, an index that remembers which strip it
belongs to, so that of ``c + s[axis]`` a compiler sees one address for the strip and small distances from it: it reads
and writes vectors. On a GPU a strip is one cell.
"""

from types import SimpleNamespace

from .._ti import Expr, argument, subscript, ti, traced
from .layout import ARRAY_BITS, address, cells_of
from .loops import LoopShape, Operator, namespace

STRIP, LONG_STRIP = 16, 32
"""Cells of a strip, and of a long one.

The long ones are for little that stands between two steps: every value of it costs compiling, and a loop over a local
matrix of more than 64 values is not made vectors of."""


class Lane(Expr):
    """The flat index of cell ``k`` of the strip that begins at ``first``; ``lane + distance`` is a lane too.

    The way that all of a strip has in common is added first and said to be of few bits. Of ``first + k + distance`` by
    itself a compiler takes every address apart, as a sum of three could overflow.
    """

    _data_oriented = True  # Taichi hands it on as it is

    def __init__(self, first, k, common=None):
        super().__init__(cell_of_strip(first if common is None else common, k).ptr)
        self._first, self._k = first, k

    def __add__(self, other):
        first = self._first + other
        return Lane(first, self._k, address(first, ARRAY_BITS))

    def __radd__(self, other):
        return self + other

    def __sub__(self, other):
        return self + -other


@traced
def cell_of_strip(c, k):
    """Cell ``k`` of the strip that begins at ``c``: a sum that a compiler sees not to overflow, and so to be one way on."""
    return c + address(k, LONG_STRIP.bit_length() + 2)


@traced
def lane(c, k):
    """Cell ``k`` of the strip that begins at ``c``, for an operator."""
    return Lane(c, k)


@traced
def position_in_strip(I, k, axis):
    """Integer position along ``axis`` of cell ``k`` of the strip that begins at ``I``."""
    return subscript(I, axis) + k if axis == I.n - 1 else subscript(I, axis)


@traced
def position_of(I, k):
    """Integer position of cell ``k`` of the strip that begins at ``I``."""
    return ti.Vector([position_in_strip(I, k, axis) for axis in range(I.n)])


@ti.func
def along_strip(m, width: ti.template(), phase: ti.template(), args: ti.template()):
    """``phase(k, *args)`` for the cells ``k`` of a strip of ``m``, at most ``width``, which for one cell is no loop."""
    if ti.static(width == 1):
        phase(0, *args)
    else:
        for k in range(m):
            phase(k, *args)


@argument
class Strip:
    """``m`` cells along the last axis, at most ``width``: flat index and integer position of the first."""

    first: object
    I: object
    m: object
    width: int

    @ti.func
    def each(self, phase: ti.template(), args: ti.template()):
        """``phase(k, *args)`` for each cell: one step of what is done with all of them, which can be made vectors of."""
        along_strip(self.m, self.width, phase, args)

    @ti.func
    def matrix(self, lines: ti.template()):
        """Room for so many numbers for each cell."""
        values = ti.Matrix.zero(ti.f32, lines, self.width)
        return values

    @ti.func
    def integers(self, lines: ti.template()):
        """Room for so many whole numbers for each cell."""
        values = ti.Matrix.zero(ti.i32, lines, self.width)
        return values


@ti.func
def column(a: ti.template(), k):
    """Column ``k`` as a vector."""
    v = ti.Vector([ti.f32(0.0)] * a.n)
    for row in ti.static(range(a.n)):
        v[row] = a[ti.i32(row), k]
    return v


@ti.func
def set_column(a: ti.template(), k, v):
    """Write a vector, or into one line a number, into column ``k``."""
    if ti.static(a.n == 1):
        a[ti.i32(0), k] = v
    else:
        for row in ti.static(range(a.n)):
            a[ti.i32(row), k] = v[row]


@ti.func
def put_line(k, a: ti.template(), c, values: ti.template(), line: ti.template()):
    """Write the value that cell ``k`` of a strip, which begins at ``c``, has in a line of ``values``."""
    a[cell_of_strip(c, k)] = values[ti.i32(line), k]


@ti.func
def _evaluate(k, c, I, s, values: ti.template(), cell: ti.template(), operator):
    """``cell`` makes of ``c`` and ``k`` the index that the operator is given: ``lane``, or ``cell_of_strip`` without one."""
    set_column(values, k, operator.body(cell(c, k), position_of(I, k), s, *operator.args))


@ti.func
def write_plain_strip(c, I, m, s, out: ti.template(), width: ti.template(), value: ti.template(), args: ti.template()):
    """``write_cells`` for one strip, which has at most ``width`` cells."""
    values = ti.Matrix.zero(ti.f32, 1, width)
    along_strip(m, width, _evaluate, (c, I, s, values, cell_of_strip, Operator(value, args)))
    along_strip(m, width, put_line, (out, c, values, 0))


@traced
def components(*counts):
    """``(array, component)`` as ``write_strip`` takes them, for each ``(array, components of it)``."""
    return tuple((a, component) for a, count in counts for component in range(count))


@ti.func
def write_strip(c, I, m, s, n, out: ti.template(), width: ti.template(), operator):
    """The numbers that ``operator`` returns for each cell of a strip, each into its array.

    All are known before the first is written, so of an array that is written the operator may read its own cell.
    ``body(c, I, s, *args)`` returns one number, or a vector; ``out`` has ``(array, component)`` for each.
    """
    values = ti.Matrix.zero(ti.f32, ti.static(len(out)), width)
    along_strip(m, width, _evaluate, (c, I, s, values, lane, operator))
    for line in ti.static(range(len(out))):
        along_strip(m, width, put_line, (out[line][0], c + out[line][1] * cells_of(s, n), values, line))


@ti.func
def _strip_of_one(c, I, s, operator):
    operator.body(c, I, 1, s, *operator.args)


def strip_loops(shape: LoopShape, cells: SimpleNamespace) -> SimpleNamespace:
    """``each_strip``, ``…_in``, ``…_to``, ``write_cells``, ``write_strips``; ``width`` and ``long`` of their strips."""
    last, rows, each_cell_in = shape.dim - 1, shape.rows, cells.each_cell_in
    width, long = (STRIP, LONG_STRIP) if rows else (1, 1)

    @ti.func
    def strips_from(c, I, s, length, width: ti.template(), operator):
        """Of a row of this length that begins here all strips."""
        first = 0
        while first < length:
            J = I
            J[last] += first
            operator.body(address(c + first, ARRAY_BITS), J, ti.min(width, length - first), s, *operator.args)
            first += width

    @ti.func
    def each_strip_in(
        lower: ti.template(),
        upper: ti.template(),
        n: ti.template(),
        width: ti.template(),
        body: ti.template(),
        args: ti.template(),
    ):
        """``each_strip`` of the box of integer positions from ``lower`` to below ``upper``."""
        if ti.static(rows):
            first, begins = lower, upper
            length = begins[last] - first[last]
            begins[last] = ti.cast(first[last] + 1, ti.i32)
            each_cell_in(first, begins, n, strips_from, (length, width, Operator(body, args)))
        else:
            each_cell_in(lower, upper, n, _strip_of_one, (Operator(body, args),))

    @ti.func
    def each_strip_to(
        end: ti.template(), n: ti.template(), width: ti.template(), body: ti.template(), args: ti.template()
    ):
        """``each_strip`` of the box of integer positions from 1 to below ``end``."""
        each_strip_in(n * 0 + 1, end, n, width, body, args)

    @ti.func
    def each_strip(n: ti.template(), width: ti.template(), body: ti.template(), args: ti.template()):
        """Strips of at most ``width`` cells along the last axis, as ``body(c, I, m, s, *args)`` with m cells from c on.

        ``width`` is that of these loops, or their ``long`` one.
        """
        each_strip_to(n + 1, n, width, body, args)

    @ti.func
    def write_cells(n: ti.template(), out: ti.template(), value: ti.template(), args: ti.template()):
        """``out[c] = value(c, I, s, *args)`` for every cell; of ``out`` itself ``value`` may read the cell alone."""
        each_strip(n, long, write_plain_strip, (out, long, value, args))

    @ti.func
    def write_strips(n: ti.template(), out: ti.template(), value: ti.template(), args: ti.template()):
        """``write_cells`` of a ``value`` that returns a vector: ``out`` has ``(array, component)`` for each number."""
        each_strip(n, width, write_strip, (n, out, width, Operator(value, args)))

    made = (strips_from, each_strip, each_strip_in, each_strip_to, write_cells, write_strips)
    return namespace(*made, width=width, long=long)
