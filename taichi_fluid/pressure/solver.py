"""One interface to every solver: correction by multigrid, relaxation or the diagonal, with conjugate gradients or without.

    x ← x + M (b - A x)

is the multigrid cycle, red-black Gauss-Seidel or damped Jacobi, as M is one V-cycle, one sweep or the diagonal.
Conjugate gradients take the same M, where it is symmetric, as preconditioner. V-cycles alone take the best step along
each correction, which is the first step of conjugate gradients: beside solids a whole one may be too long.

The scalars of the iteration stay on the device: alpha, beta and the test for convergence are computed there, and an
iteration that finds the tolerance met changes nothing any more. So the host may look only now and then, and the count
of iterations is exact all the same. (Hestenes, Stiefel 1952; Bridson, *Fluid Simulation*, ch. 5.)
"""

import math
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from .._ti import ti
from ..boundaries.coefficients import BoundaryCoefficients
from ..grid import Grid, Scratch, given
from ..kernels import EVERY, LONG_RUNS, PARTIALS, Array, GraphRecorder, add, kernel_family, memory_of
from ..limits import is_number, whole
from ..operators.ghosts import wrap_if_periodic
from .multigrid import Multigrid
from .pockets import Pockets
from .poisson import (
    PoissonLevel,
    apply_at,
    mean_kernels,
    neighbour_sum,
    product_at,
    unknown_value_at,
    write_run_of_operator,
)
from .relaxation import relaxation_kernels, scale_at

# Places of the scalars of the iteration in their small array.
_RZ, _BETA, _ALPHA, _RR, _TARGET, _LIMIT, _ITERATIONS, _MEAN, _NORM = range(9)
_SCALARS = 9

_ROUNDING = 1e-12
"""Square of the relative error of a mean in f32."""
_CYCLE = 1e-11
"""Gain of |residual|² after which the recursion no longer tells the truth and the residual is computed afresh."""

_BALANCE_EVERY = 4
"""Iterations after which the mean, which rounding feeds, is taken out of the residual again."""

_TINY, _HUGE = 1e-20, 1e30
"""|right-hand side|² below and above which products on the way to a solution may leave the range of f32."""

_POWERS = 126
"""Powers of two, and their reciprocals, that f32 holds with all their digits."""

_FAR_GUESS = 1e9
"""Size of a guess at which, the right-hand side being of size 1, it is none: a solution is at most cells² per axis."""

_PATIENCE = 4
"""Looks without a better residual after which corrections have met the floor of f32; a single one may be worse."""

_NEAR_FLOOR = 1e-8
"""|residual|² over |right-hand side|² from which a first guess is so good that iterating may spoil it."""


METHODS = ("multigrid-cg", "multigrid", "cg", "gauss-seidel", "jacobi")
"""Conjugate gradients with multigrid, V-cycles alone, conjugate gradients with the diagonal, and plain relaxation."""

_SWEEPS = {"multigrid-cg": 1, "multigrid": 2}
"""Smoothing sweeps per leg, beside black alone: one and conjugate gradients cost no more than two; alone, two pay."""

_LOOK_EVERY = {"gauss-seidel": 8, "jacobi": 8}


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
            several pockets the largest of their means.
    """

    iterations: int
    relative_residual: float
    status: Status
    removed_mean: float


@ti.func
def _residual_at(
    c, I, s, x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), open: ti.template(), n, mean, shift,
    cut: ti.template(),
):  # fmt: skip
    value = rhs[c] - mean - apply_at(x, inv_diag, open, c, s, n, shift, cut)
    if inv_diag[c] == 0:
        value = ti.f32(0.0)
    return value


@ti.func
def _residual_run(
    c, I, m, s, x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), open: ti.template(), r: ti.template(),
    n, mean, shift, width: ti.template(), cut: ti.template(),
):  # fmt: skip
    write_run_of_operator(
        c, I, m, s, r, width, _residual_at, (x, rhs, inv_diag, open, n, mean, shift, cut),
        (x, rhs, inv_diag, open, n, mean, shift, False), inv_diag, cut,
    )  # fmt: skip


@ti.func
def _centred_square_at(c, I, s, rhs: ti.template(), inv_diag: ti.template(), mean):
    value = rhs[c] - mean
    if inv_diag[c] == 0:
        value = ti.f32(0.0)
    return value * value


@ti.func
def _keep_unknowns_at(c, I, s, x: ti.template(), inv_diag: ti.template()):
    if inv_diag[c] == 0:
        x[c] = ti.f32(0.0)


@ti.func
def _square_at(c, I, s, a: ti.template()):
    return a[c] * a[c]


@ti.func
def _direction_at(c, I, s, z: ti.template(), d: ti.template(), beta):
    d[c] = z[c] + beta * d[c]


@ti.func
def _product_with_operator_at(
    c, I, s, d: ti.template(), inv_diag: ti.template(), open: ti.template(), n, cut: ti.template()
):
    """A d. Rounding here is that of a correction; the true residual sees what it does."""
    inv = inv_diag[c]
    value = d[c] / inv - neighbour_sum(d, inv_diag, open, c, s, n, cut)
    if inv == 0:
        value = ti.f32(0.0)
    return value


@ti.func
def _product_run(
    c, I, m, s, d: ti.template(), a_d: ti.template(), inv_diag: ti.template(), open: ti.template(), n,
    width: ti.template(), cut: ti.template(),
):  # fmt: skip
    write_run_of_operator(
        c, I, m, s, a_d, width, _product_with_operator_at, (d, inv_diag, open, n, cut), (d, inv_diag, open, n, False),
        inv_diag, cut,
    )  # fmt: skip


@ti.func
def _advance_at(c, I, s, x: ti.template(), r: ti.template(), d: ti.template(), a_d: ti.template(), alpha):
    x[c] = x[c] + alpha * d[c]
    r[c] = r[c] - alpha * a_d[c]


@ti.func
def _add_at(c, I, s, x: ti.template(), z: ti.template(), factor):
    x[c] = x[c] + factor * z[c]


@ti.func
def _scale_by_at(c, I, s, x: ti.template(), factor):
    x[c] = factor * x[c]


@kernel_family
def solver_kernels(loops, coupling):
    IntVector, each_cell, each_on_plane = loops.IntVector, loops.each_cell, loops.each_on_plane
    each_cell_in, reduce_cells, reduced, dim = loops.each_cell_in, loops.reduce_cells, loops.reduced, loops.dim
    in_turn, total_of, width = loops.in_turn, loops.total_of, loops.long
    cut, wraps = coupling

    @ti.kernel
    def start(
        x: Array, rhs: Array, inv_diag: Array, n: IntVector, partials: Array, scalars: Array, inv_count: ti.f32,
        removed: ti.f32, tolerance: ti.f32,
    ):  # fmt: skip
        """Mean of the right-hand side (``inv_count`` 0 leaves it in) and the residual to reach.

        ``removed`` is the square, L2, of what has been taken out of the right-hand side before.
        """
        in_turn(n, ((EVERY, _keep_unknowns_at, (x, inv_diag)),), (partials, unknown_value_at, (rhs, inv_diag)))
        ti.loop_config(serialize=True)
        for _ in range(1):
            scalars[_MEAN] = total_of(n, partials) * inv_count
        reduce_cells(n, partials, ti.f32(0.0), add, _centred_square_at, (rhs, inv_diag, scalars[_MEAN]))
        ti.loop_config(serialize=True)
        for _ in range(1):
            square, wanted = reduced(partials, ti.f32(0.0), add), tolerance * tolerance
            taken = removed
            if inv_count > 0:
                taken += scalars[_MEAN] * scalars[_MEAN] / inv_count
            # What is left of a mean that was taken out may be nothing but rounding, and no answer is owed to that.
            if square <= ti.f32(_ROUNDING) * taken:
                square = ti.f32(0.0)
            scalars[_NORM] = square
            scalars[_TARGET] = square * wanted
            scalars[_ITERATIONS] = ti.f32(0.0)

    @ti.kernel
    def true_residual(
        x: Array, rhs: Array, inv_diag: Array, open: Array, r: Array, n: IntVector, wrap: IntVector, partials: Array,
        scalars: Array, shift: ti.f32,
    ):  # fmt: skip
        """Compute the residual afresh, and start new directions from it."""
        if ti.static(wraps):
            for axis in ti.static(range(dim)):
                each_on_plane(n, axis, wrap_if_periodic, (x, 0, n, wrap, axis))
        in_turn(
            n,
            ((LONG_RUNS, _residual_run, (x, rhs, inv_diag, open, r, n, scalars[_MEAN], shift, width, cut)),),
            (partials, _square_at, (r,)),
        )
        ti.loop_config(serialize=True)
        for _ in range(1):
            square = total_of(n, partials)
            scalars[_RR] = square
            scalars[_RZ] = ti.f32(0.0)
            scalars[_LIMIT] = ti.max(scalars[_TARGET], ti.f32(_CYCLE) * square)

    @ti.kernel
    def precondition_by_diagonal(r: Array, inv_diag: Array, z: Array, n: IntVector):
        each_cell(n, scale_at, (r, inv_diag, z))

    @ti.func
    def follow(
        x: ti.template(), r: ti.template(), z: ti.template(), d: ti.template(), a_d: ti.template(),
        inv_diag: ti.template(), open: ti.template(), n, wrap, partials: ti.template(), scalars: ti.template(),
        summed: ti.template(),
    ):  # fmt: skip
        ti.loop_config(serialize=True)
        for _ in range(1):
            rz = total_of(n, partials) if ti.static(summed) else reduced(partials, ti.f32(0.0), add)
            before, beta = scalars[_RZ], ti.f32(0.0)
            if before > 0:
                beta = rz / before
            scalars[_BETA] = beta
            scalars[_RZ] = rz
        if ti.static(wraps):
            each_cell(n, _direction_at, (z, d, scalars[_BETA]))
            for axis in ti.static(range(dim)):
                each_on_plane(n, axis, wrap_if_periodic, (d, 0, n, wrap, axis))
            in_turn(
                n,
                ((LONG_RUNS, _product_run, (d, a_d, inv_diag, open, n, width, cut)),),
                (partials, product_at, (d, a_d)),
            )
        else:
            in_turn(
                n,
                (
                    (EVERY, _direction_at, (z, d, scalars[_BETA])),
                    (LONG_RUNS, _product_run, (d, a_d, inv_diag, open, n, width, cut)),
                ),
                (partials, product_at, (d, a_d)),
            )
        ti.loop_config(serialize=True)
        for _ in range(1):
            curvature = total_of(n, partials)
            alpha = ti.f32(0.0)
            if scalars[_RR] > scalars[_LIMIT] and curvature > 0:
                alpha = scalars[_RZ] / curvature
                scalars[_ITERATIONS] = scalars[_ITERATIONS] + ti.f32(1.0)
            scalars[_ALPHA] = alpha
        in_turn(n, ((EVERY, _advance_at, (x, r, d, a_d, scalars[_ALPHA])),), (partials, _square_at, (r,)))
        ti.loop_config(serialize=True)
        for _ in range(1):
            scalars[_RR] = total_of(n, partials)

    @ti.kernel
    def iterate(
        x: Array, r: Array, z: Array, d: Array, a_d: Array, inv_diag: Array, open: Array, n: IntVector,
        wrap: IntVector, partials: Array, scalars: Array,
    ):  # fmt: skip
        """One iteration, given z = M r."""
        reduce_cells(n, partials, ti.f32(0.0), add, product_at, (r, z))
        follow(x, r, z, d, a_d, inv_diag, open, n, wrap, partials, scalars, False)

    @ti.kernel
    def iterate_summed(
        x: Array, r: Array, z: Array, d: Array, a_d: Array, inv_diag: Array, open: Array, n: IntVector,
        wrap: IntVector, partials: Array, scalars: Array,
    ):  # fmt: skip
        """One iteration, given z = M r and, in ``partials`` as ``in_turn`` leaves it, r · z."""
        follow(x, r, z, d, a_d, inv_diag, open, n, wrap, partials, scalars, True)

    @ti.kernel
    def scale(x: Array, n: IntVector, factor: ti.f32):
        """All values, those beyond the seam of a periodic axis too."""
        each_cell_in(n * 0, n + 2, n, _scale_by_at, (x, factor))

    @ti.kernel
    def add_correction(x: Array, z: Array, n: IntVector, factor: ti.f32):
        each_cell(n, _add_at, (x, z, factor))

    return {
        "start": start,
        "scale": scale,
        "add_correction": add_correction,
        "true_residual": true_residual,
        "precondition_by_diagonal": precondition_by_diagonal,
        "iterate": iterate,
        "iterate_summed": iterate_summed,
    }


class EllipticSolver:
    """Solves A x = b on one grid by any of ``METHODS``; see ``poisson`` for A.

    Args:
        grid: The grid.
        method: One of ``METHODS``.
        sweeps: Smoothing sweeps per leg of a V-cycle; left out, what suits the method.
        scratch: Arrays to work in while it solves, all but ``first``, which may hold the right-hand side; left out, it
            has its own. The ghosts of ``second`` and ``third`` are 0.

    Use:
        ``setup`` or ``setup_open`` once for a set of unknowns and sides, ``solve`` as often as wanted.
    """

    _methods = METHODS

    def __init__(
        self, grid: Grid, method: str = "multigrid-cg", sweeps: int | None = None, scratch: Scratch | None = None
    ):
        if method not in self._methods:
            raise ValueError(f"method is {method!r}; it is one of {', '.join(self._methods)}")
        self.grid, self.method = grid, method
        self.n = grid.n
        self._means = mean_kernels(grid.loops)
        self._accelerated = method in ("multigrid-cg", "cg")
        self._searches = self._accelerated or method == "multigrid"
        self._r = grid.array()
        self._partials = ti.ndarray(ti.f32, max(PARTIALS, grid.shape[0]))
        self._scalars = ti.ndarray(ti.f32, _SCALARS)
        self._scalars.fill(0.0)
        self._seen = memory_of(self._scalars)
        self._sums = ti.ndarray(ti.f32, 2)
        self._make_room(sweeps, scratch)
        self._shares = scratch is not None and self._z is not None
        self.level = self.multigrid.levels[0] if self.multigrid else PoissonLevel(grid)
        self._pockets = Pockets(self.level)
        self._problem: object = None
        self._sides: BoundaryCoefficients | None = None
        self._singular = self._several = False
        self._count = 0
        self._replay, self._structure, self._vectors = {}, (), []
        self._kept = self._balanced = self._multiple = None

    def _make_room(self, sweeps: int | None, scratch: Scratch | None) -> None:
        """Arrays and levels that corrections are made in."""
        grid, method = self.grid, self.method
        if scratch is None:
            self._z, self._a_d = grid.array(), grid.array()
            self._d = grid.array() if self._searches else None
        else:
            self._z, self._a_d, self._d = scratch.vector, scratch.second, scratch.third
        sweeps = _SWEEPS.get(method, 1) if sweeps is None else whole("sweeps", sweeps, 1)
        self.multigrid = Multigrid(grid, sweeps) if method in _SWEEPS else None

    @property
    def inv_diag(self):
        """Reciprocal diagonal of the operator; positive exactly where it is solved for."""
        return self.level.inv_diag

    def setup(self, first: tuple[int, ...], sides: BoundaryCoefficients, mask=None, offset: int = 0, held=None) -> None:
        """Solve for the cells from integer position ``first`` upwards, with these sides.

        Args:
            first: Lowest integer position of an unknown.
            sides: What stands around them.
            mask: An array over the grid, positive where to solve; left out, everywhere from ``first``. Given one, the
                set-up is always done afresh.
            offset: Where the mask begins in its array.
            held: What places that are not solved for add to the diagonal of each cell beside them, where that is not
                the same everywhere; left out, ``sides.inside``.

        Raises:
            ValueError: for sides of another number of axes, and arrays that are not of the grid.
        """
        self.grid.require(**given(held=held))
        if mask is None and (first, sides) == self._problem:
            return
        self.mark(first, sides, mask, offset)
        self.level.set_diagonal(sides, first, sides.shift, held)
        definite = sides.shift != 0 or any(sides.box)
        self._finish_setup(sides, singular=not definite, look_for_pockets=mask is not None and sides.shift == 0)
        self._problem = (first, sides) if mask is None else None

    def mark(self, first: tuple[int, ...], sides: BoundaryCoefficients, mask=None, offset: int = 0) -> None:
        """Only mark what is solved for, in ``level.unknown``; ``setup`` does this too."""
        sides.require(first, self.grid.dim)
        if mask is not None:
            self.grid.require(None, offset, mask=mask)
        self.level.set_sides(sides, cut=False)
        if mask is None:
            self.level.mark_box(first)
        else:
            self.level.mark_positive(mask, first, offset)
        self.level.set_ghosts(self.level.unknown, self.level.wrap)

    def setup_open(self, open, sides: BoundaryCoefficients) -> None:
        """Solve for all cells that have a face open, with coefficients: the pressure around solids.

        Args:
            open: How far each lower face is open, 0 to 1, components as those of a velocity; the layer of upper faces
                behind the last cells is read too; along a periodic axis it is taken from its lower end.
            sides: A side with a positive number in ``box`` holds 0 beyond it, others are closed; and what is periodic.

        Raises:
            ValueError: for sides of another number of axes, and an array that is not of the grid.
        """
        self.grid.require(self.grid.dim, open=open)
        first = (1,) * self.grid.dim
        sides.require(first, self.grid.dim)
        self.level.set_sides(sides, cut=True)
        self.level.set_open(open)
        self.level.set_diagonal(sides, first, 0.0)
        self.level.mark_positive(self.level.inv_diag, first)
        self.level.set_ghosts(self.level.unknown, self.level.wrap)
        self._finish_setup(sides, singular=False, look_for_pockets=True)
        self._problem = None

    def _finish_setup(self, sides: BoundaryCoefficients, singular: bool, look_for_pockets: bool) -> None:
        if self.multigrid:
            self.multigrid.coarsen(sides)
        self._sides = sides
        self._means.count_unknowns(self.inv_diag, self.n, self._partials, self._sums)
        self._count = int(self._sums[1])
        self._several, self._pockets.count = False, 0
        if look_for_pockets and self._count:
            self._pockets.find(self._r)
            singular, self._several = self._pockets.singular, self._pockets.several
        self._singular = singular
        vectors = [self.level.wrap]
        if self.multigrid:
            self.multigrid.set_singular(singular or (self._several and not self._pockets.held))
            vectors += [vector for level in self.multigrid.levels for vector in (level.wrap, level.across)]
        # What was recorded stands as long as it names the same vectors; the lists of several pockets are new each time.
        structure = (self.level.coupling, singular, self._several, *map(id, vectors))
        if self._several or structure != self._structure:
            self._replay.clear()
        self._structure, self._vectors = structure, vectors

    @property
    def pockets(self) -> int:
        """How many separate regions are solved for, as far as anybody looked: without solids there is one."""
        return self._pockets.count if self._pockets.count else int(self._count > 0)

    def _record_correction(self, launch, r, z, partials=None) -> None:
        """``z = M r``; ``partials`` as for ``Multigrid.record``."""
        level = self.level
        if self.multigrid:
            self.multigrid.record(launch, r, z, self._a_d, partials)
        elif self.method == "gauss-seidel":
            sweep = relaxation_kernels(self.grid.loops, level.coupling).first_sweep
            launch(sweep, z, r, level.inv_diag, level.open, self.n, level.wrap)
        else:
            launch(self._kernels.precondition_by_diagonal, r, level.inv_diag, z, self.n)

    @property
    def _kernels(self):
        return solver_kernels(self.grid.loops, self.level.coupling)

    def _record_mean_removal(self, launch, x) -> None:
        # No correction can reduce the mean of the residual, which rounding feeds: left alone it would take over.
        if self._several:
            self._pockets.launch_remove_means(launch, x)
        elif self._singular:
            launch(self._means.remove_mean, x, self.inv_diag, self.n, self._partials, self._sums)

    def _recorded(self, out):
        """The launch graph of one iteration on ``out``; recorded at its first use."""
        if id(out) not in self._replay:
            recorder = GraphRecorder()
            launch, level = recorder.launch, self.level
            summed = self.multigrid is not None and self.multigrid.sums and not self._several
            self._record_correction(launch, self._r, self._z, self._partials if summed else None)
            if self._several:
                self._pockets.launch_remove_means(launch, self._z)
            if self._searches:
                iterate = self._kernels.iterate_summed if summed else self._kernels.iterate
                launch(
                    iterate, out, self._r, self._z, self._d, self._a_d, level.inv_diag, level.open,
                    self.n, level.wrap, self._partials, self._scalars,
                )  # fmt: skip
            else:
                factor = 2 * self.grid.dim / (2 * self.grid.dim + 1) if self.method == "jacobi" else 1.0
                launch(self._kernels.add_correction, out, self._z, self.n, factor)
            self._replay[id(out)] = (recorder.finish(), out)
        return self._replay[id(out)][0]

    def precondition(self, r, out) -> None:
        """``out = M r``: one correction from zero, for tests and for other solvers."""
        self.grid.require(r=r, out=out)
        recorder = GraphRecorder()
        self._record_correction(recorder.launch, r, out)
        recorder.finish()()

    def solve(
        self, rhs, out, *, tolerance: float = 1e-4, max_iterations: int = 500, look_every: int | None = None
    ) -> SolveResult:
        """Solve ``A out = rhs`` from the guess in ``out`` until |residual| <= tolerance · |rhs|, L2.

        The recursion stops at the tolerance; a true residual up to 5 % above it is taken as converged.

        Args:
            rhs: Right-hand side, an array over the grid.
            out: First guess and result; set to 0 where it is not solved for. Its ghosts are 0, or wrapped.
            tolerance: Relative residual to reach; 0 makes exactly ``max_iterations``, unless f32 stalls before.
            max_iterations: Iterations, V-cycles or sweeps after which to give up.
            look_every: Iterations between two looks of the host at the residual; left out, 1 on a CPU and 2 on a GPU,
                where a look waits for the device, and 8 for plain relaxation.

        Raises:
            ValueError: for numbers that are none, and arrays that are not of the grid, or are the same one.
            RuntimeError: if nothing has been set up, or Taichi was re-initialised.
        """
        self._require(rhs, out)
        if not (is_number(tolerance) and 0 <= tolerance <= 1):
            raise ValueError(f"tolerance is {tolerance!r}; it must be a number from 0 to 1")
        max_iterations = whole("max_iterations", max_iterations, 0)
        if look_every is not None:
            look_every = whole("look_every", look_every, 1)
        if self._shares:
            # Where nothing is solved for a correction is 0, and somebody else may have worked there since.
            self.level.set_ghosts(self._z, self.level.wrap)
        solve = self._accelerate if self._accelerated else self._correct
        every = look_every or _LOOK_EVERY.get(self.method, 1 if self.grid.loops.rows else 2)
        return self._within_range(rhs, out, tolerance, lambda rhs: solve(rhs, out, max_iterations, every))

    def sweep(self, rhs, out, sweeps: int) -> SolveResult:
        """Relax exactly ``sweeps`` times from 0: red-black Gauss-Seidel, the cells of even position sum first.

        Whatever the method of this solver is; what is left is measured and reported.

        Args:
            rhs: Right-hand side, an array over the grid.
            out: Result; 0 where it is not solved for.
            sweeps: How often.

        Raises:
            ValueError: for fewer than one sweep, and arrays that are not of the grid.
            RuntimeError: if nothing has been set up.
        """
        self._require(rhs, out)
        sweeps = whole("sweeps", sweeps, 1)
        level, relax = self.level, relaxation_kernels(self.grid.loops, self.level.coupling).sweep
        out.fill(0.0)

        def relaxed(rhs) -> SolveResult:
            for _ in range(sweeps):
                relax(out, rhs, level.inv_diag, level.open, self.n, level.wrap)
            seen = self._true_residual(rhs, out)
            if result := self._nothing_to_solve(seen, out):
                return result._replace(iterations=sweeps)
            return SolveResult(sweeps, float(np.sqrt(seen[_RR] / seen[_NORM])), Status.SWEPT, float(seen[_MEAN]))

        return self._within_range(rhs, out, 0.0, relaxed)

    def _require(self, rhs, out) -> None:
        """Raise if these cannot be solved for."""
        self.grid.require(rhs=rhs, out=out)
        if self._sides is None:
            raise RuntimeError("setup() comes before solve(): the solver does not know its unknowns yet")
        if rhs is out:
            raise ValueError("rhs and out are the same array")

    def _within_range(self, rhs, out, tolerance: float, solve: Callable[[Any], SolveResult]) -> SolveResult:
        """Measure the right-hand side, then solve for it; where its squares leave the range of f32, for a multiple of it.

        That is a power of two times it, by which nothing is rounded.

        Args:
            rhs: Right-hand side.
            out: First guess and result.
            tolerance: Relative residual to reach.
            solve: Solves for the right-hand side that it is given, measured and balanced.
        """
        balanced, mean = self._start(rhs, out, tolerance)
        if _TINY <= self._look()[_NORM] <= _HUGE:
            return self._solved(solve, balanced, mean)
        size = self._largest(rhs)
        if not 0 < size < math.inf:
            return self._solved(solve, balanced, mean)
        power = min(max(-math.frexp(size)[1], -_POWERS), _POWERS)
        factor = 2.0**power
        if self._multiple is None:
            self._multiple = self.grid.array()
        self._multiple.copy_from(rhs)
        self._kernels.scale(self._multiple, self.n, factor)
        if self._largest(out) * factor > _FAR_GUESS:
            out.fill(0.0)
        self._kernels.scale(out, self.n, factor)
        result = self._solved(solve, *self._start(self._multiple, out, tolerance))
        self._kernels.scale(out, self.n, 1.0 / factor)
        if factor < 1 and not math.isfinite(self._largest(out)):
            result = result._replace(status=Status.NOT_FINITE, relative_residual=math.nan)
        return result._replace(removed_mean=result.removed_mean / factor)

    def _start(self, rhs, out, tolerance: float):
        """Take out of a right-hand side what cannot be balanced, and measure the rest.

        Returns:
            The right-hand side to solve for, and the mean that was taken out of it where there are several pockets.
        """
        removed, mean = 0.0, 0.0
        if self._several:
            rhs, removed, mean = self._balance(rhs)
        inv_count = 1.0 / self._count if self._singular and self._count else 0.0
        self._kernels.start(
            out, rhs, self.inv_diag, self.n, self._partials, self._scalars, inv_count, removed, tolerance
        )
        return rhs, mean

    def _solved(self, solve: Callable[[Any], SolveResult], rhs, mean: float) -> SolveResult:
        result = solve(rhs)
        return result._replace(removed_mean=mean) if self._several else result

    def _largest(self, x) -> float:
        """Largest |value| of what is solved for."""
        self._means.find_largest(x, self.inv_diag, self.n, self._partials, self._sums)
        return self._sums[0]

    def _balance(self, rhs):
        """The right-hand side without the mean of each pocket; the square of what was taken out, and the largest mean."""
        if self._balanced is None:
            self._balanced = self.grid.array()
        self._balanced.copy_from(rhs)
        mean = self._pockets.remove_means(self._balanced)
        return self._balanced, mean * mean * self._count, mean

    def _enqueue_residual(self, rhs, out) -> None:
        level, shift = self.level, self._sides.shift if self._sides else 0.0
        self._kernels.true_residual(
            out, rhs, level.inv_diag, level.open, self._r, self.n, level.wrap, self._partials, self._scalars, shift
        )

    def _true_residual(self, rhs, out) -> np.ndarray:
        self._enqueue_residual(rhs, out)
        return self._look()

    def _nothing_to_solve(self, seen: np.ndarray, out) -> SolveResult | None:
        """The result where no iteration is needed or any use."""
        if not np.isfinite(seen[[_RR, _NORM]]).all():
            return SolveResult(0, float("nan"), Status.NOT_FINITE, float(seen[_MEAN]))
        if seen[_NORM] == 0 or self._count == 0:
            out.fill(0.0)
            return SolveResult(0, 0.0, Status.CONVERGED, float(seen[_MEAN]))
        return None

    def _accelerate(self, rhs, out, max_iterations: int, look_every: int) -> SolveResult:
        """Cycles of conjugate gradients, each begun from a true residual."""
        status, best, cycles, kept = None, np.inf, 0, False
        while status is None:
            seen = self._true_residual(rhs, out)
            if result := self._nothing_to_solve(seen, out):
                return result._replace(iterations=int(seen[_ITERATIONS]))
            if seen[_RR] <= 1.1 * seen[_TARGET]:
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
                    self._record_mean_removal(_call, self._r)
                best, cycles = seen[_RR], cycles + 1
                self._run_cycle(out, seen, max_iterations, look_every)
        if kept and seen[_RR] > best:
            out.copy_from(self._kept)
            seen[_RR] = best
        if kept or status is not Status.CONVERGED:
            # At the floor of f32 corrections are mostly rounding, and nothing holds their mean.
            self._record_mean_removal(_call, out)
            if self.level.coupling.wraps:
                self.level.set_ghosts(out, self.level.wrap)
        relative = float(np.sqrt(seen[_RR] / seen[_NORM]))
        return SolveResult(int(seen[_ITERATIONS]), relative, status, float(seen[_MEAN]))

    def _correct(self, rhs, out, max_iterations: int, look_every: int) -> SolveResult:
        """Correct again and again, from a true residual each time."""
        replay, iterations, best, looks, status = self._recorded(out), 0, np.inf, 0, None
        while status is None:
            seen = self._true_residual(rhs, out)
            if result := self._nothing_to_solve(seen, out):
                return result._replace(iterations=iterations)
            if seen[_RR] <= 1.1 * seen[_TARGET]:
                status = Status.CONVERGED
            elif iterations >= max_iterations:
                status = Status.MAX_ITERATIONS
            elif seen[_RR] >= best * (1 - 1e-6) and looks >= _PATIENCE and seen[_RR] < _NEAR_FLOOR * seen[_NORM]:
                status = Status.STALLED
            else:
                looks = 0 if seen[_RR] < best * (1 - 1e-6) else looks + 1
                best = min(best, seen[_RR])
                count = min(look_every, max_iterations - iterations)
                for sweep in range(count):
                    if sweep:
                        self._enqueue_residual(rhs, out)
                    self._record_mean_removal(_call, self._r)
                    replay()
                iterations += count
        relative = float(np.sqrt(seen[_RR] / seen[_NORM]))
        return SolveResult(iterations, relative, status, float(seen[_MEAN]))

    def _keep(self, out) -> None:
        """Remember a solution that the next cycle, begun close to the floor of f32, may spoil."""
        if self._kept is None:
            self._kept = self.grid.array()
        self._kept.copy_from(out)

    def _run_cycle(self, out, seen: np.ndarray, max_iterations: int, look_every: int) -> None:
        """Iterate until the recursive residual meets its limit, nothing moves any more, or the iterations run out."""
        replay, iterations, made = self._recorded(out), -1.0, 0
        while seen[_RR] > seen[_LIMIT] and iterations < seen[_ITERATIONS] < max_iterations:
            iterations = seen[_ITERATIONS]
            for _ in range(min(look_every, max_iterations - int(iterations))):
                if made and made % _BALANCE_EVERY == 0:
                    self._record_mean_removal(_call, self._r)
                replay()
                made += 1
            seen = self._look()

    def _look(self) -> np.ndarray:
        values = self._scalars.to_numpy() if self._seen is None else self._seen
        return values.astype(np.float64)


def _call(kernel, *args) -> None:
    kernel(*args)
