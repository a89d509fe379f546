"""One measurement, in a process of its own: a scene on a backend, from its start to its last step.

``python -m taichi_fluid.bench.measure JOB`` is how ``runs`` starts it, with a kernel cache that is empty (the cold run)
or that the cold run has filled (the warm one, which also measures the steps).
"""

import gc
import json
import math
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import kernels
from .._ti import ti
from ..backend import BackendError, start_here
from ..boundaries.mesh import MeshError
from ..errors import last_line
from ..grid import Grid
from ..kernels import Array, kernel_family
from ..render.renderer import Renderer
from ..scene import Scene
from ..simulation import NotFinite, Simulation, Stage, Step
from ..simulation.probing import budget
from .files import SAYS
from .traffic import Launch, Watch, moved, uncounted, watched

WARM_STEPS = 20
"""Steps before the first that counts: a plume to work on, and a pressure to start from."""

COPY_EDGES = (256, 512)
"""Cells along the box that is copied: arrays of 64 MiB, and of 512 MiB where 64 are copied within ``COPY_SECONDS``."""

COPY_SECONDS = 1e-3

COPIES = 7


@ti.func
def _copy_at(c, I, s, a: ti.template(), b: ti.template()):
    b[c] = a[c]


@kernel_family
def copy_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def copy(a: Array, b: Array, n: IntVector):
        each_cell(n, _copy_at, (a, b))

    return {"copy": copy}


def copy_bandwidth() -> float:
    """Bytes per second, read and written, of copying one large array to another by a kernel of ours; a median."""
    bandwidth = 0.0
    for edge in COPY_EDGES:
        seconds = _copy_seconds(Grid((edge,) * 3, 1.0))
        bandwidth = 8 * edge**3 / seconds
        if seconds > COPY_SECONDS:
            break
    return bandwidth


def _copy_seconds(grid: Grid) -> float:
    a, b = grid.array(), grid.array()
    copy, seconds = copy_kernels(grid.loops).copy, []
    for _ in range(COPIES + 1):
        ti.sync()
        start = time.perf_counter()
        copy(a, b, grid.n)
        ti.sync()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def array_bytes() -> int:
    """Device memory of all arrays that there are now, in bytes."""
    arrays = [thing for thing in gc.get_objects() if isinstance(thing, ti.Ndarray)]
    return sum(4 * math.prod(array.shape) for array in arrays)


def peak_resident() -> int | None:
    """Largest size of this process in memory so far, in bytes; None where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _clocks() -> tuple[float, float]:
    """Seconds on the clock, and seconds that all threads of this process have had of the processors."""
    return time.perf_counter(), time.process_time()


def _passed(before: tuple[float, float], after: tuple[float, float]) -> tuple[float, float]:
    """Milliseconds between two readings of both clocks."""
    return 1e3 * (after[0] - before[0]), 1e3 * (after[1] - before[1])


class Marks:
    """Stages between those of a simulation: each waits for the device, reads the clocks and notes what was launched.

    What of a step comes before its first stage, the check for NaN and the choice of dt, is called ``check``.
    """

    def __init__(self, simulation: Simulation, watch: Watch):
        self._watch, self._stages = watch, list(simulation.stages)
        self._times: list[tuple[float, float]] = []
        self._launches: list[list[Launch]] = []
        self.names = ["check", *(stage.name for stage in self._stages)]
        simulation.stages = [Stage("mark", self._mark)]
        for stage in self._stages:
            simulation.stages += [stage, Stage("mark", self._mark)]
        self._simulation = simulation

    def _mark(self, simulation: Simulation, dt: float) -> None:
        ti.sync()
        self._times.append(_clocks())
        self._launches.append(self._watch.take())

    def step(self) -> tuple[Step, dict[str, tuple[float, float]], dict[str, list[Launch]]]:
        """One step: what it says, ms of each stage on the clock and of the processors, and what each has launched."""
        self._watch.take()
        self._launches = []
        ti.sync()
        self._times = [_clocks()]
        taken = self._simulation.step()
        times = [_passed(*pair) for pair in zip(self._times[:-1], self._times[1:], strict=True)]
        by_name = zip(self.names, times, strict=True)
        return taken, dict(by_name), dict(zip(self.names, self._launches, strict=True))

    def close(self) -> None:
        """Give the simulation its own stages back."""
        self._simulation.stages = self._stages


def spread(values: Sequence[float]) -> list[float]:
    """First and third quartile."""
    if len(values) < 2:
        return [values[0], values[0]]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return [low, high]


def first_frame(scene: Scene, began: float) -> tuple[dict[str, Any], Simulation]:
    """Time to the first picture, and how much of it went into compiling kernels.

    Compiling is what the first simulation, its first step and its first picture took longer than the second.

    Args:
        scene: What to show.
        began: When the process was started, in seconds of ``time.time``.

    Returns:
        ``first_frame_s``, ``compile_s`` and ``kernels`` (of the flow, and of the picture); a simulation after one step.
    """
    seconds, counts, frame_at = [], [0, 0], 0.0
    for again in (False, True):
        before, start = kernels.compiled_kernels(), time.perf_counter()
        simulation = Simulation(scene)
        simulation.step()
        flow = kernels.compiled_kernels()
        Renderer(simulation).render()
        ti.sync()
        seconds.append(time.perf_counter() - start)
        if not again:
            frame_at, counts = time.time(), [flow - before, kernels.compiled_kernels() - flow]
            del simulation  # before the next one is built, so that the two are never in memory together
            gc.collect()
    ti.sync()
    gc.collect()
    numbers = {
        "first_frame_s": frame_at - began,
        "compile_s": max(seconds[0] - seconds[1], 0.0),
        "kernels": {"flow": counts[0], "picture": counts[1]},
    }
    return numbers, simulation


def divergence_left(simulation: Simulation) -> dict[str, float]:
    """What one more step leaves: ``max`` and ``rms`` times dx over speed, and ``left``, rms after over before it."""
    seen = []

    def look(simulation: Simulation, dt: float) -> None:
        seen.append(simulation.diagnostics.divergence(simulation.state.velocity.current))

    stages = list(simulation.stages)
    last = max(i for i, stage in enumerate(stages) if stage.name.startswith("project"))
    watched_stages = [*stages[:last], Stage("look", look), stages[last], Stage("look", look), *stages[last + 1 :]]
    simulation.stages = watched_stages
    simulation.step()
    simulation.stages = stages
    speed = simulation.check()
    before, after = seen
    scale = simulation.grid.dx / speed if speed > 0 else 0.0
    return {
        "max": after.max * scale,
        "rms": after.rms * scale,
        "left": after.rms / before.rms if before.rms > 0 else 0.0,
    }


def steps_of(simulation: Simulation, count: int) -> dict[str, Any]:
    """Measure ``count`` whole steps, as a program makes them, and in between as many stage by stage.

    Whole steps give ``ms_per_step``; the others, which wait for the device after each stage and note what is launched,
    give ``stages``.
    """
    cells = math.prod(simulation.grid.shape)
    for made in range(WARM_STEPS):
        simulation.step()
        _say(progress=made / (WARM_STEPS + 2 * count))
    whole_ms, taken, stage_ms, launches, calls = [], [], [], [], []
    for k in range(count):
        ti.sync()
        before = _clocks()
        taken.append(simulation.step())
        ti.sync()
        whole_ms.append(_passed(before, _clocks()))
        with watched() as watch:
            marks = Marks(simulation, watch)
            step, ms, launched = marks.step()
            marks.close()
        taken.append(step)
        stage_ms.append(ms)
        launches.append(launched)
        calls.append(watch.calls)
        _say(progress=(WARM_STEPS + 2 * k + 2) / (WARM_STEPS + 2 * count))
    stages = {}
    for name in stage_ms[0]:
        times, processor = zip(*(ms[name] for ms in stage_ms), strict=True)
        moves = [moved(launched[name]) for launched in launches]
        median, counted = statistics.median(times), [m for m in moves if m is not None]
        whole = len(counted) == len(moves)
        stages[name] = {
            "median_ms": median,
            "processor_ms": statistics.median(processor),
            "quartiles_ms": spread(times),
            "cells_per_s": 1e3 * cells / median,
            "mb_moved": 1e-6 * statistics.median(counted) if whole else None,
            "gb_per_s": 1e-6 * statistics.median(counted) / median if whole else None,
            "launches": statistics.median(len(launched[name]) for launched in launches),
        }
    solves = [step.pressure for step in taken if step.pressure is not None]
    totals = [sum(len(each) for each in launched.values()) for launched in launches]
    parts = [stage["mb_moved"] for stage in stages.values()]
    whole_mb = None if None in parts else sum(parts)
    times, processor = zip(*whole_ms, strict=True)
    step_ms = statistics.median(times)
    return {
        "ms_per_step": step_ms,
        "processor_ms": statistics.median(processor),
        "quartiles_ms": spread(times),
        "cells_per_s": 1e3 * cells / step_ms,
        "mb_moved": whole_mb,
        "gb_per_s": None if whole_mb is None else whole_mb / step_ms,
        "steps": count,
        "stages": stages,
        "uncounted_kernels": sorted(set().union(*(uncounted(each) for each in launches[-1].values()))),
        "iterations": statistics.median(solve.iterations for solve in solves),
        "relative_residual": max(solve.relative_residual for solve in solves),
        "not_converged": sum(solve.status.name not in ("CONVERGED", "SWEPT") for solve in solves),
        "launches_per_step": statistics.median(totals),
        "calls_per_step": statistics.median(calls),
    }


def measure(scene: Scene, steps: int, began: float) -> dict[str, Any]:
    """Everything that a row holds of a scene on the arch that is running, but for the cold start."""
    numbers, simulation = first_frame(scene, began)
    numbers |= steps_of(simulation, steps)
    numbers["divergence"] = divergence_left(simulation)
    arrays, resident = array_bytes(), peak_resident()
    numbers |= budget(simulation)
    on_host = kernels.arch() in kernels.CPU_ARCHS
    numbers["bytes_per_cell"] = arrays / math.prod(scene.domain.shape)
    numbers["arrays_mb"] = 1e-6 * arrays
    numbers["peak_memory_mb"] = 1e-6 * (resident if on_host and resident is not None else arrays)
    numbers["pressure_solver"] = simulation.pressure_solver.used
    if simulation.liquid is not None:
        particles = simulation.liquid.particles
        numbers["particles"] = {"count": particles.count, "bytes_each": particles.bytes_each(simulation.grid.dim)}
    del simulation  # its arrays make room for those that are copied
    gc.collect()
    bandwidth = copy_bandwidth()
    numbers["copy_gb_per_s"] = 1e-9 * bandwidth
    for each in (numbers, *numbers["stages"].values()):
        each["share_of_copy"] = None if each["gb_per_s"] is None else 1e9 * each["gb_per_s"] / bandwidth
    return numbers


def _say(**values: Any) -> None:
    print(SAYS + json.dumps(values, allow_nan=False), flush=True)


def _main(job: dict[str, Any]) -> None:
    """Run a job: ``arch``, ``scene`` (a file), ``cache`` (a folder), ``began``, and ``steps`` (0: the cold start only)."""
    try:
        scene = Scene.load(job["scene"])
        start_here(job["arch"], offline_cache=True, offline_cache_file_path=job["cache"])
        if job["steps"]:
            _say(numbers=measure(scene, job["steps"], job["began"]))
        else:
            _say(numbers=first_frame(scene, job["began"])[0])
    except BackendError as error:
        _say(problem=str(error))
    except NotFinite as error:
        _say(problem=f"{last_line(error).rstrip('.')}.")
    except (MeshError, MemoryError, RuntimeError) as error:
        _say(problem=f"{job['arch']} could not run this scene to its end: {last_line(error).rstrip('.')}.")


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
