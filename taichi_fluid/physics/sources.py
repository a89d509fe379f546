"""Sources: where smoke, heat, dye and motion enter."""

import math
from collections.abc import Sequence

import numpy as np

from .._ti import argument, loaded, ti
from ..grid import Grid
from ..kernels import Array, cells_of, float_vector, int_vector, kernel_family
from ..operators.noise import value_noise
from ..operators.shapes import cover_of, fitted

MOTTLE_SPEED = 6.0
"""How many of its own features the mottling of a source moves through in a second."""


@argument
class Region:
    """What a source covers: a shape at ``a`` and ``b``, whose ``cover`` is what ``operators.shapes.cover_of`` has of it.

    Along an axis with a ``period``, m, it is there again after that; 0 says that it is not. If it ``overlaps`` its own images, what two
    of them cover is not covered twice; else they may meet in a cell.
    """

    cover: object
    origin: object
    dx: object
    period: object
    overlaps: object
    a: object
    b: object
    radius: object

    @ti.func
    def centre_of(self, I):
        """Centre of a cell, m."""
        return self.origin + (ti.cast(I, ti.f32) - ti.f32(0.5)) * self.dx

    @ti.func
    def cover_at(self, x):
        """Fraction, of a cell around ``x``, that the shape and its images cover, and the way there from their ``a``."""
        images = ti.i32(1)
        for axis in ti.static(range(x.n)):
            if self.period[axis] > 0:
                images *= ti.i32(3)
        covered, way = ti.f32(0.0), x - self.a
        for image in range(images):
            y, rest = x, image
            for axis in ti.static(range(x.n)):
                if self.period[axis] > 0:
                    y[axis] += ti.cast(rest % ti.i32(3) - ti.i32(1), ti.f32) * self.period[axis]
                    rest = rest // ti.i32(3)
            part = self.cover(y, self.a, self.b, self.radius, ti.f32(1.0) / self.dx)
            if part > 0:
                covered = ti.select(self.overlaps == 1, ti.max(covered, part), covered + part)
                way = y - self.a
        return ti.min(covered, ti.f32(1.0)), way


@argument
class Mottle:
    """Patches in which a source emits: how strong they are, 0 to 1, how many in a metre, and how far they have moved."""

    strength: object
    frequency: object
    phase: object


@ti.func
def _add_rate_at(c, I, s, out: Array, offset, amount, region, mottle):
    here = loaded(region)
    covered, way = here.cover_at(here.centre_of(I))
    if covered > 0:
        noise = value_noise(way * mottle.frequency + mottle.phase)
        patch = ti.f32(1.0) + mottle.strength * (ti.f32(2.0) * noise - ti.f32(1.0))
        out[offset + c] = out[offset + c] + amount * covered * patch


@ti.func
def _raise_at(c, I, s, out: Array, offset, amount, region):
    here = loaded(region)
    covered, _ = here.cover_at(here.centre_of(I))
    if covered > 0:
        out[offset + c] = ti.max(out[offset + c], amount * covered)


@ti.func
def _drive_at(c, I, s, u: Array, target, n, region, collocated: ti.template()):
    here = loaded(region)
    for axis in ti.static(range(n.n)):
        x = here.centre_of(I)
        if ti.static(not collocated):
            x[axis] -= ti.f32(0.5) * here.dx
        covered, _ = here.cover_at(x)
        face = c + axis * cells_of(s, n)
        u[face] = u[face] + covered * (target[axis] - u[face])


@ti.func
def _decay_at(c, I, s, a: Array, offset, factor):
    a[offset + c] = a[offset + c] * factor


@ti.func
def _fade_at(c, I, s, a: Array, offset, amount):
    value = a[offset + c]
    a[offset + c] = value - ti.min(ti.max(value, -amount), amount)


@kernel_family
def source_kernels(loops, shape, collocated):
    IntVector, FloatVector, each_cell_in = loops.IntVector, loops.FloatVector, loops.each_cell_in
    cover = cover_of(shape)

    @ti.kernel
    def add_rate(
        out: Array, n: IntVector, lower: IntVector, upper: IntVector, offset: ti.i32, amount: ti.f32,
        origin: FloatVector, dx: ti.f32, period: FloatVector, overlaps: ti.i32, a: FloatVector, b: FloatVector, radius: ti.f32,
        strength: ti.f32, frequency: ti.f32, phase: FloatVector,
    ):  # fmt: skip
        region, mottle = Region(cover, origin, dx, period, overlaps, a, b, radius), Mottle(strength, frequency, phase)
        each_cell_in(lower, upper, n, _add_rate_at, (out, offset, amount, region, mottle))

    @ti.kernel
    def raise_to(
        out: Array, n: IntVector, lower: IntVector, upper: IntVector, offset: ti.i32, amount: ti.f32,
        origin: FloatVector, dx: ti.f32, period: FloatVector, overlaps: ti.i32, a: FloatVector, b: FloatVector, radius: ti.f32,
    ):  # fmt: skip
        region = Region(cover, origin, dx, period, overlaps, a, b, radius)
        each_cell_in(lower, upper, n, _raise_at, (out, offset, amount, region))

    @ti.kernel
    def drive(
        velocity: Array, n: IntVector, lower: IntVector, upper: IntVector, target: FloatVector,
        origin: FloatVector, dx: ti.f32, period: FloatVector, overlaps: ti.i32, a: FloatVector, b: FloatVector, radius: ti.f32,
    ):  # fmt: skip
        region = Region(cover, origin, dx, period, overlaps, a, b, radius)
        each_cell_in(lower, upper, n, _drive_at, (velocity, target, n, region, collocated))

    return {"add_rate": add_rate, "raise_to": raise_to, "drive": drive}


@kernel_family
def decay_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def decay(a: Array, n: IntVector, offset: ti.i32, factor: ti.f32):
        each_cell(n, _decay_at, (a, offset, factor))

    @ti.kernel
    def fade(a: Array, n: IntVector, offset: ti.i32, amount: ti.f32):
        each_cell(n, _fade_at, (a, offset, amount))

    return {"decay": decay, "fade": fade}


class Emitter:
    """A shape on a grid, through which quantities enter.

    Args:
        grid: The grid.
        shape: One of ``operators.shapes.SHAPES``.
        a: Centre; of a capsule or a cylinder one end. Metres.
        b: Half edges of a box, other end of a capsule or a cylinder; unused by a sphere. Metres.
        radius: Of a sphere, capsule or cylinder. Metres.
        mottle: 0 emits evenly; up to 1 in patches that come and go, the mean rate staying the same.
        mottle_size: Size of a patch in metres.
        periodic: Per axis, whether what reaches out of the box on one side reaches in on the other; none when left out.

    Raises:
        ValueError: for ends that are further apart along a periodic axis than two lengths of the box.
    """

    def __init__(
        self, grid: Grid, shape: str, a: Sequence[float], b: Sequence[float], radius: float,
        mottle: float = 0.0, mottle_size: float = 0.1, periodic: Sequence[bool] = (),
    ):  # fmt: skip
        self.grid = grid
        self._kernels = source_kernels(grid.loops, shape, grid.collocated)
        self._mottle, self._frequency = mottle, 1.0 / mottle_size
        between_ends = shape in ("capsule", "cylinder")
        points = [list(a), list(b)] if between_ends else [list(a)]
        lower, upper, period, overlaps = [], [], [], False
        for axis, (origin, size, cells) in enumerate(zip(grid.origin, grid.size, grid.shape, strict=True)):
            reach = b[axis] if shape == "box" else radius
            low, high = min(p[axis] for p in points), max(p[axis] for p in points)
            wraps = bool(periodic) and periodic[axis]
            if wraps:
                if high - low > 2 * size:
                    raise ValueError(
                        f"the ends of a {shape} are {high - low:g} m apart along axis {axis}, which is periodic after "
                        f"{size:g} m; they may be twice that apart"
                    )
                overlaps = overlaps or high - low + 2 * reach > (1 + 1e-6) * size
                rounds = size * math.floor((0.5 * (low + high) - origin) / size)
                low, high = low - rounds, high - rounds
                for point in points:
                    point[axis] -= rounds
            first, end = (
                math.floor((low - reach - origin) / grid.dx) - 1,
                math.ceil((high + reach - origin) / grid.dx) + 3,
            )
            crosses = wraps and (first < 1 or end > cells + 1)
            period.append(size if crosses else 0.0)
            lower.append(1 if crosses else min(max(first, 1), cells))
            upper.append(cells + 1 if crosses else max(min(end, cells + 1), lower[-1]))
        ints, floats = int_vector(grid.dim), float_vector(grid.dim)
        self._where = (grid.n, ints(*lower), ints(*upper))
        self._cells = tuple(slice(first - 1, end - 1) for first, end in zip(lower, upper, strict=True))
        self._crosses, self._points, self._half_edges = any(period), points, b if shape == "box" else None
        a, b = points if between_ends else (points[0], b)
        self._shape = (floats(*grid.origin), grid.dx, floats(*period), int(overlaps), floats(*a), floats(*b), radius)
        wide, self._counts = fitted(shape, grid.dim, math.dist(a, b) / grid.dx, radius / grid.dx)
        self._fitted = (*self._shape[:-1], grid.dx * wide)

    def reaches(self, free: np.ndarray) -> bool:
        """Whether the shape covers a part of any cell that is ``free``, an array over the grid's cells; in doubt, it does."""
        if self._crosses:
            return True
        near, a, b = np.argwhere(free[self._cells]), np.array(self._points[0]), np.array(self._points[-1])
        away = self.grid.origin + (near + [cells.start + 0.5 for cells in self._cells]) * self.grid.dx - a
        if self._half_edges is not None:
            distance = (np.abs(away) - self._half_edges).max(axis=1)
        else:  # a cylinder lies in the capsule of its ends
            along = np.clip(away @ (b - a) / max((b - a) @ (b - a), 1e-20), 0.0, 1.0)
            distance = np.linalg.norm(away - np.outer(along, b - a), axis=1) - self._shape[-1]
        return bool((distance < 0.5 * self.grid.dx).any())

    def add(self, array, rate: float, dt: float, time: float = 0.0, offset: int = 0) -> None:
        """Add ``rate · dt`` to each cell that the shape covers, in part where in part: ``rate · dt`` times its volume. ``time`` moves the mottling."""
        self.grid.require(None, offset, array=array)
        drift = [time * MOTTLE_SPEED * (1.0 - 0.37 * axis) for axis in range(self.grid.dim)]
        phase = float_vector(self.grid.dim)(*drift)
        self._kernels.add_rate(
            array, *self._where, offset, rate * dt * self._counts, *self._fitted, self._mottle, self._frequency, phase
        )

    def paint(self, array, amount: float, offset: int = 0) -> None:
        """Raise each cell to at least ``amount`` times its covered fraction; to do it twice is to do it once."""
        self.grid.require(None, offset, array=array)
        self._kernels.raise_to(array, *self._where, offset, amount, *self._shape)

    def push(self, velocity, change: Sequence[float]) -> None:
        """Add ``change`` to the velocity, m/s, where the shape covers the place of a component; in part where in part."""
        self.grid.require(self.grid.dim, velocity=velocity)
        dim, rest = self.grid.dim, self._shape[1:]
        even = (0.0, self._frequency, float_vector(dim)(*[0.0] * dim))
        for axis, amount in enumerate(change):
            # A component is a quantity like any other, half a cell below the centres where the grid is staggered.
            below = [0.5 * self.grid.dx * (a == self.grid.place(axis)) for a in range(dim)]
            origin = float_vector(dim)(*(x - y for x, y in zip(self.grid.origin, below, strict=True)))
            self._kernels.add_rate(velocity, *self._where, axis * self.grid.cells, amount, origin, *rest, *even)

    def drive(self, velocity, target: Sequence[float]) -> None:
        """Set the velocity to ``target``, m/s, where the shape covers the place of a component; in part where in part."""
        self.grid.require(self.grid.dim, velocity=velocity)
        self._kernels.drive(velocity, *self._where, float_vector(self.grid.dim)(*target), *self._shape)


def dab_over_stroke(a: Sequence[float], b: Sequence[float], radius: float) -> float:
    """Volume (in 2D: area) of a ball over that of the capsule that it sweeps on its way from ``a`` to ``b``; 1 at rest."""
    return 1.0 / (1.0 + (2.0 / math.pi if len(a) == 2 else 0.75) * math.dist(a, b) / radius)


def decay(grid: Grid, array, rate: float, dt: float, offset: int = 0) -> None:
    """Let a scalar fade: multiply by exp(-rate · dt). ``rate`` in 1/s."""
    grid.require(None, offset, array=array)
    decay_kernels(grid.loops).decay(array, grid.n, offset, math.exp(-rate * dt))


def kept_of_source(rate: float, dt: float) -> float:
    """What part of what comes in evenly in ``dt`` is left at its end, if all decays at ``rate`` in 1/s from when it is there."""
    return -math.expm1(-rate * dt) / (rate * dt) if rate * dt > 0 else 1.0


def fade(grid: Grid, array, rate: float, dt: float, offset: int = 0) -> None:
    """Take rate · dt off the size of every value, down to 0. ``rate`` in the unit of the values over s."""
    grid.require(None, offset, array=array)
    decay_kernels(grid.loops).fade(array, grid.n, offset, rate * dt)
