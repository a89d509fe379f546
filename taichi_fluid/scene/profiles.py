"""Expressions on the sides of a box: what they are there, and whether they can be."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..boundaries.patches import places_on_side
from ..boundaries.sides import Boundary, Part, Profile, Side
from .beginnings import AXES, read_expression
from .expressions import Expression


class PlacesOfSide(NamedTuple):
    """Where a side, or the part of it between two ``corners``, lies in the box."""

    shape: tuple[int, ...]
    size: tuple[float, ...]
    axis: int
    end: int
    staggered: bool
    corners: tuple = ()

    @property
    def dim(self) -> int:
        """Axes of the box."""
        return len(self.size)

    def of(self, component: int) -> tuple:
        """What ``checked_mean`` needs to know for a velocity component, or for -1."""
        face = component if self.staggered else -1
        return (self.shape, self.size, self.axis, self.end, face), self.corners


def profiles_of(name: str, value: Any, most: float, places: PlacesOfSide) -> Any:
    """What a side says of a quantity, with a ``Profile`` for each expression."""
    if isinstance(value, tuple):
        return tuple(profiles_of(f"{name}.{k}", each, most, places) for k, each in enumerate(value))
    if not isinstance(value, str):
        return value
    _, varies = checked_mean(value, f"{name},", most, places.of(-1))
    return Profile(computed_by(value, places.dim), varies)


def computed_by(text: str, dim: int) -> Callable[..., np.ndarray]:
    """The function of time and places that an expression is."""
    return functools.partial(_computed, read_expression(text, dim))


def _computed(expression: Expression, time: float, *x: np.ndarray) -> np.ndarray:
    return expression(**dict(zip(AXES, x, strict=False)), t=time)


@functools.lru_cache(maxsize=64)  # a scene asks for its sides again and again
def checked_mean(text: str, what: str, most: float, where: tuple) -> tuple[float, bool]:
    """Mean at time 0 of an expression on a side, and whether time changes it.

    Args:
        text: The expression.
        what: How a message begins.
        most: Size of the largest number that it may be.
        where: Arguments of ``places_on_side``; and corners of the part that is meant, or nothing for all of it.

    Raises:
        ValueError: if it cannot be read, or is not finite or too large somewhere.
    """
    place, corners = where
    x, dim = places_on_side(*place), len(place[0])
    try:
        expression = read_expression(text, dim)
    except ValueError as error:
        raise ValueError(f"{what.partition(':')[0].rstrip(',')}: {error}") from None
    values = np.broadcast_to(_computed(expression, 0.0, *x), np.broadcast_shapes(*(each.shape for each in x)))
    if corners:
        values = values[Part(*corners, Side(Boundary.NO_SLIP)).covers(x, place[2], place[1][0] / place[0][0])]
    if not (np.abs(values) <= most).all():
        unit = " m/s" if what.startswith("velocity") else ""
        raise ValueError(f"{what} {text!r}, is not a number of at most {most:g}{unit} everywhere at time 0")
    return float(values.mean()) if values.size else 0.0, "t" in expression.uses


FASTEST = 1e6
"""Of an inflow, m/s."""
