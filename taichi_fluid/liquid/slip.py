"""What a liquid does along solids within them, where particles beside them look: it slides, whichever way they stand."""

from .._ti import ti
from ..kernels import Array, cells_of
from ..operators.interpolation import step_to_corner

FLAT = 0.95
"""Slope of the distance to a solid from which on it has one normal: across an edge it changes by less."""


@ti.func
def _normal_at(solids, c, s, axis: ti.template()):
    """The unit vector that is normal to the nearest solid, at a face; and whether the solid is ``FLAT`` there."""
    g = ti.cast(s, ti.f32) * ti.f32(0.0)
    for corner in ti.static(range(2**s.n)):
        for k in ti.static(range(s.n)):
            step = step_to_corner(corner, s)
            if ti.static(k == axis):
                # The face lies between the cells on both sides of it.
                upper = ti.f32(1.0 if (corner >> k) & 1 else -1.0)
                g[k] += ti.f32(0.5) * upper * (solids.distance[c + step] + solids.distance[c + step - s[k]])
            else:
                g[k] += (
                    ti.f32(1.0 if (corner >> k) & 1 else -1.0)
                    * ti.f32(0.5)
                    * (solids.distance[c + step] + solids.distance[c + step - s[axis]])
                )
    size = ti.sqrt(g.dot(g))
    return g / ti.max(size, ti.f32(1e-10)), size * ti.f32(0.5 ** (s.n - 1)) / solids.dx > ti.f32(FLAT)


@ti.func
def slip_at(c, I, s, u: Array, also: Array, known: Array, solids):
    """Closed faces keep what goes along the solid, and have the solid's own velocity across it.

    What other components bring, where it is flat, is the mean of the open faces around that are known: these stay as they are meanwhile.
    """
    for axis in ti.static(range(s.n)):
        face = c + axis * cells_of(s, solids.n)
        if solids.open[face] == 0 and (solids.n >= I).all():
            row, x = solids.row_at(c, s, axis), solids.middle_of(I, axis)
            normal, flat = _normal_at(solids, c, s, axis)
            own = solids.velocity_of(row, x, ti.i32(axis))
            into, into_also = normal[axis] * (own - u[face]), normal[axis] * (own - also[face])
            for k in ti.static([k for k in range(s.n) if k != axis]):
                total, total_also, parts = ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)
                for corner in ti.static(range(4)):
                    around = c + k * cells_of(s, solids.n) + (corner & 1) * s[k] - (corner >> 1) * s[axis]
                    if solids.open[around] > 0 and known[around] != 0:
                        total, total_also, parts = total + u[around], total_also + also[around], parts + ti.f32(1.0)
                if parts > 0 and flat:
                    own = solids.velocity_of(row, x, ti.i32(k))
                    into += normal[k] * (own - total / parts)
                    into_also += normal[k] * (own - total_also / parts)
            # Both are read first: they may be one.
            slipped, slipped_also = u[face] + normal[axis] * into, also[face] + normal[axis] * into_also
            u[face], also[face] = slipped, slipped_also
