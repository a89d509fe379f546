"""The residual of a system, b - A x, and the numbers of an iteration.

They stay on the device: alpha, beta and the test for convergence are computed there, and an iteration that finds the
tolerance met changes nothing any more. So the host may look only now and then, and the count of iterations is exact all
the same.
"""

import math
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from .._ti import ti
from ..kernels import EVERY, LONG_STRIPS, Array, add, kernel_family, largest, numbers_of, room_for_partials
from ..operators.ghosts import wrap_if_periodic
from .null_space import NullSpace, unknown_value_at
from .relaxation import relaxation_kernels
from .system import LinearSystem, System, apply_at, product_at, where_solved, write_strip_of_system

RZ, BETA, ALPHA, RR, TARGET, LIMIT, ITERATIONS, MEAN, NORM = range(9)
"""Places of the numbers of an iteration in their small array."""

ROUNDING = 1e-12
"""Square of the relative error of a mean in f32."""
_CYCLE = 1e-11
"""Gain of |residual|² after which the recursion no longer tells the truth and the residual is computed afresh."""

_TINY, _HUGE = 1e-20, 1e30
"""|right-hand side|² below and above which products on the way to a solution may leave the range of f32."""

_POWERS = 126
"""Powers of two, and their reciprocals, that f32 holds with all their digits."""

_FAR_GUESS = 1e9
"""Size of a guess at which, the right-hand side being of size 1, it is none: a solution is at most cells² per axis."""


class Status(Enum):
    """How a solve ended; the value says what it means."""

    CONVERGED = "the residual fell below the tolerance"
    STALLED = "this is as near as f32 comes to a solution, and it is above the tolerance: ask for less"
    MAX_ITERATIONS = "the iterations ran out above the tolerance: allow more, or solve with multigrid"
    SWEPT = "as many sweeps were made as were asked for, whatever they left"
    NOT_FINITE = "the right-hand side or the solution is not finite"


class SolveResult(NamedTuple):
    """What a solve says of itself.

    Attributes:
        iterations: Conjugate-gradient iterations, V-cycles or sweeps made.
        relative_residual: True residual over right-hand side, L2, after the solve.
        status: How it ended.
        removed_mean: Mean of the right-hand side that a closed problem cannot balance and that was taken out; with
            several connected regions the largest of their means.
    """

    iterations: int
    relative_residual: float
    status: Status
    removed_mean: float

    def followed_by(self, other: "SolveResult") -> "SolveResult":
        """Of two solves in one step: the iterations of both, and of the rest what is worse."""
        severity = list(Status).index
        return SolveResult(
            self.iterations + other.iterations,
            max(self.relative_residual, other.relative_residual),
            max(self.status, other.status, key=severity),
            max(self.removed_mean, other.removed_mean, key=abs),
        )


class Seen(NamedTuple):
    """The numbers of an iteration as the host has seen them."""

    rz: float  # r · M r
    beta: float  # what the last direction weighs in the next one
    alpha: float  # step along the direction
    square: float  # |r|²
    target: float  # what |r|² is to become
    limit: float  # where the recursion ends; larger than ``target`` where it would no longer tell the truth
    iterations: float  # how many there were
    mean: float  # what was taken out of the right-hand side
    norm: float  # |right-hand side|²

    @property
    def met(self) -> bool:
        """Whether the target is; rounding makes the true residual a little larger than that of the recursion."""
        return self.square <= 1.1 * self.target

    def result(self, iterations: float, status: Status) -> SolveResult:
        """That of a solve that ends here."""
        return SolveResult(int(iterations), math.sqrt(self.square / self.norm), status, self.mean)


@ti.func
def _residual_at(c, I, s, system, mean, shift):
    return where_solved(system.rhs[c] - mean - apply_at(c, s, system, shift), system.inv_diag[c])


@ti.func
def _centred_square_at(c, I, s, rhs: Array, inv_diag: Array, mean):
    value = where_solved(rhs[c] - mean, inv_diag[c])
    return value * value


@ti.func
def _keep_unknowns_at(c, I, s, x: Array, inv_diag: Array):
    if inv_diag[c] == 0:
        x[c] = ti.f32(0.0)


@ti.func
def _size_at(c, I, s, x: Array, inv_diag: Array):
    return ti.abs(unknown_value_at(c, I, s, x, inv_diag))


@ti.func
def _scale_by_at(c, I, s, x: Array, factor):
    x[c] = factor * x[c]


@kernel_family
def residual_kernels(loops, coupling):
    IntVector, wavefront, total_of, width = loops.IntVector, loops.wavefront, loops.total_of, loops.long
    cut, wraps = coupling

    @ti.kernel
    def start(
        x: Array, rhs: Array, inv_diag: Array, n: IntVector, partials: Array, scalars: Array, inv_count: ti.f32,
        removed: ti.f32, tolerance: ti.f32,
    ):  # fmt: skip
        """Mean of the right-hand side (``inv_count`` 0 leaves it in) and the residual to reach.

        ``removed`` is the square, L2, of what has been taken out of the right-hand side before.
        """
        wavefront(n, ((EVERY, _keep_unknowns_at, (x, inv_diag)),), (partials, unknown_value_at, (rhs, inv_diag)))
        ti.loop_config(serialize=True)
        for _ in range(1):
            scalars[MEAN] = total_of(n, partials) * inv_count
        loops.reduce_cells(n, partials, ti.f32(0.0), add, _centred_square_at, (rhs, inv_diag, scalars[MEAN]))
        ti.loop_config(serialize=True)
        for _ in range(1):
            square, wanted = loops.reduced(partials, ti.f32(0.0), add), tolerance * tolerance
            taken = removed
            if inv_count > 0:
                taken += scalars[MEAN] * scalars[MEAN] / inv_count
            # What is left of a mean that was taken out may be nothing but rounding, and no answer is owed to that.
            if square <= ti.f32(ROUNDING) * taken:
                square = ti.f32(0.0)
            scalars[NORM] = square
            scalars[TARGET] = square * wanted
            scalars[ITERATIONS] = ti.f32(0.0)

    @ti.kernel
    def true_residual(
        x: Array, rhs: Array, inv_diag: Array, open: Array, r: Array, n: IntVector, wrap: IntVector, partials: Array,
        scalars: Array, shift: ti.f32,
    ):  # fmt: skip
        """Compute the residual afresh, and start new directions from it."""
        if ti.static(wraps):
            loops.each_side(n, wrap_if_periodic, (x, 0, n, wrap))
        system = System(inv_diag, n, open, cut, x, rhs)
        wavefront(
            n,
            ((LONG_STRIPS, write_strip_of_system, (system, r, width, _residual_at, (scalars[MEAN], shift))),),
            (partials, product_at, (r, r)),
        )
        ti.loop_config(serialize=True)
        for _ in range(1):
            square = total_of(n, partials)
            scalars[RR] = square
            scalars[RZ] = ti.f32(0.0)
            scalars[LIMIT] = ti.max(scalars[TARGET], ti.f32(_CYCLE) * square)

    @ti.kernel
    def scale(x: Array, n: IntVector, factor: ti.f32):
        """All values, those beyond the seam of a periodic axis too."""
        loops.each_cell_in(n * 0, n + 2, n, _scale_by_at, (x, factor))

    @ti.kernel
    def find_largest(x: Array, inv_diag: Array, n: IntVector, partials: Array, out: Array):
        """The largest |value| of what is solved for."""
        loops.reduce_to(out, 0, n, partials, ti.f32(0.0), largest, _size_at, (x, inv_diag))

    return start, true_residual, scale, find_largest


class Residual:
    """b - A x of one system, and what is measured on the way to its solution.

    Attributes:
        r: The residual, an array over the grid.
        partials: For sums on the device.
        scalars: The numbers of an iteration, on the device.
    """

    def __init__(self, system: LinearSystem):
        grid = system.grid
        self.system, self.r = system, grid.array()
        self.partials = room_for_partials(planes=grid.shape[0])
        self.scalars = ti.ndarray(ti.f32, len(Seen._fields))
        self.scalars.fill(0.0)
        self._largest = ti.ndarray(ti.f32, 1)
        self._multiple = self._kept = None
        self.shift = 0.0

    @property
    def _kernels(self):
        return self.system.kernels(residual_kernels)

    def look(self) -> Seen:
        """The numbers as they are now."""
        return Seen(*numbers_of(self.scalars))

    def enqueue(self, rhs, x) -> None:
        """Compute the residual afresh; see it later."""
        system = self.system
        self._kernels.true_residual(
            x, rhs, system.inv_diag, system.open, self.r, system.n, system.wrap, self.partials, self.scalars, self.shift
        )

    def compute(self, rhs, x) -> Seen:
        """Compute the residual afresh."""
        self.enqueue(rhs, x)
        return self.look()

    def nothing_to_solve(self, seen: Seen, out) -> SolveResult | None:
        """The result where no iteration is needed or any use."""
        if not (math.isfinite(seen.square) and math.isfinite(seen.norm)):
            return SolveResult(0, math.nan, Status.NOT_FINITE, seen.mean)
        if seen.norm == 0:
            out.fill(0.0)
            return SolveResult(0, 0.0, Status.CONVERGED, seen.mean)
        return None

    def keep(self, x) -> None:
        """Remember a solution that what comes next may spoil, close to the floor of f32."""
        if self._kept is None:
            self._kept = self.system.grid.array()
        self._kept.copy_from(x)

    def restore(self, x) -> None:
        """Take the solution that was kept."""
        x.copy_from(self._kept)

    def solve(
        self, rhs, out, tolerance: float, null_space: NullSpace, solve: Callable[[Any], SolveResult]
    ) -> SolveResult:
        """Measure the right-hand side, then solve for it; where its squares leave the range of f32, for a multiple of it.

        That is a power of two times it, by which nothing is rounded. ``solve`` is given a right-hand side that is measured
        and from which the null space is taken, and ``out`` is its first guess and result.
        """
        started = self._start(rhs, out, tolerance, null_space)
        if _TINY <= self.look().norm <= _HUGE:
            return _solved(solve, *started)
        size = self._size(rhs)
        if not 0 < size < math.inf:
            return _solved(solve, *started)
        power = min(max(-math.frexp(size)[1], -_POWERS), _POWERS)
        factor, n = 2.0**power, self.system.n
        if self._multiple is None:
            self._multiple = self.system.grid.array()
        self._multiple.copy_from(rhs)
        self._kernels.scale(self._multiple, n, factor)
        if self._size(out) * factor > _FAR_GUESS:
            out.fill(0.0)
        self._kernels.scale(out, n, factor)
        result = _solved(solve, *self._start(self._multiple, out, tolerance, null_space))
        self._kernels.scale(out, n, 1.0 / factor)
        if factor < 1 and not math.isfinite(self._size(out)):
            result = result._replace(status=Status.NOT_FINITE, relative_residual=math.nan)
        return result._replace(removed_mean=result.removed_mean / factor)

    def _start(self, rhs, out, tolerance: float, null_space: NullSpace):
        """Take out of a right-hand side what cannot be balanced, and measure the rest.

        Returns:
            The right-hand side to solve for, and the mean that was taken out where it was done region by region.
        """
        removed, mean, system = 0.0, None, self.system
        if null_space.by_region:
            rhs, mean = null_space.balanced(rhs)
            removed = mean * mean * null_space.unknowns
        self._kernels.start(
            out, rhs, system.inv_diag, system.n, self.partials, self.scalars, null_space.mean_weight, removed, tolerance
        )
        return rhs, mean

    def _size(self, x) -> float:
        """Largest |value| of what is solved for."""
        self._kernels.find_largest(x, self.system.inv_diag, self.system.n, self.partials, self._largest)
        return numbers_of(self._largest)[0]

    def sweep(self, rhs, out, sweeps: int, null_space: NullSpace) -> SolveResult:
        """Relax exactly ``sweeps`` times from 0: red-black Gauss-Seidel, the cells of even position sum first."""
        system, relax = self.system, self.system.kernels(relaxation_kernels).sweep
        out.fill(0.0)

        def relaxed(rhs) -> SolveResult:
            for _ in range(sweeps):
                relax(out, rhs, system.inv_diag, system.open, system.n, system.wrap)
            seen = self.compute(rhs, out)
            if result := self.nothing_to_solve(seen, out):
                return result._replace(iterations=sweeps)
            return seen.result(sweeps, Status.SWEPT)

        return self.solve(rhs, out, 0.0, null_space, relaxed)


def _solved(solve: Callable[[Any], SolveResult], rhs, mean: float | None) -> SolveResult:
    result = solve(rhs)
    return result if mean is None else result._replace(removed_mean=mean)
