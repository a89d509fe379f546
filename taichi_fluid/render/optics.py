"""What the eye meets inside the box: how much each cell blocks, and the light that it sends out.

The ray-march knows nothing of smoke, dye or fire: it reads ``extinction`` (1/m) and ``glow`` (red, green, blue of what
a thick layer of the cell's material would look like). Both are filled here, ghosts included.

Dyes mix as coloured lights do, not as pigments: red and green in one cell are yellow, all three white. A cell's hue is
the ratio of its three amounts, its opacity the largest of them; so a dye that is thinned out keeps its hue, and where
none is the background shows.
"""

from collections.abc import Sequence

from .._ti import ti
from ..grid import Grid, given
from ..kernels import Array, cells_of, float_vector, kernel_family
from ..operators.interpolation import inside_box, sample
from ..scene import Look
from . import blackbody
from .bricks import Bricks
from .colour_maps import table_colour, upload

RAY_STEP = 0.7
"""Step of a ray in cells."""
LEAST_DEPTH = 1e-5
"""Optical depth of a step below which there is nothing to see."""
LIGHT_STEP = 1.0
"""Step towards the light, in cells."""
DULL, BRIGHT = 750.0, 1600.0
"""Temperatures between which gas grows opaque by its glow, K."""
FLAT = 0.75
"""Brightness of what is shown without light and shade."""


@ti.func
def _opacity_at(c, cells, smoke: ti.template(), dye: ti.template(), has_smoke: ti.template(), has_dye: ti.template()):
    """Smoke plus the strongest of the three dyes."""
    amount = ti.f32(0.0)
    if ti.static(has_smoke):
        amount += ti.max(smoke[c], ti.f32(0.0))
    if ti.static(has_dye):
        strongest = ti.max(dye[c], dye[c + cells], dye[c + 2 * cells])
        amount += ti.max(strongest, ti.f32(0.0))
    return amount


@ti.func
def _glowing_at(c, temperature: ti.template()):
    """How far a cell glows, from 0 to 1; smooth, as what is seen has no edges."""
    x = (temperature[c] + ti.f32(blackbody.AMBIENT - DULL)) * ti.f32(1.0 / (BRIGHT - DULL))
    x = ti.min(ti.max(x, ti.f32(0.0)), ti.f32(1.0))
    return x * x * (ti.f32(3.0) - ti.f32(2.0) * x)


@ti.func
def _emission_at(c, temperature: ti.template(), emission: ti.template()):
    """Red, green and blue that a black body of a cell's temperature sends out."""
    span = ti.static((blackbody.HOTTEST - blackbody.COLDEST) / (blackbody.ENTRIES - 1))
    at = (temperature[c] + ti.f32(blackbody.AMBIENT - blackbody.COLDEST)) * ti.f32(1.0 / span)
    return table_colour(emission, at, blackbody.ENTRIES)


@ti.func
def _write_extinction(
    c, I, s, smoke: ti.template(), dye: ti.template(), temperature: ti.template(), extinction: ti.template(), n,
    strength, incandescence, has_smoke: ti.template(), has_dye: ti.template(), glows: ti.template(),
):  # fmt: skip
    opacity = strength * _opacity_at(c, cells_of(s, n), smoke, dye, has_smoke, has_dye)
    if ti.static(glows):
        opacity += incandescence * _glowing_at(c, temperature)
    extinction[c] = opacity


@ti.func
def _write_light(
    c, I, s, extinction: ti.template(), distance: ti.template(), light: ti.template(), fine_n, direction, dx,
    has_solids: ti.template(),
):  # fmt: skip
    """How much of the light arrives at a cell of the half-resolution grid, marching towards it.

    A solid on the way takes the direct light; the weaker term stays, as light finds its way around.
    """
    blocked = ti.f32(1.0)
    p = inside_box(ti.cast(I, ti.f32) * ti.f32(2.0) - ti.f32(0.5), fine_n)
    step = direction * ti.f32(LIGHT_STEP)
    depth = ti.f32(0.0)
    p += ti.f32(0.5) * step
    marching = 1
    while marching == 1:
        if (p - inside_box(p, fine_n)).norm_sqr() > 0 or depth > ti.f32(9.0):
            marching = 0
        else:
            depth += sample(extinction, 0, p, fine_n) * ti.f32(LIGHT_STEP) * dx
            if ti.static(has_solids):
                # Soft edges: a ray that passes half a cell beside a surface is blocked by half.
                blocked = ti.min(blocked, ti.max(sample(distance, 0, p + ti.f32(0.5), fine_n) / dx, ti.f32(0.0)))
            p += step
    # A second, weaker and farther-reaching term stands for light that was scattered more than once.
    light[c] = ti.f32(0.85) * blocked * ti.exp(-depth) + ti.f32(0.15) * ti.exp(ti.f32(-0.3) * depth)


@ti.func
def _write_glow(
    c, I, s, smoke: ti.template(), dye: ti.template(), temperature: ti.template(), emission: ti.template(),
    light: ti.template(), glow: ti.template(), n, light_n, albedo, sun, ambient, strength, incandescence,
    has_smoke: ti.template(), has_dye: ti.template(), glows: ti.template(),
):  # fmt: skip
    cells = cells_of(s, n)
    colour = albedo
    if ti.static(has_dye):
        amount = ti.max(_opacity_at(c, cells, smoke, dye, has_smoke, has_dye), ti.f32(1e-6))
        mixed = ti.Vector([dye[c], dye[c + cells], dye[c + 2 * cells]])
        if ti.static(has_smoke):
            mixed += albedo * smoke[c]
        colour = ti.min(ti.max(mixed / amount, ti.f32(0.0)), ti.f32(1.0))
    arriving = sample(light, 0, inside_box(ti.cast(I, ti.f32) * ti.f32(0.5) + ti.f32(0.25), light_n), light_n)
    for channel in ti.static(range(3)):
        glow[3 * c + channel] = colour[channel] * (sun[channel] * arriving + ambient[channel])
    if ti.static(glows):
        # Lit smoke and glowing gas share the cell as they share its opacity.
        hot = incandescence * _glowing_at(c, temperature)
        cold = strength * _opacity_at(c, cells, smoke, dye, has_smoke, has_dye)
        share = hot / ti.max(hot + cold, ti.f32(1e-6))
        sent = _emission_at(c, temperature, emission)
        for channel in ti.static(range(3)):
            lit = glow[3 * c + channel]
            glow[3 * c + channel] = lit + share * (sent[channel] - lit)


@kernel_family
def light_kernels(loops, has_solids):
    IntVector, FloatVector, each_cell_in = loops.IntVector, loops.FloatVector, loops.each_cell_in

    @ti.kernel
    def compute_light(
        extinction: Array, distance: Array, light: Array, n: IntVector, fine_n: IntVector, direction: FloatVector,
        dx: ti.f32,
    ):  # fmt: skip
        each_cell_in(
            n * 0, n + 2, n, _write_light, (extinction, distance, light, fine_n, direction, dx, has_solids)
        )  # fmt: skip

    return {"compute_light": compute_light}


@kernel_family
def optics_kernels(loops, has_smoke, has_dye, glows):
    IntVector, each_cell_in = loops.IntVector, loops.each_cell_in
    Colour = float_vector(3)

    @ti.kernel
    def compute_extinction(
        smoke: Array, dye: Array, temperature: Array, extinction: Array, n: IntVector, strength: ti.f32,
        incandescence: ti.f32,
    ):  # fmt: skip
        each_cell_in(
            n * 0, n + 2, n, _write_extinction,
            (smoke, dye, temperature, extinction, n, strength, incandescence, has_smoke, has_dye, glows),
        )  # fmt: skip

    @ti.kernel
    def compute_glow(
        smoke: Array, dye: Array, temperature: Array, emission: Array, light: Array, glow: Array, n: IntVector,
        light_n: IntVector, albedo: Colour, sun: Colour, ambient: Colour, strength: ti.f32, incandescence: ti.f32,
    ):  # fmt: skip
        each_cell_in(
            n * 0, n + 2, n, _write_glow,
            (smoke, dye, temperature, emission, light, glow, n, light_n, albedo, sun, ambient, strength,
             incandescence, has_smoke, has_dye, glows),
        )  # fmt: skip

    return {"compute_extinction": compute_extinction, "compute_glow": compute_glow}


class Optics:
    """The optical volume of one grid.

    Attributes:
        extinction: 1/m, at cell centres.
        bricks: Where there is anything to see: rays jump over the rest.
        light_grid: The grid, half as fine, on which arriving light is computed.
        light: Fraction of the light that arrives.
        glow: Red, green and blue, interleaved: ``glow[3 c + channel]``.
    """

    def __init__(self, grid: Grid):
        self.grid = grid
        self.light_grid = Grid(tuple((n + 1) // 2 for n in grid.shape), 2 * grid.dx)
        self.extinction, self.glow = grid.array(), grid.array(3)
        self.bricks = Bricks(grid)
        self.light = self.light_grid.array()
        self._nothing = [ti.ndarray(ti.f32, 1) for _ in range(4)]
        self._emission = None

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
        strength, incandescence = opacity * look.extinction, opacity * look.incandescence
        glows = temperature is not None and incandescence > 0
        kernels = optics_kernels(self.grid.costly_loops, smoke is not None, dye is not None, glows)
        smoke = self._nothing[0] if smoke is None else smoke
        dye = self._nothing[1] if dye is None else dye
        temperature = temperature if glows else self._nothing[2]
        if glows and self._emission is None:
            self._emission = upload(blackbody.glow_table())
        emission = self._emission if glows else self._nothing[3]
        n, light_n = self.grid.n, self.light_grid.n
        kernels.compute_extinction(smoke, dye, temperature, self.extinction, n, strength, incandescence)
        if self.grid.dim == 3:  # no ray reads them in 2D
            self.bricks.update(self.extinction, LEAST_DEPTH / (RAY_STEP * self.grid.dx), distance)
        if not flat or distance is not None:
            towards = float_vector(self.grid.dim)(*direction)
            solid = self._nothing[0] if distance is None else distance
            light_kernels(self.light_grid.costly_loops, distance is not None).compute_light(
                self.extinction, solid, self.light, light_n, n, towards, self.grid.dx
            )
        colour = float_vector(3)
        strong = 0.0 if flat else brightness * look.light_strength
        sun = colour(*(strong * channel for channel in look.light))
        ambient = colour(*(brightness * channel for channel in ((FLAT, FLAT, FLAT) if flat else look.ambient)))
        kernels.compute_glow(
            smoke, dye, temperature, emission, self.light, self.glow, n, light_n, colour(*look.albedo), sun, ambient,
            strength, incandescence,
        )  # fmt: skip
