"""Ghosts: what each kind of side says to the stencils, corners included."""

import numpy as np
import pytest
from reference import SHAPES, random_scalar, take

from taichi_fluid.boundaries.sides import Boundary
from taichi_fluid.boundaries.walls import SCALAR, Walls
from taichi_fluid.grid import Grid

FREE, NO = Boundary.FREE_SLIP, Boundary.NO_SLIP
MIXED = ((FREE, NO), (NO, NO), (NO, FREE))


def filled_velocity(shape, boundaries, seed=0):
    """A random velocity, also where walls and ghosts are, after its walls were filled; padded, in f32."""
    grid = Grid(shape, 1.0)
    walls = Walls(grid, boundaries)
    velocity = grid.velocity()
    velocity.from_numpy(np.random.default_rng(seed).random(grid.cells * grid.dim).astype(np.float32))
    walls.fill_velocity(velocity)
    return grid, walls, velocity, grid.to_numpy_padded(velocity)


@pytest.mark.vulkan_too
def test_ghosts_of_a_scalar_copy_the_nearest_cell(dim):
    """So the corner equals its cell: with Ash's 0.33 a constant would not stay one."""
    for shape in SHAPES[dim]:
        grid = Grid(shape, 1.0)
        array = grid.array()
        values = random_scalar(shape).astype(np.float32)
        grid.from_numpy(array, values)
        Walls(grid, MIXED[:dim]).fill(array)
        np.testing.assert_array_equal(grid.to_numpy_padded(array), np.pad(values, 1, mode="edge"))


@pytest.mark.vulkan_too
def test_nothing_flows_through_a_wall(dim):
    for shape in SHAPES[dim]:
        for kind in (FREE, NO):
            _, _, _, padded = filled_velocity(shape, ((kind, kind),) * dim)
            for axis in range(dim):
                for wall in (1, shape[axis] + 1):
                    layer = take(padded[axis], axis, slice(wall, wall + 1))
                    assert (layer == 0).all(), "the faces on a wall carry its velocity, bit for bit"


@pytest.mark.vulkan_too
def test_slip_is_chosen_for_every_side(dim):
    """Along a free-slip wall the ghost equals its neighbour, along a no-slip wall it is the negative."""
    for shape in SHAPES[dim]:
        _, _, _, padded = filled_velocity(shape, MIXED[:dim])
        for component in range(dim):
            for axis in range(dim):
                u = padded[component]
                if axis == component:
                    np.testing.assert_array_equal(take(u, axis, slice(0, 1)), -take(u, axis, slice(2, 3)))
                    continue
                for side, ghost, inner in ((0, 0, 1), (1, shape[axis] + 1, shape[axis])):
                    sign = -1 if MIXED[axis][side] is NO else 1
                    found, there = take(u, axis, slice(ghost, ghost + 1)), take(u, axis, slice(inner, inner + 1))
                    # The ghosts of later axes are filled after these, from values that these belong to: all agree.
                    np.testing.assert_array_equal(found, sign * there)


def test_filling_twice_changes_nothing(dim):
    for shape in SHAPES[dim]:
        grid, walls, velocity, once = filled_velocity(shape, MIXED[:dim])
        walls.fill_velocity(velocity)
        np.testing.assert_array_equal(grid.to_numpy_padded(velocity), once)


def test_filling_leaves_the_inner_faces_and_the_other_components_alone(dim):
    shape = SHAPES[dim][0]
    grid = Grid(shape, 1.0)
    velocity = grid.velocity()
    before = np.random.default_rng(0).random(grid.cells * dim).astype(np.float32)
    velocity.from_numpy(before)
    Walls(grid, MIXED[:dim]).fill(velocity, component=1, offset=grid.cells)
    before, after = before.reshape(dim, *grid.padded), grid.to_numpy_padded(velocity)
    for component in range(dim):
        if component != 1:
            np.testing.assert_array_equal(after[component], before[component])
    inside = tuple(slice(2 if axis == 1 else 1, -1) for axis in range(dim))
    np.testing.assert_array_equal(after[1][inside], before[1][inside])


def test_boundaries_of_another_dimension_are_refused(dim):
    grid = Grid((4,) * dim, 1.0)
    with pytest.raises(ValueError, match="boundaries"):
        Walls(grid, MIXED[: dim - 1])
    with pytest.raises(ValueError, match="boundaries"):
        Walls(grid, [(FREE, FREE, FREE)] * dim)
    with pytest.raises(ValueError, match="sticky"):
        Walls(grid, [("sticky", "free-slip")] * dim)


def test_what_walls_mean_to_diffusion(dim):
    """No flux of a scalar; a value held at the wall's own faces; held half a cell away along a no-slip side."""
    walls = Walls(Grid((4,) * dim, 1.0), MIXED[:dim])
    assert walls.diffusion_sides(SCALAR, 2.0).box == (0.0,) * (2 * dim)
    assert walls.diffusion_sides(0, 2.0).box == (1.0, 1.0, 2.0, 2.0, 2.0, 0.0)[: 2 * dim]
    assert walls.diffusion_sides(1, 2.0).box == (0.0, 2.0, 1.0, 1.0, 2.0, 0.0)[: 2 * dim]
    assert walls.diffusion_sides(0, 2.0).shift == 2.0
    assert walls.first_unknown(SCALAR) == (1,) * dim
    assert walls.first_unknown(1) == (1, 2, 1)[:dim]
    assert not any(walls.pressure_sides().box)
