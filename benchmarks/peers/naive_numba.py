"""The solver that people write first, in numba: semi-Lagrangian, and a fixed number of Gauss-Seidel sweeps."""

import numba
import numpy as np

from .scene import plume, time_step

SWEEPS = 20
FAST = {"fastmath": True, "error_model": "numpy"}
# One f64 among the numbers makes all of them f64, which takes advection two to three times as long.
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)


@numba.njit(**FAST)
def interpolate(a, x, y, z):
    x = min(max(x, ZERO), np.float32(a.shape[0] - 1.001))
    y = min(max(y, ZERO), np.float32(a.shape[1] - 1.001))
    z = min(max(z, ZERO), np.float32(a.shape[2] - 1.001))
    i, j, k = int(x), int(y), int(z)
    f, g, h = x - np.float32(i), y - np.float32(j), z - np.float32(k)
    e = ONE - f
    low = (a[i, j, k] * e + a[i + 1, j, k] * f) * (ONE - g) + (a[i, j + 1, k] * e + a[i + 1, j + 1, k] * f) * g
    high = (a[i, j, k + 1] * e + a[i + 1, j, k + 1] * f) * (ONE - g) + (
        a[i, j + 1, k + 1] * e + a[i + 1, j + 1, k + 1] * f
    ) * g
    return low * (ONE - h) + high * h


@numba.njit(parallel=True, **FAST)
def advect(a, out, u, v, w, step, ox, oy, oz):
    """``a`` lies at (i + ox, j + oy, k + oz); u, v, w on lower faces."""
    step, ox, oy, oz = np.float32(step), np.float32(ox), np.float32(oy), np.float32(oz)
    for i in numba.prange(a.shape[0]):
        for j in range(a.shape[1]):
            for k in range(a.shape[2]):
                x, y, z = np.float32(i) + ox, np.float32(j) + oy, np.float32(k) + oz
                px = x - step * interpolate(u, x, y - HALF, z - HALF)
                py = y - step * interpolate(v, x - HALF, y, z - HALF)
                pz = z - step * interpolate(w, x - HALF, y - HALF, z)
                out[i, j, k] = interpolate(a, px - ox, py - oy, pz - oz)


@numba.njit(parallel=True, **FAST)
def divergence(u, v, w, out):
    for i in numba.prange(out.shape[0]):
        for j in range(out.shape[1]):
            for k in range(out.shape[2]):
                out[i, j, k] = u[i + 1, j, k] - u[i, j, k] + v[i, j + 1, k] - v[i, j, k] + w[i, j, k + 1] - w[i, j, k]


@numba.njit(parallel=True, **FAST)
def relax(p, div, colour):
    n = div.shape[0]
    for i in numba.prange(n):
        for j in range(n):
            for k in range((i + j + colour) % 2, n, 2):
                total, count = ZERO, ZERO
                if i > 0:
                    total += p[i - 1, j, k]
                    count += ONE
                if i < n - 1:
                    total += p[i + 1, j, k]
                    count += ONE
                if j > 0:
                    total += p[i, j - 1, k]
                    count += ONE
                if j < n - 1:
                    total += p[i, j + 1, k]
                    count += ONE
                if k > 0:
                    total += p[i, j, k - 1]
                    count += ONE
                if k < n - 1:
                    total += p[i, j, k + 1]
                    count += ONE
                p[i, j, k] = (total - div[i, j, k]) / count


@numba.njit(parallel=True, **FAST)
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


@numba.njit(parallel=True, **FAST)
def force(v, temperature, change):
    n = temperature.shape[0]
    for i in numba.prange(n):
        for j in range(1, n):
            for k in range(n):
                v[i, j, k] += change * HALF * (temperature[i, j, k] + temperature[i, j - 1, k])


class Program:
    """The plume on a staggered grid, traces of one stage, as many threads as numba takes."""

    def __init__(self, n: int, dim: int):
        scene = plume(n, dim)
        source = scene.sources[0]
        self.n, self.dx, self.dt = n, scene.domain.size[0] / n, time_step(scene)
        shapes = [(n + 1, n, n), (n, n + 1, n), (n, n, n + 1)]
        self.u, self.v, self.w = (np.zeros(shape, np.float32) for shape in shapes)
        self.smoke, self.temperature = (np.zeros((n, n, n), np.float32) for _ in range(2))
        cells = [(np.arange(n) + 0.5) * self.dx - middle for middle in source.center]
        x, y, z = np.meshgrid(*cells, indexing="ij", sparse=True)
        inside = (x**2 + y**2 + z**2 < source.radius**2).astype(np.float32)
        self.smoke_source, self.heat_source = (
            np.float32(self.dt * rate) * inside for rate in (source.smoke, source.temperature)
        )
        self.lift = np.float32(self.dt * 9.81 * scene.fluid.expansion)
        self.before = np.empty((n, n, n), np.float32)
        self.iterations = SWEEPS

    def step(self) -> None:
        step = self.dt / self.dx
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
        self.smoke += self.smoke_source
        self.temperature += self.heat_source
        force(self.v, self.temperature, self.lift)
        for axis, a in enumerate((self.u, self.v, self.w)):
            np.moveaxis(a, axis, 0)[[0, -1]] = 0
        divergence(self.u, self.v, self.w, self.before)
        p = np.zeros_like(self.before)
        for _ in range(SWEEPS):
            relax(p, self.before, 0)
            relax(p, self.before, 1)
        subtract(self.u, self.v, self.w, p)

    def divergence(self) -> float:
        after = np.empty_like(self.before)
        divergence(self.u, self.v, self.w, after)
        return float(np.sqrt((after**2).mean() / (self.before**2).mean()))
