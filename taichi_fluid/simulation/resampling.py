"""A flow carried over to another grid over the same box: of another resolution, or with its velocity elsewhere.

Everything is interpolated linearly, each velocity component to where it lies. Where cells grow, the mean over the new
cell is taken; of a velocity component over the new face only, so that what flows through the faces of a cell still
adds up to what it was.
"""

import math

import numpy as np

from .._ti import argument, ti
from ..boundaries.walls import SCALAR
from ..grid import Grid
from ..kernels import Array, float_vector, int_vector, kernel_family
from ..limits import shortened
from ..operators.interpolation import sample
from .simulation import Simulation


@argument
class Places:
    """Where values lie in the index space of another grid, the source, whose cells are ``1 / ratio`` as large.

    The lower end of the box is ``origin`` here and ``source_origin`` there, its upper end ``upper`` there; ``taps`` samples
    along each axis are spread evenly over a cell or face.
    """

    ratio: object
    origin: object
    source_origin: object
    upper: object
    taps: object


@ti.func
def _resample_at(c, I, s, source: Array, begin, n, out: Array, offset, places):
    """Mean of the samples over the cell or face ``I``."""
    taps, origin = places.taps, places.source_origin
    count = 1
    for axis in ti.static(range(n.n)):
        count *= taps[axis]
    mean = ti.f32(0.0)
    for tap in range(count):
        q = (ti.cast(I, ti.f32) - places.origin) * places.ratio + origin
        rest = tap
        for axis in ti.static(range(n.n)):
            part = (ti.cast(rest % taps[axis], ti.f32) + ti.f32(0.5)) / ti.cast(taps[axis], ti.f32)
            q[axis] += (part - ti.f32(0.5)) * places.ratio
            rest = rest // taps[axis]
        # A running mean: of equal values it is that value, bit for bit.
        value = sample(source, begin, ti.min(ti.max(q, origin), places.upper), n)
        mean += (value - mean) / (ti.cast(tap, ti.f32) + ti.f32(1.0))
    out[offset + c] = mean


@kernel_family
def resample_kernels(loops):
    IntVector, FloatVector, each_cell_in = loops.IntVector, loops.FloatVector, loops.each_cell_in

    @ti.kernel
    def resample_values(
        source: Array, begin: ti.i32, source_n: IntVector, out: Array, offset: ti.i32, n: IntVector, end: IntVector,
        ratio: ti.f32, origin: FloatVector, source_origin: FloatVector, upper: FloatVector, taps: IntVector,
    ):  # fmt: skip
        places = Places(ratio, origin, source_origin, upper, taps)
        each_cell_in(n * 0 + 1, end, n, _resample_at, (source, begin, source_n, out, offset, places))

    return {"resample_values": resample_values}


def _resample_component(source: Grid, values, begin: int, target: Grid, out, offset: int, component: int) -> None:
    """``out[offset:…]`` from ``values[begin:…]``: at cell centres (``SCALAR``), or on the faces of a component."""
    ratio = target.dx / source.dx
    faces, from_faces = (
        [component != SCALAR and grid.place(component) == axis for axis in range(grid.dim)] for grid in (target, source)
    )
    ints, floats = int_vector(source.dim), float_vector(source.dim)
    # The index-space point that is the lower end of the box in each grid; a sample is as wide as two cells.
    place, from_place = ([1.0 if face else 0.5 for face in own] for own in (faces, from_faces))
    taps = [1 if face else max(1, math.ceil(0.5 * ratio - 1e-6)) for face in faces]
    end = [n + (2 if face else 1) for n, face in zip(target.shape, faces, strict=True)]
    upper = [n + x for n, x in zip(source.shape, from_place, strict=True)]
    places = (ratio, floats(*place), floats(*from_place), floats(*upper), ints(*taps))
    kernels = resample_kernels(target.loops)
    kernels.resample_values(values, begin, source.n, out, offset, target.n, ints(*end), *places)


def resample(source: Simulation, target: Simulation) -> None:
    """Carry the state of a running flow over to a grid of another resolution over the same box.

    Velocity, pressure and the quantities that both carry, the time, the number of steps and the fuel burnt, and a liquid, of
    which the surface goes over and is filled with new particles; what only ``target`` carries stays. Both are between two steps; ``source`` stays as it is, but for its room for next values.

    Args:
        source: The flow.
        target: What takes it over, most often newly built.

    Raises:
        ValueError: if one is no simulation, if they are the same, or their boxes have other axes or differ by more than a cell.
        RuntimeError: if Taichi was re-initialised since one of them was built, or one is not between two steps.
    """
    for name, flow in (("source", source), ("target", target)):
        if not isinstance(flow, Simulation):
            raise ValueError(f"{name} is {shortened(flow)}; it is a Simulation, of any resolution")
    old, new = source.grid, target.grid
    if source is target:
        raise ValueError("source and target are the same simulation")
    if old.dim != new.dim:
        raise ValueError(f"the boxes have {old.dim} and {new.dim} axes; a flow stays in its own")
    coarser = max(old.dx, new.dx)
    if any(abs(one - two) > coarser * (1 + 1e-6) for one, two in zip(old.size, new.size, strict=True)):
        raise ValueError(f"the boxes measure {old.size} and {new.size} m; they may differ by no more than a cell")
    for simulation in (source, target):
        simulation.grid.require_runtime()
        simulation.require_whole()
    target.time, target.steps, target.burnt = source.time, source.steps, source.burnt
    target.place_solids(target.time)
    target.move_as_at(source.time)
    before, after = source.state, target.state
    for name in [name for name in after.carried if name in before.carried]:
        quantity, out = before.carried[name], after.carried[name].current
        quantity.next.copy_from(quantity.current)
        for offset, begin in zip(after.carried[name].begins(), quantity.begins(), strict=True):
            _extend(source, quantity.next, begin, name)
            _resample_component(old, quantity.next, begin, new, out, offset, SCALAR)
    pressures = [(before.pressure, after.pressure)]
    if source.earlier is not None and source.first_pressure is not None:
        steps, dt, halved, lasting, *_ = source.earlier
        pressures.append((source.first_pressure, target.begin_earlier(steps, dt, halved, lasting, 0.0).pressure))
    for pressure, out in pressures:
        room = before.scratch.first
        room.copy_from(pressure)
        _extend(source, room)
        _resample_component(old, room, 0, new, out, 0, SCALAR)
    if source.flame is not None and source.expansion is not None:
        # What the velocity is to diverge by goes with it.
        flame = target.light()
        source.walls.fill(source.flame.growth)
        _resample_component(old, source.flame.growth, 0, new, flame.growth, 0, SCALAR)
        flame.finish()
        target.expansion = flame.expansion
    velocity, out = before.velocity.current, after.velocity.current
    for axis, (offset, begin) in enumerate(zip(after.velocity.begins(), before.velocity.begins(), strict=True)):
        _resample_component(old, velocity, begin, new, out, offset, axis)
    target.fill()
    if source.liquid is not None and target.liquid is not None:
        phi = target.liquid.phi
        _resample_component(old, source.liquid.distance_in_cells(), 0, new, phi, 0, SCALAR)
        phi.from_numpy(np.float32(old.dx) * phi.to_numpy())
        target.liquid.take_over(out)
        target.liquid.target = round(source.liquid.target * (old.dx / new.dx) ** old.dim)


def _extend(simulation: Simulation, array, offset: int = 0, name: str | None = None) -> None:
    """Continue a scalar into the solids and fill its ghosts, so that interpolation beside them sees no edge."""
    if simulation.solids:
        simulation.solids.extend_scalar(array, offset)
    simulation.walls.fill(array, SCALAR, offset, name)
