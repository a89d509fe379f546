"""Videos of what is seen while it is seen: the length of the clock, whatever the pace of the pictures."""

import os
import shutil
import sys
import threading
import time
from pathlib import Path

import av
import numpy as np
import pytest

from taichi_fluid.io.files import OutputError
from taichi_fluid.io.video import LiveVideo, VideoWriter

FPS = 30.0
NEVER = 60.0
"""Seconds after which something that should have ended hangs: encoding takes a fraction of one."""
COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def plain(colour: str, height: int = 48, width: int = 64) -> np.ndarray:
    """A picture of one colour."""
    return np.full((height, width, 3), COLOURS[colour], np.uint8)


def colours_in(path: Path) -> list[str]:
    """The colour of each picture of a video. Lossy: within a few levels, and the colours are 170 apart."""
    with av.open(str(path)) as container:
        means = [frame.to_ndarray(format="rgb24").mean(axis=(0, 1)) for frame in container.decode(video=0)]
    names = list(COLOURS)
    return [names[int(np.argmin([np.abs(mean - COLOURS[name]).sum() for name in names]))] for mean in means]


def in_time(action) -> None:
    """Run something that might hang."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(NEVER)
    assert not thread.is_alive(), "it hangs"


def settled(video: LiveVideo) -> None:
    """Wait until the encoder has taken all it was given."""
    end = time.monotonic() + NEVER
    while not video._queue.empty():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_picture_is_seen_from_when_it_came_until_the_next(tmp_path):
    clock = Clock()
    video = LiveVideo(tmp_path / "film.mp4", 64, 48, FPS, clock)
    for colour, seconds in [("red", 0.5), ("green", 1.0), ("blue", 0.2)]:
        video.offer(plain(colour))
        clock.now += seconds
    in_time(video.close)
    assert video.error is None
    assert colours_in(tmp_path / "film.mp4") == ["red"] * 15 + ["green"] * 30 + ["blue"] * 6
    assert video.seconds == pytest.approx(1.7)
    with av.open(str(tmp_path / "film.mp4")) as container:
        # In microseconds; the last picture is seen for a whole 1/30 s.
        assert container.duration / 1e6 == pytest.approx(1.7, abs=0.5 / FPS)


@pytest.mark.parametrize("pace", [5.0, 24.0, 30.0, 60.0, 1000.0])
def test_it_lasts_as_long_as_the_clock_says_at_any_pace(tmp_path, pace):
    clock = Clock()
    video = LiveVideo(tmp_path / "film.mp4", 64, 48, FPS, clock)
    for _ in range(round(2 * pace)):
        video.offer(plain("red"))
        settled(video)
        clock.now += 1 / pace
    in_time(video.close)
    # Two seconds, in whole pictures.
    assert len(colours_in(tmp_path / "film.mp4")) == pytest.approx(2 * FPS, abs=1)


def test_pictures_between_two_of_the_video_are_left_out(tmp_path):
    clock = Clock()
    video = LiveVideo(tmp_path / "film.mp4", 64, 48, FPS, clock)
    for colour in ("red", "green", "blue", "green"):
        video.offer(plain(colour))
        clock.now += 0.01
    in_time(video.close)
    assert len(colours_in(tmp_path / "film.mp4")) == 1


def test_one_picture_is_a_video(tmp_path):
    video = LiveVideo(tmp_path / "film.mp4", 64, 48, FPS, Clock())
    video.offer(plain("red"))
    in_time(video.close)
    assert colours_in(tmp_path / "film.mp4") == ["red"]


def test_without_pictures_there_is_no_file(tmp_path):
    video = LiveVideo(tmp_path / "film.mp4", 64, 48, FPS, Clock())
    in_time(video.close)
    assert video.error is None
    assert os.listdir(tmp_path) == []


def test_a_picture_that_changes_after_it_was_given_stays_as_it_was(tmp_path):
    clock = Clock()
    video = LiveVideo(tmp_path / "film.mp4", 64, 48, FPS, clock)
    picture = plain("red")
    video.offer(picture)
    picture[:] = COLOURS["blue"]
    clock.now += 0.2
    in_time(video.close)
    assert set(colours_in(tmp_path / "film.mp4")) == {"red"}


@pytest.mark.parametrize(("height", "width"), [(48, 64), (96, 128), (33, 65), (300, 20)])
def test_a_picture_of_another_size_fills_the_video(tmp_path, height, width):
    clock = Clock()
    video = LiveVideo(tmp_path / "film.mp4", 64, 48, FPS, clock)
    video.offer(plain("green"))
    clock.now += 0.1
    halves = plain("red", height, width)
    halves[height // 2 :] = COLOURS["blue"]
    video.offer(halves)
    clock.now += 0.1
    in_time(video.close)
    with av.open(str(tmp_path / "film.mp4")) as container:
        last = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)][-1].astype(int)
    assert last.shape == (48, 64, 3)
    scale = min(48 / height, 64 / width)
    high, wide = round(scale * height), round(scale * width)
    assert high == 48 or wide == 64, "as large as fits"
    top, left = (48 - high) // 2, (64 - wide) // 2
    inner = (
        last[top : top + high, left : left + wide][:, 1:-1] if wide > 4 else last[top : top + high, left : left + wide]
    )
    # Lossy, a few levels, more in a strip of a few pixels; the border between the halves lies in the middle.
    close = 8 if wide > 4 else 90
    assert np.abs(inner[: high // 2 - 3] - COLOURS["red"]).mean() < close
    assert np.abs(inner[high // 2 + 4 :] - COLOURS["blue"]).mean() < close
    beside = np.concatenate([last[: max(top - 2, 0)].ravel(), last[:, : max(left - 2, 0)].ravel()])
    assert beside.size == 0 or np.abs(beside).mean() < 8, "black bars beside it, and its shape kept"


def test_an_encoder_that_is_too_slow_holds_nobody_up(tmp_path, monkeypatch):
    clock, gate = Clock(), threading.Event()
    video = LiveVideo(tmp_path / "film.mp4", 64, 48, FPS, clock)
    write = video._writer.write

    def slow(picture):
        gate.wait(2 * NEVER)
        write(picture)

    monkeypatch.setattr(video._writer, "write", slow)

    def offer():
        for k in range(100):
            video.offer(plain("red" if k < 99 else "blue"))
            clock.now += 1 / FPS

    in_time(offer)  # while the encoder stands still
    gate.set()
    in_time(video.close)
    assert video.error is None
    # Pictures were left out and no time was.
    assert len(colours_in(tmp_path / "film.mp4")) == pytest.approx(100, abs=1)


def test_it_appears_when_it_is_whole(tmp_path):
    clock = Clock()
    video = LiveVideo(tmp_path / "film.mp4", 64, 48, FPS, clock)
    video.offer(plain("red"))
    clock.now += 0.5
    video.offer(plain("red"))
    settled(video)
    assert not (tmp_path / "film.mp4").exists()
    in_time(video.close)
    assert os.listdir(tmp_path) == ["film.mp4"]


@pytest.mark.parametrize("colour", [(255, 90, 13), (30, 200, 240), (128, 128, 128)])
@pytest.mark.parametrize("live", [False, True], ids=["frame by frame", "live"])
def test_a_player_that_believes_the_tags_shows_the_colours(tmp_path, live, colour):
    """Decoded by hand, as ITU-T H.273 defines what the file says of itself."""
    path, picture = tmp_path / "film.mp4", np.full((48, 64, 3), colour, np.uint8)
    if live:
        video = LiveVideo(path, 64, 48, FPS, Clock())
        video.offer(picture)
        in_time(video.close)
    else:
        writer = VideoWriter(path, 64, 48, FPS)
        writer.write(picture)
        writer.close()
    with av.open(str(path)) as container:
        said = container.streams.video[0].codec_context
        # BT.709 primaries and matrix, the curve of sRGB, and 16 to 235.
        assert (said.color_primaries, said.colorspace, said.color_trc, said.color_range) == (1, 1, 13, 1)
        (frame,) = container.decode(video=0)
        planes = [np.frombuffer(plane, np.uint8).reshape(plane.height, -1)[:, : plane.width] for plane in frame.planes]
    y, blue, red = (float(np.median(plane)) for plane in planes)
    y, blue, red = (y - 16) / 219, (blue - 128) / 224, (red - 128) / 224
    kr, kb = 0.2126, 0.0722
    r, b = y + 2 * (1 - kr) * red, y + 2 * (1 - kb) * blue
    g = (y - kr * r - kb * b) / (1 - kr - kb)
    # A step of a chroma plane is 1.6 to 2.1 levels of red or blue; half of one is rounding, the rest x264's loss.
    np.testing.assert_allclose([255 * r, 255 * g, 255 * b], colour, atol=2)


# What goes wrong


@pytest.mark.parametrize("offers", [0, 1, 2, 40])
def test_an_error_while_encoding_is_kept_and_holds_nobody_up(tmp_path, monkeypatch, offers):
    clock = Clock()
    video = LiveVideo(tmp_path / "film.mp4", 64, 48, FPS, clock)

    def fail(picture):
        raise OSError("no space left on device")

    monkeypatch.setattr(video._writer, "write", fail)

    def use():
        for _ in range(offers):
            video.offer(plain("red"))
            clock.now += 0.1
        video.close()

    in_time(use)
    assert (video.error is None) == (offers == 0)
    assert offers == 0 or "no space" in str(video.error)
    assert os.listdir(tmp_path) == []


def test_an_error_while_finishing_is_kept_and_holds_nobody_up(tmp_path, monkeypatch):
    clock = Clock()
    video = LiveVideo(tmp_path / "film.mp4", 64, 48, FPS, clock)

    def fail():
        raise OSError("no space left on device")

    video.offer(plain("red"))
    monkeypatch.setattr(video._writer, "close", fail)
    in_time(video.close)
    assert "no space" in str(video.error)


@pytest.mark.skipif(sys.platform == "win32", reason="an open file holds its folder")
def test_a_folder_that_goes_away_is_an_error_and_no_end(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    clock = Clock()
    video = LiveVideo(folder / "film.mp4", 64, 48, FPS, clock)
    video.offer(plain("red"))
    clock.now += 0.5
    shutil.rmtree(folder)
    in_time(video.close)
    assert isinstance(video.error, OSError)


def test_without_pyav_or_a_folder_it_is_refused_at_once(tmp_path, monkeypatch):
    with pytest.raises(OSError, match="nowhere"):
        LiveVideo(tmp_path / "nowhere" / "film.mp4", 64, 48)
    monkeypatch.setitem(sys.modules, "av", None)
    before = threading.active_count()
    with pytest.raises(OutputError, match="pip install av"):
        LiveVideo(tmp_path / "film.mp4", 64, 48)
    assert threading.active_count() == before, "no thread is left"
    assert os.listdir(tmp_path) == []
