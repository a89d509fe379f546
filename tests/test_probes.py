"""Probes: values at points against fields for which interpolation is exact, fluxes against what changes, files, refusals."""

import csv
import json

import numpy as np
import pytest
from scenes_for_tests import scene, set_state

from taichi_fluid.io.files import OutputError
from taichi_fluid.io.series import SeriesFile
from taichi_fluid.scene import Probe, Scene, SceneError
from taichi_fluid.simulation import Simulation
from taichi_fluid.simulation.probes import Probes
from taichi_fluid.simulation.probing import budget
from taichi_fluid.simulation.resampling import resample
from taichi_fluid.validation.water import water

SHAPE, DX = (9, 7, 8), 0.1
SMOKE = [{"shape": "sphere", "center": [0.3, 0.3, 0.3], "radius": 0.1, "smoke": 1.0, "dye": [1.0, 0.5, 0.2]}]


def box(dim, boundaries="free-slip", **values) -> Scene:
    sources = [{**SMOKE[0], "center": [0.3] * dim}]
    return scene(SHAPE[:dim], DX, values.pop("fluid", {}), values, sources, boundaries)


def affine(dim, slope=(1.5, -2.0, 0.7)):
    """Coefficients of values that linear interpolation gives exactly."""
    return lambda *x: 3.0 + sum(a * np.asarray(v) for a, v in zip(slope[:dim], x, strict=True))


def filled(dim, grid="staggered") -> Simulation:
    """Affine smoke, pressure and velocity, ghosts as they continue: what is probed lies a cell inside."""
    simulation = Simulation(box(dim).with_values({"domain.grid": grid}))
    cells, value = simulation.grid, affine(dim)
    smoke = np.broadcast_to(value(*cells.cell_centres()), cells.shape)
    cells.from_numpy(simulation.state.carried["smoke"].current, smoke)
    cells.from_numpy(simulation.state.pressure, 2 * smoke)
    faces = []
    for axis in range(dim):
        x = [DX * (np.arange(n) + 0.5 * (a != axis or grid == "collocated")) for a, n in enumerate(cells.shape)]
        faces.append((axis + 1) * value(*np.meshgrid(*x, indexing="ij")))
    cells.from_numpy(simulation.state.velocity.current, np.array(faces))
    return simulation


@pytest.mark.vulkan_too(dim=2)
@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_what_is_affine_is_exact_at_points_and_along_lines(dim, grid):
    simulation = filled(dim, grid)
    at, to = (0.23, 0.31, 0.44)[:dim], (0.61, 0.42, 0.4)[:dim]
    place = {"kind": "point", "at": at}
    rows = [
        {"name": name, "quantity": name, **place} for name in ("smoke", "pressure", "velocity", "speed", "velocity_y")
    ]
    rows += [{"name": "cut", "kind": "line", "quantity": "smoke", "at": at, "to": to, "points": 5}]
    (row,) = Probes(simulation, rows).rows
    exact = float(affine(dim)(*at))
    assert row["smoke"] == pytest.approx(exact, rel=1e-6)
    assert row["pressure"] == pytest.approx(2 * exact, rel=1e-6)
    velocity = [(axis + 1) * exact for axis in range(dim)]
    assert [row[f"velocity.{axis}"] for axis in "xyz"[:dim]] == pytest.approx(velocity, rel=1e-6)
    assert row["velocity_y"] == row["velocity.y"]
    assert row["speed"] == pytest.approx(np.linalg.norm(velocity), rel=1e-6)
    along = [np.array(at) + part * np.subtract(to, at) for part in np.linspace(0, 1, 5)]
    assert [row[f"cut.{i}"] for i in range(5)] == pytest.approx([float(affine(dim)(*x)) for x in along], rel=1e-6)


def test_a_pressure_at_an_open_side_is_that_of_outside():
    """Where its own ghosts say nothing: the probe fills those of a copy."""
    simulation = Simulation(box(2, boundaries=[["free-slip", "open"], ["free-slip", "free-slip"]]))
    pressure = np.full(simulation.grid.shape, 5.0)
    simulation.grid.from_numpy(simulation.state.pressure, pressure)
    before = simulation.state.pressure.to_numpy()
    rows = [
        {"name": n, "kind": "point", "quantity": "pressure", "at": [x, 0.35]} for n, x in (("in", 0.0), ("out", 0.9))
    ]
    (row,) = Probes(simulation, rows).rows
    assert row["in"] == pytest.approx(5.0)
    assert row["out"] == pytest.approx(0.0 if simulation.walls.sides[0][1].kind.pressure == 2 else 2.5, abs=1e-6)
    np.testing.assert_array_equal(simulation.state.pressure.to_numpy(), before)


def test_solid_rotation_has_its_vorticity_everywhere(dim):
    simulation = Simulation(box(dim))
    x, y = DX * np.arange(SHAPE[0] + 1), DX * np.arange(SHAPE[1] + 1)
    faces = [np.zeros([n + (a == axis) for a, n in enumerate(SHAPE[:dim])]) for axis in range(dim)]
    spread = (...,) + (None,) * (dim - 2)
    faces[0] += (-2.0 * (y[:-1] + 0.5 * DX))[(None, *spread)]
    faces[1] += (2.0 * (x[:-1] + 0.5 * DX))[(slice(None), None, *spread[1:])]
    simulation.grid.face_velocity_from_numpy(simulation.state.velocity.current, faces)
    middle = [0.42, 0.33, 0.4][:dim]
    rows = [
        {"name": "spin", "kind": "point", "quantity": "vorticity", "at": middle},
        {"name": "sum", "kind": "integral", "quantity": "vorticity", "lower": [0.2] * dim, "upper": [0.5] * dim},
    ]
    (row,) = Probes(simulation, rows).rows
    assert row["spin"] == pytest.approx(4.0, rel=1e-5)
    assert row["sum"] == pytest.approx(4.0 * 0.3**dim, rel=1e-5)


@pytest.mark.vulkan_too(dim=2)
def test_extremes_and_integrals_of_a_region_are_those_of_its_cells(dim):
    simulation = filled(dim)
    smoke = simulation.to_numpy("smoke")
    region = {"lower": [0.2] * dim, "upper": [0.62, 0.5, 0.6][:dim]}
    rows = [
        {"name": "most", "kind": "extreme", "quantity": "smoke", **region},
        {"name": "part", "kind": "integral", "quantity": "smoke", **region},
        {"name": "all", "kind": "integral", "quantity": "smoke"},
        {"name": "dyes", "kind": "integral", "quantity": "dye"},
        {"name": "energy", "kind": "integral", "quantity": "kinetic_energy"},
    ]
    (row,) = Probes(simulation, rows).rows
    inside = smoke[(slice(2, 6), slice(2, 5), slice(2, 6))[:dim]]
    assert (row["most.min"], row["most.max"]) == (inside.min(), inside.max())
    assert row["part"] == pytest.approx(inside.sum() * DX**dim, rel=1e-5)
    assert row["all"] == pytest.approx(smoke.sum() * DX**dim, rel=1e-5)
    assert [row[f"dyes.{k}"] for k in range(3)] == [0.0] * 3
    numbers = budget(simulation)
    assert numbers["kinetic_energy"] == row["energy"]
    # Another kernel of the same sum, which LLVM may put together otherwise.
    assert numbers["amounts"].pop("smoke") == pytest.approx(row["all"], rel=1e-6)
    assert numbers["amounts"] == {"dye": [0.0] * 3}


def test_enstrophy_is_that_of_a_vortex_without_what_solids_turn():
    """Of sin(x) cos(y) and -cos(x) sin(y) in a periodic box: half of the integral of the vorticity's square is 2 pi²."""
    n = 64
    config = scene((n, n), 2 * np.pi / n, boundaries="periodic")
    simulation = Simulation(config)
    face, centre = np.arange(n + 1) * 2 * np.pi / n, (np.arange(n) + 0.5) * 2 * np.pi / n
    u, v = np.sin(face)[:, None] * np.cos(centre), -np.cos(centre)[:, None] * np.sin(face)
    set_state(simulation, [u, v])
    # Differences over a cell at edges: (1 - h²/24) twice, 0.08 % here.
    assert budget(simulation)["enstrophy"] == pytest.approx(2 * np.pi**2, rel=1.2e-3)
    turning = {"shape": "sphere", "center": [3.0, 3.0], "radius": 1.5, "angular_velocity": 2.0}
    alone = Simulation(config.with_values({"solids": [turning]}))
    # At rest but for the disk: what is left is the sheet of vorticity around it, not the 57 of the disk.
    u, v = alone.grid.to_numpy_padded(alone.state.velocity.current).astype(float)
    curl = np.zeros_like(u)  # at the lower corner of each cell, over dx
    curl[1:, 1:] = v[1:, 1:] - v[:-1, 1:] - u[1:, 1:] + u[1:, :-1]
    squares = sum((curl[a : n + a, b : n + b] / alone.grid.dx) ** 2 for a in (1, 2) for b in (1, 2)) / 4
    fluid = alone.grid.to_numpy(alone.solids.fluid)
    assert squares[fluid == 0].sum() > 0.1 * squares.sum()
    expected = 0.5 * alone.grid.cell_volume * squares[fluid > 0].sum()
    assert budget(alone)["enstrophy"] == pytest.approx(expected, rel=1e-4)


def test_every_plane_of_a_channel_passes_the_same_volume(dim):
    """What comes in, past a ball, to the tolerance of the projection."""
    shape = (20, 12, 12)[:dim]
    sides = [
        [{"kind": "inflow", "velocity": [0.5, *[0.0] * (dim - 1)]}, "open"],
        *[["no-slip", "free-slip"]] * (dim - 1),
    ]
    config = scene(shape, DX, {"viscosity": 0.01}, {"dt": 0.05, "tolerance": 1e-6}, SMOKE[:0], boundaries=sides)
    ball = {"shape": "sphere", "center": [0.8, 0.6, 0.6][:dim], "radius": 0.3}
    simulation = Simulation(config.with_values({"solids": [ball]}))
    rows = [
        {"name": f"at{k}", "kind": "plane", "quantity": "volume", "axis": "x", "position": 0.2 * k} for k in range(11)
    ]
    rows.append({"name": "side", "kind": "plane", "quantity": "volume", "axis": "y", "position": 1.2})
    rows.append({**rows[5], "name": "half", "lower": [0.0] * dim, "upper": [2.0, 0.6, 1.2][:dim]})
    with Probes(simulation, rows) as probes:
        for _ in range(3):
            simulation.step()
    last = probes.rows[-1]
    inflow = 0.5 * np.prod([n * DX for n in shape[1:]])
    assert [last[f"at{k}"] for k in range(11)] == pytest.approx([inflow] * 11, rel=1e-4)
    assert last["side"] == 0.0
    assert last["half"] == pytest.approx(0.5 * inflow, rel=0.1)  # the walls differ, the halves are nearly alike


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_what_flows_through_a_plane_is_what_lies_behind_it(grid):
    """Smoke that drifts across the middle of a closed budget: a wide cloud in an even stream, round a periodic box."""
    n, speed, dt = 64, 1.0, 0.25 / 64
    config = scene((n, 8), 1 / n, {}, {"dt": dt}, boundaries="periodic").with_values({"domain.grid": grid})
    simulation = Simulation(config)
    cloud = np.exp(-(((np.arange(n) + 0.5) / n - 0.3) ** 2) / 0.005)[:, None] * np.ones(8)
    if grid == "staggered":
        set_state(simulation, [np.full((n + 1, 8), speed), np.zeros((n, 9))], smoke=cloud)
    else:
        simulation.grid.from_numpy(
            simulation.state.velocity.current, np.stack([np.full((n, 8), speed), np.zeros((n, 8))])
        )
        simulation.grid.from_numpy(simulation.state.carried["smoke"].current, cloud)
        simulation.fill()
    rows = [
        {"name": "through", "kind": "plane", "quantity": "smoke", "axis": "x", "position": 0.5},
        {"name": "behind", "kind": "integral", "quantity": "smoke", "lower": [0.5, 0.0], "upper": [1.0, 0.125]},
    ]
    with Probes(simulation, rows) as probes:
        for _ in range(64):
            simulation.step()
    (times, through), (_, behind) = probes.series("through"), probes.series("behind")
    passed = np.sum(0.5 * (through[1:] + through[:-1]) * np.diff(times))
    assert behind[-1] - behind[0] > 0.5 * cloud.sum() / n**2
    # A quarter of a cell a step: the mean of two cells against their cubic in time; 0.1 %.
    assert passed == pytest.approx(behind[-1] - behind[0], rel=0.005)


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_heat_that_is_only_conducted_passes_every_plane(dim, grid):
    """From a warm wall to a cold one: diffusivity times the slope, on the walls too; nothing along them."""
    walls = [{"kind": "no-slip", "temperature": value} for value in (3.0, 1.0)]
    fluid = {"heat_diffusion": 0.05, "gravity": [0.0] * dim}
    sides = [walls, *[["no-slip", "no-slip"]] * (dim - 1)]
    config = scene((8, 6, 4)[:dim], 1 / 8, fluid, {"dt": 2.0}, boundaries=sides)
    simulation = Simulation(config.with_values({"domain.grid": grid}))
    rows = [
        {"name": f"at{k}", "kind": "plane", "quantity": "temperature", "axis": "x", "position": k / 8} for k in range(9)
    ]
    rows += [{"name": "along", "kind": "plane", "quantity": "temperature", "axis": "y", "position": 0.375}]
    with Probes(simulation, rows) as probes:
        for _ in range(60):
            simulation.step()
        found = probes.rows[-1]
    area = 0.75 * (0.5 if dim == 3 else 1.0)
    for k in range(9):
        assert found[f"at{k}"] == pytest.approx(0.05 * 2.0 * area, rel=1e-3)
    assert found["along"] == pytest.approx(0.0, abs=1e-6)


def test_heat_leaves_a_solid_through_planes_around_it():
    """As much as the walls take; nothing through the faces that another solid closes."""
    wall = {"kind": "no-slip", "temperature": 0.0}
    fluid = {"heat_diffusion": 0.05, "gravity": [0.0, 0.0]}
    config = scene((24, 24), 1 / 24, fluid, {"dt": 2.0}, boundaries=[[wall, wall]] * 2)
    hot = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.2, "temperature": 4.0}
    screen = {"shape": "box", "center": [0.5, 0.125], "size": [0.5, 0.0833]}
    simulation = Simulation(config.with_values({"solids": [hot, screen]}))
    edges = {"lower": [0.0, 0.25], "upper": [1.0, 0.75]}
    around = [("x", 0.25, edges), ("x", 0.75, edges)]
    around += [("y", at, {"lower": [0.25, 0.0], "upper": [0.75, 1.0]}) for at in (0.25, 0.75)]
    around += [(axis, at, {}) for axis in "xy" for at in (0.0, 1.0)]
    around += [("y", 0.125, {"lower": [0.25, 0.0], "upper": [0.75, 1.0]})]
    rows = [
        {"name": f"p{k}", "kind": "plane", "quantity": "temperature", "axis": axis, "position": at, **region}
        for k, (axis, at, region) in enumerate(around)
    ]
    rows += [{"name": f"s{k}", "kind": "exchange", "quantity": "temperature", "solid": k} for k in range(2)]
    with Probes(simulation, rows) as probes:
        for _ in range(60):
            simulation.step()
        found = [probes.rows[-1][f"p{k}"] for k in range(9)]
    leaves, taken = -found[0] + found[1] - found[2] + found[3], -found[4] + found[5] - found[6] + found[7]
    assert leaves == pytest.approx(taken, rel=1e-3) and leaves > 0.5
    assert found[8] == 0.0
    assert probes.rows[-1]["s0"] == pytest.approx(taken, rel=1e-3) and probes.rows[-1]["s1"] == 0.0


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("hot", [{"temperature": 1.0}, {"temperature_flux": 0.5}], ids=str)
def test_what_a_solid_gives_is_what_comes_into_a_box(dim, hot):
    """Also across a seam: one of two half balls is its image. Steps are short beside the layer that grows."""
    config = scene(
        (24,) * dim, 1 / 24, {"heat_diffusion": 0.01}, {"dt": 0.01, "tolerance": 1e-6}, boundaries="periodic"
    )
    ball, cold = ({"shape": "sphere", "center": [x, *[0.5] * (dim - 1)], "radius": 0.2} for x in (0.0, 0.5))
    simulation = Simulation(config.with_values({"solids": [ball | hot, cold]}))
    fluid = simulation.solids.fluid.to_numpy().reshape((26,) * dim)[(slice(1, -1),) * dim]
    holds, beside = "temperature" in hot, np.abs(simulation.grid.cell_centres()[0] - 0.5) > 0.24
    part = np.where(holds & beside, fluid > 0, fluid)  # beside what holds a value cells count whole
    amounts, given = [], []
    for _ in range(12):
        simulation.step()
        amounts.append((part * simulation.to_numpy("temperature")).sum() / 24**dim)
        given.append(simulation.solids.exchange(0, "temperature"))
    came = np.sum(0.005 * (np.array(given[2:]) + given[1:-1]))
    assert amounts[-1] - amounts[1] == pytest.approx(came, rel=0.01)
    assert simulation.solids.exchange(1, "temperature") == 0.0
    if not holds:
        surface = (2 * np.pi * 0.2, 4 * np.pi * 0.04)[dim - 2]
        assert given[-1] == pytest.approx(0.5 * surface, rel=0.02)
    with pytest.raises(ValueError, match="quantity is 'heat'; this flow carries"):
        simulation.solids.exchange(0, "heat")
    with pytest.raises(ValueError, match="there is no solid 2"):
        simulation.solids.exchange(2, "temperature")


def test_times_come_by_steps_or_by_seconds():
    simulation = Simulation(box(2, dt=0.02))
    one = {"kind": "extreme", "quantity": "speed"}
    rows = [{"name": "often", **one}, {"name": "third", "steps": 3, **one}, {"name": "slow", "every": 0.05, **one}]
    with Probes(simulation, rows) as probes:
        for _ in range(10):
            simulation.step()
    simulation.step()
    assert len(probes.rows) == 11
    assert probes.series("third.max")[0] == pytest.approx([0.0, 0.06, 0.12, 0.18])
    assert probes.series("slow.max")[0] == pytest.approx([0.0, 0.06, 0.1, 0.16, 0.2])
    with pytest.raises(ValueError, match=r"has both steps = 3 and every = 0\.05 s: leave one out"):
        Probes(simulation, [{"name": "both", "steps": 3, "every": 0.05, **one}])
    assert probes.columns == ["often.min", "often.max", "third.min", "third.max", "slow.min", "slow.max"]
    with pytest.raises(KeyError, match=r"often\.max"):
        probes.series("none")


def test_a_load_is_that_of_its_solid():
    config = scene((16, 16), 1 / 16, {"viscosity": 0.02, "body_force": [1.0, 0.0]}, {"dt": 0.02}, boundaries="periodic")
    ball = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.2, "angular_velocity": 1.0}
    simulation = Simulation(
        config.with_values({"solids": [ball], "probes": [{"name": "drag", "kind": "load", "solid": 0}]})
    )
    with Probes(simulation) as probes:
        simulation.step()
    load, row = simulation.solids.load(0), probes.rows[-1]
    assert (row["drag.x"], row["drag.y"]) == load.force
    assert (row["drag.pressure.x"], row["drag.friction.y"]) == (load.pressure[0], load.friction[1])
    assert (row["drag.torque"],) == load.torque


def test_what_is_carried_no_more_is_what_is_outside():
    """After a reset of a scene that nothing brings it in: each step broke off, with a name that ``Diagnostics`` has not."""
    source = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.2, "smoke": 1.0, "temperature": 300.0}
    simulation = Simulation(scene((8, 8), 0.125, sources=[source]))
    asked = [
        {"name": "at", "kind": "point", "quantity": "temperature", "at": [0.5, 0.5]},
        {"name": "held", "kind": "integral", "quantity": "temperature"},
        {"name": "through", "kind": "plane", "quantity": "temperature", "axis": "x", "position": 0.5},
    ]
    probes = Probes(simulation, asked)
    simulation.step()
    assert probes.rows[-1]["at"] > 0
    simulation.scene = simulation.scene.with_values({"sources": []})
    simulation.reset()
    simulation.step()
    assert "temperature" not in simulation.state.carried
    assert [probes.rows[-1][each["name"]] for each in asked] == [0.0, 0.0, 0.0]


def test_what_nobody_probes_launches_nothing():
    simulation = Simulation(box(2).with_values({"probes": [{"name": "p", "kind": "extreme", "quantity": "smoke"}]}))
    assert simulation.after_step == []
    probes = Probes(simulation)
    assert len(simulation.after_step) == 1
    probes.close()
    assert simulation.after_step == []


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_rows_are_on_disk_as_they_come_and_a_file_is_never_overwritten(tmp_path, suffix):
    path = tmp_path / "deep" / f"rows{suffix}"
    with SeriesFile(path) as file:
        file({"time": 0.0, "step": 0, "a": 1.5, "b": float("nan")})
        file({"time": 0.1, "step": 1, "b": 2.0})
        text = path.read_text(encoding="utf-8")  # not closed yet
    if suffix == ".csv":
        rows = list(csv.DictReader(text.splitlines()))
        assert rows[0] == {"time": "0.0", "step": "0", "a": "1.5", "b": "nan"}
        assert rows[1] == {"time": "0.1", "step": "1", "a": "", "b": "2.0"}
    else:
        rows = [json.loads(line) for line in text.splitlines()]
        assert rows == [{"time": 0.0, "step": 0, "a": 1.5, "b": None}, {"time": 0.1, "step": 1, "b": 2.0}]
    with pytest.raises(OutputError, match="is there already"):
        SeriesFile(path)
    with pytest.raises(OutputError, match=r"csv or FILE\.jsonl"):
        SeriesFile(tmp_path / "rows.txt")


POINT = {"name": "p", "kind": "point", "quantity": "smoke", "at": [0.3, 0.3]}
WRONG = [
    ({**POINT, "kind": "spot"}, r"probes\.0\.kind is 'spot'"),
    ({**POINT, "colour": 1}, "unknown key"),
    ({"name": "p", "kind": "point", "quantity": "smoke"}, "at is missing"),
    ({**POINT, "axis": "x"}, "axis is given"),
    ({**POINT, "quantity": "salt"}, "quantity is 'salt'"),
    ({**POINT, "quantity": "velocity_z"}, "quantity is 'velocity_z'"),
    ({**POINT, "at": [0.3, 0.3, 0.3]}, "3 coordinates"),
    ({**POINT, "at": [0.3, 0.8]}, "0.8 m along y"),
    ({**POINT, "steps": 0}, "steps is 0"),
    ({"name": "p", "kind": "plane", "quantity": "speed", "axis": "x", "position": 0.2}, "quantity is 'speed'"),
    ({"name": "p", "kind": "plane", "quantity": "volume", "axis": "z", "position": 0.2}, "axis is 'z'"),
    ({"name": "p", "kind": "plane", "quantity": "volume", "axis": "y", "position": 0.8}, "position is 0.8"),
    ({"name": "p", "kind": "integral", "quantity": "smoke", "lower": [0.5, 0.0], "upper": [0.4, 0.2]}, "below upper"),
    ({"name": "p", "kind": "integral", "quantity": "enstrophy", "lower": [0.1, 0.1]}, "whole box"),
    ({"name": "p", "kind": "extreme", "quantity": "smoke", "lower": [0.31, 0.31], "upper": [0.33, 0.33]}, "no cell"),
    ({"name": "p", "kind": "load", "solid": 0}, "there are 0 solids"),
    ({"name": "a b", "kind": "load", "solid": 0}, "name is 'a b'"),
    ({"name": "p", "kind": "gauge", "at": [0.1, 0.0], "to": [0.1, 0.5]}, "kind is 'gauge', which is for a liquid"),
    ({"name": "p", "kind": "integral", "quantity": "volume"}, "quantity is 'volume'"),
    ({"name": "p", "kind": "line", "quantity": "smoke", "at": [0.1, 0.1], "to": [0.1, 0.1]}, "it needs a length"),
    ({**POINT, "name": "time"}, "name is 'time', which is a column of its own"),
]


@pytest.mark.parametrize(("probe", "words"), WRONG, ids=[words for _, words in WRONG])
def test_a_probe_that_cannot_be_is_refused_in_one_sentence(probe, words):
    with pytest.raises(SceneError, match=words) as refused:
        box(2).with_values({"probes": [probe]})
    assert str(refused.value).count("\n") == 0 and str(refused.value).endswith(".")
    with pytest.raises(SceneError):
        Probes(Simulation(box(2)), [probe])


def test_two_probes_have_two_names_and_a_scene_keeps_its_own():
    with pytest.raises(SceneError, match="give another"):
        box(2).with_values({"probes": [POINT, POINT]})
    config = box(2).with_values({"probes": [POINT]})
    assert Scene.loads(config.dumps()).probes == config.probes == (Probe(**POINT),)


def test_a_plot_has_a_panel_for_each_probe(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    assert matplotlib
    from taichi_fluid.io.plots import plot_run

    simulation = Simulation(box(2, dt=0.02))
    line = {"kind": "line", "at": [0.1, 0.1], "to": [0.6, 0.4], "points": 4}
    rows = [POINT, {"name": "cut", "quantity": "velocity", **line}, {"name": "dyes", "quantity": "dye", **line}]
    rows.append({"name": "one", "quantity": "smoke", **line})
    with Probes(simulation, rows) as probes:
        for _ in range(3):
            simulation.step()
    plot_run(tmp_path / "plot.svg", probes)
    text = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    for name in ("p: smoke point", "cut: velocity line in m/s", "dyes: dye line", "one: smoke line"):
        assert name in text
    assert text.count("m along the line") == 3


@pytest.mark.parametrize(
    ("kind", "quantity", "units"),
    [
        ("point", "pressure", ("Pa", "Pa")),
        ("extreme", "velocity_x", ("m/s", "m/s")),
        ("line", "smoke", ("1", "1")),
        ("plane", "volume", ("m²/s", "m³/s")),
        ("plane", "smoke", ("m²/s", "m³/s")),
        ("plane", "temperature", ("K m²/s", "K m³/s")),
        ("integral", "temperature", ("K m²", "K m³")),
        ("integral", "volume", ("m²", "m³")),
        ("integral", "kinetic_energy", ("J/m", "J")),
        ("integral", "enstrophy", ("m²/s²", "m³/s²")),
        ("gauge", None, ("m", "m")),
        ("load", None, ("N/m", "N")),
        ("exchange", "temperature", ("K m²/s", "K m³/s")),
    ],
)
def test_what_a_probe_measures_has_a_unit(kind, quantity, units):
    assert tuple(Probe(name="p", kind=kind, quantity=quantity).unit(dim) for dim in (2, 3)) == units


def test_a_plot_has_a_panel_for_each_kind_of_number_of_a_log(tmp_path):
    """Those whose names differ behind a dot share one; what spans orders of magnitude has their logarithm."""
    pytest.importorskip("matplotlib")
    from taichi_fluid.io.plots import plot_run

    log = [
        {
            "time": 0.1 * i,
            "steps": i,
            "residual": 10.0**-i,
            "cfl": 1.0,
            "amount.smoke": float(i),
            "amount.heat": 2.0,
            "ms": 0.0,
        }
        for i in range(5)
    ]
    log[2] |= {"cfl": float("nan")}
    plot_run(tmp_path / "plot.svg", log=log)
    text = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    assert [
        text.count(f"<!-- {word} -->")
        for word in ("residual", "CFL number", "amount in m³ (2D: m²) times its unit", "ms a step", "smoke", "heat")
    ] == [1] * 6
    assert "steps" not in text
    assert "10^{-4}" in text


def test_of_a_liquid_what_is_below_the_surface_passes_a_plane(dim):
    """As much as it is deep, where all of it moves alike; the velocity that goes on into the air, three cells of it, is none."""
    for depth in (0.5, 0.375):
        top = [1.0, depth, 1.0][:dim]
        simulation = Simulation(water([1.0] * dim, 16, [([0.0] * dim, top)], fluid={"gravity": [0.0] * dim}))
        simulation.set(velocity=[1.0, 0.5, 0.0][:dim])
        planes = [
            {"name": name, "kind": "plane", "quantity": "volume", "axis": name, "position": 0.25} for name in ("x", "y")
        ]
        with Probes(simulation, planes) as probes:
            row = probes.rows[-1]
        # The surface is found to a few thousandths of a cell.
        assert (row["x"], row["y"]) == pytest.approx((depth, 0.5), abs=1e-3)


@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("width", [1.5, 2.0, 3.0])
def test_a_sheet_of_few_cells_passes_a_plane_with_all_of_its_width(width, shift):
    """The ends of a face's line may both be dry: a sheet of 1.5 cells passed with 0.63 of what it is, one that a tap lets fall with 0.16."""
    dx = 1 / 32
    low, high = (0.5 + (shift + side * width / 2) * dx for side in (-1, 1))
    scene = water([1.0, 1.0], 32, [([low, 0.3], [high, 0.9])], fluid={"gravity": [0.0, 0.0]})
    simulation = Simulation(scene.with_values({"liquid.bodies.0.velocity": [0.0, -1.0]}))
    plane = {"name": "q", "kind": "plane", "quantity": "volume", "axis": "y", "position": 0.5}
    with Probes(simulation, [plane]) as probes:
        for _ in range(4):
            simulation.step(0.01)
        passes = -probes.rows[-1]["q"]
    wet = np.clip(0.5 - simulation.to_numpy("level set")[:, 16] / dx, 0, 1).sum() * dx
    assert passes == pytest.approx(wet, rel=0.03)
    assert passes == pytest.approx(width * dx, rel=0.1)  # of particles 1/3 of a cell apart


def test_a_gauge_says_how_deep_a_liquid_is_and_how_far_it_reaches(dim):
    """Upright in a pool that a block stands in, along its floor, aslant through it; the volume is that of cells, cut ones too."""
    depth, dx = 0.41, 1 / 16
    block = {"shape": "box", "center": [0.75, 0.15, 0.5][:dim], "size": [0.25, 0.3, 2.0][:dim]}
    scene = water([1.0] * dim, 16, [([0.0] * dim, [1.0, depth, 1.0][:dim])], solids=[block])
    simulation = Simulation(scene)
    simulation.set(level_set=simulation.grid.cell_centres()[1] - depth + np.zeros(simulation.grid.shape))
    z = [0.5][: dim - 2]
    lines = {
        "free": ([0.3, 0.0, *z], [0.3, 1.0, *z]),
        "down": ([0.3, 1.0, *z], [0.3, 0.0, *z]),
        "block": ([0.75, 0.0, *z], [0.75, 1.0, *z]),
        "floor": ([0.0, 0.1, *z], [1.0, 0.1, *z]),
        "aslant": ([0.0, 0.2, *z], [0.6, 1.0, *z]),
        "air": ([0.0, 0.8, *z], [1.0, 0.8, *z]),
    }
    rows = [{"name": name, "kind": "gauge", "at": at, "to": to} for name, (at, to) in lines.items()]
    left = {"lower": [0.0] * dim, "upper": [0.5, 1.0, 1.0][:dim]}
    rows += [
        {"name": "all", "kind": "integral", "quantity": "volume"},
        {"name": "left", "kind": "integral", "quantity": "volume", **left},
    ]
    (row,) = Probes(simulation, rows).rows
    # The surface is found to a few hundredths of a cell, a solid's to half of one.
    exact = {
        "free": (depth, depth),
        "down": (depth, 1.0),
        "aslant": ((depth - 0.2) / 0.8, (depth - 0.2) / 0.8),
        "air": (0.0, 0.0),
    }
    for name, (wet, reach) in exact.items():
        assert (row[name], row[f"{name}.reach"]) == pytest.approx((wet, reach), abs=0.05 * dx), name
    assert (row["block"], row["block.reach"]) == pytest.approx((depth - 0.3, depth), abs=0.5 * dx)
    assert (row["floor"], row["floor.reach"]) == pytest.approx((0.75, 1.0), abs=0.5 * dx)
    assert row["left"] == pytest.approx(0.5 * depth, abs=0.05 * dx)
    assert row["all"] == pytest.approx(depth - 0.25 * 0.3, abs=0.05 * dx)
    numbers = budget(simulation)
    # Half a particle's place more or less below each cell of surface.
    assert numbers["liquid_volume"] == pytest.approx(row["all"], rel=0.03)
    assert numbers["particles"] == simulation.liquid.particles.count


def test_a_component_of_a_liquid_is_that_of_the_liquid(dim):
    """Its integral is what flows, by the particles, and its extremes are none of the velocity that goes on into the air."""
    scene = water([1.0] * dim, 16, [([0.0] * dim, [0.4, 0.6, 1.0][:dim])])
    simulation = Simulation(scene.with_values({"solver.scheme": "splitting"}))  # particles have what the faces have
    simulation.advance(0.25)
    rows = [{"name": kind, "kind": kind, "quantity": "velocity_x"} for kind in ("integral", "extreme")]
    with Probes(simulation, [*rows, {"name": "speed", "kind": "extreme", "quantity": "speed"}]) as probes:
        row = probes.rows[-1]
    liquid = simulation.liquid
    flow = liquid.particles.to_numpy()["velocity"][:, 0].mean() * liquid.volume
    # Of particles beside the surface, and of the level set found from them, in cells a tenth of the liquid's length.
    assert row["integral"] == pytest.approx(flow, rel=0.06)
    assert np.abs(simulation.to_numpy("velocity")[0]).sum() * simulation.grid.cell_volume > 1.2 * row["integral"]
    assert row["extreme.max"] < 1.3 * row["speed.max"]


def test_probes_go_on_after_a_reset():
    simulation = Simulation(box(2, dt=0.02))
    with Probes(simulation, [{"name": "p", "kind": "extreme", "quantity": "speed", "every": 0.1}]) as probes:
        for _ in range(12):
            simulation.step()
        simulation.reset()
        for _ in range(12):
            simulation.step()
    assert [row["time"] for row in probes.rows] == pytest.approx([0.0, 0.1, 0.2, 0.02, 0.1, 0.2])


def test_the_far_side_of_a_box_that_was_rounded_is_a_place_in_it():
    """A box of 0.52 m is 0.515 m high in 33 cells across a metre; a probe at 0.52 was refused then, by a traceback."""
    config = Scene.from_dict({"name": "p", "domain": {"size": [1.0, 0.52], "resolution": 33}})
    simulation = Simulation(config)
    assert simulation.grid.size[1] < 0.52
    simulation.set(smoke=np.arange(17.0) * np.ones((33, 1)))
    rows = [
        {"name": "p", "kind": "point", "quantity": "smoke", "at": [0.5, 0.52]},
        {"name": "l", "kind": "line", "quantity": "smoke", "at": [0.5, 0.0], "to": [0.5, 0.52], "points": 2},
    ]
    with Probes(simulation, rows) as probes:
        row = probes.rows[-1]
    assert row["p"] == row["l.1"] == 16.0


def test_what_is_no_scene_no_flow_and_no_list_is_said_in_a_sentence():
    simulation = Simulation(box(2))
    with pytest.raises(ValueError, match="scene is 'plume'; it is a Scene"):
        Simulation("plume")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="target is 8; it is a Simulation"):
        resample(simulation, 8)  # pyright: ignore[reportArgumentType]
    with pytest.raises(SceneError, match="probes is a single one"):
        Probes(simulation, {"name": "p", "kind": "extreme", "quantity": "smoke"})  # pyright: ignore[reportArgumentType]
