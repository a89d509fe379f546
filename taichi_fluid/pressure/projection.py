"""Projection: the pressure that gives a velocity its divergence, most often 0, and its gradient taken off.

On the staggered grid the gradient and the divergence are those that the operator is made of, and a solution leaves no
other divergence. On the collocated grid (Stam 1999, 2003) both reach over two cells while the operator is the compact
one, so that even an exact solution leaves some: what lies between cells and their next but one neighbours cannot be told
apart.
"""

import numpy as np

from .._ti import argument, loaded, ti
from ..boundaries.solids import CutCells, Solids
from ..boundaries.walls import PRESSURE, SCALAR, Walls
from ..grid import Grid, Scratch, given
from ..kernels import (
    Array,
    Operator,
    add,
    cells_of,
    int_vector,
    kernel_family,
    numbers_of,
    room_for_partials,
    write_strip,
)
from ..limits import require_positive
from ..operators.differences import gradient_at
from .null_space import ConnectedRegions
from .residual import SolveResult
from .spectral import pressure_solver
from .system import System

_RANGE = 1e-30, 1e30
"""What rho dx / dt may be, Pa s/m: pressures must be numbers of f32, which end at 1e±38."""


@argument
class _Wanted:
    """The velocity, the divergence that it is to have where it ``expands``, 1/s, and what makes a right-hand side of it."""

    velocity: object
    expansion: object
    dx: object
    scale: object
    expands: object

    @ti.func
    def of(self, outflow, c):
        """``scale`` times dx times the divergence that cell ``c`` lacks."""
        missing = -outflow
        if ti.static(self.expands):
            missing += self.dx * self.expansion[c]
        return self.scale * missing


@ti.func
def _rhs_at(c, I, s, wanted, n, on: ti.template()):
    return wanted.of(on.outflow(wanted.velocity, c, s, n), c)


@ti.func
def _write_cut_rhs_at(c, I, s, wanted, rhs: Array, solids):
    rhs[c] = wanted.of(solids.outflow_at(wanted.velocity, c, I, s), c)


@argument
class _Projected:
    """A velocity, a pressure, the system that it solves, which sides hold it, and the factor of its differences.

    Of a box that is ``full`` all cells are solved for, no side holds the pressure, and ``held`` marks what is periodic.
    """

    u: object
    p: object
    system: object
    held: object
    scale: object
    full: bool


@ti.func
def _is_projected(c, I, s, projected, axis: ti.template()):
    """Whether a face lies between two cells that are solved for, or one and an open side, where the pressure is 0."""
    inv_diag = ti.static(projected.system.inv_diag)
    n, held = projected.system.n, projected.held
    here = I[axis] > 1 or held[2 * axis] == 1
    if ti.static(not projected.full):
        above = inv_diag[c] > 0 or (I[axis] == n[axis] + 1 and held[2 * axis + 1] == 1)
        below = inv_diag[c - s[axis]] > 0 or (I[axis] == 1 and held[2 * axis] == 1)
        here = above and below and (inv_diag[c] > 0 or inv_diag[c - s[axis]] > 0)
        if ti.static(projected.system.cut):
            here = here and projected.system.open[c + axis * cells_of(s, n)] != 0
    return here


@ti.func
def _projected_velocity_at(c, I, s, projected, axis: ti.template()):
    u, p = ti.static(projected.u, projected.p)
    face = c + axis * cells_of(s, projected.system.n)
    changed = u[face] - projected.scale * (p[c] - p[c - s[axis]])
    return ti.select(_is_projected(c, I, s, projected, axis), changed, u[face])


@ti.func
def _project_strip(c, I, m, s, given, width: ti.template()):
    """One component after the other: of all at once a compiler makes no vectors."""
    projected, n = loaded(given), given.system.n
    for axis in ti.static(range(s.n)):
        operator = Operator(_projected_velocity_at, (projected, axis))
        write_strip(c, I, m, s, n, ((given.u, axis),), width, operator)


@ti.func
def _subtract_centred_gradient_at(c, I, s, u: Array, p: Array, n, scale):
    g = gradient_at(p, c, s)
    for axis in ti.static(range(n.n)):
        place = c + axis * cells_of(s, n)
        u[place] = u[place] - ti.f32(0.5) * scale * g[axis]


@ti.func
def _going_into_side(u: Array, place, stride):
    """What a component beside a side is, extrapolated to there, 1.5 u - 0.5 u_inside, less what is given there, 0.5 (u + u_ghost)."""
    return u[place] - ti.f32(0.5) * (u[place - stride] + u[place + stride])


@ti.func
def _hold_at_sides_at(c, I, s, u: Array, n, closed, axis: ti.template()):
    """Of a cell beside a side the mean of what the pressure changes on two faces: on that side all that goes into it."""
    lower = c + s[axis] + axis * cells_of(s, n)
    upper = lower + (n[axis] - 1) * s[axis]
    below, above = _going_into_side(u, lower, s[axis]), _going_into_side(u, upper, s[axis])
    u[lower] = u[lower] - ti.f32(0.5) * ti.cast(closed[2 * axis], ti.f32) * below
    u[upper] = u[upper] - ti.f32(0.5) * ti.cast(closed[2 * axis + 1], ti.f32) * above


@kernel_family
def projection_kernels(loops, expands, on):
    IntVector, FloatVector = loops.IntVector, loops.FloatVector

    @ti.kernel
    def compute_rhs(velocity: Array, rhs: Array, expansion: Array, n: IntVector, dx: ti.f32, scale: ti.f32):
        loops.write_cells(n, rhs, _rhs_at, (_Wanted(velocity, expansion, dx, scale, expands), n, on))

    @ti.kernel
    def compute_cut_rhs(
        velocity: Array, rhs: Array, expansion: Array, open: Array, distance: Array, owner: Array, motions: Array,
        n: IntVector, origin: FloatVector, dx: ti.f32, scale: ti.f32,
    ):  # fmt: skip
        solids = CutCells(open, distance, owner, motions, n, origin, dx)
        loops.each_cell(n, _write_cut_rhs_at, (_Wanted(velocity, expansion, dx, scale, expands), rhs, solids))

    return compute_rhs, compute_cut_rhs


@kernel_family
def gradient_kernels(loops, cut, full):
    Index, each_cell, each_strip_to, width = loops.IntVector, loops.each_cell, loops.each_strip_to, loops.width
    Flags = int_vector(2 * loops.dim)

    @ti.kernel
    def subtract_gradient(
        velocity: Array, pressure: Array, inv_diag: Array, open: Array, n: Index, end: Index, held: Flags, scale: ti.f32
    ):
        projected = _Projected(velocity, pressure, System(inv_diag, n, open, cut), held, scale, full)
        each_strip_to(end, n, width, _project_strip, (projected, width))

    @ti.kernel
    def subtract_centred_gradient(velocity: Array, pressure: Array, n: Index, scale: ti.f32):
        each_cell(n, _subtract_centred_gradient_at, (velocity, pressure, n, scale))

    @ti.kernel
    def hold_at_sides(velocity: Array, n: Index, closed: Flags):
        loops.each_side(n, _hold_at_sides_at, (velocity, n, closed))

    return subtract_gradient, subtract_centred_gradient, hold_at_sides


@ti.func
def _rhs_of(c, I, s, rhs: Array):
    return rhs[c]


@kernel_family
def sum_kernels(loops):
    @ti.kernel
    def sum_rhs(rhs: Array, n: loops.IntVector, partials: Array, out: Array):
        loops.reduce_to(out, 0, n, partials, ti.f32(0.0), add, _rhs_of, (rhs,))

    return (sum_rhs,)


class Projection:
    """Projects velocities of one grid.

    Solves  sum over faces of open · (p - p_neighbour) = -(rho dx² / dt) div u, then u -= dt/rho grad p, with the
    gradient and the divergence that the operator is made of; beside a solid both count what a face is open, and the
    solid's own motion through the rest of it. (Bridson, ch. 5; Ng, Min, Gibou 2009.) Where something expands, what is
    left is not 0 but the divergence that it prescribes. (Feldman, O'Brien, Arikan 2003.)

    Args:
        grid: The grid.
        walls: Its sides.
        scratch: Arrays to work in.
        method: Of the pressure solver, one of ``solver.METHODS``, ``"spectral"`` or ``"auto"``; see
            ``spectral.pressure_solver``.
        solids: What stands in the fluid; tell ``update`` when they have moved.
        cut: Whether faces are open in part for another reason.

    Attributes:
        solver: Solves the pressure; ``solver.method`` says how.
        hindrance: Why that is not the direct solve, where that or ``"auto"`` is asked for; else empty.
    """

    def __init__(
        self,
        grid: Grid,
        walls: Walls,
        scratch: Scratch,
        method: str = "multigrid-cg",
        solids: Solids | None = None,
        cut: bool = False,
    ):
        self.grid, self.walls, self.solids = grid, walls, solids
        sides = walls.pressure_sides()
        cut = cut or solids is not None or walls.open_in_part
        self.solver, self.hindrance = pressure_solver(grid, method, sides, cut, scratch)
        self._open = grid.array(grid.dim) if walls.open_in_part else None
        if walls.balances:
            self._partials, self._total = room_for_partials(), ti.ndarray(ti.f32, 1)
        self._rhs = scratch.first
        self._nothing = ti.ndarray(ti.f32, 1)
        self._full = not cut and not walls.has_open
        self._gradient = gradient_kernels(grid.loops, cut, self._full)
        wraps = [wraps for wraps in sides.periodic for _ in range(2)]
        self._held = int_vector(2 * grid.dim)(*map(int, wraps if self._full else sides.box))
        self._closed = int_vector(2 * grid.dim)(*(int(not any(ways)) for ways in zip(sides.box, wraps, strict=True)))
        reach = [n + 2 if walls.has_open else n + 1 for n in grid.shape]
        self._end = int_vector(grid.dim)(*reach)
        self.update()

    def update(self) -> None:
        """Set the solver up for where the solids are now."""
        sides, opened = self.walls.pressure_sides(), self._opened()
        if opened is None:
            self.solver.setup(self.walls.first_unknown(SCALAR), sides)
        else:
            self.solver.setup_open(opened, sides)

    def _opened(self):
        """How far faces are open, as solids and the parts of sides leave them now; None where all of them are."""
        if self._open is None:
            return None if self.solids is None else self.solids.open
        if self.solids is None:
            self._open.fill(1.0)
        else:
            self._open.copy_from(self.solids.open)
        self.walls.close_parts(self._open)
        return self._open

    def compute_rhs(self, velocity, rhs, dt: float, rho: float, expansion=None) -> None:
        """``rhs`` = -(rho dx² / dt) (div u - ``expansion``), in Pa."""
        self.grid.require(rhs=rhs, **given(expansion=expansion))
        self.grid.require(self.grid.dim, velocity=velocity)
        require_positive("dt", dt, "seconds")
        require_positive("rho", rho, "kg/m³")
        grid, scale = self.grid, rho * self.grid.dx / dt
        if not _RANGE[0] <= scale <= _RANGE[1]:
            raise ValueError(
                f"rho is {rho!r}, dt is {dt!r} and dx is {grid.dx!r}, which make rho dx / dt {scale:.3g}; "
                f"it must be from {_RANGE[0]:g} to {_RANGE[1]:g}"
            )
        kernels = projection_kernels(grid.loops, expansion is not None, grid.placement)
        expansion = self._nothing if expansion is None else expansion
        if self.solids is None:
            kernels.compute_rhs(velocity, rhs, expansion, grid.n, grid.dx, scale)
        else:
            kernels.compute_cut_rhs(velocity, rhs, expansion, *self.solids.arguments(), scale)

    def solve(self, pressure, tolerance: float, max_iterations: int) -> SolveResult:
        """Solve for the pressure, Pa, that the right-hand side of ``project`` asks for, from what it is as a first guess."""
        self.grid.require(pressure=pressure)
        return self.solver.solve(self._rhs, pressure, tolerance=tolerance, max_iterations=max_iterations)

    def subtract_gradient(self, velocity, pressure, scale: float) -> None:
        """Take ``scale`` times the difference of the pressure from cell to cell off the velocity."""
        self.grid.require(pressure=pressure)
        self.grid.require(self.grid.dim, velocity=velocity)
        if self.grid.collocated:
            self.walls.fill(pressure, PRESSURE)
            self._gradient.subtract_centred_gradient(velocity, pressure, self.grid.n, scale)
            return
        system = self.solver.system
        unknowns = self._nothing if self._full else system.inv_diag
        self._gradient.subtract_gradient(
            velocity, pressure, unknowns, system.open, self.grid.n, self._end, self._held, scale
        )

    def project(
        self, velocity, pressure, *, dt: float, rho: float, tolerance: float, max_iterations: int = 500,
        sweeps: int | None = None, expansion=None,
    ) -> SolveResult:  # fmt: skip
        """Make ``velocity`` free of divergence in place, its sides filled before and after.

        Args:
            velocity: Velocity, m/s.
            pressure: First guess and result, Pa.
            dt: Seconds.
            rho: Density of the fluid, kg/m³ (in 2D kg/m²).
            tolerance: Relative residual of the pressure equation, L2.
            max_iterations: Give up after these.
            sweeps: Relax so often instead, from a pressure of 0.
            expansion: The divergence to leave instead of 0, at cell centres, 1/s; of a cell that a solid cuts that of
                its fluid and its solid part together.

        Raises:
            ValueError: for numbers that are none or beyond f32, and arrays that are not of the grid; the velocity is
                as it was.
        """
        self.grid.require(pressure=pressure)
        self.compute_rhs(velocity, self._rhs, dt, rho, expansion)
        if self.walls.balances:
            sums, regions = self._sums_of_regions()
            missing = sums * dt / (rho * self.grid.dx)
            if self.walls.balance(velocity, missing, None if self.solids is None else self.solids.open, regions):
                self.compute_rhs(velocity, self._rhs, dt, rho, expansion)
        if sweeps is not None:
            result = self.solver.sweep(self._rhs, pressure, sweeps)
        else:
            result = self.solve(pressure, tolerance, max_iterations)
        if self.grid.collocated:
            self._gradient.hold_at_sides(velocity, self.grid.n, self._closed)
        self.subtract_gradient(velocity, pressure, dt / (rho * self.grid.dx))
        if self.solids is not None:
            self.solids.enforce(velocity)
        self.walls.fill_velocity(velocity, keep=True)
        return result

    def _sums_of_regions(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The sum of the right-hand side over each region that nothing connects to others, and the number of each cell's."""
        null_space = self.solver.null_space
        if isinstance(null_space, ConnectedRegions):
            return null_space.sums(self._rhs), null_space.numbers
        sum_kernels(self.grid.loops).sum_rhs(self._rhs, self.grid.n, self._partials, self._total)
        return np.array(numbers_of(self._total)[:1]), None
