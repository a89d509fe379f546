"""What a wheel says of itself: versions, systems, types, and a page for an index that leads nowhere dead."""

import re
import sys
from importlib import resources
from pathlib import Path

import pytest

import taichi_fluid as tf

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def settings() -> dict:
    """What stands in pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(settings) -> str:
    """The page on an index, made of the README as the build makes it."""
    hook = settings["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = "".join((ROOT / fragment["path"]).read_text(encoding="utf-8") for fragment in hook["fragments"])
    for substitution in hook["substitutions"]:
        text = re.sub(substitution["pattern"], substitution["replacement"], text)
    return text


def test_the_version_is_one(settings):
    assert settings["project"]["version"] == tf.__version__


def test_the_versions_of_python_are_those_that_may_install_it(settings):
    low, high = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", settings["project"]["requires-python"]).groups()
    named = [each.rpartition(" ")[2] for each in settings["project"]["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert named == [f"3.{minor}" for minor in range(int(low), int(high))]


def test_the_package_says_that_it_has_types(settings):
    assert (resources.files("taichi_fluid") / "py.typed").is_file()
    assert settings["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == ["taichi_fluid"]
    assert "Typing :: Typed" in settings["project"]["classifiers"]


def test_the_page_on_an_index_has_no_relative_address(page):
    assert "<img" not in page and "![" not in page
    assert all(target.startswith("https://") for target in re.findall(r"\]\(([^)]*)\)", page))


def test_the_page_on_an_index_keeps_the_words(page):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pictures = r"!\[[^\]]*\]\([^)]*\)|<img[^>]*>"

    def words(text: str) -> list[str]:
        return re.findall(r"\w+", text)

    links = re.sub(r"\]\((?!https?:)[^)]*\)", "]", re.sub(pictures, "", readme).replace("<br>", ""))
    assert words(page) == words(links)
    assert page.count("taichi-fluid demo") == readme.count("taichi-fluid demo")
