"""MP4 files through PyAV, which is imported only here and only when a video is asked for."""

import contextlib
import os
import queue
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .files import OutputError, whole_file
from .outputs import part_of

BT709, SRGB_TRANSFER = 1, 13
"""Numbers of ITU-T H.273: primaries and matrix of high definition and of sRGB, and the curve of sRGB (IEC 61966-2-1)."""


class VideoWriter:
    """Writes H.264 in an MP4 that plays as far as it has come, whatever ends the process.

    It stands beside its place as ``NAME.part.mp4`` (see ``outputs.part_of``), fragmented (ISO/IEC 14496-12, movie
    fragments): each second of it is whole by itself and on the disk before the next one begins, and no picture waits for
    later ones. ``close`` copies what is encoded into an ordinary file, which says how long it is, and gives that its name.

    Args:
        path: Where the video shall stand; an empty file there, which keeps its name free, goes.
        width, height: Of the pictures, in pixels; an odd one is cropped by one, which H.264 asks for.
        fps: Pictures in a second.
        preset: How much effort the encoder spends, as x264 names it.

    Raises:
        OutputError: if PyAV or its H.264 encoder is missing, or what another recording has left is in the way.
    """

    def __init__(self, path: Path, width: int, height: int, fps: float, preset: str = "medium"):
        try:
            import av
        except ImportError as error:
            raise OutputError(
                f"a video needs PyAV ({error}): 'pip install av', or give --out a folder to get PNG files."
            ) from None
        self._av, self.path, self.frames = av, path, 0
        self._broken: OSError | None = None
        self._width, self._height = width // 2 * 2, height // 2 * 2
        self._part = part_of(path)
        try:
            # Unbuffered, and not opened by FFmpeg, which knows no names that are not UTF-8.
            self._file = self._part.open("xb", buffering=0)
        except FileExistsError:
            raise OutputError(
                f"{str(self._part)!r} is there already, of a recording that runs or was broken off: rename or remove it."
            ) from None
        try:
            _hold(self._file)
            options = {"movflags": "frag_keyframe+empty_moov+default_base_moof", "flush_packets": "1"}
            self._container = av.open(self._file, "w", format="mp4", options=options)
        except BaseException:
            self._drop()
            raise
        try:
            stream = self._container.add_stream("libx264", rate=Fraction(fps).limit_denominator(100_000))
        except Exception as error:
            self.discard()
            raise OutputError(
                f"this PyAV has no H.264 encoder ({error}); give --out a folder to get PNG files."
            ) from None
        stream.width, stream.height, stream.pix_fmt = self._width, self._height, "yuv420p"
        stream.options = {"crf": "18", "preset": preset, "tune": "zerolatency"}
        # Players guess at what a file does not say, and many guess BT.709. The curve is what pictures are encoded with:
        # tagged bt709, a player that manages colours (QuickTime) would show them lighter.
        context = stream.codec_context
        context.gop_size = max(1, int(fps))
        context.colorspace = context.color_primaries = BT709
        context.color_trc, context.color_range = SRGB_TRANSFER, av.video.reformatter.ColorRange.MPEG
        self._stream = stream
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_size == 0:
                path.unlink()

    def write(self, picture: np.ndarray) -> None:
        """Append ``(height, width, 3)`` bytes, first row on top."""
        cropped = np.ascontiguousarray(picture[: self._height, : self._width])
        frame = self._av.VideoFrame.from_ndarray(cropped, format="rgb24")
        frame = frame.reformat(format="yuv420p", dst_colorspace="ITU709", dst_color_range="MPEG")
        self._encode(frame)
        self.frames += 1

    def close(self) -> None:
        """Finish the file and give it its name; a video without pictures is dropped.

        Raises:
            OSError: if it cannot be written whole, as on a full disk; what plays of it stays as ``NAME.part.mp4``.
        """
        if self._broken is not None:
            raise self._broken
        if not self.frames:
            self.discard()
            return
        self._encode(None)
        try:
            self._container.close()
            os.fsync(self._file.fileno())
            self._make_whole()
            self._drop()
        except OSError as error:
            self._break(error)
            raise

    def _make_whole(self) -> None:
        """Copy what is encoded into a file without fragments."""
        with whole_file(self.path) as temporary, self._part.open("rb") as part, temporary.open("w+b") as file:
            with self._av.open(part) as source, self._av.open(file, "w", format="mp4") as copy:
                stream = copy.add_stream_from_template(source.streams.video[0])
                for packet in source.demux(video=0):
                    if packet.dts is not None:  # which the last one, without contents, has not
                        packet.stream = stream
                        copy.mux(packet)
            file.flush()
            os.fsync(file.fileno())

    def discard(self) -> None:
        """Drop what was written."""
        try:
            self._container.close()
        finally:
            self._drop()

    def _encode(self, frame: Any) -> None:
        """Encode a picture, or with None those that wait."""
        try:
            for packet in self._stream.encode(frame):
                self._container.mux(packet)
        except OSError as error:
            self._break(error)
            raise

    def _break(self, error: OSError) -> None:
        """Keep what plays of a video that cannot go on, and nothing else."""
        self._broken = error
        with contextlib.suppress(Exception):
            self._container.close()
        self._file.close()
        try:
            with self._part.open("rb") as file, self._av.open(file) as container:
                plays = not next(container.demux(video=0)).is_corrupt
        except (OSError, StopIteration):
            plays = False
        if not plays:
            self._part.unlink(missing_ok=True)

    def _drop(self) -> None:
        if not self._file.closed:
            self._file.close()
            self._part.unlink(missing_ok=True)


def _hold(file: BinaryIO) -> None:
    """Keep others from taking a file for one that nobody writes any more, for as long as this process lives."""
    with contextlib.suppress(ImportError, OSError):  # Windows does so by itself, some file systems cannot
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
