"""The volume view in 3D: emission and absorption along the rays of a camera; and its 2D sister, a lit slab."""

from .._ti import argument, ti
from ..grid import Grid
from ..kernels import Array, float_vector, int_vector, kernel_family, strides_of
from ..operators.interpolation import inside_box, lower_corner_at, sample
from ..operators.noise import hash_01
from .bricks import Bricks, Occupancy, steps_to_leave
from .camera import Eye, View, box_span
from .image import Backdrop, Image, Screen, backdrop_arguments
from .optics import LEAST_DEPTH, RAY_STEP
from .ranges import plane_of
from .slices import Window, plane_window
from .surfaces import Lamp, Obstacle, Surface, Surfaces, surface_arguments

SLAB = 0.1
"""Thickness of the slab that a 2D scene is seen as, in box heights."""


@argument
class Medium:
    """The optical volume: ``extinction`` in 1/m and the interleaved colours of its ``glow``, on a grid of ``n`` cells."""

    extinction: object
    glow: object
    n: object

    @ti.func
    def extinction_at(self, q):
        """Linear interpolation at ``q``."""
        return sample(self.extinction, 0, q, self.n)

    @ti.func
    def glow_at(self, q):
        """Linear interpolation of the colours at ``q``."""
        s = strides_of(self.n)
        base, fraction = lower_corner_at(q, self.n)
        total = ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)])
        for corner in ti.static(range(2**q.n)):
            c = base
            w = ti.f32(1.0)
            for axis in ti.static(range(q.n)):
                if ti.static((corner >> axis) & 1):
                    c += s[axis]
                    w *= fraction[axis]
                else:
                    w *= ti.f32(1.0) - fraction[axis]
            for channel in ti.static(range(3)):
                total[channel] += w * self.glow[3 * c + channel]
        return total


@ti.func
def _march_pixel(x, y, screen, backdrop, eye, medium, bricks, surface):
    ray, upward = eye.ray(x, y, screen.size)
    enter, leave = box_span(eye.place, ray, medium.n)
    passing = ti.f32(1.0)
    colour = ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)])
    # Every ray starts at its own fraction of a step: fine grain instead of rings.
    start = enter + ti.f32(RAY_STEP) * hash_01(ti.Vector([x, y]))
    k = 0
    t = start
    while t < leave and passing > ti.f32(0.004):
        q = inside_box(eye.place + t * ray, medium.n)
        brick = bricks.brick_at(q)
        if bricks.empty(brick):
            k = ti.max(steps_to_leave(brick, eye.place, ray, start, ti.f32(RAY_STEP)), k + 1)
        else:
            k += 1
            depth = medium.extinction_at(q) * ti.f32(RAY_STEP) * surface.obstacle.dx
            if ti.static(surface.obstacle.there):
                sunk = surface.obstacle.depth_at(q)
                if sunk < 0:
                    colour += passing * surface.colour_at(inside_box(eye.place + (t + sunk) * ray, medium.n))
                    passing, depth = ti.f32(0.0), ti.f32(0.0)
            if depth > ti.f32(LEAST_DEPTH):
                through = ti.exp(-depth)
                colour += passing * (ti.f32(1.0) - through) * medium.glow_at(q)
                passing *= through
        t = start + ti.cast(k, ti.f32) * ti.f32(RAY_STEP)
    colour += passing * backdrop.at(ti.f32(0.5) + ti.f32(0.5) * upward)
    screen.put(x, y, backdrop.shown(colour))


@ti.func
def _slab_pixel(x, y, screen, backdrop, window, medium, thickness, surface):
    q = window.point(x, y, screen)
    colour = backdrop.at(screen.height_of(y) / ti.cast(screen.size[1], ti.f32))
    inside = inside_box(q, medium.n)
    if (q - inside).norm_sqr() == 0:
        passing = ti.exp(-medium.extinction_at(inside) * thickness)
        colour = passing * colour + (ti.f32(1.0) - passing) * medium.glow_at(inside)
        if ti.static(surface.obstacle.there):
            covered = surface.obstacle.covered_at(inside, window.across[0])
            if covered > 0:
                colour += covered * (surface.colour_at(inside) - colour)
    else:
        colour *= ti.f32(0.35)
    screen.put(x, y, backdrop.shown(colour))


@kernel_family
def volume_kernels(loops, has_solids):
    Index, Point, each_pixel = loops.IntVector, loops.FloatVector, loops.each_pixel
    Size, Colour = int_vector(2), float_vector(3)

    @ti.kernel
    def march(
        image: Array, size: Size, top: Colour, bottom: Colour, exposure: ti.f32, eye: Point, forward: Point,
        right: Point, up: Point, extinction: Array, glow: Array, n: Index, dx: ti.f32, occupied: Array, brick_n: Index,
        distance: Array, owner: Array, colours: Array, light: Array, light_n: Index, sun: Colour, ambient: Colour,
        direction: Point,
    ):  # fmt: skip
        screen, backdrop = Screen(image, size), Backdrop(top, bottom, exposure)
        medium, bricks = Medium(extinction, glow, n), Occupancy(occupied, brick_n)
        lamp = Lamp(light, light_n, sun, ambient, direction)
        surface = Surface(Obstacle(distance, n, dx, has_solids), owner, colours, lamp)
        each_pixel(
            size[0], size[1], _march_pixel, (screen, backdrop, Eye(eye, forward, right, up), medium, bricks, surface)
        )

    @ti.kernel
    def slab(
        image: Array, size: Size, top: Colour, bottom: Colour, exposure: ti.f32, corner: Point, across: Point,
        upward: Point, extinction: Array, glow: Array, n: Index, dx: ti.f32, thickness: ti.f32, distance: Array,
        owner: Array, colours: Array, light: Array, light_n: Index, sun: Colour, ambient: Colour, direction: Point,
    ):  # fmt: skip
        screen, backdrop, window = Screen(image, size), Backdrop(top, bottom, exposure), Window(corner, across, upward)
        lamp = Lamp(light, light_n, sun, ambient, direction)
        surface = Surface(Obstacle(distance, n, dx, has_solids), owner, colours, lamp)
        each_pixel(
            size[0], size[1], _slab_pixel, (screen, backdrop, window, Medium(extinction, glow, n), thickness, surface)
        )

    return {"march": march} if loops.dim == 3 else {"slab": slab}


def render_volume(
    grid: Grid, extinction, glow, bricks: Bricks, view: View, image: Image, background, exposure: float,
    surfaces: Surfaces | None = None,
) -> None:  # fmt: skip
    """Ray-march the optical volume of a 3D grid into ``image``.

    Args:
        grid: The grid.
        extinction: 1/m, ghosts filled.
        glow: Interleaved colours, ghosts filled.
        bricks: Where there is anything to see.
        view: The camera's view, in metres.
        image: What to fill.
        background: Colours of the upper and the lower edge.
        exposure: Brightness.
        surfaces: Solids to draw.
    """
    grid.require(extinction=extinction)
    grid.require(3, glow=glow)
    volume_kernels(grid.loops, surfaces is not None).march(
        *image.screen, *backdrop_arguments(background, exposure), *view.in_cells(grid), extinction, glow, grid.n, grid.dx,
        bricks.occupied, bricks.grid.n, *surface_arguments(surfaces, image.nothing, 3),
    )  # fmt: skip


def render_slab(
    grid: Grid, extinction, glow, image: Image, background, exposure: float, surfaces: Surfaces | None = None
) -> None:
    """Show the optical volume of a 2D grid as a slab a tenth of its height thick; see ``render_volume``."""
    grid.require(extinction=extinction)
    grid.require(3, glow=glow)
    volume_kernels(grid.loops, surfaces is not None).slab(
        *image.screen, *backdrop_arguments(background, exposure), *plane_window(grid, plane_of(grid, 2, 0.5), image), extinction, glow, grid.n,
        grid.dx, SLAB * grid.size[1], *surface_arguments(surfaces, image.nothing, 2),
    )  # fmt: skip
