"""Where cells and faces lie, and how the arrays over them are laid out."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from . import kernels
from ._ti import impl, ti
from .limits import MAX_ARRAY_BYTES, is_number, require_positive, whole
from .operators.placement import COLLOCATED, STAGGERED, Placement


@dataclass(frozen=True)
class Grid:
    """A box of cubic cells with one layer of ghost cells on every side.

    Every array over the grid is flat, scalar and f32, ``n + 2`` long per axis with the last axis fastest, so that the
    neighbour of cell ``c`` along ``axis`` is ``c + strides[axis]`` in 2D and in 3D. A vector quantity is one array,
    component after component: component ``axis`` of cell ``c`` stands at ``axis * cells + c``. On the staggered grid
    component ``axis`` of the velocity lies on the lower face of its cell along ``axis``, on the collocated grid all
    components lie at its centre.

    Args:
        shape: Number of cells along each axis, two or three of them.
        dx: Edge of a cell in metres.
        origin: Lower corner of the first interior cell in metres; zero when left out.
        collocated: Whether the velocity lies at cell centres.

    Raises:
        ValueError: for a shape of anything but whole numbers from 1, a ``dx`` that is not positive and finite, or an
            ``origin`` that is not finite.
        RuntimeError: if Taichi is not running.
    """

    shape: tuple[int, ...]
    dx: float
    origin: tuple[float, ...] = ()
    collocated: bool = False
    _runtime: object = field(default_factory=impl.get_runtime, repr=False, compare=False)

    def __post_init__(self):
        if not isinstance(self.shape, Sequence | np.ndarray) or len(self.shape) not in (2, 3):
            raise ValueError(f"shape is {self.shape!r}; a grid has two or three axes of at least one cell each")
        shape = tuple(whole(f"shape[{axis}]", n, 1) for axis, n in enumerate(self.shape))
        object.__setattr__(self, "shape", shape)
        require_positive("dx", self.dx, "metres")
        origin = tuple(self.origin) or (0.0,) * len(shape)
        if len(origin) != len(shape):
            raise ValueError(f"origin has {len(origin)} coordinates on a grid of {len(shape)} axes")
        for axis, x in enumerate(origin):
            if not is_number(x):
                raise ValueError(f"origin[{axis}] is {x!r}; it must be a finite number of metres")
        object.__setattr__(self, "origin", tuple(float(x) for x in origin))
        kernels.arch()

    @property
    def dim(self) -> int:
        """Number of axes, 2 or 3."""
        return len(self.shape)

    @property
    def padded(self) -> tuple[int, ...]:
        """Shape with the ghost layers."""
        return tuple(n + 2 for n in self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance in the flat array between neighbours along each axis."""
        return tuple(math.prod(self.padded[axis + 1 :]) for axis in range(self.dim))

    @functools.cached_property
    def cells(self) -> int:
        """Length of a scalar array: cells and ghosts."""
        return math.prod(self.padded)

    @property
    def cell_volume(self) -> float:
        """Volume of a cell in m³; in 2D its area in m²."""
        return self.dx**self.dim

    @property
    def size(self) -> tuple[float, ...]:
        """Edge lengths of the box in metres."""
        return tuple(n * self.dx for n in self.shape)

    @functools.cached_property
    def n(self):
        """The shape as a kernel argument; made once, as a vector takes Taichi as long as a launch."""
        return kernels.int_vector(self.dim)(*self.shape)

    @property
    def placement(self) -> Placement:
        """How kernels read a velocity of this grid."""
        return COLLOCATED if self.collocated else STAGGERED

    def place(self, axis: int) -> int:
        """Where the velocity component ``axis`` lies: on lower faces along the axis returned; -1, at centres."""
        return -1 if self.collocated else axis

    @functools.cached_property
    def loops(self) -> kernels.LoopShape:
        """The loop shape that suits this grid on the arch that is running."""
        return kernels.loop_shape(self.dim, serial=math.prod(self.shape) < kernels.SERIAL_CELLS)

    @functools.cached_property
    def costly_loops(self) -> kernels.LoopShape:
        """The loop shape for bodies that take long at each cell, which are worth sharing out sooner."""
        return kernels.loop_shape(self.dim, serial=math.prod(self.shape) < kernels.COSTLY_SERIAL_CELLS)

    def require_runtime(self) -> None:
        """Raise RuntimeError if ``ti.init`` or ``ti.reset`` has invalidated the arrays of this grid."""
        if impl.get_runtime() is not self._runtime or impl.get_runtime().prog is None:
            raise RuntimeError(
                "Taichi was re-initialised after this object was built, which frees all its arrays: build it again."
            )

    def require(self, components: int | None = 1, offset: int = 0, /, **arrays) -> None:
        """Raise if what is given by name is no array of this grid: a kernel would read and write beyond its end.

        Args:
            components: Values in a cell; None where any number will do.
            offset: Where the component begins that is meant, where any number will do.
            arrays: By the names that the message has.

        Raises:
            ValueError: naming the array.
            RuntimeError: as ``require_runtime`` does.
        """
        self.require_runtime()
        cells = self.cells
        for name, array in arrays.items():
            if type(array) is not ti.ScalarNdarray or array.dtype != ti.f32 or len(array.shape) != 1:
                raise ValueError(f"{name} is {_described(array)}; it must be an array of f32 as Grid.array() makes it")
            (length,) = array.shape
            if (length != components * cells) if components is not None else (length % cells or not length):
                wanted = f"{cells} or a multiple of that" if components is None else components * cells
                raise ValueError(f"{name} has {length} values; on a grid of {self.shape} cells it has {wanted}")
            if offset and (isinstance(offset, bool) or offset not in range(0, length, cells)):
                begins = ", ".join(map(str, range(0, length, cells)))
                raise ValueError(f"offset is {offset!r}; the components of {name} begin at {begins}")

    def array(self, components: int = 1):
        """A new array of zeros over the cells, with ``components`` values each."""
        self.require_runtime()
        length = self.cells * components
        if 4 * length > MAX_ARRAY_BYTES:
            raise ValueError(
                f"an array of {components} x {self.padded} values needs {4 * length / 2**30:.2f} GiB; "
                "one array may hold less than 2 GiB"
            )
        array = ti.ndarray(ti.f32, length)
        array.fill(0.0)
        return array

    def velocity(self):
        """A new velocity of zeros: one array of ``dim`` components."""
        return self.array(self.dim)

    def to_numpy(self, array) -> np.ndarray:
        """The interior values, shaped; a vector quantity comes as ``(dim, *shape)``, where it lies."""
        padded = self.to_numpy_padded(array)
        return padded[(..., *(slice(1, -1),) * self.dim)].copy()

    def to_numpy_padded(self, array) -> np.ndarray:
        """The values with their ghosts, shaped."""
        self.require(None, array=array)
        components = array.shape[0] // self.cells
        values = array.to_numpy()
        return values.reshape(self.padded) if components == 1 else values.reshape(components, *self.padded)

    def from_numpy(self, array, values: np.ndarray) -> None:
        """Set the interior of ``array`` from ``values`` of shape ``shape`` or ``(components, *shape)``; ghosts stay."""
        padded = self.to_numpy_padded(array)
        interior = padded[(..., *(slice(1, -1),) * self.dim)]
        if np.shape(values) != interior.shape:
            raise ValueError(f"values have shape {np.shape(values)}; the array's interior has {interior.shape}")
        interior[...] = values
        array.from_numpy(np.ascontiguousarray(padded.reshape(-1), dtype=np.float32))

    def face_velocity_to_numpy(self, velocity) -> tuple[np.ndarray, ...]:
        """Every face value of a staggered velocity, both walls included: ``n + 1`` values along its own axis."""
        self.require(self.dim, velocity=velocity)
        padded = self.to_numpy_padded(velocity)
        return tuple(padded[(axis, *self._faces(axis))].copy() for axis in range(self.dim))

    def face_velocity_from_numpy(self, velocity, values: Sequence[np.ndarray]) -> None:
        """Set every face value, both walls included: one array with ``n + 1`` values along its own axis each."""
        self.require(self.dim, velocity=velocity)
        padded = self.to_numpy_padded(velocity)
        for axis, component in enumerate(values):
            faces = padded[(axis, *self._faces(axis))]
            if np.shape(component) != faces.shape:
                raise ValueError(f"component {axis} has shape {np.shape(component)}; its faces have {faces.shape}")
            faces[...] = component
        velocity.from_numpy(np.ascontiguousarray(padded.reshape(-1), dtype=np.float32))

    def _faces(self, axis: int) -> tuple[slice, ...]:
        return tuple(slice(1, None) if a == axis else slice(1, -1) for a in range(self.dim))

    def cell_centres(self) -> tuple[np.ndarray, ...]:
        """Coordinates of the cell centres in metres, one broadcastable array per axis."""
        axes = [x + self.dx * (np.arange(n) + 0.5) for x, n in zip(self.origin, self.shape, strict=True)]
        return tuple(np.meshgrid(*axes, indexing="ij", sparse=True))


def given(**arrays) -> dict:
    """Those of several arrays, any of which may be left out, that are not None."""
    return {name: array for name, array in arrays.items() if array is not None}


def _described(value) -> str:
    """What was given in place of an array, in few words."""
    if isinstance(value, ti.Ndarray):
        return f"a Taichi array of {value.element_type.to_string()} and shape {tuple(value.shape)}"
    return f"of type {type(value).__module__}.{type(value).__qualname__}"


class Scratch:
    """Arrays that stages work in: free between two of them, and in ghosts 0 or what was filled last.

    Args:
        grid: The grid.

    Attributes:
        vector: An array of ``dim`` components.
        first: A scalar array, as are the others.
        second: Another.
        third: Another.
    """

    def __init__(self, grid: Grid):
        self.vector = grid.array(grid.dim)
        self.first, self.second, self.third = grid.array(), grid.array(), grid.array()

    def clear(self) -> None:
        """Set all of them to 0, ghosts included."""
        for array in (self.vector, self.first, self.second, self.third):
            array.fill(0.0)
