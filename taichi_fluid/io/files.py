"""Files that are whole or not there."""

import errno
import json
import os
import platform
import re
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LONGEST_NAME = 255
"""In bytes; what the common file systems allow."""
_MARK = ".taichi-fluid-"
_TEMPORARY = re.compile(re.escape(_MARK) + r"([0-9a-f]{8})-([0-9]+)-[a-z0-9_]{8}(\.[^.]*)?")
"""Names of temporary files: the machine, the process, something random, and the suffix of what they become."""


class OutputError(OSError):
    """A place that cannot be written; the message names it and says why."""


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path``, with its suffix; renamed to it at the end, removed if anything went wrong."""
    handle, name = tempfile.mkstemp(prefix=_prefix(), suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        set_usual_permissions(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _machine() -> str:
    """What tells this machine, or container, from others that may write into the same folder."""
    try:
        inside = os.readlink("/proc/self/ns/pid")
    except OSError:
        inside = ""
    return f"{zlib.crc32(os.fsencode(platform.node() + inside)):08x}"


def _prefix() -> str:
    return f"{_MARK}{_machine()}-{os.getpid()}-"


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's
        return True
    return True


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove the temporary files that processes of this machine which are gone have left in a folder.

    Nothing of a process that lives, of another machine or of anybody else is touched. On Windows nothing is removed:
    there the question whether a process lives would end it.

    Returns:
        What was removed.
    """
    removed = []
    if sys.platform == "win32" or not folder.is_dir():
        return removed
    for path in sorted(folder.iterdir()):
        named = _TEMPORARY.fullmatch(path.name)
        if named and named[1] == _machine() and not path.is_symlink() and path.is_file() and not _lives(int(named[2])):
            try:
                path.unlink()
            except OSError:  # a folder of somebody else
                continue
            removed.append(path)
    return removed


def set_usual_permissions(path: Path) -> None:
    """Give a temporary file, which only its owner may read, the permissions of an ordinary one."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(path, 0o666 & ~mask)


def require_writable(path: Path, what: str) -> None:
    """Raise OutputError, in one sentence, unless a file can be made at ``path``; makes nothing that stays."""
    if os.path.lexists(path) and not os.path.isfile(path):
        kind = "a folder" if os.path.isdir(path) else "no ordinary file"
        raise OutputError(f"{what} {str(path)!r} is {kind}; it must be a file that can be written.")
    _try_writing(path, f"{what} {str(path)!r}")


def require_free(path: Path, what: str, overwrite: bool = False) -> None:
    """Raise OutputError, in one sentence, if there is something at ``path`` already that may not be replaced."""
    if os.path.lexists(path) and not overwrite:
        raise OutputError(f"{what} {str(path)!r} is there already: give another name, or --overwrite it.")


def require_writable_folder(folder: Path, what: str) -> None:
    """Raise OutputError, in one sentence, unless ``folder`` (or the nearest one above it) can be written into."""
    _try_writing(folder / "x", f"{what} {str(folder)!r}")


def _try_writing(path: Path, what: str) -> None:
    existing = path.parent
    while not os.path.lexists(existing) and existing != existing.parent:
        existing = existing.parent
    temporary = path.with_name(f"{_prefix()}{'x' * 8}{path.suffix}")
    if any(len(os.fsencode(part)) > LONGEST_NAME for part in path.parts):
        raise OutputError(f"{what} is not possible: a name in it is longer than {LONGEST_NAME} bytes.")
    if len(os.fsencode(temporary.name)) > LONGEST_NAME:
        raise OutputError(f"{what} is not possible: what follows the last dot of its name is too long.")
    if _is_too_long(path) or _is_too_long(temporary):
        raise OutputError(f"{what} is not possible: it is longer than a path may be here.")
    if not os.path.isdir(existing):
        raise OutputError(f"{what} is not possible: {str(existing)!r} is not a folder.")
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=_prefix()):
            pass
    except OSError as error:
        raise OutputError(f"{what} cannot be written ({error.strerror}): choose another place.") from None


def _is_too_long(path: Path) -> bool:
    """Whether the system knows no path of this length."""
    try:
        os.lstat(path)
    except OSError as error:
        return error.errno == errno.ENAMETOOLONG
    return False


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write ``values`` as JSON, whole or not at all; a number that is not finite is refused by ValueError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(values, indent=2, allow_nan=False) + "\n", encoding="utf-8")
