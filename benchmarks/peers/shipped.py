"""Examples that another package ships, run from where it has installed them."""

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any


def load_example(package: str, path: str, constants: Mapping[str, Any]) -> ModuleType:
    """Import a script with other values of its constants.

    They are changed in its text before it runs, in their own lines: kernels are made from text, and arrays when it runs.

    Args:
        package: Which ships it.
        path: Of the script, inside the package.
        constants: Lines of the script, as they stand there, and what stands in their place.

    Raises:
        RuntimeError: if a line is not there (another version of the package).
    """
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0]) / path
    text = file.read_text(encoding="utf-8")
    for line, other in constants.items():
        if text.count(f"\n{line}") != 1:
            raise RuntimeError(f"{path} of this version of {package} has no line {line!r}")
        text = text.replace(f"\n{line}", f"\n{other}")
    module = ModuleType(file.stem)
    module.__file__ = str(file)
    sys.modules[file.stem] = module
    sys.argv = [str(file)]  # it may read its command line
    exec(compile(text, str(file), "exec"), module.__dict__)
    return module
