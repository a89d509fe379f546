"""Cavities: driven by a lid, heated from the side, and heated from below.

All in units in which the cavity is 1 m high, and in which the lid, or what heat would drive without friction, is 1 m/s.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..simulation import Simulation
from ..simulation.probes import Probes
from .cases import Run, peak
from .exact import energy_of, faces_of
from .published import (
    BOTELLA_PEYRET,
    BOTELLA_PEYRET_U,
    BOTELLA_PEYRET_V,
    CLERCX_BRUNEAU,
    CLEVER_BUSSE,
    DE_VAHL_DAVIS,
    GHIA_U,
    GHIA_V,
    MARCHI,
)

PRANDTL = 0.71


def centrelines(simulation: Simulation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a square cavity with an even number of cells: the places between the walls, u on x = 1/2 and v on y = 1/2."""
    n = simulation.grid.shape[0]
    u, v = faces_of(simulation)
    return (np.arange(n) + 0.5) / n, u[n // 2], v[:, n // 2]


def lid_driven(run: Run, reynolds: float, longest: float) -> Simulation:
    """A square cavity whose upper wall moves, once it is steady, to what so many cells tell, or ``longest`` s have gone."""
    lid = {"kind": "moving-wall", "velocity": [1.0, 0.0]}
    simulation = run.simulation(
        "lid-driven-cavity",
        domain={
            "size": [1.0, 1.0],
            "resolution": run.resolution,
            "boundaries": [["no-slip"] * 2, ["no-slip", lid]],
        },
        fluid={"viscosity": 1 / reynolds, "rho": 1.0},
        solver={"tolerance": 1e-5},
    )
    run.settle(simulation, 2e-5 * max(1.0, 64 / run.resolution) ** 2, longest)
    return simulation


def against(simulation: Simulation, profiles: Sequence[Any]) -> tuple[float, float]:
    """Largest differences of u and of v from two tables of places and values, over the speed of the lid."""
    between, u, v = centrelines(simulation)
    errors = []
    for table, found, upper in zip(profiles, (u, v), (1.0, 0.0), strict=True):
        places, wanted = (np.array(column) for column in zip(*table, strict=True))
        there = np.interp(places, [0.0, *between, 1.0], [0.0, *found, upper])
        errors.append(float(np.abs(there - wanted).max()))
    return errors[0], errors[1]


def cavity(reynolds: int, allowed: tuple[float, float], longest: float, plain: str = ""):
    """The case at a Reynolds number; ``allowed`` are errors of u and v at its own resolution."""
    tables = {"Ghia": ((GHIA_U[reynolds], GHIA_V[reynolds]), allowed)}
    if reynolds == 1000:
        tables["Botella and Peyret"] = (BOTELLA_PEYRET_U, BOTELLA_PEYRET_V), (0.01, 0.01)

    def measure(run: Run) -> None:
        simulation = lid_driven(run, reynolds, longest)
        coarser = max(1.0, (128 if reynolds > 100 else 64) / run.resolution) ** 2
        for author, (profiles, most) in tables.items():
            error_u, error_v = against(simulation, profiles)
            run.at_most(
                f"u on x = 1/2, largest error ({author})", error_u, most[0] * coarser, plain if author == "Ghia" else ""
            )
            run.at_most(f"v on y = 1/2, largest error ({author})", error_v, most[1] * coarser)
        between, u, v = centrelines(simulation)
        extremes = {
            "least u on x = 1/2": -peak(between, -u)[1],
            "largest v on y = 1/2": peak(between, v)[1],
            "least v on y = 1/2": -peak(between, -v)[1],
        }
        published, whose = (BOTELLA_PEYRET, "Botella and Peyret") if reynolds == 1000 else (MARCHI, "Marchi et al.")
        if reynolds in (100, 1000):
            for name, found in extremes.items():
                run.near(f"{name} ({whose})", found, published[name], 0.02 * coarser)
        profiles, _ = [*tables.values()][-1]
        for table, found, name, along in zip(profiles, (u, v), "uv", "yx", strict=True):
            run.curve(f"{name}, Re {reynolds}", (along, name), (between, found), zip(*table, strict=True))

    return measure


def heated(run: Run, rayleigh: float, longest: float, **solver: Any) -> Simulation:
    """A hot and a cold wall, air between them: once it is steady or ``longest`` s have gone."""
    walls = [{"kind": "no-slip", "temperature": value} for value in (0.5, -0.5)]
    simulation = run.simulation(
        "heated-cavity",
        domain={
            "size": [1.0, 1.0],
            "resolution": run.resolution,
            "boundaries": [walls, ["no-slip"] * 2],
        },
        fluid={
            "viscosity": math.sqrt(PRANDTL / rayleigh),
            "heat_diffusion": 1 / math.sqrt(rayleigh * PRANDTL),
            "expansion": 1.0,
            "gravity": [0.0, -1.0],
        },
        solver={"tolerance": 1e-5, **solver},
    )
    run.settle(simulation, 1e-5, longest, every=2.0)
    return simulation


def nusselt_numbers(simulation: Simulation) -> tuple[float, float, float]:
    """Heat through the hot wall, the cold wall and the plane between, over what conduction alone would carry."""
    n, conductivity = simulation.grid.shape[0], simulation.scene.fluid.heat_diffusion
    heat = simulation.to_numpy("temperature").astype(np.float64)
    speed = simulation.to_numpy("velocity")[0].astype(np.float64)
    left, right = heat[n // 2 - 1], heat[n // 2]
    hot, cold = 2 * n * (0.5 - heat[0]).mean(), 2 * n * (heat[-1] + 0.5).mean()
    middle = (speed[n // 2] * (left + right) / 2 / conductivity - n * (right - left)).mean()
    return float(hot), float(cold), float(middle)


def heated_cavity(rayleigh: int, longest: float, allowed: float, plain: str = ""):
    """The case at a Rayleigh number; ``allowed`` is the part that Nusselt numbers may be off at 64 cells."""

    def measure(run: Run) -> None:
        simulation = heated(run, rayleigh, longest)
        wanted, coarser = DE_VAHL_DAVIS[rayleigh], max(1.0, 64 / run.resolution) ** 2
        hot, cold, middle = nusselt_numbers(simulation)
        run.near("Nu at the hot wall", hot, wanted["Nu"], allowed * coarser, plain)
        run.near("Nu in the middle", middle, wanted["Nu"], allowed * coarser)
        run.at_most("hot and cold wall, relative difference of Nu", abs(hot / cold - 1), 1e-3)
        run.at_most("wall and middle, relative difference of Nu", abs(middle / hot - 1), 1e-3)
        between, u, v = centrelines(simulation)
        scale = 1 / simulation.scene.fluid.heat_diffusion
        run.near("largest u on x = 1/2, in κ/L", scale * peak(between, u)[1], wanted["u"], 0.01 * coarser)
        run.near("largest v on y = 1/2, in κ/L", scale * peak(between, v)[1], wanted["v"], 0.01 * coarser)
        run.curve(f"v on y = 1/2, Ra {rayleigh:g}", ("x", "v, κ/L"), (between, scale * v))

    return measure


CRITICAL = 1707.76
"""Rayleigh number from which a layer between plates at rest begins to turn; waves of 2.016 times its height first."""


def heated_layer(run: Run, rayleigh: float, roll: float, cells: int, **solver: Any) -> Simulation:
    """A layer between plates, 1 m high and so many cells long, in units of a free fall, with a disturbance ``roll``."""
    n = run.resolution
    plates = [{"kind": "no-slip", "temperature": value} for value in (0.5, -0.5)]
    return run.simulation(
        "heated-layer",
        domain={"size": [cells / n, 1.0], "resolution": cells, "boundaries": [["periodic"] * 2, plates]},
        fluid={
            "viscosity": math.sqrt(PRANDTL / rayleigh),
            "heat_diffusion": 1 / math.sqrt(rayleigh * PRANDTL),
            "expansion": 1.0,
            "gravity": [0.0, -1.0],
        },
        solver=solver,
        initial={"temperature": f"0.5 - y + {roll} * cos(2*pi*x / {cells / n}) * sin(pi*y)"},
    )


def growth(run: Run, rayleigh: float, dt: float) -> float:
    """Rate at which a weak roll of that length grows, 1/s."""
    simulation = heated_layer(run, rayleigh, 0.002, 2 * run.resolution, tolerance=1e-6, dt=dt)
    energy = []
    for duration in (10.0, 20.0):  # in the first, what decays has gone: as exp(-0.5 t) or sooner
        run.advance(simulation, duration)
        energy.append(energy_of(simulation))
    return math.log(energy[1] / energy[0]) / 40.0


def onset_of(run: Run, dt: float) -> float:
    """Rayleigh number at which a roll neither grows nor decays, between two at which it was tried."""
    tried = (1500.0, 1900.0)
    rates = [growth(run, rayleigh, dt) for rayleigh in tried]
    return float(np.interp(0.0, rates, tried)) if rates[0] < 0 < rates[1] else math.nan


def onset(run: Run) -> None:
    """The case."""
    coarser = max(1.0, 24 / run.resolution) ** 2
    for dt, plain in ((0.1, ""), (0.025, "1693 at 24 cells (the discrete operators by themselves)")):
        run.near(f"critical Ra, steps of {dt:g}", onset_of(run, dt), CRITICAL, 0.01 * coarser, plain)


def rolls(run: Run) -> None:
    """Heat through steady rolls between plates, two of them in 2.016 times the height."""
    n, coarser = run.resolution, max(1.0, 48 / run.resolution) ** 2
    for rayleigh, wanted in CLEVER_BUSSE.items():
        simulation = heated_layer(run, rayleigh, 0.1, round(2.016 * n), tolerance=1e-5, max_dt=0.1)
        run.settle(simulation, 1e-5, 200.0, every=10.0)
        heat = simulation.to_numpy("temperature").astype(np.float64)
        warm, cold = 2 * n * (0.5 - heat[:, 0]).mean(), 2 * n * (heat[:, -1] + 0.5).mean()
        speed, kappa = simulation.to_numpy("velocity")[1].astype(np.float64), simulation.scene.fluid.heat_diffusion
        low, high = heat[:, n // 2 - 1], heat[:, n // 2]
        middle = (speed[:, n // 2] * (low + high) / 2 / kappa + n * (low - high)).mean()
        run.near(f"Ra {rayleigh}: Nu at the warm plate", warm, wanted, 0.005 * coarser)
        run.near(f"Ra {rayleigh}: Nu in the middle", middle, wanted, 0.005 * coarser)
        run.at_most(f"Ra {rayleigh}: warm and cold plate, relative difference of Nu", abs(warm / cold - 1), 1e-3)


CORE, STRENGTH = 0.1, 299.528385375226
"""Of each of two shielded vortices: its radius, m, and the vorticity in its middle, 1/s, with which both have 2 J."""


def dipole(run: Run) -> None:
    """Two vortices that carry each other into a wall, along which they slow down and tear off others."""
    vortices = [(sign, f"exp(-((x-1)**2+(y-1-({sign * CORE}))**2)/{CORE**2})") for sign in (1, -1)]
    u = "+".join(f"({-0.5 * sign * STRENGTH})*(y-1-({sign * CORE}))*{shape}" for sign, shape in vortices)
    v = "+".join(f"({0.5 * sign * STRENGTH})*(x-1)*{shape}" for sign, shape in vortices)
    simulation = run.simulation(
        "dipole",
        domain={"size": [2.0, 2.0], "resolution": run.resolution, "boundaries": "no-slip"},
        fluid={"viscosity": 1 / 625, "rho": 1.0},
        initial={"velocity": [u, v], "projected": True},
        solver={"tolerance": 1e-5},
    )
    measured = [{"name": name, "kind": "integral", "quantity": name} for name in ("kinetic_energy", "enstrophy")]
    with Probes(simulation, measured) as probes:
        run.advance(simulation, 0.8)
    coarser = max(1.0, 256 / run.resolution) ** 2
    plain_code = ("1.504 at 256²", "1.001", "0.763")
    for (time, wanted), plain in zip(CLERCX_BRUNEAU["energy"].items(), plain_code, strict=True):
        found = float(np.interp(time, *probes.series("kinetic_energy")))
        run.near(f"energy after {time:g} s", found, wanted, 0.015 * coarser, plain)
    times, enstrophy = probes.series("enstrophy")
    (when, wanted), *_ = CLERCX_BRUNEAU["enstrophy"].items()
    found = peak(times[times < 0.5], enstrophy[times < 0.5])
    run.near("first peak of the enstrophy, 1/s²", found[1], wanted, 0.1 * coarser, "997 at 256²")
    run.near("when that is, s", found[0], when, 0.02 * coarser, "0.370 at 256²")
    points = tuple(zip(*CLERCX_BRUNEAU["enstrophy"].items(), strict=True))
    run.curve("enstrophy", ("t", "enstrophy"), (times, enstrophy), points)
