"""Stam's Stable Fluids: a periodic box, stirred for a while and then left to itself.

You will see three pushes, each of its own colour, run into each other, wrap around the box and mix.
Try: a larger solver.cfl (it stays stable), advection "maccormack", other places and velocities of the sources.
After Stam, Stable Fluids (1999), and Dan Morris's notes on it; the projection is solved directly, by Fourier transforms.

    python demos/stable_fluids.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png


def main(arch: str = "auto", resolution: int = 256, seconds: float = 3.0) -> None:
    arch = backend.start(arch, announce=True)
    ends = {f"sources.{i}.end": seconds / 3 for i in range(3)}
    simulation = tf.Simulation(tf.preset("stable_fluids").with_values({"domain.resolution": resolution, **ends}))
    print(simulation.pressure_solver.sentence or "the pressure is solved directly")
    simulation.advance(seconds / 3)
    pushed = simulation.to_numpy("velocity")
    energies = []
    for _ in range(4):
        energies.append(simulation.diagnostics.kinetic_energy(simulation.state.velocity.current))
        simulation.advance(seconds / 6)

    velocity, dx = simulation.to_numpy("velocity"), simulation.grid.dx
    speed = np.sqrt((pushed**2).sum(axis=0).mean())
    drift = np.abs((velocity - pushed).mean(axis=(1, 2))).max() / speed
    left = simulation.diagnostics.divergence(simulation.state.velocity.current).max * dx / np.abs(velocity).max()
    print(
        f"{simulation.steps} steps on {arch}: divergence left {left:.1e}, momentum changed by {drift:.1e} of the flow's"
    )
    # A direct solve leaves rounding; what stands in for it, where there is none, its tolerance.
    assert left < (1e-5 if simulation.pressure_solver.used == "spectral" else 1e-3), "what flows in must flow out"
    # Nothing in the box can hold the flow. Interpolation changes it by 1 % on 16², by 0.03 % on 256².
    assert drift < 0.03, "without forces the momentum of a periodic box must stay"
    assert energies == sorted(energies, reverse=True), "without forces the flow must calm down"

    picture = Path("demo_stable_fluids.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
