"""Smoke on a MAC grid: buoyancy from temperature, vorticity confinement, conjugate gradients, drawn as sheets.

You will see hot smoke that rises from a square vent and rolls up.
Try: taichi-fluid doctor, which works through the tutorial's own numbers; view "arrows"; fluid.confinement = 0.
After Normoyle: Fluid Simulation Tutorial, and Fedkiw, Stam, Jensen: Visual Simulation of Smoke (2001).

    python demos/mac_smoke.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 72, seconds: float = 2.0) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("mac_smoke").with_values({"domain.resolution": resolution}))
    steps = simulation.advance(seconds)

    velocity = simulation.state.velocity.current
    divergence = simulation.diagnostics.divergence(velocity).max
    changing = simulation.diagnostics.largest_magnitude(velocity) / simulation.grid.dx
    pressure = steps[-1].pressure
    assert pressure is not None
    print(
        f"{len(steps)} steps on {arch}: {pressure.iterations} iterations of conjugate gradients, "
        f"{divergence / changing:.1e} of the velocity gradients is divergence"
    )
    assert divergence < 1e-2 * changing, "a velocity that is projected to tolerance is all but free of divergence"
    _, y, _ = simulation.grid.cell_centres()
    smoke, heat = simulation.to_numpy("smoke"), simulation.to_numpy("temperature")
    assert float((smoke * y).sum() / smoke.sum()) > 0.06, "hot smoke must rise from its vent"
    assert float(heat.min()) > -1e-3, "nothing is colder than the air around"

    picture = Path("demo_mac_smoke.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
