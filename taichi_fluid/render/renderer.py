"""From a simulation to a picture, as its scene's look and camera ask for."""

import math
from collections.abc import Sequence

import numpy as np

from ..boundary import SCALAR
from ..simulation import Simulation
from .camera import orbit_view
from .image import Image
from .optics import Optics
from .slices import render_slice
from .surfaces import Surfaces, colour_table
from .volume import render_slab, render_volume

DEFAULT_LIGHT = (0.55, 0.75, 0.35)
DEFAULT_SOLID = (0.42, 0.42, 0.45)
"""Colour of a solid that no scene names."""


class Renderer:
    """Draws one simulation; what it shows follows the simulation's scene at every call.

    Args:
        simulation: What to draw.
        width, height: Of the picture, in pixels; left out, as the scene's output has them.
    """

    def __init__(self, simulation: Simulation, width: int | None = None, height: int | None = None):
        self.simulation = simulation
        output = simulation.scene.output
        self.image = Image(width or output.width, height or output.height)
        self._optics: Optics | None = None
        self._values = self._colours = None

    def render(self) -> np.ndarray:
        """Draw the present state; ``(height, width, 3)`` bytes, the first row on top."""
        self.simulation.grid.require_runtime()
        if self.simulation.scene.look.view == "slice":
            self._render_slice()
        else:
            self._render_volume()
        return self.image.to_numpy()

    def _render_volume(self) -> None:
        simulation, look = self.simulation, self.simulation.scene.look
        grid, carried = simulation.grid, simulation.state.carried
        if self._optics is None:
            self._optics = Optics(grid)
        arrays = {name: carried[name].current for name in ("smoke", "dye") if name in carried}
        direction, surfaces = _unit(look.light_direction or DEFAULT_LIGHT[: grid.dim]), None
        if simulation.solids:
            arrays["distance"] = simulation.solids.distance
            surfaces = self._surfaces(direction)
        self._optics.compute(look, direction, **arrays)
        extinction, glow = self._optics.extinction, self._optics.glow
        background = (look.background_top, look.background_bottom)
        if grid.dim == 2:
            render_slab(grid, extinction, glow, self.image, background, look.exposure, surfaces)
        else:
            view = orbit_view(simulation.scene.camera, grid.size, self.image.width / self.image.height)
            render_volume(grid, extinction, glow, view, self.image, background, look.exposure, surfaces)

    def _surfaces(self, direction: Sequence[float]) -> Surfaces:
        simulation, optics = self.simulation, self._optics
        look, solids = simulation.scene.look, simulation.solids
        assert optics is not None and solids is not None
        if self._colours is None:
            own = [solid.colour for solid in simulation.scene.solids]
            each = [*own, *[DEFAULT_SOLID] * (len(solids.solids) - len(own))]
            self._colours = colour_table([colour for colour in each for _ in range(solids.images)])
        sun = [look.light_strength * channel for channel in look.light]
        return Surfaces(solids, self._colours, optics.light, optics.light_grid.n, sun, look.ambient, direction)

    def _render_slice(self) -> None:
        simulation, look = self.simulation, self.simulation.scene.look
        values = self._quantity(look.quantity)
        limits = look.limits
        if limits is None:
            interior = simulation.grid.to_numpy(values)
            limits = (float(interior.min()), float(interior.max()))
            if look.colour_map == "balance":
                limits = (-max(map(abs, limits)), max(map(abs, limits)))
        distance = simulation.solids.distance if simulation.solids else None
        render_slice(simulation.grid, values, self.image, look.colour_map, limits, look.axis, look.position, distance)

    def _quantity(self, name: str):
        """The named quantity at cell centres, ghosts filled."""
        simulation = self.simulation
        if name in simulation.state.carried:
            return simulation.state.carried[name].current
        if self._values is None:
            self._values = simulation.grid.array()
        velocity, diagnostics = simulation.state.velocity.current, simulation.diagnostics
        if name == "pressure":
            self._values.copy_from(simulation.state.pressure)
        elif name in ("speed", "divergence", "vorticity"):
            {
                "speed": diagnostics.compute_speed,
                "divergence": diagnostics.compute_divergence,
                "vorticity": diagnostics.compute_vorticity,
            }[name](velocity, self._values)
        else:
            known = ", ".join([*simulation.state.carried, "pressure", "speed", "divergence", "vorticity"])
            raise ValueError(f"look.quantity is {name!r}, which this scene does not carry; it may be one of {known}")
        simulation.walls.fill(self._values, SCALAR)
        return self._values


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(sum(x * x for x in vector)) or 1.0
    return [x / length for x in vector]
