"""How solids and sources move along paths and turns of one's own: places, speeds, what a flow has of them, and what is refused."""

import math

import numpy as np
import pytest
from command_line import run_here
from scenes_for_tests import scene

from taichi_fluid.boundaries.solids import Motion
from taichi_fluid.scene import Scene, SceneError
from taichi_fluid.simulation import NotFinite, Simulation
from taichi_fluid.validation.water import water

PERIOD = 0.8
OMEGA = 2 * math.pi / PERIOD


@pytest.mark.parametrize("time", [0.0, 0.13, 7.9, 4e4])
def test_a_path_is_where_it_says_and_as_fast_as_that_changes(time):
    """A swing, said as a path: in its place exactly, in its speed as far as differences of float64 tell."""
    swung = Motion((0.5, 0.2), (0.3, 0.0), (0.1, -0.2), PERIOD).at(time)
    said = Motion((0.5, 0.2), (0.3, 0.0), path=lambda t: (0.1 * math.sin(OMEGA * t), -0.2 * math.sin(OMEGA * t)))
    assert said.moves
    np.testing.assert_allclose(said.at(time).pivot, swung.pivot, rtol=1e-14)
    # Sines of 3e5 are right to 4e-11, which two microseconds apart are 2e-5; at time 0 half of the difference is missing.
    np.testing.assert_allclose(said.at(time).velocity, swung.velocity, rtol=2e-5, atol=2e-5)
    assert said.at(time).angular_velocity == (0.0, 0.0, 0.0)


def test_a_turn_is_an_orientation_and_as_fast_as_that_changes():
    flat = Motion((0.5, 0.5), angular_velocity=(2.0,), turn=lambda t: 0.3 * math.sin(3 * t)).at(0.7)
    angle = 2.0 * 0.7 + 0.3 * math.sin(2.1)
    np.testing.assert_allclose(flat.rotation[:, 0], (math.cos(angle), math.sin(angle)), rtol=1e-12)
    np.testing.assert_allclose(flat.angular_velocity, (0.0, 0.0, 2.0 + 0.9 * math.cos(2.1)), rtol=1e-8)
    assert Motion((0.5, 0.5), turn=0.2).at(1.0).rotation[1, 0] == pytest.approx(math.sin(0.2))
    with pytest.raises(ValueError, match=r"turn is \(0\.1, 0\.2\); it is one number in 2D"):
        Motion((0.5, 0.5), turn=lambda t: (0.1, 0.2))
    with pytest.raises(ValueError, match=r"path is \(0\.1,\); it has 2 coordinates"):
        Motion((0.5, 0.5), path=[0.1])
    # A top that spins about z, and is tipped about x.
    tipped = Motion((0.5,) * 3, angular_velocity=(0.0, 0.0, 5.0), turn=lambda t: (0.4 * t, 0.0, 0.0)).at(0.7)
    tip = 0.28
    axis = (0.0, -math.sin(tip), math.cos(tip))
    np.testing.assert_allclose(tipped.angular_velocity, np.array([0.4, 0.0, 0.0]) + 5.0 * np.array(axis), atol=1e-8)
    np.testing.assert_allclose(tipped.rotation[:, 2], axis, atol=1e-12)
    # About an axis that itself moves each point goes as the rotation changes.
    wobbles = Motion((0.0,) * 3, turn=lambda t: (math.sin(t), math.cos(2 * t), 0.5 * t))
    before, now, after = (wobbles.at(0.7 + step) for step in (-1e-3, 0.0, 1e-3))
    change = (after.rotation - before.rotation) / 2e-3
    for point in np.eye(3):
        np.testing.assert_allclose(np.cross(now.angular_velocity, now.rotation @ point), change @ point, atol=1e-5)


def opened(solid, time=0.0, faces="fractions"):
    values = scene((16, 16), 1 / 16, solver={"faces": faces}).model_dump(exclude_none=True)
    simulation = Simulation(Scene.from_dict(values | {"solids": [solid]}))
    simulation.solids.update(time)
    return simulation, simulation.grid.to_numpy(simulation.solids.open)


@pytest.mark.parametrize("faces", ["fractions", "voxels"])
def test_numbers_put_a_solid_elsewhere_and_it_stays_there(faces):
    box = {"shape": "box", "center": [0.5, 0.5], "size": [0.5, 0.2]}
    simulation, upright = opened({**box, "turn": 0.5 * math.pi}, faces=faces)
    assert not simulation.solids.moves
    # Shapes that are exact, not sampled, are cut alike but for rounding.
    np.testing.assert_allclose(upright, opened({**box, "size": [0.2, 0.5]}, faces=faces)[1], atol=1e-5)
    simulation, beside = opened({**box, "path": [-0.1, 0.2], "pivot": [0.1, 0.1]}, faces=faces)
    assert not simulation.solids.moves
    np.testing.assert_allclose(beside, opened({**box, "center": [0.4, 0.7]}, faces=faces)[1], atol=1e-5)
    # A path that begins elsewhere turns about a pivot that goes along.
    simulation, turned = opened({**box, "path": ["t - 0.1", 0.2], "turn": "pi*t"}, time=0.5, faces=faces)
    assert simulation.solids.moves
    np.testing.assert_allclose(
        turned, opened({**box, "center": [0.9, 0.7], "size": [0.2, 0.5]}, faces=faces)[1], atol=1e-5
    )


@pytest.mark.vulkan_too(dim=2)
def test_a_flow_feels_a_path_as_it_feels_the_same_swing(dim):
    ball = {"shape": "sphere", "center": [0.5] * dim, "radius": 0.2}
    along = [0.1] + [0.0] * (dim - 1)
    found = []
    for motion in (
        {"swing": along, "swing_period": PERIOD},
        {"path": [f"0.1*sin(2*pi*t/{PERIOD})", *along[1:]]},
    ):
        values = scene((12,) * dim, 1 / 12, {"viscosity": 0.01}, {"tolerance": 1e-6, "dt": 0.02}).model_dump(
            exclude_none=True
        )
        simulation = Simulation(Scene.from_dict(values | {"solids": [ball | motion]}))
        for _ in range(6):
            simulation.step()
        found.append([*simulation.to_numpy("velocity"), np.ravel(simulation.solids.load(0).force)])
    assert np.abs(found[0][0]).max() > 0.3 and np.abs(found[0][-1]).max() > 1e-3
    for one, other in zip(*found, strict=True):
        # Speeds that differ by 1e-9 are rounded to 32 bits, and solved to 1e-6.
        np.testing.assert_allclose(one, other, atol=1e-4 * np.abs(one).max())


def emitted(source, dt=0.1, steps=4, size=(1.6, 0.8), cells=32, **others):
    """Smoke of a source in a fluid that stays at rest, in a box that has no sides."""
    domain = {"size": list(size), "resolution": cells, "boundaries": "periodic"}
    values = {"name": "torch", "domain": domain, "solver": {"dt": dt}, "sources": [source]}
    simulation = Simulation(Scene.from_dict(values | others))
    for _ in range(steps):
        simulation.step()
    return simulation.to_numpy("smoke"), simulation.diagnostics.integral(simulation.state.carried["smoke"].current)


BURNER = {"shape": "sphere", "center": [0.4, 0.4], "radius": 0.1, "smoke": 2.0, "begin": 0.05, "end": 0.35}
FALLING = {"fluid": {"smoke_weight": 0.0}}


def test_a_source_that_stays_emits_as_without_a_path():
    still, amount = emitted(BURNER, **FALLING)
    stays, same = emitted({**BURNER, "path": ["0*t", 0.0]}, **FALLING)
    np.testing.assert_array_equal(still, stays)
    # Of a disk of four cells across the parts of cells that it covers are 2.4 % too much.
    assert amount == same == pytest.approx(2.0 * 0.3 * math.pi * 0.01, rel=0.03)
    moved, _ = emitted({**BURNER, "path": [0.2, 0.0]}, **FALLING)
    np.testing.assert_allclose(moved, np.roll(still, 4, axis=0), atol=1e-6)


def test_a_fast_source_leaves_an_even_trace():
    """At 4 m/s it goes two of its widths in a step: what it leaves is no string of beads, and as much as where it stays."""
    fast = {**BURNER, "path": ["4*(t - 0.05)", 0.0]}
    smoke, amount = emitted(fast, **FALLING)
    assert amount == pytest.approx(2.0 * 0.3 * math.pi * 0.01, rel=0.03)
    # It has gone 1.2 m, from 0.4 m to 1.6, across the seam of the box.
    across = smoke.sum(axis=1)
    inner = across[10:30]
    assert inner.min() > 0.93 * inner.max()
    # A box that is elsewhere all at once emits half here and half there.
    block = {**BURNER, "shape": "box", "size": [0.2, 0.1], "path": [0.0, "0.2*step(t - 0.2)"]}
    del block["radius"]
    smoke, _ = emitted(block, **FALLING)
    np.testing.assert_allclose(smoke[6:10, [7, 8, 11, 12]], 0.3, rtol=1e-4)


def test_a_source_of_liquid_pours_and_drains_along_its_way(dim):
    middle = [0.5] * (dim - 2)
    hose = {"shape": "sphere", "center": [0.2, 0.8, *middle], "radius": 0.09, "velocity": [0.0, -1.0, 0.0][:dim]}
    hose["path"] = ["0.6*step(t - 0.15)", *[0.0] * (dim - 1)]
    simulation = Simulation(water([1.0] * dim, 16, [], sources=[hose]))
    found = []
    for until in (0.1, 0.3):
        simulation.advance(until)
        found.append(simulation.to_numpy("level set").min(axis=tuple(range(1, dim))) < 0)
    # First on the left alone; the rest of that falls on while the hose is on the right.
    assert found[0][2:4].all() and not found[0][8:].any()
    assert found[1][12:14].all()
    hole = {"shape": "sphere", "center": [0.2, 0.1, *middle], "radius": 0.1, "sink": True, "path": hose["path"]}
    pool = Simulation(water([1.0] * dim, 16, [([0.0] * dim, [1.0, 0.4, 1.0][:dim])], sources=[hole]))
    lost, before = [], pool.liquid.volume
    for _ in range(2):
        left = pool.liquid.volume
        pool.advance(0.15)
        lost.append(left - pool.liquid.volume)
    assert min(lost) > 0.003 * before


@pytest.mark.parametrize(
    ("motion", "words"),
    [
        ({"path": ["x", 0.0]}, r"solids\[0\]\.path\.0: 'x' has the name 'x'"),
        ({"path": ["log(t)", 0.0]}, r"solids\[0\]\.path\.0: 'log\(t\)' is -inf at t = 0; it must be within 1e\+06 m"),
        ({"path": ["t", 0.0, 0.0]}, r"solids\[0\]\.path has 3 coordinates; the box has 2 axes"),
        ({"turn": ["t", "0", "0"]}, r"solids\[0\]\.turn is \('t', '0', '0'\); it is one number in a 2D box"),
        ({"turn": "1/t"}, r"solids\[0\]\.turn\.0: '1/t' is inf at t = 0; it must be within 10000 rad"),
    ],
)
def test_a_motion_that_cannot_be_is_refused_in_one_sentence(motion, words):
    values = {"name": "moved", "domain": {"size": [1.0, 1.0], "resolution": 8}}
    with pytest.raises(SceneError, match=words) as refused:
        Scene.from_dict(values | {"solids": [{"shape": "sphere", "center": [0.5, 0.5], "radius": 0.2} | motion]})
    assert "\n" not in str(refused.value)
    if "path" in motion:
        source = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.2, "smoke": 1.0} | motion
        with pytest.raises(SceneError, match=words.replace("solids", "sources")):
            Scene.from_dict(values | {"sources": [source]})


def test_a_motion_that_ends_nowhere_is_told_with_its_time(tmp_path):
    ball = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.2, "path": ["0.01*sqrt(0.05 - t)", 0.0]}
    made = Scene.from_dict(
        {"name": "moved", "domain": {"size": [1.0, 1.0], "resolution": 8}, "solver": {"dt": 0.02}, "solids": [ball]}
    )
    simulation = Simulation(made)
    with pytest.raises(NotFinite, match=r"^solids\[0\]\.path is \[nan, 0\.0\] at t = 0\.0\d+ s; it must be numbers"):
        simulation.advance(0.1)
    torch = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.2, "smoke": 1.0, "path": ball["path"]}
    with pytest.raises(
        NotFinite, match=r"^the path \['0\.01.*', 0\.0\] of a source is \[nan, 0\.0\] at t = 0\.0\d+ s; it"
    ):
        Simulation(made.with_values({"solids": [], "sources": [torch]})).advance(0.1)
    file = tmp_path / "moved.toml"
    file.write_text(made.dumps(), encoding="utf-8")
    done = run_here(["run", file, "--arch", "cpu", "--frames", "4"], tmp_path)
    assert done.returncode == 1
    assert "solids[0].path is [nan, 0.0] at t = " in done.stderr and "Traceback" not in done.stderr
