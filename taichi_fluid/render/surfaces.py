"""Solids as the eye sees them: where a ray meets the surface, and the light there."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._ti import ti
from ..boundaries.solids import Solids
from ..kernels import flat, float_vector, strides_of
from ..operators.interpolation import inside_box, sample


class Surfaces(NamedTuple):
    """What the renderer needs of the solids.

    Attributes:
        solids: Whose distances and owners are drawn.
        colours: Red, green and blue of each, one after another.
        light: Fraction of the light that arrives, on a grid half as fine.
        light_n: Shape of that grid.
        sun: Colour of the light.
        ambient: Colour of the light from everywhere.
        direction: Towards the light.
    """

    solids: Solids
    colours: object
    light: object
    light_n: object
    sun: Sequence[float]
    ambient: Sequence[float]
    direction: Sequence[float]

    def arguments(self) -> tuple:
        """As the kernels take them."""
        colour, point = float_vector(3), float_vector(self.solids.grid.dim)
        return (
            self.solids.distance, self.solids.owner, self.colours, self.light, self.light_n, colour(*self.sun),
            colour(*self.ambient), point(*self.direction),
        )  # fmt: skip


def colour_table(colours: Sequence[Sequence[float]]):
    """Colours of all solids on the device."""
    values = np.asarray(colours, dtype=np.float32).ravel()
    table = ti.ndarray(ti.f32, len(values))
    table.from_numpy(values)
    return table


@ti.func
def depth_at(distance: ti.template(), q, n, dx):
    """Distance in cells from the point ``q`` to the nearest solid."""
    return sample(distance, 0, q + ti.f32(0.5), n) / dx


@ti.func
def solid_hit(distance: ti.template(), eye, ray, enter, leave, n, dx):
    """Where between ``enter`` and ``leave`` a ray first meets a solid, in cells along it; ``leave`` if nowhere.

    Each step is as long as the nearest solid is away (sphere tracing, Hart 1996), and a third of a cell at least.
    """
    t, hit = enter, leave
    while t < leave:
        away = depth_at(distance, inside_box(eye + t * ray, n), n, dx)
        if away < 0:
            hit = ti.max(t + away, enter)
            t = leave
        else:
            t += ti.max(ti.f32(0.9) * away, ti.f32(0.33))
    return ti.min(hit, leave)


@ti.func
def surface_colour(
    q, distance: ti.template(), owner: ti.template(), colours: ti.template(), light: ti.template(), light_n, sun,
    ambient, direction, n, dx,
):  # fmt: skip
    """Colour of the solid at a point ``q`` of its surface, lit through the smoke."""
    # Across two cells: within one, the slope of linear interpolation jumps at the faces and would show them.
    normal = q * ti.f32(0.0)
    for axis in ti.static(range(q.n)):
        before, behind = q, q
        before[axis] -= ti.f32(1.0)
        behind[axis] += ti.f32(1.0)
        normal[axis] = depth_at(distance, inside_box(behind, n), n, ti.f32(1.0))
        normal[axis] -= depth_at(distance, inside_box(before, n), n, ti.f32(1.0))
    normal /= ti.max(ti.sqrt(normal.norm_sqr()), ti.f32(1e-20))
    nearest = flat(ti.min(ti.cast(q + ti.f32(1.0), ti.i32), n + 1), strides_of(n))
    index = 3 * ti.cast(owner[nearest], ti.i32)
    above = inside_box((q + ti.f32(2.0) * normal) * ti.f32(0.5) + ti.f32(0.25), light_n)
    facing = ti.max(normal.dot(direction), ti.f32(0.0))
    if ti.static(q.n == 2):
        # Seen from the side that is not there: flat, with a bevel two cells wide.
        bevel = ti.exp(ti.f32(0.5) * ti.min(depth_at(distance, q, n, dx), ti.f32(0.0)))
        normal *= bevel
        facing = ti.f32(0.55) + bevel * (facing - ti.f32(0.55))
    facing *= sample(light, 0, above, light_n)
    sky = ti.f32(0.65) + ti.f32(0.35) * normal[1]
    colour = ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)])
    for channel in ti.static(range(3)):
        colour[channel] = colours[index + channel] * (ti.f32(0.4) * sun[channel] * facing + sky * ambient[channel])
    return colour
