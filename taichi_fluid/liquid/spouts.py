"""Lattices that sources pour particles in: such that as much is poured as the opening and the speed of a source say.

A lattice of cells has whole lines along the flow in an opening, of 5.5 cells those of 6, and pours as much. Here lines lie evenly
in the opening, and how far two places lie from one another along them is what makes the amount exact.
"""

import math
from typing import NamedTuple

import numpy as np

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, array_of, float_vector, kernel_family
from ..operators.shapes import SHAPES, extent_of
from .lattice import DENSEST, evenly, lines_in
from .particles import FULL, vector_at

FINE = {2: 512, 3: 96}
"""Lines across an opening, along each of its edges, by which its area is found, and places along each by which what it hits."""


class FittedLattice(NamedTuple):
    """Places so far apart along each axis, of which one is ``at`` a position; in cells."""

    spacing: tuple[float, ...]
    at: tuple[float, ...]


@kernel_family
def hit_kernels(loops, shape):
    Point, distance_of = loops.FloatVector, SHAPES[shape]

    @ti.kernel
    def measure(points: Array, out: Array, a: Point, b: Point, radius: ti.f32):
        for i in range(out.shape[0]):
            out[i] = distance_of(vector_at(points, i, out.shape[0], a), a, b, radius)

    return (measure,)


def fitted_lattice(
    grid: Grid, shape: str, a: tuple[float, ...], b: tuple[float, ...], radius: float, axis: int
) -> FittedLattice:
    """The lattice in which a shape of ``operators.shapes``, in metres, pours along an axis; a place of it is in its middle there."""
    dim, (low, high) = grid.dim, extent_of(shape, np.array(a), np.array(b), radius)

    def hit(lines: list[np.ndarray]) -> float:
        """Which part of the lines at these coordinates across the flow hit the shape."""
        axes = [*lines[:axis], evenly(low[axis], high[axis], FINE[dim]), *lines[axis:]]
        points = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")])
        out = array_of(np.zeros(points.shape[1]))
        point = float_vector(dim)
        hit_kernels(grid.loops, shape).measure(array_of(points), out, point(*a), point(*b), radius)
        inside = (out.to_numpy() < 0).reshape([len(each) for each in axes])
        return float(inside.any(axis=axis).mean())

    across = [k for k in range(dim) if k != axis]
    widths = [(high[k] - low[k]) / grid.dx for k in across]
    counts = [lines_in(width, dim) for width in widths]
    fine = [evenly(low[k], high[k], FINE[dim]) for k in across]
    area = hit(fine) * math.prod(widths)
    lines = hit([evenly(low[k], high[k], count) for k, count in zip(across, counts, strict=True)]) * math.prod(counts)
    spacing, at = np.empty(dim), (0.5 * (low + high) - np.array(grid.origin)) / grid.dx
    for k, width, count in zip(across, widths, counts, strict=True):
        # One line alone has none beside it, wherever else it would be.
        spacing[k] = width / count if count > 1 else max(width, 1.0)
        at[k] += 0.5 * spacing[k] * (1 - count % 2)
    spacing[axis] = max(lines, 1.0) / (max(area, 1e-6) * FULL[dim])
    spacing = np.clip(spacing, 1.0 / DENSEST[dim], 1e6)
    return FittedLattice(tuple(spacing.tolist()), tuple(at.tolist()))
