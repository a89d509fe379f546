"""Each seed at its own settings and at ours: what divergence is left, what mass is lost, how long a step takes.

    python benchmarks/seeds.py [arch]

Divergence: root mean square after a step, times dx over the largest velocity component, the median over the run: 1 would
be a flow that changes by all of itself from cell to cell. Mass: smoke or dye that is there after the run over what the
sources have put in, nothing fading. Time: median of the steps after the first three, ms.
"""

import statistics
import sys

from common import milliseconds, save
from rich.console import Console
from rich.table import Table

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid._ti import ti
from taichi_fluid.sources import Emitter

SECONDS = 2.0
STILL = {"fluid.smoke_fade": 0.0, "fluid.smoke_dissipation": 0.0}
STAM = {"domain.grid": "collocated", "solver.advection": "semi-lagrangian", "solver.trace": "euler"}
OURS = {
    "domain.grid": "staggered", "solver.advection": "maccormack", "solver.trace": "rk2", "solver.pressure": "multigrid-cg",
}  # fmt: skip

SEEDS = {
    "ash3d": {
        "as printed: 4 sweeps": STAM | {"solver.sweeps": 4},
        "20 sweeps": STAM | {"solver.sweeps": 20},
        "the preset: solved": {},
        "staggered, MacCormack": OURS,
    },
    "godot2d": {
        "as printed: 16², 20 sweeps": STAM | {"solver.sweeps": 20, "domain.resolution": 16, "solver.dt": 1 / 60},
        "20 sweeps": STAM | {"solver.sweeps": 20},
        "the preset: solved": {},
        "staggered, MacCormack": OURS,
    },
    "mac_smoke": {
        "as printed: dt 0.01, one-stage trace": {
            "solver.advection": "semi-lagrangian", "solver.trace": "euler", "solver.dt": 0.01,
        },
        "the preset: MacCormack": {},
        "multigrid": OURS,
    },
    "dye2d": {
        "as printed: 20 sweeps": STAM | {"solver.sweeps": 20},
        "the preset: solved": {},
        "staggered, MacCormack": OURS,
    },
    "stable_fluids": {
        "as printed: solved directly": {"domain.grid": "collocated"},
        "the preset": {},
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


def measure(name: str, changes: dict) -> dict:
    """One run: divergence left, mass kept, ms per step."""
    scene = tf.preset(name).with_values({**STILL, **changes})
    simulation = tf.Simulation(scene)
    quantity = simulation.state.carried["dye" if "dye" in simulation.state.carried else "smoke"]
    velocity, left, iterations = simulation.state.velocity, [], []
    while simulation.time < SECONDS:
        step = simulation.step()
        assert step.pressure is not None
        iterations.append(step.pressure.iterations)
        speed = simulation.diagnostics.largest_magnitude(velocity.current)
        if speed > 0:
            left.append(simulation.diagnostics.divergence(velocity.current).rms * simulation.grid.dx / speed)
    kept = sum(
        simulation.diagnostics.integral(quantity.current, k * simulation.grid.cells) for k in range(quantity.components)
    )
    mass = kept / put_in(simulation, quantity.name, simulation.time)
    return {
        "seed": name,
        "cells": " x ".join(map(str, simulation.grid.shape)),
        "divergence": statistics.median(left),
        "mass": mass,
        "iterations": statistics.median(iterations),
        "ms_per_step": milliseconds(simulation.step),
        "steps": simulation.steps,
    }


def main(arch: str = "cpu") -> None:
    arch = backend.start(arch)
    table = Table("seed", "settings", "cells", "divergence dx/|u|", "mass kept", "iterations", "ms per step")
    rows = []
    for name, runs in SEEDS.items():
        for settings, changes in runs.items():
            row = {"settings": settings, "arch": arch, **measure(name, changes)}
            ti.sync()
            rows.append(row)
            table.add_row(
                name, settings, row["cells"], f"{row['divergence']:.1e}", f"{row['mass']:.2f}",
                f"{row['iterations']:g}", f"{row['ms_per_step']:.1f}",
            )  # fmt: skip
    Console().print(table)
    save(f"seeds_{arch}", rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
