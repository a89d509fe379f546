"""The surface of a liquid: in 3D a refracting, reflecting body over a tiled floor, in 2D filled to a sharp edge.

A ray is followed through the level set; where it meets the surface a part is reflected as Fresnel's equations have it
(Schlick 1994), which sees the sky, and the rest goes on, refracted. On its way in the liquid it loses light by the law of
Beer and Lambert. What it meets besides stands in ``surroundings``.
"""

from collections.abc import Sequence

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, IntArray, flat, float_vector, int_vector, kernel_family, strides_of
from ..liquid.level_set import DEEPEST, continue_distance
from ..liquid.sides import Seams
from ..operators.interpolation import inside_box
from ..operators.shapes import coverage
from .camera import Eye, View, box_span
from .edges import rays_of, sampled
from .image import Backdrop, Image, Screen, backdrop_arguments
from .ranges import plane_of
from .slices import Window, plane_window
from .surfaces import Obstacle, way_on
from .surroundings import INDEX, Body, Rock, Room, light_floor_at, refracted

NORMAL_AT = ((INDEX - 1) / (INDEX + 1)) ** 2
"""Part of the light that is reflected at right angles."""
MEETINGS = 6
"""Surfaces that a ray is followed through."""
SHORTEST, PART = 0.15, 0.8
"""The shortest step of a ray, in cells, and part of the distance to the surface that others are long."""
KNOWN_TO = 7
"""Cells to which that distance is continued, so that rays cross what is empty, or full, in few steps."""


@ti.func
def reflected_part(cosine):
    """Part of the light that is reflected where it meets the surface at an angle of this cosine (Schlick 1994)."""
    miss = ti.f32(1.0) - cosine
    return ti.f32(NORMAL_AT) + ti.f32(1.0 - NORMAL_AT) * miss * miss * miss * miss * miss


@ti.func
def _meet(place, way, wet, normal):
    """The way on where a ray meets the surface, whether that is under water, and the part that is reflected elsewhere."""
    against = ti.select(way.dot(normal) < 0, normal, -normal)
    ratio = ti.select(wet == 1, ti.f32(INDEX), ti.f32(1.0 / INDEX))
    on = refracted(way, against, ratio)
    part, still = ti.f32(0.0), wet
    if on.norm_sqr() > 0:
        # Schlick's angle is the one in the air.
        part = reflected_part(ti.abs(ti.select(wet == 1, on, way).dot(normal)))
        still = 1 - wet
    else:
        on = way - ti.f32(2.0) * way.dot(against) * against
    return on, still, part


@ti.func
def _outer_colour(place, way, upward, first, room, backdrop, n):
    """What a ray sees that has left the box: the floor, or the sky; the picture's background if it has met nothing."""
    colour = room.sky_at(way)
    if first == 1:
        colour = backdrop.at(ti.f32(0.5) + ti.f32(0.5) * upward)
    if way[1] < ti.f32(-1e-4):
        q = place + (ti.f32(0.5) - place[1]) / way[1] * way
        floor, left = room.floor_at(q, n)
        colour += left * (floor - colour)
    return colour


@ti.func
def _sunken_colour(place, way, body, room):
    """What a ray sees that stays in the liquid: the floor, if it goes down, behind what lies on the way there."""
    glow = body.glow(room)
    colour = glow
    if way[1] < ti.f32(-1e-4):
        far = (ti.f32(0.5) - place[1]) / way[1]
        floor, _ = room.floor_at(place + far * way, body.n)
        colour += ti.exp(-body.absorption * (body.dx * far)) * (floor - glow)
    return colour


@ti.func
def _surface_colour(x, y, size, backdrop, eye, body, room, rock):
    way, upward = eye.ray(x, y, size)
    place, n = eye.place, body.n
    passing, colour = ti.Vector([1.0, 1.0, 1.0], ti.f32), ti.Vector([0.0, 0.0, 0.0], ti.f32)
    wet, met, going = 0, 0, 1
    enter, leave = box_span(place, way, n)
    outside, t = 1, enter
    if leave <= enter:
        going = 0
    steps = 0
    while going == 1 and steps < 2000:
        steps += 1
        q = place + t * way
        h = body.height_at(q)
        event, normal, at, step = 0, way * ti.f32(0.0), t, ti.max(ti.f32(PART) * ti.abs(h), ti.f32(SHORTEST))
        if outside == 1:
            outside = 0
            if h < 0:
                event, normal = 1, body.wall_at(q)
        elif t >= leave:
            event = 2
            if wet == 1:
                normal = body.wall_at(place + leave * way)
                event = ti.select(normal[1] < ti.f32(-0.5), 2, 1)
                at = leave
        elif (h < 0) != (wet == 1):
            from_t = ti.max(t - ti.max(ti.f32(SHORTEST), ti.min(t, ti.f32(1.5))), ti.f32(0.0))
            at = from_t + body.crossed(place + from_t * way, q) * (t - from_t)
            event, normal = 1, body.normal_at(place + at * way)
        if ti.static(rock.obstacle.there):
            away = rock.obstacle.depth_at(inside_box(q, n))
            if event == 0 and away < 0:
                event, at = 3, t + away
            step = ti.min(step, way_on(away))
        if event == 0:
            t += ti.min(step, leave - t + ti.f32(1e-3))
        else:
            if wet == 1:
                lost = ti.exp(-body.absorption * (body.dx * at))
                colour += passing * (ti.f32(1.0) - lost) * body.glow(room)
                passing *= lost
            place += at * way
            if event == 1:
                met += 1
                on, still, part = _meet(place, way, wet, normal)
                mirror = way - ti.f32(2.0) * way.dot(normal) * normal
                # The weaker ray is not followed: what it would see is guessed.
                if wet == 0:
                    colour += passing * part * _outer_colour(place, mirror, upward, 0, room, backdrop, n)
                elif part > 0:
                    colour += passing * part * _sunken_colour(place, mirror, body, room)
                passing *= ti.f32(1.0) - part
                wet, way = still, on
                place += ti.f32(0.02) * way
                _, leave = box_span(place, way, n)
                t = ti.f32(0.0)
                inside = inside_box(place, n)
                if (place - inside).norm_sqr() > ti.f32(1e-6) or leave < ti.f32(0.02) or met >= MEETINGS:
                    going = 0
            elif event == 2:
                going = 0
            else:
                colour += passing * rock.colour_at(inside_box(place, n), room)
                passing *= ti.f32(0.0)
                going = 0
    colour += passing * _outer_colour(place, way, upward, ti.select(met == 0, 1, 0), room, backdrop, n)
    return backdrop.shown(colour)


@ti.func
def _filled_pixel(x, y, screen, backdrop, window, body, rock):
    q = window.point(x, y, screen)
    colour = backdrop.at(screen.height_of(y) / ti.cast(screen.size[1], ti.f32))
    inside = inside_box(q, body.n)
    if (q - inside).norm_sqr() == 0:
        pixel = window.cells_per_pixel()
        height = body.height_at(inside)
        covered = coverage(height, ti.f32(1.0) / pixel)
        # Where particles lie apart deep in the liquid there is less of a distance and no surface at the end of it.
        foot = body.height_at(inside - height * body.normal_at(inside))
        surely = ti.min(ti.max(ti.f32(1.0) + ti.f32(4.0) * foot, ti.f32(0.0)), ti.f32(1.0))
        rim = surely * ti.exp(ti.f32(2.5) * ti.min(height, ti.f32(0.0)))
        water = body.colour * (ti.f32(0.8) + ti.f32(0.7) * rim)
        colour += covered * (water - colour)
        if ti.static(rock.obstacle.there):
            solid = rock.obstacle.covered_at(inside, pixel)
            if solid > 0:
                nearest = flat(ti.min(ti.cast(inside + ti.f32(1.0), ti.i32), body.n + 1), strides_of(body.n))
                first = 3 * ti.cast(rock.owner[nearest], ti.i32)
                for channel in ti.static(range(3)):
                    colour[channel] += solid * (ti.f32(0.8) * rock.colours[first + channel] - colour[channel])
    else:
        colour *= ti.f32(0.35)
    screen.put(x, y, backdrop.shown(colour))


@ti.func
def _smooth_at(c, I, s, phi: Array, out: Array, scale):
    """Half of what lies there, half the mean of that with its neighbours: bumps of single particles go, drops stay."""
    total = ti.f32(2.0 * s.n) * phi[c]
    for axis in ti.static(range(s.n)):
        total += phi[c + s[axis]] + phi[c - s[axis]]
    mean = total * ti.f32(1.0 / (4 * s.n))
    out[c] = scale * ti.select(phi[c] < 0, ti.min(mean, ti.f32(0.5) * phi[c]), mean)


@kernel_family
def smoothing_kernels(loops):
    IntVector = loops.IntVector

    @ti.kernel
    def smooth(phi: Array, out: Array, n: IntVector, scale: ti.f32):
        loops.each_cell(n, _smooth_at, (phi, out, scale))

    return (smooth,)


@kernel_family
def liquid_kernels(loops, has_solids):
    Index, Point = loops.IntVector, loops.FloatVector
    Size, Colour = int_vector(2), float_vector(3)

    @ti.kernel
    def light_floor(
        lit: Array,
        lit_size: Size,
        phi: Array,
        n: Index,
        dx: ti.f32,
        absorption: Colour,
        tint: Colour,
        direction: Point,
        distance: Array,
        shapes: Array,
        owner: Array,
        colours: Array,
    ):
        body = Body(phi, n, dx, absorption, tint)
        rock = Rock(Obstacle(distance, n, dx, has_solids), owner, colours)
        loops.each_pixel(lit_size, light_floor_at, (lit, lit_size, body, direction, rock))

    @ti.kernel
    def march(
        image: Array,
        size: Size,
        top: Colour,
        bottom: Colour,
        exposure: ti.f32,
        eye: Point,
        forward: Point,
        right: Point,
        up: Point,
        edges: IntArray,
        taken: ti.i32,
        phi: Array,
        n: Index,
        dx: ti.f32,
        absorption: Colour,
        tint: Colour,
        sun: Colour,
        ambient: Colour,
        direction: Point,
        lit: Array,
        lit_size: Size,
        distance: Array,
        shapes: Array,
        owner: Array,
        colours: Array,
    ):
        screen, backdrop = Screen(image, size), Backdrop(top, bottom, exposure)
        body, room = Body(phi, n, dx, absorption, tint), Room(sun, ambient, direction, lit, lit_size)
        rock = Rock(Obstacle(distance, n, dx, has_solids, True, shapes), owner, colours)
        viewer = Eye(eye, forward, right, up)
        loops.each_pixel(
            size, sampled, (screen, edges, taken, _surface_colour, (size, backdrop, viewer, body, room, rock))
        )

    @ti.kernel
    def fill(
        image: Array,
        size: Size,
        top: Colour,
        bottom: Colour,
        exposure: ti.f32,
        corner: Point,
        across: Point,
        upward: Point,
        phi: Array,
        n: Index,
        dx: ti.f32,
        absorption: Colour,
        tint: Colour,
        distance: Array,
        shapes: Array,
        owner: Array,
        colours: Array,
    ):
        screen, backdrop, window = Screen(image, size), Backdrop(top, bottom, exposure), Window(corner, across, upward)
        rock = Rock(Obstacle(distance, n, dx, has_solids, True, shapes), owner, colours)
        loops.each_pixel(size, _filled_pixel, (screen, backdrop, window, Body(phi, n, dx, absorption, tint), rock))

    return {"march": march, "light_floor": light_floor} if loops.dim == 3 else {"fill": fill}


class LiquidPicture:
    """Pictures of a liquid on one grid.

    Args:
        grid: The grid.
    """

    def __init__(self, grid: Grid):
        self.grid = grid
        self.phi, self._wide = grid.array(), grid.array() if grid.dim == 3 else None
        self._smoothing = smoothing_kernels(grid.loops)
        self._lit, self._size = ti.ndarray(ti.f32, 1), int_vector(2)(1, 1)
        if grid.dim == 3:
            across, along = grid.shape[0] + 1, grid.shape[2] + 1
            self._lit, self._size = ti.ndarray(ti.f32, across * along), int_vector(2)(across, along)

    def prepare(self, phi) -> None:
        """Copy a level set, m, negative in the liquid, smoothed a little; in 3D it is continued before."""
        grid, scale = self.grid, 1.0
        if self._wide is not None:
            phi, scale = continue_distance(grid, phi, self.phi, self._wide, KNOWN_TO, -DEEPEST), grid.dx
        self._smoothing.smooth(phi, self.phi, grid.n, scale)
        Seams(self.grid).mirror(self.phi)

    def draw(
        self,
        image: Image,
        background: tuple[Sequence[float], Sequence[float]],
        exposure: float,
        liquid: tuple[Sequence[float], Sequence[float]],
        light: tuple[Sequence[float], Sequence[float], Sequence[float]],
        view: View | None,
        solids: tuple | None,
    ) -> None:
        """Draw what was prepared.

        Args:
            image: What to fill.
            background: Colours of the upper and the lower edge.
            exposure: Brightness.
            liquid: What it absorbs of red, green and blue, 1/m, and its colour.
            light: Colours of the light and of that from everywhere, and the direction towards the light.
            view: The camera's view, in metres; None in 2D.
            solids: Distance at the lower corners of the cells, m, table of exact shapes, whose each place is, and their colours;
                None without.
        """
        grid, vector = self.grid, float_vector(3)
        kernels = liquid_kernels(grid.loops, solids is not None)
        body = (self.phi, grid.n, grid.dx, vector(*liquid[0]), vector(*liquid[1]))
        rock = image.nothing[:4] if solids is None else solids
        picture = (*image.screen, *backdrop_arguments(background, exposure))
        if view is None:
            kernels.fill(*picture, *plane_window(grid, plane_of(grid, 2, 0.5), image), *body, *rock)
            return
        direction = vector(*light[2])
        kernels.light_floor(self._lit, self._size, *body, direction, *rock)
        room = (vector(*light[0]), vector(*light[1]), direction, self._lit, self._size)
        for rays in rays_of(image, view, grid):
            kernels.march(*picture, *rays, *body, *room, *rock)
