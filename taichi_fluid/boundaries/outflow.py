"""Outflows: sides whose own velocity is carried out of the box at the mean speed of what leaves.

    du/dt + U du/dn = 0

on the side itself (Orlanski 1976, with one speed for all of it), and then as much more or less as makes the fluxes through
the sides balance, of each region of the box that solids keep from the others.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from ..grid import Grid
from .profiles import Plane
from .sides import Side


class Outflow:
    """What leaves through one side of a staggered grid, or through parts of it.

    Args:
        grid: The grid.
        plane: The side, as the velocity across it sees it.
        side: What stands on it.

    Attributes:
        velocity: Across the side, on its faces, m/s, float64; None until it is first asked for.
    """

    def __init__(self, grid: Grid, plane: Plane, side: Side):
        self.grid, self.plane = grid, plane
        self._mask = plane.numbers(side, lambda patch: float(patch.kind.is_convected), 0.0, "").astype(bool)
        self._room, self._sign = plane.array(), 1.0 if plane.end else -1.0
        self.velocity: np.ndarray | None = None

    def _layer(self, array, depth: int) -> np.ndarray:
        """What an array of faces has ``depth`` cells from the side."""
        axis, n = self.plane.axis, self.grid.shape[self.plane.axis]
        layer = n + 1 - depth if self.plane.end else 1 + depth
        return self.plane.take(array, axis * self.grid.cells, layer, self._room)

    def advance(self, velocity, dt: float) -> None:
        """What stands on the side ``dt`` seconds after a ``velocity``: what is so far from it now as the mean goes.

        Linear between two faces, so stable for any step; nothing moves while the mean does not leave.
        """
        last = self.grid.shape[self.plane.axis]
        here = self._layer(velocity, 0)
        speed = max(float((self._sign * here[self._mask]).mean()), 0.0)
        way = min(speed * dt / self.grid.dx, float(last))
        whole = min(int(way), last - 1)
        part = way - whole
        near = here if whole == 0 else self._layer(velocity, whole)
        self.velocity = near if part == 0 else (1.0 - part) * near + part * self._layer(velocity, whole + 1)

    def weight(self, open) -> np.ndarray:
        """How far each face lets out: 0 or 1; or ``open``, the array of how far solids leave the faces."""
        return self._mask * (1.0 if open is None else self._layer(open, 0))

    def beside(self, values: np.ndarray) -> np.ndarray:
        """What the cells on the side have, of values of all cells of the box."""
        return np.take(values, [-1 if self.plane.end else 0], self.plane.axis)

    def shift(self, speed: float, weight: np.ndarray) -> None:
        """Let all that leaves do so faster by ``speed``, m/s, where ``weight`` is positive."""
        assert self.velocity is not None
        self.velocity = self.velocity + np.where(weight > 0, self._sign * speed, 0.0)


def balance(
    outflows: Mapping[int, Outflow], missing: Sequence[float], open=None, regions: np.ndarray | None = None
) -> bool:
    """Let as much more leave as is ``missing``, sums over faces of the velocity out of the box, m/s; whether there is any way out.

    Args:
        outflows: What lets out.
        missing: Of each region of the box.
        open: How far solids leave each face open; left out, all of it.
        regions: Which region each cell of the box is in; left out, there is one.
    """
    weights = {i: outflow.weight(open) for i, outflow in outflows.items()}
    beside = {i: 0 if regions is None else outflow.beside(regions) for i, outflow in outflows.items()}
    possible = False
    for region, more in enumerate(missing):
        here = {i: weights[i] * (beside[i] == region) for i in outflows}
        total = float(sum(weight.sum() for weight in here.values()))
        if total > 0:
            possible = True
            for i, outflow in outflows.items():
                outflow.shift(more / total, here[i])
    return possible
