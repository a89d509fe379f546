"""A flow that blows up: taken back once, with half the time step; and what is good stays."""

import av
import numpy as np
import pytest
from command_line import PICTURE, run_here
from test_checkpoints import FLOWS, STEPS, values_of

import taichi_fluid as tf
from taichi_fluid.simulation import NotFinite, Stage
from taichi_fluid.simulation.snapshot import put_into, taken_from
from taichi_fluid.viewer.halving import Halving, with_half_the_step

SMALL = ["--arch", "cpu", "--resolution", "16", "--frames", "6", *PICTURE]


@pytest.fixture
def clumsy(monkeypatch, tmp_path):
    """A run in which each step from the third on makes the velocity NaN, if it is longer than so many seconds."""

    def ran(longest, *arguments):
        def stumble(simulation, dt):
            if simulation.steps >= 3 and dt > longest:
                simulation.state.velocity.current.fill(float("nan"))

        def build_clumsy(self, *given):
            build(self, *given)
            self.stages.append(Stage("accident", stumble))

        build = tf.Simulation.__init__
        monkeypatch.setattr(tf.Simulation, "__init__", build_clumsy)
        return run_here(["demo", "plume2d", *SMALL, "--set", "solver.max_dt=0.02", *arguments], tmp_path)

    return ran


@pytest.mark.parametrize("flow", ["smoke", "moving solids", "fire", "water"])
def test_a_flow_is_taken_back_to_the_same_bits_and_goes_on_with_half_the_step(flow):
    """As a flow does that is built anew from what was kept; though all of this one had become NaN."""
    simulation = tf.Simulation(FLOWS[flow])
    for _ in range(STEPS):
        simulation.step()
    halving = Halving(simulation)
    halving.keep()
    kept, whole = taken_from(simulation), values_of(simulation)
    simulation.step()
    simulation.state.velocity.current.fill(np.nan)
    with pytest.raises(NotFinite) as raised:
        simulation.step()
    assert halving.take_back(raised.value)
    for name, values in whole.items():
        np.testing.assert_array_equal(values, values_of(simulation)[name], err_msg=name)
    other = tf.Simulation(with_half_the_step(FLOWS[flow]))
    put_into(other, *kept)
    assert other.scene == simulation.scene
    for each in (simulation, other):
        for _ in range(STEPS):
            each.step()
    one, two = values_of(simulation), values_of(other)
    for name, values in one.items():
        np.testing.assert_array_equal(values, two[name], err_msg=name)
    assert not halving.take_back(raised.value), "once"


def test_half_a_step_is_half_of_the_one_that_a_scene_gives_and_within_its_limits():
    scene = tf.preset("plume2d")
    assert with_half_the_step(scene).solver.cfl == scene.solver.cfl / 2
    assert with_half_the_step(scene).solver.max_dt == scene.solver.max_dt / 2
    assert with_half_the_step(scene.with_values({"solver.dt": 0.01})).solver.dt == 0.005
    assert with_half_the_step(scene.with_values({"solver.cfl": 0.01})).solver.cfl == 0.01
    assert with_half_the_step(scene.with_values({"solver.dt": 1e-7})).solver.dt == 1e-7


def test_a_run_goes_on_from_the_last_picture_with_half_the_step(clumsy, tmp_path):
    done = clumsy(0.011, "--on-blow-up", "halve")
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "velocity is not finite after step 4" in said
    assert said.count("It goes on from t = ") == 1
    with av.open(str(tmp_path / "plume2d.mp4")) as film:
        assert sum(1 for _ in film.decode(video=0)) == 6


@pytest.mark.parametrize("words", [["--on-blow-up", "halve"], []])
def test_a_run_that_blows_up_again_ends_and_its_last_good_checkpoint_stays(clumsy, words, tmp_path):
    """Whatever is done about it: what is kept at the end of a run is not what has blown up."""
    done = clumsy(0.0, "--checkpoint-every", "1", *words)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert ("It goes on from t = " in " ".join(done.stderr.split())) == bool(words)
    assert "is not finite" in done.stderr.splitlines()[-1]
    left = tf.load(tmp_path / "plume2d.checkpoint")
    assert 1 <= left.steps <= 3
    assert np.isfinite(left.to_numpy("velocity")).all()


def test_one_of_two_grids_is_not_taken_back(tmp_path):
    words = ["--set", "look.compare=true", "--on-blow-up", "halve"]
    done = run_here(["demo", "plume2d", *SMALL, *words], tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "--on-blow-up halve takes back one flow" in done.stderr
