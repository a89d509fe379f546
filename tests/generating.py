"""Scenes made at random from the types of their fields: most could be somebody's, some hold what nobody should write."""

import math
import random
import types
import typing
from typing import Any

from pydantic import BaseModel

from taichi_fluid.boundaries.sides import Boundary
from taichi_fluid.scene import Scene
from taichi_fluid.scene.fields import OneOf, SideOfBox, choices
from taichi_fluid.viewer.parameters import bounds_of

HARM = (
    -1, 0, 1e-30, 1e30, -1e6, 10**18, math.nan, math.inf, -math.inf, True, "", "x" * 300, "a\nb", "\u202e", "../../etc/passwd",
    [], [0.5], [0.5, 0.5, 0.5, 0.5], [[]], ["a", "b"], {}, {"x": 1}, [1e300, 1e300], "1+", "1/0", "exp(exp(exp(exp(t))))",
    "__import__('os')", "0" * 1000, [{}], [None], None,
)  # fmt: skip
"""What is put somewhere in a scene to harm it."""
FORMULAS = ("0.1", "0.3*sin(4*x)", "x*y", "0.2*cos(3*t)*y", "max(0, 0.2 - abs(x - 0.5))", "1/(x - x)", "z", "sqrt(-1)")
PLACES = ("center", "ends", "pivot", "at", "to")
"""Fields whose coordinates mostly lie in the box."""
QUANTITIES = ("smoke", "temperature", "dye", "fuel", "velocity", "pressure", "speed", "vorticity", "nothing")


class Maker:
    """Makes the tables of one scene.

    Args:
        draw: What is drawn from.
        dim: Axes that vectors have, but for some.
        likely: How likely a field is given that may be left out.
    """

    def __init__(self, draw: random.Random, dim: int, likely: float):
        self.draw, self.dim, self.likely = draw, dim, likely

    def table(self, model: type[BaseModel]) -> dict[str, Any]:
        """A table of the fields of a model."""
        found = {}
        for name, field in model.model_fields.items():
            if field.is_required() or name in ("shape", "text") or self.draw.random() < self.likely:
                value = self.field(name, field)
                if value is not None:
                    found[name] = value
        return found

    def field(self, name: str, field: Any) -> Any:
        """A value of a field."""
        names = choices(field, field.annotation)
        if names:
            return self.draw.choice(names)
        if name == "boundaries":
            return self.boundaries()
        if field.annotation is typing.Any:
            several = {"velocity": self.dim, "dye": 3}.get(name)
            return [self.draw.choice(FORMULAS) for _ in range(several)] if several else self.draw.choice(FORMULAS)
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        if "slider" in extra and field.annotation in (float, float | None) and self.draw.random() < 0.8:
            return self.draw.uniform(*extra["slider"])
        return self.value(name, field.annotation, field)

    def value(self, name: str, annotation: Any, field: Any = None) -> Any:
        """A value of a type."""
        draw, origin, inner = self.draw, typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Annotated:
            if named := [name for each in inner[1:] if isinstance(each, OneOf) for name in each.names()]:
                return draw.choice(named)
            return self.value(name, inner[0], next((each for each in inner[1:] if hasattr(each, "metadata")), field))
        if origin in (typing.Union, types.UnionType):
            return self.value(name, draw.choice([each for each in inner if each is not type(None)]), field)
        if origin is typing.Literal:
            return draw.choice(inner)
        if origin is tuple:
            return self.several(name, inner)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            return self.table(annotation)
        if annotation is bool:
            return draw.random() < 0.5
        if annotation in (int, float):
            return self.number(annotation, field)
        if name == "quantity":
            return draw.choice(QUANTITIES)
        return f"n{draw.randrange(10**6)}" if name == "name" else draw.choice(FORMULAS)

    def several(self, name: str, inner: tuple) -> list:
        """A vector, a colour, or up to three tables."""
        if Ellipsis not in inner:
            return [self.value(name, each) for each in inner]
        tables = "PartOfSide" in str(inner[0]) or "scene" in str(inner[0])
        count = (
            self.draw.randrange(3) if tables else self.dim - (name in ("lower", "upper") and self.draw.random() < 0.7)
        )
        if name in PLACES and self.draw.random() < 0.9:
            return [self.draw.random() for _ in range(count)]
        return [self.value(name, inner[0]) for _ in range(count)]

    def boundaries(self) -> Any:
        """One kind for all, or what stands on both sides of each axis; none periodic on one side only."""
        draw, kinds = self.draw, [*Boundary]
        if draw.random() < 0.4:
            return str(draw.choice(kinds))
        found = []
        for _ in range(self.dim):
            pair = [str(draw.choice(kinds)) for _ in range(2)]
            if "periodic" in pair:
                pair = ["periodic"] * 2
            found.append([self.table(SideOfBox) | {"kind": kind} if draw.random() < 0.3 else kind for kind in pair])
        return found

    def number(self, kind: type, field: Any) -> float | int:
        """A number, mostly one of everyday."""
        draw, (least, most) = self.draw, bounds_of(field) if field is not None else (None, None)
        chance = draw.random()
        if chance < 0.05 and None not in (least, most):
            return kind(draw.choice((least, most)))
        found = (
            draw.randrange(1, 9)
            if kind is int
            else draw.choice((draw.random(), draw.uniform(-1, 1), 10 ** draw.uniform(-3, 2)))
        )
        return kind(min(max(found, -math.inf if least is None else least), math.inf if most is None else most))


def generated(seed: int) -> dict[str, Any]:
    """A scene of at most 8 cells along its longest edge, unless harm was put there."""
    draw = random.Random(seed)
    maker = Maker(draw, draw.choice((2, 3)), draw.choice((0.02, 0.1, 0.3)))
    found = maker.table(Scene)
    domain = found.setdefault("domain", {})
    domain["size"] = [round(draw.uniform(0.3, 1.5), 3) for _ in range(maker.dim)]
    domain["resolution"] = draw.randrange(1, 9)
    found["output"] = {"width": 32, "height": 24}
    for _ in range(draw.randrange(3)):  # what most scenes have
        found.setdefault("sources", []).append(maker.table(draw.choice(members("sources"))))
    if draw.random() < 0.3:
        found.setdefault("solids", []).append(maker.table(draw.choice(members("solids"))))
    if draw.random() < 0.25:
        place = draw.choice(list(leaves(found)))
        place[0][place[1]] = draw.choice(HARM)
    return found


def members(name: str) -> list[type[BaseModel]]:
    """The tables of which a list of a scene may consist."""
    (inner, _) = typing.get_args(Scene.model_fields[name].annotation)
    (union, *_) = typing.get_args(inner)
    return list(typing.get_args(union))


def leaves(value: Any) -> Any:
    """Everything within a value: what holds it, and where."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield value, key
        yield from leaves(each)
