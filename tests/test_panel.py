"""The panels: every value of the scene by its slider, every button by its name, with a gui that writes down what it is given."""

import gc
import itertools
import os
import re
import weakref

import numpy as np
import pytest
from pydantic import Field
from scenes_for_tests import burner, scene

from taichi_fluid.scene import Fluid, Scene, preset, preset_names
from taichi_fluid.viewer.panel import CHANNELS, FONT, LETTER, NEXT, PADDING, Panel, Rows, next_choice
from taichi_fluid.viewer.parameters import OF_LIQUID, Kind, sections
from taichi_fluid.viewer.session import Session

WIDTH = 290
PRESETS = pytest.mark.parametrize("name", preset_names())


class FakeGui:
    """Writes down what it shows; answers what ``answers`` says for a widget, else what it was given, in f32.

    Attributes:
        shown: Name of each widget, in order, with what it was called with; a text has the name "".
    """

    def __init__(self, **answers):
        self.answers, self.shown = answers, []

    def _answer(self, kind, label, usual, *arguments):
        text, _, name = label.replace("###", "##").partition("##")
        self.shown.append((kind, name, text, *arguments))
        return self.answers.get(name, usual)

    def text(self, text, color=None):
        assert "##" not in text, "Dear ImGui would cut it off there"
        self.shown.append(("text", "", text, color))

    def button(self, text):
        return self._answer("button", text, False)

    def checkbox(self, text, old):
        assert isinstance(old, bool)
        return self._answer("checkbox", text, old, old)

    def slider_float(self, text, old, low, high):
        assert low <= high
        return float(np.float32(self._answer("slider", text, old, old, low, high)))

    def slider_int(self, text, old, low, high):
        assert all(type(value) is int for value in (old, low, high))
        return self._answer("slider_int", text, old, old, low, high)

    def names(self, kind=None):
        return [name for what, name, *_ in self.shown if name and kind in (None, what)]

    def texts(self):
        return [text for what, _, text, *_ in self.shown if what == "text"]

    def lines(self):
        return " ".join(self.texts())


class Desk:
    """Stands in for a session where nothing runs: a scene that is steered."""

    def __init__(self, scene: Scene):
        self.scene, self.simulation, self.sets = scene, object(), []

    def set(self, changes):
        self.sets.append(changes)
        self.scene = self.scene.with_values(changes)

    def other(self, name):
        return lambda: self.sets.append(name)


def steer(panel: Panel, held=False, **answers):
    """One frame of the left panel, and the actions it asks for done."""
    gui = FakeGui(**answers)
    rows = Rows(gui, WIDTH, held)
    actions = panel.steer(rows)
    for action in actions:
        action()
    return gui, rows, actions


def opened_panel(session) -> Panel:
    """A panel with every section open."""
    panel = Panel(session)
    # Those that appear when another is open do not exist here: sections are tables of the scene.
    titles = ["preset"] + [section.title for section in sections(session.scene)]
    steer(panel, **{f"section {title}": True for title in titles})
    steer(panel, **{p.name: True for p in shown_parameters(session.scene) if p.kind is Kind.COLOUR})
    return panel


def numbers_of(gui, name: str) -> tuple[float, float, float]:
    """What a slider shows, and its ends."""
    ((_, _, _, *numbers),) = [row for row in gui.shown if row[1] == name]
    return tuple(numbers)


def shown_parameters(scene: Scene):
    return [p for section in sections(scene) for p in section.parameters]


# Rows


def assert_apart(rows: Rows, width: int):
    """One below the other, inside the panel."""
    places = sorted(rows.places.values(), key=lambda row: row.top)
    for upper, lower in itertools.pairwise(places):
        assert upper.top + upper.height <= lower.top
    assert all(row.left >= 0 and row.width > 0 and row.height > 0 for row in places)
    assert places[-1].top + places[-1].height <= rows.height
    for name, row in rows.places.items():
        if not name.startswith("preset"):
            assert row.left + row.width <= width, name


@PRESETS
def test_rows_stand_one_below_the_other(name):
    panel = opened_panel(Desk(preset(name)))
    gui, rows, _ = steer(panel)
    assert_apart(rows, WIDTH)
    assert len(gui.shown) > 60
    widgets = [name for name in rows.places if not name.startswith("text ")]
    assert widgets == gui.names(), "each is where a mouse looks for it"
    tops = [rows.places[name].top for name in widgets]
    assert tops == sorted(tops), "and in the order in which it was shown"


@PRESETS
def test_each_widget_has_a_name_of_its_own(name):
    """Two of one name would be one to Dear ImGui: the second does not answer."""
    gui, _, _ = steer(opened_panel(Desk(preset(name))))
    assert len(set(gui.names())) == len(gui.names())


@pytest.mark.parametrize("width", [120, 200, 290])
def test_a_long_line_is_broken_and_loses_no_word(width):
    text = "stopped: velocity is not finite after step 12 (t = 0.4 s): a smaller time step (solver.cfl) may help."
    gui = FakeGui()
    rows = Rows(gui, width)
    rows.text(text)
    assert gui.lines() == text
    assert all(len(line) * LETTER <= width - 2 * PADDING for line in gui.texts())
    assert len(rows.places) == len(gui.texts())
    assert rows.height >= len(gui.texts()) * FONT


def test_a_word_that_is_longer_than_a_line_is_a_line():
    gui = FakeGui()
    Rows(gui, 60).text("to " + 40 * "x" + " and on")
    assert gui.lines() == "to " + 40 * "x" + " and on"


# Steering


@PRESETS
def test_an_untouched_panel_changes_nothing(name):
    """Sliders work in f32: 0.1 comes back as 0.10000000149."""
    desk = Desk(preset(name))
    panel = opened_panel(desk)
    for _ in range(3):
        _, _, actions = steer(panel)
        assert actions == []
    assert desk.sets == []


@PRESETS
def test_every_parameter_is_there(name):
    desk = Desk(preset(name))
    gui, _, _ = steer(opened_panel(desk))
    kinds = {
        Kind.FLOAT: "slider", Kind.INT: "slider_int", Kind.BOOL: "checkbox", Kind.OPTIONAL: "checkbox",
        Kind.CHOICE: "button", Kind.COLOUR: "button",
    }  # fmt: skip
    for p in shown_parameters(desk.scene):
        assert p.name in gui.names(kinds[p.kind]), p.name
        if p.kind is Kind.COLOUR:
            assert all(f"{p.name} {channel}" in gui.names("slider_int") for channel in CHANNELS)
    labels = " ".join(text for _, _, text, *_ in gui.shown)
    of_gas = desk.scene.liquid is None
    for field in Fluid.model_fields if of_gas else OF_LIQUID["fluid"]:
        assert field.replace("_", " ") in labels
    assert ("confinement" in labels) == of_gas, "what means nothing is not there"


class MoreFluid(Fluid):
    """A fluid with another value."""

    sparkle: float = Field(0.5, ge=0, le=3, json_schema_extra={"unit": "1/m", "slider": [0, 2], "of_box": False})


class MoreScene(Scene):
    """A scene with that fluid."""

    fluid: MoreFluid = MoreFluid()


def test_a_new_value_of_the_scene_has_its_slider():
    desk = Desk(MoreScene(name="more"))
    gui, _, _ = steer(opened_panel(desk))
    assert "fluid.sparkle" in gui.names("slider")
    assert "sparkle  1/m" in gui.texts()
    changes = []
    desk.set = changes.append
    steer(opened_panel(desk), **{"fluid.sparkle": 1.5})
    assert {"fluid.sparkle": 1.5} in changes


@PRESETS
def test_a_slider_gives_what_it_shows(name):
    """From a scene as it was each time; the numbers on the slider times its factor, or ten to their power.

    Each goes to one of its ends or between them, in another preset elsewhere.
    """
    before = preset(name)
    desk = Desk(before)
    panel = opened_panel(desk)
    gui, _, _ = steer(panel)
    moved, parameters = 0, {p.name: p for p in shown_parameters(before)}
    parts = itertools.islice(itertools.cycle((0.0, 0.3, 1.0)), len(name) % 3, None)
    for kind, widget, _, *numbers in list(gui.shown):
        if kind != "slider":
            continue
        desk.scene, desk.sets, part = before, [], next(parts)
        _, low, high = numbers
        _, _, actions = steer(panel, **{widget: low + part * (high - low)})
        p = parameters[widget]
        wanted = p.low * (p.high / p.low) ** part if p.logarithmic else p.low + part * (p.high - p.low)
        if wanted == pytest.approx(p.value, rel=1e-6):  # the same in f32
            assert actions == []
            continue
        assert len(actions) == 1, widget
        moved += 1
        (q,) = (q for q in shown_parameters(desk.scene) if q.name == widget)
        # f32 sliders: 1e-6 of the range; along the logarithm 1e-6 of its half a dozen decades; and 6 digits.
        assert q.value == pytest.approx(wanted, abs=2e-6 * (p.high - p.low), rel=2e-5 if p.logarithmic else 1e-6)
        if part in (0.0, 1.0) and not p.logarithmic:
            end = p.low if part == 0.0 else p.high
            assert q.value == float(f"{end:.6g}"), "the end itself"
    assert moved > 10


@PRESETS
def test_check_boxes_and_whole_numbers(name):
    before = preset(name)
    desk = Desk(before)
    panel = opened_panel(desk)
    for p in shown_parameters(before):
        if p.kind in (Kind.CHOICE, Kind.FLOAT, Kind.COLOUR):
            continue
        if p.key == "look.compare" and before.solids:  # refused; a session says so
            continue
        new = int(p.high) if p.kind is Kind.INT else not p.value
        if new == p.value:
            continue
        desk.scene, desk.sets = before, []
        steer(panel, **{p.name: new})
        assert len(desk.sets) == 1, p.name
        (q,) = (q for q in shown_parameters(desk.scene) if q.name == p.name)
        assert q.value == new


# Colours


def test_every_colour_of_a_screen_is_one_of_the_sliders():
    """What is set to a number shows that number: a slider that is held does not creep. Light is linear: 188 is half of it."""
    light = {}
    for code in range(256):
        before = (1.0, 0.3, 0.0)
        light[code] = Rows(FakeGui(**{"c green": code}), WIDTH).colour("c", before) or before
        gui = FakeGui()
        assert Rows(gui, WIDTH).colour("c", light[code]) is None, "untouched it stays"
        assert numbers_of(gui, "c green") == (code, 0, 255)
    assert light[0] == (1.0, 0.0, 0.0) and light[255] == (1.0, 1.0, 0.0)
    # The step from 187 to 189 is 0.01 of the light.
    assert light[188][1] == pytest.approx(0.5, abs=0.005)


def test_a_colour_says_what_screens_call_it_and_opens_its_sliders():
    desk = Desk(preset("plume").with_values({"look.light": [1.0, 0.5, 0.0]}))
    panel = opened_panel(desk)
    for opened in (True, False, True):
        gui, _, actions = steer(panel)
        ((_, _, text, *_),) = [row for row in gui.shown if row[1] == "look.light"]
        assert text == "light: 255 188 0" and actions == []
        assert ("look.light red" in gui.names()) == opened
        steer(panel, **{"look.light": True})


def test_one_channel_of_a_colour_leaves_the_others_to_the_bit():
    """They may lie between two of the numbers that a slider has."""
    desk = Desk(preset("plume").with_values({"look.albedo": [0.123456789, 0.5, 0.987654321]}))
    panel = opened_panel(desk)
    steer(panel, **{"look.albedo green": 0})
    assert desk.scene.look.albedo == (0.123456789, 0.0, 0.987654321)


@pytest.mark.parametrize(("typed", "stored"), [(300, 1.0), (-1, 0.0)])
def test_a_colour_that_was_typed_stays_inside(typed, stored):
    desk = Desk(preset("plume").with_values({"look.light": [0.5, 0.5, 0.5]}))
    steer(opened_panel(desk), **{"look.light red": typed})
    assert desk.scene.look.light == (stored, 0.5, 0.5)


@pytest.mark.parametrize("exposure", [1.0, 2.5])
def test_a_swatch_has_the_colour_that_the_picture_has(tmp_path, exposure):
    """Of the background, at the edges of the picture, where nothing else is."""
    colour = [0.5, 0.1, 0.02]
    look = {"look.background_top": colour, "look.background_bottom": colour, "look.exposure": exposure}
    session = Session(preset("plume2d").with_values({"domain.resolution": 16, **look}), tmp_path, size=(24, 32))
    session.draw()
    picture = session.picture()
    gui, _, _ = steer(opened_panel(session))
    place = [name for _, name, *_ in gui.shown].index("look.background_top")
    kind, _, text, shown = gui.shown[place + 1]
    assert kind == "text" and set(text) == {"@"}
    # A level of rounding.
    np.testing.assert_allclose(255 * np.array(shown), picture[0, 12], atol=1)


# Choices, ranges, sections


@PRESETS
def test_a_choice_goes_round(name):
    desk = Desk(preset(name))
    panel = opened_panel(desk)
    seen = []
    for _ in range(8):
        steer(panel, **{"solver.pressure": True})
        seen.append(desk.scene.solver.pressure)
    assert seen[0] == seen[7]
    assert len(set(seen)) == 7


@pytest.mark.parametrize("value", ["look.incandescence", "look.tracers", "look.tracer_life", "look.sheets"])
def test_a_slider_held_where_it_is_stays_there(value):
    """A range that followed the value would run away under a mouse that stands still."""
    desk = Desk(preset("plume"))
    panel = opened_panel(desk)
    found = []
    for _ in range(5):
        gui, _, _ = steer(panel)
        ((kind, _, _, _, low, high),) = [row for row in gui.shown if row[1] == value]
        held = low + 0.8 * (high - low)
        steer(panel, **{value: round(held) if kind == "slider_int" else held})
        (p,) = (p for p in shown_parameters(desk.scene) if p.name == value)
        found.append(p.value)
    # 6 digits and f32.
    assert found == pytest.approx([found[0]] * 5, rel=1e-4)


def test_a_value_from_elsewhere_widens_its_slider():
    desk = Desk(preset("plume"))
    panel = opened_panel(desk)
    desk.set({"fluid.viscosity": 5.0})
    gui, _, actions = steer(panel)
    ((_, _, _, shown, low, high),) = [row for row in gui.shown if row[1] == "fluid.viscosity"]
    assert actions == []
    assert low <= shown <= high
    assert "fluid.viscosity" in gui.names("slider")
    desk.set({"fluid.viscosity": 0.001})
    desk.scene = desk.scene.with_values({"domain.resolution": 48})  # another simulation was started
    gui, _, _ = steer(panel)
    ((_, _, _, _, _, high),) = [row for row in gui.shown if row[1] == "fluid.viscosity"]
    assert high == pytest.approx(10.0), "0.01 in thousandths"


@pytest.mark.parametrize(
    ("name", "beyond"),
    [
        ("fluid.viscosity", 5000.0),  # in thousandths
        ("fluid.rho", 400.0),  # 4000 times the lower end: no longer linear, if the range had been so at first
        ("solver.tolerance", -0.5),  # a power of ten
        ("solver.max_iterations", 40_000),
    ],
)
def test_a_slider_that_a_typed_number_has_stretched_comes_back_with_its_value(name, beyond):
    desk = Desk(preset("plume"))
    panel = opened_panel(desk)
    value, low, high = numbers_of(steer(panel)[0], name)
    steer(panel, **{name: beyond})
    # In f32 and 6 digits; in the same multiple as before, or the next digit typed would mean something else.
    shown = numbers_of(steer(panel)[0], name)
    assert shown == pytest.approx((beyond, low, beyond), rel=1e-5)
    # A hand drags it to its left end: nothing jumps under the hand, which lets go.
    steer(panel, held=True, **{name: low})
    for _ in range(3):
        assert numbers_of(steer(panel, held=True)[0], name) == pytest.approx((low, low, beyond), rel=1e-5, abs=1e-9)
    assert numbers_of(steer(panel)[0], name) == pytest.approx((low, low, high), rel=1e-5, abs=1e-9)
    # Or the value is typed.
    steer(panel, **{name: beyond})
    steer(panel, **{name: value})
    assert numbers_of(steer(panel)[0], name) == pytest.approx((value, low, high), rel=1e-5)


def test_a_range_is_stretched_to_one_side_at_a_time():
    """A hand can drag to the ends of a slider, and not to a place between them that is thousands of times shorter."""
    panel = opened_panel(Desk(preset("plume")))
    for typed, ends in [(1e5, (-1, 1e5)), (-1e5, (-1e5, 1))]:
        steer(panel, **{"look.light_direction.0": typed})
        assert numbers_of(steer(panel)[0], "look.light_direction.0") == (typed, *ends)


def test_a_finer_grid_keeps_the_ranges():
    """The value beyond its range is no reason to begin with another one."""
    desk = Desk(preset("plume"))
    panel = opened_panel(desk)
    steer(panel, **{"fluid.rho": 400.0})
    desk.set({"domain.resolution": 48})
    steer(panel, **{"fluid.rho": 1.0})
    assert numbers_of(steer(panel)[0], "fluid.rho") == pytest.approx((1.0, 0.1, 10.0))


def test_a_section_opens_and_folds():
    desk = Desk(preset("plume"))
    panel = Panel(desk)
    gui, _, _ = steer(panel)
    assert "fluid.viscosity" in gui.names()
    assert "preset jets" in gui.names()
    assert "camera.azimuth" not in gui.names()
    steer(panel, **{"section camera": True, "section fluid": False})
    for _ in range(2):
        gui, _, actions = steer(panel)
        assert "camera.azimuth" in gui.names()
        assert "fluid.viscosity" not in gui.names()
        assert actions == []


def test_presets_are_buttons():
    desk = Desk(preset("jets"))
    gui, _, _ = steer(Panel(desk))
    assert [name.removeprefix("preset ") for name in gui.names("button") if name.startswith("preset ")] == (
        preset_names()
    )
    marked = [text for kind, name, text, *_ in gui.shown if name.startswith("preset ") and text.startswith(">")]
    assert marked == ["> jets"]
    _, _, actions = steer(Panel(desk), **{"preset plume2d": True})
    assert len(actions) == 1
    assert desk.sets == ["plume2d"]


# Buttons


@pytest.fixture
def session(tmp_path):
    """A small flow in the plane."""
    made = Session(scene((24, 32), 1 / 24, sources=[burner(2)]), tmp_path, size=(64, 48))
    made.advance(60.0, 1 / 60)
    made.draw()
    yield made
    made.close()


def press(session: Session, name: str) -> FakeGui:
    """One frame of the right panel in which a button is pressed."""
    gui = FakeGui(**{name: True})
    for action in Panel(session).run(Rows(gui, 200), ["60 frames/s"]):
        action()
    assert name in gui.names("button")
    return gui


def button_text(session: Session, name: str) -> str:
    gui = FakeGui()
    Panel(session).run(Rows(gui, 200), [])
    return next(text for _, widget, text, *_ in gui.shown if widget == name)


def test_nothing_pressed_does_nothing(session):
    gui = FakeGui()
    rows = Rows(gui, 200)
    before = session.scene
    assert Panel(session).run(rows, ["60 frames/s", "test, 24x32"]) == []
    assert session.scene is before
    assert_apart(rows, 200)
    assert len(set(gui.names())) == len(gui.names())
    for text in ("60 frames/s", "test, 24x32"):
        assert text in gui.texts()


def test_pause_step_reset_clear(session):
    assert button_text(session, "pause").startswith("pause")
    press(session, "pause")
    assert session.paused
    assert button_text(session, "pause").startswith("go on")
    press(session, "pause")
    assert not session.paused
    steps = session.simulation.steps
    press(session, "step")
    for _ in range(200):
        session.advance(1e-9, 1 / 60)
    assert session.simulation.steps == steps + 1
    assert session.simulation.to_numpy("smoke").max() > 0
    press(session, "clear")
    assert session.simulation.to_numpy("smoke").max() == 0
    assert session.simulation.time > 0
    press(session, "reset")
    assert session.simulation.time == 0


def test_record_screenshot_save(session, tmp_path):
    press(session, "screenshot")
    press(session, "save")
    press(session, "record")
    assert session.video is not None
    assert "stop recording" in button_text(session, "record")
    gui = press(session, "record")
    assert session.video is None
    assert sorted(os.listdir(tmp_path)) == ["test_001.mp4", "test_001.png", "test_001.toml"]
    assert Scene.load(tmp_path / "test_001.toml") == session.scene
    assert "recording test_001.mp4" in gui.lines(), "what was said before it was pressed"
    gui = FakeGui()
    Panel(session).run(Rows(gui, 200), [])
    assert "wrote test_001.mp4" in gui.lines()


def test_finer_and_coarser(session, monkeypatch):
    monkeypatch.setattr("taichi_fluid.viewer.session.SLOW_STEP", float("inf"))  # a step that compiles may be slow
    press(session, "finer")
    assert session.scene.domain.resolution == 40
    press(session, "coarser")
    assert session.scene.domain.resolution == 32


def test_both_grids_and_one_again(session):
    assert button_text(session, "compare").startswith("both grids")
    press(session, "compare")
    assert session.scene.look.compare
    assert button_text(session, "compare").startswith("one grid")
    session.advance(60.0, 1 / 60)
    session.pause()
    while session.stepping:
        session.advance(1e-9, 0.0)
    gui = FakeGui()
    rows = Rows(gui, 200)
    Panel(session).run(rows, ["60 frames/s"])
    assert_apart(rows, 200)
    lines = gui.lines()
    for grid, left in session.health().left.items():
        assert f"{grid} {left.max:.1e}/s {left.part:.1e} speed/dx" in re.sub(" +", " ", lines)
    assert re.search(r"staggered +\d+\.\d ms +collocated +\d+\.\d ms", lines), "the time that each takes"
    press(session, "compare")
    assert not session.scene.look.compare


def test_the_other_grid_is_a_button(session):
    before = session.simulation
    gui, _, _ = steer(opened_panel(session), **{"domain.grid": True})
    assert "grid: staggered" in [text for _, name, text, *_ in gui.shown if name == "domain.grid"]
    assert session.scene.domain.grid == "collocated" and session.simulation is not before
    assert session.simulation.time == before.time > 0


def test_what_takes_long_is_said_before_it_is_done(session, monkeypatch):
    """The action is for after the next frame, which shows the message."""
    monkeypatch.setattr("taichi_fluid.viewer.session.SLOW_STEP", float("inf"))  # a step that compiles may be slow
    before = session.simulation
    (action,) = Panel(session).run(Rows(FakeGui(finer=True), 200), [])
    assert session.simulation is before
    gui = FakeGui()
    Panel(session).run(Rows(gui, 200), [])
    assert session.message in gui.lines()
    assert "building" in session.message
    action()
    assert session.simulation is not before


def test_every_view_has_its_button(session):
    (view,) = (p for p in shown_parameters(session.scene) if p.key == "look.view")
    for choice in view.choices:
        press(session, f"view {choice}")
        assert session.scene.look.view == choice
        session.draw()
        gui = FakeGui()
        Panel(session).run(Rows(gui, 200), [])
        assert [text for _, name, text, *_ in gui.shown if name.startswith("view ") and text.startswith(">")] == [
            f"> {choice}"
        ]


@pytest.mark.parametrize("key", NEXT)
def test_a_key_goes_on_to_the_next_choice(session, key):
    seen = []
    for _ in range(12):
        next_choice(session, f"look.{key}")
        seen.append(getattr(session.scene.look, key))
    assert len(set(seen)) >= 5
    count = len(set(seen))
    assert seen[:count] == seen[count : 2 * count] or count > 6
    assert len(set(seen[:count])) == count, "each once before the first comes back"


def test_the_health_of_the_flow_is_shown(session):
    session.pause()
    while session.stepping:
        session.advance(1e-9, 0.0)
    gui = FakeGui()
    Panel(session).run(Rows(gui, 200), [])
    lines = gui.lines()
    for word in ("advect", "project", "pressure:", "iterations", "residual", "divergence", "CFL", "mass"):
        assert word in lines
    assert re.search(r"step +\d+\.\d ms", lines)


def test_before_the_first_step_it_says_what_it_waits_for(session):
    session.reset()
    gui = FakeGui()
    Panel(session).run(Rows(gui, 200), [])
    assert "compile" in gui.lines()
    session.pause()
    gui = FakeGui()
    Panel(session).run(Rows(gui, 200), [])
    assert "no step made yet" in gui.lines()
    session.pause()


def test_words_have_only_letters_that_the_gui_has(session):
    """Dear ImGui's own letters are Latin-1; others come out as a question mark."""
    session.record()
    said = [session.message]
    session.record()
    said.append(session.message)
    gui = FakeGui()
    session.message = ""
    Panel(session).run(Rows(gui, 200), [])
    steering, _, _ = steer(opened_panel(session))
    for text in [*said, *(text for _, _, text, *_ in [*gui.shown, *steering.shown])]:
        text.encode("latin-1")


@pytest.mark.parametrize("typed", [400.0, float("inf"), float("nan")])
def test_nonsense_typed_into_a_logarithmic_slider_is_a_sentence(tmp_path, typed):
    session = Session(preset("plume2d").with_values({"domain.resolution": 16}), tmp_path)
    panel = Panel(session)
    panel._open = {title: title == "solver" for title in ("preset", "live", "fluid", "solver")}
    before = session.scene
    for action in panel.steer(Rows(FakeGui(**{"solver.tolerance": typed}), 290)):
        action()
    assert session.scene == before
    assert "solver.tolerance" in session.message


def test_the_panel_does_not_keep_another_simulation_alive(tmp_path):
    session = Session(preset("plume2d").with_values({"domain.resolution": 16}), tmp_path)
    panel = Panel(session)
    panel.steer(Rows(FakeGui(), 290))
    old = weakref.ref(session.simulation)
    session.finer()()
    gc.collect()
    assert old() is None
