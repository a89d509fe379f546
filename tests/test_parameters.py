"""What a panel is made of: every value of a scene that can be changed while it runs, from the scene's own fields."""

import math

import pytest
from annotated_types import Ge, Gt, Le, Lt
from pydantic import Field
from scenes_for_tests import burner, scene

from taichi_fluid.carried import CARRIED, Carried
from taichi_fluid.scene import Fluid, Look, Scene, SceneError, Vector, preset, preset_names
from taichi_fluid.viewer.parameters import DIGITS, NOT_STEERED, Kind, Parameter, sections

FORBIDDEN = {
    # What a scene's own rules refuse although the field alone allows it: the collocated grid, alone or beside the other, where solids stand.
    **{(name, "domain.grid", "collocated"): "domain.grid" for name in preset_names() if preset(name).solids},
    **{(name, "look.compare", True): "look.compare" for name in preset_names() if preset(name).solids},
}
PRESETS = pytest.mark.parametrize("name", preset_names())


def every(scene: Scene) -> dict[str, Parameter]:
    """All parameters by name; that a name is unique is a test of its own."""
    return {p.name: p for section in sections(scene) for p in section.parameters}


def value_in(scene: Scene, parameter: Parameter):
    """What the scene has where the parameter stands."""
    node = scene
    for part in parameter.key.split("."):
        node = node[int(part)] if isinstance(node, tuple) else getattr(node, part)
    for place in parameter.place:
        node = node[place]
    return node is not None if parameter.kind is Kind.OPTIONAL else node


def values_for(parameter: Parameter) -> list:
    """Values that a panel can give it: the ends of its range and what it is now, or each choice."""
    return {
        Kind.FLOAT: [parameter.low, parameter.high, parameter.value],
        Kind.INT: [int(parameter.low), int(parameter.high), parameter.value],
        Kind.BOOL: [True, False],
        Kind.OPTIONAL: [True, False],
        Kind.CHOICE: list(parameter.choices),
        Kind.COLOUR: [(0.0, 0.0, 0.0), (1.0, 1.0, 1.0), parameter.value],
    }[parameter.kind]


@PRESETS
def test_each_parameter_has_its_own_name_and_lies_in_its_range(name):
    found = [p for section in sections(preset(name)) for p in section.parameters]
    assert len({p.name for p in found}) == len(found) > 30
    for p in found:
        if p.kind in (Kind.FLOAT, Kind.INT):
            assert p.low <= p.value <= p.high, p
            assert p.low < p.high, p
            assert math.isfinite(p.high - p.low)
        assert p.label
        assert p.unit


@PRESETS
def test_what_a_panel_can_give_is_a_scene_that_reads_back(name):
    before = preset(name)
    for p in every(before).values():
        for value in values_for(p):
            forbidden = FORBIDDEN.get((name, p.name, value))
            if forbidden:
                with pytest.raises(SceneError, match=forbidden):
                    before.with_values(p.changed(value))
                continue
            read = value_in(before.with_values(p.changed(value)), p)
            if p.kind is Kind.FLOAT:
                # Rounded to DIGITS digits: by half a unit in the last of them.
                assert read == pytest.approx(value, rel=0.6 * 10.0 ** (1 - DIGITS), abs=0.0), p.name
            else:
                assert read == value, p.name


@PRESETS
def test_a_change_changes_nothing_else(name):
    before = preset(name)
    for p in every(before).values():
        value = values_for(p)[1]
        if (name, p.name, value) in FORBIDDEN:
            continue
        after = every(before.with_values(p.changed(value)))
        for other, q in every(before).items():
            # The parts come and go with the whole that they belong to; a view may begin with another quantity.
            follows = (p.kind is Kind.OPTIONAL and q.key == p.key) or (p.key, q.key) == ("look.view", "look.quantity")
            if other != p.name and not follows:
                assert after[other].value == q.value, (p.name, other)


@PRESETS
def test_nothing_is_steered_that_is_built_into_the_arrays(name):
    for p in every(preset(name)).values():
        assert not any(p.key == fixed or p.key.startswith(f"{fixed}.") for fixed in NOT_STEERED), p.key


def test_a_slider_shows_the_unit_and_the_range_of_the_field():
    found = every(preset("plume"))
    for name, field in Fluid.model_fields.items():
        for p in found.values():
            if p.key == f"fluid.{name}" and p.kind is Kind.FLOAT:
                assert p.unit == field.json_schema_extra["unit"]
                assert field.json_schema_extra["unit"] == "1" or p.unit in p.title
    assert (found["live.pace"].low, found["live.pace"].high) == (0.05, 4)


def test_whether_a_drag_adds_is_a_check_box():
    parameter = every(preset("godot2d"))["live.add"]
    assert (parameter.kind, parameter.value) == (Kind.BOOL, True)
    assert preset("godot2d").with_values(parameter.changed(False)).live.add is False
    assert preset("plume").live.add is False


@PRESETS
def test_a_slider_stays_within_what_the_field_allows(name):
    """The test reads the limits by itself: an end that the field excludes is excluded from the slider."""
    for section in sections(preset(name)):
        if section.title != "look":
            continue
        for p in section.parameters:
            if p.kind not in (Kind.FLOAT, Kind.INT) or p.place:
                continue
            for limit in Look.model_fields[p.key.removeprefix("look.")].metadata:
                if isinstance(limit, Ge):
                    assert p.low >= limit.ge, p.name
                if isinstance(limit, Gt):
                    assert p.low > limit.gt, p.name
                if isinstance(limit, Le):
                    assert p.high <= limit.le, p.name
                if isinstance(limit, Lt):
                    assert p.high < limit.lt, p.name


@pytest.mark.parametrize("edge", [0.25, 1.0, 40.0])
def test_places_and_lengths_follow_the_box(dim, edge):
    cells = (8, 16, 8)[:dim]
    source = {"shape": "sphere", "center": [0.1 * edge] * dim, "radius": 0.1 * edge, "smoke": 1.0}
    found = every(scene(cells, edge / 8, sources=[source]))
    for axis in range(dim):
        place = found[f"sources.0.center.{axis}"]
        assert (place.low, place.high) == pytest.approx((0.0, edge * (2 if axis == 1 else 1)))
    radius = found["sources.0.radius"]
    # 0.01 to 0.3 longest edges.
    assert (radius.low, radius.high) == pytest.approx((0.02 * edge, 0.6 * edge))


class FluidWithMore(Fluid):
    """A fluid with one more value of each sort."""

    stickiness: float = Field(0.3, ge=0, le=7, json_schema_extra={"unit": "N/m", "slider": [0, 2], "of_box": False})
    layers: int = Field(3, ge=1, le=9)
    glows: bool = False
    drift: Vector | None = Field(None, json_schema_extra={"unit": "m/s"})


class SceneWithMore(Scene):
    """A scene with that fluid, and a table of its own."""

    fluid: FluidWithMore = FluidWithMore()
    second: FluidWithMore = FluidWithMore()


def test_a_new_field_is_in_the_panel_without_a_line_of_code():
    made = SceneWithMore.from_dict(preset("plume").model_dump(mode="json", exclude_none=True))
    found = every(made)
    stickiness = found["fluid.stickiness"]
    assert (stickiness.kind, stickiness.unit, stickiness.low, stickiness.high) == (Kind.FLOAT, "N/m", 0, 2)
    assert stickiness.title == "stickiness  N/m"
    assert stickiness.changed(1.25) == {"fluid.stickiness": 1.25}
    assert (found["fluid.layers"].kind, found["fluid.layers"].low, found["fluid.layers"].high) == (Kind.INT, 1, 9)
    assert found["fluid.glows"].kind is Kind.BOOL
    assert found["fluid.drift given"].kind is Kind.OPTIONAL
    assert {p for p in found if p.startswith("second.")} == {
        p.replace("fluid.", "second.", 1) for p in found if p.startswith("fluid.")
    }
    assert "fluid.stickiness" not in every(preset("plume"))


def of_range(low, high, value=None, unit="m²/s") -> Parameter:
    """A slider's parameter."""
    return Parameter("a.b", (), "b", unit, Kind.FLOAT, high if value is None else value, low, high)


@pytest.mark.parametrize(
    ("low", "high", "unit", "title"),
    [
        (0, 0.01, "m²/s", "b  1e-3 m²/s"),
        (0, 4e-6, "m²/s", "b  1e-6 m²/s"),
        (0, 0.02, "m", "b  mm"),
        (0.001, 0.05, "s", "b  ms"),
        (0, 2e-6, "m", "b  1e-6 m"),
        (0, 0.05, "1", "b  1e-3"),
        (0, 0.5, "1", "b"),
        (-20, 20, "K", "b  K"),
        (1e-6, 0.01, "1", "b 0.01, log"),
        (1e-6, 0.01, "s", "b 0.01 s, log"),
    ],
)
def test_a_title_says_what_the_slider_counts(low, high, unit, title):
    assert of_range(low, high, unit=unit).title == title


@pytest.mark.parametrize("high", [10.0**power * digit for power in range(-7, 4) for digit in (1, 4)])
def test_three_decimals_are_enough_for_any_slider(high):
    p = of_range(0, high)
    # A gui shows thousandths: at least a hundred of them, and no more than a few digits before the point.
    assert high / p.factor >= 0.0999
    assert p.factor == 1.0 or high / p.factor < 100.0


def test_only_ranges_over_decades_are_logarithmic():
    assert of_range(1e-6, 1e-2).logarithmic
    assert not of_range(0.05, 4).logarithmic
    assert not of_range(0, 100).logarithmic
    assert not of_range(-10, 1e5).logarithmic


def test_a_value_from_a_slider_is_a_round_number():
    assert of_range(0, 1).changed(0.30000001192092896) == {"a.b": 0.3}


@pytest.mark.parametrize("kind", ["given", "left out"])
def test_what_may_be_left_out_is_switched_on_and_off(dim, kind):
    before = scene((8, 8, 8)[:dim], fluid={"gravity": [0.0, -1.0, 0.5][:dim]} if kind == "given" else {})
    found = every(before)
    gravity = found["fluid.gravity given"]
    parts = [f"fluid.gravity.{axis}" for axis in range(dim)]
    assert gravity.kind is Kind.OPTIONAL
    assert gravity.value is (kind == "given")
    assert all((part in found) is gravity.value for part in parts)
    on = before.with_values(gravity.changed(True))
    off = before.with_values(gravity.changed(False))
    assert off.fluid.gravity is None
    # Given it stays as it is, left out it becomes what it was all the while.
    assert on.fluid.gravity == before.gravity
    assert all(part in every(on) for part in parts)


@PRESETS
def test_everything_that_may_be_left_out_can_be_switched_on(name):
    before = preset(name)
    for p in every(before).values():
        if p.kind is Kind.OPTIONAL:
            after = every(before.with_values(p.changed(True)))
            assert after[p.name].value is True
            parts = [q for q in after.values() if q.key == p.key and q.kind is not Kind.OPTIONAL]
            assert parts, f"{p.name} is on and nothing moves it"
            assert all(q.low <= q.value <= q.high for q in parts)


def test_in_the_plane_what_only_space_has_is_hidden():
    def titles(s):
        return {section.title for section in sections(s)}

    flat, deep = scene((8, 8), sources=[burner(2)]), scene((8, 8, 8), sources=[burner(3)])
    assert "camera" in titles(deep)
    assert titles(deep) - titles(flat) == {"camera"}
    for name in ("look.axis", "look.position"):
        assert name in every(deep)
        assert name not in every(flat)


def test_only_quantities_that_the_scene_has_can_be_chosen():
    smoke = every(preset("plume").with_values({"look.view": "slice"}))["look.quantity"]
    assert "smoke" in smoke.choices
    assert "dye" not in smoke.choices
    (dye,) = (p for p in every(preset("jets").with_values({"look.quantity": "dye"})).values() if p.key == smoke.key)
    assert "dye" in dye.choices
    assert "smoke" not in dye.choices


def test_each_source_has_its_section():
    found = [section.title for section in sections(preset("karman"))]
    assert [title for title in found if title.startswith("source")] == ["source 1", "source 2"]
    moved = every(preset("karman"))["sources.1.ends.1.0"]
    after = preset("karman").with_values(moved.changed(0.5))
    assert after.sources[1].ends == ((0.1, 0.785), (0.5, 0.9))
    assert after.sources[0] == preset("karman").sources[0]


def test_a_quantity_that_others_add_has_its_sliders():
    """In each source and in ``fluid``, with the row's unit and range; the components of what is no colour are counted."""
    CARRIED.add(Carried("salt", 2, unit="g/kg", slider=(0, 60), diffusivity=1e-3))
    try:
        found = every(preset("plume").with_values({"sources.0.salt": [1.0, 2.0], "look.quantity": "salt"}))
    finally:
        CARRIED.remove("salt")
    salt = [found[f"sources.0.salt.{k}"] for k in range(2)]
    assert [(p.label, p.unit, p.value, p.low, p.high) for p in salt] == [
        ("salt 1", "g/kg/s", 1.0, 0, 60),
        ("salt 2", "g/kg/s", 2.0, 0, 60),
    ]
    assert (found["fluid.salt_diffusion"].value, found["fluid.salt_diffusion"].unit) == (1e-3, "m²/s")
    assert "salt" in found["look.quantity"].choices
    assert not [name for name in every(preset("plume")) if "salt" in name]
