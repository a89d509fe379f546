"""Velocities of inflows that differ from place to place and in time: a small array of each side, which ghosts are made of."""

from collections.abc import Sequence

import numpy as np

from .._ti import argument, ti
from ..grid import Grid
from ..kernels import Array, kernel_family
from .sides import Profile, places_on_side


@argument
class Laid:
    """A profile and where it goes: onto the faces of the side (``own``), or into ghosts, mirrored by ``mirror``."""

    values: object
    offset: object
    plane: object
    upper: object
    own: object
    mirror: object
    axis: int


@ti.func
def _lay_at(c, I, s, laid, n):
    a, axis = ti.static(laid.values, laid.axis)
    place = I[0] * 0
    for b in ti.static(range(n.n)):
        if ti.static(b != axis):
            place = place * (n[b] + 2) + I[b]
    given = laid.plane[place]
    lower = laid.offset + c
    end = lower + (n[axis] + 1) * s[axis]
    if laid.own == 1 and laid.upper == 1:
        a[end] = given
    elif laid.own == 1:
        a[lower + s[axis]] = given
        # As beyond any side: mirrored about the face.
        a[lower] = ti.f32(2.0) * given - a[lower + 2 * s[axis]]
    else:
        ghost, inside = lower, lower + s[axis]
        if laid.upper == 1:
            ghost, inside = end, end - s[axis]
        a[ghost] = laid.mirror * a[inside] + (ti.f32(1.0) - laid.mirror) * given


@kernel_family
def profile_kernels(loops, axis):
    IntVector, each_on_plane = loops.IntVector, loops.each_on_plane

    @ti.kernel
    def lay_profile(a: Array, n: IntVector, offset: ti.i32, plane: Array, upper: ti.i32, own: ti.i32, mirror: ti.f32):
        each_on_plane(n, axis, _lay_at, (Laid(a, offset, plane, upper, own, mirror, axis), n))

    return {"lay_profile": lay_profile}


class LaidProfile:
    """One component of the velocity of one side.

    Args:
        grid: The grid.
        axis: That the side is across.
        end: 0 for the lower side, 1 for the upper.
        component: Of the velocity.
        profile: What it is.
        mirror: Of its ghosts, see ``Kind.mirror``.
    """

    def __init__(self, grid: Grid, axis: int, end: int, component: int, profile: Profile, mirror: float):
        self.grid, self.axis, self.end, self.profile = grid, axis, end, profile
        self.component, self.mirror = component, mirror
        self._place = grid.place(component)
        self._shape = [1 if a == axis else n + 2 for a, n in enumerate(grid.shape)]
        self._plane = ti.ndarray(ti.f32, int(np.prod(self._shape)))
        self._kernels = profile_kernels(grid.loops, axis)
        self.fastest = 0.0

    def set(self, time: float, pads: Sequence[tuple[float, float, str]]) -> None:
        """Compute it for a time, s.

        Args:
            time: The time.
            pads: Of each side, flat, what beyond it becomes of what lies on this one: factor and value of the ghost, and
                ``"wraps"``, ``"given"`` or ``""``, for faces on it that have the value, or are as computed.
        """
        x = places_on_side(self.grid.shape, self.grid.size, self.axis, self.end, self._place)
        plane = np.zeros(self._shape)
        own = tuple(
            slice(None) if a == self.axis else slice(1, n + 1 + (a == self._place))
            for a, n in enumerate(self.grid.shape)
        )
        plane[own] = self.profile.compute(time, *x)
        for a, n in enumerate(self.grid.shape):
            if a != self.axis:
                self._pad(np.moveaxis(plane, a, 0), n, pads[2 * a], pads[2 * a + 1], a == self._place)
        self.fastest = float(np.abs(plane[own]).max())
        self._plane.from_numpy(np.ascontiguousarray(plane.reshape(-1), dtype=np.float32))

    @staticmethod
    def _pad(lines: np.ndarray, n: int, lower, upper, on_faces: bool) -> None:
        """Ghosts of ``lines`` along their first axis, and the faces on its ends, as ``Walls.fill`` has them."""
        if lower[2] == "wraps":
            lines[0], lines[n + 1] = lines[n], lines[1]
        elif on_faces:
            for place, (_, value, what) in ((1, lower), (n + 1, upper)):
                if what == "given":
                    lines[place] = value
            lines[0] = 2 * lines[1] - lines[2]
        else:
            lines[0] = lower[0] * lines[1] + lower[1]
            lines[n + 1] = upper[0] * lines[n] + upper[1]

    def lay(self, array, offset: int) -> None:
        """Onto the side, in the component that begins at ``offset``."""
        own = int(self._place == self.axis)
        kernels, n = self._kernels, self.grid.n
        kernels.lay_profile(array, n, offset, self._plane, self.end, own, self.mirror)
