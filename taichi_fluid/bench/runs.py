"""The runs of a benchmark: which there are, each in processes of its own, and the file that keeps what they found."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from .. import backend
from .._ti import ti
from ..io.files import write_json
from ..scene import Scene, SceneError
from ..scene.memory import require_memory
from .files import SAYS, NoBench, load
from .measure import WARM_STEPS

HERE = Path(__file__).parent
GIT_SECONDS = 30
COLD_PART = 0.3
"""Of the progress of a row; what share of its time the cold start takes differs from scene to scene."""


class Run(NamedTuple):
    """One row to measure.

    Attributes:
        arch: Backend.
        scene: What it runs.
        settings: What was changed in the scene, as ``key=value``: rows with other settings are not compared.
    """

    arch: str
    scene: Scene
    settings: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The run, for a person."""
        return f"{self.arch}, {self.scene.name}, {' x '.join(map(str, self.scene.domain.shape))}"


def _output(*command: str) -> str:
    """What a command prints, in one line; empty where it fails or is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""


def commit() -> str:
    """The commit of the checkout that this package runs from, ``-dirty`` where files differ; empty outside of one."""
    if not _output("git", "-C", str(HERE), "ls-files", "--error-unmatch", "runs.py"):
        return ""
    return _output("git", "-C", str(HERE), "describe", "--always", "--dirty")


def _version(package: str) -> str:
    """The version of a package; empty where none is installed, as of a tree that only lies on the path."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def environment() -> dict[str, Any]:
    """What rows of one file have in common: machine, versions and commit."""
    return {
        "machine": {
            "processor": backend.device_name("cpu"),
            "system": platform.platform(),
            "driver": backend.of_nvidia("driver_version"),
        },
        "versions": {
            "taichi_fluid": _version("taichi-fluid"),
            "taichi": ".".join(map(str, ti.__version__)),
            "python": platform.python_version(),
            "numpy": _version("numpy"),
            "scipy": _version("scipy"),
        },
        "commit": commit(),
    }


def _load() -> float | None:
    """How many processes have wanted a processor over the last minute; None where the system does not say."""
    try:
        return round(os.getloadavg()[0], 2)
    except (AttributeError, OSError):
        return None


Measure = Callable[[Run, Callable[[float], None]], dict[str, Any]]


class Problem(Exception):
    """A row that cannot be measured; the message is one sentence."""


@contextmanager
def _ended(process: subprocess.Popen) -> Iterator[subprocess.Popen]:
    """Whatever happens, the process is gone afterwards."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def _last_words(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith("***")]
    named = [line for line in lines if "rror" in line]
    return (named or lines or ["nothing said"])[-1][:160].rstrip(".")


def in_a_process(
    module: str, job: dict[str, Any], environ: dict[str, str], progress: Callable[[float], None] = lambda part: None
) -> dict[str, Any]:
    """Let another process run a module of this room with a job; what it found.

    Raises:
        Problem: if it found nothing.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        command = [sys.executable, "-m", f"taichi_fluid.bench.{module}", json.dumps({**job, "began": time.time()})]
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environ,
            encoding="utf-8",
            errors="replace",
        )
        said: dict[str, Any] = {}
        with _ended(started) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(SAYS):
                    said = json.loads(line[len(SAYS) :])
                    progress(said.get("progress", 0.0))
            status = process.wait()
        if "problem" in said:
            raise Problem(said["problem"])
        if "numbers" not in said or status != 0:
            log.seek(0)
            raise Problem(f"its process ended with status {status}: {_last_words(log.read())}.")
        return said["numbers"]


class Fresh(NamedTuple):
    """A folder with a scene in it and empty kernel caches, for processes that come one after another.

    Attributes:
        job: What each of them is given, at least.
        environ: Its environment.
        cache: The folder of the caches.
    """

    job: dict[str, str]
    environ: dict[str, str]
    cache: Path

    @property
    def cache_mb(self) -> float:
        """What the processes so far have left in the caches."""
        return 1e-6 * sum(path.stat().st_size for path in self.cache.rglob("*") if path.is_file())


@contextmanager
def fresh(run: Run) -> Iterator[Fresh]:
    """A folder for the processes that measure a run.

    Raises:
        Problem: if the scene does not fit into this machine.
    """
    try:
        require_memory(run.scene)
    except SceneError as error:
        raise Problem(str(error)) from None
    with tempfile.TemporaryDirectory(prefix="taichi-fluid-bench-") as name:
        folder = Path(name)
        scene, cache = folder / "scene.toml", folder / "cache"
        scene.write_text(_movable(run.scene).dumps(), encoding="utf-8")
        cache.mkdir()
        # Every cache that a kernel may be found in: Taichi's, those of the drivers of NVIDIA and Mesa.
        caches = ("XDG_CACHE_HOME", "CUDA_CACHE_PATH", "__GL_SHADER_DISK_CACHE_PATH", "MESA_SHADER_CACHE_DIR")
        environ = {**backend.probe_environment(), **dict.fromkeys(caches, str(cache))}
        yield Fresh({"arch": run.arch, "scene": str(scene), "cache": str(cache / "kernels")}, environ, cache)


def measured(run: Run, progress: Callable[[float], None], steps: int) -> dict[str, Any]:
    """The row of a run: once from an empty kernel cache, then from the one that this has left, and then its steps.

    Args:
        run: What to measure.
        progress: Is told how far it is, 0 to 1.
        steps: Steps that count, of either kind; see ``measure.steps_of``.

    Raises:
        Problem: if it cannot be measured, saying why.
    """
    with fresh(run) as folder:
        cold = in_a_process("measure", {**folder.job, "steps": 0}, folder.environ)
        cached = folder.cache_mb
        progress(COLD_PART)
        rest = 1 - COLD_PART
        job = {**folder.job, "steps": steps}
        warm = in_a_process("measure", job, folder.environ, lambda part: progress(COLD_PART + rest * part))
    both = {key: {"cold": cold.pop(key), "warm": warm.pop(key)} for key in ("compile_s", "first_frame_s")}
    return {**warm, **both, "kernel_cache_mb": cached}


def _movable(scene: Scene) -> Scene:
    """The scene with its files named in full, so that it is the same from any folder."""
    changes = {key: os.path.abspath(file) for key, file in scene.files.items()}
    return scene.with_values(changes) if changes else scene


class Bench:
    """Measures runs one after another; after each, the rows so far are in the file, whole.

    Attributes:
        rows: What was found; a run that could not be measured has a ``problem``, a sentence, in place of numbers.

    Args:
        runs: What to measure.
        measure: Finds the numbers of a row, and says how far it is, 0 to 1; raises Problem if there are none.
        json_path: Where the rows go; None keeps them here only.
        earlier: Rows that the file begins with.
    """

    def __init__(
        self, runs: Sequence[Run], measure: Measure, json_path: Path | None, earlier: Sequence[dict[str, Any]] = ()
    ):
        self._runs, self._measure, self._path = runs, measure, json_path
        self.rows = list(earlier)
        self._environment = environment()
        self._devices: dict[str, str | None] = {}

    @property
    def found(self) -> dict[str, Any]:
        """All that a file of rows holds."""
        return {**self._environment, "warm_steps": WARM_STEPS, "rows": self.rows}

    def run(self, progress: Callable[[Run, float], None]) -> None:
        """Measure all runs; ``progress`` is told which and how far, 0 to 1.

        Raises:
            OSError: if the file cannot be written.
        """
        for run in self._runs:
            progress(run, 0.0)
            self.rows.append(self._row(run, lambda part, run=run: progress(run, part)))
            if self._path is not None:
                write_json(self._path, self.found)

    def _row(self, run: Run, progress: Callable[[float], None]) -> dict[str, Any]:
        scene = run.scene
        row = {
            "arch": run.arch,
            "scene": scene.name,
            "resolution": list(scene.domain.shape),
            "settings": list(run.settings),
            "tolerance": scene.solver.tolerance,
            "load": _load(),
        }
        try:
            device = self._device(run.arch)
            return {**row, "device": device, **self._measure(run, progress)}
        except Problem as problem:
            return {**row, "problem": str(problem)}

    def _device(self, arch: str) -> str:
        """What an arch computes on; it is started once, in another process, to find out."""
        if arch not in self._devices:
            log = backend.start_log(arch)
            self._devices[arch] = None if log is None else backend.device_name(arch, log)
        device = self._devices[arch]
        if device is None:
            raise Problem(f"{arch} does not start on this machine; 'taichi-fluid doctor' shows what does.")
        return device


def earlier_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that more are to be added to; none where it is not there yet.

    Raises:
        NoBench: if it is no benchmark, or one of another machine, version or commit.
    """
    if not path.exists():
        return []
    found, here = load(path), environment()
    differing = [key for key, value in here.items() if found.get(key) != value]
    if differing:
        raise NoBench(f"{str(path)!r} is of another {' and '.join(differing)}: rows of this one do not belong there.")
    return found["rows"]
