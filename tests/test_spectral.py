"""The direct solve by transforms: against float64 transforms of SciPy's, dense matrices and multigrid; and its stand-in."""

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import centred, divergence, norm, random_scalar, random_velocity, relative
from reference_sides import box_matrix, sides_of, solve_box, solve_sparse
from scipy import fft as scipy_fft
from test_panel import FakeGui
from test_solver_sides import Box, check_zero_and_what_is_no_number, flow_rhs, is_free, true_residual

import taichi_fluid as tf
from taichi_fluid.boundaries.coefficients import BoundaryCoefficients
from taichi_fluid.boundaries.sides import Boundary, Side
from taichi_fluid.boundaries.walls import Walls
from taichi_fluid.grid import Grid, Scratch
from taichi_fluid.pressure import box_residual, transforms
from taichi_fluid.pressure.box_residual import BoxResidual, set_box
from taichi_fluid.pressure.projection import Projection
from taichi_fluid.pressure.residual import Residual
from taichi_fluid.pressure.solver import Status
from taichi_fluid.pressure.spectral import SpectralSolver, hindrance, pressure_solver
from taichi_fluid.pressure.system import LinearSystem
from taichi_fluid.pressure.transforms import scipy_transforms
from taichi_fluid.simulation.diagnostics import Diagnostics
from taichi_fluid.viewer.panel import Panel, Rows
from taichi_fluid.viewer.session import Session

cpu_only = pytest.mark.usefixtures("on_cpu")
KINDS = ("cc", "oo", "pp")
MIXED = {2: [*itertools.product(KINDS, KINDS)], 3: [*itertools.product(KINDS, KINDS, KINDS)][::2]}
SHAPES = {2: [(17, 16), (9, 2), (13, 1), (1, 6), (64, 7)], 3: [(7, 5, 6), (1, 3, 8), (2, 11, 4), (16, 16, 3)]}
ERROR = 1e-5
"""Of a solution, relative to it: rounding in the transforms, twice what was measured."""
named = {"ids": lambda x: "-".join(map(str, x)) if isinstance(x, tuple) else str(x)}


@pytest.fixture
def on_cpu(arch):
    if arch != "cpu":
        pytest.skip("SciPy's transforms compute on the CPU only")


class Spectral(Box):
    """Solves boxes directly from NumPy to NumPy."""

    def __init__(self, shape, letters):
        self.grid, self.letters = Grid(shape, 1.0), letters
        self.solver = SpectralSolver(self.grid)
        self.solver.setup((1,) * len(shape), sides_of(letters))


# Solutions


@cpu_only
@pytest.mark.parametrize("letters", MIXED[2] + MIXED[3], **named)
def test_one_solve_is_the_solution_to_rounding(letters):
    """Against the transforms in f64; odd, even, prime and one cell wide, every mixture of closed, open and periodic."""
    for shape in SHAPES[len(letters)]:
        rhs, a = flow_rhs(shape, letters), box_matrix(shape, letters)
        if not rhs.any():
            continue
        found, result = Spectral(shape, letters)(rhs, tolerance=1e-5)
        assert (result.iterations, result.status) == (1, Status.CONVERGED)
        # A few roundings along each axis of a transform in f32; measured at most 2e-6, with a sine transform 4e-6.
        assert relative(found, solve_box(rhs, letters)) < ERROR
        # The residual told is that of the matrix, but for rounding where it is computed; measured 2e-7 apart at most.
        assert result.relative_residual == pytest.approx(true_residual(a, found, rhs, letters), abs=5e-7)
        assert result.relative_residual < 2e-6  # measured 6e-7 at most


@cpu_only
@pytest.mark.parametrize("letters", MIXED[2] + MIXED[3], **named)
def test_a_few_cells_against_the_matrix(letters):
    """An axis of one periodic cell couples nothing, of two cells twice: what the eigenvalues must say too."""
    for shape in ([(1, 1), (2, 3), (3, 2), (2, 2)], [(1, 2, 3), (2, 2, 2), (3, 1, 1)])[len(letters) - 2]:
        rhs = random_scalar(shape, 3)
        found, result = Spectral(shape, letters)(rhs, tolerance=1e-5)
        assert result.status is Status.CONVERGED
        expected = solve_sparse(box_matrix(shape, letters), rhs).reshape(shape)
        np.testing.assert_allclose(found, expected, rtol=0, atol=ERROR * max(np.abs(expected).max(), 1))


@cpu_only
@pytest.mark.parametrize(
    ("shape", "letters"),
    [((48, 33), ("cc", "cc")), ((32, 32), ("pp", "pp")), ((40, 9), ("pp", "oo")), ((64, 48, 50), ("pp", "cc", "cc"))],
    **named,
)
def test_multigrid_finds_the_same(shape, letters):
    """Also on a grid so large that its loops are shared among threads; to the tolerance times the condition."""
    rhs = flow_rhs(shape, letters)
    found, _ = Spectral(shape, letters)(rhs)
    other, result = Box(shape, letters)(rhs, tolerance=1e-6)
    assert result.status is Status.CONVERGED
    assert relative(found, centred(other) if is_free(letters) else other) < 3e-5


@cpu_only
def test_the_shift_of_diffusion_is_an_eigenvalue_more(dim):
    shape, letters, shift = (7, 5, 4)[:dim], ("cc", "pp", "oo")[:dim], 0.3
    box = Spectral(shape, letters)
    sides = sides_of(letters)
    box.solver.setup((1,) * dim, BoundaryCoefficients(box=sides.box, periodic=sides.periodic, shift=shift))
    rhs = random_scalar(shape) + 1.0
    found, result = box(rhs)
    a = box_matrix(shape, letters).toarray() + shift * np.eye(rhs.size)
    assert (result.status, result.removed_mean) == (Status.CONVERGED, 0.0)
    assert relative(found.ravel(), np.linalg.solve(a, rhs.ravel())) < ERROR


@cpu_only
@pytest.mark.parametrize("shares", [1, 3])
@pytest.mark.parametrize(
    ("shape", "letters", "shift"),
    [
        ((7, 5, 6), ("cc", "oo", "pp"), 0.0),
        ((5, 6), ("pp", "cc"), 0.4),
        ((9, 4, 5), ("cc", "cc", "cc"), 0.0),
        ((6, 1), ("oo", "pp"), 0.0),
    ],
)
def test_the_host_measures_as_kernels_do(shape, letters, shift, shares, monkeypatch):
    """The mean and the size of a right-hand side, and what a guess leaves of it; a plane or two at a time, on threads."""
    monkeypatch.setattr(box_residual, "_LEAST_SHARE", 1)
    monkeypatch.setattr(box_residual, "_BLOCK", 100)
    grid, sides = Grid(shape, 1.0), sides_of(letters)
    sides = BoundaryCoefficients(box=sides.box, periodic=sides.periodic, shift=shift)
    solver = SpectralSolver(grid)
    solver.setup((1,) * len(shape), sides)
    ours, theirs = BoxResidual(solver.system, shares), Residual(solver.system)
    ours.update(sides)
    theirs.shift = shift
    rhs, seen, left, wrapped = grid.array(), [], [], []
    grid.from_numpy(rhs, random_scalar(shape) + 0.5)
    for residual in (theirs, ours):
        x = grid.array()
        grid.from_numpy(x, random_scalar(shape))
        residual._start(rhs, x, 1e-3, solver.null_space)
        seen.append(residual.compute(rhs, x))
        left.append(grid.to_numpy(residual.r))
        wrapped.append(grid.to_numpy_padded(x))
    np.testing.assert_array_equal(*wrapped, err_msg="ghosts along periodic axes")
    np.testing.assert_allclose(*left, atol=5e-6, err_msg="sums of seven numbers of size 1 to 5, in another order")
    for name in ("mean", "norm", "target", "square", "iterations"):
        assert getattr(seen[1], name) == pytest.approx(getattr(seen[0], name), rel=2e-6, abs=1e-7), name


@cpu_only
@pytest.mark.parametrize("shift", [0.0, 0.3])
@pytest.mark.parametrize(
    ("shape", "letters"),
    [((7, 5, 6), ("cc", "oo", "pp")), ((1, 4), ("cc", "pp")), ((5, 1), ("oo", "pp")), ((1, 1), ("cc", "cc"))],
)
def test_the_host_sets_a_system_up_as_kernels_do(shape, letters, shift):
    grid, sides = Grid(shape, 1.0), sides_of(letters)
    sides = BoundaryCoefficients(box=sides.box, periodic=sides.periodic, shift=shift)
    ours, theirs = LinearSystem(grid), LinearSystem(grid)
    for system in (ours, theirs):
        system.set_sides(sides, cut=False)
    ours.inv_diag.fill(7.0)  # of what was before nothing is left
    set_box(ours, sides)
    theirs.mark_box((1,) * grid.dim)
    theirs.set_diagonal(sides, (1,) * grid.dim, shift)
    for name in ("unknown", "inv_diag"):
        one, other = (grid.to_numpy_padded(getattr(system, name)) for system in (ours, theirs))
        np.testing.assert_allclose(one, other, rtol=2e-7, err_msg="a sum of seven numbers in another order")


@cpu_only
def test_a_direct_solve_needs_no_kernel_of_its_own(monkeypatch):
    """Which is why a scene of its kind starts sooner."""
    for kernels in ("residual.residual_kernels", "system.setup_kernels"):
        monkeypatch.setattr(f"taichi_fluid.pressure.{kernels}", lambda *_: SimpleNamespace(Flags=lambda *_: None))
    box = Spectral((7, 5, 6), ("cc", "oo", "pp"))
    assert box(flow_rhs((7, 5, 6), ("cc", "oo", "pp")))[1].status is Status.CONVERGED


@cpu_only
def test_new_sides_are_new_eigenvalues():
    box, rhs = Spectral((9, 6), ("cc", "cc")), flow_rhs((9, 6), ("cc", "cc"))
    for letters in (("pp", "cc"), ("oo", "pp"), ("cc", "cc")):
        box.solver.setup((1, 1), sides_of(letters))
        assert relative(box(rhs)[0], solve_box(rhs, letters)) < ERROR


@cpu_only
def test_the_correction_of_the_solver_is_its_solution(dim):
    shape, letters = (6, 5, 4)[:dim], ("pp", "cc", "oo")[:dim]
    box, r = Spectral(shape, letters), flow_rhs((6, 5, 4)[:dim], letters)
    assert relative(box.precondition(r), solve_box(r, letters)) < ERROR


@cpu_only
def test_neither_the_guess_nor_the_past_changes_a_bit():
    """On a serial and on a parallel loop shape; and whatever was solved before."""
    for shape, letters in (((30, 20), ("pp", "cc")), ((50, 48, 49), ("pp", "cc", "cc"))):
        rhs, box = flow_rhs(shape, letters), Spectral(shape, letters)
        first, told = box(rhs)
        for guess in (random_scalar(shape, 5), np.full(shape, np.nan)):
            box(2 * random_scalar(shape, 7))
            again, result = box(rhs, guess=guess)
            np.testing.assert_array_equal(again, first)
            assert result == told
        np.testing.assert_array_equal(Spectral(shape, letters)(rhs)[0], first)


# How a solve ends


@cpu_only
def test_zero_and_what_is_no_number(dim):
    check_zero_and_what_is_no_number(dim, Spectral)


@cpu_only
@given(exponent=st.sampled_from([-33, -24, -20, -16, -12, -8, 8, 12, 17, 20, 36]))
def test_the_size_of_the_right_hand_side_does_not_matter(exponent):
    shape, letters = (9, 5), ("cc", "pp")
    rhs, scale = flow_rhs((9, 5), letters), 10.0**exponent
    exact = solve_box(rhs, letters)
    found, result = Spectral(shape, letters)(scale * rhs, tolerance=1e-5)
    assert result.status is Status.CONVERGED
    assert relative(found, scale * exact) < ERROR


@cpu_only
def test_a_solution_beyond_f32_is_said():
    """Eight rows of 1e38 beside eight of -1e38: what lies between is some fifty times that; multigrid says the same."""
    rhs = np.repeat([[1e38], [-1e38]], 8, axis=0)
    for box in (Spectral((16, 1), ("cc", "cc")), Box((16, 1), ("cc", "cc"))):
        assert box(rhs)[1].status is Status.NOT_FINITE


@cpu_only
@pytest.mark.parametrize("letters", [("cc", "cc"), ("pp", "pp"), ("pp", "cc")], **named)
@pytest.mark.parametrize("extra", [0.25, 20.0, 1e-12])
def test_a_right_hand_side_out_of_balance_is_balanced_and_said(letters, extra):
    shape = (8, 6)
    scale = 1e-12 if extra < 1e-6 else 1.0  # also where the right-hand side is made larger first
    rhs = scale * flow_rhs(shape, letters)
    found, result = Spectral(shape, letters)(rhs + extra, tolerance=1e-5)
    assert result.status is Status.CONVERGED
    assert result.removed_mean == pytest.approx(extra, rel=1e-6)
    # The sum of a right-hand side and 20 has lost 1e-6 of it to rounding.
    assert relative(found, solve_box(rhs, letters)) < (ERROR if extra != 20 else 3e-5)


@cpu_only
def test_a_constant_right_hand_side_is_none():
    found, result = Spectral((8, 6), ("cc", "pp"))(np.full((8, 6), 0.1))
    assert (result.iterations, result.status) == (0, Status.CONVERGED)
    assert result.removed_mean == pytest.approx(0.1)
    assert not found.any()


@cpu_only
@pytest.mark.parametrize("letters", [("cc", "cc"), ("oo", "pp")], **named)
def test_asking_too_much_ends_and_is_said(letters):
    shape = (90, 81)
    rhs, a = flow_rhs(shape, letters), box_matrix(shape, letters)
    found, result = Spectral(shape, letters)(rhs, tolerance=1e-9, max_iterations=100)
    assert result.status is Status.STALLED
    assert 1 < result.iterations < 6
    truth = true_residual(a, found, rhs, letters)
    assert truth < 3e-6  # the floor of f32
    assert result.relative_residual == pytest.approx(truth, rel=0.2)
    once, told = Spectral(shape, letters)(rhs, tolerance=1e-9, max_iterations=1)
    assert (told.iterations, told.status) == (1, Status.MAX_ITERATIONS)
    assert truth <= 1.01 * true_residual(a, once, rhs, letters), "the better one is kept"


# Projection


def flow(shape, boundaries, method="spectral", seed=0, dx=0.1):
    """A projection, a random velocity that heeds the sides, and the result of projecting it."""
    grid = Grid(shape, dx)
    walls = Walls(grid, boundaries)
    projection = Projection(grid, walls, Scratch(grid), method)
    u, p = grid.velocity(), grid.array()
    grid.face_velocity_from_numpy(u, random_velocity(shape, seed))
    walls.fill_velocity(u)
    before = Diagnostics(grid).divergence(u)
    result = projection.project(u, p, dt=0.01, rho=1.2, tolerance=1e-4)
    return projection, u, result, before


BOXES = {
    "closed": lambda dim: [["free-slip", "no-slip"]] * dim,
    "periodic": lambda dim: [["periodic", "periodic"]] * dim,
    "mixed": lambda dim: [["periodic", "periodic"], ["no-slip", "no-slip"], ["free-slip", "free-slip"]][:dim],
    "open": lambda dim: [["open", "open"], ["free-slip", "free-slip"], ["periodic", "periodic"]][:dim],
    # What comes in on one side leaves on the other: given on both, so that the pressure sees two closed sides.
    "through": lambda dim: [
        [Side(Boundary.INFLOW, (0.7, 0.0, 0.0)[:dim])] * 2, ["no-slip", "free-slip"], ["periodic", "periodic"]
    ][:dim],
}  # fmt: skip


@cpu_only
@pytest.mark.parametrize("kind", BOXES)
def test_the_projected_velocity_has_no_divergence(dim, kind):
    """Not to the tolerance, which is 1e-4, but to rounding."""
    for shape in ([(17, 16), (9, 5), (61, 48)], [(7, 5, 6), (9, 5, 1), (16, 12, 11)])[dim - 2]:
        projection, u, result, before = flow(shape, BOXES[kind](dim))
        assert (projection.hindrance, projection.solver.method) == ("", "spectral")
        assert (result.iterations, result.status) == (1, Status.CONVERGED)
        after = Diagnostics(projection.grid).divergence(u)
        # White noise: rounding of the pressure and of velocities of size 4; measured 2.2e-6 at most.
        assert after.rms < 1e-5 * before.rms
        speeds = projection.grid.face_velocity_to_numpy(u)
        assert norm(divergence(speeds)) < 1e-5 * projection.grid.dx * before.rms * np.sqrt(np.prod(shape))
        if kind == "through":
            np.testing.assert_array_equal(speeds[0][[0, -1]], np.float32(0.7))


@cpu_only
def test_a_scene_runs_with_it_and_survives_a_round_trip():
    scene = tf.preset("stable_fluids").with_values({"domain.resolution": 32})
    assert scene.solver.pressure == "spectral"
    assert tf.Scene.loads(scene.dumps()) == scene
    ours = tf.Simulation(scene)
    assert ours.pressure_solver == ("spectral", "spectral", "")
    assert ours.pressure_solver.sentence == ""
    other = tf.Simulation(scene.with_values({"solver.pressure": "multigrid-cg", "solver.tolerance": 1e-6}))
    for simulation in (ours, other):
        steps = [simulation.step(0.01) for _ in range(5)]
        assert all(step.pressure.status is Status.CONVERGED for step in steps)
    assert ours.step(0.01).pressure.iterations == 1  # the preset splits its steps: one projection
    other.step(0.01)
    # 1e-6 of multigrid's residual times the condition, over six steps.
    np.testing.assert_allclose(ours.to_numpy("velocity"), other.to_numpy("velocity"), atol=2e-4)
    # Another solver while it runs, and back.
    ours.scene = ours.scene.with_values({"solver.pressure": "cg"})
    assert ours.pressure_solver == ("cg", "cg", "")
    ours.scene = scene
    assert ours.step(0.01).pressure.iterations == 1


# What stands in


def sphere_in_a_box():
    return tf.Scene.from_dict({
        "name": "box", "domain": {"size": [1.0, 1.0], "resolution": 16}, "solver": {"pressure": "spectral"},
        "solids": [{"shape": "sphere", "center": [0.5, 0.5], "radius": 0.2}],
    })  # fmt: skip


def test_beside_solids_multigrid_stands_in_and_says_why():
    simulation = tf.Simulation(sphere_in_a_box())
    assert simulation.pressure_solver[:2] == ("spectral", "multigrid-cg")
    assert "without solids" in simulation.pressure_solver.reason
    sentence = simulation.pressure_solver.sentence
    assert sentence.startswith("solver.pressure is spectral, for which multigrid-cg stands in: ")
    assert simulation.step(0.01).pressure.status is Status.CONVERGED


def recorded(scene, folder):
    """What a recorded run says, and its JSON."""
    (folder / "box.toml").write_text(scene.dumps(), encoding="utf-8")
    command = [sys.executable, "-m", "taichi_fluid", "run", "box.toml", "--arch", "cpu", "--frames", "1", "--overwrite"]
    done = subprocess.run(
        [*command, "--set", "output.width=64", "--set", "output.height=64", "--json", "box.json"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(Path(tf.__file__).parent.parent)}, capture_output=True,
        text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr, json.loads((folder / "box.json").read_text(encoding="utf-8"))["pressure_solver"]


def test_a_recorded_run_says_what_stands_in_and_why(tmp_path):
    said, told = recorded(sphere_in_a_box(), tmp_path)
    assert said.count("solver.pressure is spectral, for which multigrid-cg stands in") == 1
    assert (told["asked"], told["used"]) == ("spectral", "multigrid-cg")
    assert told["reason"] in said
    said, told = recorded(sphere_in_a_box().with_values({"solids": []}), tmp_path)
    assert "stands in" not in said
    assert told == {"asked": "spectral", "used": "spectral", "reason": ""}


@cpu_only
def test_the_window_says_what_stands_in(tmp_path):
    for scene in (sphere_in_a_box(), sphere_in_a_box().with_values({"solids": []})):
        session = Session(scene, tmp_path, size=(64, 48))
        session.advance(60.0, 1 / 60)
        gui = FakeGui()
        Panel(session).run(Rows(gui, 200), [])
        assert ("multigrid-cg stands in" in re.sub(r"\s+", " ", gui.lines())) == bool(scene.solids)
        session.close()


@pytest.mark.parametrize("pair", ["co", "oc"])
def test_one_open_side_names_its_axis(pair):
    reason = hindrance(sides_of(("pp", pair)), cut=False)
    assert "axis 1" in reason


@pytest.mark.vulkan_too
def test_another_arch_stands_in_and_says_so(arch):
    """On the CPU the transforms serve; anywhere else multigrid, and the result is right all the same."""
    projection, u, result, before = flow((17, 12), BOXES["periodic"](2))
    if arch == "cpu":
        assert (projection.solver.method, projection.hindrance) == ("spectral", "")
    else:
        assert projection.solver.method == "multigrid-cg"
        assert projection.hindrance.endswith(f"on the CPU and not on {arch}")
        with pytest.raises(RuntimeError, match="not on"):
            SpectralSolver(projection.grid)
    assert result.status is Status.CONVERGED
    assert Diagnostics(projection.grid).divergence(u).rms < 2e-4 * before.rms


@pytest.fixture
def without_scipy(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "scipy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scipy", None)


@cpu_only
def test_without_scipy_multigrid_stands_in_and_names_the_extra(without_scipy):
    grid = Grid((8, 8), 1.0)
    solver, reason = pressure_solver(grid, "spectral", BoundaryCoefficients.closed(2), cut=False)
    assert solver.method == "multigrid-cg"
    assert "pip install 'taichi-fluid[spectral]'" in reason
    with pytest.raises(RuntimeError, match="SciPy"):
        SpectralSolver(grid)
    assert pressure_solver(grid, "multigrid", BoundaryCoefficients.closed(2), cut=False)[1] == "", (
        "nobody else asks for SciPy"
    )


@pytest.mark.parametrize("name", ["dctn", "idctn", "dstn", "idstn", "rfftn", "irfftn"])
def test_the_extension_by_itself_does_what_all_of_scipy_does(name, monkeypatch):
    by_itself = scipy_transforms()
    monkeypatch.setattr(transforms.PathFinder, "find_spec", lambda *_: None)
    assert scipy_transforms() is scipy_fft is not by_itself, "where the extension is not found"
    values = np.random.default_rng(7).random((9, 7, 12), np.float32)[1:-1, :, 1:-1]
    options: dict = {"type": 1} if "dst" in name else {}
    if name == "irfftn":
        values, options = scipy_fft.rfftn(values, axes=[0, 2]), {"s": [7, 10]}
    with_all, alone = (
        getattr(fft, name)(values.copy(), axes=[0, 2], norm="ortho", workers=2, overwrite_x=True, **options)
        for fft in (scipy_fft, by_itself)
    )
    assert with_all.dtype == alone.dtype and np.array_equal(with_all, alone)


@cpu_only
def test_what_has_no_transform_is_refused():
    grid = Grid((6, 5), 1.0)
    solver = SpectralSolver(grid)
    with pytest.raises(ValueError, match="axis 0"):
        solver.setup((1, 1), sides_of(("co", "pp")))
    with pytest.raises(ValueError, match="axis 1"):
        solver.setup((1, 1), BoundaryCoefficients(box=(0, 0, 2, 2)))
    for options in ({"mask": grid.array()}, {"held": grid.array()}):
        with pytest.raises(ValueError, match="solids"):
            solver.setup((1, 1), BoundaryCoefficients.closed(2), **options)
    with pytest.raises(ValueError, match="solids"):
        solver.setup((2, 1), BoundaryCoefficients.closed(2))
    with pytest.raises(ValueError, match="solids"):
        solver.setup_open(grid.array(2), BoundaryCoefficients.closed(2))
    with pytest.raises(RuntimeError, match="setup"):
        solver.solve(grid.array(), grid.array())


@pytest.mark.vulkan_too
@pytest.mark.parametrize("method", ["auto", "spectral"])
def test_auto_is_the_direct_solve_where_it_can_be(arch, method):
    """Solids, one open side and other backends have multigrid; nobody is told, as nobody has asked for the other."""
    for scene, serves in ((sphere_in_a_box().with_values({"solids": []}), arch == "cpu"), (sphere_in_a_box(), False)):
        simulation = tf.Simulation(scene.with_values({"solver.pressure": method}))
        used = "spectral" if serves else "multigrid-cg"
        assert simulation.pressure_solver[:2] == (method, used)
        assert bool(simulation.pressure_solver.reason) is not serves
        assert bool(simulation.pressure_solver.sentence) is (method == "spectral" and not serves)
        assert simulation.step(0.01).pressure.status is Status.CONVERGED


def test_auto_is_what_scenes_have_if_they_say_nothing():
    assert (
        tf.Scene.from_dict({"name": "box", "domain": {"size": [1.0, 1.0], "resolution": 8}}).solver.pressure == "auto"
    )


@cpu_only
def test_the_ghosts_of_a_solution_are_those_of_every_solver():
    """The transforms work in the array itself, between its ghosts: 0 beyond a wall, those of the other end if periodic."""
    box = Spectral((9, 6), ("cc", "pp"))
    grid, rhs = box.grid, flow_rhs((9, 6), ("cc", "pp"))
    a, out = grid.array(), grid.array()
    a.from_numpy(np.pad(rhs, 1, constant_values=np.nan).astype(np.float32).reshape(a.shape))
    out.from_numpy(np.full(a.shape, np.nan, np.float32))
    assert box.solver.solve(a, out).status is Status.CONVERGED
    whole = out.to_numpy().reshape(11, 8)
    assert not whole[[0, -1]].any()
    np.testing.assert_array_equal(whole[:, [0, -1]], whole[:, [-2, 1]])
    inside = grid.to_numpy(a)
    np.testing.assert_array_equal(inside, rhs.astype(np.float32), err_msg="a right-hand side stays what it was")


@cpu_only
@pytest.mark.parametrize(
    ("shape", "letters", "factor"),
    [
        ((8, 8, 101), ("cc", "cc", "cc"), 101),
        ((8, 96, 8), ("cc", "oo", "cc"), 97),
        ((53, 8, 8), ("pp", "cc", "cc"), 53),
        ((8, 128, 47), ("cc", "oo", "pp"), 0),  # 2 x 129 is 2 x 3 x 43
        ((101, 509), ("cc", "oo"), 0),  # in 2D transforms are little of the time
    ],
    **named,
)
def test_auto_leaves_slow_transforms_alone(shape, letters, factor):
    grid, sides = Grid(shape, 1.0), sides_of(letters)
    solver, reason = pressure_solver(grid, "auto", sides, cut=False)
    assert solver.method == ("multigrid-cg" if factor else "spectral")
    assert bool(reason) is bool(factor)
    if factor:
        axis = next(k for k, n in enumerate(shape) if n > 8)
        assert f"axis {axis}" in reason and f"{factor} divides it" in reason
    assert pressure_solver(grid, "spectral", sides, cut=False)[1] == "", "who asks for it gets it"
