"""One program in a process of its own: ``python -m benchmarks.peers.worker JOB``, then a line of JSON per request.

A request is ``step`` or ``divergence`` on standard input; in between the process waits for the next and does nothing.
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
        for line in sys.stdin:
            if line.strip() == "step":
                start, begin = time.perf_counter(), time.process_time()
                program.step()
                answer(ms=1e3 * (time.perf_counter() - start), processor_ms=1e3 * (time.process_time() - begin))
            else:
                left = program.divergence()
                if not math.isfinite(left):
                    raise RuntimeError("its divergence is not finite")
                answer(left=left, iterations=program.iterations)
    except Exception as error:
        answer(problem=f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}".rstrip(".") + ".")
        raise


if __name__ == "__main__":
    _main(json.loads(sys.argv[1]))
