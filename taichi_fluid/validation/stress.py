"""What acts at the surface of a liquid and within it: drops that surface tension drives, a column that friction slows down."""

import math
from typing import Any

import numpy as np

from ..scene import Scene
from ..simulation import Simulation
from .cases import Run
from .ghost_fluid import RHO
from .water import GRAVITY, frequency_of, liquid_of, lost_in_a_period, water

RADIUS, TENSION = 0.25, 10.0
"""Of a drop: m, and N/m (2D: N)."""
NOSE = 1.411
"""Of Huppert's plane current of a given volume."""


def drop_scene(dim: int, resolution: int, **liquid: Any) -> Scene:
    """A box without gravity; its table of the liquid, and of the fluid, may have more."""
    return water(
        [1.0] * dim,
        resolution,
        fluid={"gravity": [0.0] * dim, **liquid.pop("fluid", {})},
        liquid={"surface_tension": TENSION, **liquid},
    )


def begin_as_drop(simulation: Simulation, elongated: float = 0.0) -> None:
    """Let the liquid be a drop in the middle of a box, as its second mode deforms it, beside the middle of a cell."""
    away = [x - 0.5 - 0.013 * simulation.grid.dx for x in simulation.grid.cell_centres()]
    radius = np.sqrt(sum(x**2 for x in away))
    cosine = away[0] / np.maximum(radius, 1e-9)
    mode = 2 * cosine**2 - 1 if len(away) == 2 else 1.5 * cosine**2 - 0.5
    simulation.set(level_set=radius - RADIUS * (1 + elongated * mode))


def elongation(simulation: Simulation) -> float:
    """How much longer it is along the first axis than along the second, by its second moments."""
    position = liquid_of(simulation).particles.to_numpy()["position"]
    square = ((position - position.mean(0)) ** 2).mean(0)
    return float((square[0] - square[1]) / square.sum())


def rayleigh(dim: int) -> float:
    """Angular frequency of the second mode, 1/s: 6 sigma / (rho R³) in 2D, 8 in 3D (Rayleigh 1879)."""
    return math.sqrt((6 if dim == 2 else 8) * TENSION / (RHO * RADIUS**3))


def oscillating(run: Run, dim: int, resolution: int, transfer: str) -> tuple[Simulation, list[float], list[float]]:
    """Let a drop oscillate for two periods: the flow at the end, instants, and how long it was at each."""
    simulation = Simulation(run.changed(drop_scene(dim, resolution, transfer=transfer, flip=1.0)))
    begin_as_drop(simulation, 0.1)
    times, values = [], []
    while simulation.time < 2.1 * 2 * math.pi / rayleigh(dim):
        run.step(simulation, 1)
        times.append(simulation.time)
        values.append(elongation(simulation))
    return simulation, times, values


def drop(run: Run) -> None:
    """The case."""
    n = run.resolution
    coarser = max(1.0, 64 / n) ** 2
    for dim, cells, transfer in ((2, n, "apic"), (2, n, "flip"), (3, n // 2, "apic")):
        name = f"{dim}D, {cells} cells, {transfer}"
        simulation, times, values = oscillating(run, dim, cells, transfer)
        found = 2 * math.pi * frequency_of(times, values) / rayleigh(dim)
        run.near(f"{name}: frequency over Rayleigh's", found, 1.0, 0.05 * coarser)
        run.figure(f"{name}: part of the amplitude that is lost in a period", lost_in_a_period(times, values))
        liquid = liquid_of(simulation)
        run.at_most(f"{name}: volume off what was put in, a part", abs(liquid.lacking) / liquid.target, 0.01)


def column_scene(resolution: int, viscosity: float) -> Scene:
    """A column of a viscous liquid, 0.6 m wide and 0.4 m high, before a wall that it slips along, on a floor that holds it."""
    sides = [["free-slip", "no-slip"], ["no-slip", "no-slip"]]
    return water(
        [3.0, 0.6],
        resolution,
        [([0.0, 0.0], [0.6, 0.4])],
        fluid={"viscosity": viscosity},
        domain={"boundaries": sides},
    )


def spread(simulation: Simulation, viscosity: float) -> float:
    """How far the column has come, over X = 1.411 (g q³ t / (3 nu))^(1/5) (Huppert 1982), once it is flat."""
    front = liquid_of(simulation).particles.to_numpy()["position"][:, 0].max()
    return float(front / (NOSE * (GRAVITY * 0.24**3 / (3 * viscosity) * simulation.time) ** 0.2))


def column(run: Run) -> None:
    """The case."""
    coarser = max(1.0, 96 / run.resolution) ** 2
    for viscosity in (0.05, 1.0):
        simulation = Simulation(run.changed(column_scene(run.resolution, viscosity)))
        run.advance(simulation, 4.0)
        name = f"nu = {viscosity:g} m²/s"
        run.near(f"{name}: front after 4 s, over Huppert's", spread(simulation, viscosity), 1.0, 0.05 * coarser)
        liquid = liquid_of(simulation)
        run.at_most(f"{name}: volume off what was put in, a part", abs(liquid.lacking) / liquid.target, 0.01)
