"""Brine: salt water is poured into fresh water between two panes of glass, and sinks.

You will see a heavy cloud fall, roll up at its rims and break in two. Salt is no quantity of the engine's own, nor is
the friction of the panes (Hele-Shaw: 12 nu / gap²) one of its forces: each is one row here.
Try: GAP = 0.002, and it creeps; weight=-8e-4, and it rises; fluid.salt_diffusion; look.view "volume".

    python demos/brine.py [arch] [resolution] [seconds]
"""

import sys
from pathlib import Path

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.io.images import write_png
from taichi_fluid.physics.sources import decay

GAP, VISCOSITY = 0.01, 1e-6  # m, m²/s
POUR = {"shape": "sphere", "center": [0.15, 0.34], "radius": 0.02, "salt": 60.0, "end": 1.5, "mottle": 1.0}
SCENE = {
    "name": "brine",
    "domain": {"size": [0.3, 0.4], "boundaries": "no-slip"},
    "fluid": {"rho": 1000.0, "viscosity": VISCOSITY},
    "sources": [{**POUR, "mottle_size": 0.01}],
    "look": {"view": "slice", "quantity": "salt", "colour_map": "viridis"},
}


def friction(simulation: tf.Simulation, dt: float) -> None:
    velocity = simulation.state.velocity
    for offset in velocity.begins():
        decay(simulation.grid, velocity.current, 12 * VISCOSITY / GAP**2, dt, offset)


def main(arch: str = "auto", resolution: int = 256, seconds: float = 3.0) -> None:
    arch = backend.start(arch, announce=True)
    tf.CARRIED.add(tf.Carried("salt", unit="g/kg", diffusivity=1e-8, weight=8e-4, drawn="smoke"))
    simulation = tf.Simulation(tf.Scene.from_dict(SCENE).with_values({"domain.resolution": resolution}))
    simulation.forces.append(tf.Force("friction", friction))
    simulation.advance(seconds)

    salt, height = simulation.to_numpy("salt"), simulation.grid.cell_centres()[1]
    middle = (salt * height).sum() / salt.sum()
    print(f"{simulation.steps} steps on {arch}: the brine's middle is {100 * (0.34 - middle):.1f} cm below its source")
    assert salt.min() >= 0.0, "there is no less than no salt"
    assert middle < 0.3395 - 0.01 * min(seconds - 0.5, 1), "brine must sink"

    picture = Path("demo_brine.png")
    write_png(picture, tf.Renderer(simulation).render())
    print(picture)


if __name__ == "__main__":
    convert = (str, int, float)
    main(*(kind(text) for kind, text in zip(convert, sys.argv[1:], strict=False)))
