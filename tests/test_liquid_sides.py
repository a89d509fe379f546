"""What comes into a box of liquid, and what leaves it: through sides and sinks, and from a pointer that pours."""

import itertools

import numpy as np
import pytest

import taichi_fluid as tf
from taichi_fluid.scene import SceneError
from taichi_fluid.validation.water import fastest, water

TOP_OPEN = ["free-slip", "open"]


def inflow(*velocity):
    return {"kind": "inflow", "velocity": list(velocity)}


def spout(lower, upper, *velocity):
    """A wall with a hole in it through which water comes."""
    return {"kind": "no-slip", "parts": [{"lower": lower, "upper": upper, **inflow(*velocity)}]}


@pytest.mark.parametrize("dt", [0.01, 0.002])
@pytest.mark.parametrize(
    ("size", "cells", "sides", "rate", "speed"),
    [
        ([1.0, 0.5], 32, [[spout([0.125], [0.3125], 1.0, 0.0), "free-slip"], TOP_OPEN], 0.1875, 1.0),
        ([1.0, 0.5], 32, [["free-slip", spout([0.125], [0.3125], -1.0, 0.0)], TOP_OPEN], 0.1875, 1.0),
        ([1.0, 0.5], 32, [["free-slip", inflow(-0.5, 0.0)], TOP_OPEN], 0.25, 0.5),
        ([0.5, 0.5], 16, [["free-slip"] * 2, [inflow(0.0, 0.5), "open"]], 0.25, 0.5),
        (
            [0.8, 0.4, 0.4],
            16,
            [[spout([0.1, 0.1], [0.3, 0.3], 3.0, 0.0, 0.0), "open"], TOP_OPEN, ["no-slip"] * 2],
            0.12,
            3.0,
        ),
    ],
    ids=["a part", "a part of an upper side", "all of a side", "the floor", "3D, over a cell in a step"],
)
def test_as_much_flows_in_as_a_side_says(size, cells, sides, rate, speed, dt):
    """At any step: places of a lattice that goes along with what flows in are filled as they come through the side."""
    gravity = [0.0] * len(size)
    scene = water(size, cells, solver={"max_dt": dt})
    scene = scene.with_values({"domain.boundaries": sides, "fluid.gravity": gravity})
    simulation = tf.Simulation(scene)
    simulation.advance(0.1)
    # A layer of the lattice more or less: a third (2D) or half of a cell of those that have come in.
    layer = rate / speed * simulation.grid.dx / (3 if len(size) == 2 else 2)
    assert simulation.liquid.volume == pytest.approx(0.1 * rate, abs=layer + 0.01 * rate)
    simulation.advance(0.1)
    assert simulation.liquid.volume == pytest.approx(0.2 * rate, abs=layer + 0.01 * rate)


@pytest.mark.parametrize("cells", [0.7, 1.0, 1.5, 2.3, 6.4])
@pytest.mark.parametrize("lower", [8.0, 8.3])
def test_as_much_flows_in_as_a_side_says_wherever_its_edges_lie(cells, lower):
    """It was that of whole cells: of an opening of 1.5 of them 0.66, of one of 2.4 that begins within one 1.24."""
    dx = 1 / 32
    sides = [[spout([lower * dx], [(lower + cells) * dx], 1.0, 0.0), "free-slip"], TOP_OPEN]
    scene = water([1.0, 0.5], 32).with_values({"domain.boundaries": sides, "fluid.gravity": [0.0, 0.0]})
    simulation = tf.Simulation(scene)
    simulation.advance(0.4)
    rows = max(round(3 * cells), 1)
    # A particle more or less at each place of the opening.
    particles = 9 * cells * 0.4 / dx
    assert simulation.liquid.target == pytest.approx(particles, abs=0.5 * rows + 1)
    assert simulation.liquid.particles.count == simulation.liquid.target


@pytest.mark.parametrize("cells", [3.0, 3.3, 3.5, 3.8])
def test_a_stream_is_as_deep_as_its_inflow(cells):
    """Where the edge of a part lay within a cell it was as deep as whole ones: 3.3 and 3.5 cells were 3.0, 3.8 were 4.1."""
    dx = 1 / 32
    part = {"lower": [0.0], "upper": [cells * dx], **inflow(1.5, 0.0)}
    sides = [[{"kind": "free-slip", "parts": [part]}, "open"], TOP_OPEN]
    scene = water([1.0, 0.25], 32, [([0.0, 0.0], [1.0, cells * dx])])
    scene = scene.with_values({"domain.boundaries": sides, "liquid.bodies.0.velocity": [1.5, 0.0]})
    simulation = tf.Simulation(scene)
    simulation.advance(0.8)
    depths = []
    for _ in range(20):
        simulation.step()
        level = simulation.to_numpy("level set")[:24]  # farther on it falls over the edge
        depths.append(np.clip(0.5 - level / dx, 0.0, 1.0).sum(axis=1))
    # 0.06 of a cell is the surface of as many particles; a row of them is a third.
    assert np.mean(depths, axis=0) == pytest.approx(cells, abs=0.12)


@pytest.mark.parametrize("dt", [0.01, 0.003])
@pytest.mark.parametrize(("lower", "cells"), [(8.5, 3.0), (6.4, 3.2), (8.3, 1.5)])
def test_a_jet_that_comes_in_through_parts_of_cells_is_as_fast_and_as_wide_as_they_say(lower, cells, dt):
    """A jet a little thick was taken for water that reaches past its opening, and braked: 0.87 to 0.96 m/s, up to 3.6 cells wide."""
    dx = 1 / 32
    sides = [[spout([lower * dx], [(lower + cells) * dx], 1.0, 0.0), "free-slip"], TOP_OPEN]
    scene = water([1.0, 0.5], 32, solver={"max_dt": dt})
    simulation = tf.Simulation(scene.with_values({"domain.boundaries": sides, "fluid.gravity": [0.0, 0.0]}))
    simulation.advance(0.4)
    rows = simulation.liquid.particles.to_numpy()
    here = (rows["position"][:, 0] > 0.05) & (rows["position"][:, 0] < 0.3)
    speed = rows["velocity"][here, 0].mean()
    assert speed == pytest.approx(1.0, abs=0.03)
    assert here.sum() / (9 * 8) == pytest.approx(cells / speed, rel=0.03)


@pytest.mark.parametrize(
    "side",
    [inflow(0.0, 0.0), inflow("where(y < 0.1, 3.0, 0.0)", 0.0)],
    ids=["at rest", "fast below, at rest above"],
)
def test_where_nothing_comes_in_nothing_is_held(side):
    """What passed along an inflow was held, and for a time faces in front of one had its velocity where that was 0: water hung on."""
    scene = water([1.0, 1.0], 32, [([0.0, 0.5], [0.25, 0.9])], solver={"max_dt": 0.02})
    simulation = tf.Simulation(scene.with_values({"domain.boundaries": [[side, "open"], TOP_OPEN]}))
    simulation.advance(0.2)
    position = simulation.liquid.particles.to_numpy()["position"]
    block = position[position[:, 1] > 0.2]
    columns = [block[(block[:, 0] * 32).astype(int) == k, 1].mean() for k in range(6)]
    # 0.5 g t² by steps; the column beside one at rest was held along it, and lay 0.04 m higher.
    assert columns == pytest.approx([0.7 - 0.5 * 9.81 * 0.2**2] * 6, abs=0.012)


@pytest.mark.parametrize(("lower", "upper"), [(5.35, 6.15), (5.0, 6.0)])
def test_what_a_part_covers_of_an_inflow_does_not_come_in(lower, upper):
    """By whole rows of particles 1.06 of it came in."""
    dx = 1 / 32
    jet, lid = spout([4 * dx], [7 * dx], 1.0, 0.0), {"kind": "no-slip", "lower": [lower * dx], "upper": [upper * dx]}
    sides = [[{**jet, "parts": [*jet["parts"], lid]}, "free-slip"], TOP_OPEN]
    scene = water([1.0, 0.5], 32).with_values({"domain.boundaries": sides, "fluid.gravity": [0.0, 0.0]})
    simulation = tf.Simulation(scene)
    simulation.advance(0.5)
    width = 3.0 - (upper - lower)
    assert simulation.liquid.target == pytest.approx(9 * width * 0.5 / dx, rel=0.02)


def test_an_inflow_with_a_wall_in_it_is_a_wall_with_an_inflow_in_it():
    """Faces before what covered it were as fast as what it would have brought: -1.27 in place of 0.08 m/s."""
    found = []
    for side in (
        {**inflow(1.0, 0.0), "parts": [{"kind": "no-slip", "lower": [0.0], "upper": [0.25]}]},
        spout([0.25], [0.5], 1.0, 0.0),
    ):
        scene = water([1.0, 0.5], 32, [([0.0, 0.0], [1.0, 0.2])], solver={"max_dt": 0.02})
        simulation = tf.Simulation(scene.with_values({"domain.boundaries": [[side, "open"], TOP_OPEN]}))
        simulation.advance(0.1)
        rows = simulation.liquid.particles.to_numpy()
        found.append(rows["velocity"][(rows["position"] < [0.1, 0.2]).all(axis=1)].mean(axis=0))
    assert found[0] == pytest.approx(found[1], abs=0.02)


@pytest.mark.parametrize("cells", [1.5, 2.3])
def test_as_much_flows_in_below_the_surface(cells):
    """A slot whose edge lies within a cell, in a tank that is full: faces have as much of the speed as the slot has of them."""
    dx = 1 / 32
    sides = [[spout([0.125], [0.125 + cells * dx], 1.0, 0.0), "open"], ["free-slip"] * 2]
    scene = water([1.0, 0.5], 32, [([0.0, 0.0], [1.0, 0.5])])
    simulation = tf.Simulation(scene.with_values({"domain.boundaries": sides, "fluid.gravity": [0.0, 0.0]}))
    simulation.advance(0.3)
    passing = []
    for _ in range(20):
        simulation.step()
        passing.append(simulation.to_numpy("velocity")[0][1:30].sum(axis=1).mean())
    # 2 % are what spreads crowded particles, which is none of the flow.
    assert np.mean(passing) == pytest.approx(cells, rel=0.03)


def test_an_inflow_of_a_liquid_may_differ_from_place_to_place_and_with_time():
    """A parabola that swells: as much comes in as its integral says, at the speed that it has there."""
    spout_of = spout([0.125], [0.375], "64*(y-0.125)*(0.375-y)*(1 + 0.5*sin(20*t))", 0.0)
    scene = water([1.0, 0.5], 64, solver={"max_dt": 0.005})
    scene = scene.with_values({"domain.boundaries": [[spout_of, "free-slip"], TOP_OPEN], "fluid.gravity": [0.0, 0.0]})
    simulation = tf.Simulation(scene)
    simulation.advance(0.3)
    area = 64 * 0.25**3 / 6 * (0.3 + 0.5 * (1 - np.cos(6.0)) / 20)
    # The mean of cells is that of a polygon, 1 + 1/128; a particle at each of 48 places is 1 %.
    assert simulation.liquid.target * simulation.grid.cell_volume / 9 == pytest.approx(area, rel=0.02)
    rows = simulation.liquid.particles.to_numpy()
    beside = rows["position"][:, 0] < 0.1
    y, u = rows["position"][beside, 1], rows["velocity"][beside, 0]
    now = 64 * (y - 0.125) * (0.375 - y) * (1 + 0.5 * np.sin(6.0))
    # What came in up to a tenth of a second ago was a tenth faster.
    assert np.abs(u - now).max() < 0.2


def test_a_side_of_ones_own_that_leads_out_is_refused():
    scene = water([1.0, 0.5], 16).with_values({"domain.boundaries": [["free-slip", "open"], TOP_OPEN]})
    with pytest.raises(ValueError, match=r"boundaries\[0\]\[0\].velocity leads out of the box at 0.2 m/s"):
        tf.Simulation(scene, sides={(0, 0): tf.Side("inflow", velocity=(lambda t, x, y: y - 0.23125, 0.0))})


def test_an_inflow_of_a_liquid_that_turns_round_is_told():
    """That it does is known only when it does."""
    scene = water([1.0, 0.5], 16).with_values(
        {"domain.boundaries": [[inflow("where(t < 0.05, 0.1, -0.1)", 0.0), "open"], TOP_OPEN]}
    )
    simulation = tf.Simulation(scene)
    with pytest.raises(tf.NotFinite, match=r"velocity leads out of the box at 0.1 m/s at t = 0.0"):
        simulation.advance(0.5)


def test_a_full_channel_flows_as_a_plug():
    """In through one side and out through the other: one speed everywhere, and nothing is lost on the way."""
    scene = water([1.0, 0.25], 32, [([0.0, 0.0], [1.0, 0.25])], fluid={"rho": 1000.0})
    scene = scene.with_values(
        {
            "domain.boundaries": [[inflow(1.0, 0.0), "open"], ["free-slip", "free-slip"]],
            "fluid.gravity": [0.0, 0.0],
            "liquid.bodies.0.velocity": [1.0, 0.0],
        }
    )
    simulation = tf.Simulation(scene)
    full = simulation.liquid.particles.count
    for _ in range(60):
        simulation.step(0.02)
    velocity = simulation.to_numpy("velocity")
    assert np.abs(velocity[0] - 1.0).max() < 1e-4
    assert np.abs(velocity[1]).max() < 1e-4
    # What the last step carried out, and what the next will bring in.
    assert abs(simulation.liquid.particles.count - full) < 0.03 * full


@pytest.mark.parametrize("floor", ["free-slip", "no-slip"])
def test_a_wall_makes_a_liquid_no_faster(floor):
    """Without friction a floor that water sticks to is one that it slides along: it ran at 80 m/s, in steps of 0.1 ms."""
    scene = water([2.0, 1.0], 64, [([0.0, 0.0], [0.5, 0.8])], liquid={"transfer": "apic"})
    simulation = tf.Simulation(scene.with_values({"domain.boundaries": [["no-slip", "open"], [floor, "open"]]}))
    highest = 0.0
    while simulation.time < 0.7:
        simulation.step()
        highest = max(highest, fastest(simulation))
    # What falls all the way has sqrt(2 g h); a front that shoots out of a corner has that of shallow water, 2 sqrt(g h).
    assert 2.0 < highest < 1.1 * 2.0 * np.sqrt(9.81 * 0.8)
    assert simulation.steps < 200


@pytest.mark.parametrize("dt", [0.02, 0.005])
@pytest.mark.parametrize("width", [0.1, 0.2])
def test_a_sink_takes_what_falls_into_it(width, dt):
    """Air is in it: through all of its edge comes what has fallen from the surface, sqrt(2 g h) fast, at any step."""
    sink = {"shape": "box", "center": [0.5, 0.0], "size": [width, 0.1], "sink": True}
    scene = water([1.0, 1.0], 64, [([0.0, 0.0], [1.0, 0.6])], sources=[sink], solver={"max_dt": dt})
    simulation = tf.Simulation(scene)
    simulation.advance(0.3)
    for _ in range(3):
        before = simulation.liquid.volume
        assert simulation.to_numpy("level set")[32, 0] > 0  # air
        simulation.advance(0.05)
        lost = (before - simulation.liquid.volume) / 0.05
        # Nothing of it is made up for; where others crowd a few are lacking.
        assert abs(simulation.liquid.lacking) < 0.005 * simulation.liquid.target
        # What its edge lies deep in the mean; a corner that water goes around takes a little more.
        expected = (width + 0.1) * np.sqrt(2 * 9.81 * (before - 0.04))
        assert lost == pytest.approx(expected, rel=0.12)


def test_a_source_and_a_sink_fill_and_empty_a_tank_and_end_when_they_say():
    jet = {"shape": "box", "center": [0.2, 0.8], "size": [0.1, 0.1], "velocity": [0.0, -1.0], "end": 0.2}
    sink = {"shape": "sphere", "center": [0.7, 0.1], "radius": 0.1, "sink": True, "begin": 0.3}
    simulation = tf.Simulation(water([1.0, 1.0], 32, [([0.0, 0.0], [1.0, 0.3])], sources=[jet, sink]))
    simulation.advance(0.2)
    full = simulation.liquid.volume
    assert full == pytest.approx(0.3 + 0.01 + 0.02, rel=0.02)
    simulation.advance(0.1)
    assert simulation.liquid.volume == pytest.approx(full, rel=0.003)
    simulation.advance(3.0)
    assert simulation.liquid.volume < 0.1
    # A drop that falls through the sink from where the pool stood: sqrt(2 g 0.3). Found: 1.9 and 2.2, by the processor.
    assert fastest(simulation) < 2.43


@pytest.mark.parametrize("dim", [2, 3])
def test_a_pointer_pours(dim):
    """As much as its stroke covers, once; what it leaves is at rest and falls."""
    simulation = tf.Simulation(water([1.0] * dim, 24, live={"pour": True}, solver={"max_dt": 0.005}))
    up, radius = 1, 0.1
    at = [0.8 if axis == up else 0.5 for axis in range(dim)]
    simulation.paint(at, at, radius, pour=True)
    covered = np.pi * radius**2 if dim == 2 else 4 / 3 * np.pi * radius**3
    poured = simulation.liquid.volume
    assert poured == pytest.approx(covered, rel=0.1)
    simulation.paint(at, at, radius, pour=True)
    assert simulation.liquid.volume == poured
    simulation.advance(0.2)
    height = simulation.liquid.particles.to_numpy()["position"][:, up].mean()
    assert height == pytest.approx(0.8 - 0.5 * 9.81 * 0.2**2, abs=0.02)
    simulation.paint(at, [0.7, *at[1:]], 0.05, [1.0] + [0.0] * (dim - 1), pour=True)
    assert simulation.liquid.volume > 1.2 * poured
    velocity = simulation.liquid.particles.to_numpy()["velocity"]
    assert velocity[:, 0].max() == pytest.approx(1.0, abs=0.01)
    simulation.step()
    assert simulation.check() < 5.0


def test_only_a_liquid_pours_and_drains():
    with pytest.raises(ValueError, match="pour is True; there is no liquid"):
        tf.Simulation(tf.Scene.from_dict({"name": "gas", "domain": {"size": [1.0, 1.0], "resolution": 8}})).paint(
            [0.5, 0.5], [0.5, 0.5], 0.1, pour=True
        )
    sink = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.1, "sink": True}
    for values, told in (
        ({"live": {"pour": True}}, "live.pour is True, which is for a liquid"),
        ({"sources": [sink]}, r"sources\[0\].sink is True, which is for a liquid"),
        ({"sources": [{**sink, "velocity": [0.0, 1.0]}], "liquid": {}}, "has a velocity and is a sink"),
        ({"sources": [{**sink, "sink": False}], "liquid": {}}, "pours with one, or is a sink"),
    ):
        with pytest.raises(SceneError, match=told):
            tf.Scene.from_dict({"name": "any", "domain": {"resolution": 8, "size": [1.0, 1.0]}, **values})


@pytest.mark.parametrize(
    ("sides", "told"),
    [
        ([["outflow", "open"], TOP_OPEN], "domain.boundaries.0.0 is 'outflow'"),
        ([["outflow", "open"], TOP_OPEN], "has sides that are closed, open, periodic, or inflows"),
        ([[inflow(-1.0, 0.0), "open"], TOP_OPEN], "flows in there, and leaves through open sides"),
        ([["free-slip", "open"], ["free-slip", inflow(0.0, 1.0)]], "boundaries[1][1].velocity leads out of the box at 1 m/s"),
        ([[inflow("y - 0.23125", 0.0), "open"], TOP_OPEN], "boundaries[0][0].velocity leads out of the box at 0.2 m/s"),
        ([[inflow("sqrt(y - 0.5)", 0.0), "open"], TOP_OPEN], "is not a number of at most 1e+06 m/s everywhere at time 0"),
        ([[{"kind": "open", "parts": [{"lower": [0.1], "upper": [0.5], "kind": "outflow"}]}, "open"], TOP_OPEN], "parts[0] is 'outflow'"),
        ([[{**inflow(1.0, 0.0), "values": {"smoke": 1.0}}, "open"], TOP_OPEN], "domain.boundaries.0.0"),
    ],
)  # fmt: skip
def test_what_a_side_of_a_liquid_cannot_be_is_refused_in_a_sentence(sides, told):
    with pytest.raises(SceneError) as caught:
        water([1.0, 1.0], 16, [([0.0, 0.0], [0.4, 0.6])]).with_values({"domain.boundaries": sides})
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("side", ["no-slip", "free-slip"])
def test_what_flows_in_is_as_much_as_the_inflow_says(side):
    """In a channel that is full, with short steps: beside walls that hold it there was no room for the next row, and 4 % too little."""
    domain = {"boundaries": [[inflow(0.5, 0.0), "open"], [side, side]]}
    tables = {"solver": {"dt": 0.01}, "fluid": {"viscosity": 0.05, "gravity": [0.0, 0.0]}, "domain": domain}
    simulation = tf.Simulation(water([2.0, 0.5], 48, [([0.0, 0.0], [2.0, 0.5])], **tables))
    simulation.advance(0.5)
    means = []
    for _ in range(60):
        simulation.step()
        means.append(simulation.to_numpy("velocity")[0].mean(axis=1) / 0.5)
    assert np.mean(means, axis=0) == pytest.approx(1.0, abs=0.03), "what passes each cut through the channel"
    assert abs(simulation.liquid.particles.count / (9 * 48 * 12) - 1) < 0.01


@pytest.mark.parametrize("dim", [2, 3])
def test_what_is_thick_enters_calmly_through_a_part_of_a_side_that_slips(dim):
    """An inflow holds what flows in along it too, and friction was solved for as if it slipped there: 89 m/s, a step like any."""
    part = {**inflow(0.16, 0.0, *[0.0] * (dim - 2)), "lower": [0.0] * (dim - 1), "upper": [0.1] * (dim - 1)}
    slip = ["free-slip", "free-slip"]
    sides = [[{"kind": "free-slip", "parts": [part]}, "open"], ["free-slip", "open"], slip][:dim]
    tables = {
        "solver": {"dt": 0.004},
        "fluid": {"viscosity": 0.5, "gravity": [0.0] * dim},
        "domain": {"boundaries": sides},
    }
    size = [0.4, 0.2, 0.2][:dim]
    simulation = tf.Simulation(water(size, 32, [([0.0] * dim, [0.4, 0.1, 0.1][:dim])], **tables))
    for _ in range(15):
        simulation.step()
    # It comes to rest where nothing pushes it but what flows in.
    assert np.abs(simulation.liquid.particles.to_numpy()["velocity"]).max() < 0.2


def test_an_inflow_beside_a_solid_owes_what_passes_it():
    """A side that a block covers in part: what is behind that comes in nowhere."""
    block = {"shape": "box", "center": [0.1, 0.25], "size": [0.3, 0.5]}
    tables = {"domain": {"boundaries": [[inflow(0.3, 0.0), "free-slip"], TOP_OPEN]}, "solids": [block]}
    simulation = tf.Simulation(water([1.0, 1.0], 32, [], **tables))
    simulation.advance(0.8)
    poured = simulation.liquid.target * simulation.grid.cell_volume / 9
    # Half of the side, and a row of the lattice more or less.
    assert poured == pytest.approx(0.3 * 0.5 * 0.8, abs=0.5 * simulation.grid.dx / 3 * 1.5)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("shape", ["box", "sphere", "cylinder"])
def test_a_source_pours_as_much_as_its_opening_lets_through(shape, dim):
    """Whole lines of a lattice of cells were in it: of 2.6 by 2.6 cells 1.29 and 0.96, of a ball of 1.5 cells 0.59 of what there is."""
    cells, speed, wrong = 24, 1.0, []
    for width, off in itertools.product((1.5, 2.6, 6.4), (0.0, 0.3)):
        middle, edge = np.array([0.2, *[0.25] * (dim - 1)]) + off / cells, width / cells
        area = edge ** (dim - 1) if shape == "box" or dim == 2 else np.pi / 4 * edge**2
        source, content = {"shape": shape, "velocity": [speed, *[0.0] * (dim - 1)]}, 0.2 * area
        if shape == "box":
            source |= {"center": list(middle), "size": [0.2, *[edge] * (dim - 1)]}
        elif shape == "sphere":
            source |= {"center": list(middle), "radius": edge / 2}
            content = np.pi / 4 * edge**2 if dim == 2 else np.pi / 6 * edge**3
        else:
            ends = [[middle[0] + way, *middle[1:]] for way in (-0.1, 0.1)]
            source |= {"ends": ends, "radius": edge / 2}
        scene = water([1.0, *[0.5] * (dim - 1)], cells, sources=[source]).with_values({"fluid.gravity": [0.0] * dim})
        simulation = tf.Simulation(scene)
        simulation.advance(0.2)
        early = simulation.liquid.volume
        simulation.advance(0.3)
        found = early / (content + 0.2 * speed * area), (simulation.liquid.volume - early) / (0.3 * speed * area)
        # In 0.3 s 14 to 22 rows come out, a row more or less; a small ball has few lines, and they are of different lengths.
        if not (0.94 < found[0] < 1.05 and 0.96 < found[1] < 1.04):
            wrong.append((width, off, found))
    assert not wrong


def test_a_source_at_rest_or_that_moves_fills_what_it_covers():
    """In a lattice of cells, which is where it was when the source goes on."""
    source = {"shape": "box", "center": [0.3, 0.5], "size": [0.125, 0.25], "velocity": [0.0, 0.0], "end": 0.05}
    still = tf.Simulation(water([1.0, 1.0], 32, sources=[source]).with_values({"fluid.gravity": [0.0, 0.0]}))
    still.advance(0.1)
    assert still.liquid.particles.count == 9 * 4 * 8
    goes = {**source, "path": ["t", 0.0], "end": 0.3}
    moving = tf.Simulation(water([1.0, 1.0], 32, sources=[goes]).with_values({"fluid.gravity": [0.0, 0.0]}))
    moving.advance(0.4)
    # A column of the lattice, of 96 a metre, more or less at both ends, and the step that began before its end.
    assert moving.liquid.volume == pytest.approx(0.25 * (0.125 + 0.3), abs=0.25 * 3 / 96)


def opening(kind, lower, upper, around="free-slip"):
    """A side, or a part of it of another ``kind`` than what is ``around``."""
    return {"kind": around, "parts": [{"kind": kind, "lower": lower, "upper": upper}]}


@pytest.mark.parametrize("solids", [[], [{"shape": "box", "center": [0.6, 0.1], "size": [0.2, 0.2]}]])
@pytest.mark.parametrize(
    "side",
    [
        opening("open", [0.625], [0.875]),
        opening("free-slip", [0.0], [0.5625], around="open"),
        opening("inflow", [0.75], [0.875]) | {"parts": [{"lower": [0.75], "upper": [0.875], **inflow(0.0, 0.0)}]},
    ],
    ids=["a hole in a wall", "a wall below an opening", "an inflow that rests"],
)
def test_a_pool_stays_at_rest_behind_a_wall_that_is_one_only_as_high_as_that(side, solids):
    scene = water([1.0, 1.0], 32, [([0.0, 0.0], [1.0, 0.5])], solids=solids)
    simulation = tf.Simulation(scene.with_values({"domain.boundaries": [[side, "free-slip"], TOP_OPEN]}))
    count = simulation.liquid.particles.count
    for _ in range(100):
        simulation.step()
    assert fastest(simulation) < 1e-4 * np.sqrt(9.81 * 0.5)
    assert simulation.liquid.particles.count == count
    depth = 0.5 - (np.arange(14) + 0.5) / 32
    wrong = simulation.to_numpy("pressure")[20:, :14] / (9810.0 * depth) - 1.0
    wrong[simulation.to_numpy("fluid")[20:, :14] == 0 if solids else np.zeros_like(wrong, bool)] = 0.0
    assert np.abs(wrong).max() < 1e-4


HOLES = {
    "a floor": ([1.0, 1.0], 32, [["free-slip"] * 2, [opening("open", [0.4375], [0.5625]), "open"]], 0.125, 0.0),
    "a wall": ([1.0, 1.0], 32, [["free-slip", opening("open", [0.25], [0.375])], TOP_OPEN], 0.125, 0.3125),
    "a wall in 3D": (
        [1.0, 1.0, 0.5],
        24,
        [[opening("open", [0.25, 0.125], [0.375, 0.375]), "free-slip"], TOP_OPEN, ["free-slip"] * 2],
        0.03125,
        0.3125,
    ),
}


@pytest.mark.parametrize(
    "more", [{}, {"liquid": {"band": 3, "transfer": "flip"}}, {"fluid": {"viscosity": 1e-4}}], ids=str
)
@pytest.mark.parametrize("where", HOLES)
def test_a_tank_drains_through_a_hole_in_a_side_and_nowhere_else(where, more):
    """By Torricelli's speed, through 0.71 of the hole: the jet contracts up to where the pressure is 0, and that is on the side."""
    size, cells, sides, area, height = HOLES[where]
    dim = len(size)
    scene = water(size, cells, [([0.0] * dim, [1.0, 0.8, 0.5][:dim])], **more)
    simulation = tf.Simulation(scene.with_values({"domain.boundaries": sides}))
    simulation.advance(0.3)
    volume, floor = simulation.liquid.volume, float(np.prod(size)) / size[1]
    simulation.advance(0.3)
    head = (volume + simulation.liquid.volume) / 2 / floor - height
    flow = (volume - simulation.liquid.volume) / 0.3 / area / np.sqrt(2 * 9.81 * head)
    # Of 4 cells in 2D 0.68 to 0.71, of 3 by 6 in 3D 0.66 to 0.68, by FLIP 0.62 to 0.65.
    assert 0.61 < flow < 0.76
    assert abs(simulation.liquid.lacking) < 0.005 * simulation.liquid.target


def test_as_much_runs_out_through_an_open_side_at_any_step():
    """Faces on the side set to those inside, once more in every step, held a pool back: 0.129 and 0.085 m² at 0.01 and 0.0005 s."""
    left = []
    for dt in (0.01, 0.001):
        scene = water([1.0, 1.0], 32, [([0.0, 0.0], [1.0, 0.5])], solver={"max_dt": dt})
        simulation = tf.Simulation(scene.with_values({"domain.boundaries": [["free-slip", "open"], ["free-slip"] * 2]}))
        simulation.advance(0.3)
        left.append(simulation.liquid.volume)
    # A row of particles more or less, and what a time step of first order makes of it.
    assert left[0] == pytest.approx(left[1], rel=0.01)
    assert left[0] < 0.42


def test_what_is_left_of_a_tank_that_drains_is_what_has_not_run_out():
    """With a core too: what that has left was sought along the faster velocity after the step, and found twice (3.6 % too much)."""
    box = [1.0, 0.75, 0.85]
    scene = water(box, 20, [([0.0] * 3, [1.0, 0.5, 0.8])], liquid={"band": 3, "transfer": "flip"})
    sides = [["open"] * 2, ["free-slip", "open"], ["free-slip"] * 2]
    simulation = tf.Simulation(scene.with_values({"domain.boundaries": sides}))
    simulation.advance(0.5)
    liquid = simulation.liquid
    assert liquid.core.cells > 0
    # From 0.46 to 0.52 m high it has 0.002 to 0.019 too much, by either transfer: a core that closes over gaps.
    assert abs(liquid.lacking) < 0.02 * liquid.target


def test_a_spout_fills_a_closed_tank_as_long_as_there_is_air():
    """It was refused as of a gas: more flows in than out. When it is full that is said, as of a source."""
    scene = water([1.0, 0.5], 32, [([0.0, 0.0], [1.0, 0.25])])
    sides = [[spout([0.3125], [0.4375], 1.0, 0.0), "free-slip"], ["free-slip"] * 2]
    simulation = tf.Simulation(scene.with_values({"domain.boundaries": sides}))
    simulation.advance(1.0)
    assert simulation.liquid.volume == pytest.approx(0.25 + 0.125, rel=0.02)
    assert fastest(simulation) < 4.0
    assert not simulation.remarks
    while simulation.overfull is None and simulation.time < 2.5:
        simulation.step()
    # And that something comes into a region from which nothing leaves.
    assert "more liquid has been poured than the box holds" in simulation.remarks[-1]
    with pytest.raises(SceneError, match="more flows in than out through"):
        tf.Scene.from_dict(
            {"name": "gas", "domain": {"size": [1.0, 0.5], "resolution": 32, "boundaries": sides}},
        )


def test_what_flows_in_gently_makes_no_noise():
    """A row of particles comes in at a time: cells that took half a row for lacking swallowed up to two thirds of what flows in.

    At a place within a tank that drains below a gate the pressure, of some 4 kPa, jumped by 163 Pa from step to step, and
    by 814 once; now by 10, and 70.
    """
    gate = [{"shape": "box", "center": [1.025, 1.05], "size": [0.05, 1.9]}]
    sides = [[{"kind": "free-slip", "parts": [{"lower": [0.0], "upper": [0.3], **inflow(0.1, 0.0)}]}, "open"]]
    tank = water([2.0, 1.0], 50, [([0, 0], [1.0, 0.5])], solids=gate)
    simulation = tf.Simulation(tank.with_values({"domain.boundaries": [*sides, ["free-slip", "free-slip"]]}))
    found = []
    for _ in range(125):
        simulation.step(0.008)
        found.append(float(simulation.to_numpy("pressure")[10, 2]))
    around = [np.median(found[max(i - 4, 0) : i + 5]) for i in range(len(found))]
    assert np.std(np.subtract(found, around)[20:]) < 30


def test_a_jet_that_meets_a_wall_has_no_air_in_it():
    """Where it is slowest it draws its particles into lines: air opened between them for two steps, and sucked, and the wall bore 0.02 to 2.7.

    Half of the square of the speed is the pressure there, and more where the jet comes through a wall so near.
    """
    sides = [[spout([0.65], [1.35], 1.0, 0.0), "free-slip"], ["open", "open"]]
    tables = {"fluid": {"gravity": [0.0, 0.0]}, "domain": {"boundaries": sides}}
    simulation = tf.Simulation(water([1.0, 2.0], 48, [([0.0, 0.65], [1.0, 1.35])], **tables))
    simulation.advance(1.0)
    for _ in range(16):
        simulation.step()
        assert (simulation.to_numpy("level set")[:, 20:28] < 0).all()
        assert 0.8 < simulation.to_numpy("pressure")[-1, 22:26].mean() / 500.0 < 1.8


def test_what_fills_a_box_to_the_last_does_not_shoot_into_what_is_left_of_the_air():
    """A source keeps that from being filled; all that had come in too much went there in each step, by 2e9 m/s after 120 of them."""
    source = {"shape": "sphere", "center": [0.574, 0.145], "radius": 0.13, "velocity": [0.3, 0.3]}
    domain = {"boundaries": [[inflow(0.7, 0.0), "free-slip"], ["free-slip", "free-slip"]]}
    tables = {"fluid": {"gravity": [-8.0, 8.4]}, "sources": [source], "domain": domain}
    simulation = tf.Simulation(water([1.0, 0.75], 32, [([0.0, 0.0], [1.0, 0.7])], **tables))
    for _ in range(60):
        simulation.step()
        assert fastest(simulation) < 15.0
    assert simulation.time > 0.4, "steps stay as long as that is fast"
