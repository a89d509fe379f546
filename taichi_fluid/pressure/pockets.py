"""Pockets: the regions of fluid that are connected with each other and with nothing else.

In each one that no side holds a value for, the pressure is free up to a constant of its own, and what flows in must
flow out. Found by union-find on the device (Shiloach and Vishkin 1982): every cell points at the lowest index it knows
of in its region, roots are hooked under lower roots of their neighbours, pointers are halved, until nothing changes.
"""

import numpy as np

from .._ti import ti
from ..kernels import PARTIALS, Array, IntArray, add, cells_of, kernel_family, largest
from .poisson import PoissonLevel

CHUNK = 4096
"""Cells of one pocket that are summed by one thread."""


@ti.func
def _start_label_at(c, I, s, label: ti.template(), inv_diag: ti.template()):
    label[c] = ti.cast(c, ti.i32)
    if inv_diag[c] == 0:
        label[c] = ti.i32(-1)


@ti.func
def _hook_at(c, I, s, label: ti.template(), inv_diag: ti.template(), open: ti.template(), changed: ti.template(), n,
             wrap, cut: ti.template()):  # fmt: skip
    """Hang the root of ``c`` under the root of its lower neighbour along each axis, or the other way round."""
    if inv_diag[c] > 0:
        cells = cells_of(s, n)
        for a in ti.static(range(s.n)):
            other = c - s[a]
            if I[a] == 1 and wrap[a] == 1:
                other = c + (n[a] - 1) * s[a]
            joined = inv_diag[other] > 0 and (I[a] > 1 or wrap[a] == 1)
            if ti.static(cut):
                joined = joined and open[c + a * cells] > 0
            if joined:
                one, two = label[c], label[other]
                if one != two:
                    changed[0] = ti.i32(1)
                    if one > two:
                        ti.atomic_min(label[one], two)
                    else:
                        ti.atomic_min(label[two], one)


@ti.func
def _shorten_at(c, I, s, label: ti.template()):
    if label[c] >= 0:
        here = label[c]
        while label[here] != here:
            here = label[here]
        label[c] = here


@ti.func
def _is_root_at(c, I, s, label: ti.template()):
    value = ti.f32(0.0)
    if label[c] == c:
        value = ti.f32(1.0)
    return value


@ti.func
def _held_at(c, I, s, inv_diag: ti.template(), open: ti.template(), held: ti.template(), n, cut: ti.template()):
    """How much of the diagonal belongs to values that are held beyond a side of the box, and not to other cells."""
    value = ti.f32(0.0)
    if inv_diag[c] > 0:
        cells = cells_of(s, n)
        inner = ti.f32(0.0)
        for a in ti.static(range(s.n)):
            for side in ti.static(range(2)):
                if inv_diag[c + (2 * side - 1) * s[a]] > 0:
                    if ti.static(cut):
                        inner += open[c + a * cells + side * s[a]]
                    else:
                        inner += ti.f32(1.0)
        value = ti.f32(1.0) / inv_diag[c] - inner
    if value < ti.f32(1e-3):
        value = ti.f32(0.0)
    held[c] = value
    return value


@kernel_family
def label_kernels(loops, coupling):
    IntVector, each_cell = loops.IntVector, loops.each_cell
    reduce_to = loops.reduce_to
    cut = coupling.cut

    @ti.kernel
    def start_labels(label: IntArray, inv_diag: Array, n: IntVector):
        each_cell(n, _start_label_at, (label, inv_diag))

    @ti.kernel
    def hook(label: IntArray, inv_diag: Array, open: Array, changed: IntArray, n: IntVector, wrap: IntVector):
        each_cell(n, _hook_at, (label, inv_diag, open, changed, n, wrap, cut))

    @ti.kernel
    def shorten(label: IntArray, n: IntVector):
        each_cell(n, _shorten_at, (label,))

    @ti.kernel
    def count_roots(label: IntArray, n: IntVector, partials: Array, out: Array):
        reduce_to(out, 0, n, partials, ti.f32(0.0), add, _is_root_at, (label,))

    @ti.kernel
    def find_held(inv_diag: Array, open: Array, held: Array, n: IntVector, partials: Array, out: Array):
        reduce_to(out, 1, n, partials, ti.f32(0.0), largest, _held_at, (inv_diag, open, held, n, cut))

    return {
        "start_labels": start_labels,
        "hook": hook,
        "shorten": shorten,
        "count_roots": count_roots,
        "find_held": find_held,
    }


@kernel_family
def pocket_kernels(loops):
    @ti.kernel
    def remove_means(x: Array, order: IntArray, chunks: IntArray, pockets: IntArray, sums: Array):
        """Sum chunk by chunk and pocket by pocket, always in the same order, and subtract each pocket's mean."""
        pocket_count = pockets.shape[0] - 1
        chunk_count = chunks.shape[0] - 1
        for chunk in range(chunk_count):
            total = ti.f32(0.0)
            for k in range(chunks[chunk], chunks[chunk + 1]):
                total += x[order[k]]
            sums[chunk] = total
        for pocket in range(pocket_count):
            total = ti.f32(0.0)
            for chunk in range(pockets[pocket], pockets[pocket + 1]):
                total += sums[chunk]
            mean = total / ti.cast(chunks[pockets[pocket + 1]] - chunks[pockets[pocket]], ti.f32)
            for chunk in range(pockets[pocket], pockets[pocket + 1]):
                sums[chunk_count + chunk] = mean
        for chunk in range(chunk_count):
            for k in range(chunks[chunk], chunks[chunk + 1]):
                x[order[k]] = x[order[k]] - sums[chunk_count + chunk]

    return {"remove_means": remove_means}


class Pockets:
    """The pockets of one operator.

    Attributes:
        count: How many there are; a cell that nothing is open to is none.
        singular: Whether there is one pocket, and nothing holds its pressure.
        several: Whether means have to be removed pocket by pocket.
        held: Whether a side holds a value for any of them.
    """

    def __init__(self, level: PoissonLevel):
        self._level = level
        self._label = None
        self._partials, self._out = ti.ndarray(ti.f32, PARTIALS), ti.ndarray(ti.f32, 2)
        self._changed = ti.ndarray(ti.i32, 1)
        self._kernels = pocket_kernels(level.grid.loops)
        self.count, self.singular, self.several, self.held = 0, False, False, False
        self._lists = ()

    def find(self, scratch) -> None:
        """Look for pockets; ``scratch`` is an array over the grid to work in."""
        level, grid = self._level, self._level.grid
        if self._label is None:
            self._label = ti.ndarray(ti.i32, grid.cells)
        kernels, label = label_kernels(grid.loops, level.coupling), self._label
        kernels.start_labels(label, level.inv_diag, level.n)
        changed = 1
        while changed:
            self._changed.fill(0)
            kernels.hook(label, level.inv_diag, level.open, self._changed, level.n, level.wrap)
            kernels.shorten(label, level.n)
            changed = self._changed[0]
        kernels.count_roots(label, level.n, self._partials, self._out)
        kernels.find_held(level.inv_diag, level.open, scratch, level.n, self._partials, self._out)
        roots, held = self._out.to_numpy()
        self.count, self.held = int(roots), bool(held)
        self.singular, self.several = self.count == 1 and held == 0, self.count > 1
        if self.several:
            self._list(label.to_numpy(), grid.to_numpy(scratch).ravel() if held else None)

    def _list(self, label, held) -> None:
        """List the cells of each pocket whose pressure nothing holds, in chunks."""
        grid = self._level.grid
        interior = (slice(1, -1),) * grid.dim
        index = np.arange(grid.cells, dtype=np.int32).reshape(grid.padded)[interior].ravel()
        label = label.reshape(grid.padded)[interior].ravel()
        wanted = label >= 0
        if held is not None:
            wanted &= ~np.isin(label, np.unique(label[held > 0]))
        label, index = label[wanted], index[wanted]
        order = np.argsort(label, kind="stable")
        starts = np.flatnonzero(np.diff(label[order], prepend=-1))
        ends = np.append(starts, len(order))[1:]
        chunks, pockets = [0], [0]
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            chunks += [*range(start + CHUNK, end, CHUNK), end]
            pockets.append(len(chunks) - 1)
        self.several = len(pockets) > 1
        self._lists = tuple(_int_array(values) for values in (index[order], chunks, pockets)) if self.several else ()
        self._sums = ti.ndarray(ti.f32, 2 * len(chunks))
        self._sums.fill(0.0)

    def launch_remove_means(self, launch, x) -> None:
        """Make ``x`` orthogonal to the constant of every pocket; ``launch`` is a recorder's, or ``call``."""
        launch(self._kernels.remove_means, x, *self._lists, self._sums)

    def remove_means(self, x) -> float:
        """Do it now; returns the largest mean."""
        self._kernels.remove_means(x, *self._lists, self._sums)
        chunk_count = self._sums.shape[0] // 2 - 1
        means = self._sums.to_numpy()[chunk_count : 2 * chunk_count]
        return float(means[np.argmax(np.abs(means))])


def _int_array(values):
    values = np.ascontiguousarray(values, dtype=np.int32)
    array = ti.ndarray(ti.i32, len(values))
    array.from_numpy(values)
    return array
