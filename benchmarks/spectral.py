"""The direct solve by transforms beside conjugate gradients with multigrid, in turn, in one process.

    python benchmarks/spectral.py [rounds] [tolerance]

Both as ``solver.pressure`` runs them, on the CPU: from an array over the grid to one, true residual included. Closed and
periodic boxes in 2D and 3D with the divergence of a random velocity as right-hand side, solved from zero; and whole
steps of the plume in its closed box of 64³ cells, to the same tolerance. Beside the time on the clock stands that of the
processor, all threads together, which other work on the machine disturbs less.
"""

import statistics
import sys
import time

import numpy as np
from common import save

import taichi_fluid as tf
from taichi_fluid import backend

arch = backend.start("cpu")

from taichi_fluid._ti import ti  # noqa: E402  (after Taichi has started)
from taichi_fluid.boundaries.coefficients import BoundaryCoefficients  # noqa: E402
from taichi_fluid.pressure.spectral import pressure_solver  # noqa: E402

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 9
TOLERANCE = float(sys.argv[2]) if len(sys.argv) > 2 else 1e-4
METHODS = ("spectral", "multigrid-cg")
SHAPES = ((256,) * 2, (512,) * 2, (1024,) * 2, (64,) * 3, (96,) * 3, (128,) * 3, (127,) * 3)


def right_hand_side(shape: tuple[int, ...], periodic: bool) -> np.ndarray:
    """Minus the divergence of white noise on the faces, 0 on the sides of a closed box."""
    rng, rhs = np.random.default_rng(0), np.zeros(shape, np.float32)
    for axis in range(len(shape)):
        lower = np.moveaxis(rng.standard_normal(shape).astype(np.float32), axis, 0)
        if not periodic:
            lower[0] = 0
        upper = np.roll(lower, -1, axis=0)
        rhs -= np.moveaxis(upper - lower, 0, axis)
    return rhs


def solves(shape: tuple[int, ...], periodic: bool) -> list[dict]:
    """Median times of both solvers on one box."""
    dim, grid = len(shape), tf.Grid(shape, 1.0 / shape[0])
    sides = BoundaryCoefficients(box=(0.0,) * (2 * dim), periodic=(periodic,) * dim)
    solvers = {method: pressure_solver(grid, method, sides, cut=False)[0] for method in METHODS}
    rhs, out = grid.array(), grid.array()
    grid.from_numpy(rhs, right_hand_side(shape, periodic))
    times, busy, results = {method: [] for method in METHODS}, {method: [] for method in METHODS}, {}
    for solver in solvers.values():
        solver.setup((1,) * dim, sides)
    for _ in range(ROUNDS + 1):
        for method, solver in solvers.items():
            out.fill(0.0)
            ti.sync()
            start, begin = time.perf_counter(), time.process_time()
            results[method] = solver.solve(rhs, out, tolerance=TOLERANCE)
            times[method].append(1e3 * (time.perf_counter() - start))
            busy[method].append(1e3 * (time.process_time() - begin))
    what = {"box": "periodic" if periodic else "closed", "shape": list(shape)}
    return [
        {**what, "solver": method, "ms": statistics.median(times[method][1:]), "best_ms": min(times[method][1:]),
         "cpu_ms": statistics.median(busy[method][1:]), "iterations": results[method].iterations, "relative_residual": results[method].relative_residual}
        for method in METHODS
    ]  # fmt: skip


def steps() -> list[dict]:
    """Median times of whole steps of two plumes, and of their projections."""
    scene = tf.preset("plume").with_values({"solver.tolerance": TOLERANCE})
    plumes = {method: tf.Simulation(scene.with_values({"solver.pressure": method})) for method in METHODS}
    times, busy, projections = ({method: [] for method in METHODS} for _ in range(3))
    for round in range(25 + 2 * ROUNDS):  # a plume to work on first
        for method, plume in plumes.items():
            start, begin = time.perf_counter(), time.process_time()
            taken = plume.step(0.03, timed=True)
            if round >= 25:
                times[method].append(1e3 * (time.perf_counter() - start))
                busy[method].append(1e3 * (time.process_time() - begin))
                projections[method].append(taken.stage_ms["project"])
    return [
        {"step": "plume", "shape": list(plumes[method].grid.shape), "solver": method,
         "ms": statistics.median(times[method]), "best_ms": min(times[method]),
         "cpu_ms": statistics.median(busy[method]), "project_ms": statistics.median(projections[method])}
        for method in METHODS
    ]  # fmt: skip


def main() -> None:
    pairs = [solves(shape, periodic) for periodic in (False, True) for shape in SHAPES] + [steps()]
    for ours, other in pairs:
        for row in (ours, other):
            row["ratio"], row["cpu_ratio"] = row["ms"] / ours["ms"], row["cpu_ms"] / ours["cpu_ms"]
        name = f"{ours.get('box', 'step of a plume')} {' x '.join(map(str, ours['shape']))}"
        print(
            f"{name:32s} spectral {ours['ms']:7.2f} ms, multigrid-cg {other['ms']:7.2f} ms, ratio {other['ratio']:.2f}, "
            f"of processor time {other['cpu_ratio']:.2f}"
        )
    save(f"spectral_{arch}", [row for pair in pairs for row in pair])


main()
