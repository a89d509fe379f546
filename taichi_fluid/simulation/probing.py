"""What probes measure: values at points, fluxes through planes, integrals and extremes of regions, depths of a liquid."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._ti import argument, ti
from ..boundaries.walls import PRESSURE, SCALAR
from ..carried import CARRIED, rate_of
from ..kernels import (
    Array,
    Reduction,
    add,
    cells_of,
    int_vector,
    kernel_family,
    largest,
    numbers_of,
    room_for_partials,
)
from ..operators.interpolation import sample
from ..operators.shapes import covered_part
from ..scene.probes import AXES, VOLUME, Probe, cells_in
from .diagnostics import NOT_FINITE
from .points import index_of, sampler, velocities_at
from .state import Quantity

LOOKS = 4
"""At a liquid along a cell of a gauge."""

LINES = 4
"""Across a face, by which it is found how much of it is in a liquid, in 3D."""


@argument
class _Region:
    """Cells from one position to another, both included, as far as they are ``fluid`` where that is ``given``."""

    lower: object
    upper: object
    fluid: object
    given: object

    @ti.func
    def has(self, c, I):
        """Whether a cell counts."""
        inside = ti.i32(1)
        for axis in ti.static(range(I.n)):
            if I[axis] < self.lower[axis] or I[axis] > self.upper[axis]:
                inside = 0
        if ti.static(self.given):
            if self.fluid[c] == 0:
                inside = 0
        return inside


@ti.func
def _value_in(c, I, s, a: Array, offset, region, whole):
    """A value, as far as its cell is fluid, or ``whole``."""
    value = ti.f32(0.0)
    if region.has(c, I):
        value = a[offset + c]
        if ti.static(region.given):
            if whole == 0:
                value *= region.fluid[c]
    return value


@ti.func
def _extremes_in(c, I, s, a: Array, offset, region):
    """The value and its opposite, the largest of which are looked for."""
    found = ti.Vector([ti.f32(-NOT_FINITE), ti.f32(-NOT_FINITE)])
    if region.has(c, I):
        found = ti.Vector([a[offset + c], -a[offset + c]])
    return found


@argument
class _Plane:
    """A plane of faces across ``axis``: the lower faces of its cells, or the upper ones if ``upper`` is 1.

    ``on_side`` is 1 where it is a side of the box: what leaves there has what is inside, what enters what is beyond.
    ``whole`` is 1 where to diffusion an open face counts whole, as beside solids that hold what is carried; ``spread`` is
    the diffusivity of that over the edge of a cell, m/s. Of a liquid, if it is ``wet``, only what is below the surface counts,
    where ``level``, its distance in m, is negative.
    """

    axis: object
    upper: object
    on_side: object
    whole: object
    spread: object
    n: object
    level: object
    collocated: bool
    cut: bool
    carries: bool
    wet: bool

    @ti.func
    def wet_part(self, J):
        """How much of the lower face of the cell at position ``J`` lies in the liquid, by lines across it."""
        q, total, lines = ti.cast(J, ti.f32), ti.f32(0.0), ti.static(LINES if J.n == 3 else 1)
        one, two = (self.axis + ti.i32(1)) % ti.i32(J.n), (self.axis + ti.i32(2)) % ti.i32(J.n)
        q[self.axis] -= ti.f32(0.5)
        for k in range(lines):
            begin = q
            if ti.static(J.n == 3):
                begin[two] += (ti.cast(k, ti.f32) + ti.f32(0.5)) / ti.f32(lines) - ti.f32(0.5)
            end = begin
            middle = sample(self.level, 0, begin, self.n)
            begin[one] -= ti.f32(0.5)
            end[one] += ti.f32(0.5)
            # Half by half: both ends of a line across a sheet that is thinner may be dry.
            for edge in ti.static((begin, end)):
                total += ti.f32(0.5) * covered_part(middle, sample(self.level, 0, edge, self.n))
        return total / ti.f32(lines)


@ti.func
def _flux_in(c, I, s, u: Array, open: Array, a: Array, offset, plane, region):
    """What passes a face: its velocity times how far it is open, and times the mean of what both its cells carry.

    And what diffuses, by the difference of the two.
    """
    flux = ti.f32(0.0)
    if region.has(c, I):
        step = s[plane.axis]
        cell = c + plane.upper * step
        face = cell + plane.axis * cells_of(s, plane.n)
        flux = u[face]
        if ti.static(plane.collocated):
            flux = ti.f32(0.5) * (u[face] + u[face - step])
        if ti.static(plane.cut):
            flux *= open[face]
        if ti.static(plane.wet):
            J = I
            J[plane.axis] += plane.upper
            flux *= plane.wet_part(J)
        if ti.static(plane.carries):
            below, above = a[offset + cell - step], a[offset + cell]
            passing = ti.f32(0.5) * (below + above)
            if plane.on_side == 1:
                passing = ti.select(flux > 0, below, above)
            flux *= passing
            weight = ti.f32(1.0)
            if ti.static(plane.cut):
                weight = open[face]
                if plane.whole == 1 and weight > 0:
                    weight = ti.f32(1.0)
            flux += weight * plane.spread * (below - above)
    return flux


@kernel_family
def region_kernels(loops, cut):
    IntVector, reduce_to, reduce, reduced = loops.IntVector, loops.reduce_to, loops.reduce, loops.reduced

    @ti.kernel
    def sum_region(
        a: Array,
        offset: ti.i32,
        fluid: Array,
        lower: IntVector,
        upper: IntVector,
        n: IntVector,
        sums: Array,
        out: Array,
        whole: ti.i32,
    ):
        region = _Region(lower, upper, fluid, cut)
        reduce_to(out, 0, n, sums, ti.f32(0.0), add, _value_in, (a, offset, region, whole))

    @ti.kernel
    def find_extremes(
        a: Array,
        offset: ti.i32,
        fluid: Array,
        lower: IntVector,
        upper: IntVector,
        n: IntVector,
        sums: Array,
        out: Array,
    ):
        none, region = ti.Vector([ti.f32(-NOT_FINITE), ti.f32(-NOT_FINITE)]), _Region(lower, upper, fluid, cut)
        reduce(n, sums, Reduction(none, largest, _extremes_in, (a, offset, region)))
        ti.loop_config(serialize=True)
        for _ in range(1):
            found = reduced(sums, ti.Vector([ti.f32(-NOT_FINITE), ti.f32(-NOT_FINITE)]), largest)
            out[0], out[1] = -found[1], found[0]

    return sum_region, find_extremes


@kernel_family
def plane_kernels(loops, collocated, cut, carries, wet):
    IntVector = loops.IntVector

    @ti.kernel
    def sum_flux(
        u: Array,
        open: Array,
        a: Array,
        offset: ti.i32,
        level: Array,
        lower: IntVector,
        upper: IntVector,
        where: ti.types.vector(4, ti.i32),
        spread: ti.f32,
        n: IntVector,
        sums: Array,
        out: Array,
    ):
        plane = _Plane(where[0], where[1], where[2], where[3], spread, n, level, collocated, cut, carries, wet)
        region = _Region(lower, upper, open, False)
        loops.reduce_to(out, 0, n, sums, ti.f32(0.0), add, _flux_in, (u, open, a, offset, plane, region))

    return (sum_flux,)


def budget(simulation: Any) -> dict[str, Any]:
    """Energy, J (2D: J/m), enstrophy, m³/s² (2D: m²/s²), and the integral of each quantity that is carried, by name.

    Of several components one number each. Faces inside solids count as what they carry, the velocity of the solid. Of a
    liquid also its volume, m³ (2D: m²), and how many particles there are.
    """
    measure, velocity = simulation.diagnostics, simulation.state.velocity.current
    amounts = {
        name: [measure.amount(quantity.current, begin) for begin in quantity.begins()]
        for name, quantity in simulation.state.carried.items()
    }
    liquid = simulation.liquid
    of_liquid = {} if liquid is None else {"liquid_volume": liquid.volume, "particles": liquid.particles.count}
    return {
        "kinetic_energy": measure.kinetic_energy(velocity, simulation.scene.fluid.rho),
        "enstrophy": measure.enstrophy(velocity),
        "amounts": {name: each if len(each) > 1 else each[0] for name, each in amounts.items()},
        **of_liquid,
    }


class Gauge:
    """Measures one simulation, by kernels that are built for what is asked.

    Args:
        simulation: The simulation.
    """

    def __init__(self, simulation: Any):
        self.simulation, self.grid = simulation, simulation.grid
        self._partials, self._out = room_for_partials(2), ti.ndarray(ti.f32, 2)
        self._nothing = ti.ndarray(ti.f32, 1)
        self._array, self._points = None, {}
        self._outside: dict[str, Quantity] = {}

    def measure(self, probe: Probe) -> dict[str, float]:
        """What a probe measures now, by what follows its name: nothing, or ``".x"`` and the like."""
        self.grid.require_runtime()
        return _MEASURES[probe.kind](self, probe)

    def _carried(self, name: str) -> Quantity | None:
        """What is carried by a name; of what nothing brings in any more, after a reset, what is outside."""
        if name not in self.simulation.state.carried and name in CARRIED and name not in self._outside:
            self._outside[name] = Quantity(self.grid, CARRIED[name])
        return self.simulation.state.carried.get(name, self._outside.get(name))

    def _fields(self, quantity: str, weighed: bool = False) -> list[tuple[Any, int]]:
        """Arrays over the cells with ghosts, and where in them a component begins: one for each component.

        Of a liquid a component of the velocity is 0 in the air, and where it is ``weighed`` on its surface a part of itself.
        """
        simulation = self.simulation
        if (carried := self._carried(quantity)) is not None:
            return [(carried.current, begin) for begin in carried.begins()]
        velocity, of_velocity = simulation.state.velocity.current, quantity.startswith("velocity_")
        if of_velocity and simulation.liquid is None:
            return [(velocity, AXES.index(quantity[-1]) * self.grid.cells)]
        if self._array is None:
            self._array = self.grid.array()
        if of_velocity:
            simulation.diagnostics.compute_wet_component(velocity, AXES.index(quantity[-1]), self._array, weighed)
            return [(self._array, 0)]
        if quantity == VOLUME:
            simulation.diagnostics.compute_wet_part(self._array)
        elif quantity == "pressure":
            simulation.copy_pressure(self._array)
        else:
            getattr(simulation.diagnostics, f"compute_{quantity}")(velocity, self._array)
        simulation.walls.fill(self._array, PRESSURE if quantity == "pressure" else SCALAR)
        return [(self._array, 0)]

    def sampled(self, probe: Probe) -> dict[str, float]:
        """Of a point or of a line: linear interpolation, as the engine looks up what it carries."""
        count = 1 if probe.to is None else probe.points or 32
        names = [""] if probe.to is None else [f".{i}" for i in range(count)]
        quantity = probe.quantity or ""
        if quantity in ("speed", "velocity") or quantity.startswith("velocity_"):
            u = velocities_at(self.simulation, self._places(probe, count), count).astype(float)
            if quantity == "speed":
                return dict(zip(names, np.sqrt((u**2).sum(axis=1)).tolist(), strict=True))
            if quantity != "velocity":
                return dict(zip(names, u[:, AXES.index(quantity[-1])].tolist(), strict=True))
            return {
                f"{name}.{axis}": x
                for name, row in zip(names, u.tolist(), strict=True)
                for axis, x in zip(AXES, row, strict=False)
            }
        values, fields = {}, self._fields(quantity)
        for k, found in enumerate(self._along(probe, count, fields)):
            ends = _ends(k, fields)
            values |= {f"{name}{ends}": x for name, x in zip(names, found.tolist(), strict=True)}
        return values

    def gauge(self, probe: Probe) -> dict[str, float]:
        """Of a line: how much of it lies in the liquid and in no solid, and how far from its beginning that reaches, m."""
        assert probe.at is not None and probe.to is not None and self.simulation.liquid is not None
        length, solids = math.dist(probe.at, probe.to), self.simulation.solids
        count = max(2, math.ceil(LOOKS * length / self.grid.dx) + 1)
        fields = [(self.simulation.liquid.phi, 0), *([(solids.fluid, 0)] if solids else [])]
        wet, reach = _wet_along(*self._along(probe, count, fields))
        step = length / (count - 1)
        return {"": wet * step, ".reach": reach * step}

    def _along(self, probe: Probe, count: int, fields: Sequence[tuple[Any, int]]) -> Iterator[np.ndarray]:
        """What each of some fields is at so many points of a probe."""
        places, out = self._places(probe, count), ti.ndarray(ti.f32, count)
        kernels = sampler(self.grid)
        for array, begin in fields:
            kernels.sample_scalar(array, begin, places, count, self.grid.n, out)
            yield out.to_numpy().astype(float)

    def _places(self, probe: Probe, count: int):
        """So many points of a probe in the index space of cell centres, on the device."""
        if probe.name not in self._points:
            assert probe.at is not None
            way = np.subtract(probe.to or probe.at, probe.at)
            part = np.linspace(0.0, 1.0, count)[:, None] if count > 1 else np.zeros((1, 1))
            self._points[probe.name] = index_of(self.grid, np.array(probe.at) + part * way)
        return self._points[probe.name]

    def flux(self, probe: Probe) -> dict[str, float]:
        """Of a plane: what passes towards larger coordinates, in m³/s (2D: m²/s) times the unit of what is carried."""
        grid, walls, solids = self.grid, self.simulation.walls, self.simulation.solids
        assert probe.axis is not None and probe.position is not None
        axis = AXES.index(probe.axis)
        face = min(max(round(probe.position / grid.dx), 0), grid.shape[axis])
        last = face == grid.shape[axis]
        lower, upper = cells_in(probe, self.grid.size, self.grid.dx)
        lower[axis] = upper[axis] = grid.shape[axis] if last else face + 1
        on_side = int((last or face == 0) and not walls.periodic[axis])
        whole = any(probe.quantity in solid.values for solid in solids.solids) if solids else False
        where, index = int_vector(4)(axis, int(last), on_side, int(whole)), int_vector(grid.dim)
        fields = [(self._nothing, 0)] if probe.quantity == VOLUME else self._fields(probe.quantity or "")
        liquid = self.simulation.liquid
        what = grid.collocated, solids is not None, probe.quantity != VOLUME, liquid is not None
        kernels, level = plane_kernels(grid.loops, *what), self._nothing if liquid is None else liquid.phi
        velocity, open, values = self.simulation.state.velocity.current, solids.open if solids else self._nothing, {}
        spread = 0.0 if probe.quantity == VOLUME else self._diffusivity(probe.quantity or "") / grid.dx
        if on_side and walls.sides[axis][int(last)].lets_out:
            spread = 0.0
        for k, (array, begin) in enumerate(fields):
            region = index(*lower), index(*upper), where, spread, grid.n
            kernels.sum_flux(velocity, open, array, begin, level, *region, self._partials, self._out)
            values[_ends(k, fields)] = numbers_of(self._out)[0] * grid.dx ** (grid.dim - 1)
        return values

    def _diffusivity(self, quantity: str) -> float:
        carried = self._carried(quantity)
        assert carried is not None, quantity
        return rate_of(self.simulation.scene.fluid, carried.row, "diffusivity")

    def integral(self, probe: Probe) -> dict[str, float]:
        """Over a region without what solids fill."""
        simulation = self.simulation
        velocity = simulation.state.velocity.current
        if probe.quantity == "kinetic_energy":
            return {"": simulation.diagnostics.kinetic_energy(velocity, simulation.scene.fluid.rho)}
        if probe.quantity == "enstrophy":
            return {"": simulation.diagnostics.enstrophy(velocity)}
        fields = self._fields(probe.quantity or "", weighed=True)
        whole = int(probe.quantity == "divergence")  # which is that of all of a cell
        sums = [self._in_region(probe, "sum_region", *field, whole)[0] for field in fields]
        return {_ends(k, fields): value * self.grid.cell_volume for k, value in enumerate(sums)}

    def extremes(self, probe: Probe) -> dict[str, float]:
        """Least and largest value of the cells, or lower faces, of a region that solids do not fill."""
        fields, values = self._fields(probe.quantity or ""), {}
        for k, field in enumerate(fields):
            for end, value in zip((".min", ".max"), self._in_region(probe, "find_extremes", *field), strict=True):
                values[_ends(k, fields) + end] = value if abs(value) < NOT_FINITE else math.nan
        return values

    def _in_region(self, probe: Probe, kernel: str, array, begin: int, *more: int) -> list[float]:
        solids, index = self.simulation.solids, int_vector(self.grid.dim)
        kernels, (lower, upper) = (
            region_kernels(self.grid.loops, solids is not None),
            cells_in(probe, self.grid.size, self.grid.dx),
        )
        fluid = solids.fluid if solids else self._nothing
        where = (index(*lower), index(*upper), self.grid.n)
        getattr(kernels, kernel)(array, begin, fluid, *where, self._partials, self._out, *more)
        return numbers_of(self._out)

    def exchange(self, probe: Probe) -> dict[str, float]:
        """What a solid gives, in m³/s (2D: m²/s) times the unit of what is carried."""
        given = np.atleast_1d(self.simulation.solids.exchange(probe.solid, probe.quantity))
        return {_ends(k, given): float(value) for k, value in enumerate(given)}

    def load(self, probe: Probe) -> dict[str, float]:
        """Force, N (2D: N/m), of pressure and of friction too, and torque, N m (2D: N), on a solid."""
        load = self.simulation.solids.load(probe.solid)
        turning = ("",) if len(load.torque) == 1 else tuple(f".{axis}" for axis in AXES)
        parts = {"": load.force, ".pressure": load.pressure, ".friction": load.friction}
        values = {f"{name}.{axis}": x for name, force in parts.items() for axis, x in zip(AXES, force, strict=False)}
        return values | {f".torque{end}": x for end, x in zip(turning, load.torque, strict=True)}


def _wet_along(level: np.ndarray, fluid: np.ndarray | None = None) -> tuple[float, float]:
    """Of a line of points how much lies in a liquid, and how far from the first one that reaches, in steps between points.

    Args:
        level: Distance to the surface at the points, negative in the liquid.
        fluid: How much there is no solid; segments that are more than half in one are left out.
    """
    begin, end = level[:-1], level[1:]
    part = np.where(begin < 0, 1.0, 0.0)
    crossed = (begin < 0) != (end < 0)
    one, two = begin[crossed], end[crossed]
    part[crossed] = -np.minimum(one, two) / np.abs(one - two)
    if fluid is not None:
        part[fluid[:-1] + fluid[1:] < 1] = 0.0
    (wet,) = np.nonzero(part)
    if not wet.size:
        return 0.0, 0.0
    last = wet[-1]
    return float(part.sum()), float(last + (part[last] if end[last] >= 0 else 1.0))


def _ends(k: int, fields: Sequence) -> str:
    """What a component is called behind the name of its probe."""
    return f".{k}" if len(fields) > 1 else ""


_MEASURES = {
    "point": Gauge.sampled,
    "line": Gauge.sampled,
    "plane": Gauge.flux,
    "integral": Gauge.integral,
    "extreme": Gauge.extremes,
    "gauge": Gauge.gauge,
    "load": Gauge.load,
    "exchange": Gauge.exchange,
}
