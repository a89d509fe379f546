"""Which loop and which container: the 7-point stencil and a trilinear gather in five forms, and other small choices.

    python benchmarks/loops.py [arch] [n]

The figures stand in docs/design.md.
"""

import sys

import numpy as np
import taichi as ti
from common import milliseconds, save

from taichi_fluid import backend
from taichi_fluid.grid import Grid
from taichi_fluid.kernels import PARTIALS, Array, GraphRecorder, Launcher, add, loops, strides_of
from taichi_fluid.operators.interpolation import sample

arch = backend.start(sys.argv[1] if len(sys.argv) > 1 else "cpu")
N = int(sys.argv[2]) if len(sys.argv) > 2 else 128
grid = Grid((N, N, N), 1.0)
kit = loops(grid.loops)
IntVector, each_cell, reduce_to = kit.IntVector, kit.each_cell, kit.reduce_to
Array3 = ti.types.ndarray(dtype=ti.f32, ndim=3)


@ti.func
def stencil(c, I, s, a: ti.template(), out: ti.template()):
    total = a[c - s[0]] + a[c + s[0]]
    for axis in ti.static(range(1, 3)):
        total += a[c - s[axis]] + a[c + s[axis]]
    out[c] = total - ti.f32(6.0) * a[c]


@ti.kernel
def stencil_ours(a: Array, out: Array, n: IntVector):
    each_cell(n, stencil, (a, out))


@ti.kernel
def stencil_flat_index(a: Array, out: Array, n: IntVector):
    for i, j, k in ti.ndrange((1, n[0] + 1), (1, n[1] + 1), (1, n[2] + 1)):
        s = strides_of(n)
        stencil(i * s[0] + j * s[1] + k, ti.Vector([i, j, k]), s, a, out)


@ti.kernel
def stencil_ndarray3(a: Array3, out: Array3):
    for i, j, k in ti.ndrange((1, N + 1), (1, N + 1), (1, N + 1)):
        out[i, j, k] = (
            a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 1, k] + a[i, j + 1, k] + a[i, j, k - 1] + a[i, j, k + 1]
            - 6.0 * a[i, j, k]
        )  # fmt: skip


@ti.kernel
def stencil_field(a: ti.template(), out: ti.template()):
    for I in ti.grouped(ti.ndrange((1, N + 1), (1, N + 1), (1, N + 1))):
        total = -6.0 * a[I]
        for axis in ti.static(range(3)):
            total += a[I + ti.Vector.unit(3, axis)] + a[I - ti.Vector.unit(3, axis)]
        out[I] = total


@ti.kernel
def stencil_field_rows(a: ti.template(), out: ti.template()):
    for i, j in ti.ndrange((1, N + 1), (1, N + 1)):
        for k in range(1, N + 1):
            out[i, j, k] = (
                a[i - 1, j, k] + a[i + 1, j, k] + a[i, j - 1, k] + a[i, j + 1, k] + a[i, j, k - 1] + a[i, j, k + 1]
                - 6.0 * a[i, j, k]
            )  # fmt: skip


@ti.func
def shifted(c, I, s, a: ti.template(), out: ti.template(), n):
    out[c] = sample(a, 0, ti.cast(I, ti.f32) + ti.f32(0.37), n)


@ti.kernel
def gather_ours(a: Array, out: Array, n: IntVector):
    each_cell(n, shifted, (a, out, n))


@ti.kernel
def gather_field(a: ti.template(), out: ti.template()):
    for i, j, k in ti.ndrange((1, N + 1), (1, N + 1), (1, N + 1)):
        q = ti.Vector([i, j, k]) + 0.37
        base = ti.floor(q, int)
        f = q - base
        total = 0.0
        for corner in ti.static(ti.grouped(ti.ndrange(2, 2, 2))):
            w = 1.0
            for axis in ti.static(range(3)):
                w *= f[axis] if ti.static(corner[axis]) else 1.0 - f[axis]
            total += w * a[ti.min(base + corner, N + 1)]
        out[i, j, k] = total


@ti.func
def increment(c, I, s, a: ti.template()):
    a[c] = a[c] + ti.f32(1.0)


@ti.func
def increment_atomic(c, I, s, a: ti.template()):
    a[c] += ti.f32(1.0)


@ti.kernel
def plain_add(a: Array, n: IntVector):
    each_cell(n, increment, (a,))


@ti.kernel
def atomic_add(a: Array, n: IntVector):
    each_cell(n, increment_atomic, (a,))


@ti.func
def value(c, I, s, a: ti.template()):
    return a[c]


@ti.kernel
def sum_ours(a: Array, n: IntVector, partials: Array, out: Array):
    reduce_to(out, 0, n, partials, ti.f32(0.0), add, value, (a,))


@ti.func
def add_to(c, I, s, a: ti.template(), out: ti.template()):
    out[0] += a[c]


@ti.kernel
def sum_atomic(a: Array, n: IntVector, out: Array):
    each_cell(n, add_to, (a, out))


def main() -> None:
    random = np.random.default_rng(0).random(grid.padded, dtype=np.float32)
    a, out = grid.array(), grid.array()
    a.from_numpy(random.reshape(-1))
    a3, out3 = ti.ndarray(ti.f32, grid.padded), ti.ndarray(ti.f32, grid.padded)
    a3.from_numpy(random)
    field, field_out = ti.field(ti.f32, grid.padded), ti.field(ti.f32, grid.padded)
    field.from_numpy(random)
    partials, one = ti.ndarray(ti.f32, PARTIALS), ti.ndarray(ti.f32, 1)
    small = Grid((16, 16, 16), 1.0)
    small_a, small_out = small.array(), small.array()
    recorder = GraphRecorder()
    for _ in range(20):
        recorder.launch(stencil_ours, small_a, small_out, small.n)
    replay = recorder.finish()

    def launches(kernel):
        for _ in range(20):
            kernel(small_a, small_out, small.n)

    straight = Launcher(stencil_ours)

    forms = {
        "stencil: flat array, our loop": lambda: stencil_ours(a, out, grid.n),
        "stencil: flat array, one index per cell": lambda: stencil_flat_index(a, out, grid.n),
        "stencil: 3-D ndarray, one index per cell": lambda: stencil_ndarray3(a3, out3),
        "stencil: 3-D field, grouped": lambda: stencil_field(field, field_out),
        "stencil: 3-D field, rows": lambda: stencil_field_rows(field, field_out),
        "gather: flat array, our loop": lambda: gather_ours(a, out, grid.n),
        "gather: 3-D field, one index per cell": lambda: gather_field(field, field_out),
        "a[c] = a[c] + 1": lambda: plain_add(out, grid.n),
        "a[c] += 1 (atomic)": lambda: atomic_add(out, grid.n),
        "sum: two stages, deterministic": lambda: sum_ours(a, grid.n, partials, one),
        "sum: atomics": lambda: sum_atomic(a, grid.n, one),
        "20 launches on 16³: by Taichi, from Python": lambda: launches(stencil_ours),
        "20 launches on 16³: by `Launcher`, from Python": lambda: launches(straight),
        "20 launches on 16³: recorded graph": replay,
    }
    stencil_ours(a, out, grid.n)
    stencil_field(field, field_out)
    difference = np.abs(grid.to_numpy(out) - field_out.to_numpy()[1:-1, 1:-1, 1:-1]).max()
    assert difference < 1e-5, f"the forms disagree by {difference}"
    rows = []
    for name, run in forms.items():
        rows.append({"arch": arch, "n": N, "form": name, "ms": milliseconds(run)})
        print(f"{rows[-1]['ms']:9.3f} ms  {name}")
    save(f"loops_{arch}_{N}", rows)


if __name__ == "__main__":
    main()
