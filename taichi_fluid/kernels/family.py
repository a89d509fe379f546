"""All loops of one shape, and kernels that are built once for it."""

import functools
from types import SimpleNamespace

from .launch import Launcher
from .loops import LoopShape, cell_loops, colour_loops, pixel_loops
from .reduce import reductions
from .strips import strip_loops
from .wavefront import wavefront_loops


@functools.cache
def loops(shape: LoopShape) -> SimpleNamespace:
    """The loops for one loop shape, as ``ti.func`` to be called at the top level of a kernel.

    Returns:
        A namespace of what ``cell_loops``, ``colour_loops``, ``pixel_loops``, ``strip_loops``, ``reductions`` and
        ``wavefront_loops`` say, and the vector types ``IntVector`` and ``FloatVector``.
    """
    found = cell_loops(shape)
    for floor in (colour_loops, strip_loops, reductions, wavefront_loops):
        made = floor(shape, found)
        found = SimpleNamespace(**vars(found), **vars(made))
    return SimpleNamespace(**vars(found), **vars(pixel_loops(shape)))


def kernel_family(define):
    """Make ``define(loops, *extra)`` a lookup ``family(shape, *extra)`` that builds each of its kernels once.

    It returns them, ``return first, second``; or where something goes with them, ``{"first": first, "Size": Size}``.
    """

    @functools.cache
    def family(shape: LoopShape, *extra) -> SimpleNamespace:
        made = define(loops(shape), *extra)
        named = made if isinstance(made, dict) else {kernel.__name__: kernel for kernel in made}
        return SimpleNamespace(
            **{name: Launcher(value) if hasattr(value, "_primal") else value for name, value in named.items()}
        )

    return functools.update_wrapper(family, define)
