"""What the backends are called and can hold, what a number may be, and a file: known before Taichi is imported."""

import contextlib
import difflib
import gc
import math
import operator
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from numbers import Real
from typing import Any

ARCHS = ("cuda", "vulkan", "metal", "opengl", "cpu")
MAX_ARRAY_BYTES = 2**31 - 4
"""Taichi computes byte offsets in 32 bits on Vulkan and Metal, and element counts in 32 bits everywhere."""
LEAST_BAND = 3
"""Cells below its surface in which a liquid has particles at the least, if it has a core; a narrower band counts as this."""
LARGEST = 1e30
"""Of a number that an expression, a function or an array says, whatever it is of."""


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; a truth value is none."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def require_positive(name: str, value: Any, unit: str) -> None:
    """Raise ValueError if a value is not a positive number; ``unit`` is the plural of what it counts."""
    if not (is_number(value) and value > 0):
        raise ValueError(f"{name} is {value!r}; it must be a positive number of {unit}")


def require_not_negative(name: str, value: Any, unit: str) -> None:
    """Raise ValueError if a value is not a number from 0 up; ``unit`` is the plural of what it counts."""
    if not (is_number(value) and value >= 0):
        raise ValueError(f"{name} is {value!r}; it must be a number of {unit}, 0 or more")


def whole(name: str, value: Any, least: int) -> int:
    """A value as an ``int``; ValueError if it is no whole number, as NumPy's are too, or less than ``least``."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise ValueError(f"{name} is {value!r}; it must be a whole number, {least} or more")
    return number


def read_file(path: str | os.PathLike[str], most: int) -> bytes:
    """Bytes of an ordinary file of at most ``most``; what is a pipe or a device is not waited for.

    Raises:
        FileNotFoundError: if there is none.
        ValueError: if it is no such file or cannot be read; the message is the end of a sentence whose subject is the file.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(handle, "rb") as file:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise ValueError("is a pipe or a device; it must be a file")
            content = b"" if status.st_size > most else file.read(most + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ValueError(f"cannot be read ({error.strerror or error}); it must be a file") from None
    if (not content and status.st_size) or len(content) > most:
        size = max(status.st_size, len(content))
        raise ValueError(f"has {size} bytes; it may have {most} at most")
    return content


def near(name: str, known: Iterable[str], others: Sequence[str] = ()) -> str:
    """What a sentence that names ``known`` begins with: ``the``, after a question if one of them, or of ``others``, was meant."""
    meant = [*difflib.get_close_matches(name[:80], list(known), n=1), *others]
    return f"did you mean {meant[0]!r}? The" if meant else "the"


def shortened(value: Any, most: int = 80) -> str:
    """What a message shows of a value: its beginning, if it is long."""
    shown = repr(value)
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """Do without Python's search for cycles of garbage while much is made that stays: modules, trees of kernels."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
