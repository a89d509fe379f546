"""A vortex street: what flows past a cylinder cannot decide on a side.

You will see dye from the inlet part at the cylinder and roll up behind it, above and below in turn.
Try: fluid.viscosity three times as large (the street dies), solver.faces = "voxels", a second cylinder in the wake.
After von Kármán (1911); the flow is validated in tests/validation/test_cylinder.py.

    python demos/karman.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 384, seconds: float = 6.0) -> None:
    arch = backend.start(arch, announce=True)
    scene = tf.preset("karman").with_values({"domain.resolution": resolution})
    simulation = tf.Simulation(scene)
    simulation.advance(seconds)

    speed, height = 1.0, simulation.grid.size[1]
    along, across = simulation.to_numpy("velocity")
    flux = along[-3].sum() * simulation.grid.dx
    print(f"{simulation.steps} steps on {arch}: {flux:.4f} m²/s leave, {speed * height:.4f} m²/s enter;", end=" ")
    print(f"in the wake the flow goes sideways with up to {np.abs(across[resolution // 4 :]).max():.2f} m/s")
    assert abs(flux - speed * height) < 1e-3 * speed * height, "what enters must leave"

    x, y = simulation.grid.cell_centres()
    solid = scene.solids[0]
    inside = np.hypot(x - solid.center[0], y - solid.center[1]) < solid.radius - simulation.grid.dx
    assert not simulation.to_numpy("dye")[:, inside].any(), "no dye may enter the cylinder"

    picture = Path("demo_karman.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
