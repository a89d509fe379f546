"""What makes the step of a liquid one of second order: half of what changes its velocity does so before the liquid moves, half after.

Kick, drift, kick (velocity Verlet). Forces, friction and pressure change the velocity where the liquid is at the end of a step. In the
next one particles set out with as much of that once more, and go straight on with it: a parabola. What turns by an angle in a step is
turned by half of it before it moves, and keeps its speed; else it would lose half of the square of that angle of it. All of it goes
with the particles, so that a liquid in a stream does what it does at rest.

What is left of a pressure that did not last, as where a drop strikes a floor, is thrown back by as much as it has stopped, and that is
taken off again by the next pressure. What goes back and forth so from step to step is eased (``EASED``), and a little less comes before
than after (``BEFORE``): it dies out within some steps.
(Andersen 1983, with one multiplier for both halves; Narain, Zehnder, Thomaszewski 2019 reflect a gas.)
"""

import math
from collections.abc import Container, Sequence
from typing import Any

from .._ti import ti
from ..boundaries.solids import Solids
from ..grid import Grid
from ..kernels import Array, Operator, cells_of, components, copy_values, fast_min, kernel_family, write_strip
from ..physics.advection import add_gain

BEFORE = 0.495
"""The part of a step for which what changes a velocity acts before the liquid moves."""
MIDDLE = BEFORE + 0.5
"""The part of a step after which forces are those that act after it has moved: with those before, as of that, they are those of the middle."""
EASED = 0.15
"""The part that is left out of what a kick changes by back and forth, from one step to the next. What changes one way stays."""
HIDDEN = -1e30
"""The pressure before, Pa, of what was all solid."""
GROWTH = 1.25
"""For how many times as long a kick acts at the most as what it goes by did: that may be a blow, which a longer step does not make harder."""


@ti.func
def _find_at(c, I, s, velocity: Array, told: Array, forced: Array, firm: Array, fallen, n):
    """The velocity with which a face would set out into a step as long as the last, in place of what forces have made of it.

    In films, of whose velocity and pressure particles say little, no more is thrown back than forces do there, or gravity somewhere:
    what slides down an incline is pushed along it by what holds it up.
    """
    for axis in ti.static(range(n.n)):
        face = c + axis * cells_of(s, n)
        change, most = velocity[face] - told[face], ti.max(ti.abs(forced[face] - told[face]), fallen)
        part, little = ti.min(firm[c], firm[c - s[axis]]), ti.min(ti.max(change, -most), most)
        forced[face] = velocity[face] + part * change + (ti.f32(1.0) - part) * little


@ti.func
def _settled(c, I, s, kick: Array, velocity: Array, before: Array, change: Array, n, rates):
    """The kick, of what is set out with in place of a velocity, and how it has changed, per second, along each axis.

    Of what swings between it and those before a part is left out.
    """
    found = ti.Vector([ti.f32(0.0)] * (2 * s.n))
    for axis in ti.static(range(s.n)):
        face = c + axis * cells_of(s, n)
        now = rates[0] * (kick[face] - velocity[face])
        last = ti.select(rates[1] > 0, rates[1] * before[face], now)
        changes, changed = now - last, change[face]
        swing = ti.select(changes * changed < 0, fast_min(ti.abs(changes), ti.abs(changed)), ti.f32(0.0))
        now -= ti.f32(0.5 * EASED) * ti.select(changes > 0, swing, -swing)
        found[axis], found[s.n + axis] = now / rates[0], now - last
    return found


@ti.func
def _mean_at(c, I, s, pressure: Array, before: Array, fluid: Array, n, part, given: ti.template()):
    """The mean of a pressure and the one before, where there is any still, which becomes what there is now.

    What was hidden in a solid had none: where it lies deep, half of its weight would be lacking.
    """
    now = pressure[c]
    if now != 0 and before[c] != ti.f32(HIDDEN):
        pressure[c] = now + part * (before[c] - now)
    before[c] = now
    if ti.static(given):
        if now == 0 and (I >= 1).all() and (n >= I).all():
            if fluid[c] == 0:
                before[c] = ti.f32(HIDDEN)


@kernel_family
def kick_kernels(loops, given):
    IntVector, width = loops.IntVector, loops.width

    @ti.kernel
    def find(velocity: Array, told: Array, forced: Array, firm: Array, fallen: ti.f32, n: IntVector):
        loops.each_cell_in(n * 0 + 1, n + 2, n, _find_at, (velocity, told, forced, firm, fallen, n))

    @ti.kernel
    def settle(
        kick: Array, velocity: Array, before: Array, change: Array, n: IntVector, rate: ti.f32, rate_before: ti.f32
    ):
        rates = ti.Vector([rate, rate_before])
        settled = Operator(_settled, (kick, velocity, before, change, n, rates))
        loops.each_strip_in(
            n * 0,
            n + 2,
            n,
            width,
            write_strip,
            (n, components((kick, loops.dim), (change, loops.dim)), width, settled),
        )

    @ti.kernel
    def take_mean(pressure: Array, before: Array, fluid: Array, n: IntVector, part: ti.f32):
        loops.each_cell_in(n * 0, n + 2, n, _mean_at, (pressure, before, fluid, n, part, given))

    return find, settle, take_mean


class Kick:
    """By how much the velocity of a liquid on one grid is to change before the liquid moves.

    Args:
        grid: A staggered grid.
        solids: What stands in it.

    Attributes:
        wanted: Whether it is to, from the next ``begin`` on, and from ``settle`` on it does.
        velocity: By how much, m/s, on the faces; between ``force`` and ``settle`` a velocity. None while there is none.
        change: How much faster it changes the velocity than the kick before it did, m/s².
        pressure: The last one, Pa, as ``take_mean`` was given it.
        friction: How fast friction changes the velocity, m/s², as far as the kick has it.
        seconds: For how many seconds ``velocity`` is; 0 before the first.
        keeps: What part of that with which they set out particles keep of it, in this step.
        acts: For how many seconds forces, friction and pressure act after the liquid has moved, in this step.
        middle: When they do, in seconds after the step has begun.
    """

    velocity: Any
    change: Any

    def __init__(self, grid: Grid, solids: Solids | None = None):
        self.grid, self.solids, self.wanted = grid, solids, False
        self._kernels = kick_kernels(grid.loops, solids is not None)
        self._drop()
        self.seconds = self.keeps = self.acts = self.middle = self._lasted = 0.0
        self._rubbed = False

    def allocate(self) -> None:
        """Have room for it, if there is none yet."""
        if self.velocity is None:
            self.velocity, self._before, self.change = (self.grid.velocity() for _ in range(3))
            self.pressure = self.grid.array()
            for array in (self.velocity, self.change, self.pressure):
                array.fill(0.0)

    def _drop(self) -> None:
        """Have no room for it."""
        ti.sync()  # what is dropped here may be in use
        self.velocity = self._before = self.change = self.pressure = self.friction = self._rubs = None

    def allocate_friction(self) -> None:
        """Have room for that of friction, if there is none yet."""
        if self.friction is None:
            self.friction, self._rubs = self.grid.velocity(), self.grid.velocity()
            self.friction.fill(0.0)

    def allocate_for(self, names: Container[str]) -> None:
        """Have room for what of it is ``kept`` by these names, and none until that is there."""
        self._drop()
        if "kick" in names:
            self.allocate()
        if "friction" in names:
            self.allocate_friction()
        self.clear()

    def kept(self) -> dict[str, Any]:
        """What it is between two steps, by name."""
        arrays = {"kick": self.velocity, "change": self.change, "pressure": self.pressure, "friction": self.friction}
        return {name: array for name, array in arrays.items() if array is not None}

    def clear(self) -> None:
        """Have none until the next ``settle``."""
        self.seconds = self._lasted = 0.0
        for array in (self.pressure, self.friction):
            if array is not None:
                array.fill(0.0)

    def kicked(self, velocity, dt: float, out):
        """The velocity halfway through a step of ``dt`` seconds of what has one, m/s, now: ``out``; None where there is no kick."""
        longest = GROWTH * self.seconds
        self._lasted, half = min(BEFORE * dt, longest), min(0.5 * dt, longest)
        if not self._lasted:
            return None
        self.keeps = self._lasted / half
        copy_values(velocity, out)
        add_gain(self.grid, out, self.velocity, half / self.seconds)
        return out

    def add(self, velocity) -> None:
        """Kick a velocity, m/s, as the particles were."""
        if self._lasted:
            add_gain(self.grid, velocity, self.velocity, self._lasted / self.seconds)

    def begin(self, dt: float) -> None:
        """Let what changes the velocity begin, in a step of ``dt`` seconds; where there was no kick for all of it."""
        self.acts = dt - self._lasted
        self.middle = dt * (MIDDLE if self._lasted else 0.5)
        if self.wanted:
            self.allocate()

    @property
    def part(self) -> float:
        """The part of a step in which forces, friction and pressure have acted by the kick, as they were in the step before."""
        return self._lasted / (self._lasted + self.acts) if self._lasted else 0.0

    def force(self, velocity) -> None:
        """Be told what forces have made of a velocity, m/s."""
        if self.wanted:
            self.velocity, self._before = self._before, self.velocity
            copy_values(velocity, self.velocity)

    def rub(self, velocity) -> None:
        """Be told a velocity, m/s, before friction acts on it."""
        if self.wanted:
            self.allocate_friction()
            copy_values(velocity, self._rubs)

    def rubbed(self, velocity) -> None:
        """Be told the same after that.

        As friction may be stiff, the kick has the mean of what it did in the kick before and does now: it does not swing.
        """
        if self.wanted:
            does = 1.0 - self.part
            add_gain(self.grid, self._rubs, velocity, -1.0)
            add_gain(self.grid, self.friction, self.friction, -does)
            add_gain(self.grid, self.friction, self._rubs, -does / self.acts)
            self._rubbed = True

    def find(self, velocity, told, firm, force: Sequence[float]):
        """Find with what velocity the faces would set out into a step as long as the last.

        Args:
            velocity: What the step has made of it, m/s.
            told: What the particles have told, m/s.
            firm: See ``films.find_films``.
            force: What the liquid falls by, m/s².

        Returns:
            That velocity, m/s, to be continued as far as the other one before ``settle``; None where none is wanted.
        """
        if not self.wanted:
            if self.velocity is not None:
                self._drop()
            self.clear()
            return None
        self._kernels.find(velocity, told, self.velocity, firm, math.hypot(*force) * self.acts, self.grid.n)
        if self._rubbed:
            add_gain(self.grid, self.velocity, self._rubs, 1.0)
            add_gain(self.grid, self.velocity, self.friction, self.acts)
            self._rubbed = False
        elif self.friction is not None:
            ti.sync()
            self.friction = self._rubs = None
        return self.velocity

    def settle(self, velocity) -> None:
        """Have the kick, once ``find``'s velocity and the other, m/s, go on beyond the surface."""
        if self.wanted:
            arrays = self.velocity, velocity, self._before, self.change
            rates = 1 / self.acts, 1 / self.seconds if self.seconds else 0.0
            self._kernels.settle(*arrays, self.grid.n, *rates)
            self.seconds = self.acts

    def take_mean(self, pressure) -> None:
        """Let a pressure that was found, Pa, be what has acted in the step: some of it by the kick, as the one before."""
        if self.wanted:
            fluid = self.velocity if self.solids is None else self.solids.fluid
            self._kernels.take_mean(pressure, self.pressure, fluid, self.grid.n, self.part)
