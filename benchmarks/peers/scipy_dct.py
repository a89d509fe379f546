"""The direct solve that a closed box without anything inside admits: SciPy's cosine transform there and back."""

import os

import numpy as np
import scipy.fft


def right_hand_side(n: int, dim: int) -> np.ndarray:
    """White noise over the cells, f32, its sum 0."""
    rhs = np.random.default_rng(0).standard_normal((n,) * dim).astype(np.float32)
    return rhs - rhs.mean()


def eigenvalues(n: int, dim: int) -> np.ndarray:
    """Of minus the Laplacian in a closed box with unit spacing; 1 in place of the 0 of a constant."""
    wave = (2 - 2 * np.cos(np.pi * np.arange(n) / n)).astype(np.float32)
    total = sum(np.meshgrid(*[wave] * dim, indexing="ij", sparse=True))
    total[(0,) * dim] = 1
    return total


def transform(rhs: np.ndarray, eigenvalues: np.ndarray, workers: int) -> np.ndarray:
    """Solve; the mean of the solution is 0."""
    modes = scipy.fft.dctn(rhs, norm="ortho", workers=workers)
    modes /= eigenvalues
    modes.flat[0] = 0
    return scipy.fft.idctn(modes, norm="ortho", workers=workers)


def left(pressure: np.ndarray, rhs: np.ndarray) -> float:
    """Relative residual: where ``rhs`` is a divergence, the part of it that subtracting the gradient leaves."""
    residual = rhs.astype(np.float64)
    for axis in range(rhs.ndim):
        drop = np.diff(pressure.astype(np.float64), axis=axis)
        pad = [(int(a == axis), 0) for a in range(rhs.ndim)]
        after = [(0, int(a == axis)) for a in range(rhs.ndim)]
        residual += np.pad(drop, after) - np.pad(drop, pad)
    return float(np.linalg.norm(residual) / np.linalg.norm(rhs))


class Program:
    """As many workers as there are cores; the eigenvalues are made once."""

    iterations = None

    def __init__(self, n: int, dim: int):
        self._rhs, self._eigenvalues = right_hand_side(n, dim), eigenvalues(n, dim)
        self.step()

    def step(self) -> None:
        self._pressure = transform(self._rhs, self._eigenvalues, os.cpu_count() or 1)

    def divergence(self) -> float:
        return left(self._pressure, self._rhs)
