"""A step of advection-reflection: by way of the middle of the step, on every kind of side, beside solids, with every term."""

import numpy as np
import pytest
from scenes_for_tests import everything, plume, scene, set_state

from taichi_fluid.scene import Scene
from taichi_fluid.simulation import Force, Simulation

REFLECTION = {"scheme": "reflection"}


def faces(simulation):
    return simulation.grid.face_velocity_to_numpy(simulation.state.velocity.current)


@pytest.mark.parametrize(("viscosity", "walls"), [(1e-3, "free-slip"), (1.0, "free-slip"), (1.0, "no-slip")])
@pytest.mark.parametrize("dim", [2, 3])
def test_a_heavy_fluid_at_rest_stays_at_rest_and_its_pressure_is_hydrostatic(dim, viscosity, walls):
    """Half of the weight acts at either end of a step, and the pressure of the middle holds all of it.

    At 1 m²/s less than half, as friction does; what that pressure lacked rubbed at walls: it was up to 1.0 and 2.6 % less (2D, 3D), and
    between walls that hold up to 1.4 and 4.5 %, where 8e-4 and 2.4e-3 m/s were left.
    """
    force = [0.0, -9.81, 0.0][:dim]
    fluid = {"body_force": force, "viscosity": viscosity}
    simulation = Simulation(
        scene((6, 12, 6)[:dim], 0.1, fluid, REFLECTION | {"dt": 0.02, "tolerance": 1e-6}, boundaries=walls)
    )
    for _ in range(10):
        simulation.step()
    # Each solve leaves 1e-6 of 0.1 m/s.
    assert max(np.abs(u).max() for u in faces(simulation)) < 2e-5
    pressure = np.moveaxis(simulation.to_numpy("pressure").astype(np.float64), 1, 0)
    assert np.diff(pressure, axis=0) == pytest.approx(-1.2 * 9.81 * 0.1, rel=1e-3)


@pytest.mark.parametrize("viscosity", [1e-3, 0.1, 10.0])
def test_friction_and_a_force_balance_as_they_do_in_split_steps(viscosity):
    """A channel flow that is exact for the discrete operators does not move, whatever part of friction is explicit."""
    n, force = 16, 2.0
    boundaries = [("periodic", "periodic"), ("no-slip", "no-slip")]
    fluid = {"viscosity": viscosity, "body_force": [force, 0.0]}
    simulation = Simulation(
        scene((4, n), 1 / n, fluid, REFLECTION | {"dt": 0.05, "tolerance": 1e-6}, boundaries=boundaries)
    )
    y = (np.arange(n) + 0.5) / n
    exact = force / (2 * viscosity) * (y * (1 - y) + 0.25 / n**2)
    set_state(simulation, [np.tile(exact, (5, 1)), np.zeros((4, n + 1))])
    for _ in range(5):
        simulation.step()
    # Relative to what one step of the force does; diffusion is solved to 1e-5 of its change.
    assert faces(simulation)[0] == pytest.approx(np.tile(exact, (5, 1)), rel=2e-5, abs=2e-5 * force * 0.05)


@pytest.mark.parametrize("long", [0.4, 4.0, 40.0])
@pytest.mark.parametrize("holds", ["a ball", "a wall"])
def test_nothing_gets_hotter_than_what_it_is_warmed_by(holds, long):
    """Not in the first steps either, all of whose heat is new; in steps ``long`` times dx² / D the air got up to 1.7 times as hot."""
    cells = 32
    ball = {"shape": "sphere", "center": [0.5, 0.4], "radius": 0.15, "temperature": 20.0}
    wall = {"kind": "no-slip", "temperature": 20.0}
    tables = {
        "domain": {"size": [1.0, 1.0], "resolution": cells, "boundaries": [["no-slip"] * 2, [wall, "no-slip"]]},
        "fluid": {"heat_diffusion": 0.1, "gravity": [0.0, 0.0]},
    }
    if holds == "a ball":
        tables["solids"] = [ball]
        tables["domain"]["boundaries"] = "no-slip"
    simulation = Simulation(Scene.from_dict({"name": "warm", "sources": [], **tables}))
    for _ in range(6):
        simulation.step(long / cells**2 / 0.1)
        # What is solved for is known to 1e-5 of what it changes by.
        assert simulation.to_numpy("temperature").max() < 20.0 * (1 + 1e-4)


@pytest.mark.vulkan_too(dim=2)
@pytest.mark.parametrize("dim", [2, 3])
def test_every_term_beside_moving_solids_and_an_open_side(dim):
    simulation = Simulation(everything(dim).with_values({"solver.scheme": "reflection"}))
    for _ in range(4):
        step = simulation.step()
    assert np.isfinite(simulation.check())
    assert step.pressure.relative_residual < 1e-4
    # What expands is prescribed; nothing else is left but the tolerance.
    assert simulation.divergence().max < 0.02


@pytest.mark.parametrize("dim", [2, 3])
def test_vortices_that_a_stream_carries_are_where_it_has_brought_them(dim):
    """Each half of a step along the velocity at its beginning lags by a quarter of it, and leaves an error of 0.15 here."""
    n, dt = 32, 1 / 32
    x, y = 2 * np.pi * np.arange(n + 1) / n, 2 * np.pi * (np.arange(n) + 0.5) / n
    u = np.sin(x)[:, None] * np.cos(y)[None, :]
    begun = [1.0 + u, 1.0 - u.T]
    if dim == 3:
        begun = [np.repeat(each[..., None], 4, axis=2) for each in begun] + [np.zeros((n, n, 5))]
    boundaries = [("periodic", "periodic")] * dim
    simulation = Simulation(scene((n, n, 4)[:dim], 1 / n, solver=REFLECTION | {"dt": dt}, boundaries=boundaries))
    set_state(simulation, begun)
    for _ in range(n):  # once through the box
        simulation.step()
    # 0.038, which the cells leave: as much with short steps, a quarter of it with cells and steps half as long.
    assert np.abs(np.array(faces(simulation)[0]) - begun[0]).mean() < 0.06


@pytest.mark.parametrize("dim", [2, 3])
def test_what_is_carried_goes_as_far_as_a_flow_that_gets_faster(dim):
    """A t² / 2: along the velocity of the middle of each step, not along one of a quarter, by which it lagged 0.0125 m here."""
    n, dt, duration, force = 64, 0.05, 1.0, 1.0
    shape = (n, 4, 4)[:dim]
    fluid = {"body_force": [force, 0.0, 0.0][:dim]}
    boundaries = [("periodic", "periodic")] * dim
    simulation = Simulation(scene(shape, 1 / n, fluid, REFLECTION | {"dt": dt}, boundaries=boundaries))
    simulation.set(smoke=lambda x, *_: 1 + np.sin(2 * np.pi * x))
    first = np.fft.fft(simulation.to_numpy("smoke").mean(axis=tuple(range(1, dim))))[1]
    simulation.advance(duration)
    last = np.fft.fft(simulation.to_numpy("smoke").mean(axis=tuple(range(1, dim))))[1]
    gone = -np.angle(last / first) / (2 * np.pi)
    # Less 0.0005, which is dispersion: four times as much with half of the cells.
    assert abs(gone) == pytest.approx(0.5 * force * duration**2, abs=2e-3)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_quiet_plume_rises_as_far_as_in_split_steps(dim):
    """Both schemes come to the same flow when steps are short."""
    heights = []
    for scheme in ("splitting", "reflection"):
        simulation = Simulation(plume(dim, 16, scheme=scheme, dt=0.005))
        simulation.advance(0.4)
        smoke = simulation.to_numpy("smoke").astype(np.float64)
        y = simulation.grid.cell_centres()[1]
        heights.append((smoke * y).sum() / smoke.sum())
    assert heights[0] == pytest.approx(heights[1], rel=0.02)
    assert heights[0] > 0.25  # it does rise: the source is at 0.25


def test_the_scheme_may_change_while_a_flow_runs():
    simulation = Simulation(plume(2, 16))
    for scheme in ("splitting", "reflection", "splitting"):
        simulation.scene = simulation.scene.with_values({"solver.scheme": scheme})
        simulation.step()
    assert np.isfinite(simulation.check())


def test_a_force_acts_in_halves_at_both_ends_or_as_a_whole_at_the_end():
    simulation = Simulation(scene((4, 4), solver=REFLECTION | {"dt": 0.1}))
    seen = []
    simulation.forces[:] = [
        Force("mine", lambda simulation, dt: seen.append(("mine", dt))),
        Force("late", lambda simulation, dt: seen.append(("late", dt)), halves=False),
    ]
    simulation.step()
    assert seen == [("mine", 0.05), ("mine", 0.05), ("late", 0.1)]


def test_a_stream_that_swells_has_the_pressure_that_drives_it():
    """-rho dU/dt along it, in both halves of a step; with an inflow as fast as at the end all through the second had none."""
    cells, omega, dt = 16, 2 * np.pi, 0.01
    sides = [({"kind": "inflow", "velocity": ["2 + cos(2*pi*t)", 0.0]}, "open"), ("free-slip", "free-slip")]
    config = scene((cells, 4), 1 / cells, {"rho": 3.0}, REFLECTION | {"dt": dt, "tolerance": 1e-6}, boundaries=sides)
    simulation = Simulation(config.with_values({"initial.velocity": [3.0, 0.0]}))
    found, exact = [], []
    for _ in range(40):
        simulation.step()
        both, second = simulation.to_numpy("pressure"), simulation.grid.to_numpy(simulation.state.pressure)
        for pressure, late in ((both, dt / 2), (second, dt / 4)):
            found.append((float(pressure[12, 2]) - float(pressure[4, 2])) / (8 / cells))
            exact.append(3.0 * omega * np.sin(omega * (simulation.time - late)))
    assert found == pytest.approx(exact, abs=0.01 * 3.0 * omega)


def test_a_ball_that_swings_is_pressed_alike_at_both_ends_of_a_step(dim):
    """Its pressure is that of split steps, whose fluid goes from one speed of the ball to the next all at once."""
    shape, pressures = (16,) * dim, []
    ball = {"shape": "sphere", "center": [0.5] * dim, "radius": 0.2, "slip": True}
    swing = {"swing": [0.01, 0.0, 0.0][:dim], "swing_period": 1.0}
    for scheme in ("splitting", "reflection"):
        config = scene(shape, 1 / 16, {}, {"scheme": scheme, "dt": 0.01, "tolerance": 1e-6})
        simulation = Simulation(config.with_values({"solids": [ball | swing]}))
        for _ in range(25):  # where it is farthest out
            simulation.step()
        pressures.append(simulation.grid.to_numpy(simulation.state.pressure))  # of the last projection
    split, reflected = pressures
    assert np.abs(reflected - split).max() < 0.04 * np.ptp(split)


def test_a_plate_that_swings_drags_the_fluid_as_stokes_has_it():
    """As fast as at the end of each step all through, it left an error of 0.013 with these steps."""
    cells, top, viscosity, dt, omega = 64, 0.1, 0.01, 0.02, 2 * np.pi
    depth = np.sqrt(2 * viscosity / omega)
    sides = [("periodic", "periodic"), ("no-slip", "free-slip")]
    plate = {
        "shape": "box",
        "center": [0.0, 0.0],
        "size": [9.0, 2 * top],
        "swing_period": 1.0,
        "swing": [1 / omega, 0.0],
    }
    begun = f"exp(-max(y - {top}, 0) / {depth}) * cos(max(y - {top}, 0) / {depth})"
    config = scene((4, cells), 0.5 / cells, {"viscosity": viscosity}, REFLECTION | {"dt": dt}, boundaries=sides)
    simulation = Simulation(config.with_values({"solids": [plate], "initial.velocity": [begun, 0.0]}))
    for _ in range(50):
        simulation.step()
    above = (np.arange(cells) + 0.5) * 0.5 / cells - top
    exact = np.exp(-above / depth) * np.cos(omega * simulation.time - above / depth)
    error = faces(simulation)[0] - exact
    assert np.abs(error[:, above > 0.5 / cells]).max() < 0.009


@pytest.mark.parametrize("solids", [(), ({"shape": "sphere", "center": [0.5, 0.45], "radius": 0.15},)])
def test_what_creeps_comes_to_a_state_that_its_steps_have_no_part_in(solids):
    """A cavity at Re 1, in steps in which nu dt is 11 dx²: carried with the flow, what friction and the pressure give in a half of
    one made it 1.3 and 1.5 % of its mean other than in short steps. What is left, 0.3 and 0.4 %, is what they change on the way.
    """
    boundaries = [("no-slip",) * 2, ("no-slip", {"kind": "moving-wall", "velocity": [1.0, 0.0]})]
    found = []
    for dt, steps in ((1 / 24, 48), (1 / 384, 256)):
        fluid = {"viscosity": 1.0}
        cavity = scene((16, 16), 1 / 16, fluid, REFLECTION | {"dt": dt}, boundaries=boundaries)
        simulation = Simulation(cavity.with_values({"solids": list(solids)}))
        for _ in range(steps):
            simulation.step()
        found.append(np.concatenate([u.ravel() for u in faces(simulation)]))
    coarse, fine = found
    assert np.abs(coarse - fine).mean() < 0.006 * np.abs(fine).mean()


@pytest.mark.parametrize("steps", [1.5, 2.5, 3.9, 4.1])
def test_a_flow_that_force_and_friction_hold_carries_as_fast_as_it_is(steps):
    """In steps that are a little long for friction its first part is less than half; forces had half, and smoke went 1.03 times as fast.

    A cloud in a channel spreads across it and goes with the mean (Taylor 1953).
    """
    cells, length = 8, 8
    dt = steps / cells**2
    domain = {"size": [length, 1.0], "resolution": cells * length, "boundaries": [["periodic"] * 2, ["no-slip"] * 2]}
    fluid = {"viscosity": 1.0, "smoke_diffusion": 0.05, "gravity": [0.0, 0.0], "body_force": [12.0, 0.0]}
    initial = {"velocity": ["6*y*(1-y)", 0.0], "smoke": "1 + 0.5*cos(2*pi*x/8)"}
    tables = {"domain": domain, "fluid": fluid, "initial": initial}
    simulation = Simulation(Scene.from_dict({"name": "channel", "sources": [], **tables}))
    wave = np.exp(-2j * np.pi * (np.arange(cells * length) + 0.5) / (cells * length))
    phases = []
    for _ in range(2):
        for _ in range(round(2.4 / dt)):
            simulation.step(dt)
        phases.append((simulation.time, np.angle((simulation.to_numpy("smoke").mean(axis=1) * wave).sum())))
    gone = (phases[0][1] - phases[1][1]) % (2 * np.pi) / (2 * np.pi) * length
    speed = gone / (phases[1][0] - phases[0][0])
    # 1.0019 to 1.0020 at any of these; eight cells make the profile.
    assert speed / simulation.to_numpy("velocity")[0].mean() == pytest.approx(1.002, abs=0.001)
