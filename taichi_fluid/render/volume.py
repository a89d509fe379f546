"""The volume view in 3D: emission and absorption along the rays of a camera; and its 2D sister, a lit slab."""

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, flat, float_vector, kernel_family, strides_of
from ..operators.interpolation import inside_box, lower_corner_at, sample
from ..operators.noise import hash_01
from .bricks import Bricks, brick_at, steps_to_leave
from .camera import View
from .image import Image, background_at, fit_plane, tone_map, write_pixel
from .optics import LEAST_DEPTH, RAY_STEP
from .surfaces import Surfaces, depth_at, surface_colour

SLAB = 0.1
"""Thickness of the slab that a 2D scene is seen as, in box heights."""


@ti.func
def sample_glow(glow: ti.template(), q, n):
    """Linear interpolation of the interleaved colours at ``q``."""
    s = strides_of(n)
    base, fraction = lower_corner_at(q, n)
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
            total[channel] += w * glow[3 * c + channel]
    return total


@ti.func
def pixel_ray(x, y, width, height, forward, right, up):
    """Direction of a pixel's ray, and how high the pixel stands: from -1 at the lower edge to 1."""
    across = (ti.cast(2 * x + 1, ti.f32) / ti.cast(width, ti.f32)) - ti.f32(1.0)
    upward = ti.f32(1.0) - (ti.cast(2 * y + 1, ti.f32) / ti.cast(height, ti.f32))
    ray = forward + across * right + upward * up
    return ray * (ti.f32(1.0) / ti.sqrt(ray.norm_sqr())), upward


@ti.func
def box_span(eye, ray, n):
    """Where a ray enters and leaves the box, in cells along it."""
    enter, leave = ti.f32(0.0), ti.f32(1e9)
    for axis in ti.static(range(3)):
        slope = ray[axis]
        if ti.abs(slope) < ti.f32(1e-8):
            slope = ti.f32(1e-8)
        near = (ti.f32(0.5) - eye[axis]) / slope
        far = (ti.cast(n[axis], ti.f32) + ti.f32(0.5) - eye[axis]) / slope
        enter = ti.max(enter, ti.min(near, far))
        leave = ti.min(leave, ti.max(near, far))
    return enter, leave


@ti.func
def _march_pixel(
    x, y, image: ti.template(), extinction: ti.template(), glow: ti.template(), occupied: ti.template(), brick_n,
    distance: ti.template(), owner: ti.template(), colours: ti.template(), light: ti.template(), light_n, sun, ambient,
    direction, n, dx, width, height, eye, forward, right, up, top, bottom, exposure, has_solids: ti.template(),
):  # fmt: skip
    ray, upward = pixel_ray(x, y, width, height, forward, right, up)
    enter, leave = box_span(eye, ray, n)
    passing = ti.f32(1.0)
    colour = ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)])
    # Every ray starts at its own fraction of a step: fine grain instead of rings.
    start = enter + ti.f32(RAY_STEP) * hash_01(ti.Vector([x, y]))
    brick_s = strides_of(brick_n)
    k = 0
    t = start
    while t < leave and passing > ti.f32(0.004):
        q = inside_box(eye + t * ray, n)
        brick = brick_at(q, brick_n)
        if occupied[flat(brick, brick_s)] == 0:
            k = steps_to_leave(eye, ray, start, ti.f32(RAY_STEP), brick, k, brick_n)
        else:
            k += 1
            depth = sample(extinction, 0, q, n) * ti.f32(RAY_STEP) * dx
            if ti.static(has_solids):
                sunk = depth_at(distance, q, n, dx)
                if sunk < 0:
                    surface = inside_box(eye + (t + sunk) * ray, n)
                    colour += passing * surface_colour(
                        surface, distance, owner, colours, light, light_n, sun, ambient, direction, n, dx
                    )
                    passing, depth = ti.f32(0.0), ti.f32(0.0)
            if depth > ti.f32(LEAST_DEPTH):
                through = ti.exp(-depth)
                colour += passing * (ti.f32(1.0) - through) * sample_glow(glow, q, n)
                passing *= through
        t = start + ti.cast(k, ti.f32) * ti.f32(RAY_STEP)
    colour += passing * background_at(ti.f32(0.5) + ti.f32(0.5) * upward, top, bottom)
    write_pixel(image, y * width + x, tone_map(colour, exposure))


@ti.func
def _slab_pixel(
    x, y, image: ti.template(), extinction: ti.template(), glow: ti.template(), distance: ti.template(),
    owner: ti.template(), colours: ti.template(), light: ti.template(), light_n, sun, ambient, direction, n, dx,
    thickness, width, height, corner, cells_per_pixel, top, bottom, exposure, has_solids: ti.template(),
):  # fmt: skip
    q = corner
    q[0] += (ti.cast(x, ti.f32) + ti.f32(0.5)) * cells_per_pixel
    q[1] += (ti.cast(height - y, ti.f32) - ti.f32(0.5)) * cells_per_pixel
    fraction = (ti.cast(height - y, ti.f32) - ti.f32(0.5)) / ti.cast(height, ti.f32)
    colour = background_at(fraction, top, bottom)
    inside = inside_box(q, n)
    if (q - inside).norm_sqr() == 0:
        passing = ti.exp(-sample(extinction, 0, inside, n) * thickness)
        colour = passing * colour + (ti.f32(1.0) - passing) * sample_glow(glow, inside, n)
        if ti.static(has_solids):
            covered = ti.f32(0.5) - depth_at(distance, inside, n, dx) / cells_per_pixel
            covered = ti.min(ti.max(covered, ti.f32(0.0)), ti.f32(1.0))
            if covered > 0:
                solid = surface_colour(
                    inside, distance, owner, colours, light, light_n, sun, ambient, direction, n, dx
                )  # fmt: skip
                colour += covered * (solid - colour)
    else:
        colour *= ti.f32(0.35)
    write_pixel(image, y * width + x, tone_map(colour, exposure))


@kernel_family
def volume_kernels(loops, has_solids):
    IntVector, FloatVector, each_pixel = loops.IntVector, loops.FloatVector, loops.each_pixel
    Colour = float_vector(3)

    @ti.kernel
    def march(
        image: Array, extinction: Array, glow: Array, occupied: Array, brick_n: IntVector, distance: Array, owner: Array,
        colours: Array, light: Array, light_n: IntVector, sun: Colour, ambient: Colour, direction: FloatVector,
        n: IntVector, dx: ti.f32, width: ti.i32, height: ti.i32, eye: FloatVector, forward: FloatVector, right: FloatVector, up: FloatVector,
        top: Colour, bottom: Colour, exposure: ti.f32,
    ):  # fmt: skip
        each_pixel(
            width, height, _march_pixel,
            (image, extinction, glow, occupied, brick_n, distance, owner, colours, light, light_n, sun, ambient,
             direction, n, dx, width, height, eye, forward, right, up, top, bottom, exposure, has_solids),
        )  # fmt: skip

    @ti.kernel
    def slab(
        image: Array, extinction: Array, glow: Array, distance: Array, owner: Array, colours: Array, light: Array,
        light_n: IntVector, sun: Colour, ambient: Colour, direction: FloatVector, n: IntVector, dx: ti.f32,
        thickness: ti.f32, width: ti.i32, height: ti.i32, corner: FloatVector, cells_per_pixel: ti.f32,
        top: Colour, bottom: Colour, exposure: ti.f32,
    ):  # fmt: skip
        each_pixel(
            width, height, _slab_pixel,
            (image, extinction, glow, distance, owner, colours, light, light_n, sun, ambient, direction, n, dx,
             thickness, width, height, corner, cells_per_pixel, top, bottom, exposure, has_solids),
        )  # fmt: skip

    return {"march": march} if loops.dim == 3 else {"slab": slab}


def surface_arguments(surfaces: Surfaces | None, nothing, n) -> tuple:
    """Arguments of the kernels; without solids, placeholders that are never read."""
    if surfaces is not None:
        return surfaces.arguments()
    colour, point = float_vector(3), float_vector(n.n)
    zero = (0.0, 0.0, 0.0)
    return (*nothing, n, colour(*zero), colour(*zero), point(*zero[: n.n]))


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
    point, colour = float_vector(3), float_vector(3)
    volume_kernels(grid.loops, surfaces is not None).march(
        image.array, extinction, glow, bricks.occupied, bricks.grid.n,
        *surface_arguments(surfaces, image.nothing, grid.n), grid.n, grid.dx, image.width, image.height, point(*view.eye_in_cells(grid)),
        point(*view.forward), point(*view.right), point(*view.up),
        colour(*background[0]), colour(*background[1]), exposure,
    )  # fmt: skip


def render_slab(
    grid: Grid, extinction, glow, image: Image, background, exposure: float, surfaces: Surfaces | None = None
) -> None:
    """Show the optical volume of a 2D grid as a slab a tenth of its height thick; see ``render_volume``."""
    grid.require(extinction=extinction)
    grid.require(3, glow=glow)
    corner, cells_per_pixel = fit_plane(grid.shape, image)
    point, colour = float_vector(2), float_vector(3)
    volume_kernels(grid.loops, surfaces is not None).slab(
        image.array, extinction, glow, *surface_arguments(surfaces, image.nothing, grid.n), grid.n, grid.dx,
        SLAB * grid.size[1], image.width, image.height,
        point(*(0.5 + c for c in corner)), cells_per_pixel, colour(*background[0]), colour(*background[1]), exposure,
    )  # fmt: skip
