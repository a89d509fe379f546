"""A running scene that somebody steers: everything a window does, but for the window.

The panel, the keys and the mouse call what stands here; so do the tests, without any of them.
"""

import math
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._ti import ti
from ..errors import last_line
from ..io.images import write_png
from ..io.video import LiveVideo
from ..render.image import Image
from ..render.renderer import Pictures
from ..render.side_by_side import half_width, pictures_of
from ..scene import Scene, SceneError, preset, require_installed
from ..scene.memory import require_memory
from ..simulation import Simulation, Step
from ..simulation.comparison import Comparison, flow_of, own_of
from .ahead import Views, compile_scene
from .health import Health, Pulse
from .strokes import Stroke, paint
from .written import claimed_name, drop_empty, reason, write_scene

LONGEST_DEBT = 1 / 15
"""Seconds by which the flow may lag behind the clock before it gives up on them."""
SHORTEST_STEP = 1 / 120
"""Seconds of the clock that a step is worth waiting for."""
COARSEST, FINER = 16, 1.25
"""Cells along the longest edge below which a scene is no longer itself, and how many times as many a finer grid has."""
SLOW_STEP = 2.0
"""Seconds of a step from which a finer grid must be asked for twice."""
MESSAGE_SECONDS = 12.0
"""How long a message stays that is not about a flow that has stopped."""

Action = Callable[[], Any]


class Session:
    """A scene, its simulation and its pictures, under somebody's hands.

    Args:
        scene: What to begin with.
        folder: Where recordings, screenshots and saved scenes go.
        build: Makes the simulation of a scene; one's own may add solids and stages.
        size: Width and height of the pictures in pixels.

    Attributes:
        flow: What runs now: a simulation, or with ``look.compare`` both grids; another one after another preset,
            resolution or grid.
        renderer: Draws it.
        shown: The picture that was drawn last, in full size, on the device.
        paused: Whether time stands still.
        message: The last thing worth saying, in a sentence; empty after a while.
        alarm: Whether that is something that went wrong.
        written: Files that were written.
        pictures: How many pictures were drawn so far.
        draw_seconds: How long the last one took.
        compiles_first: Whether the kernels of another scene or view are compiled before it takes the place of this one.
        beside: Whether another scene is being built, or view compiled, and this one may go on meanwhile.
    """

    def __init__(
        self, scene: Scene, folder: Path | str = ".", build: Callable[[Scene], Simulation] = Simulation,
        size: tuple[int, int] | None = None,
    ):  # fmt: skip
        self.folder = Path(folder).resolve()
        self._build, self._size = build, size or scene.picture_size
        self.paused, self.written, self._warned_of = False, [], 0
        self._detail, self._full = 1.0, Image(*self._size)
        self.pictures, self.draw_seconds, self._drawing = 0, 0.0, False
        self.compiles_first = self.beside = False
        self.video: LiveVideo | None = None
        self._camera, flow = scene.camera, flow_of(scene, build)
        self._start(flow, pictures_of(flow, *self._drawn_size))

    def _start(self, flow: Simulation | Comparison, renderer: Pictures) -> None:
        self.flow, self.renderer, self.shown = flow, renderer, renderer.image
        renderer.keep_with_flow()
        self._parts: Generator[None, None, Step] | None = None
        self._single, self._failed, self._stale, self._redraw = False, False, True, True
        self._strokes: list[Stroke] = []
        self._pulse, self._debt, self._views = Pulse(flow), 0.0, Views(flow.scene.look)
        self.message = next(iter(self.simulation.remarks), "")
        self.alarm = bool(self._message)

    # The scene

    @property
    def scene(self) -> Scene:
        """The scene as it is by now."""
        return self.flow.scene

    @property
    def simulation(self) -> Simulation:
        """What runs on the scene's own grid."""
        return own_of(self.flow)

    @property
    def failed(self) -> bool:
        """Whether the flow stopped for what only ``reset`` or another scene can mend, such as NaN."""
        return self._failed

    @property
    def message(self) -> str:
        """What was said last."""
        if not self._failed and time.monotonic() - self._said_at > MESSAGE_SECONDS:
            self._message = ""
        return self._message

    @message.setter
    def message(self, message: str) -> None:
        self._message, self.alarm, self._said_at = message, False, time.monotonic()

    def _warn(self, message: str) -> None:
        self.message = message
        self.alarm = True

    @property
    def stepping(self) -> bool:
        """Whether a step has begun and not ended."""
        return self._parts is not None

    def set(self, changes: Mapping[str, Any]) -> bool:
        """Change values of the scene by dotted key; a value that cannot be is answered by ``message`` and not taken.

        Another grid, and the comparison of both, go on from the flow as it is.
        """
        try:
            scene = self.scene.with_values(changes)
            if (scene.domain.grid, scene.look.compare) != (self.scene.domain.grid, self.scene.look.compare):
                return self._regrid(scene)
            if self.compiles_first and self._views.new(scene.look):
                self.beside = True
                self._views.compile(self.flow, scene.look, self._drawn_size)
            self.flow.scene = scene
        except ValueError as error:
            self._warn(str(error))
            return False
        except (MemoryError, RuntimeError) as error:
            self._fail(error)
            return False
        finally:
            self.beside = False
        self._redraw = True
        return True

    # Time

    def advance(self, seconds: float, elapsed: float) -> bool:
        """Work on the next step for about ``seconds``.

        Args:
            seconds: How long; one part of a step may take longer.
            elapsed: Seconds since the last call, by which the flow may go on, times the scene's pace.

        Returns:
            Whether there is something new to draw.
        """
        running = not (self.paused or self._failed)
        pace = self.scene.live.pace
        if running:
            self._debt = min(self._debt + pace * elapsed, pace * LONGEST_DEBT)
        deadline, news = time.perf_counter() + seconds, False
        while self.stepping or self._single or (running and self._debt >= pace * SHORTEST_STEP):
            if not self._failed and self._go_on():
                news = True
                # Draw before another step begins, unless that one will be done in time.
                if time.perf_counter() + self.step_seconds > deadline:
                    break
            if self._failed or time.perf_counter() >= deadline:
                break
        if not self.stepping and self._flush():
            news = True
        return news or self._redraw

    @property
    def step_seconds(self) -> float:
        """How long the last step took; infinite before the first one."""
        return self._pulse.step_seconds

    def _go_on(self) -> bool:
        """Begin a step or go on with one, by one part of it; whether that ended it."""
        try:
            if self._parts is None:
                self._flush()
                longest = self._debt if self._debt > 0 else self.scene.solver.max_dt
                self._parts = self.flow.stepping(timed=True, longest=longest)
            next(self._parts)
        except StopIteration as end:
            self._end_step(end.value)
            return True
        except (MemoryError, RuntimeError) as error:
            self._fail(error)
        return False

    def _fail(self, error: Exception) -> None:
        """Stop the flow, with a message, for what only a reset or another scene can mend: NaN, no room on the device."""
        self._parts, self._single, self._failed = None, False, True
        self._warn(f"stopped: {last_line(error)} Reset to start again.")

    def _end_step(self, step: Step) -> None:
        self._parts, self._single = None, False
        self._pulse.steps.append(step)
        self._debt -= step.dt
        self._stale = True
        if self.simulation.time in (self.simulation.overfull, self.simulation.unbalanced):
            self._warn(self.simulation.remarks[-1])

    def _flush(self) -> bool:
        """Paint the strokes that wait, between two steps."""
        strokes, self._strokes = self._strokes, []
        for stroke in strokes:
            paint(self.flow, stroke)
            self._stale = True
        return bool(strokes)

    def stroke(self, start: ArrayLike, end: ArrayLike, seconds: float) -> None:
        """Drag the pointer from ``start`` to ``end``, in metres; it is painted before the next step."""
        self._strokes.append(Stroke(np.asarray(start, float), np.asarray(end, float), seconds))

    def pause(self) -> None:
        """Stop time, or let it go on."""
        self.paused = not self.paused
        self._debt = 0.0

    def step_once(self) -> None:
        """Make one step, paused or not; time stands still after it."""
        self.paused, self._single, self._debt = True, not self._failed, 0.0

    def reset(self) -> None:
        """Back to the start, with the values as they are."""
        self._abandon()
        self._pulse.steps.clear()
        try:
            self.flow.reset()
        except (MemoryError, RuntimeError) as error:
            self._fail(error)
            return
        self._failed, self._stale, self.message = False, True, ""

    def reset_view(self) -> None:
        """Look at the box again as the scene did when it started."""
        self.set({"camera": self._camera.model_dump(mode="json", exclude_none=True)})

    def clear(self) -> None:
        """Take away all that the flow carries; the flow stays."""
        self.finish_step()
        self.flow.clear()
        self._stale = True

    def finish_step(self) -> None:
        """Bring a step that has begun to its end."""
        while self.stepping:
            self._go_on()

    def _abandon(self) -> None:
        if self._parts is not None:
            self._parts.close()
            self._parts = None
        self._single, self._strokes, self._debt = False, [], 0.0

    # Other scenes

    def load(self, name: str) -> None:
        """Start a scene of the package."""
        try:
            scene = preset(name)
            require_installed(scene)
        except SceneError as error:
            self._warn(f"{name} cannot run here: {error}")
            return
        self._replace(scene)

    def other(self, name: str) -> Action:
        """Say that a scene of the package is about to start, and return what starts it."""
        self.message = f"building {name}..."
        return lambda: self.load(name)

    def finer(self) -> Action:
        """Say that more cells are about to come, and return what brings them."""
        self.message = "building a finer grid..."
        return lambda: self.resize_grid(finer=True)

    def coarser(self) -> Action:
        """Say that fewer cells are about to come, and return what brings them."""
        self.message = "building a coarser grid..."
        return lambda: self.resize_grid(finer=False)

    def compare(self) -> Action:
        """Say that both grids are about to run side by side, or one alone again, and return what does it."""
        on = not self.scene.look.compare
        self.message = "building the other grid..." if on else ""
        return lambda: self.set({"look.compare": on})

    def resize_grid(self, finer: bool) -> None:
        """Go on with more cells, or with fewer, from the flow as it is."""
        now = self.scene.domain.resolution
        wanted = max(now * FINER, now + 8) if finer else min(now / FINER, now - 8)
        resolution = max(8 * round(wanted / 8), COARSEST)
        if not finer and resolution >= now:
            self._warn(f"{now} cells are as coarse as the grid becomes here.")
            return
        slower = self.step_seconds * (resolution / now) ** self.scene.dim
        if SLOW_STEP < slower < math.inf and self._warned_of != resolution:
            self._warned_of = resolution
            self._warn(f"a step of {resolution} cells will take about {slower:.0f} s: press again if that is wanted.")
            return
        try:
            scene = self.scene.with_values({"domain.resolution": resolution})
        except SceneError as error:
            self._warn(str(error))
            return
        self._regrid(scene)

    def _regrid(self, scene: Scene) -> bool:
        """Go on with other cells, or with another number of grids, from the flow as it is; whether that was possible."""
        self.finish_step()
        return self._replace(scene, None if self._failed else self.flow)

    def _replace(self, scene: Scene, before: Simulation | Comparison | None = None) -> bool:
        def build(scene: Scene) -> Simulation:
            require_memory(scene)
            simulation = self._build(scene)
            simulation.prepare()  # while what runs now can still go on
            return simulation

        self.beside = before is None
        try:
            flow = flow_of(scene, build, before)
            renderer = pictures_of(flow, *self._drawn_size)
            if self.beside and self.compiles_first:
                compile_scene(flow, renderer)
        except (ValueError, MemoryError, RuntimeError) as error:
            ti.sync()  # before arrays are dropped: one in use is never freed on Vulkan
            self._warn(f"{scene.name} with {scene.domain.resolution} cells cannot run here: {error}")
            return False
        finally:
            self.beside = False
        self._abandon()
        ti.sync()
        self._start(flow, renderer)
        if before is None:
            self._camera = scene.camera
        # Before its first step, which may have to wait for kernels: the last scene's picture is not this one's.
        self.draw()
        self._redraw = True
        return True

    # Pictures

    def redraw(self) -> None:
        """Draw again though nothing has changed: the place of the picture has."""
        self._redraw = True

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the pictures in pixels."""
        return self._size

    @size.setter
    def size(self, size: tuple[int, int]) -> None:
        self._resize(size, self._detail)

    def pane_width(self, width: int) -> int:
        """What one flow takes of a picture that is so wide, in pixels: all, or in a comparison half, at either edge."""
        return half_width(width) if isinstance(self.flow, Comparison) else width

    @property
    def detail(self) -> float:
        """Part of the width and height in which pictures are drawn, before they are scaled to their size."""
        return self._detail

    @detail.setter
    def detail(self, detail: float) -> None:
        self._resize(self._size, detail)

    def _resize(self, size: tuple[int, int], detail: float) -> None:
        if (size, detail) != (self._size, self._detail):
            self._size, self._detail = size, detail
            self._redraw = True

    @property
    def _drawn_size(self) -> tuple[int, int]:
        width, height = self._size
        return max(round(self._detail * width), 1), max(round(self._detail * height), 1)

    def draw(self) -> bool:
        """Draw into ``shown`` if anything has changed; whether something was drawn.

        In the middle of a step it draws what the end of the last one left, which the camera may go around.
        """
        if self._drawing or (self.stepping and (self._stale or not self.renderer.prepared_for(self.scene.look))):
            return False
        self._drawing = True
        try:
            return self._draw()
        except (MemoryError, RuntimeError) as error:
            self._stale = self._redraw = False
            self._fail(error)
            return False
        finally:
            self._drawing = False

    def _draw(self) -> bool:
        if self._stale or not self.renderer.prepared_for(self.scene.look):
            self.renderer.prepare()
        elif not self._redraw:
            return False
        self._stale = self._redraw = False  # what is asked for while kernels compile is for the next picture
        begun = time.perf_counter()
        reduced = self._drawn_size != self._size
        self.renderer.resize(*self._drawn_size)  # not before: until now the last picture may be asked for
        self.renderer.draw_image(finished=not reduced)
        ti.sync()
        self.draw_seconds = time.perf_counter() - begun
        self.shown = self.renderer.image
        if reduced:
            self._full.resize(*self._size)
            self.renderer.enlarge_into(self._full)
            self.shown = self._full
        self.pictures += 1
        return True

    def picture(self) -> np.ndarray:
        """What was drawn last: ``(height, width, 3)`` bytes, the first row on top."""
        return self.shown.to_numpy()

    def screenshot(self) -> None:
        """Write the picture as PNG, in its full size."""
        detail, self.detail = self._detail, 1.0
        self.draw()
        picture, self.detail = self.picture(), detail
        self.write(".png", lambda path: write_png(path, picture))

    def save_scene(self) -> None:
        """Write the scene, with all values as they are now, as TOML."""
        self.write(".toml", lambda path: write_scene(path, self.scene))

    def record(self) -> None:
        """Begin a recording of what is seen, or end it."""
        if self.video is None:
            path = None
            try:
                path = claimed_name(self.folder, self.scene.name, ".mp4")
                self.video = LiveVideo(path, *self._size)
            except OSError as error:
                self._warn(f"recording is not possible: {reason(error)}.")
                drop_empty(path)
                return
            self.message = f"recording {path.name} ..."
            self.offer_picture()
            return
        video, self.video = self.video, None
        video.close()
        self._report(video.path, video.error)

    def offer_picture(self) -> None:
        """Let a recording, if there is one, see the picture that was drawn last."""
        if self.video is not None and self.video.error is not None:
            self.record()
        elif self.video is not None and self.video.due:
            self.video.offer(self.picture())

    def close(self) -> None:
        """End a recording; files are whole after it."""
        if self.video is not None:
            self.record()
        self._abandon()

    def write(self, suffix: str, write: Callable[[Path], None]) -> None:
        """Write a file with a name of its own, and say so or why not."""
        path = problem = None
        try:
            path = claimed_name(self.folder, self.scene.name, suffix)
            write(path)
        except (OSError, SceneError) as error:
            problem = error
        self._report(path or self.folder / f"{self.scene.name}{suffix}", problem)

    def _report(self, path: Path, error: Exception | None) -> None:
        if error is not None:
            self._warn(f"{path.name} cannot be written: {reason(error)}.")
            drop_empty(path)
        else:
            self.written.append(path)
            self.message = f"wrote {path.name}"

    def health(self) -> Health | None:
        """How the flow is doing; None before its first step."""
        return self._pulse.health(measure=not self.stepping and not self._failed)
