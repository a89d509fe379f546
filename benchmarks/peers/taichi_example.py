"""Taichi's own ``stable_fluid`` example, as the package ships it, without its window."""

import numpy as np
import taichi as ti

from .shipped import load_example


class Program:
    """A jet near the floor, blown upwards by what the example does while a button of the mouse is held."""

    def __init__(self, n: int, dim: int, sweeps: int):
        constants = {"res = 512": f"res = {n}", "p_jacobi_iters = 500": f"p_jacobi_iters = {sweeps}"}
        self._example = load_example("taichi", "examples/simulation/stable_fluid.py", constants)
        self._mouse = np.array([0, 1, n / 2, n / 8, 0.9, 0.6, 0.3, 0], np.float32)  # direction, place, colour
        self.iterations = sweeps

    def step(self) -> None:
        self._example.step(self._mouse)
        ti.sync()

    def divergence(self) -> float:
        example = self._example
        before = example.velocity_divs.to_numpy()  # the example computes it before it projects, and leaves it there
        example.divergence(example.velocities_pair.cur)
        after = example.velocity_divs.to_numpy()
        return float(np.sqrt((after**2).mean() / (before**2).mean()))
