"""A⁻¹ of a box without solids: a transform along each axis, which makes the operator a division.

On a closed axis the eigenvectors of the compact operator of ``system`` are those of the cosine transform DCT-II, on a
periodic one those of Fourier's, between two open sides those of the sine transform DST-I (0 is held one cell centre
beyond a side). The eigenvalues add up over the axes, 4 sin²(half of the phase from cell to cell) each. (Buzbee, Golub,
Nielson 1970; Strang, *The Discrete Cosine Transform*, 1999; Stam 1999 has the periodic case.)

The transforms are SciPy's, so this runs where Taichi computes on the CPU and SciPy is installed.
"""

import importlib
import math
import os
from enum import Enum
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import SimpleNamespace
from typing import Any

import numpy as np

from .._ti import impl, ti
from ..boundaries.coefficients import BoundaryCoefficients
from ..grid import Grid
from ..kernels import memory_of


class Kind(Enum):
    """Which transform an axis has."""

    COSINE = "between two closed sides"
    SINE = "between two open sides"
    FOURIER = "periodic"


_BLOCK = 1 << 15
"""Modes that are divided at a time: they and their eigenvalues stay in a cache."""


def scipy_transforms() -> Any:
    """SciPy's transforms, or None where it is not installed; imported late, as it is an extra.

    They stand in one extension of SciPy's, which by itself is there at once. The whole of ``scipy.fft`` does the same
    work, and takes 0.15 s of a processor to import: it is for a SciPy that has its transforms elsewhere.
    """
    scipy = find_spec("scipy")
    if scipy is None:
        return None
    folders = [os.path.join(folder, "fft", "_pocketfft") for folder in scipy.submodule_search_locations or ()]
    extension = PathFinder.find_spec("pypocketfft", folders)
    if extension is None or extension.loader is None:
        return importlib.import_module("scipy.fft")
    extension.loader.exec_module(pocketfft := module_from_spec(extension))
    return _orthonormal(pocketfft)


def _orthonormal(pocketfft) -> SimpleNamespace:
    """Of ``scipy.fft`` what is used here, with ``norm="ortho"``, from the extension below it."""

    def in_place(transform, kind: int):
        return lambda x, axes, workers, **_: transform(x, kind, axes, 1, x, workers)

    cosine, sine = pocketfft.dct, in_place(pocketfft.dst, 1)
    return SimpleNamespace(
        dctn=in_place(cosine, 2),
        idctn=in_place(cosine, 3),
        dstn=sine,
        idstn=sine,
        rfftn=lambda x, axes, workers, **_: pocketfft.r2c(x, axes, True, 1, None, workers),
        irfftn=lambda x, s, axes, workers, **_: pocketfft.c2r(x, axes, s[-1], False, 1, None, workers),
    )


def kinds_of(sides: BoundaryCoefficients) -> list[Kind | None]:
    """Which transform fits each axis; None where none of SciPy's does, as between an open side and a closed one."""
    kinds = []
    for axis, periodic in enumerate(sides.periodic):
        pair = sides.box[2 * axis : 2 * axis + 2]
        kinds.append(Kind.FOURIER if periodic else {(0, 0): Kind.COSINE, (1, 1): Kind.SINE}.get(pair))
    return kinds


def values_of(array) -> np.ndarray:
    """The values of an array where they are: on a CPU NumPy can work there too."""
    values = memory_of(array)
    assert values is not None, "arrays are in reach on a CPU only"
    return values


def interior(grid: Grid, array) -> np.ndarray:
    """The values of an array over the grid without its ghosts, where they are."""
    return values_of(array).reshape(grid.padded)[(slice(1, -1),) * grid.dim]


class Transforms:
    """The exact inverse of the operator on one grid; SciPy must be installed, and Taichi run on the CPU.

    Args:
        grid: The grid.

    Attributes:
        workers: Threads that it uses.
    """

    def __init__(self, grid: Grid):
        self.grid, self.n = grid, grid.n
        self._fft = scipy_transforms()
        # What is not worth waking Taichi's threads for is not worth waking those of the transforms either.
        self.workers = 1 if grid.loops.serial else max(impl.current_cfg().cpu_max_num_threads, 1)

    def update(self, sides: BoundaryCoefficients, singular: bool) -> None:
        """Invert the operator with these sides; ``singular``, the constant becomes 0."""
        kinds = kinds_of(sides)
        self._singular = singular
        self._axes = {kind: [axis for axis, k in enumerate(kinds) if k == kind] for kind in Kind}
        self._along_first, *others = self._eigenvalues_of(kinds)
        self._along_others = sum(others, np.float32(sides.shift))

    def _eigenvalues_of(self, kinds: list[Kind | None]) -> list[np.ndarray]:
        """Those of each axis, shaped so that they broadcast to the modes."""
        dim, halved, found = self.grid.dim, self._axes[Kind.FOURIER][-1:], []
        for axis, (n, kind) in enumerate(zip(self.grid.shape, kinds, strict=True)):
            k = np.arange(n // 2 + 1 if axis in halved else n)
            phase = {Kind.COSINE: k / n, Kind.FOURIER: 2 * k / n, Kind.SINE: (k + 1) / (n + 1)}[kind]
            # A sine, as 2 - 2 cos would lose the slowest modes to rounding.
            wave = 4 * np.sin(0.5 * math.pi * phase) ** 2
            found.append(wave.astype(np.float32).reshape([-1 if a == axis else 1 for a in range(dim)]))
        return found

    def _divide(self, modes: np.ndarray) -> None:
        """Divide the modes by the sums of their eigenvalues, a few planes at a time, which stay in a cache."""
        planes = max(1, _BLOCK // self._along_others.size)
        for begin in range(0, len(modes), planes):
            block = modes[begin : begin + planes]
            total = self._along_first[begin : begin + planes] + self._along_others
            if begin == 0 and self._singular:
                total.flat[0] = np.inf  # the constant, which a closed box leaves open
            np.divide(block, total, out=block)

    def solve_in_place(self, array) -> None:
        """A⁻¹ of an array over the grid; its ghosts are neither read nor written."""
        self.grid.require(array=array)
        ti.sync()
        values = interior(self.grid, array)
        fft, options = self._fft, {"norm": "ortho", "workers": self.workers, "overwrite_x": True}
        closed, open, periodic = (self._axes[kind] for kind in Kind)
        modes = values
        if closed:
            modes = fft.dctn(modes, axes=closed, **options)
        if open:
            modes = fft.dstn(modes, type=1, axes=open, **options)
        if periodic:
            modes = fft.rfftn(modes, axes=periodic, **options)
        self._divide(modes)
        if periodic:
            modes = fft.irfftn(modes, s=[self.grid.shape[axis] for axis in periodic], axes=periodic, **options)
        if open:
            modes = fft.idstn(modes, type=1, axes=open, **options)
        if closed:
            modes = fft.idctn(modes, axes=closed, **options)
        if not np.shares_memory(modes, values):
            values[...] = modes
