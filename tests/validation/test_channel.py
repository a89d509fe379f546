"""Flows between parallel walls whose discrete solution is known exactly, fluids at rest, and the lid-driven cavity."""

import numpy as np
import pytest
from scenes_for_tests import scene, set_state

from taichi_fluid.simulation import Simulation
from taichi_fluid.validation import CASES, Run
from taichi_fluid.validation.exact import WALL_SPEED, faces_of, middles, moving_wall, parabola, settled

CHANNELS = [((4, 5), 1, "periodic"), ((32, 3), 0, "periodic"), ((4, 64), 1, "periodic"),
            ((5, 9, 3), 1, "periodic"), ((16, 4, 5), 0, "free-slip")]  # fmt: skip


@pytest.mark.parametrize(("shape", "axis", "third"), CHANNELS)
def test_plane_poiseuille_is_off_by_the_same_known_amount_everywhere(shape, axis, third):
    """Second differences of a parabola are exact; a mirrored ghost takes its 0 for what is -G dx²/(8 nu) at the wall."""
    along, dim = 1 - axis, len(shape)
    found = settled(Run(shape[axis]), shape, axis, third)
    # Rounding, and the tolerance of diffusion. Measured 3e-7 to 8e-6, of a velocity of up to 0.5 m/s.
    assert np.abs(found[along] - parabola(shape[axis], axis, dim)).max() < 2e-5
    for other in set(range(dim)) - {along}:
        assert np.abs(found[other]).max() < 1e-6


@pytest.mark.parametrize("faces", ["fractions", "voxels"])
@pytest.mark.parametrize("shape", [(3, 34), (4, 10, 3)])
def test_poiseuille_between_walls_of_solids_is_that_between_sides_of_the_box(shape, faces):
    """A solid holds the fluid at its surface, half a cell from the first velocity along it."""
    n, dim = shape[1], len(shape)
    dx = 1.0 / (n - 4)
    walls = [{"shape": "box", "size": [9.0, 2 * dx, 9.0][:dim], "center": [0.5, y * dx, 0.5][:dim]} for y in (1, n - 1)]
    found = settled(Run(n), shape, 1, solids=walls, faces=faces)[0][:, 2:-2]
    # Solids are larger by 1e-4 of a cell than they say.
    assert np.abs(found - parabola(n - 4, 1, dim)).max() < 1e-4


@pytest.mark.parametrize(("shape", "axis"), [((4, 7), 1), ((33, 3), 0), ((3, 12, 4), 1)])
def test_couette_flow_is_exact(shape, axis):
    """A straight line has no second difference, and mirrored ghosts put it through the walls."""
    along, n = 1 - axis, shape[axis]
    sides = ("no-slip", moving_wall(axis, len(shape)))
    found = settled(Run(n), shape, axis, sides=sides, force=0.0)
    assert np.abs(found[along] - WALL_SPEED * middles(n, axis, len(shape)) / n).max() < 5e-6  # measured 3e-7


# At rest


def rest(simulation, steps=100):
    """Largest velocity component after so many steps, m/s."""
    for _ in range(steps):
        simulation.step()
    return simulation.check()


BALL = {"shape": "sphere", "center": [0.52, 0.47, 0.49], "radius": 0.23}


def ball(dim):
    """A solid ball off the middle."""
    return {**BALL, "center": BALL["center"][:dim]}


@pytest.mark.parametrize("viscosity", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize(
    ("top", "faces"), [("no-slip", None), ("no-slip", "fractions"), ("no-slip", "voxels"), ("open", "fractions")]
)
def test_a_heavy_fluid_stays_at_rest(dim, top, faces, viscosity):
    """Gravity on everything alike is the gradient of a pressure, and the pressure takes all of it.

    However much friction there is: steps that are long for it made what is rounded of as much grow to 2 m/s.
    """
    shape = (16, 20, 14)[:dim]
    boundaries = [["no-slip", "no-slip"] for _ in shape]
    boundaries[1][1] = top
    force = [1.5, -9.81, 0.7][:dim] if top == "no-slip" else [0.0, -9.81, 0.0][:dim]
    solver = {"tolerance": 1e-6, "faces": faces or "fractions"}
    config = scene(shape, 0.05, {"body_force": force, "viscosity": viscosity}, solver, boundaries=boundaries)
    simulation = Simulation(config.with_values({"solids": [ball(dim)] if faces else []}))
    assert rest(simulation) < 1e-5  # measured 4e-7 to 9e-7 without viscosity


@pytest.mark.parametrize("solid", [False, True], ids=["empty", "ball"])
def test_layers_that_are_warmer_above_stay_at_rest(dim, solid):
    shape = (16, 20, 14)[:dim]
    warm = {"shape": "sphere", "center": [0.4, 0.5, 0.3][:dim], "radius": 0.1, "temperature": 1.0, "begin": 1e5}
    config = scene(shape, 0.05, {"expansion": 1 / 300}, {"tolerance": 1e-6}, [warm])
    simulation = Simulation(config.with_values({"solids": [ball(dim)] if solid else []}))
    set_state(simulation, temperature=np.broadcast_to(60 * middles(20, 1, dim) / 20, shape))
    assert rest(simulation) < 1e-5  # measured 4e-8 and 8e-8 without the ball


# From side to side


@pytest.mark.parametrize("walls", ["no-slip", "free-slip"])
def test_what_flows_in_flows_through_every_section(dim, walls):
    shape = (24, 12, 10)[:dim]
    enters = {"kind": "inflow", "velocity": [0.7, 0.0, 0.0][:dim]}
    boundaries = [[enters, "open"], *([[walls, walls]] * (dim - 1))]
    config = scene(shape, 0.1, {"viscosity": 0.01}, {"tolerance": 1e-5}, boundaries=boundaries)
    simulation = Simulation(config.with_values({"solids": [{**ball(dim), "center": [0.8, 0.6, 0.5][:dim]}]}))
    for _ in range(40):
        simulation.step()
    grid = simulation.grid
    open = grid.to_numpy_padded(simulation.solids.open)[(0, slice(1, None), *(slice(1, -1),) * (dim - 1))]
    flux = (open * faces_of(simulation)[0]).reshape(shape[0] + 1, -1).mean(axis=1)
    assert np.abs(flux / 0.7 - 1).max() < 1e-5  # measured 1.4e-7


@pytest.mark.validation
@pytest.mark.parametrize(("advection", "allowed"), [("maccormack", 0.015), ("semi-lagrangian", 0.02)])
def test_the_lid_driven_cavity_at_re_100(advection, allowed):
    outcome = CASES["cavity-100"].run(changes={"solver.advection": advection})
    # Measured with MacCormack 0.004 in u and 0.005 in v, with semi-Lagrangian 0.012 and 0.008.
    assert max(row.found for row in outcome.run.rows[:2]) < allowed
