"""Drives a real window under Xvfb: real events from xdotool, real pixels from the frame buffer."""

import contextlib
import functools
import json
import os
import queue
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import taichi_fluid as tf
from taichi_fluid.viewer.pointer import Extent, point_under

HERE = Path(__file__).parent
SCREEN = (1600, 1000)
SLOW = 600.0
"""Seconds that anything may take: the kernels of a scene compile on two cores that others want too."""


def missing() -> str:
    """What a real window lacks here; empty if nothing."""
    tools = [tool for tool in ("Xvfb", "xdotool") if shutil.which(tool) is None]
    return f"{' and '.join(tools)} missing (Debian and Ubuntu: apt-get install xvfb xdotool)" if tools else ""


@contextlib.contextmanager
def display(folder: Path) -> Iterator[str]:
    """A virtual screen whose pixels lie in ``folder``; yields the value of DISPLAY."""
    reading, writing = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{SCREEN[0]}x{SCREEN[1]}x24", "-noreset", "-fbdir", str(folder),
         "-nolisten", "tcp", "-nocursor"],
        pass_fds=[writing], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(writing)
    try:
        with os.fdopen(reading) as answer:
            number = answer.readline().strip()
        assert number, "Xvfb did not start"
        yield f":{number}"
    finally:
        server.terminate()
        server.wait()


def screen_pixels(folder: Path) -> np.ndarray:
    """The whole screen, ``(height, width, 3)`` bytes."""
    data = (folder / "Xvfb_screen0").read_bytes()
    header = struct.unpack(">25I", data[:100])
    size, width, height, line, colours = header[0], header[4], header[5], header[12], header[19]
    pixels = np.frombuffer(data, dtype=np.uint8, offset=size + 12 * colours, count=line * height)
    return pixels.reshape(height, line // 4, 4)[:, :width, 2::-1].copy()


class Driver:
    """A window in a process of its own, and the hands on it.

    Attributes:
        state: What the window said after its last frame.
        status: What the process ends with.
    """

    def __init__(self, display: str, screen: Path, folder: Path, preset: str, *settings: str, arch: str = "cpu"):
        self.folder, self.display, self._screen = folder, display, screen
        path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
        self._environment = {**os.environ, "DISPLAY": display, "PYTHONPATH": path}
        self._errors = (folder / "stderr.txt").open("w")
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "window_child.py"), arch, preset, str(folder), *settings],
            cwd=folder, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            text=True,
        )  # fmt: skip
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.state: dict[str, Any] = {}
        self.status = 0

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def errors(self) -> str:
        """What the process wrote on standard error."""
        return (self.folder / "stderr.txt").read_text()[-3000:]

    def wait(self, condition: Callable[[dict[str, Any]], Any], seconds: float = SLOW) -> dict[str, Any]:
        """The first state that fulfils ``condition``."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                line = self._lines.get(timeout=max(end - time.monotonic(), 0.01))
            except queue.Empty:
                break
            assert line, f"the window ended: {self.errors()}"
            if line.startswith("{"):
                self.state = json.loads(line)
                if condition(self.state):
                    return self.state
        shown = {key: value for key, value in self.state.items() if key not in ("places", "scene")}
        raise AssertionError(f"it did not come to pass within {seconds} s: {shown} {self.errors()}")

    def frames(self, count: int = 3) -> dict[str, Any]:
        """The state some frames from now, of which the first says that it has heard us."""
        self.ask("frame")
        goal = self.state["frame"] + max(count - 1, 1)
        return self.wait(lambda state: state["frame"] >= goal)

    def xdotool(self, *arguments: object) -> str:
        """Run xdotool on the window's display."""
        words = ["xdotool", *map(str, arguments)]
        done = subprocess.run(words, env=self._environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout.strip()

    @functools.cached_property
    def window(self) -> str:
        """The window's number."""
        return self.xdotool("search", "--name", "taichi_fluid").split()[0]

    @functools.cached_property
    def corner(self) -> tuple[int, int]:
        """Where the window's upper left pixel is on the screen; nothing moves it."""
        lines = self.xdotool("getwindowgeometry", "--shell", self.window).splitlines()
        found = dict(line.split("=") for line in lines)
        return int(found["X"]), int(found["Y"])

    def move(self, x: float, y: float) -> None:
        """Move the pointer to a pixel of the window."""
        left, top = self.corner
        self.xdotool("mousemove", left + round(x), top + round(y))

    def drag(self, *points: tuple[float, float], button: int = 1, pause: int = 3) -> None:
        """Press at the first point, go through the others, ``pause`` frames at each, and let go."""
        self.move(*points[0])
        self.frames(pause)
        self.xdotool("mousedown", button)
        self.frames(pause)
        for point in points[1:]:
            self.move(*point)
            self.frames(pause)
        self.xdotool("mouseup", button)
        self.frames(pause)

    def key(self, *names: str) -> None:
        """Press keys, one after another; each for some frames, as Dear ImGui does not see shorter ones."""
        for name in names:
            with self.held(name):
                pass

    def press(self, name: str, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Press a key and wait for what it does."""
        self.xdotool("key", name)
        return self.wait(condition)

    @contextlib.contextmanager
    def held(self, name: str) -> Iterator[None]:
        """Hold a key down meanwhile."""
        self.xdotool("keydown", name)
        self.frames()
        try:
            yield
        finally:
            self.xdotool("keyup", name)
            self.frames()

    def pause(self) -> None:
        """Pause, if it is not, and wait for a picture of what is there now, in full size."""
        if not self.state["paused"]:
            self.press("space", lambda state: state["paused"])
        self.still()

    def still(self) -> None:
        """Wait until a paused window shows its picture in full size, for some frames."""
        self.wait(
            lambda state: (
                not state["stepping"]
                and not state["waiting"]
                and state["detail"] == 1.0
                and state["size"] == [state["viewport"][1], state["height"]]
            )
        )
        pictures, same = -1, 0
        while same < 3:
            now = self.frames(2)["pictures"]
            pictures, same = now, same + 1 if now == pictures else 0

    def place(self, name: str) -> tuple[int, int, int, int]:
        """Left, top, width and height of a widget that is in sight and stays where it is for some frames.

        A line of text that comes or goes above a widget, such as a message that has been read, moves it.
        """
        if name not in self.state["places"]:
            self.wait(lambda state: name in state["places"])
        found, same = self.state["places"][name], 0
        while same < 3:
            now = self.frames(1)["places"].get(name)
            found, same = now, same + 1 if now == found else 0
        assert found is not None, f"{name} is gone"
        left, top, width, height = found
        assert top + height <= self.state["height"], f"{name} is out of sight: fold a section above it"
        return left, top, width, height

    def fold(self, *titles: str) -> None:
        """Press the check boxes of sections."""
        for title in titles:
            before = self.state["places"]
            self.click(f"section {title}")
            if self.state["places"] == before:
                self.wait(lambda state, before=before: state["places"] != before)

    def click(self, name: str) -> None:
        """Press the middle of a widget."""
        left, top, width, height = self.place(name)
        self.drag((left + min(width, 40) / 2, top + height / 2))

    def slide(self, name: str, start: float, end: float) -> None:
        """Drag on a slider from one fraction of its width to another; again where it moved away meanwhile."""
        for _ in range(3):
            left, top, width, height = place = self.place(name)
            self.drag(*((left + f * width, top + height / 2) for f in (start, 0.5 * (start + end), end)))
            if self.place(name) == place:
                return
        raise AssertionError(f"{name} does not stay where it is")

    def view_point(self, u: float, v: float) -> tuple[float, float]:
        """Pixel of the window at a fraction of the picture, from its lower left."""
        left, width = self.state["viewport"]
        height = self.state["height"]
        return left + u * width, (1.0 - v) * height

    def under(self, x: float, y: float) -> np.ndarray:
        """The point of the box, in metres, that a pixel of the window shows."""
        left, width = self.state["viewport"]
        height, scene = self.state["height"], tf.Scene.from_dict(self.state["scene"])
        point = point_under(scene, (x - left) / width, 1.0 - y / height, Extent(width, height))
        assert point is not None, "beside the box"
        return point

    def ask(self, request: str) -> None:
        """Send a request and wait for its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        self.wait(lambda state: state["answered"] == request)

    def array(self, name: str) -> np.ndarray:
        """A quantity of the flow as it is now."""
        self.ask(f"array {name}")
        return np.load(self.folder / f"{name}.npy")

    def pixels(self) -> np.ndarray:
        """The window's part of the screen, ``(height, width, 3)`` bytes."""
        left, top = self.corner
        width, height = self.state["width"], self.state["height"]
        return screen_pixels(self._screen)[top : top + height, left : left + width]

    def view(self) -> np.ndarray:
        """The picture's part of the screen."""
        left, width = self.state["viewport"]
        return self.pixels()[:, left : left + width]

    def ended(self, status: int = 0) -> dict[str, Any]:
        """Wait for the end of the process, which must be a good one, or have another status; what it said last."""
        self.status = status
        assert self.process.wait(timeout=SLOW) == status, self.errors()
        while line := self._lines.get(timeout=SLOW):
            if line.startswith("{"):
                self.state = json.loads(line)
        return self.state

    def close(self) -> int:
        """Close the window, if it is open, and return the exit status."""
        try:
            if self.process.poll() is None:
                with contextlib.suppress(BrokenPipeError, OSError):
                    assert self.process.stdin is not None
                    self.process.stdin.write("quit\n")
                    self.process.stdin.close()
            return self.process.wait(timeout=SLOW)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            self._errors.close()
