"""The same on every backend and under every setting that a guest of ours may have given ``ti.init``.

Each case runs in a process of its own, as Taichi has one program in a process.
"""

import functools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scenes_for_tests import everything

import taichi_fluid as tf
from taichi_fluid import backend
from taichi_fluid.kernels.loops import GPU_THREADS, SOFTWARE_THREADS
from taichi_fluid.limits import ARCHS
from taichi_fluid.simulation import Simulation

HERE = Path(__file__).parent
ROOT = HERE.parent
ENVIRONMENT = {
    **os.environ,
    "TI_SKIP_VERSION_CHECK": "ON",
    "ENABLE_TAICHI_HEADER_PRINT": "0",
    "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE), os.environ.get("PYTHONPATH", "")]),
}


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Run Python in the root of the repository."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT, env={**ENVIRONMENT, **environment}, capture_output=True, text=True, timeout=1800,
    )  # fmt: skip


def printed(done: subprocess.CompletedProcess) -> list[str]:
    """All that a process has printed, but for the lines of ``ti.init``, and Taichi's where two end at once and write one cache."""
    lines = (done.stdout + done.stderr).splitlines()
    return [line for line in lines if not line.startswith("[Taichi] ") and "ticache.lock" not in line]


@functools.cache
def vulkan_problem() -> str:
    """Why Vulkan does not start here; empty if it does."""
    done = run(
        "-c",
        "from taichi_fluid._ti import ti; ti.init(arch=ti.vulkan, enable_fallback=False, log_level=ti.ERROR)\n"
        "a = ti.ndarray(ti.f32, 4); a.fill(1.0); print('sum', a.to_numpy().sum())",
    )
    return "" if done.returncode == 0 and "sum 4.0" in done.stdout else (done.stderr or done.stdout)[-500:]


def leave_out(lacking: str, said: str = "") -> None:
    """Skip a test for what is not installed here; in CI, where all is, fail, and tell what was said."""
    if os.environ.get("CI"):
        pytest.fail(f"{lacking}: {said}" if said else lacking)
    pytest.skip(lacking)


@pytest.fixture
def vulkan() -> None:
    """Skip where there is no driver; in CI, where one is installed, fail."""
    if vulkan_problem():
        message = "no Vulkan driver starts here (Debian and Ubuntu: apt-get install mesa-vulkan-drivers)"
        leave_out(message, vulkan_problem())


@pytest.fixture(scope="module")
def step_of(tmp_path_factory):
    """Fields after one step of a plume, by arch and options of ``ti.init``; each computed once."""
    folder = tmp_path_factory.mktemp("steps")

    @functools.cache
    def compute(dim: int, arch: str, *options: str) -> dict[str, np.ndarray]:
        out = folder / ("_".join([str(dim), arch, *options]) + ".npz")
        done = run("-m", "one_step", str(out), str(dim), arch, *options)
        assert done.returncode == 0, done.stdout + done.stderr
        if arch == "cpu":
            assert printed(done) == []
        with np.load(out) as fields:
            return dict(fields)

    return compute


def largest_difference(found, expected) -> dict[str, float]:
    """Largest difference of each field relative to its largest value; a NaN counts as infinite."""
    out = {}
    for name, values in expected.items():
        difference = np.abs(found[name] - values).max() / np.abs(values).max()
        out[name] = float(difference) if np.isfinite(difference) else np.inf
    return out


SOFTWARE_REMARK = """
import sys, time, warnings
from scenes_for_tests import scene
from taichi_fluid import backend
from taichi_fluid._ti import ti
from taichi_fluid.kernels import loop_shape
from taichi_fluid.simulation import Simulation
if sys.argv[1] == "start":
    backend.start("vulkan")
else:
    ti.init(arch=getattr(ti, sys.argv[1]), log_level=ti.ERROR, enable_fallback=False)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(2):
        Simulation(scene((5, 4)))
for warning in caught:
    print("warned", warning.filename, warning.message)
start = time.perf_counter()
devices = backend.vulkan_devices()
print("took", time.perf_counter() - start, devices)
print("threads", loop_shape(2).threads)
"""


@pytest.mark.parametrize("started", ["vulkan", "start", "cpu"])
def test_a_software_device_is_remarked_once_and_only_where_it_was_not_chosen(vulkan, started):
    done = run("-c", SOFTWARE_REMARK, started)
    assert done.returncode == 0, done.stdout + done.stderr
    warned = [line for line in done.stdout.splitlines() if line.startswith("warned")]
    # What Taichi's own log says of the device that it takes.
    software = not backend.starts("vulkan", hardware=True)
    if started == "vulkan" and software:
        assert len(warned) == 1 and warned[0].startswith("warned <string>"), "said where the simulation is built"
        assert "ti.init(arch=ti.cpu)" in warned[0] and "taichi_fluid.backend.start()" in warned[0]
        assert backend.SOFTWARE.search(warned[0])
    else:
        assert not warned
    assert "took" in done.stdout and "[VulkanDevice(" in done.stdout, "a driver that starts has a device"
    if started != "cpu":
        # A processor that plays a GPU begins each of the threads of a loop in turn.
        assert f"threads {SOFTWARE_THREADS if software else GPU_THREADS}" in done.stdout


@pytest.mark.parametrize(
    ("devices", "visible", "name"),
    [
        ([], None, ""),
        ([("llvmpipe", 4)], None, "llvmpipe"),
        ([("llvmpipe", 4), ("NVIDIA H200", 2)], None, ""),
        ([("llvmpipe", 4), ("NVIDIA H200", 2)], "0", "llvmpipe"),
        ([("llvmpipe", 4), ("NVIDIA H200", 2)], "1", ""),
        ([("Intel", 1)], "7", ""),
        ([("llvmpipe", 4)], "none", "llvmpipe"),
    ],
)
def test_a_software_device_is_one_that_no_other_stands_beside(monkeypatch, devices, visible, name):
    monkeypatch.delenv("TI_VISIBLE_DEVICE", raising=False)
    if visible is not None:
        monkeypatch.setenv("TI_VISIBLE_DEVICE", visible)
    assert backend.software_device([backend.VulkanDevice(*device) for device in devices]) == name


def test_a_vulkan_device_has_a_driver_and_memory(vulkan):
    devices = backend.vulkan_devices()
    assert devices
    for device in devices:
        assert device.driver.count(".") >= 1
        assert device.memory > 2**26


@pytest.mark.parametrize(("devices", "name"), [([], ""), (["AMD"], "AMD"), (["AMD", "llvmpipe"], "")])
def test_one_vulkan_device_has_its_name_and_of_two_the_log_says_which(monkeypatch, devices, name):
    monkeypatch.setattr(backend, "vulkan_devices", lambda: [backend.VulkanDevice(device, 2) for device in devices])
    assert backend.device_name("vulkan") == name
    assert backend.device_name("vulkan", "Found Vulkan Device 1 (Intel)") == "Intel"


def test_without_a_vulkan_loader_there_is_no_device(monkeypatch):
    for loaders in ({}, dict.fromkeys(("linux", "win32", "darwin"), "no_such_library")):
        monkeypatch.setattr(backend, "VULKAN_LOADERS", loaders)
        assert backend.vulkan_devices() == []


def test_vulkan_and_cpu_agree_after_one_step(vulkan, step_of, dim):
    differences = largest_difference(step_of(dim, "vulkan"), step_of(dim, "cpu"))
    # f32 on both; what differs is the order of sums and the rounding of square roots and divisions.
    assert max(differences.values()) <= 5e-6, differences


@pytest.mark.parametrize(
    ("options", "off"),
    [
        (("default_fp=f64", "default_ip=i64"), 0.0),
        # Measured 1.2e-6 (velocity): with either LLVM orders the sums otherwise.
        (("debug=True",), 3e-6),
        (("cfg_optimization=True", "opt_level=1"), 3e-6),
    ],
    ids=["wide", "debug", "default"],
)
def test_a_guest_may_have_started_taichi_otherwise(step_of, dim, options, off):
    """In our kernels a number is of 32 bits whatever the user of ``ti.init`` chose, and ``debug`` checks every index.

    The last are what those have who ask for nothing.
    """
    differences = largest_difference(step_of(dim, "cpu", *options), step_of(dim, "cpu"))
    assert max(differences.values()) <= off, differences


OPTIONS = """
from scenes_for_tests import scene
from taichi_fluid import backend
from taichi_fluid._ti import impl, ti
from taichi_fluid.simulation import Simulation
for begin in (
    lambda: backend.start("cpu"),
    lambda: backend.start("cpu", cfg_optimization=True, opt_level=1),
    lambda: ti.init(arch=ti.cpu, log_level=ti.ERROR),
):
    begin()
    Simulation(scene((5, 4)))
    print(impl.current_cfg().cfg_optimization, impl.current_cfg().opt_level)
"""


def test_our_own_start_takes_the_recommended_options_and_a_guests_is_left_alone():
    """Whoever asks for another value gets it, and whoever has called ``ti.init`` keeps Taichi's own."""
    options = {"cfg_optimization": False, "opt_level": 0, "num_compile_threads": 1}
    measured = {"cpu", "cuda", "vulkan"}
    assert (
        all(backend.recommended_options(arch) == options for arch in measured)
        and backend.recommended_options() == options
    )
    assert all(backend.recommended_options(arch) == {} for arch in set(ARCHS) - measured), "nobody has measured there"
    done = run("-c", OPTIONS)
    assert (done.returncode, printed(done)) == (0, ["False 0", "True 1", "True 1"]), done.stderr


PROCESSORS = """
import os, sys
from taichi_fluid import backend
given = set(map(int, sys.argv[2].split(",")))
os.sched_setaffinity(0, given)
for _ in range(2):
    backend.start("cpu", cpu_max_num_threads=int(sys.argv[1]))
    where = [os.sched_getaffinity(thread) for thread in map(int, os.listdir("/proc/self/task"))]
    print(sorted(min(set_of) for set_of in where if len(set_of) < len(given)), os.sched_getaffinity(0) == given)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are bound on Linux alone")
def test_each_thread_that_computes_has_a_processor_of_its_own_where_there_is_one_for_each():
    """And the thread that launches has all; where there are more threads than processors, or fewer, none is bound."""
    two = sorted(os.sched_getaffinity(0))[:2]
    assert len(two) == 2, "bound threads want two processors"
    for threads, bound in (2, two), (1, []), (3, []):
        done = run("-c", PROCESSORS, str(threads), ",".join(map(str, two)))
        assert (done.returncode, printed(done)) == (0, [f"{bound} True"] * 2), (threads, done.stderr)


EVERY_VIEW = """
import sys
from scenes_for_tests import everything
from taichi_fluid import backend
from taichi_fluid._ti import ti
options = dict(option.split("=") for option in sys.argv[3:])
options = {key: getattr(ti, value, True) for key, value in options.items()}
ti.init(arch=ti.cpu, enable_fallback=False, **backend.recommended_options(), **options)
import numpy as np
import taichi_fluid as tf
scene = everything(int(sys.argv[1]))
simulation = tf.Simulation(scene)
simulation.step()
simulation.step()
simulation.divergence()
np.save(sys.argv[2], simulation.to_numpy("smoke"))
for view in ("volume", "slice", "sheets", "arrows", "tracers"):
    simulation.scene = scene.with_values({"look.view": view})
    assert tf.Renderer(simulation, 64, 64).render().std() > 3, view
"""
"""A step of everything and every picture, started as anybody may start Taichi; what it carries goes into a file."""


@pytest.mark.parametrize(
    ("dim", "options"), [(2, ["debug=True"]), (3, ["default_fp=f64", "default_ip=i64"])], ids=["debug", "wide"]
)
def test_solids_and_every_view_work_and_print_nothing(dim, options, tmp_path, plain_smoke):
    """No word on precision or overflow reaches the terminal of somebody who has only built a flow of ours in."""
    out = tmp_path / "smoke.npy"
    done = run("-c", EVERY_VIEW, str(dim), str(out), *options)
    assert done.returncode == 0, done.stderr[-2000:]
    assert printed(done) == []
    if dim == 2:
        # Patches of a hash too; measured as above, and a hash of other bits would be half of the smoke.
        assert np.abs(np.load(out) - plain_smoke).max() <= 3e-6 * np.abs(plain_smoke).max()


def liquids(names: str) -> dict[str, np.ndarray]:
    """A few steps and every picture of presets that hold a liquid, in this process."""
    found = {}
    for name in names.split(","):
        scene = tf.preset(name).with_values({"domain.resolution": 16, "liquid.foam": 1.0})
        simulation = Simulation(scene)
        for _ in range(4):
            simulation.step()
        found |= {f"{name} {each}": simulation.to_numpy(each) for each in ("velocity", "pressure", "level set")}
        found |= {f"{name} {key}": values for key, values in simulation.liquid.particles.to_numpy().items()}
        for view in ("surface", "slice", "arrows"):
            simulation.scene = scene.with_values({"look.view": view})
            found[f"{name} {view}"] = tf.Renderer(simulation, 48, 48).render()
        if simulation.grid.dim == 3:
            found[f"{name} mesh"], _ = tf.surface_mesh(simulation)
    return found


LIQUIDS = """
import sys
import warnings
from taichi_fluid import backend
from taichi_fluid._ti import ti
out, names = sys.argv[1:3]
options = {key: getattr(ti, value, True) for key, value in (option.split("=") for option in sys.argv[3:])}
ti.init(arch=ti.cpu, enable_fallback=False, **backend.recommended_options(), **options)
import numpy as np
from test_backends import liquids
warnings.simplefilter("error")
np.savez(out, **liquids(names))
"""
"""``liquids`` into a file, started as anybody may start Taichi."""


@pytest.mark.parametrize("names", ["dam2d", "dam,splash,pour,paddle,slosh,honey,crown"], ids=["2D", "3D"])
def test_liquids_are_the_same_for_a_guest_of_wide_numbers(tmp_path, names):
    """With foam and, in 3D, their surface as triangles; no word reaches the terminal, and no warning is given."""
    out = tmp_path / "found.npz"
    done = run("-c", LIQUIDS, str(out), names, "default_ip=i64", "default_fp=f64", "flatten_if=True")
    assert done.returncode == 0, done.stderr[-2000:]
    assert printed(done) == []
    with np.load(out) as arrays:
        wide = dict(arrays)
    plain = liquids(names)
    assert all(
        plain[f"{name} {view}"].std() > 3 for name in names.split(",") for view in ("surface", "slice", "arrows")
    )
    for name, values in plain.items():
        assert np.array_equal(wide[name], values, equal_nan=True), name


@pytest.fixture(scope="module")
def plain_smoke():
    """The smoke after two steps of everything in 2D, in this process."""
    simulation = Simulation(everything(2))
    simulation.step()
    simulation.step()
    return simulation.to_numpy("smoke")


def test_the_comparison_notices_a_hundred_thousandth(step_of):
    """Sabotage: fields scaled by 1.00001, and a NaN, fail."""
    fields = step_of(2, "cpu")
    off = {name: values * 1.00001 for name, values in fields.items()}
    assert max(largest_difference(off, fields).values()) > 5e-6
    assert largest_difference({**fields, "smoke": fields["smoke"] * np.nan}, fields)["smoke"] == np.inf


def test_a_simulation_from_before_a_new_start_says_so():
    """Using its arrays would end the process or read freed memory."""
    done = run(
        "-c",
        "from scenes_for_tests import plume\n"
        "from taichi_fluid import backend\n"
        "from taichi_fluid._ti import ti\n"
        "from taichi_fluid.render.renderer import Renderer\n"
        "from taichi_fluid.simulation import Simulation\n"
        "start = lambda: ti.init(arch=ti.cpu, log_level=ti.ERROR, **backend.recommended_options())\n"
        "start(); old = Simulation(plume(2, 8)); old.step()\n"
        "for again in (start, ti.reset):\n"
        "    again()\n"
        "    for use in (old.step, lambda: old.advance(0.1), lambda: old.to_numpy('smoke'), old.check,\n"
        "                lambda: old.diagnostics.integral(old.state.pressure), lambda: Renderer(old, 16, 16)):\n"
        "        try: use(); print('went through')\n"
        "        except RuntimeError as error: print('refused', 're-initialised' in str(error))\n"
        "start(); new = Simulation(plume(2, 8)); new.step(); print('a new one works')\n",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("refused True") == 12, done.stdout
    assert "a new one works" in done.stdout


def test_diagnostics_from_before_a_new_start_say_so():
    """Those that write a picture too: the renderer calls them."""
    done = run(
        "-c",
        "from taichi_fluid._ti import ti\n"
        "from taichi_fluid.simulation.diagnostics import Diagnostics\n"
        "from taichi_fluid.grid import Grid\n"
        "start = lambda: ti.init(arch=ti.cpu, log_level=ti.ERROR)\n"
        "start(); grid = Grid((4, 4), 1.0); measure = Diagnostics(grid); u, a = grid.velocity(), grid.array()\n"
        "start()\n"
        "for use in (lambda: measure.largest_magnitude(a), lambda: measure.integral(a), lambda: measure.divergence(u),\n"
        "            lambda: measure.kinetic_energy(u), lambda: measure.compute_speed(u, a),\n"
        "            lambda: measure.compute_divergence(u, a), lambda: measure.compute_vorticity(u, a)):\n"
        "    try: use(); print('went through')\n"
        "    except RuntimeError as error: print('refused', 're-initialised' in str(error))\n",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("refused True") == 7, done.stdout


def test_a_simulation_before_taichi_runs_says_what_to_call():
    done = run(
        "-c",
        "from scenes_for_tests import plume\n"
        "from taichi_fluid.simulation import Simulation\n"
        "try: Simulation(plume(2, 8))\n"
        "except RuntimeError as error: print(error)\n",
    )
    assert done.returncode == 0, done.stderr
    assert "ti.init" in done.stdout


RESUMED = """
import sys
import numpy as np
import taichi_fluid as tf
from taichi_fluid import backend
backend.start("vulkan")
simulation = tf.load(sys.argv[1])
for _ in range(5):
    simulation.step(0.005)
np.savez(sys.argv[2], **{each.name: simulation.to_numpy(each.name) for each in simulation.state.quantities()})
"""


@pytest.mark.parametrize("flow", ["plume2d", "dam2d"])
def test_what_the_cpu_has_written_goes_on_under_vulkan(vulkan, flow, tmp_path):
    """Not bit for bit, as devices round in their own ways: as near as after as many steps from time 0."""
    scene = tf.preset(flow).with_values({"domain.resolution": 24, "solver.tolerance": 1e-6})
    simulation = Simulation(scene)
    for _ in range(10):
        simulation.step(0.005)
    path = tf.save(simulation, tmp_path / "flow.checkpoint")
    for _ in range(5):
        simulation.step(0.005)
    done = run("-c", RESUMED, str(path), str(tmp_path / "there.npz"))
    assert done.returncode == 0, done.stdout + done.stderr
    expected = {each.name: simulation.to_numpy(each.name) for each in simulation.state.quantities()}
    with np.load(tmp_path / "there.npz") as found:
        assert max(largest_difference(found, expected).values()) < 2e-4
