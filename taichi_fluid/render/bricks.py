"""Bricks of cells: which of them hold anything to see, so that rays jump over those that do not."""

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, kernel_family, strides_of

EDGE = 4
"""Cells along the edge of a brick."""


@ti.func
def _write_occupied(
    c, I, s, extinction: ti.template(), distance: ti.template(), occupied: ti.template(), fine_n,
    least, has_solids: ti.template(),
):  # fmt: skip
    """1 if anything that interpolation inside the brick reads is there: also the layer of cells around it."""
    fine_s = strides_of(fine_n)
    low, high = I, I
    cells = 1
    for axis in ti.static(range(I.n)):
        low[axis] = ti.static(EDGE) * (I[axis] - 1)
        high[axis] = ti.min(low[axis] + ti.static(EDGE + 2), fine_n[axis] + 2)
        cells *= high[axis] - low[axis]
    found = ti.f32(0.0)
    index = 0
    while index < cells and found == 0:
        rest = index
        at = fine_s[0] * 0
        for axis in ti.static(range(I.n - 1, -1, -1)):
            width = high[axis] - low[axis]
            at += (low[axis] + rest % width) * fine_s[axis]
            rest = rest // width
        if extinction[at] > least:
            found = ti.f32(1.0)
        if ti.static(has_solids):
            if distance[at] < 0:
                found = ti.f32(1.0)
        index += 1
    occupied[c] = found


@ti.func
def steps_to_leave(eye, ray, start, step, brick, k, brick_n):
    """Number of the first step, after the ``k``-th, that lies outside a brick; step ``j`` lies at ``start + j step``."""
    leave = ti.f32(1e9)
    for axis in ti.static(range(eye.n)):
        slope = ray[axis]
        if ti.abs(slope) > ti.f32(1e-8):
            side = brick[axis] - 1
            if slope > 0:
                side = brick[axis]
            leave = ti.min(leave, (ti.f32(0.5) + ti.cast(ti.static(EDGE) * side, ti.f32) - eye[axis]) / slope)
    return ti.max(ti.cast(ti.ceil((leave - start) / step), ti.i32), k + 1)


@ti.func
def brick_at(q, brick_n):
    """Integer position of the brick that holds the point ``q`` of the cells' index space."""
    brick = ti.cast((q - ti.f32(0.5)) * ti.f32(1.0 / EDGE), ti.i32) + 1
    for axis in ti.static(range(q.n)):
        brick[axis] = ti.min(ti.max(brick[axis], 1), brick_n[axis])
    return brick


@kernel_family
def brick_kernels(loops, has_solids):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def compute_occupied(
        extinction: Array, distance: Array, occupied: Array, n: IntVector, fine_n: IntVector, least: ti.f32
    ):
        each_cell(n, _write_occupied, (extinction, distance, occupied, fine_n, least, has_solids))

    return {"compute_occupied": compute_occupied}


class Bricks:
    """The bricks of one grid.

    Attributes:
        grid: One cell for each brick.
        occupied: 1 for bricks where something can be seen, 0 for the others.
    """

    def __init__(self, grid: Grid):
        self.grid = Grid(tuple(-(-n // EDGE) for n in grid.shape), EDGE * grid.dx)
        self._fine_n = grid.n
        self.occupied = self.grid.array()
        self._nothing = ti.ndarray(ti.f32, 1)

    def update(self, extinction, least: float, distance=None) -> None:
        """Look for an extinction, 1/m with ghosts, above ``least``, and for distances below 0 at lower corners."""
        solid = self._nothing if distance is None else distance
        brick_kernels(self.grid.costly_loops, distance is not None).compute_occupied(
            extinction, solid, self.occupied, self.grid.n, self._fine_n, least
        )
