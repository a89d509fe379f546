"""The headless front: runs a scene and writes pictures, with a progress bar on stderr."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..io.images import contact_sheet, halved, write_png
from ..io.outputs import Outputs
from ..io.video import VideoWriter
from ..render.renderer import Renderer
from ..simulation import Simulation, Step

SHEET_PICTURES = 6


UNBALANCED = 1e-3
"""Mean divergence times dx over speed from which a run says that a sealed region was filled or emptied."""


class Recorder:
    """Writes each picture to a video or as a numbered PNG file, and a sheet of a few of them at the end."""

    def __init__(self, outputs: Outputs, pictures: int, width: int, height: int, fps: float):
        self._outputs, self._shown = outputs, 0
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
            path = self._outputs.folder / f"frame_{self._shown:05d}.png"
            write_png(path, picture)
            self.written.append(path)
        if self._shown in self._wanted:
            self._kept.append(halved(picture))
        self._last = picture
        self._shown += 1

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


def record(simulation: Simulation, recorder: Recorder, console: Console | None = None) -> dict[str, Any]:
    """Run a simulation for the pictures its scene's output asks for.

    Args:
        simulation: What to run.
        recorder: Where the pictures go; it is finished here, also when the run breaks off.
        console: Where progress is shown; stderr when left out.

    Returns:
        What ``--json`` holds, but for the arch; see ``summary``.

    Raises:
        NotFinite: if a quantity becomes NaN or infinite; the pictures so far are kept.
    """
    output = simulation.scene.output
    steps: list[Step] = []
    render_ms: list[float] = []
    console = Console(stderr=True) if console is None else console
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        TextColumn("frame {task.completed:.0f}/{task.total:.0f}  {task.fields[numbers]}"),
        TimeRemainingColumn(),
    )
    try:
        renderer = Renderer(simulation)
        with Progress(*columns, console=console, transient=not console.is_terminal) as progress:
            task = progress.add_task(simulation.scene.name, total=output.frames, numbers="compiling kernels …")
            for _ in range(output.frames):
                taken = simulation.advance(1.0 / output.fps, timed=True)
                simulation.check()
                steps += taken
                start = time.perf_counter()
                recorder.show(renderer.render())
                render_ms.append(1e3 * (time.perf_counter() - start))
                divergence = simulation.divergence()
                progress.update(task, advance=1, numbers=_numbers(taken, divergence.max))
    finally:
        written = recorder.finish()
    return summary(simulation, steps, render_ms, written)


def _imbalance(simulation: Simulation, step: Step) -> float:
    """Mean divergence, 1/s, that no pressure could remove from a region without a way out."""
    if step.pressure is None:
        return 0.0
    return abs(step.pressure.removed_mean) * step.dt / (simulation.scene.fluid.rho * simulation.grid.dx**2)


def _numbers(steps: list[Step], divergence: float) -> str:
    milliseconds = np.median([sum(step.stage_ms.values()) for step in steps])
    iterations = np.mean([step.pressure.iterations for step in steps if step.pressure] or [0])
    return f"{milliseconds:.0f} ms/step  {iterations:.0f} iterations  div {divergence:.1e}/s"


def summary(simulation: Simulation, steps: list[Step], render_ms: list[float], written: list[Path]) -> dict[str, Any]:
    """The numbers of a run, ready for JSON: times, iterations, residuals, divergence, mass, files.

    The divergence is times dx over the largest velocity component: 1 would be a flow that changes by all of itself from
    cell to cell. ``unbalanced`` counts steps in which a region without a way out was filled or emptied.
    """
    speed = simulation.check()
    divergence = simulation.divergence()
    scale = simulation.grid.dx / speed if speed > 0 else 0.0
    solves = [step.pressure for step in steps if step.pressure is not None]
    diffusions = [solve for step in steps for solve in step.diffusion]
    totals = [sum(step.stage_ms.values()) for step in steps]
    smoke = simulation.state.carried.get("smoke")
    names = [stage.name for stage in simulation.stages]
    return {
        "scene": simulation.scene.name,
        "resolution": list(simulation.grid.shape),
        "frames": len(render_ms),
        "steps": len(steps),
        "simulated_seconds": simulation.time,
        "ms_per_step": float(np.median(totals)) if totals else 0.0,
        "render_ms": float(np.median(render_ms)) if render_ms else 0.0,
        "stages": {name: float(np.median([step.stage_ms[name] for step in steps])) for name in names if steps},
        "pressure": {
            "iterations": float(np.mean([solve.iterations for solve in solves])) if solves else 0.0,
            "relative_residual": max((solve.relative_residual for solve in solves), default=0.0),
            "not_converged": sum(solve.status.name != "CONVERGED" for solve in solves),
            "unbalanced": sum(_imbalance(simulation, step) * scale > UNBALANCED for step in steps),
        },
        "diffusion": {
            "solves": len(diffusions),
            "not_converged": sum(solve.status.name != "CONVERGED" for solve in diffusions),
        },
        "divergence": {"max": divergence.max * scale, "rms": divergence.rms * scale},
        "smoke_mass": simulation.diagnostics.integral(smoke.current) if smoke else 0.0,
        "outputs": [str(path) for path in written],
    }
