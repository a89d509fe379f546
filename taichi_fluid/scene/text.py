"""Scenes as text: TOML to nested values and back, and a sentence for what cannot be."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from ..boundaries.sides import Boundary
from ..limits import is_number, near, shortened
from ..limits import read_file as read_bounded
from .bodies import SOLIDS, SOURCES, Picture
from .fields import PartOfSide, SideOfBox
from .liquid import BODIES
from .probes import Probe

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pyright: ignore[reportMissingImports]


MOST_BYTES = 2**20
"""Of a scene file."""
MOST_PARTS = 16
"""Of a dotted key; none that means something has more than six."""
_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DEEP = re.compile(rf"(?m)(?:^|[\[{{,])[ \t]*{_KEY}(?:[ \t]*\.[ \t]*{_KEY}){{{MOST_PARTS}}}")


class SceneError(ValueError):
    """A scene that cannot be; the message names the thing, its value and what is allowed, in one sentence."""


def read_toml(text: str, where: str, folder: str | Path) -> dict[str, Any]:
    """Nested values of TOML text; files that it names are looked for in ``folder``. SceneError if it is none."""
    values = parse_toml(text, where)
    find_files(values, folder)
    return values


def find_files(values: dict[str, Any], folder: str | Path) -> None:
    """Let the files that nested values of a scene name be those of ``folder``, in place; what is absolute stays."""
    lists, initial = (values.get("solids"), values.get("pictures")), values.get("initial")
    tables = [table for each in lists if isinstance(each, list) for table in each]
    for table in [*tables, *(initial.values() if isinstance(initial, dict) else ())]:
        if isinstance(table, dict) and isinstance(table.get("file"), str):
            table["file"] = str(Path(folder) / table["file"])


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """Nested values of TOML text. SceneError if it is none, or has keys or integers that no scene has."""
    if deep := _DEEP.search(text):
        key = deep[0].strip(" \t[{,")
        raise SceneError(f"{where} has the key {shortened(key)}; a key has {MOST_PARTS} parts at most.")
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SceneError(f"{where} is not valid TOML: {str(error).splitlines()[0][:200]}.") from None
    _require_integers(values, where)
    return values


def _require_integers(values: Any, where: str) -> None:
    """Raise SceneError for an integer that TOML does not know: Python would not even print those of 4,300 digits."""
    rest = [values]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, list):
            rest += value
        elif isinstance(value, int) and value.bit_length() > 63:
            raise SceneError(f"{where} has an integer of {value.bit_length()} bits; TOML has integers of 64.")


def read_file(path: str | Path) -> str:
    """Text of a scene file. SceneError if there is none, or none that can be read."""
    named = f"the scene file {shortened(str(path), 300)}"
    try:
        return read_bounded(path, MOST_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise SceneError(f"there is no scene file {shortened(str(path), 300)}.") from None
    except UnicodeDecodeError as error:
        raise SceneError(f"{named} cannot be read: it is no text in UTF-8, from byte {error.start} on.") from None
    except ValueError as error:
        raise SceneError(f"{named} {error}.") from None


def set_value(values: dict[str, Any], model: type[BaseModel], key: str, value: Any) -> None:
    """Set the one of the nested values that a dotted key names. SceneError if none has that name."""
    node: Any = values
    *parents, leaf = key.split(".")
    for depth, part in enumerate(parents):
        if isinstance(node, list):
            node = node[_index(node, part, key)]
        elif isinstance(node, dict) and part in node:
            node = node[part]
        else:
            raise SceneError(_unknown(model, parents[:depth], part, values, key))
    if isinstance(node, list):
        node[_index(node, leaf, key)] = value
    elif isinstance(node, dict):
        node[leaf] = value
    else:
        raise SceneError(f"unknown key {key!r}: {'.'.join(parents)} is a value and has no keys.")


def _index(node: list, part: str, key: str) -> int:
    if part.isascii() and part.isdecimal() and len(part) < 10 and int(part) < len(node):
        return int(part)
    raise SceneError(f"unknown key {key!r}: {part!r} is no place in a list of {len(node)} (the first is 0).")


def _keys(model: type[BaseModel], parents: Sequence[int | str], values: Mapping[str, Any]) -> list[str]:
    """Keys allowed in the table that ``parents`` lead to."""
    if not parents:
        return list(model.model_fields)
    models = {"sources": SOURCES, "solids": SOLIDS}.get(str(parents[0]))
    if models is not None:
        if len(parents) != 2:
            return []
        shape = values[str(parents[0])][int(parents[1])].get("shape")
        return list(models.get(shape, models["sphere"]).model_fields)
    if parents[0] == "liquid" and len(parents) > 1:
        return _keys_of_body(parents, values)
    rows = {"pictures": Picture, "probes": Probe}.get(str(parents[0]))
    if rows is not None:
        return list(rows.model_fields) if len(parents) == 2 else []
    if parents[:2] == ["domain", "boundaries"]:
        models = {4: SideOfBox, 6: PartOfSide}
        return list(models[len(parents)].model_fields) if len(parents) in models else []
    if len(parents) != 1:
        return []
    table = table_of(model.model_fields[str(parents[0])])
    return list(table.model_fields) if table else []


def table_of(field: FieldInfo) -> type[BaseModel] | None:
    """The class of a table that a field is, which may be left out; None for one of another kind."""
    kinds = (field.annotation, *get_args(field.annotation))
    return next((each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel)), None)


def _keys_of_body(parents: Sequence[int | str], values: Mapping[str, Any]) -> list[str]:
    """Keys of one of the bodies of a liquid."""
    if len(parents) != 3 or parents[1] != "bodies":
        return []
    shape = values["liquid"]["bodies"][int(parents[2])].get("shape")
    return list(BODIES.get(shape, BODIES["box"]).model_fields)


def _unknown(
    model: type[BaseModel], parents: Sequence[int | str], leaf: int | str, values: Mapping[str, Any], key: str
) -> str:
    keys = _keys(model, parents, values)
    parent = ".".join(map(str, parents)) or "a scene"
    tables = () if len(parents) > 1 else model.model_fields  # one row of several stands for nothing that a table has
    elsewhere = [f"{table}.{leaf}" for table in tables if leaf in _keys(model, [table], {})]
    return f"unknown key {shortened(key)}: " + (
        f"{near(str(leaf), keys, elsewhere)} keys of {parent} are {', '.join(keys)}."
        if keys
        else f"{parent} has no keys."
    )


def _path(location: Sequence[int | str], values: Any) -> list[int | str]:
    """``location`` without what pydantic adds to it: the names of alternatives that it tried."""
    path, node = [], values
    for i, part in enumerate(location):
        if i == 2 and location[0] in ("sources", "solids"):
            continue
        inside = (
            part in node if isinstance(node, Mapping) else isinstance(node, (list, tuple)) and part in range(len(node))
        )
        if inside:
            node = node[part]
        elif not isinstance(node, Mapping) or i + 1 < len(location):
            continue
        path.append(part)
    return path


def _count_missing(problem: Mapping[str, Any], problems: Sequence[Mapping[str, Any]]) -> str:
    """What a list that is too short should be, from the first place that is missing in it and all that is wrong."""
    place, value = problem["loc"], problem["input"]
    count = 1 + max(int(p["loc"][-1]) for p in problems if p["type"] == "missing" and p["loc"][:-1] == place[:-1])
    # Of one number or several both are tried, and a list is no number.
    one = any(p["type"] == "float_type" and p["input"] == value for p in problems)
    return f"be one number or {count}" if one else f"have {count} numbers"


def _of_number(problem: Mapping[str, Any], problems: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """A problem, or where one number or several may stand and it is none of several, what is wrong with it as one."""
    value, place = problem["input"], problem["loc"][:-1]
    one = [p for p in problems if p["loc"][:-1] == place and p["type"] != "tuple_type"]
    if problem["type"] != "tuple_type" or not one:
        return problem
    said = one[0]["msg"] if is_number(value) else "Input should be a finite number, or a list of them"
    return {**problem, "loc": place, "msg": said}


def _first_of(problems: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The first problem; where a key is missing and another there that nobody knows, that is what was mistyped."""
    first = problems[0]
    if first["type"] != "missing":
        return first
    beside = (p for p in problems if p["type"] == "extra_forbidden" and p["loc"][:-1] == first["loc"][:-1])
    return next(beside, first)


TABLES = ("sources", "solids", "bodies", "parts", "pictures", "probes")
"""Keys whose values are lists of tables."""


def sentence(error: ValidationError, model: type[BaseModel], values: Mapping[str, Any]) -> str:
    """The first problem as one sentence that names the key, its value and what is allowed."""
    problems = error.errors(include_url=False)
    # A side is a kind or a table; of a table that fails, what is wrong inside it says more.
    in_table = (p for p in problems if SideOfBox.__name__ in p["loc"][:-1])
    problem = _of_number(next(in_table, _first_of(problems)), problems)
    path, value, kind = _path(problem["loc"], values), problem["input"], problem["type"]
    where = ".".join(map(str, path))
    shown = shortened(value, 60)
    if kind == "extra_forbidden":
        return _unknown(model, path[:-1], path[-1], values, where)
    if kind == "missing" and (path[:2] != ["domain", "boundaries"] or isinstance(path[-1], str)):
        if isinstance(problem["loc"][-1], int):
            return f"{where} is {shown}: it should {_count_missing(problem, problems)}."
        return f"{where} is missing: it has no default."
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        shapes_of = {"solids": SOLIDS, "sources": SOURCES, "liquid": BODIES}
        *shapes, last = map(repr, shapes_of[str(path[0])])
        given = f"is {shortened(value.get('shape'))}" if kind == "union_tag_invalid" else "is missing"
        return f"{where}.shape {given}: it should be {', '.join(shapes)} or {last}."
    if kind == "value_error":
        prefix = f"{where}: " if where else ""
        return f"{prefix}{problem.get('ctx', {}).get('error', problem['msg'])}."
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        keys = _keys(model, path, {str(path[0]): {}}) if len(path) == 1 else []
        return f"{where} is {shown}: it should be a table" + (f" with {', '.join(keys)}." if keys else " of its keys.")
    if path[:2] == ["domain", "boundaries"] and (len(path) < 5 or path[4] == "kind"):
        *keys, last = SideOfBox.model_fields
        # A kind that there is stands where a pair does.
        the = near(value, Boundary) if isinstance(value, str) and value not in list(Boundary) else "the"
        return (
            f"{where} is {shown}: {the} boundaries are one kind for all sides or a pair (lower, upper) per axis, each a kind "
            f"or a table with {', '.join(keys)} and {last}; kinds are {', '.join(Boundary)}."
        )
    allowed = problem["msg"].replace("Input should", "it should", 1).replace("Tuple should", "it should", 1)
    listed = "a list of tables" if path[-1] in TABLES else "a list of numbers" if is_number(value) else "a list"
    allowed = allowed.replace(" after validation", "").replace("a valid tuple", listed)
    return f"{where} is {shown}: {allowed[0].lower() + allowed[1:]}."
