"""The command line: sentences for bad input before Taichi starts, whole files, and the statuses 0, 1, 2 and 130."""

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import av
import numpy as np
import pytest
from command_line import COMMAND, ON_CPU, PICTURE, TINY, environment, one_sentence, run, run_code, run_here

from taichi_fluid.backend import COMPILING
from taichi_fluid.scene import Scene, preset, preset_names


def pictures_in(path: Path) -> list[np.ndarray]:
    """Every picture of a video or an image file, first row on top."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


# A whole run


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """``run`` of a scene file without a display: the process, and the folder that it ran in."""
    folder = tmp_path_factory.mktemp("recording")
    scene = preset("plume").with_values({"name": "small", "domain.resolution": 16, "live.pace": 0.5})
    (folder / "scene.toml").write_text(scene.dumps(), encoding="utf-8")
    return run_here(["run", "scene.toml", *ON_CPU, "--json", "numbers.json"], folder), folder


@pytest.fixture(scope="module")
def folder_recording(tmp_path_factory):
    """``demo`` of a 2D scene into a folder of PNG files, on the arch that is found."""
    folder = tmp_path_factory.mktemp("folder")
    return run(["demo", "plume2d", *TINY, "--headless", "--out", "frames"], folder), folder


def test_a_run_ends_with_its_files_on_the_last_lines(recording):
    done, folder = recording
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["small.mp4", "small.png"]
    assert sorted(os.listdir(folder)) == ["numbers.json", "scene.toml", "small.mp4", "small.png"]


def test_the_video_has_the_frames_and_the_size_that_were_asked_for(recording):
    _, folder = recording
    pictures = pictures_in(folder / "small.mp4")
    assert [picture.shape for picture in pictures] == [(64, 64, 3)] * 3
    assert np.abs(pictures[-1].astype(int) - pictures[0]).max() > 20, "something has happened"
    with av.open(str(folder / "small.mp4")) as film:
        assert film.streams.video[0].average_rate == 12, "24 pictures of each second of the scene, which takes two"
    # Three pictures of half the size side by side, 4 pixels apart.
    assert pictures_in(folder / "small.png")[0].shape == (32, 3 * 32 + 2 * 4, 3)


def test_who_asked_for_a_recording_is_told_nothing_of_a_display(recording):
    done, _ = recording
    assert "display" not in done.stderr.lower()
    assert "window" not in done.stderr


def test_the_json_of_a_run_holds_what_is_promised(recording):
    done, folder = recording
    numbers = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
    assert numbers["scene"] == "small"
    assert numbers["arch"] == "cpu"
    assert numbers["resolution"] == [16, 16, 16]
    assert numbers["frames"] == 3
    # Steps of at most 1/24 s, and a picture every 1/24 s of a plume that has hardly begun.
    assert 3 <= numbers["steps"] <= 30
    assert 0 < numbers["ms_per_step"] < 60_000
    assert list(numbers["stages"]) == ["halve", "advect", "sources", "burn", "forces", "diffuse", "project"]
    assert all(0 <= ms <= numbers["ms_per_step"] for ms in numbers["stages"].values())
    assert 1 <= numbers["pressure"]["iterations"] < 30
    assert 0 < numbers["pressure"]["relative_residual"] <= 1e-4, "the tolerance of the scene"
    # After a projection to 1e-4 of a right-hand side of order one.
    assert 0 <= numbers["divergence"]["rms"] <= numbers["divergence"]["max"] < 1e-2
    # 3 a second over 1/8 s in a ball of radius 0.4 m: 0.1 (the mottling and the coarse grid move it).
    assert 0.03 < numbers["smoke_mass"] < 0.3
    assert numbers["outputs"] == ["small.mp4", "small.png"]
    assert "NaN" not in (folder / "numbers.json").read_text()
    assert "numbers.json" in done.stdout.splitlines()


def test_progress_is_not_on_stdout(recording):
    done, _ = recording
    assert done.stdout.splitlines() == ["numbers.json", "small.mp4", "small.png"]
    assert COMPILING in done.stderr.splitlines()[0], "and who waits for kernels knows it"


def test_a_folder_gets_every_picture_and_a_poster(folder_recording):
    done, folder = folder_recording
    assert done.returncode == 0, done.stderr
    names = ["frame_00000.png", "frame_00001.png", "frame_00002.png", "poster.png"]
    assert os.listdir(folder) == ["frames"]
    assert sorted(os.listdir(folder / "frames")) == names
    assert [pictures_in(folder / "frames" / name)[0].shape for name in names[:3]] == [(64, 64, 3)] * 3
    assert done.stdout.splitlines()[-1] == os.path.join("frames", "poster.png")
    assert len({(folder / "frames" / name).read_bytes() for name in names[:3]}) == 3, "it moves"


def test_headless_says_nothing_of_a_display(folder_recording):
    done, _ = folder_recording
    assert "display" not in done.stderr
    assert "window" not in done.stderr


def test_the_same_command_gives_the_same_pictures(recording, tmp_path):
    done = run(["run", recording[1] / "scene.toml", *ON_CPU, "--headless", "--out", "deep/er/again.mp4"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        os.path.join("deep", "er", "again.mp4"),
        os.path.join("deep", "er", "again.png"),
    ]
    again, first = tmp_path / "deep" / "er" / "again.png", recording[1] / "small.png"
    assert again.read_bytes() == first.read_bytes()


# Scenes, help, version


def test_scenes_are_listed_with_what_they_show(tmp_path):
    done = run(["scenes"], tmp_path)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == preset_names()
    assert all(len(line.split()) > 3 for line in done.stdout.splitlines())


def test_scenes_in_a_pipe_stand_in_columns_a_line_each(tmp_path):
    """The longest name too leaves room before what it means."""
    lines = run(["scenes"], tmp_path, COLUMNS="80").stdout.splitlines()
    column = 2 + max(map(len, preset_names()))
    assert [line[:column].rstrip() for line in lines] == preset_names()
    assert [line[column:] for line in lines] == [preset(name).description for name in preset_names()]


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize("columns", [80, 44])
def test_scenes_in_a_terminal_go_on_below_themselves(tmp_path, columns):
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [*COMMAND, "scenes"], cwd=tmp_path, env=environment(COLUMNS=str(columns)), stdout=theirs
    ) as listing, os.fdopen(ours, "rb", buffering=0) as terminal:  # fmt: skip
        os.close(theirs)
        printed = b""
        # The end of what was written is an error on Linux and nothing elsewhere.
        with contextlib.suppress(OSError):
            while part := terminal.read(65536):
                printed += part
    assert listing.returncode == 0
    lines, column = printed.decode().splitlines(), 2 + max(map(len, preset_names()))
    assert max(map(len, lines)) <= columns
    assert [line.split()[0] for line in lines if line[0] != " "] == preset_names()
    assert all(line[:column].isspace() for line in lines if line[0] == " ")
    told = " ".join(" ".join(line[column:] for line in lines).split())
    assert told == " ".join(preset(name).description for name in preset_names())


def test_the_help_says_where_a_film_goes(capsys):
    """And its checkpoints; 'resume' begins another film, and goes on in its file."""
    from taichi_fluid.app import commands

    for command, film, kept in (
        ("demo", "NAME.mp4 here", "beside the recording, called alike"),
        ("resume", "NAME_from_N.mp4 here, after N pictures", "FILE"),
    ):
        with pytest.raises(SystemExit):
            commands.main([command, "--help"], prog_name="taichi-fluid")
        said = " ".join(capsys.readouterr().out.split())
        assert f"[default: {film}]" in said and f"[default: {kept}]" in said


def test_the_help_of_the_commands_is_not_cut_off(tmp_path):
    """In 80 columns, which is also what a pipe has."""
    listed = run(["--help"], tmp_path, COLUMNS="80").stdout.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == [
        "bench",
        "demo",
        "doctor",
        "keys",
        "resume",
        "run",
        "scenes",
        "validate",
        "warm",
    ]
    assert all(line.endswith((".", "?")) and not line.endswith("...") and len(line) <= 80 for line in listed)


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("demo pl", ["plume", "plume2d"]),
        ("scenes emb", ["embers"]),
        ("keys liq", ["liquid", "liquid.bodies"]),
        ("bench --scene kar", ["karman"]),
        ("demo --arch vul", ["vulkan"]),
        ("run ha", ["file"]),
        ("bench --scene mine.to", ["file"]),
    ],
)
def test_a_shell_completes_scenes_archs_and_files(monkeypatch, capsys, words, completed):
    from taichi_fluid.app import commands

    for name, value in {
        "_TAICHI_FLUID_COMPLETE": "zsh_complete",
        "COMP_WORDS": f"taichi-fluid {words}",
        "COMP_CWORD": str(len(words.split())),
    }.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as caught:
        commands.main([], prog_name="taichi-fluid")
    assert not caught.value.code
    answers = capsys.readouterr().out.splitlines()  # kind, value and help of each
    kinds, values = answers[::3], answers[1::3]
    assert completed == (["file"] if kinds == ["file"] else values)


@pytest.mark.parametrize("name", preset_names())
def test_a_printed_scene_loads_again(capsys, name):
    from taichi_fluid.app import commands

    with pytest.raises(SystemExit) as caught:
        commands.main(["scenes", name])
    assert not caught.value.code
    assert Scene.loads(capsys.readouterr().out) == preset(name)


def test_module_and_command_are_one():
    (command,) = [entry for entry in entry_points(group="console_scripts") if entry.name == "taichi-fluid"]
    assert command.value == "taichi_fluid.app.cli:main"


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["-h"], ["demo", "--help"], ["run", "-h"], ["doctor", "-h"]]
)
def test_help_and_version_name_the_command(tmp_path, capsys, arguments):
    from taichi_fluid.app import commands

    with pytest.raises(SystemExit) as caught:
        commands.main(arguments, prog_name="taichi-fluid")
    assert not caught.value.code
    assert "taichi-fluid" in capsys.readouterr().out


# Bad input: one process takes all of it, and fails a case that comes as far as Taichi

NO_TAICHI = """
import contextlib, io, json, os, sys, traceback

class Started(BaseException):
    pass

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "taichi":
            raise Started

sys.meta_path.insert(0, Refuse())
from taichi_fluid.app.cli import main

def files():
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(".") for name in names)

results = []
for arguments in json.load(open(sys.argv[1])):
    out, err, status = io.StringIO(), io.StringIO(), None
    before = files()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments, prog_name="taichi-fluid")
        except SystemExit as end:
            status = end.code
        except Started:
            status = "Taichi was started"
            sys.modules.pop("taichi_fluid._ti", None)
        except BaseException:
            status = traceback.format_exc()
    results.append([status, out.getvalue(), err.getvalue(), [name for name in files() if name not in before]])
assert "taichi" not in sys.modules and "av" not in sys.modules
json.dump(results, open(sys.argv[2], "w"))
"""

BAD = {
    # name of the case: (arguments, what the sentence must hold)
    "both grids with solids": (["demo", "karman", "--set", "look.compare=true"], ["look.compare", "no solids"]),
    "unknown scene": (["demo", "plum"], ["plum", "did you mean 'plume'", "jets"]),
    "a number for a table": (["demo", "--set", "fluid=3"], ["fluid is 3", "a table with rho, viscosity"]),
    "a number for a source": (["demo", "--set", "sources.0=1"], ["sources.0 is 1", "a table"]),
    "an empty rhythm": (["demo", "--checkpoint-every", ""], ["--checkpoint-every is ''", "30s"]),
    "unknown scene, nothing near": (["demo", "tornado"], ["tornado", "jets", "plume", "plume2d"]),
    "unknown scene of scenes": (["scenes", "jetz"], ["jetz", "did you mean 'jets'"]),
    "missing scene file": (["run", "nowhere.toml"], ["nowhere.toml"]),
    "a scene of the package as a file": (["run", "plume"], ["no scene file 'plume'", "taichi-fluid demo plume"]),
    "a folder as a checkpoint": (["resume", "."], ["there is no checkpoint '.'"]),
    "a scene file as a checkpoint": (["resume", "unknown.toml"], ["'unknown.toml' is no checkpoint."]),
    "folder as scene file": (["run", "a folder"], ["a folder"]),
    "broken TOML": (["run", "broken.toml"], ["broken.toml", "TOML"]),
    "no UTF-8": (["run", "binary.toml"], ["binary.toml", "no text in UTF-8", "byte 0"]),
    "empty file": (["run", "empty.toml"], ["empty.toml", "is empty", "tables of a scene"]),
    "file with an unknown key": (["run", "unknown.toml"], ["fluid.viscocity", "did you mean 'viscosity'"]),
    "file with a NaN": (["run", "nan.toml"], ["fluid.viscosity", "nan"]),
    "unknown key": (["demo", "--set", "fluid.viscocity=1"], ["fluid.viscocity", "did you mean 'viscosity'", "rho"]),
    "unknown key with a dash": (["demo", "--set", "fluid.smoke-weight=1"], ["fluid.smoke-weight", "smoke_weight"]),
    "unknown table": (["demo", "--set", "fluids.viscosity=1"], ["fluids.viscosity", "fluid"]),
    "no such source": (["demo", "--set", "sources.7.smoke=1"], ["sources.7.smoke"]),
    "superscript": (["demo", "--set", "sources.²=1"], ["sources.²"]),
    "no value": (["demo", "--set", "fluid.viscosity"], ["fluid.viscosity", "key=value"]),
    "empty value": (["demo", "--set", "fluid.viscosity="], ["fluid.viscosity", "''"]),
    "no key": (["demo", "--set", "=3"], ["=3", "key=value"]),
    "wrong type": (["demo", "--set", "fluid.viscosity=thick"], ["fluid.viscosity", "'thick'", "number"]),
    "wrong type, fraction": (["demo", "--set", "domain.resolution=64.5"], ["domain.resolution", "64.5", "integer"]),
    "wrong type, table": (["demo", "--set", "fluid.viscosity={a=1}"], ["fluid.viscosity", "number"]),
    "NaN": (["demo", "--set", "fluid.viscosity=nan"], ["fluid.viscosity", "nan"]),
    "infinite": (["demo", "--set", "camera.azimuth=-inf"], ["camera.azimuth", "inf"]),
    "negative": (["demo", "--set", "fluid.viscosity=-1"], ["fluid.viscosity", "-1", "0"]),
    "negative resolution": (["demo", "--resolution", "-5"], ["domain.resolution", "-5", "1"]),
    "no resolution": (["demo", "--resolution", "0"], ["domain.resolution", "0", "1"]),
    "no frames": (["demo", "--frames", "0"], ["output.frames", "0", "1"]),
    "absurd resolution": (["demo", "--resolution", "1000000"], ["domain.resolution", "1000000", "8192"]),
    "too large for an array": (["demo", "--resolution", "4096"], ["domain.resolution", "4096", "GiB", "smaller"]),
    "too large in 3D": (["demo", "jets", "--resolution", "1000"], ["domain.resolution", "1000", "GiB"]),
    "number of 5000 digits": (["demo", "--set", f"domain.resolution={'9' * 5000}"], ["domain.resolution"]),
    "nested without end": (["demo", "--set", f"domain.size={'[' * 5000}"], ["domain.size"]),
    "light from nowhere": (["demo", "--set", "look.light_direction=[0, 0, 0]"], ["look.light_direction"]),
    "step that is none": (["demo", "--set", "solver.dt=1e-300"], ["solver.dt", "1e-300"]),
    "source without bounds": (["demo", "--set", "sources.0.radius=1e308"], ["radius", "1e+308"]),
    "box without bounds": (
        ["demo", "--set", "sources=[]", "--set", "domain.size=[1e300, 1.0, 1.0]"],
        ["size", "1e+300"],
    ),
    "2D made 3D": (["demo", "plume2d", "--set", "domain.size=[1.0, 1.0, 1.0]"], ["2", "3"]),
    "output below a file": (["demo", "--out", "plain file/x.mp4"], ["plain file"]),
    "frames below a file": (["demo", "--out", "plain file/frames"], ["plain file"]),
    "file as folder of frames": (["demo", "--out", "plain file"], ["plain file"]),
    "folder as video": (["demo", "--out", "folder.mp4"], ["folder.mp4"]),
    "folder as poster": (["demo", "--out", "taken.mp4"], ["taken.png"]),
    "name too long": (["demo", "--out", f"{'a' * 300}.mp4"], ["aaa"]),
    "folder name too long": (["demo", "--out", f"{'a' * 300}/b.mp4"], ["aaa"]),
    "checkpoint's name too long for the one before": (
        ["demo", "--checkpoint", "a" * 250],
        ["the checkpoint before the last one", "aaa.before", "longer than 255 bytes"],
    ),
    "JSON with a suffix too long": (["demo", "--json", f"a.{'b' * 240}"], ["the JSON file", "last dot", "too long"]),
    "path too long": (["demo", "--out", "x/" * 2100 + "a.mp4"], ["the output", "longer than a path may be"]),
    "suffix not written": (["demo", "--out", "x.gif"], ["x.gif", ".mp4"]),
    "no folder of that name": (["demo", "--out", "x.npz"], ["x.npz", ".mp4"]),
    "picture as output": (["demo", "--out", "x.PNG"], ["x.PNG", ".mp4"]),
    "folder as JSON": (["demo", "--json", "a folder"], ["a folder"]),
    "JSON below a file": (["demo", "--json", "plain file/x.json"], ["plain file"]),
    "JSON over a pipe": (["demo", "--json", "pipe"], ["pipe"]),
    "JSON over the video": (["demo", "--out", "x.mp4", "--json", "x.mp4"], ["x.mp4"]),
    "JSON over the poster": (["demo", "--out", "x.mp4", "--json", "x.png"], ["x.png"]),
    "doctor: folder as JSON": (["doctor", "--json", "a folder"], ["a folder"]),
    "doctor: JSON below a file": (["doctor", "--json", "plain file/x.json"], ["plain file"]),
    # These the option parser sees first.
    "resolution of letters": (["demo", "--resolution", "large"], ["--resolution", "large", "integer"]),
    "resolution not a number": (["demo", "--resolution", "nan"], ["--resolution", "nan", "integer"]),
    "frames of half": (["demo", "--frames", "1.5"], ["--frames", "1.5", "integer"]),
    "an empty place": (["demo", "--out", ""], ["--out", "it is empty", "file or folder"]),
    "an empty name of numbers": (["demo", "--json", ""], ["--json", "it is empty"]),
    "unknown arch": (["demo", "--arch", "abacus"], ["--arch", "abacus", "vulkan", "cpu"]),
    "unknown option": (["demo", "--resolutoin", "8"], ["--resolutoin", "--resolution"]),
    "no scene file": (["run"], ["SCENE"]),
    "unknown command": (["dmeo"], ["dmeo", "Did you mean 'demo'", "'taichi-fluid --help'"]),
    "a side misspelt": (["demo", "--set", "domain.boundaries=no-slp"], ["'no-slp'", "did you mean 'no-slip'"]),
    "a place in brackets": (["demo", "--set", "sources[0].temprature=3"], ["sources.0.temprature", "'temperature'"]),
    "a mistyped name": (["run", "nameless.toml"], ["unknown key 'nam'", "did you mean 'name'"]),
    "too many scenes": (["demo", "plume", "jets"], ["jets"]),
    "no such table": (["keys", "fluids"], ["'fluids'", "did you mean 'fluid'", "solver"]),
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """Status, stdout, stderr and new files of each bad command, all from one process that cannot import Taichi."""
    folder, reports = tmp_path_factory.mktemp("bad"), tmp_path_factory.mktemp("reports")
    text = preset("plume").dumps()
    for name, content in {
        "broken.toml": text[:-20] + "= [",
        "empty.toml": "",
        "unknown.toml": text.replace("viscosity", "viscocity"),
        "nan.toml": text.replace("viscosity = 0.0", "viscosity = nan"),
        "nameless.toml": text.replace("name =", "nam =", 1),
        "plain file": "",
    }.items():
        (folder / name).write_text(content, encoding="utf-8")
    (folder / "binary.toml").write_bytes(bytes(range(128, 256)))
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe")
    else:
        (folder / "pipe").mkdir()
    for name in ("a folder", "folder.mp4", "taken.png"):
        (folder / name).mkdir()
    cases = BAD
    (reports / "cases.json").write_text(json.dumps([arguments for arguments, _ in cases.values()]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", NO_TAICHI, str(reports / "cases.json"), str(reports / "results.json")],
        cwd=folder, env=environment(), capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = json.loads((reports / "results.json").read_text(encoding="utf-8"))
    return dict(zip(cases, results, strict=True))


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_status_2_before_taichi_starts(refusals, case):
    status, out, err, left = refusals[case]
    assert status == 2, status
    assert out == ""
    lines = err.splitlines()
    assert len(lines) == 1, err
    assert lines[0].startswith("taichi-fluid: ")
    assert len(lines[0]) < 700, "a sentence that can be read"
    assert lines[0].endswith(".")
    for part in BAD[case][1]:
        assert part in lines[0], f"{part!r} is not in: {lines[0]}"
    assert left == []


def test_the_trap_for_taichi_works(tmp_path):
    """Sabotage: a good command does come as far as Taichi."""
    (tmp_path / "cases.json").write_text(json.dumps([["demo", "plume", "--headless"]]))
    command = [sys.executable, "-c", NO_TAICHI, "cases.json", "results.json"]
    subprocess.run(command, cwd=tmp_path, env=environment(), check=True, timeout=600)
    assert json.loads((tmp_path / "results.json").read_text())[0][0] == "Taichi was started"


def test_bad_input_in_a_process_of_its_own(tmp_path):
    """The same once more as a user has it, with the module as the command."""
    sentence = one_sentence(run(["demo", "plume", "--set", "fluid.viscosity=nan"], tmp_path))
    assert "fluid.viscosity" in sentence
    assert os.listdir(tmp_path) == []


# A machine that lacks something


def fake_taichi(tmp_path: Path, source: str) -> str:
    """PYTHONPATH with a package called taichi in front that does as it is told."""
    (tmp_path / "fake" / "taichi").mkdir(parents=True)
    (tmp_path / "fake" / "taichi" / "__init__.py").write_text(source)
    return os.pathsep.join(filter(None, [str(tmp_path / "fake"), os.environ.get("PYTHONPATH")]))


@pytest.fixture
def work(tmp_path):
    """An empty folder to run in."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


EITHER = pytest.mark.parametrize("arguments", [["demo", *ON_CPU, "--headless"], ["doctor"]], ids=["demo", "doctor"])
UNIX = pytest.mark.skipif(sys.platform == "win32", reason="HOME is a thing of Unix")


@EITHER
def test_without_libx11_it_says_what_to_install(tmp_path, work, arguments):
    message = "libX11.so.6: cannot open shared object file: No such file or directory"
    path = fake_taichi(tmp_path, f"raise ImportError({message!r})")
    sentence = one_sentence(run(arguments, work, PYTHONPATH=path))
    assert "libx11-6" in sentence
    assert "apt-get install" in sentence
    assert os.listdir(work) == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("OSError('libGL.so.1: cannot open shared object file')", ["libgl1"]),
        ("ImportError('DLL load failed while importing taichi_python')", ["Taichi", "DLL load failed"]),
        ("ModuleNotFoundError(\"No module named 'taichi'\")", ["taichi"]),
    ],
)
def test_another_broken_taichi_is_one_sentence_too(tmp_path, work, error, words):
    sentence = one_sentence(
        run(["demo", *ON_CPU, "--headless"], work, PYTHONPATH=fake_taichi(tmp_path, f"raise {error}"))
    )
    for word in words:
        assert word in sentence


@UNIX
@EITHER
def test_without_home_it_says_what_to_set(work, arguments):
    sentence = one_sentence(run(arguments, work, HOME=None, XDG_CACHE_HOME=None))
    assert "HOME" in sentence
    assert "writable" in sentence
    assert os.listdir(work) == []


@UNIX
@EITHER
@pytest.mark.parametrize("variable", ["HOME", "XDG_CACHE_HOME"])
def test_a_home_below_a_file_is_named(tmp_path, work, arguments, variable):
    (tmp_path / "plain").write_text("")
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": None, variable: str(tmp_path / "plain" / "home")}
    sentence = one_sentence(run(arguments, work, **home))
    assert str(tmp_path / "plain" / "home") in sentence
    assert f"set {variable} to a writable folder" in sentence
    assert os.listdir(work) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no folder here in which nobody can make one")
def test_a_cache_that_only_seems_possible_is_named(work):
    """To root it looks as if folders could be made in /proc; and the name of one may be too long."""
    for place, why in (("/proc/home", "No such file"), (str(work / ("x" * 300)), "File name too long")):
        sentence = one_sentence(run(["demo", *ON_CPU, "--headless"], work, XDG_CACHE_HOME=place))
        assert place[:30] in sentence and why in sentence
    assert os.listdir(work) == []


@UNIX
def test_a_home_whose_cache_is_a_file_is_named(tmp_path, work):
    """Taichi keeps its kernels in HOME/.cache and ends with a segmentation fault where it cannot."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".cache").write_text("")
    sentence = one_sentence(
        run(["demo", *ON_CPU, "--headless"], work, HOME=str(tmp_path / "home"), XDG_CACHE_HOME=None)
    )
    assert str(tmp_path / "home") in sentence


@UNIX
@pytest.mark.parametrize("locked", ["", ".cache", ".cache/taichi"])
def test_a_home_that_may_not_be_written_is_named(tmp_path, work, locked):
    """HOME, or what Taichi makes below it, left by another user."""
    folder = tmp_path / "home" / locked
    folder.mkdir(parents=True)
    folder.chmod(0o500)
    done = run(
        ["demo", *ON_CPU, "--headless"], work, before=unprivileged(), HOME=str(tmp_path / "home"), XDG_CACHE_HOME=None
    )  # fmt: skip
    folder.chmod(0o700)
    assert str(tmp_path / "home") in one_sentence(done)
    assert os.listdir(work) == []


def unprivileged() -> list[str]:
    """What to put before a command so that permission bits mean something to it."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root ignores permission bits, and there is no setpriv to take that from it")
    command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        pytest.skip("this container may not give up a capability")
    return command


@UNIX
def test_a_home_that_is_not_there_yet_is_made(tmp_path, work):
    home = str(tmp_path / "new" / "home")
    done = run(["demo", "plume2d", *ON_CPU, "--headless"], work, HOME=home, XDG_CACHE_HOME=None)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(work)) == ["plume2d.mp4", "plume2d.png"]


FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")


def run_into(folder: Path, arguments, stdout, stderr, **changes) -> subprocess.CompletedProcess:
    """The command in a process of its own, whose words go where it is said."""
    with open(stdout, "w") as out, open(stderr, "w") as err:
        return subprocess.run(
            [*COMMAND, *map(str, arguments)], cwd=folder, env=environment(**changes), stdout=out, stderr=err, timeout=600
        )  # fmt: skip


@FULL
@pytest.mark.parametrize("buffered", [None, "1"])
@pytest.mark.parametrize("arguments", [["scenes"], ["keys", "fluid"], ["--help"], ["--version"]])
def test_results_that_nothing_can_hold_are_told(tmp_path, arguments, buffered):
    done = run_into(tmp_path, arguments, "/dev/full", tmp_path / "said", PYTHONUNBUFFERED=buffered)
    assert done.returncode == 1
    said = (tmp_path / "said").read_text()
    assert said == "taichi-fluid: standard output cannot be written: No space left on device.\n"
    assert run_into(tmp_path, arguments, "/dev/full", "/dev/full", PYTHONUNBUFFERED=buffered).returncode == 1


@FULL
def test_a_recording_whose_words_nothing_can_hold_is_whole(work):
    assert run_into(work, ["demo", "nope"], "/dev/full", "/dev/full").returncode == 2
    done = run_into(work, ["demo", "plume2d", *ON_CPU, "--json", "a.json"], "/dev/full", "/dev/full")
    assert done.returncode == 1
    assert sorted(os.listdir(work)) == ["a.json", "plume2d.mp4", "plume2d.png"]
    assert len(pictures_in(work / "plume2d.mp4")) == 3


@UNIX
def test_a_reader_that_has_gone_ends_it_in_silence(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    done = run_into(tmp_path, ["keys"], writing, tmp_path / "said")
    assert done.returncode == 1
    assert (tmp_path / "said").read_text() == ""


@UNIX
def test_nobody_listens_at_all(tmp_path):
    done = run(["scenes"], tmp_path, before=["sh", "-c", '"$0" "$@" >&-'])
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize("arch", ["cuda", "metal", "opengl"])
def test_an_arch_that_does_not_start_is_refused(work, arch):
    if arch == "metal" and sys.platform == "darwin":
        pytest.skip("it starts here")
    done = run(["demo", "--arch", arch, *TINY, "--headless"], work, CUDA_VISIBLE_DEVICES="-1")
    assert arch in one_sentence(done)
    assert os.listdir(work) == []


def test_taichis_own_variable_does_not_pass_one_arch_off_as_another(work):
    """``TI_ARCH`` overrules what ``ti.init`` is told: a run that says cuda must not be one on the CPU."""
    done = run(["demo", "--arch", "cuda", *TINY, "--headless"], work, CUDA_VISIBLE_DEVICES="-1", TI_ARCH="x64")
    assert "cuda" in one_sentence(done)


# A window or a recording


@pytest.fixture
def chosen(monkeypatch):
    """Runs the command with a display on which windows open; says what would have been done: show, record or both."""
    from taichi_fluid import backend
    from taichi_fluid.app import commands, running
    from taichi_fluid.viewer import display

    done = []

    class Probe:
        problem_here: str | None = None

        def __init__(self):
            done.append("ask")

        def problem(self, arch):
            return self.problem_here

        def close(self):
            done.append("end")

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(display, "WindowProbe", Probe)
    monkeypatch.setattr(backend, "start", lambda arch: "cpu")
    monkeypatch.setattr(running, "show_window", lambda scene, arch: done.append("show"))
    monkeypatch.setattr(running, "record_scene", lambda scene, arch, outputs, numbers: done.append("record"))

    def command(*arguments: str) -> list[str]:
        done.clear()
        with pytest.raises(SystemExit) as caught:
            commands.main(["demo", "plume2d", *arguments], prog_name="taichi-fluid")
        assert not caught.value.code
        return done

    command.probe, command.done = Probe, done
    return command


@pytest.mark.parametrize("arguments", [[], ["--resolution", "16"], ["--set", "output.frames=3"], ["--arch", "cpu"]])
def test_a_scene_is_shown_where_a_window_opens(chosen, arguments):
    assert chosen(*arguments) == ["ask", "end", "show"]


@pytest.mark.parametrize(
    "arguments", [["--out", "a.mp4"], ["--out", "frames"], ["--frames", "3"], ["--json", "a.json"], ["--headless"]]
)
def test_who_asks_for_files_gets_no_window(chosen, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert chosen(*arguments) == ["record"], "and nobody is asked whether one opens"


def test_where_no_window_opens_it_records_and_says_why(chosen, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(chosen.probe, "problem_here", "the screen is asleep")
    assert chosen() == ["ask", "end", "record"]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("taichi-fluid: the screen is asleep, so ")
    assert line.endswith(".")


def test_an_arch_that_does_not_start_ends_the_question(chosen, capsys, monkeypatch):
    from taichi_fluid import backend

    def refuse(arch):
        raise backend.BackendError(f"{arch} does not start.")

    monkeypatch.setattr(backend, "start", refuse)
    with pytest.raises(AssertionError):  # status 2
        chosen("--arch", "cuda")
    assert "cuda does not start" in capsys.readouterr().err
    assert chosen.done == ["ask", "end"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="DISPLAY is a thing of Linux")
@pytest.mark.parametrize(("display", "said"), [(None, "DISPLAY is not set"), (":987", "':987'")])
def test_without_a_display_it_says_so_in_one_sentence_and_records(work, display, said):
    small = [x for x in ON_CPU if x not in ("--frames", "3")]
    done = run(["demo", "plume2d", *small, "--set", "output.frames=2"], work, DISPLAY=display)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    told = [line for line in done.stderr.splitlines() if "display" in line]
    assert len(told) == 1
    assert said in told[0]
    assert "recorded instead" in told[0]
    assert done.stdout.splitlines() == ["plume2d.mp4", "plume2d.png"]
    assert sorted(os.listdir(work)) == ["plume2d.mp4", "plume2d.png"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="DISPLAY is a thing of Linux")
def test_with_out_no_display_is_looked_for(work):
    done = run(["demo", "plume2d", *ON_CPU, "--out", "here.mp4"], work, DISPLAY=":987")
    assert done.returncode == 0, done.stderr
    assert "display" not in done.stderr.lower()
    assert "window" not in done.stderr
    assert sorted(os.listdir(work)) == ["here.mp4", "here.png"]


# Runs that break off


def frames_of(folder: Path, name: str = "plume2d.mp4") -> int:
    """Pictures in what a broken run has left: one video that plays, its poster, and nothing else."""
    assert sorted(os.listdir(folder)) == sorted([name, Path(name).with_suffix(".png").name])
    assert pictures_in(folder / Path(name).with_suffix(".png"))
    return len(pictures_in(folder / name))


POISON = """
from taichi_fluid.simulation import Simulation, Stage
build = Simulation.__init__
def poison(simulation, dt):
    if simulation.steps == 4:
        simulation.state.carried["smoke"].current[100] = float("nan")
def build_poisoned(self, scene):
    build(self, scene)
    self.stages.append(Stage("accident", poison))
Simulation.__init__ = build_poisoned
"""


def test_a_run_that_turns_non_finite_says_where_and_keeps_its_frames(work):
    """One cell of smoke is NaN after the fifth step; a step here takes one picture's time."""
    arguments = ["demo", "plume2d", *ON_CPU, "--frames", "9", "--headless", "--json", "numbers.json"]
    done = run_code(POISON, arguments, work)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert "smoke is not finite" in last
    assert "step 5" in last
    assert done.stdout.splitlines() == ["plume2d.mp4", "plume2d.png"], "the frames so far are named, no JSON"
    assert frames_of(work) == 4


def test_a_scene_that_blows_up_by_itself_says_so(work):
    """Nothing is patched: gravity beyond all measure."""
    blast = ["--set", "fluid.gravity=[0, 1e30]"]
    done = run_here(["demo", "plume2d", *ON_CPU, *blast, "--headless"], work)
    if done.returncode == 2:
        assert "fluid.gravity" in one_sentence(done), "refused beforehand: better still"
        return
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr, "a sentence, and no line of NumPy's"
    assert "is not finite" in done.stderr.splitlines()[-1]
    assert not [name for name in os.listdir(work) if name.startswith(".")]


FASTER = """
from taichi_fluid.simulation import Simulation, Stage
build = Simulation.__init__
def hurry(simulation, dt):
    if simulation.steps == 2:
        simulation.state.velocity.current.fill(1e9)
def build_faster(self, scene):
    build(self, scene)
    self.stages.append(Stage("accident", hurry))
Simulation.__init__ = build_faster
"""


def test_a_run_that_would_hardly_go_on_says_so_and_keeps_its_frames(work):
    done = run_code(FASTER, ["demo", "plume2d", *ON_CPU, "--frames", "9", "--headless"], work)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("taichi-fluid: no step may be longer than ") and "1e+09 m/s" in last
    assert done.stdout.splitlines() == ["plume2d.mp4", "plume2d.png"]
    assert frames_of(work, "plume2d.mp4") == 3


ANNOUNCE = """
import signal, sys
for name in {"SIGTERM", "SIGHUP"} & set(dir(signal)):
    signal.signal(getattr(signal, name), signal.SIG_DFL)  # nohup ignores one
from taichi_fluid.viewer.recorder import Recorder
show = Recorder.show
def announce(self, picture):
    show(self, picture)
    print("shown", file=sys.stderr, flush=True)
Recorder.show = announce
from taichi_fluid.app.cli import main
main(sys.argv[1:], prog_name="taichi-fluid")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="another kind of interrupt")
@pytest.mark.parametrize(
    ("out", "number", "status", "word"),
    [
        ("plume2d.mp4", signal.SIGINT, 130, "keyboard"),
        ("frames", signal.SIGINT, 130, "keyboard"),
        ("plume2d.mp4", signal.SIGTERM, 143, "signal"),
        ("plume2d.mp4", getattr(signal, "SIGHUP", 1), 129, "signal"),
    ],
)
def test_what_breaks_it_off_keeps_what_was_recorded(work, out, number, status, word):
    arguments = ["demo", "plume2d", *ON_CPU, "--frames", "100000", "--headless", "--out", out]
    with subprocess.Popen(
        [sys.executable, "-c", ANNOUNCE, *arguments], cwd=work, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            seen = 0
            while seen < 5:
                line = process.stderr.readline()
                assert line, "it ended by itself"
                seen += line.strip() == "shown"
            process.send_signal(number)
            printed, told = process.communicate(timeout=600)
        finally:
            process.kill()
    assert process.returncode == status
    assert "Traceback" not in told
    assert word in told.splitlines()[-1]
    if out == "frames":
        names = sorted(os.listdir(work / "frames"))
        assert len(names) >= 6
        assert names[-1] == "poster.png"
        assert all(pictures_in(work / "frames" / name) for name in names)
    else:
        assert printed.splitlines() == ["plume2d.mp4", "plume2d.png"]
        assert sorted(os.listdir(work)) == ["plume2d.mp4", "plume2d.png"], "no temporary file"
        assert frames_of(work) >= 5


@pytest.mark.parametrize(
    ("error", "status"),
    [("KeyboardInterrupt", 130), ("RuntimeError('out of device memory')", 1), ("MemoryError('no memory')", 1)],
)
def test_what_goes_wrong_while_a_run_is_built_leaves_nothing(work, error, status):
    """Between the opening of the video and its first picture: kernels compile, arrays are made."""
    code = f"from taichi_fluid import simulation\ndef fail(*_): raise {error}\nsimulation.Simulation.__init__ = fail"
    done = run_code(code, ["demo", "plume2d", *ON_CPU, "--headless"], work)
    assert done.returncode == status, done.stderr
    assert os.listdir(work) == []
    assert "frames so far" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk_is_one_sentence_and_leaves_nothing_torn(work):
    """A limit on the size of files stands for the full disk."""
    code = (
        "import resource\nfrom taichi_fluid.viewer.recorder import Recorder\nshow = Recorder.show\n"
        "def full(self, picture):\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n    show(self, picture)\n"
        "Recorder.show = full"
    )
    done = run_code(code, ["demo", "plume2d", *ON_CPU, "--headless"], work)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "cannot be written" in done.stderr.splitlines()[-1]
    assert [name for name in os.listdir(work) if name.startswith(".") or name.endswith(".mp4")] == []


def test_numbers_that_cannot_be_written_cost_no_picture(work):
    """The disk fills up after the last frame: the recording is there, and is named."""
    code = (
        "from taichi_fluid.app import running\ndef full(*arguments): raise OSError(28, 'No space left on device')\n"
        "running.write_json = full"
    )
    done = run_code(code, ["demo", "plume2d", *ON_CPU, "--headless", "--json", "numbers.json"], work)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr.splitlines()[-1]
    assert done.stdout.splitlines() == ["plume2d.mp4", "plume2d.png"]
    assert frames_of(work) == 3


@pytest.mark.skipif(shutil.which("sh") is None, reason="no shell")
def test_nobody_has_to_listen(work):
    """Started by a service, without a stdout."""
    done = run(["demo", "plume2d", *ON_CPU, "--headless"], work, before=["sh", "-c", 'exec "$@" >&-', "sh"])
    assert done.returncode == 0, done.stderr
    assert frames_of(work) == 3


def test_a_pressure_that_does_not_converge_is_told(work):
    few = [
        "--set",
        "solver.pressure=multigrid-cg",
        "--set",
        "solver.max_iterations=1",
        "--set",
        "solver.tolerance=1e-6",
    ]
    done = run_here(["demo", "plume2d", *ON_CPU, *few, "--headless", "--json", "numbers.json"], work)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "solver.tolerance" in line]
    assert len(told) == 1
    numbers = json.loads((work / "numbers.json").read_text())
    assert numbers["pressure"]["not_converged"] == numbers["steps"]
    assert math.isfinite(numbers["pressure"]["relative_residual"])
    assert numbers["pressure"]["relative_residual"] > 1e-6


@pytest.mark.parametrize(("sealed", "said"), [(True, True), (False, False)])
def test_a_region_that_is_filled_without_a_way_out_is_said(work, sealed, said):
    """A ball that leaves through the wall of a closed box makes room that nothing can fill."""
    sides = "free-slip" if sealed else "open"
    (work / "ball.toml").write_text(
        f'name = "ball"\n[domain]\nsize = [1.0, 1.0]\nresolution = 24\nboundaries = "{sides}"\n'
        '[[solids]]\nshape = "sphere"\ncenter = [0.9, 0.5]\nradius = 0.2\nvelocity = [1.0, 0.0]\n',
        encoding="utf-8",
    )
    arguments = ["run", "ball.toml", "--arch", "cpu", "--headless", "--frames", "2", "--out", "frames"]
    done = run_here([*arguments, *PICTURE], work)
    assert done.returncode == 0, done.stderr
    assert ("without a way out" in done.stderr) is said


PROBED = """
name = "probed"
[domain]
size = [1.0, 1.0]
resolution = 16
[[sources]]
shape = "sphere"
center = [0.5, 0.3]
radius = 0.2
temperature = 100.0
[[probes]]
name = "hot"
kind = "extreme"
quantity = "temperature"
"""


def test_what_a_scene_probes_is_written_and_plotted(tmp_path):
    (tmp_path / "scene.toml").write_text(PROBED, encoding="utf-8")
    command = ["run", "scene.toml", *ON_CPU, "--probes", "a/rows.csv"]
    done = run_here([*command, "--plot", "rows.svg", "--json", "run.json"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["run.json", "rows.svg", f"a{os.sep}rows.csv", "probed.mp4", "probed.png"]
    head, *rows = (tmp_path / "a" / "rows.csv").read_text(encoding="utf-8").splitlines()
    numbers = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert head == "time,step,hot.min,hot.max"
    assert len(rows) == numbers["steps"] + 1
    assert float(rows[-1].split(",")[-1]) > 0
    assert numbers["kinetic_energy"] > 0 and numbers["enstrophy"] > 0 and numbers["amounts"]["temperature"] > 0
    again = run_here(command, tmp_path)
    assert "is there already" in one_sentence(again)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["demo", "plume2d", "--probes", "x.csv"], "has no probes"),
        (["demo", "plume2d", "--plot", "x.png"], "nothing to draw: give --log"),
        (["run", "scene.toml", "--probes", "x.txt"], "suffix"),
        (["run", "scene.toml", "--plot", "x.txt"], "suffix"),
        (["run", "scene.toml", "--plot", "probed.png"], "also an output"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_of_probes_that_cannot_be_are_refused(refuse, tmp_path, options, words):
    (tmp_path / "scene.toml").write_text(PROBED, encoding="utf-8")
    assert words in one_sentence(refuse(*options, *ON_CPU))


def test_a_plot_without_matplotlib_names_the_extra(tmp_path):
    (tmp_path / "scene.toml").write_text(PROBED, encoding="utf-8")
    code = "import sys\nsys.modules['matplotlib'] = sys.modules['matplotlib.backend_bases'] = None"
    done = run_code(code, ["run", "scene.toml", *ON_CPU, "--plot", "x.png"], tmp_path)
    assert "taichi-fluid[plot]" in one_sentence(done)
