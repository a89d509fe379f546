"""Fields of a scene that follow from the table of what is carried: of sources, of sides and of ``fluid``."""

from typing import Annotated, Any

from pydantic import Field
from pydantic.fields import FieldInfo

from ..carried import CARRIED, RATES, Carried
from .bodies import SOLIDS, SOURCES
from .fields import Config, Domain, Fluid, Given, Initial, PartOfSide, SideOfBox, flux_field, number
from .rules import Scene

_WRITTEN = {
    model: dict(model.model_fields)
    for model in (*SOURCES.values(), *SOLIDS.values(), SideOfBox, PartOfSide, Fluid, Initial)
}
"""The fields that stand in each class."""


SIDES = PartOfSide, SideOfBox


def _amount(
    row: Carried, default: float | tuple[float, ...] | None, unit: str, meaning: str, text: bool = False
) -> FieldInfo:
    """A number for each component of a quantity, or a ``text``; with the default None it may be left out."""
    limits: dict[str, float] = {"ge": -row.limit, "le": row.limit}
    extra = {"slider": row.slider, "start": row.outside_value}
    one: Any = Annotated[float, Field(**limits)]
    if text:
        one = one | str
    elif default is not None and row.components == 1:
        return FieldInfo.from_annotated_attribute(float, number(default, unit, meaning, **extra, **limits))
    kind = one if row.components == 1 else Annotated[tuple[(one,) * row.components], Field(strict=False)]
    made = number(default, unit, meaning, **extra)
    return FieldInfo.from_annotated_attribute(kind if default is not None else kind | None, made)


def _given(row: Carried) -> FieldInfo:
    """What a flow begins with of a quantity."""
    unit = "" if row.unit == "1" else f", {row.unit}"
    field = Field(None, description=f"{row.meaning or row.name} at time 0{unit}")
    return FieldInfo.from_annotated_attribute(Annotated[Any, Given(row.components)], field)


def _rates(row: Carried) -> dict[str, FieldInfo]:
    """Fields of ``fluid``: for each rate of a quantity that says a number and not a field."""
    made = {}
    for rate in RATES:
        own, unit = getattr(row, rate.column), rate.unit.format(row.unit)
        if not isinstance(own, str) and (rate.column != "weight" or row.components == 1):
            meaning, limits = rate.meaning.format(row.meaning or row.name), {"ge": rate.least, "le": rate.most}
            made[rate.field(row)] = FieldInfo.from_annotated_attribute(
                float, number(own, unit, meaning, slider=rate.slider, **limits)
            )
    return made


def _made(model: type[Config]) -> dict[str, FieldInfo]:
    """What the table adds to a class."""
    if model is Fluid:
        return {
            key: field for row in CARRIED.values() if not CARRIED.is_own(row.name) for key, field in _rates(row).items()
        }
    made = {}
    for row in CARRIED.values():
        what, nothing = row.meaning or row.name, 0.0 if row.components == 1 else (0.0,) * row.components
        if model is Initial:
            made[row.name] = _given(row)
        elif issubclass(model, SIDES):
            made[row.name] = _amount(
                row, None, row.unit, f"{what} in what flows in, or that a wall holds; or an expression", text=True
            )
            unit = "m/s" if row.unit == "1" else f"{row.unit} m/s"
            flux = _amount(
                row, None, unit, f"{what} that a wall gives each second through each m²; needs diffusivity", text=True
            )
            made[flux_field(row.name)] = flux
        elif model in SOLIDS.values():
            made[row.name] = _amount(row, None, row.unit, f"{what} that it holds at its surface")
            unit = "m/s" if row.unit == "1" else f"{row.unit} m/s"
            made[flux_field(row.name)] = _amount(row, None, unit, f"{what} that it gives each second through each m²")
        else:
            made[row.name] = _amount(row, nothing, f"{row.unit}/s", f"{what} added each second")
    return made


def learn_rows() -> None:
    """Give the classes of a scene the fields that the table asks for; again whenever that has changed.

    Raises:
        ValueError: for a quantity whose name, or the name of whose rate, is that of another field.
    """
    made = {model: _made(model) for model in _WRITTEN}
    for model, fields in made.items():
        for name in fields:
            if name in _WRITTEN[model]:
                raise ValueError(f"{name!r} is a field of a scene's {model.__name__} and cannot be a quantity's")
    for model, fields in made.items():
        whole: dict[str, Any] = (
            {**_WRITTEN[model], **fields}
            if model in (PartOfSide, SideOfBox, Fluid, Initial)
            else {**fields, **_WRITTEN[model]}
        )
        model.model_fields.clear()
        model.model_fields.update(whole)
    # A side is made of its parts: once more after them.
    for model in (*_WRITTEN, SideOfBox, Domain, Scene, *_heirs(Scene)):
        model.model_rebuild(force=True)


def _heirs(model: type) -> list[Any]:
    return [heir for child in model.__subclasses__() for heir in (child, *_heirs(child))]


CARRIED.watch(learn_rows)
learn_rows()
