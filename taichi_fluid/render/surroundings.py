"""What rays through a liquid meet: its body, solids in it, the sky, and a tiled floor with the light on it.

The floor is lit by a map of what reaches it: less below solids and deep liquid, more below crests, which gather light.
"""

from .._ti import argument, ti
from ..kernels import Array, flat, strides_of
from ..operators.interpolation import inside_box, sample, uphill
from ..operators.vectors import length

INDEX = 1.333
"""Refractive index of water."""
TILES = 8.0
"""Tiles of the floor along the longest edge of the box."""
FADE = 1.5
"""Distance from the box at which the floor has faded by 1/e, in longest edges."""
BEND = 2.0
"""Cells to both sides over which the bend of a crest is seen that gathers light."""
DEEPEST = 6.0
"""Cells below which crests gather no more light than there: farther down the least unevenness would make stripes."""
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
    def glow(self, room):
        """Light that much of it sends back by itself."""
        return ti.f32(0.35) * self.colour * (ti.f32(0.15) * room.sun + room.ambient)

    @ti.func
    def crossed(self, before, after):
        """Where between two points, in parts of the way, the surface is."""
        low, high = ti.f32(0.0), ti.f32(1.0)
        sign = ti.select(self.height_at(before) < 0, ti.f32(1.0), ti.f32(-1.0))
        for _ in range(8):
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
def light_floor_at(i, k, lit: Array, size, body, direction, rock):
    """What reaches a place of the floor: through solids little; below a crest, whose depth and curvature gather it, more.

    Followed back to the light: in the liquid as a level surface has refracted it, in the air straight.
    """
    at = ti.Vector([ti.cast(i + 1, ti.f32), ti.f32(0.6), ti.cast(k + 1, ti.f32)])
    under, light, going = ti.f32(0.0), ti.f32(1.0), 1
    wet, way = body.height_at(at) < 0, direction
    if wet:
        way = -refracted(-direction, ti.Vector([0.0, 1.0, 0.0], ti.f32), ti.f32(1.0 / INDEX))
    while going == 1:
        h = body.height_at(at)
        if ti.static(rock.obstacle.there):
            if rock.obstacle.depth_at(at) < 0:
                light, going = ti.f32(SHADOW) * light, 0
        if h < 0:
            under += ti.f32(0.5)
        elif wet:
            bend = ti.f32(-2.0 * at.n) * h
            for axis in ti.static(range(3)):
                step = at * ti.f32(0.0)
                step[axis] = ti.f32(BEND)
                bend += body.height_at(at + step) + body.height_at(at - step)
            focus = under / (ti.f32(1.0) + under * ti.f32(1.0 / DEEPEST))
            gathered = ti.f32(1.0) - ti.f32((1.0 - 1.0 / INDEX) / BEND**2) * focus * bend
            light *= ti.f32(1.0) / ti.min(ti.max(gathered, ti.f32(0.45)), ti.f32(2.5))
            wet, way = False, direction
        at += ti.f32(0.5) * way
        if (at - inside_box(at, body.n)).norm_sqr() > 0:
            going = 0
    fade = ti.exp(-body.absorption * (body.dx * under))
    lit[i * size[1] + k] = light * ti.f32(1.0 / 3.0) * (fade[0] + fade[1] + fade[2])
