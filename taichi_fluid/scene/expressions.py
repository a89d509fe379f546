"""Arithmetic in x, y, z and t as text: ``"sin(2*pi*x) * exp(-t)"``, metres and seconds, read once and computed by NumPy.

The text is parsed by Python's own parser and never run: what is not arithmetic is refused when it is read. Nothing here
needs Taichi.
"""

import ast
import functools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import NotFinite
from ..limits import LARGEST

LONGEST = 1000
"""Characters of a text."""
DEEPEST = 50
"""Levels of a text: each operation, function and pair of parentheses that means something is one more."""
CONSTANTS = {"pi": math.pi}


class ExpressionError(ValueError):
    """A text that is no expression; the message quotes it, says where it is wrong and what is allowed."""


class _Function(NamedTuple):
    """A function, and with how many arguments at least and at most."""

    compute: Callable[..., Any]
    least: int
    most: int


def _over_all(combine: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def combined(first: Any, *others: Any) -> Any:
        for other in others:
            first = combine(first, other)
        return first

    return combined


_OF_ONE = ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log", "sqrt", "abs")
FUNCTIONS = {
    **{name: _Function(getattr(np, name), 1, 1) for name in _OF_ONE},
    "step": _Function(lambda x: np.heaviside(x, 1.0), 1, 1),
    "min": _Function(_over_all(np.minimum), 2, 9),
    "max": _Function(_over_all(np.maximum), 2, 9),
    "where": _Function(lambda condition, one, other: np.where(np.not_equal(condition, 0.0), one, other), 3, 3),
}
"""``step(x)`` is 1 from x = 0 up, else 0; ``where(condition, a, b)`` is a where the condition is not 0, else b."""

_OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
    ast.UAdd: np.positive,
    ast.USub: np.negative,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
_SIGNS = "+ - * / % ** < <= > >="

Computed = Callable[[Mapping[str, Any]], Any]


class Expression:
    """A text that has been read.

    Args:
        text: Numbers, names, ``+ - * / % **``, comparisons, which are 1 or 0, and ``FUNCTIONS``.
        names: Of its variables.

    Attributes:
        text: The text.
        uses: The variables that it has.

    Raises:
        ExpressionError: for anything else, and for more than ``LONGEST`` characters or ``DEEPEST`` levels.
    """

    def __init__(self, text: str, names: tuple[str, ...] = ("x", "y", "z", "t")):
        self.text, self.names, self._used = text, names, set()
        if len(text) > LONGEST:
            raise ExpressionError(f"{text[:40]!r}... has {len(text)} characters; an expression has {LONGEST} at most")
        if not text.strip():
            raise ExpressionError(f"{text!r} is empty; it must be a number or an expression")
        if "#" in text:
            raise ExpressionError(f"{self._quoted()} has a comment at character {text.index('#') + 1}")
        # Lines end wherever they like, and the first may begin with spaces.
        line = re.sub(r"\s", " ", text)
        self._indent = len(line) - len(line.lstrip())
        try:
            tree = ast.parse(line.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise self._syntax_error(error) from None
        self._compute = self._read(tree.body, 1)
        self.uses = frozenset(self._used)

    def __call__(self, **values: Any) -> np.ndarray:
        """Its value, float64, where its variables have these: numbers or arrays that fit each other.

        Where it has none, such as the logarithm of a number below 0, it is NaN or infinite.
        """
        with np.errstate(all="ignore"):
            return np.asarray(self._compute({name: np.float64(value) for name, value in values.items()}), np.float64)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and (self.text, self.names) == (other.text, other.names)

    def __hash__(self) -> int:
        return hash((self.text, self.names))

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def _quoted(self) -> str:
        return repr(self.text) if len(self.text) <= 60 else repr(self.text[:57]) + "..."

    def _syntax_error(self, error: BaseException) -> ExpressionError:
        if not isinstance(error, SyntaxError) or error.offset is None:
            return ExpressionError(f"{self._quoted()} cannot be read: {error}")
        # Where something is missing at the end, some versions of the parser say 0.
        place = self._indent + (error.offset or len(self.text.strip()) + 1)
        return ExpressionError(f"{self._quoted()} cannot be read at character {place}: {error.msg}")

    def _refused(self, node: ast.AST, what: str) -> ExpressionError:
        # What the parser counts are bytes.
        before = self.text.strip().encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore")
        return ExpressionError(f"{self._quoted()} has {what} at character {self._indent + len(before) + 1}")

    def _read(self, node: ast.AST, depth: int) -> Computed:
        """What computes a node from the values of the variables."""
        if depth > DEEPEST:
            raise self._refused(node, f"more than {DEEPEST} levels")
        if isinstance(node, ast.Constant):
            return self._read_number(node)
        if isinstance(node, ast.Name):
            return self._read_name(node)
        if isinstance(node, ast.Call):
            return self._read_call(node, depth)
        if isinstance(node, ast.BinOp):
            return self._operation(node, node.op, (node.left, node.right), depth)
        if isinstance(node, ast.UnaryOp):
            return self._operation(node, node.op, (node.operand,), depth)
        if isinstance(node, ast.Compare):
            places = [node.left, *node.comparators]
            pairs = [self._operation(node, op, places[i : i + 2], depth) for i, op in enumerate(node.ops)]
            return lambda values: math.prod(pair(values) for pair in pairs)
        raise self._refused(node, f"what is no arithmetic; it has numbers, names, {_SIGNS} and functions")

    def _read_number(self, node: ast.Constant) -> Computed:
        value = node.value
        if type(value) not in (int, float) or not abs(value) <= 1e300:
            raise self._refused(node, f"{str(value)[:20]!r}, which is no number of at most 1e300,")
        number = np.float64(value)
        return lambda values: number

    def _read_name(self, node: ast.Name) -> Computed:
        name = node.id
        if name in CONSTANTS:
            number = np.float64(CONSTANTS[name])
            return lambda values: number
        if name not in self.names:
            known = ", ".join((*self.names, *CONSTANTS))
            called = f"; {name} is a function: {name}(...)," if name in FUNCTIONS else f"; it knows {known},"
            raise self._refused(node, f"the name {name[:40]!r}{called}")
        self._used.add(name)
        return lambda values: values[name]

    def _read_call(self, node: ast.Call, depth: int) -> Computed:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        function = FUNCTIONS.get(name)
        if function is None or node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            raise self._refused(node, f"what is none of its functions, {', '.join(FUNCTIONS)},")
        if not function.least <= len(node.args) <= function.most:
            count = f"{function.least}" if function.least == function.most else f"{function.least} to {function.most}"
            raise self._refused(node, f"{name} of {len(node.args)} numbers, which is of {count},")
        return _applied(function.compute, [self._read(each, depth + 1) for each in node.args])

    def _operation(self, node: ast.AST, op: ast.AST, places: Any, depth: int) -> Computed:
        compute = _OPERATIONS.get(type(op))
        if compute is None:
            hint = " (a power is **)" if isinstance(op, ast.BitXor) else ""
            raise self._refused(node, f"a sign that is none of {_SIGNS}{hint}")
        applied = _applied(compute, [self._read(each, depth + 1) for each in places])
        if isinstance(op, ast.cmpop):
            return lambda values: np.asarray(applied(values), np.float64)
        return applied


def _applied(compute: Callable[..., Any], parts: list[Computed]) -> Computed:
    return lambda values: compute(*(part(values) for part in parts))


@functools.lru_cache(maxsize=64)
def _in_time(text: str) -> Expression:
    return Expression(text, ("t",))


def at_time(values: Sequence[float | str], time: float) -> list[float]:
    """Numbers, and what expressions in t are at a time, s.

    Raises:
        ExpressionError: for a text that is none.
    """
    return [float(_in_time(value)(t=time)) if isinstance(value, str) else value for value in values]


def known_at(values: Sequence[float | str], time: float, what: str) -> list[float]:
    """The same of ``what``.

    Raises:
        NotFinite: where one is none, or is beyond ``LARGEST``.
    """
    known = at_time(values, time)
    if not all(abs(value) <= LARGEST for value in known):
        raise NotFinite(f"{what} is {known} at t = {time:.4g} s; it must be numbers of at most {LARGEST:g}.")
    return known


def is_told(values: Sequence[float | str]) -> bool:
    """Whether any of these is an expression."""
    return any(isinstance(value, str) for value in values)
