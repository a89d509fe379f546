"""What a limiter cuts off goes to the cells beside, as far as they have room: so fronts do not lag.

MacCormack's correction overshoots behind a front that the flow takes away, and falls below what is left behind one that
follows. Cut off there and put back nowhere, both lag by a hundredth of their way, the top of a hot blob loses what its wake is
filled with, and no sum over the box tells. So a cell that is cut hands what it loses to its neighbours across faces, to each
by the room that it has within its own limits; and what none of them can take is left to ``conservation``. (Of kin are
flux-corrected transport, Boris and Book 1973, and the borrowing of mass in atmospheric codes, Bradley et al. 2019.)
"""

from ..._ti import argument, ti
from ...kernels import ARRAY_BITS, address, cell_of_strip, cells_of, fast_max, fast_min, lane, position_of

TINY = 1e-37
"""Room that is none: of less a reciprocal would be infinite."""


@argument
class Carried:
    """A scalar before and after it was carried.

    Attributes:
        before: It, a ``Component``.
        after: It, a ``Component``; beyond its limits where MacCormack's correction has overshot.
        least: Of the values that it was made of in each cell.
        most: The largest of those.
        shares: The part of their room that the neighbours of a cell fill with what is cut off there, -1 to 1.
    """

    before: object
    after: object
    least: object
    most: object
    shares: object


@ti.func
def fluid_at(c, account):
    """The part of a cell that is fluid."""
    part = ti.f32(1.0)
    if ti.static(account.spec.solids):
        part = account.fluid[c]
    return part


@ti.func
def _within_limits(c, carried):
    """A value as it was carried, and the same within its limits."""
    q = carried.after.array[carried.after.offset + c]
    return q, fast_min(fast_max(q, carried.least[c]), carried.most[c])


@ti.func
def _way_beside(c, J, s, axis: ti.template(), side: ti.template(), account):
    """How far on the next cell lies along an axis, across a seam too, and 1 if anything can be handed to it, or else 0."""
    at_end = J[axis] == (account.n[axis] if ti.static(side) else 1)
    way, passes = ti.static(2 * side - 1) * s[axis], ti.select(at_end, ti.f32(0.0), ti.f32(1.0))
    if ti.static(account.spec.wraps):
        seam = at_end and account.period[axis] > 0
        way, passes = ti.select(seam, way * (1 - account.n[axis]), way), ti.select(seam, ti.f32(1.0), passes)
    if ti.static(account.spec.solids):
        face = c + address(axis * cells_of(s, account.n) + ti.static(side) * s[axis], ARRAY_BITS)
        passes = ti.select(account.open[face] > 0, passes, ti.f32(0.0))
    return way, passes


@ti.func
def _share_at(c, J, s, carried, account):
    """The part of their room that the neighbours of a cell fill with what is cut off there; below 0 if they give."""
    value, limited = _within_limits(c, carried)
    cut, room = value - limited, ti.f32(0.0)
    for axis in ti.static(range(J.n)):
        for side in ti.static(range(2)):
            way, passes = _way_beside(c, J, s, axis, side, account)
            _, there = _within_limits(c + way, carried)
            free = ti.select(cut > 0, carried.most[c + way] - there, there - carried.least[c + way])
            room += passes * fluid_at(c + way, account) * free
    part = fluid_at(c, account) * cut / fast_max(room, ti.f32(TINY))
    return ti.select(room > 0, fast_min(fast_max(part, ti.f32(-1.0)), ti.f32(1.0)), ti.f32(0.0))


@ti.func
def put_share(k, c, I, s, carried, account):
    """Of a cell of a strip find the share and write it."""
    carried.shares[cell_of_strip(c, k)] = _share_at(lane(c, k), position_of(I, k), s, carried, account)


@ti.func
def shared_at(c, J, s, carried, account):
    """A value within its limits, with what its neighbours hand over to it."""
    _, value = _within_limits(c, carried)
    given, taken = ti.f32(0.0), ti.f32(0.0)
    for axis in ti.static(range(J.n)):
        for side in ti.static(range(2)):
            way, passes = _way_beside(c, J, s, axis, side, account)
            share = passes * carried.shares[c + way]
            given, taken = given + fast_max(share, ti.f32(0.0)), taken - fast_min(share, ti.f32(0.0))
    if ti.static(account.spec.solids):
        inside = account.fluid[c] > 0
        given, taken = ti.select(inside, given, ti.f32(0.0)), ti.select(inside, taken, ti.f32(0.0))
    above, below = carried.most[c] - value, value - carried.least[c]
    value += above * fast_min(given, ti.f32(1.0)) - below * fast_min(taken, ti.f32(1.0))
    # Rounding may carry it past a limit by one unit in the last place.
    return fast_min(fast_max(value, carried.least[c]), carried.most[c])
