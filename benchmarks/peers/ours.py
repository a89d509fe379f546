"""This engine, a whole step."""

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid._ti import ti
from taichi_fluid.bench.measure import divergence_left

from .scene import plume


class Program:
    """The plume as ``taichi-fluid bench`` runs it, dt from the CFL number."""

    def __init__(self, n: int, dim: int, arch: str = "cpu", pressure: str = "auto", tolerance: float = 1e-3):
        backend.start(arch)
        settings = {"solver.tolerance": tolerance, "solver.pressure": pressure}
        self._simulation = tf.Simulation(plume(n, dim).with_values(settings))
        self.iterations, self.pressure_solver = None, self._simulation.pressure_solver.used

    def step(self) -> None:
        taken = self._simulation.step()
        ti.sync()
        self.iterations = taken.pressure.iterations if taken.pressure else None

    def divergence(self) -> float:
        return divergence_left(self._simulation)["left"]
