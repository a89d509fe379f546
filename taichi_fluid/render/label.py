"""A label in the upper left corner of a picture."""

from collections.abc import Sequence

import numpy as np

from . import font
from .image import Image
from .overlay import Overlay, paper, write

FITS, ENOUGH = 0.9, 0.5
"""Part of a picture's width that a label may take, and of which letters of twice the font's size take no more."""
HEIGHT = 160
"""Rows of a picture for each pixel of the label's letters."""
LEAST_HEIGHT = 100
"""Pictures that are lower than this, in pixels, have no label."""


def label_scale(width: int, height: int, lines: Sequence[str]) -> int:
    """Pixels of the picture to one of the font; 0 in a picture that is too small for the lines."""
    if height < LEAST_HEIGHT:
        return 0
    whole = font.ADVANCE * max(map(len, lines)) + 3
    return min(max(int(ENOUGH * width / whole), min(int(FITS * width / whole), 2)), max(round(height / HEIGHT), 1))


class Label:
    """Draws a few lines of text; keeps the last ones on the device."""

    def __init__(self):
        self._overlay = Overlay()

    def draw(self, image: Image, lines: Sequence[str]) -> None:
        """Draw the lines, of letters that ``font`` has, into a picture; nothing into one that is too small."""
        scale = label_scale(image.width, image.height, lines)
        if scale:
            self._overlay.draw(image, 2 * scale, 2 * scale, (*lines, scale), lambda: _paint(lines, scale))


def _paint(lines: Sequence[str], scale: int) -> np.ndarray:
    """The panel, ``(height, width, 4)``: a border of two pixels of the font, and three between the lines."""
    border, line = 2 * scale, (font.HEIGHT + 3) * scale
    width = (font.ADVANCE * max(map(len, lines)) - 1) * scale
    panel = paper(width + 2 * border, line * len(lines) - 3 * scale + 2 * border)
    for i, text in enumerate(lines):
        write(panel, text, border, border + i * line, scale)
    return panel
