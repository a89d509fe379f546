"""Files: whole or not there, pictures the right way up, sentences for places that cannot be written."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

from taichi_fluid._ti import ti
from taichi_fluid.io.files import OutputError, require_writable, require_writable_folder, whole_file, write_json
from taichi_fluid.io.images import contact_sheet, halved, write_png
from taichi_fluid.io.outputs import Outputs
from taichi_fluid.io.video import VideoWriter


def corners(height: int, width: int) -> np.ndarray:
    """A picture whose every corner has its own colour: top left red, top right green, bottom left blue."""
    picture = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    picture[0, 0], picture[0, -1], picture[-1, 0], picture[-1, -1] = (255, 0, 0), (0, 255, 0), (0, 0, 255), (9, 9, 9)
    return picture


def pictures_in(path: Path) -> list[np.ndarray]:
    """Every picture of a video or an image file, decoded by FFmpeg, first row on top."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


@pytest.fixture
def no_umask():
    """Sets the umask of this process, and sets it back."""
    before = os.umask(0)
    os.umask(before)
    yield os.umask
    os.umask(before)


# Whole files


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_when_the_writer_fails_and_an_old_file_stays(tmp_path, error):
    def fail(path):
        with whole_file(path) as temporary:
            temporary.write_text("half of the")
            raise error

    for path in (tmp_path / "new.txt", tmp_path / "old.txt"):
        if path.name == "old.txt":
            path.write_text("old")
        with pytest.raises(error):
            fail(path)
    assert os.listdir(tmp_path) == ["old.txt"]
    assert (tmp_path / "old.txt").read_text() == "old"


def test_nothing_is_left_when_the_writer_removes_its_own_file(tmp_path):
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "gone.txt") as temporary:
        temporary.unlink()
    assert os.listdir(tmp_path) == []


def test_a_file_appears_at_the_end_and_replaces_the_old_one(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")
    with whole_file(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.parent == path.parent, "renaming is atomic within a folder only"
        assert temporary.suffix == ".txt", "encoders choose the format by the suffix"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["file.txt"]


@pytest.mark.skipif(sys.platform == "win32", reason="no umask")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_every_kind_of_file_follows_the_umask(tmp_path, no_umask, umask, mode):
    no_umask(umask)
    write_json(tmp_path / "a.json", {})
    write_png(tmp_path / "a.png", corners(4, 4))
    video = VideoWriter(tmp_path / "a.mp4", 16, 16, 24.0)
    video.write(corners(16, 16))
    video.close()
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(["a.json", "a.png", "a.mp4"], oct(mode))


def test_json_makes_its_folder_and_refuses_what_json_has_not(tmp_path):
    write_json(tmp_path / "a" / "b.json", {"x": [1, 2.5, None], "ü": "ß"})
    assert json.loads((tmp_path / "a" / "b.json").read_text(encoding="utf-8")) == {"x": [1, 2.5, None], "ü": "ß"}
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError, match="JSON"):
            write_json(tmp_path / "bad.json", {"x": bad})
    assert os.listdir(tmp_path) == ["a"]


# Places


def test_a_place_that_can_be_written_is_left_as_it_was(tmp_path):
    for path in (tmp_path / "file.mp4", tmp_path / "new" / "deep" / "file.mp4"):
        require_writable(path, "the output")
    require_writable_folder(tmp_path / "new" / "deep", "the output")
    assert os.listdir(tmp_path) == []


def test_a_place_that_cannot_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder.mp4").mkdir()
    too_long = tmp_path / f"{'a' * 300}.mp4"
    far = tmp_path.joinpath("far", *["x" * 200] * 25, "file.mp4")
    long_suffix = tmp_path / f"a.{'b' * 240}"
    below_a_file = (tmp_path / "file" / "x.mp4", tmp_path / "file" / "x" / "y.mp4")
    for path in (*below_a_file, tmp_path / "folder.mp4", too_long, far, long_suffix):
        with pytest.raises(OutputError) as caught:
            require_writable(path, "the output")
        assert "the output" in str(caught.value)
        assert "\n" not in str(caught.value)
        assert path.name[:30] in str(caught.value) or path.parent.name in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.mp4"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files here")
def test_what_is_no_file_is_refused_and_not_replaced(tmp_path):
    """A pipe stands for /dev/stdout and /dev/null: renaming over them takes them from the whole machine."""
    os.mkfifo(tmp_path / "pipe")
    os.symlink("/dev/null", tmp_path / "link")
    for name in ("pipe", "link"):
        with pytest.raises(OutputError, match=name):
            require_writable(tmp_path / name, "the JSON file")


def test_a_folder_without_permission_is_named(tmp_path):
    """As root too: then in a process without root's power to write anywhere."""
    if sys.platform == "win32":
        pytest.skip("no permission bits")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    code = (
        "import sys; from pathlib import Path; from taichi_fluid.io.files import *\n"
        "for path in map(Path, sys.argv[1:]):\n"
        "    try: require_writable(path, 'the output')\n"
        "    except OutputError as error: print(error)\n"
    )
    command = [*unprivileged(), sys.executable, "-c", code, str(locked / "x.mp4"), str(locked / "new" / "x.mp4")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all(str(locked) in line and "the output" in line for line in lines)
    assert os.listdir(locked) == []


def unprivileged() -> list[str]:
    """What to put before a command so that permission bits mean something to it."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root ignores permission bits, and there is no setpriv to take that from it")
    command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        pytest.skip("this container may not give up a capability")
    return command


def test_what_out_means(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Outputs.plan(None, "plume") == (Path("plume.mp4"), None, Path("plume.png"))
    assert Outputs.plan(Path("a/b.mp4"), "plume") == (Path("a/b.mp4"), None, Path("a/b.png"))
    assert Outputs.plan(Path("B.MP4"), "plume") == (Path("B.MP4"), None, Path("B.png"))
    assert Outputs.plan(Path("frames"), "plume") == (None, Path("frames"), Path("frames/poster.png"))
    for name in ("a.gif", "a.png", "a.MOV", "a.webm"):
        with pytest.raises(OutputError, match=r"suffix.*\.mp4"):
            Outputs.plan(Path(name), "plume")
    assert os.listdir(tmp_path) == []


def test_a_poster_that_cannot_be_written_is_noticed_before_the_run(tmp_path):
    (tmp_path / "film.png").mkdir()
    with pytest.raises(OutputError, match="poster"):
        Outputs.plan(tmp_path / "film.mp4", "plume")


# PNG


@pytest.mark.parametrize(("height", "width"), [(5, 7), (1, 1), (1, 9), (64, 33)])
def test_a_png_comes_back_to_the_bit_and_the_right_way_up(tmp_path, height, width):
    picture = corners(height, width)
    write_png(tmp_path / "Bild ü 1.png", picture)
    np.testing.assert_array_equal(pictures_in(tmp_path / "Bild ü 1.png")[0], picture)
    # Taichi has x to the right first and y up second.
    seen = ti.tools.imread(str(tmp_path / "Bild ü 1.png"))
    np.testing.assert_array_equal(seen.transpose(1, 0, 2)[::-1], picture)
    assert os.listdir(tmp_path) == ["Bild ü 1.png"]


def test_a_png_of_a_view_and_of_a_reversed_picture(tmp_path):
    """Memory order does not matter."""
    picture = corners(6, 8)
    for view in (picture[::-1], picture[:, ::2], picture.transpose(1, 0, 2)):
        write_png(tmp_path / "view.png", view)
        np.testing.assert_array_equal(pictures_in(tmp_path / "view.png")[0], view)


def test_a_png_into_a_folder_that_is_not_there_fails_as_a_file_does(tmp_path):
    with pytest.raises(OSError, match="none"):
        write_png(tmp_path / "none" / "a.png", corners(4, 4))


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk_leaves_no_torn_png(tmp_path):
    """A limit on the size of files stands for the full disk. Noise does not compress: 64 x 64 x 3 bytes and more."""
    code = (
        "import resource; from pathlib import Path; import numpy as np\n"
        "from taichi_fluid.io.images import write_png\n"
        "noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))\n"
        "try: write_png(Path('torn.png'), noise)\n"
        "except OSError as error: print('refused:', error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path) == [], "4 KiB of a PNG of 13 KiB carry its name"
    assert "refused:" in done.stdout


# Sheets


@pytest.mark.parametrize(
    ("count", "columns", "rows"), [(1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 3, 2), (6, 3, 2), (7, 3, 3)]
)
def test_a_sheet_holds_every_picture_in_reading_order(count, columns, rows):
    pictures = [np.full((10, 20, 3), 30 * (i + 1), np.uint8) for i in range(count)]
    sheet = contact_sheet(pictures, columns=3, gap=4)
    assert sheet.shape == (rows * 14 - 4, columns * 24 - 4, 3)
    assert sheet.dtype == np.uint8
    for i in range(count):
        top, left = i // 3 * 14, i % 3 * 24
        assert (sheet[top : top + 10, left : left + 20] == 30 * (i + 1)).all()
    assert (sheet == 16).sum() == sheet.size - count * 600, "between them and in places left over it is dark"


def test_half_a_picture_is_the_mean_of_four_pixels():
    picture = corners(7, 9)
    half = halved(picture)
    assert half.shape == (3, 4, 3)
    blocks = picture[:6, :8].reshape(3, 2, 4, 2, 3).mean(axis=(1, 3))
    assert np.abs(half - blocks).max() <= 0.5, "rounded to the nearest"
    assert (halved(np.full((8, 8, 3), 255, np.uint8)) == 255).all(), "white stays white"


# Video


def stripes(step: int, height: int, width: int) -> np.ndarray:
    """Smooth, so that H.264 keeps it: brighter to the right, redder with each step, the upper half brighter."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[:, :, 1] = np.linspace(40, 200, width, dtype=np.uint8)
    picture[:, :, 0] = 30 * step
    picture[: height // 2] += 30
    return picture


@pytest.mark.parametrize(("width", "height"), [(64, 48), (65, 37), (16, 17)])
def test_a_video_holds_every_picture_and_an_odd_one_is_cropped(tmp_path, width, height):
    video = VideoWriter(tmp_path / "film.mp4", width, height, 24.0)
    given = [stripes(step, height, width) for step in range(5)]
    for picture in given:
        video.write(picture)
    assert [path.suffix for path in tmp_path.iterdir()] == [".mp4"]
    assert not (tmp_path / "film.mp4").exists(), "not before it is whole"
    video.close()
    assert os.listdir(tmp_path) == ["film.mp4"]
    found = pictures_in(tmp_path / "film.mp4")
    assert len(found) == 5
    even = (height // 2 * 2, width // 2 * 2)
    for before, after in zip(given, found, strict=True):
        assert after.shape[:2] == even
        # Lossy, with colour at half resolution: a few levels in the mean; upside down or mirrored it would be 30.
        assert np.abs(before[: even[0], : even[1]].astype(int) - after).mean() < 6


@pytest.mark.parametrize("fps", [0.01, 0.25, 23.976, 24.0, 1000.0])
def test_a_video_lasts_as_long_as_it_should(tmp_path, fps):
    video = VideoWriter(tmp_path / "film.mp4", 16, 16, fps)
    for step in range(4):
        video.write(stripes(step, 16, 16))
    video.close()
    with av.open(str(tmp_path / "film.mp4")) as container:
        # The rate is a fraction with a denominator of at most 1000.
        assert float(container.streams.video[0].average_rate) == pytest.approx(fps, rel=1e-3)


def test_a_slow_video_is_slow_or_refused(tmp_path):
    """One picture in an hour of simulated time is allowed by the scene; 24 a second is another video."""
    try:
        video = VideoWriter(tmp_path / "film.mp4", 16, 16, 1 / 3600)
    except OutputError:
        return
    video.write(stripes(0, 16, 16))
    video.write(stripes(1, 16, 16))
    video.close()
    with av.open(str(tmp_path / "film.mp4")) as container:
        assert float(container.streams.video[0].average_rate) == pytest.approx(1 / 3600, rel=1e-3)


def test_a_dropped_video_and_one_without_pictures_leave_nothing_and_the_old_one_stays(tmp_path):
    (tmp_path / "film.mp4").write_text("old")
    dropped = VideoWriter(tmp_path / "film.mp4", 16, 16, 24.0)
    dropped.write(stripes(0, 16, 16))
    dropped.discard()
    VideoWriter(tmp_path / "film.mp4", 16, 16, 24.0).close()
    assert os.listdir(tmp_path) == ["film.mp4"]
    assert (tmp_path / "film.mp4").read_text() == "old"


def test_a_video_without_pyav_or_its_encoder_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "av", None)
        with pytest.raises(OutputError, match="pip install av"):
            VideoWriter(tmp_path / "film.mp4", 16, 16, 24.0)
    real = av.open

    class WithoutEncoder:
        def __init__(self, *args, **options):
            self._container = real(*args, **options)

        def add_stream(self, *args, **options):
            raise ValueError("Unknown encoder 'libx264'")

        def close(self):
            self._container.close()

    monkeypatch.setattr(av, "open", WithoutEncoder)
    with pytest.raises(OutputError, match=r"encoder.*folder"):
        VideoWriter(tmp_path / "film.mp4", 16, 16, 24.0)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk_leaves_no_torn_video(tmp_path):
    code = (
        "import resource; from pathlib import Path; import numpy as np\n"
        "from taichi_fluid.io.video import VideoWriter\n"
        "rng = np.random.default_rng(0)\n"
        "video = VideoWriter(Path('torn.mp4'), 64, 64, 24.0)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))\n"
        "try:\n"
        "    for _ in range(5): video.write(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8))\n"
        "    video.close()\n"
        "except OSError as error: print('refused:', error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "refused:" in done.stdout
    assert os.listdir(tmp_path) == [], "what could not be finished is dropped"
