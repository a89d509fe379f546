"""What the backends are called and can hold, and what a number may be: known before Taichi is imported."""

import math
import operator
from numbers import Real
from typing import Any

ARCHS = ("cuda", "vulkan", "metal", "opengl", "cpu")
MAX_ARRAY_BYTES = 2**31 - 4
"""Taichi computes byte offsets in 32 bits on Vulkan and Metal, and element counts in 32 bits everywhere."""


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
