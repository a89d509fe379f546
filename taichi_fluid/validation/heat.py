"""Heat: past cylinders that let none through, around one that is hot, what draws air through a chimney, cold fluid that runs out, and waves in layers."""

import math

import numpy as np

from ..boundaries.solids import Motion, Solid
from ..simulation import Simulation
from ..simulation.probes import Probes
from .cases import Run
from .moving import MIDDLE, OUTER, outside_cylinder
from .published import SHU
from .water import frequency_of, lost_in_a_period

RADIUS = 0.35
"""Of cylinders in a square array, 1 m apart, m."""


def conductivity_of_array(part: float) -> float:
    """Of a square array of cylinders that fill so much and conduct nothing, over that of what is around them.

    W. T. Perrins, D. R. McKenzie, R. C. McPhedran, Proc. R. Soc. Lond. A 369 (1979), to five places for this radius.
    """
    return 1 - 2 * part / (1 + part - 0.305827 * part**4 / (1 - 1.402958 * part**8) - 0.013362 * part**8)


def heat_past_cylinder(run: Run, resolution: int) -> tuple[float, float]:
    """What passes between two sides a degree apart, with the cylinder between, at both of them, by long implicit steps."""
    sides = [[{"kind": "no-slip", "temperature": 1.0 - end} for end in range(2)], ["free-slip"] * 2]
    simulation = run.simulation(
        "past-a-cylinder",
        domain={"size": [1.0, 1.0], "resolution": resolution, "boundaries": sides},
        fluid={"heat_diffusion": 1.0, "gravity": [0.0, 0.0]},
        solver={"scheme": "splitting", "tolerance": 1e-6, "max_dt": 1.0},
        solids=[{"shape": "sphere", "center": [0.5, 0.5], "radius": RADIUS}],
    )
    run.step(simulation, 8, 1.0)
    heat = simulation.to_numpy("temperature").astype(np.float64)
    return 2 * resolution * float((1 - heat[0]).mean()), 2 * resolution * float(heat[-1].mean())


def conduction(run: Run) -> None:
    """The case."""
    n, exact = run.resolution, conductivity_of_array(math.pi * RADIUS**2)
    coarser = max(1.0, 64 / n) ** 2
    coarse, (warm, cold) = heat_past_cylinder(run, n // 4)[0], heat_past_cylinder(run, n)
    run.near("heat past the cylinder, over the exact one", warm / exact, 1.0, 1e-3 * coarser)
    order = math.log(abs(coarse - exact) / abs(warm - exact), 4)
    run.at_least(f"order of its error from {n // 4} to {n} cells", order, 1.8)
    run.at_most("warm and cold side, relative difference", abs(warm / cold - 1), 1e-4)


PRANDTL, CORE = 0.7, OUTER / 2.6
"""Of the fluid, and the radius of the hot cylinder, m."""


def around_hot_cylinder(run: Run, rayleigh: float) -> Simulation:
    """A cylinder at 1 K in a round wall at 0 K; what heat would drive without friction over the gap between is 1 m/s."""
    gap = OUTER - CORE
    scene = run.scene(
        "around-a-hot-cylinder",
        domain={"size": [1.0, 1.0], "resolution": run.resolution},
        fluid={
            "viscosity": gap * math.sqrt(PRANDTL / rayleigh),
            "heat_diffusion": gap / math.sqrt(PRANDTL * rayleigh),
            "gravity": [0.0, -1 / gap],
            "expansion": 1.0,
        },
        solver={"tolerance": 1e-5, "max_dt": 0.1 * gap},
        solids=[{"shape": "sphere", "center": list(MIDDLE), "radius": CORE, "temperature": 1.0}],
    )
    return Simulation(scene, solids=[Solid(outside_cylinder, motion=Motion(MIDDLE), values={"temperature": 0.0})])


def heat_through_square(simulation: Simulation, half: float) -> float:
    """What leaves a square around the middle, rounded to faces of cells, K m²/s."""
    dx, sides, total = simulation.grid.dx, [], 0.0
    ends = [[round((m + sign * half) / dx) * dx for m in MIDDLE] for sign in (-1, 1)]
    for axis, sign in ((a, e) for a in range(2) for e in range(2)):
        plane = {"kind": "plane", "quantity": "temperature", "axis": "xy"[axis], "position": ends[sign][axis]}
        sides.append({"name": f"{axis}{sign}", **plane, "lower": ends[0], "upper": ends[1]})
    with Probes(simulation, sides) as probes:
        for name, value in probes.rows[0].items():
            total += value * {"0": -1, "1": 1}[name[-1]] if name[0] in "01" else 0.0
    return total


def annulus(run: Run) -> None:
    """The case: heat over what would be conducted without motion."""
    coarser = max(1.0, 64 / run.resolution) ** 2
    for rayleigh, wanted in SHU.items():
        simulation = around_hot_cylinder(run, rayleigh)
        run.settle(simulation, 1e-4, 15.0, every=1.0)
        conducted = 2 * math.pi * simulation.scene.fluid.heat_diffusion / math.log(OUTER / CORE)
        found = heat_through_square(simulation, 0.25) / conducted
        run.near(f"Ra {rayleigh}: mean equivalent conductivity", found, wanted, 0.005 * coarser)


CHIMNEY = (0.25, 2.0)
"""Width and height, m; both of its ends are open."""
HEATER = (0.25, 0.2)
"""Middle and height of what heats the air in it, m."""
HEATING = 100.0
"""K/s, there."""
EXPANSION = 1 / 300
"""1/K."""


def draught_of_chimney(run: Run, cfl: float) -> float:
    """The steady speed in a chimney without friction, m/s."""
    width, height = CHIMNEY
    middle, deep = HEATER
    simulation = run.simulation(
        "chimney",
        domain={"size": [width, height], "resolution": run.resolution, "boundaries": [["free-slip"] * 2, ["open"] * 2]},
        fluid={"expansion": EXPANSION},
        sources=[{"shape": "box", "center": [width / 2, middle], "size": [width, deep], "temperature": HEATING}],
        solver={"cfl": cfl},
    )
    run.advance(simulation, 12.0)
    return float(simulation.to_numpy("velocity")[1].mean())


def chimney(run: Run) -> None:
    """The case.

    By Bernoulli U²/2 is what lifts the air above the heater, in which it has become warmer by what that gives over U.
    """
    middle, deep = HEATER
    exact = (2 * 9.81 * EXPANSION * HEATING * deep * (CHIMNEY[1] - middle)) ** (1 / 3)
    # Where the pressure is 0 stands a cell beyond the upper end.
    within = 0.01 * 64 / run.resolution
    for cfl in (0.5, 1.5, 3.0):
        run.near(f"CFL {cfl:g}: draught, over Bernoulli's", draught_of_chimney(run, cfl) / exact, 1.0, within)


REACH = 6.0
"""How long a box of a metre's height is, in half of which there is cold fluid, m."""


def lock(run: Run) -> None:
    """The case: with the weight of one metre per second squared both fronts go by 0.5 m/s, if nothing is lost.

    T. B. Benjamin, Gravity currents and related phenomena, Journal of Fluid Mechanics 31 (1968), 209-248.
    """
    coarser = max(1.0, 192 / run.resolution) ** 2
    simulation = run.simulation(
        "lock-exchange",
        domain={"size": [REACH, 1.0], "resolution": run.resolution},
        fluid={"gravity": [0.0, -1.0], "expansion": 1.0, "viscosity": 2e-4},
        solver={"max_dt": 0.05},
        initial={"temperature": f"-step({0.5 * REACH}-x)"},
    )
    x, quarter, times, fronts = simulation.grid.cell_centres()[0][:, 0], simulation.grid.shape[1] // 4, [], []
    while simulation.time < 5.0:
        run.step(simulation, 1)
        if simulation.time > 2.0:
            cold = -simulation.to_numpy("temperature")
            below, above = cold[:, :quarter].mean(axis=1), cold[:, -quarter:].mean(axis=1)
            times.append(simulation.time)
            fronts.append((x[below > 0.25].max(), -x[above < 0.75].min()))
    for name, places in zip(("cold front, below", "warm front, above"), np.transpose(fronts), strict=True):
        run.near(f"{name}: speed over sqrt(g' H)", np.polyfit(times, places, 1)[0], 0.5, 0.05 * coarser)
    heat = float(simulation.to_numpy("temperature").mean(dtype=np.float64))
    run.near("heat at the end, over that at first", -2 * heat, 1.0, 1e-5)


def internal_wave(run: Run) -> None:
    """The case: on both grids, a wave as long as high in layers that swing at 1 rad/s by themselves: at the root of half of that.

    Lord Rayleigh, Investigation of the character of the equilibrium of an incompressible heavy fluid of variable density,
    Proceedings of the London Mathematical Society 14 (1883), 170-177.
    """
    frequency = math.sqrt(0.5) / (2 * math.pi)
    for grid in ("staggered", "collocated"):
        simulation = run.simulation(
            "internal-wave",
            domain={"size": [1.0, 1.0], "resolution": run.resolution, "boundaries": "free-slip", "grid": grid},
            fluid={"gravity": [0.0, -1.0], "expansion": 1.0},
            solver={"max_dt": 0.1},
            initial={
                "temperature": "y",
                "velocity": ["0.01*sin(pi*x)*cos(pi*y)", "-0.01*cos(pi*x)*sin(pi*y)"],
            },
        )
        x, y = simulation.grid.cell_centres()
        shape, times, values = np.cos(np.pi * x) * np.sin(np.pi * y), [], []
        while simulation.time < 3.6 / frequency:
            run.step(simulation, 1)
            times.append(simulation.time)
            values.append(float((simulation.to_numpy("velocity")[1] * shape).mean()))
        run.near(f"{grid}: frequency, over that of theory", frequency_of(times, values) / frequency, 1.0, 0.005)
        run.at_most(f"{grid}: part of the amplitude that is lost in a period", lost_in_a_period(times, values), 0.01)
