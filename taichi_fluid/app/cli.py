"""The command line: ``taichi-fluid``, or ``python -m taichi_fluid``.

Exit status 0 done, 1 failed, 2 bad input. Progress and sentences go to stderr, results to stdout. Taichi is imported
only after the input has been checked.
"""

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click
from click.shell_completion import CompletionItem

from ..errors import TaichiUnavailable, Terminated, last_line, terminable
from ..io.files import OutputError, require_writable, write_json
from ..io.outputs import Outputs
from ..limits import ARCHS
from ..scene import Scene, SceneError, bytes_needed, preset, preset_names, require_installed, tomllib
from ..scene.memory import gib, require_memory
from ..scene.pictures import PictureError

T = TypeVar("T")


def _stop(message: str, status: int = 2) -> NoReturn:
    click.echo(f"taichi-fluid: {message}", err=True)
    raise SystemExit(status)


def _stop_broken_off(broken: BaseException, rest: str) -> NoReturn:
    """End with the status that shells give what Ctrl-C or a signal has ended."""
    if isinstance(broken, Terminated):
        _stop(f"stopped by a signal; {rest}", status=int(broken.code or 0))
    _stop(f"stopped by the keyboard; {rest}", status=130)


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


def _complete_scene(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The scenes of the package that a shell may complete a name to."""
    return [CompletionItem(name) for name in preset_names() if name.startswith(incomplete)]


def _complete_scene_or_file(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The same, or files where no scene has such a name."""
    return _complete_scene(context, parameter, incomplete) or [CompletionItem(incomplete, type="file")]


def _window_arch(arch: str) -> str:
    """What ``auto`` means where a window is wanted: on macOS not Metal, whose windows can freeze the desktop."""
    if arch != "auto" or sys.platform != "darwin":
        return arch
    from .. import backend

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
        require_installed(scene)
        require_memory(scene)
    except (SceneError, OutputError) as error:
        _stop(str(error))
    try:
        from .. import backend  # the first line that imports Taichi
        from ..viewer.display import WindowProbe
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
    from ..boundaries.mesh import MeshError

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
    from ..backend import COMPILING
    from ..viewer.session import Session
    from ..viewer.window import LiveWindow

    _say(f"{scene.name}, {_cells(scene)} on {arch}. Escape or the window's own button ends it. {COMPILING}")
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


@terminable()
def _record(scene: Scene, arch: str, outputs: Outputs, json_path: Path | None) -> None:
    from ..backend import COMPILING
    from ..simulation import NotFinite
    from ..simulation.comparison import flow_of, simulations_of
    from ..simulation.flow import TooManySteps
    from ..viewer.recorder import Recorder, record

    output, recorder = scene.output, None
    pictures = f"{output.frames} frames of {output.width} x {output.height}"
    _say(f"{scene.name}, {_cells(scene)} on {arch}, {pictures}. {COMPILING}")
    try:
        flow = _build(flow_of, scene, arch)
        stand_ins = [each.pressure_solver.sentence for each in simulations_of(flow).values()]
        for sentence in filter(None, dict.fromkeys([*scene.remarks, *stand_ins])):
            _say(sentence)
        recorder = Recorder(outputs, output.frames, output.width, output.height, output.fps)
        numbers = record(flow, recorder)
    except (NotFinite, TooManySteps) as error:
        _show(recorder.written if recorder else [])
        _stop(str(error), status=1)
    except (KeyboardInterrupt, Terminated) as broken:
        _show(recorder.written if recorder else [])
        _stop_broken_off(broken, "the frames so far are kept.")
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
    """A grid fluid engine in Taichi: smoke, dye, fire and solids in 2D and 3D, on CUDA, Vulkan, Metal and CPU."""


@main.command(short_help="Show or record a scene that comes with the package.")
@click.argument("name", default="plume", shell_complete=_complete_scene)
@_common
def demo(name: str, **options: Any) -> None:
    """Show a scene that comes with the package; without a display, record it.

    NAME is plume (the default), plume2d, jets, or another of 'taichi-fluid scenes'.
    """
    _run(lambda: preset(name), **options)


@main.command(short_help="Show or record the scene of a TOML file.")
@click.argument("scene", type=click.Path(path_type=Path))
@_common
def run(scene: Path, **options: Any) -> None:
    """Show or record the scene of a TOML file; see 'taichi-fluid scenes NAME' for one to start from."""
    _run(lambda: Scene.load(scene), **options)


def _description(name: str) -> str:
    """What a scene of the package shows, and which extra it needs that is not installed."""
    scene = preset(name)
    try:
        require_installed(scene)
    except SceneError as error:
        return f"{scene.description} It cannot run here: {error}"
    return scene.description


def _in_columns(rows: Sequence[tuple[str, str]], width: int | None) -> str:
    """Names and what they mean, in two columns; a description that is too long for ``width`` goes on below itself.

    Without a width each has one line, however long.
    """
    column = 2 + max(len(name) for name, _ in rows)
    wrapped = [
        (name, textwrap.wrap(text, max(width - column, 20)) if width else [text]) for name, text in rows
    ]  # fmt: skip
    lines = [f"{name if i == 0 else '':{column}}{line}" for name, part in wrapped for i, line in enumerate(part)]
    return "\n".join(lines)


@main.command(short_help="List the scenes of the package, or print one as TOML.")
@click.argument("name", required=False, shell_complete=_complete_scene)
def scenes(name: str | None) -> None:
    """List the scenes of the package, or print the one called NAME as TOML."""
    try:
        if name is not None:
            click.echo(preset(name).dumps(), nl=False)
            return
        # A pipe has no width: a scene a line, for grep.
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        click.echo(_in_columns([(each, _description(each)) for each in preset_names()], width))
    except SceneError as error:
        _stop(str(error))


@main.command(short_help="Try every backend: does it start, is its answer right?")
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


def _bench_scenes(
    scene: str | None, dim: int | None, resolutions: Sequence[int], settings: Sequence[str]
) -> list[Scene]:
    """The scene to measure at each resolution, checked."""
    from ..bench.files import default_scene

    changes = _parse_settings(settings)
    if scene is None:
        chosen = default_scene(dim or 3)
    else:
        chosen = preset(scene) if scene in preset_names() else Scene.load(scene)
        if dim is not None and chosen.dim != dim:
            raise SceneError(f"--dim is {dim} and the scene {scene!r} has {chosen.dim} axes: leave --dim out.")
    chosen = chosen.with_values(changes) if changes else chosen
    require_installed(chosen)
    if not resolutions:
        return [chosen]
    return [chosen.with_values({"domain.resolution": n}) for n in dict.fromkeys(resolutions)]


def _require_plot(path: Path) -> None:
    """Raise OutputError unless a plot can be drawn, and written to ``path``."""
    require_writable(path, "the plot")
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise OutputError(
            "--plot needs matplotlib, which is not installed: pip install 'taichi-fluid[plot]', or leave --plot out."
        ) from None
    known = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix[1:].lower() not in known:
        raise OutputError(f"the plot {str(path)!r} has a suffix that is not written: give one of {', '.join(known)}.")


def _print_wide(part: Any) -> None:
    """Print tables as wide as they are: a terminal that is narrower breaks their lines, and a pipe has no width."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    widest = Measurement.get(console, console.options.update_width(1000), part).maximum
    Console(width=max(console.width, widest)).print(part)


def _compare(paths: tuple[Path, Path]) -> None:
    from ..bench.files import NoBench, load
    from ..bench.report import comparison

    try:
        parts = comparison(*map(load, paths))
    except NoBench as error:
        _stop(str(error))
    if not parts:
        _stop(f"{str(paths[0])!r} and {str(paths[1])!r} have no row of the same arch, scene, resolution and settings.")
    for part in parts:
        _print_wide(part)


@main.command(short_help="Measure what a step costs, stage by stage.")
@click.option(
    "--arch",
    "archs",
    multiple=True,
    type=click.Choice(("auto", *ARCHS)),
    help="Backend; may be repeated, each is measured in processes of its own.  [default: auto]",
)
@click.option(
    "--resolution",
    "resolutions",
    type=int,
    multiple=True,
    metavar="N",
    help="Cells along the longest edge of the box; may be repeated.  [default: the scene's]",
)
@click.option(
    "--scene",
    metavar="NAME|FILE",
    help="A scene of the package, or a file.  [default: a plume in a closed box]",
    shell_complete=_complete_scene_or_file,
)
@click.option("--dim", type=click.Choice(("2", "3")), help="Axes of the default scene.  [default: 3]")
@click.option(
    "--steps",
    type=click.IntRange(1, 100_000),
    default=20,
    show_default=True,
    help="Steps to measure as a whole, and again as many stage by stage.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a value of the scene, such as solver.tolerance=1e-3. May be repeated.",
)
@click.option(
    "--json", "json_path", type=click.Path(path_type=Path), metavar="FILE", help="Write the rows, after each one anew."
)
@click.option("--append", is_flag=True, help="Keep the rows that the JSON file already holds.")
@click.option(
    "--plot",
    "plot_path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Draw time over cells, and the shares of the stages (needs matplotlib).",
)
@click.option(
    "--compare",
    "compared",
    type=click.Path(path_type=Path),
    nargs=2,
    metavar="A.json B.json",
    help="Measure nothing; print the ratios of two JSON files.",
)
@click.pass_context
def bench(
    context: click.Context, archs: Sequence[str], resolutions: Sequence[int], scene: str | None, dim: str | None,
    steps: int, settings: Sequence[str], json_path: Path | None, append: bool, plot_path: Path | None,
    compared: tuple[Path, Path] | None,
) -> None:  # fmt: skip
    """Measure what a step costs on each backend, stage by stage; docs/performance.md says how.

    Compiling is measured apart, from an empty kernel cache and from a full one. Exit status 1 if a row could not be
    measured.
    """
    if compared:
        others = [name for name in context.params if name != "compared" and _given(context, name)]
        if others:
            _stop("--compare measures nothing, so it goes without any other option.")
        _compare(compared)
        return
    try:
        scenes = _bench_scenes(scene, int(dim) if dim else None, resolutions, settings)
        if json_path is not None:
            require_writable(json_path, "the JSON file")
        elif append:
            raise OutputError("--append adds to a JSON file: name it with --json.")
        if plot_path is not None:
            _require_plot(plot_path)
            if json_path is not None and plot_path.resolve() == json_path.resolve():
                raise OutputError("the plot and the JSON file have the same name: give another one.")
    except (SceneError, OutputError) as error:
        _stop(str(error))
    try:
        from .. import backend
        from ..bench.files import NoBench
        from ..bench.runs import Bench, Run, earlier_rows
    except TaichiUnavailable as error:
        _stop(str(error))
    named = dict.fromkeys(backend.best() if arch == "auto" else arch for arch in archs or ("auto",))
    runs = [Run(arch, each, tuple(settings)) for each in scenes for arch in named]
    try:
        measuring = Bench(runs, steps, json_path, earlier_rows(json_path) if append and json_path else ())
    except NoBench as error:
        _stop(str(error))
    _measure(measuring, runs, json_path, plot_path)


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


@terminable()
def _measure(bench: Any, runs: Sequence[Any], json_path: Path | None, plot_path: Path | None) -> None:
    """Let a benchmark run, show how far it is, and print what it found, also when it is broken off."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from ..bench.report import plot, tables

    before, ended = len(bench.rows), None
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TimeElapsedColumn())
    console = Console(stderr=True)
    try:
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task("", total=len(runs))
            bench.run(
                lambda run, part: progress.update(
                    task, description=run.label, completed=len(bench.rows) - before + part
                )
            )  # fmt: skip
    except (KeyboardInterrupt, Terminated) as broken:
        ended = broken
    except OSError as error:
        _stop(f"the JSON file {str(json_path)!r} cannot be written: {error}.", status=1)
    rows = bench.rows[before:]
    _print_wide(tables(rows))
    if json_path is not None and rows:
        click.echo(str(json_path))
    if ended:
        kept = " and kept" if json_path and rows else ""
        _stop_broken_off(ended, f"{len(rows)} of {len(runs)} rows are finished{kept}.")
    if plot_path is not None and any("problem" not in row for row in bench.rows):
        try:
            plot(bench.rows, plot_path)
        except OSError as error:
            _stop(f"the plot {str(plot_path)!r} cannot be written: {error}.", status=1)
        click.echo(str(plot_path))
    if any("problem" in row for row in rows):
        raise SystemExit(1)
