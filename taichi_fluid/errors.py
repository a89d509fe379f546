"""Errors that must be known before Taichi is."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TaichiUnavailable(ImportError):
    """Taichi cannot be imported on this machine; the message says what to do about it."""


class NotFinite(RuntimeError):
    """A quantity has become NaN or infinite; the message names it and the step, or the side and the time."""


def last_line(error: BaseException) -> str:
    """What an error says, where Taichi says it: at the end; its kind if it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__


class Terminated(SystemExit):
    """The process was asked to end; nobody catches it in a script, which then ends with the status that shells give."""


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM, and SIGHUP of a terminal that closes, raise Terminated meanwhile: files are finished or removed.

    Only in the main thread, and a signal that somebody else listens to already, or wants to be ignored, stays theirs.
    """
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    taken = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]

    def end(number: int, frame: object) -> None:
        for each in taken:  # once is enough: a second one would break off what the first one finishes
            signal.signal(each, signal.SIG_IGN)
        raise Terminated(128 + number)

    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)
