"""The order of the step and the choice of dt. No stencil stands here."""

import itertools
import math
import time
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .. import backend
from .._ti import ti
from ..boundaries.mesh import read_triangles, sample_mesh
from ..boundaries.solids import Faces, Motion, Solid, Solids
from ..boundaries.walls import SCALAR, Walls
from ..grid import Grid
from ..physics import forces
from ..physics.advection import Advection, Scheme, Trace
from ..physics.combustion import Flame, radiate
from ..physics.diffusion import Diffusion
from ..physics.sources import Emitter, dab_over_stroke, decay, fade
from ..pressure.projection import Projection
from ..pressure.solver import SolveResult
from ..pressure.spectral import AUTO
from ..scene import AnySolid, MeshSolid, Scene
from ..scene.pictures import QUANTITIES, PictureError, cell_amounts, checked_pixels, picture_bounds, require_touch
from .diagnostics import Diagnostics, Divergence
from .flow import Flow, Step
from .state import Quantity, State

_SWEEPS = "gauss-seidel"
"""What the sweeps are that ``solver.sweeps`` counts: they need no other room."""

_LARGEST = 1e6
"""Of the numbers of a stroke: those of a scene reach no further."""


class NotFinite(RuntimeError):
    """A quantity has become NaN or infinite; the message names it and the step."""


class Stage(NamedTuple):
    """One stage of a step: a name and a function of the simulation and dt in seconds.

    A function that takes long may be a generator function: where it yields, a step that is made a part at a time stops
    and lets its caller do something else; see ``Simulation.stepping``.
    """

    name: str
    run: Callable[["Simulation", float], Iterator[None] | None]


class _Underway(NamedTuple):
    """Which stage a step is in that has begun and not ended; of two steps that are alike, one is still not the other."""

    stage: str


class PressureSolver(NamedTuple):
    """What solves the pressure.

    Attributes:
        asked: ``solver.pressure`` of the scene, or ``"sweeps"`` where ``solver.sweeps`` says how many.
        used: What solves.
        reason: Why not the direct solve, where that or ``"auto"`` is asked for: the end of a sentence; else empty.
    """

    asked: str
    used: str
    reason: str

    @property
    def sentence(self) -> str:
        """What a run says where another solver stands in for the one that the scene names; empty where none does."""
        if not self.reason or self.asked == AUTO:
            return ""
        return f"solver.pressure is {self.asked}, for which {self.used} stands in: {self.reason}."


class Simulation(Flow):
    """A flow that runs: the arrays of a scene and the ordered stages that make up a step.

    ``stages`` is an ordinary list: a caller inserts its own ``Stage`` between two of them. Its function may read and
    write the arrays of ``state`` with kernels of its own. Taichi must be running; the caller has called ``ti.init``.

    Attributes:
        grid: Where the cells lie.
        state: The arrays.
        walls: Fills ghosts.
        solids: What stands in the fluid, or None.
        diagnostics: Measures.
        stages: The step. On the staggered grid: solids (where there are any), advect, sources, burn, forces, diffuse,
            project. The velocity that carries is the projected one of the step before, so that it neither compresses nor
            thins out what it carries, but where something expands. On the collocated grid, as Stam (2003) has it:
            sources, burn, forces, diffuse, project, advect, project again, carry; the last diffuses and moves what the
            velocity of this step carries.
        flame: What burns, and what expands; None before anything has.
        expansion: The divergence that the last step prescribed, 1/s at cell centres; None where nothing expands.
        time: Simulated seconds.
        steps: Number of steps made.

    Args:
        scene: What to simulate.
        solids: More solids than the scene has: with shapes or motions of one's own.

    Warns:
        UserWarning: once in a process, if Taichi runs on a Vulkan driver that computes on the processor.

    Raises:
        RuntimeError: if Taichi is not running.
        ValueError: if the grid is too large for one array.
        PictureError: if a file of the scene's pictures has gone since the scene was checked.
    """

    def __init__(self, scene: Scene, solids: Sequence[Solid] = ()):
        self._scene = scene
        self._underway: _Underway | None = None
        self._pixels = [picture.pixels for picture in scene.pictures]
        self.grid = Grid(scene.domain.shape, scene.domain.dx, collocated=scene.domain.grid == "collocated")
        self.walls = Walls(self.grid, scene.domain.sides)
        solids = [*map(_solid, scene.solids), *solids]
        if solids and self.grid.collocated:
            raise ValueError("domain.grid is 'collocated', which holds no solids: they need the staggered grid")
        self.solids = Solids(self.grid, self.walls, solids, Faces(scene.solver.faces)) if solids else None
        self.state = State(self.grid, scene)
        self.diagnostics = Diagnostics(self.grid, self.solids)
        self.stages = list(_COLLOCATED_STEP if self.grid.collocated else _STAGGERED_STEP)
        if self.solids:
            self.stages.insert(0, Stage("solids", Simulation._move))
        backend.warn_of_software()
        self._start()

    def _start(self) -> None:
        """Begin at time 0, with all arrays 0 but for what the scene's pictures bring."""
        self.time, self.steps = 0.0, 0
        self._pressure_result: SolveResult | None = None
        self._diffusion_results: list[SolveResult] = []
        self._projection: Projection | None = None
        self._diffusion: Diffusion | None = None
        self.flame: Flame | None = None
        self.expansion = None
        if self.solids:
            self.solids.update(0.0)
        self._build(None)
        self._fill_velocity()
        for picture, pixels in zip(self._scene.pictures, self._pixels, strict=True):
            self.paint_picture(
                pixels, picture.center, picture.width, picture.quantity, picture.colour, picture.amount
            )  # fmt: skip

    def _build(self, before: Scene | None) -> None:
        """Build what hangs on values that the scene ``before`` had otherwise; without one, all of it."""
        scene, grid, walls = self._scene, self.grid, self.walls
        solver, old = scene.solver, before.solver if before else None
        method = solver.pressure if solver.sweeps is None else _SWEEPS
        if old is None or method != (old.pressure if old.sweeps is None else _SWEEPS):
            # Arrays that the device still works with are not freed on every backend.
            ti.sync()
            self._projection = Projection(grid, walls, self.state.scratch, method, self.solids)
        if old is None or (solver.advection, solver.trace) != (old.advection, old.trace):
            scheme, trace = Scheme(solver.advection), Trace(solver.trace)
            self._advection = Advection(grid, walls, self.state.scratch, scheme, trace, self.solids)
        if before is None or scene.sources != before.sources:
            self._emitters = [
                Emitter(grid, source.shape, *source.geometry(), source.mottle, source.mottle_size, walls.periodic)
                for source in scene.sources
            ]

    @property
    def pressure_solver(self) -> PressureSolver:
        """What solves the pressure, and why it is not what the scene asks for."""
        assert self._projection is not None
        if self._scene.solver.sweeps is not None:
            return PressureSolver("sweeps", "sweeps", "")
        return PressureSolver(self._scene.solver.pressure, self._projection.solver.method, self._projection.hindrance)

    @property
    def scene(self) -> Scene:
        """The scene. Assign another to change parameters while running, between two parts of a step if need be.

        Its domain, solids and ``solver.faces`` must be the same; ValueError says which are not. What its sources bring
        in for the first time is carried from then on; what they no longer bring in moves on and fades. Its pictures
        are laid in by the next ``reset``.
        """
        return self._scene

    @scene.setter
    def scene(self, scene: Scene) -> None:
        before = self._scene
        same = {
            "domain": scene.domain == before.domain,
            "solids": scene.solids == before.solids,
            "solver.faces": scene.solver.faces == before.solver.faces,
        }
        if not all(same.values()):
            others = ", ".join(name for name in same if not same[name])
            raise ValueError(f"the new scene differs in {others}, which a running flow cannot change: build a new one")
        pixels = self._pixels
        if scene.pictures != before.pictures:
            pixels = [picture.pixels for picture in scene.pictures]
        self.state.add(scene.carried)
        self._scene = scene
        try:
            self._build(before)
        except BaseException:  # no room for another solver: the old one goes on
            self._scene = before
            raise
        self._pixels = pixels

    def reset(self) -> None:
        """Back to time 0, to what a new Simulation of the present scene would be; ``stages`` stay as they are.

        So do quantities of one's own, with nothing in them.

        It may be called in the middle of a step that ``stepping`` makes, after one that broke off, or after something
        has become NaN: drop that step, and begin another.
        """
        self.grid.require_runtime()
        # What is dropped here is freed on every backend only if the device no longer works with it.
        ti.sync()
        self.state.reset(self._scene.carried)
        # Solvers remember directions, which may have become NaN: new ones know nothing.
        self._start()
        self._underway = None

    def clear(self) -> None:
        """Take away all that is carried; the flow goes on. Solids and time stay as they are."""
        self.grid.require_runtime()
        for quantity in self.state.carried.values():
            quantity.clear()
        self._fill_scalars()

    def place_solids(self, time: float) -> None:
        """Put the solids where they are at ``time``, s, and let the projection know."""
        assert self._projection is not None
        if self.solids and self.solids.update(time):
            self._projection.update()

    def paint(
        self, a: Sequence[float], b: Sequence[float], radius: float, velocity: Sequence[float] | None = None,
        smoke: float | None = None, dye: Sequence[float] | None = None, temperature: float | None = None,
        fuel: float | None = None, add: bool = False,
    ) -> None:  # fmt: skip
        """Paint a stroke into the flow; between two steps, not in the middle of one.

        Carried quantities are raised to what is given, in part where the stroke covers a cell in part, so that a
        stroke painted twice is the same stroke. A quantity that is not carried, and what lies outside the box or in a
        solid, is left out.

        With ``add`` what is given is added, so that strokes pile up. What a dab would bring in a longer stroke spreads
        over all that it covers: a drag leaves the same sum in however many strokes it is cut, if their amounts are in
        proportion to their time.

        Args:
            a: Where the stroke begins, m.
            b: Where it ends, m; the same place makes a dab.
            radius: Half its width, m.
            velocity: What the fluid under it is driven to, or with ``add`` made faster by, m/s.
            smoke: Smoke.
            dye: Red, green and blue.
            temperature: K above ambient.
            fuel: Fuel.
            add: Whether to add.

        Raises:
            ValueError: for numbers that are none, too large or too many, naming them.
        """
        dim, cells = self.grid.dim, self.grid.cells
        if not 0 < radius <= _LARGEST:
            raise ValueError(f"radius is {radius}; it must be a positive number of metres, {_LARGEST:g} at most")
        a, b = _numbers("a", a, dim), _numbers("b", b, dim)
        emitter = Emitter(self.grid, "capsule", a, b, radius, periodic=self.walls.periodic)
        share = dab_over_stroke(a, b, radius)
        target = None if velocity is None else _numbers("velocity", velocity, dim)
        given = {"smoke": smoke, "temperature": temperature, "dye": dye, "fuel": fuel}
        paints = {
            name: _numbers(name, value, 3) if name == "dye" else _numbers(name, [value], 1)
            for name, value in given.items()
            if value is not None
        }
        for name, amounts in paints.items():
            if name in self.state.carried:
                array = self.state.carried[name].current
                for k, amount in enumerate(amounts):
                    if add:
                        emitter.add(array, share * amount, 1.0, offset=k * cells)
                    else:
                        emitter.paint(array, amount, offset=k * cells)
        self._fill_scalars()
        if target is not None:
            if add:
                emitter.push(self.state.velocity.current, [share * x for x in target])
            else:
                emitter.drive(self.state.velocity.current, target)
            self._fill_velocity(keep=True)

    def paint_picture(
        self, pixels: np.ndarray, center: Sequence[float], width: float, quantity: str = "dye",
        colour: Sequence[float] = (1.0, 1.0, 1.0), amount: float = 1.0,
    ) -> None:  # fmt: skip
        """Paint a picture into a 2D flow; between two steps, not in the middle of one.

        The quantity is raised to what the picture brings into each cell, so that a picture painted twice is the same
        picture, and pictures that overlap mix. It is carried from now on if it was not, until ``reset``. What lies
        outside the box or in a solid is left out. See ``pictures`` for what pixels mean, for files and for text.

        Args:
            pixels: ``(h, w)``, coverage; ``(h, w, 3)``, red, green and blue; or ``(h, w, 4)``, with opacity. Row 0 on
                top; bytes, or floats from 0 to 1.
            center: Where its middle comes to lie, m.
            width: Its width, m; its height follows from its shape.
            quantity: ``"dye"``, ``"smoke"`` or ``"temperature"``.
            colour: Red, green and blue from 0 to 1: the dye's where ``pixels`` are coverage, else a tint.
            amount: What lies where the picture is full: dye or smoke, or K above ambient.

        Raises:
            ValueError: for a box of three axes, pixels that are no picture, a quantity that no picture is painted in,
                numbers that are none or too large, or a picture that lies outside the box, naming them.
        """
        if self.grid.dim != 2:
            raise PictureError(f"the box has {self.grid.dim} axes; a picture is painted into one of 2 axes")
        if quantity not in QUANTITIES:
            raise PictureError(f"quantity is {quantity!r}; it must be one of {', '.join(QUANTITIES)}")
        pixels, center = checked_pixels(pixels), _numbers("center", center, 2)
        if not 0 < width <= _LARGEST:
            raise PictureError(f"width is {width}; it must be a positive number of metres, {_LARGEST:g} at most")
        if not 0 <= amount <= _LARGEST:
            raise PictureError(f"amount is {amount}; it must be from 0 to {_LARGEST:g}")
        colour = _numbers("colour", colour, 3)
        if not all(0 <= channel <= 1 for channel in colour):
            raise PictureError(f"colour is {list(colour)}; each of its numbers must be from 0 to 1")
        require_touch(*picture_bounds(pixels.shape, center, width), self._scene.domain.size, "the picture")
        self.state.add({quantity: QUANTITIES[quantity]})
        cells, amounts = cell_amounts(pixels, center, width, quantity, colour, self.grid.shape, self.grid.dx)
        array = self.state.carried[quantity].current
        values = self.grid.to_numpy(array).reshape(-1, *self.grid.shape)
        painted = values[(slice(None), *cells)]
        np.maximum(painted, amount * amounts, out=painted, casting="same_kind")
        self.grid.from_numpy(array, values if len(values) > 1 else values[0])
        self._fill_scalars()

    # Stages

    def _scalars(self) -> Iterator[tuple[Quantity, int]]:
        """Every component of every quantity at cell centres, and where it begins."""
        for quantity in self.state.carried.values():
            for k in range(quantity.components):
                yield quantity, k * self.grid.cells

    def _fill_scalars(self) -> None:
        for quantity, offset in self._scalars():
            if self.solids:
                self.solids.clear_scalar(quantity.current, offset)
            self.walls.fill(quantity.current, SCALAR, offset, quantity.name)

    def _fill_velocity(self, keep: bool = False) -> None:
        if self.solids:
            self.solids.enforce(self.state.velocity.current)
        self.walls.fill_velocity(self.state.velocity.current, keep=keep)

    def fill(self) -> None:
        """Make velocity and carried quantities heed sides and solids: nothing inside solids, and all ghosts filled.

        For a caller who has written the arrays between two steps. Faces on open sides stay as they are.
        """
        self.grid.require_runtime()
        self._fill_scalars()
        self._fill_velocity(keep=True)

    def _move(self, dt: float) -> None:
        # What a solid is about to leave is filled from beside it.
        assert self.solids is not None
        if self.solids.moves:
            for quantity, offset in self._scalars():
                self.solids.extend_scalar(quantity.current, offset)
            self.place_solids(self.time + dt)
        if self.solids.slips:
            self.solids.extend_velocity(self.state.velocity.current)
            self.walls.fill_velocity(self.state.velocity.current, keep=True)

    def _advect(self, dt: float) -> Iterator[None]:
        # The same to the end, as between two parts a new scene may bring in another.
        advection = self._advection
        yield from self._advect_scalars(dt, advection, faces=advection.shares_paths)
        yield from self._advect_velocity(dt, advection, traced=advection.shares_paths)

    def _advect_alone(self, dt: float) -> Iterator[None]:
        """Carry the velocity and nothing else: on the collocated grid, which projects once more after it."""
        yield from self._advect_velocity(dt, self._advection)

    def _advect_scalars(self, dt: float, advection: Advection, faces: bool = False) -> Iterator[None]:
        if self.expansion is not None:
            self._thin_out(dt)
        velocity = self.state.velocity
        advection.trace_paths(velocity.current, dt, faces=faces, departure=velocity.next)
        yield
        # A list, as between two parts a new scene may bring in more.
        for quantity in list(self.state.carried.values()):
            for k in range(quantity.components):
                advection.carry(
                    quantity.current, quantity.next, SCALAR, k * self.grid.cells, quantity.name
                )  # fmt: skip
            quantity.swap()
            yield

    def _thin_out(self, dt: float) -> None:
        """Make room for the volume that the velocity which is about to carry makes on the way."""
        assert self.flame is not None
        for quantity, offset in self._scalars():
            if quantity.name != "temperature":
                self.flame.dilute(quantity.current, dt, offset)
        self._fill_scalars()

    def _advect_velocity(self, dt: float, advection: Advection, traced: bool = False) -> Iterator[None]:
        velocity = self.state.velocity
        if not traced:
            advection.trace_paths(velocity.current, dt, faces=True, departure=velocity.next)
            yield
        out = velocity.current if advection.in_place else velocity.next
        for axis in range(self.grid.dim):
            advection.carry(velocity.current, out, axis, axis * self.grid.cells)
            yield
        if not advection.in_place:
            velocity.swap()

    def _emit(self, dt: float) -> None:
        carried, fluid = self.state.carried, self._scene.fluid
        for quantity, offset in self._scalars():
            fades = quantity.name in ("smoke", "dye")
            rate = fluid.cooling if quantity.name == "temperature" else fluid.smoke_dissipation if fades else 0.0
            if rate:
                decay(self.grid, quantity.current, rate, dt, offset)
            if fluid.smoke_fade and fades:
                fade(self.grid, quantity.current, fluid.smoke_fade, dt, offset)
        driven = fluid.velocity_fade > 0
        if driven:
            for axis in range(self.grid.dim):
                fade(self.grid, self.state.velocity.current, fluid.velocity_fade, dt, axis * self.grid.cells)
        for source, emitter in zip(self._scene.sources, self._emitters, strict=True):
            if not source.active(self.time):
                continue
            given = {"smoke": [source.smoke], "temperature": [source.temperature], "dye": source.dye}
            for name, rates in {**given, "fuel": [source.fuel]}.items():
                for k, rate in enumerate(rates):
                    if rate:
                        emitter.add(carried[name].current, rate, dt, self.time, offset=k * self.grid.cells)
            if source.velocity is not None:
                emitter.drive(self.state.velocity.current, source.velocity)
                driven = True
        self._fill_scalars()
        # Advection left all ghosts filled, but on faces that solids close what it carried there.
        if driven or self.solids:
            self._fill_velocity()

    def _burn(self, dt: float) -> None:
        scene, carried = self._scene, self.state.carried
        burns = scene.combustion.burn_rate > 0 and "fuel" in carried
        if burns or scene.expands:
            self.light().begin()
        self.expansion = self.flame.expansion if self.flame and scene.expands else None
        if burns:
            assert self.flame is not None
            smoke = carried["smoke"].current if "smoke" in carried else None
            self.flame.burn(
                carried["fuel"].current, carried["temperature"].current, smoke, dt, **scene.combustion.model_dump()
            )
        if self.expansion is not None:
            self._blast()
        radiates = scene.fluid.radiation > 0 and "temperature" in carried
        if radiates:
            radiate(self.grid, carried["temperature"].current, scene.fluid.radiation, dt)
        if burns or radiates:
            self._fill_scalars()

    def _blast(self) -> None:
        """Add the blasts of sources to the divergence that burning prescribes."""
        assert self.flame is not None
        for source, emitter in zip(self._scene.sources, self._emitters, strict=True):
            if source.blast and source.active(self.time):
                emitter.add(self.flame.growth, source.blast, 1.0, self.time)
        self.flame.finish()

    def _force(self, dt: float) -> None:
        fluid, grid, velocity = self._scene.fluid, self.grid, self.state.velocity.current
        if fluid.confinement:
            room = (self.state.scratch.vector, self.state.velocity.next, self.state.scratch.first)
            forces.add_confinement(grid, self.walls, velocity, fluid.confinement, dt, room)
        for name, coefficient in (("temperature", -fluid.expansion), ("smoke", fluid.smoke_weight)):
            if coefficient and name in self.state.carried:
                scalar = self.state.carried[name].current
                forces.add_buoyancy(grid, velocity, scalar, self._scene.gravity, coefficient, dt)
        if fluid.body_force is not None:
            forces.accelerate(grid, velocity, fluid.body_force, dt)
        self._fill_velocity()

    def _diffuse(self, dt: float) -> Iterator[None]:
        if self._scene.fluid.viscosity:
            self._diffusion_results += self._diffuse_velocity(dt)
            yield
        yield from self._diffuse_scalars(dt)

    def _diffuse_alone(self, dt: float) -> None:
        """Diffuse the velocity as it is: on the collocated grid, where its projection follows."""
        velocity, viscosity = self.state.velocity.current, self._scene.fluid.viscosity
        self._diffusion_results += self._make_diffusion().diffuse_velocity(velocity, viscosity, dt)

    def _carry(self, dt: float) -> Iterator[None]:
        yield from self._diffuse_scalars(dt)
        yield from self._advect_scalars(dt, self._advection)

    def _make_diffusion(self) -> Diffusion:
        solver = self._scene.solver
        if self._diffusion is None or (self._diffusion.sweeps is None) != (solver.sweeps is None):
            ti.sync()  # what is dropped here may be in use
            self._diffusion = Diffusion(self.grid, self.walls, solids=self.solids, sweeps=solver.sweeps)
        self._diffusion.max_iterations, self._diffusion.sweeps = solver.max_iterations, solver.sweeps
        return self._diffusion

    def _diffuse_scalars(self, dt: float) -> Iterator[None]:
        fluid = self._scene.fluid
        rates = dict.fromkeys(("smoke", "dye", "fuel"), fluid.smoke_diffusion) | {"temperature": fluid.heat_diffusion}
        if not any(rates.get(name) for name in self.state.carried):
            return
        diffusion = self._make_diffusion()
        for quantity, offset in list(self._scalars()):
            rate = rates.get(quantity.name, 0.0)
            result = diffusion.diffuse(quantity.current, rate, dt, SCALAR, offset, quantity.name)
            if result:
                self._diffusion_results.append(result)
                yield

    def _diffuse_velocity(self, dt: float) -> list[SolveResult]:
        """Diffuse without what the pressure is about to take off, as far as that is known.

        Else a heavy fluid at rest, accelerated by gravity and not yet held by the pressure, would rub against its walls.
        """
        assert self._projection is not None
        velocity, pressure = self.state.velocity, self.state.pressure
        if self.steps == 0:
            velocity.next.copy_from(velocity.current)
            self._project_velocity(velocity.next, dt)
        scale = dt / (self._scene.fluid.rho * self.grid.dx)
        self._projection.subtract_gradient(velocity.current, pressure, scale)
        self._fill_velocity()
        results = self._make_diffusion().diffuse_velocity(velocity.current, self._scene.fluid.viscosity, dt)
        self._projection.subtract_gradient(velocity.current, pressure, -scale)
        self._fill_velocity()
        return results

    def _project(self, dt: float) -> None:
        self.walls.slow_inflow(self.state.velocity.current, dt)
        self._pressure_result = self._project_velocity(self.state.velocity.current, dt)

    def _project_velocity(self, velocity, dt: float) -> SolveResult:
        solver = self._scene.solver
        assert self._projection is not None
        if self.grid.collocated:
            # Two different pressures in each step: neither is a good guess of the other.
            self.state.pressure.fill(0.0)
        return self._projection.project(
            velocity,
            self.state.pressure,
            dt=dt,
            rho=self._scene.fluid.rho,
            tolerance=solver.tolerance,
            max_iterations=solver.max_iterations,
            sweeps=solver.sweeps,
            expansion=self.expansion,
        )

    # Measuring

    @property
    def burnt(self) -> float:
        """Integral over the box of all fuel burnt so far, in units of fuel times m³ (2D: m²); one number read back."""
        return self.flame.burnt if self.flame else 0.0

    @burnt.setter
    def burnt(self, amount: float) -> None:
        if amount or self.flame:
            self.light().burnt = amount

    def light(self) -> Flame:
        """The flame, built at its first use."""
        if self.flame is None:
            self.flame = Flame(self.grid, self.solids)
        return self.flame

    def divergence(self) -> Divergence:
        """Divergence that the velocity has left, beside what a flame or a blast prescribes."""
        return self.diagnostics.divergence(self.state.velocity.current, self.expansion)

    # Running

    def check(self) -> float:
        """Largest velocity component, m/s, after checking on the device that everything is finite.

        It runs before advection, whose limiter and whose clamp to the box would turn a NaN into a plausible number.

        Raises:
            NotFinite: names the quantity and the step.
        """
        self.grid.require_runtime()
        speed = 0.0
        for quantity in self.state.quantities():
            largest = self.diagnostics.largest_magnitude(quantity.current)
            if not math.isfinite(largest):
                raise NotFinite(
                    f"{quantity.name} is not finite after step {self.steps} (t = {self.time:.4g} s): "
                    "a smaller time step (solver.cfl, solver.max_dt) or weaker sources may help."
                )
            if quantity is self.state.velocity:
                speed = largest
        return speed

    def stable_dt(self, speed: float) -> float:
        """Time step in seconds: the scene's own if it has one, else from its CFL number and ``speed`` in m/s."""
        solver = self._scene.solver
        if solver.dt is not None:
            return solver.dt
        speed = self._fastest(speed)
        return min(solver.max_dt, solver.cfl * self.grid.dx / speed if speed > 0 else math.inf)

    def _fastest(self, speed: float) -> float:
        for source in self._scene.sources:
            if source.velocity is not None and source.active(self.time):
                speed = max(speed, *map(abs, source.velocity))
        for pair in self.walls.sides:
            for side in pair:
                speed = max(speed, *map(abs, side.velocity)) if side.velocity else speed
        if self.solids:
            # What a solid uncovers is filled one cell deep.
            speed = max(speed, max(self._scene.solver.cfl, 1.0) * self.solids.fastest)
        return speed

    def require_whole(self) -> None:
        """Raise RuntimeError if a step has begun that did not come to its end; ``reset`` puts an end to it."""
        if self._underway is not None:
            raise RuntimeError(
                f"the step from t = {self.time:.4g} s did not come to its end: it stands, or broke off, in stage "
                f"{self._underway.stage!r}, with some quantities moved on and others not. Finish it, or call reset()."
            )

    def _run_stages(self, dt: float, timed: bool) -> Generator[None, None, Step]:
        stage_ms = {}
        self._pressure_result, self._diffusion_results = None, []
        for stage in list(self.stages):
            here = self._underway = _Underway(stage.name)
            seconds, start = 0.0, time.perf_counter()
            for _ in self._parts(stage, dt):
                if timed:
                    ti.sync()
                    seconds += time.perf_counter() - start
                yield
                if self._underway is not here:
                    raise RuntimeError(f"a reset has put an end to this step in stage {stage.name!r}: begin another.")
                start = time.perf_counter()
            if timed:
                stage_ms[_free_name(stage.name, stage_ms)] = 1e3 * seconds
        self._underway = None
        self.time += dt
        self.steps += 1
        return Step(dt, self._pressure_result, stage_ms, tuple(self._diffusion_results))

    def _parts(self, stage: Stage, dt: float) -> Iterator[None]:
        """Run one stage; yields after each of its parts, the last included."""
        parts = stage.run(self, dt)
        if isinstance(parts, Generator):
            yield from parts
        yield

    def to_numpy(self, name: str) -> np.ndarray:
        """Values of ``"pressure"`` or of a carried quantity, shaped; ``"velocity"`` where it lies, ``(dim, *shape)``.

        With solids, ``"fluid"`` is 0 in cells that they fill and 1 elsewhere.
        """
        if name == "pressure":
            return self.grid.to_numpy(self.state.pressure)
        if name == "fluid" and self.solids:
            return self.grid.to_numpy(self.solids.fluid)
        for quantity in self.state.quantities():
            if quantity.name == name:
                return self.grid.to_numpy(quantity.current)
        known = ", ".join(["pressure", *(quantity.name for quantity in self.state.quantities())])
        raise KeyError(f"there is no quantity {name!r} here; there are {known}")


_STAGGERED_STEP = (
    Stage("advect", Simulation._advect),
    Stage("sources", Simulation._emit),
    Stage("burn", Simulation._burn),
    Stage("forces", Simulation._force),
    Stage("diffuse", Simulation._diffuse),
    Stage("project", Simulation._project),
)

_COLLOCATED_STEP = (
    Stage("sources", Simulation._emit),
    Stage("burn", Simulation._burn),
    Stage("forces", Simulation._force),
    Stage("diffuse", Simulation._diffuse_alone),
    Stage("project", Simulation._project),
    Stage("advect", Simulation._advect_alone),
    Stage("project again", Simulation._project),
    Stage("carry", Simulation._carry),
)


def _free_name(name: str, taken: Container[str]) -> str:
    """The name, or with the first number from 2 on that makes it another than those taken."""
    names = itertools.chain([name], (f"{name} {count}" for count in itertools.count(2)))
    return next(each for each in names if each not in taken)


def _numbers(name: str, values: Sequence[float], count: int) -> tuple[float, ...]:
    numbers = tuple(map(float, values))
    if len(numbers) != count or not all(abs(x) <= _LARGEST for x in numbers):
        each = "one number" if count == 1 else f"{count} numbers"
        raise ValueError(f"{name} is {list(numbers)}; it must be {each} of at most {_LARGEST:g} in size")
    return numbers


def _solid(config: AnySolid) -> Solid:
    """A solid of a scene."""
    a, b, radius = config.geometry()
    motion = Motion(
        tuple(config.pivot or config.middle), config.velocity or (), config.swing or (), config.swing_period,
        config.spin if any(config.spin) else (),
    )  # fmt: skip
    end = math.inf if config.end is None else config.end
    shape = config.shape
    if isinstance(config, MeshSolid):
        shape = sample_mesh(read_triangles(config.file), config.size, config.points)
    return Solid(shape, tuple(a), tuple(b), radius, motion, config.slip, config.begin, end)
