"""Spray, foam and bubbles: how they move, where they are made, what they leave alone, and how they are seen."""

import math

import numpy as np
import pytest

import taichi_fluid as tf
from taichi_fluid.liquid.foam import DRAG, RISE
from taichi_fluid.scene import bytes_needed
from taichi_fluid.validation.water import water

STEP = 0.01


def pool(dim, resolution=16, **tables):
    """Water at rest in the lower half of a box of a metre."""
    return water([1.0] * dim, resolution, [([0.0] * dim, [1.0, 0.5, 1.0][:dim])], **tables)


def with_some(simulation, places, velocity, life=5.0):
    """Foam of points at places in metres that all move alike."""
    foam, dim = simulation.liquid.foam, simulation.grid.dim
    x = np.array(places, dtype=np.float64)[:, :dim] / simulation.grid.dx
    foam.particles.add(x, np.tile(np.array(velocity)[:dim], (len(x), 1)), life=np.full((len(x), 1), life))
    foam.particles.sort()
    return foam


def only(foam):
    found = foam.particles.to_numpy()
    assert foam.particles.count == 1
    return {name: values[0] for name, values in found.items()}


def moved(simulation, steps=1, gravity=(0.0, -9.81, 0.0), amount=0.0):
    """Let foam alone go on; the liquid stands still."""
    for _ in range(steps):
        simulation.liquid.foam.step(
            simulation.state.velocity.current,
            simulation.liquid.phi,
            dt=STEP,
            gravity=gravity[: simulation.grid.dim],
            amount=amount,
            speed=1.0,
            lasts=2.0,
            draw=simulation.liquid.steps,
        )


@pytest.mark.vulkan_too
def test_spray_falls_and_is_braked_by_the_air(dim):
    simulation = tf.Simulation(pool(dim))
    foam = with_some(simulation, [(0.3, 0.75, 0.5)], (1.0, 1.0, 0.0))
    moved(simulation, 10)
    found, still = only(foam), math.exp(-DRAG * STEP)
    v, x = np.array([1.0, 1.0]), np.array([0.3, 0.75])
    for _ in range(10):
        v = (v + STEP * np.array([0.0, -9.81])) * still
        x = x + STEP * v
    np.testing.assert_allclose(found["position"][:2], x, atol=1e-5)
    np.testing.assert_allclose(found["velocity"][:2], v, atol=1e-5)
    assert found["life"] == pytest.approx(5.0), "what flies does not age"


def test_a_bubble_rises_floats_and_is_gone(dim):
    simulation = tf.Simulation(pool(dim))
    foam = with_some(simulation, [(0.5, 0.2, 0.5)], (3.0, 3.0, 0.0), life=1.6)
    moved(simulation, 40)
    assert only(foam)["position"][1] == pytest.approx(0.2 + 40 * STEP * RISE, abs=1e-4)
    moved(simulation, 90)
    found = only(foam)
    assert abs(found["position"][1] - 0.5) <= simulation.grid.dx, "on the surface, where the flow is at rest"
    assert found["life"] == pytest.approx(1.6 - 130 * STEP, abs=1e-4)
    moved(simulation, 40)
    assert foam.particles.count == 0


def test_a_wall_stops_spray_and_an_open_side_lets_it_out(dim):
    sides = [["free-slip", "open"], *[["free-slip"] * 2] * (dim - 1)]
    for place, way in (((0.95, 0.8, 0.5), 9.0), ((0.05, 0.8, 0.5), -9.0)):
        scene = pool(dim)
        simulation = tf.Simulation(scene.with_values({"domain.boundaries": sides}))
        foam = with_some(simulation, [place], (way, 0.0, 0.0))
        moved(simulation, 2)
        assert foam.particles.count == 0


def test_a_sink_takes_foam(dim):
    drain = {"shape": "sphere", "center": [0.3, 0.75, 0.5][:dim], "radius": 0.1, "sink": True}
    simulation = tf.Simulation(pool(dim, sources=[drain]))
    foam = with_some(simulation, [(0.3, 0.75, 0.5)], (0.0, 0.0, 0.0))
    simulation.step(STEP)
    assert foam.particles.count == 0


@pytest.mark.vulkan_too(dim=2)
def test_foam_is_never_in_a_solid_nor_out_of_the_box(dim):
    scene = water(
        [1.0] * dim,
        16,
        [([0.0] * dim, [0.3, 0.9, 1.0][:dim])],
        liquid={"foam": 50.0, "foam_speed": 0.3},
        solids=[{"shape": "sphere", "center": [0.6, 0.2, 0.5][:dim], "radius": 0.15}],
    )
    simulation, most = tf.Simulation(scene), 0
    for _ in range(25):
        simulation.step(0.02)
        found = simulation.liquid.foam.particles.to_numpy()
        most = max(most, len(found["position"]))
        assert np.isfinite(found["position"]).all()
        assert (found["position"] >= 0).all()
        assert (found["position"] <= 1).all()
        away = np.linalg.norm(found["position"] - np.array([0.6, 0.2, 0.5][:dim]), axis=1)
        assert (away > 0.15 - 0.2 * simulation.grid.dx).all(), "but for what cells do not show of the ball"
        assert (found["life"] > 0).all()
    assert 20 < most <= simulation.liquid.foam.most


def test_water_at_rest_makes_none_and_what_makes_it_does_not_move_the_water(dim):
    calm = tf.Simulation(pool(dim).with_values({"liquid.foam": 100.0}))
    scene = water([1.0] * dim, 12, [([0.0] * dim, [0.4, 0.8, 1.0][:dim])])
    bare, foamy = (
        tf.Simulation(scene),
        tf.Simulation(scene.with_values({"liquid.foam": 100.0, "liquid.foam_speed": 0.2})),
    )
    for _ in range(10):
        for each in (calm, bare, foamy):
            each.step(0.02)
    assert not calm.liquid.has_foam
    assert not bare.liquid.has_foam
    assert foamy.liquid.foam.particles.count > 10
    np.testing.assert_array_equal(bare.to_numpy("velocity"), foamy.to_numpy("velocity"))
    np.testing.assert_array_equal(bare.to_numpy("level set"), foamy.to_numpy("level set"))


def made_by(scene, seconds=0.5, dt=0.01):
    """Foam of a flow after some seconds."""
    simulation = tf.Simulation(scene)
    for _ in range(round(seconds / dt)):
        simulation.step(dt)
    return simulation.liquid.foam.particles.count


def test_there_is_as_much_as_is_asked_for_whatever_the_step():
    scene = tf.preset("dam2d").with_values({"domain.resolution": 64, "liquid.foam": 4.0, "liquid.foam_life": 100.0})
    usual = made_by(scene, 0.8)
    assert usual > 100
    assert 0.7 < made_by(scene, 0.8, 0.005) / usual < 1.4
    assert 1.6 < made_by(scene.with_values({"liquid.foam": 8.0}), 0.8) / usual < 2.4


def test_there_are_never_more_than_cells():
    scene = tf.preset("dam2d").with_values({"domain.resolution": 24, "liquid.foam": 100.0, "liquid.foam_speed": 0.1})
    simulation = tf.Simulation(scene.with_values({"liquid.foam_life": 1e3}))
    for _ in range(60):
        simulation.step(0.02)
    most = simulation.liquid.foam.most
    assert 0.5 * most < simulation.liquid.foam.particles.count <= most
    assert bytes_needed(scene) > bytes_needed(scene.with_values({"liquid.foam": 0.0}))


def test_it_can_be_switched_while_it_runs_and_is_gone_after_a_reset():
    simulation = tf.Simulation(tf.preset("dam2d").with_values({"domain.resolution": 48, "liquid.foam_speed": 0.3}))

    def go(foam, steps):
        simulation.scene = simulation.scene.with_values({"liquid.foam": foam})
        for _ in range(steps):
            simulation.step(0.02)
        return simulation.liquid.foam.particles.count if simulation.liquid.has_foam else 0

    assert go(0.0, 20) == 0
    made = go(20.0, 10)
    assert made > 20
    assert 0 < go(0.0, 5) <= made, "what is there goes on"
    simulation.reset()
    assert not simulation.liquid.has_foam


@pytest.mark.vulkan_too(dim=2)
def test_foam_is_seen_unless_something_is_in_front_of_it(dim):
    """In 3D a ball may stand between it and the eye; in 2D all that is not in a solid is seen."""
    box = {"shape": "box", "center": [0.5, 0.75, 0.8], "size": [0.5, 0.4, 0.1]}
    pictures = {}
    for solids in ((), (box,) if dim == 3 else ()):
        scene = pool(dim, solids=list(solids), output={"width": 96, "height": 80})
        if dim == 3:
            scene = scene.with_values({"camera.azimuth": 0.0, "camera.elevation": 10.0})
        simulation = tf.Simulation(scene)
        renderer = tf.Renderer(simulation)
        before = renderer.render().astype(int)
        # Each is far smaller than a pixel.
        with_some(simulation, [(x, 0.75, 0.4) for x in np.linspace(0.4, 0.6, 400)], (0.0, 0.0, 0.0))
        pictures[len(solids)] = renderer.render().astype(int) - before
    brighter = pictures[0]
    assert brighter.min() >= 0, "light is added"
    assert brighter.max() > 20
    assert (brighter.max(axis=2) > 5).mean() < 0.05, "and only where foam is"
    if dim == 3:
        assert np.abs(pictures[1]).max() == 0
