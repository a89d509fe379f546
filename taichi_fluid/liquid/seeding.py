"""Where particles are made and taken away: on a lattice in each cell, in shapes, and where too few are left."""

import math
from collections.abc import Sequence

from .._ti import argument, ti
from ..boundaries.solids import Solids
from ..grid import Grid
from ..kernels import (
    Array,
    add,
    cells_of,
    flat,
    float_vector,
    kernel_family,
    neighbour,
    numbers_of,
    room_for_partials,
)
from ..kernels.layout import IntArray, strides_of
from ..operators.interpolation import inside_box, sample
from ..operators.noise import hash_01
from ..operators.shapes import SHAPES
from .core import BELOW, Core, cover_of
from .lattice import (
    FEWER,
    FEWEST,
    LEAST,
    MOST,
    SURPLUS,
    Ground,
    Places,
    Wanted,
    bare_solids,
    count_wanted,
    ground_of,
    seed_of,
)
from .motion import distance_at
from .particles import FULL, NOWHERE, PER_AXIS, Cloud, Particles, set_vector, vector_at
from .refill import Refill

AT_ONCE = 0.1
"""Part of the cells a fifth too full from which a step takes what they have too many, while there are ``SURPLUS`` more."""
EVERYWHERE = 2.0
"""What is more likely than all others."""
RIM = 0.51
"""How far beyond a source or an inflow, in cells, faces have its velocity, so that all that lies in it goes along with that."""
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

    @ti.func
    def asks(self, c, present, ground):
        """Whether a cell needs particles at all."""
        return ground.cored_at(c) == 0


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
def is_room_for(seed, I, cloud, n):
    """Whether no particle is nearer to a seed in the cell ``I`` than to all others."""
    vacant = ti.i32(1)
    for around in range(ti.static(3**I.n)):
        J = neighbour(I, around)
        if vacant == 1 and (ti.min(ti.max(J, 1), n) == J).all():
            vacant = _is_vacant(cloud, ti.cast(flat(J, strides_of(n)), ti.i32), seed)
    return vacant


@ti.func
def _wants_shape(c, I, place, cloud, ground, shape):
    seed, wanted = seed_of(I, place, shape.shift), ti.i32(0)
    # As if places lay a little higher: of two rows on opposite sides of a box one lies in it, not neither.
    if shape.has(ground.solids.origin + (seed + ti.f32(1e-3)) * ground.solids.dx):
        wanted = ground.is_free(seed)
        if wanted == 1:
            wanted = is_room_for(seed, I, cloud, ground.solids.n)
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
    def asks(self, c, present, ground):
        """Whether a cell may have too few."""
        deep = self.phi[c] <= ti.f32(-SHALLOW) * ground.solids.dx or self.likely >= EVERYWHERE
        return ground.cored_at(c) == 0 and deep and present < ti.static(FULL[ground.solids.n.n])


@ti.func
def _wants_deep(c, I, place, cloud, ground, lack):
    cell, wanted = ti.cast(c, ti.i32), ti.i32(0)
    count, depth = cloud.starts[cell + 1] - cloud.starts[cell], -lack.phi[c] / ground.solids.dx
    seed = seed_of(I, place, ground.solids.origin * ti.f32(0.0))
    least = ti.i32(LEAST[I.n])
    if ti.static(ground.given):
        # Of a cell that a solid covers in part less can be full.
        away = distance_at(ground.solids, ti.cast(I, ti.f32) - ti.f32(0.5))
        least = ti.cast(ti.f32(1.0 * LEAST[I.n]) * ti.min(ti.max(ti.f32(0.5) + away, ti.f32(0.0)), ti.f32(1.0)), ti.i32)
    few = count < least and depth >= BELOW
    if lack.likely >= EVERYWHERE:
        few = sample(lack.phi, 0, inside_box(seed + ti.f32(0.5), ground.solids.n), ground.solids.n) < 0
    if few or (depth >= SHALLOW and hash_01(ti.Vector([cell, place, lack.draw])) < lack.likely):
        wanted = ground.is_free(seed) * _is_vacant(cloud, cell, seed)
    return wanted


@ti.func
def _surplus_at(c, I, s, starts: IntArray, most):
    """How many a cell has beyond ``most``."""
    cell = ti.cast(c, ti.i32)
    return ti.cast(ti.max(starts[cell + 1] - starts[cell] - most, ti.i32(0)), ti.f32)


@ti.func
def _drop_surplus_at(c, I, s, cloud, most, chance, draw):
    """Take away what a cell has beyond ``most``, with a ``chance`` that is drawn for it."""
    cell = ti.cast(c, ti.i32)
    if cloud.starts[cell + 1] - cloud.starts[cell] > most:
        if chance >= 1 or hash_01(ti.Vector([cell, ti.i32(0), draw])) < chance:
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
        places: IntArray,
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
        args = (cloud, ground, Shape(distance_of, a, b, radius, shift))
        each_cell(n, count_wanted, (_wants_shape, args, Wanted(counts, places), FULL[loops.dim]))

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

    return count_in_shape, drive_in_shape, drive_faces


@kernel_family
def depth_kernels(loops, given, cored):
    Index, Point, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell

    @ti.kernel
    def count_in_depth(
        position: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        counts: IntArray,
        places: IntArray,
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
        args = (cloud, ground, Lack(phi, likely, draw))
        each_cell(n, count_wanted, (_wants_deep, args, Wanted(counts, places), FULL[loops.dim]))

    @ti.kernel
    def drop_surplus(
        position: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        most: ti.i32,
        chance: ti.f32,
        draw: ti.i32,
        n: Index,
    ):
        each_cell(n, _drop_surplus_at, (Cloud(position, position, position, order, starts, room), most, chance, draw))

    @ti.kernel
    def count_surplus(starts: IntArray, most: ti.i32, n: Index, partials: Array, out: Array):
        loops.reduce_to(out, 0, n, partials, ti.f32(0.0), add, _surplus_at, (starts, most))

    return count_in_depth, drop_surplus, count_surplus


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
        self._places = Places(grid)
        self._partials, self._out = room_for_partials(), ti.ndarray(ti.f32, 1)
        self._refill = Refill(grid, solids, self._places)
        self.begin()

    def begin(self) -> None:
        """Know nothing of steps before: as if all places were free; if fewer are, it is soon known."""
        self.share = 1.0 / (FULL[self.grid.dim] * self.grid.cells)

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
        places = self._places
        core, cored = cover_of(self._core, places.counts)
        kernels = shape_kernels(self.grid.costly_loops, shape, self.solids is not None, cored)
        where = (point(*a), point(*b), radius, core, *ground_of(self.grid, self.solids, places.nothing))
        position, _, _, order, starts, room = particles.arrays()
        kernels.count_in_shape(position, order, starts, room, places.counts, places.places, shift, *where)
        places.fill(particles, shift, speed=point(*speed))

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
        kernels = shape_kernels(grid.costly_loops, shape, self.solids is not None, self._cored)
        arrays = (particles.position, particles.velocity, particles.affine, particles.room, particles.count)
        where = (point(*a), point(*b), radius, point(*grid.origin), grid.dx)
        kernels.drive_in_shape(*arrays, point(*velocity), *where)

    def drive_faces(
        self, faces, shape: str, a: Sequence[float], b: Sequence[float], radius: float, velocity: Sequence[float]
    ) -> None:
        """Set a velocity on the faces to ``velocity``, m/s, as far as what lies in a shape, in metres, is moved by it."""
        grid, point = self.grid, float_vector(self.grid.dim)
        grid.require(grid.dim, faces=faces)
        kernels = shape_kernels(grid.costly_loops, shape, self.solids is not None, self._cored)
        kernels.drive_faces(
            faces,
            point(*velocity),
            point(*a),
            point(*b),
            radius,
            *ground_of(self.grid, self.solids, self._places.nothing),
        )

    def restore(self, particles: Particles, phi, velocity, lacking: int, draw: int) -> None:
        """Make particles where deep in the liquid they are too few, of the velocity on the faces; drop where too many.

        So many as are ``lacking`` are put where cells are not full, by chances that ``draw``, a whole number, decides: about
        as many, by what the step before had room for. ``sort`` has to come before anything asks for the particles of a
        cell.
        """
        kernels = self._kernels()
        if self._core is not None and self._core.active:
            self._refill.put(particles, velocity, self._core, draw)
        position, _, _, order, starts, room = particles.arrays()
        many, chance = -lacking >= SURPLUS * particles.count, 1.0
        most = (MOST if lacking >= 0 else FEWEST if many else FEWER)[self.grid.dim]
        if lacking < 0:
            kernels.count_surplus(starts, most, self.grid.n, self._partials, self._out)
            # No more than there are too many in all: in a thin film every cell is too full.
            chance = min(-lacking / max(numbers_of(self._out)[0], 1.0), AT_ONCE if many else 1.0)
        kernels.drop_surplus(position, order, starts, room, most, chance, draw, self.grid.n)
        made = self._put(particles, velocity, phi, min(max(lacking, 0) * self.share, 1.0), draw)
        if lacking > 0:
            self.share = min(self.share * min(max(lacking / max(made, 1), 0.5), 2.0), 1.0)

    def fill_below(self, particles: Particles, phi, velocity) -> None:
        """Make all particles that a level set has room for, of the velocity on the faces; there were none."""
        self._put(particles, velocity, phi, EVERYWHERE, 0)

    def _put(self, particles: Particles, velocity, phi, likely: float, draw: int) -> int:
        """Put particles where they are wanted; how many."""
        places = self._places
        core = places.counts if self._core is None or not self._core.active else self._core.change
        where = (phi, likely, draw, core, *ground_of(self.grid, self.solids, places.nothing))
        position, _, _, order, starts, room = particles.arrays()
        self._kernels().count_in_depth(position, order, starts, room, places.counts, places.places, *where)
        return places.fill(particles, float_vector(self.grid.dim)(*(0.0,) * self.grid.dim), faces=velocity)

    @property
    def _cored(self) -> bool:
        """Whether there may be a core."""
        return self._core is not None and self._core.active

    def _kernels(self):
        return depth_kernels(self.grid.costly_loops, self.solids is not None, self._cored)
