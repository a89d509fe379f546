"""Hot gas over a bed of embers that glows with the colour of its temperature.

You will see gas that is yellow where it leaves the embers, red further up, and dark smoke above.
Try: fluid.cooling = 1, and flames grow taller; look.incandescence; view "slice" of "temperature".
After Planck (1901), for the colours, and Fedkiw, Stam, Jensen (2001), for the rest.

    python demos/embers.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 64, seconds: float = 1.5) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("embers").with_values({"domain.resolution": resolution}))
    simulation.advance(seconds)

    heat = simulation.to_numpy("temperature").max(axis=(0, 2))  # K above ambient, the hottest place at each height
    half = len(heat) // 2
    print(
        f"{simulation.steps} steps on {arch}: {heat[:half].max():.0f} K in the lower half, {heat[half:].max():.0f} K above"
    )
    assert heat.min() > -1e-3, "gas that cools stays warmer than the air"
    assert heat[:half].max() > 600, "gas must be hot enough to glow"
    assert heat[half:].max() < heat[:half].max(), "and must have cooled where it has risen to"

    shown = tf.Renderer(simulation)
    glowing = shown.render()
    simulation.scene = simulation.scene.with_values({"look.incandescence": 0.0})
    dark = tf.Renderer(simulation).render()
    redder = glowing.astype(int) - dark.astype(int)
    assert redder[..., 0].max() > 50, "the glow must be seen"
    assert np.mean(redder[..., 0]) > np.mean(redder[..., 2]), "and it is red rather than blue"

    picture = Path("demo_embers.png")
    write_png(picture, glowing)
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
