"""The hash behind the noise is the same integer arithmetic everywhere; the noise is smooth and evenly spread."""

import numpy as np
import pytest

from taichi_fluid._ti import ti
from taichi_fluid.grid import Grid
from taichi_fluid.kernels import Array, kernel_family
from taichi_fluid.operators.noise import hash_01, value_noise


@ti.func
def _write_noise(c, I, s, hashed: ti.template(), smooth: ti.template(), shift, scale):
    hashed[c] = hash_01(I + shift)
    smooth[c] = value_noise(ti.cast(I, ti.f32) * scale)


@kernel_family
def noise_kernels(loops):
    IntVector, each_cell = loops.IntVector, loops.each_cell

    @ti.kernel
    def compute(hashed: Array, smooth: Array, n: IntVector, shift: ti.i32, scale: ti.f32):
        each_cell(n, _write_noise, (hashed, smooth, shift, scale))

    return {"compute": compute}


def noise(shape, shift=0, scale=1.0):
    """Hash and noise at the integer positions 1, 2, … of a grid."""
    grid = Grid(shape, 1.0)
    hashed, smooth = grid.array(), grid.array()
    noise_kernels(grid.loops).compute(hashed, smooth, grid.n, shift, scale)
    return grid.to_numpy(hashed), grid.to_numpy(smooth)


def hash_by_numpy(shape, shift=0):
    """The same hash in NumPy's wrapping 32-bit arithmetic."""
    h = np.full(shape, 0x9E3779B9, np.uint32)
    for index in np.indices(shape):
        h = (h ^ (index + 1 + shift).astype(np.uint32)) * np.uint32(0x85EBCA6B)
        h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
        h = h ^ (h >> np.uint32(16))
    return (h >> np.uint32(8)).astype(np.float32) / np.float32(2**24)


@pytest.mark.vulkan_too
@pytest.mark.parametrize("shift", [0, -40, 1_000_000_000])
def test_the_hash_is_the_same_bits_everywhere(dim, shift):
    shape = (17, 19, 13)[:dim]
    np.testing.assert_array_equal(noise(shape, shift)[0], hash_by_numpy(shape, shift))


def test_the_hash_is_evenly_spread(dim):
    shape = (300, 301) if dim == 2 else (44, 45, 46)
    hashed = noise(shape)[0].astype(np.float64)
    assert hashed.min() >= 0
    assert hashed.max() < 1
    # 9e4 independent samples: three deviations of their mean are 3e-3, of a bin of a tenth 3e-3.
    assert hashed.mean() == pytest.approx(0.5, abs=3e-3)
    np.testing.assert_allclose(np.histogram(hashed, 10, (0, 1))[0] / hashed.size, 0.1, atol=4e-3)
    for axis in range(dim):
        a, b = np.delete(hashed, 0, axis), np.delete(hashed, -1, axis)
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.012


@pytest.mark.vulkan_too
def test_noise_passes_through_the_hash_and_is_smooth_between(dim):
    shape = (40, 41, 12)[:dim]
    hashed, smooth = noise(shape)
    np.testing.assert_array_equal(smooth, hashed)
    fine = noise(shape, scale=0.01)[1]
    for axis in range(dim):
        # Slopes of the blend are at most 1.5 between values less than 1 apart.
        assert np.abs(np.diff(fine, axis=axis)).max() <= 0.015 + 1e-6
