"""Warp's own fluid example, as the package ships it, without its window, on the CPU."""
# pyright: reportMissingImports=false

import numpy as np
import warp as wp

from .shipped import load_example


class Program:
    """One of the two substeps that the example makes in a frame counts as a step."""

    def __init__(self, n: int, dim: int):
        constants = {
            "grid_width = wp.constant(256)": f"grid_width = wp.constant({n})",
            "grid_height = wp.constant(128)": f"grid_height = wp.constant({n})",
        }
        module = load_example("warp", "examples/core/example_fluid.py", constants)
        self._divergence, self._shape = module.divergence, (n, n)
        wp.set_device("cpu")
        self._example = module.Example()
        self._example.sim_substeps = 1
        self.iterations = self._example.iterations

    def step(self) -> None:
        self._example.step()

    def divergence(self) -> float:
        example, after = self._example, wp.zeros(self._shape, dtype=float)
        # A substep moves the projected velocity on at its end; what was projected is in the other buffer.
        wp.launch(self._divergence, dim=self._shape, inputs=[example.u1, after])
        return float(np.sqrt((after.numpy() ** 2).mean() / (example.div.numpy() ** 2).mean()))
