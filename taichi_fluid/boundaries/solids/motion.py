"""How a solid moves: where it is at a time, and how fast."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


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
    """Steady motion, swinging to and fro, and steady turning about a pivot that moves along.

    Args:
        pivot: Centre of rotation at time 0, m.
        velocity: m/s.
        swing: Amplitude of a swing in each direction, m.
        period: Of the swing, s.
        angular_velocity: rad/s; one number in 2D, three in 3D.
    """

    pivot: tuple[float, ...]
    velocity: tuple[float, ...] = ()
    swing: tuple[float, ...] = ()
    period: float = 1.0
    angular_velocity: tuple[float, ...] = ()

    def __post_init__(self):
        turn = self.angular_velocity
        numbers = (turn,) if isinstance(turn, (int, float)) else tuple(map(float, turn))
        object.__setattr__(self, "angular_velocity", numbers)
        for name in ("pivot", "velocity", "swing"):
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        dim = len(self.pivot)
        if dim not in (2, 3):
            raise ValueError(f"pivot is {self.pivot}; it has two or three coordinates")
        for name in ("velocity", "swing"):
            if len(getattr(self, name)) not in (0, dim):
                raise ValueError(f"{name} is {getattr(self, name)}; it has {dim} coordinates, as pivot has")
        if len(numbers) not in (0, 1 if dim == 2 else 3):
            raise ValueError(f"angular_velocity is {numbers}; it is one number in 2D, three in 3D")
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
        return Pose(pivot, _rotation(spin3, time)[:dim, :dim], velocity, spin3)

    @property
    def moves(self) -> bool:
        """Whether it ever moves."""
        return any((*self.velocity, *self.swing, *self.angular_velocity))


def _rotation(spin: Sequence[float], time: float) -> np.ndarray:
    """Rodrigues' rotation by |spin| · time around the axis of ``spin``."""
    rate = math.sqrt(sum(w * w for w in spin))
    if rate == 0:
        return np.eye(3)
    x, y, z = (w / rate for w in spin)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(rate * time) * cross + (1 - math.cos(rate * time)) * cross @ cross
