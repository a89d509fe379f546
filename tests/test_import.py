"""The package is a polite guest: importing it starts, prints, opens and changes nothing. See also ``test_rooms.py``."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import taichi_fluid
from taichi_fluid.tables import Table

PACKAGE = Path(taichi_fluid.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

LOOK_AROUND = """
import json, os, sys, threading
before = dict(os.environ)
{imports}
taichi = sys.modules.get("taichi")
started = taichi is not None and taichi.lang.impl.get_runtime().prog is not None
found = {{
    "modules": sorted(sys.modules), "started": started, "threads": threading.active_count(),
    "environment": [key for key in {{*before, *os.environ}} if before.get(key) != os.environ.get(key)],
    "folder": os.listdir("."),
}}
with open({report!r}, "w") as file:
    json.dump(found, file)
"""
EVERYTHING = """
import importlib, pkgutil, taichi_fluid
for module in pkgutil.walk_packages(taichi_fluid.__path__, "taichi_fluid."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def after_import(imports: str, tmp_path: Path, **environment) -> dict:
    """What a fresh process finds after some imports; that it prints nothing is asserted here."""
    folder, report = tmp_path / "empty", tmp_path / "report.json"
    folder.mkdir()
    code = LOOK_AROUND.format(imports=imports, report=str(report))
    # As a user has it: none of what conftest.py sets to keep Taichi quiet.
    quiet = ("TI_SKIP_VERSION_CHECK", "ENABLE_TAICHI_HEADER_PRINT", "TI_ENABLE_PYBUF")
    inherited = {key: value for key, value in os.environ.items() if key not in quiet}
    inherited["PYTHONPATH"] = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env={**inherited, **environment},
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert done.stderr == ""
    return json.loads(report.read_text())


def test_importing_the_package_does_nothing_at_all(tmp_path):
    found = after_import("import taichi_fluid", tmp_path)
    assert "taichi" not in found["modules"]
    assert "numpy" not in found["modules"], "the package itself only knows where its names live"
    assert found["environment"] == []
    assert found["folder"] == []


def test_scenes_and_the_command_line_are_checked_without_taichi(tmp_path):
    imports = (
        "import taichi_fluid.scene, taichi_fluid.app.commands, taichi_fluid.scene.memory\n"
        "from taichi_fluid import Scene, SceneError, preset, preset_names\n"
        "scene = preset('plume').with_values({'domain.resolution': 100})\n"
        "assert Scene.loads(scene.dumps()) == scene\n"
        "taichi_fluid.scene.bytes_needed(scene)\n"
        "taichi_fluid.scene.memory.require_memory(scene)\n"
    )
    found = after_import(imports, tmp_path)
    assert "taichi" not in found["modules"]
    assert "av" not in found["modules"]
    assert found["environment"] == []
    assert found["folder"] == []


def test_importing_every_module_starts_no_backend_and_stays_silent(tmp_path):
    found = after_import(EVERYTHING, tmp_path)
    assert "taichi" in found["modules"], "the search has found the modules with kernels"
    assert not found["started"]
    assert "av" not in found["modules"], "PyAV is imported when a video is asked for"
    assert found["environment"] == []
    assert found["folder"] == []


def test_what_the_user_has_set_for_taichi_stays(tmp_path):
    found = after_import(
        "import os, taichi_fluid.grid\nassert os.environ['TI_SKIP_VERSION_CHECK'] == 'OFF'", tmp_path,
        TI_SKIP_VERSION_CHECK="OFF", ENABLE_TAICHI_HEADER_PRINT="0",
    )  # fmt: skip
    assert found["environment"] == []


def test_every_public_name_is_there_and_listed():
    for name in taichi_fluid.__all__:
        thing = getattr(taichi_fluid, name)
        assert isinstance(thing, Table) or thing.__name__ == name
        assert name in dir(taichi_fluid)
    with pytest.raises(AttributeError, match=r"taichi_fluid.*'Nothing'"):
        taichi_fluid.Nothing  # noqa: B018


def test_taichi_is_imported_in_one_place():
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            if any(name.split(".")[0] == "taichi" for name in names):
                assert path.name == "_ti.py", f"{path.name} imports Taichi itself"
