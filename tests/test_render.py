"""Pictures: where things appear in them, how bright, and that any grid gives nearly the same one."""

import math
import subprocess
import sys

import numpy as np
import pytest

from taichi_fluid.boundaries.walls import SCALAR
from taichi_fluid.render import colour_maps
from taichi_fluid.render.renderer import Renderer
from taichi_fluid.scene import Scene
from taichi_fluid.simulation import Simulation

PIXELS = 48
LEVEL = 1 / 255
"""One step of a byte."""


def simulation_of(shape, pixels=(PIXELS, PIXELS), sources=(), edge=1.0, **tables) -> Simulation:
    """A box at rest, its longest edge ``edge`` metres."""
    dx = edge / max(shape)
    return Simulation(
        Scene.from_dict(
            {
                "name": "picture",
                "domain": {"size": [n * dx for n in shape], "resolution": max(shape)},
                "camera": {"azimuth": 0.0, "elevation": 0.0, "distance": 2.6},
                "output": {"width": pixels[0], "height": pixels[1]},
                "sources": list(sources),
                **tables,
            }
        )
    )


def put(simulation: Simulation, values, name="smoke", component=0) -> None:
    """Set a carried quantity from a function of the coordinates of the cell centres, ghosts filled."""
    grid, array = simulation.grid, simulation.state.carried[name].current
    full = grid.to_numpy(array)
    part = full[component] if full.ndim > grid.dim else full
    part[...] = values(*grid.cell_centres())
    grid.from_numpy(array, full)
    simulation.walls.fill(array, SCALAR, component * grid.cells)


def gaussian(centre, width):
    """A blob of smoke that no grid here is too coarse for."""
    return lambda *x: np.exp(-sum((a - c) ** 2 for a, c in zip(x, centre, strict=True)) / (2 * width**2))


def picture(simulation: Simulation) -> np.ndarray:
    """What the renderer gives, as signed numbers; that it is a picture at all is asserted for each."""
    renderer = Renderer(simulation)
    rgb = renderer.render()
    assert rgb.dtype == np.uint8
    assert rgb.shape == (renderer.image.height, renderer.image.width, 3)
    values = renderer.image.array.to_numpy()
    assert np.isfinite(values).all()
    assert values.min() >= 0
    assert values.max() <= 1
    return rgb.astype(int)


def ball(cells=24, centre=(0.5, 0.5, 0.5), width=0.1, **tables) -> Simulation:
    """A round puff in a cube (with two coordinates: a square) of 1 m."""
    simulation = simulation_of((cells,) * len(centre), **tables)
    put(simulation, gaussian(centre, width))
    return simulation


def tone_mapped(light, exposure=1.0):
    """Narkowicz's curve and the gamma of the display, in NumPy."""
    x = np.asarray(light, float) * exposure
    return np.minimum(x * (2.51 * x + 0.03) / (x * (2.43 * x + 0.59) + 0.14), 1.0) ** (1 / 2.2)


def linear_light(value):
    """Back from the screen to light, by bisection."""
    low, high = np.zeros_like(value, float), np.full_like(value, 5.0, float)
    for _ in range(60):
        middle = (low + high) / 2
        below = tone_mapped(middle) < value
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


# The volume


@pytest.mark.vulkan_too
def test_an_empty_box_shows_the_background(dim):
    look = {"background_top": [0.1, 0.2, 0.3], "background_bottom": [0.5, 0.4, 0.3]}
    rgb = picture(simulation_of((8,) * dim, look=look))
    height = (PIXELS - 0.5 - np.arange(PIXELS)) / PIXELS
    gradient = np.outer(1 - height, look["background_bottom"]) + np.outer(height, look["background_top"])
    # A gradient of height: every row is one colour, which makes it symmetric; a level of rounding.
    expected = 255 * tone_mapped(gradient)
    assert np.abs(rgb - expected[:, None, :]).max() <= 1
    np.testing.assert_array_equal(rgb, rgb[:, ::-1])


def test_outside_a_flat_box_it_is_darker_left_and_right():
    """A tall box in a square picture: the background of the slab, and darker strips beside it."""
    rgb = picture(simulation_of((4, 8)))
    quarter = PIXELS // 4
    assert (rgb[:, :quarter] < rgb[:, [PIXELS // 2]]).all()
    np.testing.assert_array_equal(rgb[:, quarter:-quarter], np.repeat(rgb[:, [PIXELS // 2]], PIXELS // 2, axis=1))
    np.testing.assert_array_equal(rgb, rgb[:, ::-1])


@pytest.mark.vulkan_too
def test_smoke_is_seen_where_it_is_and_nowhere_else(dim):
    centre = (0.5,) * dim
    with_smoke, without = picture(ball(centre=centre, width=0.06)), picture(simulation_of((24,) * dim))
    difference = np.abs(with_smoke - without).sum(axis=2)
    assert difference[PIXELS // 2, PIXELS // 2] > 100
    assert difference[[0, 0, -1, -1], [0, -1, 0, -1]].max() == 0


def test_smoke_that_blocks_nothing_is_not_seen(dim):
    clear = picture(ball(centre=(0.5,) * dim, look={"extinction": 0.0}))
    np.testing.assert_array_equal(clear, picture(simulation_of((24,) * dim)))


def test_negative_smoke_is_not_seen(dim):
    """What an overshoot of MacCormack would leave, or a sink."""
    simulation = simulation_of((12,) * dim)
    put(simulation, lambda *x: -1.0)
    np.testing.assert_array_equal(picture(simulation), picture(simulation_of((12,) * dim)))


@pytest.mark.parametrize("thickness", [0.3, 1.0, 2.5])
def test_black_smoke_dims_the_background_as_beer_and_lambert_say(dim, thickness):
    """Light that passes a uniform layer: exp(-extinction · length). The slab of a 2D box is a tenth of it thick."""
    length = 1.0 if dim == 3 else 0.1
    look = {
        "extinction": thickness / length, "albedo": [0.0, 0.0, 0.0],
        "background_top": [0.4, 0.4, 0.4], "background_bottom": [0.4, 0.4, 0.4],
    }  # fmt: skip
    simulation = simulation_of((24,) * dim, look=look)
    put(simulation, lambda *x: 1.0)
    middle = picture(simulation)[PIXELS // 2 - 4 : PIXELS // 2 + 4, PIXELS // 2 - 4 : PIXELS // 2 + 4]
    through = linear_light(middle.mean() / 255) / 0.4
    # Rounding to bytes: two levels.
    assert -math.log(through) == pytest.approx(thickness, abs=0.03)


@pytest.mark.vulkan_too
def test_black_smoke_dims_a_solid_by_all_of_the_way_to_it():
    """In each pixel, wherever the steps of its ray fall: a flame before a log was grainy where the last part of one was left out."""
    wall = {"shape": "box", "center": [0.5, 0.5, 0.3], "size": [2.0, 2.0, 0.4], "colour": [1.0, 1.0, 1.0]}
    look = {"extinction": 2.0, "albedo": [0.0, 0.0, 0.0], "ambient": [0.5, 0.5, 0.5], "light_strength": 0.0}
    pictures = []
    for amount in (0.0, 1.0):
        simulation = simulation_of(
            (10,) * 3, look=look, solids=[wall], camera={"azimuth": 0.0, "elevation": 0.0, "distance": 8.0}
        )
        put(simulation, lambda *x, amount=amount: amount)
        pictures.append(picture(simulation)[PIXELS // 2 - 4 : PIXELS // 2 + 4, PIXELS // 2 - 4 : PIXELS // 2 + 4])
    plain, dimmed = (linear_light(each / 255) for each in pictures)
    # The wall ends in the middle of the box. Rounding to bytes: two levels, of a seventh of the light.
    np.testing.assert_allclose(-np.log(dimmed / plain), 1.0, atol=0.05)


@pytest.mark.vulkan_too
@pytest.mark.parametrize(
    ("direction", "brighter"), [((1, 0), "right"), ((-1, 0), "left"), ((0, 1), "up"), ((0, -1), "down")]
)
def test_the_side_that_faces_the_light_is_brighter(dim, direction, brighter):
    towards = [*direction, 0.0][:dim]
    look = {"light_direction": towards, "background_top": [0, 0, 0], "background_bottom": [0, 0, 0]}
    rgb = picture(ball(centre=(0.5,) * dim, look=look))
    half = PIXELS // 2
    means = {"right": rgb[:, half:], "left": rgb[:, :half], "up": rgb[:half], "down": rgb[half:]}
    means = {side: part.mean() for side, part in means.items()}
    dark = {"right": "left", "left": "right", "up": "down", "down": "up"}[brighter]
    assert means[brighter] > 1.1 * means[dark]
    across = rgb[::-1] if brighter in ("left", "right") else rgb[:, ::-1]
    # The other way it is symmetric but for the grain of the rays.
    assert np.abs(rgb - across).mean() < 0.02 * np.abs(rgb).mean() + 0.5


def test_without_a_light_there_is_no_bright_side():
    rgb = picture(ball(look={"light_strength": 0.0, "ambient": [0.5, 0.5, 0.5]}))
    for mirrored in (rgb[:, ::-1], rgb[::-1, ::-1]):
        # The grain; upside down the background differs.
        assert np.abs(rgb - mirrored)[PIXELS // 2 - 8 : PIXELS // 2 + 8, PIXELS // 2 - 8 : PIXELS // 2 + 8].mean() < 3


def test_a_light_direction_of_any_length_ends_in_a_picture_or_a_sentence():
    """In a process of its own: a march that never leaves the box would never return."""
    code = (
        "from taichi_fluid._ti import ti; from taichi_fluid.scene import *\n"
        "from taichi_fluid.simulation import Simulation; from taichi_fluid.render.renderer import Renderer\n"
        "ti.init(arch=ti.cpu, log_level=ti.ERROR)\n"
        "small = {'domain.resolution': 4, 'output.width': 16, 'output.height': 16}\n"
        "for direction in ([0.0, 0.0, 0.0], [1e-200, 0.0, 0.0], [1e200, 0.0, 0.0]):\n"
        "    print(direction, flush=True)\n"
        "    try: scene = preset('plume').with_values({**small, 'look.light_direction': direction})\n"
        "    except SceneError: continue\n"
        "    Renderer(Simulation(scene)).render()\n"
    )
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"the march towards the light does not end: {(late.stdout or b'').decode()}")
    assert done.returncode == 0, done.stderr


def projected(point, azimuth, elevation, distance, field_of_view, width, height):
    """Pixel at which an orbit camera sees a point of the cube of 1 m; a look-at matrix, written from scratch."""
    a, e = math.radians(azimuth), math.radians(elevation)
    outward = np.array([math.sin(a) * math.cos(e), math.sin(e), math.cos(a) * math.cos(e)])
    right = np.cross([0.0, 1.0, 0.0], outward)
    right /= np.linalg.norm(right)
    up = np.cross(outward, right)
    offset = np.asarray(point) - 0.5 - distance * outward
    focal = 0.5 * height / math.tan(math.radians(field_of_view) / 2)
    depth = -offset @ outward
    return 0.5 * width + focal * (offset @ right) / depth, 0.5 * height - focal * (offset @ up) / depth


@pytest.mark.vulkan_too
@pytest.mark.parametrize(
    ("azimuth", "elevation", "centre"),
    [
        (0, 0, (0.7, 0.5, 0.5)),
        (0, 0, (0.5, 0.75, 0.5)),
        (90, 0, (0.5, 0.6, 0.75)),
        (35, 20, (0.3, 0.7, 0.6)),
        (-120, -35, (0.6, 0.35, 0.7)),
        (200, 80, (0.65, 0.5, 0.35)),
    ],
)
def test_a_puff_appears_where_the_camera_must_see_it(azimuth, elevation, centre):
    camera = {"azimuth": float(azimuth), "elevation": float(elevation), "distance": 2.6, "field_of_view": 30.0}
    look = {
        "light_strength": 0.0, "ambient": [1.0, 1.0, 1.0], "extinction": 4.0,
        "background_top": [0, 0, 0], "background_bottom": [0, 0, 0],
    }  # fmt: skip
    width, height = 72, 48
    rgb = picture(ball(centre=centre, width=0.05, camera=camera, look=look, pixels=(width, height)))
    light = linear_light(rgb.mean(axis=2) / 255)
    y, x = np.mgrid[:height, :width] + 0.5
    seen = (light * x).sum() / light.sum(), (light * y).sum() / light.sum()
    # Half a pixel: thin smoke's centre of brightness is its centre of mass, up to perspective across its own size.
    assert np.hypot(*np.subtract(seen, projected(centre, width=width, height=height, **camera))) < 0.5


def test_half_a_turn_of_the_camera_mirrors_what_is_symmetric_in_depth():
    centre = (0.35, 0.6, 0.5)
    look = {"light_direction": [0.0, 1.0, 0.0]}
    front, back = (
        picture(ball(centre=centre, look=look, camera={"azimuth": a, "elevation": 0.0})) for a in (0.0, 180.0)
    )
    # The grain of the rays is not mirrored: a fraction of a level in the mean; as it stands the difference is 35.
    assert np.abs(front - back[:, ::-1]).mean() < 0.5
    assert np.abs(front - back).mean() > 10


def test_a_full_turn_changes_nothing():
    turned = [picture(ball(camera={"azimuth": a, "elevation": 10.0})) for a in (25.0, 385.0)]
    # The rays differ in the last bits of f32, their grain not at all.
    assert np.abs(turned[0] - turned[1]).max() <= 1


def test_a_round_puff_is_round_in_a_wide_and_in_a_tall_picture():
    for size in ((96, 48), (48, 96)):
        look = {"light_strength": 0.0, "background_top": [0, 0, 0], "background_bottom": [0, 0, 0], "extinction": 4.0}
        rgb = picture(ball(pixels=size, look=look, width=0.07))
        light = linear_light(rgb.mean(axis=2) / 255)
        y, x = np.mgrid[: size[1], : size[0]]
        spread = [math.sqrt((light * (v - (light * v).sum() / light.sum()) ** 2).sum() / light.sum()) for v in (x, y)]
        assert spread[0] == pytest.approx(spread[1], rel=0.02), "half a pixel in a puff of a dozen, and the grain"


def test_the_same_puff_on_a_finer_grid_is_nearly_the_same_picture():
    """Interpolation and marching err as dx²: each halving leaves about a quarter, up to the grain of the rays."""
    coarse, middle, fine = (picture(ball(cells, width=0.125)) for cells in (12, 24, 48))
    background = picture(simulation_of((12, 12, 12)))
    first, second = np.abs(coarse - middle).mean(), np.abs(middle - fine).mean()
    # 24 cells resolve a puff of standard deviation 3 cells to (1/3)²/8 of its height, 1.4 %; of a contrast of 44
    # levels that is 0.6. Twice that.
    assert np.abs(middle - background).mean() > 30
    assert second < 1.2
    assert second < 0.4 * first


def test_twice_the_pixels_show_the_same():
    small, large = (picture(ball(look={"extinction": 12.0}, pixels=(n, n))) for n in (32, 64))
    averaged = large.reshape(32, 2, 32, 2, 3).mean(axis=(1, 3))
    # A pixel at an edge of the box averages both sides; the puff is smooth.
    assert np.abs(small - averaged).mean() < 1


def test_a_picture_knows_no_metres(dim):
    """A box eight times as large, of smoke eight times as thin, is the same picture; a factor of 2 costs no digit."""
    pictures = []
    for edge in (1.0, 8.0):
        simulation = simulation_of((12,) * dim, edge=edge, look={"extinction": 16.0 / edge})
        put(simulation, gaussian((0.5 * edge,) * dim, 0.125 * edge))
        pictures.append(picture(simulation))
    np.testing.assert_array_equal(*pictures)
    assert np.ptp(pictures[0]) > 50


def test_the_colour_of_dye_does_not_depend_on_how_much_there_is(dim):
    """Half the dye, twice as opaque, is the same picture: brightness comes from the light, not from the amount."""
    source = {"shape": "sphere", "center": [0.5] * dim, "radius": 0.1, "dye": [1.0, 0.5, 0.2]}
    pictures = []
    for amount in (1.0, 0.5):
        simulation = simulation_of((12,) * dim, sources=[source], look={"extinction": 20.0 / amount})
        for component, part in enumerate((1.0, 0.5, 0.25)):
            blob = gaussian((0.5,) * dim, 0.2)
            put(simulation, lambda *x, part=part * amount, blob=blob: part * blob(*x), "dye", component)
        pictures.append(picture(simulation))
    np.testing.assert_array_equal(*pictures)


def test_dye_has_its_own_colour(dim):
    source = {"shape": "sphere", "center": [0.5] * dim, "radius": 0.1, "dye": [1.0, 0.5, 0.2]}
    for component in range(3):
        simulation = simulation_of((12,) * dim, sources=[source])
        assert set(simulation.state.carried) == {"dye"}
        put(simulation, gaussian((0.5,) * dim, 0.2), "dye", component)
        colour = picture(simulation)[PIXELS // 2, PIXELS // 2]
        assert colour.argmax() == component
        assert colour[component] > 2 * np.delete(colour, component).max()


@pytest.mark.vulkan_too
def test_between_two_cells_each_counts_by_what_it_blocks(dim):
    """Thin green beside dense red is nowhere yellow: so was the rim of a flame in thin smoke grey."""
    look = {"background_top": [0.0] * 3, "background_bottom": [0.0] * 3, "extinction": 20.0, "exposure": 0.3}
    source = {"shape": "sphere", "center": [0.5] * dim, "radius": 0.1, "dye": [1.0, 1.0, 0.0]}
    simulation = simulation_of((8,) * dim, look=look, sources=[source])
    put(simulation, lambda x, *_: np.where(x < 0.5, 5.0, 0.0) + 0 * sum(_), "dye", 0)
    put(simulation, lambda x, *_: np.where(x < 0.5, 0.0, 0.005) + 0 * sum(_), "dye", 1)
    red, green, _ = np.moveaxis(picture(simulation)[PIXELS // 2], -1, 0)
    assert red.max() > 60
    # A thousandth as dense: below what is left of its own light after the curve.
    assert np.minimum(red, green).max() < 0.25 * red.max()


def test_smoke_and_dye_are_seen_together(dim):
    source = {"shape": "sphere", "center": [0.5] * dim, "radius": 0.1, "dye": [1.0, 0.0, 0.0], "smoke": 1.0}
    simulation = simulation_of((12,) * dim, sources=[source], look={"light_strength": 0.0, "ambient": [0.5, 0.5, 0.5]})
    put(simulation, gaussian((0.3, *(0.5,) * (dim - 1)), 0.08))
    put(simulation, gaussian((0.7, *(0.5,) * (dim - 1)), 0.08), "dye", 0)
    rgb = picture(simulation)
    columns = [rgb[PIXELS // 2 - 2 : PIXELS // 2 + 2, x - 2 : x + 2].mean(axis=(0, 1)) for x in (17, 31)]
    assert np.ptp(columns[0]) < 20, "smoke is nearly white on the left"
    assert columns[1][0] > 3 * columns[1][1:].max(), "dye is red on the right"


def test_a_brighter_exposure_is_brighter_and_stays_in_range(dim):
    means = [picture(ball(centre=(0.5,) * dim, look={"exposure": e})).mean() for e in (0.3, 1.0, 3.0, 100.0)]
    assert means == sorted(means)
    assert means[-1] > 1.5 * means[0]


@pytest.mark.parametrize("shape", [(7, 5, 6), (1, 1, 1), (5, 1, 1), (3, 17, 2), (7, 5), (1, 1), (17, 1)], ids=str)
def test_any_box_gives_a_picture(shape):
    simulation = simulation_of(shape, camera={"azimuth": 33.0, "elevation": 12.0})
    empty = picture(simulation)
    put(simulation, lambda *x: 1.0)
    assert np.abs(picture(simulation) - empty).max() > 20


@pytest.mark.parametrize(
    "camera",
    [
        {"distance": 0.11, "azimuth": 10.0},
        {"elevation": 89.0}, {"elevation": -89.0}, {"field_of_view": 149.0}, {"field_of_view": 1.1, "distance": 100.0},
        {"azimuth": 90.0}, {"azimuth": -3600.0, "elevation": 0.0},
    ],
    ids=str,
)  # fmt: skip
def test_any_camera_gives_a_picture(camera):
    """Inside the box, from the poles, along an axis, through a wide and a long lens."""
    assert np.abs(picture(ball(12, camera=camera)) - picture(simulation_of((12,) * 3, camera=camera))).max() > 20


# Slices


def gray(**look):
    return {"view": "slice", "colour_map": "gray", **look}


@pytest.mark.vulkan_too
@pytest.mark.parametrize("axis", [0, 1])
def test_a_2d_slice_has_x_to_the_right_and_y_up(axis):
    """Linear data are interpolated exactly, so every pixel is known, half a cell from the walls on."""
    simulation = simulation_of((8, 8), look=gray(limits=[0.0, 1.0]))
    put(simulation, lambda *x: x[axis] + 0 * x[1 - axis])
    check_ramp(picture(simulation), axis)


def check_ramp(rgb: np.ndarray, direction: int, low=0.0, high=1.0, margin=0.5 / 8) -> None:
    """Whether a picture is gray and goes from ``low`` to ``high`` to the right (0) or upwards (1)."""
    assert (np.ptp(rgb, axis=2) == 0).all(), "the map is gray"
    along = rgb[:, :, 0] if direction == 0 else rgb[::-1, :, 0].T
    assert (np.ptp(along, axis=0) == 0).all(), "constant across"
    place = (np.arange(along.shape[1]) + 0.5) / along.shape[1]
    inner = (place > margin) & (place < 1 - margin)
    expected = 255 * (low + (high - low) * place)
    # A level of rounding to bytes; the map's 17 knots of whole bytes add another.
    assert np.abs(along[0] - expected)[inner].max() <= 2
    assert (np.diff(along[0]) * np.sign(high - low) >= 0).all(), "flat within half a cell of the walls"


@pytest.mark.vulkan_too
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("varying", [0, 1, 2])
def test_a_3d_slice_shows_the_plane_it_is_asked_for(axis, varying):
    """Y is up wherever it can be; x is to the right, or z where x is looked along."""
    right, up = {0: (2, 1), 1: (0, 2), 2: (0, 1)}[axis]
    simulation = simulation_of((8, 8, 8), look=gray(limits=[0.0, 1.0], axis=axis, position=0.75))
    put(simulation, lambda *x: x[varying] + 0 * x[0] + 0 * x[1] + 0 * x[2])
    rgb = picture(simulation)
    if varying == axis:
        assert np.abs(rgb - 255 * 0.75).max() <= 2, "the plane stands at three quarters"
    else:
        check_ramp(rgb, {right: 0, up: 1}[varying])


@pytest.mark.parametrize("position", [0.0, 0.3, 1.0])
def test_a_slice_stands_where_it_is_asked_for(position):
    simulation = simulation_of((6, 6, 6), look=gray(limits=[0.0, 1.0], position=position))
    put(simulation, lambda x, y, z: z + 0 * x + 0 * y)
    value = min(max(position, 0.5 / 6), 1 - 0.5 / 6)  # a wall mirrors: flat within half a cell of it
    assert np.abs(picture(simulation) - 255 * value).max() <= 2


@pytest.mark.parametrize(("shape", "axis"), [((7, 5, 6), 0), ((7, 5, 6), 1), ((7, 5, 6), 2), ((7, 5), 2)])
def test_cells_of_a_slice_are_square_and_the_rest_is_dark(shape, axis):
    simulation = simulation_of(shape, look=gray(limits=[0.0, 1.0], axis=axis), pixels=(70, 84))
    put(simulation, lambda *x: 1.0)
    right, up = {0: (2, 1), 1: (0, 2), 2: (0, 1)}[axis]
    scale = min(70 / shape[right], 84 / shape[up])
    bright = picture(simulation)[:, :, 0] == 255
    assert bright.any(axis=0).sum() == pytest.approx(shape[right] * scale, abs=1)
    assert bright.any(axis=1).sum() == pytest.approx(shape[up] * scale, abs=1)
    np.testing.assert_array_equal(bright, bright[::-1, ::-1], "it is in the middle")
    assert bright.sum() == bright.any(axis=0).sum() * bright.any(axis=1).sum(), "it is a rectangle"


@pytest.mark.parametrize(
    ("limits", "ends"),
    [([0.25, 0.75], (-0.5, 1.5)), ([0.0, 2.0], (0.0, 0.5)), ([1.0, 0.0], (1.0, 0.0)), ([-1.0, 1.0], (0.5, 1.0))],
    ids=str,
)
def test_limits_are_the_ends_of_the_colours(limits, ends):
    simulation = simulation_of((8, 8), look=gray(limits=limits))
    put(simulation, lambda x, y: x + 0 * y)
    rgb = picture(simulation)
    place = (np.arange(PIXELS) + 0.5) / PIXELS
    expected = 255 * np.clip(ends[0] + (ends[1] - ends[0]) * place, 0, 1)
    inner = (place > 0.5 / 8) & (place < 1 - 0.5 / 8)
    # Steeper limits magnify nothing but the rounding of the map: two levels as before.
    assert np.abs(rgb[0, :, 0] - expected)[inner].max() <= 2


def test_without_limits_the_colours_span_what_is_there():
    simulation = simulation_of((8, 8), look=gray())
    put(simulation, lambda x, y: 17.0 - 3.0 * y + 0 * x)
    rgb = picture(simulation)
    assert rgb[-1].min() == 255
    assert rgb[0].max() == 0


def test_a_diverging_map_has_zero_in_its_middle():
    simulation = simulation_of((8, 8), look={"view": "slice", "colour_map": "balance"})
    put(simulation, lambda x, y: 4.0 * x - 1.0 + 0 * y)
    rgb = picture(simulation)
    zero = PIXELS // 4
    # Nearly white there, within half a pixel of a slope of 4 over a range of 2 · 2.75: 2 % of the map.
    assert rgb[0, zero - 1 : zero + 1].min() > 225
    assert rgb[0, 0, 2] > rgb[0, 0, 0], "negative is blue"
    assert rgb[0, -1, 0] > rgb[0, -1, 2], "positive is red"


@pytest.mark.parametrize("value", [0.0, 3.0, -1e30])
def test_a_constant_gives_one_colour(value):
    simulation = simulation_of((8, 8), look=gray())
    put(simulation, lambda x, y: value)
    assert np.ptp(picture(simulation)) == 0


HEATER = {"smoke": 1.0, "temperature": 300.0, "shape": "sphere", "radius": 0.2}


@pytest.mark.parametrize("quantity", ["smoke", "temperature", "speed", "pressure", "divergence", "vorticity"])
def test_every_quantity_is_shown(dim, quantity):
    source = {**HEATER, "center": [0.5, 0.3, 0.5][:dim]}
    look = {"view": "slice", "quantity": quantity, "colour_map": "viridis"}
    simulation = simulation_of((12,) * dim, sources=[source], look=look)
    simulation.advance(0.2)
    rgb = picture(simulation)
    assert np.ptp(rgb) > 100, "something is going on"
    if quantity in ("smoke", "temperature"):
        heat = rgb.sum(axis=2)
        assert heat[PIXELS // 2 :].sum() > 1.2 * heat[: PIXELS // 2].sum(), "the source is in the lower half"


def test_speed_is_that_of_the_flow(dim):
    simulation = simulation_of((8,) * dim, look=gray(quantity="speed", limits=[0.0, 5.0]))
    grid = simulation.grid
    velocity = [3.0, 4.0, 0.0][:dim]
    faces = [np.full(f.shape, v) for f, v in zip(grid.face_velocity_to_numpy(grid.velocity()), velocity, strict=True)]
    faces[0] *= 0.5
    grid.face_velocity_from_numpy(simulation.state.velocity.current, faces)
    middle = picture(simulation)[PIXELS // 2, PIXELS // 2]
    assert np.abs(middle - 255 * math.hypot(1.5, 4.0) / 5).max() <= 2


@pytest.mark.parametrize("name", sorted(colour_maps.KNOTS))
def test_every_colour_map_is_shown_from_end_to_end(name):
    simulation = simulation_of((8, 8), look={"view": "slice", "colour_map": name, "limits": [0.25, 0.75]})
    put(simulation, lambda x, y: x + 0 * y)
    rgb = picture(simulation)
    table = colour_maps.table(name)
    assert table.shape == (256, 3)
    np.testing.assert_array_equal(rgb[0, 0], np.round(255 * table[0]))
    np.testing.assert_array_equal(rgb[0, -1], np.round(255 * table[-1]))
    # Between two knots of 16 there is no jump: no step of a pixel is larger than that of two of its 24 pixels' worth.
    assert np.abs(np.diff(table, axis=0)).max() < 0.02


@pytest.mark.parametrize("name", ["viridis", "inferno", "magma", "plasma", "cividis", "gray"])
def test_sequential_maps_grow_brighter(name):
    brightness = colour_maps.table(name) @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(brightness) > 0).all()


def test_maps_are_those_of_matplotlib():
    matplotlib = pytest.importorskip("matplotlib")
    for name in ("viridis", "inferno", "magma", "plasma", "cividis"):
        ours, theirs = colour_maps.table(name), matplotlib.colormaps[name](np.linspace(0, 1, 256))[:, :3]
        # Seventeen knots with straight lines between them; the blue of cividis has a kink between two of its own.
        assert np.abs(ours - theirs).max() < (0.045 if name == "cividis" else 0.03)


def test_the_picture_follows_the_scene_while_it_runs():
    simulation = ball(12, centre=(0.3, 0.5))
    renderer = Renderer(simulation)
    slab = renderer.render().astype(int)
    simulation.scene = simulation.scene.with_values({"look.view": "slice", "look.colour_map": "viridis"})
    assert np.abs(renderer.render() - slab).mean() > 10
    simulation.scene = simulation.scene.with_values({"look.view": "volume"})
    np.testing.assert_array_equal(renderer.render(), slab)


def test_the_renderer_does_not_touch_the_simulation(dim):
    source = {**HEATER, "center": [0.5, 0.3, 0.5][:dim]}
    states = []
    for watched in (False, True):
        simulation = simulation_of((8,) * dim, sources=[source])
        renderer = Renderer(simulation)
        for _ in range(3):
            simulation.step(0.02)
            if watched:
                for view, quantity in (("volume", "smoke"), ("slice", "speed"), ("slice", "pressure")):
                    simulation.scene = simulation.scene.with_values({"look.view": view, "look.quantity": quantity})
                    renderer.render()
        states.append([quantity.current.to_numpy() for quantity in simulation.state.quantities()])
    for one, other in zip(*states, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_picture_of_another_size_compiles_nothing(dim):
    from taichi_fluid import kernels

    picture(ball(8, centre=(0.5,) * dim))
    before = kernels.compiled_kernels()
    picture(ball(10, centre=(0.5,) * dim, pixels=(40, 24)))
    assert kernels.compiled_kernels() == before
