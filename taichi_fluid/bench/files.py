"""What a benchmark is given and what it leaves: the scene that stands for a smoke solver, files of rows. Without Taichi."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..io.files import whole_file
from ..scene import Scene, preset

SAYS = "taichi-fluid-bench:"
"""What a line of JSON for the process that asked begins with."""


def default_scene(dim: int) -> Scene:
    """The closed box with a plume: in 3D the preset, in 2D the preset in a square box."""
    if dim == 3:
        return preset("plume")
    changes = {"name": "plume2d_square", "domain.size": [2.0, 2.0], "sources.0.center": [1.0, 0.18]}
    return preset("plume2d").with_values(changes)


class NoBench(ValueError):
    """A file that does not hold the rows of a benchmark; the message says so in a sentence."""


def load(path: Path) -> dict[str, Any]:
    """What a benchmark has written.

    Raises:
        NoBench: if the file is none.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NoBench(f"{str(path)!r} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise NoBench(f"{str(path)!r} is not JSON.") from None
    rows = found.get("rows") if isinstance(found, dict) else None
    if not isinstance(rows, list) or not all(_is_row(row) for row in rows):
        raise NoBench(f"{str(path)!r} does not hold the rows that 'taichi-fluid bench --json' writes.")
    return found


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict) or not {"arch", "scene", "resolution"} <= row.keys():
        return False
    if "problem" in row or "startup" in row:
        return True
    return {"ms_per_step", "stages", "iterations", "launches_per_step", "bytes_per_cell"} <= row.keys()


def write_csv(path: Path, found: Mapping[str, Sequence[Mapping[str, Any]] | Any]) -> None:
    """Write rows as a table for a spreadsheet: a line each, what is within another thing by names with dots.

    What all rows have in common (machine, versions, commit) stands in each, so that tables can be put together.

    Args:
        path: What to write.
        found: What ``load`` returns.
    """
    common = _flat({name: value for name, value in found.items() if name != "rows"})
    rows = [{**common, **_flat(row)} for row in found["rows"]]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    """What lies within a value, by its names joined by dots; a list of words or of a grid's cells is one text."""
    if isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, Sequence) and not isinstance(value, str) and name.rpartition(".")[2].startswith("quartiles"):
        inner = zip(("lower", "upper"), value, strict=True)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        return {name: (" x " if name == "resolution" else "; ").join(map(str, value))}
    else:
        return {name: value}
    found = {}
    for key, each in inner:
        found |= _flat(each, f"{name}.{key}" if name else key)
    return found
