"""The views of a simulation, each in two halves: ``prepare`` copies what it shows, ``draw`` makes a picture of that.

``needs`` names what of a look the copy depends on: as long as it stays the same, drawing needs no new one.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .._ti import ti
from ..boundaries.solids import Placed, Solids
from ..boundaries.walls import SCALAR
from ..kernels import Array, array_of, copy_values, float_vector, kernel_family
from ..scene import Look
from ..simulation import Simulation
from .arrows import render_arrows
from .camera import View, orbit_view
from .colour_maps import Tables
from .exact import table_length, table_of
from .image import Image
from .legend import Legend
from .optics import Optics
from .ranges import Plane, Ranges, Smoothed, plane_of
from .sheets import render_sheets
from .slices import render_slice
from .tracers import Tracers
from .volume import render_slab, render_volume

DEFAULT_LIGHT = (0.55, 0.75, 0.35)
DEFAULT_SOLID = (0.42, 0.42, 0.45)
"""Colour of a solid that no scene names."""
SIGNED = ("pressure", "divergence", "vorticity")
"""What is measured and of both signs: its limits lie evenly about 0. In 3D vorticity is a magnitude."""
TRACER_SMOKE, TRACER_SMOKE_LIGHT = 0.15, 0.2
"""Opacity and brightness of smoke behind tracers, of its own."""
SHEET_OPACITY = 0.35
"""Opacity of smoke on sheets, of its own: they are to be seen through."""
ARROW_SHADE = 0.55
"""Brightness of the plane below arrows, of its own."""


@ti.func
def _write_strongest(c, I, s, values: ti.template(), out: ti.template(), cells, components: ti.template()):
    strongest = values[c]
    for k in ti.static(range(1, components)):
        strongest = ti.max(strongest, values[c + k * cells])
    out[c] = strongest


@kernel_family
def strongest_kernels(loops, components):
    IntVector, each_cell_in = loops.IntVector, loops.each_cell_in

    @ti.kernel
    def compute_strongest(values: Array, out: Array, n: IntVector, cells: ti.i32):
        each_cell_in(n * 0, n + 2, n, _write_strongest, (values, out, cells, components))

    return (compute_strongest,)


class Parts:
    """What the views of one simulation share: arrays, each made when it is first needed, colour maps, the legend.

    Args:
        simulation: What they show.
        spans: What colours and arrows span, by view; the same mapping given to several makes them mean the same.
    """

    def __init__(self, simulation: Simulation, spans: dict[str, Smoothed] | None = None):
        self.simulation = simulation
        self._spans = {} if spans is None else spans
        self.tables, self._legend = Tables(), Legend()
        self._overlays: list[Callable[[Image], None]] = []
        self._shown: list[Placed] | None = None

    def span(self, name: str) -> Smoothed:
        """The values that the colours or arrows of a view span."""
        return self._spans.setdefault(name, Smoothed())

    @property
    def spans(self) -> Mapping[str, Smoothed]:
        """All of them so far."""
        return self._spans

    @functools.cached_property
    def optics(self) -> Optics:
        """The optical volume."""
        return Optics(self.simulation.grid)

    @property
    def distance(self):
        """To the nearest solid at the lower corners of the cells, m; None without solids."""
        return self.simulation.solids.distance if self.simulation.solids else None

    @functools.cached_property
    def ranges(self) -> Ranges:
        """Measures the values on planes."""
        solids = self.simulation.solids
        return Ranges(self.simulation.grid, solids.fluid if solids else None)

    @functools.cached_property
    def values(self):
        """A scalar at cell centres, ghosts filled: what ``copy_quantity`` copied last."""
        return self.simulation.grid.array()

    @functools.cached_property
    def level(self):
        """The level set of a liquid as ``copy_quantity`` has found it, m, ghosts filled; None of a gas."""
        return self.simulation.grid.array() if self.simulation.liquid is not None else None

    @functools.cached_property
    def _colours(self):
        """Those of the solids and their images, one after another."""
        solids = self.simulation.solids
        assert solids is not None
        own = [solid.colour for solid in self.simulation.scene.solids]
        each = [*own, *[DEFAULT_SOLID] * (len(solids.solids) - len(own))]
        return array_of([colour for colour in each for _ in range(solids.images)])

    def view(self, image: Image) -> View | None:
        """What the camera sees; None in 2D."""
        grid = self.simulation.grid
        if grid.dim == 2:
            return None
        return orbit_view(self.simulation.scene.camera, grid.size, image.width / image.height)

    def prepare_smoke(self, look: Look, opacity: float = 1.0, brightness: float = 1.0, flat: bool = False) -> None:
        """Fill the optical volume."""
        simulation = self.simulation
        carried = simulation.state.carried
        # Of several that are shown alike the first.
        arrays = {quantity.row.drawn: quantity.current for quantity in reversed(carried.values()) if quantity.row.drawn}
        direction = light_direction(look, simulation.grid.dim)
        self.optics.compute(
            look, direction, **arrays, distance=self.distance, opacity=opacity, brightness=brightness, flat=flat
        )

    @property
    def bodies(self) -> tuple | None:
        """The solids without light, as kernels take them: distance, exact shapes, owner, colours; None without."""
        solids = self.simulation.solids
        return (solids.distance, self._exact_shapes(solids), solids.owner, self._colours) if solids else None

    def _exact_shapes(self, solids: Solids):
        """The table of the shapes that are there, made anew when they have moved."""
        if self._shown is not solids.placed:
            self._shown = solids.placed
            self._shapes.from_numpy(table_of(solids.placed, self.simulation.grid))
        return self._shapes

    @functools.cached_property
    def _shapes(self):
        return ti.ndarray(ti.f32, table_length(self.simulation.grid.dim))

    def surfaces(self, look: Look) -> tuple | None:
        """The solids, lit through the optical volume, as kernels take them; None without."""
        solids, optics, dim = self.simulation.solids, self.optics, self.simulation.grid.dim
        if not solids:
            return None
        colour, towards = float_vector(3), float_vector(dim)(*light_direction(look, dim))
        sun = colour(*(look.light_strength * channel for channel in look.light))
        lamp = (optics.light, optics.light_grid.n, sun, colour(*look.ambient), towards)
        assert self.bodies is not None
        return (*self.bodies, *lamp)

    def draw_smoke(self, look: Look, image: Image) -> None:
        """Fill the picture with the optical volume."""
        optics, surfaces, view = self.optics, self.surfaces(look), self.view(image)
        background = (look.background_top, look.background_bottom)
        if view is None:
            render_slab(optics, image, background, look.exposure, surfaces)
        else:
            render_volume(optics, view, image, background, look.exposure, surfaces)

    def shown_quantity(self, look: Look) -> str:
        """The look's quantity, or if the scene does not carry it, what comes nearest to it."""
        carried = self.simulation.state.carried
        if look.quantity in carried or look.quantity in ("speed", *SIGNED):
            return look.quantity
        drawn = {quantity.row.drawn: name for name, quantity in reversed(carried.items())}
        return drawn.get("smoke", drawn.get("dye", "speed"))

    def copy_quantity(self, name: str) -> None:
        """Copy the named quantity into ``values``, and what tells where the liquid is that has it."""
        simulation, values = self.simulation, self.values
        state, diagnostics, grid = simulation.state, simulation.diagnostics, simulation.grid
        if name in state.carried and state.carried[name].components > 1:
            quantity = state.carried[name]
            kernels = strongest_kernels(grid.loops, quantity.components)
            kernels.compute_strongest(quantity.current, values, grid.n, grid.cells)
        elif name in state.carried:
            copy_values(state.carried[name].current, values)
        elif name == "pressure":
            simulation.copy_pressure(values)
        else:
            compute = {
                "speed": diagnostics.compute_speed,
                "divergence": diagnostics.compute_divergence,
                "vorticity": diagnostics.compute_vorticity,
            }[name]
            compute(state.velocity.current, values)
        if name not in state.carried:
            simulation.walls.fill(values, SCALAR)
        if self.level is not None and simulation.liquid is not None:
            copy_values(simulation.liquid.phi, self.level)

    def add_legend(self, look: Look, quantity: str, limits: tuple[float, float], shade: float = 1.0):
        """Lay the legend of a colour-mapped quantity over the picture, if the look has one."""
        if look.legend:
            self.lay_over(lambda image: self._legend.draw(image, quantity, limits, look.colour_map, shade))

    def lay_over(self, draw: Callable[[Image], None]) -> None:
        """What is sharp whatever the size of the picture: drawn when ``finish`` is called."""
        self._overlays.append(draw)

    def begin(self) -> None:
        """A new picture: nothing lies over it yet."""
        self._overlays = []

    def finish(self, image: Image) -> None:
        """Draw what lies over the picture, into it or into a larger copy of it."""
        overlays, self._overlays = self._overlays, []
        for draw in overlays:
            draw(image)


class LitVolume:
    """The optical volume, lit: marched along rays in 3D, a slab in 2D."""

    def __init__(self, parts: Parts):
        self.parts = parts

    def needs(self, look: Look) -> tuple:
        """What of a look the preparation depends on."""
        light = (look.light, look.light_strength, look.light_direction, look.ambient)
        return (look.extinction, look.incandescence, look.albedo, *light)

    def prepare(self, look: Look) -> None:
        """Copy what is shown."""
        self.parts.prepare_smoke(look)

    def measure(self, look: Look) -> None:
        """Find what is spanned by colours that follow the values on a plane: there are none."""

    def draw(self, look: Look, image: Image) -> None:
        """Fill the picture."""
        self.parts.draw_smoke(look, image)


class Sheets(LitVolume):
    """The optical volume in its own colours on a stack of planes; in 2D on the one there is."""

    def prepare(self, look: Look) -> None:
        """Copy what is shown."""
        self.parts.prepare_smoke(look, SHEET_OPACITY, flat=True)

    def draw(self, look: Look, image: Image) -> None:
        """Fill the picture."""
        parts, view = self.parts, self.parts.view(image)
        if view is None:
            parts.draw_smoke(look, image)
            return
        background = (look.background_top, look.background_bottom)
        render_sheets(parts.optics, view, image, background, look.exposure, look.sheets, parts.surfaces(look))


class Slice:
    """A quantity in colours on a plane."""

    shade = 1.0

    def __init__(self, parts: Parts):
        self.parts = parts
        self._smoothed, self._measured = parts.span(type(self).__name__), None

    def needs(self, look: Look) -> tuple:
        """What of a look the preparation depends on."""
        return (self.parts.shown_quantity(look),)

    def prepare(self, look: Look) -> None:
        """Copy what is shown."""
        self.parts.copy_quantity(self.parts.shown_quantity(look))
        self._measured = None
        self.measure(look)

    def plane(self, look: Look) -> Plane:
        """The plane that a look asks for."""
        return plane_of(self.parts.simulation.grid, look.axis, look.position)

    def measure(self, look: Look) -> tuple[float, float]:
        """Find the limits of the colours; those found by themselves follow the values once in each preparation."""
        if look.limits is not None:
            return look.limits
        quantity, plane, dim = self.parts.shown_quantity(look), self.plane(look), self.parts.simulation.grid.dim
        carried = self.parts.simulation.state.carried
        signed = carried[quantity].row.signed if quantity in carried else quantity in SIGNED[: 3 if dim == 2 else 2]
        even = look.colour_map == "balance" or signed
        key = (quantity, plane, even)
        if key != self._measured:
            low, high = self.parts.ranges.limits(self.parts.values, plane)
            if even:
                low, high = -max(abs(low), abs(high)), max(abs(low), abs(high))
            self._smoothed.update(key, self.parts.simulation.steps, low, high)
            self._measured = key
        return self._smoothed.limits

    def draw(self, look: Look, image: Image) -> None:
        """Fill the picture."""
        parts, limits = self.parts, self.measure(look)
        table, plane = parts.tables[look.colour_map], self.plane(look)
        bounds = parts.distance, parts.level
        render_slice(parts.simulation.grid, parts.values, image, table, limits, plane, *bounds, self.shade)
        self._draw_over(look, image, plane)
        parts.add_legend(look, parts.shown_quantity(look), limits, self.shade)

    def _draw_over(self, look: Look, image: Image, plane: Plane) -> None:
        """Add to the colours, below the legend."""


class Arrows(Slice):
    """Arrows of the velocity over a dimmed slice."""

    shade = ARROW_SHADE

    def __init__(self, parts: Parts):
        super().__init__(parts)
        self._velocity, self._fastest, self._timed = None, parts.span("speed of arrows"), None

    def prepare(self, look: Look) -> None:
        """Copy what is shown."""
        if self._velocity is None:
            self._velocity = self.parts.simulation.grid.velocity()
        copy_values(self.parts.simulation.state.velocity.current, self._velocity)
        self._timed = None
        super().prepare(look)

    def measure(self, look: Look) -> tuple[float, float]:
        """Find the limits of the colours and the speed of the longest arrow."""
        self._speed(look, self.plane(look))
        return super().measure(look)

    def _speed(self, look: Look, plane: Plane) -> float:
        """Speed of the longest arrow, m/s."""
        if look.arrow_speed is not None:
            return look.arrow_speed
        if plane != self._timed:
            speed = self.parts.ranges.fastest(self._velocity, plane)
            self._fastest.update(plane, self.parts.simulation.steps, 0.0, speed)
            self._timed = plane
        return self._fastest.limits[1]

    def _draw_over(self, look: Look, image: Image, plane: Plane) -> None:
        grid, speed = self.parts.simulation.grid, self._speed(look, plane)
        render_arrows(grid, self._velocity, image, plane, look.arrows, speed, self.parts.distance, self.parts.level)


class TracerStreaks(LitVolume):
    """Points that drift with the flow, over faint smoke; the speed is their colour."""

    def __init__(self, parts: Parts):
        super().__init__(parts)
        self.tracers: Tracers | None = None
        self._smoothed = parts.span("speed of tracers")

    def _crowd(self, count: int) -> Tracers:
        ti.sync()  # an array in use is never freed on Vulkan
        simulation = self.parts.simulation
        return Tracers(simulation.grid, simulation.walls, self.parts.distance, count)

    def needs(self, look: Look) -> tuple:
        """What of a look the preparation depends on."""
        return (*super().needs(look), look.tracers, look.tracer_life)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Where the tracers are between two pictures."""
        return ({}, {}) if self.tracers is None else self.tracers.state()

    def restore_state(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> None:
        """Have the tracers where ``state`` has found them; ValueError if they cannot be there."""
        if numbers:
            self.tracers = self._crowd(int(numbers["count"]))
            self.tracers.restore_state(arrays, numbers)

    def prepare(self, look: Look) -> None:
        """Let the tracers drift to now, and copy the smoke."""
        parts, simulation = self.parts, self.parts.simulation
        parts.prepare_smoke(look, TRACER_SMOKE, TRACER_SMOKE_LIGHT)
        if self.tracers is None or self.tracers.count != look.tracers:
            self.tracers = self._crowd(look.tracers)
        velocity = simulation.state.velocity.current
        simulation.diagnostics.compute_speed(velocity, parts.values)
        fastest = simulation.diagnostics.largest_magnitude(parts.values)
        fastest = fastest if math.isfinite(fastest) else 0.0
        self.tracers.advance(velocity, simulation.time, look.tracer_life, fastest)
        self._smoothed.update("speed", simulation.steps, 0.0, fastest)

    def draw(self, look: Look, image: Image) -> None:
        """Fill the picture."""
        parts = self.parts
        assert self.tracers is not None
        limits = look.limits if look.limits is not None and look.quantity == "speed" else self._smoothed.limits
        parts.draw_smoke(look, image)
        tracers, table = self.tracers, parts.tables[look.colour_map]
        parts.lay_over(lambda image: tracers.draw(image, parts.view(image), table, limits, look.tracer_life))
        parts.add_legend(look, "speed", limits)


class LiquidSurface:
    """The surface of a liquid: refracting in 3D, filled in 2D."""

    def __init__(self, parts: Parts):
        from .foam import FoamPicture  # which a gas need not wait for
        from .liquid import LiquidPicture

        self.parts, self._picture = parts, LiquidPicture(parts.simulation.grid)
        self._foam = FoamPicture(parts.simulation.grid)

    def needs(self, look: Look) -> tuple:
        """What of a look the preparation depends on: nothing."""
        return ()

    def prepare(self, look: Look) -> None:
        """Copy the level set."""
        assert self.parts.simulation.liquid is not None
        self._picture.prepare(self.parts.simulation.liquid.phi)

    def measure(self, look: Look) -> None:
        """Find what is spanned by colours that follow the values on a plane: there are none."""

    def draw(self, look: Look, image: Image) -> None:
        """Fill the picture."""
        parts, config = self.parts, self.parts.simulation.scene.liquid
        assert config is not None
        sun = tuple(look.light_strength * channel for channel in look.light)
        light = (sun, look.ambient, light_direction(look, parts.simulation.grid.dim))
        background, liquid = (look.background_top, look.background_bottom), (config.absorption, config.colour)
        self._picture.draw(image, background, look.exposure, liquid, light, parts.view(image), parts.bodies)
        body = parts.simulation.liquid
        if body is not None and body.has_foam:
            distance = parts.bodies[0] if parts.bodies else None
            parts.lay_over(
                lambda image: self._foam.draw(
                    image, body.foam.particles, self._picture.phi, config.absorption, parts.view(image), distance
                )
            )


def light_direction(look: Look, dim: int) -> list[float]:
    """Unit vector towards the light."""
    vector: Sequence[float] = look.light_direction or DEFAULT_LIGHT[:dim]
    length = math.sqrt(sum(x * x for x in vector)) or 1.0
    return [x / length for x in vector]


VIEWS = {
    "volume": LitVolume,
    "sheets": Sheets,
    "slice": Slice,
    "arrows": Arrows,
    "tracers": TracerStreaks,
    "surface": LiquidSurface,
}
"""By the name that a look gives them."""
