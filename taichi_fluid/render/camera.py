"""An orbit camera."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._ti import argument, local, subscript, ti, traced
from ..grid import Grid
from ..kernels import float_vector
from ..operators.vectors import length
from ..scene import Camera


@argument
class Eye:
    """Where the rays of a picture begin and lead, as a ``View`` has it, in the index space of a grid's cells."""

    place: object
    forward: object
    right: object
    up: object

    @ti.func
    def ray(self, x, y, size):
        """Direction of a pixel's ray, and how high the pixel stands: from -1 at the lower edge to 1."""
        across = (ti.cast(2 * x + 1, ti.f32) / ti.cast(size[0], ti.f32)) - ti.f32(1.0)
        upward = ti.f32(1.0) - (ti.cast(2 * y + 1, ti.f32) / ti.cast(size[1], ti.f32))
        ray = self.forward + across * self.right + upward * self.up
        return ray * (ti.f32(1.0) / length(ray)), upward


@traced
def box_span(start, ray, n):
    """Where a ray enters and leaves the box, in cells along it."""
    half, least = ti.cast(0.5, ti.f32), ti.cast(1e-8, ti.f32)
    slope = local(ti.select(abs(ray) < least, least, ray))
    one, other = local((half - start) / slope), local((ti.cast(n, ti.f32) + half - start) / slope)
    near, far = local(ti.min(one, other)), local(ti.max(one, other))
    enter, leave = ti.cast(0.0, ti.f32), ti.cast(1e9, ti.f32)
    for axis in range(3):
        enter, leave = ti.max(enter, subscript(near, axis)), ti.min(leave, subscript(far, axis))
    return local(enter), local(leave)


class View(NamedTuple):
    """Where the eye is and which way it looks, in metres; ``right`` and ``up`` reach from the middle to the edges."""

    eye: np.ndarray
    forward: np.ndarray
    right: np.ndarray
    up: np.ndarray

    def turned(self, across: float, upward: float) -> "View":
        """That of rays which reach so much farther to the right and up, in parts of the way to the edges."""
        return self._replace(forward=self.forward + across * self.right + upward * self.up)

    def in_cells(self, grid: Grid) -> tuple:
        """As the kernels take it: the members of an ``Eye``."""
        place = [(x - low) / grid.dx + 0.5 for x, low in zip(self.eye, grid.origin, strict=True)]
        return tuple(float_vector(3)(*vector) for vector in (place, self.forward, self.right, self.up))


def orbit_view(camera: Camera, size: Sequence[float], aspect: float) -> View:
    """The view of a camera on a box of ``size`` metres, the second axis up; ``aspect`` is width over height."""
    azimuth, elevation = math.radians(camera.azimuth), math.radians(camera.elevation)
    middle = 0.5 * np.asarray(size) if camera.center is None else np.array(camera.center)
    outward = np.array(
        [math.sin(azimuth) * math.cos(elevation), math.sin(elevation), math.cos(azimuth) * math.cos(elevation)]
    )
    right = np.array([math.cos(azimuth), 0.0, -math.sin(azimuth)])
    half_height = math.tan(0.5 * math.radians(camera.field_of_view))
    return View(
        eye=middle + outward * camera.distance * max(size),
        forward=-outward,
        right=right * half_height * aspect,
        up=np.cross(outward, right) * half_height,
    )
