"""What stands on each of the 2·dim sides of the box, and the ghost values that say so to every stencil."""

import functools
import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ..grid import Grid, given
from ..kernels import float_vector, int_vector
from .checks import check_sides
from .coefficients import BoundaryCoefficients
from .filling import FOLLOWS, GIVEN, LEFT, PRESSURE, SCALAR, WRAPS, boundary_kernels
from .outflow import Outflow, balance
from .patches import AREAS, CENTRES, ENTERING
from .profiles import FACES, FACES_AND_GHOSTS, GHOSTS, LaidSide, Plane, Rule, require_shapes
from .sides import Boundaries, Outside, Part, Profile, Side, as_side, velocity_of


def _named(i: int, what: str) -> str:
    """How a message calls something of the side ``i``, flat."""
    return f"boundaries[{i // 2}][{i % 2}].{what}"


class Walls:
    """The sides of one grid: fills ghosts, and tells the elliptic solvers and the traces what its sides mean.

    Attributes:
        wrap: Per axis, 1 if its two sides are one, for kernels.

    Args:
        grid: The grid.
        boundaries: ``boundaries[axis][side]``: a ``Side``, or a ``Kind`` or its name where that says it all.
        outside: What comes in through open sides, and inflows that say nothing else, of each quantity by name: one
            number for each component; 0 where a name is missing. It may gain names.
        fills: Whether more may flow into a closed box than out of it, as liquid into a tank with air in it.

    Raises:
        ValueError: for a set of sides that no flow can have, naming them.
    """

    def __init__(self, grid: Grid, boundaries: Boundaries, outside: Outside | None = None, fills: bool = False):
        if len(boundaries) != grid.dim or any(len(pair) != 2 for pair in boundaries):
            raise ValueError(f"boundaries must be {grid.dim} pairs (lower, upper), one pair per axis")
        self.grid, self._outside = grid, {} if outside is None else outside
        self.sides = tuple(tuple(as_side(side) for side in pair) for pair in boundaries)
        self._flat = [side for pair in self.sides for side in pair]
        check_sides(self.sides, grid.shape, grid.dx, fills=fills)
        if grid.collocated and any(side.parts for side in self._flat):
            raise ValueError("a side has parts, which the collocated grid has not; they need the staggered one")
        self._kernels = boundary_kernels(grid.loops, grid.collocated)
        self._rules, self._changes, self._boxes, self._planes, self._added = {}, {}, {}, {}, {}
        self._laid: dict[tuple, list[LaidSide]] = {}
        self._time, self._fastest, self._level = 0.0, self._find_fastest(0.0), None
        for i, side in enumerate(self._flat):
            require_shapes(side, self._plane(i, SCALAR), functools.partial(_named, i))
        leaving = [i for i, side in enumerate(self._flat) if side.is_convected]
        if leaving and grid.collocated:
            raise ValueError("a side is an outflow, which the collocated grid has not; it needs the staggered one")
        self._outflows = {i: Outflow(grid, self._plane(i, i // 2), self._flat[i]) for i in leaving}
        self.wrap = int_vector(grid.dim)(*map(int, self.periodic))

    @property
    def periodic(self) -> tuple[bool, ...]:
        """Per axis, whether its two sides are one."""
        return tuple(lower.kind.wraps for lower, _ in self.sides)

    @property
    def has_passage(self) -> bool:
        """Whether anything flows through a side."""
        return any(side.passes for side in self._flat)

    @property
    def has_open(self) -> bool:
        """Whether any side is open."""
        return any(side.is_open for side in self._flat)

    @property
    def fastest(self) -> float:
        """Largest velocity component of a side, m/s."""
        return self._fastest

    def _find_fastest(self, time: float) -> float:
        found = [0.0]
        for i, side in enumerate(self._flat):
            if any(patch.velocity for patch in side.patches):
                for k in range(self.grid.dim):
                    plane = self._plane(i, k)
                    speed = plane.numbers(side, lambda patch, k=k: velocity_of(patch, k), time, _named(i, "velocity"))
                    found.append(float(np.abs(speed).max()))
        return max(found)

    def at(self, time: float) -> None:
        """Let what stands on the sides be that of a time, s; the next ``fill`` brings it in."""
        self._time = time
        if any(side.varies for side in self._flat):
            self._fastest = self._find_fastest(time)
        for key, laid in self._laid.items():
            for each in [each for each in laid if each.varies]:
                each.set(time, self._pads(key))

    def narrow(self, level) -> None:
        """Let as much flow in as is said through cells of a part of a side, however high a liquid stands there; see ``LaidSide.narrow``."""
        self.grid.require(level=level)
        self._level = level
        for laid in itertools.chain(*self._laid.values()):
            laid.narrow(level)

    def convect(self, velocity, dt: float) -> None:
        """Let what stands on outflows be what a ``velocity`` brings there in ``dt`` seconds."""
        self.grid.require(self.grid.dim, velocity=velocity)
        known = all(outflow.velocity is not None for outflow in self._outflows.values())
        for outflow in self._outflows.values():
            outflow.advance(velocity, dt)
        if not known:
            self._changed_outflows()
        self._set_outflows()

    def forget_outflow(self, known: Mapping[int, np.ndarray] = MappingProxyType({})) -> None:
        """Take what stands on outflows from the inside, until the next ``convect``, or what is ``known`` of ``outflows``."""
        for i, outflow in self._outflows.items():
            outflow.velocity = known.get(i)
        self._changed_outflows()

    @property
    def outflows(self) -> dict[int, np.ndarray]:
        """What stands on outflows, m/s, by the number of their side."""
        return {i: each.velocity for i, each in self._outflows.items() if each.velocity is not None}

    def _changed_outflows(self) -> None:
        """What was made with outflows known is made anew now that they are not, or the other way round."""
        if self._outflows:
            self._rules.clear()
            self._laid.clear()

    def _set_outflows(self) -> None:
        for key, laid in self._laid.items():
            for each in laid:
                if key[0] == each.plane.axis and self.sides[each.plane.axis][each.plane.end].is_convected:
                    each.set(self._time, self._pads(key))

    @property
    def balances(self) -> bool:
        """Whether what leaves through outflows is made to be as much as must."""
        return bool(self._outflows) and not self.has_open

    def balance(self, velocity, missing: Sequence[float], open=None, regions: np.ndarray | None = None) -> bool:
        """Let as much more leave through outflows as is ``missing``, and lay that onto the sides of ``velocity``; whether any can.

        The arguments are those of ``outflow.balance``.
        """
        self.grid.require(self.grid.dim, velocity=velocity, **given(open=open))
        if any(outflow.velocity is None for outflow in self._outflows.values()):
            self.convect(velocity, 0.0)
        possible = balance(self._outflows, missing, open, regions)
        self._set_outflows()
        self.fill_velocity(velocity, keep=True)
        return possible

    def _plane(self, i: int, component: int) -> Plane:
        """A side as a component sees it."""
        place = self.grid.place(component) if component >= 0 else -1
        if (i, place) not in self._planes:
            self._planes[i, place] = Plane(self.grid, i // 2, i % 2, place)
        return self._planes[i, place]

    def _pads(self, key: tuple) -> list[tuple[Rule, float]]:
        """Of each side its rule for a component, and what it gives as one number: the mean, where that differs."""
        rules = [self._side_rule(i, side, *key) for i, side in enumerate(self._flat)]
        what = key[1] or "velocity"
        return [(rule, float(self._numbers(i, rule.given, key[0], what).mean())) for i, rule in enumerate(rules)]

    def _numbers(self, i: int, given: float | Profile, component: int, what: str, *part: Part) -> np.ndarray:
        """What is given at the places of a side, or of a part of it, now."""
        if not isinstance(given, Profile):
            return np.array([given])
        return self._plane(i, component).given(given, self._time, _named(i, what), *part)

    def _rule(self, component: int, name: str | None, k: int, keep: bool):
        """Factor, value and mode of every side for one quantity."""
        key = (component, name, k, keep)
        if key not in self._rules:
            modes, numbers = [], []
            for i, side in enumerate(self._flat):
                rule = self._side_rule(i, side, *key)
                given = 0.0 if isinstance(rule.given, Profile) else rule.given
                follows = FOLLOWS if rule.follows else GIVEN
                # What is left on a part must not be set by the rest of its side.
                left = any(self._side_rule(i, patch, *key).left for patch in side.patches)
                modes.append(WRAPS if rule.wraps else LEFT if left else follows)
                numbers.append((rule.follows, (1.0 - rule.follows) * given))
            factor, value = zip(*numbers, strict=True)
            kernels = self._kernels
            self._rules[key] = kernels.Numbers(*factor), kernels.Numbers(*value), kernels.Modes(*modes)
        return self._rules[key]

    def _laid_on(self, *key) -> list[LaidSide]:
        """What is laid onto the sides that are not the same all over to a quantity."""
        if key not in self._laid:
            self._laid[key], component = [], key[0]
            for i, side in enumerate(self._flat):
                rules = [self._side_rule(i, patch, *key) for patch in side.patches]
                if rules[0].differs or any(rule != rules[0] for rule in rules):
                    on_faces = component == i // 2 and not self.grid.collocated
                    what = _named(i, key[1] or "velocity")
                    laid = LaidSide(
                        self._plane(i, component),
                        side,
                        lambda patch, i=i: self._side_rule(i, patch, *key),
                        FACES_AND_GHOSTS if on_faces else GHOSTS,
                        what,
                        AREAS if on_faces else ENTERING if component == SCALAR else CENTRES,
                    )
                    laid.set(self._time, self._pads(key))
                    if self._level is not None:
                        laid.narrow(self._level)
                    self._laid[key].append(laid)
        return self._laid[key]

    def _side_rule(self, i: int, side: Side, component: int, name: str | None, k: int, keep: bool) -> Rule:
        kind, axis = side.kind, i // 2
        if kind.wraps:
            return Rule(1.0, wraps=True)
        if component == PRESSURE:
            return Rule(1.0 - kind.pressure)
        if component == SCALAR:
            if name and side.holds(name):  # the wall is half a cell away from the first value and from its ghost
                return Rule(-1.0, side.value(name, k))
            enters = name and kind.passes and not (keep and kind.lets_out)
            return Rule(0.0, self._entering(side, name, k)) if enters else Rule(1.0)
        if component == axis and not self.grid.collocated:
            outflow = self._outflows[i].velocity if kind.is_convected else None
            if outflow is not None:
                return Rule(0.0, Profile(lambda time, *x: outflow))
            if kind.is_open or kind.is_convected:
                return Rule(0.0, left=True) if keep else Rule(1.0)
            return Rule(0.0, velocity_of(side, component))
        # The side, or what flows in, is half a cell away from the first value and from its ghost.
        return Rule(kind.mirror(component == axis, self.grid.dx), velocity_of(side, component))

    def _entering(self, side: Side, name: str, k: int) -> float | Profile:
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
            keep: Leave the faces on open sides as they are, which after a projection are part of the solution; of a scalar,
                let the ghosts beyond open sides and outflows copy what is inside, so that nothing diffuses through.

        Raises:
            ValueError: for an array that is not of the grid, or no component that begins at ``offset``.
        """
        self.grid.require(None, offset, array=array)
        grid = self.grid
        self._fill(array, offset, component, name, offset // grid.cells if name else 0, keep)
        if component >= 0 and grid.collocated:
            self._kernels.fill_corners(array, grid.n, offset, self.wrap)

    def _fill(self, array, offset: int, component: int, *which) -> None:
        on_faces = component >= 0 and not self.grid.collocated
        rule = self._rule(component, *which)
        self._kernels.fill_ghosts(array, self.grid.n, offset, component if on_faces else SCALAR, *rule)
        for laid in self._laid_on(component, *which):
            laid.lay(array, offset)

    def fill_predicted(self, array, component: int, name: str | None = None, k: int = 0) -> None:
        """Set the ghosts of one component that is about to be looked at from inside the box, at the beginning of ``array``.

        Of component ``k`` of a scalar: what flows through a side is continued outward, and nothing enters. A velocity is
        filled as by ``fill``.
        """
        if component != SCALAR:
            self.fill(array, component)
            return
        self.grid.require(None, array=array)
        self._fill(array, 0, SCALAR, name, k, True)

    def fill_change(self, array, axis: int) -> None:
        """Set sides and ghosts of what a velocity component on faces changes by, at the beginning of ``array``.

        That is nothing on the sides it goes through, and beside the others what it is inside.
        """
        self.grid.require(None, array=array)
        if axis not in self._changes:
            factors = [float(side.kind.wraps or i // 2 != axis) for i, side in enumerate(self._flat)]
            modes = [WRAPS if side.kind.wraps else GIVEN for side in self._flat]
            kernels = self._kernels
            self._changes[axis] = kernels.Numbers(*factors), kernels.Numbers(*[0.0] * len(modes)), kernels.Modes(*modes)
        self._kernels.fill_ghosts(array, self.grid.n, 0, axis, *self._changes[axis])

    def fill_velocity(self, velocity, *, keep: bool = False) -> None:
        """Set sides and ghosts of a velocity; ``keep`` leaves the faces on open sides as they are."""
        self.grid.require(self.grid.dim, velocity=velocity)
        for axis in range(self.grid.dim):
            self.fill(velocity, component=axis, offset=axis * self.grid.cells, keep=keep)

    def meet_outside(self, velocity, dt: float, was=None) -> None:
        """Let the pressure act that what enters through open sides has, half of the square of its speed below that outside.

        Before a projection, for which the pressure is 0 there whether the fluid leaves or enters. What enters comes from air
        at rest (Bernoulli): else it would bring along a kinetic energy that nothing paid for, and a hot column between open
        sides gathers it until it tears itself apart. See Bruneau and Fabrie (1994) and Moghadam et al. (2011) on backflow.
        What leaves is as much faster than beside the side as it ``was``, m/s, once projected: else each projection makes that
        difference anew, by a pressure that grows as dt falls.
        """
        self.grid.require(self.grid.dim, velocity=velocity, **given(was=was))
        if self.has_open:
            flags = self._kernels.Modes(*(int(side.is_open) for side in self._flat))
            was, goes_on = (velocity, 0) if was is None else (was, 1)
            self._kernels.meet_outside(velocity, was, goes_on, self.grid.n, dt / self.grid.dx, flags)
            # Where only a part is open, the rest has what it had.
            for axis, pair in enumerate(self.sides):
                if any(side.is_open and side.parts for side in pair):
                    self.fill(velocity, axis, axis * self.grid.cells, keep=True)

    def path_limits(self, component: int):
        """Lowest and highest point that a path may come from, in the index space of what is carried.

        A path reaches half a cell beyond an inflow or an open side, where the ghosts say what enters. Faces on a side
        have nothing beyond it, and of a velocity at an inflow the side itself is where it is given. A side of several
        parts is what the most open of them is.
        """
        if component == SCALAR:
            return self._limits(component, tuple(side.passes for side in self._flat))
        return self._limits(component, tuple(side.is_open for side in self._flat))

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
            if self.sides[axis][1].passes:
                lower, upper = [1] * self.grid.dim, [n + 1 for n in self.grid.shape]
                lower[axis], upper[axis] = upper[axis], upper[axis] + 1
                found.append((axis, vector(*lower), vector(*upper)))
        return found

    @functools.cached_property
    def closed(self):
        """Per axis, 1 if nothing flows through its upper side."""
        return int_vector(self.grid.dim)(*[int(not (pair[1].passes or pair[1].kind.wraps)) for pair in self.sides])

    @functools.cached_property
    def periods(self):
        """Cells per axis until the box begins again, 0 where it does not."""
        periods = [float(n) if p else 0.0 for n, p in zip(self.grid.shape, self.periodic, strict=True)]
        return float_vector(self.grid.dim)(*periods)

    def pressure_sides(self) -> BoundaryCoefficients:
        """Open sides hold the pressure 0 beyond them; across all others it does not change. See ``close_parts``."""
        box = tuple(max(patch.kind.pressure for patch in side.patches) for side in self._flat)
        return BoundaryCoefficients(box=box, periodic=self.periodic)

    @functools.cached_property
    def _half_open(self) -> list[tuple[int, LaidSide]]:
        """Sides of which a part is open and a part is not, each with its axis and with what closes the latter."""
        found = []
        for i, side in enumerate(self._flat):
            if len({patch.kind.pressure for patch in side.patches}) > 1:
                closed = LaidSide(
                    self._plane(i, SCALAR), side, lambda patch: Rule(0.0, left=patch.kind.pressure > 0), FACES, ""
                )
                found.append((i // 2, closed))
        return found

    @property
    def open_in_part(self) -> bool:
        """Whether only a part of a side is open, so that the matrix of the pressure needs faces."""
        return bool(self._half_open)

    def close_parts(self, open) -> None:
        """Close those of the faces ``open`` on which a side is not open that is so elsewhere."""
        self.grid.require(self.grid.dim, open=open)
        for axis, closed in self._half_open:
            closed.lay(open, axis * self.grid.cells)

    def held_range(self, name: str | None, k: int) -> tuple[float, float] | None:
        """Least and largest value of component ``k`` of a quantity on the sides, if a wall holds one; else None."""
        if not any(patch.holds(name) for side in self._flat for patch in side.patches):
            return None
        assert name is not None
        numbers = []
        for i, side in enumerate(self._flat):
            for patch, part in zip(side.patches, [(), *((part,) for part in side.parts)], strict=True):
                if patch.holds(name) or patch.kind.passes:
                    given = patch.value(name, k) if patch.holds(name) else self._entering(patch, name, k)
                    numbers.append(self._numbers(i, given, SCALAR, name, *part))
        every = np.concatenate(numbers)
        return float(every.min()), float(every.max())

    def fluxes(self, name: str | None, k: int):
        """What each side gives of component ``k`` of a quantity, ``unit`` m/s, for kernels; None where none gives any.

        Where that is not the same all over it, 0: ``add_fluxes`` has it.
        """
        given = [0.0 if self._uneven_flux(side, name, k) else side.flux(name, k) for side in self._flat]
        return self._kernels.Numbers(*given) if any(given) else None

    def gives(self, name: str | None, k: int) -> bool:
        """Whether any side gives anything of component ``k`` of a quantity."""
        fluxes = (patch.flux(name, k) for side in self._flat for patch in side.patches)
        return any(isinstance(flux, Profile) or flux for flux in fluxes)

    def _uneven_flux(self, side: Side, name: str | None, k: int) -> bool:
        fluxes = [patch.flux(name, k) for patch in side.patches]
        return isinstance(fluxes[0], Profile) or any(flux != fluxes[0] for flux in fluxes)

    def add_fluxes(self, rhs, mask, name: str, k: int, scale: float) -> None:
        """``scale`` times the fluxes that differ from place to place, to the cells beside them where ``mask`` is positive."""
        self.grid.require(rhs=rhs, mask=mask)
        for i, side in enumerate(self._flat):
            if self._uneven_flux(side, name, k):
                self._add(rhs, mask, i, SCALAR, lambda patch: patch.flux(name, k), 1, scale, f"{name}_flux", AREAS)

    def _add(self, out, mask, i: int, component: int, number, depth: int, scale: float, what: str, which: int) -> None:
        """What the patches of a side say, to the cells ``depth`` from it."""
        plane = self._plane(i, component)
        key = (i, component, what)
        values = plane.numbers(self._flat[i], number, self._time, _named(i, what), which)
        room = self._added.setdefault(key, plane.array())
        padded = np.zeros(plane.shape, np.float32)
        padded[plane.inner] = values
        room.from_numpy(padded.reshape(-1))
        plane.add(out, mask, room, depth, scale)

    def diffusion_sides(self, component: int, shift: float, name: str | None = None) -> BoundaryCoefficients:
        """Sides as implicit diffusion of a change of a scalar or of a velocity component sees them.

        Sides of which parts are not alike have 0: ``add_held`` has the rest.

        Args:
            component: Velocity component, or ``SCALAR``.
            shift: dx² / (diffusivity · dt).
            name: Of a scalar whose ghosts hold what enters and what walls hold; see ``fill``.
        """
        box = []
        for i, side in enumerate(self._flat):
            found = {self._held(i, patch, component, name) for patch in side.patches}
            box.append(found.pop() if len(found) == 1 else 0.0)
        inside = (0.0 if component == SCALAR else 1.0,) * self.grid.dim
        return BoundaryCoefficients(box=tuple(box), inside=inside, periodic=self.periodic, shift=shift)

    def _held(self, i: int, patch: Side, component: int, name: str | None) -> float:
        if component == SCALAR:
            return 2.0 if patch.holds(name) else float(bool(name) and patch.kind.passes and not patch.kind.lets_out)
        return patch.kind.diffusion(component == i // 2, self.grid.dx, not self.grid.collocated)

    def held_in_part(self, component: int, name: str | None) -> list[int]:
        """Sides, flat, the parts of which are not alike to the diffusion of a component."""
        found = []
        for i, side in enumerate(self._flat):
            if side.parts and len({self._held(i, patch, component, name) for patch in side.patches}) > 1:
                found.append(i)
        return found

    def add_held(self, held, mask, component: int, name: str | None) -> None:
        """Add what such sides hold to the diagonals of the cells beside them where ``mask`` is positive."""
        self.grid.require(held=held, mask=mask)
        for i in self.held_in_part(component, name):
            depth = self.first_unknown(component)[i // 2] if i % 2 == 0 else 1
            number = lambda patch, i=i: self._held(i, patch, component, name)  # noqa: E731
            which = ENTERING if component == SCALAR else CENTRES
            self._add(held, mask, i, component, number, depth, 1.0, f"held {name}", which)

    def first_unknown(self, component: int) -> tuple[int, ...]:
        """Integer position of the first value that is not given by a side."""
        on_side = SCALAR if self.grid.collocated else component
        return tuple(2 if axis == on_side and not self.periodic[axis] else 1 for axis in range(self.grid.dim))
