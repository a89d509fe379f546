"""The doctor: does it see what is right, what is wrong, and what does not start."""

import ctypes
import json
import os
import struct
import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
from reference import table

from taichi_fluid import backend
from taichi_fluid._ti import ti
from taichi_fluid.app import commands, devices, doctor, selftest
from taichi_fluid.bench import runs
from taichi_fluid.limits import MAX_ARRAY_BYTES
from taichi_fluid.physics.advection import Trace
from taichi_fluid.scene import preset
from taichi_fluid.scene.memory import bytes_needed, bytes_of_largest_array
from taichi_fluid.simulation import Simulation
from taichi_fluid.simulation.diagnostics import Diagnostics
from taichi_fluid.validation import Run

KINDS = [(dim, method) for dim in (2, 3) for method in doctor.METHODS]
NO_CUDA = {"CUDA_VISIBLE_DEVICES": "-1"}
"""Hides every CUDA device there may be."""


@pytest.mark.vulkan_too
@pytest.mark.parametrize(("dim", "method"), KINDS)
def test_normoyle_is_as_printed(dim, method):
    """The numbers of the page, cell order (0,0), (0,1), (1,0), (1,1); its own list has x fastest."""
    found = doctor.normoyle(dim, method)
    u, v = np.zeros((3, 2)), np.zeros((2, 3))
    u[1, 0], u[1, 1], v[0, 1], v[1, 1] = -0.225, 0.225, 0.225, -0.225
    advected = np.zeros((2, 3))
    advected[0, 1] = 0.9
    expected = {
        "advected": advected, "u": u, "v": v,
        "rhs": np.array([[-9.0, 9.0], [0.0, 0.0]]), "pressure": np.array([[-3.375, 3.375], [-1.125, 1.125]]),
    }  # fmt: skip
    assert set(found) == {*expected, *(["w"] if dim == 3 else [])}
    for name, values in expected.items():
        # A handful of f32 operations, each good to 6e-8; the sums of the solver a few more.
        np.testing.assert_allclose(found[name], values.ravel(), rtol=0, atol=1e-6 * np.abs(values).max(), err_msg=name)
    if dim == 3:
        assert found["w"] == [0.0] * 8, "nothing moves along the third axis, exactly"


@pytest.mark.parametrize(
    # One step of 0.1 s over a velocity that falls from 1 to 0 in one cell, by hand.
    ("trace", "by_hand"), [(Trace.EULER, 0.9), (Trace.RK2, 0.905), (Trace.RK3, 0.904833)]
)  # fmt: skip
def test_each_trace_carries_what_it_should(dim, trace, by_hand):
    advected = doctor.normoyle(dim, "multigrid", trace)["advected"]
    assert advected[1] == pytest.approx(by_hand, abs=5e-7), "six printed digits"
    assert np.count_nonzero(advected) == 1


def test_the_printed_numbers_are_those_of_the_reference_table():
    """``refdata/normoyle_2x2x1.csv`` holds them by name."""
    text = " ".join(" ".join(row) for row in table("normoyle_2x2x1.csv"))
    for values in doctor.PRINTED.values():
        for value in values:
            assert f"{value:g}" in text or value == 0


@pytest.mark.vulkan_too
@pytest.mark.parametrize(("dim", "method"), KINDS)
def test_the_error_is_that_of_f32(dim, method):
    assert doctor.normoyle_error(dim, method) <= doctor.TOLERANCE


@pytest.mark.parametrize("name", sorted(doctor.PRINTED))
def test_a_wrong_number_is_noticed(dim, monkeypatch, name):
    wrong = list(doctor.PRINTED[name])
    place = int(np.argmax(np.abs(wrong)))
    wrong[place] *= 1 + 1e-4
    monkeypatch.setitem(doctor.PRINTED, name, wrong)
    assert doctor.normoyle_error(dim, "multigrid") > 10 * doctor.TOLERANCE


@pytest.mark.parametrize("trace", list(Trace))
def test_a_wrong_trace_is_noticed(dim, monkeypatch, trace):
    monkeypatch.setitem(doctor.ADVECTED, trace, doctor.ADVECTED[trace] + 1e-4)
    assert doctor.normoyle_error(dim, "multigrid") > 10 * doctor.TOLERANCE


def test_a_nan_is_noticed(monkeypatch):
    """``max`` of Python may drop a NaN; the doctor must not call it right."""
    real = doctor.normoyle

    def spoilt(*arguments):
        return {name: [float("nan")] * len(values) for name, values in real(*arguments).items()}

    monkeypatch.setattr(doctor, "normoyle", spoilt)
    assert not doctor.normoyle_error(2, "multigrid") <= doctor.TOLERANCE


@pytest.mark.parametrize("name", ["rhs", "pressure", "u", "v", "w", "advected"])
def test_a_nan_in_one_quantity_is_noticed(monkeypatch, name):
    real = doctor.normoyle

    def spoilt(*arguments):
        found = real(*arguments)
        return {**found, name: [float("nan")] * len(found[name])}

    monkeypatch.setattr(doctor, "normoyle", spoilt)
    assert not doctor.normoyle_error(3, "multigrid") <= doctor.TOLERANCE


# In a process of its own


@pytest.fixture(scope="module")
def cpu():
    return doctor.examine("cpu")


def test_the_cpu_is_right_and_has_a_name(cpu):
    assert cpu["starts"] is True
    assert cpu["right"] is True
    assert 0 <= cpu["error"] <= doctor.TOLERANCE
    assert "threads" in cpu["device"]
    assert cpu["note"] == ""
    assert json.loads(json.dumps(cpu, allow_nan=False)) == cpu


def test_an_arch_without_its_device_is_reported_and_raises_nothing(monkeypatch):
    for key, value in NO_CUDA.items():
        monkeypatch.setenv(key, value)
    finding = doctor.examine("cuda")
    assert (finding["starts"], finding["right"], finding["error"]) == (False, None, None)
    assert len(finding["note"]) > 10
    assert "\n" not in finding["note"]


def test_taichis_own_variable_does_not_pass_one_arch_off_as_another(monkeypatch):
    """``TI_ARCH`` overrules what ``ti.init`` is told; what ran on the CPU is no finding on CUDA."""
    for key, value in NO_CUDA.items():
        monkeypatch.setenv(key, value)
    monkeypatch.setenv("TI_ARCH", "x64")
    assert doctor.examine("cuda")["starts"] is False


def test_an_arch_of_another_system_is_reported_without_trying(monkeypatch):
    monkeypatch.setattr(subprocess, "run", None)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    assert "macOS" in doctor.examine("metal")["note"]
    assert "display" in doctor.examine("opengl")["note"]


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "ended the process"),
        ("raise ImportError('libX11.so.6: cannot open shared object file')", "libX11"),
        ("print('a driver says hello'); raise SystemExit(3)", "does not start"),
    ],
)
def test_a_driver_that_ends_the_process_ends_only_that_one(tmp_path, monkeypatch, source, words):
    """A package called taichi that behaves as a bad driver does."""
    (tmp_path / "taichi").mkdir()
    (tmp_path / "taichi" / "__init__.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")])))
    finding = doctor.examine("vulkan")
    assert (finding["starts"], finding["right"]) == (False, None)
    assert words in finding["note"]
    assert "\n" not in finding["note"]


def test_a_backend_that_never_answers_is_given_up(monkeypatch):
    def late(*arguments, **options):
        raise subprocess.TimeoutExpired(arguments[0], options["timeout"])

    monkeypatch.setattr(subprocess, "run", late)
    assert "did not answer" in doctor.examine("vulkan")["note"]


SPOILT = """
import runpy
from taichi_fluid.pressure.projection import Projection
project = Projection.project
def spoil(self, velocity, *arguments, **options):
    result = project(self, velocity, *arguments, **options)
    velocity.fill(float("nan"))
    return result
Projection.project = spoil
runpy.run_module("taichi_fluid.app.doctor", run_name="__main__", alter_sys=True)
"""


def test_a_backend_that_computes_nan_is_wrong_and_fits_into_json(monkeypatch):
    """As a broken driver may: the velocity is NaN after the projection."""
    run = subprocess.run

    def run_spoilt(command, **options):
        return run([sys.executable, "-c", SPOILT, *command[3:]], **options)

    monkeypatch.setattr(subprocess, "run", run_spoilt)
    finding = doctor.examine("cpu")
    assert finding["starts"] is True, finding["note"]
    assert finding["right"] is False
    json.dumps(finding, allow_nan=False)


# The command


RIGHT = {"arch": "cpu", "starts": True, "right": True, "error": 1e-7, "device": "a processor", "note": ""}
RIGHT |= {"driver": "570.1", "memory": 2**31, "largest": {"plume": 99}, "remedy": ""}
WRONG = {**RIGHT, "right": False, "error": 0.5}
ABSENT = {
    **RIGHT,
    "starts": False,
    "right": None,
    "error": None,
    "device": "",
    "note": "no driver",
    "remedy": "Install one.",
}


def run_doctor(monkeypatch, tmp_path, findings) -> int:
    """Exit status of the command for made-up findings, arch by arch; the last one for all that remain."""
    queue = list(findings)
    monkeypatch.setattr(
        doctor, "examine", lambda arch: {**(queue.pop(0) if len(queue) > 1 else queue[0]), "arch": arch}
    )
    with pytest.raises(SystemExit) as caught:
        commands.main(["doctor", "--json", str(tmp_path / "findings.json")])
    return caught.value.code or 0


@pytest.mark.parametrize(
    ("findings", "status"),
    [([RIGHT, ABSENT], 0), ([RIGHT, WRONG, ABSENT], 1), ([ABSENT], 1), ([RIGHT], 0)],
    ids=["one right", "one wrong", "none starts", "all right"],
)
def test_the_status_says_whether_what_starts_is_right(monkeypatch, tmp_path, capsys, findings, status):
    assert run_doctor(monkeypatch, tmp_path, findings) == status
    printed = capsys.readouterr().out
    written = json.loads((tmp_path / "findings.json").read_text())["backends"]
    assert [finding["arch"] for finding in written] == ["cuda", "vulkan", "metal", "opengl", "cpu"]
    for finding in written:
        assert finding["arch"] in printed
    assert f"taichi {'.'.join(map(str, ti.__version__))}" in printed, "a report to paste says of what"
    assert ("570.1, 2 GiB, holds plume at 99 cells" in printed) == (RIGHT in findings or WRONG in findings)
    assert ("no driver" in printed) == ("Install one." in printed) == (ABSENT in findings)
    assert ("WRONG" in printed) == (WRONG in findings)
    assert os.listdir(tmp_path) == ["findings.json"]


def test_a_library_that_is_not_there_is_said_to_be_missing(monkeypatch, tmp_path, capsys):
    """Not even this project need be installed: a tree that lies on the path will do."""

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(runs, "version", missing)
    run_doctor(monkeypatch, tmp_path, [RIGHT])
    assert "no taichi_fluid, " in (said := capsys.readouterr().out) and ", no scipy, " in said


# What it runs on, what fits, what helps


def test_the_cpu_says_what_it_holds(cpu):
    assert cpu["memory"] is None or cpu["memory"] > 2**28
    for name in ("plume", "plume2d"):
        assert 64 < cpu["largest"][name] <= 8192
    assert cpu["remedy"] == ""


@pytest.mark.parametrize("name", devices.LARGEST)
@pytest.mark.parametrize("memory", [2**26, 2**30, 2**34, None])
def test_the_largest_grid_fits_and_the_next_one_does_not(name, memory):
    scene = preset(name)
    found = devices.largest(scene, memory)

    def fits(cells):
        larger = scene.with_values({"domain.resolution": cells})
        small_enough = memory is None or bytes_needed(larger) <= memory
        return small_enough and bytes_of_largest_array(larger) <= MAX_ARRAY_BYTES

    assert fits(found)
    assert found == 8192 or not fits(found + 1)


def test_what_never_fits_has_no_largest_grid():
    assert devices.largest(preset("plume"), 1000) == 0


def test_a_gpu_is_asked_for_its_driver_and_memory(monkeypatch):
    def said(command, **options):
        names = {"name": "NVIDIA H200", "driver_version,memory.total": "570.86.15, 143771"}
        field = command[1].removeprefix("--query-gpu=")
        return subprocess.CompletedProcess(command, 0, names[field] + "\n", "")

    monkeypatch.setattr(subprocess, "run", said)
    assert devices.device_of("cuda") == ("NVIDIA H200", "570.86.15", 143771 * 2**20)
    monkeypatch.setattr(subprocess, "run", lambda command, **options: subprocess.CompletedProcess(command, 9, "", "no"))
    assert devices.device_of("cuda") == ("", "", None)


@pytest.mark.parametrize(
    ("number", "vendor", "system", "version"),
    [
        (535 << 22 | 129 << 14 | 3 << 6, backend.NVIDIA, "linux", "535.129.3"),
        (101 << 14 | 2115, backend.INTEL, "win32", "101.2115"),
        (22 << 22 | 3 << 12 | 6, backend.INTEL, "linux", "22.3.6"),
        (24 << 22 | 0 << 12 | 1, 0x1002, "linux", "24.0.1"),
    ],
)
def test_versions_of_drivers_are_unpacked_as_their_makers_pack_them(monkeypatch, number, vendor, system, version):
    monkeypatch.setattr(sys, "platform", system)
    assert backend._version(number, vendor) == version


def test_the_memory_of_a_device_is_its_largest_own_heap():
    """Three heaps: of the machine's memory, its own, and the window through which the processor sees that."""
    raw = struct.pack("=260xI", 3) + b"".join(struct.pack("=QII", *heap, 0) for heap in ((64, 0), (24, 1), (2, 1)))
    assert backend._largest_heap(ctypes.create_string_buffer(raw)) == 24
    assert backend._largest_heap(ctypes.create_string_buffer(264)) == 0


@pytest.mark.parametrize("system", ["linux", "win32", "darwin"])
@pytest.mark.parametrize("arch", ["cuda", "vulkan", "metal", "opengl"])
def test_each_backend_that_does_not_start_has_a_remedy_on_each_system(monkeypatch, arch, system):
    monkeypatch.setattr(sys, "platform", system)
    assert bool(devices.remedy(arch)) == (arch != "metal" or system == "darwin"), "there is none: it is only on macOS"


def test_what_drivers_say_becomes_a_sentence(monkeypatch):
    assert devices.reason("RuntimeError: Arch=[<Arch.cuda: 3>] is not supported").startswith("Taichi has found no")
    assert "libX11.so.6 is missing" in devices.reason(
        "ImportError: libX11.so.6: cannot open shared object file: No such"
    )
    assert "old" in devices.reason("[E] CUDA_ERROR_INSUFFICIENT_DRIVER: CUDA driver version is insufficient")
    assert "memory" in devices.reason("CUDA_ERROR_OUT_OF_MEMORY: out of memory")
    assert devices.reason("something else") == ""
    assert "your GPU" in devices.remedy("vulkan", "llvmpipe (LLVM 15)")
    assert devices.remedy("vulkan", "NVIDIA H200") == ""


# Its longer test


@pytest.mark.vulkan_too
@pytest.mark.parametrize("part", [selftest.reductions, selftest.not_finite])
def test_a_part_of_the_self_test_holds(part):
    run = Run(0)
    part(run)
    assert run.rows
    assert [row for row in run.rows if not row.holds] == []


def test_sums_that_are_wrong_are_noticed(monkeypatch):
    run, right = Run(0), Diagnostics.integral
    monkeypatch.setattr(Diagnostics, "integral", lambda self, array: right(self, array) * (1 + 1e-5))
    selftest.reductions(run)
    assert [row.holds for row in run.rows] == [False, True] * 2


def test_what_is_not_finite_and_not_noticed_is_counted(monkeypatch):
    run = Run(0)
    monkeypatch.setattr(Simulation, "check", lambda self: 0.0)
    selftest.not_finite(run)
    assert run.rows[0].found == 27, "three quantities, places and values"


def test_a_field_that_differs_is_named():
    run, expected = Run(0), {"smoke": np.ones(3), "velocity": np.full(3, 5.0)}
    selftest.beside(run, {"smoke": np.ones(3), "velocity": np.array([5.0, 5.0, 5.1])}, expected)
    selftest.beside(run, {"smoke": np.array([1.0, np.nan, 1.0]), "velocity": np.full(3, 5.0)}, expected)
    assert [row.holds for row in run.rows] == [True, False, False, True]
    assert "velocity" in run.rows[1].quantity
    assert run.rows[1].found == pytest.approx(0.02)


@pytest.mark.parametrize("pace", [0.01, 1.0])
def test_published_cases_hold_on_a_slow_device_in_few_steps(monkeypatch, tmp_path, pace):
    monkeypatch.setattr(selftest, "fields", lambda: ({"smoke": np.ones(3)}, pace))
    monkeypatch.setattr(selftest, "not_finite", lambda run: None)
    runs = {}
    for name, measure, run in selftest.parts(tmp_path / "fields.npz"):
        measure(run)
        runs[name] = run
        assert [row for row in run.rows if not row.holds] == []
    assert list(runs)[-2:] == ["taylor-green", "cavity-100"]
    assert len(runs["taylor-green"].rows) == 4
    assert len(runs["cavity-100"].rows) == 5
    made = sum(run.steps for run in runs.values())
    assert made < 100 if pace > selftest.SLOW else made > 300, "each takes half a second or more in software"


QUICK = """
import sys
from taichi_fluid.app import selftest
from taichi_fluid.validation import Run
parts = {"reductions": selftest.reductions, "an accident": lambda run: 1 / 0}
selftest.parts = lambda file: [(name, measure, Run(0)) for name, measure in parts.items()]
selftest._answer(sys.argv[1], sys.argv[2])
"""


def test_a_self_test_that_breaks_off_keeps_what_it_has_found(monkeypatch, tmp_path):
    run = subprocess.run

    def run_quick(command, **options):
        return run([sys.executable, "-c", QUICK, *command[3:]], **options)

    monkeypatch.setattr(subprocess, "run", run_quick)
    found = selftest.tested("cpu", tmp_path / "fields.npz")
    assert {row["part"] for row in found["rows"]} == {"reductions"}
    assert "ZeroDivisionError" in found["problem"]
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(
    ("holds", "problem", "status"), [(True, "", 0), (False, "", 1), (True, "ended with status 1: why", 1)]
)
def test_the_command_prints_the_self_tests_and_ends_as_they_do(monkeypatch, tmp_path, capsys, holds, problem, status):
    row = {"part": "sums", "quantity": "of cells", "found": None, "reference": "at most 1", "holds": holds}
    monkeypatch.setattr(doctor, "examine", lambda arch: {**(RIGHT if arch == "cpu" else ABSENT), "arch": arch})
    monkeypatch.setattr(selftest, "tested", lambda arch, file: {"arch": arch, "rows": [row], "problem": problem})
    with pytest.raises(SystemExit) as caught:
        commands.main(["doctor", "--full", "--json", str(tmp_path / "findings.json")])
    assert (caught.value.code or 0) == status
    assert [test["arch"] for test in json.loads((tmp_path / "findings.json").read_text())["tests"]] == ["cpu"]
    told = capsys.readouterr()
    assert "not finite" in told.out
    assert problem in told.err
