"""How a solid moves: where it is at a time, and how fast."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

INSTANT = 1e-6
"""Seconds before and after a time by which it is found how fast what a function says changes then."""

Course = float | Sequence[float] | Callable[[float], float | Sequence[float]]
"""Numbers, or one, or a function of the time, s, that gives them."""


class Pose(NamedTuple):
    """Where a solid is, and how it moves there.

    Attributes:
        pivot: Where its centre of rotation is now, m.
        rotation: Orientation, a matrix that turns the solid from where it was at time 0.
        velocity: Of the pivot, m/s.
        angular_velocity: Always three numbers, rad/s.
    """

    pivot: tuple[float, ...]
    rotation: np.ndarray
    velocity: tuple[float, ...]
    angular_velocity: tuple[float, float, float]

    def require(self, dim: int, name: str) -> None:
        """Raise ValueError unless all of it is there for ``dim`` axes and finite in f32; ``name`` says whose it is."""
        for field, shape in zip(self._fields, ((dim,), (dim, dim), (dim,), (3,)), strict=True):
            with np.errstate(over="ignore"):
                values = np.asarray(getattr(self, field), dtype=np.float32)
            if values.shape != shape or not np.isfinite(values).all():
                count = " x ".join(map(str, shape))
                raise ValueError(f"the {field} of {name} is {values.tolist()}; it must be {count} finite numbers")


@dataclass(frozen=True)
class Motion:
    """Steady motion, swinging to and fro, steady turning about a pivot that moves along, and any motion on top of these.

    Args:
        pivot: Centre of rotation at time 0, m.
        velocity: m/s.
        swing: Amplitude of a swing in each direction, m.
        period: Of the swing, s.
        angular_velocity: rad/s; one number in 2D, three in 3D.
        path: How far it is besides from where it would be, along each axis, m; numbers, or a function of the time that gives them.
        turn: By how much it is turned besides, rad: one number in 2D, in 3D three, a vector along the axis. How fast ``path`` and
            ``turn`` change is found from what they are ``INSTANT`` before and after.
    """

    pivot: tuple[float, ...]
    velocity: tuple[float, ...] = ()
    swing: tuple[float, ...] = ()
    period: float = 1.0
    angular_velocity: tuple[float, ...] = ()
    path: Course = ()
    turn: Course = ()

    def __post_init__(self):
        turn = self.angular_velocity
        numbers = (turn,) if isinstance(turn, (int, float)) else tuple(map(float, turn))
        object.__setattr__(self, "angular_velocity", numbers)
        for name in ("pivot", "velocity", "swing"):
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        dim = len(self.pivot)
        if dim not in (2, 3):
            raise ValueError(f"pivot is {self.pivot}; it has two or three coordinates")
        at_first = {name: _at(getattr(self, name), 0.0) for name in ("velocity", "swing", "path")}
        for name, values in at_first.items():
            if len(values) not in (0, dim):
                raise ValueError(f"{name} is {values}; it has {dim} coordinates, as pivot has")
        for name, values in {"angular_velocity": numbers, "turn": _at(self.turn, 0.0)}.items():
            if len(values) not in (0, 1 if dim == 2 else 3):
                raise ValueError(f"{name} is {values}; it is one number in 2D, three in 3D")
        if not self.period > 0:
            raise ValueError(f"period is {self.period}; it must be a positive number of seconds")

    def at(self, time: float) -> Pose:
        """The pose at ``time``, s."""
        dim, omega = len(self.pivot), 2.0 * math.pi / self.period
        steady, swing = self.velocity or (0.0,) * dim, self.swing or (0.0,) * dim
        sine, cosine = math.sin(omega * time), math.cos(omega * time)
        pivot = tuple(p + v * time + a * sine for p, v, a in zip(self.pivot, steady, swing, strict=True))
        velocity = tuple(v + a * omega * cosine for v, a in zip(steady, swing, strict=True))
        spin = tuple(self.angular_velocity) or (0.0,) * (3 if dim == 3 else 1)
        spin3 = spin if dim == 3 else (0.0, 0.0, spin[0])
        rotation = _rotation(spin3, time)
        if gone := _at(self.path, time):
            pivot = tuple(p + d for p, d in zip(pivot, gone, strict=True))
        if callable(self.path):
            (before, after), seconds = _around(self.path, time)
            velocity = tuple(v + (b - a) / seconds for v, a, b in zip(velocity, before, after, strict=True))
        if turn := _at(self.turn, time):
            turned = _turned_by(turn)
            rotation, spin3 = turned @ rotation, tuple((turned @ spin3).tolist())
        if callable(self.turn):
            (before, after), seconds = _around(self.turn, time)
            change = _turned_by(after) @ _turned_by(before).T / (2.0 * seconds)
            rate = (change[2, 1] - change[1, 2], change[0, 2] - change[2, 0], change[1, 0] - change[0, 1])
            spin3 = tuple(float(w + r) for w, r in zip(spin3, rate, strict=True))
        return Pose(pivot, rotation[:dim, :dim], velocity, spin3)

    @property
    def moves(self) -> bool:
        """Whether it ever moves."""
        return any((*self.velocity, *self.swing, *self.angular_velocity)) or callable(self.path) or callable(self.turn)


def _at(course: Course, time: float) -> tuple[float, ...]:
    """The numbers of a course at a time, s."""
    return tuple(np.ravel(course(time) if callable(course) else course).astype(float).tolist())


def _around(course: Course, time: float) -> tuple[list[tuple[float, ...]], float]:
    """The numbers just before and after a time, and the seconds between; there is no time before 0."""
    first, last = max(time - INSTANT, 0.0), time + INSTANT
    return [_at(course, first), _at(course, last)], last - first


def _turned_by(turn: Sequence[float]) -> np.ndarray:
    """The rotation by an angle, in 2D, or by a vector along its axis, rad."""
    return _rotation(turn if len(turn) == 3 else (0.0, 0.0, turn[0]), 1.0)


def _rotation(spin: Sequence[float], time: float) -> np.ndarray:
    """Rodrigues' rotation by |spin| · time around the axis of ``spin``."""
    rate = math.sqrt(sum(w * w for w in spin))
    if rate == 0:
        return np.eye(3)
    x, y, z = (w / rate for w in spin)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(rate * time) * cross + (1 - math.cos(rate * time)) * cross @ cross
