"""What is compiled when, and who is told: no time is asserted."""

import io
import os
from pathlib import Path

import pytest
from command_line import one_sentence, run
from rich.console import Console
from scenes_for_tests import plume

from taichi_fluid import kernels
from taichi_fluid._ti import ti
from taichi_fluid.grid import Grid
from taichi_fluid.kernels import Array, GraphRecorder, before_compiling, kernel_family
from taichi_fluid.simulation import Simulation
from taichi_fluid.viewer import waiting as waiting_module
from taichi_fluid.viewer.waiting import FORGOTTEN_SECONDS, SHOWN_SECONDS, Waiting


@ti.func
def _add_at(c, I, s, a: ti.template(), x):
    a[c] = a[c] + x


def new_kernels():
    """A family that nobody has built: two kernels that add."""

    @kernel_family
    def family(loops):
        IntVector, each_cell = loops.IntVector, loops.each_cell

        @ti.kernel
        def add_one(a: Array, n: IntVector):
            each_cell(n, _add_at, (a, ti.f32(1.0)))

        @ti.kernel
        def add_two(a: Array, n: IntVector):
            each_cell(n, _add_at, (a, ti.f32(2.0)))

        return {"add_one": add_one, "add_two": add_two}

    return family


def test_who_asked_is_told_before_each_kernel_and_never_again():
    grid, said = Grid((6, 6), 0.1), []
    a, family = grid.array(), new_kernels()(grid.loops)
    with before_compiling(lambda name: said.append((name, grid.to_numpy(a).max()))):
        for _ in range(2):
            family.add_one(a, grid.n)
            family.add_two(a, grid.n)
    assert said == [("add_one", 0.0), ("add_two", 1.0)], "before it is launched, after what came before"
    other = new_kernels()(grid.loops)
    other.add_one(a, grid.n)
    assert len(said) == 2, "nobody asks any more"


def test_a_recording_is_compiled_kernel_by_kernel_too():
    grid, said = Grid((6, 6), 0.1), []
    a, family = grid.array(), new_kernels()(grid.loops)
    with before_compiling(lambda name: said.append((name, kernels.compiled_kernels()))):
        before = kernels.compiled_kernels()
        recorder = GraphRecorder()
        for kernel in (family.add_one, family.add_two, family.add_one):
            recorder.launch(kernel, a, grid.n)
        replay = recorder.finish()
        replay()
        family.add_one(a, grid.n)
    assert said == [("add_one", before), ("add_two", before + 1)]
    assert grid.to_numpy(a).max() == 5.0


def test_who_is_told_may_break_it_off():
    """And what needs the kernel can be done later."""
    grid = Grid((6, 6), 0.1)
    a, family = grid.array(), new_kernels()(grid.loops)

    def refuse(name):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), before_compiling(refuse):
        family.add_one(a, grid.n)
    family.add_one(a, grid.n)
    assert grid.to_numpy(a).max() == 1.0


def test_who_is_told_may_launch_what_there_is():
    """As a window does that goes on with another flow: the same as without it, to the bit."""
    scene = plume(2, 24)
    alone = [Simulation(scene), Simulation(scene)]
    beside = [Simulation(scene), Simulation(scene)]
    for one, two in (alone, beside):
        one.step(0.01)
        two.step(0.01)
    grid, family = beside[1].grid, new_kernels()(beside[1].grid.loops)
    with before_compiling(lambda name: beside[0].step(0.01)):
        family.add_one(grid.array(), grid.n)
    alone[0].step(0.01)
    for one, two in zip(alone, beside, strict=True):
        assert one.steps == two.steps
        assert (one.to_numpy("velocity") == two.to_numpy("velocity")).all()


# What is said


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass where a test says so."""
    now = [100.0]
    monkeypatch.setattr(waiting_module.time, "perf_counter", lambda: now[0])
    return now


def test_kernels_are_counted_until_somebody_else_has_had_time(clock):
    waiting = Waiting()
    assert waiting.sentence == ""
    for count in (1, 2, 3):
        waiting.begin("trace")
        assert waiting.sentence == f"compiling kernel {count}: trace"
        clock[0] += 10 * FORGOTTEN_SECONDS  # while it is compiled
    waiting.end()
    clock[0] += 0.5 * SHOWN_SECONDS
    assert waiting.sentence, "another one may follow"
    clock[0] += SHOWN_SECONDS
    assert waiting.sentence == ""
    waiting.begin("march")
    assert waiting.count == 4, "of the same wait"
    waiting.end()
    clock[0] += 1.1 * FORGOTTEN_SECONDS
    waiting.begin("march")
    assert waiting.count == 1


def told(console: Console, **options) -> None:
    grid = Grid((6, 6), 0.1)
    a, family = grid.array(), new_kernels()(grid.loops)
    with Waiting().told_on(console, **options):
        family.add_one(a, grid.n)
        family.add_two(a, grid.n)


def test_a_terminal_is_told_of_each_kernel_and_is_clean_afterwards():
    text = io.StringIO()
    told(Console(file=text, force_terminal=True, width=80))
    assert "compiling kernel 1: add_one" in text.getvalue()
    assert "compiling kernel 2: add_two" in text.getvalue()
    assert text.getvalue().endswith("\x1b[2K"), "the line goes again"


def test_a_line_that_is_there_is_used():
    text, shown = io.StringIO(), []
    told(Console(file=text, force_terminal=True), show=shown.append)
    assert shown == ["compiling kernel 1: add_one", "compiling kernel 2: add_two"]
    assert text.getvalue() == ""


def test_a_file_gets_a_line_now_and_then():
    text = io.StringIO()
    told(Console(file=text), show=None)
    assert text.getvalue() == "compiling kernel 1: add_one\n", "the second one came soon after"


# ``taichi-fluid warm``


def cached(folder: Path) -> list[str]:
    """The compiled kernels in a cache."""
    return sorted(path.name for path in folder.rglob("*.tic"))


def test_what_was_warmed_is_not_compiled_again(tmp_path):
    """By a recording in another process and another folder."""
    cache, work = tmp_path / "cache", tmp_path / "work"
    work.mkdir()
    done = run(["warm", "stable_fluids", "--arch", "cpu"], tmp_path, XDG_CACHE_HOME=str(cache))
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert any(line.startswith("compiling kernel 1: ") for line in lines)
    assert "stable_fluids on cpu" in lines[-1]
    before = cached(cache)
    assert len(before) > 10
    small = ["--frames", "2", "--set", "output.width=64", "--set", "output.height=64"]
    done = run(["demo", "stable_fluids", "--arch", "cpu", *small], work, XDG_CACHE_HOME=str(cache))
    assert done.returncode == 0, done.stderr
    assert cached(cache) == before, "nothing is new"


def test_a_scene_that_is_not_there_is_not_warmed(refuse, tmp_path):
    assert "did you mean 'plume'" in one_sentence(refuse("warm", "plum"))
    assert os.listdir(tmp_path) == []
