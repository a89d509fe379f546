"""How values lie in memory: flat arrays over cells and one ghost layer, the last axis fastest; their types and indices."""

import ctypes
import functools
from typing import Any

import numpy as np

from .._ti import impl, local, subscript, ti, traced

Array = ti.types.ndarray(dtype=ti.f32, ndim=1)
"""Annotation of every array argument of a kernel: flat, scalar, f32."""

IntArray = ti.types.ndarray(dtype=ti.i32, ndim=1)
"""Annotation of an array of indices."""

CPU_ARCHS = (ti.x64, ti.arm64)

ARRAY_BITS = 29
"""An array holds fewer than 2 to this power values, which are less than 2 GiB; one component of several half of that."""


def arch():
    """The Taichi arch that is running.

    Raises:
        RuntimeError: if ``ti.init`` has not been called.
    """
    if impl.get_runtime().prog is None:
        raise RuntimeError("Taichi is not running: call ti.init(arch=...) before building a Grid or a Simulation.")
    return impl.current_cfg().arch


@functools.cache
def int_vector(dim: int):
    """The Taichi type of a grid's shape: ``dim`` integers."""
    return ti.types.vector(dim, ti.i32)


@functools.cache
def float_vector(dim: int):
    """The Taichi type of a point or a velocity: ``dim`` numbers of f32."""
    return ti.types.vector(dim, ti.f32)


def array_of(values, dtype=ti.f32):
    """A new array on the device with ``values``, flat, as numbers of a type."""
    values = np.ascontiguousarray(values, dtype=np.float32 if dtype == ti.f32 else np.int32).ravel()
    array = ti.ndarray(dtype, values.size)
    array.from_numpy(values)
    return array


def memory_of(array) -> np.ndarray | None:
    """On a CPU the values of an f32 array themselves, for as long as it lives; None where a device holds them.

    ``to_numpy`` launches a kernel of 90 µs, which counts where a few values are looked at again and again.
    """
    if not _on_cpu():
        return None
    program: Any = impl.get_runtime().prog
    pointer = program.get_ndarray_data_ptr_as_int(array.arr)
    return np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), array.shape)


def copy_values(source, target) -> None:
    """Copy an array into another of its length: on a CPU as memory, where ``copy_from`` goes value by value."""
    values = memory_of(source)
    if values is None:
        target.copy_from(source)
    else:
        np.copyto(memory_of(target), values)


def clear_values(array, count: int) -> None:
    """Set the first ``count`` values of an array to 0: on a CPU as memory; elsewhere all of them."""
    values = memory_of(array)
    if values is None:
        array.fill(0.0)
    else:
        values[:count] = 0.0


def _on_cpu() -> bool:
    return arch() in CPU_ARCHS


@traced
def address(i, bits):
    """``i``, which is from 0 to below 2**bits, in the form that makes the cheapest address.

    An index is 32 bits wide to Taichi, and a sum of two could overflow as far as a CPU's compiler knows, so that it
    extends each one by itself. Of 64 bits that it can see to be few it makes one address and small distances from it.
    """
    return ti.cast(i, ti.i64) & (2**bits - 1) if _on_cpu() else i


@traced
def strides_of(n):
    """Strides of the flat padded array (``n + 2`` per axis, last axis fastest) of a grid of ``n`` cells."""
    steps = [ti.cast(1, ti.i32)]
    for a in range(n.n - 1, 0, -1):
        steps.insert(0, steps[0] * (subscript(n, a) + 2))
    return ti.Vector([address(step, ARRAY_BITS - 1) for step in steps])


@traced
def cells_of(s, n):
    """Length of a padded scalar array: the way from one component to the next."""
    return address(subscript(s, 0) * (subscript(n, 0) + 2), ARRAY_BITS - 1)


@traced
def flat(I, s):
    """Flat index of the integer position ``I``."""
    return address(sum(subscript(I, a) * subscript(s, a) for a in range(s.n)), ARRAY_BITS)


@ti.func
def neighbour(I, around):
    """One of the 3^dim positions around ``I``, itself among them: the first, then those beside it along the first axis."""
    J = I
    for axis in ti.static(range(I.n)):
        J[axis] += around // ti.static(3**axis) % 3 - 1
    return J


@traced
def fast_min(x, bound):
    """``x``, or ``bound`` where it is larger or NaN, in one instruction on a CPU, where ``ti.min`` takes four."""
    if not _on_cpu():
        return ti.min(x, bound)
    x, bound = local(x), local(bound)
    return ti.select(x < bound, x, bound)


@traced
def fast_max(x, bound):
    """``x``, or ``bound`` where it is smaller or NaN."""
    if not _on_cpu():
        return ti.max(x, bound)
    x, bound = local(x), local(bound)
    return ti.select(x > bound, x, bound)
