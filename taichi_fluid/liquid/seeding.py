"""Where particles are made and taken away: on a lattice in each cell, in shapes, and where too few are left."""

import math
from collections.abc import Sequence

from .._ti import argument, ti, traced
from ..boundaries.solids import CutCells, Solids
from ..grid import Grid
from ..kernels import Array, flat, float_vector, kernel_family, neighbour
from ..kernels.layout import IntArray, strides_of
from ..operators.interpolation import inside_box, sample, sample_velocity
from ..operators.noise import hash_01
from ..operators.shapes import SHAPES
from .motion import CLEARANCE, distance_at
from .particle_surface import BELOW
from .particles import FULL, NOWHERE, PER_AXIS, Cloud, Particles, set_vector, vector_at

LEAST = {2: 4, 3: 3}
MOST = {2: 36, 3: 32}
FEWER = {2: 14, 3: 12}
"""Particles that a cell deep in the liquid has at least, and that any has at most, of 9 or 8 that make it full; and at most
while there are more in all than there should be."""
RESTORED = 0.1
"""Part of what particles are too many or too few, over 3^dim cells, that a step of a cell or more spreads or gathers."""
UNSURE = 0.15
"""What particles beside solids may be too many by before they are spread."""
FIRST_SHARE = 1e-4
"""Chance of a place for each particle that is lacking, before it is known how many places there are."""
EVERYWHERE = 2.0
"""What is more likely than all others."""
SHALLOW = 0.5
"""How deep, in cells, a cell lies at least where particles are put that have been taken away elsewhere."""


@argument
class Shape:
    """A shape of ``operators.shapes``, in metres."""

    distance: object
    a: object
    b: object
    radius: object
    along: object = None  # unit vector that what fills it goes along, or 0

    @ti.func
    def has(self, x):
        """Whether a point is inside."""
        return self.distance(x, self.a, self.b, self.radius) < 0


@argument
class Ground:
    """Where particles may be made: outside of solids, where these are ``given``."""

    solids: object
    given: object

    @ti.func
    def is_free(self, x):
        """Whether a position, in cells, is outside of solids."""
        free = ti.i32(1)
        if ti.static(self.given):
            if distance_at(self.solids, x) < CLEARANCE:
                free = 0
        return free


@traced
def _solids(distance, n, origin, dx):
    """Solids of which nothing but the distance to them is asked."""
    return CutCells(None, distance, None, None, n, origin, dx)


@ti.func
def _seed_of(I, place):
    """One of the places of the lattice in a cell, in cells."""
    x, rest, along = ti.cast(I - 1, ti.f32), place, ti.static(PER_AXIS[I.n])
    for axis in ti.static(range(I.n)):
        x[axis] += (ti.cast(rest % along, ti.f32) + ti.f32(0.5)) * ti.f32(1.0 / PER_AXIS[I.n])
        rest = rest // along
    return x


@ti.func
def _is_vacant(cloud, c, seed):
    """Whether no particle of the cell lies in the part of it around a seed."""
    vacant = ti.i32(1)
    for i in range(cloud.starts[c], cloud.starts[c + 1]):
        way = ti.abs(vector_at(cloud.position, cloud.order[i], cloud.room, seed) - seed)
        if way.max() <= ti.f32(0.5 / PER_AXIS[seed.n]):
            vacant = 0
    return vacant


@ti.func
def _is_ahead(way, along):
    """Whether what was put at a seed, and has come this far, has not yet made room for the next along its path."""
    spacing = ti.f32(1.0 / PER_AXIS[way.n])
    gone = way.dot(along)
    aside = ti.abs(way - gone * along)
    return ti.cast(gone > 0 and gone < ti.f32(0.999) * spacing and aside.max() < ti.f32(0.499) * spacing, ti.i32)


@ti.func
def _wants_shape(c, I, place, cloud, ground, shape):
    seed, n, wanted = _seed_of(I, place), ground.solids.n, ti.i32(0)
    if shape.has(ground.solids.origin + seed * ground.solids.dx):
        wanted = ground.is_free(seed) * _is_vacant(cloud, ti.cast(c, ti.i32), seed)
        if wanted == 1 and shape.along.dot(shape.along) > 0:
            for around in range(ti.static(3**I.n)):
                J = neighbour(I, around)
                if (ti.min(ti.max(J, 1), n) == J).all():
                    cell = ti.cast(flat(J, strides_of(n)), ti.i32)
                    for i in range(cloud.starts[cell], cloud.starts[cell + 1]):
                        way = vector_at(cloud.position, cloud.order[i], cloud.room, seed) - seed
                        wanted = wanted * (ti.i32(1) - _is_ahead(way, shape.along))
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
    if count < ti.static(FULL[I.n]) and (depth >= SHALLOW or lack.likely >= EVERYWHERE):
        seed = _seed_of(I, place)
        few = count < ti.static(LEAST[I.n]) and depth >= BELOW
        if lack.likely >= EVERYWHERE:
            few = sample(lack.phi, 0, inside_box(seed + ti.f32(0.5), ground.solids.n), ground.solids.n) < 0
        if few or (depth >= SHALLOW and hash_01(ti.Vector([cell, place, lack.draw])) < lack.likely):
            wanted = ground.is_free(seed) * _is_vacant(cloud, cell, seed)
    return wanted


@ti.func
def _count_wanted(c, I, s, wants: ti.template(), args: ti.template(), counts: IntArray):
    """No cell becomes more than full: what is poured moves on between the places of the lattice."""
    cell, total = ti.cast(c, ti.i32), ti.i32(0)
    present = args[0].starts[cell + 1] - args[0].starts[cell]
    for place in range(ti.static(FULL[s.n])):
        if present + total < ti.static(FULL[s.n]):
            total += wants(c, I, place, *args)
    counts[cell] = total


@ti.func
def _make_wanted(c, I, s, wants: ti.template(), args: ti.template(), offsets: IntArray, maker):
    p, end = maker.first + offsets[ti.cast(c, ti.i32)], maker.first + offsets[ti.cast(c, ti.i32) + 1]
    for place in range(ti.static(FULL[s.n])):
        if p < end:
            if wants(c, I, place, *args) == 1:
                maker.make(p, _seed_of(I, place))
                p += 1


@argument
class Maker:
    """Writes new particles behind the ``first`` so many, with a velocity, or that of the faces where it is ``sampled``."""

    position: object
    velocity: object
    affine: object
    room: object
    first: object
    given: object
    faces: object
    n: object
    sampled: object

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
def _write_crowding(c, I, s, cloud, phi: Array, out: Array, ground, rate):
    """The divergence, 1/s, that takes ``rate`` of what particles are too many for the room around, or deep down too few."""
    out[c] = ti.f32(0.0)
    if phi[c] < 0:
        full, beside, within = ti.f32(1.0 * FULL[s.n]), ti.i32(0), ti.i32(0)
        if ti.static(ground.given):
            nearest = distance_at(ground.solids, ti.cast(I, ti.f32) - ti.f32(0.5))
            beside, within = ti.cast(nearest < ti.f32(2.5), ti.i32), ti.cast(nearest < 0, ti.i32)
        total, room, highest = ti.i32(0), ti.f32(0.0), ti.f32(-1e9)
        for around in range(ti.static(3**s.n)):
            J, share = ti.min(ti.max(neighbour(I, around), 1), ground.solids.n), ti.f32(1.0)
            cell = ti.cast(flat(J, s), ti.i32)
            if ti.static(ground.given):
                if beside == 1:
                    away = distance_at(ground.solids, ti.cast(J, ti.f32) - ti.f32(0.5))
                    share = ti.min(ti.max(ti.f32(0.5) + away, ti.f32(0.0)), ti.f32(1.0))
            total += cloud.starts[cell + 1] - cloud.starts[cell]
            room += share
            highest = ti.max(highest, phi[cell])
        own = ti.cast(cloud.starts[ti.cast(c, ti.i32) + 1] - cloud.starts[ti.cast(c, ti.i32)], ti.f32) / full
        crowd = ti.cast(total, ti.f32) / (full * ti.max(room, ti.f32(1.0))) - ti.f32(1.0)
        if beside == 1:
            crowd = ti.max(crowd - ti.f32(UNSURE), ti.f32(0.0))
        crowd = ti.max(crowd, ti.f32(0.5) * own - ti.f32(1.0))
        # Beside the surface cells are not full, and lack nothing.
        if within == 0 and (crowd > 0 or highest <= ti.f32(-BELOW) * ground.solids.dx):
            out[c] = rate * crowd


@kernel_family
def shape_kernels(loops, shape, given):
    Index, Point, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell
    distance_of = SHAPES[shape]

    @ti.kernel
    def count_in_shape(
        position: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        counts: IntArray,
        along: Point,
        a: Point,
        b: Point,
        radius: ti.f32,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = Ground(_solids(distance, n, origin, dx), given)
        cloud = Cloud(position, position, position, order, starts, room)
        wanted = (cloud, ground, Shape(distance_of, a, b, radius, along))
        each_cell(n, _count_wanted, (_wants_shape, wanted, counts))

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
        along: Point,
        a: Point,
        b: Point,
        radius: ti.f32,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = Ground(_solids(distance, n, origin, dx), given)
        cloud = Cloud(position, velocity, affine, order, starts, room)
        wanted = (cloud, ground, Shape(distance_of, a, b, radius, along))
        maker = Maker(position, velocity, affine, room, first, speed, distance, n, False)
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

    return count_in_shape, make_in_shape, drive_in_shape


@kernel_family
def depth_kernels(loops, given):
    Index, Point, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell

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
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = Ground(_solids(distance, n, origin, dx), given)
        cloud = Cloud(position, position, position, order, starts, room)
        each_cell(n, _count_wanted, (_wants_deep, (cloud, ground, Lack(phi, likely, draw)), counts))

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
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = Ground(_solids(distance, n, origin, dx), given)
        cloud = Cloud(position, velocity, affine, order, starts, room)
        maker = Maker(position, velocity, affine, room, first, origin, faces, n, True)
        each_cell(n, _make_wanted, (_wants_deep, (cloud, ground, Lack(phi, likely, draw)), offsets, maker))

    @ti.kernel
    def find_crowding(
        position: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        phi: Array,
        out: Array,
        rate: ti.f32,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        ground = Ground(_solids(distance, n, origin, dx), given)
        cloud = Cloud(position, position, position, order, starts, room)
        each_cell(n, _write_crowding, (cloud, phi, out, ground, rate))

    @ti.kernel
    def drop_surplus(position: Array, order: IntArray, starts: IntArray, room: ti.i32, most: ti.i32, n: Index):
        each_cell(n, _drop_surplus_at, (Cloud(position, position, position, order, starts, room), most))

    return count_in_depth, make_in_depth, find_crowding, drop_surplus


class Seeding:
    """Makes particles of one grid, and takes them away.

    Args:
        grid: The grid.
        solids: What stands in it, where it is now.

    Attributes:
        share: Chance of a place for each particle that is lacking, by what the last step had room for.
    """

    def __init__(self, grid: Grid, solids: Solids | None):
        self.grid, self.solids = grid, solids
        self._counts = ti.ndarray(ti.i32, grid.cells + 1)
        self._offsets = ti.ndarray(ti.i32, grid.cells + 2)
        self._counts.fill(0)
        self._kernels = depth_kernels(grid.costly_loops, solids is not None)
        self._nothing, self.share = ti.ndarray(ti.f32, 1), FIRST_SHARE

    def _ground(self) -> tuple:
        grid, distance = self.grid, self._nothing if self.solids is None else self.solids.distance
        return distance, grid.n, float_vector(grid.dim)(*grid.origin), grid.dx

    def fill(
        self,
        particles: Particles,
        shape: str,
        a: Sequence[float],
        b: Sequence[float],
        radius: float,
        velocity: Sequence[float] | None = None,
    ) -> None:
        """Fill a shape, in metres, where no particles are, with such of a velocity, m/s; sort before and after.

        Nor where one of that velocity was put that has not yet gone on by the spacing of the lattice.
        """
        dim, point = self.grid.dim, float_vector(self.grid.dim)
        speed, size = velocity or (0.0,) * dim, math.hypot(*(velocity or (0.0,)))
        along = point(*(component / size if size else 0.0 for component in speed))
        kernels = shape_kernels(self.grid.costly_loops, shape, self.solids is not None)
        where = (point(*a), point(*b), radius, *self._ground())
        position, _, _, order, starts, room = particles.arrays()
        kernels.count_in_shape(position, order, starts, room, self._counts, along, *where)
        first = self._make_room(particles)
        if first < particles.count:
            kernels.make_in_shape(*particles.arrays(), self._offsets, first, point(*speed), along, *where)

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
        kernels = shape_kernels(grid.costly_loops, shape, self.solids is not None)
        arrays = (particles.position, particles.velocity, particles.affine, particles.room, particles.count)
        where = (point(*a), point(*b), radius, point(*grid.origin), grid.dx)
        kernels.drive_in_shape(*arrays, point(*velocity), *where)

    def restore(self, particles: Particles, phi, velocity, lacking: int, draw: int) -> None:
        """Make particles where deep in the liquid they are too few, of the velocity on the faces; drop where too many.

        So many as are ``lacking`` are put where cells are not full, by chances that ``draw``, a whole number, decides: about
        as many, by what the step before had room for. ``sort`` has to come before anything asks for the particles of a
        cell.
        """
        kernels = self._kernels
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
        kernels, where = self._kernels, (phi, likely, draw, *self._ground())
        position, _, _, order, starts, room = particles.arrays()
        kernels.count_in_depth(position, order, starts, room, self._counts, *where)
        first = self._make_room(particles)
        if first < particles.count:
            kernels.make_in_depth(*particles.arrays(), self._offsets, first, velocity, *where)
        return particles.count - first

    def find_crowding(self, particles: Particles, phi, out, dt: float, crossed: float = 1.0) -> None:
        """Set ``out`` to the divergence, 1/s, that over ``dt`` spreads or gathers ``RESTORED`` of too many or too few.

        Less where the fastest have ``crossed`` less than a cell: else short steps would stir the liquid by what is noise.
        """
        position, _, _, order, starts, room = particles.arrays()
        rate = min(crossed, 1.0) * RESTORED / dt
        self._kernels.find_crowding(position, order, starts, room, phi, out, rate, *self._ground())

    def _make_room(self, particles: Particles) -> int:
        """Make room for those counted; how many there were before."""
        first = particles.count
        particles.grow(self._counts, self._offsets)
        return first
