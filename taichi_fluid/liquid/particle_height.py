"""How far the surface of a liquid is from a place, by the particles around: after Zhu and Bridson (2005).

They take the distance from a point to the weighted mean of the particles around it. Below a plane that mean lies at a
depth which the kernel alone decides, so the height of the plane follows from it: that is taken here, and not the distance
less a radius, so that what comes out is a distance on both sides. A mean may also lie in the air between two sheets; there
the distance to the nearest particle says so. Walls and solids are mirrors, so that a surface meets them as it comes.
"""

from .._ti import ti, traced
from ..kernels import fast_max, fast_min, flat, neighbour
from ..operators.vectors import length
from .core import BELOW
from .motion import away_from, distance_at
from .particles import vector_at

REACH = 1.5
"""How far particles count, in cells: from a centre, what the 3^dim cells around it hold."""
IMAGED = REACH + 0.25
"""How far from a solid, in cells, a centre and a particle may be together for that to have an image within reach of the centre: an image
is as far away at least, but for what a distance between cells, at the edges of a solid, lacks."""
HEIGHTS = {
    2: (0.98462, 1.18226, 0.45953, 0.11547, 0.01617, 0.00094),
    3: (0.97102, 1.15177, 0.44147, 0.1078, 0.01445, 0.0008),
}
"""Height above a plane for the depth m of the mean below it, both over ``REACH``: a polynomial of log m, exact to 0.005 for
heights from -0.7 to 0.8, raised by 0.013 cells (2D) and 0.031 (3D), so that a plane comes out as high as the lattice below it is
full: particles are few, and to the kernel a row of them is none of a body. With the kernel (1 - r²)³ the mean is known in closed form."""
FAR = 1.5
"""The distance that is given, in cells, in the air where there is no surface within reach, and ``BELOW`` in the liquid. Only a
cell beside one in the air has to know its own, and that is less."""
LONELY, LONELY_RADIUS = 0.6, 0.5
"""A place is in the air if the nearest particle is farther than this, in cells, and then as far from the surface as from it
less the second; in an even lattice no place is, up to a fifth of a cell above a plane."""


@ti.func
def _counted(total, way):
    """``total`` with a particle at ``way`` from the centre: sum of weights, least square of a distance, sum of ways."""
    result, square = total, way.dot(way)
    near = fast_max(ti.f32(1.0) - square * ti.f32(1.0 / REACH**2), ti.f32(0.0))
    w = near * near * near
    result[0] += w
    result[1] = fast_min(result[1], square)
    for axis in ti.static(range(way.n)):
        result[2 + axis] += w * way[axis]
    return result


@traced
def none_of(s):
    """What no particles make."""
    return ti.Vector([ti.cast(0.0, ti.f32), ti.cast(1e6, ti.f32)] + [ti.cast(0.0, ti.f32)] * s.n)


@ti.func
def summed_in_rows(cloud, I, x, s, mirrors):
    """``summed_beside`` where no solid is near: the cells of a row have their particles one after the other.

    Those of a row that is seen in a mirror are as far from the mirrored centre as their images are from that itself.
    """
    total, n, last = none_of(s), mirrors.solids.n, ti.static(s.n - 1)
    parts = ti.select((I[last] > 1) & (n[last] > I[last]), 1, 3)
    for around in range(ti.static(3 ** (s.n - 1))):
        J, rest = I, around
        for axis in ti.static(range(s.n - 1)):
            J[axis] += rest % 3 - 1
            rest = rest // 3
        # What lies in the row, and what is seen beyond its two ends.
        for part in range(parts):
            K = J
            K[last] += ti.select(part == 0, 0, 2 * part - 3)
            image, there = mirrors.cell(K, n)
            if there == 1 and (part == 0 or K[last] < 1 or K[last] > n[last]):
                begin = ti.cast(flat(image, s), ti.i32)
                end = begin + 1
                if part == 0:
                    begin, end = begin - ti.select(I[last] > 1, 1, 0), end + ti.select(n[last] > I[last], 1, 0)
                row, centre = none_of(s), mirrors.seen_from(x, K, n)
                for i in range(cloud.starts[begin], cloud.starts[end]):
                    row = _counted(row, vector_at(cloud.position, cloud.order[i], cloud.room, x) - centre)
                total[0] += row[0]
                total[1] = fast_min(total[1], row[1])
                for axis in ti.static(range(s.n)):
                    turned = mirrors.turns(K, n, axis) == 1
                    total[2 + axis] += ti.select(turned, -row[2 + axis], row[2 + axis])
    return total


@ti.func
def summed_beside(cloud, I, x, s, mirrors, away):
    """What the particles of the 3^dim cells around make, and their images in the solid that is so far ``away``."""
    total, n, least = none_of(s), mirrors.solids.n, ti.f32(2.0) * away - ti.f32(IMAGED)
    for around in range(ti.static(3**s.n)):
        J = neighbour(I, around)
        image, there = mirrors.cell(J, n)
        if there == 1:
            c = ti.cast(flat(image, s), ti.i32)
            for i in range(cloud.starts[c], cloud.starts[c + 1]):
                y = mirrors.seen(vector_at(cloud.position, cloud.order[i], cloud.room, x), J, n)
                total = _counted(total, y - x)
                # Both have to be near the solid for the image to be; of most particles the way to them alone says that they are not.
                if length(y - x) > least:
                    d = distance_at(mirrors.solids, y)
                    if d + away < IMAGED:
                        z = y - ti.f32(2.0) * d * away_from(mirrors.solids, y)
                        if distance_at(mirrors.solids, z) < 0:
                            total = _counted(total, z - x)
    return total


@ti.func
def height_of(total, lift, dim: ti.template()):
    """Distance to the surface, in cells, that is raised by ``lift``, from what the particles around make."""
    height = ti.f32(FAR)
    if total[0] > 0:
        square = ti.f32(0.0)
        for axis in ti.static(range(dim)):
            square += total[2 + axis] * total[2 + axis]
        depth = ti.log(ti.max(ti.sqrt(square) / (total[0] * ti.f32(REACH)), ti.f32(0.006)))
        value = ti.f32(0.0)
        for k in ti.static(range(5, -1, -1)):
            value = value * depth + ti.f32(HEIGHTS[dim][k])
        nearest = ti.sqrt(total[1])
        height = ti.f32(REACH) * value - lift
        if nearest > LONELY:
            height = ti.max(height, nearest - ti.f32(LONELY_RADIUS))
        height = ti.min(ti.max(height, ti.f32(-BELOW)), ti.f32(FAR))
    return height
