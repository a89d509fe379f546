"""A solitary wave: how it goes through a channel, and how far up its end it runs."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..simulation import Simulation
from .cases import Run
from .water import GRAVITY, filled_part, water

STILL, CREST = 0.25, 0.05
"""Depth of the water at rest and height of the wave above it, m."""
ENDS, BEGUN = 6.0, 1.5
"""Length of a channel that it only goes through, and where its crest begins there, m."""
TOE, BEFORE, INCLINE = 3.8, 2.2, math.radians(20)
"""Where an incline begins, how far before it the crest does, m, and how steep it is."""


class Wave(NamedTuple):
    """The wave of Boussinesq, sech², right to the second order in its height over the depth.

    Attributes:
        begun: Where its crest is at time 0, m.
        speed: m/s.
        steep: Of what its shape is sech², over the way from the crest, 1/m.
    """

    begun: float
    speed: float = math.sqrt(GRAVITY * (STILL + CREST))
    steep: float = math.sqrt(0.75 * CREST / STILL**3)

    def crest(self, x: Any) -> Any:
        """How high the surface is above that of still water."""
        return CREST / np.cosh(self.steep * (x - self.begun)) ** 2

    def along(self, x: Any, y: Any) -> Any:
        """Its velocity along the channel."""
        return self.speed * self.crest(x) / (STILL + self.crest(x)) + 0 * y

    def upwards(self, x: Any, y: Any) -> Any:
        """Its velocity upwards."""
        rise = 2 * self.steep * self.crest(x) * np.tanh(self.steep * (x - self.begun))
        return np.minimum(y, STILL + self.crest(x)) * self.speed * STILL * rise / (STILL + self.crest(x)) ** 2

    def begin(self, run: Run, length: float, cells: int, **tables: Any) -> Simulation:
        """Water of a channel, so many cells long, in which it goes."""
        scene = water([length, 0.5], cells, [([0.0, 0.0], [length, STILL])], **tables)
        simulation = Simulation(run.changed(scene))
        x, y = simulation.grid.cell_centres()
        simulation.set(level_set=y - STILL - self.crest(x))
        simulation.set(velocity=[self.along, self.upwards])
        return simulation


def solitary(run: Run) -> None:
    """The case: it keeps its shape and goes by sqrt(g (h + a))."""
    coarser, wave = max(1.0, 384 / run.resolution) ** 2, Wave(BEGUN)
    for transfer in ("apic", "flip"):
        simulation = wave.begin(run, ENDS, run.resolution, liquid={"transfer": transfer})
        x, times, places, energies = simulation.grid.cell_centres()[0], [], [], []
        while simulation.time < 3.2 / wave.speed:
            run.step(simulation, 1)
            above = np.maximum(filled_part(simulation).sum(axis=1) * simulation.grid.dx - STILL, 0.0) ** 2
            times.append(simulation.time)
            places.append(float((above * x[:, 0]).sum() / above.sum()))
            energies.append(above.sum() * simulation.grid.dx / (4 * CREST**2 / (3 * wave.steep)))
        found = float(np.polyfit(times, places, 1)[0]) / wave.speed
        run.near(f"{transfer}: speed over sqrt(g (h + a))", found, 1.0, 0.02 * coarser)
        run.near(
            f"{transfer}: integral of the height squared, at the end over the exact one",
            energies[-1],
            1.0,
            0.05 * coarser,
        )


def _highest(run: Run, simulation: Simulation, seconds: float, reached: Callable[[Simulation], float]) -> float:
    """The largest of what is reached within so many seconds."""
    most = 0.0
    while simulation.time < seconds:
        run.step(simulation, 1)
        most = max(most, reached(simulation))
    return most


def run_up(run: Run) -> None:
    """The case: up a wall, and up an incline along which the water slips.

    On an incline the end of what runs up is a film, as thin as it may be: it is where the last column is in which there is any.
    """
    coarser, high, steep = max(1.0, 768 / run.resolution) ** 2, CREST / STILL, math.tan(INCLINE)
    wave, length = Wave(TOE - BEFORE), TOE + 1.7
    walled = wave.begin(run, TOE, round(run.resolution * TOE / length))

    def at_the_wall(simulation: Simulation) -> float:
        return float(filled_part(simulation)[-1].sum()) * simulation.grid.dx - STILL

    found = _highest(run, walled, (BEFORE + 0.6) / wave.speed, at_the_wall)
    exact = STILL * (2 * high + 0.5 * high**2 + 0.75 * high**3)
    run.near("up a wall, over the third order of a / h (Su and Mirie)", found / exact, 1.0, 0.015 * coarser)

    along, across = np.array([math.cos(INCLINE), math.sin(INCLINE)]), np.array([-math.sin(INCLINE), math.cos(INCLINE)])
    middle = np.array([TOE, 0.0]) + 2.0 * along - 0.4 * across
    incline = {"shape": "box", "center": middle.tolist(), "size": [4.0, 0.8], "turn": INCLINE, "slip": True}
    inclined = wave.begin(run, length, run.resolution, solids=[incline])
    x, y = np.broadcast_arrays(*inclined.grid.cell_centres())
    open_air = y > (x - TOE) * steep

    def on_the_incline(simulation: Simulation) -> float:
        dry = ~((simulation.to_numpy("level set") < 0) & open_air).any(axis=1)
        return (x[int(np.argmax(dry)) - 1, 0] - TOE) * steep - STILL

    found = _highest(run, inclined, 2.6, on_the_incline)
    exact = STILL * 2.831 * math.sqrt(1 / steep) * high**1.25
    run.near(
        "up an incline of 20 degrees, over Synolakis' 2.831 cot(b)^1/2 (a / h)^5/4", found / exact, 1.0, 0.1 * coarser
    )
