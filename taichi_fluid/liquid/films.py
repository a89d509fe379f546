"""Where a liquid is a film or a sheet, in which particles say little of how its velocity changes across a cell."""

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, fast_min, kernel_family
from ..operators.ghosts import around_axis
from .sides import Seams

THIN, THICK = 0.75, 0.95
"""How deep a film lies at most, in cells, and how deep at least what is none: little less than is known of that. A sheet in the air is
twice as thick."""


@ti.func
def _measure_at(c, I, s, phi: Array, firm: Array, n, wrap, dx):
    deepest = phi[c]
    if deepest > ti.f32(-THICK) * dx:
        for axis in ti.static(range(s.n)):
            for k in ti.static(range(1, 3)):
                below, above = ti.min(k, I[axis]), ti.min(k, n[axis] + 1 - I[axis])
                if wrap[axis] == 1:
                    below = I[axis] - around_axis(I[axis] - k, n[axis])
                    above = around_axis(I[axis] + k, n[axis]) - I[axis]
                deepest = fast_min(deepest, phi[c - below * s[axis]])
                deepest = fast_min(deepest, phi[c + above * s[axis]])
    depth = (-deepest / dx - ti.f32(THIN)) / ti.f32(THICK - THIN)
    firm[c] = ti.min(ti.max(depth, ti.f32(0.0)), ti.f32(1.0))


@kernel_family
def film_kernels(loops):
    IntVector = loops.IntVector

    @ti.kernel
    def measure(phi: Array, firm: Array, n: IntVector, wrap: IntVector, dx: ti.f32):
        loops.each_cell(n, _measure_at, (phi, firm, n, wrap, dx))

    return (measure,)


def find_films(grid: Grid, phi, firm, seams: Seams) -> None:
    """Set ``firm`` to 0 in the cells of what is thin below a surface ``phi``, m, to 1 in those of what is not, and between in between.

    It is as thin as the deepest place within two cells along an axis is deep: so a surface of what is deep is not thin,
    wherever it passes between rows of cells.
    """
    grid.require(phi=phi, firm=firm)
    film_kernels(grid.loops).measure(phi, firm, grid.n, seams.wrap, grid.dx)
