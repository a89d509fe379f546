"""A liquid with a surface on one grid: particles carry it, a level set says where it ends, a projection keeps its volume."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..boundaries.solids import Solids
from ..boundaries.walls import Walls
from ..grid import Grid, Scratch
from ..kernels import copy_values
from ..pressure.solver import SolveResult
from .core import Core
from .crowding import Crowding
from .extension import Extension
from .foam import Foam
from .free_surface import FreeSurface
from .inlets import Inlets
from .kick import Kick
from .level_set import HIGHEST, LevelSet
from .matching import TIMES, match
from .motion import Motion
from .particle_height import FAR
from .particle_surface import LastStep, ParticleSurface
from .particles import FULL, Particles
from .seeding import Seeding
from .sides import Body, smooth_walls
from .sinks import Sinks
from .spacing import Spacing
from .surface_tension import REACH, SURE, SurfaceTension
from .transfer import Transfer
from .viscosity import LATER, Viscosity

LAYERS, FEW_LAYERS = 3, 2
"""Layers of faces beyond the surface to which velocities are continued, at least: for particles; and before the pressure is solved for."""


class Liquid:
    """A liquid that moves in steps.

    ``carry``, ``pour``, ``drain``, ``find_surface``, ``gather``, ``remember`` (FLIP, a kick), ``kick.begin``, one's own forces, ``project``, ``scatter``.

    Attributes:
        particles: What it consists of.
        phi: Signed distance to its surface at cell centres, m, negative in the liquid; within one and a half cells.
        kick: By how much its velocity changes before it moves, if ``kick.wanted``.
        inlets: Its inflows.
        core: What of it lies so deep that it has no particles; ``core.keep`` says how deep that is.
        shallow: Shapes of ``operators.shapes``, in metres, around which there are particles however deep they lie: sources, sinks.
        steps: How many times it was told by ``scatter`` what a step has made of it.
        target: How many particles were added and have not left the box, those that the core would have among them.
        pouring: Numbers of one's own sources that have poured in the last step.
        opens: Whether a side lets any out.
        leaves: Whether any may leave the box: through such a side, or as ``drain`` is or will be called.
        expansion: The divergence that the last projection has left, 1/s, so that particles spread where they crowd.

    Args:
        grid: A staggered grid.
        walls: Its sides: closed, open, inflows, or periodic.
        scratch: Arrays to work in.
        solids: What stands in it.
    """

    def __init__(self, grid: Grid, walls: Walls, scratch: Scratch, solids: Solids | None = None):
        self.grid, self.walls, self.solids = grid, walls, solids
        self._smooth = smooth_walls(walls)
        self.particles, self.phi, self.expansion = Particles(grid), grid.array(), grid.array()
        self._scratch, self._weight, self._told = scratch, grid.velocity(), None
        self.core, self.kick = Core(grid, walls, scratch, solids), Kick(grid, solids)
        self._transfer, self._extension = Transfer(grid, scratch, walls), Extension(grid, solids, walls)
        self._surface = ParticleSurface(grid, walls, solids, self.core, scratch.second)
        self._there, self._seeding = LevelSet(grid, scratch, walls), Seeding(grid, solids, self.core, walls)
        self._crowding, self._spacing = Crowding(grid, walls, solids, self.core), Spacing(grid, solids, walls)
        self.inlets, self.motion = Inlets(grid, walls, solids), Motion(grid, walls, solids)
        self._sinks, self._drained, self.shallow = Sinks(grid), list[Body](), list[Body]()
        self.projection: FreeSurface | None = None
        self._tension: SurfaceTension | None = None
        self.phi.fill(FAR * grid.dx)
        self.target, self.steps, self.pouring = 0, 0, set[int]()
        self._known = False  # whether particles' own velocities are those of the faces there, as APIC leaves them
        self._gone, self._crossed = False, 1.0  # gone: whether what was the surface has moved since it was found
        self.leaves = self.opens = any(side.is_open for pair in walls.sides for side in pair)

    def prepare(self, method: str = "auto") -> FreeSurface:
        """The projection, with the pressure solver of a method; built anew where that is another."""
        if self.projection is None or self._method != method:
            self.projection = FreeSurface(self.grid, self.walls, self._scratch, method, self.solids)
            self._method = method
        return self.projection

    @functools.cached_property
    def foam(self) -> Foam:
        """Its spray, foam and bubbles; made when it is first asked for."""
        return Foam(self.grid, self.motion, self.solids)

    @property
    def has_foam(self) -> bool:
        """Whether there is any foam."""
        return "foam" in vars(self) and self.foam.particles.count > 0

    def clear(self) -> None:
        """Have no liquid."""
        self._empty()
        self.target = self.steps = 0
        self._seeding.begin()
        for each in (self.inlets, self.pouring, self._drained):
            each.clear()
        self.phi.fill(FAR * self.grid.dx)  # there was none
        self.find_surface()

    def _empty(self) -> None:
        self.particles.clear()
        self.core.clear()
        if self.has_foam:
            self.foam.particles.clear()
        self._known = self._gone = False
        self.expansion.fill(0.0)
        self._forget()
        self._surface.lift.fill(0.0)

    def _forget(self) -> None:
        """Know nothing of what has changed the velocity in the last step."""
        self.kick.clear()
        if "viscosity" in vars(self):
            self.viscosity.pressure.clear()

    def add(
        self,
        shape: str,
        a: Sequence[float],
        b: Sequence[float],
        radius: float,
        velocity: Sequence[float] | None = None,
        time: float = 0.0,
    ) -> int:
        """Fill a shape of ``operators.shapes`` with liquid at a velocity, m/s; what is in a solid or liquid already stays.

        The lattice of the particles has gone along with that velocity for ``time`` seconds. ``find_surface`` is to be called
        when all is added. Returns how many particles there are more.
        """
        images = list(self.motion.seams.images(shape, a, b, radius))
        for each in images:
            self._there.join(self.phi, *each)
        return sum(self._fill(each, velocity, time) for each in images)

    def _fill(self, shape: tuple, velocity: Sequence[float] | None, time: float, dt: float | None = None) -> int:
        before, self._known = self.particles.count, False
        self.particles.place()
        self._seeding.fill(self.particles, *shape, velocity, time, dt)
        self.target += self.particles.count - before
        return self.particles.count - before

    def pour(
        self,
        shape: str,
        a: Sequence[float],
        b: Sequence[float],
        radius: float,
        velocity: Sequence[float],
        time: float,
        dt: float | None = None,
    ) -> int:
        """Fill a shape of ``operators.shapes`` with liquid, and let all that is in it have this velocity, m/s.

        Called after each ``carry``, with the ``time`` then, and ``drive`` before it, as much is poured as has flowed out of the
        shape; ``dt`` is how long the step was, for one that was at rest in it. Of others as much as a lattice of cells fits them. Returns how many particles there are more.
        """
        added = 0
        for each in self.motion.seams.images(shape, a, b, radius):
            added += self._fill(each, velocity, time, dt if any(velocity) else None)
            self._seeding.drive(self.particles, *each, velocity)
        return added

    def let_in(self, time: float, dt: float) -> None:
        """Let in what inflows bring within ``dt`` seconds from a ``time`` on; what there is no room for is to be made elsewhere.

        After each ``carry``, and before that ``drive_inlets``. Beside walls, say, the liquid may be slower than the inflow.
        """
        if self.inlets.each:
            self._known = False
            self.particles.place()
            entering = self.inlets.let_in(self.particles, time, dt)
            self.target += entering.let_in + entering.crowded
            if self.leaves:  # the next sort takes them for particles that have left
                self.target += entering.shut + entering.crowded

    def drive_inlets(self, velocity, time: float, dt: float) -> None:
        """Let a velocity on the faces be that of what inflows bring within ``dt`` seconds from a ``time`` on, before ``carry``."""
        if self.inlets.each:
            self._known = False
            self.inlets.drive(velocity, time, dt, self.kick.velocity)

    def at(self, time: float) -> None:
        """Let sides move as they do at a ``time``, s, where that is what particles see of them."""
        self._smooth.at(time)

    def drive(
        self, faces, shape: str, a: Sequence[float], b: Sequence[float], radius: float, velocity: Sequence[float]
    ) -> None:
        """Let a velocity on the faces be that of what is poured in a shape, before ``carry``."""
        self._known = False
        for each in self.motion.seams.images(shape, a, b, radius):
            self._seeding.drive_faces(faces, *each, velocity)
            if self.kick.velocity is not None:
                self._seeding.drive_faces(self.kick.velocity, *each, [0.0] * self.grid.dim)

    def drain(self, shape: str, a: Sequence[float], b: Sequence[float], radius: float) -> None:
        """Take the liquid in a shape of ``operators.shapes`` away, and leave that to the air until the surface after the next.

        Called after each ``carry``, liquid flows into the shape as through a hole. Where there may be a core, the shape is to be among those that are ``shallow``.
        """
        if not self.leaves:
            self._sort()  # where others crowd, some have been taken away already, which are made up for
            self.leaves = True
        for each in self.motion.seams.images(shape, a, b, radius):
            for particles in [self.particles, self.foam.particles] if self.has_foam else [self.particles]:
                self._sinks.take(particles, *each)
            self._drained.append(each)
        if self.has_foam:
            self.foam.particles.sort()

    def begin(self, velocity) -> None:
        """Begin with what was added: its velocity on the faces, and beyond the surface; the core has the velocity that is there."""
        self.expansion.fill(0.0)
        self._known, self._crossed = False, 1.0
        self.core.keep_velocity(velocity)
        self._transfer.to_faces(self.particles, velocity, self._weight)
        self.core.take_over(velocity, self._weight)
        self._extension.from_particles(velocity, self._weight, self.phi, LAYERS)
        self._smooth.fill_velocity(velocity, keep=True)

    def take_over(self, velocity) -> None:
        """Fill with particles what lies below the surface that ``phi`` has been set to, of a velocity on the faces, m/s.

        ``phi`` is a distance at least within a cell; three cells deep into the liquid, particles are spread the more evenly.
        """
        self._empty()
        self._surface.fill_ghosts(self.phi)
        self._seeding.fill_below(self.particles, self.phi, velocity)
        self.target = self.particles.count
        copy_values(self.phi, given := self._scratch.first)
        for times in range(TIMES + 1):
            if times:
                match(self.particles, self.solids, self.motion.seams, self.phi, given)
            self._sort()
            self._surface.find(self.particles, self.phi)
        copy_values(given, self.phi)
        self.find_surface()

    def take_velocity(self, velocity) -> None:
        """Let the particles have a velocity on the faces, m/s, and how it changes around them."""
        self._transfer.from_faces(self.particles, velocity, firm=self._transfer.find_firm(self.phi))
        self._forget()
        self._known = True

    def find_surface(self, last: Sequence[Any] | None = None) -> None:
        """Find where the particles are, who has left, and the surface: that which there was, gone along, as far as they show it.

        ``last`` is what the step before has left, the fields of a ``LastStep``.
        """
        before = self.particles.count
        self._sort()
        if self.leaves:
            self.target -= before - self.particles.count
        if not self._gone:
            self._there.stay(self.phi)
        self._gone = False
        self._surface.find(self.particles, self.phi, self._there.phi, None if last is None else LastStep(*last))
        for shape in self._drained:
            self._sinks.open(self.phi, *shape)
        if self._drained:
            self._surface.fill_ghosts(self.phi)
        self._drained.clear()
        for walls in (self.walls, self._smooth) if self.inlets.each else ():
            walls.narrow(self.phi)

    def distance_in_cells(self):
        """The distance to the surface as far as two cells, and three beyond, in cells, in an array that others work in."""
        return self._there.widened(self.phi)

    def carry(self, velocity, dt: float) -> None:
        """Move the particles along a velocity that ``scatter`` has continued beyond the surface.

        They go straight on with what the kick makes of it, and without one with what there is halfway. ``find_surface`` is to be called when what is poured then is there too.
        """
        self.motion.seams.close(velocity, self.grid.dim)
        kicked = self.kick.kicked(velocity, dt, self._scratch.vector)
        by, part = (velocity, 0.5) if kicked is None else (kicked, 1.0)
        self.motion.seams.close(by, self.grid.dim)
        self._there.go(self.phi, by, dt, part)
        self.motion.move(self.particles, velocity, dt, kicked=kicked, keeps=self.kick.keeps, known=self._known)
        self._gone, self._known = True, False
        self.particles.scattered()
        self.core.advance(by, self.phi, dt, self._weight, part)

    def balance(self, crossed: float) -> None:
        """Have the next surface hold what the particles do; ``crossed`` is how many cells the fastest have gone since this one."""
        self._surface.balance(self.particles, self.phi, crossed)

    def gather(self, velocity, dt: float, crossed: float = 1.0) -> None:
        """Set a velocity to that of the particles around each face, and see where they crowd.

        ``crossed`` is how many cells the fastest cross in ``dt``.
        """
        self._crossed = crossed
        if self.core.cells:
            self.kick.add(velocity)
            self.core.carry(velocity)
        self._transfer.to_faces(self.particles, velocity, self._weight)
        room = self._scratch.first
        self._crowding.find(self.particles, self._weight, self.phi, velocity, self.expansion, room, dt, crossed)
        self.core.take_over(velocity, self._weight)
        self._extension.from_particles(velocity, self._weight, self.phi, FEW_LAYERS)

    @functools.cached_property
    def viscosity(self) -> Viscosity:
        """What lets friction act, made at its first use."""
        return Viscosity(self.grid, self.walls, self.solids)

    def diffuse(self, velocity, max_iterations: int) -> SolveResult:
        """Let friction act on a velocity whose sides are filled, after ``viscosity.set_up``."""
        self._spacing.restore(self.particles, self.phi, self._crossed)
        assert self.projection is not None
        room, open = self._scratch.vector, self.projection.open
        return self.viscosity.diffuse(velocity, self.phi, max_iterations, room, open, self.kick.part)

    def project(
        self,
        velocity,
        pressure,
        *,
        dt: float,
        rho: float,
        tolerance: float,
        max_iterations: int,
        tension: float = 0.0,
        again: bool = False,
    ) -> SolveResult:
        """Take the divergence off a velocity, but for what spreads crowded particles; see ``Projection.project``, ``FreeSurface.hold_back``.

        ``tension`` is that of the surface, N/m (2D: N). ``again`` for the same surface, tension does not act once more.
        """
        projection = self.prepare(getattr(self, "_method", "auto"))
        if not again:
            self.kick.force(velocity)
            projection.update(self.phi)
        if tension and not again:
            if self._tension is None:
                self._tension = SurfaceTension(self.grid, self._scratch, self.walls, self.solids)
            self._tension.find(self._there.continued(self._tension.seen(self.phi), REACH, SURE))
            scale = dt * tension / (rho * self.grid.dx)
            self._tension.press(velocity, self.phi, projection.open, projection.solver.system, scale)
        told: dict[str, Any] = {"dt": dt, "rho": rho, "tolerance": tolerance, "expansion": self.expansion}
        result = projection.project(velocity, pressure, max_iterations=max_iterations, **told)
        if self.solids is not None:
            projection.hold_back(velocity, pressure, self.phi)
        return result

    def extend(self, velocity, also=None, firm=None) -> None:
        """Continue a velocity that was projected beyond the surface, and another one with it; ``firm`` is where there are no films."""
        assert self.projection is not None
        known = self._weight, self.phi, self.projection.open, max(LAYERS, math.ceil(self._crossed + HIGHEST))
        self._extension.from_liquid(velocity, *known, also, firm)
        for each in (velocity,) if also is None else (velocity, also):
            self._smooth.fill_velocity(each, keep=True)
        self._surface.parting.let_go(velocity, velocity if also is None else also, self.phi)

    def scatter(self, velocity, flip: float | None = None) -> None:
        """Continue a velocity beyond the surface, and give the particles theirs: by APIC, or FLIP with this ratio.

        FLIP and the kick go by what has changed since ``remember``, which is to be called after ``gather``.

        Raises:
            RuntimeError: for either without that.
        """
        if self._told is None and (flip is not None or self.kick.wanted):
            raise RuntimeError("FLIP and a kick need what was before the forces: call remember(velocity) after gather")
        firm = self._transfer.find_firm(self.phi)
        kicked = self.kick.find(velocity, self._told, firm, self._surface.parting.force)
        if flip is not None:
            self._extend_told()
        self.extend(velocity, kicked, firm if flip is None else None)
        self.kick.settle(velocity)
        self._transfer.from_faces(self.particles, velocity, None if flip is None else self._told, flip or 0.0, firm)
        self.steps += 1
        self._known = flip is None
        lacking = self.lacking
        if self.core.active:
            # What leaves through an open side, or crosses a seam, has to have particles then.
            least = max(math.ceil(self._crossed), 1) + 1
            self.core.find(self.phi, self.shallow, least if self.leaves or self.motion.seams.any else 0)
            self.core.drop(self.particles)
        self._seeding.restore(self.particles, self.phi, velocity, lacking, self.steps)
        if self.leaves:
            self._sort()  # what leaves the box in the step to come is not to be made up for

    def begin_kick(self, velocity, force: Sequence[float]) -> None:
        """Begin to find the kick of a first step, by what becomes of a velocity; by ``force``, m/s², the liquid falls."""
        self._surface.parting.force = force
        self.remember(velocity)
        self.particles.place()
        self.begin(velocity)
        copy_values(self._told, velocity)

    def find_kick(self, velocity) -> None:
        """Find the kick of a first step, by what has become of a velocity since ``begin_kick``: that is undone."""
        firm = self._transfer.find_firm(self.phi)
        self.extend(velocity, self.kick.find(velocity, self._told, firm, self._surface.parting.force))
        self.kick.settle(velocity)
        copy_values(self._told, velocity)

    def _extend_told(self) -> None:
        """Continue what FLIP goes by from the same faces as the velocity; at walls it stays what particles have said, of which these take."""
        assert self.projection is not None
        copy_values(self._told, gathered := self._scratch.vector)
        self.extend(self._told)
        self._extension.restore_walls(self._told, gathered, self.projection.open)

    def remember(self, velocity) -> None:
        """Keep a velocity on the faces, for ``follow`` and for ``scatter``."""
        self._told = self.grid.velocity() if self._told is None else self._told
        copy_values(velocity, self._told)

    def follow(self, velocity) -> None:
        """Let the particles be as much faster as the faces around them have become since ``remember``."""
        self._known = False
        self._transfer.from_faces(self.particles, velocity, self._told, 1.0)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """What it is between two steps: arrays, and numbers."""
        arrays, numbers = self.particles.state()
        arrays |= {name: array.to_numpy() for name, array in self._kept().items()} | self.inlets.state()
        numbers |= {"target": self.target, "steps": self.steps, "share": self._seeding.share, "leaves": self.leaves}
        numbers |= {"pouring": sorted(self.pouring), "known": self._known, "kick": self.kick.seconds}
        numbers |= {"core": self.core.cells, "dropped": self.core.dropped} | self._crowding.state()
        if "foam" in vars(self):
            foam, numbers["foam"] = self.foam.state()
            arrays |= {f"foam/{name}": values for name, values in foam.items()}
        return arrays, numbers

    def restore_state(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> None:
        """Be what ``state`` has found.

        Raises:
            ValueError: for arrays of another grid, or some that are missing.
        """
        self._gone, self._known = False, bool(numbers.get("known", False))
        if "lift" in arrays and arrays["lift"].shape == (1,):
            arrays = {**arrays, "lift": np.repeat(arrays["lift"], 2)}  # kept before there were two
        self.core.clear()
        if "core" in arrays:
            self.core.allocate()
        if "viscosity" in vars(self) or not arrays.keys().isdisjoint(LATER):
            self.viscosity.allocate_for(arrays)
        self.kick.allocate_for(arrays)
        for name, array in self._kept().items():
            later = name in (*self.kick.kept(), *LATER) or (name == "core" and not numbers.get("core"))
            if name not in arrays and later:
                continue  # kept before there was any
            if name not in arrays or arrays[name].shape != tuple(array.shape):
                raise ValueError(f"liquid/{name} is missing, or of another grid")
            array.from_numpy(np.ascontiguousarray(arrays[name]))
        self.particles.restore_state(arrays, numbers)
        self.target, self._seeding.share = int(numbers["target"]), float(numbers["share"])
        self.steps, self.kick.seconds = int(numbers["steps"]), float(numbers.get("kick", 0.0))
        self.inlets.restore_state(arrays)
        self.leaves, self.pouring = bool(numbers.get("leaves", self.leaves)), set(numbers.get("pouring", ()))
        self._crowding.restore_state(numbers)
        self.core.cells, self.core.dropped = int(numbers.get("core", 0)), int(numbers.get("dropped", 0))
        if self.has_foam:
            self.foam.particles.clear()
        if "foam" in numbers:
            names = [name for name in arrays if name.startswith("foam/")]
            self.foam.restore_state({name.removeprefix("foam/"): arrays[name] for name in names}, numbers["foam"])

    def _kept(self) -> dict[str, Any]:
        kept = {"phi": self.phi, "expansion": self.expansion, "lift": self._surface.lift} | self.kick.kept()
        kept |= {"core": self.core.marks} if self.core.active else {}
        return kept | (self.viscosity.kept() if "viscosity" in vars(self) else {})

    def _sort(self) -> None:
        self.particles.sort()
        self.core.dropped = 0

    @property
    def _held(self) -> int:
        """How many particles there are, with those that the core would have."""
        return self.core.held_with(self.particles)

    @property
    def lacking(self) -> int:
        """Particles that there should be and are not: those that were taken away where they crowded."""
        return self.target - self._held

    @property
    def volume(self) -> float:
        """Volume of the particles and of the core, m³ (2D: m²)."""
        return self._held * self.grid.cell_volume / FULL[self.grid.dim]
