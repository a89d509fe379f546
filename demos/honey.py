"""Honey falls on a table.

You will see the thread grow thin as it falls, heap up where it lands, and the heap spread slowly.
Try: fluid.viscosity (m²/s: 0.0005 is oil, 0.05 thick syrup), liquid.surface_tension.

    python demos/honey.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 64, seconds: float = 0.8) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("honey").with_values({"domain.resolution": resolution}))
    liquid = simulation.liquid
    assert liquid is not None, "the scene is one of water"
    simulation.advance(seconds)

    parts = liquid.particles.to_numpy()
    low = parts["position"][:, 1] < 0.02
    radius = np.hypot(*(parts["position"][low][:, [0, 2]] - 0.1).T).max()
    speed = np.linalg.norm(parts["velocity"][low], axis=1).mean()
    falling = np.sqrt(2 * 9.81 * 0.16)
    print(
        f"{simulation.steps} steps on {arch}: {1e6 * liquid.volume:.0f} ml; the heap is {100 * radius:.1f} cm wide",
        end=" ",
    )
    print(f"and goes at {speed:.3f} m/s, where what falls so deep would have {falling:.2f} m/s")
    assert speed < 0.2 * falling, "friction takes what it has fallen"
    assert liquid.lacking == 0 or abs(liquid.lacking) < 0.02 * liquid.target, "honey is neither made nor lost"
    aside = np.abs(parts["position"][low][:, [0, 2]].mean(axis=0) - 0.1).max()
    assert aside < 0.006, "a heap is round"

    picture = Path("demo_honey.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
