"""Whether a window can open here is a question with an answer in words, and never the end of the process."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from taichi_fluid.viewer import display
from taichi_fluid.viewer.display import WindowProbe, display_problem

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="DISPLAY is a thing of Linux")
DEAD = ":987"
"""A display that nobody serves."""


class Library:
    """A libX11 whose display is there."""

    def __init__(self, name):
        assert name == "libX11.so.6"
        self.closed = []

    class Function:
        def __init__(self, result):
            self._result = result

        def __call__(self, *arguments):
            return self._result

    XOpenDisplay, XCloseDisplay = Function(1), Function(0)


@pytest.fixture
def with_display(monkeypatch):
    """A display that answers, whatever there is."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", ":1")
    monkeypatch.setattr(ctypes, "CDLL", Library)


@pytest.fixture
def probing(monkeypatch):
    """What the other process does is the test's to say: Python code."""

    def code(text: str) -> None:
        monkeypatch.setattr(display, "_CODE", text)

    return code


@LINUX
@pytest.mark.parametrize("value", [None, ""])
def test_no_display_is_said(monkeypatch, value):
    monkeypatch.delenv("DISPLAY", raising=False)
    if value is not None:
        monkeypatch.setenv("DISPLAY", value)
    assert "DISPLAY is not set" in display_problem()
    probe = WindowProbe()
    assert probe._process is None, "nothing is tried"
    assert "DISPLAY is not set" in probe.problem("cpu")


@LINUX
@pytest.mark.parametrize("name", [DEAD, "no display"])
def test_a_dead_display_is_named(monkeypatch, name):
    monkeypatch.setenv("DISPLAY", name)
    problem = WindowProbe().problem("cpu")
    assert name in problem
    assert "does not answer" in problem


@LINUX
def test_without_libx11_that_is_said(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setenv("DISPLAY", DEAD)
    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert "libX11 is missing" in display_problem()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_have_their_screen_without_a_variable(monkeypatch, platform):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    assert display_problem() is None


def test_a_window_that_starts_is_no_problem(with_display, probing):
    probing("")
    assert WindowProbe().problem("cpu") is None


@pytest.mark.parametrize("code", ["raise SystemExit(1)", "import os; os.abort()", "import no_such_module_at_all"])
def test_without_vulkan_that_is_said_and_this_process_lives(with_display, probing, code):
    probing(code)
    problem = WindowProbe().problem("cpu")
    assert "Vulkan" in problem
    assert not problem.endswith("."), "half a sentence"


def test_metal_is_refused_and_told_what_helps(with_display, probing):
    probing("import time; time.sleep(600)")
    probe = WindowProbe()
    problem = probe.problem("metal")
    assert "Metal" in problem
    assert "--arch vulkan" in problem
    assert probe._process.poll() is not None, "nobody waits for it"


def test_a_driver_that_does_not_answer_is_given_up(with_display, probing, monkeypatch):
    probing("import time; time.sleep(600)")
    monkeypatch.setattr(display, "PROBE_SECONDS", 0.2)
    probe = WindowProbe()
    assert "did not answer" in probe.problem("cpu")
    assert probe._process.poll() is not None


def test_close_ends_the_other_process_and_removes_its_folder(with_display, probing):
    probing("import time; time.sleep(600)")
    probe = WindowProbe()
    folder = Path(probe._folder.name)
    assert probe._process.poll() is None
    assert folder.is_dir()
    probe.close()
    assert probe._process.poll() is not None
    assert not folder.exists()
    probe.close()  # once more does no harm


def test_the_question_costs_this_process_no_taichi():
    """It runs before Taichi's own arch is started, so it must not start one here."""
    code = (
        "import os, sys\n"
        "os.environ.pop('DISPLAY', None)\n"
        "from taichi_fluid.viewer.display import WindowProbe\n"
        "from taichi_fluid._ti import impl\n"
        "WindowProbe().problem('cpu')\n"
        "assert impl.get_runtime().prog is None\n"
    )
    folder = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
