"""A dam breaks in two dimensions: the front of the water beside what theory says of it.

You will see the column fall, its tongue run along the floor, climb the wall and turn over.
Try: drag with the mouse in the window to push it; liquid.transfer = "apic"; fluid.gravity.
The fastest front there can be is Ritter's (1892): 2 sqrt(g h).

    python demos/dam2d.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 160, seconds: float = 1.5) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("dam2d").with_values({"domain.resolution": resolution}))
    liquid, told = simulation.liquid, simulation.scene.liquid
    assert liquid is not None and told is not None, "the scene is one of water"
    body, volume = told.bodies[0], liquid.volume
    edge, height = body.center[0] + 0.5 * body.size[0], body.size[1]
    front, most = edge, 0.0
    while simulation.time < seconds:
        simulation.step()
        if front < 0.9 * simulation.grid.size[0]:
            front = float(liquid.particles.to_numpy()["position"][:, 0].max())
            most = max(most, (front - edge) / (2 * np.sqrt(9.81 * height) * simulation.time))

    print(f"{simulation.steps} steps on {arch}: the front went at up to {most:.2f} of Ritter's speed;", end=" ")
    print(f"{100 * (1 - liquid.volume / volume):.2f} % of the water lost")
    assert 0.3 < most < 1.1, "the front runs nearly as fast as theory allows, and no faster"
    assert abs(1 - liquid.volume / volume) < 0.03, "water is neither made nor lost"

    picture = Path("demo_dam2d.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
