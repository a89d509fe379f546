"""Friction at solids: what diffusion is told of a surface that cuts the cells.

The value of a face is the mean of what passes its open part, which is what the divergence is made of. Diffusion works on
values at the middles of faces. Both follow from each other, as the fluid goes with the solid at its surface and the
velocity relative to that grows in proportion to the distance from it.

Where the middle of a neighbour lies within a solid, the value on the way there is that of the surface where it is crossed, by 1
over the part of the way, which keeps the matrix symmetric. (Gibou, Fedkiw, Cheng, Kang 2002.) A face whose own middle
lies within is not solved for, and has its value from the next one outwards.
"""

from .._ti import argument, ti
from ..boundaries.solids import CutCells
from ..kernels import Array, cells_of, kernel_family

NEAREST, NEAREST_EXPLICIT = 0.01, 0.1
"""Part of a cell nearer than which a surface does not count, and that for explicit diffusion, whose step it bounds."""

_LEAST_SHARE = 0.05
"""Distance of the middle of a face over the mean of its open part, below which it counts as within the solid."""

_TINY = 1e-20
"""A clearance of no size that is one, m."""


@argument
class Component:
    """A velocity ``component``, which begins at ``offset`` in ``a``, or a scalar if that is below 0."""

    a: object
    offset: object
    component: object


@argument
class Unknowns:
    """Which values are solved for: those above 0 in ``mask``.

    The position of the first of them is ``first``; ``wrap`` is 1 along periodic axes of ``n`` cells.
    """

    mask: object
    first: object
    wrap: object
    n: object

    @ti.func
    def step(self, I, axis: ti.template(), side: ti.template()):
        """Cells along an axis to the neighbour on a side, round a periodic box if need be; 0 where the box ends."""
        step = ti.cast(side, ti.i32)
        if I[axis] == (self.n[axis] if ti.static(side == 1) else self.first[axis]):
            step = ti.select(self.wrap[axis] == 1, step - step * self.n[axis], ti.i32(0))
        return step


@argument
class Surface:
    """The surface of ``solids`` as the faces beside it see it.

    Attributes:
        solids: What stands in the fluid.
        clearance: Signed distance of the middle of each face to them, m; above 0 where it is solved for.
        nearest: Part of a cell nearer than which it does not count.
    """

    solids: object
    clearance: object
    nearest: object

    @ti.func
    def share_at(self, c, s, axis):
        """Distance of the middle of a face over the mean of its open part: 1 if all is open, below 0 if it lies within."""
        share, part = ti.f32(1.0), self.solids.open[c + axis * cells_of(s, self.solids.n)]
        if 0 < part < 1:
            if self.solids.slips_at(c, s, axis) == 0:
                share = self.solids.distance_at(c, s, axis) / ti.max(
                    self.solids.open_distance_at(c, s, axis), ti.f32(_TINY)
                )
        return share

    @ti.func
    def part_at(self, c, place):
        """How much of the way from the middle of a face ``c`` to that of another one, within a solid, is before the surface."""
        return self.clearance[c] / (self.clearance[c] + ti.max(-self.clearance[place], ti.f32(0.0)))

    @ti.func
    def crossing_at(self, c, s, J, step, component, axis: ti.template(), side: ti.template()):
        """Where the way from a face ``c`` to that at position ``J``, ``step`` cells on, crosses the surface, m."""
        x = self.solids.middle_of(J, component)
        x[axis] -= ti.cast(side, ti.f32) * (ti.f32(1.0) - self.part_at(c, c + step * s[axis])) * self.solids.dx
        return x

    @ti.func
    def pull_at(self, u, c, s, J, step, axis: ti.template(), side: ti.template()):
        """Weight and difference with which a solid at position ``J``, ``step`` cells on, holds the face ``c`` beside it: by its own velocity.

        One along which the fluid slips does not hold it: that nothing flows through it is for the pressure to see to.
        """
        place, pull = c + step * s[axis], ti.Vector([ti.f32(0.0), ti.f32(0.0)])
        if self.solids.slips_at(place, s, u.component) == 0:
            x = self.crossing_at(c, s, J, step, u.component, axis, side)
            there = self.solids.velocity_of(self.solids.row_at(place, s, u.component), x, u.component)
            pull = ti.Vector([ti.f32(1.0), there - u.a[u.offset + c]]) / ti.max(self.part_at(c, place), self.nearest)
        return pull


@ti.func
def _to_middle_at(c, I, s, u, surface):
    """Measure the clearance of a face, and make its value that at its middle where that is solved for."""
    solids, component = surface.solids, u.component
    d, open = solids.distance_at(c, s, component), solids.open[c + component * cells_of(s, solids.n)]
    if open == 0:
        d = ti.min(d, ti.f32(0.0))
    elif solids.slips_at(c, s, component) > 0:
        d = ti.max(d, ti.f32(_TINY))
    elif open < 1:
        share = surface.share_at(c, s, component)
        if share < ti.f32(_LEAST_SHARE):
            d = ti.min(d, ti.f32(0.0))
        else:
            wall = solids.velocity_at(c, I, s, component)
            u.a[u.offset + c] = wall + share * (u.a[u.offset + c] - wall)
    surface.clearance[c] = d


@ti.func
def _write_beside_solids(c, I, s, u, unknowns, surface, held: Array, out: Array):
    """The Laplacian where solids hold a velocity component, and what they add to the diagonal."""
    value, total = ti.f32(0.0), ti.f32(0.0)
    if unknowns.mask[c] > 0:
        for axis in ti.static(range(s.n)):
            for side in ti.static((-1, 1)):
                neighbour, step = c + side * s[axis], unknowns.step(I, axis, side)
                if unknowns.mask[neighbour] == 0 and step != 0:
                    if u.component >= 0:
                        J = I
                        J[axis] += step
                        pull = surface.pull_at(u, c, s, J, step, axis, side)
                        total += pull[0]
                        value += pull[1]
                else:
                    value += u.a[u.offset + neighbour] - u.a[u.offset + c]
    out[c] = value
    held[c] = total


@ti.func
def add_change_at(c, I, s, change: Array, u, scale):
    """Add ``scale`` times a change."""
    u.a[u.offset + c] = u.a[u.offset + c] + scale * change[c]


@ti.func
def _slope_outwards(c, I, s, u, unknowns, surface, row):
    """Velocity relative to the solid over the distance from it, at the wholly open neighbour farthest from it; else 0."""
    farthest, slope, solids = ti.f32(0.0), ti.f32(0.0), surface.solids
    for axis in ti.static(range(s.n)):
        for side in ti.static((-1, 1)):
            step = unknowns.step(I, axis, side)
            place = c + step * s[axis]
            if step != 0 and axis != u.component and unknowns.mask[place] > 0:
                if (
                    solids.open[place + u.component * cells_of(s, solids.n)] == 1
                    and surface.clearance[place] > farthest
                ):
                    farthest = surface.clearance[place]
                    x = solids.middle_of(I, u.component)
                    x[axis] += ti.cast(side, ti.f32) * solids.dx
                    slope = (u.a[u.offset + place] - solids.velocity_of(row, x, u.component)) / farthest
    return slope


@ti.func
def _from_middle_at(c, I, s, u, unknowns, surface, step):
    """Make the value of a face that solids cut the mean of its open part again; ``step`` is diffusivity · dt / dx²."""
    solids, component = surface.solids, u.component
    open = solids.open[c + component * cells_of(s, solids.n)]
    if 0 < open < 1 and I[component] >= unknowns.first[component]:
        if solids.slips_at(c, s, component) == 0:
            row = solids.row_at(c, s, component)
            wall = solids.velocity_of(row, solids.middle_of(I, component), component)
            if unknowns.mask[c] > 0:
                u.a[u.offset + c] = wall + (u.a[u.offset + c] - wall) / surface.share_at(c, s, component)
            else:
                slope = _slope_outwards(c, I, s, u, unknowns, surface, row)
                wanted, pull = wall + slope * solids.open_distance_at(c, s, component), step / ti.f32(NEAREST_EXPLICIT)
                u.a[u.offset + c] = (u.a[u.offset + c] + pull * wanted) / (ti.f32(1.0) + pull)


@kernel_family
def beside_solids_kernels(loops):
    IntVector, FloatVector, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell

    @ti.kernel
    def to_middles(
        a: Array,
        offset: ti.i32,
        component: ti.i32,
        clearance: Array,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: IntVector,
        origin: FloatVector,
        dx: ti.f32,
    ):
        surface = Surface(CutCells(open, distance, owner, motions, n, origin, dx), clearance, ti.f32(NEAREST))
        each_cell(n, _to_middle_at, (Component(a, offset, component), surface))

    @ti.kernel
    def compute_beside_solids(
        a: Array, offset: ti.i32, component: ti.i32, unknown: Array, first: IntVector, wrap: IntVector, held: Array,
        out: Array, clearance: Array, nearest: ti.f32, open: Array, distance: Array, owner: Array, motions: Array,
        n: IntVector, origin: FloatVector, dx: ti.f32,
    ):  # fmt: skip
        surface = Surface(CutCells(open, distance, owner, motions, n, origin, dx), clearance, nearest)
        unknowns = Unknowns(unknown, first, wrap, n)
        each_cell(n, _write_beside_solids, (Component(a, offset, component), unknowns, surface, held, out))

    @ti.kernel
    def from_middles(
        a: Array,
        offset: ti.i32,
        component: ti.i32,
        unknown: Array,
        first: IntVector,
        wrap: IntVector,
        change: Array,
        scale: ti.f32,
        step: ti.f32,
        clearance: Array,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: IntVector,
        origin: FloatVector,
        dx: ti.f32,
    ):
        """Add ``scale`` times a change before."""
        surface = Surface(CutCells(open, distance, owner, motions, n, origin, dx), clearance, ti.f32(NEAREST))
        unknowns, u = Unknowns(unknown, first, wrap, n), Component(a, offset, component)
        each_cell(n, add_change_at, (change, u, scale))
        each_cell(n, _from_middle_at, (u, unknowns, surface, step))

    return {"to_middles": to_middles, "compute_beside_solids": compute_beside_solids, "from_middles": from_middles}
