"""One Taichi arch for a whole test process: ``TI_TEST_ARCH``, ``cpu`` when left out.

Tests that must start Taichi again, or in another way, do so in a subprocess: ``ti.init`` frees everything there is.
Tests marked ``vulkan_too`` also run on Vulkan, in the subprocess that ``test_backends.py`` starts.
"""

import os

os.environ.setdefault("TI_SKIP_VERSION_CHECK", "ON")
os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")
# Under pytest's capture Taichi would route every launch through its print buffer, which costs more than the launch.
os.environ.setdefault("TI_ENABLE_PYBUF", "0")

import pytest
from hypothesis import settings

from taichi_fluid._ti import ti

# The same examples in every run, few of them, and no time limit: the first example of a kernel compiles it.
settings.register_profile("taichi", derandomize=True, deadline=None, max_examples=12, database=None)
settings.load_profile("taichi")


def pytest_configure(config):
    config.addinivalue_line("markers", "vulkan_too: also run on Vulkan, in a subprocess of test_backends.py")


@pytest.fixture(scope="session", autouse=True)
def arch() -> str:
    """Name of the arch that the whole process runs on."""
    name = os.environ.get("TI_TEST_ARCH", "cpu")
    ti.init(
        arch=getattr(ti, name), log_level=ti.ERROR, enable_fallback=False, random_seed=0, offline_cache=True
    )  # fmt: skip
    return name


@pytest.fixture(params=[2, 3], ids=["2D", "3D"])
def dim(request) -> int:
    """Number of axes."""
    return request.param
