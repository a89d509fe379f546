"""One scene on both grids at once, step by step and stroke by stroke the same.

What the scene asks for is what ``flow_of`` makes: a ``Simulation``, or with ``look.compare`` a ``Comparison`` of two.
"""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple

from ..scene import Look, Scene
from .flow import Flow, Step
from .remarks import STILL
from .resampling import resample
from .simulation import NotFinite, Simulation

GRIDS = ("staggered", "collocated")
"""From left to right in a picture."""


class Left(NamedTuple):
    """The divergence that a flow is left with.

    Attributes:
        max: The largest, 1/s.
        rms: Root mean square, 1/s.
        scale: dx over the largest velocity component, s: times it, 1 would be a flow that changes by all of itself from
            cell to cell. 0 for a fluid at rest; over a speed that is more than rounding where buoyancy might act.
    """

    max: float
    rms: float
    scale: float

    @property
    def part(self) -> float:
        """The largest as part of speed/dx."""
        return self.max * self.scale


def left_in(simulation: Simulation) -> Left:
    """Measure the divergence that a simulation is left with; between two steps."""
    speed = simulation.diagnostics.largest_magnitude(simulation.state.velocity.current)
    speed = max(speed, STILL * simulation.lifted * simulation.time)
    return Left(*simulation.divergence(), simulation.grid.dx / speed if speed > 0 else 0.0)


class Comparison(Flow):
    """The flow of one scene on both grids: the same dt in each step, the same sources, the same strokes.

    Attributes:
        own: The simulation on the grid that ``domain.grid`` names.
        other: The one on the other grid.

    Args:
        own: A simulation.
        other: One of the same scene on the other grid, as far in time.

    Raises:
        ValueError: if both are on the same grid.
    """

    def __init__(self, own: Simulation, other: Simulation):
        if own.grid.collocated == other.grid.collocated:
            raise ValueError(f"both simulations are on the {own.scene.domain.grid} grid; a comparison needs the other")
        self.own, self.other = own, other

    @property
    def simulations(self) -> dict[str, Simulation]:
        """Both by the name of their grid, from left to right in a picture."""
        by_grid = {simulation.scene.domain.grid: simulation for simulation in (self.own, self.other)}
        return {grid: by_grid[grid] for grid in GRIDS}

    @property
    def scene(self) -> Scene:
        """The scene of ``own``. Assign another as to a ``Simulation``; both take it, or neither does."""
        return self.own.scene

    @scene.setter
    def scene(self, scene: Scene) -> None:
        before = self.own.scene
        self.own.scene = scene
        try:
            self.other.scene = _on(scene, self.other.scene.domain.grid)
        except BaseException:
            self.own.scene = before
            raise

    def looked_at(self, look: Look) -> "Comparison":
        """The same arrays, to be drawn with another look and for nothing else."""
        return Comparison(self.own.looked_at(look), self.other.looked_at(look))

    def check(self) -> float:
        """Largest velocity component of both, m/s, after checking that everything is finite.

        Raises:
            NotFinite: names the grid, the quantity and the step.
        """
        speeds = []
        for grid, simulation in self.simulations.items():
            try:
                speeds.append(simulation.check())
            except NotFinite as error:
                raise NotFinite(f"on the {grid} grid {error}") from None
        return max(speeds)

    def stable_dt(self, speed: float) -> float:
        """Time step in seconds for both, as ``Simulation.stable_dt``."""
        return self.own.stable_dt(speed)

    def require_whole(self) -> None:
        """Raise RuntimeError if a step has begun that did not come to its end in both."""
        for simulation in self.simulations.values():
            simulation.require_whole()

    def _fastest(self, speed: float) -> float:
        return self.own._fastest(speed)

    def _where(self, speed: float) -> str:
        for grid, simulation in self.simulations.items():
            if simulation.speed == speed and (where := simulation._where(speed)):
                return f"{where} of the {grid} grid"
        return ""

    def _run_stages(self, dt: float, timed: bool) -> Generator[None, None, Step]:
        """Make a step of both; its milliseconds are those of each grid, and how its pressure ended is that of ``own``."""
        taken = {}
        for grid, simulation in self.simulations.items():
            taken[grid] = yield from simulation._run_stages(dt, timed)
        own = taken[self.own.scene.domain.grid]
        stage_ms = {grid: sum(step.stage_ms.values()) for grid, step in taken.items()} if timed else {}
        return Step(dt, own.pressure, stage_ms, tuple(result for step in taken.values() for result in step.diffusion))

    @property
    def time(self) -> float:
        """Simulated seconds, of both."""
        return self.own.time

    @property
    def steps(self) -> int:
        """Number of steps made, as the own one counts them."""
        return self.own.steps

    def paint_picture(self, *arguments: Any, **options: Any) -> None:
        """Paint a picture into both; the arguments are those of ``Simulation.paint_picture``."""
        for simulation in (self.own, self.other):
            simulation.paint_picture(*arguments, **options)

    def paint(self, *arguments: Any, **amounts: Any) -> None:
        """Paint a stroke into both; the arguments are those of ``Simulation.paint``."""
        for simulation in (self.own, self.other):
            simulation.paint(*arguments, **amounts)

    def reset(self) -> None:
        """Both back to time 0."""
        for simulation in (self.own, self.other):
            simulation.reset()

    def clear(self) -> None:
        """Take away all that both carry; the flows go on."""
        for simulation in (self.own, self.other):
            simulation.clear()


def simulations_of(flow: Simulation | Comparison) -> dict[str, Simulation]:
    """The simulations of a flow by the name of their grid, from left to right in a picture."""
    return flow.simulations if isinstance(flow, Comparison) else {flow.scene.domain.grid: flow}


def own_of(flow: Simulation | Comparison) -> Simulation:
    """The simulation on the grid that the flow's scene names."""
    return flow.own if isinstance(flow, Comparison) else flow


def flow_of(
    scene: Scene, build: Callable[[Scene], Simulation] = Simulation, before: Simulation | Comparison | None = None
) -> Simulation | Comparison:
    """What a scene asks for: a simulation on its grid, or with ``look.compare`` one on each.

    Args:
        scene: The scene.
        build: Makes a simulation of a scene on its grid alone; its ``look.compare`` is off.
        before: A flow to go on from, between two steps, over the same box. What of it has the very same cells is taken
            over as it is and belongs to the new flow; the rest is built anew and resampled from it.

    Raises:
        ValueError: for what ``build`` or ``resample`` cannot do, or a scene that ``before`` cannot take; ``before`` is
            as it was.
    """
    names = [scene.domain.grid]
    names += [grid for grid in GRIDS if grid not in names] if scene.look.compare else []
    made = [_simulation_of(_on(scene, grid), build, before) for grid in names]
    flow = Comparison(*made) if scene.look.compare else made[0]
    flow.scene = scene
    return flow


def _simulation_of(
    scene: Scene, build: Callable[[Scene], Simulation], before: Simulation | Comparison | None
) -> Simulation:
    """The simulation of ``before`` that has the scene's cells, or a new one that goes on from the nearest."""
    if before is None:
        return build(alone(scene))
    running = simulations_of(before)
    source = running.get(scene.domain.grid, own_of(before))
    if source.scene.domain == scene.domain:
        return source
    simulation = build(alone(scene))
    # Also what no source of the scene brings in any more.
    simulation.state.add([quantity.row for quantity in source.state.carried.values()])
    resample(source, simulation)
    return simulation


def alone(scene: Scene) -> Scene:
    """The scene without the comparison."""
    return scene.model_copy(update={"look": scene.look.model_copy(update={"compare": False})})


def _on(scene: Scene, grid: str) -> Scene:
    """The scene on a grid; a scene that has none of the other grid's limits, as any with ``look.compare`` is."""
    return scene.model_copy(update={"domain": scene.domain.model_copy(update={"grid": grid})})
