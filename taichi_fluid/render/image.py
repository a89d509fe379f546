"""The image that every view fills, and the way from light to screen."""

from collections.abc import Sequence

import numpy as np

from .._ti import ti

FILMIC = (2.51, 0.03, 2.43, 0.59, 0.14)
"""Of Narkowicz (2015): x (a x + b) / (x (c x + d) + e)."""
GAMMA = 2.2


@ti.func
def background_at(height_fraction, top, bottom):
    """Vertical gradient; 0 is the lower edge of the image."""
    return bottom + height_fraction * (top - bottom)


@ti.func
def tone_map(colour, exposure):
    """Light to screen: a filmic curve (Narkowicz 2015), then the display's gamma."""
    x = ti.max(colour * exposure, ti.f32(0.0))
    above = x * (ti.f32(FILMIC[0]) * x + ti.f32(FILMIC[1]))
    below = x * (ti.f32(FILMIC[2]) * x + ti.f32(FILMIC[3])) + ti.f32(FILMIC[4])
    return ti.min(above / below, ti.f32(1.0)) ** ti.f32(1.0 / GAMMA)


def shown_colour(light: Sequence[float], exposure: float) -> tuple[float, ...]:
    """What ``tone_map`` makes of light, for what is drawn beside the picture."""
    x = np.asarray(light, dtype=np.float64) * exposure
    a, b, c, d, e = FILMIC
    return tuple(np.minimum(x * (a * x + b) / (x * (c * x + d) + e), 1.0) ** (1.0 / GAMMA))


@ti.func
def write_pixel(image: ti.template(), pixel, colour):
    """Store a colour at the ``pixel``-th place of an image."""
    for channel in ti.static(range(3)):
        image[3 * pixel + channel] = colour[channel]


class Image:
    """Red, green and blue from 0 to 1, interleaved, row after row from the top, at the start of one flat array.

    Attributes:
        array: The values; long enough for the largest picture so far.
        nothing: Stand-ins for arrays that a kernel takes and does not read; distinct, as Taichi wants them.
    """

    def __init__(self, width: int, height: int):
        self.nothing = tuple(ti.ndarray(ti.f32, 1) for _ in range(4))
        self.width, self.height = _checked(width, height)
        self.array = ti.ndarray(ti.f32, 3 * width * height)

    def resize(self, width: int, height: int) -> None:
        """Another size, in pixels; the values are undefined until something is drawn. Memory only ever grows."""
        self.width, self.height = _checked(width, height)
        if 3 * width * height > self.array.shape[0]:
            ti.sync()  # an array in use is never freed on Vulkan
            self.array = ti.ndarray(ti.f32, 3 * width * height)

    def to_numpy(self) -> np.ndarray:
        """As ``(height, width, 3)`` bytes."""
        values = self.array.to_numpy()[: 3 * self.width * self.height].reshape(self.height, self.width, 3)
        return (np.clip(values, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)


def _checked(width: int, height: int) -> tuple[int, int]:
    if width < 1 or height < 1:
        raise ValueError(f"a picture has at least one pixel each way; this would have {width} x {height}")
    return int(width), int(height)


def fit_plane(extent: tuple[float, float], image: Image) -> tuple[tuple[float, float], float]:
    """Lower left corner, in cells from the plane's own, and cells per pixel that show a whole plane in the middle."""
    cells_per_pixel = max(extent[0] / image.width, extent[1] / image.height)
    left = 0.5 * (extent[0] - image.width * cells_per_pixel)
    low = 0.5 * (extent[1] - image.height * cells_per_pixel)
    return (left, low), cells_per_pixel
