"""Beside a wall that holds a value: what is carried stays between the extremes that there were, inside and on the sides.

The ghost beyond such a wall mirrors what is inside about the value, so that the value stands on the wall itself, and lies
beyond it by as much. A path ends at the wall at the latest, and what is predicted is never more than what is there. But the
limits of MacCormack's correction are the values around the end of a path, ghosts included: a correction might
follow them beyond the wall's own value.
"""

from ..._ti import ti
from ...grid import Grid
from ...kernels import Array, fast_max, fast_min, kernel_family, largest, room_for_partials


@ti.func
def _signed_value_at(c, I, s, a: Array, offset, sign):
    return sign * a[offset + c]


@ti.func
def _clip_at(c, I, s, a: Array, offset, extremes: Array):
    a[offset + c] = fast_min(fast_max(a[offset + c], -extremes[0]), extremes[1])


@kernel_family
def extremes_kernels(loops):
    IntVector, each_cell, reduce_to = loops.IntVector, loops.each_cell, loops.reduce_to

    @ti.kernel
    def find_extremes(
        a: Array, n: IntVector, offset: ti.i32, low: ti.f32, high: ti.f32, partials: Array, extremes: Array
    ):
        reduce_to(extremes, 0, n, partials, -low, largest, _signed_value_at, (a, offset, ti.f32(-1.0)))
        reduce_to(extremes, 1, n, partials, high, largest, _signed_value_at, (a, offset, ti.f32(1.0)))

    @ti.kernel
    def keep_extremes(a: Array, n: IntVector, offset: ti.i32, extremes: Array):
        each_cell(n, _clip_at, (a, offset, extremes))

    return {"find_extremes": find_extremes, "keep_extremes": keep_extremes}


class Extremes:
    """The least and the largest value of one component, found on the device and kept there.

    Args:
        grid: The grid.
    """

    def __init__(self, grid: Grid):
        self.grid, self._kernels = grid, extremes_kernels(grid.loops)
        self._partials, self._extremes = room_for_partials(), ti.ndarray(ti.f32, 2)

    def find(self, array, offset: int, known: tuple[float, float]) -> None:
        """Note those of ``array[offset:…]`` and of the range ``known``."""
        self._kernels.find_extremes(array, self.grid.n, offset, *known, self._partials, self._extremes)

    def keep(self, array, offset: int) -> None:
        """Bring ``array[offset:…]`` between what ``find`` noted last; ghosts stay."""
        self._kernels.keep_extremes(array, self.grid.n, offset, self._extremes)
