"""Particles that carry a liquid, in flat arrays, found by the cell that they are in.

A position is in cells from the lower corner of the first interior cell. Arrays of several components have one after the
other, each as long as there is room for particles.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._ti import argument, ti, traced
from ..grid import Grid
from ..kernels import ARRAY_BITS, Array, address, cells_of, flat, kernel_family, strides_of
from ..kernels.layout import IntArray
from ..limits import MAX_ARRAY_BYTES
from ..operators.vectors import is_finite

PER_AXIS = {2: 3, 3: 2}
"""Particles along each axis of a full cell: in 2D, where they cost little, one more."""
FULL = {dim: along**dim for dim, along in PER_AXIS.items()}
"""Particles of a full cell."""
GROWTH = 1.1
"""Room that is made for each particle that there was none for."""
KEPT_ORDER = 8
"""Steps after which particles are moved in memory to where their cells are; between two moves only their order is."""
NOWHERE = -1e9
"""First coordinate of a particle that is no longer in the box, until the next ``sort`` drops it."""
LOST = 2 * NOWHERE
"""First coordinate of one whose position was not finite: ``sort`` drops and counts it."""
SHARES = 1024
"""Parts in which the numbers of particles in the cells are summed."""


@argument
class Cloud:
    """The particles as kernels see them: those of cell ``c`` are ``order[starts[c]]`` to below ``order[starts[c + 1]]``."""

    position: object
    velocity: object
    affine: object
    order: object
    starts: object
    room: object


@ti.func
def vector_at(a: Array, p, room, like):
    """A vector of particle ``p``; ``like`` is any of its length."""
    v = like
    for axis in ti.static(range(like.n)):
        v[axis] = a[address(p + axis * room, ARRAY_BITS)]
    return v


@ti.func
def set_vector(a: Array, p, room, v):
    """Set a vector of particle ``p``."""
    for axis in ti.static(range(v.n)):
        a[address(p + axis * room, ARRAY_BITS)] = v[axis]


@traced
def zero_of(n):
    """A vector of zeros, f32, as long as the shape ``n``."""
    return ti.Vector([ti.cast(0.0, ti.f32)] * n.n)


@ti.func
def cell_at(x, n):
    """Flat index of the cell that a position is in; the number of all for one that is nowhere, one more for one that is lost."""
    s = strides_of(n)
    cell = ti.cast(cells_of(s, n), ti.i32)
    if not is_finite(x.sum()) or x[0] < 0.75 * LOST:
        cell += 1
    elif x[0] > NOWHERE:
        I = ti.cast(ti.floor(x), ti.i32) + 1
        cell = ti.cast(flat(ti.min(ti.max(I, 1), n), s), ti.i32)
    return cell


@ti.func
def share_begins(share, length):
    """Where one of the ``SHARES`` of so many begins; without a product, which of two million cells is beyond 32 bits."""
    return length // SHARES * share + ti.min(share, length % SHARES)


@ti.func
def sum_share(counts: IntArray, begin, end):
    """Sum of the counts of some cells."""
    total = ti.i32(0)
    for i in range(begin, end):
        total += counts[i]
    return total


@kernel_family
def sorting_kernels(loops):
    IntVector = loops.IntVector

    @ti.kernel
    def count(
        position: Array, cell: IntArray, rank: IntArray, counts: IntArray, n: IntVector, room: ti.i32, number: ti.i32
    ):
        """Count the particles of each cell; ``rank`` is how many of its cell have been counted before each."""
        for c in range(counts.shape[0]):
            counts[c] = ti.i32(0)
        for p in range(number):
            at = cell_at(vector_at(position, p, room, zero_of(n)), n)
            cell[p] = at
            rank[p] = ti.atomic_add(counts[at], ti.i32(1))

    @ti.kernel
    def sum_up(counts: IntArray, sums: IntArray, starts: IntArray, length: ti.i32):
        """``starts[i]`` becomes the sum of the counts before ``i``, and the last of them that of all."""
        for share in range(SHARES):
            sums[share] = sum_share(counts, share_begins(share, length), share_begins(share + 1, length))
        ti.loop_config(serialize=True)
        for _whole in range(1):
            total = ti.i32(0)
            for share in range(SHARES):
                total += sums[share]
                sums[share] = total - sums[share]
        for share in range(SHARES):
            total = sums[share]
            for i in range(share_begins(share, length), share_begins(share + 1, length)):
                starts[i] = total
                total += counts[i]
            if share == SHARES - 1:
                starts[length] = total

    @ti.kernel
    def place(cell: IntArray, rank: IntArray, starts: IntArray, order: IntArray, cells: ti.i32, number: ti.i32):
        """Put each particle among those of its cell, in the order that they have in memory, which their ranks nearly are."""
        for p in range(number):
            order[starts[cell[p]] + rank[p]] = p
        for c in range(cells):
            for i in range(starts[c] + 1, starts[c + 1]):
                p, k = order[i], i
                while k > starts[c] and order[k - 1] > p:
                    order[k] = order[k - 1]
                    k -= 1
                order[k] = p

    @ti.kernel
    def move(source: Array, target: Array, order: IntArray, room: ti.i32, components: ti.i32, number: ti.i32):
        for p in range(number):
            here = order[p]
            for k in range(components):
                target[p + k * room] = source[here + k * room]

    @ti.kernel
    def put_in_line(order: IntArray, number: ti.i32):
        for p in range(number):
            order[p] = p

    return count, sum_up, place, move, put_in_line


class Particles:
    """Particles of one grid.

    Attributes:
        position: In cells from the lower corner of the box.
        velocity: m/s.
        affine: Derivatives of the velocity, 1/s: component ``row``, along axis ``column``, at row · dim + column.
        count: How many there are; after ``sort`` without those that have left.
        lost: How many ``sort`` has dropped because their positions were not finite.
        room: How many there is room for.
        order: Numbers of particles, cell by cell.
        starts: Where those of each cell begin in ``order``, after them those that have left and those that are lost, and how
            many there are in all.

    Args:
        grid: The grid.
        room: For how many there is room at first.

    Raises:
        ValueError: if there are more than arrays can hold.
    """

    position: Any
    velocity: Any
    affine: Any

    def __init__(self, grid: Grid, room: int = 0):
        self._spare: dict[str, Any] = {}
        self.grid, self.count, self.lost, self.room, self._moved = grid, 0, 0, 0, 0
        self._kernels = sorting_kernels(grid.loops)
        self.starts = ti.ndarray(ti.i32, grid.cells + 3)
        self._counts, self._sums = ti.ndarray(ti.i32, grid.cells + 2), ti.ndarray(ti.i32, SHARES)
        self.starts.fill(0)
        self._placed = False
        self._make(max(room, 1))

    @staticmethod
    def components(dim: int) -> dict[str, int]:
        """What each carries, and of how many numbers."""
        return {"position": dim, "velocity": dim, "affine": dim * dim}

    @classmethod
    def bytes_each(cls, dim: int) -> int:
        """Bytes of device memory that a particle takes: twice what it carries, its cell, its rank there, its place in the order."""
        return 4 * (2 * sum(cls.components(dim).values()) + 3)

    def _make(self, room: int) -> None:
        dim = self.grid.dim
        size = 4 * room * max(self.components(dim).values())
        if size > MAX_ARRAY_BYTES:
            raise ValueError(
                f"{room} particles need an array of {size / 2**30:.2f} GiB; one array may hold less than 2 GiB"
            )
        self.room = room
        for name, count in self.components(dim).items():
            setattr(self, name, ti.ndarray(ti.f32, count * room))
            self._spare[name] = ti.ndarray(ti.f32, count * room)
        self.order, self._cell, self._rank = (ti.ndarray(ti.i32, room) for _ in range(3))
        self._kernels.put_in_line(self.order, room)

    def arrays(self) -> tuple:
        """What a kernel makes its ``Cloud`` of."""
        return self.position, self.velocity, self.affine, self.order, self.starts, self.room

    def reserve(self, room: int) -> None:
        """Make room for so many in all; which are in a cell stays known."""
        if room <= self.room:
            return
        names = tuple(self.components(self.grid.dim))
        old, before, count = [getattr(self, name) for name in names], self.room, self.count
        order = self.order.to_numpy()
        ti.sync()  # what is dropped here may be in use
        self._make(max(int(GROWTH * room), 64))
        self.order.from_numpy(np.concatenate([order, np.arange(before, self.room, dtype=np.int32)]))
        for source, name in zip(old, names, strict=True):
            target, values = getattr(self, name), source.to_numpy().reshape(-1, before)
            wider = np.zeros((len(values), self.room), np.float32)
            wider[:, :count] = values[:, :count]
            target.from_numpy(wider.ravel())

    def clear(self) -> None:
        """Have none."""
        self.count = self.lost = self._moved = 0
        self._placed = False
        self.starts.fill(0)

    def add(self, position: np.ndarray, velocity: np.ndarray, **others: np.ndarray) -> None:
        """Add particles, each a row of the positions, in cells, of the velocities, m/s, and of what else is given, or 0."""
        added = len(position)
        if not added:
            return
        self.reserve(self.count + added)
        new = slice(self.count, self.count + added)
        rows = {"position": position, "velocity": velocity, **others}
        for name, components in self.components(self.grid.dim).items():
            array = getattr(self, name)
            values = array.to_numpy().reshape(-1, self.room)
            values[:, new] = np.broadcast_to(rows.get(name, np.zeros(components)), (added, components)).T
            array.from_numpy(values.ravel())
        self.count += added
        self._moved, self._placed = 0, False

    def grow(self, counts, offsets, most: float = math.inf) -> None:
        """Have as many more as the ``counts`` of the cells say, but no more than ``most`` in all.

        ``offsets`` becomes where those of each cell begin.
        """
        self._kernels.sum_up(counts, self._sums, offsets, self.grid.cells)
        added = int(max(min(offsets[self.grid.cells], most - self.count), 0))
        self.reserve(self.count + added)
        self.count += added
        self._placed = self._placed and not added

    def scattered(self) -> None:
        """They have been moved: which are in a cell is to be found anew."""
        self._placed = False

    def place(self) -> None:
        """Find which particles each cell has, those too that were made since ``sort``; they stay where they are in memory."""
        if not self._placed:
            self._place()

    def _place(self) -> None:
        kernels, cells = self._kernels, self.grid.cells
        kernels.count(self.position, self._cell, self._rank, self._counts, self.grid.n, self.room, self.count)
        kernels.sum_up(self._counts, self._sums, self.starts, cells + 2)
        kernels.place(self._cell, self._rank, self.starts, self.order, cells, self.count)
        self._placed = True

    def sort(self) -> None:
        """Find which particles each cell has, and drop those that have left."""
        self._place()
        remaining = int(self.starts[self.grid.cells])
        if remaining < self.count:
            self.lost += self.count - int(self.starts[self.grid.cells + 1])
        if remaining < self.count or self._moved == 0:
            for name in self.components(self.grid.dim):
                self._move(name, remaining)
            self._kernels.put_in_line(self.order, remaining)
            self.count = remaining
        self._moved = (self._moved + 1) % KEPT_ORDER

    def _move(self, name: str, count: int) -> None:
        """Move one of the arrays into the order of the cells."""
        array = getattr(self, name)
        self._kernels.move(array, self.spare(name), self.order, self.room, array.shape[0] // self.room, count)
        self.take(name)

    def spare(self, name: str) -> Any:
        """Room to write one of the arrays anew, until ``take``."""
        return self._spare[name]

    def take(self, name: str) -> None:
        """Let one of the arrays be what was written into its ``spare``."""
        array = getattr(self, name)
        setattr(self, name, self._spare[name])
        self._spare[name] = array

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, int]]:
        """All of it, as it lies in memory: arrays, and numbers."""
        arrays = {
            name: getattr(self, name).to_numpy().reshape(-1, self.room)[:, : self.count].copy()
            for name in self.components(self.grid.dim)
        }
        return arrays, {"count": self.count, "moved": self._moved}

    def restore_state(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, int]) -> None:
        """Be what ``state`` has found; ``sort`` comes before anything asks for the particles of a cell.

        Raises:
            ValueError: for arrays of other shapes.
        """
        count, dim = int(numbers["count"]), self.grid.dim
        self.clear()
        self.reserve(count)
        for name, components in self.components(dim).items():
            if name not in arrays or arrays[name].shape != (components, count):
                raise ValueError(f"liquid/{name} is missing, or of another number of particles")
            values = np.zeros((components, self.room), np.float32)
            values[:, :count] = arrays[name]
            getattr(self, name).from_numpy(values.ravel())
        self.count, self._moved, self._placed = count, int(numbers["moved"]), False

    def to_numpy(self) -> dict[str, np.ndarray]:
        """Position in metres, velocity in m/s and what else each carries, each row a particle."""
        grid = self.grid
        rows = {
            name: getattr(self, name).to_numpy().reshape(-1, self.room)[:, : self.count].T
            for name in self.components(grid.dim)
        }
        here = rows["position"][:, 0] > NOWHERE
        rows = {name: values[here] for name, values in rows.items()}
        rows["position"] = rows["position"] * grid.dx + np.float32(grid.origin)
        return rows | ({"affine": rows["affine"].reshape(-1, grid.dim, grid.dim)} if "affine" in rows else {})
