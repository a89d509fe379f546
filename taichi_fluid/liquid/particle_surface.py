"""The surface of a liquid from its particles: a signed distance, by those around a place and by the surface that there was."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._ti import argument, ti
from ..boundaries.solids import CutCells, Solids
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import (
    Array,
    IntArray,
    add,
    cells_of,
    copy_values,
    flat,
    float_vector,
    int_vector,
    kernel_family,
    room_for_partials,
)
from ..operators.interpolation import mean_of_corners
from ..operators.shapes import coverage
from .core import BELOW, Core, cover_of
from .level_set import DEEPEST, MOST_OFF, MOST_OFF_AT_SOLIDS, is_sure, straightened
from .motion import IN_CELL, distance_at, sampled_away
from .particle_height import FAR, IMAGED, REACH, height_of, none_of, summed_beside, summed_in_rows
from .particles import FULL, Cloud, Particles
from .parting import Parting
from .row_marks import SOME, SURE, Mirrors, mark_strip, marked_around
from .sides import CLOSED, WRAPS, Seams, ways_out

FILLED = 0.75
"""Part of a full cell from which on a cell is in the liquid, wherever in it the particles are."""
HALF_FULL, FILM = {2: 0.6, 3: 0.8}, 0.02
"""The same of one that a surface which was there has left, and how deep it lies then, in cells: a film that nothing held would fall."""
DEEP = 0.5
"""How far below the surface that was there, in cells, a cell beside one lies for that to be no film: it is held by what is below."""
CORNER = 0.3
"""How near to a solid, in cells, a centre is whose cell no particle need come into."""
RAISED, RAISED_THERE = 0.1, 0.2
"""Part of what the volume below the surface is short of that of the particles, over its area, by which a step in which the
fastest cross a cell or more raises what they show from then on; and the surface that stays, once."""
LOWEST, HIGHEST = -0.2, 0.4
"""Cells that it is raised by: particles in disorder make it lie lower than those of a lattice do."""
SPRAY = 0.75
"""Cells beyond the surface from which on particles are none of what lies below it."""
AIRLESS = 1.1
"""How deep below the surface that was there, in cells, lies what air has no way to in a step. A jet that meets a wall draws its particles
into lines, cells apart; what opened between them would suck the liquid in, as a vacuum does."""
UNFILLED = 0.5 * (BELOW - DEEPEST)
"""How deep a cell then counts as, in cells: too deep for its distance to mean anything, and not so deep that it has to be filled, as
there may be as many particles as there should be. What it lacks ``Crowding`` gathers."""
AWAY = 3
"""Cells from an open side that what is sucked in there comes to in a step."""
CLEAR = 2.0
"""How far from solids, in cells, the middle of a cell lies at least that is looked at to see how much liquid there is."""
OPENING = 2
"""Cells from where air was, beside a solid, within which there may be air a step later."""
NEAR = 2.5
"""Cells from a solid within which that is asked for."""
VENTED = 0.02
"""How deep a cell that a solid may cut lies where air comes in between them. So deep it has the pressure
of the air, whose way to it, through what is open of a face past an edge, may be narrow: a sheet that leaves an edge clung to that."""
GAP = 0.1
"""How deep a gap between particles counts as, in cells: it is no air, and nothing that could do without particles."""


@ti.func
def _is_shut(side):
    """Whether no air comes in through a side from outside of the box, by what ``sides.ways_out`` says of it."""
    return (side == CLOSED) | (side == WRAPS)


@argument
class _Surface:
    """The distance that is found, that of a surface to stay at, whether there is one, and by what particles' own is raised."""

    phi: object
    there: object
    stays: object
    lift: object

    @ti.func
    def agreed(self, c, I, s, shown, near, mirrors):
        """The distance of the surface to stay at, in cells, as far as that is ``near`` what particles show.

        Also where they show no more than that it is far, in the air or in the liquid: a surface that jumped there would raise waves.
        What comes from deep in the liquid is no air, however far apart a flow has drawn the particles.
        """
        distance = shown
        if is_sure(self.there[c] / mirrors.solids.dx):
            there = straightened(c, I, s, self.there, mirrors) / mirrors.solids.dx - self.lift[1]
            off = self.stays * near
            distance = ti.min(ti.max(there, shown - off), shown + off)
        elif self.is_airless(c, I, s, mirrors) == 1:
            distance = ti.min(shown, ti.f32(-UNFILLED))
        return distance

    @ti.func
    def is_airless(self, c, I, s, mirrors):
        """Whether a cell is so deep below the surface to stay at, and so far from open sides, that no air comes there in a step."""
        airless = ti.cast(self.stays > 0 and self.there[c] < ti.f32(-AIRLESS) * mirrors.solids.dx, ti.i32)
        for axis in ti.static(range(s.n)):
            lower, upper = _is_shut(mirrors.closed[2 * axis]), _is_shut(mirrors.closed[2 * axis + 1])
            airless &= ti.cast(lower | (I[axis] > AWAY), ti.i32)
            airless &= ti.cast(upper | (mirrors.solids.n[axis] - AWAY >= I[axis]), ti.i32)
        return airless

    @ti.func
    def is_thin(self, c, s, solids):
        """Whether no cell beside one lies deep below the surface to stay at."""
        deepest = ti.f32(0.0)
        if self.stays > 0:
            for axis in ti.static(range(s.n)):
                deepest = ti.min(deepest, ti.min(self.there[c - s[axis]], self.there[c + s[axis]]))
        return deepest > ti.f32(-DEEP) * solids.dx


@ti.func
def _write_distance(c, I, s, cloud, marks: IntArray, surface, mirrors):
    n = ti.static(s.n)
    distance, away, near = ti.f32(FAR), ti.f32(IMAGED), ti.f32(MOST_OFF[n])
    x = ti.cast(I, ti.f32) - ti.f32(0.5)
    if ti.static(mirrors.given):
        away = distance_at(mirrors.solids, x)
        near = ti.select(away < ti.f32(REACH), ti.f32(MOST_OFF_AT_SOLIDS), near)
    mark = marked_around(c, s, marks)
    if mark == SOME or mark & SURE:
        distance = ti.f32(-BELOW)
    elif mark & SOME:
        total = none_of(s)
        if away >= IMAGED:
            total = summed_in_rows(cloud, I, x, s, mirrors)
        elif ti.static(mirrors.given):
            total = summed_beside(cloud, I, x, s, mirrors, away)
        distance = height_of(total, surface.lift[0], n)
    # A film on a floor, whose particles lie below the centre, is wet when there is a cell of it.
    own = cloud.starts[ti.cast(c, ti.i32) + 1] - cloud.starts[ti.cast(c, ti.i32)]
    filled = ti.cast(own, ti.f32) * ti.f32(1.0 / FULL[n])
    if own > 0:
        distance = ti.min(distance, ti.max(ti.f32(FILLED) - filled, ti.f32(-BELOW)))
    distance = surface.agreed(c, I, s, distance, near, mirrors)
    if distance > 0 and filled > ti.f32(HALF_FULL[n]):
        if surface.is_thin(c, s, mirrors.solids):
            distance = ti.f32(-FILM)
    surface.phi[c] = mirrors.solids.dx * distance


@ti.func
def _close_hole_at(c, I, s, phi: Array, closed, n, dx):
    """Air in one cell alone, with liquid or a closed side on all sides, is a gap between particles."""
    if phi[c] >= 0:
        highest = ti.f32(-1e9)
        for axis in ti.static(range(s.n)):
            for end in ti.static(range(2)):
                there = phi[c + (s[axis] if ti.static(end) else -s[axis])]
                if I[axis] == (n[axis] if ti.static(end) else ti.i32(1)):
                    side = closed[2 * axis + end]
                    there = ti.select(side == WRAPS, there, ti.select(side == CLOSED, ti.f32(-1e9), ti.f32(1.0)))
                highest = ti.max(highest, there)
        if highest < 0:
            phi[c] = ti.f32(-GAP) * dx


@ti.func
def _is_far_from_air(I, s, before: Array, solids):
    """Whether there was no air within ``OPENING`` cells of a cell, in what is free of solids."""
    far = ti.i32(1)
    for around in range(ti.static((2 * OPENING + 1) ** s.n)):
        J, rest = I, around
        for axis in ti.static(range(s.n)):
            J[axis] += rest % ti.static(2 * OPENING + 1) - OPENING
            rest = rest // ti.static(2 * OPENING + 1)
        J = ti.min(ti.max(solids.across(J), 1), solids.n)
        if before[flat(J, s)] >= 0 and distance_at(solids, ti.cast(J, ti.f32) - ti.f32(0.5)) > 0:
            far = 0
    return far


@ti.func
def _wet_corner_at(c, I, s, phi: Array, before: Array, out: Array, solids):
    """A cell that is all but solid, as in a corner that no particle comes into, is wet if what lies off the solid is.

    And no hole opens beside a solid where air has no way from: in a gap that is hardly wider than particles are apart, or closes
    and opens, or between lines into which a jet on a plate draws its particles, one would suck the liquid in as a vacuum does. Nor
    is there less than deep liquid: what looked shallow for want of particles was shallow in the next step too, and then air.
    """
    x = ti.cast(I, ti.f32) - ti.f32(0.5)
    d = distance_at(solids, x)
    out[c] = phi[c]
    if phi[c] >= 0:
        if d < CORNER:
            there = sampled_away(phi, solids, x, ti.f32(1.0) - d)
            # Well within the liquid: beside a surface that meets the solid the mirrors are right.
            if there < ti.f32(-0.5) * solids.dx:
                out[c] = there
    if phi[c] > ti.f32(-UNFILLED) * solids.dx and d < NEAR and before[c] < 0:
        if _is_far_from_air(I, s, before, solids) == 1:
            out[c] = ti.min(out[c], ti.f32(-UNFILLED) * solids.dx)


@ti.func
def _vent_at(c, I, s, phi: Array, pressure: Array, withstands, solids):
    """A cell at a solid that touches air and was sucked at is no deeper than ``VENTED``: air comes in where liquid would part from it."""
    shallow = ti.f32(-VENTED) * solids.dx
    if phi[c] < shallow and pressure[c] < -withstands:
        if distance_at(solids, ti.cast(I, ti.f32) - ti.f32(0.5)) < ti.f32(IN_CELL[s.n]):
            touches = ti.i32(0)
            for axis in ti.static(range(s.n)):
                for end in ti.static(range(2)):
                    face, other = c + end * s[axis] + axis * cells_of(s, solids.n), c + (2 * end - 1) * s[axis]
                    touches |= ti.cast(solids.open[face] > 0 and phi[other] >= 0, ti.i32)
            if touches == 1:
                phi[c] = shallow


@ti.func
def _held_at(c, I, s, cloud, phi: Array, core: IntArray, mirrors, cored: ti.template()):
    """Of a cell, in cells: what its particles fill, what of it lies below the surface, and whether that cuts it.

    Spray counts for nothing, nor do cells beside solids, parts of which cannot be filled, nor those of the core.
    """
    held, height = ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)]), phi[c] / mirrors.solids.dx
    counts = ti.cast(height < SPRAY, ti.i32)
    if ti.static(mirrors.given):
        counts = counts * ti.cast(
            mean_of_corners(mirrors.solids.distance, c, s) > ti.f32(CLEAR) * mirrors.solids.dx, ti.i32
        )
    if ti.static(cored):
        counts = counts * (ti.i32(1) - core[c])
    if counts == 1:
        count = cloud.starts[ti.cast(c, ti.i32) + 1] - cloud.starts[ti.cast(c, ti.i32)]
        held[0] = ti.cast(count, ti.f32) * ti.f32(1.0 / FULL[s.n])
        held[1] = coverage(height, ti.f32(1.0))
        held[2] = ti.cast(ti.abs(height) < ti.f32(0.5), ti.f32)
    return held


@kernel_family
def surface_kernels(loops, given, cored, wraps):
    Index, Point, width = loops.IntVector, loops.FloatVector, loops.width
    Flags = int_vector(2 * loops.dim)

    @ti.kernel
    def mark_rows(starts: IntArray, marks: IntArray, core: IntArray, closed: Flags, n: Index):
        cloud = Cloud(None, None, None, None, starts, None)
        mirrors = Mirrors(closed, CutCells(None, None, None, None, n, None, None, wraps=wraps), given)
        loops.each_strip_in(n * 0, n + 2, n, width, mark_strip, (cloud, marks, core, mirrors, (cored, width)))

    @ti.kernel
    def find_distance(
        position: Array,
        order: IntArray,
        starts: IntArray,
        room: ti.i32,
        marks: IntArray,
        phi: Array,
        there: Array,
        stays: ti.f32,
        lift: Array,
        closed: Flags,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        period: Point,
    ):
        cloud = Cloud(position, position, position, order, starts, room)
        solids = CutCells(open, distance, owner, motions, n, origin, dx, period, wraps)
        surface = _Surface(phi, there, stays, lift)
        loops.each_cell(n, _write_distance, (cloud, marks, surface, Mirrors(closed, solids, given)))
        ti.loop_config(serialize=True)
        for _ in range(1):
            lift[1] = ti.f32(0.0)

    @ti.kernel
    def close_holes(phi: Array, closed: Flags, n: Index, dx: ti.f32):
        # In place: what is beside a cell that changes does not.
        loops.each_cell(n, _close_hole_at, (phi, closed, n, dx))

    @ti.kernel
    def balance(
        starts: IntArray,
        core: IntArray,
        phi: Array,
        lift: Array,
        part: ti.f32,
        partials: Array,
        distance: Array,
        n: Index,
        dx: ti.f32,
    ):
        cloud, none = Cloud(None, None, None, None, starts, None), ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)])
        mirrors = Mirrors(None, CutCells(None, distance, None, None, n, None, dx), given)
        loops.reduce_cells(n, partials, none, add, _held_at, (cloud, phi, core, mirrors, cored))
        ti.loop_config(serialize=True)
        for _ in range(1):
            held = loops.reduced(partials, none, add)
            lacks = part * (held[0] - held[1]) / ti.max(held[2], ti.f32(1.0))
            lift[0] = ti.min(ti.max(lift[0] + ti.f32(RAISED) * lacks, ti.f32(LOWEST)), ti.f32(HIGHEST))
            lift[1] = ti.f32(RAISED_THERE) * lacks

    @ti.kernel
    def wet_corners(
        phi: Array,
        before: Array,
        out: Array,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        period: Point,
    ):
        solids = CutCells(open, distance, owner, motions, n, origin, dx, period, wraps)
        loops.each_cell(n, _wet_corner_at, (phi, before, out, solids))

    @ti.kernel
    def vent(
        phi: Array,
        pressure: Array,
        withstands: ti.f32,
        open: Array,
        distance: Array,
        n: Index,
        dx: ti.f32,
        period: Point,
    ):
        # In place: whether a neighbour is air does not change.
        solids = CutCells(open, distance, None, None, n, None, dx, period, wraps)
        loops.each_cell(n, _vent_at, (phi, pressure, withstands, solids))

    return mark_rows, find_distance, close_holes, balance, wet_corners, vent


class LastStep(NamedTuple):
    """What a step has left, where it held the liquid to walls and solids, and air comes in.

    The ``pressure``, Pa; the ``velocity`` on the faces, m/s; the ``force`` that the liquid falls by from now on, m/s²; and the suction that
    the tension of a surface ``withstands``, Pa, in a gap that is a cell wide.
    """

    pressure: Any
    velocity: Any
    force: Sequence[float]
    withstands: float = 0.0


class ParticleSurface:
    """Finds the surface of the particles of one grid.

    Attributes:
        lift: By how many cells what particles show is to be raised, and that was; two numbers on the device.
        parting: What lets it part from walls.

    Args:
        grid: The grid.
        walls: Its sides.
        solids: What stands in it.
        core: What of the liquid has no particles.
        before: An array to work in while the surface is found; left out, one of its own.
    """

    def __init__(self, grid: Grid, walls: Walls, solids: Solids | None, core: Core | None = None, before=None):
        self.grid, self.solids, self._core = grid, solids, core
        # Beyond a side that is open in part the liquid is seen again as beyond a wall, where the surface would else not meet that.
        self._closed, self._seams = ways_out(walls), Seams(grid, walls)
        self._nothing, self._marks = ti.ndarray(ti.f32, 1), ti.ndarray(ti.i32, grid.cells)
        self._found = None if solids is None else grid.array()
        self._before = grid.array() if before is None else before
        self.parting = Parting(grid, walls, solids, self._before if solids is None else self._found)
        self.lift, self._partials = ti.ndarray(ti.f32, 2), room_for_partials(3)
        self.lift.fill(0.0)

    def _kernels_for(self, cored: bool):
        return surface_kernels(self.grid.costly_loops, self.solids is not None, cored, self._seams.any)

    def find(self, particles: Particles, phi, there=None, last: LastStep | None = None) -> None:
        """Set ``phi`` to the distance to the surface at centres, m, negative in the liquid; within ``FAR`` cells.

        Args:
            particles: Sorted.
            phi: An array of the grid; ghosts are those of a surface that meets its sides at a right angle.
            there: The same of a surface to stay at, as far as it lies near what particles show; its ghosts are set.
            last: What the step before has left.
        """
        grid, (position, _, _, order, starts, room) = self.grid, particles.arrays()
        there, stays = (phi, 0.0) if there is None else (there, 1.0)
        grid.require(phi=phi, there=there, pressure=phi if last is None else last.pressure)
        if self.solids is None:
            origin = float_vector(grid.dim)(*grid.origin)
            others = (self._nothing, self._nothing, self._nothing, self._nothing, grid.n, origin, grid.dx)
        else:
            others = self.solids.arguments()
            copy_values(phi, self._before)
        if there is not phi:
            self.fill_ghosts(there)
        core, cored = cover_of(self._core, starts)
        kernels = self._kernels_for(cored)
        kernels.mark_rows(starts, self._marks, core, self._closed, grid.n)
        kernels.find_distance(
            position,
            order,
            starts,
            room,
            self._marks,
            phi,
            there,
            stays,
            self.lift,
            self._closed,
            *others,
            self._seams.period,
        )
        self._seams.close(phi)
        kernels.close_holes(phi, self._closed, grid.n, grid.dx)
        self.fill_ghosts(phi)
        if self.solids is not None:
            copy_values(phi, self._found)
            kernels.wet_corners(self._found, self._before, phi, *others, self._seams.period)
            if last is not None:
                cut = self.solids.open, self.solids.distance, grid.n, grid.dx, self._seams.period
                kernels.vent(phi, last.pressure, last.withstands, *cut)
            self.fill_ghosts(phi)
        if last is not None:
            self.parting.part(phi, self._nothing if self.solids is None else self._before, *last)

    def fill_ghosts(self, phi) -> None:
        """Set the ghosts of a distance to the surface: that meets the sides of the box at a right angle."""
        self._seams.mirror(phi)

    def balance(self, particles: Particles, phi, crossed: float) -> None:
        """Raise the next surface that is found, or lower it, so that the volume below it comes to be that of the particles.

        By less where the fastest have ``crossed`` less than a cell: what is at rest stays as it is. The particles are sorted.
        """
        grid, part = self.grid, min(crossed, 1.0)
        distance = self._nothing if self.solids is None else self.solids.distance
        core, cored = cover_of(self._core, particles.starts)
        where = phi, self.lift, part, self._partials, distance, grid.n, grid.dx
        self._kernels_for(cored).balance(particles.starts, core, *where)
