"""Where particles are made and taken away: on a lattice in each cell, in shapes, and where too few are left."""

import math
from collections.abc import Sequence

from .._ti import argument, ti, traced
from ..boundaries.solids import CutCells, Solids
from ..grid import Grid
from ..kernels import Array, cells_of, flat, float_vector, int_vector, kernel_family, neighbour
from ..kernels.layout import IntArray, strides_of
from ..operators.interpolation import inside_box, sample, sample_velocity
from ..operators.noise import hash_01
from ..operators.shapes import SHAPES
from .core import BELOW, LEFT, Core, cover_of
from .motion import CLEARANCE, Way, distance_at
from .particles import FULL, NOWHERE, PER_AXIS, Cloud, Particles, set_vector, vector_at

LEAST = {2: 4, 3: 3}
MOST = {2: 36, 3: 32}
FEWER = {2: 14, 3: 12}
"""Particles that a cell deep in the liquid has at least, and that any has at most, of 9 or 8 that make it full; and at most
while there are more in all than there should be."""
FIRST_SHARE = 1e-4
"""Chance of a place for each particle that is lacking, before it is known how many places there are."""
EVERYWHERE = 2.0
"""What is more likely than all others."""
TURNS = {2: (0.7548777, 0.5698403), 3: (0.8191725, 0.6710436, 0.5497005)}
"""Part of a cell by which the lattice moves from step to step that fills what a core has left: however little that is, as many
places are in it as belong there (R sequences, Roberts 2018)."""
RIM = 0.51
"""How far beyond a source, in cells, faces have its velocity, so that all that lies in it goes along with that."""
SHALLOW = 0.5
"""How deep, in cells, a cell lies at least where particles are put that have been taken away elsewhere."""


@argument
class Shape:
    """A shape of ``operators.shapes``, in metres."""

    distance: object
    a: object
    b: object
    radius: object
    shift: object = None  # how far the lattice that fills it has been moved, in cells

    @ti.func
    def has(self, x):
        """Whether a point is inside."""
        return self.distance(x, self.a, self.b, self.radius) < 0


@argument
class Ground:
    """Where particles may be made: outside of solids, where these are ``given``, and of a core, where there may be one."""

    solids: object
    given: object
    core: object = None
    cored: object = False

    @ti.func
    def is_free(self, x):
        """Whether a position, in cells, is outside of solids."""
        free = ti.i32(1)
        if ti.static(self.given):
            if distance_at(self.solids, x) < CLEARANCE:
                free = 0
        return free

    @ti.func
    def cored_at(self, c):
        """0 for a cell that is in no core, and needs its particles."""
        cored = ti.i32(0)
        if ti.static(self.cored):
            cored = self.core[c]
        return cored


@traced
def bare_solids(distance, n, origin, dx):
    """Solids of which nothing but the distance to them is asked."""
    return CutCells(None, distance, None, None, n, origin, dx)


@ti.func
def _seed_of(I, place, shift):
    """One of the places in a cell of a lattice that has been moved by ``shift``, in cells."""
    x, rest, along = ti.cast(I - 1, ti.f32), place, ti.static(PER_AXIS[I.n])
    for axis in ti.static(range(I.n)):
        at = (ti.cast(rest % along, ti.f32) + ti.f32(0.5)) * ti.f32(1.0 / PER_AXIS[I.n]) + shift[axis]
        x[axis] += at - ti.floor(at)
        rest = rest // along
    return x


@ti.func
def _is_vacant(cloud, cell, seed):
    """Whether no particle of a cell is nearer to a seed than to all others."""
    vacant = ti.i32(1)
    for i in range(cloud.starts[cell], cloud.starts[cell + 1]):
        way = ti.abs(vector_at(cloud.position, cloud.order[i], cloud.room, seed) - seed)
        if way.max() <= ti.f32(0.5 / PER_AXIS[seed.n]):
            vacant = 0
    return vacant


@ti.func
def _wants_shape(c, I, place, cloud, ground, shape):
    seed, n, wanted = _seed_of(I, place, shape.shift), ground.solids.n, ti.i32(0)
    if ground.cored_at(c) == 0 and shape.has(ground.solids.origin + seed * ground.solids.dx):
        wanted = ground.is_free(seed)
        for around in range(ti.static(3**I.n)):
            J = neighbour(I, around)
            if wanted == 1 and (ti.min(ti.max(J, 1), n) == J).all():
                wanted = _is_vacant(cloud, ti.cast(flat(J, strides_of(n)), ti.i32), seed)
    return wanted


@argument
class Lack:
    """How likely a place is filled where a cell is not full, and what the chances of this step are drawn from.

    From ``EVERYWHERE`` on each place is filled that lies in the liquid.
    """

    phi: object
    likely: object
    draw: object


@ti.func
def _wants_deep(c, I, place, cloud, ground, lack):
    cell, wanted = ti.cast(c, ti.i32), ti.i32(0)
    count, depth = cloud.starts[cell + 1] - cloud.starts[cell], -lack.phi[c] / ground.solids.dx
    if ground.cored_at(c) == 0 and count < ti.static(FULL[I.n]) and (depth >= SHALLOW or lack.likely >= EVERYWHERE):
        seed = _seed_of(I, place, ground.solids.origin * ti.f32(0.0))
        few = count < ti.static(LEAST[I.n]) and depth >= BELOW
        if lack.likely >= EVERYWHERE:
            few = sample(lack.phi, 0, inside_box(seed + ti.f32(0.5), ground.solids.n), ground.solids.n) < 0
        if few or (depth >= SHALLOW and hash_01(ti.Vector([cell, place, lack.draw])) < lack.likely):
            wanted = ground.is_free(seed) * _is_vacant(cloud, cell, seed)
    return wanted


@ti.func
def _spread(c, shift):
    """A lattice's shift that differs from cell to cell, in cells."""
    here = shift
    for axis in ti.static(range(shift.n)):
        here[axis] += hash_01(ti.Vector([ti.cast(c, ti.i32), axis, 0]))
    return here


@argument
class Change:
    """How a core changes: what it ``was`` before a step, and a way back to there from where that has gone since."""

    was: object
    way: object
    shift: object  # of the lattice that fills what it has left; it differs from cell to cell


@ti.func
def _wants_left(c, I, place, cloud, ground, change):
    """Whether a place was in the core before the step, and is left by it."""
    seed, wanted = _seed_of(I, place, _spread(c, change.shift)), ti.i32(0)
    if ground.cored_at(c) == LEFT:
        x = seed + change.way.shift_of(seed, False)
        J = ti.min(ti.max(ti.cast(ti.floor(x), ti.i32) + 1, 1), ground.solids.n)
        if change.was[flat(J, strides_of(ground.solids.n))] == 1:
            wanted = ground.is_free(seed)
    return wanted


@ti.func
def _count_wanted(c, I, s, wants: ti.template(), args: ti.template(), counts: IntArray, full):
    """No cell becomes more than ``full``: what is poured moves on between the places of the lattice."""
    cell, total = ti.cast(c, ti.i32), ti.i32(0)
    present = args[0].starts[cell + 1] - args[0].starts[cell]
    for place in range(ti.static(FULL[s.n])):
        if present + total < full:
            total += wants(c, I, place, *args)
    counts[cell] = total


@ti.func
def _make_wanted(c, I, s, wants: ti.template(), args: ti.template(), offsets: IntArray, maker):
    p, end = maker.first + offsets[ti.cast(c, ti.i32)], maker.first + offsets[ti.cast(c, ti.i32) + 1]
    for place in range(ti.static(FULL[s.n])):
        if p < end:
            if wants(c, I, place, *args) == 1:
                maker.make(p, _seed_of(I, place, maker.shift_at(c)))
                p += 1


@argument
class Maker:
    """Writes new particles behind the ``first`` so many, with a velocity, or that of the faces where it is ``sampled``.

    They are put in places of a lattice that has been moved by ``shift``, in each cell otherwise where it is ``spread``.
    """

    position: object
    velocity: object
    affine: object
    room: object
    first: object
    given: object
    faces: object
    n: object
    sampled: object
    shift: object
    spread: object = False

    @ti.func
    def shift_at(self, c):
        """By how much the lattice has been moved in a cell, in cells."""
        shift = self.shift
        if ti.static(self.spread):
            shift = _spread(c, shift)
        return shift

    @ti.func
    def make(self, p, x):
        """Make a particle."""
        v = self.given
        if ti.static(self.sampled):
            v = sample_velocity(self.faces, x + ti.f32(0.5), self.n)
        set_vector(self.position, p, self.room, x)
        set_vector(self.velocity, p, self.room, v)
        for k in ti.static(range(x.n * x.n)):
            self.affine[p + k * self.room] = ti.f32(0.0)


@ti.func
def _drop_surplus_at(c, I, s, cloud, most):
    cell = ti.cast(c, ti.i32)
    for i in range(cloud.starts[cell] + most, cloud.starts[cell + 1]):
        cloud.position[cloud.order[i]] = ti.f32(NOWHERE)


@ti.func
def _drive_faces_at(c, I, s, u: Array, shape, speed, ground):
    for axis in ti.static(range(s.n)):
        x = ground.origin + (ti.cast(I, ti.f32) - ti.f32(0.5)) * ground.dx
        x[axis] -= ti.f32(0.5) * ground.dx
        if shape.distance(x, shape.a, shape.b, shape.radius) < ti.f32(RIM) * ground.dx:
            u[c + axis * cells_of(s, ground.n)] = speed[axis]


@kernel_family
def shape_kernels(loops, shape, given, cored):
    Index, Point, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell
    distance_of = SHAPES[shape]

    @ti.kernel
    def count_in_shape(
        position: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        counts: IntArray,
        shift: Point,
        a: Point,
        b: Point,
        radius: ti.f32,
        core: IntArray,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = Ground(bare_solids(distance, n, origin, dx), given, core, cored)
        cloud = Cloud(position, position, position, order, starts, room)
        wanted = (cloud, ground, Shape(distance_of, a, b, radius, shift))
        each_cell(n, _count_wanted, (_wants_shape, wanted, counts, FULL[loops.dim]))

    @ti.kernel
    def make_in_shape(
        position: Array,
        velocity: Array,
        affine: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        offsets: IntArray,
        first: ti.i32,
        speed: Point,
        shift: Point,
        a: Point,
        b: Point,
        radius: ti.f32,
        core: IntArray,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = Ground(bare_solids(distance, n, origin, dx), given, core, cored)
        cloud = Cloud(position, velocity, affine, order, starts, room)
        wanted = (cloud, ground, Shape(distance_of, a, b, radius, shift))
        maker = Maker(position, velocity, affine, room, first, speed, distance, n, False, shift)
        each_cell(n, _make_wanted, (_wants_shape, wanted, offsets, maker))

    @ti.kernel
    def drive_in_shape(
        position: Array,
        velocity: Array,
        affine: Array,
        room: ti.i32,
        number: ti.i32,
        speed: Point,
        a: Point,
        b: Point,
        radius: ti.f32,
        origin: Point,
        dx: ti.f32,
    ):
        for p in range(number):
            x = origin + vector_at(position, p, room, origin) * dx
            if Shape(distance_of, a, b, radius).has(x):
                set_vector(velocity, p, room, speed)
                for k in ti.static(range(loops.dim**2)):
                    affine[p + k * room] = ti.f32(0.0)

    @ti.kernel
    def drive_faces(
        velocity: Array,
        speed: Point,
        a: Point,
        b: Point,
        radius: ti.f32,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = bare_solids(distance, n, origin, dx)
        loops.each_cell_in(
            n * 0 + 1, n + 2, n, _drive_faces_at, (velocity, Shape(distance_of, a, b, radius), speed, ground)
        )

    return count_in_shape, make_in_shape, drive_in_shape, drive_faces


@kernel_family
def depth_kernels(loops, given, cored):
    Index, Point, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell
    Flags = int_vector(2 * loops.dim)

    @ti.kernel
    def count_in_depth(
        position: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        counts: IntArray,
        phi: Array,
        likely: ti.f32,
        draw: ti.i32,
        core: IntArray,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = Ground(bare_solids(distance, n, origin, dx), given, core, cored)
        cloud = Cloud(position, position, position, order, starts, room)
        each_cell(n, _count_wanted, (_wants_deep, (cloud, ground, Lack(phi, likely, draw)), counts, FULL[loops.dim]))

    @ti.kernel
    def make_in_depth(
        position: Array,
        velocity: Array,
        affine: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        offsets: IntArray,
        first: ti.i32,
        faces: Array,
        phi: Array,
        likely: ti.f32,
        draw: ti.i32,
        core: IntArray,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = Ground(bare_solids(distance, n, origin, dx), given, core, cored)
        cloud = Cloud(position, velocity, affine, order, starts, room)
        maker = Maker(position, velocity, affine, room, first, origin, faces, n, True, origin * 0)
        each_cell(n, _make_wanted, (_wants_deep, (cloud, ground, Lack(phi, likely, draw)), offsets, maker))

    @ti.kernel
    def count_left(
        position: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        counts: IntArray,
        was: IntArray,
        velocity: Array,
        leave: Flags,
        step: ti.f32,
        shift: Point,
        core: IntArray,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = Ground(bare_solids(distance, n, origin, dx), given, core, cored)
        cloud, change = Cloud(position, position, position, order, starts, room), Change(was, Way(velocity, n, step, leave), shift)
        each_cell(n, _count_wanted, (_wants_left, (cloud, ground, change), counts, MOST[loops.dim]))

    @ti.kernel
    def make_left(
        position: Array,
        velocity: Array,
        affine: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        offsets: IntArray,
        first: ti.i32,
        was: IntArray,
        faces: Array,
        leave: Flags,
        step: ti.f32,
        shift: Point,
        core: IntArray,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = Ground(bare_solids(distance, n, origin, dx), given, core, cored)
        cloud, change = Cloud(position, velocity, affine, order, starts, room), Change(was, Way(faces, n, step, leave), shift)
        maker = Maker(position, velocity, affine, room, first, origin, faces, n, True, shift, True)
        each_cell(n, _make_wanted, (_wants_left, (cloud, ground, change), offsets, maker))

    @ti.kernel
    def drop_surplus(position: Array, order: IntArray, starts: IntArray, room: ti.i32, most: ti.i32, n: Index):
        each_cell(n, _drop_surplus_at, (Cloud(position, position, position, order, starts, room), most))

    return count_in_depth, make_in_depth, count_left, make_left, drop_surplus


def ground_of(grid: Grid, solids: Solids | None, nothing) -> tuple:
    """What a kernel makes its ``Ground`` of; ``nothing`` is any array, for where there are no solids."""
    distance = nothing if solids is None else solids.distance
    return distance, grid.n, float_vector(grid.dim)(*grid.origin), grid.dx


class Seeding:
    """Makes particles of one grid, and takes them away.

    Args:
        grid: The grid.
        solids: What stands in it, where it is now.
        core: What of the liquid has no particles.

    Attributes:
        share: Chance of a place for each particle that is lacking, by what the last step had room for.
    """

    def __init__(self, grid: Grid, solids: Solids | None, core: Core | None = None):
        self.grid, self.solids, self._core = grid, solids, core
        self._counts = ti.ndarray(ti.i32, grid.cells + 1)
        self._offsets = ti.ndarray(ti.i32, grid.cells + 2)
        self._counts.fill(0)
        self._nothing, self.share = ti.ndarray(ti.f32, 1), FIRST_SHARE

    def fill(
        self,
        particles: Particles,
        shape: str,
        a: Sequence[float],
        b: Sequence[float],
        radius: float,
        velocity: Sequence[float] | None = None,
        time: float = 0.0,
    ) -> None:
        """Fill a shape, in metres, where no particles are, with such of a velocity, m/s; sort before and after.

        The places of the lattice go along with that velocity for ``time`` seconds: so what was put there before, and has
        gone on, is where the lattice is, and where it has left is as much room as has to be filled.
        """
        dim, point = self.grid.dim, float_vector(self.grid.dim)
        speed = velocity or (0.0,) * dim
        shift = point(*(math.fmod(component * time / self.grid.dx, 1.0) for component in speed))
        core, cored = cover_of(self._core, self._counts)
        kernels = shape_kernels(self.grid.costly_loops, shape, self.solids is not None, cored)
        where = (point(*a), point(*b), radius, core, *ground_of(self.grid, self.solids, self._nothing))
        position, _, _, order, starts, room = particles.arrays()
        kernels.count_in_shape(position, order, starts, room, self._counts, shift, *where)
        first = self._make_room(particles)
        if first < particles.count:
            kernels.make_in_shape(*particles.arrays(), self._offsets, first, point(*speed), shift, *where)

    def drive(
        self,
        particles: Particles,
        shape: str,
        a: Sequence[float],
        b: Sequence[float],
        radius: float,
        velocity: Sequence[float],
    ) -> None:
        """Set the velocity of all particles in a shape, in metres, to ``velocity``, m/s."""
        grid, point = self.grid, float_vector(self.grid.dim)
        kernels = shape_kernels(grid.costly_loops, shape, self.solids is not None, cover_of(self._core, 0)[1])
        arrays = (particles.position, particles.velocity, particles.affine, particles.room, particles.count)
        where = (point(*a), point(*b), radius, point(*grid.origin), grid.dx)
        kernels.drive_in_shape(*arrays, point(*velocity), *where)

    def drive_faces(
        self, faces, shape: str, a: Sequence[float], b: Sequence[float], radius: float, velocity: Sequence[float]
    ) -> None:
        """Set a velocity on the faces to ``velocity``, m/s, as far as what lies in a shape, in metres, is moved by it."""
        grid, point = self.grid, float_vector(self.grid.dim)
        grid.require(grid.dim, faces=faces)
        kernels = shape_kernels(grid.costly_loops, shape, self.solids is not None, cover_of(self._core, 0)[1])
        kernels.drive_faces(
            faces, point(*velocity), point(*a), point(*b), radius, *ground_of(self.grid, self.solids, self._nothing)
        )

    def restore(self, particles: Particles, phi, velocity, lacking: int, draw: int) -> None:
        """Make particles where deep in the liquid they are too few, of the velocity on the faces; drop where too many.

        So many as are ``lacking`` are put where cells are not full, by chances that ``draw``, a whole number, decides: about
        as many, by what the step before had room for. ``sort`` has to come before anything asks for the particles of a
        cell.
        """
        kernels = self._kernels()
        if self._core is not None and self._core.active:
            self._refill(particles, velocity, self._core, draw)
        position, _, _, order, starts, room = particles.arrays()
        most = (MOST if lacking >= 0 else FEWER)[self.grid.dim]
        kernels.drop_surplus(position, order, starts, room, most, self.grid.n)
        made = self._put(particles, velocity, phi, min(max(lacking, 0) * self.share, 1.0), draw)
        follows = lacking > 0 and made > 0
        self.share = min(self.share * min(max(lacking / made, 0.5), 2.0), 1.0) if follows else FIRST_SHARE

    def fill_below(self, particles: Particles, phi, velocity) -> None:
        """Make all particles that a level set has room for, of the velocity on the faces; there were none."""
        self._put(particles, velocity, phi, EVERYWHERE, 0)

    def _put(self, particles: Particles, velocity, phi, likely: float, draw: int) -> int:
        """Put particles where they are wanted; how many."""
        core = self._counts if self._core is None or not self._core.active else self._core.change
        where = (phi, likely, draw, core, *ground_of(self.grid, self.solids, self._nothing))
        kernels = self._kernels()
        position, _, _, order, starts, room = particles.arrays()
        kernels.count_in_depth(position, order, starts, room, self._counts, *where)
        first = self._make_room(particles)
        if first < particles.count:
            kernels.make_in_depth(*particles.arrays(), self._offsets, first, velocity, *where)
        return particles.count - first

    def _refill(self, particles: Particles, velocity, core: Core, draw: int) -> None:
        """Make the particles of what the core has left, of the velocity on the faces."""
        kernels, where = self._kernels(), ground_of(self.grid, self.solids, self._nothing)
        position, _, _, order, starts, room = particles.arrays()
        turns = (math.fmod(draw * part, 1.0) for part in TURNS[self.grid.dim])
        change = core.was, velocity, *core.way_back(), float_vector(self.grid.dim)(*turns), core.change
        kernels.count_left(position, order, starts, room, self._counts, *change, *where)
        first = self._make_room(particles)
        if first < particles.count:
            kernels.make_left(*particles.arrays(), self._offsets, first, *change, *where)

    def _kernels(self):
        return depth_kernels(self.grid.costly_loops, self.solids is not None, cover_of(self._core, 0)[1])

    def _make_room(self, particles: Particles) -> int:
        """Make room for those counted; how many there were before."""
        first = particles.count
        particles.grow(self._counts, self._offsets)
        return first
