"""The panel: what it holds, row by row, for any gui with the few widgets that Taichi's has."""

from typing import Any, NamedTuple

import numpy as np

from ..scene import Scene, preset_names
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
HIGHLIGHT, WARNING = (0.55, 0.8, 1.0), (1.0, 0.55, 0.35)
OPEN_AT_FIRST = ("live", "fluid")
"""Sections that come first and are open."""
AT_THE_END = ("domain",)
"""Sections that come last: what builds the flow anew is not moved often."""
NEXT = {"view": "V", "quantity": "Q", "colour_map": "M"}
"""Keys that go on to the next choice of ``look``."""


class Row(NamedTuple):
    """Where a widget stands in its panel, in pixels from the panel's upper left corner, not scrolled."""

    left: int
    top: int
    width: int
    height: int


class Rows:
    """The rows of one panel, from the top down; remembers where each widget stands.

    Args:
        gui: Taichi's ``Gui``, or what has its ``text``, ``button``, ``checkbox``, sliders and ``color_edit_3``.
        width: Of the panel, in pixels.
    """

    def __init__(self, gui: Any, width: int):
        self._gui, self._width, self._top = gui, width, TITLE_BAR + PADDING
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
        longest = max((self._width - 2 * PADDING) // LETTER, 1)
        for line in _wrapped(text, longest):
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

    def slider_int(self, name: str, value: int, low: int, high: int) -> int | None:
        """A slider of whole numbers; its new value if it was moved."""
        self._place(name, int(ITEM_PART * self._width), FRAME)
        got = self._gui.slider_int(f"##{name}", value, low, high)
        return None if got == value else got

    def colour(self, name: str, value: tuple[float, float, float]) -> tuple[float, float, float] | None:
        """A colour; its new value if it was changed."""
        self._place(name, int(ITEM_PART * self._width), FRAME)
        sent = tuple(float(np.float32(channel)) for channel in value)
        got = tuple(self._gui.color_edit_3(f"##{name}", sent))
        return None if got == sent else tuple(min(max(round(channel, 4), 0.0), 1.0) for channel in got)  # pyright: ignore


class Panel:
    """Both panels of a session: what steers it on the left, what runs and shows it on the right."""

    def __init__(self, session: Session):
        self.session = session
        self._open: dict[str, bool] = {}
        self._ranges: dict[str, tuple[float, float]] = {}
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
                for parameter in map(self._steady, section.parameters):
                    value = _moved(rows, parameter)
                    if value is not None:
                        actions.append(lambda p=parameter, v=value: session.set(p.changed(v)))
        return actions

    def _sections_now(self) -> list[Section]:
        """The sections of the scene as it is by now; most frames show the same one."""
        if self._sections_of is not self.session.scene:
            self._sections_of = self.session.scene
            self._sections = sections(self._sections_of)
        return self._sections

    def _steady(self, parameter: Parameter) -> Parameter:
        """With the range that its slider was first shown with: one that follows its value runs away under a drag."""
        if parameter.kind not in (Kind.FLOAT, Kind.INT):
            return parameter
        scene = self.session.scene
        if self._ranges_of != (scene.name, scene.domain):
            self._ranges, self._ranges_of = {}, (scene.name, scene.domain)
        low, high = self._ranges.get(parameter.name, (parameter.low, parameter.high))
        range_now = (min(low, parameter.value), max(high, parameter.value))
        self._ranges[parameter.name] = range_now
        return parameter._replace(low=range_now[0], high=range_now[1])

    def _section(self, rows: Rows, title: str, shown: bool) -> bool:
        """The head of a section; whether it is open, as it was left or as ``shown`` says."""
        before = self._open.get(title, shown)
        self._open[title] = rows.checkbox(f"section {title}", title.upper(), before)
        return before

    def run(self, rows: Rows, lines: list[str]) -> list[Action]:
        """Buttons, the views, and how the flow is doing; ``lines`` come first of that."""
        session, actions = self.session, []

        def button(name: str, text: str, action: Action) -> None:
            if rows.button(name, text):
                actions.append(action)

        button("pause", "go on  (space)" if session.paused else "pause  (space)", session.pause)
        button("step", "one step  (N)", session.step_once)
        button("reset", "reset  (R)", session.reset)
        button("clear", "clear smoke, dye  (C)", session.clear)
        button("view", "reset view  (E)", session.reset_view)
        recording = "record  (O)" if session.video is None else f"stop recording  {session.video.seconds:.0f} s"
        button("record", recording, session.record)
        button("screenshot", "screenshot  (P)", session.screenshot)
        button("save", "save scene  (S)", session.save_scene)
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
        if session.message:  # before the numbers, which may reach below the window
            rows.text(session.message, WARNING if session.failed or session.alarm else HIGHLIGHT)
        for line in _health_lines(health) if health else _before_the_first_step(session):
            rows.text(line)
        return actions


def next_choice(session: Session, key: str) -> None:
    """Go on to the next choice of a value of the scene."""
    for section in sections(session.scene):
        for parameter in section.parameters:
            if parameter.key == key and parameter.kind is Kind.CHOICE:
                session.set(parameter.changed(parameter.next_choice))


def _moved(rows: Rows, parameter: Parameter) -> Any:
    """Show a parameter; its new value if it was changed."""
    name, kind = parameter.name, parameter.kind
    if kind is Kind.BOOL:
        value = rows.checkbox(name, parameter.label, parameter.value)
        return None if value == parameter.value else value
    if kind is Kind.OPTIONAL:
        words = "" if parameter.value else "  (default)"
        value = rows.checkbox(name, parameter.label + words, parameter.value)
        return None if value == parameter.value else value
    if kind is Kind.CHOICE:
        pressed = rows.button(name, f"{parameter.label}: {parameter.value}")
        return parameter.next_choice if pressed else None
    if kind is Kind.COLOUR:
        rows.text(parameter.title)
        return rows.colour(name, parameter.value)
    rows.text(parameter.title)
    if kind is Kind.INT:
        return rows.slider_int(name, parameter.value, int(parameter.low), int(parameter.high))
    if parameter.logarithmic:
        ends = (float(np.log10(parameter.low)), float(np.log10(parameter.high)))
        moved = rows.slider(name, float(np.log10(parameter.value)), *ends)
        return None if moved is None else _inside(10.0 ** min(max(moved, -MOST_DECADES), MOST_DECADES), parameter)
    factor = parameter.factor
    moved = rows.slider(name, parameter.value / factor, parameter.low / factor, parameter.high / factor)
    return None if moved is None else _inside(moved * factor, parameter)


def _inside(value: float, parameter: Parameter) -> float:
    """The value, rounded to f32 by the slider, within the range; typed with the keyboard it may lie beyond."""
    span = 1e-6 * (parameter.high - parameter.low)
    for end in (parameter.low, parameter.high):
        if abs(value - end) <= span:
            return end
    return value


def _before_the_first_step(session: Session) -> list[str]:
    if session.paused and not session.stepping:
        return ["no step made yet"]
    return ["the first step:", "it may wait for its", "kernels to compile"]


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


def _wrapped(text: str, longest: int) -> list[str]:
    lines, line = [], None
    for word in text.split(" "):
        if line and line.strip() and len(line) + 1 + len(word) > longest:
            lines.append(line)
            line = word
        else:
            line = word if line is None else f"{line} {word}"
    return [*lines, line or ""]
