"""One program in a process of its own: ``python -m benchmarks.peers.worker JOB``, then a line of JSON per request.

A request is ``turn SECONDS`` or ``divergence`` on standard input; in between the process waits for the next. A turn is as
many steps as fill so many seconds, one at least. The answer says how long each took, on the clock and in processor time
of all threads, and how much of the latter went by since the turn before, which is to be next to nothing: some libraries
let their threads spin.
"""

import json
import math
import os
import sys
import time
from typing import Any

from .registry import OURS, PEERS, load


def _answers() -> int:
    """Standard output, for answers alone: whatever the program prints goes to standard error."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return answers


def _step(program) -> dict[str, float]:
    start, begin = time.perf_counter(), time.process_time()
    program.step()
    return {"ms": 1e3 * (time.perf_counter() - start), "processor_ms": 1e3 * (time.process_time() - begin)}


def _main(job: dict[str, Any]) -> None:
    """Serve a job: ``ours`` or ``peer`` (a name), ``n``, ``dim``, ``options``."""
    channel = _answers()

    def answer(**values: Any) -> None:
        os.write(channel, (json.dumps(values, allow_nan=False) + "\n").encode())

    entry = OURS[job["ours"]] if "ours" in job else PEERS[job["peer"]]
    try:
        program = load(entry, job["n"], job["dim"], **job["options"])
        answer(ready=True)
        asleep = time.process_time()
        for line in sys.stdin:
            request, *seconds = line.split()
            if request == "turn":
                idle, end = time.process_time() - asleep, time.perf_counter() + float(seconds[0])
                steps = [_step(program)]
                while time.perf_counter() < end:
                    steps.append(_step(program))
                answer(steps=steps, idle_ms=1e3 * idle)
                asleep = time.process_time()
            else:
                left = program.divergence()
                if not math.isfinite(left):
                    raise RuntimeError("its divergence is not finite")
                answer(left=left, iterations=program.iterations, solver=getattr(program, "pressure_solver", None))
    except Exception as error:
        answer(problem=f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}".rstrip(".") + ".")
        raise


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
