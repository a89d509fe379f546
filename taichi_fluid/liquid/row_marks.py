"""Rows of three cells beside a liquid: whether any has particles, or few, or is in the core; and the mirrors that cells see them in."""

from .._ti import argument, ti
from ..kernels import IntArray, along_strip, flat, lane, put_line
from .sides import WRAPS

DEEP = {2: 4, 3: 3}
"""A cell is deep in the liquid if all around it, and itself, hold so many of the nine or eight particles of a full one."""
SOME, FEW, SURE = 1, 2, 4
"""Marks of a row of three cells: that any has particles, that any has fewer than ``DEEP``, that any is in the core."""


@argument
class Mirrors:
    """Walls and solids, beyond which particles are seen again: what sides are (``sides.ways_out``), and the solids where ``given``.

    Beyond a periodic side are those of the other one.
    """

    closed: object
    solids: object
    given: object

    @ti.func
    def cell(self, J, n):
        """Of what a position beyond sides is the image, and whether of anything."""
        image, there = J, ti.i32(1)
        for axis in ti.static(range(n.n)):
            if J[axis] < 1:
                image[axis] = ti.select(self.wraps(axis), n[axis], 1)
                there = there * ti.min(self.closed[2 * axis], 1)
            elif J[axis] > n[axis]:
                image[axis] = ti.select(self.wraps(axis), 1, n[axis])
                there = there * ti.min(self.closed[2 * axis + 1], 1)
        return image, there

    @ti.func
    def wraps(self, axis: ti.template()):
        """Whether an axis is periodic."""
        wraps = False
        if ti.static(self.solids.wraps):
            wraps = self.closed[2 * axis] == WRAPS
        return wraps

    @ti.func
    def seen(self, x, J, n):
        """A particle of what cell ``J`` is the image of, seen in that cell."""
        y = x
        for axis in ti.static(range(n.n)):
            y[axis] = self._moved(x, J, n, axis, ti.f32(1.0))
        return y

    @ti.func
    def seen_from(self, x, J, n):
        """A place, seen from what cell ``J`` is the image of: as far from particles there as they are from it, seen in that cell."""
        y = x
        for axis in ti.static(range(n.n)):
            y[axis] = self._moved(x, J, n, axis, ti.f32(-1.0))
        return y

    @ti.func
    def _moved(self, x, J, n, axis: ti.template(), sign):
        """Along an axis what is seen beyond its sides: mirrored, or moved by a box, forwards or back."""
        value, length, wraps = x[axis], ti.cast(n[axis], ti.f32), self.wraps(axis)
        if J[axis] < 1:
            value = ti.select(wraps, value - sign * length, -value)
        elif J[axis] > n[axis]:
            value = ti.select(wraps, value + sign * length, ti.f32(2.0) * length - value)
        return value

    @ti.func
    def turns(self, J, n, axis: ti.template()):
        """Whether what is seen in cell ``J`` is so in a mirror across an axis."""
        beyond = (J[axis] < 1) | (J[axis] > n[axis])
        return ti.cast(beyond & (not self.wraps(axis)), ti.i32)


@ti.func
def _mark_of(count, n: ti.template()):
    """What so many particles say of a cell."""
    return ti.select(count > 0, SOME, 0) | ti.select(count < ti.static(DEEP[n]), FEW, 0)


@ti.func
def _mark_at(c, I, s, cloud, marks: IntArray, core: IntArray, mirrors, cored: ti.template()):
    """Say of three cells in a row whether any has particles (``SOME``), or few (``FEW``), or is in the core (``SURE``)."""
    mark, last = ti.i32(0), ti.static(s.n - 1)
    for step in ti.static(range(-1, 2)):
        J = I
        J[last] += step
        image, there = mirrors.cell(J, mirrors.solids.n)
        cell = ti.cast(flat(image, s), ti.i32)
        mark |= _mark_of(there * (cloud.starts[cell + 1] - cloud.starts[cell]), s.n)
        if ti.static(cored):
            mark |= ti.select(core[cell] == 1, SURE, 0)
    marks[c] = mark


@ti.func
def _mark_within(k, c, dim: ti.template(), cloud, core: IntArray, marked: ti.template(), cored: ti.template()):
    """The same of a cell of a strip, where no side is beside it."""
    mark, at = ti.i32(0), lane(c, k)
    for step in ti.static(range(-1, 2)):
        mark |= _mark_of(cloud.starts[at + (step + 1)] - cloud.starts[at + step], dim)
        if ti.static(cored):
            mark |= ti.select(core[at + step] == 1, SURE, 0)
    marked[ti.i32(0), k] = mark


@ti.func
def mark_strip(c, I, m, s, cloud, marks: IntArray, core: IntArray, mirrors, shape: ti.template()):
    """Say of each cell of a strip what it and the two beside it in its row are; ``shape`` says whether there is a core, and the width."""
    cored, width = ti.static(shape)
    last, within, n = ti.static(s.n - 1), ti.i32(1), mirrors.solids.n
    for axis in ti.static(range(s.n - 1)):
        within = within & ti.cast((I[axis] >= 1) & (I[axis] <= n[axis]), ti.i32)
    if within == 1:
        marked = ti.Matrix.zero(ti.i32, 1, width)
        along_strip(m, width, _mark_within, (c, s.n, cloud, core, marked, cored))
        along_strip(m, width, put_line, (marks, c, marked, 0))
    for k in range(m):
        J = I
        J[last] += k
        if within == 0 or J[last] < 2 or J[last] >= n[last]:
            _mark_at(c + k, J, s, cloud, marks, core, mirrors, cored)


@ti.func
def marked_around(c, s, marks: IntArray):
    """What the marks of the rows around, and of the own one, say together."""
    mark = ti.i32(0)
    for around in ti.static(range(3 ** (s.n - 1))):
        there = c
        for axis in ti.static(range(s.n - 1)):
            there += (around // 3**axis % 3 - 1) * s[axis]
        mark |= marks[there]
    return mark
