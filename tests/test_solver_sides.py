"""The elliptic solvers with periodic axes, open sides and every mixture: against matrices and transforms of SciPy."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import centred, divergence, norm, random_scalar, relative
from reference_sides import AXES, box_matrix, random_flow, sides_of, solve_box, solve_sparse
from test_pressure import Operator, asymmetry, is_symmetric

from taichi_fluid.boundaries.coefficients import BoundaryCoefficients
from taichi_fluid.grid import Grid
from taichi_fluid.pressure.solver import METHODS, EllipticSolver, Status

TINY = {2: [(1, 1), (2, 3), (3, 2), (5, 1), (4, 5)], 3: [(1, 2, 3), (3, 1, 2), (2, 2, 2), (3, 4, 5)]}
MIXED = {
    2: [*itertools.product(AXES, AXES)],
    3: [("pp", "pp", "pp"), ("oo", "oo", "oo"), ("pp", "cc", "co"), ("oc", "pp", "oo"), ("cc", "oc", "pp")],
}
named = {"ids": lambda x: "-".join(map(str, x)) if isinstance(x, tuple) else str(x)}


def is_free(letters):
    """Whether the pressure is determined up to a constant only."""
    return not any("o" in pair for pair in letters)


class Box:
    """Solves boxes with any sides from NumPy to NumPy."""

    def __init__(self, shape, letters, method="multigrid-cg", sweeps=None):
        self.grid, self.letters = Grid(shape, 1.0), letters
        self.solver = EllipticSolver(self.grid, method, sweeps)
        self.solver.setup((1,) * len(shape), sides_of(letters))

    def array(self, values):
        array = self.grid.array()
        self.grid.from_numpy(array, np.asarray(values, np.float32))
        return array

    def __call__(self, rhs, guess=None, **options):
        out = self.array(np.zeros(self.grid.shape) if guess is None else guess)
        result = self.solver.solve(self.array(rhs), out, **options)
        return self.grid.to_numpy(out).astype(np.float64), result

    def precondition(self, r):
        out = self.grid.array()
        self.solver.precondition(self.array(r), out)
        return self.grid.to_numpy(out).astype(np.float64)


def flow_rhs(shape, letters, seed=0):
    """Minus the divergence of a random velocity that keeps to the sides."""
    return -divergence(random_flow(shape, letters, seed))


def true_residual(a, x, rhs, letters):
    """|rhs - A x| over |rhs|, what cannot be balanced left out of both."""
    rhs = centred(rhs) if is_free(letters) else rhs
    return norm(rhs.ravel() - a @ x.ravel()) / norm(rhs)


# Operator


@pytest.mark.parametrize("letters", MIXED[2] + MIXED[3], **named)
def test_the_operator_is_the_matrix_of_its_sides(letters):
    """Entry by entry, and they are whole numbers: an axis of one periodic cell couples nothing, of two cells twice."""
    for shape in TINY[len(letters)]:
        found, expected = Operator(shape, sides_of(letters)).dense(), box_matrix(shape, letters).toarray()
        if len(found):
            np.testing.assert_array_equal(found, expected)
        else:
            assert not expected.any(), "cells that nothing is open to are not solved for"


@pytest.mark.vulkan_too
@pytest.mark.parametrize("letters", [("pp", "co"), ("oo", "pp"), ("pp", "pp", "oc"), ("oc", "co", "pp")], **named)
def test_the_operator_of_mixed_sides_on_random_values(letters):
    for shape in ([(7, 5), (2, 9), (16, 1)], [(7, 5, 6), (2, 3, 1)])[len(letters) - 2]:
        x = random_scalar(shape)
        expected = box_matrix(shape, letters) @ x.ravel()
        # Sums of 2·dim differences of size 5 in f32.
        np.testing.assert_allclose(Operator(shape, sides_of(letters))(x).ravel(), expected, rtol=0, atol=5e-6)


def test_the_matrix_test_notices_a_side_that_is_held_at_the_wall():
    """Sabotage: 0 held half a cell away instead of a whole one, and a seam that does not close."""
    expected = box_matrix((4, 5), ("oc", "pp")).toarray()
    for wrong in (
        BoundaryCoefficients(box=(2, 0, 0, 0), periodic=(False, True)),
        BoundaryCoefficients(box=(1, 0, 0, 0)),
    ):
        found = Operator((4, 5), wrong).dense()
        assert is_symmetric(found)
        assert np.abs(found - expected).max() >= 1


def test_a_periodic_operator_kills_a_constant_bit_for_bit(dim):
    for shape in TINY[dim]:
        operator = Operator(shape, sides_of(("pp",) * dim))
        for value in (0.1, -7.3, 1e20):
            assert not operator(np.full(shape, value)).any()


# Solutions


def test_the_transforms_solve_the_matrix(dim):
    """The two oracles agree, so that either may be trusted."""
    for letters in MIXED[dim]:
        shape = (5, 4, 3)[:dim]
        rhs = random_scalar(shape)
        rhs = centred(rhs) if is_free(letters) else rhs
        expected = solve_sparse(box_matrix(shape, letters), rhs).reshape(shape)
        np.testing.assert_allclose(solve_box(rhs, letters), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("method", ["multigrid-cg", "cg"])
@pytest.mark.parametrize("letters", MIXED[2] + MIXED[3], **named)
def test_the_pressure_is_that_of_the_transforms(letters, method):
    for shape in ([(17, 16), (9, 2)], [(7, 5, 6), (8, 3, 9)])[len(letters) - 2]:
        rhs = flow_rhs(shape, letters)
        found, result = Box(shape, letters, method)(rhs, tolerance=1e-6)
        assert result.status is Status.CONVERGED
        expected = solve_box(rhs, letters)
        found = centred(found) if is_free(letters) else found
        # The error is the residual times the condition; measured at most 1e-5 (multigrid) and 2e-5 (diagonal).
        assert relative(found, expected) < (3e-5 if method == "multigrid-cg" else 1e-4)
        assert (result.removed_mean == 0) or is_free(letters)


@pytest.mark.vulkan_too
@pytest.mark.parametrize(
    ("shape", "letters"), [((16, 9), ("pp", "oc")), ((7, 6), ("pp", "pp")), ((6, 5, 8), ("oo", "cc", "pp"))], **named
)
def test_mixed_sides_on_every_arch(shape, letters):
    rhs = flow_rhs(shape, letters)
    found, result = Box(shape, letters)(rhs, tolerance=1e-5)
    assert result.status is Status.CONVERGED
    found = centred(found) if is_free(letters) else found
    assert relative(found, solve_box(rhs, letters)) < 1e-4  # 1e-5 times the condition


@pytest.mark.parametrize("letters", MIXED[2] + MIXED[3], **named)
def test_sizes_of_one_two_and_three(letters):
    for shape in TINY[len(letters)]:
        a = box_matrix(shape, letters)
        rhs = random_scalar(shape, 3)
        found, result = Box(shape, letters)(rhs, tolerance=1e-6)
        assert result.status is Status.CONVERGED
        found = centred(found) if is_free(letters) else found
        expected = solve_sparse(a, rhs).reshape(shape)
        # Condition of a few cells.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(np.abs(expected).max(), 1))


# Every method


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("shape", "letters"),
    [((8, 7), ("cc", "cc")), ((6, 5), ("oc", "pp")), ((7, 5), ("pp", "pp")), ((5, 4, 3), ("oo", "cc", "pp"))],
    **named,
)
def test_every_method_gives_the_same_answer_and_tells_the_truth(shape, letters, method):
    rhs, a = flow_rhs(shape, letters), box_matrix(shape, letters)
    box = Box(shape, letters, method)
    found, result = box(rhs, tolerance=1e-5, max_iterations=5000)
    assert result.status is Status.CONVERGED
    assert result.relative_residual <= 1.05e-5  # the tolerance, with what the solver allows itself
    # The residual is that of the matrix, but for the rounding of the solution to f32.
    assert true_residual(a, found, rhs, letters) == pytest.approx(result.relative_residual, rel=0.05, abs=5e-7)
    found, expected = centred(found) if is_free(letters) else found, solve_box(rhs, letters)
    # No error is larger than the residual over the smallest eigenvalue; f32 rounds on top.
    smallest = np.linalg.eigvalsh(a.toarray())[int(is_free(letters))]
    assert norm(found - expected) <= 1.05e-5 * norm(rhs) / smallest + 2e-6 * norm(expected)
    # What was counted is what it took: one less does not reach the tolerance (plain relaxation looks now and then).
    if method not in ("gauss-seidel", "jacobi"):
        _, less = box(rhs, tolerance=1e-5, max_iterations=result.iterations - 1)
        assert (less.status, less.iterations) == (Status.MAX_ITERATIONS, result.iterations - 1)
        assert less.relative_residual > 1e-5
    # A warm start needs nothing.
    assert box(rhs, guess=found, tolerance=2e-5)[1].iterations == 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("letters", [("cc", "cc"), ("pp", "oc")], **named)
def test_running_out_is_said_by_every_method(letters, method):
    shape = (12, 16)
    rhs, a = flow_rhs(shape, letters), box_matrix(shape, letters)
    for allowed in (0, 1, 2):
        found, result = Box(shape, letters, method)(rhs, tolerance=1e-6, max_iterations=allowed)
        assert (result.status, result.iterations) == (Status.MAX_ITERATIONS, allowed)
        assert true_residual(a, found, rhs, letters) == pytest.approx(result.relative_residual, rel=1e-3)


def check_zero_and_what_is_no_number(dim, made, **options):
    """A right-hand side of 0 is answered with 0, one with a NaN is refused, and the next one is solved."""
    shape = (6, 5, 4)[:dim]
    for letters in (("cc",) * dim, ("pp", "oo", "cc")[:dim]):
        box = made(shape, letters)
        found, result = box(np.zeros(shape), guess=random_scalar(shape))
        assert result == (0, 0.0, Status.CONVERGED, 0.0)
        assert not found.any()
        for bad in (np.nan, np.inf):
            rhs = flow_rhs(shape, letters)
            rhs[(-1,) * dim] = bad
            _, result = box(rhs)
            assert (result.iterations, result.status) == (0, Status.NOT_FINITE)
        assert box(flow_rhs(shape, letters), **options)[1].status is Status.CONVERGED


@pytest.mark.parametrize("method", METHODS)
def test_zero_and_what_is_no_number(dim, method):
    check_zero_and_what_is_no_number(dim, lambda *box: Box(*box, method), max_iterations=2000)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("letters", [("cc", "cc"), ("pp", "pp")], **named)
def test_a_right_hand_side_out_of_balance_is_balanced_and_said(letters, method):
    shape = (8, 6)
    rhs = flow_rhs(shape, letters)
    found, result = Box(shape, letters, method)(rhs + 0.25, tolerance=1e-5, max_iterations=2000)
    assert result.status is Status.CONVERGED
    assert result.removed_mean == pytest.approx(0.25, rel=1e-6)
    assert relative(centred(found), solve_box(rhs, letters)) < 1e-3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("letters", [("cc", "cc"), ("oo", "pp")], **named)
def test_asking_too_much_ends_and_is_said(letters, method):
    shape = (9, 8)
    rhs, a = flow_rhs(shape, letters), box_matrix(shape, letters)
    found, result = Box(shape, letters, method)(rhs, tolerance=1e-9, max_iterations=20_000)
    assert result.status is Status.STALLED
    assert result.iterations < 5000
    assert true_residual(a, found, rhs, letters) < 3e-6  # the floor of f32


@pytest.mark.parametrize("method", ["multigrid-cg", "multigrid", "cg"])
@pytest.mark.parametrize("extra", [0.25, 20.0])
@pytest.mark.parametrize("tolerance", [1e-5, 1e-6, 1e-9])
def test_what_was_taken_out_does_not_flatter_the_residual(method, extra, tolerance):
    """However much flows in: the residual is told relative to what was solved for, and converged means just that."""
    shape, letters = (16, 16), ("cc", "cc")
    rhs, a = flow_rhs(shape, letters) + extra, box_matrix((16, 16), letters)
    found, result = Box(shape, letters, method)(rhs, tolerance=tolerance, max_iterations=500)
    truth = true_residual(a, found, rhs, letters)
    # Rounding of a right-hand side of size 20, and of the solution.
    assert result.relative_residual == pytest.approx(truth, rel=0.1, abs=5e-7)
    assert truth <= max(1.1 * tolerance, 3e-6)
    if tolerance < 1e-8:
        assert result.status is Status.STALLED


# Sweeps


def red_black(a, shape, x, rhs):
    """A sweep of Gauss-Seidel: cells whose position from 1 has an even sum first."""
    parity = (np.indices(shape) + 1).sum(axis=0).ravel() % 2
    diagonal = a.diagonal()
    for colour in (0, 1):
        x = np.where(parity == colour, x + (rhs - a @ x) / diagonal, x)
    return x


def damped_jacobi(a, shape, x, rhs):
    """A sweep of Jacobi with the weight that damps the roughest mode as much as its neighbours: 2d / (2d + 1)."""
    weight = 2 * len(shape) / (2 * len(shape) + 1)
    return x + weight * (rhs - a @ x) / a.diagonal()


SWEEPS = {"gauss-seidel": red_black, "jacobi": damped_jacobi}


def swept(sweep, shape, letters, rhs, count):
    """The solution after ``count`` sweeps from 0."""
    a, x = box_matrix(shape, letters), np.zeros(rhs.size)
    for _ in range(count):
        x = sweep(a, shape, x, rhs.ravel())
    return x.reshape(shape)


@pytest.mark.vulkan_too
@pytest.mark.parametrize("method", SWEEPS)
@pytest.mark.parametrize(
    ("shape", "letters"),
    [((16, 16), ("cc", "cc")), ((9, 6), ("oc", "pp")), ((6, 7), ("co", "pp")), ((5, 4, 6), ("oo", "pp", "cc"))],
    **named,
)
def test_relaxation_makes_as_many_sweeps_as_are_asked_for(shape, letters, method):
    """Twenty of them, as Stam's readers have them, and not one more: equal to twenty in NumPy."""
    rhs = flow_rhs(shape, letters)
    found, result = Box(shape, letters, method)(rhs, tolerance=0, max_iterations=20)
    assert (result.iterations, result.status) == (20, Status.MAX_ITERATIONS)
    expected = swept(SWEEPS[method], shape, letters, rhs, 20)
    # Rounding of values of size 3 over twenty sweeps.
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-6)
    for wrong in (19, 21):
        assert np.abs(found - swept(SWEEPS[method], shape, letters, rhs, wrong)).max() > 1e-4, "sabotage: one sweep off"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("letters", [("cc", "cc"), ("pp", "pp"), ("oo", "cc")], **named)
def test_no_tolerance_means_all_iterations_whatever_the_mean(letters, method):
    """Also where a mean has to be taken out, and where rounding alone leaves one."""
    shape = (32, 32)
    for extra in (0.0, 0.5):
        rhs = flow_rhs(shape, letters) + extra
        found, result = Box(shape, letters, method)(rhs, tolerance=0, max_iterations=3)
        assert (result.iterations, result.status) == (3, Status.MAX_ITERATIONS)
        a = box_matrix(shape, letters)
        assert true_residual(a, found, rhs, letters) == pytest.approx(result.relative_residual, rel=1e-2)


# Multigrid


EVEN_AND_ODD = [
    ((64, 64), ("pp", "pp")), ((16, 8), ("pp", "cc")), ((7, 9), ("pp", "pp")), ((33, 16), ("pp", "oc")),
    ((6, 10), ("pp", "oo")), ((17, 12), ("oo", "co")), ((3, 2), ("pp", "pp")), ((1, 9), ("pp", "oo")),
    ((7, 5, 6), ("pp", "pp", "pp")), ((8, 6, 12), ("pp", "oc", "pp")), ((9, 5, 4), ("oo", "oo", "oo")),
    ((10, 11, 1), ("pp", "pp", "pp")),
]  # fmt: skip


@pytest.mark.vulkan_too
@pytest.mark.parametrize(("shape", "letters"), EVEN_AND_ODD, **named)
def test_the_preconditioner_is_symmetric_with_any_sides(shape, letters):
    box = Box(shape, letters)
    for seed in range(2):
        x, y = (centred(random_scalar(shape, k)) for k in (seed, seed + 10))
        assert asymmetry(box.precondition, x, y) < 1e-6  # f32; measured 2e-7 at most


def test_the_symmetry_test_notices_sides_that_differ():
    """Sabotage: half of x with the cycle of other sides."""
    one, two = Box((16, 8), ("pp", "cc")), Box((16, 8), ("cc", "cc"))

    def broken(r):
        return np.concatenate([one.precondition(r)[:8], two.precondition(r)[8:]])

    x, y = (centred(random_scalar((16, 8), seed)) for seed in (1, 2))
    assert asymmetry(broken, x, y) > 1e-4


@pytest.mark.parametrize(
    ("shape", "letters"), [((6, 4), ("pp", "pp")), ((5, 3), ("pp", "oc")), ((5, 3, 3), ("pp", "pp", "pp"))], **named
)
def test_the_cycle_is_positive_with_any_sides(shape, letters):
    """As a matrix, on everything but the constant, where that is free."""
    box, columns = Box(shape, letters), []
    project = centred if is_free(letters) else (lambda x: x)
    for unit in np.eye(np.prod(shape)):
        columns.append(project(box.precondition(project(unit.reshape(shape)))).ravel())
    values = np.linalg.eigvalsh(0.5 * (np.array(columns) + np.array(columns).T))
    assert (values > 1e-3).sum() == np.prod(shape) - is_free(letters)
    assert values[0] > -1e-5


@pytest.mark.parametrize("shape", [(4096, 64), (20_000, 8), (512, 32, 16)], **named)
def test_the_mean_of_a_constant_is_exact_enough_to_leave_nothing(shape):
    """A sum of thousands of planes one after the other in f32 left a mean off by 2e-5, and noise to solve for."""
    box = Box(shape, ("cc",) * len(shape), "cg")
    for constant in np.linspace(0.1, 0.9, 5):
        found, result = box(np.full(shape, constant), max_iterations=3)
        assert (result.status, result.iterations) == (Status.CONVERGED, 0)
        assert result.removed_mean == pytest.approx(constant, rel=1e-6)
        assert not found.any()


def iterations(shape, letters=None, method="multigrid-cg", tolerance=1e-5, seed=0):
    """How many, after checking that it converged and says so truthfully."""
    letters = letters or ("cc",) * len(shape)
    rhs = flow_rhs(shape, letters, seed)
    _, result = Box(shape, letters, method)(rhs, tolerance=tolerance)
    assert result.status is Status.CONVERGED
    return result


@pytest.mark.parametrize("letters", ["cc", "pp", "oo", "oc"])
@pytest.mark.parametrize("shape", [(64, 64), (128, 128), (32, 32, 32), (64, 64, 64)], **named)
def test_the_v_cycle_alone_reduces_the_residual_fivefold(shape, letters):
    result = iterations(shape, (letters,) * len(shape), "multigrid")
    assert result.relative_residual ** (1 / result.iterations) <= 0.2


def test_multigrid_takes_the_same_few_iterations_at_every_size():
    """At most 8, and within 2 of each other; measured 5 everywhere."""
    shapes = [(32,) * 3, (64,) * 3, (128,) * 3, (64,) * 2, (256,) * 2, (512,) * 2, (1024,) * 2]
    counts = {shape: iterations(shape).iterations for shape in shapes}
    assert max(counts.values()) <= 8, counts
    assert max(counts.values()) - min(counts.values()) <= 2, counts


@pytest.mark.parametrize("letters", [("pp", "pp"), ("oo", "oo"), ("oc", "pp"), ("cc", "co")], **named)
def test_other_sides_take_no_more(letters):
    counts = {n: iterations((n, n), letters).iterations for n in (32, 64, 128, 256)}
    assert max(counts.values()) <= 8, counts
    assert max(counts.values()) - min(counts.values()) <= 2, counts


@pytest.mark.parametrize(
    ("shape", "letters"), [((32, 32, 32), ("pp", "pp", "pp")), ((32, 32, 32), ("oo", "cc", "pp"))], **named
)
def test_other_sides_take_no_more_in_3d(shape, letters):
    assert iterations(shape, letters).iterations <= 8


@pytest.mark.parametrize(
    ("shape", "most"),
    [((256, 4), 9), ((7, 5, 6), 9), ((129, 65), 9), ((100, 100, 100), 10), ((256, 1), 9), ((64, 3, 5), 10)],
    **named,
)
def test_long_and_odd_boxes(shape, most):
    assert iterations(shape).iterations <= most


@pytest.mark.parametrize(
    ("shape", "letters"),
    [((33, 33), ("pp", "pp")), ((129, 65), ("pp", "oc")), ((31, 17, 45), ("pp", "pp", "pp")), ((65, 4), ("pp", "oo")),
     ((255, 4), ("oo", "pp")), ((64, 1), ("oo", "oo")), ((64, 64, 1), ("cc", "cc", "oo"))],
    **named,
)  # fmt: skip
def test_odd_periodic_and_long_open_boxes(shape, letters):
    """The seam of an odd periodic axis lies between coarse cells: it may cost, but not the convergence."""
    assert iterations(shape, letters).iterations <= 14


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from(MIXED[2]), st.integers(0, 99))
def test_any_size_and_any_sides(width, height, letters, seed):
    shape = (width, height)
    rhs = flow_rhs(shape, letters, seed)
    found, result = Box(shape, letters)(rhs, tolerance=1e-5, max_iterations=60)
    assert result.status is Status.CONVERGED
    if norm(rhs):
        # Rounding of the solution to f32 beside the residual.
        assert true_residual(box_matrix(shape, letters), found, rhs, letters) < 1.5e-5


@pytest.mark.parametrize(
    ("shape", "letters"), [((129, 65), ("cc", "pp")), ((17, 16), ("pp", "oc")), ((3, 40), ("pp", "cc"))], **named
)
def test_v_cycles_whose_residual_rises_once_have_not_stalled(shape, letters):
    """The step length makes the error smaller every time, not the residual: one rise far above the floor of f32 is none."""
    rhs = flow_rhs(shape, letters)
    found, result = Box(shape, letters, "multigrid")(rhs, tolerance=1e-5, max_iterations=100)
    assert result.status is Status.CONVERGED
    assert true_residual(box_matrix(shape, letters), found, rhs, letters) < 1.5e-5  # f32 rounds the solution
