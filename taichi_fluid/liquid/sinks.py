"""Sinks: shapes that a liquid leaves through, as through holes to the air around the box."""

from collections.abc import Sequence

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, float_vector, kernel_family
from ..operators.shapes import SHAPES
from .particle_height import FAR
from .particles import NOWHERE, Particles, vector_at


@ti.func
def _open_at(c, I, s, phi: Array, distance_of: ti.template(), shape: ti.template(), ground):
    a, b, radius = ti.static(shape)
    origin, dx = ground
    away = distance_of(origin + (ti.cast(I, ti.f32) - ti.f32(0.5)) * dx, a, b, radius)
    phi[c] = ti.max(phi[c], ti.min(-away, ti.f32(FAR) * dx))


@kernel_family
def sink_kernels(loops, shape):
    Index, Point, distance_of = loops.IntVector, loops.FloatVector, SHAPES[shape]

    @ti.kernel
    def take_away(
        position: Array, room: ti.i32, number: ti.i32, a: Point, b: Point, radius: ti.f32, origin: Point, dx: ti.f32
    ):
        for p in range(number):
            if distance_of(origin + vector_at(position, p, room, origin) * dx, a, b, radius) < 0:
                position[p] = ti.f32(NOWHERE)

    @ti.kernel
    def open_to_air(phi: Array, n: Index, a: Point, b: Point, radius: ti.f32, origin: Point, dx: ti.f32):
        loops.each_cell(n, _open_at, (phi, distance_of, (a, b, radius), (origin, dx)))

    return take_away, open_to_air


class Sinks:
    """Takes a liquid away where shapes of ``operators.shapes``, in metres, are on one grid."""

    def __init__(self, grid: Grid):
        self.grid = grid

    def take(self, particles: Particles, shape: str, a: Sequence[float], b: Sequence[float], radius: float) -> None:
        """Take the particles in a shape away; the next ``sort`` drops them."""
        kernels = sink_kernels(self.grid.loops, shape)
        kernels.take_away(particles.position, particles.room, particles.count, *self._place(a, b, radius))

    def open(self, phi, shape: str, a: Sequence[float], b: Sequence[float], radius: float) -> None:
        """Let a distance to the surface, m, be that of a surface which a shape lies outside of; ghosts are left."""
        self.grid.require(phi=phi)
        sink_kernels(self.grid.loops, shape).open_to_air(phi, self.grid.n, *self._place(a, b, radius))

    def _place(self, a: Sequence[float], b: Sequence[float], radius: float) -> tuple:
        point = float_vector(self.grid.dim)
        return point(*a), point(*b), radius, point(*self.grid.origin), self.grid.dx
