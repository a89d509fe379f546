"""Solids on a grid: the distance to the nearest of them, and from it what of each face and cell is open."""

from ..._ti import argument, loaded, ti
from ...kernels import Array, cells_of, kernel_family
from ...operators.differences import covered_area, open_sum
from ...operators.interpolation import step_to_corner
from ...operators.shapes import covered_part, covered_triangle
from ...operators.vectors import length

SLIVER = 0.002
"""A face that is open by less than this is closed: what flows through it is not worth its stiffness."""
SLIVER_OF_LIQUID = 0.03
"""The same for a liquid: what is pressed into the wedge between a ball and a floor squirted through less at ten times the speed of
all else, and made steps as much shorter."""
LEAST_PART = 0.5
"""The least part of a cell that is fluid, over how far its faces are open on the mean."""
_TOUCH = 1e-4
"""Part of a cell by which solids are larger than they say."""


@argument
class PlacedShape:
    """A shape turned by the matrix ``rotation`` and moved to ``pivot``, to which everything of it is relative, in metres.

    A ``"named"`` one is ``shape(x, a, b, radius)``, one's ``"own"`` is ``shape(x)``; a ``"sampled"`` one is a ``table`` of
    ``size`` points, the first of which lies at ``a``, ``inv_spacing`` of them in a metre.
    """

    shape: object
    kind: object
    pivot: object
    rotation: object
    a: object
    b: object
    radius: object
    table: object
    size: object
    inv_spacing: object

    @ti.func
    def distance_at(self, place):
        """Signed distance in metres."""
        x = self.rotation.transpose() @ (place - self.pivot)
        d = ti.f32(0.0)
        if ti.static(self.kind == "named"):
            d = self.shape(x, self.a, self.b, self.radius)
        elif ti.static(self.kind == "sampled"):
            d = self.sampled_at(x)
        else:
            d = ti.cast(self.shape(x), ti.f32)
        return d

    @ti.func
    def sampled_at(self, x):
        """Linear interpolation of the lattice; outside it, the value at its edge and the way there."""
        q = (x - self.a) * self.inv_spacing
        inside = ti.min(ti.max(q, x * ti.f32(0.0)), ti.cast(self.size - 1, ti.f32))
        corner = ti.min(ti.cast(inside, ti.i32), self.size - 2)
        f = inside - ti.cast(corner, ti.f32)
        total = ti.f32(0.0)
        for vertex in ti.static(range(2**x.n)):
            w = ti.f32(1.0)
            at = 0
            for axis in ti.static(range(x.n)):
                if ti.static((vertex >> axis) & 1):
                    at = at * self.size[axis] + corner[axis] + 1
                    w *= f[axis]
                else:
                    at = at * self.size[axis] + corner[axis]
                    w *= ti.f32(1.0) - f[axis]
            total += w * self.table[at]
        return total + length(q - inside) / self.inv_spacing


@ti.func
def _write_nearest(c, I, s, distance: Array, owner: Array, index, origin, dx, shape):
    d = loaded(shape).distance_at(origin + (ti.cast(I, ti.f32) - ti.f32(1.0)) * dx)
    # What only touches a corner covers it: else a wall one cell thin that fits the cells would be seen by none.
    d -= ti.f32(_TOUCH) * dx
    if d < distance[c]:
        distance[c] = d
        owner[c] = ti.cast(index, ti.f32)


@ti.func
def face_corners(distance: Array, c, s, axis):
    """Distances at the four corners of the lower face of ``c`` along ``axis``, one after the other around it, in 3D."""
    one, two = s[(axis + ti.i32(1)) % ti.i32(3)], s[(axis + ti.i32(2)) % ti.i32(3)]
    return ti.Vector([distance[c], distance[c + one], distance[c + one + two], distance[c + two]])


@ti.func
def _open_part_at(distance: Array, c, s, axis):
    """Part of the lower face of ``c`` along ``axis`` that lies outside, from the distances at its corners."""
    covered = ti.f32(0.0)
    if ti.static(s.n == 2):
        covered = covered_part(distance[c], distance[c + s[ti.i32(1) - axis]])
    else:
        corners = face_corners(distance, c, s, axis)
        if corners.max() < 0:
            covered = ti.f32(1.0)
        elif corners.min() < 0:
            # Four triangles around the middle: no diagonal is preferred.
            middle = ti.f32(0.25) * corners.sum()
            for k in range(4):
                covered += ti.f32(0.25) * covered_triangle(corners[k], corners[(k + ti.i32(1)) % ti.i32(4)], middle)
    return ti.f32(1.0) - covered


@ti.func
def is_face_of_box(I, n, axis):
    """Whether the lower face of ``I`` belongs to the box: along ``axis`` faces reach to n + 1, across it cells to n."""
    inside = 1
    for a in ti.static(range(n.n)):
        if a != axis and I[a] > n[a]:
            inside = 0
    return inside


@ti.func
def _write_open(c, I, s, distance: Array, open: Array, n, sliver, voxels: ti.template()):
    """From the distances at the corners of the cells; for voxels, from those at their centres. Less than ``sliver`` is nothing."""
    for axis in range(s.n):
        if is_face_of_box(I, n, axis):
            part = ti.f32(1.0)
            if ti.static(voxels):
                if distance[c] < 0 or distance[c - s[axis]] < 0:
                    part = ti.f32(0.0)
            else:
                part = _open_part_at(distance, c, s, axis)
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
def shape_kernels(loops, shape, kind):
    IntVector, FloatVector, each_cell_in = loops.IntVector, loops.FloatVector, loops.each_cell_in
    Rotation = ti.types.matrix(loops.dim, loops.dim, ti.f32)

    @ti.kernel
    def rasterize(
        distance: Array, owner: Array, n: IntVector, index: ti.i32, origin: FloatVector, dx: ti.f32,
        pivot: FloatVector, rotation: Rotation, a: FloatVector, b: FloatVector, radius: ti.f32,
        table: Array, size: IntVector, inv_spacing: ti.f32,
    ):  # fmt: skip
        placed = PlacedShape(shape, kind, pivot, rotation, a, b, radius, table, size, inv_spacing)
        each_cell_in(n * 0, n + 2, n, _write_nearest, (distance, owner, index, origin, dx, placed))

    return {"rasterize": rasterize, "Rotation": Rotation}


@kernel_family
def raster_kernels(loops, voxels):
    IntVector, each_cell, each_cell_in = loops.IntVector, loops.each_cell, loops.each_cell_in

    @ti.kernel
    def compute_open(distance: Array, open: Array, n: IntVector, sliver: ti.f32):
        each_cell_in(n * 0 + 1, n + 2, n, _write_open, (distance, open, n, sliver, voxels))

    @ti.kernel
    def compute_fluid(open: Array, distance: Array, fluid: Array, n: IntVector, inv_dx: ti.f32):
        each_cell(n, _write_fluid, (open, distance, fluid, n, inv_dx, voxels))

    return compute_open, compute_fluid
