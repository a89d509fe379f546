"""How corrections z = M r make a solution: by conjugate gradients, or as an iteration.

    x ← x + M (b - A x)

is the multigrid cycle, red-black Gauss-Seidel or damped Jacobi, as M is one V-cycle, one sweep or the diagonal; with an
exact inverse it is a direct solve. Conjugate gradients take the same M, where it is symmetric, as preconditioner.
V-cycles alone take the best step along each correction, which is the first step of conjugate gradients: beside solids a
whole one may be too long. (Hestenes, Stiefel 1952; Bridson, *Fluid Simulation*, ch. 5.)
"""

import math
from typing import NamedTuple

from .._ti import argument, loaded, ti
from ..kernels import EVERY, LONG_STRIPS, Array, GraphRecorder, add, kernel_family
from ..operators.ghosts import wrap_if_periodic
from .null_space import NullSpace, call
from .preconditioners import Preconditioner
from .residual import ALPHA, BETA, ITERATIONS, LIMIT, RR, RZ, Residual, Seen, SolveResult, Status
from .system import System, neighbour_sum, product_at, rows_of, where_solved, write_strip_of_system

_BALANCE_EVERY = 4
"""Iterations after which the mean, which rounding feeds, is taken out of the residual again."""

_PATIENCE = 4
"""Looks without a better residual after which corrections have met the floor of f32; a single one may be worse."""

NEAR_FLOOR = 1e-8
"""|residual|² over |right-hand side|² from which a first guess is so good that iterating may spoil it."""


@argument
class _Search:
    """The arrays of conjugate gradients: solution, residual, correction, direction, A direction; sums and numbers."""

    x: object
    r: object
    z: object
    d: object
    a_d: object
    partials: object
    scalars: object


@ti.func
def _direction_at(c, I, s, search):
    search.d[c] = search.z[c] + search.scalars[BETA] * search.d[c]


@ti.func
def _product_with_operator_at(c, I, s, system):
    """A d. Rounding here is that of a correction; the true residual sees what it does."""
    inv = system.inv_diag[c]
    return where_solved(system.x[c] / inv - neighbour_sum(c, s, system), inv)


@ti.func
def _advance_at(c, I, s, search):
    alpha = search.scalars[ALPHA]
    search.x[c] = search.x[c] + alpha * search.d[c]
    search.r[c] = search.r[c] - alpha * search.a_d[c]


@ti.func
def _add_at(c, I, s, x: Array, z: Array, factor):
    x[c] = x[c] + factor * z[c]


@kernel_family
def addition_kernels(loops):
    @ti.kernel
    def add_correction(x: Array, z: Array, n: loops.IntVector, factor: ti.f32):
        loops.each_cell(n, _add_at, (x, z, factor))

    return (add_correction,)


@kernel_family
def search_kernels(loops, coupling):
    IntVector, each_cell, each_side, width = loops.IntVector, loops.each_cell, loops.each_side, loops.long
    reduce_cells, reduced, wavefront, total_of = loops.reduce_cells, loops.reduced, loops.wavefront, loops.total_of
    cut, wraps = coupling

    @ti.func
    def follow(search, operator, wrap, summed: ti.template()):
        """A new direction, and the best step along it."""
        system = loaded(operator)
        scalars, partials = ti.static(search.scalars, search.partials)
        ti.loop_config(serialize=True)
        for _ in range(1):
            rz = total_of(system.n, partials) if ti.static(summed) else reduced(partials, ti.f32(0.0), add)
            before, beta = scalars[RZ], ti.f32(0.0)
            if before > 0:
                beta = rz / before
            scalars[BETA] = beta
            scalars[RZ] = rz
        written = ti.static((system, search.a_d, width, _product_with_operator_at, ()))
        operate = ti.static((LONG_STRIPS, write_strip_of_system, written, rows_of(system)))
        curving = ti.static((partials, product_at, (search.d, search.a_d)))
        if ti.static(wraps):
            each_cell(system.n, _direction_at, (search,))
            each_side(system.n, wrap_if_periodic, (search.d, 0, system.n, wrap))
            wavefront(system.n, (operate,), curving)
        else:
            wavefront(system.n, ((EVERY, _direction_at, (search,), rows_of(system)), operate), curving)
        ti.loop_config(serialize=True)
        for _ in range(1):
            curvature = total_of(system.n, partials)
            alpha = ti.f32(0.0)
            if scalars[RR] > scalars[LIMIT] and curvature > 0:
                alpha = scalars[RZ] / curvature
                scalars[ITERATIONS] = scalars[ITERATIONS] + ti.f32(1.0)
            scalars[ALPHA] = alpha
        advance = ti.static((EVERY, _advance_at, (search,), rows_of(system)))
        wavefront(system.n, (advance,), (partials, product_at, (search.r, search.r)))
        ti.loop_config(serialize=True)
        for _ in range(1):
            scalars[RR] = total_of(system.n, partials)

    @ti.kernel
    def iterate(
        x: Array, r: Array, z: Array, d: Array, a_d: Array, inv_diag: Array, open: Array, n: IntVector,
        wrap: IntVector, partials: Array, scalars: Array,
    ):  # fmt: skip
        """One iteration, given z = M r."""
        reduce_cells(n, partials, ti.f32(0.0), add, product_at, (r, z))
        follow(_Search(x, r, z, d, a_d, partials, scalars), System(inv_diag, n, open, cut, x=d), wrap, False)

    @ti.kernel
    def iterate_summed(
        x: Array, r: Array, z: Array, d: Array, a_d: Array, inv_diag: Array, open: Array, n: IntVector,
        wrap: IntVector, partials: Array, scalars: Array,
    ):  # fmt: skip
        """One iteration, given z = M r and, in ``partials`` as ``wavefront`` leaves it, r · z."""
        follow(_Search(x, r, z, d, a_d, partials, scalars), System(inv_diag, n, open, cut, x=d), wrap, True)

    return iterate, iterate_summed


class Work(NamedTuple):
    """Arrays that a method works in: the correction, the direction, and A times it; no direction where none is searched."""

    z: object
    d: object
    a_d: object


class _Recorded:
    """Iterations by one preconditioner, each a launch graph that is recorded at its first use."""

    def __init__(self, preconditioner: Preconditioner, residual: Residual, work: Work, factor: float | None = None):
        self.preconditioner, self.residual, self.work, self.factor = preconditioner, residual, work, factor
        self._replays, self._structure, self._vectors = {}, (), []

    def update(self, null_space: NullSpace) -> None:
        """What was recorded stands as long as it names the same vectors; the lists of regions are new each time."""
        vectors, system = self.preconditioner.vectors, self.preconditioner.system
        structure = (system.coupling, system.hides, null_space, *map(id, vectors))
        if null_space.by_region or structure != self._structure:
            self._replays.clear()
        # What is known by its address has to be kept.
        self._structure, self._vectors = structure, vectors

    def _replay_on(self, out, null_space: NullSpace):
        if id(out) not in self._replays:
            recorder = GraphRecorder()
            self._record(recorder.launch, out, null_space)
            self._replays[id(out)] = (recorder.finish(), out)
        return self._replays[id(out)][0]

    def _record(self, launch, out, null_space: NullSpace) -> None:
        residual, (z, d, a_d), preconditioner = self.residual, self.work, self.preconditioner
        system, partials = preconditioner.system, residual.partials
        summed = preconditioner.sums and not null_space.by_region
        preconditioner.record(launch, residual.r, z, partials if summed else None)
        if null_space.by_region:
            null_space.launch_removal(launch, z)
        if self.factor is None:
            kernels = system.kernels(search_kernels)
            iterate = kernels.iterate_summed if summed else kernels.iterate
            operator = (system.inv_diag, system.open, system.n, system.wrap)
            launch(iterate, out, residual.r, z, d, a_d, *operator, partials, residual.scalars)
        else:
            launch(addition_kernels(system.grid.loops).add_correction, out, z, system.n, self.factor)


class ConjugateGradients(_Recorded):
    """Cycles of conjugate gradients, each begun from a true residual."""

    def solve(self, rhs, out, null_space: NullSpace, max_iterations: int, look_every: int) -> SolveResult:
        """Solve for a right-hand side that is measured and balanced."""
        residual, status, best, cycles, kept = self.residual, None, math.inf, 0, False
        while status is None:
            seen = residual.compute(rhs, out)
            if result := residual.nothing_to_solve(seen, out):
                return result._replace(iterations=int(seen.iterations))
            if seen.met:
                status = Status.CONVERGED
            elif seen.iterations >= max_iterations:
                status = Status.MAX_ITERATIONS
            elif seen.square > 0.25 * best:
                # A cycle that gains less than half has met the floor of f32.
                status = Status.STALLED
            else:
                if cycles or seen.square < NEAR_FLOOR * seen.norm:
                    residual.keep(out)
                    kept = True
                    null_space.launch_removal(call, residual.r)
                best, cycles = seen.square, cycles + 1
                self._run_cycle(out, null_space, seen, max_iterations, look_every)
        if kept and seen.square > best:
            residual.restore(out)
            seen = seen._replace(square=best)
        if kept or status is not Status.CONVERGED:
            # At the floor of f32 corrections are mostly rounding, and nothing holds their mean.
            null_space.launch_removal(call, out)
            system = self.preconditioner.system
            if system.coupling.wraps:
                system.set_ghosts(out, system.wrap)
        return seen.result(seen.iterations, status)

    def _run_cycle(self, out, null_space: NullSpace, seen: Seen, max_iterations: int, look_every: int) -> None:
        """Iterate until the recursive residual meets its limit, nothing moves any more, or the iterations run out."""
        replay, iterations, made = self._replay_on(out, null_space), -1.0, 0
        while seen.square > seen.limit and iterations < seen.iterations < max_iterations:
            iterations = seen.iterations
            for _ in range(min(look_every, max_iterations - int(iterations))):
                if made and made % _BALANCE_EVERY == 0:
                    null_space.launch_removal(call, self.residual.r)
                replay()
                made += 1
            seen = self.residual.look()


class Iteration(_Recorded):
    """Correct again and again, from a true residual each time.

    ``factor`` is what a correction is multiplied by; None takes the best step along each.
    """

    def solve(self, rhs, out, null_space: NullSpace, max_iterations: int, look_every: int) -> SolveResult:
        """Solve for a right-hand side that is measured and balanced."""
        residual, replay = self.residual, self._replay_on(out, null_space)
        iterations, best, looks, status = 0, math.inf, 0, None
        while status is None:
            seen = residual.compute(rhs, out)
            if result := residual.nothing_to_solve(seen, out):
                return result._replace(iterations=iterations)
            if seen.met:
                status = Status.CONVERGED
            elif iterations >= max_iterations:
                status = Status.MAX_ITERATIONS
            elif seen.square >= best * (1 - 1e-6) and looks >= _PATIENCE and seen.square < NEAR_FLOOR * seen.norm:
                status = Status.STALLED
            else:
                looks = 0 if seen.square < best * (1 - 1e-6) else looks + 1
                best = min(best, seen.square)
                count = min(look_every, max_iterations - iterations)
                for sweep in range(count):
                    if sweep:
                        residual.enqueue(rhs, out)
                    null_space.launch_removal(call, residual.r)
                    replay()
                iterations += count
        return seen.result(iterations, status)
