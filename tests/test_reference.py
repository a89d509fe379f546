"""What ``taichi-fluid keys`` says of a scene: all that one may hold, as it is."""

import itertools
import re
from pathlib import Path

import pytest

from taichi_fluid.carried import CARRIED, Carried
from taichi_fluid.scene import Scene, SceneError
from taichi_fluid.scene.bodies import SOLIDS, SOURCES, Picture
from taichi_fluid.scene.fields import PartOfSide, SideOfBox
from taichi_fluid.scene.liquid import BODIES
from taichi_fluid.scene.probes import Probe
from taichi_fluid.scene.reference import reference, tables
from taichi_fluid.scene.text import parse_toml

DOCUMENT = Path(__file__).parents[1] / "docs" / "scene.md"
ALONE = ("domain", "fluid", "combustion", "liquid", "initial", "solver", "look", "camera", "live", "output")


def keys_of(text):
    """Names of keys, those that are left out too, in the order that they stand in."""
    return re.findall(r"(?m)^(?:# )?([a-z_]+) =(?: |$)(?!\".*needs)", text)


def test_every_key_is_there_with_what_it_means():
    """Checked against the classes themselves, which know nothing of the reference."""
    text = {table.name: table.text for table in tables()}
    assert keys_of(text[""]) == ["name", "description"]
    for name in ALONE:
        model = type(getattr(Scene(name="x", liquid={}), name))
        assert keys_of(text[name]) == [key for key in model.model_fields if key != "bodies"], name
    for name, models in (("sources", SOURCES), ("solids", SOLIDS), ("liquid.bodies", BODIES)):
        shared, *own = text[name].split("\n\n")
        assert [re.search(r'shape = "(\w+)"', part)[1] for part in own] == list(models)
        for part, model in zip(own, models.values(), strict=True):
            assert sorted({*keys_of(shared), *keys_of(part)}) == sorted(model.model_fields), (name, model)
    for name, model in (
        ("pictures", Picture),
        ("probes", Probe),
        ("domain.boundaries", SideOfBox),
        ("domain.boundaries.parts", PartOfSide),
    ):
        assert keys_of(text[name]) == list(model.model_fields), name
    lines = reference().splitlines()
    for above, line in itertools.pairwise(lines):
        if re.match(r"(# )?[a-z_]+ =( |$)", line) and not line.startswith(("shape", '# kind = "')):
            assert re.match(r"# \S.{3,}", above), line


@pytest.mark.parametrize("name", ALONE)
def test_what_is_shown_is_what_holds_if_nothing_is_said(name):
    shown = parse_toml(reference(name).split("\n\n")[0], "the reference")[name]
    model = type(getattr(Scene(name="x", liquid={} if name == "liquid" else None), name))
    assert model(**shown) == model()


def test_what_is_allowed_is_told():
    fluid = reference("fluid")
    assert (
        "# density of the fluid; kg/m³, a number above 0 to 100000; in a scene with a liquid 1000.0\nrho = 1.2\n"
        in fluid
    )
    assert "m/s², 2 or 3 numbers from -1e6 to 1e6\n# gravity" in fluid
    assert "a number from 1e-7 to 10\n# dt =" in reference("solver"), "as TOML writes it"
    assert (
        reference("probes").count("letters, digits, _ and -, 64 at most") == 1 == reference().count("records: letters")
    )
    assert '"staggered" or "collocated"\ngrid = "staggered"' in reference("domain")
    assert "needed\n# radius =" in reference("sources") and "needed\n# name =" in reference()
    assert '# kind = "line" needs quantity, at, to, and may have points' in reference("probes")


def test_a_quantity_of_ones_own_is_there():
    CARRIED.add(Carried("humidity", unit="kg/m³", meaning="water vapour"))
    try:
        assert "# water vapour added each second; kg/m³/s" in reference("sources")
        assert "humidity_flux" in reference("domain")
    finally:
        CARRIED.remove("humidity")
    assert "humidity" not in reference()


def test_no_other_table_is_found():
    with pytest.raises(SceneError, match="did you mean 'fluid'"):
        reference("fluids")


def test_the_document_is_the_reference():
    """Made by ``taichi-fluid keys``; what changes a key changes it."""
    assert DOCUMENT.read_text(encoding="utf-8").partition("```toml\n")[2] == f"{reference()}```\n"
