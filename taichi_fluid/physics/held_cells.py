"""Cells within solids that hold what is carried, beside which it is carried past them.

They have no value of their own, as diffusion has it (``scalars_at_solids``): they are not carried, and count for nothing. What is
looked up beside them must not see the surface's value at their centre, as much below the surface as the fluid beside them is
above it: there they have what continues the slope of that. (Gibou, Fedkiw, Cheng, Kang 2002; the mirror beside a wall of the box.)
The cells beside count as diffusion counts them: so what is carried takes nothing from a solid, and all that it gives is diffused.
"""

from .._ti import ti
from ..boundaries.solids import Solids
from ..kernels import Array, flat, kernel_family, neighbour
from ..operators.ghosts import across_seams
from .scalars_at_solids import Surfaces, is_free, scalar_kernels


@ti.func
def _write_counted_at(c, I, s, fluid: Array, surfaces, out: Array):
    part = ti.f32(0.0)
    if is_free(c, s, fluid, surfaces) == 1:
        part = ti.select(surfaces.is_held_beside(c, s), ti.f32(1.0), fluid[c])
    out[c] = part


@ti.func
def _continue_at(c, I, s, a: Array, offset, fluid: Array, surfaces, n, wrap):
    """By the slope that fits the fluid around best, but no farther beyond the solid's value than that is on this side of it."""
    if fluid[c] > 0 and surfaces.holds_at(c, s) == 1:
        value, deep = surfaces.table[surfaces.row_at(c, s) + 1], -surfaces.depth_at(c, s)
        rise, way, square = ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)
        for around in range(ti.static(3**s.n)):
            J = across_seams(neighbour(I, around), n, wrap)
            if (J >= 1).all() and (n >= J).all():
                place = flat(J, s)
                row = surfaces.row_at(place, s)
                if is_free(place, s, fluid, surfaces) == 1 and surfaces.table[row] > 0:
                    if surfaces.table[row + 1] == value:
                        away = surfaces.depth_at(place, s)
                        rise += away * (a[offset + place] - value)
                        way += away
                        square += away * away
        a[offset + c] = value - deep * rise / ti.max(square, deep * way, ti.f32(1e-30))


@kernel_family
def held_kernels(loops):
    Index, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def count_free(fluid: Array, out: Array, n: Index, distance: Array, owner: Array, table: Array):
        each_cell(n, _write_counted_at, (fluid, Surfaces(distance, owner, table), out))

    @ti.kernel
    def continue_fluid(
        a: Array, offset: ti.i32, fluid: Array, wrap: Index, n: Index, distance: Array, owner: Array, table: Array
    ):
        each_cell(n, _continue_at, (a, offset, fluid, Surfaces(distance, owner, table), n, wrap))

    return {"count_free": count_free, "continue_fluid": continue_fluid}


class HeldCells:
    """Those of one grid.

    Args:
        solids: The solids.
    """

    def __init__(self, solids: Solids):
        self.solids, self.grid = solids, solids.grid
        self._wrap = solids.walls.wrap
        self._counted, self._counted_of = self.grid.array(), None
        names = dict.fromkeys(name for solid in solids.solids for name in solid.values)
        self._before = {name: self.grid.array() for name in names} if solids.moves else {}
        self._kernels, self._scalars = held_kernels(self.grid.loops), scalar_kernels(self.grid.loops)

    def _where(self, name: str, k: int) -> tuple:
        return self.grid.n, self.solids.distance, self.solids.owner, self.solids.conditions(name, k)

    def counted(self, name: str):
        """What part of each cell counts in the amount of a quantity, until this is asked again."""
        if self.solids.moves or name != self._counted_of:
            self._kernels.count_free(self.solids.fluid, self._counted, *self._where(name, 0))
            self._counted_of = name
        return self._counted

    def note(self) -> None:
        """Note what part of each cell counts of each quantity, before solids move; ``before`` has it then."""
        for name, part in self._before.items():
            self._kernels.count_free(self.solids.fluid, part, *self._where(name, 0))

    def before(self, name: str):
        """What ``note`` has noted last."""
        return self._before[name]

    def continue_fluid(self, a, offset: int, name: str, k: int) -> None:
        """Let component ``k`` of a quantity, at ``offset`` in ``a``, go on from the fluid into cells that solids hold."""
        self._kernels.continue_fluid(a, offset, self.solids.fluid, self._wrap, *self._where(name, k))

    def set(self, a, offset: int, name: str) -> None:
        """Set these cells to what the solids hold."""
        self._scalars.set_held(a, offset, self.solids.fluid, *self._where(name, offset // self.grid.cells))
