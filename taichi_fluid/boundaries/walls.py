"""What stands on each of the 2·dim sides of the box, and the ghost values that say so to every stencil."""

import functools
from collections.abc import Iterable, Mapping, Sequence

from .._ti import argument, ti
from ..grid import Grid
from ..kernels import Array, cells_of, float_vector, int_vector, kernel_family
from ..operators.ghosts import wrap_pair
from .coefficients import BoundaryCoefficients
from .profiles import LaidProfile
from .sides import Boundaries, Side, as_side, check_sides

SCALAR = -1
"""In place of a component: a quantity at cell centres."""

PRESSURE = -2
"""In place of a component: the pressure at cell centres, which is 0 beyond an open side."""

# What becomes of the faces on a side, as the kernel knows it: given, following the inside, left alone, or periodic.
_GIVEN, _FOLLOWS, _LEFT, _WRAPS = range(4)


@argument
class Ghosts:
    """What the ghosts of one quantity are along one axis, by side: ``factor · inside + value``, or as ``mode`` says."""

    values: object
    offset: object
    component: object
    factor: object
    value: object
    mode: object
    axis: int


@ti.func
def _fill_ghost_pair(c, I, s, ghosts, n):
    """Of a component along its own axis also the faces on the sides are set."""
    a, axis = ti.static(ghosts.values, ghosts.axis)
    lower = ghosts.offset + c
    upper = lower + (n[axis] + 1) * s[axis]
    if ghosts.mode[2 * axis] == _WRAPS:
        wrap_pair(a, lower, s, n, axis)
    elif ghosts.component == axis:
        first = lower + s[axis]
        if ghosts.mode[2 * axis] == _GIVEN:
            a[first] = ghosts.value[2 * axis]
        if ghosts.mode[2 * axis + 1] == _GIVEN:
            a[upper] = ghosts.value[2 * axis + 1]
        if ghosts.mode[2 * axis] == _FOLLOWS:
            a[first] = a[first + s[axis]]
        if ghosts.mode[2 * axis + 1] == _FOLLOWS:
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


@argument
class Backflow:
    """What enters through open sides along one axis, slowed; ``step`` is dt / dx."""

    velocity: object
    step: object
    open: object
    axis: int
    collocated: bool


@ti.func
def _slow_inflow_at(c, I, s, backflow, n):
    """Of a velocity at centres the first and the last one; on faces those on the sides."""
    u, axis = ti.static(backflow.velocity, backflow.axis)
    lower = axis * cells_of(s, n) + c + s[axis]
    upper = lower + (n[axis] - ti.static(int(backflow.collocated))) * s[axis]
    if backflow.open[2 * axis] == 1:
        u[lower] = u[lower] / (ti.f32(1.0) + backflow.step * ti.max(u[lower], ti.f32(0.0)))
    if backflow.open[2 * axis + 1] == 1:
        u[upper] = u[upper] / (ti.f32(1.0) + backflow.step * ti.max(-u[upper], ti.f32(0.0)))


@kernel_family
def boundary_kernels(loops, collocated):
    IntVector, each_on_plane, dim = loops.IntVector, loops.each_on_plane, loops.dim
    Numbers, Modes = ti.types.vector(2 * dim, ti.f32), ti.types.vector(2 * dim, ti.i32)

    @ti.kernel
    def fill_ghosts(
        a: Array, n: IntVector, offset: ti.i32, component: ti.i32, factor: Numbers, value: Numbers, mode: Modes
    ):
        # Axis after axis over whole planes, ghosts of earlier axes included, so that edges and corners agree.
        for axis in ti.static(range(dim)):
            each_on_plane(n, axis, _fill_ghost_pair, (Ghosts(a, offset, component, factor, value, mode, axis), n))

    @ti.kernel
    def fill_corners(a: Array, n: IntVector, offset: ti.i32, wrap: IntVector):
        """Edges from sides, then (in 3D) corners from edges."""
        for meeting in ti.static(range(2, dim + 1)):
            for axis in ti.static(range(dim + 1 - meeting)):
                each_on_plane(n, axis, _write_mean_of_ghosts, (Corners(a, offset, wrap, meeting, axis), n))

    @ti.kernel
    def slow_inflow(velocity: Array, n: IntVector, step: ti.f32, open: Modes):
        for axis in ti.static(range(dim)):
            each_on_plane(n, axis, _slow_inflow_at, (Backflow(velocity, step, open, axis, collocated), n))

    return {
        "fill_ghosts": fill_ghosts,
        "fill_corners": fill_corners,
        "slow_inflow": slow_inflow,
        "Numbers": Numbers,
        "Modes": Modes,
    }


class Walls:
    """The sides of one grid: fills ghosts, and tells the elliptic solvers and the traces what its sides mean.

    Attributes:
        wrap: Per axis, 1 if its two sides are one, for kernels.

    Args:
        grid: The grid.
        boundaries: ``boundaries[axis][side]``: a ``Side``, or a ``Kind`` or its name where that says it all.
        outside: What comes in through open sides, and inflows that say nothing else, of each quantity by name: one
            number for each component; 0 where a name is missing. It may gain names.

    Raises:
        ValueError: for a set of sides that no flow can have, naming them.
    """

    def __init__(self, grid: Grid, boundaries: Boundaries, outside: Mapping[str, Sequence[float]] | None = None):
        if len(boundaries) != grid.dim or any(len(pair) != 2 for pair in boundaries):
            raise ValueError(f"boundaries must be {grid.dim} pairs (lower, upper), one pair per axis")
        self.grid, self._outside = grid, {} if outside is None else outside
        self.sides = tuple(tuple(as_side(side) for side in pair) for pair in boundaries)
        self._flat = [side for pair in self.sides for side in pair]
        check_sides(self.sides, grid.shape)
        self._kernels = boundary_kernels(grid.loops, grid.collocated)
        self._rules, self._changes, self._boxes = {}, {}, {}
        self.wrap = int_vector(grid.dim)(*map(int, self.periodic))
        self._profiles = [
            LaidProfile(grid, i // 2, i % 2, k, profile, side.kind.mirror(k == i // 2, grid.dx))
            for i, side in enumerate(self._flat)
            for k, profile in side.profiles.items()
        ]
        self._compute_profiles(self._profiles, 0.0)

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Per axis, whether its two sides are one."""
        return tuple(lower.kind.wraps for lower, _ in self.sides)

    @property
    def has_passage(self) -> bool:
        """Whether anything flows through a side."""
        return any(side.kind.passes for side in self._flat)

    @property
    def has_open(self) -> bool:
        """Whether any side is open."""
        return any(side.kind.is_open for side in self._flat)

    @property
    def fastest(self) -> float:
        """Largest velocity component of a side, m/s."""
        numbers = [abs(x) for side in self._flat for x in side.velocity]
        return max([0.0, *numbers, *(profile.fastest for profile in self._profiles)])

    def at(self, time: float) -> None:
        """Let what flows in be that of a time, s; the next ``fill`` brings it to the velocity."""
        self._compute_profiles([laid for laid in self._profiles if laid.profile.varies], time)

    def _compute_profiles(self, profiles: Sequence[LaidProfile], time: float) -> None:
        names = {_WRAPS: "wraps", _GIVEN: "given"}
        for laid in profiles:
            rules = [self._side_rule(i, side, laid.component, None, 0, False) for i, side in enumerate(self._flat)]
            laid.set(time, [(factor, value, names.get(mode, "")) for factor, value, mode in rules])

    def _velocity(self, side: Side, component: int) -> float:
        return side.velocity[component] if side.velocity else 0.0

    def _rule(self, component: int, name: str | None, k: int, keep: bool):
        """Factor, value and mode of every side for one quantity."""
        key = (component, name, k, keep)
        if key not in self._rules:
            self._rules[key] = self._packed(self._side_rule(i, side, *key) for i, side in enumerate(self._flat))
        return self._rules[key]

    def _packed(self, rules: Iterable[tuple[float, float, int]]):
        """Factor, value and mode of every side, for a kernel."""
        factor, value, mode = zip(*rules, strict=True)
        kernels = self._kernels
        return kernels.Numbers(*factor), kernels.Numbers(*value), kernels.Modes(*mode)

    def _side_rule(self, i: int, side: Side, component: int, name: str | None, k: int, keep: bool):
        kind, axis = side.kind, i // 2
        if kind.wraps:
            return 1.0, 0.0, _WRAPS
        if component == PRESSURE:
            return 1.0 - kind.pressure, 0.0, _GIVEN
        if component == SCALAR:
            if name and side.holds(name):  # the wall is half a cell away from the first value and from its ghost
                return -1.0, 2.0 * side.value(name, k), _GIVEN
            return (
                (0.0, self._entering(side, name, k), _GIVEN)
                if name and kind.passes and not keep
                else (1.0, 0.0, _GIVEN)
            )
        if component == axis and not self.grid.collocated:
            mode = (_LEFT if keep else _FOLLOWS) if kind.is_open else _GIVEN
            return 0.0, self._velocity(side, component), mode
        # The side, or what flows in, is half a cell away from the first value and from its ghost.
        mirror = kind.mirror(component == axis, self.grid.dx)
        return mirror, (1.0 - mirror) * self._velocity(side, component), _GIVEN

    def _entering(self, side: Side, name: str, k: int) -> float:
        """Component ``k`` of what a quantity has that comes in through a side."""
        return side.value(name, k, self._outside.get(name, 0.0))

    def fill(
        self, array, component: int = SCALAR, offset: int = 0, name: str | None = None, *, keep: bool = False
    ) -> None:
        """Set the ghosts of one quantity: a scalar at centres, or the velocity component ``component``.

        Of a velocity component on faces also the layers that lie on its sides are set. On the collocated grid edges
        and corners of a velocity are the mean of the ghosts beside them. (Stam 2003.)

        Args:
            array: Holds the quantity.
            component: Velocity component, ``SCALAR`` or ``PRESSURE``.
            offset: Where it begins in ``array``.
            name: Of a scalar that is carried: what enters through an inflow has its ``values``, through an open side
                what is outside, and a wall that holds a value has that halfway between its ghosts and what is inside.
                Left out, and at all other walls, the ghosts copy what is inside.
            keep: Leave the faces on open sides as they are, which after a projection are part of the solution.

        Raises:
            ValueError: for an array that is not of the grid, or no component that begins at ``offset``.
        """
        self.grid.require(None, offset, array=array)
        rule = self._rule(component, name, offset // self.grid.cells if name else 0, keep)
        grid = self.grid
        on_faces = component >= 0 and not grid.collocated
        self._kernels.fill_ghosts(array, grid.n, offset, component if on_faces else SCALAR, *rule)
        for profile in self._profiles:
            if profile.component == component:
                profile.lay(array, offset)
        if component >= 0 and grid.collocated:
            self._kernels.fill_corners(array, grid.n, offset, self.wrap)

    def fill_predicted(self, array, component: int, name: str | None = None, k: int = 0) -> None:
        """Set the ghosts of one component that is about to be looked at from inside the box, at the beginning of ``array``.

        Of component ``k`` of a scalar: what flows through a side is continued outward, and nothing enters. A velocity is
        filled as by ``fill``.
        """
        if component != SCALAR:
            self.fill(array, component)
            return
        self.grid.require(None, array=array)
        rule = self._rule(SCALAR, name, k, True)
        self._kernels.fill_ghosts(array, self.grid.n, 0, SCALAR, *rule)

    def fill_change(self, array, axis: int) -> None:
        """Set sides and ghosts of what a velocity component on faces changes by, at the beginning of ``array``.

        That is nothing on the sides it goes through, and beside the others what it is inside.
        """
        self.grid.require(None, array=array)
        if axis not in self._changes:
            self._changes[axis] = self._packed(
                (1.0, 0.0, _WRAPS) if side.kind.wraps else (float(i // 2 != axis), 0.0, _GIVEN)
                for i, side in enumerate(self._flat)
            )
        self._kernels.fill_ghosts(array, self.grid.n, 0, axis, *self._changes[axis])

    def fill_velocity(self, velocity, *, keep: bool = False) -> None:
        """Set sides and ghosts of a velocity; ``keep`` leaves the faces on open sides as they are."""
        self.grid.require(self.grid.dim, velocity=velocity)
        for axis in range(self.grid.dim):
            self.fill(velocity, component=axis, offset=axis * self.grid.cells, keep=keep)

    def slow_inflow(self, velocity, dt: float) -> None:
        """Mix what enters through open sides with the air outside, which is at rest; before a projection.

        The pressure there is 0 whether the fluid leaves or enters. What enters would bring along a kinetic energy that
        nothing paid for, and a hot column between open sides gathers it until it tears itself apart. So a face through
        which fluid enters takes as much of its velocity, 0, from outside as flows through in ``dt``; see Bruneau and
        Fabrie (1994) and Moghadam et al. (2011) on backflow.
        """
        self.grid.require(self.grid.dim, velocity=velocity)
        if self.has_open:
            flags = self._kernels.Modes(*(int(side.kind.is_open) for side in self._flat))
            self._kernels.slow_inflow(velocity, self.grid.n, dt / self.grid.dx, flags)

    def path_limits(self, component: int):
        """Lowest and highest point that a path may come from, in the index space of what is carried.

        A path reaches half a cell beyond an inflow or an open side, where the ghosts say what enters. Faces on a side
        have nothing beyond it, and of a velocity at an inflow the side itself is where it is given.
        """
        if component == SCALAR:
            return self._limits(component, tuple(side.kind.passes for side in self._flat))
        return self._limits(component, tuple(side.kind.is_open for side in self._flat))

    def box_limits(self, component: int):
        """Lowest and highest point of the box itself, in the index space of what is carried."""
        return self._limits(component, (False,) * len(self._flat))

    def _limits(self, component: int, beyond: tuple[bool, ...]):
        """Sides of the box, half a cell further out at these, but not for the faces that lie on them."""
        key = (component, beyond)
        if key not in self._boxes:
            place = SCALAR if component == SCALAR else self.grid.place(component)
            lower, upper = [], []
            for axis, n in enumerate(self.grid.shape):
                own = axis == place
                lower.append(1.0 if own else 0.0 if beyond[2 * axis] else 0.5)
                upper.append(n + (1.0 if own or beyond[2 * axis + 1] else 0.5))
            vector = float_vector(self.grid.dim)
            self._boxes[key] = vector(*lower), vector(*upper)
        return self._boxes[key]

    @functools.cached_property
    def upper_passages(self):
        """Axes through whose upper side something flows, each with the integer positions of its faces, from and to."""
        found, vector = [], int_vector(self.grid.dim)
        for axis in range(self.grid.dim):
            if self.sides[axis][1].kind.passes:
                lower, upper = [1] * self.grid.dim, [n + 1 for n in self.grid.shape]
                lower[axis], upper[axis] = upper[axis], upper[axis] + 1
                found.append((axis, vector(*lower), vector(*upper)))
        return found

    @functools.cached_property
    def closed(self):
        """Per axis, 1 if nothing flows through its upper side."""
        return int_vector(self.grid.dim)(*[int(pair[1].kind.is_closed) for pair in self.sides])

    @functools.cached_property
    def periods(self):
        """Cells per axis until the box begins again, 0 where it does not."""
        periods = [float(n) if p else 0.0 for n, p in zip(self.grid.shape, self.periodic, strict=True)]
        return float_vector(self.grid.dim)(*periods)

    def pressure_sides(self) -> BoundaryCoefficients:
        """Open sides hold the pressure 0 beyond them; across all others it does not change."""
        return BoundaryCoefficients(box=tuple(side.kind.pressure for side in self._flat), periodic=self.periodic)

    def held_range(self, name: str | None, k: int) -> tuple[float, float] | None:
        """Least and largest value of component ``k`` of a quantity on the sides, if a wall holds one; else None."""
        if not any(side.holds(name) for side in self._flat):
            return None
        assert name is not None
        values = [side.value(name, k) for side in self._flat if side.holds(name)]
        values += [self._entering(side, name, k) for side in self._flat if side.kind.passes]
        return min(values), max(values)

    def fluxes(self, name: str | None, k: int):
        """What each side gives of component ``k`` of a quantity, ``unit`` m/s, for kernels; None where none gives any."""
        given = [side.flux(name, k) for side in self._flat]
        return self._kernels.Numbers(*given) if any(given) else None

    def diffusion_sides(self, component: int, shift: float, name: str | None = None) -> BoundaryCoefficients:
        """Sides as implicit diffusion of a change of a scalar or of a velocity component sees them.

        Args:
            component: Velocity component, or ``SCALAR``.
            shift: dx² / (diffusivity · dt).
            name: Of a scalar whose ghosts hold what enters and what walls hold; see ``fill``.
        """
        dx, on_side = self.grid.dx, not self.grid.collocated
        if component == SCALAR:
            box = [2.0 if side.holds(name) else float(bool(name) and side.kind.passes) for side in self._flat]
        else:
            box = [side.kind.diffusion(component == i // 2, dx, on_side) for i, side in enumerate(self._flat)]
        inside = (0.0 if component == SCALAR else 1.0,) * self.grid.dim
        return BoundaryCoefficients(box=tuple(box), inside=inside, periodic=self.periodic, shift=shift)

    def first_unknown(self, component: int) -> tuple[int, ...]:
        """Integer position of the first value that is not given by a side."""
        on_side = SCALAR if self.grid.collocated else component
        return tuple(2 if axis == on_side and not self.periodic[axis] else 1 for axis in range(self.grid.dim))
