"""The mouse and the keys of a window: what they ask of its session."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._ti import ti
from .keeping import keep_state
from .panel import NEXT, next_choice
from .places import RUN_WIDTH, STEER_WIDTH, Places
from .pointer import Extent, orbited, panned, point_under, zoomed
from .session import Action, Session

KEY_TURN, KEY_ZOOM = 0.04, 0.06
BUTTONS = (ti.ui.LMB, ti.ui.RMB, ti.ui.MMB)


class Place:
    """Where the picture stands in the window, in pixels.

    Attributes:
        window: Width and height of the window.
        picture: Width and height of what is shown in it; for a while another size of the window stretches it.
        panels_shown: Whether panels take room at its edges.
    """

    def __init__(self, shape: tuple[int, int]):
        self.window, self.picture, self.panels_shown = shape, shape, True

    @property
    def viewport(self) -> tuple[int, int]:
        """First column of the flow's picture, and its width."""
        width = self.picture[0]
        if not self.panels_shown or width < STEER_WIDTH + RUN_WIDTH + 100:
            return 0, width
        return STEER_WIDTH, width - STEER_WIDTH - RUN_WIDTH

    def column(self, x: float) -> float:
        """Column of the flow's picture under a place in the window."""
        return x * self.picture[0] / self.window[0] - self.viewport[0]


class Hands:
    """Follows the pointer and the keys.

    Attributes:
        at: When a hand last moved or pressed something, in seconds of ``time.perf_counter``.
        changed_at: When something that is seen was last changed.
        dragging: What a button of the mouse that is down drags: a panel, or the button's name; else empty.
        pending: What takes long, to be done after a frame has said so.

    Args:
        window: Taichi's window.
        session: What is steered.
        place: Where the picture stands.
        places: Where the panels stand.
        commands: What keys ask of the window itself.
    """

    def __init__(self, window: Any, session: Session, place: Place, places: Places, commands: Mapping[str, Action]):
        self._window, self._session, self._place, self._places = window, session, place, places
        self._commands = commands
        self.at = self.changed_at = time.perf_counter()
        self.dragging, self.pending = "", []
        self.clicks: list[str] = []
        self._pointer: tuple[float, float] | None = None
        self._typing, self._widget, self._pane_left = False, "", 0

    def touch(self) -> None:
        """Note that something that is seen has changed."""
        self.changed_at = time.perf_counter()

    # Mouse

    def follow_pointer(self, elapsed: float) -> None:
        """Do what the mouse asks for, and note which keys were pressed since the last time."""
        window, (width, height) = self._window, self._place.window
        pressed = [event.key for event in window.get_events(ti.ui.PRESS)]
        self.clicks += pressed
        u, v = window.get_cursor_pos()
        x, y = u * width, (1.0 - v) * height
        before, self._pointer = self._pointer, (x, y)
        held = [key for key in BUTTONS if window.is_pressed(key)]
        if held or pressed or before != self._pointer:
            self.at = time.perf_counter()
        clicked = [key for key in BUTTONS if key in pressed]
        if clicked:
            self._begin_drag(clicked, x, y)
            before = (x, y)
        if not held and not clicked:
            self.dragging = ""
        if not self.dragging or before is None:
            return
        moved = (x - before[0], y - before[1])
        if self.dragging.startswith("panel "):
            self._places.move(self.dragging.removeprefix("panel "), *moved)
        elif self.dragging == ti.ui.LMB:
            self._stroke(before, (x, y), elapsed)
        elif self.dragging in (ti.ui.RMB, ti.ui.MMB) and any(moved):
            self._turn(moved)

    def _begin_drag(self, clicked: list[str], x: float, y: float) -> None:
        places = self._places
        panel = places.panel_under(x, y)
        if ti.ui.LMB in clicked:  # the others do not take the keyboard from a widget
            before, self._widget = self._widget, places.widget_under(x, y)
            again = self._typing and self._widget and self._widget == before  # into the number, to go on in it
            self._typing = bool(panel and (self._window.is_pressed(ti.ui.CTRL) or again))
        if panel:
            # Until it is let go the drag belongs to the panel, and may take it along.
            moves = ti.ui.LMB in clicked and places.is_grip(panel, x, y)
            self.dragging = f"panel {panel}" if moves else "panel"
        else:
            self.dragging = clicked[0]
            self._pane_left = self._pane_under(x)

    def _stroke(self, before: tuple[float, float], now: tuple[float, float], elapsed: float) -> None:
        start, end = self._point(*before), self._point(*now)
        if end is not None:
            self._session.stroke(end if start is None else start, end, elapsed)
            self.touch()

    def _point(self, x: float, y: float) -> np.ndarray | None:
        extent = self._extent
        u = (self._place.column(x) - self._pane_left) / extent.width
        return point_under(self._session.scene, u, 1.0 - y / self._place.window[1], extent)

    @property
    def _extent(self) -> Extent:
        """Of the picture, or of each half of it in a comparison."""
        return Extent(self._session.pane_width(self._place.viewport[1]), self._place.picture[1])

    def _pane_under(self, x: float) -> int:
        """First column, in the picture, of the half under a place in the window; a drag stays in the one it began in."""
        left = self._place.viewport[1] - self._extent.width
        return left if self._place.column(x) >= left else 0

    def _turn(self, moved: tuple[float, float]) -> None:
        if self._session.scene.dim == 3:
            self._drag_camera(moved[0] / self._extent.width, -moved[1] / self._extent.height)

    def _drag_camera(self, du: float, dv: float) -> None:
        """Move, zoom or turn by ``du`` and ``dv`` pictures, as the button and the keys that are held say."""
        scene = self._session.scene
        if self.dragging == ti.ui.MMB or self._window.is_pressed(ti.ui.SHIFT):
            self._move_camera(panned(scene, du, dv, self._extent))
        elif self._window.is_pressed(ti.ui.CTRL):
            self._move_camera(zoomed(scene.camera, dv))
        else:
            self._move_camera(orbited(scene.camera, du, dv))

    def _move_camera(self, changes: Mapping[str, Any]) -> None:
        self._session.set(changes)
        self.touch()

    # Keys

    @property
    def asks_to_end(self) -> bool:
        """Whether Escape waits to be followed."""
        return ti.ui.ESCAPE in self.clicks and not self._typing

    def follow_keys(self, elapsed: float) -> None:
        """Do what the keys ask for that were pressed since the last time."""
        session = self._session
        clicks, self.clicks = self.clicks, []
        if self._typing:
            # A number is typed into a slider: its letters are no commands. Tab goes on to the next slider.
            self._typing = not any(key in clicks for key in (ti.ui.RETURN, ti.ui.ESCAPE))
            return
        once: dict[str, Action] = {
            ti.ui.SPACE: session.pause,
            "n": session.step_once,
            "r": session.reset,
            "c": session.clear,
            "o": session.record,
            "p": session.screenshot,
            "s": session.save_scene,
            "k": lambda: keep_state(session),
            "e": session.reset_view,
            **{key.lower(): lambda name=name: next_choice(session, f"look.{name}") for name, key in NEXT.items()},
            **self._commands,
        }
        for key in clicks:
            if key in once:
                once[key]()
        # Many that came while one was at work are one.
        if "f" in clicks:
            self.pending.append(session.finer())
        elif "g" in clicks:
            self.pending.append(session.coarser())
        elif "b" in clicks:
            self.pending.append(session.compare())
        if session.scene.dim == 3:
            self._steer_camera(elapsed)

    def _steer_camera(self, elapsed: float) -> None:
        pressed, camera = self._window.is_pressed, self._session.scene.camera
        frames = min(30.0 * elapsed, 3.0)
        turn = KEY_TURN * frames
        du = turn * (pressed(ti.ui.RIGHT) - pressed(ti.ui.LEFT))
        dv = turn * (pressed(ti.ui.UP) - pressed(ti.ui.DOWN))
        zoom = KEY_ZOOM * frames * (pressed("z") - pressed("x"))
        if zoom:
            self._move_camera(zoomed(camera, zoom))
        elif du or dv:
            self._drag_camera(du, dv)
