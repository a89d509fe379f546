"""The flow: what is carried, the steps, the simulation, and what reads it."""

from .simulation import NotFinite, Simulation, Stage, Step

__all__ = ["NotFinite", "Simulation", "Stage", "Step"]
