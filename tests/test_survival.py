"""What is left of a recording whose process is killed, and of one that is there already."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest
from command_line import run_here

from taichi_fluid.io import files
from taichi_fluid.io.files import OutputError, remove_leftovers, whole_file
from taichi_fluid.io.outputs import Outputs, part_of
from taichi_fluid.io.video import LiveVideo, VideoWriter
from taichi_fluid.viewer.written import claimed_name

UNIX = pytest.mark.skipif(sys.platform == "win32", reason="no signals, no locks")
ENDLESS = """
import sys
from pathlib import Path
import numpy as np
from taichi_fluid.io.video import VideoWriter
video = VideoWriter(Path(sys.argv[1]), 64, 48, 24.0)
for count in range(1, 1_000_000):
    video.write(np.full((48, 64, 3), count % 200, np.uint8))
    print(count, flush=True)
"""


def pictures_in(path: Path) -> int:
    """How many pictures of a video can be decoded."""
    with av.open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


def killed_recording(path: Path, pictures: int) -> int:
    """Record into ``path`` in a process that is killed without notice after so many pictures; how many there were."""
    with subprocess.Popen([sys.executable, "-c", ENDLESS, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        written = 0
        while written < pictures:
            written = int(process.stdout.readline())
        process.kill()
        for line in process.stdout:
            written = int(line)
    return written


def picture(value: int = 99) -> np.ndarray:
    """A grey one."""
    return np.full((48, 64, 3), value, np.uint8)


@pytest.mark.parametrize("pictures", [30, 101])
def test_what_was_recorded_plays_after_a_kill(tmp_path, pictures):
    """All but the second that has not ended, of which each picture waits for the key frame that ends it."""
    written = killed_recording(tmp_path / "film.mp4", pictures)
    assert os.listdir(tmp_path) == ["film.part.mp4"], "where somebody who looks for the film finds it"
    kept = pictures_in(tmp_path / "film.part.mp4")
    assert written - 25 <= kept <= written + 1


def test_a_recording_that_was_killed_is_in_nobodys_way_and_nobody_overwrites_it(tmp_path):
    killed_recording(tmp_path / "film.mp4", 30)
    before = (tmp_path / "film.part.mp4").read_bytes()
    with pytest.raises(OutputError, match=r"film\.part\.mp4.* is there already"):
        VideoWriter(tmp_path / "film.mp4", 64, 48, 24.0)
    with pytest.raises(OutputError, match=r"film\.part\.mp4.* is there already.*--overwrite"):
        Outputs.plan(tmp_path / "film.mp4", "x")
    assert (tmp_path / "film.part.mp4").read_bytes() == before
    Outputs.plan(tmp_path / "film.mp4", "x", overwrite=True).make_room()
    assert os.listdir(tmp_path) == []


@UNIX
def test_a_recording_that_goes_on_is_not_overwritten_even_where_that_was_asked_for(tmp_path):
    video = VideoWriter(tmp_path / "film.mp4", 64, 48, 24.0)
    video.write(picture())
    with pytest.raises(OutputError, match="another process"):
        Outputs.plan(tmp_path / "film.mp4", "x", overwrite=True).make_room()
    video.close()
    assert pictures_in(tmp_path / "film.mp4") == 1


@pytest.mark.parametrize("there", ["film.mp4", "film.png", "film.part.mp4"])
def test_a_film_that_is_there_stays_unless_it_may_go(tmp_path, there):
    (tmp_path / there).write_text("somebody's")
    with pytest.raises(OutputError, match=rf"'[^']*{there}' is there already: .*--overwrite"):
        Outputs.plan(tmp_path / "film.mp4", "x")
    Outputs.plan(tmp_path / "film.mp4", "x", overwrite=True)
    assert (tmp_path / there).read_text() == "somebody's", "planning changes nothing"


def test_frames_that_are_there_stay_unless_they_may_go(tmp_path):
    for name in ("frame_00000.png", "frame_00007.png", "frame_of_mine.png", "notes.txt"):
        (tmp_path / name).write_text("x")
    with pytest.raises(OutputError, match=r"frames of another recording.*--overwrite"):
        Outputs.plan(tmp_path, "x")
    Outputs.plan(tmp_path, "x", overwrite=True).make_room()
    assert sorted(os.listdir(tmp_path)) == ["frame_of_mine.png", "notes.txt"], "only what a recording has numbered"


def test_a_windows_recordings_have_numbers_that_nobody_has(tmp_path):
    (tmp_path / "plume_001.mp4").write_text("x")
    (tmp_path / "plume_002.part.mp4").write_text("x")
    path = claimed_name(tmp_path, "plume", ".mp4")
    assert path.name == "plume_003.mp4"
    video = LiveVideo(path, 64, 48)
    assert sorted(os.listdir(tmp_path)) == ["plume_001.mp4", "plume_002.part.mp4", "plume_003.part.mp4"]
    assert claimed_name(tmp_path, "plume", ".mp4").name == "plume_004.mp4", "while it records too"
    video.offer(picture())
    video.close()
    assert pictures_in(path) == 1


@pytest.mark.parametrize("fps", [0.25, 10.0, 24.0, 1000.0])
def test_a_second_has_a_key_frame(tmp_path, fps):
    """Or each picture is one, where a second has no more than one."""
    video = VideoWriter(tmp_path / "film.mp4", 64, 48, fps)
    for k in range(50):
        video.write(picture(4 * k))
    video.close()
    with av.open(str(tmp_path / "film.mp4")) as container:
        keys = [k for k, packet in enumerate(p for p in container.demux(video=0) if p.size) if packet.is_keyframe]
    assert max(np.diff([*keys, 50])) <= max(1, fps)


def test_a_film_that_is_finished_has_no_fragments_and_says_how_long_it_is(tmp_path):
    """Readers that seek, and those that only look at the header, found no pictures in one of fragments."""
    video = VideoWriter(tmp_path / "film.mp4", 64, 48, 24.0)
    for k in range(60):
        video.write(picture(4 * k))
    video.close()
    assert b"moof" not in (tmp_path / "film.mp4").read_bytes()
    with av.open(str(tmp_path / "film.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.frames, float(stream.duration * stream.time_base)) == (60, 2.5)
        context = stream.codec_context
        assert (context.color_primaries, context.color_trc, context.colorspace) == (1, 13, 1)
    assert os.listdir(tmp_path) == ["film.mp4"]


def short_run(folder, *options):
    """Two pictures of a small scene."""
    small = ["--resolution", "8", "--frames", "2", "--set", "output.width=16", "--set", "output.height=16"]
    return run_here(["demo", "plume2d", "--arch", "cpu", *small, *options], folder)


@pytest.mark.parametrize(
    "option", ["--json a.json", "--plot a.svg --log b.csv", "--log a.csv", "--checkpoint a", "--checkpoint-every 1"]
)
def test_no_file_of_a_run_goes_unless_it_may(tmp_path, monkeypatch, option):
    """Numbers, plots and checkpoints of another run were replaced without a word, and rows were never."""
    monkeypatch.chdir(tmp_path)
    name = "film.checkpoint" if "every" in option else option.split()[1]
    Path(name).write_text("somebody's")
    refused = short_run(tmp_path, "--out", "film.mp4", *option.split())
    assert refused.returncode == 2 and f"{name}' is there already" in refused.stderr, refused.stderr
    assert "--overwrite" in refused.stderr
    assert os.listdir() == [name] and Path(name).read_text() == "somebody's"
    done = short_run(tmp_path, "--out", "film.mp4", *option.split(), "--overwrite")
    assert done.returncode == 0, done.stderr
    assert Path(name).read_bytes()[:10] != b"somebody's"


# Temporary files of processes that are gone


def left_by(process: int, folder: Path, suffix: str = ".png") -> Path:
    """A temporary file as a process leaves it that is killed."""
    path = folder / f".taichi-fluid-{files._machine()}-{process}-abcdefgh{suffix}"
    path.write_text("half")
    return path


@pytest.fixture(scope="module")
def gone() -> int:
    """Number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@UNIX
def test_half_files_of_dead_processes_go_and_all_others_stay(tmp_path, gone):
    dead = [left_by(gone, tmp_path, suffix) for suffix in ("", ".json", ".png")]
    elsewhere = tmp_path / f".taichi-fluid-{int(files._machine(), 16) ^ 1:08x}-{gone}-abcdefgh.png"
    users = [".taichi-fluid-notes.txt", f".film-{gone}-abcdefgh.png", "film.part.mp4", f"{dead[0].name[1:]}.png"]
    stay = [left_by(os.getpid(), tmp_path), left_by(1, tmp_path), elsewhere, *(tmp_path / name for name in users)]
    for path in stay:
        path.write_text("whole")
    (tmp_path / f"{dead[0].name}.d").mkdir()
    (tmp_path / f"{dead[0].name}.l").symlink_to(tmp_path / "film.part.mp4")
    assert sorted(remove_leftovers(tmp_path)) == sorted(dead)
    assert all(path.read_text() == "whole" for path in stay)
    assert len(os.listdir(tmp_path)) == len(stay) + 2
    assert remove_leftovers(tmp_path / "nowhere") == []


@UNIX
def test_a_process_that_is_killed_while_it_writes_leaves_what_the_next_one_removes(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from taichi_fluid.io.files import whole_file\n"
        "with whole_file(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half'); os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "a.json")])
    assert done.returncode == -signal.SIGKILL
    assert len(os.listdir(tmp_path)) == 1
    with whole_file(tmp_path / "b.json") as temporary:
        assert len(remove_leftovers(tmp_path)) == 1
        assert temporary.exists(), "that of a process that lives"
    assert os.listdir(tmp_path) == ["b.json"]


@UNIX
def test_a_run_says_what_it_removes_and_does_not_overwrite_unasked(tmp_path, gone):
    left_by(gone, tmp_path)
    tiny = ["--resolution", "8", "--frames", "1", "--set", "output.width=32", "--set", "output.height=32"]
    command = ["demo", "plume2d", "--arch", "cpu", *tiny, "--out", "a.mp4"]
    first, second, third = (run_here([*command, *more], tmp_path) for more in ([], [], ["--overwrite"]))
    assert first.returncode == 0, first.stderr
    assert first.stderr.count("removed 1 unfinished file") == 1
    assert sorted(os.listdir(tmp_path)) == ["a.mp4", "a.png"]
    assert second.returncode == 2
    (line,) = second.stderr.splitlines()
    assert "'a.mp4' is there already" in line and "--overwrite" in line
    assert third.returncode == 0, third.stderr
    assert part_of(Path("a.mp4")) == Path("a.part.mp4")


@pytest.mark.parametrize(
    ("out", "files", "told"),
    [
        ("film.mp4", {"--json": "scene.toml"}, "is also the scene"),
        ("film.mp4", {"--checkpoint": "scene.toml"}, "is also the scene"),
        ("film.mp4", {"--checkpoint": "film.mp4"}, "is also an output"),
        ("film.mp4", {"--json": "film.part.mp4"}, "is also an output"),
        ("film.mp4", {"--json": "film.png"}, "is also an output"),
        ("film.mp4", {"--checkpoint": "a.csv", "--log": "a.csv"}, "is also the log"),
        ("film.mp4", {"--checkpoint": "a.json", "--json": "./a.json"}, "is also the JSON file"),
        ("frames", {"--json": "frames/frame_00001.png"}, "is also a frame"),
        ("frames", {"--checkpoint": "frames/poster.png"}, "is also an output"),
        ("frames", {"--json": "frames"}, "is also a folder"),
        ("film.mp4", {"--checkpoint": "grids", "--volumes": "grids", "--volume-format": "vti"}, "is also a folder"),
    ],
)
def test_no_file_of_a_run_is_another_one(tmp_path, monkeypatch, out, files, told):
    """Each was written over the other, without a word; the scene itself too."""
    monkeypatch.chdir(tmp_path)
    text = "name = 's'\n[domain]\nsize = [1.0, 1.0]\nresolution = 8\n"
    Path("scene.toml").write_text(text, encoding="utf-8")
    options = [word for option in files.items() for word in option]
    done = run_here(["run", "scene.toml", "--arch", "cpu", "--frames", "2", "--out", out, *options], tmp_path)
    assert done.returncode == 2
    assert told in " ".join(done.stderr.split()), done.stderr
    assert os.listdir(tmp_path) == ["scene.toml"]
    assert Path("scene.toml").read_text(encoding="utf-8") == text
