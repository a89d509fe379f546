"""Spray, foam and bubbles: points made where a liquid is violent, that are seen and do nothing to it.

(Ihmsen, Akinci, Akinci, Teschner 2012, in a simple form.) They are made at the surface where a fast liquid closes in on
itself, and traps air, or its crests fly. What is above the surface then falls, what is on it goes along, and what is below
rises; on and below the surface they age.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._ti import argument, ti
from ..boundaries.solids import CutCells, Solids
from ..grid import Grid
from ..kernels import Array, float_vector, int_vector, kernel_family
from ..kernels.layout import IntArray
from ..operators.interpolation import inside_box, sample, sample_velocity, wrapped
from ..operators.noise import hash_01
from ..operators.vectors import length
from .motion import CLEARANCE, Motion, Way, distance_at, pushed_out
from .particles import NOWHERE, Particles, set_vector, vector_at, zero_of

RATES = {2: 2e3, 3: 1e5}
"""How many the most violent place makes in a second on a metre (2D) or a square metre of the surface."""
MOST_FAST, LEAST_CLOSING, MOST_CLOSING = 3.0, 0.1, 1.0
"""In speeds from which on there is foam: at which the most is made, and what neighbouring cells differ by at the least and
at the most."""
CREST = 0.6
"""How much of the velocity points out of the liquid where a crest breaks."""
SCATTER = 0.2
"""Part of its speed that a new one differs by from the liquid, at the most."""
NEAR = 0.5
"""Cells from the surface within which something floats on it."""
DRAG = 0.5
"""What air takes off the speed of spray, 1/s."""
RISE = 0.25
"""Speed of a bubble in water that is as large as bubbles are, m/s."""


@argument
class Surf:
    """A liquid where it makes foam: level set, velocity, and how violent it must be."""

    phi: object
    velocity: object
    n: object
    dx: object
    speed: object  # m/s, from which on there is foam
    expected: object  # of a cell in this step where it is most violent
    draw: object
    period: object = None  # of each axis, in cells, 0 where it has sides
    wraps: bool = False  # whether any axis has one

    @ti.func
    def level_at(self, c, s, axis):
        """The level set on both sides of a cell along an axis."""
        return self.phi[c - s[axis]], self.phi[c + s[axis]]

    @ti.func
    def flow_at(self, q):
        """Velocity at a point of the index space of cells, m/s."""
        p = wrapped(q, q * ti.f32(0.0) + ti.f32(0.5), self.period, self.wraps)
        return sample_velocity(self.velocity, inside_box(p, self.n), self.n)


@ti.func
def _part(x, least, most):
    """Where ``x`` stands between two ends: 0 to 1."""
    return ti.min(ti.max((x - least) / (most - least), ti.f32(0.0)), ti.f32(1.0))


@ti.func
def _made_by(c, I, s, surf):
    """How many a cell makes: the whole part of what is expected, and one more by chance."""
    made = ti.i32(0)
    if ti.abs(surf.phi[c]) < surf.dx:
        q = ti.cast(I, ti.f32)
        u = surf.flow_at(q)
        fast = length(u)
        closing, bend, outward = ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)
        for axis in ti.static(range(I.n)):
            before, after = surf.level_at(c, s, axis)
            bend += before + after - ti.f32(2.0) * surf.phi[c]
            outward += u[axis] * (after - before)
            for side in ti.static(range(2)):
                if ti.select(side == 1, after, before) < surf.dx:
                    other = q
                    other[axis] += ti.f32(2.0 * side - 1.0)
                    gone = u - surf.flow_at(other)
                    closing += length(gone) + gone[axis] * ti.f32(2.0 * side - 1.0)
        closing *= ti.f32(0.5 / I.n)
        energy = _part(fast * fast, surf.speed**2, (ti.f32(MOST_FAST) * surf.speed) ** 2)
        violent = _part(closing, ti.f32(LEAST_CLOSING) * surf.speed, ti.f32(MOST_CLOSING) * surf.speed)
        if outward > ti.f32(2.0 * CREST) * surf.dx * fast:
            violent += _part(bend / surf.dx, ti.f32(0.5), ti.f32(2.0))
        expected = surf.expected * energy * violent
        made = ti.cast(expected + hash_01(ti.Vector([ti.cast(c, ti.i32), surf.draw])), ti.i32)
    return made


@ti.func
def _count_made(c, I, s, surf, counts: IntArray):
    counts[ti.cast(c, ti.i32)] = _made_by(c, I, s, surf)


@argument
class Drops:
    """The arrays of a ``Foam``: where each is, in cells, how fast, m/s, and how long it has left, s."""

    position: object
    velocity: object
    life: object
    room: object


@ti.func
def _make_in_cell(c, I, s, surf, drops, offsets: IntArray, first, end, lasts):
    cell = ti.cast(c, ti.i32)
    for i in range(offsets[cell], offsets[cell + 1]):
        x = ti.cast(I - 1, ti.f32)
        stray = x * ti.f32(0.0)
        for axis in ti.static(range(I.n)):
            x[axis] += hash_01(ti.Vector([i, surf.draw, 2 * axis]))
            stray[axis] = ti.f32(2.0) * hash_01(ti.Vector([i, surf.draw, 2 * axis + 1])) - ti.f32(1.0)
        v = surf.flow_at(x + ti.f32(0.5))
        p = first + i
        if p < end:
            set_vector(drops.position, p, drops.room, x)
            set_vector(drops.velocity, p, drops.room, v + ti.f32(SCATTER) * length(v) * stray)
            drops.life[p] = lasts * (ti.f32(0.5) + hash_01(ti.Vector([i, surf.draw, -1])))


@ti.func
def _move_drop(p, drops, way, surf, solids, gravity, dt, has_solids: ti.template()):
    x = vector_at(drops.position, p, drops.room, zero_of(way.n))
    v = vector_at(drops.velocity, p, drops.room, x)
    life = drops.life[p]
    height = sample(surf.phi, 0, inside_box(x + ti.f32(0.5), way.n), way.n) / surf.dx
    flies = height > ti.f32(NEAR)
    if flies:
        v = (v + dt * gravity) * ti.exp(-ti.f32(DRAG) * dt)
    else:
        life -= dt
        v = way.shift_of(x) / way.step
        if height < ti.f32(-NEAR):
            v -= ti.f32(RISE) * gravity / ti.max(length(gravity), ti.f32(1e-6))
    goal = x + way.step * v
    y = way.kept(goal)
    if ti.static(has_solids):
        if y[0] > ti.f32(NOWHERE):
            for _ in range(2):  # in a corner out of one and then of the other
                y = pushed_out(solids, y, distance_at(solids, y))
            y = way.kept(y)
    if (flies and length(y - goal) > ti.f32(2.0 * CLEARANCE)) or way.leaves(goal) == 1:
        life = ti.f32(0.0)  # it has wetted a wall, or left
    if life <= 0:
        y[0] = ti.f32(NOWHERE)
    set_vector(drops.position, p, drops.room, y)
    set_vector(drops.velocity, p, drops.room, v)
    drops.life[p] = life


@kernel_family
def foam_kernels(loops, has_solids, wraps):
    Index, Point, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell
    Flags = int_vector(2 * loops.dim)

    @ti.kernel
    def count(
        phi: Array,
        velocity: Array,
        n: Index,
        dx: ti.f32,
        speed: ti.f32,
        expected: ti.f32,
        draw: ti.i32,
        period: Point,
        counts: IntArray,
    ):
        each_cell(n, _count_made, (Surf(phi, velocity, n, dx, speed, expected, draw, period, wraps), counts))

    @ti.kernel
    def make(
        phi: Array,
        velocity: Array,
        n: Index,
        dx: ti.f32,
        draw: ti.i32,
        position: Array,
        motion: Array,
        life: Array,
        room: ti.i32,
        offsets: IntArray,
        first: ti.i32,
        end: ti.i32,
        lasts: ti.f32,
    ):
        surf, drops = Surf(phi, velocity, n, dx, 0, 0, draw), Drops(position, motion, life, room)
        each_cell(n, _make_in_cell, (surf, drops, offsets, first, end, lasts))

    @ti.kernel
    def move(
        position: Array,
        motion: Array,
        life: Array,
        room: ti.i32,
        number: ti.i32,
        phi: Array,
        velocity: Array,
        n: Index,
        dx: ti.f32,
        leave: Flags,
        exits: IntArray,
        period: Point,
        gravity: Point,
        dt: ti.f32,
        distance: Array,
        origin: Point,
    ):
        for p in range(number):
            way, surf = (
                Way(velocity, n, dt / dx, leave, exits, period, wraps, ti.f32(0.5)),
                Surf(phi, velocity, n, dx, 0, 0, 0),
            )
            solids = CutCells(None, distance, None, None, n, origin, dx, period, wraps)
            _move_drop(p, Drops(position, motion, life, room), way, surf, solids, gravity, dt, has_solids)

    return count, make, move


class FoamParticles(Particles):
    """Particles that have a ``life``, s, in place of derivatives of a velocity."""

    life: Any

    @staticmethod
    def components(dim: int) -> dict[str, int]:
        """What each carries, and of how many numbers."""
        return {"position": dim, "velocity": dim, "life": 1}


class Foam:
    """Spray, foam and bubbles of a liquid on one grid.

    Attributes:
        particles: Where they are; ``particles.life`` is how long each has left, s.

    Args:
        grid: The grid.
        motion: What moves the liquid, and knows its sides: open ones let spray and foam out.
        solids: What stands in it.
    """

    def __init__(self, grid: Grid, motion: Motion, solids: Solids | None):
        self.grid, self.solids, self.particles = grid, solids, FoamParticles(grid)
        self._kernels = foam_kernels(grid.costly_loops, solids is not None, motion.seams.any)
        self._sides = *motion.exits, motion.seams.period
        self._counts, self._offsets = ti.ndarray(ti.i32, grid.cells + 1), ti.ndarray(ti.i32, grid.cells + 2)
        self._counts.fill(0)
        self._nothing = ti.ndarray(ti.f32, 1)

    @property
    def most(self) -> int:
        """How many there are at most: as many as cells."""
        return int(np.prod(self.grid.shape))

    def step(
        self,
        velocity,
        phi,
        *,
        dt: float,
        gravity: Sequence[float],
        amount: float,
        speed: float,
        lasts: float,
        draw: int,
    ) -> None:
        """Move what there is for ``dt`` seconds, and make more.

        Args:
            velocity: Of the liquid on the faces, m/s, continued beyond the surface.
            phi: Its level set, m.
            dt: Seconds.
            gravity: m/s².
            amount: How much is made; 1 is usual, and 0 nothing.
            speed: m/s, from which on a liquid makes foam.
            lasts: Seconds that what floats lives on average.
            draw: A whole number that decides what is left to chance.
        """
        grid, particles, kernels = self.grid, self.particles, self._kernels
        point = float_vector(grid.dim)
        distance = self._nothing if self.solids is None else self.solids.distance
        kernels.move(
            particles.position,
            particles.velocity,
            particles.life,
            particles.room,
            particles.count,
            phi,
            velocity,
            grid.n,
            grid.dx,
            *self._sides,
            point(*gravity),
            dt,
            distance,
            point(*grid.origin),
        )
        particles.sort()
        left = max(0.0, 1.0 - particles.count / self.most)
        expected = amount * left * RATES[grid.dim] * grid.dx ** (grid.dim - 1) * dt
        if not expected:
            return
        kernels.count(phi, velocity, grid.n, grid.dx, speed, expected, draw, self._sides[-1], self._counts)
        first = particles.count
        particles.grow(self._counts, self._offsets, self.most)
        if first < particles.count:
            arrays = (particles.position, particles.velocity, particles.life, particles.room)
            kernels.make(phi, velocity, grid.n, grid.dx, draw, *arrays, self._offsets, first, particles.count, lasts)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, int]]:
        """What it is between two steps: arrays, and numbers."""
        return self.particles.state()

    def restore_state(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, int]) -> None:
        """Be what ``state`` has found.

        Raises:
            ValueError: for arrays of other shapes.
        """
        self.particles.restore_state(arrays, numbers)
