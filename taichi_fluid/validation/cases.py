"""What a case is: a published or exact flow, how it is run, and what must hold of what comes out."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..scene import Scene
from ..simulation import Simulation


class Row(NamedTuple):
    """One figure of a case beside what it should be.

    Attributes:
        quantity: What it is, with its unit.
        found: The figure.
        reference: What is published or exact, in words.
        least: What it must not fall below.
        most: What it must not exceed.
        plain: What a plain second-order code reaches, in words; empty where that is not known.
    """

    quantity: str
    found: float
    reference: str
    least: float
    most: float
    plain: str = ""

    @property
    def holds(self) -> bool:
        """Whether it is between its bounds; a figure that is not finite is not."""
        return self.least <= self.found <= self.most

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, with ``holds``: a bound that there is not, and a figure that is not finite, are None."""
        values = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in self._asdict().items()}
        return {**values, "holds": bool(self.holds)}


class Curve(NamedTuple):
    """A line of a plot beside published points.

    Attributes:
        title: What is drawn.
        axes: What stands along both axes.
        found: Two arrays.
        points: Two arrays of what is published, or None.
    """

    title: str
    axes: tuple[str, str]
    found: tuple[Any, Any]
    points: tuple[Any, Any] | None = None


class Run:
    """One run of a case: what it is run with, and what it has found.

    Attributes:
        resolution: Cells along the edge that the case counts.
        changes: What is changed of the scenes of the case, by dotted key.
        rows: Figures so far.
        curves: Lines to draw.
        steps: Steps made so far.
        cells: Cells of the largest grid, as text.
    """

    def __init__(self, resolution: int, changes: Mapping[str, Any] | None = None):
        self.resolution, self.changes = resolution, dict(changes or {})
        self.rows: list[Row] = []
        self.curves: list[Curve] = []
        self.steps, self.cells = 0, ""

    def scene(self, name: str, **tables: Any) -> Scene:
        """The scene of the case with what this run changes of it."""
        return self.changed(Scene.from_dict({"name": name, **tables}))

    def changed(self, scene: Scene) -> Scene:
        """Another scene with what this run changes of it."""
        scene = scene.with_values(self.changes) if self.changes else scene
        self.counts(scene.domain.shape)
        return scene

    def counts(self, shape: Sequence[int]) -> None:
        """Note the shape of a grid, the largest of which is said."""
        self.cells = max(self.cells, " x ".join(map(str, shape)), key=_product)

    def simulation(self, name: str, **tables: Any) -> Simulation:
        """The flow of such a scene."""
        return Simulation(self.scene(name, **tables))

    def step(self, simulation: Simulation, count: int, dt: float | None = None) -> None:
        """Make so many steps."""
        for _ in range(count):
            simulation.step(dt)
        self.steps += count

    def advance(self, simulation: Simulation, duration: float) -> None:
        """Let a flow go on by so many seconds."""
        self.steps += len(simulation.advance(duration))

    def settle(self, simulation: Simulation, change: float, longest: float, every: float = 1.0) -> float:
        """Let a flow become steady.

        Args:
            simulation: The flow.
            change: What no component of the velocity may change by any more in a second, m/s².
            longest: Seconds after which it is given up.
            every: Seconds from one look to the next.

        Returns:
            The largest change at the end, m/s².
        """
        before, left = simulation.to_numpy("velocity"), math.inf
        while simulation.time < longest * (1 - 1e-9) and left > change:
            self.advance(simulation, min(every, longest - simulation.time))
            now = simulation.to_numpy("velocity")
            left, before = float(np.abs(now - before).max()) / every, now
        return left

    def near(self, quantity: str, found: float, reference: float, relative: float, plain: str = "") -> None:
        """A figure that must be ``reference``, but for a part ``relative`` of it."""
        away = abs(reference) * relative
        text = f"{reference:.6g} ± {100 * relative:g} %"
        self.rows.append(Row(quantity, float(found), text, reference - away, reference + away, plain))

    def between(self, quantity: str, found: float, least: float, most: float, plain: str = "") -> None:
        """A figure that must lie in a published range."""
        self.rows.append(Row(quantity, float(found), f"{least:g} to {most:g}", least, most, plain))

    def at_most(self, quantity: str, found: float, most: float, plain: str = "") -> None:
        """An error, or something else of which less is better; NaN is more than any bound."""
        self.rows.append(Row(quantity, float(found), f"at most {most:.4g}", -math.inf, most, plain))

    def at_least(self, quantity: str, found: float, least: float, plain: str = "") -> None:
        """Something of which more is better."""
        self.rows.append(Row(quantity, float(found), f"at least {least:g}", least, math.inf, plain))

    def figure(self, quantity: str, found: float) -> None:
        """A figure of which nothing is published: what it is today."""
        self.rows.append(Row(quantity, float(found), "a figure", -math.inf, math.inf))

    def curve(self, title: str, axes: tuple[str, str], found: Any, points: Any = None) -> None:
        """A line to draw."""
        self.curves.append(Curve(title, axes, found, None if points is None else tuple(points)))


def _product(cells: str) -> int:
    return math.prod(map(int, cells.split(" x "))) if cells else 0


class Case(NamedTuple):
    """A flow of the literature.

    Attributes:
        name: What the command line calls it.
        title: What it is.
        source: Where its figures come from.
        measure: Runs it.
        resolution: Cells along the edge that it counts, for which its bounds are meant.
        quick: A number of cells that takes seconds. Errors must not grow by more than those of second order would.
    """

    name: str
    title: str
    source: str
    measure: Callable[[Run], None]
    resolution: int
    quick: int

    def run(self, resolution: int | None = None, changes: Mapping[str, Any] | None = None) -> "Outcome":
        """Run it here and now, on the Taichi that is running.

        Args:
            resolution: Cells; left out, its own.
            changes: What to change of its scene, such as ``{"solver.scheme": "reflection"}``.

        Raises:
            SceneError: for changes that no scene can have.
            ValueError: for one that would make it another case.
        """
        for key in changes or {}:
            if not key.startswith("solver."):
                raise ValueError(f"{key} is what makes {self.name} the case it is: change solver.… only")
        run = Run(resolution or self.resolution, changes)
        began, processor = time.perf_counter(), time.process_time()
        try:
            self.measure(run)
            problem = ""
        except (RuntimeError, MemoryError) as error:
            problem = str(error)
        seconds = time.perf_counter() - began, time.process_time() - processor
        return Outcome(self, run, *seconds, problem)


class Outcome(NamedTuple):
    """What came of a run.

    Attributes:
        case: What was run.
        run: Its rows and curves.
        seconds: By the clock, compiling included.
        processor: Of all threads of this process.
        problem: Why it broke off; empty if it did not.
    """

    case: Case
    run: Run
    seconds: float
    processor: float
    problem: str

    @property
    def holds(self) -> bool:
        """Whether it came to its end and every row holds."""
        return not self.problem and bool(self.run.rows) and all(row.holds for row in self.run.rows)

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, its rows as theirs are."""
        return {
            "case": self.case.name,
            "title": self.case.title,
            "source": self.case.source,
            "resolution": self.run.resolution,
            "cells": self.run.cells,
            "changes": {key: str(value) for key, value in self.run.changes.items()},
            "steps": self.run.steps,
            "seconds": round(self.seconds, 1),
            "processor_s": round(self.processor, 1),
            "problem": self.problem,
            "holds": self.holds,
            "rows": [row.to_dict() for row in self.run.rows],
        }


def zeros_of(times: Any, values: Any, rising: bool = False) -> np.ndarray:
    """Instants at which values change sign, linearly between two, or only those where they rise; 0 counts to those below."""
    t, v = np.array(times), np.array(values)
    above = v > 0
    changes = above[1:] & ~above[:-1] if rising else above[1:] != above[:-1]
    k = np.flatnonzero(changes)
    return t[k] - v[k] * (t[k + 1] - t[k]) / (v[k + 1] - v[k])


def peak(x: Any, values: Any) -> tuple[float, float]:
    """Place and value of the largest of ``values`` at even places ``x``, by a parabola through it and its neighbours."""
    k = int(np.argmax(values))
    if k in (0, len(values) - 1):
        return float(x[k]), float(values[k])
    low, top, high = map(float, values[k - 1 : k + 2])
    bend = low - 2 * top + high
    shift = 0.5 * (low - high) / bend if bend else 0.0
    return float(x[k] + shift * (x[k + 1] - x[k])), float(top - 0.25 * (low - high) * shift)
