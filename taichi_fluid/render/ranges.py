"""Limits of a colour map from the values that are shown: found on the device, smoothed from picture to picture."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._ti import argument, ti
from ..grid import Grid
from ..kernels import Array, float_vector, int_vector, kernel_family, largest, loop_shape, numbers_of, room_for_partials
from ..simulation.diagnostics import is_finite

SHRINK = 0.2
"""Part of the way that limits go at once when the values shown span less than before."""
_NONE = -3e38
"""Where a maximum starts."""
AXES = {0: (2, 1), 1: (0, 2), 2: (0, 1)}
"""Axes to the right and upwards in a plane perpendicular to each axis."""


class Plane(NamedTuple):
    """A plane of a grid, or the whole of a 2D grid, as the kernels walk over it."""

    axis: int  # it is perpendicular to this one; 2 in 2D
    place: float  # along that axis in cells, as interpolation counts them: the first cell's centre lies at 1
    horizontal: int  # axis to the right
    vertical: int  # axis upwards


def plane_of(grid: Grid, axis: int, position: float) -> Plane:
    """The plane perpendicular to ``axis`` at ``position``, from 0 to 1 along it."""
    if grid.dim == 2:
        return Plane(2, 0.0, 0, 1)
    return Plane(axis, 0.5 + position * grid.shape[axis], *AXES[axis])


@argument
class Flow:
    """A velocity in m/s, the shape of its grid, and the placement of its components."""

    velocity: object
    n: object
    on: object

    @ti.func
    def at(self, q):
        """The velocity at the point ``q`` of the index space of cells."""
        return self.on.sample(self.velocity, q, self.n)

    @ti.func
    def at_centre(self, c):
        """The velocity at the centre of a cell."""
        return self.on.at_centre(self.velocity, c, self.n)


@argument
class Layer:
    """A layer of cells: its lowest one, and the ways to the next to the right, up and in the layer above.

    ``fluid`` is 0 in cells inside solids, which do not count, if there are any.
    """

    fluid: object
    base: object
    ways: object
    has_solids: bool

    @ti.func
    def cell(self, I):
        """The cell at a place in the layer."""
        return self.base + I[0] * self.ways[0] + I[1] * self.ways[1]

    @ti.func
    def counts(self, cell, value):
        """Whether a value is that of fluid, and finite."""
        if ti.static(self.has_solids):
            return is_finite(value) and self.fluid[cell] != 0
        else:
            return is_finite(value)


@ti.func
def _extreme_at(c, I, s, layer, a: ti.template(), sign):
    """``sign`` times the value, the larger one of two neighbouring layers."""
    result = ti.f32(_NONE)
    for k in ti.static(range(2)):
        cell = layer.cell(I) + ti.static(k) * layer.ways[2]
        if layer.counts(cell, a[cell]):
            result = ti.max(result, sign * a[cell])
    return result


@ti.func
def _fastest_at(c, I, s, layer, flow, weights):
    """Square of the speed at the centre of a cell, each component times its weight."""
    cell = layer.cell(I)
    value = (flow.at_centre(cell) * weights).norm_sqr()
    return ti.select(layer.counts(cell, value), value, ti.f32(0.0))


@kernel_family
def range_kernels(loops, has_solids, dim, on):
    """Reductions over a plane: the loops are those of a 2D grid, the array is that of a grid of ``dim`` axes."""
    reduce_to, Size, Ways = loops.reduce_to, int_vector(2), int_vector(3)
    Index, Point = int_vector(dim), float_vector(dim)

    @ti.kernel
    def extremes(a: Array, fluid: Array, size: Size, base: ti.i32, ways: Ways, partials: Array, out: Array):
        """The largest value, and minus the smallest."""
        layer = Layer(fluid, base, ways, has_solids)
        reduce_to(out, 0, size, partials, ti.f32(_NONE), largest, _extreme_at, (layer, a, ti.f32(1.0)))
        reduce_to(out, 1, size, partials, ti.f32(_NONE), largest, _extreme_at, (layer, a, ti.f32(-1.0)))

    @ti.kernel
    def fastest(
        u: Array,
        n: Index,
        weights: Point,
        fluid: Array,
        size: Size,
        base: ti.i32,
        ways: Ways,
        partials: Array,
        out: Array,
    ):
        layer = Layer(fluid, base, ways, has_solids)
        reduce_to(out, 0, size, partials, ti.f32(0.0), largest, _fastest_at, (layer, Flow(u, n, on), weights))

    return extremes, fastest


class Ranges:
    """Measures what a plane of a grid shows.

    Args:
        grid: The grid.
        fluid: 0 in cells inside solids, which do not count; None without solids.
    """

    def __init__(self, grid: Grid, fluid=None):
        self.grid, self._fluid = grid, fluid
        self._partials, self._out = room_for_partials(), ti.ndarray(ti.f32, 2)
        self._nothing = ti.ndarray(ti.f32, 1)

    def _arguments(self, plane: Plane, layer: int, above: int) -> tuple:
        """As the kernels take them: the members of a ``Layer`` and its size."""
        grid, strides = self.grid, self.grid.strides
        size = int_vector(2)(grid.shape[plane.horizontal], grid.shape[plane.vertical])
        base = layer * strides[plane.axis] if grid.dim == 3 else 0
        ways = int_vector(3)(strides[plane.horizontal], strides[plane.vertical], above)
        return self._nothing if self._fluid is None else self._fluid, size, base, ways

    def _kernels(self):
        return range_kernels(loop_shape(2, serial=True), self._fluid is not None, self.grid.dim, self.grid.placement)

    def limits(self, values, plane: Plane) -> tuple[float, float]:
        """Smallest and largest finite value of a scalar on a plane; 0 and 0 if there is none."""
        self.grid.require(values=values)
        layer, above = 0, 0
        if self.grid.dim == 3:
            last = self.grid.shape[plane.axis]
            layer = min(max(int(plane.place), 1), last)
            above = self.grid.strides[plane.axis] if plane.place > layer and layer < last else 0
        self._kernels().extremes(values, *self._arguments(plane, layer, above), self._partials, self._out)
        high, negative_low = numbers_of(self._out)
        return (-negative_low, high) if high > 0.9 * _NONE else (0.0, 0.0)

    def fastest(self, velocity, plane: Plane) -> float:
        """Largest speed along a plane at the centres of its cells, m/s."""
        self.grid.require(self.grid.dim, velocity=velocity)
        dim = self.grid.dim
        layer = min(max(round(plane.place), 1), self.grid.shape[plane.axis]) if dim == 3 else 0
        weights = float_vector(dim)(*(float(axis in (plane.horizontal, plane.vertical)) for axis in range(dim)))
        arguments = self._arguments(plane, layer, 0)
        self._kernels().fastest(velocity, self.grid.n, weights, *arguments, self._partials, self._out)
        return numbers_of(self._out)[0] ** 0.5


class Smoothed:
    """Limits that take in what is larger at once and follow what is smaller slowly, so that colours do not flicker."""

    def __init__(self):
        self._key, self._moment = None, 0
        self.limits = (0.0, 0.0)

    def state(self) -> list:
        """What it remembers, ready for JSON."""
        return [self._key, self._moment, *self.limits]

    def restore_state(self, state: Sequence[Any]) -> None:
        """Be what ``state`` has found, and JSON made of it."""
        key, self._moment, *limits = state
        self._key, self.limits = _hashable(key), (float(limits[0]), float(limits[1]))

    def update(self, key, moment: int, low: float, high: float) -> tuple[float, float]:
        """The limits after values from ``low`` to ``high`` of what the ``key`` names, ``moment`` steps having been made.

        Under another key than before, or with fewer steps, they start anew; with as many they do not shrink.
        """
        if key != self._key or moment < self._moment:
            self.limits = (low, high)
        part = SHRINK if moment > self._moment else 0.0
        self._key, self._moment = key, moment
        before_low, before_high = self.limits
        self.limits = (
            low if low <= before_low else before_low + part * (low - before_low),
            high if high >= before_high else before_high + part * (high - before_high),
        )
        return self.limits


def _hashable(key):
    """A key as it was before JSON made lists of its tuples."""
    return tuple(map(_hashable, key)) if isinstance(key, list) else key
