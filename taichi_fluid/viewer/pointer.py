"""From a place in the picture to a place in the box, and what a drag of the mouse does to the camera."""

import math
from typing import NamedTuple

import numpy as np

from ..render.camera import orbit_view
from ..render.image import fit_plane
from ..render.ranges import AXES
from ..scene import Camera, Scene
from ..scene.liquid import PLANES

DEGREES_PER_PICTURE = 180.0
"""How far a drag across the whole picture turns the camera."""
ZOOM_PER_PICTURE = 4.0
"""By what a drag over the whole height divides the distance of the camera."""


class Extent(NamedTuple):
    """Size of a picture in pixels."""

    width: int
    height: int


def point_under(scene: Scene, u: float, v: float, extent: Extent) -> np.ndarray | None:
    """The point of the box, in metres, that the pointer is on; None beside the box.

    In 2D the one in the picture; in 3D the one on the slice that is shown, or on the plane through the middle of the
    box that faces the camera.

    Args:
        scene: What is shown.
        u: Place in the picture, from 0 at its left edge to 1.
        v: Place in the picture, from 0 at its lower edge to 1.
        extent: Of the picture.
    """
    size = np.array(scene.domain.shape) * scene.domain.dx
    if scene.dim == 2 or scene.look.view in PLANES:
        point = _on_plane(scene, u, v, extent)
    else:
        view = orbit_view(scene.camera, size, extent.width / extent.height)
        ray = view.forward + (2 * u - 1) * view.right + (2 * v - 1) * view.up
        # The plane through the middle at a right angle to the view.
        depth = (0.5 * size - view.eye) @ view.forward
        if depth <= 0:  # behind the eye
            return None
        point = view.eye + ray * depth
    return point if ((point >= 0) & (point <= size)).all() else None


def _on_plane(scene: Scene, u: float, v: float, extent: Extent) -> np.ndarray:
    shape, dx, look = scene.domain.shape, scene.domain.dx, scene.look
    horizontal, vertical = AXES[look.axis] if scene.dim == 3 else (0, 1)
    (left, low), cells_per_pixel = fit_plane((shape[horizontal], shape[vertical]), extent)
    point = np.zeros(scene.dim)
    point[horizontal] = (left + u * extent.width * cells_per_pixel) * dx
    point[vertical] = (low + v * extent.height * cells_per_pixel) * dx
    if scene.dim == 3:
        point[look.axis] = look.position * shape[look.axis] * dx
    return point


def orbited(camera: Camera, du: float, dv: float) -> dict[str, float]:
    """Changes of the scene after a drag by ``du`` and ``dv`` pictures: the box follows the pointer."""
    azimuth = (camera.azimuth - DEGREES_PER_PICTURE * du + 180.0) % 360.0 - 180.0
    elevation = min(max(camera.elevation - DEGREES_PER_PICTURE * dv, -89.0), 89.0)
    return {"camera.azimuth": azimuth, "camera.elevation": elevation}


def zoomed(camera: Camera, pictures: float) -> dict[str, float]:
    """Changes of the scene after a zoom; up, which is positive, comes nearer."""
    return {"camera.distance": min(max(camera.distance * ZOOM_PER_PICTURE**-pictures, 0.3), 50.0)}


def panned(scene: Scene, du: float, dv: float, extent: Extent) -> dict[str, list[float]]:
    """Changes of the scene after a drag that takes the middle of the view along."""
    size = np.array(scene.domain.size)
    view = orbit_view(scene.camera, size, extent.width / extent.height)
    reach = scene.camera.distance * max(size)
    center = np.array(scene.camera.center or 0.5 * size) - 2 * reach * (du * view.right + dv * view.up)
    # Not so far that the box is lost.
    return {"camera.center": [float(x) for x in np.clip(center, -size, 2 * size)]}


def drag_velocity(start: np.ndarray, end: np.ndarray, seconds: float, push: float, fastest: float) -> list[float]:
    """Velocity in m/s that a drag between two points within ``seconds`` gives; no more than ``fastest``."""
    velocity = push * (end - start) / max(seconds, 1e-3)
    speed = math.sqrt(float(velocity @ velocity))
    return [float(x) for x in velocity * min(1.0, fastest / speed if speed > 0 else 1.0)]
