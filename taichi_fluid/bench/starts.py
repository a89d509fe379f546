"""Starts of a scene, each in a process of its own: cold, from an empty kernel cache, and warm, from what that has left."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .report import told_apart
from .runs import Measure, Run, fresh, in_a_process

TEMPERATURES = ("cold", "warm")


def starts(rounds: int) -> Measure:
    """What measures so many starts of either kind; see ``Bench``. Medians count."""

    def measure(run: Run, progress: Callable[[float], None]) -> dict[str, Any]:
        found: dict[str, list[dict[str, Any]]] = {temperature: [] for temperature in TEMPERATURES}
        cached = 0.0
        for made in range(rounds):
            with fresh(run) as folder:
                for part, temperature in enumerate(TEMPERATURES):
                    found[temperature].append(in_a_process("start", folder.job, folder.environ))
                    cached = cached or folder.cache_mb
                    progress((made + 0.5 * (part + 1)) / rounds)
        startup = {temperature: median_of(each) for temperature, each in found.items()}
        return {"startup": startup, "rounds": rounds, "kernel_cache_mb": cached}

    return measure


def median_of(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The median of several starts, part by part and kernel by kernel, and that of their sums.

    A kernel that not all of them have compiled has the median of those that did, and says ``"starts"``, how many.
    """
    middle: dict[str, Any] = {}
    for clock in ("clock_s", "processor_s"):
        parts = {part: statistics.median(each[clock][part] for each in found) for part in found[0][clock]}
        middle[clock] = {**parts, "sum": statistics.median(sum(each[clock].values()) for each in found)}
    starts = [told_apart(each["kernels"]) for each in found]
    middle["kernels"] = []
    for kernel in dict.fromkeys(kernel for start in starts for kernel in start):
        same = [start[kernel] for start in starts if kernel in start]
        row = {
            key: value if key == "name" else statistics.median(each[key] for each in same)
            for key, value in same[0].items()
        }
        middle["kernels"].append(row if len(same) == len(starts) else {**row, "starts": len(same)})
    return middle
