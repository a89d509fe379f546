"""Kernels on their way to a device: launches without Taichi's work in Python."""

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._ti import MatrixType, handle_exception_from_cpp, impl, ti
from ..limits import without_collecting
from .layout import CPU_ARCHS, arch


def compiled_kernels() -> int:
    """How many kernels Taichi has compiled since ``ti.init``, for this project and for everybody else."""
    return sum(len(kernel.compiled_kernels) for kernel in impl.get_runtime().kernels)


_told: list[Callable[[str], None]] = []


@contextlib.contextmanager
def before_compiling(tell: Callable[[str], None]) -> Iterator[None]:
    """Call ``tell(name)`` meanwhile before each kernel is compiled, which nothing else can run beside.

    It may launch kernels, draw, or raise to break off what needs the kernel; the arrays stand as the last launch left
    them.
    """
    _told.append(tell)
    try:
        yield
    finally:
        _told.remove(tell)


@contextlib.contextmanager
def compiling(kernel):
    """Let Taichi compile; whatever the one who called ``ti.init`` has chosen, a number by itself is of 32 bits meanwhile, and of an ``if`` one side runs."""
    for tell in tuple(_told):
        tell(kernel.__name__)
    runtime, config = impl.get_runtime(), impl.current_cfg()
    chosen, flattens = (runtime.default_fp, runtime.default_ip), config.flatten_if
    runtime.default_fp, runtime.default_ip, config.flatten_if = ti.f32, ti.i32, False
    try:
        with without_collecting():
            yield
    finally:
        runtime.default_fp, runtime.default_ip = chosen
        config.flatten_if = flattens


KEEPING = (*CPU_ARCHS, ti.vulkan)
"""Archs on which the context of a launch may be launched again. On CUDA Taichi leaves memory in it that it has freed."""


class Launcher:
    """A kernel, launched without what Taichi does anew in Python each time, which for a vector takes 15 µs.

    Taichi compiles and checks at the first launch after each ``ti.init``. After it arrays, numbers and vectors of the
    types that are announced go straight to the launch, on ``KEEPING`` archs numbers and vectors only where they are not those
    of the launch before; anything else takes Taichi's own way, with its messages.
    """

    def __init__(self, kernel):
        functools.update_wrapper(self, kernel)
        self._kernel, self._primal = kernel, kernel._primal
        setters = [_setter(index, argument.annotation) for index, argument in enumerate(self._primal.arguments)]
        self._setters = None if self._primal.return_type or None in setters else setters
        self._ready: tuple[Any, ...] = (None, None, None)

    def __call__(self, *args, **kwargs) -> Any:
        if not self._primal.compiled_kernels:
            with compiling(self):
                return self._kernel(*args, **kwargs)
        if kwargs or not self.launch(args):
            return self._kernel(*args, **kwargs)
        return None

    def _begin(self, one) -> tuple[Any, list]:
        """The context of launches, and what was put there for each argument: nothing."""
        return one.make_launch_context(), [None] * len(self._setters or ())

    def launch(self, args) -> bool:
        """Launch straight away if this is possible."""
        runtime, compiled = impl.get_runtime(), self._primal.compiled_kernels
        if self._setters is None or len(compiled) != 1 or len(args) != len(self._setters):
            return False
        if runtime.target_tape or runtime.fwd_mode_manager:
            return False
        (one,) = compiled.values()
        program: Any = runtime.prog
        try:
            if one is not self._ready[0]:
                data = program.compile_kernel(program.config(), program.get_device_caps(), one)
                self._ready = one, data, self._begin(one) if arch() in KEEPING else None
            _, data, kept = self._ready
            context, given = kept or self._begin(one)
            for k, setter in enumerate(self._setters):
                given[k] = setter(context, args[k], given[k])
                if given[k] is None:
                    return False
            program.launch_kernel(data, context)
        except Exception as error:
            raise handle_exception_from_cpp(error) from None
        return True


def translate(kernel) -> None:
    """Let Taichi turn what it has traced of a kernel into code now, and not at its first launch."""
    program: Any = impl.get_runtime().prog
    for one in kernel._primal.compiled_kernels.values():
        program.compile_kernel(program.config(), program.get_device_caps(), one)


def _setter(index: int, annotation):
    """A function for the argument of this number; None for none.

    ``set(context, value, given)`` is told what it has returned before, and returns what stands in the context now, or None
    if it cannot take the value. An array is put there each time: a launch leaves something else in its place.
    """
    if isinstance(annotation, ti.types.ndarray):
        return functools.partial(_set_array, annotation.dtype, (index,)) if annotation.ndim == 1 else None
    if annotation is ti.f32 or annotation is ti.i32:
        return functools.partial(_set_number, annotation is ti.f32, (index,))
    if isinstance(annotation, MatrixType) and annotation.ndim == 1 and annotation.dtype in (ti.f32, ti.i32):
        places = [(index, k) for k in range(annotation.n)]
        return functools.partial(_set_vector, places, "fi" if annotation.dtype == ti.f32 else "i")
    return None


def _set_array(dtype, place, context, value, given):
    if given is None or given() is not value:  # by a weak reference: nothing that nobody else holds lives on here
        fits = type(value) is ti.ScalarNdarray and value.grad is None and value.dtype == dtype
        if not fits or len(value.shape) != 1:
            return None
        given = weakref.ref(value)
    context.set_arg_ndarray(place, value.arr)
    return given


def _set_number(real, place, context, value, given):
    if value is given:
        return given
    if not isinstance(value, (float, int) if real else int):
        return None
    put, kind = (context.set_arg_float, float) if real else (context.set_arg_int, int)
    put(place, kind(value))
    return value


def _set_vector(places, kinds, context, value, given):
    if given is not None and value is given[0] and value.entries.tobytes() == given[1]:
        return given
    entries: Any = value.entries if isinstance(value, ti.Matrix) else None
    if not isinstance(entries, np.ndarray) or entries.size != len(places) or entries.dtype.kind not in kinds:
        return None
    put = context.set_struct_arg_float if kinds == "fi" else context.set_struct_arg_int
    for place, entry in zip(places, entries.tolist(), strict=True):
        put(place, entry)
    return value, entries.tobytes()
