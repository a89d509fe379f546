"""A second try, with half the time step, for a flow that has blown up."""

from ..scene import Scene
from ..simulation import Simulation
from ..simulation.snapshot import put_into, taken_from
from .parameters import bounds_of


def with_half_the_step(scene: Scene) -> Scene:
    """A scene whose steps are half as long, as far as its limits allow."""
    changes = {}
    for name in ("cfl", "max_dt") if scene.solver.dt is None else ("dt",):
        least, _ = bounds_of(type(scene.solver).model_fields[name])
        changes[f"solver.{name}"] = max(getattr(scene.solver, name) / 2, least or 0.0)
    return scene.with_values(changes)


class Halving:
    """Takes a flow back, once, to what it was when ``keep`` was last called, and halves its time step.

    Args:
        simulation: The flow. What it was is kept in the memory of the host.
    """

    def __init__(self, simulation: Simulation):
        self.simulation, self.sentence = simulation, ""
        self._kept = None

    def keep(self) -> None:
        """Keep what the flow is, between two steps; nothing once it has been taken back."""
        if not self.sentence:
            self._kept = taken_from(self.simulation)

    def take_back(self, reason: Exception) -> bool:
        """Take the flow back to what was kept, if there is such; ``sentence`` says so, and why."""
        if self._kept is None:
            return False
        simulation, (arrays, numbers), self._kept = self.simulation, self._kept, None
        simulation.reset()
        simulation.scene = with_half_the_step(simulation.scene)
        put_into(simulation, arrays, numbers)
        solver = simulation.scene.solver
        step = f"solver.dt = {solver.dt:g}" if solver.dt else f"solver.cfl = {solver.cfl:g}"
        self.sentence = f"{reason} It goes on from t = {simulation.time:.4g} s with half the time step ({step})."
        return True
