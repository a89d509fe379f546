"""Values at points: linear interpolation, as the engine looks up what it carries."""

from typing import Any

import numpy as np

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, array_of, kernel_family
from ..operators.interpolation import sample


@ti.func
def _point_at(points: Array, i, n):
    q = ti.cast(n, ti.f32)
    for axis in ti.static(range(n.n)):
        q[axis] = points[i * n.n + axis]
    return q


@kernel_family
def sample_kernels(loops, on):
    IntVector = loops.IntVector

    @ti.kernel
    def sample_scalar(a: Array, offset: ti.i32, points: Array, count: ti.i32, n: IntVector, out: Array):
        for i in range(count):
            out[i] = sample(a, offset, _point_at(points, i, n), n)

    @ti.kernel
    def sample_velocity(u: Array, points: Array, count: ti.i32, n: IntVector, out: Array):
        for i in range(count):
            v = on.sample(u, _point_at(points, i, n), n)
            for axis in ti.static(range(n.n)):
                out[i * n.n + axis] = v[axis]

    return sample_scalar, sample_velocity


def sampler(grid: Grid):
    """The kernels that sample a scalar and a velocity of a grid."""
    return sample_kernels(grid.loops, grid.placement)


def index_of(grid: Grid, points: np.ndarray):
    """Points of the box, m, in the index space of cell centres, on the device; rounding puts none beyond its ends."""
    x = np.clip(points - np.array(grid.origin), 0.0, grid.size)
    return array_of(x / grid.dx + 0.5)


def velocities_at(simulation: Any, places, count: int) -> np.ndarray:
    """What the velocity is at so many places in the index space, ``(count, dim)``."""
    grid, velocity = simulation.grid, simulation.state.velocity.current
    out = ti.ndarray(ti.f32, grid.dim * count)
    sampler(grid).sample_velocity(velocity, places, count, grid.n, out)
    return out.to_numpy().reshape(-1, grid.dim)


def velocity_at(simulation: Any, points: np.ndarray) -> np.ndarray:
    """The velocity at points of the box, m/s, by linear interpolation.

    Args:
        simulation: A flow; of a liquid the velocity goes on as far beyond the surface as a step needs.
        points: ``(count, dim)``, m.

    Returns:
        ``(count, dim)``, f32.

    Raises:
        ValueError: for points of another shape, or outside of the box.
    """
    grid, points = simulation.grid, np.asarray(points, float)
    if points.ndim != 2 or points.shape[1] != grid.dim:
        raise ValueError(f"points has the shape {points.shape}; it should be (count, {grid.dim})")
    off = np.abs(points - np.array(grid.origin) - 0.5 * np.array(grid.size)) - 0.5 * np.array(grid.size)
    beyond = ~(off <= 1e-3 * grid.dx).all(axis=1)
    if beyond.any():
        i = int(np.argmax(beyond))
        raise ValueError(f"points[{i}] = {points[i].tolist()} lies outside of the box")
    if len(points) == 0:
        return np.zeros((0, grid.dim), np.float32)
    return velocities_at(simulation, index_of(grid, points), len(points))


def velocity_at_centres(simulation: Any) -> np.ndarray:
    """The velocity in the centres of the cells, ``(dim, *shape)``, m/s: on the staggered grid the mean of both faces along an axis."""
    velocity = simulation.state.velocity.current
    if simulation.scene.domain.grid == "collocated":
        return simulation.to_numpy("velocity")
    faces = simulation.grid.face_velocity_to_numpy(velocity)
    along = [np.moveaxis(component, axis, 0) for axis, component in enumerate(faces)]
    means = [np.float32(0.5) * (component[:-1] + component[1:]) for component in along]
    return np.stack([np.moveaxis(mean, 0, axis) for axis, mean in enumerate(means)])
