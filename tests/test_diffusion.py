"""Implicit diffusion: constants, mass, the exact decay of every mode, and a width that no grid changes."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import SHAPES, closed_box, face_shape, random_scalar, random_velocity, take

from taichi_fluid.boundaries.sides import Boundary
from taichi_fluid.boundaries.walls import SCALAR, Walls
from taichi_fluid.grid import Grid
from taichi_fluid.physics.diffusion import Diffusion
from taichi_fluid.pressure.solver import Status

TOLERANCE = 1e-6


@functools.cache
def solver(shape, dx):
    """One for every example: it records its launch graphs anew when the problem changes, not when the values do."""
    grid, walls, arrays = closed_box(shape, dx)
    return arrays, Diffusion(grid, walls, TOLERANCE)


def diffused(values, diffusivity, dt, dx=1.0, steps=1):
    """A scalar after some steps, by the engine."""
    arrays, diffusion = solver(np.shape(values), dx)
    array = arrays.scalar(values)
    for _ in range(steps):
        result = diffusion.diffuse(array, diffusivity, dt)
        assert result is None or result.status in (Status.CONVERGED, Status.STALLED)
    return arrays.get(array)


def diffused_velocity(faces, viscosity, dt, kind, dx=1.0):
    """All faces of a velocity after one step."""
    shape = tuple(n - (axis == 0) for axis, n in enumerate(faces[0].shape))
    grid, walls, arrays = closed_box(shape, dx, kind)
    velocity = arrays.velocity(faces)
    Diffusion(grid, walls, TOLERANCE).diffuse_velocity(velocity, viscosity, dt)
    return arrays.faces(velocity)


def along(axis, dim, values, shape):
    """``values`` along one axis, repeated along the others."""
    return np.broadcast_to(np.reshape(values, [-1 if a == axis else 1 for a in range(dim)]), shape)


@pytest.mark.vulkan_too
@given(value=st.sampled_from([0.1, -7.3, 1e20, 0.0]), number=st.sampled_from([1e-3, 0.3, 1e4]))
def test_a_constant_stays_bitwise_the_constant(value, number):
    """1 + 4a in 2D, 1 + 6a in 3D: the ports that keep the 6 lose mass. Fast-math must not undo the differences."""
    for shape in (SHAPES[2][0], SHAPES[3][0], (9, 5, 1)):
        values = np.full(shape, value, np.float32)
        assert (diffused(values, number, 1.0) == values).all()


def test_mass_is_conserved(dim):
    for shape in SHAPES[dim]:
        values = random_scalar(shape)
        for number in (0.05, 5.0):
            # f32 rounding of the values, summed in float64; and the tolerance of the change.
            assert abs(diffused(values, number, 1.0).sum() - values.sum()) < 3e-6 * np.abs(values).sum()


def test_nothing_new_comes_up(dim):
    """Maximum principle, at any step: the reason for being implicit."""
    for shape in SHAPES[dim]:
        values = random_scalar(shape)
        for number in (0.1, 10.0, 1e4):
            out = diffused(values, number, 1.0)
            slack = 1e-5 * np.abs(values).max()  # tolerance of the solve
            assert values.min() - slack <= out.min()
            assert out.max() <= values.max() + slack
        assert np.abs(out - values.mean()).max() < 1e-2 * max(np.ptp(values), 1e-9)


def test_a_cosine_of_a_scalar_decays_by_its_eigenvalue(dim):
    shape, dx, nu, dt = (16, 9, 5)[:dim], 0.125, 0.02, 0.25
    for axis in range(dim):
        n = shape[axis]
        for k in (1, 3):
            mode = along(axis, dim, np.cos(np.pi * k * (np.arange(n) + 0.5) / n), shape)
            rate = (2 - 2 * np.cos(np.pi * k / n)) / dx**2
            # f32, and a change that is solved for to 1e-6.
            np.testing.assert_allclose(diffused(mode, nu, dt, dx), mode / (1 + nu * dt * rate), rtol=0, atol=2e-6)


def test_the_decay_test_notices_a_coefficient_that_is_1_percent_off():
    """Sabotage."""
    mode = along(0, 2, np.cos(np.pi * (np.arange(16) + 0.5) / 16), (16, 9))
    rate = (2 - 2 * np.cos(np.pi / 16)) / 0.125**2
    assert np.abs(diffused(mode, 0.0202, 0.25, 0.125) - mode / (1 + 0.02 * 0.25 * rate)).max() > 2e-5


@pytest.mark.vulkan_too
def test_a_sine_along_a_no_slip_wall_decays_by_its_eigenvalue(dim):
    """The wall lies half a cell beyond the last value, where the sine is 0."""
    shape, dx, nu, dt = (9, 16, 5)[:dim], 0.125, 0.02, 0.25
    for component, axis in ((0, 1), (1, 0)):
        n = shape[axis]
        faces = [np.zeros(face_shape(shape, a)) for a in range(dim)]
        inner = [*shape]
        inner[component] -= 1  # between the walls of the component itself, which hold it to 0, it is a sine too
        m = shape[component]
        own = along(component, dim, np.sin(np.pi * np.arange(m + 1) / m), face_shape(shape, component))
        mode = own * along(axis, dim, np.sin(np.pi * (np.arange(n) + 0.5) / n), face_shape(shape, component))
        faces[component] = mode
        rate = (2 - 2 * np.cos(np.pi / n)) + (2 - 2 * np.cos(np.pi / m))
        kinds = [("free-slip", "free-slip")] * dim
        kinds[axis] = ("no-slip", "no-slip")
        grid = Grid(shape, dx)
        walls = Walls(grid, [(Boundary(a), Boundary(b)) for a, b in kinds])
        velocity = grid.velocity()
        grid.face_velocity_from_numpy(velocity, faces)
        walls.fill_velocity(velocity)
        Diffusion(grid, walls, TOLERANCE).diffuse_velocity(velocity, nu, dt)
        after = grid.face_velocity_to_numpy(velocity)
        np.testing.assert_allclose(after[component], mode / (1 + nu * dt / dx**2 * rate), rtol=0, atol=2e-6)
        for other in range(dim):
            if other != component:
                assert not after[other].any()


def test_a_cosine_along_a_free_slip_wall_decays_by_its_eigenvalue(dim):
    shape, nu = (9, 16, 5)[:dim], 0.3
    m, n = shape[0], shape[1]
    faces = [np.zeros(face_shape(shape, a)) for a in range(dim)]
    faces[0] = along(0, dim, np.sin(2 * np.pi * np.arange(m + 1) / m), face_shape(shape, 0)) * along(
        1, dim, np.cos(np.pi * (np.arange(n) + 0.5) / n), face_shape(shape, 0)
    )
    rate = (2 - 2 * np.cos(np.pi / n)) + (2 - 2 * np.cos(2 * np.pi / m))
    after = diffused_velocity(faces, nu, 1.0, "free-slip")
    np.testing.assert_allclose(after[0], faces[0] / (1 + nu * rate), rtol=0, atol=2e-6)


def test_no_slip_takes_momentum_and_free_slip_keeps_it(dim):
    """Of a flow along the box that does not vary across it, away from the ends."""
    shape = (24, 6, 5)[:dim]
    faces = [np.zeros(face_shape(shape, a)) for a in range(dim)]
    faces[0][...] = 1.0
    for kind, kept in (("free-slip", True), ("no-slip", False)):
        middle = take(diffused_velocity(faces, 0.05, 1.0, kind)[0], 0, slice(11, 13))
        assert (np.abs(middle - 1).max() < 1e-5) == kept


def test_a_fractional_viscosity_counts(dim):
    """Ash's int argument makes 0 of 0.0001."""
    shape = SHAPES[dim][0]
    values = random_scalar(shape)
    small, smaller = (np.abs(diffused(values, nu, 1.0) - values).max() for nu in (2e-4, 1e-4))
    assert smaller > 0
    assert small == pytest.approx(2 * smaller, rel=1e-2)


def test_no_diffusivity_does_nothing(dim):
    grid, walls, arrays = closed_box(SHAPES[dim][0])
    values = random_scalar(grid.shape)
    array = arrays.scalar(values)
    diffusion = Diffusion(grid, walls)
    assert diffusion.diffuse(array, 0.0, 1.0) is None
    assert diffusion.diffuse(array, 1.0, 0.0) is None
    assert (arrays.get(array) == values).all()


@pytest.mark.parametrize("cells", [32, 64])
def test_the_width_of_a_blob_grows_alike_on_every_grid(cells):
    """Its variance by 2 nu t along each axis, exactly, as the second difference of x² is 2."""
    dx, nu, dt, steps = 1.0 / cells, 5e-4, 0.5, 4
    x = (np.arange(cells) + 0.5) * dx - 0.5
    blob = np.exp(-(x[:, None] ** 2 + x[None, :] ** 2) / (2 * 0.06**2))

    def variance(values):
        return (values.sum(axis=1) * x**2).sum() / values.sum()

    gained = variance(diffused(blob, nu, dt, dx, steps)) - variance(blob)
    # The walls see 1e-5 of it, and the tolerance of 1e-6 is weighed with x² up to 0.25 against 0.004.
    assert gained == pytest.approx(2 * nu * dt * steps, rel=1e-3)


def test_every_component_diffuses_by_itself(dim):
    """One component at rest stays at rest, and the order of the axes does not matter."""
    shape = (6, 6, 6)[:dim]
    faces = random_velocity(shape)
    for axis in range(1, dim):
        faces[axis][...] = 0
    after = diffused_velocity(faces, 0.4, 1.0, "no-slip")
    for axis in range(1, dim):
        assert not after[axis].any()
    swapped = [np.swapaxes(faces[1], 0, 1), np.swapaxes(faces[0], 0, 1), *[np.swapaxes(f, 0, 1) for f in faces[2:]]]
    found = diffused_velocity(swapped, 0.4, 1.0, "no-slip")
    np.testing.assert_allclose(np.swapaxes(found[1], 0, 1), after[0], rtol=0, atol=1e-5)


def test_a_scalar_and_a_component_share_one_solver(dim):
    """Setting up for one kind of wall must not leave anything of another behind."""
    shape = SHAPES[dim][0]
    grid, walls, arrays = closed_box(shape, kind="no-slip")
    diffusion = Diffusion(grid, walls, TOLERANCE)
    values, faces = random_scalar(shape), random_velocity(shape)
    scalar, velocity = arrays.scalar(values), arrays.velocity(faces)
    diffusion.diffuse(scalar, 0.3, 1.0)
    diffusion.diffuse_velocity(velocity, 0.3, 1.0)
    again = arrays.scalar(values)
    diffusion.diffuse(again, 0.3, 1.0)
    np.testing.assert_array_equal(arrays.get(again), arrays.get(scalar))
    for found, expected in zip(arrays.faces(velocity), diffused_velocity(faces, 0.3, 1.0, "no-slip"), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert SCALAR == -1


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, "1"])
def test_impossible_numbers_are_refused_and_change_nothing(bad):
    arrays, diffusion = solver((4, 3), 1.0)
    array = arrays.scalar(random_scalar((4, 3)))
    before = array.to_numpy()
    with pytest.raises(ValueError, match=f"diffusivity is {bad!r}; it must be a number of m²/s, 0 or more"):
        diffusion.diffuse(array, bad, 1.0)
    with pytest.raises(ValueError, match=f"dt is {bad!r}; it must be a number of seconds, 0 or more"):
        diffusion.diffuse(array, 1.0, bad)
    np.testing.assert_array_equal(array.to_numpy(), before)


def test_values_of_any_size_diffuse_alike():
    """Squares of 1e-25 are 0 in f32 and of 1e25 infinite: nothing diffused, and it was said to have converged."""
    values = random_scalar((4, 3))
    plain = diffused(values, 0.5, 1.0)
    for power in (-80, 80):
        np.testing.assert_array_equal(diffused(np.ldexp(values, power), 0.5, 1.0), np.ldexp(plain, power))
