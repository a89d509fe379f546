"""The solver that people write first, in numba: semi-Lagrangian, and a fixed number of Gauss-Seidel sweeps."""

import numba
import numpy as np

from .scene import plume, time_step

SWEEPS = 20


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
def force(v, temperature, change):
    n = temperature.shape[0]
    for i in numba.prange(n):
        for j in range(1, n):
            for k in range(n):
                v[i, j, k] += change * 0.5 * (temperature[i, j, k] + temperature[i, j - 1, k])


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
        self.lift = self.dt * 9.81 * scene.fluid.expansion
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
