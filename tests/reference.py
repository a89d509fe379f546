"""The staggered operators once more, in NumPy float64 and without a line of the engine; and inputs for tests.

A staggered velocity is a list of arrays, one per axis, with n + 1 values along its own axis (both walls included):
what ``Grid.face_velocity_to_numpy`` gives and ``Grid.face_velocity_from_numpy`` takes.
"""

import csv
import os
from pathlib import Path

import numpy as np
from scipy.fft import dctn, idctn

REFDATA = Path(__file__).parent / "refdata"

SHAPES = {2: [(7, 5), (9, 5), (17, 1), (1, 1)], 3: [(7, 5, 6), (2, 3, 5), (9, 5, 1), (1, 1, 1)]}
"""Odd, prime, one cell wide, a single cell: what a cube never tells."""
if os.environ.get("TI_TEST_ARCH", "cpu") != "cpu":
    # Kernels there loop over cells and have no branch on a shape, the rest is Python: a box, and one that is one cell wide.
    SHAPES = {2: [(7, 5), (17, 1)], 3: [(7, 5, 6), (9, 5, 1)]}


def table(name: str) -> list[list[str]]:
    """Rows of a table in ``refdata/``, its head and its comments left out."""
    with open(REFDATA / name, newline="", encoding="utf-8") as file:
        return list(csv.reader(line for line in file if not line.startswith("#")))[1:]


def face_shape(shape, axis):
    """Shape of one component with both walls."""
    return tuple(n + (a == axis) for a, n in enumerate(shape))


def take(array, axis, part):
    """``array`` with the slice ``part`` along one axis."""
    return array[tuple(part if a == axis else slice(None) for a in range(array.ndim))]


def random_velocity(shape, seed=0, scale=1.0):
    """White noise on the inner faces, exactly 0 on the walls; in f32, so that the engine starts from the same."""
    rng = np.random.default_rng(seed)
    faces = []
    for axis in range(len(shape)):
        component = scale * rng.standard_normal(face_shape(shape, axis))
        take(component, axis, slice(0, 1))[...] = 0
        take(component, axis, slice(-1, None))[...] = 0
        faces.append(component.astype(np.float32).astype(np.float64))
    return faces


def random_scalar(shape, seed=0):
    """White noise at the cell centres, in f32 precision."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32).astype(np.float64)


def divergence(faces, dx=1.0):
    """Sum of outflows over dx, at the centres."""
    return sum(np.diff(component, axis=axis) for axis, component in enumerate(faces)) / dx


def gradient(p, dx=1.0):
    """Differences of a centred quantity at the faces, 0 on the walls."""
    faces = []
    for axis in range(p.ndim):
        component = np.zeros(face_shape(p.shape, axis))
        take(component, axis, slice(1, -1))[...] = np.diff(p, axis=axis) / dx
        faces.append(component)
    return faces


def curl_velocity(shape, seed=0):
    """A velocity without divergence and without flow through the walls: the curl of a potential on the edges."""
    rng = np.random.default_rng(seed)
    dim = len(shape)
    faces = [np.zeros(face_shape(shape, axis)) for axis in range(dim)]
    for third in range(3) if dim == 3 else (2,):
        a, b = [axis for axis in range(3) if axis != third]
        potential = rng.standard_normal(tuple(n + (axis != third) for axis, n in enumerate(shape)))
        for axis in (a, b):  # a potential of 0 on the walls lets nothing through them
            take(potential, axis, slice(0, 1))[...] = 0
            take(potential, axis, slice(-1, None))[...] = 0
        faces[a] += np.diff(potential, axis=b)
        faces[b] -= np.diff(potential, axis=a)
    return faces


def eigenvalues(shape):
    """Those of the undivided, negative Neumann Laplacian on the cosine modes: sum of 2 - 2 cos(pi k / n)."""
    axes = [2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in shape]
    return sum(np.meshgrid(*axes, indexing="ij"))


def solve_closed(rhs):
    """Exact solution of  sum over neighbours (p - p_neighbour) = rhs - mean(rhs)  in a closed box, its mean 0."""
    modes, values = dctn(rhs, type=2), eigenvalues(rhs.shape)
    values.flat[0], modes.flat[0] = 1.0, 0.0
    return idctn(modes / values, type=2)


def apply_closed(p):
    """The same operator, by differences."""
    return -divergence(gradient(p))


def inner(a, b):
    """Sum of products: of two arrays, or of two velocities."""
    if isinstance(a, list | tuple):
        return sum(inner(x, y) for x, y in zip(a, b, strict=True))
    return float(np.sum(np.asarray(a, np.float64) * np.asarray(b, np.float64)))


def norm(a):
    """Square root of the sum of squares."""
    return np.sqrt(inner(a, a))


def centred(p):
    """``p`` without its mean."""
    return p - p.mean()


def relative(a, b):
    """Norm of the difference over the norm of ``b``."""
    difference = [x - y for x, y in zip(a, b, strict=True)] if isinstance(b, list | tuple) else np.asarray(a) - b
    return norm(difference) / max(norm(b), 1e-300)


def mirrored(array, axis):
    """A centred quantity seen in a mirror across ``axis``."""
    return np.flip(array, axis)


def mirrored_velocity(faces, axis):
    """A staggered velocity seen in a mirror across ``axis``: the component along it changes its sign."""
    return [np.flip(component, axis) * (-1 if a == axis else 1) for a, component in enumerate(faces)]


def permuted_velocity(faces, order):
    """A staggered velocity with its axes renamed: new axis ``k`` is the old ``order[k]``."""
    return [np.transpose(faces[old], order) for old in order]


class Arrays:
    """Puts NumPy values into new arrays of a grid, with ghosts, and gets them out in float64."""

    def __init__(self, grid, walls):
        self.grid, self.walls = grid, walls

    def scalar(self, values):
        """A centred quantity, its ghosts filled."""
        array = self.grid.array()
        self.grid.from_numpy(array, np.asarray(values, np.float32))
        self.walls.fill(array)
        return array

    def velocity(self, faces):
        """A staggered velocity, its ghosts filled; what it has on the walls is set to 0."""
        array = self.grid.velocity()
        self.grid.face_velocity_from_numpy(array, [np.asarray(f, np.float32) for f in faces])
        self.walls.fill_velocity(array)
        return array

    def get(self, array):
        """Interior values in float64."""
        return self.grid.to_numpy(array).astype(np.float64)

    def faces(self, array):
        """All faces of a staggered velocity in float64."""
        return [f.astype(np.float64) for f in self.grid.face_velocity_to_numpy(array)]


def closed_box(shape, dx=1.0, kind="free-slip"):
    """Grid, walls and ``Arrays`` of a closed box."""
    from taichi_fluid.boundaries.sides import Boundary
    from taichi_fluid.boundaries.walls import Walls
    from taichi_fluid.grid import Grid

    grid = Grid(shape, dx)
    walls = Walls(grid, [(Boundary(kind), Boundary(kind))] * len(shape))
    return grid, walls, Arrays(grid, walls)
