"""Projection: the pressure that gives a staggered velocity its divergence, most often 0, and its gradient taken off."""

from .._ti import ti
from ..boundary import SCALAR, Walls
from ..grid import Grid
from ..kernels import Array, int_vector, kernel_family
from ..operators.differences import outflow_at
from ..solids import Solids, cut_outflow_at
from .solver import EllipticSolver, SolveResult


@ti.func
def _missing_outflow(outflow, c, expansion: ti.template(), dx, expands: ti.template()):
    """Dx times the divergence that a cell lacks."""
    missing = -outflow
    if ti.static(expands):
        missing += dx * expansion[c]
    return missing


@ti.func
def _write_rhs_at(
    c, I, s, u: ti.template(), rhs: ti.template(), expansion: ti.template(), n, dx, scale, expands: ti.template()
):
    rhs[c] = scale * _missing_outflow(outflow_at(u, c, s, n), c, expansion, dx, expands)


@ti.func
def _write_cut_rhs_at(
    c, I, s, u: ti.template(), rhs: ti.template(), expansion: ti.template(), open: ti.template(),
    distance: ti.template(), owner: ti.template(), motions: ti.template(), n, origin, dx, scale, expands: ti.template(),
):  # fmt: skip
    outflow = cut_outflow_at(u, open, distance, owner, motions, c, I, s, n, origin, dx)
    rhs[c] = scale * _missing_outflow(outflow, c, expansion, dx, expands)


@ti.func
def _subtract_gradient_at(
    c, I, s, u: ti.template(), p: ti.template(), inv_diag: ti.template(), open: ti.template(), n, held, scale,
    cut: ti.template(),
):  # fmt: skip
    """At each face between two cells that are solved for, or one and an open side, where the pressure is 0."""
    cells = s[0] * (n[0] + 2)
    for axis in ti.static(range(n.n)):
        face = c + axis * cells
        above = inv_diag[c] > 0 or (I[axis] == n[axis] + 1 and held[2 * axis + 1] == 1)
        below = inv_diag[c - s[axis]] > 0 or (I[axis] == 1 and held[2 * axis] == 1)
        inside = inv_diag[c] > 0 or inv_diag[c - s[axis]] > 0
        if above and below and inside:
            apart = ti.f32(1.0)
            if ti.static(cut):
                if open[face] == 0:
                    apart = ti.f32(0.0)
            u[face] = u[face] - apart * scale * (p[c] - p[c - s[axis]])


@kernel_family
def projection_kernels(loops, expands):
    IntVector, FloatVector, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell

    @ti.kernel
    def compute_rhs(velocity: Array, rhs: Array, expansion: Array, n: IntVector, dx: ti.f32, scale: ti.f32):
        each_cell(n, _write_rhs_at, (velocity, rhs, expansion, n, dx, scale, expands))

    @ti.kernel
    def compute_cut_rhs(
        velocity: Array, rhs: Array, expansion: Array, open: Array, distance: Array, owner: Array, motions: Array,
        n: IntVector, origin: FloatVector, dx: ti.f32, scale: ti.f32,
    ):  # fmt: skip
        each_cell(
            n, _write_cut_rhs_at,
            (velocity, rhs, expansion, open, distance, owner, motions, n, origin, dx, scale, expands),
        )  # fmt: skip

    return {"compute_rhs": compute_rhs, "compute_cut_rhs": compute_cut_rhs}


@kernel_family
def gradient_kernels(loops, cut):
    IntVector, each_cell_in = loops.IntVector, loops.each_cell_in
    Flags = ti.types.vector(2 * loops.dim, ti.i32)

    @ti.kernel
    def subtract_gradient(
        velocity: Array, pressure: Array, inv_diag: Array, open: Array, n: IntVector, end: IntVector, held: Flags,
        scale: ti.f32,
    ):  # fmt: skip
        each_cell_in(
            n * 0 + 1, end, n, _subtract_gradient_at, (velocity, pressure, inv_diag, open, n, held, scale, cut)
        )  # fmt: skip

    return {"subtract_gradient": subtract_gradient, "Flags": Flags}


class Projection:
    """Projects staggered velocities of one grid.

    Solves  sum over faces of open · (p - p_neighbour) = -(rho dx² / dt) div u, then u -= dt/rho grad p, with the
    gradient and the divergence that the operator is made of; beside a solid both count what a face is open, and the
    solid's own motion through the rest of it. (Bridson, ch. 5; Ng, Min, Gibou 2009.) Where something expands, what is
    left is not 0 but the divergence that it prescribes. (Feldman, O'Brien, Arikan 2003.)

    Args:
        grid: The grid.
        walls: Its sides.
        rhs: An array to work in.
        method: Of the pressure solver, one of ``solver.METHODS``.
        solids: What stands in the fluid; tell ``update`` when they have moved.
    """

    def __init__(self, grid: Grid, walls: Walls, rhs, method: str = "multigrid-cg", solids: Solids | None = None):
        self.grid, self.walls, self.solids = grid, walls, solids
        self.solver = EllipticSolver(grid, method)
        self.method = method
        self._rhs = rhs
        self._nothing = ti.ndarray(ti.f32, 1)
        self._gradient = gradient_kernels(grid.loops, solids is not None)
        sides = walls.pressure_sides()
        self._held = self._gradient.Flags(*(int(held) for held in sides.box))
        reach = [n + 2 if walls.has_open else n + 1 for n in grid.shape]
        self._end = int_vector(grid.dim)(*reach)
        self.update()

    def update(self) -> None:
        """Set the solver up for where the solids are now."""
        sides = self.walls.pressure_sides()
        if self.solids is None:
            self.solver.setup(self.walls.first_unknown(SCALAR), sides)
        else:
            self.solver.setup_open(self.solids.open, sides)

    def compute_rhs(self, velocity, rhs, dt: float, rho: float, expansion=None) -> None:
        """``rhs`` = -(rho dx² / dt) (div u - ``expansion``), in Pa."""
        self.grid.require_runtime()
        grid, scale = self.grid, rho * self.grid.dx / dt
        kernels = projection_kernels(grid.loops, expansion is not None)
        expansion = self._nothing if expansion is None else expansion
        if self.solids is None:
            kernels.compute_rhs(velocity, rhs, expansion, grid.n, grid.dx, scale)
        else:
            kernels.compute_cut_rhs(velocity, rhs, expansion, *self.solids.arguments(), scale)

    def subtract_gradient(self, velocity, pressure, scale: float) -> None:
        """Take ``scale`` times the difference of the pressure across each face off its velocity."""
        self._gradient.subtract_gradient(
            velocity, pressure, self.solver.inv_diag, self.solver.level.open, self.grid.n, self._end, self._held, scale
        )

    def project(
        self, velocity, pressure, *, dt: float, rho: float, tolerance: float, max_iterations: int = 500, expansion=None
    ) -> SolveResult:
        """Make ``velocity`` free of divergence in place, its sides filled before and after.

        Args:
            velocity: Staggered velocity, m/s.
            pressure: First guess and result, Pa.
            dt: Seconds.
            rho: Density of the fluid, kg/m³ (in 2D kg/m²).
            tolerance: Relative residual of the pressure equation, L2.
            max_iterations: Give up after these.
            expansion: The divergence to leave instead of 0, at cell centres, 1/s; of a cell that a solid cuts that of
                its fluid and its solid part together.
        """
        self.compute_rhs(velocity, self._rhs, dt, rho, expansion)
        result = self.solver.solve(self._rhs, pressure, tolerance=tolerance, max_iterations=max_iterations)
        self.subtract_gradient(velocity, pressure, dt / (rho * self.grid.dx))
        if self.solids is not None:
            self.solids.enforce(velocity)
        self.walls.fill_velocity(velocity, keep=True)
        return result
