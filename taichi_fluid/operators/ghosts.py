"""Ghosts of periodic axes, and of sides that are mirrors. Written for a loop over the lower ghost layer of an axis, see ``each_side``."""

from .._ti import ti
from ..kernels import Array, kernel_family


@ti.func
def around_axis(j, n):
    """A position along a periodic axis of ``n`` cells, brought back into the box from wherever it is."""
    return (j - 1) % n + 1


@ti.func
def across_seams(J, n, wrap):
    """A position brought back into the box along axes with ``wrap[axis] = 1``."""
    back = J
    for axis in ti.static(range(J.n)):
        if wrap[axis] == 1:
            back[axis] = around_axis(J[axis], n[axis])
    return back


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
def wrap_or_mirror(c, I, s, a: ti.template(), n, wrap, axis: ti.template()):
    """Wrap an axis with ``wrap[axis] = 1``; give ghosts of others the values beside them. Along all axes in turn, edges and corners too."""
    if wrap[axis] == 1:
        wrap_pair(a, c, s, n, axis)
    else:
        upper = c + (n[axis] + 1) * s[axis]
        a[c] = a[c + s[axis]]
        a[upper] = a[upper - s[axis]]


@ti.func
def fold_if_periodic(c, I, s, a: ti.template(), offset, n, wrap, axis: ti.template()):
    """Along an axis with ``wrap[axis] = 1`` add what ghosts hold to what they are images of, and wrap it."""
    if wrap[axis] == 1:
        lower = offset + c
        upper = lower + (n[axis] + 1) * s[axis]
        a[lower + s[axis]] = a[lower + s[axis]] + a[upper]
        a[upper - s[axis]] = a[upper - s[axis]] + a[lower]
        wrap_pair(a, lower, s, n, axis)


@kernel_family
def ghost_kernels(loops):
    @ti.kernel
    def wrap_ghosts(a: Array, n: loops.IntVector, offset: ti.i32, wrap: loops.IntVector):
        loops.each_side(n, wrap_if_periodic, (a, offset, n, wrap))

    @ti.kernel
    def mirror_ghosts(a: Array, n: loops.IntVector, wrap: loops.IntVector):
        """Those of sides are mirrors, and those of periodic axes wrapped."""
        loops.each_side(n, wrap_or_mirror, (a, n, wrap))

    @ti.kernel
    def fold_ghosts(a: Array, n: loops.IntVector, offset: ti.i32, wrap: loops.IntVector):
        loops.each_side(n, fold_if_periodic, (a, offset, n, wrap))

    return wrap_ghosts, mirror_ghosts, fold_ghosts
