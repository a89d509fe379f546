"""What can be and is most often not meant: what of a flow has no effect where it stands, in a sentence each."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .flow import Step

ROOM = 1.01
"""How much of what a box holds a liquid may be: where solids cut cells, its particles are that much too many or too few."""
THIN = 0.999
"""Edges of a cell below which a solid is thin: one that is as thick as a cell, but for rounding, is a wall that fits the cells."""
STILL = 1e-4
"""Part of the speed to which buoyancy, or the weight of a liquid, might have brought something, below which all that moves is rounding."""
UNBALANCED = 1e-3
"""Mean divergence times dx over speed from which a sealed region counts as filled or emptied."""


def remarks_on(flow: Any) -> tuple[str, ...]:
    """Of edges shorter than a cell, of solids, sources and bodies of liquid which have no effect at time 0, and what went wrong since."""
    return tuple([*_of_box(flow), *_of_solids(flow), *_of_bodies(flow), *_of_what_came(flow)])


def _of_box(flow: Any) -> Iterator[str]:
    for axis, edge in enumerate(flow.scene.domain.size):
        if 2 * edge < flow.grid.dx:
            yield f"domain.size[{axis}] is {edge:g} m, less than half a cell: the box is {flow.grid.dx:g} m wide there."


def _of_solids(flow: Any) -> Iterator[str]:
    """All but what is thin only where none ever moves, as they are at time 0 where they always are."""
    if flow.solids is None:
        return
    thin = {id(each.solid) for each in flow.solids.placed if each.thickness < THIN * flow.grid.dx}
    named = [f"solids[{i}]" for i, solid in enumerate(flow.solids.solids) if id(solid) in thin]
    if named:
        yield (
            f"{', '.join(named)} {'is' if len(named) == 1 else 'are'} thinner than a cell, which is {flow.grid.dx:.3g} m wide: what "
            "that stops depends on how it lies within the cells."
        )
    if flow.solids.moves:
        return
    free = flow.grid.to_numpy(flow.solids.fluid) > 0
    if not free.any():
        yield "the solids leave no cell of the box free: nothing flows."
        return
    for i, emitter in enumerate(flow.emitters):
        if not (flow.scene.sources[i].moves or emitter.reaches(free)):
            yield f"sources[{i}] lies in a solid with all that it covers: it does nothing."
    holding = [i for i, solid in enumerate(flow.solids.solids) if solid.values]
    for i in sorted({*holding} - _with_centres(flow) if holding else ()):
        yield (
            f"solids[{i}] holds no {', '.join(flow.solids.solids[i].values)}: the centre of no cell lies in it, which are "
            f"{flow.grid.dx:g} m wide."
        )


def _with_centres(flow: Any) -> set[int]:
    """The solids in which the centre of any cell lies: what others hold no cell knows; see ``physics.scalars_at_solids``."""
    solids = flow.solids
    depth, nearest, least = (np.full(flow.grid.shape, value, np.float32) for value in (0.0, 0.0, np.inf))
    for distance, owner in zip(solids.at_corners(solids.distance), solids.at_corners(solids.owner), strict=True):
        depth += distance
        nearest = np.where(distance < least, owner, nearest)
        least = np.minimum(least, distance)
    return {int(i) // solids.images for i in np.unique(nearest[depth <= 0])}


def _of_bodies(flow: Any) -> Iterator[str]:
    for key in flow.dry:
        yield (
            f"{key} brings in no liquid: it lies in a solid or in another body, or is too small for cells "
            f"{flow.grid.dx:g} m wide."
        )


def _of_what_came(flow: Any) -> Iterator[str]:
    """What is wrong since some time, the latest at the end."""
    unbalanced = flow.unbalanced
    if None not in (unbalanced, flow.overfull) and unbalanced >= flow.overfull:
        unbalanced = None  # it is what has been poured that finds no way out
    said = (
        (
            unbalanced,
            "an inflow or a moving solid fills or empties a region without a way out, which no flow can do: the fluid there is made "
            "or lost. Open a side of it, or let as much out as comes in.",
        ),
        (
            flow.overfull,
            "more liquid has been poured than the box holds, which presses it together: let a source end, or a sink or an open side "
            "drain it.",
        ),
    )
    for since, sentence in sorted(each for each in said if each[0] is not None):
        yield f"since t = {since:.3g} s {sentence}"


def imbalance(flow: Any, step: Step) -> float:
    """Mean divergence, 1/s, that no pressure could remove from a region without a way out."""
    if step.pressure is None:
        return 0.0
    seconds = step.dt if flow.liquid is None else flow.liquid.kick.acts
    return abs(step.pressure.removed_mean) * seconds / (flow.scene.fluid.rho * flow.grid.dx**2)


def is_overfull(flow: Any) -> bool:
    """Whether a liquid is more than what of the box is free."""
    return flow.liquid.volume > ROOM * flow.room
