"""Differences on the staggered grid: divergence and gradient are adjoint, and curl is exact for what is linear."""

import numpy as np
import pytest
from reference import (
    SHAPES,
    closed_box,
    curl_velocity,
    divergence,
    gradient,
    inner,
    norm,
    random_scalar,
    random_velocity,
)

from taichi_fluid.grid import Scratch
from taichi_fluid.pressure.projection import Projection
from taichi_fluid.simulation.diagnostics import Diagnostics


def divergence_of(faces, shape, dx=1.0):
    """Divergence by the engine."""
    grid, _, arrays = closed_box(shape, dx)
    out = grid.array()
    Diagnostics(grid).compute_divergence(arrays.velocity(faces), out)
    return arrays.get(out)


def gradient_of(p, dx=1.0):
    """Gradient at the faces by the kernel that takes it off the velocity."""
    grid, walls, arrays = closed_box(p.shape, dx)
    u = grid.velocity()
    Projection(grid, walls, Scratch(grid), "cg").subtract_gradient(u, arrays.scalar(p), -1.0 / dx)
    return arrays.faces(u)


@pytest.mark.vulkan_too
def test_divergence_and_gradient_are_those_of_numpy(dim):
    for shape in SHAPES[dim]:
        u, p = random_velocity(shape), random_scalar(shape)
        # Sums of 2·dim values of size 3 in f32.
        np.testing.assert_allclose(divergence_of(u, shape, 0.5), divergence(u, 0.5), rtol=0, atol=1e-5)
        for found, expected in zip(gradient_of(p, 0.5), gradient(p, 0.5), strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def adjointness_error(u, p, found_divergence, found_gradient):
    """|<div u, p> + <u, grad p>| relative to the norms: 0 for adjoint operators."""
    return abs(inner(found_divergence, p) + inner(u, found_gradient)) / (norm(u) * norm(p) + 1e-30)


@pytest.mark.vulkan_too
def test_divergence_is_minus_the_adjoint_of_gradient(dim):
    for seed, shape in enumerate(SHAPES[dim]):
        u, p = random_velocity(shape, seed), random_scalar(shape, seed)
        # Rounding of the differences only: the sums are taken in float64.
        assert adjointness_error(u, p, divergence_of(u, shape), gradient_of(p)) < 1e-6


def test_the_adjointness_test_notices_a_gradient_that_crosses_a_wall(dim):
    """Sabotage: a gradient that is not 0 on one wall face, with a velocity there."""
    shape = SHAPES[dim][0]
    u, p = random_velocity(shape), random_scalar(shape)
    broken = gradient_of(p)
    for axis in range(dim):
        u[axis].flat[0], broken[axis].flat[0] = 0.5, 0.5
    assert adjointness_error(u, p, divergence_of(u, shape), broken) > 1e-3


def test_a_curl_has_no_divergence(dim):
    shape = SHAPES[dim][0]
    faces = curl_velocity(shape)
    assert norm(faces) > 1
    np.testing.assert_allclose(divergence_of(faces, shape), 0, atol=5e-6)  # cancelling values of size 5


def test_the_vorticity_of_solid_rotation_is_twice_its_rate(dim):
    """Around every axis, with a sign in 2D; away from the walls, at which the fluid does not rotate with the box."""
    shape, dx, rate = (8, 9, 10)[:dim], 0.125, 1.5
    for third in range(3) if dim == 3 else (2,):
        a, b = [(1, 2), (2, 0), (0, 1)][third]
        grid, _, arrays = closed_box(shape, dx)
        faces = [np.zeros(tuple(n + (d == axis) for d, n in enumerate(shape))) for axis in range(dim)]
        centre = [0.5 * n for n in shape]
        for axis, other, sign in ((a, b, -1), (b, a, 1)):
            x = np.indices(faces[axis].shape)[other] + 0.5
            faces[axis] += sign * rate * dx * (x - centre[other])
        u, out = grid.velocity(), grid.array()
        grid.face_velocity_from_numpy(u, faces)
        Diagnostics(grid).compute_vorticity(u, out)
        inside = arrays.get(out)[(slice(2, -2),) * dim]
        np.testing.assert_allclose(inside, 2 * rate, rtol=2e-6)


def test_speed_is_that_at_the_centres(dim):
    for shape in SHAPES[dim]:
        grid, _, arrays = closed_box(shape)
        faces = random_velocity(shape)
        out = grid.array()
        Diagnostics(grid).compute_speed(arrays.velocity(faces), out)
        means = [0.5 * (np.delete(f, -1, axis) + np.delete(f, 0, axis)) for axis, f in enumerate(faces)]
        np.testing.assert_allclose(arrays.get(out), np.sqrt(sum(m**2 for m in means)), rtol=0, atol=2e-6)
