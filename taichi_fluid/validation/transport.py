"""What is carried, and kept: Zalesak's disk, LeVeque's vortex, and budgets of boxes that nothing leaves."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..physics.advection import Advection
from ..simulation import Simulation
from .cases import Run
from .exact import energy_of
from .published import CLAMPED_MACCORMACK


def disk(cells: int, slot: bool) -> np.ndarray:
    """A disk of radius 0.15 around (0.5, 0.75) by 8 x 8 samples a cell; Zalesak's has a slot 0.05 wide up to 0.85."""
    x = (np.arange(8 * cells) + 0.5) / (8 * cells)
    x, y = np.meshgrid(x, x, indexing="ij")
    inside = (x - 0.5) ** 2 + (y - 0.75) ** 2 < 0.15**2
    if slot:
        inside &= ~((abs(x - 0.5) < 0.025) & (y < 0.85))
    return inside.reshape(cells, 8, cells, 8).mean(axis=(1, 3))


def _faces_of(psi: np.ndarray) -> list[np.ndarray]:
    """Staggered velocity u = -dpsi/dy, v = dpsi/dx of a streamfunction of the corners of a unit square."""
    cells = len(psi) - 1
    return [-np.diff(psi, axis=1) * cells, np.diff(psi, axis=0) * cells]


def rotation(cells: int, time: float) -> list[np.ndarray]:
    """Solid rotation, one turn in a second; it crosses the walls."""
    x = np.arange(cells + 1) / cells - 0.5
    return _faces_of(np.pi * (x[:, None] ** 2 + x[None, :] ** 2))


def vortex(cells: int, time: float) -> list[np.ndarray]:
    """LeVeque's single vortex, which turns back after half of its two seconds."""
    s = np.sin(np.pi * np.arange(cells + 1) / cells) ** 2
    return _faces_of(s[:, None] * s[None, :] / np.pi * np.cos(np.pi * time / 2.0))


Flow = Callable[[int, float], Sequence[np.ndarray]]
FLOWS: dict[str, tuple[bool, Flow, float, float]] = {
    "zalesak": (True, rotation, 1.0, 0.25),
    "vortex": (False, vortex, 2.0, 1.0),
}
"""Whether the disk has a slot, the flow, how long it takes to bring everything back, s, and a step in cells at 1 m/s."""


def carried_around(
    advection: Advection, name: str, *, faces_begin: bool = False, name_of_scalar: str | None = None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Carry the disk of one of the ``FLOWS`` around; the velocity is set for the middle of each step and frozen in it.

    Args:
        advection: Of a square box.
        name: Of the flow.
        faces_begin: Whether paths begin at faces, as those of a step do, or where the disk lies.
        name_of_scalar: What sides call it.

    Returns:
        The disk before, after, and how many steps it took.
    """
    grid, walls = advection.grid, advection.walls
    slot, flow, duration, courant = FLOWS[name]
    cells = grid.shape[0]
    steps = round(duration * cells / courant)
    before, dt = disk(cells, slot), duration / steps
    u, current, following = grid.velocity(), grid.array(), grid.array()
    grid.from_numpy(current, before)
    walls.fill(current)
    for step in range(steps):
        padded = np.zeros((2, *grid.padded))
        for axis, component in enumerate(flow(cells, (step + 0.5) * dt)):
            # The ghosts beyond the walls repeat the nearest value.
            padded[axis] = np.pad(component, [(1, 0) if a == axis else (1, 1) for a in range(2)], mode="edge")
        u.from_numpy(padded.astype(np.float32).ravel())
        advection.trace_paths(u, dt, faces=faces_begin)
        advection.carry(current, following, name=name_of_scalar)
        current, following = following, current
    return before, grid.to_numpy(current), steps


def errors_of(before: np.ndarray, after: np.ndarray) -> list[float]:
    """Of a disk that should be back: mean, L1 over its own, root mean square and largest."""
    error = abs(after - before)
    return [error.mean(), error.sum() / before.sum(), np.sqrt((error**2).mean()), error.max()]


def there_and_back(name: str):
    """The case of one of the ``FLOWS``."""

    def measure(run: Run) -> None:
        simulation = run.simulation(name, domain={"size": [1.0, 1.0], "resolution": run.resolution})
        before, after, steps = carried_around(simulation.advection, name, faces_begin=True)
        run.steps += steps
        plain = CLAMPED_MACCORMACK[name].get(run.resolution)
        error = errors_of(before, after)[1]
        if plain:
            run.at_most(
                "error, of the disk's own area", error, 1.02 * plain, f"{plain:.3g} (clamped MacCormack, float64)"
            )
        run.at_most("change of the amount, relative", abs(after.astype(float).sum() / before.sum() - 1), 1e-5)
        run.between("least value", after.min(), -1e-6, 1e-6)
        run.at_most("largest value", after.max(), 1.0 + 1e-6)
        middle = after[after.shape[0] // 2]
        x = (np.arange(len(middle)) + 0.5) / len(middle)
        run.curve(f"{name}, cut through the disk", ("y", ""), (x, middle), (x, before[len(middle) // 2]))

    return measure


def rising(run: Run, blob: Callable[[Any, Any], np.ndarray]) -> tuple[Simulation, Callable[[], float]]:
    """A hot blob of smoke in a closed box, and what asks for its potential energy in a fluid of 1 kg/m³, J."""
    gravity, expansion = 9.81, 1 / 300
    simulation = run.simulation(
        "closed-box",
        domain={"size": [1.0, 1.0], "resolution": run.resolution},
        fluid={"expansion": expansion},
    )
    simulation.set(smoke=blob, temperature=lambda x, y: 200 * blob(x, y))
    y = simulation.grid.cell_centres()[1]

    def height() -> float:
        heat = simulation.to_numpy("temperature").astype(np.float64)
        return -gravity * expansion * float((heat * y).sum()) * simulation.grid.cell_volume

    return simulation, height


def closed_box(run: Run) -> None:
    """A hot blob of smoke in a closed box: what it is made of is kept, and no energy comes from nowhere."""
    n, steps, smooth_for = run.resolution, 200, 0.5
    simulation, height = rising(run, lambda x, y: np.clip((0.22 - np.hypot(x - 0.5, y - 0.3)) * n + 0.5, 0, 1))

    def amounts() -> list[float]:
        return [simulation.to_numpy(name).astype(np.float64).sum() for name in ("smoke", "temperature")]

    before, potential = amounts(), height()
    run.step(simulation, steps)
    after = amounts()
    run.at_most(f"smoke after {steps} steps, relative change", abs(after[0] / before[0] - 1), 1e-5)
    run.at_most(f"heat after {steps} steps, relative change", abs(after[1] / before[1] - 1), 1e-5)
    quantity = "energy of motion over what rising heat gave up"
    run.between(quantity, energy_of(simulation) / (potential - height()), 0, 1.005)
    simulation, height = rising(run, lambda x, y: np.exp(-((x - 0.5) ** 2 + (y - 0.3) ** 2) / 0.15**2))
    potential = height()
    while simulation.time < smooth_for:
        run.step(simulation, 1)
    energy = energy_of(simulation) / (potential - height())
    run.between(f"{quantity}, of a blob without an edge, after {smooth_for} s", energy, 0.995, 1.005)


def vortices_in_a_cube(run: Run, cfl: float, duration: float) -> list[float]:
    """Kinetic energy of Taylor and Green's vortices in a periodic cube of edge 1 m, without viscosity, step by step, J.

    Args:
        run: Says how many cells, and counts the steps.
        cfl: Cells that the fastest fluid crosses in a step at the beginning, which sets dt.
        duration: Seconds.
    """
    n, waves = run.resolution, 2 * math.pi

    def begin(x: Any, y: Any, z: Any) -> list[Any]:
        x, y, z = waves * x, waves * y, waves * z
        return [np.sin(x) * np.cos(y) * np.cos(z), -np.cos(x) * np.sin(y) * np.cos(z), 0.0 * (x + y + z)]

    simulation = run.simulation(
        "vortices-3d",
        domain={"size": [1.0] * 3, "resolution": n, "boundaries": "periodic"},
        solver={"tolerance": 1e-5},
    )
    simulation.set(velocity=begin)
    steps, energy = round(duration * n / cfl), [energy_of(simulation)]
    for _ in range(steps):
        run.step(simulation, 1, duration / steps)
        energy.append(energy_of(simulation))
    return energy


def vortices_in_3d(run: Run) -> None:
    """The case: in short steps and in long ones, the short ones not for as long."""
    for cfl, part in ((0.05, 0.25), (0.5, 1.0), (2.0, 1.0)):
        energy = vortices_in_a_cube(run, cfl, part * 6 / (2 * math.pi))
        run.at_most(
            f"CFL {cfl:g}: most energy of all times, over that of the beginning", max(energy) / energy[0], 1.001
        )
