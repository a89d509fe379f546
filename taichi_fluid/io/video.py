"""MP4 files through PyAV, which is imported only here and only when a video is asked for."""

import os
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np

from .files import OutputError, set_usual_permissions


class VideoWriter:
    """Writes H.264 in an MP4 under a temporary name; ``close`` finishes it and gives it its own.

    Args:
        path: Where the video shall stand.
        width, height: Of the pictures, in pixels; an odd one is cropped by one, which H.264 asks for.
        fps: Pictures in a second.

    Raises:
        OutputError: if PyAV or its H.264 encoder is missing.
    """

    def __init__(self, path: Path, width: int, height: int, fps: float):
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
        stream.options = {"crf": "18", "preset": "medium"}
        self._stream = stream

    def write(self, picture: np.ndarray) -> None:
        """Append ``(height, width, 3)`` bytes, first row on top."""
        cropped = np.ascontiguousarray(picture[: self._height, : self._width])
        frame = self._av.VideoFrame.from_ndarray(cropped, format="rgb24")
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
