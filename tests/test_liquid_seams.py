"""A liquid in a box with periodic axes: it does not know where their seams are."""

import math

import numpy as np
import pytest

import taichi_fluid as tf
from taichi_fluid.validation.water import fastest, water

DX = 1 / 16
SIDES = [["periodic"] * 2, ["no-slip", "free-slip"], ["periodic"] * 2]


def moved(dim, cells, *, everything=False, steps=6, **tables):
    """The distance to the surface, in cells, how many particles there are and what a solid bears: of a pool that a block falls into.

    All of it lies so many cells farther along the periodic axes than it would; with ``everything`` a solid, a source and a sink too.
    """
    away = np.array([cells * DX, 0.0, cells * DX])
    size = np.array([1.0, 1.0, 1.0])[:dim]

    def at(*place):
        return ((np.array(place) + away)[:dim] % size).tolist()

    pool = {"shape": "box", "center": [0.5, 0.125, 0.5][:dim], "size": [1.0, 0.25, 1.0][:dim]}
    block = {"shape": "box", "center": at(0.53125, 0.4375, 0.5), "size": [0.25, 0.3125, 0.25][:dim]}
    values = {"liquid": {"bodies": [pool, {**block, "velocity": [1.5, 0.0, -0.5][:dim]}], **tables.pop("liquid", {})}}
    if everything:
        ball = {"shape": "sphere", "center": at(0.2, 0.25, 0.5), "radius": 0.17}
        values["solids"] = [{**ball, "velocity": [1.0, 0.0, 0.0][:dim]}]
        jet = {"shape": "sphere", "center": at(0.8, 0.8, 0.5), "radius": 0.1}
        hole = {"shape": "sphere", "center": at(0.55, 0.02, 0.5), "radius": 0.08, "sink": True}
        values["sources"] = [{**jet, "velocity": [1.0, -2.0, 0.0][:dim]}, hole]
    domain = {"boundaries": SIDES[:dim]}
    scene = water(size, 16, domain=domain, solver={"dt": 0.005, "tolerance": 1e-6}, **values, **tables)
    simulation = tf.Simulation(scene)
    for _ in range(steps):
        simulation.step()
    phi = simulation.to_numpy("level set") / simulation.grid.dx
    back = (-cells, 0, -cells)[:dim]
    loads = [simulation.solids.load(0)] if everything else []
    bears = [part for load in loads for part in (load.pressure, load.friction)]
    return np.roll(phi, back, range(dim)), len(simulation.liquid.particles.to_numpy()["position"]), np.array(bears)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize(
    "tables",
    [
        {"fluid": {"viscosity": 0.05}},
        {"liquid": {"surface_tension": 5.0}},
        # The kernels of the others are in these, and in a round drop.
        pytest.param({"everything": True, "liquid": {"transfer": "flip"}}, marks=pytest.mark.vulkan_too(dim=2)),
        pytest.param({"everything": True, "fluid": {"viscosity": 0.02}}, marks=pytest.mark.vulkan_too(dim=2)),
    ],
    ids=["viscous", "with tension", "everything, by FLIP", "everything, viscous"],
)
def test_a_liquid_does_not_know_where_its_seams_are(dim, tables):
    """Moved around the box by whole cells, so that all of it lies across seams, it does the same to rounding."""
    here, count, load = moved(dim, 0, **tables)
    there, other, moved_load = moved(dim, 7, **tables)
    assert count == other
    # Rounding grows where liquid meets solids; what a seam did would be hundredths of a cell at least.
    assert np.abs(here - there).max() < 1e-3
    assert moved_load == pytest.approx(load, abs=1e-3 * np.abs(load).max(initial=0.0))


def rolled(cells, *, steps, dt=0.01, **tables):
    """The distance to the surface after some steps, in cells, rolled back by as many along the first axis."""
    simulation = tf.Simulation(water([1.0, 1.0], 16, solver={"dt": dt, "tolerance": 1e-6}, **tables))
    for _ in range(steps):
        simulation.step()
    loads = None if simulation.solids is None else np.array(simulation.solids.load(0).pressure)
    return np.roll(np.clip(simulation.to_numpy("level set") / simulation.grid.dx, -1, 1), -cells, 0), loads


@pytest.mark.parametrize("cells", [5, 8])
def test_steps_of_several_cells_cross_seams(cells):
    """What is halfway lies beyond a seam too."""

    def drop(away):
        ball = {"shape": "sphere", "center": [(0.5 + away * DX) % 1.0, 0.5], "radius": 0.3, "velocity": [1.0, 0.5]}
        return rolled(
            away,
            steps=2,
            dt=0.2,
            domain={"boundaries": "periodic"},
            fluid={"gravity": [0.0, 0.0]},
            liquid={"bodies": [ball]},
        )[0]

    assert np.abs(drop(0) - drop(cells)).max() < 1e-3


@pytest.mark.parametrize("cells", [5, 8])
def test_a_level_set_is_steep_on_seams_too(cells):
    """So that it begins as it does elsewhere."""

    def wave(away):
        level = {"level_set": f"y - 0.4 - 0.2 * sin({2 * math.pi} * (x - {away * DX}))"}
        return rolled(away, steps=2, domain={"boundaries": SIDES[:2]}, liquid={"bodies": []}, initial=level)[0]

    assert np.abs(wave(0) - wave(cells)).max() < 1e-4


@pytest.mark.parametrize("speed", [0.0, -0.5])
def test_a_bar_as_long_as_an_axis_has_no_ends(speed):
    """It bears what a longer one does, wherever its middle is."""

    def bar(away, length):
        solid = {"shape": "box", "center": [0.5 + away * DX, 0.4], "size": [length, 0.2], "velocity": [0.0, speed]}
        pool = {"shape": "box", "center": [0.5, 0.25], "size": [1.0, 0.5]}
        return rolled(away, steps=4, domain={"boundaries": SIDES[:2]}, liquid={"bodies": [pool]}, solids=[solid])[1]

    wanted = bar(0, 1.5)
    assert bar(6, 1.0) == pytest.approx(wanted, abs=1e-3 * np.abs(wanted).max())


def test_a_source_that_has_gone_around_pours_on():
    """Also where it is several boxes away, and where a core of the liquid would reach across a seam to it."""

    def poured(path, x=0.3, band=0):
        source = {"shape": "sphere", "center": [x, 0.3], "radius": 0.2, "velocity": [0.0, 1.5], "path": [path, "0"]}
        simulation = tf.Simulation(
            water([1.0, 1.0], 48, [([0.0, 0.0], [1.0, 0.8])], domain={"boundaries": SIDES[:2]}, sources=[source],
                  liquid={"band": band}, solver={"dt": 0.005})
        )  # fmt: skip
        for _ in range(3):
            simulation.step()
        if not band:
            return simulation.liquid.particles.count
        x, y = simulation.grid.cell_centres()
        core = simulation.liquid.core.marks.to_numpy().reshape(50, 50)[1:-1, 1:-1]
        return core[np.hypot((x - source["center"][0] + 0.5) % 1.0 - 0.5, y - 0.3) < 0.2].sum()

    assert poured("0") == poured("7")
    assert poured("0", 0.02, band=3) == 0


@pytest.mark.parametrize("cells", [0, 5])
def test_a_drop_that_flies_comes_back_on_the_other_side(cells):
    """At its velocity, with all of its liquid, as round as it was; also when it begins on the seam."""
    place = [(0.5 + cells * 1.7 * DX) % 1.0, 0.5]
    body = {"shape": "sphere", "center": place, "radius": 0.2, "velocity": [1.0, 0.0]}
    scene = water(
        [1.0, 1.0], 32, domain={"boundaries": SIDES[:2]}, fluid={"gravity": [0.0, 0.0]}, liquid={"bodies": [body]}
    )
    simulation = tf.Simulation(scene)
    before = simulation.liquid.particles.to_numpy()["position"]
    for _ in range(40):
        simulation.step(0.025)
    after = simulation.liquid.particles.to_numpy()
    assert len(after["position"]) == len(before)
    assert np.abs(after["velocity"] - [1.0, 0.0]).max() < 1e-5
    # Once around the box: as sums of waves, to which no seam is any place.
    turns = [np.exp(2j * np.pi * x[:, 0]).mean() for x in (before, after["position"])]
    assert abs(turns[1] - turns[0]) < 1e-4


@pytest.mark.parametrize("dim", [2, 3])
def test_a_pool_without_ends_is_at_rest(dim):
    """Its pressure is hydrostatic on the seam too."""
    simulation = tf.Simulation(
        water([1.0] * dim, 16, [([0.0] * dim, [1.0, 0.413, 1.0][:dim])], domain={"boundaries": SIDES[:dim]})
    )
    for _ in range(100):
        simulation.step(0.01)
    assert fastest(simulation) < 1e-5 * math.sqrt(9.81 * 0.413)
    depth = -simulation.to_numpy("level set")[:, :4].take([0, -1], 0)
    pressure = simulation.to_numpy("pressure")[:, :4].take([0, -1], 0)
    assert pressure == pytest.approx(np.broadcast_to(pressure.mean(axis=0), pressure.shape), rel=1e-4)
    assert depth.min() > 0


@pytest.mark.parametrize("method", ["auto", "multigrid-cg", "cg"])
def test_the_pressure_of_a_liquid_goes_on_across_seams(method):
    """Odd numbers of cells too, of which coarse grids do not line up there."""
    for cells in (15, 16):
        scene = water(
            [1.0, 1.0],
            cells,
            [([0.0, 0.0], [1.0, 0.3]), ([0.8, 0.3], [1.0, 0.6])],
            domain={"boundaries": SIDES[:2]},
            solver={"pressure": method},
        )
        simulation = tf.Simulation(scene)
        simulation.step(0.005)
        assert simulation.pressure_result.relative_residual < 1e-4
        assert simulation.pressure_result.iterations < 60


def test_foam_and_what_comes_in_through_another_side_cross_seams():
    """All of it stays in the box, and none is lost."""
    inflow = {"kind": "inflow", "velocity": [1.5, 0.0, 0.7]}
    scene = water(
        [1.0, 0.5, 0.5], 16, [([0.0, 0.0, 0.0], [1.0, 0.1, 0.5])],
        domain={"boundaries": [[{"kind": "free-slip", "parts": [{"lower": [0.2, 0.0], "upper": [0.3, 0.5], **inflow}]}, "open"], ["free-slip", "open"], ["periodic"] * 2]},
        liquid={"foam": 1.0, "foam_speed": 0.5},
    )  # fmt: skip
    simulation = tf.Simulation(scene)
    simulation.advance(0.3)
    for particles in (simulation.liquid.particles, simulation.liquid.foam.particles):
        position = particles.to_numpy()["position"]
        assert len(position) > 0
        assert position.min() >= 0
        assert (position <= [1.0, 0.5, 0.5]).all()
    assert simulation.liquid.particles.lost == 0
    assert simulation.liquid.inlets.each
