"""Launches recorded once and replayed from C++."""

import numpy as np

from .._ti import ti
from .launch import compiling, translate
from .layout import float_vector, int_vector


class Replay:
    """Recorded launches; a call makes them all, from C++.

    Attributes:
        launches: What was recorded: each kernel, with the values that it is given.
    """

    def __init__(self, graph, values, launches):
        self._graph, self._values = graph, values
        self.launches = tuple(launches)

    def __call__(self) -> None:
        self._graph.run(self._values)


class GraphRecorder:
    """Records kernel launches once, to be replayed from C++ without Python between them.

    A launch through Python costs some ten microseconds; a replayed one a few. The recorder keeps the arrays by name,
    so a recording is written as ordinary calls: ``recorder.launch(kernel, array, shape, 1.0)``.
    """

    def __init__(self):
        self._builder = ti.graph.GraphBuilder()
        self._values = {}
        self._symbols = {}
        self._launches = []

    def _symbol(self, value):
        key = id(value) if not isinstance(value, (int, float)) else (type(value), value)
        if key not in self._symbols:
            name = f"a{len(self._symbols)}"
            if isinstance(value, ti.Ndarray):
                symbol = ti.graph.Arg(ti.graph.ArgKind.NDARRAY, name, value.dtype, ndim=1)
            elif isinstance(value, ti.Matrix) and value.ndim == 1:
                entries = np.asarray(value.entries)
                vector = (float_vector if entries.dtype.kind == "f" else int_vector)(entries.size)
                symbol = ti.graph.Arg(ti.graph.ArgKind.MATRIX, name, vector)
            elif isinstance(value, (int, float)):
                symbol = ti.graph.Arg(ti.graph.ArgKind.SCALAR, name, ti.i32 if isinstance(value, int) else ti.f32)
            else:
                raise ValueError(f"a launch cannot be recorded with {value!r}; it takes arrays, vectors and numbers")
            self._symbols[key] = symbol
            self._values[name] = value
        return self._symbols[key]

    def launch(self, kernel, *args) -> None:
        """Record one launch of ``kernel``. Arrays must be distinct: Taichi miscompiles an aliased pair in silence.

        Raises:
            ValueError: for an array that is given twice, or what is no array, vector, ``int`` or ``float``.
        """
        arrays = [id(value) for value in args if isinstance(value, ti.Ndarray)]
        if len(set(arrays)) != len(arrays):
            raise ValueError("the same array was given twice to one kernel")
        symbols = [self._symbol(value) for value in args]
        if kernel._primal.compiled_kernels:
            self._builder.dispatch(kernel, *symbols)
        else:
            with compiling(kernel):
                self._builder.dispatch(kernel, *symbols)
                translate(kernel)  # else all of a recording would be translated at its first replay
        self._launches.append((kernel, args))

    def finish(self) -> Replay:
        """Close the recording and return what replays it."""
        return Replay(self._builder.compile(), self._values, self._launches)
