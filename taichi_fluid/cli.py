"""The command line: ``taichi-fluid``, or ``python -m taichi_fluid``.

Exit status 0 done, 1 failed, 2 bad input. Progress and sentences go to stderr, results to stdout. Taichi is imported
only after the input has been checked.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from .errors import TaichiUnavailable, last_line
from .io.files import OutputError, require_writable, write_json
from .io.outputs import Outputs
from .limits import ARCHS
from .memory import gib, require_memory
from .pictures import PictureError
from .scene import Scene, SceneError, bytes_needed, preset, preset_names, tomllib

T = TypeVar("T")


def _stop(message: str, status: int = 2) -> NoReturn:
    click.echo(f"taichi-fluid: {message}", err=True)
    raise SystemExit(status)


def _say(message: str) -> None:
    click.echo(f"taichi-fluid: {message}", err=True)


def _parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """``key=value`` pairs, the values as TOML writes them; what TOML does not know is taken as text."""
    changes = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise SceneError(f"--set {setting!r} is not key=value, for example --set fluid.viscosity=1e-4.")
        try:
            changes[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except (ValueError, RecursionError):
            changes[key.strip()] = text
    return changes


def _window_arch(arch: str) -> str:
    """What ``auto`` means where a window is wanted: on macOS not Metal, whose windows can freeze the desktop."""
    if arch != "auto" or sys.platform != "darwin":
        return arch
    from . import backend

    return "vulkan" if backend.starts("vulkan") else "cpu"


def _common(command: Callable) -> Callable:
    """The options that ``demo`` and ``run`` share; their names are names of the scene's own values."""
    options = [
        click.option("--arch", type=click.Choice(("auto", *ARCHS)), default="auto", show_default=True, help="Backend."),
        click.option("--resolution", type=int, metavar="N", help="Cells along the longest edge of the box."),
        click.option("--frames", type=int, metavar="N", help="Pictures to record; no window opens."),
        click.option("--headless", is_flag=True, help="Record without a window."),
        click.option(
            "--out", type=click.Path(path_type=Path), metavar="PATH",
            help="Record into FILE.mp4, or a folder for PNG files; no window opens.  [default: NAME.mp4 here]",
        ),
        click.option(
            "--set", "settings", multiple=True, metavar="KEY=VALUE",
            help="Change a value of the scene, such as fluid.viscosity=1e-4. May be repeated.",
        ),
        click.option(
            "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE",
            help="Record, and write the numbers of the run: times, iterations, residual, divergence, mass.",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _run(
    load: Callable[[], Scene], arch: str, resolution: int | None, frames: int | None, headless: bool,
    out: Path | None, settings: Sequence[str], json_path: Path | None,
) -> None:  # fmt: skip
    recording = not (frames is None and out is None and json_path is None)
    try:
        scene = load()
        changes = _parse_settings(settings)
        if resolution is not None:
            changes["domain.resolution"] = resolution
        if frames is not None:
            changes["output.frames"] = frames
        scene = scene.with_values(changes) if changes else scene
        outputs = Outputs.plan(out, scene.name) if headless or recording else None
        if json_path is not None:
            require_writable(json_path, "the JSON file")
            written = (outputs.video, outputs.poster) if outputs else ()
            if json_path.resolve() in {path.resolve() for path in written if path}:
                raise OutputError(f"the JSON file {str(json_path)!r} is also an output of this run: give another name.")
        require_memory(scene)
    except (SceneError, OutputError) as error:
        _stop(str(error))
    try:
        from . import backend  # the first line that imports Taichi
        from .viewer.display import WindowProbe
    except TaichiUnavailable as error:
        _stop(str(error))
    probe = WindowProbe() if outputs is None else None
    try:
        running = backend.start(_window_arch(arch) if probe else arch)
    except backend.BackendError as error:
        if probe:
            probe.close()
        _stop(str(error))
    problem = probe.problem(running) if probe else None
    if probe and problem is None:
        _show_window(scene, running)
        return
    if outputs is None:
        _say(f"{problem}, so the scene is recorded instead of shown in a window.")
        try:
            outputs = Outputs.plan(out, scene.name)
        except OutputError as error:
            _stop(str(error))
    _record(scene, running, outputs, json_path)


def _build(make: Callable[[Scene], T], scene: Scene, arch: str) -> T:
    """What ``make`` makes of the scene, or one sentence where the device has no room for it."""
    from .mesh import MeshError

    try:
        return make(scene)
    except (MeshError, PictureError) as error:
        _stop(f"{error}.")
    except (MemoryError, RuntimeError) as error:
        _stop(f"{arch} cannot hold this scene, which needs {gib(bytes_needed(scene))}: {last_line(error)}.", status=1)


def _cells(scene: Scene) -> str:
    """How many cells a run has."""
    return " x ".join(map(str, scene.domain.shape)) + (" cells on both grids" if scene.look.compare else " cells")


def _show_window(scene: Scene, arch: str) -> None:
    from .viewer.session import Session
    from .viewer.window import LiveWindow

    _say(f"{scene.name}, {_cells(scene)} on {arch}. Escape or the window's own button ends it.")
    session = None
    try:
        session = _build(Session, scene, arch)
        LiveWindow(session, arch=arch).run()
    except KeyboardInterrupt:  # before the window was there
        pass
    except (MemoryError, RuntimeError) as error:
        _stop(f"the window cannot go on: {error}", status=1)
    finally:
        _show(session.written if session else [])


def _record(scene: Scene, arch: str, outputs: Outputs, json_path: Path | None) -> None:
    from .comparison import flow_of, simulations_of
    from .simulation import NotFinite
    from .viewer.recorder import Recorder, record

    output, recorder = scene.output, None
    _say(f"{scene.name}, {_cells(scene)} on {arch}, {output.frames} frames of {output.width} x {output.height}.")
    try:
        flow = _build(flow_of, scene, arch)
        for sentence in dict.fromkeys(each.pressure_solver.sentence for each in simulations_of(flow).values()):
            if sentence:
                _say(sentence)
        recorder = Recorder(outputs, output.frames, output.width, output.height, output.fps)
        numbers = record(flow, recorder)
    except NotFinite as error:
        _show(recorder.written if recorder else [])
        _stop(str(error), status=1)
    except KeyboardInterrupt:
        _show(recorder.written if recorder else [])
        _stop("stopped by the keyboard; the frames so far are kept.", status=130)
    except OutputError as error:
        _stop(str(error))
    except OSError as error:
        _stop(f"the recording cannot be written: {error}.", status=1)
    unsolved = numbers["pressure"]["not_converged"]
    if unsolved:
        _say(f"the pressure did not reach solver.tolerance = {scene.solver.tolerance:g} in {unsolved} steps.")
    unbalanced = numbers["pressure"]["unbalanced"]
    if unbalanced:
        _say(
            f"in {unbalanced} steps an inflow or a moving solid filled or emptied a region without a way out, which no "
            "flow can do: the fluid there was made or lost."
        )
    unsolved = numbers["diffusion"]["not_converged"]
    if unsolved:
        _say(f"{unsolved} of {numbers['diffusion']['solves']} diffusion solves did not reach their tolerance.")
    if json_path is not None:
        try:
            write_json(json_path, {"arch": arch, **numbers})
        except (OSError, ValueError) as error:
            _show(recorder.written)
            _stop(f"the JSON file {str(json_path)!r} cannot be written: {error}.", status=1)
        click.echo(str(json_path))
    _show(recorder.written)


def _show(written: Sequence[Path]) -> None:
    """The files, for a person and for a pipe: a folder of frames as one line, a video and a poster as one each."""
    frames = [path for path in written if path.name.startswith("frame_")]
    if frames:
        click.echo(f"{frames[0].parent}{os.sep}frame_*.png")
    for path in written:
        if path not in frames:
            click.echo(str(path))


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="taichi-fluid", prog_name="taichi-fluid")
def main() -> None:
    """A grid fluid engine in Taichi: smoke in 2D and 3D, on CUDA, Vulkan, Metal and CPU."""


@main.command()
@click.argument("name", default="plume")
@_common
def demo(name: str, **options: Any) -> None:
    """Show a scene that comes with the package; without a display, record it.

    NAME is plume (the default), plume2d, jets, or another of 'taichi-fluid scenes'.
    """
    _run(lambda: preset(name), **options)


@main.command()
@click.argument("scene", type=click.Path(path_type=Path))
@_common
def run(scene: Path, **options: Any) -> None:
    """Show or record the scene of a TOML file; see 'taichi-fluid scenes NAME' for one to start from."""
    _run(lambda: Scene.load(scene), **options)


def _description(name: str) -> str:
    """What a scene of the package shows, or which extra it needs that is not installed."""
    try:
        return preset(name).description
    except SceneError as error:
        return f"cannot run here: {error}"


@main.command()
@click.argument("name", required=False)
def scenes(name: str | None) -> None:
    """List the scenes of the package, or print the one called NAME as TOML."""
    try:
        if name is not None:
            click.echo(preset(name).dumps(), nl=False)
            return
        for each in preset_names():
            click.echo(f"{each:12s} {_description(each)}")
    except SceneError as error:
        _stop(str(error))


@main.command()
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE", help="Write the findings as JSON too."
)
def doctor(json_path: Path | None) -> None:
    """Try every backend in a process of its own: does it start, on what, and is its answer right?

    Each one runs Normoyle's 2x2x1 case, in 2D and 3D and with both pressure solvers, and is held against the printed
    numbers. Exit status 1 if a backend that starts computes a wrong answer, or none starts.
    """
    if json_path is not None:
        try:
            require_writable(json_path, "the JSON file")
        except OutputError as error:
            _stop(str(error))
    try:
        from .doctor import examine
    except TaichiUnavailable as error:
        _stop(str(error))
    from rich.console import Console
    from rich.table import Table

    table = Table("arch", "starts", "answer", "largest error", "device or reason")
    findings = []
    with Console(stderr=True).status("") as status:
        for arch in ARCHS:
            status.update(f"trying {arch} …")
            finding = examine(arch)
            findings.append(finding)
            answer = {True: "right", False: "WRONG", None: "-"}[finding["right"]]
            error = "-" if finding["error"] is None else f"{finding['error']:.1e}"
            starts = "yes" if finding["starts"] else "no"
            table.add_row(arch, starts, answer, error, finding["device"] or finding["note"])
    Console(soft_wrap=True).print(table)
    if json_path is not None:
        try:
            write_json(json_path, {"backends": findings})
        except OSError as error:
            _stop(f"the JSON file {str(json_path)!r} cannot be written: {error}.", status=1)
    working = [finding["right"] for finding in findings if finding["starts"]]
    if not working or not all(working):
        raise SystemExit(1)
