"""Water is poured into a glass.

You will see a jet hit the bottom, splash up the walls, and the glass fill.
Try: sources.0.velocity, a wider jet, a hole in a wall.

    python demos/pour.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 80, seconds: float = 1.6) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("pour").with_values({"domain.resolution": resolution}))
    liquid = simulation.liquid
    assert liquid is not None, "the scene is one of water"
    simulation.advance(seconds)

    source = simulation.scene.sources[0]
    opening, speed = np.pi * source.radius**2, np.linalg.norm(source.velocity)
    poured = opening * speed * min(simulation.time, source.end)
    print(f"{simulation.steps} steps on {arch}: {1000 * liquid.volume:.2f} litres of water,", end=" ")
    print(f"{1000 * poured:.2f} litres by the size and the speed of the jet")
    assert 0.5 * poured < liquid.volume < 2.0 * poured, "as much water as the jet brings"
    cells = np.floor(liquid.particles.to_numpy()["position"] / simulation.grid.dx).astype(int)
    assert simulation.to_numpy("fluid")[tuple(cells.T)].all(), "no water may enter the glass"

    picture = Path("demo_pour.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
