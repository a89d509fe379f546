"""Two coloured jets that collide.

You will see an orange and a blue jet meet in the middle and spread as a sheet in which the colours mix.
Try: sources of different speed, a second pair from above, dye that fades (fluid.smoke_dissipation).

    python demos/jets.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 64, seconds: float = 1.2) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("jets").with_values({"domain.resolution": resolution}))
    before = simulation.diagnostics.kinetic_energy(simulation.state.velocity.current)
    steps = simulation.advance(seconds)

    red, _, blue = simulation.to_numpy("dye")
    x, _, _ = simulation.grid.cell_centres()
    centre_of_red, centre_of_blue = (float((dye * x).sum() / dye.sum()) for dye in (red, blue))
    print(f"{len(steps)} steps on {arch}: red dye around x = {centre_of_red:.2f} m, blue around {centre_of_blue:.2f} m")
    assert centre_of_red < centre_of_blue, "each colour must stay on its own side on the whole"
    middle = abs(x - 1.0) < 0.3
    assert min(float((dye * middle).max()) for dye in (red, blue)) > 0, "both must reach the middle"
    assert simulation.diagnostics.kinetic_energy(simulation.state.velocity.current) > before

    picture = Path("demo_jets.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
