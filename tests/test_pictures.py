"""Pictures in a flow: the right way up, the same at any resolution, in the colours of the file, and refused in words."""

import io
import os
import sys

import numpy as np
import pytest
from PIL import Image
from scenes_for_tests import scene

from taichi_fluid.render.renderer import Renderer
from taichi_fluid.scene import Scene, SceneError, require_installed
from taichi_fluid.scene.pictures import PictureError, cell_amounts, read_picture, text_picture
from taichi_fluid.simulation import Simulation

TEXT = {"text": "F", "center": [0.5, 0.5], "width": 0.4}


def box(cells=32, pictures=(TEXT,), **values) -> Scene:
    """A square of edge 1 m with pictures in it."""
    return scene((cells, cells), 1.0 / cells).with_values({"pictures": list(pictures), **values})


def seen(values: np.ndarray) -> np.ndarray:
    """Values ``[x, y]`` as somebody sees them: rows from the top."""
    return values.T[::-1]


def saved(folder, pixels, suffix="png", **options):
    """A file of these pixels, by another encoder than the package's."""
    path = folder / f"picture.{suffix}"
    Image.fromarray(np.asarray(pixels)).save(path, **options)
    return path


def light(value: float) -> float:
    """Light of an encoded value, by the plain power that drawing ends with; sRGB is within 0.008 of it."""
    return (value / 255) ** 2.2


COLOURS = np.zeros((8, 16, 3), dtype=np.uint8)
COLOURS[:4, :8], COLOURS[:4, 8:] = (255, 0, 0), (0, 255, 0)
COLOURS[4:, :8], COLOURS[4:, 8:] = (0, 0, 255), (128, 128, 128)
"""Red and green above blue and grey."""


# The right way up


@pytest.mark.vulkan_too
def test_a_letter_stands_upright_and_is_not_mirrored():
    """An F has its stem on the left and its two bars above: no turned or mirrored F has."""
    dye = seen(Simulation(box(64)).to_numpy("dye")[0])
    rows, columns = (np.flatnonzero(dye.sum(axis=axis) > 0.5) for axis in (1, 0))
    letter = dye[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = letter.shape
    # An F is 25 cells wide here, 0.4 m, and about 1.5 times as high.
    assert width == pytest.approx(0.4 * 64, abs=2)
    assert 1.2 < height / width < 2.0
    quarter = [letter[: height // 2, : width // 2], letter[: height // 2, width // 2 :],
               letter[height // 2 :, : width // 2], letter[height // 2 :, width // 2 :]]  # fmt: skip
    upper_left, upper_right, lower_left, lower_right = (part.mean() for part in quarter)
    assert upper_left > upper_right > 0.2
    assert upper_left > lower_left > 0.2
    assert lower_right < 0.1, "only the lower edge of the second bar, which is in the middle"


def test_lines_of_a_text_stand_below_each_other_and_in_the_middle():
    pixels = text_picture("HHH\nI")
    height, width = pixels.shape
    below = pixels[int(0.7 * height) :].sum(axis=0)
    middle = (below * np.arange(width)).sum() / below.sum()
    assert pixels[: int(0.4 * height), : width // 4].mean() > 50, "the long line is above"
    # The letter I is as wide as a fifth of an H: its middle is that of the line to a few hundredths.
    assert middle == pytest.approx(0.5 * width, abs=0.03 * width)


def test_text_is_cropped_to_its_letters_and_fine_enough():
    for text in ("i", "taichi", "x" * 300, "A\n\nB\nC"):
        pixels = text_picture(text)
        assert all(pixels[edge].any() for edge in (0, -1, np.s_[:, 0], np.s_[:, -1])), text
        # About TEXT_EDGE pixels: letters have room around them that is cropped.
        assert 1000 < max(pixels.shape) < 6000, text
        assert pixels.dtype == np.uint8
        assert pixels.max() == 255


@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_an_image_lies_as_it_is_seen_in_its_own_colours(tmp_path, suffix):
    options = {"quality": 100, "subsampling": 0} if suffix == "jpg" else {}
    path = saved(tmp_path, COLOURS, suffix, **options)
    picture = {"file": str(path), "center": [0.5, 0.5], "width": 1.0, "amount": 2.0}
    dye = Simulation(box(32, [picture])).to_numpy("dye")
    grey = light(128)
    # Places of the middle of each quarter of a picture that is 1 m wide and half as high.
    places = {(8, 20): (1, 0, 0), (24, 20): (0, 1, 0), (8, 12): (0, 0, 1), (24, 12): (grey, grey, grey)}
    for (x, y), colour in places.items():
        # JPEG rounds to whole steps of 255, three of them in light are 0.012; PNG is exact but for the curve above.
        np.testing.assert_allclose(dye[:, x, y], 2 * np.array(colour), atol=0.02)
    assert not dye[:, :, :7].any(), "below the picture is nothing"
    assert not dye[:, :, -7:].any()


def test_an_image_that_a_turned_camera_took_is_turned_upright(tmp_path):
    exif = Image.Exif()
    exif[274] = 6  # to be turned by a quarter clockwise
    path = saved(tmp_path, COLOURS, "jpg", quality=95, exif=exif)
    pixels = read_picture(path)
    expected = np.rot90(COLOURS, -1)
    assert pixels.shape == (16, 8, 4)
    for row, column in ((3, 1), (3, 6), (12, 1), (12, 6)):
        # Colours of whole blocks of a JPEG of quality 95: some steps of 255.
        np.testing.assert_allclose(pixels[row, column, :3], expected[row, column], atol=40)


@pytest.mark.parametrize("mode", ["L", "LA", "P", "1", "RGB", "RGBA", "I;16"])
def test_every_kind_of_png_is_read(tmp_path, mode):
    half = np.zeros((4, 6), np.uint16 if mode == "I;16" else np.uint8)
    half[:, 3:] = 65535 if mode == "I;16" else 255
    image = Image.fromarray(half) if mode == "I;16" else Image.fromarray(half).convert(mode)
    image.save(tmp_path / "half.png")
    pixels = read_picture(tmp_path / "half.png")
    assert pixels.shape == (4, 6, 4)
    np.testing.assert_array_equal(pixels[..., 3], 255)
    for channel in range(3):
        np.testing.assert_array_equal(pixels[..., channel], half.astype(bool) * 255)


def test_what_is_transparent_leaves_nothing_and_what_is_half_so_half(tmp_path):
    pixels = np.full((4, 12, 4), 255, np.uint8)
    pixels[:, 4:8, 3], pixels[:, 8:, 3] = 51, 0
    path = saved(tmp_path, pixels)
    dye = Simulation(box(24, [{"file": str(path), "center": [0.5, 0.5], "width": 1.0}])).to_numpy("dye")
    for x, opacity in ((3, 1.0), (12, 0.2), (20, 0.0)):
        # Rounding to f32.
        np.testing.assert_allclose(dye[:, x, 12], opacity, atol=1e-6)


def test_smoke_and_heat_take_the_luminance(tmp_path):
    path = saved(tmp_path, COLOURS)
    for quantity in ("smoke", "temperature"):
        picture = {"file": str(path), "center": [0.5, 0.5], "width": 1.0, "quantity": quantity, "amount": 10.0}
        made = Simulation(box(32, [picture]))
        assert list(made.state.carried) == [quantity]
        values = made.to_numpy(quantity)
        # Weights of ITU-R BT.709; f32 rounds in the seventh digit.
        for (x, y), weight in {(8, 20): 0.2126, (24, 20): 0.7152, (8, 12): 0.0722}.items():
            assert values[x, y] == pytest.approx(10 * weight, rel=1e-5)


def test_a_picture_drawn_flat_looks_like_the_image(tmp_path):
    """Red stays red and grey is between black and white, with the drawing's own curve at the end of both."""
    pixels = COLOURS.copy()
    pixels[:4, :8] = (230, 60, 20)
    path = saved(tmp_path, pixels)
    # A slab of optical depth 0.5 where dye is 1: thin enough for what is seen to follow the amount.
    look = {"extinction": 5.0, "light_strength": 0.0, "ambient": [1.0] * 3, "exposure": 1.0}
    look |= {"background_top": [0.0] * 3, "background_bottom": [0.0] * 3}
    picture = {"file": str(path), "center": [0.5, 0.5], "width": 1.0}
    drawn = Renderer(Simulation(box(32, [picture], look=look)), 64, 64).render().astype(float)
    warm, green, blue, grey = drawn[24, 16], drawn[24, 48], drawn[40, 16], drawn[40, 48]
    assert warm[0] > 1.5 * warm[1] > 1.5 * warm[2], "an orange red"
    assert (green.argmax(), blue.argmax()) == (1, 2)
    assert max(green[0], green[2], blue[0], blue[1]) == 0
    assert grey[0] == grey[1] == grey[2]
    # 128 of 255 is half as bright on a screen; opacity saturates a little and the curve has a toe: 0.4 to 0.65.
    assert 0.4 < grey[1] / green[1] < 0.65


@pytest.mark.parametrize(
    ("dyes", "expected"), [([(1, 0, 0), (0, 1, 0)], (1, 1, 0)), ([(1, 0, 0), (0, 1, 1)], (1, 1, 1))]
)
def test_dyes_mix_as_coloured_light_does(dyes, expected):
    """Red and green in one place are yellow, red and cyan white; so it is drawn too."""
    whole = np.ones((2, 2))
    made = Simulation(box(16, [], look={"light_strength": 0.0, "ambient": [1.0] * 3}))
    for dye in dyes:
        made.paint_picture(whole, (0.5, 0.5), 1.0, colour=dye)
    np.testing.assert_array_equal(made.to_numpy("dye")[:, 8, 8], expected)
    drawn = Renderer(made, 32, 32).render()[16, 16].astype(float)
    # Background shines through by exp(-40 / m · 0.1 m) = 2 %.
    bright = drawn[np.array(expected) == 1]
    assert np.ptp(bright) <= 2
    assert all(drawn[np.array(expected) == 0] < 0.3 * bright.min())


# The same at any resolution


@pytest.mark.parametrize("cells", [16, 37, 64, 128, 500])
def test_the_amount_is_that_of_the_picture_at_any_resolution(cells):
    """Means over cells add up to the picture, whether a cell is wider than a pixel or narrower."""
    rng = np.random.default_rng(3)
    pixels = rng.random((30, 50))
    (across, upward), amounts = cell_amounts(
        pixels, (0.52, 0.47), 0.7, "dye", (1, 0.5, 0.25), (cells, cells), 1 / cells
    )
    total = amounts.sum(axis=(1, 2)) / cells**2
    whole = pixels.sum() * (0.7 / 50) ** 2
    # Exact where cells are wider than a pixel, f32 of the pixels apart; linear interpolation at points narrower than
    # one is a rectangle rule over its hats: 1 % at most.
    np.testing.assert_allclose(total, whole * np.array([1, 0.5, 0.25]), rtol=1e-6 if cells < 50 / 0.7 else 1e-2)
    assert across.start > 0 and across.stop < cells and upward.start > 0 and upward.stop < cells


def test_text_at_64_and_at_128_cells_is_the_same_text():
    coarse, fine = (Simulation(box(n)).to_numpy("dye")[0] for n in (64, 128))
    # All of both lies inside the box, and both are exact means; f32 adds up to some 1e-6.
    assert fine.mean() == pytest.approx(coarse.mean(), rel=1e-5)
    averaged = fine.reshape(64, 2, 64, 2).mean(axis=(1, 3))
    np.testing.assert_allclose(averaged, coarse, atol=1e-6)


def test_a_picture_of_few_pixels_has_no_steps():
    """One black and one white pixel over 40 cells: between their middles the amount rises evenly."""
    _, amounts = cell_amounts(np.array([[0.0, 1.0]] * 3), (0.5, 0.5), 1.0, "smoke", (1, 1, 1), (40, 40), 1 / 40)
    along = amounts[0, 10:30, 20]
    # Cell middles from 0.2625 to 0.7375 m, pixel middles at 0.25 and 0.75 m.
    np.testing.assert_allclose(along, (np.arange(10, 30) + 0.5) / 20 - 0.5, atol=1e-12)


def test_a_single_line_thinner_than_a_cell_is_not_lost():
    pixels = np.zeros((400, 400))
    pixels[:, 200] = 1.0
    _, amounts = cell_amounts(pixels, (0.5, 0.5), 1.0, "smoke", (1, 1, 1), (10, 10), 0.1)
    # A tenth of 400 pixels is 40: the line is 1 / 40 of its cell.
    np.testing.assert_allclose(amounts[0, 5], 1 / 40, rtol=1e-12)
    assert not amounts[0, :5].any()


def test_what_lies_outside_the_box_is_cut_off():
    made = Simulation(box(20, [], domain={"size": [1.0, 0.93], "resolution": 20}))
    made.paint_picture(np.ones((4, 4)), (0.0, 0.0), 1.0, "smoke")
    smoke = made.to_numpy("smoke")
    np.testing.assert_allclose(smoke[:7, :7], 1.0, atol=1e-6)
    assert not smoke[14:].any() and not smoke[:, 14:].any()
    # The box ends at 0.95 m as cells have it; its edge, 0.93 m, is what a scene is held against.
    made.paint_picture(np.ones((4, 4)), (0.5, 0.93), 0.001, "smoke")


# In a flow


def test_pictures_are_carried_with_what_sources_bring():
    heat = {**TEXT, "quantity": "temperature", "amount": 300.0}
    assert box(16, [TEXT]).carried == {"dye": 3}
    assert box(16, [heat]).carried == {"temperature": 1}
    source = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.1, "smoke": 1.0}
    assert box(16, [TEXT, heat], sources=[source]).carried == {"smoke": 1, "temperature": 1, "dye": 3}
    assert Simulation(box(16, [heat])).to_numpy("temperature").max() == pytest.approx(300, rel=1e-3)


def test_a_picture_stays_out_of_solids_and_fills_the_ghosts():
    solid = {"shape": "box", "center": [0.5, 0.5], "size": [0.25, 0.25]}
    made = Simulation(box(16, [], solids=[solid]))
    made.paint_picture(np.ones((2, 2)), (0.5, 0.5), 1.2)
    dye, fluid = made.to_numpy("dye"), made.to_numpy("fluid")
    assert (fluid == 0).sum() == 16
    assert not dye[:, fluid == 0].any()
    np.testing.assert_allclose(dye[:, fluid == 1].max(), 1.0)
    again = Simulation(box(16, [{**TEXT, "width": 0.9}], solids=[solid]))
    assert not again.to_numpy("dye")[:, fluid == 0].any()
    padded = made.grid.to_numpy_padded(made.state.carried["dye"].current)
    np.testing.assert_array_equal(padded[:, 0, 1:-1], padded[:, 1, 1:-1])
    np.testing.assert_array_equal(padded[:, 1:-1, -1], padded[:, 1:-1, -2])


def test_a_reset_lays_the_picture_in_again_bit_for_bit():
    source = {"shape": "sphere", "center": [0.2, 0.5], "radius": 0.1, "velocity": [1.0, 0.0], "dye": [1.0, 0.0, 0.0]}
    made = Simulation(box(24, sources=[source]))
    first = made.to_numpy("dye")
    made.advance(0.1)
    after = made.to_numpy("dye")
    assert np.abs(after - first).max() > 0.1
    made.reset()
    np.testing.assert_array_equal(made.to_numpy("dye"), first)
    made.advance(0.1)
    np.testing.assert_array_equal(made.to_numpy("dye"), after)


def test_another_picture_waits_for_the_reset():
    made = Simulation(box(24))
    first = made.to_numpy("dye")
    other = made.scene.with_values({"pictures.0.text": "O"})
    made.scene = other
    np.testing.assert_array_equal(made.to_numpy("dye"), first)
    made.reset()
    np.testing.assert_array_equal(made.to_numpy("dye"), Simulation(other).to_numpy("dye"))


def test_a_file_that_has_gone_does_not_stop_a_flow_that_has_read_it(tmp_path):
    path = saved(tmp_path, COLOURS)
    made = Simulation(box(16, [{"file": str(path), "center": [0.5, 0.5], "width": 1.0}]))
    first = made.to_numpy("dye")
    path.unlink()
    made.step()
    made.reset()
    np.testing.assert_array_equal(made.to_numpy("dye"), first)


def test_a_file_that_was_changed_is_read_again(tmp_path):
    path = saved(tmp_path, COLOURS)
    assert read_picture(path)[0, 0, 0] == 255
    saved(tmp_path, 255 - COLOURS)
    os.utime(path, ns=(0, 0))
    assert read_picture(path)[0, 0, 0] == 0


def test_painting_raises_and_to_paint_twice_is_to_paint_once():
    made = Simulation(box(16))
    assert list(made.state.carried) == ["dye"]
    for quantity, amount in (("smoke", 2.0), ("dye", 0.5), ("temperature", 100.0)):
        for _ in range(2):
            made.paint_picture(np.full((3, 3), 0.5), (0.5, 0.5), 2.0, quantity, amount=amount)
        values = made.to_numpy(quantity)
        assert values.min() == pytest.approx(0.5 * amount)
    assert made.to_numpy("dye").max() == pytest.approx(1.0, abs=1e-6), "what was there and is more stays"
    made.step()
    assert np.isfinite(made.to_numpy("smoke")).all()
    made.reset()
    assert list(made.state.carried) == ["dye"]


@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64])
def test_bytes_and_floats_are_the_same_picture(kind):
    pixels = (COLOURS / (1 if kind is np.uint8 else 255)).astype(kind)
    one, two = Simulation(box(16, [])), Simulation(box(16, []))
    one.paint_picture(pixels, (0.5, 0.5), 1.0)
    opaque = np.concatenate([COLOURS, np.full((8, 16, 1), 255, np.uint8)], axis=2)
    two.paint_picture(opaque, (0.5, 0.5), 1.0)
    # f32 rounds on the way through the curve.
    np.testing.assert_allclose(one.to_numpy("dye"), two.to_numpy("dye"), atol=1e-6)


# In and out of files


def test_a_scene_with_pictures_comes_back_and_finds_its_file_beside_it(tmp_path):
    saved(tmp_path, COLOURS)
    text = (
        'name = "both"\n[domain]\nsize = [1.0, 1.0]\nresolution = 16\n'
        '[[pictures]]\nfile = "picture.png"\ncenter = [0.5, 0.5]\nwidth = 0.5\n'
        '[[pictures]]\ntext = "two\\nlines \\\\ \\"q\\""\ncenter = [0.5, 0.5]\nwidth = 0.5\nquantity = "smoke"\n'
    )
    (tmp_path / "both.toml").write_text(text, encoding="utf-8")
    loaded = Scene.load(tmp_path / "both.toml")
    assert loaded.pictures[0].file == str(tmp_path / "picture.png")
    assert loaded.pictures[1].text == 'two\nlines \\ "q"'
    assert Scene.loads(loaded.dumps()) == loaded
    assert hash(loaded) == hash(Scene.loads(loaded.dumps()))


def test_a_scene_saved_from_a_window_names_the_file_in_full(tmp_path, monkeypatch):
    from taichi_fluid.viewer.session import Session

    saved(tmp_path, COLOURS)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    made = box(16, [{"file": "picture.png", "center": [0.5, 0.5], "width": 0.5}, TEXT])
    session = Session(made, folder=tmp_path / "elsewhere", size=(32, 32))
    session.save_scene()
    (written,) = session.written
    again = Scene.load(written)
    assert again.pictures[0].file == str(tmp_path / "picture.png")
    assert again.pictures[1] == made.pictures[1]


def test_the_panel_moves_a_picture_and_says_from_when():
    from taichi_fluid.viewer.parameters import sections

    (section,) = [section for section in sections(box(16)) if section.title.startswith("picture")]
    assert section.title == "picture 1, from reset on"
    keys = {parameter.key.removeprefix("pictures.0.") for parameter in section.parameters}
    assert keys == {"center", "width", "quantity", "colour", "amount"}


def test_another_resolution_keeps_the_flow_and_not_the_beginning():
    from taichi_fluid.viewer.session import Session

    session = Session(box(32), size=(32, 32))
    session.clear()
    session.resize_grid(finer=True)
    assert session.scene.domain.resolution == 40
    assert not session.simulation.to_numpy("dye").any()
    session.reset()
    assert session.simulation.to_numpy("dye").any()


# What cannot be


def refusal(pictures, **values) -> str:
    """The sentence with which a scene is refused."""
    with pytest.raises(SceneError) as caught:
        box(16, pictures, **values)
    message = str(caught.value)
    assert "\n" not in message and message.endswith("."), message
    return message


@pytest.mark.parametrize(
    ("picture", "named"),
    [
        ({"text": None}, ["pictures.0", "text", "file", "one of the two"]),
        ({"file": "there.png"}, ["pictures.0", "'F'", "there.png", "one of the two"]),
        ({"text": ""}, ["pictures.0", "text is ''", "letter"]),
        ({"text": " \n "}, ["pictures.0", "text", "letter"]),
        ({"text": "F烟"}, ["pictures.0", "text is 'F烟'", "'烟'", "ASCII", "file"]),
        ({"text": "a\tb"}, ["pictures.0", "'\\t'"]),
        ({"text": "x" * 1001}, ["pictures.0", "1001", "1000"]),
        ({"text": 3}, ["pictures.0.text", "3", "string"]),
        ({"center": [1.3, 0.5]}, ["pictures[0]", "1.1 to 1.5 m", "axis 0", "0 to 1 m"]),
        ({"center": [0.5, -2.0]}, ["pictures[0]", "axis 1", "0 to 1 m"]),
        ({"center": [0.5, 0.5, 0.5]}, ["pictures[0].center", "3 coordinates", "2 axes"]),
        ({"width": 0.0}, ["pictures.0.width", "0.0", "0.0001"]),
        ({"amount": -1.0}, ["pictures.0.amount", "-1.0", "0"]),
        ({"quantity": "fuel"}, ["pictures.0.quantity", "'fuel'", "'dye'", "'temperature'"]),
        ({"colour": [2.0, 0.0, 0.0]}, ["pictures.0.colour.0", "2.0", "1"]),
        ({"colr": [1.0, 0.0, 0.0]}, ["pictures.0.colr", "did you mean 'colour'", "width"]),
    ],
    ids=str,
)
def test_a_picture_that_cannot_be_is_refused_in_a_sentence(picture, named):
    message = refusal([{key: value for key, value in {**TEXT, **picture}.items() if value is not None}])
    for part in named:
        assert part in message, f"{part!r} is not in: {message}"


def test_a_box_of_three_axes_has_no_pictures():
    with pytest.raises(SceneError, match=r"pictures\[0\] is in a box of 3 axes; only a box of 2 axes has pictures\."):
        scene((8, 8, 8)).with_values({"pictures": [{**TEXT, "center": [0.4, 0.4, 0.4]}]})
    with pytest.raises(ValueError, match=r"the box has 3 axes"):
        Simulation(scene((8, 8, 8))).paint_picture(np.ones((2, 2)), (0.4, 0.4), 0.1)


def damaged_files(folder):
    """Files that are no images, with a word of what is said about each."""
    buffer = io.BytesIO()
    Image.fromarray(COLOURS).save(buffer, "PNG")
    (folder / "words.png").write_text("no image at all")
    (folder / "empty.png").write_bytes(b"")
    (folder / "cut.png").write_bytes(buffer.getvalue()[:60])
    (folder / "start.jpg").write_bytes(b"\xff\xd8\xff")
    (folder / "a folder.png").mkdir()
    Image.fromarray(COLOURS).save(folder / "picture.gif")
    Image.fromarray(np.zeros((1, 8193), np.uint8)).save(folder / "wide.png")
    return {
        "words.png": "must be a PNG or JPEG", "empty.png": "must be a PNG or JPEG", "cut.png": "damaged",
        "start.jpg": "damaged", "a folder.png": "cannot be read", "picture.gif": "must be a PNG or JPEG",
        "wide.png": "8193 x 1", "none.png": "no such file", "nu\0ll.png": "null", "": "no such file",
    }  # fmt: skip


def test_a_file_that_is_no_image_is_refused_in_a_sentence(tmp_path):
    for name, word in damaged_files(tmp_path).items():
        path = str(tmp_path / name) if name else ""
        message = refusal([{"file": path, "center": [0.5, 0.5], "width": 0.5}])
        assert message.startswith(f"pictures.0: file is {path!r}"), message
        assert word in message, message


@pytest.fixture
def without_pillow(monkeypatch):
    """A plain install: the extra ``text`` is not there."""
    text_picture.cache_clear()
    monkeypatch.setitem(sys.modules, "PIL", None)


def test_without_pillow_a_scene_with_text_is_read_and_checked_as_far_as_that_goes(without_pillow):
    scene = Scene.from_dict({"name": "test", "domain": {"size": [1.0, 1.0]}, "pictures": [TEXT]})
    assert scene.pictures[0].text == "F" and Scene.loads(scene.dumps()) == scene
    assert scene.with_values({"fluid.viscosity": 0.1}).pictures == scene.pictures
    assert "at least one letter" in refusal([{**TEXT, "text": " "}])
    assert "1000 at most" in refusal([{**TEXT, "text": "a" * 1001}])
    assert "along axis 0" in refusal([{**TEXT, "center": [5.0, 0.5]}])
    assert "there is no such file" in refusal([{"file": "no.png", "center": [0.5, 0.5], "width": 0.5}])
    with pytest.raises(PictureError, match=r"pip install 'taichi-fluid\[text\]'"):
        Simulation(scene)


@pytest.mark.parametrize("command", [["demo", "ink", "--headless"], ["bench", "--scene", "ink"]], ids=["demo", "bench"])
def test_without_pillow_running_text_says_what_to_install(without_pillow, monkeypatch, capsys, command):
    from taichi_fluid import backend
    from taichi_fluid.app import commands

    monkeypatch.setattr(backend, "start", lambda arch: pytest.fail("a backend was started"))
    with pytest.raises(SystemExit) as caught:
        commands.main(command)
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("taichi-fluid: pictures[0]: text is 'taichi'") and said.count("\n") == 1
    assert "pip install 'taichi-fluid[text]'" in said


def test_without_pillow_scenes_prints_the_one_with_text_and_lists_them_all(without_pillow, capsys):
    from taichi_fluid.app import commands

    for arguments in (["scenes", "ink"], ["scenes"]):
        with pytest.raises(SystemExit) as caught:
            commands.main(arguments)
        assert not caught.value.code
    printed, listed = capsys.readouterr().out.split("ash3d ")
    assert Scene.loads(printed).pictures[1].text == "fluid"
    (line,) = [line for line in listed.splitlines() if line.startswith("ink ")]
    assert "Two words" in line and "pip install 'taichi-fluid[text]'" in line


def test_without_trimesh_a_scene_with_a_mesh_is_read_and_not_run(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "trimesh", None)
    (tmp_path / "mesh.obj").write_text("")
    solid = {"shape": "mesh", "file": str(tmp_path / "mesh.obj"), "center": [0.5, 0.5, 0.5], "size": 0.5}
    scene = Scene.from_dict({"name": "mesh", "solids": [solid]})
    with pytest.raises(SceneError, match=r"solids\[0\].*pip install 'taichi-fluid\[mesh\]'"):
        require_installed(scene)


def test_without_pillow_a_window_keeps_the_scene_it_has(without_pillow):
    from taichi_fluid.viewer.session import Session

    session = Session(box(16, []), size=(32, 32))
    session.load("ink")
    assert session.scene.name == "test"
    assert "taichi-fluid[text]" in session.message and session.alarm


def test_the_command_line_ends_with_status_2_and_no_traceback(tmp_path, capsys):
    from taichi_fluid.app import commands

    (tmp_path / "bad.toml").write_text(
        'name = "bad"\n[domain]\nsize = [1.0, 1.0]\n[[pictures]]\nfile = "no.png"\ncenter = [0.5, 0.5]\nwidth = 0.5\n'
    )
    with pytest.raises(SystemExit) as caught:
        commands.main(["run", str(tmp_path / "bad.toml"), "--headless"])
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "there is no such file" in said


ONES = np.ones((2, 2))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"pixels": np.ones(4)}, r"shape \(4,\)"),
        ({"pixels": np.ones((2, 2, 2))}, r"shape \(2, 2, 2\)"),
        ({"pixels": np.ones((0, 2))}, r"shape \(0, 2\)"),
        ({"pixels": np.ones((2, 2), np.int64)}, "int64.*uint8"),
        ({"pixels": 2 * ONES}, "1 to 1|2 to 2"),
        ({"pixels": np.array([[0.5, np.nan]])}, "nan"),
        ({"center": (0.5,)}, "center"),
        ({"center": (np.nan, 0.5)}, "center"),
        ({"center": (5.0, 0.5)}, "4.75 to 5.25 m along axis 0"),
        ({"width": 0.0}, "width is 0.0"),
        ({"width": np.inf}, "width is inf"),
        ({"quantity": "fuel"}, "quantity is 'fuel'.*smoke, temperature, dye"),
        ({"colour": (1.0, 2.0, 0.0)}, "colour"),
        ({"colour": (1.0, 1.0)}, "colour"),
        ({"amount": -1.0}, "amount is -1.0"),
        ({"amount": np.nan}, "amount is nan"),
    ],
    ids=str,
)
def test_painting_what_cannot_be_names_it_and_changes_nothing(arguments, named):
    made = Simulation(box(16, []))
    before = list(made.state.carried)
    with pytest.raises(ValueError, match=named):
        made.paint_picture(**{"pixels": ONES, "center": (0.5, 0.5), "width": 0.5, **arguments})
    assert list(made.state.carried) == before


def test_errors_of_pictures_are_value_errors():
    with pytest.raises(PictureError):
        read_picture("nowhere.png")
    assert issubclass(PictureError, ValueError)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(PictureError, match="is a pipe or a device"):
        read_picture(tmp_path / "pipe.png")
