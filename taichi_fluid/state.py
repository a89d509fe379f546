"""The arrays of a flow."""

from .grid import Grid
from .scene import Scene


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


class State:
    """All arrays of a flow on one grid: velocity, pressure and what is carried, with room to work in.

    Attributes:
        velocity: On lower faces, m/s; double-buffered.
        pressure: At centres, Pa.
        carried: At centres: smoke, temperature (K above ambient) and dye (red, green, blue), as the scene has them.
        scratch: Two arrays of ``dim`` components and one scalar, free between stages.
    """

    def __init__(self, grid: Grid, scene: Scene):
        self.grid = grid
        self.velocity = Quantity(grid, "velocity", grid.dim)
        self.pressure = grid.array()
        self.carried = {name: Quantity(grid, name, components) for name, components in scene.carried.items()}
        self.scratch = (grid.array(grid.dim), grid.array(grid.dim), grid.array())

    def quantities(self) -> list[Quantity]:
        """The velocity and everything it carries."""
        return [self.velocity, *self.carried.values()]
