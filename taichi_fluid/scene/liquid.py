"""A liquid in a scene: what lies in the box at time 0, how it is moved and shown; and what it cannot be together with."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from ..boundaries.checks import check_enters
from .fields import NOT_CARRIED, Colour, Config, Edges, Vector, number
from .shapes import Ball, Block, Long

GAS_VIEWS = ("volume", "slice", "sheets", "arrows", "tracers")
LIQUID_VIEWS = ("surface", "slice", "arrows")
"""What ``look.view`` may be where the scene holds a gas, or a liquid."""

PLANES = ("slice", "arrows")
"""Those of them that show a quantity in a plane."""

DEFAULTS = {"look": {"view": "surface", "quantity": "speed"}, "fluid": {"rho": 1000.0}, "domain": {}}
"""What tables of a scene with a liquid hold where they do not say otherwise."""


class _Body(Config):
    velocity: Vector | None = number(None, "m/s", "velocity that it begins with", slider=(-3, 3), of_box=True)


class BoxOfLiquid(Block, _Body):
    """A box parallel to the axes."""

    shape: Literal["box"] = "box"
    center: Vector = number(..., "m", "middle of the box")
    size: Edges = number(..., "m", "edge lengths of the box")


class SphereOfLiquid(Ball, _Body):
    """A ball; in 2D a disk."""

    shape: Literal["sphere"] = "sphere"
    center: Vector = number(..., "m", "middle of the ball")
    radius: float = number(..., "m", "radius of the ball", ge=1e-4, le=1e6)


class _LongBody(Long, _Body):
    ends: Annotated[tuple[Vector, Vector], Field(strict=False)] = number(..., "m", "both ends of its axis")
    radius: float = number(..., "m", "distance of its surface from the axis", ge=1e-4, le=1e6)


class CapsuleOfLiquid(_LongBody):
    """All points within ``radius`` of the line between two ends."""

    shape: Literal["capsule"] = "capsule"


class CylinderOfLiquid(_LongBody):
    """A cylinder with flat ends; in 2D a rectangle of width 2 · ``radius``."""

    shape: Literal["cylinder"] = "cylinder"


BODIES = {"box": BoxOfLiquid, "sphere": SphereOfLiquid, "capsule": CapsuleOfLiquid, "cylinder": CylinderOfLiquid}
Body = Annotated[BoxOfLiquid | SphereOfLiquid | CapsuleOfLiquid | CylinderOfLiquid, Field(discriminator="shape")]


class Liquid(Config):
    """A liquid with a surface, carried by particles; the rest of the box is air, whose pressure is 0."""

    bodies: Annotated[tuple[Body, ...], Field(strict=False)] = Field((), description="what lies in the box at time 0")
    transfer: Literal["apic", "flip"] = Field(
        "apic",
        description="what particles keep of the velocity around them: all that is linear in it, which is calm, or "
        "whatever they have and the grid has not, which is lively",
    )
    flip: float = number(
        0.97, "1", "part of that which FLIP keeps; the rest is taken from the grid", slider=(0.8, 1), ge=0, le=1
    )
    band: int = number(
        0,
        "cells",
        "how far below its surface the liquid is carried by particles, 1 and 2 counting as 3; deeper down the grid does it; "
        "0: particles everywhere",
        slider=(0, 12),
        ge=0,
        le=12,
    )
    surface_tension: float = number(
        0.0,
        "N/m",
        "tension of its surface, for water 0.073; the step is short where cells are small",
        slider=(0, 0.2),
        ge=0,
        le=1e3,
    )
    foam: float = number(
        0.0,
        "1",
        "spray, foam and bubbles that are made where it is violent; 1 is usual, 0 none",
        slider=(0, 4),
        ge=0,
        le=100,
    )
    foam_speed: float = number(1.0, "m/s", "speed from which on it makes foam", slider=(0.1, 5), gt=0, le=1e4)
    foam_life: float = number(2.0, "s", "how long foam lasts on average", slider=(0.1, 10), gt=0, le=1e4)
    absorption: Annotated[
        tuple[
            Annotated[float, Field(ge=0, le=1e4)],
            Annotated[float, Field(ge=0, le=1e4)],
            Annotated[float, Field(ge=0, le=1e4)],
        ],
        Field(strict=False),
    ] = number((2.4, 0.5, 0.3), "1/m", "absorption of red, green and blue light", slider=(0, 10))
    colour: Colour = Field((0.16, 0.42, 0.62), description="colour of its scattered light, and of its cut in 2D")


def with_defaults(values: Any) -> Any:
    """Values of a scene, where it holds a liquid with what its tables then hold by themselves."""
    if not isinstance(values, Mapping) or values.get("liquid") is None:
        return values
    filled = dict(values)
    for table, defaults in DEFAULTS.items():
        own = filled.get(table, {})
        if isinstance(own, Mapping):
            filled[table] = {**defaults, **own}
    return filled


def require_liquid(scene: Any) -> None:
    """Raise ValueError for what a scene with a liquid cannot have, or one without."""
    if scene.liquid is None:
        if scene.look.view not in GAS_VIEWS:
            raise ValueError(f"look.view is {scene.look.view!r}, which shows a liquid; the scene has no [liquid]")
        if scene.initial.level_set is not None:
            raise ValueError("initial.level_set is given, which says where a liquid is; the scene has no [liquid]")
        sinks = [f"sources[{i}].sink" for i, source in enumerate(scene.sources) if source.sink]
        for where in sinks + ["live.pour"] * scene.live.pour:
            raise ValueError(f"{where} is True, which is for a liquid; the scene has no [liquid]")
        return
    for where, value, reason in _of_gas(scene):
        raise ValueError(f"{where} is {value!r}; a scene with a [liquid] {reason}")
    check_enters(scene.domain.sides, scene.domain.shape, scene.domain.dx)
    for where, count in _counts(scene.liquid):
        if count != scene.dim:
            raise ValueError(f"{where} has {count} coordinates; the box has {scene.dim} axes")
    for i, source in enumerate(scene.sources):
        if source.sink and source.velocity is not None:
            raise ValueError(f"sources[{i}] has a velocity and is a sink, which only takes away")
        if source.velocity is None and not source.sink:
            raise ValueError(
                f"sources[{i}] has no velocity; in a scene with a [liquid] it pours with one, or is a sink"
            )


def _of_gas(scene: Any) -> Iterator[tuple[str, Any, str]]:
    """What only a gas has: where it stands, what it is, and the end of a sentence."""
    fluid, solver, no_gas = scene.fluid, scene.solver, "holds no gas, so it is left out"
    if scene.look.view not in LIQUID_VIEWS:
        yield "look.view", scene.look.view, f"is shown by {', '.join(LIQUID_VIEWS)}"
    if scene.domain.grid != "staggered":
        yield "domain.grid", scene.domain.grid, "needs the 'staggered' grid"
    if scene.look.compare:
        yield "look.compare", True, "is not compared with the collocated grid, which has no liquid"
    for name in ("confinement", "velocity_fade"):
        if getattr(fluid, name):
            yield f"fluid.{name}", getattr(fluid, name), "has none: it is not solved for there"
    if scene.combustion.burn_rate:
        yield "combustion.burn_rate", scene.combustion.burn_rate, "burns nothing"
    for i, source in enumerate(scene.sources):
        for name in source.rates:
            yield f"sources[{i}].{name}", getattr(source, name), no_gas
        if source.blast:
            yield f"sources[{i}].blast", source.blast, no_gas
    for name in [name for name in scene.initial.given if name not in NOT_CARRIED]:
        yield f"initial.{name}", "given", no_gas
    if scene.initial.projected:
        yield "initial.projected", True, "is made free of divergence by its first step"
    for i, solid in enumerate(scene.solids):
        for name in (*solid.values, *solid.fluxes):
            yield f"solids[{i}].{name}", "given", no_gas
    if scene.pictures:
        yield "pictures", len(scene.pictures), no_gas
    if solver.sweeps is not None:
        yield "solver.sweeps", solver.sweeps, "is solved to a tolerance"
    for name in ("advection", "conserve"):
        if getattr(solver, name) != type(solver).model_fields[name].default:
            yield f"solver.{name}", getattr(solver, name), "is carried by particles, of which this says nothing"
    if solver.trace != "rk2":
        yield (
            "solver.trace",
            solver.trace,
            "goes straight on with what a kick makes of its velocity, or by that halfway, as 'rk2' does",
        )
    for axis, pair in enumerate(scene.domain.sides):
        for end, side in enumerate(pair):
            where = f"domain.boundaries.{axis}.{end}"
            for i, patch in enumerate(side.patches):
                yield from _of_side(patch, f"{where}.parts[{i - 1}]" if i else where)


def _of_side(side: Any, where: str) -> Iterator[tuple[str, Any, str]]:
    """What a side, or a part of it, cannot be."""
    if side.kind.is_convected:
        yield where, side.kind.name, "has sides that are closed, open, periodic, or inflows"
    for name in (*side.values, *side.fluxes):
        yield f"{where}.{name}", "given", "holds no gas, so it is left out"


def _counts(liquid: Liquid) -> Iterator[tuple[str, int]]:
    for i, body in enumerate(liquid.bodies):
        a, b, _ = body.geometry()
        yield f"liquid.bodies[{i}] (its place)", len(a)
        yield f"liquid.bodies[{i}] (its extent)", len(b)
        if body.velocity is not None:
            yield f"liquid.bodies[{i}].velocity", len(body.velocity)
