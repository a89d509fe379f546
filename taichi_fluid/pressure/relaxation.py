"""Relaxation: half sweeps of Gauss-Seidel over one colour of the checkerboard.

A cell has only neighbours of the other colour, so a half sweep is parallel and gives the same result everywhere. Where
a periodic axis is odd, two cells of one colour meet at its seam; they see each other as they were before the sweep.
"""

from .._ti import ti
from ..kernels import Array, cells_of, kernel_family
from ..operators.ghosts import wrap_if_periodic, wrap_or_clear
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
def _first_sweep_at(
    c, I, s, x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), open: ti.template(), n, cut: ti.template()
):
    """Where a red value is rhs · inv_diag, a black one need not wait for its red neighbours."""
    value = rhs[c]
    if I.sum() & 1:
        weigh = 0
        if ti.static(cut):
            weigh = ti.cast(inv_diag[c] != ti.f32(0.5 / s.n), ti.i32)
        for a in ti.static(range(s.n)):
            for side in ti.static(range(2)):
                neighbour = c + (2 * side - 1) * s[a]
                red = rhs[neighbour] * inv_diag[neighbour]
                if ti.static(cut):
                    if weigh == 1:
                        red *= open[c + a * cells_of(s, n) + side * s[a]]
                value += red
    x[c] = value * inv_diag[c]


@kernel_family
def relaxation_kernels(loops, coupling):
    IntVector, each_of_colour, each_on_plane = loops.IntVector, loops.each_of_colour, loops.each_on_plane
    each_cell, dim = loops.each_cell, loops.dim
    cut, wraps = coupling

    @ti.kernel
    def relax(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, wrap: IntVector, colour: ti.i32):
        each_of_colour(n, colour, _relax_at, (x, rhs, inv_diag, open, n, cut))
        if ti.static(wraps):
            for axis in ti.static(range(dim)):
                each_on_plane(n, axis, wrap_if_periodic, (x, 0, n, wrap, axis))

    @ti.kernel
    def first_sweep(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, wrap: IntVector):
        """One whole sweep, red then black, from x = 0 and in one pass."""
        if ti.static(wraps):
            for axis in ti.static(range(dim)):
                # Across the seam of an odd axis lies a cell of the same colour, which is still 0.
                each_on_plane(n, axis, wrap_or_clear, (rhs, n, wrap * (1 - n % 2), axis))
        each_cell(n, _first_sweep_at, (x, rhs, inv_diag, open, n, cut))
        if ti.static(wraps):
            for axis in ti.static(range(dim)):
                each_on_plane(n, axis, wrap_if_periodic, (x, 0, n, wrap, axis))

    return {"relax": relax, "first_sweep": first_sweep}
