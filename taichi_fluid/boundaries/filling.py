"""Kernels that set the ghosts of a box and the faces on its sides, each side the same all over."""

from .._ti import argument, ti
from ..kernels import Array, cells_of, kernel_family
from ..operators.ghosts import wrap_pair

SCALAR = -1
"""In place of a component: a quantity at cell centres."""

PRESSURE = -2
"""In place of a component: the pressure at cell centres, which is 0 beyond an open side."""

# What becomes of the faces on a side, as the kernel knows it: given, following the inside, left alone, or periodic.
GIVEN, FOLLOWS, LEFT, WRAPS = range(4)


@argument
class Ghosts:
    """What the ghosts of one quantity are, by side: ``factor · inside + value``, or as ``mode`` says."""

    values: object
    offset: object
    component: object
    factor: object
    value: object
    mode: object


@ti.func
def _fill_ghost_pair(c, I, s, ghosts, n, axis: ti.template()):
    """Of a component along its own axis also the faces on the sides are set."""
    a = ti.static(ghosts.values)
    lower = ghosts.offset + c
    upper = lower + (n[axis] + 1) * s[axis]
    if ghosts.mode[2 * axis] == WRAPS:
        wrap_pair(a, lower, s, n, axis)
    elif ghosts.component == axis:
        first = lower + s[axis]
        if ghosts.mode[2 * axis] == GIVEN:
            a[first] = ghosts.value[2 * axis]
        if ghosts.mode[2 * axis + 1] == GIVEN:
            a[upper] = ghosts.value[2 * axis + 1]
        if ghosts.mode[2 * axis] == FOLLOWS:
            a[first] = a[first + s[axis]]
        if ghosts.mode[2 * axis + 1] == FOLLOWS:
            a[upper] = a[upper - s[axis]]
        # Beyond its side a face mirrors what is inside.
        a[lower] = ti.f32(2.0) * a[first] - a[first + s[axis]]
    else:
        a[lower] = ghosts.factor[2 * axis] * a[lower + s[axis]] + ghosts.value[2 * axis]
        a[upper] = ghosts.factor[2 * axis + 1] * a[upper - s[axis]] + ghosts.value[2 * axis + 1]


@argument
class Corners:
    """Edges and corners where ``meeting`` walls meet, of which ``axis`` is the first axis; the others are further ones."""

    values: object
    offset: object
    wrap: object
    meeting: int
    axis: int


@ti.func
def _write_mean_of_ghosts(c, I, s, corners, n):
    """The mean of the neighbours one step towards each of the walls that meet."""
    a, axis = ti.static(corners.values, corners.axis)
    for upper in ti.static(range(2)):
        J, cell = I, corners.offset + c
        if ti.static(upper):
            J[axis] = n[axis] + 1
            cell += (n[axis] + 1) * s[axis]
        count, first = 0, axis
        beside = cell + (-s[axis] if ti.static(upper) else s[axis])
        value, apart = a[beside], ti.f32(0.0)
        for k in ti.static(range(n.n)):
            if corners.wrap[k] == 0 and (J[k] == 0 or J[k] == n[k] + 1):
                count += 1
                first = ti.min(first, k)
                apart += a[cell + (s[k] if J[k] == 0 else -s[k])] - value
        if count == corners.meeting and first == axis and corners.wrap[axis] == 0:
            # A mean of differences: of equal values it is that value, bit for bit.
            a[cell] = value + apart * ti.f32(ti.static(1.0 / corners.meeting))


@ti.func
def _sucked_in(inwards, step):
    """What the pressure of what enters, half of the square of its speed below that outside, leaves of it in ``step``, dt / dx."""
    return ti.f32(1.0) - ti.min(ti.f32(0.5) * step * ti.max(inwards, ti.f32(0.0)), ti.f32(1.0))


@argument
class OpenSides:
    """Sides that are ``open``, by their number, and how the velocity there ``was`` if it ``goes_on`` so; ``step`` is dt / dx."""

    was: object
    goes_on: object
    open: object
    step: object


@ti.func
def _meet_outside_at(c, I, s, u: Array, sides, n, collocated: ti.template(), axis: ti.template()):
    """Of a velocity at centres the first and the last one, on faces those on the sides."""
    first = axis * cells_of(s, n) + c + s[axis]
    for side in ti.static(range(2)):
        at, inside = first, first + s[axis]
        if ti.static(side):
            at = first + (n[axis] - ti.static(int(collocated))) * s[axis]
            inside = at - s[axis]
        inwards = ti.static(1.0 - 2.0 * side)
        if sides.open[2 * axis + side] == 1:
            if sides.goes_on == 1 and inwards * sides.was[at] < 0:
                u[at] = u[inside] + sides.was[at] - sides.was[inside]
            u[at] = u[at] * _sucked_in(inwards * u[at], sides.step)


@kernel_family
def boundary_kernels(loops, collocated):
    IntVector, each_on_plane, dim = loops.IntVector, loops.each_on_plane, loops.dim
    Numbers, Modes = ti.types.vector(2 * dim, ti.f32), ti.types.vector(2 * dim, ti.i32)

    @ti.kernel
    def fill_ghosts(
        a: Array, n: IntVector, offset: ti.i32, component: ti.i32, factor: Numbers, value: Numbers, mode: Modes
    ):
        # Axis after axis over whole planes, ghosts of earlier axes included, so that edges and corners agree.
        loops.each_side(n, _fill_ghost_pair, (Ghosts(a, offset, component, factor, value, mode), n))

    @ti.kernel
    def fill_corners(a: Array, n: IntVector, offset: ti.i32, wrap: IntVector):
        """Edges from sides, then (in 3D) corners from edges."""
        for meeting in ti.static(range(2, dim + 1)):
            for axis in ti.static(range(dim + 1 - meeting)):
                each_on_plane(n, axis, _write_mean_of_ghosts, (Corners(a, offset, wrap, meeting, axis), n))

    @ti.kernel
    def meet_outside(velocity: Array, was: Array, goes_on: ti.i32, n: IntVector, step: ti.f32, open: Modes):
        loops.each_side(n, _meet_outside_at, (velocity, OpenSides(was, goes_on, open, step), n, collocated))

    return {
        "fill_ghosts": fill_ghosts,
        "fill_corners": fill_corners,
        "meet_outside": meet_outside,
        "Numbers": Numbers,
        "Modes": Modes,
    }
