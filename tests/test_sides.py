"""Inflow, open sides, moving walls and periodic axes: ghosts, refusals, scenes, and what flows through them."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import divergence, face_shape, mirrored, mirrored_velocity, norm, random_scalar, take
from scenes_for_tests import scene as scene_of
from test_scene import refusal

from taichi_fluid.boundaries.checks import check_sides
from taichi_fluid.boundaries.sides import Boundary, Side, as_side
from taichi_fluid.boundaries.walls import SCALAR, Walls
from taichi_fluid.grid import Grid, Scratch
from taichi_fluid.physics.advection import Advection, Scheme, Trace
from taichi_fluid.pressure.projection import Projection
from taichi_fluid.pressure.solver import METHODS, Status
from taichi_fluid.scene import Scene
from taichi_fluid.simulation import Simulation

FREE, NO, OPEN, PERIODIC = Boundary.FREE_SLIP, Boundary.NO_SLIP, Boundary.OPEN, Boundary.PERIODIC
SHAPES = {2: [(5, 4), (7, 2), (1, 3)], 3: [(4, 3, 5), (2, 3, 1)]}


def inflow(*velocity, **values):
    return Side(Boundary.INFLOW, velocity, values)


def moving(*velocity):
    return Side(Boundary.MOVING_WALL, velocity)


MIXTURES = {
    2: [
        [(inflow(0.5, -0.25, smoke=0.75), OPEN), (FREE, moving(1.5, 0))],
        [(PERIODIC, PERIODIC), (moving(-0.5, 0), NO)],
        [(OPEN, inflow(0.125, 0.5, smoke=-2.0)), (PERIODIC, PERIODIC)],
        [(PERIODIC, PERIODIC), (PERIODIC, PERIODIC)],
        [(OPEN, OPEN), (inflow(0.0, 1.0), OPEN)],
    ],
    3: [
        [(inflow(0.5, -0.25, 0.125, smoke=0.75), OPEN), (FREE, moving(1.5, 0, -1)), (PERIODIC, PERIODIC)],
        [(PERIODIC, PERIODIC), (OPEN, NO), (moving(0.5, 0.25, 0), inflow(1, 0.5, 0.25, smoke=3.0))],
        [(PERIODIC, PERIODIC)] * 3,
        [(OPEN, OPEN)] * 3,
    ],
}


# Ghosts


def layer(array, axis, k):
    return take(array, axis, slice(k, k + 1))


def ghosts_filled(padded, sides, component=SCALAR, name=None, keep=False):
    """What ``Walls.fill`` should leave, axis after axis over whole planes, in float64."""
    a = padded.astype(np.float64)
    for axis, pair in enumerate(sides):
        lower, upper = (as_side(side) for side in pair)
        n = a.shape[axis] - 2
        if lower.kind is PERIODIC:
            layer(a, axis, 0)[...], layer(a, axis, n + 1)[...] = layer(a, axis, n).copy(), layer(a, axis, 1).copy()
            continue
        for side, ghost, inner, next_in in ((lower, 0, 1, 1), (upper, n + 1, n, n)):
            own = side.velocity[component] if side.velocity and component != SCALAR else 0.0
            if component == axis:
                face, beside = (1, 2) if ghost == 0 else (n + 1, n)
                if side.kind is not OPEN:
                    layer(a, axis, face)[...] = own
                elif not keep:
                    layer(a, axis, face)[...] = layer(a, axis, beside)
            elif component == SCALAR:
                if name is not None and side.kind in (Boundary.INFLOW, OPEN):
                    layer(a, axis, ghost)[...] = side.values.get(name, 0.0)
                else:
                    layer(a, axis, ghost)[...] = layer(a, axis, inner)
            elif side.kind in (FREE, OPEN):
                layer(a, axis, ghost)[...] = layer(a, axis, inner)
            else:
                layer(a, axis, ghost)[...] = 2 * own - layer(a, axis, next_in)
        if component == axis:
            layer(a, axis, 0)[...] = 2 * layer(a, axis, 1) - layer(a, axis, 2)
    return a


def mixtures():
    return [(dim, i) for dim, all_of_them in MIXTURES.items() for i in range(len(all_of_them))]


@pytest.mark.vulkan_too
@pytest.mark.parametrize(("dim", "i"), mixtures())
def test_ghosts_of_every_kind_of_side(dim, i):
    """Edges and corners too: whole padded arrays are compared, and what they held before does not matter."""
    sides = MIXTURES[dim][i]
    for shape in SHAPES[dim]:
        if min(shape) == 1 and any(OPEN in pair for pair in sides):
            continue  # see the test below
        grid = Grid(shape, 1.0)
        walls = Walls(grid, sides)
        before = np.random.default_rng(i).standard_normal((dim, *grid.padded)).astype(np.float32)
        for keep in (False, True):
            velocity = grid.velocity()
            velocity.from_numpy(before.ravel())
            walls.fill_velocity(velocity, keep=keep)
            found = grid.to_numpy_padded(velocity)
            for axis in range(dim):
                expected = ghosts_filled(before[axis], sides, axis, keep=keep)
                # One rounding of 2 v - u.
                np.testing.assert_allclose(found[axis], expected, rtol=1e-6, atol=1e-6)
        for name in (None, "smoke", "temperature"):
            array = grid.array()
            array.from_numpy(before[0].ravel())
            walls.fill(array, name=name)
            np.testing.assert_array_equal(grid.to_numpy_padded(array), ghosts_filled(before[0], sides, SCALAR, name))


def test_the_ghost_test_notices_another_kind_of_side():
    """Sabotage: a free-slip side in the place of each other kind gives other ghosts."""
    padded = np.random.default_rng(0).standard_normal((6, 6))
    for other in (NO, OPEN, inflow(0.5, 0.5, smoke=1.0), moving(0.0, 0.5)):
        changed = 0.0
        for component, name in ((0, None), (1, None), (SCALAR, "smoke")):
            one, two = ([(FREE, side), (FREE, FREE)] for side in (FREE, other))
            changed += np.abs(
                ghosts_filled(padded, one, component, name) - ghosts_filled(padded, two, component, name)
            ).max()
        assert changed > 0.1


def test_filling_twice_changes_nothing(dim):
    for sides in MIXTURES[dim]:
        for shape in [*SHAPES[dim], (1,) * dim]:
            grid = Grid(shape, 1.0)
            walls = Walls(grid, sides)
            velocity = grid.velocity()
            velocity.from_numpy(np.random.default_rng(0).random(grid.cells * dim).astype(np.float32))
            walls.fill_velocity(velocity)
            once = grid.to_numpy_padded(velocity)
            walls.fill_velocity(velocity)
            np.testing.assert_array_equal(grid.to_numpy_padded(velocity), once)


def test_one_cell_between_a_wall_and_an_open_side():
    """The open side follows the wall, whichever of the two is the lower one."""
    for pair in ((NO, OPEN), (OPEN, NO)):
        grid = Grid((1, 3), 1.0)
        velocity = grid.velocity()
        velocity.fill(7.0)
        Walls(grid, [pair, (FREE, FREE)]).fill_velocity(velocity)
        assert not grid.face_velocity_to_numpy(velocity)[0].any()


def test_dye_enters_with_a_number_for_each_component():
    grid = Grid((3, 3), 1.0)
    walls = Walls(grid, [(inflow(1.0, 0.0, dye=(0.25, 0.5, 0.75)), OPEN), (NO, NO)])
    dye = grid.array(3)
    dye.fill(9.0)
    for k in range(3):
        walls.fill(dye, SCALAR, k * grid.cells, "dye")
    found = grid.to_numpy_padded(dye)
    np.testing.assert_array_equal(found[:, 0, 1:-1], np.repeat([[0.25], [0.5], [0.75]], 3, axis=1))
    assert not found[:, -1, 1:-1].any(), "through an open side comes what is ambient"


def test_what_sides_tell_the_solvers(dim):
    walls = Walls(Grid((4,) * dim, 1.0), MIXTURES[dim][0])
    assert walls.pressure_sides().box == (0, 1, 0, 0, 0, 0)[: 2 * dim]
    assert walls.periodic == walls.pressure_sides().periodic == (False, False, True)[:dim]
    assert walls.has_open
    # A scalar that is carried is held by what an inflow brings in; beyond an open side nobody knows what there is, and
    # without a name nothing crosses a side.
    assert walls.diffusion_sides(SCALAR, 1.0, name="smoke").box == (1, 0, 0, 0, 0, 0)[: 2 * dim]
    assert not any(walls.diffusion_sides(SCALAR, 1.0).box)
    periodic = Walls(Grid((4,) * dim, 1.0), [(PERIODIC, PERIODIC)] * dim)
    assert periodic.first_unknown(0) == (1,) * dim
    assert not periodic.has_open


# Refusals

REFUSED = {
    "one periodic side": ([(PERIODIC, OPEN), (NO, NO)], ["boundaries[0]", "periodic"]),
    "upper periodic side": ([(NO, NO), (FREE, PERIODIC)], ["boundaries[1]", "periodic"]),
    "net inflow": ([(inflow(1, 0), NO), (NO, NO)], ["boundaries[0][0]", "more flows in than out", "open"]),
    "net outflow": ([(NO, NO), (NO, inflow(0, 1))], ["boundaries[1][1]", "more flows out than in", "open"]),
    "two inflows": ([(inflow(1, 0), inflow(-1, 0)), (NO, NO)], ["boundaries[0][0]", "boundaries[0][1]"]),
    "wall along its axis": ([(NO, moving(0.5, 0)), (NO, NO)], ["boundaries[0][1]", "[0.5, 0.0]", "plane"]),
    "three numbers": ([(NO, NO), (moving(0, 0, 1), NO)], ["boundaries[1][0].velocity", "3", "2"]),
    "inflow without velocity": ([("inflow", OPEN), (NO, NO)], ["boundaries[0][0]", "inflow", "velocity"]),
    "wall without velocity": ([(NO, NO), (NO, "moving-wall")], ["boundaries[1][1]", "moving-wall", "velocity"]),
    "open with velocity": ([(Side(OPEN, (1, 0)), NO), (NO, NO)], ["boundaries[0][0]", "open", "velocity"]),
    "open with a value": ([(NO, NO), (NO, Side(OPEN, (), {"smoke": 1.0}))], ["boundaries[1][1]", "open", "inflow"]),
    "open with a flux": ([(NO, NO), (NO, Side(OPEN, fluxes={"smoke": 1.0}))], ["boundaries[1][1]", "open", "flux"]),
    "value and flux": (
        [(NO, NO), (NO, Side(NO, (), {"smoke": 1.0}, {"smoke": 0.0}))],
        ["boundaries[1][1]", "a value and a flux of smoke"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_flow_can_have_is_refused_by_name(case):
    boundaries, words = REFUSED[case]
    sides = [[as_side(side) for side in pair] for pair in boundaries]
    for refuse in (lambda: check_sides(sides, (8, 4)), lambda: Walls(Grid((8, 4), 1.0), boundaries)):
        with pytest.raises(ValueError, match="boundaries") as caught:
            refuse()
        for word in words:
            assert word in str(caught.value), (word, str(caught.value))


def test_what_balances_is_allowed():
    """Through areas of different size, to rounding; and anything that has an open side."""
    for boundaries, shape in (
        ([(inflow(1, 0), inflow(1, 0)), (NO, NO)], (8, 4)),
        ([(inflow(0.1, 0), NO), (NO, inflow(0, 0.3))], (9, 27)),
        ([(inflow(0.1 + 0.2, 0), inflow(0.3, 0)), (NO, NO)], (5, 7)),
        ([(inflow(1, 0), OPEN), (NO, NO)], (8, 4)),
        ([(inflow(0, 3), NO), (NO, NO)], (8, 4)),
        ([(inflow(1, 0), inflow(-1, 0)), (OPEN, OPEN)], (8, 4)),
    ):
        check_sides([[as_side(side) for side in pair] for pair in boundaries], shape)
    with pytest.raises(ValueError, match="more flows"):
        check_sides([[inflow(1, 0), inflow(1.001, 0)], [as_side(NO)] * 2], (8, 4))


@given(
    st.lists(st.sampled_from([FREE, NO, OPEN, PERIODIC, inflow(1.0, 0.5), moving(0.0, 0.0)]), min_size=4, max_size=4)
)
def test_any_four_sides_are_refused_or_flow(four):
    """Never anything but ValueError with a name in it; and what is allowed has a pressure."""
    boundaries = [four[:2], four[2:]]
    grid, refused, walls = Grid((6, 5), 1.0), "", None
    try:
        walls = Walls(grid, boundaries)
    except ValueError as error:
        refused = str(error)
    if walls is None:
        assert "boundaries[" in refused
        return
    velocity, pressure = grid.velocity(), grid.array()
    velocity.from_numpy(np.random.default_rng(0).standard_normal(2 * grid.cells).astype(np.float32))
    walls.fill_velocity(velocity)
    projection = Projection(grid, walls, Scratch(grid))
    before = norm(divergence(grid.face_velocity_to_numpy(velocity)))
    result = projection.project(velocity, pressure, dt=1.0, rho=1.0, tolerance=1e-5)
    assert result.status is Status.CONVERGED
    after = divergence([f.astype(np.float64) for f in grid.face_velocity_to_numpy(velocity)])
    # The tolerance, and f32 differences.
    assert norm(after) <= (1.1e-5 + 1e-6) * before


# Scenes


TUNNEL = {
    "name": "tunnel",
    "domain": {
        "size": [2.0, 1.0],
        "resolution": 32,
        "boundaries": [
            [{"kind": "inflow", "velocity": [1.0, 0.0], "smoke": 0.5, "dye": [1.0, 0.0, 0.25]}, "open"],
            ["free-slip", {"kind": "moving-wall", "velocity": [0.5, 0.0]}],
        ],
    },
    "solids": [
        {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.1, "slip": True, "angular_velocity": 2.0},
        {"shape": "box", "center": [1.0, 0.5], "size": [0.1, 0.2], "rounding": 0.01, "end": 2.0},
        {"shape": "capsule", "ends": [[1.2, 0.2], [1.4, 0.3]], "radius": 0.05, "velocity": [0.1, 0.0]},
        {"shape": "cylinder", "ends": [[1.2, 0.7], [1.4, 0.8]], "radius": 0.05, "swing": [0.0, 0.1]},
    ],
}
ALL_AROUND = {"name": "ring", "domain": {"size": [1.0, 1.0, 1.0], "resolution": 8, "boundaries": "periodic"}}


@pytest.mark.parametrize("values", [TUNNEL, ALL_AROUND], ids=lambda values: values["name"])
def test_sides_and_solids_come_back_from_toml(values):
    scene = Scene.from_dict(values)
    text = scene.dumps()
    assert Scene.loads(text) == scene
    assert Scene.loads(text).dumps() == text
    assert Scene.loads(text).domain.sides == scene.domain.sides


def test_a_scene_knows_what_its_sides_say():
    scene = Scene.from_dict(TUNNEL)
    lower = scene.domain.sides[0][0]
    assert (lower.kind, lower.velocity) == (Boundary.INFLOW, (1.0, 0.0))
    assert lower.values["smoke"] == 0.5
    assert tuple(lower.values["dye"]) == (1.0, 0.0, 0.25)
    assert scene.domain.sides[1][1].kind.is_closed
    assert scene.carried == {"smoke": 1, "dye": 3}
    toml = """
        name = "tunnel"
        [domain]
        size = [2, 1]
        boundaries = [[{kind = "inflow", velocity = [1, 0]}, "open"], ["no-slip", "no-slip"]]
        [[solids]]
        shape = "sphere"
        center = [1, 0.5]
        radius = 0.1
    """
    assert Scene.loads(toml).domain.sides[0][0].velocity == (1.0, 0.0)


WRONG = {
    "domain.boundaries.0.1": ("periodic", ["boundaries[0]", "periodic"]),
    "domain.boundaries.0.0.velocity": ([1.0, 0.0, 0.0], ["boundaries[0][0].velocity", "3", "2"]),
    "domain.boundaries.0.0.kind": ("inflo", ["domain.boundaries.0.0.kind", "'inflo'", "inflow"]),
    "domain.boundaries.0.0.smoke": ("much", ["boundaries[0][0].smoke", "'much'", "it knows x, y, t, pi"]),
    "domain.boundaries.0.0.smok": (1.0, ["smok", "did you mean 'smoke'"]),
    "domain.boundaries.1.1.velocity": ([0.5, 0.25], ["boundaries[1][1].velocity", "[0.5, 0.25]", "plane"]),
    "domain.boundaries.0.0.smoke_flux": (1.0, ["boundaries[0][0]", "inflow", "only a wall has a flux"]),
    "domain.boundaries.1.1.smoke_flux": (1.0, ["domain.boundaries.1.1.smoke_flux is 1.0", "fluid.smoke_diffusion"]),
    "domain.boundaries.1.1.dye": ([1.0, 0.5], ["domain.boundaries.1.1.dye is [1.0, 0.5]", "have 3 numbers"]),
    "domain.boundaries.1.0": ("sticky", ["domain.boundaries.1.0", "'sticky'", "no-slip"]),
    "domain.boundaries.0": (["open"], ["domain.boundaries.0", "pair"]),
    "solids.0.radius": (-1.0, ["solids.0.radius", "-1.0", "greater than or equal to 0.0001"]),
    "solids.0.center": ([0.5, 0.5, 0.5], ["solids[0]", "3", "2"]),
    "solids.0.shape": ("cube", ["solids.0.shape", "'cube'", "'box'"]),
    "solids.0.angular_velocity": ([0.0, 0.0, 1.0], ["solids[0].angular_velocity", "one number"]),
    "solids.1.angular_velocity": ([1.0], ["solids.1.angular_velocity is [1.0]", "be one number or 3"]),
    "solids.2.angular_velocity": (1e30, ["solids.2.angular_velocity is 1e+30", "less than or equal to 10000"]),
    "solids.3.angular_velocity": ("sin(t)", ["angular_velocity is 'sin(t)'", "be a finite number, or a list of them"]),
    "domain.boundaries.0.0.dye": ("sin(t)", ["domain.boundaries.0.0.dye is 'sin(t)'", "be a list"]),
    "solids.0.colr": ([1, 0, 0], ["colr", "did you mean 'colour'"]),
    "solids.1.end": (-1.0, ["solids.1.end", "-1.0"]),
    "solids.2.velocity": ([0.1], ["solids.2.velocity", "2"]),
    "solids.3.swing_period": (0.0, ["solids.3.swing_period", "0.0"]),
    "domain.boundaries": ("inflow", ["boundaries[0][0]", "inflow", "velocity"]),
}


@pytest.mark.parametrize("key", WRONG)
def test_what_is_wrong_with_a_side_or_a_solid_is_said_in_a_sentence(key):
    value, words = WRONG[key]
    scene = Scene.from_dict(TUNNEL)
    message = refusal(lambda: scene.with_values({key: value}))
    for word in words:
        assert word in message, (word, message)


def test_a_closed_box_that_fills_up_is_refused():
    scene = Scene.from_dict(TUNNEL)
    assert "more flows in than out" in refusal(lambda: scene.with_values({"domain.boundaries.0.1": "no-slip"}))


# Projection


def projected(shape, sides, method="multigrid-cg", seed=0, tolerance=1e-5):
    """Faces before and after, the pressure, and the result."""
    grid = Grid(shape, 0.1)
    walls = Walls(grid, sides)
    velocity, pressure = grid.velocity(), grid.array()
    velocity.from_numpy(np.random.default_rng(seed).standard_normal(grid.dim * grid.cells).astype(np.float32))
    walls.fill_velocity(velocity)
    before = grid.face_velocity_to_numpy(velocity)
    projection = Projection(grid, walls, Scratch(grid), method)
    result = projection.project(velocity, pressure, dt=0.01, rho=1.2, tolerance=tolerance, max_iterations=3000)
    return before, grid.face_velocity_to_numpy(velocity), grid.to_numpy(pressure), result


def double(faces):
    return [f.astype(np.float64) for f in faces]


def check_projection(shape, sides, method="multigrid-cg"):
    before, after, _, result = projected(shape, sides, method)
    assert result.status is Status.CONVERGED
    # The residual of the pressure equation is the divergence that is left, in the cells beside the sides too.
    assert norm(divergence(double(after))) <= (result.relative_residual + 1e-6) * norm(divergence(double(before)))
    assert np.abs(divergence(double(after))).max() <= 2e-5 * norm(divergence(double(before)))
    for axis, pair in enumerate(sides):
        for side, part in zip(pair, (slice(0, 1), slice(-1, None)), strict=True):
            side = as_side(side)
            if side.kind not in (OPEN, PERIODIC):
                given_speed = np.float32(side.velocity[axis] if side.velocity else 0.0)
                assert (take(after[axis], axis, part) == given_speed).all(), "what a side gives stays, bit for bit"
            if side.kind is PERIODIC:
                ends = take(after[axis], axis, slice(0, 1)), take(after[axis], axis, slice(-1, None))
                np.testing.assert_array_equal(*ends)


@pytest.mark.vulkan_too
@pytest.mark.parametrize(("dim", "i"), mixtures())
def test_what_is_projected_has_no_divergence_and_keeps_its_sides(dim, i):
    check_projection((9, 8, 6)[:dim], MIXTURES[dim][i])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_projects_a_tunnel(method):
    check_projection((12, 7), MIXTURES[2][0], method)


def test_long_and_odd_tunnels():
    for shape in ((64, 3), (33, 16), (7, 1), (2, 5)):
        for sides in MIXTURES[2][:3]:
            check_projection(shape, sides)


def test_what_flows_in_flows_out():
    """From rest, in one projection: the open side takes what the inflow brings, and pressure drives it there."""
    grid = Grid((16, 8), 0.1)
    walls = Walls(grid, [(inflow(2.0, 0.0), OPEN), (FREE, FREE)])
    velocity, pressure = grid.velocity(), grid.array()
    walls.fill_velocity(velocity)
    result = Projection(grid, walls, Scratch(grid)).project(velocity, pressure, dt=0.01, rho=1.2, tolerance=1e-6)
    u, v = double(grid.face_velocity_to_numpy(velocity))
    # Plug flow, to the tolerance times the condition of sixteen cells.
    np.testing.assert_allclose(u, 2.0, rtol=0, atol=2e-4)
    np.testing.assert_allclose(v, 0.0, rtol=0, atol=2e-4)
    # dp/dx = -rho du/dt, and 0 one cell centre beyond the open side.
    expected = 1.2 * 2.0 / 0.01 * 0.1 * (16 - np.arange(16))
    np.testing.assert_allclose(double([grid.to_numpy(pressure)])[0], expected[:, None] * np.ones(8), rtol=1e-4)
    assert result.removed_mean == 0


def test_a_periodic_flow_does_not_know_where_its_box_begins(dim):
    """Rolled before or after, the projection is the same."""
    shape, sides = (8, 6, 4)[:dim], [(PERIODIC, PERIODIC)] * dim
    grid = Grid(shape, 1.0)
    walls, values = Walls(grid, sides), np.random.default_rng(0).standard_normal((dim, *shape)).astype(np.float32)
    shift = (3, 1, 2)[:dim]
    projection = Projection(grid, walls, Scratch(grid))

    def project(cells):
        velocity = grid.velocity()
        grid.from_numpy(velocity, cells)
        walls.fill_velocity(velocity)
        projection.project(velocity, grid.array(), dt=1.0, rho=1.0, tolerance=1e-6)
        return grid.to_numpy(velocity)

    axes = tuple(range(1, dim + 1))
    rolled = project(np.roll(values, shift, axes))
    # The tolerance of the solver, times the condition.
    np.testing.assert_allclose(rolled, np.roll(project(values), shift, axes), rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    "options", [{"tolerance": 1e-4, "max_iterations": 1}, {"tolerance": 0.0}], ids=["stopped", "at the floor"]
)
@pytest.mark.parametrize("size", [1.0, 1e-16])
def test_a_constant_of_the_pressure_does_not_tear_the_seam(dim, size, options):
    """Whatever is added to all cells, or they are multiplied by, holds beyond the seam too."""
    shape, rng = (16, 12, 6)[:dim], np.random.default_rng(0)
    grid = Grid(shape, 1.0)
    walls = Walls(grid, [(PERIODIC, PERIODIC)] + [(FREE, FREE)] * (dim - 1))
    values = (size * rng.standard_normal((dim, *shape))).astype(np.float32)
    projection = Projection(grid, walls, Scratch(grid))

    def project(guess):
        velocity, pressure = grid.velocity(), grid.array()
        grid.from_numpy(velocity, values)
        walls.fill_velocity(velocity)
        grid.from_numpy(pressure, np.full(shape, guess, np.float32))
        projection.project(velocity, pressure, dt=1.0, rho=1.0, **options)
        ends = grid.to_numpy_padded(pressure)[(slice(None), *(slice(1, -1),) * (dim - 1))]
        np.testing.assert_array_equal(ends[[0, -1]], ends[[-2, 1]])
        return grid.to_numpy(velocity)

    plain = project(0.0)
    assert np.abs(plain).max() < 5 * size
    if options["tolerance"] == 0:
        # Of a guess of a thousand f32 keeps 6e-5.
        np.testing.assert_allclose(project(1000 * size), plain, rtol=0, atol=5e-3 * size)


# Advection

schemes = pytest.mark.parametrize("scheme", Scheme, ids=lambda scheme: scheme.value)
begins = pytest.mark.parametrize("faces_begin", [False, True], ids=["centres", "faces"])
"""Where the paths of a scalar begin: where it lies, or at the faces around."""


class Flow:
    """Carries NumPy values with a NumPy velocity, given on lower faces, through a box with any sides."""

    def __init__(self, shape, sides, scheme, trace=Trace.RK2):
        self.grid = Grid(shape, 1.0)
        self.walls = Walls(self.grid, sides)
        self.advection = Advection(self.grid, self.walls, Scratch(self.grid), scheme, trace)

    def velocity_array(self, cells):
        velocity = self.grid.velocity()
        self.grid.from_numpy(velocity, np.asarray(cells, np.float32))
        self.walls.fill_velocity(velocity)
        return velocity

    def scalar(self, values, velocity, dt=1.0, name="smoke", faces_begin=False):
        current, out = self.grid.array(), self.grid.array()
        self.grid.from_numpy(current, np.asarray(values, np.float32))
        self.walls.fill(current, name=name)
        self.advection.trace_paths(self.velocity_array(velocity), dt, faces=faces_begin)
        self.advection.carry(current, out, name=name)
        return self.grid.to_numpy(out)

    def velocity(self, cells, dt=1.0):
        out = self.grid.velocity()
        self.advection.carry_velocity(self.velocity_array(cells), out, dt)
        return self.grid.to_numpy(out)


@functools.cache
def ring(shape, scheme, trace=Trace.RK2):
    return Flow(shape, [(PERIODIC, PERIODIC)] * len(shape), scheme, trace)


def uniform(shape, speed):
    return np.broadcast_to(np.reshape(speed, (-1, *(1,) * len(shape))), (len(shape), *shape))


@pytest.mark.vulkan_too
@schemes
@begins
@pytest.mark.parametrize("trace", [Trace.EULER, Trace.RK3], ids=lambda trace: trace.value)
@pytest.mark.parametrize("shape", [(8, 5), (7, 1), (4, 6, 3)], ids=str)
def test_whole_cells_around_a_periodic_box_are_a_roll(shape, scheme, trace, faces_begin):
    """Also once around and further, and across every edge at once."""
    values, axes = random_scalar(shape).astype(np.float32), tuple(range(len(shape)))
    for cells in ((1, 0, 0), (3, -2, 1), (-8, 5, 3), (17, -11, 30)):
        moved = cells[: len(shape)]
        found = ring(shape, scheme, trace).scalar(values, uniform(shape, moved), faces_begin=faces_begin)
        # MacCormack's correction is half the difference of two equal values; 1 ulp.
        np.testing.assert_array_max_ulp(found, np.roll(values, moved, axes), maxulp=1)


@schemes
def test_a_uniform_periodic_flow_carries_itself_unchanged(dim, scheme):
    shape = (8, 5, 4)[:dim]
    for speed in (0.3, 1.0, 7.25):
        found = ring(shape, scheme).velocity(uniform(shape, (speed,) * dim))
        assert (found == np.float32(speed)).all()


def test_the_roll_test_notices_a_wall():
    """Sabotage: with closed sides in the place of the seam."""
    values = random_scalar((8, 5)).astype(np.float32)
    found = Flow((8, 5), [(FREE, FREE)] * 2, Scheme.MACCORMACK).scalar(values, uniform((8, 5), (1, 0)))
    assert np.abs(found - np.roll(values, 1, 0)).max() > 0.1


@pytest.mark.vulkan_too
@schemes
@begins
@given(st.sampled_from([0.01, 0.3, 1.0, 4.7, 30.0, 1e4]), st.integers(0, 20))
def test_any_speed_stays_between_what_there_was(scheme, faces_begin, cfl, seed):
    """Around a ring; and through a tunnel, with what enters at its sides: ambient is 0."""
    for shape in ((9, 8), (5, 4, 6)):
        dim, rng = len(shape), np.random.default_rng(seed)
        values = random_scalar(shape, seed).astype(np.float32)
        flow = cfl * rng.standard_normal((dim, *shape))
        found = ring(shape, scheme).scalar(values, flow, faces_begin=faces_begin)
        assert values.min() <= found.min() <= found.max() <= values.max()
        found = tunnel(dim, scheme).scalar(values, flow, faces_begin=faces_begin)
        assert min(values.min(), 0) <= found.min() <= found.max() <= max(values.max(), 2.5)


@functools.cache
def tunnel(dim, scheme):
    shape = (9, 8) if dim == 2 else (5, 4, 6)
    enters = inflow(*(1.0, 0.0, 0.0)[:dim], smoke=2.5)
    return Flow(shape, [(enters, OPEN), (OPEN, NO), (PERIODIC, PERIODIC)][:dim], scheme)


@schemes
@begins
def test_smoke_enters_through_an_inflow_cell_by_cell(dim, scheme, faces_begin):
    """With whole cells a step, as a front without a blur."""
    shape = (8, 3, 3)[:dim]
    speed = (1.0, 0.0, 0.0)[:dim]
    flow = Flow(shape, [(inflow(*speed, smoke=0.75), OPEN)] + [(FREE, FREE)] * (dim - 1), scheme)
    values = np.zeros(shape)
    for step in range(1, 11):
        values = flow.scalar(values, uniform(shape, speed), faces_begin=faces_begin)
        front = np.where(np.arange(8) < step, 0.75, 0.0).astype(np.float32)
        np.testing.assert_array_equal(values, np.broadcast_to(front.reshape(-1, *(1,) * (dim - 1)), shape))


@schemes
@begins
def test_backflow_through_an_open_side_is_ambient(dim, scheme, faces_begin):
    """Whatever has left does not come back: what enters is 0."""
    shape = (8, 4, 3)[:dim]
    for axis in range(dim):
        for sign in (-1, 1):
            sides = [(FREE, FREE)] * dim
            sides[axis] = (OPEN, OPEN)
            flow, speed = Flow(shape, sides, scheme), np.zeros(dim)
            speed[axis] = sign
            found = flow.scalar(np.ones(shape), uniform(shape, speed), faces_begin=faces_begin)
            entered = take(found, axis, slice(0, 1) if sign > 0 else slice(-1, None))
            assert not entered.any()
            assert (take(found, axis, slice(1, None) if sign > 0 else slice(0, -1)) == 1).all()
            found = flow.scalar(np.ones(shape), uniform(shape, 20 * speed), faces_begin=faces_begin)
            assert not found.any(), "blown through altogether"


@schemes
@pytest.mark.parametrize("trace", Trace, ids=lambda trace: trace.value)
@pytest.mark.parametrize("name", ["open", "inflow"])
def test_a_mirror_changes_nothing_where_the_sides_let_through(dim, scheme, trace, name):
    """The faces on the upper sides begin paths of as many stages as those on the lower ones."""
    shape, rng = (9, 7, 5)[:dim], np.random.default_rng(1)
    enters = [inflow(*(s * 1.5 * (a == 0) for a in range(dim))) for s in (1, -1)]
    flow = Flow(shape, [(OPEN, OPEN) if name == "open" else enters] + [(OPEN, OPEN)] * (dim - 1), scheme, trace)
    faces = [rng.standard_normal(face_shape(shape, axis)) for axis in range(dim)]

    def carried(faces, values):
        velocity, out = flow.grid.velocity(), flow.grid.velocity()
        flow.grid.face_velocity_from_numpy(velocity, [np.ascontiguousarray(f, np.float32) for f in faces])
        flow.walls.fill_velocity(velocity, keep=True)
        flow.advection.carry_velocity(velocity, out, 0.9)
        # What lies between the faces goes along with them.
        current, following = flow.grid.array(), flow.grid.array()
        flow.grid.from_numpy(current, np.ascontiguousarray(values, np.float32))
        flow.walls.fill(current, name="smoke")
        flow.advection.carry(current, following, name="smoke")
        return flow.grid.face_velocity_to_numpy(out), flow.grid.to_numpy(following)

    values = random_scalar(shape)
    plain, smoke = carried(faces, values)
    for axis in range(dim):
        seen, found = carried(mirrored_velocity(faces, axis), mirrored(values, axis))
        # Places are rounded differently at both ends of the box.
        np.testing.assert_allclose(mirrored(found, axis), smoke, rtol=0, atol=1e-5)
        for a, b in zip(mirrored_velocity(seen, axis), plain, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


@functools.cache
def long_rows(dim, length, scheme):
    """What enters comes in along rows, or across them."""
    enters = inflow(*(1.0, 0.0, 0.0)[:dim], smoke=0.5)
    sides = [(enters, OPEN), (FREE, FREE), (OPEN, FREE)] if dim == 3 else [(enters, OPEN), (OPEN, FREE)]
    return Flow((6, 5, length)[-dim:], sides, scheme)


def carried_if(flow, values, velocity, look_everywhere, faces_begin=True):
    """A scalar along traced paths; ``look_everywhere``: as if one had been long, or as if none had."""
    current, out = flow.grid.array(), flow.grid.array()
    flow.grid.from_numpy(current, values)
    flow.walls.fill(current, name="smoke")
    flow.advection.trace_paths(flow.velocity_array(velocity), 1.0, faces=faces_begin)
    noted = flow.advection._mask
    found = noted[noted.shape[0] - 1]
    noted[noted.shape[0] - 1] = int(look_everywhere)
    flow.advection.carry(current, out, name="smoke")
    return flow.grid.to_numpy(out), found


@schemes
@pytest.mark.parametrize("dim", [2, 3], ids=["2D", "3D"])
@settings(max_examples=40)
@given(
    length=st.sampled_from([3, 15, 16, 17, 32, 47]), cfl=st.floats(0.1, 3.0), seed=st.integers(0, 1000),
    spots=st.integers(0, 3), faces_begin=st.booleans(),
)  # fmt: skip
def test_where_there_is_nothing_nobody_has_to_look(dim, scheme, length, cfl, seed, spots, faces_begin):
    """Stretches that are passed over get bit for bit what looking gives; a longer path makes all of them be looked at."""
    flow, rng = long_rows(dim, length, scheme), np.random.default_rng(seed)
    values = np.zeros(flow.grid.shape, np.float32)
    values.flat[rng.integers(0, values.size, spots)] = rng.standard_normal(spots)
    velocity = rng.uniform(-cfl, cfl, (dim, *values.shape)).astype(np.float32)
    looked, far = carried_if(flow, values, velocity, True, faces_begin)
    if not flow.grid.loops.rows:
        return
    # No path is longer than the fastest of what it meets; what enters has 1.
    assert far >= (np.abs(flow.grid.to_numpy(flow.advection._departure)).max() > 1.99)
    assert cfl > 1.99 or not far
    if not far:
        passed, _ = carried_if(flow, values, velocity, False, faces_begin)
        np.testing.assert_array_equal(passed, looked)


def test_a_long_path_must_be_noticed(dim):
    """Sabotage: a spot that moves by three cells, once with the note of it taken away."""
    flow = long_rows(dim, 48, Scheme.SEMI_LAGRANGIAN)
    values = np.zeros(flow.grid.shape, np.float32)
    values[..., 13] = 1.0
    velocity = np.zeros((dim, *values.shape), np.float32)
    velocity[-1] = 3.0
    looked, far = carried_if(flow, values, velocity, True)
    if flow.grid.loops.rows:
        assert far == 1
        passed, _ = carried_if(flow, values, velocity, False)
        # What enters is near to the first planes.
        assert (looked[3:, ..., 16] == 1).all()
        assert not passed[3:, ..., 16].any()


def test_a_path_beside_a_solid_may_leave_the_box_by_cells():
    """Beyond a side there are no faces to look at: it ended the process."""
    sides = [["open", {"kind": "inflow", "velocity": [-1.0, 0.0]}], ["free-slip", "free-slip"]]
    scene = Scene.from_dict({
        "name": "out", "domain": {"size": [1.0, 1.0], "resolution": 24, "boundaries": sides},
        "solids": [{"shape": "sphere", "center": [0.12, 0.5], "radius": 0.08}], "solver": {"cfl": 4.0, "max_dt": 1.0},
    })  # fmt: skip
    simulation = Simulation(scene)
    for _ in range(6):
        simulation.step()
    assert np.isfinite(simulation.to_numpy("velocity")).all()


@schemes
@begins
@pytest.mark.parametrize("cfl", [0.25, 0.5, 1.0, 1.7])
def test_smoke_leaves_through_an_open_side_without_a_trace(scheme, faces_begin, cfl):
    """A blob on its way out is the same blob as in a box that does not end there, up to the last cell."""
    n, long = 16, 48
    x = np.arange(long)[:, None] + np.zeros((1, 3))
    blob = np.exp(-0.5 * ((x - 9) / 2.0) ** 2)
    short_box = Flow((n, 3), [(OPEN, OPEN), (FREE, FREE)], scheme)
    long_box = Flow((long, 3), [(OPEN, OPEN), (FREE, FREE)], scheme)
    one, two = blob[:n], blob
    total = [one.sum()]
    for _ in range(int(20 / cfl)):
        one = short_box.scalar(one, uniform((n, 3), (cfl, 0)), faces_begin=faces_begin)
        two = long_box.scalar(two, uniform((long, 3), (cfl, 0)), faces_begin=faces_begin)
        assert 0 <= one.min() <= one.max() <= 1
        total.append(one.sum())
        # Semi-Lagrangian reads upwind only; MacCormack looks a cell ahead, where there is nothing any more.
        seen = n if scheme is Scheme.SEMI_LAGRANGIAN else n - 4
        np.testing.assert_allclose(one[:seen], two[:seen], rtol=0, atol=1e-6 if seen == n else 0.02)
    assert total[-1] < 2e-3 * total[0], "nothing stays behind"
    # MacCormack does not conserve exactly; nothing comes back in.
    assert (np.diff(total) <= 1e-2 * total[0]).all()


@schemes
@pytest.mark.parametrize("cfl", [0.5, 1.0, 2.5])
def test_an_inflow_brings_its_own_velocity_in(scheme, cfl):
    """Along the side too: between what was inside and what enters, never beyond either."""
    shape = (8, 6)
    flow = Flow(shape, [(inflow(cfl, 0.25), OPEN), (PERIODIC, PERIODIC)], scheme)
    inside = uniform(shape, (cfl, 1.0))
    after = flow.velocity(inside)[1]
    assert after.min() >= 0.25 - 1e-6
    assert after.max() <= 1 + 1e-6
    for _ in range(60):
        inside = flow.velocity(inside)
        inside[0] = cfl
    # In the end the whole tunnel has what entered.
    np.testing.assert_allclose(inside[1], 0.25, rtol=0, atol=1e-3)


# A whole flow


@pytest.mark.parametrize("faces", ["fractions", "voxels"])
def test_a_tunnel_with_solids_runs(faces):
    scene = Scene.from_dict({**TUNNEL, "solver": {"faces": faces, "tolerance": 1e-4}})
    simulation = Simulation(scene)
    for _ in range(12):
        step = simulation.step()
        assert step.pressure.status is Status.CONVERGED
        assert step.pressure.removed_mean == 0, "the open side balances"
    u = simulation.grid.face_velocity_to_numpy(simulation.state.velocity.current)[0]
    assert (u[0] == 1).all(), "the inflow is what it was told to be"
    # What comes in goes out: 1 m/s through 16 faces; the tolerance, and f32. The capsule moves and pushes none of it.
    assert u[-1].sum() == pytest.approx(16, rel=0.02)
    smoke = simulation.to_numpy("smoke")
    assert 0 <= smoke.min() <= smoke.max() <= 0.5 + 1e-6
    assert smoke[0].min() > 0.3


def test_a_periodic_flow_keeps_its_momentum(dim):
    """Nothing stands in the box: the mean velocity stays what it was."""
    values = {**ALL_AROUND, "domain": {"size": [1.0] * dim, "resolution": 12, "boundaries": "periodic"}}
    simulation = Simulation(Scene.from_dict(values))
    grid, speed = simulation.grid, np.array([0.5, -0.25, 0.125][:dim])
    velocity = simulation.state.velocity.current
    grid.from_numpy(velocity, uniform(grid.shape, speed).astype(np.float32))
    simulation.walls.fill_velocity(velocity)
    for _ in range(5):
        assert simulation.step().pressure.status is Status.CONVERGED
    means = simulation.to_numpy("velocity").reshape(dim, -1).mean(axis=1)
    np.testing.assert_allclose(means, speed, rtol=1e-6)


@pytest.mark.vulkan_too
def test_what_enters_through_an_open_side_pays_for_its_speed(dim):
    """By the pressure that it has, half of the square of it below that outside; what leaves, and what a wall gives, stays bit for bit."""
    n, dx, dt = 6, 0.1, 0.05
    grid = Grid((n,) * dim, dx)
    walls = Walls(grid, [["open", "open"], ["no-slip", "open"], ["open", "free-slip"]][:dim])
    velocity = grid.velocity()
    faces = [random_scalar(face_shape(grid.shape, axis), axis).astype(np.float32) for axis in range(dim)]
    grid.face_velocity_from_numpy(velocity, faces)
    before = grid.face_velocity_to_numpy(velocity)
    walls.meet_outside(velocity, dt)
    after = grid.face_velocity_to_numpy(velocity)
    for axis, (one, two) in enumerate(zip(before, after, strict=True)):
        expected = one.astype(np.float64)
        for side, end, sign in ((0, 0, 1), (1, -1, -1)):
            if walls.sides[axis][side].kind is Boundary.OPEN:
                face = np.moveaxis(expected, axis, 0)
                face[end] *= 1 - np.minimum(0.5 * dt / dx * np.maximum(sign * face[end], 0), 1)
        np.testing.assert_allclose(two, expected, rtol=1e-6)
        assert np.array_equal(two[expected == one], one[expected == one])
        assert (expected != one).any()


@pytest.mark.parametrize("scheme", ["splitting", "reflection"])
@pytest.mark.parametrize("cfl", [0.3, 1.5])
def test_a_draught_through_an_open_duct_is_bernoullis_at_any_step(scheme, cfl):
    """Pushed by f over L it enters by U²/2 = f L: by steps of CFL 0.3 and 1.5 it was 0.93 and 1.55 of sqrt(f L), 1.13 and 1.58 split."""
    cells, dx, push = 16, 0.25, 0.25
    made = scene_of(
        (cells, 4),
        dx,
        {"body_force": [push, 0.0]},
        {"cfl": cfl, "scheme": scheme, "max_dt": 1.0},
        [],
        [["open", "open"], ["free-slip"] * 2],
    )
    simulation = Simulation(made)
    simulation.advance(20.0)
    # The pressure outside stands a cell beyond the last one. What the push makes of a face in a step, 5 % at most, is slowed too.
    expected = np.sqrt(2 * push * (cells + 1) * dx)
    assert simulation.to_numpy("velocity")[0] == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("scheme", ["splitting", "reflection"])
@pytest.mark.parametrize("cfl", [0.3, 1.5])
def test_what_is_sucked_in_has_half_of_the_square_of_its_speed_less_pressure(scheme, cfl):
    """All along a duct without friction; it was -0.8 to -0.4 of ρU² split, -1.2 to -0.4 with reflection, and other beside the side."""
    sides = [["open", {"kind": "inflow", "velocity": [1.0, 0.0]}], ["free-slip"] * 2]
    made = scene_of(
        (24, 6), 1 / 16, {"gravity": [0.0, 0.0], "rho": 2.0}, {"cfl": cfl, "scheme": scheme, "max_dt": 1.0}, [], sides
    )
    simulation = Simulation(made)
    simulation.advance(1.5)
    assert simulation.to_numpy("pressure") == pytest.approx(-0.5 * 2.0, rel=5e-3)


@pytest.mark.parametrize("scheme", ["splitting", "reflection"])
def test_what_speeds_up_towards_an_open_side_has_the_same_pressure_at_any_step(scheme):
    """That of Bernoulli; the difference over the last cell was made anew in each projection, which took ρ dx du / dt more, up to 0.93 Pa."""
    sides = [
        [{"kind": "inflow", "velocity": ["0.5", "-0.25 * y"]}, "open"],
        ["free-slip", {"kind": "inflow", "velocity": ["0.5 + 0.25 * x", "-0.25"]}],
    ]
    found = []
    for dt in (0.04, 0.005):
        solver = {"dt": dt, "scheme": scheme, "tolerance": 1e-6}
        made = scene_of((16, 16), 1 / 16, {"gravity": [0.0, 0.0], "rho": 1.0}, solver, [], sides)
        initial = {"initial.velocity": ["0.5 + 0.25 * x", "-0.25 * y"]}
        simulation = Simulation(made.with_values(initial))
        while simulation.time < 2.0:
            simulation.step()
        found.append(simulation.to_numpy("pressure")[0].mean())
    # From the first cell to a cell beyond the last: 0.158 Pa, of first order at such a side; measured 0.146.
    assert found[1] == pytest.approx(found[0], rel=5e-3)
    assert found[0] == pytest.approx(0.158, rel=0.1)


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_a_hot_column_between_open_sides_does_not_tear_itself_apart(grid):
    """Its energy stays what it is once it stands; before, what entered brought energy of its own, and it grew without end."""
    source = {"shape": "sphere", "center": [0.35, 0.27, 0.35], "radius": 0.1, "temperature": 12000.0}
    made = scene_of(
        (18, 28, 18), 0.7 / 18, {"expansion": 0.0008, "cooling": 1.5}, {"cfl": 0.7}, [{**source, "mottle": 1.0}],
        [["open", "open"]] * 3,
    )  # fmt: skip
    simulation, energies = Simulation(made.with_values({"domain.grid": grid})), []
    for _ in range(10):
        simulation.advance(0.5)
        energies.append(simulation.diagnostics.kinetic_energy(simulation.state.velocity.current))
    # Measured 1.2 to 1.3, collocated 2.6 and 3.7, with the patches of the source here or there; without ``meet_outside`` it reaches 6 km/s.
    assert max(energies[3:]) < 5 * np.median(energies[1:4])
