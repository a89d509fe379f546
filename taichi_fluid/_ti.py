"""The one place that imports Taichi: quietly, and with a sentence when it cannot be done."""

import os
import sys

_MUTED = {"ENABLE_TAICHI_HEADER_PRINT": "0", "TI_SKIP_VERSION_CHECK": "ON"}


class TaichiUnavailable(ImportError):
    """Taichi cannot be imported on this machine; the message says what to do about it."""


def _require_home() -> None:
    """Taichi keeps its kernel cache below HOME and aborts the process where it cannot find one."""
    if sys.platform == "win32":
        return
    cache = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME")
    if not cache:
        raise TaichiUnavailable(
            "HOME and XDG_CACHE_HOME are not set, and Taichi ends the process without a place for its kernel cache: "
            "set HOME to a writable folder, for example HOME=/tmp."
        )
    existing = os.path.abspath(cache)
    while not os.path.exists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing) or not os.access(existing, os.W_OK):
        raise TaichiUnavailable(
            f"the folder {cache!r} (from HOME or XDG_CACHE_HOME) is not writable, and Taichi keeps its kernel cache "
            "there: set HOME to a writable folder, for example HOME=/tmp."
        )


def _import_taichi():
    _require_home()
    before = {name: os.environ.get(name) for name in _MUTED}
    for name, value in _MUTED.items():
        os.environ.setdefault(name, value)
    try:
        import taichi
    except (ImportError, OSError) as error:
        text = str(error)
        if "libX11" in text or "libGL" in text:
            library = "libX11" if "libX11" in text else "libGL"
            package = "libx11-6" if library == "libX11" else "libgl1"
            raise TaichiUnavailable(
                f"Taichi needs the system library {library}, also without a display: install it, for example "
                f"'apt-get install {package}' on Debian and Ubuntu or 'dnf install {library}' on Fedora."
            ) from error
        raise TaichiUnavailable(f"Taichi cannot be imported: {text}") from error
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
    return taichi


ti = _import_taichi()

from taichi.lang import impl  # noqa: E402  (only after the quiet import above)

__all__ = ["TaichiUnavailable", "impl", "ti"]
