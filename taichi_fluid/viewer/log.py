"""How a run is doing, a line at each picture."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..simulation import Simulation, Step
from ..simulation.comparison import left_in
from ..simulation.probing import budget


class Log:
    """Writes what tells a run that goes well from one that does not, from one picture to the next.

    Each row has: ``time`` s, ``steps`` so far, ``dt`` s of the last one and ``cfl``, how many cells the fastest fluid crosses
    in it; ``iterations`` of the pressure in a step on average, the largest ``residual`` and how many solves did not
    converge; the largest ``divergence``, 1/s; ``ms`` of a step; ``kinetic_energy`` and ``enstrophy`` as ``budget`` has them, and
    ``amount.NAME`` of each quantity; of a liquid its ``liquid_volume`` and ``particles``.

    Args:
        simulation: What runs.
        write: Takes a row, as ``io.series.SeriesFile`` does.

    Attributes:
        rows: All that were written.
    """

    def __init__(self, simulation: Simulation, write: Callable[[Mapping[str, float]], None]):
        self.simulation, self.write = simulation, write
        self.rows: list[dict[str, float]] = []

    def look(self, steps: Sequence[Step]) -> None:
        """Write a row after these steps."""
        simulation, solves = self.simulation, [step.pressure for step in steps if step.pressure is not None]
        dt, measured = steps[-1].dt if steps else 0.0, budget(simulation)
        amounts = {name: np.sum(amount) for name, amount in measured.pop("amounts").items()}
        unsolved = sum(solve.status.name not in ("CONVERGED", "SWEPT") for solve in solves)
        row = {
            "time": simulation.time,
            "steps": simulation.steps,
            "dt": dt,
            "cfl": simulation.check() * dt / simulation.grid.dx,
            "iterations": np.mean([solve.iterations for solve in solves] or [0]),
            "residual": max((solve.relative_residual for solve in solves), default=0.0),
            "not_converged": unsolved,
            "divergence": left_in(simulation).max,
            "ms": np.median([sum(step.stage_ms.values()) for step in steps] or [0]),
            **measured,
            **{f"amount.{name}": amount for name, amount in amounts.items()},
        }
        self.rows.append({name: int(value) if isinstance(value, int) else float(value) for name, value in row.items()})
        self.write(self.rows[-1])
