"""Flow past a cylinder in a channel and past a sphere: forces, pressure, wake, and how often vortices come off."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..simulation import Simulation
from .cases import Run, peak, zeros_of
from .exact import faces_of
from .published import DUETSCH, SANGANI_ACRIVOS, SCHAEFER_TUREK_PERIODIC, SCHAEFER_TUREK_STEADY

HEIGHT, LENGTH, DIAMETER, MIDDLE = 0.41, 2.2, 0.1, 0.2
"""Of Schäfer and Turek's channel and of the cylinder in it, whose middle is as far from the inflow as from the floor, m."""


def channel_with_cylinder(run: Run, fastest: float) -> Simulation:
    """The channel, a parabola of ``fastest`` m/s in its middle flowing in; at rest but for that.

    ``run.resolution`` counts cells across the cylinder, so that the channel is 22 times as many long.
    """
    parabola = f"{4 * fastest / HEIGHT**2} * y * ({HEIGHT} - y)"
    return run.simulation(
        "cylinder-in-a-channel",
        domain={
            "size": [LENGTH, HEIGHT],
            "resolution": round(LENGTH / DIAMETER * run.resolution),
            "boundaries": [[{"kind": "inflow", "velocity": [parabola, 0.0]}, "open"], ["no-slip"] * 2],
        },
        fluid={"viscosity": 1e-3, "rho": 1.0},
        solver={"tolerance": 1e-5, "max_dt": 1.0},
        initial={"velocity": [parabola, 0.0], "projected": True},
        solids=[{"shape": "sphere", "center": [MIDDLE, MIDDLE], "radius": DIAMETER / 2}],
    )


class Cylinder(NamedTuple):
    """What is measured at a moment: coefficients of drag and lift, and the pressure in front less that behind, Pa."""

    time: float
    drag: float
    lift: float
    pressure: float


def force_on_body(simulation: Simulation) -> np.ndarray:
    """Of the fluid on the one solid, the mean of the last step, N (2D: N/m)."""
    assert simulation.solids is not None
    return np.array(simulation.solids.load(0).force)


def coefficients(simulation: Simulation, mean: float) -> Cylinder:
    """After the last step, in a stream whose mean is so fast, m/s."""
    force = force_on_body(simulation)
    scale = 2 / (simulation.scene.fluid.rho * mean**2 * DIAMETER)
    return Cylinder(simulation.time, scale * force[0], scale * force[1], pressure_difference(simulation))


def on_line(values: np.ndarray, dx: float, y: float) -> np.ndarray:
    """``values`` of cells or faces whose centres lie at (j + 1/2) dx, at the height y, linearly between two rows."""
    place = y / dx - 0.5
    j = int(place)
    part = place - j
    return (1 - part) * values[:, j] + part * values[:, j + 1]


def pressure_difference(simulation: Simulation) -> float:
    """Between the foremost and the hindmost point of the cylinder, Pa: cubics through the four cells outside."""
    dx = simulation.grid.dx
    pressure = on_line(simulation.to_numpy("pressure").astype(np.float64), dx, MIDDLE)
    x = (np.arange(len(pressure)) + 0.5) * dx
    front = np.flatnonzero(x < MIDDLE - DIAMETER / 2)[-4:]
    back = np.flatnonzero(x > MIDDLE + DIAMETER / 2)[:4]
    ends = []
    for cells, place in ((front, MIDDLE - DIAMETER / 2), (back, MIDDLE + DIAMETER / 2)):
        ends.append(np.polyval(np.polyfit(x[cells] - place, pressure[cells], 3), 0.0))
    return float(ends[0] - ends[1])


def wake_length(simulation: Simulation) -> float:
    """How far behind the cylinder the flow turns from back to forth, m."""
    u = on_line(faces_of(simulation)[0], simulation.grid.dx, MIDDLE)
    behind = np.arange(len(u)) * simulation.grid.dx - MIDDLE - DIAMETER / 2
    backwards = np.flatnonzero((u < 0) & (behind > 0))
    if not len(backwards):
        return math.nan
    last = backwards.max()
    return float(np.interp(0.0, u[last : last + 2], behind[last : last + 2]))


def cylinder_steady(run: Run) -> None:
    """Schäfer and Turek's 2D-1, Re = 20."""
    simulation = channel_with_cylinder(run, 0.3)
    run.settle(simulation, 2e-5, 12.0)
    found, wanted = coefficients(simulation, 0.2), SCHAEFER_TUREK_STEADY
    run.between("drag coefficient", found.drag, *wanted["drag"])
    run.between("lift coefficient", found.lift, *wanted["lift"])
    run.between("pressure in front less behind, Pa", found.pressure, *wanted["pressure"])
    run.between("length of the wake, m", wake_length(simulation), *wanted["wake"])


def cylinder_periodic(run: Run) -> None:
    """Schäfer and Turek's 2D-2, Re = 100."""
    simulation = channel_with_cylinder(run, 1.5)
    run.advance(simulation, 5.0)
    history: list[Cylinder] = []
    while simulation.time < 7.0:
        run.step(simulation, 1)
        history.append(coefficients(simulation, 1.0))
    times, drag, lift, pressure = np.transpose(history)
    wanted, zeros = SCHAEFER_TUREK_PERIODIC, zeros_of(times, lift - lift.mean(), rising=True)
    period = float(np.diff(zeros).mean()) if len(zeros) > 1 else math.nan
    run.between("largest drag coefficient", peak(times, drag)[1], *wanted["drag"])
    at, largest = peak(times, lift)
    run.between("largest lift coefficient", largest, *wanted["lift"])
    run.between("Strouhal number", DIAMETER / period, *wanted["strouhal"])
    half = at + period / 2 if at + period / 2 <= times[-1] else at - period / 2
    run.between(
        "pressure in front less behind, Pa, half a period after",
        float(np.interp(half, times, pressure)),
        *wanted["pressure"],
    )
    run.curve("lift coefficient", ("time, s", ""), (times, lift))


def schiller_naumann(reynolds: float) -> float:
    """Drag coefficient of a sphere in a stream without sides, Re below 800, to 5 %, by Schiller and Naumann (1933)."""
    return 24 / reynolds * (1 + 0.15 * reynolds**0.687)


def sphere_in_a_stream(run: Run, reynolds: float, size: Sequence[float]) -> Simulation:
    """A sphere of 1 m in a stream of 1 m/s, a third of the length behind the inflow; free-slip sides."""
    n = run.resolution
    return run.simulation(
        "sphere-in-a-stream",
        domain={
            "size": list(size),
            "resolution": round(max(size) * n),
            "boundaries": [[{"kind": "inflow", "velocity": [1.0, 0.0, 0.0]}, "open"], *[["free-slip"] * 2] * 2],
        },
        fluid={"viscosity": 1 / reynolds, "rho": 1.0},
        solver={"tolerance": 1e-4, "max_dt": 1.0},
        initial={"velocity": [1.0, 0.0, 0.0], "projected": True},
        solids=[{"shape": "sphere", "center": [size[0] / 3, size[1] / 2, size[2] / 2], "radius": 0.5}],
    )


def sphere(run: Run) -> None:
    """The drag of a sphere at Re = 100."""
    simulation = sphere_in_a_stream(run, 100.0, (10.0, 7.0, 7.0))
    run.advance(simulation, 15.0)
    force = force_on_body(simulation)
    scale = 2 / (simulation.scene.fluid.rho * math.pi / 4)
    run.near("drag coefficient", scale * force[0], schiller_naumann(100.0), 0.05)
    run.at_most("force across the stream, over the drag", np.abs(force[1:]).max() / force[0], 1e-3)


KEULEGAN_CARPENTER, PERIODS = 5.0, 4
"""Of a cylinder of 1 m that swings by up to 1 m/s: the period times that over the diameter; and how many periods it does."""


def oscillating(run: Run) -> None:
    """A cylinder that swings in a fluid at rest, Re = 100, by Morison's formula for the force of its last two periods."""
    size, period = (24.0, 16.0), KEULEGAN_CARPENTER
    omega, coarser = 2 * math.pi / period, max(1.0, 20 / run.resolution) ** 2
    simulation = run.simulation(
        "oscillating-cylinder",
        domain={"size": list(size), "resolution": round(size[0] * run.resolution)},
        fluid={"viscosity": 0.01, "rho": 1.0},
        solver={"max_dt": 1.0},
        solids=[
            {
                "shape": "sphere",
                "center": [size[0] / 2, size[1] / 2],
                "radius": 0.5,
                "swing": [1 / omega, 0.0],
                "swing_period": period,
            }
        ],
    )
    middles, forces = [], []
    while simulation.time < PERIODS * period:
        before = simulation.time
        run.step(simulation, 1)
        middles.append(0.5 * (before + simulation.time))
        forces.append(force_on_body(simulation))
    last = np.array(middles) > (PERIODS - 2) * period
    speed, time, force = np.cos(omega * np.array(middles))[last], np.array(middles)[last], np.array(forces)[last]
    drag, inertia = -0.5 * np.abs(speed) * speed, 0.25 * math.pi * omega * np.sin(omega * time)
    found = np.linalg.lstsq(np.stack([drag, inertia], 1), force[:, 0], rcond=None)[0]
    for name, value, (wanted, allowed) in zip(("drag", "added mass"), found, DUETSCH, strict=True):
        run.near(f"coefficient of {name}", value, wanted, allowed * coarser)
    across = np.abs(force[:, 1]).max() / np.abs(force[:, 0]).max()
    run.at_most("force across, over that along", across, 0.01 * coarser)
    run.curve("force along", ("time, s", "N/m"), (time, force[:, 0]))


def drag_in_array(run: Run, resolution: int, part: float) -> float:
    """Drag on a cylinder of a square array that fills a ``part`` of the plane, over viscosity and mean velocity.

    A force drives what creeps through, in steps hundreds of times as long as friction needs across a cell. On the whole
    of a cell of the array it acts as a pressure does, which the cylinder bears.
    """
    simulation = run.simulation(
        "array",
        domain={"size": [1.0, 1.0], "resolution": resolution, "boundaries": "periodic"},
        fluid={"viscosity": 1.0, "rho": 1.0, "body_force": [1.0, 0.0]},
        solver={"tolerance": 1e-5},
        solids=[{"shape": "sphere", "center": [0.507, 0.503], "radius": math.sqrt(part / math.pi)}],
    )
    run.settle(simulation, 1e-6, 10.0)
    assert simulation.solids is not None
    open_part = simulation.grid.to_numpy(simulation.solids.open)[0]
    return 1.0 / float((simulation.grid.to_numpy(simulation.state.velocity.current)[0] * open_part).mean())


def array(run: Run) -> None:
    """The case."""
    n = run.resolution
    for part, published in SANGANI_ACRIVOS.items():
        coarse, fine = (drag_in_array(run, cells, part) / published for cells in (n // 2, n))
        run.near(f"{part:.0%} of it cylinders: drag, over that published", fine, 1.0, 0.005 * max(1.0, 64 / n) ** 2)
        order = math.log2(abs(coarse - 1.0) / abs(fine - 1.0))
        run.at_least(f"{part:.0%} of it cylinders: order of its error from {n // 2} to {n} cells", order, 1.7)
