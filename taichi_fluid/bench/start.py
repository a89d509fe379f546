"""One start, in a process of its own: from the birth of the process to the first picture after the first step.

``python -m taichi_fluid.bench.start JOB`` is how ``starts`` begins it, with a kernel cache that is empty or full.
"""

import json
import sys
import time
from typing import Any

from .files import SAYS


class Stopwatch:
    """Parts of a start, each in seconds on the clock and of the processors.

    Attributes:
        clock: Seconds on the clock, by part.
        processor: Seconds that all threads of this process have had, by part; the first begins with the process.

    Args:
        began: When the process was started, in seconds of ``time.time``.
    """

    def __init__(self, began: float):
        self.clock: dict[str, float] = {}
        self.processor: dict[str, float] = {}
        self._before = began, 0.0

    def stop(self, part: str) -> None:
        """The end of a part, and the beginning of the next one."""
        now = time.time(), time.process_time()
        self.clock[part], self.processor[part] = (
            after - before for before, after in zip(self._before, now, strict=True)
        )
        self._before = now


def watch_kernels(found: list[dict[str, Any]]) -> None:
    """From now on note each kernel that is compiled: processor seconds of its Python, its code and its first launch.

    The code is Taichi's intermediate form or its place in the cache; the first launch makes machine code of it on a CPU.
    What a recorded graph launches first has none of its own.
    """
    from .._ti import Kernel, impl

    rows: dict[int, dict[str, Any]] = {}
    underway: list[tuple[Any, dict[str, Any]]] = []
    program = type(impl.get_runtime().prog)
    materialize, compile_kernel, launch_kernel = Kernel.materialize, program.compile_kernel, program.launch_kernel

    def timed_materialize(self, key=None, args=None, arg_features=None):
        before, start = set(self.compiled_kernels), time.process_time()
        materialize(self, key, args, arg_features)
        for new in set(self.compiled_kernels) - before:
            row = {"name": self.func.__name__, "python_s": time.process_time() - start, "code_s": 0.0, "launch_s": 0.0}
            rows[id(self.compiled_kernels[new])] = row
            found.append(row)

    def timed_compile(self, config, capabilities, kernel):
        start = time.process_time()
        code = compile_kernel(self, config, capabilities, kernel)
        row = rows.pop(id(kernel), None)
        if row is not None:
            row["code_s"] = time.process_time() - start
            underway[:] = [(code, row)]
        return code

    def timed_launch(self, code, context):
        start = time.process_time()
        launch_kernel(self, code, context)
        if underway and underway[0][0] is code:
            underway.pop()[1]["launch_s"] = time.process_time() - start

    Kernel.materialize = timed_materialize
    program.compile_kernel, program.launch_kernel = timed_compile, timed_launch


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """The parts of a start and its kernels, on the clock and of the processors.

    Raises:
        BackendError: if the arch does not start; so what a step raises.
    """
    watch, kernels = Stopwatch(job["began"]), []
    from .._ti import ti
    from ..backend import start_here
    from ..render.side_by_side import pictures_of
    from ..scene import Scene
    from ..simulation.comparison import flow_of

    scene = Scene.load(job["scene"])
    watch.stop("imports")
    start_here(job["arch"], offline_cache=True, offline_cache_file_path=job["cache"])
    watch.stop("ti.init")
    watch_kernels(kernels)
    flow = flow_of(scene)
    ti.sync()
    watch.stop("Simulation()")
    renderer = pictures_of(flow)
    renderer.render()
    watch.stop("picture at t = 0")
    flow.step()
    ti.sync()
    watch.stop("first step")
    renderer.render()
    watch.stop("picture")
    return {"clock_s": watch.clock, "processor_s": watch.processor, "kernels": kernels}


def _main(job: dict[str, Any]) -> None:
    from ..errors import last_line

    try:
        said: dict[str, Any] = {"numbers": measure(job)}
    except (MemoryError, RuntimeError) as error:
        said = {"problem": f"{job['arch']} could not start this scene: {last_line(error).rstrip('.')}."}
    print(SAYS + json.dumps(said, allow_nan=False), flush=True)


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
