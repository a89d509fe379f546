"""Where particles are made and taken away: on a lattice in each cell, in shapes, and where too few are left."""

import functools
import math
from collections.abc import Sequence

from .._ti import argument, ti
from ..boundaries.solids import Solids
from ..boundaries.walls import Walls
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
from ..operators.vectors import length
from .core import BELOW, Core, cover_of
from .lattice import (
    CELLS,
    FEWER,
    FEWEST,
    FITTED,
    LEAST,
    MOST,
    SURPLUS,
    Ground,
    Lattice,
    Places,
    Wanted,
    bare_solids,
    count_wanted,
    ground_of,
    most_places,
    seed_of,
)
from .motion import IN_CELL, away_from, distance_at
from .particles import FULL, NOWHERE, PER_AXIS, Cloud, Particles, set_vector, vector_at
from .refill import Refill
from .sides import Seams
from .spouts import fitted_lattice

NEAREST = 0.49
"""How near to a place of a lattice another particle may be, as part of the way to the nearest place beside it."""
AT_ONCE = 0.1
"""Part of the cells a fifth too full from which a step takes what they have too many, while there are ``SURPLUS`` more."""
EVERYWHERE = 2.0
"""What is more likely than all others."""
LOOKS = 8
"""Parts of its way in a step between which is looked whether what is poured has come through a source."""
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
    # How far the lattice that fills it has been moved, in cells, and, of one that is ``fitted``, how far apart its places are.
    shift: object = None
    spacing: object = None
    way: object = None  # of what is poured in a step, m
    fitted: bool = False

    @ti.func
    def seed(self, I, place):
        """A place of the lattice in a cell, whether it has that, and how near another particle may be."""
        seed, has, near = self.shift, ti.i32(1), ti.f32(0.5 / PER_AXIS[I.n])
        if ti.static(self.fitted):
            seed, has = Lattice(self.spacing, self.shift).seed(I, place)
            near = ti.min(near, ti.f32(NEAREST) * self.spacing.min())
        else:
            seed = seed_of(I, place, self.shift)
        return seed, has, near

    @ti.func
    def has(self, x):
        """Whether a point is inside."""
        return self.distance(x, self.a, self.b, self.radius) < 0

    @ti.func
    def fills(self, x):
        """Whether what is poured in a step and moves with that fills a point: one inside, or that what passes through in the step comes to."""
        inside = self.has(x)
        if ti.static(self.fitted):
            if not inside and not self.has(x - self.way):
                for k in range(1, LOOKS):
                    inside |= self.has(x - ti.cast(k, ti.f32) * ti.f32(1.0 / LOOKS) * self.way)
        return inside

    @ti.func
    def asks(self, c, I, present, ground):
        """Whether a cell needs particles, and any of it may be filled."""
        reach = ti.f32(IN_CELL[I.n]) * ground.solids.dx
        if ti.static(self.fitted):
            reach += length(self.way)
        x = ground.solids.origin + (ti.cast(I, ti.f32) - ti.f32(0.5)) * ground.solids.dx
        return ground.cored_at(c) == 0 and self.distance(x, self.a, self.b, self.radius) < reach


@ti.func
def _is_vacant(cloud, cell, seed, near):
    """Whether no particle of a cell is so ``near`` to a seed along all axes, in cells."""
    vacant = ti.i32(1)
    for i in range(cloud.starts[cell], cloud.starts[cell + 1]):
        way = ti.abs(vector_at(cloud.position, cloud.order[i], cloud.room, seed) - seed)
        if way.max() <= near:
            vacant = 0
    return vacant


@ti.func
def is_room_for(seed, I, cloud, near, solids):
    """Whether no particle is so ``near`` to a seed in the cell ``I`` along all axes, in cells; across seams too."""
    vacant, n = ti.i32(1), solids.n
    for around in range(ti.static(3**I.n)):
        J = neighbour(I, around)
        K = solids.across(J)
        if vacant == 1 and (ti.min(ti.max(K, 1), n) == K).all():
            vacant = _is_vacant(cloud, ti.cast(flat(K, strides_of(n)), ti.i32), seed + ti.cast(K - J, ti.f32), near)
    return vacant


@ti.func
def _wants_shape(c, I, place, cloud, ground, shape):
    seed, wanted, near = shape.seed(I, place)
    # As if places lay a little higher: of two rows on opposite sides of a box one lies in it, not neither.
    if wanted == 1 and shape.fills(ground.solids.origin + (seed + ti.f32(1e-3)) * ground.solids.dx):
        wanted = ground.is_free(seed)
        if wanted == 1:
            wanted = is_room_for(seed, I, cloud, near, ground.solids)
    else:
        wanted = ti.i32(0)
    return wanted


@argument
class Lack:
    """How likely a place is filled where a cell is not full, and what the chances of this step are drawn from.

    From ``EVERYWHERE`` on each place is filled that lies in the liquid; below 0 none, as there are too many elsewhere.
    """

    phi: object
    likely: object
    draw: object

    @ti.func
    def asks(self, c, I, present, ground):
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
    few = count < least and depth >= BELOW and lack.likely >= 0
    if lack.likely >= EVERYWHERE:
        few = sample(lack.phi, 0, inside_box(seed + ti.f32(0.5), ground.solids.n), ground.solids.n) < 0
    if few or (depth >= SHALLOW and hash_01(ti.Vector([cell, place, lack.draw])) < lack.likely):
        wanted = ground.is_free(seed) * _is_vacant(cloud, cell, seed, ti.f32(0.5 / PER_AXIS[I.n]))
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
def _drive_faces_at(c, I, s, u: Array, shape, speed, ground, given: ti.template()):
    """Faces of what a shape moves have its velocity; those in walls and solids do if what lies before them does."""
    for axis in ti.static(range(s.n)):
        x = ti.cast(I, ti.f32) - ti.f32(0.5)
        x[axis] -= ti.f32(0.5)
        x = ti.min(ti.max(x, ti.f32(0.0)), ti.cast(ground.n, ti.f32))
        if ti.static(given):
            away = distance_at(ground, x)
            if away < 0:
                x -= away * away_from(ground, x)
        if shape.distance(ground.origin + x * ground.dx, shape.a, shape.b, shape.radius) < ti.f32(RIM) * ground.dx:
            u[c + axis * cells_of(s, ground.n)] = speed[axis]


@kernel_family
def shape_kernels(loops, shape, given, cored, fitted, wraps):
    Index, Point, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell
    distance_of, most = SHAPES[shape], most_places(FITTED if fitted else CELLS, loops.dim)
    full = (2 if fitted else 1) * FULL[loops.dim]  # of lines that lie close a cell may have more

    @ti.kernel
    def count_in_shape(
        position: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        counts: IntArray,
        places: IntArray,
        shift: Point,
        spacing: Point,
        way: Point,
        a: Point,
        b: Point,
        radius: ti.f32,
        core: IntArray,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        period: Point,
    ):
        ground = Ground(bare_solids(distance, n, origin, dx, period, wraps), given, core, cored)
        cloud = Cloud(position, position, position, order, starts, room)
        args = (cloud, ground, Shape(distance_of, a, b, radius, shift, spacing, way, fitted))
        each_cell(n, count_wanted, (_wants_shape, args, Wanted(counts, places, most), full))

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
        period: Point,
    ):
        ground = bare_solids(distance, n, origin, dx, period, wraps)
        poured = Shape(distance_of, a, b, radius)
        loops.each_cell_in(n * 0, n + 2, n, _drive_faces_at, (velocity, poured, speed, ground, given))

    return count_in_shape, drive_in_shape, drive_faces


@kernel_family
def depth_kernels(loops, given, cored, wraps):
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
        period: Point,
    ):
        ground = Ground(bare_solids(distance, n, origin, dx, period, wraps), given, core, cored)
        cloud = Cloud(position, position, position, order, starts, room)
        args = (cloud, ground, Lack(phi, likely, draw))
        each_cell(n, count_wanted, (_wants_deep, args, Wanted(counts, places, FULL[loops.dim]), FULL[loops.dim]))

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
        walls: Its sides; left out, no axis is periodic.

    Attributes:
        share: Chance of a place for each particle that is lacking, by what the last step had room for.
    """

    def __init__(self, grid: Grid, solids: Solids | None, core: Core | None = None, walls: Walls | None = None):
        self.grid, self.solids, self._core, self._seams = grid, solids, core, Seams(grid, walls)
        self._places = Places(grid)
        self._partials, self._out = room_for_partials(), ti.ndarray(ti.f32, 1)
        # Kept with this grid: what is kept for all of them would keep a Taichi that has ended.
        self._fitted = functools.lru_cache(maxsize=64)(functools.partial(fitted_lattice, grid))
        self._refill = Refill(grid, solids, self._places, self._seams)
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
        dt: float | None = None,
    ) -> None:
        """Fill a shape, in metres, where no particles are, with such of a velocity, m/s; sort before and after.

        The places of the lattice go along with that velocity for ``time`` seconds: so what was put there before, and has
        gone on, is where the lattice is, and where it has left is as much room as has to be filled. For what is poured in
        ``dt`` seconds it has as many places in what passes through the shape as there is liquid in that.
        """
        dim, point, fitted = self.grid.dim, float_vector(self.grid.dim), dt is not None
        speed = velocity or (0.0,) * dim
        gone = [component * time / self.grid.dx for component in speed]
        if fitted:
            axis = max(range(dim), key=lambda k: abs(speed[k]))
            spacing, at = self._fitted(shape, tuple(a), tuple(b), radius, axis)
        else:
            spacing, at = (1.0,) * dim, (0.0,) * dim
        shift = point(*(x + math.fmod(way, apart) for x, way, apart in zip(at, gone, spacing, strict=True)))
        places, spacing, way = self._places, point(*spacing), point(*(component * (dt or 0.0) for component in speed))
        core, cored = cover_of(self._core, places.counts)
        kernels = shape_kernels(self.grid.costly_loops, shape, self.solids is not None, cored, fitted, self._seams.any)
        where = (
            point(*a),
            point(*b),
            radius,
            core,
            *ground_of(self.grid, self.solids, places.nothing, self._seams),
        )
        position, _, _, order, starts, room = particles.arrays()
        kernels.count_in_shape(position, order, starts, room, places.counts, places.places, shift, spacing, way, *where)
        lattice = FITTED if fitted else CELLS
        places.fill(particles, shift, speed=point(*speed), lattice=lattice, spacing=spacing)

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
        kernels = shape_kernels(grid.costly_loops, shape, self.solids is not None, self._cored, False, self._seams.any)
        arrays = (particles.position, particles.velocity, particles.affine, particles.room, particles.count)
        where = (point(*a), point(*b), radius, point(*grid.origin), grid.dx)
        kernels.drive_in_shape(*arrays, point(*velocity), *where)

    def drive_faces(
        self, faces, shape: str, a: Sequence[float], b: Sequence[float], radius: float, velocity: Sequence[float]
    ) -> None:
        """Set a velocity on the faces to ``velocity``, m/s, as far as what lies in a shape, in metres, is moved by it."""
        grid, point = self.grid, float_vector(self.grid.dim)
        grid.require(grid.dim, faces=faces)
        kernels = shape_kernels(grid.costly_loops, shape, self.solids is not None, self._cored, False, self._seams.any)
        kernels.drive_faces(
            faces,
            point(*velocity),
            point(*a),
            point(*b),
            radius,
            *ground_of(self.grid, self.solids, self._places.nothing, self._seams),
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
        made = self._put(particles, velocity, phi, min(lacking * self.share, 1.0), draw)
        if lacking > 0:
            self.share = min(self.share * min(max(lacking / max(made, 1), 0.5), 2.0), 1.0)

    def fill_below(self, particles: Particles, phi, velocity) -> None:
        """Make all particles that a level set has room for, of the velocity on the faces; there were none."""
        self._put(particles, velocity, phi, EVERYWHERE, 0)

    def _put(self, particles: Particles, velocity, phi, likely: float, draw: int) -> int:
        """Put particles where they are wanted; how many."""
        places = self._places
        core = places.counts if self._core is None or not self._core.active else self._core.change
        where = (phi, likely, draw, core, *ground_of(self.grid, self.solids, places.nothing, self._seams))
        position, _, _, order, starts, room = particles.arrays()
        self._kernels().count_in_depth(position, order, starts, room, places.counts, places.places, *where)
        return places.fill(particles, float_vector(self.grid.dim)(*(0.0,) * self.grid.dim), faces=velocity)

    @property
    def _cored(self) -> bool:
        """Whether there may be a core."""
        return self._core is not None and self._core.active

    def _kernels(self):
        return depth_kernels(self.grid.costly_loops, self.solids is not None, self._cored, self._seams.any)
