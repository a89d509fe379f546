"""The arrays of a scene and the operators that are built for it: what the stages of a step work with."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._ti import ti
from ..boundaries.mesh import read_triangles, sample_mesh
from ..boundaries.sides import Side
from ..boundaries.solids import SLIVER, SLIVER_OF_LIQUID, Course, Faces, Motion, Solid
from ..boundaries.walls import SCALAR, Walls
from ..carried import CARRIED
from ..grid import Grid
from ..kernels import copy_values
from ..physics.advection import Advection, Scheme, Trace
from ..physics.combustion import Flame
from ..physics.diffusion import Diffusion
from ..physics.sources import Emitter
from ..pressure.projection import Projection
from ..pressure.solver import SolveResult
from ..scene import AnySolid, MeshSolid, Scene, Solver
from ..scene.bodies import Source
from ..scene.expressions import is_told, known_at
from ..scene.shapes import Geometry
from .diagnostics import Diagnostics
from .kept import Kept
from .liquids import begin_liquid
from .loads import Earlier, SolidsInFlow
from .state import State

if TYPE_CHECKING:
    from ..liquid.liquid import Liquid

_SWEEPS = "gauss-seidel"
"""What the sweeps are that ``solver.sweeps`` counts: they need no other room."""


class Stage(NamedTuple):
    """One stage of a step: a name and a function of the simulation and dt in seconds.

    A function that takes long may be a generator function: where it yields, a step that is made a part at a time stops
    and lets its caller do something else; see ``Simulation.stepping``.
    """

    name: str
    run: Callable[[Any, float], Iterator[None] | None]


class Force(NamedTuple):
    """A force: a name and a function of the simulation and dt in seconds that adds dt times an acceleration, in m/s².

    It changes ``simulation.state.velocity.current`` where that lies; what solids and sides make of it follows. One that
    ``halves`` acts for half of a step of advection-reflection at its beginning and for half at its end, ``simulation.time``
    being that of either, which is of second order; else for all of it at its end, but as of its beginning. A step of another
    scheme has it once, as of its beginning: take what changes with time at ``simulation.time + dt / 2``; and that of a liquid,
    before it moves in the next step and after it has in this one: take it at ``simulation.time + simulation.liquid.kick.middle``.
    """

    name: str
    add: Callable[[Any, float], None]
    halves: bool = True


class Engine:
    """What a flow is made of; ``Simulation`` lets it run.

    Args:
        scene: What to simulate.
        solids: More solids than the scene has.
        sides: In place of those of the scene, by axis and end, 0 lower and 1 upper.
    """

    def __init__(
        self, scene: Scene, solids: Sequence[Solid] = (), sides: Mapping[tuple[int, int], Side] = MappingProxyType({})
    ):
        self._scene, self._sides, self._solids = scene, dict(sides), tuple(solids)
        for i, solid in enumerate(self._solids):
            if not isinstance(solid, Solid):
                raise TypeError(
                    f"solids[{i}] is a {type(solid).__name__}; give Solid objects, or tables as solids of the scene"
                )
        self.grid = Grid(scene.domain.shape, scene.domain.dx, collocated=scene.domain.grid == "collocated")
        stand = {(axis, end): side for axis, pair in enumerate(scene.domain.sides) for end, side in enumerate(pair)}
        for place in self._sides:
            if place not in stand:
                raise ValueError(
                    f"sides has {place!r}; a side is one of {', '.join(map(str, stand))}: its axis and end"
                )
        stand |= self._sides
        self.state = State(self.grid, self.carried)
        boundaries = [(stand[axis, 0], stand[axis, 1]) for axis in range(self.grid.dim)]
        self.walls = Walls(self.grid, boundaries, self.state.outside, fills=scene.liquid is not None)
        solids = [*itertools.starmap(_solid, enumerate(scene.solids)), *solids]
        if solids and self.grid.collocated:
            raise ValueError("domain.grid is 'collocated', which holds no solids: they need the staggered grid")
        self.solids = None
        if solids:
            sliver = SLIVER if scene.liquid is None else SLIVER_OF_LIQUID
            self.solids = SolidsInFlow(self, self.grid, self.walls, solids, Faces(scene.solver.faces), sliver)
        self.liquid: "Liquid | None" = None
        if scene.liquid is not None:
            from ..liquid.liquid import Liquid  # which a gas need not wait for

            self.liquid = Liquid(self.grid, self.walls, self.state.scratch, self.solids)
        level = None if self.liquid is None else self.liquid.phi
        self.diagnostics = Diagnostics(self.grid, self.solids, level)
        self.kept = Kept()
        self.stages: list[Stage] = []
        self.forces: list[Force] = []

    @property
    def scene(self) -> Scene:
        """The scene."""
        return self._scene

    @property
    def own(self) -> dict[str, Any]:
        """What the caller has given beside the scene: how many solids, and which sides."""
        return {"solids": len(self._solids), "sides": [list(place) for place in sorted(self._sides)]}

    @property
    def reflects(self) -> bool:
        """Whether a step is to be one of second order: by way of its middle, or of a liquid by a kick."""
        return self.scene.solver.scheme == "reflection"

    @property
    def carried(self) -> dict[str, int]:
        """Names of the quantities that scene and sides bring in, with their components."""
        patches = [patch for side in self._sides.values() for patch in side.patches]
        names = {name for said in (*patches, *self._solids) for name in (*said.values, *said.fluxes)}
        return {**{name: CARRIED[name].components for name in CARRIED if name in names}, **self._scene.carried}

    def begin(self) -> None:
        """Begin at time 0 with what the arrays hold, with operators that know nothing."""
        self.time, self.steps = 0.0, 0
        self.speed = 0.0  # largest velocity component that the last check has found, m/s
        self.pushed = 0.0  # for how many seconds forces have acted in the first half of a step
        self.lifted = 0.0  # largest acceleration that it may have found, by buoyancy or of a liquid, m/s²
        self.pressure_result: SolveResult | None = None
        self.diffusion_results: list[SolveResult] = []
        self._diffusion: Diffusion | None = None
        self.flame: Flame | None = None
        self.expansion = None
        self.halved, self.nearest, self.earlier = False, 0.0, None
        self.gain = None  # what the first half of a step has set apart from what is carried, m/s
        self.dry: list[str] = []  # what of the scene brings in no liquid
        self.overfull: float | None = None  # since when the liquid is more than the box holds, s
        self.unbalanced: float | None = None  # since when a region without a way out is filled or emptied, s
        self.kept.forget()
        self.pressed = math.inf  # seconds for which the last projection held
        projected = "projection" in vars(self)
        for old in ("projection", "advection"):  # what they hold is free before the new ones take it
            vars(self).pop(old, None)
        self.walls.at(0.0)
        self.walls.forget_outflow()
        if self.solids:
            self.solids.update(0.0)
        self.build(None)
        self.carrier = self.advection
        if projected:
            self.prepare()
        if self.liquid is not None and self.scene.liquid is not None:
            self.liquid.leaves = self.liquid.opens or any(source.sink for source in self.scene.sources)
            self.dry = begin_liquid(self.liquid, self.scene.liquid, self.state.velocity.current)
        self.fill_velocity()

    def build(self, before: Scene | None) -> None:
        """Build what hangs on values that the scene ``before`` had otherwise; without one, all of it."""
        scene, grid, walls = self._scene, self.grid, self.walls
        solver, old = scene.solver, before.solver if before else None
        if old is not None and "projection" in vars(self) and _method(solver) != _method(old):
            self.projection = self._new_projection()
        if old is None or (solver.advection, solver.trace) != (old.advection, old.trace):
            scheme, trace = Scheme(solver.advection), Trace(solver.trace)
            self.advection = Advection(grid, walls, self.state.scratch, scheme, trace, self.solids)
        self.advection.conserves = solver.conserve
        if before is None or scene.sources != before.sources:
            self.emitters = [self._emitter(source, source.placed(0.0)) for source in scene.sources]

    def _emitter(self, source: Source, geometry: Geometry) -> Emitter:
        return Emitter(self.grid, source.shape, *geometry, source.mottle, source.mottle_size, self.walls.periodic)

    def emitting(self, source: Source, emitter: Emitter, lasts: float) -> Iterator[tuple[Emitter, float]]:
        """Through what a source emits that ``lasts`` so many seconds of a step, and for how many: one that moves, along its way."""
        if not source.moves:
            yield emitter, lasts
            return
        begin = max(source.begin, self.time)
        pieces = source.pieces(begin, begin + lasts)
        for piece in range(pieces):
            place = source.placed(begin + (piece + 0.5) / pieces * lasts)
            yield self._emitter(source, place), lasts / pieces

    def prepare(self) -> None:
        """Build what would else be built by the first step, so that what there is no room for is known now."""
        if self.liquid is None:
            self.projection  # noqa: B018 - built where it is asked for
        else:
            self.liquid.prepare(_method(self.scene.solver))

    @functools.cached_property
    def room(self) -> float:
        """Volume of the box that solids leave free, when it is first asked for, m³ (2D: m²)."""
        if self.solids is None:
            return math.prod(self.grid.size)
        return float(self.grid.to_numpy(self.solids.fluid).sum(dtype=float)) * self.grid.cell_volume

    @functools.cached_property
    def projection(self) -> Projection:
        """What projects, built at its first use: a picture of time 0 needs none."""
        return self._new_projection()

    def _new_projection(self) -> Projection:
        # Arrays that the device still works with are not freed on every backend.
        ti.sync()
        method = _method(self._scene.solver)
        return Projection(self.grid, self.walls, self.state.scratch, method, self.solids)

    @property
    def diffusion(self) -> Diffusion:
        """What diffuses, built at its first use."""
        solver = self.scene.solver
        if self._diffusion is None or (self._diffusion.sweeps is None) != (solver.sweeps is None):
            ti.sync()  # what is dropped here may be in use
            self._diffusion = Diffusion(self.grid, self.walls, solids=self.solids, sweeps=solver.sweeps)
        self._diffusion.max_iterations, self._diffusion.sweeps = solver.max_iterations, solver.sweeps
        return self._diffusion

    @functools.cached_property
    def before(self):
        """Room for the velocity that a step of advection-reflection begins with, made at its first use."""
        return self.grid.array(self.grid.dim)

    @functools.cached_property
    def gained(self):
        """Room for the ``gain``, made at its first use."""
        return self.grid.array(self.grid.dim)

    @functools.cached_property
    def rubbed(self):
        """Room for the velocity that the first part of friction at solids is reckoned with, made at its first use."""
        return self.grid.array(self.grid.dim)

    @functools.cached_property
    def _earlier_pressure(self):
        return self.grid.array()

    def lasting(self, dt: float) -> float:
        """Seconds of a step ``dt`` for which what the pressure is about to take off is known, by the one before it.

        Where solids move, a shorter step before this one has stopped what they drove into each other within it, by a
        pressure that does not last.
        """
        return min(dt, self.pressed) if self.solids and self.solids.moves else dt

    def keep_pressure(self, dt: float, lasting: float) -> None:
        """Keep the pressure before the last projection of a step of ``dt`` s, which diffusion reckons with for ``lasting``."""
        earlier = self.begin_earlier(self.steps, dt, self.halved, lasting, self.nearest if self.halved else 0.0)
        copy_values(self.state.pressure, earlier.pressure)

    def begin_earlier(self, steps: int, dt: float, halved: bool, lasting: float, nearest: float) -> Earlier:
        """Have ``earlier`` of a step say so much, and its arrays, which are still to be filled."""
        rubbed = self.rubbed if halved and nearest else None
        self.earlier = Earlier(steps, dt, halved, lasting, self._earlier_pressure, rubbed, nearest)
        return self.earlier

    @property
    def first_pressure(self):
        """The pressure, Pa, of the first half of the last step; None where a step has one projection, and before the first."""
        earlier = self.earlier
        return earlier.pressure if earlier and earlier.halved and earlier.steps == self.steps - 1 else None

    def copy_pressure(self, out) -> None:
        """Write the pressure, Pa, into an array: what presses in the last step, the mean of both halves.

        Each of them makes up for what the other does too much, by a part that is in proportion to the step.
        """
        first = self.first_pressure
        if first is None:
            copy_values(self.state.pressure, out)
        else:
            self.diagnostics.compute_mean(first, self.state.pressure, out)

    def light(self) -> Flame:
        """The flame, built at its first use."""
        if self.flame is None:
            self.flame = Flame(self.grid, self.solids)
        return self.flame

    def place_solids(self, time: float) -> None:
        """Put the solids where they are at ``time``, s, and let the projection know if there is one yet."""
        if self.solids and self.solids.update(time) and "projection" in vars(self):
            self.projection.update()

    def move_as_at(self, time: float) -> None:
        """Let sides and solids, where those are now, move as they do at ``time``, s; the next filling brings it in."""
        self.walls.at(time)
        if self.liquid is not None:
            self.liquid.at(time)
        if self.solids:
            self.solids.move_as_at(time)

    def fill_scalars(self) -> None:
        """Make what is carried heed sides and solids: nothing inside solids, and all ghosts filled."""
        for quantity, offset in self.state.scalars():
            if self.solids:
                self.solids.clear_scalar(quantity.current, offset)
            self.walls.fill(quantity.current, SCALAR, offset, quantity.name)

    def fill_velocity(self, keep: bool = False) -> None:
        """Make the velocity heed solids and sides; ``keep`` leaves the faces on open sides as they are.

        So does a liquid: there they have the velocity of the particles around, and what runs out is no slower than that.
        """
        if self.solids:
            self.solids.enforce(self.state.velocity.current)
        self.walls.fill_velocity(self.state.velocity.current, keep=keep or self.liquid is not None)

    def fill(self) -> None:
        """Make velocity and carried quantities heed sides and solids: nothing inside solids, and all ghosts filled.

        For a caller who has written the arrays between two steps. Faces on open sides stay as they are.
        """
        self.grid.require_runtime()
        self.walls.forget_outflow()
        self.fill_scalars()
        self.fill_velocity(keep=True)


def _method(solver: Solver) -> str:
    """The method of the pressure solver that a scene asks for."""
    return solver.pressure if solver.sweeps is None else _SWEEPS


def _course(told: Sequence[float | str], what: str) -> Course:
    """Numbers as they are, and as a function of the time where any of them is an expression."""
    if is_told(told):
        return functools.partial(known_at, told, what=what)
    return tuple(float(part) for part in told)


def _solid(index: int, config: AnySolid) -> Solid:
    """A solid of a scene."""
    a, b, radius = config.geometry()
    pivot, spin = tuple(config.pivot or config.middle), config.spin if any(config.spin) else ()
    path = _course(config.path or (), f"solids[{index}].path")
    turn = _course(config.turned if any(config.turned) else (), f"solids[{index}].turn")
    motion = Motion(pivot, config.velocity or (), config.swing or (), config.swing_period, spin, path, turn)
    end = math.inf if config.end is None else config.end
    shape = config.shape
    if isinstance(config, MeshSolid):
        sampled = sample_mesh(read_triangles(config.file), config.size, config.points)
        # What is known around its own middle, seen from the pivot.
        away = np.add(sampled.origin, np.subtract(config.middle, pivot))
        shape = replace(sampled, origin=tuple(away.tolist()))
    return Solid(
        shape, tuple(a), tuple(b), radius, motion, config.slip, config.begin, end, config.values, config.fluxes
    )
