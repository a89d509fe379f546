"""The stress within a liquid: what feels it, which faces solids hold, and what it pushes a velocity with."""

from .._ti import argument, ti, traced
from ..boundaries.solids import CutCells
from ..boundaries.solids.cut_cells import MOTION_ROW
from ..kernels import Array, cells_of, kernel_family, strides_of
from ..operators.ghosts import wrap_if_periodic
from ..operators.shapes import coverage

NEAREST = 0.02
"""Part of a cell nearer than which a surface does not count."""

BULK = 5.0
"""How many times as strongly as it shears the liquid resists to change its volume while friction acts. The pressure is about to undo
that; but at a surface it is 0, and what stretches there has a stress across it that only a pressure holds (`docs/design.md`)."""

FAR = 1e6
"""How far from solids a face beyond the box is, in cells."""


def places(dim: int, given: bool) -> int:
    """How many factors a cell has, beside solids if any are ``given``; see ``Stress``."""
    return dim * dim if given else dim * (dim - 1) // 2 + 1


@traced
def place_of(i: int, j: int, dim: int, given: bool) -> int:
    """Which of them is that of the slope along ``j`` of the velocity along ``i``."""
    if given:
        return i * dim + j
    return i + j - 1 if i != j else places(dim, given) - 1


@argument
class Stress:
    """What the stress is made of, and dt ν / dx².

    Across each edge it is that of two slopes, along each axis that of one. Where a solid closes one of the two faces of a slope, or a part
    of one, they are nearer to each other than a cell: what is ``felt`` of it is so much more (Gibou and others 2002, as in ``physics.friction``).
    Of two slopes at an edge each is so for itself, and no matrix is symmetric that has all of both: ``push`` has as much of the other
    one as the lesser of them, and ``rest`` what is left.
    """

    phi: object
    felt: object
    solids: object
    step: object
    given: object

    @ti.func
    def part(self, phi):
        """Of a cube whose middle is at this distance from the surface, the part that is liquid."""
        return coverage(phi / self.solids.dx, ti.f32(1.0))

    @ti.func
    def around(self, c, s, i, j):
        """Distance to the surface at the lower edge of a cell across two axes, m."""
        return ti.f32(0.25) * (self.phi[c] + self.phi[c - s[i]] + self.phi[c - s[j]] + self.phi[c - s[i] - s[j]])

    @ti.func
    def mass(self, c, s, axis: ti.template()):
        """Part that is liquid around the lower face of a cell along an axis."""
        part = self.part(ti.f32(0.5) * (self.phi[c] + self.phi[c - s[axis]]))
        if ti.static(self.given):
            part *= self.solids.open[c + axis * cells_of(s, self.solids.n)]
        return part

    @ti.func
    def factor(self, c, s, i: ti.template(), j: ti.template()):
        """Of the slope along ``j`` of the velocity along ``i``, at the lower edge of a cell, or in its middle."""
        return self.felt[c + place_of(i, j, s.n, self.given) * cells_of(s, self.solids.n)]

    @ti.func
    def across(self, u: Array, c, s, i: ti.template(), j: ti.template()):
        """The stress along ``i`` on what lies across ``j``, at the lower edge of a cell, as far as it is symmetric."""
        along, other = self.factor(c, s, i, j), self.factor(c, s, j, i)
        return along * self.slope(u, c, s, i, j) + ti.min(along, other) * self.slope(u, c, s, j, i)

    @ti.func
    def slope(self, u: Array, c, s, i, j):
        """By how much the velocity along ``i`` grows along ``j`` at the lower edge of a cell, over a whole one, m/s."""
        face = c + i * cells_of(s, self.solids.n)
        return u[face] - u[face - s[j]]

    @ti.func
    def beside(self, u: Array, c, s, i, j, again):
        """What ``across`` lacks of that stress beside a solid that turns; ``again``, what is left of the other slope."""
        along, other, rest = self.factor(c, s, i, j), self.factor(c, s, j, i), ti.f32(0.0)
        if along != other:
            turn, least = self.turn(c, i, j), ti.min(along, other)
            rest = (along - least) * turn
            if again == 1:
                rest = (other - least) * (self.slope(u, c, s, j, i) - turn)
        return rest

    @ti.func
    def turn(self, c, i, j):
        """By how much the velocity along ``j`` of the solid that is nearest to an edge grows from cell to cell along ``i``, m/s.

        A face that it closes moves as its middle does; what its surface does, where a slope ends, is so much less or more.
        """
        spin = self.solids.motions[ti.static(MOTION_ROW) * ti.cast(self.solids.owner[c], ti.i32) + 6 - i - j]
        return ti.select((j - i == 1) | (j - i == -2), spin, -spin) * self.solids.dx

    @ti.func
    def bulk(self, c, s):
        """How much of what changes the volume of a cell is resisted: nothing where a solid cuts it, whose faces say otherwise what that is."""
        least = most = self.factor(c, s, 0, 0)
        if ti.static(self.given):
            for k in ti.static(range(1, s.n)):
                here = self.factor(c, s, k, k)
                least, most = ti.min(least, here), ti.max(most, here)
        return ti.select(most > ti.f32(1.001) * least, ti.f32(0.0), ti.f32(BULK) * least)

    @ti.func
    def swelling(self, u: Array, c, s):
        """What the flow out of a cell pushes its faces with."""
        total = ti.f32(0.0)
        for k in ti.static(range(s.n)):
            face = c + k * cells_of(s, self.solids.n)
            total += u[face + s[k]] - u[face]
        return self.bulk(c, s) * total

    @ti.func
    def push(self, u: Array, c, s, axis: ti.template()):
        """What the stress adds to a velocity on the lower face of a cell along an axis, times its mass."""
        face, two = c + axis * cells_of(s, self.solids.n), ti.f32(2.0)
        above, below = self.factor(c, s, axis, axis), self.factor(c - s[axis], s, axis, axis)
        total = two * (above * (u[face + s[axis]] - u[face]) - below * (u[face] - u[face - s[axis]]))
        total += self.swelling(u, c, s) - self.swelling(u, c - s[axis], s)
        for j in ti.static(range(s.n)):
            if ti.static(j != axis):
                total += self.across(u, c + s[j], s, axis, j) - self.across(u, c, s, axis, j)
        return self.step * total

    @ti.func
    def rest(self, u: Array, c, s, axis, again):
        """What ``push`` lacks of that beside solids: how they turn, which is known; ``again``, what is not symmetric."""
        total = ti.f32(0.0)
        if ti.static(self.given):
            for j in range(s.n):
                if j != axis:
                    total += self.beside(u, c + s[j], s, axis, j, again) - self.beside(u, c, s, axis, j, again)
        return self.step * total


@argument
class SolidFaces:
    """The solids, where they are ``given``, and which axes have no sides."""

    cut: object
    given: object
    wrap: object

    @ti.func
    def on_side(self, I, axis):
        """Whether the lower face of a cell of the box lies on a side."""
        return ti.cast(I[axis] == 1, ti.i32) * (1 - self.wrap[axis])

    @ti.func
    def leave(self, c, s, axis):
        """Whether a face is open at all."""
        free = ti.i32(1)
        if ti.static(self.given):
            free = ti.cast(self.cut.open[c + axis * cells_of(s, self.cut.n)] > 0, ti.i32)
        return free

    @ti.func
    def frees(self, c, I, s, axis):
        """Whether a face is solved for: open at all, and within the box, on no side of it."""
        free = self.leave(c, s, axis)
        for k in ti.static(range(s.n)):
            free = free & ti.cast((self.wrap[k] == 1) | ((I[k] >= 1) & (I[k] <= self.cut.n[k])), ti.i32)
        return free & (1 - self.on_side(I, axis))

    @ti.func
    def slip(self, c, s, axis):
        """Whether the liquid slips along what closes a face."""
        slips = ti.i32(0)
        if self.leave(c, s, axis) == 0:
            slips = ti.cast(self.cut.slips_at(c, s, axis) > 0, ti.i32)
        return slips


@ti.func
def _write_places_at(c, I, s, solids, clear: Array, middle: Array, axis):
    """Of each face its distance to the solids, m: the mean over what is open, which its velocity is that of, and that in its middle.

    Beyond the box both are far away: there a slope is that of whole cells.
    """
    face, beyond = c + axis * cells_of(s, solids.cut.n), ti.i32(0)
    for k in ti.static(range(s.n)):
        below, above = ti.cast(I[k] < 1, ti.i32) * (1 - solids.wrap[k]), ti.cast(I[k] > solids.cut.n[k], ti.i32)
        beyond += ti.select(k == axis, ti.i32(0), below + above)
    far = ti.f32(FAR) * solids.cut.dx
    mean, at = far, far
    if beyond == 0:
        open = solids.cut.open[face]
        at = solids.cut.distance_at(c, s, axis)
        mean = ti.max(at, ti.f32(0.0))
        if open == 0:
            mean = ti.f32(0.0)
        elif open < 1:
            mean = solids.cut.open_distance_at(c, s, axis)
    clear[face], middle[face] = mean, at


@ti.func
def _reach(clear: Array, middle: Array, one, two, dx):
    """How far apart two faces are as a part of a cell, one of which solids may close, or cut."""
    part, way = ti.f32(1.0), ti.abs(middle[one] - middle[two])
    if clear[one] + clear[two] > 0 and way > ti.f32(1e-3) * dx:
        part = ti.min(ti.max(ti.abs(clear[one] - clear[two]) / way, ti.f32(NEAREST)), ti.f32(1.0))
    return part


@ti.func
def _write_felt_at(c, I, s, stress):
    """How much is felt where nothing stands in the liquid."""
    cells = cells_of(s, stress.solids.n)
    stress.felt[c + place_of(0, 0, s.n, False) * cells] = stress.part(stress.phi[c])
    for i in ti.static(range(s.n)):
        for j in ti.static(range(i)):
            stress.felt[c + place_of(i, j, s.n, False) * cells] = stress.part(stress.around(c, s, i, j))


@ti.func
def _write_felt_beside_at(c, I, s, stress, solids, clear: Array, middle: Array):
    """Where a closed face slips no stress is felt; the pressure keeps the liquid out. Beyond the box there are no faces.

    Nor is any felt where all faces around are held, as within a solid: beside a side of the box that moves otherwise it would be
    one that no liquid exerts.
    """
    n, dx = stress.solids.n, stress.solids.dx
    cells, beyond = cells_of(s, n), ti.cast(n < I, ti.i32)
    if beyond.sum() == 0:
        free = slips = ti.i32(0)
        for i in range(s.n):
            upper = I
            upper[i] += 1
            free += solids.frees(c, I, s, i) + solids.frees(c + s[i], upper, s, i)
            slips += solids.slip(c, s, i) + solids.slip(c + s[i], s, i)
        part = ti.select((free > 0) & (slips == 0), stress.part(stress.phi[c]), ti.f32(0.0))
        for i in range(s.n):
            face = c + i * cells
            stress.felt[c + place_of(i, i, s.n, True) * cells] = part / _reach(clear, middle, face, face + s[i], dx)
    for i in range(s.n):
        for j in range(i):
            free = slips = ti.i32(0)
            for k in range(2):
                along, across = ti.select(k == 0, i, j), ti.select(k == 0, j, i)
                before, there = I, c - s[across]
                before[across] -= 1
                free += solids.frees(c, I, s, along) + solids.frees(there, before, s, along)
                # Of the two faces that meet here one may lie beyond a side; what is along that is a face of the box.
                inside = beyond.sum() - beyond[along]
                if inside == 0:
                    slips += solids.slip(c, s, along)
                if inside - beyond[across] == 0 and (I[across] > 1 or solids.wrap[across] == 1):
                    slips += solids.slip(there, s, along)
            part = ti.select((free > 0) & (slips == 0), stress.part(stress.around(c, s, i, j)), ti.f32(0.0))
            for k in range(2):
                along, across = ti.select(k == 0, i, j), ti.select(k == 0, j, i)
                face = c + along * cells
                reach = _reach(clear, middle, face, face - s[across], dx)
                stress.felt[c + place_of(along, across, s.n, True) * cells] = part / reach


@ti.func
def _write_diagonal_at(c, I, s, stress, solids, inv_diag: Array):
    for axis in ti.static(range(s.n)):
        sides = ti.f32(0.0)
        for j in ti.static(range(s.n)):
            here = c - s[axis] if ti.static(j == axis) else c
            one, two = stress.factor(here, s, axis, j), stress.factor(here + s[j], s, axis, j)
            sides += ti.static(2.0 if j == axis else 1.0) * (one + two)
        sides += stress.bulk(c, s) + stress.bulk(c - s[axis], s)
        diagonal, inverse = stress.mass(c, s, axis) + stress.step * sides, ti.f32(0.0)
        if solids.on_side(I, axis) == 0 and solids.leave(c, s, axis) == 1 and diagonal > ti.f32(1e-6):
            inverse = ti.f32(1.0) / diagonal
        inv_diag[c + axis * cells_of(s, stress.solids.n)] = inverse


@kernel_family
def stress_kernels(loops, given):
    Index, Point = loops.IntVector, loops.FloatVector

    @ti.kernel
    def find_places(
        clear: Array,
        middle: Array,
        axis: ti.i32,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        wrap: Index,
    ):
        """Those of the faces along an axis; told to the kernel, as what is asked of a face by a loop over axes is too much for Vulkan."""
        solids = SolidFaces(CutCells(open, distance, owner, motions, n, origin, dx), True, wrap)
        loops.each_cell_in(n * 0, n + 2, n, _write_places_at, (solids, clear, middle, axis))

    @ti.kernel
    def set_up(
        phi: Array,
        felt: Array,
        inv_diag: Array,
        clear: Array,
        middle: Array,
        step: ti.f32,
        open: Array,
        distance: Array,
        owner: Array,
        motions: Array,
        n: Index,
        origin: Point,
        dx: ti.f32,
        wrap: Index,
    ):
        cut = CutCells(open, distance, owner, motions, n, origin, dx)
        stress, solids = Stress(phi, felt, cut, step, given), SolidFaces(cut, given, wrap)
        if ti.static(given):
            loops.each_cell_in(n * 0 + 1, n + 2, n, _write_felt_beside_at, (stress, solids, clear, middle))
        else:
            loops.each_cell_in(n * 0 + 1, n + 2, n, _write_felt_at, (stress,))
        for k in ti.static(range(places(loops.dim, given))):
            loops.each_side(n, wrap_if_periodic, (felt, k * cells_of(strides_of(n), n), n, wrap))
        loops.each_cell(n, _write_diagonal_at, (stress, solids, inv_diag))

    return {"find_places": find_places, "set_up": set_up}
