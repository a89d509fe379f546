"""What the package lets Taichi remember, and plain functions that run while a kernel is traced."""

import ast
import inspect
import os
import sys
import textwrap
import types
from pathlib import Path

import numpy as np
import pytest

from taichi_fluid import _ti
from taichi_fluid._ti import ASTTransformerContext, argument, kernel_impl, loaded, local, subscript, ti, traced
from taichi_fluid.kernels import Array, strips, wavefront
from taichi_fluid.operators import interpolation, sampling


def contexts(module):
    """Each ``ti.func`` of a module as Taichi reads it, with its tree."""
    for thing in vars(module).values():
        if getattr(thing, "_is_taichi_function", False) and isinstance(thing.func, kernel_impl.Func):
            yield kernel_impl._get_tree_and_ctx(thing.func, is_kernel=False, args=())


@pytest.mark.skipif(not _ti.REMEMBERS, reason="another version of Taichi, which is left alone")
def test_a_place_is_a_line_of_a_file_and_in_an_error_what_taichi_says():
    taichis_own = ASTTransformerContext.get_pos_info.__wrapped__
    nodes = 0
    for module in (strips, wavefront, sampling, interpolation):
        for tree, context in contexts(module):
            lines = Path(context.file).read_text().splitlines()
            for node in ast.walk(tree):
                if isinstance(node, (ast.stmt, ast.expr)):
                    file, line, rest = context.get_pos_info(node).split(":")
                    assert context.file.endswith(f"{os.sep}taichi_fluid{os.sep}{file}") and rest == " "
                    code = context.src[node.lineno - 1].strip()
                    assert lines[int(line) - 1].strip().startswith(code)
                    try:
                        raise ValueError
                    except ValueError:
                        assert context.get_pos_info(node) == taichis_own(context, node)
                    nodes += 1
    assert nodes > 500


def _parsed(lines):
    return ast.dump(ast.parse(textwrap.dedent("".join(lines))))


@pytest.mark.skipif(not _ti.REMEMBERS, reason="another version of Taichi, which is left alone")
def test_what_is_read_of_a_function_is_what_python_says():
    """Of those at the top of a module, in a function and in a class, with and without decorators."""
    functions = 0
    for module in [module for name, module in sys.modules.items() if name.startswith("taichi_fluid.")]:
        code = compile(inspect.getsource(module), module.__file__ or "", "exec")
        todo = [const for const in code.co_consts if isinstance(const, types.CodeType)]
        while todo:
            code = todo.pop()
            todo += [const for const in code.co_consts if isinstance(const, types.CodeType)]
            if not code.co_name.startswith("<") and code.co_flags & inspect.CO_NEWLOCALS:
                function = types.FunctionType(code, {}, closure=tuple(map(types.CellType, code.co_freevars)))
                (found, first), (whole, number) = _ti._source_lines(function), inspect.getsourcelines(function)
                assert first == number and _parsed(found) == _parsed(whole), (module, code.co_name)
                functions += 1
    assert functions > 150


@ti.func
def _size_of(v, deep: ti.template()):
    """Twice inlined in itself, once while an argument of it is made; a method of vectors and of a bundle, by one name."""
    found = v.max()
    if ti.static(deep > 0):
        found += _size_of(v + _size_of(v, deep - 1), deep - 1)
    return found


@argument
class _Bundle:
    value: object

    @traced
    def max(self):
        return self.value

    @traced
    def __add__(self, other):
        return _Bundle(self.value + other)


@pytest.mark.skipif(not _ti.REMEMBERS, reason="another version of Taichi, which is left alone")
def test_a_tree_that_is_in_use_is_not_used_again():
    @ti.kernel
    def sizes(a: Array, v: ti.types.vector(2, ti.f32), x: ti.f32):
        for _ in range(1):
            a[0] = _size_of(v, 2)
            a[1] = _size_of(_Bundle(x), 2)
            a[2] = _size_of(v, 1)

    def size(v, deep):
        found = np.max(v)
        return found + size(v + size(v, deep - 1), deep - 1) if deep else found

    a = ti.ndarray(ti.f32, 3)
    sizes(a, ti.Vector([1.0, 3.0]), 5.0)
    v = np.array([1.0, 3.0])
    np.testing.assert_array_equal(a.to_numpy(), [size(v, 2), size(np.array([5.0]), 2), size(v, 1)])
    assert any(len(trees) > 1 for trees in _ti._free_trees.values()), "one for each that was in use at once"


@pytest.mark.skipif(not _ti.REMEMBERS, reason="another version of Taichi, which is left alone")
def test_functions_that_look_alike_are_told_apart(tmp_path):
    """The same text in two files: what is remembered belongs to the function, not to its text."""
    found = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.py"
        path.write_text("import taichi as ti\n\n@ti.func\ndef twice(x):\n    return 2 * x\n")
        module = types.ModuleType(name)
        exec(compile(path.read_text(), str(path), "exec"), vars(module))
        ((tree, context),) = contexts(module)
        found.append((context.file, context.get_pos_info(tree.body[0])))
    assert [file for file, _ in found] == [str(tmp_path / "one.py"), str(tmp_path / "two.py")]
    assert all(file in text for file, text in found)


@ti.func
def _wrong(x):
    return x + no_such_thing  # noqa: F821


@ti.kernel
def _calls_it_twice(a: Array):
    a[0] = a[0] + ti.f32(1.0)
    a[1] = _wrong(a[0])


def test_a_mistake_in_a_kernel_is_still_shown_where_it_is():
    a = ti.ndarray(ti.f32, 2)
    for _ in range(2):
        with pytest.raises(ti.TaichiCompilationError, match="no_such_thing") as error:
            _calls_it_twice(a)
        line = _wrong.func.func.__code__.co_firstlineno + 2
        assert f'test_ti.py", line {line}, in _wrong' in str(error.value)
        assert "return x + no_such_thing" in str(error.value)


@ti.kernel
def _calls_ours(a: Array):
    a[0] = interpolation.blend(a[0], a[0])


def test_a_mistake_in_what_is_called_here_is_shown_there_too():
    with pytest.raises(ti.TaichiCompilationError) as error:
        _calls_ours(ti.ndarray(ti.f32, 1))
    assert "a[0] = interpolation.blend(a[0], a[0])\n" in str(error.value)
    assert 'interpolation.py", line' in str(error.value) and "range(fraction.n - 1, -1, -1)" in str(error.value)


@traced
def _polynomial(v, x):
    """Σ v[k] x^k, which asks for ``x`` again and again."""
    x = local(x)
    return sum(subscript(v, k) * x**k for k in range(v.n))


@ti.func
def _counted(a: ti.template()):
    a[3] = a[3] + ti.f32(1.0)
    return ti.f32(2.0)


@ti.kernel
def _evaluate(a: Array, v: ti.types.vector(3, ti.f32)):
    for _ in range(1):
        a[0] = _polynomial(v, _counted(a))


@pytest.mark.vulkan_too
def test_a_traced_function_is_part_of_the_kernel(recwarn):
    a = ti.ndarray(ti.f32, 4)
    a.fill(0.0)
    _evaluate(a, ti.types.vector(3, ti.f32)(1.0, 10.0, 100.0))
    assert a.to_numpy().tolist() == [421.0, 0.0, 0.0, 1.0]
    assert not [warning for warning in recwarn if "non-taichi function" in str(warning.message)]


@argument
class Line:
    """``factor · a + b`` at a place."""

    a: object
    b: object
    factor: object
    doubled: bool

    @ti.func
    def at(self, c):
        return self.factor * self.a[c] + self.b[c]


@ti.func
def _write_line(c, line, out: ti.template()):
    own = loaded(line)
    value = own.at(c)
    if ti.static(own.doubled):
        value *= ti.f32(2.0)
    out[c] = value


@ti.kernel
def _lines(a: Array, b: Array, plain: Array, doubled: Array, factor: ti.f32):
    for c in range(3):
        _write_line(c, Line(a, b, factor, False), plain)
        _write_line(c, Line(a, b, factor, True), doubled)


def test_arrays_and_numbers_that_belong_together_go_as_one_argument(recwarn):
    """Into a function without an annotation, numbers loaded once, what is no number known while tracing; no warning."""
    a, b, plain, doubled = (ti.ndarray(ti.f32, 3) for _ in range(4))
    a.from_numpy(np.float32([1, 2, 3]))
    b.from_numpy(np.float32([10, 20, 30]))
    _lines(a, b, plain, doubled, 0.5)
    np.testing.assert_array_equal(plain.to_numpy(), [10.5, 21, 31.5])
    np.testing.assert_array_equal(doubled.to_numpy(), [21, 42, 63])
    assert not [warning for warning in recwarn if "taichi" in str(warning.message).lower()]


@pytest.mark.skipif(not _ti.REMEMBERS, reason="another version of Taichi, which is left alone")
def test_a_method_is_told_from_a_function(tmp_path):
    """In a class, in a class in a function, and beside one: as Taichi tells them by its own, slower way."""
    source = """
from taichi_fluid._ti import ti

@ti.func
def alone(x):
    return x

class Plain:
    @ti.func
    def method(self, x):
        return x

def make():
    @ti.data_oriented
    class Inner:
        @ti.kernel
        def kernel(self):
            pass

    @ti.func
    def inner(x):
        return x

    return Inner, inner
"""
    path = tmp_path / "marked.py"
    path.write_text(source, encoding="utf-8")
    namespace = {"__name__": "marked"}
    exec(compile(source, str(path), "exec"), namespace)
    inner_class, inner = namespace["make"]()
    assert not namespace["alone"].func.classfunc and not inner.func.classfunc
    assert namespace["Plain"].method.func.classfunc
    assert inner_class.kernel._is_classkernel
