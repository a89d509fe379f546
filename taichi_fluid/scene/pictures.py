"""Pictures to begin a flow with: files and text as arrays of pixels, and what of them lies in each cell of a 2D grid.

Pixels are NumPy arrays, row 0 on top, of numbers from 0 to 1 or of bytes:

- ``(h, w)`` says how far each pixel is covered, as text does: amounts are proportional to it;
- ``(h, w, 3)`` and ``(h, w, 4)`` are red, green, blue and opacity, encoded for a screen (sRGB) as in any PNG or JPEG.

Dye is drawn as light. So colours are decoded to light first, the inverse of what drawing does at its end, and a thin
layer, evenly lit, looks like the image; a transparent or black pixel leaves nothing. A cell takes the mean of the picture over itself, or over the width of a
pixel where that is wider (then it is linear interpolation): the same picture at any resolution, and neither steps nor
moiré. Nothing here needs Taichi.
"""

import functools
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ..carried import CARRIED, Carried
from ..limits import read_file

LONGEST_EDGE = 8192
"""Of a picture, in pixels: as many as a grid has cells at most."""
MOST_PIXELS = 2**24
"""Of a picture: 64 MiB of memory when it is decoded, whatever the file is packed into."""
MOST_BYTES = 2**26
"""Of its file."""
TEXT_EDGE = 2048
"""Pixels along the longer edge of a text; a grid of as many cells shows it without a blur."""
LEAST_LETTER, MEASURED_LETTER = 32, 256
"""Least font size, in pixels, however long the text; and the one at which its length is measured."""
MOST_LETTERS = 1000
"""In a text."""
LUMINANCE = (0.2126, 0.7152, 0.0722)
"""Of red, green and blue light (ITU-R BT.709)."""
CODECS = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "mjpeg"}
"""Names of the decoders, by what a file begins with."""


def paintable() -> list[str]:
    """What a picture can be painted in."""
    return [name for name, row in CARRIED.items() if row.painted]


class PictureError(ValueError):
    """A picture that cannot be read or painted; the message names what is wrong and says what is allowed."""


class PillowMissing(PictureError):
    """A text that cannot be drawn here; the message says what to install."""


def read_picture(file: str | Path) -> np.ndarray:
    """Pixels of a PNG or JPEG file: ``(h, w, 4)`` bytes, read-only.

    An image that a camera says it took turned is turned upright; mirrored ones, which no camera takes, stay mirrored.

    Raises:
        PictureError: if there is no such file, or it is no PNG or JPEG image, or too large.
    """
    path = os.fspath(file)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise PictureError(f"file is {path!r}; there is no such file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PictureError(f"file is {path!r}, which cannot be read ({reason}); it must be a file") from None
    return _decoded(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=16)  # a scene is checked at each change of a slider
def _decoded(path: str, changed_ns: int, size: int) -> np.ndarray:
    """Decode a file that was last changed at ``changed_ns`` and has ``size`` bytes, which only tell versions apart."""
    import av

    try:
        content = read_file(path, MOST_BYTES)
    except ValueError as error:
        raise PictureError(f"file is {path!r}, which {error}") from None
    codec = next((codec for magic, codec in CODECS.items() if content.startswith(magic)), None)
    if codec is None:
        raise PictureError(f"file is {path!r}; it must be a PNG or JPEG image")
    if codec == "png":  # refused before it is unpacked; of a JPEG the decoder alone knows
        _require_size(path, int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big"))
    try:
        # The decoder alone: PyAV's container layer would guess at formats, and follow links out of some.
        context = av.CodecContext.create(codec, "r")
        context.options = {"max_pixels": str(MOST_PIXELS)}
        frames = context.decode(av.Packet(content)) or context.decode(None)
    except (av.error.FFmpegError, OSError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PictureError(
            f"file is {path!r}, which is damaged ({reason}) or has more than {MOST_PIXELS} pixels; it must be a PNG or "
            "JPEG image"
        ) from None
    if not frames:
        raise PictureError(f"file is {path!r}, which holds no image; it must be a PNG or JPEG image")
    (frame,) = frames
    _require_size(path, frame.width, frame.height)
    upright = np.rot90(frame.to_ndarray(format="rgba"), frame.rotation // 90)
    return _read_only(upright)


def _require_size(path: str, width: int, height: int) -> None:
    if max(width, height) > LONGEST_EDGE or width * height > MOST_PIXELS:
        raise PictureError(
            f"file is {path!r}, which has {width} x {height} pixels; an image has at most {LONGEST_EDGE} along each edge, "
            f"and {MOST_PIXELS} in all"
        )


@functools.lru_cache(maxsize=32)
def text_picture(text: str) -> np.ndarray:
    """Coverage of each pixel by a text of one or more lines: ``(h, w)`` bytes, read-only, cropped to the letters.

    The font is the one that Pillow carries, the package's extra ``text``; lines are centred. However long the text, the
    longer edge has about ``TEXT_EDGE`` pixels.

    Raises:
        PillowMissing: if Pillow is.
        PictureError: if the text is empty or too long or has characters that the font has not.
    """
    if not text.strip():
        raise PictureError(f"text is {text!r}; it must have at least one letter")
    if len(text) > MOST_LETTERS:
        raise PictureError(f"text has {len(text)} characters; it may have {MOST_LETTERS} at most")
    try:
        from PIL import Image, ImageDraw, ImageFont

        font = ImageFont.load_default(MEASURED_LETTER)
    except ImportError as error:
        raise PillowMissing(
            f"text is {text[:40]!r}; drawing text needs Pillow with FreeType ({error}): "
            "pip install 'taichi-fluid[text]'"
        ) from None
    _require_glyphs(text, font)
    ruler = ImageDraw.Draw(Image.new("L", (1, 1)))
    left, top, right, bottom = ruler.multiline_textbbox((0, 0), text, font=font, align="center")
    font = ImageFont.load_default(max(MEASURED_LETTER * TEXT_EDGE / max(right - left, bottom - top), LEAST_LETTER))
    left, top, right, bottom = ruler.multiline_textbbox((0, 0), text, font=font, align="center")
    canvas = Image.new("L", (math.ceil(right - left) + 2, math.ceil(bottom - top) + 2))
    ImageDraw.Draw(canvas).multiline_text((1 - left, 1 - top), text, fill=255, font=font, align="center")
    return _read_only(np.asarray(canvas.crop(canvas.getbbox())))


def _require_glyphs(text: str, font) -> None:
    """Raise PictureError for the first character that the font would draw as an empty box."""
    unknown = bytes(font.getmask("\U0010ffff"))  # no character at all
    for letter in dict.fromkeys(text.replace("\n", "")):
        if bytes(font.getmask(letter)) == unknown:
            raise PictureError(
                f"text is {text[:40]!r}; the font has no {letter!r}, it has the letters, digits and signs of ASCII: "
                "draw others into an image, and give it as file"
            )


def _read_only(pixels: np.ndarray) -> np.ndarray:
    pixels = np.ascontiguousarray(pixels)
    pixels.setflags(write=False)
    return pixels


def picture_bounds(
    shape: Sequence[int], center: Sequence[float], width: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Lower left and upper right corner, m, of a picture of ``shape`` pixels (rows first) that is ``width`` m wide."""
    half = (0.5 * width, 0.5 * width * shape[0] / shape[1])
    return (center[0] - half[0], center[1] - half[1]), (center[0] + half[0], center[1] + half[1])


def require_touch(low: Sequence[float], high: Sequence[float], edges: Sequence[float], what: str) -> None:
    """Raise PictureError unless a picture with these corners and the box share more than an edge; all in m.

    ``what`` is what the message calls the picture.
    """
    for axis, edge in enumerate(edges):
        if high[axis] <= 0 or low[axis] >= edge:
            raise PictureError(
                f"{what} reaches from {low[axis]:g} to {high[axis]:g} m along axis {axis}; it must touch the box, "
                f"which reaches from 0 to {edge:g} m"
            )


def checked_pixels(pixels: np.ndarray) -> np.ndarray:
    """``pixels`` as an array, if it is a picture.

    Raises:
        PictureError: for another shape, another type, or numbers outside 0 to 1.
    """
    pixels = np.asarray(pixels)
    if pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (3,), (4,)) or not pixels.size:
        raise PictureError(f"pixels have shape {pixels.shape}; it must be (h, w), (h, w, 3) or (h, w, 4)")
    if pixels.dtype == np.uint8:
        return pixels
    if not np.issubdtype(pixels.dtype, np.floating):
        raise PictureError(f"pixels are of type {pixels.dtype}; they must be uint8, or floats from 0 to 1")
    low, high = float(pixels.min()), float(pixels.max())
    if not (low >= 0 and high <= 1):  # so also for NaN
        raise PictureError(f"pixels reach from {low:g} to {high:g}; floats must be from 0 to 1")
    return pixels


def cell_amounts(
    pixels: np.ndarray,
    center: Sequence[float],
    width: float,
    quantity: str,
    colour: Sequence[float],
    shape: Sequence[int],
    dx: float,
) -> tuple[tuple[slice, slice], np.ndarray]:
    """What a picture brings into the cells of a grid: at most 1 in each, times ``colour`` for dye.

    Args:
        pixels: The picture; see the module.
        center: Its middle, m.
        width: Its width, m.
        quantity: Name of what is carried. Dye takes red, green and blue, what is no colour their luminance.
        colour: Of the dye where ``pixels`` say only how far they are covered; otherwise a tint, as light.
        shape: Cells along x and y.
        dx: Edge of a cell, m.

    Returns:
        The cells that the picture reaches, and the amounts in them: ``(components, cells along x, cells along y)``.
    """
    low, _ = picture_bounds(pixels.shape, center, width)
    pixel = width / pixels.shape[1]
    windows = [_windows(shape[axis], dx, low[axis], pixel, pixels.shape[1 - axis]) for axis in (0, 1)]
    (across, from_left), (upward, from_below) = windows
    channels = _channels(pixels, CARRIED[quantity], colour)
    means = [_means(_means(channel[::-1], *from_below).T, *from_left) for channel in channels]
    # Rounding of the sums must not take from what is not there, nor add to what is full.
    return (across, upward), np.clip(np.stack(means), 0.0, 1.0)


def _windows(cells: int, dx: float, low: float, pixel: float, count: int) -> tuple[slice, tuple[np.ndarray, ...]]:
    """Along one axis: the cells that see any pixel, and the windows over which they see them, in pixels."""
    middle = (dx * (np.arange(cells) + 0.5) - low) / pixel
    half = 0.5 * max(dx / pixel, 1.0)
    seeing = np.flatnonzero((middle + half > 0) & (middle - half < count))
    if not len(seeing):  # a sliver between the last cell's middle and the edge of the box
        return slice(0, 0), (np.zeros(0), np.zeros(0), np.array(half))
    middle = middle[seeing[0] : seeing[-1] + 1]
    begin, end = np.clip(middle - half, 0, count), np.clip(middle + half, 0, count)
    return slice(int(seeing[0]), int(seeing[-1]) + 1), (begin, end, np.array(half))


def _means(values: np.ndarray, begin: np.ndarray, end: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Means over windows along the first axis, of pixels that are constant each; nothing lies beyond the ends."""
    sums = np.zeros((values.shape[0] + 1, values.shape[1]))
    np.cumsum(values, axis=0, dtype=np.float64, out=sums[1:])

    def up_to(place: np.ndarray) -> np.ndarray:
        whole = np.minimum(place.astype(int), values.shape[0] - 1)
        part = (place - whole)[:, None]
        return (1 - part) * sums[whole] + part * sums[whole + 1]

    return (up_to(end) - up_to(begin)) / (2 * half)


def _channels(pixels: np.ndarray, row: Carried, colour: Sequence[float]) -> Iterator[np.ndarray]:
    """Each component of what is painted, ``(h, w)`` numbers from 0 to 1, one after the other to save memory."""
    opacity = pixels if pixels.ndim == 2 else pixels[..., 3] if pixels.shape[2] == 4 else None
    covered = np.float32(1) if opacity is None else _fractions(opacity)
    light = [np.float32(1)] * 3 if pixels.ndim == 2 else (decoded_light(pixels[..., k]) for k in range(3))
    if row.colours:
        for tint, channel in zip(colour, light, strict=True):
            yield np.float32(tint) * covered * channel
    else:
        luminance = sum(np.float32(weight) * channel for weight, channel in zip(LUMINANCE, light, strict=True))
        for _ in range(row.components):
            yield covered * luminance


def _fractions(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32) / (255 if values.dtype == np.uint8 else 1)


def decoded_light(values: np.ndarray) -> np.ndarray:
    """Light of pixels that are encoded for a screen (IEC 61966-2-1)."""
    if values.dtype == np.uint8:
        return decoded_light(np.arange(256, dtype=np.float32) / 255)[values]
    values = values.astype(np.float32)
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4).astype(np.float32)


def encoded_light(light: np.ndarray) -> np.ndarray:
    """Light as a screen wants it: what ``decoded_light`` takes back."""
    light = np.asarray(light, dtype=np.float64)
    return np.where(light <= 0.0031308, light * 12.92, 1.055 * np.maximum(light, 0.0) ** (1 / 2.4) - 0.055)
