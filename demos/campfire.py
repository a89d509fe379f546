"""A campfire: logs lean together, and fuel burns among them.

You will see flames find their way between the logs and meet above them, with a little soot at their tips.
Try: solids.0.radius=0.12, a log less, combustion.burn_rate=4, look.view=tracers.

    python demos/campfire.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 64, seconds: float = 2.0) -> None:
    arch = backend.start(arch, announce=True)
    scene = tf.preset("campfire").with_values({"domain.resolution": resolution})
    simulation = tf.Simulation(scene)
    simulation.advance(seconds)

    x, y, z = simulation.grid.cell_centres()
    heat, fluid = simulation.to_numpy("temperature"), simulation.to_numpy("fluid")
    from_axis = np.hypot(x - 0.6, z - 0.6) + 0 * y
    above = heat[(from_axis < 0.2) & (y > 0.45)].max()
    beside = heat[(from_axis > 0.5) & (y + 0 * from_axis < 0.45)].max()
    print(f"{simulation.steps} steps on {arch}: {int((fluid == 0).sum())} cells are wood,", end=" ")
    print(f"{above:.0f} K above the logs and {beside:.0f} K beside them, {simulation.burnt:.4f} m³ of fuel burnt")
    for name in ("smoke", "fuel", "temperature"):
        assert not simulation.to_numpy(name)[fluid == 0].any(), f"no {name} may enter the logs"
    assert above > scene.combustion.ignition, "flames reach above the logs"
    assert above > 3 * beside, "a fire is hot above itself, not beside"

    picture = Path("demo_campfire.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
