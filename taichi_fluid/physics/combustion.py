"""Combustion: fuel that burns, the heat, soot and volume that come of it, and hot gas that cools by radiation.

The flame is the one of Feldman, O'Brien and Arikan, Animating Suspended Particle Explosions (2003): it gives the flow a
divergence, and the pressure makes room for it; Nguyen, Fedkiw and Jensen, Physically Based Modeling and Animation of
Fire (2002), is where radiation to the fourth power comes from. Fuel burns throughout the gas that is hot enough, at a
rate, where theirs burns at a front: so flames are as thick as the cells allow, and need no level set.
"""

import math

from .._ti import argument, ti
from ..boundaries.solids import Solids
from ..grid import Grid, given
from ..kernels import Array, add, cells_of, kernel_family, numbers_of, room_for_partials

_ALWAYS = -3e38
"""Ignition temperature that all gas has, K."""
RADIATION_AT = 1000.0
"""Temperature above ambient at which the rate of radiative cooling is given, K."""


@argument
class Combustion:
    """Gas that burns, at cell centres, and the law it follows: ``part`` of the fuel goes, the rest is as ``Flame.burn`` says.

    ``growth`` is a divergence, 1/s, and so is ``expansion``. What is not ``sooty`` or does not expand leaves that array.
    ``fluid`` is the part of each cell that solids do not cover, where there ``are_solids``.
    """

    fuel: object
    temperature: object
    smoke: object
    growth: object
    part: object
    ignition: object
    heat: object
    soot: object
    expansion: object
    fluid: object
    sooty: object
    expands: object
    are_solids: object


@ti.func
def _burn_at(c, I, s, gas):
    """Burn a part of what a cell has, if it is hot enough; returns how much there is of that."""
    burnt = ti.f32(0.0)
    if gas.temperature[c] >= gas.ignition:
        burnt = gas.part * ti.max(gas.fuel[c], ti.f32(0.0))
        gas.fuel[c] = gas.fuel[c] - burnt
        gas.temperature[c] = gas.temperature[c] + gas.heat * burnt
        if ti.static(gas.sooty):
            gas.smoke[c] = gas.smoke[c] + gas.soot * burnt
        if ti.static(gas.expands):
            gas.growth[c] = gas.growth[c] + gas.expansion * burnt
        if ti.static(gas.are_solids):
            burnt *= gas.fluid[c]
    return burnt


@ti.func
def _keep_open_part_at(c, I, s, expansion: Array, open: Array, n):
    """Of a cell that a solid cuts, only the fluid's part expands: the mean of how far its faces are open."""
    cells = cells_of(s, n)
    total = ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        total += open[c + axis * cells] + open[c + axis * cells + s[axis]]
    expansion[c] = expansion[c] * total * ti.f32(ti.static(0.5 / s.n))


@ti.func
def _dilute_at(c, I, s, a: Array, expansion: Array, offset, dt):
    a[offset + c] = a[offset + c] * ti.exp(-expansion[c] * dt)


@ti.func
def _radiate_at(c, I, s, temperature: Array, rate):
    """T' = -r T (T / 1000 K)³ makes 1 / T³ grow evenly; ``rate`` is 3 r dt."""
    hot = temperature[c]
    if hot > 0:
        x = hot * ti.f32(1.0 / RADIATION_AT)
        temperature[c] = hot * (ti.f32(1.0) + rate * x * x * x) ** ti.f32(-1.0 / 3.0)


@kernel_family
def flame_kernels(loops, sooty, expands, are_solids):
    IntVector, reduce_cells, reduced = loops.IntVector, loops.reduce_cells, loops.reduced

    @ti.kernel
    def burn(
        fuel: Array, temperature: Array, smoke: Array, growth: Array, n: IntVector, part: ti.f32, ignition: ti.f32,
        heat: ti.f32, soot: ti.f32, expansion: ti.f32, fluid: Array, partials: Array, burnt: Array,
    ):  # fmt: skip
        law = part, ignition, heat, soot, expansion
        gas = Combustion(fuel, temperature, smoke, growth, *law, fluid, sooty, expands, are_solids)
        reduce_cells(n, partials, ti.f32(0.0), add, _burn_at, (gas,))
        ti.loop_config(serialize=True)
        for _ in range(1):
            burnt[0] = burnt[0] + reduced(partials, ti.f32(0.0), add)

    return (burn,)


@kernel_family
def gas_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def keep_open_part(expansion: Array, open: Array, n: IntVector):
        each_cell(n, _keep_open_part_at, (expansion, open, n))

    @ti.kernel
    def dilute(a: Array, expansion: Array, n: IntVector, offset: ti.i32, dt: ti.f32):
        each_cell(n, _dilute_at, (a, expansion, offset, dt))

    @ti.kernel
    def radiate(temperature: Array, n: IntVector, rate: ti.f32):
        each_cell(n, _radiate_at, (temperature, rate))

    return keep_open_part, dilute, radiate


class Flame:
    """Burns fuel on one grid and says how much room it takes.

    In a step of dt a cell of fuel F that is hot enough burns b = F (1 - exp(-burn_rate · dt)). Its temperature rises by
    heat · b, its smoke by soot · b, and its volume grows by the part expansion · b: that, over dt, is the divergence
    which the projection is to leave. What is counted per volume is thinned out by ``dilute`` when that velocity carries
    it, so that the flow, which carries values and not amounts, keeps the amounts. Temperature is not: gas that expands in
    the open stays hot.

    Call in this order, once a step: ``begin``, what else adds to ``growth``, ``burn``, ``finish``; and ``dilute`` before
    each advection with the velocity that was projected to this. A step may ``burn`` in parts, each with its part of ``expansion``.

    Attributes:
        growth: The prescribed divergence of the fluid at cell centres, 1/s.
        expansion: That of a cell, as the projection and ``Diagnostics.divergence`` have it: of its fluid and its solid
            part together. Without solids the same array.

    Args:
        grid: The grid.
        solids: What stands in it.
    """

    def __init__(self, grid: Grid, solids: Solids | None = None):
        self.grid, self.solids = grid, solids
        self.growth = grid.array()
        self.expansion = grid.array() if solids else self.growth
        self._burnt, self._partials = ti.ndarray(ti.f32, 1), room_for_partials()
        self._burnt.fill(0.0)
        self._nothing, self._no_fluid = ti.ndarray(ti.f32, 1), ti.ndarray(ti.f32, 1)
        self._kernels = gas_kernels(grid.loops)

    @property
    def burnt(self) -> float:
        """Integral over the box of the fuel burnt so far, in units of fuel times m³ (2D: m²); one number read back."""
        self.grid.require_runtime()
        return numbers_of(self._burnt)[0] * self.grid.cell_volume

    @burnt.setter
    def burnt(self, amount: float) -> None:
        self.grid.require_runtime()
        self._burnt[0] = amount / self.grid.cell_volume

    def begin(self) -> None:
        """Prescribe no divergence."""
        self.grid.require_runtime()
        self.growth.fill(0.0)

    def burn(
        self, fuel, temperature, smoke, dt: float, burn_rate: float, ignition: float = 0.0, heat: float = 0.0,
        soot: float = 0.0, expansion: float = 0.0,
    ) -> None:  # fmt: skip
        """Burn for dt seconds, in place; ghosts must be filled afterwards.

        Args:
            fuel: At cell centres.
            temperature: K above ambient.
            smoke: Takes the soot; None leaves it out.
            dt: Seconds.
            burn_rate: Part of the fuel that burns each second, 1/s.
            ignition: Temperature above ambient from which it does, K; 0 is any, also below ambient.
            heat: K for each unit burnt.
            soot: Smoke for each unit burnt.
            expansion: Relative growth of volume for each unit burnt.
        """
        self.grid.require(fuel=fuel, temperature=temperature, **given(smoke=smoke))
        part = -math.expm1(-burn_rate * dt)
        sooty = smoke is not None and soot > 0
        solids = self.solids
        kernels = flame_kernels(self.grid.loops, sooty, expansion > 0, solids is not None)
        gas = (fuel, temperature, smoke if sooty else self._nothing, self.growth)
        law = (part, ignition if ignition > 0 else _ALWAYS, heat, soot, expansion / dt)
        fluid = solids.fluid if solids is not None else self._no_fluid
        kernels.burn(*gas, self.grid.n, *law, fluid, self._partials, self._burnt)

    def finish(self) -> None:
        """When all that expands has been added: of a cell that a solid cuts, only the fluid's part does."""
        if self.solids is not None:
            self.expansion.copy_from(self.growth)
            self._kernels.keep_open_part(self.expansion, self.solids.open, self.grid.n)

    def dilute(self, array, dt: float, offset: int = 0) -> None:
        """Divide a scalar by 1 + growth · dt, the factor by which its volume grows in the ``dt`` that it is carried."""
        self.grid.require(None, offset, array=array)
        self._kernels.dilute(array, self.growth, self.grid.n, offset, dt)


def radiate(grid: Grid, temperature, rate: float, dt: float) -> None:
    """Cool hot gas as a thin layer radiates: dT/dt = -rate · T (T / 1000 K)³, solved exactly.

    T is counted above ambient, and what is not above it stays. ``rate`` in 1/s is that of gas at 1000 K.
    """
    grid.require(temperature=temperature)
    gas_kernels(grid.loops).radiate(temperature, grid.n, 3.0 * rate * dt)
