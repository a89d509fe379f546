"""Expressions: the same numbers as NumPy's own, and a sentence for all that is none."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taichi_fluid.scene.expressions import DEEPEST, FUNCTIONS, LONGEST, Expression, ExpressionError

X, Y, T = np.linspace(-1.5, 1.5, 7)[:, None], np.linspace(0.1, 2, 5)[None], 0.7
SAME = {
    "1": 1.0,
    "-2.5e-3": -2.5e-3,
    "sin(2*pi*x) * cos(2*pi*y)": np.sin(2 * np.pi * X) * np.cos(2 * np.pi * Y),
    "-x**2": -(X**2),
    "2**-y": 2**-Y,
    "2 - 3 - x": -1 - X,
    "x % 0.4": X % 0.4,
    "exp(-((x-0.5)**2 + (y-0.5)**2) / 0.1)": np.exp(-((X - 0.5) ** 2 + (Y - 0.5) ** 2) / 0.1),
    "min(x, y, 0.5) + max(x, t)": np.minimum(np.minimum(X, Y), 0.5) + np.maximum(X, T),
    "abs(x) + sqrt(y) + log(y) + tan(x) + tanh(y)": abs(X) + np.sqrt(Y) + np.log(Y) + np.tan(X) + np.tanh(Y),
    "sinh(x) * cosh(y)": np.sinh(X) * np.cosh(Y),
    "step(x)": (X >= 0) * 1.0,
    "(0 < x) * 3": (X > 0) * 3.0,
    "0 < x <= 1": ((X > 0) & (X <= 1)) * 1.0,
    "where(x >= y, x, t)": np.where(X >= Y, X, T),
    "x +\n y": X + Y,
    "1/x": None,
}


@pytest.mark.parametrize("text", SAME)
def test_it_is_what_numpy_makes_of_the_same_text(text):
    with np.errstate(all="ignore"):
        expected = 1 / X if SAME[text] is None else SAME[text]
    found = Expression(text)(x=X, y=Y, t=T)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, expected)


def test_it_knows_what_it_uses():
    assert Expression("1 + pi").uses == set()
    assert Expression("x*t + sin(x)").uses == {"x", "t"}
    assert Expression("x") == Expression("x") != Expression("x ")


@given(a=st.floats(-1e3, 1e3), b=st.floats(0.1, 10))
def test_numbers_are_those_of_python(a, b):
    assert float(Expression(f"({a!r}) / ({b!r}) + x")(x=a)) == a / b + a


REFUSED = {
    "": "is empty",
    "  ": "is empty",
    "sin(x": "cannot be read at character 4: '(' was never closed",
    "x +": "cannot be read at character",
    "x y": "cannot be read at character",
    "x) + (y": "cannot be read at character 2: unmatched",
    "x), (y": "cannot be read at character 2: unmatched",
    "x # y": "a comment at character 3",
    "x\0": "cannot be read",
    "2*w": "the name 'w'; it knows x, y, z, t, pi, at character 3",
    "2*sin": "sin is a function: sin(...), at character 3",
    "x^2": "(a power is **) at character 1",
    "x // 2": "a sign that is none of + - * / % **",
    "x == 2": "a sign that is none of",
    "sin(x, y)": "sin of 2 numbers, which is of 1, at character 1",
    "min(x)": "min of 1 numbers, which is of 2 to 9,",
    "foo(x)": "none of its functions, sin, cos",
    "sin(*x)": "none of its functions",
    "sin(a=x)": "none of its functions",
    "x.real": "no arithmetic",
    "x[0]": "no arithmetic",
    "(1, 2)": "no arithmetic",
    "'x'": "'x', which is no number",
    "True": "'True', which is no number",
    "1j": "'1j', which is no number",
    "1e999": "'inf', which is no number",
    "9" * 400: "which is no number",
    "...": "which is no number",
    "lambda: 1": "no arithmetic",
    "x if y else t": "no arithmetic",
    "x := 2": "cannot be read at character 3",
    "__import__('os').system('true')": "none of its functions",
    "[].__class__": "no arithmetic",
    "f'{x}'": "no arithmetic",
    "x and y": "no arithmetic",
    "not x": "a sign that is none of",
    "ä + 2*w": "the name 'ä'",
    "1 +\n 2*w": "at character 8",
    "  2 * w": "the name 'w'; it knows x, y, z, t, pi, at character 7",
    "  2 * ": "at character 6",
    "(" * 300 + "x" + ")" * 300: "cannot be read",
    "-" * (DEEPEST + 1) + "x": f"more than {DEEPEST} levels",
    "x+" * LONGEST + "x": f"an expression has {LONGEST} at most",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_arithmetic_is_refused_in_a_sentence(text):
    with pytest.raises(ExpressionError) as caught:
        Expression(text)
    message = str(caught.value)
    assert REFUSED[text] in message
    assert "\n" not in message
    assert len(message) < 300


def test_a_level_less_is_read_and_numbers_that_are_none_are_not_hidden():
    assert float(Expression("-" * (DEEPEST - 1) + "x")(x=1.0)) == (-1) ** (DEEPEST - 1)
    assert math.isnan(Expression("log(-1)")())
    assert math.isinf(Expression("9**9**9**9**9")()), "as a float, at once"


def test_every_function_has_a_case():
    assert all(any(f"{name}(" in text for text in SAME) for name in FUNCTIONS)
