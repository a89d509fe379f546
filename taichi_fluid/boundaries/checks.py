"""What sides no flow can have. Needs no Taichi, so that a scene can refuse them."""

import functools
from collections.abc import Sequence

import numpy as np

from ..errors import NotFinite
from .patches import AREAS, on_side, places_on_side
from .sides import Boundary, Part, Side, velocity_of

LOOKED_AT = (0.0, 0.017, 0.13, 0.29, 0.53, 0.83, 1.0)
"""Instants, s, at which as much has to leave a box without an open side as enters it, where that changes."""


def check_sides(sides: Sequence[Sequence[Side]], shape: Sequence[int], dx: float = 1.0, *, fills: bool = False) -> None:
    """Refuse a set of sides that no flow can have; the message names them.

    Args:
        sides: ``sides[axis][side]``.
        shape: Cells along each axis.
        dx: Edge of a cell, m.
        fills: Whether more may flow into a closed box than out of it, as liquid into a tank with air in it.

    Raises:
        ValueError: for a lone periodic side, a wall that moves out of its plane, a part that is none, or a closed box into
            which more flows than out.
    """
    dim = len(shape)
    for axis, pair in enumerate(sides):
        if sum(side.kind.wraps for side in pair) == 1:
            raise ValueError(f"boundaries[{axis}] has one periodic side; an axis is periodic on both sides or on none")
        for end, side in enumerate(pair):
            where = f"boundaries[{axis}][{end}]"
            _check_side(side, axis, dim, where)
            x = places_on_side(shape, [n * dx for n in shape], axis, end, -1)
            for i, part in enumerate(side.parts):
                _check_part(side, part, [n * dx for a, n in enumerate(shape) if a != axis], f"{where}.parts[{i}]")
                _check_side(part.side, axis, dim, f"{where}.parts[{i}]")
                if not part.covers(x, axis, dx).any():
                    raise ValueError(f"{where}.parts[{i}] has the centre of no cell in it; cells are {dx:g} m wide")
    if not fills:
        check_balance(sides, shape, dx)


def check_balance(sides: Sequence[Sequence[Side]], shape: Sequence[int], dx: float = 1.0) -> None:
    """Raise ValueError if more flows into a closed box than out of it, or less; it names the sides. Arguments as of ``check_sides``."""
    closed = not any(side.lets_out for pair in sides for side in pair)
    varies = any(patch.flow_varies(axis) for axis, pair in enumerate(sides) for side in pair for patch in side.patches)
    for time in LOOKED_AT if closed and varies else LOOKED_AT[:1]:
        inflows = _inflows(sides, shape, dx, time)
        net, total = (
            sum(measure(flow) for _, flow in inflows) for measure in (np.sum, lambda flow: np.abs(flow).sum())
        )
        if closed and abs(net) > 1e-6 * total:
            verb = "more flows in than out" if net > 0 else "more flows out than in"
            when = f"at t = {time:g} s " if varies else ""
            raise ValueError(
                f"{when}{verb} through {' and '.join(where for where, _ in inflows)}, and no side is open: make one open, "
                "or balance the inflows"
            )


def check_enters(sides: Sequence[Sequence[Side]], shape: Sequence[int], dx: float = 1.0) -> None:
    """Raise ValueError if anything flows out through an inflow at time 0, which a liquid does not. Arguments as of ``check_sides``."""
    try:
        inflows = _inflows(sides, shape, dx, 0.0)
    except NotFinite as error:
        raise ValueError(str(error)) from None
    for where, flow in inflows:
        if flow.min() < 0:
            raise ValueError(
                f"{where}.velocity leads out of the box at {-flow.min():.4g} m/s; a liquid flows in there, and leaves through open sides"
            )


def _inflows(
    sides: Sequence[Sequence[Side]], shape: Sequence[int], dx: float, time: float
) -> list[tuple[str, np.ndarray]]:
    """Of each side with an inflow its name, and how fast it flows into the box at each place, m/s."""
    found = []
    for axis, pair in enumerate(sides):
        for end, side in enumerate(pair):
            if any(patch.kind.through == "given" for patch in side.patches):
                where, x = f"boundaries[{axis}][{end}]", places_on_side(shape, [n * dx for n in shape], axis, end, -1)
                across = functools.partial(velocity_of, component=axis)
                speed = on_side(side, across, x, axis, dx, time, f"{where}.velocity", which=AREAS)
                found.append((where, speed if end == 0 else -speed))
    return found


def _check_side(side: Side, axis: int, dim: int, where: str) -> None:
    """Refuse what no side of a kind can have."""
    kind, moving = side.kind, " and ".join(name for name in Boundary if Boundary[name].has_velocity)
    if side.velocity and len(side.velocity) != dim:
        raise ValueError(f"{where}.velocity has {len(side.velocity)} coordinates; the box has {dim} axes")
    if not side.velocity and kind.has_velocity:
        raise ValueError(f"{where} is {kind.name}, which needs a velocity: {dim} numbers, m/s")
    if side.velocity and not kind.has_velocity:
        raise ValueError(
            f"{where} is {kind.name} and has a velocity, {list(side.velocity)} m/s; only {moving} have one"
        )
    if side.values and not (kind.through == "given" or kind.is_closed):
        raise ValueError(f"{where} is {kind.name}; only an inflow carries anything in, only a wall holds a value")
    if side.profiles and not kind.has_velocity:
        raise ValueError(f"{where} is {kind.name} and has a velocity that changes; only {moving} have one")
    if kind.is_closed and axis in side.profiles:
        raise ValueError(
            f"{where}.velocity changes along axis {axis}; a wall moves in its own plane only: make that 0.0"
        )
    if side.fluxes and not kind.is_closed:
        raise ValueError(f"{where} is {kind.name}; only a wall has a flux of anything")
    for name in side.values:
        if name in side.fluxes:
            raise ValueError(f"{where} has a value and a flux of {name}; a wall has one of them")
    if kind.is_closed and side.velocity and side.velocity[axis]:
        raise ValueError(f"{where}.velocity is {list(side.velocity)}; a wall moves in its own plane only")


def _check_part(side: Side, part: Part, edges: Sequence[float], where: str) -> None:
    """Refuse a part that is no rectangle of a side with these edges, m."""
    if side.kind.wraps or part.side.kind.wraps:
        raise ValueError(f"{where} belongs to a side, or is one, that is periodic; that is all of one kind")
    if part.side.parts:
        raise ValueError(f"{where} has parts of its own; only a side has")
    for name in ("lower", "upper"):
        corner = getattr(part, name)
        if len(corner) != len(edges):
            raise ValueError(f"{where}.{name} has {len(corner)} coordinates; the side has {len(edges)} axes")
    if not all(low < high for low, high in zip(part.lower, part.upper, strict=True)):
        raise ValueError(f"{where} reaches from {list(part.lower)} to {list(part.upper)} m; upper lies above lower")
