"""Water that solids drive: waves that a piston makes, a block that rides ahead of one, what a wedge bears that goes in."""

import math

import numpy as np

from ..simulation import Simulation
from .cases import Run
from .water import GRAVITY, filled_part, liquid_of, water

STILL, LENGTH, EDGE = 0.3, 8.0, 0.3
"""Depth of the water, how long the channel is, and where the piston's face is, m."""
STROKE = 0.012
"""To either side, m."""
GAUGE, BEGINS, ENDS = 1.8, 3.8, 6.5
"""Where the height is taken, m, and from when to when: the first waves have passed, and none has come back, s."""


def wave_number(omega: float) -> float:
    """Of waves of a frequency, rad/s, on the water at rest: ω² = g k tanh(k h); 1/m."""
    k = omega**2 / GRAVITY
    for _ in range(200):
        k = omega**2 / GRAVITY / math.tanh(k * STILL)
    return k


def height_over_stroke(omega: float) -> float:
    """Of a wave far from a piston, crest to trough, over the piston's way from end to end.

    T. H. Havelock, Forced surface-waves on water, Philosophical Magazine 8 (1929), 569-576.
    """
    twice = 2 * wave_number(omega) * STILL
    return 2 * (math.cosh(twice) - 1) / (math.sinh(twice) + twice)


def piston(edge: float, **motion) -> dict:
    """A box that ends at ``edge``, m, and reaches beyond all other sides of the channels here."""
    return {"shape": "box", "center": [edge - 1.0, 0.25], "size": [2.0, 3.0], "slip": True, **motion}


def _height_made(run: Run, omega: float, transfer: str) -> float:
    """What it makes, over the piston's way."""
    path = [f"{STROKE}*(1-exp(-t*t))*sin({omega}*t)", 0.0]
    body = [([EDGE, 0.0], [LENGTH, STILL])]
    scene = water([LENGTH, 0.5], run.resolution, body, solids=[piston(EDGE, path=path)], liquid={"transfer": transfer})
    simulation = Simulation(run.changed(scene))
    column, times, heights = int(GAUGE / simulation.grid.dx), [], []
    while simulation.time < ENDS:
        run.step(simulation, 1)
        if simulation.time > BEGINS:
            times.append(omega * simulation.time)
            heights.append(filled_part(simulation)[column].sum() * simulation.grid.dx)
    waves = np.stack([np.cos(times), np.sin(times), np.ones(len(times))], axis=1)
    cosine, sine, _ = np.linalg.lstsq(waves, np.array(heights), rcond=None)[0]
    return math.hypot(cosine, sine) / STROKE


def _moved_ahead(run: Run, speed: float = 1.0) -> float:
    """Of a block that goes as fast as the piston behind it, without gravity: the farthest that any of it is off its place, in cells."""
    edge, velocity = 0.2203, [speed, 0.0]
    block = {"shape": "box", "center": [edge + 0.15, 0.125], "size": [0.3, 0.25], "velocity": velocity}
    scene = water([2.0, 0.25], run.resolution // 4, fluid={"gravity": [0.0, 0.0]}, liquid={"bodies": [block]})
    simulation = Simulation(run.changed(scene.with_values({"solids": [piston(edge, velocity=velocity)]})))

    def seen_from_piston() -> np.ndarray:
        return np.sort(liquid_of(simulation).particles.to_numpy()["position"][:, 0] - speed * simulation.time)

    begun = seen_from_piston()
    run.advance(simulation, 0.8)
    return float(np.abs(seen_from_piston() - begun).max()) / simulation.grid.dx


def wavemaker(run: Run) -> None:
    """The case."""
    coarser = max(1.0, 256 / run.resolution) ** 2
    for omega, transfer in ((5.0, "apic"), (5.0, "flip"), (7.0, "apic")):
        deep = wave_number(omega) * STILL
        found = _height_made(run, omega, transfer) / height_over_stroke(omega)
        run.near(f"{transfer}: height of waves with kh = {deep:.2f}, over that of theory", found, 1.0, 0.02 * coarser)
    run.at_most("a block that rides ahead of a piston: cells that any of it has moved on", _moved_ahead(run), 0.05)


WIDE, DEEP, OVER = 6.0, 1.5, 0.01
"""The tank, and how far the edge of a wedge is above the water at first, m."""
SUNK = 0.12
"""How deep it goes at 1 m/s, m: a fiftieth of what is wide, a twelfth of what is deep, of which theory knows no end."""
WEDGES = {30: 14.139, 40: 5.477}
"""Force over ρ V³ t, by how steep its sides are, degrees: R. Zhao and O. Faltinsen, Water entry of two-dimensional bodies, Journal
of Fluid Mechanics 246 (1993), 593-612, their similarity solution, without gravity."""


def _sides_of_wedge(steep: float) -> list[dict]:
    """Two plates that meet at an edge; ``steep`` in radians."""
    sides = []
    for way in (1, -1):
        along = np.array([way * math.cos(steep), math.sin(steep)])
        upper = np.array([-way * math.sin(steep), math.cos(steep)])
        middle = np.array([0.5 * WIDE, DEEP + OVER]) + 0.6 * along + 0.05 * upper
        plate = {"shape": "box", "center": middle.tolist(), "size": [1.2, 0.1], "turn": way * steep}
        sides.append({**plate, "velocity": [0.0, -1.0], "slip": True})
    return sides


def _force_on_wedge(run: Run, degrees: int) -> float:
    """In the mean over the second half of its way, over ρ V³ t."""
    tables = {"fluid": {"gravity": [0.0, 0.0]}, "solids": _sides_of_wedge(math.radians(degrees))}
    scene = water([WIDE, 1.8], run.resolution, [([0.0, 0.0], [WIDE, DEEP])], **tables)
    simulation = Simulation(run.changed(scene))
    rho, solids, given, times = scene.fluid.rho, simulation.solids, [0.0], [0.0]
    assert solids is not None
    while simulation.time < OVER + SUNK:
        since = simulation.time
        run.step(simulation, 1)
        force = sum(solids.load(i).force[1] for i in range(2))
        given.append(given[-1] + force * (simulation.time - since))
        times.append(simulation.time - OVER)
    half, whole = np.interp([0.5 * SUNK, SUNK], times, given)
    return float(2 * (whole - half) / (0.75 * rho * SUNK**2))


def wedge(run: Run) -> None:
    """The case."""
    coarser = max(1.0, 384 / run.resolution) ** 2
    for degrees, published in WEDGES.items():
        found = _force_on_wedge(run, degrees)
        run.near(f"sides at {degrees} degrees: force over rho V^3 t", found, published, 0.05 * coarser)
