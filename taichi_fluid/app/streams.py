"""Standard output and error that may be full: nothing a command does ends by what it says not having found room.

Results that are lost are told in one sentence at the end, with exit status 1. A reader that has gone, as ``head`` does, ends a
command in silence.
"""

import contextlib
import io
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
    """Whether a stream of ``sys`` is the process's own, and not a console of Windows or what a program has put there."""
    stream = getattr(sys, name)
    buffer = getattr(stream, "buffer", None)
    return stream is getattr(sys, f"__{name}__") and isinstance(getattr(buffer, "raw", buffer), io.FileIO)


def _put(name: str, stream: io.TextIOWrapper) -> None:
    """Make a stream the process's own; Taichi takes one that is not for a notebook's."""
    for each in (name, f"__{name}__"):
        setattr(sys, each, stream)


@contextlib.contextmanager
def unfailing() -> Iterator[None]:
    """Let writing to the process's own standard output and error not fail meanwhile.

    Raises:
        SystemExit: with status 1 in place of 0, after a sentence, if results could not be written.
    """
    before = {name: getattr(sys, name) for name in ("stdout", "stderr") if _is_own(name)}
    told = {"stdout": (BrokenPipeError,), "stderr": ()}
    raw = {name: _Unfailing(stream, *told[name]) for name, stream in before.items()}
    ours = {name: _over(raw[name], stream) for name, stream in before.items()}
    for name, stream in ours.items():
        _put(name, stream)
    status, lost = None, None
    try:
        yield
    except SystemExit as end:
        status = end.code
    finally:
        with contextlib.suppress(BrokenPipeError):
            for stream in ours.values():
                stream.flush()
        if "stdout" in raw and (lost := raw["stdout"].error) is not None:
            print(f"taichi-fluid: standard output cannot be written: {lost.strerror}.", file=sys.stderr, flush=True)
        for name, stream in before.items():
            _put(name, stream)
    if lost is not None:
        status = status or 1
    if status is not None:
        raise SystemExit(status)
