"""Bricks of cells: which of them hold anything to see, so that rays jump over those that do not."""

from .._ti import argument, local, subscript, ti, traced
from ..grid import Grid
from ..kernels import flat, strides_of

EDGE = 4
"""Cells along the edge of a brick."""


@argument
class Occupancy:
    """Which bricks hold anything to see."""

    occupied: object  # 1 where something can be seen, else 0
    n: object  # how many there are along each axis

    @traced
    def brick_at(self, q):
        """Integer position of the brick that holds the point ``q`` of the cells' index space."""
        brick = ti.cast((q - ti.cast(0.5, ti.f32)) * ti.cast(1.0 / EDGE, ti.f32), ti.i32) + 1
        return local(ti.min(ti.max(brick, 1), self.n))

    @ti.func
    def mark(self, I):
        """There is something in a cell: it counts for all bricks inside which interpolation reads it."""
        low, high = ti.max(ti.raw_div(I + (EDGE - 2), EDGE), 1), ti.min(ti.raw_div(I, EDGE) + 1, self.n)
        for corner in range(2**I.n):
            brick = low
            for axis in ti.static(range(I.n)):
                brick[axis] = ti.select((corner >> axis) & 1 == 1, high[axis], low[axis])
            self.occupied[flat(brick, strides_of(self.n))] = ti.f32(1.0)

    @traced
    def empty(self, brick):
        """Whether there is nothing to see in a brick."""
        return subscript(self.occupied, flat(brick, strides_of(self.n))) == 0


@traced
def steps_to_leave(brick, place, ray, start, step):
    """Number of the first step that lies outside a brick; step ``j`` lies at ``place + (start + j step) ray``."""
    side = ti.cast(EDGE, ti.i32) * (brick - ti.select(ray > 0, 0, 1))
    end = (ti.cast(0.5, ti.f32) + ti.cast(side, ti.f32) - place) / ray
    far = ti.cast(1e9, ti.f32)
    end = local(ti.select(abs(ray) > ti.cast(1e-8, ti.f32), end, far))
    for axis in range(place.n):
        far = ti.min(far, subscript(end, axis))
    return ti.cast(ti.ceil((far - start) / step), ti.i32)


def brick_grid(grid: Grid) -> Grid:
    """A grid with one cell for each brick."""
    return Grid(tuple(-(-n // EDGE) for n in grid.shape), EDGE * grid.dx)
