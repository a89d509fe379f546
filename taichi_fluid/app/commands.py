"""The commands of ``taichi-fluid``.

Exit status 0 done, 1 failed, 2 bad input. Progress and sentences go to stderr, results to stdout. Taichi is imported
only after the input has been checked.
"""

import shutil
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from ..errors import TaichiUnavailable
from ..io.files import OutputError, require_writable, write_json
from ..io.stored import CheckpointError
from ..limits import ARCHS
from ..scene import Scene, SceneError, preset, preset_names, require_installed
from ..scene.memory import gib
from ..scene.reference import reference
from .interrupts import interruptible
from .measuring import bench
from .running import common, run_scene
from .validating import validate
from .wanted import Begun
from .warming import warm
from .words import PATH, Sentences, complete_scene, complete_table, print_wide, say, stop


@click.group(cls=Sentences, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="taichi-fluid", prog_name="taichi-fluid")
def main() -> None:
    """A grid fluid engine in Taichi: smoke, fire, water and solids in 2D and 3D, on CUDA, Vulkan, Metal and CPU."""


@main.command(short_help="Show or record a scene that comes with the package.")
@click.argument("name", default="plume", shell_complete=complete_scene)
@common
def demo(name: str, **options: Any) -> None:
    """Show a scene that comes with the package; without a display, record it.

    NAME is plume (the default), plume2d, jets, or another of 'taichi-fluid scenes'.
    """
    run_scene(lambda: preset(name), **options)


@main.command(short_help="Show or record the scene of a TOML file.")
@click.argument("scene", type=PATH)
@common
def run(scene: Path, **options: Any) -> None:
    """Show or record the scene of a TOML file; see 'taichi-fluid scenes NAME' for one to start from."""
    if str(scene) in preset_names() and not scene.exists():
        stop(
            f"there is no scene file '{scene}'; the package has one of that name: 'taichi-fluid demo {scene}' shows it."
        )
    run_scene(lambda: Scene.load(scene), file=scene, **options)


@main.command(short_help="Go on with a run from its checkpoint.")
@click.argument("checkpoint_file", type=PATH, metavar="FILE")
@partial(common, goes_on=True)
def resume(checkpoint_file: Path, **options: Any) -> None:
    """Go on from the checkpoint FILE, in a window or with the pictures of its recording that are left.

    On the backend that wrote it, it goes on bit for bit.
    """
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            begun = Begun(checkpoint_file)
    except CheckpointError as error:
        stop(str(error))
    for warning in told:
        say(str(warning.message))
    run_scene(lambda: begun.scene, begun=begun, **options)


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
    wrapped = [(name, textwrap.wrap(text, max(width - column, 20)) if width else [text]) for name, text in rows]
    lines = [f"{name if i == 0 else '':{column}}{line}" for name, part in wrapped for i, line in enumerate(part)]
    return "\n".join(lines)


@main.command(short_help="List the scenes of the package, or print one as TOML.")
@click.argument("name", required=False, shell_complete=complete_scene)
def scenes(name: str | None) -> None:
    """List the scenes of the package, or print the one called NAME as TOML."""
    try:
        if name is not None:
            click.echo(preset(name).dumps(), nl=False)
            return
        # A pipe has no width: a scene a line, for grep.
        width = shutil.get_terminal_size().columns if sys.stdout and sys.stdout.isatty() else None
        click.echo(_in_columns([(each, _description(each)) for each in preset_names()], width))
    except SceneError as error:
        stop(str(error))


@main.command(short_help="Say what a scene may hold, key by key.")
@click.argument("table", required=False, shell_complete=complete_table)
def keys(table: str | None) -> None:
    """Print what a scene may hold, as TOML at its defaults: every key, what it means and may be; or those of one TABLE."""
    try:
        click.echo(reference(table), nl=False)
    except SceneError as error:
        stop(str(error))


@main.command(short_help="Try every backend: does it start, is its answer right?")
@click.option("--json", "json_path", type=PATH, metavar="FILE", help="Write the findings as JSON too.")
@click.option(
    "--full",
    is_flag=True,
    help="Then let each one that starts test itself for some minutes: reductions, NaN, a plume beside the CPU, published flows.",
)
@interruptible()
def doctor(json_path: Path | None, full: bool) -> None:
    """Try every backend in a process of its own: does it start, on what, and is its answer right?

    Each one runs Normoyle's 2x2x1 case, in 2D and 3D and with both pressure solvers, and is held against the printed
    numbers. Exit status 1 if a backend that starts computes a wrong answer, or none starts.
    """
    if json_path is not None:
        try:
            require_writable(json_path, "the JSON file")
        except OutputError as error:
            stop(str(error))
    try:
        from ..bench.runs import environment
        from .doctor import examine
    except TaichiUnavailable as error:
        stop(str(error))
    from rich.console import Console
    from rich.table import Table

    table, findings, here = Table("arch", "starts", "answer", "largest error", "device or reason"), [], environment()
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
    for finding in findings:
        if sentence := _more_of(finding):
            click.echo(f"{finding['arch']}: {sentence}")
    versions = [f"{name} {number}" if number else f"no {name}" for name, number in here["versions"].items()]
    click.echo("\n" + ", ".join([*versions, here["machine"]["system"]]))
    tests = _self_tests([finding["arch"] for finding in findings if finding["starts"]]) if full else []
    if json_path is not None:
        try:
            write_json(json_path, {**here, "backends": findings} | ({"tests": tests} if full else {}))
        except OSError as error:
            stop(f"the JSON file {str(json_path)!r} cannot be written: {error}.", status=1)
    working = [finding["right"] for finding in findings if finding["starts"]]
    working += [not test["problem"] and all(row["holds"] for row in test["rows"]) for test in tests]
    if not working or not all(working):
        raise SystemExit(1)


def _more_of(finding: Mapping[str, Any]) -> str:
    """What a report says of a backend beside its row: what it runs on and what fits into that, or what helps."""
    parts = []
    if finding["starts"]:
        parts += [f"driver {finding['driver']}"] if finding["driver"] else []
        parts += [gib(finding["memory"])] if finding["memory"] else ["memory not known"]
        sizes = [f"{name} at {cells}" for name, cells in finding["largest"].items()]
        parts += [f"holds {' and '.join(sizes)} cells along the longest edge"] if sizes else []
    return ". ".join(filter(None, (", ".join(parts), finding["remedy"])))


def _self_tests(arches: Sequence[str]) -> list[dict[str, Any]]:
    """Let backends test themselves, the CPU first, and print what they find."""
    from rich.console import Console
    from rich.table import Table

    from .selftest import tested

    found = []
    with tempfile.TemporaryDirectory() as folder, Console(stderr=True).status("") as status:
        for arch in sorted(arches, key=lambda arch: arch != "cpu"):
            status.update(f"{arch} tests itself, which takes minutes the first time …")
            test = tested(arch, Path(folder) / "fields.npz")
            found.append(test)
            table = Table("part", "", "found", "should be", "holds", title=arch)
            for row in test["rows"]:
                figure = "not finite" if row["found"] is None else f"{row['found']:.4g}"
                table.add_row(row["part"], row["quantity"], figure, row["reference"], "yes" if row["holds"] else "NO")
            print_wide(table)
            if test["problem"]:
                say(f"{arch} {test['problem']}")
    return found


main.add_command(bench)
main.add_command(validate)
main.add_command(warm)
