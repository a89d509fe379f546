"""What a hand at the controls needs: steps in parts, a flow begun again, other scenes, strokes."""

import math
import time

import numpy as np
import pytest
from scenes_for_tests import burner, plume, scene, set_state, smooth_scalar, smooth_velocity
from test_sources import covered

from taichi_fluid.grid import Grid
from taichi_fluid.physics.sources import Emitter
from taichi_fluid.render.side_by_side import pictures_of
from taichi_fluid.simulation import NotFinite, Simulation, Stage
from taichi_fluid.simulation.resampling import resample


def busy(dim, **changes):
    """A scene in which every stage has something to do: a solid that swings and one that appears, an open side."""
    shape = (10, 12, 8)[:dim]
    sides = [("free-slip", "no-slip"), ("no-slip", "open"), ("free-slip", "free-slip")][:dim]
    fluid = {"viscosity": 1e-3, "smoke_diffusion": 1e-3, "confinement": 0.01, "cooling": 0.2, "smoke_weight": 0.1}
    source = burner(dim, dye=[1.0, 0.5, 0.0], velocity=[0.3, 0.5, 0.1][:dim], mottle=0.5)
    solids = [
        {"shape": "sphere", "center": [0.6, 0.7, 0.4][:dim], "radius": 0.2, "swing": [0.1, 0.05, 0.02][:dim]},
        {"shape": "box", "center": [0.2, 0.9, 0.4][:dim], "size": [0.15] * dim, "begin": 0.05, "slip": True},
    ]
    config = scene(shape, 0.1, fluid, {"dt": 0.03}, [source], boundaries=sides)
    return config.with_values({"solids": solids, **changes})


def values_of(simulation):
    """All arrays with their ghosts."""
    state, grid = simulation.state, simulation.grid
    found = {quantity.name: grid.to_numpy_padded(quantity.current) for quantity in state.quantities()}
    return {**found, "pressure": grid.to_numpy(state.pressure)}


def assert_same(one, two):
    ours, theirs = values_of(one), values_of(two)
    assert sorted(ours) == sorted(theirs)
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
    assert (one.time, one.steps) == (two.time, two.steps)


def finish(parts):
    """Number of parts, and the Step."""
    count = 0
    while True:
        try:
            next(parts)
        except StopIteration as end:
            return count, end.value
        count += 1


# Steps in parts


@pytest.mark.vulkan_too(dim=2)
def test_a_step_in_parts_is_the_same_step(dim):
    whole, parted = Simulation(busy(dim)), Simulation(busy(dim))
    for k in range(3):
        expected = whole.step()
        parts = parted.stepping()
        next(parts)
        assert (parted.time, parted.steps) == (pytest.approx(0.03 * k), k), "only the end of the step changes them"
        count, step = finish(parts)
        assert step == expected
        # The solids; the velocity and four scalars that diffuse, forces, paths, each component and the rest of the first
        # half; paths, three quantities, paths, each component and the rest of advection; sources; burning; forces; the
        # velocity, four scalars and the rest of diffusion; the pressure.
        halved, advected = 1 + 4 + 1 + 1 + dim + 1, 1 + 3 + 1 + dim + 1
        assert 1 + count == 1 + halved + advected + 1 + 1 + 1 + (1 + 4 + 1) + 1
        assert_same(whole, parted)


def test_a_stage_of_ones_own_may_come_in_parts(dim):
    simulation, seen, closed = Simulation(plume(dim, 8, dt=0.02)), [], []

    def slow(sim, dt):
        try:
            for k in range(3):
                seen.append((k, sim.steps, dt))
                yield
            seen.append(("end", sim.steps, dt))
        finally:
            closed.append(sim.steps)

    plain, _ = finish(Simulation(plume(dim, 8, dt=0.02)).stepping())
    simulation.stages.insert(2, Stage("slow", slow))
    count, step = finish(simulation.stepping())
    assert count == plain + 4
    assert seen == [(0, 0, 0.02), (1, 0, 0.02), (2, 0, 0.02), ("end", 0, 0.02)]
    assert closed == [0] and step.stage_ms == {}
    simulation.step()
    simulation.advance(0.02)
    assert len(seen) == 12 and closed == [0, 1, 2], "step and advance run all of it"
    parts = simulation.stepping()
    while len(seen) < 13:
        next(parts)
    parts.close()
    assert closed == [0, 1, 2, 3] and simulation.steps == 3


def test_a_scene_that_brings_in_more_may_come_between_any_two_parts_of_a_step():
    """While what is carried began to diffuse, a step broke off, as there was more of it than it had counted."""
    source = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.2, "smoke": 1.0}
    before = scene((8, 8), 0.125, {"smoke_diffusion": 0.01}, sources=[source])
    after = before.with_values({"sources.0.temperature": 300.0})
    count, _ = finish(Simulation(before).stepping(0.02))
    for part in range(1, count):
        simulation = Simulation(before)
        parts = simulation.stepping(0.02)
        for _ in range(part):
            next(parts)
        simulation.scene = after
        finish(parts)
        assert simulation.steps == 1


def test_the_time_of_a_stage_is_its_own(dim, monkeypatch):
    """A part works for 20 ms, the caller idles for 100 ms after each; by a clock that goes on there alone."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    simulation = Simulation(plume(dim, 6, dt=0.02))

    def work(sim, dt):
        for k in range(3):
            if k:
                yield
            now[0] += 0.02

    simulation.stages.append(Stage("work", work))
    simulation.step()
    parts = simulation.stepping(timed=True)
    for _ in range(finish(Simulation(plume(dim, 6, dt=0.02)).stepping())[0]):
        next(parts)
    while True:
        try:
            next(parts)
        except StopIteration as end:
            step = end.value
            break
        now[0] += 0.1
    assert list(step.stage_ms) == [stage.name for stage in simulation.stages]
    assert step.stage_ms["work"] == pytest.approx(60.0)


def test_what_a_step_refuses_its_first_part_refuses(dim):
    simulation = Simulation(plume(dim, 6))
    with pytest.raises(ValueError, match="dt"):
        next(simulation.stepping(-1.0))
    simulation.state.velocity.current.fill(math.nan)
    with pytest.raises(NotFinite, match="velocity"):
        next(simulation.stepping())


# Back to the beginning


@pytest.mark.vulkan_too(dim=2)
def test_a_flow_begun_again_is_a_new_one(dim):
    simulation, new = Simulation(busy(dim)), Simulation(busy(dim))
    for _ in range(3):
        simulation.step()
    simulation.reset()
    assert_same(simulation, new)
    np.testing.assert_array_equal(simulation.to_numpy("fluid"), new.to_numpy("fluid"))
    for _ in range(3):
        assert simulation.step() == new.step()
    assert_same(simulation, new)


@pytest.mark.parametrize("parts", [1, 3, 6, 10])
def test_it_may_be_begun_again_in_the_middle_of_a_step(parts):
    simulation, new = Simulation(busy(2)), Simulation(busy(2))
    simulation.step()
    step = simulation.stepping()
    for _ in range(parts):
        next(step)
    step.close()
    simulation.reset()
    for _ in range(2):
        assert simulation.step() == new.step()
    assert_same(simulation, new)


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e25])
def test_it_may_be_begun_again_after_a_blow_up(dim, bad):
    simulation, new = Simulation(busy(dim)), Simulation(busy(dim))
    spoil = Stage("spoil", lambda sim, dt: sim.grid.from_numpy(sim.state.velocity.current, spoilt))
    spoilt = np.full((dim, *simulation.grid.shape), 1.0)
    spoilt[(0, *(4,) * dim)] = bad
    for where in (2, -1):
        simulation.stages.insert(where, spoil)
        simulation.step()
        simulation.stages.remove(spoil)
        simulation.reset()
        new.reset()
        for _ in range(2):
            assert simulation.step() == new.step()
        assert_same(simulation, new)


def test_begun_again_it_is_a_run_of_the_present_scene(dim):
    simulation = Simulation(busy(dim))
    simulation.step()
    simulation.scene = busy(dim, **{"sources.0.dye": [0.0] * 3, "fluid.viscosity": 0.0, "solver.pressure": "cg"})
    simulation.step()
    simulation.reset()
    new = Simulation(simulation.scene)
    for _ in range(2):
        assert simulation.step() == new.step()
    assert_same(simulation, new)


def test_smoke_goes_and_the_flow_stays(dim):
    simulation = Simulation(busy(dim))
    for _ in range(3):
        simulation.step()
    velocity = values_of(simulation)["velocity"]
    simulation.clear()
    after = values_of(simulation)
    np.testing.assert_array_equal(after["velocity"], velocity)
    assert after["pressure"].any() and simulation.steps == 3
    assert not any(after[name].any() for name in ("smoke", "temperature", "dye"))


# Other scenes


def test_a_quantity_that_appears_is_carried(dim):
    """As if it had been carried from the beginning, with nothing in it."""
    config = plume(dim, 10, dt=0.03)
    later, always = Simulation(config), Simulation(config.with_values({"sources.0.dye": [1.0, 0.0, 0.0]}))
    later.step()
    always.step()
    for quantity in always.state.carried.values():
        if quantity.name == "dye":
            quantity.clear()
    later.scene = always.scene
    for _ in range(2):
        later.step()
        always.step()
    assert later.to_numpy("dye")[0].any()
    assert_same(later, always)


def test_a_quantity_without_a_source_moves_on_and_fades(dim):
    simulation = Simulation(plume(dim, 10, dt=0.03))
    for _ in range(4):
        simulation.step()
    before = simulation.to_numpy("temperature")
    simulation.scene = simulation.scene.with_values({"sources.0.temperature": 0.0, "fluid.cooling": 2.0})
    assert "temperature" not in simulation.scene.carried
    for _ in range(4):
        simulation.step()
    after = simulation.to_numpy("temperature")
    height = np.broadcast_to(simulation.grid.cell_centres()[1], after.shape)
    assert after.sum() == pytest.approx(math.exp(-2.0 * 0.12) * before.sum(), rel=0.05)
    assert np.average(height, weights=after) > np.average(height, weights=before)
    simulation.scene = simulation.scene.with_values({"sources": []})
    simulation.step()
    assert simulation.to_numpy("temperature").any() and simulation.to_numpy("smoke").any()


# Quantities of one's own


@pytest.mark.parametrize("grid", ["staggered", "collocated"])
def test_a_quantity_of_ones_own_is_carried_like_smoke_that_nothing_adds_to(grid):
    """Bit for bit, each component; past what fades and diffuses the others."""
    changes = {"sources.0.smoke": 0.0, "sources.0.dye": [1.0] * 3, "sources.0.velocity": [1.0, 0.5]}
    config = plume(2, 10, dt=0.03).with_values({"domain.grid": grid, **changes})
    still = Simulation(config)
    fading = Simulation(config.with_values({"fluid.smoke_diffusion": 1e-3, "fluid.heat_diffusion": 1e-3}))
    for simulation in (still, fading):
        simulation.state.add({"smoke": 1, "A": 2})
        values = np.random.default_rng(1).random(simulation.grid.shape)
        simulation.grid.from_numpy(simulation.state.carried["smoke"].current, values)
        simulation.grid.from_numpy(simulation.state.carried["A"].current, np.stack([values, 2 * values]))
        simulation.fill()
        for _ in range(3):
            simulation.step()
        after = simulation.to_numpy("A")
        assert np.abs(after[0] - values).max() > 0.01, "nothing moved"
        np.testing.assert_array_equal(after[1], 2 * after[0])
        if simulation is still:
            np.testing.assert_array_equal(after[0], simulation.to_numpy("smoke"))
        else:
            # Diffusion takes off peaks, which advection by the same velocity left.
            assert simulation.to_numpy("smoke").std() < 0.99 * after[0].std()


def test_a_quantity_of_ones_own_outlives_what_a_flow_goes_through(dim):
    """Other resolutions, taking all away, beginning again; and a NaN in it is named."""
    simulation = Simulation(busy(dim, **{"solids": [], "fluid.smoke_fade": 0.1}))
    simulation.state.add({"A": 2})
    quantity = simulation.state.carried["A"]
    quantity.current.fill(2.0)
    simulation.step()
    finer = Simulation(simulation.scene)
    finer.state.add({"A": 2})
    resample(simulation, finer)
    np.testing.assert_allclose(finer.to_numpy("A"), simulation.to_numpy("A"), rtol=1e-6)  # rounding of weights
    simulation.clear()
    assert not simulation.to_numpy("A").any()
    quantity = simulation.state.carried["A"]
    quantity.current.fill(math.nan)
    with pytest.raises(NotFinite, match="A is not finite after step 1"):
        simulation.step()
    simulation.reset()
    assert simulation.to_numpy("A").shape == (2, *simulation.grid.shape)
    assert not simulation.to_numpy("A").any()
    simulation.step()


@pytest.mark.parametrize(
    ("carried", "named"),
    [
        ({"A": 0}, "components of A is 0; it must be a whole number, 1 or more"),
        ({"A": 1.5}, "components of A is 1.5"),
        ({"A": True}, "components of A is True"),
        ({"A": 1, "velocity": 2}, "a quantity is called 'velocity'"),
        ({"pressure": 1}, "a quantity is called 'pressure'"),
        ({"fluid": 1}, "a quantity is called 'fluid'"),
        ({"": 1}, "a quantity is called ''"),
        ({3: 1}, "a quantity is called 3"),
        ({"smoke": 3}, "components of smoke is 3; smoke has 1"),
        ({"dye": 1}, "components of dye is 1; dye has 3"),
        ({"own": 3}, "components of own is 3; own has 2"),
    ],
)
def test_a_quantity_that_cannot_be_carried_is_refused_and_nothing_is_added(carried, named):
    simulation = Simulation(plume(2, 8))
    simulation.state.add({"own": 2})
    before = list(simulation.state.carried)
    with pytest.raises(ValueError, match=named):
        simulation.state.add(carried)
    assert list(simulation.state.carried) == before


@pytest.mark.parametrize("parts", range(10))
def test_a_scene_may_change_in_the_middle_of_a_step(parts):
    simulation = Simulation(plume(2, 10, dt=0.03))
    simulation.step()
    step = simulation.stepping()
    for _ in range(parts):
        next(step, None)
    changes = {"sources.0.dye": [1.0, 0.0, 0.0], "solver.pressure": "cg", "solver.trace": "rk3", "fluid.rho": 2.0}
    simulation.scene = simulation.scene.with_values({**changes, "sources.0.mottle": 0.5})
    finish(step)
    simulation.step()
    assert simulation.to_numpy("dye")[0].any()
    assert simulation.steps == 3


@pytest.mark.parametrize("schemes", [("semi-lagrangian", "maccormack"), ("maccormack", "semi-lagrangian")])
def test_another_advection_scheme_waits_for_the_next_step(schemes):
    """In the middle of a step it would follow paths that nobody has traced."""
    ran = []
    for switched in (False, True):
        simulation = Simulation(plume(2, 24, dt=0.03).with_values({"solver.advection": schemes[0]}))
        for _ in range(5):
            simulation.step()
        step = simulation.stepping()
        next(step)
        if switched:
            simulation.scene = simulation.scene.with_values({"solver.advection": schemes[1]})
        finish(step)
        ran.append(simulation.to_numpy("smoke"))
    assert np.array_equal(*ran)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"domain.resolution": 9}, "domain"),
        ({"solids.0.radius": 0.21}, "solids"),
        ({"solver.faces": "voxels"}, "solver.faces"),
        ({"solver.faces": "voxels", "solids": []}, "solids, solver.faces"),
    ],
)
def test_what_cannot_change_is_named(changes, named):
    simulation = Simulation(busy(2))
    before = simulation.scene
    with pytest.raises(ValueError, match=rf"differs in {named}, which"):
        simulation.scene = before.with_values(changes)
    assert simulation.scene is before


def test_a_slider_builds_only_what_hangs_on_it(dim):
    simulation = Simulation(plume(dim, 6))

    def built():
        return [id(part) for part in (simulation.emitters, simulation.advection, simulation.projection)]

    kept = [simulation.emitters, simulation.advection, simulation.projection]  # so that no id comes again
    for changes, others in (
        ({"fluid.confinement": 0.02, "look.exposure": 2.0, "solver.tolerance": 1e-3}, []),
        ({"sources.0.smoke": 3.0}, [0]),
        ({"solver.advection": "semi-lagrangian"}, [1]),
        ({"solver.trace": "euler"}, [1]),
        ({"solver.pressure": "multigrid"}, [2]),
    ):
        before = built()
        simulation.scene = simulation.scene.with_values(changes)
        kept += [simulation.emitters, simulation.advection, simulation.projection]
        assert [k for k in range(3) if built()[k] != before[k]] == others
    simulation.step()


def test_what_projects_is_built_at_its_first_use(dim, monkeypatch):
    """Neither time 0, its picture, nor solids that are put elsewhere wait for it; what comes out is the same."""
    early, late = Simulation(busy(dim)), Simulation(busy(dim))
    early.prepare()
    with monkeypatch.context() as patch:
        patch.setattr("taichi_fluid.simulation.engine.Projection", None)
        for simulation in (early, late):
            simulation.place_solids(0.04)
            simulation.scene = simulation.scene.with_values({"solver.pressure": "auto", "fluid.viscosity": 2e-3})
        pictures_of(late, 32, 32).render()
        assert late.pressure_solver == early.pressure_solver
        assert late.pressure_solver.used == early.projection.solver.method
        with pytest.raises(TypeError):
            late.prepare()
    for _ in range(3):
        assert early.step() == late.step()
        assert_same(early, late)


# Strokes


def distances(grid, a, b, component=None):
    """Distance of every cell centre, or lower face, from the segment, in float64."""
    x = np.stack([np.broadcast_to(c, grid.shape).astype(float) for c in grid.cell_centres()], axis=-1)
    if component is not None:
        x[..., component] -= 0.5 * grid.dx
    a, b = np.asarray(a, float), np.asarray(b, float)
    t = np.clip(((x - a) @ (b - a)) / max((b - a) @ (b - a), 1e-20), 0, 1)
    return np.linalg.norm(x - a - t[..., None] * (b - a), axis=-1)


@pytest.mark.vulkan_too
@pytest.mark.parametrize("shape", ["sphere", "capsule", "box"])
def test_paint_raises_to_the_amount_and_no_further(dim, shape):
    grid = Grid((13, 11, 12)[:dim], 0.09)
    array = grid.array(2)
    a, b, radius = (0.5,) * dim, {"box": (0.2,) * dim}.get(shape, (0.7,) * dim), 0.2 * (shape != "box")
    emitter = Emitter(grid, shape, a, b, radius)
    before = np.random.default_rng(0).uniform(-3, 3, (2, *grid.shape)).astype(np.float32)
    grid.from_numpy(array, before)
    emitter.paint(array, 2.0, offset=grid.cells)
    after, part = grid.to_numpy(array), np.float32(covered(grid, shape, a, b, radius))
    np.testing.assert_array_equal(after[0], before[0])
    expected = np.where(part > 0, np.maximum(before[1], 2 * part), before[1])
    np.testing.assert_allclose(after[1], expected, rtol=4e-6)  # distances in f32, over cells of 0.09
    assert (after[1][part == 1] >= 2 - 1e-6).all() and (part == 1).any()
    emitter.paint(array, 2.0, offset=grid.cells)
    np.testing.assert_array_equal(grid.to_numpy(array), after, err_msg="painting twice is painting once")
    emitter.paint(array, 1.0, offset=grid.cells)
    np.testing.assert_array_equal(grid.to_numpy(array), after, err_msg="and less takes nothing away")


@pytest.mark.vulkan_too
def test_a_stroke_covers_the_cells_along_its_line(dim):
    simulation = Simulation(plume(dim, 16, dt=0.02).with_values({"sources.0.dye": [1.0, 1.0, 1.0]}))
    a, b, radius = (0.2, 0.3, 0.4)[:dim], (0.8, 0.55, 0.6)[:dim], 0.11
    target = (0.5, -0.25, 1.0)[:dim]
    simulation.paint(a, b, radius, velocity=target, smoke=3.0, dye=(1.0, 0.0, 0.5), temperature=200.0)
    grid, distance = simulation.grid, distances(simulation.grid, a, b)
    inside, outside = distance < radius - 0.5 * grid.dx, distance > radius + 0.5 * grid.dx
    assert inside.sum() > 10
    red, green, blue = simulation.to_numpy("dye")
    for values, amount in ((simulation.to_numpy("smoke"), 3.0), (simulation.to_numpy("temperature"), 200.0), (red, 1.0),
                           (green, 0.0), (blue, 0.5)):  # fmt: skip
        assert (values[inside] == amount).all() and not values[outside].any() and values.max() == amount
    for axis in range(dim):
        face = distances(grid, a, b, axis)
        component = simulation.to_numpy("velocity")[axis]
        np.testing.assert_allclose(component[face < radius - 0.5 * grid.dx], target[axis], rtol=1e-6)
        assert not component[face > radius + 0.5 * grid.dx].any()
    simulation.paint(a, a, radius, smoke=5.0)
    dab = distances(grid, a, a)
    assert (simulation.to_numpy("smoke")[dab < radius - 0.5 * grid.dx] == 5.0).all(), "one place is a dab"
    step = simulation.step()
    assert step.dt == 0.02 and np.isfinite(simulation.to_numpy("velocity")).all()


def test_a_stroke_in_pieces_is_the_stroke(dim):
    """However often the window looks at the hand: no seams, and nothing twice."""
    a, b = np.array((0.15, 0.3, 0.4)[:dim]), np.array((0.85, 0.6, 0.5)[:dim])
    pictures = []
    for pieces in (1, 7):
        simulation = Simulation(plume(dim, 14))
        for k in range(pieces):
            simulation.paint(a + (b - a) * k / pieces, a + (b - a) * (k + 1) / pieces, 0.1, smoke=2.0)
        pictures.append(simulation.to_numpy("smoke"))
    np.testing.assert_allclose(pictures[0], pictures[1], rtol=0, atol=2e-5)


@pytest.mark.vulkan_too
@pytest.mark.parametrize("collocated", [False, True], ids=["staggered", "collocated"])
def test_a_push_adds_where_it_covers_the_place_of_a_component(dim, collocated):
    grid = Grid((11, 9, 10)[:dim], 0.1, origin=(0.05, -0.1, 0.0)[:dim], collocated=collocated)
    driven, pushed = grid.velocity(), grid.velocity()
    emitter = Emitter(grid, "capsule", (0.3, 0.4, 0.5)[:dim], (0.7, 0.35, 0.6)[:dim], 0.15)
    change = (0.5, -1.0, 2.0)[:dim]
    emitter.drive(driven, change)  # of a fluid at rest that is the change, where it is covered
    for times in (1, 2):
        emitter.push(pushed, change)
        # Distances in f32, whose origins were rounded apart.
        np.testing.assert_allclose(grid.to_numpy(pushed), times * grid.to_numpy(driven), rtol=0, atol=4e-6)
    assert np.abs(grid.to_numpy(pushed)).max() == pytest.approx(4.0 if dim == 3 else 2.0)


def test_what_is_added_piles_up(dim):
    """A dab brings in what a source does, and a second one as much again."""
    simulation = Simulation(plume(dim, 16).with_values({"sources.0.dye": [1.0, 1.0, 1.0]}))
    grid, place, radius = simulation.grid, (0.5, 0.45, 0.55)[:dim], 0.21
    dab = grid.array()
    Emitter(grid, "sphere", place, place, radius).add(dab, 1.0, 1.0)
    part = grid.to_numpy(dab)
    for times in (1, 2):
        simulation.paint(place, place, radius, smoke=3.0, dye=(1.0, 0.0, 0.5), temperature=-20.0, add=True)
        red, green, blue = simulation.to_numpy("dye")
        for values, amount in ((simulation.to_numpy("smoke"), 3.0), (simulation.to_numpy("temperature"), -20.0),
                               (red, 1.0), (green, 0.0), (blue, 0.5)):  # fmt: skip
            np.testing.assert_allclose(values, times * amount * part, rtol=0, atol=1e-5 * abs(amount))


def test_a_drag_adds_as_much_in_however_many_strokes(dim):
    """Smoke and momentum, with amounts in proportion to the time of each stroke."""
    a, b = np.array((0.25, 0.3, 0.4)[:dim]), np.array((0.75, 0.65, 0.5)[:dim])
    velocity, sums = np.array((0.5, 0.35, 0.1)[:dim]), []
    for strokes in (1, 4, 30):
        simulation = Simulation(plume(dim, 24))
        for k in range(strokes):
            ends = a + (b - a) * k / strokes, a + (b - a) * (k + 1) / strokes
            simulation.paint(*ends, 0.12, velocity=velocity / strokes, smoke=2.0 / strokes, add=True)
        cell = simulation.grid.cell_volume
        momentum = simulation.to_numpy("velocity").reshape(dim, -1).sum(axis=1) * cell
        sums.append([simulation.to_numpy("smoke").sum() * cell, *momentum])
    # Coverage of a ball of three cells costs the square of dx, up to 24 / 24² (test_sources).
    volume = math.pi * 0.12**2 if dim == 2 else 4 / 3 * math.pi * 0.12**3
    np.testing.assert_allclose(sums, [[volume * x for x in (2.0, *velocity)]] * 3, rtol=0.04)


def test_what_is_added_heeds_walls_and_solids(dim):
    simulation = Simulation(busy(dim))
    solid = simulation.to_numpy("fluid") == 0
    simulation.paint((0.0,) * dim, (1.2,) * dim, 5.0, velocity=(0.7,) * dim, smoke=1.0, add=True)
    assert solid.any() and not simulation.to_numpy("smoke")[solid].any()
    closed = simulation.grid.to_numpy(simulation.solids.open) == 0
    resting = Simulation(busy(dim)).to_numpy("velocity")
    np.testing.assert_array_equal(simulation.to_numpy("velocity")[closed], resting[closed])


def test_a_stroke_does_not_know_left_from_right(dim):
    shape = (10, 7, 6)[:dim]
    a, b, target = np.array((0.1, 0.4, 0.2)[:dim]), np.array((0.55, 0.3, 0.5)[:dim]), np.array((0.4, 0.3, -0.2)[:dim])
    pictures = []
    for mirror in (False, True):
        simulation = Simulation(scene(shape, 0.1, solver={"dt": 0.05, "tolerance": 1e-6}))
        size = np.array([1.0, *[0.0] * (dim - 1)])
        ends = [abs(size * mirror - x) for x in (a, b)]
        simulation.paint(*ends, 0.15, velocity=target * (1 - 2 * mirror * size), smoke=1.0)
        simulation.step()
        faces = simulation.grid.face_velocity_to_numpy(simulation.state.velocity.current)
        pictures.append([*faces, simulation.to_numpy("smoke")])
    for axis, (plain, seen) in enumerate(zip(*pictures, strict=True)):
        sign = -1 if axis == 0 else 1
        # What a pressure solved to 1e-6 leaves, and rounding, of which smoke at its limits makes most: 7e-6 of it.
        np.testing.assert_allclose(sign * np.flip(seen, axis=0), plain, rtol=0, atol=1e-5)
    assert np.abs(pictures[0][0]).max() > 0.05


def test_a_stroke_outside_the_box_changes_nothing(dim):
    simulation = Simulation(busy(dim))
    for _ in range(2):
        simulation.step()
    before = values_of(simulation)
    for a, b in (((-1.0,) * dim, (-0.5,) * dim), ((3.0,) * dim, (1e6,) * dim), ((-1e6,) * dim, (-2.0,) * dim)):
        simulation.paint(a, b, 0.1, velocity=(1.0,) * dim, smoke=1.0, dye=(1.0, 1.0, 1.0), temperature=1.0)
    after = values_of(simulation)
    for name in before:
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)
    simulation.paint((-5.0, *(0.45,) * (dim - 1)), (5.0, *(0.45,) * (dim - 1)), 0.1, smoke=50.0)
    row = simulation.to_numpy("smoke")[(slice(None), *(4,) * (dim - 1))]
    assert (row == 50.0).all(), "and one that crosses it paints what is inside"


def test_a_stroke_stays_out_of_solids(dim):
    simulation = Simulation(busy(dim))
    simulation.step()
    solid, old = simulation.to_numpy("fluid") == 0, simulation.to_numpy("velocity")
    everywhere = (0.0,) * dim, (1.2,) * dim
    simulation.paint(*everywhere, 5.0, velocity=(0.7,) * dim, smoke=1.0)
    smoke, velocity = simulation.to_numpy("smoke"), simulation.to_numpy("velocity")
    assert solid.any() and not smoke[solid].any() and (smoke[~solid] >= 1.0).all()
    closed = simulation.grid.to_numpy(simulation.solids.open) == 0
    np.testing.assert_array_equal(velocity[closed], old[closed])
    inner = (slice(None), *(slice(1, None),) * dim)
    np.testing.assert_allclose(velocity[inner][~closed[inner]], 0.7, rtol=1e-6)


def test_what_is_not_carried_is_left_out(dim):
    simulation = Simulation(scene((6,) * dim))
    simulation.paint((0.3,) * dim, (0.3,) * dim, 0.2, dye=(1.0, 1.0, 1.0), temperature=100.0)
    assert set(simulation.state.carried) == {"smoke"} and not simulation.to_numpy("smoke").any()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"a": (0.1, math.nan)}, "a"),
        ({"b": (0.1, math.inf)}, "b"),
        ({"a": (0.1,)}, "a"),
        ({"b": (0.1, 0.2, 0.3)}, "b"),
        ({"a": (1e300, 0.0)}, "a"),
        ({"radius": 0.0}, "radius"),
        ({"radius": -1.0}, "radius"),
        ({"radius": math.nan}, "radius"),
        ({"radius": math.inf}, "radius"),
        ({"velocity": (1.0,)}, "velocity"),
        ({"velocity": (1.0, math.inf)}, "velocity"),
        ({"smoke": math.nan}, "smoke"),
        ({"smoke": 1e39}, "smoke"),
        ({"dye": (1.0, 2.0)}, "dye"),
        ({"temperature": math.inf}, "temperature"),
    ],
)
def test_an_impossible_stroke_is_refused_and_changes_nothing(changes, named):
    simulation = Simulation(plume(2, 8))
    stroke = {"a": (0.1, 0.2), "b": (0.5, 0.6), "radius": 0.1, "smoke": 1.0, "velocity": (1.0, 0.0), **changes}
    with pytest.raises(ValueError, match=rf"^{named} is "):
        simulation.paint(**stroke)
    assert not simulation.to_numpy("smoke").any() and not simulation.to_numpy("velocity").any()


def test_the_fill_that_follows_a_hand_made_state_is_that_of_a_step(dim):
    """Ghosts of arrays that a caller wrote are those that ``set_state`` of these tests fills one by one."""
    config = plume(dim, 7)
    ours, theirs = Simulation(config), Simulation(config)
    faces, smoke = smooth_velocity(ours.grid.shape), smooth_scalar(ours.grid.shape)
    set_state(theirs, faces, smoke=smoke)
    ours.grid.face_velocity_from_numpy(ours.state.velocity.current, [f.astype(np.float32) for f in faces])
    ours.grid.from_numpy(ours.state.carried["smoke"].current, smoke)
    ours.fill()
    assert_same(ours, theirs)
