"""A dam breaks: a column of water falls, runs, meets a pillar and climbs the far wall.

You will see the tongue part at the pillar, a jet shoot up the wall, fall over and go back as a wave.
Try: liquid.transfer = "flip" (livelier), domain.resolution, a pillar of your own.

    python demos/dam.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def energy(simulation: tf.Simulation) -> float:
    """Of a kilogram of water on average, J, by its height and its speed, from what lies below the surface."""
    filled = np.clip(0.5 - simulation.to_numpy("level set") / simulation.grid.dx, 0, 1)
    squares = (simulation.to_numpy("velocity") ** 2).sum(0)  # at the lower faces of each cell
    return float((filled * (9.81 * simulation.grid.cell_centres()[1] + 0.5 * squares)).sum() / filled.sum())


def main(arch: str = "auto", resolution: int = 72, seconds: float = 1.2) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("dam").with_values({"domain.resolution": resolution}))
    liquid = simulation.liquid
    assert liquid is not None, "the scene is one of water"
    volume, energies = liquid.volume, []
    while simulation.time < seconds:
        simulation.step()
        energies.append(energy(simulation))

    lost = 1 - liquid.volume / volume
    print(f"{simulation.steps} steps on {arch}: {100 * lost:.2f} % of the water lost;", end=" ")
    print(f"energy of a kilogram from {energies[0]:.2f} to {energies[-1]:.2f} J")
    assert abs(lost) < 0.02, "water is neither made nor lost"
    assert max(energies) < 1.05 * energies[0], "falling water gains no energy"
    cells = np.floor(liquid.particles.to_numpy()["position"] / simulation.grid.dx).astype(int)
    assert simulation.to_numpy("fluid")[tuple(cells.T)].all(), "no water may enter the pillar"

    picture = Path("demo_dam.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
