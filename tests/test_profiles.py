"""Inflows whose velocity is an expression: what lies on the side and beyond it, what comes of it, and refusals."""

import numpy as np
import pytest
from scenes_for_tests import scene
from test_scene import refusal

from taichi_fluid.boundaries.patches import places_on_side
from taichi_fluid.boundaries.walls import Walls
from taichi_fluid.errors import NotFinite
from taichi_fluid.grid import Grid
from taichi_fluid.scene import Scene
from taichi_fluid.simulation import Simulation
from taichi_fluid.simulation.resampling import resample

TEXTS = ["0.3 + y*x", "x*x - y", "sin(3*y) + z"]
SAME = [lambda x, y, *_: 0.3 + y * x, lambda x, y, *_: x * x - y, lambda x, y, z: np.sin(3 * y) + z]


def inflow(*velocity):
    return {"kind": "inflow", "velocity": list(velocity)}


def box(shape, sides, **changes):
    made = scene(shape, 0.1, boundaries=sides)
    return made.with_values(changes) if changes else made


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
@pytest.mark.parametrize("end", [0, 1])
def test_the_side_has_what_the_expression_says_and_ghosts_mirror_about_it(dim, end, grid):
    """Each component on the side, halfway between the last value and the ghost, or on the face that stands there."""
    shape = (5, 4, 3)[:dim]
    for axis in range(dim):
        sides = [["open", "open"] for _ in range(dim)]
        sides[axis][end] = inflow(*TEXTS[:dim])
        simulation = Simulation(box(shape, sides, **{"domain.grid": grid}))
        rng = np.random.default_rng(1)
        velocity = simulation.state.velocity.current
        velocity.from_numpy(rng.standard_normal(velocity.shape[0]).astype(np.float32))
        simulation.walls.fill_velocity(velocity)
        padded = simulation.grid.to_numpy_padded(velocity).astype(np.float64)
        for k in range(dim):
            face = k if grid == "staggered" else -1
            x = places_on_side(shape, [0.1 * n for n in shape], axis, end, face)
            expected = np.broadcast_to(SAME[k](*x), np.broadcast_shapes(*(each.shape for each in x)))
            lines = np.moveaxis(padded[k], axis, 0)
            inner = tuple(slice(1, n + 1 + (a == face)) for a, n in enumerate(shape) if a != axis)
            inside, ghost = (1, 0) if end == 0 else (shape[axis], shape[axis] + 1)
            if face == axis:
                found = lines[1 if end == 0 else shape[axis] + 1][inner]
                if end == 0:
                    np.testing.assert_allclose(lines[0][inner], 2 * found - lines[2][inner], atol=1e-5)
            else:
                found = (lines[inside][inner] + lines[ghost][inner]) / 2
            np.testing.assert_allclose(found, np.moveaxis(expected, axis, 0)[0], atol=1e-6)


def test_where_two_sides_meet_the_ghost_is_that_of_both():
    """Beyond an inflow and a wall: the wall's rule for what lies beyond the inflow, so that both interpolate to theirs."""
    simulation = Simulation(box((4, 5), [[inflow("4*y*(0.5-y)", "y"), "open"], ["no-slip", "free-slip"]]))
    simulation.walls.fill_velocity(simulation.state.velocity.current)
    u, v = simulation.grid.to_numpy_padded(simulation.state.velocity.current)
    assert u[1, 1] == pytest.approx(4 * 0.05 * 0.45)
    assert u[1, 0] == -u[1, 1], "no-slip below"
    assert u[1, -1] == u[1, -2], "free-slip above"
    assert v[0, 1] == 0, "nothing crosses the walls"
    assert v[0, 6] == 0
    assert v[0, 2] == pytest.approx(2 * 0.1)


def test_an_expression_that_is_a_number_is_that_number(dim):
    """Bit for bit, through whole steps."""
    found = []
    for speed in (0.75, "0.5 + 0.25"):
        sides = [[inflow(speed, *[0.0] * (dim - 1)), "open"], ["no-slip", "free-slip"], ["free-slip", "open"]][:dim]
        simulation = Simulation(box((8, 6, 4)[:dim], sides, **{"fluid.viscosity": 0.01, "fluid.gravity": [0.0] * dim}))
        for _ in range(3):
            simulation.step(0.05)
        found.append(simulation.to_numpy("velocity"))
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0].max() > 0.5


def test_a_parabola_flows_on_through_a_channel():
    """Poiseuille's profile enters and keeps its shape: the mean of u is 1, its largest value 1.5."""
    sides = [[inflow("6*y*(1-y)", 0.0), "open"], ["no-slip", "no-slip"]]
    made = Scene.from_dict(
        {
            "name": "channel",
            "domain": {"size": [2.0, 1.0], "resolution": 32, "boundaries": sides},
            "fluid": {"viscosity": 0.1, "gravity": [0.0, 0.0]},
            "initial": {"velocity": ["6*y*(1-y)", 0]},
            "solver": {"tolerance": 1e-6, "dt": 0.02},
        }
    )
    simulation = Simulation(made)
    simulation.advance(2.0)  # twice the time of crossing
    u, _ = simulation.grid.face_velocity_to_numpy(simulation.state.velocity.current)
    y = (np.arange(16) + 0.5) / 16
    np.testing.assert_allclose(u.sum(axis=1), u[0].sum(), rtol=1e-4)  # what flows in flows through every section
    # The steady state of the differences is a parabola too; of 16 cells their error is below 1 %.
    assert np.abs(u[8:24] - 6 * y * (1 - y)).max() < 0.02


def test_what_changes_with_time_is_that_of_the_end_of_each_step_and_begins_again():
    made = box((5, 4), [[inflow("0.2 + t", "y*t"), "open"], ["free-slip", "free-slip"]])
    simulation = Simulation(made)

    def entering():
        return simulation.grid.face_velocity_to_numpy(simulation.state.velocity.current)[0][0]

    assert (entering() == np.float32(0.2)).all()
    for step in range(1, 4):
        simulation.step(0.1)
        np.testing.assert_allclose(entering(), 0.2 + 0.1 * step, rtol=1e-6)
    other = Simulation(made.with_values({"domain.resolution": 10}))
    resample(simulation, other)
    found = other.grid.face_velocity_to_numpy(other.state.velocity.current)[0][0]
    np.testing.assert_allclose(found, 0.5, rtol=1e-6)
    simulation.reset()
    assert (entering() == np.float32(0.2)).all()
    assert simulation.walls.fastest == pytest.approx(0.2)


def test_the_step_heeds_the_fastest_place_of_a_profile():
    simulation = Simulation(box((4, 4), [[inflow("10*step(y-0.3)", 0.0), "open"], ["free-slip", "free-slip"]]))
    assert simulation.walls.fastest == 10
    assert simulation.stable_dt(0.0) == pytest.approx(simulation.scene.solver.cfl * 0.1 / 10)


def test_a_scene_with_a_profile_comes_back_and_knows_its_mean():
    made = box((4, 4), [[inflow("10*y", 0.0), "open"], ["free-slip", "free-slip"]])
    assert Scene.loads(made.dumps()) == made
    assert made.domain.sides[0][0].velocity == pytest.approx((2.0, 0.0))


def test_walls_alone_take_a_function():
    from taichi_fluid.boundaries.sides import Boundary, Profile, Side

    side = Side(Boundary.INFLOW, (1.0, 0.0), profiles={0: Profile(lambda t, x, y: 2 * y)})
    grid = Grid((3, 2), 0.5)
    walls = Walls(grid, [(side, Boundary.OPEN), (Boundary.NO_SLIP, Boundary.NO_SLIP)])
    velocity = grid.velocity()
    walls.fill_velocity(velocity)
    assert (grid.to_numpy_padded(velocity)[0, 1, 1:-1] == (0.5, 1.5)).all()


REFUSED = {
    "unreadable": ([inflow("sin(", 0.0), "open"], ["boundaries[0][0].velocity: 'sin('", "character 4"]),
    "unknown name": ([inflow("z", 0.0), "open"], ["boundaries[0][0].velocity: 'z'", "x, y, t"]),
    "not finite": ([inflow("log(y-0.2)", 0.0), "open"], ["component 0, 'log(y-0.2)'", "at most 1e+06 m/s"]),
    "a wall": (
        [{"kind": "moving-wall", "velocity": ["y", 0.0]}, "open"],
        ["boundaries[0][0].velocity changes along axis 0", "in its own plane only"],
    ),
    "unbalanced": ([inflow("y", 0.0), inflow(0.1, 0.0)], ["more flows in than out"]),
    "unbalanced later": (
        [inflow("1 + t", 0.0), inflow("1 + 2*t", 0.0)],
        ["at t = 0.017 s more flows out", "no side is open"],
    ),
    "too many": ([inflow("y", 0.0, 0.0), "open"], ["boundaries[0][0].velocity has 3 coordinates"]),
}


@pytest.mark.parametrize("scheme", ["splitting", "reflection"])
def test_as_much_may_come_and_go_at_any_time_without_an_open_side(scheme):
    """Vortices that decay, given on all sides (Taylor and Green): of second order, by reflection in time too."""
    errors, viscosity = [], 0.05
    decay = f"exp(-2*{viscosity}*pi**2*t)"
    u, v = f"sin(pi*x)*cos(pi*y)*{decay}", f"-cos(pi*x)*sin(pi*y)*{decay}"
    for n in (16, 32):
        # A quarter of a vortex off the walls, so that something passes each side.
        moved = [text.replace("*x)", "*(x+0.25))").replace("*y)", "*(y+0.25))") for text in (u, v)]
        side = {"kind": "inflow", "velocity": moved}
        made = scene((n, n), 1 / n, boundaries=[[side, side], [side, side]])
        changes = {"fluid.viscosity": viscosity, "solver.scheme": scheme, "solver.dt": 1 / n, "initial.velocity": moved}
        simulation = Simulation(made.with_values(changes))
        while simulation.time < 0.5 - 1e-6:
            simulation.step()
        x, y = simulation.grid.cell_centres()
        x = x - 0.5 / n
        exact = np.sin(np.pi * (x + 0.25)) * np.cos(np.pi * (y + 0.25)) * np.exp(-2 * viscosity * np.pi**2 * 0.5)
        errors.append(np.sqrt(((simulation.to_numpy("velocity")[0] - exact) ** 2).mean()))
    assert errors[1] < 0.01
    assert np.log2(errors[0] / errors[1]) > (1.7 if scheme == "reflection" else 0.8)


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_flow_in_is_refused_in_a_sentence(case):
    pair, parts = REFUSED[case]
    message = refusal(lambda: box((4, 4), [pair, ["free-slip", "free-slip"]]))
    for part in parts:
        assert part in message


def test_what_flows_out_as_it_flows_in_needs_no_open_side():
    box((4, 4), [[inflow("y*(0.4-y)", 0.0), inflow("y*(0.4-y)", 0.0)], ["free-slip", "free-slip"]])


def test_what_changes_along_an_inflow_alone_needs_no_open_side():
    box((4, 4), [[inflow(0.1, "sin(t)"), inflow(0.1, "t*y")], ["free-slip", "free-slip"]])


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_a_wall_moves_as_an_expression_says(dim, grid):
    """Halfway between the last value and the ghost, at its time; in 3D both components in its plane."""
    lid = {"kind": "moving-wall", "velocity": ["x*(1 + t)", 0.0, "x - t"][:dim]}
    sides = [["no-slip", "no-slip"], ["no-slip", lid], ["free-slip", "free-slip"]][:dim]
    simulation = Simulation(box((5, 4, 3)[:dim], sides, **{"domain.grid": grid}))
    velocity = simulation.state.velocity.current
    simulation.walls.at(0.5)
    simulation.walls.fill_velocity(velocity)
    padded = simulation.grid.to_numpy_padded(velocity).astype(np.float64)
    for k, said in ((0, lambda x: 1.5 * x), (2, lambda x: x - 0.5))[: dim - 1]:
        x = 0.1 * np.arange(1, 5) if (k, grid) == (0, "staggered") else 0.1 * (np.arange(5) + 0.5)
        at = slice(2, 6) if (k, grid) == (0, "staggered") else slice(1, 6)
        lines = (padded[k][at, 4] + padded[k][at, 5]) / 2
        if dim == 3:
            lines = lines[:, 2]
        np.testing.assert_allclose(lines, said(x), atol=1e-6)
    assert simulation.walls.fastest == pytest.approx(0.75, rel=0.15)


@pytest.mark.parametrize("scheme", ["splitting", "reflection"])
def test_a_wall_that_swings_drags_the_fluid_as_stokes_has_it(scheme):
    """His second problem, 100 steps a period; split steps are of first order in time."""
    cells, viscosity, omega = 64, 0.01, 2 * np.pi
    depth = np.sqrt(2 * viscosity / omega)
    wall = {"kind": "moving-wall", "velocity": ["cos(2*pi*t)", 0.0]}
    made = scene((2, cells), 0.5 / cells, {"viscosity": viscosity}, {"scheme": scheme, "dt": 0.01}, (),
                 [("periodic", "periodic"), (wall, "free-slip")])  # fmt: skip
    simulation = Simulation(made.with_values({"initial.velocity": [f"exp(-y/{depth}) * cos(y/{depth})", 0.0]}))
    for _ in range(100):
        simulation.step()
    y = (np.arange(cells) + 0.5) * 0.5 / cells
    exact = np.exp(-y / depth) * np.cos(omega * simulation.time - y / depth)
    error = np.abs(simulation.to_numpy("velocity")[0] - exact).max()
    assert error < (0.003 if scheme == "reflection" else 0.02)


LATER = "where(t > 0.07, {}, 1)"


@pytest.mark.parametrize(
    ("sides", "told"),
    [
        (
            [["no-slip", "no-slip"], ["no-slip", {"kind": "no-slip", "temperature": LATER.format("log(-1)")}]],
            r"boundaries\[1\]\[1\]\.temperature is nan at x = 0\.05, y = 0\.5 m, t = 0\.1 s",
        ),
        (
            [["no-slip", "no-slip"], ["no-slip", {"kind": "no-slip", "temperature_flux": LATER.format("1e40")}]],
            r"boundaries\[1\]\[1\]\.temperature_flux is 1e\+40 at",
        ),
        (
            [["no-slip", "no-slip"], ["no-slip", {"kind": "moving-wall", "velocity": [LATER.format("1/0"), 0.0]}]],
            r"boundaries\[1\]\[1\]\.velocity is inf at",
        ),
        (
            [[inflow(LATER.format("1/(y - 0.25)"), 0.0), "open"], ["no-slip", "no-slip"]],
            r"boundaries\[0\]\[0\]\.velocity is inf at x = 0, y = 0\.25 m, t = 0\.1 s",
        ),
    ],
    ids=["held", "given", "a wall that moves", "an inflow"],
)
def test_what_is_no_number_later_is_named_with_its_place_and_its_time(sides, told):
    """Not the flow that it would spoil; what a wall holds would not even do that, but leave a solve without an end."""
    simulation = Simulation(scene((4, 5), 0.1, {"viscosity": 0.01, "heat_diffusion": 0.01}, boundaries=sides))
    simulation.step(0.05)
    with pytest.raises(NotFinite, match=told):
        simulation.step(0.05)
    assert simulation.time == 0.05
    simulation.reset()
    simulation.step(0.05)
    assert np.isfinite(simulation.to_numpy("velocity")).all()


def test_on_a_part_of_a_side_an_expression_needs_to_be_a_number_there_only():
    part = {"kind": "no-slip", "temperature": "1 + sqrt(y - 0.3)", "lower": [0.3], "upper": [0.5]}
    sides = [[{"kind": "no-slip", "parts": [part]}, "no-slip"], ["no-slip", "no-slip"]]
    simulation = Simulation(box((4, 5), sides, **{"fluid.heat_diffusion": 0.01}))
    least, largest = simulation.walls.held_range("temperature", 0)
    assert (least, largest) == pytest.approx((1 + 0.05**0.5, 1 + 0.15**0.5))
    simulation.step(0.05)
    assert np.isfinite(simulation.to_numpy("temperature")).all()
