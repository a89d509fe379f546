"""An interactive grid without its window: a drag adds density and velocity, and both fade.

You will see arrows over the density that a stroke to the right has left.
Try: taichi-fluid demo godot2d, and drag for yourself; fluid.viscosity, fluid.smoke_fade, solver.sweeps = 20.
After the tutorial Navier-Stokes fluid simulation explained with Godot game engine, and Stam (2003).

    python demos/godot2d.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 64, seconds: float = 1.0) -> None:
    arch = backend.start(arch, announce=True)
    scene = tf.preset("godot2d").with_values({"domain.resolution": resolution})
    scene = scene.with_values(
        {f"sources.{i}.begin": 1e5 for i in range(4)} | {f"sources.{i}.end": 2e5 for i in range(4)}
    )
    simulation = tf.Simulation(scene)
    smoke = simulation.state.carried["smoke"].current
    for i in range(10):  # a drag of a sixth of a second, a piece of it before each step
        place, further = 0.3 + 0.03 * i, 0.3 + 0.03 * (i + 1)
        simulation.paint((place, 0.5), (further, 0.5), 0.035, velocity=(1.0, 0.0), smoke=1.0, add=True)
        simulation.step(dt=1 / 60)
    painted = simulation.diagnostics.integral(smoke)
    speed = float(simulation.to_numpy("velocity")[0].max())

    simulation.advance(seconds)
    left = simulation.diagnostics.integral(smoke)
    slower = float(simulation.to_numpy("velocity")[0].max())
    print(
        f"{simulation.steps} steps on {arch}: density {painted:.3f} -> {left:.3f}, speed {speed:.2f} -> {slower:.2f} m/s"
    )
    assert speed > 0.5, "the drag must push the fluid along"
    assert 0 <= left < painted, "density must fade"
    assert slower < speed, "and so must the velocity"
    x, _ = simulation.grid.cell_centres()
    density = simulation.to_numpy("smoke")
    assert float((density * x).sum()) > 0.45 * float(density.sum()), "density goes where the drag went"

    picture = Path("demo_godot2d.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
