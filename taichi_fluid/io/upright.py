"""Which axis of a file points up: the second, as here and in Houdini, or the third, as in Blender.

What was made for the second stands on the third when it is turned about the first: (x, y, z) is (x, -z, y) then.
"""

import numpy as np

UPS = ("y", "z")
"""Axes that may point up in a file."""


def require_up(up: str) -> None:
    """Raise ValueError unless an axis may point up."""
    if up not in UPS:
        raise ValueError(f"up is {up!r}; it must be one of {', '.join(UPS)}")


def turned(vectors: np.ndarray) -> np.ndarray:
    """Points or vectors ``(..., 3)``."""
    x, y, z = np.moveaxis(np.asarray(vectors), -1, 0)
    return np.stack([x, -z, y], axis=-1)


def turned_cells(values: np.ndarray) -> np.ndarray:
    """Values of cells ``(nx, ny, nz, ...)``, which are at ``(x, nz - 1 - z, y)`` then."""
    return values.swapaxes(1, 2)[:, ::-1]
