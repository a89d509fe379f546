"""What advection-reflection takes beside advection and projection: the velocity at the end of a step, foreseen."""

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, cells_of, kernel_family


@ti.func
def _extrapolate_at(c, I, s, before: Array, now: Array, n):
    for axis in ti.static(range(n.n)):
        place = c + axis * cells_of(s, n)
        before[place] = ti.f32(2.0) * now[place] - before[place]


@kernel_family
def extrapolation_kernels(loops):
    IntVector, each_cell_in = loops.IntVector, loops.each_cell_in

    @ti.kernel
    def extrapolate(before: Array, now: Array, n: IntVector):
        each_cell_in(n * 0, n + 2, n, _extrapolate_at, (before, now, n))

    return {"extrapolate": extrapolate}


def extrapolate(grid: Grid, before, now) -> None:
    """``before`` becomes the velocity as long after ``now`` as it was before it, ghosts included: 2 now - before.

    Args:
        grid: The grid.
        before: A velocity, m/s, with ``dim`` components.
        now: Another, later one.
    """
    grid.require(grid.dim, before=before, now=now)
    extrapolation_kernels(grid.loops).extrapolate(before, now, grid.n)
