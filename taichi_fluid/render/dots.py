"""Points as round dots of light over a picture: where they are seen, whether they are, and their sum.

Several may meet in one pixel: their light is summed in whole numbers, so that it does not depend on their order.
"""

from .._ti import argument, ti
from ..grid import Grid
from ..kernels import float_vector
from ..operators.interpolation import inside_box
from ..operators.vectors import length
from .camera import View, box_span
from .image import Image, fit_plane

UNIT = 1024.0
"""A unit of light, in the whole numbers that are summed."""


@ti.func
def in_sight(p, place, obstacle):
    """1 unless a solid stands between a point and the eye's place."""
    away = length(place - p)
    way = (place - p) * (ti.f32(1.0) / away)
    leave = ti.min(box_span(p, way, obstacle.n)[1], away)
    t = ti.f32(0.0)
    clear = 1
    while t < leave and clear == 1:
        away = obstacle.depth_at(inside_box(p + t * way, obstacle.n))
        if away < 0:
            clear = 0
        t += ti.max(ti.f32(0.9) * away, ti.f32(0.33))
    return clear


@ti.func
def on_screen(p, size, eye):
    """Pixel of a point, and its depth before the eye; in 2D its place is the lower left corner, in ``right[0]`` cells.

    The pixel's middle is half a pixel from its number.
    """
    place = ti.Vector([ti.f32(0.0), ti.f32(0.0)])
    depth = ti.f32(1.0)
    offset = p - eye.place
    width, height = ti.cast(size[0], ti.f32), ti.cast(size[1], ti.f32)
    if ti.static(p.n == 3):
        depth = offset.dot(eye.forward)
        safe = ti.max(depth, ti.f32(1e-3))
        place[0] = (ti.f32(0.5) + ti.f32(0.5) * offset.dot(eye.right) / (safe * eye.right.norm_sqr())) * width
        place[1] = (ti.f32(0.5) - ti.f32(0.5) * offset.dot(eye.up) / (safe * eye.up.norm_sqr())) * height
    else:
        place[0] = offset[0] / eye.right[0]
        place[1] = height - offset[1] / eye.right[0]
    return place, depth


@argument
class Dots:
    """Round dots of light: that of each pixel so far, and their radius in pixels."""

    light: object
    radius: object

    @ti.func
    def add(self, place, size, colour):
        """Add a round dot of light around a place.

        Several may meet in one pixel, so this is an atomic sum; of integers, whose order does not matter.
        """
        reach = ti.cast(ti.ceil(self.radius), ti.i32)
        left, top = ti.cast(ti.floor(place[0]), ti.i32), ti.cast(ti.floor(place[1]), ti.i32)
        for y in range(top - reach, top + reach + 1):
            for x in range(left - reach, left + reach + 1):
                beside = ti.Vector([ti.cast(x, ti.f32), ti.cast(y, ti.f32)]) + ti.f32(0.5) - place
                weight = ti.f32(1.0) - length(beside) / self.radius
                if weight > 0 and x >= 0 and y >= 0 and x < size[0] and y < size[1]:
                    for channel in ti.static(range(3)):
                        amount = ti.cast(ti.f32(UNIT) * weight * colour[channel] + ti.f32(0.5), ti.i32)
                        ti.atomic_add(self.light[3 * (y * size[0] + x) + channel], amount)


@ti.func
def screen_pixel(x, y, screen, light: ti.template()):
    """Light over a picture: neither can make the other darker, nor both together more than white."""
    first = 3 * (y * screen.size[0] + x)
    before = screen.colour(x, y)
    for channel in ti.static(range(3)):
        added = ti.exp(-ti.cast(light[first + channel], ti.f32) * ti.f32(1.0 / UNIT))
        before[channel] = ti.f32(1.0) - (ti.f32(1.0) - before[channel]) * added
    screen.put(x, y, before)


class LightSum:
    """The light of each channel of a picture, in an array of whole numbers that grows with the picture."""

    def __init__(self):
        self._array = None

    def fit(self, image: Image):
        """The array, long enough for a picture."""
        size = image.array.shape[0]
        if self._array is None or self._array.shape[0] < size:
            ti.sync()  # an array in use is never freed on Vulkan
            self._array = ti.ndarray(ti.i32, size)
        return self._array


def eye_on(grid: Grid, image: Image, view: View | None) -> tuple:
    """As ``on_screen`` takes it: the members of an ``Eye`` with this view, in metres, which is None in 2D."""
    if view is not None:
        return view.in_cells(grid)
    (left, low), cells_per_pixel = fit_plane(grid.shape, image)
    place = ((0.5 + left, 0.5 + low), (0.0, 0.0), (cells_per_pixel, 0.0), (0.0, cells_per_pixel))
    return tuple(float_vector(2)(*vector) for vector in place)
