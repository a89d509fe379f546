"""Taylor-Green vortices without viscosity in a periodic box: what each scheme makes of them, and at what cost.

    python benchmarks/vortices.py [arch]

In 2D they are steady: mean error of the velocity after 2 s, energy left then, and processor time. In 3D they stretch and
break up: the largest energy there ever was, over that of the beginning.
"""

import math
import sys
import time

import numpy as np

import taichi_fluid as tf
from taichi_fluid import backend

STEADY = ["sin(2*pi*x)*cos(2*pi*y)", "-cos(2*pi*x)*sin(2*pi*y)"]
BREAKING = [f"{each}*cos(2*pi*z)" for each in STEADY] + ["0"]


def vortices(dim: int, cells: int, cfl: float, scheme: str) -> tf.Simulation:
    """A flow whose fastest fluid, 1 m/s, crosses ``cfl`` cells in a step."""
    scene = tf.Scene.from_dict(
        {
            "name": "vortices",
            "domain": {"size": [1.0] * dim, "resolution": cells, "boundaries": "periodic"},
            "initial": {"velocity": STEADY if dim == 2 else BREAKING},
            "solver": {"scheme": scheme, "dt": cfl / cells, "tolerance": 1e-5},
        }
    )
    return tf.Simulation(scene)


def energy(simulation: tf.Simulation) -> float:
    """Kinetic energy, J per kg/m³ and m^dim."""
    return simulation.diagnostics.kinetic_energy(simulation.state.velocity.current)


def error(simulation: tf.Simulation, begun: list[np.ndarray]) -> float:
    """Mean length of what the velocity at cell centres is off."""
    found = simulation.grid.face_velocity_to_numpy(simulation.state.velocity.current)
    u, v = (a - b for a, b in zip(found, begun, strict=True))
    return float(np.hypot((u[1:] + u[:-1]) / 2, (v[:, 1:] + v[:, :-1]) / 2).mean())


def _print_steady(cells: int, cfl: float, scheme: str) -> None:
    simulation = vortices(2, cells, cfl, scheme)
    simulation.step()
    simulation.reset()
    begun = simulation.grid.face_velocity_to_numpy(simulation.state.velocity.current)
    whole, start = energy(simulation), time.process_time()
    for _ in range(round(2.0 * cells / cfl)):
        simulation.step()
    spent = time.process_time() - start
    left = energy(simulation) / whole
    print(f"{cells:5d} {scheme:10s} {cfl:7.4f} {error(simulation, begun):9.6f} {left:7.4f} {spent:6.2f}", flush=True)


def main() -> None:
    """Print both tables."""
    backend.start_here(sys.argv[1] if len(sys.argv) > 1 else "cpu", offline_cache=True)
    print("2D, 2 s: cells, scheme, CFL, error, energy left, processor time in s")
    for scheme in ("splitting", "reflection"):
        for cells in (32, 64, 128):
            _print_steady(cells, 0.8, scheme)
    print("2D, 2 s, 64 cells, the time to an error: scheme, CFL, error, energy left, processor time in s")
    for scheme, cfl in (("reflection", 4.0), ("reflection", 2.0), ("splitting", 0.1), ("splitting", 0.0125)):
        _print_steady(64, cfl, scheme)
    print("3D, 32 cells, 6 turnovers: scheme, CFL, largest energy, energy left")
    for scheme in ("splitting", "reflection"):
        for cfl in (0.05, 0.3, 1.0, 2.0, 4.0):
            simulation = vortices(3, 32, cfl, scheme)
            all_of_it = [energy(simulation)]
            for _ in range(round(6 / (2 * math.pi) * 32 / cfl)):
                simulation.step()
                all_of_it.append(energy(simulation))
            largest, left = max(all_of_it) / all_of_it[0], all_of_it[-1] / all_of_it[0]
            print(f"{scheme:10s} {cfl:5.2f} {largest:8.5f} {left:7.4f}", flush=True)


if __name__ == "__main__":
    main()
