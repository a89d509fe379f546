"""The order of the step and the choice of dt. No stencil stands here."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from . import forces
from ._ti import ti
from .advection import Advection, Scheme, Trace
from .boundary import SCALAR, Walls
from .diagnostics import Diagnostics
from .diffusion import Diffusion
from .grid import Grid
from .mesh import read_triangles, sample_mesh
from .pressure.projection import Projection
from .pressure.solver import SolveResult
from .scene import AnySolid, MeshSolid, Scene
from .solids import Faces, Motion, Solid, Solids
from .sources import Emitter, decay
from .state import Quantity, State


class NotFinite(RuntimeError):
    """A quantity has become NaN or infinite; the message names it and the step."""


class Stage(NamedTuple):
    """One part of a step: a name and a function of the simulation and dt in seconds."""

    name: str
    run: Callable[["Simulation", float], None]


class Step(NamedTuple):
    """What a step says of itself.

    Attributes:
        dt: Seconds.
        pressure: How the pressure solve ended.
        stage_ms: Milliseconds of each stage by name, device work included; empty unless it was timed.
        diffusion: How each implicit diffusion ended.
    """

    dt: float
    pressure: SolveResult | None
    stage_ms: dict[str, float]
    diffusion: tuple[SolveResult, ...] = ()


class Simulation:
    """A flow that runs: the arrays of a scene and the ordered stages that make up a step.

    ``stages`` is an ordinary list: a caller inserts its own ``Stage`` between two of them. Its function may read and
    write the arrays of ``state`` with kernels of its own. Taichi must be running; the caller has called ``ti.init``.

    Attributes:
        grid: Where the cells lie.
        state: The arrays.
        walls: Fills ghosts.
        solids: What stands in the fluid, or None.
        diagnostics: Measures.
        stages: The step: solids (where there are any), advect, sources, forces, diffuse, project. The velocity that
            carries is the projected one of the step before, so that it neither compresses nor thins out what it carries.
        time: Simulated seconds.
        steps: Number of steps made.

    Args:
        scene: What to simulate.
        solids: More solids than the scene has: with shapes or motions of one's own.

    Raises:
        RuntimeError: if Taichi is not running.
        ValueError: if the grid is too large for one array.
    """

    def __init__(self, scene: Scene, solids: Sequence[Solid] = ()):
        self._scene = scene
        self.grid = Grid(scene.domain.shape, scene.domain.dx)
        self.walls = Walls(self.grid, scene.domain.sides)
        solids = [*map(_solid, scene.solids), *solids]
        self.solids = Solids(self.grid, self.walls, solids, Faces(scene.solver.faces)) if solids else None
        self.state = State(self.grid, scene)
        self.diagnostics = Diagnostics(self.grid, self.solids)
        self.time, self.steps = 0.0, 0
        self._pressure_result: SolveResult | None = None
        self._diffusion_results: list[SolveResult] = []
        self.stages = [
            *([Stage("solids", Simulation._move)] if self.solids else []),
            Stage("advect", Simulation._advect),
            Stage("sources", Simulation._emit),
            Stage("forces", Simulation._force),
            Stage("diffuse", Simulation._diffuse),
            Stage("project", Simulation._project),
        ]
        self._projection: Projection | None = None
        self._diffusion: Diffusion | None = None
        if self.solids:
            self.solids.update(0.0)
        self._build()
        self._fill_velocity()

    def _build(self) -> None:
        solver, grid, walls = self._scene.solver, self.grid, self.walls
        if self._projection is None or self._projection.method != solver.pressure:
            self._projection = Projection(grid, walls, self.state.scratch[2], solver.pressure, self.solids)
        scheme, trace = Scheme(solver.advection), Trace(solver.trace)
        self._advection = Advection(grid, walls, self.state.scratch, scheme, trace, self.solids)
        self._emitters = [
            Emitter(grid, source.shape, *source.geometry(), source.mottle, source.mottle_size)
            for source in self._scene.sources
        ]

    @property
    def scene(self) -> Scene:
        """The scene. Assign one with the same domain and carried quantities to change parameters while running."""
        return self._scene

    @scene.setter
    def scene(self, scene: Scene) -> None:
        before = self._scene
        fixed = [(s.domain, s.solids, s.solver.faces, s.carried) for s in (scene, before)]
        if fixed[0] != fixed[1]:
            raise ValueError(
                "the new scene has another domain, other solids or other quantities to carry: build a new Simulation"
            )
        self._scene = scene
        self._build()

    # Stages

    def _scalars(self) -> Iterator[tuple[Quantity, int]]:
        """Every component of every quantity at cell centres, and where it begins."""
        for quantity in self.state.carried.values():
            for k in range(quantity.components):
                yield quantity, k * self.grid.cells

    def _fill_velocity(self) -> None:
        if self.solids:
            self.solids.enforce(self.state.velocity.current)
        self.walls.fill_velocity(self.state.velocity.current)

    def _move(self, dt: float) -> None:
        # What a solid is about to leave is filled from beside it.
        assert self.solids is not None and self._projection is not None
        if self.solids.moves:
            for quantity, offset in self._scalars():
                self.solids.extend_scalar(quantity.current, offset)
            if self.solids.update(self.time + dt):
                self._projection.update()
        if self.solids.slips:
            self.solids.extend_velocity(self.state.velocity.current)
            self.walls.fill_velocity(self.state.velocity.current, keep=True)

    def _advect(self, dt: float) -> None:
        velocity = self.state.velocity
        self._advection.trace_paths(velocity.current, dt)
        for quantity, offset in self._scalars():
            self._advection.carry(quantity.current, quantity.next, SCALAR, offset, quantity.name)
        for quantity in self.state.carried.values():
            quantity.swap()
        self._advection.carry_velocity(velocity.current, velocity.next, dt)
        velocity.swap()

    def _emit(self, dt: float) -> None:
        carried = self.state.carried
        for name in carried:
            rate = self._scene.fluid.cooling if name == "temperature" else self._scene.fluid.smoke_dissipation
            if rate:
                for k in range(carried[name].components):
                    decay(self.grid, carried[name].current, rate, dt, offset=k * self.grid.cells)
        for source, emitter in zip(self._scene.sources, self._emitters, strict=True):
            if not source.active(self.time):
                continue
            for name, rates in (("smoke", [source.smoke]), ("temperature", [source.temperature]), ("dye", source.dye)):
                for k, rate in enumerate(rates):
                    if rate:
                        emitter.add(carried[name].current, rate, dt, self.time, offset=k * self.grid.cells)
            if source.velocity is not None:
                emitter.drive(self.state.velocity.current, source.velocity)
        for quantity, offset in self._scalars():
            if self.solids:
                self.solids.clear_scalar(quantity.current, offset)
            self.walls.fill(quantity.current, SCALAR, offset, quantity.name)
        self._fill_velocity()

    def _force(self, dt: float) -> None:
        fluid, grid, velocity = self._scene.fluid, self.grid, self.state.velocity.current
        if fluid.confinement:
            forces.add_confinement(grid, self.walls, velocity, fluid.confinement, dt, self.state.scratch)
        for name, coefficient in (("temperature", -fluid.expansion), ("smoke", fluid.smoke_weight)):
            if coefficient and name in self.state.carried:
                scalar = self.state.carried[name].current
                forces.add_buoyancy(grid, velocity, scalar, self._scene.gravity, coefficient, dt)
        if fluid.body_force is not None:
            forces.accelerate(grid, velocity, fluid.body_force, dt)
        self._fill_velocity()

    def _diffuse(self, dt: float) -> None:
        fluid = self._scene.fluid
        scalars = {"smoke": fluid.smoke_diffusion, "dye": fluid.smoke_diffusion, "temperature": fluid.heat_diffusion}
        if not fluid.viscosity and not any(scalars[name] for name in self.state.carried):
            return
        if self._diffusion is None:
            self._diffusion = Diffusion(self.grid, self.walls, solids=self.solids)
        self._diffusion.max_iterations = self._scene.solver.max_iterations
        results = self._diffusion_results
        if fluid.viscosity:
            results += self._diffuse_velocity(dt)
        for quantity, offset in self._scalars():
            result = self._diffusion.diffuse(
                quantity.current, scalars[quantity.name], dt, SCALAR, offset, quantity.name
            )  # fmt: skip
            results += [result] if result else []

    def _diffuse_velocity(self, dt: float) -> list[SolveResult]:
        """Diffuse without what the pressure is about to take off, as far as that is known.

        Else a heavy fluid at rest, accelerated by gravity and not yet held by the pressure, would rub against its walls.
        """
        assert self._projection is not None and self._diffusion is not None
        velocity, pressure = self.state.velocity, self.state.pressure
        if self.steps == 0:
            velocity.next.copy_from(velocity.current)
            self._project_velocity(velocity.next, dt)
        scale = dt / (self._scene.fluid.rho * self.grid.dx)
        self._projection.subtract_gradient(velocity.current, pressure, scale)
        self._fill_velocity()
        results = self._diffusion.diffuse_velocity(velocity.current, self._scene.fluid.viscosity, dt)
        self._projection.subtract_gradient(velocity.current, pressure, -scale)
        self._fill_velocity()
        return results

    def _project(self, dt: float) -> None:
        self._pressure_result = self._project_velocity(self.state.velocity.current, dt)

    def _project_velocity(self, velocity, dt: float) -> SolveResult:
        solver = self._scene.solver
        assert self._projection is not None
        return self._projection.project(
            velocity,
            self.state.pressure,
            dt=dt,
            rho=self._scene.fluid.rho,
            tolerance=solver.tolerance,
            max_iterations=solver.max_iterations,
        )

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
        for source in self._scene.sources:
            if source.velocity is not None and source.active(self.time):
                speed = max(speed, *map(abs, source.velocity))
        for pair in self.walls.sides:
            for side in pair:
                speed = max(speed, *map(abs, side.velocity)) if side.velocity else speed
        if self.solids:
            # What a solid uncovers is filled one cell deep.
            speed = max(speed, max(solver.cfl, 1.0) * self.solids.fastest)
        return min(solver.max_dt, solver.cfl * self.grid.dx / speed if speed > 0 else math.inf)

    def step(self, dt: float | None = None, timed: bool = False) -> Step:
        """Advance by one step.

        Args:
            dt: Seconds; left out, ``stable_dt`` chooses.
            timed: Measure each stage, waiting for the device after it.

        Raises:
            NotFinite: if a quantity is NaN or infinite when the step begins.
            RuntimeError: if Taichi was re-initialised since this simulation was built.
        """
        speed = self.check()
        dt = self.stable_dt(speed) if dt is None else dt
        if not (math.isfinite(dt) and dt > 0):
            raise ValueError(f"dt is {dt}; it must be a positive number of seconds")
        return self._run_stages(dt, timed)

    def _run_stages(self, dt: float, timed: bool) -> Step:
        stage_ms = {}
        self._pressure_result, self._diffusion_results = None, []
        for stage in list(self.stages):
            start = time.perf_counter()
            stage.run(self, dt)
            if timed:
                ti.sync()
                stage_ms[stage.name] = 1e3 * (time.perf_counter() - start)
        self.time += dt
        self.steps += 1
        return Step(dt, self._pressure_result, stage_ms, tuple(self._diffusion_results))

    def advance(self, duration: float, timed: bool = False) -> list[Step]:
        """Advance by ``duration`` seconds and land on it.

        Steps are as many as stability asks for, all but equal; with a fixed ``solver.dt`` whole ones and a shorter last.

        Raises:
            ValueError: if the duration is not a number of seconds from 0 up.
            NotFinite: as ``step`` does.
        """
        if not (math.isfinite(duration) and duration >= 0):
            raise ValueError(f"duration is {duration}; it must be a number of seconds, 0 or more")
        done, steps = 0.0, []
        while done < duration * (1 - 1e-9):
            remaining, stable = duration - done, self.stable_dt(self.check())
            if self._scene.solver.dt is not None:
                dt = min(stable, remaining)
            else:
                dt = remaining / max(math.ceil(remaining / stable * (1 - 1e-9)), 1)
            steps.append(self._run_stages(dt, timed))
            done += steps[-1].dt
        return steps

    def to_numpy(self, name: str) -> np.ndarray:
        """Values of ``"pressure"`` or of a carried quantity, shaped; ``"velocity"`` on lower faces, ``(dim, *shape)``.

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
