"""Rules of the house, read off the source: who may import whom, and what breaks or slows down kernels."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "taichi_fluid"
FILES = sorted(path for path in PACKAGE.rglob("*.py"))

ORDER = [
    ["errors", "limits", "tables"],
    ["carried"],
    ["_ti"],
    ["backend"],
    ["kernels"],
    ["operators"],
    ["grid"],
    ["boundaries"],
    ["pressure", "scene"],
    ["physics"],
    ["liquid"],
    ["simulation"],
    ["render", "io"],
    ["viewer"],
    ["bench", "validation"],
    ["app", "__main__"],
]
"""Rooms from the ground up: a room imports from its own floor and from those below."""

FLOORS = {room: floor for floor, rooms in enumerate(ORDER) for room in rooms}


def name_of(path: Path) -> str:
    """Dotted name below the package; a package's ``__init__`` has the name of its folder."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def floor_of(module: str) -> int | None:
    """Floor of the room that a module belongs to; the package itself stands above all."""
    if not module:
        return len(ORDER)
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        floor = FLOORS.get(".".join(parts[:length]))
        if floor is not None:
            return floor
    return None


def imported_by(tree: ast.AST, module: str, is_package: bool) -> set[str]:
    """Dotted names below the package that a module imports, also inside functions."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[2] for alias in node.names if alias.name.startswith("taichi_fluid.")}
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            parts = module.split(".") if module else []
            parts = parts[: len(parts) - (node.level - is_package)]
            base = ".".join([*parts, *([node.module] if node.module else [])])
        elif node.module and node.module.split(".")[0] == "taichi_fluid":
            base = node.module.partition(".")[2]
        else:
            continue
        for alias in node.names:
            inner = f"{base}.{alias.name}".strip(".")
            is_module = (PACKAGE / f"{inner.replace('.', '/')}.py").exists() or (
                PACKAGE / inner.replace(".", "/")
            ).is_dir()
            found.add(inner if is_module else base)
    return found - {""}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_room_imports_only_from_rooms_below(path):
    module = name_of(path)
    floor = floor_of(module)
    assert floor is not None, f"{module} has no room: add it to ORDER in {Path(__file__).name}"
    for other in imported_by(parsed(path), module, path.name == "__init__.py"):
        below = floor_of(other)
        assert below is not None, f"{module} imports {other}, which has no room"
        assert below <= floor, f"{module} (floor {floor}) imports {other} (floor {below})"


def test_the_room_rule_notices_an_import_from_above():
    """Sabotage: what ``operators`` must not do, written in three ways."""
    for source in (
        "from ..simulation import Simulation",
        "def f():\n    from taichi_fluid.viewer import window",
        "import taichi_fluid.app.commands",
    ):
        others = imported_by(ast.parse(source), "operators.differences", False)
        assert others
        assert all(floor_of(other) > FLOORS["operators"] for other in others)
    assert imported_by(ast.parse("from .._ti import ti"), "operators.noise", False) == {"_ti"}
    assert imported_by(ast.parse("from ..physics import forces"), "simulation.steps", False) == {"physics.forces"}


def circle_in(imports: dict[str, set[str]]) -> list[str]:
    """Modules that import one another in a circle, in their order; empty where none do."""
    done: set[str] = set()

    def follow(module: str, path: list[str]) -> list[str]:
        if module in path:
            return path[path.index(module) :]
        if module in done:
            return []
        for other in sorted(imports.get(module, ())):
            found = follow(other, [*path, module])
            if found:
                return found
        done.add(module)
        return []

    return next(filter(None, (follow(module, []) for module in imports)), [])


def test_no_modules_import_one_another_in_a_circle():
    """Within a room too there is an order to read in. A package's ``__init__`` only names what is in it."""
    assert not circle_in({name_of(p): imported_by(parsed(p), name_of(p), False) for p in FILES if p.stem != "__init__"})
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]


MOST_OF_FUNC, MOST_OF_OTHERS = 9, 10
MOST_TEMPLATES, MOST_FMT_SKIPS = 450, 40
LONGEST_FUNCTION, LONGEST_MODULE = 100, 500


def parameters_of(function: ast.FunctionDef) -> int:
    arguments = function.args
    return len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs) + bool(arguments.vararg)


def too_many_parameters(tree: ast.AST) -> list[str]:
    """Functions that take more than can be read; what a kernel takes goes to the device one by one."""
    found = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            marks = {ast.unparse(mark) for mark in function.decorator_list}
            most = MOST_OF_FUNC if marks & {"ti.func", "ti.pyfunc"} else MOST_OF_OTHERS
            if "ti.kernel" not in marks and parameters_of(function) > most:
                found.append(f"{function.name}: {parameters_of(function)}")
    return found


def too_long(tree: ast.AST) -> list[str]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [f.name for f in functions if (f.end_lineno or 0) - f.lineno >= LONGEST_FUNCTION]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_function_takes_and_holds_no_more_than_can_be_read(path):
    """What belongs together goes as one argument; see ``argument`` in ``_ti.py``."""
    assert not too_many_parameters(parsed(path))
    assert not too_long(parsed(path))
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_MODULE, "split it where it has a joint"


def test_special_cases_of_kernels_and_of_the_layout_stay_few():
    """Every ``ti.template()`` is a place where a kernel may become another one, every ``fmt: skip`` a line too full."""
    text = "".join(path.read_text(encoding="utf-8") for path in FILES)
    assert text.count("ti.template()") <= MOST_TEMPLATES
    assert text.count("# fmt: skip") <= MOST_FMT_SKIPS


def test_the_rules_of_size_notice_offenders():
    """Sabotage: one parameter too many of each kind of function, and a line too many."""
    names = [f"a{k}" for k in range(MOST_OF_OTHERS + 1)]
    for mark, count in (("@ti.func\n", MOST_OF_FUNC), ("", MOST_OF_OTHERS)):
        source = f"{mark}def f({{}}):\n    pass"
        assert not too_many_parameters(ast.parse(source.format(", ".join(names[:count]))))
        assert too_many_parameters(ast.parse(source.format(", ".join(names[: count + 1]))))
    assert not too_many_parameters(ast.parse(f"@ti.kernel\ndef f({', '.join(names)}):\n    pass"))
    body = "def f():\n" + "    pass\n" * LONGEST_FUNCTION
    assert too_long(ast.parse(body))
    assert not too_long(ast.parse(body.removesuffix("    pass\n")))


def uses_kernels(tree: ast.AST) -> bool:
    return any(is_taichi_function(node) for node in ast.walk(tree))


def is_taichi_function(node: ast.AST) -> bool:
    """Whether it is a function with @ti.func or @ti.kernel."""
    if not isinstance(node, ast.FunctionDef):
        return False
    return any(isinstance(d, ast.Attribute) and d.attr in ("func", "kernel") for d in node.decorator_list)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_string_annotations_where_kernels_are(path):
    """``from __future__ import annotations`` makes every kernel argument a string that Taichi cannot read."""
    tree = parsed(path)
    if uses_kernels(tree):
        for node in ast.walk(tree):
            assert not (isinstance(node, ast.ImportFrom) and node.module == "__future__"), path


def calls_of(tree: ast.AST) -> set[str]:
    """Names of what is called on ``ti``."""
    return {
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in ("ti", "taichi")
    }


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_only_the_backend_room_starts_taichi(path):
    """A library that calls ``ti.init`` frees every array of the program it is a guest of."""
    if name_of(path) != "backend":
        assert not calls_of(parsed(path)) & {"init", "reset"}, path


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_lengths_are_without_an_epsilon(path):
    """``norm`` and ``normalized`` add one: write ``operators.vectors.length(v)``."""
    for function in filter(is_taichi_function, ast.walk(parsed(path))):
        for node in ast.walk(function):
            assert not (isinstance(node, ast.Attribute) and node.attr in ("norm", "norm_inv", "normalized")), (
                f"{function.name}:{node.lineno}"
            )


def array_parameters(function: ast.FunctionDef) -> set[str]:
    """Parameters that may be arrays: annotated ``ti.template()`` or ``Array``."""
    names = set()
    for argument in function.args.args:
        text = ast.unparse(argument.annotation) if argument.annotation else ""
        if text in ("ti.template()", "Array") or text.endswith(".Array"):
            names.add(argument.arg)
    return names


def atomics_in(tree: ast.AST) -> list[str]:
    """``a[…] += x`` on an array: in Taichi an atomic, ten times as slow on a CPU, and unordered."""
    found = []
    for function in filter(is_taichi_function, ast.walk(tree)):
        arrays = array_parameters(function)
        for node in ast.walk(function):
            if (
                isinstance(node, ast.AugAssign)
                and isinstance(node.target, ast.Subscript)
                and isinstance(node.target.value, ast.Name)
                and node.target.value.id in arrays
            ):
                found.append(f"{function.name}:{node.lineno}: {ast.unparse(node)}")
    return found


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_atomic_hides_in_an_augmented_assignment(path):
    assert not atomics_in(parsed(path))


def test_the_atomic_rule_notices_one():
    """Sabotage; and vectors, which are local, are left alone."""
    bad = "@ti.func\ndef f(c, a: ti.template()):\n    for k in range(2):\n        a[c + k] += 1.0"
    good = "@ti.func\ndef f(c, a: ti.template()):\n    v = ti.Vector([0.0])\n    v[0] += a[c]\n    a[c] = a[c] + v[0]"
    assert len(atomics_in(ast.parse(bad))) == 1
    assert len(atomics_in(ast.parse(bad.replace("ti.template()", "Array").replace("ti.func", "ti.kernel")))) == 1
    assert not atomics_in(ast.parse(good))


def test_importing_the_package_starts_no_backend_and_no_window():
    """And the scene alone does not even import Taichi, so that bad input is refused at once."""
    code = (
        "import sys\n"
        "import taichi_fluid, taichi_fluid.scene\n"
        "assert 'taichi' not in sys.modules, 'a scene needs no Taichi'\n"
        "import taichi_fluid.simulation\n"
        "from taichi.lang import impl\n"
        "assert impl.get_runtime().prog is None, 'importing started a backend'\n"
        "print('quiet')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "quiet", "importing prints nothing"
