"""The one place that imports Taichi: quietly, and with a sentence when it cannot be done."""

import ast
import dataclasses
import functools
import linecache
import os
import sys
import textwrap
import weakref
from types import SimpleNamespace

from .errors import TaichiUnavailable
from .limits import without_collecting

_MUTED = {"ENABLE_TAICHI_HEADER_PRINT": "0", "TI_SKIP_VERSION_CHECK": "ON"}


def _require_cache_folder() -> None:
    """Taichi keeps compiled kernels below HOME and ends the process, at once or at exit, where it cannot."""
    if sys.platform == "win32":
        return
    if os.environ.get("XDG_CACHE_HOME") == "":
        raise TaichiUnavailable(
            "XDG_CACHE_HOME is set to nothing, which Taichi takes for the root folder: unset it or name a folder."
        )
    variable = "XDG_CACHE_HOME" if os.environ.get("XDG_CACHE_HOME") else "HOME"
    home = os.environ.get(variable)
    if not home:
        raise TaichiUnavailable(
            "HOME and XDG_CACHE_HOME are not set, and Taichi ends the process without a place for its kernel cache: "
            "set HOME to a writable folder, for example HOME=/tmp."
        )
    folder = os.path.join(os.path.abspath(home), *([] if variable == "XDG_CACHE_HOME" else [".cache"]), "taichi")
    try:  # to whom all is allowed, what cannot be done only shows when it is done
        os.makedirs(folder, exist_ok=True)
        problem = "" if os.access(folder, os.W_OK | os.X_OK) else "it may not be written"
    except OSError as error:
        problem = error.strerror
    if problem:
        raise TaichiUnavailable(
            f"{folder!r} is not a folder that can be made and written ({problem}), and Taichi keeps its kernel cache "
            f"there, as {variable} says: set {variable} to a writable folder, for example {variable}=/tmp."
        )


def _import_taichi():
    _require_cache_folder()
    before = {name: os.environ.get(name) for name in _MUTED}
    for name, value in _MUTED.items():
        os.environ.setdefault(name, value)
    try:
        with without_collecting():
            import taichi
    except (ImportError, OSError) as error:
        text = str(error)
        if "libX11" in text or "libGL" in text:
            library = "libX11" if "libX11" in text else "libGL"
            package = "libx11-6" if library == "libX11" else "libgl1"
            raise TaichiUnavailable(
                f"Taichi needs the system library {library}, also without a display: install it, for example "
                f"'apt-get install {package}' on Debian and Ubuntu or 'dnf install {library}' on Fedora."
            ) from error
        raise TaichiUnavailable(f"Taichi cannot be imported: {text}") from error
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
    return taichi


ti = _import_taichi()

from taichi._kernels import fill_ndarray  # noqa: E402  (only after the quiet import above)
from taichi.lang import impl, kernel_impl  # noqa: E402
from taichi.lang.ast import transform_tree  # noqa: E402
from taichi.lang.ast.ast_transformer_utils import ASTTransformerContext  # noqa: E402
from taichi.lang.exception import handle_exception_from_cpp  # noqa: E402
from taichi.lang.expr import Expr  # noqa: E402
from taichi.lang.kernel_impl import Kernel  # noqa: E402
from taichi.lang.matrix import MatrixType  # noqa: E402

__all__ = [
    "Expr",
    "Kernel",
    "MatrixType",
    "argument",
    "fill_ndarray",
    "handle_exception_from_cpp",
    "impl",
    "loaded",
    "local",
    "set_packed_image",
    "subscript",
    "ti",
    "traced",
]

REMEMBERS = ti.__version__ == (1, 7, 4)
"""Whether Taichi remembers what it has read of a function: where its own way of asking is known to be the one below."""


def _remembering(read):
    """``read(function)``, which Taichi asks anew wherever a function is inlined, asked once."""
    known = weakref.WeakKeyDictionary()

    @functools.wraps(read)
    def remembered(function):
        if function not in known:
            known[function] = read(function)
        return known[function]

    return remembered


_whole_block = kernel_impl.getsourcelines


def _source_lines(function) -> tuple[list[str], int]:
    """Lines of a function and the number of the first: of what is written here without making tokens of them all."""
    code = function.__code__
    if not code.co_filename.startswith(_OURS):
        return _whole_block(function)
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    margin = len(lines[0]) - len(lines[0].lstrip())
    head = next(k for k, line in enumerate(lines) if line.lstrip().startswith("def "))
    for end in range(head + 1, len(lines)):
        text = lines[end].lstrip()
        if text and len(lines[end]) - len(text) <= margin and text[0] != ")":  # that ends the parameters
            return lines[:end], code.co_firstlineno
    return lines, code.co_firstlineno


_OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
"""Where the functions are in which nobody is shown a mistake."""

_free_trees: dict[str, list[ast.Module]] = {}
"""By their source, trees of functions that were inlined and are so no longer."""


def _parsed(source: str) -> ast.Module:
    """The tree of a source: one that nobody is using, or a new one."""
    if trees := _free_trees.setdefault(source, []):
        return trees.pop()
    tree = ast.parse(source)
    tree.__dict__["_taichi_fluid"] = source, [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return tree


def _transformed(tree, context):
    """What Taichi makes of a tree, which is free then if it is that of an inlined function.

    All that Taichi leaves in its nodes is written anew the next time before it is read, but for who calls a method.
    """
    result = transform_tree(tree, context)
    if not (context.is_kernel or context.is_real_function):
        source, attributes = tree.__dict__["_taichi_fluid"]
        for node in attributes:
            node.__dict__.pop("caller", None)
        _free_trees[source].append(tree)
    return result


def _remember_sources() -> None:
    """Half of the time that Taichi spends on a kernel in Python goes into texts for errors that nobody makes.

    For each node of a tree it wraps the lines of its source, and for each inlined call it reads, wraps and parses the
    source anew. What is read depends on the function alone, and is kept; texts for errors in what is written here are made
    when there is one.
    """
    kernel_impl.getsourcelines = _remembering(_source_lines)
    kernel_impl.getsourcefile = _remembering(kernel_impl.getsourcefile)
    kernel_impl.textwrap = SimpleNamespace(fill=functools.cache(textwrap.fill), dedent=functools.cache(textwrap.dedent))
    kernel_impl.ast, kernel_impl.transform_tree = SimpleNamespace(parse=_parsed), _transformed
    describe = ASTTransformerContext.get_pos_info

    @functools.wraps(describe)
    def get_pos_info(self, node):
        if not self.file.startswith(_OURS) or sys.exc_info()[0] is not None:
            return describe(self, node)
        return f"{self.file[len(_OURS) :]}:{node.lineno + self.lineno_offset}: "

    ASTTransformerContext.get_pos_info = get_pos_info
    kernel_impl._inside_class = _inside_class


def _inside_class(level_of_class_stackframe: int) -> bool:
    """Whether a function is marked in the body of a class: as Taichi, which looks through all modules for one line."""
    try:
        frame = sys._getframe(level_of_class_stackframe)
    except ValueError:  # a function of the program itself
        return False
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno, frame.f_globals).strip()
    return any(pattern.match(line) for pattern in kernel_impl._KERNEL_CLASS_STACKFRAME_STMT_RES)


if REMEMBERS:
    _remember_sources()


def traced(function):
    """Mark a plain Python function that a kernel calls: it runs while Taichi traces the kernel.

    It is given expressions and returns one, which becomes part of the kernel as if it stood there. Taichi need not
    read, parse and translate the function, which for the arithmetic of an index costs more than all else of it. What
    it is given is computed where it is used, not where it is handed over, so it assigns to nothing.
    """
    function._is_taichi_function = True
    function.func = SimpleNamespace(has_print=False)
    return function


def local(value):
    """A value that a ``traced`` function uses more than once, computed once."""
    return impl.expr_init(value)


def argument(cls):
    """Make a class of annotated names into what a kernel builds, and a ``ti.func`` takes, as one argument.

    The arrays, vectors and numbers that belong together go by one name, ``Prediction(array, trace, n)``, through any
    number of functions, without an annotation; a function reads ``prediction.array[c]``. Methods may be ``ti.func``.
    What is not an array, a vector or a number is known while the kernel is traced.
    """
    cls = dataclasses.dataclass(frozen=True, eq=False)(cls)
    cls._data_oriented = True  # then Taichi hands it on as it is
    return traced(cls)


@traced
def loaded(bundle):
    """The same ``argument`` with its numbers and vectors loaded once, here.

    A kernel's own arguments are loaded again after every store; where that is in an inner loop it costs 7 to 8 %.
    """
    return dataclasses.replace(
        bundle, **{field.name: _loaded(getattr(bundle, field.name)) for field in dataclasses.fields(bundle)}
    )


def _loaded(value):
    if dataclasses.is_dataclass(value):
        return loaded(value)
    return impl.expr_init(value) if isinstance(value, (Expr, ti.Matrix)) else value


def subscript(vector, index: int):
    """``vector[index]`` in a ``traced`` function."""
    return impl.subscript(None, vector, index)


def set_packed_image(canvas, packed) -> None:
    """Show packed colours, ``(width, height)`` of u32 from the lower left, on a canvas of a window.

    ``Canvas.set_image`` ends in this call, after it has made such an array, again in every frame, from what it is given.
    """
    from taichi.ui.utils import get_field_info

    canvas.canvas.set_image(get_field_info(packed))
