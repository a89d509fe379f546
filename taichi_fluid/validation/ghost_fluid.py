"""The pressure below a surface alone, beside exact ones: in a ball that no cell knows of, and below planes at rest."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..boundaries.sides import Boundary, Side
from ..boundaries.solids import Solids
from ..boundaries.walls import Walls
from ..grid import Grid, Scratch
from ..liquid.free_surface import FreeSurface
from ..pressure.solver import EllipticSolver, SolveResult
from .cases import Run
from .water import GRAVITY

RADIUS = 0.37
"""Of the ball, m."""
STEP, RHO = 0.01, 1000.0
"""A step of gravity, s, and the density of what it acts on, kg/m³."""


def walls_of(grid: Grid, kind: str = "free-slip") -> Walls:
    """Sides that are all of one kind."""
    return Walls(grid, [(Side(Boundary(kind)),) * 2] * grid.dim)


def level_of(grid: Grid, distance: Any) -> Any:
    """A level set from an array over the cells, as the engine has it: within a cell and a half, ghosts as beside them."""
    phi = grid.array()
    near = np.clip(np.broadcast_to(distance, grid.shape), -1.5 * grid.dx, 1.5 * grid.dx)
    phi.from_numpy(np.pad(near, 1, mode="edge").astype(np.float32).ravel())
    return phi


class Errors(NamedTuple):
    """Of a pressure in a ball: mean errors of it, Pa, and of its slope at the faces, Pa/m, and how it was solved for."""

    pressure: float
    slope: float
    result: SolveResult


def errors_in_a_ball(dim: int, n: int) -> Errors:
    """Errors of p = (R² - r²) exp(x), which is 0 on the surface of a ball in a box of ``n`` cells along each edge."""
    grid = Grid((n,) * dim, 1 / n)
    x = [axis - 0.5 - 0.013 * k for k, axis in enumerate(grid.cell_centres(), 1)]
    square = sum(axis**2 for axis in x)
    inside = RADIUS**2 - square
    exact = inside * np.exp(x[0])
    laplacian = np.exp(x[0]) * (inside - 4 * x[0] - 2 * dim)
    solver, open_faces = EllipticSolver(grid), grid.velocity()
    open_faces.fill(1.0)
    phi = level_of(grid, np.sqrt(square) - RADIUS)
    solver.setup_surface(open_faces, phi, walls_of(grid).pressure_sides())
    rhs, p = grid.array(), grid.array()
    grid.from_numpy(rhs, -laplacian * grid.dx**2)
    result = solver.solve(rhs, p, tolerance=1e-6)
    error = np.where(inside > 0, grid.to_numpy(p) - exact, 0.0)
    slope = np.diff(error, axis=0) / grid.dx
    both = (inside[1:] > 0) & (inside[:-1] > 0)
    return Errors(float(np.abs(error)[inside > 0].mean()), float(np.abs(slope[both]).mean()), result)


def order(coarse: float, fine: float, cells: tuple[int, int]) -> float:
    """Order of an error that has fallen from one number of cells to another."""
    return float(np.log(coarse / fine) / np.log(cells[1] / cells[0]))


def still_water(
    grid: Grid,
    distance: Any,
    solids: Solids | None = None,
    gravity: Sequence[float] | None = None,
    walls: Walls | None = None,
    tolerance: float = 1e-6,
) -> tuple[float, np.ndarray, SolveResult]:
    """Let gravity act for a step where ``distance``, m, says there is water, and project.

    Returns:
        The largest velocity that is left on a face of the water, over that step; the pressure, Pa; how it was solved for.
    """
    walls = walls or walls_of(grid)
    surface = FreeSurface(grid, walls, Scratch(grid), solids=solids)
    phi = level_of(grid, distance)
    surface.update(phi)
    gravity = gravity or (0.0, -GRAVITY, 0.0)[: grid.dim]
    velocity, pressure = grid.velocity(), grid.array()
    values = np.zeros((grid.dim, *grid.padded), np.float32)
    for axis, g in enumerate(gravity):
        values[axis] = STEP * g
    velocity.from_numpy(values.ravel())
    walls.fill_velocity(velocity)
    result = surface.project(velocity, pressure, dt=STEP, rho=RHO, tolerance=tolerance)
    left = grid.to_numpy(velocity)
    wet = grid.to_numpy(phi) < 0
    worst = 0.0
    for axis in range(grid.dim):
        beside = wet | np.roll(wet, 1, axis)
        open_faces = np.ones_like(wet) if solids is None else grid.to_numpy(solids.open)[axis] > 0
        beside[(slice(None),) * axis + (0,)] = False
        worst = max(worst, float(np.abs(left[axis][beside & open_faces]).max()) / (STEP * GRAVITY))
    return worst, grid.to_numpy(pressure), result


def below_a_plane(grid: Grid, angle: float) -> tuple[np.ndarray, tuple[float, ...]]:
    """Distance to a plane through the middle of a square that is 1 m wide, and gravity, m/s², at a right angle to it."""
    x, y = grid.cell_centres()
    down = np.sin(angle), -np.cos(angle)
    return -(down[0] * (x - 0.5) + down[1] * (y - 0.5)), tuple(GRAVITY * d for d in down)


def ghost_fluid(run: Run) -> None:
    """The case."""
    for dim, name, fine in ((2, "circle", 2 * run.resolution), (3, "sphere", run.resolution)):
        cells = fine // 4 if dim == 2 else fine // 3, fine
        run.counts((fine,) * dim)
        one, two = (errors_in_a_ball(dim, n) for n in cells)
        where = f"{name}, from {cells[0]} to {cells[1]} cells"
        run.at_least(f"{where}: order of the pressure", order(one.pressure, two.pressure, cells), 1.9)
        run.at_least(f"{where}: order of its gradient", order(one.slope, two.slope, cells), 1.5)
        run.at_most(f"{name}: iterations to 1e-6", two.result.iterations, 12)
