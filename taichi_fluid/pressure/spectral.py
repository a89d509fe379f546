"""The direct solve of a box without solids: a transform along each axis, which makes the operator a division.

On a closed axis the eigenvectors of the compact operator of ``poisson`` are those of the cosine transform DCT-II, on a
periodic one those of Fourier's, between two open sides those of the sine transform DST-I (0 is held one cell centre
beyond a side). The eigenvalues add up over the axes, 4 sin²(half of the phase from cell to cell) each. (Buzbee, Golub,
Nielson 1970; Strang, *The Discrete Cosine Transform*, 1999; Stam 1999 has the periodic case.)

The transforms are SciPy's, so this runs where Taichi computes on the CPU and SciPy is installed; ``pressure_solver``
says what stands in elsewhere, and why.
"""

import math
from typing import Any

import numpy as np

from .._ti import impl, ti
from ..boundaries.coefficients import BoundaryCoefficients
from ..grid import Grid, Scratch
from ..kernels import CPU_ARCHS, arch, memory_of
from .solver import _MEAN, _NORM, _RR, _TARGET, EllipticSolver, SolveResult, Status

AUTO, METHOD, STAND_IN = "auto", "spectral", "multigrid-cg"

_CLOSED, _OPEN, _PERIODIC = range(3)

_LARGEST_FACTOR = 50
"""Prime in the length of a transform in 3D. Over the time of multigrid-CG a projection takes 0.83 with 43 (128³ between
open sides), 1.3 with 97 (96³ there), 1.2 with 101 and 1.5 with 127 (closed); in 2D 0.6 with 509."""

_BLOCK = 1 << 15
"""Modes that are divided at a time: they and their eigenvalues stay in a cache."""


def _transforms() -> Any:
    """SciPy's transforms, or None where it is not installed; imported late, as it takes a moment and is an extra."""
    try:
        from scipy import fft
    except ImportError:
        return None
    return fft


def _kinds(sides: BoundaryCoefficients) -> list[int | None]:
    """Which transform fits each axis; None where none of SciPy's does, as between an open side and a closed one."""
    kinds = []
    for axis, periodic in enumerate(sides.periodic):
        pair = sides.box[2 * axis : 2 * axis + 2]
        kinds.append(_PERIODIC if periodic else {(0, 0): _CLOSED, (1, 1): _OPEN}.get(pair))
    return kinds


def hindrance(sides: BoundaryCoefficients, cut: bool) -> str:
    """Why a direct solve of the pressure is not possible here, as the end of a sentence; empty where it is.

    Args:
        sides: What stands around the box.
        cut: Whether solids stand in it.
    """
    if cut:
        return "a direct solve needs a box without solids"
    if None in _kinds(sides):
        return f"no fast transform fits the two sides of axis {_kinds(sides).index(None)}"
    if arch() not in CPU_ARCHS:
        return f"its transforms are SciPy's, which compute on the CPU and not on {arch().name}"
    if _transforms() is None:
        return "its transforms are SciPy's, which is not installed: pip install 'taichi-fluid[spectral]'"
    return ""


def _length(n: int, kind: int | None) -> int:
    """How many values the Fourier transform has that a transform of ``n`` cells is made from."""
    return 2 * (n + 1) if kind == _OPEN else n


def _largest_factor(length: int) -> int:
    """Its largest prime factor."""
    factor, rest = 2, length
    while factor * factor <= rest:
        if rest % factor:
            factor += 1
        else:
            rest //= factor
    return rest


def drawback(grid: Grid, sides: BoundaryCoefficients) -> str:
    """Why a direct solve that is possible here would not pay, as the end of a sentence; empty where it does."""
    if grid.dim == 2:
        return ""
    for axis, (n, kind) in enumerate(zip(grid.shape, _kinds(sides), strict=True)):
        factor = _largest_factor(_length(n, kind))
        if factor > _LARGEST_FACTOR:
            return f"a transform of {_length(n, kind)} values, of axis {axis}, takes long: {factor} divides it, a large prime"
    return ""


def pressure_solver(
    grid: Grid, method: str, sides: BoundaryCoefficients, cut: bool, scratch: Scratch | None = None
) -> tuple[EllipticSolver, str]:
    """A solver for the pressure, not set up yet; and why it is not the direct one asked for, empty where it is.

    Args:
        grid: The grid.
        method: One of ``solver.METHODS``, or ``"spectral"``, for which multigrid-CG stands in where it cannot serve;
            ``"auto"`` is the direct solve where it can serve and pays, too.
        sides: What stands around the box.
        cut: Whether solids stand in it.
        scratch: Arrays to work in; see ``EllipticSolver``.
    """
    if method not in (AUTO, METHOD):
        return EllipticSolver(grid, method, scratch=scratch), ""
    reason = hindrance(sides, cut) or (drawback(grid, sides) if method == AUTO else "")
    return (EllipticSolver(grid, STAND_IN, scratch=scratch), reason) if reason else (SpectralSolver(grid), "")


class SpectralSolver(EllipticSolver):
    """Solves A x = b in a box without solids by transforms; the interface is that of every ``EllipticSolver``.

    One transform there and back is the exact solution but for rounding. The guess in ``out`` is not used, so a solution
    depends on its right-hand side alone. If the true residual, which is measured like that of every solver, is above
    the tolerance, the residual is solved for in turn, which ends at the floor of f32. ``iterations`` counts those
    solves: 1, or 2 and more where the tolerance is near that floor.

    Args:
        grid: The grid; Taichi must run on the CPU.

    Raises:
        RuntimeError: where Taichi does not run on the CPU, or SciPy is not installed.
    """

    _methods = (METHOD,)

    def __init__(self, grid: Grid):
        super().__init__(grid, METHOD)
        problem = hindrance(BoundaryCoefficients.closed(grid.dim), cut=False)
        if problem:
            raise RuntimeError(f"no direct solve of the pressure: {problem}")
        self._fft = _transforms()
        # What is not worth waking Taichi's threads for is not worth waking those of the transforms either.
        self._workers = 1 if grid.loops.serial else max(impl.current_cfg().cpu_max_num_threads, 1)
        self._solved_for: BoundaryCoefficients | None = None

    def setup(self, first: tuple[int, ...], sides: BoundaryCoefficients, mask=None, offset: int = 0, held=None) -> None:
        """Solve for all cells of the box, with these sides; the other arguments are for other solvers.

        Raises:
            ValueError: for unknowns that are not all cells, or sides that have no transform.
        """
        sides.require(first, self.grid.dim)
        problem = hindrance(sides, cut=mask is not None or held is not None or any(i != 1 for i in first))
        if problem:
            raise ValueError(problem)
        super().setup(first, sides)
        if sides == self._solved_for:
            return
        kinds = _kinds(sides)
        self._axes = {kind: [axis for axis, k in enumerate(kinds) if k == kind] for kind in (_CLOSED, _OPEN, _PERIODIC)}
        self._along_first, *others = self._eigenvalues_of(kinds)
        self._along_others = sum(others, np.float32(sides.shift))
        self._solved_for = sides

    def setup_open(self, open, sides: BoundaryCoefficients) -> None:
        """Not possible: with coefficients a transform does not make the operator a division.

        Raises:
            ValueError: always.
        """
        raise ValueError(hindrance(sides, cut=True))

    def _make_room(self, sweeps: int | None, scratch: Scratch | None) -> None:
        # The modes take the place of directions and of coarser levels.
        self._z = self._a_d = self._d = self.multigrid = None

    def _eigenvalues_of(self, kinds: list[int | None]) -> list[np.ndarray]:
        """Those of each axis, shaped so that they broadcast to the modes."""
        dim, halved, found = self.grid.dim, self._axes[_PERIODIC][-1:], []
        for axis, (n, kind) in enumerate(zip(self.grid.shape, kinds, strict=True)):
            k = np.arange(n // 2 + 1 if axis in halved else n)
            phase = {_CLOSED: k / n, _PERIODIC: 2 * k / n, _OPEN: (k + 1) / (n + 1)}[kind]
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

    def _interior(self, array) -> np.ndarray:
        """The values of an array over the grid without its ghosts, where they are: on a CPU NumPy can work there too."""
        values = memory_of(array)
        assert values is not None, "this solver exists on a CPU only"
        return values.reshape([n + 2 for n in self.grid.shape])[(slice(1, -1),) * self.grid.dim]

    def solve_in_place(self, array) -> None:
        """A⁻¹ of an array over the grid; its ghosts are neither read nor written."""
        self.grid.require(array=array)
        ti.sync()
        values = self._interior(array)
        fft, options = self._fft, {"norm": "ortho", "workers": self._workers, "overwrite_x": True}
        closed, open, periodic = (self._axes[kind] for kind in (_CLOSED, _OPEN, _PERIODIC))
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

    def precondition(self, r, out) -> None:
        """``out`` = A⁻¹ r."""
        self.grid.require(r=r, out=out)
        out.copy_from(r)
        self.solve_in_place(out)

    def _correct(self, rhs, out, max_iterations: int, look_every: int) -> SolveResult:
        """Solve, measure, and solve for what is left until it is little enough or becomes no less."""
        seen = self._look()
        seen[_RR] = seen[_NORM]  # from 0, all of it is left
        if result := self._nothing_to_solve(seen, out):
            return result
        out.fill(0.0)
        status, iterations, best, kept = None, 0, np.inf, False
        while status is None:
            if not np.isfinite(seen[_RR]):
                status = Status.NOT_FINITE
            elif iterations and seen[_RR] <= 1.1 * seen[_TARGET]:
                status = Status.CONVERGED
            elif iterations >= max_iterations:
                status = Status.MAX_ITERATIONS
            elif seen[_RR] > 0.25 * best:
                # A solve that gains less than half has met the floor of f32.
                status = Status.STALLED
            else:
                best = seen[_RR]
                if iterations:
                    self._keep(out)
                    kept = True
                    self.solve_in_place(self._r)
                    self._kernels.add_correction(out, self._r, self.n, 1.0)
                else:
                    ti.sync()
                    np.subtract(self._interior(rhs), np.float32(seen[_MEAN]), out=self._interior(out))
                    self.solve_in_place(out)
                seen, iterations = self._true_residual(rhs, out), iterations + 1
        if kept and seen[_RR] > best:
            out.copy_from(self._kept)
            seen[_RR] = best
        return SolveResult(iterations, float(np.sqrt(seen[_RR] / seen[_NORM])), status, float(seen[_MEAN]))
