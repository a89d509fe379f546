"""The class that carries quantities with a velocity."""

import functools

from ..._ti import ti
from ...boundaries.solids import Solids
from ...boundaries.walls import SCALAR, Walls
from ...grid import Grid, Scratch, given
from ...kernels import copy_values
from ..held_cells import HeldCells
from .activity import mask_length
from .backtrace import trace_kernels
from .conservation import Conservation
from .extremes import Extremes
from .maccormack import advection_kernels
from .spec import PathSpec, QuantitySpec, Scheme, Trace


class Advection:
    """Carries quantities with a velocity.

    Args:
        grid: The grid.
        walls: Its sides.
        scratch: Arrays to work in.
        scheme: Semi-Lagrangian or clamped MacCormack.
        trace: How paths are followed.
        solids: What paths must keep out of; its distance is read whenever paths are traced.

    Attributes:
        conserves: Whether scalars keep their amount, see ``conservation``.
        in_place: Whether ``carry`` may write to the array that it reads, as MacCormack's correction can.
        shares_paths: Whether what lies at centres can be carried along the paths of the faces. Not beside solids: from
            half a cell away something else may be in the way.

    Use:
        ``trace_paths`` once for the places of a quantity, then ``carry`` each quantity that lies there, or between;
        ``carry_velocity`` for the velocity itself. Paths last until anything else works in ``scratch``.
    """

    def __init__(
        self, grid: Grid, walls: Walls, scratch: Scratch, scheme: Scheme, trace: Trace, solids: Solids | None = None
    ):
        self.grid, self.walls, self.solids = grid, walls, solids
        self.scheme, self.trace = Scheme(scheme), Trace(trace)
        self.in_place = self.scheme is Scheme.MACCORMACK
        self.shares_paths = solids is None
        self._meets = any(walls.periodic), solids is not None, solids is not None and solids.slips
        self._room, self._predicted, self._limits = scratch.vector, scratch.first, (scratch.second, scratch.third)
        self._worked_in = (self._room, self._predicted, *self._limits)
        self._departure = self._own_departure = None
        self._on_faces = self.conserves = False
        self._flow = None, 0.0, None
        self._nothing = ti.ndarray(ti.f32, 1), ti.ndarray(ti.f32, 1)
        # What comes from where there is nothing need not be looked at, which pays where a loop takes rows. On the other
        # side of a seam nobody looks.
        self._sparse = grid.costly_loops.rows and not any(walls.periodic)
        self._mask = ti.ndarray(ti.i32, mask_length(grid.shape) if self._sparse else 1)

    def trace_paths(self, velocity, dt: float, *, faces: bool = False, departure=None, growth=None) -> None:
        """Follow the flow for ``dt`` from the cell centres, or from the faces of a velocity that lies there.

        Args:
            velocity: What to follow.
            dt: Seconds.
            faces: Paths for the components of a velocity, and, where ``shares_paths`` says so, means of them for what
                lies at centres. On the collocated grid they are those of the centres.
            departure: An array of ``dim`` components that MacCormack's paths lie in as long as something is carried
                along them; left out, one is made and kept.
            growth: Divergence that the velocity is meant to have at cell centres, 1/s: scalars that keep their amount
                are to be had in so much more room. Left out, 0.

        Raises:
            ValueError: if ``departure`` is the velocity or an array that is worked in, and for arrays that are not of
                the grid.
        """
        self.grid.require(self.grid.dim, velocity=velocity, **given(departure=departure))
        self.grid.require(**given(growth=growth))
        if departure is not None and any(departure is array for array in (velocity, *self._worked_in)):
            raise ValueError("departure is the velocity or an array of scratch: give it one of its own")
        grid, walls, solids = self.grid, self.walls, self.solids
        self._flow = velocity, dt, growth
        self._on_faces = faces and not grid.collocated
        both = self.scheme is Scheme.MACCORMACK
        spec = PathSpec(self.trace, self._on_faces, *self._meets, self._sparse, grid.placement)
        kernels, period = trace_kernels(grid.costly_loops, spec), walls.periods
        if not both:
            departure = self._room
        elif departure is None:
            if self._own_departure is None:
                self._own_departure = grid.array(grid.dim)
            departure = self._own_departure
        self._departure = departure
        arrival = self._room if both else self._nothing[0]
        paths = (velocity, *self._near(solids), departure, arrival, grid.n, period, dt / grid.dx, self._mask, 1 + both)
        kernels.trace(*paths)
        if self._on_faces:
            for axis, lower, upper in walls.upper_passages:
                kernels.trace_box(*paths, axis, lower, upper)
            for array in (departure, arrival) if both else (departure,):
                kernels.end_paths(array, grid.n, period, walls.closed)

    def carry(self, current, out, component: int = SCALAR, offset: int = 0, name: str | None = None) -> None:
        """``out`` = ``current`` carried along the traced paths, ghosts filled; both at ``offset`` in their arrays.

        Where ``in_place`` says so ``out`` may be ``current``, but not of a scalar that keeps its amount. ``name`` is
        that of a scalar, by which the sides know what enters.

        Raises:
            ValueError: for arrays that are not of the grid, or no component that begins at ``offset``, and for one array
                where there must be two.
            RuntimeError: if no paths have been traced for what lies there.
        """
        self.grid.require(None, offset, current=current, out=out)
        keeps = component == SCALAR and self.conserves
        if current is out and (keeps or not self.in_place):
            raise ValueError("current and out are the same array")
        if out is self._departure:
            raise ValueError("out holds the paths along which it would be carried")
        on_faces = component != SCALAR and not self.grid.collocated
        between = self._on_faces and not on_faces
        if self._departure is None or on_faces > self._on_faces or between > self.shares_paths:
            raise RuntimeError(f"trace_paths(faces={component != SCALAR}) comes before carry() of what lies there")
        grid, walls = self.grid, self.walls
        spec = QuantitySpec(self._on_faces, *self._meets, walls.has_passage, self._sparse)
        kernels, axis = advection_kernels(grid.costly_loops, spec), component if on_faces else -1
        # A velocity may be read beside solids, and is hardly ever 0.
        scalar, k = component == SCALAR, offset // grid.cells
        held = self._held if scalar and self._held and self._held.solids.holds(name) else None
        bounds = self._bounds(name, k) if scalar and (held is not None or self.in_place) else None
        if bounds is not None:
            self._extremes.find(current, offset, bounds)
        if held is not None:
            held.continue_fluid(current, offset, name, k)
            walls.fill(current, component, offset, name)
        if scalar and self._sparse:
            kernels.mark_active(current, offset, self._mask, grid.n)
        around = (walls.periods, *self._near(self.solids), int(scalar), self._mask, int(scalar and self._sparse))
        where = (axis, grid.n, offset, *walls.path_limits(component), *around)
        prediction, after, begin = (self._predicted, *self._limits), out, offset
        if self.scheme is Scheme.SEMI_LAGRANGIAN and not keeps:
            kernels.semi_lagrangian(current, out, self._departure, *where)
        elif self.scheme is Scheme.SEMI_LAGRANGIAN:
            kernels.predict(current, *prediction, self._departure, *where)
            after, begin = self._predicted, 0
            if held is not None:
                for each in prediction:
                    self._extremes.keep(each, 0)
        else:
            kernels.predict(current, *prediction, self._departure, *where)
            if held is not None:
                held.continue_fluid(self._predicted, 0, name, k)
                # What lies beyond what all keeps to is cut off where others can still take it.
                for each in self._limits:
                    self._extremes.keep(each, 0)
            walls.fill_predicted(self._predicted, component, name, k)
            where = (axis, grid.n, offset, *walls.box_limits(component), *around)
            if on_faces:
                kernels.correct(current, *prediction, self._lost, self._room, *where, 0, 0)
                walls.fill_change(self._lost, axis)
                kernels.limit(self._lost, *prediction, out, self._room, axis, grid.n, k)
            else:
                kernels.correct(current, *prediction, out, self._room, *where, offset, int(keeps))
        if keeps:
            limits, where = (*self._limits, self._predicted), (offset, begin, name)
            self._conservation.restore(current, after, where, limits, out, self._mask, *self._flow)
        if held is not None:
            held.set(out, offset, name)
        if bounds is not None:
            self._extremes.keep(out, offset)
        walls.fill(out, component, offset, name)

    def note_parts(self, was) -> None:
        """Before solids move note in ``was`` what part of each cell is fluid, and what counts of scalars that they hold."""
        self.grid.require(was=was)
        assert self.solids is not None
        copy_values(self.solids.fluid, was)
        if self._held and self.conserves:
            self._held.note()

    def cover(self, scalar, was, offset: int = 0, name: str | None = None) -> None:
        """Let a scalar that keeps its amount do so beside solids that have moved since ``note_parts``; see ``Conservation.cover``."""
        self.grid.require(None, offset, scalar=scalar)
        self.grid.require(was=was)
        if self.conserves:
            self._conservation.cover(scalar, offset, name, was)

    def _bounds(self, name: str | None, k: int) -> tuple[float, float] | None:
        """Least and largest value of component ``k`` of a quantity that walls and solids hold; None where nothing does."""
        ranges = [self.walls.held_range(name, k)]
        if name is not None and self._held and self._held.solids.holds(name):
            ranges.append(self._held.solids.held_range(name, k))
        ranges = [each for each in ranges if each is not None]
        return (min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None

    @functools.cached_property
    def _held(self) -> HeldCells | None:
        solids = self.solids
        return HeldCells(solids) if solids is not None and any(solid.values for solid in solids.solids) else None

    @functools.cached_property
    def _conservation(self) -> Conservation:
        return Conservation(self.grid, self.walls, self.solids, self._sparse, self.in_place, self._held)

    @functools.cached_property
    def _lost(self):
        return self.grid.array()

    @functools.cached_property
    def _extremes(self) -> Extremes:
        return Extremes(self.grid)

    def _near(self, solids: Solids | None):
        """What kernels are told of solids, or two words where there are none, and 1/dx."""
        return (*((solids.open, solids.distance) if solids else self._nothing), 1.0 / self.grid.dx)

    def carry_velocity(self, velocity, out, dt: float) -> None:
        """``out`` = the velocity carried with itself."""
        self.grid.require(self.grid.dim, velocity=velocity, out=out)
        if velocity is out and not self.in_place:
            raise ValueError("velocity and out are the same array")
        self.trace_paths(velocity, dt, faces=True)
        for axis in range(self.grid.dim):
            self.carry(velocity, out, axis, axis * self.grid.cells)
