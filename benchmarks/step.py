"""A whole plume step beside a naive numba solver, in turn, in one process.

    python benchmarks/step.py [arch] [n] [rounds]

Ours: closed box, MacCormack, buoyancy, confinement, projection to a relative residual of 1e-4. The other: the solver
that people write first, semi-Lagrangian with one-stage traces, red-black Gauss-Seidel with 20 sweeps, as many threads as
numba takes.
Quality is printed beside time: rms divergence after over before the projection.
"""

import os
import statistics
import sys
import time

import numpy as np
from common import save

import taichi_fluid as tf
from taichi_fluid import backend

os.environ["OMP_WAIT_POLICY"] = "passive"  # numba's idle threads must not spin while we are measured
arch = backend.start(sys.argv[1] if len(sys.argv) > 1 else "cpu")

import numba  # noqa: E402  (after Taichi, which sets up its own threads)

N = int(sys.argv[2]) if len(sys.argv) > 2 else 64
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 15


@numba.njit(parallel=True, fastmath=True)
def interpolate(a, x, y, z):
    x = min(max(x, 0.0), a.shape[0] - 1.001)
    y = min(max(y, 0.0), a.shape[1] - 1.001)
    z = min(max(z, 0.0), a.shape[2] - 1.001)
    i, j, k = int(x), int(y), int(z)
    f, g, h = np.float32(x - i), np.float32(y - j), np.float32(z - k)
    low = (a[i, j, k] * (1 - f) + a[i + 1, j, k] * f) * (1 - g) + (
        a[i, j + 1, k] * (1 - f) + a[i + 1, j + 1, k] * f
    ) * g
    high = (a[i, j, k + 1] * (1 - f) + a[i + 1, j, k + 1] * f) * (1 - g) + (
        a[i, j + 1, k + 1] * (1 - f) + a[i + 1, j + 1, k + 1] * f
    ) * g
    return low * (1 - h) + high * h


@numba.njit(parallel=True, fastmath=True)
def advect(a, out, u, v, w, step, ox, oy, oz):
    """``a`` lies at (i + ox, j + oy, k + oz); u, v, w on lower faces."""
    for i in numba.prange(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                x, y, z = i + ox, j + oy, k + oz
                px = x - step * interpolate(u, x, y - 0.5, z - 0.5)
                py = y - step * interpolate(v, x - 0.5, y, z - 0.5)
                pz = z - step * interpolate(w, x - 0.5, y - 0.5, z)
                out[i, j, k] = interpolate(a, px - ox, py - oy, pz - oz)


@numba.njit(parallel=True, fastmath=True)
def divergence(u, v, w, out):
    for i in numba.prange(out.shape[0]):
        for j in range(out.shape[1]):
            for k in range(out.shape[2]):
                out[i, j, k] = u[i + 1, j, k] - u[i, j, k] + v[i, j + 1, k] - v[i, j, k] + w[i, j, k + 1] - w[i, j, k]


@numba.njit(parallel=True, fastmath=True)
def relax(p, div, colour):
    n = div.shape[0]
    for i in numba.prange(n):
        for j in range(n):
            for k in range((i + j + colour) % 2, n, 2):
                total, count = np.float32(0.0), np.float32(0.0)
                if i > 0:
                    total += p[i - 1, j, k]
                    count += 1
                if i < n - 1:
                    total += p[i + 1, j, k]
                    count += 1
                if j > 0:
                    total += p[i, j - 1, k]
                    count += 1
                if j < n - 1:
                    total += p[i, j + 1, k]
                    count += 1
                if k > 0:
                    total += p[i, j, k - 1]
                    count += 1
                if k < n - 1:
                    total += p[i, j, k + 1]
                    count += 1
                p[i, j, k] = (total - div[i, j, k]) / count


@numba.njit(parallel=True, fastmath=True)
def subtract(u, v, w, p):
    n = p.shape[0]
    for i in numba.prange(n):
        for j in range(n):
            for k in range(n):
                if i > 0:
                    u[i, j, k] -= p[i, j, k] - p[i - 1, j, k]
                if j > 0:
                    v[i, j, k] -= p[i, j, k] - p[i, j - 1, k]
                if k > 0:
                    w[i, j, k] -= p[i, j, k] - p[i, j, k - 1]


@numba.njit(parallel=True, fastmath=True)
def force(v, temperature, smoke, change):
    n = smoke.shape[0]
    for i in numba.prange(n):
        for j in range(1, n):
            for k in range(n):
                v[i, j, k] += change * 0.5 * (temperature[i, j, k] + temperature[i, j - 1, k])


class Naive:
    """The other solver."""

    def __init__(self, n: int):
        self.n, self.dx = n, 4.0 / n
        shapes = [(n + 1, n, n), (n, n + 1, n), (n, n, n + 1)]
        self.u, self.v, self.w = (np.zeros(shape, np.float32) for shape in shapes)
        self.smoke, self.temperature = (np.zeros((n, n, n), np.float32) for _ in range(2))
        centre = (np.arange(n) + 0.5) * self.dx
        x, y, z = np.meshgrid(centre, centre, centre, indexing="ij", sparse=True)
        self.source = ((x - 2) ** 2 + (y - 0.4) ** 2 + (z - 2) ** 2 < 0.4**2).astype(np.float32)
        self.before = np.empty((n, n, n), np.float32)

    def step(self, dt: float) -> None:
        step = dt / self.dx
        u, v, w = self.u, self.v, self.w
        moved = [np.empty_like(a) for a in (u, v, w, self.smoke, self.temperature)]
        for a, out, offset in zip(
            (u, v, w, self.smoke, self.temperature),
            moved,
            ((0, 0.5, 0.5), (0.5, 0, 0.5), (0.5, 0.5, 0), (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
            strict=True,
        ):
            advect(a, out, u, v, w, step, *offset)
        self.u, self.v, self.w, self.smoke, self.temperature = moved
        self.smoke += 3.0 * dt * self.source
        self.temperature += 100.0 * dt * self.source
        force(self.v, self.temperature, self.smoke, dt * 9.81 / 300)
        for axis, a in enumerate((self.u, self.v, self.w)):
            np.moveaxis(a, axis, 0)[[0, -1]] = 0
        divergence(self.u, self.v, self.w, self.before)
        p = np.zeros_like(self.before)
        for _ in range(20):
            relax(p, self.before, 0)
            relax(p, self.before, 1)
        subtract(self.u, self.v, self.w, p)

    def left(self) -> float:
        """Divergence after over before the last projection, rms."""
        after = np.empty_like(self.before)
        divergence(self.u, self.v, self.w, after)
        return float(np.sqrt((after**2).mean() / (self.before**2).mean()))


def main() -> None:
    scene = tf.preset("plume").with_values({"domain.resolution": N, "solver.tolerance": 1e-4})
    ours, naive = tf.Simulation(scene), Naive(N)
    left = []

    def watch(simulation, dt):
        left.append(simulation.diagnostics.divergence(simulation.state.velocity.current).rms)

    for _ in range(25):  # a plume to work on, and everything compiled
        ours.step()
        naive.step(0.03)
    ours.stages.insert(-1, tf.Stage("watch", watch))
    ours.stages.append(tf.Stage("watch", watch))
    ours.step()
    quality = left[1] / left[0]
    ours.stages = [stage for stage in ours.stages if stage.name != "watch"]
    ours_ms, naive_ms, iterations, stages = [], [], [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        taken = ours.step(timed=True)
        ours_ms.append(1e3 * (time.perf_counter() - start))
        iterations.append(taken.pressure.iterations)
        stages.append(taken.stage_ms)
        start = time.perf_counter()
        naive.step(0.03)
        naive_ms.append(1e3 * (time.perf_counter() - start))
    rows = [
        {
            "program": "taichi_fluid", "arch": arch, "n": N, "ms": statistics.median(ours_ms), "min_ms": min(ours_ms),
            "left": quality, "iterations": statistics.mean(iterations),
            "stages": {name: statistics.median(s[name] for s in stages) for name in stages[0]},
        },
        {"program": "naive numba, 20 sweeps", "arch": "cpu", "n": N, "ms": statistics.median(naive_ms),
         "min_ms": min(naive_ms), "left": naive.left()},
    ]  # fmt: skip
    for row in rows:
        print(f"{row['ms']:8.1f} ms (best {row['min_ms']:.1f})  divergence left {row['left']:.1e}  {row['program']}")
    print(f"ratio {rows[0]['ms'] / rows[1]['ms']:.2f}", {k: round(v, 1) for k, v in rows[0]["stages"].items()})
    save(f"step_{arch}_{N}", rows)


if __name__ == "__main__":
    main()
