"""Liquids that have no ends: along a periodic axis a film runs down a slope, and a wave goes round and round."""

import math

import numpy as np

from ..simulation import Simulation
from .cases import Run
from .water import GRAVITY, filled_part, liquid_of, water

THICK, VISCOSITY, SLOPE, LASTS = 0.51, 0.05, 0.1, 3.0
"""Of a film: its thickness, m, viscosity, m²/s, slope, in radians, and how often friction has passed through it: thickness² / viscosity."""


def film(run: Run) -> None:
    """The case: what friction and gravity hold in balance on a plane without ends (Nusselt 1916), from rest."""
    coarser = max(1.0, 32 / run.resolution) ** 2
    along = GRAVITY * math.sin(SLOPE)
    for transfer in ("apic", "flip"):
        scene = water(
            [0.25, 1.0],
            run.resolution,
            [([0.0, 0.0], [0.25, THICK])],
            domain={"boundaries": [["periodic"] * 2, ["no-slip", "open"]]},
            fluid={"viscosity": VISCOSITY, "gravity": [along, -GRAVITY * math.cos(SLOPE)]},
            liquid={"transfer": transfer},
        )
        simulation = Simulation(run.changed(scene))
        # A whole number of rows of particles: not quite as thick as was said.
        thick, y = liquid_of(simulation).volume / simulation.grid.size[0], simulation.grid.cell_centres()[1][0]
        run.advance(simulation, LASTS * thick**2 / VISCOSITY)
        fastest, inside = along * thick**2 / (2 * VISCOSITY), y < thick
        wanted = fastest * (2 * y / thick - (y / thick) ** 2)
        found = simulation.to_numpy("velocity")[0].mean(axis=0)
        error = np.abs(found - wanted)[inside].max() / fastest
        run.at_most(f"{transfer}: velocity, largest error over that of the surface", error, 0.015 * coarser)
        passes = (filled_part(simulation).mean(axis=0) * found).sum() * simulation.grid.dx / (2 / 3 * fastest * thick)
        run.near(f"{transfer}: what passes, over Nusselt's g sin(a) h³ / (3 nu)", passes, 1.0, 0.015 * coarser)
        run.curve(f"film, {transfer}", ("y", "u"), (y[inside], found[inside]), (y[inside], wanted[inside]))


DEEP, HIGH, PERIODS = 0.5, 0.01, 4.0
"""Of a wave one metre long: depth of the water, height of its crests, m, and how often it passes."""


def wave_speed(k: float) -> float:
    """How fast a wave of a wave number, 1/m, goes by Stokes, to the third order in its height, m/s."""
    s = math.tanh(k * DEEP)
    steep = (k * HIGH) ** 2 * (9 - 10 * s**2 + 9 * s**4) / (8 * s**4)
    return math.sqrt(GRAVITY / k * s * (1 + steep))


def wave(run: Run) -> None:
    """The case: begun as linear theory has it, and followed by the first mode of its surface."""
    k, coarser = 2 * math.pi, max(1.0, 64 / run.resolution) ** 2
    rate = HIGH * math.sqrt(GRAVITY * k * math.tanh(k * DEEP)) / math.sinh(k * DEEP)
    for transfer in ("apic", "flip"):
        scene = water(
            [1.0, 1.0],
            run.resolution,
            domain={"boundaries": [["periodic"] * 2, ["free-slip"] * 2]},
            liquid={"transfer": transfer},
            initial={
                "level_set": f"y - {DEEP} - {HIGH} * cos({k} * x)",
                "velocity": [f"{rate} * cos({k} * x) * cosh({k} * y)", f"{rate} * sin({k} * x) * sinh({k} * y)"],
            },
        )
        simulation = Simulation(run.changed(scene))
        times, modes = [0.0], [_first_mode(simulation)]
        while simulation.time < PERIODS / wave_speed(k):
            run.step(simulation, 1)
            times.append(simulation.time)
            modes.append(_first_mode(simulation))
        speed = -np.polyfit(times, np.unwrap(np.angle(modes)), 1)[0] / k
        run.near(f"{transfer}: speed, over Stokes' of the third order", speed / wave_speed(k), 1.0, 0.005 * coarser)
        lost = 1 - (abs(modes[-1]) / abs(modes[0])) ** (1 / PERIODS)
        run.figure(f"{transfer}: part of the amplitude that is lost in a period", lost)


def _first_mode(simulation: Simulation) -> complex:
    """Amplitude and phase of the longest wave of a surface that is one height everywhere, m."""
    surface = filled_part(simulation).sum(axis=1) * simulation.grid.dx
    return complex(2 * np.fft.fft(surface)[1] / len(surface))
