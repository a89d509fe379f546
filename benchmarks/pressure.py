"""Pressure solves beside SciPy's cosine transform, in turn, in one process.

    python benchmarks/pressure.py [arch] [n] [rounds] [tolerance]

A closed box of n³ cells with a random right-hand side, solved from zero by conjugate gradients with multigrid and by V-cycles
alone; the same box with a sphere inside; and the direct solve, ``scipy.fft.dctn`` in f32 with as many workers as there
are cores, which only a box without anything inside admits.
"""

import os
import statistics
import sys
import time

import taichi as ti
from common import save
from peers.scipy_dct import eigenvalues, right_hand_side, transform

from taichi_fluid import Grid, Solid, backend

arch = backend.start(sys.argv[1] if len(sys.argv) > 1 else "cpu")

from taichi_fluid.boundaries.solids import Solids  # noqa: E402
from taichi_fluid.boundaries.walls import Walls  # noqa: E402  (after Taichi has started)
from taichi_fluid.pressure.solver import EllipticSolver  # noqa: E402

N = int(sys.argv[2]) if len(sys.argv) > 2 else 128
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 9
TOLERANCE = float(sys.argv[4]) if len(sys.argv) > 4 else 1e-4


def main() -> None:
    grid = Grid((N,) * 3, 1.0 / N)
    walls = Walls(grid, [["free-slip", "free-slip"]] * 3)
    rhs, modes = right_hand_side(N, 3), eigenvalues(N, 3)

    box, cycles, sphere = (EllipticSolver(grid, method) for method in ("multigrid-cg", "multigrid", "multigrid-cg"))
    for solver in (box, cycles):
        solver.setup((1, 1, 1), walls.pressure_sides())
    solids = Solids(grid, walls, [Solid("sphere", (0.45, 0.52, 0.5), radius=0.2)])
    solids.update(0.0)
    sphere.setup_open(solids.open, walls.pressure_sides())
    solvers = {"multigrid-cg": box, "multigrid": cycles, "multigrid-cg, sphere": sphere}
    fluid = grid.to_numpy(solids.fluid) > 0
    sides = {name: grid.array() for name in solvers}
    for name, array in sides.items():
        grid.from_numpy(array, rhs * fluid if "sphere" in name else rhs)

    out, times, results = grid.array(), {name: [] for name in ("dct", *solvers)}, {}
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        transform(rhs, modes, os.cpu_count() or 1)
        times["dct"].append(1e3 * (time.perf_counter() - start))
        for name, solver in solvers.items():
            out.fill(0.0)
            ti.sync()
            start = time.perf_counter()
            results[name] = solver.solve(sides[name], out, tolerance=TOLERANCE)
            times[name].append(1e3 * (time.perf_counter() - start))
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    rows = []
    for name, median in medians.items():
        row = {"arch": arch if name != "dct" else "scipy", "solver": name, "resolution": N, "ms": median,
               "best_ms": min(times[name][1:]), "ratio_to_dct": median / medians["dct"]}  # fmt: skip
        if name in results:
            row |= {"iterations": results[name].iterations, "relative_residual": results[name].relative_residual}
        rows.append(row)
        print(f"{name:22s} {median:8.1f} ms (best {row['best_ms']:.1f})  {row['ratio_to_dct']:5.2f} x  "
              f"{row.get('iterations', '')} {row.get('relative_residual', '')}")  # fmt: skip
    save(f"pressure_{arch}_{N}", rows)


main()
