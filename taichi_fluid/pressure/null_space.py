"""The null space: what a system maps to 0, so that its solution is determined but for that, and where it is not zero.

Where a side or a shift holds a value it is nothing; in a closed box the constant; and beside solids one constant for
each region of fluid that is connected with itself and nothing else, and that no side holds a value for. There what flows
in must flow out: of a right-hand side the mean is taken out, and told.

Regions are found by union-find on the device (Shiloach and Vishkin 1982): every cell points at the lowest index it knows
of in its region, roots are hooked under lower roots of their neighbours, pointers are halved, until nothing changes.
"""

import numpy as np

from .._ti import ti
from ..kernels import Array, IntArray, add, array_of, cells_of, kernel_family, largest, numbers_of, room_for_partials
from .system import LinearSystem, System, where_solved

CHUNK = 4096
"""Cells of one region that are summed by one thread."""


@ti.func
def unknown_value_at(c, I, s, x: Array, inv_diag: Array):
    """The value where it is solved for, else 0."""
    return where_solved(x[c], inv_diag[c])


@ti.func
def _one_at(c, I, s, inv_diag: Array):
    return ti.select(inv_diag[c] > 0, ti.f32(1.0), ti.f32(0.0))


@ti.func
def subtract_at(c, I, s, x: Array, inv_diag: Array, mean):
    """Take ``mean`` out of what is solved for."""
    if inv_diag[c] > 0:
        x[c] = x[c] - mean


@kernel_family
def mean_kernels(loops):
    IntVector, each_cell, reduce_to = loops.IntVector, loops.each_cell, loops.reduce_to

    @ti.kernel
    def count_unknowns(inv_diag: Array, n: IntVector, partials: Array, sums: Array):
        """Write the count of unknowns to ``sums[1]``."""
        reduce_to(sums, 1, n, partials, ti.f32(0.0), add, _one_at, (inv_diag,))

    @ti.kernel
    def remove_mean(x: Array, inv_diag: Array, n: IntVector, partials: Array, sums: Array):
        """Make ``x`` orthogonal to the constant; ``sums[1]`` holds the count of unknowns."""
        reduce_to(sums, 0, n, partials, ti.f32(0.0), add, unknown_value_at, (x, inv_diag))
        each_cell(n, subtract_at, (x, inv_diag, sums[0] / sums[1]))

    return count_unknowns, remove_mean


@ti.func
def _start_label_at(c, I, s, label: IntArray, inv_diag: Array):
    label[c] = ti.select(inv_diag[c] == 0, ti.i32(-1), ti.cast(c, ti.i32))


@ti.func
def _hook_at(c, I, s, label: IntArray, changed: IntArray, system, wrap):
    """Hang the root of ``c`` under the root of its lower neighbour along each axis, or the other way round."""
    inv_diag = ti.static(system.inv_diag)
    if inv_diag[c] > 0:
        cells = cells_of(s, system.n)
        for a in ti.static(range(s.n)):
            other = c - s[a]
            if I[a] == 1 and wrap[a] == 1:
                other = c + (system.n[a] - 1) * s[a]
            joined = inv_diag[other] > 0 and (I[a] > 1 or wrap[a] == 1)
            if ti.static(system.cut):
                joined = joined and system.open[c + a * cells] > 0
            if joined:
                one, two = label[c], label[other]
                if one != two:
                    changed[0] = ti.i32(1)
                    if one > two:
                        ti.atomic_min(label[one], two)
                    else:
                        ti.atomic_min(label[two], one)


@ti.func
def _shorten_at(c, I, s, label: IntArray):
    if label[c] >= 0:
        here = label[c]
        while label[here] != here:
            here = label[here]
        label[c] = here


@ti.func
def _is_root_at(c, I, s, label: IntArray):
    return ti.select(label[c] == c, ti.f32(1.0), ti.f32(0.0))


@ti.func
def _held_at(c, I, s, system, held: Array):
    """How much of the diagonal belongs to values that are held beyond a side of the box, and not to other cells."""
    inv_diag = ti.static(system.inv_diag)
    value = ti.f32(0.0)
    if inv_diag[c] > 0:
        cells = cells_of(s, system.n)
        inner = ti.f32(0.0)
        for a in ti.static(range(s.n)):
            for side in ti.static(range(2)):
                if inv_diag[c + (2 * side - 1) * s[a]] > 0:
                    if ti.static(system.cut):
                        inner += system.open[c + a * cells + side * s[a]]
                    else:
                        inner += ti.f32(1.0)
        value = ti.f32(1.0) / inv_diag[c] - inner
    held[c] = ti.select(value < ti.f32(1e-3), ti.f32(0.0), value)
    return held[c]


@kernel_family
def label_kernels(loops, coupling):
    IntVector, each_cell, reduce_to = loops.IntVector, loops.each_cell, loops.reduce_to
    cut = coupling.cut

    @ti.kernel
    def start_labels(label: IntArray, inv_diag: Array, n: IntVector):
        each_cell(n, _start_label_at, (label, inv_diag))

    @ti.kernel
    def hook(label: IntArray, inv_diag: Array, open: Array, changed: IntArray, n: IntVector, wrap: IntVector):
        each_cell(n, _hook_at, (label, changed, System(inv_diag, n, open, cut), wrap))

    @ti.kernel
    def shorten(label: IntArray, n: IntVector):
        each_cell(n, _shorten_at, (label,))

    @ti.kernel
    def count_roots(label: IntArray, n: IntVector, partials: Array, out: Array):
        reduce_to(out, 0, n, partials, ti.f32(0.0), add, _is_root_at, (label,))

    @ti.kernel
    def find_held(inv_diag: Array, open: Array, held: Array, n: IntVector, partials: Array, out: Array):
        system = System(inv_diag, n, open, cut)
        reduce_to(out, 1, n, partials, ti.f32(0.0), largest, _held_at, (system, held))

    return start_labels, hook, shorten, count_roots, find_held


@kernel_family
def region_kernels(loops):
    @ti.kernel
    def remove_means(x: Array, order: IntArray, chunks: IntArray, regions: IntArray, sums: Array):
        """Sum chunk by chunk and region by region, always in the same order, and subtract each region's mean."""
        region_count = regions.shape[0] - 1
        chunk_count = chunks.shape[0] - 1
        for chunk in range(chunk_count):
            total = ti.f32(0.0)
            for k in range(chunks[chunk], chunks[chunk + 1]):
                total += x[order[k]]
            sums[chunk] = total
        for region in range(region_count):
            total = ti.f32(0.0)
            for chunk in range(regions[region], regions[region + 1]):
                total += sums[chunk]
            mean = total / ti.cast(chunks[regions[region + 1]] - chunks[regions[region]], ti.f32)
            for chunk in range(regions[region], regions[region + 1]):
                sums[chunk_count + chunk] = mean
        for chunk in range(chunk_count):
            for k in range(chunks[chunk], chunks[chunk + 1]):
                x[order[k]] = x[order[k]] - sums[chunk_count + chunk]

    return (remove_means,)


class Constant:
    """The constant over all unknowns of a system.

    Attributes:
        count: How many unknowns there are.
    """

    by_region = False

    def __init__(self, system: LinearSystem, partials):
        self._system, self._partials, self._sums = system, partials, ti.ndarray(ti.f32, 2)
        self._kernels = mean_kernels(system.grid.loops)
        self.count = 0

    def update(self) -> None:
        """Count the unknowns anew, without waiting for the number."""
        self._kernels.count_unknowns(self._system.inv_diag, self._system.n, self._partials, self._sums)

    def read_count(self) -> int:
        """``count``, from the device."""
        self.count = int(numbers_of(self._sums)[1])
        return self.count

    @property
    def mean_weight(self) -> float:
        """What the sum of a right-hand side is multiplied by to be its mean."""
        return 1.0 / self.count if self.count else 0.0

    def launch_removal(self, launch, x) -> None:
        """Make ``x`` orthogonal to it; ``launch`` is a recorder's, or ``call``."""
        launch(self._kernels.remove_mean, x, self._system.inv_diag, self._system.n, self._partials, self._sums)


class NoNullSpace:
    """That of a system with one solution."""

    by_region, mean_weight = False, 0.0

    def launch_removal(self, launch, x) -> None:
        """Nothing is to be removed."""


class ConnectedRegions:
    """The constants of the regions of fluid of a system that are connected in themselves and that nothing holds.

    Attributes:
        count: How many regions there are; a cell that nothing is open to is none.
        singular: Whether there is one, and nothing holds its pressure.
        several: Whether means have to be removed region by region.
        held: Whether a side holds a value for any of them.
        unknowns: How many unknowns the system has.
    """

    by_region, mean_weight = True, 0.0

    def __init__(self, system: LinearSystem):
        self._system = system
        self._label = self._balanced = None
        self._partials, self._out = room_for_partials(), ti.ndarray(ti.f32, 2)
        self._changed = ti.ndarray(ti.i32, 1)
        self._kernels = region_kernels(system.grid.loops)
        self.unknowns, self._lists, self._firsts = 0, (), list[int]()
        self._order = self._sizes = np.zeros(0, int)
        self.forget()

    def forget(self) -> None:
        """Nobody has looked for regions."""
        self.count, self.singular, self.several, self.held = 0, False, False, False

    def any_held(self, scratch) -> bool:
        """Whether anything is held at all, in whatever region; ``scratch`` is an array over the grid to work in."""
        system = self._system
        kernels = system.kernels(label_kernels)
        kernels.find_held(system.inv_diag, system.open, scratch, system.n, self._partials, self._out)
        return numbers_of(self._out)[1] > 0

    def find(self, scratch, unknowns: int) -> None:
        """Look for regions of so many unknowns; ``scratch`` is an array over the grid to work in."""
        system, grid, self.unknowns = self._system, self._system.grid, unknowns
        if self._label is None:
            self._label = ti.ndarray(ti.i32, grid.cells)
        kernels, label = system.kernels(label_kernels), self._label
        kernels.start_labels(label, system.inv_diag, system.n)
        changed = 1
        while changed:
            self._changed.fill(0)
            kernels.hook(label, system.inv_diag, system.open, self._changed, system.n, system.wrap)
            kernels.shorten(label, system.n)
            changed = self._changed[0]
        kernels.count_roots(label, system.n, self._partials, self._out)
        kernels.find_held(system.inv_diag, system.open, scratch, system.n, self._partials, self._out)
        roots, held = numbers_of(self._out)
        self.count, self.held = int(roots), bool(held)
        self.singular, self.several = self.count == 1 and held == 0, self.count > 1
        if self.several:
            self._list(label.to_numpy(), grid.to_numpy(scratch).ravel() if held else None)

    def _list(self, label, held) -> None:
        """List the cells of each region whose pressure nothing holds, in chunks."""
        grid = self._system.grid
        interior = (slice(1, -1),) * grid.dim
        index = np.arange(grid.cells, dtype=np.int32).reshape(grid.padded)[interior].ravel()
        label = label.reshape(grid.padded)[interior].ravel()
        roots_held = np.zeros(grid.cells, bool)
        if held is not None:
            roots_held[label[held > 0]] = True
        wanted = (label >= 0) & ~roots_held[label]
        label, index = label[wanted], index[wanted]
        order = np.argsort(label, kind="stable")
        starts = np.flatnonzero(np.diff(label[order], prepend=-1))
        ends = np.append(starts, len(order))[1:]
        self._order, self._sizes = index[order], ends - starts
        chunks, regions = [0], [0]
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            chunks += [*range(start + CHUNK, end, CHUNK), end]
            regions.append(len(chunks) - 1)
        self.several = len(regions) > 1
        self._firsts = regions[:-1]
        self._lists = (
            tuple(array_of(values, ti.i32) for values in (self._order, chunks, regions)) if self.several else ()
        )
        self._sums = ti.ndarray(ti.f32, 2 * len(chunks))
        self._sums.fill(0.0)

    def launch_removal(self, launch, x) -> None:
        """Make ``x`` orthogonal to the constant of every region."""
        launch(self._kernels.remove_means, x, *self._lists, self._sums)

    def balanced(self, rhs):
        """``rhs`` without the mean of each region, in an array of its own; and the largest of those means."""
        if self._balanced is None:
            self._balanced = self._system.grid.array()
        self._balanced.copy_from(rhs)
        self._kernels.remove_means(self._balanced, *self._lists, self._sums)
        means = self._means()
        return self._balanced, float(means[np.argmax(np.abs(means))])

    def sums(self, rhs) -> np.ndarray:
        """The sum of ``rhs`` over each region."""
        self.balanced(rhs)
        return self._means() * self._sizes

    @property
    def numbers(self) -> np.ndarray:
        """Of each cell that of its region, where there are several; -1 where a side holds a value, or nothing is solved for."""
        grid = self._system.grid
        numbers = np.full(grid.cells, -1)
        numbers[self._order] = np.repeat(np.arange(len(self._sizes)), self._sizes)
        return numbers.reshape(grid.padded)[(slice(1, -1),) * grid.dim]

    def _means(self) -> np.ndarray:
        """Those that were removed last, of each region."""
        chunk_count = self._sums.shape[0] // 2 - 1
        return self._sums.to_numpy()[chunk_count : 2 * chunk_count][self._firsts]


def call(kernel, *args) -> None:
    """What stands in for a recorder's ``launch`` where a kernel is launched at once."""
    kernel(*args)


NullSpace = NoNullSpace | Constant | ConnectedRegions
