"""Solids that turn, slide and swing, and a channel that is not aligned with the grid: flows that are known in closed form."""

import math
from typing import NamedTuple

import numpy as np

from .._ti import ti
from ..boundaries.solids import Motion, Solid
from ..simulation import Simulation
from ..simulation.probes import Probes
from .bodies import force_on_body
from .cases import Run
from .exact import faces_of

MIDDLE, INNER, OUTER = (0.503, 0.497), 0.15, 0.4
"""Of two cylinders about one axis, which is not that of the box: where that is, and their radii, m."""


@ti.func
def outside_cylinder(x):
    """Distance from a solid that is everywhere but within ``OUTER`` of the axis, m."""
    return OUTER - ti.sqrt(x[0] ** 2 + x[1] ** 2)


def between_cylinders(
    run: Run, inner: dict, radius: float, spin: float = 0.0, viscosity: float = 0.0, max_dt: float = 0.5
) -> Simulation:
    """The fluid, 1 kg/m³, between a cylinder, solid 0, and a round wall that turns, solid 1; n cells to a metre."""
    scene = run.scene(
        "between-cylinders",
        domain={"size": [1.0, 1.0], "resolution": run.resolution},
        fluid={"viscosity": viscosity, "rho": 1.0},
        solver={"tolerance": 1e-6, "max_dt": max_dt},
        solids=[{"shape": "sphere", "center": list(MIDDLE), "radius": radius, **inner}],
    )
    wall = Solid(outside_cylinder, motion=Motion(MIDDLE, angular_velocity=(spin,)))
    return Simulation(scene, solids=[wall])


def turning(run: Run) -> None:
    """The case: Couette's flow, the inner cylinder turning, then the outer one, by 1 rad/s each, Re up to 16."""
    viscosity, n = 0.01, run.resolution
    coarser = max(1.0, 64 / n) ** 2
    for name, spins in (("inner", (1.0, 0.0)), ("outer", (0.0, 1.0))):
        simulation = between_cylinders(run, {"angular_velocity": spins[0]}, INNER, spins[1], viscosity)
        run.settle(simulation, 1e-5, 60.0, every=2.0)
        swirl = (spins[0] - spins[1]) * INNER**2 * OUTER**2 / (OUTER**2 - INNER**2)
        whole = (spins[1] * OUTER**2 - spins[0] * INNER**2) / (OUTER**2 - INNER**2)
        x = np.arange(n + 1)[:, None] / n - MIDDLE[0]
        y = (np.arange(n) + 0.5)[None, :] / n - MIDDLE[1]
        radius = np.hypot(x, y)
        between = (radius > INNER + 1 / n) & (radius < OUTER - 1 / n)
        error = (faces_of(simulation)[0] + (whole + swirl / radius**2) * y)[between]
        speed = max(spins[0] * INNER, spins[1] * OUTER)
        run.at_most(
            f"{name} one turns: mean square error of the velocity, over its speed",
            math.sqrt(np.mean(error**2)) / speed,
            2e-3 * coarser,
        )
        torque = -4 * math.pi * viscosity * swirl  # of the fluid on the inner one
        assert simulation.solids is not None
        for index, sign, bears in ((0, 1, "inner"), (1, -1, "outer")):
            found = sign * simulation.solids.load(index).torque[0] / torque
            run.near(f"{name} one turns: torque on the {bears} one, over the exact one", found, 1.0, 0.005 * coarser)


SLOPE, BAND, PUSH, THICK = (2.0, 1.0), 0.1, 1.0, 0.05
"""Of a channel aslant: its direction, half the thickness of what parts it from itself, m; m/s², and viscosity, m²/s."""


class Aslant(NamedTuple):
    """Of a channel aslant: the largest error of the velocity over the exact one's largest, and what its wall bears.

    Friction and the force across are over the push on all of the fluid.
    """

    error: float
    friction: float
    across: float


def channel_aslant(run: Run, resolution: int) -> Aslant:
    """Poiseuille's flow in a periodic box, 2 m by 1 m, that a band along its diagonal makes a channel of."""
    along = np.array(SLOPE) / math.hypot(*SLOPE)
    normal = np.array([-along[1], along[0]])
    apart, start = SLOPE[0] * along[1], np.array([0.013, 0.007])
    width = apart - 2 * BAND
    ends = [(start + shift * np.array(SLOPE)).tolist() for shift in (-1, 2)]
    simulation = run.simulation(
        "channel-aslant",
        domain={"size": list(SLOPE), "resolution": resolution, "boundaries": "periodic"},
        fluid={"viscosity": THICK, "rho": 1.0, "body_force": (PUSH * along).tolist()},
        solver={"tolerance": 1e-5, "max_dt": 0.2},
        solids=[{"shape": "cylinder", "ends": ends, "radius": BAND}],
    )
    run.settle(simulation, 1e-5, 40.0, every=2.0)
    dx, largest, error = simulation.grid.dx, PUSH * width**2 / (8 * THICK), 0.0
    for axis, found in enumerate(faces_of(simulation)):
        x, y = ((np.arange(m) + 0.5 * (a != axis)) * dx for a, m in enumerate(found.shape))
        off = ((x - start[0])[:, None] * normal[0] + (y - start[1])[None, :] * normal[1]) % apart - BAND
        exact = PUSH / (2 * THICK) * off * (width - off) * along[axis]
        error = max(error, np.abs(found - exact)[(off > dx) & (off < width - dx)].max() / largest)
    force = force_on_body(simulation) / (PUSH * width * math.hypot(*SLOPE))
    return Aslant(error, float(force @ along), float(abs(force @ normal)))


def aslant(run: Run) -> None:
    """The case."""
    n = run.resolution
    coarser = max(1.0, 128 / n) ** 2
    coarse, fine = channel_aslant(run, n // 2), channel_aslant(run, n)
    run.at_most("largest error, over the largest velocity", fine.error, 1e-3 * coarser)
    run.at_least(f"order of that error from {n // 2} to {n} cells", math.log2(coarse.error / fine.error), 1.8)
    run.near("friction, over the push on the fluid", fine.friction, 1.0, 0.01 * math.sqrt(coarser))
    run.at_most("force across, over the push", fine.across, 5e-3 * math.sqrt(coarser))


OMEGA, SLAB = 2 * math.pi, 0.1037
"""Of what swings: its frequency, 1/s, and how high the plate reaches into the first cells, m."""


class Swung(NamedTuple):
    """Of a plate that swings: the largest error of the velocity over the plate's own, and the friction on it over the exact one.

    That is of its amplitude, and by how many radians it is late.
    """

    error: float
    friction: float
    late: float


def swinging_plate(run: Run, resolution: int, solid: bool) -> Swung:
    """Stokes' second problem: a plate swings in its plane, as a solid or as a side, with 50 steps a period."""
    viscosity, dt, base = 0.01, 0.02, SLAB if solid else 0.0
    depth = math.sqrt(2 * viscosity / OMEGA)
    plate = {"shape": "box", "center": [0.0, 0.0], "size": [9.0, 2 * SLAB], "swing": [1 / OMEGA, 0.0]}
    wall = "no-slip" if solid else {"kind": "moving-wall", "velocity": [f"cos({OMEGA} * t)", 0.0]}
    above = f"(max(y - {base}, 0) / {depth})"
    simulation = run.simulation(
        "swinging-plate",
        domain={
            "size": [4 / resolution, 0.5],
            "resolution": resolution // 2,
            "boundaries": [["periodic"] * 2, [wall, "free-slip"]],
        },
        fluid={"viscosity": viscosity, "rho": 1.0},
        solver={"tolerance": 1e-5, "max_dt": 1.0},
        initial={"velocity": [f"exp(-{above}) * cos{above}", 0.0]},
        solids=[plate] if solid else [],
    )
    times, pulls = [], []
    for _ in range(100):
        run.step(simulation, 1, dt)
        if solid:
            times.append(simulation.time - dt / 2)
            pulls.append(force_on_body(simulation)[0] * math.sqrt(0.5) * depth / (viscosity * simulation.grid.size[0]))
    y = (np.arange(resolution // 2) + 0.5) / resolution - base
    exact = np.exp(-y / depth) * np.cos(OMEGA * simulation.time - y / depth)
    error = np.abs(faces_of(simulation)[0] - exact)[:, y > 0.5 / resolution].max()
    if not solid:
        return Swung(float(error), math.nan, math.nan)
    late, size = swing_of(times[50:], pulls[50:])
    return Swung(float(error), size, late - 0.75 * math.pi)  # of -cos(wt) + sin(wt) the largest is there


def swing_of(times: list[float], values: list[float]) -> tuple[float, float]:
    """Phase, from 0 to 2 pi, at which what swings with ``OMEGA`` is largest, and its amplitude."""
    phase = OMEGA * np.array(times)
    cosine, sine = np.linalg.lstsq(np.stack([np.cos(phase), np.sin(phase)], 1), np.array(values), rcond=None)[0]
    return float(math.atan2(sine, cosine) % (2 * math.pi)), float(math.hypot(cosine, sine))


def swinging(run: Run) -> None:
    """The case; of a plain code friction lacks the inertia of half a cell of fluid, a tenth here."""
    n = run.resolution
    coarser = max(1.0, 128 / n) ** 2
    coarse, fine = (swinging_plate(run, cells, solid=False) for cells in (n // 2, n))
    run.at_most("a side: largest error, over its largest velocity", fine.error, 5e-3 * coarser)
    run.at_least(f"a side: order of that error from {n // 2} to {n} cells", math.log2(coarse.error / fine.error), 1.5)
    found = swinging_plate(run, n, solid=True)
    run.at_most("a solid: largest error, over its largest velocity", found.error, 0.01 * coarser)
    run.near("a solid: friction, over the exact one", found.friction, 1.0, 0.05 * math.sqrt(coarser))
    run.between("a solid: friction, late by, rad", found.late, *(0.1 * math.sqrt(coarser) * side for side in (-1, 1)))


SWUNG, CORE = 1e-3, 0.2
"""Of a cylinder that swings in a round wall: how far, and its radius, m."""


def added_mass(run: Run) -> None:
    """The case: without viscosity the fluid between two cylinders is pushed at once, by potential flow.

    Loads and pressure are those of the last step, and so of its middle.
    """
    dt, coarser = 0.01, max(1.0, 64 / run.resolution) ** 2
    simulation = between_cylinders(run, {"swing": [SWUNG, 0.0]}, CORE)
    assert simulation.solids is not None
    ratio = (OUTER**2 + CORE**2) / (OUTER**2 - CORE**2)
    push = math.pi * CORE**2 * SWUNG * OMEGA**2
    times, forces, at_wall, jumps = [], [], [], []
    ends = [[MIDDLE[0] + side * 0.5 * (CORE + OUTER), MIDDLE[1]] for side in (-1, 1)]
    probes = [{"name": f"p{k}", "kind": "point", "quantity": "pressure", "at": end} for k, end in enumerate(ends)]
    with Probes(simulation, probes) as measured:
        for _ in range(100):
            run.step(simulation, 1, dt)
            loads = [simulation.solids.load(index).pressure[0] for index in (0, 1)]
            times.append(simulation.time - dt / 2)
            forces.append(loads[0] / (push * ratio))
            at_wall.append(loads[1] / (push * (ratio + 1)))
            jumps.append(measured.rows[-1]["p1"] - measured.rows[-1]["p0"])
    middle = 0.5 * (CORE + OUTER)
    jump = 2 * SWUNG * OMEGA**2 * CORE**2 / (OUTER**2 - CORE**2) * (middle + OUTER**2 / middle)
    for name, found in (
        ("force on the cylinder, over the exact one", forces),
        ("force on the wall, over the exact one", at_wall),
        ("pressure from one side to the other, over the exact one", [each / jump for each in jumps]),
    ):
        phase, size = swing_of(times[3:], found[3:])  # at first it has set off at once
        run.near(name, size, 1.0, 0.01 * coarser)
        late_by = phase % math.pi - 0.5 * math.pi
        run.between(f"{name}: late by, rad", late_by, -0.01 * coarser, 0.01 * coarser)
