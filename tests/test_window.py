"""The real window, under Xvfb and with whatever Vulkan driver there is, driven with a real mouse and real keys.

One window serves many tests: what they have in common is put back to the start before each.
"""

import ctypes
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import av
import numpy as np
import pytest
from test_backends import ENVIRONMENT, leave_out, vulkan_problem
from window_driver import SLOW, Driver, display, missing, screen_pixels

import taichi_fluid as tf
from taichi_fluid.render.image import shown_colour
from taichi_fluid.scene import preset_names

FLAT = ("plume2d", "domain.resolution=24", "solver.max_dt=0.02", "live.pace=2.0")
"""A box of 1.5 m x 2 m and 18 x 24 cells, which fills the height of the picture."""
SOLID = ("plume", "domain.resolution=16", "solver.max_dt=0.04", "live.pace=2.0")
"""A cube of 4 m and 16 cells."""
BYTE = 1
"""A pixel is rounded up or down by chance, which changes its place in the window but not in a file."""


class Desk:
    """A virtual screen, and the one window on it."""

    def __init__(self, folder: Path, name: str, files: Path):
        self.folder, self.name, self._files = folder, name, files
        self._driver: Driver | None = None
        self._key: tuple = ()
        self._count = 0

    def open(self, *scene: str) -> Driver:
        """The window on a scene: the one that is open, if it shows that, or else a new one."""
        if self._driver is not None and self._driver.process.poll() is None and self._key == scene:
            self._driver.ask("begin")
        else:
            self.close()
            folder = self._files / f"window {self._count}"
            folder.mkdir()
            self._count += 1
            self._driver, self._key = Driver(self.name, self.folder, folder, *scene), scene
        driver = self._driver
        # Without a window manager the keys go to the window that the pointer is over.
        driver.wait(lambda state: state["pictures"] >= 1 and state["steps"] >= 1)
        driver.move(*driver.view_point(0.02, 0.02))
        driver.frames()
        return driver

    def close(self) -> None:
        """Close the window, if one is open; it must end well."""
        driver, self._driver = self._driver, None
        if driver is not None:
            assert driver.close() == driver.status, driver.errors()
            files = [path.name for path in driver.folder.iterdir()]
            assert "imgui.ini" not in files, files


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A virtual screen. In CI it must be there, and a Vulkan driver to draw with."""
    lacking = missing() or (vulkan_problem() and "no Vulkan driver starts here, and that is what draws the window")
    if lacking:
        leave_out(lacking)
    folder = tmp_path_factory.mktemp("screen")
    with display(folder) as name:
        desk = Desk(folder, name, tmp_path_factory.mktemp("windows"))
        yield desk
        desk.close()


@pytest.fixture
def flat(desk):
    """A window on a 2D scene."""
    return desk.open(*FLAT)


@pytest.fixture
def solid(desk):
    """A window on a 3D scene."""
    return desk.open(*SOLID)


def pictures_in(path) -> list[np.ndarray]:
    """Pictures of a video or of a PNG file."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def seconds_of(path) -> float:
    with av.open(str(path)) as container:
        return container.duration / 1e6


def newest(window: Driver, suffix: str) -> Path:
    """The file that the window wrote last."""
    path = Path(window.state["written"][-1])
    assert path.suffix == suffix and path.parent == window.folder.resolve()
    return path


def running(window: Driver, seconds: float) -> None:
    """Let the flow go on."""
    goal = window.frames(1)["time"] + seconds
    window.wait(lambda state: state["time"] > goal)


def arrays(window: Driver, *names: str) -> list[np.ndarray]:
    return [window.array(name) for name in names or ("smoke", "temperature", "velocity")]


def same(one: list[np.ndarray], two: list[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def middle_of(window: Driver, added: np.ndarray) -> np.ndarray:
    """Middle, in metres, of what was added to a quantity."""
    dx = tf.Scene.from_dict(window.state["scene"]).domain.dx
    return np.array([np.average(index + 0.5, weights=added) for index in np.indices(added.shape)]) * dx


def differing(one: np.ndarray, two: np.ndarray) -> float:
    """Part of the pixels that differ by more than rounding."""
    return float((np.abs(one.astype(int) - two) > 2).any(axis=-1).mean())


# Commands: each by its key and by its button


@pytest.fixture(params=["keys", "buttons"])
def do(request):
    """Gives a command by its key or by its button, and waits for what it does."""

    def given(window: Driver, key: str, button: str, condition) -> None:
        if request.param == "keys":
            window.press(key, condition)
        else:
            window.click(button)
            window.wait(condition)

    return given


def test_time_stands_still_goes_one_step_and_goes_on(flat, do):
    running(flat, 0.1)
    do(flat, "space", "pause", lambda state: state["paused"])
    assert any(name.startswith("text   residual") for name in flat.state["places"]), "indented below the pressure"
    flat.wait(lambda state: not state["stepping"])
    before, stood = arrays(flat), flat.state
    now = flat.frames(10)
    assert (now["time"], now["steps"]) == (stood["time"], stood["steps"])
    assert same(arrays(flat), before), "nothing moves"
    do(flat, "n", "step", lambda state: state["steps"] > stood["steps"])
    now = flat.frames(10)
    assert now["paused"] and now["steps"] == stood["steps"] + 1 and now["time"] > stood["time"]
    assert not same(arrays(flat), before)
    do(flat, "space", "pause", lambda state: not state["paused"])
    flat.wait(lambda state: state["steps"] > stood["steps"] + 3)
    do(flat, "n", "step", lambda state: state["paused"])


def test_reset_and_clear(flat, do):
    running(flat, 0.3)
    flat.pause()
    smoke, velocity = arrays(flat, "smoke", "velocity")
    assert smoke.max() > 0.1 and np.abs(velocity).max() > 0.01
    pictures = flat.state["pictures"]
    do(flat, "c", "clear", lambda state: state["pictures"] > pictures)
    now = arrays(flat, "smoke", "velocity")
    assert now[0].max() == 0 and np.array_equal(now[1], velocity), "the flow stays"
    do(flat, "r", "reset", lambda state: state["steps"] == 0)
    assert flat.state["time"] == 0 and flat.state["paused"]
    smoke, velocity = arrays(flat, "smoke", "velocity")
    assert smoke.max() == 0 and np.abs(velocity).max() == 0


def test_a_screenshot_is_what_the_view_shows(flat, do):
    running(flat, 0.5)
    flat.pause()
    count = len(flat.state["written"])
    do(flat, "p", "screenshot", lambda state: len(state["written"]) > count)
    (picture,) = pictures_in(newest(flat, ".png"))
    assert flat.state["message"] == f"wrote {newest(flat, '.png').name}"
    flat.still()
    seen = flat.view()
    assert picture.shape == seen.shape
    assert np.abs(picture.astype(int) - seen).max() <= BYTE
    assert picture.std() > 5, "and something is there to be seen"


def test_a_saved_scene_is_the_scene_as_it_was_steered(flat, do):
    flat.fold("preset")
    flat.slide("live.push", 0.25, 0.9)
    count = len(flat.state["written"])
    do(flat, "s", "save", lambda state: len(state["written"]) > count)
    scene = tf.Scene.load(newest(flat, ".toml"))
    assert scene == tf.Scene.from_dict(flat.state["scene"])
    # 0.9 of a slider from 0 to 4, give or take the pixels of its knob.
    assert 3.4 < scene.live.push < 3.8 and scene.domain.resolution == 24


def test_finer_and_coarser_keep_time_and_smoke(flat, do):
    running(flat, 0.5)
    flat.pause()
    at, amount = flat.state["time"], flat.array("smoke").mean()
    do(flat, "f", "finer", lambda state: state["scene"]["domain"]["resolution"] == 32)
    smoke = flat.array("smoke")
    assert smoke.shape == (24, 32) and flat.state["time"] == at
    # Values are interpolated, not moved: of a source two cells wide some per cent come or go.
    assert smoke.mean() == pytest.approx(amount, rel=0.15)
    flat.still()
    assert flat.view().std() > 5
    do(flat, "g", "coarser", lambda state: state["scene"]["domain"]["resolution"] == 24)
    smoke = flat.array("smoke")
    assert smoke.shape == (18, 24) and flat.state["time"] == at and smoke.mean() == pytest.approx(amount, rel=0.15)
    steps = flat.state["steps"]
    flat.press("space", lambda state: state["steps"] > steps + 2 and not state["failed"])


def test_both_grids_side_by_side(flat, do):
    """By a click or a key: two halves, each with its label; a drag stays in the half that it began in."""
    running(flat, 0.5)
    flat.pause()
    at, alone = flat.state["time"], flat.array("smoke")
    do(flat, "b", "compare", lambda state: state["scene"]["look"]["compare"])
    assert flat.state["time"] == at and same([flat.array("smoke"), flat.array("smoke of other")], [alone, alone])
    flat.press("space", lambda state: state["time"] > at + 0.5)
    flat.pause()
    flat.still()
    seen, half = flat.view(), flat.state["pane_width"]
    left, width = flat.state["viewport"]
    assert half == (width - 2) // 2
    for pane in (seen[:, :half], seen[:, width - half :]):
        assert (pane[:120] >= 244).all(axis=-1).sum() > 500, "letters"
        assert len(np.unique(pane[300:].reshape(-1, 3), axis=0)) > 100, "and a plume"
    between = seen[:, half : width - half].astype(int)
    assert np.abs(between - between[0, 0]).max() <= BYTE, "a line between"
    assert differing(seen[300:, :half], seen[300:, width - half :]) > 0.001, "each has its own"
    assert any("collocated" in name for name in flat.state["places"]), "the panel names both"
    # From the right half, beyond whose left edge the pointer goes: nothing jumps across the box.
    flat.press("r", lambda state: state["steps"] == 0)
    flat.still()
    height = flat.state["height"]
    column = width - half
    flat.drag((left + column + 0.5 * half, 0.4 * height), (left + column - 40, 0.4 * height))
    smoke = flat.array("smoke")
    np.testing.assert_array_equal(smoke, flat.array("smoke of other"))
    # The box of 1.5 m x 2 m is as wide as the half.
    dx, middle = 2.0 / 24, np.array([0.75, 1.0 + (0.5 - 0.4) * height / half * 1.5])
    i, j = (middle // dx).astype(int)
    assert smoke[i, j] > 0.9, "at the pointer"
    assert smoke[i + 4 :].max() == 0, "and not to the right of it"
    do(flat, "b", "compare", lambda state: not state["scene"]["look"]["compare"])
    np.testing.assert_array_equal(flat.array("smoke"), smoke)
    flat.still()
    assert flat.state["pane_width"] == width


def test_a_recording_lasts_as_long_as_it_took_and_plays(flat, do):
    asked = flat.state["clock"]
    do(flat, "o", "record", lambda state: state["recording"])
    begun, steps = flat.state["clock"], flat.state["steps"]
    flat.wait(lambda state: state["clock"] > begun + 2.0 and state["steps"] > steps + 5)
    ending = flat.state["clock"]
    do(flat, "o", "record", lambda state: not state["recording"])
    path = newest(flat, ".mp4")
    # It began and ended somewhere between a press and what was seen of it, give or take a picture.
    assert ending - begun - 1 / 30 <= seconds_of(path) <= flat.state["clock"] - asked + 1 / 30
    pictures = pictures_in(path)
    left, width = flat.state["viewport"]
    assert pictures[0].shape == (flat.state["height"] // 2 * 2, width // 2 * 2, 3)
    assert len(pictures) == pytest.approx(30 * seconds_of(path), abs=1)
    assert differing(pictures[0], pictures[-1]) > 0.001, "it moves"
    assert all(picture.mean() > 0.5 * pictures[0].mean() for picture in pictures), "none is black"
    assert left > 0
    steps = flat.state["steps"]
    flat.wait(lambda state: state["steps"] > steps)


def test_a_slow_hand_on_the_button_ends_a_recording(flat):
    """Its text changes every second, also while it is held down."""
    flat.press("o", lambda state: state["recording"])
    left, top, width, height = flat.place("record")
    flat.move(left + 40, top + height / 2)
    flat.frames()
    flat.xdotool("mousedown", 1)
    begun = flat.frames()["clock"]
    flat.wait(lambda state: state["clock"] > begun + 1.5)
    flat.xdotool("mouseup", 1)
    flat.wait(lambda state: not state["recording"])
    assert width > 40 and seconds_of(newest(flat, ".mp4")) > 1.4


def look_at_all_views(window: Driver, show) -> None:
    """Each has something of its own to show, and of a paused flow always the same."""
    running(window, 1.0)
    window.pause()
    seen = {}
    for view in ("slice", "sheets", "arrows", "tracers", "volume"):
        show(view, lambda state, view=view: state["scene"]["look"]["view"] == view)
        window.still()
        seen[view] = window.view()
        assert len(np.unique(seen[view].reshape(-1, 3), axis=0)) > 100, f"{view} is blank"
        window.frames(5)
        np.testing.assert_array_equal(window.view(), seen[view], err_msg=f"{view} flickers")
    for one in seen:
        for two in seen:
            assert one == two or differing(seen[one], seen[two]) > 0.01, (one, two)


def test_every_view_of_2d_by_its_key(flat):
    look_at_all_views(flat, lambda view, shown: flat.press("v", shown))


def test_quantity_and_colours_follow_their_keys(flat):
    running(flat, 0.5)
    flat.pause()
    flat.press("v", lambda state: state["scene"]["look"]["view"] == "slice")
    for key, name in [("q", "quantity"), ("m", "colour_map")]:
        flat.still()
        picture, before = flat.view(), flat.state["scene"]["look"][name]
        flat.press(key, lambda state, name=name, before=before: state["scene"]["look"][name] != before)
        flat.still()
        # The plume takes some per cent of the view.
        assert differing(flat.view(), picture) > 0.01


# The panel


@pytest.fixture
def tall(flat):
    """The window on a 2D scene, as tall as a long section of the panel."""

    def resize(height: int) -> None:
        flat.xdotool("windowsize", flat.window, 1240, height)
        flat.wait(lambda state: (state["width"], state["height"]) == (1240, height))
        flat.frames(3)

    resize(960)
    yield flat
    resize(720)


def test_the_other_widgets(tall):
    """A check box, a colour, a choice, a whole number, and a value that may be left out."""
    flat = tall
    flat.fold("preset", "live")
    flat.click("fluid.gravity given")
    assert flat.frames()["scene"]["fluid"]["gravity"] == [0.0, -9.81]
    flat.click("fluid.gravity given")
    assert flat.frames()["scene"]["fluid"]["gravity"] is None
    flat.fold("fluid", "look")
    flat.click("look.legend")
    assert flat.frames()["scene"]["look"]["legend"] is False
    flat.click("look.colour_map")
    assert flat.frames()["scene"]["look"]["colour_map"] == "magma"
    flat.pause()
    picture = flat.view()
    before = tf.preset("plume2d").look.background_top
    flat.click("look.background_top")
    flat.slide("look.background_top red", 0.2, 0.8)
    colour = flat.frames()["scene"]["look"]["background_top"]
    # 0.8 of 255 is 0.6 of the light; give or take the pixels of the knob.
    assert 0.5 < colour[0] < 0.7 and colour[1:] == list(before[1:])
    flat.still()
    # At the left: by now the plume may have reached the upper edge.
    assert flat.view()[5, :8, 0].mean() > picture[5, :8, 0].mean() + 20, "the upper edge becomes redder"
    # The letters below the button are in the colour, not in that of the light; rounded.
    left, top, _, height = flat.place("look.background_top")
    swatch = flat.pixels()[top + height : top + height + 17, left : left + 100]
    shown = 255 * np.array(shown_colour(colour, flat.state["scene"]["look"]["exposure"]))
    assert (np.abs(swatch - shown).max(axis=-1) <= 1).sum() > 100
    flat.click("look.background_top")
    flat.fold("look", "solver")
    flat.slide("solver.max_iterations", 0.4, 0.5)
    assert 200 < flat.frames()["scene"]["solver"]["max_iterations"] < 300, "the middle of a slider from 1 to 500"


def test_a_number_is_typed_and_its_letters_are_no_commands(flat):
    flat.fold("preset")
    left, top, width, height = flat.place("live.paint")
    with flat.held("ctrl"):
        flat.drag((left + width / 2, top + height / 2))
    steps, written = flat.state["steps"], flat.state["written"]
    flat.key("3", "c", "n", "space", "p", "period", "5", "h")
    now = flat.frames(3)
    assert not now["paused"] and now["written"] == written and now["panels"] and now["steps"] > steps
    flat.key("Return")
    flat.wait(lambda state: state["scene"]["live"]["paint"] == 3.5)
    # From here on keys are commands again.
    flat.press("space", lambda state: state["paused"])
    with flat.held("ctrl"):
        flat.drag((left + width / 2, top + height / 2))
    flat.key("9", "Escape")
    assert flat.frames()["scene"]["live"]["paint"] == 3.5, "Escape leaves the number and not the window"
    flat.press("space", lambda state: not state["paused"])


def test_the_keyboard_belongs_to_a_slider_until_the_number_is_done(flat):
    """Either Ctrl; a click into the number, a turn of the camera, and Tab, which goes on to the next, do not end it."""
    flat.fold("preset")
    left, top, width, height = flat.place("live.paint")
    with flat.held("Control_R"):
        flat.drag((left + width / 2, top + height / 2))
    point = flat.view_point(0.5, 0.5)
    flat.drag(point, (point[0] + 20, point[1]), button=3)
    flat.drag((left + width / 2 + 4, top + height / 2))
    flat.key("ctrl+a")
    written, before = flat.state["written"], flat.state["scene"]["live"]
    flat.key("2", "space", "p")
    now = flat.frames()
    assert not now["paused"] and now["written"] == written and now["scene"]["live"]["paint"] == 2.0
    flat.key("Tab", "1", "space", "h", "p")
    now = flat.frames()
    assert now["panels"] and not now["paused"] and now["written"] == written
    assert now["scene"]["live"] == {**before, "paint": 2.0, "heat": 1.0}, "the next slider has the 1"
    flat.key("Return")
    flat.press("space", lambda state: state["paused"])


# The mouse in the view


def still_air(window: Driver) -> None:
    """A flow that has not begun."""
    window.press("space", lambda state: state["paused"])
    window.press("r", lambda state: state["steps"] == 0)
    window.still()


def test_a_drag_in_a_2d_view_leaves_smoke_and_velocity_where_the_pointer_is(flat):
    still_air(flat)
    points = [flat.view_point(u, 0.7) for u in (0.4, 0.5, 0.6)]
    flat.drag(*points)
    smoke, velocity = arrays(flat, "smoke", "velocity")
    dx = 2.0 / 24
    ends = [flat.under(*points[0]), flat.under(*points[-1])]
    # A pixel is 2 m / 720.
    np.testing.assert_allclose(middle_of(flat, smoke), 0.5 * (ends[0] + ends[1]), atol=0.1 * dx)
    row = round(ends[0][1] / dx - 0.5)
    columns = np.nonzero(smoke[:, row] > 0.5)[0]
    assert np.all(np.diff(columns) == 1), "one stroke without gaps"
    # Round ends of the pen's radius lie beyond both ends; a cell covered by less than half does not count.
    radius = 0.06 * 2.0
    assert columns[0] * dx == pytest.approx(ends[0][0] - radius, abs=dx)
    assert (columns[-1] + 1) * dx == pytest.approx(ends[1][0] + radius, abs=dx)
    assert velocity[0][:, row].max() > 0.1 and velocity[0].min() > -0.01, "to the right, as the pointer went"


def test_a_jump_of_the_pointer_leaves_one_stroke(flat):
    still_air(flat)
    ends = [flat.view_point(*place) for place in ((0.25, 0.2), (0.7, 0.85))]
    flat.drag(*ends)
    smoke, dx = flat.array("smoke"), 2.0 / 24
    start, end = flat.under(*ends[0]), flat.under(*ends[1])
    for part in np.linspace(0, 1, 40):
        i, j = ((start + part * (end - start)) // dx).astype(int)
        assert smoke[i, j] > 0.9, f"a gap at {part:.2f} of the way"
    # Half of the area is a strip of two radii, the rest its round ends.
    radius = 0.06 * 2.0
    area = 2 * radius * np.hypot(*(end - start)) + np.pi * radius**2
    assert smoke.sum() * dx**2 == pytest.approx(area, rel=0.1)


def test_a_quick_click_leaves_a_dab(flat):
    """Pressed and let go between two frames."""
    still_air(flat)
    for place in ((0.35, 0.3), (0.6, 0.75)):
        point = flat.view_point(*place)
        before = flat.array("smoke")
        flat.move(*point)
        flat.frames(3)
        flat.xdotool("click", 1)
        flat.frames(4)
        added = flat.array("smoke") - before
        assert added.max() > 0.5
        np.testing.assert_allclose(middle_of(flat, added), flat.under(*point), atol=0.1 * 2.0 / 24)
    assert np.abs(flat.array("velocity")).max() == 0, "a pointer that rests pushes nothing"


def test_what_begins_on_a_panel_stays_out_of_the_flow(flat):
    """Each press on a panel: on a slider, on an empty place, on a line of text, on a title bar."""
    still_air(flat)
    flat.fold("preset")
    before = arrays(flat)
    radius = flat.state["scene"]["live"]["radius"]
    left, top, width, height = flat.place("live.radius")
    flat.drag((left + 0.3 * width, top + height / 2), flat.view_point(0.5, 0.5), flat.view_point(0.6, 0.7))
    assert flat.state["scene"]["live"]["radius"] != radius, "the slider follows"
    assert same(arrays(flat), before)
    for x, y in [(230, 300), (1240 - 30, 690), (1240 - 30, 300)]:
        flat.drag((x, y))
    assert same(arrays(flat), before)
    flat.drag(flat.view_point(0.5, 0.5))
    assert not same(arrays(flat), before), "the next press may be in the view"


# What may happen to a window


def test_a_flow_that_blows_up_says_so_and_begins_again(flat):
    running(flat, 0.1)
    flat.ask("nan")
    flat.wait(lambda state: state["failed"])
    assert "velocity" in flat.state["message"] and "Reset" in flat.state["message"]
    assert any("stopped" in name for name in flat.frames(5)["places"]), "the panel has the message"
    steps = flat.state["steps"]
    flat.click("step")
    assert flat.frames(3)["steps"] == steps, "no step from there"
    flat.drag(flat.view_point(0.4, 0.5), flat.view_point(0.6, 0.5))
    flat.press("r", lambda state: not state["failed"])
    flat.press("space", lambda state: state["steps"] > 2)
    assert all(np.isfinite(array).all() for array in arrays(flat))
    flat.pause()
    assert flat.view().std() > 5


def test_what_happens_while_the_panels_are_away_is_said(flat):
    """In a small panel of its own, through which nothing is painted, and which goes with what it says."""
    still_air(flat)
    flat.press("h", lambda state: not state["panels"])
    assert flat.frames(5)["places"] == {}
    flat.press("p", lambda state: state["places"])
    assert any("wrote" in name for name in flat.state["places"])
    flat.ask("nan")
    flat.press("space", lambda state: state["failed"])
    flat.wait(lambda state: any("stopped" in name for name in state["places"]))
    left, top, width, height = flat.frames(5)["rectangles"]["message"]
    assert top + height == flat.state["height"] and title_at(flat, left, top)
    lines = flat.pixels()[round(top) + 25 : round(top + height), :width].astype(int)
    assert (np.abs(lines - [255, 140, 89]).max(axis=-1) <= 2).sum() > 200, "in the colour of a warning"
    flat.press("r", lambda state: not state["failed"] and not state["places"])
    flat.pause()
    before = flat.array("smoke")
    flat.press("p", lambda state: state["places"])
    # By its title bar over the box, and on by its text; to a pixel.
    left, top, width, height = flat.state["rectangles"]["message"]
    flat.drag((left + 150, top + 9), (left + 600, top - 191))
    flat.drag((left + 600, top - 200 + height - 12), (left + 650, top - 300 + height - 12))
    moved = flat.frames()["rectangles"]["message"]
    assert moved == pytest.approx([left + 500, top - 300, width, height], abs=1.5)
    assert title_at(flat, *moved[:2])
    np.testing.assert_array_equal(flat.array("smoke"), before)
    flat.drag((left + 600, top - 200 + height - 12))
    assert not np.array_equal(flat.array("smoke"), before), "what was below it belongs to the view again"
    flat.press("h", lambda state: state["panels"])


def test_a_window_of_another_size(flat):
    """It lives, the picture fills it, and the pointer hits what it points at; a recording goes on."""
    still_air(flat)
    flat.press("o", lambda state: state["recording"])
    recorded = flat.state["size"]
    try:
        for width, height in [(1000, 620), (1500, 900), (400, 300), (1240, 720)]:
            flat.xdotool("windowsize", flat.window, width, height)
            flat.wait(lambda state, size=(width, height): (state["width"], state["height"]) == size)
            flat.still()
            panels = [name for name, (x, *_) in flat.state["rectangles"].items() if x >= width]
            if width < 600:
                continue
            assert not panels, f"{panels} are out of sight"
            assert all(title_at(flat, x, y) for x, y, *_ in flat.state["rectangles"].values())
            point = flat.view_point(0.45, 0.6)
            before = flat.array("smoke")
            flat.drag(point)
            added = flat.array("smoke") - before
            np.testing.assert_allclose(middle_of(flat, added), flat.under(*point), atol=0.1 * 2.0 / 24)
            flat.press("r", lambda state: state["steps"] == 0)
            flat.still()
            # The slab, which fills the height, ends where it should: its edges are seen.
            seen = flat.view()
            assert seen[height // 2].std() > 1
    finally:
        flat.xdotool("windowsize", flat.window, 1240, 720)
        flat.wait(lambda state: (state["width"], state["height"]) == (1240, 720))
    flat.press("o", lambda state: not state["recording"])
    assert pictures_in(newest(flat, ".mp4"))[-1].shape == (recorded[1] // 2 * 2, recorded[0] // 2 * 2, 3)


KINDS = ["karman", "ink", "fire", "obstacles", "dam2d", "splash"]
"""Presets with all that a picture may be of: slices, dyes, glow, solids, liquids. The session goes through every preset
in ``test_soak.py``; PRESETS=all has the window do so too."""


@pytest.mark.parametrize(
    "names",
    [["plume", "dye2d"], preset_names() if os.environ.get("PRESETS") == "all" else KINDS],
    ids=["some", "of every kind"],
)
def test_presets_by_their_buttons(flat, names):
    """From 2D to 3D and back, each as it is; the last one is where the other tests go on from."""
    for name in [*(name for name in names if name != "plume2d"), "plume2d"]:
        flat.click(f"preset {name}")
        flat.wait(lambda state, name=name: state["scene"]["name"] == name and state["steps"] >= 1)
        assert len(flat.state["scene"]["domain"]["size"]) == tf.preset(name).dim
        pictures = flat.state["pictures"]
        flat.wait(lambda state, pictures=pictures: state["pictures"] > pictures and not state["failed"])
        assert len(np.unique(flat.view()[::4, ::4].reshape(-1, 3), axis=0)) > 10, name
        assert flat.state["message"] == ""


# Three dimensions, and panels that go away


def test_every_view_of_3d_by_its_button(solid):
    def show(view, shown) -> None:
        solid.click(f"view {view}")
        solid.wait(shown)

    look_at_all_views(solid, show)


@pytest.mark.parametrize("key", ["h", "Tab"])
def test_hidden_panels_leave_their_place_to_the_view(solid, key):
    """Also to the pointer: what is dragged there is the view."""
    solid.pause()
    height, width = solid.state["height"], solid.state["width"]
    solid.press(key, lambda state: not state["panels"])
    assert solid.state["viewport"] == [0, width]
    solid.still()
    assert solid.state["size"] == [width, height] and solid.state["detail"] == 1.0
    # The background of the scene at the edges, where panels were; each is darker than that.
    seen = solid.view()
    assert seen.shape[1] == width
    assert np.abs(seen[:, 20].astype(int) - seen[:, width - 20]).max() <= 2 * BYTE
    turned = solid.state["scene"]["camera"]
    solid.drag((60, 300), (160, 300), button=3)
    assert solid.state["scene"]["camera"] != turned
    solid.press(key, lambda state: state["panels"])
    assert solid.state["viewport"][0] > 0
    solid.still()
    # Tab also walks through the widgets of Dear ImGui: no slider may have become a place to type in.
    scene = solid.state["scene"]
    solid.key("5", "Return")
    assert solid.frames()["scene"] == scene
    solid.press("space", lambda state: not state["paused"])


@pytest.mark.parametrize("view", ["volume", "slice"])
def test_a_drag_in_3d_is_where_the_pointer_is(solid, view):
    """On the plane through the middle of the box, or on the slice."""
    still_air(solid)
    if view == "slice":
        solid.press("v", lambda state: state["scene"]["look"]["view"] == "slice")
        solid.still()
    solid.fold("preset")
    solid.slide("live.radius", 0.3, 0.7)
    assert solid.frames()["scene"]["live"]["radius"] > 0.12
    dx = 4.0 / 16
    for place in ((0.42, 0.6), (0.6, 0.4)):
        point = solid.view_point(*place)
        before = solid.array("smoke")
        solid.drag(point)
        added = solid.array("smoke") - before
        np.testing.assert_allclose(middle_of(solid, added), solid.under(*point), atol=0.2 * dx)
    solid.press("r", lambda state: state["steps"] == 0)
    solid.frames()
    points = [solid.view_point(*place) for place in ((0.45, 0.5), (0.55, 0.5))]
    solid.drag(*points)
    start, end = solid.under(*points[0]), solid.under(*points[1])
    i, j, k = (0.5 * (start + end) // dx).astype(int)
    velocity = solid.array("velocity")[:, i, j, k]
    assert velocity @ (end - start) > 0.95 * np.linalg.norm(velocity) * np.linalg.norm(end - start)
    if view == "slice":
        assert start[2] == end[2] == pytest.approx(2.0)


def title_at(window: Driver, left: float, top: float) -> bool:
    """Whether a panel's title bar begins at a pixel: its colour reaches to the right of it, the panel's lies below."""
    pixels = window.pixels().astype(int)
    x, y = round(left), round(top)
    bar, below = pixels[y + 4, x + 100 : x + 180], pixels[y + 23, x + 100 : x + 180]
    return bool(np.ptp(bar, axis=0).max() < 3 and np.abs(bar.mean(0) - below.mean(0)).max() > 3)


@pytest.mark.parametrize("grip", ["title bar", "line of text", "empty place"])
def test_a_panel_dragged_away_takes_its_place_along(solid, grip):
    """What is below its new place is its own, what was below the old one belongs to the view."""
    window = solid
    still_air(window)
    before = arrays(window)
    # Dear ImGui moves a panel not only by its title bar.
    left, top, width, height = window.state["rectangles"]["run and view"]
    at = {"title bar": (left + 150, top + 9), "empty place": (left + 150, top + height - 50)}
    line = window.place("text VIEW  (V)")
    hold = at.get(grip, (line[0] + 10, line[1] + 6))
    steps = [(hold[0] - 150 * k, hold[1] + 10 * k) for k in (0, 1, 2)]
    # The pointer comes from afar and presses between two frames.
    corner = window.corner
    window.xdotool("mousemove", *(round(c + p) for c, p in zip(corner, steps[0], strict=True)), "mousedown", 1)
    window.frames()
    for step in steps[1:]:
        window.move(*step)
        window.frames()
    window.xdotool("mouseup", 1)
    moved = window.frames()["rectangles"]["run and view"]
    # To a pixel: the pointer is at whole ones.
    assert moved == pytest.approx([left - 300, top + 20, width, height], abs=1.5)
    assert title_at(window, moved[0], moved[1])
    assert same(arrays(window), before)
    # A press on the new place, where the view is below it.
    window.drag((moved[0] + 150, moved[1] + height - 60))
    assert same(arrays(window), before)
    # The right button does not take a panel along, nor does it reach through one.
    camera = window.state["scene"]["camera"]
    window.drag((moved[0] + 100, moved[1] + 9), (moved[0] + 60, moved[1] + 60), button=3)
    # Its file, which GGUI writes a while later, has whole pixels.
    assert window.frames()["rectangles"]["run and view"] == pytest.approx(moved, abs=1e-3)
    window.drag((moved[0] + 150, 650), (moved[0] + 100, 650), button=3)
    assert window.frames()["scene"]["camera"] == camera
    # The old place.
    window.drag((left + 120, 300), (left + 160, 330), button=3)
    assert window.frames()["scene"]["camera"] != camera
    # A button at its new place.
    window.click("view slice")
    window.wait(lambda state: state["scene"]["look"]["view"] == "slice")
    window.drag(*reversed(steps))
    assert window.frames()["rectangles"]["run and view"] == pytest.approx([left, top, width, height], abs=1.5)
    assert title_at(window, left, top)


def test_a_folded_panel_leaves_its_place_once_that_is_known(solid):
    """A click on its arrow folds it; that is learnt from what Dear ImGui saves, five seconds later."""
    still_air(solid)
    left, top, width, height = solid.state["rectangles"]["run and view"]
    arrow = (left + 12, top + 9)
    solid.drag(arrow)
    solid.wait(lambda state: state["rectangles"]["run and view"][3] < 30)
    # Dear ImGui saves whole pixels.
    assert solid.state["rectangles"]["run and view"][:3] == pytest.approx([left, top, width], abs=1.0)
    camera = solid.state["scene"]["camera"]
    solid.drag((left + 100, 300), (left + 60, 320), button=3)
    assert solid.frames()["scene"]["camera"] != camera
    solid.drag(arrow)
    solid.wait(lambda state: abs(state["rectangles"]["run and view"][3] - height) <= 1.0)


def test_the_other_buttons_and_the_keys_move_the_camera(solid):
    running(solid, 1.0)
    solid.pause()
    before, steps = arrays(solid), solid.state["steps"]

    def changes(what) -> set[str]:
        solid.still()
        old, picture = solid.state["scene"]["camera"], solid.view()
        what()
        solid.still()
        new = solid.frames()["scene"]["camera"]
        names = {name for name in old if old[name] != new[name]}
        assert differing(solid.view(), picture) > 0.005, names
        return names

    middle, aside, up = (solid.view_point(*place) for place in ((0.5, 0.5), (0.6, 0.5), (0.5, 0.6)))
    assert changes(lambda: solid.drag(middle, aside, button=3)) == {"azimuth"}
    assert changes(lambda: solid.drag(middle, up, button=3)) == {"elevation"}
    assert changes(lambda: solid.drag(middle, aside, button=2)) == {"center"}
    with solid.held("shift"):
        assert changes(lambda: solid.drag(middle, up, button=3)) == {"center"}
    distance = solid.state["scene"]["camera"]["distance"]
    with solid.held("ctrl"):
        assert changes(lambda: solid.drag(middle, up, button=3)) == {"distance"}
    assert solid.state["scene"]["camera"]["distance"] < distance, "up comes nearer"

    def hold(key: str) -> None:
        with solid.held(key):
            solid.frames(3)

    for keys, name in [(("Left", "Right"), "azimuth"), (("Up", "Down"), "elevation"), (("z", "x"), "distance")]:
        values = [solid.state["scene"]["camera"][name]]
        for key in keys:
            assert changes(lambda key=key: hold(key)) == {name}
            values.append(solid.state["scene"]["camera"][name])
        assert (values[1] - values[0]) * (values[2] - values[1]) < 0, f"{keys} go opposite ways"
    assert same(arrays(solid), before) and solid.state["steps"] == steps, "the flow knows nothing of it"


def test_while_it_runs_and_turns_no_frame_is_black(solid):
    running(solid, 0.5)
    light, steps = solid.view().mean(), solid.state["steps"]
    solid.move(*solid.view_point(0.3, 0.5))
    solid.frames()
    solid.xdotool("mousedown", 3)
    try:
        for k in range(20):
            solid.move(*solid.view_point(0.3 + 0.02 * k, 0.5))
            solid.frames(1)
            seen = solid.view()
            # The cube of smoke turns about its middle: brightness stays about as it was.
            assert seen.mean() > 0.6 * light, f"frame {k}"
            assert len(np.unique(seen[::4, ::4].reshape(-1, 3), axis=0)) > 30
    finally:
        solid.xdotool("mouseup", 3)
    assert solid.frames()["steps"] > steps


# Windows of their own


def test_a_slider_dragged_by_its_pixels_changes_the_parameter_and_the_fluid(desk):
    window = desk.open(*FLAT, "fluid.cooling=0.0", "sources.0.end=0.4")
    assert window.state["scene"]["fluid"]["smoke_dissipation"] == 0.0
    window.wait(lambda state: state["time"] > 0.45)
    window.fold("preset", "live")
    window.slide("fluid.smoke_dissipation", 0.02, 0.98)
    assert 2.7 < window.frames()["scene"]["fluid"]["smoke_dissipation"] <= 3.0, "the right end of a slider from 0 to 3"
    window.slide("fluid.smoke_dissipation", 0.98, 0.5)
    # The knob is 10 of 188 pixels wide.
    rate = window.frames()["scene"]["fluid"]["smoke_dissipation"]
    assert 1.4 < rate < 1.6
    window.pause()
    begun, at = window.array("smoke").sum(), window.state["time"]
    window.press("space", lambda state: state["time"] > at + 0.7)
    window.pause()
    # Beside the fading, to a third, only the advection changes the sum, by up to a quarter on so coarse a grid.
    expected = begun * np.exp(-rate * (window.state["time"] - at))
    assert window.array("smoke").sum() == pytest.approx(expected, rel=0.3)


def by_escape(window: Driver) -> None:
    window.xdotool("key", "Escape")


def by_its_button(window: Driver) -> None:
    """The message that a window manager sends when its button is pressed."""

    class Message(ctypes.Structure):
        _fields_ = [
            ("type", ctypes.c_int), ("serial", ctypes.c_ulong), ("send_event", ctypes.c_int), ("display", ctypes.c_void_p),
            ("window", ctypes.c_ulong), ("message_type", ctypes.c_ulong), ("format", ctypes.c_int),
            ("data", ctypes.c_long * 5), ("rest", ctypes.c_long * 24),
        ]  # fmt: skip

    x11 = ctypes.CDLL("libX11.so.6")
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XInternAtom.restype = ctypes.c_ulong
    connection = ctypes.c_void_p(x11.XOpenDisplay(window.display.encode()))
    assert connection
    protocols, delete = (x11.XInternAtom(connection, name, 0) for name in (b"WM_PROTOCOLS", b"WM_DELETE_WINDOW"))
    number, client_message = int(window.window), 33
    message = Message(client_message, 0, 1, connection, number, protocols, 32, (delete, 0, 0, 0, 0))
    assert x11.XSendEvent(connection, ctypes.c_ulong(number), 0, ctypes.c_long(0), ctypes.byref(message))
    x11.XFlush(connection)
    x11.XCloseDisplay(connection)


def by_the_keyboard_of_the_terminal(window: Driver) -> None:
    window.process.send_signal(signal.SIGINT)


def by_a_signal(window: Driver) -> None:
    window.process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize("end", [by_escape, by_its_button, by_the_keyboard_of_the_terminal, by_a_signal])
def test_the_end_leaves_a_whole_recording(desk, end):
    window = desk.open(*FLAT)
    window.press("o", lambda state: state["recording"])
    pictures = window.state["pictures"]
    window.wait(lambda state: state["pictures"] > pictures + 8)
    end(window)
    told = window.ended(status=143 if end is by_a_signal else 0)
    (path,) = window.folder.glob("plume2d_*.mp4")
    # What a signal ends says nothing more.
    assert end is by_a_signal or told["written"] == [str(path.resolve())]
    assert len(pictures_in(path)) >= 8
    assert [p.name for p in path.parent.iterdir() if p.suffix in (".mp4", ".ini") or p.name[0] == "."] == [path.name], (
        "nothing half, nothing of Dear ImGui"
    )


def test_a_slow_step_leaves_frames_between_its_parts(desk):
    """A step of a second and more: the camera turns meanwhile, and the pictures are those of the last whole step."""
    window = desk.open("plume", "domain.resolution=96")
    frames: list[int] = []
    window.xdotool("keydown", "Right")
    try:
        start = window.state["steps"]

        def followed(state) -> bool:
            if state["stepping"] and state["steps"] == start + 1:
                frames.append(state["pictures"])
            return state["steps"] >= start + 2

        window.wait(followed)
    finally:
        window.xdotool("keyup", "Right")
    # A step has some twenty parts; the shortest share a frame.
    assert len(frames) >= 4 and len(set(frames)) >= 3, frames
    assert window.view().std() > 3


def together(compiled: list) -> list:
    """Kernels that were compiled without a frame between them."""
    return [pair for pair in itertools.pairwise(compiled) if pair[0][1] >= pair[1][1]]


def test_the_start_is_seen_before_the_first_step_and_a_frame_before_each_kernel(desk):
    desk.close()
    window = desk.open(*FLAT)
    compiled = window.wait(lambda state: state["steps"] >= 2)["compiled"]
    assert together(compiled) == []
    of_a_step = {name for name, _, _, stepping, *_ in compiled if stepping}
    assert {"trace", "predict", "subtract_gradient"} <= of_a_step
    # A picture was on the screen before any of them.
    assert all(shown >= 1 for _, _, shown, stepping, *_ in compiled if stepping), compiled
    assert all(shown >= 1 for name, _, shown, *_ in compiled if name in of_a_step), compiled


def test_another_scene_is_compiled_while_the_old_one_goes_on(desk):
    desk.close()
    window = desk.open(*FLAT)
    known = len(window.wait(lambda state: state["steps"] >= 3)["compiled"])
    window.click("preset stable_fluids")
    window.wait(lambda state: state["scene"]["name"] == "stable_fluids" and state["steps"] >= 2, seconds=4 * SLOW)
    compiled = window.state["compiled"][known:]
    before = [steps for *_, scene, steps in compiled if scene == "plume2d"]
    assert len(before) > 10 and before[-1] > before[0], "the old flow went on"
    assert together(compiled) == []
    assert not any(stepping for *_, stepping, scene, _ in compiled if scene == "stable_fluids"), (
        "it begins with all it needs"
    )


def test_another_view_is_compiled_while_the_old_one_goes_on(desk):
    desk.close()
    window = desk.open(*FLAT)
    known = len(window.wait(lambda state: state["steps"] >= 3)["compiled"])
    window.click("view tracers")
    window.wait(lambda state: state["scene"]["look"]["view"] == "tracers", seconds=4 * SLOW)
    compiled = window.state["compiled"][known:]
    assert len(compiled) > 2
    assert together(compiled) == []
    assert compiled[-1][-1] > compiled[0][-1], "the flow went on"


def test_escape_ends_a_window_that_waits_for_kernels(desk):
    desk.close()
    window = desk.open(*FLAT)
    window.click("preset jets")
    known = len(window.state["compiled"])
    window.xdotool("key", "Escape")
    window.ended()
    assert len(window.state["compiled"]) <= known + 3, "it does not wait for the rest"


@pytest.mark.parametrize("arch", ["cpu", "vulkan"])
def test_the_command_opens_a_window_and_says_what_it_wrote(desk, tmp_path, arch):
    desk.close()
    environment = {**ENVIRONMENT, "DISPLAY": desk.name}
    process = subprocess.Popen(
        [sys.executable, "-m", "taichi_fluid", "demo", "plume2d", "--arch", arch, "--resolution", "24"],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip

    def tool(*words: str) -> subprocess.CompletedProcess:
        return subprocess.run(["xdotool", *words], env=environment, capture_output=True, text=True, timeout=600)

    def until(condition) -> None:
        end = time.monotonic() + SLOW
        while not condition():
            assert process.poll() is None and time.monotonic() < end, process.stderr.read() if process.stderr else ""
            time.sleep(0.05)

    try:
        tool("mousemove", "640", "60")
        until(lambda: tool("search", "--name", "taichi_fluid").returncode == 0)
        # The middle of the window, where the picture is.
        until(lambda: screen_pixels(desk.folder)[100:700, 400:900].std() > 3)
        tool("key", "p")
        until(lambda: list(tmp_path.glob("*.png")))
        tool("key", "Escape")
        out, errors = process.communicate(timeout=SLOW)
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode == 0, errors
    assert out.splitlines() == [str(tmp_path.resolve() / "plume2d_001.png")]
    assert f"plume2d, 18 x 24 cells on {arch}. Escape or the window's own button ends it." in errors
    assert os.listdir(tmp_path) == ["plume2d_001.png"]


def test_arrow_keys_with_shift_and_ctrl_and_the_way_back(solid):
    first = solid.frames()["scene"]["camera"]
    solid.move(*solid.view_point(0.02, 0.02))

    def hold(modifier: str, key: str) -> dict:
        solid.xdotool("keydown", modifier)
        solid.frames(2)
        solid.xdotool("keydown", key)
        solid.frames(4)
        solid.xdotool("keyup", key)
        solid.xdotool("keyup", modifier)
        return solid.frames(3)["scene"]["camera"]

    moved = hold("Shift_L", "Left")
    assert moved["center"] is not None
    assert (moved["azimuth"], moved["distance"]) == (first["azimuth"], first["distance"])
    nearer = hold("Control_L", "Up")
    assert nearer["distance"] < first["distance"]
    assert nearer["elevation"] == first["elevation"]
    solid.key("e")
    back = solid.frames()["scene"]["camera"]
    assert back["center"] is None
    assert back["distance"] == tf.preset("plume").camera.distance
