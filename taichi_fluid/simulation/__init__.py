"""The flow: what is carried, the steps, the simulation, and what reads it."""

from ..errors import NotFinite
from .engine import Force, Stage
from .simulation import Simulation, Step
from .steps import FORCES

__all__ = ["FORCES", "Force", "NotFinite", "Simulation", "Stage", "Step"]
