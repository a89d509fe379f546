"""One scene on both grids: what a scene asks for, and both in one picture."""

import numpy as np
import pytest
from scenes_for_tests import burner, plume, scene

from taichi_fluid.render import label
from taichi_fluid.render.image import Image
from taichi_fluid.render.renderer import Renderer
from taichi_fluid.render.side_by_side import SideBySide, half_width, pictures_of
from taichi_fluid.scene import Scene, SceneError, bytes_needed, preset
from taichi_fluid.simulation import Simulation, Stage
from taichi_fluid.simulation.comparison import GRIDS, Comparison, flow_of, left_in, own_of, simulations_of
from taichi_fluid.simulation.flow import TooManySteps

VIEWS = ["volume", "slice", "sheets", "arrows", "tracers"]


def both(dim, **changes) -> Scene:
    """A plume on both grids, in a picture of 400 x 180."""
    made = plume(3, 12) if dim == 3 else scene((15, 20), 0.05, sources=[burner(2)])
    picture = {"output.width": 400, "output.height": 180, "look.tracers": 500}
    return made.with_values({"look.compare": True, **picture, **changes})


def test_a_scene_asks_for_one_grid_or_for_both(dim):
    one = flow_of(both(dim, **{"look.compare": False}))
    assert isinstance(one, Simulation) and own_of(one) is one
    assert isinstance(pictures_of(one), Renderer) and simulations_of(one) == {"staggered": one}
    for grid in GRIDS:
        two = flow_of(both(dim, **{"domain.grid": grid}))
        assert isinstance(two, Comparison) and isinstance(pictures_of(two), SideBySide)
        assert list(simulations_of(two)) == list(GRIDS)
        assert own_of(two).scene.domain.grid == grid == two.scene.domain.grid


def test_solids_stand_on_one_grid_only():
    with pytest.raises(SceneError, match=r"look\.compare is true, which shows the collocated grid too, .* no solids"):
        both(2, solids=[{"shape": "sphere", "center": [0.5, 0.5], "radius": 0.1}])
    one, two = (Simulation(both(2, **{"look.compare": False})) for _ in range(2))
    with pytest.raises(ValueError, match="both simulations are on the staggered grid"):
        Comparison(one, two)


def test_memory_is_counted_for_both():
    assert bytes_needed(both(3)) == 2 * bytes_needed(both(3, **{"look.compare": False}))


def test_what_is_left_is_measured(dim):
    flow = flow_of(both(dim))
    assert left_in(flow.own).part == 0.0, "a fluid at rest"
    flow.advance(0.3)
    for simulation in (flow.own, flow.other):
        left = left_in(simulation)
        divergence = simulation.grid.array()
        simulation.diagnostics.compute_divergence(simulation.state.velocity.current, divergence)
        values = simulation.grid.to_numpy(divergence)
        speed = float(np.abs(simulation.to_numpy("velocity")).max())
        # Differences of velocities in f32, summed in another order.
        rounding = 2e-7 * speed / simulation.grid.dx
        assert left.max == pytest.approx(np.abs(values).max(), rel=1e-5, abs=rounding)
        assert left.rms == pytest.approx(np.sqrt((values.astype(float) ** 2).mean()), rel=1e-4, abs=rounding)
        assert left.part == pytest.approx(left.max * simulation.grid.dx / speed, rel=1e-6)
    assert left_in(flow.own).max < 0.01 * left_in(flow.other).max


def test_a_duration_is_the_same_steps_for_both(dim):
    flow = flow_of(both(dim))
    steps = flow.advance(0.37, timed=True)
    assert flow.own.time == flow.other.time == pytest.approx(0.37, rel=1e-12)
    assert flow.own.steps == flow.other.steps == len(steps)
    assert all(list(step.stage_ms) == list(GRIDS) for step in steps)
    assert flow.step(0.01).dt == 0.01 and flow.own.time == flow.other.time


def test_a_step_that_breaks_off_on_one_grid_stops_both():
    """The staggered one has made its step already: they would go on side by side at two times."""
    flow = flow_of(both(2))
    collocated = flow.simulations["collocated"]
    accident = Stage("accident", lambda simulation, dt: 1 / 0)
    collocated.stages.insert(2, accident)
    with pytest.raises(ZeroDivisionError):
        flow.step()
    collocated.stages.remove(accident)
    for begin in (flow.step, lambda: flow.advance(0.1), lambda: next(flow.stepping())):
        with pytest.raises(RuntimeError, match=r"'accident', .*reset\(\)"):
            begin()
    flow.reset()
    flow.step(0.01)
    assert [simulation.time for simulation in flow.simulations.values()] == [0.01, 0.01]
    collocated.state.velocity.current.fill(1e9)
    with pytest.raises(
        TooManySteps, match=r"fastest velocity is 1e\+09 m/s in cell .* after step 1 of the collocated grid\)"
    ):
        flow.advance(0.1)


def test_a_scene_that_one_cannot_take_is_taken_by_neither(monkeypatch):
    flow = flow_of(both(2))
    before = flow.own.scene, flow.other.scene

    def refuse(*arguments):
        raise RuntimeError("out of device memory")

    monkeypatch.setattr(flow.other, "build", refuse)
    with pytest.raises(RuntimeError, match="out of device memory"):
        flow.scene = flow.scene.with_values({"solver.pressure": "cg", "fluid.cooling": 0.7})
    assert (flow.own.scene, flow.other.scene) == before


@pytest.mark.parametrize("view", VIEWS)
def test_each_half_is_the_picture_of_its_flow(dim, view):
    flow = flow_of(both(dim, **{"look.view": view, "look.legend": False, "look.limits": [0.0, 2.0]}))
    flow.advance(0.3)
    flow.scene = flow.scene.with_values({"look.arrow_speed": 1.0})
    seen, half = pictures_of(flow).render(), half_width(400)
    assert half == 199 and seen.shape == (180, 400, 3)
    for simulation, begin in zip(flow.simulations.values(), (0, 201), strict=True):
        alone = Renderer(simulation, half, 180).render()
        # Beside and below the label, to the bit; tracers take their colours from the faster one, as far as they span.
        if view != "tracers":
            np.testing.assert_array_equal(seen[60:, begin : begin + half], alone[60:])
        assert len(np.unique(seen[60:, begin : begin + half].reshape(-1, 3), axis=0)) > 10
        assert (seen[:60, begin : begin + half] == 245).any(), "letters"
    assert (seen[:, 199:201] == seen[0, 199]).all(), "a line between"


@pytest.mark.parametrize("view", ["slice", "arrows", "tracers"])
def test_colours_and_arrows_mean_the_same_in_both_halves(dim, view):
    flow = flow_of(both(dim, **{"look.view": view, "look.quantity": "speed"}))
    flow.advance(0.2)
    pictures = pictures_of(flow)
    # One that is three times as fast, be it drawn first or last.
    for fast in flow.simulations.values():
        velocity = fast.state.velocity.current
        velocity.from_numpy(3 * velocity.to_numpy())
        pictures.prepare()
        pictures.draw_image()
        views = [half._view(flow.scene.look) for half in pictures._halves]
        assert views[0]._smoothed.limits == views[1]._smoothed.limits
        largest = max(np.abs(s.to_numpy("velocity")).max() for s in flow.simulations.values())
        # The speed at centres: on the staggered grid a mean of two faces.
        assert views[0]._smoothed.limits[1] > 0.5 * largest
        if view == "arrows":
            assert views[0]._fastest.limits == views[1]._fastest.limits
    if dim == 3 and view == "slice":
        # Another plane is measured in both before either is drawn.
        flow.scene = flow.scene.with_values({"look.position": 0.1})
        first = pictures.draw()
        np.testing.assert_array_equal(pictures.draw(), first)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 64, 399, 400])
def test_any_width_has_two_halves(width):
    half = half_width(width)
    assert 1 <= half <= max(width - half, 1)
    assert width - 2 * half <= 3
    flow = flow_of(both(2))
    pictures = pictures_of(flow, width, 16)
    assert pictures.render().shape == (16, width, 3)
    pictures.resize(width + 1, 17)
    assert pictures.draw().shape == (17, width + 1, 3)


def test_a_coarse_picture_is_enlarged_half_by_half(dim):
    flow = flow_of(both(dim, **{"look.view": "slice"}))
    flow.advance(0.4)
    pictures = pictures_of(flow)
    pictures.prepare()
    full = pictures.draw().astype(int)
    pictures.resize(200, 90)
    pictures.draw_image(finished=False)
    larger = Image(400, 180)
    pictures.enlarge_into(larger)
    coarse = larger.to_numpy()
    # The same picture with less in it; the labels and the line between are as sharp.
    assert np.abs(coarse - full).mean() < 8
    np.testing.assert_array_equal(coarse[:, 199:201], full[:, 199:201])
    assert ((coarse[:60] == 245) == (full[:60] == 245)).mean() > 0.995


def test_a_label_stays_inside_its_picture():
    lines = ["collocated", "divergence", "1.23e-13/s", "1.23e-13 speed/dx"]
    for width in (50, 100, 130, 239, 400, 1000, 3000):
        for height in (40, 100, 200, 480, 2000):
            scale = label.label_scale(width, height, lines)
            if scale:
                panel = label._paint(lines, scale)
                assert 2 * scale + panel.shape[1] <= width and 2 * scale + panel.shape[0] <= height
            else:
                assert width < 130 or height < label.LEAST_HEIGHT
    # As a recording of 480 x 480 has it: two pixels to one.
    assert label.label_scale(239, 480, lines) == 2


def test_a_comparison_says_its_time_and_takes_pictures():
    comparison = flow_of(preset("plume2d").with_values({"domain.resolution": 16, "look.compare": True}))
    comparison.step(dt=0.01)
    assert (comparison.time, comparison.steps) == (pytest.approx(0.01), 1)
    comparison.paint_picture(np.ones((4, 4)), (0.75, 1.0), 0.5, quantity="smoke")
    assert all(simulation.to_numpy("smoke").max() > 0.9 for simulation in comparison.simulations.values())
