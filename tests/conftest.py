"""One Taichi arch for a whole test process: ``TI_TEST_ARCH``, ``cpu`` when left out.

Tests that must start Taichi again, or in another way, do so in a subprocess: ``ti.init`` frees everything there is.
Tests marked ``vulkan_too`` also run on Vulkan, in the subprocesses that ``test_vulkan.py`` starts; those of whole steps in
one dimension, ``vulkan_too(dim=2)``, as a step of another one takes half a minute to compile there. What takes longest is
marked ``slow``, which ``python -m pytest`` leaves out.
"""

import os
import signal
from types import SimpleNamespace

os.environ.setdefault("TI_SKIP_VERSION_CHECK", "ON")
os.environ.setdefault("ENABLE_TAICHI_HEADER_PRINT", "0")
# Under pytest's capture Taichi would route every launch through its print buffer, which costs more than the launch.
os.environ.setdefault("TI_ENABLE_PYBUF", "0")
# Taichi throws a quarter of its kernel cache away once that holds 100 MB, which is less than the kernels of all tests;
# those that start processes, and a second run, would compile again.
os.environ.setdefault("TI_OFFLINE_CACHE_MAX_SIZE_OF_FILES", str(2**30))

import pytest
from command_line import ARCH, run_here
from hypothesis import settings
from slow import FIRST, SLOW
from taichi.lang import _ndarray

from taichi_fluid import backend

# Taichi keeps with each array, for its own messages, the text of the stack that made it: with pytest's that is 40 functions.
_ndarray.get_traceback = lambda *_: ""

# The same examples in every run, few of them, and no time limit: the first example of a kernel compiles it. Elsewhere than
# on the CPU what is tried is the code that was made, and Mesa's software driver takes milliseconds for every launch.
settings.register_profile(
    "taichi", derandomize=True, deadline=None, max_examples=12 if ARCH == "cpu" else 4, database=None
)
settings.load_profile("taichi")


def pytest_configure(config):
    config.addinivalue_line("markers", "vulkan_too: also run on Vulkan, in a subprocess of test_vulkan.py")


def on_this_arch(item) -> bool:
    """Whether a test has nothing that keeps it from the arch of this process."""
    mark = item.get_closest_marker("vulkan_too")
    if mark is None or not mark.kwargs or ARCH == "cpu":
        return True
    return mark.kwargs.items() <= getattr(item, "callspec", SimpleNamespace(params={})).params.items()


NOT_FOUND = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def names_of_no_test(request) -> list[str]:
    """Names in ``slow.py`` with which no test of a file that was collected as a whole begins."""
    return request.config.stash[NOT_FOUND]


def slow_names_of_no_test(items) -> list[str]:
    names = [item.nodeid.removeprefix("tests/") for item in items]
    files = {name.partition("::")[0] for name in names}
    return [
        slow for slow in SLOW if slow.partition("::")[0] in files and not any(name.startswith(slow) for name in names)
    ]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark what is slow, and put first the files that take longest, so that no worker ends with one of them."""
    config.stash[NOT_FOUND] = [] if any("::" in argument for argument in config.args) else slow_names_of_no_test(items)
    config.hook.pytest_deselected(items=[item for item in items if not on_this_arch(item)])
    items[:] = [item for item in items if on_this_arch(item)]
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(SLOW):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: FIRST.index(item.path.name) if item.path.name in FIRST else len(FIRST))


@pytest.fixture(scope="session", autouse=True)
def arch() -> str:
    """Name of the arch that the whole process runs on."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a shell starts what runs in the background; whoever we start would inherit it, and some are interrupted.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    backend.start_here(ARCH, apart=False, offline_cache=True)  # two of these run at once
    return ARCH


@pytest.fixture(params=[2, 3], ids=["2D", "3D"])
def dim(request) -> int:
    """Number of axes."""
    return request.param


@pytest.fixture
def refuse(tmp_path):
    """The command line in this process, in ``tmp_path``, for what it is to refuse before it starts Taichi."""

    def start(arch):
        raise AssertionError(f"{arch} was started")

    return lambda *arguments: run_here(arguments, tmp_path, start=start)
