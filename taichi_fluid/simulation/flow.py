"""How a flow goes on: by steps, by parts of a step, by a duration; one simulation, or two side by side."""

import math
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import NamedTuple

from ..limits import is_number
from ..pressure.solver import SolveResult
from ..scene import Scene

MOST_STEPS = 10_000
"""Steps within ``solver.max_dt``, or within what is left of a shorter duration, that a flow is not asked to make."""


LONGEST = 1e9
"""Seconds, 30 years, that a flow is asked to go on at once at the most: in many more a step is lost to rounding."""


class TooManySteps(RuntimeError):
    """A flow has become so fast, or its fixed dt is so short, that it would hardly go on; the message says how fast."""


class Step(NamedTuple):
    """What a step says of itself.

    Attributes:
        dt: Seconds.
        pressure: How the pressure solve ended.
        stage_ms: Milliseconds of each stage by name, device work included; empty unless it was timed. The second of a
            name is called "name 2".
        diffusion: How each implicit diffusion ended.
    """

    dt: float
    pressure: SolveResult | None
    stage_ms: dict[str, float]
    diffusion: tuple[SolveResult, ...] = ()


class Flow(ABC):
    """What goes on in steps: a ``Simulation``, or a ``Comparison`` of two."""

    @property
    @abstractmethod
    def scene(self) -> Scene:
        """The scene."""

    @abstractmethod
    def check(self) -> float:
        """Largest velocity component, m/s, after checking that everything is finite."""

    @abstractmethod
    def stable_dt(self, speed: float) -> float:
        """Time step in seconds: the scene's own if it has one, else from its CFL number and ``speed`` in m/s."""

    @abstractmethod
    def require_whole(self) -> None:
        """Raise RuntimeError if a step has begun that did not come to its end."""

    @abstractmethod
    def _fastest(self, speed: float) -> float:
        """The velocity, m/s, that dt follows: ``speed`` of the fluid, or what drives it or stands in it and is faster."""

    @abstractmethod
    def _where(self, speed: float) -> str:
        """Where the fluid is as fast as the last check has found, `` in cell …``; empty if something else drives dt."""

    @abstractmethod
    def _run_stages(self, dt: float, timed: bool) -> Generator[None, None, Step]:
        """Make a step of ``dt`` seconds; yields after each of its parts."""

    def step(self, dt: float | None = None, timed: bool = False) -> Step:
        """Advance by one step.

        Args:
            dt: Seconds; left out, ``stable_dt`` chooses.
            timed: Measure each stage, waiting for the device after it.

        Raises:
            NotFinite: if a quantity is NaN or infinite when the step begins.
            RuntimeError: if Taichi was re-initialised since this simulation was built, or if the step before this one
                did not come to its end.
        """
        return _finished(self.stepping(dt, timed))

    def stepping(
        self, dt: float | None = None, timed: bool = False, longest: float = math.inf
    ) -> Generator[None, None, Step]:
        """Make one step a part at a time: yields after each, and returns what ``step`` does.

        A part is a stage, or what a stage does up to where it yields. ``time`` and ``steps`` change when all are done.
        A step that is not carried to its end leaves some quantities moved on and others not: ``reset`` then, or finish
        it; until then no other step begins, which raises RuntimeError. So after an exception in a stage: ``check``,
        ``to_numpy`` and pictures still show what there is.

        Args:
            dt: As of ``step``.
            timed: Measure each stage, waiting for the device after each part; the caller's time in between is not
                counted.
            longest: Seconds that a dt which is left out, here and in the scene's solver, does not exceed: those that the
                caller wants to go on by.

        Raises:
            ValueError: when the first part is asked for, as ``step`` does; so NotFinite and RuntimeError.
            TooManySteps: as ``advance`` does, if ``longest`` is given and dt is left out.
        """
        self.require_whole()
        speed = self.check()
        if dt is None:
            stable = self.stable_dt(speed)
            if math.isfinite(longest):
                self._require_progress(speed, stable, longest)
            dt = stable if self.scene.solver.dt else min(stable, longest)
        if not (is_number(dt) and dt > 0):
            raise ValueError(f"dt is {dt!r}; it must be a positive number of seconds")
        return (yield from self._run_stages(float(dt), timed))

    def advance(self, duration: float, timed: bool = False) -> list[Step]:
        """Advance by ``duration`` seconds and land on it.

        Steps are as many as stability asks for, all but equal; with a fixed ``solver.dt`` whole ones and a shorter last.

        Raises:
            ValueError: if the duration is not a number of seconds from 0 to ``LONGEST``.
            NotFinite: as ``step`` does; so RuntimeError.
            TooManySteps: if more than ``MOST_STEPS`` steps would have to be made within the next ``solver.max_dt``, or
                within what is left of the duration if that is less; the flow stays where it has come to. Who wants such
                steps says so by a ``solver.max_dt`` that is as short.
        """
        if not (is_number(duration) and 0 <= duration <= LONGEST):
            raise ValueError(f"duration is {duration!r}; it must be a number of seconds from 0 to {LONGEST:g}")
        self.require_whole()
        done, steps, duration = 0.0, [], float(duration)
        while done < duration * (1 - 1e-9):
            speed = self.check()
            remaining, stable = duration - done, self.stable_dt(speed)
            self._require_progress(speed, stable, remaining)
            if self.scene.solver.dt is not None:
                dt = min(stable, remaining)
            else:
                dt = remaining / max(math.ceil(remaining / stable * (1 - 1e-9)), 1)
            steps.append(_finished(self._run_stages(dt, timed)))
            done += steps[-1].dt
        return steps

    def _require_progress(self, speed: float, dt: float, remaining: float) -> None:
        """Raise TooManySteps if steps of ``dt`` seconds would hardly go on by the ``remaining`` ones."""
        solver = self.scene.solver
        if min(remaining, solver.max_dt) <= MOST_STEPS * dt:
            return
        cause = "solver.dt is" if solver.dt is not None else "no step may be longer than"
        advice = "choose a longer solver.dt" if solver.dt is not None else "weaker forces or sources may help"
        raise TooManySteps(
            f"{cause} {dt:.3g} s (the fastest velocity is {self._fastest(speed):.3g} m/s{self._where(speed)}), and the "
            f"{remaining:.3g} s that are left would take {remaining / dt:.3g} steps: {advice}, or a solver.max_dt of "
            f"{MOST_STEPS * dt:.3g} s or less if so many are wanted."
        )


def _finished(step: Generator[None, None, Step]) -> Step:
    """Make all that is left of a step."""
    while True:
        try:
            next(step)
        except StopIteration as end:
            return end.value
