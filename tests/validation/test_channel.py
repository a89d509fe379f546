"""Flows between parallel walls whose discrete solution is known exactly, fluids at rest, and the lid-driven cavity."""

import numpy as np
import pytest
from scenes_for_tests import scene, set_state

from taichi_fluid.simulation import Simulation

FORCE, VISCOSITY = 2.0, 0.5

LONG_THEN_SHORT = ((0.5, 5), (0.1, 12), (0.03, 25))
"""Steps in s and how many: rounding and the tolerance of diffusion leave an error that grows with the step."""


def velocity_of(simulation):
    """Both walls included, in float64."""
    return [u.astype(np.float64) for u in simulation.grid.face_velocity_to_numpy(simulation.state.velocity.current)]


def settle(simulation, schedule=LONG_THEN_SHORT):
    """Let a flow that depends on one coordinate only become steady.

    Advection and projection leave it alone, and implicit diffusion divides what is missing by 1 + nu dt (pi / H)² or
    more in each step, so that long steps get there soon.
    """
    for dt, count in schedule:
        for _ in range(count):
            simulation.step(dt)
    return velocity_of(simulation)


def channel(shape, axis, third="periodic", sides=("no-slip", "no-slip"), force=FORCE, solids=(), faces="fractions"):
    """A channel of which ``axis`` points from wall to wall, 1 m unless ``solids`` narrow it; and the axis along it."""
    along = 1 - axis
    boundaries = [[third, third] for _ in shape]
    boundaries[along], boundaries[axis] = ["periodic", "periodic"], list(sides)
    fluid = {"viscosity": VISCOSITY, "body_force": [force * (a == along) for a in range(len(shape))]}
    dx = 1.0 / (shape[axis] - 2 * len(solids))
    config = scene(shape, dx, fluid, {"tolerance": 1e-6, "faces": faces}, boundaries=boundaries)
    return config.with_values({"solids": list(solids)}), along


def middles(n, axis, dim):
    """0.5, 1.5, … along ``axis``, shaped to go with a quantity."""
    return (np.arange(n) + 0.5).reshape([-1 if a == axis else 1 for a in range(dim)])


CHANNELS = [((4, 5), 1, "periodic"), ((32, 3), 0, "periodic"), ((4, 64), 1, "periodic"),
            ((5, 9, 3), 1, "periodic"), ((16, 4, 5), 0, "free-slip")]  # fmt: skip


@pytest.mark.parametrize(("shape", "axis", "third"), CHANNELS)
def test_plane_poiseuille_is_off_by_the_same_known_amount_everywhere(shape, axis, third):
    """Second differences of a parabola are exact; a mirrored ghost takes its 0 for what is -G dx²/(8 nu) at the wall."""
    config, along = channel(shape, axis, third)
    found, n = settle(Simulation(config)), shape[axis]
    y = middles(n, axis, len(shape)) / n
    parabola = FORCE / (2 * VISCOSITY) * y * (1 - y)
    offset = FORCE / n**2 / (8 * VISCOSITY)
    # Rounding, and the tolerance of diffusion. Measured 3e-7 to 8e-6, of a velocity of up to 0.5 m/s.
    assert np.abs(found[along] - parabola - offset).max() < 2e-5
    for other in set(range(len(shape))) - {along}:
        assert np.abs(found[other]).max() < 1e-6


@pytest.mark.parametrize("faces", ["fractions", "voxels"])
@pytest.mark.parametrize("shape", [(3, 34), (4, 10, 3)])
def test_poiseuille_between_walls_of_solids_is_that_between_sides_of_the_box(shape, faces):
    """A solid holds the fluid at its surface, half a cell from the first velocity along it."""
    n, dim = shape[1], len(shape)
    dx = 1.0 / (n - 4)
    walls = [{"shape": "box", "size": [9.0, 2 * dx, 9.0][:dim], "center": [0.5, y * dx, 0.5][:dim]} for y in (1, n - 1)]
    config, along = channel(shape, 1, solids=walls, faces=faces)
    found = settle(Simulation(config))[along][:, 2:-2]
    y = middles(n - 4, 1, dim) * dx
    exact = FORCE / (2 * VISCOSITY) * y * (1 - y)
    # Solids are larger by 1e-4 of a cell than they say.
    assert np.abs(found - exact - FORCE * dx**2 / (8 * VISCOSITY)).max() < 1e-4


@pytest.mark.parametrize(("shape", "axis"), [((4, 7), 1), ((33, 3), 0), ((3, 12, 4), 1)])
def test_couette_flow_is_exact(shape, axis):
    """A straight line has no second difference, and mirrored ghosts put it through the walls."""
    along = 1 - axis
    moving = {"kind": "moving-wall", "velocity": [0.8 * (a == along) for a in range(len(shape))]}
    config, _ = channel(shape, axis, sides=("no-slip", moving), force=0.0)
    found, n = settle(Simulation(config)), shape[axis]
    assert np.abs(found[along] - 0.8 * middles(n, axis, len(shape)) / n).max() < 5e-6  # measured 3e-7


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


@pytest.mark.parametrize("viscosity", [0.0, 1e-3])
@pytest.mark.parametrize(
    ("top", "faces"), [("no-slip", None), ("no-slip", "fractions"), ("no-slip", "voxels"), ("open", "fractions")]
)
def test_a_heavy_fluid_stays_at_rest(dim, top, faces, viscosity):
    """Gravity on everything alike is the gradient of a pressure, and the pressure takes all of it."""
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
    flux = (open * velocity_of(simulation)[0]).reshape(shape[0] + 1, -1).mean(axis=1)
    assert np.abs(flux / 0.7 - 1).max() < 1e-5  # measured 1.4e-7


GHIA_U = [
    (0.9766, 0.84123), (0.9688, 0.78871), (0.9609, 0.73722), (0.9531, 0.68717), (0.8516, 0.23151),
    (0.7344, 0.00332), (0.6172, -0.13641), (0.5, -0.20581), (0.4531, -0.2109), (0.2813, -0.15662),
    (0.1719, -0.1015), (0.1016, -0.06434), (0.0703, -0.04775), (0.0625, -0.04192), (0.0547, -0.03717),
]  # fmt: skip
"""(y, u) on the vertical centreline at Re = 100. (Ghia, Ghia and Shin 1982, table I.)"""
GHIA_V = [
    (0.9688, -0.05906), (0.9609, -0.07391), (0.9531, -0.08864), (0.9453, -0.10313), (0.9063, -0.16914),
    (0.8594, -0.22445), (0.8047, -0.24533), (0.5, 0.05454), (0.2344, 0.17527), (0.2266, 0.17507),
    (0.1563, 0.16077), (0.0938, 0.12317), (0.0781, 0.1089), (0.0703, 0.10091), (0.0625, 0.09233),
]  # fmt: skip
"""(x, v) on the horizontal one, table II."""


@pytest.mark.validation
@pytest.mark.parametrize(("advection", "allowed"), [("maccormack", 0.015), ("semi-lagrangian", 0.02)])
def test_the_lid_driven_cavity_at_re_100(advection, allowed):
    n = 64
    lid = {"kind": "moving-wall", "velocity": [1.0, 0.0]}
    config = scene(
        (n, n), 1 / n, {"viscosity": 0.01}, {"cfl": 1.4, "tolerance": 1e-5, "advection": advection},
        boundaries=[["no-slip", "no-slip"], ["no-slip", lid]],
    )  # fmt: skip
    simulation = Simulation(config)
    simulation.advance(12.0)
    u, v = velocity_of(simulation)
    (y, wanted_u), (x, wanted_v) = np.transpose(GHIA_U), np.transpose(GHIA_V)
    between, ends = (np.arange(n) + 0.5) / n, lambda values, upper: [0.0, *values, upper]
    found_u = np.interp(y, ends(between, 1.0), ends(u[n // 2], 1.0))
    found_v = np.interp(x, ends(between, 1.0), ends(v[:, n // 2], 0.0))
    # Measured with MacCormack 0.005 in u and 0.005 in v, with semi-Lagrangian 0.012 and 0.008.
    assert np.abs(found_u - wanted_u).max() < allowed
    assert np.abs(found_v - wanted_v).max() < allowed
