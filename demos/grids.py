"""Both grids side by side: the same plume with its velocity on the faces of the cells, and at their centres.

You will see two plumes that rise alike, and in each corner the largest divergence that the projection leaves. The
collocated grid cannot reach zero: its divergence and gradient reach over two cells, its pressure is solved over one.
Try: look.view = "slice" with look.quantity = "divergence", solver.sweeps = 20, or the preset dye2d.
After Harlow and Welch (1965) on the left and Stam: Real-Time Fluid Dynamics for Games (2003) on the right.

    python demos/grids.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png
from taichi_fluid.render.side_by_side import pictures_of
from taichi_fluid.simulation.comparison import flow_of, left_in


def height(simulation: tf.Simulation) -> float:
    """Height of the middle of the smoke, m."""
    smoke = simulation.to_numpy("smoke").astype(float)
    return float((smoke * simulation.grid.cell_centres()[1]).sum() / smoke.sum())


def main(arch: str = "auto", resolution: int = 128, seconds: float = 2.5) -> None:
    arch = backend.start(arch, announce=True)
    values = {"domain.resolution": resolution, "look.compare": True, "output.width": 960}
    comparison = flow_of(tf.preset("plume2d").with_values(values))
    steps = comparison.advance(seconds)

    staggered, collocated = comparison.simulations.values()
    print(f"{len(steps)} steps on {arch}, the same dt in both:")
    for grid, simulation in comparison.simulations.items():
        left = left_in(simulation)
        print(f"  {grid} leaves {left.max:.1e} 1/s, {left.part:.1e} of speed/dx;", end=" ")
        print(f"the smoke's middle is at {height(simulation):.2f} m")
    assert left_in(staggered).max < 0.01 * left_in(collocated).max, "only the staggered grid can reach zero"
    assert abs(height(staggered) - height(collocated)) < 0.15 * height(staggered), "both lift the smoke alike"

    picture = Path("demo_grids.png")
    write_png(picture, pictures_of(comparison).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
