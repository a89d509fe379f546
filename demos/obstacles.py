"""Smoke in the way of solids: a swinging ball, a turning bar, and a shape of our own.

You will see smoke part around the ball, be beaten by the bar and leave through the open top around a turning cross.
Try: another signed distance in ``cross``, slip=True, a Motion of your own (anything with ``at(time)`` and ``moves``).

    python demos/obstacles.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import taichi as ti

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


@ti.func
def cross(x):
    """Signed distance to two crossed bars, m, around the pivot."""
    beside = ti.min(ti.max(ti.abs(x[1]), ti.abs(x[2])), ti.max(ti.abs(x[1]), ti.abs(x[0])))
    return ti.max(beside - 0.04, ti.max(ti.abs(x[0]), ti.abs(x[2])) - 0.28)


def main(arch: str = "auto", resolution: int = 96, seconds: float = 2.0) -> None:
    arch = backend.start(arch, announce=True)
    spin = tf.Motion(pivot=(0.5, 1.35, 0.5), angular_velocity=(0.0, -3.0, 0.0))
    scene = tf.preset("obstacles").with_values({"domain.resolution": resolution})
    simulation = tf.Simulation(scene, solids=[tf.Solid(cross, motion=spin)])
    simulation.advance(seconds)

    grid, smoke = simulation.grid, simulation.to_numpy("smoke")
    fluid = simulation.to_numpy("fluid")
    left = simulation.diagnostics.divergence(simulation.state.velocity.current)
    print(f"{simulation.steps} steps on {arch}: {int((fluid == 0).sum())} cells are solid,", end=" ")
    print(f"{smoke.sum() * grid.cell_volume:.3f} m³ of smoke, divergence {left.rms:.1e} 1/s")
    assert not smoke[fluid == 0].any(), "no smoke may enter a solid"
    assert smoke.sum() > 0
    assert left.rms < 1e-2, "what a solid pushes away must find its way around it"

    picture = Path("demo_obstacles.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
