"""The surface of a liquid: in 3D a refracting, reflecting body over a tiled floor, in 2D filled to a sharp edge.

A ray is followed through the level set; where it meets the surface a part is reflected as Fresnel's equations have it
(Schlick 1994), which sees the sky, and the rest goes on, refracted. On its way in the liquid it loses light by the law of
Beer and Lambert. The floor is lit by a map of what reaches it: less below solids and deep liquid, more below crests, which
gather light.
"""

from collections.abc import Sequence

from .._ti import argument, ti
from ..grid import Grid
from ..kernels import Array, flat, float_vector, int_vector, kernel_family, strides_of
from ..operators.interpolation import inside_box, sample, uphill
from ..operators.vectors import length
from .camera import Eye, View, box_span
from .image import Backdrop, Image, Screen, backdrop_arguments
from .ranges import plane_of
from .slices import Window, plane_window
from .surfaces import Obstacle

INDEX = 1.333
"""Refractive index of water."""
NORMAL_AT = ((INDEX - 1) / (INDEX + 1)) ** 2
"""Part of the light that is reflected at right angles."""
MEETINGS = 6
"""Surfaces that a ray is followed through."""
SHORTEST, PART = 0.15, 0.8
"""The shortest step of a ray, in cells, and part of the distance to the surface that others are long."""
TILES = 8.0
"""Tiles of the floor along the longest edge of the box."""
FADE = 1.5
"""Distance from the box at which the floor has faded by 1/e, in longest edges."""
BEND = 2.0
"""Cells to both sides over which the bend of a crest is seen that gathers light."""
SHADOW = 0.25
"""Light that a solid leaves of that which it stands in."""


@argument
class Body:
    """A liquid in a box: its level set ``phi``, m, on ``n`` cells of ``dx``; what a cell of it absorbs, and its colour."""

    phi: object
    n: object
    dx: object
    absorption: object
    colour: object

    @ti.func
    def height_at(self, q):
        """Distance to the surface at a point, in cells."""
        return sample(self.phi, 0, inside_box(q, self.n), self.n) / self.dx

    @ti.func
    def normal_at(self, q):
        """Unit vector out of the liquid."""
        return uphill(self.phi, q, 1.0, 0.0, self.n)

    @ti.func
    def crossed(self, before, after):
        """Where between two points, in parts of the way, the surface is."""
        low, high = ti.f32(0.0), ti.f32(1.0)
        sign = ti.select(self.height_at(before) < 0, ti.f32(1.0), ti.f32(-1.0))
        for _ in range(5):
            middle = ti.f32(0.5) * (low + high)
            if sign * self.height_at(before + middle * (after - before)) < 0:
                low = middle
            else:
                high = middle
        return ti.f32(0.5) * (low + high)

    @ti.func
    def wall_at(self, q):
        """The normal, out of the box, of the side that a point is nearest to."""
        normal, nearest = q * ti.f32(0.0), ti.f32(1e9)
        for axis in ti.static(range(q.n)):
            below, above = q[axis] - ti.f32(0.5), ti.cast(self.n[axis], ti.f32) + ti.f32(0.5) - q[axis]
            if ti.min(below, above) < nearest:
                nearest = ti.min(below, above)
                normal = q * ti.f32(0.0)
                normal[axis] = ti.select(below < above, ti.f32(-1.0), ti.f32(1.0))
        return normal


@argument
class Room:
    """What is around: the light from ``sun``, its direction, the ``ambient`` one; the floor's map of light, of ``size``."""

    sun: object
    ambient: object
    direction: object
    lit: object
    size: object

    @ti.func
    def sky_at(self, ray):
        """Light from above, in a direction."""
        up = ti.min(ti.max(ray[1], ti.f32(0.0)), ti.f32(1.0))
        horizon, zenith = ti.Vector([0.80, 0.86, 0.92], ti.f32), ti.Vector([0.22, 0.38, 0.62], ti.f32)
        glint = ti.max(ray.dot(self.direction), ti.f32(0.0))
        for _ in ti.static(range(8)):
            glint *= glint
        return horizon + ti.sqrt(up) * (zenith - horizon) + ti.f32(2.0) * glint * self.sun

    @ti.func
    def lit_at(self, q):
        """Light that reaches the floor below a point."""
        x = ti.Vector([q[0], q[2]]) * ti.f32(1.0)
        last = ti.cast(self.size, ti.f32) - ti.f32(1.001)
        x = ti.min(ti.max(x - ti.f32(1.0), x * ti.f32(0.0)), last)
        I = ti.cast(x, ti.i32)
        f, at = x - ti.cast(I, ti.f32), I[0] * self.size[1] + I[1]
        low = self.lit[at] + f[1] * (self.lit[at + 1] - self.lit[at])
        high = self.lit[at + self.size[1]] + f[1] * (self.lit[at + self.size[1] + 1] - self.lit[at + self.size[1]])
        return low + f[0] * (high - low)

    @ti.func
    def floor_at(self, q, n):
        """Colour of the floor at a point of it, and how much of it is left so far away."""
        longest = ti.cast(n.max(), ti.f32)
        tile = (q - ti.f32(0.5)) * (ti.f32(TILES) / longest)
        across = ti.Vector([tile[0] - ti.floor(tile[0]), tile[2] - ti.floor(tile[2])])
        line = ti.min(ti.min(across[0], across[1]), ti.min(ti.f32(1.0) - across[0], ti.f32(1.0) - across[1]))
        odd = (ti.cast(ti.floor(tile[0]), ti.i32) + ti.cast(ti.floor(tile[2]), ti.i32)) & 1
        shade = ti.f32(0.50) + ti.f32(0.09) * ti.cast(odd, ti.f32)
        shade *= ti.f32(0.55) + ti.f32(0.45) * ti.min(line * ti.f32(40.0), ti.f32(1.0))
        beyond = q - inside_box(q, n)
        beyond[1] = ti.f32(0.0)
        left = ti.exp(-length(beyond) / (ti.f32(FADE) * longest))
        # What a body throws beyond the box is not known there: it fades within a few cells.
        lit = ti.f32(1.0) + ti.exp(-length(beyond)) * (self.lit_at(q) - ti.f32(1.0))
        light = self.ambient + ti.f32(0.5) * lit * self.sun
        return shade * light, left


@argument
class Rock:
    """Solids, whose each place is, and their colours."""

    obstacle: object
    owner: object
    colours: object

    @ti.func
    def colour_at(self, q, room):
        """Colour at a point of the surface."""
        n = self.obstacle.n
        normal = self.obstacle.normal_at(q, ti.f32(1.0))
        nearest = flat(ti.min(ti.cast(q + ti.f32(1.0), ti.i32), n + 1), strides_of(n))
        first = 3 * ti.cast(self.owner[nearest], ti.i32)
        facing = ti.max(normal.dot(room.direction), ti.f32(0.0))
        light = ti.f32(0.4) * facing * room.sun + (ti.f32(0.75) + ti.f32(0.25) * normal[1]) * room.ambient
        for channel in ti.static(range(3)):
            light[channel] *= self.colours[first + channel]
        return light


@ti.func
def reflected_part(cosine):
    """Part of the light that is reflected where it meets the surface at an angle of this cosine (Schlick 1994)."""
    miss = ti.f32(1.0) - cosine
    return ti.f32(NORMAL_AT) + ti.f32(1.0 - NORMAL_AT) * miss * miss * miss * miss * miss


@ti.func
def refracted(ray, normal, ratio):
    """The direction beyond a surface whose ``normal`` is towards the ray, by Snell's law; of no length if there is none.

    ``ratio`` is the index on this side over that on the other.
    """
    cosine = -ray.dot(normal)
    rest = ti.f32(1.0) - ratio * ratio * (ti.f32(1.0) - cosine * cosine)
    result = ray * ti.f32(0.0)
    if rest > 0:
        result = ratio * ray + (ratio * cosine - ti.sqrt(rest)) * normal
    return result


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
def _surface_pixel(x, y, screen, backdrop, eye, body, room, rock):
    way, upward = eye.ray(x, y, screen.size)
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
        event, normal, at = 0, way * ti.f32(0.0), t
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
            step = ti.max(ti.f32(SHORTEST), ti.min(t, ti.f32(1.5)))
            from_t = ti.max(t - step, ti.f32(0.0))
            at = from_t + body.crossed(place + from_t * way, q) * (t - from_t)
            event, normal = 1, body.normal_at(place + at * way)
        if ti.static(rock.obstacle.there):
            away = rock.obstacle.depth_at(inside_box(q, n))
            if event == 0 and away < 0:
                event, at = 3, t + away
            h = ti.min(ti.abs(h), away)
        if event == 0:
            t += ti.min(ti.max(ti.f32(PART) * ti.abs(h), ti.f32(SHORTEST)), leave - t + ti.f32(1e-3))
        else:
            if wet == 1:
                lost = ti.exp(-body.absorption * (body.dx * at))
                colour += passing * (ti.f32(1.0) - lost) * body.colour * (ti.f32(0.15) * room.sun + room.ambient) * 0.35
                passing *= lost
            place += at * way
            if event == 1:
                met += 1
                on, still, part = _meet(place, way, wet, normal)
                mirror = way - ti.f32(2.0) * way.dot(normal) * normal
                if wet == 0:
                    colour += passing * part * _outer_colour(place, mirror, upward, 0, room, backdrop, n)
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
    screen.put(x, y, backdrop.shown(colour))


@ti.func
def _light_floor_at(i, k, lit: Array, size, body, direction, rock):
    """What reaches a place of the floor: through solids little; below a crest, whose depth and curvature gather it, more."""
    q = ti.Vector([ti.cast(i + 1, ti.f32), ti.f32(0.6), ti.cast(k + 1, ti.f32)])
    _, leave = box_span(q, direction, body.n)
    t, under, light, done = ti.f32(0.0), ti.f32(0.0), ti.f32(1.0), 0
    wet = body.height_at(q) < 0
    while t < leave and done == 0:
        at = q + t * direction
        h = body.height_at(at)
        if ti.static(rock.obstacle.there):
            if rock.obstacle.depth_at(inside_box(at, body.n)) < 0:
                light, done = ti.f32(SHADOW) * light, 1
        if h < 0:
            under += ti.f32(0.5)
        elif wet:
            bend = ti.f32(-2.0 * at.n) * h
            for axis in ti.static(range(3)):
                step = at * ti.f32(0.0)
                step[axis] = ti.f32(BEND)
                bend += body.height_at(at + step) + body.height_at(at - step)
            gathered = ti.f32(1.0) - ti.f32((1.0 - 1.0 / INDEX) / BEND**2) * under * bend
            light *= ti.f32(1.0) / ti.min(ti.max(gathered, ti.f32(0.45)), ti.f32(2.5))
            wet = False
        t += ti.f32(0.5)
    fade = ti.exp(-body.absorption * (body.dx * under))
    lit[i * size[1] + k] = light * ti.f32(1.0 / 3.0) * (fade[0] + fade[1] + fade[2])


@ti.func
def _filled_pixel(x, y, screen, backdrop, window, body, rock):
    q = window.point(x, y, screen)
    colour = backdrop.at(screen.height_of(y) / ti.cast(screen.size[1], ti.f32))
    inside = inside_box(q, body.n)
    if (q - inside).norm_sqr() == 0:
        pixel = window.cells_per_pixel()
        height = body.height_at(inside)
        covered = ti.min(ti.max(ti.f32(0.5) - height / pixel, ti.f32(0.0)), ti.f32(1.0))
        rim = ti.exp(ti.f32(2.5) * ti.min(height, ti.f32(0.0)))
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
def _smooth_at(c, I, s, phi: Array, out: Array):
    """Half of what lies there, half the mean of that with its neighbours: bumps of single particles go, drops stay."""
    total = ti.f32(2.0 * s.n) * phi[c]
    for axis in ti.static(range(s.n)):
        total += phi[c + s[axis]] + phi[c - s[axis]]
    mean = total * ti.f32(1.0 / (4 * s.n))
    out[c] = ti.select(phi[c] < 0, ti.min(mean, ti.f32(0.5) * phi[c]), mean)


@ti.func
def _copy_nearest(c, I, s, phi: Array, n):
    inner = ti.min(ti.max(I, 1), n)
    if (inner != I).any():
        phi[c] = phi[flat(inner, s)]


@kernel_family
def smoothing_kernels(loops):
    IntVector = loops.IntVector

    @ti.kernel
    def smooth(phi: Array, out: Array, n: IntVector):
        loops.each_cell(n, _smooth_at, (phi, out))

    @ti.kernel
    def fill_ghosts(phi: Array, n: IntVector):
        loops.each_cell_in(n * 0, n + 2, n, _copy_nearest, (phi, n))

    return smooth, fill_ghosts


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
        owner: Array,
        colours: Array,
    ):
        body = Body(phi, n, dx, absorption, tint)
        rock = Rock(Obstacle(distance, n, dx, has_solids), owner, colours)
        loops.each_pixel(lit_size, _light_floor_at, (lit, lit_size, body, direction, rock))

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
        owner: Array,
        colours: Array,
    ):
        screen, backdrop = Screen(image, size), Backdrop(top, bottom, exposure)
        body, room = Body(phi, n, dx, absorption, tint), Room(sun, ambient, direction, lit, lit_size)
        rock = Rock(Obstacle(distance, n, dx, has_solids), owner, colours)
        loops.each_pixel(size, _surface_pixel, (screen, backdrop, Eye(eye, forward, right, up), body, room, rock))

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
        owner: Array,
        colours: Array,
    ):
        screen, backdrop, window = Screen(image, size), Backdrop(top, bottom, exposure), Window(corner, across, upward)
        rock = Rock(Obstacle(distance, n, dx, has_solids), owner, colours)
        loops.each_pixel(size, _filled_pixel, (screen, backdrop, window, Body(phi, n, dx, absorption, tint), rock))

    return {"march": march, "light_floor": light_floor} if loops.dim == 3 else {"fill": fill}


class LiquidPicture:
    """Pictures of a liquid on one grid.

    Args:
        grid: The grid.
    """

    def __init__(self, grid: Grid):
        self.grid = grid
        self.phi = grid.array()
        self._smoothing = smoothing_kernels(grid.loops)
        self._lit, self._size = ti.ndarray(ti.f32, 1), int_vector(2)(1, 1)
        if grid.dim == 3:
            across, along = grid.shape[0] + 1, grid.shape[2] + 1
            self._lit, self._size = ti.ndarray(ti.f32, across * along), int_vector(2)(across, along)

    def prepare(self, phi) -> None:
        """Copy a level set, m, negative in the liquid, smoothed a little."""
        self._smoothing.smooth(phi, self.phi, self.grid.n)
        self._smoothing.fill_ghosts(self.phi, self.grid.n)

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
            solids: Distance at the lower corners of the cells, m, whose each place is, and their colours; None without.
        """
        grid, vector = self.grid, float_vector(3)
        kernels = liquid_kernels(grid.loops, solids is not None)
        body = (self.phi, grid.n, grid.dx, vector(*liquid[0]), vector(*liquid[1]))
        rock = image.nothing[:3] if solids is None else solids
        picture = (*image.screen, *backdrop_arguments(background, exposure))
        if view is None:
            kernels.fill(*picture, *plane_window(grid, plane_of(grid, 2, 0.5), image), *body, *rock)
            return
        direction = vector(*light[2])
        kernels.light_floor(self._lit, self._size, *body, direction, *rock)
        room = (vector(*light[0]), vector(*light[1]), direction, self._lit, self._size)
        kernels.march(*picture, *view.in_cells(grid), *body, *room, *rock)
