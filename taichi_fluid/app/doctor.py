"""Which backends start here, and do they compute the right answer.

Every arch is tried in a process of its own, because a missing driver can end the process that asks for it.
"""

import json
import math
import os
import re
import subprocess
import sys
import tempfile
from typing import Any, NamedTuple

import numpy as np

from .._ti import ti
from ..backend import probe_environment, start_here
from ..boundaries.sides import Boundary
from ..boundaries.walls import Walls
from ..grid import Grid, Scratch
from ..physics.advection import Advection, Scheme, Trace
from ..pressure.projection import Projection
from .devices import device_of, largest_of, reason, remedy

STARTED = "taichi-fluid-doctor started"
ANSWER = "taichi-fluid-doctor:"
SECONDS = 180
METHODS = ("auto", "multigrid-cg", "cg")
"""Solvers of the pressure that are tried: what scenes have on this arch, and those that run on every one."""
TOLERANCE = 2e-6
"""A handful of f32 operations on numbers of order ten, relative to the largest of them."""

PRINTED = {
    "rhs": [-9.0, 9.0, 0.0, 0.0],
    "pressure": [-3.375, 3.375, -1.125, 1.125],
    "u": [0.0, 0.0, -0.225, 0.225, 0.0, 0.0],
    "v": [0.0, 0.225, 0.0, 0.0, -0.225, 0.0],
}
"""What Normoyle's tutorial prints for its 2x2x1 grid, the last axis fastest."""
ADVECTED = {Trace.EULER: 0.9, Trace.RK2: 0.905, Trace.RK3: 0.9 + 0.1**2 / 2 - 0.1**3 / 6}
"""v(0,1,0) after advection: dx = 1, dt = 0.1, v = 1 falling to 0 over one cell; two and three stages by hand."""


def normoyle(dim: int, method: str, trace: Trace = Trace.EULER) -> dict[str, list[float]]:
    """Normoyle's 2x2x1 case through the production path: one unit of velocity, advected and projected.

    dx = 1 m, dt = 0.1 s, rho = 1, closed box, v(0,1,0) = 1 and all else 0.

    Args:
        dim: 3 for a grid of 2x2x1 cells, 2 for one of 2x2.
        method: Of the pressure solver.
        trace: How paths are followed.

    Returns:
        ``advected`` (every v), ``rhs``, ``pressure`` (its mean removed), ``u``, ``v`` and in 3D ``w``, flat.
    """
    grid = Grid((2, 2, 1)[:dim], 1.0)
    walls = Walls(grid, [(Boundary.FREE_SLIP, Boundary.FREE_SLIP)] * dim)
    velocity, advected, pressure = grid.velocity(), grid.velocity(), grid.array()
    faces = list(grid.face_velocity_to_numpy(velocity))
    faces[1][(0, 1, 0)[:dim]] = 1.0
    grid.face_velocity_from_numpy(velocity, faces)
    walls.fill_velocity(velocity)
    scratch = Scratch(grid)
    Advection(grid, walls, scratch, Scheme.SEMI_LAGRANGIAN, trace).carry_velocity(velocity, advected, 0.1)
    result = {"advected": grid.face_velocity_to_numpy(advected)[1].ravel().tolist()}
    projection = Projection(grid, walls, scratch, method)
    projection.project(advected, pressure, dt=0.1, rho=1.0, tolerance=1e-6)
    p = grid.to_numpy(pressure).ravel()
    result |= {"rhs": grid.to_numpy(scratch.first).ravel().tolist(), "pressure": (p - p.mean()).tolist()}
    for name, face in zip("uvw", grid.face_velocity_to_numpy(advected), strict=False):
        result[name] = face.ravel().tolist()
    return result


def normoyle_error(dim: int, method: str) -> float:
    """Largest difference from the printed numbers, relative to the largest number of each kind."""
    found = normoyle(dim, method)
    error = max(
        float(np.abs(np.subtract(found[name], expected)).max() / np.abs(expected).max())
        for name, expected in PRINTED.items()
    )
    for trace, expected in ADVECTED.items():
        advected = normoyle(dim, method, trace)["advected"]
        error = max(error, float(np.abs(np.subtract(advected, [0, expected, 0, 0, 0, 0])).max()))
    error = max(error, max(map(abs, found.get("w", [0.0]))))
    numbers = np.concatenate([np.ravel(values) for values in (*found.values(), [error])])
    return error if np.isfinite(numbers).all() else math.inf


def examine(arch: str) -> dict[str, Any]:
    """Start ``arch`` in another process and let it compute; what came of it, ready for JSON.

    Returns:
        ``arch``, ``starts``, ``right`` (None if it did not start, False too if it broke off), ``error`` (largest relative
        difference), ``device``, its ``driver``, its ``memory`` in bytes (None where nothing says it) and the ``largest`` grids
        that fit into it, ``note`` (why it does not start) and ``remedy`` (what helps).
    """
    finding = blank(arch)
    if arch == "metal" and sys.platform != "darwin":
        return {**finding, "note": "only on macOS"}
    if arch == "opengl" and sys.platform.startswith("linux") and not os.environ.get("DISPLAY"):
        return {**finding, "note": "needs a display (DISPLAY is not set)"}
    said = ask("taichi_fluid.app.doctor", arch, seconds=SECONDS)
    if said.status is None:
        return {**finding, "note": f"did not answer within {SECONDS} s"}
    answers = said.lines(ANSWER)
    if not answers and STARTED in said.text:
        words = f"started, then ended with status {said.status}: {said.last_words}"
        return {**finding, "starts": True, "right": False, "note": words}
    if not answers:
        how = "ended the process" if said.status < 0 else "does not start"
        return {**finding, "note": f"{how} (status {said.status}): {reason(said.text) or said.last_words}"}
    device = device_of(arch, said.text)
    found = {
        "device": device.name,
        "driver": device.driver,
        "memory": device.memory,
        "largest": largest_of(device.memory),
    }
    return {**finding, "starts": True, **json.loads(answers[-1]), **found, "remedy": remedy(arch, device.name)}


def blank(arch: str) -> dict[str, Any]:
    """What ``examine`` says of a backend that does not start, and of which nothing is known."""
    finding = {"arch": arch, "starts": False, "right": None, "error": None, "device": "", "driver": "", "memory": None}
    return finding | {"largest": {}, "note": "", "remedy": remedy(arch)}


class Said(NamedTuple):
    """What another process has said.

    Attributes:
        text: All it has printed, errors too.
        status: What it ended with; None if it was cut off.
    """

    text: str
    status: int | None

    def lines(self, mark: str) -> list[str]:
        """The lines that begin with ``mark``, without it."""
        return [line[len(mark) :] for line in self.text.splitlines() if line.startswith(mark)]

    @property
    def last_words(self) -> str:
        """The last line that names an error, else the last one."""
        lines = [line.strip() for line in self.text.splitlines() if line.strip() and not line.startswith("***")]
        named = [line for line in lines if "rror" in line]
        words = re.sub(r"^\[.*?\]\s*(\[.*?\]\s*)?", "", (named or lines or ["nothing said"])[-1])
        return words[:120]


def ask(module: str, *arguments: str, seconds: float) -> Said:
    """Run a module in a process of its own, which a missing driver may end, for so many seconds at most."""
    with tempfile.TemporaryFile("w+") as log:
        try:
            status = subprocess.run(
                [sys.executable, "-m", module, *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=seconds,
                env=probe_environment(),
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
        log.seek(0)
        return Said(log.read(), status)


def _answer(arch: str) -> None:
    """Compute here, in a process of its own, and print the finding."""
    start_here(arch, log_level=ti.TRACE)  # which names the device
    ti.set_logging_level(ti.ERROR)
    print(STARTED, flush=True)
    error = max(normoyle_error(dim, method) for dim in (2, 3) for method in METHODS)
    finding = {"right": error <= TOLERANCE, "error": error if math.isfinite(error) else None}
    print(ANSWER + json.dumps(finding), flush=True)


if __name__ == "__main__":
    _answer(sys.argv[1])
