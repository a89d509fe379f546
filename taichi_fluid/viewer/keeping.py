"""Checkpoints of a run as it goes on, and of what a window shows."""

import contextlib
import time
from pathlib import Path

from ..io.checkpoint import save
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
        self._pictured: int | None = None

    def look(self) -> None:
        """Between two pictures: write one if it is time."""
        self._pictured = self.simulation.steps
        steps, seconds = self.simulation.steps - self._steps, time.monotonic() - self._at
        if 0 < self.rhythm.steps <= steps or 0 < self.rhythm.seconds <= seconds:
            self.write()

    def write(self) -> None:
        """Write one."""
        save(self.simulation, self.path)
        self._steps, self._at = self.simulation.steps, time.monotonic()

    def finish(self) -> None:
        """Write one at the end of a run, or where it breaks off between two pictures.

        In the midst of one, or blown up, the last one stays: what goes on from there makes other steps, with tracers that have
        not moved along.
        """
        if self.simulation.is_whole and self.simulation.steps == self._pictured:
            with contextlib.suppress(NotFinite):
                self.simulation.check()
                self.write()
