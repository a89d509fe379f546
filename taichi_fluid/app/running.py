"""Showing a scene in a window, or recording it: what ``demo`` and ``run`` share."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import NotFinite, TaichiUnavailable, Terminated, last_line, terminable
from ..io.files import OutputError, remove_leftovers, write_json
from ..io.numbered import SURFACES, VOLUMES, Numbering
from ..io.outputs import Outputs
from ..io.rhythm import rhythm_of
from ..io.series import SeriesFile
from ..io.stored import CheckpointError
from ..io.upright import UPS
from ..limits import ARCHS
from ..scene import Scene, SceneError, bytes_needed, require_installed
from ..scene.beginnings import BeginningError
from ..scene.memory import gib, require_memory
from ..scene.pictures import PictureError
from .interrupts import interruptible
from .wanted import Begun, Numbers
from .words import PATH, parse_settings, say, stop, stop_broken_off

if TYPE_CHECKING:
    from ..simulation import Simulation
    from ..simulation.comparison import Comparison
    from ..viewer.recorder import Recorder

T = TypeVar("T")


def _window_arch(arch: str) -> str:
    """What ``auto`` means where a window is wanted: on macOS not Metal, whose windows can freeze the desktop."""
    if arch != "auto" or sys.platform != "darwin":
        return arch
    from .. import backend

    return "vulkan" if backend.starts("vulkan") else "cpu"


def common(command: Callable, goes_on: bool = False) -> Callable:
    """The options that ``demo``, ``run`` and ``resume``, which ``goes_on``, share; their names are names of the scene's own values."""
    film = "NAME_from_N.mp4 here, after N pictures" if goes_on else "NAME.mp4 here"
    kept = "FILE" if goes_on else "beside the recording, called alike"
    options = [
        click.option("--arch", type=click.Choice(("auto", *ARCHS)), default="auto", show_default=True, help="Backend."),
        click.option("--resolution", type=int, metavar="N", help="Cells along the longest edge of the box."),
        click.option("--frames", type=int, metavar="N", help="Pictures to record; no window opens."),
        click.option("--headless", is_flag=True, help="Record without a window."),
        click.option(
            "--out", type=PATH, metavar="PATH",
            help=f"Record into FILE.mp4, or a folder for PNG files; no window opens.  [default: {film}]",
        ),
        click.option(
            "--set", "settings", multiple=True, metavar="KEY=VALUE",
            help="Change a value of the scene, such as fluid.viscosity=1e-4. May be repeated.",
        ),
        click.option(
            "--json", "json_path", type=PATH, metavar="FILE",
            help="Record, and write the numbers of the run: times, iterations, residual, divergence, mass, energy.",
        ),
        click.option(
            "--probes", "probes_path", type=PATH, metavar="FILE",
            help="Record, and write what the scene's [[probes]] measure to a new FILE.csv or FILE.jsonl as it runs.",
        ),
        click.option(
            "--plot", "plot_path", type=PATH, metavar="FILE",
            help="Record, and draw what the scene's [[probes]] have measured, and the --log (needs matplotlib).",
        ),
        click.option(
            "--checkpoint", "checkpoint", type=PATH, metavar="FILE",
            help="Record, and keep the state at the end, or where Ctrl-C or a signal breaks it off, to go on with 'resume'.  "
            f"[default: {kept}]",
        ),
        click.option(
            "--checkpoint-every", "every", metavar="N|30s",
            help="Record, and keep the state every so many steps, or seconds of the clock.",
        ),
        click.option(
            "--surfaces", type=PATH, metavar="FOLDER",
            help="Record, and write the surface of a liquid at each frame as PLY (needs scikit-image).",
        ),
        click.option(
            "--volumes", type=PATH, metavar="FOLDER",
            help="Record, and write what the cells hold at each frame as OpenVDB, or as --volume-format says.",
        ),
        click.option(
            "--volume-format", type=click.Choice(tuple(VOLUMES)), default="vdb", show_default=True,
            help="What --volumes writes: OpenVDB, for rendering, or VTK's ImageData, for ParaView, in 2D too.",
        ),
        click.option(
            "--up", type=click.Choice(UPS), default="y", show_default=True,
            help="The axis that points up in meshes and in OpenVDB: y as in the scene, and in Houdini, or z, as in Blender.",
        ),
        click.option(
            "--log", type=PATH, metavar="FILE",
            help="Record, and write how the run is doing (CFL, dt, iterations, divergence, energy, ...) to a new FILE.csv or "
            "FILE.jsonl, a line at each frame.",
        ),
        click.option(
            "--on-blow-up", "on_blow_up", type=click.Choice(("stop", "halve")), default="stop", show_default=True,
            help="Record, and if the flow blows up, end; or go back to the last picture, once, with half the time step.",
        ),
        click.option("--overwrite", is_flag=True, help="Replace files that are there already."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def run_scene(
    load: Callable[[], Scene],
    arch: str,
    resolution: int | None,
    frames: int | None,
    headless: bool,
    out: Path | None,
    settings: Sequence[str],
    begun: Begun | None = None,
    file: Path | None = None,
    **wanted: Any,
) -> None:
    """Run a scene in a window, or record it where a number of frames or a file is asked for; bad input ends it."""
    files = (
        "json_path",
        "probes_path",
        "plot_path",
        "overwrite",
        "checkpoint",
        "every",
        "surfaces",
        "volumes",
        "volume_format",
        "up",
        "log",
        "on_blow_up",
    )
    numbers = Numbers(*(wanted[name] for name in files))
    recording = not (frames is None and out is None) or numbers.any
    try:
        scene = load()
        changes = parse_settings(settings)
        if resolution is not None:
            changes["domain.resolution"] = resolution
        if frames is not None:
            changes["output.frames"] = frames
        scene = scene.with_values(changes) if changes else scene
        name = scene.name if begun is None else f"{scene.name}_from_{begun.pictures(scene)}"
        if begun is not None:
            begun.require_grid(scene)
            if headless or recording:
                begun.require_rest(scene)
        outputs = Outputs.plan(out, name, overwrite=numbers.overwrite) if headless or recording else None
        numbers = numbers.placed(scene.name, outputs, begun)
        numbers.require(scene, outputs, begun, file)
        copies = (numbers.checkpoint is not None) + (numbers.on_blow_up != "stop")
        require_installed(scene)
        require_memory(scene, copies)
    except (SceneError, OutputError) as error:
        stop(str(error))
    try:
        from .. import backend  # noqa: F401 - the first line that imports Taichi
    except TaichiUnavailable as error:
        stop(str(error))
    with interruptible():
        _show_or_record(scene, arch, outputs, name, numbers, begun)


def _show_or_record(
    scene: Scene, arch: str, outputs: Outputs | None, name: str, numbers: Numbers, begun: Begun | None
) -> None:
    """Start a backend, and open a window; record where ``outputs`` are given, or where no window can open."""
    from .. import backend
    from ..viewer.display import WindowProbe

    more = (begun,) if begun else ()
    probe = WindowProbe() if outputs is None else None
    try:
        running = backend.start(_window_arch(arch) if probe else arch)
        problem = probe.problem(running) if probe else None
    except backend.BackendError as error:
        stop(str(error))
    finally:
        if probe:
            probe.close()
    if probe and problem is None:
        show_window(scene, running, *more)
        return
    if outputs is None:
        say(f"{problem}, so the scene is recorded instead of shown in a window.")
        try:
            outputs = Outputs.plan(None, name, overwrite=numbers.overwrite)
            if begun is not None:
                begun.require_rest(scene)
        except (OutputError, SceneError) as error:
            stop(str(error))
    record_scene(scene, running, outputs, numbers, *more)


def _build(make: Callable[[Scene], T], scene: Scene, arch: str) -> T:
    """What ``make`` makes of the scene, or one sentence where the device has no room for it."""
    from ..boundaries.mesh import MeshError
    from .devices import reason

    try:
        return make(scene)
    except (MeshError, PictureError, BeginningError) as error:
        stop(f"{error}.")
    except NotFinite as error:
        stop(str(error), status=1)
    except (MemoryError, RuntimeError) as error:
        why = reason(str(error)) or last_line(error)
        stop(f"{arch} cannot hold this scene, which needs {gib(bytes_needed(scene))}: {why}.", status=1)


def _cells(scene: Scene) -> str:
    """How many cells a run has."""
    return " x ".join(map(str, scene.domain.shape)) + (" cells on both grids" if scene.look.compare else " cells")


def show_window(scene: Scene, arch: str, begun: Begun | None = None) -> None:
    """Open the window, and when it is closed name what was written; Ctrl-C is one way to close it, once it is there."""
    from rich.console import Console

    from ..backend import COMPILING
    from ..viewer.session import Session
    from ..viewer.waiting import Waiting
    from ..viewer.window import LiveWindow

    say(f"{scene.name}, {_cells(scene)} on {arch}. Escape or the window's own button ends it. {COMPILING}")
    session = None
    try:
        with Waiting().told_on(Console(stderr=True)):
            build = {} if begun is None else {"build": begun.build}
            session = _build(lambda scene: Session(scene, **build), scene, arch)
        LiveWindow(session, arch=arch).run()
    except (MemoryError, RuntimeError) as error:
        stop(f"the window cannot go on: {error}", status=1)
    finally:
        show_files(session.written if session else [])


@terminable()
def record_scene(scene: Scene, arch: str, outputs: Outputs, wanted: Numbers, begun: Begun | None = None) -> None:
    """Record as many frames as the scene asks for, and write the numbers of the run where they are asked for."""
    from rich.console import Console

    from ..backend import COMPILING
    from ..io.plots import plot_run
    from ..simulation.comparison import flow_of, own_of, simulations_of
    from ..simulation.flow import TooManySteps
    from ..simulation.probes import Probes
    from ..simulation.probing import budget
    from ..viewer.halving import Halving
    from ..viewer.keeping import Keeping
    from ..viewer.log import Log
    from ..viewer.recorder import Recorder, record
    from ..viewer.waiting import Waiting

    def whole(scene: Scene) -> "Simulation | Comparison":
        flow = flow_of(scene) if begun is None else begun.build(scene)
        for simulation in simulations_of(flow).values():
            simulation.prepare()
        return flow

    output, recorder, waiting, log, probes, keeping = scene.output, None, Waiting(), None, None, None
    files: dict[str, SeriesFile] = {}
    first = 0 if begun is None else begun.pictures(scene)
    width, height = scene.picture_size
    frames = output.frames - first
    pictures = f"{frames} frame{'s' if frames > 1 else ''} of {width} x {height}"
    say(f"{scene.name}, {_cells(scene)} on {arch}, {pictures}. {COMPILING}")
    try:
        with waiting.told_on(Console(stderr=True)):
            flow = _build(whole, scene, arch)
        said = _say_new(
            [*own_of(flow).remarks, *(each.pressure_solver.sentence for each in simulations_of(flow).values())]
        )
        if left := remove_leftovers(outputs.poster.parent):
            say(
                f"removed {len(left)} unfinished file(s) of processes that are gone: {', '.join(p.name for p in left)}."
            )
        if wanted.overwrite:
            outputs.make_room()
            wanted.make_room(begun)
        recorder = Recorder(outputs, output.frames - first, width, height, output.fps * scene.live.pace)
        if wanted.probes:
            files["probes"] = SeriesFile(wanted.probes)
            recorder.written.append(wanted.probes)
        if wanted.probes or (wanted.plot and scene.probes):
            with waiting.told_on(Console(stderr=True)):
                probes = Probes(own_of(flow), write=files.get("probes"))
        path = wanted.checkpoint
        keeping = None if path is None else Keeping(own_of(flow), path, rhythm_of(wanted.every))
        folders = _folders(own_of(flow), wanted, first)
        each: list[Callable[[list], None]] = [lambda steps, folder=folder: folder.write() for folder in folders]
        if wanted.log:
            files["log"] = SeriesFile(wanted.log)
            recorder.written.append(wanted.log)
            log = Log(own_of(flow), files["log"])
            each.append(log.look)
        halving = Halving(own_of(flow)) if wanted.on_blow_up == "halve" else None
        numbers = record(flow, recorder, waiting=waiting, keeping=keeping, first=first, each=each, halving=halving)
        _say_new(own_of(flow).remarks, said=said)
        recorder.written += [folder.folder for folder in folders]
        if path is not None:
            recorder.written.append(path)
        if wanted.json:
            numbers |= budget(own_of(flow))
    except (NotFinite, TooManySteps) as error:
        show_files(recorder.written if recorder else [])
        stop(str(error), status=1)
    except (KeyboardInterrupt, Terminated) as broken:
        rest = "the frames so far are kept." if recorder and recorder.shown else "there is no frame yet."
        written = [*recorder.written] if recorder else []
        if keeping is not None and keeping.path.exists():
            written.append(keeping.path)
            rest += f" 'taichi-fluid resume {keeping.path}' goes on."
        show_files(written)
        stop_broken_off(broken, rest)
    except OutputError as error:
        stop(str(error))
    except CheckpointError as error:
        stop(str(error))
    except OSError as error:
        stop(f"the recording cannot be written: {error}.", status=1)
    finally:
        for file in files.values():
            file.close()
    _say_unsolved(scene, numbers)
    _say_still(scene, recorder)
    for path, what, write in (
        (wanted.json, "the JSON file", lambda path: write_json(path, {"arch": arch, **numbers})),
        (wanted.plot, "the plot", lambda path: plot_run(path, probes, log.rows if log else ())),
    ):
        if path is not None:
            try:
                write(path)
            except (OSError, ValueError) as error:
                show_files(recorder.written)
                stop(f"{what} {str(path)!r} cannot be written: {error}.", status=1)
            click.echo(str(path))
    show_files(recorder.written)


def _folders(simulation: "Simulation", wanted: Numbers, first: int) -> list[Numbering]:
    """What writes a file of its own at each picture, from a number on."""
    if not wanted.folders:
        return []
    from ..io.surfaces import write_surface
    from ..io.volumes import write_volume

    write = {SURFACES: write_surface} | dict.fromkeys(VOLUMES.values(), write_volume)
    return [
        Numbering(folder, names, partial(write[names], simulation, up=wanted.up), first)
        for folder, names in wanted.folders
    ]


def _say_new(remarks: Sequence[str], said: Sequence[str] = ()) -> list[str]:
    """Say what was not said; which that is."""
    new = [remark for remark in dict.fromkeys(remarks) if remark and remark not in said]
    for sentence in new:
        say(sentence)
    return new


def _say_unsolved(scene: Scene, numbers: Mapping[str, Any]) -> None:
    """What a run's solves have not reached, in a sentence each."""
    pressure = numbers["pressure"]
    if unsolved := pressure["not_converged"]:
        solves = f"{unsolved} solve{'s' if unsolved > 1 else ''}"
        left = f"at most {pressure['relative_residual']:.1e} was left"
        say(f"the pressure did not reach solver.tolerance = {scene.solver.tolerance:g} in {solves}; {left}.")
    unsolved = numbers["diffusion"]["not_converged"]
    if unsolved:
        say(f"{unsolved} of {numbers['diffusion']['solves']} diffusion solves did not reach their tolerance.")


def _say_still(scene: Scene, recorder: "Recorder") -> None:
    """That nothing was to be seen, if so."""
    if recorder.still and recorder.shown > 1:
        view = scene.look.view
        hint = " A flow without smoke or dye is seen with look.view = 'slice' and look.quantity = 'speed'."
        say(
            f"all {recorder.shown} pictures are the same: look.view = {view!r} shows nothing here that changes."
            + (hint if view == "volume" else "")
        )


def show_files(written: Sequence[Path]) -> None:
    """The files, for a person and for a pipe: a folder of frames as one line, a video and a poster as one each."""
    frames = [path for path in written if path.name.startswith("frame_")]
    if frames:
        click.echo(f"{frames[0].parent}{os.sep}frame_*.png")
    for path in written:
        if path not in frames:
            click.echo(str(path))
