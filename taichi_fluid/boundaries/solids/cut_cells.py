"""Cells that solids cut: whose a face is, how it moves, and what passes through it."""

from ..._ti import argument, ti
from ...kernels import Array, cells_of, kernel_family, largest
from ...operators.ghosts import across_seams
from ...operators.interpolation import blend, has_ends, step_to_corner, strides_across
from ...operators.shapes import coverage, covered_triangle, open_moment
from ...operators.vectors import length
from .rasterise import is_face_of_box

MOTION_ROW = 10
"""Numbers of one solid in the table of motions: velocity, angular velocity, centre of rotation, slip."""

NARROW = 0.5
"""Open fractions of all faces of a cell together below which two solids that meet in it have it to themselves."""

PARTS = 4
"""Along each axis, the parts of a cell of which each is asked how much a solid covers of it."""


@argument
class CutCells:
    """The solids as operators see them; made of ``Solids.arguments()`` in a kernel."""

    open: object  # how far the lower face of each cell along each axis is open, 0 to 1
    distance: object  # signed distance to the nearest solid at the lower corner of each cell, m
    owner: object  # which solid that is
    motions: object  # how each solid moves, in rows of ``MOTION_ROW``
    n: object  # cells
    origin: object  # lower corner of the box, m
    dx: object  # edge of a cell, m
    period: object = None  # of each axis, in cells, 0 where it has sides; for what asks beyond the box
    wraps: bool = False  # whether any axis has one

    @ti.func
    def across(self, J):
        """A position brought back into the box along periodic axes."""
        K = J
        if ti.static(self.wraps):
            K = across_seams(J, self.n, ti.cast(self.period > 0, ti.i32))
        return K

    @ti.func
    def ends(self, axis: ti.template()):
        """Whether an axis is not periodic."""
        return has_ends(axis, self.period, self.wraps)

    @ti.func
    def row_at(self, c, s, axis):
        """Where the motion of the solid begins that is nearest to the lower face of ``c`` along ``axis``."""
        best, index, across = self.distance[c], self.owner[c], strides_across(s, axis)
        for corner in range(1, ti.static(2 ** (s.n - 1))):
            node = c + step_to_corner(corner, across)
            if self.distance[node] < best:
                best, index = self.distance[node], self.owner[node]
        return ti.static(MOTION_ROW) * ti.cast(index, ti.i32)

    @ti.func
    def slips_at(self, c, s, axis):
        """1 if the solid nearest to the lower face of ``c`` along ``axis`` lets the fluid slip, else 0."""
        return self.motions[self.row_at(c, s, axis) + ti.static(MOTION_ROW - 1)]

    @ti.func
    def middle_of(self, I, axis):
        """Middle of the lower face of the cell at position ``I`` along ``axis``, m."""
        x = self.origin + (ti.cast(I, ti.f32) - ti.f32(0.5)) * self.dx
        x[axis] -= ti.f32(0.5) * self.dx
        return x

    @ti.func
    def velocity_of(self, row, x, own):
        """Velocity along ``own`` at ``x``, m, of the solid whose motion begins at ``row``, m/s."""
        value = self.motions[row + own]
        if ti.static(x.n == 3):
            one, two = (own + ti.i32(1)) % ti.i32(3), (own + ti.i32(2)) % ti.i32(3)
            value += self.motions[row + one + 3] * (x[two] - self.motions[row + two + 6])
            value -= self.motions[row + two + 3] * (x[one] - self.motions[row + one + 6])
        else:
            across, sign = ti.i32(1) - own, ti.select(own == 1, ti.f32(1.0), ti.f32(-1.0))
            value += sign * self.motions[row + 5] * (x[across] - self.motions[row + 6 + across])
        return value

    @ti.func
    def velocity_at(self, c, I, s, axis):
        """Velocity along ``axis`` of the solid nearest to the lower face of ``c`` along ``axis``, m/s."""
        return self.velocity_of(self.row_at(c, s, axis), self.middle_of(I, axis), axis)

    @ti.func
    def distance_at(self, c, s, axis):
        """Signed distance to the nearest solid at the middle of the lower face of ``c`` along ``axis``, m."""
        across, total = strides_across(s, axis), ti.f32(0.0)
        for corner in ti.static(range(2 ** (s.n - 1))):
            total += self.distance[c + step_to_corner(corner, across)]
        return total * ti.f32(0.5 ** (s.n - 1))

    @ti.func
    def face_corners(self, c, s, axis):
        """Distances at the four corners of the lower face of ``c`` along ``axis``, one after the other around it, in 3D."""
        one, two = s[(axis + ti.i32(1)) % ti.i32(3)], s[(axis + ti.i32(2)) % ti.i32(3)]
        return ti.Vector(
            [self.distance[c], self.distance[c + one], self.distance[c + one + two], self.distance[c + two]]
        )

    @ti.func
    def open_distance_at(self, c, s, axis):
        """Mean distance to the nearest solid over what is open of the lower face of ``c`` along ``axis``, m."""
        mean = ti.f32(0.0)
        if ti.static(s.n == 2):
            one, two = self.distance[c], self.distance[c + s[ti.i32(1) - axis]]
            mean = ti.f32(0.5) * (ti.max(one, two, ti.f32(0.0)) + ti.max(ti.min(one, two), ti.f32(0.0)))
        else:
            corners = self.face_corners(c, s, axis)
            middle, covered = ti.f32(0.25) * corners.sum(), ti.f32(0.0)
            for k in range(4):
                one, two = corners[k], corners[(k + ti.i32(1)) % ti.i32(4)]
                mean += ti.f32(0.25) * open_moment(one, two, middle)
                covered += ti.f32(0.25) * covered_triangle(one, two, middle)
            mean /= ti.max(ti.f32(1.0) - covered, ti.f32(1e-6))
        return mean

    @ti.func
    def covered_volume_at(self, c, s):
        """Part of cell ``c`` that solids cover, from the distances at its corners.

        ``Solids.fluid`` leaves more than there is of small parts, so that diffusion does not empty them: loads of a liquid by
        that have an order of 1.4 and not of 2.1 (``taichi-fluid validate archimedes``).
        """
        covered, corners = ti.f32(0.0), ti.Vector([ti.f32(0.0)] * 2**s.n)
        for corner in ti.static(range(2**s.n)):
            corners[corner] = self.distance[c + step_to_corner(corner, s)]
        for part in range(ti.static(PARTS**s.n)):
            at = ti.Vector([ti.f32(0.0)] * s.n)
            for axis in ti.static(range(s.n)):
                at[axis] = (ti.cast(part // PARTS**axis % PARTS, ti.f32) + ti.f32(0.5)) * ti.f32(1.0 / PARTS)
            covered += coverage(blend(corners, at), ti.f32(1.0 * PARTS) / self.dx)
        return covered * ti.f32(PARTS**-s.n)

    @ti.func
    def flux_at(self, u: Array, c, I, s, axis):
        """What passes the lower face of ``c``, the fluid through its open part, the solid through the rest; the last, its speed, m/s."""
        face = c + axis * cells_of(s, self.n)
        flux, driven, speed, part = u[face], ti.f32(0.0), ti.f32(0.0), self.open[face]
        if part < 1:
            speed = self.velocity_at(c, I, s, axis)
            driven = (ti.f32(1.0) - part) * speed
            flux = part * u[face] + driven
        return ti.Vector([flux, driven, ti.abs(speed)])

    @ti.func
    def outflow_at(self, u: Array, c, I, s):
        """Dx times the divergence of cell ``c``, fluid and solid taken together.

        One rigid solid drives out of a cell about its own speed times what is open, at most. Two that meet there may drive out of
        it any amount through hardly anything: where less is open than ``NARROW``, what is more than twice that is let go.
        """
        total, driven, fastest, opened = ti.f32(0.0), ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)
        for axis in ti.static(range(s.n)):
            J = I
            J[axis] += 1
            upper, lower = self.flux_at(u, c + s[axis], J, s, axis), self.flux_at(u, c, I, s, axis)
            total += upper[0]
            total -= lower[0]
            driven += upper[1] - lower[1]
            fastest = ti.max(fastest, ti.max(upper[2], lower[2]))
            opened += self.open[c + s[axis] + axis * cells_of(s, self.n)] + self.open[c + axis * cells_of(s, self.n)]
        most = ti.f32(2.0) * opened * fastest
        if opened < ti.f32(NARROW) and ti.abs(driven) > most:
            total -= driven - ti.min(ti.max(driven, -most), most)
        return total

    @ti.func
    def normal_at(self, c, s):
        """Direction in which the distance grows fastest, from the corners of cell ``c``."""
        g = ti.cast(s, ti.f32) * ti.f32(0.0)
        for corner in range(ti.static(2**s.n)):
            for axis in ti.static(range(s.n)):
                upper = ti.cast((corner >> axis) & 1, ti.f32)
                g[axis] += (ti.f32(2.0) * upper - ti.f32(1.0)) * self.distance[c + step_to_corner(corner, s)]
        return g / ti.max(length(g), ti.f32(1e-20))

    @ti.func
    def normal_of(self, c, s, axis):
        """The same at the lower face of ``c`` along ``axis``."""
        both = self.normal_at(c, s) + self.normal_at(c - s[axis], s)
        return both / ti.max(length(both), ti.f32(1e-20))


@ti.func
def _enforce_at(c, I, s, u: Array, solids):
    for axis in range(s.n):
        face = c + axis * cells_of(s, solids.n)
        if is_face_of_box(I, solids.n, axis) and solids.open[face] == 0:
            u[face] = solids.velocity_at(c, I, s, axis)


@ti.func
def _solid_speed_at(c, I, s, solids):
    speed = ti.f32(0.0)
    for axis in range(s.n):
        if solids.open[c + axis * cells_of(s, solids.n)] < 1:
            speed = ti.max(speed, ti.abs(solids.velocity_at(c, I, s, axis)))
    return speed


@ti.func
def _mean_around(a: Array, at, weight: Array, weight_at, s, fallback):
    """Mean of ``a`` over those of the 3^dim places around where ``weight`` is positive; ``fallback`` without any."""
    total, count = ti.f32(0.0), ti.f32(0.0)
    for around in ti.static(range(3**s.n)):
        step = s[0] * 0
        for axis in ti.static(range(s.n)):
            step += s[axis] * ti.static(around // 3**axis % 3 - 1)
        if weight[weight_at + step] > 0:
            total += a[at + step]
            count += ti.f32(1.0)
    return ti.select(count > 0, total / count, fallback)


@ti.func
def _extend_scalar_at(c, I, s, a: Array, fluid: Array, offset):
    if fluid[c] == 0:
        a[offset + c] = _mean_around(a, offset + c, fluid, c, s, a[offset + c])


@ti.func
def _grow_at(c, I, s, known: Array, out: Array):
    """Above 0 where ``known`` is, and one cell around that."""
    out[c] = _mean_around(known, c, known, c, s, ti.f32(0.0))


@ti.func
def _clear_scalar_at(c, I, s, a: Array, fluid: Array, offset):
    if fluid[c] == 0:
        a[offset + c] = ti.f32(0.0)


@ti.func
def _mean_across(u: Array, c, s, axis, other, solids, fallback):
    """The velocity along another axis at a face along ``axis``: of those of the four faces around that are open; else ``fallback``."""
    total, count, first = ti.f32(0.0), ti.f32(0.0), c + other * cells_of(s, solids.n)
    for corner in range(4):
        place = first - (corner & 1) * s[axis] + (corner >> 1) * s[other]
        if solids.open[place] > 0:
            total += u[place]
            count += ti.f32(1.0)
    return ti.select(count > 0, total / count, fallback)


@ti.func
def _extend_velocity_at(c, I, s, u: Array, solids):
    """In a solid that lets it slip, closed faces take the velocity beside them, and along the normal that of the solid."""
    for axis in range(s.n):
        face = c + axis * cells_of(s, solids.n)
        if solids.open[face] == 0:
            if solids.slips_at(c, s, axis) > 0:
                row, x, normal = solids.row_at(c, s, axis), solids.middle_of(I, axis), solids.normal_of(c, s, axis)
                own = solids.velocity_of(row, x, axis)
                beside = _mean_around(u, face, solids.open, face, s, own)
                leaving = normal[axis] * (beside - own)
                for other in range(s.n):
                    if other != axis:
                        own = solids.velocity_of(row, x, other)
                        leaving += normal[other] * (_mean_across(u, c, s, axis, other, solids, own) - own)
                u[face] = beside - normal[axis] * leaving


@kernel_family
def solid_kernels(loops):
    Index, Point, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell

    @ti.kernel
    def enforce(
        velocity: Array, open: Array, distance: Array, owner: Array, motions: Array, n: Index, origin: Point, dx: ti.f32
    ):
        solids = CutCells(open, distance, owner, motions, n, origin, dx)
        loops.each_cell_in(n * 0 + 1, n + 2, n, _enforce_at, (velocity, solids))

    @ti.kernel
    def find_fastest(
        open: Array, distance: Array, owner: Array, motions: Array, n: Index, origin: Point, dx: ti.f32,
        partials: Array, out: Array,
    ):  # fmt: skip
        solids = CutCells(open, distance, owner, motions, n, origin, dx)
        loops.reduce_to(out, 0, n, partials, ti.f32(0.0), largest, _solid_speed_at, (solids,))

    @ti.kernel
    def extend_velocity(
        velocity: Array, open: Array, distance: Array, owner: Array, motions: Array, n: Index, origin: Point, dx: ti.f32
    ):
        each_cell(n, _extend_velocity_at, (velocity, CutCells(open, distance, owner, motions, n, origin, dx)))

    @ti.kernel
    def extend_scalar(a: Array, fluid: Array, n: Index, offset: ti.i32):
        each_cell(n, _extend_scalar_at, (a, fluid, offset))

    @ti.kernel
    def grow(known: Array, out: Array, n: Index):
        each_cell(n, _grow_at, (known, out))

    @ti.kernel
    def clear_scalar(a: Array, fluid: Array, n: Index, offset: ti.i32):
        each_cell(n, _clear_scalar_at, (a, fluid, offset))

    return enforce, find_fastest, extend_velocity, extend_scalar, grow, clear_scalar
