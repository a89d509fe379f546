"""A drop of water falls on a film of it.

You will see a sheet rise around the drop, and its rim break into beads: it takes a hundredth of a second.
Try: liquid.surface_tension = 0 (the sheet tears into spray), a thicker film.
The foot of a crown runs outwards as sqrt(t) (Yarin, Weiss 1995).

    python demos/crown.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 48, seconds: float = 0.014) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("crown").with_values({"domain.resolution": resolution}))
    liquid = simulation.liquid
    assert liquid is not None, "the scene is one of water"
    volume, radii, times = liquid.volume, [], []
    seconds = min(seconds, 0.016)  # then it falls back
    while simulation.time < seconds:
        simulation.step()
        position = liquid.particles.to_numpy()["position"]
        risen = position[:, 1] > 0.0045
        radii.append(float(np.hypot(*(position[risen][:, [0, 2]] - 0.024).T).mean()) if risen.any() else 0.0)
        times.append(simulation.time)

    late = [i for i, time in enumerate(times) if time > 0.5 * seconds and radii[i] > 0]
    slope = np.polyfit(np.log([times[i] for i in late]), np.log([radii[i] for i in late]), 1)[0]
    print(f"{simulation.steps} steps on {arch}: the crown is {1000 * radii[-1]:.1f} mm in radius and grows as", end=" ")
    print(f"t to the {slope:.2f}; {100 * (1 - liquid.volume / volume):.2f} % of the water lost")
    assert abs(1 - liquid.volume / volume) < 0.02, "water is neither made nor lost"
    assert 0.2 < slope < 1.0, "it slows down as it runs outwards"
    sideways = np.abs(liquid.particles.to_numpy()["velocity"][:, [0, 2]].mean(axis=0)).max()
    assert sideways < 0.05, "what falls straight goes on average nowhere else"

    picture = Path("demo_crown.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
