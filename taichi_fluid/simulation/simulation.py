"""A flow that runs: its scene, its time and the choice of dt."""

import copy
import itertools
import math
import time
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from .. import backend
from .._ti import ti
from ..boundaries.sides import Side
from ..boundaries.solids import Solid
from ..carried import rate_of
from ..errors import NotFinite
from ..pressure.spectral import AUTO, chosen
from ..scene import Look, Scene
from . import beginnings, painting
from .diagnostics import Divergence
from .engine import Engine, Stage
from .flow import Flow, Step
from .liquids import longest_dt, pull_on
from .remarks import STILL, UNBALANCED, imbalance, remarks_on
from .steps import FORCES, follow_scheme, stages_of

STARTING = 5.0
"""Cells that what buoyancy lifts from rest crosses in a step at the most, as fast as it is at its end."""


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


class Simulation(Engine, Flow):
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
            project, and before ``advect`` one more, ``halve``, with advection-reflection. The velocity that carries is the projected one of the step before, so that it neither compresses nor
            thins out what it carries, but where something expands. On the collocated grid, after Stam (2003):
            sources, burn, forces, project, diffuse, advect, project again, carry; the last diffuses and moves what the
            velocity of this step carries. What burns does so half in ``sources``.
        forces: What accelerates the fluid, in its order: a list like ``stages``, of the rows of ``FORCES`` to begin with.
        kept: Things of one's own whose state goes into checkpoints, by name: ``kept.add("rain", rain)``, where ``rain`` has
            ``state`` and ``restore_state`` (see ``simulation.kept``). What was read from a checkpoint is put in then.
        after_step: Called without arguments after each step, as ``Probes`` are.
        flame: What burns, and what expands; None before anything has.
        expansion: The divergence that the last step prescribed, 1/s at cell centres; None where nothing expands.
        time: Simulated seconds.
        steps: Number of steps made.

    Args:
        scene: What to simulate.
        solids: More solids than the scene has: with shapes or motions of one's own.
        sides: In place of the scene's, by axis and end (0 lower, 1 upper): with arrays and functions for numbers.

    Warns:
        UserWarning: once in a process, if Taichi runs on a Vulkan driver that computes on the processor.

    Raises:
        RuntimeError: if Taichi is not running.
        ValueError: if the grid is too large for one array.
        PictureError: if a file of the scene's pictures has gone since the scene was checked.
        BeginningError: the same of what it begins with; and if that is not finite somewhere.
    """

    paint = painting.paint
    paint_picture = painting.paint_picture
    set = beginnings.set_values

    def __init__(
        self, scene: Scene, solids: Sequence[Solid] = (), sides: Mapping[tuple[int, int], Side] = MappingProxyType({})
    ):
        if not isinstance(scene, Scene):
            raise ValueError(f"scene is {scene!r}; it is a Scene, as preset(...) and Scene.load(...) make them")
        self._underway: _Underway | None = None
        self._pixels = [picture.pixels for picture in scene.pictures]
        self._beginnings = beginnings.sources_of(scene.initial, scene.dim)
        super().__init__(scene, solids, sides)
        self.stages, self.forces = stages_of(self), list(FORCES.values())
        self.after_step: list[Callable[[], None]] = []
        backend.warn_of_software()
        self._start()

    def _start(self) -> None:
        """Begin at time 0, with what the scene begins with, and what its pictures bring on top of that."""
        self.begin()
        if self._beginnings:
            projected = self.scene.initial.projected
            beginnings.set_beginnings(self, self._beginnings, projected, "initial.", beside=True)
        for picture, pixels in zip(self.scene.pictures, self._pixels, strict=True):
            self.paint_picture(pixels, picture.center, picture.width, picture.quantity, picture.colour, picture.amount)

    @property
    def pressure_solver(self) -> PressureSolver:
        """What solves the pressure, and why it is not what the scene asks for."""
        if self._scene.solver.sweeps is not None:
            return PressureSolver("sweeps", "sweeps", "")
        asked, sides = self._scene.solver.pressure, self.walls.pressure_sides()
        cut = self.solids is not None or self.walls.open_in_part or self.liquid is not None
        return PressureSolver(asked, *chosen(self.grid, asked, sides, cut=cut))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences about what can be and is most often not meant: of the scene, and of what of it has no effect here."""
        return (*self._scene.remarks, *remarks_on(self))

    @property
    def scene(self) -> Scene:
        """The scene. Assign another to change parameters while running, between two parts of a step if need be.

        Its domain, solids and ``solver.faces`` must be the same; ValueError says which are not. What its sources bring
        in for the first time is carried from then on; what they no longer bring in moves on and fades. What it
        begins with and its pictures are laid in by the next ``reset``.
        """
        return self._scene

    @scene.setter
    def scene(self, scene: Scene) -> None:
        before = self._scene
        same = {
            "domain": scene.domain == before.domain,
            "liquid": (scene.liquid is None) == (before.liquid is None),
            "solids": scene.solids == before.solids,
            "solver.faces": scene.solver.faces == before.solver.faces,
        }
        if not all(same.values()):
            others = ", ".join(name for name in same if not same[name])
            raise ValueError(f"the new scene differs in {others}, which a running flow cannot change: build a new one")
        pixels, begun = self._pixels, self._beginnings
        if scene.initial != before.initial:
            begun = beginnings.sources_of(scene.initial, scene.dim)
        if scene.pictures != before.pictures:
            pixels = [picture.pixels for picture in scene.pictures]
        self.state.add(scene.carried)
        self._scene = scene
        try:
            self.build(before)
        except BaseException:  # no room for another solver: the old one goes on
            self._scene = before
            raise
        self._pixels, self._beginnings = pixels, begun
        if scene.solver.scheme != before.solver.scheme:
            follow_scheme(self, self.stages)

    def looked_at(self, look: Look) -> "Simulation":
        """The same arrays, to be drawn with another look and for nothing else."""
        other = copy.copy(self)
        other._scene = self._scene.model_copy(update={"look": look})
        return other

    def reset(self) -> None:
        """Back to time 0, to what a new Simulation of the present scene would be; ``stages`` stay as they are.

        So do quantities of one's own, with nothing in them.

        It may be called in the middle of a step that ``stepping`` makes, after one that broke off, or after something
        has become NaN: drop that step, and begin another.
        """
        self.grid.require_runtime()
        # What is dropped here is freed on every backend only if the device no longer works with it.
        ti.sync()
        self.state.reset(self.carried)
        # Solvers remember directions, which may have become NaN: new ones know nothing.
        self._start()
        self._underway = None

    def clear(self) -> None:
        """Take away all that is carried; the flow goes on. Solids and time stay as they are."""
        self.grid.require_runtime()
        for quantity in self.state.carried.values():
            quantity.clear()
        if self.liquid is not None:
            self.liquid.clear()
        self.fill_scalars()

    @property
    def burnt(self) -> float:
        """Integral over the box of all fuel burnt so far, in units of fuel times m³ (2D: m²); one number read back."""
        return self.flame.burnt if self.flame else 0.0

    @burnt.setter
    def burnt(self, amount: float) -> None:
        if amount or self.flame:
            self.light().burnt = amount

    def divergence(self) -> Divergence:
        """Divergence that the velocity has left, beside what a flame or a blast prescribes."""
        return self.diagnostics.divergence(self.state.velocity.current, self.expansion)

    def check(self) -> float:
        """Largest velocity component, m/s, after checking on the device that everything is finite.

        It runs before advection, whose limiter and whose clamp to the box would turn a NaN into a plausible number.

        Raises:
            NotFinite: names the quantity, the step and the first cell.
        """
        self.grid.require_runtime()
        speed = lifted = 0.0
        # The pressure last: the solver only begins with it, and what spoilt the velocity has spoilt it too.
        arrays = {quantity.name: quantity.current for quantity in self.state.quantities()}
        for name, array in {**arrays, "pressure": self.state.pressure}.items():
            largest = self.diagnostics.largest_magnitude(array)
            if not math.isfinite(largest):
                cell, count = self.diagnostics.not_finite(array)
                raise NotFinite(
                    f"{name} is not finite after step {self.steps} (t = {self.time:.4g} s) in {count} of "
                    f"{math.prod(self.grid.shape)} cells, first in {cell}: {_advice(self.scene, name)}."
                )
            if name == self.state.velocity.name:
                speed = largest
            elif name in self.state.carried:
                row, fluid = self.state.carried[name].row, self.scene.fluid
                lifted += largest * abs(rate_of(fluid, row, "lift") - rate_of(fluid, row, "weight"))
        if self.liquid and self.liquid.particles.lost:
            raise NotFinite(
                f"{self.liquid.particles.lost} particles of the liquid were at places that are not finite in step "
                f"{self.steps} (t = {self.time:.4g} s), and are gone: only code of one's own can have written them there."
            )
        self.speed, self.lifted = speed, lifted * math.hypot(*self.scene.gravity)
        if self.liquid is not None:
            self.lifted = math.hypot(*pull_on(self.scene, self.time))
        return speed

    def stable_dt(self, speed: float) -> float:
        """Time step in seconds: the scene's own if it has one, else from its CFL number and ``speed`` in m/s."""
        solver = self._scene.solver
        if solver.dt is not None:
            return solver.dt
        speed = self._fastest(speed)
        longest = min(solver.max_dt, longest_dt(self._scene, self.time))
        if self.lifted and self.liquid is None:
            longest = min(longest, math.sqrt(max(solver.cfl, STARTING) * self.grid.dx / self.lifted))
        return min(longest, solver.cfl * self.grid.dx / speed if speed > 0 else math.inf)

    def _fastest(self, speed: float) -> float:
        for source in self._scene.sources:
            if source.velocity is not None and source.active(self.time):
                speed = max(speed, *map(abs, source.velocity))
        speed = max(speed, self.walls.fastest)
        if self.solids:
            # What a solid uncovers is filled one cell deep.
            speed = max(speed, max(self._scene.solver.cfl, 1.0) * self.solids.fastest)
        return speed

    def _where(self, speed: float) -> str:
        if not speed or self._fastest(speed) > speed:
            return ""
        speeds = np.abs(self.to_numpy("velocity")).max(axis=0)
        cell = tuple(int(i) for i in np.unravel_index(np.argmax(speeds), speeds.shape))
        return f" in cell {cell} after step {self.steps}"

    @property
    def is_whole(self) -> bool:
        """Whether it stands between two steps."""
        return self._underway is None

    def require_whole(self) -> None:
        """Raise RuntimeError if a step has begun that did not come to its end; ``reset`` puts an end to it."""
        if self._underway is not None:
            raise RuntimeError(
                f"the step from t = {self.time:.4g} s did not come to its end: it stands, or broke off, in stage "
                f"{self._underway.stage!r}, with some quantities moved on and others not. Finish it, or call reset()."
            )

    def _run_stages(self, dt: float, timed: bool) -> Generator[None, None, Step]:
        stage_ms = {}
        self.pressure_result, self.diffusion_results = None, []
        self.walls.at(self.time + dt)
        self.walls.convect(self.state.velocity.current, dt)
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
        for look in list(self.after_step):
            look()
        step = Step(dt, self.pressure_result, stage_ms, tuple(self.diffusion_results))
        if self.unbalanced is None:
            speed = max(self._fastest(self.speed), STILL * self.lifted * self.time)
            if imbalance(self, step) * self.grid.dx > UNBALANCED * speed > 0:
                self.unbalanced = self.time
        return step

    def _parts(self, stage: Stage, dt: float) -> Iterator[None]:
        """Run one stage; yields after each of its parts, the last included."""
        parts = stage.run(self, dt)
        if isinstance(parts, Generator):
            yield from parts
        yield

    def to_numpy(self, name: str) -> np.ndarray:
        """Values of ``"pressure"`` or of a carried quantity, shaped; ``"velocity"`` where it lies, ``(dim, *shape)``.

        The pressure is the mean of the last step, as loads are, and so that of its middle; a constant in it means nothing.
        With solids, ``"fluid"`` is 0 in cells that they fill and 1 elsewhere. Of a liquid ``"level set"`` is the distance
        to its surface, m, negative in it.
        """
        if name == "pressure":
            pressure = self.grid.to_numpy(self.state.pressure)
            first = self.first_pressure
            return pressure if first is None else np.float32(0.5) * (self.grid.to_numpy(first) + pressure)
        if name == "fluid" and self.solids:
            return np.ceil(self.grid.to_numpy(self.solids.fluid))
        if name == "level set" and self.liquid is not None:
            return self.grid.to_numpy(self.liquid.phi)
        for quantity in self.state.quantities():
            if quantity.name == name:
                return self.grid.to_numpy(quantity.current)
        known = ["pressure", *(quantity.name for quantity in self.state.quantities())]
        known += ["fluid"] * (self.solids is not None) + ["level set"] * (self.liquid is not None)
        raise KeyError(f"there is no quantity {name!r} here; there are {', '.join(known)}")


def _advice(scene: Scene, name: str) -> str:
    """What may help where a quantity has become NaN or infinite, by what drives it in this scene."""
    if name == "pressure":
        return "a solve begins with what the one before it has left, so code of one's own has written there"
    remedies = [f"a smaller time step ({'solver.dt' if scene.solver.dt else 'solver.cfl, solver.max_dt'})"]
    if name == "velocity":
        remedies += ["less fluid.confinement"] if scene.fluid.confinement else []
        remedies += ["less that expands (combustion.expansion, sources.blast)"] if scene.expands else []
        remedies += ["slower sources"] if any(source.velocity for source in scene.sources) else []
    else:
        remedies += [f"sources with less {name}"] if any(getattr(source, name, 0) for source in scene.sources) else []
        remedies += ["a slower flame (combustion.burn_rate)"] if scene.combustion.burn_rate else []
    return f"{' or '.join(remedies)} may help"


def _free_name(name: str, taken: Container[str]) -> str:
    """The name, or with the first number from 2 on that makes it another than those taken."""
    names = itertools.chain([name], (f"{name} {count}" for count in itertools.count(2)))
    return next(each for each in names if each not in taken)
