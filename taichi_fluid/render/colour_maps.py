"""Colour maps: perceptually uniform ones for quantities, a diverging one for signed quantities.

Seventeen knots each, linear in between: viridis, inferno, magma and plasma are by van der Walt and Smith, cividis by
Nuñez, Anderton and Renslow (2018; matplotlib, CC0), balance is ColorBrewer's RdBu reversed (Apache-2.0).
"""

import functools

import numpy as np

from .._ti import argument, local, subscript, ti, traced
from ..kernels import array_of

KNOTS = {
    "viridis": (
        "440154 48186a 472d7b 424086 3b528b 33638d 2c728e 26828e 21918c"
        " 1fa088 28ae80 3fbc73 5ec962 84d44b addc30 d8e219 fde725"
    ),
    "inferno": (
        "000004 0b0724 210c4a 3d0965 57106e 71196e 8a226a a32c61 bc3754"
        " d24644 e45a31 f1731d f98e09 fcac11 f9cb35 f2ea69 fcffa4"
    ),
    "magma": (
        "000004 0a0822 1d1147 36106b 51127c 6a1c81 832681 9c2e7f b73779"
        " d0416f e75263 f56b5c fc8961 fea772 fec488 fde2a3 fcfdbf"
    ),
    "plasma": (
        "0d0887 310597 4c02a1 6600a7 7e03a8 9511a1 aa2395 bc3587 cc4778"
        " da5a6a e66c5c f0804e f89540 fdac33 fdc527 f8df25 f0f921"
    ),
    "cividis": (
        "00224e 002e6a 1a386f 32436d 434e6c 535a6d 61656f 6f7073 7d7c78"
        " 8c8878 9b9476 aba072 bcae6c cdbb63 dec958 f0d846 fee838"
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


@argument
class Ramp:
    """Colours on the device: red, green and blue of so many ``entries`` in turn."""

    values: object
    entries: int

    @traced
    def at(self, place):
        """Colour at a ``place``, counted in entries and clamped to them; linear in between."""
        at = local(ti.min(ti.max(place, ti.cast(0.0, ti.f32)), ti.cast(self.entries - 1.0, ti.f32)))
        entry = local(ti.min(ti.cast(at, ti.i32), self.entries - 2))
        first, second = (
            ti.Vector([subscript(self.values, 3 * entry + k + channel) for channel in range(3)]) for k in (0, 3)
        )
        return first + (at - ti.cast(entry, ti.f32)) * (second - first)


@argument
class Scale:
    """A colour map on the device, the value at its lower end, and 1 over what it spans."""

    table: object
    low: object
    inv_range: object

    @traced
    def colour(self, value):
        """Colour of a value, clamped to the ends."""
        part = ti.min(ti.max((value - self.low) * self.inv_range, ti.cast(0.0, ti.f32)), ti.cast(1.0, ti.f32))
        return Ramp(self.table, ENTRIES).at(part * ti.cast(ENTRIES - 1.0, ti.f32))


def scale_arguments(table, limits: tuple[float, float]) -> tuple:
    """As the kernels take them, the members of a ``Scale`` between two values."""
    span = limits[1] - limits[0]
    return table, limits[0], 1.0 / span if span else 0.0


class Tables(dict):
    """Colour maps on the device by their names, each uploaded when it is first asked for."""

    def __missing__(self, name: str):
        self[name] = array_of(table(name))
        return self[name]
