"""What acts at the surface of a liquid and within it: surface tension and viscosity."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from test_friction import balls, constants, error

import taichi_fluid as tf
from taichi_fluid.boundaries.sides import Boundary
from taichi_fluid.boundaries.solids import Solids
from taichi_fluid.boundaries.walls import Walls
from taichi_fluid.grid import Grid, Scratch
from taichi_fluid.liquid.level_set import LevelSet
from taichi_fluid.liquid.particles import FULL
from taichi_fluid.liquid.surface_tension import REACH, SURE, SurfaceTension
from taichi_fluid.liquid.viscosity import Viscosity
from taichi_fluid.pressure.residual import Status
from taichi_fluid.scene import preset
from taichi_fluid.validation import Run
from taichi_fluid.validation.ghost_fluid import RHO
from taichi_fluid.validation.stress import (
    RADIUS,
    TENSION,
    begin_as_drop,
    column_scene,
    drop_scene,
    elongation,
    oscillating,
    rayleigh,
    spread,
)
from taichi_fluid.validation.water import fastest, filled_part, frequency_of, water


def drop(dim, resolution, **liquid):
    """A round drop in the middle of a box without gravity."""
    simulation = tf.Simulation(drop_scene(dim, resolution, **liquid))
    begin_as_drop(simulation)
    return simulation


def set_going(simulation, positions, velocities):
    """Let particles be at positions, m, with velocities, m/s."""
    liquid = simulation.liquid
    liquid.particles.clear()
    liquid.particles.add(positions / simulation.grid.dx, velocities)
    liquid.find_surface()
    liquid.begin(simulation.state.velocity.current)
    simulation.fill()


DROPS = (0.3, 0.45), (0.7, 0.55)
"""Where the middles of two drops are that meet."""


def energy_and_surface(simulation):
    """Kinetic energy of the particles, and the tension times the surface, J (2D: J/m)."""
    grid, liquid = simulation.grid, simulation.liquid
    squares = (liquid.particles.to_numpy()["velocity"] ** 2).sum()
    mass = RHO * grid.cell_volume / FULL[grid.dim]
    distance = simulation.to_numpy("level set") / grid.dx
    slope = np.sqrt(sum(part**2 for part in np.gradient(distance)))
    surface = (np.maximum(1 - np.abs(distance), 0) * slope).sum() * grid.cell_volume / grid.dx
    return 0.5 * mass * squares + TENSION * surface


@pytest.mark.parametrize(
    ("dim", "resolution", "transfer"),
    [
        (2, 32, "apic"),
        # ``validate drop`` has the others.
        pytest.param(2, 64, "flip", marks=pytest.mark.slow),
    ],
)
def test_a_drop_oscillates_as_rayleigh_says(dim, resolution, transfer):
    """omega² = 6 sigma / (rho R³) in 2D, 8 in 3D. At 8 cells of radius it is 0.3 to 2 % less, by where in a cell its
    middle lies; at 16 half a percent.
    """
    simulation, times, values = oscillating(Run(resolution), dim, resolution, transfer)
    assert abs(frequency_of(times, values) * 2 * np.pi / rayleigh(dim) - 1) < (0.03 if resolution == 32 else 0.01)
    # Its volume stays, and nothing drives it on, but that in two periods it grows: on 32 cells by up to 0.055, on 64 by 0.01, and by FLIP by 0.050.
    assert abs(simulation.liquid.lacking) < 0.01 * simulation.liquid.target
    most = 1.08 if resolution == 32 else 1.06
    assert max(map(abs, values[len(values) // 2 :])) < most * max(map(abs, values[:5]))


@pytest.mark.vulkan_too(dim=2)
@pytest.mark.parametrize(("dim", "resolution"), [(2, 32), (2, 128), (3, 32)])
def test_the_curvature_is_that_of_the_surface(dim, resolution):
    """Of a drop whose second mode is a fiftieth of its radius, of 8 and 32 cells, from distances known to a cell about.

    Of distances cut off at a cell it was off by 0.04, 0.11 and 0.016 from face to face, and by 0.017 in the mean; now by 0.02, and
    by 0.007 to 0.014 in the mean, as the eikonal equation is solved to first order.
    """
    grid = Grid((resolution,) * dim, 1 / resolution)
    scratch = Scratch(grid)
    level_set, tension, phi = LevelSet(grid, scratch), SurfaceTension(grid, scratch), grid.array()
    x, *others = np.broadcast_arrays(*(c - 0.5 - 0.013 * grid.dx for c in grid.cell_centres()))
    y = np.sqrt(sum(c**2 for c in others))
    angle = np.linspace(0, np.pi, 40_001)
    cosine = np.cos(angle)
    radius = RADIUS * (1 + 0.02 * (2 * cosine**2 - 1 if dim == 2 else 1.5 * cosine**2 - 0.5))
    from_surface, _ = cKDTree(np.stack([radius * cosine, radius * np.sin(angle)], 1)).query(np.stack([x, y], -1))
    away = np.hypot(x, y)
    inside = away < np.interp(np.arctan2(y, x), angle, radius)
    distance = np.where(inside, -from_surface, from_surface)
    grid.from_numpy(phi, np.clip(distance, -grid.dx, 1.5 * grid.dx))
    tension.find(level_set.continued(phi, REACH, SURE))
    curvature, off = grid.to_numpy(tension.curvature), []
    # To first order in the amplitude: (m² - 1) of it in 2D, (l - 1) (l + 2) in 3D.
    mode = 0.02 * (3 * (2 * (x / away) ** 2 - 1) if dim == 2 else 4 * (1.5 * (x / away) ** 2 - 0.5))
    exact = (dim - 1 + mode) / RADIUS
    for axis in range(dim):
        lower, upper = (slice(None),) * axis + (slice(None, -1),), (slice(None),) * axis + (slice(1, None),)
        cut = (distance[lower] < 0) != (distance[upper] < 0)
        part = (distance[lower] / (distance[lower] - distance[upper]))[cut]
        found, wanted = ((1 - part) * c[lower][cut] + part * c[upper][cut] for c in (curvature, exact))
        off.append((found - wanted) * RADIUS / (dim - 1))
    off = np.concatenate(off)
    assert abs(off.mean()) < 0.018
    assert off.std() < 0.025


@pytest.mark.parametrize("dim", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_drops_that_meet_have_no_more_energy(dim):
    """Of motion and of the surface together, which they lose as waves break.

    With a curvature of twice as wide a smoothing, to which the ripples and necks that are left are nothing, they had 1.06 of it in the
    end in 2D and 2.1 in 3D, though a drop that swings was calmer. In 3D on 32 cells what has come loose, and is too small to have a
    curvature that is right, drives itself about: 1.03 in the end.
    """
    simulation = tf.Simulation(drop_scene(dim, 48 if dim == 2 else 32))
    radius = 0.15
    x, *others = np.broadcast_arrays(*simulation.grid.cell_centres())
    to = (np.sqrt((x - a) ** 2 + (others[0] - b) ** 2 + sum((c - 0.5) ** 2 for c in others[1:])) for a, b in DROPS)
    simulation.set(level_set=np.minimum(*to) - radius)
    parts = simulation.liquid.particles.to_numpy()["position"]
    velocity = np.zeros_like(parts)
    velocity[:, 0] = np.where(parts[:, 0] < 0.5, 1, -1) * np.sqrt(TENSION / (RHO * radius))
    set_going(simulation, parts, velocity)
    energies = [energy_and_surface(simulation)]
    for _ in range(50):
        for _ in range(30 if dim == 2 else 12):
            simulation.step()
        energies.append(energy_and_surface(simulation))
    assert max(energies[1:]) < (1.0 if dim == 2 else 1.08) * energies[0]


@pytest.mark.vulkan_too(dim=2)
@pytest.mark.parametrize("dim", [2, 3])
def test_a_round_drop_stays_and_has_laplaces_pressure(dim):
    """Sigma (dim - 1) / R within; what the roughness of particles drives is a few hundredths of sqrt(sigma / (rho R))."""
    simulation = drop(dim, 32 if dim == 2 else 24)
    for _ in range(30):
        simulation.step()
    inside = simulation.to_numpy("level set") <= -simulation.grid.dx
    pressure = simulation.to_numpy("pressure")[inside].mean()
    assert pressure == pytest.approx(TENSION * (dim - 1) / RADIUS, rel=0.05)
    speeds = simulation.liquid.particles.to_numpy()["velocity"]
    assert np.sqrt((speeds**2).mean()) < 0.06 * np.sqrt(TENSION / (RHO * RADIUS))
    assert abs(elongation(simulation)) < 0.01


@pytest.mark.parametrize(("dim", "offset"), [(2, 0.0), (2, 0.3), (3, 0.3)])
def test_half_a_drop_on_a_plate_stays(dim, offset):
    """Wherever in a cell the plate ends. In 2D it went about at 0.17 of sqrt(sigma / (rho R)), with 64 cells at 0.3, and moved by cells; in 3D at 0.2."""
    cells, radius = (32, 24)[dim - 2], 0.25
    top = 0.25 + offset / cells
    plate = {"shape": "box", "center": [0.5, 0.5 * top, 0.5][:dim], "size": [1.4, top, 1.4][:dim]}
    tables = {"fluid": {"gravity": [0.0] * dim, "rho": RHO}, "liquid": {"surface_tension": TENSION}}
    simulation = tf.Simulation(water([1.0] * dim, cells, solids=[plate], **tables))
    x, y, *rest = simulation.grid.cell_centres()
    square = (x - 0.5) ** 2 + (y - top) ** 2 + sum((z - 0.5) ** 2 for z in rest)
    simulation.set(level_set=np.sqrt(square) - radius)
    before = simulation.liquid.particles.to_numpy()["position"].mean(axis=0)
    speeds = []
    while simulation.time < 0.5 * np.sqrt(RHO * radius**3 / TENSION):
        simulation.step()
        speeds.append(np.sqrt((simulation.liquid.particles.to_numpy()["velocity"] ** 2).sum(axis=1).mean()))
    # On a side of the box, 0.004 to 0.018 in 2D and 0.036 in 3D.
    assert max(speeds) < (0.02, 0.05)[dim - 2] * np.sqrt(TENSION / (RHO * radius))
    assert np.abs(simulation.liquid.particles.to_numpy()["position"].mean(axis=0) - before).max() < 0.1 / cells


@pytest.mark.parametrize(("dim", "shape"), [(2, "box"), (2, "sphere"), (3, "sphere")])
def test_a_flat_surface_stays_flat_where_it_meets_a_solid_at_a_right_angle(dim, shape):
    """Without gravity: rounding alone is suction there, and what that opened tension closed again, at 0.28 to 0.58 m/s and more."""
    cells, tension = {2: 32, 3: 20}[dim], 20.0
    middle, slab = [0.5] * dim, ([0.0] * dim, [1.0, 0.5, 1.0][:dim])
    solid = {"center": middle, "shape": shape} | (
        {"radius": 0.15} if shape == "sphere" else {"size": [0.3, 1.2, 0.3][:dim]}
    )
    tables = {"liquid": {"surface_tension": tension}, "fluid": {"gravity": [0.0] * dim}, "solids": [solid]}
    simulation = tf.Simulation(water([1.0] * dim, cells, [slab], **tables))
    for _ in range(4):
        simulation.advance(0.1)
        # Of how fast waves as long as the solid is wide go: 0.0149 at a disk, 0.007 at a ball, nothing at a box.
        assert fastest(simulation) < 0.02 * (tension / (1000.0 * 0.3)) ** 0.5


def test_a_wall_may_move_as_an_expression_says():
    """It could not be built."""
    velocities = []
    for velocity in ("0.5 + 0*x + 0*t", 0.5):
        lid = {"kind": "moving-wall", "velocity": [velocity, 0.0]}
        boundaries = [["periodic"] * 2, [lid, "free-slip"]]
        tables = {"domain": {"boundaries": boundaries}, "fluid": {"viscosity": 0.1}}
        simulation = tf.Simulation(water([0.5, 0.75], 24, [([0, 0], [0.5, 0.3])], **tables))
        simulation.advance(0.2)
        velocities.append(simulation.liquid.particles.to_numpy()["velocity"])
    assert velocities[1][:, 0].mean() > 0.2
    assert velocities[0] == pytest.approx(velocities[1], abs=1e-5)


def test_a_step_is_no_longer_than_waves_of_surface_tension_let_it_be():
    simulation = drop(2, 32)
    assert simulation.stable_dt(0.0) == pytest.approx(np.sqrt(RHO / 32**3 / (4 * np.pi * TENSION)))


@pytest.mark.parametrize("viscosity", [0.05, 1.0])
def test_a_column_spreads_as_lubrication_theory_says(viscosity):
    """X = 1.411 (g q³ t / (3 nu))^(1/5) of Huppert (1982), once it is flat, for thin honey and thick.

    It is 3 to 5 % ahead of that at a depth of 4 to 9 cells, at twice the resolution as well.
    """
    simulation = tf.Simulation(column_scene(96, viscosity))
    simulation.advance(4.0)
    assert spread(simulation, viscosity) == pytest.approx(1.03, abs=0.03)
    assert all(result.status.name == "CONVERGED" for result in simulation.diffusion_results)
    assert abs(simulation.liquid.lacking) < 0.01 * simulation.liquid.target


@pytest.mark.parametrize("dim", [2, 3])
def test_what_turns_as_a_whole_feels_no_friction(dim):
    """A thick ball that spins in the air goes on as it does without friction: its surface is free of stress."""
    turned = {}
    for viscosity in (0.0, 1.0):
        simulation = drop(dim, 24, surface_tension=0.0, fluid={"viscosity": viscosity})
        liquid = simulation.liquid
        parts = liquid.particles.to_numpy()
        away = parts["position"] - 0.5
        velocity = np.zeros_like(away)
        velocity[:, 0], velocity[:, 1] = -away[:, 1], away[:, 0]
        set_going(simulation, parts["position"], velocity)
        for _ in range(10):
            simulation.step(0.02)
        parts = liquid.particles.to_numpy()
        away = parts["position"] - parts["position"].mean(0)
        spin = away[:, 0] * parts["velocity"][:, 1] - away[:, 1] * parts["velocity"][:, 0]
        turned[viscosity] = spin.sum() / (away[:, :2] ** 2).sum()
    # What friction by each component alone would stop within a step; at the rough rim 0.2 to 0.3 % of it is lost in each.
    assert turned[1.0] == pytest.approx(turned[0.0], rel=0.04)


@pytest.mark.parametrize("viscosity", [1e-4, 0.01, 1.0])
@pytest.mark.parametrize(("dim", "transfer"), [(2, "apic"), (2, "flip"), (3, "apic")])
def test_honey_at_rest_stays_at_rest(dim, transfer, viscosity):
    """Between walls that hold it and around a ball, which bears Archimedes' force.

    Friction on what gravity has accelerated and the pressure not yet held moved it by 0.04, 0.08 and 0.05 sqrt(g h).
    """
    ball = {"shape": "sphere", "center": [0.5, 0.25, 0.5][:dim], "radius": 0.13}
    scene = water(
        [1.0] * dim, 32 if dim == 2 else 16, [([0.0] * dim, [1.0, 0.5, 1.0][:dim])], solids=[ball],
        fluid={"viscosity": viscosity}, liquid={"transfer": transfer}, domain={"boundaries": "no-slip"},
    )  # fmt: skip
    simulation, fastest = tf.Simulation(scene), 0.0
    for _ in range(20):
        simulation.step()
        fastest = max(fastest, np.abs(simulation.liquid.particles.to_numpy()["velocity"]).max())
    assert fastest < 1e-4 * np.sqrt(9.81 * 0.5)
    volume = np.pi * 0.13**2 if dim == 2 else 4 / 3 * np.pi * 0.13**3
    across, up, *_ = simulation.solids.load(0).force
    assert up == pytest.approx(scene.fluid.rho * 9.81 * volume, rel=0.01 if dim == 2 else 0.15)  # of two cells' radius
    assert abs(across) < 1e-3 * up


@pytest.mark.vulkan_too(transfer="flip", viscosity=0.01)
@pytest.mark.parametrize("viscosity", [0.0, 0.01])
@pytest.mark.parametrize("transfer", ["apic", "flip"])
def test_a_particle_in_the_air_falls_as_if_alone(transfer, viscosity):
    """Far above a pool it hung in the air for ever, if the liquid had any viscosity: what it said of itself was asked for once."""
    scene = water(
        [1.0, 1.0], 32, [([0.0, 0.0], [1.0, 0.2])], fluid={"viscosity": viscosity}, liquid={"transfer": transfer}
    )
    simulation = tf.Simulation(scene)
    particles = simulation.liquid.particles.to_numpy()
    places = np.append(particles["position"], [[0.5, 0.8]], axis=0)
    set_going(simulation, places, np.append(0 * particles["velocity"], [[0.0, 0.0]], axis=0))
    while simulation.time < 0.2:
        simulation.step()
    particles = simulation.liquid.particles.to_numpy()
    highest, arrives = np.argmax(particles["position"][:, 1]), simulation.time
    assert particles["velocity"][highest, 1] == pytest.approx(-9.81 * arrives, rel=1e-4)
    assert particles["position"][highest, 1] == pytest.approx(0.8 - 0.5 * 9.81 * simulation.time**2, abs=1e-3)


def alone(at, velocity, *, gravity=0.0, dt=0.01, duration=0.4, resolution=32, **tables):
    """Where one particle has come to in a box, and how fast it is then, without the rest of a liquid."""
    fluid = {"gravity": [0.0, -gravity]}
    simulation = tf.Simulation(water([1.0, 1.0], resolution, fluid=fluid, **tables))
    set_going(simulation, np.array([at]), np.array([velocity]))
    while simulation.time < duration - 1e-6:
        simulation.step(dt)
    particles = simulation.liquid.particles.to_numpy()
    return particles["position"][0], particles["velocity"][0]


@pytest.mark.parametrize("transfer", ["apic", "flip"])
@pytest.mark.parametrize("crossed", [(0.5, 0.5), (2.0, 0.0), (2.0, 2.0)])
def test_spray_flies_straight_on_in_steps_of_up_to_two_cells(transfer, crossed):
    """Velocities are continued as far as halfway: into what was at rest there it lagged by up to half of its way."""
    velocity, dt = np.array(crossed) / 64 / 0.005, 0.005
    place, found = alone([0.15, 0.15], velocity, dt=dt, duration=20 * dt, resolution=64, liquid={"transfer": transfer})
    np.testing.assert_allclose(found, velocity, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(place, 0.15 + velocity * 20 * dt, atol=1e-4 / 64)


@pytest.mark.parametrize("transfer", ["apic", "flip"])
def test_walls_take_of_a_velocity_what_goes_into_them(transfer):
    """Also of what FLIP keeps: with walls taken for what was there before, spray kept half of it, and a solid did not drag it along."""
    liquid = {"transfer": transfer, "flip": 1.0}
    _, found = alone([0.51, 0.9], [0.0, 4.0], dt=0.005, liquid=liquid)
    assert abs(found[1]) < 0.01
    box = {"shape": "box", "center": [0.2, 0.5], "size": [0.1, 0.4], "velocity": [1.0, 0.0]}
    place, found = alone([0.4, 0.5], [0.0, 0.0], liquid=liquid, solids=[box])
    off = 0.3 if transfer == "apic" else 0.02  # by APIC it has a mean of the solid's and of its own
    assert found[0] == pytest.approx(1.0, abs=off)
    assert 0 < place[0] - 0.65 < 0.02


@pytest.mark.parametrize("transfer", ["apic", "flip"])
def test_spray_does_not_stay_at_a_lid(transfer):
    """Thrown up at 3 m/s it meets it at 2.2: right at the lid, where no other face weighs it, it hung for ever."""
    place, found = alone([0.51, 0.8], [0.0, 3.0], gravity=9.81, dt=0.01, duration=1.2, liquid={"transfer": transfer})
    assert place[1] < 0.7
    assert np.abs(found).max() < 5.0


@pytest.mark.parametrize(("length", "viscosity"), [(0.25, 0.05), (0.125, 0.1)])
def test_ripples_on_a_film_level_as_theory_says(length, viscosity):
    """Slowly enough for inertia to be nothing, at S. E. Orchard's rate (1962); waves of 16 and 8 cells, a film of 6.

    Friction on what the pressure did not hold yet levelled them at 2.4 and 5.9 times that rate.
    """
    depth, k = 0.1, 2 * np.pi / length
    kh = k * depth
    rate = 9.81 / (2 * viscosity * k) * (np.sinh(kh) * np.cosh(kh) - kh) / (np.cosh(kh) ** 2 + kh**2)
    sides = [["free-slip", "free-slip"], ["no-slip", "free-slip"]]
    scene = water([1.0, 0.25], 64, fluid={"viscosity": viscosity}, domain={"boundaries": sides})
    simulation = tf.Simulation(scene)
    x, y = simulation.grid.cell_centres()
    simulation.set(level_set=y - depth - length / 28 * np.cos(k * x))
    times, heights = [], []
    while not heights or (heights[-1] > 0.3 * heights[0] and len(heights) < 150):
        times.append(simulation.time)
        height = filled_part(simulation).sum(1) * simulation.grid.dx
        heights.append(2 * (height * np.cos(k * x[:, 0])).mean())
        simulation.step()
    found = -np.polyfit(times, np.log(heights), 1)[0]
    assert found == pytest.approx(rate, rel=0.2)


def test_a_film_on_a_wall_flows_as_it_does_between_theory_and_a_wall_that_slips():
    """Down an upright wall that holds it, h = 8 cells: the speed at its surface tends to g h² / (2 nu); without, to g t."""
    scene = water([1.0, 1.0], 32, [([0.0, 0.0], [0.25, 1.0])], fluid={"viscosity": 0.2})
    speeds = {}
    for side in ("no-slip", "free-slip"):
        sides = [[side, "free-slip"], ["open", "open"]]
        simulation = tf.Simulation(scene.with_values({"domain.boundaries": sides}))
        for _ in range(8):
            simulation.step(0.02)
        parts = simulation.liquid.particles.to_numpy()
        middle = (np.abs(parts["position"][:, 1] - 0.4) < 0.1) & (parts["position"][:, 0] > 0.2)
        speeds[side] = -parts["velocity"][middle, 1].mean()
    t = simulation.time
    # Between its ends, which stay behind, it is 0.044 m/s slower.
    assert speeds["free-slip"] == pytest.approx(9.81 * t, rel=0.035)
    k = np.pi / 2 / 0.25
    first = 32 / np.pi**3 * np.exp(-0.2 * k**2 * t)
    assert speeds["no-slip"] == pytest.approx(9.81 * 0.25**2 / 0.4 * (1 - first), rel=0.1)


def test_a_solid_that_holds_drags_honey_along_and_one_that_slips_does_not():
    """A disk turns in a pool: thick honey turns with it, but not where it slips."""
    drags = {}
    for slip in (False, True):
        ball = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.2, "angular_velocity": 2.0, "slip": slip}
        scene = water([1.0, 1.0], 32, [([0.0, 0.0], [1.0, 0.9])], fluid={"viscosity": 0.05}, solids=[ball])
        simulation = tf.Simulation(scene)
        for _ in range(20):
            simulation.step(0.02)
        parts = simulation.liquid.particles.to_numpy()
        away = parts["position"] - 0.5
        near = np.abs(np.hypot(*away.T) - 0.25) < 0.02
        along = away[near, 0] * parts["velocity"][near, 1] - away[near, 1] * parts["velocity"][near, 0]
        drags[slip] = (along / (away[near] ** 2).sum(1)).mean()
    assert drags[False] > 0.5
    assert abs(drags[True]) < 0.1 * drags[False]


def test_a_disk_that_turns_bears_the_momentum_that_honey_gains(tmp_path):
    """It was 1.3 times that, of which honey gained half of what it should; what slips bears nothing, nor what turns in the air."""
    found = {}
    for name, height, slip in (("turns", 0.95, False), ("slips", 0.95, True), ("in the air", 0.2, False)):
        disk = {"shape": "sphere", "center": [0.5, 0.475], "radius": 0.2, "angular_velocity": 1.0, "slip": slip}
        scene = water(
            [1.0, 1.0], 48, [([0.0, 0.0], [1.0, height])], solids=[disk], fluid={"viscosity": 0.01, "gravity": [0.0, 0.0]},
            solver={"dt": 0.005},
        )  # fmt: skip
        simulation, impulse = tf.Simulation(scene), 0.0
        for _ in range(20):
            simulation.step()
            impulse -= simulation.solids.load(0).friction_torque[0] * 0.005
        parts = simulation.liquid.particles.to_numpy()
        (x, y), (u, v) = (parts["position"] - [0.5, 0.475]).T, parts["velocity"].T
        found[name] = impulse, scene.fluid.rho * simulation.liquid.volume * (x * v - y * u).mean()
        if name == "turns":
            again = tf.load(tf.save(simulation, tmp_path / "disk"))
            assert again.solids.load(0) == simulation.solids.load(0), "and a checkpoint knows it"
    given, gained = found["turns"]
    # 4 pi R³ rho omega sqrt(nu t / pi), as of a flat wall, and for what is round 3 pi R² mu omega t more, and so on: 2.18.
    assert gained == pytest.approx(2.18, rel=0.02)
    # Measured 1.011 with 48 cells, 1.0003 with 96.
    assert gained == pytest.approx(given, rel=0.02)
    assert found["slips"][0] == 0
    assert abs(found["slips"][1]) < 0.01 * gained
    assert found["in the air"][0] == 0


@pytest.mark.parametrize("dt", [None, 0.002])
def test_honey_that_comes_to_rest_gives_its_momentum_to_the_floor(dt):
    """What friction does by the kick a floor bears as well: by what it did at the ends of steps that was 0.82 of it in default steps."""
    floor = {"shape": "box", "center": [0.5, 0.1], "size": [1.4, 0.3]}
    scene = water(
        [0.5, 0.75], 24, [([0.0, 0.25], [0.5, 0.55])], solids=[floor], fluid={"viscosity": 0.2}, solver={"dt": dt},
        domain={"boundaries": [["periodic"] * 2, ["free-slip"] * 2]}, initial={"velocity": [1.0, 0.0]},
    )  # fmt: skip
    simulation = tf.Simulation(scene)
    mass, given = RHO * simulation.grid.cell_volume / FULL[2], 0.0
    momentum = [mass * simulation.liquid.particles.to_numpy()["velocity"][:, 0].sum()]
    while simulation.time < 0.4:
        before = simulation.time
        simulation.step()
        given += simulation.solids.load(0).friction[0] * (simulation.time - before)
        momentum.append(mass * simulation.liquid.particles.to_numpy()["velocity"][:, 0].sum())
    lost = momentum[0] - momentum[-1]
    assert lost > 0.7 * momentum[0]
    # Measured 1.008 and 1.010.
    assert given == pytest.approx(lost, rel=0.02)


def turned(dim, n, spins):
    """What turns between two balls: how far the velocity is off, largest and in the mean, and what both bear over what is right."""
    centre = (0.503, 0.507, 0.49)[:dim]
    grid = Grid((n,) * dim, 1 / n)
    walls = Walls(grid, [[Boundary.NO_SLIP] * 2] * dim)
    solids = Solids(grid, walls, balls(centre, *spins))
    solids.update(0.0)
    velocity, phi, room, viscosity = grid.velocity(), grid.array(), grid.velocity(), Viscosity(grid, walls, solids)
    phi.fill(-1.0)
    for _ in range(12):
        solids.enforce(velocity)
        walls.fill_velocity(velocity)
        viscosity.set_up(phi, 1.0, 0.1)
        result = viscosity.diffuse(velocity, phi, 1000, room, solids.open)
        assert result.status is Status.CONVERGED
    torque = 4 * np.pi * (dim - 1) * constants(dim, *spins)[1]
    borne = np.array([-1, 1]) * [viscosity.loads.load(i, 1.0)[1, 2] for i in (0, 1)]
    return *error(grid, solids, velocity, centre, *spins), borne / (torque or 1.0)


@pytest.mark.vulkan_too(dim=2)
@pytest.mark.parametrize("dim", [2, 3])
def test_friction_at_solids_is_of_second_order(dim):
    """It was of first: where it held a face a cell from the next one, off by 0.09 and 0.04, and both bore 0.61 and 0.82."""
    coarse, fine = (turned(dim, n, (1.0, 0.0)) for n in (24, 48))
    # Measured 0.0127 and 0.0028 (3D: 0.0141 and 0.0035); 0.961 and 0.964, 0.992 and 0.993 (3D: 0.910 and 0.911, 0.978 and 0.979).
    assert fine[1] < 0.004 and np.log2(coarse[1] / fine[1]) > 1.8
    assert np.abs(fine[2] - 1).max() < 0.025 and np.log2(np.abs(coarse[2] - 1) / np.abs(fine[2] - 1)).min() > 1.8


@pytest.mark.vulkan_too
@pytest.mark.parametrize("dim", [2, 3])
def test_what_turns_with_the_solids_around_it_feels_no_friction(dim):
    """Faces that they close go as their middles do, their surface as it is where it is; both are known."""
    largest, _, borne = turned(dim, 24, (1.0, 1.0))
    assert largest < 1e-4
    assert np.abs(borne).max() < 1e-4


@pytest.mark.parametrize("side", ["no-slip", "free-slip"])
def test_a_solid_through_a_side_bears_no_more_than_the_liquid_does_to_it(side):
    """Between the faces within it and those beyond the side there is no liquid: a plate through a floor bore five times too much."""
    pulls = []
    for low in (0.0, -0.2):
        plate = {"shape": "box", "center": [0.5, (0.5 + low) / 2], "size": [0.2, 0.5 - low], "velocity": [0.1, 0.0]}
        scene = water([1.0, 0.6], 40, [([0.0, 0.0], [1.0, 0.3])], fluid={"viscosity": 0.05})
        scene = scene.with_values({"solids": [plate], "domain.boundaries": [["free-slip"] * 2, [side, "free-slip"]]})
        simulation = tf.Simulation(scene)
        for _ in range(3):
            simulation.step(0.002)
        pulls.append(simulation.solids.load(0).friction[0])
    # What ends on the side is nearer to faces beside its corners than what goes on beyond it: measured 0.034 at no-slip sides
    # (0.019 before the pressure that holds friction acted together with it).
    assert pulls[1] == pytest.approx(pulls[0], rel=0.04)
    assert pulls[0] < 0


@pytest.mark.slow
def test_honey_that_spreads_is_smooth():
    """What a thread brings to the floor is drawn out to many times its width. In lines of particles it was rough by 0.14 to 0.19 cells."""
    simulation = tf.Simulation(preset("honey").with_values({"domain.resolution": 28}))
    simulation.advance(2.25)
    level = simulation.to_numpy("level set")
    wet = np.cumprod(level < 0, axis=1).sum(axis=1)
    last, next = (np.take_along_axis(level, (wet + k)[:, None], axis=1)[:, 0] for k in (-1, 0))
    height = wet - 0.5 + last / np.where(wet > 0, last - next, 1)
    middles = np.arange(28) - 13.5
    away = np.hypot(middles[:, None], middles)
    off = []
    for ring in range(2, 12):
        here = (away >= ring) & (away < ring + 1)
        r, h = away[here], height[here]
        if h.min() > 1.2:  # beyond, it ends
            off.append(h - np.polyval(np.polyfit(r, h, 1), r))
    # Found 0.077; half of what is left is curvature within a ring. Where it stretched too fast, 0.05.
    assert len(off) >= 5 and np.concatenate(off).std() < 0.11


@pytest.mark.parametrize("transfer", ["apic", "flip"])
def test_a_slab_that_slips_along_its_floor_stretches_as_its_weight_says(transfer):
    """4 mu du/dx h = rho g h² / 2 of all that lies before any place: thick friction and pressure apart, it stretched 1.46 times as fast."""
    height, time, nu = 0.1, 1.0, 1.0
    scene = water(
        [1.2, 0.15], 96, [([0.0, 0.0], [0.6, height])], fluid={"viscosity": nu}, liquid={"transfer": transfer}
    )
    simulation = tf.Simulation(scene)
    simulation.advance(time)
    filled, stretched = filled_part(simulation), 1 + 9.81 * height * time / (8 * nu)
    assert filled[:24].sum(1).mean() / 8 == pytest.approx(1 / stretched, rel=0.02)
    assert filled[:, 1].sum() / 48 == pytest.approx(stretched, rel=0.02)


@pytest.mark.parametrize("level", [0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9])
def test_friction_takes_from_a_wave_what_it_takes_wherever_in_a_cell_its_surface_lies(level):
    """4 nu k² of its velocity a second; with the surface below the middle of a cell it took 0.62 to 0.75 of that."""
    cells, viscosity, dt, k = 32, 0.01, 5e-4, 2 * np.pi
    height, left = (round(0.6 * cells) + level) / cells, []

    def mode(x, y):
        swing = np.cosh(k * height)
        return -np.sin(k * x) * np.cosh(k * y) / swing, np.cos(k * x) * np.sinh(k * y) / swing

    for nu in (0.0, viscosity):
        tables = {"fluid": {"viscosity": nu, "gravity": [0.0, 0.0]}, "liquid": {"transfer": "flip"}}
        tables["solver"] = {"scheme": "splitting"}  # in which particles have what the faces have
        simulation = tf.Simulation(water([1.0, 1.0], cells, [([0.0, 0.0], [1.0, height])], **tables))
        simulation.set(velocity=[lambda x, y: 1e-3 * mode(x, y)[0], lambda x, y: 1e-3 * mode(x, y)[1]])
        simulation.step(dt)
        found = simulation.liquid.particles.to_numpy()
        wanted = np.stack(mode(*found["position"].T), axis=1)
        left.append((found["velocity"] * wanted).sum() / (wanted**2).sum() / 1e-3)
    # From cell to cell it is as rough as what counts as a part of a cell: 0.87 to 1.07.
    acts = simulation.liquid.kick.acts
    assert (left[0] - left[1]) / (4 * viscosity * k**2 * acts) == pytest.approx(1.0, abs=0.15)


# The pressure that holds friction


@pytest.mark.parametrize("viscosity", [0.1, 1.0])
@pytest.mark.parametrize("dim", [2, 3])
def test_a_channel_takes_the_pressure_that_it_takes(dim, viscosity):
    """Found after friction had acted it was 0.70 of that in default steps, 0.19 in what is ten times as thick, and the profile flat."""
    speed, height, rho = 0.1, 0.25, 1000.0
    sides = [[{"kind": "inflow", "velocity": [speed, 0.0, 0.0][:dim]}, "open"], ["no-slip"] * 2, ["free-slip"] * 2][
        :dim
    ]
    scene = water(
        [1.0, height, 0.0625][:dim],
        32,
        [([0.0] * dim, [1.0, height, 0.0625][:dim])],
        fluid={"viscosity": viscosity, "rho": rho, "gravity": [0.0] * dim},
    ).with_values({"domain.boundaries": sides})
    simulation = tf.Simulation(scene)
    simulation.advance(2.0)
    pressure, along = (simulation.to_numpy(name) for name in ("pressure", "velocity"))
    rows = pressure.mean(axis=tuple(range(1, dim)))[13:22]
    taken = -np.polyfit(np.arange(9) / 32, rows, 1)[0] / (12 * rho * viscosity * speed / height**2)
    profile = along[0][17].reshape(8, -1).mean(axis=1)
    # Of eight cells across; a gas takes 0.970 and 1.455.
    assert taken == pytest.approx(0.965, abs=0.015)
    assert profile.max() / profile.mean() == pytest.approx(1.455, abs=0.005)


def test_what_squeezes_honey_out_bears_the_same_in_steps_of_any_length():
    """A plate that comes down on it bore 0.65 of what it does in steps of 0.01 s."""
    bears = []
    for dt in (0.01, 0.0025):
        scene = water(
            [1.0, 0.25], 64, [([0.1, 0.0], [0.9, 0.1])], fluid={"viscosity": 0.1, "rho": 1000.0, "gravity": [0.0, 0.0]}
        )
        plate = {"shape": "box", "center": [0.5, 0.15], "size": [0.8, 0.1], "velocity": [0.0, -0.02]}
        scene = scene.with_values({"domain.boundaries": [["open"] * 2, ["no-slip", "open"]], "solids": [plate]})
        simulation, borne = tf.Simulation(scene), []
        while simulation.time < 0.5 - 1e-6:
            simulation.step(dt)
            borne.append(simulation.solids.load(0).force[1])
        thick = 0.1 - 0.02 * 0.45
        bears.append(np.mean(borne[-round(0.1 / dt) :]) / (100 * 0.02 * 0.8**3 / thick**3))
    # Reynolds' theory of lubrication leaves out what is beside the plate. Measured 1.05 and 1.06.
    assert bears[0] == pytest.approx(bears[1], rel=0.03)
    assert 1.0 < bears[1] < 1.12


@pytest.mark.parametrize(("viscosity", "least"), [(0.1, 0.92), (1.0, 0.7)])
def test_a_disk_that_creeps_through_a_full_box_bears_what_it_does_in_a_gas(viscosity, least):
    """In default steps, 0.042 s, 2.4 and 24 dx² of friction; what held it in the step before is where the disk was."""
    disk = {"shape": "sphere", "center": [0.45, 0.25], "radius": 0.1, "velocity": [0.05, 0.0]}
    gas = {
        "name": "creeps",
        "domain": {"size": [1.0, 0.5], "resolution": 24, "boundaries": "no-slip"},
        "fluid": {"viscosity": viscosity, "rho": 1000.0, "gravity": [0.0, 0.0]},
        "solids": [disk],
    }
    full = {"bodies": [{"shape": "box", "center": [0.5, 0.25], "size": [1.0, 0.5]}]}
    borne = []
    for made in (gas, gas | {"liquid": full}):
        simulation, loads = tf.Simulation(tf.Scene.from_dict(made)), []
        simulation.advance(0.8)
        for _ in range(8):
            simulation.step()
            loads.append(simulation.solids.load(0).force[0])
        borne.append(np.mean(loads))
    # Measured 0.953 and 0.746; 0.911 and 0.301 while the pressure was bounded by how fast the liquid is.
    assert least < borne[1] / borne[0] < 1.01


@pytest.mark.parametrize("viscosity", [0.1, 3.0, 10.0])
def test_a_ball_that_swings_in_tar_throws_nothing(viscosity):
    """The pressure that has held friction is of what the ball has left; acting as it was it made 25,000 m/s of that."""
    ball = {"shape": "sphere", "center": [0.5, 0.3], "radius": 0.12, "swing": [0.2, 0.1], "swing_period": 1.0}
    scene = water([1.0, 1.0], 48, [([0.0, 0.0], [1.0, 0.4])], fluid={"viscosity": viscosity})
    simulation, fastest = tf.Simulation(scene.with_values({"solids": [ball]})), 0.0
    while simulation.time < 1.5:
        simulation.step()
        fastest = max(fastest, *(float(np.abs(along).max()) for along in simulation.to_numpy("velocity")))
    # It swings at 1.4 m/s, and the liquid parts from it and falls. Measured at six places, a millionth of a metre apart: 1.8, 1.6 to
    # 2.7 and 2.0 to 3.6 m/s.
    assert fastest < 6
