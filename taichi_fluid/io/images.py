"""PNG files, and sheets of several pictures."""

import math
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .._ti import ti
from .files import whole_file

PNG_END = b"\x00\x00\x00\x00IEND\xaeB`\x82"


def write_png(path: Path | str, picture: np.ndarray) -> None:
    """Write ``(height, width, 3)`` bytes, first row on top, as PNG; whole or not at all."""
    path = Path(path)
    # Taichi's own encoder, which has the first axis to the right and the second one up.
    turned = np.ascontiguousarray(picture[::-1].transpose(1, 0, 2))
    with whole_file(path) as temporary, tempfile.TemporaryDirectory() as folder:
        # It knows no names that are not UTF-8.
        known = temporary if _is_utf8(temporary) else Path(folder) / "picture.png"
        ti.tools.imwrite(turned, str(known))
        if known is not temporary:
            shutil.copyfile(known, temporary)
        # It does not say when the disk is full.
        if temporary.read_bytes()[-12:] != PNG_END:
            raise OSError(f"the picture {str(path)!r} could not be written whole; is the disk full?")


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def contact_sheet(pictures: Sequence[np.ndarray], columns: int = 3, gap: int = 4) -> np.ndarray:
    """Pictures of one size side by side, row after row, with a dark gap between them."""
    height, width, _ = pictures[0].shape
    columns = min(columns, len(pictures))
    rows = math.ceil(len(pictures) / columns)
    sheet = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap, 3), 16, dtype=np.uint8)
    for i, picture in enumerate(pictures):
        top, left = (i // columns) * (height + gap), (i % columns) * (width + gap)
        sheet[top : top + height, left : left + width] = picture
    return sheet


def halved(picture: np.ndarray) -> np.ndarray:
    """Half as wide and high, each pixel the mean of four."""
    height, width = picture.shape[0] // 2 * 2, picture.shape[1] // 2 * 2
    even = picture[:height, :width]
    total = even[::2, ::2].astype(np.uint16) + 2
    for top, left in ((1, 0), (0, 1), (1, 1)):
        total += even[top::2, left::2]
    return (total // 4).astype(np.uint8)
