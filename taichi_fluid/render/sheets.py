"""The volume as a stack of translucent sheets, perpendicular to the axis that is most along the view.

So smoke was drawn before graphics cards could march rays: a few dozen textured planes, blended from front to back.
"""

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, float_vector, kernel_family
from ..operators.interpolation import inside_box, sample
from .camera import View
from .image import Image, background_at, tone_map, write_pixel
from .optics import LEAST_DEPTH
from .surfaces import Surfaces, solid_hit, surface_colour
from .volume import box_span, pixel_ray, sample_glow, surface_arguments

STEEPEST = 0.25
"""Cosine between a ray and the normal of the sheets from which on they grow no more opaque."""
DEEPEST = 0.3
"""Brightness of the last sheet; the first has 1, so that one can tell them apart."""


@ti.func
def _sheets_pixel(
    x, y, image: ti.template(), extinction: ti.template(), glow: ti.template(), distance: ti.template(),
    owner: ti.template(), colours: ti.template(), light: ti.template(), light_n, sun, ambient, direction, n, dx, width,
    height, eye, forward, right, up, top, bottom, exposure, normal, sheets, has_solids: ti.template(),
):  # fmt: skip
    ray, upward = pixel_ray(x, y, width, height, forward, right, up)
    enter, leave = box_span(eye, ray, n)
    passing = ti.f32(1.0)
    colour = ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)])
    end = leave
    if ti.static(has_solids):
        end = solid_hit(distance, eye, ray, enter, leave, n, dx)
    steepness = ray.dot(normal)
    slope = ti.max(ti.abs(steepness), ti.f32(1e-6))
    spacing = normal.dot(ti.cast(n, ti.f32)) / ti.cast(sheets, ti.f32)
    thickness = spacing * dx / ti.max(slope, ti.f32(STEEPEST))
    for k in range(sheets):
        sheet = k
        if steepness < 0:
            sheet = sheets - ti.i32(1) - k
        plane = ti.f32(0.5) + (ti.cast(sheet, ti.f32) + ti.f32(0.5)) * spacing
        t = ti.abs(plane - eye.dot(normal)) / slope
        ahead = (plane - eye.dot(normal)) * steepness
        if ahead > 0 and t > enter and t < end and passing > ti.f32(0.004):
            q = inside_box(eye + t * ray, n)
            depth = sample(extinction, 0, q, n) * thickness
            if depth > ti.f32(LEAST_DEPTH):
                through = ti.exp(-depth)
                shade = ti.f32(1.0) - ti.f32(1.0 - DEEPEST) * ti.cast(k, ti.f32) / ti.cast(sheets, ti.f32)
                colour += passing * (ti.f32(1.0) - through) * shade * sample_glow(glow, q, n)
                passing *= through
    if ti.static(has_solids):
        if end < leave:
            surface = inside_box(eye + end * ray, n)
            colour += passing * surface_colour(
                surface, distance, owner, colours, light, light_n, sun, ambient, direction, n, dx
            )
            passing = ti.f32(0.0)
    colour += passing * background_at(ti.f32(0.5) + ti.f32(0.5) * upward, top, bottom)
    write_pixel(image, y * width + x, tone_map(colour, exposure))


@kernel_family
def sheet_kernels(loops, has_solids):
    IntVector, FloatVector, each_pixel = loops.IntVector, loops.FloatVector, loops.each_pixel
    Colour = float_vector(3)

    @ti.kernel
    def blend_sheets(
        image: Array, extinction: Array, glow: Array, distance: Array, owner: Array, colours: Array, light: Array,
        light_n: IntVector, sun: Colour, ambient: Colour, direction: FloatVector, n: IntVector, dx: ti.f32,
        width: ti.i32, height: ti.i32, eye: FloatVector, forward: FloatVector, right: FloatVector, up: FloatVector,
        top: Colour, bottom: Colour, exposure: ti.f32, normal: FloatVector, sheets: ti.i32,
    ):  # fmt: skip
        each_pixel(
            width, height, _sheets_pixel,
            (image, extinction, glow, distance, owner, colours, light, light_n, sun, ambient, direction, n, dx, width,
             height, eye, forward, right, up, top, bottom, exposure, normal, sheets, has_solids),
        )  # fmt: skip

    return {"blend_sheets": blend_sheets}


def render_sheets(
    grid: Grid, extinction, glow, view: View, image: Image, background, exposure: float, sheets: int,
    surfaces: Surfaces | None = None,
) -> None:  # fmt: skip
    """Draw a 3D grid as ``sheets`` parallel planes; the other arguments are those of ``render_volume``.

    Each is as opaque as the layer that it stands for, so their number changes how it looks, not how dense it is.
    """
    grid.require(extinction=extinction)
    grid.require(3, glow=glow)
    point, colour = float_vector(3), float_vector(3)
    along = max(range(3), key=lambda axis: abs(view.forward[axis]))
    sheet_kernels(grid.loops, surfaces is not None).blend_sheets(
        image.array, extinction, glow, *surface_arguments(surfaces, image.nothing, grid.n), grid.n, grid.dx,
        image.width, image.height, point(*view.eye_in_cells(grid)), point(*view.forward), point(*view.right), point(*view.up),
        colour(*background[0]), colour(*background[1]), exposure,
        point(*(float(axis == along) for axis in range(3))), sheets,
    )  # fmt: skip
