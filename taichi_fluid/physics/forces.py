"""Forces: accelerations that are added to the velocity."""

from collections.abc import Sequence

from .._ti import ti
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import (
    RUNS,
    Array,
    along_run,
    beside,
    cell_of_run,
    cells_of,
    float_vector,
    kernel_family,
    position_in_run,
    put_run,
    strides_of,
)
from ..operators.differences import gradient_at, vorticity_at
from ..operators.ghosts import wrap_if_periodic
from ..operators.runs import put_columns, set_column


@ti.func
def _buoyant_velocity_of(
    k, c, u: ti.template(), scalar: ti.template(), change, found: ti.template(), n, axis: ti.template(),
    on: ti.template(),
):  # fmt: skip
    s = strides_of(n)
    value = scalar[cell_of_run(c, k)]
    if ti.static(not on.collocated):
        value = ti.f32(0.5) * (value + scalar[beside(c, -s[axis], k)])
    found[ti.i32(0), k] = u[beside(c, axis * cells_of(s, n), k)] + change[axis] * value


@ti.func
def _add_buoyancy_of_run(
    c, I, m, s, u: ti.template(), scalar: ti.template(), change, n, on: ti.template(), width: ti.template()
):  # fmt: skip
    found = ti.Matrix.zero(ti.f32, 1, width)
    for axis in ti.static(range(n.n)):
        # Mostly gravity has one component.
        if change[axis] != 0:
            along_run(m, width, _buoyant_velocity_of, (c, u, scalar, change, found, n, axis, on))
            along_run(m, width, put_run, (u, c + axis * cells_of(s, n), found, 0))


@ti.func
def _accelerate_at(c, I, s, u: ti.template(), change, n):
    cells = cells_of(s, n)
    for axis in ti.static(range(n.n)):
        face = c + axis * cells
        u[face] = u[face] + change[axis]


@ti.func
def _vorticity_of(k, c, u: ti.template(), found: ti.template(), n, on: ti.template()):
    """The vorticity of a cell of a run, and last of all its magnitude."""
    w = vorticity_at(u, c, n, on.derivative, k)
    if ti.static(n.n == 3):
        for axis in ti.static(range(3)):
            found[ti.i32(axis), k] = w[axis]
    else:
        found[ti.i32(0), k] = w[2]
    found[ti.i32(found.n - 1), k] = ti.sqrt(w.norm_sqr())


@ti.func
def _write_vorticity_of_run(
    c, I, m, s, u: ti.template(), vorticity: ti.template(), magnitude: ti.template(), n, on: ti.template(),
    width: ti.template(),
):  # fmt: skip
    components = ti.static(2 * n.n - 3)
    found = ti.Matrix.zero(ti.f32, components + 1, width)
    along_run(m, width, _vorticity_of, (c, u, found, n, on))
    for component in ti.static(range(components)):
        along_run(m, width, put_run, (vorticity, c + component * cells_of(s, n), found, component))
    along_run(m, width, put_run, (magnitude, c, found, components))


@ti.func
def _confinement_of(k, c, vorticity: ti.template(), magnitude: ti.template(), found: ti.template(), n):
    """N × w with N the direction in which the vorticity grows; 0 where it does not grow at all."""
    s = strides_of(n)
    here, cells = cell_of_run(c, k), cells_of(s, n)
    g = gradient_at(magnitude, c, s, k)
    g *= ti.f32(1.0) / (ti.sqrt(g.norm_sqr()) + ti.f32(1e-12) + ti.f32(1e-4) * magnitude[here])
    if ti.static(n.n == 3):
        w = ti.Vector([vorticity[here], vorticity[beside(c, cells, k)], vorticity[beside(c, 2 * cells, k)]])
        set_column(found, k, g.cross(w))
    else:
        found[ti.i32(0), k] = g[1] * vorticity[here]
        found[ti.i32(1), k] = -g[0] * vorticity[here]


@ti.func
def _write_confinement_of_run(
    c, I, m, s, vorticity: ti.template(), magnitude: ti.template(), force: ti.template(), n, width: ti.template()
):  # fmt: skip
    found = ti.Matrix.zero(ti.f32, n.n, width)
    along_run(m, width, _confinement_of, (c, vorticity, magnitude, found, n))
    along_run(m, width, put_columns, (force, c, found, n))


@ti.func
def _forced_velocity_of(
    k, c, I, u: ti.template(), force: ti.template(), scale, found: ti.template(), n, wrap, on: ti.template()
):  # fmt: skip
    """The velocity with a force at cell centres: at a face the mean of those beside it, on a side of the box none.

    An axis with ``wrap[axis] = 1`` has no sides; the ghosts of the force hold what is at its other end.
    """
    s = strides_of(n)
    for axis in ti.static(range(n.n)):
        own = axis * cells_of(s, n)
        face = beside(c, own, k)
        if ti.static(on.collocated):
            found[ti.i32(axis), k] = u[face] + scale * force[face]
        else:
            added = scale * ti.f32(0.5) * (force[face] + force[beside(c, own - s[axis], k)])
            found[ti.i32(axis), k] = ti.select(position_in_run(I, k, axis) + wrap[axis] > 1, u[face] + added, u[face])


@ti.func
def _wrap_component(c, I, s, a: ti.template(), n, wrap, axis: ti.template()):
    """Ghosts along a periodic axis of the component along it, which its faces are the mean of."""
    wrap_if_periodic(axis * cells_of(s, n) + c, I, s, a, 0, n, wrap, axis)


@ti.func
def _add_force_of_run(
    c, I, m, s, u: ti.template(), force: ti.template(), scale, n, wrap, on: ti.template(), width: ti.template()
):  # fmt: skip
    found = ti.Matrix.zero(ti.f32, n.n, width)
    along_run(m, width, _forced_velocity_of, (c, I, u, force, scale, found, n, wrap, on))
    along_run(m, width, put_columns, (u, c, found, n))


@kernel_family
def force_kernels(loops, on):
    IntVector, FloatVector, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell
    each_run, width = loops.each_run, loops.width

    @ti.kernel
    def add_buoyancy(velocity: Array, scalar: Array, n: IntVector, change: FloatVector):
        each_run(n, width, _add_buoyancy_of_run, (velocity, scalar, change, n, on, width))

    @ti.kernel
    def accelerate(velocity: Array, n: IntVector, change: FloatVector):
        each_cell(n, _accelerate_at, (velocity, change, n))

    return {"add_buoyancy": add_buoyancy, "accelerate": accelerate}


@kernel_family
def confinement_kernels(loops, on, wraps):
    IntVector, each_run, each_on_plane, dim = loops.IntVector, loops.each_run, loops.each_on_plane, loops.dim
    in_turn, width = loops.in_turn, loops.width

    @ti.kernel
    def compute_vorticity(velocity: Array, vorticity: Array, magnitude: Array, n: IntVector):
        each_run(n, width, _write_vorticity_of_run, (velocity, vorticity, magnitude, n, on, width))

    @ti.kernel
    def confine(
        velocity: Array, vorticity: Array, magnitude: Array, force: Array, n: IntVector, wrap: IntVector, scale: ti.f32
    ):
        if ti.static(wraps):
            each_run(n, width, _write_confinement_of_run, (vorticity, magnitude, force, n, width))
            for component in ti.static(range(dim)):
                each_on_plane(n, component, _wrap_component, (force, n, wrap, component))
            each_run(n, width, _add_force_of_run, (velocity, force, scale, n, wrap, on, width))
        else:
            in_turn(
                n,
                (
                    (RUNS, _write_confinement_of_run, (vorticity, magnitude, force, n, width)),
                    (RUNS, _add_force_of_run, (velocity, force, scale, n, wrap, on, width)),
                ),
                (),
            )

    return {"compute_vorticity": compute_vorticity, "confine": confine}


def add_buoyancy(grid: Grid, velocity, scalar, gravity: Sequence[float], coefficient: float, dt: float) -> None:
    """Add dt · gravity · coefficient · scalar to the velocity (Boussinesq: the hydrostatic part is left out).

    Args:
        grid: The grid.
        velocity: Velocity, m/s, changed in place; its walls must be filled afterwards.
        scalar: Quantity at centres, ghosts filled.
        gravity: Acceleration, m/s².
        coefficient: Relative weight per unit of the scalar: for temperature minus the expansion coefficient, 1/K.
        dt: Seconds.
    """
    grid.require(grid.dim, velocity=velocity)
    grid.require(scalar=scalar)
    change = _vector(grid, [dt * g * coefficient for g in gravity])
    force_kernels(grid.loops, grid.placement).add_buoyancy(velocity, scalar, grid.n, change)


def accelerate(grid: Grid, velocity, acceleration: Sequence[float], dt: float) -> None:
    """Add dt · acceleration, in m/s², to every value; walls must be filled afterwards."""
    grid.require(grid.dim, velocity=velocity)
    force_kernels(grid.loops, grid.placement).accelerate(
        velocity, grid.n, _vector(grid, [dt * a for a in acceleration])
    )


def add_confinement(grid: Grid, walls: Walls, velocity, length: float, dt: float, scratch) -> None:
    """Vorticity confinement: add dt · length · (N × w), which spins up the eddies that the grid is losing.

    ``length`` stands for the epsilon · h of Fedkiw, Stam and Jensen (2001), in metres, so that the same scene gets the
    same force at any resolution.

    Args:
        grid: The grid.
        walls: Its sides; across them the vorticity is as strong as before them.
        velocity: Velocity with ghosts, changed in place; its walls must be filled afterwards.
        length: In metres.
        dt: Seconds.
        scratch: Arrays to work in: two of ``dim`` components, for vorticity and force, and one scalar.
    """
    vorticity, force, magnitude = scratch
    grid.require(grid.dim, velocity=velocity, vorticity=vorticity, force=force)
    grid.require(magnitude=magnitude)
    wraps = any(walls.periodic) and not grid.collocated
    kernels = confinement_kernels(grid.costly_loops, grid.placement, wraps)
    kernels.compute_vorticity(velocity, vorticity, magnitude, grid.n)
    walls.fill(magnitude)
    kernels.confine(velocity, vorticity, magnitude, force, grid.n, walls.wrap, dt * length / grid.dx)


def _vector(grid: Grid, values: Sequence[float]):
    return float_vector(grid.dim)(*values)
