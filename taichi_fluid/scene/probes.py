"""What a scene measures as it runs: probes, each one of a few kinds."""

import math
from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import Field

from ..carried import MEASURED, unit_of
from .fields import Config, Vector, number

AXES = ("x", "y", "z")
FLOW = ("velocity", "velocity_x", "velocity_y", "velocity_z")
"""What points and lines also show; its components also integrals and extremes."""
OF_ALL = {"kinetic_energy": ("J/m", "J"), "enstrophy": ("m²/s²", "m³/s²")}
"""Integrals over the whole box only, with their units in 2D and in 3D."""
VOLUME = "volume"
"""What flows through a plane if it is the fluid itself; as an integral how much liquid there is."""

COLUMNS = ("time", "step")
"""What each row has besides what probes measure."""


class ProbeKind(NamedTuple):
    """A kind of probe.

    Attributes:
        needs: Fields that it must have.
        takes: Fields that it may have too.
        fields: Whether its quantity may be one of what slices show besides what is carried.
        others: What else its quantity may be.
        of_liquids: What else of a liquid.
        liquid: Whether there must be one.
    """

    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()
    fields: bool = True
    others: tuple[str, ...] = ()
    of_liquids: tuple[str, ...] = ()
    liquid: bool = False


_REGION = ("lower", "upper")

PROBES = {
    "point": ProbeKind(("quantity", "at"), others=FLOW),
    "line": ProbeKind(("quantity", "at", "to"), ("points",), others=FLOW),
    "plane": ProbeKind(("quantity", "axis", "position"), _REGION, fields=False, others=(VOLUME,)),
    "integral": ProbeKind(("quantity",), _REGION, others=(*FLOW[1:], *OF_ALL), of_liquids=(VOLUME,)),
    "extreme": ProbeKind(("quantity",), _REGION, others=FLOW[1:]),
    "gauge": ProbeKind(("at", "to"), liquid=True),
    "load": ProbeKind(("solid",)),
    "exchange": ProbeKind(("quantity", "solid"), fields=False),
}
"""Every kind of probe by its name."""


class Probe(Config):
    """Something that is measured again and again; see ``PROBES`` for what each kind needs."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="what its columns are called: letters, digits, _ and -, 64 at most",
    )
    kind: Literal["point", "line", "plane", "integral", "extreme", "gauge", "load", "exchange"] = Field(
        description="the value at a point, values along a line, the flux through a plane, the integral over a region, "
        "least and largest value in it, how much of a line is in a liquid, the force and torque on a solid, or what one gives"
    )
    quantity: str | None = Field(
        None, description="what is measured; of a plane, and of a region of a liquid, also 'volume', the fluid itself"
    )
    at: Vector | None = Field(None, description="the point, or where a line begins, m")
    to: Vector | None = Field(None, description="where a line ends, m")
    points: int | None = Field(
        None, ge=2, le=4096, description="values along a line, both ends included; 32 if left out"
    )
    axis: Literal["x", "y", "z"] | None = Field(None, description="what a plane stands across")
    position: float | None = number(
        None, "m", "where a plane stands; the nearest faces of cells count", ge=-1e6, le=1e6
    )
    lower: Vector | None = Field(None, description="lower corner of a region, m; left out, the box's")
    upper: Vector | None = Field(None, description="its upper corner, m")
    solid: Annotated[int, Field(ge=0)] | None = Field(None, description="number of a solid, the first is 0")
    steps: int = Field(1, ge=1, le=10**9, description="steps from one time to the next")
    every: float | None = number(None, "s", "seconds from one time to the next, in place of steps", ge=1e-9, le=1e6)

    @property
    def row(self) -> ProbeKind:
        """What its kind needs."""
        return PROBES[self.kind]

    def unit(self, dim: int) -> str:
        """Unit of what it measures; ``"1"`` for a pure number, and of a load that of the force."""
        room, quantity = ("m²", "m³")[dim - 2], self.quantity or ""
        if self.kind == "load":
            return ("N/m", "N")[dim - 2]
        if self.kind == "gauge":
            return "m"
        if quantity in OF_ALL:
            return OF_ALL[quantity][dim - 2]
        unit = "1" if quantity == VOLUME else unit_of(quantity)
        if self.kind in ("plane", "exchange", "integral"):
            factor = room if self.kind == "integral" else f"{room}/s"
            return factor if unit == "1" else f"{unit} {factor}"
        return unit


def require_probes(
    probes: Sequence[Probe], size: Sequence[float], dx: float, carried: Sequence[str], solids: int, liquid: bool
) -> None:
    """Raise ValueError, in words for one sentence, if one of these cannot be measured.

    Args:
        probes: The probes.
        size: Edges of the box, m.
        dx: Edge of a cell, m.
        carried: Names of what the flow carries.
        solids: How many there are.
        liquid: Whether there is one.
    """
    names = [probe.name for probe in probes]
    for i, probe in enumerate(probes):
        where = f"probes[{i}]"
        if probe.name in COLUMNS:
            raise ValueError(f"{where}.name is {probe.name!r}, which is a column of its own in every row: give another")
        if probe.name in names[:i]:
            raise ValueError(
                f"{where}.name is {probe.name!r}, as that of probes[{names.index(probe.name)}]: give another"
            )
        if probe.row.liquid and not liquid:
            raise ValueError(f"{where}.kind is {probe.kind!r}, which is for a liquid: the scene has no [liquid]")
        _require_fields(probe, where)
        _require_quantity(probe, where, len(size), (*carried, *(probe.row.of_liquids if liquid else ())))
        _require_places(probe, where, size)
        _require_cells(probe, where, size, dx)
        if probe.solid is not None and probe.solid >= solids:
            raise ValueError(f"{where}.solid is {probe.solid}; there are {solids} solids, and the first is 0")


def _require_fields(probe: Probe, where: str) -> None:
    given = {name for name in type(probe).model_fields if getattr(probe, name) is not None}
    for name in probe.row.needs:
        if name not in given:
            raise ValueError(f"{where}.{name} is missing: a probe of the kind {probe.kind!r} needs it")
    known = {"name", "kind", "steps", "every", *probe.row.needs, *probe.row.takes}
    for name in sorted(given - known):
        raise ValueError(f"{where}.{name} is given; a probe of the kind {probe.kind!r} has none")
    if probe.every is not None and probe.steps != 1:
        raise ValueError(f"{where} has both steps = {probe.steps} and every = {probe.every:g} s: leave one out")


def _require_quantity(probe: Probe, where: str, dim: int, known: Sequence[str]) -> None:
    if "quantity" not in probe.row.needs:
        return
    fields = MEASURED if probe.row.fields else ()
    taken = (*known, *fields, *(name for name in probe.row.others if name != "velocity_z" or dim == 3))
    if probe.quantity not in taken:
        raise ValueError(
            f"{where}.quantity is {probe.quantity!r}; a probe of the kind {probe.kind!r} has {', '.join(taken)} here"
        )
    if probe.quantity in OF_ALL and (probe.lower or probe.upper):
        raise ValueError(
            f"{where}.quantity is {probe.quantity!r}, which is of the whole box: leave lower and upper out"
        )


def _require_places(probe: Probe, where: str, size: Sequence[float]) -> None:
    """Points lie in the box, regions have an inside."""
    for name in ("at", "to", "lower", "upper"):
        place = getattr(probe, name)
        if place is None:
            continue
        if len(place) != len(size):
            raise ValueError(f"{where}.{name} has {len(place)} coordinates; the box has {len(size)} axes")
        for x, edge, axis in zip(place, size, AXES, strict=False):
            if not 0 <= x <= edge:
                raise ValueError(f"{where}.{name} is {x:g} m along {axis}; the box reaches from 0 to {edge:g} m")
    if probe.to is not None and probe.to == probe.at:
        raise ValueError(f"{where}.to is {list(probe.to)}, where the line begins: it needs a length")
    if probe.axis is not None and probe.position is not None:
        axis = AXES.index(probe.axis)
        if axis >= len(size):
            raise ValueError(f"{where}.axis is 'z'; the box has the axes x and y")
        if not 0 <= probe.position <= size[axis]:
            raise ValueError(f"{where}.position is {probe.position:g} m; the box reaches from 0 to {size[axis]:g} m")
    for axis, low, high in zip(AXES, probe.lower or (0.0,) * len(size), probe.upper or size, strict=False):
        if low >= high:
            raise ValueError(f"{where} reaches from {low:g} to {high:g} m along {axis}; lower must be below upper")


def _require_cells(probe: Probe, where: str, size: Sequence[float], dx: float) -> None:
    for axis, first, last in zip(AXES, *cells_in(probe, size, dx), strict=False):
        if first > last and axis != probe.axis:
            raise ValueError(f"{where} has no cell between lower and upper along {axis}; a cell is {dx:g} m wide")


def cells_in(probe: Probe, size: Sequence[float], dx: float) -> tuple[list[int], list[int]]:
    """Positions of the first and of the last cell whose centre lies in the region of a probe."""
    lower = [max(math.ceil(x / dx + 0.5 - 1e-6), 1) for x in probe.lower or (0.0,) * len(size)]
    upper = [math.floor(x / dx + 0.5 + 1e-6) for x in probe.upper or size]
    return lower, [min(x, round(edge / dx)) for x, edge in zip(upper, size, strict=True)]
