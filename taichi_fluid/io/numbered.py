"""Folders of files that are numbered, one for each picture of a run."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from .files import OutputError, require_writable_folder


class Numbered(NamedTuple):
    """How such files are called: ``STEM_00000.SUFFIX`` and so on.

    Attributes:
        stem: What the names begin with.
        suffix: What they end in.
        one: What one of them is, in words.
    """

    stem: str
    suffix: str
    one: str

    @property
    def pattern(self) -> str:
        """What finds them in a folder."""
        return f"{self.stem}_{'[0-9]' * 5}{self.suffix}"

    def name(self, number: int) -> str:
        """The name of one."""
        return f"{self.stem}_{number:05d}{self.suffix}"

    def require(self, folder: Path, what: str, *, overwrite: bool = False) -> None:
        """Raise OutputError, in one sentence, unless they can be written into a folder that has none of another run."""
        require_writable_folder(folder, what)
        if not overwrite and folder.is_dir() and any(folder.glob(self.pattern)):
            raise OutputError(
                f"{what} {str(folder)!r} holds those of another run: choose a new one, or --overwrite it."
            )

    def remove(self, folder: Path, first: int = 0) -> None:
        """Remove those of a folder from a number on."""
        for old in sorted(folder.glob(self.pattern)):
            if old.name >= self.name(first):
                old.unlink()


FRAMES = Numbered("frame", ".png", "a frame")
SURFACES = Numbered("surface", ".ply", "a surface")
VOLUMES = {suffix: Numbered("volume", f".{suffix}", "a volume") for suffix in ("vdb", "vti")}


class Numbering:
    """Writes such files one after the other.

    Args:
        folder: Where to; those from ``first`` on that another run has left there go.
        names: How they are called.
        write: Writes one.
        first: The number to begin with.
    """

    def __init__(self, folder: Path, names: Numbered, write: Callable[[Path], None], first: int = 0):
        self.folder, self._names, self._write, self._next = folder, names, write, first
        folder.mkdir(parents=True, exist_ok=True)
        names.remove(folder, first)

    def write(self) -> None:
        """Write the next one."""
        self._write(self.folder / self._names.name(self._next))
        self._next += 1
