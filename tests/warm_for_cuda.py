"""``taichi-fluid warm`` that launches the kernels of a solver too, in a process of its own: ``python warm_for_cuda.py NAME…``.

On no GPU nothing is left to solve, so a solver records nothing and replays nothing, and of that no machine code is made.
"""

import sys

from taichi_fluid.app.cli import main
from taichi_fluid.kernels import GraphRecorder
from taichi_fluid.pressure.methods import ConjugateGradients

record, solve = GraphRecorder.launch, ConjugateGradients.solve


def record_and_launch(self, kernel, *args) -> None:
    record(self, kernel, *args)
    kernel(*args)


def record_and_solve(self, rhs, out, null_space, *others):
    self._replay_on(out, null_space)
    return solve(self, rhs, out, null_space, *others)


GraphRecorder.launch, ConjugateGradients.solve = record_and_launch, record_and_solve
main(["warm", *sys.argv[1:], "--arch", "cuda"])
