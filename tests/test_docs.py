"""The documentation is part of the interface: what it promises is there, and what is public says what it is."""

import ast
from pathlib import Path

import pytest

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
