"""The 2 x 2 x 1 staggered grid of Normoyle's tutorial, number by number (refdata/normoyle_2x2x1.csv).

dx = 1, dt = 0.1, rho = 1, a closed box, v(0, 1) = 1 and everything else at rest. The page lists p3 twice, and the last
row of its general equation has u for w. Its right-hand side has rho below, where it belongs above; with rho = 1 that is one.
"""

import numpy as np
import pytest
from reference import centred, closed_box, table

from taichi_fluid.grid import Scratch
from taichi_fluid.physics.advection import Advection, Scheme, Trace
from taichi_fluid.pressure.projection import Projection
from taichi_fluid.pressure.solver import Status
from taichi_fluid.simulation.diagnostics import Diagnostics

VALUES = {name: value for name, value in table("normoyle_2x2x1.csv")}
TRACES = {
    Trace.EULER: "v010_after_euler_SL", Trace.RK2: "v010_after_RK2_SL", Trace.RK3: "v010_after_RK3_Ralston_SL",
}  # fmt: skip
DT = 0.1

boxes = pytest.mark.parametrize("shape", [(2, 2), (2, 2, 1)], ids=["2D", "3D"])


def value(name):
    return float(VALUES[name])


def cells(prefix, depth):
    """The four values of a cell quantity, as an array over the box."""
    values = np.array([[value(f"{prefix}_cell{i}{j}") for j in range(2)] for i in range(2)])
    return values if depth == 2 else values[..., None]


def start(shape, v=1.0):
    """Faces with v(0, 1) alone."""
    faces = [np.zeros(tuple(n + (a == axis) for a, n in enumerate(shape))) for axis in range(len(shape))]
    faces[1][(0, 1, 0)[: len(shape)]] = v
    return faces


@boxes
def test_the_page_counts_cells_and_faces_as_we_do(shape):
    assert np.prod(shape) == value("n_cells")
    names = ["n_xfaces", "n_yfaces", "n_zfaces"][: len(shape)]
    assert [f.size for f in start(shape)] == [value(name) for name in names]


@pytest.mark.vulkan_too
@boxes
@pytest.mark.parametrize("trace", Trace)
def test_advection(shape, trace):
    grid, walls, arrays = closed_box(shape)
    scratch = Scratch(grid)
    advection = Advection(grid, walls, scratch, Scheme.SEMI_LAGRANGIAN, trace)
    out = grid.velocity()
    advection.carry_velocity(arrays.velocity(start(shape)), out, DT)
    expected = start(shape, value(TRACES[trace]))
    for found, wanted in zip(arrays.faces(out), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)  # f32


@pytest.mark.vulkan_too
@boxes
@pytest.mark.parametrize("method", ["multigrid-cg", "cg"])
def test_projection(shape, method):
    grid, walls, arrays = closed_box(shape)
    projection = Projection(grid, walls, Scratch(grid), method)
    velocity, pressure, rhs = arrays.velocity(start(shape, 0.9)), grid.array(), grid.array()
    projection.compute_rhs(velocity, rhs, DT, rho=1.0)
    np.testing.assert_allclose(arrays.get(rhs), cells("b", len(shape)), rtol=1e-6)

    measure = Diagnostics(grid)
    before = measure.kinetic_energy(velocity)
    result = projection.project(velocity, pressure, dt=DT, rho=1.0, tolerance=1e-6)
    assert result.status is Status.CONVERGED
    assert result.iterations <= value("matrix_rank")
    np.testing.assert_allclose(centred(arrays.get(pressure)), cells("p", len(shape)), rtol=3e-6)

    u, v = start(shape, 0.0)[:2]
    first = (0,) * (len(shape) - 2)
    u[(1, 0, *first)], u[(1, 1, *first)] = value("u100"), value("u110")
    v[(0, 1, *first)], v[(1, 1, *first)] = value("v010"), value("v110")
    found = arrays.faces(velocity)
    for component, wanted in zip(found, (u, v), strict=False):
        np.testing.assert_allclose(component, wanted, rtol=0, atol=1e-6)
    assert all(not w.any() for w in found[2:])
    assert measure.kinetic_energy(velocity) / before == pytest.approx(value("KE_after_over_before"), rel=1e-5)
    assert measure.divergence(velocity).max < 1e-6


@boxes
@pytest.mark.parametrize("rho", [1.0, 2.0, 0.5])
def test_rho_belongs_above_on_the_right_hand_side(shape, rho):
    """The formula of the page leaves three quarters of the divergence with rho = 2; ours leaves rounding."""
    grid, walls, arrays = closed_box(shape)
    projection = Projection(grid, walls, Scratch(grid), "cg")
    velocity, pressure, rhs = arrays.velocity(start(shape, 0.9)), grid.array(), grid.array()
    projection.compute_rhs(velocity, rhs, DT, rho=rho)
    np.testing.assert_allclose(arrays.get(rhs), rho * cells("b", len(shape)), rtol=1e-6)
    result = projection.project(velocity, pressure, dt=DT, rho=rho, tolerance=1e-6)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(centred(arrays.get(pressure)), rho * cells("p", len(shape)), rtol=3e-6)
    assert Diagnostics(grid).divergence(velocity).max < 1e-6

    # The equation is linear: b / rho in place of rho b makes a pressure of p / rho, a part 1 / rho² of ours.
    grid.from_numpy(pressure, (cells("p", len(shape)) / rho).astype(np.float32))
    as_printed = arrays.velocity(start(shape, 0.9))
    projection.subtract_gradient(as_printed, pressure, DT / rho)  # dx = 1
    left = abs(1 - 1 / rho**2)
    assert Diagnostics(grid).divergence(as_printed).max == pytest.approx(left * 0.9, rel=1e-5, abs=1e-6)


def test_the_table_agrees_with_itself():
    """Its matrix times its pressure is its right-hand side, and its velocity follows: against a typing error here."""
    p, b = cells("p", 2), cells("b", 2)
    matrix = np.array([[2, -1, -1, 0], [-1, 2, 0, -1], [-1, 0, 2, -1], [0, -1, -1, 2]])
    order = [(0, 0), (1, 0), (0, 1), (1, 1)]
    np.testing.assert_allclose(matrix @ [p[c] for c in order], [b[c] for c in order], atol=1e-12)
    assert np.linalg.matrix_rank(matrix) == value("matrix_rank")
    assert value("u100") == pytest.approx(-DT * (p[1, 0] - p[0, 0]))
    assert value("v010") == pytest.approx(0.9 - DT * (p[0, 1] - p[0, 0]))
