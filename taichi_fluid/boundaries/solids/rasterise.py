"""Solids on a grid: the distance to the nearest of them, and from it what of each face and cell is open."""

from ..._ti import argument, ti
from ...kernels import Array, IntArray, cells_of, kernel_family
from ...operators.differences import covered_area, open_sum
from ...operators.interpolation import step_to_corner, strides_across
from ...operators.shapes import covered_part, covered_square
from ...operators.vectors import length
from .exact import SolidShapes

SLIVER = 0.002
"""A face that is open by less than this is closed: what flows through it is not worth its stiffness."""
SLIVER_OF_LIQUID = 0.03
"""The same for a liquid: what is pressed into the wedge between a ball and a floor squirted through less at ten times the speed of
all else, and made steps as much shorter."""
LEAST_PART = 0.5
"""The least part of a cell that is fluid, over how far its faces are open on the mean."""
PARTS = {2: 8, 3: 4}
"""Parts along each axis of a face, by how many axes there are, each of which is asked for itself how much of it a solid covers."""
_FAR_FROM_FACE = 0.75
"""Edges of a cell beyond which what is at one corner of a face is nowhere else on it: a point of it is 0.71 from one at most."""
_TOUCH = 1e-4
"""Part of a cell by which solids are larger than they say."""


@argument
class Nearest:
    """The distance to the nearest solid at points of the grid, and which it is."""

    distance: object  # m
    owner: object
    shapes: object  # ``SolidShapes``
    dx: object  # edge of a cell, m

    @ti.func
    def distance_to(self, shape, x):
        """Signed distance from the place ``x`` to the shape of a solid, with what that is larger by."""
        # What only touches a corner covers it: else a wall one cell thin that fits the cells would be seen by none.
        return shape.distance_to(x) - ti.f32(_TOUCH) * self.dx

    @ti.func
    def open_part_at(self, c, I, s, axis):
        """Part of the lower face of ``c`` along ``axis`` that lies outside, where these points are the cells' corners."""
        across, corners = strides_across(s, axis), ti.Vector([ti.f32(0.0)] * 2 ** (s.n - 1))
        for corner in ti.static(range(2 ** (s.n - 1))):
            corners[corner] = self.distance[c + step_to_corner(corner, across)]
        covered = ti.select(corners.max() < 0, ti.f32(1.0), ti.f32(0.0))
        if ti.max(corners.min(), -corners.max()) < ti.f32(_FAR_FROM_FACE) * self.dx:
            covered = self.covered_part_at(c, I, s, axis)
        return ti.f32(1.0) - covered

    @ti.func
    def covered_part_at(self, c, I, s, axis):
        """Part of that face inside, from the distances at a lattice of points on it, linear between those.

        Between its corners alone they are not: inside a solid the nearest face of it is that beyond its edge.
        """
        parts = ti.static(PARTS[s.n])
        across, d = strides_across(s, axis), ti.Vector([ti.f32(1e6)] * (parts + 1) ** (s.n - 1))
        last = -1
        for corner in range(2 ** (s.n - 1)):
            index = ti.cast(self.owner[c + step_to_corner(corner, across)], ti.i32)
            if index != last:
                last = index
                shape = self.shapes.of(index, s.n)
                for point in range((parts + 1) ** (s.n - 1)):
                    d[point] = ti.min(d[point], self.distance_to(shape, self.place_on_face(point, I, axis)))
        covered = ti.f32(0.0)
        for part in range(ti.select(d.min() < 0, parts ** (s.n - 1), 0)):
            if ti.static(s.n == 2):
                covered += covered_part(d[part], d[part + 1])
            else:
                first = part // parts * (parts + 1) + part % parts
                covered += covered_square(
                    ti.Vector([d[first], d[first + 1], d[first + parts + 2], d[first + parts + 1]])
                )
        return covered * ti.f32(1.0 / parts ** (s.n - 1))

    @ti.func
    def place_on_face(self, point, I, axis):
        """A point of that lattice, in metres from the lower corner of the box."""
        x, parts = (ti.cast(I, ti.f32) - ti.f32(1.0)) * self.dx, ti.static(PARTS[I.n])
        for k in ti.static(range(I.n - 1)):
            along = ti.cast(point // (parts + 1) ** k % (parts + 1), ti.f32) * (self.dx / ti.f32(1.0 * parts))
            # Either of two axes, both known: an index that is not would put the vector into memory.
            x[k] += ti.select(axis > k, along, ti.f32(0.0))
            x[k + 1] += ti.select(axis <= k, along, ti.f32(0.0))
        return x


@ti.func
def _write_nearest(c, I, s, nearest, shift, count):
    x = (ti.cast(I, ti.f32) + (shift - ti.f32(1.0))) * nearest.dx
    for index in range(count):
        shape = nearest.shapes.of(index, s.n)
        if shape.which >= 0:
            d = nearest.distance_to(shape, x)
            if d < nearest.distance[c]:
                nearest.distance[c] = d
                nearest.owner[c] = ti.cast(index, ti.f32)


@ti.func
def is_face_of_box(I, n, axis):
    """Whether the lower face of ``I`` belongs to the box: along ``axis`` faces reach to n + 1, across it cells to n."""
    inside = 1
    for a in ti.static(range(n.n)):
        if a != axis and I[a] > n[a]:
            inside = 0
    return inside


@ti.func
def _write_open(c, I, s, nearest, open: Array, n, sliver, voxels: ti.template()):
    """From the distances at the corners of the cells; for voxels, from those at their centres. Less than ``sliver`` is nothing."""
    for axis in range(s.n):
        if is_face_of_box(I, n, axis):
            part = ti.f32(1.0)
            if ti.static(voxels):
                if nearest.distance[c] < 0 or nearest.distance[c - s[axis]] < 0:
                    part = ti.f32(0.0)
            else:
                part = nearest.open_part_at(c, I, s, axis)
                if part < sliver:
                    part = ti.f32(0.0)
            open[c + axis * cells_of(s, n)] = part


@ti.func
def _write_fluid(c, I, s, open: Array, distance: Array, fluid: Array, n, inv_dx, voxels: ti.template()):
    """The part of a cell that is fluid; of voxels all of it or nothing.

    By Gauss's theorem, seen from the foot of its centre on the surface: each face adds how far it is open times its distance
    from there, the surface nothing. Exact for a plane, but that no part is so small that diffusion empties it at once.
    """
    total, depth = open_sum(open, c, s, n), ti.f32(0.0)
    part = ti.select(total > 0, ti.f32(1.0), ti.f32(0.0))
    if ti.static(not voxels):
        for corner in ti.static(range(2**s.n)):
            depth += ti.f32(0.5**s.n) * inv_dx * distance[c + step_to_corner(corner, s)]
        opening = total / ti.cast(2 * s.n, ti.f32)
        part = opening + length(covered_area(open, c, s, n)) * depth / ti.cast(s.n, ti.f32)
        part = ti.min(ti.max(part, ti.f32(LEAST_PART) * opening), ti.f32(1.0))
    fluid[c] = part


@kernel_family
def raster_kernels(loops, functions, sampled, voxels):
    IntVector, each_cell, each_cell_in = loops.IntVector, loops.each_cell, loops.each_cell_in

    @ti.kernel
    def rasterize(
        distance: Array,
        owner: Array,
        shapes: Array,
        lattices: Array,
        starts: IntArray,
        n: IntVector,
        dx: ti.f32,
        shift: ti.f32,
        count: ti.i32,
    ):
        nearest = Nearest(distance, owner, SolidShapes(shapes, lattices, starts, functions, sampled), dx)
        each_cell_in(n * 0, n + 2, n, _write_nearest, (nearest, shift, count))

    @ti.kernel
    def compute_open(
        distance: Array,
        owner: Array,
        shapes: Array,
        lattices: Array,
        starts: IntArray,
        open: Array,
        n: IntVector,
        dx: ti.f32,
        sliver: ti.f32,
    ):
        nearest = Nearest(distance, owner, SolidShapes(shapes, lattices, starts, functions, sampled), dx)
        each_cell_in(n * 0 + 1, n + 2, n, _write_open, (nearest, open, n, sliver, voxels))

    @ti.kernel
    def compute_fluid(open: Array, distance: Array, fluid: Array, n: IntVector, inv_dx: ti.f32):
        each_cell(n, _write_fluid, (open, distance, fluid, n, inv_dx, voxels))

    return rasterize, compute_open, compute_fluid
