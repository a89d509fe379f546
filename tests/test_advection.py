"""Advection: constants, identity, bounds, symmetry, exact shifts, and two flows against an independent program."""

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import (
    SHAPES,
    closed_box,
    face_shape,
    mirrored,
    mirrored_velocity,
    permuted_velocity,
    random_scalar,
    random_velocity,
    table,
    take,
)

from taichi_fluid.boundaries.solids import Solids
from taichi_fluid.grid import Scratch
from taichi_fluid.physics.advection import Advection, Scheme, Trace
from taichi_fluid.validation.transport import FLOWS, carried_around, errors_of

SCHEMES = [Scheme.SEMI_LAGRANGIAN, Scheme.MACCORMACK]
schemes = pytest.mark.parametrize("scheme", SCHEMES, ids=lambda scheme: scheme.value)
begins = pytest.mark.parametrize("faces_begin", [False, True], ids=["centres", "faces"])
"""Where the paths of a scalar begin: where it lies, or at the faces around."""


class Flow:
    """Carries NumPy values with a NumPy velocity through the engine."""

    def __init__(self, shape, scheme, trace=Trace.RK2, dx=1.0, kind="free-slip"):
        self.grid, self.walls, self.arrays = closed_box(shape, dx, kind)
        self.advection = Advection(self.grid, self.walls, Scratch(self.grid), scheme, trace)

    def scalar(self, values, faces, dt=1.0, faces_begin=False):
        """A centred quantity after ``dt``; the velocity's walls are closed first."""
        out = self.grid.array()
        self.advection.trace_paths(self.arrays.velocity(faces), dt, faces=faces_begin)
        self.advection.carry(self.arrays.scalar(values), out)
        return self.grid.to_numpy(out)

    def velocity(self, faces, dt=1.0):
        """All faces of a velocity carried with itself."""
        out = self.grid.velocity()
        self.advection.carry_velocity(self.arrays.velocity(faces), out, dt)
        return self.arrays.faces(out)


@functools.cache
def flow(shape, scheme, trace=Trace.RK2):
    """The same arrays again for every example."""
    return Flow(shape, scheme, trace)


@pytest.mark.vulkan_too
@schemes
@begins
@given(value=st.sampled_from([0.1, -7.3, 1e30, 1e-30, 0.0]), cfl=st.sampled_from([0.3, 4.0, 1e3]))
def test_a_constant_stays_bitwise_the_constant(scheme, faces_begin, value, cfl):
    for shape in (SHAPES[2][0], SHAPES[3][0]):
        values, faces = np.full(shape, value, np.float32), random_velocity(shape, scale=cfl)
        assert (flow(shape, scheme).scalar(values, faces, faces_begin=faces_begin) == values).all()


@schemes
def test_a_velocity_component_that_is_constant_along_a_channel_stays(dim, scheme):
    """Uniform flow along an axis, seen away from the walls that stop it."""
    shape = (12, 5, 6)[:dim]
    faces = [np.full(face_shape(shape, axis), 0.7 * (axis == 0), np.float32) for axis in range(dim)]
    inside = take(flow(shape, scheme).velocity(faces)[0], 0, slice(4, -4))
    assert (inside == np.float32(0.7)).all()


@pytest.mark.vulkan_too
@schemes
@pytest.mark.parametrize("trace", Trace)
def test_no_time_or_no_motion_is_the_identity(dim, scheme, trace):
    for shape in SHAPES[dim]:
        values, faces = random_scalar(shape).astype(np.float32), random_velocity(shape)
        still = [0 * f for f in faces]
        there = flow(shape, scheme, trace)
        for begin in (False, True):
            assert (there.scalar(values, still, faces_begin=begin) == values).all()
            assert (there.scalar(values, faces, 0.0, begin) == values).all()
        for found, given_faces in zip(there.velocity(faces, dt=0.0), faces, strict=True):
            assert (found == given_faces).all()


@pytest.mark.vulkan_too
@schemes
@begins
@given(exponent=st.sampled_from([-2, -1, 0, 1, 2, 3]), seed=st.integers(0, 50))
def test_what_comes_out_lies_between_what_went_in(scheme, faces_begin, exponent, seed):
    """Exactly, at any CFL number: Ash's clamp to N + 0.5 read beyond the array, and rounding may pass a corner."""
    for shape in (SHAPES[2][0], SHAPES[3][0]):
        values = random_scalar(shape, seed).astype(np.float32)
        faces = random_velocity(shape, seed, scale=10.0**exponent)
        out = flow(shape, scheme).scalar(values, faces, faces_begin=faces_begin)
        assert np.isfinite(out).all()
        assert values.min() <= out.min()
        assert out.max() <= values.max()


@pytest.mark.vulkan_too
@schemes
@begins
@pytest.mark.parametrize("speed", [1e30, 1e-40, 1e-30, 3e38])
def test_huge_and_tiny_speeds_make_no_nan(dim, scheme, faces_begin, speed):
    for shape in SHAPES[dim]:
        values = random_scalar(shape).astype(np.float32)
        faces = [np.clip(f, -1, 1) * speed for f in random_velocity(shape)]
        for trace in Trace:
            out = flow(shape, scheme, trace).scalar(values, faces, faces_begin=faces_begin)
            assert np.isfinite(out).all()
            assert values.min() <= out.min() <= out.max() <= values.max()


@schemes
@pytest.mark.parametrize("size", [1e30, 1e-30, 1e-42])
def test_huge_and_tiny_values_make_no_nan(dim, scheme, size):
    for shape in SHAPES[dim]:
        values = (random_scalar(shape) * size).astype(np.float32)
        out = flow(shape, scheme).scalar(values, random_velocity(shape))
        assert np.isfinite(out).all()
        # Denormals may be flushed to 0, on the way in or out.
        assert min(values.min(), 0) <= out.min() <= out.max() <= max(values.max(), 0)


@pytest.mark.vulkan_too
@schemes
@begins
def test_a_whole_number_of_cells_is_an_exact_shift(dim, scheme, faces_begin):
    shape, shift = (12, 11, 9)[:dim], (3, -2, 1)[:dim]
    there = Flow(shape, scheme)
    u, out = there.grid.velocity(), there.grid.array()
    u.from_numpy(np.repeat(np.float32(shift), there.grid.cells))
    values = random_scalar(shape).astype(np.float32)
    there.advection.trace_paths(u, 1.0, faces=faces_begin)
    there.advection.carry(there.arrays.scalar(values), out)
    found, expected = there.grid.to_numpy(out), np.roll(values, shift, axis=range(dim))
    # MacCormack asks back what lies ``shift`` further on, so keep twice the shift away from the walls.
    inside = tuple(slice(2 * abs(k), n - 2 * abs(k)) for k, n in zip(shift, shape, strict=True))
    assert (found[inside] == expected[inside]).all()


@begins
def test_traces_are_what_runge_kutta_says(dim, faces_begin):
    """In u = x the departure point of x is x·(1 - z), ·(1 - z + z²/2), ·(1 - z + z²/2 - z³/6) with z = dt."""
    shape, dt = (10, 4, 5)[:dim], 0.25
    x = np.arange(shape[0]) + 0.5
    factor = {Trace.EULER: 1 - dt, Trace.RK2: 1 - dt + dt**2 / 2, Trace.RK3: 1 - dt + dt**2 / 2 - dt**3 / 6}
    for trace in Trace:
        there = Flow(shape, Scheme.SEMI_LAGRANGIAN, trace)
        u = there.grid.velocity()
        padded = there.grid.to_numpy_padded(u)
        padded[0] = (np.arange(shape[0] + 2) - 1.0).reshape(-1, *(1,) * (dim - 1))
        u.from_numpy(padded.ravel())
        out = there.grid.array()
        there.advection.trace_paths(u, dt, faces=faces_begin)
        there.advection.carry(there.arrays.scalar(np.broadcast_to(x.reshape(-1, *(1,) * (dim - 1)), shape)), out)
        # Linear interpolation is exact for x; away from the lower wall, where x is cut off at the first centre, and from
        # the upper one, on which a path along the face does not move.
        np.testing.assert_allclose(
            there.arrays.get(out)[1:-1, 0].reshape(shape[0] - 2, -1)[:, 0], factor[trace] * x[1:-1], rtol=1e-6
        )


@pytest.mark.vulkan_too
@schemes
@begins
def test_a_mirror_changes_nothing_but_the_side(dim, scheme, faces_begin):
    shape = SHAPES[dim][0]
    there = flow(shape, scheme, Trace.RK3)
    values, faces = random_scalar(shape), random_velocity(shape)
    plain, moved = there.scalar(values, faces, faces_begin=faces_begin), there.velocity(faces)
    for axis in range(dim):
        seen = there.scalar(mirrored(values, axis), mirrored_velocity(faces, axis), faces_begin=faces_begin)
        # Places are rounded differently at both ends of the box: 1e-6 cells times differences of 6.
        np.testing.assert_allclose(mirrored(seen, axis), plain, rtol=0, atol=1e-5)
        seen = there.velocity(mirrored_velocity(faces, axis))
        for found, expected in zip(mirrored_velocity(seen, axis), moved, strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@schemes
@begins
def test_the_names_of_the_axes_do_not_matter(dim, scheme, faces_begin):
    shape = SHAPES[dim][0]
    values, faces = random_scalar(shape), random_velocity(shape)
    plain = flow(shape, scheme).scalar(values, faces, faces_begin=faces_begin)
    moved = flow(shape, scheme).velocity(faces)
    for order in [(1, 0), (0, 1)][:1] if dim == 2 else [(1, 2, 0), (0, 2, 1)]:
        there = flow(tuple(shape[a] for a in order), scheme)
        renamed = permuted_velocity(faces, order)
        found = there.scalar(np.transpose(values, order), renamed, faces_begin=faces_begin)
        np.testing.assert_allclose(found, np.transpose(plain, order), rtol=0, atol=1e-5)
        for a, b in zip(there.velocity(renamed), permuted_velocity(moved, order), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


@schemes
def test_two_and_three_dimensions_agree_on_what_does_not_vary(scheme):
    shape = (9, 7)
    values, faces = random_scalar(shape), random_velocity(shape)
    flat, moved = flow(shape, scheme).scalar(values, faces), flow(shape, scheme).velocity(faces)
    for depth in (1, 4):
        deep = flow((*shape, depth), scheme)
        repeated = [np.repeat(f[..., None], depth, axis=2) for f in faces]
        faces_3d = [*repeated, np.zeros((*shape, depth + 1))]
        found = deep.scalar(np.repeat(values[..., None], depth, axis=2), faces_3d)
        np.testing.assert_allclose(found, np.repeat(flat[..., None], depth, axis=2), rtol=0, atol=1e-5)
        u, v, w = deep.velocity(faces_3d)
        assert (w == 0).all()
        for found, expected in ((u, moved[0]), (v, moved[1])):
            np.testing.assert_allclose(found, np.repeat(expected[..., None], depth, axis=2), rtol=0, atol=1e-5)


def test_in_and_out_must_not_be_one_array(dim):
    there = flow(SHAPES[dim][0], Scheme.SEMI_LAGRANGIAN)
    array = there.grid.array()
    with pytest.raises(ValueError, match="same array"):
        there.advection.carry(array, array)


def across(dim, profile, speed):
    """A periodic box of 16 cells an axis whose flow goes along the first axis, and across it as ``profile`` says; its velocity.

    Returns what is left of ``profile`` after one step of 1 s.
    """
    cells = len(profile)
    there = Flow((cells,) * dim, Scheme.MACCORMACK, kind="periodic")
    faces = [np.zeros(face_shape((cells,) * dim, axis)) for axis in range(dim)]
    faces[0] += speed
    faces[1] += np.reshape(profile, (cells,) + (1,) * (dim - 1))
    moved = there.velocity(faces)[1]
    np.testing.assert_allclose(
        moved, moved[:, :1].mean(axis=tuple(range(1, dim)), keepdims=True) + 0 * moved, atol=1e-6
    )
    return moved.reshape(cells, -1)[:, 0]


@pytest.mark.vulkan_too
@pytest.mark.parametrize("speed", [0.125, 0.25, 0.5, 1.25, -0.25])
def test_what_varies_from_cell_to_cell_is_lost_as_cubic_interpolation_loses_it(dim, speed):
    """Linear interpolation leaves A = 1 - 2f of it, the correction (1 - A²) / 2, smoothed a third of that; cubic the like."""
    f = abs(speed) % 1
    wave = np.where(np.arange(16) % 2, -0.125, 0.125)
    there = 1 - 2 * f
    # What is lost is known of the place that it lies at, not of that where it comes from.
    expected = there * np.roll(wave, int(np.trunc(speed))) + (1 - there**2) / 6 * wave
    np.testing.assert_allclose(across(dim, wave, speed), expected, atol=1e-6)  # rounding


@pytest.mark.vulkan_too
@pytest.mark.parametrize("speed", [0.5, -0.5])
def test_a_smooth_crest_of_a_velocity_is_not_cut_and_the_edge_of_a_step_is(dim, speed):
    """From between two cells, where no value was so large, a crest comes to lie on one."""
    at = 2 * np.pi * (np.arange(16) + 0.5) / 16
    wave, exact = 0.1 * np.cos(at), 0.1 * np.cos(at - 2 * np.pi * speed / 16)
    assert wave.max() < 0.0982
    # 0.09966: it lies half a cell beside what it may be more than its limits by, which is 2 % less there.
    np.testing.assert_allclose(across(dim, wave, speed).max(), exact.max(), atol=4e-4)
    step = np.where(np.arange(16) < 8, 0.1, -0.1)
    assert abs(across(dim, step, speed)).max() <= 0.1 + 1e-7


# Two flows of the literature, against an independent float64 program (refdata/advection_oracle.csv).

CELLS = 32
CASES = {"zalesak_1rev": "zalesak", "single_vortex_T2": "vortex"}
"""Names of the flows in the table, and here."""
NAMES = {"sl": Scheme.SEMI_LAGRANGIAN, "mc_clamp": Scheme.MACCORMACK}


def carried(case, scheme, faces_begin=False):
    """The disk before and after, and how many steps it took."""
    there = Flow((CELLS, CELLS), scheme, dx=1.0 / CELLS)
    return carried_around(there.advection, CASES[case], faces_begin=faces_begin)


ORACLE = [
    (row[0], row[4], float(row[2]), int(row[3]), [float(x) for x in row[5:]])
    for row in table("advection_oracle.csv")
    if row[0] in CASES and row[1] == str(CELLS) and row[4] in NAMES
]


oracles = pytest.mark.parametrize(
    ("case", "scheme", "dt", "steps", "expected"), ORACLE, ids=[f"{r[0]}-{r[1]}" for r in ORACLE]
)


@oracles
def test_disks_end_where_the_float64_oracle_puts_them(case, scheme, dt, steps, expected):
    initial, final, made = carried(case, NAMES[scheme])
    assert made == steps and dt == FLOWS[CASES[case]][2] / steps
    area = (final > 0.5).sum() / (initial > 0.5).sum() - 1
    found = [
        *errors_of(initial, final), final.sum() / initial.sum() - 1, area, final.min(), final.max(),
    ]  # fmt: skip
    # The table has six digits; f32 places are good to 2e-6 cells, of which the disk's edge makes 1e-6 (measured).
    np.testing.assert_allclose(found, expected, rtol=5e-6, atol=3e-6)


@oracles
def test_paths_of_the_faces_put_them_there_as_accurately(case, scheme, dt, steps, expected):
    """No worse than those of the centres by more than half a percent (measured: 0.2 %), and mostly better."""
    errors = errors_of(*carried(case, NAMES[scheme], faces_begin=True)[:2])
    assert (np.array(errors) <= 1.005 * np.array(expected[:4])).all()
    # They are other paths: what the centres' own paths give is met to 5e-6.
    assert abs(np.array(errors) / expected[:4] - 1).max() > 1e-5


def test_the_oracle_tells_the_schemes_apart():
    """Sabotage: the figures of another scheme or of another case are thousands of tolerances away."""
    figures = {row[:2]: np.array(row[4]) for row in ORACLE}
    assert len(figures) == 4
    for a in figures:
        for b in figures:
            assert a == b or np.abs(figures[a] - figures[b]).max() > 2e-2


def test_beside_solids_a_scalar_has_paths_of_its_own():
    """What is half a cell away may be on the other side of a wall; along the paths of the faces it would be wrong in silence."""
    there = Flow((6, 5), Scheme.MACCORMACK)
    solids = Solids(there.grid, there.walls, [])
    advection = Advection(there.grid, there.walls, Scratch(there.grid), Scheme.MACCORMACK, Trace.RK2, solids)
    velocity, scalar = there.grid.velocity(), there.grid.array()
    for begin in (lambda: None, lambda: advection.trace_paths(velocity, 1.0, faces=True)):
        begin()
        with pytest.raises(RuntimeError, match=r"trace_paths\(faces=False\)"):
            advection.carry(scalar, there.grid.array())
    advection.trace_paths(velocity, 1.0)
    advection.carry(scalar, there.grid.array())


def test_paths_of_faces_serve_what_lies_between_them_before_and_after_the_velocity(dim):
    shape = SHAPES[dim][0]
    for scheme in SCHEMES:
        there, faces, values = flow(shape, scheme), random_velocity(shape), random_scalar(shape)
        expected, moved = there.scalar(values, faces, faces_begin=True), there.velocity(faces)
        velocity, out, scalar = there.arrays.velocity(faces), there.grid.velocity(), there.grid.array()
        there.advection.carry_velocity(velocity, out, 1.0)
        there.advection.carry(there.arrays.scalar(values), scalar)
        np.testing.assert_array_equal(there.grid.to_numpy(scalar), expected)
        for found, wanted in zip(there.arrays.faces(out), moved, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_maccormack_works_in_place(dim):
    """Bit for bit: of what it carries it reads nothing but its own cell after the prediction."""
    shape = SHAPES[dim][0]
    there, faces, values = flow(shape, Scheme.MACCORMACK), random_velocity(shape), random_scalar(shape)
    apart, velocity, scalar = there.velocity(faces), there.arrays.velocity(faces), there.arrays.scalar(values)
    expected = there.scalar(values, faces)
    there.advection.trace_paths(velocity, 1.0)
    there.advection.carry(scalar, scalar)
    np.testing.assert_array_equal(there.grid.to_numpy(scalar), expected)
    there.advection.carry_velocity(velocity, velocity, 1.0)
    for found, wanted in zip(there.arrays.faces(velocity), apart, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_paths_of_centres_are_none_of_faces_and_the_other_way_round():
    there = Flow((6, 5), Scheme.MACCORMACK)
    velocity, out = there.grid.velocity(), there.grid.velocity()
    there.advection.trace_paths(velocity, 1.0)
    with pytest.raises(RuntimeError, match=r"trace_paths\(faces=True\)"):
        there.advection.carry(velocity, out, 0)


def test_paths_need_an_array_of_their_own():
    there = Flow((6, 5), Scheme.MACCORMACK)
    velocity, departure, scratch = there.grid.velocity(), there.grid.velocity(), there.advection._room
    for taken in (velocity, scratch):
        with pytest.raises(ValueError, match="departure"):
            there.advection.trace_paths(velocity, 1.0, departure=taken)
    there.advection.trace_paths(velocity, 1.0, faces=True, departure=departure)
    with pytest.raises(ValueError, match="holds the paths"):
        there.advection.carry(velocity, departure, 0)
