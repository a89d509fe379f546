"""From a simulation to a picture, as its scene's look and camera ask for."""

import numpy as np

from ..scene import Look
from ..simulation import Simulation
from .image import Image
from .views import VIEWS, Parts


class Renderer:
    """Draws one simulation; what it shows follows the simulation's scene at every call.

    A picture is made in two halves. ``prepare`` copies what the view shows out of the simulation; ``draw`` makes a
    picture of the copy, any number of times: with another camera, exposure, background, plane or size, and also while
    a step is under way. Solids alone are not copied: their distances are read as they are.

    Attributes:
        simulation: What is drawn.
        image: The picture on the device.

    Args:
        simulation: What to draw.
        width, height: Of the picture, in pixels; left out, as the scene's output has them.
    """

    def __init__(self, simulation: Simulation, width: int | None = None, height: int | None = None):
        self.simulation = simulation
        output = simulation.scene.output
        self.image = Image(width or output.width, height or output.height)
        self._parts = Parts(simulation)
        self._views = {}
        self._prepared = None

    def _view(self, look: Look):
        if look.view not in self._views:
            self._views[look.view] = VIEWS[look.view](self._parts)
        return self._views[look.view]

    def _needs(self, look: Look) -> tuple:
        return (look.view, self._view(look).needs(look))

    def resize(self, width: int, height: int) -> None:
        """Another picture size in pixels, from the next ``draw`` on; cheap, and memory only ever grows."""
        self.image.resize(width, height)

    def prepare(self) -> None:
        """Copy what the next pictures show out of the simulation's state, as it is now."""
        self.simulation.grid.require_runtime()
        look = self.simulation.scene.look
        self._view(look).prepare(look)
        self._prepared = self._needs(look)

    def prepared_for(self, look: Look) -> bool:
        """Whether ``draw`` could show this look without reading the simulation's state.

        Another view or quantity, and colours, light and opacity of smoke, need another ``prepare``.
        """
        return self._prepared == self._needs(look)

    def draw(self) -> np.ndarray:
        """Draw what was prepared; ``(height, width, 3)`` bytes, the first row on top. See ``draw_image``."""
        self.draw_image()
        return self.image.to_numpy()

    def draw_image(self, finished: bool = True) -> None:
        """Draw what was prepared into ``image``, on the device; else without what ``finish`` lays over it.

        If that is not what the scene's look asks for by now (see ``prepared_for``), it is prepared first, from the
        state as it is then: a caller that draws in the midst of a step asks before.
        """
        self.simulation.grid.require_runtime()
        look = self.simulation.scene.look
        if not self.prepared_for(look):
            self.prepare()
        self._parts.begin()
        self._view(look).draw(look, self.image)
        if finished:
            self.finish(self.image)

    def finish(self, image: Image) -> None:
        """Lay over a larger copy of ``image`` what should be sharp in it: tracers and the legend."""
        self._parts.finish(image)

    def render(self) -> np.ndarray:
        """Draw the present state; ``(height, width, 3)`` bytes, the first row on top."""
        self.prepare()
        return self.draw()
