"""What inflows bring into a liquid: rows of particles, as many as flow in, and the velocity of the faces that these are among.

Behind a side the particles of an inflow lie in a lattice of its own, that of a full cell but drawn out or pressed together along
each edge of the inflow so that whole rows fill it. How far two rows lie from one another along the flow is what makes the amount
exact. One is let in whenever the flow at its place on the side has gone so far since the last.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .._ti import ti
from ..boundaries.patches import AREAS, require_finite, said_at, shares_of
from ..boundaries.profiles import Plane
from ..boundaries.sides import Profile, Side, velocity_of
from ..boundaries.solids import Solids
from ..boundaries.walls import Walls
from ..errors import NotFinite
from ..grid import Grid
from ..kernels import Array, IntArray, array_of, kernel_family
from .lattice import Ground, bare_solids, evenly, ground_of, lines_in, put_new
from .motion import CLEARANCE
from .particles import FULL, NOWHERE, PER_AXIS, Cloud, Particles, vector_at, zero_of
from .seeding import NEAREST, RIM, is_room_for
from .sides import Seams


class Entering(NamedTuple):
    """How many particles have been ``let_in``, and how many not: ``shut`` out by solids, and where others ``crowded`` their places."""

    let_in: int
    shut: int
    crowded: int


@kernel_family
def inlet_kernels(loops, given, wraps):
    Index, Point = loops.IntVector, loops.FloatVector

    @ti.kernel
    def let_in(
        position: Array,
        velocity: Array,
        affine: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        first: ti.i32,
        entering: Array,
        number: ti.i32,
        near: ti.f32,
        refused: IntArray,
        distance: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        period: Point,
    ):
        """Put particles behind the ``first`` so many; those for which there is no place are nowhere."""
        for i in range(number):
            ground = Ground(bare_solids(distance, n, origin, dx, period, wraps), given)
            cloud = Cloud(position, velocity, affine, order, starts, room)
            x, p = vector_at(entering, i, number, zero_of(n)), first + i
            if ground.is_free(x) == 0:
                ti.atomic_add(refused[0], 1)
                x[0] = ti.f32(NOWHERE)
            elif is_room_for(x, ti.min(ti.max(ti.cast(x, ti.i32) + 1, 1), n), cloud, near, ground.solids) == 0:
                ti.atomic_add(refused[1], 1)
                x[0] = ti.f32(NOWHERE)
            put_new(cloud, p, x, vector_at(entering, i + ti.static(loops.dim) * number, number, x))

    @ti.kernel
    def put(a: Array, where: IntArray, values: Array, scale: ti.f32):
        for i in range(where.shape[0]):
            a[where[i]] = scale * values[i]

    return let_in, put


def _share(middles: np.ndarray, width: float, low: float, high: float) -> np.ndarray:
    """How much of stretches with these middles, all of one width, lies between two ends."""
    return np.clip(np.minimum(middles + width / 2, high) - np.maximum(middles - width / 2, low), 0.0, width) / width


class Inlet:
    """An inflow through a side of the box, or through a part of it.

    Attributes:
        nearest: How far the nearest of its rows are apart, in cells.
        gone: How far the flow has gone since it let a row in at each place, in distances from row to row, -0.5 to 0.5.

    Args:
        grid: A staggered grid.
        axis: That the side is across.
        end: 0 for the lower side, 1 for the upper.
        side: What stands there.
        number: Of the patch of it that is the inflow.
    """

    def __init__(self, grid: Grid, axis: int, end: int, side: Side, number: int):
        self.grid, self.axis, self.end = grid, axis, end
        self._patch, self._part = side.patches[number], (None, *side.parts)[number]
        where = f"boundaries[{axis}][{end}]" + (f".parts[{number - 1}]" if number else "")
        self._what = f"{where}.velocity"
        self._planes = [Plane(grid, axis, end, k) for k in range(grid.dim)]
        self.along = [a for a in range(grid.dim) if a != axis]
        ends = [(0.0, grid.size[a]) for a in self.along]
        if self._part is not None:
            edges = zip(self._part.lower, self._part.upper, ends, strict=True)
            ends = [(max(low, 0.0), min(high, top)) for low, high, (_, top) in edges]
        self._ends = [(low / grid.dx, high / grid.dx) for low, high in ends]
        # The cells along each edge of the side that any of it lies in.
        self._inside = [np.arange(math.floor(low + 1e-6), math.ceil(high - 1e-6)) for low, high in self._ends]
        counts = [lines_in(high - low, grid.dim) for low, high in self._ends]
        self._rows = [evenly(*ends, count) for ends, count in zip(self._ends, counts, strict=True)]
        cells = zip(self._rows, self._inside, strict=True)
        self._cells = np.ix_(*(np.clip(rows.astype(int), each[0], each[-1]) - each[0] for rows, each in cells))
        widths = [(high - low) / count for (low, high), count in zip(self._ends, counts, strict=True)]
        self._spacing = 1.0 / (FULL[grid.dim] * math.prod(widths))
        self.nearest = min([self._spacing, *(each for each, count in zip(widths, counts, strict=True) if count > 1)])
        # How much of the stretches along its edges around the rows, and of the cells, is left by parts in its place.
        self._uncovered = np.ones(counts)
        for other in side.parts[number:]:
            each = zip(other.lower, other.upper, self._rows, widths, strict=True)
            shares = [_share(rows, width, low / grid.dx, high / grid.dx) for low, high, rows, width in each]
            self._uncovered *= 1.0 - functools.reduce(np.multiply.outer, shares)
        own = shares_of(side, self._planes[axis].places, axis, grid.dx, AREAS)[number]
        self._bare = np.squeeze(own, axis)[np.ix_(*self._inside)] > 0
        self.gone = np.zeros(counts)
        self._known: np.ndarray | None = None
        self._known_at = 0.0
        self.varies = any(profile.varies for profile in self._patch.profiles.values())

    def velocity(self, time: float) -> np.ndarray:
        """What it brings at a time, m/s, components first: at each cell of the side that any of it lies in.

        Raises:
            NotFinite: where that is no number, or leads out of the box.
        """
        if self._known is None or (self.varies and time != self._known_at):
            found = np.array([self._component(k, time) for k in range(self.grid.dim)])
            into = (1 - 2 * self.end) * found[self.axis]
            if (into < 0).any():
                raise NotFinite(
                    f"{self._what} leads out of the box at {-into.min():.4g} m/s at t = {time:.4g} s; a liquid flows in there, and leaves "
                    "through open sides."
                )
            self._known, self._known_at = found, time
        return self._known

    def _component(self, k: int, time: float) -> np.ndarray:
        told, dx = velocity_of(self._patch, k), self.grid.dx
        # An array of a component along the side has a number for each face that this lies on.
        by_faces = k != self.axis and isinstance(told, Profile) and not callable(told.compute)
        plane = self._planes[k if by_faces else self.axis]
        values = said_at(told, self._part, plane.places, self.axis, dx, time, self._what, AREAS)
        values = np.broadcast_to(values, np.broadcast_shapes(*(each.shape for each in plane.places)))
        if by_faces:
            values = 0.5 * sum(np.delete(values, last, k) for last in (0, -1))
        here: list[Any] = [*np.ix_(*self._inside)]
        here.insert(self.axis, 0)
        places = [
            x if a == self.axis else x.take(self._inside[self.along.index(a)], a)
            for a, x in enumerate(self._planes[self.axis].places)
        ]
        require_finite(np.expand_dims(values[tuple(here)], self.axis), places, time, self._what)
        return values[tuple(here)]

    def advance(self, time: float, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """Go on for ``dt`` seconds from a time on, and return what comes in meanwhile: positions in cells, and velocities, m/s; each row a particle."""
        grid, axis = self.grid, self.axis
        velocity = self.velocity(time + 0.5 * dt)[(slice(None), *self._cells)]
        into = (1 - 2 * self.end) * velocity[axis] * self._uncovered
        gone = self.gone + into * dt / (self._spacing * grid.dx)
        count = np.floor(gone + 0.5).astype(int)
        self.gone = gone - count
        which = np.repeat(np.arange(count.size), count.ravel())
        # Of those that come in at a place the last one has gone least.
        after = np.arange(len(which)) - np.repeat(np.cumsum(count.ravel()) - count.ravel(), count.ravel())
        depth = (self.gone.ravel()[which] + 0.5 + after) * self._spacing
        speeds = velocity.reshape(grid.dim, -1)[:, which]
        since = depth / np.maximum(into.ravel()[which], 1e-30)
        positions = np.empty((len(which), grid.dim))
        positions[:, axis] = depth if self.end == 0 else grid.shape[axis] - depth
        for a, rows in zip(self.along, np.meshgrid(*self._rows, indexing="ij"), strict=True):
            positions[:, a] = rows.ravel()[which] + speeds[a] * since
        return np.clip(positions, CLEARANCE, np.array(grid.shape) - CLEARANCE), speeds.T

    def layers(self, time: float, dt: float) -> np.ndarray:
        """In how many layers from the side on faces are among what comes in within ``dt`` seconds from a time on.

        At each cell of the side, first of faces across the flow, then of those along it; none where nothing comes in.
        """
        depth = np.abs(self.velocity(time + 0.5 * dt)[self.axis]) * self._bare * dt / self.grid.dx
        layers = np.ceil(np.array([depth + RIM, depth + RIM - 1.0])).astype(int)
        return np.where(depth > 0, np.minimum(layers, self.grid.shape[self.axis]), 0)

    def faces(self, time: float, layers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the faces are, in arrays of a velocity, in so many ``layers``, and how fast they are at a time, m/s."""
        grid, axis, velocity = self.grid, self.axis, self.velocity(time)
        places, values = [], []
        for k in range(grid.dim):
            # Numbers of cells, the first is 1, in which the faces lie; and cells of the side that say how fast they are.
            index, said, wanted = [np.empty(0, int)] * grid.dim, [], layers[int(k != axis)]
            depths = np.arange(wanted.max())
            index[axis] = 1 + depths if self.end == 0 else grid.shape[axis] - depths + (k == axis)
            for a, (low, high), inside in zip(self.along, self._ends, self._inside, strict=True):
                at = np.arange(grid.shape[a] + 1) if k == a else np.arange(grid.shape[a]) + 0.5
                beside = np.flatnonzero((at > low - RIM) & (at < high + RIM))
                index[a] = 1 + beside
                said.append(np.clip(at[beside].astype(int), inside[0], inside[-1]) - inside[0])
            flat = sum(i * s for i, s in zip(np.ix_(*index), grid.strides, strict=True)) + k * grid.cells
            own, most = (np.expand_dims(each[np.ix_(*said)], axis) for each in (velocity[k], wanted))
            driven = depths.reshape([-1 if a == axis else 1 for a in range(grid.dim)]) < most
            places.append(np.broadcast_to(flat, driven.shape)[driven])
            values.append(np.broadcast_to(own, driven.shape)[driven])
        return np.concatenate(places), np.concatenate(values)


class Inlets:
    """All inflows of a box.

    Args:
        grid: A staggered grid.
        walls: Its sides.
        solids: What stands in it, where it is now.

    Raises:
        ValueError: if anything flows out through one at time 0, or what does is no number.
    """

    def __init__(self, grid: Grid, walls: Walls, solids: Solids | None):
        self.grid, self._solids, self._seams = grid, solids, Seams(grid, walls)
        self.each = [
            Inlet(grid, axis, end, side, i)
            for axis, pair in enumerate(walls.sides)
            for end, side in enumerate(pair)
            for i, patch in enumerate(side.patches)
            if patch.kind.through == "given"
        ]
        for inlet in self.each:
            try:
                inlet.velocity(0.0)
            except NotFinite as error:
                raise ValueError(str(error)) from None
        self._entering, self._refused = ti.ndarray(ti.f32, 1), ti.ndarray(ti.i32, 2)
        nearest = [inlet.nearest for inlet in self.each]
        self._near = min([0.5 / PER_AXIS[grid.dim], *(NEAREST * each for each in nearest)])
        self._nothing, self._driven = ti.ndarray(ti.f32, 1), dict[int, tuple]()

    def drive(self, velocity, time: float, dt: float, kick=None) -> None:
        """Let the faces that are among what comes in have its velocity, m/s, and of a ``kick`` 0."""
        self.grid.require(self.grid.dim, velocity=velocity)
        put = self._kernels().put
        for i, inlet in enumerate(self.each):
            layers = inlet.layers(time, dt)
            known = i in self._driven and np.array_equal(self._driven[i][0], layers)
            if not layers.any():
                continue
            if inlet.varies or not known:
                where, values = inlet.faces(time + 0.5 * dt, layers)
                if known:
                    self._driven[i][2].from_numpy(np.float32(values))
                else:
                    ti.sync()  # what is dropped here may be in use
                    self._driven[i] = layers, array_of(where, ti.i32), array_of(values)
            put(velocity, *self._driven[i][1:], 1.0)
            if kick is not None:
                put(kick, *self._driven[i][1:], 0.0)

    def let_in(self, particles: Particles, time: float, dt: float) -> Entering:
        """Add what comes in within ``dt`` seconds from a time on; ``place`` before and ``sort`` after."""
        found = [inlet.advance(time, dt) for inlet in self.each]
        number = sum(len(positions) for positions, _ in found)
        if not number:
            return Entering(0, 0, 0)
        grid, first = self.grid, particles.count
        rows = np.concatenate([np.concatenate([each[part] for each in found]).T for part in (0, 1)])
        if self._entering.shape[0] < rows.size:
            self._entering = ti.ndarray(ti.f32, 2 * rows.size)
        values = np.zeros(self._entering.shape, np.float32)
        values[: rows.size] = rows.ravel()
        self._entering.from_numpy(values)
        self._refused.fill(0)
        particles.reserve(first + number)
        ground = ground_of(grid, self._solids, self._nothing, self._seams)
        where = self._entering, number, self._near, self._refused, *ground
        self._kernels().let_in(*particles.arrays(), first, *where)
        particles.count += number
        particles.scattered()
        shut, crowded = map(int, self._refused.to_numpy())
        return Entering(number - shut - crowded, shut, crowded)

    def clear(self) -> None:
        """Have let nothing in yet."""
        for inlet in self.each:
            inlet.gone[...] = 0.0

    def state(self) -> dict[str, np.ndarray]:
        """What it is between two steps."""
        return {f"inlet {i}": inlet.gone.copy() for i, inlet in enumerate(self.each)}

    def restore_state(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Be what ``state`` has found; what is missing has let nothing in yet."""
        for i, inlet in enumerate(self.each):
            gone = arrays.get(f"inlet {i}", np.zeros(inlet.gone.shape))
            if gone.shape != inlet.gone.shape:
                raise ValueError(f"liquid/inlet {i} is of another grid")
            inlet.gone = gone.astype(float)

    def _kernels(self):
        return inlet_kernels(self.grid.loops, self._solids is not None, self._seams.any)
