"""MP4 files through PyAV, which is imported only here and only when a video is asked for."""

import contextlib
import os
import queue
import tempfile
import threading
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from .files import OutputError, set_usual_permissions

BT709, SRGB_TRANSFER = 1, 13
"""Numbers of ITU-T H.273: primaries and matrix of high definition and of sRGB, and the curve of sRGB (IEC 61966-2-1)."""


class VideoWriter:
    """Writes H.264 in an MP4 under a temporary name; ``close`` finishes it and gives it its own.

    Args:
        path: Where the video shall stand.
        width, height: Of the pictures, in pixels; an odd one is cropped by one, which H.264 asks for.
        fps: Pictures in a second.
        preset: How much effort the encoder spends, as x264 names it.

    Raises:
        OutputError: if PyAV or its H.264 encoder is missing.
    """

    def __init__(self, path: Path, width: int, height: int, fps: float, preset: str = "medium"):
        try:
            import av
        except ImportError as error:
            raise OutputError(
                f"a video needs PyAV ({error}): 'pip install av', or give --out a folder to get PNG files."
            ) from None
        self._av, self.path, self.frames = av, path, 0
        self._width, self._height = width // 2 * 2, height // 2 * 2
        handle, self._temporary = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        set_usual_permissions(Path(self._temporary))
        try:
            self._container = av.open(self._temporary, "w", format="mp4", options={"movflags": "faststart"})
        except BaseException:
            Path(self._temporary).unlink(missing_ok=True)
            raise
        try:
            stream = self._container.add_stream("libx264", rate=Fraction(fps).limit_denominator(100_000))
        except Exception as error:
            self.discard()
            raise OutputError(
                f"this PyAV has no H.264 encoder ({error}); give --out a folder to get PNG files."
            ) from None
        stream.width, stream.height, stream.pix_fmt = self._width, self._height, "yuv420p"
        stream.options = {"crf": "18", "preset": preset}
        # Players guess at what a file does not say, and many guess BT.709. The curve is what pictures are encoded with:
        # tagged bt709, a player that manages colours (QuickTime) would show them lighter.
        context = stream.codec_context
        context.colorspace = context.color_primaries = BT709
        context.color_trc, context.color_range = SRGB_TRANSFER, av.video.reformatter.ColorRange.MPEG
        self._stream = stream

    def write(self, picture: np.ndarray) -> None:
        """Append ``(height, width, 3)`` bytes, first row on top."""
        cropped = np.ascontiguousarray(picture[: self._height, : self._width])
        frame = self._av.VideoFrame.from_ndarray(cropped, format="rgb24")
        frame = frame.reformat(format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG")
        for packet in self._stream.encode(frame):
            self._container.mux(packet)
        self.frames += 1

    def close(self) -> None:
        """Finish the file and give it its name; a video without pictures is dropped."""
        if not self.frames:
            self.discard()
            return
        try:
            for packet in self._stream.encode():
                self._container.mux(packet)
            self._container.close()
            os.replace(self._temporary, self.path)
        finally:
            Path(self._temporary).unlink(missing_ok=True)

    def discard(self) -> None:
        """Drop what was written."""
        try:
            self._container.close()
        finally:
            Path(self._temporary).unlink(missing_ok=True)


class LiveVideo:
    """Records pictures as they come, at any pace, into a video that plays at the pace at which they came.

    Encoding happens in a thread of its own. Where it cannot keep up, pictures are left out and the one before stays.

    Args:
        path: Where the video shall stand.
        width, height: Of the video; a picture of another size is scaled to it.
        fps: Pictures in a second of the video.
        clock: What says the time, in seconds.

    Attributes:
        error: What went wrong in the thread, if anything did.
    """

    WAITING = 8
    """Pictures that may wait for the encoder."""

    def __init__(self, path: Path, width: int, height: int, fps: float = 30.0, clock=time.monotonic):
        self.path, self.error = path, None
        self._writer = VideoWriter(path, width, height, fps, preset="veryfast")
        self._size, self._fps, self._clock = (height, width), fps, clock
        self._begin: float | None = None
        self._sent = 0
        self._shown: np.ndarray | None = None
        self._queue: queue.Queue = queue.Queue(maxsize=self.WAITING)
        self._thread = threading.Thread(target=self._encode, daemon=True)
        self._thread.start()

    @property
    def seconds(self) -> float:
        """Length of what was taken so far."""
        return self._sent / self._fps

    @property
    def due(self) -> bool:
        """Whether ``offer`` would take a picture now."""
        return self._begin is None or (self._due(self._clock()) > 0 and not self._queue.full())

    def offer(self, picture: np.ndarray) -> None:
        """Take ``(height, width, 3)`` bytes as what is seen from now on."""
        now = self._clock()
        if self._begin is None:
            self._begin = now
        elif self._due(now) <= 0 or self._queue.full():
            return
        else:
            self._show(self._due(now))
        self._shown = _fitted(picture, *self._size)

    def _due(self, now: float) -> int:
        """How many pictures of the video the one before was seen for."""
        assert self._begin is not None
        return int((now - self._begin) * self._fps + 1e-6) - self._sent

    def _show(self, copies: int) -> None:
        self._queue.put((self._shown, copies))
        self._sent += copies

    def close(self) -> None:
        """Wait for the encoder and finish the file; ``error`` says whether it is whole."""
        if self._begin is not None:
            self._show(max(self._due(self._clock()), 1))
        self._queue.put(None)
        self._thread.join()

    def _encode(self) -> None:
        ended = False
        try:
            while (item := self._queue.get()) is not None:
                picture, copies = item
                for _ in range(copies):
                    self._writer.write(picture)
            ended = True
            self._writer.close()
        except Exception as error:
            self.error = error
            with contextlib.suppress(Exception):
                self._writer.discard()
            while not ended and self._queue.get() is not None:  # so that nobody waits for room
                pass


def _fitted(picture: np.ndarray, height: int, width: int) -> np.ndarray:
    """The picture at another size, each pixel the nearest one, with bars beside it where the shapes differ; a copy."""
    if picture.shape[:2] == (height, width):
        return picture.copy()
    scale = min(height / picture.shape[0], width / picture.shape[1])
    high, wide = max(round(scale * picture.shape[0]), 1), max(round(scale * picture.shape[1]), 1)
    rows = np.arange(high) * picture.shape[0] // high
    columns = np.arange(wide) * picture.shape[1] // wide
    fitted = np.zeros((height, width, 3), dtype=np.uint8)
    top, left = (height - high) // 2, (width - wide) // 2
    fitted[top : top + high, left : left + wide] = picture[rows[:, None], columns[None, :]]
    return fitted
