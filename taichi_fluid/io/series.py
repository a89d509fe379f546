"""Rows of numbers, written as they come: CSV, or JSON lines."""

import csv
import json
import math
from collections.abc import Mapping
from pathlib import Path

from .files import OutputError, require_free, require_writable

SUFFIXES = (".csv", ".jsonl")


def require_series(path: Path, what: str, overwrite: bool = False) -> None:
    """Raise OutputError, in one sentence, unless a file of rows can be made at ``path``, a new one if not ``overwrite``."""
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"{what} {str(path)!r} has a suffix that is not written: give FILE.csv or FILE.jsonl.")
    require_writable(path, what)
    require_free(path, what, overwrite)


class SeriesFile:
    """A file that gains a line with each row, at once, so that what is measured is kept whatever comes.

    By its suffix it is CSV, whose columns are those of the first row and empty where a row has no value; or JSON lines,
    an object each, null where a value is not finite.

    Args:
        path: A file that is not there yet; its folder is made.

    Raises:
        OutputError: if it is there, cannot be made, or has another suffix.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        require_series(self.path, "the file")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._columns: list[str] | None = None
        self._file = self.path.open("x", newline="", encoding="utf-8")

    def __call__(self, row: Mapping[str, float]) -> None:
        """Write a row."""
        if self.path.suffix.lower() == ".jsonl":
            finite = {name: value if math.isfinite(value) else None for name, value in row.items()}
            self._file.write(json.dumps(finite, allow_nan=False) + "\n")
        else:
            writer = csv.writer(self._file, lineterminator="\n")
            if self._columns is None:
                self._columns = list(row)
                writer.writerow(self._columns)
            writer.writerow([row.get(name, "") for name in self._columns])
        self._file.flush()

    def close(self) -> None:
        """Write no more."""
        self._file.close()

    def __enter__(self) -> "SeriesFile":
        return self

    def __exit__(self, *_) -> None:
        self.close()
