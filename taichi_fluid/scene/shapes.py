"""Where the shapes of a scene lie, for sources, solids and bodies of liquid alike: points and a radius, as ``operators.shapes`` has them."""

from collections.abc import Sequence

Geometry = tuple[Sequence[float], Sequence[float], float]
"""Points ``a`` and ``b``, and a radius, m."""


def moved(shape: str, geometry: Geometry, way: Sequence[float]) -> Geometry:
    """The geometry of a shape that has gone a way, m."""
    a, b, radius = geometry
    there = tuple(x + d for x, d in zip(a, way, strict=True))
    return there, (b if shape == "box" else tuple(x + d for x, d in zip(b, way, strict=True))), radius


class Ball:
    """What has a ``center`` and a ``radius``."""

    shape: str
    center: Sequence[float]
    radius: float

    def geometry(self) -> Geometry:
        """Its points and radius."""
        return self.center, self.center, self.radius

    @property
    def middle(self) -> Sequence[float]:
        """Its middle; of what moves, at time 0."""
        return self.center


class Block:
    """What has a ``center`` and edges of a ``size``, parallel to the axes."""

    shape: str
    center: Sequence[float]
    size: Sequence[float]

    def geometry(self) -> Geometry:
        """Its middle, its half edges and the radius of its edges."""
        return self.center, tuple(0.5 * edge for edge in self.size), 0.0

    @property
    def middle(self) -> Sequence[float]:
        """Its middle; of what moves, at time 0."""
        return self.center


class Long:
    """What lies between two ``ends``, all within a ``radius`` of that axis."""

    shape: str
    ends: tuple[Sequence[float], Sequence[float]]
    radius: float

    def geometry(self) -> Geometry:
        """Its ends and radius."""
        return *self.ends, self.radius

    @property
    def middle(self) -> Sequence[float]:
        """Its middle; of what moves, at time 0."""
        return tuple(0.5 * (one + two) for one, two in zip(*self.ends, strict=True))
