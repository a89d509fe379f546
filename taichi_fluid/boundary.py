"""What stands on each of the 2·dim sides of the box, and the ghost values that say so to every stencil."""

from collections.abc import Sequence
from enum import Enum

from ._ti import ti
from .grid import Grid
from .kernels import Array, kernel_family
from .pressure.poisson import Sides


class Boundary(Enum):
    """Kind of a side of the box. Both are closed: nothing flows through."""

    FREE_SLIP = "free-slip"
    NO_SLIP = "no-slip"


Boundaries = Sequence[Sequence[Boundary]]
"""``boundaries[axis][side]``, side 0 lower and 1 upper."""

SCALAR = -1
"""In place of a component: a quantity at cell centres."""


@ti.func
def _fill_ghost_pair(c, I, s, a: ti.template(), offset, component, mirror, n, axis: ti.template()):
    lower = offset + c
    upper = lower + (n[axis] + 1) * s[axis]
    if component == axis:
        # The component's own walls: faces 1 and n + 1 lie on them, the ghost face mirrors what is inside.
        a[lower + s[axis]] = ti.f32(0.0)
        a[upper] = ti.f32(0.0)
        a[lower] = -a[lower + 2 * s[axis]]
    else:
        a[lower] = mirror[2 * axis] * a[lower + s[axis]]
        a[upper] = mirror[2 * axis + 1] * a[upper - s[axis]]


@kernel_family
def boundary_kernels(loops):
    IntVector, each_on_plane, dim = loops.IntVector, loops.each_on_plane, loops.dim
    Mirror = ti.types.vector(2 * dim, ti.f32)

    @ti.kernel
    def fill_ghosts(a: Array, n: IntVector, offset: ti.i32, component: ti.i32, mirror: Mirror):
        # Axis after axis over whole planes, ghosts of earlier axes included, so that edges and corners agree.
        for axis in ti.static(range(dim)):
            each_on_plane(n, axis, _fill_ghost_pair, (a, offset, component, mirror, n, axis))

    return {"fill_ghosts": fill_ghosts, "Mirror": Mirror}


class Walls:
    """The sides of one grid: fills ghosts, and tells the elliptic solvers what its walls mean.

    Args:
        grid: The grid.
        boundaries: ``boundaries[axis][side]``.
    """

    def __init__(self, grid: Grid, boundaries: Boundaries):
        if len(boundaries) != grid.dim or any(len(pair) != 2 for pair in boundaries):
            raise ValueError(f"boundaries must be {grid.dim} pairs (lower, upper), one pair per axis")
        self.grid = grid
        self.boundaries = tuple((Boundary(lower), Boundary(upper)) for lower, upper in boundaries)
        self._kernels = boundary_kernels(grid.loops)
        kinds = [kind for pair in self.boundaries for kind in pair]
        self._slip = self._kernels.Mirror(*[-1.0 if kind is Boundary.NO_SLIP else 1.0 for kind in kinds])
        self._copy = self._kernels.Mirror(*[1.0] * len(kinds))

    def fill(self, array, component: int = SCALAR, offset: int = 0) -> None:
        """Set the ghosts of one quantity: a scalar at centres, or the velocity component ``component``.

        Of a velocity component also the two layers of faces that lie on its walls are set.
        """
        self.grid.require_runtime()
        mirror = self._copy if component == SCALAR else self._slip
        self._kernels.fill_ghosts(array, self.grid.n, offset, component, mirror)

    def fill_velocity(self, velocity) -> None:
        """Set walls and ghosts of a staggered velocity."""
        for axis in range(self.grid.dim):
            self.fill(velocity, component=axis, offset=axis * self.grid.cells)

    def pressure_sides(self) -> Sides:
        """Closed walls: the pressure does not change across them."""
        return Sides.closed(self.grid.dim)

    def diffusion_sides(self, component: int, shift: float) -> Sides:
        """Walls as implicit diffusion of a scalar or of a velocity component sees them."""
        box = []
        for axis, pair in enumerate(self.boundaries):
            for kind in pair:
                if component == SCALAR:
                    box.append(0.0)
                elif component == axis:
                    box.append(1.0)
                else:
                    box.append(2.0 if kind is Boundary.NO_SLIP else 0.0)
        return Sides(box=tuple(box), inside=0.0 if component == SCALAR else 1.0, shift=shift)

    def first_unknown(self, component: int) -> tuple[int, ...]:
        """Integer position of the first value that is not given by a wall."""
        return tuple(2 if axis == component else 1 for axis in range(self.grid.dim))
