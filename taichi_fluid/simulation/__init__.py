"""The flow: what is carried, the steps, the simulation, and what reads it."""

from .engine import Force, Stage
from .simulation import NotFinite, Simulation, Step
from .steps import FORCES

__all__ = ["FORCES", "Force", "NotFinite", "Simulation", "Stage", "Step"]
