"""The loops visit what they say, once each; reductions and launch graphs."""

import os
import subprocess
import sys

import numpy as np
import pytest
from reference import SHAPES

from taichi_fluid import kernels
from taichi_fluid._ti import ti
from taichi_fluid.grid import Grid
from taichi_fluid.kernels import (
    BLACK,
    EVERY,
    RED,
    STRIPS,
    Array,
    GraphRecorder,
    LoopShape,
    add,
    kernel_family,
    largest,
    room_for_partials,
    write_plain_strip,
)  # fmt: skip
from taichi_fluid.kernels.loops import CUDA_THREADS, GPU_THREADS, SOFTWARE_THREADS
from taichi_fluid.physics.forces import force_kernels

ALL_SHAPES = [shape for shapes in SHAPES.values() for shape in shapes]


def loop_shapes(dim):
    """Those that run on this arch; a CPU runs the loops of a GPU too. With few threads each of them has many cells."""
    counts = GPU_THREADS, CUDA_THREADS, SOFTWARE_THREADS
    flat = [LoopShape(dim, rows=False, threads=threads) for threads in counts]
    return [kernels.loop_shape(dim), kernels.loop_shape(dim, serial=True), *flat] if on_cpu() else flat


def on_cpu():
    return kernels.arch() in kernels.CPU_ARCHS


@ti.func
def _mark(c, I, s, out: ti.template(), place: ti.template()):
    """Count the visit, and note the position as one number: 100-adic, so that no two are the same."""
    out[c] = out[c] + ti.f32(1.0)
    code = I[0]
    for a in ti.static(range(1, I.n)):
        code = code * 100 + I[a]
    place[c] = ti.cast(code, ti.f32)


@ti.func
def _value(c, I, s, a: ti.template()):
    return a[c]


@ti.func
def _write_scaled(c, I, s, a: ti.template(), out: ti.template(), scale):
    out[c] = scale * a[c]


@kernel_family
def marking_kernels(loops):
    IntVector = loops.IntVector
    each_cell, each_cell_in = loops.each_cell, loops.each_cell_in
    each_of_colour, each_on_plane, dim = loops.each_of_colour, loops.each_on_plane, loops.dim
    reduce_cells, reduced = loops.reduce_cells, loops.reduced

    @ti.kernel
    def cells(out: Array, place: Array, n: IntVector):
        each_cell(n, _mark, (out, place))

    @ti.kernel
    def box(out: Array, place: Array, n: IntVector, lower: IntVector, upper: IntVector):
        each_cell_in(lower, upper, n, _mark, (out, place))

    @ti.kernel
    def colour(out: Array, place: Array, n: IntVector, which: ti.i32):
        each_of_colour(n, which, _mark, (out, place))

    @ti.kernel
    def planes(out: Array, place: Array, n: IntVector):
        for axis in ti.static(range(dim)):
            each_on_plane(n, axis, _mark, (out, place))

    @ti.kernel
    def sum_and_maximum(a: Array, n: IntVector, partials: Array, out: Array):
        reduce_cells(n, partials, ti.f32(0.0), add, _value, (a,))
        for _ in range(1):
            out[0] = reduced(partials, ti.f32(0.0), add)
        reduce_cells(n, partials, ti.f32(-1e30), largest, _value, (a,))
        for _ in range(1):
            out[1] = reduced(partials, ti.f32(-1e30), largest)

    @ti.kernel
    def scale(a: Array, out: Array, n: IntVector, factor: ti.f32):
        each_cell(n, _write_scaled, (a, out, factor))

    return {
        "cells": cells, "box": box, "colour": colour, "planes": planes,
        "sum_and_maximum": sum_and_maximum, "scale": scale,
    }  # fmt: skip


@ti.func
def _neighbours_at(c, I, s, a: ti.template()):
    total = ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        total += a[c - s[axis]] + a[c + s[axis]]
    return total


@ti.func
def _take_neighbours(c, I, s, a: ti.template(), more):
    a[c] = _neighbours_at(c, I, s, a) + more


@kernel_family
def pipeline_kernels(loops):
    IntVector, wavefront, total_of, width = loops.IntVector, loops.wavefront, loops.total_of, loops.long

    @ti.kernel
    def relax_thrice(a: Array, n: IntVector, partials: Array, out: Array):
        wavefront(
            n,
            ((RED, _take_neighbours, (a, 1.0)), (BLACK, _take_neighbours, (a, 2.0)), (RED, _take_neighbours, (a, 3.0))),
            (partials, _value, (a,)),
        )
        for _ in range(1):
            out[0] = total_of(n, partials)

    @ti.kernel
    def scale_and_gather(a: Array, b: Array, gathered: Array, n: IntVector, partials: Array, out: Array):
        wavefront(
            n,
            (
                (EVERY, _write_scaled, (a, b, 2.0)),
                (STRIPS, write_plain_strip, (gathered, width, _neighbours_at, (b,))),
            ),
            (partials, _value, (gathered,)),
        )
        for _ in range(1):
            out[0] = total_of(n, partials)

    return {"relax_thrice": relax_thrice, "scale_and_gather": scale_and_gather}


def neighbour_sums(padded):
    """Sum of the neighbours of every interior cell, as ``_neighbours_at``."""
    inner = (slice(1, -1),) * padded.ndim
    return sum(np.roll(padded, step, axis)[inner] for axis in range(padded.ndim) for step in (1, -1))


def positions(shape):
    """Integer position of every value of the padded array, as the one number that ``_mark`` writes."""
    code = 0
    for index in np.indices([n + 2 for n in shape]):
        code = code * 100 + index
    return code


def visits(grid, launch):
    """Visits and positions that a launch leaves, over the padded grid."""
    out, place = grid.array(), grid.array()
    launch(out, place)
    counts = grid.to_numpy_padded(out)
    np.testing.assert_array_equal(grid.to_numpy_padded(place), np.where(counts > 0, positions(grid.shape), 0))
    return counts


def expected(grid, *slices):
    counts = np.zeros(grid.padded)
    counts[slices] = 1
    return counts


@pytest.mark.vulkan_too
@pytest.mark.parametrize("shape", ALL_SHAPES, ids=str)
def test_each_cell_visits_every_interior_cell_once(shape):
    grid = Grid(shape, 1.0)
    for loop_shape in loop_shapes(grid.dim):
        family = marking_kernels(loop_shape)
        counts = visits(grid, lambda out, place, k=family: k.cells(out, place, grid.n))
        np.testing.assert_array_equal(counts, expected(grid, *(slice(1, -1),) * grid.dim))


@pytest.mark.vulkan_too
@pytest.mark.parametrize("shape", ALL_SHAPES, ids=str)
def test_the_two_colours_share_the_cells_like_a_checkerboard(shape):
    grid = Grid(shape, 1.0)
    parity = np.indices(grid.padded).sum(axis=0) % 2
    interior = expected(grid, *(slice(1, -1),) * grid.dim)
    for loop_shape in loop_shapes(grid.dim):
        family = marking_kernels(loop_shape)
        for which in (0, 1):
            counts = visits(grid, lambda out, place, k=family, w=which: k.colour(out, place, grid.n, w))
            np.testing.assert_array_equal(counts, interior * (parity == which))


def test_each_cell_in_visits_a_box_and_nothing_for_an_empty_one(dim):
    grid = Grid(SHAPES[dim][0], 1.0)
    vector = kernels.int_vector(dim)
    lower, upper = (2, 3, 1)[:dim], (5, 5, 4)[:dim]
    for loop_shape in loop_shapes(dim):
        family = marking_kernels(loop_shape)
        counts = visits(grid, lambda out, place, k=family: k.box(out, place, grid.n, vector(*lower), vector(*upper)))
        np.testing.assert_array_equal(counts, expected(grid, *map(slice, lower, upper)))
        counts = visits(grid, lambda out, place, k=family: k.box(out, place, grid.n, vector(*lower), vector(*lower)))
        assert not counts.any()


@pytest.mark.vulkan_too
@pytest.mark.parametrize("shape", ALL_SHAPES, ids=str)
def test_each_on_plane_visits_the_lower_ghosts_with_their_corners(shape):
    grid = Grid(shape, 1.0)
    counts = sum(
        expected(grid, *(0 if a == axis else slice(None) for a in range(grid.dim))) for axis in range(grid.dim)
    )
    for loop_shape in loop_shapes(grid.dim):
        family = marking_kernels(loop_shape)
        np.testing.assert_array_equal(visits(grid, lambda out, place, k=family: k.planes(out, place, grid.n)), counts)


@pytest.mark.vulkan_too
@pytest.mark.parametrize("count", [1, 2, 6])
def test_numbers_are_read_back_as_they_are_now(count):
    values = np.array([0.1, -3e38, 1e-30, np.inf, 7.0, -0.0], dtype=np.float32)[:count]
    array = kernels.array_of(values)
    assert kernels.numbers_of(array) == values.tolist()
    array.fill(2.5)
    assert kernels.numbers_of(array) == [2.5] * count


@pytest.mark.vulkan_too
@pytest.mark.parametrize("shape", [*ALL_SHAPES, (100, 37), (31, 17, 45)], ids=str)
def test_reductions_are_right_and_give_the_same_bits_again(shape):
    grid = Grid(shape, 1.0)
    values = np.random.default_rng(1).random(shape).astype(np.float32)
    array, out = grid.array(), ti.ndarray(ti.f32, 2)
    array.fill(1e20)  # ghosts must not count
    grid.from_numpy(array, values)
    for loop_shape in loop_shapes(grid.dim):
        family, partials = marking_kernels(loop_shape), room_for_partials(shape=loop_shape)
        partials.fill(np.nan)  # what an earlier, larger reduction left must not count either
        family.sum_and_maximum(array, grid.n, partials, out)
        first = out.to_numpy()
        # Two-stage sums of positive values: the error grows with the length of a row and of the partials, not of all.
        # Measured 2e-7 with the loops of a CPU and 5e-7 with those of a GPU.
        assert first[0] == pytest.approx(values.sum(dtype=np.float64), rel=1e-6)
        assert first[1] == values.max()
        for _ in range(3):
            family.sum_and_maximum(array, grid.n, partials, out)
            np.testing.assert_array_equal(out.to_numpy(), first)


@pytest.mark.vulkan_too
@pytest.mark.parametrize("shape", [*ALL_SHAPES, (8, 3), (100, 37), (8, 5, 3), (31, 17, 45), (67, 2, 5)], ids=str)
def test_passes_in_turn_leave_what_they_leave_one_after_the_other(shape):
    """Of whole numbers, so that every order of a sum is exact: nothing may be done too early, twice or not at all."""
    grid = Grid(shape, 1.0)
    inner = (slice(1, -1),) * grid.dim
    parity = np.indices(grid.padded).sum(axis=0)[inner] % 2
    values = np.random.default_rng(7).integers(-4, 5, shape).astype(np.float32)
    out = ti.ndarray(ti.f32, 1)
    a, b, gathered = (grid.array() for _ in range(3))

    relaxed = np.pad(values, 1)
    for colour, more in ((0, 1), (1, 2), (0, 3)):
        relaxed[inner] = np.where(parity == colour, neighbour_sums(relaxed) + more, relaxed[inner])
    assert np.abs(relaxed).sum(dtype=np.float64) < 2**24, "the test is not exact"
    for loop_shape in loop_shapes(grid.dim):
        family, partials = pipeline_kernels(loop_shape), room_for_partials(planes=shape[0], shape=loop_shape)
        partials.fill(np.nan)
        grid.from_numpy(a, values)
        family.relax_thrice(a, grid.n, partials, out)
        np.testing.assert_array_equal(grid.to_numpy_padded(a), relaxed)
        assert out[0] == relaxed[inner].sum(dtype=np.float64)

        grid.from_numpy(a, values)
        family.scale_and_gather(a, b, gathered, grid.n, partials, out)
        doubled = np.pad(2 * values, 1)
        np.testing.assert_array_equal(grid.to_numpy_padded(b), doubled)
        np.testing.assert_array_equal(grid.to_numpy(gathered), neighbour_sums(doubled))
        assert out[0] == neighbour_sums(doubled).sum(dtype=np.float64)


def test_strides_are_those_of_a_c_ordered_array(dim):
    for shape in SHAPES[dim]:
        grid = Grid(shape, 1.0)
        assert grid.strides == tuple(step // 8 for step in np.zeros(grid.padded).strides)


def test_loop_shape_follows_the_arch_and_the_size(dim):
    small, large = Grid((4,) * dim, 1.0), Grid((400, 400) if dim == 2 else (64, 64, 64), 1.0)
    assert small.loops.dim == dim
    assert small.loops.rows == large.loops.rows == on_cpu()
    assert small.loops.serial == on_cpu()
    assert not large.loops.serial


def test_rows_are_shared_among_the_threads_of_this_start():
    """Not among those of the first one: kernels are built anew after a start with another number."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from taichi_fluid import kernels\n"
            "from taichi_fluid._ti import ti\n"
            "from taichi_fluid.grid import Grid\n"
            "from taichi_fluid.pressure.system import setup_kernels\n"
            "found = []\n"
            "for threads in (1, 3, 1):\n"
            "    ti.init(arch=ti.cpu, log_level=ti.ERROR, cpu_max_num_threads=threads)\n"
            "    shape = Grid((64, 64, 64), 1.0).loops\n"
            "    found.append((kernels.loops(shape), setup_kernels(shape, False)))\n"
            "first, other, again = found\n"
            "print([one is two for one, two in zip(first, other)], [one is two for one, two in zip(first, again)])\n",
        ],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert "[False, False] [True, True]" in done.stdout, done.stdout + done.stderr


def test_a_family_builds_its_kernels_once(dim):
    assert marking_kernels(Grid((4,) * dim, 1.0).loops) is marking_kernels(Grid((5,) * dim, 0.5).loops)


def test_compiled_kernels_counts_a_first_launch_and_no_second(dim):
    @kernel_family
    def fresh(loops):
        IntVector, each_cell = loops.IntVector, loops.each_cell

        @ti.kernel
        def copy(a: Array, out: Array, n: IntVector):
            each_cell(n, _write_scaled, (a, out, ti.f32(1.0)))

        return {"copy": copy}

    before = kernels.compiled_kernels()
    for shape in SHAPES[dim]:
        grid = Grid(shape, 1.0)
        fresh(grid.loops).copy(grid.array(), grid.array(), grid.n)
    assert kernels.compiled_kernels() - before == 1


@pytest.mark.vulkan_too
def test_a_graph_replays_what_was_recorded_on_the_arrays_as_they_are(dim):
    grid = Grid(SHAPES[dim][0], 1.0)
    family = marking_kernels(grid.loops)
    a, b, c = (grid.array() for _ in range(3))
    values = np.random.default_rng(2).random(grid.shape).astype(np.float32)
    grid.from_numpy(a, values)
    recorder = GraphRecorder()
    recorder.launch(family.scale, a, b, grid.n, 2.0)
    recorder.launch(family.scale, b, c, grid.n, 0.25)
    replay = recorder.finish()
    for _ in range(2):
        replay()
        np.testing.assert_array_equal(grid.to_numpy(c), values / 2)
    grid.from_numpy(a, -values)
    replay()
    np.testing.assert_array_equal(grid.to_numpy(c), -values / 2)


@pytest.mark.vulkan_too
def test_a_graph_takes_vectors_of_both_kinds(dim):
    """Numbers of a vector were cut down to integers."""
    grid = Grid(SHAPES[dim][0], 1.0)
    velocity, change = grid.velocity(), (0.5, -1.25, 3.0)[:dim]
    recorder, accelerate = GraphRecorder(), force_kernels(grid.loops, grid.placement).accelerate
    recorder.launch(accelerate, velocity, grid.n, kernels.float_vector(dim)(*change))
    recorder.finish()()
    found = grid.to_numpy(velocity)
    np.testing.assert_array_equal(found, np.broadcast_to(np.reshape(change, (dim, *(1,) * dim)), found.shape))


@pytest.mark.parametrize("wrong", [None, "1", np.zeros(3, np.float32), np.float32(1.0), ti.Matrix([[1, 2], [3, 4]])])
def test_a_graph_refuses_what_it_cannot_keep(wrong):
    grid = Grid((4, 3), 1.0)
    with pytest.raises(ValueError, match="a launch cannot be recorded with"):
        GraphRecorder().launch(marking_kernels(grid.loops).scale, grid.array(), grid.array(), grid.n, wrong)


def test_a_graph_refuses_one_array_in_two_places(dim):
    grid = Grid(SHAPES[dim][0], 1.0)
    array = grid.array()
    with pytest.raises(ValueError, match="same array"):
        GraphRecorder().launch(marking_kernels(grid.loops).scale, array, array, grid.n, 1.0)


# Launches.


@pytest.mark.vulkan_too
def test_a_later_launch_goes_straight_and_does_the_same(dim, monkeypatch):
    grid, values = Grid(SHAPES[dim][0], 1.0), np.random.default_rng(3).random(SHAPES[dim][0]).astype(np.float32)
    scale = marking_kernels(grid.loops).scale
    a, b = grid.array(), grid.array()
    grid.from_numpy(a, values)
    scale(a, b, grid.n, 3.0)
    monkeypatch.setattr(scale, "_kernel", None)
    for factor in (2.0, 0, True, np.float64(0.5)):
        scale(a, b, grid.n, factor)
        np.testing.assert_array_equal(grid.to_numpy(b), np.float32(factor) * values)


@pytest.mark.vulkan_too
def test_a_launch_heeds_what_has_changed_since_the_last_one(dim):
    """A vector in its entries, an array that lies where one was that is gone, a number in its sign alone."""
    grid = Grid(SHAPES[dim][0], 1.0)
    accelerate, scale = force_kernels(grid.loops, grid.placement).accelerate, marking_kernels(grid.loops).scale
    change = kernels.float_vector(dim)(*range(1, 1 + dim))
    for turn in range(4):
        velocity = grid.velocity()
        accelerate(velocity, grid.n, change)
        accelerate(velocity, grid.n, change)
        found = grid.to_numpy(velocity)
        np.testing.assert_array_equal(
            found, np.broadcast_to(2 * np.reshape(change.to_numpy(), (dim, *(1,) * dim)), found.shape)
        )
        change[turn % dim] += 1.0
        del velocity
    for factor in (0.0, -0.0, 0.0):
        a, b = grid.array(), grid.array()
        a.fill(1.0)
        scale(a, b, grid.n, factor)
        assert (np.signbit(grid.to_numpy(b)) == np.signbit(factor)).all()


def test_what_does_not_fit_gets_the_messages_of_taichi(dim):
    grid = Grid(SHAPES[dim][0], 1.0)
    scale, a, b = marking_kernels(grid.loops).scale, grid.array(), grid.array()
    scale(a, b, grid.n, 1.0)
    for wrong in (
        (a, b, grid.n, "1"),
        (a, b, grid.n),
        (a, ti.ndarray(ti.i32, grid.cells), grid.n, 1.0),
        (a, 1.0, grid.n, 1.0),
    ):
        with pytest.raises(Exception, match=r"cannot be converted|missing|Expect element type|Invalid type"):
            scale(*wrong)
    numbers = np.zeros(grid.cells, np.float32)
    a.fill(2.0)
    scale(a, numbers, grid.n, 4.0)
    assert set(numbers) == {0.0, 8.0}, "an array of NumPy's is as good, interior alone"


def test_memory_of_an_array_is_the_array():
    array = ti.ndarray(ti.f32, 5)
    array.fill(1.5)
    seen = kernels.memory_of(array)
    if not on_cpu():
        assert seen is None
        return
    array[3] = 7.0
    np.testing.assert_array_equal(seen, [1.5, 1.5, 1.5, 7.0, 1.5])


def test_with_many_threads_too():
    """Shares of planes and the seams between them, of which two threads know only the simplest case."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n0",
        "-m",
        "",
        "-p",
        "no:cacheprovider",
        __file__,
        "-k",
        "turn or sum or each",
    ]
    environment = {**os.environ, "TI_CPU_MAX_NUM_THREADS": "7"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-2000:]
