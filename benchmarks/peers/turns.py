"""Two programs in turn: ours, theirs, ours, theirs, each in a process that sleeps while the other computes."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from taichi_fluid.bench.measure import spread

ROOT = Path(__file__).parent.parent.parent

WARM_STEPS = 25
"""Steps before the first that counts: everything compiled, and a plume to work on."""

WARM_SECONDS = 60
"""A program that needs longer for them has made do with fewer, but for ``LEAST``."""

LEAST = 3
"""Steps that every program makes at least before those that count, and turns that count."""

TURN = 0.25
"""Seconds that a turn takes, or one step where that takes longer: what waking threads and filling caches costs is spread
over as many steps as when a program is left to run."""

REST = 0.02
"""Seconds between turns: threads that spin for a while before they sleep do so then."""


class Problem(Exception):
    """A program that does not run to its end; the message says why."""


class Worker:
    """A program in a process of its own.

    Args:
        job: What ``worker`` is to serve.

    Raises:
        Problem: if the program does not start.
    """

    def __init__(self, **job: Any):
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (closed by close)
        # Idle threads of OpenMP would spin while the other program is measured.
        environ = {**os.environ, "OMP_WAIT_POLICY": "passive"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.worker", json.dumps({"options": {}, **job})],
            cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, encoding="utf-8",
        )  # fmt: skip
        try:
            self._answer()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._log.seek(0)
            last = [said.strip() for said in self._log if said.strip()][-1:] or ["nothing said"]
            raise Problem(f"its process ended with status {status}: {last[0][:200].rstrip('.')}.")
        answer = json.loads(line)
        if "problem" in answer:
            raise Problem(answer["problem"])
        return answer

    def ask(self, request: str) -> dict[str, Any]:
        """What the program answers to ``turn SECONDS`` or ``divergence``.

        Raises:
            Problem: if it cannot.
        """
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the answer says why
            self._process.stdin.write(f"{request}\n")
            self._process.stdin.flush()
        return self._answer()

    def warm_up(self) -> int:
        """Steps that do not count; how many."""
        begin, made = time.perf_counter(), 0
        while made < LEAST or (made < WARM_STEPS and time.perf_counter() - begin < WARM_SECONDS):
            made += len(self.ask("turn 0")["steps"])
        return made

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()


def summary(turns: list[dict[str, Any]], quality: dict[str, Any]) -> dict[str, Any]:
    """Numbers of a program: medians and quartiles of its steps, and what its projection leaves."""
    steps = [step for turn in turns for step in turn["steps"]]
    clock, processor = ([step[key] for step in steps] for key in ("ms", "processor_ms"))
    return {
        "ms": statistics.median(clock),
        "quartiles_ms": spread(clock),
        "processor_ms": statistics.median(processor),
        "processor_quartiles_ms": spread(processor),
        "idle_ms": statistics.median(turn["idle_ms"] for turn in turns),
        "left": quality["left"],
        "iterations": quality["iterations"],
        "pressure_solver": quality["solver"],
        "turns": turns,
    }


def wavefront(ours: Worker, theirs: Worker, rounds: int, seconds: float) -> dict[str, Any]:
    """Let both, warmed up, step in turn.

    Args:
        ours: Goes first in every round.
        theirs: Goes second.
        rounds: Turns of each.
        seconds: No round begins after so long, but for the first ``LEAST``.

    Returns:
        ``ours`` and ``theirs``, and ``ratio`` and ``processor_ratio``, theirs over ours.
    """
    turns: tuple[list, list] = [], []
    begin = time.perf_counter()
    for made in range(rounds):
        if made >= LEAST and time.perf_counter() - begin > seconds:
            break
        for program, taken in zip((ours, theirs), turns, strict=True):
            time.sleep(REST)
            taken.append(program.ask(f"turn {TURN}"))
    own, other = (
        summary(taken, program.ask("divergence")) for program, taken in zip((ours, theirs), turns, strict=True)
    )
    return {
        "ours": own,
        "theirs": other,
        "ratio": other["ms"] / own["ms"],
        "processor_ratio": other["processor_ms"] / own["processor_ms"],
    }
