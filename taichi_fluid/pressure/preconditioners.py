"""What makes a correction of a residual, z = M r: a V-cycle (``multigrid``), a sweep, the diagonal, or transforms.

The last are an exact inverse, and stand in ``spectral``.
"""

from typing import Any, Protocol

from .._ti import ti
from ..boundaries.coefficients import BoundaryCoefficients
from ..grid import Grid
from ..kernels import Array, kernel_family
from .relaxation import relaxation_kernels, scale_at
from .system import LinearSystem, System


class Preconditioner(Protocol):
    """M of one system.

    Attributes:
        system: The system.
    """

    system: LinearSystem

    @property
    def sums(self) -> bool:
        """Whether it can sum r · z on its way."""
        ...

    @property
    def vectors(self) -> list:
        """What a recording of it names that is not the same after every set-up."""
        ...

    def update(self, sides: BoundaryCoefficients) -> None:
        """Follow the system, which has been set up anew."""

    def set_singular(self, singular: bool) -> None:
        """Say whether the solution is determined up to a constant only."""

    def record(self, launch, rhs, solution, partials: Any = None) -> None:
        """``solution = M rhs`` by ``launch(kernel, *args)``; given ``partials``, their product is left there."""


class _OfOneLevel:
    """What needs nothing but the system itself."""

    sums = False

    def __init__(self, grid: Grid):
        self.system = LinearSystem(grid)

    @property
    def vectors(self) -> list:
        return [self.system.wrap]

    def update(self, sides: BoundaryCoefficients) -> None:
        """Nothing to do."""

    def set_singular(self, singular: bool) -> None:
        """The same."""


class Sweep(_OfOneLevel):
    """One sweep of red-black Gauss-Seidel from zero."""

    def record(self, launch, rhs, solution, partials=None) -> None:
        """Launch it."""
        system = self.system
        sweep = relaxation_kernels(system.grid.loops, system.coupling).first_sweep
        launch(sweep, solution, rhs, system.inv_diag, system.open, system.n, system.wrap)


@kernel_family
def diagonal_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def precondition(r: Array, inv_diag: Array, z: Array, n: IntVector):
        each_cell(n, scale_at, (System(inv_diag, n, x=z, rhs=r),))

    return (precondition,)


class Diagonal(_OfOneLevel):
    """Division by the diagonal."""

    def record(self, launch, rhs, solution, partials=None) -> None:
        """Launch it."""
        system = self.system
        launch(diagonal_kernels(system.grid.loops).precondition, rhs, system.inv_diag, solution, system.n)
