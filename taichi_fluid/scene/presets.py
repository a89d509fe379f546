"""The scenes inside the package."""

import difflib
from importlib import resources

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
        near = difflib.get_close_matches(name, preset_names(), n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise SceneError(f"unknown scene {name!r}: {hint}The scenes are {', '.join(preset_names())}.")
    return Scene.loads((resources.files("taichi_fluid") / "scenes" / f"{name}.toml").read_text(encoding="utf-8"))
