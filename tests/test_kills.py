"""Runs that are killed without notice, again and again: what is resumed ends as if nobody had, and each film plays.

``KILLS`` in the environment is how many each flow suffers; a hundred in all with
``KILLS=34 python -m pytest -m "slow or not slow" tests/test_kills.py``.
"""

import os
import random
import signal
import subprocess
import sys
import time

import av
import numpy as np
import pytest

from taichi_fluid.io import stored
from taichi_fluid.io.stored import before

KILLS = int(os.environ.get("KILLS", "1"))
FRAMES, PER_SECOND = 96 * KILLS, 24
FLOWS = {"plume2d": 16, "obstacles": 12, "dam": 12}
"""In 2D, with solids that move, with water; and cells along the longest edge."""
SMALL = ("--set", "output.width=32", "--set", "output.height=32")
LOOKS = {"plume2d": ("--set", "look.view=tracers"), "obstacles": ("--set", "look.view=tracers")}
"""So that pictures remember something too, and go on from that."""
LONGEST = 2.0
"""Seconds after a checkpoint was seen at which a process is killed, at the most: in any part of a picture or a file."""


def started(folder, arguments, film) -> subprocess.Popen:
    words = ("--frames", str(FRAMES), "--out", film, "--checkpoint-every", "1")
    with (folder / f"{film}.log").open("w") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "taichi_fluid", *arguments, "--arch", "cpu", *words],
            cwd=folder,
            stdout=log,
            stderr=log,
        )


def pictures_in(path) -> int:
    """Pictures of a film that can be decoded; 0 for one that no picture has come into."""
    if not path.exists() or path.stat().st_size == 0:
        return 0
    try:
        with av.open(str(path)) as film:
            return sum(1 for _ in film.decode(video=0))
    except av.error.InvalidDataError:
        assert path.stat().st_size < 2000, "a header, and no fragment yet"
        return 0


def written(path) -> int | None:
    """When a file was written; nothing while it is not there, as between the renaming of the last one and of the new one."""
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return None


def killed_after(process, path, seconds: float) -> bool:
    """Kill a process so many seconds after it has written a checkpoint anew; whether it was still there."""
    seen, until = written(path), time.monotonic() + 200
    while process.poll() is None and time.monotonic() < until and written(path) == seen:
        time.sleep(0.01)
    time.sleep(seconds)
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    return process.wait(timeout=60) == -signal.SIGKILL


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize("flow", FLOWS)
def test_a_run_that_is_killed_ends_where_one_that_nobody_kills_does(flow, tmp_path):
    draw, checkpoint = random.Random(flow), f"{flow}.checkpoint"
    kept = ("--checkpoint", checkpoint)
    small = ("--resolution", str(FLOWS[flow]), *SMALL, *LOOKS.get(flow, ()))
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    undisturbed = started(whole, ("demo", flow, *small, *kept), "film.mp4")
    assert undisturbed.wait(timeout=300) == 0, (whole / "film.mp4.log").read_text()
    process, killed, shown = started(broken, ("demo", flow, *small, *kept), "film0.mp4"), 0, 0
    for attempt in range(KILLS):
        killed += killed_after(process, broken / checkpoint, draw.uniform(0.0, LONGEST / (KILLS + 1)))
        shown += pictures_in(broken / f"film{attempt}.part.mp4")
        process = started(broken, ("resume", checkpoint, *kept), f"film{attempt + 1}.mp4")
    assert process.wait(timeout=300) == 0, (broken / f"film{KILLS}.mp4.log").read_text()
    shown += pictures_in(broken / f"film{KILLS}.mp4")
    assert killed == KILLS, "it was over before it could be killed: give it more frames"
    (_, one, numbers), (_, two, others) = (stored.read(folder / checkpoint) for folder in (whole, broken))
    assert numbers == others
    assert sorted(one) == sorted(two)
    for name, values in one.items():
        np.testing.assert_array_equal(values, two[name], err_msg=name)
    assert stored.read(before(broken / checkpoint))[2]["steps"] <= numbers["steps"]
    assert shown >= FRAMES - KILLS * (PER_SECOND + 1), "of each film the last second at the most is lost"
