"""An explosion: for a tenth of a second gas is blown into the air, and fuel burns in it.

You will see a fireball that bursts, rises, rolls up into a ring and goes out in its own soot.
Try: sources.0.blast=60, combustion.expansion=2, fluid.radiation=0 (it glows for longer), fluid.confinement=0.
After Feldman, O'Brien, Arikan: Animating Suspended Particle Explosions (2003).

    python demos/explosion.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 56, seconds: float = 1.2) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("explosion").with_values({"domain.resolution": resolution}))
    grid, diagnostics, divergence = simulation.grid, simulation.diagnostics, simulation.grid.array()
    prescribed, grown = 0.0, 0.0
    while simulation.time < seconds:
        dt = simulation.step().dt
        diagnostics.compute_divergence(simulation.state.velocity.current, divergence)
        prescribed += dt * diagnostics.integral(simulation.expansion)
        grown += dt * diagnostics.integral(divergence)
    smoke, y = simulation.to_numpy("smoke"), grid.cell_centres()[1]
    height = float((smoke * y).sum() / smoke.sum())
    print(f"{simulation.steps} steps on {arch}: {grown:.2f} m³ of gas came to be, {prescribed:.2f} m³ were prescribed;")
    print(f"the soot's centre is {height:.2f} m above the ground, and {simulation.burnt:.2f} m³ of fuel burnt")
    assert abs(grown - prescribed) < 1e-3 * prescribed, "what expands finds room, and nothing else does"
    assert height > 1.0, "a fireball rises"

    picture = Path("demo_explosion.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
