"""One step of a plume from a given state, in a process of its own: ``python -m one_step OUT.npz 3 cpu [option=value …]``.

The options go to ``ti.init``, over those that we recommend: ``default_fp=f64``, ``default_ip=i64``, ``debug=True``.
"""

import sys

import numpy as np
from scenes_for_tests import plume, set_state, smooth_scalar, smooth_velocity

from taichi_fluid import backend
from taichi_fluid._ti import ti
from taichi_fluid.simulation import Simulation

CELLS = {2: 32, 3: 24}


def one_step(dim: int) -> dict[str, np.ndarray]:
    """Every field after one step, the pressure without its mean.

    The tolerance of the solver is at the floor of f32, so that what differs is rounding and not when it stopped.
    """
    simulation = Simulation(plume(dim, CELLS[dim], dt=1 / 48, tolerance=1e-6))
    shape = simulation.grid.shape
    set_state(simulation, smooth_velocity(shape), smoke=smooth_scalar(shape), temperature=smooth_scalar(shape, 60.0))
    simulation.step()
    fields = {name: simulation.to_numpy(name).astype(np.float64) for name in ("velocity", "smoke", "temperature")}
    pressure = simulation.to_numpy("pressure").astype(np.float64)
    return {**fields, "pressure": pressure - pressure.mean()}


def _value(text: str):
    return int(text) if text.isdecimal() else {"True": True, "False": False}.get(text, getattr(ti, text, None))


if __name__ == "__main__":
    out, dim, arch, *options = sys.argv[1:]
    settings = {key: _value(text) for key, text in (option.split("=") for option in options)}
    settings = {**backend.recommended_options(arch), **settings}
    ti.init(arch=getattr(ti, arch), enable_fallback=False, random_seed=0, **settings)
    np.savez(out, **one_step(int(dim)))
