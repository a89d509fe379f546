"""The command line as tests call it: in a process of its own, after an accident, or in the process of the tests."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from taichi_fluid import backend

ARCH = os.environ.get("TI_TEST_ARCH", "cpu")
COMMAND = [sys.executable, "-m", "taichi_fluid"]
PICTURE = ["--set", "output.width=64", "--set", "output.height=64"]
TINY = ["--resolution", "16", "--frames", "3", *PICTURE]
ON_CPU = ["--arch", "cpu", *TINY]


def environment(**changes) -> dict[str, str]:
    """This process's environment without a display; ``None`` takes a variable away."""
    inherited = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    return {key: value for key, value in {**inherited, **changes}.items() if value is not None}


def run(arguments, folder: Path, before=(), **changes) -> CompletedProcess:
    """The command in a process of its own, in ``folder``."""
    return subprocess.run(
        [*before, *COMMAND, *map(str, arguments)], cwd=folder, env=environment(**changes),
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip


def run_code(code: str, arguments, folder: Path) -> CompletedProcess:
    """Python code that prepares an accident, then the command, in a process of its own."""
    code += "\nimport sys\nfrom taichi_fluid.app.cli import main\nmain(sys.argv[1:], prog_name='taichi-fluid')\n"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], cwd=folder, env=environment(),
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip


def started(arch: str, **_) -> str:
    """In place of ``backend.start`` where Taichi runs already: the arch that it runs on."""
    assert arch in ("auto", ARCH), f"{arch} does not run here"
    return ARCH


def run_here(arguments, folder: Path, start=started) -> CompletedProcess:
    """The command in this process, in ``folder``: with ``start`` in place of ``backend.start``.

    For what a run does, where it is no matter how its process begins and ends: what is compiled here need not be again.
    """
    from taichi_fluid.app import commands

    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(folder)
        patch.setattr(backend, "start", start)
        with pytest.raises(SystemExit) as caught:
            commands.main([str(argument) for argument in arguments], prog_name="taichi-fluid")
    return CompletedProcess(arguments, int(str(caught.value.code)), out.getvalue(), err.getvalue())


def one_sentence(done: CompletedProcess, status: int = 2) -> str:
    """What a refusal prints: one line on stderr, nothing on stdout."""
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("taichi-fluid: ")
    return lines[0]
