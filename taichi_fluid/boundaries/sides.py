"""Kinds of sides of the box. Needs no Taichi, so that a scene can refuse what no flow can have."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Boundary(Enum):
    """Kind of a side of the box."""

    FREE_SLIP = "free-slip"
    NO_SLIP = "no-slip"
    MOVING_WALL = "moving-wall"
    INFLOW = "inflow"
    OPEN = "open"
    PERIODIC = "periodic"


@dataclass(frozen=True)
class Side:
    """One side of the box.

    Free-slip, no-slip and moving walls are closed. Through an inflow the fluid enters (or leaves) with a given velocity.
    An open side has pressure 0 outside: the fluid leaves as it likes, and what comes back in is ambient: no smoke, no
    heat. Two periodic sides are one.

    Args:
        kind: Which of these.
        velocity: Of a moving wall or an inflow, m/s; a wall must not move along its own axis. Empty means 0.
        values: Of an inflow, what the fluid carries in: by name one number, or one for each component.
    """

    kind: Boundary
    velocity: tuple[float, ...] = ()
    values: Mapping[str, float | Sequence[float]] = field(default_factory=dict)

    def __post_init__(self):
        object.__setattr__(self, "kind", Boundary(self.kind))
        object.__setattr__(self, "velocity", tuple(map(float, self.velocity)))


Boundaries = Sequence[Sequence[Boundary | Side | str]]
"""``boundaries[axis][side]``, side 0 lower and 1 upper."""

CLOSED = (Boundary.FREE_SLIP, Boundary.NO_SLIP, Boundary.MOVING_WALL)
"""Kinds that nothing flows through."""


def as_side(side: Side | Boundary | str) -> Side:
    """A ``Side`` of what may be given in its place."""
    return side if isinstance(side, Side) else Side(Boundary(side))


def check_sides(sides: Sequence[Sequence[Side]], shape: Sequence[int]) -> None:
    """Refuse a set of sides that no flow can have; the message names them.

    Args:
        sides: ``sides[axis][side]``.
        shape: Cells along each axis.

    Raises:
        ValueError: for a lone periodic side, a wall that moves out of its plane, or a box into which more flows than out.
    """
    dim = len(shape)
    net, total = 0.0, 0.0
    for axis, pair in enumerate(sides):
        kinds = [side.kind for side in pair]
        if kinds.count(Boundary.PERIODIC) == 1:
            raise ValueError(f"boundaries[{axis}] has one periodic side; an axis is periodic on both sides or on none")
        for end, side in enumerate(pair):
            where = f"boundaries[{axis}][{end}]"
            if side.velocity and len(side.velocity) != dim:
                raise ValueError(f"{where}.velocity has {len(side.velocity)} coordinates; the box has {dim} axes")
            if not side.velocity and side.kind in (Boundary.MOVING_WALL, Boundary.INFLOW):
                raise ValueError(f"{where} is {side.kind.value}, which needs a velocity: {dim} numbers, m/s")
            if side.velocity and side.kind not in (Boundary.MOVING_WALL, Boundary.INFLOW):
                raise ValueError(f"{where} is {side.kind.value}, which has no velocity of its own")
            if side.values and side.kind is not Boundary.INFLOW:
                raise ValueError(f"{where} is {side.kind.value}; only an inflow carries anything in")
            speed = side.velocity[axis] if side.velocity else 0.0
            if side.kind is Boundary.MOVING_WALL and speed:
                raise ValueError(f"{where}.velocity is {list(side.velocity)}; a wall moves in its own plane only")
            if side.kind is Boundary.INFLOW:
                area = math.prod(n for a, n in enumerate(shape) if a != axis)
                net += area * (speed if end == 0 else -speed)
                total += area * abs(speed)
    if abs(net) > 1e-6 * total and not any(side.kind is Boundary.OPEN for pair in sides for side in pair):
        inflows = [
            f"boundaries[{axis}][{end}]"
            for axis, pair in enumerate(sides)
            for end, side in enumerate(pair)
            if side.kind is Boundary.INFLOW
        ]
        verb = "more flows in than out" if net > 0 else "more flows out than in"
        raise ValueError(
            f"{verb} through {' and '.join(inflows)}, and no side is open: make one open, or balance the inflows"
        )
