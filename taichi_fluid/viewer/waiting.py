"""What somebody waits for while kernels compile: nothing else runs meanwhile, so it is said before each one."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import Progress, TextColumn

from .. import kernels

FORGOTTEN_SECONDS = 2.0
"""How long after a kernel another one is counted from 1 again."""
SHOWN_SECONDS = 0.5
"""How long a count stays where somebody sees it: others may follow."""
LINE_SECONDS = 5.0
"""Between two lines on a console that shows each for good."""


class Waiting:
    """Kernels that were compiled one soon after another.

    Attributes:
        count: How many, the present one included.
        name: The present or last one.
    """

    def __init__(self):
        self.count, self.name = 0, ""
        self._underway, self._ended = False, 0.0

    def begin(self, name: str) -> None:
        """A kernel is about to be compiled."""
        self.end()
        if time.perf_counter() - self._ended > FORGOTTEN_SECONDS:
            self.count = 0
        self.count, self.name, self._underway = self.count + 1, name, True

    def end(self) -> None:
        """Somebody else is at work again: what was about to be compiled is."""
        if self._underway:
            self._underway, self._ended = False, time.perf_counter()

    @property
    def sentence(self) -> str:
        """What is waited for; empty soon after the last kernel."""
        if self._underway or (self.count and time.perf_counter() - self._ended < SHOWN_SECONDS):
            return f"compiling kernel {self.count}: {self.name}"
        return ""

    @contextlib.contextmanager
    def told(self, say: Callable[[str], None]) -> Iterator[None]:
        """Call ``say`` with a sentence and a count before each kernel that is compiled meanwhile."""

        def tell(name: str) -> None:
            self.begin(name)
            say(self.sentence)

        with kernels.before_compiling(tell):
            yield

    @contextlib.contextmanager
    def told_on(self, console: Console, show: Callable[[str], None] | None = None) -> Iterator[None]:
        """Say on a console which kernel is compiled: in a line that goes again, or where none can, now and then in one.

        Args:
            console: Where.
            show: Puts a sentence into a line that is there already.
        """
        if not console.is_terminal:
            with self.told(now_and_then(console, LINE_SECONDS)):
                yield
        elif show is not None:
            with self.told(show):
                yield
        else:
            with Progress(TextColumn("{task.description}"), console=console, transient=True) as line:
                task = line.add_task("")
                with self.told(lambda text: line.update(task, description=text, refresh=True)):
                    yield


def now_and_then(console: Console, seconds: float, at_once: bool = True) -> Callable[[str], None]:
    """What prints a text on a console, unless less than so many seconds have passed since it has printed another."""
    said_at = -math.inf if at_once else time.monotonic()

    def say(text: str) -> None:
        nonlocal said_at
        if time.monotonic() - said_at >= seconds:
            said_at = time.monotonic()
            console.print(text, highlight=False)

    return say
