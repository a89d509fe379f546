"""Solids as the eye sees them: where a ray meets the surface, and the light there."""

from .._ti import argument, ti
from ..kernels import flat, float_vector, int_vector, strides_of
from ..operators.interpolation import inside_box, sample, uphill
from ..operators.shapes import coverage
from ..operators.vectors import length
from .exact import NEAR, ExactShapes

SHARP = 0.02
"""Cells over which the normal of a shape is found that is known."""
SHORTEST = 0.04
"""The shortest step of a ray towards a solid, in cells: by as much it may miss an edge."""


def surface_arguments(surfaces: tuple | None, nothing, dim: int) -> tuple:
    """What kernels make a ``Surface`` of, as ``Parts.surfaces`` has it; without solids placeholders that are never read."""
    if surfaces is not None:
        return surfaces
    black, point = float_vector(3)(0.0, 0.0, 0.0), float_vector(dim)(*(0.0,) * dim)
    return (*nothing, int_vector(dim)(*(0,) * dim), black, black, point)


@ti.func
def way_on(away):
    """Cells that a ray goes on by where the nearest solid is ``away`` (sphere tracing, Hart 1996)."""
    return ti.max(ti.f32(0.9) * away, ti.f32(SHORTEST))


@argument
class Obstacle:
    """Solids, as points and rays meet them."""

    distance: object  # to the nearest solid at the lower corners of the cells, m
    n: object  # shape of the grid
    dx: object  # edge of a cell, m
    there: bool  # whether there are any; if not, nothing of this is read
    exact: bool = False  # whether edges count
    shapes: object = None  # the table of their exact shapes then

    @ti.func
    def depth_at(self, q):
        """Distance in cells from the point ``q`` to the nearest solid."""
        depth = sample(self.distance, 0, q + ti.f32(0.5), self.n) / self.dx
        if ti.static(self.exact):
            if depth < ti.f32(NEAR):
                depth = ExactShapes(self.shapes).depth_at(q, depth)
        return depth

    @ti.func
    def covered_at(self, q, cells_per_pixel):
        """Part of the pixel around ``q`` that a solid covers."""
        return coverage(self.depth_at(q), ti.f32(1.0) / cells_per_pixel)

    @ti.func
    def normal_at(self, q, reach):
        """Unit vector out of the nearest solid, by differences over ``reach`` cells to all sides, or ``SHARP`` where edges count."""
        normal = q * ti.f32(0.0)
        if ti.static(self.exact):
            if ExactShapes(self.shapes).count() > 0:
                reach = ti.f32(SHARP)
            # A loop that stays one: this is compiled into every picture.
            for corner in range(2**q.n):
                e = normal * ti.f32(0.0)
                for axis in ti.static(range(q.n)):
                    e[axis] = ti.cast(2 * ((corner >> axis) & 1) - 1, ti.f32)
                normal += self.depth_at(inside_box(q + reach * e, self.n)) * e
            normal /= ti.max(length(normal), ti.f32(1e-20))
        else:
            normal = uphill(self.distance, q, reach, 0.5, self.n)
        return normal

    @ti.func
    def reached(self, start, ray, enter, leave):
        """Where between ``enter`` and ``leave`` a ray first meets a solid, in cells along it; ``leave`` if nowhere."""
        t, hit = enter, leave
        while t < leave:
            away = self.depth_at(inside_box(start + t * ray, self.n))
            if away < 0:
                hit = ti.max(t + away, enter)
                t = leave
            else:
                t += way_on(away)
        return ti.min(hit, leave)


@argument
class Lamp:
    """The light on solids."""

    light: object  # fraction that arrives, on a grid half as fine
    n: object  # shape of that grid
    sun: object  # colour of the light
    ambient: object  # colour of the light from everywhere
    direction: object  # towards the light


@argument
class Surface:
    """Solids as the eye sees them: an obstacle, whose each place is, the solids' colours, and the lamp."""

    obstacle: object
    owner: object
    colours: object
    lamp: object

    @ti.func
    def colour_at(self, q):
        """Colour of the solid at a point ``q`` of its surface, lit through the smoke."""
        n, lamp = self.obstacle.n, self.lamp
        # Across two cells: within one, the slope of linear interpolation jumps at the faces and would show them.
        normal = self.obstacle.normal_at(q, ti.f32(1.0))
        nearest = flat(ti.min(ti.cast(q + ti.f32(1.0), ti.i32), n + 1), strides_of(n))
        first, depth = 3 * ti.cast(self.owner[nearest], ti.i32), ti.f32(0.0)
        if ti.static(q.n == 2):
            depth = ti.min(self.obstacle.depth_at(q), ti.f32(0.0))
        above = inside_box((q + (ti.f32(2.0) - depth) * normal) * ti.f32(0.5) + ti.f32(0.25), lamp.n)
        facing = ti.max(normal.dot(lamp.direction), ti.f32(0.0)) * sample(lamp.light, 0, above, lamp.n)
        if ti.static(q.n == 2):
            # Seen from the side that is not there: flat, with a bevel two cells wide.
            bevel = ti.exp(ti.f32(0.5) * depth)
            normal *= bevel
            facing = ti.f32(0.55) + bevel * (facing - ti.f32(0.55))
        sky = ti.f32(0.65) + ti.f32(0.35) * normal[1]
        light = ti.f32(0.4) * lamp.sun * facing + sky * lamp.ambient
        for channel in ti.static(range(3)):
            light[channel] *= self.colours[first + channel]
        return light
