"""The views and their halves: arrows, tracers, sheets, legends, the glow of hot gas; preparing, drawing, resizing."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from test_render import PIXELS, gaussian, gray, linear_light, picture, put, simulation_of, tone_mapped

from taichi_fluid.carried import CARRIED, UNITS
from taichi_fluid.render import blackbody, colour_maps, font, legend
from taichi_fluid.render.flame import BRIGHT, DULL
from taichi_fluid.render.image import fit_plane
from taichi_fluid.render.ranges import SHRINK, Ranges, Smoothed, plane_of
from taichi_fluid.render.renderer import Renderer
from taichi_fluid.render.slices import AIR_GREY
from taichi_fluid.render.tracers import Tracers
from taichi_fluid.render.views import ARROW_SHADE
from taichi_fluid.render.volume import SLAB
from taichi_fluid.scene import Scene

VIEWS = ["volume", "slice", "sheets", "arrows", "tracers"]


def set_velocity(simulation, velocity) -> None:
    """A velocity that is a function of the coordinates of its faces, or the same everywhere; ghosts filled."""
    grid = simulation.grid
    faces = []
    for axis in range(grid.dim):
        places = [
            grid.dx * (np.arange(n + (a == axis)) + (0.0 if a == axis else 0.5)) for a, n in enumerate(grid.shape)
        ]
        value = velocity(*np.meshgrid(*places, indexing="ij"))[axis] if callable(velocity) else velocity[axis]
        shape = [n + (a == axis) for a, n in enumerate(grid.shape)]
        faces.append(np.broadcast_to(np.asarray(value, dtype=float), shape))
    grid.face_velocity_from_numpy(simulation.state.velocity.current, faces)
    simulation.walls.fill_velocity(simulation.state.velocity.current)


def look_of(simulation, **changes) -> None:
    simulation.scene = simulation.scene.with_values({f"look.{name}": value for name, value in changes.items()})


def a_flow(dim, cells=12, pixels=(200, 180), solid=True, **look):
    """A little of everything: heat, smoke, a ball in the way, an open lid."""
    source = {"shape": "sphere", "center": [0.5, 0.25, 0.5][:dim], "radius": 0.15, "smoke": 5.0, "temperature": 300.0}
    ball = {"shape": "sphere", "center": [0.6, 0.7, 0.5][:dim], "radius": 0.15}
    simulation = simulation_of(
        (cells,) * dim, pixels, [source], solids=[ball] if solid else [], look={"light_strength": 1.5, **look}
    )
    for _ in range(6):
        simulation.step(0.05)
    return simulation


# Halves


@pytest.mark.vulkan_too(dim=2)
@pytest.mark.parametrize("view", VIEWS)
def test_a_picture_of_what_was_prepared_does_not_follow_the_state(dim, view):
    """Also with another camera, exposure and size in between, which need no new preparation."""
    simulation = a_flow(dim, view=view)
    renderer = Renderer(simulation)
    renderer.prepare()
    first = renderer.draw()
    assert np.ptp(first) > 50
    for quantity in simulation.state.quantities():
        values = quantity.current.to_numpy()
        quantity.current.from_numpy(np.ascontiguousarray(values[::-1] * 0.5))
    np.testing.assert_array_equal(renderer.draw(), first)
    before = simulation.scene
    simulation.scene = before.with_values({"look.exposure": 3.0, "camera.azimuth": 80.0, "look.position": 0.25})
    assert renderer.prepared_for(simulation.scene.look)
    renderer.resize(64, 48)
    assert renderer.draw().shape == (48, 64, 3)
    renderer.resize(first.shape[1], first.shape[0])
    simulation.scene = before
    np.testing.assert_array_equal(renderer.draw(), first)
    assert np.abs(renderer.render().astype(int) - first).max() > 10, "a new preparation shows the new state"


def test_it_is_known_what_needs_a_new_preparation(dim):
    simulation = a_flow(dim)
    renderer = Renderer(simulation)
    look = simulation.scene.look
    assert not renderer.prepared_for(look), "nothing was prepared yet"
    renderer.prepare()

    def after(**changes):
        return renderer.prepared_for(
            Scene.with_values(simulation.scene, {f"look.{k}": v for k, v in changes.items()}).look
        )

    assert after(exposure=2.0, background_top=[0.5, 0.5, 0.5], legend=False, colour_map="gray")
    for change in ({"extinction": 3.0}, {"light_strength": 1.0}, {"albedo": [0.5, 0.1, 0.1]}, {"view": "sheets"}):
        assert not after(**change), change
    look_of(simulation, view="slice", quantity="speed")
    assert renderer.draw().shape == (180, 200, 3), "drawn all the same"
    assert renderer.prepared_for(simulation.scene.look)
    assert after(position=0.1, axis=1)
    assert not after(quantity="pressure")


@pytest.mark.parametrize("view", VIEWS)
def test_another_size_gives_the_picture_of_a_new_renderer(dim, view):
    simulation = a_flow(dim, view=view)
    sizes = [(200, 180), (64, 40), (230, 200), (170, 165)]
    renderer = Renderer(simulation, *sizes[0])
    for width, height in sizes:
        renderer.resize(width, height)
        resized = renderer.render()
        assert resized.shape == (height, width, 3)
        np.testing.assert_array_equal(resized, Renderer(simulation, width, height).render())
    with pytest.raises(ValueError, match="at least one pixel"):
        renderer.resize(0, 5)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("shape", [(7, 5, 6), (1, 1, 1), (5, 1), (3, 17)], ids=str)
def test_any_box_has_every_view(shape, view):
    simulation = simulation_of(shape, (40, 30), look={"view": view, "quantity": "speed"}, camera={"azimuth": 33.0})
    set_velocity(simulation, (1.0, 0.5, 0.2))
    picture(simulation)


@pytest.mark.parametrize("view", VIEWS)
def test_dye_is_a_quantity_too(dim, view):
    source = {"shape": "sphere", "center": [0.5] * dim, "radius": 0.2, "dye": [1.0, 0.5, 0.2]}
    simulation = simulation_of((8,) * dim, sources=[source], look={"view": view, "quantity": "dye"})
    simulation.step(0.1)
    picture(simulation)


# Limits of their own


@pytest.mark.parametrize(("size", "seen"), [((620, 373), 620), ((480, 480), 480), ((480, 240), 398)])
def test_no_rim_of_less_than_a_pixel_is_left_beside_a_plane(size, seen):
    """2.0 m x 1.2 m in 128 cells are 77 high: a column beside them was dark."""
    shape = (64, 64) if size[0] == size[1] else (128, 77)
    (left, _), cells_per_pixel = fit_plane(shape, SimpleNamespace(width=size[0], height=size[1]))
    columns = left + (np.arange(size[0]) + 0.5) * cells_per_pixel
    assert ((columns > 0) & (columns < shape[0])).sum() == seen


def test_limits_grow_at_once_and_shrink_slowly():
    smoothed = Smoothed()
    assert smoothed.update("a", 1, -1.0, 2.0) == (-1.0, 2.0)
    assert smoothed.update("a", 2, -3.0, 4.0) == (-3.0, 4.0), "nothing is clipped"
    low, high = smoothed.update("a", 3, -2.0, 2.0)
    assert (low, high) == pytest.approx((-3.0 + SHRINK, 4.0 - 2 * SHRINK))
    assert smoothed.update("a", 3, -2.0, 2.0) == (low, high), "the same moment again"
    assert smoothed.update("b", 4, 0.0, 1.0) == (0.0, 1.0), "another quantity"
    assert smoothed.update("b", 2, 0.25, 0.5) == (0.25, 0.5), "back in time"


@pytest.mark.vulkan_too
@pytest.mark.parametrize("shape", [(7, 5, 6), (7, 5)], ids=str)
def test_limits_are_those_of_the_cells_in_the_plane(shape):
    simulation = simulation_of(shape)
    grid = simulation.grid
    values = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    values.flat[3] = np.nan
    array = grid.array()
    grid.from_numpy(array, values)
    ranges = Ranges(grid)
    for axis in range(3 if len(shape) == 3 else 1):
        for position in (0.0, 0.31, 0.5, 1.0):
            plane = plane_of(grid, axis, position)
            part = values
            if len(shape) == 3:
                place = plane.place - 1  # of a cell's centre: its number
                layers = {
                    min(max(math.floor(place), 0), shape[axis] - 1),
                    min(max(math.ceil(place), 0), shape[axis] - 1),
                }
                part = np.take(values, sorted(layers), axis=axis)
            assert ranges.limits(array, plane) == (np.nanmin(part), np.nanmax(part))


def test_what_is_inside_solids_does_not_count(dim):
    simulation = a_flow(dim, solid=True)
    grid, inside = simulation.grid, simulation.to_numpy("fluid") == 0
    array = grid.array()
    grid.from_numpy(array, np.where(inside, 99.0, 2.0))
    assert inside.any()
    assert simulation.solids is not None
    assert Ranges(grid, simulation.solids.fluid).limits(array, plane_of(grid, 2, 0.5)) == (2.0, 2.0)


@pytest.mark.parametrize(("quantity", "even"), [("divergence", True), ("pressure", True), ("speed", False)])
def test_signed_quantities_have_zero_in_the_middle(dim, quantity, even):
    simulation = a_flow(dim, solid=False, view="slice", quantity=quantity, colour_map="gray", legend=False)
    renderer = Renderer(simulation)
    renderer.prepare()
    low, high = renderer._view(simulation.scene.look).measure(simulation.scene.look)
    assert high > 0
    assert (low == -high) == even
    assert low >= 0 or even


# The legend


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1.0, "1"), (-12.345, "-12.3"), (0.012345, "0.0123"), (1234.0, "1230"), (99999.0, "1e5"),
     (1.5e-7, "1.5e-7"), (-2.346e9, "-2.35e9"), (0.9999, "1"), (math.inf, "-"), (1e-30, "1e-30"), (200.0, "200")],
)  # fmt: skip
def test_numbers_have_three_digits(value, text):
    assert legend.number_text(value) == text


def test_every_letter_that_is_needed_is_there_and_its_own():
    words = [
        *CARRIED,
        *UNITS,
        *UNITS.values(),
    ]
    needed = sorted(set("".join(words) + "0123456789.-e") - {" "})
    glyphs = {character: font.glyph(character).tobytes() for character in needed}
    assert len(set(glyphs.values())) == len(needed)
    assert font.text_mask("ab", 3).shape == (21, 33)


@pytest.mark.parametrize(
    "size", [pytest.param((160, 160), marks=pytest.mark.vulkan_too), (480, 480), (1600, 900), (300, 700)], ids=str
)
@pytest.mark.parametrize("view", ["slice", "arrows", "tracers"])
def test_the_bar_has_the_colours_of_the_map(dim, size, view):
    simulation = simulation_of((8,) * dim, size, look={"view": view, "colour_map": "viridis", "quantity": "speed"})
    set_velocity(simulation, (2.0, 1.0, 0.5)[:dim])
    renderer = Renderer(simulation)
    rgb = renderer.render().astype(int)
    limits = renderer._view(simulation.scene.look)
    assert limits is not None
    look_of(simulation, legend=False)
    changed = (renderer.render().astype(int) != rgb).any(axis=2)
    lines = ["speed m/s", "0.00", "0.00", "0.00"]
    rows, columns = np.nonzero(changed)
    assert rows.min() > 0 and columns.min() > 0, "it leaves the edges alone"
    place = legend.layout(*size, lines)
    assert place is not None
    bar_left = columns.min() + 4 * place.scale
    _, y, _, height = place.bar
    table = colour_maps.table("viridis") * (0.55 if view == "arrows" else 1.0)
    top, bottom = rgb[y, bar_left + 1], rgb[y + height - 1, bar_left + 1]
    assert np.abs(top - 255 * table[-1]).max() <= 1
    assert np.abs(bottom - 255 * table[0]).max() <= 1
    assert np.abs(rgb[y + height // 2, bar_left + 1] - 255 * table[128]).max() <= 6


def test_text_never_meets_the_bar_nor_the_edge():
    for size in [(160, 160), (161, 900), (480, 480), (1600, 900), (4000, 3000)]:
        for numbers in (["1", "0", "-1"], ["-1.23e-30", "-1.23e-30", "-1.23e-30"]):
            lines = ["temperature K", *numbers]
            place = legend.layout(*size, lines)
            assert place is not None
            left, top, width, height = place.panel
            assert left >= 0 and top >= 0 and left + width <= size[0] and top + height <= size[1]
            assert place.left > place.bar[0] + place.bar[2]
            line = font.HEIGHT * place.scale
            assert place.numbers[0] + line < place.numbers[1] and place.numbers[1] + line < place.numbers[2]
            assert place.numbers[2] + line <= top + height
            longest = max(font.text_mask(text, place.scale).shape[1] for text in numbers)
            assert place.left + longest <= left + width
    assert legend.layout(159, 400, ["a", "1", "2", "3"]) is None


# Arrows


def arrows_over_black(dim, velocity, cells=8, arrows=4, pixels=160, **look):
    """Only arrows: the slice below shows 0 in black."""
    look = gray(view="arrows", quantity="smoke", limits=[0.0, 1.0], arrows=arrows, legend=False, **look)
    simulation = simulation_of((cells,) * dim, (pixels, pixels), look=look)
    set_velocity(simulation, velocity)
    return picture(simulation)


@pytest.mark.vulkan_too
@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_a_still_fluid_draws_no_arrows(dim, noise):
    assert arrows_over_black(dim, (noise,) * dim).max() == 0


@pytest.mark.parametrize(
    "direction", [(1, 0), (-1, 0), (0, 1), (0, -1), pytest.param((3, 4), marks=pytest.mark.vulkan_too), (-1, 1)]
)
def test_a_uniform_flow_draws_arrows_all_alike_that_point_its_way(dim, direction):
    pixels, arrows = 160, 4
    rgb = arrows_over_black(dim, (*direction, 0.0)[:dim], arrows=arrows, pixels=pixels)
    edge = pixels // arrows
    tiles = rgb[..., 0].reshape(arrows, edge, arrows, edge).transpose(0, 2, 1, 3)
    assert np.abs(tiles - tiles[0, 0]).max() <= 2, "the tiles are alike"
    y, x = np.mgrid[:edge, :edge] + 0.5 - edge / 2
    ink = tiles[0, 0] / tiles[0, 0].sum()
    # The head is the heavy end: the centre of the ink lies from the middle towards it.
    centre = np.array([(ink * x).sum(), -(ink * y).sum()])
    way = np.array(direction) / np.hypot(*direction)
    assert centre @ way > 0.06 * edge
    assert abs(centre @ [-way[1], way[0]]) < 0.01 * edge
    along = (x * way[0] - y * way[1])[ink > 0.3 * ink.max()]
    assert np.ptp(along) == pytest.approx(0.92 * edge, abs=2.5), "as long as its tile"


def test_arrows_are_as_long_as_the_flow_is_fast(dim):
    lengths = []
    for speed in (0.5, 1.0, 2.0, 7.0):
        rgb = arrows_over_black(dim, (speed, 0.0, 0.0)[:dim], arrow_speed=2.0, pixels=320)
        row = rgb[40 - 1 : 40 + 1, :80, 0].max(axis=0)
        lengths.append((row > 128).sum())
    assert lengths[0] == pytest.approx(0.25 * lengths[2], abs=1.5)
    assert lengths[1] == pytest.approx(0.5 * lengths[2], abs=1.5)
    assert lengths[3] == lengths[2], "none is longer than its tile"


@pytest.mark.parametrize(("axis", "velocity", "towards"), [(2, (1, 0, 1), 1), (2, (1, 0, -1), -1), (0, (-1, 0, 1), 1),
                                                           (0, (1, 0, 1), -1), (1, (1, -1, 0), 1), (1, (1, 1, 0), -1)])  # fmt: skip
def test_flow_to_the_eye_is_warm_and_away_cool(axis, velocity, towards):
    rgb = arrows_over_black(3, tuple(map(float, velocity)), axis=axis).reshape(-1, 3)
    ink = rgb[rgb.max(axis=1) > 200].mean(axis=0)
    assert (ink[0] - ink[2]) * towards > 50


@pytest.mark.vulkan_too
@pytest.mark.parametrize("view", ["slice", "arrows"])
def test_what_a_liquid_has_is_shown_up_to_its_surface_and_not_above(dim, view):
    """Its colours faded out over a cell below it, and arrows stood in the air, where the velocity is continued."""
    height, cells, pixels = 0.53, 16, 160
    pool = {"shape": "box", "center": [0.5, height / 2, 0.5][:dim], "size": [1.0, height, 1.0][:dim]}
    look = gray(view=view, quantity="speed", limits=[0.0, 2.0], arrows=8, legend=False)
    simulation = simulation_of((cells,) * dim, (pixels, pixels), look=look, liquid={"bodies": [pool]})
    set_velocity(simulation, (1.0, 0.0, 0.0)[:dim])
    rgb = picture(simulation)[:, 20:-20]  # through the sides nothing flows
    surface = pixels * (1 - height)
    edge = 0.1 * pixels / cells  # what the particles make of the height
    above, below = rgb[: math.floor(surface - edge - 0.5)], rgb[math.ceil(surface + edge + 0.5) :]
    assert (above == round(255 * AIR_GREY)).all()
    water = round(255 * 0.5 * (ARROW_SHADE if view == "arrows" else 1.0))
    if view == "slice":
        assert np.abs(below - water).max() <= 1
    else:
        assert 0.05 < (np.abs(below - water) > 1).mean() < 0.5


# Tracers


def tracers_in(simulation, count=500) -> Tracers:
    distance = simulation.solids.distance if simulation.solids else None
    return Tracers(simulation.grid, simulation.walls, distance, count)


def places_of(tracers) -> np.ndarray:
    """In metres, ``(count, dim)``."""
    grid = tracers.grid
    return (tracers.places.to_numpy().reshape(grid.dim, -1).T - 0.5) * grid.dx


def births_of(tracers) -> np.ndarray:
    return tracers.lives.to_numpy()[tracers.count :]


@pytest.mark.vulkan_too
def test_tracers_in_a_uniform_flow_move_with_it(dim):
    periodic = {"domain": {"size": [1.0] * dim, "resolution": 8, "boundaries": "periodic"}}
    simulation = simulation_of((8,) * dim, **periodic)
    velocity = np.array([0.7, -0.4, 0.2][:dim])
    set_velocity(simulation, velocity)
    tracers, u = tracers_in(simulation), simulation.state.velocity.current
    tracers.advance(u, 0.0, 1e6, 1.0)
    start = places_of(tracers)
    assert start.min() >= 0 and start.max() <= 1
    assert np.abs(start.mean(axis=0) - 0.5).max() < 0.06, "everywhere: three sigma of 500"
    for step in range(1, 6):
        tracers.advance(u, 0.3 * step, 1e6, 1.0)
    # Back through the sides of the periodic box; rounding of five steps at a scale of 8 cells.
    np.testing.assert_allclose((places_of(tracers) - start - 1.5 * velocity + 0.5) % 1.0, 0.5, atol=1e-5)


def test_tracers_in_a_turning_flow_keep_their_radius():
    simulation = simulation_of((16, 16))
    set_velocity(simulation, lambda x, y: (0.5 - y, x - 0.5))
    tracers, u = tracers_in(simulation), simulation.state.velocity.current
    tracers.advance(u, 0.0, 1e6, 1.0)
    start = places_of(tracers) - 0.5
    tracers.advance(u, math.pi / 2, 1e6, 1.0)
    end = places_of(tracers) - 0.5
    radius = np.hypot(*start.T)
    inner = radius < 0.35  # those farther out meet the walls
    # The midpoint rule in steps of two cells turns by 2 dx/r each and errs by (2 dx/r)³/6 of r in place, in all
    # π/2 · (2 dx/r)²/6, and by (2 dx/r)⁴/8 in radius.
    turned = np.stack([-start[:, 1], start[:, 0]], axis=1)
    step = np.minimum(2 / 16 / np.maximum(radius, 1e-3), math.pi / 2)
    assert (np.abs(np.hypot(*end.T) - radius)[inner] <= (0.03 + step**3 / 4 * radius)[inner]).all()
    outer = inner & (radius > 0.2)
    assert np.linalg.norm(end - turned, axis=1)[outer].max() < math.pi / 2 * (2 / 16 / 0.2) ** 2 / 6


def test_tracers_stay_in_the_fluid_and_are_the_same_each_time(dim):
    ends = []
    for _ in range(2):
        simulation = a_flow(dim)
        tracers = tracers_in(simulation)
        for _ in range(10):
            simulation.step(0.05)
            tracers.advance(simulation.state.velocity.current, simulation.time, 0.3, 5.0)
            places = places_of(tracers)
            assert places.min() >= 0 and places.max() <= 1
            assert np.linalg.norm(places - [0.6, 0.7, 0.5][:dim], axis=1).min() > 0.15 - 0.25 / 12
        ends.append(tracers.places.to_numpy())
    np.testing.assert_array_equal(*ends)
    assert births_of(tracers).min() >= 2, "each has died in half a second"


def test_what_flows_in_replaces_what_flows_out(dim):
    """A channel, ten times flowed through: still as many tracers in its first half as in the second."""
    sides = [[{"kind": "inflow", "velocity": [1.0, 0.0, 0.0][:dim]}, "open"], *[["free-slip", "free-slip"]] * (dim - 1)]
    simulation = simulation_of((8,) * dim, domain={"size": [1.0] * dim, "resolution": 8, "boundaries": sides})
    set_velocity(simulation, (1.0, 0.0, 0.0)[:dim])
    tracers, u = tracers_in(simulation, 2000), simulation.state.velocity.current
    for step in range(100):
        tracers.advance(u, 0.1 * step, 1e6, 1.0)
    x = places_of(tracers)[:, 0]
    assert births_of(tracers).mean() > 5
    quarters = np.histogram(x, bins=4, range=(0, 1))[0]
    assert quarters.min() > 400, "500 each and 20 of chance; what misses an entrance is seeded anywhere"


def test_back_in_time_tracers_start_anew(dim):
    simulation = a_flow(dim, solid=False)
    tracers, u = tracers_in(simulation), simulation.state.velocity.current
    tracers.advance(u, 1.0, 2.0, 5.0)
    first = places_of(tracers)
    tracers.advance(u, 1.5, 2.0, 5.0)
    assert np.abs(places_of(tracers) - first).max() > 0
    tracers.advance(u, 0.5, 2.0, 5.0)
    np.testing.assert_array_equal(places_of(tracers), first)


def test_tracers_are_drawn_where_the_camera_sees_them():
    """One tracer in the dark, compared with the look-at matrix of the volume's test."""
    from test_render import projected

    camera = {"azimuth": 35.0, "elevation": 20.0, "distance": 2.6, "field_of_view": 30.0}
    dark = {"background_top": [0, 0, 0], "background_bottom": [0, 0, 0], "view": "tracers", "tracers": 1,
            "tracer_life": 1e5, "legend": False}  # fmt: skip
    simulation = simulation_of((8, 8, 8), (96, 64), look=dark, camera=camera)
    renderer = Renderer(simulation)
    renderer.prepare()
    tracers = renderer._view(simulation.scene.look).tracers
    tracers.lives.from_numpy(np.array([5e4, 1.0], dtype=np.float32))  # in the middle of its life
    rgb = renderer.draw().astype(float).sum(axis=2)
    y, x = np.mgrid[:64, :96] + 0.5
    seen = (rgb * x).sum() / rgb.sum(), (rgb * y).sum() / rgb.sum()
    wanted = projected(places_of(tracers)[0], width=96, height=64, **camera)
    assert np.hypot(*np.subtract(seen, wanted)) < 0.3


def test_a_solid_hides_tracers_behind_it():
    wall = {"shape": "box", "center": [0.5, 0.5, 0.8], "size": [0.98, 0.98, 0.1]}
    look = {"view": "tracers", "tracers": 2000, "legend": False}
    simulation = simulation_of((12,) * 3, (64, 64), look=look, solids=[wall], camera={"azimuth": 0.0, "distance": 4.0})
    front = [Renderer(simulation).render().astype(int)]
    look_of(simulation, tracers=1)
    front.append(Renderer(simulation).render().astype(int))
    middle = np.abs(front[0] - front[1])[24:40, 24:40]
    simulation.scene = simulation.scene.with_values({"camera.azimuth": 180.0})
    behind = [Renderer(simulation).render().astype(int)]
    look_of(simulation, tracers=2000)
    behind.append(Renderer(simulation).render().astype(int))
    # Before the wall there is a sixth of the room behind it.
    assert middle.mean() < 0.5 * np.abs(behind[0] - behind[1])[24:40, 24:40].mean()


# Sheets


@pytest.mark.parametrize("sheets", [1, pytest.param(7, marks=pytest.mark.vulkan_too), 24, 100])
@pytest.mark.parametrize(("azimuth", "elevation"), [(0.0, 0.0), (90.0, 0.0), (180.0, 0.0), (0.0, 89.0)])
def test_black_sheets_dim_the_background_as_the_layer_they_stand_for(sheets, azimuth, elevation):
    from taichi_fluid.render.views import SHEET_OPACITY

    thickness = 1.0
    look = {
        "view": "sheets", "sheets": sheets, "extinction": thickness / SHEET_OPACITY, "albedo": [0.0, 0.0, 0.0],
        "background_top": [0.4, 0.4, 0.4], "background_bottom": [0.4, 0.4, 0.4],
    }  # fmt: skip
    camera = {"azimuth": azimuth, "elevation": elevation}
    simulation = simulation_of((8, 8, 8), look=look, camera=camera)
    put(simulation, lambda *x: 1.0)
    middle = picture(simulation)[PIXELS // 2 - 1 : PIXELS // 2 + 1, PIXELS // 2 - 1 : PIXELS // 2 + 1]
    # Rounding to bytes.
    assert -math.log(linear_light(middle.mean() / 255) / 0.4) == pytest.approx(thickness, abs=0.02)


@pytest.mark.parametrize("sheets", [4, 6])
def test_seen_at_an_angle_the_sheets_can_be_counted(sheets):
    """A thin bar of smoke along the view meets each sheet in one spot; the spots stand apart."""
    look = {"view": "sheets", "sheets": sheets, "extinction": 50.0, "background_top": [0, 0, 0],
            "background_bottom": [0, 0, 0]}  # fmt: skip
    camera = {"azimuth": 40.0, "elevation": 0.0, "distance": 4.0, "field_of_view": 20.0}
    simulation = simulation_of((48,) * 3, (240, 60), look=look, camera=camera)
    put(simulation, lambda x, y, z: np.exp(-((x - 0.5) ** 2 + (y - 0.5) ** 2) / (2 * 0.02**2)) + 0 * z)
    row = picture(simulation)[30, :, 0]
    bright = row > 0.5 * row.max()
    assert (np.diff(bright.astype(int)) == 1).sum() == sheets


def test_a_flat_box_has_one_sheet(dim):
    if dim == 2:
        simulation = simulation_of((24, 24), look={"view": "sheets"})
        put(simulation, gaussian((0.5, 0.5), 0.1))
        rgb = picture(simulation)
        np.testing.assert_array_equal(rgb, rgb[:, ::-1], "no side is brighter")
        assert rgb[PIXELS // 2, PIXELS // 2].min() > 100
    else:
        simulation = simulation_of((24,) * 3, look={"view": "sheets"})
        put(simulation, gaussian((0.5, 0.5, 0.5), 0.1))
        rgb = picture(simulation)
        assert np.abs(rgb - rgb[:, ::-1]).max() <= 1


def test_solids_hide_sheets_behind_them():
    wall = {"shape": "box", "center": [0.5, 0.5, 0.8], "size": [0.9, 0.9, 0.1]}
    pictures = []
    for amount in (0.0, 50.0):
        simulation = simulation_of((12,) * 3, look={"view": "sheets", "light_strength": 0.0}, solids=[wall])
        put(simulation, lambda x, y, z, amount=amount: amount * (z < 0.5) + 0 * x + 0 * y)
        pictures.append(picture(simulation))
    middle = (slice(PIXELS // 2 - 4, PIXELS // 2 + 4),) * 2
    np.testing.assert_array_equal(pictures[0][middle], pictures[1][middle])


# Glow


def test_black_bodies_have_their_colours():
    d65 = blackbody.chromaticity(6500.0)
    assert np.ptp(d65) < 0.12, "nearly white"
    red, green, blue = blackbody.chromaticity(np.linspace(800, 6000, 40)).T
    assert (red == 1).all()
    assert (np.diff(green) > 0).all() and (np.diff(blue) >= 0).all()
    assert (red > green).all() and (green >= blue).all()
    # Chromaticity of the black body at 2856 K, CIE illuminant A: x = 0.4476, y = 0.4074.
    x, y, z = blackbody.tristimulus(2856.0)
    assert (x / (x + y + z), y / (x + y + z)) == pytest.approx((0.4476, 0.4074), abs=0.006)
    brightness = blackbody.glow_table() @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(brightness) > 0).all()


DARK = {"light_strength": 0.0, "ambient": [0, 0, 0], "background_top": [0, 0, 0], "background_bottom": [0, 0, 0]}
HOT = {"shape": "sphere", "radius": 0.2, "temperature": 100.0, "smoke": 1.0}


def glowing(dim, kelvin, **look):
    """A hot puff in the dark."""
    simulation = simulation_of((16,) * dim, sources=[{**HOT, "center": [0.5] * dim}], look={**DARK, **look})
    put(simulation, lambda *x: (kelvin - 293.0) * gaussian((0.5,) * dim, 0.12)(*x), "temperature")
    return picture(simulation)


@pytest.mark.vulkan_too
def test_hot_gas_glows_from_red_to_white(dim):
    middle = [glowing(dim, kelvin, incandescence=60.0)[PIXELS // 2, PIXELS // 2] for kelvin in (600, 1000, 1400, 2000)]
    assert middle[0].max() == 0, "below the first dull red there is nothing"
    assert middle[1][0] > middle[1][1] >= middle[1][2]
    brightness = [colour.sum() for colour in middle]
    assert brightness == sorted(brightness) and brightness[1] > 10
    green = [colour[1] / max(colour[0], 1) for colour in middle]
    assert green[1] < green[2] < green[3], "red, orange, yellow"


def test_without_incandescence_heat_is_not_seen(dim):
    assert glowing(dim, 2000.0).max() == 0


def test_glowing_gas_blocks_light(dim):
    look = {"incandescence": 60.0, "background_top": [0.9] * 3, "background_bottom": [0.9] * 3, "exposure": 1.0}
    cold, hot = (glowing(dim, kelvin, **look)[PIXELS // 2, PIXELS // 2] for kelvin in (300.0, 1000.0))
    assert (cold - hot).min() > 20


def test_between_cells_a_flame_is_that_of_the_heat_there():
    """Its light interpolated itself, as it once was, lay in terraces a cell wide: 13 levels off here."""
    simulation = simulation_of((16, 16), sources=[{**HOT, "center": [0.5] * 2}], look={**DARK, "incandescence": 60.0})
    put(simulation, lambda x, y: 2000.0 * x + 0 * y, "temperature")
    seen = picture(simulation)[PIXELS // 2, 4:-4]
    kelvin = blackbody.AMBIENT + 2000.0 * (np.arange(PIXELS) + 0.5)[4:-4] / PIXELS
    x = np.clip((kelvin - DULL) / (BRIGHT - DULL), 0, 1)
    opacity = 60.0 * x * x * (3 - 2 * x)
    entries = np.linspace(blackbody.COLDEST, blackbody.HOTTEST, blackbody.ENTRIES)
    glow = np.stack([np.interp(kelvin, entries, channel) for channel in blackbody.glow_table().T], axis=-1)
    light = (1 - np.exp(-opacity * SLAB))[:, None] * glow
    assert abs(seen - tone_mapped(light, simulation.scene.look.exposure) * 255).max() < 1  # as bytes are rounded


def test_no_ray_steps_over_a_thin_flame():
    """A sheet that glows for two cells: what a ray meets does not depend on where its steps lie (by points, by 20 levels)."""
    look = {**DARK, "incandescence": 60.0}
    simulation = simulation_of((24,) * 3, sources=[{**HOT, "center": [0.5] * 3}], look=look)
    put(simulation, lambda x, y, z: 1500.0 - 24 * 900.0 * abs(z - 0.5) + 0 * x + 0 * y, "temperature")
    middle = picture(simulation)[PIXELS // 2 - 6 : PIXELS // 2 + 6, PIXELS // 2 - 6 : PIXELS // 2 + 6, 0]
    assert middle.mean() > 60
    assert np.ptp(middle) <= 10  # 7 here: between points heat is not quite linear
