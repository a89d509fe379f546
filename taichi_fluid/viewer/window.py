"""The live window: Taichi's GGUI with the picture, two panels, the mouse and the keys.

What it cannot do is written around: it knows no scrolling, no digits and no place of its panels; its image is one array
of packed colours; it keeps the places of its panels in a file where it stands, which is a folder of its own here.

Nothing runs beside the compiling of a kernel, so before each one the window shows a frame that says so.
"""

import contextlib
import os
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._ti import impl, set_packed_image, ti
from ..backend import device_name
from ..errors import terminable
from ..kernels import CPU_ARCHS, Array, before_compiling
from ..operators.noise import hash_01
from ..render.image import Image
from ..scene import Scene
from ..simulation import Simulation
from .display import WindowProbe
from .hands import Hands, Place
from .panel import GAP, HIGHLIGHT, Panel, Row, Rows, text_height
from .places import MESSAGE, RUN, STEER, STEER_WIDTH, WAITING, Places, Rectangle, at_the_edges
from .session import Action, Session
from .waiting import Waiting

SIZE, PLACE = (1240, 720), (40, 40)
"""Of the window, in pixels: it fits on a screen of 1366 x 768."""
WAITING_WIDTH = 300
SCALES = (1.0, 0.75, 0.5, 0.35, 0.25)
"""Sizes of the picture, relative to the place it fills, among which the time that drawing takes chooses."""
DRAW_SECONDS = 0.02
"""How long drawing may take before it becomes coarser."""
DRAWN_REMEMBERED = 5
FRAME_SECONDS, RESTING_FRAME_SECONDS = 0.048, 0.075
"""How long a frame may take while a step is longer than that: 20 in a second for a hand on the mouse, fewer for an eye."""
SHORTEST_FRAME, STILL_SECONDS = 1 / 75, 1 / 15
"""Seconds that a frame takes at least, and one of a paused window that nobody touches."""
HAND_SECONDS = 0.5
"""How long after the pointer has moved or a key was pressed a hand is on the mouse."""
LEAST_WORK = 0.008
"""Seconds of a frame that the flow gets at least."""
IDLE_SECONDS = 0.4
"""After so long without a change the picture is drawn once in full size."""
BEYOND = 0.02
"""Brightness of what lies beside the picture."""
SETTLED_SECONDS = 0.3
"""How long a new size of the window must last before the picture follows it."""


class _Closed(BaseException):
    """The window was closed while something waited for a kernel, which is not compiled any more."""


@ti.kernel
def _pack(packed: ti.types.ndarray(dtype=ti.u32, ndim=2), image: Array, width: ti.i32, left: ti.i32):
    """The picture, from column ``left`` of the window on, as packed colours; first axis to the right, second upwards."""
    for i, j in packed:
        x, y = i - left, packed.shape[1] - 1 - j
        # Rounded up or down by chance, the same in every frame: dark gradients would show their steps.
        chance = ti.f32(0.02) + ti.f32(0.96) * hash_01(ti.Vector([i, j]))
        value = ti.u32(255) << ti.u32(24)
        for channel in ti.static(range(3)):
            light = ti.f32(BEYOND)
            if 0 <= x < width:
                light = image[3 * (y * width + x) + channel]
            byte = ti.min(ti.max(light, ti.f32(0.0)), ti.f32(1.0)) * ti.f32(255.0) + chance
            value |= ti.cast(byte, ti.u32) << ti.u32(8 * channel)
        packed[i, j] = value


def pack(colours: np.ndarray, image: Image, left: int, width: int) -> None:
    """Put a picture into what a window shows, from column ``left`` on."""
    _pack(colours, image.array, width, left)
    ti.sync()


class Frame(NamedTuple):
    """What a frame of the window says of itself to ``on_frame``.

    Attributes:
        window: The window.
        places: Where the widgets stand, in pixels of the window from its upper left: name to Row.
        fps: Frames in a second.
    """

    window: "LiveWindow"
    places: dict[str, Row]
    fps: float


class LiveWindow:
    """A window on a session.

    Attributes:
        place: Where the picture stands in it.
        places: Where the panels stand.
        waiting: Which kernels somebody waits for.
        frames: How many were shown so far.

    Args:
        session: What it shows and steers.
        size: Of the window, in pixels.
        arch: What is written beside the frame rate.

    Raises:
        RuntimeError: if Taichi finds no Vulkan. Without a display it ends the process: ask ``WindowProbe`` before.
    """

    def __init__(self, session: Session, size: tuple[int, int] = SIZE, arch: str = ""):
        self.session, self._device = session, ": ".join(filter(None, (arch, device_name(arch))))
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        with self._own_folder():
            self._window = ti.ui.Window("taichi_fluid", size, vsync=True, pos=PLACE)
        self._canvas, self._gui = self._window.get_canvas(), self._window.get_gui()
        self._opened = size
        self.place, self.places = Place(size), Places(size)
        self._hands = Hands(self._window, session, self.place, self.places, self._commands())
        self._packed = np.zeros(size, dtype=np.uint32)
        self._panel = Panel(session)
        self.waiting = Waiting()
        self._shape_since, self._sizes = 0.0, 0
        self._message, self._messages, self._born = "", 0, (0.0, 0.0, 0.0, 0.0)
        self._scale, self._other_seconds = 1, DRAW_SECONDS
        self._drawn: deque[float] = deque(maxlen=DRAWN_REMEMBERED)
        self._frames: deque[float] = deque(maxlen=30)
        self._frame_at, self.frames = 0.0, 0
        self._showing, self._bridging = False, False
        session.compiles_first = True

    def _commands(self) -> dict[str, Action]:
        return {"h": self._toggle_panels, ti.ui.TAB: self._toggle_panels, ti.ui.ESCAPE: self.close}

    @contextlib.contextmanager
    def _own_folder(self) -> Iterator[None]:
        """GGUI writes ``imgui.ini`` where the process stands."""
        # As an open folder where there is such a thing: its name may be gone by now.
        before = os.open(".", os.O_RDONLY) if hasattr(os, "fchdir") else os.getcwd()
        os.chdir(self._folder.name)
        try:
            yield
        finally:
            os.chdir(before)
            if isinstance(before, int):
                os.close(before)

    # Frames

    @terminable()
    def run(self, on_frame: Callable[[Frame], None] | None = None) -> None:
        """Show frames until the window is closed, by Escape, its own button, or Ctrl-C.

        Args:
            on_frame: Called after each frame, but for those that only bridge the compiling of a kernel; it may change
                the session, and close the window with ``close``.
        """
        try:
            with before_compiling(self._frame_before_compiling):
                while self._window.running:
                    self.frame(self._elapsed())
                    # The screen shows no more, and a still picture needs less.
                    resting = self.session.paused and time.perf_counter() - self._hands.at > HAND_SECONDS
                    shortest = STILL_SECONDS if resting else SHORTEST_FRAME
                    time.sleep(max(shortest - (time.perf_counter() - self._frame_at), 0.0))
                    if on_frame is not None:
                        on_frame(Frame(self, self.places.widgets, self.fps))
        except (KeyboardInterrupt, _Closed):
            pass
        finally:
            self.destroy()

    def _elapsed(self) -> float:
        """Seconds since the last frame began; 0 for the first one."""
        before, self._frame_at = self._frame_at, time.perf_counter()
        if before:
            self._frames.append(self._frame_at - before)
        return self._frame_at - before if before else 0.0

    @property
    def fps(self) -> float:
        """Frames in a second, over the last thirty."""
        return 1.0 / max(statistics.fmean(self._frames), 1e-6) if self._frames else 0.0

    def close(self) -> None:
        """End ``run`` after this frame."""
        self._window.running = False

    def destroy(self) -> None:
        """Close the window and finish what the session writes."""
        try:
            self.session.close()
            ti.sync()
        finally:
            with self._own_folder():
                self._window.destroy()
            self._folder.cleanup()

    def frame(self, elapsed: float) -> None:
        """One frame: what was waited for, the mouse and the keys, part of a step, the picture, the panels."""
        self.waiting.end()
        self._follow_size()
        self._hands.follow_pointer(elapsed)
        self._hands.follow_keys(elapsed)
        session, advanced = self.session, 0.0
        begun = time.perf_counter()
        # The first frame shows what there is before the first step, whose kernels take longer than all else.
        if session.pictures > 0:
            # Fewer frames help a step that is longer than one, and nobody else.
            resting = begun - self._hands.at > HAND_SECONDS and session.step_seconds > FRAME_SECONDS
            frame_seconds = RESTING_FRAME_SECONDS if resting else FRAME_SECONDS
            session.advance(max(frame_seconds - self._other_seconds, LEAST_WORK), elapsed)
            advanced = time.perf_counter() - begun
        self._draw()
        session.offer_picture()
        if self.place.panels_shown:
            session.health()  # before the panels that show it, as it may wait for kernels
        self._show()
        # What is not the flow's: the picture, the panels, the wait for the screen.
        self._other_seconds += 0.2 * (time.perf_counter() - begun - advanced - self._other_seconds)
        # After the frame that says what is about to happen.
        pending, self._hands.pending = self._hands.pending, []
        for action in pending:
            action()

    def _frame_before_compiling(self, kernel: str) -> None:
        """A frame that says what is waited for, with the picture and the flow as far as they go without it.

        Keys and widgets wait until the kernel is there.
        """
        if self._showing:
            return
        self.waiting.begin(kernel)
        if self._bridging:  # for a kernel that the frame before another one needs
            self._show()
            return
        self._bridging = True
        try:
            elapsed = self._elapsed()
            self._hands.follow_pointer(elapsed)
            if self._hands.asks_to_end or not self._window.running:
                raise _Closed
            if self.session.beside:
                self.session.advance(LEAST_WORK, elapsed)
            self._draw()
            self.session.offer_picture()
            self._show()
        finally:
            self._bridging = False

    def _show(self) -> None:
        """Put the picture and the panels on the screen, as they are."""
        self._showing = True
        try:
            self.places.widgets = {}
            if self.place.panels_shown:
                self._draw_panels()
            else:
                self._draw_message()
            self._draw_waiting()
            set_packed_image(self._canvas, self._packed)
            with self._own_folder():
                self._window.show()
        finally:
            self._showing = False
        self.frames += 1
        self.places.read(Path(self._folder.name) / "imgui.ini", self._suffix)

    def _draw(self) -> None:
        session, hands = self.session, self._hands
        (left, width), height = self.place.viewport, self._packed.shape[1]
        idle = time.perf_counter() - hands.changed_at > IDLE_SECONDS and session.paused and not session.stepping
        scale = 1.0 if idle or session.video is not None else SCALES[self._scale]
        session.size, session.detail = (width, height), scale
        if not session.draw():
            return
        pack(self._packed, session.shown, left, width)
        if not idle and scale == SCALES[self._scale]:
            self._adapt(session.draw_seconds)

    def _adapt(self, seconds: float) -> None:
        """Choose a coarser or a finer picture by the time that this one took."""
        self._drawn.append(seconds)
        if len(self._drawn) < DRAWN_REMEMBERED:
            return
        # A median, as the first picture of a view waits for its kernels to compile.
        median = statistics.median(self._drawn)
        coarser, finer = self._scale + 1, self._scale - 1
        if median > 1.5 * DRAW_SECONDS and coarser < len(SCALES):
            self._scale = coarser
            self._drawn.clear()
        elif finer >= 0 and median * (SCALES[finer] / SCALES[self._scale]) ** 2 < DRAW_SECONDS:
            self._scale = finer
            self._drawn.clear()

    def _follow_size(self) -> None:
        """A new size of the window, once it stays."""
        shape, now = tuple(self._window.get_window_shape()), time.perf_counter()
        if shape != self.place.window and min(shape) > 0:  # a window that is put away may have no size
            self.place.window, self._shape_since = shape, now
        if shape != self.place.picture and min(shape) >= 64 and now - self._shape_since > SETTLED_SECONDS:
            self._packed = np.zeros(shape, dtype=np.uint32)
            # A panel stays where it was born: others, under other names, are born at the new edges.
            self._sizes += 1
            self.place.picture = shape
            self.places.rectangles = at_the_edges(shape)
            self._message = ""
            self.session.redraw()
            self._hands.touch()

    # Panels

    def _toggle_panels(self) -> None:
        self.place.panels_shown = not self.place.panels_shown
        self.session.redraw()

    @property
    def _suffix(self) -> str:
        """What tells the panels of one size of the window from those of another; it is not shown."""
        return f"##{self._sizes}"

    def _draw_panels(self) -> None:
        self.places.shown = [STEER, RUN]
        lines = [f"{self.fps:.0f} frames/s", f"{self.session.scene.name}, {self._cells()}"]
        lines += [self._device] if self._device else []
        lines += [self.waiting.sentence] if self._held and self.waiting.sentence else []
        fill = {STEER: self._panel.steer, RUN: lambda rows: self._panel.run(rows, lines)}
        for name, born in at_the_edges(self._packed.shape).items():
            actions = self._draw_panel(name, name + self._suffix, born, fill[name])
            self._hands.pending += actions
            if actions and name == STEER:
                self._hands.touch()

    def _draw_panel(self, name: str, title: str, born: Rectangle, fill: Callable[[Rows], list[Action]]) -> list[Action]:
        """Draw a panel, which stands where it was ``born`` unless it was moved; what its widgets ask for."""
        width, height = self._opened
        left, top, wide, high = born
        with self._gui.sub_window(title, left / width, top / height, wide / width, high / height) as gui:
            rows = Rows(gui, int(self.places.rectangles[name][2]), held=bool(self._hands.dragging))
            actions = fill(rows)
        self.places.note(name, rows.places, rows.height)
        return actions

    def _draw_message(self) -> None:
        """What was said last, in the lower left corner, while the panels are away."""
        message, width, height = self.session.message, self._packed.shape[0], self._packed.shape[1]
        if message != self._message:
            self._message, self._messages = message, self._messages + 1  # each is born in the corner
            wide = min(STEER_WIDTH, width)
            high = text_height(message, wide) + GAP
            self._born = self.places.rectangles[MESSAGE] = (0.0, max(height - high, 0.0), wide, high)
        self.places.shown = [MESSAGE] if message else []
        if message:
            self._draw_panel(MESSAGE, f"{MESSAGE}##{self._messages}", self._born, self._panel.message)

    @property
    def _held(self) -> bool:
        """Whether a widget may be being dragged, from which a panel that comes would take the mouse."""
        return self._window.is_pressed(ti.ui.LMB)

    def _draw_waiting(self) -> None:
        """Which kernel is compiled, at the lower edge of the picture."""
        sentence, (left, width) = self.waiting.sentence, self.place.viewport
        if sentence and not self._held:
            wide = min(WAITING_WIDTH, width)
            high = text_height(sentence, wide) + GAP
            born = (left + (width - wide) / 2, max(self._packed.shape[1] - 2 * high, 0.0), wide, high)
            self.places.rectangles.setdefault(WAITING, born)
            self.places.shown.append(WAITING)
            self._draw_panel(WAITING, WAITING + self._suffix, born, lambda rows: rows.text(sentence, HIGHLIGHT) or [])

    def _cells(self) -> str:
        return "x".join(map(str, self.session.scene.domain.shape))


def show(
    scene: Scene,
    build: Callable[[Scene], Simulation] = Simulation,
    folder: Path | str = ".",
    on_frame: Callable[[Frame], None] | None = None,
) -> Session:
    """Open a window on a scene and run it until the window is closed. Taichi must be running.

    While a frame is shown the process stands in a temporary folder, where GGUI writes its file; threads that use
    relative paths meanwhile are led astray.

    Args:
        scene: What to run.
        build: Makes the simulation of a scene; one's own may add solids and stages.
        folder: Where recordings, screenshots and saved scenes go.
        on_frame: Called after each frame.

    Returns:
        The session, with the scene as it was steered and the files that were written.

    Raises:
        RuntimeError: if Taichi is not running or no window can open here; the message says why.
    """
    if impl.get_runtime().prog is None:
        raise RuntimeError("Taichi is not running: call ti.init(arch=...) before opening a window.")
    running = impl.current_cfg().arch
    arch = "cpu" if running in CPU_ARCHS else str(running).rpartition(".")[2]
    problem = WindowProbe().problem(arch)
    if problem is not None:
        raise RuntimeError(f"no window can open: {problem}.")
    session = Session(scene, folder, build)
    LiveWindow(session, arch=arch).run(on_frame)
    return session
