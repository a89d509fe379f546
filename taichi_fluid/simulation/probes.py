"""Probes: what is measured of a simulation as it runs, and when."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import ValidationError

from ..scene import Probe, SceneError
from ..scene.probes import COLUMNS, require_probes
from ..scene.text import sentence
from .probing import Gauge

Row = dict[str, float]
"""What was measured at a time: ``"time"``, ``"step"`` and, by column, what was due."""


class Probes:
    """The probes of a simulation: they measure at once, and from then on after each step for which one is due.

    ``with Probes(simulation) as probes:`` or ``close()`` ends that. Nothing but what is listed is measured, and a
    simulation without probes launches nothing for them.

    Args:
        simulation: The simulation.
        probes: More than its scene has: ``Probe``s, or tables of their fields as a scene has them.
        write: Called with each row, such as an ``io.series.SeriesFile``.

    Attributes:
        probes: All of them, by name.
        rows: What was measured, in the order of time.

    Raises:
        SceneError: for a probe that cannot be; in one sentence.
    """

    def __init__(
        self, simulation: Any, probes: Sequence[Probe | Mapping] = (), write: Callable[[Row], None] | None = None
    ):
        if isinstance(probes, (Probe, Mapping)):
            raise SceneError("probes is a single one; it is a list of them: put it in brackets.")
        simulation.grid.require_runtime()
        self.simulation, self._write = simulation, write
        every = [*simulation.scene.probes, *map(_probe, probes)]
        state, solids = simulation.state, simulation.solids
        # Where a box was rounded to whole cells its scene's far sides are those of the box.
        size = tuple(map(max, simulation.grid.size, simulation.scene.domain.size))
        try:
            require_probes(
                every,
                size,
                simulation.grid.dx,
                tuple(state.carried),
                len(solids.solids) if solids else 0,
                simulation.liquid is not None,
            )
        except ValueError as error:
            raise SceneError(f"{error}.") from None
        self.probes = {probe.name: probe for probe in every}
        self.rows: list[Row] = []
        self._gauge = Gauge(simulation)
        self._due = dict.fromkeys(self.probes, -math.inf)
        self._measure(every)
        simulation.after_step.append(self._look)

    @property
    def columns(self) -> list[str]:
        """Names of what is measured: ``name``, or ``name.x`` and the like where that is several numbers."""
        return [name for name in self.rows[0] if name not in COLUMNS]

    def series(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """Times, s, and values of a column; KeyError if there is none."""
        if column not in self.rows[0]:
            raise KeyError(f"there is no column {column!r}; there are {', '.join(self.columns)}")
        found = [(row["time"], row[column]) for row in self.rows if column in row]
        times, values = np.transpose(found)
        return times, values

    def _look(self) -> None:
        time, steps = self.simulation.time, self.simulation.steps
        if time < self.rows[-1]["time"]:  # begun anew, or gone back
            self._due = dict.fromkeys(self.probes, -math.inf)
        due = [
            probe
            for probe in self.probes.values()
            if (steps % probe.steps == 0 if probe.every is None else time >= self._due[probe.name] * (1 - 1e-9))
        ]
        if due:
            self._measure(due)

    def _measure(self, due: Sequence[Probe]) -> None:
        time = self.simulation.time
        row: Row = {"time": time, "step": self.simulation.steps}
        for probe in due:
            row |= {probe.name + end: value for end, value in self._gauge.measure(probe).items()}
            if probe.every is not None:
                self._due[probe.name] = (math.floor(time / probe.every * (1 + 1e-9)) + 1) * probe.every
        self.rows.append(row)
        if self._write is not None:
            self._write(row)

    def close(self) -> None:
        """Measure no more."""
        if self._look in self.simulation.after_step:
            self.simulation.after_step.remove(self._look)

    def __enter__(self) -> "Probes":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _probe(given: Probe | Mapping) -> Probe:
    if isinstance(given, Probe):
        return given
    try:
        return Probe.model_validate(dict(given))
    except ValidationError as error:
        raise SceneError(f"a probe: {sentence(error, Probe, given)}") from None
