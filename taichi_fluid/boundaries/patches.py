"""What the patches of a side say at each place on it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import NotFinite
from ..limits import LARGEST
from .sides import Part, Profile, Side

CENTRES, AREAS, ENTERING = range(3)
"""Which patch has a place, where the edge of one lies within a cell: the one that its centre lies in, on an edge both by half; each
by its area, so that as much flows in as is said; or one that anything enters through, however little of it does.
Where the fluid leaves as it likes its centre decides, for all three."""


def shares_of(side: Side, x: Sequence[np.ndarray], axis: int, dx: float, which: int = CENTRES) -> list[np.ndarray]:
    """How much of each of some places on a side every patch of it has, in their order."""
    shares = [np.ones(np.broadcast_shapes(*(each.shape for each in x)))]
    for part in side.parts:
        share = part.share(x, axis, dx) if which == CENTRES else part.area(x, axis, dx)
        shares = [*((1.0 - share) * each for each in shares), share]
    if which == CENTRES or not side.parts:
        return shares
    kinds, centres = [patch.kind for patch in side.patches], shares_of(side, x, axis, dx)
    leaves = sum(share * kind.lets_out for share, kind in zip(centres, kinds, strict=True)) > 0
    given = [share * (kind.through == "given") * ~leaves for share, kind in zip(shares, kinds, strict=True)]
    if which == ENTERING:
        enters = sum(given) > 0
        return [np.where(enters, share, centre) for share, centre in zip(given, centres, strict=True)]
    return [
        np.where(leaves, centre, share * (not kind.lets_out))
        for share, centre, kind in zip(shares, centres, kinds, strict=True)
    ]


def said_at(
    said: float | Profile,
    part: Part | None,
    x: Sequence[np.ndarray],
    axis: int,
    dx: float,
    time: float,
    what: str,
    which: int = CENTRES,
) -> Any:
    """A number, or what a ``Profile`` says at places on a side: by areas at the middle of what a part has of each."""
    if not isinstance(said, Profile):
        return said
    places = x if part is None or which == CENTRES else part.middles(x, axis, dx)
    return said.at(time, places, axis, what)


def on_side(
    side: Side,
    number: Callable[[Side], Any],
    x: Sequence[np.ndarray],
    axis: int,
    dx: float,
    time: float = 0.0,
    what: str = "a profile",
    weight: Callable[[Side], float] = lambda patch: 1.0,
    which: int = CENTRES,
) -> np.ndarray:
    """What each patch of a side says, a ``number`` or a ``Profile``, at places on that side.

    Of what several patches have it is the mean by ``weight``; by ``AREAS`` the sum of what each has, by its area.

    Raises:
        NotFinite: where that is no number, or one beyond ``LARGEST``.
    """
    shape = np.broadcast_shapes(*(each.shape for each in x))
    total, weights = np.zeros(shape), np.zeros(shape)
    shares = shares_of(side, x, axis, dx, which)
    for patch, part, share in zip(side.patches, (None, *side.parts), shares, strict=True):
        said = said_at(number(patch), part, x, axis, dx, time, what, which)
        share = weight(patch) * share
        total += np.where(share > 0, share * said, 0.0)
        weights += share
    if which == AREAS:
        weights[...] = 1.0
    values = np.divide(total, weights, out=np.zeros(shape), where=weights != 0)
    require_finite(values, x, time, what)
    return values


def require_finite(values: np.ndarray, x: Sequence[np.ndarray], time: float, what: str) -> None:
    """Raise NotFinite, which says where and when, for values on a side that are no numbers, or too large."""
    wrong = ~(np.abs(values) <= LARGEST)
    if wrong.any():
        first = np.unravel_index(int(wrong.argmax()), values.shape)
        at = [float(np.broadcast_to(each, values.shape)[first]) for each in x]
        place = ", ".join(f"{name} = {each:.4g}" for name, each in zip("xyz", at, strict=False))
        raise NotFinite(
            f"{what} is {values[first]:.4g} at {place} m, t = {time:.4g} s; it must be a number of at most {LARGEST:g} there."
        )


def places_on_side(
    shape: Sequence[int], size: Sequence[float], axis: int, end: int, face: int
) -> tuple[np.ndarray, ...]:
    """Coordinates, m, of a side of a box of ``shape`` cells and ``size`` m, arrays that fit each other.

    Args:
        shape: Cells along each axis.
        size: Edges of the box, m.
        axis: That the side is across.
        end: 0 for the lower side, 1 for the upper.
        face: Axis on whose faces the values lie, those at both ends included; -1 if at centres.
    """
    axes = []
    for a, (n, edge) in enumerate(zip(shape, size, strict=True)):
        steps = np.arange(n + 1) if a == face else np.arange(n) + 0.5
        axes.append(np.array([end * edge]) if a == axis else steps * (edge / n))
    return tuple(np.meshgrid(*axes, indexing="ij", sparse=True))
