"""The live window: Taichi's GGUI with the picture, two panels, the mouse and the keys.

What it cannot do is written around: it knows no scrolling, no digits and no place of its panels; its image is one array
of packed colours; it keeps the places of its panels in a file where it stands, which is a folder of its own here.
"""

import contextlib
import os
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._ti import impl, set_packed_image, ti
from ..backend import device_name
from ..errors import terminable
from ..kernels import CPU_ARCHS, Array
from ..operators.noise import hash_01
from ..scene import Scene
from ..simulation import Simulation
from .display import WindowProbe
from .panel import GAP, NEXT, TITLE_BAR, Panel, Row, Rows, next_choice, text_height
from .pointer import Extent, orbited, panned, point_under, zoomed
from .session import Action, Session

SIZE, PLACE = (1240, 720), (40, 40)
"""Of the window, in pixels: it fits on a screen of 1366 x 768."""
STEER_WIDTH, RUN_WIDTH = 290, 200
STEER, RUN, MESSAGE = "steer", "run and view", "message"
GRIP = 16
"""Pixels of the corner of a panel that changes its size."""
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
KEY_TURN, KEY_ZOOM = 0.04, 0.06
SETTLED_SECONDS = 0.3
"""How long a new size of the window must last before the picture follows it."""


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
        self.shape, self._shape_since = size, 0.0
        self._packed = np.zeros(size, dtype=np.uint32)
        self._panel = Panel(session)
        self.panels_shown = True
        self._places: dict[str, Row] = {}
        self.rectangles = _at_the_edges(size)
        self._saved_places, self._filled, self._sizes = 0.0, {}, 0
        self._message, self._messages, self._born = "", 0, (0.0, 0.0, 0.0, 0.0)
        self._pending: list[Action] = []
        self._scale, self._other_seconds = 1, DRAW_SECONDS
        self._drawn: deque[float] = deque(maxlen=DRAWN_REMEMBERED)
        self._frames: deque[float] = deque(maxlen=30)
        self._changed_at = self._hand_at = time.perf_counter()
        self._pointer: tuple[float, float] | None = None
        self._dragging, self._typing, self._widget = "", False, ""
        self._pane_left = 0

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
            on_frame: Called after each frame; it may change the session, and close the window with ``close``.
        """
        last = None
        try:
            while self._window.running:
                now = time.perf_counter()
                elapsed = now - last if last else 0.0
                if last:
                    self._frames.append(elapsed)
                last = now
                self.frame(elapsed)
                # The screen shows no more, and a still picture needs less.
                resting = self.session.paused and now - self._hand_at > HAND_SECONDS
                time.sleep(max((STILL_SECONDS if resting else SHORTEST_FRAME) - (time.perf_counter() - now), 0.0))
                if on_frame is not None:
                    on_frame(Frame(self, self._places, self.fps))
        except KeyboardInterrupt:
            pass
        finally:
            self.destroy()

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
        self._follow_size()
        self._follow_pointer(elapsed)
        self._follow_keys(elapsed)
        session = self.session
        if session.pictures == 0:
            self._draw()
        begun = time.perf_counter()
        # Fewer frames help a step that is longer than one, and nobody else.
        resting = begun - self._hand_at > HAND_SECONDS and session.step_seconds > FRAME_SECONDS
        frame_seconds = RESTING_FRAME_SECONDS if resting else FRAME_SECONDS
        session.advance(max(frame_seconds - self._other_seconds, LEAST_WORK), elapsed)
        advanced = time.perf_counter() - begun
        self._draw()
        session.offer_picture()
        self._places = {}
        if self.panels_shown:
            self._draw_panels()
        else:
            self._draw_message()
        set_packed_image(self._canvas, self._packed)
        with self._own_folder():
            self._window.show()
        self._read_places()
        # What is not the flow's: the picture, the panels, the wait for the screen.
        self._other_seconds += 0.2 * (time.perf_counter() - begun - advanced - self._other_seconds)
        # After the frame that says what is about to happen.
        pending, self._pending = self._pending, []
        for action in pending:
            action()

    def _touch(self) -> None:
        self._changed_at = time.perf_counter()

    @property
    def viewport(self) -> tuple[int, int]:
        """First column of the picture in the window, and its width, in pixels."""
        width = self._packed.shape[0]
        if not self.panels_shown or width < STEER_WIDTH + RUN_WIDTH + 100:
            return 0, width
        return STEER_WIDTH, width - STEER_WIDTH - RUN_WIDTH

    def _draw(self) -> None:
        session = self.session
        left, width = self.viewport
        height = self._packed.shape[1]
        idle = time.perf_counter() - self._changed_at > IDLE_SECONDS and session.paused and not session.stepping
        scale = 1.0 if idle or session.video is not None else SCALES[self._scale]
        session.size, session.detail = (width, height), scale
        if not session.draw():
            return
        _pack(self._packed, session.shown.array, width, left)
        ti.sync()
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
        if shape != self.shape and min(shape) > 0:  # a window that is put away may have no size
            self.shape, self._shape_since = shape, now
        if shape != self._packed.shape and min(shape) >= 64 and now - self._shape_since > SETTLED_SECONDS:
            self._packed = np.zeros(shape, dtype=np.uint32)
            # A panel stays where it was born: others, under other names, are born at the new edges.
            self._sizes += 1
            self.rectangles = _at_the_edges(shape)
            self._message = ""
            self.session.redraw()
            self._touch()

    # Panels

    def _draw_panels(self) -> None:
        lines = [f"{self.fps:.0f} frames/s", f"{self.session.scene.name}, {self._cells()}"]
        lines += [self._device] if self._device else []
        fill = {STEER: self._panel.steer, RUN: lambda rows: self._panel.run(rows, lines)}
        for name, born in _at_the_edges(self._packed.shape).items():
            actions = self._draw_panel(name, name + self._suffix, born, fill[name])
            self._pending += actions
            if actions and name == STEER:
                self._touch()

    def _draw_panel(
        self, name: str, title: str, born: tuple[float, ...], fill: Callable[[Rows], list[Action]]
    ) -> list[Action]:
        """Draw a panel, which stands where it was ``born`` unless it was moved; what its widgets ask for."""
        width, height = self._opened
        left, top, wide, high = born
        with self._gui.sub_window(title, left / width, top / height, wide / width, high / height) as gui:
            rows = Rows(gui, self.rectangles[name][2], held=bool(self._dragging))
            actions = fill(rows)
        self._filled[name] = rows.height
        x, y, *_ = self.rectangles[name]
        for key, row in rows.places.items():
            self._places[key] = row._replace(left=row.left + x, top=row.top + y)
        return actions

    def _draw_message(self) -> None:
        """What was said last, in the lower left corner, while the panels are away."""
        message, width, height = self.session.message, self._packed.shape[0], self._packed.shape[1]
        if message != self._message:
            self._message, self._messages = message, self._messages + 1  # each is born in the corner
            wide = min(STEER_WIDTH, width)
            high = text_height(message, wide) + GAP
            self._born = self.rectangles[MESSAGE] = (0.0, max(height - high, 0.0), wide, high)
        if message:
            self._draw_panel(MESSAGE, f"{MESSAGE}##{self._messages}", self._born, self._panel.message)

    def _shown(self) -> list[str]:
        """Names of the panels that are in sight."""
        return [STEER, RUN] if self.panels_shown else [MESSAGE] if self._message else []

    @property
    def _suffix(self) -> str:
        """What tells the panels of one size of the window from those of another; it is not shown."""
        return f"##{self._sizes}"

    def _cells(self) -> str:
        return "x".join(map(str, self.session.scene.domain.shape))

    def _read_places(self) -> None:
        """GGUI does not say where its panels are; the file that it writes a while after one was moved does."""
        path = Path(self._folder.name) / "imgui.ini"
        try:
            saved = path.stat().st_mtime
            if saved == self._saved_places:
                return
            self._saved_places = saved
            text = path.read_text(encoding="utf-8")
            self.rectangles |= panel_places(text, self.rectangles, self._suffix)
        except (OSError, ValueError):
            return

    def _over_panel(self, x: float, y: float) -> str:
        """Name of the panel under a pixel of the window, from its upper left; empty beside them."""
        for name in self._shown():
            left, top, width, height = self.rectangles[name]
            if left <= x < left + width and top <= y < top + height:
                return name
        return ""

    def _moves_panel(self, name: str, x: float, y: float) -> bool:
        """Whether a drag from there takes the panel along: from its title bar, or from where it has no widget.

        Of a panel that can be scrolled only the title bar is sure; whether another place moved it, its file will say.
        """
        left, top, width, height = self.rectangles[name]
        if y < top + TITLE_BAR:
            return True
        on_grip = x > left + width - GRIP and y > top + height - GRIP
        return self._filled.get(name, height) < height and not (on_grip or self._widget_under(x, y))

    def _widget_under(self, x: float, y: float) -> str:
        """Name of the widget under a pixel of the window; empty where there is none. Of a scrolled panel a neighbour's."""
        for key, row in self._places.items():
            on_row = row.left <= x < row.left + row.width and row.top <= y < row.top + row.height
            if on_row and not key.startswith("text "):
                return key
        return ""

    # Mouse

    def _follow_pointer(self, elapsed: float) -> None:
        window, (width, height) = self._window, self.shape
        self._clicks = [event.key for event in window.get_events(ti.ui.PRESS)]
        u, v = window.get_cursor_pos()
        x, y = u * width, (1.0 - v) * height
        before, self._pointer = self._pointer, (x, y)
        held = [key for key in (ti.ui.LMB, ti.ui.RMB, ti.ui.MMB) if window.is_pressed(key)]
        if held or self._clicks or before != self._pointer:
            self._hand_at = time.perf_counter()
        clicked = [key for key in (ti.ui.LMB, ti.ui.RMB, ti.ui.MMB) if key in self._clicks]
        if clicked:
            panel = self._over_panel(x, y)
            if ti.ui.LMB in clicked:  # the others do not take the keyboard from a widget
                before_it, self._widget = self._widget, self._widget_under(x, y)
                again = self._typing and self._widget and self._widget == before_it  # into the number, to go on in it
                self._typing = bool(panel and (window.is_pressed(ti.ui.CTRL) or again))
            before = (x, y)
            if panel:
                # Until it is let go the drag belongs to the panel, and may take it along.
                moves = ti.ui.LMB in clicked and self._moves_panel(panel, x, y)
                self._dragging = f"panel {panel}" if moves else "panel"
            else:
                self._dragging = clicked[0]
                self._pane_left = self._pane_under(x)
        if not held and not clicked:
            self._dragging = ""
        if not self._dragging or before is None:
            return
        moved = (x - before[0], y - before[1])
        if self._dragging.startswith("panel "):
            name = self._dragging.removeprefix("panel ")
            left, top, *size = self.rectangles[name]
            self.rectangles[name] = (left + moved[0], top + moved[1], *size)
        elif self._dragging == ti.ui.LMB:
            self._stroke(before, (x, y), elapsed)
        elif self._dragging in (ti.ui.RMB, ti.ui.MMB) and any(moved):
            self._turn(moved)

    def _stroke(self, before: tuple[float, float], now: tuple[float, float], elapsed: float) -> None:
        start, end = self._point(*before), self._point(*now)
        if end is not None:
            self.session.stroke(end if start is None else start, end, elapsed)
            self._touch()

    def _point(self, x: float, y: float) -> np.ndarray | None:
        extent = self._extent
        u = (self._column(x) - self._pane_left) / extent.width
        return point_under(self.session.scene, u, 1.0 - y / self.shape[1], extent)

    def _column(self, x: float) -> float:
        """Column of the picture under a place in the window."""
        # The window may just have another size than the picture in it, which is then stretched.
        return x * self._packed.shape[0] / self.shape[0] - self.viewport[0]

    @property
    def _extent(self) -> Extent:
        """Of the picture, or of each half of it in a comparison."""
        return Extent(self.session.pane_width(self.viewport[1]), self._packed.shape[1])

    def _pane_under(self, x: float) -> int:
        """First column, in the picture, of the half under a place in the window; a drag stays in the one it began in."""
        left = self.viewport[1] - self._extent.width
        return left if self._column(x) >= left else 0

    def _turn(self, moved: tuple[float, float]) -> None:
        scene = self.session.scene
        if scene.dim == 2:
            return
        du, dv = moved[0] / self._extent.width, -moved[1] / self._extent.height
        self._drag_camera(du, dv)

    def _drag_camera(self, du: float, dv: float) -> None:
        """Move, zoom or turn by ``du`` and ``dv`` pictures, as the button and the keys that are held say."""
        scene = self.session.scene
        if self._dragging == ti.ui.MMB or self._window.is_pressed(ti.ui.SHIFT):
            self._move_camera(panned(scene, du, dv, self._extent))
        elif self._window.is_pressed(ti.ui.CTRL):
            self._move_camera(zoomed(scene.camera, dv))
        else:
            self._move_camera(orbited(scene.camera, du, dv))

    def _move_camera(self, changes: Mapping[str, Any]) -> None:
        self.session.set(changes)
        self._touch()

    # Keys

    def _follow_keys(self, elapsed: float) -> None:
        session = self.session
        if self._typing:
            # A number is typed into a slider: its letters are no commands. Tab goes on to the next slider.
            self._typing = not any(key in self._clicks for key in (ti.ui.RETURN, ti.ui.ESCAPE))
            return
        once: dict[str, Action] = {
            ti.ui.SPACE: session.pause,
            "n": session.step_once,
            "r": session.reset,
            "c": session.clear,
            "o": session.record,
            "p": session.screenshot,
            "s": session.save_scene,
            "e": session.reset_view,
            **{key.lower(): lambda name=name: next_choice(session, f"look.{name}") for name, key in NEXT.items()},
            "h": self._toggle_panels,
            ti.ui.TAB: self._toggle_panels,
            ti.ui.ESCAPE: self.close,
        }
        for key in self._clicks:
            if key in once:
                once[key]()
        # Many that came while one was at work are one.
        if "f" in self._clicks:
            self._pending.append(session.finer())
        elif "g" in self._clicks:
            self._pending.append(session.coarser())
        elif "b" in self._clicks:
            self._pending.append(session.compare())
        if session.scene.dim == 3:
            self._steer_camera(elapsed)

    def _steer_camera(self, elapsed: float) -> None:
        pressed, camera = self._window.is_pressed, self.session.scene.camera
        frames = min(30.0 * elapsed, 3.0)
        turn = KEY_TURN * frames
        du = turn * (pressed(ti.ui.RIGHT) - pressed(ti.ui.LEFT))
        dv = turn * (pressed(ti.ui.UP) - pressed(ti.ui.DOWN))
        zoom = KEY_ZOOM * frames * (pressed("z") - pressed("x"))
        if zoom:
            self._move_camera(zoomed(camera, zoom))
        elif du or dv:
            self._drag_camera(du, dv)

    def _toggle_panels(self) -> None:
        self.panels_shown = not self.panels_shown
        self.session.redraw()


def _at_the_edges(shape: tuple[int, ...]) -> dict[str, tuple[float, float, float, float]]:
    """Left, top, width and height of the panels in a window of this shape, as they are at first."""
    left = max(shape[0] - RUN_WIDTH, 0)
    return {STEER: (0, 0, STEER_WIDTH, shape[1]), RUN: (left, 0, RUN_WIDTH, shape[1])}


def panel_places(text: str, known: dict, suffix: str = "") -> dict[str, tuple[float, float, float, float]]:
    """Left, top, width and height of the ``known`` panels as ``imgui.ini`` has them; a folded one is its title bar."""
    places, name = {}, ""
    values: dict[str, str] = {}

    def keep() -> None:
        if name in known and {"Pos", "Size"} <= values.keys():
            left, top = map(float, values["Pos"].split(","))
            width, height = map(float, values["Size"].split(","))
            places[name] = (left, top, width, TITLE_BAR if values.get("Collapsed") == "1" else height)

    for line in text.splitlines():
        if line.startswith("[Window]["):
            keep()
            name, values = line[len("[Window][") : -1].removesuffix(suffix), {}
        else:
            key, _, value = line.partition("=")
            values[key] = value
    keep()
    return places


def show(
    scene: Scene, build: Callable[[Scene], Simulation] = Simulation, folder: Path | str = ".",
    on_frame: Callable[[Frame], None] | None = None,
) -> Session:  # fmt: skip
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
