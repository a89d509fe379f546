"""How a running flow is doing: what the panel shows of it, measured every now and then."""

import math
import statistics
import time
from collections import deque
from typing import NamedTuple

from ..simulation import Simulation, Step
from ..simulation.comparison import Comparison, Left, left_in, own_of, simulations_of

STEPS_REMEMBERED = 20
MEASURED_EVERY = 0.5
"""Seconds between two measurements of what only the panel shows."""


class Health(NamedTuple):
    """How the flow is doing.

    Attributes:
        stage_ms: Median milliseconds of each stage; in a comparison, of each grid.
        step_ms: Their sum.
        iterations: Of the last pressure solve.
        residual: Relative residual that it left.
        status: How it ended.
        left: Divergence that is left, by the name of the grid.
        grid: Name of the scene's own grid, whose pressure, CFL number and mass these are.
        cfl: Cells that the fastest fluid crosses in a step.
        mass: Of a liquid, kg (2D: kg/m); else the integral of the smoke, or of all dye.
        dt: Of the last step, s.
        solver: What solves the pressure.
        stand_in: A sentence where another solver of the pressure stands in for the scene's; else empty.
    """

    stage_ms: dict[str, float]
    step_ms: float
    iterations: int
    residual: float
    status: str
    left: dict[str, Left]
    grid: str
    cfl: float
    mass: float
    dt: float
    solver: str
    stand_in: str = ""

    @property
    def divergence(self) -> float:
        """Largest divergence on the scene's own grid, 1/s."""
        return self.left[self.grid].max


class Pulse:
    """The last steps of a flow, and what was measured after one of them.

    Attributes:
        steps: The last ones, the oldest first.

    Args:
        flow: What is looked after.
    """

    def __init__(self, flow: Simulation | Comparison):
        self._flow = flow
        self.steps: deque[Step] = deque(maxlen=STEPS_REMEMBERED)
        self._measured_at = -math.inf
        self._left = dict.fromkeys(simulations_of(flow), Left(0.0, 0.0, 0.0))
        self._speed = self._mass = 0.0

    @property
    def step_seconds(self) -> float:
        """How long the last step took; infinite before the first one."""
        return 1e-3 * sum(self.steps[-1].stage_ms.values()) if self.steps else math.inf

    def health(self, measure: bool) -> Health | None:
        """How the flow is doing; None before its first step. ``measure``: whether it stands between two steps."""
        if not self.steps:
            return None
        simulation, last, now = own_of(self._flow), self.steps[-1], time.perf_counter()
        if measure and now - self._measured_at > MEASURED_EVERY:
            self._measured_at = math.inf  # until it is done: it may wait for kernels, and who waits asks again
            self._left = {grid: left_in(each) for grid, each in simulations_of(self._flow).items()}
            self._speed = simulation.diagnostics.largest_magnitude(simulation.state.velocity.current)
            self._mass = _mass(simulation)
            self._measured_at = now
        stage_ms = {
            name: statistics.median(step.stage_ms.get(name, 0.0) for step in self.steps) for name in last.stage_ms
        }
        solve = last.pressure
        return Health(
            stage_ms=stage_ms,
            step_ms=sum(stage_ms.values()),
            iterations=solve.iterations if solve else 0,
            residual=solve.relative_residual if solve else 0.0,
            status=solve.status.name.lower().replace("_", " ") if solve else "-",
            left=self._left,
            grid=simulation.scene.domain.grid,
            cfl=self._speed * last.dt / simulation.grid.dx,
            mass=self._mass,
            dt=last.dt,
            solver=simulation.pressure_solver.used,
            stand_in=simulation.pressure_solver.sentence,
        )


def _mass(simulation: Simulation) -> float:
    """Of a liquid its mass, kg (2D: kg/m); else the integral of the smoke, or of all dye."""
    if simulation.liquid is not None:
        return simulation.liquid.volume * simulation.scene.fluid.rho
    carried = simulation.state.carried
    quantity = carried.get("smoke") or carried.get("dye")
    if quantity is None:
        return 0.0
    return sum(simulation.diagnostics.amount(quantity.current, offset) for offset in quantity.begins())
