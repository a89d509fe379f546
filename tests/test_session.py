"""A running scene under somebody's hands: all that a window does, without one."""

import functools
import itertools
import math
import os
import shutil
import sys
import threading

import av
import numpy as np
import pytest
from scenes_for_tests import burner, plume, scene

from taichi_fluid.boundaries.solids import Solid
from taichi_fluid.io.checkpoint import load as load_state
from taichi_fluid.io.video import LiveVideo
from taichi_fluid.kernels import before_compiling
from taichi_fluid.render.views import Slice
from taichi_fluid.scene import Scene, SceneError, preset
from taichi_fluid.simulation import Simulation, Stage
from taichi_fluid.simulation.comparison import Comparison, left_in
from taichi_fluid.viewer import session as session_module
from taichi_fluid.viewer.keeping import keep_state
from taichi_fluid.viewer.session import COARSEST, LONGEST_DEBT, SHORTEST_STEP, Session
from taichi_fluid.viewer.strokes import LONGEST_ADDING

FRAME = 1 / 60
AMPLE = 20.0
"""Seconds for a step on any machine."""
LITTLE = 1e-9
"""Seconds for one part of a step."""
NEVER = 60.0
"""Seconds after which something that should have ended hangs."""


def flow(dim, **changes) -> Scene:
    """A small plume, off the middle; in 2D of an odd shape."""
    if dim == 3:
        return plume(3, 16).with_values(changes)
    made = scene((24, 32), 1 / 24, fluid={"confinement": 0.01, "cooling": 0.3}, sources=[burner(2)])
    return made.with_values(changes)


@pytest.fixture
def opened(tmp_path):
    """Opens sessions that write into ``tmp_path``; closed at the end."""
    made = []

    def open_session(scene: Scene, **options) -> Session:
        made.append(Session(scene, tmp_path, **{"size": (64, 48), **options}))
        return made[-1]

    yield open_session
    for each in made:
        each.close()


@pytest.fixture
def clock(monkeypatch):
    """The clock of recordings: stands still unless ``clock.now`` is moved."""

    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(session_module, "LiveVideo", functools.partial(LiveVideo, clock=made))
    return made


def make_steps(session: Session, count: int) -> None:
    """Steps of a session that runs."""
    end = session.simulation.steps + count
    for _ in range(1000 * count):
        if session.simulation.steps >= end:
            return
        session.advance(LITTLE, FRAME)
    raise AssertionError("no steps are made")


def begin_step(session: Session, parts: int = 3) -> None:
    """Go into the middle of a step."""
    while session.stepping:
        session.advance(LITTLE, 0.0)
    session._debt = FRAME
    for _ in range(parts):
        session.advance(LITTLE, FRAME)
    assert session.stepping


def values_of(simulation: Simulation) -> dict:
    """Every array of the state, by name."""
    return {q.name: simulation.to_numpy(q.name) for q in simulation.state.quantities()} | {
        "pressure": simulation.to_numpy("pressure")
    }


def assert_same(one: Simulation, two: Simulation) -> None:
    ours, theirs = values_of(one), values_of(two)
    assert sorted(ours) == sorted(theirs)
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    assert (one.steps, one.time) == (two.steps, pytest.approx(two.time))


def spoil(simulation: Simulation) -> None:
    """A NaN in the velocity."""
    velocity = simulation.state.velocity.current
    velocity.from_numpy(np.full(velocity.shape[0], np.nan, dtype=np.float32))


def mass(session: Session, name: str = "smoke") -> float:
    """Integral of a quantity."""
    dx = session.simulation.grid.dx
    return float(session.simulation.to_numpy(name).sum() * dx**session.scene.dim)


def in_time(action) -> None:
    """Run something that might hang; what it raises is raised here."""
    errors = []

    def run():
        try:
            action()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(NEVER)
    assert not thread.is_alive(), "it hangs"
    if errors:
        raise errors[0]


# Time


def test_steps_in_crumbs_of_time_are_steps(opened, dim):
    """Parts at a time, with pictures, cameras and sliders of the look in between."""
    whole, session = Simulation(flow(dim, **{"solver.dt": 0.02})), opened(flow(dim, **{"solver.dt": 0.02}))
    for _ in range(4):
        whole.step()
    k = 0
    while session.simulation.steps < 4:
        session.advance(LITTLE, FRAME)
        session.set({"camera.azimuth": float(k % 90), "look.exposure": 1.0 + 0.1 * (k % 3)})
        session.draw()
        k += 1
    assert k > 20, "a step has many parts"
    assert_same(whole, session.simulation)


@pytest.mark.parametrize("pace", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("dt", [None, 0.013])
def test_time_follows_the_clock(opened, pace, dt):
    session = opened(flow(2, **{"live.pace": pace, **({"solver.dt": dt} if dt else {})}))
    step = dt or 0.0
    for k in range(1, 41):
        session.advance(AMPLE, FRAME)
        time = session.simulation.time
        # A fixed step may be ahead by what is left of it; one that is free is as short as the clock asks for.
        assert time <= pace * k * FRAME + step + 1e-9
        assert time >= pace * (k * FRAME - SHORTEST_STEP) - 1e-9
    if dt:
        assert session.simulation.time == pytest.approx(session.simulation.steps * dt)


def test_a_machine_that_was_busy_does_not_catch_up(opened):
    session = opened(flow(2))
    session.advance(AMPLE, 3600.0)
    assert session.simulation.time <= LONGEST_DEBT + 1e-9
    before = session.simulation.time
    session.advance(AMPLE, FRAME)
    assert session.simulation.time <= before + FRAME + 1e-9


def test_a_fixed_step_is_that_step(opened):
    session = opened(flow(2, **{"solver.dt": 0.04}))
    lengths, last = [], 0.0
    for _ in range(40):
        session.advance(AMPLE, FRAME)
        if session.simulation.time > last:
            lengths.append(session.simulation.time - last)
            last = session.simulation.time
    # Differences of a sum of a few dozen doubles.
    assert lengths == pytest.approx([0.04] * len(lengths))
    assert len(lengths) == pytest.approx(40 * FRAME / 0.04, abs=1)


def test_a_flow_whose_time_would_stand_still_says_so(opened):
    session = opened(flow(2))
    make_steps(session, 1)
    while session.stepping:
        session.advance(LITTLE, 0.0)
    session.simulation.state.velocity.current.fill(1e9)
    session.advance(AMPLE, FRAME)
    assert session.failed and session.alarm and not session.stepping
    for word in ("stopped: no step may be longer", "1e+09 m/s", "steps", "Reset"):
        assert word in session.message, session.message
    session.reset()
    session.set({"solver.dt": 1e-7})
    session.advance(AMPLE, FRAME)
    assert session.failed and "solver.dt is 1e-07 s" in session.message
    session.set({"solver.dt": 0.01})
    session.reset()
    make_steps(session, 2)


def test_no_step_is_longer_than_the_scene_allows(opened):
    session = opened(flow(2, **{"solver.max_dt": 0.004}))
    for _ in range(10):
        session.advance(AMPLE, FRAME)
        assert session.health() is None or session.health().dt <= 0.004
    assert session.simulation.steps >= 30


def test_paused_is_still(opened, dim):
    session = opened(flow(dim))
    make_steps(session, 2)
    begin_step(session)
    session.pause()
    assert session.paused
    while session.stepping:  # the step that has begun is finished
        session.advance(LITTLE, FRAME)
    before, state = session.simulation.steps, values_of(session.simulation)
    session.draw()
    for _ in range(20):
        assert not session.advance(0.01, FRAME)
        assert not session.draw()
    assert session.simulation.steps == before
    for name, values in values_of(session.simulation).items():
        np.testing.assert_array_equal(values, state[name])
    session.pause()
    assert not session.paused
    # The pause is not made up for.
    time = session.simulation.time
    session.advance(AMPLE, FRAME)
    assert time < session.simulation.time <= time + FRAME + 1e-9


@pytest.mark.parametrize("state", ["paused", "running", "in a step"])
def test_one_step_is_one_step(opened, state):
    session = opened(flow(2))
    make_steps(session, 1)
    if state == "in a step":
        begin_step(session)
    elif state == "paused":
        session.pause()
    for count in (1, 2, 3):
        before = session.simulation.steps
        session.step_once()
        for _ in range(300):
            session.advance(LITTLE, FRAME)
        assert session.simulation.steps == before + 1, count
        assert session.paused
        session.draw()


def test_reset_is_the_start_with_the_values_as_they_are(opened, dim):
    session = opened(flow(dim, **{"solver.dt": 0.02}))
    make_steps(session, 2)
    session.set({"fluid.cooling": 1.5})
    begin_step(session)
    session.reset()
    assert (session.simulation.time, session.simulation.steps, session.stepping) == (0.0, 0, False)
    assert session.draw(), "the picture too"
    fresh = Simulation(flow(dim, **{"solver.dt": 0.02, "fluid.cooling": 1.5}))
    assert_same(fresh, session.simulation)
    make_steps(session, 2)
    for _ in range(2):
        fresh.step()
    assert_same(fresh, session.simulation)


def test_clear_takes_the_smoke_and_leaves_the_flow(opened, dim):
    session = opened(flow(dim))
    make_steps(session, 5)
    session.draw()
    begin_step(session)
    session.clear()
    assert not session.stepping, "the step is finished first"
    assert mass(session) == mass(session, "temperature") == 0.0
    assert np.abs(session.simulation.to_numpy("velocity")).max() > 0.0
    assert session.draw()


# NaN


def test_what_is_not_finite_stops_the_flow_and_says_so(opened, dim):
    session = opened(flow(dim))
    make_steps(session, 2)
    spoil(session.simulation)
    steps = session.simulation.steps
    for _ in range(50):
        session.advance(0.01, FRAME)
        session.draw()
    assert session.failed
    assert session.simulation.steps == steps
    for word in ("velocity", "not finite", "Reset"):
        assert word in session.message
    # Nothing that can be pressed then is an end of the program.
    session.step_once()
    session.stroke(np.full(dim, 0.5), np.full(dim, 0.6), FRAME)
    session.advance(0.01, FRAME)
    session.clear()
    session.screenshot()
    session.health()
    assert session.simulation.steps == steps
    session.reset()
    assert not session.failed
    assert session.message == ""
    session.paused = False
    make_steps(session, 3)
    assert all(np.isfinite(values).all() for values in values_of(session.simulation).values())


def test_after_nan_another_resolution_starts_anew(opened):
    session = opened(flow(2))
    make_steps(session, 2)
    spoil(session.simulation)
    session.advance(AMPLE, FRAME)
    assert session.failed
    session.finer()()
    assert not session.failed
    assert session.simulation.time == 0.0
    make_steps(session, 2)
    assert np.isfinite(session.simulation.to_numpy("velocity")).all()


# Values


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"fluid.viscosity": -1.0}, "fluid.viscosity"),
        ({"fluid.viscosity": math.nan}, "fluid.viscosity"),
        ({"fluid.viscosity": "thick"}, "fluid.viscosity"),
        ({"fluid.viscocity": 1.0}, "did you mean"),
        ({"sources.0.center": [9.0, 9.0]}, "sources[0]"),
        ({"sources.7.smoke": 1.0}, "sources.7"),
        ({"look.view": "radio"}, "look.view"),
        ({"domain.resolution": 64}, "domain"),
        ({"solver.faces": "voxels"}, "solver.faces"),
        ({"name": "a/b"}, "name"),
    ],
)
def test_a_bad_value_is_a_sentence_and_not_taken(opened, changes, named):
    session = opened(flow(2))
    before = session.scene
    assert session.set(changes) is False
    assert named in session.message
    assert "\n" not in session.message
    assert session.scene is before
    make_steps(session, 1)


def test_a_view_without_its_quantity_begins_with_another(opened):
    dye = flow(2, sources=[{**burner(2), "smoke": 0.0, "temperature": 0.0, "dye": [1.0, 0.0, 0.0]}])
    session = opened(dye)
    assert session.scene.look.quantity == "smoke", "which is not there"
    assert session.set({"look.view": "slice"})
    assert session.scene.look.quantity == "dye"
    make_steps(session, 1)
    assert session.draw()


def test_a_value_works_from_the_next_stage_on(opened):
    session = opened(flow(2))
    make_steps(session, 5)
    assert session.set({"sources.0.smoke": 0.0, "fluid.smoke_dissipation": 50.0})
    before = mass(session)
    make_steps(session, 10)
    assert mass(session) < 0.5 * before


# Strokes


def test_strokes_are_painted_between_steps_only(opened, monkeypatch, dim):
    session = opened(flow(dim))
    make_steps(session, 1)
    painted = []
    paint = session.simulation.paint

    def watched(*arguments, **options):
        painted.append(session.stepping)
        paint(*arguments, **options)

    monkeypatch.setattr(session.simulation, "paint", watched)
    begin_step(session)
    strokes = 0
    for k in range(60):
        session.stroke(np.full(dim, 0.3 + 0.005 * k), np.full(dim, 0.305 + 0.005 * k), FRAME)
        strokes += 1
        session.advance(LITTLE, FRAME)
    session.pause()
    while session.stepping:
        session.advance(LITTLE, FRAME)
    session.advance(LITTLE, FRAME)
    assert painted == [False] * strokes, "every one, and none in the middle of a step"


@pytest.mark.parametrize("state", ["paused", "running"])
def test_a_fast_drag_leaves_one_stroke(opened, state):
    """Half the box between two frames, in three leaps."""
    radius = 0.06
    session = opened(flow(2, **{"sources.0.smoke": 1e-3, "live.radius": radius, "live.paint": 3.0, "live.push": 0.0}))
    make_steps(session, 1)
    if state == "paused":
        session.pause()
        while session.stepping:
            session.advance(LITTLE, 0.0)
    places = [np.array(place) for place in [(0.15, 0.8), (0.5, 1.0), (0.85, 0.8)]]
    for start, end in itertools.pairwise(places):
        session.stroke(start, end, FRAME)
    # A stroke that came before a step was begun is painted before it moves on; painted it is seen at once.
    session._debt = 0.0
    assert session.advance(LITTLE, 0.0)
    assert session.draw()
    smoke, dx = session.simulation.to_numpy("smoke"), session.simulation.grid.dx
    for start, end in itertools.pairwise(places):
        for part in np.linspace(0, 1, 50):
            cell = tuple(((start + part * (end - start)) / dx).astype(int))
            assert smoke[cell] > 2.9, "all along the line"
    far = np.ones_like(smoke, bool)
    x, y = ((np.arange(n) + 0.5) * dx for n in smoke.shape)
    for start, end in itertools.pairwise(places):
        along = end - start
        for i in range(smoke.shape[0]):
            for j in range(smoke.shape[1]):
                p = np.array([x[i], y[j]]) - start
                part = np.clip(p @ along / (along @ along), 0, 1)
                # The stroke reaches its radius, in longest edges, and fades over a cell.
                if np.linalg.norm(p - part * along) < radius * max(session.scene.domain.size) + 2 * dx:
                    far[i, j] = False
    assert smoke[far & (np.arange(32) > 14)].max() < 0.1, "and nowhere else"


def test_a_drag_pushes_the_way_it_goes(opened):
    session = opened(flow(2, **{"sources.0.temperature": 0.0, "live.push": 1.0}))
    session.pause()
    session.stroke(np.array([0.3, 0.9]), np.array([0.35, 0.9]), 0.1)
    session.advance(LITTLE, FRAME)
    velocity = session.simulation.to_numpy("velocity")
    # 0.05 m in 0.1 s.
    assert velocity[0].max() == pytest.approx(0.5, rel=1e-3)
    assert np.abs(velocity[1]).max() < 1e-6
    before = velocity.copy()
    session.stroke(np.array([0.6, 0.3]), np.array([0.6, 0.3]), 0.1)  # a click: it does not stop the fluid
    session.advance(LITTLE, FRAME)
    np.testing.assert_array_equal(session.simulation.to_numpy("velocity"), before)


def added(opened, frames: int, **values) -> Session:
    """A paused session after a drag of 0.4 s from left to right, in so many strokes."""
    live = {"live.add": True, "live.radius": 0.12, "live.push": 0.5, "live.paint": 0.1, **values}
    session = opened(flow(2, **{"sources.0.begin": 1e5, **live}))
    session.pause()
    start, way = np.array([0.3, 0.5]), np.array([0.3, 0.1])
    for k in range(frames):
        session.stroke(start + way * k / frames, start + way * (k + 1) / frames, 0.4 / frames)
    session.advance(LITTLE, FRAME)
    return session


def test_a_drag_that_adds_leaves_the_same_at_any_rate_of_frames(opened):
    """From 5 to 120 frames a second: 0.4 s of sixty times 0.1 a second, all over the disk that the pointer is."""
    area = math.pi * (0.12 * 32 / 24) ** 2
    for frames in (2, 6, 24, 48):
        session = added(opened, frames)
        dx = session.simulation.grid.dx
        # A disk of four cells: coverage costs up to 24 / 32² (test_sources), the ends of strokes as much again.
        assert mass(session) == pytest.approx(0.4 * 60 * 0.1 * area, rel=0.04)
        # Half of the pointer's own velocity, (0.75, 0.25) m/s, by as much.
        gained = session.simulation.to_numpy("velocity").reshape(2, -1).sum(axis=1) * dx**2
        np.testing.assert_allclose(gained, 0.4 * 60 * 0.5 * np.array([0.75, 0.25]) * area, rtol=0.04)


def test_a_drag_that_adds_piles_up_and_another_does_not(opened):
    for add, most in ((True, 24 * 0.1), (False, 0.1)):
        session = added(opened, 24, **{"live.add": add, "live.push": 0.0})
        once = mass(session)
        assert session.simulation.to_numpy("smoke").max() < 1.01 * most
        session.stroke(np.array([0.3, 0.5]), np.array([0.6, 0.6]), 0.2)
        session.advance(LITTLE, FRAME)
        # Half as long a drag brings in half as much again; what is there already is left by one that does not add.
        assert mass(session) == pytest.approx(1.5 * once if add else once, rel=0.04)


def test_a_hand_that_rests_adds_smoke_and_no_velocity(opened):
    session = added(opened, 1)
    before = session.simulation.to_numpy("velocity")
    smoke = mass(session)
    session.stroke(np.array([0.5, 0.9]), np.array([0.5, 0.9]), 0.1)
    session.advance(LITTLE, FRAME)
    np.testing.assert_array_equal(session.simulation.to_numpy("velocity"), before)
    assert mass(session) > 1.1 * smoke


def test_a_window_that_hung_makes_up_for_nothing(opened):
    place, masses = np.array([0.5, 0.6]), []
    for seconds in (LONGEST_ADDING, 30.0):
        session = opened(flow(2, **{"live.add": True, "sources.0.begin": 1e5}))
        session.pause()
        session.stroke(place, place, seconds)
        session.advance(LITTLE, FRAME)
        masses.append(mass(session))
    assert masses[0] == masses[1] > 0


def test_adding_is_yes_or_no():
    with pytest.raises(SceneError, match=r"live\.add is 2: it should be a valid boolean"):
        flow(2, **{"live.add": 2})


# Other scenes


@pytest.fixture
def small_presets(monkeypatch):
    """Presets with few cells."""
    monkeypatch.setattr(session_module, "preset", lambda name: preset(name).with_values({"domain.resolution": 24}))


def test_another_scene_is_announced_and_then_started(opened, small_presets):
    session = opened(flow(2))
    make_steps(session, 2)
    before = session.simulation
    start = session.other("karman")
    assert "karman" in session.message
    assert session.simulation is before
    begin_step(session)
    start()
    assert session.scene.name == "karman"
    assert session.simulation is not before
    assert (session.simulation.steps, session.stepping, session.message) == (0, False, "")
    assert session.draw()
    make_steps(session, 2)
    session.other("plume")()
    assert session.scene.dim == 3
    assert session.draw()
    make_steps(session, 1)


@pytest.mark.parametrize("compare", [False, True])
def test_the_old_view_goes_on_where_another_one_is_compiled(opened, monkeypatch, compare):
    """As a window has it before each kernel; here before the new view prepares its first picture."""
    session, seen = opened(flow(2, **{"look.compare": compare})), []
    session.compiles_first = True
    make_steps(session, 2)
    session.draw()
    old, prepare = session.scene.look.view, Slice.prepare
    assert old != "slice"

    def slow(view, look):
        if session.beside:
            session.advance(AMPLE, FRAME)
            seen.append((session.scene.look.view, session.simulation.steps > 2, session.draw()))
        prepare(view, look)

    monkeypatch.setattr(Slice, "prepare", slow)
    begin_step(session)
    assert session.set({"look.view": "slice", "look.quantity": "smoke"})
    assert seen == [(old, True, True)] * (2 if compare else 1)
    assert session.scene.look.view == "slice" and not session.beside
    session.finish_step()
    asked = []
    with before_compiling(asked.append):
        assert session.draw()
    assert asked == []
    for view in (old, "slice", old):
        assert session.set({"look.view": view})
    assert len(seen) == (2 if compare else 1), "once"


def test_a_scene_that_is_compiled_first_begins_as_any_other(opened, small_presets):
    """It has made a step by then, of which nothing is left."""
    session, other = opened(flow(2)), opened(flow(2))
    session.compiles_first = True
    make_steps(session, 2)
    session.other("karman")()
    other.other("karman")()
    assert (session.simulation.steps, session.simulation.time, session.beside) == (0, 0.0, False)
    assert_same(session.simulation, other.simulation)
    asked = []
    with before_compiling(asked.append):
        session.step_once()
        other.step_once()
        session.advance(AMPLE, 0.0)
        session.draw()
    assert asked == []
    other.advance(AMPLE, 0.0)
    assert_same(session.simulation, other.simulation)


def test_the_old_flow_goes_on_where_a_new_one_is_compiled(opened, small_presets):
    """As a window has it before each kernel; here wherever the new flow is built and steps."""
    session, steps = opened(flow(2)), []
    session.compiles_first = True
    make_steps(session, 2)
    old, session._build = session.simulation, lambda scene: beside(Simulation(scene))

    def beside(simulation):
        assert session.beside
        session.advance(AMPLE, FRAME)
        steps.append(old.steps)
        simulation.stages.append(Stage("meanwhile", lambda *_: session.simulation is simulation or go_on()))
        return simulation

    def go_on():
        assert session.beside
        session.advance(AMPLE, FRAME)
        steps.append(old.steps)

    session.other("karman")()
    assert len(steps) == 2 and 2 < steps[0] < steps[1]
    assert session.scene.name == "karman" and not session.beside


@pytest.mark.parametrize("error", [RuntimeError("out of device memory"), MemoryError(), SceneError("too large.")])
def test_a_scene_that_cannot_be_built_leaves_the_one_that_runs(opened, small_presets, error):
    built = []

    def build(scene):
        if built:
            raise error
        built.append(scene)
        return Simulation(scene)

    session = opened(flow(2), build=build)
    make_steps(session, 2)
    before = session.simulation
    session.other("karman")()
    assert session.simulation is before
    assert "karman" in session.message
    session.finer()()
    assert session.simulation is before
    assert session.scene.domain.resolution == 32
    assert str(error) in session.message
    make_steps(session, 1)


@pytest.mark.parametrize("place", ["set", "reset", "draw", "step"])
def test_no_room_on_the_device_stops_the_flow_and_not_the_program(opened, monkeypatch, place):
    session = opened(flow(2))
    make_steps(session, 1)
    session.draw()

    def refuse(*arguments, **options):
        raise RuntimeError("out of device memory")

    with monkeypatch.context() as patch:
        if place == "set":
            patch.setattr("taichi_fluid.simulation.engine.Projection", refuse)
            assert not session.set({"solver.pressure": "cg"})
            assert session.scene.solver.pressure == "auto", "the old solver goes on, and the scene says so"
        elif place == "reset":
            patch.setattr("taichi_fluid.simulation.engine.Projection", refuse)
            session.reset()
        elif place == "draw":
            patch.setattr(session.renderer, "prepare", refuse)
            session.set({"look.view": "arrows"})
            assert not session.draw()
        else:
            session.simulation.stages.append(Stage("greedy", refuse))
            session.advance(AMPLE, FRAME)
            session.simulation.stages.pop()
    assert session.failed
    assert "out of device memory" in session.message
    steps = session.simulation.steps
    session.advance(AMPLE, FRAME)
    assert session.simulation.steps == steps
    session.reset()
    assert not session.failed
    make_steps(session, 1)
    assert session.draw()


def test_a_stroke_leaves_cold_gas_cold(opened):
    session = opened(flow(2, **{"sources.0.temperature": -300.0, "fluid.cooling": 0.0}))
    session.set({"live.push": 0.0})
    make_steps(session, 3)
    before = session.simulation.to_numpy("temperature")
    session.pause()
    middle = np.array(session.scene.sources[0].geometry()[0])
    session.stroke(middle, middle, FRAME)
    session.advance(AMPLE, FRAME)
    assert np.array_equal(session.simulation.to_numpy("temperature"), before)
    assert before.min() < -10


def test_a_finer_grid_keeps_what_no_source_brings_any_more(opened):
    session = opened(flow(2))
    make_steps(session, 3)
    session.set({"sources": []})
    session.finer()()
    assert {"smoke", "temperature"} <= set(session.simulation.state.carried)
    assert mass(session) > 0


def test_ones_own_stages_are_built_again(opened, small_presets):
    def build(scene):
        simulation = Simulation(scene)
        simulation.stages.append(Stage("mine", lambda simulation, dt: None))
        return simulation

    session = opened(flow(2), build=build)
    session.finer()()
    make_steps(session, 1)
    assert "mine" in session.health().stage_ms


@pytest.mark.parametrize("finer", [True, False])
def test_another_resolution_goes_on_with_the_flow(opened, dim, finer):
    session = opened(flow(dim, **{"domain.resolution": 24}))
    make_steps(session, 8)
    begin_step(session)
    session.pause()
    announced = session.finer() if finer else session.coarser()
    assert "grid" in session.message
    before = session.simulation
    announced()
    after = session.simulation
    assert after is not before
    assert session.scene.domain.resolution == (32 if finer else 16)
    assert session.scene.domain.size == before.scene.domain.size
    assert after.time == before.time > 0
    assert session.paused
    assert session.message == ""
    for name in ("smoke", "temperature"):
        old = float(before.to_numpy(name).sum() * before.grid.dx**dim)
        # Linear interpolation of a blob that is a few cells wide; its integral is that of the old one within percents.
        assert mass(session, name) == pytest.approx(old, rel=0.06)
    fastest = [np.abs(s.to_numpy("velocity")).max() for s in (before, after)]
    # Peaks are cut by interpolation and by the mean over larger faces, not more than by half.
    assert 0.5 * fastest[0] < fastest[1] < 1.1 * fastest[0]
    assert session.draw()
    session.pause()
    make_steps(session, 2)


@pytest.mark.parametrize("resolution", [8, 10, COARSEST, 20, 24, 40, 60, 100, 6000])
def test_finer_is_finer_and_coarser_is_coarser(opened, monkeypatch, resolution):
    session = opened(flow(2))
    asked = []
    monkeypatch.setattr(session, "_replace", lambda scene, before=None: asked.append(scene.domain.resolution))
    session.simulation._scene = session.scene.with_values({"domain.resolution": resolution})
    session.finer()()
    session.coarser()()
    # A quarter more or at least 8, then to the nearest multiple of 8.
    assert resolution < asked[0] <= max(1.25 * resolution, resolution + 8) + 4
    assert asked[0] % 8 == 0
    if resolution <= COARSEST:
        assert len(asked) == 1
        assert str(resolution) in session.message
    else:
        assert max(COARSEST, min(0.8 * resolution, resolution - 8) - 4) <= asked[1] < resolution


def test_a_grid_that_would_take_seconds_for_a_step_is_asked_for_twice(opened, monkeypatch):
    session = opened(flow(2))
    make_steps(session, 1)
    asked = []
    monkeypatch.setattr(session, "_replace", lambda scene, before=None: asked.append(scene.domain.resolution))
    monkeypatch.setattr(Session, "step_seconds", 1.5)
    session.finer()()
    # (40 / 32)^2 times 1.5 s
    assert "2 s" in session.message and session.alarm and not asked
    session.finer()()
    assert asked == [40]
    session.coarser()()
    assert asked == [40, 24], "a coarser one is not dear"


def test_messages_go_away_but_for_that_of_a_flow_that_stopped(opened, monkeypatch):
    session, now = opened(flow(2)), [1000.0]
    monkeypatch.setattr(session_module.time, "monotonic", lambda: now[0])
    session.set({"fluid.viscosity": -1.0})
    assert session.message and session.alarm
    now[0] += session_module.MESSAGE_SECONDS + 1
    assert session.message == ""
    spoil(session.simulation)
    session.advance(AMPLE, FRAME)
    now[0] += 100
    assert session.failed and session.message


def test_the_view_goes_back_to_the_first(opened):
    session = opened(flow(3))
    first = session.scene.camera
    session.set({"camera.azimuth": 80.0, "camera.distance": 0.5, "camera.center": [0.1, 0.2, 0.3]})
    session.reset_view()
    assert session.scene.camera == first


def test_the_finest_grid_has_nothing_above_it(opened):
    session = opened(flow(2))
    session.simulation._scene = session.scene.with_values({"domain.resolution": 8192})
    before = session.simulation
    session.finer()()
    assert session.simulation is before
    assert "domain.resolution" in session.message
    assert "8192" in session.message


def test_a_grid_that_does_not_fit_is_a_sentence(opened, monkeypatch):
    def refuse(scene):
        raise SceneError("it needs 80 GiB.")

    session = opened(flow(2))
    monkeypatch.setattr(session_module, "require_memory", refuse)
    before = session.simulation
    session.finer()()
    assert session.simulation is before
    assert "80 GiB" in session.message


# Grids, and both side by side


@pytest.fixture(params=["staggered", "collocated"])
def grid(request) -> str:
    """The scene's own grid."""
    return request.param


def settle(session: Session) -> None:
    """Pause, and finish the step that has begun."""
    if not session.paused:
        session.pause()
    while session.stepping:
        session.advance(LITTLE, 0.0)


BALL = {"shape": "sphere", "center": [0.5, 0.8], "radius": 0.1}


def test_the_other_grid_goes_on_with_the_flow(opened, dim, grid):
    other = {"staggered": "collocated", "collocated": "staggered"}[grid]
    session = opened(flow(dim, **{"domain.grid": grid, "fluid.viscosity": 1e-4}))
    make_steps(session, 8)
    session.set({"camera.azimuth": 77.0, "sources.0.smoke": 4.0})
    begin_step(session)
    session.pause()
    before = session.simulation
    assert session.set({"domain.grid": other})
    after = session.simulation
    assert after is not before and after.grid.collocated == (other == "collocated")
    assert (after.time, after.steps) == (before.time, before.steps) and after.time > 0
    assert session.paused and session.message == "" and session.scene.sources[0].smoke == 4.0
    for name in ("smoke", "temperature"):
        np.testing.assert_array_equal(after.to_numpy(name), before.to_numpy(name))
    # A mean over two places, of a velocity that is a few cells wide: peaks lose less than half.
    fastest = [np.abs(s.to_numpy("velocity")).max() for s in (before, after)]
    assert 0.5 * fastest[0] < fastest[1] < 1.1 * fastest[0]
    assert session.draw()
    session.pause()
    make_steps(session, 2)
    session.reset_view()
    assert session.scene.camera == flow(dim).camera, "the first view is that of the start"


def test_another_grid_is_refused_where_solids_stand(opened):
    session = opened(flow(2, solids=[BALL]))
    make_steps(session, 1)
    before, scene = session.simulation, session.scene
    assert not session.set({"domain.grid": "collocated"})
    assert "domain.grid is 'collocated', which holds no solids" in session.message and session.alarm
    assert not session.set({"look.compare": True})
    assert session.message == "look.compare is true, which shows the collocated grid too, and that holds no solids."
    session.compare()()
    assert "look.compare" in session.message
    assert session.simulation is before and session.scene is scene
    make_steps(session, 1)


@pytest.mark.parametrize("changes", [{"domain.grid": "collocated"}, {"look.compare": True}])
def test_ones_own_solids_refuse_the_other_grid_too(opened, changes):
    def build(scene):
        return Simulation(scene, solids=[Solid("sphere", (0.5, 0.8), (), 0.1)])

    session = opened(flow(2), build=build)
    make_steps(session, 1)
    before = session.simulation
    assert not session.set(changes)
    assert "holds no solids" in session.message and "\n" not in session.message
    assert session.simulation is before and not session.scene.look.compare
    make_steps(session, 1)


def test_after_nan_another_grid_starts_anew(opened):
    session = opened(flow(2))
    make_steps(session, 2)
    spoil(session.simulation)
    session.advance(AMPLE, FRAME)
    assert session.failed
    assert session.set({"domain.grid": "collocated"})
    assert not session.failed and session.simulation.time == 0.0
    make_steps(session, 2)
    assert np.isfinite(session.simulation.to_numpy("velocity")).all()


def test_both_grids_begin_from_the_flow_as_it_is(opened, dim, grid):
    session = opened(flow(dim, **{"domain.grid": grid}), size=(320, 200))
    make_steps(session, 6)
    begin_step(session)
    own = session.simulation
    begin = session.compare()
    assert "other grid" in session.message and session.flow is own
    begin()
    assert isinstance(session.flow, Comparison)
    assert session.simulation is own and not session.stepping and session.message == ""
    assert list(session.flow.simulations) == ["staggered", "collocated"], "from left to right"
    other = session.flow.other
    assert other.grid.collocated != own.grid.collocated
    assert (other.time, other.steps) == (own.time, own.steps)
    np.testing.assert_array_equal(other.to_numpy("smoke"), own.to_numpy("smoke"))
    make_steps(session, 3)
    settle(session)
    assert (other.time, other.steps) == (own.time, own.steps), "the same steps"
    lefts = {name: left_in(simulation) for name, simulation in session.flow.simulations.items()}
    assert lefts["staggered"].max < 0.01 * lefts["collocated"].max
    session.draw()
    both = session.picture()
    assert both.shape == (200, 320, 3)
    # 159 pixels each.
    assert (both[:, :159] != both[:, 161:]).any(axis=-1).mean() > 0.001, "each its own"
    session.compare()()
    assert session.flow is session.simulation is own, "nothing is lost when it ends"
    assert session.draw() and session.picture().shape == (200, 320, 3)
    session.pause()
    make_steps(session, 1)


def test_in_a_comparison_each_flow_is_what_it_is_alone(opened, dim, grid):
    """With the same dt."""
    scene = flow(dim, **{"domain.grid": grid, "solver.dt": 0.02})
    session = opened(scene.with_values({"look.compare": True}))
    make_steps(session, 4)
    settle(session)
    for name, simulation in session.flow.simulations.items():
        alone = Simulation(scene.with_values({"domain.grid": name}))
        for _ in range(session.simulation.steps):
            alone.step()
        assert_same(alone, simulation)


def test_both_take_the_dt_of_the_faster_one(opened):
    session = opened(flow(2, **{"look.compare": True, "live.pace": 4.0}))
    make_steps(session, 4)
    settle(session)
    own, other = session.flow.own, session.flow.other
    velocity = other.state.velocity.current
    velocity.from_numpy(100 * velocity.to_numpy())
    fast = other.check()
    assert fast > 10 * own.check()
    session.step_once()
    session._debt = 1.0
    session.advance(AMPLE, 0.0)
    expected = own.scene.solver.cfl * own.grid.dx / fast
    assert session._pulse.steps[-1].dt == pytest.approx(expected)
    assert own.time == other.time


def test_strokes_values_clear_and_reset_reach_both(opened, dim):
    session = opened(flow(dim, **{"look.compare": True, "sources.0.smoke": 1e-6, "sources.0.temperature": 0.0}))
    session.pause()
    session.stroke(np.full(dim, 0.4), np.full(dim, 0.6), 0.1)
    session.advance(LITTLE, 0.0)
    own, other = session.flow.own, session.flow.other
    assert own.to_numpy("smoke").max() > 0.5
    np.testing.assert_array_equal(own.to_numpy("smoke"), other.to_numpy("smoke"))
    # Of 0.2 m in 0.1 s along each axis no more than one box edge a second: on faces and at centres the same.
    speeds = [np.abs(simulation.to_numpy("velocity")).max() for simulation in (own, other)]
    assert speeds[0] == pytest.approx(speeds[1]) and speeds[0] > 0.5
    assert session.set({"fluid.cooling": 2.0, "solver.pressure": "cg"})
    for simulation in (own, other):
        assert simulation.scene.fluid.cooling == 2.0 and simulation.scene.solver.pressure == "cg"
    assert not session.set({"fluid.cooling": -2.0})
    session.clear()
    assert all(simulation.to_numpy("smoke").max() == 0 for simulation in (own, other))
    session.pause()
    make_steps(session, 2)
    session.reset()
    for simulation in (own, other):
        assert (simulation.time, simulation.steps) == (0.0, 0)
        assert np.abs(simulation.to_numpy("velocity")).max() == 0
    make_steps(session, 1)
    settle(session)
    session.step_once()
    session.advance(AMPLE, 0.0)
    assert own.steps == other.steps == session.simulation.steps


def test_in_a_comparison_the_grids_change_places_and_cells(opened):
    session = opened(flow(2, **{"look.compare": True}))
    make_steps(session, 4)
    settle(session)
    own, other = session.flow.own, session.flow.other
    assert session.set({"domain.grid": "collocated"})
    assert (session.flow.own, session.flow.other) == (other, own), "nothing is resampled"
    assert session.scene.domain.grid == "collocated" and list(session.flow.simulations.values()) == [own, other]
    smoke = {name: simulation.to_numpy("smoke").mean() for name, simulation in session.flow.simulations.items()}
    session.finer()()
    assert session.scene.domain.resolution == 40
    for name, simulation in session.flow.simulations.items():
        assert simulation.scene.domain.resolution == 40 and simulation.time == own.time
        # Linear interpolation of a blob that is a few cells wide.
        assert simulation.to_numpy("smoke").mean() == pytest.approx(smoke[name], rel=0.06)
    session.compare()()
    assert session.simulation.grid.collocated and session.simulation.time == own.time
    session.pause()
    make_steps(session, 1)


def test_a_comparison_that_turns_nan_says_on_which_grid(opened):
    session = opened(flow(2, **{"look.compare": True}))
    make_steps(session, 2)
    settle(session)
    spoil(session.flow.other)
    session.pause()
    session.advance(AMPLE, FRAME)
    session.draw()
    assert session.failed and "on the collocated grid velocity is not finite" in session.message
    session.reset()
    make_steps(session, 2)
    assert all(np.isfinite(values).all() for values in values_of(session.flow.other).values())


@pytest.mark.parametrize("other", ["finer", "load"])
def test_no_room_for_the_solver_of_another_scene_leaves_the_one_that_runs(opened, monkeypatch, small_presets, other):
    session = opened(flow(2))
    make_steps(session, 1)
    before = session.flow

    def refuse(*arguments):
        raise MemoryError("out of device memory")

    with monkeypatch.context() as patch:
        patch.setattr("taichi_fluid.simulation.engine.Projection", refuse)
        session.load("karman") if other == "load" else session.resize_grid(finer=True)
    assert session.flow is before and session.alarm
    assert "out of device memory" in session.message
    make_steps(session, 1)


@pytest.mark.parametrize("error", [RuntimeError("out of device memory"), MemoryError()])
def test_a_comparison_without_room_leaves_the_flow_that_runs(opened, error):
    def build(scene):
        if scene.domain.grid == "collocated":
            raise error
        return Simulation(scene)

    session = opened(flow(2), build=build)
    make_steps(session, 2)
    before = session.flow
    assert not session.set({"look.compare": True})
    assert session.flow is before and not session.scene.look.compare and session.alarm
    assert str(error) in session.message
    make_steps(session, 1)


def test_a_saved_comparison_is_one_again(opened, tmp_path):
    session = opened(flow(2, **{"look.compare": True}))
    session.save_scene()
    again = opened(Scene.load(tmp_path / "test_001.toml"))
    assert isinstance(again.flow, Comparison)
    make_steps(again, 1)


def test_the_health_of_both_grids(opened):
    session = opened(flow(2, **{"look.compare": True}))
    make_steps(session, 4)
    settle(session)
    health = session.health()
    assert list(health.stage_ms) == list(health.left) == ["staggered", "collocated"]
    assert health.step_ms == pytest.approx(sum(health.stage_ms.values())) and min(health.stage_ms.values()) > 0
    for name, simulation in session.flow.simulations.items():
        assert health.left[name] == left_in(simulation)
    assert health.divergence == health.left["staggered"].max


def test_the_mass_of_a_liquid_is_that_of_what_there_is(opened):
    """It was 0, as of a gas without smoke."""
    session = opened(preset("dam2d").with_values({"domain.resolution": 24}))
    make_steps(session, 2)
    settle(session)
    simulation = session.flow
    assert session.health().mass == pytest.approx(simulation.liquid.volume * simulation.scene.fluid.rho, rel=1e-6)
    assert session.health().mass > 1


@pytest.mark.parametrize("detail", [1.0, 0.5])
def test_labels_are_sharp_whatever_the_detail(opened, dim, detail):
    session = opened(flow(dim, **{"look.compare": True}), size=(500, 320))
    make_steps(session, 3)
    settle(session)
    session.detail = detail
    session.draw()
    seen = session.picture()
    for half in (seen[:100, :249], seen[:100, 251:]):
        ink = (half == 245).all(axis=-1)
        # Four lines of some ten letters, of which each sets a dozen of its 35 pixels, four times as large.
        assert 1000 < ink.sum() < 6000
    assert (seen[:, 249:251] == seen[0, 249]).all(), "a line between"


# Pictures


def test_it_draws_when_something_has_changed(opened, dim):
    session = opened(flow(dim))
    assert session.draw(), "the first picture"
    assert not session.draw()
    make_steps(session, 1)
    session.pause()
    session.draw()
    drawn = session.pictures
    assert not session.draw()
    assert session.set({"look.exposure": 1.5})
    assert session.draw()
    assert not session.draw()
    session.size = (80, 60)
    assert session.draw()
    assert session.picture().shape == (60, 80, 3)
    session.size = (80, 60)
    assert not session.draw()
    session.redraw()
    assert session.draw()
    session.stroke(np.full(dim, 0.5), np.full(dim, 0.6), FRAME)
    assert session.advance(LITTLE, FRAME)
    assert session.draw()
    assert session.pictures == drawn + 4


def test_in_the_middle_of_a_step_the_camera_goes_around_the_last_one(opened):
    changes = {"solver.dt": 0.03}
    session, still = opened(flow(3, **changes)), opened(flow(3, **changes))
    for each in (session, still):
        make_steps(each, 6)
        while each.stepping:
            each.advance(LITTLE, 0.0)
    assert session.simulation.steps == still.simulation.steps
    for each in (session, still):
        each.draw()
    pictures = []
    session._debt = 1.0
    for turn in range(4):
        for _ in range(2):
            session.advance(LITTLE, FRAME)
        assert session.stepping
        for each in (session, still):
            assert each.set({"camera.azimuth": 10.0 + 40 * turn, "look.exposure": 1.0 + turn})
            assert each.draw()
        pictures.append(session.picture())
        np.testing.assert_array_equal(pictures[-1], still.picture())
        assert not session.draw()
    assert all((one != two).any() for one, two in itertools.pairwise(pictures))


@pytest.mark.parametrize("detail", [1.0, 0.5, 0.26])
def test_pictures_have_their_size_whatever_the_detail(opened, dim, detail):
    session = opened(flow(dim))
    make_steps(session, 8)
    session.pause()
    while session.stepping:
        session.advance(LITTLE, 0.0)
    session.draw()
    full = session.picture().astype(int)
    session.detail = detail
    assert session.draw() == (detail < 1)
    coarse = session.picture()
    assert coarse.shape == full.shape
    # The same picture with less in it: a blob that is a third of the picture wide, of which a quarter is left.
    assert np.abs(coarse - full).mean() < 8
    session.size = (91, 70)
    assert session.draw()
    assert session.picture().shape == (70, 91, 3)


def test_the_last_picture_stays_until_the_next_is_drawn(opened):
    """In the middle of a step, when a new size must wait."""
    session = opened(flow(2))
    make_steps(session, 3)
    while session.stepping:
        session.advance(LITTLE, 0.0)
    session.draw()
    before = session.picture()
    begin_step(session)
    session._stale = True
    for size, detail in [((80, 60), 1.0), ((64, 48), 0.5), ((33, 20), 0.3)]:
        session.size, session.detail = size, detail
        assert not session.draw()
        np.testing.assert_array_equal(session.picture(), before)


def test_another_view_waits_for_the_end_of_the_step(opened):
    session = opened(flow(2))
    make_steps(session, 3)
    while session.stepping:
        session.advance(LITTLE, 0.0)
    session.draw()
    begin_step(session)
    assert session.set({"look.view": "arrows"})
    assert not session.draw()
    session.pause()
    while session.stepping:
        assert not session.draw()
        session.advance(LITTLE, FRAME)
    assert session.draw()


# Files


def test_files_have_names_of_their_own(opened, tmp_path):
    session = opened(flow(2))
    session.draw()
    (tmp_path / "test_001.png").write_text("precious")
    (tmp_path / "test_001.toml").write_text("precious")
    (tmp_path / "test_001.mp4").write_text("precious")
    for _ in range(2):
        session.screenshot()
        session.save_scene()
        session.record()
        session.offer_picture()
        session.record()
    names = [f"test_00{n}.{kind}" for n in (1, 2, 3) for kind in ("mp4", "png", "toml")]
    assert sorted(os.listdir(tmp_path)) == names
    assert all((tmp_path / f"test_001.{kind}").read_text() == "precious" for kind in ("png", "toml", "mp4"))
    assert [path.name for path in session.written] == [
        f"test_00{n}.{kind}" for n in (2, 3) for kind in ("png", "toml", "mp4")
    ]
    assert session.message == "wrote test_003.mp4"


def test_a_screenshot_is_what_is_seen(opened, tmp_path):
    session = opened(flow(3))
    make_steps(session, 10)
    session.draw()
    session.screenshot()
    with av.open(str(tmp_path / "test_001.png")) as container:
        (frame,) = container.decode(video=0)
        np.testing.assert_array_equal(frame.to_ndarray(format="rgb24"), session.picture())
    assert session.picture().std() > 1, "there is something to be seen"


def test_a_screenshot_is_in_full_size(opened, tmp_path):
    session = opened(flow(2))
    make_steps(session, 6)
    session.pause()
    while session.stepping:
        session.advance(LITTLE, 0.0)
    session.draw()
    full = session.picture()
    session.detail = 0.5
    session.draw()
    session.screenshot()
    with av.open(str(tmp_path / "test_001.png")) as container:
        (frame,) = container.decode(video=0)
        np.testing.assert_array_equal(frame.to_ndarray(format="rgb24"), full)
    assert session.detail == 0.5
    assert session.picture().shape == full.shape, "as a recording would see it"
    np.testing.assert_array_equal(session.picture(), full)
    assert session.draw(), "coarse again"
    assert (session.picture() != full).any()


def test_a_saved_scene_is_the_scene_as_it_was_steered(opened, tmp_path):
    session = opened(flow(3))
    changes = {
        "fluid.viscosity": 3.25e-4, "camera.azimuth": -71.5, "look.colour_map": "viridis", "sources.0.smoke": 7.125,
        "sources.0.velocity": [0.0, 1.5, 0.25], "live.radius": 0.11, "solver.dt": 0.0125,
    }  # fmt: skip
    assert session.set(changes)
    session.finer()()
    session.save_scene()
    again = Scene.load(tmp_path / "test_001.toml")
    assert again == session.scene
    assert again.fluid.viscosity == 3.25e-4
    assert again.domain.resolution == 24
    assert again.sources[0].velocity == (0.0, 1.5, 0.25)


def test_a_recording_lasts_as_long_as_the_clock_says_and_stops_nothing(opened, clock, tmp_path):
    session = opened(flow(2))
    make_steps(session, 1)
    session.draw()
    session.record()
    assert session.video is not None
    for _ in range(45):
        steps = session.simulation.steps
        session.advance(AMPLE, FRAME)
        assert session.simulation.steps > steps, "it goes on"
        session.draw()
        session.offer_picture()
        clock.now += 1 / 30
    assert [path.name for path in tmp_path.glob("*.mp4")] == ["test_001.part.mp4"], "not yet whole, and says so"
    in_time(session.record)
    assert session.video is None
    assert session.message == "wrote test_001.mp4"
    with av.open(str(tmp_path / "test_001.mp4")) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        duration = container.duration / 1e6
    # 45 frames of 1/30 s; the encoder may have left out pictures, not time.
    assert duration == pytest.approx(1.5, abs=1.5 / 30)
    assert len(frames) == pytest.approx(45, abs=1)
    assert frames[0].shape == (48, 64, 3)
    assert (frames[0] != frames[-1]).any()


def test_a_recording_goes_on_through_other_grids_sizes_and_scenes(opened, clock, small_presets, tmp_path):
    session = opened(flow(2))
    session.draw()
    session.record()
    changes = [session.finer(), session.other("karman"), lambda: setattr(session, "size", (33, 71)), session.reset]
    for change in changes:
        change()
        make_steps(session, 1)
        session.draw()
        session.offer_picture()
        clock.now += 0.1
    in_time(session.close)
    assert session.video is None
    with av.open(str(tmp_path / "test_001.mp4")) as container:
        assert len(list(container.decode(video=0))) == pytest.approx(12, abs=1)


def test_two_windows_in_one_folder_write_two_files(opened, clock, tmp_path):
    one, two = opened(flow(2)), opened(flow(2))
    for session in (one, two):
        session.draw()
        session.record()
    clock.now += 0.2
    for session in (one, two):
        in_time(session.record)
    assert [path.name for path in one.written + two.written] == ["test_001.mp4", "test_002.mp4"]
    assert all(path.stat().st_size > 0 for path in one.written + two.written)


def test_closing_finishes_the_recording(opened, tmp_path):
    session = opened(flow(2))
    session.draw()
    session.record()
    begin_step(session)
    in_time(session.close)
    assert [path.name for path in session.written] == ["test_001.mp4"]
    assert os.listdir(tmp_path) == ["test_001.mp4"]
    in_time(session.close)
    assert len(session.written) == 1


def test_a_state_that_is_kept_goes_on_where_the_window_was(opened, tmp_path):
    session = opened(flow(2))
    make_steps(session, 3)
    begin_step(session)
    keep_state(session)
    assert session.message == "wrote test_001.checkpoint"
    assert os.listdir(tmp_path) == ["test_001.checkpoint"], "no empty file before it"
    again = load_state(tmp_path / "test_001.checkpoint")
    assert (again.time, again.steps) == (session.simulation.time, session.simulation.steps)
    for simulation in (again, session.simulation):
        simulation.step(0.01)
    np.testing.assert_array_equal(again.to_numpy("velocity"), session.simulation.to_numpy("velocity"))


def test_a_state_of_two_grids_is_refused_in_a_sentence(opened, tmp_path):
    session = opened(flow(2))
    session.compare()()
    keep_state(session)
    assert "both grids are shown" in session.message
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("what", ["screenshot", "save_scene", "record"])
def test_a_folder_that_is_not_there_is_a_sentence(opened, tmp_path, what):
    session = opened(flow(2))
    session.draw()
    session.folder = tmp_path / "nowhere"
    getattr(session, what)()
    assert session.video is None
    assert session.written == []
    assert "No such file" in session.message
    assert session.alarm
    assert "\n" not in session.message
    make_steps(session, 1)


@pytest.mark.skipif(sys.platform == "win32", reason="an open file holds its folder")
def test_a_folder_that_goes_away_while_recording_is_a_sentence(opened, clock, tmp_path):
    session = opened(flow(2))
    session.folder = tmp_path / "gone"
    session.folder.mkdir()
    session.draw()
    session.record()
    for _ in range(5):
        clock.now += 0.1
        session.offer_picture()
    shutil.rmtree(session.folder)
    in_time(session.record)
    assert session.video is None
    assert session.written == []
    assert "test_001.mp4 cannot be written" in session.message
    make_steps(session, 1)


def test_an_encoder_that_fails_ends_the_recording_with_a_sentence(opened, clock, monkeypatch, tmp_path):
    def fail(picture):
        raise OSError("no space left on device")

    session = opened(flow(2))
    session.draw()
    session.record()
    monkeypatch.setattr(session.video._writer, "write", fail)

    def offer():
        while session.video is not None:
            clock.now += 0.1
            session.offer_picture()

    in_time(offer)
    assert "no space left" in session.message
    assert session.written == []
    assert os.listdir(tmp_path) == []


def test_without_pyav_recording_is_a_sentence(opened, monkeypatch):
    session = opened(flow(2))
    session.draw()
    monkeypatch.setitem(sys.modules, "av", None)
    session.record()
    assert session.video is None
    assert "PyAV" in session.message
    session.record()
    session.offer_picture()
    make_steps(session, 1)


# Numbers


def test_health_is_measured(opened, dim):
    session = opened(flow(dim))
    assert session.health() is None
    make_steps(session, 4)
    while session.stepping:
        session.advance(LITTLE, 0.0)
    health = session.health()
    assert list(health.stage_ms) == ["halve", "advect", "sources", "burn", "forces", "diffuse", "project"]
    assert health.step_ms == pytest.approx(sum(health.stage_ms.values()))
    assert all(ms >= 0 for ms in health.stage_ms.values())
    assert 1 <= health.iterations < 50
    assert health.residual <= session.scene.solver.tolerance
    assert health.status == "converged"
    # f32 sums of a few thousand cells.
    assert health.mass == pytest.approx(mass(session), rel=1e-4)
    speed = np.abs(session.simulation.to_numpy("velocity")).max()
    assert health.cfl == pytest.approx(speed * health.dt / session.simulation.grid.dx, rel=1e-4)
    assert 0 <= health.divergence < 1.0
