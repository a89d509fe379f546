"""Errors that must be known before Taichi is."""


class TaichiUnavailable(ImportError):
    """Taichi cannot be imported on this machine; the message says what to do about it."""
