"""Flow past a circular cylinder: the vortex street at Re = 100, the pair of eddies behind it at Re = 30.

A disk of 1 m in a stream of 1 m/s, 16 cells across it. (Williamson 1988; Wu and Shu 2009.)
"""

import numpy as np
import pytest
from scenes_for_tests import scene, set_state

from taichi_fluid.simulation import Simulation
from taichi_fluid.validation.cases import zeros_of

CELLS = 16
"""Cells across the disk."""


def drag_coefficient(simulation):
    """Of the disk, after the last step: the fluid is of 1 kg/m²."""
    return 2 * simulation.solids.load(0).force[0]


def stream(reynolds, size, upstream, cfl, kick=0.0):
    """A uniform stream past the disk in the middle between two sides, kicked sideways behind it."""
    shape = [round(CELLS * edge) for edge in size]
    enters = {"kind": "inflow", "velocity": [1.0, 0.0]}
    config = scene(
        shape, 1 / CELLS, {"viscosity": 1 / reynolds, "rho": 1.0}, {"cfl": cfl, "max_dt": 1.0},
        boundaries=[[enters, "open"], ["free-slip", "free-slip"]],
    )  # fmt: skip
    disk = {"shape": "sphere", "center": [upstream, size[1] / 2], "radius": 0.5}
    simulation = Simulation(config.with_values({"solids": [disk]}))
    x = (np.arange(shape[0]) + 0.5) / CELLS - upstream - 1.5
    y = np.arange(shape[1] + 1) / CELLS - size[1] / 2
    set_state(
        simulation,
        [np.ones((shape[0] + 1, shape[1])), kick * np.exp(-(x[:, None] ** 2) - y**2)],
    )
    return simulation


@pytest.mark.validation
def test_a_vortex_street_has_the_published_frequency():
    upstream = 6.0
    simulation = stream(100, (16, 24), upstream, cfl=1.4, kick=1.0)
    history = []
    probe = round((upstream + 2) * CELLS), simulation.grid.shape[1] // 2
    while simulation.time < 32:
        simulation.step()
        if simulation.time > 18:
            history.append((simulation.time, simulation.to_numpy("velocity")[1][probe], drag_coefficient(simulation)))
    times, lateral, drags = np.transpose(history)
    periods = np.diff(zeros_of(times, lateral - np.mean(lateral), rising=True))
    strouhal = 1 / periods.mean()
    assert np.abs(lateral).max() > 0.3
    assert np.ptp(periods) < 0.02 * periods.mean()
    # Published 0.164 and 1.34 to 1.36; measured 0.171 and 1.45, in a box of 32 m x 40 m 0.166 and 1.39. Friction that acts
    # half a cell inside the surface would give 0.180.
    assert 0.155 < strouhal < 0.180
    assert drags.mean() == pytest.approx(1.35, rel=0.15)


@pytest.mark.validation
def test_below_the_critical_reynolds_number_the_wake_is_steady_and_symmetric():
    upstream = 5.0
    simulation = stream(30, (14, 12), upstream, cfl=1.4)
    while simulation.time < 25:
        simulation.step()
    u, v = (a.astype(np.float64) for a in simulation.grid.face_velocity_to_numpy(simulation.state.velocity.current))
    # Rounding only, which does not grow: measured 3e-5.
    assert np.abs(u - u[:, ::-1]).max() < 5e-4 and np.abs(v + v[:, ::-1]).max() < 5e-4
    on_axis, behind = u[:, u.shape[1] // 2], np.arange(u.shape[0]) / CELLS - upstream - 0.5
    last = np.flatnonzero((on_axis < 0) & (behind > 0)).max()
    bubble = np.interp(0.0, on_axis[last : last + 2], behind[last : last + 2])
    # Published for a stream without sides: 0.93 D at Re = 20, 2.31 D at Re = 40, and linear between; C_D 2.09 and 1.57.
    # Measured 1.59 D and 2.10; the sides are 6 D away.
    assert 1.2 < bubble < 1.8
    assert drag_coefficient(simulation) == pytest.approx(1.83, rel=0.15)
