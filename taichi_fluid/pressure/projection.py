"""Projection: the pressure that makes a staggered velocity free of divergence, and its gradient taken off."""

from .._ti import ti
from ..boundary import SCALAR, Walls
from ..grid import Grid
from ..kernels import Array, kernel_family
from ..operators.differences import outflow_at
from .krylov import ConjugateGradient, SolveResult


@ti.func
def _write_rhs_at(c, I, s, u: ti.template(), rhs: ti.template(), n, scale):
    rhs[c] = -scale * outflow_at(u, c, s, n)


@ti.func
def _subtract_gradient_at(c, I, s, u: ti.template(), p: ti.template(), inv_diag: ti.template(), n, scale):
    cells = s[0] * (n[0] + 2)
    if inv_diag[c] > 0:
        for axis in ti.static(range(n.n)):
            if inv_diag[c - s[axis]] > 0:
                face = c + axis * cells
                u[face] = u[face] - scale * (p[c] - p[c - s[axis]])


@kernel_family
def projection_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def compute_rhs(velocity: Array, rhs: Array, n: IntVector, scale: ti.f32):
        each_cell(n, _write_rhs_at, (velocity, rhs, n, scale))

    @ti.kernel
    def subtract_gradient(velocity: Array, pressure: Array, inv_diag: Array, n: IntVector, scale: ti.f32):
        each_cell(n, _subtract_gradient_at, (velocity, pressure, inv_diag, n, scale))

    return {"compute_rhs": compute_rhs, "subtract_gradient": subtract_gradient}


class Projection:
    """Projects staggered velocities of one grid.

    Solves  sum over neighbours (p - p_neighbour) = -(rho dx² / dt) div u, then u -= dt/rho grad p, with the gradient
    and the divergence that the operator is made of. (Bridson, ch. 5.)

    Args:
        grid: The grid.
        walls: Its sides.
        rhs: An array to work in.
        preconditioner: ``"multigrid"`` or ``"diagonal"``.
    """

    def __init__(self, grid: Grid, walls: Walls, rhs, preconditioner: str = "multigrid"):
        self.grid, self.walls = grid, walls
        self.solver = ConjugateGradient(grid, preconditioner)
        self.preconditioner = preconditioner
        self.solver.setup(walls.first_unknown(SCALAR), walls.pressure_sides())
        self._rhs = rhs
        self._kernels = projection_kernels(grid.loops)

    def compute_rhs(self, velocity, rhs, dt: float, rho: float) -> None:
        """``rhs`` = -(rho dx² / dt) div u, in Pa."""
        self.grid.require_runtime()
        self._kernels.compute_rhs(velocity, rhs, self.grid.n, rho * self.grid.dx / dt)

    def project(
        self, velocity, pressure, *, dt: float, rho: float, tolerance: float, max_iterations: int = 500
    ) -> SolveResult:
        """Make ``velocity`` free of divergence in place, its walls filled before and after.

        Args:
            velocity: Staggered velocity, m/s.
            pressure: First guess and result, Pa.
            dt: Seconds.
            rho: Density of the fluid, kg/m³ (in 2D kg/m²).
            tolerance: Relative residual of the pressure equation, L2.
            max_iterations: Give up after these.
        """
        self.compute_rhs(velocity, self._rhs, dt, rho)
        result = self.solver.solve(self._rhs, pressure, tolerance=tolerance, max_iterations=max_iterations)
        scale = dt / (rho * self.grid.dx)
        self._kernels.subtract_gradient(velocity, pressure, self.solver.inv_diag, self.grid.n, scale)
        self.walls.fill_velocity(velocity)
        return result
