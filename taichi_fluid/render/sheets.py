"""The volume as a stack of translucent sheets, perpendicular to the axis that is most along the view.

So smoke was drawn before graphics cards could march rays: a few dozen textured planes, blended from front to back.
"""

from .._ti import ti
from ..kernels import Array, IntArray, float_vector, int_vector, kernel_family
from ..operators.interpolation import inside_box
from .camera import Eye, View, box_span
from .edges import rays_of, sampled
from .flame import Flame
from .image import Backdrop, Image, Screen, backdrop_arguments
from .optics import LEAST_DEPTH, OPAQUE, Optics
from .surfaces import Lamp, Obstacle, Surface, surface_arguments
from .volume import Medium

STEEPEST = 0.25
"""Cosine between a ray and the normal of the sheets from which on they grow no more opaque."""
DEEPEST = 0.3
"""Brightness of the last sheet; the first has 1, so that one can tell them apart."""


@ti.func
def _sheets_colour(x, y, size, backdrop, eye, medium, normal, sheets, surface):
    """``sheets`` of them, perpendicular to the axis whose unit vector is ``normal``."""
    ray, upward = eye.ray(x, y, size)
    enter, leave = box_span(eye.place, ray, medium.n)
    passing = ti.f32(1.0)
    colour = ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)])
    end = leave
    if ti.static(surface.obstacle.there):
        end = surface.obstacle.reached(eye.place, ray, enter, leave)
    steepness = ray.dot(normal)
    slope = ti.max(ti.abs(steepness), ti.f32(1e-6))
    spacing = normal.dot(ti.cast(medium.n, ti.f32)) / ti.cast(sheets, ti.f32)
    thickness = spacing * surface.obstacle.dx / ti.max(slope, ti.f32(STEEPEST))
    for k in range(sheets):
        sheet = k
        if steepness < 0:
            sheet = sheets - ti.i32(1) - k
        plane = ti.f32(0.5) + (ti.cast(sheet, ti.f32) + ti.f32(0.5)) * spacing
        t = ti.abs(plane - eye.place.dot(normal)) / slope
        ahead = (plane - eye.place.dot(normal)) * steepness
        if ahead > 0 and t > enter and t < end and passing > ti.f32(OPAQUE):
            q = inside_box(eye.place + t * ray, medium.n)
            met = medium.at(q)
            depth = met.extinction * thickness
            if depth > ti.f32(LEAST_DEPTH):
                through = ti.exp(-depth)
                shade = ti.f32(1.0) - ti.f32(1.0 - DEEPEST) * ti.cast(k, ti.f32) / ti.cast(sheets, ti.f32)
                colour += passing * (ti.f32(1.0) - through) * shade * medium.colour_of(met)
                passing *= through
    if ti.static(surface.obstacle.there):
        if end < leave:
            colour += passing * surface.colour_at(inside_box(eye.place + end * ray, medium.n))
            passing = ti.f32(0.0)
    colour += passing * backdrop.at(ti.f32(0.5) + ti.f32(0.5) * upward)
    return backdrop.shown(colour)


@kernel_family
def sheet_kernels(loops, has_solids, glows):
    Index, Point, each_pixel = loops.IntVector, loops.FloatVector, loops.each_pixel
    Size, Colour = int_vector(2), float_vector(3)

    @ti.kernel
    def blend_sheets(
        image: Array, size: Size, top: Colour, bottom: Colour, exposure: ti.f32, eye: Point, forward: Point,
        right: Point, up: Point, edges: IntArray, taken: ti.i32, extinction: Array, glow: Array, n: Index, dx: ti.f32,
        heat: Array, emission: Array, incandescence: ti.f32, normal: Point, sheets: ti.i32, distance: Array,
        shapes: Array, owner: Array, colours: Array, light: Array, light_n: Index, sun: Colour, ambient: Colour,
        direction: Point,
    ):  # fmt: skip
        screen, backdrop = Screen(image, size), Backdrop(top, bottom, exposure)
        medium = Medium(extinction, glow, n, Flame(heat, emission, incandescence, glows))
        lamp = Lamp(light, light_n, sun, ambient, direction)
        surface = Surface(Obstacle(distance, n, dx, has_solids, True, shapes), owner, colours, lamp)
        viewer = Eye(eye, forward, right, up)
        each_pixel(
            size,
            sampled,
            (screen, edges, taken, _sheets_colour, (size, backdrop, viewer, medium, normal, sheets, surface)),
        )

    return (blend_sheets,)


def render_sheets(
    optics: Optics, view: View, image: Image, background, exposure: float, sheets: int, surfaces: tuple | None = None
) -> None:
    """Draw a 3D grid as ``sheets`` parallel planes; the other arguments are those of ``render_volume``.

    Each is as opaque as the layer that it stands for, so their number changes how it looks, not how dense it is.
    """
    grid = optics.grid
    grid.require_runtime()
    along = max(range(3), key=lambda axis: abs(view.forward[axis]))
    normal = float_vector(3)(*(float(axis == along) for axis in range(3)))
    picture = (*image.screen, *backdrop_arguments(background, exposure))
    volume = (*optics.medium, normal, sheets, *surface_arguments(surfaces, image.nothing, 3))
    kernels = sheet_kernels(grid.loops, surfaces is not None, optics.glows)
    for rays in rays_of(image, view, grid):
        kernels.blend_sheets(*picture, *rays, *volume)
