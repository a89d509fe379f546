"""Where the panels of a window stand, which GGUI does not say: found out from where they were born, drags, and a file."""

from pathlib import Path

from .panel import TITLE_BAR, Row

STEER_WIDTH, RUN_WIDTH = 290, 200
STEER, RUN, MESSAGE, WAITING = "steer", "run and view", "message", "please wait"
GRIP = 16
"""Pixels of the corner of a panel that changes its size."""

Rectangle = tuple[float, float, float, float]
"""Left, top, width and height in pixels of the window."""


class Places:
    """Panels and widgets in pixels of the window, from its upper left.

    Attributes:
        rectangles: Of the panels, by name.
        filled: How much of its height each panel fills.
        widgets: Of the last frame, by name.
        shown: Names of the panels that are in sight.
        read_at: Of when the file is that was read last.
    """

    def __init__(self, shape: tuple[int, ...]):
        self.rectangles: dict[str, Rectangle] = at_the_edges(shape)
        self.filled: dict[str, float] = {}
        self.widgets: dict[str, Row] = {}
        self.shown: list[str] = []
        self.read_at = 0.0

    def note(self, name: str, rows: dict[str, Row], height: float) -> None:
        """What a panel holds in this frame, from its own corner, and how high that is."""
        left, top, *_ = self.rectangles[name]
        self.filled[name] = height
        for key, row in rows.items():
            self.widgets[key] = row._replace(left=row.left + left, top=row.top + top)

    def move(self, name: str, right: float, down: float) -> None:
        """Take a panel along."""
        left, top, *size = self.rectangles[name]
        self.rectangles[name] = (left + right, top + down, *size)

    def panel_under(self, x: float, y: float) -> str:
        """Name of the panel under a pixel; empty beside them."""
        for name in self.shown:
            left, top, width, height = self.rectangles[name]
            if left <= x < left + width and top <= y < top + height:
                return name
        return ""

    def widget_under(self, x: float, y: float) -> str:
        """Name of the widget under a pixel; empty where there is none. Of a scrolled panel a neighbour's."""
        for key, row in self.widgets.items():
            on_row = row.left <= x < row.left + row.width and row.top <= y < row.top + row.height
            if on_row and not key.startswith("text "):
                return key
        return ""

    def is_grip(self, name: str, x: float, y: float) -> bool:
        """Whether a drag from there takes the panel along: from its title bar, or from where it has no widget.

        Of a panel that can be scrolled only the title bar is sure; whether another place moved it, its file will say.
        """
        left, top, width, height = self.rectangles[name]
        if y < top + TITLE_BAR:
            return True
        on_grip = x > left + width - GRIP and y > top + height - GRIP
        return self.filled.get(name, height) < height and not (on_grip or self.widget_under(x, y))

    def read(self, path: Path, suffix: str) -> None:
        """Read the file that GGUI writes a while after a panel was moved, if it is a new one."""
        try:
            saved = path.stat().st_mtime
            if saved != self.read_at:
                self.read_at = saved
                self.rectangles |= panel_places(path.read_text(encoding="utf-8"), self.rectangles, suffix)
        except (OSError, ValueError):
            return


def at_the_edges(shape: tuple[int, ...]) -> dict[str, Rectangle]:
    """The panels in a window of this shape, as they are at first."""
    left = max(shape[0] - RUN_WIDTH, 0)
    return {STEER: (0, 0, STEER_WIDTH, shape[1]), RUN: (left, 0, RUN_WIDTH, shape[1])}


def panel_places(text: str, known: dict, suffix: str = "") -> dict[str, Rectangle]:
    """The ``known`` panels as ``imgui.ini`` has them; a folded one is its title bar."""
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
