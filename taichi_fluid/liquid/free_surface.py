"""Projection of a liquid: the pressure is 0 at its surface, wherever between two centres that is.

Ghost fluid at the surface (Gibou, Fedkiw, Cheng, Kang 2002) together with cut cells at solids (Batty, Bertails, Bridson
2007; Ng, Min, Gibou 2009): of second order in the pressure at both.
"""

from typing import Any

from .._ti import argument, loaded, ti
from ..boundaries.solids import Solids
from ..boundaries.walls import Walls
from ..grid import Grid, Scratch
from ..kernels import Array, Operator, along_strip, cells_of, fast_max, kernel_family, lane, write_strip
from ..pressure.projection import Projection
from ..pressure.solver import SolveResult, Status

NEARER = 0.1
"""Part of the tolerance to which a first guess is improved that meets it as it is."""
FINEST = 1e-6
"""Relative residual below which nothing is improved: about what f32 comes to."""


@argument
class _Pressed:
    """A velocity, the pressure that changes it, and the faces: open as solids leave them, and as the system has them."""

    u: object
    p: object
    open: object
    weight: object
    inv_diag: object
    n: object
    scale: object


@ti.func
def _pressed_at(c, I, s, pressed, axis: ti.template()):
    """The velocity of a face that has liquid beside it and is not closed, changed by the pressure; else as it was."""
    face = c + axis * cells_of(s, pressed.n)
    wet = (pressed.inv_diag[c] > 0) | (pressed.inv_diag[c - s[axis]] > 0)
    # The system weighs a face by its open part over the part of the way that is in the liquid.
    slope = (pressed.p[c] - pressed.p[c - s[axis]]) * pressed.weight[face] / pressed.open[face]
    changed = pressed.u[face] - pressed.scale * slope
    return ti.select(wet & (pressed.weight[face] > 0), changed, pressed.u[face])


@ti.func
def _is_any_wet(k, c, s, inv_diag: Array, found: ti.template()):
    at = lane(c, k)
    nearest = inv_diag[at]
    for axis in ti.static(range(s.n)):
        nearest = fast_max(nearest, inv_diag[at - s[axis]])
    found |= ti.cast(nearest > 0, ti.i32)


@ti.func
def _press_strip(c, I, m, s, given, width: ti.template()):
    """One component after the other, as of all at once a compiler makes no vectors; none where there is no liquid."""
    pressed, n, found = loaded(given), given.n, ti.i32(0)
    along_strip(m, width, _is_any_wet, (c, s, given.inv_diag, found))
    if found == 1:
        for axis in ti.static(range(s.n)):
            write_strip(c, I, m, s, n, ((given.u, axis),), width, Operator(_pressed_at, (pressed, axis)))


@ti.func
def _fastest_of(c, s, u: Array, phi: Array, open: Array, n):
    """How fast the fastest face of a cell is, of those that are whole or that liquid is beyond."""
    fastest = ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        for end in ti.static(range(2)):
            face, beyond = c + end * s[axis] + axis * cells_of(s, n), c + (2 * end - 1) * s[axis]
            if open[face] == 1 or (open[face] > 0 and phi[beyond] < 0):
                fastest = ti.max(fastest, ti.abs(u[face]))
    return fastest


@ti.func
def _hold_back_at(c, I, s, u: Array, p: Array, phi: Array, open: Array, n):
    """Through what a solid leaves of a face, air is drawn in no faster than the liquid goes that draws it.

    A cell past an edge that hardly anything is in is liquid all the same, and has as much come in as the stream takes along. Where but
    a sliver of a face is open to the air, that was several times as fast as all else.
    """
    for axis in ti.static(range(s.n)):
        face, below = c + axis * cells_of(s, n), c - s[axis]
        if open[face] > 0 and open[face] < 1 and (phi[c] < 0) != (phi[below] < 0):
            wet, sign = ti.select(phi[c] < 0, c, below), ti.select(phi[c] < 0, ti.f32(1.0), ti.f32(-1.0))
            if p[wet] < 0:
                u[face] = sign * ti.min(sign * u[face], _fastest_of(wet, s, u, phi, open, n))


@kernel_family
def surface_gradient_kernels(loops):
    IntVector = loops.IntVector

    @ti.kernel
    def hold_back(velocity: Array, pressure: Array, phi: Array, open: Array, n: IntVector):
        # In place: faces that others go by stay as they are.
        loops.each_cell(n, _hold_back_at, (velocity, pressure, phi, open, n))

    @ti.kernel
    def subtract(
        velocity: Array, pressure: Array, open: Array, weight: Array, inv_diag: Array, n: IntVector, scale: ti.f32
    ):
        pressed = _Pressed(velocity, pressure, open, weight, inv_diag, n, scale)
        loops.each_strip_to(n + 2, n, loops.width, _press_strip, (pressed, loops.width))

    return subtract, hold_back


class FreeSurface(Projection):
    """Projects the velocity of a liquid with a surface; what lies in the air stays as it is.

    Attributes:
        open: How far each face is open, as solids and the parts of sides leave it.

    Args:
        grid: A staggered grid.
        walls: Its sides: closed, or open to the air.
        scratch: Arrays to work in.
        method: Of the pressure solver.
        solids: What stands in it.
    """

    def __init__(self, grid: Grid, walls: Walls, scratch: Scratch, method: str = "auto", solids: Solids | None = None):
        self.open: Any = None
        self._parted = False
        self._surface_gradient = surface_gradient_kernels(grid.loops)
        super().__init__(grid, walls, scratch, method, solids, cut=True)

    def update(self, phi=None) -> None:
        """Set the solver up for a surface: ``phi``, m, is its distance at centres, negative in the liquid.

        Without one, look whether solids part the box: only there can a liquid be closed in beside one that touches air.
        """
        sides = self.walls.pressure_sides()
        if phi is None or (self.solids is not None and self.solids.moves):
            self.open = self._opened()
            if self.open is None:
                self.open = self.grid.velocity()
                self.open.fill(1.0)
        if phi is not None:
            self.solver.setup_surface(self.open, phi, sides, self._parted, walled=self.solids is not None)
        elif self.solids is not None:
            self.solver.setup_open(self.open, sides)
            self._parted = self.solids.moves or self.solver.regions > 1

    def solve(self, pressure, tolerance: float, max_iterations: int) -> SolveResult:
        """As any projection does, but a guess that is good enough is made better.

        Of water at rest the pressure of the step before is. What that lacks, wherever it is, would push the same places the same
        way in each step until it no longer is.
        """
        result, nearer = super().solve(pressure, tolerance, max_iterations), max(NEARER * tolerance, FINEST)
        if result.iterations == 0 and result.status is Status.CONVERGED and result.relative_residual > nearer:
            better = super().solve(pressure, nearer, max_iterations)
            result = better._replace(status=result.status)
        return result

    def subtract_gradient(self, velocity, pressure, scale: float) -> None:
        """Take ``scale`` times the difference of the pressure, over the part of a way in the liquid, off the velocity."""
        self.grid.require(pressure=pressure)
        self.grid.require(self.grid.dim, velocity=velocity)
        system = self.solver.system
        self._surface_gradient.subtract(velocity, pressure, self.open, system.open, system.inv_diag, self.grid.n, scale)

    def hold_back(self, velocity, pressure, phi) -> None:
        """Let no air be drawn in past the edges of solids faster than the liquid goes that draws it, by a velocity that was projected."""
        self._surface_gradient.hold_back(velocity, pressure, phi, self.open, self.grid.n)
