"""Water in boxes: how a scene says so, how it begins below a level set, and what is measured of it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..liquid.liquid import Liquid
from ..scene import Scene
from ..simulation import Simulation
from .cases import peak, zeros_of

GRAVITY = 9.81
"""Of a scene that does not say otherwise, m/s²."""

Box = tuple[Sequence[float], Sequence[float]]
"""A box by its lower and its upper corner, m."""


def water(size: Sequence[float], resolution: int, bodies: Sequence[Box] = (), **tables: Any) -> Scene:
    """A scene with boxes of water in a box of a size, m; its tables, ``liquid`` too, may have more."""
    boxes = [
        {
            "shape": "box",
            "center": [0.5 * (a + b) for a, b in zip(low, high, strict=True)],
            "size": [b - a for a, b in zip(low, high, strict=True)],
        }
        for low, high in bodies
    ]
    liquid = {"bodies": boxes, **tables.pop("liquid", {})}
    domain = {"size": list(size), "resolution": resolution, **tables.pop("domain", {})}
    return Scene.from_dict({"name": "water", "domain": domain, "liquid": liquid, **tables})


def liquid_of(simulation: Simulation) -> Liquid:
    """The liquid of a flow that has one."""
    assert simulation.liquid is not None
    return simulation.liquid


def filled_part(simulation: Simulation) -> np.ndarray:
    """What part of each cell lies below the surface."""
    return np.clip(0.5 - simulation.to_numpy("level set") / simulation.grid.dx, 0, 1)


def volume_of(simulation: Simulation) -> float:
    """What the level set encloses outside solids, m³ (2D: m²)."""
    filled, solids, grid = filled_part(simulation), simulation.solids, simulation.grid
    if solids is not None:
        filled = filled * np.clip(0.5 + solids.distance_at_centres() / grid.dx, 0, 1)
    return float(filled.sum()) * grid.cell_volume


def energy(simulation: Simulation) -> float:
    """Of a kilogram on average, J: what it has by its speed, and by its height when it comes to have that."""
    liquid = liquid_of(simulation)
    parts = liquid.particles.to_numpy()
    return float((GRAVITY * parts["position"][:, 1] + 0.5 * (parts["velocity"] ** 2).sum(1)).mean())


def energy_of_cells(simulation: Simulation) -> float:
    """Of a kilogram on average, J, by the grid: what is below the surface, by its height and by its speed."""
    filled = filled_part(simulation)
    of_height = GRAVITY * simulation.grid.cell_centres()[1]
    squares = [u**2 for u in simulation.to_numpy("velocity")]  # at lower faces; the last upper ones are closed sides
    of_speed = sum(u + np.append(np.delete(u, 0, k), 0 * u.take([0], k), k) for k, u in enumerate(squares)) / 4
    return float((filled * (of_height + of_speed)).sum() / filled.sum())


def fastest(simulation: Simulation) -> float:
    """Largest component of the velocity of any particle, m/s."""
    return float(np.abs(liquid_of(simulation).particles.to_numpy()["velocity"]).max())


def frequency_of(times: Sequence[float], values: Sequence[float]) -> float:
    """Periods in a second, from the instants at which values change sign."""
    zeros = zeros_of(times, values)
    return float((len(zeros) - 1) / 2 / (zeros[-1] - zeros[0]))


def lost_in_a_period(times: Sequence[float], values: Sequence[float]) -> float:
    """Part of its amplitude that an oscillation loses in a period, from the largest value in each half of one."""
    t, size = np.array(times), np.abs(values)
    zeros = zeros_of(times, values)
    halves = [(t >= a) & (t <= b) for a, b in pairwise(zeros)]
    peaks = [peak(t[half], size[half])[1] for half in halves]
    slope = np.polyfit(np.arange(len(peaks)) / 2, np.log(peaks), 1)[0]
    return float(1 - np.exp(slope))
