"""Implicit diffusion, stable for any step: (1 - dt nu ∇²) a_new = a.

What is solved for is the change, (1 - dt nu ∇²) change = dt nu ∇² a, so that a constant stays the same constant bit
for bit, and the tolerance is relative to what diffusion does in the step.
"""

from ._ti import ti
from .boundary import SCALAR, Walls
from .grid import Grid
from .kernels import Array, kernel_family
from .pressure.krylov import ConjugateGradient, SolveResult


@ti.func
def laplacian_at(a: ti.template(), c, s):
    """dx² ∇²a at ``c``, by differences to the 2·dim neighbours.

    Rises and falls are summed apart: a compiler that is allowed to reorder would else subtract 2·dim times the middle
    from the sum of the neighbours, which for a constant is not 0 but rounding.
    """
    here = a[c]
    zero = ti.f32(0.0)
    rises, falls = zero, zero
    for axis in ti.static(range(s.n)):
        for side in ti.static((-1, 1)):
            change = a[c + side * s[axis]] - here
            rises += ti.max(change, zero)
            falls += ti.min(change, zero)
    return rises + falls


@ti.func
def _write_laplacian(c, I, s, a: ti.template(), offset, inv_diag: ti.template(), out: ti.template()):
    value = ti.f32(0.0)
    if inv_diag[c] > 0:
        value = laplacian_at(a, offset + c, s)
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
    """

    def __init__(self, grid: Grid, walls: Walls, tolerance: float = 1e-5):
        self.grid, self.walls, self.tolerance = grid, walls, tolerance
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
        result = self._solver.solve(self._rhs, self._change, tolerance=self.tolerance)
        self._kernels.add_change(self._change, a, self.grid.n, offset)
        self.walls.fill(a, component, offset)
        return result

    def diffuse_velocity(self, velocity, viscosity: float, dt: float) -> None:
        """Diffuse every component of a staggered velocity in place; ``viscosity`` is kinematic, in m²/s."""
        for axis in range(self.grid.dim):
            self.diffuse(velocity, viscosity, dt, component=axis, offset=axis * self.grid.cells)
