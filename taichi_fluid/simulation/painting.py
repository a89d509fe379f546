"""Strokes and pictures that are painted into a flow between two steps."""

from collections.abc import Sequence

import numpy as np

from ..carried import CARRIED
from ..physics.sources import Emitter, dab_over_stroke
from ..scene.pictures import PictureError, cell_amounts, checked_pixels, paintable, picture_bounds, require_touch
from .engine import Engine

_LARGEST = 1e6
"""Of the numbers of a stroke: those of a scene reach no further."""


def paint(
    engine: Engine,
    a: Sequence[float],
    b: Sequence[float],
    radius: float,
    velocity: Sequence[float] | None = None,
    *,
    add: bool = False,
    pour: bool = False,
    **amounts: float | Sequence[float] | None,
) -> None:
    """Paint a stroke into the flow; between two steps, not in the middle of one.

    Carried quantities are raised to what is given, in part where the stroke covers a cell in part, so that a
    stroke painted twice is the same stroke. A quantity that is not carried, and what lies outside the box or in a
    solid, is left out.

    With ``add`` what is given is added, so that strokes pile up. What a dab would bring in a longer stroke spreads
    over all that it covers: a drag leaves the same sum in however many strokes it is cut, if their amounts are in
    proportion to their time.

    Args:
        engine: The flow.
        a: Where the stroke begins, m.
        b: Where it ends, m; the same place makes a dab.
        radius: Half its width, m.
        velocity: What the fluid under it is driven to, or with ``add`` made faster by, m/s.
        add: Whether to add.
        pour: Whether to leave liquid of that velocity, or at rest, where there is none.
        amounts: What to paint, by the name of what is carried: a number, or one for each component.

    Raises:
        ValueError: for numbers that are none, too large or too many, naming them; for a gas that is to be poured.
    """
    dim, carried = engine.grid.dim, engine.state.carried
    if not 0 < radius <= _LARGEST:
        raise ValueError(f"radius is {radius}; it must be a positive number of metres, {_LARGEST:g} at most")
    if pour and engine.liquid is None:
        raise ValueError("pour is True; there is no liquid in this scene")
    a, b = _numbers("a", a, dim), _numbers("b", b, dim)
    emitter = Emitter(engine.grid, "capsule", a, b, radius, periodic=engine.walls.periodic)
    share = dab_over_stroke(a, b, radius)
    target = None if velocity is None else _numbers("velocity", velocity, dim)
    given = {name: value for name, value in amounts.items() if value is not None}
    paints = {name: _numbers(name, value, _components(engine, name)) for name, value in given.items()}
    for name in [name for name in paints if name in carried]:
        array = carried[name].current
        for offset, amount in zip(carried[name].begins(), paints[name], strict=True):
            if add:
                emitter.add(array, share * amount, 1.0, offset=offset)
            else:
                emitter.paint(array, amount, offset=offset)
    engine.fill_scalars()
    if target is not None:
        if engine.liquid is not None:
            engine.liquid.remember(engine.state.velocity.current)
        if add:
            emitter.push(engine.state.velocity.current, [share * x for x in target])
        else:
            emitter.drive(engine.state.velocity.current, target)
        engine.fill_velocity(keep=True)
        if engine.liquid is not None:
            engine.liquid.follow(engine.state.velocity.current)
    if pour and engine.liquid is not None:
        engine.liquid.add("capsule", a, b, radius, target)
        engine.liquid.find_surface()
        engine.liquid.begin(engine.state.velocity.current)


def _components(engine: Engine, name: str) -> int:
    """Of a quantity that can be painted here."""
    carried = engine.state.carried
    if name not in carried and name not in CARRIED:
        known = ", ".join(dict.fromkeys([*CARRIED, *carried]))
        raise ValueError(f"{name} is nothing that a flow carries; it must be one of {known}")
    return carried[name].components if name in carried else CARRIED[name].components


def _numbers(name: str, values: float | Sequence[float], count: int) -> tuple[float, ...]:
    numbers = tuple(map(float, [values] if np.ndim(values) == 0 else values))
    if len(numbers) != count or not all(abs(x) <= _LARGEST for x in numbers):
        each = "one number" if count == 1 else f"{count} numbers"
        raise ValueError(f"{name} is {list(numbers)}; it must be {each} of at most {_LARGEST:g} in size")
    return numbers


def paint_picture(
    engine: Engine,
    pixels: np.ndarray,
    center: Sequence[float],
    width: float,
    quantity: str = "dye",
    colour: Sequence[float] = (1.0, 1.0, 1.0),
    amount: float = 1.0,
) -> None:
    """Paint a picture into a 2D flow; between two steps, not in the middle of one.

    The quantity is raised to what the picture brings into each cell, so that a picture painted twice is the same
    picture, and pictures that overlap mix. It is carried from now on if it was not, until ``reset``. What lies
    outside the box or in a solid is left out. See ``pictures`` for what pixels mean, for files and for text.

    Args:
        engine: The flow.
        pixels: ``(h, w)``, coverage; ``(h, w, 3)``, red, green and blue; or ``(h, w, 4)``, with opacity. Row 0 on
            top; bytes, or floats from 0 to 1.
        center: Where its middle comes to lie, m.
        width: Its width, m; its height follows from its shape.
        quantity: ``"dye"``, ``"smoke"``, ``"temperature"`` or another that is painted.
        colour: Red, green and blue from 0 to 1: the dye's where ``pixels`` are coverage, else a tint.
        amount: What lies where the picture is full: dye or smoke, or K above ambient.

    Raises:
        ValueError: for a box of three axes, pixels that are no picture, a quantity that no picture is painted in,
            numbers that are none or too large, or a picture that lies outside the box, naming them.
    """
    if engine.grid.dim != 2:
        raise PictureError(f"the box has {engine.grid.dim} axes; a picture is painted into one of 2 axes")
    if quantity not in paintable():
        raise PictureError(f"quantity is {quantity!r}; it must be one of {', '.join(paintable())}")
    pixels, center = checked_pixels(pixels), _numbers("center", center, 2)
    if not 0 < width <= _LARGEST:
        raise PictureError(f"width is {width}; it must be a positive number of metres, {_LARGEST:g} at most")
    if not 0 <= amount <= _LARGEST:
        raise PictureError(f"amount is {amount}; it must be from 0 to {_LARGEST:g}")
    colour = _numbers("colour", colour, 3)
    if not all(0 <= channel <= 1 for channel in colour):
        raise PictureError(f"colour is {list(colour)}; each of its numbers must be from 0 to 1")
    require_touch(*picture_bounds(pixels.shape, center, width), engine.scene.domain.size, "the picture")
    engine.state.add([CARRIED[quantity]])
    cells, amounts = cell_amounts(pixels, center, width, quantity, colour, engine.grid.shape, engine.grid.dx)
    array = engine.state.carried[quantity].current
    values = engine.grid.to_numpy(array).reshape(-1, *engine.grid.shape)
    painted = values[(slice(None), *cells)]
    np.maximum(painted, amount * amounts, out=painted, casting="same_kind")
    engine.grid.from_numpy(array, values if len(values) > 1 else values[0])
    engine.fill_scalars()
