"""``taichi-fluid bench``: what a step or a start costs, in tables, a JSON file and a plot."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from ..errors import TaichiUnavailable, Terminated, terminable
from ..io.files import OutputError, require_writable
from ..limits import ARCHS
from ..scene import Scene, SceneError, preset, preset_names, require_installed
from .interrupts import interruptible
from .words import PATH, complete_scene_or_file, parse_settings, print_wide, require_plot_library, stop, stop_broken_off


class Wanted(NamedTuple):
    """The options of the command; see its help."""

    archs: Sequence[str]
    resolutions: Sequence[int]
    scene: str | None
    dim: str | None
    steps: int
    settings: tuple[str, ...]
    json_path: Path | None
    csv_path: Path | None
    append: bool
    plot_path: Path | None
    compared: tuple[Path, Path] | None
    startup: bool
    rounds: int


def _scenes(wanted: Wanted) -> list[Scene]:
    """The scene to measure at each resolution, checked."""
    from ..bench.files import default_scene

    dim = int(wanted.dim) if wanted.dim else None
    changes = parse_settings(wanted.settings)
    if wanted.scene is None:
        chosen = default_scene(dim or 3)
    else:
        chosen = preset(wanted.scene) if wanted.scene in preset_names() else Scene.load(wanted.scene)
        if dim is not None and chosen.dim != dim:
            raise SceneError(f"--dim is {dim} and the scene {wanted.scene!r} has {chosen.dim} axes: leave --dim out.")
    chosen = chosen.with_values(changes) if changes else chosen
    require_installed(chosen)
    if not wanted.resolutions:
        return [chosen]
    return [chosen.with_values({"domain.resolution": n}) for n in dict.fromkeys(wanted.resolutions)]


def require_plot(path: Path) -> None:
    """Raise OutputError unless a plot can be drawn, and written to ``path``."""
    require_writable(path, "the plot")
    require_plot_library()
    from matplotlib.backend_bases import FigureCanvasBase

    known = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix[1:].lower() not in known:
        raise OutputError(f"the plot {str(path)!r} has a suffix that is not written: give one of {', '.join(known)}.")


def _compare(paths: tuple[Path, Path]) -> None:
    from ..bench.files import NoBench, load
    from ..bench.report import comparison

    try:
        parts = comparison(*map(load, paths))
    except NoBench as error:
        stop(str(error))
    if not parts:
        stop(f"{str(paths[0])!r} and {str(paths[1])!r} have no row of the same arch, scene, resolution and settings.")
    for part in parts:
        print_wide(part)


@click.command(short_help="Measure what a step costs, stage by stage.")
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
    shell_complete=complete_scene_or_file,
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
@click.option("--json", "json_path", type=PATH, metavar="FILE", help="Write the rows, after each one anew.")
@click.option("--csv", "csv_path", type=PATH, metavar="FILE", help="Write the rows as a table, a line each.")
@click.option("--append", is_flag=True, help="Keep the rows that the JSON file already holds.")
@click.option(
    "--plot",
    "plot_path",
    type=PATH,
    metavar="FILE",
    help="Draw time over cells, and the shares of the stages (needs matplotlib).",
)
@click.option(
    "--compare",
    "compared",
    type=PATH,
    nargs=2,
    metavar="A.json B.json",
    help="Measure nothing; print the ratios of two JSON files.",
)
@click.option("--startup", is_flag=True, help="Measure the start in place of steps, from its imports to its pictures.")
@click.option(
    "--rounds", type=click.IntRange(1, 100), default=1, show_default=True, help="Starts of either kind; medians count."
)
@click.pass_context
def bench(context: click.Context, **options: Any) -> None:
    """Measure what a step costs on each backend, stage by stage; docs/performance.md says how.

    Compiling is measured apart, from an empty kernel cache and from a full one; with --startup, all of a start is, kernel
    by kernel. Exit status 1 if a row could not be measured.
    """
    wanted = Wanted(**options)
    if wanted.compared:
        others = [name for name in context.params if name != "compared" and _given(context, name)]
        if others:
            stop("--compare measures nothing, so it goes without any other option.")
        _compare(wanted.compared)
        return
    try:
        _require_sense(context, wanted)
        scenes = _scenes(wanted)
    except (SceneError, OutputError) as error:
        stop(str(error))
    try:
        from .. import backend
        from ..bench.files import NoBench
        from ..bench.runs import Bench, Run, earlier_rows, measured
        from ..bench.starts import starts
    except TaichiUnavailable as error:
        stop(str(error))
    path, named = wanted.json_path, [backend.best() if arch == "auto" else arch for arch in wanted.archs or ("auto",)]
    runs = [Run(arch, each, wanted.settings) for each in scenes for arch in dict.fromkeys(named)]
    try:
        earlier = earlier_rows(path) if wanted.append and path else ()
        of_steps = functools.partial(measured, steps=wanted.steps)
        measuring = Bench(runs, starts(wanted.rounds) if wanted.startup else of_steps, path, earlier)
    except NoBench as error:
        stop(str(error))
    _measure(measuring, runs, wanted)


def _require_sense(context: click.Context, wanted: Wanted) -> None:
    """Raise OutputError for options that do not go together, and for files that cannot be written."""
    path, plot_path = wanted.json_path, wanted.plot_path
    if wanted.startup and (_given(context, "steps") or plot_path is not None or wanted.csv_path is not None):
        raise OutputError("--startup makes one step, no plot and no table: leave --steps, --plot and --csv out.")
    if not wanted.startup and _given(context, "rounds"):
        raise OutputError("--rounds counts starts: add --startup, or leave it out.")
    if path is not None:
        require_writable(path, "the JSON file")
    elif wanted.append:
        raise OutputError("--append adds to a JSON file: name it with --json.")
    if wanted.csv_path is not None:
        require_writable(wanted.csv_path, "the CSV file")
    if plot_path is not None:
        require_plot(plot_path)
    files = [file.resolve() for file in (path, wanted.csv_path, plot_path) if file is not None]
    if len(set(files)) < len(files):
        raise OutputError("two of the JSON file, the CSV file and the plot have the same name: give another one.")


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT


@interruptible()
@terminable()
def _measure(bench: Any, runs: Sequence[Any], wanted: Wanted) -> None:
    """Let a benchmark run, show how far it is, and print what it found, also when it is broken off."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from ..bench.files import write_csv
    from ..bench.report import plot, start_tables, tables

    json_path, plot_path = wanted.json_path, wanted.plot_path
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
            )
    except (KeyboardInterrupt, Terminated) as broken:
        ended = broken
    except OSError as error:
        stop(f"the JSON file {str(json_path)!r} cannot be written: {error}.", status=1)
    rows = bench.rows[before:]
    print_wide(start_tables(rows) if wanted.startup else tables(rows))
    if json_path is not None and rows:
        click.echo(str(json_path))
    for path, what, write in (
        (wanted.csv_path if bench.rows else None, "the CSV file", lambda path: write_csv(path, bench.found)),
        (
            plot_path if any("stages" in row for row in bench.rows) else None,
            "the plot",
            lambda path: plot(bench.rows, path),
        ),
    ):
        if path is not None:
            try:
                write(path)
            except OSError as error:
                stop(f"{what} {str(path)!r} cannot be written: {error}.", status=1)
            click.echo(str(path))
    if ended:
        kept = " and kept" if json_path and rows else ""
        stop_broken_off(ended, f"{len(rows)} of {len(runs)} rows are finished{kept}.")
    if any("problem" in row for row in rows):
        raise SystemExit(1)
