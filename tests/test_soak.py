"""Runs that go on and on: what they hold stays finite, bounded and as large as it was.

On another backend by ``TI_TEST_ARCH=vulkan python -m pytest -n0 -m "slow or not slow" tests/test_soak.py``.
"""

import gc
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import ARCH
from scenes_for_tests import everything

from taichi_fluid import backend
from taichi_fluid._ti import ti
from taichi_fluid.bench.measure import array_bytes
from taichi_fluid.scene import preset, preset_names
from taichi_fluid.simulation import Simulation
from taichi_fluid.viewer.session import Session

GROWTH = 6 * 2**20
"""Bytes by which a process may grow meanwhile, by pieces that its allocator does not give back; an array that was forgotten in
each step would be a hundred times that."""
SPACES = [name for name in preset_names() if preset(name).dim == 3]


def resident() -> int:
    """Size of this process in memory, in bytes; 0 where the system does not say, or a driver makes nonsense of it.

    Taichi gives the descriptors of a launch back with the pool that they are of, once that is full, and Mesa's software driver
    never calls one full: there each launch leaves some 200 bytes to 1 kB behind, ours or another's.
    """
    gc.collect()
    ti.sync()
    if not sys.platform.startswith("linux") or (ARCH == "vulkan" and backend.software_device(backend.vulkan_devices())):
        return 0
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def require_good(simulation: Simulation) -> None:
    """Finite, and no more than what a source of 5, 400 K and 0.5 m/s in a box of 1 m can bring about."""
    fastest = simulation.check()
    assert fastest < 30.0
    for name, most in (("smoke", 50.0), ("temperature", 5000.0), ("fuel", 20.0)):
        if name in simulation.state.carried:
            values = simulation.to_numpy(name)
            assert np.isfinite(values).all()
            assert values.min() > -1e-3 * most
            assert values.max() < most, name


@pytest.mark.parametrize("steps", [60, 500])
def test_a_flow_with_all_there_is_goes_on(steps):
    """Moving solids, a source, a flame that expands, an open side."""
    simulation = Simulation(everything(3))
    for _ in range(steps // 4):
        simulation.step()
    require_good(simulation)
    size, arrays = resident(), array_bytes()
    for _ in range(steps - steps // 4):
        simulation.step()
    require_good(simulation)
    assert simulation.steps == steps
    assert resident() - size < GROWTH
    assert array_bytes() == arrays


@pytest.mark.parametrize("switches", [100])
def test_a_session_goes_from_preset_to_preset(tmp_path, monkeypatch, switches):
    """All those in 3D, again and again; each makes a step and a picture."""
    from taichi_fluid.viewer import session as module

    monkeypatch.setattr(module, "preset", lambda name: preset(name).with_values({"domain.resolution": 12}))
    session = Session(preset("plume").with_values({"domain.resolution": 12}), tmp_path, size=(64, 48))
    sizes = []
    for i in range(switches):
        name = SPACES[i % len(SPACES)]
        session.other(name)()
        assert session.scene.name == name, session.message
        assert session.scene.domain.resolution == 12
        while session.simulation.steps < 1:
            session.advance(1.0, 1 / 60)
        session.simulation.check()
        assert session.draw()
        if i % len(SPACES) == len(SPACES) - 1:  # each time the same flow
            sizes.append((resident(), array_bytes()))
    session.close()
    assert len(sizes) >= 4
    assert len({arrays for _, arrays in sizes}) == 1
    assert sizes[-1][0] - sizes[len(sizes) // 2][0] < GROWTH
