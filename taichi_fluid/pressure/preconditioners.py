"""What makes a correction of a residual, z = M r: a V-cycle (``multigrid``), a sweep, the diagonal, or transforms.

The last are an exact inverse, and stand in ``spectral``.
"""

from typing import Any

from .._ti import ti
from ..boundaries.coefficients import BoundaryCoefficients
from ..grid import Grid
from ..kernels import Array, kernel_family
from .relaxation import relaxation_kernels, scale_at
from .system import LinearSystem, System


class Preconditioner:
    """M of one system; what needs nothing but the system itself has little to say.

    Args:
        grid: That of the ``system``.
        sweeps: Smoothing sweeps before and after each transfer, where there are any.
        residual: An array over the grid to work in, where one is needed; left out, it has its own.
    """

    def __init__(self, grid: Grid, sweeps: int = 1, residual=None):
        self.system = LinearSystem(grid)

    @property
    def sums(self) -> bool:
        """Whether it can sum r · z on its way."""
        return False

    @property
    def vectors(self) -> list:
        """What a recording of it names that is not the same after every set-up."""
        return [self.system.wrap]

    def update(self, sides: BoundaryCoefficients) -> None:
        """Follow the system, which has been set up anew."""

    def set_singular(self, singular: bool) -> None:
        """Say whether the solution is determined up to a constant only."""

    def record(self, launch, rhs, solution, partials: Any = None) -> None:
        """``solution = M rhs`` by ``launch(kernel, *args)``; given ``partials``, where it ``sums``, rhs · solution there."""
        raise NotImplementedError


class Sweep(Preconditioner):
    """One sweep of red-black Gauss-Seidel from zero."""

    def record(self, launch, rhs, solution, partials=None) -> None:
        """Launch it."""
        system = self.system
        sweep = system.kernels(relaxation_kernels).first_sweep
        launch(sweep, solution, rhs, system.inv_diag, system.open, system.n, system.wrap)


@kernel_family
def diagonal_kernels(loops):
    @ti.kernel
    def precondition(r: Array, inv_diag: Array, z: Array, n: loops.IntVector):
        loops.each_cell(n, scale_at, (System(inv_diag, n, x=z, rhs=r),))

    return (precondition,)


class Diagonal(Preconditioner):
    """Division by the diagonal."""

    def record(self, launch, rhs, solution, partials=None) -> None:
        """Launch it."""
        system = self.system
        launch(diagonal_kernels(system.grid.loops).precondition, rhs, system.inv_diag, solution, system.n)
