"""Where a recording goes."""

import contextlib
import os
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from .files import OutputError, require_writable, require_writable_folder
from .numbered import FRAMES, VOLUMES, Numbered

_PICTURES = (".png", ".gif", ".avi", ".mov", ".mkv", ".webm", ".jpg", ".jpeg", ".tif", ".tiff", ".exr")
_NUMBERS = (".npz", ".npy", ".vtk", ".vti", ".vdb", ".ply", ".csv", ".json", ".toml", ".h5")
NOT_WRITTEN = (*_PICTURES, *_NUMBERS)


def part_of(video: Path) -> Path:
    """Where a video stands while it is recorded, and stays where the process is killed: it plays as far as it came."""
    return video.with_name(f"{video.stem}.part{video.suffix}")


class Outputs(NamedTuple):
    """Where a recording goes: one video or a folder of PNG files, and a poster."""

    video: Path | None
    folder: Path | None
    poster: Path

    @classmethod
    def plan(cls, out: Path | None, name: str, *, overwrite: bool = False) -> "Outputs":
        """What ``--out`` means: FILE.mp4, a folder for PNG files, or nothing for NAME.mp4 and NAME.png right here.

        Args:
            out: The place, if one is given.
            name: Of the scene.
            overwrite: Whether a recording that is there already may be replaced; ``make_room`` is for that then.

        Raises:
            OutputError: if the place cannot be written, or holds a recording already.
        """
        if out is None:
            out = Path(f"{name}.mp4")
        if out.suffix.lower() == ".mp4":
            poster = out.with_suffix(".png")
            for path, what in ((out, "the output"), (poster, "the poster"), (part_of(out), "the unfinished output")):
                require_writable(path, what)
                if os.path.lexists(path) and not overwrite:
                    raise OutputError(
                        f"{what} {str(path)!r} is there already: choose another --out, or --overwrite it."
                    )
            return cls(out, None, poster)
        if out.suffix.lower() in NOT_WRITTEN:
            way = " --volumes FOLDER writes volumes." if out.suffix.lower().lstrip(".") in VOLUMES else ""
            raise OutputError(
                f"the output {str(out)!r} has a suffix that is not written: give FILE.mp4, or a folder for PNG files.{way}"
            )
        require_writable_folder(out, "the output folder")
        if not overwrite and out.is_dir() and any(out.glob(FRAMES.pattern)):
            raise OutputError(
                f"the output folder {str(out)!r} holds the frames of another recording: choose a new one, or "
                "--overwrite it."
            )
        return cls(None, out, out / "poster.png")

    def make_room(self) -> None:
        """Remove frames of another recording, and what is left of a video that was never finished.

        Raises:
            OutputError: if a process that lives is recording that video.
        """
        if self.folder:
            FRAMES.remove(self.folder)
        if self.video and part_of(self.video).exists():
            part = part_of(self.video)
            if _is_held(part):
                raise OutputError(f"{str(part)!r} is being recorded by another process: choose another --out.")
            part.unlink()


def require_apart(
    files: Sequence[tuple[str, Path | None]], outputs: Outputs | None, folders: Sequence[tuple[Path, Numbered]]
) -> None:
    """Raise OutputError, in one sentence, if two files of a run are one: what each is, and where.

    Frames of a recording, and what is numbered in ``folders``, are files of theirs; and none has a folder's name.
    """
    taken: dict[Path, str] = {}
    if outputs is not None:
        own = (outputs.video, outputs.video and part_of(outputs.video), outputs.poster)
        taken = {path.resolve(): "an output" for path in own if path is not None}
    frames = [(outputs.folder, FRAMES)] if outputs is not None and outputs.folder is not None else []
    taken |= {folder.resolve(): "a folder" for folder, _ in (*frames, *folders)}
    for what, path in files:
        if path is None:
            continue
        place = path.resolve()
        of_folders = (
            names.one
            for folder, names in (*frames, *folders)
            if place.parent == folder.resolve() and fnmatch(place.name, names.pattern)
        )
        if other := next(of_folders, taken.get(place)):
            raise OutputError(f"{what} {str(path)!r} is also {other} of this run: give another name.")
        taken[place] = what


def require_surfaces(is_liquid_in_3d: bool) -> None:
    """Raise OutputError, in one sentence, unless there are surfaces to write, and what finds them."""
    if not is_liquid_in_3d:
        raise OutputError(
            "--surfaces is given and the scene has no liquid in 3D: give it a [liquid], or leave that out."
        )
    try:
        import skimage  # noqa: F401
    except ImportError:
        raise OutputError(
            "--surfaces needs scikit-image, which is not installed: pip install 'taichi-fluid[surface]', or leave it out."
        ) from None


def _is_held(path: Path) -> bool:
    """Whether a process that lives writes a video there."""
    with contextlib.suppress(ImportError):
        import fcntl

        with path.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:  # a file system without locks
                return False
    return False
