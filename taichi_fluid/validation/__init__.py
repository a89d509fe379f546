"""Flows whose answer is published or exact, each as a case: the engine's figure beside the one it should be."""

from .cases import Case, Outcome, Row, Run
from .table import CASES

__all__ = ["CASES", "Case", "Outcome", "Row", "Run"]
