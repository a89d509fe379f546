"""Particles on their way through a velocity, by its midpoint or straight on, within the box and outside of solids."""

from .._ti import argument, loaded, ti
from ..boundaries.solids import CutCells, Solids
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import (
    ARRAY_BITS,
    Array,
    IntArray,
    Operator,
    Strip,
    address,
    cell_of_strip,
    column,
    flat,
    int_vector,
    kernel_family,
    strides_of,
)
from ..operators.interpolation import has_ends, inside_box, sample, sample_velocity, step_to_corner, wrapped
from ..operators.sampling import sample_strip_velocity
from ..operators.vectors import is_finite, length
from .particles import LOST, NOWHERE, Particles, set_vector, vector_at, zero_of
from .sides import Seams, exits_of

CLEARANCE = 1e-3
"""How far from a wall or a solid a particle stays, in cells."""
REBOUND = 0.02
"""How much farther it is if it ran into a closed side, at most: as far as it would have come beyond. Right at a lid it would hang for ever."""
IN_CELL = {2: 0.71, 3: 0.87}
"""How far from its middle a place in a cell is at the most, in cells."""
STRIDE = 0.25
"""The longest part of a way beside solids of which only the end is looked at, in cells: no wall that a grid shows is thinner."""


@argument
class Way:
    """What particles move through: the velocity ``u`` for ``step`` = dt / dx.

    Which sides let all of them ``leave``, and of others which ghosts are ``exits``: see ``exits_of``. Whether any axis ``wraps``, and
    of each the ``period``, in cells, or 0. ``part`` of a way on the velocity is asked for by which it goes.
    """

    u: object
    n: object
    step: object
    leave: object = None
    exits: object = None
    period: object = None
    wraps: bool = False
    part: object = None

    @ti.func
    def within(self, q):
        """A place of the index space of cells brought back into the box, or to where it is nearest."""
        return inside_box(wrapped(q, zero_of(self.n) + ti.f32(0.5), self.period, self.wraps), self.n)

    @ti.func
    def shift_at(self, x):
        """How far the velocity at a position takes it in the whole step, in cells."""
        return self.step * sample_velocity(self.u, self.within(x + ti.f32(0.5)), self.n)

    @ti.func
    def shift_of(self, x):
        """The same by the velocity that is a ``part`` of that way on."""
        return self.shift_at(x + self.part * self.shift_at(x))

    @ti.func
    def kept(self, goal):
        """``goal`` off closed sides that it lies beyond; nowhere, if it has left through an open one, and lost, if it is not finite."""
        x = goal
        if x[0] > NOWHERE:
            x = wrapped(goal, zero_of(self.n), self.period, self.wraps)
        y = x
        for axis in ti.static(range(x.n)):
            top = ti.cast(self.n[axis], ti.f32)
            if (x[axis] < 0 and self.leave[2 * axis] == 1) or (x[axis] > top and self.leave[2 * axis + 1] == 1):
                y[0] = ti.f32(NOWHERE)
            elif (ti.static(axis > 0) or y[0] > ti.f32(NOWHERE)) and self.ends(axis):
                least, most = ti.f32(CLEARANCE), top - ti.f32(CLEARANCE)
                y[axis] = ti.max(y[axis], ti.min(2 * least - x[axis], least + ti.f32(REBOUND)))
                y[axis] = ti.min(y[axis], ti.max(2 * most - x[axis], most - ti.f32(REBOUND)))
        if not is_finite(x.sum()):
            y[0] = ti.f32(LOST)
        return y

    @ti.func
    def ends(self, axis: ti.template()):
        """Whether an axis is not periodic."""
        return has_ends(axis, self.period, self.wraps)

    @ti.func
    def leaves(self, x):
        """Whether what comes to ``x`` leaves the box through a part of a side; see ``exits_of``."""
        leaves = ti.i32(0)
        if self.exits.shape[0] > 1:
            I = ti.min(ti.max(ti.cast(ti.floor(x), ti.i32) + 1, 0), self.n + 1)
            leaves = self.exits[flat(I, strides_of(self.n))]
        return leaves

    @ti.func
    def stops(self, x, axis: ti.template()):
        """Whether a closed side stops along an axis what is on its way to ``x``."""
        below = (x[axis] < CLEARANCE) & (self.leave[2 * axis] == 0)
        above = (x[axis] > ti.cast(self.n[axis], ti.f32) - CLEARANCE) & (self.leave[2 * axis + 1] == 0)
        return ti.cast(below | above, ti.i32) * self.ends(axis)


@ti.func
def distance_at(solids, x):
    """Distance to the nearest solid at a position, in cells.

    What stands on a side of the box has its own end there, below which nobody is to creep: within half a cell of a side
    the distance is that of half a cell.
    """
    return sample(solids.distance, 0, _within(solids, x) + ti.f32(1.0), solids.n) / solids.dx


@ti.func
def _within(solids, x):
    """A position half a cell within the box at least, or across the seams of periodic axes."""
    margin = x * ti.f32(0.0) + ti.f32(0.5)
    if ti.static(solids.wraps):
        margin *= ti.cast(solids.period == 0, ti.f32)
    back = wrapped(x, x * ti.f32(0.0), solids.period, solids.wraps)
    return ti.min(ti.max(back, margin), ti.cast(solids.n, ti.f32) - margin)


@ti.func
def away_from(solids, x):
    """Direction in which the distance grows fastest at a position."""
    s, q = strides_of(solids.n), _within(solids, x)
    I = ti.min(ti.cast(q, ti.i32), solids.n - 1)
    f, c = q - ti.cast(I, ti.f32), flat(I + 1, s)
    g = x * ti.f32(0.0)
    for corner in range(ti.static(2**x.n)):
        for axis in ti.static(range(x.n)):
            w = ti.f32(-1.0)
            if (corner >> axis) & 1:
                w = ti.f32(1.0)
            for other in ti.static(range(x.n)):
                if ti.static(other != axis):
                    w *= f[other] if (corner >> other) & 1 else ti.f32(1.0) - f[other]
            g[axis] += w * solids.distance[c + step_to_corner(corner, s)]
    return g / ti.max(length(g), ti.f32(1e-20))


@ti.func
def sampled_away(a: Array, solids, x, way):
    """What an array over the centres is so many cells farther from the nearest solid than a position."""
    there = wrapped(x + way * away_from(solids, x), x * ti.f32(0.0), solids.period, solids.wraps)
    return sample(a, 0, inside_box(there + ti.f32(0.5), solids.n), solids.n)


@ti.func
def pushed_out(solids, x, d):
    """A position at distance ``d``, in cells, moved out of the solids if it is in one."""
    y = x
    if d < CLEARANCE:
        y = x + (ti.f32(CLEARANCE) - d) * away_from(solids, x)
    return y


@ti.func
def _nearest_at(solids, x):
    """The row of the solid that is nearest to a position, for ``velocity_of``."""
    s = strides_of(solids.n)
    I = ti.min(ti.max(ti.cast(ti.floor(_within(solids, x)), ti.i32) + 1, 1), solids.n)
    return solids.row_at(flat(I, s), s, ti.i32(0))


@ti.func
def _way_of_solid(solids, x, step):
    """How far the solid that is nearest to a position has gone there in a step, in cells."""
    gone, row = x, _nearest_at(solids, x)
    for axis in ti.static(range(x.n)):
        gone[axis] = step * solids.velocity_of(row, solids.origin + x * solids.dx, ti.i32(axis))
    return gone


@ti.func
def _up_to_solid(solids, x, d, shift):
    """A way from a place at distance ``d``, in cells, but for what goes farther into the solid there than up to it."""
    away, into = away_from(solids, x), ti.f32(0.0)
    for axis in ti.static(range(x.n)):
        into += away[axis] * shift[axis]
    return shift - ti.min(into + ti.max(d - ti.f32(CLEARANCE), ti.f32(0.0)), ti.f32(0.0)) * away


@ti.func
def _may_touch(d, shift):
    """Whether a way from a place at distance ``d``, in cells, may come to a solid."""
    return d < length(shift) + ti.f32(1.0)


@ti.func
def _moved_beside(solids, x, d, shift):
    """Where a way from a place at distance ``d`` ends: gone part by part, each pushed out of what it has come to lie in."""
    y = x + shift
    if _may_touch(d, shift):
        parts = ti.cast(length(shift) / ti.f32(STRIDE), ti.i32) + 1
        y = x
        for _ in range(parts):
            y += shift / ti.cast(parts, ti.f32)
            y = pushed_out(solids, y, distance_at(solids, y))
    return y


@ti.func
def _stopped(solids, x, v):
    """The velocity of a particle at a position, m/s, but for what goes into a solid that it touches."""
    away, into = x * ti.f32(0.0), ti.f32(0.0)
    if distance_at(solids, x) <= 2 * CLEARANCE:
        away = away_from(solids, x)
        row = _nearest_at(solids, x)
        for axis in ti.static(range(x.n)):
            into += away[axis] * (v[axis] - solids.velocity_of(row, solids.origin + x * solids.dx, ti.i32(axis)))
    return v - ti.min(into, ti.f32(0.0)) * away


@argument
class _Moving:
    """Particles that set out: where they are, in cells, and how fast, m/s."""

    position: object
    own: object
    room: object


@argument
class _Onward:
    """The velocity by which particles go, a ``part`` of the way on, and how much of what that is more than theirs each keeps."""

    u: object
    part: object
    keeps: object


@argument
class _Ways:
    """Of the particles of a strip where they set out, how far the velocity there takes them, and how far it last did, in cells."""

    start: object
    first: object
    last: object


@ti.func
def _set_out(k, moving, first, step, ways):
    for axis in ti.static(range(ways.start.n)):
        at = cell_of_strip(address(first + axis * moving.room, ARRAY_BITS), k)
        ways.start[ti.i32(axis), k] = moving.position[at]
        ways.first[ti.i32(axis), k] = step * moving.own[at]
        ways.last[ti.i32(axis), k] = step * moving.own[at]


@ti.func
def _on_the_way(k, ways, part, way):
    """A ``part`` of the way on, in the index space of cells."""
    return way.within(column(ways.start, k) + part * column(ways.last, k) + ti.f32(0.5))


@ti.func
def _begin(k, ways, velocity: ti.template(), step):
    for axis in ti.static(range(velocity.n)):
        ways.first[ti.i32(axis), k] = step * velocity[ti.i32(axis), k]
        ways.last[ti.i32(axis), k] = step * velocity[ti.i32(axis), k]


@ti.func
def _go_on(k, ways, velocity: ti.template(), step):
    for axis in ti.static(range(velocity.n)):
        ways.last[ti.i32(axis), k] = step * velocity[ti.i32(axis), k]


@ti.func
def _kick(k, ways, moving, first, times):
    """Let a particle be faster by so many ``times`` what its way is longer than by its velocity."""
    for axis in ti.static(range(ways.start.n)):
        at, line = cell_of_strip(address(first + axis * moving.room, ARRAY_BITS), k), ti.i32(axis)
        moving.own[at] = moving.own[at] + times * (ways.last[line, k] - ways.first[line, k])


@ti.func
def _arrive(k, ways, moving, first, way, touched: ti.template()):
    x = column(ways.start, k) + column(ways.last, k)
    y = way.kept(x)
    for axis in ti.static(range(y.n)):
        moving.position[cell_of_strip(address(first + axis * moving.room, ARRAY_BITS), k)] = y[axis]
        touched |= way.stops(x, axis)


@ti.func
def _stop_at_sides(k, ways, moving, first, way):
    """A particle that a side has kept in the box has of its own velocity no longer what goes into that; or it leaves through a part."""
    x = column(ways.start, k) + column(ways.last, k)
    if way.leaves(x) == 1:
        moving.position[cell_of_strip(first, k)] = ti.f32(NOWHERE)
    for axis in ti.static(range(x.n)):
        if way.stops(x, axis) == 1:
            moving.own[cell_of_strip(address(first + axis * moving.room, ARRAY_BITS), k)] = ti.f32(0.0)


@ti.func
def _find_ways(moving, strip, known, onward, given, ways):
    """The ways of particles side by side in memory, by their velocity where they are, which is ``known`` or asked for, and ``onward``."""
    n, velocity, none = given.n, strip.matrix(given.n.n), ti.f32(0.0)
    strip.each(_set_out, (moving, strip.first, given.step, ways))
    if known == 0:
        sample_strip_velocity(strip, given.u, Operator(_on_the_way, (ways, none, given)), velocity, n, True)
        strip.each(_begin, (ways, velocity, given.step))
    sample_strip_velocity(strip, onward.u, Operator(_on_the_way, (ways, onward.part, given)), velocity, n, True)
    strip.each(_go_on, (ways, velocity, given.step))
    if onward.keeps > 0:
        strip.each(_kick, (ways, moving, strip.first, onward.keeps / given.step))


@ti.func
def _go_strip(moving, strip, ways, way):
    """Let particles be at the ends of their ways, which nothing but sides is on."""
    touched = ti.i32(0)
    strip.each(_arrive, (ways, moving, strip.first, way, touched))
    if touched == 1:
        strip.each(_stop_at_sides, (ways, moving, strip.first, way))


@ti.func
def _comes_near(k, ways, solids, found: ti.template()):
    """Whether a way may come to a solid, by the distance of the lower corner of the cell in which it begins."""
    x = column(ways.start, k)
    I = ti.min(ti.max(ti.cast(x, ti.i32), 0), solids.n - 1) + 1
    d = solids.distance[address(flat(I, strides_of(solids.n)), ARRAY_BITS)] / solids.dx
    found |= ti.cast(_may_touch(d - ti.f32(2 * IN_CELL[x.n]), column(ways.last, k)), ti.i32)


@ti.func
def _move_beside(p, shift, moving, solids, way):
    """A particle on a way, of so many cells, on which there may be a solid."""
    x = vector_at(moving.position, p, moving.room, zero_of(solids.n))
    d, own = distance_at(solids, x), shift
    if d < 0:
        # A solid has come over it in this step: along with that, and from there by what it goes otherwise than that does.
        gone = _way_of_solid(solids, x, way.step)
        there = x + gone
        x = way.kept(pushed_out(solids, there, distance_at(solids, there)))
        if x[0] > NOWHERE:
            d = distance_at(solids, x)
            own = _up_to_solid(solids, x, d, shift - gone)
    if x[0] > NOWHERE:
        goal = _moved_beside(solids, x, d, own)
        x = way.kept(goal)
        touched = ti.cast(_may_touch(d, own), ti.i32)
        for axis in ti.static(range(goal.n)):
            touched |= way.stops(goal, axis)
        if touched == 1:
            v = _stopped(solids, x, vector_at(moving.own, p, moving.room, zero_of(solids.n)))
            for axis in ti.static(range(goal.n)):
                if way.stops(goal, axis) == 1:
                    v[axis] = ti.f32(0.0)
            set_vector(moving.own, p, moving.room, v)
            if way.leaves(goal) == 1:
                x[0] = ti.f32(NOWHERE)
    set_vector(moving.position, p, moving.room, x)


@kernel_family
def motion_kernels(loops, beside, wraps):
    Index, Point = loops.IntVector, loops.FloatVector
    Flags, width = int_vector(2 * loops.dim), loops.width

    @ti.kernel
    def move(
        position: Array,
        own: Array,
        known: ti.i32,
        velocity: Array,
        kicked: Array,
        part: ti.f32,
        keeps: ti.f32,
        n: Index,
        leave: Flags,
        exits: IntArray,
        period: Point,
        step: ti.f32,
        room: ti.i32,
        number: ti.i32,
    ):
        for index in range((number + width - 1) // width):
            first, moving = index * ti.i32(width), _Moving(position, own, room)
            strip = Strip(first, n * 0, ti.min(number - first, ti.i32(width)), width)
            way = Way(velocity, n, step, leave, exits, period, wraps)
            ways = _Ways(strip.matrix(loops.dim), strip.matrix(loops.dim), strip.matrix(loops.dim))
            _find_ways(moving, strip, known, _Onward(kicked, part, keeps), way, ways)
            _go_strip(moving, strip, ways, loaded(way))

    @ti.kernel
    def move_beside(
        position: Array,
        own: Array,
        known: ti.i32,
        velocity: Array,
        kicked: Array,
        part: ti.f32,
        keeps: ti.f32,
        leave: Flags,
        exits: IntArray,
        period: Point,
        step: ti.f32,
        room: ti.i32,
        number: ti.i32,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        for index in range((number + width - 1) // width):
            first, moving = index * ti.i32(width), _Moving(position, own, room)
            strip = Strip(first, n * 0, ti.min(number - first, ti.i32(width)), width)
            way = Way(velocity, n, step, leave, exits, period, wraps)
            solids, found = CutCells(open, distance, owner, motions, n, origin, dx, period, wraps), ti.i32(0)
            ways = _Ways(strip.matrix(loops.dim), strip.matrix(loops.dim), strip.matrix(loops.dim))
            _find_ways(moving, strip, known, _Onward(kicked, part, keeps), way, ways)
            strip.each(_comes_near, (ways, solids, found))
            if found == 0:
                _go_strip(moving, strip, ways, loaded(way))
            else:
                for k in range(strip.m):
                    _move_beside(first + k, column(ways.last, k), moving, solids, way)

    return (move_beside if beside else move,)


class Motion:
    """Moves particles of one grid.

    Attributes:
        exits: What ``exits_of`` says of the sides, for kernels.
        seams: Which axes are periodic.

    Args:
        grid: The grid.
        walls: Its sides: a particle stays within those that are closed, and leaves through open ones.
        solids: What stands in it, where it is at the end of the step.
    """

    def __init__(self, grid: Grid, walls: Walls, solids: Solids | None):
        self.grid, self.solids = grid, solids
        self.exits, self.seams = exits_of(walls), Seams(grid, walls)

    def move(
        self, particles: Particles, velocity, dt: float, *, kicked=None, keeps: float = 1.0, known: bool = False
    ) -> None:
        """Move them through a velocity on faces, m/s, known all around them, for ``dt`` seconds.

        They go by that halfway on; or straight on by what it is ``kicked`` to where they are, of which change they keep the part
        ``keeps``. Where it is ``known`` that their own velocities are those of the faces there, these are not asked for again.

        Those that a solid has come over in this step go along with it; nobody passes a wall that the grid shows, and who touches
        one keeps of its own velocity what does not go into it.
        """
        grid = self.grid
        grid.require(grid.dim, velocity=velocity)
        kernels = motion_kernels(grid.loops, self.solids is not None, self.seams.any)
        step, room, number = dt / grid.dx, particles.room, particles.count
        onward = (velocity, 0.5, 0.0) if kicked is None else (kicked, 0.0, keeps)
        moving = particles.position, particles.velocity, int(known), velocity, *onward
        if self.solids is None:
            kernels.move(*moving, grid.n, *self.exits, self.seams.period, step, room, number)
        else:
            kernels.move_beside(*moving, *self.exits, self.seams.period, step, room, number, *self.solids.arguments())
