"""A tank of water is carried to and fro, nearly as fast as the water sloshes by itself.

You will see the waves grow from swing to swing, until they break at the walls.
Try: solids.*.swing_period (farther from 1.35 s the waves beat), a deeper tank.
The first mode of a tank has the frequency sqrt(g k tanh(k h)) / 2 pi (linear theory; Lamb, Hydrodynamics).

    python demos/slosh.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 140, seconds: float = 2.7) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("slosh").with_values({"domain.resolution": resolution}))
    liquid = simulation.liquid
    assert liquid is not None, "the scene is one of water"
    volume, heights = liquid.volume, []
    while simulation.time < seconds:
        simulation.step()
        heights.append(float(liquid.particles.to_numpy()["position"][:, 1].max()))

    position = liquid.particles.to_numpy()["position"]
    shift = 0.02 * np.sin(2 * np.pi * simulation.time / 1.35)
    wall = 0.2 + shift, 1.2 + shift
    half = len(heights) // 2
    print(f"{simulation.steps} steps on {arch}: the water rose to {max(heights[:half]):.3f} m, later to", end=" ")
    print(f"{max(heights[half:]):.3f} m; {100 * (1 - liquid.volume / volume):.2f} % of it lost")
    assert abs(1 - liquid.volume / volume) < 0.02, "water is neither made nor lost"
    dx = simulation.grid.dx
    assert (position[:, 0] > wall[0] - dx).all() and (position[:, 0] < wall[1] + dx).all(), "no water passes a wall"
    assert max(heights[half:]) > max(heights[:half]), "near resonance waves grow"

    picture = Path("demo_slosh.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
