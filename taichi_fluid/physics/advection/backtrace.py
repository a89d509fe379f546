"""Displacements: for each place the way to where its value comes from, and the way on to where it goes, in cells."""

from ..._ti import argument, loaded, subscript, ti, traced
from ...kernels import (
    Array,
    IntArray,
    Operator,
    Strip,
    cell_of_strip,
    cells_of,
    column,
    kernel_family,
    lane,
    set_column,
    strides_of,
)
from ...operators.ghosts import wrap_pair
from ...operators.interpolation import face_velocity_at, inside_box, wrapped
from ...operators.sampling import Component, sample_strip, sample_strip_velocity
from . import activity
from .spec import Trace
from .visibility import Visibility, marked, open_part, within_reach


@argument
class Backtrace:
    """What a trace reads and writes; ``spec`` says what of it there is.

    Attributes:
        velocity: What is followed.
        visibility: What solids hide.
        departure: Displacements back.
        arrival: Displacements forward.
        n: Cells.
        period: Of each axis, in cells; 0 for one that is not periodic.
        step: Seconds over dx.
        mask: The activity mask, whose last place notes that a displacement is long.
        ways: 2, or 1 if the displacements forward are not asked for.
        spec: A ``PathSpec``.
    """

    velocity: object
    visibility: object
    departure: object
    arrival: object
    n: object
    period: object
    step: object
    mask: object
    ways: object
    spec: object


@argument
class Origin:
    """Where the paths of a strip begin, and the velocity there, a column for each; from faces along ``axis``."""

    points: object
    velocity: object
    axis: object


@traced
def along_axis(v, axis):
    """The component of ``v`` along an axis that is known only as the program runs."""
    own = subscript(v, 0)
    for d in range(1, v.n):
        own = ti.select(d == axis, subscript(v, d), own)
    return own


@ti.func
def _begin_path(k, strip, origin, trace):
    """Where the values with these integer positions lie, and the velocity there."""
    q, c, n = ti.cast(strip.I, ti.f32), lane(strip.first, k), trace.n
    q[n.n - 1] += ti.cast(k, ti.f32)
    if ti.static(trace.spec.faces):
        for d in ti.static(range(n.n)):
            q[d] -= ti.select(d == origin.axis, ti.f32(0.5), ti.f32(0.0))
        set_column(origin.velocity, k, face_velocity_at(trace.velocity, c, origin.axis, n))
    else:
        set_column(origin.velocity, k, trace.spec.on.at_centre(trace.velocity, c, n))
    set_column(origin.points, k, q)


@ti.func
def _begin_paths(strip, axis, trace):
    origin = Origin(strip.matrix(trace.n.n), strip.matrix(trace.n.n), axis)
    strip.each(_begin_path, (strip, origin, trace))
    return origin


@ti.func
def _point_on_path(k, origin, velocity: ti.template(), step, trace, own: ti.template()):
    """Where a path has come to, in the index space of the centres, or in that of the faces it begins at as ``own``."""
    q, n = column(origin.points, k) + step * column(velocity, k), trace.n
    p = inside_box(wrapped(q, ti.Vector([ti.f32(0.5)] * n.n), trace.period, trace.spec.wraps), n)
    if ti.static(own):
        for d in ti.static(range(n.n)):
            p[d] += ti.select(d == origin.axis, ti.f32(0.5), ti.f32(0.0))
    return p


@ti.func
def _sample_on_path(strip, origin, velocity: ti.template(), step, out: ti.template(), trace, own: ti.template()):
    """Velocity where the paths of a strip have come to after ``step`` times a velocity, or only its ``own`` component."""
    n, place = trace.n, Operator(_point_on_path, (origin, velocity, step, trace, own))
    if ti.static(own):
        sample_strip(strip, Component(trace.velocity, origin.axis * cells_of(strides_of(n), n)), place, out, n)
    else:
        sample_strip_velocity(strip, trace.velocity, place, out, n, ti.static(not trace.spec.on.collocated))


@ti.func
def _take_first_stage(k, origin, mean: ti.template(), own: ti.template()):
    v = column(origin.velocity, k)
    if ti.static(own):
        mean[ti.i32(0), k] = along_axis(v, origin.axis)
    else:
        set_column(mean, k, v)


@ti.func
def _combine_stages(k, origin, second: ti.template(), mean: ti.template(), own: ti.template()):
    """The mean of three stages, the third of which is in ``mean``."""
    weighted = ti.f32(2.0 / 9.0) * column(origin.velocity, k) + ti.f32(3.0 / 9.0) * column(second, k)
    if ti.static(own):
        mean[ti.i32(0), k] = along_axis(weighted, origin.axis) + ti.f32(4.0 / 9.0) * mean[ti.i32(0), k]
    else:
        set_column(mean, k, weighted + ti.f32(4.0 / 9.0) * column(mean, k))


@ti.func
def _find_mean_velocity(strip, origin, step, mean: ti.template(), trace, own: ti.template()):
    """Mean velocity of the paths of a strip, for ``step`` = ±dt / dx.

    ``own`` asks for nothing but its component along the axis of the faces, in the first line of ``mean``.
    """
    if ti.static(trace.spec.trace == Trace.EULER):
        strip.each(_take_first_stage, (origin, mean, own))
    elif ti.static(trace.spec.trace == Trace.RK2):
        _sample_on_path(strip, origin, origin.velocity, ti.f32(0.5) * step, mean, trace, own)
    else:
        second = strip.matrix(trace.n.n)
        _sample_on_path(strip, origin, origin.velocity, ti.f32(0.5) * step, second, trace, False)
        _sample_on_path(strip, origin, second, ti.f32(0.75) * step, mean, trace, own)
        strip.each(_combine_stages, (origin, second, mean, own))


@ti.func
def _end_path(k, strip, origin, mean: ti.template(), step, trace, free: ti.template(), forward):
    """Displacement to where a path ends, at the latest at a solid, in ``mean``; ``free`` is how much of it leads there.

    What goes back as far as a solid, or forward as far as one, is not traced there and back: it is marked. From a closed face it
    goes, where the fluid slips, as far as the velocity that stands there for the fluid beside it, of whose paths it is a part.
    """
    q = column(origin.points, k)
    way = step * column(mean, k)
    if ti.static(trace.spec.solids):
        way = within_reach(way)
        part, closed = open_part(q, q + way, trace.visibility, trace.n, trace.period), ti.i32(0)
        if ti.static(trace.spec.faces and trace.spec.slips):
            face = lane(strip.first, k) + origin.axis * cells_of(strides_of(trace.n), trace.n)
            closed = ti.cast(trace.visibility.open[face] == 0, ti.i32)
        way *= ti.select(closed == 1, ti.f32(1.0), part)
        if forward == 1:
            if ti.min(free[k], part) < 1:
                way = marked(way)
        free[k] = part
    set_column(mean, k, way)


@ti.func
def _find_long(k, step, ways: ti.template(), found: ti.template()):
    for line in ti.static(range(ways.n)):
        # Rounding must not take a path that is just near to a cell further away.
        found |= ti.cast(ti.abs(step * ways[ti.i32(line), k]) > ti.f32(activity.NEAR - 0.01), ti.i32)


@ti.func
def _note_long(strip, step, ways: ti.template(), trace):
    """Say in the last place of the mask that some displacement of a strip, ``step`` times what is given, is not near."""
    if ti.static(trace.spec.sparse):
        found = 0
        strip.each(_find_long, (step, ways, found))
        if found != 0:
            trace.mask[trace.mask.shape[0] - 1] = ti.i32(1)


@ti.func
def _put_own(k, a: ti.template(), c, axis, step, columns: ti.template(), n):
    """Write the displacement along ``axis``: what ``columns`` says of it, or all that they say, times ``step``."""
    own = columns[ti.i32(0), k] if ti.static(columns.n == 1) else along_axis(column(columns, k), axis)
    a[cell_of_strip(c, k) + axis * cells_of(strides_of(n), n)] = step * own


@ti.func
def _put_displacement(k, a: ti.template(), c, columns: ti.template(), n):
    cells = cells_of(strides_of(n), n)
    for d in ti.static(range(n.n)):
        a[cell_of_strip(c, k) + d * cells] = columns[ti.i32(d), k]


@ti.func
def _put(strip, a: ti.template(), axis, step, columns: ti.template(), trace):
    if ti.static(trace.spec.faces):
        strip.each(_put_own, (a, strip.first, axis, step, columns, trace.n))
    else:
        strip.each(_put_displacement, (a, strip.first, columns, trace.n))


@ti.func
def _trace_strip(strip, axis, trace):
    """The displacements of a strip: of paths from the faces along ``axis`` those along it, which is all that is read there."""
    own = ti.static(trace.spec.faces and not trace.spec.solids)
    origin = _begin_paths(strip, axis, trace)
    mean, free = strip.matrix(ti.static(1 if own else trace.n.n)), ti.Vector([ti.f32(1.0)] * strip.width)
    # One code for both ways: two would compile for more than twice as long.
    for way in range(trace.ways):
        step = ti.select(way == 0, -trace.step, trace.step)
        scale = step if ti.static(own) else ti.f32(1.0)
        _find_mean_velocity(strip, origin, step, mean, trace, own)
        if ti.static(not own):
            strip.each(_end_path, (strip, origin, mean, step, trace, free, way))
        if way == 0:
            _put(strip, trace.departure, axis, scale, mean, trace)
            _note_long(strip, scale, mean, trace)
        else:
            _put(strip, trace.arrival, axis, scale, mean, trace)


@ti.func
def _write_displacements(c, I, m, s, trace, width: ti.template()):
    strip, here = Strip(c, I, m, width), loaded(trace)
    if ti.static(trace.spec.faces):
        for axis in range(trace.n.n):
            _trace_strip(strip, axis, here)
    else:
        _trace_strip(strip, 0, here)


@ti.func
def _write_displacement_at(c, I, s, axis, trace):
    _trace_strip(Strip(c, I, 1, 1), axis, loaded(trace))


@ti.func
def _end_paths_at(c, I, s, paths: ti.template(), n, period, closed, axis: ti.template()):
    """What carrying reads beside those displacements along faces that were traced, for the means and differences of them."""
    for component in range(n.n):
        lower = component * cells_of(s, n) + c
        if period[axis] > 0:
            wrap_pair(paths, lower, s, n, axis)
        elif axis != component:
            paths[lower] = paths[lower + s[axis]]
        else:
            if closed[axis] == 1:
                paths[lower + (n[axis] + 1) * s[axis]] = ti.f32(0.0)
            paths[lower] = paths[lower + s[axis]]


@kernel_family
def trace_kernels(loops, spec):
    IntVector, FloatVector, each_strip, width = loops.IntVector, loops.FloatVector, loops.each_strip, loops.width
    each_cell_in, each_on_plane, dim = loops.each_cell_in, loops.each_on_plane, loops.dim

    @ti.kernel
    def trace(
        velocity: Array, open: Array, distance: Array, inv_dx: ti.f32, departure: Array, arrival: Array, n: IntVector,
        period: FloatVector, step: ti.f32, mask: IntArray, ways: ti.i32,
    ):  # fmt: skip
        if ti.static(spec.sparse):
            ti.loop_config(serialize=True)
            for _ in range(1):
                mask[mask.shape[0] - 1] = ti.i32(0)
        visibility = Visibility(open, distance, inv_dx, spec.solids)
        paths = Backtrace(velocity, visibility, departure, arrival, n, period, step, mask, ways, spec)
        each_strip(n, width, _write_displacements, (paths, width))

    @ti.kernel
    def trace_box(
        velocity: Array, open: Array, distance: Array, inv_dx: ti.f32, departure: Array, arrival: Array, n: IntVector,
        period: FloatVector, step: ti.f32, mask: IntArray, ways: ti.i32, axis: ti.i32, lower: IntVector,
        upper: IntVector,
    ):  # fmt: skip
        """From the faces along one axis between two integer positions."""
        visibility = Visibility(open, distance, inv_dx, spec.solids)
        paths = Backtrace(velocity, visibility, departure, arrival, n, period, step, mask, ways, spec)
        each_cell_in(lower, upper, n, _write_displacement_at, (axis, paths))

    @ti.kernel
    def end_paths(paths: Array, n: IntVector, period: FloatVector, closed: IntVector):
        """Ghosts of displacements along faces, and the faces on upper sides that nothing passes."""
        for axis in ti.static(range(dim)):
            each_on_plane(n, axis, _end_paths_at, (paths, n, period, closed, axis))

    return {"trace": trace, "trace_box": trace_box, "end_paths": end_paths}
