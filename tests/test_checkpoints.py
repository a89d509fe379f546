"""Checkpoints: a flow goes on from one bit for bit; what is not whole is found out; what was there before stays."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
import weakref

import numpy as np
import pytest
from command_line import run_here
from safetensors import SafetensorError
from scenes_for_tests import scene

import taichi_fluid as tf
from taichi_fluid.boundaries.solids import Motion
from taichi_fluid.io import checkpoint, stored
from taichi_fluid.io.rhythm import rhythm_of
from taichi_fluid.io.stored import before
from taichi_fluid.scene import bytes_of_state
from taichi_fluid.validation.water import water
from taichi_fluid.viewer.keeping import Keeping

STEPS = 3


def scene_of(name, resolution, **changes):
    return tf.preset(name).with_values(
        {"domain.resolution": resolution, "output.width": 64, "output.height": 64, **changes}
    )


OUTFLOW = [[{"kind": "inflow", "velocity": [1.0, 0.0]}, "outflow"], ["free-slip", "free-slip"]]
BLAST = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.3, "smoke": 1.0, "blast": 2.0}
PASSING = {"shape": "sphere", "center": [0.4, 0.5], "radius": 0.15, "velocity": [1.0, 0.0]}
FLOWS = {
    "smoke": scene_of("plume2d", 24),
    "outflow and a solid": scene_of("karman", 32, **{"domain.boundaries": OUTFLOW}),
    "moving solids": scene_of("obstacles", 12),
    "fire": scene_of("fire", 12),
    "a blast around a moving solid": scene((24, 24), 1 / 24, boundaries="open", sources=[BLAST]).with_values(
        {"solids": [PASSING]}
    ),
    "collocated": scene_of("godot2d", 24),
    "water": scene_of("dam2d", 32),
    "deep water": scene_of("dam2d", 64, **{"liquid.band": 3}),
    "water in 3D": scene_of("dam", 12, **{"liquid.foam": 50.0, "liquid.foam_speed": 0.2}),
    "poured": scene_of("pour", 16),
}


def values_of(simulation):
    """Everything that a flow has, as arrays."""
    found = {each.name: simulation.to_numpy(each.name) for each in simulation.state.quantities()}
    found |= {"pressure": simulation.to_numpy("pressure"), "time": np.array([simulation.time, simulation.steps])}
    if simulation.liquid is not None:
        found |= {"level set": simulation.to_numpy("level set"), **simulation.liquid.particles.to_numpy()}
        if simulation.liquid.core.active:
            found |= {"core": simulation.liquid.core.marks.to_numpy()}
        if simulation.liquid.has_foam:
            found |= {f"foam {name}": each for name, each in simulation.liquid.foam.particles.to_numpy().items()}
    return found


@pytest.mark.parametrize("flow", FLOWS)
def test_a_flow_goes_on_bit_for_bit(flow, tmp_path):
    """Beside one that nobody interrupted; and it is written in the middle, not at time 0."""
    simulation = tf.Simulation(FLOWS[flow])
    for _ in range(STEPS):
        simulation.step()
    assert flow != "deep water" or simulation.liquid.core.cells > 0
    path = tf.save(simulation, tmp_path / "flow.checkpoint")
    held = sum(array.nbytes for array in checkpoint.contents_of(simulation)[0].values())
    assert held <= bytes_of_state(simulation.scene), "and so much is announced for a copy"
    for _ in range(STEPS):
        simulation.step()
    other = tf.load(path)
    assert (other.steps, other.scene) == (STEPS, simulation.scene)
    for _ in range(STEPS):
        other.step()
    require_same_bits(simulation, other)
    assert other.burnt == simulation.burnt


def require_same_bits(one, two, steps=0):
    """Of two flows, after so many steps more of both."""
    for _ in range(steps):
        one.step()
        two.step()
    found, other = values_of(one), values_of(two)
    assert list(found) == list(other)
    for name, values in found.items():
        np.testing.assert_array_equal(values, other[name], err_msg=name)


def test_a_liquid_goes_on_as_it_would_after_its_last_sink_was_taken_away(tmp_path):
    """And begins again as it would: what a sink may have taken is counted otherwise, which with a core was 1.5e-2 m/s in 120 steps."""
    sink = {"shape": "sphere", "center": [0.5, 0.0], "radius": 0.08, "sink": True}
    config = water([1.0, 0.8], 24, [([0.0, 0.0], [1.0, 0.4])], liquid={"band": 3})
    simulation = tf.Simulation(config.with_values({"sources": [sink]}))
    for _ in range(8):
        simulation.step()
    simulation.scene = config
    simulation.step()
    require_same_bits(simulation, tf.load(tf.save(simulation, tmp_path / "flow.checkpoint")), 8)
    simulation.reset()
    require_same_bits(simulation, tf.Simulation(config), STEPS)


def test_a_liquid_beside_a_solid_begins_again_with_the_same_bits(tmp_path):
    """By a reset, and by a velocity that is set: the first kick went by what the liquid had fallen by before."""
    ball = {"shape": "sphere", "center": [0.6, 0.25], "radius": 0.12}
    config = water([1.0, 0.8], 24, [([0.0, 0.0], [0.5, 0.5])], solids=[ball], fluid={"viscosity": 1e-3})
    simulation = tf.Simulation(config)
    for _ in range(3):
        simulation.step()
    simulation.set(velocity=["0.5*y", "-0.2*x"])
    require_same_bits(simulation, tf.load(tf.save(simulation, tmp_path / "flow.checkpoint")), STEPS)
    simulation.reset()
    require_same_bits(simulation, tf.Simulation(config), STEPS)


def test_a_quantity_of_ones_own_keeps_its_row(tmp_path):
    """Also one that ``CARRIED`` does not know: outside there was none of it then, and it weighed nothing."""
    simulation = tf.Simulation(scene((8, 8), 0.125, boundaries="open"))
    simulation.state.add([tf.Carried("brine", outside=2.0, weight=0.1)])
    simulation.step()
    other = tf.load(tf.save(simulation, tmp_path / "flow.checkpoint"))
    assert other.state.carried["brine"].row == simulation.state.carried["brine"].row
    require_same_bits(simulation, other, STEPS)


@pytest.mark.parametrize("scheme", ["splitting", "reflection"])
def test_a_load_is_what_it_was(scheme, tmp_path):
    """Of the step before the checkpoint, whose pressures and first friction are in it."""
    ball = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.2, "swing": [0.02, 0.01], "angular_velocity": 1.0}
    config = scene((12, 12), 1 / 12, {"viscosity": 0.01}, {"scheme": scheme, "dt": 0.02})
    simulation = tf.Simulation(config.with_values({"solids": [ball]}))
    for _ in range(3):
        simulation.step()
    before = simulation.solids.load(0)
    other = tf.load(tf.save(simulation, tmp_path / "x"))
    assert min(map(abs, before.friction)) > 0 and other.solids.load(0) == before


def test_what_no_scene_knows_goes_with_it(tmp_path):
    """A quantity of one's own, changes of the running scene, solids and stages that are given again."""
    solid = tf.Solid("sphere", a=(0.5, 0.6), radius=0.1)
    simulation = tf.Simulation(FLOWS["smoke"], [solid])
    simulation.state.add({"salt": 1})
    simulation.scene = simulation.scene.with_values({"fluid.cooling": 0.7})
    simulation.step()
    simulation.state.carried["salt"].current.fill(0.25)
    simulation.fill()
    path = tf.save(simulation, tmp_path / "x")
    simulation.step()
    other = tf.load(path, solids=[solid])
    assert other.scene.fluid.cooling == 0.7
    other.step()
    for name in ("salt", "smoke", "velocity"):
        np.testing.assert_array_equal(simulation.to_numpy(name), other.to_numpy(name))


def test_what_was_not_given_again_is_said(tmp_path):
    """A flow without the solids that it had, or with sides of its scene, would go on as another one in silence."""
    solid, lid = tf.Solid("sphere", a=(0.5, 0.6), radius=0.1), tf.Side(tf.Boundary.MOVING_WALL, (1.0, 0.0))
    for own in ({"solids": [solid]}, {"sides": {(1, 1): lid}}):
        path = tf.save(tf.Simulation(FLOWS["smoke"], **own), tmp_path / "x")
        with pytest.raises(
            tf.CheckpointError, match=r"of solids and sides of one's own it was written with .* given are "
        ):
            tf.load(path)
        tf.load(path, **own)


class Rain:
    """A stage of one's own, which remembers how often it has rained, and where."""

    def __init__(self):
        self.drops, self.where = 0, np.zeros(2, np.float32)

    def run(self, simulation, dt):
        self.drops += 1
        self.where += np.float32(0.1)
        values = simulation.to_numpy("smoke")
        values[int(8 * self.where[0]), int(8 * self.where[1])] += self.drops
        simulation.set(smoke=values)

    def state(self):
        return {"where": self.where}, {"drops": self.drops}

    def restore_state(self, arrays, numbers):
        self.where, self.drops = arrays["where"].copy(), numbers["drops"]


class Pushed:
    """A motion of one's own: a place that its owner moves on from step to step."""

    moves = True

    def __init__(self):
        self.x = 0.0

    def at(self, time):
        return Motion((0.5, 0.5), velocity=(1.0, 0.0)).at(self.x)

    def state(self):
        return {}, {"x": self.x}

    def restore_state(self, arrays, numbers):
        self.x = numbers["x"]


def rainy(simulation):
    rain = Rain()
    simulation.kept.add("rain", rain)
    simulation.stages.insert(1, tf.Stage("rain", rain.run))
    return simulation


@pytest.mark.parametrize("twice", [False, True], ids=["", "by way of a program that knows nothing of it"])
def test_what_things_of_ones_own_remember_is_kept_under_their_names(twice, tmp_path):
    def push(simulation, motion, steps=3):
        for _ in range(steps):
            motion.x += 0.01
            simulation.step(0.02)

    def beginning(motion):
        simulation = tf.Simulation(FLOWS["smoke"], [tf.Solid("sphere", (0.3, 0.5), radius=0.1, motion=motion)])
        simulation.kept.add("pushed", motion)
        return simulation

    one, two = Pushed(), Pushed()
    simulation = rainy(beginning(one))
    push(simulation, one)
    path, stood = tf.save(simulation, tmp_path / "x"), simulation.to_numpy("fluid")
    push(simulation, one)
    assert one.x == pytest.approx(0.06)
    solids = [tf.Solid("sphere", (0.3, 0.5), radius=0.1, motion=two)]
    if twice:
        path = tf.save(tf.load(path, solids=solids, kept={"pushed": two}), tmp_path / "y")
        two.x = 0.0
    other = rainy(tf.load(path, solids=solids, kept={"pushed": two}))
    assert two.x == pytest.approx(0.03)
    np.testing.assert_array_equal(other.to_numpy("fluid"), stood)
    push(other, two)
    for name in ("smoke", "velocity", "fluid"):
        np.testing.assert_array_equal(simulation.to_numpy(name), other.to_numpy(name))


@pytest.mark.parametrize("view", ["tracers", "slice", "arrows"])
@pytest.mark.parametrize("preset", ["plume2d", "plume"])
def test_pictures_go_on_as_they_would_have(preset, view, tmp_path):
    """Tracers are where they were, and colours span what they did; a renderer that knows nothing draws something else."""
    looks = {"look.view": view, "look.quantity": "speed", "look.tracers": 300, "look.position": 0.3}
    simulation = tf.Simulation(scene_of(preset, 16, **looks))
    renderer = tf.Renderer(simulation)
    renderer.keep_with_flow()
    for _ in range(6):
        simulation.step(0.05)
        renderer.render()
    simulation.state.velocity.current.fill(0.01)  # so that what was spanned is not what is there
    simulation.fill()
    renderer.render()
    path = tf.save(simulation, tmp_path / "flow.checkpoint")

    def go_on(simulation, renderer):
        simulation.step(0.05)
        return renderer.render()

    expected = go_on(simulation, renderer)
    other = tf.load(path)
    ignorant, knowing = tf.Renderer(other), tf.Renderer(other)
    knowing.keep_with_flow()
    np.testing.assert_array_equal(go_on(other, knowing), expected)
    assert (ignorant.render() != expected).any()


def test_files_of_a_scene_are_found_from_any_folder(tmp_path, monkeypatch):
    """They are named in a checkpoint as from the root: it held the way from the folder that the run began in."""
    (tmp_path / "there").mkdir()
    np.save(tmp_path / "there" / "warm.npy", np.full((8, 8), 3.0, np.float32))
    text = (
        'name = "warm"\n[domain]\nsize = [1.0, 1.0]\nresolution = 8\n[initial]\ntemperature = { file = "warm.npy" }\n'
    )
    (tmp_path / "there" / "warm.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    simulation = tf.Simulation(tf.Scene.load("there/warm.toml"))
    path = tf.save(simulation, tmp_path / "warm.checkpoint")
    monkeypatch.chdir(tmp_path / "there")
    np.testing.assert_array_equal(tf.load(path).to_numpy("temperature"), simulation.to_numpy("temperature"))


def test_pictures_do_not_keep_a_flow_in_memory():
    """What is no longer used is gone at once, and what it held on the device is free: nobody waits for a collector."""
    gc.disable()
    try:
        simulation = small()
        renderer = tf.Renderer(simulation)
        renderer.keep_with_flow()
        renderer.render()
        assert "pictures" in simulation.kept.state()[1]
        left = weakref.ref(simulation)
        del renderer
        assert simulation.kept.state() == ({}, {})
        del simulation
        assert left() is None
    finally:
        gc.enable()


def small():
    simulation = tf.Simulation(scene_of("plume2d", 8))
    simulation.step()
    return simulation


def test_every_truncation_and_many_flips_are_found_out(tmp_path):
    """A typed error, in one sentence, whatever of the file is gone or changed."""
    path = tf.save(small(), tmp_path / "flow.checkpoint")
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    lengths = {0, 1, 7, 8, 9, 100, len(whole) - 1, *random.integers(0, len(whole), 40).tolist()}
    for length in lengths:
        path.write_bytes(whole[:length])
        with pytest.raises(tf.CheckpointError) as caught:
            stored.read(path)
        assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    for bit in random.integers(0, 8 * len(whole), 200):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(bytes(changed))
        with pytest.raises(tf.CheckpointError):
            stored.read(path)
    path.write_bytes(whole)
    assert stored.read(path)[2]["steps"] == 1


def test_the_one_before_is_kept_and_taken_where_the_last_is_not_whole(tmp_path):
    simulation, path = small(), tmp_path / "flow.checkpoint"
    tf.save(simulation, path)
    simulation.step()
    tf.save(simulation, path)
    assert stored.read(path)[2]["steps"] == 2
    assert stored.read(before(path))[2]["steps"] == 1
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.warns(UserWarning, match="is not whole.*is taken"):
        assert tf.load(path).steps == 1


def test_a_disk_that_is_full_ends_a_run_in_a_sentence_and_its_film_is_finished(tmp_path, monkeypatch):
    """With what safetensors makes of one, which is no OSError."""

    def full(*_, **__):
        raise SafetensorError("No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full)
    words = ("demo", "plume2d", *SMALL, "--frames", "3", "--out", "film.mp4", "--checkpoint-every", "1")
    done = run_here(words, tmp_path)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "the checkpoint 'film.checkpoint'" in done.stderr.splitlines()[-1]
    assert sorted(os.listdir(tmp_path)) == ["film.mp4", "film.png"]


def test_the_command_says_in_a_sentence_that_it_takes_the_one_before(tmp_path, monkeypatch, capsys):
    from taichi_fluid.app import commands

    path = tf.save(small(), tmp_path / "x")
    path.rename(before(path))
    monkeypatch.setattr(commands, "run_scene", lambda load, begun, **_: print(begun.scene.name))
    with pytest.raises(SystemExit):
        commands.main(["resume", str(path)], prog_name="taichi-fluid")
    printed, (line,) = (each.splitlines() for each in capsys.readouterr())
    assert printed == ["plume2d"]
    assert line.startswith("taichi-fluid: there is no checkpoint") and line.endswith("is taken.")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda path: path.unlink(), "there is no checkpoint"),
        (lambda path: (path.unlink(), path.mkdir()), "there is no checkpoint"),
        (lambda path: path.write_text("name = 'plume'"), "is no checkpoint"),
        (lambda path: path.write_bytes(path.read_bytes()[:300]), "is not whole"),
        (lambda path: path.write_bytes(b""), "is not whole"),
    ],
    ids=["gone", "a folder", "something else", "its beginning", "nothing"],
)
def test_what_is_no_checkpoint_is_refused_in_a_sentence(damage, told, tmp_path):
    path = tf.save(small(), tmp_path / "x")
    damage(path)
    with pytest.raises(tf.CheckpointError, match=told):
        tf.load(path)


@pytest.mark.parametrize("path", [".", "/"])
def test_a_path_without_a_name_is_no_checkpoint(path):
    with pytest.raises(tf.CheckpointError, match="there is no checkpoint"):
        tf.load(path)


def test_another_version_and_another_grid_are_refused(tmp_path, monkeypatch):
    simulation, path = small(), tmp_path / "x"
    monkeypatch.setattr(checkpoint, "FORMAT", stored.FORMAT + 1)
    tf.save(simulation, path)
    told = (
        f"is a checkpoint of format '{stored.FORMAT + 1}'; this version of taichi_fluid reads format {stored.FORMAT}:"
    )
    with pytest.raises(tf.CheckpointError, match=told):
        tf.load(path)
    monkeypatch.undo()
    tf.save(simulation, path)
    scene, arrays, numbers = stored.read(path)
    with pytest.raises(tf.CheckpointError, match="does not fit its scene: velocity is missing, or of another grid"):
        checkpoint.restored(path, scene.with_values({"domain.resolution": 9}), arrays, numbers)
    del arrays["pressure"]
    with pytest.raises(tf.CheckpointError, match="pressure is missing"):
        checkpoint.restored(path, scene, arrays, numbers)


def test_what_breaks_off_within_a_picture_is_kept_as_it_was_at_the_last_one(tmp_path):
    """From within one a run would make other steps, and its tracers would be a picture behind the flow."""
    simulation, path = small(), tmp_path / "flow.checkpoint"
    keeping = Keeping(simulation, path, rhythm_of(None))
    keeping.finish()
    assert not path.exists(), "no picture has been taken"
    keeping.look()
    keeping.finish()
    assert stored.read(path)[2]["steps"] == simulation.steps == 1
    simulation.step()
    keeping.finish()
    assert stored.read(path)[2]["steps"] == 1
    keeping.look()
    keeping.finish()
    assert stored.read(path)[2]["steps"] == 2
    keeping._held_at = -np.inf  # a second ago
    simulation.step()
    keeping.look()
    velocity = simulation.to_numpy("velocity")
    simulation.step()
    keeping.finish()
    assert tf.load(path).steps == 3
    np.testing.assert_array_equal(tf.load(path).to_numpy("velocity"), velocity)


def test_what_is_held_of_a_run_that_blows_up_is_not_written(tmp_path):
    simulation, path = small(), tmp_path / "flow.checkpoint"
    keeping = Keeping(simulation, path, rhythm_of(None))
    keeping.look()
    simulation.step()
    keeping.forget()
    keeping.finish()
    assert not path.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda numbers: {**numbers, "carried": [1]},
        lambda numbers: {**numbers, "steps": float("inf")},
        lambda numbers: {**numbers, "kept": None},
        lambda numbers: {"time": 0.0},
        lambda numbers: [numbers],
    ],
    ids=["a list", "no number", "nothing", "too few", "no table"],
)
def test_numbers_that_somebody_has_changed_are_refused_in_a_sentence(change, tmp_path):
    """With a checksum that fits."""
    path = tf.save(small(), tmp_path / "x")
    scene, arrays, numbers = stored.read(path)
    with pytest.raises(tf.CheckpointError, match="does not fit its scene"):
        checkpoint.restored(path, scene, arrays, change(numbers))


def test_numbers_too_deep_to_read_are_refused_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint.json, "dumps", lambda *_, **__: "[" * 100_000)
    path = tf.save(small(), tmp_path / "x")
    with pytest.raises(tf.CheckpointError, match="holds a scene or numbers that cannot be"):
        stored.read(path)


def test_nothing_is_written_in_the_middle_of_a_step_or_where_it_cannot_be(tmp_path):
    simulation = small()
    tf.save(simulation, tmp_path / "x")
    step = simulation.stepping()
    next(step)
    with pytest.raises(RuntimeError, match="did not come to its end"):
        tf.save(simulation, tmp_path / "x")
    for _ in step:
        pass
    with pytest.raises((FileExistsError, NotADirectoryError)):
        tf.save(simulation, tmp_path / "x" / "below a file")
    assert stored.read(tmp_path / "x")[2]["steps"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x"]


def command(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "taichi_fluid", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


SMALL = ("--arch", "cpu", "--resolution", "12", "--set", "output.width=32", "--set", "output.height=32")


def test_a_run_that_was_resumed_ends_where_one_that_nobody_broke_off_does(tmp_path):
    """By the command line: six pictures at once, or three and three; the last states are the same bits."""
    cpu = SMALL[:2]
    for arguments in (
        ("demo", "plume2d", *SMALL, "--frames", "6", "--out", "all", "--checkpoint", "all.checkpoint"),
        ("demo", "plume2d", *SMALL, "--frames", "3", "--out", "one", "--checkpoint", "some.checkpoint"),
        ("resume", "some.checkpoint", *cpu, "--frames", "6", "--out", "two", "--checkpoint", "some.checkpoint"),
    ):
        done = run_here(arguments, tmp_path)
        assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "two").glob("frame_*.png"))) == 3, "what is left of six"
    (_, one, numbers), (_, two, others) = (stored.read(tmp_path / f"{name}.checkpoint") for name in ("all", "some"))
    assert numbers == others
    assert stored.read(tmp_path / "some.checkpoint")[0].output.frames == 6, "and may be resumed again, for more"
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)


def test_a_run_that_is_broken_off_goes_on_from_its_last_pictures(tmp_path):
    """Where nothing but ``--checkpoint`` was asked for: nearly always in the midst of a picture."""
    words = ("demo", "plume2d", *SMALL, "--frames", "4000", "--out", "film", "--checkpoint", "some")
    process = command(*words, cwd=tmp_path)
    until = time.monotonic() + 200
    while not (tmp_path / "film" / "frame_00003.png").exists():
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.splitlines()[-1] == "some"
    assert told.splitlines()[-1].endswith("the frames so far are kept. 'taichi-fluid resume some' goes on.")
    assert stored.read(tmp_path / "some")[2]["steps"] >= 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["asked to end", "killed"])
def test_what_ends_a_run_leaves_a_checkpoint(number, tmp_path):
    process = command(
        "demo", "plume2d", *SMALL, "--frames", "4000", "--out", "film.mp4", "--checkpoint-every", "2", cwd=tmp_path
    )
    path = tmp_path / "film.checkpoint"  # beside the film
    until = time.monotonic() + 200
    while not before(path).exists():
        assert process.poll() is None and time.monotonic() < until, process.communicate()
        time.sleep(0.05)
    os.kill(process.pid, number)
    process.communicate(timeout=60)
    assert stored.read(path)[2]["steps"] >= 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--checkpoint-every", "often"), "it must be a number of steps, or of seconds such as 30s"),
        (("--checkpoint-every", "0"), "it must be a number of steps, or of seconds such as 30s"),
        (("--checkpoint", "."), "the checkpoint '.' is a folder"),
        (("--checkpoint", "x", "--set", "look.compare=true"), "both grids"),
    ],
)
def test_bad_words_about_checkpoints_are_refused_in_a_sentence(arguments, told, tmp_path, capsys, monkeypatch):
    from taichi_fluid.app import commands

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        commands.main(["demo", "godot2d", "--headless", "--frames", "1", *arguments], prog_name="taichi-fluid")
    assert caught.value.code == 2
    assert told in capsys.readouterr().err


def test_resume_refuses_what_is_no_checkpoint(tmp_path, capsys, monkeypatch):
    from taichi_fluid.app import commands

    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_text(json.dumps({}))
    for name in ("x", "nothing"):
        with pytest.raises(SystemExit) as caught:
            commands.main(["resume", name], prog_name="taichi-fluid")
        assert caught.value.code == 2
        assert name in capsys.readouterr().err


def test_resume_says_which_cells_a_checkpoint_has(tmp_path, capsys, monkeypatch):
    """And before a backend starts: it was refused by what a file lacks."""
    from taichi_fluid import backend
    from taichi_fluid.app import commands

    monkeypatch.chdir(tmp_path)
    tf.save(tf.Simulation(tf.preset("godot2d").with_values({"domain.resolution": 16})), "x")
    monkeypatch.setattr(backend, "start", None)
    for arguments in (["--resolution", "32"], ["--set", "domain.resolution=32"]):
        with pytest.raises(SystemExit) as caught:
            commands.main(["resume", "x", "--frames", "3", *arguments], prog_name="taichi-fluid")
        assert caught.value.code == 2
        told = " ".join(capsys.readouterr().err.split())
        assert "the checkpoint has 16 x 16 on the" in told and "the scene 32 x 32" in told, told
