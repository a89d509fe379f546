"""Hot smoke rising in a closed box.

You will see a mushroom of smoke that rolls up below the ceiling.
Try: a heavier smoke (fluid.smoke_weight=0.02), no vortex spinning (fluid.confinement=0), fluid.viscosity=0.01.
After Fedkiw, Stam, Jensen: Visual Simulation of Smoke (2001).

    python demos/plume.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 64, seconds: float = 3.5) -> None:
    arch = backend.start(arch, announce=True)
    scene = tf.preset("plume").with_values({"domain.resolution": resolution})
    simulation = tf.Simulation(scene)
    simulation.advance(seconds)

    smoke, upwards = simulation.to_numpy("smoke"), simulation.to_numpy("velocity")[1]
    _, y, _ = simulation.grid.cell_centres()
    height, speed = (float((smoke * each).sum() / smoke.sum()) for each in (y, upwards))
    print(f"{simulation.steps} steps on {arch}: the smoke's centre is at {height:.2f} m, it rises at {speed:.2f} m/s")
    assert speed > 0, "hot smoke must rise"
    left = simulation.diagnostics.divergence(simulation.state.velocity.current).rms
    assert left < 0.01, f"the velocity still diverges by {left:.2g}/s"

    picture = Path("demo_plume.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
