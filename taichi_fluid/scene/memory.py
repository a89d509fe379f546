"""Does a scene fit into this machine: asked before anything is allocated."""

import math
import os

from ..limits import MAX_ARRAY_BYTES
from . import Scene, SceneError, bytes_needed


def gib(count: float) -> str:
    """Bytes, for a person."""
    return f"{count / 2**30:.3g} GiB"


def _free_memory() -> int | None:
    """Memory that this process may still take, in bytes; None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as info:
            for line in info:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def require_memory(scene: Scene) -> None:
    """Raise SceneError for a grid that this machine's own memory, or any array of a backend, cannot hold."""
    needed, free = bytes_needed(scene), _free_memory()
    shape = " x ".join(map(str, scene.domain.shape))
    cells = math.prod(n + 2 for n in scene.domain.shape)
    if 4 * cells * 3 > MAX_ARRAY_BYTES:
        raise SceneError(
            f"domain.resolution is {scene.domain.resolution}: {shape} cells need {gib(needed)} and arrays of "
            f"{gib(12 * cells)}; a backend holds arrays of less than 2 GiB, so choose a smaller resolution."
        )
    if free is not None and needed > free:
        raise SceneError(
            f"domain.resolution is {scene.domain.resolution}: {shape} cells need {gib(needed)} of memory; "
            f"{gib(free)} are free on this machine, so choose a smaller resolution."
        )
