"""Relaxation: half sweeps of Gauss-Seidel over one colour of the checkerboard.

A cell has only neighbours of the other colour, so a half sweep is parallel and gives the same result everywhere. Where
a periodic axis is odd, two cells of one colour meet at its seam; they see each other as they were before the sweep.
"""

from .._ti import ti
from ..kernels import BLACK, RED, Array, kernel_family
from ..operators.ghosts import wrap_if_periodic, wrap_or_clear
from .poisson import neighbour_sum


@ti.func
def relaxed_at(
    x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), open: ti.template(), c, s, n, cut: ti.template()
):
    """The value that satisfies the equation of cell ``c``, its neighbours held."""
    return (rhs[c] + neighbour_sum(x, inv_diag, open, c, s, n, cut)) * inv_diag[c]


@ti.func
def relax_at(
    c, I, s, x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), open: ti.template(), n, cut: ti.template()
):
    """Satisfy the equation of cell ``c``."""
    x[c] = relaxed_at(x, rhs, inv_diag, open, c, s, n, cut)


@ti.func
def scale_at(c, I, s, r: ti.template(), inv_diag: ti.template(), z: ti.template()):
    """What half a sweep makes of 0."""
    z[c] = r[c] * inv_diag[c]


@kernel_family
def relaxation_kernels(loops, coupling):
    IntVector, each_of_colour, each_on_plane = loops.IntVector, loops.each_of_colour, loops.each_on_plane
    in_turn, dim = loops.in_turn, loops.dim
    cut, wraps = coupling

    @ti.func
    def fill_across(x: ti.template(), n, wrap, clear: ti.template()):
        """Ghosts of periodic axes; ``clear`` sets those of the others to 0."""
        for axis in ti.static(range(dim)):
            if ti.static(clear):
                each_on_plane(n, axis, wrap_or_clear, (x, n, wrap, axis))
            else:
                each_on_plane(n, axis, wrap_if_periodic, (x, 0, n, wrap, axis))

    @ti.func
    def relax_colours(
        x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), open: ti.template(), n, wrap,
        colours: ti.template(),
    ):  # fmt: skip
        """Half sweeps one after the other, each with the ghosts of periodic axes filled behind it."""
        for colour in ti.static(colours):
            each_of_colour(n, colour, relax_at, (x, rhs, inv_diag, open, n, cut))
            fill_across(x, n, wrap, False)

    @ti.func
    def scale_colour(x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), n, wrap, colour: ti.template()):
        each_of_colour(n, colour, scale_at, (rhs, inv_diag, x))
        # Across the seam of an odd axis lies a cell of the same colour, which is still 0.
        fill_across(x, n, wrap * (1 - n % 2), True)

    @ti.kernel
    def sweep(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, wrap: IntVector):
        """Red, then black."""
        if ti.static(wraps):
            relax_colours(x, rhs, inv_diag, open, n, wrap, (RED, BLACK))
        else:
            in_turn(
                n,
                (
                    (RED, relax_at, (x, rhs, inv_diag, open, n, cut)),
                    (BLACK, relax_at, (x, rhs, inv_diag, open, n, cut)),
                ),
                (),
            )

    @ti.kernel
    def first_sweep(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, wrap: IntVector):
        """Red, then black, from x = 0, whatever it holds."""
        if ti.static(wraps):
            scale_colour(x, rhs, inv_diag, n, wrap, RED)
            relax_colours(x, rhs, inv_diag, open, n, wrap, (BLACK,))
        else:
            in_turn(n, ((RED, scale_at, (rhs, inv_diag, x)), (BLACK, relax_at, (x, rhs, inv_diag, open, n, cut))), ())

    @ti.kernel
    def start(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, wrap: IntVector):
        """Black, red, black, from x = 0, whatever it holds."""
        if ti.static(wraps):
            scale_colour(x, rhs, inv_diag, n, wrap, BLACK)
            relax_colours(x, rhs, inv_diag, open, n, wrap, (RED, BLACK))
        else:
            in_turn(
                n,
                (
                    (BLACK, scale_at, (rhs, inv_diag, x)),
                    (RED, relax_at, (x, rhs, inv_diag, open, n, cut)),
                    (BLACK, relax_at, (x, rhs, inv_diag, open, n, cut)),
                ),
                (),
            )

    @ti.kernel
    def smooth(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, wrap: IntVector):
        """Black, red, black; where no axis is periodic, better in turn with what comes before."""
        relax_colours(x, rhs, inv_diag, open, n, wrap, (BLACK, RED, BLACK))

    return {"sweep": sweep, "first_sweep": first_sweep, "start": start, "smooth": smooth}
