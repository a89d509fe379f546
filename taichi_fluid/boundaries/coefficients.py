"""What the sides of a box add to the matrix of an elliptic problem."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..limits import is_number, whole


@dataclass(frozen=True, kw_only=True)
class BoundaryCoefficients:
    """What the neighbours that are not solved for add to the diagonal, and so which wall they are.

    0 is a Neumann wall (nothing crosses it), 1 a value held at the neighbour's own place (Dirichlet), 2 a value held
    half a cell away, at the wall itself.

    Attributes:
        box: One number for the lower and one for the upper side of each axis, flat: ``(x-, x+, y-, y+, …)``.
        inside: The same for places inside the box that are not solved for, one number per axis.
        periodic: Per axis, whether its two sides are one.
        shift: Added to every diagonal.

    Raises:
        ValueError: for numbers below 0, or not as many of them as two or three axes have.
    """

    box: tuple[float, ...]
    inside: tuple[float, ...] = ()
    periodic: tuple[bool, ...] = ()
    shift: float = 0.0

    def __post_init__(self):
        dim = len(self.box) // 2
        object.__setattr__(self, "box", tuple(self.box))
        object.__setattr__(self, "inside", tuple(self.inside) or (0.0,) * dim)
        object.__setattr__(self, "periodic", tuple(self.periodic) or (False,) * dim)
        if len(self.box) not in (4, 6):
            raise ValueError(f"box is {self.box}; it has a number for each of the two sides of two or three axes")
        for name in ("inside", "periodic"):
            if len(getattr(self, name)) != dim:
                raise ValueError(f"{name} is {getattr(self, name)}; it has {dim} values, as box has {dim} pairs")
        for name in ("box", "inside"):
            if not all(is_number(value) and value >= 0 for value in getattr(self, name)):
                raise ValueError(f"{name} is {getattr(self, name)}; it has numbers from 0 up")
        if not self.shift >= 0:
            raise ValueError(f"shift is {self.shift}; it must be 0 or more")

    @classmethod
    def closed(cls, dim: int) -> "BoundaryCoefficients":
        """Neumann everywhere: the pressure of a closed box."""
        return cls(box=(0.0,) * (2 * dim))

    def require(self, first: Sequence[int], dim: int) -> None:
        """Raise ValueError if these sides, or ``first``, the lowest position of all unknowns, do not fit ``dim`` axes."""
        if len(self.periodic) != dim:
            raise ValueError(
                f"sides.box is {self.box}, of {len(self.periodic)} axes; on a grid of {dim} axes it has {2 * dim} numbers"
            )
        if len(first) != dim:
            raise ValueError(f"first is {tuple(first)}; on a grid of {dim} axes it has {dim} whole numbers")
        for axis, place in enumerate(first):
            whole(f"first[{axis}]", place, 1)
