"""Spray, foam and bubbles over the picture of a liquid: white dots, summed as the light of tracers is.

What water lies between one and the eye takes of its light by the law of Beer and Lambert, along a straight line; solids hide.
"""

from collections.abc import Sequence

from .._ti import argument, ti
from ..grid import Grid
from ..kernels import Array, IntArray, int_vector, kernel_family
from ..liquid.foam import FoamParticles
from ..liquid.particles import NOWHERE, vector_at, zero_of
from ..operators.interpolation import inside_box, sample
from ..operators.vectors import length
from .camera import Eye, View, box_span
from .dots import Dots, LightSum, eye_on, in_sight, on_screen, screen_pixel
from .image import Image, Screen
from .surfaces import Obstacle

SIZE = 0.0016
"""Radius of a drop, in longest edges of the box."""
SMALLEST = 1.0
"""The least radius that is drawn, in pixels; a smaller one is as much fainter as its disc is smaller."""
LARGEST = 6.0
"""The largest, in pixels: what is close to the eye."""
STRENGTH = 1.4
"""Light of a drop in the middle of its disc, where all is white."""
MURK = 2.0
"""What foam in the water absorbs of the light of what is behind, 1/m."""
LAST = 0.3
"""Seconds in which one fades before it is gone."""


@ti.func
def _water_before(q, place, phi: ti.template(), n, dx):
    """Metres of liquid between a point and the eye's place, in steps of a cell."""
    away = length(place - q)
    way = (place - q) / away
    leave = ti.min(box_span(q, way, n)[1], away)
    t, wet = ti.f32(0.5), ti.f32(0.0)
    while t < leave:
        depth = -sample(phi, 0, inside_box(q + t * way, n), n) / dx
        wet += ti.min(ti.max(depth + ti.f32(0.5), ti.f32(0.0)), ti.f32(1.0))
        t += ti.f32(1.0)
    return wet * dx


@argument
class Drops:
    """Foam as pictures have it: where each is, in cells, how long it has left, s, and its radius, in cells."""

    position: object
    life: object
    room: object
    radius: object

    @ti.func
    def pixels(self, depth, size, eye):
        """Radius on the screen at a depth, in pixels."""
        scale = ti.f32(1.0) / length(eye.right)
        if ti.static(eye.right.n == 3):
            scale = ti.f32(0.5) * ti.cast(size[1], ti.f32) / (length(eye.up) * depth)
        return self.radius * scale


@ti.func
def _draw_drop(p, drops, size, eye, light: ti.template(), phi: ti.template(), absorption, obstacle):
    x = vector_at(drops.position, p, drops.room, zero_of(obstacle.n))
    q = x + ti.f32(0.5)
    place, depth = on_screen(q, size, eye)
    if x[0] > NOWHERE and depth > ti.f32(0.01):
        weight = ti.min(drops.life[p] / ti.f32(LAST), ti.f32(1.0))
        if ti.static(q.n == 3):
            if ti.static(obstacle.there):
                weight *= ti.cast(in_sight(q, eye.place, obstacle), ti.f32)
            if weight > 0:
                weight *= ti.exp(-absorption * _water_before(q, eye.place, phi, obstacle.n, obstacle.dx))
        radius = drops.pixels(depth, size, eye)
        drawn = ti.min(ti.max(radius, ti.f32(SMALLEST)), ti.f32(LARGEST))
        weight *= ti.min(radius * radius / (drawn * drawn), ti.f32(1.0))
        if weight > 0:
            Dots(light, drawn).add(place, size, ti.Vector([weight, weight, weight]) * ti.f32(STRENGTH))


@kernel_family
def foam_kernels(loops, has_solids):
    Index, Point, each_pixel, Size = loops.IntVector, loops.FloatVector, loops.each_pixel, int_vector(2)

    @ti.kernel
    def draw(
        image: Array,
        size: Size,
        position: Array,
        life: Array,
        room: ti.i32,
        number: ti.i32,
        radius: ti.f32,
        eye: Point,
        forward: Point,
        right: Point,
        up: Point,
        light: IntArray,
        phi: Array,
        absorption: ti.f32,
        distance: Array,
        n: Index,
        dx: ti.f32,
    ):
        drops, obstacle = Drops(position, life, room, radius), Obstacle(distance, n, dx, has_solids)
        for i in range(3 * size[0] * size[1]):
            light[i] = ti.i32(0)
        for p in range(number):
            _draw_drop(p, drops, size, Eye(eye, forward, right, up), light, phi, absorption, obstacle)
        each_pixel(size, screen_pixel, (Screen(image, size), light))

    return (draw,)


class FoamPicture:
    """Draws the foam of one grid.

    Args:
        grid: The grid.
    """

    def __init__(self, grid: Grid):
        self.grid, self._light = grid, LightSum()

    def draw(
        self,
        image: Image,
        particles: FoamParticles,
        phi,
        absorption: Sequence[float],
        view: View | None,
        distance=None,
    ) -> None:
        """Add foam to what ``image`` shows.

        Args:
            image: The picture of the liquid.
            particles: The foam.
            phi: Level set of the liquid, m.
            absorption: What that absorbs of red, green and blue, 1/m; foam is dimmed by the least, that of scattered light.
            view: The camera's view, in metres; None in 2D.
            distance: To the solids, as they have it; None without.
        """
        grid = self.grid
        kernels = foam_kernels(grid.loops, distance is not None)
        drops = (particles.position, particles.life, particles.room, particles.count, SIZE * max(grid.shape))
        seen = (*eye_on(grid, image, view), self._light.fit(image), phi, min(absorption) + MURK)
        kernels.draw(*image.screen, *drops, *seen, *image.or_nothing(distance), grid.n, grid.dx)
