"""Ghosts of periodic axes, and of sides that are mirrors. Written for a loop over the lower ghost layer of an axis, see ``each_side``."""

from .._ti import ti
from ..kernels import Array, kernel_family


@ti.func
def wrap_pair(a: ti.template(), lower, s, n, axis: ti.template()):
    """Give both ghosts of the line that begins at ``lower`` the values of its other end."""
    upper = lower + (n[axis] + 1) * s[axis]
    a[lower] = a[upper - s[axis]]
    a[upper] = a[lower + s[axis]]


@ti.func
def wrap_if_periodic(c, I, s, a: ti.template(), offset, n, wrap, axis: ti.template()):
    """Wrap an axis with ``wrap[axis] = 1``; leave the ghosts of others as they are."""
    if wrap[axis] == 1:
        wrap_pair(a, offset + c, s, n, axis)


@ti.func
def wrap_or_clear(c, I, s, a: ti.template(), n, wrap, axis: ti.template()):
    """Wrap an axis with ``wrap[axis] = 1``; set the ghosts of others to 0."""
    if wrap[axis] == 1:
        wrap_pair(a, c, s, n, axis)
    else:
        a[c] = ti.f32(0.0)
        a[c + (n[axis] + 1) * s[axis]] = ti.f32(0.0)


@ti.func
def mirror_pair(c, I, s, a: ti.template(), n, axis: ti.template()):
    """Give both ghosts of a line the values beside them; along all axes in turn those of edges and corners too."""
    upper = c + (n[axis] + 1) * s[axis]
    a[c] = a[c + s[axis]]
    a[upper] = a[upper - s[axis]]


@kernel_family
def ghost_kernels(loops):
    @ti.kernel
    def wrap_ghosts(a: Array, n: loops.IntVector, offset: ti.i32, wrap: loops.IntVector):
        loops.each_side(n, wrap_if_periodic, (a, offset, n, wrap))

    @ti.kernel
    def mirror_ghosts(a: Array, n: loops.IntVector):
        loops.each_side(n, mirror_pair, (a, n))

    return wrap_ghosts, mirror_ghosts
