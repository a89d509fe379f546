"""The arrays of a flow."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from ..carried import CARRIED, Carried
from ..grid import Grid, Scratch


class Buffered:
    """An array that is renewed as a whole: the values now, and room for the next ones.

    Attributes:
        name: What it is.
        components: Values in a cell.
        current: Array of the values now.
        next: Array that a stage may write before it calls ``swap``.
    """

    def __init__(self, grid: Grid, name: str, components: int):
        self.grid, self.name, self.components = grid, name, components
        self.current, self.next = grid.array(components), grid.array(components)

    def begins(self) -> range:
        """Where each component begins in its arrays."""
        return range(0, self.components * self.grid.cells, self.grid.cells)

    def swap(self) -> None:
        """Make what was written into ``next`` the values now."""
        self.current, self.next = self.next, self.current

    def clear(self) -> None:
        """Set both arrays to 0, ghosts included."""
        self.current.fill(0.0)
        self.next.fill(0.0)


class Quantity(Buffered):
    """A quantity that the flow carries, as its ``row`` says."""

    def __init__(self, grid: Grid, row: Carried):
        super().__init__(grid, row.name, row.components)
        self.row = row
        self.clear()

    def clear(self) -> None:
        """Set both arrays to what is outside, most often 0, ghosts included."""
        super().clear()
        if any(self.row.outside_values):
            for array in (self.current, self.next):
                array.from_numpy(np.repeat(np.float32(self.row.outside_values), self.grid.cells))


class State:
    """All arrays of a flow on one grid: velocity, pressure and what is carried, with room to work in.

    Attributes:
        velocity: On lower faces, m/s; double-buffered.
        pressure: At centres, Pa.
        carried: At centres, by name, see ``CARRIED``. What the scene brings in, and what earlier scenes of the same run brought in; and what ``add`` was told.
        outside: What is outside of each quantity that was carried so far, by name: one number for each component.
        scratch: Arrays that stages work in.
    """

    def __init__(self, grid: Grid, carried: Mapping[str, int]):
        self.grid = grid
        self.velocity = Buffered(grid, "velocity", grid.dim)
        self.pressure = grid.array()
        self.carried: dict[str, Quantity] = {}
        self.outside: dict[str, tuple[float, ...]] = {}
        self.add(carried)
        self.scratch = Scratch(grid)

    def add(self, carried: Mapping[str, int] | Iterable[Carried]) -> None:
        """Carry these too: rows, or names with their components; from what is outside on, most often 0.

        What is carried already stays as it is. A name that ``CARRIED`` has not is moved by the flow like smoke, thinned
        out like it where gas expands, checked, resampled and cleared. Nothing brings it in, fades or diffuses it but
        a stage of one's own.

        Raises:
            ValueError: for a name that is taken, or components that are none or not those that the name has.
        """
        rows = [_row(*each) for each in carried.items()] if isinstance(carried, Mapping) else list(carried)
        for row in rows:
            known = self.carried[row.name].components if row.name in self.carried else row.components
            if row.components != known:
                raise ValueError(f"components of {row.name} is {row.components}; {row.name} has {known}")
        for row in rows:
            if row.name not in self.carried:
                self.carried[row.name] = Quantity(self.grid, row)
                self.outside[row.name] = row.outside_values

    def reset(self, carried: Mapping[str, int]) -> None:
        """Set everything to what it begins from, and carry nothing from now on but these and what no scene knows."""
        self.carried = {
            name: quantity for name, quantity in self.carried.items() if name in carried or name not in CARRIED
        }
        self.add(carried)
        for quantity in self.quantities():
            quantity.clear()
        self.pressure.fill(0.0)
        self.scratch.clear()

    def quantities(self) -> list[Buffered]:
        """The velocity and everything it carries."""
        return [self.velocity, *self.carried.values()]

    def scalars(self) -> Iterator[tuple[Quantity, int]]:
        """Every component of every quantity at cell centres, and where it begins."""
        for quantity in self.carried.values():
            for offset in quantity.begins():
                yield quantity, offset


def _row(name: str, components: int) -> Carried:
    """The row of a name, or a plain one."""
    row = Carried(name, components)
    known = CARRIED.get(row.name, row)
    if row.components != known.components:
        raise ValueError(f"components of {name} is {components}; {name} has {known.components}")
    return known
