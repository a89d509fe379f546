"""Where anything is: tiles of rows that hold only 0, and whose paths come from nothing else, need not be looked at."""

import math

from ..._ti import ti, traced
from ...kernels import ARRAY_BITS, STRIP, address, cell_of_strip, flat

NEAR = 2
"""Cells around a strip outside of which nobody looks when no path is that long."""


@traced
def tiles_of_row(cells):
    """A row is a ghost, tiles of ``STRIP`` cells as strips have them, and what is left with the other ghost."""
    return cells // STRIP + 2


def mask_length(shape: tuple[int, ...]) -> int:
    """Length of the mask of a grid: the tiles, those of them with anything beside them, and whether a path is long."""
    *across, along = shape
    return 2 * math.prod(n + 2 for n in across) * tiles_of_row(along) + 1


@ti.func
def _tile_at(I, tile, n):
    """Place of a tile of the row of ``I`` among all."""
    row = I[0]
    for axis in ti.static(range(1, n.n - 1)):
        row = row * (n[axis] + 2) + I[axis]
    return row * tiles_of_row(n[n.n - 1]) + tile


@ti.func
def _tile_of_strip(I):
    return (I[I.n - 1] + STRIP - 1) // STRIP


@ti.func
def noted_at(I, mask: ti.template(), n):
    """Where a prediction says whether it has found anything: in the half that nobody looks at any more."""
    place = _tile_at(I, _tile_of_strip(I), n)
    if ti.static(n.n == 2):
        place += mask.shape[0] // 2
    return place


@ti.func
def mark_tile_at(c, I, s, a: ti.template(), offset, mask: ti.template(), n):
    """Note whether anything but 0 is within ``NEAR`` cells of a tile of this row.

    Which one stands in the place of the last coordinate.
    """
    last = ti.static(n.n - 1)
    first = ti.max(I[last] * STRIP - (STRIP - 1) - NEAR, 0)
    end = ti.min(I[last] * STRIP + 1 + NEAR, n[last] + 2)
    J = I
    J[last] = first
    start = address(offset + flat(J, s), ARRAY_BITS)
    bits = 0
    for k in range(end - first):
        bits |= ti.bit_cast(a[cell_of_strip(start, k)], ti.i32)
    mask[_tile_at(I, I[last], n)] = ti.cast((bits & ti.i32(0x7FFFFFFF)) != 0, ti.i32)


@ti.func
def _any_beside(place, along, step, last, mask: ti.template()):
    """Whether any of the rows is marked that lie within ``NEAR`` of the one at ``along``, ``step`` apart in ``mask``."""
    anything = ti.i32(0)
    for k in ti.static(range(-NEAR, NEAR + 1)):
        anything |= mask[place + (ti.min(ti.max(along + k, 0), last) - along) * step]
    return anything


@ti.func
def spread_mark_at(c, I, s, mask: ti.template(), n):
    """The same of the rows beside it in its plane."""
    place = _tile_at(I, I[2], n)
    mask[mask.shape[0] // 2 + place] = _any_beside(place, I[1], tiles_of_row(n[2]), n[1] + 1, mask)


@ti.func
def is_anything_near(I, mask: ti.template(), n):
    """Whether anything but 0 may be where the paths of a strip come from."""
    place, step = _tile_at(I, _tile_of_strip(I), n), tiles_of_row(n[n.n - 1])
    if ti.static(n.n == 3):
        place += mask.shape[0] // 2
        step *= n[1] + 2
    return mask[mask.shape[0] - 1] | _any_beside(place, I[0], step, n[0] + 1, mask)
