"""White dye in black water between walls that hold it, with rho and dt in the projection.

You will see two jets of dye that meet, and a third from below.
Try: domain.boundaries = "free-slip"; solver.sweeps = 20, as in the report, and look at what divergence it leaves.
After Lam: A Simple Method for Two-Dimensional Fluid Simulation (2020), and Stam (2003).

    python demos/dye2d.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 192, seconds: float = 1.6) -> None:
    arch = backend.start(arch, announce=True)
    scene = tf.preset("dye2d").with_values({"domain.resolution": resolution})
    water = tf.Simulation(scene)
    water.advance(seconds)
    light = tf.Simulation(scene.with_values({"fluid.rho": 1.0}))
    light.advance(seconds)

    ratio = float(np.abs(water.to_numpy("pressure")).max() / np.abs(light.to_numpy("pressure")).max())
    difference = float(np.abs(water.to_numpy("velocity") - light.to_numpy("velocity")).max())
    print(
        f"{water.steps} steps on {arch}: water presses {ratio:.0f} times as hard as what weighs a thousandth, ", end=""
    )
    print(f"and moves alike to {difference:.1g} m/s")
    assert abs(ratio - 1000) < 10, "pressure goes with rho"
    assert difference < 1e-3, "the flow does not"
    smoke, source = water.to_numpy("smoke"), scene.sources[0]
    assert smoke.min() >= 0, "no dye can be less than none"
    assert smoke.max() <= source.smoke * seconds, "nor more than what a place was given"

    picture = Path("demo_dye2d.png")
    write_png(picture, tf.Renderer(water).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
