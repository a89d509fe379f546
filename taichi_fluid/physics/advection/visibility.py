"""What solids hide: through closed faces nothing moves, and nothing is seen.

A displacement that a solid cuts is marked, so that nothing is corrected along it: ``marked``, ``is_free``,
``without_mark``.
"""

from ..._ti import argument, ti, traced
from ...kernels import cells_of, fast_max, fast_min, flat, strides_of
from ...operators.sampling import LEAST, MOST, VALUE
from ...operators.vectors import length

_CUT = 4096.0
"""Added to a displacement that a solid cuts; the rest is good to 5e-4 cells."""

_FARTHEST = 0.1 * _CUT
"""Cells that a path may lead where there are solids: of the mean of four, what is no multiple of ``_CUT`` / 4 is left."""

_LOOKS_PER_CELL = 2.0
"""How often a path near a solid looks which cell it is in, so that it never steps over one."""

_CLEAR = 3.5
"""Distance in cells from the lower corner of a cell from which no solid is in it or in any of the cells around it."""


@argument
class Visibility:
    """Open fractions of faces and distance to the nearest solid, of which ``inv_dx`` makes cells; anything if ``there`` is none."""

    open: object
    distance: object
    inv_dx: object
    there: bool


@traced
def marked(way):
    """A displacement that a solid cuts."""
    return way + ti.cast(_CUT, ti.f32)


@traced
def is_free(way):
    """Whether no solid cuts a displacement along one axis, nor two of the four of which it is the mean."""
    return way < ti.cast(_CUT / 2, ti.f32)


@ti.func
def without_mark(way):
    """A displacement, or the mean of four, without marks."""
    return way - ti.f32(_CUT / 4) * ti.floor(way * ti.f32(4 / _CUT) + ti.f32(0.5))


@ti.func
def within_reach(way):
    """A displacement, no longer than a marked one may be."""
    return fast_min(fast_max(way, ti.f32(-_FARTHEST)), ti.f32(_FARTHEST))


@ti.func
def _is_seen(H, P, open: ti.template(), s, cells):
    """Whether cell ``P`` is reached from its neighbour ``H`` through open faces, along the axes in one order or the other."""
    seen = 0
    for backwards in ti.static(range(2)):
        J = H
        clear = 1
        for k in ti.static(range(s.n)):
            axis = ti.static(s.n - 1 - k if backwards else k)
            if P[axis] != J[axis]:
                face = flat(J, s) + axis * cells
                if P[axis] > J[axis]:
                    face += s[axis]
                if open[face] == 0:
                    clear = 0
                J[axis] = P[axis]
        seen = ti.max(seen, clear)
    return seen


@ti.func
def open_part(q, end, visibility, n, period):
    """How much of the straight way from ``q`` to ``end`` leads through open faces, 0 to 1."""
    free = ti.f32(1.0)
    s = strides_of(n)
    reach = length(end - q)
    H = ti.cast(ti.floor(q + ti.f32(0.5)), ti.i32)
    for axis in ti.static(range(n.n)):
        # From a face it begins in the cell that it comes out of, whichever that is.
        if end[axis] > q[axis] and ti.cast(H[axis], ti.f32) - ti.f32(0.5) == q[axis]:
            H[axis] -= 1
    if visibility.distance[flat(ti.min(ti.max(H, 1), n), s)] * visibility.inv_dx < reach + ti.f32(_CLEAR):
        home, steps = H, ti.cast(ti.ceil(reach * ti.f32(_LOOKS_PER_CELL)), ti.i32)
        for k in range(1, steps + 1):
            part = ti.cast(k, ti.f32) / ti.cast(steps, ti.f32)
            P = ti.cast(ti.floor(q + part * (end - q) + ti.f32(0.5)), ti.i32)
            there = home + P - H
            inside = 1
            for axis in ti.static(range(n.n)):
                # Beyond a side of the box there is nothing to run into.
                if period[axis] == 0 and (there[axis] < 1 or there[axis] > n[axis]):
                    inside = 0
            if inside == 1:
                # Taichi evaluates all of a condition, and outside the box there are no faces to look at.
                if free == 1:
                    if _is_seen(home, there, visibility.open, s, cells_of(s, n)) == 0:
                        free = ti.cast(k - 1, ti.f32) / ti.cast(steps, ti.f32)
                H = P
                home = there
                for axis in ti.static(range(n.n)):
                    if home[axis] < 1:
                        home[axis] += n[axis]
                    if home[axis] > n[axis]:
                        home[axis] -= n[axis]
    return free


@ti.func
def blend_visible(k, a, place, found: ti.template(), n, visibility):
    """Near solids only cells count that can be seen from the one that holds the point: nothing comes through a wall."""
    s, q = strides_of(n), place.body(k, *place.args)
    home = ti.min(ti.max(ti.cast(q + ti.f32(0.5), ti.i32), 1), n)
    if visibility.distance[flat(home, s)] * visibility.inv_dx < ti.f32(_CLEAR):
        here = a.array[a.offset + flat(home, s)]
        total, weights = here * ti.f32(0.0), here * ti.f32(0.0)
        low, high = here, here
        for corner in range(2**n.n):
            P = home
            w = ti.f32(1.0)
            for axis in ti.static(range(n.n)):
                base = ti.min(ti.cast(q[axis], ti.i32), n[axis])
                f = q[axis] - ti.cast(base, ti.f32)
                if (corner >> axis) & 1:
                    P[axis] = base + 1
                    w *= f
                else:
                    P[axis] = base
                    w *= ti.f32(1.0) - f
            if _is_seen(home, P, visibility.open, s, cells_of(s, n)) == 1:
                there = a.array[a.offset + flat(P, s)]
                total += w * there
                weights += w
                low, high = fast_min(low, there), fast_max(high, there)
        if weights > ti.f32(1e-6):
            here = total / weights
        found[ti.i32(VALUE), k] = here
        if ti.static(found.n > 1):
            found[ti.i32(LEAST), k] = low
            found[ti.i32(MOST), k] = high
