"""The stress within a liquid: what feels it, which faces solids hold, and what it pushes a velocity with."""

from .._ti import argument, ti
from ..kernels import Array, cells_of


@argument
class Stress:
    """What the stress is made of: how much around each edge and each centre feels it, and dt ν / dx²."""

    phi: object
    felt: object
    n: object
    dx: object
    step: object

    @ti.func
    def part(self, phi):
        """Of a cube whose middle is at this distance from the surface, the part that is liquid."""
        return ti.min(ti.max(ti.f32(0.5) - phi / self.dx, ti.f32(0.0)), ti.f32(1.0))

    @ti.func
    def mass(self, c, s, axis: ti.template()):
        """Part that is liquid around the lower face of a cell along an axis."""
        return self.part(ti.f32(0.5) * (self.phi[c] + self.phi[c - s[axis]]))

    @ti.func
    def edge(self, c, s, i: ti.template(), j: ti.template()):
        """Part around the lower edge of a cell across two axes that is liquid and feels a stress."""
        return self.felt[c + ti.static(i + j - 1) * cells_of(s, self.n)]

    @ti.func
    def centre(self, c, s):
        """The same around the centre of a cell."""
        return self.felt[c + ti.static(s.n * (s.n - 1) // 2) * cells_of(s, self.n)]

    @ti.func
    def across(self, u: Array, c, s, i: ti.template(), j: ti.template()):
        """The stress along ``i`` on what lies across ``j``, at the lower edge of a cell."""
        one, two = c + i * cells_of(s, self.n), c + j * cells_of(s, self.n)
        return self.edge(c, s, i, j) * (u[one] - u[one - s[j]] + u[two] - u[two - s[i]])

    @ti.func
    def push(self, u: Array, c, s, axis: ti.template()):
        """What the stress adds to a velocity on the lower face of a cell along an axis, times its mass."""
        face, two = c + axis * cells_of(s, self.n), ti.f32(2.0)
        above, below = self.centre(c, s), self.centre(c - s[axis], s)
        total = two * (above * (u[face + s[axis]] - u[face]) - below * (u[face] - u[face - s[axis]]))
        for j in ti.static(range(s.n)):
            if ti.static(j != axis):
                total += self.across(u, c + s[j], s, axis, j) - self.across(u, c, s, axis, j)
        return self.step * total


@argument
class SolidFaces:
    """The solids, where they are ``given``, and which axes have no sides."""

    cut: object
    given: object
    wrap: object

    @ti.func
    def on_side(self, I, axis: ti.template()):
        """Whether the lower face of a cell of the box lies on a side."""
        return ti.cast(I[axis] == 1, ti.i32) * (1 - self.wrap[axis])

    @ti.func
    def leave(self, c, s, axis: ti.template()):
        """Whether a face is open at all."""
        free = ti.i32(1)
        if ti.static(self.given):
            free = ti.cast(self.cut.open[c + axis * cells_of(s, self.cut.n)] > 0, ti.i32)
        return free

    @ti.func
    def frees(self, c, I, s, axis: ti.template()):
        """Whether a face is solved for: open at all, and within the box, on no side of it."""
        free = self.leave(c, s, axis)
        for k in ti.static(range(s.n)):
            free = free & ti.cast((self.wrap[k] == 1) | ((I[k] >= 1) & (I[k] <= self.cut.n[k])), ti.i32)
        return free & (1 - self.on_side(I, axis))

    @ti.func
    def slip(self, c, s, axis: ti.template()):
        """Whether the liquid slips along what closes a face."""
        slips = ti.i32(0)
        if ti.static(self.given):
            if self.leave(c, s, axis) == 0:
                slips = ti.cast(self.cut.slips_at(c, s, axis) > 0, ti.i32)
        return slips


@ti.func
def write_felt_at(c, I, s, stress, solids):
    """Where a closed face slips no stress is felt; the pressure keeps the liquid out. Beyond the box there are no faces.

    Nor is any felt where all faces around are held, as within a solid: beside a side of the box that moves otherwise it would be
    one that no liquid exerts.
    """
    part, cells, beyond = stress.part(stress.phi[c]), cells_of(s, stress.n), ti.cast(stress.n < I, ti.i32)
    if ti.static(solids.given):
        if beyond.sum() == 0:
            free = ti.i32(0)
            for i in ti.static(range(s.n)):
                upper = I
                upper[i] += 1
                free += solids.frees(c, I, s, i) + solids.frees(c + s[i], upper, s, i)
                if solids.slip(c, s, i) + solids.slip(c + s[i], s, i) > 0:
                    part = ti.f32(0.0)
            if free == 0:
                part = ti.f32(0.0)
    stress.felt[c + ti.static(s.n * (s.n - 1) // 2) * cells] = part
    for i in ti.static(range(s.n)):
        for j in ti.static(range(i)):
            around = stress.phi[c] + stress.phi[c - s[i]] + stress.phi[c - s[j]] + stress.phi[c - s[i] - s[j]]
            part = stress.part(ti.f32(0.25) * around)
            if ti.static(solids.given):
                free = ti.i32(0)
                for along, across in ti.static(((i, j), (j, i))):
                    before = I
                    before[across] -= 1
                    free += solids.frees(c, I, s, along) + solids.frees(c - s[across], before, s, along)
                    # Of the two faces that meet here one may lie beyond a side; what is along that is a face of the box.
                    inside = beyond.sum() - beyond[along]
                    slips = ti.i32(0)
                    if inside == 0:
                        slips += solids.slip(c, s, along)
                    if inside - beyond[across] == 0 and (I[across] > 1 or solids.wrap[across] == 1):
                        slips += solids.slip(c - s[across], s, along)
                    if slips > 0:
                        part = ti.f32(0.0)
                if free == 0:
                    part = ti.f32(0.0)
            stress.felt[c + ti.static(i + j - 1) * cells] = part
