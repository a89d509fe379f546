"""Errors that must be known before Taichi is."""


class TaichiUnavailable(ImportError):
    """Taichi cannot be imported on this machine; the message says what to do about it."""


def last_line(error: BaseException) -> str:
    """What an error says, where Taichi says it: at the end; its kind if it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__
