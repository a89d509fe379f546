"""First differences on the staggered grid."""

from .._ti import subscript, ti, traced
from ..kernels import Array, cells_of, strides_of


@traced
def _kept_apart(difference, n):
    """``difference``, hidden from a compiler that is allowed to reorder sums.

    It would subtract 2·dim times the middle from the sum of the neighbours, which for a constant is not 0 but rounding.
    The bits are combined with the sign of a size, which is 0, but only a reader knows.
    """
    return ti.bit_cast(ti.bit_cast(difference, ti.i32) ^ (subscript(n, 0) >> 31), ti.f32)


@ti.func
def difference_sum(x: Array, c, s, n):
    """Sum over the 2·dim neighbours of (x_neighbour - x_c): dx² times the Laplacian; of a constant it is 0 exactly."""
    here = x[c]
    total = ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        for side in ti.static((-1, 1)):
            total += _kept_apart(x[c + side * s[axis]] - here, n)
    return total


@ti.func
def open_difference_sum(x: Array, open: Array, c, s, n):
    """The same with each difference weighted by how far the face between is open."""
    cells = cells_of(s, n)
    here = x[c]
    total = ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        for side in ti.static((-1, 1)):
            weight = open[c + axis * cells + (s[axis] if ti.static(side == 1) else 0)]
            total += weight * _kept_apart(x[c + side * s[axis]] - here, n)
    return total


@ti.func
def open_sum(open: Array, c, s, n):
    """How far the 2·dim faces of cell ``c`` are open, in all."""
    cells = cells_of(s, n)
    total = open[c] + open[c + s[0]]
    for axis in ti.static(range(1, s.n)):
        face = c + axis * cells
        total += open[face] + open[face + s[axis]]
    return total


@ti.func
def covered_area(open: Array, c, s, n):
    """Area of the surface in cell ``c``, over that of a face, as a vector into the fluid: what its open faces leave to close it."""
    area = ti.cast(s, ti.f32) * ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        face = c + axis * cells_of(s, n)
        area[axis] = open[face + s[axis]] - open[face]
    return area


@ti.func
def outflow_at(u: Array, c, s, n):
    """Dx times the divergence of cell ``c``: the sum of its face velocities, outward positive."""
    cells = cells_of(s, n)
    total = u[c + s[0]] - u[c]
    for axis in ti.static(range(1, s.n)):
        face = c + axis * cells
        total += u[face + s[axis]] - u[face]
    return total


@ti.func
def centre_velocity_at(u: Array, c, n):
    """Velocity at the centre of cell ``c``: means of opposite faces."""
    s = strides_of(n)
    cells = cells_of(s, n)
    v = ti.cast(n, ti.f32)
    for axis in ti.static(range(n.n)):
        v[axis] = ti.f32(0.5) * (u[c + axis * cells] + u[c + axis * cells + s[axis]])
    return v


@ti.func
def centre_derivative_at(u: Array, c, component: ti.template(), along: ti.template(), n):
    """Dx times d(u_component)/d(x_along) at the centre of cell ``c``: from face to face, across a component from centre to centre."""
    s = strides_of(n)
    above = c + component * cells_of(s, n) + s[along]
    if ti.static(component == along):
        return u[above] - u[above - s[along]]
    else:
        below = c + component * cells_of(s, n) - s[along]
        upper, lower = u[above] + u[above + s[component]], u[below] + u[below + s[component]]
        return ti.f32(0.25) * (upper - lower)


@ti.func
def vorticity_at(u: Array, c, n, derivative: ti.template()):
    """Dx times the curl of the velocity at the centre of cell ``c``, as a vector of three.

    In 2D only the last of them is not 0. ``derivative`` is that of the placement of the velocity.
    """
    w = ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)])
    w[2] = derivative(u, c, 1, 0, n) - derivative(u, c, 0, 1, n)
    if ti.static(n.n == 3):
        w[0] = derivative(u, c, 2, 1, n) - derivative(u, c, 1, 2, n)
        w[1] = derivative(u, c, 0, 2, n) - derivative(u, c, 2, 0, n)
    return w


@ti.func
def squared_vorticity_at(u: Array, c, n):
    """Dx² times the square of the vorticity in cell ``c``: of each component the mean over the four edges where it lies.

    At the centre there is only the mean of the four, which of short waves is much less.
    """
    s = strides_of(n)
    cells, total = cells_of(s, n), ti.f32(0.0)
    for i in ti.static(range(n.n)):
        for j in ti.static(range(i)):
            for k in ti.static(range(4)):
                edge = c + (k % 2) * s[i] + (k // 2) * s[j]
                one, two = edge + i * cells, edge + j * cells
                curl = u[one] - u[one - s[j]] - u[two] + u[two - s[i]]
                total += ti.f32(0.25) * curl * curl
    return total


@ti.func
def gradient_at(a: Array, c, s):
    """2 dx times the gradient of a quantity at cell centres: central differences."""
    g = ti.cast(s, ti.f32)
    for axis in ti.static(range(s.n)):
        g[axis] = a[c + s[axis]] - a[c - s[axis]]
    return g
