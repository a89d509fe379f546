"""Arithmetic of vectors, traced without being parsed."""

from .._ti import local, subscript, ti, traced


@traced
def length(v):
    """|v|, to which Taichi's ``norm`` adds an epsilon."""
    v = local(v)
    squares = [subscript(v, axis) * subscript(v, axis) for axis in range(v.n)]
    return ti.sqrt(sum(squares[1:], squares[0]))


@ti.func
def is_finite(x):
    """Whether a number is, by its bits: comparisons with NaN may be optimised away."""
    return (ti.bit_cast(x, ti.u32) & ti.cast(0x7F800000, ti.u32)) != ti.cast(0x7F800000, ti.u32)


@traced
def cross(a, b):
    """The cross product of two vectors of three."""
    a, b = local(a), local(b)
    turns = [(1, 2), (2, 0), (0, 1)]
    return ti.Vector([subscript(a, i) * subscript(b, j) - subscript(a, j) * subscript(b, i) for i, j in turns])
