"""This engine, the pressure alone, solved from zero."""

from taichi_fluid import Grid, backend
from taichi_fluid._ti import ti

from .scipy_dct import left, right_hand_side


class Program:
    """A closed box with random sources, as ``scipy_dct`` solves it."""

    def __init__(self, n: int, dim: int, arch: str = "cpu", pressure: str = "auto", tolerance: float = 1e-3):
        backend.start(arch)
        from taichi_fluid.boundaries.walls import Walls
        from taichi_fluid.pressure.spectral import pressure_solver

        self._grid, self._tolerance, self._values = Grid((n,) * dim, 1.0 / n), tolerance, right_hand_side(n, dim)
        sides = Walls(self._grid, [["free-slip", "free-slip"]] * dim).pressure_sides()
        self._solver = pressure_solver(self._grid, pressure, sides, cut=False)[0]
        self._solver.setup((1,) * dim, sides)
        self._rhs, self._pressure = self._grid.array(), self._grid.array()
        self._grid.from_numpy(self._rhs, self._values)
        self.iterations, self.pressure_solver = None, self._solver.method

    def step(self) -> None:
        self._pressure.fill(0.0)
        result = self._solver.solve(self._rhs, self._pressure, tolerance=self._tolerance)
        ti.sync()
        self.iterations = result.iterations

    def divergence(self) -> float:
        return left(self._grid.to_numpy(self._pressure), self._values)
