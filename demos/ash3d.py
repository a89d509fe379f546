"""A cube of fluid into which dye and velocity are put, as in Fluid Simulation for Dummies.

You will see three colours that meet in a cube, and the same dye on a slice through its middle.
Try: grid "staggered" in place of "collocated", and watch the divergence that is left; solver.sweeps = 4, as printed.
After Ash: Fluid Simulation for Dummies (2006), and Stam: Real-Time Fluid Dynamics for Games (2003).

    python demos/ash3d.py [arch] [resolution] [seconds]
"""

import math
import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 48, seconds: float = 2.0) -> None:
    arch = backend.start(arch, announce=True)
    scene = tf.preset("ash3d").with_values({"domain.resolution": resolution})
    simulation = tf.Simulation(scene)
    simulation.advance(seconds)

    dye = simulation.to_numpy("dye")
    divergence = simulation.diagnostics.divergence(simulation.state.velocity.current)
    print(f"{simulation.steps} steps on {arch}: a divergence of {divergence.rms:.2g} 1/s is left (root mean square)")
    assert dye.min() >= 0, "no dye can be less than none"
    orange = scene.sources[0]
    added = orange.dye[0] * min(seconds, orange.end or seconds) * 4 / 3 * math.pi * orange.geometry()[2] ** 3
    kept = float(dye[0].sum()) * simulation.grid.cell_volume / added
    assert kept > 0.7, "dye that is put into a closed cube must stay there; the other sources bring in some red too"

    volume = tf.Renderer(simulation).render()
    simulation.scene = scene.with_values({"look.view": "slice"})
    picture = Path("demo_ash3d.png")
    write_png(picture, np.hstack([volume, tf.Renderer(simulation).render()]))
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
