"""What a session leaves in a folder: files with names of their own."""

import contextlib
import itertools
from pathlib import Path

from ..io.files import whole_file
from ..io.outputs import part_of
from ..scene import Scene


def claimed_name(folder: Path, name: str, suffix: str) -> Path:
    """The first free name in a folder, taken by an empty file, as other windows may write there too.

    Raises:
        OSError: if nothing can be written there.
    """
    for count in itertools.count(1):
        path = folder / f"{name}_{count:03d}{suffix}"
        with contextlib.suppress(FileExistsError):
            path.touch(exist_ok=False)
            if not part_of(path).exists():
                return path
            path.unlink()
    raise AssertionError("numbers do not end")


def write_scene(path: Path, scene: Scene) -> None:
    """Write a scene as TOML, with the files it reads named in full.

    Raises:
        SceneError: if such a scene cannot be; so OSError.
    """
    files = {key: str(Path(file).resolve()) for key, file in scene.files.items()}
    text = scene.with_values(files).dumps()
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def reason(error: Exception) -> str:
    """Why something could not be written, without numbers and names that only the program knows."""
    return (getattr(error, "strerror", None) or str(error)).rstrip(".")


def drop_empty(path: Path | None) -> None:
    """Give up a name that was claimed for a file which did not come to be."""
    if path is not None:
        with contextlib.suppress(OSError):
            if path.stat().st_size == 0:
                path.unlink()
