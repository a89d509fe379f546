"""The lattice in whose places particles are made: which of them are free, how many are wanted, and what is put there."""

import numpy as np

from .._ti import argument, ti, traced
from ..boundaries.solids import CutCells, Solids
from ..grid import Grid
from ..kernels import Array, float_vector, kernel_family
from ..kernels.layout import IntArray
from ..operators.interpolation import sample_velocity
from ..operators.noise import hash_01
from .motion import CLEARANCE, distance_at
from .particles import FULL, PER_AXIS, Particles, set_vector
from .sides import Seams

CELLS, SPREAD, FITTED = "cells", "spread", "fitted"
"""Lattices: the same in each cell; moved otherwise in each; and one of its own, whatever the cells are."""
LEAST = {2: 4, 3: 3}
MOST = {2: 144, 3: 128}
FEWER, FEWEST = {2: 14, 3: 12}, {2: 11, 3: 10}
"""Particles that a cell deep in the liquid has at least, and that any has at most, of 9 or 8 that make it full; at most while there
are more in all than there should be; and while there are ``SURPLUS`` more, a part of all. A drop that falls on a floor has ten times
as many in a cell for a while, as nothing presses on a film thinner than that: what is taken away there has no other place."""
SURPLUS = 0.005


DENSEST = {2: 5, 3: 3}
"""Places that a cell has at most along each axis, of any lattice."""


@argument
class Lattice:
    """Places as far apart along each axis as the ``spacing`` is, one of them ``at`` a position, in cells."""

    spacing: object
    at: object

    @ti.func
    def seed(self, I, place):
        """One of the places that a cell may have, and whether it has it."""
        x, rest, has, most = ti.cast(I - 1, ti.f32), place, ti.i32(1), ti.static(DENSEST[I.n])
        for axis in ti.static(range(I.n)):
            # What lies on the edge of two cells, but for rounding, is a candidate of both.
            first = ti.ceil((x[axis] - self.at[axis]) / self.spacing[axis] - ti.f32(1e-4))
            x[axis] = self.at[axis] + (first + ti.cast(rest % most, ti.f32)) * self.spacing[axis]
            has &= ti.cast(ti.cast(ti.floor(x[axis]), ti.i32) == I[axis] - 1, ti.i32)
            rest = rest // most
        return x, has


@argument
class Ground:
    """Where particles may be: outside of solids, where these are ``given``, and of a core, where there may be one.

    And which sides of the box are ``closed``, where that is asked.
    """

    solids: object
    given: object
    core: object = None
    cored: object = False
    closed: object = None

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
def bare_solids(distance, n, origin, dx, period, wraps):
    """Solids of which nothing but the distance to them is asked."""
    return CutCells(None, distance, None, None, n, origin, dx, period, wraps)


@ti.func
def seed_of(I, place, shift):
    """One of the places in a cell of a lattice that has been moved by ``shift``, in cells."""
    x, rest, along = ti.cast(I - 1, ti.f32), place, ti.static(PER_AXIS[I.n])
    for axis in ti.static(range(I.n)):
        at = (ti.cast(rest % along, ti.f32) + ti.f32(0.5)) * ti.f32(1.0 / PER_AXIS[I.n]) + shift[axis]
        x[axis] += at - ti.floor(at)
        rest = rest // along
    return x


def ground_of(grid: Grid, solids: Solids | None, nothing, seams: Seams) -> tuple:
    """What a kernel makes its ``Ground`` of; ``nothing`` is any array, for where there are no solids."""
    distance = nothing if solids is None else solids.distance
    return distance, grid.n, float_vector(grid.dim)(*grid.origin), grid.dx, seams.period


def lines_in(width: float, dim: int) -> int:
    """How many lines of places lie evenly in what is so many cells wide, as nearly as in full cells."""
    return max(round(width * PER_AXIS[dim]), 1)


def evenly(low: float, high: float, count: int) -> np.ndarray:
    """The middles of so many equal parts of a stretch."""
    return low + (np.arange(count) + 0.5) * (high - low) / count


def most_places(lattice: str, dim: int) -> int:
    """How many places of a lattice a cell may have."""
    return DENSEST[dim] ** dim if lattice == FITTED else FULL[dim]


@ti.func
def spread(c, shift):
    """A lattice's shift that differs from cell to cell, in cells."""
    here = shift
    for axis in ti.static(range(shift.n)):
        here[axis] += hash_01(ti.Vector([ti.cast(c, ti.i32), axis, 0]))
    return here


@argument
class Wanted:
    """What a cell wants: how many particles, and in which of the ``most`` places of its lattice, a bit each, where there are any."""

    counts: object
    places: object
    most: int


@ti.func
def count_wanted(c, I, s, wants: ti.template(), args: ti.template(), wanted, full):
    """No cell becomes more than ``full``: what is poured moves on between the places of the lattice.

    The last of ``args`` says whether a cell is asked at all.
    """
    cell, total, places = ti.cast(c, ti.i32), ti.i32(0), ti.i32(0)
    present = args[0].starts[cell + 1] - args[0].starts[cell]
    if args[2].asks(c, I, present, args[1]):
        for place in range(ti.static(wanted.most)):
            if present + total < full:
                if wants(c, I, place, *args) == 1:
                    total += ti.i32(1)
                    places |= ti.i32(1) << place
    wanted.counts[cell] = total
    if total > 0:
        wanted.places[cell] = places


@ti.func
def _make_wanted(c, I, s, offsets: IntArray, places: IntArray, maker):
    """Make those that ``count_wanted`` has counted, behind those of the cells before."""
    cell = ti.cast(c, ti.i32)
    p = maker.first + offsets[cell]
    if offsets[cell] < offsets[cell + 1]:
        for place in range(ti.static(maker.most(s.n))):
            if (places[cell] >> place) & 1 == 1:
                maker.make(p, maker.seed_at(c, I, place))
                p += ti.i32(1)


@ti.func
def put_new(arrays, p, x, v):
    """Let there be a particle at ``x``, in cells, of a velocity, m/s, whose derivatives are not known; ``arrays`` are a ``Cloud``'s."""
    set_vector(arrays.position, p, arrays.room, x)
    set_vector(arrays.velocity, p, arrays.room, v)
    for k in ti.static(range(x.n * x.n)):
        arrays.affine[p + k * arrays.room] = ti.f32(0.0)


@argument
class Maker:
    """Writes new particles behind the ``first`` so many, with a ``given`` velocity, or that of the faces where it is ``sampled``.

    They are put in places of a lattice that has been moved by ``shift``, in each cell otherwise where it is ``spread``, or of one
    with a ``spacing`` of its own.
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
    spacing: object
    lattice: str = CELLS

    def most(self, dim: int) -> int:
        """How many places a cell may have."""
        return most_places(self.lattice, dim)

    @ti.func
    def seed_at(self, c, I, place):
        """A place of the lattice in a cell, in cells."""
        seed = self.shift
        if ti.static(self.lattice == FITTED):
            seed, _ = Lattice(self.spacing, self.shift).seed(I, place)
        elif ti.static(self.lattice == SPREAD):
            seed = seed_of(I, place, spread(c, self.shift))
        else:
            seed = seed_of(I, place, self.shift)
        return seed

    @ti.func
    def make(self, p, x):
        """Make a particle."""
        v = self.given
        if ti.static(self.sampled):
            v = sample_velocity(self.faces, x + ti.f32(0.5), self.n)
        put_new(self, p, x, v)


@kernel_family
def making_kernels(loops, sampled, lattice):
    Index, Point = loops.IntVector, loops.FloatVector

    @ti.kernel
    def make(
        position: Array,
        velocity: Array,
        affine: Array,
        room: ti.i32,
        first: ti.i32,
        given: Point,
        faces: Array,
        n: Index,
        shift: Point,
        spacing: Point,
        offsets: IntArray,
        places: IntArray,
    ):
        maker = Maker(position, velocity, affine, room, first, given, faces, n, sampled, shift, spacing, lattice)
        loops.each_cell(n, _make_wanted, (offsets, places, maker))

    return (make,)


class Places:
    """The places of the lattice of one grid in which particles are wanted, and what is put there.

    Attributes:
        counts: How many each cell wants.
        places: Which, a bit each, for cells that want any.
        nothing: An array for what a kernel does not read.
    """

    def __init__(self, grid: Grid):
        self.grid = grid
        self.counts, self.places = ti.ndarray(ti.i32, grid.cells + 1), ti.ndarray(ti.i32, grid.cells + 1)
        self._offsets, self.nothing = ti.ndarray(ti.i32, grid.cells + 2), ti.ndarray(ti.f32, 1)
        self.counts.fill(0)

    def fill(self, particles: Particles, shift, *, faces=None, speed=None, lattice: str = CELLS, spacing=None) -> int:
        """Make what is wanted, in a lattice moved by ``shift``, with a ``speed`` or that of the ``faces``, m/s; how many.

        A ``FITTED`` lattice has a ``spacing``, and a place at ``shift``, in cells.
        """
        grid, first = self.grid, particles.count
        particles.grow(self.counts, self._offsets)
        if first < particles.count:
            arrays = particles.position, particles.velocity, particles.affine, particles.room, first
            given = float_vector(grid.dim)(*(0.0,) * grid.dim) if speed is None else speed
            kernels = making_kernels(grid.costly_loops, faces is not None, lattice)
            faces = self.nothing if faces is None else faces
            spacing = shift if spacing is None else spacing
            kernels.make(*arrays, given, faces, grid.n, shift, spacing, self._offsets, self.places)
        return particles.count - first
