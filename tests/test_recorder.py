"""The headless front: what stands on the disk after a run that ends, breaks off or is broken off."""

import io
import math
import os
import re
import signal
import sys
import threading
from pathlib import Path

import av
import numpy as np
import pytest
from rich.console import Console

from taichi_fluid._ti import ti
from taichi_fluid.errors import Terminated, terminable
from taichi_fluid.io.outputs import Outputs
from taichi_fluid.kernels import Array, kernel_family
from taichi_fluid.render.renderer import Renderer
from taichi_fluid.render.side_by_side import pictures_of
from taichi_fluid.scene import Scene, bytes_needed, preset
from taichi_fluid.simulation import NotFinite, Simulation, Stage
from taichi_fluid.simulation.comparison import flow_of, left_in
from taichi_fluid.viewer.log import Log
from taichi_fluid.viewer.recorder import Recorder, record


@ti.func
def _leave_at(c, I, s, a: ti.template()):
    a[c] = a[c]


def silent() -> Console:
    """Takes the progress bar."""
    return Console(file=io.StringIO())


def tiny(frames=3, **changes) -> Scene:
    """A plume in 2D of 12 x 16 cells, as many steps as frames while it is slow."""
    small = {"domain.resolution": 16, "output.frames": frames, "output.width": 32, "output.height": 48}
    return preset("plume2d").with_values({**small, **changes})


def recorder_of(scene: Scene, out: Path | None) -> Recorder:
    output = scene.output
    return Recorder(Outputs.plan(out, scene.name), output.frames, output.width, output.height, output.fps)


def pictures_in(path: Path) -> list[np.ndarray]:
    """Every picture of a video or an image file, first row on top."""
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def run(scene: Scene, out: Path, prepare=lambda simulation: None):
    """Record a scene; what ``record`` returned, and what the recorder says it has written."""
    simulation = Simulation(scene)
    prepare(simulation)
    recorder = recorder_of(scene, out)
    return record(simulation, recorder, silent()), recorder.written


def compiling(grid) -> None:
    """Launch a kernel that nobody has compiled."""

    @kernel_family
    def family(loops):
        IntVector, each_cell = loops.IntVector, loops.each_cell

        @ti.kernel
        def copy(a: Array, n: IntVector):
            each_cell(n, _leave_at, (a,))

        return {"copy": copy}

    family(grid.loops).copy(grid.array(), grid.n)


def break_at(step: int, action):
    """Something that happens in a stage of its own in the given step, counted from 1."""

    def stage(simulation, dt):
        if simulation.steps + 1 == step:
            action(simulation)

    return lambda simulation: simulation.stages.append(Stage("accident", stage))


def test_a_run_ends_with_a_video_and_a_poster(tmp_path):
    scene = tiny()
    numbers, written = run(scene, tmp_path / "a.mp4")
    assert written == [tmp_path / "a.mp4", tmp_path / "a.png"]
    assert sorted(os.listdir(tmp_path)) == ["a.mp4", "a.png"]
    assert numbers["outputs"] == [str(path) for path in written]
    assert [picture.shape for picture in pictures_in(tmp_path / "a.mp4")] == [(48, 32, 3)] * 3
    # Three pictures of half the size side by side, 4 pixels apart.
    assert pictures_in(tmp_path / "a.png")[0].shape == (24, 3 * 16 + 2 * 4, 3)


@pytest.mark.parametrize("still", [True, False])
def test_a_recorder_knows_whether_anything_was_to_be_seen(tmp_path, still):
    """A newcomer's first scene has no smoke: 96 pictures of the background, and not a word."""
    recorder = Recorder(Outputs.plan(tmp_path / "a.mp4", "a"), 3, 32, 48, 24.0)
    for value in (7, 7, 7 if still else 8):
        recorder.show(np.full((48, 32, 3), value, np.uint8))
    recorder.finish()
    assert recorder.still == still


def test_the_pictures_in_a_folder_are_those_that_were_rendered(tmp_path):
    scene = tiny(frames=2)
    _, written = run(scene, tmp_path / "frames")
    assert [path.name for path in written] == ["frame_00000.png", "frame_00001.png", "poster.png"]
    assert sorted(os.listdir(tmp_path / "frames")) == sorted(path.name for path in written)
    simulation = Simulation(scene)
    renderer = Renderer(simulation)
    for path in written[:2]:
        simulation.advance(1 / scene.output.fps)
        # Rows of pixels the right way up, to the bit: the run is deterministic.
        np.testing.assert_array_equal(pictures_in(path)[0], renderer.render())


@pytest.mark.parametrize(
    ("frames", "sheet"), [(1, (24, 16)), (2, (24, 36)), (5, (52, 56)), (7, (52, 56)), (20, (52, 56))]
)
def test_the_poster_shows_up_to_six_pictures_from_first_to_last(tmp_path, frames, sheet):
    recorder = recorder_of(tiny(frames), tmp_path)
    for i in range(frames):
        recorder.show(np.full((48, 32, 3), 10 + 10 * i, np.uint8))
    recorder.finish()
    poster = pictures_in(tmp_path / "poster.png")[0]
    assert poster.shape[:2] == sheet
    shown = [poster[top, left, 0] for top in range(0, sheet[0], 28) for left in range(0, sheet[1], 20)][
        : min(frames, 6)
    ]
    assert shown == sorted(set(shown)), "each another picture, in order of time"
    assert shown[-1] == 10 * frames, "the last one is there"


def test_who_waits_for_a_recording_is_told_of_kernels(tmp_path):
    """In the line of the progress bar, before the first frame."""
    scene, text = tiny(frames=1), io.StringIO()
    simulation = Simulation(scene)
    simulation.stages.append(Stage("wait", lambda simulation, dt: compiling(simulation.grid)))
    record(simulation, recorder_of(scene, tmp_path), Console(file=text, force_terminal=True, width=120))
    assert re.search(r"frame 0/1 +compiling kernel \d+: copy", text.getvalue())


def test_a_recorder_that_was_shown_nothing_leaves_nothing(tmp_path):
    for out in (tmp_path / "a.mp4", tmp_path / "frames"):
        assert recorder_of(tiny(), out).finish() == []
    assert [name for name in os.listdir(tmp_path) if name != "frames"] == []


@pytest.mark.parametrize("quantity", ["velocity", "smoke", "temperature"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("out", ["a.mp4", "frames"])
def test_a_run_that_turns_non_finite_stops_and_keeps_its_pictures(tmp_path, quantity, bad, out):
    """One bad cell, after the last stage of the third step."""

    def spoil(simulation):
        array = {q.name: q for q in simulation.state.quantities()}[quantity].current
        values = array.to_numpy()
        # Not a wall, where velocities are set anew.
        values[simulation.grid.strides[0] * 6 + 8] = bad
        array.from_numpy(values)

    with pytest.raises(NotFinite, match=rf"{quantity} is not finite after step 3 ") as caught:
        run(tiny(frames=6), tmp_path / out, break_at(3, spoil))
    assert "\n" not in str(caught.value)
    if out == "frames":
        assert sorted(os.listdir(tmp_path / out)) == ["frame_00000.png", "frame_00001.png", "poster.png"]
        assert len({picture.tobytes() for path in (tmp_path / out).iterdir() for picture in pictures_in(path)}) == 3
    else:
        assert sorted(os.listdir(tmp_path)) == ["a.mp4", "a.png"]
        assert len(pictures_in(tmp_path / "a.mp4")) == 2


def test_a_bad_value_before_the_projection_is_noticed_too(tmp_path):
    """The solver sees it first, and may stop early: the quantity and the step are named all the same."""

    def spoil(simulation, dt):
        if simulation.steps == 2:
            simulation.state.velocity.current[simulation.grid.strides[0] * 6 + 8] = math.nan

    def prepare(simulation):
        names = [stage.name for stage in simulation.stages]
        simulation.stages.insert(names.index("project"), Stage("accident", spoil))

    with pytest.raises(NotFinite, match=r"velocity is not finite after step 3 "):
        run(tiny(frames=6), tmp_path / "a.mp4", prepare)
    assert len(pictures_in(tmp_path / "a.mp4")) == 2


def test_the_last_picture_is_checked_as_well(tmp_path):
    with pytest.raises(NotFinite, match="after step 3 "):
        run(tiny(frames=3), tmp_path / "a.mp4", break_at(3, lambda s: s.state.velocity.current.fill(math.inf)))


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
def test_whatever_breaks_a_run_off_its_pictures_are_kept(tmp_path, error):
    def fail(simulation):
        raise error

    with pytest.raises(error):
        run(tiny(frames=6), tmp_path / "a.mp4", break_at(4, fail))
    assert sorted(os.listdir(tmp_path)) == ["a.mp4", "a.png"]
    assert len(pictures_in(tmp_path / "a.mp4")) == 3


def test_a_stage_that_comes_on_the_way_has_its_time(tmp_path):
    """The numbers of a run are those of the steps that had the stage."""
    simulation = Simulation(tiny(frames=4))

    def late(simulation, dt):
        if simulation.steps == 1:
            simulation.stages.append(Stage("late", lambda simulation, dt: None))
        elif simulation.steps == 3:
            simulation.stages.pop()

    simulation.stages.append(Stage("watch", late))
    numbers = record(simulation, recorder_of(tiny(frames=4), tmp_path / "a.mp4"), silent())
    assert numbers["steps"] >= 4
    assert {"watch", "late"} <= set(numbers["stages"])


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("out", ["a.mp4", "frames"])
def test_a_process_that_is_asked_to_end_keeps_its_pictures(tmp_path, out, name, request):
    """A script that records; asked twice, the second time while it finishes."""
    number = getattr(signal, name)
    assert threading.current_thread() is threading.main_thread(), "or the signal would end the tests"
    before = signal.signal(number, signal.SIG_DFL)  # nohup ignores one
    request.addfinalizer(lambda: signal.signal(number, before))
    recorder = recorder_of(tiny(frames=6), tmp_path / out)
    finish = recorder.finish
    recorder.finish = lambda: os.kill(os.getpid(), number) or finish()
    simulation = Simulation(tiny(frames=6))
    break_at(4, lambda _: os.kill(os.getpid(), number))(simulation)
    with pytest.raises(Terminated) as ended:
        record(simulation, recorder, silent())
    assert ended.value.code == 128 + number, "a script that knows nothing of it ends with this status, silently"
    assert signal.getsignal(number) == signal.SIG_DFL
    if out == "frames":
        names = sorted(os.listdir(tmp_path / out))
        assert names == ["frame_00000.png", "frame_00001.png", "frame_00002.png", "poster.png"]
    else:
        assert sorted(os.listdir(tmp_path)) == ["a.mp4", "a.png"]
        assert len(pictures_in(tmp_path / "a.mp4")) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_a_signal_that_somebody_listens_to_stays_theirs():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        with terminable():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [1]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
def test_what_breaks_before_the_first_picture_leaves_nothing(tmp_path, monkeypatch, error):
    """A renderer that cannot be built (a picture too large for the device, a key pressed while it compiles)."""

    def fail(*arguments):
        raise error

    monkeypatch.setattr("taichi_fluid.viewer.recorder.pictures_of", fail)
    with pytest.raises(error):
        run(tiny(), tmp_path / "a.mp4")
    assert os.listdir(tmp_path) == []


def test_numbers_of_a_run_are_those_of_its_steps(tmp_path):
    simulation = Simulation(tiny(frames=4))
    numbers = record(simulation, recorder_of(simulation.scene, tmp_path / "a.mp4"), silent())
    assert numbers["steps"] == simulation.steps
    assert numbers["frames"] == 4
    assert numbers["simulated_seconds"] == pytest.approx(4 / 24, rel=1e-12)
    assert numbers["resolution"] == [12, 16]
    assert list(numbers["stages"]) == [stage.name for stage in simulation.stages]
    smoke = simulation.state.carried["smoke"].current
    # A sum in f32 and one in f64 of a hundred numbers.
    expected = simulation.to_numpy("smoke").astype(float).sum() * simulation.grid.cell_volume
    assert numbers["smoke_mass"] == pytest.approx(expected, rel=1e-5)
    assert numbers["smoke_mass"] == simulation.diagnostics.integral(smoke)
    velocity = simulation.state.velocity.current
    scale = simulation.grid.dx / simulation.diagnostics.largest_magnitude(velocity)
    assert numbers["divergence"]["max"] == pytest.approx(simulation.diagnostics.divergence(velocity).max * scale)
    assert numbers["ms_per_step"] >= max(numbers["stages"].values())


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_a_recording_of_both_grids_shows_each_in_its_half(tmp_path, grid):
    changes = {"look.compare": True, "domain.grid": grid, "output.width": 401, "output.height": 200}
    scene = tiny(frames=4, **changes)
    flow = flow_of(scene)
    numbers = record(flow, recorder_of(scene, tmp_path / "frames"), silent())
    seen = pictures_in(tmp_path / "frames" / "frame_00003.png")[0]
    assert seen.shape == (200, 401, 3)
    # 199 pixels each, and 3 between them.
    for side, place in [("staggered", slice(0, 199)), ("collocated", slice(202, 401))]:
        alone = tiny(frames=4, **{**changes, "look.compare": False, "domain.grid": side, "output.width": 199})
        simulation = Simulation(alone)
        for step in range(flow.own.steps):
            simulation.step(dt=flow.own.time / flow.own.steps)
            assert step < 100
        # The upper half has the label, the lower one the flow of that grid, to the bit where both steps are equally long.
        picture = Renderer(simulation).render()
        assert np.abs(seen[100:, place].astype(int) - picture[100:]).max() <= 1
        assert (seen[:60, place] == 245).any(), "letters, of which the flow has none"
        left = left_in(simulation)
        assert numbers["grids"][side]["divergence"]["max"] == pytest.approx(left.part, rel=0.01)
        assert numbers["grids"][side]["smoke_mass"] == pytest.approx(
            simulation.diagnostics.integral(simulation.state.carried["smoke"].current), rel=1e-4
        )
    assert (seen[:, 199:202] == seen[0, 199]).all()
    assert list(numbers["stages"]) == ["staggered", "collocated"]
    assert numbers["divergence"] == numbers["grids"][grid]["divergence"]
    assert "grids" not in run(tiny(), tmp_path / "one")[0]


def test_a_stage_of_ones_own_is_timed_with_the_others(tmp_path):
    numbers, _ = run(tiny(), tmp_path / "a.mp4", break_at(99, None))
    assert "accident" in numbers["stages"]


def test_a_box_at_rest_has_numbers_too(tmp_path):
    """No sources, no motion: nothing to divide by."""
    numbers, _ = run(tiny(**{"sources": []}), tmp_path / "a.mp4")
    assert numbers["divergence"] == {"max": 0.0, "rms": 0.0}
    assert numbers["smoke_mass"] == 0.0
    assert math.isfinite(numbers["pressure"]["relative_residual"])


def test_what_rounding_moves_in_a_box_heated_alike_is_no_flow(tmp_path):
    """Buoyancy lifts all of it, and the pressure holds it: beside the speed of what is left all divergence is large."""
    scene = Scene.loads(
        """
        name = "alike"
        domain = { size = [1e-4, 1e-4], resolution = 16, boundaries = "no-slip" }
        solver = { dt = 1e-3 }
        output = { frames = 2, fps = 100, width = 32, height = 32 }
        [[sources]]
        shape = "box"
        center = [5e-5, 5e-5]
        size = [1e-3, 1e-3]
        temperature = 1.0
        """
    )
    flow = Simulation(scene)
    numbers = record(flow, recorder_of(scene, tmp_path / "a.mp4"), silent())
    speed = flow.diagnostics.largest_magnitude(flow.state.velocity.current)
    assert 0 < speed < 1e-4 * flow.lifted * flow.time, "not at rest: this would try nothing"
    assert numbers["divergence"]["max"] < 1e-2
    assert numbers["pressure"]["unbalanced"] == 0


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("plume", {}),
        ("plume", {"fluid.viscosity": 1e-3}),
        ("plume", {"domain.size": [4.0, 1.0, 4.0], "domain.resolution": 48}),
        ("plume", {"solver.pressure": "cg"}),
        ("jets", {}),
        ("plume2d", {"domain.resolution": 200}),
        ("plume2d", {"domain.resolution": 200, "fluid.smoke_diffusion": 1e-3}),
        ("plume", {"output.width": 1024, "output.height": 1024}),
        ("plume", {"look.compare": True}),
        ("plume2d", {"look.compare": True, "output.width": 512, "output.height": 512}),
    ],
    ids=str,
)
def test_memory_is_estimated_from_above(monkeypatch, name, changes):
    """Every array of a simulation and its renderer is counted as it is made."""
    small = {"domain.resolution": 32, "output.width": 16, "output.height": 16}
    scene = preset(name).with_values({**small, **changes})
    taken, make = [], ti.ndarray
    monkeypatch.setattr(
        ti, "ndarray", lambda dtype, shape, **more: taken.append(np.prod(shape)) or make(dtype, shape, **more)
    )
    flow = flow_of(scene)
    pictures = pictures_of(flow)
    flow.step(0.01)
    pictures.render()
    assert 4 * sum(taken) <= bytes_needed(scene)
    assert 4 * sum(taken) > 0.5 * bytes_needed(scene), "an estimate, no exaggeration"


def test_a_log_says_how_the_run_is_doing(tmp_path):
    rows = []
    simulation = Simulation(tiny(frames=3))
    record(
        simulation, recorder_of(tiny(frames=3), tmp_path / "a.mp4"), silent(), each=[Log(simulation, rows.append).look]
    )
    assert [row["time"] for row in rows] == pytest.approx([k / tiny().output.fps for k in (1, 2, 3)])
    last = rows[-1]
    assert last["steps"] == simulation.steps
    assert last["cfl"] == pytest.approx(simulation.check() * last["dt"] / simulation.grid.dx)
    assert last["iterations"] >= 0 and 0 <= last["residual"] < 1e-2 and last["not_converged"] == 0
    smoke = simulation.state.carried["smoke"].current
    assert last["amount.smoke"] == pytest.approx(simulation.diagnostics.integral(smoke))
    assert last["kinetic_energy"] > 0 and last["ms"] > 0 and last["divergence"] >= 0
