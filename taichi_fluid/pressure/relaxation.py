"""Relaxation: half sweeps of Gauss-Seidel over one colour of the checkerboard.

A cell has only neighbours of the other colour, so a half sweep is parallel and gives the same result everywhere. Where
a periodic axis is odd, two cells of one colour meet at its seam; they see each other as they were before the sweep.
"""

from .._ti import ti
from ..kernels import Array, kernel_family
from ..operators.ghosts import wrap_if_periodic
from .poisson import neighbour_sum


@ti.func
def relaxed_at(
    x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), open: ti.template(), c, s, n, cut: ti.template()
):
    """The value that satisfies the equation of cell ``c``, its neighbours held."""
    return (rhs[c] + neighbour_sum(x, inv_diag, open, c, s, n, cut)) * inv_diag[c]


@ti.func
def _relax_at(
    c, I, s, x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), open: ti.template(), n, cut: ti.template()
):
    x[c] = relaxed_at(x, rhs, inv_diag, open, c, s, n, cut)


@ti.func
def _start_at(c, I, s, x: ti.template(), rhs: ti.template(), inv_diag: ti.template()):
    x[c] = rhs[c] * inv_diag[c]


@ti.func
def _clear_at(c, I, s, x: ti.template()):
    x[c] = ti.f32(0.0)


@kernel_family
def relaxation_kernels(loops, coupling):
    IntVector, each_of_colour, each_on_plane = loops.IntVector, loops.each_of_colour, loops.each_on_plane
    each_cell_in, dim = loops.each_cell_in, loops.dim
    cut, wraps = coupling

    @ti.kernel
    def relax(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, wrap: IntVector, colour: ti.i32):
        each_of_colour(n, colour, _relax_at, (x, rhs, inv_diag, open, n, cut))
        if ti.static(wraps):
            for axis in ti.static(range(dim)):
                each_on_plane(n, axis, wrap_if_periodic, (x, 0, n, wrap, axis))

    @ti.kernel
    def start_sweep(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, wrap: IntVector):
        """One whole sweep, red then black, from x = 0 without having to set x to 0 first."""
        if ti.static(wraps):
            each_cell_in(n * 0, n + 2, n, _clear_at, (x,))
        each_of_colour(n, 0, _start_at, (x, rhs, inv_diag))
        if ti.static(wraps):
            for axis in ti.static(range(dim)):
                each_on_plane(n, axis, wrap_if_periodic, (x, 0, n, wrap, axis))
        each_of_colour(n, 1, _relax_at, (x, rhs, inv_diag, open, n, cut))
        if ti.static(wraps):
            for axis in ti.static(range(dim)):
                each_on_plane(n, axis, wrap_if_periodic, (x, 0, n, wrap, axis))

    return {"relax": relax, "start_sweep": start_sweep}
