"""What a flow begins with: numbers, expressions, functions and arrays, and what they are at the places of a grid.

An array lies over the whole box, at the centres of its own cells, however many those are; of a velocity on the staggered
grid each component on their lower faces, which is how ``Simulation.to_numpy`` gives it. It is interpolated linearly; on a
grid of as many cells it is taken as it is. Nothing here needs Taichi.
"""

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..limits import LARGEST
from .expressions import Expression, ExpressionError

AXES = ("x", "y", "z")
LONGEST_EDGE = 8192
"""Values of an array along an axis: as many as a grid has cells at most."""
MOST_VALUES = 2**28
"""Of an array from a file: 1 GiB as f32."""
SLAB = 2**20
"""Values that are computed at a time."""


class BeginningError(ValueError):
    """Something that no flow can begin with; the message names it and says what is allowed."""


class Places(NamedTuple):
    """Where the values of one component lie: coordinates along each axis, m."""

    axes: tuple[np.ndarray, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many there are along each axis."""
        return tuple(map(len, self.axes))


def places_of(shape: Sequence[int], size: Sequence[float], face: int = -1, *, both_ends: bool = True) -> Places:
    """Centres of ``shape`` cells in a box of ``size`` m, or their faces along the axis ``face``.

    With ``both_ends`` those on both sides of the box, else the lower one of each cell.
    """
    axes = []
    for axis, (n, edge) in enumerate(zip(shape, size, strict=True)):
        steps = np.arange(n + both_ends) if axis == face else np.arange(n) + 0.5
        axes.append(steps * (edge / n))
    return Places(tuple(axes))


def read_array(file: str | Path, axes: int, components: int) -> np.ndarray:
    """Values of a NumPy file, float32: ``(…)`` of one component, else ``(components, …)``.

    Args:
        file: Its path.
        axes: Of the box.
        components: Of what it holds.

    Raises:
        BeginningError: if there is no such file, or it holds no such array, or a larger one than may be.
    """
    array = require_array(file, axes, components)
    with np.errstate(over="ignore"):
        return np.array(array, np.float32)


def require_array(file: str | Path, axes: int, components: int) -> np.ndarray:
    """The same, of which nothing but the head has been read."""
    array = _mapped(os.fspath(file))
    wanted, cells = axes + (components > 1), array.shape[components > 1 :]
    if array.ndim != wanted or (components > 1 and array.shape[0] != components):
        inside = ", ".join(["n"] * axes)
        form = f"({components}, {inside})" if components > 1 else f"({inside})"
        raise BeginningError(f"file is {str(file)!r}, an array of shape {array.shape}; it must be {form}")
    if not 1 <= min(cells) <= max(cells) <= LONGEST_EDGE or array.size > MOST_VALUES:
        raise BeginningError(
            f"file is {str(file)!r}, an array of shape {array.shape}; it has 1 to {LONGEST_EDGE} values along each axis "
            f"and {MOST_VALUES} at most"
        )
    return array


def _mapped(path: str) -> np.ndarray:
    """The array of a file, of which nothing but its head has been read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise BeginningError(f"file is {path!r}; it must be a file")
        array = np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError:
        raise BeginningError(f"file is {path!r}; there is no such file") from None
    except (OSError, ValueError, EOFError, OverflowError, MemoryError, SyntaxError) as error:
        if isinstance(error, BeginningError):
            raise
        reason = " ".join((getattr(error, "strerror", None) or str(error) or type(error).__name__).split())[:80]
        raise BeginningError(f"file is {path!r}, which is no NumPy array ({reason}); it must be a .npy file") from None
    if array.dtype.kind not in "fiu":
        raise BeginningError(f"file is {path!r}, an array of {array.dtype}; it must be of real numbers")
    return array


def read_expression(text: str, dim: int) -> Expression:
    """The expression of a text in the coordinates of a box and t, s.

    Raises:
        BeginningError: for a text that is none.
    """
    try:
        return Expression(text, (*AXES[:dim], "t"))
    except ExpressionError as error:
        raise BeginningError(str(error)) from None


def component_at(
    source: Any, places: Places, own: Callable[[Sequence[int]], Places], time: float, what: str
) -> np.ndarray:
    """One component of what a flow begins with, at its places: float32.

    Args:
        source: A number; the text of an expression; a function of the coordinates, arrays in m that fit each other,
            that gives an array; or an array over the whole box.
        places: Where it is asked for.
        own: Where the values of such an array lie, by its shape.
        time: s, the t of an expression.
        what: What a message calls it.

    Raises:
        BeginningError: if it is none of these, or not finite somewhere.
    """
    if isinstance(source, str):
        try:
            expression = read_expression(source, len(places.axes))
        except BeginningError as error:
            raise BeginningError(f"{what}: {error}") from None

        def evaluate(*x: np.ndarray) -> np.ndarray:
            return expression(**dict(zip(AXES, x, strict=False)), t=time)

        values = _slab_by_slab(evaluate, places, what)
    elif callable(source):
        values = _slab_by_slab(source, places, what)
    else:
        numbers = _numbers(source, what)
        values = _interpolated(numbers, places, own, what) if numbers.ndim else np.full(places.shape, numbers)
    _require_finite(values, places, f"{source!r}" if isinstance(source, str) else "", what)
    return values


def _numbers(values: Any, what: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        try:
            array = np.asarray(values)
            if array.dtype.kind in "fiub":
                return array.astype(np.float32)
        except (TypeError, ValueError):
            pass
    raise BeginningError(f"{what} is of type {type(values).__name__}; it must be numbers, an expression or a function")


def _slab_by_slab(function: Callable[..., Any], places: Places, what: str) -> np.ndarray:
    """A function of the coordinates, along the first axis a part at a time: what it computes with takes room."""
    shape, out = places.shape, np.empty(places.shape, np.float32)
    rows = max(1, SLAB * shape[0] // max(out.size, 1))
    for first in range(0, shape[0], rows):
        x = np.meshgrid(places.axes[0][first : first + rows], *places.axes[1:], indexing="ij", sparse=True)
        values, part = _numbers(function(*x), what), out[first : first + rows]
        try:
            part[...] = values
        except ValueError:
            raise BeginningError(
                f"{what} is a function that gives an array of shape {values.shape}; at these places it is {part.shape}"
            ) from None
    return out


def _interpolated(values: np.ndarray, places: Places, own: Callable[[Sequence[int]], Places], what: str) -> np.ndarray:
    """Linearly between the values of an array; beyond its last ones it stays as there."""
    if values.ndim != len(places.axes) or not values.size:
        raise BeginningError(f"{what} has shape {values.shape}; it is an array over {len(places.axes)} axes")
    lies = own(values.shape)
    for axis, (x, known) in enumerate(zip(places.axes, lies.axes, strict=True)):
        if len(x) == len(known) and np.allclose(x, known, rtol=0, atol=1e-9 * max(x[-1], x[0], 1e-30)):
            continue
        place = np.interp(x, known, np.arange(len(known)))
        low = np.minimum(place.astype(int), max(len(known) - 2, 0))
        part = (place - low).reshape([-1 if a == axis else 1 for a in range(values.ndim)])
        below, above = (np.take(values, np.minimum(low + k, len(known) - 1), axis) for k in (0, 1))
        with np.errstate(invalid="ignore"):  # what is infinite is found below
            values = ((1 - part) * below + part * above).astype(np.float32)
    return values


def _require_finite(values: np.ndarray, places: Places, text: str, what: str) -> None:
    wrong = ~(np.abs(values) <= LARGEST)
    if wrong.any():
        first = np.unravel_index(int(wrong.argmax()), values.shape)
        at = ", ".join(f"{name} = {x[i]:.4g}" for name, x, i in zip(AXES, places.axes, first, strict=False))
        found = f"{text}, which is {values[first]:.4g}" if text else f"{values[first]:.4g}"
        raise BeginningError(f"{what} is {found} at {at} m; it must be a number of at most {LARGEST:g} everywhere")
