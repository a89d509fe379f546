"""Ctrl-C on the command line: one sentence, exit status 130 and no traceback, whatever is being done.

Where nothing is there yet that has to be finished, it ends the process at once: an exception would go through the imports of
others, who print it, or take it for a module that is missing.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

STATUS = 128 + signal.SIGINT
"""What shells give what Ctrl-C has ended."""


def _say(sentence: str) -> None:
    """Without Python's files, one of which may be in use just now."""
    with suppress(OSError):
        os.write(2, f"taichi-fluid: {sentence}\n".encode())


def _end(number: int, frame: object) -> None:
    _say("stopped by the keyboard.")
    os._exit(STATUS)


def end_at_once() -> None:
    """Let Ctrl-C end the process from now on, unless it is ignored or somebody else listens to it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt meanwhile: files are finished or removed, processes ended.

    The second one only says that the third ends the process at once, as what finishes may take long or hang. In a program
    that has not called ``end_at_once``, everything stays as it is.

    Raises:
        SystemExit: with ``STATUS``, in place of a KeyboardInterrupt that nobody has caught.
    """
    if signal.getsignal(signal.SIGINT) is not _end:
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, warn)
        raise KeyboardInterrupt

    def warn(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, _end)
        _say("it is stopping; Ctrl-C once more ends it at once.")

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        _say("stopped by the keyboard.")
        raise SystemExit(STATUS) from None
    finally:
        signal.signal(signal.SIGINT, _end)
