"""Reading checkpoints; needs no Taichi, so that a bad one is refused before a backend starts. See ``checkpoint``."""

import contextlib
import hashlib
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from ..limits import shortened
from ..scene import Scene, SceneError

FORMAT = 3
"""Version of what is written; another one is refused."""
BEFORE = ".before"
"""What the name of the checkpoint before the last one ends with."""
LONGEST_HEADER = 10**8
"""In bytes, as the format has it (safetensors)."""
NUMBERS, SCENE, SUM, MARK = "numbers", "scene", "sha256", "taichi_fluid.checkpoint"
"""Keys of the metadata."""


class CheckpointError(ValueError):
    """A file that is no checkpoint, or not whole; the message names it and says why, in one sentence."""


def before(path: Path) -> Path:
    """Where the checkpoint is that was written before the last one."""
    return path.parent / f"{path.name}{BEFORE}"


def read(path: str | Path) -> tuple[Scene, dict[str, np.ndarray], dict[str, Any]]:
    """Scene, arrays and numbers of a checkpoint; of the one before it, with a warning, if it is not whole.

    Raises:
        CheckpointError: as ``load`` does.
    """
    path = Path(path)
    try:
        return _read_one(path)
    except CheckpointError as error:
        older = before(path)
        if not older.exists():
            raise
        with contextlib.suppress(CheckpointError):
            found = _read_one(older)
            warnings.warn(f"{error} The one before it, {str(older)!r}, is taken.", stacklevel=2)
            return found
        raise


def _read_one(path: Path) -> tuple[Scene, dict[str, np.ndarray], dict[str, Any]]:
    if not path.is_file():
        raise CheckpointError(f"there is no checkpoint {str(path)!r}.")
    try:
        with path.open("rb") as file:
            first = file.read(9)  # how long the header is, and where it begins
            if first[8:] not in (b"{", b"") or int.from_bytes(first[:8], "little") > LONGEST_HEADER:
                raise CheckpointError(f"{str(path)!r} is no checkpoint.")
        with safe_open(path, framework="numpy") as file:
            texts = file.metadata() or {}
            if (written := texts.get(MARK)) is None:
                raise CheckpointError(f"{str(path)!r} is no checkpoint.")
            if written != str(FORMAT):
                raise CheckpointError(
                    f"{str(path)!r} is a checkpoint of format {shortened(written)}; this version of taichi_fluid reads "
                    f"format {FORMAT}: go on with the version that wrote it."
                )
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (SafetensorError, OSError, ValueError, TypeError, MemoryError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{str(path)!r} is not whole: {_first_line(error)}.") from None
    if texts.get(SUM) != checksum(arrays, texts):
        raise CheckpointError(f"{str(path)!r} is not whole: its checksum is not that of its contents.")
    try:
        return Scene.loads(texts[SCENE], "its scene"), arrays, json.loads(texts[NUMBERS])
    except (SceneError, KeyError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{str(path)!r} holds a scene or numbers that cannot be: {_first_line(error)}.") from None


def checksum(arrays: Mapping[str, np.ndarray], texts: Mapping[str, str]) -> str:
    """Checksum of what is in a file."""
    found = hashlib.sha256()
    for key in (MARK, SCENE, NUMBERS):
        found.update(texts.get(key, "").encode())
    for name in sorted(arrays):
        found.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        found.update(np.ascontiguousarray(arrays[name]).data)
    return found.hexdigest()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
