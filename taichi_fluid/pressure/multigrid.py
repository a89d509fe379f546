"""Geometric multigrid: a V-cycle, which solves by itself and serves as a symmetric preconditioner.

Cells are coarsened by two per axis at every level, an odd axis rounding to the nearer extent, so any size works.
Prolongation is (tri)linear between cell centres, with weights that leave out cells that are not solved for and those
behind a closed face; restriction is its transpose. The smoother is Gauss-Seidel by colours, black, red, black on the
way down and on the way up: the same backwards, so that with the transposed transfers the cycle is a symmetric operator,
which conjugate gradients needs. The first of the three costs little, from 0 on the way down.

What ends with black leaves every black residual 0, so only red residuals are gathered. And the way up begins with
black, which overwrites whatever prolongation put there, so only red cells are prolonged to. (McAdams, Sifakis, Teran
2010; Trottenberg, *Multigrid*, ch. 2.) On a CPU what stands between two transfers is one traverse of the grid, in which
each pass follows the one before it by a plane (``in_turn``), unless an axis is periodic.

Beside solids the coarse operator is made of coarse faces that are open as far as their parts are on the mean. Transfers
reach across the seam of a periodic axis where it has an even number of cells; an odd one does not line up there, and
only its operator is periodic.
"""

from dataclasses import replace

from .._ti import ti
from ..grid import Grid
from ..kernels import (
    BLACK,
    LONG_RUNS,
    PARTIALS,
    RED,
    Array,
    along_run,
    cell_of_run,
    cells_of,
    flat,
    int_vector,
    kernel_family,
    strides_of,
)
from ..operators.ghosts import wrap_or_clear
from .poisson import (
    BoundaryCoefficients,
    PoissonLevel,
    mean_kernels,
    product_at,
    renewed,
    subtract_at,
    write_run_of_operator,
)
from .relaxation import relax_at, relaxation_kernels, relaxed_at, scale_at

COARSEST_SWEEPS = 8
"""Sweeps on the coarsest level, which is at most two cells wide along every axis, after black alone."""


@ti.func
def _sight_at(I, J, open: ti.template(), fine_s, fine_cells):
    """Linear weight between coarse cell ``I`` and fine cell ``J``, which sees a neighbour of its parent by a face."""
    w = ti.f32(1.0)
    fine = flat(J, fine_s)
    for a in ti.static(range(I.n)):
        if (J[a] + 1) // 2 == I[a]:
            w *= ti.f32(0.75)
        else:
            w *= ti.f32(0.25) * open[fine + a * fine_cells + (1 - (J[a] & 1)) * fine_s[a]]
    return w


@ti.func
def _transfer_weight_at(
    c, I, s, unknown: ti.template(), open: ti.template(), coarse: ti.template(), weight: ti.template(),
    plain: ti.template(), n, coarse_s, cut: ti.template(),
):  # fmt: skip
    """1 / (sum of the linear weights of the coarse cells that are solved for and seen); 0 where nothing is.

    Coarse cells of which any is hidden from this one by a face are marked in ``plain``: there faces have to be read.
    """
    total, seen = ti.f32(0.0), ti.f32(0.0)
    for corner in ti.static(range(2**s.n)):
        P = (I + 1) // 2
        w = ti.f32(1.0)
        for a in ti.static(range(s.n)):
            if ti.static((corner >> a) & 1):
                P[a] += 1 - 2 * (I[a] & 1)
                w *= ti.f32(0.25)
            else:
                w *= ti.f32(0.75)
        if coarse[flat(P, coarse_s)] > 0:
            total += w
            if ti.static(cut):
                seen += _sight_at(P, I, open, s, cells_of(s, n))
    weight[c] = ti.f32(0.0)
    if ti.static(cut):
        if seen < total:
            total = seen
            for corner in ti.static(range(2**s.n)):
                P = (I + 1) // 2
                for a in ti.static(range(s.n)):
                    if ti.static((corner >> a) & 1):
                        P[a] += 1 - 2 * (I[a] & 1)
                plain[flat(P, coarse_s)] = ti.f32(0.0)
    if unknown[c] > 0 and total > 0:
        weight[c] = ti.f32(1.0) / total


@ti.func
def _gather_marks_at(c, I, s, plain: ti.template(), n, across, axis: ti.template()):
    """A mark on a ghost beyond the seam of a periodic axis is meant for the cell at its other end."""
    if across[axis] == 1:
        upper = c + (n[axis] + 1) * s[axis]
        plain[c + s[axis]] = ti.min(plain[c + s[axis]], plain[upper])
        plain[upper - s[axis]] = ti.min(plain[upper - s[axis]], plain[c])


@ti.func
def _one_at(c, I, s, a: ti.template()):
    a[c] = ti.f32(1.0)


@ti.func
def _weighted_residual_at(
    c, I, s, x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), open: ti.template(), weight: ti.template(),
    n, cut: ti.template(),
):  # fmt: skip
    value = (relaxed_at(x, rhs, inv_diag, open, c, s, n, cut) - x[c]) / inv_diag[c] * weight[c]
    if inv_diag[c] == 0:
        value = ti.f32(0.0)
    return value


@ti.func
def _weighted_residual_run(
    c, I, m, s, x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), open: ti.template(),
    weight: ti.template(), residual: ti.template(), n, width: ti.template(), cut: ti.template(),
):  # fmt: skip
    """Of all cells: a compiler makes vectors of that. Only what it says of red ones is looked at."""
    write_run_of_operator(
        c, I, m, s, residual, width, _weighted_residual_at, (x, rhs, inv_diag, open, weight, n, cut),
        (x, rhs, inv_diag, open, weight, n, False), inv_diag, cut,
    )  # fmt: skip


@ti.func
def _hidden_residual(I, s, residual: ti.template(), open: ti.template(), n):
    """What coarse cell ``I`` gathers where faces hide some of the cells around it."""
    total = ti.f32(0.0)
    for pair in range(4**s.n // 2):
        J = I * 2 - 2
        rest = pair
        inside = 1
        for a in ti.static(range(s.n - 1)):
            J[a] += rest & 3
            rest = rest >> 2
            if J[a] > n[a] + 1:
                inside = 0
        # Black cells and those outside have no residual; a ghost of a periodic axis is its other end.
        J[s.n - 1] += 2 * rest + (J.sum() & 1)
        if inside == 1 and J[s.n - 1] <= n[s.n - 1] + 1:
            value = residual[flat(J, s)]
            if value != 0:
                total += _sight_at(I, J, open, s, cells_of(s, n)) * value
    return total


@ti.func
def _red_rows_at(c, s, last_step, last_weight, odd: ti.template(), residual: ti.template()):
    """Of the 4^(dim-1) rows around a coarse one, weighted, those whose red cells have the parity ``odd``.

    ``c`` is in the first of them. What the last one along an axis weighs, and where it is, is given: it may be outside.
    """
    total = ti.f32(0.0)
    for rest in ti.static(range(4 ** (s.n - 1))):
        if ti.static(_digit_sum(rest, s.n - 1) % 2 == odd):
            w = ti.f32(1.0)
            row = c
            for a in ti.static(range(s.n - 1)):
                along = ti.static(_digit(rest, a))
                if ti.static(along == 3):
                    w *= last_weight[a]
                    row += last_step[a]
                else:
                    w *= ti.f32(ti.static((0.25, 0.75, 0.75)[along]))
                    row += along * s[a]
            total += w * residual[row]
    return total


@ti.func
def _gather_rows(k, c, s, last_step, last_weight, residual: ti.template(), rows: ti.template()):
    for odd in ti.static(range(2)):
        rows[ti.i32(odd), k] = _red_rows_at(cell_of_run(c, k), s, last_step, last_weight, odd, residual)


@ti.func
def _restrict_cell(k, c, I, rows: ti.template(), residual: ti.template(), open: ti.template(), plain: ti.template(),
                   rhs: ti.template(), n, scale, cut: ti.template()):  # fmt: skip
    near = rows[ti.i32(1), ti.i32(2 * k + 1)] + rows[ti.i32(0), ti.i32(2 * k + 2)]
    far = rows[ti.i32(0), ti.i32(2 * k)] + rows[ti.i32(1), ti.i32(2 * k + 3)]
    total = ti.f32(0.75) * near + ti.f32(0.25) * far
    if ti.static(cut):
        if plain[c + k] == 0:
            J = I
            J[I.n - 1] += k
            total = _hidden_residual(J, strides_of(n), residual, open, n)
    rhs[cell_of_run(c, k)] = total * scale


@ti.func
def _restrict_run(
    c, I, m, s, residual: ti.template(), open: ti.template(), plain: ti.template(), rhs: ti.template(), n, scale,
    width: ti.template(), cut: ti.template(),
):  # fmt: skip
    """Transpose of linear prolongation, over the red cells of the 4^dim around each coarse cell of a run."""
    fine_s = strides_of(n)
    last_step, last_weight = fine_s * 3, ti.Vector.zero(ti.f32, s.n) + ti.f32(0.25)
    for a in ti.static(range(s.n)):
        if I[a] * 2 > n[a]:
            last_step[a] = fine_s[a]
            last_weight[a] = ti.f32(0.0)
    rows = ti.Matrix.zero(ti.f32, 2, 2 * width + 2)
    base = flat(I * 2 - 2, fine_s)
    last = ti.static(s.n - 1)
    # Where an odd axis was rounded up, the last places are outside.
    places = ti.min(2 * m + 2, n[last] + 4 - 2 * I[last])
    if ti.static(width == 1):
        for k in ti.static(range(4)):
            if k < places:
                _gather_rows(k, base, fine_s, last_step, last_weight, residual, rows)
    else:
        along_run(places, width, _gather_rows, (base, fine_s, last_step, last_weight, residual, rows))
    along_run(m, width, _restrict_cell, (c, I, rows, residual, open, plain, rhs, n, scale, cut))


def _digit(offset: int, axis: int) -> int:
    return (offset // 4**axis) % 4


def _digit_sum(offset: int, dim: int) -> int:
    return sum(_digit(offset, axis) for axis in range(dim))


@ti.func
def _hidden_correction(P, J, s, fine_s, coarse: ti.template(), open: ti.template(), fine_n):
    """What fine cell ``J`` with parent ``P`` is corrected by where faces hide some of the coarse cells around it."""
    total = ti.f32(0.0)
    for corner in range(2**s.n):
        Q = P
        for a in ti.static(range(s.n)):
            Q[a] += ((corner >> a) & 1) * (1 - 2 * (J[a] & 1))
        total += _sight_at(Q, J, open, fine_s, cells_of(fine_s, fine_n)) * coarse[flat(Q, s)]
    return total


@ti.func
def _coarse_rows_at(c, step, coarse: ti.template()):
    """Interpolation across the rows: of the 2^(dim-1) nearest coarse ones, at place ``c`` of the nearest."""
    total = ti.f32(0.0)
    for corner in ti.static(range(2 ** (step.n - 1))):
        far = ti.static(_bits(corner, step.n - 1))
        row = c
        for a in ti.static(range(step.n - 1)):
            if ti.static((corner >> a) & 1):
                row += step[a]
        total += ti.f32(ti.static(0.25**far * 0.75 ** (step.n - 1 - far))) * coarse[row]
    return total


@ti.func
def _interpolate_rows(k, c, step, coarse: ti.template(), line: ti.template()):
    line[ti.i32(0), k] = _coarse_rows_at(cell_of_run(c, k), step, coarse)


@ti.func
def _prolong_run(
    c, I, m, s, coarse: ti.template(), x: ti.template(), weight: ti.template(), open: ti.template(),
    plain: ti.template(), n, coarse_n, width: ti.template(), cut: ti.template(),
):  # fmt: skip
    """Add the interpolated correction to the red cells of a run."""
    last = ti.static(s.n - 1)
    coarse_s = strides_of(coarse_n)
    P = (I + 1) // 2
    parent = flat(P, coarse_s)
    step = coarse_s
    for a in ti.static(range(s.n)):
        step[a] = coarse_s[a] * (1 - 2 * (I[a] & 1))
    if ti.static(width == 1):
        if I.sum() % 2 == 0:
            _prolong_cell(
                c, I, P, s, coarse_s,
                ti.f32(0.75) * _coarse_rows_at(parent, step, coarse)
                + ti.f32(0.25) * _coarse_rows_at(parent + step[last], step, coarse),
                coarse, x, weight, open, plain, n, cut,
            )  # fmt: skip
    else:
        # A run begins at an odd place. The line begins a coarse cell before its parent.
        line = ti.Matrix.zero(ti.f32, 1, width // 2 + 2)
        along_run(m // 2 + 2, width, _interpolate_rows, (parent - 1, step, coarse, line))
        even = I.sum() & 1
        for k in range((m + 1 - even) // 2):
            J, Q = I, P
            J[last] += even + 2 * k
            Q[last] += k
            value = ti.f32(0.75) * line[ti.i32(0), ti.i32(k + 1)] + ti.f32(0.25) * line[ti.i32(0), ti.i32(k + 2 * even)]
            _prolong_cell(c + even + 2 * k, J, Q, s, coarse_s, value, coarse, x, weight, open, plain, n, cut)


@ti.func
def _prolong_cell(
    c, J, P, s, coarse_s, value, coarse: ti.template(), x: ti.template(), weight: ti.template(), open: ti.template(),
    plain: ti.template(), n, cut: ti.template(),
):  # fmt: skip
    total = value
    if ti.static(cut):
        if plain[flat(P, coarse_s)] == 0:
            total = _hidden_correction(P, J, coarse_s, s, coarse, open, n)
    x[c] = x[c] + total * weight[c]


@ti.func
def _clear_at(c, I, s, x: ti.template()):
    x[c] = ti.f32(0.0)


@ti.func
def _relax_colour_at(
    c, I, s, colour, x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), open: ti.template(), n,
    cut: ti.template(),
):  # fmt: skip
    if (I.sum() & 1) == colour:
        relax_at(c, I, s, x, rhs, inv_diag, open, n, cut)


@ti.func
def _count_at(c, I, s, x: ti.template(), inv_diag: ti.template(), total: ti.template(), count: ti.template()):
    if inv_diag[c] > 0:
        total += x[c]
        count += ti.f32(1.0)


def _bits(number: int, dim: int) -> int:
    return sum((number >> a) & 1 for a in range(dim))


@kernel_family
def multigrid_kernels(loops, coupling):
    IntVector, each_cell = loops.IntVector, loops.each_cell
    each_cell_in, each_on_plane, dim = loops.each_cell_in, loops.each_on_plane, loops.dim
    each_run, in_turn, width = loops.each_run, loops.in_turn, loops.long
    each_cell_alone = loops.each_cell_alone
    cut, wraps = coupling

    @ti.kernel
    def compute_transfer_weight(
        unknown: Array, open: Array, coarse: Array, weight: Array, plain: Array, n: IntVector, coarse_n: IntVector,
        coarse_s: IntVector, across: IntVector,
    ):  # fmt: skip
        if ti.static(cut):
            each_cell_in(coarse_n * 0, coarse_n + 2, coarse_n, _one_at, (plain,))
        each_cell(n, _transfer_weight_at, (unknown, open, coarse, weight, plain, n, coarse_s, cut))
        if ti.static(cut and wraps):
            for axis in ti.static(range(dim)):
                each_on_plane(coarse_n, axis, _gather_marks_at, (plain, coarse_n, across, axis))

    @ti.kernel
    def compute_residual(
        x: Array, rhs: Array, inv_diag: Array, open: Array, weight: Array, residual: Array, n: IntVector,
        across: IntVector,
    ):  # fmt: skip
        each_run(n, width, _weighted_residual_run, (x, rhs, inv_diag, open, weight, residual, n, width, cut))
        if ti.static(wraps):
            for axis in ti.static(range(dim)):
                each_on_plane(n, axis, wrap_or_clear, (residual, n, across, axis))

    @ti.kernel
    def descend(
        x: Array, rhs: Array, inv_diag: Array, open: Array, weight: Array, residual: Array, plain: Array,
        coarse_rhs: Array, n: IntVector, coarse_n: IntVector, scale: ti.f32,
    ):  # fmt: skip
        """Black, red, black from x = 0, and ``restrict`` of the residual that they leave; no axis is periodic."""
        in_turn(
            n,
            (
                (BLACK, scale_at, (rhs, inv_diag, x)),
                (RED, relax_at, (x, rhs, inv_diag, open, n, cut)),
                (BLACK, relax_at, (x, rhs, inv_diag, open, n, cut)),
                (LONG_RUNS, _weighted_residual_run, (x, rhs, inv_diag, open, weight, residual, n, width, cut)),
            ),
            (),
        )
        each_run(coarse_n, width, _restrict_run, (residual, open, plain, coarse_rhs, n, scale, width, cut))

    @ti.func
    def remove_mean(x: ti.template(), inv_diag: ti.template(), n):
        total, count = ti.f32(0.0), ti.f32(0.0)
        each_cell_alone(n, _count_at, (x, inv_diag, total, count))
        if count > 0:
            each_cell_alone(n, subtract_at, (x, inv_diag, total / count))

    @ti.kernel
    def solve_coarsest(x: Array, rhs: Array, inv_diag: Array, open: Array, n: IntVector, balanced: ti.i32):
        """Black, then red and black again and again, from x = 0; no axis is periodic.

        ``balanced`` takes the mean out of ``rhs`` before, and out of ``x`` after it.
        """
        ti.loop_config(serialize=True)
        for _ in range(1):
            if balanced == 1:
                remove_mean(rhs, inv_diag, n)
            each_cell_alone(n, _clear_at, (x,))
            for half in range(2 * COARSEST_SWEEPS + 1):
                each_cell_alone(n, _relax_colour_at, ((half + 1) & 1, x, rhs, inv_diag, open, n, cut))
            if balanced == 1:
                remove_mean(x, inv_diag, n)

    @ti.kernel
    def restrict(
        residual: Array, open: Array, plain: Array, rhs: Array, n: IntVector, fine_n: IntVector, scale: ti.f32
    ):
        each_run(n, width, _restrict_run, (residual, open, plain, rhs, fine_n, scale, width, cut))

    @ti.func
    def ascend(
        coarse: ti.template(), x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), weight: ti.template(),
        open: ti.template(), plain: ti.template(), n, coarse_n, total: ti.template(),
    ):  # fmt: skip
        in_turn(
            n,
            (
                (LONG_RUNS, _prolong_run, (coarse, x, weight, open, plain, n, coarse_n, width, cut)),
                (BLACK, relax_at, (x, rhs, inv_diag, open, n, cut)),
                (RED, relax_at, (x, rhs, inv_diag, open, n, cut)),
                (BLACK, relax_at, (x, rhs, inv_diag, open, n, cut)),
            ),
            total,
        )

    @ti.kernel
    def finish_up(
        coarse: Array, x: Array, rhs: Array, inv_diag: Array, weight: Array, open: Array, plain: Array, n: IntVector,
        coarse_n: IntVector,
    ):  # fmt: skip
        """Prolongation, black, red and black, where no axis is periodic."""
        ascend(coarse, x, rhs, inv_diag, weight, open, plain, n, coarse_n, ())

    @ti.kernel
    def finish_up_and_sum(
        coarse: Array, x: Array, rhs: Array, inv_diag: Array, weight: Array, open: Array, plain: Array, n: IntVector,
        coarse_n: IntVector, partials: Array,
    ):  # fmt: skip
        """The same, and rhs · x in ``partials`` as ``in_turn`` leaves it."""
        ascend(coarse, x, rhs, inv_diag, weight, open, plain, n, coarse_n, (partials, product_at, (rhs, x)))

    @ti.kernel
    def prolong(
        coarse: Array, x: Array, weight: Array, open: Array, plain: Array, n: IntVector, coarse_n: IntVector,
        across: IntVector, wrap: IntVector,
    ):  # fmt: skip
        for axis in ti.static(range(dim)):
            each_on_plane(coarse_n, axis, wrap_or_clear, (coarse, coarse_n, across, axis))
        each_run(n, width, _prolong_run, (coarse, x, weight, open, plain, n, coarse_n, width, cut))
        for axis in ti.static(range(dim)):
            each_on_plane(n, axis, wrap_or_clear, (x, n, wrap, axis))

    return {
        "compute_transfer_weight": compute_transfer_weight,
        "compute_residual": compute_residual,
        "descend": descend,
        "solve_coarsest": solve_coarsest,
        "restrict": restrict,
        "finish_up": finish_up,
        "finish_up_and_sum": finish_up_and_sum,
        "prolong": prolong,
    }


def _halved(n: int, extent: float) -> int:
    """Half of ``n`` cells, an odd number rounded so that the coarse box stays nearest to its true extent in cells."""
    lower = n // 2
    return max(lower if abs(lower - extent) <= abs(n - lower - extent) else n - lower, 1)


class Level(PoissonLevel):
    """One grid of the hierarchy: operator, smoother, and the transfer to the next coarser one."""

    def __init__(self, grid: Grid, finest: bool):
        super().__init__(grid)
        self.solution = None if finest else grid.array()
        self.rhs = None if finest else grid.array()
        self.residual = None if finest else grid.array()
        self.weight = grid.array()
        self.strides = int_vector(grid.dim)(*grid.strides)
        self.across = self.wrap
        self.plain = None
        self.means = mean_kernels(grid.loops)
        self.sums = ti.ndarray(ti.f32, 2)

    @property
    def seen(self):
        """1 where nothing is hidden from a cell in the finer grid; one word where there are no coefficients."""
        return self.plain if self.coupling.cut else self._nothing

    @property
    def smoother(self):
        """Kernels of the smoother."""
        return relaxation_kernels(self.grid.loops, self.coupling)

    @property
    def transfer(self):
        """Kernels of the transfer to the next coarser level."""
        return multigrid_kernels(self.grid.loops, self.coupling)

    def set_transfer(self, coarse: "Level") -> None:
        """Compute the weights of the transfer to ``coarse``."""
        wraps = [
            int(wrap and n % 2 == 0 and m > 1)
            for wrap, n, m in zip(self.wrap, self.grid.shape, coarse.grid.shape, strict=True)
        ]
        self.across = renewed(self.across, wraps)
        coarse.set_ghosts(coarse.unknown, self.across)
        if self.coupling.cut and coarse.plain is None:
            coarse.plain = coarse.grid.array()
        self.transfer.compute_transfer_weight(
            self.unknown, self.open, coarse.unknown, self.weight, coarse.seen, self.n, coarse.n, coarse.strides,
            self.across,
        )  # fmt: skip


class Multigrid:
    """A V-cycle for one grid. ``coarsen`` makes its levels from the finest; ``record`` launches one cycle.

    Args:
        grid: The finest grid.
        sweeps: Gauss-Seidel sweeps, red and black, on the way down after black alone, and the same number on the way up.
    """

    def __init__(self, grid: Grid, sweeps: int = 1):
        self.sweeps = sweeps
        self.singular = False
        self._partials = ti.ndarray(ti.f32, PARTIALS)
        self.levels = [Level(grid, finest=True)]
        extent = [float(n) for n in grid.shape]
        while max(self.levels[-1].grid.shape) > 2:
            fine = self.levels[-1].grid
            extent = [0.5 * e for e in extent]
            shape = tuple(_halved(n, e) for n, e in zip(fine.shape, extent, strict=True))
            self.levels.append(Level(replace(fine, shape=shape, dx=2 * fine.dx), finest=False))

    def coarsen(self, sides: BoundaryCoefficients) -> None:
        """Make the coarser levels, once the finest knows what it solves for."""
        cut, shift, box, ratio = self.levels[0].coupling.cut, sides.shift, list(sides.box), 1.0
        for fine, coarse in zip(self.levels[:-1], self.levels[1:], strict=True):
            shift, ratio = 4.0 * shift, 2.0 * ratio
            factors = []
            for axis, n in enumerate(fine.grid.shape):
                for end in range(2):
                    # What is held one fine cell beyond the first centre is nearer to a coarse one, in its own cells.
                    # The cells of an axis that is not halved stay as wide as they were, while the others grow.
                    nearer = (ratio + 2.0) / (ratio + 1.0) if sides.box[2 * axis + end] == 1 else 1.0
                    factors.append(nearer if n > 1 else 4.0)
            box = [value * factor for value, factor in zip(box, factors, strict=True)]
            coarse.set_sides(sides, cut)
            coarse.coarsen(fine)
            if cut:
                coarse.scale_held(tuple(factors))
            coarse.set_diagonal(replace(sides, box=tuple(box)), (1,) * coarse.grid.dim, shift)
            fine.set_transfer(coarse)

    def set_singular(self, singular: bool) -> None:
        """Say whether the solution is determined up to a constant only."""
        self.singular = singular
        if singular:
            for level in self.levels:
                level.means.count_unknowns(level.inv_diag, level.n, self._partials, level.sums)

    @property
    def sums(self) -> bool:
        """Whether a cycle ends with a pass that can sum rhs · solution on its way."""
        level = self.levels[0]
        return self.sweeps == 1 and len(self.levels) > 1 and not level.coupling.wraps and not self._balances(0)

    def record(self, launch, rhs, solution, residual, partials=None) -> None:
        """Launch ``solution = M rhs``, one V-cycle from zero, by ``launch(kernel, *args)``.

        ``launch`` is a graph recorder's, or runs the kernel. ``residual`` is scratch. All three are finest arrays.
        Given ``partials``, where ``sums``, rhs · solution is left there.
        """
        self._record_level(launch, 0, rhs, solution, residual, partials)

    def _balances(self, depth: int) -> bool:
        # The constant, which no equation holds, grows by the square of the coarsening: it is taken out where that is
        # cheap, and where the coarsest problem would divide by nothing.
        return self.singular and depth in (2, len(self.levels) - 1)

    def _record_level(self, launch, depth, rhs, solution, residual, partials=None):
        level = self.levels[depth]
        if depth + 1 == len(self.levels):
            self._record_coarsest(launch, level, rhs, solution)
            return
        coarse, balanced = self.levels[depth + 1], self._balances(depth)
        if balanced:
            self._record_balance(launch, level, rhs)
        self._record_descent(launch, level, coarse, rhs, solution, residual)
        self._record_level(launch, depth + 1, coarse.rhs, coarse.solution, coarse.residual)
        self._record_ascent(launch, level, coarse, rhs, solution, partials)
        if balanced:
            self._record_balance(launch, level, solution)

    def _record_coarsest(self, launch, level, rhs, solution):
        smoother = level.smoother
        operator = (solution, rhs, level.inv_diag, level.open, level.n)
        if not level.coupling.wraps:
            launch(level.transfer.solve_coarsest, *operator, int(self.singular))
            return
        if self.singular:
            self._record_balance(launch, level, rhs)
        launch(smoother.start, *operator, level.wrap)
        for _ in range(COARSEST_SWEEPS - 1):
            launch(smoother.sweep, *operator, level.wrap)
        if self.singular:
            self._record_balance(launch, level, solution)

    def _record_descent(self, launch, level, coarse, rhs, solution, residual):
        """Sweeps from 0, and the residual that they leave as right-hand side of the coarser level."""
        smoother, transfer = level.smoother, level.transfer
        operator = (solution, rhs, level.inv_diag, level.open)
        scale = 4.0 / 2 ** sum(n > 1 for n in level.grid.shape)
        if self.sweeps == 1 and not level.coupling.wraps:
            launch(
                transfer.descend, *operator, level.weight, residual, coarse.seen, coarse.rhs, level.n, coarse.n, scale
            )
            return
        launch(smoother.start, *operator, level.n, level.wrap)
        for _ in range(self.sweeps - 1):
            launch(smoother.sweep, *operator, level.n, level.wrap)
        launch(transfer.compute_residual, *operator, level.weight, residual, level.n, level.across)
        launch(transfer.restrict, residual, level.open, coarse.seen, coarse.rhs, coarse.n, level.n, scale)

    def _record_balance(self, launch, level, x):
        launch(level.means.remove_mean, x, level.inv_diag, level.n, self._partials, level.sums)

    def _record_ascent(self, launch, level, coarse, rhs, solution, partials):
        """What the coarser level has found, and sweeps back."""
        smoother, transfer = level.smoother, level.transfer
        reach = (level.weight, level.open, coarse.seen, level.n, coarse.n)
        system = (solution, rhs, level.inv_diag, level.open, level.n, level.wrap)
        if level.coupling.wraps:
            launch(transfer.prolong, coarse.solution, solution, *reach, level.across, level.wrap)
            launch(smoother.smooth, *system)
        elif partials is not None:
            launch(transfer.finish_up_and_sum, coarse.solution, solution, rhs, level.inv_diag, *reach, partials)
        else:
            launch(transfer.finish_up, coarse.solution, solution, rhs, level.inv_diag, *reach)
        for _ in range(self.sweeps - 1):
            launch(smoother.sweep, *system)
