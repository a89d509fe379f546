"""Scenes as data: in and out again, and every way in which one can be wrong."""

import datetime
import math
import types
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from taichi_fluid import scene as module
from taichi_fluid.scene import Scene, SceneError, bytes_needed, preset, preset_names

PRESETS = preset_names()
FUZZ = settings(derandomize=True, deadline=None, max_examples=60, database=None)
NORMAL = {"allow_subnormal": False}
"""``ti.init``, which the other tests of this process need, makes the processor flush subnormal numbers to zero."""

TABLES = ["", "domain", "fluid", "solver", "look", "camera", "output", "sources.0"]
OPTIONAL = ["fluid.gravity", "fluid.body_force", "solver.dt", "look.limits", "look.light_direction", "sources.0.end"]

EVERY_SHAPE = {
    "name": "all",
    "domain": {"boundaries": [["free-slip", "no-slip"], ["no-slip", "no-slip"], ["free-slip", "free-slip"]]},
    "fluid": {"gravity": [0.0, 0.0, -9.81], "body_force": [1e-3, 0.0, 0.0]},
    "sources": [
        {"shape": "sphere", "center": [0.5, 0.1, 0.5], "radius": 0.1, "smoke": 1.0, "end": 2.5},
        {"shape": "capsule", "ends": [[0.1, 0.1, 0.1], [0.9, 0.1, 0.1]], "radius": 0.05, "dye": [1.0, 0.0, 0.5]},
        {"shape": "cylinder", "ends": [[0.5, 0.1, 0.5], [0.5, 0.2, 0.5]], "radius": 0.1, "temperature": 9.0},
        {"shape": "box", "center": [0.5, 0.5, 0.5], "size": [0.2, 0.1, 0.3], "velocity": [0.0, 1.0, 0.0]},
    ],
    "solver": {"pressure": "cg", "dt": 0.01},
    "look": {"view": "slice", "limits": [0.0, 1.0], "light_direction": [1.0, 1.0, 0.0]},
}
"""A scene that uses each kind of source and each value that may be left out."""


def scenes() -> list[Scene]:
    return [*(preset(name) for name in PRESETS), Scene.from_dict(EVERY_SHAPE)]


def leaves(node, path="") -> list[str]:
    """Dotted key of every value of a nested scene."""
    if isinstance(node, dict):
        return [key for name, child in node.items() for key in leaves(child, f"{path}.{name}".strip("."))]
    if isinstance(node, list):
        return [path, *(key for i, child in enumerate(node) for key in leaves(child, f"{path}.{i}"))]
    return [path]


LEAVES = {
    name: sorted({*leaves(preset(name).model_dump(mode="json", exclude_none=True)), *OPTIONAL}) for name in PRESETS
}


def refusal(build) -> str:
    """The sentence with which a scene is refused."""
    with pytest.raises(SceneError) as caught:
        build()
    return sentence(str(caught.value))


def sentence(message: str) -> str:
    """``message``, if it is one line of a length that can be read, and ends."""
    assert "\n" not in message and "\r" not in message, repr(message)
    assert 10 < len(message) < 600, message
    assert message.endswith("."), message
    return message


# In and out


def test_the_three_promised_presets_are_there():
    assert {"plume", "plume2d", "jets"} <= set(PRESETS)
    assert [preset(name).dim for name in ("plume", "plume2d", "jets")] == [3, 2, 3]
    for name in PRESETS:
        assert preset(name).name == name
        assert preset(name).description, "the list of scenes says what each is"


@pytest.mark.parametrize("scene", scenes(), ids=lambda scene: scene.name)
def test_a_scene_comes_back_from_its_text_and_the_text_from_the_scene(scene):
    text = scene.dumps()
    assert Scene.loads(text) == scene
    assert Scene.loads(text).dumps() == text


@pytest.mark.parametrize("scene", scenes(), ids=lambda scene: scene.name)
def test_a_scene_comes_back_from_a_file(scene, tmp_path):
    path = tmp_path / "ein schöner name.toml"
    path.write_text(scene.dumps(), encoding="utf-8")
    assert Scene.load(path) == scene
    assert Scene.load(str(path)) == scene


@pytest.mark.parametrize("scene", scenes(), ids=lambda scene: scene.name)
def test_changing_nothing_or_a_value_to_itself_gives_the_same_scene(scene):
    assert scene.with_values({}) == scene
    assert scene.with_values({"domain.resolution": scene.domain.resolution, "name": scene.name}) == scene


@pytest.mark.parametrize("text", ['plain "quotes" and \\', "two\nlines\tand a tab", "Rauch · 烟 · 🜁", "'''\"\"\""])
def test_any_description_survives(text):
    scene = preset("plume").with_values({"description": text})
    assert Scene.loads(scene.dumps()).description == text


@FUZZ
@given(st.floats(1e-3, 10), st.floats(0, 10, **NORMAL), st.integers(1, 8192))
def test_every_float_survives_to_the_last_bit(dt, viscosity, resolution):
    changes = {"solver.dt": dt, "fluid.viscosity": viscosity, "domain.resolution": resolution}
    scene = preset("plume").with_values(changes)
    again = Scene.loads(scene.dumps())
    assert (again.solver.dt, again.fluid.viscosity, again.domain.resolution) == (dt, viscosity, resolution)


def test_a_whole_number_is_a_number():
    """TOML has integers; ``gravity = [0, -9, 0]`` and ``rho = 1`` mean what they say."""
    scene = preset("plume").with_values({"fluid.rho": 1, "fluid.gravity": [0, -9, 0]})
    assert scene == preset("plume").with_values({"fluid.rho": 1.0, "fluid.gravity": [0.0, -9.0, 0.0]})
    assert Scene.loads(scene.dumps()) == scene


# A value


def test_a_scene_is_frozen_to_the_bottom():
    scene = preset("plume")
    for owner, name in [
        (scene, "name"),
        (scene.domain, "resolution"),
        (scene.sources[0], "smoke"),
        (scene.look, "axis"),
    ]:
        with pytest.raises(ValidationError):
            setattr(owner, name, getattr(owner, name))
    assert isinstance(scene.sources, tuple)
    assert hash(scene) == hash(preset("plume"))


def test_with_values_changes_what_it_names_and_leaves_the_original():
    scene = preset("jets")
    before = scene.dumps()
    changed = scene.with_values({"fluid.viscosity": 1e-4, "sources.1.dye": [1.0, 2.0, 3.0], "domain.size.2": 1.9})
    assert scene.dumps() == before
    assert changed.fluid.viscosity == 1e-4
    assert changed.sources[1].dye == (1.0, 2.0, 3.0)
    assert changed.sources[0] == scene.sources[0]
    assert changed.domain.size == (2.0, 2.0, 1.9)
    expected = scene.model_dump(mode="json")
    expected["fluid"]["viscosity"], expected["sources"][1]["dye"] = 1e-4, [1.0, 2.0, 3.0]
    expected["domain"]["size"][2] = 1.9
    assert changed.model_dump(mode="json") == expected


@pytest.mark.parametrize(
    ("name", "shape", "dx"),
    [("plume", (64, 64, 64), 0.0625), ("plume2d", (192, 256), 2 / 256), ("jets", (64,) * 3, 2 / 64)],
)
def test_cells_of_a_preset(name, shape, dx):
    domain = preset(name).domain
    assert domain.shape == shape
    assert domain.dx == pytest.approx(dx, rel=1e-15)
    assert [n * domain.dx for n in shape] == pytest.approx(domain.size)


def test_resolution_counts_along_the_longest_edge_and_no_axis_is_empty():
    domain = Scene.from_dict({"name": "slim", "domain": {"size": [1.0, 7.0, 0.01], "resolution": 70}}).domain
    assert domain.shape == (10, 70, 1)
    assert domain.dx == pytest.approx(0.1)


def test_gravity_points_down_the_second_axis_unless_it_is_given():
    assert preset("plume").gravity == (0.0, -9.81, 0.0)
    assert preset("plume2d").gravity == (0.0, -9.81)
    assert preset("plume").with_values({"fluid.gravity": [1, 2, 3]}).gravity == (1.0, 2.0, 3.0)
    assert preset("plume").with_values({"fluid.gravity": [0, 0, 0]}).gravity == (0.0, 0.0, 0.0)


def test_what_is_carried_follows_from_the_sources():
    assert preset("plume").carried == {"smoke": 1, "temperature": 1}
    assert preset("jets").carried == {"dye": 3}
    assert preset("plume").with_values({"sources": []}).carried == {"smoke": 1}


def test_memory_grows_with_the_cells():
    small, large = (bytes_needed(preset("plume").with_values({"domain.resolution": n})) for n in (128, 256))
    # Eight times the cells; ghosts weigh less the larger the grid: (258 / 130)³ = 7.8.
    assert 7.5 < large / small < 8
    assert bytes_needed(preset("plume").with_values({"fluid.viscosity": 1e-3})) > bytes_needed(preset("plume"))


# What a panel of sliders needs to know


def numeric_fields():
    """Every number and vector of numbers in the configuration, with the set of its kinds."""
    for model in vars(module).values():
        if isinstance(model, type) and issubclass(model, module.Config):
            for name, field in model.model_fields.items():
                kinds = set(number_types(field.annotation))
                if kinds and not model.__name__.startswith("_"):
                    yield pytest.param(field, kinds, id=f"{model.__name__}.{name}")


def number_types(annotation):
    """``"int"``, ``"float"`` or ``"vector"`` for every number in an annotation."""
    origin = typing.get_origin(annotation)
    if annotation in (int, float):
        yield annotation.__name__
    elif origin is typing.Annotated:
        yield from number_types(typing.get_args(annotation)[0])
    elif origin in (typing.Union, types.UnionType):
        for part in typing.get_args(annotation):
            yield from number_types(part)
    elif origin is tuple and any(list(number_types(part)) for part in typing.get_args(annotation)):
        yield "vector"


def limits_of(field) -> set[str]:
    """Its own, and those of the number that it may be beside a text."""
    entries = [*field.metadata]
    for one in typing.get_args(field.annotation):
        entries += [entry for made in getattr(one, "__metadata__", ()) for entry in made.metadata]
    return {name for entry in entries for name in ("ge", "gt", "le", "lt") if getattr(entry, name, None) is not None}


NUMBERS = list(numeric_fields())


@pytest.mark.parametrize(("field", "kinds"), NUMBERS)
def test_every_number_says_what_it_means(field, kinds):
    assert field.description, "no description"
    assert any(len(word) > 3 for word in field.description.split()), f"{field.description!r} is no meaning"


@pytest.mark.parametrize(("field", "kinds"), [param for param in NUMBERS if param.values[1] == {"float"}])
def test_every_quantity_has_a_unit_and_a_range(field, kinds):
    """``scene.fields`` promises a slider for each: unit, and a range with two ends."""
    extra = field.json_schema_extra or {}
    assert extra.get("unit"), "no unit in the metadata"
    assert limits_of(field) & {"ge", "gt"}, "no lower end"
    assert limits_of(field) & {"le", "lt"}, "no upper end"


def test_the_search_for_numbers_finds_them():
    found = {param.id for param in NUMBERS}
    assert {"Fluid.viscosity", "Domain.size", "Domain.resolution", "Solver.dt", "SphereSource.radius"} <= found
    assert {"Fluid.gravity", "Look.limits", "Camera.azimuth", "Output.fps", "BoxSource.end"} <= found
    assert not {"Scene.name", "Look.view", "Scene.domain"} & found


# What cannot be


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"fluid.viscocity": 1.0}, ["fluid.viscocity", "did you mean 'viscosity'", "smoke_diffusion"]),
        ({"fluid.smoke-weight": 1.0}, ["fluid.smoke-weight", "did you mean 'smoke_weight'"]),
        ({"sources.0.sphere": 1.0}, ["sources.0.sphere", "radius"]),
        ({"flud": 1.0}, ["flud", "fluid", "domain"]),
        ({"gravity": [0.0, -1.0, 0.0]}, ["unknown key 'gravity'", "did you mean 'fluid.gravity'?"]),
        ({"fluid.cfl": 1.0}, ["did you mean 'solver.cfl'?"]),
        ({"liquid": {"viscosity": 1.0}}, ["did you mean 'fluid.viscosity'?"]),
        ({"sources.0.radios": 1.0}, ["sources.0.radios", "radius", "ends"]),
        ({"sources.0.center": [1, 1, 1]}, ["unknown key 'sources.0.center': the keys of", "radius"]),
        ({"sources.3.smoke": 1.0}, ["sources.3.smoke", "3"]),
        ({"sources.x.smoke": 1.0}, ["sources.x.smoke"]),
        ({"sources.-1.smoke": 1.0}, ["sources.-1.smoke"]),
        ({"sources.²": 1.0}, ["sources.²"]),
        ({"domain.resolution.x": 1}, ["domain.resolution.x", "domain.resolution"]),
        ({"nowhere.to.go": 1}, ["nowhere.to.go", "domain"]),
        ({"": 1}, ["''", "domain"]),
        ({"domain.resolution": 64.0}, ["domain.resolution", "64.0", "integer"]),
        ({"domain.resolution": "64"}, ["domain.resolution", "'64'", "integer"]),
        ({"domain.resolution": True}, ["domain.resolution", "True", "integer"]),
        ({"domain.resolution": 0}, ["domain.resolution", "0", "1"]),
        ({"domain.resolution": -5}, ["domain.resolution", "-5", "1"]),
        ({"domain.resolution": 10**40}, ["domain.resolution", "8192"]),
        ({"fluid.viscosity": math.nan}, ["fluid.viscosity", "nan", "finite"]),
        ({"fluid.viscosity": math.inf}, ["fluid.viscosity", "inf", "finite"]),
        ({"fluid.viscosity": -1.0}, ["fluid.viscosity", "-1.0", "0"]),
        ({"fluid.viscosity": "a\nb"}, ["fluid.viscosity", "a\\nb", "number"]),
        ({"fluid.viscosity": None}, ["fluid.viscosity", "None", "number"]),
        ({"fluid.gravity": [0.0, math.nan, 0.0]}, ["fluid.gravity.1", "nan"]),
        ({"fluid.gravity": [0.0, -9.81]}, ["fluid.gravity", "2", "3"]),
        ({"fluid.gravity": -9.81}, ["fluid.gravity is -9.81", "a list of numbers"]),
        ({"liquid": {"bodies": 3}}, ["liquid.bodies is 3", "a list of tables"]),
        ({"sources": 3}, ["sources is 3", "a list of tables"]),
        ({"domain.size": [1.0, 0.0, 1.0]}, ["domain", "size", "0.0", "greater than or equal"]),
        ({"domain.size": [1.0]}, ["domain.size", "[1.0]", "2"]),
        ({"domain.size": []}, ["domain.size", "[]", "2"]),
        ({"domain.boundaries": "wet"}, ["domain.boundaries", "wet", "free-slip", "periodic"]),
        ({"domain.boundaries": ["periodic"] * 3}, ["domain.boundaries.0 is 'periodic': the boundaries are", "a pair"]),
        ({"domain.boundaries": [["no-slip", "wet"]] * 3}, ["domain.boundaries", "wet", "free-slip", "no-slip"]),
        ({"domain.boundaries": [["no-slip", "no-slip"]]}, ["domain", "boundaries", "1", "3"]),
        ({"sources.0.shape": "cube"}, ["sources.0", "shape", "cube", "sphere", "capsule", "cylinder", "box"]),
        ({"sources.0": {"shape": "sphere", "radius": 1.0}}, ["sources.0.center", "missing"]),
        ({"sources.0.ends": [[9.0, 0.1, 2.0], [9.0, 0.3, 2.0]]}, ["sources", "8.58", "9.42", "4"]),
        ({"sources.0.ends": [[1.0, 1.0], [1.0, 1.2]]}, ["sources", "2", "3"]),
        ({"look.view": "hologram"}, ["look.view", "hologram", "volume", "slice"]),
        ({"look.light_direction": [0.0, 0.0, 0.0]}, ["look.light_direction", "0.0"]),
        (
            {"look.view": "slice", "look.quantity": "temperature", "sources": []},
            ["look.quantity", "temperature", "it may be smoke, "],
        ),
        ({"look.albedo": [2.0, 0.0, 0.0]}, ["look.albedo", "2.0", "1"]),
        ({"output.frames": 0}, ["output.frames", "0", "1"]),
        ({"name": "../../etc"}, ["name", "../../etc"]),
        ({"name": ""}, ["name", "''"]),
        ({"name": "line\n"}, ["name", "line\\n"]),
        ({"name": "n" * 1000}, ["name", "nnn"]),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, dict) else "",
)
def test_a_refusal_names_the_thing_the_value_and_what_is_allowed(changes, named):
    message = refusal(lambda: preset("plume").with_values(changes))
    for part in named:
        assert part in message, f"{part!r} is not in: {message}"


def test_a_view_of_what_a_scene_has_not_begins_with_something_else():
    karman = preset("karman")
    assert karman.look.quantity == "smoke", "which is not there"
    for view in ("slice", "arrows"):
        assert karman.with_values({"look.view": view}).look.quantity == "dye"
    assert karman.with_values({"look.view": "slice", "look.quantity": "speed"}).look.quantity == "speed"
    assert karman.with_values({"look.view": "slice", "sources.0.smoke": 1.0}).look.quantity == "smoke"
    assert karman.with_values({"look.view": "volume"}).look.quantity == "smoke", "of which nothing is asked"
    assert "it may be dye, " in refusal(lambda: karman.with_values({"look.view": "slice", "look.quantity": "smoke"}))


F32_HUGE = 1e39
"""Beyond the largest f32: on the device it is infinite."""


@pytest.mark.parametrize(
    "changes",
    [
        {"sources.0.velocity": [F32_HUGE, 0.0, 0.0]},
        {"sources.0.dye": [F32_HUGE, 0.0, 0.0]},
        {"sources.0.radius": 1e308},
        {"sources.0.mottle_size": 1e-46},
        {"fluid.gravity": [0.0, F32_HUGE, 0.0]},
        {"fluid.body_force": [0.0, F32_HUGE, 0.0]},
        {"look.limits": [0.0, F32_HUGE]},
        {"solver.dt": 1e-300},
        {"solver.max_dt": 1e-300},
        {"solver.cfl": 1e-300},
        {"output.fps": 1e-300},
        {"sources": [], "domain.size": [F32_HUGE, F32_HUGE, F32_HUGE]},
        {"sources": [], "domain.size": [1e-300, 1e-300, 1e-300]},
    ],
    ids=str,
)
def test_a_number_that_no_run_can_use_is_refused(changes):
    """The device computes in f32: a value that is 0 or infinite there, or a run that could never end, cannot be."""
    refusal(lambda: preset("plume").with_values(changes))


def test_keys_of_a_table_are_named_with_those_that_are_left_out():
    """``gravity`` is left out in the preset and still is a key of ``fluid``."""
    message = refusal(lambda: preset("plume").with_values({"fluid.gravity.1": -1.0}))
    assert "gravity" in message.split(":", 1)[1], message


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", ["name"]),
        ("name = ", ["TOML"]),
        ("name = 'x'\nname = 'y'", ["TOML"]),
        ("name = 'x'\n[domain]\nsize = [1.0, 1.0,", ["TOML"]),
        ("name = 'x'\n[[domain]]\n", ["domain"]),
        ("name = 'x'\nsources = 3", ["sources", "3"]),
        ("name = 'x'\n[sources]\nshape = 'box'", ["sources"]),
        ("name = 'x'\n[solver]\ndt = 2020-01-01", ["solver.dt", "2020"]),
        ('name = "x"\n"a\\nb" = 3', ["a\\nb", "domain"]),
        ("name = 'x'\n[domain]\n'a.b' = 3", ["a.b", "resolution"]),
        (f"name = 'x'\n[domain]\nresolution = {'9' * 5000}", []),
        (f"name = {'[' * 5000}", ["TOML"]),
        ("name = 'x'\0", ["TOML"]),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_text_that_is_no_scene_is_refused(text, named):
    message = refusal(lambda: Scene.loads(text))
    for part in named:
        assert part in message, message


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "binary.toml").write_bytes(bytes(range(128, 256)))
    (tmp_path / "folder.toml").mkdir()
    for path in (
        tmp_path / "none.toml",
        tmp_path / "binary.toml",
        tmp_path / "folder.toml",
        tmp_path / "binary.toml" / "x",
    ):
        assert path.name in refusal(lambda path=path: Scene.load(path))


def test_an_unknown_preset_is_refused_with_a_suggestion():
    message = refusal(lambda: preset("plum"))
    assert "did you mean 'plume'" in message
    assert all(name in message for name in PRESETS)
    for name in ("", "../scenes/plume", "plume.toml", "a\nb", "Plume"):
        assert "unknown scene" in refusal(lambda name=name: preset(name))


# Everything else that a file can hold (Hypothesis)

PLAIN_KEYS = st.text(st.characters(codec="utf-8", exclude_characters="."), min_size=0, max_size=30)
ALWAYS_WRONG = st.sampled_from(
    [math.nan, math.inf, -math.inf, {}, {"x": 1}, datetime.date(2020, 1, 1), [math.nan], [[]]]
)
ODD_VALUES = st.one_of(
    ALWAYS_WRONG,
    st.sampled_from(
        [None, "", "two\nlines", "x" * 500, [], -1, 0, 10**30, -(10**30), 1e300, 1e-300, True, [None], [[1, 2], [3, 4]]]
    ),
    st.integers(),
    st.floats(**NORMAL),
    st.text(max_size=20),
    st.lists(st.floats(**NORMAL), max_size=4),
)


@st.composite
def places(draw):
    """A preset and the dotted key of a value in it."""
    name = draw(st.sampled_from(PRESETS))
    return name, draw(st.sampled_from(LEAVES[name]))


@FUZZ
@given(st.sampled_from(PRESETS), st.sampled_from(TABLES), PLAIN_KEYS, ODD_VALUES)
def test_an_unknown_key_is_refused_at_any_depth(name, table, key, value):
    scene = preset(name)
    node = scene.model_dump(mode="json", exclude_none=True)
    known = node
    for part in table.split(".") if table else []:
        if part.isdigit() and int(part) >= len(known):
            return  # a scene without sources
        known = known[int(part)] if part.isdigit() else known[part]
    if key in known or f"{table}.{key}" in OPTIONAL or (table == "sources.0" and key in ("velocity", "end")):
        return
    dotted = f"{table}.{key}" if table else key
    known[key] = 1.0 if value is None else value
    for build in (lambda: scene.with_values({dotted: value}), lambda: Scene.from_dict(node)):
        message = refusal(build)
        assert "unknown key" in message
        assert repr(key)[1:-1] in message, "the key is named"
        assert "shape" in message if table == "sources.0" else next(iter(known)) in message, "so are those allowed"


@FUZZ
@given(places(), ALWAYS_WRONG)
def test_what_no_key_can_hold_is_refused(place, value):
    name, key = place
    message = refusal(lambda: preset(name).with_values({key: value}))
    assert key.split(".")[0] in message, "the key is named"
    shown = repr(value[0] if isinstance(value, list) and value != [[]] else value)[:12]
    allowed = (
        "it should be",
        "must be",
        "unknown key",
        "missing",
        "tuple should",
        "coordinates",
        "pairs",
        "boundaries are",
    )
    assert shown in message or any(words in message for words in allowed), message


@settings(FUZZ, max_examples=200)
@given(places(), ODD_VALUES)
def test_any_value_gives_a_scene_that_survives_or_a_sentence(place, value):
    name, key = place
    try:
        scene = preset(name).with_values({key: value})
    except SceneError as error:
        sentence(str(error))
        return
    assert Scene.loads(scene.dumps()) == scene
    assert len(scene.domain.shape) == scene.dim
    assert bytes_needed(scene) > 0


@FUZZ
@given(st.sampled_from(PRESETS), st.data())
def test_a_damaged_file_gives_a_scene_or_a_sentence(name, data):
    text = preset(name).dumps()
    begin = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(begin, min(len(text), begin + 20)))
    inserted = data.draw(st.text(st.sampled_from("=[]{}\"'.,\n #09-eE_nif\0ü²"), max_size=8))
    try:
        scene = Scene.loads(text[:begin] + inserted + text[end:])
    except SceneError as error:
        sentence(str(error))
        return
    assert Scene.loads(scene.dumps()) == scene


@FUZZ
@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_any_text_gives_a_scene_or_a_sentence(text):
    try:
        Scene.loads(text)
    except SceneError as error:
        sentence(str(error))


def test_fuel_that_nothing_burns_is_remarked_on():
    source = {"shape": "sphere", "center": [0.5, 0.5], "radius": 0.1, "fuel": 1.0}
    values = {"name": "cold", "domain": {"size": [1.0, 1.0], "resolution": 8}, "sources": [source]}
    (remark,) = Scene.from_dict(values).remarks
    assert "sources[0].fuel" in remark
    assert "nothing burns" in remark
    assert not Scene.from_dict({**values, "combustion": {"burn_rate": 1.0}}).remarks


def test_a_source_that_ends_before_it_begins_is_remarked_on():
    (remark,) = preset("plume").with_values({"sources.0.begin": 3.0, "sources.0.end": 1.0}).remarks
    assert remark == "sources[0] ends at 1 s and begins at 3 s: it never acts."


@pytest.mark.parametrize(
    ("size", "changes", "picture"),
    [
        ([1.0, 1.0, 1.0], {}, (480, 480)),
        ([3.0, 1.0], {}, (832, 278)),
        ([1.0, 3.0], {}, (278, 834)),
        ([20.0, 1.0], {}, (960, 240)),
        ([1.0, 1.0, 4.0], {}, (588, 392)),
        ([3.0, 1.0], {"output.width": 300}, (300, 100)),
        ([3.0, 1.0], {"output.height": 100}, (300, 100)),
        ([3.0, 1.0], {"output.width": 301, "output.height": 77}, (301, 77)),
        ([1.0, 1.0], {"look.compare": True}, (678, 340)),
        ([1.0, 1000.0], {"output.height": 8192}, (2048, 8192)),
        ([1000.0, 1.0], {"output.width": 16}, (16, 16)),
    ],
)
def test_pictures_have_the_shape_of_the_box(size, changes, picture):
    """As many pixels as a square's, at most four times as wide as high, in 3D one and a half; even, for films."""
    assert Scene.from_dict({"name": "a", "domain": {"size": size}}).with_values(changes).picture_size == picture


def test_a_scene_made_of_keywords_says_what_is_wrong_as_one_made_of_a_table_does():
    values = {"name": "p", "domain": {"size": [1.0, 1.0], "resolution": 8}}
    assert Scene(**values) == Scene.from_dict(values)
    for wrong in ({"fluid": {"viscosity": -1.0}}, {"colour": "red"}, {"self": 1}, {"solids": [{"shape": "ball"}]}):
        with pytest.raises(SceneError) as one:
            Scene(**values | wrong)
        with pytest.raises(SceneError) as other:
            Scene.from_dict(values | wrong)
        assert str(one.value) == str(other.value) and "\n" not in str(one.value)
