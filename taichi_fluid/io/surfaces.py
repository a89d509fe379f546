"""The surface of a liquid as triangles: marching cubes by scikit-image, and PLY files of them."""

import functools
from pathlib import Path

import numpy as np

from ..pressure.system import NEAREST
from ..simulation import Simulation
from ..simulation.points import velocity_at
from .files import whole_file
from .upright import require_up, turned


def surface_mesh(simulation: Simulation) -> tuple[np.ndarray, np.ndarray]:
    """The surface of a liquid in 3D as a closed mesh, also along the sides of the box and along solids.

    Args:
        simulation: A flow with a liquid.

    Returns:
        Corners, ``(count, 3)`` in metres, and triangles, ``(count, 3)``, the corners of each, counterclockwise seen from the
        air; both empty where there is no liquid. It is the level set's, to second order (Lewiner et al. 2003).

    Raises:
        ValueError: for a gas, or a flow in 2D.
        ImportError: if scikit-image is missing: ``pip install 'taichi-fluid[surface]'``.
    """
    from skimage.measure import marching_cubes

    grid = simulation.grid
    if simulation.liquid is None or grid.dim != 3:
        kind = "a gas" if simulation.liquid is None else f"in {grid.dim}D"
        raise ValueError(f"the flow is {kind}; a surface of triangles is that of a liquid in 3D")
    padded = level_with_ends(simulation, simulation.to_numpy("level set"))
    if not padded.min() < 0:
        return np.zeros((0, 3), np.float32), np.zeros((0, 3), np.int32)
    vertices, triangles, _, _ = marching_cubes(padded, 0.0, spacing=(grid.dx,) * 3)
    vertices += np.asarray(grid.origin) - 0.5 * grid.dx
    return vertices.astype(np.float32), triangles.astype(np.int32)


def level_with_ends(simulation: Simulation, level: np.ndarray, layers: int = 1) -> np.ndarray:
    """The surface of a liquid that goes on along solids and the sides of the box, as distances at centres, m.

    Args:
        simulation: A flow with a liquid.
        level: Distance to the liquid's own surface, m, negative in the liquid.
        layers: Of cells about the box that are added.
    """
    grid = simulation.grid
    if simulation.solids is not None:
        level = np.maximum(level, -simulation.solids.distance_at_centres())
    # Marching cubes leave holes about a value that is the surface's own, which a cell three quarters full has.
    level = np.where(np.abs(level) < NEAREST * grid.dx, np.copysign(NEAREST * grid.dx, level), level)
    # What is so deep that no cell beside it is in the air is no deeper than its side is far.
    along = zip(grid.cell_centres(), grid.origin, grid.size, strict=True)
    to_side = functools.reduce(np.minimum, (np.minimum(x - low, low + edge - x) for x, low, edge in along))
    padded = np.pad(np.where(level <= -grid.dx, np.maximum(level, -to_side), level), layers, mode="edge")
    # Beyond a side it is as far outside as it is inside before it, so that the mesh ends where the box does.
    for axis in range(3):
        for beyond in range(layers):
            for end in (layers - 1 - beyond, beyond - layers):
                side = (*[slice(None)] * axis, end)
                padded[side] = np.abs(padded[side]) + beyond * grid.dx
    return padded


def write_ply(
    path: Path | str,
    vertices: np.ndarray,
    triangles: np.ndarray,
    velocities: np.ndarray | None = None,
    up: str = "y",
) -> None:
    """Write a mesh as binary PLY, whole or not at all.

    Args:
        path: The file.
        vertices: Corners, ``(count, 3)``, in metres.
        triangles: The corners of each, ``(count, 3)``, whole numbers.
        velocities: Of the corners, ``(count, 3)``, m/s, written as ``vx``, ``vy``, ``vz``; renderers blur motion by them.
        up: The axis that points up in the file: "y" as in the scene, and in Houdini, or "z", as in Blender.

    Raises:
        ValueError: for another axis.
        OSError: if it cannot be written.
    """
    require_up(up)
    parts = [np.asarray(part, "<f4") for part in (vertices, velocities) if part is not None]
    corners = np.hstack([turned(part) for part in parts] if up == "z" else parts)
    names = ("x", "y", "z", "vx", "vy", "vz")[: corners.shape[1]]
    header = (
        f"ply\nformat binary_little_endian 1.0\ncomment metres and seconds; {up} points up\n"
        f"element vertex {len(vertices)}\n"
        + "".join(f"property float {name}\n" for name in names)
        + f"element face {len(triangles)}\nproperty list uchar int vertex_indices\nend_header\n"
    )
    faces = np.empty(len(triangles), dtype=[("count", "u1"), ("corners", "<i4", 3)])
    faces["count"], faces["corners"] = 3, triangles
    with whole_file(Path(path)) as temporary:
        temporary.write_bytes(header.encode("ascii") + corners.tobytes() + faces.tobytes())


def write_surface(simulation: Simulation, path: Path, up: str = "y") -> None:
    """Write the surface of a liquid in 3D, with the velocity of its corners, as PLY in which an axis points up."""
    vertices, triangles = surface_mesh(simulation)
    write_ply(path, vertices, triangles, velocity_at(simulation, vertices), up)
