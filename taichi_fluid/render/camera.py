"""An orbit camera."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..grid import Grid
from ..scene import Camera


class View(NamedTuple):
    """Where the eye is and which way it looks, in metres; ``right`` and ``up`` reach from the middle to the edges."""

    eye: np.ndarray
    forward: np.ndarray
    right: np.ndarray
    up: np.ndarray

    def eye_in_cells(self, grid: Grid) -> list[float]:
        """The eye in the index space of a grid's cells, in which the rays march."""
        return [(x - low) / grid.dx + 0.5 for x, low in zip(self.eye, grid.origin, strict=True)]


def orbit_view(camera: Camera, size: Sequence[float], aspect: float) -> View:
    """The view of a camera on a box of ``size`` metres, the second axis up; ``aspect`` is width over height."""
    azimuth, elevation = math.radians(camera.azimuth), math.radians(camera.elevation)
    middle = 0.5 * np.asarray(size) if camera.center is None else np.array(camera.center)
    outward = np.array(
        [
            math.sin(azimuth) * math.cos(elevation),
            math.sin(elevation),
            math.cos(azimuth) * math.cos(elevation),
        ]
    )
    right = np.array([math.cos(azimuth), 0.0, -math.sin(azimuth)])
    half_height = math.tan(0.5 * math.radians(camera.field_of_view))
    return View(
        eye=middle + outward * camera.distance * max(size),
        forward=-outward,
        right=right * half_height * aspect,
        up=np.cross(outward, right) * half_height,
    )
