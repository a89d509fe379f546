"""Linear interpolation, checked by what it must reproduce and against SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import SHAPES, closed_box, random_scalar, random_velocity
from scipy.ndimage import map_coordinates

from taichi_fluid._ti import ti
from taichi_fluid.kernels import (
    Array,
    Operator,
    Strip,
    cell_of_strip,
    cells_of,
    float_vector,
    int_vector,
    kernel_family,
    loop_shape,
    put_line,
    strides_of,
)
from taichi_fluid.operators.interpolation import (
    face_velocity_at,
    inside_box,
    sample,
    sample_velocity,
    step_to_corner,
    strides_across,
    uphill,
)
from taichi_fluid.operators.sampling import Component, sample_strip
from taichi_fluid.operators.vectors import length


@ti.func
def _point(points: ti.template(), c, n):
    cells = strides_of(n)[0] * (n[0] + 2)
    q = ti.cast(n, ti.f32)
    for axis in ti.static(range(n.n)):
        q[axis] = points[c + axis * cells]
    return q


@ti.func
def _sample_at(c, I, s, a: ti.template(), points: ti.template(), out: ti.template(), n):
    out[c] = sample(a, 0, inside_box(_point(points, c, n), n), n)


@ti.func
def _sample_velocity_at(c, I, s, u: ti.template(), points: ti.template(), out: ti.template(), n):
    v = sample_velocity(u, inside_box(_point(points, c, n), n), n)
    for axis in ti.static(range(n.n)):
        out[c + axis * s[0] * (n[0] + 2)] = v[axis]


@ti.func
def _face_velocity_at(c, I, s, u: ti.template(), out: ti.template(), axis, n):
    v = face_velocity_at(u, c, axis, n)
    for d in ti.static(range(n.n)):
        out[c + d * s[0] * (n[0] + 2)] = v[d]


@ti.func
def _uphill_at(c, I, s, a: ti.template(), out: ti.template(), reach, shift, n):
    direction = uphill(a, ti.cast(I, ti.f32), reach, shift, n)
    for axis in ti.static(range(n.n)):
        out[c + axis * cells_of(s, n)] = direction[axis]


@ti.func
def _point_in_strip(k, c, points: ti.template(), n):
    return inside_box(_point(points, cell_of_strip(c, k), n), n)


@ti.func
def _sample_of_strip(
    c, I, m, s, a, points: ti.template(), out: ti.template(), n, lines: ti.template(), width: ti.template()
):
    strip = Strip(c, I, m, width)
    found = strip.matrix(lines)
    sample_strip(strip, a, Operator(_point_in_strip, (c, points, n)), found, n)
    for line in ti.static(range(lines)):
        strip.each(put_line, (out, c + line * cells_of(s, n), found, line))


@kernel_family
def sampling_kernels(loops):
    IntVector, each_cell, each_strip, width = loops.IntVector, loops.each_cell, loops.each_strip, loops.width

    @ti.kernel
    def sample_strips(a: Array, points: Array, out: Array, n: IntVector):
        each_strip(n, width, _sample_of_strip, (Component(a, 0), points, out, n, 1, width))

    @ti.kernel
    def sample_strips_with_limits(a: Array, points: Array, out: Array, n: IntVector):
        each_strip(n, width, _sample_of_strip, (Component(a, 0), points, out, n, 3, width))

    @ti.kernel
    def sample_points(a: Array, points: Array, out: Array, n: IntVector):
        each_cell(n, _sample_at, (a, points, out, n))

    @ti.kernel
    def sample_velocities(u: Array, points: Array, out: Array, n: IntVector):
        each_cell(n, _sample_velocity_at, (u, points, out, n))

    @ti.kernel
    def face_velocities(u: Array, out: Array, axis: ti.i32, n: IntVector):
        each_cell(n, _face_velocity_at, (u, out, axis, n))

    @ti.kernel
    def find_uphill(a: Array, out: Array, reach: ti.f32, shift: ti.f32, n: IntVector):
        each_cell(n, _uphill_at, (a, out, reach, shift, n))

    return {
        "find_uphill": find_uphill,
        "sample_points": sample_points,
        "sample_strips": sample_strips,
        "sample_strips_with_limits": sample_strips_with_limits,
        "sample_velocities": sample_velocities,
        "face_velocities": face_velocities,
    }


def sampled(values, points):
    """``values`` of a closed box at index-space ``points`` (one for each cell), by the engine."""
    grid, _, arrays = closed_box(values.shape)
    places, out = grid.velocity(), grid.array()
    grid.from_numpy(places, points)
    sampling_kernels(grid.loops).sample_points(arrays.scalar(values), places, out, grid.n)
    return arrays.get(out)


def random_points(shape, seed=0, beyond=3.0):
    """Points in the box and up to ``beyond`` cells outside; exact in f32."""
    rng = np.random.default_rng(seed)
    spread = [rng.uniform(0.5 - beyond, n + 0.5 + beyond, shape) for n in shape]
    return np.asarray(spread, np.float32)


def faces_at(faces, points):
    """SciPy's value of a staggered velocity at index-space points; what lies beyond the last value is that value."""
    out = []
    for axis, component in enumerate(faces):
        q = [np.asarray(x, np.float64) - (0.5 if a == axis else 1.0) for a, x in enumerate(points)]
        out.append(map_coordinates(component, q, order=1, mode="nearest"))
    return out


@pytest.mark.vulkan_too
def test_a_sample_is_what_scipy_says_inside_and_outside(dim):
    for shape in SHAPES[dim]:
        values, points = random_scalar(shape), random_points(shape)
        expected = map_coordinates(values, points.astype(np.float64) - 1, order=1, mode="nearest")
        # One rounding for each of the 2^dim - 1 blends of values of size 3.
        np.testing.assert_allclose(sampled(values, points), expected, rtol=0, atol=3e-6)


def corners(values, points):
    """The 2^dim values around each point, the lowest corner being that which truncation gives; sides copied outwards."""
    padded = np.pad(values, 1, mode="edge")
    base = [np.clip(np.floor(x).astype(int), 0, n) for x, n in zip(points, values.shape, strict=True)]
    steps = np.ndindex(*[2] * values.ndim)
    return np.stack([padded[tuple(b + k for b, k in zip(base, step, strict=True))] for step in steps])


@pytest.mark.vulkan_too
@pytest.mark.parametrize("spread", [0.4, 0.99, 1.0, 3.0])
def test_a_run_sampled_together_is_what_scipy_says(dim, spread):
    """Points near their own cells, whose neighbours are read side by side; a whole cell away; and anywhere.

    With a spread of less than a cell one cell in a row of 37 has its point farther away: its run is gathered.
    """
    rng = np.random.default_rng(5)
    shape = (5, 4, 37)[3 - dim :]
    values, own = random_scalar(shape), np.indices(shape) + 1.0
    shift = rng.uniform(-spread, spread, own.shape)
    if spread == 1:
        shift = rng.choice([-1.0, 0.0, 1.0], own.shape)
    elif spread < 1:
        shift[0, ..., 20] = -1.5
    limits = np.array(shape).reshape(-1, *[1] * dim) + 0.5
    points = np.clip(own + shift, 0.5, limits).astype(np.float32)
    grid, _, arrays = closed_box(shape)
    places, out, limited = grid.velocity(), grid.array(), grid.array(3)
    grid.from_numpy(places, points)
    a, kernels = arrays.scalar(values), sampling_kernels(grid.loops)
    kernels.sample_strips(a, places, out, grid.n)
    kernels.sample_strips_with_limits(a, places, limited, grid.n)
    expected = map_coordinates(values, points.astype(np.float64) - 1, order=1, mode="nearest")
    found = grid.to_numpy(out)
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6)
    if spread == 1:
        np.testing.assert_array_equal(found, expected, err_msg="a whole number of cells is exact")
    value, least, most = grid.to_numpy(limited)
    np.testing.assert_allclose(value, expected, rtol=0, atol=3e-6)
    around = corners(values, points)
    np.testing.assert_array_equal(least, around.min(axis=0))
    np.testing.assert_array_equal(most, around.max(axis=0))


@pytest.mark.vulkan_too
def test_a_velocity_sample_is_what_scipy_says(dim):
    for shape in SHAPES[dim]:
        grid, _, arrays = closed_box(shape)
        faces, points = random_velocity(shape), random_points(shape, beyond=0.0)
        places, out = grid.velocity(), grid.velocity()
        grid.from_numpy(places, points)
        sampling_kernels(grid.loops).sample_velocities(arrays.velocity(faces), places, out, grid.n)
        np.testing.assert_allclose(arrays.get(out), faces_at(faces, points), rtol=0, atol=3e-6)


def test_face_velocity_is_interpolation_at_the_same_place(dim):
    for shape in SHAPES[dim]:
        grid, _, arrays = closed_box(shape)
        u = arrays.velocity(random_velocity(shape))
        places, sampled_there, found = grid.velocity(), grid.velocity(), grid.velocity()
        for axis in range(dim):
            q = np.indices(shape).astype(np.float32) + 1
            q[axis] -= 0.5
            grid.from_numpy(places, q)
            sampling_kernels(grid.loops).sample_velocities(u, places, sampled_there, grid.n)
            sampling_kernels(grid.loops).face_velocities(u, found, axis, grid.n)
            # Means of two and four against nested blends of the same numbers: a few roundings.
            np.testing.assert_allclose(arrays.get(found), arrays.get(sampled_there), rtol=0, atol=1e-6)


def test_a_linear_function_is_reproduced(dim):
    shape = SHAPES[dim][0]
    slopes = np.array([0.5, -1.25, 2.0])[:dim]
    linear = sum(k * x for k, x in zip(slopes, np.indices(shape) + 1, strict=True))
    rng = np.random.default_rng(3)
    points = np.asarray([rng.uniform(1, n, shape) for n in shape], np.float32)
    expected = sum(k * x for k, x in zip(slopes, points.astype(np.float64), strict=True))
    np.testing.assert_allclose(sampled(linear, points), expected, rtol=0, atol=5e-6)  # values up to 20, f32


@given(value=st.sampled_from([0.1, -3.3, 1e30, -1e30, 1e-30, 1.0, 0.0]), seed=st.integers(0, 100))
def test_a_constant_is_bitwise_the_constant(value, seed):
    for shape in (SHAPES[2][0], SHAPES[3][0]):
        values = np.full(shape, value, np.float32)
        assert (sampled(values, random_points(shape, seed)) == values).all()


def test_a_value_is_found_again_at_its_own_place(dim):
    for shape in SHAPES[dim]:
        values = random_scalar(shape)
        assert (sampled(values, np.indices(shape).astype(np.float32) + 1) == values).all()


def test_the_worked_example_of_the_godot_post():
    """(7.3, 4.8) in cells: weights 0.7 and 0.3 along x of columns 7 and 8, 0.2 and 0.8 along y of rows 4 and 5."""
    shape = (9, 7)
    point = np.asarray([np.full(shape, 7.3), np.full(shape, 4.8)], np.float32)
    weights = {(7, 4): 0.7 * 0.2, (8, 4): 0.3 * 0.2, (7, 5): 0.7 * 0.8, (8, 5): 0.3 * 0.8}
    total = 0.0
    for (i, j), weight in weights.items():
        unit = np.zeros(shape)
        unit[i - 1, j - 1] = 1.0
        found = sampled(unit, point)[0, 0]
        assert found == pytest.approx(weight, abs=1e-6)  # 7.3 is a multiple of 2^-21 in f32
        total += found
    assert total == pytest.approx(1.0, abs=1e-6)


def test_points_far_away_and_infinitely_far_stay_in_the_box(dim):
    shape = SHAPES[dim][0]
    values = random_scalar(shape)
    for far in (1e30, np.inf):
        for sign in (-1, 1):
            points = np.full((dim, *shape), sign * far, np.float32)
            corner = values[(0 if sign < 0 else -1,) * dim]
            np.testing.assert_array_equal(sampled(values, points), np.full(shape, corner))


def test_the_oracle_would_notice_a_shift_of_a_hundredth_of_a_cell(dim):
    """Sabotage: sampling beside the point must fail the tolerance above."""
    shape = SHAPES[dim][0]
    values, points = random_scalar(shape), random_points(shape)
    shifted = map_coordinates(values, points.astype(np.float64) - 1.01, order=1, mode="nearest")
    assert np.abs(sampled(values, points) - shifted).max() > 3e-6


def test_a_distance_grows_along_its_normal(dim):
    """Of a plane whichever way it lies and wherever its values do; nowhere where there is none."""
    shape, normal = (7, 6, 8)[:dim], np.array([2.0, -3.0, 6.0][:dim]) / np.linalg.norm([2.0, -3.0, 6.0][:dim])
    grid, _, arrays = closed_box(shape)
    kernels, out = sampling_kernels(grid.loops), grid.velocity()
    far_in = (slice(None), *(slice(2, -2),) * dim)
    plane = 0.1 * np.tensordot(normal, np.indices(shape), 1)
    for reach, shift in ((0.5, 0.0), (1.0, 0.0), (1.0, 0.5)):
        kernels.find_uphill(arrays.scalar(plane), out, reach, shift, grid.n)
        found = grid.to_numpy(out)[far_in]
        # Differences of values up to 1, each rounded, over a tenth.
        np.testing.assert_allclose(found, np.broadcast_to(normal.reshape(-1, *[1] * dim), found.shape), atol=5e-6)
    kernels.find_uphill(arrays.scalar(np.ones(shape)), out, 1.0, 0.0, grid.n)
    np.testing.assert_array_equal(grid.to_numpy(out)[far_in], 0)


@kernel_family
def step_kernels(loops):
    dim = loops.dim

    @ti.kernel
    def compute(out: Array, n: loops.IntVector, v: loops.FloatVector):
        for _ in range(1):
            s = strides_of(n)
            for corner in range(ti.static(2**dim)):
                out[corner] = ti.cast(step_to_corner(corner, s), ti.f32)
            for corner in ti.static(range(2**dim)):
                out[ti.static(2**dim + corner)] = ti.cast(step_to_corner(corner, s), ti.f32)
            for axis in range(dim):
                across = strides_across(s, axis)
                for k in ti.static(range(dim - 1)):
                    out[ti.static(2 * 2**dim) + axis * (dim - 1) + k] = ti.cast(across[k], ti.f32)
            out[ti.static(2 * 2**dim + dim * (dim - 1))] = length(v)

    return {"compute": compute}


@pytest.mark.vulkan_too
def test_ways_to_corners_and_lengths(dim):
    """Known while tracing or only by the running kernel, they are the same; and |v| is that of NumPy."""
    n, v, s = (5, 6, 7)[:dim], (3.0, -4.0, 12.0)[:dim], (72, 9, 1) if dim == 3 else (8, 1)
    out = ti.ndarray(ti.f32, 2 * 2**dim + dim * (dim - 1) + 1)
    step_kernels(loop_shape(dim)).compute(out, int_vector(dim)(*n), float_vector(dim)(*v))
    corners = [sum(step for axis, step in enumerate(s) if corner >> axis & 1) for corner in range(2**dim)]
    across = [step for axis in range(dim) for other, step in enumerate(s) if other != axis]
    assert out.to_numpy().tolist() == [*corners, *corners, *across, np.linalg.norm(v)]
