"""Checkpoints of a run as it goes on."""

import re
import time
from pathlib import Path
from typing import NamedTuple

from ..io.checkpoint import save
from ..simulation import Simulation


class Rhythm(NamedTuple):
    """How often a checkpoint is written: after so many steps, or seconds of the clock; never but at the end with neither."""

    steps: int = 0
    seconds: float = 0.0


def rhythm_of(text: str) -> Rhythm:
    """``"200"`` steps or ``"30s"``; ValueError for what is neither."""
    found = re.fullmatch(r"([0-9]{1,9})|([0-9]{1,7}(?:\.[0-9]{1,6})?)s", text)
    if found is None or not float(found[1] or found[2]) > 0:
        raise ValueError(
            f"--checkpoint-every is {text[:40]!r}; it must be a number of steps, or of seconds such as 30s, above 0"
        )
    return Rhythm(int(found[1] or 0), float(found[2] or 0))


class Keeping:
    """Writes the checkpoints of a run; between two pictures, from where it goes on as if nothing had been.

    Args:
        simulation: What runs.
        path: The file.
        rhythm: How often.
    """

    def __init__(self, simulation: Simulation, path: Path, rhythm: Rhythm):
        self.simulation, self.path, self.rhythm = simulation, path, rhythm
        self._steps, self._at = simulation.steps, time.monotonic()

    def look(self) -> None:
        """Write one if it is time."""
        steps, seconds = self.simulation.steps - self._steps, time.monotonic() - self._at
        if 0 < self.rhythm.steps <= steps or 0 < self.rhythm.seconds <= seconds:
            self.write()

    def write(self) -> None:
        """Write one."""
        save(self.simulation, self.path)
        self._steps, self._at = self.simulation.steps, time.monotonic()
