"""Conjugate gradients, with multigrid or the diagonal as preconditioner, to a tolerance.

The scalars of the iteration stay on the device: alpha, beta and the test for convergence are computed there, and an
iteration that finds the tolerance met changes nothing any more. So the host may look only now and then, and the count
of iterations is exact all the same. (Hestenes, Stiefel 1952; Bridson, *Fluid Simulation*, ch. 5.)
"""

from enum import Enum
from typing import NamedTuple

import numpy as np

from .._ti import ti
from ..grid import Grid
from ..kernels import PARTIALS, Array, GraphRecorder, add, kernel_family
from .multigrid import Multigrid
from .poisson import PoissonLevel, Sides, apply_at, mean_kernels, neighbour_sum, unknown_value_at

# Places of the scalars of the iteration in their small array.
_RZ, _BETA, _ALPHA, _RR, _TARGET, _LIMIT, _ITERATIONS, _MEAN, _NORM = range(9)
_SCALARS = 9

_ROUNDING = 1e-12
"""Square of the relative error of a mean in f32."""
_CYCLE = 1e-11
"""Gain of |residual|² after which the recursion no longer tells the truth and the residual is computed afresh."""

_NEAR_FLOOR = 1e-8
"""|residual|² over |right-hand side|² from which a first guess is so good that iterating may spoil it."""


class Status(Enum):
    """How a solve ended; the value says what it means."""

    CONVERGED = "the residual fell below the tolerance"
    STALLED = "this is as near as f32 comes to a solution, and it is above the tolerance: ask for less"
    MAX_ITERATIONS = "the iterations ran out above the tolerance: allow more, or precondition with multigrid"
    NOT_FINITE = "the right-hand side or the solution is not finite"


class SolveResult(NamedTuple):
    """What a solve says of itself.

    Attributes:
        iterations: Conjugate-gradient iterations made.
        relative_residual: True residual over right-hand side, L2, after the solve.
        status: How it ended.
        removed_mean: Mean of the right-hand side that a closed problem cannot balance and that was taken out.
    """

    iterations: int
    relative_residual: float
    status: Status
    removed_mean: float


@ti.func
def _residual_at(c, I, s, x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), r: ti.template(), mean, shift):
    """Write the residual and return its square."""
    value = rhs[c] * ti.f32(0.0)
    if inv_diag[c] > 0:
        value = rhs[c] - mean - apply_at(x, inv_diag, c, s, shift)
    r[c] = value
    return value * value


@ti.func
def _centred_square_at(c, I, s, rhs: ti.template(), inv_diag: ti.template(), mean):
    value = rhs[c] * ti.f32(0.0)
    if inv_diag[c] > 0:
        value = rhs[c] - mean
    return value * value


@ti.func
def _keep_unknowns_at(c, I, s, x: ti.template(), inv_diag: ti.template()):
    if inv_diag[c] == 0:
        x[c] = ti.f32(0.0)


@ti.func
def _product_at(c, I, s, a: ti.template(), b: ti.template()):
    return a[c] * b[c]


@ti.func
def _direction_at(c, I, s, z: ti.template(), d: ti.template(), beta):
    d[c] = z[c] + beta * d[c]


@ti.func
def _curvature_at(c, I, s, d: ti.template(), a_d: ti.template(), inv_diag: ti.template()):
    """Write A d and return d · A d. Rounding here is that of a correction; the true residual sees what it does."""
    value = d[c] * ti.f32(0.0)
    if inv_diag[c] > 0:
        value = d[c] / inv_diag[c] - neighbour_sum(d, c, s)
    a_d[c] = value
    return value * d[c]


@ti.func
def _advance_at(c, I, s, x: ti.template(), r: ti.template(), d: ti.template(), a_d: ti.template(), alpha):
    x[c] = x[c] + alpha * d[c]
    value = r[c] - alpha * a_d[c]
    r[c] = value
    return value * value


@ti.func
def _scale_at(c, I, s, r: ti.template(), inv_diag: ti.template(), z: ti.template()):
    z[c] = r[c] * inv_diag[c]


@kernel_family
def krylov_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell
    reduce_cells, reduced = loops.reduce_cells, loops.reduced

    @ti.kernel
    def start(
        x: Array, rhs: Array, inv_diag: Array, n: IntVector, partials: Array, scalars: Array, inv_count: ti.f32,
        tolerance: ti.f32,
    ):  # fmt: skip
        """Mean of the right-hand side (``inv_count`` 0 leaves it in) and the residual to reach."""
        each_cell(n, _keep_unknowns_at, (x, inv_diag))
        reduce_cells(n, partials, ti.f32(0.0), add, unknown_value_at, (rhs, inv_diag))
        for _ in range(1):
            scalars[_MEAN] = reduced(partials, ti.f32(0.0), add) * inv_count
        reduce_cells(n, partials, ti.f32(0.0), add, _centred_square_at, (rhs, inv_diag, scalars[_MEAN]))
        for _ in range(1):
            square, wanted = reduced(partials, ti.f32(0.0), add), tolerance * tolerance
            if inv_count > 0:
                # What is left of a mean that was taken out is rounding, and no answer is owed to that.
                square = ti.max(square, ti.f32(_ROUNDING) * scalars[_MEAN] * scalars[_MEAN] / (inv_count * wanted))
            scalars[_NORM] = square
            scalars[_TARGET] = square * wanted
            scalars[_ITERATIONS] = ti.f32(0.0)

    @ti.kernel
    def true_residual(
        x: Array, rhs: Array, inv_diag: Array, r: Array, n: IntVector, partials: Array, scalars: Array, shift: ti.f32
    ):
        """Compute the residual afresh, and start new directions from it."""
        reduce_cells(n, partials, ti.f32(0.0), add, _residual_at, (x, rhs, inv_diag, r, scalars[_MEAN], shift))
        for _ in range(1):
            square = reduced(partials, ti.f32(0.0), add)
            scalars[_RR] = square
            scalars[_RZ] = ti.f32(0.0)
            scalars[_LIMIT] = ti.max(scalars[_TARGET], ti.f32(_CYCLE) * square)

    @ti.kernel
    def precondition_by_diagonal(r: Array, inv_diag: Array, z: Array, n: IntVector):
        each_cell(n, _scale_at, (r, inv_diag, z))

    @ti.kernel
    def iterate(
        x: Array, r: Array, z: Array, d: Array, a_d: Array, inv_diag: Array, n: IntVector, partials: Array,
        scalars: Array,
    ):  # fmt: skip
        """One iteration, given z = M r."""
        reduce_cells(n, partials, ti.f32(0.0), add, _product_at, (r, z))
        for _ in range(1):
            rz, before = reduced(partials, ti.f32(0.0), add), scalars[_RZ]
            beta = ti.f32(0.0)
            if before > 0:
                beta = rz / before
            scalars[_BETA] = beta
            scalars[_RZ] = rz
        each_cell(n, _direction_at, (z, d, scalars[_BETA]))
        reduce_cells(n, partials, ti.f32(0.0), add, _curvature_at, (d, a_d, inv_diag))
        for _ in range(1):
            curvature = reduced(partials, ti.f32(0.0), add)
            alpha = ti.f32(0.0)
            if scalars[_RR] > scalars[_LIMIT] and curvature > 0:
                alpha = scalars[_RZ] / curvature
                scalars[_ITERATIONS] = scalars[_ITERATIONS] + ti.f32(1.0)
            scalars[_ALPHA] = alpha
        reduce_cells(n, partials, ti.f32(0.0), add, _advance_at, (x, r, d, a_d, scalars[_ALPHA]))
        for _ in range(1):
            scalars[_RR] = reduced(partials, ti.f32(0.0), add)

    return {
        "start": start,
        "true_residual": true_residual,
        "precondition_by_diagonal": precondition_by_diagonal,
        "iterate": iterate,
    }


class ConjugateGradient:
    """Preconditioned conjugate gradients on one grid.

    Args:
        grid: The grid.
        preconditioner: ``"multigrid"`` or ``"diagonal"``.
        sweeps: Smoothing sweeps per leg of the V-cycle.

    Use:
        ``setup`` once for a set of unknowns and sides, ``solve`` as often as wanted.
    """

    def __init__(self, grid: Grid, preconditioner: str = "multigrid", sweeps: int = 1):
        if preconditioner not in ("multigrid", "diagonal"):
            raise ValueError(f"preconditioner is {preconditioner!r}; it is 'multigrid' or 'diagonal'")
        self.grid = grid
        self.n = grid.n
        self._kernels, self._means = krylov_kernels(grid.loops), mean_kernels(grid.loops)
        self._r, self._z, self._d, self._a_d = (grid.array() for _ in range(4))
        self._partials = ti.ndarray(ti.f32, PARTIALS)
        self._scalars = ti.ndarray(ti.f32, _SCALARS)
        self._scalars.fill(0.0)
        self._sums = ti.ndarray(ti.f32, 2)
        self.multigrid = Multigrid(grid, sweeps) if preconditioner == "multigrid" else None
        self._level = self.multigrid.levels[0] if self.multigrid else PoissonLevel(grid)
        self._unknown = None if self.multigrid else grid.array()
        self._first: tuple[int, ...] | None = None
        self._sides: Sides | None = None
        self._singular = False
        self._count = 0
        self._replay = {}
        self._kept = None

    @property
    def inv_diag(self):
        """Reciprocal diagonal of the operator; positive exactly where it is solved for."""
        return self._level.inv_diag

    def setup(self, first: tuple[int, ...], sides: Sides) -> None:
        """Solve for the cells from integer position ``first`` upwards, with these sides."""
        self.grid.require_runtime()
        if (first, sides) == (self._first, self._sides):
            return
        if self.multigrid:
            self.multigrid.setup(first, sides)
        else:
            self._level.mark_box(self._unknown, first)
            self._level.set_diagonal(self._unknown, sides, sides.shift)
        if self._singular != sides.singular:
            self._replay.clear()
        self._first, self._sides, self._singular = first, sides, sides.singular
        self._means.count_unknowns(self.inv_diag, self.n, self._partials, self._sums)
        self._count = int(self._sums[1])

    def _recorded(self, out):
        """The launch graph of one iteration on ``out``; recorded at its first use."""
        if id(out) not in self._replay:
            recorder = GraphRecorder(self.grid.dim)
            if self.multigrid:
                self.multigrid.record(recorder, self._r, self._z, self._a_d)
            else:
                recorder.launch(self._kernels.precondition_by_diagonal, self._r, self.inv_diag, self._z, self.n)
            recorder.launch(
                self._kernels.iterate, out, self._r, self._z, self._d, self._a_d, self.inv_diag, self.n,
                self._partials, self._scalars,
            )  # fmt: skip
            if self._singular:
                # No direction can reduce the mean of the residual, which rounding feeds: left alone it would take over.
                recorder.launch(
                    self._means.remove_mean, self._r, self.inv_diag, self.n, self._partials, self._sums
                )  # fmt: skip
            self._replay[id(out)] = (recorder.finish(), out)
        return self._replay[id(out)][0]

    def precondition(self, r, out) -> None:
        """``out = M r``: one application of the preconditioner, for tests and for other solvers."""
        recorder = GraphRecorder(self.grid.dim)
        if self.multigrid:
            self.multigrid.record(recorder, r, out, self._a_d)
        else:
            recorder.launch(self._kernels.precondition_by_diagonal, r, self.inv_diag, out, self.n)
        recorder.finish()()

    def solve(
        self, rhs, out, *, tolerance: float = 1e-4, max_iterations: int = 500, look_every: int | None = None
    ) -> SolveResult:
        """Solve ``A out = rhs`` from the guess in ``out`` until |residual| <= tolerance · |rhs|, L2.

        The recursion stops at the tolerance; a true residual up to 5 % above it is taken as converged.

        Args:
            rhs: Right-hand side, an array over the grid.
            out: First guess and result; set to 0 where it is not solved for.
            tolerance: Relative residual to reach.
            max_iterations: Iterations after which to give up.
            look_every: Iterations between two looks of the host at the residual; left out, 1 on a CPU and 2 on a GPU,
                where a look waits for the device.
        """
        self.grid.require_runtime()
        if self._sides is None:
            raise RuntimeError("setup() comes before solve(): the solver does not know its unknowns yet")
        if rhs is out:
            raise ValueError("rhs and out are the same array")
        look_every = look_every or (1 if self.grid.loops.rows else 2)
        k, shift = self._kernels, self._sides.shift
        inv_count = 1.0 / self._count if self._sides.singular and self._count else 0.0
        system, work = (out, rhs, self.inv_diag), (self.n, self._partials, self._scalars)
        k.start(*system, *work, inv_count, tolerance)
        status, best, cycles, kept = None, np.inf, 0, False
        while status is None:
            k.true_residual(*system, self._r, *work, shift)
            seen = self._look()
            if not np.isfinite(seen[[_RR, _NORM]]).all():
                status = Status.NOT_FINITE
            elif seen[_NORM] == 0 or self._count == 0:
                out.fill(0.0)
                return SolveResult(0, 0.0, Status.CONVERGED, float(seen[_MEAN]))
            elif seen[_RR] <= 1.1 * seen[_TARGET]:
                # Rounding makes the true residual a little larger than the one that the recursion stopped at.
                status = Status.CONVERGED
            elif seen[_ITERATIONS] >= max_iterations:
                status = Status.MAX_ITERATIONS
            elif seen[_RR] > 0.25 * best:
                # A cycle that gains less than half has met the floor of f32.
                status = Status.STALLED
            else:
                if cycles or seen[_RR] < _NEAR_FLOOR * seen[_NORM]:
                    self._keep(out)
                    kept = True
                    if inv_count:
                        self._means.remove_mean(self._r, self.inv_diag, self.n, self._partials, self._sums)
                best, cycles = seen[_RR], cycles + 1
                self._run_cycle(out, seen, max_iterations, look_every)
        if kept and seen[_RR] > best:
            out.copy_from(self._kept)
            seen[_RR] = best
        relative = float(np.sqrt(seen[_RR] / seen[_NORM])) if status is not Status.NOT_FINITE else float("nan")
        return SolveResult(int(seen[_ITERATIONS]), relative, status, float(seen[_MEAN]))

    def _keep(self, out) -> None:
        """Remember a solution that the next cycle, begun close to the floor of f32, may spoil."""
        if self._kept is None:
            self._kept = self.grid.array()
        self._kept.copy_from(out)

    def _run_cycle(self, out, seen: np.ndarray, max_iterations: int, look_every: int) -> None:
        """Iterate until the recursive residual meets its limit, nothing moves any more, or the iterations run out."""
        replay, iterations = self._recorded(out), -1.0
        while seen[_RR] > seen[_LIMIT] and iterations < seen[_ITERATIONS] < max_iterations:
            iterations = seen[_ITERATIONS]
            for _ in range(min(look_every, max_iterations - int(iterations))):
                replay()
            seen = self._look()

    def _look(self) -> np.ndarray:
        return self._scalars.to_numpy().astype(np.float64)
