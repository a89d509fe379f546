"""Where a recording goes."""

from pathlib import Path
from typing import NamedTuple

from .files import OutputError, require_writable, require_writable_folder

NOT_WRITTEN = (".png", ".gif", ".avi", ".mov", ".mkv", ".webm", ".jpg", ".jpeg")


class Outputs(NamedTuple):
    """Where a recording goes: one video or a folder of PNG files, and a poster."""

    video: Path | None
    folder: Path | None
    poster: Path

    @classmethod
    def plan(cls, out: Path | None, name: str) -> "Outputs":
        """What ``--out`` means: FILE.mp4, a folder for PNG files, or nothing for NAME.mp4 and NAME.png right here.

        Raises:
            OutputError: if the place cannot be written.
        """
        if out is None:
            out = Path(f"{name}.mp4")
        if out.suffix.lower() == ".mp4":
            require_writable(out, "the output")
            require_writable(out.with_suffix(".png"), "the poster")
            return cls(out, None, out.with_suffix(".png"))
        if out.suffix.lower() in NOT_WRITTEN:
            raise OutputError(
                f"the output {str(out)!r} has a suffix that is not written: give FILE.mp4, or a folder for PNG files."
            )
        require_writable_folder(out, "the output folder")
        if out.is_dir() and any(out.glob("frame_*.png")):
            raise OutputError(
                f"the output folder {str(out)!r} holds the frames of another recording: choose a new one."
            )
        return cls(None, out, out / "poster.png")
