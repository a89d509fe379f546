"""Where a velocity lies, for whatever reads one: on lower faces (the staggered grid) or at centres (the collocated one).

A kernel family that reads a velocity takes the grid's ``Placement`` as part of its key and calls what stands in it.
"""

from collections.abc import Callable

from .._ti import argument, ti
from ..kernels import Array, cells_of, strides_of
from .differences import centre_derivative_at, centre_velocity_at, outflow_at, squared_vorticity_at, vorticity_at
from .interpolation import sample, sample_velocity


@ti.func
def _sample_centred(u: Array, q, n):
    cells = cells_of(strides_of(n), n)
    v = q
    for axis in ti.static(range(q.n)):
        v[axis] = sample(u, axis * cells, q, n)
    return v


@ti.func
def _centred_at(u: Array, c, n):
    cells = cells_of(strides_of(n), n)
    v = ti.cast(n, ti.f32)
    for axis in ti.static(range(n.n)):
        v[axis] = u[c + axis * cells]
    return v


@ti.func
def _centred_outflow_at(u: Array, c, s, n):
    """Dx times the divergence by central differences over two cells."""
    cells = cells_of(s, n)
    total = u[c + s[0]] - u[c - s[0]]
    for axis in ti.static(range(1, s.n)):
        place = c + axis * cells
        total += u[place + s[axis]] - u[place - s[axis]]
    return ti.f32(0.5) * total


@ti.func
def _centred_derivative_at(u: Array, c, component: ti.template(), along: ti.template(), n):
    s = strides_of(n)
    place = c + component * cells_of(s, n)
    return ti.f32(0.5) * (u[place + s[along]] - u[place - s[along]])


@ti.func
def _centred_squared_vorticity_at(u: Array, c, n):
    w = vorticity_at(u, c, n, _centred_derivative_at)
    return w.dot(w)


@argument
class Placement:
    """What reads a velocity of one grid."""

    collocated: bool  # whether all components lie at cell centres
    sample: Callable  # ``sample(u, q, n)``, the velocity at the point ``q`` of the cell-centred index space
    at_centre: Callable  # ``at_centre(u, c, n)``, the velocity at the centre of ``c``
    outflow: Callable  # ``outflow(u, c, s, n)``, dx times the divergence of ``c``
    derivative: Callable  # ``derivative(u, c, component, along, n)``, dx times that derivative at the centre of ``c``
    squared_vorticity: Callable  # ``squared_vorticity(u, c, n)``, dx² times the square of the vorticity in ``c``


STAGGERED = Placement(
    False, sample_velocity, centre_velocity_at, outflow_at, centre_derivative_at, squared_vorticity_at
)
COLLOCATED = Placement(
    True, _sample_centred, _centred_at, _centred_outflow_at, _centred_derivative_at, _centred_squared_vorticity_at
)
