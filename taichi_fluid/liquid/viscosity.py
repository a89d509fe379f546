"""Viscosity of a liquid with a surface: an implicit solve that minimises what moving costs and friction takes.

The velocity after the step makes  ∫ |u - u*|² / 2 + dt ν |D u|² dV  over the liquid least, D u the rate of strain, so that
no stress acts on the surface without anything being said of it: honey turns and buckles as a whole. (Batty, Bridson 2008.)
Each term counts by the part of its own cube that is liquid, around a face, a centre or an edge, that of a face by what is open of it too. Faces within solids and on
sides have their velocity; a slope ends where a solid begins (``stress``). What of that is not symmetric, and so no minimum of anything,
is found once the rest has almost come to rest, and stays.
"""

import functools
import math
from collections.abc import Container
from typing import Any

from .._ti import argument, ti
from ..boundaries.profiles import GHOSTS, LaidSide, Plane, Rule
from ..boundaries.sides import Side
from ..boundaries.solids import CutCells, Solids
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import Array, add, cells_of, copy_values, float_vector, kernel_family, numbers_of
from ..kernels.reduce import room_for_partials
from ..operators.ghosts import wrap_pair
from ..pressure.residual import Status
from ..pressure.solver import SolveResult
from .sides import Seams
from .stress import Stress, places, stress_kernels
from .surface_friction import share_friction
from .viscous_loads import ViscousLoads
from .viscous_pressure import ViscousPressure

TOLERANCE = 1e-4
"""Residual over that of the velocity as it was, or with what is not symmetric if that is more, L2."""
RELAXED = 0.1
"""That at which, beside solids, the rest of the stress is found."""
LOOK_EVERY = 4
"""Iterations between two looks at the residual."""
LATER = ("borne", "held")
"""Names of what is kept between two steps once friction has acted: what solids bear, and the pressure that holds it."""
_RZ, _RR = 0, 1


@argument
class _Search:
    """Velocity, residual, direction, the operator on that, and the inverse of the diagonal, 0 where nothing is solved for."""

    u: object
    r: object
    d: object
    q: object
    inv_diag: object
    n: object


@ti.func
def _begin_at(c, I, s, search, stress, again):
    """The residual of a velocity, as far as the stress is symmetric; ``again``, with the rest of it as well."""
    if again == 0:
        for axis in ti.static(range(s.n)):
            search.r[c + axis * cells_of(s, search.n)] = stress.push(search.u, c, s, axis)
    for axis in range(s.n):
        face, residual = c + axis * cells_of(s, search.n), ti.f32(0.0)
        if search.inv_diag[face] > 0:
            residual = search.r[face] + stress.rest(search.u, c, s, axis, again)
        search.r[face] = residual
        search.d[face] = residual * search.inv_diag[face]


@ti.func
def _operate_at(c, I, s, search, stress):
    for axis in ti.static(range(s.n)):
        face, value = c + axis * cells_of(s, search.n), ti.f32(0.0)
        if search.inv_diag[face] > 0:
            value = stress.mass(c, s, axis) * search.d[face] - stress.push(search.d, c, s, axis)
        search.q[face] = value


@ti.func
def _advance_at(c, I, s, search, along):
    for axis in ti.static(range(s.n)):
        face = c + axis * cells_of(s, search.n)
        search.u[face] = search.u[face] + along * search.d[face]
        search.r[face] = search.r[face] - along * search.q[face]


@ti.func
def _turn_at(c, I, s, search, kept):
    for axis in ti.static(range(s.n)):
        face = c + axis * cells_of(s, search.n)
        search.d[face] = search.r[face] * search.inv_diag[face] + kept * search.d[face]


@ti.func
def _curvature_at(c, I, s, search):
    total = ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        total += search.d[c + axis * cells_of(s, search.n)] * search.q[c + axis * cells_of(s, search.n)]
    return total


@ti.func
def _squares_at(c, I, s, search):
    """R · M r and r · r."""
    total = ti.Vector([ti.f32(0.0), ti.f32(0.0)])
    for axis in ti.static(range(s.n)):
        face = c + axis * cells_of(s, search.n)
        total += search.r[face] * search.r[face] * ti.Vector([search.inv_diag[face], ti.f32(1.0)])
    return total


@ti.func
def _mirror_at(c, I, s, d: Array, n, mirrors, wrap, axis: ti.template()):
    """Beyond a side a direction is what keeps the liquid there, or lets it slip; a periodic axis has the same at both ends."""
    inside, upper = c + s[axis], c + (n[axis] + 1) * s[axis]
    for i in ti.static(range(s.n)):
        k = i * cells_of(s, n)
        if wrap[axis] == 1:
            wrap_pair(d, c + k, s, n, axis)
        elif ti.static(i != axis):
            d[c + k] = mirrors[2 * axis] * d[inside + k]
            d[upper + k] = mirrors[2 * axis + 1] * d[upper - s[axis] + k]


@kernel_family
def viscosity_kernels(loops, given):
    Index, Point, Sides = loops.IntVector, loops.FloatVector, float_vector(2 * loops.dim)
    each_cell, reduce_cells, reduced = loops.each_cell, loops.reduce_cells, loops.reduced

    @ti.kernel
    def begin(
        u: Array,
        r: Array,
        d: Array,
        q: Array,
        inv_diag: Array,
        phi: Array,
        felt: Array,
        step: ti.f32,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        partials: Array,
        scalars: Array,
        mirrors: Sides,
        wrap: Index,
        again: ti.i32,
    ):
        cut = CutCells(open, distance, owner, motions, n, origin, dx)
        search, none = _Search(u, r, d, q, inv_diag, n), ti.Vector([ti.f32(0.0), ti.f32(0.0)])
        each_cell(n, _begin_at, (search, Stress(phi, felt, cut, step, given), again))
        loops.each_side(n, _mirror_at, (d, n, mirrors, wrap))
        reduce_cells(n, partials, none, add, _squares_at, (search,))
        ti.loop_config(serialize=True)
        for _ in range(1):
            total = reduced(partials, none, add)
            scalars[_RZ], scalars[_RR] = total[0], total[1]

    @ti.kernel
    def iterate(
        u: Array,
        r: Array,
        d: Array,
        q: Array,
        inv_diag: Array,
        phi: Array,
        felt: Array,
        step: ti.f32,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        partials: Array,
        scalars: Array,
        mirrors: Sides,
        wrap: Index,
    ):
        cut = CutCells(open, distance, owner, motions, n, origin, dx)
        search, none = _Search(u, r, d, q, inv_diag, n), ti.Vector([ti.f32(0.0), ti.f32(0.0)])
        each_cell(n, _operate_at, (search, Stress(phi, felt, cut, step, given)))
        reduce_cells(n, partials, ti.f32(0.0), add, _curvature_at, (search,))
        ti.loop_config(serialize=True)
        for _ in range(1):
            curvature = reduced(partials, ti.f32(0.0), add)
            scalars[2] = scalars[_RZ] / curvature if curvature > 0 else ti.f32(0.0)
        each_cell(n, _advance_at, (search, scalars[2]))
        reduce_cells(n, partials, none, add, _squares_at, (search,))
        ti.loop_config(serialize=True)
        for _ in range(1):
            total = reduced(partials, none, add)
            scalars[3] = total[0] / scalars[_RZ] if scalars[_RZ] > 0 else ti.f32(0.0)
            scalars[_RZ], scalars[_RR] = total[0], total[1]
        each_cell(n, _turn_at, (search, scalars[3]))
        loops.each_side(n, _mirror_at, (d, n, mirrors, wrap))

    return begin, iterate


class Viscosity:
    """Friction within a liquid on one grid.

    Attributes:
        pressure: That which holds it.

    Args:
        grid: A staggered grid.
        walls: Its sides, along which the liquid sticks or slips.
        solids: What stands in it.
    """

    def __init__(self, grid: Grid, walls: Walls, solids: Solids | None):
        self.grid, self.solids, self._seams = grid, solids, Seams(grid, walls)
        self._kernels = viscosity_kernels(grid.loops, solids is not None)
        self._stress_kernels = stress_kernels(grid.loops, solids is not None)
        self._felt = grid.array(places(grid.dim, solids is not None))
        self._r, self._d, self._q, self._inv_diag = (grid.velocity() for _ in range(4))
        self.pressure, self._viscosity, self._dt = ViscousPressure(grid, solids, self._seams), 0.0, 0.0
        self._partials, self._scalars = room_for_partials(2), ti.ndarray(ti.f32, 4)
        self._nothing = ti.ndarray(ti.f32, 1)
        sides = [side for pair in walls.sides for side in pair]
        self._mirrors = float_vector(2 * grid.dim)(*map(self._mirror, sides))
        self._uneven = [
            (self._laid_on(i, side, k), k * grid.cells)
            for i, side in enumerate(sides)
            if len(set(map(self._mirror, side.patches))) > 1
            for k in range(grid.dim)
            if k != i // 2
        ]

    def _mirror(self, side: Side) -> float:
        """What is beyond a side, as a factor of what is before it."""
        return side.kind.mirror(False, self.grid.dx)

    def _laid_on(self, i: int, side: Side, component: int) -> LaidSide:
        """What a component has beyond a side, by number, whose parts hold the liquid otherwise than the rest."""
        plane = Plane(self.grid, i // 2, i % 2, self.grid.place(component))
        return LaidSide(plane, side, lambda patch: Rule(self._mirror(patch)), GHOSTS, "mirror")

    def _mirror_parts(self) -> None:
        """Beyond parts of sides a direction is what is said of them."""
        for laid, offset in self._uneven:
            laid.lay(self._d, offset)

    def set_up(self, phi, viscosity: float, dt: float) -> None:
        """See where a liquid feels friction that acts for ``dt`` seconds.

        Args:
            phi: Distance to the surface, m, negative in the liquid.
            viscosity: Kinematic, m²/s.
            dt: Seconds.
        """
        grid, self._viscosity, self._dt = self.grid, viscosity, dt
        grid.require(phi=phi)
        others, wrap = self._others(), self._seams.wrap
        if self.solids is not None:
            for axis in range(grid.dim):
                self._stress_kernels.find_places(self._r, self._q, axis, *others, wrap)
        self._stress_kernels.set_up(phi, self._felt, self._inv_diag, self._r, self._q, self._step, *others, wrap)

    @property
    def _step(self) -> float:
        """How far it acts: viscosity · dt / dx²."""
        return self._dt * self._viscosity / self.grid.dx**2

    def _others(self) -> tuple[Any, ...]:
        grid = self.grid
        if self.solids is not None:
            return self.solids.arguments()
        return (*[self._nothing] * 4, grid.n, float_vector(grid.dim)(*grid.origin), grid.dx)

    def _arguments(self, velocity, phi) -> tuple[Any, ...]:
        arrays = velocity, self._r, self._d, self._q, self._inv_diag, phi, self._felt
        return *arrays, self._step, *self._others(), self._partials, self._scalars

    def press(self, velocity, phi, scale: float) -> None:
        """Let the pressure that has held friction act on a velocity, m/s, ``scale`` times its difference. After ``set_up``."""
        for again in range(1 if self.solids is None else 2):
            self._kernels.begin(*self._arguments(velocity, phi), self._mirrors, self._seams.wrap, again)
        self.pressure.press(velocity, scale, self._dt, phi, self._inv_diag, self._r)

    def diffuse(self, velocity, phi, max_iterations: int, room, open, kicked: float = 0.0) -> SolveResult:
        """Let friction act on a velocity, m/s, whose sides are filled. After ``set_up``.

        Args:
            velocity: Known within a cell of the liquid.
            phi: Distance to the surface, m, negative in the liquid.
            max_iterations: Give up after these.
            room: For the velocity as it is.
            open: How far faces are open, 0 to 1.
            kicked: The part of the step for which friction has acted as it did before, for what solids bear.
        """
        grid = self.grid
        grid.require(grid.dim, velocity=velocity, room=room, open=open)
        copy_values(velocity, room)
        arguments, mirrors = self._arguments(velocity, phi), (self._mirrors, self._seams.wrap)
        iterations, first, square, pushed, kept = 0, 0.0, math.inf, (1.0 - kicked) * self._viscosity, kicked
        for again, tolerance in enumerate((TOLERANCE,) if self.solids is None else (RELAXED, TOLERANCE)):
            if again and iterations >= max_iterations:
                break
            if again:
                self._seams.close(velocity, grid.dim)
                self.loads.keep(velocity, self._felt, pushed, kept, again=True)
                kept = 1.0
            self._kernels.begin(*arguments, *mirrors, again)
            self._mirror_parts()
            square = numbers_of(self._scalars)[_RR]
            first = max(first, square)
            while square > tolerance**2 * first and iterations < max_iterations:
                for _ in range(min(LOOK_EVERY, max_iterations - iterations)):
                    self._kernels.iterate(*arguments, *mirrors)
                    self._mirror_parts()
                    iterations += 1
                square = numbers_of(self._scalars)[_RR]
        if self.solids is not None:
            self._seams.close(velocity, grid.dim)
            self.loads.keep(velocity, self._felt, pushed, kept)
        share_friction(grid, velocity, room, phi, open, self._step, self._seams)
        status = Status.CONVERGED if square <= TOLERANCE**2 * first else Status.MAX_ITERATIONS
        status = status if math.isfinite(square) else Status.NOT_FINITE
        return SolveResult(iterations, math.sqrt(square / first) if first > 0 else 0.0, status, 0.0)

    def kept(self) -> dict[str, Any]:
        """What it is between two steps, by the names of ``LATER``."""
        borne = {"borne": self.loads.borne} if "loads" in vars(self) else {}
        return borne | ({"held": self.pressure.held} if self.pressure.there else {})

    def allocate_for(self, names: Container[str]) -> None:
        """Have room for what of it is ``kept`` by these names, and no pressure until that is there."""
        _ = self.loads if "borne" in names else None
        self.pressure.clear()
        self.pressure.there = "held" in names

    @functools.cached_property
    def loads(self) -> ViscousLoads:
        """What friction does to the solids, from the first use on."""
        assert self.solids is not None
        return ViscousLoads(self.grid, self.solids, self._seams)
