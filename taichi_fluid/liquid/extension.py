"""Velocities continued from where they are known into the air and into solids, layer by layer."""

from typing import Any

from .._ti import argument, ti
from ..boundaries.solids import CutCells, Solids
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import (
    ARRAY_BITS,
    Array,
    Operator,
    Strip,
    address,
    cell_of_strip,
    cells_of,
    components,
    fast_max,
    fast_min,
    kernel_family,
    lane,
    position_of,
    write_strip,
)
from ..operators.ghosts import around_axis
from .sides import Seams
from .slip import slip_at

ALL_KNOWN = 0.5
"""Mark of a row of which all is known, so that no layer has anything to do there."""

AIRBORNE, BURIED = -1.0, -2.0
"""Marks of faces that have what particles say of them: in the air, and within a solid."""
SPRAY_LAYERS = -3.0, -4.0
"""Numbers and marks of the layers that continue what is airborne: halfway through a step spray is a cell farther on along each axis."""

LEAST = 0.01
"""Cells by which what tells a face its velocity lies nearer to the surface, at the least."""

FALLS = 0.5
"""Cells by which the first two faces of a row lie below one another where a velocity goes on in full to change along it. Told along what
runs beside a surface too, corners of a block went faster in each step, however short."""


@ti.func
def _is_on_grid(I, n, axis: ti.template()):
    """Whether a face lies in the box or on a side of it."""
    inside = ti.i32(1)
    for k in ti.static(range(I.n)):
        inside = inside & ti.cast(I[k] >= 1, ti.i32)
        if ti.static(k != axis):
            inside = inside & ti.cast(I[k] <= n[k], ti.i32)
    return inside


@ti.func
def _marks_of_weighed(c, I, s, known: Array, n):
    """Of the faces of a cell: 1 where particles have any weight."""
    marks = ti.Vector([ti.f32(0.0)] * s.n)
    for axis in ti.static(range(s.n)):
        weighs = ti.cast(known[c + axis * cells_of(s, n)] > 0, ti.i32)
        marks[axis] = ti.select(weighs & _is_on_grid(I, n, axis) == 1, ti.f32(1.0), ti.f32(0.0))
    return marks


@ti.func
def _marks_of_wet(c, I, s, known: Array, phi: Array, open: Array, n):
    """Of the faces of a cell: 1 beside liquid, and else what particles there are, ``AIRBORNE`` or ``BURIED``."""
    marks = ti.Vector([ti.f32(0.0)] * s.n)
    for axis in ti.static(range(s.n)):
        face = c + axis * cells_of(s, n)
        wet = ti.cast((fast_min(phi[c], phi[c - s[axis]]) < 0) & (open[face] > 0), ti.i32)
        # What particles in the air say of themselves stays as it is, but right beside the liquid; what they say within a solid
        # wherever that can be continued, as in a corner: there nothing holds it, and it would grow.
        theirs = ti.cast((known[face] == 1) | ((known[face] < 0) & (known[face] >= BURIED)), ti.f32)
        own = ti.select(open[face] > 0, ti.f32(AIRBORNE), ti.f32(BURIED)) * theirs
        marks[axis] = ti.select(wet & _is_on_grid(I, n, axis) == 1, ti.f32(1.0), own)
    return marks


@ti.func
def _face_beyond(face, I, s, faces, axis: ti.template(), k: ti.template(), steps: ti.template()):
    """The face so many steps from another along axis ``k``, or what that is an image of; that one itself, if the box ends before."""
    far = _steps_beyond(I, faces, k, steps)
    if ti.static(k == axis and steps == 1):
        far = ti.select(I[k] <= faces.n[k], far, 0)
    return face + far * s[k]


@ti.func
def _steps_beyond(I, faces, k: ti.template(), steps: ti.template()):
    """So many steps along an axis, or those back from what lies beyond a seam to what it is an image of."""
    far = ti.i32(steps)
    if ti.static(faces.wraps):
        if faces.wrap[k] == 1:
            far = around_axis(I[k] + steps, faces.n[k]) - I[k]
    return far


@ti.func
def _told_by(ways, u: Array, known: Array, layer, own, beyond, down):
    """What the first of three faces in a row, which is known, tells one before them: of the first layer that the velocity goes on to change
    as it does up to there, by the part ``down``; farther than to the face's ``own`` by a part, ``beyond``.

    By the last difference, no more than twice the one before, and not at all where these disagree (after Sweby 1984): waves, which
    fall off with depth, are as fast at their surface as they should be, and nothing is made up of drops and of thin sheets.
    """
    value = u[ways[0]]
    if layer == 1 and known[ways[1]] == 1:
        if known[ways[2]] == 1:
            last, before = value - u[ways[1]], u[ways[1]] - u[ways[2]]
            if last * before > 0:
                most, to_own = ti.f32(2.0) * ti.abs(before), own - value
                change = down * ti.min(ti.max(last, -most), most)
                little = ti.min(ti.max(change, ti.min(to_own, ti.f32(0.0))), ti.max(to_own, ti.f32(0.0)))
                value += little + beyond * (change - little)
    return value


@ti.func
def _distance_at(face, s, faces, axis: ti.template()):
    """Distance to the surface at a face."""
    c = face - axis * cells_of(s, faces.n)
    return ti.f32(0.5) * (faces.phi[c] + faces.phi[c - s[axis]])


@ti.func
def _leads_down(ways, s, faces, axis: ti.template()):
    """How far a row leads down from the surface: 0, or up to 1 where it falls by ``FALLS``."""
    fall = (_distance_at(ways[0], s, faces, axis) - _distance_at(ways[1], s, faces, axis)) / faces.dx
    return ti.min(ti.max(fall * ti.f32(1 / FALLS), ti.f32(0.0)), ti.f32(1.0))


@ti.func
def _beyond_own(face, s, faces, axis: ti.template()):
    """How far a velocity that changes on may go beyond what particles say of a face: in films no farther, where they would tell that on,
    and it would run away.
    """
    part, c = ti.f32(1.0), face - axis * cells_of(s, faces.n)
    if faces.films == 1 and faces.known[face] == AIRBORNE:
        part = fast_max(faces.firm[c], faces.firm[c - s[axis]])
    return part


@ti.func
def _tells(mark, layer):
    """Whether a face of this mark is one from which a layer is continued."""
    of_spray = (mark == AIRBORNE) | ((mark < BURIED) & (mark > layer))
    return ti.cast(ti.select(layer > 0, (mark > 0) & (mark <= layer), of_spray), ti.i32)


@ti.func
def _lacks(mark, layer):
    """Whether a face of this mark is one that a layer is continued to, if anything beside it tells."""
    untold = (mark <= 0) & (mark != AIRBORNE)
    return ti.cast(ti.select(layer > 0, untold | ((layer == 1) & (mark == AIRBORNE)), mark == 0), ti.i32)


@ti.func
def _extend_face(face, I, s, faces, axis: ti.template()):
    """A face that is not known takes the mean of what those beside it tell that have been before this layer.

    Each counts by how much nearer to the surface it lies, so that a velocity goes on along normals (Adalsteinsson, Sethian 1999).
    With equal weights short waves that run up steps of a surface in the grid would grow.
    """
    u, also, known = ti.static(faces.u, faces.also, faces.known)
    n, layer = faces.n, faces.layer
    if _lacks(known[face], layer) == 1 and _is_on_grid(I, n, axis) == 1:
        # Most have nothing beside them: one question settles that.
        told = ti.i32(0)
        for k in ti.static(range(s.n)):
            for side in ti.static(range(2)):
                told |= _tells(known[_face_beyond(face, I, s, faces, axis, k, 2 * side - 1)], layer)
        if told == 1:
            total, total_also, parts = ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)
            beyond = _beyond_own(face, s, faces, axis)
            away = _distance_at(face, s, faces, axis)
            for k in ti.static(range(s.n)):
                for side in ti.static(range(2)):
                    other = _face_beyond(face, I, s, faces, axis, k, 2 * side - 1)
                    if _tells(known[other], layer) == 1:
                        part = ti.max(away - _distance_at(other, s, faces, axis), ti.f32(LEAST) * faces.dx)
                        ways = ti.Vector([other, 2 * other - face, 3 * other - 2 * face])
                        if ti.static(faces.wraps):
                            for steps in ti.static(range(2, 4)):
                                ways[steps - 1] = _face_beyond(face, I, s, faces, axis, k, steps * (2 * side - 1))
                        down = _leads_down(ways, s, faces, axis)
                        total += part * _told_by(ways, u, known, layer, u[face], beyond, down)
                        total_also += part * _told_by(ways, also, known, layer, also[face], beyond, down)
                        parts += part
            if parts > 0:
                u[face], also[face] = total / parts, total_also / parts
                known[face] = ti.select(layer > 0, layer + ti.f32(1.0), layer)


@ti.func
def _extend_at(c, I, s, faces):
    for axis in ti.static(range(s.n)):
        _extend_face(c + axis * cells_of(s, faces.n), I, s, faces, axis)


@ti.func
def _is_unknown(k, face, known: Array, kept, found: ti.template()):
    here = known[cell_of_strip(face, k)]
    found |= ti.cast((here <= 0) & (here != kept), ti.i32)


@ti.func
def _has_known_beside(k, face, s, known: Array, kept, sign, has: ti.template(), found: ti.template()):
    here, nearest = known[cell_of_strip(face, k)], ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        at = lane(face, k)
        nearest = fast_max(fast_max(nearest, sign * known[at - s[axis]]), sign * known[at + s[axis]])
    has[ti.i32(0), k] = ti.cast((here <= 0) & (here != kept) & (nearest > 0), ti.i32)
    found |= has[ti.i32(0), k]


@ti.func
def _extend_strip(c, I, m, s, faces, width: ti.template()):
    """``_extend_at`` for those faces of a strip that may have something beside them: most have nothing."""
    known = ti.static(faces.known)
    n, layer, strip = faces.n, faces.layer, Strip(c, I, m, width)
    has, any_has = strip.integers(1), ti.i32(0)
    # Those that stay as they are, but right beside the liquid, are airborne; what continues them is found by their sign.
    kept, sign = ti.select(layer == 1, ti.f32(1.0), ti.f32(AIRBORNE)), ti.select(layer > 0, ti.f32(1.0), ti.f32(-1.0))
    for axis in ti.static(range(s.n)):
        face, on_grid, unknown, found = c + axis * cells_of(s, n), ti.i32(1), ti.i32(0), ti.i32(0)
        for k in ti.static(range(s.n - 1)):
            if ti.static(k != axis):
                on_grid = on_grid & ti.cast(I[k] <= n[k], ti.i32)
        if on_grid == 1:
            strip.each(_is_unknown, (face, known, kept, unknown))
            if unknown == 1:
                strip.each(_has_known_beside, (face, s, known, kept, sign, has, found))
            if found == 1:
                any_has = ti.i32(1)
                for k in range(m):
                    if has[ti.i32(0), k] == 1:
                        _extend_face(cell_of_strip(face, k), position_of(I, k), s, faces, axis)
    if any_has == 1:
        row = faces.first_row() + _row_of(I, n)
        if faces.rows[row] == 0:
            faces.rows[row] = faces.order() + ti.f32(1.0)


@argument
class _Faces:
    """A velocity, another one that goes on like it, which of their faces are ``known``, the distance to a surface, where that is ``firm``, if it has
    ``films``, the rows that have such faces and, behind them all, those that have airborne ones, and the layer that comes next.
    """

    u: object
    also: object
    known: object
    phi: object
    firm: object
    films: object
    dx: object
    rows: object
    n: object
    layer: object
    wrap: object
    wraps: bool

    @ti.func
    def first_row(self):
        """Where the marks begin of rows that have what this layer goes on from."""
        return ti.select(self.layer > 0, 0, _rows_of(self.n))

    @ti.func
    def order(self):
        """Which of its kind the layer is, from 1 on."""
        return ti.select(self.layer > 0, self.layer, ti.f32(BURIED) - self.layer)


@ti.func
def _rows_of(n):
    """How many rows there are, those of ghosts too."""
    rows = n[0] + 2
    for axis in ti.static(range(1, n.n - 1)):
        rows = rows * (n[axis] + 2)
    return rows


@ti.func
def _row_of(I, n):
    """Number of the row that a position is in."""
    row = I[0]
    for axis in ti.static(range(1, I.n - 1)):
        row = row * (n[axis] + 2) + I[axis]
    return row


@ti.func
def _mark_row(c, I, s, known: Array, rows: Array, n):
    """Mark the row that begins here by 1 if any of its faces is known, by ``ALL_KNOWN`` if all are, else by 0; and by 1 if any is airborne."""
    last, some, lacking, airborne = ti.static(s.n - 1), ti.i32(0), ti.i32(0), ti.i32(0)
    for axis in ti.static(range(s.n)):
        on_grid, face = ti.i32(1), c + axis * cells_of(s, n)
        for k in ti.static(range(s.n - 1)):
            if ti.static(k != axis):
                on_grid = on_grid & ti.cast(I[k] <= n[k], ti.i32)
        if on_grid == 1:
            for k in range(n[last] + (1 if ti.static(axis == s.n - 1) else 0)):
                here = known[face + address(k, ARRAY_BITS)]
                some |= ti.cast(here > 0, ti.i32)
                lacking |= ti.cast(here <= 0, ti.i32)
                airborne |= ti.cast(here == AIRBORNE, ti.i32)
    row = _row_of(I, n)
    rows[row] = ti.select(some == 0, ti.f32(0.0), ti.select(lacking == 0, ti.f32(ALL_KNOWN), ti.f32(1.0)))
    rows[_rows_of(n) + row] = ti.cast(airborne, ti.f32)


@ti.func
def _extend_row(c, I, s, faces, strips_from: ti.template(), width: ti.template()):
    """Extend the strips of a row that lacks something, if it or one beside it has any that was known before this layer."""
    row, around = _row_of(I, faces.n), ti.i32(0)
    last = ti.static(s.n - 1)
    for axis in ti.static(range(last)):
        step = ti.i32(1) if ti.static(axis == last - 1) else faces.n[last - 1] + 2
        for side in ti.static(range(3)):
            mark = faces.rows[faces.first_row() + row + _steps_beyond(I, faces, axis, side - 1) * step]
            around |= ti.cast((mark > 0) & (mark <= faces.order()), ti.i32)
    if around == 1 and faces.rows[row] != ti.f32(ALL_KNOWN):
        strips_from(c, I, s, faces.n[last] + 1, width, Operator(_extend_strip, (faces, width)))


@ti.func
def _clear_unknown_at(c, I, s, u: Array, also: Array, known: Array, n):
    for axis in ti.static(range(s.n)):
        face = c + axis * cells_of(s, n)
        if known[face] == 0:
            u[face] = also[face] = ti.f32(0.0)


@ti.func
def _restore_at(c, I, s, u: Array, gathered: Array, open: Array, n, wrap):
    for axis in ti.static(range(s.n)):
        face = c + axis * cells_of(s, n)
        on_side = ((I[axis] == 1) | (I[axis] == n[axis] + 1)) & (wrap[axis] == 0)
        if _is_on_grid(I, n, axis) == 1 and (on_side or open[face] == 0):
            u[face] = gathered[face]


@kernel_family
def extension_kernels(loops, wraps):
    Index, Point, width = loops.IntVector, loops.FloatVector, loops.width

    @ti.kernel
    def mark_weighed(known: Array, n: Index):
        weighed = Operator(_marks_of_weighed, (known, n))
        loops.each_strip_in(n * 0, n + 2, n, width, write_strip, (n, components((known, loops.dim)), width, weighed))

    @ti.kernel
    def mark_wet(known: Array, phi: Array, open: Array, n: Index):
        wet = Operator(_marks_of_wet, (known, phi, open, n))
        loops.each_strip_to(n + 2, n, width, write_strip, (n, components((known, loops.dim)), width, wet))

    @ti.kernel
    def mark_rows(known: Array, rows: Array, n: Index):
        begins = n + 2
        begins[loops.dim - 1] = ti.i32(2)
        loops.each_cell_in(n * 0 + 1, begins, n, _mark_row, (known, rows, n))

    @ti.kernel
    def extend(
        velocity: Array,
        also: Array,
        known: Array,
        phi: Array,
        firm: Array,
        films: ti.i32,
        dx: ti.f32,
        rows: Array,
        n: Index,
        layer: ti.f32,
        wrap: Index,
    ):
        faces = _Faces(velocity, also, known, phi, firm, films, dx, rows, n, layer, wrap, wraps)
        if ti.static(width > 1):
            begins = n + 2
            begins[loops.dim - 1] = ti.i32(2)
            loops.each_cell_in(n * 0 + 1, begins, n, _extend_row, (faces, loops.strips_from, width))
        else:
            loops.each_cell_in(n * 0 + 1, n + 2, n, _extend_at, (faces,))

    @ti.kernel
    def clear_unknown(velocity: Array, also: Array, known: Array, n: Index):
        loops.each_cell_in(n * 0, n + 2, n, _clear_unknown_at, (velocity, also, known, n))

    @ti.kernel
    def slip(
        velocity: Array,
        also: Array,
        known: Array,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
    ):
        solids = CutCells(open, distance, owner, motions, n, origin, dx)
        loops.each_cell_in(n * 0 + 1, n + 2, n, slip_at, (velocity, also, known, solids))

    @ti.kernel
    def restore_walls(velocity: Array, gathered: Array, open: Array, n: Index, wrap: Index):
        loops.each_cell_in(n * 0 + 1, n + 2, n, _restore_at, (velocity, gathered, open, n, wrap))

    return mark_weighed, mark_wet, mark_rows, extend, clear_unknown, slip, restore_walls


class Extension:
    """Continues velocities of one grid.

    Args:
        grid: A staggered grid.
        solids: What stands in it.
        walls: Its sides; left out, no axis is periodic.
    """

    def __init__(self, grid: Grid, solids: Solids | None, walls: Walls | None = None):
        self.grid, self.solids, self._seams = grid, solids, Seams(grid, walls)
        self._kernels = extension_kernels(grid.loops, self._seams.any)
        # Rows are a CPU's; of those of ghosts, and of the ones beside the last of these, none has anything known.
        rows = grid.cells // (grid.shape[-1] + 2) * 2 + grid.shape[-2] + 2
        self._rows = ti.ndarray(ti.f32, rows if grid.loops.rows else 1)
        self._rows.fill(0.0)

    def from_particles(self, velocity, weight, phi, layers: int) -> None:
        """Continue from faces with a ``weight``, which is overwritten, away from a surface ``phi``, m."""
        self._kernels.mark_weighed(weight, self.grid.n)
        self._extend((velocity, velocity), weight, (phi, phi, 0), layers)

    def from_liquid(self, velocity, known, phi, open, layers: int, also=None, firm=None) -> None:
        """Continue from the faces of cells where ``phi`` is negative; ``known`` has the marks of ``from_particles``, or of a call before.

        Another velocity that is ``also`` given goes on from the same faces, as far. In films, where it is not ``firm`` (``find_films``),
        neither goes beyond what particles say. What these say of themselves farther than a
        layer away stays, as spray flies on its own, and is continued for two layers, so that it does not fly into what is at rest;
        else the velocity becomes 0. What lies within solids slides along them.
        """
        self._kernels.mark_wet(known, phi, open, self.grid.n)
        both = velocity, velocity if also is None else also
        surface = (phi, phi, 0) if firm is None else (phi, firm, 1)
        self._extend(both, known, surface, layers)
        self._kernels.clear_unknown(*both, known, self.grid.n)
        for layer in SPRAY_LAYERS:
            self._continue(both, known, surface, layer)
        if self.solids is not None:
            for each in dict.fromkeys((*both, known)):
                self._seams.close(each, self.grid.dim)
            self._kernels.slip(*both, known, *self.solids.arguments())

    def restore_walls(self, velocity, gathered, open) -> None:
        """Let closed faces and those on sides have what was ``gathered`` from particles, which walls do not know of yet."""
        self._kernels.restore_walls(velocity, gathered, open, self.grid.n, self._seams.wrap)
        self._seams.close(velocity, self.grid.dim)

    def _extend(self, both: tuple[Any, Any], known, surface: tuple[Any, Any, int], layers: int) -> None:
        if self.grid.loops.rows:
            self._kernels.mark_rows(known, self._rows, self.grid.n)
        for layer in range(layers):
            self._continue(both, known, surface, layer + 1)

    def _continue(self, both: tuple[Any, Any], known, surface: tuple[Any, Any, int], layer: float) -> None:
        grid, wrap = self.grid, self._seams.wrap
        if grid.loops.rows:  # strips look at ghosts
            self._seams.close(known, grid.dim)
        self._kernels.extend(*both, known, *surface, grid.dx, self._rows, grid.n, float(layer), wrap)
