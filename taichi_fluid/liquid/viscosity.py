"""Viscosity of a liquid with a surface: an implicit solve that minimises what moving costs and friction takes.

The velocity after the step makes  ∫ |u - u*|² / 2 + dt ν |D u|² dV  over the liquid least, D u the rate of strain, so that
no stress acts on the surface without anything being said of it: honey turns and buckles as a whole. (Batty, Bridson 2008.)
Each term counts by the part of its own cube that is liquid, around a face, a centre or an edge. Faces within solids and on
sides have their velocity.
"""

import functools
import math

import numpy as np

from .._ti import argument, ti
from ..boundaries.profiles import GHOSTS, LaidSide, Plane, Rule
from ..boundaries.sides import Side
from ..boundaries.solids import CutCells, Solids
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import Array, Reduction, add, cells_of, copy_values, float_vector, kernel_family, numbers_of, strides_of
from ..kernels.reduce import room_for_partials
from ..operators.ghosts import wrap_if_periodic, wrap_pair
from ..physics.loads import NUMBERS, Rows, load_of, load_sum, no_load, rows_of
from ..pressure.residual import Status
from ..pressure.solver import SolveResult
from .sides import Seams
from .surface_friction import share_friction

TOLERANCE = 1e-4
"""Residual over that of the velocity as it was, L2."""
LOOK_EVERY = 4
"""Iterations between two looks at the residual."""
_RZ, _RR = 0, 1


@argument
class _Stress:
    """What the stress is made of: how much around each edge and each centre feels it, and dt ν / dx²."""

    phi: object
    felt: object
    n: object
    dx: object
    step: object

    @ti.func
    def part(self, phi):
        """Of a cube whose middle is at this distance from the surface, the part that is liquid."""
        return ti.min(ti.max(ti.f32(0.5) - phi / self.dx, ti.f32(0.0)), ti.f32(1.0))

    @ti.func
    def mass(self, c, s, axis: ti.template()):
        """Part that is liquid around the lower face of a cell along an axis."""
        return self.part(ti.f32(0.5) * (self.phi[c] + self.phi[c - s[axis]]))

    @ti.func
    def edge(self, c, s, i: ti.template(), j: ti.template()):
        """Part around the lower edge of a cell across two axes that is liquid and feels a stress."""
        return self.felt[c + ti.static(i + j - 1) * cells_of(s, self.n)]

    @ti.func
    def centre(self, c, s):
        """The same around the centre of a cell."""
        return self.felt[c + ti.static(s.n * (s.n - 1) // 2) * cells_of(s, self.n)]

    @ti.func
    def across(self, u: Array, c, s, i: ti.template(), j: ti.template()):
        """The stress along ``i`` on what lies across ``j``, at the lower edge of a cell."""
        one, two = c + i * cells_of(s, self.n), c + j * cells_of(s, self.n)
        return self.edge(c, s, i, j) * (u[one] - u[one - s[j]] + u[two] - u[two - s[i]])

    @ti.func
    def push(self, u: Array, c, s, axis: ti.template()):
        """What the stress adds to a velocity on the lower face of a cell along an axis, times its mass."""
        face, two = c + axis * cells_of(s, self.n), ti.f32(2.0)
        above, below = self.centre(c, s), self.centre(c - s[axis], s)
        total = two * (above * (u[face + s[axis]] - u[face]) - below * (u[face] - u[face - s[axis]]))
        for j in ti.static(range(s.n)):
            if ti.static(j != axis):
                total += self.across(u, c + s[j], s, axis, j) - self.across(u, c, s, axis, j)
        return self.step * total


@argument
class _Solids:
    """The solids, where they are ``given``, and which axes have no sides."""

    cut: object
    given: object
    wrap: object

    @ti.func
    def on_side(self, I, axis: ti.template()):
        """Whether the lower face of a cell of the box lies on a side."""
        return ti.cast(I[axis] == 1, ti.i32) * (1 - self.wrap[axis])

    @ti.func
    def leave(self, c, s, axis: ti.template()):
        """Whether a face is open at all."""
        free = ti.i32(1)
        if ti.static(self.given):
            free = ti.cast(self.cut.open[c + axis * cells_of(s, self.cut.n)] > 0, ti.i32)
        return free

    @ti.func
    def frees(self, c, I, s, axis: ti.template()):
        """Whether a face is solved for: open at all, and within the box, on no side of it."""
        free = self.leave(c, s, axis)
        for k in ti.static(range(s.n)):
            free = free & ti.cast((self.wrap[k] == 1) | ((I[k] >= 1) & (I[k] <= self.cut.n[k])), ti.i32)
        return free & (1 - self.on_side(I, axis))

    @ti.func
    def slip(self, c, s, axis: ti.template()):
        """Whether the liquid slips along what closes a face."""
        slips = ti.i32(0)
        if ti.static(self.given):
            if self.leave(c, s, axis) == 0:
                slips = ti.cast(self.cut.slips_at(c, s, axis) > 0, ti.i32)
        return slips


@ti.func
def _write_felt_at(c, I, s, stress, solids):
    """Where a closed face slips no stress is felt; the pressure keeps the liquid out. Beyond the box there are no faces.

    Nor is any felt where all faces around are held, as within a solid: beside a side of the box that moves otherwise it would be
    one that no liquid exerts.
    """
    part, cells, beyond = stress.part(stress.phi[c]), cells_of(s, stress.n), ti.cast(stress.n < I, ti.i32)
    if ti.static(solids.given):
        if beyond.sum() == 0:
            free = ti.i32(0)
            for i in ti.static(range(s.n)):
                upper = I
                upper[i] += 1
                free += solids.frees(c, I, s, i) + solids.frees(c + s[i], upper, s, i)
                if solids.slip(c, s, i) + solids.slip(c + s[i], s, i) > 0:
                    part = ti.f32(0.0)
            if free == 0:
                part = ti.f32(0.0)
    stress.felt[c + ti.static(s.n * (s.n - 1) // 2) * cells] = part
    for i in ti.static(range(s.n)):
        for j in ti.static(range(i)):
            around = stress.phi[c] + stress.phi[c - s[i]] + stress.phi[c - s[j]] + stress.phi[c - s[i] - s[j]]
            part = stress.part(ti.f32(0.25) * around)
            if ti.static(solids.given):
                free = ti.i32(0)
                for along, across in ti.static(((i, j), (j, i))):
                    before = I
                    before[across] -= 1
                    free += solids.frees(c, I, s, along) + solids.frees(c - s[across], before, s, along)
                    # Of the two faces that meet here one may lie beyond a side; what is along that is a face of the box.
                    inside = beyond.sum() - beyond[along]
                    slips = ti.i32(0)
                    if inside == 0:
                        slips += solids.slip(c, s, along)
                    if inside - beyond[across] == 0 and (I[across] > 1 or solids.wrap[across] == 1):
                        slips += solids.slip(c - s[across], s, along)
                    if slips > 0:
                        part = ti.f32(0.0)
                if free == 0:
                    part = ti.f32(0.0)
            stress.felt[c + ti.static(i + j - 1) * cells] = part


@ti.func
def _write_diagonal_at(c, I, s, stress, solids, inv_diag: Array):
    for axis in ti.static(range(s.n)):
        sides = ti.f32(2.0) * (stress.centre(c, s) + stress.centre(c - s[axis], s))
        for j in ti.static(range(s.n)):
            if ti.static(j != axis):
                sides += stress.edge(c + s[j], s, axis, j) + stress.edge(c, s, axis, j)
        diagonal, inverse = stress.mass(c, s, axis) + stress.step * sides, ti.f32(0.0)
        if solids.on_side(I, axis) == 0 and solids.leave(c, s, axis) == 1 and diagonal > ti.f32(1e-6):
            inverse = ti.f32(1.0) / diagonal
        inv_diag[c + axis * cells_of(s, stress.n)] = inverse


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
def _begin_at(c, I, s, search, stress):
    for axis in ti.static(range(s.n)):
        face, residual = c + axis * cells_of(s, search.n), ti.f32(0.0)
        if search.inv_diag[face] > 0:
            residual = stress.push(search.u, c, s, axis)
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


@ti.func
def _load_at(c, I, s, u: Array, stress, solids, rows):
    """What the stress pushes the closed faces of a cell with that belong to a solid: it takes as much from the liquid."""
    total = no_load()
    for axis in ti.static(range(s.n)):
        if solids.on_side(I, axis) == 0 and solids.leave(c, s, axis) == 0:
            row = solids.cut.row_at(c, s, axis)
            if rows.has(row):
                push = stress.push(u, c, s, axis)
                total += load_of(solids.cut, row, solids.cut.middle_of(I, axis), axis, push)
    return total


@kernel_family
def viscous_load_kernels(loops):
    Index, Point, write_sum = loops.IntVector, loops.FloatVector, load_sum(loops)

    @ti.kernel
    def sum_load(
        u: Array,
        phi: Array,
        felt: Array,
        begin: ti.i32,
        end: ti.i32,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        wrap: Index,
        partials: Array,
        out: Array,
    ):
        """Of stress over viscosity: by a velocity, m/s, times a length in 3D."""
        solids = _Solids(CutCells(open, distance, owner, motions, n, origin, dx), True, wrap)
        stress = _Stress(phi, felt, n, dx, ti.f32(1.0))
        loops.reduce(n, partials, Reduction(no_load(), add, _load_at, (u, stress, solids, Rows(begin, end))))
        write_sum(out, partials)

    return (sum_load,)


@kernel_family
def viscosity_kernels(loops, given):
    Index, Point, Sides = loops.IntVector, loops.FloatVector, float_vector(2 * loops.dim)
    each_cell, reduce_cells, reduced = loops.each_cell, loops.reduce_cells, loops.reduced

    @ti.kernel
    def set_up(
        phi: Array,
        felt: Array,
        inv_diag: Array,
        step: ti.f32,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        wrap: Index,
    ):
        stress = _Stress(phi, felt, n, dx, step)
        solids = _Solids(CutCells(open, distance, owner, motions, n, origin, dx), given, wrap)
        loops.each_cell_in(n * 0 + 1, n + 2, n, _write_felt_at, (stress, solids))
        for k in ti.static(range(loops.dim * (loops.dim - 1) // 2 + 1)):
            loops.each_side(n, wrap_if_periodic, (felt, k * cells_of(strides_of(n), n), n, wrap))
        each_cell(n, _write_diagonal_at, (stress, solids, inv_diag))

    @ti.kernel
    def begin(
        u: Array,
        r: Array,
        d: Array,
        q: Array,
        inv_diag: Array,
        phi: Array,
        felt: Array,
        n: Index,
        dx: ti.f32,
        step: ti.f32,
        partials: Array,
        scalars: Array,
        mirrors: Sides,
        wrap: Index,
    ):
        search, none = _Search(u, r, d, q, inv_diag, n), ti.Vector([ti.f32(0.0), ti.f32(0.0)])
        each_cell(n, _begin_at, (search, _Stress(phi, felt, n, dx, step)))
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
        n: Index,
        dx: ti.f32,
        step: ti.f32,
        partials: Array,
        scalars: Array,
        mirrors: Sides,
        wrap: Index,
    ):
        search, none = _Search(u, r, d, q, inv_diag, n), ti.Vector([ti.f32(0.0), ti.f32(0.0)])
        each_cell(n, _operate_at, (search, _Stress(phi, felt, n, dx, step)))
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

    return set_up, begin, iterate


class Viscosity:
    """Friction within a liquid on one grid.

    Args:
        grid: A staggered grid.
        walls: Its sides, along which the liquid sticks or slips.
        solids: What stands in it; a face that is open at all is free, so that friction is of first order there.
    """

    def __init__(self, grid: Grid, walls: Walls, solids: Solids | None):
        self.grid, self.solids, self._seams = grid, solids, Seams(grid, walls)
        self._kernels = viscosity_kernels(grid.loops, solids is not None)
        self._felt = grid.array(grid.dim * (grid.dim - 1) // 2 + 1)
        self._r, self._d, self._q, self._inv_diag = (grid.velocity() for _ in range(4))
        self._partials, self._scalars = room_for_partials(2), ti.ndarray(ti.f32, 4)
        self._nothing = ti.ndarray(ti.f32, 1)
        self._rubbed = None
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

    def diffuse(self, velocity, phi, viscosity: float, dt: float, max_iterations: int, room, open) -> SolveResult:
        """Let friction act on a velocity, m/s, whose sides are filled.

        Args:
            velocity: Known within a cell of the liquid.
            phi: Distance to the surface, m, negative in the liquid.
            viscosity: Kinematic, m²/s.
            dt: Seconds.
            max_iterations: Give up after these.
            room: For the velocity as it is.
            open: How far faces are open, 0 to 1.
        """
        grid, step = self.grid, dt * viscosity / self.grid.dx**2
        grid.require(phi=phi)
        grid.require(grid.dim, velocity=velocity, room=room, open=open)
        copy_values(velocity, room)
        others = (*[self._nothing] * 4, grid.n, float_vector(grid.dim)(*grid.origin), grid.dx)
        others = others if self.solids is None else self.solids.arguments()
        self._kernels.set_up(phi, self._felt, self._inv_diag, step, *others, self._seams.wrap)
        arrays = velocity, self._r, self._d, self._q, self._inv_diag, phi, self._felt
        arguments = (*arrays, grid.n, grid.dx, step, self._partials, self._scalars)
        mirrors = self._mirrors, self._seams.wrap
        self._kernels.begin(*arguments, *mirrors)
        self._mirror_parts()
        first = square = numbers_of(self._scalars)[_RR]
        iterations = 0
        while square > TOLERANCE**2 * first and iterations < max_iterations:
            for _ in range(min(LOOK_EVERY, max_iterations - iterations)):
                self._kernels.iterate(*arguments, *mirrors)
                self._mirror_parts()
                iterations += 1
            square = numbers_of(self._scalars)[_RR]
        if self.solids is not None:
            copy_values(velocity, self.rubbed)
            self._seams.close(self.rubbed, grid.dim)
        share_friction(grid, velocity, room, phi, open, step, self._seams)
        status = Status.CONVERGED if square <= TOLERANCE**2 * first else Status.MAX_ITERATIONS
        status = status if math.isfinite(square) else Status.NOT_FINITE
        return SolveResult(iterations, math.sqrt(square / first) if first > 0 else 0.0, status, 0.0)

    @property
    def rubbed(self):
        """The velocity that ``diffuse`` has left beside solids, by which they know what they bear; made at its first use."""
        if self._rubbed is None:
            self._rubbed = self.grid.velocity()
        return self._rubbed

    @functools.cached_property
    def _sums(self):
        """Room for a load, and for what it is summed from."""
        return room_for_partials(NUMBERS), ti.ndarray(ti.f32, NUMBERS)

    def load(self, index: int, phi, viscosity: float) -> np.ndarray:
        """Force, N (2D: N/m), and torque about its pivot of friction on the solid of a number in the last step: two rows of three.

        Args:
            index: Which solid.
            phi: Distance to the surface then, m.
            viscosity: Dynamic, Pa s.
        """
        assert self.solids is not None
        solids, (partials, out) = self.solids.arguments(), self._sums
        self._kernels.set_up(phi, self._felt, self._inv_diag, 1.0, *solids, self._seams.wrap)
        rows = rows_of(self.solids, index)
        viscous_load_kernels(self.grid.costly_loops).sum_load(
            self.rubbed, phi, self._felt, *rows, *solids, self._seams.wrap, partials, out
        )
        scale = viscosity * self.grid.dx ** (self.grid.dim - 2)
        return scale * np.array(numbers_of(out)).reshape(2, 3)
