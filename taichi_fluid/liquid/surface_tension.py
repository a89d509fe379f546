"""Surface tension: the pressure at the surface is the tension times the curvature, where each face is cut by it.

What particles say of the surface is rough from cell to cell, and a curvature is made of second differences. So it is that
of the level sets of a distance that is smoothed by what leaves parabolas and cubics as they are: of a ball those are balls still, and
the two cells beside a face have the curvatures between which the surface has its own. (Smoothed as by Brackbill, Kothe,
Zemach 1992; at the surface as by Gibou et al. 2002, without a layer in which a force would be spread out.)
"""

import numpy as np

from .._ti import argument, ti
from ..boundaries.solids import CutCells, Solids
from ..boundaries.walls import Walls
from ..grid import Grid, Scratch
from ..kernels import Array, cells_of, flat, kernel_family
from ..operators.differences import gradient_at
from ..operators.ghosts import across_seams
from ..pressure.system import part_to_surface
from .motion import distance_at, sampled_away
from .sides import Seams

REACH = 7
"""Cells from the surface within which its distance is smoothed."""
SURE = 0.6
"""Cells within which it is that of the level set: farther out that has kept what a flow makes of slopes."""
PASSES = 2
"""Passes of (1, 2, 1) / 4 of which the smoothing is made. With twice as many a drop that swings is calmer, but to ripples and necks of
some cells there is no tension, and drops that meet have ever more energy."""
LOST = 1.5
"""Smoothed distance, in cells, from which on a drop is too small to be seen."""


def _smoothing() -> list[float]:
    """Weights of a value and of those on either side: of waves of 4, 6, 8, 16, 32 cells 0.5, 0.84, 0.94, 0.996, 0.9997 is left.

    Passes of (1, 2, 1) / 4, and a sharpening that gives waves back up to the fourth order in their number: the shortest of
    the filters that are flattest at both ends (Herrmann 1971) which keep a cubic.
    """
    weights = np.array([-PASSES / 4, 1 + PASSES / 2, -PASSES / 4])
    for _ in range(PASSES):
        weights = np.convolve(weights, [0.25, 0.5, 0.25])
    return weights[PASSES + 1 :].tolist()


WEIGHTS = _smoothing()


@ti.func
def _smoothed_at(c, I, s, a: Array, out: Array, n, wrap, axis):
    """Along an axis; sides of the box are mirrors, or the axis is periodic. Where no distance is known there is nothing to smooth."""
    value = a[c]
    if ti.abs(value) < ti.f32(1.0 * REACH):
        value *= ti.f32(WEIGHTS[0])
        for k in ti.static(range(1, len(WEIGHTS))):
            below, above = I, I
            below[axis], above[axis] = I[axis] - k, I[axis] + k
            below, above = across_seams(below, n, wrap), across_seams(above, n, wrap)
            below[axis] = ti.min(ti.max(below[axis], 1 - below[axis]), n[axis])
            above[axis] = ti.max(ti.min(above[axis], 2 * n[axis] + 1 - above[axis]), 1)
            value += ti.f32(WEIGHTS[k]) * (a[flat(below, s)] + a[flat(above, s)])
    out[c] = value


@ti.func
def _mirror_at(c, I, s, phi: Array, out: Array, solids):
    """In a solid the distance is that of the image of the place: a surface meets a solid at a right angle too."""
    x = ti.cast(I, ti.f32) - ti.f32(0.5)
    d = distance_at(solids, x)
    out[c] = phi[c]
    if d < 0 and d > ti.f32(-1.0 * REACH):
        out[c] = sampled_away(phi, solids, x, ti.f32(-2.0) * d)


@ti.func
def _curvature_at(c, I, s, a: Array, out: Array, dx):
    """Div (g / |g|) of the gradient g, by central differences; 0 where there is none."""
    g = ti.f32(0.5) * gradient_at(a, c, s)
    square, laplacian, along = g.dot(g), ti.f32(0.0), ti.f32(0.0)
    for i in ti.static(range(s.n)):
        second = a[c + s[i]] - ti.f32(2.0) * a[c] + a[c - s[i]]
        laplacian += second
        along += g[i] * g[i] * second
        for j in ti.static(range(i)):
            mixed = a[c + s[i] + s[j]] + a[c - s[i] - s[j]] - a[c + s[i] - s[j]] - a[c - s[i] + s[j]]
            along += ti.f32(0.5) * g[i] * g[j] * mixed
    curvature = ti.f32(0.0)
    # A drop that the smoothing has taken away feels nothing.
    if square > ti.f32(1e-8) and a[c] < ti.f32(LOST):
        curvature = (laplacian * square - along) / (square * ti.sqrt(square))
        # Of the surface that this one is parallel to: a bump that has been smoothed away shall not feel that it lies
        # farther out, where curvatures are less, which would drive it on.
        away = ti.min(ti.max(a[c] / ti.sqrt(square), ti.f32(-1.0)), ti.f32(1.0))
        curvature /= ti.max(ti.f32(1.0) - curvature * away * ti.f32(1.0 / (s.n - 1)), ti.f32(0.25))
    # No drop is smaller than a cell.
    out[c] = ti.min(ti.max(curvature, ti.f32(-2.0)), ti.f32(2.0)) / dx


@argument
class _Surface:
    """A surface: its distance, its curvature, and the faces, as solids leave them and as the system weighs them."""

    phi: object
    curvature: object
    open: object
    weight: object
    inv_diag: object
    n: object


@ti.func
def _press_at(c, I, s, u: Array, surface, scale):
    for axis in ti.static(range(s.n)):
        face, below = c + axis * cells_of(s, surface.n), c - s[axis]
        upper, lower = surface.phi[c], surface.phi[below]
        if (upper < 0) != (lower < 0) and surface.weight[face] > 0:
            part = part_to_surface(upper, lower)
            wet, dry = surface.curvature[c], surface.curvature[below]
            sign = ti.f32(1.0)
            if lower < 0:
                wet, dry, sign = dry, wet, ti.f32(-1.0)
            pushed = sign * scale * (wet + part * (dry - wet)) * surface.weight[face] / surface.open[face]
            if surface.inv_diag[c] > 0 or surface.inv_diag[below] > 0:
                u[face] = u[face] + pushed


@kernel_family
def tension_kernels(loops):
    Index = loops.IntVector

    @ti.kernel
    def smooth(a: Array, out: Array, n: Index, wrap: Index, axis: ti.i32):
        loops.each_cell(n, _smoothed_at, (a, out, n, wrap, axis))

    @ti.kernel
    def find_curvature(a: Array, out: Array, n: Index, dx: ti.f32):
        loops.each_cell(n, _curvature_at, (a, out, dx))

    @ti.kernel
    def press(
        velocity: Array,
        phi: Array,
        curvature: Array,
        open: Array,
        weight: Array,
        inv_diag: Array,
        n: Index,
        scale: ti.f32,
    ):
        surface = _Surface(phi, curvature, open, weight, inv_diag, n)
        loops.each_cell_in(n * 0 + 1, n + 2, n, _press_at, (velocity, surface, scale))

    return smooth, find_curvature, press


@kernel_family
def mirror_kernels(loops, wraps):
    Index, Point = loops.IntVector, loops.FloatVector

    @ti.kernel
    def mirror(
        phi: Array,
        out: Array,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        period: Point,
    ):
        solids = CutCells(open, distance, owner, motions, n, origin, dx, period, wraps)
        loops.each_cell(n, _mirror_at, (phi, out, solids))

    return (mirror,)


class SurfaceTension:
    """Surface tension on one grid.

    Attributes:
        curvature: Of the surface at the centres beside it, 1/m, positive where the liquid is convex; after ``find``.

    Args:
        grid: A staggered grid.
        scratch: Arrays to work in.
        walls: Its sides; left out, no axis is periodic.
        solids: What stands in it.
    """

    def __init__(self, grid: Grid, scratch: Scratch, walls: Walls | None = None, solids: Solids | None = None):
        self.grid, self.curvature, self._scratch, self._seams = grid, grid.array(), scratch, Seams(grid, walls)
        self._kernels, self._solids = tension_kernels(grid.loops), solids

    def seen(self, phi):
        """The distance to a surface ``phi``, m, with its images in solids: in ``scratch.second`` if there are any."""
        if self._solids is None:
            return phi
        mirrors = mirror_kernels(self.grid.costly_loops, self._seams.any)
        mirrors.mirror(phi, self._scratch.second, *self._solids.arguments(), self._seams.period)
        self._seams.mirror(self._scratch.second)
        return self._scratch.second

    def find(self, distance) -> None:
        """Find the curvature of a surface, which meets sides, and solids where they are ``seen``, at a right angle.

        Args:
            distance: To it, in cells, as far as ``REACH`` of them, by what is ``SURE``: not in ``scratch.first`` or ``second``.
        """
        grid, scratch, a = self.grid, self._scratch, distance
        grid.require(grid.dim, distance=distance)
        for axis, out in enumerate((scratch.first, scratch.second, scratch.first)[-grid.dim :]):
            self._kernels.smooth(a, out, grid.n, self._seams.wrap, axis)
            a = out
        self._seams.mirror(a)
        self._kernels.find_curvature(a, self.curvature, grid.n, grid.dx)
        self._seams.close(self.curvature)

    def press(self, velocity, phi, open, system, scale: float) -> None:
        """Let the pressure at the surface, ``scale`` dx times its curvature, push the faces that it cuts.

        Args:
            velocity: What is about to be projected, m/s.
            phi: Distance to the surface, m.
            open: How far faces are open.
            system: What the pressure solves, set up for this surface.
            scale: dt · tension / (density · dx), m²/s.
        """
        arrays = phi, self.curvature, open, system.open, system.inv_diag
        self._kernels.press(velocity, *arrays, self.grid.n, scale)
