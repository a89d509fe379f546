"""Short arrays, read back from where they are."""

import functools

from .._ti import ti
from .launch import Launcher
from .layout import Array, float_vector, memory_of


@functools.cache
def reading_kernel(count: int):
    """The kernel that returns the values of an array of so many."""

    @ti.kernel
    def return_numbers(a: Array) -> float_vector(count):
        return ti.Vector([a[k] for k in ti.static(range(count))])

    return Launcher(return_numbers)


def numbers_of(array) -> list[float]:
    """The numbers of a short f32 array.

    A device returns them from a kernel: for ``to_numpy``, and for a single element no less, Taichi would make room for a
    copy on the device and give it back each time, which takes longer than many a stage of a step.
    """
    values = memory_of(array)
    return reading_kernel(array.shape[0])(array).to_list() if values is None else values.tolist()
