"""Implicit diffusion, stable for any step: (1 - dt nu ∇²) a_new = a.

What is solved for is the change, (1 - dt nu ∇²) change = dt nu ∇² a, so that a constant stays the same constant bit
for bit, and the tolerance is relative to what diffusion does in the step.
"""

from ._ti import ti
from .boundary import SCALAR, Walls
from .grid import Grid
from .kernels import Array, float_vector, int_vector, kernel_family
from .operators.differences import difference_sum
from .pressure.solver import EllipticSolver, SolveResult
from .solids import Solids


@ti.func
def _write_laplacian(c, I, s, a: ti.template(), offset, inv_diag: ti.template(), out: ti.template()):
    value = ti.f32(0.0)
    if inv_diag[c] > 0:
        value = difference_sum(a, offset + c, s)
    out[c] = value


@ti.func
def _write_laplacian_beside_solids(
    c, I, s, a: ti.template(), offset, inv_diag: ti.template(), unknown: ti.template(), out: ti.template(), n, first,
    inside,
):  # fmt: skip
    """The same where a neighbour inside the box that is not solved for counts ``inside`` along each axis."""
    value = ti.f32(0.0)
    if inv_diag[c] > 0:
        for axis in ti.static(range(s.n)):
            for side in ti.static((-1, 1)):
                neighbour = c + side * s[axis]
                weight = ti.f32(1.0)
                beyond = I[axis] == (n[axis] if ti.static(side == 1) else first[axis])
                if unknown[neighbour] == 0 and not beyond:
                    weight = inside[axis]
                value += weight * (a[offset + neighbour] - a[offset + c])
    out[c] = value


@ti.func
def _add_change(c, I, s, change: ti.template(), a: ti.template(), offset):
    a[offset + c] = a[offset + c] + change[c]


@kernel_family
def diffusion_kernels(loops):
    IntVector, FloatVector, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell

    @ti.kernel
    def compute_laplacian_beside_solids(
        a: Array, inv_diag: Array, unknown: Array, out: Array, n: IntVector, offset: ti.i32, first: IntVector,
        inside: FloatVector,
    ):  # fmt: skip
        each_cell(n, _write_laplacian_beside_solids, (a, offset, inv_diag, unknown, out, n, first, inside))

    @ti.kernel
    def compute_laplacian(a: Array, inv_diag: Array, out: Array, n: IntVector, offset: ti.i32):
        each_cell(n, _write_laplacian, (a, offset, inv_diag, out))

    @ti.kernel
    def add_change(change: Array, a: Array, n: IntVector, offset: ti.i32):
        each_cell(n, _add_change, (change, a, offset))

    return {
        "compute_laplacian": compute_laplacian,
        "compute_laplacian_beside_solids": compute_laplacian_beside_solids,
        "add_change": add_change,
    }


MULTIGRID_BELOW = 1.0
"""Below this dx² / (diffusivity · dt) multigrid pays; above it, the diagonal alone needs a handful of iterations."""


class Diffusion:
    """Diffuses quantities of one grid through the solvers that also serve the pressure.

    Args:
        grid: The grid.
        walls: Its sides; scalars have no flux through walls, velocity components feel their slip.
        tolerance: Relative residual of the change.
        max_iterations: Give up after these.
        solids: No scalar flows into them; they hold the velocity beside them, or let it slip.
    """

    def __init__(
        self, grid: Grid, walls: Walls, tolerance: float = 1e-5, max_iterations: int = 500,
        solids: Solids | None = None,
    ):  # fmt: skip
        self.grid, self.walls, self.solids = grid, walls, solids
        self.tolerance, self.max_iterations = tolerance, max_iterations
        self._solvers = {}
        self._rhs, self._change = grid.array(), grid.array()
        self._kernels = diffusion_kernels(grid.loops)

    def _solver(self, shift: float) -> EllipticSolver:
        method = "multigrid-cg" if shift < MULTIGRID_BELOW else "cg"
        if method not in self._solvers:
            self._solvers[method] = EllipticSolver(self.grid, method)
        return self._solvers[method]

    def diffuse(
        self, a, diffusivity: float, dt: float, component: int = SCALAR, offset: int = 0, name: str | None = None
    ) -> SolveResult | None:
        """Diffuse ``a[offset:…]`` in place; ghosts must be filled before and are filled after.

        Args:
            a: A scalar, or a velocity of which ``component`` stands at ``offset``.
            diffusivity: In m²/s; 0 does nothing and returns None.
            dt: Seconds.
            component: Velocity component, or ``SCALAR``.
            offset: Where it begins in ``a``.
            name: Of a scalar, by which the sides know what enters; see ``Walls.fill``.
        """
        if diffusivity * dt == 0:
            return None
        grid, shift = self.grid, self.grid.dx**2 / (diffusivity * dt)
        solver, first = self._solver(shift), self.walls.first_unknown(component)
        slips = self.solids is not None and self.solids.slips
        sides = self.walls.diffusion_sides(component, shift, name is not None, 0.0 if slips else 1.0)
        if self.solids is None:
            solver.setup(first, sides)
            self._kernels.compute_laplacian(a, solver.inv_diag, self._rhs, grid.n, offset)
        else:
            mask = self.solids.fluid if component == SCALAR else self.solids.open
            solver.setup(first, sides, mask, 0 if component == SCALAR else component * grid.cells)
            self._kernels.compute_laplacian_beside_solids(
                a, solver.inv_diag, solver.level.unknown, self._rhs, grid.n, offset, int_vector(grid.dim)(*first),
                float_vector(grid.dim)(*sides.inside),
            )  # fmt: skip
        self._change.fill(0.0)
        result = solver.solve(self._rhs, self._change, tolerance=self.tolerance, max_iterations=self.max_iterations)
        self._kernels.add_change(self._change, a, grid.n, offset)
        self.walls.fill(a, component, offset, name)
        return result

    def diffuse_velocity(self, velocity, viscosity: float, dt: float) -> list[SolveResult]:
        """Diffuse every component of a staggered velocity in place; ``viscosity`` is kinematic, in m²/s."""
        axes = range(self.grid.dim) if viscosity * dt else ()
        results = (self.diffuse(velocity, viscosity, dt, axis, axis * self.grid.cells) for axis in axes)
        return [result for result in results if result is not None]
