"""A ball of water falls into a pool.

You will see it dig a crater, throw up a crown, and a jet rise from the middle when the crater closes.
Try: a faster ball (liquid.bodies), liquid.transfer = "apic", a shallower pool.

    python demos/splash.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 80, seconds: float = 0.8) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("splash").with_values({"domain.resolution": resolution}))
    liquid, told = simulation.liquid, simulation.scene.liquid
    assert liquid is not None and told is not None, "the scene is one of water"
    volume, highest = liquid.volume, 0.0
    while simulation.time < seconds:
        simulation.step()
        highest = max(highest, float(liquid.particles.to_numpy()["position"][:, 1].max()))

    pool = told.bodies[0].size[1]
    print(f"{simulation.steps} steps on {arch}: {100 * (1 - liquid.volume / volume):.2f} % of the water lost,", end=" ")
    print(f"drops up to {highest:.2f} m above the floor of a pool {pool:.2f} m deep")
    assert abs(1 - liquid.volume / volume) < 0.02, "water is neither made nor lost"
    parts = liquid.particles.to_numpy()
    sideways = np.abs(parts["velocity"][:, [0, 2]].mean(axis=0)).max()
    assert sideways < 0.05, "what falls straight goes on average nowhere else"

    picture = Path("demo_splash.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
