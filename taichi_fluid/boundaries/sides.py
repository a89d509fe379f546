"""Kinds of sides of the box. Needs no Taichi, so that a scene can refuse what no flow can have."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

import numpy as np

from ..carried import require_values
from ..tables import Table


@dataclass(frozen=True)
class Kind:
    """A kind of a side of the box: what every stencil and every solver asks of it.

    Args:
        name: What it is called, also in scenes.
        through: What flows through it: nothing; what is given, its velocity; what is free to, against a pressure of 0
            outside; or what is convected, carried out at the mean speed of all that leaves. So the velocity on the side
            itself is 0, given, that of the inside, or what came from there; and the pressure does not change across the
            side, but beyond a free one, where it is held: a direct solve takes cosines or sines.
        moves: Whether it is a wall that moves in its own plane, with a velocity.
        slip_length: How far beyond the side, in m, the velocity along it would be the side's own (Navier): 0 is a wall
            that the fluid sticks to, infinity one that it slides along.
        wraps: Whether it is one with the other side of its axis.

    Raises:
        ValueError: for another ``through``, and a slip length below 0.
    """

    name: str
    _: KW_ONLY
    through: Literal["nothing", "given", "free", "convected"] = "nothing"
    moves: bool = False
    slip_length: float = 0.0
    wraps: bool = False

    def __post_init__(self):
        if self.through not in ("nothing", "given", "free", "convected"):
            raise ValueError(
                f"through of {self.name} is {self.through!r}; it is 'nothing', 'given', 'free' or 'convected'"
            )
        if not self.slip_length >= 0:
            raise ValueError(f"slip_length of {self.name} is {self.slip_length}; it must be 0 m or more")

    @property
    def passes(self) -> bool:
        """Whether anything flows through it, and brings along what is outside."""
        return self.through != "nothing"

    @property
    def is_open(self) -> bool:
        """Whether the flow goes through it as it likes."""
        return self.through == "free"

    @property
    def is_convected(self) -> bool:
        """Whether the flow is carried out through it; see ``outflow``."""
        return self.through == "convected"

    @property
    def lets_out(self) -> bool:
        """Whether as much leaves through it as has to. Nothing diffuses through it: nobody knows what is beyond."""
        return self.is_open or self.is_convected

    @property
    def is_closed(self) -> bool:
        """Whether it is a wall."""
        return not (self.passes or self.wraps)

    @property
    def has_velocity(self) -> bool:
        """Whether a side of this kind has a velocity of its own."""
        return self.moves or self.through == "given"

    @property
    def pressure(self) -> float:
        """What it adds to the matrix of the pressure; see ``BoundaryCoefficients``."""
        return float(self.is_open)

    def mirror(self, own: bool, dx: float) -> float:
        """The factor m of the ghost m · inside + (1 - m) · velocity, half a cell beyond it: 1 copies, -1 holds.

        Args:
            own: Of the velocity across the side, on the collocated grid; else along it.
            dx: Edge of a cell, m.
        """
        if own:
            return 1.0 if self.is_open else -1.0
        if math.isinf(self.slip_length):
            return 1.0
        return (2.0 * self.slip_length - dx) / (2.0 * self.slip_length + dx)

    def diffusion(self, own: bool, dx: float, on_side: bool) -> float:
        """What it adds to the matrix of the diffusion of a velocity component; see ``BoundaryCoefficients``.

        Args:
            own: Of the velocity across the side.
            dx: Edge of a cell, m.
            on_side: Whether that stands on the side, as on the staggered grid.
        """
        if self.wraps or (own and self.is_open):
            return 0.0
        return 1.0 if own and on_side else 1.0 - self.mirror(own, dx)


class Kinds(Table[Kind]):
    """The kinds of sides by name; ``Boundary.add(Kind(...))`` adds one, for scenes too."""

    FREE_SLIP = Kind("free-slip", slip_length=math.inf)
    NO_SLIP = Kind("no-slip")
    MOVING_WALL = Kind("moving-wall", moves=True)
    INFLOW = Kind("inflow", through="given")
    OPEN = Kind("open", through="free", slip_length=math.inf)
    OUTFLOW = Kind("outflow", through="convected", slip_length=math.inf)
    PERIODIC = Kind("periodic", wraps=True)

    def __call__(self, kind: Kind | str) -> Kind:
        """The kind of a name, or the one that is given.

        Raises:
            ValueError: for no name of a kind.
        """
        if isinstance(kind, Kind):
            return kind
        if kind not in self:
            raise ValueError(f"{kind!r} is no kind of a side; there are {', '.join(self)}")
        return self[kind]


Boundary = Kinds(
    "kind of a side",
    (Kinds.FREE_SLIP, Kinds.NO_SLIP, Kinds.MOVING_WALL, Kinds.INFLOW, Kinds.OPEN, Kinds.OUTFLOW, Kinds.PERIODIC),
)


@dataclass(frozen=True)
class Profile:
    """A number that differs from place to place on a side.

    Args:
        compute: Of the time, s, and the coordinates, m, arrays that fit each other: the number there. Or a ``ti.func`` of
            the time and the coordinates of one place, f32, which returns a number. Or an array of the numbers, with one axis
            for each that the side has: as long as it has cells, and one longer along the faces that a velocity component
            lies on.
        varies: Whether it changes with time; what does not is computed once.
    """

    compute: Callable[..., Any] | np.ndarray
    varies: bool = False

    def at(self, time: float, x: Sequence[np.ndarray], axis: int, what: str) -> np.ndarray:
        """The numbers at places ``x`` on a side across ``axis``, an array that has one axis for each of the box.

        Raises:
            ValueError: for an array of another shape, by the name ``what``.
        """
        wanted = np.broadcast_shapes(*(each.shape for each in x))
        if callable(self.compute):
            compute = self.compute
            if getattr(compute, "_is_taichi_function", False):
                from .taichi_profiles import evaluated  # here a scene needs no Taichi

                compute = functools.partial(evaluated, compute)
            values, form = np.asarray(compute(time, *x), np.float64), wanted
            if values.ndim in (0, len(wanted)) and all(n in (1, m) for n, m in zip(values.shape, wanted, strict=False)):
                return np.broadcast_to(values, wanted)
        else:
            values, form = np.asarray(self.compute, np.float64), wanted[:axis] + wanted[axis + 1 :]
        if values.shape != form:
            raise ValueError(f"{what} is an array of shape {values.shape}; on this side it must be {form}")
        return values.reshape(wanted)


@dataclass(frozen=True)
class Side:
    """One side of the box.

    Free-slip, no-slip and moving walls are closed. Through an inflow the fluid enters (or leaves) with a given velocity.
    An open side has pressure 0 outside: the fluid leaves as it likes, and what comes back in is ambient: no smoke, no
    heat. An outflow is one through which all leaves that enters elsewhere: what stands before it is carried out through
    it, which disturbs vortices that leave less; what comes back in is ambient too. Two periodic sides are one.
    ``Boundary.add`` makes other kinds.

    Args:
        kind: Which of these.
        velocity: Of a moving wall or an inflow, m/s; a wall must not move along its own axis. Empty means 0.
        profiles: Of such a velocity, by component, what takes the place of one number; its mean is known once there is a grid.
        values: What is on the side, of quantities by name, one number or one for each component: of an inflow what the
            fluid carries in, of a wall what it holds at its own place, such as the temperature of a heated one. In place
            of a number there may be a ``Profile``, an array or a function, as it has them.
        fluxes: Of a wall, what it gives the fluid each second through each m² (2D: m), in the quantity's unit times m/s;
            below 0 it takes. What has neither value nor flux there is insulated. A number or a ``Profile``, as of values.
        parts: Where it is otherwise, each in the place of what stands before it: rectangles of another kind.
    """

    kind: Kind
    velocity: tuple[float, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    fluxes: Mapping[str, Any] = field(default_factory=dict)
    profiles: Mapping[int, Profile] = field(default_factory=dict)
    parts: tuple["Part", ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "kind", Boundary(self.kind))
        require_values("a side", self.values)
        require_values("what a side gives", self.fluxes)
        profiles, velocity = dict(self.profiles), list(self.velocity)
        for k, each in enumerate(velocity):
            if _differs(each):
                profiles[k], velocity[k] = _profile(each), 0.0
        object.__setattr__(self, "velocity", tuple(map(float, velocity)))
        object.__setattr__(self, "profiles", profiles)
        object.__setattr__(self, "parts", tuple(self.parts))

    @property
    def patches(self) -> tuple["Side", ...]:
        """What stands on it: itself, and each of its parts."""
        return (self, *(part.side for part in self.parts))

    @property
    def passes(self) -> bool:
        """Whether anything flows through any of it."""
        return any(patch.kind.passes for patch in self.patches)

    @property
    def is_open(self) -> bool:
        """Whether any of it is open."""
        return any(patch.kind.is_open for patch in self.patches)

    @property
    def is_all_open(self) -> bool:
        """Whether all of it is open."""
        return all(patch.kind.is_open for patch in self.patches)

    @property
    def is_convected(self) -> bool:
        """Whether any of it is an outflow."""
        return any(patch.kind.is_convected for patch in self.patches)

    @property
    def lets_out(self) -> bool:
        """Whether as much leaves through any of it as has to."""
        return any(patch.kind.lets_out for patch in self.patches)

    @property
    def varies(self) -> bool:
        """Whether a velocity of any of it changes with time."""
        return any(profile.varies for patch in self.patches for profile in patch.profiles.values())

    def flow_varies(self, axis: int) -> bool:
        """Whether what flows in through it, a side across ``axis`` but for its parts, changes with time."""
        return self.kind.through == "given" and axis in self.profiles and self.profiles[axis].varies

    def holds(self, name: str | None) -> bool:
        """Whether this is a wall that holds a quantity at a value."""
        return self.kind.is_closed and name in self.values

    def value(self, name: str, k: int, outside: Any = 0.0) -> float | Profile:
        """Component ``k`` of what is on the side of a quantity: its own, else what is ``outside``."""
        return _component(self.values.get(name, outside), k)

    def flux(self, name: str | None, k: int) -> float | Profile:
        """Component ``k`` of what it gives of a quantity; 0 where it says nothing."""
        return 0.0 if name is None else _component(self.fluxes.get(name, 0.0), k)


@dataclass(frozen=True)
class Part:
    """A rectangle of a side, in 2D a stretch of it, on which something else stands.

    What flows in through it, and what a wall gives, does so through as much of each cell as lies in it. For all else a cell of
    the side belongs to it if its centre lies in it, and a velocity that stands between two cells, if its face does.

    Args:
        lower: Its lower corner, m: coordinates along the axes that the side has, in their order.
        upper: Its upper corner, m.
        side: What stands there; it has no parts.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    side: Side

    def covers(self, x: Sequence[np.ndarray], axis: int, dx: float) -> np.ndarray:
        """Which of some places on a side across ``axis`` lie in it, of cells with the edge ``dx``, m."""
        inside: Any = True
        along = [each for a, each in enumerate(x) if a != axis]
        for low, high, each in zip(self.lower, self.upper, along, strict=True):
            # As if all of it lay a millionth of a cell lower: rounding decides nothing.
            inside = inside & (each >= low - 1e-6 * dx) & (each < high - 1e-6 * dx)
        return np.broadcast_to(inside, np.broadcast_shapes(*(each.shape for each in x)))

    def share(self, x: Sequence[np.ndarray], axis: int, dx: float) -> np.ndarray:
        """How much of these places it has, of faces on its edges a half: else it would begin and end half a cell lower."""
        lower = [each - 2e-6 * dx * (np.abs(each / dx - np.round(each / dx)) < 1e-6) for each in x]
        return 0.5 * (self.covers(x, axis, dx) + 1.0 * self.covers(lower, axis, dx))

    def _reaches(self, x: Sequence[np.ndarray], axis: int, dx: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """Along each axis of the box, of the cells with these centres: how much of each it has, 0 to 1, and where the middle of that is."""
        found, ends = [], iter(zip(self.lower, self.upper, strict=True))
        for a, each in enumerate(x):
            low, high = (-np.inf, np.inf) if a == axis else next(ends)
            lower, upper = np.maximum(each - 0.5 * dx, low), np.minimum(each + 0.5 * dx, high)
            part = np.clip((upper - lower) / dx, 0.0, 1.0)
            part = np.where(np.abs(part - np.round(part)) < 1e-6, np.round(part), part)  # rounding decides nothing
            found.append((part, np.where((part > 0) & (part < 1), 0.5 * (lower + upper), each)))
        return found

    def area(self, x: Sequence[np.ndarray], axis: int, dx: float) -> np.ndarray:
        """How much it has of the cells that have these places as their centres, 0 to 1."""
        shape = np.broadcast_shapes(*(each.shape for each in x))
        return np.broadcast_to(math.prod(part for part, _ in self._reaches(x, axis, dx)), shape)

    def middles(self, x: Sequence[np.ndarray], axis: int, dx: float) -> list[np.ndarray]:
        """The middles of what it has of such cells; their own centres where that is all or nothing."""
        return [middle for _, middle in self._reaches(x, axis, dx)]


def _differs(given: Any) -> bool:
    return isinstance(given, Profile) or callable(given) or (isinstance(given, np.ndarray) and given.ndim > 0)


def _profile(given: Any) -> Profile:
    return given if isinstance(given, Profile) else Profile(given, varies=callable(given))


def _component(given: Any, k: int) -> float | Profile:
    one = given[k] if isinstance(given, Sequence) else given
    return _profile(one) if _differs(one) else float(one)


Boundaries = Sequence[Sequence[Kind | Side | str]]
"""``boundaries[axis][side]``, side 0 lower and 1 upper."""

Outside = Mapping[str, Sequence[float]]
"""Values beyond open sides, of each quantity by its name: one number for each component."""


def as_side(side: Side | Kind | str) -> Side:
    """A ``Side`` of what may be given in its place."""
    return side if isinstance(side, Side) else Side(Boundary(side))


def velocity_of(side: Side, component: int) -> float | Profile:
    """What a side has of a velocity component of its own; 0 if it has none."""
    if component in side.profiles:
        return side.profiles[component]
    return side.velocity[component] if side.velocity else 0.0
