"""Liquids with a surface: at rest, sloshing, as a breaking dam, and how much there is of them after long."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..grid import Grid
from ..scene import Scene, preset
from ..simulation import Simulation
from .cases import Run
from .ghost_fluid import RHO, below_a_plane, order, still_water
from .water import (
    GRAVITY,
    energy,
    fastest,
    filled_part,
    frequency_of,
    liquid_of,
    lost_in_a_period,
    volume_of,
    water,
)

BALL: list[dict[str, Any]] = [{"shape": "sphere", "center": [0.5, 0.3], "radius": 0.13}]
WEDGE: list[dict[str, Any]] = [
    {"shape": "box", "center": [0.1, 0.5], "size": [0.3, 3.0]},
    {"shape": "capsule", "ends": [[0.2, 0.0], [1.2, 0.3]], "radius": 0.12},
]
"""A solid that cuts cells, and a tank that is not aligned with the grid; below its floor there is water too."""
HALF_OUT: list[dict[str, Any]] = [{"shape": "sphere", "center": [0.5, 0.4], "radius": 0.2}]
"""A solid that the surface meets aslant."""
REST_STEPS, ASLANT = 500, 0.2
"""Steps that a pool is looked at, and how far gravity is turned, in radians."""


def still_pool(dim: int, resolution: int, height: float, solids: Sequence[dict[str, Any]] = ()) -> Scene:
    """Water at rest, up to a height, m, in a box of edge 1 m."""
    top = [1.0, height, 1.0][:dim]
    return water([1.0] * dim, resolution, [([0.0] * dim, top)], solids=list(solids))


def _at_rest(run: Run, simulation: Simulation) -> float:
    """The largest speed in so many steps, m/s."""
    found = 0.0
    for _ in range(REST_STEPS // 5):
        run.step(simulation, 5)
        found = max(found, fastest(simulation))
    return found


def _level(simulation: Simulation, floor: Callable[[Any], Any]) -> np.ndarray:
    """How high above y = 0 water at rest would stand by the pressure of each cell above a floor, m."""
    grid = simulation.grid
    x, y = np.broadcast_arrays(*grid.cell_centres())
    wet = (simulation.to_numpy("level set") < 0) & (y > floor(x))
    if simulation.solids is not None:
        wet &= grid.to_numpy(simulation.solids.fluid) > 0
    return (simulation.to_numpy("pressure") / (RHO * GRAVITY) + y)[wet]


def pool(run: Run) -> None:
    """The case."""
    n = run.resolution
    grid = Grid((n, n), 1 / n)
    distance, gravity = below_a_plane(grid, ASLANT)
    moved, pressure, _ = still_water(grid, distance, gravity=gravity)
    off = np.abs(pressure / (RHO * GRAVITY) - np.maximum(-distance, 0)).max() / 0.5
    run.at_most("below a plane aslant: pressure off the hydrostatic one, over rho g h", off, 1e-4)
    run.at_most("below a plane aslant: velocity that a step leaves, over g dt", moved, 1e-4)
    pools = (
        ("around a ball", BALL, 0.625, lambda x: 0.0),
        ("around a disk half out of it", HALF_OUT, 0.5, lambda x: 0.0),
        ("tank aslant", WEDGE, 0.5, lambda x: 0.3 * (x - 0.2)),
    )
    for name, solids, height, floor in pools:
        simulation = Simulation(run.changed(still_pool(2, n, height, solids)))
        speed, level = _at_rest(run, simulation), _level(simulation, floor)
        middle = float(np.median(level))
        run.at_most(f"{name}: fastest in {REST_STEPS} steps, over sqrt(g h)", speed / math.sqrt(GRAVITY * height), 1e-4)
        off = np.abs(level - middle).max() / height
        run.at_most(f"{name}: pressure off the hydrostatic one of its level, over rho g h", off, 1e-4)
        run.between(f"{name}: level, too high by so many cells", (middle - height) * n, -0.1, 0.1)
    honey = {"fluid": {"viscosity": 0.01}, "domain": {"boundaries": "no-slip"}}
    simulation = Simulation(run.changed(water([1.0, 1.0], n, [([0.0, 0.0], [1.0, 0.5])], **honey)))
    speed = _at_rest(run, simulation) / math.sqrt(0.5 * GRAVITY)
    run.at_most(f"honey between walls that hold it: fastest in {REST_STEPS} steps, over sqrt(g h)", speed, 1e-4)
    simulation = Simulation(run.changed(water([1.0, 1.0], n, fluid={"gravity": list(gravity)})))
    simulation.set(level_set=distance)
    speed = _at_rest(run, simulation) / math.sqrt(0.5 * GRAVITY)
    run.at_most(f"gravity aslant: fastest in {REST_STEPS} steps, over sqrt(g h)", speed, 1e-4)


HELD, SUBMERGED = 0.2, (-0.5, 0.0, 0.5, 1.2)
"""Radius of a ball that is held in water at rest, m, and how far above its middle that stands, in radii."""


def below_water(dim: int, height: float) -> float:
    """How much of a ball of radius 1 (2D: a disk) lies lower than so far above its middle."""
    h = min(max(height, -1.0), 1.0)
    if dim == 2:
        return math.acos(-h) + h * math.sqrt(1 - h * h)
    return math.pi / 3 * (1 + h) ** 2 * (2 - h)


def lift_on_a_ball(run: Run, dim: int, resolution: int, height: float, steps: int) -> float:
    """The force on the ball upwards over Archimedes', the mean of some steps."""
    ball = {"shape": "sphere", "center": [0.5, 0.5 - HELD * height, 0.5][:dim], "radius": HELD}
    simulation, found = Simulation(run.changed(still_pool(dim, resolution, 0.5, [ball]))), 0.0
    assert simulation.solids is not None
    for _ in range(steps):
        run.step(simulation, 1)
        found += simulation.solids.load(0).force[1]
    return found / steps / (RHO * GRAVITY * HELD**dim * below_water(dim, height))


def archimedes(run: Run) -> None:
    """The case: a quarter of the ball's height in the water, half of it, three quarters and all."""
    for dim, n in ((2, run.resolution), (3, run.resolution // 2)):
        coarser = max(1.0, (64, 32)[dim - 2] / n) ** 2
        errors = []
        for height in SUBMERGED:
            coarse, fine = (lift_on_a_ball(run, dim, cells, height, 10) for cells in (n // 2, n))
            where = f"{dim}D, {n} cells, water {height:g} radii above its middle"
            run.near(f"{where}: force over Archimedes'", fine, 1.0, (0.005, 0.02)[dim - 2] * coarser)
            errors.append((abs(coarse - 1), abs(fine - 1)))
        coarse, fine = np.mean(errors, axis=0)
        run.at_least(
            f"{dim}D, from {n // 2} to {n} cells: order of the mean error", order(coarse, fine, (n // 2, n)), 1.5
        )


class Sloshing(NamedTuple):
    """Of the first mode of a tank: its frequency over that of theory, and what it loses of its amplitude in a period."""

    frequency: float
    lost: float


def standing_frequency(k: float, depth: float, amplitude: float) -> float:
    """Frequency of a standing wave in 1/s, to the second order in its height (Tadjbakhsh and Keller 1960).

    Linear theory's is that of ``amplitude`` 0. In deep water it is lower by (k a)² / 8.
    """
    w = math.sqrt(math.tanh(k * depth))
    second = (9 / w**7 - 12 / w**3 - 3 * w - 2 * w**5) / 32
    return math.sqrt(GRAVITY * k) * (w + 0.5 * (k * amplitude) ** 2 * second) / (2 * math.pi)


def sloshing(
    run: Run,
    resolution: int,
    transfer: str = "apic",
    dt: float | None = None,
    band: int = 0,
    periods: float = 2.6,
    depth: float = 0.5,
) -> Sloshing:
    """Let a tank slosh, 1 m wide and ``depth`` deep, 0.02 m high at first."""
    amplitude = 0.02
    scene = water([1.0, 1.0], resolution, [([0.0, 0.0], [1.0, depth])], liquid={"transfer": transfer, "band": band})
    simulation = Simulation(run.changed(scene))
    x, y = simulation.grid.cell_centres()
    simulation.set(level_set=y - depth - amplitude * np.cos(np.pi * x))
    frequency = standing_frequency(math.pi, depth, amplitude)
    times, middles = [], []
    while simulation.time < periods / frequency:
        run.step(simulation, 1, dt)
        filled = filled_part(simulation)
        times.append(simulation.time)
        middles.append(float((filled * x).sum() / filled.sum()) - 0.5)
    return Sloshing(frequency_of(times, middles) / frequency, lost_in_a_period(times, middles))


LEVELS = (0.0, 0.25, 0.5, 0.75)
"""How far above a row of cells a tank begins at rest: by that its frequency differs."""
STEP = 0.4
"""Seconds of a step, times the cells on a metre, where an order is looked for: else half of what is off is by the step, which goes by
the root of the cells, and makes faster what cells make slower."""


def _tanks(run: Run, cells: int, transfer: str, dt: float | None = None) -> np.ndarray:
    """``Sloshing`` of a tank at each of the ``LEVELS``."""
    depths = (0.5 + level / cells for level in LEVELS)
    return np.array([sloshing(run, cells, transfer, dt, periods=5.1, depth=depth) for depth in depths])


def slosh(run: Run) -> None:
    """The case: the mean of tanks that begin at different heights within a cell."""
    n = run.resolution
    coarser = max(1.0, 64 / n) ** 2
    for transfer in ("apic", "flip"):
        own = _tanks(run, n, transfer)
        run.near(f"{transfer}: frequency, over that of theory", own[:, 0].mean(), 1.0, 0.015 * coarser)
        errors = (float(np.abs(_tanks(run, cells, transfer, STEP / cells)[:, 0] - 1).mean()) for cells in (n // 2, n))
        least = 1.8 if n >= 64 else 0.5
        run.at_least(f"{transfer}: order of its error from {n // 2} to {n} cells", order(*errors, (n // 2, n)), least)
        run.figure(f"{transfer}: part of the amplitude that is lost in a period", own[:, 1].mean())


HEIGHT, RESERVOIR, LENGTH = 0.5, 3.0, 9.0
"""Of a dam break that Ritter's solution holds for: depth of the water, how far it reaches, and the box, m."""


def dam(resolution: int, transfer: str = "apic", length: float = 2.0, reservoir: float = 0.5) -> Scene:
    """A column of water at the left end of a box of a length, m, 0.5 m high, before it breaks."""
    return water([length, 1.0], resolution, [([0.0, 0.0], [reservoir, HEIGHT])], liquid={"transfer": transfer})


def front_of(simulation: Simulation) -> float:
    """How far to the right any particle has come, m."""
    return float(liquid_of(simulation).particles.to_numpy()["position"][:, 0].max())


class Broken(NamedTuple):
    """Of a dam break: instants, s, where the front was then, m, and energy and volume over those of the beginning."""

    times: np.ndarray
    fronts: np.ndarray
    energies: np.ndarray
    volumes: np.ndarray


def broken(run: Run, simulation: Simulation, duration: float, dt: float | None = None) -> Broken:
    """Let a dam break for so many seconds."""
    liquid, first = liquid_of(simulation), energy(simulation)
    volume, rows = liquid.volume, [(0.0, front_of(simulation), 1.0, 1.0)]
    while simulation.time < duration:
        run.step(simulation, 1, dt)
        now = energy(simulation) / first
        rows.append((simulation.time, front_of(simulation), now, liquid.volume / volume))
    return Broken(*np.array(rows).T)


def dam_front(run: Run) -> None:
    """The case: until the wave into the reservoir has come to its end (Ritter 1892)."""
    wave, coarser = math.sqrt(GRAVITY * HEIGHT), max(1.0, 576 / run.resolution) ** 2
    for transfer in ("apic", "flip"):
        simulation = Simulation(run.changed(dam(run.resolution, transfer, LENGTH, RESERVOIR)))
        x, dx = simulation.grid.cell_centres()[0][:, 0], simulation.grid.dx
        volume = volume_of(simulation)
        found = broken(run, simulation, RESERVOIR / wave)
        t, ritter = found.times, RESERVOIR + 2 * wave * found.times
        ahead = (found.fronts - ritter).max() / HEIGHT
        run.at_most(f"{transfer}: front ahead of Ritter's at any time, over h", ahead, dx / HEIGHT)
        way = (found.fronts[-1] - RESERVOIR) / (ritter[-1] - RESERVOIR)
        run.figure(f"{transfer}: way of the front, over that of Ritter's", way)
        depth = filled_part(simulation).sum(axis=1) * dx / HEIGHT
        along = np.clip((x - RESERVOIR) / (wave * t[-1]), -1, 2)
        error = np.abs(depth - (2 - along) ** 2 / 9)[(along > -1) & (along < 2)].mean()
        run.at_most(f"{transfer}: depth at the end, mean error beside Ritter's, over h", error, 0.02 * coarser)
        at_dam = float(np.interp(RESERVOIR, x, depth))
        run.near(f"{transfer}: depth where the dam was, at the end, over h", at_dam, 4 / 9, 0.05 * coarser)
        run.at_most(f"{transfer}: most energy of all times, over that of the beginning", found.energies.max(), 1.001)
        run.at_most(f"{transfer}: volume of the particles, off by a part", np.abs(found.volumes - 1).max(), 0.01)
        below = abs(volume_of(simulation) / volume - 1)
        run.at_most(f"{transfer}: volume below the surface at the end, off by a part", below, 0.01)
        run.curve(f"front, {transfer}", ("t", "x"), (t, found.fronts), (t, ritter))
    simulation = Simulation(run.changed(dam(run.resolution, "apic", LENGTH, RESERVOIR)))
    most = broken(run, simulation, RESERVOIR / wave, 0.005).energies.max()
    run.at_most("apic, steps of 0.005 s: most energy, over that of the beginning", most, 1.001)


KEPT = ("dam2d", "slosh", "dam", "paddle", "splash", "pour", "honey")
"""Presets whose volume is looked at."""


def volume(run: Run) -> None:
    """The case: at fewer cells than its own it is as many steps, not as many seconds."""
    duration = 10.0 * min(1.0, run.resolution / 64)
    for name in KEPT:
        simulation = Simulation(run.changed(preset(name).with_values({"domain.resolution": run.resolution})))
        liquid, off, below = liquid_of(simulation), 0.0, []
        while simulation.time < duration * (1 - 1e-9):
            run.advance(simulation, 0.05 * duration)
            off = max(off, abs(liquid.lacking) / liquid.target)
            below.append(volume_of(simulation) / liquid.volume)
        run.at_most(f"{name}: particles and core off what was put in, in {duration:g} s, a part", off, 0.01)
        run.figure(f"{name}: volume below the surface over that, mean of the second half", float(np.mean(below[10:])))
