"""The pressure that holds friction: it acts in the same solve as that.

What friction takes where the liquid is pressed against something, through a channel, or out from under a plate, a pressure
gives back. Found after friction has acted it is the less the longer a step is, 0.70 of what a flow at Reynolds' number 0.25
takes through a channel in default steps, and the profile flat. So that of the step before acts first, and what is found
is by how much it has changed: what lasts is exact. (Van Kan 1986; Guermond, Minev, Shen 2006.)

Where the liquid is another one than it was, as around a solid that moves, that pressure is of what is no more, and what it does would
grow from step to step. So it acts between cells that were liquid before, as much of it as lies along what friction begins to do, and,
of each cell that a solid goes in a step, so much less: none if it goes a whole one.
"""

from .._ti import argument, ti
from ..boundaries.solids import CutCells, Solids
from ..grid import Grid
from ..kernels import Array, add, cells_of, kernel_family
from ..kernels.reduce import room_for_partials
from ..physics.advection import add_gain
from .sides import Seams
from .stress import Stress

UNKNOWN = -1e30
"""The pressure, Pa, of what was no liquid in the last step."""


@argument
class _Held:
    """A pressure, what its difference is over that of a velocity, where there is liquid, and which faces are free."""

    pressure: object
    scale: object
    phi: object
    inv_diag: object
    n: object

    @ti.func
    def change(self, c, s, axis: ti.template()):
        """What it takes off the lower face of a cell, m/s: between what is liquid and was before."""
        change, below = ti.f32(0.0), c - s[axis]
        if self.inv_diag[c + axis * cells_of(s, self.n)] > 0 and ti.max(self.phi[c], self.phi[below]) < 0:
            if ti.min(self.pressure[c], self.pressure[below]) > ti.f32(UNKNOWN):
                change = self.scale * (self.pressure[c] - self.pressure[below])
        return change


@ti.func
def _work_of(c, I, s, held, pushed: Array, stress):
    """What friction begins to do to the faces of a cell, times what the pressure does against it, and that squared."""
    total = ti.Vector([ti.f32(0.0), ti.f32(0.0)])
    for axis in ti.static(range(s.n)):
        change = held.change(c, s, axis)
        total += change * ti.Vector([pushed[c + axis * cells_of(s, held.n)], stress.mass(c, s, axis) * change])
    return total


@ti.func
def _press_at(c, I, s, held, velocity: Array, change: Array, part):
    for axis in ti.static(range(s.n)):
        face = c + axis * cells_of(s, held.n)
        change[face] = part * held.change(c, s, axis)
        velocity[face] = velocity[face] - change[face]


@ti.func
def _add_at(c, I, s, held: Array, pressure: Array):
    first = pressure[c]
    if held[c] > ti.f32(UNKNOWN):
        pressure[c] = first + held[c]
    held[c] = -first


@ti.func
def _rest_at(c, I, s, held: Array, pressure: Array, phi: Array, fluid: Array, given: ti.template()):
    rest, there = held[c] + pressure[c], phi[c] < 0
    if ti.static(given):
        there = there and fluid[c] > 0
    held[c] = ti.select(there, rest, ti.f32(UNKNOWN))


@kernel_family
def viscous_pressure_kernels(loops, given):
    IntVector = loops.IntVector

    @ti.kernel
    def press(
        pressure: Array,
        scale: ti.f32,
        phi: Array,
        inv_diag: Array,
        n: IntVector,
        velocity: Array,
        change: Array,
        pushed: Array,
        open: Array,
        dx: ti.f32,
        most: ti.f32,
        partials: Array,
        part: Array,
    ):
        held, none = _Held(pressure, scale, phi, inv_diag, n), ti.Vector([ti.f32(0.0), ti.f32(0.0)])
        stress = Stress(phi, None, CutCells(open, None, None, None, n, None, dx), None, given)
        loops.reduce_cells(n, partials, none, add, _work_of, (held, pushed, stress))
        ti.loop_config(serialize=True)
        for _ in range(1):
            total = loops.reduced(partials, none, add)
            part[0] = ti.f32(0.0)
            if total[1] > 0:
                part[0] = ti.min(ti.max(total[0] / total[1], ti.f32(0.0)), most)
        loops.each_cell(n, _press_at, (held, velocity, change, part[0]))

    @ti.kernel
    def add_held(held: Array, pressure: Array, n: IntVector):
        loops.each_cell(n, _add_at, (held, pressure))

    @ti.kernel
    def keep_rest(held: Array, pressure: Array, phi: Array, fluid: Array, n: IntVector):
        loops.each_cell(n, _rest_at, (held, pressure, phi, fluid, given))

    return press, add_held, keep_rest


class ViscousPressure:
    """The pressure that holds friction in a liquid on one grid.

    Attributes:
        held: That of the last step, Pa; between ``release`` and ``settle`` the pressure before friction, with its sign turned.
        there: Whether ``held`` may hold any.

    Args:
        grid: The grid.
        solids: What stands in it.
        seams: Where it is periodic.
    """

    def __init__(self, grid: Grid, solids: Solids | None, seams: Seams):
        self.grid, self._solids, self._seams, self.there = grid, solids, seams, False
        self._kernels = viscous_pressure_kernels(grid.loops, solids is not None)
        self.held, self._change = grid.array(), grid.velocity()
        self._partials, self._part, self._nothing = room_for_partials(2), ti.ndarray(ti.f32, 1), ti.ndarray(ti.f32, 1)
        for array in (self.held, self._change):
            array.fill(0.0)

    def clear(self) -> None:
        """Have none."""
        if self.there:
            self.held.fill(0.0)
            self.there = False

    def press(self, velocity, scale: float, dt: float, phi, inv_diag, pushed) -> None:
        """Let it act on a velocity, m/s, ``scale`` times its difference, before friction does for ``dt`` seconds.

        ``pushed`` is what friction begins to do, times the mass of a face, of which ``inv_diag`` has those that are free.
        """
        grid, open = self.grid, self._nothing if self._solids is None else self._solids.open
        gone = 0.0 if self._solids is None else self._solids.fastest * dt / grid.dx
        most = max(1.0 - gone, 0.0) if self.there else 0.0
        given = self.held, scale, phi, inv_diag, grid.n
        given = *given, velocity, self._change, pushed, open, grid.dx, most
        self._kernels.press(*given, self._partials, self._part)

    def release(self, velocity, pressure) -> None:
        """Undo what ``press`` has done to a velocity, m/s, and make of a pressure that acted before, Pa, a guess of the whole one."""
        add_gain(self.grid, velocity, self._change, 1.0)
        self._kernels.add_held(self.held, pressure, self.grid.n)
        self.there = True

    def settle(self, pressure, phi) -> None:
        """Be what of a pressure, Pa, that has made the velocity free of divergence after friction, is more than that before."""
        fluid = self._nothing if self._solids is None else self._solids.fluid
        self._kernels.keep_rest(self.held, pressure, phi, fluid, self.grid.n)
        self._seams.close(self.held)
