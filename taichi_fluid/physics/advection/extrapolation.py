"""The velocity to come, as far as two that have been tell it."""

from ..._ti import ti
from ...grid import Grid
from ...kernels import Array, cells_of, kernel_family


@ti.func
def _extrapolate_at(c, I, s, velocity: Array, earlier: Array, n):
    for axis in ti.static(range(n.n)):
        face = c + axis * cells_of(s, n)
        earlier[face] = velocity[face] + (velocity[face] - earlier[face])


@kernel_family
def extrapolation_kernels(loops):
    IntVector = loops.IntVector

    @ti.kernel
    def extrapolate(velocity: Array, earlier: Array, n: IntVector):
        loops.each_cell_in(n * 0, n + 2, n, _extrapolate_at, (velocity, earlier, n))

    return {"extrapolate": extrapolate}


def extrapolate(grid: Grid, velocity, earlier) -> None:
    """Make of a velocity that was ``earlier`` than another, m/s, ghosts too, that which is as much later."""
    grid.require(grid.dim, velocity=velocity, earlier=earlier)
    extrapolation_kernels(grid.loops).extrapolate(velocity, earlier, grid.n)
