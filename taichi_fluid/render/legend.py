"""The legend: a bar of colours with the quantity's name, its unit and three numbers, drawn into the picture."""

import math
from typing import NamedTuple

import numpy as np

from .._ti import ti
from ..kernels import Array, kernel_family, loop_shape
from . import colour_maps, font
from .image import Image

SMALLEST = 160
"""Pictures that are narrower or lower than this, in pixels, have no legend."""
UNITS = {"temperature": "K", "speed": "m/s", "vorticity": "1/s", "divergence": "1/s", "pressure": "Pa"}
"""Unit of each quantity; one that is not here is a plain number."""
_PAPER, _INK = 0.04, (0.96, 0.96, 0.96)
_PAPER_OPACITY = 0.6


class Layout(NamedTuple):
    """Where a legend stands in its picture, in pixels from the upper left corner.

    Attributes:
        scale: Pixels per pixel of the font.
        panel: Left, top, width and height of the whole.
        bar: The same of the bar of colours.
        numbers: Top of the three numbers, that of the upper end first.
        left: Where text begins.
    """

    scale: int
    panel: tuple[int, int, int, int]
    bar: tuple[int, int, int, int]
    numbers: tuple[int, int, int]
    left: int


def number_text(value: float) -> str:
    """A number with three significant digits, as short as it goes: ``1230``, ``0.0456``, ``7.8e-5``."""
    if not math.isfinite(value):
        return "-"
    text = f"{value:.2e}"
    digits, exponent = text.split("e")
    power = int(exponent)
    if float(text) == 0:
        return "0"
    if -4 < power < 5:
        text = f"{float(text):.{max(2 - power, 0)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{digits.rstrip('0').rstrip('.')}e{power}"


def layout(width: int, height: int, lines: list[str]) -> Layout | None:
    """Where the legend of a picture stands; None in a picture too small for one.

    Args:
        width: Of the picture, in pixels.
        height: Of the picture, in pixels.
        lines: Title, and the three numbers from the upper end of the bar down.
    """
    if min(width, height) < SMALLEST:
        return None
    scale = max(1, round(min(width, height) / 300))
    margin, gap, line = 4 * scale, 3 * scale, font.HEIGHT * scale
    bar_width, bar_height = 9 * scale, max(round(0.36 * min(width, height)), 4 * line)
    wide = [scale * (font.ADVANCE * len(text) - 1) for text in lines]
    panel_width = 2 * margin + max(wide[0], bar_width + gap + max(wide[1:]))
    panel_height = 2 * margin + line + gap + bar_height
    left, top = width - panel_width - margin, height - panel_height - margin
    bar = (left + margin, top + margin + line + gap, bar_width, bar_height)
    numbers = (bar[1], bar[1] + (bar_height - line) // 2, bar[1] + bar_height - line)
    return Layout(scale, (left, top, panel_width, panel_height), bar, numbers, bar[0] + bar_width + gap)


@ti.func
def _blend_pixel(x, y, image: ti.template(), panel: ti.template(), panel_width, left, top, width):
    pixel = (top + y) * width + left + x
    at = 4 * (y * panel_width + x)
    for channel in ti.static(range(3)):
        before = image[3 * pixel + channel]
        image[3 * pixel + channel] = before + panel[at + 3] * (panel[at + channel] - before)


@kernel_family
def legend_kernels(loops):
    each_pixel = loops.each_pixel

    @ti.kernel
    def blend_panel(
        image: Array, panel: Array, panel_width: ti.i32, panel_height: ti.i32, left: ti.i32, top: ti.i32, width: ti.i32
    ):
        each_pixel(panel_width, panel_height, _blend_pixel, (image, panel, panel_width, left, top, width))

    return {"blend_panel": blend_panel}


class Legend:
    """Draws legends; keeps the last one on the device, and draws it anew only when it changes."""

    def __init__(self):
        self._panel = self._shown = None

    def draw(
        self, image: Image, quantity: str, limits: tuple[float, float], colour_map: str, shade: float = 1.0
    ) -> None:
        """Draw the legend of a quantity into the lower right corner; nothing into a picture too small for it.

        Args:
            image: What to draw into.
            quantity: Its name.
            limits: Values at the lower and the upper end of the bar.
            colour_map: Name of the colour map.
            shade: Brightness of the colours.
        """
        low, high = limits
        title = f"{quantity} {UNITS.get(quantity, '')}".strip()
        # What is nothing beside the range is 0: a trace of smoke has no interesting digits.
        numbers = (0.0 if abs(x) < 1e-6 * abs(high - low) else x for x in (high, 0.5 * (low + high), low))
        lines = [title, *map(number_text, numbers)]
        place = layout(image.width, image.height, lines)
        if place is None:
            return
        shown = (lines, place, colour_map, shade)
        if shown != self._shown:
            self._upload(_paint(place, lines, shade * colour_maps.table(colour_map)))
            self._shown = shown
        left, top, width, height = place.panel
        kernels = legend_kernels(loop_shape(2))
        kernels.blend_panel(image.array, self._panel, width, height, left, top, image.width)

    def _upload(self, panel: np.ndarray) -> None:
        if self._panel is None or self._panel.shape[0] < panel.size:
            ti.sync()  # an array in use is never freed on Vulkan
            self._panel = ti.ndarray(ti.f32, 2 * panel.size)
        values = np.zeros(self._panel.shape[0], dtype=np.float32)
        values[: panel.size] = panel.reshape(-1)
        self._panel.from_numpy(values)


def _paint(place: Layout, lines: list[str], table: np.ndarray) -> np.ndarray:
    """The panel as red, green, blue and opacity, ``(height, width, 4)``."""
    left, top, width, height = place.panel
    panel = np.full((height, width, 4), (_PAPER, _PAPER, _PAPER, _PAPER_OPACITY), dtype=np.float32)
    x, y, bar_width, bar_height = place.bar
    rows = np.round(np.linspace(len(table) - 1, 0, bar_height)).astype(int)
    panel[y - top : y - top + bar_height, x - left : x - left + bar_width, :3] = table[rows, None]
    panel[y - top : y - top + bar_height, x - left : x - left + bar_width, 3] = 1.0
    places = [(x, y - 3 * place.scale - font.HEIGHT * place.scale), *((place.left, line) for line in place.numbers)]
    for text, (at_x, at_y) in zip(lines, places, strict=True):
        mask = font.text_mask(text, place.scale)
        part = panel[at_y - top : at_y - top + mask.shape[0], at_x - left : at_x - left + mask.shape[1]]
        part[mask] = (*_INK, 1.0)
    return panel
