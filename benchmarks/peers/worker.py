"""One program in a process of its own: ``python -m benchmarks.peers.worker JOB``, then a line of JSON per request.

A request is ``step`` or ``divergence`` on standard input; in between the process waits for the next. The answer to a
step says how long it took, on the clock and in processor time of all threads, and how much of the latter went by since the
step before, which is to be next to nothing: some libraries let their threads spin.
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
            if line.strip() == "step":
                start, begin = time.perf_counter(), time.process_time()
                program.step()
                end, finish = time.perf_counter(), time.process_time()
                answer(ms=1e3 * (end - start), processor_ms=1e3 * (finish - begin), idle_ms=1e3 * (begin - asleep))
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
