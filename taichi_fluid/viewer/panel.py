"""The panel: what it holds, row by row, for any gui with the few widgets that Taichi's has."""

from typing import Any, NamedTuple

import numpy as np

from ..render.image import shown_colour
from ..scene import Scene, preset_names
from ..scene.pictures import decoded_light, encoded_light
from .keeping import keep_state
from .parameters import Kind, Parameter, Section, sections
from .session import Action, Health, Session

FONT, TITLE_BAR, PADDING, FRAME, GAP = 13, 19, 8, 19, 4
"""Of Dear ImGui's default style, in pixels: letters, title bar, border, height of a widget, space below it."""
LETTER = 7
"""Width of a letter in pixels."""
ITEM_PART = 0.65
"""Part of the panel's width that a slider takes."""
MOST_DECADES = 300.0
"""Of a number typed into a logarithmic slider: more are no number."""
SWATCH = 16 * "@"
"""What shows a colour: letters that are in it."""
CHANNELS = ("red", "green", "blue")
HIGHLIGHT, WARNING = (0.55, 0.8, 1.0), (1.0, 0.55, 0.35)
OPEN_AT_FIRST = ("live", "fluid")
"""Sections that come first and are open."""
AT_THE_END = ("domain",)
"""Sections that come last: what builds the flow anew is not moved often."""
NEXT = {"view": "V", "quantity": "Q", "colour_map": "M"}
"""Keys that go on to the next choice of ``look``."""


Ends = tuple[float, float]


class Row(NamedTuple):
    """Where a widget stands in its panel, in pixels from the panel's upper left corner, not scrolled."""

    left: int
    top: int
    width: int
    height: int


class Rows:
    """The rows of one panel, from the top down; remembers where each widget stands.

    Args:
        gui: Taichi's ``Gui``, or what has its ``text``, ``button``, ``checkbox`` and sliders.
        width: Of the panel, in pixels.
        held: Whether a button of the mouse is down, which may be dragging a slider.
    """

    def __init__(self, gui: Any, width: int, held: bool = False):
        self._gui, self._width, self._top, self.held = gui, width, TITLE_BAR + PADDING, held
        self.places: dict[str, Row] = {}

    def _place(self, name: str, width: int, height: int) -> None:
        self.places[name] = Row(PADDING, self._top, width, height)
        self._top += height + GAP

    @property
    def height(self) -> int:
        """Of the whole panel, as far as it is filled."""
        return self._top - GAP + PADDING

    def text(self, text: str, colour: tuple[float, float, float] | None = None) -> None:
        """A line; one that is too long is broken at spaces, for the panel would cut it off."""
        for line in _wrapped(text, self._width):
            self._gui.text(line, colour)
            self._place(f"text {line}", len(line) * LETTER, FONT)

    def button(self, name: str, text: str) -> bool:
        """A button; whether it was pressed. Its text may change between press and release: three # leave it aside."""
        self._place(name, len(text) * LETTER + 8, FRAME)
        return self._gui.button(f"{text}###{name}")

    def checkbox(self, name: str, text: str, value: bool) -> bool:
        """A check box; its new value."""
        self._place(name, FRAME, FRAME)
        return self._gui.checkbox(f"{text}###{name}", value)

    def slider(self, name: str, value: float, low: float, high: float) -> float | None:
        """A slider; its new value if it was moved."""
        self._place(name, int(ITEM_PART * self._width), FRAME)
        sent = float(np.float32(value))
        got = self._gui.slider_float(f"##{name}", sent, low, high)
        return None if got == sent else got

    def slider_int(self, name: str, value: int, low: int, high: int, text: str = "") -> int | None:
        """A slider of whole numbers, with a text on its right; its new value if it was moved."""
        self._place(name, int(ITEM_PART * self._width), FRAME)
        got = self._gui.slider_int(f"{text}##{name}", value, low, high)
        return None if got == value else got

    def colour(self, name: str, value: tuple[float, ...]) -> tuple[float, ...] | None:
        """A slider for each channel of light, from 0 to 255 as screens have it (sRGB); its new value if changed."""
        new = list(value)
        for i, (channel, code) in enumerate(zip(CHANNELS, _codes(value), strict=True)):
            got = self.slider_int(f"{name} {channel}", code, 0, 255, channel)
            if got is not None:
                new[i] = round(float(decoded_light(np.array(min(max(got, 0), 255) / 255))), 6)
        return tuple(new) if new != list(value) else None


class Panel:
    """Both panels of a session: what steers it on the left, what runs and shows it on the right."""

    def __init__(self, session: Session):
        self.session = session
        self._open: dict[str, bool] = {}
        self._ranges: dict[str, tuple[Ends, Ends]] = {}
        self._ranges_of = None
        self._presets = preset_names()
        self._sections: list[Section] = []
        self._sections_of: Scene | None = None

    def steer(self, rows: Rows) -> list[Action]:
        """The presets, and a section for each table of the scene, which the check box before its name opens."""
        session, actions = self.session, []
        if self._section(rows, "preset", shown=True):
            for name in self._presets:
                mark = "> " if name == session.scene.name else "  "
                if rows.button(f"preset {name}", mark + name):
                    actions.append(session.other(name))
        first = {title: place for place, title in enumerate(OPEN_AT_FIRST)}
        places = {**first, **dict.fromkeys(AT_THE_END, len(first) + 1)}
        for section in sorted(self._sections_now(), key=lambda s: places.get(s.title, len(first))):
            if self._section(rows, section.title, shown=section.title in first):
                for parameter in section.parameters:
                    value = self._moved(rows, parameter)
                    if value is not None:
                        actions.append(lambda p=parameter, v=value: session.set(p.changed(v)))
        return actions

    def _sections_now(self) -> list[Section]:
        """The sections of the scene as it is by now; most frames show the same one."""
        if self._sections_of is not self.session.scene:
            self._sections_of = self.session.scene
            self._sections = sections(self._sections_of)
        return self._sections

    def _moved(self, rows: Rows, parameter: Parameter) -> Any:
        """Show a parameter; its new value if it was changed."""
        if parameter.kind is Kind.COLOUR:
            return self._moved_colour(rows, parameter)
        if parameter.kind in (Kind.FLOAT, Kind.INT):
            return _moved_slider(rows, *self._steady(parameter, rows.held))
        return _pressed(rows, parameter)

    def _moved_colour(self, rows: Rows, parameter: Parameter) -> Any:
        """Show a colour as a button, which opens its sliders, and letters in it; its new value if it was changed.

        Dear ImGui's own editor opens windows that GGUI says nothing of: what is clicked and typed there would reach the
        flow as well. And it takes light for what a screen shows.
        """
        name, value = parameter.name, parameter.value
        opened = self._open.get(name, False)
        if rows.button(name, " ".join([f"{parameter.label}:", *map(str, _codes(value))])):
            self._open[name] = not opened
        rows.text(SWATCH, shown_colour(value, self.session.scene.look.exposure))
        return rows.colour(name, value) if opened else None

    def _steady(self, parameter: Parameter, held: bool) -> tuple[Parameter, Ends]:
        """The parameter with the range that its slider was first shown with, and the ends that the slider has now.

        A range that follows its value runs away under a drag. One that a typed number has stretched keeps its scale
        meanwhile, and comes back with the value, once the mouse is let go.
        """
        scene = self.session.scene
        if self._ranges_of != (scene.name, scene.domain.size):
            self._ranges, self._ranges_of = {}, (scene.name, scene.domain.size)
        shown = (parameter.low, parameter.high)
        (low, high), ends = self._ranges.get(parameter.name, (shown, shown))
        if low <= parameter.value <= high and not held:
            ends = (low, high)
        elif not ends[0] <= parameter.value <= ends[1]:
            ends = (min(low, parameter.value), max(high, parameter.value))
        self._ranges[parameter.name] = (low, high), ends
        return parameter._replace(low=low, high=high), ends

    def _section(self, rows: Rows, title: str, shown: bool) -> bool:
        """The head of a section; whether it is open, as it was left or as ``shown`` says."""
        before = self._open.get(title, shown)
        self._open[title] = rows.checkbox(f"section {title}", title.upper(), before)
        return before

    def message(self, rows: Rows) -> list[Action]:
        """What the session said last, if that is still worth saying; it asks for nothing."""
        if self.session.message:
            rows.text(self.session.message, WARNING if self.session.failed or self.session.alarm else HIGHLIGHT)
        return []

    def run(self, rows: Rows, lines: list[str]) -> list[Action]:
        """Buttons, the views, and how the flow is doing; ``lines`` come first of that."""
        session, actions = self.session, []

        def button(name: str, text: str, action: Action) -> None:
            if rows.button(name, text):
                actions.append(action)

        button("pause", "go on  (space)" if session.paused else "pause  (space)", session.pause)
        button("step", "one step  (N)", session.step_once)
        button("reset", "reset  (R)", session.reset)
        carried = "smoke, dye" if session.scene.liquid is None else "liquid"
        button("clear", f"clear {carried}  (C)", session.clear)
        button("view", "reset view  (E)", session.reset_view)
        recording = "record  (O)" if session.video is None else f"stop recording  {session.video.seconds:.0f} s"
        button("record", recording, session.record)
        button("screenshot", "screenshot  (P)", session.screenshot)
        button("save", "save scene  (S)", session.save_scene)
        button("keep", "keep state  (K)", lambda: keep_state(session))
        if rows.button("finer", "finer grid  (F)"):
            actions.append(session.finer())
        if rows.button("coarser", "coarser grid  (G)"):
            actions.append(session.coarser())
        if rows.button("compare", "one grid  (B)" if session.scene.look.compare else "both grids  (B)"):
            actions.append(session.compare())
        look = {p.key: p for s in self._sections_now() if s.title == "look" for p in s.parameters}
        rows.text("VIEW  (V)", HIGHLIGHT)
        view = look["look.view"]
        for choice in view.choices:
            mark = "> " if choice == view.value else "  "
            button(f"view {choice}", mark + choice, lambda c=choice: session.set(view.changed(c)))
        health = session.health()
        for line in lines:
            rows.text(line)
        self.message(rows)  # before the numbers, which may reach below the window
        for line in _health_lines(health) if health else _before_the_first_step(session):
            rows.text(line)
        return actions


def _codes(light: tuple[float, ...]) -> list[int]:
    """What screens call a colour of light: red, green and blue from 0 to 255 (sRGB)."""
    return [round(255 * float(channel)) for channel in encoded_light(np.array(light))]


def next_choice(session: Session, key: str) -> None:
    """Go on to the next choice of a value of the scene."""
    for section in sections(session.scene):
        for parameter in section.parameters:
            if parameter.key == key and parameter.kind is Kind.CHOICE:
                session.set(parameter.changed(parameter.next_choice))


def _pressed(rows: Rows, parameter: Parameter) -> Any:
    """Show what is no number; its new value if it was pressed."""
    name, kind = parameter.name, parameter.kind
    if kind is Kind.CHOICE:
        pressed = rows.button(name, f"{parameter.label}: {parameter.value}")
        return parameter.next_choice if pressed else None
    words = "  (default)" if kind is Kind.OPTIONAL and not parameter.value else ""
    value = rows.checkbox(name, parameter.label + words, parameter.value)
    return None if value == parameter.value else value


def _moved_slider(rows: Rows, parameter: Parameter, ends: Ends) -> Any:
    """Show a number with its slider from one of the ``ends`` to the other; its new value if it was moved."""
    name, (low, high) = parameter.name, ends
    rows.text(parameter.title)
    if parameter.kind is Kind.INT:
        return rows.slider_int(name, parameter.value, int(low), int(high))
    if parameter.logarithmic and low > 0:
        moved = rows.slider(name, float(np.log10(parameter.value)), float(np.log10(low)), float(np.log10(high)))
        return None if moved is None else _inside(10.0 ** min(max(moved, -MOST_DECADES), MOST_DECADES), ends)
    factor = parameter.factor
    moved = rows.slider(name, parameter.value / factor, low / factor, high / factor)
    return None if moved is None else _inside(moved * factor, ends)


def _inside(value: float, ends: Ends) -> float:
    """The value, rounded to f32 by the slider, within the range; typed with the keyboard it may lie beyond."""
    span = 1e-6 * (ends[1] - ends[0])
    for end in ends:
        if abs(value - end) <= span:
            return end
    return value


def _before_the_first_step(session: Session) -> list[str]:
    if session.paused and not session.stepping:
        return ["no step made yet"]
    return ["the first step:", "it waits for its", "kernels to compile"]


def _health_lines(health: Health) -> list[str]:
    lines = [f"step {health.step_ms:7.1f} ms"]
    lines += [f"  {name:8s} {ms:5.1f} ms" for name, ms in health.stage_ms.items()]
    divergence = [f"divergence {health.divergence:.1e}/s"]
    if len(health.left) > 1:
        lines.append(f"{health.grid} grid:")
        divergence = ["divergence that is left:"]
        for grid, left in health.left.items():
            divergence += [f"  {grid} {left.max:.1e}/s", f"    {left.part:.1e} speed/dx"]
    return [
        *lines,
        f"pressure: {health.solver}",
        f"  iterations {health.iterations}",
        f"  residual {health.residual:.1e}",
        f"  {health.status}",
        *([f"  {health.stand_in}"] if health.stand_in else []),
        *divergence,
        f"CFL {health.cfl:.2f}  dt {1e3 * health.dt:.1f} ms",
        f"mass {health.mass:.4g}",
    ]


def text_height(text: str, width: int) -> int:
    """Height of a panel that is so wide and holds nothing but a text, in pixels."""
    return TITLE_BAR + 2 * PADDING + (FONT + GAP) * len(_wrapped(text, width)) - GAP


def _wrapped(text: str, width: int) -> list[str]:
    longest, lines, line = max((width - 2 * PADDING) // LETTER, 1), [], None
    for word in text.split(" "):
        if line and line.strip() and len(line) + 1 + len(word) > longest:
            lines.append(line)
            line = word
        else:
            line = word if line is None else f"{line} {word}"
    return [*lines, line or ""]
