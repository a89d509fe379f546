"""The core of a liquid: what lies so deep that no particles are needed, as the grid carries it (Ferstl et al. 2016).

A core cell has no particles and counts as full. In a step the core goes where its velocity takes it: cells that it has come
into are known to be in the liquid, and faces there have the velocity from where it was. Then the core is found anew, so and so
many cells below the surface as it is now; its cells lose their particles, and what the core has left is filled with new ones,
in those places of a lattice that were in the core before the step: as many as it has left.
"""

from collections.abc import Sequence

from .._ti import argument, ti
from ..boundaries.solids import Solids
from ..boundaries.walls import Walls
from ..grid import Grid, Scratch
from ..kernels import (
    ARRAY_BITS,
    Array,
    IntArray,
    add,
    address,
    along_strip,
    cell_of_strip,
    cells_of,
    copy_values,
    float_vector,
    int_vector,
    kernel_family,
    lane,
    numbers_of,
    position_of,
    put_line,
    room_for_partials,
)
from ..limits import LEAST_BAND
from ..operators.interpolation import mean_of_corners
from ..operators.shapes import SHAPES
from .core_ways import Depth, Reached, carry_strip, reach_strip
from .motion import Way
from .particles import FULL, NOWHERE, Cloud, Particles
from .sides import CLOSED, closed_all_over

BELOW = 1.0
"""How deep a surface that is found from particles says that a cell is at the most, in cells."""
MOST_BAND = 12
"""Cells: a sum over a wider band might leave 32 bits; in one narrower than ``LEAST_BAND`` what the core has come into, however little of that, would be all that shows how deep it lies."""
NEVER = 1 << 16
"""Mark of what can be no part of the core, more than all others together."""
MARGIN = 1.5
"""Cells around solids, sources and sinks in which the liquid counts as shallow, however deep it is."""
LEFT, FOUND = 1, 2
"""Marks of how the core changes: it has come into a cell in a step; it is found there again after it. ``LEFT`` alone: not again."""


@argument
class _Window:
    """What is summed over: ``band`` cells to both sides along the axis ``along`` of a grid of ``n``."""

    along: object
    band: object
    n: object


@ti.func
def _take_over_at(c, I, s, u: Array, weight: Array, ahead: Array, reached: IntArray, n):
    for axis in ti.static(range(s.n)):
        if reached[c] + reached[c - s[axis]] > 0:
            face = c + axis * cells_of(s, n)
            u[face] = ahead[face]
            weight[face] = ti.f32(1.0)


@ti.func
def _mark_shallow(c, I, s, shallow: IntArray, depth, distance: Array, closed, n, given: ti.template()):
    """0 for what is deep; beyond closed sides what is beside them goes on, beyond others and beside solids nothing can be."""
    mark, inside = ti.i32(0), c
    for axis in ti.static(range(s.n)):
        if I[axis] < 1 or I[axis] > n[axis]:
            inside += ti.select(I[axis] < 1, s[axis], -s[axis])
            if closed[2 * axis + ti.cast(I[axis] > 1, ti.i32)] != CLOSED:
                mark = ti.i32(NEVER)
    if mark == 0:
        mark = ti.cast(not depth.is_deep(inside), ti.i32)
        if ti.static(given):
            if mean_of_corners(distance, inside, s) < ti.f32(MARGIN) * depth.dx:
                mark = ti.i32(NEVER)
    shallow[c] = mark


@ti.func
def _add_number(k, c, source: IntArray, sums: ti.template()):
    sums[ti.i32(0), k] = sums[ti.i32(0), k] + source[cell_of_strip(c, k)]


@ti.func
def _put_if_core(k, c, I, out: IntArray, sums: ti.template(), few, depth, n):
    J, inside = position_of(I, k), ti.i32(1)
    for axis in ti.static(range(n.n)):
        inside = inside & ti.cast((J[axis] >= 1) & (J[axis] <= n[axis]), ti.i32)
    at = cell_of_strip(c, k)
    out[at] = inside & ti.cast((sums[ti.i32(0), k] <= few // 2) & depth.is_deep(at), ti.i32)


@ti.func
def _is_any_deep(k, c, depth, found: ti.template()):
    found |= ti.cast(depth.is_deep(lane(c, k)), ti.i32)


@ti.func
def _sum_strip(c, I, m, s, source: IntArray, out: IntArray, depth, window, width: ti.template()):
    """The sum over ``band`` cells to both sides along an axis; on the last one whether that is little, in what is deep.

    A level surface that comes into what is looked at shows twice as many.
    """
    last = ti.static(s.n - 1)
    sums, along, band, n = ti.Matrix.zero(ti.i32, 1, width), window.along, window.band, window.n
    any_deep = ti.i32(0)
    if along == last:
        along_strip(m, width, _is_any_deep, (c, depth, any_deep))
    if along == last and any_deep == 0:
        along_strip(m, width, put_line, (out, c, sums, 0))
    elif along == last:
        here, end, total, few = I[last], n[last] + 1, ti.i32(0), ti.i32(1)
        for k in range(here - band, here + band + 1):
            total += source[c + (ti.min(ti.max(k, 0), end) - here)]
        for k in range(m):
            sums[ti.i32(0), k] = total
            entering, leaving = ti.min(here + k + band + 1, end), ti.max(here + k - band, 0)
            total += source[c + (entering - here)] - source[c + (leaving - here)]
        for _ in ti.static(range(last)):
            few *= 2 * band + 1
        along_strip(m, width, _put_if_core, (c, I, out, sums, few, depth, n))
    else:
        here, end, stride = I[0], n[0] + 1, s[0]
        for axis in ti.static(range(1, last)):
            if axis == along:
                here, end, stride = I[axis], n[axis] + 1, s[axis]
        for k in range(here - band, here + band + 1):
            there = c + (ti.min(ti.max(k, 0), end) - here) * stride
            along_strip(m, width, _add_number, (address(there, ARRAY_BITS), source, sums))
        along_strip(m, width, put_line, (out, c, sums, 0))


@ti.func
def _never_at(c, I, s, shallow: IntArray, distance_of: ti.template(), shape: ti.template(), origin, dx):
    a, b, radius = ti.static(shape)
    if distance_of(origin + (ti.cast(I, ti.f32) - ti.f32(0.5)) * dx, a, b, radius) < ti.f32(MARGIN) * dx:
        shallow[c] = ti.i32(NEVER)


@ti.func
def _drop_at(c, I, s, reached: IntArray, found: IntArray, change: IntArray, cloud):
    change[c] = LEFT * reached[c] + FOUND * found[c]
    if found[c] == 1:
        cell = ti.cast(c, ti.i32)
        for i in range(cloud.starts[cell], cloud.starts[cell + 1]):
            cloud.position[cloud.order[i]] = ti.f32(NOWHERE)


@ti.func
def _counted_at(c, I, s, found: IntArray, cloud):
    """Of a cell: 1 if it is in the core, and the particles that it had."""
    cell = ti.cast(c, ti.i32)
    had = ti.cast(cloud.starts[cell + 1] - cloud.starts[cell], ti.f32)
    return ti.cast(found[c], ti.f32) * ti.Vector([ti.f32(1.0), had])


@kernel_family
def core_kernels(loops, given):
    Index, width = loops.IntVector, loops.width
    Flags = int_vector(2 * loops.dim)

    @ti.kernel
    def reach(
        velocity: Array,
        was: IntArray,
        reached: IntArray,
        shift: Array,
        phi: Array,
        n: Index,
        step: ti.f32,
        dx: ti.f32,
        band: ti.i32,
        part: ti.f32,
    ):
        core, way = Reached(reached, shift), Way(velocity, n, step, part=part)
        loops.each_strip(n, width, reach_strip, (core, was, Depth(phi, dx, band), way, width))

    @ti.kernel
    def carry(velocity: Array, ahead: Array, reached: IntArray, shift: Array, n: Index):
        core = Reached(reached, shift)
        loops.each_strip_to(n + 2, n, width, carry_strip, (velocity, ahead, core, n, width))

    @ti.kernel
    def take_over(velocity: Array, weight: Array, ahead: Array, reached: IntArray, n: Index):
        loops.each_cell_in(n * 0 + 1, n + 2, n, _take_over_at, (velocity, weight, ahead, reached, n))

    @ti.kernel
    def mark_shallow(shallow: IntArray, phi: Array, distance: Array, closed: Flags, n: Index, dx: ti.f32):
        loops.each_cell_in(n * 0, n + 2, n, _mark_shallow, (shallow, Depth(phi, dx), distance, closed, n, given))

    @ti.kernel
    def sum_up(source: IntArray, out: IntArray, phi: Array, along: ti.i32, band: ti.i32, n: Index, dx: ti.f32):
        window = _Window(along, band, n)
        loops.each_strip_in(n * 0, n + 2, n, width, _sum_strip, (source, out, Depth(phi, dx), window, width))

    @ti.kernel
    def drop(
        reached: IntArray,
        found: IntArray,
        change: IntArray,
        position: Array,
        order: IntArray,
        starts: IntArray,
        partials: Array,
        out: Array,
        n: Index,
    ):
        cloud, none = Cloud(position, None, None, order, starts, None), ti.Vector([ti.f32(0.0), ti.f32(0.0)])
        loops.each_cell(n, _drop_at, (reached, found, change, cloud))
        loops.reduce_cells(n, partials, none, add, _counted_at, (found, cloud))
        ti.loop_config(serialize=True)
        for _ in range(1):
            total = loops.reduced(partials, none, add)
            out[0], out[1] = total[0], total[1]

    return reach, carry, take_over, mark_shallow, sum_up, drop


@kernel_family
def margin_kernels(loops, shape):
    Index, Point = loops.IntVector, loops.FloatVector

    @ti.kernel
    def never(shallow: IntArray, n: Index, a: Point, b: Point, radius: ti.f32, origin: Point, dx: ti.f32):
        loops.each_cell(n, _never_at, (shallow, SHAPES[shape], (a, b, radius), origin, dx))

    return (never,)


class Core:
    """Knows which cells of one grid have no particles as they lie deep in the liquid, and carries the velocity there.

    Args:
        grid: A staggered grid.
        walls: Its sides; at those that are closed all over the liquid may be deep.
        scratch: Arrays to work in, between ``carry`` and ``take_over``.
        solids: What stands in it.

    Attributes:
        band: Cells below the surface in which particles are kept; 0: everywhere.
        cells: How many cells the core has.
        dropped: How many particles the last ``find`` has taken away.
        marks: 1 for each cell of the core, and after ``advance`` for each that it has come into, else 0.
        was: The same before ``advance``.
        found: What ``find`` has found.
        change: Marks of both, ``LEFT`` and ``FOUND``, after ``drop``.
        step: Cells that 1 m/s has gone in the last ``advance``.
        part: Of the way back, where that asked for the velocity.
        went: The velocity of that, m/s.
    """

    def __init__(self, grid: Grid, walls: Walls, scratch: Scratch, solids: Solids | None):
        self.grid, self.solids, self.band, self.cells, self.dropped = grid, solids, 0, 0, 0
        self._ahead, self._kernels = scratch.vector, core_kernels(grid.costly_loops, solids is not None)
        self._closed, self._nothing = closed_all_over(walls), ti.ndarray(ti.f32, 1)
        self.marks = self.was = self.found = ti.ndarray(ti.i32, 1)
        self.change = self._partials = self._out = self.marks
        self._shift, self.step, self.part, self.went = None, 0.0, 0.0, self._nothing

    @property
    def active(self) -> bool:
        """Whether there is a core, or may be one at the end of a step."""
        return self.marks.shape[0] > 1

    def keep(self, band: int) -> None:
        """Keep particles in so many cells below the surface, ``LEAST_BAND`` at least, from the next ``find`` on; 0: everywhere."""
        self.band = max(band, LEAST_BAND) if band else 0
        if band:
            self.allocate()

    def allocate(self) -> None:
        """Have room for a core, if there is none yet."""
        if not self.active:
            self.marks, self.was, self.found, self.change = (ti.ndarray(ti.i32, self.grid.cells) for _ in range(4))
            for array in (self.marks, self.was, self.found, self.change):
                array.fill(0)
            self._partials, self._out = room_for_partials(2), ti.ndarray(ti.f32, 2)
            self.went = self.grid.velocity()

    def clear(self) -> None:
        """Have no core."""
        self.cells = self.dropped = 0
        if self.active:
            self.marks.fill(0)
            self.change.fill(0)

    def advance(self, velocity, phi, dt: float, shift, part: float) -> None:
        """Let the core go with a velocity for ``dt`` seconds, from where ``find`` has seen it.

        Args:
            velocity: m/s, of the grid, ghosts filled.
            phi: The surface before the step.
            dt: Seconds.
            shift: An array like the velocity, which belongs to the core until ``carry``.
            part: Of its way back, where the velocity is asked for.
        """
        self.step, self.part = dt / self.grid.dx, part
        if self.cells:
            copy_values(velocity, self.went)
            self.was, self.marks = self.marks, self.was
            self._shift, band = shift, max(self.band, 1)
            self._kernels.reach(
                velocity, self.was, self.marks, shift, phi, self.grid.n, -self.step, self.grid.dx, band, part
            )

    def carry(self, velocity) -> None:
        """Find what velocity the core brings along, from that with which it has gone; ``take_over`` comes next."""
        if self.cells:
            self._kernels.carry(velocity, self._ahead, self.marks, self._shift, self.grid.n)

    def keep_velocity(self, velocity) -> None:
        """Have ``take_over`` leave a velocity as it is on the faces of the core."""
        if self.cells:
            copy_values(velocity, self._ahead)

    def take_over(self, velocity, weight) -> None:
        """Set the faces of the core to what ``carry`` has found or ``keep_velocity`` has kept, and their ``weight`` to 1."""
        if self.cells:
            self._kernels.take_over(velocity, weight, self._ahead, self.marks, self.grid.n)

    def find(self, phi, shallow: Sequence[tuple], least: int = 0) -> None:
        """Find the core anew, in ``found``: below a surface ``phi``, m, by the ``band``, and not around some shapes.

        The band is of so many cells at ``least``, as far as there can be as many.

        A gap between particles is no surface: where fewer cells are shallow than half of those that a level surface shows, what
        is deep is in the core all the same, and next to that the gap is closed.
        """
        kernels, grid, band = self._kernels, self.grid, min(max(self.band, least), MOST_BAND)
        if not self.band:
            self.found.fill(0)
            return
        distance = self._nothing if self.solids is None else self.solids.distance
        source, out = (self.found, self.change) if grid.dim == 2 else (self.change, self.found)
        kernels.mark_shallow(source, phi, distance, self._closed, grid.n, grid.dx)
        point = float_vector(grid.dim)
        for shape, a, b, radius in shallow:
            where = point(*a), point(*b), radius, point(*grid.origin), grid.dx
            margin_kernels(grid.loops, shape).never(source, grid.n, *where)
        for axis in range(grid.dim):
            kernels.sum_up(source, out, phi, axis, band, grid.n, grid.dx)
            source, out = out, source

    def drop(self, particles: Particles) -> None:
        """Have the core that ``find`` has found, and no particles there."""
        _, _, _, order, starts, _ = particles.arrays()
        marks = self.marks, self.found, self.change
        self._kernels.drop(*marks, particles.position, order, starts, self._partials, self._out, self.grid.n)
        self.marks, self.found = self.found, self.marks
        cells, dropped = numbers_of(self._out)
        self.cells, self.dropped = int(cells), int(dropped)

    @property
    def particles(self) -> int:
        """How many particles the core would have."""
        return FULL[self.grid.dim] * self.cells

    def held_with(self, particles: Particles) -> int:
        """How many particles there are, with those that the core would have."""
        return particles.count - self.dropped + self.particles


def cover_of(core: Core | None, nothing) -> tuple:
    """What kernels are told of a core: its marks, and whether there may be any; ``nothing`` is any array of whole numbers."""
    return (core.marks, True) if core is not None and core.active else (nothing, False)
