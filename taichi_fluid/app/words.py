"""What the commands have in common: how they say things, end, and read what they are given."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from ..errors import Terminated
from ..io.files import OutputError
from ..scene import SceneError, parse_toml, preset_names
from ..scene.reference import tables


def stop(message: str, status: int = 2) -> NoReturn:
    """End with a sentence and a status; of what has no end a beginning is enough."""
    cut = re.sub(r"\S{301,}", lambda word: f"{word[0][:77]}...", message)
    click.echo(f"taichi-fluid: {cut}", err=True)
    raise SystemExit(status)


def stop_broken_off(broken: BaseException, rest: str) -> NoReturn:
    """End with the status that shells give what Ctrl-C or a signal has ended."""
    if isinstance(broken, Terminated):
        stop(f"stopped by a signal; {rest}", status=int(broken.code or 0))
    stop(f"stopped by the keyboard; {rest}", status=130)


class Sentences(click.Group):
    """Commands whose bad input ends them with one sentence, as whatever else is bad does."""

    def main(self, *arguments: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Run, and if it stands alone end the process."""
        if not standalone_mode:
            return super().main(*arguments, standalone_mode=False, **options)
        try:
            status = super().main(*arguments, standalone_mode=False, **options)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            raise SystemExit(error.exit_code) from None
        except click.ClickException as error:
            words = error.format_message().rstrip(".").replace("\n", " ")
            end = "" if words.endswith("?") else ";"
            help_of = getattr(getattr(error, "ctx", None), "command_path", "taichi-fluid")
            stop(f"{words[:1].lower()}{words[1:]}{end} see '{help_of} --help'.", error.exit_code)
        except click.Abort:
            stop("stopped by the keyboard.", status=130)
        raise SystemExit(status if isinstance(status, int) else 0)


class PathType(click.Path):
    """A path that names something; an empty one would be the current folder, which nobody has typed."""

    def __init__(self):
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if value == "":
            self.fail("it is empty; give the name of a file or folder.", param, ctx)
        return super().convert(value, param, ctx)


PATH = PathType()
"""The type of all arguments and options that are paths."""


def say(message: str) -> None:
    """A sentence on stderr."""
    click.echo(f"taichi-fluid: {message}", err=True)


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """``key=value`` pairs, the values as TOML writes them; what TOML does not know is taken as text."""
    changes = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key.strip():
            raise SceneError(f"--set {setting!r} is not key=value, for example --set fluid.viscosity=1e-4.")
        key = re.sub(r"\[([0-9]+)\]", r".\1", key.strip())  # a place in a list, in either spelling
        try:
            changes[key] = parse_toml(f"value = {text}", f"--set {key}")["value"]
        except SceneError:
            changes[key] = text
    return changes


def complete_scene(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The scenes of the package that a shell may complete a name to."""
    return [CompletionItem(name) for name in preset_names() if name.startswith(incomplete)]


def complete_table(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The tables of a scene that a shell may complete a name to."""
    return [CompletionItem(table.name) for table in tables() if table.name and table.name.startswith(incomplete)]


def complete_scene_or_file(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The same, or files where no scene has such a name."""
    return complete_scene(context, parameter, incomplete) or [CompletionItem(incomplete, type="file")]


def print_wide(part: Any) -> None:
    """Print tables as wide as they are: a terminal that is narrower breaks their lines, and a pipe has no width."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console()
    widest = Measurement.get(console, console.options.update_width(1000), part).maximum
    Console(width=max(console.width, widest)).print(part)


def require_plot_library() -> None:
    """Raise OutputError unless matplotlib can be imported."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise OutputError(
            "--plot needs matplotlib, which is not installed: pip install 'taichi-fluid[plot]', or leave --plot out."
        ) from None
