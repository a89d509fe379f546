"""The heated cavity of de Vahl Davis: a hot and a cold wall, air between them, and the heat that goes through.

G. de Vahl Davis, Natural convection of air in a square cavity: a bench mark numerical solution, International Journal for
Numerical Methods in Fluids 3 (1983), 249-264, table I: the mean Nusselt number is 1.118 at Ra 1e3, 2.243 at 1e4.
"""

import math

import numpy as np
import pytest
from scenes_for_tests import scene

from taichi_fluid.simulation import Simulation

PRANDTL = 0.71


def nusselt_numbers(n, rayleigh, dt, duration):
    """Heat through the hot wall, the cold wall and the plane between, over what conduction alone would carry."""
    conductivity = 1 / math.sqrt(rayleigh * PRANDTL)
    fluid = {
        "viscosity": math.sqrt(PRANDTL / rayleigh), "heat_diffusion": conductivity, "expansion": 1.0,
        "gravity": [0.0, -1.0],
    }  # fmt: skip
    walls = [{"kind": "no-slip", "temperature": value} for value in (0.5, -0.5)]
    made = scene((n, n), 1 / n, fluid, {"dt": dt, "tolerance": 1e-5}, boundaries=[walls, ["no-slip", "no-slip"]])
    simulation = Simulation(made)
    simulation.advance(duration)
    heat = simulation.to_numpy("temperature").astype(np.float64)
    speed = simulation.to_numpy("velocity")[0].astype(np.float64)
    left, right = heat[n // 2 - 1], heat[n // 2]
    hot, cold = 2 * n * (0.5 - heat[0]).mean(), 2 * n * (heat[-1] + 0.5).mean()
    return hot, cold, (speed[n // 2] * (left + right) / 2 / conductivity - n * (right - left)).mean()


@pytest.mark.parametrize(
    ("n", "rayleigh", "dt", "duration", "expected"),
    [
        # Long enough to become steady, in steps so short that their splitting costs less than the cells do.
        pytest.param(32, 1e3, 0.0125, 15.0, 1.118, id="32-1e3"),
        pytest.param(64, 1e4, 0.01, 25.0, 2.243, id="64-1e4"),
    ],
)
def test_as_much_heat_goes_through_as_the_bench_mark_says(n, rayleigh, dt, duration, expected):
    hot, cold, middle = nusselt_numbers(n, rayleigh, dt, duration)
    assert hot == pytest.approx(expected, rel=5e-3)
    assert middle == pytest.approx(expected, rel=5e-3)
    assert hot == pytest.approx(cold, rel=1e-4)  # what comes in goes out: it is steady
