"""Small pictures with opacity that are blended over the picture of a flow: legends, labels."""

from collections.abc import Callable, Hashable

import numpy as np

from .._ti import ti
from ..kernels import Array, kernel_family, loop_shape
from . import font
from .image import Image

_PAPER, _INK = 0.04, (0.96, 0.96, 0.96)
_PAPER_OPACITY = 0.6


@ti.func
def _blend_pixel(x, y, image: ti.template(), panel: ti.template(), panel_width, left, top, width):
    pixel = (top + y) * width + left + x
    at = 4 * (y * panel_width + x)
    for channel in ti.static(range(3)):
        before = image[3 * pixel + channel]
        image[3 * pixel + channel] = before + panel[at + 3] * (panel[at + channel] - before)


@kernel_family
def overlay_kernels(loops):
    each_pixel = loops.each_pixel

    @ti.kernel
    def blend_panel(
        image: Array, panel: Array, panel_width: ti.i32, panel_height: ti.i32, left: ti.i32, top: ti.i32, width: ti.i32
    ):
        each_pixel(panel_width, panel_height, _blend_pixel, (image, panel, panel_width, left, top, width))

    return {"blend_panel": blend_panel}


class Overlay:
    """Keeps a panel on the device, and paints it anew only when what it shows has changed."""

    def __init__(self):
        self._panel = self._shown = None
        self._width = self._height = 0

    def draw(self, image: Image, left: int, top: int, shown: Hashable, paint: Callable[[], np.ndarray]) -> None:
        """Blend the panel over the image.

        Args:
            image: What to draw into.
            left: First column, in pixels; the panel lies within the image.
            top: First row.
            shown: What the panel shows: as long as it stays the same, so does the panel.
            paint: Paints it: red, green, blue and opacity, ``(height, width, 4)``.
        """
        if shown != self._shown:
            self._upload(paint())
            self._shown = shown
        kernels = overlay_kernels(loop_shape(2))
        kernels.blend_panel(image.array, self._panel, self._width, self._height, left, top, image.width)

    def _upload(self, panel: np.ndarray) -> None:
        self._height, self._width, _ = panel.shape
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
