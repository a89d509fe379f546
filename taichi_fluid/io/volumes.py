"""What a flow holds in its cells, as a file for other programs: OpenVDB for rendering, VTK for looking at numbers."""

from pathlib import Path

import numpy as np

from ..carried import Carried
from ..liquid.level_set import DEEPEST, continue_distance
from ..liquid.liquid import Liquid
from ..simulation import Simulation
from ..simulation.points import velocity_at_centres
from .surfaces import level_with_ends
from .upright import require_up
from .vdb import LEVEL_SET, Volume, write_vdb
from .vti import write_vti

LEAST = 1e-5
"""Part of the largest value of a picture from which on a voxel counts; what is less is left out of an OpenVDB file."""
HALF_WIDTH = 3
"""Cells to each side of its surface in which an OpenVDB level set is known: OpenVDB's own, which its tools count on."""
NAMES = {"smoke": "density"}
"""What renderers call a quantity."""


def write_volume(simulation: Simulation, path: Path | str, up: str = "y") -> None:
    """Write what a flow holds in its cells, whole or not at all.

    ``FILE.vdb`` (OpenVDB, 3D) has what is carried where there is any, smoke as ``density``; a liquid as the level set ``surface``,
    which ends where solids and the box do; and ``velocity`` around these. ``FILE.vti`` (VTK, 2D and 3D) has every cell of what is
    carried, velocity, pressure, of a liquid its level set, and, with solids, ``fluid``. Velocities, m/s, are those of the centres
    of the cells; metres, kelvin.

    Args:
        simulation: A flow.
        path: ``FILE.vdb`` or ``FILE.vti``.
        up: The axis that points up in an OpenVDB file: "y" as in the scene, and in Houdini, or "z", as in Blender.

    Raises:
        ValueError: for another suffix, OpenVDB of a flow in 2D, another axis, or "z" in a file of VTK.
        OSError: if it cannot be written.
    """
    path, grid = Path(path), simulation.grid
    require_up(up)
    if path.suffix == ".vti" and up != "y":
        raise ValueError(f"up is {up!r} and the file {str(path)!r}; in a file of VTK y points up, as in the scene")
    if path.suffix == ".vti":
        names = [quantity.name for quantity in simulation.state.carried.values()]
        names += ["pressure"] + ["level set"] * (simulation.liquid is not None) + ["fluid"] * bool(simulation.solids)
        values = {name: simulation.to_numpy(name) for name in names}
        write_vti(path, values | {"velocity": velocity_at_centres(simulation)}, grid.dx, grid.origin, simulation.time)
    elif path.suffix != ".vdb":
        raise ValueError(f"the file of a volume is {str(path)!r}; its suffix must be .vdb or .vti")
    elif grid.dim != 3:
        raise ValueError(f"the flow is in {grid.dim}D; OpenVDB is of 3D: write FILE.vti")
    else:
        volumes = sparse_volumes(simulation)
        write_vdb(path, [volume.upright(grid.dx) for volume in volumes] if up == "z" else volumes, grid.dx)


def sparse_volumes(simulation: Simulation) -> list[Volume]:
    """What of a flow in 3D an OpenVDB file holds."""
    grid = simulation.grid
    first = [centres.flat[0] for centres in grid.cell_centres()]
    volumes, there = [], np.zeros(grid.shape, bool)
    for quantity in simulation.state.carried.values():
        row, values = quantity.row, np.moveaxis(simulation.to_numpy(quantity.name).reshape(-1, *grid.shape), 0, -1)
        off = np.abs(values - np.float32(row.outside_values)).max(axis=-1)
        active = off > LEAST * off.max()
        there |= active
        volumes += _volumes_of(row, values, active, first)
    if simulation.liquid is not None:
        known = HALF_WIDTH * grid.dx
        level = np.clip(level_with_ends(simulation, _wide_level(simulation.liquid), HALF_WIDTH), -known, known)
        corner = [x - known for x in first]
        volumes.append(Volume("surface", level, np.abs(level) < known, corner, LEVEL_SET, known))
        there |= level[(slice(HALF_WIDTH, -HALF_WIDTH),) * 3] < known
    velocity = np.moveaxis(velocity_at_centres(simulation), 0, -1)
    # Of a flow in which there is nothing else it is all.
    there |= not there.any()
    return [*volumes, Volume("velocity", velocity, there, first, "unknown", (0.0,) * 3, "contravariant relative")]


def _wide_level(liquid: Liquid) -> np.ndarray:
    """Distance to the surface of a liquid at centres, m, negative in it, right within ``HALF_WIDTH`` cells."""
    grid = liquid.grid
    cells = continue_distance(grid, liquid.phi, grid.array(), grid.array(), HALF_WIDTH + 2, -DEEPEST)
    return grid.to_numpy(cells) * grid.dx


def _volumes_of(row: Carried, values: np.ndarray, active: np.ndarray, first: list[float]) -> list[Volume]:
    """A quantity of one component or three; of as many as OpenVDB has no kind for each component is one."""
    name, outside = NAMES.get(row.name, row.name), row.outside_values
    if row.components == 3:
        return [Volume(name, values, active, first, "unknown", outside)]
    names = [name] if row.components == 1 else [f"{name}_{i}" for i in range(row.components)]
    return [Volume(each, values[..., i], active, first, background=outside[i]) for i, each in enumerate(names)]
