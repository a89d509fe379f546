"""Keeping amounts: what carrying has made of a scalar or lost is taken out or put back, within the limits of each cell.

A scalar that is looked up where it comes from has the values that were there, but not the amount: that is made and lost
by interpolation, and by the limiter, which cuts off what falls below a front but seldom as much of what rises above it.
After each carry what the limiter cuts off goes to the cells beside (``sharing``), the amount before and after is summed, and
each value q is moved by

    theta · min(most - q, q - least),    theta = defect / sum of those minima, from -1 to 1,

between the least and the largest of the values that it was made of. So a constant stays a constant, nothing leaves its
limits, nothing appears where there was nothing, what the limiter has cut is left alone, and what moves most is the flank
of a front, where the error was made. (Priestley 1993 and Bermejo and Conde 2002, whose weights are the room on one side,
and the difference of a high from a low order.)

Where something flows through a side a cell counts for the less the nearer it lies to that, and for nothing beside it, so
that only what is made and lost inside is put right. What the flow carries to where it counts for more or for less is then
no defect: over a step that is, at each face, the velocity times the difference of the weights times the mean of the values
beside it, before and after, which for a constant is exactly nothing, as its velocity has no divergence. (The amount by
itself would need what leaves through the side, which the outermost cells, carried by first order, do not tell: tried, it
moved what was inside by all of its room.)

Solids that move cover fluid, which has moved on by then, and uncover room, into which other has. What a cell has by either
counts as carried away and brought: of each as much as of the other, as a solid takes no more room than it leaves.

Of what solids hold, cells that they hold count for nothing, and those beside as diffusion counts them (``held_cells``): what is
diffused out of a solid is then all that comes out of it.
"""

from typing import NamedTuple

from ..._ti import argument, ti
from ...boundaries.solids import Solids
from ...boundaries.walls import Walls
from ...grid import Grid
from ...kernels import (
    Array,
    IntArray,
    Reduction,
    Strip,
    add,
    cell_of_strip,
    cells_of,
    fast_max,
    fast_min,
    kernel_family,
    lane,
    numbers_of,
    position_of,
    put_line,
    room_for_partials,
)
from ...operators.sampling import Component
from ..held_cells import HeldCells
from .activity import noted_at
from .sharing import TINY, Carried, fluid_at, put_share, shared_at

MARGIN = 16
"""Cells from a side through which something flows within which less and less is kept, but a third of the box at most."""

MOST_BESIDE_SIDES = 0.2
"""Part of its room by which a value is moved at most where something flows through a side: closed boxes hardly need as much."""

_HUGE = 1e37
"""A sum that has grown beyond all numbers."""


class AccountSpec(NamedTuple):
    """What an account depends on.

    Attributes:
        solids: Whether some cells hold no fluid.
        flow_through: Whether anything flows through a side.
        grows: Whether the velocity has a divergence that is meant.
        collocated: Whether the velocity lies at cell centres.
        sparse: Whether the prediction has noted where nothing was found, and so nothing is now nor was before.
        cuts: Whether a value may lie beyond its limits, as MacCormack's does; what is written is what was carried then.
        wraps: Whether an axis is periodic.
    """

    solids: bool
    flow_through: bool
    grows: bool
    collocated: bool
    sparse: bool
    cuts: bool
    wraps: bool


@argument
class Account:
    """What says how much a cell counts for; ``spec``, an ``AccountSpec``, says what of it there is.

    Attributes:
        fluid: The part of a cell that is fluid.
        growth: Divergence of the velocity at cell centres, 1/s.
        velocity: What everything was carried with.
        slope: Of each side, by how much a cell counts for more than the next one towards it.
        dt: Seconds.
        step: Seconds over dx.
        mask: The activity mask.
        open: Open part of faces.
        period: Cells per axis until the box begins again; 0 where it does not.
        n: Cells.
        spec: An ``AccountSpec``.
    """

    fluid: object
    growth: object
    velocity: object
    slope: object
    dt: object
    step: object
    mask: object
    open: object
    period: object
    n: object
    spec: object


@ti.func
def _weight_at(J, account):
    """How much a cell counts for: nothing beside a side through which something flows, all ``margin`` cells from it on."""
    weight = ti.f32(1.0)
    for axis in ti.static(range(J.n)):
        for side in ti.static(range(2)):
            away = account.n[axis] - J[axis] if ti.static(side) else J[axis] - 1
            if account.slope[2 * axis + side] > 0:
                part = ti.cast(away, ti.f32) * account.slope[2 * axis + side]
                weight *= fast_min(fast_max(part, ti.f32(0.0)), ti.f32(1.0))
    return weight


@ti.func
def _gain_at(c, J, s, account):
    """By how much the weight grows of what lies in a cell, on the mean over its faces, as the flow moves it on."""
    gain, here = ti.f32(0.0), _weight_at(J, account)
    for axis in ti.static(range(J.n)):
        u = c + axis * cells_of(s, account.n)
        for side in ti.static(range(2)):
            K = J
            K[axis] += ti.static(2 * side - 1)
            v = account.velocity[u + side * s[axis]]
            if ti.static(account.spec.collocated):
                v = ti.f32(0.5) * (account.velocity[u] + account.velocity[u + (2 * side - 1) * s[axis]])
            gain += ti.static(2 * side - 1) * v * (_weight_at(K, account) - here)
    return ti.f32(0.5) * account.step * gain


@ti.func
def _is_anything(I, account):
    """Whether anything was found for the strip that begins here."""
    anything = ti.i32(1)
    if ti.static(account.spec.sparse):
        anything = account.mask[noted_at(I, account.mask, account.n)]
    return anything


@ti.func
def _put_shares(c, I, m, s, carried, account, width: ti.template()):
    if _is_anything(I, account) == 1:
        Strip(c, I, m, width).each(put_share, (c, I, s, carried, account))


@ti.func
def _room_at(q, least, most):
    """How far a value may be moved, up as well as down."""
    return fast_max(fast_min(most - q, q - least), ti.f32(0.0))


@ti.func
def _add_defect_and_room(k, c, I, s, total: ti.template(), carried, account):
    """How much less a cell has than before, and its room; of both what counts. What neighbours hand over is added first."""
    here, J = cell_of_strip(c, k), position_of(I, k)
    was, fluid = carried.before.array[carried.before.offset + here], fluid_at(here, account)
    is_now = carried.after.array[carried.after.offset + here]
    if ti.static(account.spec.cuts):
        is_now = shared_at(lane(c, k), J, s, carried, account)
        carried.after.array[carried.after.offset + here] = is_now
    room = _room_at(is_now, carried.least[here], carried.most[here])
    if ti.static(account.spec.grows):
        was *= ti.exp(account.dt * account.growth[here])
    if ti.static(account.spec.flow_through):
        weight, gain = _weight_at(J, account), ti.f32(0.5) * _gain_at(here, J, s, account)
        was *= weight + gain
        is_now *= weight - gain
        room *= weight * weight
    total[0] = total[0] + fluid * (was - is_now)
    total[1] = total[1] + fluid * room


@ti.func
def _defect_and_room_of(c, I, m, s, carried, account, width: ti.template()):
    total = ti.Vector([ti.f32(0.0), ti.f32(0.0)])
    if _is_anything(I, account) == 1:
        Strip(c, I, m, width).each(_add_defect_and_room, (c, I, s, total, carried, account))
    return total


@ti.func
def _restore(k, c, I, moved: ti.template(), carried, account, theta):
    here = cell_of_strip(c, k)
    q, least, most = carried.after.array[carried.after.offset + here], carried.least[here], carried.most[here]
    way = theta * _room_at(q, least, most)
    if ti.static(account.spec.solids):
        way = ti.select(account.fluid[here] > 0, way, ti.f32(0.0))
    if ti.static(account.spec.flow_through):
        way *= _weight_at(position_of(I, k), account)
    # Rounding may carry it past a limit by one unit in the last place.
    moved[ti.i32(0), k] = fast_min(fast_max(q + way, least), most)


@ti.func
def _restore_strip(c, I, m, s, carried, out, account, theta, width: ti.template()):
    """Where nothing was found there is 0, and stays 0."""
    strip = Strip(c, I, m, width)
    moved, anything = strip.matrix(1), _is_anything(I, account)
    if anything == 1:
        strip.each(_restore, (c, I, moved, carried, account, theta))
    if ti.static(not account.spec.cuts) or anything == 1:
        strip.each(put_line, (out.array, out.offset + c, moved, 0))


@ti.func
def _covered_at(c, I, s, scalar, was: Array, account):
    """Of a scalar and of volume what solids cover that have moved, and what they uncover: as far as it counts."""
    weight, gone = ti.f32(1.0), was[c] - account.fluid[c]
    if ti.static(account.spec.flow_through):
        weight = _weight_at(I, account)
    value, covered, bare = scalar.array[scalar.offset + c], fast_max(gone, ti.f32(0.0)), fast_max(-gone, ti.f32(0.0))
    return weight * ti.Vector([covered * value, covered, bare * value, bare])


@kernel_family
def covering_kernels(loops, spec):
    IntVector, Slopes = loops.IntVector, ti.types.vector(2 * loops.dim, ti.f32)

    @ti.kernel
    def cover(
        a: Array, offset: ti.i32, was: Array, fluid: Array, slope: Slopes, n: IntVector, partials: Array, owed: Array
    ):
        account = Account(fluid, None, None, slope, None, None, None, None, None, n, spec)
        none = ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)])
        loops.reduce_cells(n, partials, none, add, _covered_at, (Component(a, offset), was, account))
        ti.loop_config(serialize=True)
        for _ in range(1):
            covered, gone, bare, free = loops.reduced(partials, none, add)
            # A solid covers as much as it uncovers, but for what the cells make of that from step to step; the least of both
            # would make what lies behind it more each time. One that comes or goes does but one of them, and owes nothing.
            least = ti.min(gone, free)
            owed[0] = ti.f32(0.0)
            if least > 0:
                passed = ti.min(ti.f32(0.5) * (gone + free), ti.f32(2.0) * least)
                owed[0] = passed * (covered / gone - bare / free)

    return (cover,)


@kernel_family
def conservation_kernels(loops, spec):
    IntVector, FloatVector, each_strip, width = loops.IntVector, loops.FloatVector, loops.each_strip, loops.width
    reduce, reduced, Slopes = loops.reduce, loops.reduced, ti.types.vector(2 * loops.dim, ti.f32)

    @ti.kernel
    def restore(
        before: Array, after: Array, offset: ti.i32, after_offset: ti.i32, least: Array, most: Array, shares: Array,
        out: Array, mask: IntArray, fluid: Array, growth: Array, velocity: Array, slope: Slopes, dt: ti.f32, step: ti.f32,
        open: Array, period: FloatVector, n: IntVector, partials: Array, theta: Array, owed: Array,
    ):  # fmt: skip
        account = Account(fluid, growth, velocity, slope, dt, step, mask, open, period, n, spec)
        carried = Carried(Component(before, offset), Component(after, after_offset), least, most, shares)
        if ti.static(spec.cuts):
            each_strip(n, width, _put_shares, (carried, account, width))
        none = ti.Vector([ti.f32(0.0), ti.f32(0.0)])
        reduce(n, partials, Reduction(none, add, _defect_and_room_of, (carried, account, width), width))
        ti.loop_config(serialize=True)
        for _ in range(1):
            total = reduced(partials, ti.Vector([ti.f32(0.0), ti.f32(0.0)]), add)
            bound = ti.f32(ti.static(MOST_BESIDE_SIDES if spec.flow_through else 1.0))
            theta[0] = ti.f32(0.0)
            # Of numbers so large that their sum is none, nothing is known.
            defect, room = total[0] + owed[0], total[1]
            if ti.abs(defect) < ti.f32(_HUGE):
                theta[0] = ti.min(ti.max(defect / ti.max(room, ti.f32(TINY)), -bound), bound)
        each_strip(n, width, _restore_strip, (carried, Component(out, offset), account, theta[0], width))

    return {"restore": restore, "Slopes": Slopes}


class Conservation:
    """Keeps the amounts of what is carried on one grid, each sum in two stages that are always the same.

    Args:
        grid: The grid.
        walls: Its sides.
        solids: What stands in it; a cell counts as far as it is fluid.
        sparse: Whether there is an activity mask.
        cuts: Whether what it puts right may lie beyond its limits, and is in the array that ``restore`` writes.
        held: Cells of solids that hold something, which count for nothing.
    """

    def __init__(
        self,
        grid: Grid,
        walls: Walls,
        solids: Solids | None = None,
        sparse: bool = False,
        cuts: bool = False,
        held: HeldCells | None = None,
    ):
        self.grid, self._solids, self._held, self._periods = grid, solids, held, walls.periods
        loops, slopes = grid.costly_loops, []
        for n, pair in zip(grid.shape, walls.sides, strict=True):
            slopes += [1.0 / max(min(MARGIN, n // 3), 1) if side.passes else 0.0 for side in pair]
        spec = AccountSpec(
            solids is not None, walls.has_passage, False, grid.collocated, sparse, cuts, any(walls.periodic)
        )
        self._kernels = {grows: conservation_kernels(loops, spec._replace(grows=grows)) for grows in (False, True)}
        self._slopes = self._kernels[False].Slopes(*slopes)
        self._covering = covering_kernels(loops, spec) if solids is not None and solids.moves else None
        self._partials, self._theta = room_for_partials(4 if self._covering else 2), ti.ndarray(ti.f32, 1)
        self._nothing, self._owed = ti.ndarray(ti.f32, 1), {}
        self._nothing.fill(0.0)

    @property
    def theta(self) -> float:
        """Part of its room by which the last scalar was moved, -1 to 1; one number read back."""
        self.grid.require_runtime()
        return numbers_of(self._theta)[0]

    def cover(self, scalar, offset: int, name: str | None, was) -> None:
        """Reckon with what solids that have moved cover of a scalar that is about to be carried, and uncover.

        Args:
            scalar: It, what they uncover filled, and what they cover as it was.
            offset: Where it begins.
            name: Its name.
            was: What part of each cell was fluid; of a scalar that solids hold, ``HeldCells.before`` has what counted.
        """
        if self._covering is not None and self._solids is not None:
            if (name, offset) not in self._owed:
                self._owed[name, offset] = ti.ndarray(ti.f32, 1)
            where, out = (self._slopes, self.grid.n), (self._partials, self._owed[name, offset])
            fluid = self._solids.fluid
            if self._held is not None and name is not None and self._solids.holds(name):
                was, fluid = self._held.before(name), self._held.counted(name)
            self._covering.cover(scalar, offset, was, fluid, *where, *out)

    def restore(self, before, after, where, limits, out, mask, velocity, dt: float, growth=None) -> None:
        """``out`` = ``after``, but with the amount that ``before`` has; ghosts are not filled.

        Args:
            before: The scalar before it was carried.
            after: The scalar when it was carried; ``out`` itself if ``cuts``.
            where: It begins in ``before`` and ``out``, and in ``after``; and its name.
            limits: Least and largest of the values that it was made of in each cell, and an array to work in.
            out: What is written.
            mask: The activity mask.
            velocity: What it was carried with.
            dt: For so many seconds.
            growth: Divergence of that at cell centres, 1/s: what lies there takes so much more room. None is 0.
        """
        grid, nothing = self.grid, self._nothing
        kernels = self._kernels[growth is not None]
        fluid, open = (nothing, nothing) if self._solids is None else (self._solids.fluid, self._solids.open)
        growing = nothing if growth is None else growth
        offset, begin, name = where
        if self._held is not None and name is not None and self._held.solids.holds(name):
            fluid = self._held.counted(name)
        account = fluid, growing, velocity, self._slopes, dt, dt / grid.dx, open, self._periods, grid.n
        owed = self._owed.get((name, offset), nothing)
        kernels.restore(before, after, offset, begin, *limits, out, mask, *account, self._partials, self._theta, owed)
