"""The system and the residual of a box without solids, where NumPy sees the arrays: a direct solve needs no kernel."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from .._ti import ti
from ..boundaries.coefficients import BoundaryCoefficients
from .null_space import NullSpace
from .residual import ITERATIONS, MEAN, NORM, ROUNDING, RR, TARGET, Residual
from .system import LinearSystem
from .transforms import interior, values_of

_BLOCK = 1 << 16
"""Cells that NumPy works on at a time: what it makes of them stays in a cache."""

_LEAST_SHARE = 1 << 18
"""Cells from which waking a thread takes a small part of what it does for them."""


def set_box(system: LinearSystem, sides: BoundaryCoefficients) -> None:
    """Solve for all cells of a box: ``mark_box`` and ``set_diagonal`` of a system without solids, by NumPy."""
    ti.sync()
    diagonal = np.full(system.grid.shape, 2 * system.grid.dim, np.float32)
    for axis, wrap in enumerate(system.wrap):
        if not wrap:
            planes = np.moveaxis(diagonal, axis, 0)
            for side, at in ((0, 0), (1, -1)):
                planes[at] += sides.box[2 * axis + side] - 1
    diagonal += np.float32(sides.shift)
    inverse = np.divide(1, diagonal, out=np.zeros_like(diagonal), where=diagonal > 0)
    for array, inside in ((system.unknown, 1.0), (system.inv_diag, inverse)):
        values = values_of(array)
        values[:] = 0.0
        interior(system.grid, array)[...] = inside
        _wrap(system, values)


def _wrap(system: LinearSystem, values: np.ndarray) -> None:
    """Fill ghosts along periodic axes."""
    for axis, wrap in enumerate(system.wrap):
        if wrap:
            planes = np.moveaxis(values.reshape(system.grid.padded), axis, 0)
            planes[0], planes[-1] = planes[-2], planes[1]


class BoxResidual(Residual):
    """b - A x and the numbers of an iteration by NumPy, in planes of the padded arrays, on the CPU.

    A start has two kernels less to compile, and a step takes as long. A x is a sum of differences, as ``apply_at``
    has it, whose rounding is what limits the residual of a large grid.

    Args:
        system: A, whose unknowns are all cells of its grid.
        workers: Threads among which the planes are shared.
    """

    def __init__(self, system: LinearSystem, workers: int):
        super().__init__(system)
        self._residual, self._numbers = values_of(self.r), values_of(self.scalars)
        shape = system.grid.padded
        self._strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
        self._shares = max(min(workers, system.grid.shape[0], math.prod(system.grid.shape) // _LEAST_SHARE), 1)
        self._map = ThreadPoolExecutor(self._shares).map if self._shares > 1 else map
        self._closed = [False] * len(shape)

    def update(self, sides: BoundaryCoefficients) -> None:
        """Measure with these sides, of which each axis has two of a kind."""
        self.shift = sides.shift
        self._closed = [not wrap and sides.box[2 * axis] == 0 for axis, wrap in enumerate(self.system.wrap)]

    def _start(self, rhs, out, tolerance: float, null_space: NullSpace):
        self.measure(rhs, tolerance, null_space)
        return rhs, None

    def measure(self, rhs, tolerance: float, null_space: NullSpace) -> None:
        """Mean of the right-hand side, if the null space has it, what is left without it, and the residual to reach."""
        ti.sync()
        values, weight, mean, taken = interior(self.system.grid, rhs), null_space.mean_weight, np.float32(0.0), 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            if weight:
                mean = np.float32(self._sum(lambda at, end: _total(values[at:end])) * weight)
                taken = float(mean) ** 2 / weight
            square = self._sum(lambda at, end: _square(values[at:end] - mean))
            # What is left of a mean that was taken out may be nothing but rounding, and no answer is owed to that.
            if square <= ROUNDING * taken:
                square = 0.0
            self._numbers[[MEAN, NORM, TARGET, ITERATIONS]] = mean, square, tolerance**2 * square, 0.0

    def _size(self, x) -> float:
        ti.sync()
        values = interior(self.system.grid, x)
        return float(max(values.max(), -values.min()))

    def enqueue(self, rhs, x) -> None:
        """Compute the residual afresh, and wrap ``x`` along periodic axes."""
        ti.sync()
        x, rhs, mean = values_of(x), values_of(rhs), self._numbers[MEAN]
        _wrap(self.system, x)
        with np.errstate(over="ignore", invalid="ignore"):
            self._numbers[RR] = self._sum(lambda at, end: self._compute(x, rhs, mean, at + 1, end + 1))

    def _compute(self, x: np.ndarray, rhs: np.ndarray, mean: np.float32, begin: int, end: int) -> float:
        """The residual of padded planes ``begin`` to ``end``; the sum of its squares there."""
        grid, first, last = self.system.grid, begin * self._strides[0], end * self._strides[0]
        planes = (end - begin, *grid.padded[1:])
        r = self._residual[first:last]
        np.subtract(rhs[first:last], mean, out=r)
        if self.shift:
            r -= np.float32(self.shift) * x[first:last]
        room = np.empty(last - first + self._strides[0], np.float32)
        for axis, stride in enumerate(self._strides):
            across = np.subtract(x[first : last + stride], x[first - stride : last], out=room[: last - first + stride])
            below, above = across[:-stride], across[stride:]  # the lower and the upper face of each cell
            if self._closed[axis]:
                n = grid.shape[axis]
                for faces, at in ((below, 1), (above, n)):
                    place = at - begin if axis == 0 else at
                    if axis > 0 or begin <= at < end:
                        faces.reshape(planes)[(slice(None),) * axis + (place,)] = 0.0
            r += above
            r -= below
        return _square(r.reshape(planes)[(slice(None), *(slice(1, -1),) * (grid.dim - 1))])

    def _sum(self, work: Callable[[int, int], float]) -> float:
        """The sum of ``work(begin, end)`` over all planes of cells, a few at a time."""
        n, step = self.system.grid.shape[0], max(1, _BLOCK // self._strides[0])

        def share(k: int) -> float:
            with np.errstate(over="ignore", invalid="ignore"):
                lower, upper = (n * (k + i) // self._shares for i in range(2))
                return sum(work(begin, min(begin + step, upper)) for begin in range(lower, upper, step))

        return sum(self._map(share, range(self._shares)))


def _total(values: np.ndarray) -> float:
    """The sum, that of rows in f32 and that of the rows in f64."""
    return np.einsum("...i->...", values).sum(dtype=np.float64)


def _square(values: np.ndarray) -> float:
    """|values|², the sums of rows in f32 and that of the rows in f64."""
    return np.einsum("...i,...i->...", values, values).sum(dtype=np.float64)
