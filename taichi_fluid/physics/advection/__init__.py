"""Advection: everything is carried with the flow, by tracing back to where it came from.

A trace gives each place its displacement to the departure point (and, for MacCormack, to the arrival point), in cells:
``backtrace``. Then one function carries every scalar and every velocity component alike: ``maccormack``. ``visibility``
is what solids hide of both, ``activity`` where anything is at all. (Stam 1999; Selle et al. 2008 for clamped
MacCormack; Ralston 1962 for the third-order trace.)
"""

from .advection import Advection
from .extrapolation import extrapolate
from .gain import add_gain, set_apart
from .spec import Scheme, Trace

__all__ = ["Advection", "Scheme", "Trace", "add_gain", "extrapolate", "set_apart"]
