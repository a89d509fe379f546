"""Flows with a solution in closed form: Taylor and Green's vortices, and those between parallel walls."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..simulation import Simulation
from .cases import Run


def vortices(cells: int, edge_waves: float) -> list[np.ndarray]:
    """Taylor and Green's vortices in a square of edge 1 m at their faces: ``edge_waves`` waves along the edge.

    u = sin(kx) cos(ky), v = -cos(kx) sin(ky) is free of divergence on the grid too, steady without viscosity, and decays
    as exp(-2 nu k² t) with it. Half waves fit between free-slip walls, whole ones into a periodic box.
    """
    k = 2 * np.pi * edge_waves / cells
    on, between = k * np.arange(cells + 1), k * (np.arange(cells) + 0.5)
    u = np.sin(on)[:, None] * np.cos(between)[None, :]
    return [u, -u.T]


def energy_of(simulation: Simulation) -> float:
    """Kinetic energy for a fluid of 1 kg/m³, J."""
    return simulation.diagnostics.kinetic_energy(simulation.state.velocity.current)


def decayed(
    run: Run, cells: int, waves: float, duration: float, viscosity: float = 0.0, stream: float = 0.0, **solver: Any
) -> tuple[float, float, float]:
    """Let vortices decay.

    Args:
        run: Counts the steps.
        cells: Along an edge.
        waves: Along an edge: a half between free-slip walls, one in a periodic box.
        duration: Seconds.
        viscosity: m²/s.
        stream: What is added to each component, m/s, so that a periodic box goes by a whole number of times.
        solver: Of the scene; ``cfl`` sets a fixed dt, so that all runs end at the same time.

    Returns:
        Mean and root-mean-square error of the velocity, m/s, and the energy that is left over that of the beginning.
    """
    sides = "periodic" if waves == 1 else "free-slip"
    simulation = run.simulation(
        "taylor-green",
        domain={"size": [1.0, 1.0], "resolution": cells, "boundaries": sides},
        fluid={"viscosity": viscosity},
        solver={"tolerance": 1e-5, "max_dt": 1.0, **solver},
    )
    steps = max(1, math.ceil(duration * cells / simulation.scene.solver.cfl - 1e-9))
    simulation.set(velocity=[stream + u for u in vortices(cells, waves)])
    energy = energy_of(simulation)
    run.step(simulation, steps, duration / steps)
    left = math.exp(-2 * viscosity * (2 * math.pi * waves) ** 2 * duration)
    found = simulation.grid.face_velocity_to_numpy(simulation.state.velocity.current)
    u, v = (a - stream - left * b for a, b in zip(found, vortices(cells, waves), strict=True))
    mean = np.hypot((u[1:] + u[:-1]) / 2, (v[:, 1:] + v[:, :-1]) / 2).mean()
    square = np.mean([np.mean(u**2), np.mean(v**2)])
    return float(mean), float(np.sqrt(square)), energy_of(simulation) / energy


def taylor_green(run: Run) -> None:
    """The case: without viscosity at two resolutions, then with it."""
    n = run.resolution
    coarser = max(1.0, 64 / n) ** 2
    coarse, fine = (decayed(run, cells, 1.0, 2.0, cfl=0.8) for cells in (n // 2, n))
    plain = "0.0041 at 64², 0.030 at 32² (Basilisk)"
    run.at_most("steady vortices after 2 s: mean error, m/s", fine[0], 0.0045 * coarser, plain)
    run.at_least(f"order of that error from {n // 2} to {n} cells", math.log2(coarse[0] / fine[0]), 1.8)
    run.between("energy left after 2 s", fine[2], 1 - 0.02 * coarser, 1.001)
    viscosity, duration = 0.005, 1.0
    left = decayed(run, n, 1.0, duration, viscosity, cfl=0.8)[2]
    run.near(
        "with viscosity: energy left after 1 s",
        left,
        math.exp(-4 * viscosity * (2 * math.pi) ** 2 * duration),
        0.02 * coarser,
    )


def carried_vortices(run: Run) -> None:
    """The case: the same vortices in a stream that takes them once through the box, so that the flow changes everywhere."""
    n = run.resolution
    coarse, fine = (decayed(run, cells, 1.0, 1.0, stream=1.0, cfl=0.8) for cells in (n // 2, n))
    run.at_most("mean error after 1 s, m/s", fine[0], 0.02 * max(1.0, 64 / n) ** 2)
    run.at_least(f"order of that error from {n // 2} to {n} cells", math.log2(coarse[0] / fine[0]), 1.8)
    run.between("energy left, of stream and vortices", fine[2], 1 - 0.005 * max(1.0, 64 / n) ** 2, 1.001)


LONG_THEN_SHORT = ((0.5, 8), (0.1, 20), (0.03, 30))
"""Steps in s and how many: rounding and the tolerance of diffusion leave an error that grows with the step."""
FORCE, VISCOSITY, WALL_SPEED = 2.0, 0.5, 0.8
"""Of flows between parallel walls: m/s², m²/s, m/s."""


def faces_of(simulation: Simulation) -> list[np.ndarray]:
    """Each component at all its faces, both sides of the box included, in float64."""
    found = simulation.grid.face_velocity_to_numpy(simulation.state.velocity.current)
    return [component.astype(np.float64) for component in found]


def settled(
    run: Run,
    shape: Sequence[int],
    axis: int,
    third: str = "periodic",
    sides: Sequence[Any] = ("no-slip", "no-slip"),
    force: float = FORCE,
    solids: Sequence[dict] = (),
    faces: str = "fractions",
) -> list[np.ndarray]:
    """The steady flow in a channel of which ``axis`` points from wall to wall, 1 m unless ``solids`` narrow it.

    Advection and projection leave it alone, and implicit diffusion divides what is missing by 1 + nu dt (pi / H)² or more
    in each step, so that long steps get there soon.

    Args:
        run: Counts the steps.
        shape: Cells along each axis.
        axis: From wall to wall; the flow is along the first axis, or the second if that is the one.
        third: Kind of the sides that are left.
        sides: Both walls.
        force: Acceleration along the channel, m/s².
        solids: As a scene has them, one at each wall, two cells thick.
        faces: ``solver.faces``.

    Returns:
        Each component at all its faces.
    """
    along, dim = 1 - axis, len(shape)
    boundaries: list[Any] = [[third, third] for _ in shape]
    boundaries[along], boundaries[axis] = ["periodic", "periodic"], list(sides)
    dx = 1.0 / (shape[axis] - 2 * len(solids))
    simulation = run.simulation(
        "channel",
        domain={"size": [n * dx for n in shape], "resolution": max(shape), "boundaries": boundaries},
        fluid={"viscosity": VISCOSITY, "body_force": [force * (a == along) for a in range(dim)]},
        solver={"tolerance": 1e-6, "faces": faces},
        solids=list(solids),
    )
    for dt, count in LONG_THEN_SHORT:
        run.step(simulation, count, dt)
    return faces_of(simulation)


def middles(n: int, axis: int, dim: int) -> np.ndarray:
    """0.5, 1.5, … along ``axis``, shaped to go with a quantity."""
    return (np.arange(n) + 0.5).reshape([-1 if a == axis else 1 for a in range(dim)])


def parabola(n: int, axis: int, dim: int) -> np.ndarray:
    """What the force drives through a channel of 1 m and ``n`` cells, m/s, as second differences have it.

    Second differences of a parabola are exact; a mirrored ghost takes its 0 for what is -G dx²/(8 nu) at the wall.
    """
    y = middles(n, axis, dim) / n
    return FORCE / (2 * VISCOSITY) * y * (1 - y) + FORCE / n**2 / (8 * VISCOSITY)


def moving_wall(axis: int, dim: int) -> dict[str, Any]:
    """An upper wall across ``axis`` that drives Couette's flow."""
    return {"kind": "moving-wall", "velocity": [WALL_SPEED * (a == 1 - axis) for a in range(dim)]}


def poiseuille(run: Run) -> None:
    """The case."""
    n = run.resolution
    found = settled(run, (4, n), 1)[0]
    exact = parabola(n, 1, 2)
    run.at_most("largest error, m/s, less G dx²/(8 nu), which the ghosts make", np.abs(found - exact).max(), 2e-5)
    run.near("speed in the middle, m/s", found[0, (n - 1) // 2 : n // 2 + 1].mean(), FORCE / (8 * VISCOSITY), 2 / n**2)
    run.curve("Poiseuille", ("y", "u"), ((np.arange(n) + 0.5) / n, found[0]), ((np.arange(n) + 0.5) / n, exact[0]))


def couette(run: Run) -> None:
    """The case."""
    n = run.resolution
    found = settled(run, (4, n), 1, sides=("no-slip", moving_wall(1, 2)), force=0.0)[0]
    error = np.abs(found - WALL_SPEED * middles(n, 1, 2) / n).max()
    run.at_most("largest error, m/s, of a flow of up to 0.8", error, 5e-6)
