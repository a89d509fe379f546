"""The kernel floor: one way to loop over cells on every arch, deterministic reductions, launch graphs.

Read from top to bottom: ``layout`` (where values lie), ``loops`` (over cells), ``strips`` (of lanes), ``reduce``,
``wavefront`` (passes in turn), ``launch`` and ``graph`` (kernels on their way to a device), ``family`` (all loops of a
shape, and kernels that are built once for it). Names are imported from here.

Kernels live in families: ``@kernel_family`` turns a function that defines kernels for a loop shape into a cached
lookup by grid, so every kernel is built once for a dimension and a loop shape, whatever the size of the grid.

A body writes ``a[c] = a[c] + x``, never ``a[c] += x``: on an array the latter is an atomic in Taichi, which on a CPU
costs ten times as much.
"""

from .family import kernel_family, loops
from .graph import GraphRecorder, Replay
from .launch import Launcher, before_compiling, compiled_kernels
from .layout import (
    ARRAY_BITS,
    CPU_ARCHS,
    Array,
    IntArray,
    address,
    arch,
    array_of,
    cells_of,
    clear_values,
    copy_values,
    fast_max,
    fast_min,
    flat,
    float_vector,
    int_vector,
    memory_of,
    neighbour,
    strides_of,
)
from .loops import BLOCK, COSTLY_SERIAL_CELLS, SERIAL_CELLS, LoopShape, Operator, loop_shape
from .reading import numbers_of
from .reduce import Reduction, add, largest, room_for_partials
from .strips import (
    LONG_STRIP,
    STRIP,
    Strip,
    along_strip,
    cell_of_strip,
    column,
    components,
    lane,
    position_in_strip,
    position_of,
    put_line,
    set_column,
    write_plain_strip,
    write_strip,
)
from .wavefront import BLACK, EVERY, LONG_STRIPS, RED, STRIPS, leave_out
