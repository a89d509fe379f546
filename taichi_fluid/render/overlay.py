"""Small pictures with opacity that are blended over the picture of a flow: legends, labels."""

from collections.abc import Callable, Hashable

import numpy as np

from .._ti import ti
from ..kernels import Array, int_vector, kernel_family, loop_shape
from . import font
from .image import Image, Screen

_PAPER, _INK = 0.04, (0.96, 0.96, 0.96)
_PAPER_OPACITY = 0.6


@ti.func
def _blend_pixel(x, y, screen, panel: ti.template(), panel_width, corner):
    """Red, green, blue and opacity of a pixel of the panel, whose upper left ``corner`` is this pixel of the screen."""
    at = 4 * (y * panel_width + x)
    before = screen.colour(corner[0] + x, corner[1] + y)
    painted = ti.Vector([panel[at], panel[at + 1], panel[at + 2]])
    screen.put(corner[0] + x, corner[1] + y, before + panel[at + 3] * (painted - before))


@kernel_family
def overlay_kernels(loops):
    Size, each_pixel = int_vector(2), loops.each_pixel

    @ti.kernel
    def blend_panel(image: Array, size: Size, panel: Array, panel_size: Size, corner: Size):
        each_pixel(panel_size, _blend_pixel, (Screen(image, size), panel, panel_size[0], corner))

    return (blend_panel,)


class Overlay:
    """Keeps a panel on the device, and paints it anew only when what it shows has changed."""

    def __init__(self):
        self._panel = self._shown = None
        self._size = (0, 0)

    def draw(self, image: Image, left: int, top: int, shown: Hashable, paint: Callable[[], np.ndarray]) -> None:
        """Blend the panel over the image, within which it lies, from pixel column ``left`` and row ``top`` on.

        As long as what is ``shown`` stays the same, so does the panel, which ``paint`` returns: red, green, blue and
        opacity, ``(height, width, 4)``.
        """
        if shown != self._shown:
            self._upload(paint())
            self._shown = shown
        pair = int_vector(2)
        overlay_kernels(loop_shape(2)).blend_panel(*image.screen, self._panel, pair(*self._size), pair(left, top))

    def _upload(self, panel: np.ndarray) -> None:
        self._size = (panel.shape[1], panel.shape[0])
        if self._panel is None or self._panel.shape[0] < panel.size:
            ti.sync()  # an array in use is never freed on Vulkan
            self._panel = ti.ndarray(ti.f32, 2 * panel.size)
        values = np.zeros(self._panel.shape[0], dtype=np.float32)
        values[: panel.size] = panel.reshape(-1)
        self._panel.from_numpy(values)


def paper(width: int, height: int) -> np.ndarray:
    """An empty panel: dark, and seen through."""
    return np.full((height, width, 4), (_PAPER, _PAPER, _PAPER, _PAPER_OPACITY), dtype=np.float32)


def write(panel: np.ndarray, text: str, left: int, top: int, scale: int) -> None:
    """Write a line of text onto a panel, ``scale`` pixels to one of the font."""
    mask = font.text_mask(text, scale)
    panel[top : top + mask.shape[0], left : left + mask.shape[1]][mask] = (*_INK, 1.0)
