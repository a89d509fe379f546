"""What a scene may hold, out of its fields: every table as TOML at its defaults, each key below what it means and may be."""

import json
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ..limits import near
from .bodies import SOLIDS, SOURCES, Picture
from .fields import Given, OneOf, PartOfSide, SideOfBox
from .liquid import BODIES, DEFAULTS
from .probes import PROBES, Probe
from .rules import Scene
from .text import SceneError, table_of

BESIDE = {
    "liquid.bodies": "What of the liquid is there at time 0.",
    "sources": "Where something is brought in.",
    "solids": "What stands or moves in the fluid.",
    "pictures": "What is drawn in dye, or another quantity, at time 0.",
    "probes": "What is measured as the scene runs.",
}
"""Tables that a scene may have any number of."""

SHAPES = {"liquid.bodies": BODIES, "sources": SOURCES, "solids": SOLIDS}
"""Those that have a shape, and a class for each."""
SIDES = {
    "domain.boundaries": (
        SideOfBox,
        'A side of the box, in place of its kind: { kind = "inflow", velocity = [1.0, 0.0] }.',
    ),
    "domain.boundaries.parts": (PartOfSide, "A part of a side, in the list of its parts."),
}
"""Tables that stand in lists of other tables."""
BOUND = 1e30
"""Bounds from here on keep numbers finite, and are not told."""


class Table(NamedTuple):
    """A table of a scene.

    Attributes:
        name: Its name, dotted.
        text: The TOML that shows it.
    """

    name: str
    text: str


def tables() -> Iterator[Table]:
    """All of them, the keys that stand in none first."""
    alone = {
        name: model for name, field in Scene.model_fields.items() if name not in BESIDE and (model := table_of(field))
    }
    yield Table("", "\n".join(_keys({name: Scene.model_fields[name] for name in ("name", "description")})))
    for name, model in alone.items():
        fields = {key: field for key, field in model.model_fields.items() if f"{name}.{key}" not in BESIDE}
        yield Table(name, "\n".join([_said(model), f"[{name}]", *_keys(fields, name)]))
        for side, (kind, about) in SIDES.items():
            if side.startswith(f"{name}."):
                lines = (line if line.startswith("#") else f"# {line}" for line in _keys(kind.model_fields))
                yield Table(side, "\n".join([f"# {about}", *lines]))
        yield from (_rows(each) for each in BESIDE if each.startswith(f"{name}."))
    yield from (_rows(each) for each in BESIDE if "." not in each)


def reference(table: str | None = None) -> str:
    """The whole of it as TOML, or one table and what it has in rows.

    Raises:
        SceneError: if no table has this name.
    """
    found = [each for each in tables() if table is None or each.name == table or each.name.startswith(f"{table}.")]
    if not found:
        names = [each.name for each in tables() if each.name]
        raise SceneError(f"there is no table {table!r}: {near(str(table), names)} tables are {', '.join(names)}.")
    return "\n\n".join(each.text for each in found) + "\n"


def _said(model: type[BaseModel]) -> str:
    """What is said of a class, in one line."""
    return f"# {' '.join((model.__doc__ or '').split()).replace('``', '')}"


def _rows(name: str) -> Table:
    """A table of which there may be any number: what all shapes have, then each of them."""
    head = [f"# {BESIDE[name]}", f"[[{name}]]"]
    if name == "pictures":
        return Table(name, "\n".join([*head, *_keys(Picture.model_fields)]))
    if name == "probes":
        return Table(name, "\n".join([*head, *_keys(Probe.model_fields), *_kinds_of_probe()]))
    first, *others = SHAPES[name].values()
    shared = {
        key: field
        for key, field in first.model_fields.items()
        if key != "shape" and all(repr(field) == repr(each.model_fields.get(key)) for each in others)
    }
    lines = [
        *head,
        f"# what it is, which says what else it has; {_listed(SHAPES[name])}; needed",
        "# shape =",
        *_keys(shared),
    ]
    for shape, model in SHAPES[name].items():
        own = {key: field for key, field in model.model_fields.items() if key not in (*shared, "shape")}
        lines += ["", _said(model), f"[[{name}]]", f'shape = "{shape}"', *_keys(own)]
    return Table(name, "\n".join(lines))


def _kinds_of_probe() -> Iterator[str]:
    for kind, row in PROBES.items():
        takes = f", and may have {', '.join(row.takes)}" if row.takes else ""
        yield f'# kind = "{kind}" needs {", ".join(row.needs)}{takes}'


def _keys(fields: Mapping[str, FieldInfo], table: str = "") -> Iterator[str]:
    """Two lines for each key: what it means and may be, and how it is written."""
    for key, field in fields.items():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        unit, allowed = extra.get("unit"), _allowed(field.annotation, field.metadata)
        said = [
            field.description or "what it shows",
            ", ".join(part for part in (unit if unit != "1" else None, allowed) if part),
        ]
        of_liquid = DEFAULTS.get(table, {}).get(key)
        if of_liquid is not None:
            said.append(f"in a scene with a liquid {_written(of_liquid)}")
        if field.is_required():
            said.append("needed")
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        yield f"# {'; '.join(part for part in said if part)}"
        yield f"# {key} =" if default is None else f"{key} = {_written(default)}"


def _written(value: Any) -> str:
    """A default as TOML; of what has tables in it only that there are none."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _listed(values: Any) -> str:
    *others, last = [f'"{value}"' for value in values]
    return f"{', '.join(others)} or {last}" if others else last


def _allowed(annotation: Any, metadata: Any = ()) -> str:
    """What a field may hold, in a few words."""
    if get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        metadata = [*metadata, *(part for each in more for part in (getattr(each, "metadata", None) or [each]))]
    for each in metadata:
        if isinstance(each, OneOf):
            return _listed(each.names())
        if isinstance(each, Given):
            one = "a number, an expression" if each.components == 1 else "numbers or expressions"
            return f'{one} or {{ file = "….npy" }}'
    arguments = get_args(annotation)
    if get_origin(annotation) is Literal:
        return _listed(arguments)
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [_allowed(each, metadata) for each in arguments if each is not type(None)]
        # Of one kind for all and lists of kinds the kinds are told once.
        return " or ".join(part for part in parts if not any(other in part for other in parts if other != part))
    if get_origin(annotation) is tuple:
        return _several(arguments, metadata)
    if annotation is bool:
        return "true or false"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "a table"
    kind = {int: "a whole number", float: "a number", str: "a text"}[annotation]
    return " ".join(part for part in (kind, _between(metadata)) if part)


def _several(items: tuple, metadata: Any) -> str:
    """What a list may hold."""
    one = _allowed(items[0])
    for single, several in (("a number", "numbers"), ("a text", "texts"), ("a table", "tables")):
        one = one.replace(single, several)
    if items[-1] is not Ellipsis:
        return f"{len(items)} {one}" if one.startswith("numbers") else f"{len(items)} lists of {one}"
    least, most = (_bound(metadata, name) for name in ("min_length", "max_length"))
    return f"{least} or {most} {one}" if most else f"a list of {one}"


def _between(metadata: Any) -> str:
    """The bounds of a number."""
    bounds = {
        word: _bound(metadata, name) for word, name in (("from", "ge"), ("above", "gt"), ("to", "le"), ("below", "lt"))
    }
    told = (f"{word} {value:g}" for word, value in bounds.items() if value is not None and abs(value) < BOUND)
    return " ".join(told).replace("e+0", "e").replace("e-0", "e-")


def _bound(metadata: Any, name: str) -> Any:
    return next((getattr(each, name) for each in metadata if hasattr(each, name)), None)
