"""Sides that are not the same all over: small arrays of each, which faces and ghosts are made of."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .._ti import argument, ti
from ..grid import Grid
from ..kernels import Array, array_of, copy_values, kernel_family
from .patches import AREAS, CENTRES, on_side, places_on_side, require_finite
from .sides import Part, Profile, Side

GHOSTS, FACES_AND_GHOSTS, FACES = range(3)
"""What an array is laid onto: ghosts beyond a side; the faces on it and, as mirrored about them, those beyond; faces alone."""


RIPPLE, RISES = 0.35, 0.25
"""By how many cells a liquid reaches farther than the part of a side that it comes in through, for that to be below its surface, and within how
many more that is all of a cell: a jet that is a little thick for a moment would be braked, and be thicker."""


class Rule(NamedTuple):
    """What becomes of a ghost beyond a side, or of a face on it: ``follows · inside + (1 - follows) · given``.

    Or it is ``left`` as it is, or ``wraps``, which is for all of an axis.
    """

    follows: float
    given: float | Profile = 0.0
    left: bool = False
    wraps: bool = False

    @property
    def differs(self) -> bool:
        """Whether it is not the same from place to place."""
        return isinstance(self.given, Profile)


@argument
class Laid:
    """Arrays of a side, and where they go: ``onto`` what, in the component of ``values`` that begins at ``offset``."""

    values: object
    offset: object
    left: object
    follows: object
    given: object
    upper: object
    onto: object
    axis: int


@ti.func
def _place_on_plane(I, n, axis: ti.template()):
    """Where a side across ``axis``, the ghosts of the other axes included, has its value for ``I``."""
    place = I[0] * 0
    for b in ti.static(range(n.n)):
        if ti.static(b != axis):
            place = place * (n[b] + 2) + I[b]
    return place


@ti.func
def _lay_at(c, I, s, laid, n):
    a, axis = ti.static(laid.values, laid.axis)
    place, lower = _place_on_plane(I, n, axis), laid.offset + c
    end = lower + (n[axis] + 1) * s[axis]
    at, inside = lower, lower + s[axis]
    if laid.upper == 1:
        at, inside = end, end - s[axis]
    elif laid.onto != GHOSTS:
        at, inside = lower + s[axis], lower + 2 * s[axis]
    if laid.left[place] == 0:
        a[at] = laid.follows[place] * a[inside] + laid.given[place]
    if laid.onto == FACES_AND_GHOSTS and laid.upper == 0:
        # As beyond any side: mirrored about the face.
        a[lower] = ti.f32(2.0) * a[at] - a[inside]


@argument
class Added:
    """What a side adds to the cells ``depth`` from it, ``scale`` times its array, where ``mask`` is positive."""

    values: object
    mask: object
    plane: object
    upper: object
    depth: object
    scale: object
    axis: int


@ti.func
def _add_at(c, I, s, added, n):
    a, axis = ti.static(added.values, added.axis)
    at = c + added.depth * s[axis]
    if added.upper == 1:
        at = c + (n[axis] + 1 - added.depth) * s[axis]
    if added.mask[at] > 0:
        a[at] = a[at] + added.scale * added.plane[_place_on_plane(I, n, axis)]


@argument
class Narrowed:
    """What is ``given`` to the faces of a side, of which the inflow has a ``share``; ``told`` is the mean over all of each face.

    ``level`` is the signed distance to the surface of the liquid, m.
    """

    told: object
    share: object
    level: object
    given: object
    upper: object
    dx: object


@ti.func
def _take_at(c, I, s, a: Array, offset, layer, plane: Array, n, axis: ti.template()):
    plane[_place_on_plane(I, n, axis)] = a[offset + c + layer * s[axis]]


@ti.func
def _narrow_at(c, I, s, narrowed, n, axis: ti.template()):
    """The speed of a face of which the inflow has a share: all of what is said while the liquid reaches no farther, else what is ``told``."""
    place, cell = _place_on_plane(I, n, axis), c + s[axis]
    if narrowed.upper == 1:
        cell = c + n[axis] * s[axis]
    share = narrowed.share[place]
    if share > 0:
        beyond = ti.f32(0.5) - narrowed.level[cell] / narrowed.dx - share
        wet = ti.min(ti.max((beyond - ti.f32(RIPPLE)) * ti.f32(1.0 / RISES), ti.f32(0.0)), ti.f32(1.0))
        narrowed.given[place] = narrowed.told[place] / (share + wet * (ti.f32(1.0) - share))


@kernel_family
def profile_kernels(loops, axis):
    Index, each_on_plane = loops.IntVector, loops.each_on_plane

    @ti.kernel
    def lay_profile(
        a: Array, n: Index, offset: ti.i32, left: Array, follows: Array, given: Array, upper: ti.i32, onto: ti.i32
    ):
        each_on_plane(n, axis, _lay_at, (Laid(a, offset, left, follows, given, upper, onto, axis), n))

    @ti.kernel
    def add_profile(a: Array, n: Index, mask: Array, plane: Array, upper: ti.i32, depth: ti.i32, scale: ti.f32):
        each_on_plane(n, axis, _add_at, (Added(a, mask, plane, upper, depth, scale, axis), n))

    @ti.kernel
    def take_profile(a: Array, n: Index, offset: ti.i32, layer: ti.i32, plane: Array):
        each_on_plane(n, axis, _take_at, (a, offset, layer, plane, n, axis))

    @ti.kernel
    def narrow_profile(told: Array, share: Array, level: Array, given: Array, n: Index, upper: ti.i32, dx: ti.f32):
        each_on_plane(n, axis, _narrow_at, (Narrowed(told, share, level, given, upper, dx), n, axis))

    kernels = {"lay_profile": lay_profile, "add_profile": add_profile, "take_profile": take_profile}
    return kernels | {"narrow_profile": narrow_profile}


class Plane:
    """One side of a grid, as what has a number for each place on it sees it.

    Args:
        grid: The grid.
        axis: That the side is across.
        end: 0 for the lower side, 1 for the upper.
        place: Axis on whose faces the numbers lie; -1 for centres.
    """

    def __init__(self, grid: Grid, axis: int, end: int, place: int):
        self.grid, self.axis, self.end, self.place = grid, axis, end, place
        self.shape = [1 if a == axis else n + 2 for a, n in enumerate(grid.shape)]
        self.inner = tuple(
            slice(None) if a == axis else slice(1, n + 1 + (a == place)) for a, n in enumerate(grid.shape)
        )
        self.places = places_on_side(grid.shape, grid.size, axis, end, place)
        self.kernels = profile_kernels(grid.loops, axis)

    def numbers(
        self,
        side: Side,
        number: Callable[[Side], float | Profile],
        time: float,
        what: str,
        which: int = CENTRES,
        **weight: Callable[[Side], float],
    ) -> np.ndarray:
        """What each patch of the side says, at the places on it that are its own by ``which``; see ``on_side``."""
        return on_side(side, number, self.places, self.axis, self.grid.dx, time, what, which=which, **weight)

    def given(self, profile: Profile, time: float, what: str, part: Part | None = None) -> np.ndarray:
        """What a profile says at the places on it, or at those that belong to a part, flat."""
        values = profile.at(time, self.places, self.axis, what)
        here = np.ones(values.shape, bool) if part is None else part.covers(self.places, self.axis, self.grid.dx)
        require_finite(np.where(here, values, 0.0), self.places, time, what)
        return values[here]

    def padded(self, values: np.ndarray) -> np.ndarray:
        """Values at the places on it, with those of their ends beside them: as long as the layer of ghosts."""
        plane = np.zeros(self.shape)
        plane[self.inner] = values
        for a, n in enumerate(self.grid.shape):
            if a != self.axis:
                lines = np.moveaxis(plane, a, 0)
                lines[0], lines[n + 1] = lines[1], lines[n + (a == self.place)]
        return plane

    def array(self):
        """Room for a number at each place."""
        return ti.ndarray(ti.f32, int(np.prod(self.shape)))

    def take(self, array, offset: int, layer: int, room) -> np.ndarray:
        """What an array has in a layer of cells, 0 that of the lower ghosts, at the places of the side; read back."""
        self.kernels.take_profile(array, self.grid.n, offset, layer, room)
        return room.to_numpy().reshape(self.shape)[self.inner].astype(np.float64)

    def add(self, array, mask, values, depth: int, scale: float) -> None:
        """``scale`` times ``values``, to the cells ``depth`` from the side where ``mask`` is positive."""
        self.kernels.add_profile(array, self.grid.n, mask, values, self.end, depth, scale)


def require_shapes(side: Side, plane: Plane, named: Callable[[str], str]) -> None:
    """Refuse what has another shape than its side, before it is asked for; ``named`` is how a message calls something of it.

    Raises:
        ValueError: naming it.
    """
    for patch in side.patches:
        for suffix, said, one in (("", patch.values, patch.value), ("_flux", patch.fluxes, patch.flux)):
            for name, values in said.items():
                for k in range(len(values) if isinstance(values, Sequence) else 1):
                    if isinstance(profile := one(name, k), Profile):
                        profile.at(0.0, plane.places, plane.axis, named(name + suffix))


class LaidSide:
    """What is laid onto one side, or into its ghosts, of one component.

    Args:
        plane: The side.
        side: What stands on it.
        rule: Of each patch.
        onto: What it is laid onto.
        what: How a message calls what is laid.
        which: Which places are those of a patch.
    """

    def __init__(
        self, plane: Plane, side: Side, rule: Callable[[Side], Rule], onto: int, what: str, which: int = CENTRES
    ):
        self.plane, self._side, self._rule, self._onto, self._what = plane, side, rule, onto, what
        self._which = which
        self.varies = any(_varies(rule(patch).given) for patch in side.patches)
        follows = self._fixed(lambda patch: rule(patch).follows)
        self._left, self._follows = array_of(self._fixed(lambda patch: float(rule(patch).left))), array_of(follows)
        self._weight, self._given = 1.0 - follows, array_of(0.0 * follows)
        self._told = self._share = self._level = None

    def narrow(self, level) -> None:
        """From now on let as much flow in as is said through cells of which the inflow has a part, however high a liquid stands there.

        ``level`` is the signed distance to its surface, m, as it is now and whenever this is ``set``.
        """
        if self._which == AREAS and self._level is None:
            share = self._fixed(lambda patch: float(patch.kind.through == "given"))
            if ((share > 0) & (share < 1)).any():
                self._told, self._share = array_of(0.0 * share), array_of(np.where(share < 1.0, share, 0.0))
                copy_values(self._given, self._told)
        self._level = level
        self._narrow()

    def _narrow(self) -> None:
        if self._told is not None:
            plane, what = self.plane, (self._told, self._share, self._level, self._given)
            plane.kernels.narrow_profile(*what, plane.grid.n, plane.end, plane.grid.dx)

    def _fixed(self, number: Callable[[Side], float]) -> np.ndarray:
        return self.plane.padded(self.plane.numbers(self._side, number, 0.0, self._what, self._which))

    def set(self, time: float, pads: Sequence[tuple[Rule, float]]) -> None:
        """Compute it for a time, s.

        Args:
            time: The time.
            pads: Of each side, flat, the rule for what lies beyond it and what is given there, as one number.
        """
        rule, told = self._rule, lambda patch: 1.0 - self._rule(patch).follows
        given = self.plane.numbers(
            self._side, lambda patch: rule(patch).given, time, self._what, self._which, weight=told
        )
        self.lay_values(given, pads)

    def lay_values(self, given: np.ndarray, pads: Sequence[tuple[Rule, float]]) -> None:
        """Have these values at the places of the side; ``pads`` as in ``set``."""
        padded = self.plane.padded(given)
        for a, n in enumerate(self.plane.grid.shape):
            if a != self.plane.axis:
                self._pad(np.moveaxis(padded, a, 0), n, pads[2 * a], pads[2 * a + 1], a == self.plane.place)
        self._given.from_numpy(np.float32(self._weight * padded).reshape(-1))
        if self._told is not None:
            copy_values(self._given, self._told)
        self._narrow()

    @staticmethod
    def _pad(lines: np.ndarray, n: int, lower: tuple[Rule, float], upper: tuple[Rule, float], on_faces: bool) -> None:
        """Ghosts of ``lines`` along their first axis, and the faces on its ends, as ``Walls.fill`` has them."""
        if lower[0].wraps:
            lines[0], lines[n + 1] = lines[n], lines[1]
        elif on_faces:
            for place, (rule, given) in ((1, lower), (n + 1, upper)):
                if rule.follows == 0 and not rule.left:
                    lines[place] = given
            lines[0] = 2 * lines[1] - lines[2]
        else:
            for ghost, inside, (rule, given) in ((0, 1, lower), (n + 1, n, upper)):
                lines[ghost] = rule.follows * lines[inside] + (1 - rule.follows) * given

    def lay(self, array, offset: int) -> None:
        """Onto the side, in the component that begins at ``offset``."""
        plane = self.plane
        arrays = self._left, self._follows, self._given
        plane.kernels.lay_profile(array, plane.grid.n, offset, *arrays, plane.end, self._onto)


def _varies(given: float | Profile) -> bool:
    return isinstance(given, Profile) and given.varies
