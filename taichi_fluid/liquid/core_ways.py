"""Where the core of a liquid goes in a step, and what velocity it brings along: the ways back of its cells, strip by strip."""

from .._ti import argument, loaded, ti
from ..kernels import (
    ARRAY_BITS,
    Array,
    IntArray,
    Operator,
    Strip,
    address,
    cell_of_strip,
    cells_of,
    column,
    fast_max,
    lane,
    position_of,
    put_line,
)
from ..operators.differences import centre_derivative_at
from ..operators.interpolation import corner_weight, inside_box, place_of, step_to_corner
from ..operators.sampling import VALUE, Component, bend_cubic, sample_strip, sample_strip_bent

SKIN = 0.49
"""How deep a cell lies at least, in cells, that is no part of the surface. Where particles are in disorder a cell far from
any surface may read as little."""
LEAST_SHARE = 1e-4
"""Part of what has come to the centre of a cell that is from the core, from which on it is in the liquid for sure."""

LEAST_SLOPE = 0.5
"""To what part of it a cell may be pressed on its way for that to be mended: what turns or is drawn out is not at all."""


@argument
class Depth:
    """How deep cells lie below a surface, and how many cells at least those of the core do."""

    phi: object
    dx: object
    band: object = 0

    @ti.func
    def is_deep(self, c):
        """Whether a cell is no part of the surface."""
        return self.phi[c] <= ti.f32(-SKIN) * self.dx


@argument
class Reached:
    """What the core has come into, and how far each of its cells has come, in cells."""

    reached: object
    shift: object


@ti.func
def _find_way(k, c, s, depth, way, ways: ti.template(), asked: ti.template()):
    """How far the velocity at a centre goes in a step, and whether that cell may have been come into from the core."""
    at, fastest = lane(c, k), ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        face = at + axis * cells_of(s, way.n)
        below, above = way.step * way.u[face], way.step * way.u[face + s[axis]]
        ways[ti.i32(axis), k] = ti.f32(0.5) * (below + above)
        fastest = fast_max(fastest, fast_max(ti.abs(below), ti.abs(above)))
    asked[ti.i32(0), k] = ti.cast(depth.is_deep(at) | (fastest > ti.cast(depth.band, ti.f32)), ti.i32)


@ti.func
def _is_asked(k, asked: ti.template(), any_asked: ti.template()):
    any_asked |= asked[ti.i32(0), k]


@ti.func
def _on_the_way(k, I, ways: ti.template(), component, way):
    """A part of that way from a centre, in the index space of a component."""
    q = inside_box(ti.cast(position_of(I, k), ti.f32) + way.part * column(ways, k), way.n)
    for axis in ti.static(range(way.n.n)):
        q[axis] += ti.select(axis == component, ti.f32(0.5), ti.f32(0.0))
    return q


@ti.func
def _put_way(k, out: Array, c, values: ti.template(), step):
    out[cell_of_strip(c, k)] = step * values[ti.i32(VALUE), k]


@ti.func
def _mend_way(k, shift: Array, c, s, way, ways: ti.template()):
    """A step of Newton's towards the way on which it goes that asks for its own velocity.

    What is asked for where the velocity at a centre leads is too far out wherever a flow turns, by 1.4 times the fourth power of the angle:
    a vortex drew in what was faster than it, and grew.
    """
    at, lacks, slope = lane(c, k), column(ways, k), ti.Matrix.identity(ti.f32, s.n)
    for i in ti.static(range(s.n)):
        lacks[i] = shift[at + i * cells_of(s, way.n)] - lacks[i]
        for j in ti.static(range(s.n)):
            slope[i, j] -= way.part * way.step * centre_derivative_at(way.u, at, i, j, way.n)
    if slope.determinant() > ti.f32(LEAST_SLOPE):
        lacks = slope.inverse() @ lacks
    for axis in ti.static(range(s.n)):
        shift[at + axis * cells_of(s, way.n)] = ways[ti.i32(axis), k] + lacks[axis]


@ti.func
def _comes_from_core(at, J, s, was: IntArray, shift: Array, n):
    """Whether any of what has come to a centre is from the core."""
    cells, q = cells_of(s, n), ti.cast(J, ti.f32)
    for axis in ti.static(range(s.n)):
        q[axis] += shift[at + axis * cells]
    place, cored = place_of(inside_box(q, n), n), ti.i32(0)
    for corner in ti.static(range(2**s.n)):
        cored += was[place.first + step_to_corner(corner, s)]
    comes = ti.i32(cored == ti.static(2**s.n))
    if cored > 0 and comes == 0:
        share = ti.f32(0.0)
        for corner in ti.static(range(2**s.n)):
            share += corner_weight(place.fraction, corner) * was[place.first + step_to_corner(corner, s)]
        comes = ti.i32(share > ti.f32(LEAST_SHARE))
    return comes


@ti.func
def reach_strip(c, I, m, s, core, was: IntArray, depth, given, width: ti.template()):
    """Mark what the core has come into: nothing that was not deep before, but where it goes farther than the band is wide."""
    strip, way, any_asked = Strip(c, I, m, width), loaded(given), ti.i32(0)
    ways, asked, values = strip.matrix(s.n), strip.integers(1), strip.matrix(1)
    strip.each(_find_way, (c, s, depth, way, ways, asked))
    strip.each(_is_asked, (asked, any_asked))
    if any_asked == 1:
        # Not static: what is sampled is much to compile.
        for axis in range(s.n):
            place = Operator(_on_the_way, (I, ways, axis, way))
            offset = address(axis * cells_of(s, way.n), ARRAY_BITS)
            sample_strip(strip, Component(given.u, offset), place, values, way.n)
            strip.each(_put_way, (core.shift, c + offset, values, way.step))
        strip.each(_mend_way, (core.shift, c, s, way, ways))
    for k in range(m):
        at, reached = cell_of_strip(c, k), ti.i32(0)
        if asked[ti.i32(0), k] == 1:
            reached = _comes_from_core(at, position_of(I, k), s, was, core.shift, way.n)
        core.reached[at] = reached


@ti.func
def _where_from(k, c, I, s, component, core, n):
    """Where what comes to a face was, in the index space of its component: half a cell beside the ways of both centres."""
    at, q, step = lane(c, k), ti.cast(position_of(I, k), ti.f32), s[0]
    for axis in ti.static(range(1, s.n)):
        step = ti.select(axis == component, s[axis], step)
    step = address(step, ARRAY_BITS - 1)
    here, below = core.reached[at] == 1, core.reached[at - step] == 1
    part = ti.select(here & below, ti.f32(0.5), ti.f32(1.0))
    for axis in ti.static(range(s.n)):
        # What is not reached has no way that is known.
        way = axis * cells_of(s, n)
        upper = ti.select(here, core.shift[at + way], ti.f32(0.0))
        lower = ti.select(below, core.shift[at + (way - step)], ti.f32(0.0))
        q[axis] += part * (upper + lower) - ti.select(axis == component, ti.f32(0.5), ti.f32(0.0))
    q = inside_box(q, n)
    for axis in ti.static(range(s.n)):
        q[axis] += ti.select(axis == component, ti.f32(0.5), ti.f32(0.0))
    return q


@ti.func
def _is_reached(k, c, s, reached: IntArray, found: ti.template()):
    at = lane(c, k)
    found |= reached[at]
    for axis in ti.static(range(s.n)):
        found |= reached[at - s[axis]]


@ti.func
def carry_strip(c, I, m, s, u: Array, out: Array, core, n, width: ti.template()):
    """The velocity from where the core was; on the other faces of a strip that has some of the core anything."""
    found, strip = ti.i32(0), Strip(c, I, m, width)
    strip.each(_is_reached, (c, s, core.reached, found))
    if found == 1:
        values = strip.matrix(1)
        for axis in range(s.n):
            place, offset = Operator(_where_from, (c, I, s, axis, core, n)), address(axis * cells_of(s, n), ARRAY_BITS)
            sample_strip_bent(strip, Component(u, offset), place, values, n, axis, bend_cubic)
            strip.each(put_line, (out, c + offset, values, 0))
