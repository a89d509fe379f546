"""What particles carry, on the faces of a grid, and back: APIC (Jiang et al. 2015) and FLIP (Zhu and Bridson 2005).

Nothing is added to a face by two threads at once: cells whose particles reach the same faces are not of one colour. On a
CPU a colour is every other slab of planes, on a GPU every third cell along each axis. So the sums are the same on any
number of threads.
"""

from .._ti import argument, ti
from ..boundaries.walls import Walls
from ..grid import Grid, Scratch
from ..kernels import (
    ARRAY_BITS,
    Array,
    Strip,
    address,
    cell_of_strip,
    cells_of,
    column,
    flat,
    int_vector,
    kernel_family,
    put_line,
    strides_of,
)
from ..kernels.layout import IntArray
from ..kernels.loops import BLOCK, position_in_box, rows_in
from ..operators.interpolation import blend, corner_weight, place_of, step_to_corner
from .films import find_films
from .motion import CLEARANCE
from .particles import NOWHERE, Cloud, Particles, vector_at, zero_of
from .sides import Seams

SLAB = 4
"""Planes in a slab: what its particles reach ends a plane before it and a plane behind it."""
LEAST_WEIGHT = 5 * CLEARANCE
"""Weights that sum to less on a face are none: what a particle just short of a whole cell away would say alone, or a layer of
them that lies on a floor, of the face above, which no pressure holds there."""


@ti.func
def face_place(x, axis: ti.template(), n):
    """The place of a position among the faces of a component."""
    q = x + ti.f32(0.5)
    q[axis] += ti.f32(0.5)
    return place_of(q, n)


@ti.func
def _scatter_particle(cloud, p, velocity: Array, weight: Array, n, dx):
    x = vector_at(cloud.position, p, cloud.room, zero_of(n))
    cells = cells_of(strides_of(n), n)
    for axis in ti.static(range(n.n)):
        place = face_place(x, axis, n)
        value = cloud.velocity[address(p + axis * cloud.room, ARRAY_BITS)]
        slope = zero_of(n)
        for k in ti.static(range(n.n)):
            slope[k] = dx * cloud.affine[address(p + (axis * ti.static(n.n) + k) * cloud.room, ARRAY_BITS)]
        value -= slope.dot(place.fraction)
        for corner in ti.static(range(2**n.n)):
            face = axis * cells + place.first + step_to_corner(corner, place.s)
            w, there = corner_weight(place.fraction, corner), value
            for k in ti.static(range(n.n)):
                if ti.static((corner >> k) & 1):
                    there += slope[k]
            velocity[face] = velocity[face] + w * there
            weight[face] = weight[face] + w


@ti.func
def _scatter_cell(c, cloud, velocity: Array, weight: Array, n, dx):
    for i in range(cloud.starts[c], cloud.starts[c + 1]):
        _scatter_particle(cloud, cloud.order[i], velocity, weight, n, dx)


@ti.func
def _scatter_slab(first, cloud, velocity: Array, weight: Array, n, dx):
    """The particles of the planes of a slab, from its ``first`` on."""
    s = strides_of(n)
    for plane in range(first, ti.min(first + SLAB, n[0] + 1)):
        begin = ti.cast(plane * s[0], ti.i32)
        for c in range(begin, begin + ti.cast(s[0], ti.i32)):
            _scatter_cell(c, cloud, velocity, weight, n, dx)


@ti.func
def _divide_at(velocity: Array, weight: Array, i):
    if weight[i] > LEAST_WEIGHT:
        velocity[i] = velocity[i] / weight[i]
    else:
        velocity[i] = ti.f32(0.0)
        weight[i] = ti.f32(0.0)


@argument
class _Given:
    """What particles are given: a velocity on the faces, one from before, how much of their own deviation from it is kept, and
    which cells are ``firm``.
    """

    velocity: object
    before: object
    n: object
    inv_dx: object
    kept: object
    firm: object


@argument
class _Corners:
    """Of the particles of a strip the ``base`` of the cell between whose faces each lies, where, what these have, and how ``firm``
    it is where they are.
    """

    base: object
    fraction: object
    values: object
    firm: object


@ti.func
def _place_particle(k, cloud, first, component, n, corners):
    """One that was taken away is there until all are sorted: what it is given does not matter."""
    at, s = zero_of(n), strides_of(n)
    for other in ti.static(range(n.n)):
        at[other] = cloud.position[cell_of_strip(address(first + other * cloud.room, ARRAY_BITS), k)]
    here = at[0] > ti.f32(0.5 * NOWHERE)
    base = ti.i32(0)
    for other in ti.static(range(n.n)):
        q = ti.select(here, at[other], ti.f32(0.5)) + ti.select(other == component, ti.f32(1.0), ti.f32(0.5))
        lowest = ti.min(ti.cast(q, ti.i32), n[other])
        corners.fraction[ti.i32(other), k] = q - ti.cast(lowest, ti.f32)
        base += lowest * ti.cast(s[other], ti.i32)
    corners.base[ti.i32(0), k] = base


@ti.func
def _read_firm(k, cloud, first, firm: Array, n, corners):
    c = ti.i32(0)
    for axis in ti.static(range(n.n)):
        x = cloud.position[cell_of_strip(address(first + axis * cloud.room, ARRAY_BITS), k)]
        c += (ti.min(ti.max(ti.cast(x, ti.i32), 0), n[axis] - 1) + 1) * ti.cast(strides_of(n)[axis], ti.i32)
    corners.firm[ti.i32(0), k] = firm[address(c, ARRAY_BITS)]


@ti.func
def _read_corners(k, a: Array, offset, s, corners):
    first = address(offset + corners.base[ti.i32(0), k], ARRAY_BITS)
    for corner in ti.static(range(corners.values.n)):
        corners.values[ti.i32(corner), k] = a[first + step_to_corner(corner, s)]


@ti.func
def _blend_particle(k, corners, out: ti.template(), line: ti.template()):
    out[ti.i32(line), k] = blend(column(corners.values, k), column(corners.fraction, k))


@ti.func
def _slope_particle(k, corners, inv_dx, out: ti.template()):
    """The value where a particle is, and below it what it is given of the derivatives along the axes.

    What it says of the faces around by one of these has the energy of its square times f (1 - f), at f of the way from face to face:
    found beside a face, where it costs nothing, it gains by moving away. Where many lie around a face that has no effect; in films drops
    were thrown out at 200 m/s. There it is given f (1 - f) of them.
    """
    values, fraction = column(corners.values, k), column(corners.fraction, k)
    slopes = ti.Matrix.zero(ti.f32, fraction.n, ti.static(corners.values.n // 2))
    for axis in ti.static(range(fraction.n - 1, -1, -1)):
        for corner in ti.static(range(2**axis)):
            slopes[axis, corner] = values[corner + 2**axis] - values[corner]
            values[corner] += fraction[axis] * slopes[axis, corner]
            for other in ti.static(range(axis + 1, fraction.n)):
                slopes[other, corner] += fraction[axis] * (slopes[other, corner + 2**axis] - slopes[other, corner])
    out[ti.i32(0), k] = values[0]
    firm = corners.firm[ti.i32(0), k]
    for axis in ti.static(range(fraction.n)):
        part = fraction[axis] * (ti.f32(1.0) - fraction[axis])
        out[ti.i32(axis + 1), k] = inv_dx * slopes[axis, 0] * (firm + (ti.f32(1.0) - firm) * part)


@ti.func
def _put_flipped(k, a: Array, first, values: ti.template(), kept):
    at = cell_of_strip(first, k)
    a[at] = values[ti.i32(0), k] + kept * (a[at] - values[ti.i32(1), k])


@ti.func
def _gather_strip(cloud, first, m, given, flips: ti.template(), width: ti.template()):
    """Give ``m`` particles from the ``first`` on what is theirs of the velocity."""
    n, inv_dx = given.n, given.inv_dx
    strip, s = Strip(first, n * 0, m, width), strides_of(given.n)
    corners = _Corners(strip.integers(1), strip.matrix(n.n), strip.matrix(2**n.n), strip.matrix(1))
    values, cells = strip.matrix(1 + n.n), cells_of(s, n)
    if ti.static(not flips):
        strip.each(_read_firm, (cloud, first, given.firm, n, corners))
    # Not static: what is sampled is much to compile.
    for axis in range(n.n):
        own, offset = address(first + axis * cloud.room, ARRAY_BITS), address(axis * cells, ARRAY_BITS)
        strip.each(_place_particle, (cloud, first, axis, n, corners))
        strip.each(_read_corners, (given.velocity, offset, s, corners))
        if ti.static(flips):
            strip.each(_blend_particle, (corners, values, 0))
            strip.each(_read_corners, (given.before, offset, s, corners))
            strip.each(_blend_particle, (corners, values, 1))
            strip.each(_put_flipped, (cloud.velocity, own, values, given.kept))
        else:
            strip.each(_slope_particle, (corners, inv_dx, values))
            strip.each(put_line, (cloud.velocity, own, values, 0))
            for k in ti.static(range(n.n)):
                row = address(first + (axis * ti.static(n.n) + k) * cloud.room, ARRAY_BITS)
                strip.each(put_line, (cloud.affine, row, values, k + 1))


@kernel_family
def scatter_kernels(loops, rows, serial):
    IntVector, dim = loops.IntVector, loops.dim

    @ti.kernel
    def add_colour(
        position: Array,
        carried: Array,
        affine: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        velocity: Array,
        weight: Array,
        n: IntVector,
        dx: ti.f32,
        colour: IntVector,
    ):
        cloud = Cloud(position, carried, affine, order, starts, room)
        if ti.static(rows):
            if ti.static(serial):
                ti.loop_config(serialize=True)
            for index in range(BLOCK * ((n[0] + 2 * SLAB - 1) // (2 * SLAB))):
                if index % BLOCK == 0:
                    first = 1 + SLAB * (2 * (index // BLOCK) + colour[0])
                    if first <= n[0]:
                        _scatter_slab(first, cloud, velocity, weight, n, dx)
        else:
            thirds = (n + 2) // 3
            for index in range(rows_in(n * 0, thirds) * thirds[dim - 1]):
                I = 3 * position_in_box(index, n * 0, thirds, dim - 1) + colour + 1
                if (n >= I).all():
                    _scatter_cell(ti.cast(flat(I, strides_of(n)), ti.i32), cloud, velocity, weight, n, dx)

    @ti.kernel
    def divide(velocity: Array, weight: Array, count: ti.i32):
        for i in range(count):
            _divide_at(velocity, weight, i)

    return add_colour, divide


@kernel_family
def gather_kernels(loops, flips):
    IntVector, width = loops.IntVector, loops.width

    @ti.kernel
    def gather(
        position: Array,
        carried: Array,
        affine: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        velocity: Array,
        before: Array,
        n: IntVector,
        inv_dx: ti.f32,
        kept: ti.f32,
        firm: Array,
        number: ti.i32,
    ):
        for index in range((number + width - 1) // width):
            first, given = index * ti.i32(width), _Given(velocity, before, n, inv_dx, kept, firm)
            cloud = Cloud(position, carried, affine, order, starts, room)
            _gather_strip(cloud, first, ti.min(number - first, ti.i32(width)), given, flips, width)

    return (gather,)


class Transfer:
    """Takes velocities from the particles of a grid to its faces and back.

    Args:
        grid: A staggered grid.
        scratch: Its first array to work in is that of ``find_firm``; made if it is left out.
        walls: Its sides; left out, no axis is periodic.
    """

    def __init__(self, grid: Grid, scratch: Scratch | None = None, walls: Walls | None = None):
        self._seams = Seams(grid, walls)
        self.grid, self._firm = grid, grid.array() if scratch is None else scratch.first
        self._kernels = scatter_kernels(grid.loops, grid.loops.rows, grid.costly_loops.serial)
        dim, colours = grid.dim, 2 if grid.loops.rows else 3
        count = colours if grid.loops.rows else colours**dim
        ints = int_vector(dim)
        self._colours = [ints(*(k // colours**axis % colours for axis in range(dim))) for k in range(count)]

    def to_faces(self, particles: Particles, velocity, weight) -> None:
        """Mean velocity of the particles around each face, with what each says of it there, m/s; 0 where there are none.

        Args:
            particles: Sorted.
            velocity: Of the grid; all of it is set, ghosts too.
            weight: Of the same length: the sum of the weights of the particles around each face.
        """
        grid = self.grid
        grid.require(grid.dim, velocity=velocity, weight=weight)
        velocity.fill(0.0)
        weight.fill(0.0)
        for colour in self._colours:
            self._kernels.add_colour(*particles.arrays(), velocity, weight, grid.n, grid.dx, colour)
        for sums in velocity, weight:
            self._seams.fold(sums, grid.dim)
        self._kernels.divide(velocity, weight, grid.dim * grid.cells)

    def find_firm(self, phi):
        """Where below a surface ``phi``, m, is no film, see ``find_films``: in an array that others work in too."""
        find_films(self.grid, phi, self._firm, self._seams)
        self._seams.mirror(self._firm)
        return self._firm

    def from_faces(self, particles: Particles, velocity, before=None, flip: float = 0.0, firm=None) -> None:
        """Give the particles the velocity where they are: APIC, or FLIP if ``before`` is given.

        Args:
            particles: Whose velocities are set; with APIC their derivatives too.
            velocity: On the faces, known all around the particles, m/s.
            before: What it was when the particles' own velocities made it; then they change by what has changed.
            flip: The part of their own deviation from ``before`` that they keep.
            firm: What ``find_firm`` says: particles of films are given less of the derivatives. Left out, there are no films.
        """
        grid = self.grid
        grid.require(grid.dim, velocity=velocity)
        kernels = gather_kernels(grid.loops, before is not None)
        if firm is None:
            firm = self._firm
            if before is None:
                firm.fill(1.0)
        given = velocity if before is None else before, grid.n, 1.0 / grid.dx, flip, firm
        kernels.gather(*particles.arrays(), velocity, *given, particles.count)
