"""Implicit diffusion, stable for any step: (1 - dt nu ∇²) a_new = a.

What is solved for is the change, (1 - dt nu ∇²) change = dt nu ∇² a, so that a constant stays the same constant bit
for bit, and the tolerance is relative to what diffusion does in the step.
"""

from .._ti import argument, ti
from ..boundaries.solids import CutCells, Solids
from ..boundaries.walls import SCALAR, Walls
from ..grid import Grid
from ..kernels import Array, int_vector, kernel_family
from ..limits import require_not_negative
from ..operators.differences import difference_sum
from ..operators.interpolation import step_to_corner, strides_across
from ..pressure.solver import EllipticSolver, SolveResult


@ti.func
def _write_laplacian(c, I, s, a: Array, offset, inv_diag: Array, out: Array, n):
    value = ti.f32(0.0)
    if inv_diag[c] > 0:
        value = difference_sum(a, offset + c, s, n)
    out[c] = value


@ti.func
def _face_distance_at(distance: Array, c, s, component):
    """Distance to the nearest solid at the middle of the lower face of ``c`` along ``component``."""
    across, total = strides_across(s, component), ti.f32(0.0)
    for corner in ti.static(range(2 ** (s.n - 1))):
        total += distance[c + step_to_corner(corner, across)]
    return total * ti.f32(0.5 ** (s.n - 1))


@ti.func
def _hold_at(distance: Array, c, neighbour, s, component):
    """How strongly a solid between a face and its neighbour holds it: 1 over the part of the way to the surface."""
    here = ti.max(_face_distance_at(distance, c, s, component), ti.f32(0.0))
    there = ti.max(-_face_distance_at(distance, neighbour, s, component), ti.f32(0.0))
    return ti.f32(1.0) / ti.max(here / ti.max(here + there, ti.f32(1e-20)), ti.f32(_NEAREST))


@argument
class Unknowns:
    """Which values of a velocity ``component``, or of a ``SCALAR``, are solved for: those above 0 in ``mask[begin:…]``.

    The position of the first of them is ``first``; ``wrap`` is 1 along periodic axes.
    """

    mask: object
    begin: object
    component: object
    first: object
    wrap: object

    @ti.func
    def way_to_solid(self, c, I, s, n, axis: ti.template(), side: ti.template()):
        """Cells along ``axis`` to the solid beside ``c`` on a side, round a periodic box if need be; 0 if none is there."""
        way = ti.i32(side)
        at_end = I[axis] == (n[axis] if ti.static(side == 1) else self.first[axis])
        beyond = at_end and self.wrap[axis] == 0
        if at_end and self.wrap[axis] == 1:
            way = -side * (n[axis] - 1)
        if self.mask[self.begin + c + side * s[axis]] != 0 or beyond:
            way = 0
        return way

    @ti.func
    def hold_at(self, c, place, s, axis: ti.template(), solids):
        """How strongly the solid in ``place``, beside ``c`` along ``axis``, holds what is at ``c``; see ``_hold_at``.

        A component along its own axis is held by any solid, the others only where they do not slip; scalars never are.
        """
        hold, component = ti.f32(0.0), self.component
        if component >= 0:
            slipping = ti.f32(0.0)
            if axis != component:
                slipping = solids.slips_at(place, s, component)
            if slipping == 0:
                hold = _hold_at(solids.distance, c, place, s, component)
        return hold


@ti.func
def _write_beside_solids(c, I, s, a: Array, offset, unknowns, solids, held: Array, out: Array):
    """The Laplacian where solids hold a velocity component, and what they add to the diagonal."""
    value, total = ti.f32(0.0), ti.f32(0.0)
    if unknowns.mask[unknowns.begin + c] > 0:
        for axis in ti.static(range(s.n)):
            for side in ti.static((-1, 1)):
                weight = ti.f32(1.0)
                way = unknowns.way_to_solid(c, I, s, solids.n, axis, side)
                if way != 0:
                    weight = unknowns.hold_at(c, c + way * s[axis], s, axis, solids)
                    total += weight
                value += weight * (a[offset + c + side * s[axis]] - a[offset + c])
    out[c] = value
    held[c] = total


@ti.func
def _add_change(c, I, s, change: Array, a: Array, offset, scale):
    a[offset + c] = a[offset + c] + scale * change[c]


@kernel_family
def diffusion_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def compute_laplacian(a: Array, inv_diag: Array, out: Array, n: IntVector, offset: ti.i32):
        each_cell(n, _write_laplacian, (a, offset, inv_diag, out, n))

    @ti.kernel
    def add_change(change: Array, a: Array, n: IntVector, offset: ti.i32, scale: ti.f32):
        each_cell(n, _add_change, (change, a, offset, scale))

    return {"compute_laplacian": compute_laplacian, "add_change": add_change}


@argument
class Given:
    """What walls give each cell beside them: dx · flux / diffusivity, by side; nothing where ``mask`` is not above 0."""

    mask: object
    amounts: object
    axis: int


@ti.func
def _add_fluxes_at(c, I, s, given, n, rhs: Array):
    axis = ti.static(given.axis)
    lower, upper = c + s[axis], c + n[axis] * s[axis]
    if given.mask[lower] > 0:
        rhs[lower] = rhs[lower] + given.amounts[2 * axis]
    if given.mask[upper] > 0:
        rhs[upper] = rhs[upper] + given.amounts[2 * axis + 1]


@kernel_family
def flux_kernels(loops):
    IntVector, Numbers = loops.IntVector, ti.types.vector(2 * loops.dim, ti.f32)

    @ti.kernel
    def add_fluxes(rhs: Array, mask: Array, n: IntVector, scale: ti.f32, fluxes: Numbers):
        for axis in ti.static(range(loops.dim)):
            loops.each_on_plane(n, axis, _add_fluxes_at, (Given(mask, scale * fluxes, axis), n, rhs))

    return {"add_fluxes": add_fluxes}


@kernel_family
def beside_solids_kernels(loops):
    IntVector, FloatVector, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell

    @ti.kernel
    def compute_beside_solids(
        a: Array, offset: ti.i32, component: ti.i32, unknown: Array, first: IntVector, wrap: IntVector, held: Array,
        out: Array, open: Array, distance: Array, owner: Array, motions: Array, n: IntVector, origin: FloatVector,
        dx: ti.f32,
    ):  # fmt: skip
        unknowns = Unknowns(unknown, 0, component, first, wrap)
        solids = CutCells(open, distance, owner, motions, n, origin, dx)
        each_cell(n, _write_beside_solids, (a, offset, unknowns, solids, held, out))

    return {"compute_beside_solids": compute_beside_solids}


_NEAREST = 0.1
"""Part of a cell nearer than which a surface does not count: a face that a solid almost touches is held hard enough."""


MULTIGRID_BELOW = 1.0
"""Below this dx² / (diffusivity · dt) multigrid pays; above it, the diagonal alone needs a handful of iterations."""


class Diffusion:
    """Diffuses quantities of one grid through the solvers that also serve the pressure.

    Args:
        grid: The grid.
        walls: Its sides; scalars feel what walls hold or give, else have no flux through them; velocity components feel
            their slip.
        tolerance: Relative residual of the change.
        max_iterations: Give up after these.
        solids: No scalar flows into them; they hold the velocity beside them, or let it slip.
        sweeps: Relax so often in place of the tolerance; left out, solve.
    """

    def __init__(
        self,
        grid: Grid,
        walls: Walls,
        tolerance: float = 1e-5,
        max_iterations: int = 500,
        solids: Solids | None = None,
        sweeps: int | None = None,
    ):
        self.grid, self.walls, self.solids = grid, walls, solids
        self.tolerance, self.max_iterations, self.sweeps = tolerance, max_iterations, sweeps
        self._solvers = {}
        self._rhs, self._change = grid.array(), grid.array()
        self._kernels = diffusion_kernels(grid.loops)

    def _solver(self, shift: float) -> EllipticSolver:
        method = "multigrid-cg" if shift < MULTIGRID_BELOW else "cg"
        if self.sweeps is not None:
            method = "gauss-seidel"
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
            name: Of a scalar, by which the sides know what enters, what they hold and what they give; see ``Walls.fill``.

        Raises:
            ValueError: for numbers below 0 or none, an array that is not of the grid, and a diffusivity of 0 where a wall
                gives something.
        """
        self.grid.require(None, offset, a=a)
        require_not_negative("diffusivity", diffusivity, "m²/s")
        require_not_negative("dt", dt, "seconds")
        if not diffusivity and self._fluxes(component, offset, name) is not None:
            raise ValueError(f"diffusivity is 0 and a wall has a flux of {name}, which diffusion brings in")
        if diffusivity * dt == 0:
            return None
        solver = self._set_up(a, diffusivity, self.grid.dx**2 / (diffusivity * dt), component, offset, name)
        if self.sweeps is not None:
            result = solver.sweep(self._rhs, self._change, self.sweeps)
        else:
            self._change.fill(0.0)
            result = solver.solve(self._rhs, self._change, tolerance=self.tolerance, max_iterations=self.max_iterations)
        self._kernels.add_change(self._change, a, self.grid.n, offset, 1.0)
        self.walls.fill(a, component, offset, name)
        return result

    def _set_up(
        self, a, diffusivity: float, shift: float, component: int, offset: int, name: str | None
    ) -> EllipticSolver:
        """A solver for ``shift`` = dx² / (diffusivity · dt), with dx² times the Laplacian of ``a`` as right-hand side.

        What walls give is in it.
        """
        grid = self.grid
        solver, first = self._solver(shift), self.walls.first_unknown(component)
        sides = self.walls.diffusion_sides(component, shift, name)
        if self.solids is None:
            solver.setup(first, sides)
            self._kernels.compute_laplacian(a, solver.inv_diag, self._rhs, grid.n, offset)
        else:
            solids = self.solids
            mask, begin = (solids.fluid, 0) if component == SCALAR else (solids.open, component * grid.cells)
            solver.mark(first, sides, mask, begin)
            where, system = int_vector(grid.dim)(*first), solver.system
            beside_solids_kernels(grid.loops).compute_beside_solids(
                a, offset, component, system.unknown, where, system.wrap, self._change, self._rhs, *solids.arguments()
            )
            solver.setup(first, sides, mask, begin, held=self._change)
        fluxes = self._fluxes(component, offset, name)
        if fluxes is not None:
            scale = grid.dx / diffusivity
            flux_kernels(grid.loops).add_fluxes(self._rhs, solver.inv_diag, grid.n, scale, fluxes)
        return solver

    def _fluxes(self, component: int, offset: int, name: str | None):
        """What walls give of a scalar, for kernels; None where they give nothing."""
        return self.walls.fluxes(name, offset // self.grid.cells) if component == SCALAR else None

    def explicit_part(self, diffusivity: float, dt: float) -> float:
        """Seconds of a step ``dt`` that are diffused explicitly at its beginning, to be of second order in time.

        Half of it (Crank, Nicolson 1947), or as much as leaves each value between those around it. A solid holds a face
        beside it by up to 1 / ``_NEAREST``.
        """
        hold = 1.0 if self.solids is None else 1.0 / _NEAREST
        most = self.grid.dx**2 / (2.0 * self.grid.dim * hold)
        return most / diffusivity if 0.5 * dt * diffusivity > most else 0.5 * dt

    def implicit_part(self, diffusivity: float, dt: float) -> float:
        """Seconds that are left for ``diffuse`` at its end."""
        return dt - self.explicit_part(diffusivity, dt)

    def advance(
        self, a, diffusivity: float, dt: float, component: int = SCALAR, offset: int = 0, name: str | None = None
    ) -> None:
        """Diffuse ``a[offset:…]`` in place by the ``explicit_part`` of ``dt``; arguments, ghosts and errors of ``diffuse``."""
        self.grid.require(None, offset, a=a)
        require_not_negative("diffusivity", diffusivity, "m²/s")
        require_not_negative("dt", dt, "seconds")
        if diffusivity * dt == 0:
            return
        # With the solver that the implicit part is going to take.
        shift = self.grid.dx**2 / (diffusivity * self.implicit_part(diffusivity, dt))
        self._set_up(a, diffusivity, shift, component, offset, name)
        scale = diffusivity * self.explicit_part(diffusivity, dt) / self.grid.dx**2
        self._kernels.add_change(self._rhs, a, self.grid.n, offset, scale)
        self.walls.fill(a, component, offset, name)

    def advance_velocity(self, velocity, viscosity: float, dt: float) -> None:
        """``advance`` every component of a velocity in place; ``viscosity`` is kinematic, in m²/s."""
        self.grid.require(self.grid.dim, velocity=velocity)
        for axis in range(self.grid.dim):
            self.advance(velocity, viscosity, dt, axis, axis * self.grid.cells)

    def diffuse_velocity(self, velocity, viscosity: float, dt: float) -> list[SolveResult]:
        """Diffuse every component of a velocity in place; ``viscosity`` is kinematic, in m²/s."""
        self.grid.require(self.grid.dim, velocity=velocity)
        axes = range(self.grid.dim) if viscosity * dt else ()
        results = (self.diffuse(velocity, viscosity, dt, axis, axis * self.grid.cells) for axis in axes)
        return [result for result in results if result is not None]
