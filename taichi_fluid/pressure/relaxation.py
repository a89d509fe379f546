"""Relaxation: half sweeps of Gauss-Seidel over one colour of the checkerboard.

A cell has only neighbours of the other colour, so a half sweep is parallel and gives the same result everywhere.
"""

from .._ti import ti
from ..kernels import Array, kernel_family
from .poisson import neighbour_sum


@ti.func
def relaxed_at(x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), c, s):
    """The value that satisfies the equation of cell ``c``, its neighbours held."""
    return (rhs[c] + neighbour_sum(x, c, s)) * inv_diag[c]


@ti.func
def _relax_at(c, I, s, x: ti.template(), rhs: ti.template(), inv_diag: ti.template()):
    x[c] = relaxed_at(x, rhs, inv_diag, c, s)


@ti.func
def _start_at(c, I, s, x: ti.template(), rhs: ti.template(), inv_diag: ti.template()):
    x[c] = rhs[c] * inv_diag[c]


@kernel_family
def relaxation_kernels(loops):
    IntVector, each_of_colour = loops.IntVector, loops.each_of_colour

    @ti.kernel
    def relax(x: Array, rhs: Array, inv_diag: Array, n: IntVector, colour: ti.i32):
        each_of_colour(n, colour, _relax_at, (x, rhs, inv_diag))

    @ti.kernel
    def start_sweep(x: Array, rhs: Array, inv_diag: Array, n: IntVector):
        """One whole sweep, red then black, from x = 0 without having to set x to 0 first."""
        each_of_colour(n, 0, _start_at, (x, rhs, inv_diag))
        each_of_colour(n, 1, _relax_at, (x, rhs, inv_diag))

    return {"relax": relax, "start_sweep": start_sweep}
