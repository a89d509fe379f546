"""The heated cavity of de Vahl Davis: a hot and a cold wall, air between them, and the heat that goes through.

G. de Vahl Davis, Natural convection of air in a square cavity: a bench mark numerical solution, International Journal for
Numerical Methods in Fluids 3 (1983), 249-264, table I: the mean Nusselt number is 1.118 at Ra 1e3. Higher Ra are cases of ``validate``.
"""

import pytest

from taichi_fluid.validation import Run
from taichi_fluid.validation.cavities import heated, nusselt_numbers
from taichi_fluid.validation.published import DE_VAHL_DAVIS


def test_as_much_heat_goes_through_as_the_bench_mark_says():
    """Long enough to become steady, in steps so short that their splitting costs less than the cells do."""
    expected = DE_VAHL_DAVIS[1_000]["Nu"]
    hot, cold, middle = nusselt_numbers(heated(Run(32, {"solver.dt": 0.0125}), 1_000, 15.0))
    assert hot == pytest.approx(expected, rel=5e-3)
    assert middle == pytest.approx(expected, rel=5e-3)
    assert hot == pytest.approx(cold, rel=1e-4)  # what comes in goes out: it is steady


def test_steps_that_are_long_for_friction_lose_no_heat():
    """What goes in comes through the middle, to 0.3 %, where viscosity · dt / dx² is 6.8.

    They were 1.32 and 0.96: friction of the first half of a step, made explicitly, gave advection a flow in which what varies
    from cell to cell beside walls was as many times too strong.
    """
    hot, _, middle = nusselt_numbers(heated(Run(32, {"solver.dt": 0.25}), 1_000, 20.0))
    assert hot == pytest.approx(DE_VAHL_DAVIS[1_000]["Nu"], rel=5e-3)
    assert middle == pytest.approx(hot, rel=5e-3)
