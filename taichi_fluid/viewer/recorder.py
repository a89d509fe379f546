"""The headless front: runs a scene and writes pictures, with a progress bar on stderr."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..errors import terminable
from ..io.images import contact_sheet, halved, write_png
from ..io.numbered import FRAMES
from ..io.outputs import Outputs
from ..io.video import VideoWriter
from ..render.side_by_side import pictures_of
from ..simulation import NotFinite, Simulation, Step
from ..simulation.comparison import Comparison, left_in, own_of, simulations_of
from ..simulation.flow import TooManySteps
from ..simulation.remarks import UNBALANCED, imbalance
from .halving import Halving
from .keeping import Keeping
from .waiting import Waiting, now_and_then

SHEET_PICTURES = 6
LINE_SECONDS = 10.0
"""Between two lines about how far a recording is, where there is no terminal for a bar."""


class Recorder:
    """Writes each picture to a video or as a numbered PNG file, and a sheet of a few of them at the end.

    Attributes:
        shown: How many pictures there have been.
        still: Whether they have all been the same.
        written: The files so far; a video once it is closed.
    """

    def __init__(self, outputs: Outputs, pictures: int, width: int, height: int, fps: float):
        self._outputs, self.shown, self.still = outputs, 0, True
        count = min(SHEET_PICTURES, pictures)
        self._wanted = {round((i + 1) * pictures / count) - 1 for i in range(count)}
        self._kept: list[np.ndarray] = []
        self._last: np.ndarray | None = None
        self.written: list[Path] = []
        outputs.poster.parent.mkdir(parents=True, exist_ok=True)
        self._video = VideoWriter(outputs.video, width, height, fps) if outputs.video else None

    def show(self, picture: np.ndarray) -> None:
        """Write the next picture."""
        if self._video:
            self._video.write(picture)
        if self._outputs.folder:
            path = self._outputs.folder / FRAMES.name(self.shown)
            write_png(path, picture)
            self.written.append(path)
        if self.shown in self._wanted:
            self._kept.append(halved(picture))
        self.still = self.still and (self._last is None or np.array_equal(picture, self._last))
        self._last = picture
        self.shown += 1

    def finish(self) -> list[Path]:
        """Close the video and write the poster; the files written, the poster last. Nothing if nothing was shown."""
        if self._video:
            self._video.close()
            if self._video.frames:
                self.written.append(self._video.path)
        if self._last is not None:
            write_png(self._outputs.poster, contact_sheet(self._kept or [halved(self._last)]))
            self.written.append(self._outputs.poster)
        return self.written


@terminable()
def record(
    flow: Simulation | Comparison,
    recorder: Recorder,
    console: Console | None = None,
    waiting: Waiting | None = None,
    keeping: Keeping | None = None,
    first: int = 0,
    each: Sequence[Callable[[list[Step]], None]] = (),
    halving: Halving | None = None,
) -> dict[str, Any]:
    """Run a flow for the pictures its scene's output asks for.

    Args:
        flow: What to run: a simulation, or both grids; ``simulation.comparison.flow_of`` makes what a scene asks for.
        recorder: Where the pictures go; it is finished here, also when the run breaks off.
        console: Where progress is shown, and before each kernel that is compiled a count; stderr when left out.
        waiting: What has counted the kernels so far.
        keeping: What writes checkpoints; one more at the end.
        first: How many of the pictures have been taken before.
        each: Called at each picture, with the steps since the one before.
        halving: What takes the flow back to the last picture where it blows up, once; without it, it ends there.

    Returns:
        What ``--json`` holds, but for the arch; see ``summary``.

    Raises:
        NotFinite: if a quantity becomes NaN or infinite; the pictures so far are kept.
        Terminated: if the process is asked to end; the pictures so far are kept.
        TooManySteps: if the flow becomes too fast to go on by a picture; so are they then.
    """
    output = flow.scene.output
    steps: list[Step] = []
    render_ms: list[float] = []
    console, waiting = console or Console(stderr=True), waiting or Waiting()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("frame {task.completed:.0f}/{task.total:.0f}  {task.fields[numbers]}"),
        TimeRemainingColumn(),
    )
    try:
        renderer = pictures_of(flow)
        renderer.keep_with_flow()
        with Progress(*columns, console=console, transient=not console.is_terminal) as progress:
            task = progress.add_task(flow.scene.name, total=output.frames - first, numbers="")
            tell = (lambda text: None) if console.is_terminal else now_and_then(console, LINE_SECONDS, at_once=False)
            with waiting.told_on(console, lambda text: progress.update(task, numbers=text, refresh=True)):
                for _ in range(first, output.frames):
                    taken = _advanced(flow, 1.0 / output.fps, halving, console)
                    steps += taken
                    start = time.perf_counter()
                    recorder.show(renderer.render())
                    render_ms.append(1e3 * (time.perf_counter() - start))
                    left = [left_in(simulation).max for simulation in simulations_of(flow).values()]
                    numbers = _numbers(taken, left)
                    progress.update(task, advance=1, numbers=numbers)
                    tell(f"frame {recorder.shown} of {output.frames - first}  {numbers}")
                    for look in each:
                        look(taken)
                    if keeping is not None:
                        keeping.look()
    except (NotFinite, TooManySteps):
        if keeping is not None:
            keeping.forget()
        raise
    finally:
        try:
            if keeping is not None:
                keeping.finish()
        finally:
            written = recorder.finish()
    return summary(flow, steps, render_ms, written)


def _advanced(flow: Simulation | Comparison, duration: float, halving: Halving | None, console: Console) -> list[Step]:
    """The steps to the next picture, all finite; with a second try where there may be one."""
    if halving is not None:
        halving.keep()
    while True:
        try:
            taken = flow.advance(duration, timed=True)
            flow.check()
            return taken
        except (NotFinite, TooManySteps) as error:
            if halving is None or not halving.take_back(error):
                raise
            console.print(halving.sentence, highlight=False, soft_wrap=True)


def _numbers(steps: list[Step], divergences: list[float]) -> str:
    milliseconds = np.median([sum(step.stage_ms.values()) for step in steps])
    iterations = np.mean([step.pressure.iterations for step in steps if step.pressure] or [0])
    left = " and ".join(f"{divergence:.1e}" for divergence in divergences)
    return f"{milliseconds:.0f} ms/step  {iterations:.0f} iterations  div {left}/s"


def summary(
    flow: Simulation | Comparison, steps: list[Step], render_ms: list[float], written: list[Path]
) -> dict[str, Any]:
    """The numbers of a run, ready for JSON: times, iterations, residuals, divergence, mass, files.

    The divergence is times dx over the largest velocity component: 1 would be a flow that changes by all of itself from
    cell to cell. ``unbalanced`` counts steps in which a region without a way out was filled or emptied. ``pressure_solver``
    has what the scene asks for, what was used, and why that is not the direct solve where it might have been.
    Of a comparison these are the numbers of the scene's own grid, but ``stages`` and ``ms_per_step`` are the times of
    both and ``diffusion`` counts the solves of both; ``grids`` holds divergence and mass of each.
    """
    flow.check()
    simulation = own_of(flow)
    grids = {grid: _left(each) for grid, each in simulations_of(flow).items()}
    own, scale = grids[simulation.scene.domain.grid], left_in(simulation).scale
    solves = [step.pressure for step in steps if step.pressure is not None]
    diffusions = [solve for step in steps for solve in step.diffusion]
    totals = [sum(step.stage_ms.values()) for step in steps]
    names = dict.fromkeys(name for step in steps for name in step.stage_ms)
    return {
        "scene": simulation.scene.name,
        "resolution": list(simulation.grid.shape),
        "frames": len(render_ms),
        "steps": len(steps),
        "simulated_seconds": simulation.time,
        "ms_per_step": float(np.median(totals)) if totals else 0.0,
        "render_ms": float(np.median(render_ms)) if render_ms else 0.0,
        "stages": {
            name: float(np.median([step.stage_ms[name] for step in steps if name in step.stage_ms])) for name in names
        },
        "pressure_solver": simulation.pressure_solver._asdict(),
        "pressure": {
            "iterations": float(np.mean([solve.iterations for solve in solves])) if solves else 0.0,
            "relative_residual": max((solve.relative_residual for solve in solves), default=0.0),
            "not_converged": sum(solve.status.name not in ("CONVERGED", "SWEPT") for solve in solves),
            "unbalanced": sum(imbalance(simulation, step) * scale > UNBALANCED for step in steps),
        },
        "diffusion": {
            "solves": len(diffusions),
            "not_converged": sum(solve.status.name not in ("CONVERGED", "SWEPT") for solve in diffusions),
        },
        **own,
        **({"grids": grids} if len(grids) > 1 else {}),
        "outputs": [str(path) for path in written],
    }


def _left(simulation: Simulation) -> dict[str, Any]:
    """Divergence, times dx over the largest velocity component, mass of the smoke, and the fuel burnt."""
    left, smoke = left_in(simulation), simulation.state.carried.get("smoke")
    return {
        "divergence": {"max": left.part, "rms": left.rms * left.scale},
        "smoke_mass": simulation.diagnostics.amount(smoke.current) if smoke else 0.0,
        "fuel_burnt": simulation.burnt,
    }
