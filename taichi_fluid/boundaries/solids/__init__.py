"""Solids in the fluid: where they are, how far they leave each face open, and how they move it.

The shape is a signed distance, sampled at the corners of the cells; several solids are the nearest of them. From the
corners of a face follows the part of it that is open. A face that is closed carries the velocity of its solid; through
one that is open in part the fluid flows beside the solid. (Ng, Min, Gibou 2009; Batty, Bertails, Bridson 2007.)
"""

from .cut_cells import CutCells
from .exact import row_length, row_of, shape_at
from .motion import Course, Motion, Pose
from .rasterise import SLIVER, SLIVER_OF_LIQUID
from .shapes import Placed, SampledDistance, Solid
from .solids import FAR, Faces, Solids

__all__ = [
    "FAR",
    "SLIVER",
    "SLIVER_OF_LIQUID",
    "Course",
    "CutCells",
    "Faces",
    "Motion",
    "Placed",
    "Pose",
    "SampledDistance",
    "Solid",
    "Solids",
    "row_length",
    "row_of",
    "shape_at",
]
