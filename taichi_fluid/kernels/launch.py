"""Kernels on their way to a device: launches without Taichi's work in Python."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._ti import MatrixType, handle_exception_from_cpp, impl, ti
from ..limits import without_collecting


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
    """Let Taichi compile; a number by itself is of 32 bits meanwhile, whatever the one who called ``ti.init`` has chosen."""
    for tell in tuple(_told):
        tell(kernel.__name__)
    runtime = impl.get_runtime()
    chosen = runtime.default_fp, runtime.default_ip
    runtime.default_fp, runtime.default_ip = ti.f32, ti.i32
    try:
        with without_collecting():
            yield
    finally:
        runtime.default_fp, runtime.default_ip = chosen


class Launcher:
    """A kernel, launched without what Taichi does anew in Python each time, which for a vector takes 15 µs.

    Taichi compiles and checks at the first launch after each ``ti.init``. After it arrays, numbers and vectors of the
    types that are announced go straight to the launch; anything else takes Taichi's own way, with its messages.
    """

    def __init__(self, kernel):
        functools.update_wrapper(self, kernel)
        self._kernel, self._primal = kernel, kernel._primal
        setters = [_setter(index, argument.annotation) for index, argument in enumerate(self._primal.arguments)]
        self._setters = None if self._primal.return_type or None in setters else setters
        self._ready: tuple[Any, Any] = (None, None)

    def __call__(self, *args, **kwargs) -> Any:
        if not self._primal.compiled_kernels:
            with compiling(self):
                return self._kernel(*args, **kwargs)
        if kwargs or not self.launch(args):
            return self._kernel(*args, **kwargs)
        return None

    def launch(self, args) -> bool:
        """Launch straight away if this is possible."""
        runtime, compiled = impl.get_runtime(), self._primal.compiled_kernels
        if self._setters is None or len(compiled) != 1 or len(args) != len(self._setters):
            return False
        if runtime.target_tape or runtime.fwd_mode_manager:
            return False
        (one,) = compiled.values()
        program: Any = runtime.prog
        known, data = self._ready
        context = one.make_launch_context()
        for setter, value in zip(self._setters, args, strict=True):
            if not setter(context, value):
                return False
        try:
            if one is not known:
                data = program.compile_kernel(program.config(), program.get_device_caps(), one)
                self._ready = one, data
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
    """A function for the argument of this number, ``set(context, value)``, that says whether it has taken it; None for none."""
    if isinstance(annotation, ti.types.ndarray):
        return functools.partial(_set_array, annotation.dtype, (index,)) if annotation.ndim == 1 else None
    if annotation is ti.f32 or annotation is ti.i32:
        return functools.partial(_set_number, annotation is ti.f32, (index,))
    if isinstance(annotation, MatrixType) and annotation.ndim == 1 and annotation.dtype in (ti.f32, ti.i32):
        places = [(index, k) for k in range(annotation.n)]
        return functools.partial(_set_vector, places, "fi" if annotation.dtype == ti.f32 else "i")
    return None


def _set_array(dtype, place, context, value) -> bool:
    fits = type(value) is ti.ScalarNdarray and value.grad is None and value.dtype == dtype and len(value.shape) == 1
    if fits:
        context.set_arg_ndarray(place, value.arr)
    return fits


def _set_number(real, place, context, value) -> bool:
    fits = isinstance(value, (float, int) if real else int)
    if fits:
        put, kind = (context.set_arg_float, float) if real else (context.set_arg_int, int)
        put(place, kind(value))
    return fits


def _set_vector(places, kinds, context, value) -> bool:
    entries: Any = value.entries if isinstance(value, ti.Matrix) else None
    fits = isinstance(entries, np.ndarray) and entries.size == len(places) and entries.dtype.kind in kinds
    if fits:
        put = context.set_struct_arg_float if kinds == "fi" else context.set_struct_arg_int
        for place, entry in zip(places, entries.tolist(), strict=True):
            put(place, entry)
    return fits
