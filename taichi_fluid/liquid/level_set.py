"""A level set that goes along with a liquid: where the surface that was there before a step has come to.

What particles show of a surface is off by a tenth of a cell wherever they are in disorder, and that drives a liquid at rest
about. So the surface is the one that there was, gone along with the velocity, for as long as it lies near enough to what
they show: after Enright, Fedkiw, Ferziger, Mitchell (2002), who correct a level set by particles too.
"""

from collections.abc import Sequence

from .._ti import argument, loaded, ti
from ..boundaries.solids.shapes import beyond_sides
from ..boundaries.walls import Walls
from ..grid import Grid, Scratch
from ..kernels import (
    Array,
    Operator,
    Strip,
    cell_of_strip,
    cells_of,
    column,
    copy_values,
    flat,
    float_vector,
    kernel_family,
    lane,
    neighbour,
    position_of,
    put_line,
)
from ..operators.ghosts import wrap_pair
from ..operators.interpolation import mean_of_corners
from ..operators.sampling import VALUE, Component, bend_limited, sample_strip_bent, sample_strip_velocity
from ..operators.shapes import SHAPES
from .motion import Way
from .sides import Seams

DEEPEST, HIGHEST = -0.98, 1.1
"""Between which distances, in cells, what particles show of one is right."""
WIDE = 3.0
"""Cells beyond which no distance is known: a way of one, and what a cubic reads beyond that."""
KNOWN = 0.99
"""The part of that which is less than what stands where no distance is known."""
MOST_OFF, MOST_OFF_AT_SOLIDS = {2: 0.15, 3: 0.45}, 0.6
"""By how many cells a surface may be off what particles show of it. In disorder that is off by a tenth, in 3D, with fewer rows to a cell,
by up to a third, and where a surface meets a solid aslant, which has particles to one side alone, by more. Where it is held, waves rise."""

MOST_BENT = 1.25
"""The most that a slope is off 1 in a step, as a factor, by what is a flow: more is a film, or where two surfaces meet."""

SEEN = 0.6
"""Cells below a surface up to which liquid has air around it, however aslant that is and however a flow has stretched distances."""

TRUSTED = 0.9
"""Cells from a surface up to which its distance says something of its slope."""


@ti.func
def is_sure(distance):
    """Whether a distance, in cells, is one that particles show."""
    return (distance > ti.f32(DEEPEST)) & (distance < ti.f32(HIGHEST))


@ti.func
def _trust_in(phi: Array, c, J, s, mirrors):
    """How much the distance of a cell says of its slope: near the end of those that are known they are rough, in solids none is."""
    trust = ti.min(
        ti.max((ti.f32(TRUSTED) - ti.abs(phi[c]) / mirrors.solids.dx) * ti.f32(10.0), ti.f32(0.0)), ti.f32(1.0)
    )
    if ti.static(mirrors.given):
        image, _ = mirrors.cell(J, mirrors.solids.n)
        trust *= ti.cast(mean_of_corners(mirrors.solids.distance, flat(image, s), s) > 0, ti.f32)
    return trust


@ti.func
def _slope_across(c, other, I, J, s, phi: Array, mirrors, axis: ti.template()):
    """The slope of a distance in the middle between a cell and an ``other`` that the surface passes between; 1 as far as it is not known."""
    trust = _trust_in(phi, c, I, s, mirrors) * _trust_in(phi, other, J, s, mirrors)
    square = (phi[other] - phi[c]) ** 2
    for k in ti.static(range(s.n)):
        if ti.static(k != axis):
            # From the one to one side and from the other to the other, or at a side of the box to the same: the middle of both is theirs.
            total, parts, wraps = ti.f32(0.0), ti.f32(0.0), mirrors.wraps(k)
            for way in ti.static((-1, 1)):
                if wraps or I[k] != (mirrors.solids.n[k] if ti.static(way > 0) else ti.i32(1)):
                    first = I[k] == (ti.i32(1) if ti.static(way > 0) else mirrors.solids.n[k])
                    back = ti.select(first and not wraps, way, -way)
                    near, far = c + way * s[k], other + back * s[k]
                    beside, opposite = I, J
                    beside[k] += way
                    opposite[k] += back
                    part = _trust_in(phi, near, beside, s, mirrors) * _trust_in(phi, far, opposite, s, mirrors)
                    total += part * ti.f32(0.5) * (way * (phi[near] - phi[c]) + back * (phi[far] - phi[other]))
                    parts += part
            trust *= ti.min(parts, ti.f32(1.0))
            square += (total / ti.max(parts, ti.f32(1e-6))) ** 2
    slope = ti.min(ti.max(ti.sqrt(square) / mirrors.solids.dx, ti.f32(1.0 / MOST_BENT)), ti.f32(MOST_BENT))
    return ti.f32(1.0) + trust * (slope - ti.f32(1.0))


@ti.func
def straightened(c, I, s, phi: Array, mirrors):
    """The distance of a cell to a surface that cuts the way to one beside it, of what a flow has made of distances.

    Where a surface rises what lies above it rises faster, so that what was carried is no distance any more: it is taken over
    its slope. As the slope is that where the surface is, both cells have the same, and the surface stays where it is. Ghosts are
    filled: beyond walls they are mirrors, through which no surface passes.
    """
    parts, total = ti.f32(0.0), ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        for end in ti.static(range(2)):
            other = c + (s[axis] if ti.static(end) else -s[axis])
            if phi[other] * phi[c] < 0:
                # The nearest counts by far the most.
                part, J = ((phi[c] - phi[other]) / phi[c]) ** 2, I
                J[axis] += 2 * end - 1
                total += part * _slope_across(c, other, I, J, s, phi, mirrors, axis)
                parts += part
    return phi[c] * (parts / total if parts > 0 else ti.f32(1.0))


@ti.func
def _distance_from(near, far):
    """Distance, in cells, by what it is one cell nearer along each axis: of a plane, by what is near enough to say something.

    The eikonal equation, upwind (Rouy, Tourin 1992).
    """
    rest, total, square, found = near, ti.f32(0.0), ti.f32(0.0), far
    for last in ti.static(range(near.n - 1, 0, -1)):
        for k in ti.static(range(last)):
            rest[k], rest[k + 1] = ti.min(rest[k], rest[k + 1]), ti.max(rest[k], rest[k + 1])
    for k in ti.static(range(near.n)):
        total, square = total + rest[k], square + rest[k] * rest[k]
        root = ti.sqrt(ti.max(total * total - ti.f32(k + 1.0) * (square - ti.f32(1.0)), ti.f32(0.0)))
        found = ti.select(rest[k] < found, (total + root) * ti.f32(1.0 / (k + 1)), found)
    return found


@ti.func
def _is_known(k, c, s, phi: Array, low, high, found: ti.template()):
    """Whether a cell or one beside it has a distance between two."""
    at = lane(c, k)
    found |= ti.cast((phi[at] > low) & (phi[at] < high), ti.i32)
    for axis in ti.static(range(s.n)):
        below, above = phi[at - s[axis]], phi[at + s[axis]]
        found |= ti.cast(((below > low) & (below < high)) | ((above > low) & (above < high)), ti.i32)


@ti.func
def _put_far(k, c, phi: Array, out: Array, far):
    at = cell_of_strip(c, k)
    out[at] = ti.select(phi[at] < 0, -far, far)


@argument
class _Known:
    """Between which distances they are sure, between which ones are known so far, all in cells, and in how many of them they are told."""

    sure_low: object
    sure_high: object
    low: object
    high: object
    far: object
    scale: object


@ti.func
def _touches_air(I, s, phi: Array):
    """Whether there is air around a cell, across corners too."""
    touches = ti.i32(0)
    for around in range(ti.static(3**s.n)):
        touches |= ti.cast(phi[flat(neighbour(I, around), s)] >= 0, ti.i32)
    return touches == 1


@ti.func
def _widen(k, c, I, s, phi: Array, known, values: ti.template()):
    """A distance that is sure; that of a cell beside such as are known, by the eikonal equation; that of others is far.

    Liquid that is said to lie near a surface and has no air around it lies deep: where a cavity has closed, what was known of its
    surface would stay.
    """
    at = lane(c, k)
    distance = phi[at] * known.scale
    sign, far = ti.select(distance < 0, ti.f32(-1.0), ti.f32(1.0)), ti.f32(2.0) * known.far
    near = ti.Vector([far for _ in ti.static(range(s.n))])
    for axis in ti.static(range(s.n)):
        for there in ti.static((-1, 1)):
            value = phi[at + there * s[axis]] * known.scale
            is_known = (value > known.low) & (value < known.high)
            near[axis] = ti.min(near[axis], ti.select(is_known, sign * value, far))
    least = ti.select(distance < 0, -known.sure_low, known.sure_high)
    is_sure = (distance > known.sure_low) & (distance < known.sure_high)
    if distance > ti.f32(-SEEN) and distance < 0 and near.min() >= 0:
        if not _touches_air(position_of(I, k), s, phi):
            distance = -known.far
    values[ti.i32(0), k] = ti.select(is_sure, distance, sign * ti.max(_distance_from(near, known.far), least))


@ti.func
def _widen_strip(c, I, m, s, phi: Array, out: Array, known, width: ti.template()):
    strip, found = Strip(c, I, m, width), ti.i32(0)
    strip.each(_is_known, (c, s, phi, known.low / known.scale, known.high / known.scale, found))
    if found == 0:
        strip.each(_put_far, (c, phi, out, known.far))
    else:
        values = strip.matrix(1)
        strip.each(_widen, (c, I, s, phi, known, values))
        strip.each(put_line, (out, c, values, 0))


@ti.func
def _go_straight_on(c, I, s, phi: Array, n, wrap, axis: ti.template()):
    """Beyond a side a plane goes on as a plane."""
    if wrap[axis] == 1:
        wrap_pair(phi, c, s, n, axis)
    else:
        upper = c + (n[axis] + 1) * s[axis]
        phi[c] = ti.f32(2.0) * phi[c + s[axis]] - phi[c + 2 * s[axis]]
        phi[upper] = ti.f32(2.0) * phi[upper - s[axis]] - phi[upper - 2 * s[axis]]


@ti.func
def _find_way(k, c, s, way, ways: ti.template()):
    """How far the velocity at a centre goes in a step."""
    at = lane(c, k)
    for axis in ti.static(range(s.n)):
        face = at + axis * cells_of(s, way.n)
        ways[ti.i32(axis), k] = ti.f32(0.5) * way.step * (way.u[face] + way.u[face + s[axis]])


@ti.func
def _on_the_way(k, I, ways: ti.template(), way):
    """A part of that way from a centre, across seams too."""
    return way.within(ti.cast(position_of(I, k), ti.f32) + way.part * column(ways, k))


@ti.func
def _where_from(k, I, velocity: ti.template(), way):
    return way.within(ti.cast(position_of(I, k), ti.f32) + way.step * column(velocity, k))


@ti.func
def _put_distance(k, out: Array, c, values: ti.template(), dx):
    out[cell_of_strip(c, k)] = dx * values[ti.i32(VALUE), k]


@ti.func
def _go_strip(c, I, m, s, phi: Array, out: Array, given, dx, width: ti.template()):
    strip, way, found = Strip(c, I, m, width), loaded(given), ti.i32(0)
    strip.each(_is_known, (c, s, phi, ti.f32(-KNOWN * WIDE), ti.f32(KNOWN * WIDE), found))
    if found == 0:
        strip.each(_put_far, (c, phi, out, ti.f32(WIDE) * dx))
    else:
        ways, velocity, values = strip.matrix(s.n), strip.matrix(s.n), strip.matrix(1)
        strip.each(_find_way, (c, s, way, ways))
        sample_strip_velocity(strip, given.u, Operator(_on_the_way, (I, ways, way)), velocity, way.n, True)
        place = Operator(_where_from, (I, velocity, way))
        sample_strip_bent(
            strip, Component(phi, ti.i32(0)), place, values, way.n, -1, bend_limited, way.period, way.wraps
        )
        strip.each(_put_distance, (out, c, values, dx))


@ti.func
def _join_at(c, I, s, phi: Array, distance_of: ti.template(), shape: ti.template(), ground):
    a, b, radius = ti.static(shape)
    origin, dx = ground
    phi[c] = ti.min(phi[c], distance_of(origin + (ti.cast(I, ti.f32) - ti.f32(0.5)) * dx, a, b, radius))


@kernel_family
def level_set_kernels(loops, wraps):
    Index, Point, width = loops.IntVector, loops.FloatVector, loops.width

    @ti.kernel
    def widen(
        phi: Array,
        out: Array,
        sure_low: ti.f32,
        sure_high: ti.f32,
        low: ti.f32,
        high: ti.f32,
        far: ti.f32,
        scale: ti.f32,
        n: Index,
        wrap: Index,
    ):
        known = _Known(sure_low, sure_high, low, high, far, scale)
        loops.each_strip(n, width, _widen_strip, (phi, out, known, width))
        loops.each_side(n, _go_straight_on, (out, n, wrap))

    @ti.kernel
    def go(phi: Array, out: Array, velocity: Array, n: Index, period: Point, step: ti.f32, dx: ti.f32, part: ti.f32):
        way = Way(velocity, n, step, period=period, wraps=wraps, part=part)
        loops.each_strip(n, width, _go_strip, (phi, out, way, dx, width))

    return widen, go


@kernel_family
def joining_kernels(loops, shape):
    Index, Point, distance_of = loops.IntVector, loops.FloatVector, SHAPES[shape]

    @ti.kernel
    def join(phi: Array, n: Index, a: Point, b: Point, radius: ti.f32, origin: Point, dx: ti.f32):
        loops.each_cell(n, _join_at, (phi, distance_of, (a, b, radius), (origin, dx)))

    return (join,)


def continue_distance(grid: Grid, phi, wide, wider, cells: int, sure: float, seams: Seams | None = None):
    """A distance ``phi``, m, continued to some ``cells``, an odd number, from where it is within ``sure`` of a cell: in cells, in ``wider``.

    The eikonal equation is solved anew in each pass, as what a cell was found by may itself be found nearer then. ``wide`` is worked in.
    It goes on across ``seams`` if they are given.
    """
    wrap, known = (Seams(grid) if seams is None else seams).wrap, KNOWN * cells
    kernels = level_set_kernels(grid.costly_loops, False)
    kernels.widen(phi, wide, -sure, sure, -sure, sure, cells, 1 / grid.dx, grid.n, wrap)
    for _ in range(cells - 2):
        kernels.widen(wide, wider, -sure, sure, -known, known, cells, 1.0, grid.n, wrap)
        wide, wider = wider, wide
    return wide


class LevelSet:
    """The surface of a liquid on one grid as it was, gone along with the velocity.

    Attributes:
        phi: Distance to it at centres, m, negative in the liquid; right where ``is_sure`` says so, if there is a surface at all.

    Args:
        grid: The grid.
        scratch: Arrays to work in.
        walls: Its sides; left out, no axis is periodic.
    """

    def __init__(self, grid: Grid, scratch: Scratch, walls: Walls | None = None):
        self.grid, self.phi, self._scratch, self._seams = grid, grid.array(), scratch, Seams(grid, walls)
        self._kernels = level_set_kernels(grid.costly_loops, self._seams.any)

    def go(self, phi, velocity, dt: float, part: float) -> None:
        """Be where a surface has come to after ``dt`` seconds by a velocity, m/s, ghosts filled, that is asked for a ``part`` of the way back."""
        grid, period = self.grid, self._seams.period
        self._kernels.go(self.widened(phi), self.phi, velocity, grid.n, period, -dt / grid.dx, grid.dx, part)

    def widened(self, phi):
        """The distance to a surface ``phi`` continued to two cells, and ``WIDE`` beyond, with ghosts, in cells: ``scratch.first``."""
        grid, wide, sure = self.grid, self._scratch.first, (DEEPEST, HIGHEST)
        self._kernels.widen(phi, wide, *sure, *sure, WIDE, 1 / grid.dx, grid.n, self._seams.wrap)
        return wide

    def continued(self, phi, cells: int, sure: float):
        """The same by ``continue_distance``, in ``scratch.vector``; ``scratch.first`` is worked in."""
        scratch = self._scratch
        return continue_distance(self.grid, phi, scratch.first, scratch.vector, cells, sure, self._seams)

    def stay(self, phi) -> None:
        """Be where a surface is."""
        copy_values(phi, self.phi)

    def join(self, phi, shape: str, a: Sequence[float], b: Sequence[float], radius: float) -> None:
        """Let what is below a surface be there, and a shape of ``operators.shapes``; ghosts are left.

        Where a shape ends flat at a side of the grid it goes on beyond it: there it has no surface.
        """
        grid, point = self.grid, float_vector(self.grid.dim)
        start, end = beyond_sides(grid, shape, a, b, within=0.5, by=WIDE, periodic=list(self._seams.wrap))
        kernels = joining_kernels(grid.loops, shape)
        kernels.join(phi, grid.n, point(*start), point(*end), radius, point(*grid.origin), grid.dx)
