"""Each seed with its text's settings and with ours: what divergence is left, what mass is lost, how long a step takes.

    python benchmarks/seeds.py [arch] [--tiny]

It writes ``results/seeds_ARCH.json``, and on a CPU the table in ``docs/seeds.md`` anew, which says what was measured at
which commit. ``--tiny`` only sees whether each row runs, coarse and short, and writes nothing.

Divergence: root mean square after a step, the median over the run, by two measures: times dx over the largest velocity
component (1 would be a flow that changes by all of itself from cell to cell), and over the root mean square of the
velocity's gradient, all its components together, by central differences. Mass: smoke or dye that is there after the run
over what the sources have put in, neither fading. Time: median of the steps after the first one, ms.
"""

import argparse
import json
import math
import statistics
from pathlib import Path

import numpy as np
from common import milliseconds, save

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.physics.sources import Emitter

DOCUMENT = Path(__file__).parent.parent / "docs" / "seeds.md"
BEGIN, END = "<!-- The table is made by benchmarks/seeds.py. -->\n", "<!-- So far. -->\n"
"""Between these lines of the document stands the table."""
SECONDS = 2.0
TINY = {"domain.resolution": 16}
STILL = {"fluid.smoke_fade": 0.0, "fluid.smoke_dissipation": 0.0}
STAM = {"domain.grid": "collocated", "solver.advection": "semi-lagrangian", "solver.trace": "euler"}
OURS = {
    "domain.grid": "staggered", "solver.advection": "maccormack", "solver.trace": "rk2", "solver.pressure": "multigrid-cg",
}  # fmt: skip

SEEDS = {
    "ash3d": {
        "its settings: 4 sweeps": STAM | {"solver.sweeps": 4},
        "20 sweeps": STAM | {"solver.sweeps": 20},
        "the preset: solved": {},
        "staggered, MacCormack": OURS,
    },
    "godot2d": {
        "its settings: 16², 20 sweeps": STAM | {"solver.sweeps": 20, "domain.resolution": 16, "solver.dt": 1 / 60},
        "20 sweeps": STAM | {"solver.sweeps": 20},
        "the preset: solved": {},
        "staggered, MacCormack": OURS,
    },
    "mac_smoke": {
        "its settings: dt 0.01, one-stage trace": {
            "solver.advection": "semi-lagrangian", "solver.trace": "euler", "solver.dt": 0.01,
        },
        "the preset: MacCormack": {},
        "multigrid": OURS,
    },
    "dye2d": {
        "its settings: 20 sweeps": STAM | {"solver.sweeps": 20},
        "the preset: solved": {},
        "staggered, MacCormack": OURS,
    },
    "stable_fluids": {
        "on the text's grid: solved directly": {"domain.grid": "collocated"},
        "the preset: solved directly": {},
        "multigrid": {"solver.pressure": "multigrid-cg"},
        "staggered, MacCormack": OURS,
    },
}  # fmt: skip


def put_in(simulation: tf.Simulation, name: str, seconds: float) -> float:
    """What the sources bring of a quantity in so many seconds, all components together."""
    total, covered = 0.0, simulation.grid.array()
    for source in simulation.scene.sources:
        rate = sum(source.dye) if name == "dye" else source.smoke
        covered.fill(0.0)
        Emitter(simulation.grid, source.shape, *source.geometry()).add(covered, 1.0, 1.0)
        active = max(0.0, min(seconds, seconds if source.end is None else source.end) - source.begin)
        total += rate * active * simulation.diagnostics.integral(covered)
    return total


def gradient_rms(simulation: tf.Simulation) -> float:
    """Root mean square of the velocity's gradient, 1/s."""
    velocity = simulation.to_numpy("velocity").astype(np.float64)
    squares = [
        np.gradient(component, simulation.grid.dx, axis=axis) ** 2
        for component in velocity
        for axis in range(simulation.grid.dim)
    ]
    return math.sqrt(np.mean(sum(squares)))


def measure(name: str, changes: dict, seconds: float = SECONDS, repeats: int = 15) -> dict:
    """One run: divergence left, mass kept, ms per step."""
    scene = tf.preset(name).with_values({**STILL, **changes})
    simulation = tf.Simulation(scene)
    quantity = simulation.state.carried["dye" if "dye" in simulation.state.carried else "smoke"]
    velocity, left, of_gradient, iterations = simulation.state.velocity, [], [], []
    while simulation.time < seconds:
        step = simulation.step()
        assert step.pressure is not None
        iterations.append(step.pressure.iterations)
        speed = simulation.diagnostics.largest_magnitude(velocity.current)
        if speed > 0:
            rms = simulation.diagnostics.divergence(velocity.current).rms
            left.append(rms * simulation.grid.dx / speed)
            of_gradient.append(rms / gradient_rms(simulation))
    kept = sum(
        simulation.diagnostics.integral(quantity.current, k * simulation.grid.cells) for k in range(quantity.components)
    )
    mass = kept / put_in(simulation, quantity.name, simulation.time)
    return {
        "seed": name,
        "cells": " x ".join(map(str, simulation.grid.shape)),
        "divergence": statistics.median(left),
        "of_gradient": statistics.median(of_gradient),
        "mass": mass,
        "iterations": statistics.median(iterations),
        "ms_per_step": milliseconds(simulation.step, repeats),
        "steps": simulation.steps,
    }


COLUMNS = {
    "scene": lambda row: f"`{row['seed']}`",
    "settings": lambda row: row["settings"],
    "cells": lambda row: row["cells"],
    "divergence, of speed/dx": lambda row: f"{row['divergence']:.1e}",
    # A file from before it was measured holds none.
    "of the gradient": lambda row: f"{row['of_gradient']:.1e}" if "of_gradient" in row else "–",
    "mass kept": lambda row: f"{row['mass']:.2f}",
    "iterations": lambda row: f"{row['iterations']:g}",
    "ms per step": lambda row: f"{row['ms_per_step']:.0f}",
}
"""Head and cell of each column."""


HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


def line(row: dict) -> str:
    """A row of the table."""
    return f"| {' | '.join(cell(row) for cell in COLUMNS.values())} |"


def in_markdown(measured: dict) -> str:
    """What stands in the document of what a result file holds."""
    machine = measured["machine"]
    where = f"{machine['cores']} cores of an {machine['processor']}, Taichi {machine['taichi']}"
    source = f"Measured at commit {machine['commit']} on {where}, by `python benchmarks/seeds.py`."
    return "\n".join([HEAD, *map(line, measured["rows"]), "", source, ""])


def write_table(measured: dict, document: Path = DOCUMENT) -> None:
    """Put the table of a result file into the document."""
    before, begin, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    document.write_text(f"{before}{begin}{in_markdown(measured)}{end}{after}", encoding="utf-8")


def main(arch: str, tiny: bool) -> None:
    arch, rows = backend.start(arch), []
    print(HEAD)
    for name, runs in SEEDS.items():
        for settings, changes in runs.items():
            found = measure(name, changes | TINY, 0.1, repeats=1) if tiny else measure(name, changes)
            rows.append({"settings": settings, "arch": arch, **found})
            print(line(rows[-1]), flush=True)
    if tiny:
        return
    path = save(f"seeds_{arch}", rows)
    if arch == "cpu":
        write_table(json.loads(path.read_text(encoding="utf-8")))
        print(DOCUMENT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The seeds beside each other.")
    parser.add_argument("arch", nargs="?", default="cpu")
    parser.add_argument("--tiny", action="store_true", help="see whether each row runs; write nothing")
    main(**vars(parser.parse_args()))
