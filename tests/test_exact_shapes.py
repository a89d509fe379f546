"""Solids in pictures: as sharp as their shapes on any grid, wherever they have moved, and round where only a grid knows them."""

import math

import numpy as np
import pytest
from test_render import picture, simulation_of

from taichi_fluid._ti import ti
from taichi_fluid.boundaries.solids import Solid
from taichi_fluid.operators.shapes import box_distance
from taichi_fluid.render.exact import MOST_SHAPES, table_of
from taichi_fluid.render.renderer import Renderer
from taichi_fluid.simulation import Simulation

COARSE, FINE = 10, 50
SHAPES = {
    "sphere": {"center": [0.5, 0.45, 0.5], "radius": 0.22},
    "box": {"center": [0.5, 0.45, 0.5], "size": [0.5, 0.3, 0.4]},
    "capsule": {"ends": [[0.3, 0.4, 0.4], [0.7, 0.6, 0.6]], "radius": 0.12},
    "cylinder": {"ends": [[0.3, 0.4, 0.4], [0.7, 0.6, 0.6]], "radius": 0.15},
}


def solid(shape: str, dim: int, **more) -> dict:
    """One of ``SHAPES`` in so many dimensions."""

    def cut(value):
        if not isinstance(value, list):
            return value
        return [cut(part) for part in value] if isinstance(value[0], list) else value[:dim]

    return {"shape": shape, **{key: cut(value) for key, value in SHAPES[shape].items()}, **more}


def silhouette(cells: int, dim: int, solids: list[dict], seconds: float = 0.0, **tables) -> np.ndarray:
    """Where a picture is red, as solids are, and nothing else is."""
    tables = {"camera": {"azimuth": 25.0, "elevation": 30.0, "distance": 2.6}, **tables}
    red = [{**each, "colour": [1.0, 0.1, 0.1]} for each in solids]
    flow = simulation_of((cells,) * dim, (96, 96), solids=red, **tables)
    if seconds:
        flow.place_solids(seconds)
    seen = picture(flow)
    return seen[..., 0] > seen[..., 2] + 10


def off(coarse: np.ndarray, fine: np.ndarray) -> float:
    """Pixels in which two silhouettes differ, over those of the finer one."""
    return (coarse != fine).sum() / fine.sum()


@pytest.mark.vulkan_too(shape="box")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_as_sharp_on_a_coarse_grid_as_on_a_fine_one(dim, shape):
    """A pixel of the rim here and there; from distances on the coarse grid 0.03 to 0.05 in 2D, to 0.17 in 3D."""
    coarse, fine = (silhouette(cells, dim, [solid(shape, dim)]) for cells in (COARSE, FINE))
    assert fine.sum() > 500
    assert off(coarse, fine) < 0.02


@pytest.mark.parametrize("view", ["sheets", "volume"])
def test_what_has_moved_and_turned_is_drawn_where_it_is(dim, view):
    turn = {"angular_velocity": 2.0 if dim == 2 else [0.0, 0.5, 2.0], "velocity": [0.1, -0.1, 0.0][:dim]}
    moved = [solid("box", dim, **turn)]
    tables = {"look": {"view": view}} if dim == 3 else {}
    coarse, fine = (silhouette(cells, dim, moved, 0.6, **tables) for cells in (COARSE, FINE))
    assert off(coarse, fine) < 0.02
    assert off(silhouette(COARSE, dim, moved, **tables), fine) > 0.1, "and it was elsewhere before"


def test_a_picture_follows_a_solid_that_moves():
    """The table is made anew when solids have been moved, and not before."""
    flow = simulation_of((12, 12), (64, 64), solids=[solid("box", 2, velocity=[0.3, 0.0])])
    renderer = Renderer(flow)
    before = renderer.render()
    np.testing.assert_array_equal(renderer.render(), before)
    flow.place_solids(0.5)
    assert (renderer.render() != before).any()


def test_across_a_periodic_side_both_ends_are_sharp():
    tables = {"domain": {"size": [1.0, 1.0], "resolution": COARSE, "boundaries": "periodic"}}
    across = [{"shape": "box", "center": [1.0, 0.5], "size": [0.3, 0.33]}]
    coarse = silhouette(COARSE, 2, across, **tables)
    tables["domain"]["resolution"] = FINE
    fine = silhouette(FINE, 2, across, **tables)
    assert off(coarse, fine) < 0.02
    half = coarse.shape[1] // 2
    assert coarse[:, :half].sum() == pytest.approx(coarse[:, half:].sum(), rel=0.1)


@ti.func
def own_box(x):
    return box_distance(x, x * 0, x * 0 + 0.21, ti.f32(0.0))


def test_shapes_of_ones_own_and_very_many_are_drawn_from_the_grid():
    scene = simulation_of((COARSE, COARSE), solids=[solid("sphere", 2)]).scene
    named = Simulation(scene)
    assert table_of(named.solids.placed, named.grid)[0] == 1
    own = Simulation(scene, solids=[Solid(own_box, motion=None)])
    assert table_of(own.solids.placed, own.grid)[0] == 0
    picture(own)
    many = [solid("sphere", 2, radius=0.02, center=[0.02 * k, 0.5]) for k in range(MOST_SHAPES + 1)]
    crowd = simulation_of((COARSE, COARSE), solids=many)
    assert table_of(crowd.solids.placed, crowd.grid)[0] == 0


def test_the_table_has_what_is_there_now():
    """In cells from the corner of the box: pivot, rotation, and the ends relative to that before any turn."""
    flow = simulation_of((COARSE, COARSE), solids=[solid("box", 2, angular_velocity=math.pi, begin=1.0)])
    assert table_of(flow.solids.placed, flow.grid)[0] == 0
    flow.place_solids(1.5)
    table = table_of(flow.solids.placed, flow.grid)
    assert table[0] == 1
    np.testing.assert_allclose(table[2:4], [5.0, 4.5], rtol=1e-6)
    np.testing.assert_allclose(table[4:8], [0, 1, -1, 0], atol=1e-6)
    np.testing.assert_allclose(table[8:12], [0, 0, 2.5, 1.5], atol=1e-6)
