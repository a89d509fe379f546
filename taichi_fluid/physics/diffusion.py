"""Implicit diffusion, stable for any step: (1 - dt nu ∇²) a_new = a.

What is solved for is the change, (1 - dt nu ∇²) change = dt nu ∇² a, so that a constant stays the same constant bit
for bit, and the tolerance is relative to what diffusion does in the step.
"""

from functools import partial
from typing import Any, NamedTuple

from .._ti import ti
from ..boundaries.coefficients import BoundaryCoefficients
from ..boundaries.solids import Solids
from ..boundaries.solids.rasterise import LEAST_PART
from ..boundaries.walls import SCALAR, Walls
from ..grid import Grid
from ..kernels import Array, copy_values, int_vector, kernel_family
from ..limits import require_not_negative
from ..operators.differences import difference_sum
from ..pressure.solver import EllipticSolver, SolveResult
from .friction import NEAREST, NEAREST_EXPLICIT, Component, add_change_at, beside_solids_kernels
from .scalars_at_solids import ScalarsAtSolids


@ti.func
def _write_laplacian(c, I, s, a: Array, offset, inv_diag: Array, out: Array, n):
    value = ti.f32(0.0)
    if inv_diag[c] > 0:
        value = difference_sum(a, offset + c, s, n)
    out[c] = value


@ti.func
def _take_mean_at(c, I, s, a: Array, out: Array, offset):
    out[offset + c] = ti.f32(0.5) * (out[offset + c] + a[offset + c])


@ti.func
def _write_gain(c, I, s, moved, before, change: Array, inv_diag: Array, out: Array, shift):
    value = ti.f32(0.0)
    if inv_diag[c] > 0:
        value = shift * (moved.a[moved.offset + c] + change[c] - before.a[before.offset + c])
    out[c] = value


@ti.func
def _begin_at(c, I, s, moved, before, gain: Array, change: Array, inv_diag: Array, scale):
    if inv_diag[c] > 0:
        moved.a[moved.offset + c] = before.a[before.offset + c] + scale * gain[c] - change[c]


@kernel_family
def diffusion_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def compute_laplacian(a: Array, inv_diag: Array, out: Array, n: IntVector, offset: ti.i32):
        each_cell(n, _write_laplacian, (a, offset, inv_diag, out, n))

    @ti.kernel
    def add_change(change: Array, a: Array, n: IntVector, offset: ti.i32, scale: ti.f32):
        each_cell(n, add_change_at, (change, Component(a, offset, SCALAR), scale))

    @ti.kernel
    def take_mean(a: Array, out: Array, n: IntVector, offset: ti.i32):
        """Of ``out`` as it is and ``a``."""
        each_cell(n, _take_mean_at, (a, out, offset))

    @ti.kernel
    def write_gain(
        a: Array, start: Array, change: Array, inv_diag: Array, out: Array, n: IntVector, offset: ti.i32, shift: ti.f32
    ):
        """``shift`` times what ``a`` and its change are more than ``start``, where it is solved for."""
        moved, before = Component(a, offset, SCALAR), Component(start, offset, SCALAR)
        each_cell(n, _write_gain, (moved, before, change, inv_diag, out, shift))

    @ti.kernel
    def begin(
        a: Array, start: Array, gain: Array, change: Array, inv_diag: Array, n: IntVector, offset: ti.i32, scale: ti.f32
    ):
        """Make ``a`` what ``start`` is, ``scale`` times the gain more and the change less."""
        moved, before = Component(a, offset, SCALAR), Component(start, offset, SCALAR)
        each_cell(n, _begin_at, (moved, before, gain, change, inv_diag, scale))

    return {
        "compute_laplacian": compute_laplacian,
        "add_change": add_change,
        "take_mean": take_mean,
        "write_gain": write_gain,
        "begin": begin,
    }


@ti.func
def _add_fluxes_at(c, I, s, rhs: Array, mask: Array, n, given, axis: ti.template()):
    """What walls give each cell beside them, dx · flux / diffusivity by side; nothing where ``mask`` is not above 0."""
    lower, upper = c + s[axis], c + n[axis] * s[axis]
    if mask[lower] > 0:
        rhs[lower] = rhs[lower] + given[2 * axis]
    if mask[upper] > 0:
        rhs[upper] = rhs[upper] + given[2 * axis + 1]


@kernel_family
def flux_kernels(loops):
    IntVector, Numbers = loops.IntVector, ti.types.vector(2 * loops.dim, ti.f32)

    @ti.kernel
    def add_fluxes(rhs: Array, mask: Array, n: IntVector, scale: ti.f32, fluxes: Numbers):
        loops.each_side(n, _add_fluxes_at, (rhs, mask, n, scale * fluxes))

    return {"add_fluxes": add_fluxes}


class _Diffused(NamedTuple):
    """What is diffused, at how many m²/s: the ``component`` that begins at ``offset`` in ``a``, by its ``name`` a scalar."""

    a: Any
    diffusivity: float
    component: int
    offset: int
    name: str | None


_DAMPED = 0.425
"""Explicit part of a step that is long for diffusion: what varies from cell to cell keeps 0.425 / 0.575 of it, with other sign."""

_LONG = 8.0
"""How many times as long as leaves each value between those around it the explicit half of a velocity's step may be.

Shorter steps follow a plate that swings three to seven times nearer so; in longer ones a heated cavity is not steady any more.
"""

MULTIGRID_BELOW = 1.0
"""Below this dx² / (diffusivity · dt) multigrid pays; above it, the diagonal alone needs a handful of iterations."""


class Diffusion:
    """Diffuses quantities of one grid through the solvers that also serve the pressure.

    Args:
        grid: The grid.
        walls: Its sides; scalars feel what walls hold or give, else have no flux through them; velocity components feel
            their slip.
        tolerance: Relative residual of the change.
        solids: No scalar flows into them but what they hold or give; they hold the velocity beside them, or let it slip.
        sweeps: Relax so often in place of the tolerance; left out, solve.
    """

    def __init__(
        self,
        grid: Grid,
        walls: Walls,
        tolerance: float = 1e-5,
        solids: Solids | None = None,
        sweeps: int | None = None,
    ):
        self.grid, self.walls, self.solids = grid, walls, solids
        self.tolerance, self.sweeps = tolerance, sweeps
        self._solvers = {}
        self._at_solids: ScalarsAtSolids | None = None
        self._rhs, self._change = grid.array(), grid.array()
        self._clearance = None if solids is None else grid.array()
        self._kernels = diffusion_kernels(grid.loops)

    def _solver(self, shift: float, cut: bool) -> EllipticSolver:
        """One that suits a step; where faces are ``cut`` a solver of its own, as what has been recorded is another."""
        method = "multigrid-cg" if shift < MULTIGRID_BELOW else "cg"
        if self.sweeps is not None:
            method = "gauss-seidel"
        if (method, cut) not in self._solvers:
            self._solvers[method, cut] = EllipticSolver(self.grid, method)
        return self._solvers[method, cut]

    def diffuse(
        self,
        a,
        diffusivity: float,
        dt: float,
        component: int = SCALAR,
        offset: int = 0,
        name: str | None = None,
        ahead: float = 1.0,
    ) -> SolveResult | None:
        """Diffuse ``a[offset:…]`` in place; ghosts must be filled before and are filled after.

        Args:
            a: A scalar, or a velocity of which ``component`` stands at ``offset``.
            diffusivity: In m²/s; 0 does nothing and returns None.
            dt: Seconds.
            component: Velocity component, or ``SCALAR``.
            offset: Where it begins in ``a``.
            name: Of a scalar, by which the sides know what enters, what they hold and what they give; see ``Walls.fill``.
            ahead: By how much of the change to go on.

        Raises:
            ValueError: for numbers below 0 or none, an array that is not of the grid, and a diffusivity of 0 where a wall
                gives something.
        """
        self.grid.require(None, offset, a=a)
        require_not_negative("diffusivity", diffusivity, "m²/s")
        require_not_negative("dt", dt, "seconds")
        if not diffusivity and component == SCALAR and self.walls.gives(name, offset // self.grid.cells):
            raise ValueError(f"diffusivity is 0 and a wall has a flux of {name}, which diffusion brings in")
        if diffusivity * dt == 0:
            return None
        shift = self.grid.dx**2 / (diffusivity * dt)
        what = _Diffused(a, diffusivity, component, offset, name)
        solver = self._set_up(what, shift)
        result = self._solve(solver)
        self._add(solver, self._change, ahead, 1.0 / shift, what)
        return result

    def _solve(self, solver: EllipticSolver) -> SolveResult:
        """Find the change that the right-hand side asks for."""
        if self.sweeps is not None:
            return solver.sweep(self._rhs, self._change, self.sweeps)
        self._change.fill(0.0)
        return solver.solve(self._rhs, self._change, tolerance=self.tolerance)

    def _set_up(self, what: _Diffused, shift: float, explicit: bool = False) -> EllipticSolver:
        """A solver for ``shift`` = dx² / (diffusivity · dt), with dx² times the Laplacian as right-hand side.

        What walls give is in it. ``explicit`` says that the step is made with that side alone.
        """
        grid, (a, _, component, offset, name) = self.grid, what
        at_solids = self.solids is not None and component == SCALAR
        if component == SCALAR and name and any(side.lets_out for pair in self.walls.sides for side in pair):
            self.walls.fill(a, component, offset, name, keep=True)
        solver, first = self._solver(shift, at_solids), self.walls.first_unknown(component)
        sides = self.walls.diffusion_sides(component, shift, name)
        if at_solids:
            self._set_up_at_solids(solver, sides, what, explicit)
            return solver
        uneven = bool(self.walls.held_in_part(component, name))
        if self.solids is None:
            if uneven:
                solver.mark(first, sides)
                self._change.fill(0.0)
                self.walls.add_held(self._change, solver.system.unknown, component, name)
            solver.setup(first, sides, held=self._change if uneven else None)
            self._kernels.compute_laplacian(a, solver.inv_diag, self._rhs, grid.n, offset)
        else:
            solids, mask = self.solids, self._clearance
            kernels = beside_solids_kernels(grid.loops)
            nearest = NEAREST_EXPLICIT if explicit else NEAREST
            kernels.to_middles(a, offset, component, mask, *solids.arguments())
            self.walls.fill(a, component, offset, name)
            solver.mark(first, sides, mask)
            where, out = (int_vector(grid.dim)(*first), solver.system.wrap), (self._change, self._rhs)
            surface = self._clearance, nearest, *solids.arguments()
            kernels.compute_beside_solids(a, offset, component, solver.system.unknown, *where, *out, *surface)
            if uneven:
                self.walls.add_held(self._change, solver.system.unknown, component, name)
            solver.setup(first, sides, mask, held=self._change)
        if component == SCALAR and name is not None:
            self._add_given(solver, what, name)
        return solver

    def _set_up_at_solids(
        self, solver: EllipticSolver, sides: BoundaryCoefficients, what: _Diffused, explicit: bool
    ) -> None:
        """The same for a scalar where there are solids; made ``explicit``, of cells that are cut what they rise by."""
        if self._at_solids is None:
            assert self.solids is not None
            self._at_solids = ScalarsAtSolids(self.solids)
        at_solids, name, k = self._at_solids, what.name, what.offset // self.grid.cells
        at_solids.set_up(solver, sides, what.a, what.offset, name, (self._change, self._rhs))
        self.walls.add_held(self._change, solver.system.unknown, SCALAR, name)
        if name is not None:
            self._add_given(solver, what, name)
            at_solids.add_given(self._rhs, solver.system.unknown, name, k, self.grid.dx / what.diffusivity)
        if explicit:
            at_solids.spread(self._rhs, solver.system.unknown)
        else:
            solver.setup_marked(sides, self._change)

    def _add_given(self, solver: EllipticSolver, what: _Diffused, name: str) -> None:
        """Add what walls give to the right-hand side."""
        grid, k, scale = self.grid, what.offset // self.grid.cells, self.grid.dx / what.diffusivity
        fluxes = self.walls.fluxes(name, k)
        if fluxes is not None:
            flux_kernels(grid.loops).add_fluxes(self._rhs, solver.system.unknown, grid.n, scale, fluxes)
        self.walls.add_fluxes(self._rhs, solver.system.unknown, name, k, scale)

    def _add(self, solver: EllipticSolver, change, scale: float, step: float, what: _Diffused) -> None:
        """Add ``scale`` times a change, that of a step of diffusivity · dt / dx² = ``step``, and fill ghosts."""
        grid, solids, system, (a, _, component, offset, name) = self.grid, self.solids, solver.system, what
        if solids is None or component == SCALAR:
            self._kernels.add_change(change, a, grid.n, offset, scale)
        else:
            where = int_vector(grid.dim)(*self.walls.first_unknown(component)), system.wrap
            surface = self._clearance, *solids.arguments()
            from_middles = beside_solids_kernels(grid.loops).from_middles
            from_middles(a, offset, component, system.unknown, *where, change, scale, step, *surface)
        if component == SCALAR and name is not None and solids is not None and solids.gives(name):
            assert self._at_solids is not None
            self._at_solids.set_held(a, offset, name)
        self.walls.fill(a, component, offset, name)

    def first_part(
        self, diffusivity: float, dt: float, component: int = SCALAR, name: str | None = None, *, bounded: bool = False
    ) -> float:
        """Seconds of a step ``dt`` that are diffused at its beginning, for it to be of second order; ``diffuse`` does the rest.

        Half of it, explicitly (Crank, Nicolson 1947), if that leaves each value between those around it, or, of a velocity, if it
        ``begins_implicitly``. Else ``_DAMPED`` of it, or, ``bounded`` or where a solid moves, as much as does: of a cell that one
        cuts both parts have to see as much, for what the first makes too large to be damped by the other.
        """
        most = self._explicit_limit(component, name)
        bounded = bounded or (self.solids is not None and self.solids.moves)
        if 0.5 * dt * diffusivity <= most or (component != SCALAR and self.begins_implicitly(diffusivity, dt)):
            return 0.5 * dt
        return most / diffusivity if bounded else min(0.5 * dt, _DAMPED * dt + 0.5 * most / diffusivity)

    def balanced_part(self, viscosity: float, dt: float) -> float:
        """Seconds of a step ``dt`` of what friction is in balance with, pressure and forces, that a beginning must know.

        Of an implicit one all of its half, beside solids half of that; of an explicit one nothing.
        """
        if not self.begins_implicitly(viscosity, dt):
            return 0.0
        return 0.5 * dt if self.solids is None else 0.25 * dt

    def begins_implicitly(self, viscosity: float, dt: float) -> bool:
        """Whether ``advance_velocity`` diffuses implicitly: beside solids as soon as it has to, else in steps that are long."""
        if self.solids is None:
            return self.is_long(viscosity, dt)
        return 0.5 * dt * viscosity > self._explicit_limit(0, None)

    def is_long(self, viscosity: float, dt: float) -> bool:
        """Whether half of a step is more than ``_LONG`` times as long as leaves each value between those around it."""
        return 0.5 * dt * viscosity > _LONG * self._in_bounds

    def _is_held(self, component: int) -> bool:
        return self.solids is not None and component != SCALAR

    def _explicit_limit(self, component: int, name: str | None) -> float:
        """Diffusivity · dt that leaves each value between those around it.

        Solids hold one by up to 1 / ``NEAREST_EXPLICIT``, or leave a cell as small as ``LEAST_PART`` of how far it is open.
        """
        least = 1.0 if self.solids is None else LEAST_PART
        if self._is_held(component) or (self.solids is not None and self.solids.gives(name)):
            least = NEAREST_EXPLICIT
        return least * self._in_bounds

    @property
    def _in_bounds(self) -> float:
        """The same far from solids."""
        return self.grid.dx**2 / (2.0 * self.grid.dim)

    def advance(
        self,
        a,
        diffusivity: float,
        dt: float,
        component: int = SCALAR,
        offset: int = 0,
        name: str | None = None,
        *,
        bounded: bool = False,
        before=None,
    ) -> SolveResult | None:
        """Diffuse ``a[offset:…]`` in place by the ``first_part`` of ``dt``; arguments, ghosts and errors of ``diffuse``.

        Explicitly, but for a velocity that ``begins_implicitly``: made larger, what varies from cell to cell would be carried so
        by advection, and fluctuate beside walls for ever. ``before`` it were added what friction is in balance
        with, for as long; left out, nothing was. An implicit step of the same length finds the gain over that; twice this, less
        what is left of it after one more such step, is of second order, nothing where all is in balance, and of what varies
        from cell to cell changes the sign at most. Beside solids it is twice the change of an implicit step of half as long.
        """
        self.grid.require(None, offset, a=a)
        if before is not None:
            self.grid.require(None, offset, before=before)
        require_not_negative("diffusivity", diffusivity, "m²/s")
        require_not_negative("dt", dt, "seconds")
        if diffusivity * dt == 0:
            return None
        first = self.first_part(diffusivity, dt, component, name, bounded=bounded)
        if component != SCALAR and self.begins_implicitly(diffusivity, dt):
            if self.solids is not None:
                return self.diffuse(a, diffusivity, 0.5 * first, component, offset, name, ahead=2.0)
            return self._begin(
                _Diffused(a, diffusivity, component, offset, name), first, a if before is None else before
            )
        # With the solver that the implicit part is going to take.
        shift = self.grid.dx**2 / (diffusivity * (dt - first))
        scale = diffusivity * first / self.grid.dx**2
        what = _Diffused(a, diffusivity, component, offset, name)
        self._add(self._set_up(what, shift, explicit=True), self._rhs, scale, scale, what)
        return None

    def _begin(self, what: _Diffused, dt: float, before) -> SolveResult:
        """Diffuse a velocity component for ``dt`` s, as ``advance`` says of long steps."""
        grid, (a, diffusivity, component, offset, name) = self.grid, what
        shift = grid.dx**2 / (diffusivity * dt)
        solver = self._set_up(what, shift)
        result = self._solve(solver)
        self._kernels.write_gain(a, before, self._change, solver.inv_diag, self._rhs, grid.n, offset, shift)
        result = result.followed_by(self._solve(solver))
        self._kernels.begin(a, before, self._rhs, self._change, solver.inv_diag, grid.n, offset, 2.0 / shift)
        self.walls.fill(a, component, offset, name)
        return result

    def advance_velocity(self, velocity, viscosity: float, dt: float, rubbed=None, before=None) -> list[SolveResult]:
        """``advance`` every component of a velocity in place.

        Args:
            velocity: m/s, ghosts filled.
            viscosity: Kinematic, m²/s.
            dt: Seconds.
            rubbed: If given, is made the velocity that friction is reckoned with, but for its ghosts: the one before, or of
                an implicit beginning, which goes on by twice its change, the mean of those before and after.
            before: The velocity before forces and pressure of the ``balanced_part`` were added, if they were.
        """
        self.grid.require(self.grid.dim, velocity=velocity)
        if before is not None:
            self.grid.require(self.grid.dim, before=before)
        if rubbed is not None:
            self.grid.require(self.grid.dim, rubbed=rubbed)
            copy_values(velocity, rubbed)
        results = self._each_component(partial(self.advance, before=before), velocity, viscosity, dt)
        if rubbed is not None and viscosity * dt and self.begins_implicitly(viscosity, dt):
            for axis in range(self.grid.dim):
                self._kernels.take_mean(velocity, rubbed, self.grid.n, axis * self.grid.cells)
        return results

    def diffuse_velocity(self, velocity, viscosity: float, dt: float) -> list[SolveResult]:
        """Diffuse every component of a velocity in place; ``viscosity`` is kinematic, in m²/s."""
        return self._each_component(self.diffuse, velocity, viscosity, dt)

    def _each_component(self, diffuse, velocity, viscosity: float, dt: float) -> list[SolveResult]:
        self.grid.require(self.grid.dim, velocity=velocity)
        axes = range(self.grid.dim) if viscosity * dt else ()
        results = (diffuse(velocity, viscosity, dt, axis, axis * self.grid.cells) for axis in axes)
        return [result for result in results if result is not None]
