"""Numbers on a side as a function of the user's own that Taichi compiles says them."""

import functools
from collections.abc import Callable

import numpy as np

from .._ti import ti
from ..kernels import Launcher


@functools.cache
def _kernel_of(function: Callable, dim: int):
    """A kernel that asks ``function(t, x, y)``, in 3D ``function(t, x, y, z)``, at each of some places."""

    @ti.kernel
    def evaluate(
        places: ti.types.ndarray(dtype=ti.f32, ndim=2), out: ti.types.ndarray(dtype=ti.f32, ndim=1), t: ti.f32
    ):
        for i in range(out.shape[0]):
            if ti.static(dim == 2):
                out[i] = ti.cast(function(t, places[0, i], places[1, i]), ti.f32)
            else:
                out[i] = ti.cast(function(t, places[0, i], places[1, i], places[2, i]), ti.f32)

    return Launcher(evaluate)  # which says that it compiles


def evaluated(function: Callable, time: float, *x: np.ndarray) -> np.ndarray:
    """What a ``ti.func`` of the time, s, and of two or three coordinates, m, says at places that fit each other; f32."""
    shape = np.broadcast_shapes(*(each.shape for each in x))
    places = np.stack([np.broadcast_to(each, shape).ravel() for each in x]).astype(np.float32)
    out = np.empty(places.shape[1], np.float32)
    _kernel_of(function, len(x))(places, out, time)
    return out.reshape(shape)
