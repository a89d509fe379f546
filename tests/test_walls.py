"""Walls that hold what is carried at a value, or give it at a rate: profiles, amounts, extremes, scenes."""

import math

import numpy as np
import pytest
from reference import SHAPES, Arrays, mirrored, random_scalar, random_velocity, take
from scenes_for_tests import scene, set_state
from test_scene import refusal

import taichi_fluid as tf
from taichi_fluid.boundaries.sides import Boundary, Side
from taichi_fluid.boundaries.walls import SCALAR, Walls
from taichi_fluid.grid import Grid, Scratch
from taichi_fluid.physics.advection import Advection, Scheme, Trace
from taichi_fluid.physics.advection.extremes import Extremes
from taichi_fluid.physics.diffusion import Diffusion
from taichi_fluid.scene import Scene, SceneError
from taichi_fluid.simulation import Simulation

NO, FREE = Boundary.NO_SLIP, Boundary.FREE_SLIP
TOLERANCE = 1e-6


def held(value, kind=NO, name="temperature"):
    return Side(kind, values={name: value})


def giving(flux, kind=NO, name="temperature"):
    return Side(kind, fluxes={name: flux})


def between(dim, axis, lower, upper):
    """Sides of a box with these two across one axis; nothing passes the others."""
    return [(lower, upper) if a == axis else (FREE, NO) for a in range(dim)]


def spread(shape, dx, sides, diffusivity, dts, start=None):
    """A scalar after diffusion by these steps, from 0 or from ``start``."""
    grid = Grid(shape, dx)
    walls = Walls(grid, sides)
    arrays, diffusion = Arrays(grid, walls), Diffusion(grid, walls, TOLERANCE)
    a = arrays.scalar(np.zeros(shape) if start is None else start)
    walls.fill(a, name="temperature")
    for dt in dts:
        diffusion.diffuse(a, diffusivity, dt, SCALAR, 0, "temperature")
    return arrays.get(a)


def centres(shape, axis, dx):
    x = (np.arange(shape[axis]) + 0.5) * dx
    return np.broadcast_to(x.reshape([-1 if a == axis else 1 for a in range(len(shape))]), shape)


SETTLE = (100.0, 100.0, 100.0, 10.0, 10.0, 1.0, 1.0)
"""Steps after which nothing is left of how a box of a few metres began, at 1 m²/s."""


@pytest.mark.vulkan_too(dim=2)
def test_between_two_held_walls_the_profile_is_a_straight_line(dim):
    """Walls stand half a cell from the first values: at any resolution, one cell included, the line ends at them."""
    for shape in SHAPES[dim]:
        for axis in range(dim):
            dx = 1.0 / shape[axis]
            found = spread(
                shape, dx, between(dim, axis, held(3.0), held(-1.0, FREE)), 1.0, SETTLE, random_scalar(shape)
            )
            # Tolerance of the solve, relative to what the last steps change, and rounding of f32.
            np.testing.assert_allclose(found, 3.0 - 4.0 * centres(shape, axis, dx), atol=1e-5)


def test_from_a_wall_that_gives_to_one_that_holds_the_slope_is_flux_over_diffusivity(dim):
    shape, dx, flux, diffusivity = (7, 5, 6)[:dim], 0.2, -0.75, 0.5
    for axis in range(dim):
        found = spread(shape, dx, between(dim, axis, held(2.0), giving(flux)), diffusivity, SETTLE)
        expected = 2.0 + flux / diffusivity * centres(shape, axis, dx)
        np.testing.assert_allclose(found, expected, atol=2e-5)


def series(x, t):
    """Conduction in a rod of 1 m, 1 m²/s, that was at 0 when its end at x = 0 became 1."""
    k = np.arange(1, 60)[:, None]
    waves = 2 / (k * math.pi) * np.sin(k * math.pi * x) * np.exp(-((k * math.pi) ** 2) * t)
    return 1 - x - waves.sum(axis=0)


def test_conduction_follows_the_series_to_second_order():
    errors = []
    for n in (8, 16, 32):
        steps, time = n * n // 8, 0.05  # dt falls as dx² does, of which implicit Euler's error is a multiple
        found = spread((n, 3), 1.0 / n, between(2, 0, held(1.0), held(0.0)), 1.0, [time / steps] * steps)
        errors.append(np.abs(found - series((np.arange(n) + 0.5) / n, time)[:, None]).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert (orders > 1.9).all(), f"errors {errors}, orders {orders}"
    assert errors[-1] < 5e-3


@pytest.mark.vulkan_too(dim=2, number=0.1)
@pytest.mark.parametrize("number", [0.1, 30.0])
def test_what_walls_give_is_what_the_box_gains(dim, number):
    shape, dx, diffusivity, steps = (9, 5, 6)[:dim], 0.1, 0.02, 40
    dt = number * dx**2 / diffusivity
    for axis in range(dim):
        start = 1 + random_scalar(shape)
        found = spread(shape, dx, between(dim, axis, giving(2.0), giving(-0.5, FREE)), diffusivity, [dt] * steps, start)
        area = math.prod(n * dx for a, n in enumerate(shape) if a != axis)
        gained = (found.sum() - start.sum()) * dx**dim
        assert gained == pytest.approx(1.5 * area * dt * steps, rel=1e-5)


def test_a_flux_needs_diffusivity():
    with pytest.raises(ValueError, match="diffusivity is 0 and a wall has a flux of temperature"):
        spread((3, 3), 1.0, between(2, 0, giving(1.0), NO), 0.0, [1.0])


def test_ghosts_of_each_component_mirror_about_what_the_wall_holds(dim):
    grid = Grid((3, 4, 2)[:dim], 1.0)
    walls = Walls(grid, between(dim, 1, held((0.5, 1.0, -2.0), name="dye"), giving((1.0, 1.0, 1.0), name="dye")))
    dye = grid.array(3)
    dye.fill(0.25)
    for k in range(3):
        walls.fill(dye, SCALAR, k * grid.cells, "dye")
    found = grid.to_numpy_padded(dye)
    inner = (slice(1, -1),) * (dim - 1)
    for k, value in enumerate((0.5, 1.0, -2.0)):
        ghosts = np.moveaxis(found[k], 1, 0)
        assert (ghosts[0][inner] == 2 * value - 0.25).all()
        assert (ghosts[-1][inner] == 0.25).all(), "what a wall gives comes by diffusion, not along paths"


def carried_beside(sides, velocity, values, dt=0.9, steps=3):
    """A scalar after MacCormack along a velocity that is the same in every step."""
    grid = Grid(np.shape(values), 1.0)
    walls = Walls(grid, sides)
    arrays = Arrays(grid, walls)
    advection = Advection(grid, walls, Scratch(grid), Scheme.MACCORMACK, Trace.RK2)
    u, a = arrays.velocity(velocity), arrays.scalar(values)
    walls.fill_velocity(u)
    walls.fill(a, name="temperature")
    for _ in range(steps):
        advection.trace_paths(u, dt)
        advection.carry(a, a, SCALAR, 0, "temperature")
    return arrays.get(a)


def test_nothing_is_carried_beyond_what_a_wall_holds(dim, monkeypatch):
    """Its ghosts lie beyond it; without ``Extremes`` corrections do too, as this also shows."""
    shape = (9, 8, 7)[:dim]
    values = (random_scalar(shape) > 0).astype(float)
    sides, velocity = between(dim, 0, held(1.0), held(0.0)), random_velocity(shape)
    found = carried_beside(sides, velocity, values)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    monkeypatch.setattr(Extremes, "keep", lambda *_: None)
    unlimited = carried_beside(sides, velocity, values)
    assert unlimited.max() > 1.01 or unlimited.min() < -0.01


def test_what_the_wall_holds_is_a_constant_that_advection_keeps(dim):
    """Bit for bit: neither ghosts, nor predicted ones, nor extremes disturb it."""
    shape = (6, 5, 4)[:dim]
    found = carried_beside([(held(0.7), held(0.7))] * dim, random_velocity(shape), np.full(shape, np.float32(0.7)))
    assert (found == np.float32(0.7)).all()


# Scenes


def heated(n=8, left=1.0, right=0.0, **changes):
    """A cavity with one hot and one cold wall, of which the fluid feels little yet."""
    sides = [[{"kind": "no-slip", "temperature": value} for value in (left, right)], ["no-slip", "no-slip"]]
    fluid = {"viscosity": 0.05, "heat_diffusion": 0.05, "expansion": 0.1}
    made = scene((n, n), 1.0 / n, fluid, {"dt": 0.05}, boundaries=sides)
    return made.with_values(changes) if changes else made


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_a_heated_box_is_the_mirror_of_one_heated_from_the_other_side(grid):
    found = []
    for ends in ((1.0, 0.0), (0.0, 1.0)):
        simulation = Simulation(heated(8, *ends, **{"domain.grid": grid}))
        for _ in range(10):
            simulation.step()
        found.append(simulation.to_numpy("temperature"))
    assert found[0][0].mean() > 0.5
    np.testing.assert_allclose(found[0], mirrored(found[1], 0), atol=2e-5)  # tolerances of the two solves


def test_another_resolution_and_grid_go_on_between_the_same_walls():
    first = Simulation(heated(8, **{"fluid.expansion": 0.0}))
    x = (np.arange(8) + 0.5) / 8
    set_state(first, temperature=np.repeat(1 - x[:, None], 8, axis=1))
    for n, grid in ((12, "staggered"), (16, "collocated")):
        other = Simulation(heated(n, **{"fluid.expansion": 0.0, "domain.grid": grid}))
        tf.resample(first, other)
        other.step()
        expected = 1 - (np.arange(n) + 0.5) / n
        np.testing.assert_allclose(other.to_numpy("temperature"), np.repeat(expected[:, None], n, axis=1), atol=1e-5)


def test_a_scene_carries_what_its_walls_hold_or_give_be_it_0():
    assert heated(left=0.0, right=0.0).carried == {"temperature": 1}
    sides = [[{"kind": "free-slip", "smoke_flux": 0.0}, "no-slip"], ["no-slip", "no-slip"]]
    assert scene((4, 4), boundaries=sides).carried == {"smoke": 1}


def test_a_scene_with_walls_comes_back_from_toml():
    sides = [
        [
            {"kind": "no-slip", "temperature": 0.0, "dye": [1.0, 0.5, 0.0]},
            {"kind": "no-slip", "temperature_flux": -2.0},
        ],
        ["free-slip", {"kind": "moving-wall", "velocity": [1.0, 0.0], "smoke": 0.5}],
    ]
    made = scene((4, 4), fluid={"heat_diffusion": 0.1, "smoke_diffusion": 0.1}, boundaries=sides)
    again = Scene.loads(made.dumps())
    assert again == made
    assert again.domain.sides[0][0].values == {"temperature": 0.0, "dye": (1.0, 0.5, 0.0)}
    assert again.domain.sides[0][1].fluxes == {"temperature": -2.0}
    assert not again.domain.sides[0][1].values
    assert again.remarks == ()


def test_a_wall_that_nothing_can_leave_is_remarked_on():
    made = heated(**{"fluid.heat_diffusion": 0.0})
    assert made.remarks[0] == (
        "domain.boundaries.0.0 holds temperature and fluid.heat_diffusion is 0: the fluid hardly feels it."
    )


def test_a_flux_in_a_scene_needs_diffusivity():
    sides = [[{"kind": "no-slip", "temperature_flux": 2.0}, "no-slip"], ["no-slip", "no-slip"]]
    values = {"name": "x", "domain": {"size": [1, 1], "boundaries": sides}}
    assert refusal(lambda: Scene.from_dict(values)) == (
        "domain.boundaries.0.0.temperature_flux is 2.0; it needs a fluid.heat_diffusion above 0 m²/s."
    )
    sides[0][0] = {"kind": "no-slip", "temperature_flux": "2*y"}
    assert "domain.boundaries.0.0.temperature_flux is an expression; it needs a" in refusal(
        lambda: Scene.from_dict(values)
    )
    made = Scene.from_dict({**values, "fluid": {"heat_diffusion": 0.1}})
    with pytest.raises(SceneError, match=r"needs a fluid\.heat_diffusion above 0"):
        made.with_values({"fluid.heat_diffusion": 0.0})


def test_a_row_of_ones_own_has_a_value_and_a_flux_too():
    from test_outside import added

    with added(tf.CARRIED, tf.Carried("salt", diffusivity=0.1)):
        sides = [[{"kind": "no-slip", "salt": 3.0}, {"kind": "no-slip", "salt_flux": 1.0}], ["no-slip", "no-slip"]]
        made = scene((4, 4), boundaries=sides)
        assert made.carried == {"salt": 1}
        simulation = Simulation(made)
        simulation.step(0.1)
        found = simulation.to_numpy("salt")
        assert take(found, 0, slice(0, 1)).min() > 0 and take(found, 0, slice(-1, None)).min() > 0
