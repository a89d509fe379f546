"""The order of the step and the choice of dt. No stencil stands here."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from . import forces
from ._ti import ti
from .advection import Advection, Scheme, Trace
from .boundary import SCALAR, Boundary, Walls
from .diagnostics import Diagnostics
from .diffusion import Diffusion
from .grid import Grid
from .pressure.krylov import SolveResult
from .pressure.projection import Projection
from .scene import Scene
from .sources import Emitter, decay
from .state import State


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
        diagnostics: Measures.
        stages: The step: advect, sources, forces, diffuse, project. The velocity that carries is the projected one of
            the step before, so that it neither compresses nor thins out what it carries.
        time: Simulated seconds.
        steps: Number of steps made.

    Args:
        scene: What to simulate.

    Raises:
        RuntimeError: if Taichi is not running.
        ValueError: if the grid is too large for one array.
    """

    def __init__(self, scene: Scene):
        self._scene = scene
        self.grid = Grid(scene.domain.shape, scene.domain.dx)
        self.walls = Walls(self.grid, [[Boundary(kind) for kind in pair] for pair in scene.domain.sides])
        self.state = State(self.grid, scene)
        self.diagnostics = Diagnostics(self.grid)
        self.time, self.steps = 0.0, 0
        self._pressure_result: SolveResult | None = None
        self._diffusion_results: list[SolveResult] = []
        self.stages = [
            Stage("advect", Simulation._advect),
            Stage("sources", Simulation._emit),
            Stage("forces", Simulation._force),
            Stage("diffuse", Simulation._diffuse),
            Stage("project", Simulation._project),
        ]
        self._projection: Projection | None = None
        self._diffusion: Diffusion | None = None
        self._build()

    def _build(self) -> None:
        solver, grid = self._scene.solver, self.grid
        preconditioner = "multigrid" if solver.pressure == "multigrid-cg" else "diagonal"
        if self._projection is None or self._projection.preconditioner != preconditioner:
            self._projection = Projection(grid, self.walls, self.state.scratch[2], preconditioner)
        self._advection = Advection(grid, self.walls, self.state.scratch, Scheme(solver.advection), Trace(solver.trace))
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
        if scene.domain != self._scene.domain or scene.carried != self._scene.carried:
            raise ValueError("the new scene has another domain or carries other quantities: build a new Simulation")
        self._scene = scene
        self._build()

    # Stages

    def _advect(self, dt: float) -> None:
        velocity = self.state.velocity
        self._advection.trace_paths(velocity.current, dt)
        for quantity in self.state.carried.values():
            for k in range(quantity.components):
                self._advection.carry(quantity.current, quantity.next, SCALAR, k * self.grid.cells)
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
        for quantity in carried.values():
            for k in range(quantity.components):
                self.walls.fill(quantity.current, SCALAR, k * self.grid.cells)
        self.walls.fill_velocity(self.state.velocity.current)

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
        self.walls.fill_velocity(velocity)

    def _diffuse(self, dt: float) -> None:
        fluid = self._scene.fluid
        scalars = {"smoke": fluid.smoke_diffusion, "dye": fluid.smoke_diffusion, "temperature": fluid.heat_diffusion}
        if not fluid.viscosity and not any(scalars[name] for name in self.state.carried):
            return
        if self._diffusion is None:
            self._diffusion = Diffusion(self.grid, self.walls)
        self._diffusion.max_iterations = self._scene.solver.max_iterations
        results = self._diffusion_results
        results += self._diffusion.diffuse_velocity(self.state.velocity.current, fluid.viscosity, dt)
        for name, quantity in self.state.carried.items():
            for k in range(quantity.components):
                result = self._diffusion.diffuse(quantity.current, scalars[name], dt, SCALAR, k * self.grid.cells)
                results += [result] if result else []

    def _project(self, dt: float) -> None:
        solver = self._scene.solver
        assert self._projection is not None
        self._pressure_result = self._projection.project(
            self.state.velocity.current,
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
        """Values of ``"pressure"`` or of a carried quantity, shaped; ``"velocity"`` on lower faces, ``(dim, *shape)``."""
        if name == "pressure":
            return self.grid.to_numpy(self.state.pressure)
        for quantity in self.state.quantities():
            if quantity.name == name:
                return self.grid.to_numpy(quantity.current)
        known = ", ".join(["pressure", *(quantity.name for quantity in self.state.quantities())])
        raise KeyError(f"there is no quantity {name!r} here; there are {known}")
