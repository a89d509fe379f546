"""Machine code for NVIDIA's GPUs, made where there is none: what LLVM cannot make ends the process, on the user's machine too."""

import shutil
import subprocess

import pytest
from test_backends import HERE, leave_out, run

KNOWN = "fill_ghosts", "predict", "compute_weight", "smooth_and_restrict", "iterate_summed", "burn", "gather"
"""Kernels of which there must be some: of every flow, beside solids, of the pressure, of a flame and of a liquid."""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """The folder of a driver that launches nothing."""
    compiler = shutil.which("cc")
    if compiler is None:
        leave_out("no C compiler (Debian and Ubuntu: apt-get install gcc libc6-dev)")
    folder = tmp_path_factory.mktemp("driver")
    source, library = HERE / "cuda_without_a_gpu.c", folder / "libcuda.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    (folder / "libcuda.so.1").symlink_to(library)
    return folder


def test_every_kernel_of_a_flow_becomes_machine_code(driver, tmp_path):
    """A wake (solids, 2D), a liquid and a fire in 3D: before this the first two ended the process on a real GPU."""
    kernels = tmp_path / "kernels.txt"
    done = run(
        str(HERE / "warm_for_cuda.py"), "karman", "dam2d", "fire",
        LD_LIBRARY_PATH=str(driver), XDG_CACHE_HOME=str(tmp_path), KERNELS=str(kernels),
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    made = kernels.read_text()
    assert [name for name in KNOWN if f"{name}_c" not in made] == []
