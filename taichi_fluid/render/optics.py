"""What the eye meets inside the box: how much each cell blocks, and the light that it sends out.

The ray-march knows nothing of smoke or dye: it reads ``extinction`` (1/m) and ``glow`` (red, green and blue of the light
that is sent towards the eye on the way, 1/m): over the extinction that is what a thick layer looks like. Between two cells
each so counts by what it blocks. Both are filled here, ghosts included. What glows by its heat, a ``Flame``, is added on the way.

Dyes mix as coloured lights do, not as pigments: red and green in one cell are yellow, all three white. A cell's hue is
the ratio of its three amounts, its opacity the largest of them; so a dye that is thinned out keeps its hue, and where
none is the background shows.
"""

import functools
from collections.abc import Sequence

from .._ti import argument, local, subscript, ti, traced
from ..grid import Grid, given
from ..kernels import Array, array_of, cells_of, copy_values, float_vector, kernel_family
from ..operators.interpolation import inside_box, sample
from ..scene import Look
from . import blackbody
from .bricks import Occupancy, brick_grid
from .flame import Flame
from .surfaces import Lamp, Obstacle

RAY_STEP = 0.7
"""Step of a ray in cells."""
LEAST_DEPTH = 1e-5
"""Optical depth of a step below which there is nothing to see."""
OPAQUE = 0.004
"""The part of the light that passes up to which a ray is not followed."""
LIGHT_STEP = 1.0
"""Step towards the light, in cells."""
FLAT = 0.75
"""Brightness of what is shown without light and shade."""


@argument
class Matter:
    """What is in the cells: smoke, and dye in three components, of which what is absent is not read."""

    smoke: object
    dye: object
    strength: object  # their opacity, 1/m
    has_smoke: bool
    has_dye: bool

    @traced
    def dye_at(self, c, cells):
        """Red, green and blue."""
        return ti.Vector([subscript(self.dye, c + channel * cells) for channel in range(3)])

    @traced
    def amount_at(self, c, cells):
        """Smoke plus the strongest of the three dyes."""
        nothing = ti.cast(0.0, ti.f32)
        amount = ti.max(subscript(self.smoke, c), nothing) if self.has_smoke else nothing
        return local(amount + ti.max(*self.dye_at(c, cells), nothing) if self.has_dye else amount)

    @traced
    def opacity_at(self, c, cells):
        """All that they block in a cell, 1/m."""
        return local(self.strength * self.amount_at(c, cells))

    @traced
    def colour_at(self, c, cells, albedo):
        """Colour of smoke and dye in white light; ``albedo`` is that of smoke."""
        if not self.has_dye:
            return albedo
        amount = ti.max(self.amount_at(c, cells), ti.cast(1e-6, ti.f32))
        mixed = self.dye_at(c, cells)
        if self.has_smoke:
            mixed = mixed + albedo * subscript(self.smoke, c)
        return ti.min(ti.max(mixed / amount, ti.cast(0.0, ti.f32)), ti.cast(1.0, ti.f32))


@ti.func
def _write_extinction(c, I, s, extinction: ti.template(), n, matter, flame, bricks, least):
    """How much the smoke of a cell blocks; if that and its flame are above ``least``, they can be seen."""
    opacity = matter.opacity_at(c, cells_of(s, n))
    extinction[c] = opacity
    if ti.static(I.n == 3):  # no ray reads bricks in 2D
        if ti.static(flame.there):
            opacity += flame.opacity_of(flame.heat[c])
        if opacity > least:
            bricks.mark(I)


@ti.func
def _write_light(c, I, s, light: ti.template(), extinction: ti.template(), flame, direction, obstacle):
    """How much of the light arrives at a cell of the half-resolution grid, marching towards it.

    A solid on the way takes the direct light; the weaker term stays, as light finds its way around.
    """
    n, step = obstacle.n, direction * ti.f32(LIGHT_STEP)
    blocked, depth = ti.f32(1.0), ti.f32(0.0)
    p = inside_box(ti.cast(I, ti.f32) * ti.f32(2.0) - ti.f32(0.5), n) + ti.f32(0.5) * step
    while (p - inside_box(p, n)).norm_sqr() == 0 and depth <= ti.f32(9.0):
        opacity = sample(extinction, 0, p, n)
        if ti.static(flame.there):
            opacity += flame.opacity_of(flame.heat_at(p, n))
        depth += opacity * ti.f32(LIGHT_STEP) * obstacle.dx
        if ti.static(obstacle.there):
            # Soft edges: a ray that passes half a cell beside a surface is blocked by half.
            blocked = ti.min(blocked, ti.max(obstacle.depth_at(p), ti.f32(0.0)))
        p += step
    # A second, weaker and farther-reaching term stands for light that was scattered more than once.
    light[c] = ti.f32(0.85) * blocked * ti.exp(-depth) + ti.f32(0.15) * ti.exp(ti.f32(-0.3) * depth)


@ti.func
def _write_glow(c, I, s, glow: ti.template(), n, matter, albedo, lamp):
    cells = cells_of(s, n)
    arriving = sample(lamp.light, 0, inside_box(ti.cast(I, ti.f32) * ti.f32(0.5) + ti.f32(0.25), lamp.n), lamp.n)
    lit = matter.colour_at(c, cells, albedo) * (lamp.sun * arriving + lamp.ambient)
    sent = matter.opacity_at(c, cells) * lit
    for channel in ti.static(range(3)):
        glow[3 * c + channel] = sent[channel]


@kernel_family
def light_kernels(loops, has_solids, glows):
    Index, Point, each_cell_in = loops.IntVector, loops.FloatVector, loops.each_cell_in

    @ti.kernel
    def compute_light(
        extinction: Array, heat: Array, incandescence: ti.f32, distance: Array, light: Array, n: Index, fine_n: Index,
        direction: Point, dx: ti.f32,
    ):  # fmt: skip
        obstacle, flame = Obstacle(distance, fine_n, dx, has_solids), Flame(heat, None, incandescence, glows)
        each_cell_in(n * 0, n + 2, n, _write_light, (light, extinction, flame, direction, obstacle))

    return (compute_light,)


@kernel_family
def extinction_kernels(loops, has_smoke, has_dye, glows):
    Index, each_cell_in = loops.IntVector, loops.each_cell_in

    @ti.kernel
    def compute_extinction(
        smoke: Array, dye: Array, strength: ti.f32, heat: Array, incandescence: ti.f32, extinction: Array, n: Index,
        occupied: Array, brick_n: Index, least: ti.f32,
    ):  # fmt: skip
        matter, flame = Matter(smoke, dye, strength, has_smoke, has_dye), Flame(heat, None, incandescence, glows)
        bricks = Occupancy(occupied, brick_n)
        each_cell_in(n * 0, n + 2, n, _write_extinction, (extinction, n, matter, flame, bricks, least))

    return (compute_extinction,)


@kernel_family
def glow_kernels(loops, has_smoke, has_dye):
    Index, Colour, each_cell_in = loops.IntVector, float_vector(3), loops.each_cell_in

    @ti.kernel
    def compute_glow(
        smoke: Array, dye: Array, strength: ti.f32, albedo: Colour, light: Array, light_n: Index, sun: Colour,
        ambient: Colour, glow: Array, n: Index,
    ):  # fmt: skip
        matter, lamp = Matter(smoke, dye, strength, has_smoke, has_dye), Lamp(light, light_n, sun, ambient, None)
        each_cell_in(n * 0, n + 2, n, _write_glow, (glow, n, matter, albedo, lamp))

    return (compute_glow,)


class Optics:
    """The optical volume of one grid.

    Attributes:
        extinction: Of smoke and dye, 1/m, at cell centres.
        bricks: Where there is anything to see, the members of an ``Occupancy``: rays jump over the rest.
        light_grid: The grid, half as fine, on which arriving light is computed.
        light: Fraction of the light that arrives.
        glow: Red, green and blue of what these send towards the eye, 1/m, interleaved: ``glow[3 c + channel]``.
        glows: Whether there may be a flame.
    """

    def __init__(self, grid: Grid):
        self.grid = grid
        self.light_grid = Grid(tuple((n + 1) // 2 for n in grid.shape), 2 * grid.dx)
        self.extinction, self.glow = grid.array(), grid.array(3)
        bricks = brick_grid(grid)
        self.bricks = (bricks.array(), bricks.n)
        self.light = self.light_grid.array()
        self._nothing = [ti.ndarray(ti.f32, 1) for _ in range(5)]
        self.glows, self._incandescence = False, 0.0

    @functools.cached_property
    def _heat(self):
        return self.grid.array()

    @functools.cached_property
    def _emission(self):
        return array_of(blackbody.glow_table())

    @property
    def _flame(self) -> tuple:
        """As kernels take it: heat, emission and incandescence; what is absent is not read."""
        heat, emission = (self._heat, self._emission) if self.glows else self._nothing[3:]
        return heat, emission, self._incandescence

    @property
    def medium(self) -> tuple:
        """As the kernels take it: extinction, glow, shape and spacing of the grid, and the flame."""
        return self.extinction, self.glow, self.grid.n, self.grid.dx, *self._flame

    def compute(
        self, look: Look, direction: Sequence[float], smoke=None, dye=None, temperature=None, distance=None,
        opacity: float = 1.0, brightness: float = 1.0, flat: bool = False,
    ) -> None:  # fmt: skip
        """Fill the volume from smoke, dye and heat (arrays over the grid, ghosts filled; each may be absent).

        Args:
            look: Opacity, colours and light.
            direction: Unit vector towards the light.
            smoke: Concentration.
            dye: Red, green and blue, component after component.
            temperature: K above ambient; glows where it is hot enough, if ``look.incandescence`` is not 0.
            distance: To the nearest solid at the lower corners of the cells, m; solids cast shadows.
            opacity: Factor of all opacity.
            brightness: Factor of the light on smoke and dye.
            flat: Show smoke in its own colour, without light and shade. Only solids are lit then.
        """
        self.grid.require(**given(smoke=smoke, temperature=temperature, distance=distance))
        self.grid.require(3, **given(dye=dye))
        strength, self._incandescence = opacity * look.extinction, opacity * look.incandescence
        self.glows = temperature is not None and self._incandescence > 0
        if self.glows:
            copy_values(temperature, self._heat)
        there = (smoke is not None, dye is not None)
        no_smoke, no_dye, no_distance = self._nothing[:3]
        matter = (no_smoke if smoke is None else smoke, no_dye if dye is None else dye, strength)
        heat, _, incandescence = self._flame
        solid = no_distance if distance is None else distance
        loops, n, light_n = self.grid.costly_loops, self.grid.n, self.light_grid.n
        self.bricks[0].fill(0.0)
        least = LEAST_DEPTH / (RAY_STEP * self.grid.dx)
        extinction_kernels(loops, *there, self.glows).compute_extinction(
            *matter, heat, incandescence, self.extinction, n, *self.bricks, least
        )
        if not flat or distance is not None:
            towards = float_vector(self.grid.dim)(*direction)
            light_kernels(self.light_grid.costly_loops, distance is not None, self.glows).compute_light(
                self.extinction, heat, incandescence, solid, self.light, light_n, n, towards, self.grid.dx
            )
        colour = float_vector(3)
        strong = 0.0 if flat else brightness * look.light_strength
        sun = colour(*(strong * channel for channel in look.light))
        ambient = colour(*(brightness * channel for channel in ((FLAT, FLAT, FLAT) if flat else look.ambient)))
        lamp = (colour(*look.albedo), self.light, light_n, sun, ambient)
        glow_kernels(loops, *there).compute_glow(*matter, *lamp, self.glow, n)
