"""The documentation is part of the interface: what it promises is there, and what is public says what it is."""

import ast
import importlib
import json
from pathlib import Path

import pytest

from taichi_fluid.scene import preset

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "taichi_fluid").rglob("*.py"))


def public_definitions(tree: ast.Module):
    """Public classes, functions and methods of a module, not those inside functions."""
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
                        yield f"{node.name}.{inner.name}", inner


def is_setter(node: ast.AST) -> bool:
    return any(isinstance(d, ast.Attribute) and d.attr == "setter" for d in getattr(node, "decorator_list", []))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_everything_public_has_a_docstring(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.name != "__main__.py":
        assert ast.get_docstring(tree), f"{path.name} does not say what it is for"
    silent = [
        name
        for name, node in public_definitions(tree)
        if not ast.get_docstring(node) and not name.endswith("_kernels") and not is_setter(node)
    ]
    assert not silent, f"no docstring: {', '.join(silent)}"


@pytest.fixture
def seeds(monkeypatch):
    """The benchmark that makes the table of ``docs/seeds.md``."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("seeds")


def test_the_table_of_the_seeds_is_what_was_measured(seeds, tmp_path):
    measured = json.loads((ROOT / "benchmarks" / "results" / "seeds_cpu.json").read_text(encoding="utf-8"))
    text = seeds.DOCUMENT.read_text(encoding="utf-8")
    assert text.partition(seeds.BEGIN)[2].partition(seeds.END)[0] == seeds.in_markdown(measured)
    assert measured["machine"]["commit"] in text
    copy = tmp_path / "seeds.md"
    copy.write_text(text, encoding="utf-8")
    measured["rows"][0]["mass"] = 0.123
    seeds.write_table(measured, copy)
    changed = copy.read_text(encoding="utf-8")
    assert "| 0.12 |" in changed and "| 0.12 |" not in text, "what else was measured stands there"
    seeds.write_table(json.loads((ROOT / "benchmarks" / "results" / "seeds_cpu.json").read_text()), copy)
    assert copy.read_text(encoding="utf-8") == text, "and the rest of the document stays as it is"


def test_every_seed_and_every_setting_of_its_table_is_a_scene(seeds):
    for name, runs in seeds.SEEDS.items():
        for changes in runs.values():
            preset(name).with_values({**seeds.STILL, **changes})
