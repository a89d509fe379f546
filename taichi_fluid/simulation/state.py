"""The arrays of a flow."""

from collections.abc import Mapping

from ..grid import Grid, Scratch
from ..limits import whole
from ..scene import CARRIED, Scene

_TAKEN = ("velocity", "pressure", "fluid")
"""Names that ``Simulation.to_numpy`` has for something else."""


class Quantity:
    """A quantity that the flow carries: the values now, and room for the next ones.

    Attributes:
        name: What it is.
        components: Values in a cell.
        current: Array of the values now.
        next: Array that a stage may write before it calls ``swap``.
    """

    def __init__(self, grid: Grid, name: str, components: int):
        self.name, self.components = name, components
        self.current, self.next = grid.array(components), grid.array(components)

    def swap(self) -> None:
        """Make what was written into ``next`` the values now."""
        self.current, self.next = self.next, self.current

    def clear(self) -> None:
        """Set both arrays to 0, ghosts included."""
        self.current.fill(0.0)
        self.next.fill(0.0)


class State:
    """All arrays of a flow on one grid: velocity, pressure and what is carried, with room to work in.

    Attributes:
        velocity: On lower faces, m/s; double-buffered.
        pressure: At centres, Pa.
        carried: At centres, by name: smoke, temperature (K above ambient), dye (red, green, blue) and fuel. What
            the scene brings in, and what earlier scenes of the same run brought in; and what ``add`` was told.
        scratch: Arrays that stages work in.
    """

    def __init__(self, grid: Grid, scene: Scene):
        self.grid = grid
        self.velocity = Quantity(grid, "velocity", grid.dim)
        self.pressure = grid.array()
        self.carried: dict[str, Quantity] = {}
        self.add(scene.carried)
        self.scratch = Scratch(grid)

    def add(self, carried: Mapping[str, int]) -> None:
        """Carry these too, given as names with their components: from 0 on. What is carried already stays as it is.

        Those that no scene knows are moved by the flow like smoke, thinned out like it where gas expands, checked,
        resampled and cleared. Nothing brings them in, fades or diffuses them but a stage of one's own.

        Raises:
            ValueError: for a name that is taken, or components that are none or not those that the name has.
        """
        for name, components in carried.items():
            if not isinstance(name, str) or not name or name in _TAKEN:
                raise ValueError(f"a quantity is called {name!r}; it must have a name, and not {' or '.join(_TAKEN)}")
            count = whole(f"components of {name}", components, 1)
            known = self.carried[name].components if name in self.carried else CARRIED.get(name, count)
            if count != known:
                raise ValueError(f"components of {name} is {count}; {name} has {known}")
        for name, components in carried.items():
            if name not in self.carried:
                self.carried[name] = Quantity(self.grid, name, components)

    def reset(self, carried: Mapping[str, int]) -> None:
        """Set everything to 0, and carry nothing from now on but these and what no scene knows."""
        self.carried = {
            name: quantity for name, quantity in self.carried.items() if name in carried or name not in CARRIED
        }
        self.add(carried)
        for quantity in self.quantities():
            quantity.clear()
        self.pressure.fill(0.0)
        self.scratch.clear()

    def quantities(self) -> list[Quantity]:
        """The velocity and everything it carries."""
        return [self.velocity, *self.carried.values()]
