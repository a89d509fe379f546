"""Limits of a colour map from the values that are shown: found on the device, smoothed from picture to picture."""

from typing import NamedTuple

from .._ti import ti
from ..grid import Grid
from ..kernels import PARTIALS, Array, kernel_family, largest, loop_shape
from ..simulation.diagnostics import is_finite

SHRINK = 0.2
"""Part of the way that limits go at once when the values shown span less than before."""
_NONE = -3e38
"""Where a maximum starts."""
AXES = {0: (2, 1), 1: (0, 2), 2: (0, 1)}
"""Axes to the right and upwards in a plane perpendicular to each axis."""


class Plane(NamedTuple):
    """A plane of a grid, or the whole of a 2D grid, as the kernels walk over it.

    Attributes:
        axis: It is perpendicular to; 2 in 2D.
        place: Along that axis in cells, as interpolation counts them: the first cell's centre lies at 1.
        horizontal, vertical: Axes to the right and upwards.
    """

    axis: int
    place: float
    horizontal: int
    vertical: int


def plane_of(grid: Grid, axis: int, position: float) -> Plane:
    """The plane perpendicular to ``axis`` at ``position``, from 0 to 1 along it."""
    if grid.dim == 2:
        return Plane(2, 0.0, 0, 1)
    return Plane(axis, 0.5 + position * grid.shape[axis], *AXES[axis])


@ti.func
def _extreme_at(
    c, I, s, a: ti.template(), fluid: ti.template(), base, right, upward, above, sign, has_solids: ti.template()
):
    """``sign`` times the value, the larger one of two neighbouring layers; cells inside solids do not count."""
    result = ti.f32(_NONE)
    for layer in ti.static(range(2)):
        cell = base + I[0] * right + I[1] * upward + ti.static(layer) * above
        value = sign * a[cell]
        if ti.static(has_solids):
            if fluid[cell] == 0:
                value = ti.f32(_NONE)
        if is_finite(value):
            result = ti.max(result, value)
    return result


@ti.func
def _fastest_at(
    c,
    I,
    s,
    u: ti.template(),
    fluid: ti.template(),
    base,
    right,
    upward,
    above,
    n,
    weights,
    has_solids: ti.template(),
    on: ti.template(),
):
    """Square of the speed at the centre of a cell, each component times its weight."""
    cell = base + I[0] * right + I[1] * upward
    v = on.at_centre(u, cell, n) * weights
    value = v.norm_sqr()
    if ti.static(has_solids):
        if fluid[cell] == 0:
            value = ti.f32(0.0)
    if not is_finite(value):
        value = ti.f32(0.0)
    return value


@kernel_family
def range_kernels(loops, has_solids, dim, on):
    """Reductions over a plane: the loops are those of a 2D grid, the array is that of a grid of ``dim`` axes."""
    reduce_to, PlaneShape = loops.reduce_to, loops.IntVector
    Shape, Weights = ti.types.vector(dim, ti.i32), ti.types.vector(dim, ti.f32)

    @ti.kernel
    def extremes(
        a: Array, fluid: Array, n: PlaneShape, base: ti.i32, right: ti.i32, upward: ti.i32, above: ti.i32,
        partials: Array, out: Array,
    ):  # fmt: skip
        reduce_to(
            out, 0, n, partials, ti.f32(_NONE), largest, _extreme_at,
            (a, fluid, base, right, upward, above, ti.f32(1.0), has_solids),
        )  # fmt: skip
        reduce_to(
            out, 1, n, partials, ti.f32(_NONE), largest, _extreme_at,
            (a, fluid, base, right, upward, above, ti.f32(-1.0), has_solids),
        )  # fmt: skip

    @ti.kernel
    def fastest(
        u: Array, fluid: Array, n: PlaneShape, base: ti.i32, right: ti.i32, upward: ti.i32, above: ti.i32,
        shape: Shape, weights: Weights, partials: Array, out: Array,
    ):  # fmt: skip
        reduce_to(
            out, 0, n, partials, ti.f32(0.0), largest, _fastest_at,
            (u, fluid, base, right, upward, above, shape, weights, has_solids, on),
        )  # fmt: skip

    return {"extremes": extremes, "fastest": fastest, "Weights": Weights}


class Ranges:
    """Measures what a plane of a grid shows.

    Args:
        grid: The grid.
        fluid: 0 in cells inside solids, which do not count; None without solids.
    """

    def __init__(self, grid: Grid, fluid=None):
        self.grid, self._fluid = grid, fluid
        self._partials, self._out = ti.ndarray(ti.f32, PARTIALS), ti.ndarray(ti.f32, 2)
        self._nothing = ti.ndarray(ti.f32, 1)

    def _arguments(self, plane: Plane, layer: int, above: int) -> tuple:
        grid, strides = self.grid, self.grid.strides
        n = ti.types.vector(2, ti.i32)(grid.shape[plane.horizontal], grid.shape[plane.vertical])
        base = layer * strides[plane.axis] if grid.dim == 3 else 0
        return n, base, strides[plane.horizontal], strides[plane.vertical], above

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
        fluid = self._nothing if self._fluid is None else self._fluid
        arguments = self._arguments(plane, layer, above)
        self._kernels().extremes(values, fluid, *arguments, self._partials, self._out)
        high, negative_low = map(float, self._out.to_numpy())
        return (-negative_low, high) if high > 0.9 * _NONE else (0.0, 0.0)

    def fastest(self, velocity, plane: Plane) -> float:
        """Largest speed along a plane at the centres of its cells, m/s."""
        self.grid.require(self.grid.dim, velocity=velocity)
        dim = self.grid.dim
        layer = min(max(round(plane.place), 1), self.grid.shape[plane.axis]) if dim == 3 else 0
        weights = [float(axis in (plane.horizontal, plane.vertical)) for axis in range(dim)]
        fluid, kernels = self._nothing if self._fluid is None else self._fluid, self._kernels()
        kernels.fastest(
            velocity, fluid, *self._arguments(plane, layer, 0), self.grid.n, kernels.Weights(*weights), self._partials,
            self._out,
        )  # fmt: skip
        return float(self._out[0]) ** 0.5


class Smoothed:
    """Limits that take in what is larger at once and follow what is smaller slowly, so that colours do not flicker."""

    def __init__(self):
        self._key, self._moment = None, 0
        self.limits = (0.0, 0.0)

    def update(self, key, moment: int, low: float, high: float) -> tuple[float, float]:
        """The limits after values from ``low`` to ``high``.

        Args:
            key: What is measured; under another key than before the limits start anew.
            moment: Number of steps made; with fewer than before they start anew, with as many they do not shrink.
            low: Smallest value.
            high: Largest value.
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
