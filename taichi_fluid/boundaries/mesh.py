"""Triangle meshes as solids: a file becomes a signed distance on a lattice.

The distance is exact at every lattice point; inside is where the winding number says so, which also holds for meshes
with small holes or overlapping parts. (Ericson 2005, ch. 5; Jacobson, Kavan, Sorkine-Hornung 2013.)
"""

import io
import math
from pathlib import Path

import numpy as np

from .._ti import ti
from ..kernels import Array, array_of, float_vector, int_vector, kernel_family, loop_shape
from ..limits import read_file
from ..operators.vectors import length
from .solids.shapes import SampledDistance

SUFFIXES = (".obj", ".off", ".ply", ".stl")
"""Of files that hold one mesh and name no other file."""
MOST_BYTES = 2**28
MOST_PAIRS = 2 * 10**10
"""Of triangles and lattice points between which a distance is found: two CPU cores take minutes for so many."""
MARGIN = 3
"""Lattice points around the mesh: beyond them the distance is continued."""


class MeshError(ValueError):
    """A mesh that cannot be read; the message names the file and says why."""


@ti.func
def _closest_on_triangle(p, a, b, c):
    """Point of the triangle ``a b c`` that is nearest to ``p``."""
    ab, ac, ap = b - a, c - a, p - a
    d1, d2 = ab.dot(ap), ac.dot(ap)
    bp, cp = p - b, p - c
    d3, d4, d5, d6 = ab.dot(bp), ac.dot(bp), ab.dot(cp), ac.dot(cp)
    va, vb, vc = d3 * d6 - d5 * d4, d5 * d2 - d1 * d6, d1 * d4 - d3 * d2
    inv = ti.f32(1.0) / ti.max(va + vb + vc, ti.f32(1e-30))
    nearest = a + ab * (vb * inv) + ac * (vc * inv)
    if d1 <= 0 and d2 <= 0:
        nearest = a
    elif d3 >= 0 and d4 <= d3:
        nearest = b
    elif d6 >= 0 and d5 <= d6:
        nearest = c
    elif vc <= 0 and d1 >= 0 and d3 <= 0:
        nearest = a + ab * (d1 / ti.max(d1 - d3, ti.f32(1e-30)))
    elif vb <= 0 and d2 >= 0 and d6 <= 0:
        nearest = a + ac * (d2 / ti.max(d2 - d6, ti.f32(1e-30)))
    elif va <= 0 and d4 >= d3 and d5 >= d6:
        nearest = b + (c - b) * ((d4 - d3) / ti.max((d4 - d3) + (d5 - d6), ti.f32(1e-30)))
    return nearest


@ti.func
def _solid_angle(p, a, b, c):
    """Signed solid angle of the triangle seen from ``p``, after Van Oosterom and Strackee (1983)."""
    x, y, z = a - p, b - p, c - p
    lx, ly, lz = length(x), length(y), length(z)
    volume = x.dot(y.cross(z))
    spread = lx * ly * lz + x.dot(y) * lz + y.dot(z) * lx + z.dot(x) * ly
    return ti.f32(2.0) * ti.atan2(volume, spread)


@ti.func
def _corner(triangles: Array, k, corner):
    at = 9 * k + 3 * corner
    return ti.Vector([triangles[at], triangles[at + 1], triangles[at + 2]])


@kernel_family
def mesh_kernels(loops):
    @ti.kernel
    def measure(
        triangles: Array, count: ti.i32, values: Array, size: int_vector(3), origin: float_vector(3), spacing: ti.f32
    ):
        for at in range(size[0] * size[1] * size[2]):
            position = ti.Vector([at // (size[1] * size[2]), at // size[2] % size[1], at % size[2]])
            p = origin + ti.cast(position, ti.f32) * spacing
            square, turns = ti.f32(1e30), ti.f32(0.0)
            for k in range(count):
                a, b, c = _corner(triangles, k, 0), _corner(triangles, k, 1), _corner(triangles, k, 2)
                square = ti.min(square, (p - _closest_on_triangle(p, a, b, c)).norm_sqr())
                turns += _solid_angle(p, a, b, c)
            distance = ti.sqrt(square)
            if ti.abs(turns) > ti.f32(2.0 * math.pi):
                distance = -distance
            values[at] = distance

    return (measure,)


def read_triangles(path: str | Path) -> np.ndarray:
    """Triangles of a mesh file that ``trimesh`` reads (OBJ, STL, PLY, …), ``(count, 3, 3)``.

    Raises:
        MeshError: if ``trimesh`` is missing, or the file is, or it is of another kind, too large, or holds no triangles.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise MeshError(f"the mesh {str(path)!r} has the suffix {suffix!r}; it must be one of {', '.join(SUFFIXES)}")
    try:
        import trimesh
    except ImportError:
        raise MeshError(f"the mesh {str(path)!r} needs trimesh: pip install 'taichi-fluid[mesh]'") from None
    try:
        content = read_file(path, MOST_BYTES)
        with np.errstate(all="ignore"):  # of corners without an end; what comes of them is looked at below
            mesh = trimesh.load(io.BytesIO(content), file_type=suffix[1:], force="mesh")
        triangles = np.asarray(mesh.triangles, dtype=np.float64)  # pyright: ignore[reportAttributeAccessIssue]
    except FileNotFoundError:
        raise MeshError(f"the mesh {str(path)!r} cannot be read: there is no such file") from None
    except ImportError:  # what trimesh looks for when its own reader has given up
        raise MeshError(f"the mesh {str(path)!r} cannot be read: it is damaged") from None
    except Exception as error:  # trimesh raises what its readers raise
        raise MeshError(f"the mesh {str(path)!r} cannot be read: {error}") from None
    if not len(triangles) or not np.isfinite(triangles).all():
        raise MeshError(f"the mesh {str(path)!r} holds no triangles")
    return triangles


def sample_mesh(triangles: np.ndarray, size: float | None = None, points: int = 64) -> SampledDistance:
    """Signed distance of a mesh around its own middle, to be used as ``Solid.shape``.

    It takes time in proportion to triangles times lattice points: 5000 triangles on a lattice of 64³ some 15 s on two
    CPU cores. Taichi must be running.

    Args:
        triangles: ``(count, 3, 3)``, in any unit, or in metres.
        size: Longest edge of the mesh's bounding box, in metres; left out, as the triangles have it.
        points: Lattice points along that edge.

    Raises:
        MeshError: for triangles or sizes that cannot be.
    """
    triangles = np.asarray(triangles, dtype=np.float64)
    if triangles.ndim != 3 or triangles.shape[1:] != (3, 3) or not len(triangles):
        raise MeshError(f"triangles have shape {triangles.shape}; it must be (count, 3, 3)")
    if not ((size is None or 0 < size < math.inf) and points >= 4):
        raise MeshError(f"size is {size} and points is {points}; size must be positive, points at least 4")
    low, high = triangles.min(axis=(0, 1)), triangles.max(axis=(0, 1))
    longest = float((high - low).max())
    if not 0 < longest < math.inf:
        raise MeshError(f"the triangles reach from {low.tolist()} to {high.tolist()}; a mesh has an extent")
    size = longest if size is None else size
    scale = size / longest
    triangles = (triangles - 0.5 * (low + high)) * scale
    half = 0.5 * (high - low) * scale
    spacing = size / points
    shape = tuple(math.ceil(2 * h / spacing) + 1 + 2 * MARGIN for h in half)
    if (pairs := len(triangles) * math.prod(shape)) > MOST_PAIRS:
        raise MeshError(
            f"{len(triangles)} triangles and {points} points along the longest edge make {pairs} distances; there may be "
            f"{MOST_PAIRS} at most: take fewer points, or a coarser mesh"
        )
    origin = tuple(-0.5 * spacing * (n - 1) for n in shape)
    values = ti.ndarray(ti.f32, int(np.prod(shape)))
    mesh_kernels(loop_shape(3)).measure(
        array_of(triangles), len(triangles), values, int_vector(3)(*shape), float_vector(3)(*origin), spacing
    )
    distances = values.to_numpy().reshape(shape)
    if not distances.min() < 0:
        raise MeshError(
            f"the mesh has no inside at {points} points along its longest edge: close it, or sample it finer"
        )
    return SampledDistance(distances, origin, spacing)
