"""Colour maps: perceptually uniform ones for quantities, a diverging one for signed quantities.

Seventeen knots each, linear in between: viridis and inferno are by van der Walt and Smith (matplotlib, CC0), balance is
ColorBrewer's RdBu reversed (Apache-2.0).
"""

import functools

import numpy as np

KNOTS = {
    "viridis": (
        "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c"
        " 1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725"
    ),
    "inferno": (
        "000004 0b0724 210c4a 3d0965 57106e 71196e 8a226a a32c61 bc3754"
        " d24644 e45a31 f1731d f98e09 fcac11 f9cb35 f2ea69 fcffa4"
    ),
    "gray": (
        "000000 101010 202020 303030 404040 505050 606060 707070 808080"
        " 909090 a0a0a0 b0b0b0 c0c0c0 d0d0d0 e0e0e0 f0f0f0 ffffff"
    ),
    "balance": (
        "053061 175290 2a71b2 3f8ec0 6bacd1 9bc9e0 c2ddec e0ecf3 f7f6f6"
        " fbe5d8 fbccb4 f5aa89 e48066 d05548 ba2832 930e26 67001f"
    ),
}
ENTRIES = 256


@functools.cache
def table(name: str) -> np.ndarray:
    """The colour map as ``(ENTRIES, 3)`` f32 numbers from 0 to 1."""
    knots = np.array([[int(knot[i : i + 2], 16) / 255 for i in (0, 2, 4)] for knot in KNOTS[name].split()])
    at = np.linspace(0, len(knots) - 1, ENTRIES)
    columns = [np.interp(at, np.arange(len(knots)), knots[:, channel]) for channel in range(3)]
    return np.stack(columns, axis=1).astype(np.float32)
