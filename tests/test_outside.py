"""What others add to the engine, a row each, as they would write it: with the package's public names alone."""

import contextlib
import math

import numpy as np
import pytest
import taichi as ti

import taichi_fluid as tf


@contextlib.contextmanager
def added(table, *rows):
    """The rows in a table of the process, as long as a test needs them."""
    for row in rows:
        table.add(row)
    try:
        yield
    finally:
        for row in rows:
            table.remove(row.name)


def put(simulation, name, values):
    simulation.grid.from_numpy(simulation.state.carried[name].current, values)
    simulation.fill()


# What is carried

INK = tf.Carried(
    "ink",
    3,
    colours=True,
    diffusivity="smoke_diffusion",
    decay="smoke_dissipation",
    fade="smoke_fade",
    drawn="dye",
)
"""Word for word what dye is."""

TWINS = """
name = "twins"
[domain]
size = [1.0, 1.0]
resolution = 24
boundaries = [
    [{kind = "inflow", velocity = [0.4, 0.1], dye = [0.1, 0.2, 0.3], ink = [0.1, 0.2, 0.3]}, "open"],
    ["no-slip", "open"],
]
[fluid]
smoke_diffusion = 1e-3
smoke_dissipation = 0.3
smoke_fade = 0.05
[combustion]
burn_rate = 5.0
expansion = 2.0
[[sources]]
shape = "sphere"
center = [0.4, 0.4]
radius = 0.15
dye = [1.0, 0.5, 2.0]
ink = [1.0, 0.5, 2.0]
fuel = 2.0
blast = 1.0
velocity = [0.0, 1.0]
mottle = 0.5
[solver]
dt = 0.03
[look]
quantity = "ink"
legend = false
"""


def painted(simulation):
    """A flow that has been through all that can happen to what it carries."""
    for _ in range(2):
        simulation.step()
    both = dict.fromkeys([name for name in ("dye", "ink") if name in simulation.state.carried], (0.5, 1.0, 2.0))
    simulation.paint((0.2, 0.2), (0.5, 0.3), 0.1, **both)
    simulation.paint((0.8, 0.8), (0.8, 0.8), 0.1, add=True, **both)
    for name in both:
        simulation.paint_picture(np.eye(8), (0.6, 0.3), 0.4, name, colour=(1.0, 0.5, 0.2))
    for _ in range(2):
        simulation.step()
    return simulation


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_a_row_that_says_what_dye_says_is_dye_to_the_last_bit(grid):
    """From TOML on: sources, inflow, burning, fading, diffusion, strokes, pictures, another grid, beginning again."""
    with added(tf.CARRIED, INK):
        scene = tf.Scene.loads(TWINS).with_values({"domain.grid": grid})
        assert tf.Scene.loads(scene.dumps()) == scene and scene.carried["ink"] == 3
        simulation = painted(tf.Simulation(scene))
        finer = tf.Simulation(scene.with_values({"domain.resolution": 36}))
        tf.resample(simulation, finer)
        for flow in (simulation, finer):
            assert flow.to_numpy("ink").max() > 0.5
            np.testing.assert_array_equal(flow.to_numpy("ink"), flow.to_numpy("dye"))
        first = simulation.to_numpy("ink")
        simulation.reset()
        assert not simulation.to_numpy("ink").any()
        np.testing.assert_array_equal(painted(simulation).to_numpy("ink"), first)
        simulation.clear()
        assert not simulation.to_numpy("ink").any()


@pytest.mark.parametrize("view", ["volume", "slice"])
def test_a_row_that_says_what_dye_says_looks_like_it(view):
    with added(tf.CARRIED, INK):
        scene = tf.Scene.loads(TWINS).with_values({"look.view": view})
        pictures = []
        for name, other in (("dye", "ink"), ("ink", "dye")):
            values = {f"sources.0.{other}": [0.0] * 3, f"domain.boundaries.0.0.{other}": [0.0] * 3}
            simulation = painted(tf.Simulation(scene.with_values({**values, "look.quantity": name})))
            assert other not in simulation.state.carried
            pictures.append(tf.Renderer(simulation).render())
        assert pictures[0].std() > 5
        np.testing.assert_array_equal(*pictures)


@pytest.mark.parametrize("other", [{"dilutes": False}, {"decay": 0.0}, {"diffusivity": 0.01}, {"fade": 0.0}])
def test_the_test_of_twins_notices_a_row_that_differs(other):
    """Sabotage: each column that the step reads, another than that of dye."""
    row = tf.Carried(
        "ink", 3, **{"diffusivity": "smoke_diffusion", "decay": "smoke_dissipation", "fade": "smoke_fade"} | other
    )
    with added(tf.CARRIED, row):
        simulation = painted(tf.Simulation(tf.Scene.loads(TWINS)))
        assert np.abs(simulation.to_numpy("ink") - simulation.to_numpy("dye")).max() > 1e-3


def box(**values):
    """A closed box of water, 16 by 16 cells over a square metre."""
    changes = {"domain": {"size": [1.0, 1.0], "resolution": 16}, "solver": {"dt": 0.05}}
    return tf.Scene.from_dict({"name": "box", **changes, **values})


def test_salt_diffuses_decays_and_weighs_as_its_row_and_the_scene_say():
    """A mode of the box falls by the factor that Crank and Nicolson have for it; salt water sinks as heavy smoke does."""
    salt = tf.Carried("salt", unit="g/kg", diffusivity=2e-3, decay=0.5, weight=1e-3)
    x = (np.arange(16) + 0.5) / 16
    mode = 2 + np.cos(math.pi * x)[:, None] + 0 * x
    with added(tf.CARRIED, salt):
        plain = tf.Scene.from_dict({"name": "plain", "domain": {"size": [1.0, 1.0], "resolution": 8}})
        assert plain.fluid.salt_diffusion == 2e-3 and "salt_diffusion" in plain.dumps(), (
            "without a table that says so too"
        )
        for diffusivity in (2e-3, 1e-2):
            scene = box(fluid={"gravity": [0.0, 0.0], "salt_diffusion": diffusivity}, sources=[{**SPRING, "salt": 1.0}])
            simulation = tf.Simulation(scene)
            put(simulation, "salt", mode)
            for _ in range(4):
                simulation.step()
            wave = 4 * 16**2 * math.sin(math.pi / 32) ** 2
            half = 0.025 * diffusivity * wave
            left = math.exp(-0.5 * 0.2) * (2 + (mode - 2) * ((1 - half) / (1 + half)) ** 4)
            np.testing.assert_allclose(simulation.to_numpy("salt"), left, rtol=1e-5)
        speeds = []
        for name, fluid in (
            ("salt", {"salt_diffusion": 0.0, "salt_dissipation": 0.0}),
            ("smoke", {"smoke_weight": 1e-3}),
        ):
            simulation = tf.Simulation(box(fluid=fluid, sources=[{**SPRING, name: 1.0}]))
            put(simulation, name, mode)
            for _ in range(3):
                simulation.step()
            speeds.append(simulation.to_numpy("velocity"))
        assert np.abs(speeds[0]).max() > 1e-4
        np.testing.assert_array_equal(*speeds)


SPRING = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.1, "begin": 1e5}
"""A source that makes what it names be carried, and brings in none."""


def test_humid_air_stays_as_humid_as_it_is_outside():
    """Open sides let in what is outside: a wind through the box leaves it as it is. Without that it would dry."""
    wind = {"kind": "inflow", "velocity": [1.0, 0.0]}
    domain = {"size": [1.0, 1.0], "resolution": 16, "boundaries": [[wind, "open"], ["open", "open"]]}
    for outside in (0.3, 0.0):
        with added(tf.CARRIED, tf.Carried("humidity", unit="kg/kg", outside=outside, diffusivity=1e-3)):
            simulation = tf.Simulation(box(domain=domain, sources=[{**SPRING, "humidity": 1.0}]))
            np.testing.assert_array_equal(simulation.to_numpy("humidity"), np.float32(outside))
            put(simulation, "humidity", np.full((16, 16), 0.3))
            for _ in range(10):
                simulation.step()
            humidity = simulation.to_numpy("humidity")
            assert np.abs(humidity - 0.3).max() < 1e-6 if outside else humidity.min() < 0.1


def test_a_row_may_be_one_simulations_own():
    """Given to its ``state``, without a place in the table: it decays, lifts and comes in as it says, and survives a reset."""
    scene = box(domain={"size": [1.0, 1.0], "resolution": 16, "boundaries": "open"})
    simulation = tf.Simulation(scene)
    simulation.state.add([tf.Carried("steam", decay=2.0, lift=0.1, outside=0.5)])
    for _ in range(2):
        np.testing.assert_array_equal(simulation.to_numpy("steam"), 0.5)
        simulation.step(0.1)
        assert simulation.to_numpy("steam").max() == pytest.approx(0.5 * math.exp(-0.2), rel=1e-5)
        simulation.step(0.1)
        assert simulation.to_numpy("velocity")[1].max() > 0.01
        simulation.reset()
    assert "steam" not in tf.CARRIED and "steam" not in tf.Simulation(scene).state.carried


def test_dry_air_may_be_blown_into_humid_air():
    """What an inflow says, 0 too, comes in place of what is outside."""
    with added(tf.CARRIED, tf.Carried("humidity", outside=0.3)):
        for blown, expected in (({}, 0.3), ({"humidity": 0.0}, 0.0), ({"humidity": 0.7}, 0.7)):
            wind = {"kind": "inflow", "velocity": [1.0, 0.0], **blown}
            domain = {"size": [1.0, 1.0], "resolution": 16, "boundaries": [[wind, "open"], ["free-slip", "free-slip"]]}
            scene = box(domain=domain, sources=[{**SPRING, "humidity": 1.0}])
            assert tf.Scene.loads(scene.dumps()).domain.sides == scene.domain.sides
            simulation = tf.Simulation(scene)
            for _ in range(6):
                simulation.step()
            assert simulation.to_numpy("humidity")[0] == pytest.approx(expected, abs=1e-3)


def test_a_nan_in_a_row_of_ones_own_is_named():
    with added(tf.CARRIED, tf.Carried("salt")):
        simulation = tf.Simulation(box(sources=[{**SPRING, "salt": 1.0}]))
        simulation.state.carried["salt"].current.fill(math.nan)
        with pytest.raises(tf.NotFinite, match="salt is not finite"):
            simulation.step()


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"name": "smoke"}, "'smoke' of the engine's own"),
        ({"name": "radius"}, "'radius' is a field of a scene's SphereSource"),
        ({"name": "kind"}, "'kind' is a field of a scene's SideOfBox"),
        ({"name": "heat"}, "'heat_diffusion' is a field of a scene's Fluid"),
        ({"name": "my salt"}, "'my salt'; it must be letters"),
        ({"name": "velocity"}, "called 'velocity'"),
        ({"name": "level_set"}, "called 'level_set'"),
        ({"name": "salt", "weight": float("nan")}, "weight of salt is nan; it must be a finite number"),
        ({"name": "salt", "components": 0}, "components of salt is 0"),
        ({"name": "salt", "components": 2, "colours": True}, "components of salt is 2"),
        ({"name": "salt", "components": 2, "outside": [1.0]}, "outside of salt"),
        ({"name": "salt", "components": 2, "weight": 1.0}, "only what has one weighs"),
        ({"name": "salt", "drawn": "fog"}, "drawn of salt is 'fog'"),
        ({"name": "salt", "drawn": "dye"}, "it needs red, green and blue"),
    ],
)
def test_a_row_that_cannot_be_is_refused_by_name_and_nothing_is_added(row, named):
    before, scene = list(tf.CARRIED), box()
    with pytest.raises(ValueError, match=named):
        tf.CARRIED.add(tf.Carried(**row))
    with pytest.raises(ValueError, match="a quantity is called None"):
        tf.CARRIED.add("salt")
    assert list(tf.CARRIED) == before
    assert box() == scene


def test_what_is_not_in_the_table_is_refused_by_scenes_and_strokes():
    scene = box()
    with pytest.raises(tf.SceneError, match=r"unknown key 'sources.0.salt'"):
        box(sources=[{**SPRING, "salt": 1.0}])
    with pytest.raises(ValueError, match="salt is nothing that a flow carries"):
        tf.Simulation(scene).paint((0.5, 0.5), (0.5, 0.5), 0.1, salt=1.0)


def test_a_row_that_comes_while_a_flow_runs_can_be_brought_in_from_then_on():
    simulation = tf.Simulation(box(sources=[{**SPRING, "begin": 0.0, "smoke": 1.0}]))
    simulation.step()
    with added(tf.CARRIED, tf.Carried("salt")):
        simulation.step()
        simulation.scene = simulation.scene.with_values({"sources.0.salt": 2.0})
        simulation.step()
        assert simulation.to_numpy("salt").max() == pytest.approx(0.1)
        assert tf.Scene.loads(simulation.scene.dumps()).carried == {"smoke": 1, "salt": 1}
    simulation.step()  # the row is gone from the table, and stays with the flow
    assert simulation.to_numpy("salt").any()


# Forces


@ti.kernel
def add_to_all(u: ti.types.ndarray(), begin: ti.i32, end: ti.i32, change: ti.f32):
    for c in range(begin, end):
        u[c] = u[c] + change


def wind(simulation, dt):
    """2 m/s² along the first axis."""
    add_to_all(simulation.state.velocity.current, 0, simulation.grid.cells, 2.0 * dt)


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_a_force_of_ones_own_is_one_like_ours_to_the_last_bit(grid):
    """In one simulation, and in all that are built while it is in the table; without it there is another flow."""
    source = {**SPRING, "begin": 0.0, "smoke": 1.0, "temperature": 200.0}
    # Without ends along the force, which it would only press on.
    ways = {"domain.grid": grid, "domain.boundaries": [["periodic"] * 2, ["no-slip"] * 2]}
    scene = box(sources=[source], fluid={"confinement": 0.02}).with_values(ways)
    ours, theirs, still = (
        tf.Simulation(each) for each in (scene.with_values({"fluid.body_force": [2.0, 0.0]}), scene, scene)
    )
    theirs.forces.append(tf.Force("wind", wind))
    with added(tf.FORCES, tf.Force("wind", wind)):
        every = tf.Simulation(scene)
    flows = [ours, theirs, every, still]
    for flow in flows:
        for _ in range(3):
            flow.step()
    for name in ("velocity", "smoke", "pressure"):
        expected = ours.to_numpy(name)
        np.testing.assert_array_equal(theirs.to_numpy(name), expected)
        np.testing.assert_array_equal(every.to_numpy(name), expected)
    assert np.abs(still.to_numpy("velocity") - ours.to_numpy("velocity")).max() > 0.01


@ti.kernel
def slow_all(u: ti.types.ndarray(), size: ti.i32, part: ti.f32):
    for c in range(size):
        u[c] = u[c] - part * u[c]


def test_drag_slows_a_uniform_wind_as_its_law_says():
    """A force that depends on the velocity: (1 - 3 dt / 2) at either end of a step, in a periodic box where nothing else slows it."""
    domain = {"size": [1.0, 1.0], "resolution": 16, "boundaries": "periodic"}
    simulation = tf.Simulation(box(domain=domain))
    simulation.grid.from_numpy(simulation.state.velocity.current, np.ones((2, 16, 16)))
    simulation.fill()

    def drag(simulation, dt):
        slow_all(simulation.state.velocity.current, 2 * simulation.grid.cells, 3.0 * dt)

    simulation.forces.append(tf.Force("drag", drag))
    for _ in range(5):
        simulation.step(0.05)
    np.testing.assert_allclose(simulation.to_numpy("velocity"), (1 - 3 * 0.025) ** 10, rtol=1e-5)


def test_a_force_that_changes_acts_as_it_is_at_either_end_of_a_step():
    """In a periodic box what it leaves is the sum of trapezia. As of the beginning twice, of first order, it was 2.33 for 1.87."""
    simulation = tf.Simulation(box(domain={"size": [1.0, 1.0], "resolution": 16, "boundaries": "periodic"}))

    def gust(simulation, dt):
        add_to_all(
            simulation.state.velocity.current, 0, simulation.grid.cells, 10 * math.exp(-simulation.time / 0.2) * dt
        )

    simulation.forces.append(tf.Force("gust", gust))
    for _ in range(5):
        simulation.step(0.1)
    assert simulation.time == pytest.approx(0.5)
    pushes = 10 * np.exp(-0.5 * np.arange(6))
    np.testing.assert_allclose(simulation.to_numpy("velocity")[0], 0.05 * (pushes[:-1] + pushes[1:]).sum(), rtol=1e-5)


# Kinds of sides

TWIN_KINDS = {
    "no-slip": tf.Kind("mine"),
    "free-slip": tf.Kind("mine", slip_length=math.inf),
    "moving-wall": tf.Kind("mine", moves=True),
    "inflow": tf.Kind("mine", through="given"),
    "open": tf.Kind("mine", through="free", slip_length=math.inf),
    "periodic": tf.Kind("mine", wraps=True),
}


def stirred(kind, ours, grid):
    """A warm flow with two sides of a kind, after a few steps."""
    side = {"kind": kind, "velocity": [0.0, 0.6]} if ours == "moving-wall" else kind
    pair = [side, side]
    if ours == "inflow":
        pair = [{"kind": kind, "velocity": [0.5, 0.2], "smoke": 0.7}, "open"]
    scene = box(
        domain={"size": [1.0, 1.0], "resolution": 16, "boundaries": [pair, ["no-slip", "open"]], "grid": grid},
        fluid={"viscosity": 1e-3, "smoke_diffusion": 1e-3},
        sources=[{**SPRING, "center": [0.3, 0.4], "begin": 0.0, "smoke": 1.0, "temperature": 300.0}],
    )
    simulation = tf.Simulation(scene)
    for _ in range(3):
        simulation.step()
    return [simulation.to_numpy(name) for name in ("velocity", "pressure", "smoke")], simulation.pressure_solver.used


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
@pytest.mark.parametrize("ours", TWIN_KINDS)
def test_a_kind_of_ones_own_is_one_like_ours_to_the_last_bit(ours, grid):
    """Ghosts, own faces, pressure, diffusion, what flows through and which solver: all from one row."""
    with added(tf.Boundary, TWIN_KINDS[ours]):
        found, used = stirred("mine", ours, grid)
        expected, used_by_ours = stirred(ours, ours, grid)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, two)
    assert used == used_by_ours
    other = "free-slip" if ours == "no-slip" else "no-slip"
    changed = stirred(other, other, grid)[0]
    assert np.abs(changed[0] - expected[0]).max() > 1e-4, "the test would not notice"


FORCE, VISCOSITY = 2.0, 0.5


@pytest.mark.parametrize("length", [0.0, 0.05, 0.5])
def test_a_wall_that_is_slippery_in_part_has_the_channel_of_navier(length):
    """Between walls of slip length b at a distance of 1 m  u = G/(2 nu) (y (1 - y) + b), and G dx²/(8 nu) of the grid."""
    with added(tf.Boundary, tf.Kind("greased", slip_length=length)):
        domain = {"size": [0.25, 1.0], "resolution": 16, "boundaries": [["periodic"] * 2, ["greased"] * 2]}
        fluid = {"viscosity": VISCOSITY, "body_force": [FORCE, 0.0], "gravity": [0.0, 0.0]}
        simulation = tf.Simulation(box(domain=domain, fluid=fluid, solver={"tolerance": 1e-6}))
    for dt, count in ((2.0, 20), (0.3, 30), (0.03, 30)):
        for _ in range(count):
            simulation.step(dt)
    y = (np.arange(16) + 0.5) / 16
    exact = FORCE / (2 * VISCOSITY) * (y * (1 - y) + length) + FORCE / 16**2 / (8 * VISCOSITY)
    along = simulation.to_numpy("velocity")[0]
    # Rounding and the tolerance of diffusion; a slip length that is off by a thousandth of a cell shows.
    np.testing.assert_allclose(along, np.broadcast_to(exact, along.shape), rtol=0, atol=1e-4)


def test_a_kind_that_cannot_be_is_refused():
    for build, named in (
        (lambda: tf.Kind("wet", through="sometimes"), "through of wet is 'sometimes'"),
        (lambda: tf.Kind("wet", slip_length=-1.0), "slip_length of wet is -1.0"),
        (lambda: tf.Boundary.add(tf.Kind("open")), "'open' of the engine's own"),
        (lambda: tf.Boundary("wet"), "'wet' is no kind of a side"),
        (lambda: box(domain={"size": [1.0, 1.0], "boundaries": "wet"}), "kinds are free-slip, no-slip"),
    ):
        with pytest.raises(ValueError, match=named):
            build()
