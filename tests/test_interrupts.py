"""Ctrl-C on the command line: one sentence, status 130 and no traceback, whatever is being done."""

import os
import signal
import subprocess
import sys

import pytest
from command_line import ON_CPU, environment

from taichi_fluid.app.interrupts import STATUS, interruptible

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="another kind of interrupt")

AT_IMPORT = """
import os, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), 2)

sys.meta_path.insert(0, Interrupt())
from taichi_fluid.app.cli import main
main(sys.argv[1:], prog_name="taichi-fluid")
"""
"""Ctrl-C at the instant at which a module is looked for."""


def ended(code: str, folder, *arguments: str) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, env=environment(), capture_output=True, text=True, timeout=600
    )  # fmt: skip
    assert done.returncode == STATUS == 130, done.stderr
    assert os.listdir(folder) == []
    return done


@pytest.mark.parametrize(
    "module", ["signal", "click", "pydantic", "taichi", "taichi.ui.ui", "taichi_fluid.viewer.recorder"]
)
def test_while_modules_are_imported_it_is_one_sentence(module, tmp_path):
    """Its own first ones, those of others, Taichi's, and those of a run that has begun."""
    done = ended(AT_IMPORT.format(module=module), tmp_path, "demo", "plume2d", *ON_CPU, "--headless")
    assert done.stderr.count("\n") == done.stderr.count("taichi-fluid: ")
    assert "stopped by the keyboard" in done.stderr.splitlines()[-1]
    assert done.stdout == ""


PRESSED = """
import os, signal, sys, time
from taichi_fluid.app.interrupts import end_at_once, interruptible
end_at_once()
with interruptible():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    finally:
        for _ in range({more}):
            os.kill(os.getpid(), signal.SIGINT)
        print("finished", flush=True)
"""


@pytest.mark.parametrize(("more", "finished"), [(0, True), (1, True), (2, False)], ids=["once", "twice", "three times"])
def test_the_second_one_warns_and_the_third_one_does_not_wait(more, finished, tmp_path):
    done = ended(PRESSED.format(more=more), tmp_path)
    assert done.stdout == ("finished\n" if finished else "")
    *warned, said = done.stderr.splitlines()
    assert said == "taichi-fluid: stopped by the keyboard."
    assert len(warned) == min(more, 1) and all("Ctrl-C once more" in line for line in warned)


AFTERWARDS = """
import os, signal
from taichi_fluid.app.interrupts import end_at_once, interruptible
end_at_once()
with interruptible():
    print("finished", flush=True)
try:
    os.kill(os.getpid(), signal.SIGINT)
finally:
    print("never", flush=True)
"""


def test_where_nothing_has_to_be_finished_any_more_it_ends_at_once(tmp_path):
    assert ended(AFTERWARDS, tmp_path).stdout == "finished\n"


def test_the_program_of_somebody_else_hears_of_it_as_always():
    before = signal.getsignal(signal.SIGINT)

    @interruptible()
    def press():
        assert signal.getsignal(signal.SIGINT) is before
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        press()
    assert signal.getsignal(signal.SIGINT) is before
