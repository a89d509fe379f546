"""A wheel with four paddles turns in a pool.

You will see each paddle dive in, push the water on and throw it over as it comes out.
Try: solids.*.angular_velocity, a deeper pool, liquid.transfer = "apic".

    python demos/paddle.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def energy(liquid) -> float:
    """What a kilogram has on average by its height and its speed, J."""
    parts = liquid.particles.to_numpy()
    return float((9.81 * parts["position"][:, 1] + 0.5 * (parts["velocity"] ** 2).sum(axis=1)).mean())


def main(arch: str = "auto", resolution: int = 72, seconds: float = 1.0) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("paddle").with_values({"domain.resolution": resolution}))
    liquid = simulation.liquid
    assert liquid is not None, "the scene is one of water"
    volume, before = liquid.volume, energy(liquid)
    simulation.advance(seconds)

    parts = liquid.particles.to_numpy()
    gained, lost = energy(liquid) - before, 1 - liquid.volume / volume
    fastest = 5.0 * 0.27
    print(f"{simulation.steps} steps on {arch}: {100 * lost:.2f} % of the water lost; the wheel has given", end=" ")
    print(f"a kilogram {gained:.3f} J")
    assert abs(lost) < 0.03, "water is neither made nor lost"
    assert 0.01 < gained < 0.5 * fastest**2, "it is driven, and on average no faster than the paddles"
    cells = np.floor(parts["position"] / simulation.grid.dx).astype(int)
    assert simulation.to_numpy("fluid")[tuple(cells.T)].all(), "no water may enter a paddle"

    picture = Path("demo_paddle.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
