"""How a flow goes on: by steps, by parts of a step, by a duration; one simulation, or two side by side."""

import math
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import NamedTuple

from .pressure.solver import SolveResult
from .scene import Scene


class Step(NamedTuple):
    """What a step says of itself.

    Attributes:
        dt: Seconds.
        pressure: How the pressure solve ended.
        stage_ms: Milliseconds of each stage by name, device work included; empty unless it was timed.
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
    def _run_stages(self, dt: float, timed: bool) -> Generator[None, None, Step]:
        """Make a step of ``dt`` seconds; yields after each of its parts."""

    def step(self, dt: float | None = None, timed: bool = False) -> Step:
        """Advance by one step.

        Args:
            dt: Seconds; left out, ``stable_dt`` chooses.
            timed: Measure each stage, waiting for the device after it.

        Raises:
            NotFinite: if a quantity is NaN or infinite when the step begins.
            RuntimeError: if Taichi was re-initialised since this simulation was built.
        """
        return _finished(self.stepping(dt, timed))

    def stepping(
        self, dt: float | None = None, timed: bool = False, longest: float = math.inf
    ) -> Generator[None, None, Step]:
        """Make one step a part at a time: yields after each, and returns what ``step`` does.

        A part is a stage, or what a stage does up to where it yields. ``time`` and ``steps`` change when all are done.
        A step that is not carried to its end leaves some quantities moved on and others not: ``reset`` then, or finish
        it; no other step may begin in its middle.

        Args:
            dt: As of ``step``.
            timed: Measure each stage, waiting for the device after each part; the caller's time in between is not
                counted.
            longest: Seconds that a dt which is left out, here and in the scene's solver, does not exceed.

        Raises:
            ValueError: when the first part is asked for, as ``step`` does; so NotFinite and RuntimeError.
        """
        speed = self.check()
        if dt is None:
            dt = self.stable_dt(speed) if self.scene.solver.dt else min(self.stable_dt(speed), longest)
        if not (math.isfinite(dt) and dt > 0):
            raise ValueError(f"dt is {dt}; it must be a positive number of seconds")
        return (yield from self._run_stages(dt, timed))

    def advance(self, duration: float, timed: bool = False) -> list[Step]:
        """Advance by ``duration`` seconds and land on it.

        Steps are as many as stability asks for, all but equal; with a fixed ``solver.dt`` whole ones and a shorter last.

        Raises:
            ValueError: if the duration is not a number of seconds from 0 up.
            NotFinite: as ``step`` does.
        """
        if not (math.isfinite(duration) and duration >= 0):
            raise ValueError(f"duration is {duration}; it must be a number of seconds, 0 or more")
        done, steps = 0.0, []
        while done < duration * (1 - 1e-9):
            remaining, stable = duration - done, self.stable_dt(self.check())
            if self.scene.solver.dt is not None:
                dt = min(stable, remaining)
            else:
                dt = remaining / max(math.ceil(remaining / stable * (1 - 1e-9)), 1)
            steps.append(_finished(self._run_stages(dt, timed)))
            done += steps[-1].dt
        return steps


def _finished(step: Generator[None, None, Step]) -> Step:
    """Make all that is left of a step."""
    while True:
        try:
            next(step)
        except StopIteration as end:
            return end.value
