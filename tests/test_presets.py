"""Every scene of the package, coarse and short: it runs, its picture shows something, what it moves is counted."""

import numpy as np
import pytest

import taichi_fluid as tf
from taichi_fluid.bench.traffic import moved, uncounted, watched
from taichi_fluid.pressure.solver import Status
from taichi_fluid.scene import preset_names


@pytest.mark.vulkan_too
@pytest.mark.parametrize("name", preset_names())
def test_a_preset_runs_and_shows_something(name):
    scene = tf.preset(name).with_values({"domain.resolution": 20})
    simulation = tf.Simulation(scene)
    renderer = tf.Renderer(simulation, 96, 96)
    empty = renderer.render().astype(int)
    with watched() as watch:
        for _ in range(5 if scene.liquid else 3):
            step = simulation.step()
            assert step.pressure is not None
            solved = step.pressure.status in (Status.CONVERGED, Status.STALLED)
            # What falls freely has nothing but rounding to solve for, of which the solver of a GPU may make nothing.
            assert solved or np.abs(simulation.to_numpy("pressure")).max() < 1e-4, step.pressure
        launches = watch.take()
    assert uncounted(launches) == set(), "say in traffic.TRAFFIC what these read and write"
    assert moved(launches) > 0
    picture = renderer.render().astype(int)
    assert picture.std() > 1, "something is to be seen"
    if not scene.pictures:
        assert np.abs(picture - empty).max() > 4, "that was not there at the beginning"
    for quantity in simulation.state.quantities():
        assert np.isfinite(simulation.to_numpy(quantity.name)).all(), quantity.name


@pytest.mark.parametrize("name", preset_names())
def test_the_film_of_a_preset_can_be_watched(name):
    """That of ``crown``, of which a second is 25 ms, was over in those."""
    output, pace = tf.preset(name).output, tf.preset(name).live.pace
    assert 20 <= output.fps * pace <= 60 and output.frames >= 1.5 * output.fps * pace
