"""What a wall does to what moves away from it: it holds what no air comes behind, and nothing else."""

import numpy as np
import pytest

import taichi_fluid as tf
from taichi_fluid.validation.water import fastest, water

CELLS = 48
DX = 1.0 / CELLS


def places(simulation):
    return simulation.liquid.particles.to_numpy()["position"]


def fallen(simulation, axis, seconds):
    """By how much of what it falls freely a liquid goes down along an axis."""
    before = places(simulation)[:, axis].mean()
    simulation.advance(seconds)
    return (before - places(simulation)[:, axis].mean()) / (0.5 * 9.81 * seconds**2)


@pytest.mark.parametrize("transfer", ["apic", "flip"])
@pytest.mark.parametrize("depth", [0.5, 1.0, 1.8])
def test_a_film_under_a_lid_falls(depth, transfer):
    """In 0.3 s it had fallen by 0.015 to 0.23 of what it falls freely, and what was half a cell deep hung there for seconds."""
    slab = {"shape": "box", "center": [0.5, 1.0 - 0.5 * depth * DX], "size": [0.5, depth * DX]}
    simulation = tf.Simulation(water([1.0, 1.0], CELLS, liquid={"bodies": [slab], "transfer": transfer}))
    assert fallen(simulation, 1, 0.3) > 0.9
    assert (places(simulation)[:, 1] < 1.0 - 2 * DX).all()


@pytest.mark.parametrize("offset", [0.0, 0.4])
@pytest.mark.parametrize("rises", [False, True])
def test_a_film_under_a_solid_falls(offset, rises):
    """Wherever in a cell the solid ends, also if that sets off: nothing draws the film along."""
    top = 0.7 + offset * DX
    slab = {"shape": "box", "center": [0.5, top - 0.4 * DX], "size": [0.5, 0.8 * DX]}
    shelf = {"shape": "box", "center": [0.5, top + 0.05], "size": [0.7, 0.1]}
    if rises:
        shelf["path"] = ["0", "0.4*max(t - 0.03, 0)"]
    simulation = tf.Simulation(water([1.0, 1.0], CELLS, liquid={"bodies": [slab]}, solids=[shelf]))
    assert fallen(simulation, 1, 0.3) > 0.9
    assert (places(simulation)[:, 1] < top - 2 * DX).all()


def test_a_film_leaves_any_side_alike():
    """The same, turned by gravity to each side of a box, in 3D."""
    ways, cells = [], 16
    for axis in range(3):
        for sign in (-1.0, 1.0):
            gravity, size, center = [0.0] * 3, [0.5] * 3, [0.5] * 3
            gravity[axis], size[axis], center[axis] = 9.81 * sign, 1 / cells, 0.5 - sign * (0.5 - 0.5 / cells)
            slab = {"shape": "box", "center": center, "size": size}
            scene = water([1.0] * 3, cells, liquid={"bodies": [slab]}, fluid={"gravity": gravity})
            ways.append(-sign * fallen(tf.Simulation(scene), axis, 0.3))
    assert min(ways) > 0.9
    # What differs is the order in which cells and sums come.
    assert max(ways) < min(ways) + 0.01


@pytest.mark.parametrize("half", [0.02, 0.16])
def test_what_is_deep_under_a_lid_is_held(half):
    """A glass turned over in a pool keeps its column of water, which hangs there by less than the pressure of the air; two cells wide too."""
    glass = [
        {"shape": "box", "center": [0.5 - half - 0.04, 0.55], "size": [0.08, 0.7]},
        {"shape": "box", "center": [0.5 + half + 0.04, 0.55], "size": [0.08, 0.7]},
        {"shape": "box", "center": [0.5, 0.95], "size": [2 * half + 0.16, 0.1]},
    ]
    pool, column = ([0.0, 0.0], [1.0, 0.35]), ([0.5 - half, 0.35], [0.5 + half, 0.9])
    simulation = tf.Simulation(water([1.0, 1.2], CELLS, [pool, column], solids=glass))
    simulation.advance(0.5)
    within = np.abs(places(simulation)[:, 0] - 0.5) < half
    assert places(simulation)[within, 1].max() == pytest.approx(0.9, abs=0.02)
    assert simulation.speed < 0.05


def test_a_solid_that_appears_in_calm_water_moves_nothing():
    """Above it faces that chance had made alike were taken for those of what falls from a lid: a cell of air, 1.2 m/s."""
    disk = {"shape": "sphere", "center": [0.5, 0.25], "radius": 0.12, "begin": 0.3}
    pool = [([0.0, 0.0], [1.0, 0.5])]
    simulation = tf.Simulation(water([1.0, 0.8], 64, pool, liquid={"band": 3}, solids=[disk]))
    while simulation.time < 0.5:
        simulation.step(0.02)
        assert fastest(simulation) < 1e-3
    assert simulation.to_numpy("level set")[:, :16].max() < 0
