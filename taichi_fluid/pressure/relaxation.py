"""Relaxation: half sweeps of Gauss-Seidel over one colour of the checkerboard.

A cell has only neighbours of the other colour, so a half sweep is parallel and gives the same result everywhere. Where
a periodic axis is odd, two cells of one colour meet at its seam; they see each other as they were before the sweep.
"""

from .._ti import loaded, ti, traced
from ..kernels import BLACK, RED, Array, kernel_family
from ..operators.ghosts import wrap_if_periodic, wrap_or_clear
from .null_space import subtract_at
from .system import System, neighbour_sum, rows_of

COARSEST_SWEEPS = 8
"""Sweeps on the coarsest level, which is at most two cells wide along every axis, after black alone."""


@ti.func
def relaxed_at(c, s, system):
    """The value that satisfies the equation of cell ``c``, its neighbours held."""
    return (system.rhs[c] + neighbour_sum(c, s, system)) * system.inv_diag[c]


@ti.func
def relax_at(c, I, s, system):
    """Satisfy the equation of cell ``c``."""
    system.x[c] = relaxed_at(c, s, system)


@ti.func
def scale_at(c, I, s, system):
    """What half a sweep makes of 0."""
    system.x[c] = system.rhs[c] * system.inv_diag[c]


DOWN = ((BLACK, scale_at), (RED, relax_at), (BLACK, relax_at))
"""Half sweeps before a restriction, from x = 0."""
BACK = ((BLACK, relax_at), (RED, relax_at), (BLACK, relax_at))
"""Those after a prolongation."""


@traced
def passes_of(system, halves):
    """Half sweeps as ``wavefront`` takes them; where nothing of a row is solved for ``x`` is 0, and stays so."""
    return tuple((colour, body, (system,), rows_of(system)) for colour, body in halves)


@ti.func
def _relax_colour_at(c, I, s, colour, system):
    if (I.sum() & 1) == colour:
        relax_at(c, I, s, system)


@ti.func
def _clear_at(c, I, s, x: Array):
    x[c] = ti.f32(0.0)


@ti.func
def _count_at(c, I, s, x: Array, inv_diag: Array, total: ti.template(), count: ti.template()):
    if inv_diag[c] > 0:
        total += x[c]
        count += ti.f32(1.0)


@kernel_family
def relaxation_kernels(loops, coupling):
    IntVector, each_side, each_cell_alone = loops.IntVector, loops.each_side, loops.each_cell_alone
    cut, wraps = coupling

    @ti.func
    def half_sweeps(given, wrap, halves: ti.template()):
        """One after the other, the ghosts of periodic axes filled behind each; where there are none in one traverse."""
        if ti.static(wraps):
            system = loaded(given)
            for colour, body in ti.static(halves):
                loops.each_of_colour(system.n, colour, body, (system,))
                if ti.static(body == scale_at):
                    # Across the seam of an odd axis lies a cell of the same colour, which is still 0.
                    each_side(system.n, wrap_or_clear, (system.x, system.n, wrap * (1 - system.n % 2)))
                else:
                    each_side(system.n, wrap_if_periodic, (system.x, 0, system.n, wrap))
        else:
            loops.wavefront(given.n, passes_of(given, halves), ())

    @ti.kernel
    def sweep(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, wrap: IntVector):
        """Red, then black."""
        half_sweeps(System(inv_diag, n, open, cut, x, rhs), wrap, ((RED, relax_at), (BLACK, relax_at)))

    @ti.kernel
    def first_sweep(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, wrap: IntVector):
        """Red, then black, from x = 0, whatever it holds."""
        half_sweeps(System(inv_diag, n, open, cut, x, rhs), wrap, ((RED, scale_at), (BLACK, relax_at)))

    @ti.kernel
    def start(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, wrap: IntVector):
        """Black, red, black, from x = 0, whatever it holds."""
        half_sweeps(System(inv_diag, n, open, cut, x, rhs), wrap, DOWN)

    @ti.kernel
    def smooth(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, wrap: IntVector):
        """Black, red, black; where no axis is periodic, better in turn with what comes before."""
        half_sweeps(System(inv_diag, n, open, cut, x, rhs), wrap, BACK)

    @ti.func
    def remove_mean(x: Array, inv_diag: Array, n):
        total, count = ti.f32(0.0), ti.f32(0.0)
        each_cell_alone(n, _count_at, (x, inv_diag, total, count))
        if count > 0:
            each_cell_alone(n, subtract_at, (x, inv_diag, total / count))

    @ti.kernel
    def solve_coarsest(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, balanced: ti.i32):
        """Black, then red and black again and again, from x = 0; no axis is periodic.

        ``balanced`` takes the mean out of ``rhs`` before, and out of ``x`` after it.
        """
        system = System(inv_diag, n, open, cut, x, rhs)
        ti.loop_config(serialize=True)
        for _ in range(1):
            if balanced == 1:
                remove_mean(rhs, inv_diag, n)
            each_cell_alone(n, _clear_at, (x,))
            for half in range(2 * COARSEST_SWEEPS + 1):
                each_cell_alone(n, _relax_colour_at, ((half + 1) & 1, system))
            if balanced == 1:
                remove_mean(x, inv_diag, n)

    return sweep, first_sweep, start, smooth, solve_coarsest
