"""Bricks of cells: which of them hold anything to see, so that rays jump over those that do not."""

from .._ti import argument, ti
from ..grid import Grid
from ..kernels import Array, flat, kernel_family, strides_of
from .surfaces import Obstacle

EDGE = 4
"""Cells along the edge of a brick."""


@ti.func
def _write_occupied(c, I, s, occupied: ti.template(), extinction: ti.template(), least, obstacle):
    """1 if anything that interpolation inside the brick reads is there: also the layer of cells around it."""
    n, cell_s = obstacle.n, strides_of(obstacle.n)
    low = ti.i32(EDGE) * (I - 1)
    high = ti.min(low + ti.i32(EDGE + 2), n + 2)
    most, nearest = ti.f32(0.0), ti.f32(1.0)
    for i in range(low[0], high[0]):
        for j in range(low[1], high[1]):
            row = i * cell_s[0] + j * cell_s[1]
            for k in range(low[2], high[2]):
                most = ti.max(most, extinction[row + k])
                if ti.static(obstacle.there):
                    nearest = ti.min(nearest, obstacle.distance[row + k])
    occupied[c] = ti.cast(most > least or nearest < 0, ti.f32)


@argument
class Occupancy:
    """Which bricks hold anything to see, and how many there are along each axis."""

    occupied: object
    n: object

    @ti.func
    def brick_at(self, q):
        """Integer position of the brick that holds the point ``q`` of the cells' index space."""
        brick = ti.cast((q - ti.f32(0.5)) * ti.f32(1.0 / EDGE), ti.i32) + 1
        return ti.min(ti.max(brick, 1), self.n)

    @ti.func
    def empty(self, brick):
        """Whether there is nothing to see in a brick."""
        return self.occupied[flat(brick, strides_of(self.n))] == 0


@ti.func
def steps_to_leave(brick, place, ray, start, step):
    """Number of the first step that lies outside a brick; step ``j`` lies at ``place + (start + j step) ray``."""
    leave = ti.f32(1e9)
    for axis in ti.static(range(place.n)):
        side = ti.i32(EDGE) * (brick[axis] - ti.select(ray[axis] > 0, 0, 1))
        there = (ti.f32(0.5) + ti.cast(side, ti.f32) - place[axis]) / ray[axis]
        leave = ti.select(ti.abs(ray[axis]) > ti.f32(1e-8), ti.min(leave, there), leave)
    return ti.cast(ti.ceil((leave - start) / step), ti.i32)


@kernel_family
def brick_kernels(loops, has_solids):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def compute_occupied(
        extinction: Array, distance: Array, occupied: Array, n: IntVector, fine_n: IntVector, least: ti.f32
    ):
        obstacle = Obstacle(distance, fine_n, ti.f32(1.0), has_solids)
        each_cell(n, _write_occupied, (occupied, extinction, least, obstacle))

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
