"""The image that every view fills, and the way from light to screen."""

from collections.abc import Sequence

import numpy as np

from .._ti import argument, local, subscript, ti, traced
from ..kernels import float_vector, int_vector, memory_of

FILMIC = (2.51, 0.03, 2.43, 0.59, 0.14)
"""Of Narkowicz (2015): x (a x + b) / (x (c x + d) + e)."""
GAMMA = 2.2


@argument
class Screen:
    """The picture that a kernel fills."""

    image: object  # red, green and blue of each pixel in turn, row after row from the top
    size: object  # width and height in pixels

    @traced
    def height_of(self, y):
        """Height of the middle of a pixel over the lower edge, in pixels."""
        return ti.cast(subscript(self.size, 1) - y, ti.f32) - ti.cast(0.5, ti.f32)

    @traced
    def first(self, x, y):
        """Where the red of a pixel stands; y = 0 is the top row."""
        return local(3 * (y * subscript(self.size, 0) + x))

    @traced
    def colour(self, x, y):
        """What a pixel shows."""
        first = self.first(x, y)
        return ti.Vector([subscript(self.image, first + channel) for channel in range(3)])

    @ti.func
    def put(self, x, y, colour):
        """Store the colour of a pixel."""
        first = self.first(x, y)
        for channel in ti.static(range(3)):
            self.image[first + channel] = colour[channel]


@argument
class Backdrop:
    """What is behind everything, and how light is shown: colours of the upper and the lower edge, and the exposure."""

    top: object
    bottom: object
    exposure: object

    @traced
    def at(self, height_fraction):
        """Vertical gradient; 0 is the lower edge of the image."""
        return self.bottom + height_fraction * (self.top - self.bottom)

    @traced
    def shown(self, light):
        """Light to screen: a filmic curve (Narkowicz 2015), then the display's gamma."""
        a, b, c, d, e = (ti.cast(number, ti.f32) for number in FILMIC)
        x = local(ti.max(light * self.exposure, ti.cast(0.0, ti.f32)))
        x = x * (a * x + b) / (x * (c * x + d) + e)
        return ti.min(x, ti.cast(1.0, ti.f32)) ** ti.cast(1.0 / GAMMA, ti.f32)


def shown_colour(light: Sequence[float], exposure: float) -> tuple[float, ...]:
    """What ``Backdrop.shown`` makes of light, for what is drawn beside the picture."""
    x = np.asarray(light, dtype=np.float64) * exposure
    a, b, c, d, e = FILMIC
    return tuple(np.minimum(x * (a * x + b) / (x * (c * x + d) + e), 1.0) ** (1.0 / GAMMA))


AT_ONCE = 2**17
"""How many values are made bytes at once: what that takes beside the picture stays small, and in the processor's cache."""


class Image:
    """Red, green and blue from 0 to 1, interleaved, row after row from the top, at the start of one flat array.

    Attributes:
        array: The values; long enough for the largest picture so far.
        nothing: Stand-ins for arrays that a kernel takes and does not read; distinct, as Taichi wants them.
        smooth: Whether what is drawn by rays next shall have no stairs along edges, which takes about twice as long.
    """

    def __init__(self, width: int, height: int):
        self.nothing = tuple(ti.ndarray(ti.f32, 1) for _ in range(5))
        self.width, self.height = _checked(width, height)
        self.array = ti.ndarray(ti.f32, 3 * width * height)
        self.smooth, self._edges = False, ti.ndarray(ti.i32, 1)

    @property
    def edges(self):
        """Room to say of each pixel whether it is on an edge; as much as a picture that is ``smooth`` needs."""
        if self.smooth and self._edges.shape[0] < self.width * self.height:
            ti.sync()  # an array in use is never freed on Vulkan
            self._edges = ti.ndarray(ti.i32, self.width * self.height)
        return self._edges

    def or_nothing(self, *arrays) -> tuple:
        """Arrays as a kernel takes them: for each that is None one of ``nothing``."""
        return tuple(self.nothing[k] if array is None else array for k, array in enumerate(arrays))

    def resize(self, width: int, height: int) -> None:
        """Another size, in pixels; the values are undefined until something is drawn. Memory only ever grows."""
        self.width, self.height = _checked(width, height)
        if 3 * width * height > self.array.shape[0]:
            ti.sync()  # an array in use is never freed on Vulkan
            self.array = ti.ndarray(ti.f32, 3 * width * height)

    @property
    def screen(self) -> tuple:
        """As the kernels take it: the members of a ``Screen``."""
        return self.array, int_vector(2)(self.width, self.height)

    def to_numpy(self) -> np.ndarray:
        """As ``(height, width, 3)`` bytes."""
        memory = memory_of(self.array)
        values = self.array.to_numpy() if memory is None else memory
        values = values[: 3 * self.width * self.height].reshape(self.height, self.width, 3)
        picture = np.empty(values.shape, np.uint8)
        rows = max(1, AT_ONCE // (3 * self.width))
        for top in range(0, self.height, rows):
            picture[top : top + rows] = np.clip(values[top : top + rows], 0.0, 1.0) * 255.0 + 0.5
        return picture


def _checked(width: int, height: int) -> tuple[int, int]:
    if width < 1 or height < 1:
        raise ValueError(f"a picture has at least one pixel each way; this would have {width} x {height}")
    return int(width), int(height)


def backdrop_arguments(background: Sequence[Sequence[float]], exposure: float) -> tuple:
    """As the kernels take it, the members of a ``Backdrop``: colours of the upper and the lower edge, brightness."""
    colour = float_vector(3)
    return colour(*background[0]), colour(*background[1]), exposure


def fit_plane(extent: tuple[float, float], image: Image) -> tuple[tuple[float, float], float]:
    """Lower left corner, in cells from the plane's own, and cells per pixel that show a whole plane in the middle.

    Of a plane that has the shape of the picture but for less than a pixel on either side that much is cut off, and no rim is left.
    """
    fits = extent[0] / image.width, extent[1] / image.height
    cells_per_pixel = max(fits)
    if max(image.width - extent[0] / cells_per_pixel, image.height - extent[1] / cells_per_pixel) < 2:
        cells_per_pixel = min(fits)
    left = 0.5 * (extent[0] - image.width * cells_per_pixel)
    low = 0.5 * (extent[1] - image.height * cells_per_pixel)
    return (left, low), cells_per_pixel
