"""A torch: fuel from a bowl that burns, expands, glows and leaves soot.

You will see yellow flames lick up from the bowl, redden as they radiate their heat away, and end in smoke.
Try: combustion.burn_rate=4 (taller), combustion.soot=2, fluid.radiation=0.5 (hotter tips), combustion.expansion=4.
After Nguyen, Fedkiw, Jensen (2002) and Feldman, O'Brien, Arikan (2003).

    python demos/fire.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png
from taichi_fluid.physics.sources import Emitter


def main(arch: str = "auto", resolution: int = 64, seconds: float = 2.0) -> None:
    arch = backend.start(arch, announce=True)
    scene = tf.preset("fire").with_values({"domain.resolution": resolution})
    for source in range(
        len(scene.sources)
    ):  # without patches that come and go, what they supply is rate times volume times time
        scene = scene.with_values({f"sources.{source}.mottle": 0.0})
    simulation = tf.Simulation(scene)
    simulation.advance(seconds)

    grid, diagnostics = simulation.grid, simulation.diagnostics
    supply = grid.array()
    for source in scene.sources:
        Emitter(grid, source.shape, *source.geometry()).add(supply, source.fuel, seconds)
    supplied, burnt = diagnostics.integral(supply), simulation.burnt
    left = diagnostics.integral(simulation.state.carried["fuel"].current)
    hottest = simulation.to_numpy("temperature").max()
    print(f"{simulation.steps} steps on {arch}: of {supplied:.4f} m³ of fuel {burnt:.4f} burnt and {left:.4f} is left;")
    print(f"the hottest gas is {hottest:.0f} K above ambient")
    assert hottest > scene.combustion.ignition, "a flame is hotter than what lights it"
    # Little leaves before it burns; carrying values, not amounts, through flames a few cells thick loses a part.
    assert 0.5 * supplied < burnt + left < 1.1 * supplied, "what is supplied burns or is left"
    assert burnt > left, "most of it burns"

    picture = Path("demo_fire.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
