"""The core of a liquid, which has no particles: at rest, going along, sloshing, switched on and off, beside what takes it."""

import numpy as np
import pytest

import taichi_fluid as tf
from taichi_fluid.scene import bytes_needed
from taichi_fluid.simulation.resampling import resample
from taichi_fluid.validation import Run
from taichi_fluid.validation.liquids import sloshing
from taichi_fluid.validation.water import energy_of_cells, fastest, filled_part, volume_of, water


def pool(dim, cells, height, band, **tables):
    liquid = {"band": band, **tables.pop("liquid", {})}
    return water([1.0] * dim, cells, [([0.0] * dim, [1.0, height, 1.0][:dim])], liquid=liquid, **tables)


def flying(cells, center, radius, velocity, band=3):
    """A drop in a box of a metre without gravity."""
    dim = len(center)
    drop = {"shape": "sphere", "center": center, "radius": radius, "velocity": velocity}
    domain = {"size": [1.0] * dim, "resolution": cells}
    tables = {"domain": domain, "liquid": {"bodies": [drop], "band": band}, "fluid": {"gravity": [0.0] * dim}}
    return tf.Simulation(tf.Scene.from_dict({"name": "drop", **tables}))


def core_of(simulation):
    """1 for each cell of the core, else 0."""
    grid = simulation.grid
    return simulation.liquid.core.marks.to_numpy().reshape(grid.padded)[(slice(1, -1),) * grid.dim]


@pytest.mark.vulkan_too(dim=2)
@pytest.mark.parametrize("dim", [2, 3])
def test_a_pool_with_a_core_stays_at_rest(dim):
    """As one of particles does: below 1e-4 sqrt(g h), with particles so and so many cells below the surface and no deeper."""
    cells, height, band = (24, 16 / 24, 4) if dim == 2 else (16, 11 / 16, 3)
    simulation = tf.Simulation(pool(dim, cells, height, band))
    full = simulation.liquid.particles.count
    for _ in range(40):
        simulation.step()
    liquid = simulation.liquid
    assert fastest(simulation) < 1e-4 * np.sqrt(9.81 * height)
    assert liquid.core.cells > 0.3 * height * cells**dim
    assert liquid.lacking == 0 and liquid.particles.count < 0.7 * full
    deepest = liquid.particles.to_numpy()["position"][:, 1].min()
    assert abs((height - deepest) * cells - band) < 1.5
    # What a liquid weighs, it presses with; where the surface lies is known to a twentieth of a cell.
    pressure = simulation.to_numpy("pressure")
    below = pressure.reshape(cells, cells, -1)[:, 0].mean()
    assert below == pytest.approx(1000 * 9.81 * (height - 0.5 / cells), abs=1000 * 9.81 * 0.05 / cells)


@pytest.mark.parametrize("dim", [2, 3])
def test_a_vortex_in_the_core_gains_nothing(dim):
    """Its ways back ended too far out: 30 steps later it turned at 2.5 times its speed, in 2D, and drew in more and more."""
    cells, radius, speed = (64, 4 / 64, 2.0) if dim == 2 else (24, 3 / 24, 4.0)
    turn, off = speed / radius * np.exp(0.5), f"exp(-((x - 0.5)**2 + (y - 0.35)**2) / {2 * radius**2})"
    velocity = [f"-{turn} * (y - 0.35) * {off}", f"{turn} * (x - 0.5) * {off}", 0.0][:dim]
    size, fill = [1.0, 1.0, 0.5][:dim], [1.0, 0.8, 0.5][:dim]
    tables = {"liquid": {"band": 3}, "initial": {"velocity": velocity}}
    simulation = tf.Simulation(water(size, cells, [([0.0] * dim, fill)], **tables))
    energies = []
    for _ in range(40):
        energies.append(simulation.diagnostics.kinetic_energy(simulation.state.velocity.current))
        simulation.step()
    assert max(energies) < 1.03 * energies[0], "1.011 after two steps, then less and less"
    assert energies[-1] > 0.4 * energies[0], "interpolation takes some: so few cells across"


@pytest.mark.parametrize(("cells_across", "band"), [(4, 3), (4, 4), (16, 3)])
def test_particles_are_as_deep_beside_walls_and_in_corners_as_elsewhere(cells_across, band):
    """What is beyond a wall counted as deep, air beside air too: two cells in place of three in corners, and all over a thin tank."""
    size = [1.0, 1.0, cells_across / 24]
    simulation = tf.Simulation(water(size, 24, [([0.0] * 3, [1.0, 0.5, size[2]])], liquid={"band": band}))
    simulation.step()
    wet = simulation.to_numpy("level set") < 0
    assert np.unique((wet & (core_of(simulation) == 0)).sum(axis=1)).tolist() == [band]


@pytest.mark.parametrize("transfer", ["apic", "flip"])
def test_a_deep_tank_sloshes_as_one_of_particles_does(transfer):
    """Its frequency is that of linear theory within 1 % at 32 cells; found 0.998 and 0.995 (without a core 0.998)."""
    assert abs(sloshing(Run(32), 32, transfer, band=4).frequency - 1) < 0.01


@pytest.mark.parametrize("dim", [2, 3])
def test_a_drop_goes_on_as_a_whole(dim):
    """Without gravity: its core comes into new cells, fills what it leaves, and has one velocity with the particles."""
    cells = 48 if dim == 2 else 24
    velocity = [1.0, 0.7, 0.4][:dim]
    simulation = flying(cells, [0.3] * dim, 0.24, velocity)
    liquid, volume = simulation.liquid, volume_of(simulation)
    while simulation.time < 0.3:
        simulation.step(0.01)
        assert liquid.core.cells > 0
        parts = liquid.particles.to_numpy()
        # New particles are not as even as a lattice: what spreads them is below 0.01 m/s here.
        np.testing.assert_allclose(parts["velocity"] - velocity, 0, atol=0.02)
    # A tenth of a percent: where the core has left a cell in which particles are, as many are made as were there before.
    assert abs(liquid.lacking) < 0.01 * liquid.target
    assert volume_of(simulation) == pytest.approx(volume, rel=0.01)
    filled = filled_part(simulation)
    for axis, centres in enumerate(simulation.grid.cell_centres()):
        middle = float((filled * centres).sum() / filled.sum())
        assert middle == pytest.approx(0.3 + simulation.time * velocity[axis], abs=0.1 * simulation.grid.dx)


def test_a_dam_breaks_as_one_of_particles_does():
    """With no more energy than it had, and with its volume."""
    scene = water([2.0, 1.0], 64, [([0.0, 0.0], [0.5, 0.75])], liquid={"band": 3})
    simulation = tf.Simulation(scene)
    volume, first, cells = volume_of(simulation), energy_of_cells(simulation), []
    while simulation.time < 4:
        simulation.step(0.01)
        # What is lifted to keep the volume, or is a cell more here and there, counts as high up: when it is torn up cells have
        # up to 1.04, particles without a core 0.89 then.
        assert energy_of_cells(simulation) < 1.05 * first
        assert abs(volume_of(simulation) / volume - 1) < 0.05
        # When a core closes over gaps there are 0.014 to 0.031 too many for some steps, as chance has it (from twelve heights).
        assert abs(simulation.liquid.lacking) < 0.04 * simulation.liquid.target
        cells.append(simulation.liquid.core.cells)
    assert abs(simulation.liquid.lacking) < 0.02 * simulation.liquid.target
    assert min(cells) == 0 or min(cells) < 0.5 * max(cells), "it is torn up"
    assert cells[-1] > 60, "and grows together again"
    assert energy_of_cells(simulation) < 0.7 * first


def test_a_core_comes_and_goes_as_the_scene_says():
    scene = pool(2, 32, 0.6, 0)
    simulation = tf.Simulation(scene)
    full = simulation.liquid.particles.count
    simulation.step()
    simulation.scene = scene.with_values({"liquid.band": 3})
    for _ in range(2):
        simulation.step()
    assert simulation.liquid.core.cells > 0
    assert simulation.liquid.particles.count < 0.6 * full
    simulation.scene = scene
    for _ in range(3):
        simulation.step()
    assert simulation.liquid.core.cells == 0
    assert simulation.liquid.particles.count == pytest.approx(full, rel=0.01)
    # What is put anew stands closer than a lattice here and wider there, by a fifth, and moves apart.
    assert fastest(simulation) < 5e-3 * np.sqrt(9.81 * 0.6)
    simulation.reset()
    assert simulation.liquid.particles.count == full


@pytest.mark.parametrize("band", [1, 3])
def test_a_drop_stays_as_large_as_it_was_in_short_steps(band):
    """However narrow the band is said to be: with one of a cell what the core had come into never left it again."""
    simulation = flying(48, [0.35, 0.4], 0.2, [1.0, 0.6], band)
    volume = volume_of(simulation)
    for _ in range(50):
        simulation.step(0.004)
    assert simulation.liquid.core.cells > 0
    assert volume_of(simulation) == pytest.approx(volume, rel=0.01)


def test_a_core_keeps_its_velocity_where_a_pointer_pours():
    simulation = flying(48, [0.4, 0.5], 0.24, [1.0, 0.0])
    for _ in range(2):
        simulation.step(0.005)
    simulation.paint((0.9, 0.9), (0.9, 0.9), 0.05, (0.0, 0.0), pour=True)
    simulation.step(0.005)
    u = simulation.to_numpy("velocity")[0]
    marks = core_of(simulation)
    assert marks.sum() > 50
    np.testing.assert_allclose(u[marks == 1], 1.0, atol=0.01)


def test_an_open_lid_makes_no_water():
    """What the core is found to be goes up and down, by 1 % in a second; the most of it is no aim to be made up for."""
    lid = [["free-slip", "free-slip"], ["free-slip", "open"]]
    for band in (0, 3):
        scene = water([1.0, 1.0], 48, [([0.0, 0.0], [0.4, 0.45])], liquid={"band": band}).with_values(
            {"domain.boundaries": lid}
        )
        simulation = tf.Simulation(scene)
        first, lacking = simulation.liquid.target, []
        while simulation.time < 3:
            simulation.step(0.01)
            lacking.append(simulation.liquid.lacking)
        assert 0.96 * first < simulation.liquid.target <= first, "but for a few drops that fly out"
        assert abs(np.mean(lacking[100:])) < 0.01 * first, "on the mean of two seconds"


@pytest.mark.parametrize(("before", "after"), [(0, 3), (3, 0)])
def test_a_checkpoint_is_of_the_core_that_there_was_whatever_the_scene_says_since(before, after, tmp_path):
    scene = pool(2, 32, 0.6, before)
    simulation = tf.Simulation(scene)
    simulation.step()
    simulation.scene = scene.with_values({"liquid.band": after})
    restored = tf.load(tf.save(simulation, tmp_path / "pool.checkpoint"))
    assert restored.liquid.volume == simulation.liquid.volume
    for each in (simulation, restored):
        for _ in range(3):
            each.step()
    assert (restored.liquid.core.cells > 0) == (after > 0)
    np.testing.assert_array_equal(restored.to_numpy("level set"), simulation.to_numpy("level set"))
    assert restored.liquid.volume == pytest.approx(0.6, rel=0.03)


def test_what_flows_out_of_an_open_side_is_not_made_up_for_however_fast():
    """At CFL 5 the core comes farther in a step than its band is wide."""
    slab = [([0.3, 0.2], [0.9, 0.8])]
    sides = [["open", "open"], ["free-slip", "free-slip"]]
    tables = {"fluid": {"gravity": [0.0, 0.0]}, "solver": {"cfl": 5.0, "max_dt": 1.0}}
    scene = water([1.0, 1.0], 64, slab, liquid={"band": 3}, **tables).with_values({"domain.boundaries": sides})
    bodies = [{**body, "velocity": [2.0, 0.0]} for body in scene.model_dump(mode="json")["liquid"]["bodies"]]
    simulation = tf.Simulation(scene.with_values({"liquid.bodies": bodies}))
    while simulation.time < 0.2:
        simulation.step()
    # By where the slab begins, from 0.28 to 0.325: the core may come a row too far.
    assert abs(simulation.liquid.lacking) < 0.08 * simulation.liquid.target
    assert simulation.liquid.volume == pytest.approx(0.6 * (1.0 - 0.3 - 2.0 * simulation.time), rel=0.15)


def test_a_core_goes_over_to_another_grid():
    scene = pool(2, 24, 0.6, 3)
    simulation = tf.Simulation(scene)
    simulation.advance(0.1)
    other = tf.Simulation(scene.with_values({"domain.resolution": 36}))
    resample(simulation, other)
    assert volume_of(other) == pytest.approx(volume_of(simulation), rel=0.02)
    other.step()
    assert other.liquid.core.cells > simulation.liquid.core.cells
    resample(simulation, other)
    assert other.liquid.volume == pytest.approx(simulation.liquid.volume, rel=0.02), "the old core is filled too"


@pytest.mark.parametrize("band", [0, 3])
def test_a_tank_drains_and_fills_with_a_core_too(band):
    """Around sinks and sources there are particles, so that as much goes and comes as without a core."""
    sink = {"shape": "box", "center": [0.5, 0.0], "size": [0.2, 0.1], "sink": True}
    source = {"shape": "box", "center": [0.2, 0.9], "size": [0.1, 0.05], "velocity": [0.0, -1.0]}
    drained = tf.Simulation(pool(2, 48, 0.7, band, sources=[sink]))
    drained.advance(0.3)
    # 0.2 m wide, sqrt(2 g h) with h falling from 0.65 m: 0.2 of the 0.7 m² in 0.3 s.
    assert 0.7 - drained.liquid.volume == pytest.approx(0.195, rel=0.15)
    filled = tf.Simulation(pool(2, 48, 0.7, band, sources=[source]))
    filled.advance(0.5)
    poured = filled.liquid.target * filled.grid.cell_volume / 9 - 0.7
    assert poured == pytest.approx(0.1 * (0.05 + 0.5), rel=0.08)
    # Where the jet takes air along, a core that closes over it has 1 % of the water too much, now and then.
    assert filled.liquid.volume - 0.7 == pytest.approx(poured, abs=0.012)


def test_no_core_is_in_a_solid_or_beside_one():
    ball = {"shape": "sphere", "center": [0.5, 0.35], "radius": 0.13, "velocity": [0.2, 0.0]}
    simulation = tf.Simulation(pool(2, 48, 0.8, 3, solids=[ball]))
    for _ in range(20):
        simulation.step(0.01)
    marks = core_of(simulation)
    distance = (
        np.hypot(*(x - m for x, m in zip(simulation.grid.cell_centres(), (0.5 + 0.04, 0.35), strict=True))) - 0.13
    )
    assert marks.sum() > 100
    assert distance[marks == 1].min() > simulation.grid.dx


def test_a_core_counts_in_the_memory_that_is_announced():
    scene = pool(2, 64, 0.5, 0)
    assert bytes_needed(scene.with_values({"liquid.band": 4})) - bytes_needed(scene) == 4 * 4 * 66**2


@pytest.mark.parametrize("band", [4, 8])
def test_a_solid_that_appears_in_the_core_takes_no_liquid_away(band):
    """What the core had where it stands becomes particles, which it pushes aside as any others; they were left out."""
    box = {"shape": "box", "center": [0.5, 0.25], "size": [0.4, 0.3], "begin": 0.05}
    simulation = tf.Simulation(water([1.0, 1.0], 48, [([0, 0], [1, 0.5])], liquid={"band": band}, solids=[box]))
    for _ in range(3):
        simulation.advance(0.1)
        # Particles where it stands are pushed aside in steps, and then spread: 0.7 % at most in such a splash.
        assert simulation.liquid.volume == pytest.approx(0.5, rel=0.01), "0.38"


@pytest.mark.parametrize("band", [0, 3])
@pytest.mark.parametrize("dim", [2, 3])
def test_where_a_solid_is_gone_there_is_air(dim, band):
    """It was water at once, in the core for good: 1.10 of what there had been (2D). Now it closes, and is as much as it was."""
    ball = {"shape": "sphere", "center": [0.5, 0.25, 0.5][:dim], "radius": 0.12, "end": 0.1}
    simulation = tf.Simulation(pool(dim, 48 if dim == 2 else 32, 0.5, band, solids=[ball]))
    simulation.advance(0.09)
    before = simulation.liquid.volume
    assert volume_of(simulation) == pytest.approx(before, rel=0.01)
    simulation.advance(0.03)
    hole = np.pi * 0.12**2 if dim == 2 else 4 / 3 * np.pi * 0.12**3
    assert 0.5 - volume_of(simulation) > 0.7 * hole
    simulation.advance(0.25)
    # What the core leaves and comes into is whole cells: measured 1.0022, and 0.989 to 1.010 on the way.
    assert simulation.liquid.volume == pytest.approx(before, rel=0.01)
    # Measured 0.998 to 1.004.
    assert volume_of(simulation) == pytest.approx(before, rel=0.015)
