"""The scenes inside the package."""

from importlib import resources

from ..limits import near
from .rules import Scene
from .text import SceneError


def preset_names() -> list[str]:
    """Names of the scenes inside the package."""
    folder = resources.files("taichi_fluid") / "scenes"
    return sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".toml"))


def preset(name: str) -> Scene:
    """A scene from inside the package.

    Raises:
        SceneError: if there is none of that name.
    """
    if name not in preset_names():
        names = preset_names()
        raise SceneError(f"unknown scene {name!r}: {near(name, names)} scenes are {', '.join(names)}.")
    return Scene.loads((resources.files("taichi_fluid") / "scenes" / f"{name}.toml").read_text(encoding="utf-8"))
