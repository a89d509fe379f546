"""Reductions: right, accurate, the same bits again, and not blind to a single bad value."""

import math

import numpy as np
import pytest
from reference import SHAPES, closed_box, divergence, inner, norm, random_scalar, random_velocity, take

from taichi_fluid.grid import Grid
from taichi_fluid.simulation.diagnostics import Diagnostics

LARGE = {2: (400, 401), 3: (64, 65, 66)}
"""Beyond the size below which a CPU runs serially."""


@pytest.mark.vulkan_too
def test_every_number_is_that_of_numpy(dim):
    for shape in SHAPES[dim]:
        grid, _, arrays = closed_box(shape, 0.5)
        u, values = random_velocity(shape), random_scalar(shape)
        velocity, scalar, measure = arrays.velocity(u), arrays.scalar(values), Diagnostics(grid)
        assert measure.largest_magnitude(scalar) == np.float32(np.abs(values).max())
        assert measure.largest_magnitude(velocity) == np.float32(max(np.abs(f).max() for f in u))
        scale = np.abs(values).sum() * grid.cell_volume
        assert measure.integral(scalar) == pytest.approx(values.sum() * grid.cell_volume, abs=1e-6 * scale)
        assert measure.kinetic_energy(velocity, 1.2) == pytest.approx(0.6 * inner(u, u) * grid.cell_volume, rel=1e-6)
        outflow = divergence(u, 0.5)
        found = measure.divergence(velocity)
        assert found.max == pytest.approx(np.abs(outflow).max(), rel=1e-5, abs=1e-6)
        assert found.rms == pytest.approx(norm(outflow) / math.sqrt(outflow.size), rel=1e-5, abs=1e-6)


def test_sums_over_large_grids_keep_their_digits(dim):
    """Against NumPy float64; adding up in f32 one after the other would lose more than this."""
    shape = LARGE[dim]
    grid = Grid(shape, 1.0)
    values = np.random.default_rng(0).random(shape).astype(np.float32)
    array = grid.array()
    grid.from_numpy(array, values)
    exact = values.sum(dtype=np.float64)
    assert Diagnostics(grid).integral(array) == pytest.approx(exact, rel=3e-7)
    naive = float(np.cumsum(values.ravel(), dtype=np.float32)[-1])
    assert abs(naive - exact) > 3e-7 * exact


@pytest.mark.vulkan_too
def test_the_same_bits_every_time(dim):
    for shape in (SHAPES[dim][0], (65, 66) if dim == 2 else (17, 18, 19)):
        grid, _, arrays = closed_box(shape)
        velocity, scalar, measure = arrays.velocity(random_velocity(shape)), arrays.scalar(random_scalar(shape)), None
        runs = []
        for _ in range(4):
            measure = Diagnostics(grid)
            runs.append(
                (
                    measure.integral(scalar), measure.kinetic_energy(velocity), measure.divergence(velocity),
                    measure.largest_magnitude(velocity),
                )
            )  # fmt: skip
        assert all(run == runs[0] for run in runs)


def test_the_same_bits_on_many_threads(dim):
    grid = Grid(LARGE[dim], 1.0)
    array, measure = grid.array(), Diagnostics(grid)
    grid.from_numpy(array, random_scalar(LARGE[dim]))
    first = measure.integral(array)
    assert all(measure.integral(array) == first for _ in range(5))


@pytest.mark.vulkan_too
@pytest.mark.parametrize("bad", [math.nan, -math.nan, math.inf, -math.inf])
def test_one_bad_value_is_seen_in_any_cell_of_any_component(dim, bad):
    """Every comparison with a NaN is false, and Taichi's maximum drops it."""
    for shape in SHAPES[dim]:
        grid = Grid(shape, 1.0)
        measure, array = Diagnostics(grid), grid.array(dim)
        good = np.random.default_rng(0).standard_normal((dim, *shape)).astype(np.float32)
        for component in range(dim):
            for cell in {(0,) * dim, tuple(n - 1 for n in shape), tuple(n // 2 for n in shape)}:
                values = good.copy()
                values[(component, *cell)] = bad
                grid.from_numpy(array, values)
                assert measure.largest_magnitude(array) == math.inf
        grid.from_numpy(array, good)
        assert measure.largest_magnitude(array) == np.abs(good).max()


def test_a_large_finite_value_is_no_bad_one(dim):
    grid = Grid(SHAPES[dim][0], 1.0)
    array = grid.array()
    for value in (1e30, -1e38, 0.0, 1e-30):
        array.fill(value)
        assert Diagnostics(grid).largest_magnitude(array) == np.float32(abs(value))


def test_ghosts_do_not_count(dim):
    grid = Grid(SHAPES[dim][0], 1.0)
    array = grid.array()
    array.fill(math.nan)
    grid.from_numpy(array, np.ones(grid.shape))
    measure = Diagnostics(grid)
    assert measure.largest_magnitude(array) == 1
    assert measure.integral(array) == np.prod(grid.shape)


def test_energy_counts_each_inner_face_once(dim):
    for shape in SHAPES[dim][:2]:
        grid, _, arrays = closed_box(shape)
        faces = [np.zeros(np.add(shape, np.arange(dim) == axis)) for axis in range(dim)]
        for axis in range(dim):
            take(faces[axis], axis, slice(1, -1))[...] = 2.0
        count = sum((f > 0).sum() for f in faces)
        assert Diagnostics(grid).kinetic_energy(arrays.velocity(faces)) == 0.5 * 4 * count
