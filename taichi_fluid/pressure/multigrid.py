"""Geometric multigrid: a V-cycle, which solves by itself and serves as a symmetric preconditioner.

Cells are coarsened by two per axis at every level, an odd axis rounding to the nearer extent, so any size works.
Prolongation is (tri)linear between cell centres, with weights that leave out cells that are not solved for and those
behind a closed face; restriction is its transpose. The smoother is Gauss-Seidel by colours, black, red, black on the
way down and on the way up: the same backwards, so that with the transposed transfers the cycle is a symmetric operator,
which conjugate gradients needs. The first of the three costs little, from 0 on the way down.

What ends with black leaves every black residual 0, so only red residuals are gathered. And the way up begins with
black, which overwrites whatever prolongation put there, so only red cells are prolonged to. (McAdams, Sifakis, Teran
2010; Trottenberg, *Multigrid*, ch. 2.) On a CPU what stands between two transfers is one traverse of the grid, in which
each pass follows the one before it by a plane (``wavefront``), unless an axis is periodic.

Beside solids the coarse operator is made of coarse faces that are open as far as their parts are on the mean. Transfers
reach across the seam of a periodic axis where it has an even number of cells; an odd one does not line up there, and
only its operator is periodic.
"""

from dataclasses import replace

from ..boundaries.coefficients import BoundaryCoefficients
from ..grid import Grid
from ..kernels import room_for_partials
from .coarsening import coarsen, set_shifted_diagonal
from .null_space import Constant
from .preconditioners import Preconditioner
from .relaxation import COARSEST_SWEEPS, relaxation_kernels
from .system import LinearSystem, renewed
from .transfers import cycle_kernels, transfer_kernels


def _halved(n: int, extent: float) -> int:
    """Half of ``n`` cells, an odd number rounded so that the coarse box stays nearest to its true extent in cells."""
    lower = n // 2
    return max(lower if abs(lower - extent) <= abs(n - lower - extent) else n - lower, 1)


class Level(LinearSystem):
    """One grid of the hierarchy: its system, the smoother, and the transfer to the next coarser one.

    Its steps are launched by ``launch(kernel, *args)``, a graph recorder's or one that runs the kernel. The ``finest``
    is given its right-hand side and solution, and needs none of its own.

    Attributes:
        sweeps: Gauss-Seidel sweeps, red and black, before and after a transfer, beside black alone.
        rhs: Right-hand side, from the next finer level.
        solution: The correction that it finds.
        visible: 1 where nothing is hidden from a cell in the finer grid; only made where anything may be.
        across: Per axis, 1 if the transfer to the next coarser level reaches across its seam.
        balances: Whether the null space is taken out of what comes to this level, and of what leaves it.
    """

    def __init__(self, grid: Grid, sweeps: int, partials, finest: bool, residual=None):
        super().__init__(grid)
        self.sweeps, self.balances = sweeps, False
        self.rhs, self.solution = (None, None) if finest else (grid.array(), grid.array())
        self._residual = grid.array() if residual is None else residual
        self._weight, self.visible = grid.array(), self._nothing
        self.across = self.wrap
        self.null_space = Constant(self, partials)

    def _transfers(self, family):
        """The kernels of a family that reaches across faces."""
        return family(self.grid.loops, self.coupling, self.hides)

    def set_transfer(self, coarse: "Level") -> None:
        """Compute the weights of the transfer to ``coarse``."""
        sizes = zip(self.wrap, self.grid.shape, coarse.grid.shape, strict=True)
        self.across = renewed(self.across, [int(wrap and n % 2 == 0 and m > 1) for wrap, n, m in sizes])
        coarse.set_ghosts(coarse.unknown, self.across)
        if self.hides and coarse.visible is coarse._nothing:
            coarse.visible = coarse.grid.array()
        reach = (self._weight, coarse.visible, self.n, coarse.n, self.across)
        self._transfers(transfer_kernels).compute_weight(self.unknown, self.open, coarse.unknown, *reach)

    def clear(self) -> None:
        """Let what it works in be 0: passes leave out rows in which nothing is solved for."""
        for array in (self.solution, self._residual):
            if array is not None:
                array.fill(0.0)

    def balance(self, launch, x) -> None:
        """Take the null space out of ``x`` where this level ``balances``."""
        if self.balances:
            self.null_space.launch_removal(launch, x)

    def smooth_and_restrict(self, launch, rhs, x, coarse: "Level") -> None:
        """Sweeps from x = 0, and the residual that they leave as right-hand side of the coarser level."""
        system = (x, rhs, self.inv_diag, self.open)
        scale = 4.0 / 2 ** sum(n > 1 for n in self.grid.shape)
        if self.sweeps == 1 and not self.coupling.wraps:
            reach = (self._weight, self._residual, coarse.visible, coarse.rhs, self.n, coarse.n)
            launch(self._transfers(cycle_kernels).smooth_and_restrict, *system, *reach, scale)
            return
        transfer = self._transfers(transfer_kernels)
        launch(self.kernels(relaxation_kernels).start, *system, self.n, self.wrap)
        self._sweep_again(launch, self.sweeps, rhs, x)
        launch(transfer.compute_residual, *system, self._weight, self._residual, self.n, self.across)
        launch(transfer.restrict, self._residual, self.open, coarse.visible, coarse.rhs, coarse.n, self.n, scale)

    def prolong_and_smooth(self, launch, coarse: "Level", rhs, x, partials=None) -> None:
        """Add what the coarser level has found, and sweep back; given ``partials``, rhs · x is left there."""
        reach = (self._weight, self.open, coarse.visible, self.n, coarse.n)
        together = self._transfers(cycle_kernels)
        if self.coupling.wraps:
            launch(self._transfers(transfer_kernels).prolong, coarse.solution, x, *reach, self.across, self.wrap)
            launch(self.kernels(relaxation_kernels).smooth, x, rhs, self.inv_diag, self.open, self.n, self.wrap)
        elif partials is not None:
            launch(together.prolong_smooth_and_sum, coarse.solution, x, rhs, self.inv_diag, *reach, partials)
        else:
            launch(together.prolong_and_smooth, coarse.solution, x, rhs, self.inv_diag, *reach)
        self._sweep_again(launch, self.sweeps, rhs, x)

    def solve(self, launch, rhs, x) -> None:
        """Sweeps enough for a grid of one or two cells along every axis."""
        system, smoother = (x, rhs, self.inv_diag, self.open, self.n), self.kernels(relaxation_kernels)
        if not self.coupling.wraps:
            launch(smoother.solve_coarsest, *system, int(self.balances))
            return
        self.balance(launch, rhs)
        launch(smoother.start, *system, self.wrap)
        self._sweep_again(launch, COARSEST_SWEEPS, rhs, x)
        self.balance(launch, x)

    def _sweep_again(self, launch, sweeps: int, rhs, x) -> None:
        """All sweeps but the first."""
        for _ in range(sweeps - 1):
            launch(self.kernels(relaxation_kernels).sweep, x, rhs, self.inv_diag, self.open, self.n, self.wrap)


class Multigrid(Preconditioner):
    """A V-cycle for one grid, over ``levels`` from the finest to one of at most two cells along every axis.

    ``update`` makes them from the finest; ``record`` launches one cycle.
    """

    def __init__(self, grid: Grid, sweeps: int = 1, residual=None):
        partials = room_for_partials()
        self.levels = [Level(grid, sweeps, partials, finest=True, residual=residual)]
        extent = [float(n) for n in grid.shape]
        while max(self.levels[-1].grid.shape) > 2:
            fine = self.levels[-1].grid
            extent = [0.5 * e for e in extent]
            shape = tuple(_halved(n, e) for n, e in zip(fine.shape, extent, strict=True))
            coarse = replace(fine, shape=shape, dx=2 * fine.dx)
            self.levels.append(Level(coarse, sweeps, partials, finest=False))
        self.system = self.levels[0]

    def update(self, sides: BoundaryCoefficients) -> None:
        """Make the coarser levels, once the finest knows what it solves for."""
        cut, shift, box, ratio = self.levels[0].coupling.cut, sides.shift, list(sides.box), 1.0
        # With a shift what sides hold is in the diagonal, as it is where no face is open in part.
        closed = replace(sides, box=(0.0,) * len(box)) if cut and shift else sides
        for fine, coarse in zip(self.levels[:-1], self.levels[1:], strict=True):
            shift, ratio = 4.0 * shift, 2.0 * ratio
            factors = []
            for axis, n in enumerate(fine.grid.shape):
                for end in range(2):
                    # What is held one fine cell beyond the first centre is nearer to a coarse one, in its own cells.
                    # The cells of an axis that is not halved stay as wide as they were, while the others grow.
                    nearer = (ratio + 2.0) / (ratio + 1.0) if sides.box[2 * axis + end] == 1 else 1.0
                    factors.append(nearer if n > 1 else 4.0)
            box = [value * factor for value, factor in zip(box, factors, strict=True)]
            coarse.set_sides(closed, cut)
            coarsen(fine, coarse, tuple(factors))
            if coarse.leaves_out:
                coarse.clear()
            if cut and shift:
                set_shifted_diagonal(coarse, box, shift)
            else:
                coarse.set_diagonal(replace(sides, box=tuple(box)), (1,) * coarse.grid.dim, shift)
            fine.set_transfer(coarse)

    def set_singular(self, singular: bool) -> None:
        """Say whether the solution is determined up to a constant only.

        The constant, which no equation holds, grows by the square of the coarsening: it is taken out where that is
        cheap, and where the coarsest problem would divide by nothing.
        """
        for depth, level in enumerate(self.levels):
            level.balances = singular and depth in (2, len(self.levels) - 1)
            if level.balances:
                level.null_space.update()

    @property
    def sums(self) -> bool:
        """Whether a cycle ends with a pass that can sum."""
        finest = self.levels[0]
        return finest.sweeps == 1 and len(self.levels) > 1 and not finest.coupling.wraps and not finest.balances

    @property
    def vectors(self) -> list:
        """Of all levels."""
        return [vector for level in self.levels for vector in (level.wrap, level.across)]

    def record(self, launch, rhs, solution, partials=None) -> None:
        """Launch one V-cycle from zero."""

        def v_cycle(depth: int, rhs, x, partials=None) -> None:
            level = self.levels[depth]
            if level is self.levels[-1]:
                level.solve(launch, rhs, x)
                return
            coarse = self.levels[depth + 1]
            level.balance(launch, rhs)
            level.smooth_and_restrict(launch, rhs, x, coarse)
            v_cycle(depth + 1, coarse.rhs, coarse.solution)
            level.prolong_and_smooth(launch, coarse, rhs, x, partials)
            level.balance(launch, x)

        v_cycle(0, rhs, solution, partials)
