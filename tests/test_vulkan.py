"""Everything marked ``vulkan_too`` once more on Vulkan, in processes of their own, with no test left out."""

import re
from pathlib import Path

import pytest
from test_backends import HERE, run, vulkan, vulkan_problem  # noqa: F401 - a fixture, and what it asks

PARTS = {
    "operators": "ti kernels differences interpolation noise boundary solids diagnostics loads probes normoyle doctor forces sources pictures",
    "advection and pressure": "advection pressure pockets solver_sides spectral diffusion sides walls conditions warm_solids",
    "steps": "collocated combustion simulation reflection conservation live_engine seams motion",
    "liquids": "liquid liquid_core liquid_particles liquid_pressure liquid_stress liquid_seams foam",
    "pictures of steps": "render render_views exact_shapes resample presets validation",
}
"""Files that trace the same kernels, which a process does once; the first ones are those that compile little."""


def marked() -> set[str]:
    """Names of the files that have marked tests."""
    files = [path for path in HERE.rglob("test_*.py") if path != Path(__file__)]
    return {path.stem.removeprefix("test_") for path in files if "mark.vulkan_too" in path.read_text(encoding="utf-8")}


def test_every_file_with_marked_tests_has_its_part():
    assert sorted(" ".join(PARTS.values()).split()) == sorted(marked())


@pytest.mark.parametrize("part", PARTS)
def test_vulkan_passes_the_marked_tests(vulkan, part):  # noqa: F811
    files = [str(HERE / f"test_{name}.py") for name in PARTS[part].split()]
    done = run(
        "-m", "pytest", "-q", "-n0", "-m", "vulkan_too", "-p", "no:cacheprovider", "-W", "ignore", *files,
        TI_TEST_ARCH="vulkan",
    )  # fmt: skip
    summary = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", summary)
    assert passed, summary
    assert int(passed[1]) > 20, summary
    assert "skipped" not in summary, summary
    assert "failed" not in summary, summary
