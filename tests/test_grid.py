"""Where cells and faces lie, what is refused, and what happens without Taichi or after it was started again."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from reference import SHAPES, face_shape

from taichi_fluid.grid import MAX_ARRAY_BYTES, Grid

ROOT = Path(__file__).parent.parent


def test_values_come_back_as_they_went_in_and_ghosts_stay(dim):
    for shape in SHAPES[dim]:
        grid = Grid(shape, 0.1)
        for components in (1, 3):
            array = grid.array(components)
            assert not array.to_numpy().any()
            array.fill(7.0)
            full = (components, *shape) if components > 1 else shape
            values = np.random.default_rng(0).random(full).astype(np.float32)
            grid.from_numpy(array, values)
            np.testing.assert_array_equal(grid.to_numpy(array), values)
            padded = grid.to_numpy_padded(array)
            assert padded.shape == full[: components > 1] + grid.padded
            assert (padded == 7).sum() == components * (grid.cells - math.prod(shape))


def test_faces_come_back_with_both_walls(dim):
    for shape in SHAPES[dim]:
        grid = Grid(shape, 0.1)
        velocity = grid.velocity()
        rng = np.random.default_rng(0)
        faces = [rng.random(face_shape(shape, axis)).astype(np.float32) for axis in range(dim)]
        grid.face_velocity_from_numpy(velocity, faces)
        for given, found in zip(faces, grid.face_velocity_to_numpy(velocity), strict=True):
            np.testing.assert_array_equal(found, given)
        # ``to_numpy`` hands out the lower faces of the same.
        for axis, component in enumerate(grid.to_numpy(velocity)):
            np.testing.assert_array_equal(component, np.delete(faces[axis], -1, axis=axis))


def test_what_comes_out_is_a_copy(dim):
    grid = Grid(SHAPES[dim][0], 1.0)
    array = grid.array()
    grid.to_numpy(array)[...] = 1.0
    assert not grid.to_numpy(array).any()


def test_lengths_follow_from_shape_and_dx(dim):
    shape = SHAPES[dim][0]
    grid = Grid(shape, 0.25, origin=(1.0, 2.0, 3.0)[:dim])
    assert grid.dim == dim
    assert grid.cells == math.prod(n + 2 for n in shape)
    assert grid.cell_volume == 0.25**dim
    assert grid.size == tuple(0.25 * n for n in shape)
    for axis, centres in enumerate(grid.cell_centres()):
        assert centres.shape == tuple(n if a == axis else 1 for a, n in enumerate(shape))
        assert centres.ravel()[0] == grid.origin[axis] + 0.125
        assert centres.ravel()[-1] == pytest.approx(grid.origin[axis] + grid.size[axis] - 0.125)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (dict(shape=(4,), dx=1.0), "shape"),
        (dict(shape=(4, 4, 4, 4), dx=1.0), "shape"),
        (dict(shape=(4, 0), dx=1.0), "shape"),
        (dict(shape=(4, -3, 2), dx=1.0), "shape"),
        (dict(shape=(4, 4), dx=0.0), "dx"),
        (dict(shape=(4, 4), dx=-1.0), "dx"),
        (dict(shape=(4, 4), dx=math.nan), "dx"),
        (dict(shape=(4, 4), dx=math.inf), "dx"),
        (dict(shape=(4.5, 8), dx=1.0), r"shape\[0\] is 4.5; it must be a whole number, 1 or more"),
        (dict(shape=(4, 8.0), dx=1.0), r"shape\[1\] is 8.0"),
        (dict(shape=(4, True), dx=1.0), r"shape\[1\] is True"),
        (dict(shape="44", dx=1.0), r"shape\[0\] is '4'"),
        (dict(shape=8, dx=1.0), "shape is 8"),
        (dict(shape=(4, 4), dx="1"), "dx is '1'; it must be a positive number of metres"),
        (dict(shape=(4, 4), dx=True), "dx is True"),
        (dict(shape=(4, 4), dx=1.0, origin=(0.0,)), "origin has 1 coordinates on a grid of 2 axes"),
        (dict(shape=(4, 4), dx=1.0, origin=(0.0, math.nan)), r"origin\[1\] is nan; it must be a finite number"),
        (dict(shape=(4, 4), dx=1.0, origin=(-math.inf, 0)), r"origin\[0\] is -inf"),
        (dict(shape=(4, 4), dx=1.0, origin=(0, False)), r"origin\[1\] is False"),
    ],
)
def test_what_cannot_be_is_refused_by_name(arguments, named):
    with pytest.raises(ValueError, match=named):
        Grid(**arguments)


def test_numbers_of_numpy_are_as_good():
    grid = Grid(np.array([4, 3]), np.float32(0.5), origin=np.array([1, 2]))
    assert (grid.shape, grid.dx, grid.origin) == ((4, 3), 0.5, (1.0, 2.0))
    assert [type(n) for n in grid.shape] == [int, int]


def test_an_array_beyond_the_limit_is_refused_before_it_is_allocated():
    side = math.isqrt(MAX_ARRAY_BYTES // 4)
    with pytest.raises(ValueError, match="2 GiB"):
        Grid((side, side), 1.0).array()
    with pytest.raises(ValueError, match="2 GiB"):
        Grid((600, 600, 600), 1.0).velocity()


def test_values_of_another_shape_are_refused(dim):
    grid = Grid(SHAPES[dim][0], 1.0)
    with pytest.raises(ValueError, match="shape"):
        grid.from_numpy(grid.array(), np.zeros((3,) * dim))
    with pytest.raises(ValueError, match="component 0"):
        grid.face_velocity_from_numpy(grid.velocity(), [np.zeros(grid.shape)] * dim)


def run_python(code: str) -> subprocess.CompletedProcess:
    """Run code in a process of its own, where Taichi may be started as it likes."""
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_a_grid_before_taichi_runs_says_what_to_call():
    done = run_python(
        "from taichi_fluid.grid import Grid\ntry: Grid((4, 4), 1.0)\nexcept RuntimeError as error: print(error)\n"
    )
    assert done.returncode == 0, done.stderr
    assert "ti.init" in done.stdout


def test_a_grid_from_before_a_new_start_says_so():
    done = run_python(
        "from taichi_fluid._ti import ti\n"
        "from taichi_fluid.grid import Grid\n"
        "ti.init(arch=ti.cpu, log_level=ti.ERROR)\n"
        "grid = Grid((4, 4), 1.0); array = grid.array()\n"
        "for again in (ti.reset, lambda: ti.init(arch=ti.cpu, log_level=ti.ERROR)):\n"
        "    again()\n"
        "    for use in (grid.array, lambda: grid.to_numpy(array), grid.require_runtime):\n"
        "        try: use()\n"
        "        except RuntimeError as error: print('refused', 're-initialised' in str(error))\n"
        "Grid((4, 4), 1.0).array(); print('a new one works')\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused True") == 6
    assert "a new one works" in done.stdout
