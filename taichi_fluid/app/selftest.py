"""``doctor --full``: what a backend computes, in some minutes, held against what is known and against the CPU.

It runs in a process of its own, ``python -m taichi_fluid.app.selftest ARCH FILE.npz``, which prints its figures, a line of
JSON for each part as it is done, and writes the fields of a short run for the next backend to be held against.
"""

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._ti import ti
from ..backend import start_here
from ..grid import Grid
from ..scene import preset
from ..simulation import NotFinite, Simulation
from ..simulation.diagnostics import Diagnostics
from ..validation import CASES, Run
from .doctor import ask

LINE = "taichi-fluid-selftest:"
SECONDS = 900
"""After which a backend is given up: software Vulkan compiles for minutes."""
STEPS, DT = 5, 0.01
BESIDE_CPU = 1e-4
"""What fields may differ by after so many steps, over the largest value: rounding, and a pressure solved to 1e-6."""
SLOW = 0.1
"""Seconds for a step of that small plume from which a device is slow: software, where each launch takes milliseconds."""
SHORT = {"taylor-green": (16, {"solver.cfl": 1.6}), "cavity-100": (16, {"solver.cfl": 4.0, "solver.max_dt": 1.0})}
"""Cells and changes of the published cases on a slow device: a tenth of the steps, so that the test takes two minutes."""


def reductions(run: Run) -> None:
    """Sums and largest values of arrays whose own are known."""
    for shape in ((67, 45), (33, 20, 17)):
        grid, away = Grid(shape, 0.1), np.random.default_rng(0).uniform(-1.0, 1.0, shape).astype(np.float32)
        array, diagnostics = grid.array(), Diagnostics(grid)
        grid.from_numpy(array, away + 2)
        exact = float((away.astype(np.float64) + 2).sum()) * grid.cell_volume
        run.at_most(f"sum of {away.size} cells, relative error", abs(diagnostics.integral(array) / exact - 1), 1e-6)
        peak = np.float32(5.0)
        away.flat[away.size // 3] = -peak
        grid.from_numpy(array, away)
        run.at_most(f"largest of {away.size} cells, error", abs(diagnostics.largest_magnitude(array) - peak), 0.0)


def not_finite(run: Run) -> None:
    """NaN and infinity in each quantity of a flow, in a corner, at a side and inside: how many are named wrongly."""
    scene = preset("plume").with_values({"domain.resolution": 8})
    simulation, missed, count = Simulation(scene), 0, 0
    n = simulation.grid.shape
    for quantity in simulation.state.quantities():
        for cell in ((0, 0, 0), (n[0] - 1, n[1] // 2, n[2] // 2), tuple(k // 2 for k in n)):
            for bad in (math.nan, math.inf, -math.inf):
                values = quantity.current.to_numpy()
                spoilt = values.copy()
                spoilt[np.ravel_multi_index([k + 1 for k in cell], [k + 2 for k in n])] = bad
                quantity.current.from_numpy(spoilt)
                count += 1
                try:
                    simulation.check()
                    missed += 1
                except NotFinite as error:
                    missed += not str(error).startswith(f"{quantity.name} is not finite")
                quantity.current.from_numpy(values)
    run.at_most(f"not noticed of {count} values that are not finite", missed, 0)


def fields() -> tuple[dict[str, np.ndarray], float]:
    """What a short run of a scene of the package comes to, and the seconds that a step of it takes once it is compiled."""
    scene = preset("plume").with_values({"domain.resolution": 24, "solver.tolerance": 1e-6})
    simulation = Simulation(scene)
    taken = []
    for _ in range(STEPS):
        begun = time.perf_counter()
        simulation.step(DT)
        ti.sync()
        taken.append(time.perf_counter() - begun)
    found = {each.name: simulation.to_numpy(each.name) for each in simulation.state.quantities()}
    return found, statistics.median(taken)


def beside(run: Run, found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    """Largest difference of each field from that of another backend, over its largest value."""
    for name, values in expected.items():
        scale = max(float(np.abs(values).max()), 1e-30)
        difference = float(np.abs(found[name] - values).max()) / scale
        run.at_most(f"{name} after {STEPS} steps of a plume, beside the CPU", difference, BESIDE_CPU)


def parts(file: Path) -> Iterator[tuple[str, Callable[[Run], None], Run]]:
    """The parts of the test, each to be run before the next is asked for: name, what measures, and what it is run with.

    Fields are held against those of ``file`` if it is there, else written to it. How long they took decides on how many cells
    the published cases are run.
    """
    pace = 0.0

    def same_scene(run: Run) -> None:
        nonlocal pace
        found, pace = fields()
        if file.exists():
            with np.load(file) as expected:
                beside(run, found, dict(expected))
        else:
            np.savez(file, **found)

    yield "reductions", reductions, Run(0)
    yield "what is not finite", not_finite, Run(0)
    yield "a plume", same_scene, Run(0)
    for name, short in SHORT.items():
        yield name, CASES[name].measure, Run(*short) if pace > SLOW else Run(CASES[name].quick)


def _answer(arch: str, file: Path) -> None:
    """Compute here, in a process of its own, and print the figures."""
    start_here(arch, log_level=ti.ERROR)
    for name, measure, run in parts(file):
        measure(run)
        part = f"{name}, {run.cells} cells" if run.cells else name
        rows = [{"part": part, **row.to_dict()} for row in run.rows]
        print(LINE + json.dumps(rows), flush=True)


def tested(arch: str, file: Path) -> dict[str, Any]:
    """Let ``arch`` test itself in another process.

    Args:
        arch: A backend that starts here.
        file: Fields of the CPU, ``.npz``; written if it is not there.

    Returns:
        ``arch``, ``rows`` (each with ``part``, ``quantity``, ``found``, ``reference`` and ``holds``), and ``problem``: why it
        broke off, or nothing.
    """
    said, problem = ask("taichi_fluid.app.selftest", arch, str(file), seconds=SECONDS), ""
    if said.status is None:
        problem = f"did not end within {SECONDS} s"
    elif said.status:
        problem = f"ended with status {said.status}: {said.last_words}"
    rows = [row for line in said.lines(LINE) for row in json.loads(line)]
    return {"arch": arch, "rows": rows, "problem": problem}


if __name__ == "__main__":
    _answer(sys.argv[1], Path(sys.argv[2]))
