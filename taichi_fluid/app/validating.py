"""``taichi-fluid validate``: published flows, the engine's figures beside what they should be."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from ..errors import TaichiUnavailable, Terminated, terminable
from ..io.files import OutputError, require_writable, require_writable_folder, write_json
from ..io.outputs import require_apart
from ..limits import ARCHS, near
from ..scene import SceneError
from .interrupts import interruptible
from .words import PATH, parse_settings, print_wide, require_plot_library, stop, stop_broken_off


class Wanted(NamedTuple):
    """The options of the command; see its help."""

    names: Sequence[str]
    arch: str
    scheme: str | None
    settings: Sequence[str]
    resolution: int | None
    quick: bool
    listed: bool
    json_path: Path | None
    append: bool
    markdown: Path | None
    plots: Path | None


@click.command(short_help="Run published flows and hold the figures against the reference.")
@click.argument("names", nargs=-1, metavar="[CASE]...")
@click.option("--arch", type=click.Choice(("auto", *ARCHS)), default="auto", show_default=True, help="Backend.")
@click.option("--scheme", type=click.Choice(("splitting", "reflection")), help="solver.scheme.  [default: a scene's]")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a value of solver, such as solver.cfl=0.5. May be repeated.",
)
@click.option(
    "--resolution", type=click.IntRange(4, 2048), metavar="N", help="Cells along the edge that a case counts."
)
@click.option("--quick", is_flag=True, help="Few cells, seconds for each case; bounds are wider by their square.")
@click.option("--list", "listed", is_flag=True, help="List the cases and run none.")
@click.option(
    "--json",
    "json_path",
    type=PATH,
    metavar="FILE",
    help="Write what was found, after each case.",
)
@click.option("--append", is_flag=True, help="Keep other cases that the JSON file already holds.")
@click.option(
    "--markdown",
    type=PATH,
    metavar="FILE",
    help="Write the table into a document, between two lines.",
)
@click.option(
    "--plot",
    "plots",
    type=PATH,
    metavar="DIR",
    help="Draw profiles into a folder (needs matplotlib).",
)
def validate(**options: Any) -> None:
    """Run published flows, CASE by CASE, or all of them; docs/validation.md is the table of this release.

    Prints each figure beside what it should be, and what a plain second-order code reaches where that is known. Exit
    status 0 if all hold, 1 if one does not.
    """
    wanted = Wanted(**options)
    try:
        from ..validation.report import NoValidation
        from ..validation.table import CASES
    except TaichiUnavailable as error:
        stop(str(error))
    if wanted.listed:
        widest = max(map(len, CASES))
        for case in CASES.values():
            click.echo(
                f"{case.name:{widest}}  {case.title}; {case.source}; {case.resolution} cells, quick {case.quick}"
            )
        return
    for name in wanted.names:
        if name not in CASES:
            stop(f"there is no case {name!r}: {near(name, CASES)} cases are {', '.join(CASES)}.")
    try:
        changes = parse_settings(wanted.settings) | ({"solver.scheme": wanted.scheme} if wanted.scheme else {})
        _require_sense(wanted, changes)
    except (SceneError, OutputError, NoValidation) as error:
        stop(str(error))
    earlier = _earlier(wanted.json_path) if wanted.append and wanted.json_path else []
    from .. import backend

    try:
        arch = backend.start(wanted.arch)
    except backend.BackendError as error:
        stop(str(error))
    _run([CASES[name] for name in dict.fromkeys(wanted.names or CASES)], wanted, changes, earlier, arch)


def _require_sense(wanted: Wanted, changes: Mapping[str, Any]) -> None:
    """Raise SceneError or OutputError for what cannot be, and for files that cannot be written."""
    from ..scene import Scene
    from ..validation.report import around_table

    for key in changes:
        if not key.startswith("solver."):
            raise SceneError(f"--set {key} would make it another flow: only solver.… may be changed.")
    Scene.from_dict({"name": "case"}).with_values(changes)
    if wanted.quick and wanted.resolution:
        raise OutputError("--quick and --resolution both say how many cells: leave one out.")
    if wanted.json_path is not None:
        require_writable(wanted.json_path, "the JSON file")
    elif wanted.append:
        raise OutputError("--append adds to a JSON file: name it with --json.")
    if wanted.markdown is not None:
        require_writable(wanted.markdown, "the document")
        around_table(wanted.markdown)
    named = (
        ("the JSON file", wanted.json_path),
        ("the document", wanted.markdown),
        ("the folder of plots", wanted.plots),
    )
    require_apart(named, None, ())
    if wanted.plots is not None:
        require_plot_library()
        require_writable_folder(wanted.plots, "the folder of plots")


def _earlier(path: Path) -> list[dict[str, Any]]:
    """The cases of a JSON file; none if there is no such file yet."""
    if not path.exists():
        return []
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        if all({"case", "rows", "changes", "commit"} <= each.keys() for each in whole["cases"]):
            # Another machine may be about to be named in this one's place.
            return [{"processor": whole["machine"]["processor"], **each} for each in whole["cases"]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    stop(f"{str(path)!r} does not hold what 'taichi-fluid validate --json' writes.")


@interruptible()
@terminable()
def _run(cases: Sequence[Any], wanted: Wanted, changes: Mapping[str, Any], earlier: list, arch: str) -> None:
    """Run the cases one after the other; what each has found is printed and written before the next begins."""
    from rich.console import Console

    from ..bench.runs import environment
    from ..validation.report import plot, table, write_markdown

    said = Console(stderr=True)
    where, order = {**environment(), "arch": arch}, {case.name: k for k, case in enumerate(_all_cases())}
    kept, done, failed, refused = list(earlier), 0, [], []
    try:
        for case in cases:
            resolution = case.quick if wanted.quick else wanted.resolution
            try:
                with said.status(f"{case.name} …"):
                    outcome = case.run(resolution, changes)
            except SceneError as error:
                refused.append(f"{case.name} cannot be run so: {str(error).rstrip('.')}.")
                continue
            done += 1
            print_wide(table(outcome))
            if not outcome.holds:
                failed.append(case.name)
            new = {**outcome.to_dict(), "commit": where["commit"], "processor": where["machine"]["processor"]}
            same = [(new["case"], new["changes"])]
            kept = [each for each in kept if (each["case"], each["changes"]) not in same] + [new]
            kept.sort(key=lambda each: order.get(each["case"], len(order)))
            if wanted.json_path is not None:
                write_json(wanted.json_path, {**where, "cases": kept})
            if wanted.markdown is not None:
                write_markdown(wanted.markdown, kept, where)
            if wanted.plots is not None:
                wanted.plots.mkdir(parents=True, exist_ok=True)
                path = wanted.plots / f"{case.name}.png"
                if plot(outcome, path):
                    click.echo(str(path))
    except (KeyboardInterrupt, Terminated) as broken:
        stop_broken_off(broken, f"{done} of {len(cases)} cases are finished.")
    except OSError as error:
        stop(f"{error.filename or 'a file'} cannot be written: {error}.", status=1)
    if failed:
        for sentence in refused:
            click.echo(sentence, err=True)
        stop(f"{len(failed)} of {len(cases)} cases do not hold: {', '.join(failed)}.", status=1)
    if refused:
        stop(" ".join(refused))


def _all_cases() -> Sequence[Any]:
    from ..validation.table import CASES

    return list(CASES.values())
