"""What of a scene has no effect where it stands is said, and nothing of one that has."""

import itertools

import pytest
from scenes_for_tests import burner, scene

import taichi_fluid as tf
from taichi_fluid.validation.water import water
from taichi_fluid.viewer.session import Session

BURIED = {
    "sphere": {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.1},
    "capsule": {"shape": "capsule", "ends": [[0.4, 0.5], [0.6, 0.5]], "radius": 0.05},
    "box": {"shape": "box", "center": [0.5, 0.5], "size": [0.2, 0.1]},
}
BALL = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.25}


def room(sources, solids=(), **more):
    """A box of air with sources and solids in it."""
    return scene((24, 24), 1 / 24, sources=sources, **more).with_values({"solids": list(solids)})


def remarks(sources, solids=(), **more):
    return tf.Simulation(room(sources, solids, **more)).remarks


@pytest.mark.parametrize("shape", BURIED)
def test_a_source_in_a_solid_does_nothing(shape):
    """One that a cell sticks out of acts; so may one that a solid covers which goes away, or that goes on beyond a side."""
    source = {**BURIED[shape], "smoke": 1.0}
    (said,) = remarks([burner(2), source], [BALL])
    assert said == "sources[1] lies in a solid with all that it covers: it does nothing."
    assert remarks([source], [{**BALL, "center": [0.7, 0.5]}]) == ()
    assert remarks([source], [{**BALL, "velocity": [0.1, 0.0]}]) == ()
    assert remarks([source]) == ()
    around = {**source, "center": [1.0, 0.5], "ends": [[0.95, 0.5], [1.05, 0.5]]}
    around = {key: around[key] for key in source}
    half = {"shape": "box", "center": [0.9, 0.5], "size": [0.4, 0.6]}
    assert len(remarks([around], [half])) == 1
    assert remarks([around], [half], boundaries=[["periodic"] * 2, ["no-slip"] * 2]) == ()


def test_what_a_source_covers_is_what_it_brings_in():
    """Beside the exact answer, what has come in, for balls that stick out of a box by a little and by nothing."""
    wall = {"shape": "box", "center": [0.25, 0.5], "size": [0.5, 1.2]}
    for x in (0.37, 0.39, 0.41, 0.43, 0.45):
        source = {"shape": "sphere", "center": [x, 0.5], "radius": 0.1, "smoke": 1.0}
        flow = tf.Simulation(room([source], [wall]))
        silent = flow.remarks == ()
        flow.step(0.01)
        assert silent == bool(flow.to_numpy("smoke").any()), x


def test_an_edge_that_is_far_from_a_whole_cell():
    """Every edge has one cell at least, and a box is so wide."""
    for edge, said in (
        (1e-3, ("domain.size[1] is 0.001 m, less than half a cell: the box is 62.5 m wide there.",)),
        (40, ()),
    ):
        made = room([]).with_values({"domain.size": [2000.0, edge], "domain.resolution": 32})
        assert tf.Simulation(made).remarks == said


def test_a_solid_that_holds_a_value_in_no_cell():
    """Cells are 0.042 m wide: of a plate half as thick no cell knows what it holds, wherever it is; the flow then has none."""
    for thickness, y in itertools.product((0.02, 0.08), (0.49, 0.5, 0.51)):
        plates = [
            {"shape": "box", "center": [0.5, height], "size": [0.5, thick], "temperature": 1.0}
            for height, thick in ((y, thickness), (0.8, 0.1))
        ]
        made = room([], plates, fluid={"heat_diffusion": 1e-2}).with_values({"solids.1.temperature": 0.0})
        flow = tf.Simulation(made)
        flow.step(0.01)
        held = [
            said for said in flow.remarks if said.startswith("solids[0] holds no temperature: the centre of no cell")
        ]
        assert bool(held) == (not flow.to_numpy("temperature").any()), (thickness, y)
        assert len(flow.remarks) == len(held) + (thickness < 1 / 24)


def test_solids_thinner_than_a_cell():
    """Across a face one is a wall, within a cell it lets all pass; one that stands on a side is as thick as the world beyond that."""
    thin = {"shape": "box", "center": [0.5, 0.5], "size": [0.6, 0.03]}
    rod = {"shape": "capsule", "ends": [[0.2, 0.2], [0.4, 0.2]], "radius": 0.01, "swing": [0.1, 0.0]}
    (said,) = remarks([burner(2)], [thin, BALL, rod])
    assert said == (
        "solids[0], solids[2] are thinner than a cell, which is 0.0417 m wide: what that stops depends on how it lies within the "
        "cells."
    )
    assert remarks([burner(2)], [{**thin, "size": [0.6, 1 / 24]}]) == ()
    assert remarks([burner(2)], [{**thin, "center": [0.5, 0.99], "size": [0.6, 0.02]}]) == ()


def test_solids_that_fill_the_box():
    (said,) = remarks([burner(2)], [{**BALL, "radius": 2.0}])
    assert said == "the solids leave no cell of the box free: nothing flows."


@pytest.mark.parametrize(
    "body",
    [
        {"shape": "sphere", "center": [0.5, 0.9], "radius": 0.004},
        {"shape": "sphere", "center": [0.3, 0.3], "radius": 0.1},
        {"shape": "sphere", "center": [0.8, 0.8], "radius": 0.08},
    ],
    ids=["too small", "in another", "in a solid"],
)
def test_a_body_that_brings_in_no_liquid(body):
    pool, solid = ([0.0, 0.0], [1.0, 0.5]), {"shape": "sphere", "center": [0.8, 0.8], "radius": 0.12}
    made = water([1.0, 1.0], 16, [pool], solids=[solid])
    values = made.model_dump(mode="json", exclude_none=True)
    values["liquid"]["bodies"].append(body)
    (said,) = tf.Simulation(tf.Scene.from_dict(values)).remarks
    assert said.startswith("liquid.bodies[1] brings in no liquid") and "0.0625 m" in said
    assert tf.Simulation(made).remarks == ()


def test_more_liquid_than_a_box_holds(tmp_path):
    """Said by the flow, and by a window as it happens; a source that ends in time fills the box and is not spoken of."""
    tap = {"shape": "box", "center": [0.5, 0.9], "size": [0.5, 0.15], "velocity": [0.0, -1.0]}
    nearly = water([1.0, 1.0], 16, [([0.0, 0.0], [1.0, 0.8])], sources=[tap])
    session = Session(nearly, tmp_path, size=(32, 32))
    while session.simulation.overfull is None and session.simulation.time < 2.0:
        session.advance(9.0, 1 / 30)
    (said,) = session.simulation.remarks
    assert said.startswith("since t = ") and "more liquid has been poured than the box holds" in said
    assert session.message == said and session.alarm
    session.reset()
    assert session.simulation.remarks == ()
    session.close()

    full = tf.Simulation(water([1.0, 1.0], 16, [([0.0, 0.0], [1.0, 1.0])]))
    full.step()
    assert full.remarks == ()


def test_a_window_says_them_as_it_opens(tmp_path):
    session = Session(room([{**BURIED["sphere"], "smoke": 1.0}], [BALL]), tmp_path, size=(32, 32))
    assert "sources[0] lies in a solid" in session.message and session.alarm
    session.close()


def test_a_sealed_region_that_is_filled_or_emptied_is_remarked_on():
    """Its divergence is what it is, and the pressure says that it has converged: nothing else tells whoever steps it in Python."""
    divider = {"shape": "box", "center": [0.5, 0.5], "size": [0.1, 1.2]}
    tables = {
        "domain": {"size": [1.0, 1.0], "resolution": 16, "boundaries": [["free-slip", "open"], ["free-slip"] * 2]}
    }
    piston = {**divider, "velocity": [0.2, 0.0]}
    for solids, sealed in (([divider], False), ([piston], True)):
        simulation = tf.Simulation(tf.Scene.from_dict({"name": "piston", **tables, "solids": solids}))
        simulation.advance(0.1)
        said = [remark for remark in simulation.remarks if "without a way out" in remark]
        assert bool(said) is sealed
        if sealed:
            assert said[0].startswith(f"since t = {simulation.unbalanced:.3g} s")
    simulation.reset()
    assert simulation.unbalanced is None


@pytest.mark.parametrize(("band", "said"), [(0, ()), (1, ("liquid.band is 1, which counts as 3.",)), (3, ())])
def test_a_narrow_band_counts_as_a_wider_one(band, said):
    assert water([1.0, 1.0], 16, [([0.0, 0.0], [1.0, 0.5])], liquid={"band": band}).remarks == said
