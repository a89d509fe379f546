"""Ink: two words are written into a fluid and stirred, and a picture of our own is painted in on the way.

You will see the words curl up, and a white ring, which is painted when a third of the time is over, go with them.
Try: read_picture("photo.jpg") in place of the ring, another text (--set pictures.0.text=...), quantity="temperature".

    python demos/ink.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png

Y, X = np.mgrid[1:-1:128j, 1:-1:128j]
RING = (np.abs(np.hypot(X, Y) - 0.8) < 0.15).astype(float)
"""Coverage, row 0 on top."""


def main(arch: str = "auto", resolution: int = 512, seconds: float = 2.4) -> None:
    arch = backend.start(arch, announce=True)
    simulation = tf.Simulation(tf.preset("ink").with_values({"domain.resolution": resolution}))
    words = simulation.to_numpy("dye")
    simulation.advance(seconds / 3)
    before = simulation.to_numpy("dye")
    simulation.paint_picture(RING, center=(1.36, 0.2), width=0.26)
    gained = simulation.to_numpy("dye").sum(axis=(1, 2)) - before.sum(axis=(1, 2))
    simulation.advance(2 * seconds / 3)

    dye, cell = simulation.to_numpy("dye"), simulation.grid.cell_volume
    red, green, blue = cell * dye.sum(axis=(1, 2))
    print(f"{simulation.steps} steps on {arch}: {red:.3f} m² of red, {green:.3f} of green, {blue:.3f} of blue dye")
    assert dye.min() >= 0.0 and dye.max() <= 1.0 + 1e-6, "stirring makes nothing brighter than what was painted"
    ring_area = np.pi * (0.95**2 - 0.65**2) * 0.13**2
    assert abs(cell * gained - ring_area).max() < 0.1 * ring_area, "a white ring is as much red as green and blue"
    painted = cell * (words.sum(axis=(1, 2)) + gained)
    kept = np.array([red, green, blue]) / painted
    # Clamped MacCormack keeps bounds, not sums: thin strokes, stirred, gain up to two fifths.
    assert kept.min() > 0.9 and kept.max() < 1.5, "no dye comes from nowhere or gets lost"

    picture = Path("demo_ink.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
