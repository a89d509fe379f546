"""The direct solve of a box without solids: an iteration with an exact inverse, which is ``transforms``.

``pressure_solver`` says what stands in where it cannot serve, and why.
"""

import math

import numpy as np

from .._ti import ti
from ..boundaries.coefficients import BoundaryCoefficients
from ..grid import Grid, Scratch
from ..kernels import CPU_ARCHS, arch
from ..limits import whole
from .box_residual import BoxResidual, set_box
from .methods import addition_kernels
from .null_space import Constant, NoNullSpace, NullSpace
from .residual import SolveResult, Status
from .solver import EllipticSolver, require_limits, require_pair
from .system import LinearSystem
from .transforms import Kind, Transforms, interior, kinds_of, scipy_transforms

AUTO, METHOD, STAND_IN = "auto", "spectral", "multigrid-cg"

_LARGEST_FACTOR = 50
"""Prime in the length of a transform in 3D. Over the time of multigrid-CG a projection takes 0.83 with 43 (128³ between
open sides), 1.3 with 97 (96³ there), 1.2 with 101 and 1.5 with 127 (closed); in 2D 0.6 with 509."""


def hindrance(sides: BoundaryCoefficients, cut: bool) -> str:
    """Why a direct solve of the pressure is not possible here, as the end of a sentence; empty where it is.

    Args:
        sides: What stands around the box.
        cut: Whether solids stand in it, a liquid has a surface in it, or a side is open in part.
    """
    if cut:
        return "a direct solve needs a box without solids, without the surface of a liquid and without sides that are open in part"
    if None in kinds_of(sides):
        return f"no fast transform fits the two sides of axis {kinds_of(sides).index(None)}"
    if arch() not in CPU_ARCHS:
        return f"its transforms are SciPy's, which compute on the CPU and not on {arch().name}"
    if scipy_transforms() is None:
        return "its transforms are SciPy's, which is not installed: pip install 'taichi-fluid[spectral]'"
    return ""


def _length(n: int, kind: Kind | None) -> int:
    """How many values the Fourier transform has that a transform of ``n`` cells is made from."""
    return 2 * (n + 1) if kind == Kind.SINE else n


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
    for axis, (n, kind) in enumerate(zip(grid.shape, kinds_of(sides), strict=True)):
        factor = _largest_factor(_length(n, kind))
        if factor > _LARGEST_FACTOR:
            return f"a transform of {_length(n, kind)} values, of axis {axis}, takes long: {factor} divides it, a large prime"
    return ""


def chosen(grid: Grid, method: str, sides: BoundaryCoefficients, cut: bool) -> tuple[str, str]:
    """The method of the ``pressure_solver`` for these arguments, and why it is not the direct one asked for."""
    if method not in (AUTO, METHOD):
        return method, ""
    reason = hindrance(sides, cut) or (drawback(grid, sides) if method == AUTO else "")
    return (STAND_IN, reason) if reason else (METHOD, "")


def pressure_solver(
    grid: Grid, method: str, sides: BoundaryCoefficients, cut: bool, scratch: Scratch | None = None
) -> "tuple[EllipticSolver | SpectralSolver, str]":
    """A solver for the pressure, not set up yet; and why it is not the direct one asked for, empty where it is.

    Args:
        grid: The grid.
        method: One of ``solver.METHODS``, or ``"spectral"``, for which multigrid-CG stands in where it cannot serve;
            ``"auto"`` is the direct solve where it can serve and pays, too.
        sides: What stands around the box.
        cut: Whether solids stand in it, a liquid has a surface in it, or a side is open in part.
        scratch: Arrays to work in; see ``EllipticSolver``.
    """
    used, reason = chosen(grid, method, sides, cut)
    return (SpectralSolver(grid) if used == METHOD else EllipticSolver(grid, used, scratch=scratch)), reason


class SpectralSolver:
    """Solves A x = b in a box without solids by transforms; the interface is that of every ``EllipticSolver``.

    One transform there and back is the exact solution but for rounding. The guess in ``out`` is not used, so a solution
    depends on its right-hand side alone. If the true residual, which is measured like that of every solver, is above
    the tolerance, the residual is solved for in turn, which ends at the floor of f32. ``iterations`` counts those
    solves: 1, or 2 and more where the tolerance is near that floor.

    Args:
        grid: The grid; Taichi must run on the CPU.

    Attributes:
        system: A, and what is solved for.
        null_space: What A leaves open.
        transforms: A⁻¹.

    Raises:
        RuntimeError: where Taichi does not run on the CPU, or SciPy is not installed.
    """

    method = METHOD

    def __init__(self, grid: Grid):
        problem = hindrance(BoundaryCoefficients.closed(grid.dim), cut=False)
        if problem:
            raise RuntimeError(f"no direct solve of the pressure: {problem}")
        self.grid, self.system, self.transforms = grid, LinearSystem(grid), Transforms(grid)
        self._residual = BoxResidual(self.system, self.transforms.workers)
        self._constant = Constant(self.system, self._residual.partials)
        self._constant.count = math.prod(grid.shape)
        self.null_space: NullSpace = self._constant
        self._sides: BoundaryCoefficients | None = None

    @property
    def inv_diag(self):
        """Reciprocal diagonal of the operator, positive in every cell."""
        return self.system.inv_diag

    @property
    def regions(self) -> int:
        """One: there are no solids."""
        return 1

    def setup(self, first: tuple[int, ...], sides: BoundaryCoefficients, mask=None, held=None) -> None:
        """Solve for all cells of the box, with these sides; the other arguments are for other solvers.

        Raises:
            ValueError: for unknowns that are not all cells, or sides that have no transform.
        """
        sides.require(first, self.grid.dim)
        problem = hindrance(sides, cut=mask is not None or held is not None or any(i != 1 for i in first))
        if problem:
            raise ValueError(problem)
        self.grid.require_runtime()
        if sides == self._sides:
            return
        self.system.set_sides(sides, cut=False)
        set_box(self.system, sides)
        singular = sides.shift == 0 and not any(sides.box)
        self.null_space = self._constant if singular else NoNullSpace()
        self.transforms.update(sides, singular)
        self._residual.update(sides)
        self._sides = sides

    def setup_open(self, open, sides: BoundaryCoefficients) -> None:
        """Not possible: with coefficients a transform does not make the operator a division.

        Raises:
            ValueError: always.
        """
        raise ValueError(hindrance(sides, cut=True))

    def precondition(self, r, out) -> None:
        """``out`` = A⁻¹ r."""
        self.grid.require(r=r, out=out)
        out.copy_from(r)
        self.transforms.solve_in_place(out)

    def solve(
        self, rhs, out, *, tolerance: float = 1e-4, max_iterations: int = 500, look_every: int | None = None
    ) -> SolveResult:
        """``EllipticSolver.solve``, whatever ``out`` holds; the host looks at every residual."""
        require_pair(self.grid, self._sides is not None, rhs, out)
        limit = require_limits(tolerance, max_iterations)
        if look_every is not None:
            whole("look_every", look_every, 1)
        return self._residual.solve(rhs, out, tolerance, self.null_space, lambda rhs: self._refine(rhs, out, limit))

    def sweep(self, rhs, out, sweeps: int) -> SolveResult:
        """``EllipticSolver.sweep``."""
        require_pair(self.grid, self._sides is not None, rhs, out)
        return self._residual.sweep(rhs, out, whole("sweeps", sweeps, 1), self.null_space)

    def _refine(self, rhs, out, max_iterations: int) -> SolveResult:
        """Solve, measure, and solve for what is left until it is little enough or becomes no less."""
        residual = self._residual
        seen = residual.look()
        seen = seen._replace(square=seen.norm)  # from 0, all of it is left
        if result := residual.nothing_to_solve(seen, out):
            return result
        out.fill(0.0)
        status, iterations, best, kept = None, 0, math.inf, False
        while status is None:
            if not math.isfinite(seen.square):
                status = Status.NOT_FINITE
            elif iterations and seen.met:
                status = Status.CONVERGED
            elif iterations >= max_iterations:
                status = Status.MAX_ITERATIONS
            elif seen.square > 0.25 * best:
                # A solve that gains less than half has met the floor of f32.
                status = Status.STALLED
            else:
                best = seen.square
                if iterations:
                    residual.keep(out)
                    kept = True
                    self.transforms.solve_in_place(residual.r)
                    addition_kernels(self.grid.loops).add_correction(out, residual.r, self.grid.n, 1.0)
                else:
                    ti.sync()
                    np.subtract(interior(self.grid, rhs), np.float32(seen.mean), out=interior(self.grid, out))
                    self.transforms.solve_in_place(out)
                seen, iterations = residual.compute(rhs, out), iterations + 1
        if kept and seen.square > best:
            residual.restore(out)
            seen = seen._replace(square=best)
        return seen.result(iterations, status)
