"""The benchmark: what it counts, the file it writes, and what is left when it is broken off. No time is asserted."""

import ast
import csv
import gc
import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import COMMAND, environment, one_sentence, run, run_code
from rich.console import Console

from taichi_fluid import kernels
from taichi_fluid.bench import measure, traffic
from taichi_fluid.bench.files import default_scene
from taichi_fluid.bench.report import start_tables, tables
from taichi_fluid.bench.starts import median_of
from taichi_fluid.boundaries.coefficients import BoundaryCoefficients
from taichi_fluid.boundaries.walls import Walls
from taichi_fluid.grid import Grid, Scratch
from taichi_fluid.kernels import GraphRecorder
from taichi_fluid.liquid.motion import Motion
from taichi_fluid.liquid.particles import FULL, Particles
from taichi_fluid.liquid.transfer import Transfer
from taichi_fluid.physics.advection import Advection, Scheme, Trace
from taichi_fluid.physics.forces import add_buoyancy
from taichi_fluid.pressure.projection import Projection
from taichi_fluid.pressure.relaxation import relaxation_kernels
from taichi_fluid.pressure.spectral import SpectralSolver, hindrance
from taichi_fluid.scene import preset
from taichi_fluid.simulation import Simulation

PACKAGE = Path(__file__).parent.parent / "taichi_fluid"
STAGES = ["check", "halve", "advect", "sources", "burn", "forces", "diffuse", "project"]
SMALL = ["--arch", "cpu", "--dim", "2", "--resolution", "8", "--steps", "2"]

# Families that no step launches: measuring, resampling, a surface to begin with, meshes.
NOT_IN_A_STEP = {
    "cut_kernels",
    "diagnostic_kernels",
    "matching_kernels",
    "mesh_kernels",
    "resample_kernels",
    "viscous_load_kernels",
    "wet_kernels",
}


# What is launched and moved


def step_kernels() -> dict[str, list[str]]:
    """Every kernel that a step may launch, as ``family.kernel``, with its parameters; read off the source."""
    found = {}
    rooms = ("operators", "boundaries", "pressure", "physics", "liquid", "simulation")
    files = [path for room in rooms for path in (PACKAGE / room).rglob("*.py")]
    for path in files:
        for family in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(family, ast.FunctionDef) and family.name.endswith("_kernels"):
                for node in ast.walk(family):
                    if isinstance(node, ast.FunctionDef) and "ti.kernel" in map(ast.unparse, node.decorator_list):
                        found[f"{family.name}.{node.name}"] = [argument.arg for argument in node.args.args]
    return found


def test_everybody_has_said_what_each_kernel_of_a_step_moves():
    """A kernel that is new, renamed or gone changes the table of ``traffic``."""
    in_a_step = {name for name in step_kernels() if name.split(".")[0] not in NOT_IN_A_STEP}
    counted = {name for name in traffic.TRAFFIC if "_kernels." in name}
    assert in_a_step - counted == set(), "say in traffic.TRAFFIC what these read and write"
    assert counted - in_a_step == set(), "these are no kernels of a step any more"


def test_the_table_names_parameters_of_the_kernels():
    parameters = step_kernels()
    for name, sides in traffic.TRAFFIC.items():
        for term in " ".join(sides).split():
            found = traffic._TERM.fullmatch(term)
            assert found, f"{name}: {term}"
            if "_kernels." in name:
                assert found["name"] in parameters[name], f"{name}: {term}"
                assert {found["where"], found["if"], found["other"]} <= {None, "box", *parameters[name]}, (
                    f"{name}: {term}"
                )


def words_per_cell(grid: Grid, act) -> float:
    with traffic.watched() as watch:
        act()
    moved = traffic.moved(watch.take())
    assert moved is not None
    return moved / (4 * math.prod(grid.shape))


def test_words_are_those_counted_by_hand(dim):
    grid = Grid((7, 5, 6)[:dim], 0.1)
    walls = Walls(grid, [("free-slip", "free-slip")] * dim)
    u, v, a, b = grid.velocity(), grid.velocity(), grid.array(), grid.array()
    scratch = Scratch(grid)
    projection = Projection(grid, walls, Scratch(grid))
    # Right-hand side: every component read, one number written.
    assert words_per_cell(grid, lambda: projection.compute_rhs(u, a, 0.1, 1.0)) == dim + 1
    # Gradient: velocity and pressure read, velocity written; beside an open side the reciprocal diagonal is read too.
    assert words_per_cell(grid, lambda: projection.subtract_gradient(u, a, 1.0)) == dim + 1 + dim
    vented = Walls(grid, [("free-slip", "open"), *[("free-slip", "free-slip")] * (dim - 1)])
    beside_a_vent = Projection(grid, vented, Scratch(grid))
    assert words_per_cell(grid, lambda: beside_a_vent.subtract_gradient(u, a, 1.0)) == dim + 2 + dim
    # Buoyancy: the component along gravity and the scalar read, the component written.
    gravity = (0.0, -9.81, 0.0)[:dim]
    assert words_per_cell(grid, lambda: add_buoyancy(grid, u, a, gravity, 1.0, 0.1)) == 3
    # Paths: velocity read, departure and arrival written.
    advection = Advection(grid, walls, scratch, Scheme.MACCORMACK, Trace.RK2)
    assert words_per_cell(grid, lambda: advection.trace_paths(u, 0.1, departure=v)) == dim + 2 * dim
    # MacCormack of a scalar: predicted, with two limits, from value and departure; corrected from these and the arrival.
    # On a CPU it is looked through before, for where there is nothing.
    corrected, looked = (1 + 3 + dim) + 1, int(grid.loops.rows)
    assert words_per_cell(grid, lambda: advection.carry(a, b)) == looked + (1 + dim + 3) + corrected
    # A component of a velocity takes as much, and its paths as much as those of the centres: one way along each axis. Then it
    # is limited: what is lost, the prediction and its limits and the arrival are read, it is written.
    assert words_per_cell(grid, lambda: advection.trace_paths(u, 0.1, faces=True, departure=v)) == dim + 2 * dim
    advection.carry(u, u, 1, grid.cells)  # makes room for what is lost
    assert (
        words_per_cell(grid, lambda: advection.carry(u, u, 1, grid.cells)) == (1 + dim + 3) + corrected + (4 + dim) + 1
    )
    # A sweep: x, right-hand side and diagonal, and what is written.
    system = projection.solver.system
    sweep = relaxation_kernels(grid.loops, system.coupling).sweep
    assert words_per_cell(grid, lambda: sweep(a, b, system.inv_diag, system.open, grid.n, system.wrap)) == 4


def test_what_particles_move_is_counted_by_hand(dim):
    """Each of theirs once, however much room there is; of the grid what as many cells hold as they fill."""
    grid = Grid((7, 5, 6)[:dim], 0.1)
    walls = Walls(grid, [("free-slip", "free-slip")] * dim)
    particles, u, v, weight = Particles(grid), grid.velocity(), grid.velocity(), grid.velocity()
    here, cells, padded = 3 * FULL[dim] + 1, math.prod(grid.shape), grid.cells
    particles.add(np.full((here, dim), 2.5), np.zeros((here, dim)))
    particles.sort()
    assert particles.room > here

    def words(act):
        return words_per_cell(grid, act) * cells

    # Place read and written, and the velocity of the three cells that they fill.
    motion = Motion(grid, walls, None)
    assert words(lambda: motion.move(particles, u, 0.0)) == pytest.approx(here * 2 * dim + 3 * dim)
    transfer = Transfer(grid)
    # Place, velocity, its derivatives and the order read; faces and weights of three cells read and written; both begin at
    # 0, and are divided everywhere: what is filled and divided has ghosts.
    each, faces = 2 * dim + dim**2 + 1, 4 * dim * 3
    assert words(lambda: transfer.to_faces(particles, v, weight)) == pytest.approx(
        here * each + faces + 4 * dim * padded
    )
    # APIC: place read, velocity and its derivatives written, and a number for each cell, all 1 here, filled and read; FLIP: velocity
    # read too, the grid's before it, and no derivatives.
    assert words(lambda: transfer.from_faces(particles, v)) == pytest.approx(
        here * (2 * dim + dim**2) + 3 * dim + 3 + padded
    )
    assert words(lambda: transfer.from_faces(particles, v, u, 0.9)) == pytest.approx(here * 3 * dim + 2 * 3 * dim)


def test_the_coarse_grid_counts_its_own_cells(dim):
    """Restriction reads half of the fine cells and writes all coarse ones; prolongation touches half of the fine ones."""
    grid = Grid((8,) * dim, 0.1)
    projection = Projection(grid, Walls(grid, [("free-slip", "free-slip")] * dim), Scratch(grid))
    r, z = grid.array(), grid.array()
    with traffic.watched() as watch:
        projection.solver.precondition(r, z)
    words = {}
    for launch in watch.take():
        words.setdefault(launch.name, launch.bytes() / 4)  # the finest level comes first
    fine, coarse = 8**dim, 4**dim
    # Right-hand side, diagonal and solution, half of weights and residual; then what restriction moves.
    assert words["cycle_kernels.smooth_and_restrict"] == 3 * fine + 2 * fine / 2 + (fine / 2 + coarse)


def test_a_direct_solve_counts_transforms_and_division(dim):
    grid = Grid((7, 5, 6)[:dim], 0.1)
    if hindrance(BoundaryCoefficients.closed(dim), cut=False):
        pytest.skip("SciPy's transforms compute on the CPU only")
    solver, a = SpectralSolver(grid), grid.array()
    solver.setup((1,) * dim, BoundaryCoefficients.closed(dim))
    # There, by the eigenvalues, and back: each reads and writes a value.
    assert words_per_cell(grid, lambda: solver.transforms.solve_in_place(a)) == 3 * 2
    # And all of a solve: twice the right-hand side for its mean and squares, a result of 0, the transforms, and once
    # right-hand side, result and residual for what is left.
    b = grid.array()
    grid.from_numpy(b, np.arange(grid.n.to_numpy().prod(), dtype=np.float32).reshape(grid.shape))
    padded = grid.cells / math.prod(grid.shape)  # of which ghosts are filled too
    assert words_per_cell(grid, lambda: solver.solve(b, a, tolerance=1e-3)) == pytest.approx(2 + padded + 6 + 3)


def test_a_recording_counts_every_launch_in_it(dim):
    grid = Grid((6,) * dim, 0.1)
    a, b = grid.array(), grid.array()
    copy = measure.copy_kernels(grid.loops).copy
    recorder = GraphRecorder()
    for _ in range(3):
        recorder.launch(copy, a, b, grid.n)
    replay = recorder.finish()
    with traffic.watched() as watch:
        replay()
        copy(b, a, grid.n)
        a.fill(1.0)
        names = [launch.name for launch in watch.take()]
        assert watch.take() == []
    assert names == ["copy_kernels.copy"] * 4 + ["fill_ndarray"]
    assert watch.calls == 3
    replay()
    assert watch.take() == [], "nobody watches any more"


def test_a_kernel_that_nobody_has_counted_makes_no_number():
    grid = Grid((6, 6), 0.1)
    a, b = grid.array(), grid.array()
    with traffic.watched() as watch:
        measure.copy_kernels(grid.loops).copy(a, b, grid.n)
    launches = watch.take()
    assert traffic.moved(launches) is None
    assert traffic.uncounted(launches) == {"copy_kernels.copy"}


# Counts of a step, in place of its time


def plume(resolution: int, pressure: str) -> Simulation:
    settings = {"domain.resolution": resolution, "solver.pressure": pressure}
    simulation = Simulation(default_scene(3).with_values(settings))
    assert simulation.pressure_solver.used == pressure
    return simulation


@pytest.fixture(scope="module", params=["multigrid-cg", "spectral"])
def step_counts(request):
    """A 32³ plume, measured for two steps: the numbers, kernels that it compiled, bytes of its arrays per cell."""
    before, held = kernels.compiled_kernels(), measure.array_bytes()
    simulation = plume(32, request.param)
    numbers = measure.steps_of(simulation, 2)
    compiled = kernels.compiled_kernels() - before
    bytes_per_cell = (measure.array_bytes() - held) / math.prod(simulation.grid.shape)
    return {**numbers, "solver": request.param}, compiled, bytes_per_cell


def test_launches_per_step(step_counts):
    numbers, _, _ = step_counts
    launches = {name: stage["launches"] for name, stage in numbers["stages"].items()}
    assert list(launches) == STAGES
    # Paths from the faces and their ghosts; three components, each predicted, corrected and given its ghosts twice; what is lost
    # of each, its ghosts and its limits. Of smoke and heat the same, where they are, and their amounts.
    carried = 3 + 3 * 4 + 3 * 2 + 2 * (4 + 1 + 1)
    # The velocity of the end of the step; the gradient that is taken off once more, and ghosts.
    assert launches["advect"] <= carried + 1 + 4
    # Source of smoke and of heat, cooling, ghosts of two scalars and three components.
    assert launches["sources"] <= 2 + 1 + 5
    # Vorticity, its ghosts, confinement, buoyancy, ghosts of three components.
    assert launches["forces"] <= 4 + 3
    assert launches["diffuse"] == 0, "nothing diffuses here"
    # Right-hand side and its norm, a result of 0, the transforms, what they leave, the gradient, and ghosts; or, an iteration on
    # five levels, 4 x 2 launches, one on the coarsest grid, two for means, and one of its own.
    projected = 6 + 3 if numbers["solver"] == "spectral" else 10 + 12 * numbers["iterations"]
    # The gradient of the middle put back, and ghosts.
    assert launches["project"] <= projected + 4
    # Half of buoyancy, and ghosts; what is carried, and its projection.
    assert launches["halve"] <= 1 + 3 + carried + projected
    assert numbers["launches_per_step"] == sum(launches.values())
    # An iteration is one call from Python.
    assert numbers["calls_per_step"] <= 3 + 2 * 33 + 4 + 4 + 8 + 7 + 4 + 2 * 10 + numbers["iterations"]


def test_kernels_compiled(step_counts):
    numbers, compiled, _ = step_counts
    # 31 of the flow, where no other test of this process has compiled them, and 18 where no multigrid is among them.
    assert compiled <= (33 if numbers["solver"] == "multigrid-cg" else 20)


def test_bytes_per_cell(step_counts):
    numbers, _, bytes_per_cell = step_counts
    # 135.2 at 32³, of which ghosts are a sixth: 28 words of 4 bytes a cell with its share of ghosts, and a byte to say
    # where there is smoke and heat; 2 more are partial sums of what is carried, as many on any grid. Three words are the
    # velocity that a step begins with, one is the pressure of its first half, one is what is lost of a component. The
    # transforms work in the pressure's own array.
    assert bytes_per_cell <= (138 if numbers["solver"] == "multigrid-cg" else 127)


@pytest.mark.parametrize("pressure", ["multigrid-cg", "spectral"])
def test_a_plume_takes_less_than_120_bytes_per_cell(pressure):
    held = measure.array_bytes()
    simulation = plume(64, pressure)
    simulation.prepare()
    simulation.step()
    assert {"smoke", "temperature"} < {quantity.name for quantity in simulation.state.quantities()}
    # 119.9 at 64³; of the transforms 111.0. The first step makes the last five words of them.
    assert (measure.array_bytes() - held) / 64**3 <= (120 if pressure == "multigrid-cg" else 112)


@pytest.mark.parametrize(("name", "cells", "each", "most"), [("dam", 64, 132, 273), ("dam2d", 128, 76, 219)])
def test_bytes_per_cell_and_per_particle_of_a_liquid(name, cells, each, most):
    gc.collect()
    held = measure.array_bytes()
    simulation = Simulation(preset(name).with_values({"domain.resolution": cells, "liquid.band": 0}))
    for _ in range(2):
        simulation.step(0.005)
    particles, grid = simulation.liquid.particles, simulation.grid
    # Place, velocity and its derivatives, twice, a cell, a rank there and a place in the order.
    assert particles.bytes_each(grid.dim) == each
    assert particles.room <= 1.11 * particles.count
    # 244 in 3D and 201 in 2D, with a share of ghosts, of coarser grids and of pieces that solids may close in; four words
    # of them are those of the foam.
    of_cells = measure.array_bytes() - held - particles.room * each
    assert 0.5 * most < of_cells / math.prod(grid.shape) <= most, "particles counted twice, or not at all"


def test_every_stage_has_its_numbers(step_counts):
    numbers, _, _ = step_counts
    assert numbers["uncounted_kernels"] == []
    assert numbers["not_converged"] == 0
    assert numbers["iterations"] <= 2 * 5  # of two projections
    for stage in numbers["stages"].values():
        assert stage["processor_ms"] >= 0
        low, high = stage["quartiles_ms"]
        assert 0 < low <= stage["median_ms"] <= high
        assert stage["cells_per_s"] == pytest.approx(1e3 * 32**3 / stage["median_ms"])
        assert stage["gb_per_s"] == pytest.approx(stage["mb_moved"] / stage["median_ms"])
    # The velocity and both scalars are looked at for NaN: five words.
    assert numbers["stages"]["check"]["mb_moved"] == pytest.approx(6 * 4e-6 * 32**3)


def test_the_simulation_keeps_its_stages():
    simulation = Simulation(default_scene(2).with_values({"domain.resolution": 8}))
    stages = list(simulation.stages)
    measure.divergence_left(simulation)
    with traffic.watched() as watch:
        marks = measure.Marks(simulation, watch)
        marks.step()
        marks.close()
    assert simulation.stages == stages


def test_spread_is_that_of_numpy():
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0]
    assert measure.spread(values) == pytest.approx(np.quantile(values, [0.25, 0.75]))
    assert measure.spread([2.0]) == [2.0, 2.0]


def test_the_arrays_that_are_there_are_counted():
    before = measure.array_bytes()
    arrays = [Grid((6, 6), 1.0).array(k) for k in (1, 2)]
    assert measure.array_bytes() - before == 4 * 3 * 64
    assert len(arrays) == 2


# The command


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The command on a tiny grid: the process, its folder, and the JSON. A backend that is not there takes part."""
    folder = tmp_path_factory.mktemp("bench")
    done = run(["bench", *SMALL, "--arch", "metal", "--json", "a.json", "--plot", "a.png", "--csv", "a.csv"], folder)
    return done, folder, json.loads((folder / "a.json").read_text(encoding="utf-8"))


def test_the_json_names_the_machine_and_what_ran(measured):
    _, _, found = measured
    assert found["machine"]["processor"]
    assert set(found["versions"]) == {"taichi_fluid", "taichi", "python", "numpy", "scipy"}
    assert isinstance(found["commit"], str)


def test_a_row_holds_what_is_promised(measured):
    _, _, found = measured
    row = found["rows"][0]
    assert (row["arch"], row["scene"], row["resolution"]) == ("cpu", "plume2d_square", [8, 8])
    assert "threads" in row["device"]
    assert list(row["stages"]) == STAGES
    for stage in (row, *row["stages"].values()):
        assert {"quartiles_ms", "cells_per_s", "gb_per_s", "share_of_copy", "mb_moved"} <= stage.keys()
    assert 0 < row["ms_per_step"] < 60_000
    assert 0 < row["relative_residual"] <= row["tolerance"] * 1.05, "5 % above it still counts as converged"
    assert 0 <= row["divergence"]["rms"] <= row["divergence"]["max"]
    assert row["divergence"]["left"] < 1e-2
    assert row["copy_gb_per_s"] > 0
    assert row["kernel_cache_mb"] > 0, "the cold start leaves its kernels to the warm one"
    assert row["compile_s"].keys() == row["first_frame_s"].keys() == {"cold", "warm"}
    assert min(*row["compile_s"].values(), *row["first_frame_s"].values()) > 0
    assert row["kernels"]["flow"] > row["kernels"]["picture"] > 0
    assert row["launches_per_step"] >= row["calls_per_step"] > 0
    # A process of Python with Taichi, not the kilobytes of its arrays.
    assert row["peak_memory_mb"] > 50 > row["arrays_mb"] > 0


def test_an_arch_that_is_not_there_has_a_sentence_and_the_others_go_on(measured):
    done, _, found = measured
    if sys.platform == "darwin":
        pytest.skip("metal is there")
    assert [row["arch"] for row in found["rows"]] == ["cpu", "metal"]
    assert "does not start" in found["rows"][1]["problem"]
    assert "does not start" in done.stdout
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_the_table_and_the_plot(measured):
    done, folder, _ = measured
    for word in (*STAGES, "whole step", "first frame, cold and warm", "launches per step"):
        assert word in done.stdout
    assert done.stdout.splitlines()[-3:] == ["a.json", "a.csv", "a.png"]
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(os.listdir(folder)) == ["a.csv", "a.json", "a.png"]


def test_the_table_for_a_spreadsheet_has_a_line_for_each_row_and_all_its_numbers(measured):
    _, folder, found = measured
    with (folder / "a.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [line["arch"] for line in lines] == ["cpu", "metal"]
    row, (line, other) = found["rows"][0], lines
    assert float(line["stages.advect.median_ms"]) == row["stages"]["advect"]["median_ms"]
    assert float(line["quartiles_ms.upper"]) == row["quartiles_ms"][1]
    assert float(line["divergence.left"]) == row["divergence"]["left"]
    assert float(line["compile_s.cold"]) == row["compile_s"]["cold"]
    assert line["resolution"] == "8 x 8"
    assert line["pressure_solver"] == row["pressure_solver"]
    assert line["machine.processor"] == other["machine.processor"] == found["machine"]["processor"]
    assert "does not start" in other["problem"] and line["problem"] == other["ms_per_step"] == ""


def test_compare_prints_ratios(measured, tmp_path):
    _, folder, found = measured
    row = found["rows"][0]
    slower = {**found, "commit": "another", "rows": [{**row, "ms_per_step": 2.5 * row["ms_per_step"]}]}
    (tmp_path / "b.json").write_text(json.dumps(slower))
    done = run(["bench", "--compare", folder / "a.json", "b.json"], tmp_path)
    assert done.returncode == 0, done.stderr
    lines = {line.split("│")[1].strip(): line for line in done.stdout.splitlines() if line.count("│") > 3}
    assert lines["ms per step"].split("│")[4].strip() == "2.5"
    assert lines["iterations"].split("│")[4].strip() == "1"
    assert "differ in commit" in done.stdout
    told = {name for name in lines if "residual" in name or "divergence" in name}
    assert told == {"relative residual", "divergence · dx / speed, largest"}, "a faster solve may be a worse one"
    assert "Not the same work" not in done.stdout


def test_other_solvers_are_named_beside_the_times(measured, tmp_path):
    """Of two files, and of two arches in one table."""
    _, folder, found = measured
    row = found["rows"][0]
    other = {**row, "pressure_solver": "made-up"}
    (tmp_path / "b.json").write_text(json.dumps({**found, "rows": [other]}))
    words = " ".join(run(["bench", "--compare", folder / "a.json", "b.json"], tmp_path).stdout.split())
    assert f"Not the same work: the pressure is solved for on A by {row['pressure_solver']}, B by made-up." in words
    console = Console(width=400, record=True, file=io.StringIO())
    console.print(tables([row, {**other, "arch": "vulkan"}]))
    assert "on cpu by" in console.export_text()


APPENDING = """
from taichi_fluid.bench import runs
runs.measured = lambda run, progress, steps: {"problem": "made up."}
"""


def test_append_keeps_rows_of_the_same_machine_and_code_only(measured, tmp_path):
    _, _, found = measured
    (tmp_path / "a.json").write_text(json.dumps(found))
    arguments = ["bench", *SMALL, "--json", "a.json", "--append"]
    done = run_code(APPENDING, arguments, tmp_path)
    assert done.returncode == 1, done.stderr
    rows = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert rows[:2] == found["rows"]
    assert [row.get("problem") for row in rows[2:]] == ["made up."]
    (tmp_path / "a.json").write_text(json.dumps({**found, "commit": "another"}))
    assert "another commit" in one_sentence(run_code(APPENDING, arguments, tmp_path))


# Starts

PARTS = ["imports", "ti.init", "Simulation()", "picture at t = 0", "first step", "picture", "sum"]


@pytest.fixture(scope="module")
def starts(tmp_path_factory):
    """The starts of a small scene: the process, its folder and the file."""
    folder = tmp_path_factory.mktemp("starts")
    arguments = ["--startup", "--rounds", "1", "--arch", "cpu", "--dim", "2", "--resolution", "8", "--json", "a.json"]
    done = subprocess.run(
        [*COMMAND, "bench", *arguments], cwd=folder, env=environment(), capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr
    return done, folder, json.loads((folder / "a.json").read_text(encoding="utf-8"))


def test_a_start_part_by_part_and_kernel_by_kernel(starts):
    _, _, found = starts
    (row,) = found["rows"]
    assert (row["arch"], row["scene"], row["resolution"], row["rounds"]) == ("cpu", "plume2d_square", [8, 8], 1)
    assert row["kernel_cache_mb"] > 0
    for start in (row["startup"]["cold"], row["startup"]["warm"]):
        assert list(start["clock_s"]) == list(start["processor_s"]) == PARTS
        for clock in ("clock_s", "processor_s"):
            *parts, total = start[clock].values()
            assert min(parts) > 0
            assert max(parts) < total
        for kernel in start["kernels"]:
            assert min(kernel["python_s"], kernel["code_s"], kernel["launch_s"]) > 0, kernel
    cold, warm = ([kernel["name"] for kernel in row["startup"][key]["kernels"]] for key in ("cold", "warm"))
    assert cold == warm, "a full cache spares none of them"
    assert {"trace", "predict", "subtract_gradient", "fill_ghosts"} <= set(cold)


def test_the_table_of_a_start(starts):
    done, _, found = starts
    for word in (*PARTS, "cold: clock, s", "warm: clock, s", "kernel", "subtract_gradient", "one start of each"):
        assert word in done.stdout
    assert f"{len(found['rows'][0]['startup']['cold']['kernels'])} kernels" in done.stdout
    assert done.stdout.splitlines()[-1] == "a.json"


def test_starts_are_compared_with_starts_only(starts, measured, tmp_path):
    _, folder, _ = starts
    _, steps, _ = measured
    done = run(["bench", "--compare", folder / "a.json", folder / "a.json"], tmp_path)
    assert done.returncode == 0, done.stderr
    lines = {line.split("│")[1].strip(): line for line in done.stdout.splitlines() if line.count("│") > 3}
    assert lines["first step, warm, clock, s"].split("│")[4].strip() == "1"
    assert "no row of the same" in one_sentence(
        run(["bench", "--compare", folder / "a.json", steps / "a.json"], tmp_path)
    )


def test_medians_of_starts():
    def start(seconds: float) -> dict:
        kernels = [{"name": "trace", "python_s": seconds, "code_s": 2 * seconds, "launch_s": 0.0}]
        parts = {"imports": 4 * seconds, "picture": 10 - seconds}
        return {"clock_s": parts, "processor_s": parts, "kernels": kernels}

    found = median_of([start(seconds) for seconds in (3.0, 1.0, 2.0)])
    assert found["clock_s"] == {"imports": 8.0, "picture": 8.0, "sum": 16.0}
    assert found["kernels"] == [{"name": "trace", "python_s": 2.0, "code_s": 4.0, "launch_s": 0.0}]


def test_kernels_of_several_starts_are_those_of_one_name():
    """Also where one start has compiled one more, or one less, or in another order."""

    def start(**kernels: list[float]) -> dict:
        rows = [
            {"name": name, "python_s": seconds, "code_s": 0.0, "launch_s": 0.0}
            for name, times in kernels.items()
            for seconds in times
        ]
        return {"clock_s": {"imports": 1.0}, "processor_s": {"imports": 1.0}, "kernels": rows}

    cold = median_of([start(march=[1.0], trace=[2.0, 3.0]), start(trace=[4.0, 5.0])])
    assert [(row["name"], row["python_s"], row.get("starts")) for row in cold["kernels"]] == [
        ("march", 1.0, 1),
        ("trace", 3.0, None),
        ("trace", 4.0, None),
    ]
    warm = median_of([start(fill=[6.0], trace=[7.0])] * 2)
    row = {"arch": "cpu", "scene": "a", "resolution": [8], "load": 0.0, "device": "", "rounds": 2}
    console = Console(width=150, record=True, file=io.StringIO())
    console.print(start_tables([{**row, "startup": {"cold": cold, "warm": warm}}]))
    text = console.export_text()
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.count("│") == 8]
    assert [[row[0], row[1], row[4]] for row in cells] == [
        ["trace", "3000", "7000"],
        ["fill", "-", "6000"],
        ["trace", "4000", "-"],
        ["march", "1000", "-"],
        ["3 and 2 kernels", "8000", "13000"],
    ]
    assert "march was compiled in 1 of 2 cold starts." in text


# What becomes of it when it is broken off

BREAKING = """
import subprocess, sys
from pathlib import Path
from taichi_fluid.bench import runs
first, popen = [True], subprocess.Popen
def measured(run, progress, steps):
    if first.pop() if first else False:
        return NUMBERS
    return real(run, progress, steps)
def sleeping(command, **options):
    if "taichi_fluid.bench.measure" not in command:
        return popen(command, **options)
    process = popen([sys.executable, "-c", "import time; time.sleep(100)"], **options)
    Path("child").write_text(str(process.pid))
    return process
real, runs.measured = runs.measured, measured
runs.subprocess.Popen = sleeping
"""


def is_gone(pid: int, seconds: float) -> bool:
    """Whether a process ends within some seconds; one whose parent has died is there until somebody has asked for it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_is_finished_is_kept_when_it_is_killed(measured, tmp_path, number, status):
    _, _, found = measured
    code = f"NUMBERS = {found['rows'][0]!r}\n{BREAKING}\n"
    code += "from taichi_fluid.app.cli import main\nmain(sys.argv[1:], prog_name='taichi-fluid')\n"
    arguments = ["bench", "--arch", "cpu", "--dim", "2", "--resolution", "8", "--resolution", "9", "--json", "a.json"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, env=environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        until = time.monotonic() + 60
        while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(number)
        printed, said = process.communicate(timeout=600)
    assert process.returncode == status, said
    assert "Traceback" not in said
    assert "1 of 2 rows are finished and kept" in said
    assert "whole step" in printed
    rows = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert [row["resolution"] for row in rows] == [[8, 8]]
    assert sorted(os.listdir(tmp_path)) == ["a.json", "child"]
    assert is_gone(int((tmp_path / "child").read_text()), seconds=20)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_a_process_that_dies_costs_its_row_only(tmp_path):
    """As a driver may end it."""
    code = (
        "import subprocess, sys\n"
        "from taichi_fluid.bench import runs\n"
        "popen = subprocess.Popen\n"
        "dying = [sys.executable, '-c', 'import os, signal; os.kill(os.getpid(), signal.SIGSEGV)']\n"
        "def run(command, **options):\n"
        "    return popen(dying if 'taichi_fluid.bench.measure' in command else command, **options)\n"
        "runs.subprocess.Popen = run\n"
    )
    done = run_code(code, ["bench", *SMALL, "--json", "a.json"], tmp_path)
    assert done.returncode == 1, done.stderr
    (row,) = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert "ended with status -11" in row["problem"]


def test_a_grid_that_does_not_fit_costs_its_row_only(tmp_path):
    done = run(["bench", "--arch", "cpu", "--resolution", "4096", "--json", "a.json"], tmp_path)
    assert done.returncode == 1
    (row,) = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert row["resolution"] == [4096] * 3
    assert "choose a smaller resolution" in row["problem"]
    assert "choose a smaller resolution" in done.stdout
    assert "Traceback" not in done.stderr


# Bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scene", "nothing.toml"], "nothing.toml"),
        (["--scene", "plume", "--dim", "2"], "leave --dim out"),
        (["--resolution", "0"], "domain.resolution"),
        (["--set", "fluid.colour=1"], "colour"),
        (["--set", "viscosity"], "key=value"),
        (["--append"], "--json"),
        (["--json", "."], "a folder"),
        (["--plot", "a.xyz"], "suffix"),
        (["--plot", "a.png", "--json", "a.png"], "same name"),
        (["--csv", "a.json", "--json", "a.json"], "same name"),
        (["--startup", "--csv", "a.csv"], "leave --steps"),
        (["--compare", "a.json", "b.json"], "cannot be read"),
        (["--startup", "--steps", "3"], "leave --steps"),
        (["--startup", "--plot", "a.png"], "leave --steps"),
        (["--rounds", "3"], "--startup"),
        (["--compare", "a.json", "b.json", "--steps", "20"], "without any other option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_gets_one_sentence(refuse, tmp_path, arguments, words):
    assert words in one_sentence(refuse("bench", *arguments))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no", "is not JSON"),
        ("[]", "does not hold the rows"),
        ('{"rows": [{"arch": "cpu"}]}', "does not hold the rows"),
    ],
)
def test_a_file_that_is_no_benchmark_gets_one_sentence(refuse, tmp_path, text, words):
    (tmp_path / "a.json").write_text(text)
    assert words in one_sentence(refuse("bench", "--compare", "a.json", "a.json"))


def test_files_without_a_common_row_get_one_sentence(measured, refuse, tmp_path):
    _, folder, found = measured
    (tmp_path / "b.json").write_text(json.dumps({**found, "rows": []}))
    assert "no row of the same" in one_sentence(refuse("bench", "--compare", folder / "a.json", "b.json"))


def test_without_matplotlib_a_plot_is_refused_before_anything_is_measured(tmp_path):
    code = "import sys\nsys.modules['matplotlib'] = sys.modules['matplotlib.backend_bases'] = None"
    done = run_code(code, ["bench", *SMALL, "--json", "a.json", "--plot", "a.png"], tmp_path)
    assert "taichi-fluid[plot]" in one_sentence(done)
    assert os.listdir(tmp_path) == []


def test_the_command_line_starts_without_the_benchmark():
    code = "import sys, taichi_fluid.app.commands; sys.exit(any('bench' in name or name == 'taichi' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], env=environment()).returncode == 0


def test_the_help_names_every_option():
    done = subprocess.run([*COMMAND, "bench", "--help"], capture_output=True, text=True, env=environment())
    for option in (
        "--arch",
        "--resolution",
        "--scene",
        "--dim",
        "--steps",
        "--json",
        "--csv",
        "--plot",
        "--compare",
        "--set",
        "--startup",
        "--rounds",
    ):
        assert option in done.stdout
