"""What a hand on the mouse does to a flow."""

from typing import NamedTuple

import numpy as np

from ..simulation import Simulation
from ..simulation.comparison import Comparison
from .pointer import drag_velocity

FASTEST_DRAG = 1.0
"""Longest edges of the box that a drag may push the fluid through in a second: more only splashes against the walls."""
ADDS_A_SECOND, LONGEST_ADDING = 60.0, 0.25
"""How often a second a drag that adds does so, as a tutorial does in each frame, but by the clock; and the seconds of a
stroke that count at most: a window that hung makes up for nothing."""


class Stroke(NamedTuple):
    """What the pointer did since the last one: from where to where, in metres, and in how many seconds."""

    start: np.ndarray
    end: np.ndarray
    seconds: float


def paint(flow: Simulation | Comparison, stroke: Stroke) -> None:
    """Paint a stroke between two steps, as the scene's ``live`` says."""
    live, longest = flow.scene.live, max(flow.scene.domain.size)
    times = ADDS_A_SECOND * min(stroke.seconds, LONGEST_ADDING) if live.add else 1.0
    velocity = None
    if live.push > 0 and (stroke.start != stroke.end).any():
        velocity = drag_velocity(stroke.start, stroke.end, stroke.seconds, live.push, FASTEST_DRAG * longest)
        velocity = [times * component for component in velocity]
    amount = times * live.paint
    flow.paint(
        stroke.start,
        stroke.end,
        live.radius * longest,
        velocity,
        smoke=amount or None,
        dye=[amount * channel for channel in live.colour] if amount else None,
        temperature=times * live.heat or None,  # a stroke without heat leaves cold gas cold
        fuel=times * live.fuel or None,
        add=live.add,
        pour=live.pour,
    )
