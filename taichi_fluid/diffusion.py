"""Implicit diffusion, stable for any step: (1 - dt nu ∇²) a_new = a.

What is solved for is the change, (1 - dt nu ∇²) change = dt nu ∇² a, so that a constant stays the same constant bit
for bit, and the tolerance is relative to what diffusion does in the step.
"""

from ._ti import ti
from .boundary import SCALAR, Walls
from .grid import Grid
from .kernels import Array, kernel_family
from .operators.differences import difference_sum
from .pressure.krylov import ConjugateGradient, SolveResult


@ti.func
def _write_laplacian(c, I, s, a: ti.template(), offset, inv_diag: ti.template(), out: ti.template()):
    value = ti.f32(0.0)
    if inv_diag[c] > 0:
        value = difference_sum(a, offset + c, s)
    out[c] = value


@ti.func
def _add_change(c, I, s, change: ti.template(), a: ti.template(), offset):
    a[offset + c] = a[offset + c] + change[c]


@kernel_family
def diffusion_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def compute_laplacian(a: Array, inv_diag: Array, out: Array, n: IntVector, offset: ti.i32):
        each_cell(n, _write_laplacian, (a, offset, inv_diag, out))

    @ti.kernel
    def add_change(change: Array, a: Array, n: IntVector, offset: ti.i32):
        each_cell(n, _add_change, (change, a, offset))

    return {"compute_laplacian": compute_laplacian, "add_change": add_change}


class Diffusion:
    """Diffuses quantities of one grid through the multigrid solver that also serves the pressure.

    Args:
        grid: The grid.
        walls: Its sides; scalars have no flux through them, velocity components feel their slip.
        tolerance: Relative residual of the change.
        max_iterations: Give up after these.
    """

    def __init__(self, grid: Grid, walls: Walls, tolerance: float = 1e-5, max_iterations: int = 500):
        self.grid, self.walls = grid, walls
        self.tolerance, self.max_iterations = tolerance, max_iterations
        self._solver = ConjugateGradient(grid)
        self._rhs, self._change = grid.array(), grid.array()
        self._kernels = diffusion_kernels(grid.loops)

    def diffuse(self, a, diffusivity: float, dt: float, component: int = SCALAR, offset: int = 0) -> SolveResult | None:
        """Diffuse ``a[offset:…]`` in place; ghosts must be filled before and are filled after.

        Args:
            a: A scalar, or a velocity of which ``component`` stands at ``offset``.
            diffusivity: In m²/s; 0 does nothing and returns None.
            dt: Seconds.
            component: Velocity component, or ``SCALAR``.
            offset: Where it begins in ``a``.
        """
        if diffusivity * dt == 0:
            return None
        shift = self.grid.dx**2 / (diffusivity * dt)
        self._solver.setup(self.walls.first_unknown(component), self.walls.diffusion_sides(component, shift))
        self._kernels.compute_laplacian(a, self._solver.inv_diag, self._rhs, self.grid.n, offset)
        self._change.fill(0.0)
        result = self._solver.solve(
            self._rhs, self._change, tolerance=self.tolerance, max_iterations=self.max_iterations
        )
        self._kernels.add_change(self._change, a, self.grid.n, offset)
        self.walls.fill(a, component, offset)
        return result

    def diffuse_velocity(self, velocity, viscosity: float, dt: float) -> list[SolveResult]:
        """Diffuse every component of a staggered velocity in place; ``viscosity`` is kinematic, in m²/s."""
        axes = range(self.grid.dim) if viscosity * dt else ()
        results = (self.diffuse(velocity, viscosity, dt, axis, axis * self.grid.cells) for axis in axes)
        return [result for result in results if result is not None]
