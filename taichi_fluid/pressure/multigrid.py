"""Geometric multigrid: a V-cycle, which solves by itself and serves as a symmetric preconditioner.

Cells are coarsened by two per axis at every level, an odd axis rounding to the nearer extent, so any size works.
Prolongation is (tri)linear between cell centres, with weights that leave out cells that are not solved for and those
behind a closed face; restriction is its transpose. The smoother is red-black Gauss-Seidel, red then black on the way
down, black then red on the way up: with the transposed transfers and that order the cycle is a symmetric operator, which
conjugate gradients needs.

Two facts save half of the memory traffic. After a sweep that ends with black every black residual is 0, so only red
residuals are computed and gathered. And the way up begins with black, which overwrites whatever prolongation put
there, so only red cells are prolonged to. (McAdams, Sifakis, Teran 2010; Trottenberg, *Multigrid*, ch. 2.)

Beside solids the coarse operator is made of coarse faces that are open as far as their parts are on the mean. Transfers
reach across the seam of a periodic axis where it has an even number of cells; an odd one does not line up there, and
only its operator is periodic.
"""

from dataclasses import replace

from .._ti import ti
from ..grid import Grid
from ..kernels import PARTIALS, Array, cells_of, flat, int_vector, kernel_family, strides_of
from ..operators.ghosts import wrap_or_clear
from .poisson import PoissonLevel, Sides, mean_kernels, neighbour_sum, renewed
from .relaxation import relaxation_kernels, relaxed_at

COARSEST_SWEEPS = 4
"""Symmetric sweeps on the coarsest level, which is at most two cells wide along every axis."""


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
def _red_residual_at(
    c, I, s, x: ti.template(), rhs: ti.template(), inv_diag: ti.template(), open: ti.template(), weight: ti.template(),
    residual: ti.template(), n, cut: ti.template(),
):  # fmt: skip
    value = ti.f32(0.0)
    if inv_diag[c] > 0:
        value = (relaxed_at(x, rhs, inv_diag, open, c, s, n, cut) - x[c]) / inv_diag[c] * weight[c]
    residual[c] = value


@ti.func
def _first_residual_at(
    c, I, s, x: ti.template(), inv_diag: ti.template(), open: ti.template(), weight: ti.template(),
    residual: ti.template(), n, cut: ti.template(),
):  # fmt: skip
    """The same after one sweep from 0, when a red value still is rhs · inv_diag and only its neighbours are missing."""
    residual[c] = neighbour_sum(x, inv_diag, open, c, s, n, cut) * weight[c]


@ti.func
def _restrict_at(
    c, I, s, residual: ti.template(), open: ti.template(), plain: ti.template(), rhs: ti.template(), n, scale,
    cut: ti.template(),
):  # fmt: skip
    """Transpose of linear prolongation, over the red cells of the 4^dim around the coarse cell."""
    fine_s = strides_of(n)
    total = ti.f32(0.0)
    hidden = 0
    if ti.static(cut):
        if plain[c] == 0:
            hidden = 1
            for around in range(4**s.n):
                J = I * 2 - 2
                rest = around
                inside = 1
                for a in ti.static(range(s.n)):
                    J[a] += rest % 4
                    rest = rest // 4
                    if J[a] > n[a] + 1:
                        inside = 0
                # Black cells and those outside have no residual; a ghost of a periodic axis is its other end.
                if inside == 1 and J.sum() % 2 == 0:
                    total += _sight_at(I, J, open, fine_s, cells_of(fine_s, n)) * residual[flat(J, fine_s)]
    if hidden == 0:
        base = flat(I * 2 - 2, fine_s)
        for rest in ti.static(range(4 ** (s.n - 1))):
            for first in ti.static(range(4)):
                if ti.static(_digit_sum(4 * rest + first, s.n) % 2 == 0):
                    w = ti.f32(1.0)
                    child = base
                    inside = 1
                    for a in ti.static(range(s.n)):
                        along = ti.static(_digit(4 * rest + first, a))
                        w *= ti.f32(ti.static((0.25, 0.75, 0.75, 0.25)[along]))
                        child += along * fine_s[a]
                        if ti.static(along == 3):
                            if I[a] * 2 + 1 > n[a] + 1:
                                inside = 0
                    if inside == 1:
                        total += w * residual[child]
    rhs[c] = total * scale


def _digit(offset: int, axis: int) -> int:
    return (offset // 4**axis) % 4


def _digit_sum(offset: int, dim: int) -> int:
    return sum(_digit(offset, axis) for axis in range(dim))


@ti.func
def _prolong_at(
    c, I, s, coarse: ti.template(), x: ti.template(), weight: ti.template(), open: ti.template(), plain: ti.template(),
    fine_n, cut: ti.template(),
):  # fmt: skip
    """Add the interpolated correction to the red children of coarse cell ``c``."""
    fine_s = strides_of(fine_n)
    first = flat(I * 2 - 1, fine_s)
    hidden = 0
    if ti.static(cut):
        hidden = ti.cast(plain[c] == 0, ti.i32)
    for child in ti.static(range(2**s.n)):
        if ti.static(_bits(child, s.n) % 2 == s.n % 2):
            J = I * 2 - 1
            fine = first
            inside = 1
            for a in ti.static(range(s.n)):
                if ti.static((child >> a) & 1):
                    J[a] += 1
                    fine += fine_s[a]
                    if I[a] * 2 > fine_n[a]:
                        inside = 0
            if inside == 1:
                total = ti.f32(0.0)
                if hidden == 1:
                    for corner in range(2**s.n):
                        P = I
                        for a in ti.static(range(s.n)):
                            P[a] += ((corner >> a) & 1) * ti.static(2 * ((child >> a) & 1) - 1)
                        total += _sight_at(P, J, open, fine_s, cells_of(fine_s, fine_n)) * coarse[flat(P, s)]
                else:
                    for corner in ti.static(range(2**s.n)):
                        neighbour = c
                        for a in ti.static(range(s.n)):
                            if ti.static((corner >> a) & 1):
                                neighbour += s[a] * ti.static(2 * ((child >> a) & 1) - 1)
                        far = ti.static(_bits(corner, s.n))
                        total += ti.f32(ti.static(0.25**far * 0.75 ** (s.n - far))) * coarse[neighbour]
                x[fine] = x[fine] + total * weight[fine]


def _bits(number: int, dim: int) -> int:
    return sum((number >> a) & 1 for a in range(dim))


@kernel_family
def multigrid_kernels(loops, coupling):
    IntVector, each_cell, each_of_colour = loops.IntVector, loops.each_cell, loops.each_of_colour
    each_cell_in, each_on_plane, dim = loops.each_cell_in, loops.each_on_plane, loops.dim
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
    def compute_red_residual(
        x: Array, rhs: Array, inv_diag: Array, open: Array, weight: Array, residual: Array, n: IntVector,
        across: IntVector,
    ):  # fmt: skip
        each_of_colour(n, 0, _red_residual_at, (x, rhs, inv_diag, open, weight, residual, n, cut))
        if ti.static(wraps):
            for axis in ti.static(range(dim)):
                each_on_plane(n, axis, wrap_or_clear, (residual, n, across, axis))

    @ti.kernel
    def compute_first_residual(
        x: Array, inv_diag: Array, open: Array, weight: Array, residual: Array, n: IntVector, across: IntVector
    ):
        each_of_colour(n, 0, _first_residual_at, (x, inv_diag, open, weight, residual, n, cut))
        if ti.static(wraps):
            for axis in ti.static(range(dim)):
                each_on_plane(n, axis, wrap_or_clear, (residual, n, across, axis))

    @ti.kernel
    def restrict(
        residual: Array, open: Array, plain: Array, rhs: Array, n: IntVector, fine_n: IntVector, scale: ti.f32
    ):
        each_cell(n, _restrict_at, (residual, open, plain, rhs, fine_n, scale, cut))

    @ti.kernel
    def prolong(
        coarse: Array, x: Array, weight: Array, open: Array, plain: Array, n: IntVector, fine_n: IntVector,
        across: IntVector, wrap: IntVector,
    ):  # fmt: skip
        if ti.static(wraps):
            for axis in ti.static(range(dim)):
                each_on_plane(n, axis, wrap_or_clear, (coarse, n, across, axis))
        # Where an odd axis was rounded down, the last fine cells are children of the coarse ghosts.
        each_cell_in(n * 0 + 1, (fine_n + 1) // 2 + 1, n, _prolong_at, (coarse, x, weight, open, plain, fine_n, cut))
        if ti.static(wraps):
            for axis in ti.static(range(dim)):
                each_on_plane(fine_n, axis, wrap_or_clear, (x, fine_n, wrap, axis))

    return {
        "compute_transfer_weight": compute_transfer_weight,
        "compute_red_residual": compute_red_residual,
        "compute_first_residual": compute_first_residual,
        "restrict": restrict,
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
        sweeps: Red-black Gauss-Seidel sweeps on the way down, and the same number on the way up.
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

    def coarsen(self, sides: Sides) -> None:
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

    def record(self, launch, rhs, solution, residual) -> None:
        """Launch ``solution = M rhs``, one V-cycle from zero, by ``launch(kernel, *args)``.

        ``launch`` is a graph recorder's, or runs the kernel. ``residual`` is scratch. All three are finest arrays.
        """
        self._record_level(launch, 0, rhs, solution, residual)

    def _record_level(self, launch, depth, rhs, solution, residual):
        level = self.levels[depth]
        relax = level.smoother.relax
        system = (solution, rhs, level.inv_diag, level.open, level.n, level.wrap)
        coarsest = depth + 1 == len(self.levels)
        sweeps = COARSEST_SWEEPS if coarsest else self.sweeps
        # The constant, which no equation holds, grows by the square of the coarsening: it is taken out as soon as it is
        # cheap, and where the coarsest problem would divide by nothing.
        balanced = self.singular and (coarsest or depth == 1)
        if balanced:
            self._record_balance(launch, level, rhs)
        launch(level.smoother.first_sweep, *system)
        for _ in range(sweeps - 1):
            launch(relax, *system, 0)
            launch(relax, *system, 1)
        if not coarsest:
            self._record_correction(launch, depth, rhs, solution, residual)
            launch(relax, *system, 1)
        launch(relax, *system, 0)
        for _ in range(sweeps - 1):
            launch(relax, *system, 1)
            launch(relax, *system, 0)
        if balanced:
            self._record_balance(launch, level, solution)

    def _record_balance(self, launch, level, x):
        launch(level.means.remove_mean, x, level.inv_diag, level.n, self._partials, level.sums)

    def _record_correction(self, launch, depth, rhs, solution, residual):
        level, coarse = self.levels[depth], self.levels[depth + 1]
        transfer, operator = level.transfer, (level.inv_diag, level.open, level.weight, residual, level.n, level.across)
        if self.sweeps == 1:
            launch(transfer.compute_first_residual, solution, *operator)
        else:
            launch(transfer.compute_red_residual, solution, rhs, *operator)
        halved = sum(n > 1 for n in level.grid.shape)
        launch(
            level.transfer.restrict, residual, level.open, coarse.seen, coarse.rhs, coarse.n, level.n, 4.0 / 2**halved
        )
        self._record_level(launch, depth + 1, coarse.rhs, coarse.solution, coarse.residual)
        launch(
            level.transfer.prolong, coarse.solution, solution, level.weight, level.open, coarse.seen, coarse.n,
            level.n, level.across, level.wrap,
        )  # fmt: skip
