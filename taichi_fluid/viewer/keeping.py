"""Checkpoints of a run as it goes on, and of what a window shows."""

import contextlib
import math
import time
from pathlib import Path

from ..io.checkpoint import Contents, contents_of, save, write
from ..io.rhythm import Rhythm
from ..simulation import NotFinite, Simulation
from .session import Session


def keep_state(session: Session) -> None:
    """Write scene and state of what a session shows, between two steps; ``taichi-fluid resume`` goes on from there."""

    def write(path: Path) -> None:
        flow = session.flow
        if not isinstance(flow, Simulation):
            raise OSError("both grids are shown, and a state is that of one")
        path.unlink(missing_ok=True)  # the empty file that has kept its name free
        save(flow, path)

    session.finish_step()
    session.write(".checkpoint", write)


HELD = 1.0
"""Seconds of the clock after which a run that is not written is held in memory anew: so little is lost where it breaks off."""


class Keeping:
    """Writes the checkpoints of a run; of a time between two pictures, from where it goes on as if nothing had been.

    From the midst of one it would make other steps, with tracers that have not moved along: what breaks off there is written
    as it was at the last picture, or a second before, which is held in the memory of the host.

    Args:
        simulation: What runs.
        path: The file.
        rhythm: How often.
    """

    def __init__(self, simulation: Simulation, path: Path, rhythm: Rhythm):
        self.simulation, self.path, self.rhythm = simulation, path, rhythm
        self._steps, self._at = simulation.steps, time.monotonic()
        self._pictured: int | None = None
        self._held: Contents | None = None
        self._held_at = -math.inf

    def look(self) -> None:
        """Between two pictures: write one if it is time, or else hold what it would be."""
        self._pictured = self.simulation.steps
        steps, seconds = self.simulation.steps - self._steps, time.monotonic() - self._at
        if 0 < self.rhythm.steps <= steps or 0 < self.rhythm.seconds <= seconds:
            self.write()
        elif time.monotonic() - self._held_at >= HELD:
            self._held, self._held_at = contents_of(self.simulation), time.monotonic()

    def write(self) -> None:
        """Write one."""
        save(self.simulation, self.path)
        self._steps, self._at = self.simulation.steps, time.monotonic()
        self._held, self._held_at = None, self._at

    def forget(self) -> None:
        """Leave the checkpoint before it where a run has blown up: what is held was about to."""
        self._held = None

    def finish(self) -> None:
        """Write one at the end of a run, or where it breaks off; one that has blown up leaves the one before it."""
        if self.simulation.is_whole and self.simulation.steps == self._pictured:
            with contextlib.suppress(NotFinite):
                self.simulation.check()
                self.write()
        elif self._held is not None:
            write(self._held, self.path)
