"""The cases of published flows: what they find at few cells, how rows are judged, and the command that runs them.

Whether a figure is as published at the resolution that a case is meant for is in ``docs/validation.md``; here stand bounds
of what is found at a few cells today, so that nobody makes it worse unknowingly.
"""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from command_line import environment, one_sentence, run, run_code, run_here

from taichi_fluid.bench.runs import environment as machine
from taichi_fluid.scene import SceneError
from taichi_fluid.validation import CASES, Case, Run
from taichi_fluid.validation.bodies import on_line
from taichi_fluid.validation.cases import peak, zeros_of
from taichi_fluid.validation.report import BEGIN, END, NoValidation, in_markdown, write_markdown

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "validation_cpu.json"
SPLITTING = {"solver.scheme": "splitting"}
vulkan_too = pytest.mark.vulkan_too

# What each row was when it was measured, and how far it may be off that.
TODAY = [
    pytest.param("couette", {}, [(0, 5e-6)], id="couette"),
    pytest.param("poiseuille", {}, [(0, 2e-5), (0.5, 1e-4)], id="poiseuille"),
    pytest.param(
        "taylor-green", {}, [(0.0024, 0.0005), (3.19, 0.1), (0.994, 0.005), (0.454, 0.002)], id="taylor-green"
    ),
    pytest.param("carried-vortices", {}, [(0.062, 0.005), (1.91, 0.1), (0.9988, 0.001)], id="carried-vortices"),
    # Splitting loses them, at any number of cells.
    pytest.param(
        "taylor-green",
        SPLITTING,
        [(0.192, 0.01), (0.466, 0.05), (0.520, 0.02), (0.342, 0.01)],
        id="taylor-green-splitting",
    ),
    pytest.param(
        "cavity-100",
        {},
        [(0.0036, 2e-3), (0.0089, 2e-3), (-0.2094, 3e-3), (0.1762, 3e-3), (-0.2509, 3e-3)],
        id="cavity-100",
    ),
    pytest.param(
        "heated-1e3",
        {},
        [(1.126, 0.01), (1.126, 0.01), (0, 1e-5), (0.0005, 1e-3), (3.706, 0.04), (3.756, 0.04)],
        id="heated-1e3",
    ),
    pytest.param("zalesak", {}, [(0.733, 0.01), (0, 1e-6), (0, 1e-7), (0.946, 0.02)], id="zalesak", marks=vulkan_too),
    pytest.param("vortex", {}, [(0.430, 0.005), (0, 1e-6), (0, 1e-7), (0.982, 0.02)], id="vortex", marks=vulkan_too),
    pytest.param("closed-box", {}, [(0, 1e-6), (0, 1e-6), (0.33, 0.05), (1, 0.005)], id="closed-box"),
    pytest.param(
        "heated-1e4",
        {},
        [(2.332, 0.01), (2.334, 0.01), (0, 1e-5), (0.0012, 1e-3), (16.22, 0.2), (20.06, 0.2)],
        id="heated-1e4",
    ),
    pytest.param(
        "cavity-1000",
        {},
        [(0.065, 0.01), (0.075, 0.01), (0.071, 0.01), (0.086, 0.01), (-0.326, 0.01), (0.317, 0.01), (-0.458, 0.01)],
        id="cavity-1000",
    ),
    pytest.param("onset", {}, [(1667, 10), (1667, 10)], id="onset"),
    pytest.param("cylinder-20", {}, [(5.62, 0.1), (0.0135, 0.01), (0.1129, 0.003), (0.0848, 0.003)], id="cylinder-20"),
    pytest.param(
        "array",
        {},
        [(0.9911, 0.002), (2.41, 0.2), (0.9869, 0.002), (2.05, 0.2)],
        id="array",
    ),
    pytest.param(
        "turning",
        {},
        [*((0.0025, 3e-4), (0.9936, 0.004), (0.9923, 0.004)), *((0.0010, 2e-4), (0.9902, 0.004), (1.0043, 0.004))],
        id="turning",
    ),
    pytest.param("aslant", {}, [(0.0018, 2e-4), (2.05, 0.2), (0.9913, 0.003), (0.0036, 0.003)], id="aslant"),
    pytest.param(
        "swinging",
        {},
        [(0.0068, 3e-4), (1.86, 0.1), (0.0095, 5e-4), (0.9005, 0.005), (0.115, 0.01)],
        id="swinging",
    ),
    pytest.param(
        "added-mass",
        {},
        [(0.9901, 0.003), (0.0014, 0.002), (0.9963, 0.003), (0.0012, 0.002), (0.9964, 0.003), (0.0010, 0.002)],
        id="added-mass",
    ),
    pytest.param(
        "rolls",
        {},
        [*((2.126, 0.005), (2.131, 0.005), (0, 1e-4)), *((2.677, 0.005), (2.686, 0.005), (0, 1e-4))],
        id="rolls",
    ),
    pytest.param("dipole", {}, [(1.488, 0.01), (1.005, 0.01), (0.769, 0.01), (1041, 20), (0.3745, 0.005)], id="dipole"),
    pytest.param("oscillating", {}, [(2.132, 0.03), (1.383, 0.02), (0.006, 0.02)], id="oscillating"),
    pytest.param("conduction", {}, [(1.0006, 5e-4), (2.53, 0.1), (0, 1e-5)], id="conduction"),
    pytest.param("chimney", {}, [(1.011, 0.005), (1.016, 0.005), (1.016, 0.005)], id="chimney"),
    pytest.param("annulus", {}, [(1.0841, 0.005), (2.076, 0.01)], id="annulus"),
    pytest.param("solitary", {}, [(0.994, 0.004), (0.99, 0.02), (0.994, 0.004), (0.99, 0.02)], id="solitary"),
    pytest.param("run-up", {}, [(1.003, 0.005), (0.905, 0.07)], id="run-up"),
    pytest.param("internal-wave", {}, [(0.999, 5e-4), (0, 5e-4), (1.0002, 5e-4), (0, 5e-4)], id="internal-wave"),
    pytest.param("lock", {}, [(0.4782, 0.003), (0.4787, 0.003), (1, 1e-5)], id="lock"),
    pytest.param("wavemaker", {}, [(0.96, 0.01), (0.928, 0.02), (1.0, 0.01), (0, 0.005)], id="wavemaker"),
    pytest.param("wedge", {}, [(13.71, 0.5), (5.02, 0.2)], id="wedge"),
    pytest.param("vortices-3d", {}, [(1, 1e-4), (1, 1e-4), (1, 1e-4)], id="vortices-3d"),
    pytest.param(
        "ghost-fluid",
        {},
        [(2.05, 0.05), (1.99, 0.05), (11, 1), (2.01, 0.05), (1.80, 0.05), (10, 1)],
        id="ghost-fluid",
    ),
    pytest.param(
        "pool",
        {},
        [
            *((0, 1e-6), (0, 1e-5)),
            *((3e-6, 1e-5), (0, 5e-6), (0, 1e-3)),
            *((4e-6, 1e-5), (0, 5e-6), (0, 1e-3)),
            *((3e-6, 1e-5), (0, 5e-6), (0, 1e-3)),
            *((3e-6, 1e-5), (1e-6, 5e-6)),
        ],
        id="pool",
    ),
    pytest.param(
        "archimedes",
        {},
        [
            *((0.993, 0.006), (0.996, 0.003), (0.996, 0.003), (0.996, 0.003), (1.60, 0.4)),
            *((0.94, 0.02), (0.951, 0.01), (0.953, 0.01), (0.958, 0.01), (1.96, 0.4)),
        ],
        id="archimedes",
    ),
    pytest.param(
        "slosh",
        {},
        [(0.9956, 0.001), (1.87, 0.5), (0.0218, 0.004), (0.9963, 0.001), (2.26, 0.5), (0.038, 0.004)],
        id="slosh",
    ),
    pytest.param(
        "endless-wave", {}, [(0.9966, 0.003), (0.0156, 0.004), (0.9967, 0.004), (0.0386, 0.006)], id="endless-wave"
    ),
    pytest.param("film", {}, [(0.0038, 0.002), (1.007, 0.004), (0.0047, 0.003), (0.9995, 0.004)], id="film"),
    pytest.param(
        "drop",
        {},
        [
            *((0.980, 0.02), (-0.01, 0.03), (0, 5e-3)),
            *((0.978, 0.02), (-0.005, 0.03), (0, 5e-3)),
            *((0.922, 0.02), (0.02, 0.04), (0, 5e-3)),
        ],
        id="drop",
    ),
    pytest.param("column", {}, [(1.048, 0.02), (0, 5e-3), (1.031, 0.02), (0, 5e-3)], id="column"),
    pytest.param(
        "dam-front",
        {},
        [
            *((-0.02, 0.1), (0.775, 0.05), (0.015, 0.005), (0.456, 0.01), (1.000, 0.002), (0, 0.005), (0, 0.005)),
            *((-0.02, 0.1), (0.83, 0.05), (0.015, 0.005), (0.457, 0.01), (1.000, 0.002), (0, 0.005), (0, 0.005)),
            (1.0, 1e-3),
        ],
        id="dam-front",
    ),
    # So few cells see little of what splashes.
    pytest.param(
        "volume",
        {},
        [
            *((0, 0.01), (1.04, 0.1), (0, 0.02), (1.00, 0.05), (0.02, 0.03), (1.01, 0.1)),
            # The jet of pour is two cells wide: 0.89 to 1.50 with 15 to 24 cells.
            *((0, 0.01), (0.98, 0.05), (0.004, 0.02), (0.99, 0.05), (0.0136, 0.02), (1.20, 0.5)),
            *((0, 0.01), (0.99, 0.05)),
        ],
        id="volume",
    ),
]


@pytest.mark.parametrize(("name", "changes", "today"), TODAY)
def test_a_case_finds_what_it_found(name, changes, today):
    outcome = CASES[name].run(CASES[name].quick, changes)
    assert not outcome.problem
    assert len(outcome.run.rows) == len(today)
    for row, (found, away) in zip(outcome.run.rows, today, strict=True):
        assert abs(row.found - found) <= away, f"{row.quantity}: {row.found}, was {found}"


# How figures are judged


def judged(add) -> bool:
    case = Case("made-up", "", "", add, 8, 4)
    return case.run().holds


def test_a_figure_holds_between_its_bounds_and_nowhere_else():
    assert judged(lambda run: run.near("a", 1.004, 1.0, 0.005))
    assert judged(lambda run: run.near("a", -1.004, -1.0, 0.005))
    assert not judged(lambda run: run.near("a", 1.006, 1.0, 0.005))
    assert not judged(lambda run: run.near("a", 1.0, -1.0, 0.005))
    assert judged(lambda run: run.between("a", 5.58, 5.57, 5.59))
    assert not judged(lambda run: run.between("a", 5.60, 5.57, 5.59))
    assert judged(lambda run: run.at_most("a", 0.1, 0.2)) and not judged(lambda run: run.at_most("a", 0.3, 0.2))
    assert judged(lambda run: run.at_least("a", 1.9, 1.8)) and not judged(lambda run: run.at_least("a", 1.7, 1.8))


@pytest.mark.parametrize("add", ["near", "between", "at_most", "at_least"])
def test_what_is_no_number_holds_nowhere(add):
    bounds = {"near": (1.0, 0.1), "between": (0.0, 1.0), "at_most": (1.0,), "at_least": (1.0,)}[add]
    assert not judged(lambda run: getattr(run, add)("a", math.nan, *bounds))


def test_a_case_without_a_row_or_with_one_that_fails_does_not_hold():
    assert not judged(lambda run: None)

    def one_of_two(run):
        run.at_most("a", 0.0, 1.0)
        run.at_most("b", 2.0, 1.0)

    assert not judged(one_of_two)

    def broken(run):
        run.at_most("a", 0.0, 1.0)
        raise RuntimeError("velocity is not finite")

    outcome = Case("made-up", "", "", broken, 8, 4).run()
    assert not outcome.holds and outcome.problem == "velocity is not finite"


def test_what_makes_a_case_the_case_it_is_may_not_be_changed():
    for key in ("fluid.viscosity", "domain.resolution", "solids"):
        with pytest.raises(ValueError, match="change solver"):
            CASES["couette"].run(8, {key: 1.0})
    with pytest.raises(SceneError, match=r"solver\.cfl"):
        CASES["couette"].run(8, {"solver.cfl": -1.0})


def test_changes_reach_the_scene():
    seen = Run(8, {"solver.cfl": 0.3}).scene("a", domain={"size": [1.0, 1.0], "resolution": 8}, solver={"cfl": 1.0})
    assert seen.solver.cfl == 0.3


def test_a_peak_lies_on_a_parabola():
    x = np.arange(9) + 0.5
    place, value = peak(x, 2.0 - 0.25 * (x - 4.2) ** 2)
    assert place == pytest.approx(4.2) and value == pytest.approx(2.0)
    assert peak(x, x) == (8.5, 8.5)


def test_rows_of_cells_are_read_between_them_and_signals_at_their_zeros():
    y = (np.arange(6) + 0.5) * 0.1
    assert on_line(np.outer([1.0, 3.0], y), 0.1, 0.23) == pytest.approx([0.23, 0.69])
    times = np.linspace(0, 4, 401)
    assert np.diff(zeros_of(times, np.sin(2 * np.pi * times / 0.8), rising=True)) == pytest.approx(0.8, abs=1e-3)


# The document


def test_the_table_of_the_document_is_what_was_found():
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "validation.md").read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0] == in_markdown(found["cases"], found)
    for each in found["cases"]:
        assert each["commit"] and "dirty" not in each["commit"]
    assert [each["case"] for each in found["cases"]] == list(CASES), "every case has been run for it"
    for each in found["cases"]:
        assert each["resolution"] == CASES[each["case"]].resolution and not each["changes"]


def test_a_document_keeps_what_else_stands_in_it(tmp_path):
    outcome = Case("made-up", "t", "s", lambda run: run.at_most("a | b", math.nan, 1.0), 8, 4).run().to_dict()
    outcome["commit"] = "abc"
    path, where = tmp_path / "a.md", {**machine(), "arch": "cpu"}
    path.write_text(f"before\n{BEGIN}of before\n{END}after\n", encoding="utf-8")
    write_markdown(path, [outcome], where)
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{BEGIN}") and text.endswith(f"{END}after\n") and "of before" not in text
    assert "Run at commit abc on" in text
    write_markdown(path, [outcome, {**outcome, "case": "elsewhere", "processor": "an abacus"}], where)
    text = path.read_text(encoding="utf-8")
    assert text.index("- `made-up`") < text.index("Run at commit abc on an abacus") < text.index("- `elsewhere`")
    assert "| a \\| b | not finite | at most 1 |  | **not met** |" in text and "0 of 2 rows hold" in text
    path.write_text("no place\n", encoding="utf-8")
    with pytest.raises(NoValidation, match="has no lines"):
        write_markdown(path, [outcome], where)
    assert path.read_text(encoding="utf-8") == "no place\n"


# The command


@pytest.fixture(scope="module")
def validated(tmp_path_factory):
    """A case that holds and one that does not, as sl blurs more than a row allows: what both gave, and their folder."""
    folder = tmp_path_factory.mktemp("validated")
    options = ["--quick", "--arch", "cpu", "--json", "a.json", "--append", "--markdown", "a.md", "--plot", "plots"]
    blurred = ["--set", "solver.advection=semi-lagrangian"]
    return (
        run_here(["validate", "poiseuille", *options], folder),
        run_here(["validate", "zalesak", *options, *blurred], folder),
        folder,
    )


def test_status_0_if_all_rows_hold_and_1_if_one_does_not(validated):
    good, bad, _ = validated
    assert good.returncode == 0, good.stderr
    assert "poiseuille" in good.stdout and "DOES NOT HOLD" not in good.stdout
    assert bad.returncode == 1 and "DOES NOT HOLD" in bad.stdout and "Traceback" not in bad.stderr
    assert "1 of 1 cases do not hold: zalesak." in bad.stderr


def test_the_files_hold_what_both_have_found(validated):
    *_, folder = validated
    found = json.loads((folder / "a.json").read_text(encoding="utf-8"))
    assert found["arch"] == "cpu" and [each["case"] for each in found["cases"]] == ["poiseuille", "zalesak"]
    assert [each["holds"] for each in found["cases"]] == [True, False]
    assert found["cases"][1]["changes"] == {"solver.advection": "semi-lagrangian"}
    assert in_markdown(found["cases"], found) in (folder / "a.md").read_text(encoding="utf-8")
    assert sorted(os.listdir(folder / "plots")) == ["poiseuille.png", "zalesak.png"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cavity"], "there is no case 'cavity': did you mean 'cavity-400'? The cases are taylor-green"),
        (["couette", "--quick", "--resolution", "8"], "leave one out"),
        (["couette", "--append"], "--json"),
        (["couette", "--set", "fluid.viscosity=1"], "only solver.… may be changed"),
        (["couette", "--set", "solver.cfl=-1"], "solver.cfl"),
        (["couette", "--set", "solver.cfl"], "key=value"),
        (["couette", "--json", "."], "a folder"),
        (["couette", "--json", "bad.json", "--append"], "does not hold what"),
        (["couette", "--markdown", "."], "the document"),
        (["couette", "--markdown", "bad.json"], "to write between"),
        (["couette", "--json", "a", "--markdown", "a"], "the document 'a' is also the JSON file"),
        (["couette", "--markdown", "a", "--plot", "a"], "the folder of plots 'a' is also the document"),
    ],
)
def test_bad_input_gets_one_sentence(refuse, tmp_path, arguments, words):
    (tmp_path / "bad.json").write_text("[1]")
    assert words in one_sentence(refuse("validate", *arguments))
    assert os.listdir(tmp_path) == ["bad.json"]


def test_a_case_that_cannot_be_run_so_gets_one_sentence(tmp_path):
    done = run_here(["validate", "pool", "--quick", "--set", "solver.trace=euler"], tmp_path)
    assert "pool cannot be run so: solver.trace is 'euler'" in one_sentence(done)
    assert os.listdir(tmp_path) == []


def test_without_matplotlib_a_plot_is_refused_before_anything_is_run(tmp_path):
    code = "import sys\nsys.modules['matplotlib'] = None"
    done = run_code(code, ["validate", "couette", "--plot", "plots"], tmp_path)
    assert "taichi-fluid[plot]" in one_sentence(done)
    assert os.listdir(tmp_path) == []


def test_the_list_has_every_case_and_runs_none(tmp_path):
    done = run(["validate", "--list"], tmp_path, **environment())
    assert done.returncode == 0 and [line.split()[0] for line in done.stdout.splitlines()] == list(CASES)


def test_an_oscillation_that_is_exactly_0_for_once_has_one_zero_there():
    values = [1.0, 0.0, -1.0, -0.5, 0.0, 0.5]
    np.testing.assert_allclose(zeros_of(range(6), values), [1.0, 4.0])
