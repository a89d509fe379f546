"""Standard output and error that may be full: nothing a command does ends by what it says not having found room.

Results that are lost are told in one sentence at the end, with exit status 1. A reader that has gone, as ``head`` does, ends a
command in silence.
"""

import contextlib
import io
import os
import sys
from collections.abc import Iterator


class _Unfailing(io.FileIO):
    """A stream on which writing raises only what is ``told``; of all else the last ``error`` is kept."""

    def __init__(self, stream: io.TextIOBase, *told: type[OSError]):
        super().__init__(stream.fileno(), "wb", closefd=False)
        self.error: OSError | None = None
        self._told = told

    def write(self, data) -> int | None:
        """Write what there is room for, and count all of it as written where nothing can be."""
        try:
            return super().write(data)
        except self._told:
            raise
        except OSError as error:
            self.error = error
            return memoryview(data).nbytes


def _over(raw: _Unfailing, stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """A stream like another one, buffered or not, that writes to ``raw``."""
    return io.TextIOWrapper(
        raw if isinstance(stream.buffer, io.RawIOBase) else io.BufferedWriter(raw),  # pyright: ignore[reportArgumentType]
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _is_own(name: str) -> bool:
    """Whether a stream of ``sys`` is the process's own, open, and not a console of Windows or what a program has put there."""
    stream = getattr(sys, name)
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    if stream is not getattr(sys, f"__{name}__") or not isinstance(raw, io.FileIO) or raw.closed:
        return False
    with contextlib.suppress(OSError):
        os.fstat(raw.fileno())
        return True
    return False


def _put(name: str, stream: io.TextIOWrapper) -> None:
    """Make a stream the process's own; Taichi takes one that is not for a notebook's."""
    for each in (name, f"__{name}__"):
        setattr(sys, each, stream)


@contextlib.contextmanager
def _unfailing(name: str, *told: type[OSError]) -> Iterator[_Unfailing | None]:
    """Let writing to a stream of ``sys`` raise only what is ``told`` meanwhile; nothing is done to one that is not its own."""
    if not _is_own(name):
        yield None
        return
    before = getattr(sys, name)
    with contextlib.suppress(OSError):
        before.flush()
    raw = _Unfailing(before, *told)
    ours = _over(raw, before)
    _put(name, ours)
    try:
        yield raw
    finally:
        try:
            with contextlib.suppress(*told, ValueError):  # closed meanwhile
                ours.flush()
        finally:
            _put(name, before)


@contextlib.contextmanager
def unfailing() -> Iterator[None]:
    """Let writing to the process's own standard output and error not fail meanwhile.

    Raises:
        SystemExit: with status 1 in place of 0, after a sentence, if results could not be written.
    """
    ended = None
    with _unfailing("stderr"):
        with _unfailing("stdout", BrokenPipeError) as results:
            try:
                yield
            except SystemExit as end:
                ended = end
        if results is not None and results.error is not None:
            print(f"taichi-fluid: standard output cannot be written: {results.error.strerror}.", file=sys.stderr)
            ended = ended if ended is not None and ended.code else SystemExit(1)
    if ended is not None:
        raise ended
