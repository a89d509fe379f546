"""The README as a newcomer takes it: every block and every command as printed, in an empty folder, coarse and short.

A command keeps its printed options; behind them stand limits, without which some would take minutes. What is printed for
another backend runs on it where that starts.
"""

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from slow import SLOW

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.app import commands, doctor, measuring, validating
from taichi_fluid.scene import preset, preset_names
from taichi_fluid.viewer import window
from taichi_fluid.viewer.session import Session

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SMALL = ["--resolution", "16", "--set", "output.width=64", "--set", "output.height=64"]


def blocks(language: str) -> list[str]:
    """The contents of the README's blocks in a language; ``""`` has the shell's."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


COMMANDS = [
    shlex.split(line, comments=True)[1:]
    for block in blocks("")
    for line in block.splitlines()
    if line.startswith("taichi-fluid ")
]
"""Those that stand in a block by themselves, without the name of the program."""


@pytest.fixture(autouse=True)
def newcomer(monkeypatch, tmp_path):
    """An empty folder, no display, and the Taichi that runs: to start it anew would free what there is."""
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(backend, "start", lambda arch="auto": "cpu")
    return tmp_path


def run(arguments: list[str]) -> None:
    """The command in this process; it must end with status 0."""
    with pytest.raises(SystemExit) as caught:
        commands.main(arguments, prog_name="taichi-fluid")
    assert not caught.value.code, arguments


def with_limits(arguments: list[str]) -> list[str]:
    """The command as printed, with limits behind it that leave open whether it shows or records."""
    frames = ["--frames", "2"] if "--frames" in arguments else ["--set", "output.frames=2"]
    if arguments[0] == "resume":  # as fine as what it goes on with
        return [*arguments, "--frames", "3"]
    return [*arguments, *SMALL, *frames] if arguments[0] in ("demo", "run") else arguments


def test_commands_and_files_exist():
    assert "python -m pip install . && taichi-fluid demo" in README
    assert re.search(r'^python -m pip install -e "\.\[test\]" && python -m pytest', README, re.MULTILINE)
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README) + re.findall(r'src="([^"]+)"', README):
        assert (ROOT / target).exists(), f"README points at {target}, which is not there"
    for script in re.findall(r"(?:demos|benchmarks)/\w+\.py", README):
        assert (ROOT / script).exists(), f"README names {script}, which is not there"


def test_the_tests_that_the_command_leaves_out_run_in_ci(names_of_no_test):
    """As it is printed it runs all but the slow ones, and ``.ci/run`` those behind it."""
    script = ROOT / ".ci" / "run"
    if not script.exists():
        pytest.skip("an archive of the source has no CI")
    text = script.read_text(encoding="utf-8")
    assert "grep -m 1 'python -m pytest' README.md" in text and "python -m pytest -m slow\n" in text
    for name in SLOW:
        path, _, case = name.partition("::")
        tests = (ROOT / "tests" / path).read_text(encoding="utf-8")
        assert f"def {case.partition('[')[0]}" in tests, f"tests/slow.py names {name}, which is not there"
    # With what stands in brackets, of the files that run beside this one.
    assert not names_of_no_test, f"tests/slow.py names {names_of_no_test[0]}, which is not there"


def test_every_command_in_a_line_of_text_can_be_parsed():
    """And every scene of the package has its picture; ``test_presets`` runs them."""
    shown = set()
    for text in re.findall(r"`taichi-fluid ([^`]+)`", README):
        name, *arguments = shlex.split(text)
        commands.main.commands[name].make_context(name, [*arguments])
        shown |= {*arguments} if name == "demo" else set()
    assert shown == {*preset_names()} - {"plume"}, "which is what demo shows by itself"


@pytest.mark.parametrize("block", blocks("toml"), ids=lambda block: block.splitlines()[0])
def test_a_scene_runs_as_printed(newcomer, block):
    """By the command beside it, if there is one, which names the file."""
    scene = tf.Scene.loads(block)
    file = f"{scene.name}.toml"
    (newcomer / file).write_text(block, encoding="utf-8")
    beside = [shlex.split(text) for text in re.findall(rf"`taichi-fluid (run {file}[^`]*)`", README)]
    command = next(iter(beside), ["run", file])
    run(with_limits(command))
    named = {word for word in command if "." in word}
    assert set(os.listdir()) == {file, f"{scene.name}.mp4", f"{scene.name}.png"} | named


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_a_program_runs_as_printed(newcomer, monkeypatch, number):
    """Presets have fewer cells; in place of a window that somebody closes there is a session, and one frame."""
    coarse, shown = {"domain.resolution": 16, "output.width": 64, "output.height": 64}, []

    def show(scene, on_frame):
        session = Session(scene.with_values(coarse))
        session.advance(0.0, 0.1)
        on_frame(window.Frame(None, {}, 30.0))
        shown.append(scene)

    monkeypatch.setattr("taichi_fluid.scene.preset", lambda name: preset(name).with_values(coarse))
    monkeypatch.setattr(window, "show", show)
    # In a file, where Taichi finds the source of a function.
    (newcomer / "program.py").write_text(blocks("python")[number], encoding="utf-8")
    runpy.run_path("program.py", run_name="__main__")
    assert bool(shown) is ("tf.show" in blocks("python")[number])


def test_the_shapes_in_the_first_program_are_those_of_its_scene():
    scene, first = preset("plume"), blocks("python")[0]
    assert f'to_numpy("smoke")  # {scene.domain.shape}' in first
    width, height = scene.picture_size
    assert f"render()  # ({height}, {width}, 3) bytes" in first


def test_the_commands_run_as_printed_one_after_the_other(newcomer, monkeypatch, capsys):
    """Those that measure come as far as the first measurement: ``test_bench``, ``test_doctor``, ``test_validation`` have more."""
    tried, measured = [], []

    def examine(arch):
        tried.append(arch)
        return doctor.blank(arch) | {"starts": True, "right": True, "error": 0.0}

    monkeypatch.setattr(doctor, "examine", examine)
    monkeypatch.setattr(measuring, "_measure", lambda bench, runs, *wanted: measured.extend(run.arch for run in runs))
    validated = []
    monkeypatch.setattr(validating, "_run", lambda cases, *wanted: validated.extend(case.name for case in cases))
    for command in COMMANDS:
        if "vulkan" in command and command[0] != "bench":
            continue  # another test
        *arguments, redirect, target = command if ">" in command else [*command, "", ""]
        run(with_limits(arguments))
        printed = capsys.readouterr().out
        if redirect:
            (newcomer / target).write_text(printed, encoding="utf-8")
    assert validated == ["couette", "cavity-100"]
    assert (tried, measured) == (["cuda", "vulkan", "metal", "opengl", "cpu"], ["cpu", "vulkan"])
    kept = {"dam.checkpoint", "dam.mp4", "dam.png", "dam_from_2.mp4", "dam_from_2.png"}
    kept |= {"splash.mp4", "splash.png", "splash.jsonl", "meshes", "fire", "fire.mp4", "fire.png"}
    assert set(os.listdir()) == {"frames", "mine.toml", "plume.mp4", "plume.png", "run.json"} | kept
    assert set(os.listdir("frames")) == {"frame_00000.png", "frame_00001.png", "poster.png"}


@pytest.mark.parametrize("command", [c for c in COMMANDS if "vulkan" in c and c[0] != "bench"], ids=" ".join)
def test_a_command_for_vulkan_runs_as_printed(newcomer, command):
    if not backend.starts("vulkan"):
        pytest.skip("Vulkan does not start here")
    done = subprocess.run(
        [sys.executable, "-m", "taichi_fluid", *with_limits(command)], capture_output=True, text=True, timeout=600,
        env=backend.probe_environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "on vulkan" in done.stderr
    assert done.stdout.splitlines()[-1] in os.listdir()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_for_a_shell_gives_it_something_to_run(monkeypatch, capsys, shell):
    line = f"_TAICHI_FLUID_COMPLETE={shell}_source taichi-fluid"
    assert README.count(line) == 1
    monkeypatch.setenv("_TAICHI_FLUID_COMPLETE", f"{shell}_source")
    # Click asks bash for its version and only warns where there is none.
    run([])
    assert f"_TAICHI_FLUID_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="a thing of Unix shells")
def test_the_line_for_bash_switches_completion_on(newcomer):
    """In bash itself, with the program's name standing for this package."""
    (line,) = [line for block in blocks("") for line in block.splitlines() if "bash_source" in line]
    program = newcomer / "taichi-fluid"
    program.write_text(f"#!{sys.executable}\nfrom taichi_fluid.app.cli import main\nmain(prog_name='taichi-fluid')\n")
    program.chmod(0o755)
    environment = {**backend.probe_environment(), "PATH": f"{newcomer}{os.pathsep}{os.environ['PATH']}"}
    try:
        done = subprocess.run(
            ["bash", "--norc", "-c", f"{line}\ncomplete -p taichi-fluid"], capture_output=True, text=True,
            env=environment, timeout=600,
        )  # fmt: skip
    except FileNotFoundError:
        pytest.skip("there is no bash")
    assert done.returncode == 0, done.stderr
    assert "_taichi_fluid_completion taichi-fluid" in done.stdout
