"""Surface tension: the pressure at the surface is the tension times the curvature, where each face is cut by it.

What particles say of the surface is rough from cell to cell, and a curvature is made of second differences. So it is that
of the level sets of a distance cut off at both sides and blurred: of a ball those are balls still, whatever the blur, and
the two cells beside a face have the curvatures between which the surface has its own. (Blurred as by Brackbill, Kothe,
Zemach 1992; at the surface as by Gibou et al. 2002, without a layer in which a force would be spread out.)
"""

from .._ti import argument, ti
from ..grid import Grid, Scratch
from ..kernels import Array, cells_of, flat, kernel_family
from ..operators.differences import gradient_at
from ..pressure.system import part_to_surface
from .particle_surface import BELOW

PASSES = 2
"""Passes of (1, 2, 1) / 4 along each axis: a blur of a cell."""
LOST = 1.5
"""Blurred distance, over what it was cut off at, from which on a drop is too small to be seen."""


@ti.func
def _blurred_at(c, I, s, a: Array, out: Array, n, axis, most):
    """``most`` is what values above it count as."""
    below, above = I, I
    below[axis] = ti.max(I[axis] - 1, 1)
    above[axis] = ti.min(I[axis] + 1, n[axis])
    beside = ti.min(a[flat(below, s)], most) + ti.min(a[flat(above, s)], most)
    out[c] = ti.f32(0.25) * beside + ti.f32(0.5) * ti.min(a[c], most)


@ti.func
def _copied_at(c, I, s, a: Array, out: Array, n):
    out[c] = a[flat(ti.min(ti.max(I, 1), n), s)]


@ti.func
def _straightened_at(c, I, s, a: Array, out: Array, n, most):
    """What cutting off and blurring have bent, nearly a distance again: second differences of a bend lose 4 %."""
    part = a[flat(ti.min(ti.max(I, 1), n), s)] / most
    part = ti.min(ti.max(part, ti.f32(-0.99)), ti.f32(0.99))
    out[c] = most * ti.f32(0.5) * ti.log((ti.f32(1.0) + part) / (ti.f32(1.0) - part))


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
    if square > ti.f32(1e-8) * dx * dx:
        curvature = (laplacian * square - along) / (square * ti.sqrt(square) * dx)
        # Of the surface that this one is parallel to: a bump that the blur has taken away shall not feel that it lies
        # farther out, where curvatures are less, which would drive it on. A drop that it has taken away feels nothing.
        # The blur itself moves a ball's surface inwards, by half its variance times the curvature.
        away = a[c] / ti.sqrt(square) - ti.f32(0.25 * PASSES) * curvature * dx
        away = ti.min(ti.max(away, ti.f32(-1.0)), ti.f32(1.0)) * dx
        curvature = curvature / ti.max(ti.f32(1.0) - curvature * away * ti.f32(1.0 / (s.n - 1)), ti.f32(0.25))
        if a[c] > ti.f32(BELOW * LOST) * dx:
            curvature = ti.f32(0.0)
    # No drop is smaller than a cell.
    out[c] = ti.min(ti.max(curvature, ti.f32(-2.0) / dx), ti.f32(2.0) / dx)


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
    def blur(a: Array, out: Array, n: Index, axis: ti.i32, most: ti.f32):
        loops.each_cell(n, _blurred_at, (a, out, n, axis, most))

    @ti.kernel
    def find_curvature(a: Array, b: Array, out: Array, n: Index, dx: ti.f32):
        loops.each_cell_in(n * 0, n + 2, n, _straightened_at, (a, b, n, ti.f32(BELOW) * dx))
        loops.each_cell(n, _curvature_at, (b, a, dx))
        loops.each_cell_in(n * 0, n + 2, n, _copied_at, (a, out, n))

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

    return blur, find_curvature, press


class SurfaceTension:
    """Surface tension on one grid.

    Attributes:
        curvature: Of the surface at the centres beside it, 1/m, positive where the liquid is convex; after ``find``.

    Args:
        grid: A staggered grid.
        scratch: Arrays to work in.
    """

    def __init__(self, grid: Grid, scratch: Scratch):
        self.grid, self.curvature, self._scratch = grid, grid.array(), scratch
        self._kernels = tension_kernels(grid.loops)

    def find(self, phi) -> None:
        """Find the curvature of the surface whose distance is ``phi``, m, which meets the sides at a right angle."""
        grid, a, b = self.grid, self._scratch.first, self._scratch.second
        grid.require(phi=phi)
        # As far in the air as in the liquid: else the blur would move the surface.
        most = BELOW * grid.dx
        self._kernels.blur(phi, a, grid.n, 0, most)
        for step in range(1, PASSES * grid.dim):
            self._kernels.blur(a, b, grid.n, step % grid.dim, most)
            a, b = b, a
        self._kernels.find_curvature(a, b, self.curvature, grid.n, grid.dx)

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
