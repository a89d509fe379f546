"""Can a window open here: found out before one is tried, because without a display or Vulkan Taichi ends the process."""

import ctypes
import os
import subprocess
import sys
import tempfile

from ..backend import PROBE_SECONDS, probe_environment

_CODE = (
    "from taichi_fluid._ti import ti\n"
    "ti.init(arch=ti.cpu, log_level=ti.ERROR, enable_fallback=False)\n"
    "ti.ui.Window('probe', (16, 16), show_window=False).destroy()\n"
)
METAL = (
    "a Metal window can freeze the whole desktop on macOS (Taichi issue 8775); --arch vulkan and --arch cpu open a "
    "window through MoltenVK"
)


class WindowProbe:
    """Asks another process whether Taichi's windows, which draw with Vulkan whatever computes, start here.

    It runs beside this process from the moment it is made until ``problem`` is called.
    """

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._process = None
        if display_problem() is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _CODE],
                cwd=self._folder.name,
                env=probe_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def problem(self, arch: str) -> str | None:
        """Why no window can open beside ``arch``, as half a sentence; None if one can."""
        try:
            if self._process is None:
                return display_problem()
            if arch == "metal":
                return METAL
            try:
                status = self._process.wait(timeout=PROBE_SECONDS)
            except subprocess.TimeoutExpired:
                return f"the Vulkan driver, which draws the window, did not answer within {PROBE_SECONDS} s"
            return None if status == 0 else "no Vulkan driver starts here, and that is what draws the window"
        finally:
            self.close()

    def close(self) -> None:
        """End the other process."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()


def display_problem() -> str | None:
    """Why there is no display to open a window on, as half a sentence; None if there is one."""
    if not sys.platform.startswith("linux"):
        return None
    display = os.environ.get("DISPLAY")
    if not display:
        return "there is no display (DISPLAY is not set)"
    try:
        x11 = ctypes.CDLL("libX11.so.6")
    except OSError:
        return "the library libX11 is missing"
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XCloseDisplay.argtypes = [ctypes.c_void_p]
    connection = x11.XOpenDisplay(None)
    if not connection:
        return f"the display {display!r} (DISPLAY) does not answer"
    x11.XCloseDisplay(connection)
    return None
