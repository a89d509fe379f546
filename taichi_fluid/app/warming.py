"""``taichi-fluid warm``: compiles what scenes of the package need, for starts that come later."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..errors import TaichiUnavailable, Terminated, last_line, terminable
from ..limits import ARCHS
from ..scene import Scene, SceneError, preset, preset_names, require_installed
from ..scene.memory import require_memory
from .interrupts import interruptible
from .words import complete_scene, stop, stop_broken_off

if TYPE_CHECKING:
    from ..viewer.session import Session


@click.command(short_help="Compile what scenes need, so that they start faster.")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_scene)
@click.option("--arch", type=click.Choice(("auto", *ARCHS)), default="auto", show_default=True, help="Backend.")
@click.option("--views", is_flag=True, help="Every view of each scene, and not only its own.")
def warm(names: Sequence[str], arch: str, views: bool) -> None:
    """Compile what the scenes called NAME need, all of the package where none is named, into Taichi's kernel cache.

    A start later still reads the Python of each kernel and makes machine code of it, but saves what lies between. The
    cache belongs to one machine, arch and version. A scene that cannot run here is named and left out: exit status 1.
    """
    try:
        scenes = [preset(name) for name in dict.fromkeys(names or preset_names())]
    except SceneError as error:
        stop(str(error))
    try:
        from .. import backend
    except TaichiUnavailable as error:
        stop(str(error))
    try:
        running = backend.start(arch)
    except backend.BackendError as error:
        stop(str(error))
    _warm(scenes, running, views)


@interruptible()
@terminable()
def _warm(scenes: Sequence[Scene], arch: str, views: bool) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from .. import kernels
    from ..viewer.waiting import Waiting

    console, waiting, left_out, done = Console(stderr=True), Waiting(), 0, 0
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TimeElapsedColumn())
    try:
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task("", total=len(scenes))

            def note(text: str) -> None:
                progress.console.print(f"taichi-fluid: {text}", highlight=False, soft_wrap=True)

            for scene in scenes:
                before = kernels.compiled_kernels()

                def show(text: str, name: str = scene.name) -> None:
                    progress.update(task, description=f"{name}, {text}", refresh=True)

                progress.update(task, description=scene.name, refresh=True)
                try:
                    require_installed(scene)
                    require_memory(scene)
                    with waiting.told_on(console, show):
                        _use(scene, views)
                    done += 1
                    note(f"{scene.name} on {arch}: {kernels.compiled_kernels() - before} kernels more.")
                except (ValueError, MemoryError, RuntimeError) as error:
                    left_out += 1
                    note(f"{scene.name} cannot run here: {last_line(error)}")
                progress.update(task, advance=1)
    except (KeyboardInterrupt, Terminated) as broken:
        stop_broken_off(broken, f"{done} of {len(scenes)} scenes are compiled.")
    if left_out:
        raise SystemExit(1)


def _use(scene: Scene, views: bool) -> None:
    """Do with a scene what a window and a recording do: a kernel is compiled where it is first launched."""
    import numpy as np

    from ..viewer.session import Session
    from ..viewer.window import pack

    session = Session(scene)
    session.draw()
    for view in dict.fromkeys([scene.look.view, *(scene.views if views else ())]):
        session.set({"look.view": view})
        for detail in (1.0, 0.5):  # whole, and enlarged
            session.detail = detail
            _step(session)
            session.draw()
    middle = [0.5 * length for length in scene.domain.size]
    session.stroke(middle, middle, seconds=0.1)
    _step(session)
    session.health()
    pack(np.zeros((16, 16), dtype=np.uint32), session.shown, 0, 16)
    session.close()


def _step(session: "Session") -> None:
    session.step_once()
    session.advance(math.inf, 0.0)
    if session.failed:
        raise RuntimeError(session.message)
