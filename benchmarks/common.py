"""What every benchmark shares: fair timing and a result file that names the machine."""

import json
import os
import platform
import statistics
import subprocess
import time
from pathlib import Path

import taichi as ti

RESULTS = Path(__file__).parent / "results"


def milliseconds(run, repeats: int = 15) -> float:
    """Median time of ``run`` in ms, the device's work included, after one call that compiles."""
    run()
    ti.sync()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        ti.sync()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def machine() -> dict:
    """Processor, cores and versions."""
    name = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        name = models[0].split(":", 1)[1].strip() if models else name
    commit = subprocess.run(
        ["git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty"], capture_output=True, text=True
    ).stdout
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "taichi": ".".join(map(str, ti.__version__)),
        "commit": commit.strip(),
    }


def save(name: str, rows: list[dict]) -> Path:
    """Write ``results/NAME.json``; its path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=2) + "\n")
    print(path)
    return path
