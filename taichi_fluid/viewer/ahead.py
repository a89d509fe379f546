"""Kernels compiled before they are needed, while something else goes on between them."""

import contextlib

from ..render.renderer import Pictures
from ..simulation import Simulation
from ..simulation.comparison import Comparison


def compile_scene(flow: Simulation | Comparison, renderer: Pictures) -> None:
    """Launch what a step and a picture launch, and put the flow back to its start. What goes wrong will do so again."""
    with contextlib.suppress(MemoryError, RuntimeError):
        renderer.draw()
        flow.step()
        renderer.draw()
    flow.reset()
