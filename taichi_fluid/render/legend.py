"""The legend: a bar of colours with the quantity's name, its unit and three numbers, drawn into the picture."""

import math
from typing import NamedTuple

import numpy as np

from ..carried import unit_of
from . import colour_maps, font
from .image import Image
from .overlay import Overlay, paper, write

SMALLEST = 160
"""Pictures that are narrower or lower than this, in pixels, have no legend."""


class Layout(NamedTuple):
    """Where a legend stands in its picture, in pixels from the upper left corner."""

    scale: int  # pixels per pixel of the font
    panel: tuple[int, int, int, int]  # left, top, width and height of the whole
    bar: tuple[int, int, int, int]  # the same of the bar of colours
    numbers: tuple[int, int, int]  # top of the three numbers, that of the upper end first
    left: int  # where text begins


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
    """Where the legend of a picture of so many pixels stands; None in one too small.

    Its ``lines`` are a title, and the three numbers from the upper end of the bar down.
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


class Legend:
    """Draws legends; keeps the last one on the device, and paints it anew only when it changes."""

    def __init__(self):
        self._overlay = Overlay()

    def draw(
        self, image: Image, quantity: str, limits: tuple[float, float], colour_map: str, shade: float = 1.0
    ) -> None:
        """Draw the legend of a quantity into the lower right corner; nothing into a picture too small for it.

        ``limits`` are the values at the lower and the upper end of the bar, ``shade`` is the brightness of its colours.
        """
        low, high = limits
        unit = unit_of(quantity)
        title = quantity if unit == "1" else f"{quantity} {unit}"
        # What is nothing beside the range is 0: a trace of smoke has no interesting digits.
        numbers = (0.0 if abs(x) < 1e-6 * abs(high - low) else x for x in (high, 0.5 * (low + high), low))
        lines = [title, *map(number_text, numbers)]
        place = layout(image.width, image.height, lines)
        if place is None:
            return
        left, top, *_ = place.panel
        shown = (*lines, place, colour_map, shade)
        self._overlay.draw(image, left, top, shown, lambda: _paint(place, lines, shade * colour_maps.table(colour_map)))


def _paint(place: Layout, lines: list[str], table: np.ndarray) -> np.ndarray:
    """The panel as red, green, blue and opacity, ``(height, width, 4)``."""
    left, top, width, height = place.panel
    panel = paper(width, height)
    x, y, bar_width, bar_height = place.bar
    rows = np.round(np.linspace(len(table) - 1, 0, bar_height)).astype(int)
    panel[y - top : y - top + bar_height, x - left : x - left + bar_width, :3] = table[rows, None]
    panel[y - top : y - top + bar_height, x - left : x - left + bar_width, 3] = 1.0
    places = [(x, y - 3 * place.scale - font.HEIGHT * place.scale), *((place.left, line) for line in place.numbers)]
    for text, (at_x, at_y) in zip(lines, places, strict=True):
        write(panel, text, at_x - left, at_y - top, place.scale)
    return panel
