"""The volume view in 3D: emission and absorption along the rays of a camera; and its 2D sister, a lit slab."""

from .._ti import argument, local, subscript, ti, traced
from ..kernels import Array, IntArray, float_vector, int_vector, kernel_family
from ..operators.interpolation import inside_box, place_of, sample_at
from ..operators.noise import hash_01
from .bricks import Occupancy, steps_to_leave
from .camera import Eye, View, box_span
from .edges import rays_of, sampled
from .flame import Flame
from .image import Backdrop, Image, Screen, backdrop_arguments
from .optics import LEAST_DEPTH, OPAQUE, RAY_STEP, Optics
from .ranges import plane_of
from .slices import Window, plane_window
from .surfaces import Lamp, Obstacle, Surface, surface_arguments

SLAB = 0.1
"""Thickness of the slab that a 2D scene is seen as, in box heights."""


@argument
class Met:
    """What a ray meets on a step: the ``extinction`` of all, 1/m, where that of smoke was found, and what of it is flame."""

    extinction: object
    place: object
    burning: object
    heats: tuple


@argument
class Medium:
    """The optical volume: ``extinction`` and the interleaved colours of the ``glow`` of smoke, both in 1/m, and the ``flame``."""

    extinction: object
    glow: object
    n: object  # shape of the grid
    flame: Flame

    @traced
    def at(self, q, *heats):
        """What is at ``q``, on a step from one of two ``heats`` to the other; without these only there."""
        place = place_of(q, self.n)
        smoke = sample_at(self.extinction, 0, place)
        if not self.flame.there:
            return Met(smoke, place, None, ())
        heats = heats or (self.flame.heat_at(q, self.n),) * 2
        burning = self.flame.opacity_between(*heats)
        return Met(local(smoke + burning), place, burning, heats)

    @traced
    def colour_of(self, met):
        """What a thick layer looks like: linear interpolation of the glow and what the flame sends out, over the extinction there."""
        place, extinction = met.place, met.extinction
        corners = [(place.first, ti.cast(1.0, ti.f32))]
        for axis in range(self.n.n):
            s, f = subscript(place.s, axis), subscript(place.fraction, axis)
            rest = local(1 - f)
            corners = [(c, local(w * rest)) for c, w in corners] + [(c + s, local(w * f)) for c, w in corners]
        corners = [(local(3 * c), w) for c, w in corners]
        scale = local(ti.cast(1.0, ti.f32) / ti.max(extinction, ti.cast(1e-20, ti.f32)))
        sent = ti.Vector([sum(w * subscript(self.glow, c + k) for c, w in corners) for k in range(3)])
        if self.flame.there:
            sent = sent + met.burning * self.flame.colour_between(*met.heats)
        return sent * scale


@ti.func
def _volume_colour(x, y, size, backdrop, eye, medium, bricks, surface):
    ray, upward = eye.ray(x, y, size)
    enter, leave = box_span(eye.place, ray, medium.n)
    passing = ti.f32(1.0)
    colour = ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)])
    end = leave
    if ti.static(surface.obstacle.there):
        end = surface.obstacle.reached(eye.place, ray, enter, leave)
    # Every ray starts at its own fraction of a step: fine grain instead of rings.
    start = enter + ti.f32(RAY_STEP) * hash_01(ti.Vector([x, y]))
    k = 0
    t, seen_to = start, enter
    heat, heat_ahead, known = ti.f32(0.0), ti.f32(0.0), ti.i32(0)
    while t < end and passing > ti.f32(OPAQUE):
        q = inside_box(eye.place + t * ray, medium.n)
        brick = bricks.brick_at(q)
        if bricks.empty(brick):
            k = ti.max(steps_to_leave(brick, eye.place, ray, start, ti.f32(RAY_STEP)), k + 1)
            known = 0
        else:
            k += 1
            to = ti.min(t + ti.f32(RAY_STEP), end)
            if ti.static(medium.flame.there):
                for ahead in range(known, 2):
                    reached = eye.place + ti.select(ahead == 1, to, t) * ray
                    heat, heat_ahead = heat_ahead, medium.flame.heat_at(inside_box(reached, medium.n), medium.n)
                known = 1
            met = medium.at(q, heat, heat_ahead)
            depth = met.extinction * (to - seen_to) * surface.obstacle.dx
            if depth > ti.f32(LEAST_DEPTH):
                through = ti.exp(-depth)
                colour += passing * (ti.f32(1.0) - through) * medium.colour_of(met)
                passing *= through
        t = start + ti.cast(k, ti.f32) * ti.f32(RAY_STEP)
        seen_to = t
    if ti.static(surface.obstacle.there):
        if end < leave and passing > ti.f32(OPAQUE):
            colour += passing * surface.colour_at(inside_box(eye.place + end * ray, medium.n))
            passing = ti.f32(0.0)
    colour += passing * backdrop.at(ti.f32(0.5) + ti.f32(0.5) * upward)
    return backdrop.shown(colour)


@ti.func
def _slab_pixel(x, y, screen, backdrop, window, medium, thickness, surface):
    q = window.point(x, y, screen)
    colour = backdrop.at(screen.height_of(y) / ti.cast(screen.size[1], ti.f32))
    inside = inside_box(q, medium.n)
    if (q - inside).norm_sqr() == 0:
        met = medium.at(inside)
        passing = ti.exp(-met.extinction * thickness)
        colour = passing * colour + (ti.f32(1.0) - passing) * medium.colour_of(met)
        if ti.static(surface.obstacle.there):
            covered = surface.obstacle.covered_at(inside, window.across[0])
            if covered > 0:
                colour += covered * (surface.colour_at(inside) - colour)
    else:
        colour *= ti.f32(0.35)
    screen.put(x, y, backdrop.shown(colour))


@kernel_family
def volume_kernels(loops, has_solids, glows):
    Index, Point, each_pixel = loops.IntVector, loops.FloatVector, loops.each_pixel
    Size, Colour = int_vector(2), float_vector(3)

    @ti.kernel
    def march(
        image: Array, size: Size, top: Colour, bottom: Colour, exposure: ti.f32, eye: Point, forward: Point,
        right: Point, up: Point, edges: IntArray, taken: ti.i32, extinction: Array, glow: Array, n: Index, dx: ti.f32,
        heat: Array, emission: Array, incandescence: ti.f32, occupied: Array, brick_n: Index, distance: Array,
        shapes: Array, owner: Array, colours: Array, light: Array, light_n: Index, sun: Colour, ambient: Colour,
        direction: Point,
    ):  # fmt: skip
        screen, backdrop = Screen(image, size), Backdrop(top, bottom, exposure)
        medium = Medium(extinction, glow, n, Flame(heat, emission, incandescence, glows))
        bricks = Occupancy(occupied, brick_n)
        lamp = Lamp(light, light_n, sun, ambient, direction)
        surface = Surface(Obstacle(distance, n, dx, has_solids, True, shapes), owner, colours, lamp)
        viewer = Eye(eye, forward, right, up)
        each_pixel(
            size, sampled, (screen, edges, taken, _volume_colour, (size, backdrop, viewer, medium, bricks, surface))
        )

    @ti.kernel
    def slab(
        image: Array, size: Size, top: Colour, bottom: Colour, exposure: ti.f32, corner: Point, across: Point,
        upward: Point, extinction: Array, glow: Array, n: Index, dx: ti.f32, heat: Array, emission: Array,
        incandescence: ti.f32, thickness: ti.f32, distance: Array, shapes: Array, owner: Array, colours: Array,
        light: Array, light_n: Index, sun: Colour, ambient: Colour, direction: Point,
    ):  # fmt: skip
        screen, backdrop, window = Screen(image, size), Backdrop(top, bottom, exposure), Window(corner, across, upward)
        lamp = Lamp(light, light_n, sun, ambient, direction)
        surface = Surface(Obstacle(distance, n, dx, has_solids, True, shapes), owner, colours, lamp)
        medium = Medium(extinction, glow, n, Flame(heat, emission, incandescence, glows))
        each_pixel(size, _slab_pixel, (screen, backdrop, window, medium, thickness, surface))

    return {"march": march} if loops.dim == 3 else {"slab": slab}


def render_volume(
    optics: Optics, view: View, image: Image, background, exposure: float, surfaces: tuple | None = None
) -> None:
    """Ray-march the optical volume of a 3D grid into ``image``.

    Args:
        optics: The optical volume.
        view: The camera's view, in metres.
        image: What to fill.
        background: Colours of the upper and the lower edge.
        exposure: Brightness.
        surfaces: Solids to draw, as ``Parts.surfaces`` has them.
    """
    grid = optics.grid
    grid.require_runtime()
    picture = (*image.screen, *backdrop_arguments(background, exposure))
    volume = (*optics.medium, *optics.bricks, *surface_arguments(surfaces, image.nothing, 3))
    kernels = volume_kernels(grid.loops, surfaces is not None, optics.glows)
    for rays in rays_of(image, view, grid):
        kernels.march(*picture, *rays, *volume)


def render_slab(optics: Optics, image: Image, background, exposure: float, surfaces: tuple | None = None) -> None:
    """Show the optical volume of a 2D grid as a slab a tenth of its height thick; see ``render_volume``."""
    grid = optics.grid
    grid.require_runtime()
    window = plane_window(grid, plane_of(grid, 2, 0.5), image)
    picture = (*image.screen, *backdrop_arguments(background, exposure), *window)
    volume = (*optics.medium, SLAB * grid.size[1], *surface_arguments(surfaces, image.nothing, 2))
    volume_kernels(grid.loops, surfaces is not None, optics.glows).slab(*picture, *volume)
