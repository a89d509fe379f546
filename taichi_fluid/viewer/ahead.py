"""Kernels compiled before they are needed, while something else goes on between them."""

import contextlib

from .._ti import ti
from ..render.renderer import Pictures
from ..render.side_by_side import pictures_of
from ..scene import Look
from ..simulation import Simulation
from ..simulation.comparison import Comparison


def compile_scene(flow: Simulation | Comparison, renderer: Pictures) -> None:
    """Launch what a step and a picture launch, and put the flow back to its start. What goes wrong will do so again."""
    with contextlib.suppress(MemoryError, RuntimeError):
        renderer.draw()
        flow.step()
        renderer.draw()
    flow.reset()


class Views:
    """The views of one flow whose kernels are there.

    Args:
        look: What it is seen with.
    """

    def __init__(self, look: Look):
        self._seen = {_key(look)}

    def new(self, look: Look) -> bool:
        """Whether it has not been drawn so."""
        return _key(look) not in self._seen

    def compile(self, flow: Simulation | Comparison, look: Look, size: tuple[int, int]) -> None:
        """Launch what a picture of the flow with this look launches. What goes wrong will do so again.

        It may stand in the midst of a step, and go on meanwhile: what is drawn here nobody sees.
        """
        self._seen.add(_key(look))
        with contextlib.suppress(MemoryError, RuntimeError):
            pictures_of(flow.looked_at(look), *size).render()
        ti.sync()  # before its arrays are dropped


def _key(look: Look) -> tuple[str, str]:
    return look.view, look.quantity
