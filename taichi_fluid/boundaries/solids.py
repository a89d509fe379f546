"""Solids in the fluid: where they are, how far they leave each face open, and how they move it.

The shape is a signed distance, sampled at the corners of the cells; several solids are the nearest of them. From the
corners of a face follows the part of it that is open. A face that is closed carries the velocity of its solid; through
one that is open in part the fluid flows beside the solid. (Ng, Min, Gibou 2009; Batty, Bertails, Bridson 2007.)
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from .._ti import ti
from ..grid import Grid
from ..kernels import PARTIALS, Array, cells_of, float_vector, int_vector, kernel_family, largest
from ..operators.ghosts import ghost_kernels, wrap_if_periodic
from ..operators.shapes import SHAPES, covered_part, covered_triangle
from .walls import Walls

FAR = 1e6
"""Distance to the nearest solid where there is none, m."""
SLIVER = 0.002
"""A face that is open by less than this is closed: what flows through it is not worth its stiffness."""
_TOUCH = 1e-4
"""Part of a cell by which solids are larger than they say."""
_ROW = 10
"""Numbers of one solid in the table of motions: velocity, angular velocity, centre of rotation, slip."""


class Faces(Enum):
    """How faces beside a solid are treated: open in part, or wholly open or closed by the centres of the cells."""

    FRACTIONS = "fractions"
    VOXELS = "voxels"


class Pose(NamedTuple):
    """Where a solid is, and how it moves there.

    Attributes:
        pivot: Where its centre of rotation is now, m.
        rotation: Orientation, a matrix that turns the solid from where it was at time 0.
        velocity: Of the pivot, m/s.
        angular_velocity: Always three numbers, rad/s.
    """

    pivot: tuple[float, ...]
    rotation: np.ndarray
    velocity: tuple[float, ...]
    angular_velocity: tuple[float, float, float]

    def require(self, dim: int, name: str) -> None:
        """Raise ValueError unless all of it is there for ``dim`` axes and finite in f32; ``name`` says whose it is."""
        for field, shape in zip(self._fields, ((dim,), (dim, dim), (dim,), (3,)), strict=True):
            with np.errstate(over="ignore"):
                values = np.asarray(getattr(self, field), dtype=np.float32)
            if values.shape != shape or not np.isfinite(values).all():
                count = " x ".join(map(str, shape))
                raise ValueError(f"the {field} of {name} is {values.tolist()}; it must be {count} finite numbers")


@dataclass(frozen=True)
class Motion:
    """Steady motion, swinging to and fro, and steady turning about a pivot that moves along.

    Args:
        pivot: Centre of rotation at time 0, m.
        velocity: m/s.
        swing: Amplitude of a swing in each direction, m.
        period: Of the swing, s.
        angular_velocity: rad/s; one number in 2D, three in 3D.
    """

    pivot: tuple[float, ...]
    velocity: tuple[float, ...] = ()
    swing: tuple[float, ...] = ()
    period: float = 1.0
    angular_velocity: tuple[float, ...] = ()

    def __post_init__(self):
        turn = self.angular_velocity
        numbers = (turn,) if isinstance(turn, (int, float)) else tuple(map(float, turn))
        object.__setattr__(self, "angular_velocity", numbers)
        for name in ("pivot", "velocity", "swing"):
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        dim = len(self.pivot)
        if dim not in (2, 3):
            raise ValueError(f"pivot is {self.pivot}; it has two or three coordinates")
        for name in ("velocity", "swing"):
            if len(getattr(self, name)) not in (0, dim):
                raise ValueError(f"{name} is {getattr(self, name)}; it has {dim} coordinates, as pivot has")
        if len(numbers) not in (0, 1 if dim == 2 else 3):
            raise ValueError(f"angular_velocity is {numbers}; it is one number in 2D, three in 3D")
        if not self.period > 0:
            raise ValueError(f"period is {self.period}; it must be a positive number of seconds")

    def at(self, time: float) -> Pose:
        """The pose at ``time``, s."""
        dim, omega = len(self.pivot), 2.0 * math.pi / self.period
        steady, swing = self.velocity or (0.0,) * dim, self.swing or (0.0,) * dim
        sine, cosine = math.sin(omega * time), math.cos(omega * time)
        pivot = tuple(p + v * time + a * sine for p, v, a in zip(self.pivot, steady, swing, strict=True))
        velocity = tuple(v + a * omega * cosine for v, a in zip(steady, swing, strict=True))
        spin = tuple(self.angular_velocity) or (0.0,) * (3 if dim == 3 else 1)
        spin3 = spin if dim == 3 else (0.0, 0.0, spin[0])
        return Pose(pivot, _rotation(spin3, time)[:dim, :dim], velocity, spin3)

    @property
    def moves(self) -> bool:
        """Whether it ever moves."""
        return any((*self.velocity, *self.swing, *self.angular_velocity))


def _rotation(spin: Sequence[float], time: float) -> np.ndarray:
    """Rodrigues' rotation by |spin| · time around the axis of ``spin``."""
    rate = math.sqrt(sum(w * w for w in spin))
    if rate == 0:
        return np.eye(3)
    x, y, z = (w / rate for w in spin)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(rate * time) * cross + (1 - math.cos(rate * time)) * cross @ cross


@dataclass(frozen=True)
class Solid:
    """One solid.

    Args:
        shape: ``"sphere"``, ``"capsule"``, ``"cylinder"``, ``"box"``; a ``ti.func`` of one vector, the place in metres
            relative to the pivot before any rotation, that returns the signed distance in metres; or a
            ``SampledDistance``.
        a: Centre; of a capsule or cylinder one end of its axis. At time 0, m. Not read for distances of one's own.
        b: Half edges of a box, other end of a capsule or cylinder, m.
        radius: Of a sphere, capsule or cylinder; rounds the corners of a box. m.
        motion: Anything with ``at(time) -> Pose`` and ``moves``; left out, it stands still. It is asked once for each
            time, and once for time 0 when the flow is built, to which ``a`` and ``b`` belong from then on: it may say
            where a thing of one's own is just now.
        slip: Whether the fluid slides along it without friction.
        begin: Time at which it appears, s.
        end: Time at which it is gone, s.
    """

    shape: Any
    a: tuple[float, ...] = ()
    b: tuple[float, ...] = ()
    radius: float = 0.0
    motion: Any = None
    slip: bool = False
    begin: float = 0.0
    end: float = math.inf

    def __post_init__(self):
        for name in ("a", "b"):
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        if isinstance(self.shape, str):
            if self.shape not in SHAPES:
                raise ValueError(
                    f"shape is {self.shape!r}; it is one of {', '.join(SHAPES)}, a ti.func or a SampledDistance"
                )
            if self.shape != "sphere" and len(self.b) != len(self.a):
                raise ValueError(f"b is {self.b}; a {self.shape} needs {len(self.a)} coordinates there, as a has")
            if not self.radius >= 0:
                raise ValueError(f"radius is {self.radius}; it must be a number of metres, 0 or more")

    def require(self, dim: int, name: str) -> None:
        """Raise ValueError if this solid does not fit a grid of ``dim`` axes; ``name`` is what to call it."""
        if isinstance(self.shape, str) and len(self.a) != dim:
            raise ValueError(f"{name}.a is {self.a}; it has {dim} coordinates on a grid of {dim} axes")
        if isinstance(self.shape, SampledDistance):
            shape = self.shape.values.shape
            if len(shape) != dim or min(shape) < 2:
                raise ValueError(f"{name}.shape has values of shape {shape}; it has {dim} axes of two points or more")

    def present(self, time: float) -> bool:
        """Whether it is there at ``time``."""
        return self.begin <= time < self.end


@dataclass(frozen=True, eq=False)
class SampledDistance:
    """A signed distance given by its values on a lattice, as ``mesh.sample_mesh`` makes one.

    Args:
        values: One number per lattice point, m; negative inside.
        origin: Of the first lattice point, relative to the pivot, m.
        spacing: Between lattice points, m.
    """

    values: np.ndarray
    origin: tuple[float, ...]
    spacing: float

    def upload(self):
        """The values as an array on the device."""
        values = np.ascontiguousarray(self.values, dtype=np.float32).ravel()
        array = ti.ndarray(ti.f32, len(values))
        array.from_numpy(values)
        return array


@ti.func
def _sampled_distance(x, table: ti.template(), size, origin, inv_spacing):
    """Linear interpolation of the lattice; outside it, the value at its edge and the way there."""
    q = (x - origin) * inv_spacing
    inside = ti.min(ti.max(q, x * ti.f32(0.0)), ti.cast(size - 1, ti.f32))
    corner = ti.min(ti.cast(inside, ti.i32), size - 2)
    f = inside - ti.cast(corner, ti.f32)
    total = ti.f32(0.0)
    for vertex in ti.static(range(2**x.n)):
        w = ti.f32(1.0)
        at = 0
        for axis in ti.static(range(x.n)):
            if ti.static((vertex >> axis) & 1):
                at = at * size[axis] + corner[axis] + 1
                w *= f[axis]
            else:
                at = at * size[axis] + corner[axis]
                w *= ti.f32(1.0) - f[axis]
        total += w * table[at]
    return total + ti.sqrt((q - inside).norm_sqr()) / inv_spacing


@ti.func
def _node_place(I, origin, dx):
    return origin + (ti.cast(I, ti.f32) - ti.f32(1.0)) * dx


@ti.func
def _write_nearest(
    c, I, s, distance: ti.template(), owner: ti.template(), index, origin, dx, pivot, rotation, a, b, radius,
    table: ti.template(), size, inv_spacing, shape: ti.template(), kind: ti.template(),
):  # fmt: skip
    x = rotation.transpose() @ (_node_place(I, origin, dx) - pivot)
    d = ti.f32(0.0)
    if ti.static(kind == "named"):
        d = shape(x, a, b, radius)
    elif ti.static(kind == "sampled"):
        d = _sampled_distance(x, table, size, a, inv_spacing)
    else:
        d = ti.cast(shape(x), ti.f32)
    # What only touches a corner covers it: else a wall one cell thin that fits the cells would be seen by none.
    d -= ti.f32(_TOUCH) * dx
    if d < distance[c]:
        distance[c] = d
        owner[c] = ti.cast(index, ti.f32)


@ti.func
def _clear_at(c, I, s, distance: ti.template(), owner: ti.template()):
    distance[c] = ti.f32(FAR)
    owner[c] = ti.f32(0.0)


@ti.func
def _open_part_at(distance: ti.template(), c, s, axis: ti.template()):
    """Part of the lower face of ``c`` along ``axis`` that lies outside, from the distances at its corners."""
    covered = ti.f32(0.0)
    if ti.static(s.n == 2):
        covered = covered_part(distance[c], distance[c + s[1 - axis]])
    else:
        one, two = s[ti.static((axis + 1) % 3)], s[ti.static((axis + 2) % 3)]
        corners = ti.Vector([distance[c], distance[c + one], distance[c + one + two], distance[c + two]])
        if corners.max() < 0:
            covered = ti.f32(1.0)
        elif corners.min() < 0:
            # Four triangles around the middle: no diagonal is preferred.
            middle = ti.f32(0.25) * corners.sum()
            for k in ti.static(range(4)):
                covered += ti.f32(0.25) * covered_triangle(corners[k], corners[ti.static((k + 1) % 4)], middle)
    return ti.f32(1.0) - covered


@ti.func
def _is_face_of_box(I, n, axis: ti.template()):
    """Whether the lower face of ``I`` belongs to the box: along ``axis`` faces reach to n + 1, across it cells to n."""
    inside = 1
    for a in ti.static(range(n.n)):
        if ti.static(a != axis):
            if I[a] > n[a]:
                inside = 0
    return inside


@ti.func
def _write_open(c, I, s, distance: ti.template(), open: ti.template(), n, voxels: ti.template()):
    """From the distances at the corners of the cells; for voxels, from those at their centres."""
    cells = cells_of(s, n)
    for axis in ti.static(range(s.n)):
        if _is_face_of_box(I, n, axis):
            part = ti.f32(1.0)
            if ti.static(voxels):
                if distance[c] < 0 or distance[c - s[axis]] < 0:
                    part = ti.f32(0.0)
            else:
                part = _open_part_at(distance, c, s, axis)
                if part < ti.f32(SLIVER):
                    part = ti.f32(0.0)
            open[c + axis * cells] = part


@ti.func
def _write_fluid(c, I, s, open: ti.template(), fluid: ti.template(), n):
    cells = cells_of(s, n)
    total = ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        total += open[c + axis * cells] + open[c + axis * cells + s[axis]]
    fluid[c] = ti.f32(0.0)
    if total > 0:
        fluid[c] = ti.f32(1.0)


@ti.func
def _owner_at(distance: ti.template(), owner: ti.template(), c, s, axis: ti.template()):
    """Which solid is nearest to the lower face of ``c`` along ``axis``."""
    best, index = distance[c], owner[c]
    for corner in ti.static(range(1, 2**s.n)):
        if ti.static(not (corner >> axis) & 1):
            node = c
            for a in ti.static(range(s.n)):
                if ti.static((corner >> a) & 1):
                    node += s[a]
            if distance[node] < best:
                best, index = distance[node], owner[node]
    return ti.cast(index, ti.i32)


@ti.func
def slips_at(distance: ti.template(), owner: ti.template(), motions: ti.template(), c, s, axis: ti.template()):
    """1 if the solid nearest to the lower face of ``c`` along ``axis`` lets the fluid slip, else 0."""
    return motions[ti.static(_ROW) * _owner_at(distance, owner, c, s, axis) + 9]


@ti.func
def solid_velocity_at(
    distance: ti.template(), owner: ti.template(), motions: ti.template(), c, I, s, axis: ti.template(), origin, dx
):
    """Velocity along ``axis`` of the solid nearest to the lower face of ``c`` along ``axis``."""
    row = ti.static(_ROW) * _owner_at(distance, owner, c, s, axis)
    x = origin + (ti.cast(I, ti.f32) - ti.f32(0.5)) * dx
    x[axis] -= ti.f32(0.5) * dx
    value = motions[row + axis]
    if ti.static(s.n == 3):
        # As literals: an index that is a variable of 64 bits, which the caller may have made the default, is refused.
        one, two = row + ti.static((axis + 1) % 3), row + ti.static((axis + 2) % 3)
        value += motions[one + 3] * (x[ti.static((axis + 2) % 3)] - motions[two + 6])
        value -= motions[two + 3] * (x[ti.static((axis + 1) % 3)] - motions[one + 6])
    else:
        sign = ti.static(1.0 if axis == 1 else -1.0)
        value += ti.f32(sign) * motions[row + 5] * (x[1 - axis] - motions[row + 6 + 1 - axis])
    return value


@ti.func
def flux_at(
    u: ti.template(), open: ti.template(), distance: ti.template(), owner: ti.template(), motions: ti.template(), c, I,
    s, n, axis: ti.template(), origin, dx,
):  # fmt: skip
    """What passes the lower face of ``c``: the fluid through its open part, the solid through the rest."""
    face = c + axis * cells_of(s, n)
    flux, part = u[face], open[face]
    if part < 1:
        moving = solid_velocity_at(distance, owner, motions, c, I, s, axis, origin, dx)
        flux = part * u[face] + (ti.f32(1.0) - part) * moving
    return flux


@ti.func
def cut_outflow_at(
    u: ti.template(), open: ti.template(), distance: ti.template(), owner: ti.template(), motions: ti.template(), c, I,
    s, n, origin, dx,
):  # fmt: skip
    """Dx times the divergence of cell ``c``, fluid and solid taken together."""
    total = ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        J = I
        J[axis] += 1
        total += flux_at(u, open, distance, owner, motions, c + s[axis], J, s, n, axis, origin, dx)
        total -= flux_at(u, open, distance, owner, motions, c, I, s, n, axis, origin, dx)
    return total


@ti.func
def _enforce_at(
    c, I, s, u: ti.template(), open: ti.template(), distance: ti.template(), owner: ti.template(),
    motions: ti.template(), origin, dx, n,
):  # fmt: skip
    cells = cells_of(s, n)
    for axis in ti.static(range(s.n)):
        if _is_face_of_box(I, n, axis) and open[c + axis * cells] == 0:
            u[c + axis * cells] = solid_velocity_at(distance, owner, motions, c, I, s, axis, origin, dx)


@ti.func
def _solid_speed_at(
    c, I, s, open: ti.template(), distance: ti.template(), owner: ti.template(), motions: ti.template(), n, origin, dx
):
    speed = ti.f32(0.0)
    for axis in ti.static(range(s.n)):
        if open[c + axis * cells_of(s, n)] < 1:
            speed = ti.max(speed, ti.abs(solid_velocity_at(distance, owner, motions, c, I, s, axis, origin, dx)))
    return speed


@ti.func
def _mean_around(a: ti.template(), at, weight: ti.template(), weight_at, s, fallback):
    """Mean of ``a`` over those of the 3^dim places around where ``weight`` is positive; ``fallback`` without any."""
    total, count = ti.f32(0.0), ti.f32(0.0)
    for around in ti.static(range(3**s.n)):
        step = s[0] * 0
        for axis in ti.static(range(s.n)):
            step += s[axis] * ti.static(around // 3**axis % 3 - 1)
        if weight[weight_at + step] > 0:
            total += a[at + step]
            count += ti.f32(1.0)
    result = fallback
    if count > 0:
        result = total / count
    return result


@ti.func
def _extend_scalar_at(c, I, s, a: ti.template(), fluid: ti.template(), offset):
    if fluid[c] == 0:
        a[offset + c] = _mean_around(a, offset + c, fluid, c, s, a[offset + c])


@ti.func
def _clear_scalar_at(c, I, s, a: ti.template(), fluid: ti.template(), offset):
    if fluid[c] == 0:
        a[offset + c] = ti.f32(0.0)


@ti.func
def _extend_velocity_at(
    c, I, s, u: ti.template(), open: ti.template(), distance: ti.template(), owner: ti.template(),
    motions: ti.template(), n,
):  # fmt: skip
    """Along a solid that lets it slip, closed faces take the velocity beside them but for its part along the normal."""
    cells = cells_of(s, n)
    for axis in ti.static(range(s.n)):
        face = c + axis * cells
        if open[face] == 0:
            if slips_at(distance, owner, motions, c, s, axis) > 0:
                beside = _mean_around(u, face, open, face, s, u[face])
                normal = _normal_at(distance, c, s)
                along = normal[axis] * normal[axis]
                u[face] = along * u[face] + (ti.f32(1.0) - along) * beside


@ti.func
def _normal_at(distance: ti.template(), c, s):
    """Direction in which the distance grows fastest, from the corners of cell ``c``."""
    g = ti.cast(s, ti.f32) * ti.f32(0.0)
    for corner in ti.static(range(2**s.n)):
        node = c
        for axis in ti.static(range(s.n)):
            if ti.static((corner >> axis) & 1):
                node += s[axis]
        for axis in ti.static(range(s.n)):
            g[axis] += ti.f32(ti.static(2.0 * ((corner >> axis) & 1) - 1.0)) * distance[node]
    return g / ti.max(ti.sqrt(g.norm_sqr()), ti.f32(1e-20))


@kernel_family
def shape_kernels(loops, shape, kind):
    IntVector, FloatVector, each_cell_in = loops.IntVector, loops.FloatVector, loops.each_cell_in
    Rotation = ti.types.matrix(loops.dim, loops.dim, ti.f32)

    @ti.kernel
    def rasterize(
        distance: Array, owner: Array, n: IntVector, index: ti.i32, origin: FloatVector, dx: ti.f32,
        pivot: FloatVector, rotation: Rotation, a: FloatVector, b: FloatVector, radius: ti.f32,
        table: Array, size: IntVector, inv_spacing: ti.f32,
    ):  # fmt: skip
        each_cell_in(
            n * 0, n + 2, n, _write_nearest,
            (distance, owner, index, origin, dx, pivot, rotation, a, b, radius, table, size, inv_spacing, shape, kind),
        )  # fmt: skip

    return {"rasterize": rasterize, "Rotation": Rotation}


@kernel_family
def solid_kernels(loops, voxels):
    IntVector, FloatVector, each_cell = loops.IntVector, loops.FloatVector, loops.each_cell
    each_cell_in, each_on_plane, dim = loops.each_cell_in, loops.each_on_plane, loops.dim
    reduce_to = loops.reduce_to

    @ti.kernel
    def clear(distance: Array, owner: Array, n: IntVector):
        each_cell_in(n * 0, n + 2, n, _clear_at, (distance, owner))

    @ti.kernel
    def compute_open(distance: Array, open: Array, n: IntVector):
        each_cell_in(n * 0 + 1, n + 2, n, _write_open, (distance, open, n, voxels))

    @ti.kernel
    def compute_fluid(open: Array, fluid: Array, n: IntVector, wrap: IntVector):
        each_cell(n, _write_fluid, (open, fluid, n))
        for axis in ti.static(range(dim)):
            each_on_plane(n, axis, wrap_if_periodic, (fluid, 0, n, wrap, axis))

    @ti.kernel
    def enforce(
        velocity: Array, open: Array, distance: Array, owner: Array, motions: Array, n: IntVector, origin: FloatVector,
        dx: ti.f32,
    ):  # fmt: skip
        each_cell_in(
            n * 0 + 1, n + 2, n, _enforce_at, (velocity, open, distance, owner, motions, origin, dx, n)
        )  # fmt: skip

    @ti.kernel
    def find_fastest(
        open: Array, distance: Array, owner: Array, motions: Array, n: IntVector, origin: FloatVector, dx: ti.f32,
        partials: Array, out: Array,
    ):  # fmt: skip
        reduce_to(
            out, 0, n, partials, ti.f32(0.0), largest, _solid_speed_at, (open, distance, owner, motions, n, origin, dx)
        )  # fmt: skip

    @ti.kernel
    def extend_velocity(
        velocity: Array, open: Array, distance: Array, owner: Array, motions: Array, n: IntVector
    ):  # fmt: skip
        each_cell(n, _extend_velocity_at, (velocity, open, distance, owner, motions, n))

    @ti.kernel
    def extend_scalar(a: Array, fluid: Array, n: IntVector, offset: ti.i32):
        each_cell(n, _extend_scalar_at, (a, fluid, offset))

    @ti.kernel
    def clear_scalar(a: Array, fluid: Array, n: IntVector, offset: ti.i32):
        each_cell(n, _clear_scalar_at, (a, fluid, offset))

    return {
        "clear": clear,
        "compute_open": compute_open,
        "compute_fluid": compute_fluid,
        "enforce": enforce,
        "find_fastest": find_fastest,
        "extend_velocity": extend_velocity,
        "extend_scalar": extend_scalar,
        "clear_scalar": clear_scalar,
    }


class Solids:
    """All solids on one grid.

    Attributes:
        distance: Signed distance to the nearest solid at the lower corner of each cell, m.
        owner: Which solid that is.
        open: How far the lower face of each cell along each axis is open, 0 to 1; sides of the box do not count.
        fluid: 1 where a cell has any face open.
        motions: Table of how each image moves, as ``slips_at`` and ``solid_velocity_at`` read it.
        fastest: Largest velocity component of a solid at any face that it covers in part, m/s.
        images: How many copies of each solid there are, one beyond each side of a periodic axis; ``owner`` counts them.

    Args:
        grid: The grid.
        walls: Its sides.
        solids: What stands in it.
        faces: How faces beside a solid are treated.
    """

    def __init__(self, grid: Grid, walls: Walls, solids: Sequence[Solid], faces: Faces = Faces.FRACTIONS):
        self.grid, self.walls, self.solids = grid, walls, tuple(solids)
        self.faces = Faces(faces)
        self.distance, self.owner, self.fluid = (grid.array() for _ in range(3))
        self.open = grid.array(grid.dim)
        self._centres = (grid.array(), grid.array()) if self.faces is Faces.VOXELS else ()
        for index, solid in enumerate(self.solids):
            solid.require(grid.dim, f"solids[{index}]")
        self._starts = [self._pose(index, 0.0) for index in range(len(self.solids))]
        shifts = [(-size, 0.0, size) if p else (0.0,) for size, p in zip(grid.size, walls.periodic, strict=True)]
        self._shifts = list(itertools.product(*shifts))
        self.images = len(self._shifts)
        self.motions = ti.ndarray(ti.f32, _ROW * max(len(self.solids) * self.images, 1))
        self._nothing = ti.ndarray(ti.f32, 1)
        self._kernels = solid_kernels(grid.costly_loops, self.faces is Faces.VOXELS)
        self._seen: tuple | None = None
        self._tables = {}
        self._partials, self._out = ti.ndarray(ti.f32, PARTIALS), ti.ndarray(ti.f32, 1)
        self.fastest = 0.0
        self.slips = any(solid.slip for solid in self.solids)

    def update(self, time: float) -> bool:
        """Put every solid where it is at ``time``; returns whether any face may have changed."""
        self.grid.require_runtime()
        present = tuple(index for index, solid in enumerate(self.solids) if solid.present(time))
        if self._seen == present and not any(self._moves(index) for index in present):
            return False
        poses = {index: self._pose(index, time) for index in present}
        self._seen = present
        grid, kernels, n = self.grid, self._kernels, self.grid.n
        rows = np.zeros((max(len(self.solids) * self.images, 1), _ROW), dtype=np.float32)
        samples = [(self.distance, self.owner, 0.0)]
        if self.faces is Faces.VOXELS:
            samples.append((*self._centres, 0.5 * grid.dx))
        for distance, owner, shift in samples:
            kernels.clear(distance, owner, n)
            for index, (image, away) in itertools.product(present, enumerate(self._shifts)):
                row = index * self.images + image
                rows[row] = self._rasterize(index, row, self._seen_from_box(poses[index], away), distance, owner, shift)
        self.motions.from_numpy(rows.ravel())
        kernels.compute_open(samples[-1][0], self.open, n)
        for axis in range(grid.dim):
            ghost_kernels(grid.loops).wrap_ghosts(self.open, n, axis * grid.cells, self.walls.wrap)
        kernels.compute_fluid(self.open, self.fluid, n, self.walls.wrap)
        kernels.find_fastest(*self.arguments(), self._partials, self._out)
        self.fastest = float(self._out[0])
        return True

    @property
    def moves(self) -> bool:
        """Whether any solid ever moves, appears or leaves."""
        return any(
            self._moves(index) or solid.begin > 0 or solid.end < math.inf for index, solid in enumerate(self.solids)
        )

    def _moves(self, index: int) -> bool:
        motion = self.solids[index].motion
        return motion is not None and motion.moves

    def _table(self, index: int):
        """The values of a sampled distance, uploaded once."""
        if index not in self._tables:
            self._tables[index] = self.solids[index].shape.upload()
        return self._tables[index]

    def _pose(self, index: int, time: float) -> Pose:
        solid, dim = self.solids[index], self.grid.dim
        motion = solid.motion or Motion(solid.a or (0.0,) * dim)
        pose = motion.at(time)
        pose.require(dim, f"solids[{index}] at t = {time:.4g} s")
        return pose

    def _seen_from_box(self, pose: Pose, away: Sequence[float]) -> Pose:
        """The pose of one image: the pivot brought back into the box along periodic axes, then moved ``away``."""
        pivot = []
        for x, low, size, p, shift in zip(
            pose.pivot, self.grid.origin, self.grid.size, self.walls.periodic, away, strict=True
        ):
            pivot.append((low + (x - low) % size if p else x) + shift)
        return pose._replace(pivot=tuple(pivot))

    def _rasterize(self, index: int, row: int, pose: Pose, distance, owner, shift: float) -> list[float]:
        """Let a solid enter the distances at the cells' corners, moved by ``shift``; its row of the table of motions."""
        solid, grid, dim = self.solids[index], self.grid, self.grid.dim
        start = self._starts[index]
        vector, ints = float_vector(dim), int_vector(dim)
        a, b = vector(*(0.0,) * dim), vector(*(0.0,) * dim)
        table, size, inv_spacing = self._nothing, ints(*(1,) * dim), 0.0
        if isinstance(solid.shape, str):
            kind, shape = "named", SHAPES[solid.shape]
            a = vector(*np.subtract(solid.a, start.pivot))
            if solid.b:
                b = vector(*(solid.b if solid.shape == "box" else np.subtract(solid.b, start.pivot)))
        elif isinstance(solid.shape, SampledDistance):
            kind, shape = "sampled", None
            a, inv_spacing = vector(*solid.shape.origin), 1.0 / solid.shape.spacing
            table, size = self._table(index), ints(*solid.shape.values.shape)
        else:
            kind, shape = "own", solid.shape
        kernels = shape_kernels(grid.costly_loops, shape, kind)
        kernels.rasterize(
            distance, owner, grid.n, row, vector(*(x + shift for x in grid.origin)), grid.dx, vector(*pose.pivot),
            kernels.Rotation(pose.rotation.tolist()), a, b, solid.radius, table, size,
            inv_spacing,
        )  # fmt: skip
        pad = (0.0,) * (3 - dim)
        return [*pose.velocity, *pad, *pose.angular_velocity, *pose.pivot, *pad, float(solid.slip)]

    def arguments(self) -> tuple:
        """What kernels take that ask for the velocity of a solid."""
        grid, origin = self.grid, float_vector(self.grid.dim)(*self.grid.origin)
        return self.open, self.distance, self.owner, self.motions, grid.n, origin, grid.dx

    def enforce(self, velocity) -> None:
        """Give every closed face the velocity of its solid."""
        self.grid.require(self.grid.dim, velocity=velocity)
        self._kernels.enforce(velocity, *self.arguments())

    def extend_velocity(self, velocity) -> None:
        """Continue the velocity of the fluid into solids that let it slip, for traces that pass close by."""
        self.grid.require(self.grid.dim, velocity=velocity)
        if self.slips:
            self._kernels.extend_velocity(velocity, *self.arguments()[:-2])

    def extend_scalar(self, array, offset: int = 0) -> None:
        """Continue a scalar one cell into the solids, so that nothing is lost to them by interpolation."""
        self.grid.require(None, offset, array=array)
        self._kernels.extend_scalar(array, self.fluid, self.grid.n, offset)

    def clear_scalar(self, array, offset: int = 0) -> None:
        """Set a scalar to 0 inside the solids."""
        self.grid.require(None, offset, array=array)
        self._kernels.clear_scalar(array, self.fluid, self.grid.n, offset)
