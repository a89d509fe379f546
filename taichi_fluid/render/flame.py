"""Gas that glows by its heat: how opaque it is, and what light it sends out.

Both grow steeply with temperature, within less than a cell at a flame's edge. So temperature is what is interpolated and its light
is reckoned where it is seen: interpolated itself, it would lie around flames in terraces a cell wide.
"""

from .._ti import argument, local, ti, traced
from ..operators.interpolation import sample
from . import blackbody
from .colour_maps import Ramp

DULL, BRIGHT = 750.0, 1600.0
"""Temperatures between which gas grows opaque by its glow, K."""


@argument
class Flame:
    """Hot gas."""

    heat: object  # temperature at cell centres, K above ambient
    emission: object  # table of the light of black bodies
    incandescence: object  # opacity of gas that glows in full, 1/m
    there: bool  # whether there is any; if not, nothing of this is read

    @traced
    def heat_at(self, q, n):
        """K above ambient at a point, by linear interpolation."""
        return sample(self.heat, 0, q, n)

    @traced
    def opacity_of(self, heat):
        """1/m; smooth, as what is seen has no edges."""
        x = (heat + ti.cast(blackbody.AMBIENT - DULL, ti.f32)) * ti.cast(1.0 / (BRIGHT - DULL), ti.f32)
        x = local(ti.min(ti.max(x, ti.cast(0.0, ti.f32)), ti.cast(1.0, ti.f32)))
        return self.incandescence * x * x * (3 - 2 * x)

    @traced
    def opacity_between(self, first, last):
        """Mean of ``opacity_of`` on the way from one heat to another, by Simpson's rule: none of a thin sheet is stepped over."""
        middle = local(ti.cast(0.5, ti.f32) * (first + last))
        total = self.opacity_of(first) + 4 * self.opacity_of(middle) + self.opacity_of(last)
        return local(ti.cast(1.0 / 6.0, ti.f32) * total)

    @traced
    def colour_between(self, first, last):
        """What a thick layer looks like, by the mean heat of what glows on that way."""
        dull = ti.cast(DULL - blackbody.AMBIENT, ti.f32)
        heat = ti.cast(0.5, ti.f32) * (ti.max(first, dull) + ti.max(last, dull))
        span = (blackbody.HOTTEST - blackbody.COLDEST) / (blackbody.ENTRIES - 1)
        kelvin = heat + ti.cast(blackbody.AMBIENT - blackbody.COLDEST, ti.f32)
        return Ramp(self.emission, blackbody.ENTRIES).at(kelvin * ti.cast(1.0 / span, ti.f32))
