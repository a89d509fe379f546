"""Carrying: a quantity is what lies at the departure point, and MacCormack corrects that by half of what is lost.

(Stam 1999; Selle et al. 2008 for the clamped correction.)
"""

from ..._ti import argument, loaded, ti
from ...kernels import (
    ARRAY_BITS,
    Array,
    IntArray,
    Operator,
    Strip,
    address,
    cell_of_strip,
    cells_of,
    fast_max,
    fast_min,
    kernel_family,
    lane,
    put_line,
    strides_of,
)
from ...operators.interpolation import face_velocity_at, wrapped
from ...operators.sampling import LEAST, MOST, VALUE, Component, sample_strip
from .activity import is_anything_near, mark_tile_at, noted_at, spread_mark_at, tiles_of_row
from .backtrace import along_axis
from .visibility import Visibility, blend_visible, is_free, without_mark

_SKEW = 0.3
"""A quarter where steps are short; a fifth more is for what steps of finite length leave."""

_SMOOTHING = 1.0 / 6.0
"""Of the second differences of what is lost: with it a short step has the fourth difference of cubic interpolation."""

_STEEP = 16.0
"""With 2 large swings lose less, but flow along solids is off by more: lift on a cylinder at Re 100 by 2 %."""

_UNKNOWN = 1e-30
"""What is lost where a path ends at nothing that is known: so little that it adds nothing, and not 0."""


@argument
class Paths:
    """Along what a quantity is carried.

    Attributes:
        displacement: To where it comes from, or to where it goes.
        axis: That of a component on its faces; -1 for what lies at cell centres. Displacements along faces are known
            at faces only: anywhere else they are the mean of those around.
        lower: Least place, in the index space of the quantity, that a path may end at.
        upper: The largest.
        period: Of each axis, in cells; 0 for one that is not periodic.
    """

    displacement: object
    axis: object
    lower: object
    upper: object
    period: object


@argument
class Transport:
    """What carrying reads beside the quantity itself; ``spec``, a ``QuantitySpec``, says what of it there is.

    Attributes:
        paths: Along what.
        n: Cells.
        visibility: What solids hide.
        beside_solids: 1 if only what is visible counts there, as for all but velocities.
        mask: The activity mask.
        sparse: 1 if it is that of the quantity.
        spec: A ``QuantitySpec``.
        keeps: 1 of what keeps its amount: what lies beyond its limits is not cut off yet.
    """

    paths: object
    n: object
    visibility: object
    beside_solids: object
    mask: object
    sparse: object
    spec: object
    keeps: object = 0


@ti.func
def _displacement_at(c, paths, n, on_faces: ti.template()):
    """Displacement of what is carried, along its own axis with the mark of a cut."""
    way = ti.cast(n, ti.f32)
    if ti.static(on_faces):
        way = face_velocity_at(paths.displacement, c, paths.axis, n)
    else:
        for d in ti.static(range(n.n)):
            way[d] = paths.displacement[c + d * cells_of(strides_of(n), n)]
    return way


@ti.func
def _end_of_path(k, strip, known: ti.template(), paths, n, spec: ti.template()):
    """Where a path of a strip ends, in the index space of what is carried; ``known`` becomes 1 if something lies there."""
    q, there = ti.cast(strip.I, ti.f32), ti.f32(1.0)
    q[n.n - 1] += ti.cast(k, ti.f32)
    way = _displacement_at(lane(strip.first, k), paths, n, spec.on_faces)
    if ti.static(spec.solids):
        there = ti.select(is_free(along_axis(way, paths.axis)), there, ti.f32(0.0))
        way = without_mark(way)
    end = wrapped(q + way, paths.lower, paths.period, spec.wraps)
    inside = fast_min(fast_max(end, paths.lower), paths.upper)
    if ti.static(spec.flow_through):
        for d in ti.static(range(n.n)):
            there = ti.select(inside[d] == end[d], there, ti.f32(0.0))
    if ti.static(spec.flow_through or spec.solids):
        known[k] = there
    return inside


@ti.func
def _sample_ends(strip, a, known: ti.template(), found: ti.template(), transport):
    """What lies where the paths of a strip end; ``known`` and ``found`` as in ``_end_of_path`` and ``sample_strip``."""
    n = transport.n
    end = Operator(_end_of_path, (strip, known, transport.paths, n, transport.spec))
    sample_strip(strip, a, end, found, n)
    if ti.static(transport.visibility.there):
        if transport.beside_solids == 1:
            strip.each(blend_visible, (a, end, found, n, transport.visibility))


@ti.func
def _put_within(k, out: ti.template(), c, found: ti.template()):
    """Rounding may carry a blend past a corner by one unit in the last place."""
    out[cell_of_strip(c, k)] = fast_min(
        fast_max(found[ti.i32(VALUE), k], found[ti.i32(LEAST), k]), found[ti.i32(MOST), k]
    )


@ti.func
def _put_nothing(k, a: ti.template(), c):
    a[cell_of_strip(c, k)] = ti.f32(0.0)


@ti.func
def _is_anything_near(I, transport):
    anything = ti.i32(1)
    if ti.static(transport.spec.sparse):
        if transport.sparse == 1:
            anything = is_anything_near(I, transport.mask, transport.n)
    return anything


@ti.func
def _carry_strip(c, I, m, s, a, out: ti.template(), transport, width: ti.template()):
    """What lies at the departure points, and nothing else: semi-Lagrangian."""
    strip = Strip(c, I, m, width)
    if _is_anything_near(I, transport) == 1:
        found, known = strip.matrix(3), ti.Vector([ti.f32(1.0)] * width)
        _sample_ends(strip, a, known, found, loaded(transport))
        strip.each(_put_within, (out, a.offset + c, found))
    else:
        strip.each(_put_nothing, (out, a.offset + c))


@argument
class Prediction:
    """What MacCormack predicts, and the limits of what that is made of."""

    value: object
    least: object
    most: object


@ti.func
def _stay_where_closed(k, c, a, found: ti.template(), transport):
    """What stands on a closed face, where the fluid slips, is that of the fluid beside it: it is not carried by itself."""
    here, n = cell_of_strip(c, k), transport.n
    open = transport.visibility.open[here + transport.paths.axis * cells_of(strides_of(n), n)]
    found[ti.i32(VALUE), k] = ti.select(open > 0, found[ti.i32(VALUE), k], a.array[a.offset + here])


@ti.func
def _predict_strip(c, I, m, s, a, prediction, transport, width: ti.template()):
    strip, anything = Strip(c, I, m, width), _is_anything_near(I, transport)
    if ti.static(transport.spec.sparse):
        if transport.sparse == 1:
            transport.mask[noted_at(I, transport.mask, transport.n)] = anything
    if anything == 1:
        found, known = strip.matrix(3), ti.Vector([ti.f32(1.0)] * width)
        _sample_ends(strip, a, known, found, loaded(transport))
        if ti.static(transport.spec.slips):
            if transport.paths.axis >= 0:
                strip.each(_stay_where_closed, (c, a, found, transport))
        strip.each(put_line, (prediction.value, c, found, VALUE))
        strip.each(put_line, (prediction.least, c, found, LEAST))
        strip.each(put_line, (prediction.most, c, found, MOST))
    else:
        for each in ti.static((prediction.value, prediction.least, prediction.most)):
            strip.each(_put_nothing, (each, c))


@ti.func
def _plain(way, marks: ti.template()):
    """A displacement without the mark that one may have where there are solids."""
    if ti.static(marks):
        way = without_mark(way)
    return way


@ti.func
def _made_skew(value, c, q: ti.template(), paths, n, marks: ti.template()):
    """The corrected ``value`` with what makes transport skew-symmetric where steps are short, between ``q`` around it.

    A prediction ``q`` and its correction are central differences then, each times the velocity at its own place, which make
    energy where a flow is compressed along an axis in which ``q`` varies: by h²/4 du_j/dx_j (dq/dx_j)² for each axis j.
    With each difference times the velocity that stands between its two values none is made (Harlow, Welch 1965), and
    the two forms differ by a quarter of the differences of the displacements times those of ``q``.
    """
    s = strides_of(n)
    cells = cells_of(s, n)
    along = s[0] * 0
    for d in ti.static(range(n.n)):
        along = ti.select(d == paths.axis, s[d], along)
    w = ti.static(paths.displacement)
    total, least, most = ti.f32(0.0), value, value
    for d in ti.static(range(n.n)):
        # Along its own axis what stands between is a mean itself, else one displacement on either side.
        own = d == paths.axis
        here, above = address(d * cells, ARRAY_BITS), address(d * cells + s[d], ARRAY_BITS)
        on = ti.select(own, s[d], along)
        upper = _plain(w[c + above], marks) - _plain(w[c + here], marks)
        lower = _plain(w[c + above - on], marks) - _plain(w[c + here - on], marks)
        mean = ti.f32(0.5) * (upper + lower)
        upper, lower = ti.select(own, upper, mean), ti.select(own, lower, mean)
        after, before = q[c + s[d]], q[c - s[d]]
        total += upper * (after - q[c]) - lower * (q[c] - before)
        # What lies where nothing is stretched has no part in it.
        after, before = ti.select(upper != 0, after, value), ti.select(lower != 0, before, value)
        least, most = fast_min(least, fast_min(after, before)), fast_max(most, fast_max(after, before))
    return fast_min(fast_max(value - ti.f32(_SKEW) * total, least), most)


@ti.func
def _stretched_at(c, q: ti.template(), paths, n):
    """As ``_made_skew`` for what lies at centres, along paths of faces: what the differences of these make of those of ``q``.

    What stands between two values is then a face, and on both sides of a value lies half the difference of its faces.
    """
    s, total = strides_of(n), ti.f32(0.0)
    w = ti.static(paths.displacement)
    for d in ti.static(range(n.n)):
        here = c + address(d * cells_of(s, n), ARRAY_BITS)
        total += (w[here + s[d]] - w[here]) * (q[c + s[d]] - q[c] - (q[c] - q[c - s[d]]))
    return total


@ti.func
def _correct(k, c, a, prediction, found: ti.template(), known: ti.template(), transport):
    """Add half of what is lost on the way back and forth, limited to the values it came from unless that comes later."""
    here, axis = cell_of_strip(c, k), transport.paths.axis
    lost = a.array[a.offset + here] - found[ti.i32(VALUE), k]
    if ti.static(transport.spec.on_faces and not transport.spec.solids):
        if axis < 0:
            lost -= ti.f32(0.5) * _stretched_at(here, prediction.value, transport.paths, transport.n)
    if ti.static(transport.spec.flow_through or transport.spec.solids):
        nothing = ti.select(axis >= 0, ti.f32(_UNKNOWN), ti.f32(0.0))
        lost = ti.select(known[k] > 0, lost, nothing)
    corrected = prediction.value[here] + ti.f32(0.5) * lost
    limited = fast_min(fast_max(corrected, prediction.least[here]), prediction.most[here])
    corrected = ti.select(transport.keeps == 1, corrected, limited)
    found[ti.i32(VALUE), k] = ti.select(axis >= 0, lost, corrected)


@ti.func
def _bend_across(here, there):
    """What smoothing moves across a face: where what is lost changes sign, or where beyond it nothing is known.

    No more than ``_STEEP`` times the lesser of both sides, so that nothing jumps where rounding turns a sign.
    """
    change, most = there - here, ti.f32(_STEEP) * fast_min(abs(here), abs(there))
    smoothed = ti.select(here * there < 0, fast_min(fast_max(change, -most), most), ti.f32(0.0))
    unknown = here == ti.f32(_UNKNOWN) or there == ti.f32(_UNKNOWN)
    return ti.select(unknown, change, smoothed)


@ti.func
def _limited_at(c, I, s, lost: ti.template(), prediction, paths, n, spec: ti.template()):
    """A component of a velocity with half of what is ``lost`` added, smoothed and limited.

    What is lost is a second difference of what was carried, so smoothing it adds a fourth, which takes off what varies from
    cell to cell as cubic interpolation does: across faces at which it changes sign, so that longer waves keep all. Limits
    are the values that the prediction came from and, where what is lost has one sign here and in all neighbours, as at a
    smooth extremum, so much beyond them as the least of it asks for.
    """
    q = ti.static(prediction.value)
    here = lost[c]
    bend, least, alike, lower, upper = ti.f32(0.0), abs(here), ti.i32(1), q[c], q[c]
    for d in ti.static(range(n.n)):
        after, before = lost[c + s[d]], lost[c - s[d]]
        bend += _bend_across(here, after) + _bend_across(here, before)
        least = fast_min(least, fast_min(abs(after), abs(before)))
        alike = ti.select(fast_min(after * here, before * here) > 0, alike, ti.i32(0))
        lower = fast_min(lower, fast_min(q[c + s[d]], q[c - s[d]]))
        upper = fast_max(upper, fast_max(q[c + s[d]], q[c - s[d]]))
    room = ti.select(alike == 1, ti.f32(0.5) * least, ti.f32(0.0))
    value = q[c] + ti.f32(0.5) * here
    value = fast_min(fast_max(value, prediction.least[c] - room), prediction.most[c] + room)
    # At most what varies from cell to cell asks for: where nothing moves nothing is smoothed. Between what is on either side.
    most = ti.f32(12.0 * _SMOOTHING) * abs(here)
    smoothed = value + ti.f32(0.5) * fast_min(fast_max(ti.f32(_SMOOTHING) * bend, -most), most)
    value = fast_min(fast_max(smoothed, fast_min(value, lower)), fast_max(value, upper))
    value = _made_skew(value, c, prediction.value, paths, n, spec.solids)
    if ti.static(spec.flow_through or spec.solids):
        value = ti.select(here == ti.f32(_UNKNOWN), q[c], value)
    return value


@ti.func
def _correct_strip(c, I, m, s, a, prediction, out: ti.template(), transport, width: ti.template()):
    strip, anything = Strip(c, I, m, width), ti.i32(1)
    if ti.static(transport.spec.sparse):
        if transport.sparse == 1:
            anything = transport.mask[noted_at(I, transport.mask, transport.n)]
    if anything == 1:
        found, known = strip.matrix(1), ti.Vector([ti.f32(1.0)] * width)
        _sample_ends(strip, Component(prediction.value, 0), known, found, loaded(transport))
        strip.each(_correct, (c, a, prediction, found, known, transport))
        strip.each(put_line, (out.array, out.offset + c, found, VALUE))
    else:
        strip.each(_put_nothing, (out.array, out.offset + c))


@kernel_family
def advection_kernels(loops, spec):
    """``where`` of each: displacement, axis, n, offset, lower, upper, period, open, distance, inv_dx, beside, mask, sparse."""
    IntVector, FloatVector, each_strip, width = loops.IntVector, loops.FloatVector, loops.each_strip, loops.width
    write_strips = loops.write_strips
    each_cell_in, dim = loops.each_cell_in, loops.dim

    @ti.kernel
    def mark_active(a: Array, offset: ti.i32, mask: IntArray, n: IntVector):
        ends = n + 2
        ends[dim - 1] = tiles_of_row(n[dim - 1])
        each_cell_in(n * 0, ends, n, mark_tile_at, (a, offset, mask, n))
        if ti.static(dim == 3):
            each_cell_in(n * 0, ends, n, spread_mark_at, (mask, n))

    @ti.kernel
    def semi_lagrangian(
        a: Array, out: Array, paths: Array, axis: ti.i32, n: IntVector, offset: ti.i32, lower: FloatVector,
        upper: FloatVector, period: FloatVector, open: Array, distance: Array, inv_dx: ti.f32, beside_solids: ti.i32,
        mask: IntArray, sparse: ti.i32,
    ):  # fmt: skip
        visibility = Visibility(open, distance, inv_dx, spec.solids)
        along = Paths(paths, axis, lower, upper, period)
        transport = Transport(along, n, visibility, beside_solids, mask, sparse, spec)
        each_strip(n, width, _carry_strip, (Component(a, offset), out, transport, width))

    @ti.kernel
    def predict(
        a: Array, predicted: Array, least: Array, most: Array, paths: Array, axis: ti.i32, n: IntVector,
        offset: ti.i32, lower: FloatVector, upper: FloatVector, period: FloatVector, open: Array, distance: Array,
        inv_dx: ti.f32, beside_solids: ti.i32, mask: IntArray, sparse: ti.i32,
    ):  # fmt: skip
        visibility = Visibility(open, distance, inv_dx, spec.solids)
        along = Paths(paths, axis, lower, upper, period)
        transport = Transport(along, n, visibility, beside_solids, mask, sparse, spec)
        prediction = Prediction(predicted, least, most)
        each_strip(n, width, _predict_strip, (Component(a, offset), prediction, transport, width))

    @ti.kernel
    def correct(
        a: Array, predicted: Array, least: Array, most: Array, out: Array, paths: Array, axis: ti.i32, n: IntVector,
        offset: ti.i32, lower: FloatVector, upper: FloatVector, period: FloatVector, open: Array, distance: Array,
        inv_dx: ti.f32, beside_solids: ti.i32, mask: IntArray, sparse: ti.i32, begin: ti.i32, keeps: ti.i32,
    ):  # fmt: skip
        """What is carried, at ``begin`` in ``out``, which may be ``a``; of a component of a velocity what is lost."""
        visibility = Visibility(open, distance, inv_dx, spec.solids)
        along = Paths(paths, axis, lower, upper, period)
        transport = Transport(along, n, visibility, beside_solids, mask, sparse, spec, keeps)
        prediction = Prediction(predicted, least, most)
        each_strip(
            n, width, _correct_strip, (Component(a, offset), prediction, Component(out, begin), transport, width)
        )

    @ti.kernel
    def limit(
        lost: Array,
        predicted: Array,
        least: Array,
        most: Array,
        out: Array,
        paths: Array,
        axis: ti.i32,
        n: IntVector,
        component: ti.i32,
    ):
        """What ``correct`` has left of a component of a velocity, as component ``component`` of ``out``."""
        prediction, along = Prediction(predicted, least, most), Paths(paths, axis, 0, 0, 0)
        write_strips(n, ((out, component),), _limited_at, (lost, prediction, along, n, spec))

    return {
        "mark_active": mark_active,
        "semi_lagrangian": semi_lagrangian,
        "predict": predict,
        "correct": correct,
        "limit": limit,
    }
