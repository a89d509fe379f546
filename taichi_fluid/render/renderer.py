"""From a simulation to a picture, as its scene's look and camera ask for."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..scene import Look
from ..simulation import Simulation
from .enlarge import enlarge
from .image import Image
from .ranges import Smoothed
from .views import VIEWS, Parts, TracerStreaks

_TRACERS = "tracers"


class Pictures(ABC):
    """What makes pictures in two halves, ``prepare`` and ``draw``: a ``Renderer``, or a ``SideBySide`` of two."""

    image: Image  # the picture on the device

    @abstractmethod
    def resize(self, width: int, height: int) -> None:
        """Another picture size in pixels, from the next ``draw`` on; cheap, and memory only ever grows."""

    @abstractmethod
    def prepare(self) -> None:
        """Copy what the next pictures show out of the simulation's state, as it is now."""

    @abstractmethod
    def keep_with_flow(self) -> None:
        """Have what is remembered from picture to picture go into checkpoints of the flow, and take it from one it is of."""

    @abstractmethod
    def prepared_for(self, look: Look) -> bool:
        """Whether ``draw`` could show this look without reading the simulation's state.

        Another view or quantity, and colours, light and opacity of smoke, need another ``prepare``.
        """

    @abstractmethod
    def draw_image(self, finished: bool = True, smooth: bool = False) -> None:
        """Draw what was prepared, on the device: into ``image``, or else what ``enlarge_into`` goes on from.

        What rays draw has no stairs along edges if it shall be ``smooth``, for about twice the time.
        If that is not what the scene's look asks for by now (see ``prepared_for``), it is prepared first, from the
        state as it is then: a caller that draws in the midst of a step asks before.
        """

    @abstractmethod
    def enlarge_into(self, image: Image) -> None:
        """Fill a larger image with what was drawn unfinished, and lay over it what should be sharp in it.

        These are tracers, legends and labels.
        """

    def draw(self) -> np.ndarray:
        """Draw what was prepared, smoothly; ``(height, width, 3)`` bytes, the first row on top. See ``draw_image``."""
        self.draw_image(smooth=True)
        return self.image.to_numpy()

    def render(self) -> np.ndarray:
        """Draw the present state; ``(height, width, 3)`` bytes, the first row on top."""
        self.prepare()
        return self.draw()


class Renderer(Pictures):
    """Draws one simulation; what it shows follows the simulation's scene at every call.

    A picture is made in two halves. ``prepare`` copies what the view shows out of the simulation; ``draw`` makes a
    picture of the copy, any number of times: with another camera, exposure, background, plane or size, and also while
    a step is under way. Solids alone are not copied: their distances are read as they are.

    Args:
        simulation: What to draw.
        width, height: Of the picture, in pixels; left out, as the scene's output has them.
        spans: What colours and arrows span; the same mapping given to several makes them mean the same in all.

    Raises:
        RuntimeError: if Taichi was re-initialised after the simulation was built.
    """

    def __init__(
        self,
        simulation: Simulation,
        width: int | None = None,
        height: int | None = None,
        spans: dict[str, Smoothed] | None = None,
    ):
        simulation.grid.require_runtime()
        self.simulation = simulation
        wide, high = simulation.scene.picture_size
        self.image = Image(width or wide, height or high)
        self._parts = Parts(simulation, spans)
        self._views = {}
        self._prepared = None

    def _view(self, look: Look):
        if look.view not in self._views:
            self._views[look.view] = VIEWS[look.view](self._parts)
        return self._views[look.view]

    def keep_with_flow(self) -> None:
        """Go into checkpoints of the simulation."""
        self.simulation.kept.add("pictures", self, weakly=True)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What it remembers from picture to picture: what colours and arrows span, and its tracers."""
        spans = {name: span.state() for name, span in self._parts.spans.items()}
        tracers = self._views.get(_TRACERS)
        arrays, words = tracers.state() if isinstance(tracers, TracerStreaks) else ({}, {})
        return arrays, {"spans": spans, _TRACERS: words}

    def restore_state(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> None:
        """Be what ``state`` has found, so that the next picture is what it would have been.

        Raises:
            ValueError: for arrays of other tracers.
        """
        for name, state in numbers["spans"].items():
            self._parts.span(name).restore_state(state)
        if numbers[_TRACERS]:
            view = self._views.setdefault(_TRACERS, TracerStreaks(self._parts))
            view.restore_state(arrays, numbers[_TRACERS])

    def _needs(self, look: Look) -> tuple:
        return (look.view, self._view(look).needs(look))

    def resize(self, width: int, height: int) -> None:
        """Another picture size in pixels."""
        self.image.resize(width, height)

    def prepare(self) -> None:
        """Copy what the next pictures show."""
        self.simulation.grid.require_runtime()
        look = self.simulation.scene.look
        self._view(look).prepare(look)
        self._prepared = self._needs(look)

    def prepared_for(self, look: Look) -> bool:
        """Whether ``draw`` could show this look."""
        return self._prepared == self._needs(look)

    def measure(self) -> None:
        """Find what the colours and arrows of the next picture span; ``draw_image`` does so by itself."""
        look = self.simulation.scene.look
        self._view(look).measure(look)

    def draw_image(self, finished: bool = True, smooth: bool = False) -> None:
        """Draw what was prepared into ``image``; else without what ``enlarge_into`` lays over it."""
        self.simulation.grid.require_runtime()
        look = self.simulation.scene.look
        if not self.prepared_for(look):
            self.prepare()
        self._parts.begin()
        self.image.smooth = smooth
        self._view(look).draw(look, self.image)
        if finished:
            self._parts.finish(self.image)

    def enlarge_into(self, image: Image) -> None:
        """Fill a larger image, with tracers and the legend."""
        enlarge(self.image, image)
        self._parts.finish(image)
