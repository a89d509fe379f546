"""Forces: accelerations that are added to the velocity."""

from collections.abc import Sequence

from .._ti import argument, ti
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import STRIPS, Array, Operator, cells_of, components, float_vector, kernel_family, write_strip
from ..operators.differences import gradient_at, vorticity_at
from ..operators.ghosts import wrap_if_periodic
from ..operators.vectors import length


@argument
class Buoyancy:
    """``velocity += change · scalar``."""

    velocity: object
    scalar: object
    change: object


@ti.func
def _buoyant_velocity_at(c, I, s, buoyancy, n, axis: ti.template(), on: ti.template()):
    value = buoyancy.scalar[c]
    if ti.static(not on.collocated):
        value = ti.f32(0.5) * (value + buoyancy.scalar[c - s[axis]])
    return buoyancy.velocity[c + axis * cells_of(s, n)] + buoyancy.change[axis] * value


@ti.func
def _add_buoyancy(c, I, m, s, buoyancy, n, on: ti.template(), width: ti.template()):
    for axis in ti.static(range(n.n)):
        # Mostly gravity has one component.
        if buoyancy.change[axis] != 0:
            operator = Operator(_buoyant_velocity_at, (buoyancy, n, axis, on))
            write_strip(c, I, m, s, n, ((buoyancy.velocity, axis),), width, operator)


@ti.func
def _accelerate_at(c, I, s, u: ti.template(), change, n):
    cells = cells_of(s, n)
    for axis in ti.static(range(n.n)):
        face = c + axis * cells
        u[face] = u[face] + change[axis]


@ti.func
def _vorticity_at(c, I, s, u: ti.template(), n, on: ti.template()):
    """The vorticity, in 2D one number, and last of all its magnitude."""
    w = vorticity_at(u, c, n, on.derivative)
    magnitude = length(w)
    return ti.Vector([w[0], w[1], w[2], magnitude] if ti.static(n.n == 3) else [w[2], magnitude])


@ti.func
def _confinement_at(c, I, s, vorticity: ti.template(), magnitude: ti.template(), n):
    """N × w with N the direction in which the vorticity grows; 0 where it does not grow at all."""
    cells = cells_of(s, n)
    g = gradient_at(magnitude, c, s)
    g *= ti.f32(1.0) / (length(g) + ti.f32(1e-12) + ti.f32(1e-4) * magnitude[c])
    if ti.static(n.n == 3):
        g = g.cross(ti.Vector([vorticity[c], vorticity[c + cells], vorticity[c + 2 * cells]]))
    else:
        g = ti.Vector([g[1] * vorticity[c], -g[0] * vorticity[c]])
    return g


@ti.func
def _forced_velocity_at(c, I, s, u: ti.template(), force: ti.template(), scale, n, wrap, on: ti.template()):
    """The velocity with a force at cell centres: at a face the mean of those beside it, on a side of the box none.

    An axis with ``wrap[axis] = 1`` has no sides; the ghosts of the force hold what is at its other end.
    """
    v = ti.cast(n, ti.f32)
    for axis in ti.static(range(n.n)):
        face = c + axis * cells_of(s, n)
        if ti.static(on.collocated):
            v[axis] = u[face] + scale * force[face]
        else:
            added = scale * ti.f32(0.5) * (force[face] + force[face - s[axis]])
            v[axis] = ti.select(I[axis] + wrap[axis] > 1, u[face] + added, u[face])
    return v


@ti.func
def _wrap_component(c, I, s, a: ti.template(), n, wrap, axis: ti.template()):
    """Ghosts along a periodic axis of the component along it, which its faces are the mean of."""
    wrap_if_periodic(axis * cells_of(s, n) + c, I, s, a, 0, n, wrap, axis)


@kernel_family
def force_kernels(loops, on):
    IntVector, FloatVector, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell
    each_strip, width = loops.each_strip, loops.width

    @ti.kernel
    def add_buoyancy(velocity: Array, scalar: Array, n: IntVector, change: FloatVector):
        each_strip(n, width, _add_buoyancy, (Buoyancy(velocity, scalar, change), n, on, width))

    @ti.kernel
    def accelerate(velocity: Array, n: IntVector, change: FloatVector):
        each_cell(n, _accelerate_at, (velocity, change, n))

    return {"add_buoyancy": add_buoyancy, "accelerate": accelerate}


@kernel_family
def confinement_kernels(loops, on, wraps):
    IntVector, each_on_plane, dim = loops.IntVector, loops.each_on_plane, loops.dim
    write_strips, wavefront, width = loops.write_strips, loops.wavefront, loops.width

    @ti.kernel
    def compute_vorticity(velocity: Array, vorticity: Array, magnitude: Array, n: IntVector):
        write_strips(n, components((vorticity, 2 * dim - 3), (magnitude, 1)), _vorticity_at, (velocity, n, on))

    @ti.kernel
    def confine(
        velocity: Array, vorticity: Array, magnitude: Array, force: Array, n: IntVector, wrap: IntVector, scale: ti.f32
    ):
        confinement = Operator(_confinement_at, (vorticity, magnitude, n))
        forced = Operator(_forced_velocity_at, (velocity, force, scale, n, wrap, on))
        if ti.static(wraps):
            write_strips(n, components((force, dim)), confinement.body, confinement.args)
            for axis in ti.static(range(dim)):
                each_on_plane(n, axis, _wrap_component, (force, n, wrap, axis))
            write_strips(n, components((velocity, dim)), forced.body, forced.args)
        else:
            wavefront(
                n,
                (
                    (STRIPS, write_strip, (n, components((force, dim)), width, confinement)),
                    (STRIPS, write_strip, (n, components((velocity, dim)), width, forced)),
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

    ``length`` stands for the epsilon · h of Fedkiw, Stam and Jensen (2001), h in metres and epsilon in 1/s, so that the same
    scene gets the same force at any resolution. In a scene that is slower, and else the same, it has to be less by as much.

    Args:
        grid: The grid.
        walls: Its sides; across them the vorticity is as strong as before them.
        velocity: Velocity with ghosts, changed in place; its walls must be filled afterwards.
        length: In m/s, as it is a length for each second.
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
