"""What a trace and what is carried depend on: the keys of their kernels."""

from enum import Enum
from typing import NamedTuple

from ...operators.placement import Placement


class Scheme(Enum):
    """How a value is carried: first order and diffusive, or second order with a limiter."""

    SEMI_LAGRANGIAN = "semi-lagrangian"
    MACCORMACK = "maccormack"


class Trace(Enum):
    """How a path is followed: one, two or three stages of Runge-Kutta."""

    EULER = "euler"
    RK2 = "rk2"
    RK3 = "rk3"


class PathSpec(NamedTuple):
    """What a trace depends on.

    Attributes:
        trace: How many stages.
        faces: Whether paths begin at the faces of the velocity components, or at cell centres.
        wraps: Whether an axis is periodic.
        solids: Whether paths must keep out of solids.
        slips: Whether the fluid slips along any: what stands on closed faces is then that of the fluid beside them.
        sparse: Whether to note that a displacement back is longer than ``activity.NEAR`` cells.
        on: Where the velocity lies.
    """

    trace: Trace
    faces: bool
    wraps: bool
    solids: bool
    slips: bool
    sparse: bool
    on: Placement


class QuantitySpec(NamedTuple):
    """What carrying a quantity along paths depends on.

    Attributes:
        on_faces: Whether the paths begin at faces, or at cell centres.
        wraps: Whether an axis is periodic.
        solids: Whether paths may end at solids.
        slips: As in ``PathSpec``.
        flow_through: Whether they may leave the box.
        sparse: Whether what comes from where there is nothing need not be looked at.
    """

    on_faces: bool
    wraps: bool
    solids: bool
    slips: bool
    flow_through: bool
    sparse: bool
