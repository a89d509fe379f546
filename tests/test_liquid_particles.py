"""Particles of a liquid by themselves: their order, their way to the faces and back, their paths and their surface."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from taichi_fluid.boundaries.sides import Boundary, Part, Side
from taichi_fluid.boundaries.solids import Motion as Moves
from taichi_fluid.boundaries.solids import Solid, Solids
from taichi_fluid.boundaries.walls import Walls
from taichi_fluid.grid import Grid, Scratch
from taichi_fluid.liquid.crowding import LASTS, Crowding
from taichi_fluid.liquid.liquid import Liquid
from taichi_fluid.liquid.motion import Motion
from taichi_fluid.liquid.particle_surface import BELOW, ParticleSurface
from taichi_fluid.liquid.particles import FULL, PER_AXIS, Particles
from taichi_fluid.liquid.seeding import Seeding
from taichi_fluid.liquid.spacing import Spacing
from taichi_fluid.liquid.transfer import Transfer

SHAPES = pytest.mark.parametrize("shape", [(14, 9), (9, 7, 11)], ids=["2D", "3D"])


def walls_of(grid, kind="free-slip"):
    return Walls(grid, [(Side(Boundary(kind)),) * 2] * grid.dim)


def scattered(grid, count, seed=0, margin=0.0):
    """Places all over a box, in cells."""
    random = np.random.default_rng(seed)
    return margin + random.random((count, grid.dim)) * (np.array(grid.shape) - 2 * margin)


def particles_at(grid, places, velocity=None):
    particles = Particles(grid)
    particles.add(places, np.zeros_like(places) if velocity is None else velocity)
    particles.sort()
    return particles


def lattice(grid, margin=0):
    """What fills all cells, in cells."""
    along = PER_AXIS[grid.dim]
    axes = [np.arange(0.5, n * along) / along for n in grid.shape]
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, grid.dim)


@pytest.mark.vulkan_too
@SHAPES
def test_each_particle_is_found_once_in_its_cell_and_in_the_order_of_memory(shape):
    grid = Grid(shape, 0.1)
    particles = particles_at(grid, scattered(grid, 1000))
    for _ in range(2):  # what was moved in memory, and what has only an order
        particles.sort()
        order, starts = particles.order.to_numpy()[: particles.count], particles.starts.to_numpy()
        places = particles.position.to_numpy().reshape(grid.dim, -1)[:, : particles.count]
        cells = ((np.floor(places).astype(int) + 1) * np.array(grid.strides)[:, None]).sum(0)
        assert sorted(order) == list(range(particles.count))
        assert starts[grid.cells] == particles.count
        for cell in np.unique(cells):
            own = order[starts[cell] : starts[cell + 1]]
            np.testing.assert_array_equal(own, np.flatnonzero(cells == cell))


def test_more_than_two_million_cells_are_counted_too():
    """2²¹ cells times the 1024 shares of a sum are more than 32 bits hold: a dam of 128³ wanted 784 million particles."""
    grid = Grid((1600, 1400), 0.1)
    particles = particles_at(grid, scattered(grid, 1000))
    starts = particles.starts.to_numpy()
    assert starts[grid.cells] == particles.count == 1000
    assert (np.diff(starts) >= 0).all()


@pytest.mark.vulkan_too
@SHAPES
def test_what_is_linear_goes_to_the_faces_and_back_unchanged(shape):
    """APIC: a velocity that is linear in space, with its derivatives, is the same on faces and on particles."""
    grid = Grid(shape, 0.1)
    dim, random = grid.dim, np.random.default_rng(1)
    slope, base, places = random.standard_normal((dim, dim)), random.standard_normal(dim), scattered(grid, 1500)
    particles = particles_at(grid, places, base + 0.1 * places @ slope.T)
    affine = np.zeros((dim * dim, particles.room), np.float32)
    affine[:, : particles.count] = slope.reshape(-1, 1)
    particles.affine.from_numpy(affine.ravel())
    velocity, weight = grid.velocity(), grid.velocity()
    transfer = Transfer(grid)
    transfer.to_faces(particles, velocity, weight)
    on_faces = velocity.to_numpy().reshape(dim, *grid.padded)
    reached = weight.to_numpy().reshape(dim, *grid.padded) > 0
    for axis in range(dim):
        x = np.indices(grid.padded) - 0.5
        x[axis] -= 0.5
        exact = base[axis] + 0.1 * np.einsum("k,k...->...", slope[axis], x)
        # Rounding of f32 in sums of some tens of numbers of size 1.
        np.testing.assert_allclose(on_faces[axis][reached[axis]], exact[reached[axis]], atol=1e-5)
        on_faces[axis] = exact
    velocity.from_numpy(on_faces.ravel().astype(np.float32))
    transfer.from_faces(particles, velocity)
    back = particles.to_numpy()
    np.testing.assert_allclose(back["velocity"], base + back["position"] @ slope.T, atol=1e-5)
    np.testing.assert_allclose(back["affine"], np.broadcast_to(slope, back["affine"].shape), atol=1e-4)


@pytest.mark.vulkan_too
@SHAPES
def test_momentum_is_that_of_the_particles(shape):
    """What the faces have, by their weights, is the sum over the particles."""
    grid = Grid(shape, 0.1)
    places = scattered(grid, 700, margin=1.0)
    velocity = np.random.default_rng(2).standard_normal(places.shape)
    particles, u, weight = particles_at(grid, places, velocity), grid.velocity(), grid.velocity()
    Transfer(grid).to_faces(particles, u, weight)
    momentum = (u.to_numpy() * weight.to_numpy()).reshape(grid.dim, -1).sum(1)
    # Faces with less weight than counts are left out, and sums are of f32.
    np.testing.assert_allclose(momentum, velocity.sum(0), atol=2e-2)


@SHAPES
def test_flip_keeps_what_the_grid_has_not_changed(shape):
    grid = Grid(shape, 0.1)
    velocity = np.random.default_rng(3).standard_normal((500, grid.dim))
    particles, u, weight = particles_at(grid, scattered(grid, 500), velocity), grid.velocity(), grid.velocity()
    transfer = Transfer(grid)
    transfer.to_faces(particles, u, weight)
    before = particles.to_numpy()["velocity"]
    transfer.from_faces(particles, u, u, flip=1.0)
    np.testing.assert_allclose(particles.to_numpy()["velocity"], before, atol=1e-6)
    transfer.from_faces(particles, u, u, flip=0.0)
    assert np.abs(particles.to_numpy()["velocity"] - before).max() > 0.1, "without it they have the grid's"


@pytest.mark.parametrize("kicked", [False, True])
def test_paths_in_a_vortex_are_of_second_order(kicked):
    """A turn of a rigid rotation, which linear interpolation has exactly, by midpoints and by parabolas."""
    grid = Grid((32, 32), 1 / 32)
    velocity = grid.velocity()
    x, y = np.indices(grid.padded) - 16.5
    x, y = x / 32, y / 32
    velocity.from_numpy(np.stack([-y, x]).ravel().astype(np.float32))
    start = 16 + np.array([[3.0, -9.0]])
    errors = []
    for steps in (16, 32):
        dt, faster = 2 * np.pi / steps, None
        if kicked:
            faster = grid.velocity()
            faster.from_numpy(np.stack([-y - 0.5 * dt * x, x - 0.5 * dt * y]).ravel().astype(np.float32))
        particles, motion = particles_at(grid, start), Motion(grid, walls_of(grid), None)
        for _ in range(steps):
            motion.move(particles, velocity, dt, kicked=faster)
        errors.append(np.abs(particles.to_numpy()["position"] * 32 - start).max())
    order = np.log2(errors[0] / errors[1])
    assert order > 1.9, errors


@pytest.mark.vulkan_too
@pytest.mark.parametrize("dim", [2, 3])
def test_nobody_passes_a_wall_of_one_cell_that_moves(dim):
    """A thin wall is driven through particles at rest, a cell a step: they go with it, and stay on their side."""
    grid = Grid((24,) + (6,) * (dim - 1), 1 / 24)
    speed = 0.5
    wall = Solid(
        "box",
        a=(6.5 / 24,) + (3 / 24,) * (dim - 1),
        b=(0.5 / 24,) + (1.0,) * (dim - 1),
        motion=Moves((6.5 / 24,) + (3 / 24,) * (dim - 1), velocity=(speed,) + (0.0,) * (dim - 1)),
    )
    walls = walls_of(grid)
    solids = Solids(grid, walls, [wall])
    solids.update(0.0)
    places = scattered(grid, 400)
    places = places[np.abs(places[:, 0] - 6.5) > 0.6]
    ahead = places[:, 0] > 6.5
    particles, motion, velocity = particles_at(grid, places), Motion(grid, walls, solids), grid.velocity()
    # Moved in memory by the sort: who was ahead is found anew.
    ahead = particles.to_numpy()["position"][:, 0] * 24 > 6.5
    dt = 1 / 24 / speed
    for step in range(8):
        solids.update((step + 1) * dt)
        motion.move(particles, velocity, dt)
        middle = 6.5 + step + 1
        x = particles.to_numpy()["position"][:, 0] * 24
        assert (x[ahead] > middle).all() and (x[~ahead] < middle).all(), step
        assert np.abs(x - middle).min() > 0.49, "nobody is in the wall"


@pytest.mark.vulkan_too
@SHAPES
@pytest.mark.parametrize("beside", [False, True])
def test_particles_leave_through_the_cells_of_a_side_that_are_open(shape, beside):
    """Those whose centre lies in an open part, as its faces have it; all others stay within their wall."""
    grid = Grid(shape, 0.5)
    part = Part((1.1, 0.4)[: grid.dim - 1], (2.3, 5.0)[: grid.dim - 1], Side("open"))
    others = [("no-slip", "no-slip")] * (grid.dim - 1)
    walls = Walls(grid, [("no-slip", Side("no-slip", parts=(part,))), *others])
    solids = None
    if beside:
        solids = Solids(grid, walls, [Solid("box", a=(1.0,) * grid.dim, b=(0.2,) * grid.dim)])
        solids.update(0.0)
    across = np.arange(0.05, shape[1], 0.1)
    places = np.full((len(across), grid.dim), 3.3)
    places[:, 0], places[:, 1] = shape[0] - 0.2, across
    particles, velocity = particles_at(grid, places), grid.velocity()
    velocity.from_numpy(np.repeat([1.0] + [0.0] * (grid.dim - 1), grid.cells).astype(np.float32))
    Motion(grid, walls, solids).move(particles, velocity, 0.25)
    particles.sort()
    stay = np.sort(particles.to_numpy()["position"][:, 1]) / grid.dx
    # From 2.2 to 4.6 cells these are the third to the fifth one.
    assert stay == pytest.approx(across[(across < 2.0) | (across > 5.0)], abs=1e-4)
    assert particles.to_numpy()["position"][:, 0].max() < shape[0] * grid.dx


def velocities_after_a_step(grid, solids, places, own, upward, dt):
    """Velocities of particles, in the order of their first coordinate, after one step through what goes ``upward``."""
    particles, velocity = particles_at(grid, places, own), grid.velocity()
    values = np.zeros((grid.dim, *grid.padded), np.float32)
    values[1] = upward
    velocity.from_numpy(values.ravel())
    Motion(grid, walls_of(grid), solids).move(particles, velocity, dt)
    found = particles.to_numpy()
    return found["velocity"][np.argsort(found["position"][:, 0])]


@pytest.mark.vulkan_too
@pytest.mark.parametrize("dim", [2, 3])
def test_what_touches_a_solid_does_not_go_into_it(dim):
    """Of a particle that a moving floor holds up, the velocity across it is the floor's; one that leaves it or is away keeps its own.

    Kept, it grew by gravity in each step: drops on the edge of a glass ran up 7 m/s.
    """
    grid, rise = Grid((8,) * dim, 1 / 8), 0.25
    middle, half = (0.5, 0.0, 0.5)[:dim], (2.0, 0.25, 2.0)[:dim]
    floor = Solid("box", a=middle, b=half, motion=Moves(middle, velocity=(0.0, rise, 0.0)[:dim]))
    solids = Solids(grid, walls_of(grid), [floor])
    solids.update(0.0)
    places = np.full((3, dim), 4.0)
    places[:, 1], places[:, 0] = (2.001, 2.001, 4.0), (3.0, 4.0, 5.0)
    own = np.full((3, dim), 0.5)
    own[:, 1] = (-3.0, 3.0, -3.0)
    found = velocities_after_a_step(grid, solids, places, own, -1.0, 0.01)
    np.testing.assert_allclose(found[:, 1], [rise, 3.0, -3.0], atol=1e-5)
    np.testing.assert_allclose(np.delete(found, 1, axis=1), 0.5, atol=1e-5)


@pytest.mark.vulkan_too
@pytest.mark.parametrize("solid", [False, True], ids=["alone", "beside a solid"])
@pytest.mark.parametrize("dim", [2, 3])
def test_what_a_side_stops_does_not_go_into_it(dim, solid):
    """Of a particle that runs into a closed side; what goes along the side it keeps, and in the box all, also near a side."""
    grid = Grid((8,) * dim, 1 / 8)
    block = Solid("box", a=(0.1, 0.5, 0.5)[:dim], b=(0.05,) * dim)
    solids = Solids(grid, walls_of(grid), [block] if solid else [])
    solids.update(0.0)
    places = np.full((3, dim), 4.0)
    places[:, 1], places[:, 0] = (0.05, 7.95, 0.3), (3.0, 5.0, 7.0)
    own = np.full((3, dim), 0.5)
    own[:, 1] = (-3.0, 3.0, -3.0)
    apart = np.where(np.indices(grid.padded)[1] < 5, -1.0, 1.0)
    found = velocities_after_a_step(grid, solids if solid else None, places, own, apart, 0.02)
    np.testing.assert_array_equal(found[:, 1], [0.0, 0.0, -3.0])
    np.testing.assert_array_equal(np.delete(found, 1, axis=1), 0.5)


@SHAPES
def test_particles_stay_in_a_closed_box_and_leave_an_open_one(shape):
    grid = Grid(shape, 0.1)
    velocity = grid.velocity()
    velocity.fill(1.0)
    for kind, remaining in (("free-slip", 200), ("open", 0)):
        particles = particles_at(grid, scattered(grid, 200))
        motion = Motion(grid, walls_of(grid, kind), None)
        for _ in range(20):
            motion.move(particles, velocity, 0.15)
        particles.sort()
        assert particles.count == remaining
        places = particles.to_numpy()["position"] / 0.1
        assert ((places >= 0) & (places <= np.array(shape))).all()


@pytest.mark.vulkan_too
@SHAPES
def test_a_flat_surface_lies_where_the_particles_end(shape):
    """At any height, up to the walls: what is given is a distance, on both sides."""
    grid = Grid(shape, 1.0)
    surface, phi = ParticleSurface(grid, walls_of(grid), None), grid.array()
    for height in (4.0, 4.2, 4.5, 4.9):
        places = lattice(grid)
        along = PER_AXIS[grid.dim]
        places[:, 1] += height - np.floor(height * along) / along
        surface.find(particles_at(grid, places[places[:, 1] < height]), phi)
        found = grid.to_numpy(phi)
        exact = np.broadcast_to(grid.cell_centres()[1] - height, found.shape)
        near = np.abs(exact) < 0.9
        # Eight or nine particles in a cell: a lattice that the kernel does not see as even.
        assert np.abs(found - exact)[near].max() < 0.1
        assert np.ptp(found, axis=0).max() < 1e-4, "as flat at the walls as in the middle"
        assert (found[exact < -1] <= -0.9 * BELOW).all()


def test_a_surface_meets_a_slanted_solid_as_it_comes():
    """Beside a solid the liquid does not end, and no air is seen in it."""
    grid = Grid((24, 24), 1.0)
    walls = walls_of(grid)
    solids = Solids(grid, walls, [Solid("capsule", a=(4.0, -4.0), b=(16.0, 30.0), radius=4.0)])
    solids.update(0.0)
    places = lattice(grid)
    t = np.clip(((places - (4, -4)) @ np.array([12, 34])) / (12**2 + 34**2), 0, 1)
    distance = np.linalg.norm(places - (4, -4) - t[:, None] * np.array([12, 34]), axis=1) - 4
    phi = grid.array()
    ParticleSurface(grid, walls, solids).find(particles_at(grid, places[(places[:, 1] < 12) & (distance > 0)]), phi)
    found, open_cells = grid.to_numpy(phi), grid.to_numpy(solids.fluid) > 0
    height = np.broadcast_to(grid.cell_centres()[1] - 12, found.shape)
    assert (found[open_cells & (height < -0.3)] < 0).all(), "no air in the liquid beside the solid"
    assert (found[open_cells & (height > 0.5)] > 0).all(), "no liquid above the surface"


@pytest.mark.vulkan_too
@pytest.mark.parametrize("dim", [2, 3], ids=["2D", "3D"])
@pytest.mark.parametrize("body", ["plane", "ball"])
def test_the_surface_of_what_fills_a_level_set_is_that_one(dim, body):
    """Looked for between cells one above the other; of a lattice alone it is three to five times as far off."""
    grid, places = Grid((22,) * dim, 0.1), np.indices((22,) * dim) + 0.5 - 11.3
    plane, ball = (places[0] * 0.2 + places[-1]) / np.sqrt(1.04), np.sqrt((places**2).sum(0)) - 7.0
    given = plane if body == "plane" else ball
    liquid = Liquid(grid, walls_of(grid), Scratch(grid))
    liquid.phi.from_numpy(np.pad(given * grid.dx, 1, mode="edge").astype(np.float32).ravel())
    liquid.take_over(grid.velocity())
    found = liquid.phi.to_numpy().reshape((24,) * dim)[(slice(1, -1),) * dim] / grid.dx
    # As far from the box, in which what is aslant has its image.
    below, above = (given[..., :-1] < 0) & (given[..., 1:] >= 0), np.abs(places[..., :-1] + 0.3).max(0) < 8
    pairs = [(a[..., :-1][below & above], a[..., 1:][below & above]) for a in (found, given)]
    heights = [lower / (lower - upper) for lower, upper in pairs]
    off = heights[0] - heights[1]
    # The ball is of 7 cells, of whose curve the kernel sees a part, and steep at its sides.
    assert off.std() < {"plane": 0.02, "ball": 0.032}[body] * (0.25 if dim == 2 else 1.0)
    assert abs(off.mean()) < 0.01
    count = liquid.particles.count / FULL[dim]
    assert abs(count - (given < 0).sum()) < 0.02 * count


def test_what_fills_a_level_set_beside_a_solid_stays_outside_of_it():
    grid = Grid((24, 24), 0.1)
    solids = Solids(grid, walls_of(grid), [Solid("sphere", (1.2, 1.2), radius=0.5)])
    solids.update(0.0)
    column, row = np.indices((26, 26))
    height = row - 16.2 + 0.2 * column
    liquid = Liquid(grid, walls_of(grid), Scratch(grid), solids)
    liquid.phi.from_numpy((height * grid.dx).astype(np.float32).ravel())
    liquid.take_over(grid.velocity())
    places = liquid.particles.to_numpy()["position"]
    assert len(places) > 1000
    # The distance to a solid is interpolated between the corners of cells.
    assert np.linalg.norm(places - 1.2, axis=1).min() > 0.5 - 0.02 * grid.dx


@pytest.mark.vulkan_too
@SHAPES
def test_a_shape_is_filled_once(shape):
    grid = Grid(shape, 0.1)
    particles, seeding = particles_at(grid, np.zeros((0, grid.dim))), Seeding(grid, None)
    box = ("box", [0.4] * grid.dim, [0.2] * grid.dim, 0.0, [1.0] * grid.dim)
    seeding.fill(particles, *box)
    assert particles.count == 4**grid.dim * FULL[grid.dim]
    particles.sort()
    seeding.fill(particles, *box)
    assert particles.count == 4**grid.dim * FULL[grid.dim], "what is full stays as it is"
    assert (particles.to_numpy()["velocity"] == 1).all()


def crowding(particles):
    """The divergence, 1/s, that gives back a tenth of what is too many in 0.1 s: deep in the liquid, and in so long a step that the past is forgotten."""
    grid = particles.grid
    phi, out, velocity, weight = grid.array(), grid.array(), grid.velocity(), grid.velocity()
    phi.fill(-BELOW * grid.dx)
    Transfer(grid).to_faces(particles, velocity, weight)
    Crowding(grid, open_above(grid), None).find(particles, weight, phi, velocity, out, grid.array(), 0.1, 100.0)
    return grid.to_numpy(out)


def open_above(grid):
    """Walls all around, but above: in a full box without a way out nothing is spread."""
    sides = [["free-slip"] * 2] * (grid.dim - 1)
    return Walls(grid, [*sides, ["free-slip", "open"]])


@SHAPES
def test_the_divergence_that_spreads_goes_along_and_follows_what_is_found(shape):
    """In the mean of the time in which the fastest cross ``LASTS`` cells: by what it was found to be in each step it beat upon solids."""
    grid = Grid(shape, 0.1)
    phi, out, velocity, weight = grid.array(), grid.array(), grid.velocity(), grid.velocity()
    phi.fill(-BELOW * grid.dx)
    crowding, room, dt = Crowding(grid, open_above(grid), None), grid.array(), 0.1

    def find(x, crossed=1.0):
        speed = np.zeros((len(x), grid.dim))
        speed[:, 0] = 2 * grid.dx / dt  # two cells in a step, along the first axis
        particles = particles_at(grid, x, speed)
        Transfer(grid).to_faces(particles, velocity, weight)
        crowding.find(particles, weight, phi, velocity, out, room, dt, crossed)
        return grid.to_numpy(out)

    q = (np.indices([n * 4 for n in shape]).reshape(grid.dim, -1).T + 0.5) / 4
    inner = (slice(1, -1),) * grid.dim
    whole = find(q, 100.0)[inner].mean()
    out.fill(0.0)
    for k in range(1, 6):
        np.testing.assert_allclose(
            find(q)[inner], (1 - np.exp(-k / LASTS)) * whole, rtol=0.02
        )  # from beside a wall, where lattices weigh otherwise
    spot, moved = np.zeros(shape, np.float32), np.zeros(shape)
    spot[(2,) * grid.dim], moved[(4, *(2,) * (grid.dim - 1))] = 1.0, np.exp(-1 / LASTS)
    grid.from_numpy(out, spot)
    np.testing.assert_allclose(find(lattice(grid)), moved, atol=2e-5)


@SHAPES
@pytest.mark.parametrize("waves", [1, 2, 3], ids=["along one axis", "along two", "along all"])
def test_cells_in_turn_too_full_and_too_empty_do_not_grow(shape, waves):
    """Whatever the pattern: what is too full spreads, or stays as it is, and what is too empty gathers, or stays."""
    grid = Grid(shape, 0.1)
    cells = np.stack(np.indices(shape), -1).reshape(-1, grid.dim)
    full = (cells[:, :waves].sum(1) % 2).astype(bool)
    middles = cells + 0.5
    particles = particles_at(grid, np.repeat(middles, np.where(full, FULL[grid.dim] + 2, FULL[grid.dim] - 2), axis=0))
    found = crowding(particles)
    inner = (slice(1, -1),) * grid.dim
    full = full.reshape(shape)[inner]
    assert (found[inner][full] > -1e-6).all() and (found[inner][~full] < 1e-6).all()


@SHAPES
def test_what_is_too_full_or_too_empty_everywhere_spreads_or_gathers_beside_walls_too(shape):
    grid = Grid(shape, 0.1)
    along, places = round(FULL[grid.dim] ** (1 / grid.dim)), lattice(grid)
    np.testing.assert_allclose(crowding(particles_at(grid, places)), 0.0, atol=1e-5)
    for more in (2 * along, along - 1):
        q = (np.indices([n * more for n in shape]).reshape(grid.dim, -1).T + 0.5) / more
        # A lattice that is not the one that fills the cells weighs otherwise beside a wall, by up to 0.0625.
        found, crowd = crowding(particles_at(grid, q)), (more / along) ** grid.dim - 1
        np.testing.assert_allclose(found[..., :-1], crowd, atol=0.07)
        np.testing.assert_allclose(found[(slice(1, -1),) * grid.dim], crowd, rtol=1e-5)


def test_a_lattice_that_a_flow_has_strained_is_not_crowded():
    """Whole rows have passed from cell to cell then: by counts a sixth would be too many here and there at any strain."""
    grid = Grid((24, 24), 0.1)
    for strain in (0.01, 0.03, 0.06):
        x = lattice(Grid((48, 48), 0.1)) * [1 + strain, 1 / (1 + strain)]
        found = crowding(particles_at(grid, x[(x < 24).all(1)]))
        # By faces 0.15 of the strain, 0.22, 0.17: where their tents have an edge between two rows.
        np.testing.assert_allclose(found[:-1, :-1], 0.0, atol=0.25 * strain)


def nearest(particles):
    """How near the next particle is to each, in cells."""
    places = particles.to_numpy()["position"] / particles.grid.dx
    return cKDTree(places).query(places, k=2)[0][:, 1]


def spaced_out(grid, places, level, solids=None, times=40):
    """Particles at places, pushed apart in that many steps in which the fastest cross a cell; ``level`` is of cell centres, in cells."""
    particles, phi, spacing = particles_at(grid, places), grid.array(), Spacing(grid, solids)
    phi.from_numpy(np.pad(np.float32(level) * np.float32(grid.dx), 1, mode="edge").ravel())
    for step in range(times):
        if step:
            particles.sort()
        spacing.restore(particles, phi, 1.0)
    return particles


@pytest.mark.vulkan_too
@SHAPES
def test_a_lattice_is_spaced_out_already(shape):
    grid = Grid(shape, 0.1)
    particles = spaced_out(grid, lattice(grid), np.full(shape, -1.0), times=3)
    ours = np.sort(particles.to_numpy()["position"] / grid.dx, axis=0)
    np.testing.assert_allclose(ours, np.sort(lattice(grid), axis=0), atol=1e-5)


@SHAPES
def test_lines_that_a_flow_has_drawn_out_of_a_lattice_are_spaced_out(shape):
    """Columns four times as far apart as in a lattice, in which they are four times as near, but for a hundredth of a cell."""
    grid, along = Grid(shape, 0.1), PER_AXIS[len(shape)]
    places = lattice(grid)
    places = np.repeat(places[places[:, 0] < shape[0] / 4] * np.array([4.0, *[1.0] * (grid.dim - 1)]), 4, axis=0)
    places[:, -1] += (np.tile(np.arange(4), len(places) // 4) - 1.5) / (4 * along)
    places += np.random.default_rng(2).normal(0, 0.005, places.shape)
    places = np.clip(places, 0.01, np.array(shape) - 0.01)
    apart = 1.0 / along
    assert np.median(nearest(particles_at(grid, places))) < 0.25 * apart
    after = nearest(spaced_out(grid, places, np.full(shape, -1.0)))
    # Found 0.79 and 0.73 in 2D, 0.81 and 0.75 in 3D.
    assert np.median(after) > 0.75 * apart and np.quantile(after, 0.05) > 0.7 * apart


@pytest.mark.parametrize("dim", [2, 3])
def test_what_is_spaced_out_stays_below_its_surface_and_out_of_solids(dim):
    """Along a surface that is level particles keep their height; in the air they stay where they are."""
    grid, middle = Grid((12,) * dim, 0.1), np.array([6.0] + [2.0] * (dim - 1))
    solids = Solids(grid, walls_of(grid), [Solid("sphere", tuple(middle * grid.dx), radius=0.25)])
    solids.update(0.0)
    places = scattered(grid, 3000, seed=4)
    in_water, aloft = places[:, 1] < 7.5, (places[:, 1] > 9.5) & (np.arange(3000) % 7 == 0)
    places = places[(np.linalg.norm(places - middle, axis=1) > 2.51) & (in_water | aloft)]
    height = np.arange(12) - 7.0
    level = np.clip(np.broadcast_to(height[:, None] if dim == 3 else height, grid.shape), -1.0, 1.5)
    # Sorted once, they keep their places in memory.
    before = spaced_out(grid, places, level, solids, times=0).to_numpy()["position"] / grid.dx
    after = spaced_out(grid, before, level, solids, times=1).to_numpy()["position"] / grid.dx
    moved = after - before
    aloft, near = before[:, 1] > 7.5, (before[:, 1] > 6.8) & (before[:, 1] < 7.45)
    np.testing.assert_allclose(moved[aloft], 0, atol=1e-6)
    np.testing.assert_allclose(moved[near, 1], 0, atol=1e-4)
    assert np.abs(moved[near, 0]).max() > 0.01
    assert 0.05 < np.linalg.norm(moved, axis=1).max() < 0.1001
    # The distance to a solid is interpolated between the corners of cells.
    assert np.linalg.norm(after - middle, axis=1).min() > 2.48


@SHAPES
@pytest.mark.parametrize("where", [1.5, 0.5], ids=["inside", "in a corner"])
def test_a_gap_between_particles_is_no_air(shape, where):
    """One of a cell in the corner of a calm pool was a bubble, at which all of the pool ran for a step."""
    grid, places = Grid(shape, 1.0), lattice(Grid(shape, 1.0))
    particles = particles_at(grid, places[np.abs(places - where).max(axis=1) > 0.7])
    phi = grid.array()
    ParticleSurface(grid, walls_of(grid), None).find(particles, phi)
    assert (grid.to_numpy(phi) < 0).all()
    # Of more cells, or on a side that lets air in, it is air.
    wide = particles_at(grid, places[np.abs(places - where).max(axis=1) > 1.7])
    ParticleSurface(grid, walls_of(grid), None).find(wide, phi)
    assert (grid.to_numpy(phi) > 0).any()
    ParticleSurface(grid, walls_of(grid, "open"), None).find(particles, phi)
    assert (grid.to_numpy(phi) > 0).any() == (where < 1)


@SHAPES
def test_reseeding_keeps_the_number_in_deep_cells_within_bounds(shape):
    """Too many in one half, too few in the other: as many are put there as were taken away here."""
    grid = Grid(shape, 1.0)
    places = lattice(grid)
    half = places[:, 0] < shape[0] // 2
    crowded = np.concatenate([places[half] + 0.003 * k for k in range(20)] + [places[~half][::3]])
    particles, phi, velocity = particles_at(grid, crowded), grid.array(), grid.velocity()
    velocity.fill(3.0)
    phi.fill(-2.0)
    target, seeding = particles.count, Seeding(grid, None)
    for step in range(30):
        seeding.restore(particles, phi, velocity, target - particles.count, step)
        particles.sort()
    starts = particles.starts.to_numpy()
    counts = np.diff(starts[: grid.cells + 1])
    counts = counts.reshape(grid.padded)[(slice(1, -1),) * grid.dim]
    assert counts.max() <= 16 * FULL[grid.dim]
    assert counts.min() >= FULL[grid.dim] // 3
    assert (particles.to_numpy()["velocity"] <= 3.0).all()


def test_what_is_lacking_is_made_up_for_and_no_more():
    """Many places are free here, 110,000: the first step put eleven times as many there as were lacking."""
    grid = Grid((192, 192), 1.0)
    places = np.delete(lattice(grid), np.s_[::3], axis=0)
    particles, phi, velocity = particles_at(grid, places), grid.array(), grid.velocity()
    phi.fill(-2.0)
    target, seeding = particles.count + 500, Seeding(grid, None)
    for step in range(12):
        seeding.restore(particles, phi, velocity, target - particles.count, step)
        particles.sort()
        assert particles.count < target + 50
    assert particles.count > target - 50


def test_a_cell_that_a_solid_covers_in_part_has_fewer_particles_and_lacks_none():
    """Those that such a cell had were too few for a whole one, and what was put there came on top of all there should be."""
    grid = Grid((32, 32), 1.0)
    solids = Solids(grid, walls_of(grid), [Solid("sphere", a=(16.3, 15.8), radius=9.0)])
    solids.update(0.0)
    x = lattice(grid) + np.random.default_rng(3).uniform(-0.15, 0.15, (9 * 32 * 32, 2))
    away = np.hypot(*(x - [16.3, 15.8]).T) - 9.0
    particles, phi, velocity = particles_at(grid, x[away > 0]), grid.array(), grid.velocity()
    phi.fill(-2.0)
    before = particles.count
    Seeding(grid, solids).restore(particles, phi, velocity, 0, 1)
    assert particles.count == before
