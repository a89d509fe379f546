"""All solids on one grid."""

import itertools
import math
from collections.abc import Sequence
from enum import Enum

import numpy as np

from ..._ti import ti
from ...grid import Grid
from ...kernels import array_of, float_vector, int_vector, numbers_of, room_for_partials
from ...operators.ghosts import ghost_kernels
from ...operators.shapes import SHAPES
from ..walls import Walls
from .cut_cells import MOTION_ROW, solid_kernels
from .motion import Motion, Pose
from .rasterise import SLIVER, raster_kernels, shape_kernels
from .shapes import Placed, SampledDistance, Solid, beyond_sides

FAR = 1e6
"""Distance to the nearest solid where there is none, m."""
FLUSH, BEYOND = 0.01, 3.0
"""How near to a side, in cells, a flat end of a solid at rest stands on it, and by how many it goes on beyond."""


class Faces(Enum):
    """How faces beside a solid are treated: open in part, or wholly open or closed by the centres of the cells."""

    FRACTIONS = "fractions"
    VOXELS = "voxels"


class Solids:
    """All solids on one grid.

    Attributes:
        distance: Signed distance to the nearest solid at the lower corner of each cell, m.
        owner: Which solid that is.
        open: How far the lower face of each cell along each axis is open, 0 to 1; sides of the box do not count.
        fluid: The part of each cell that is fluid, above 0 where it has any face open.
        motions: Table of how each image moves, as ``CutCells`` reads it.
        fastest: Largest velocity component of a solid at any face that it covers in part, m/s.
        placed: All images of those that are there, where they are.
        images: How many copies of each solid there are, one beyond each side of a periodic axis; ``owner`` counts them.
    """

    def __init__(
        self,
        grid: Grid,
        walls: Walls,
        solids: Sequence[Solid],
        faces: Faces = Faces.FRACTIONS,
        sliver: float = SLIVER,
    ):
        self.grid, self.walls, self.solids, self._sliver = grid, walls, tuple(solids), sliver
        self.faces = Faces(faces)
        self.distance, self.owner, self.fluid = (grid.array() for _ in range(3))
        self.open = grid.array(grid.dim)
        self._centres = (grid.array(), grid.array()) if self.faces is Faces.VOXELS else ()
        for index, solid in enumerate(self.solids):
            solid.require(grid.dim, f"solids[{index}]")
        self._pivots = [self._pivot(index) for index in range(len(self.solids))]
        shifts = [(-size, 0.0, size) if p else (0.0,) for size, p in zip(grid.size, walls.periodic, strict=True)]
        self._shifts = list(itertools.product(*shifts))
        self.images = len(self._shifts)
        self.motions = ti.ndarray(ti.f32, MOTION_ROW * max(len(self.solids) * self.images, 1))
        self._rows = np.zeros((len(self.solids) * self.images, MOTION_ROW), np.float32)
        self._nothing = ti.ndarray(ti.f32, 1)
        self._kernels = solid_kernels(grid.costly_loops)
        self._raster = raster_kernels(grid.costly_loops, self.faces is Faces.VOXELS)
        self._seen: tuple | None = None
        self.placed: list[Placed] = []
        self._conditions = {}
        sampled = [index for index, solid in enumerate(self.solids) if isinstance(solid.shape, SampledDistance)]
        self._tables = {index: array_of(self.solids[index].shape.values) for index in sampled}
        self._partials, self._out = room_for_partials(), ti.ndarray(ti.f32, 1)
        self.fastest = 0.0
        self.slips = any(solid.slip for solid in self.solids)

    def gives(self, name: str | None) -> bool:
        """Whether any solid holds a quantity at a value, or gives it."""
        return any(name in solid.values or name in solid.fluxes for solid in self.solids)

    def conditions(self, name: str, k: int):
        """Of each image of a solid whether it holds component ``k`` of a quantity, at which value, and what it gives."""
        if (name, k) not in self._conditions:
            rows = np.zeros((len(self.solids) * self.images, 3), np.float32)
            for index, solid in enumerate(self.solids):
                value, flux = (
                    float(np.ravel(said.get(name, 0.0))[k]) if name in said else 0.0
                    for said in (solid.values, solid.fluxes)
                )
                rows[index * self.images : (index + 1) * self.images] = name in solid.values, value, flux
            self._conditions[name, k] = array_of(rows)
        return self._conditions[name, k]

    def update(self, time: float) -> bool:
        """Put every solid where it is at ``time``; returns whether any face may have changed."""
        self.grid.require_runtime()
        present = tuple(index for index, solid in enumerate(self.solids) if solid.present(time))
        if self._seen == present and not any(self._moves(index) for index in present):
            return False
        poses = {index: self._pose(index, time) for index in present}
        self._seen = present
        grid, n = self.grid, self.grid.n
        rows = np.zeros((max(len(self.solids) * self.images, 1), MOTION_ROW), dtype=np.float32)
        images = list(itertools.product(present, enumerate(self._shifts)))
        self.placed = [self._place(index, self._seen_from_box(poses[index], away)) for index, (_, away) in images]
        samples = [(self.distance, self.owner, 0.0)]
        if self.faces is Faces.VOXELS:
            samples.append((*self._centres, 0.5 * grid.dx))
        for distance, owner, shift in samples:
            distance.fill(FAR)
            owner.fill(0.0)
            for (index, (image, _)), placed in zip(images, self.placed, strict=True):
                row = index * self.images + image
                rows[row] = self._rasterize(index, row, placed, distance, owner, shift)
        self._set_motions(rows)
        self._raster.compute_open(samples[-1][0], self.open, n, self._sliver)
        self._wrap(self.open, grid.dim)
        self._raster.compute_fluid(self.open, self.distance, self.fluid, n, 1.0 / grid.dx)
        self._wrap(self.fluid, 1)
        self._kernels.find_fastest(*self.arguments(), self._partials, self._out)
        self.fastest = numbers_of(self._out)[0]
        return True

    def _wrap(self, array, components: int) -> None:
        """Set the ghosts beyond periodic sides, if there are any."""
        if not any(self.walls.periodic):
            return
        wrap_ghosts = ghost_kernels(self.grid.loops).wrap_ghosts
        for component in range(components):
            wrap_ghosts(array, self.grid.n, component * self.grid.cells, self.walls.wrap)

    def move_as_at(self, time: float) -> None:
        """Let every solid be as fast as it is at ``time``, s, where it is now."""
        rows = self._rows.copy()
        for index in self._seen or ():
            pose = self._pose(index, time)
            for row in range(index * self.images, (index + 1) * self.images):
                rows[row, : len(pose.velocity)], rows[row, 3:6] = pose.velocity, pose.angular_velocity
        if (rows != self._rows).any():
            self._set_motions(rows)

    def _set_motions(self, rows: np.ndarray) -> None:
        self._rows = rows
        self.motions.from_numpy(rows.ravel())

    @property
    def moves(self) -> bool:
        """Whether any solid ever moves, appears or leaves."""
        return any(
            self._moves(index) or solid.begin > 0 or solid.end < math.inf for index, solid in enumerate(self.solids)
        )

    def _moves(self, index: int) -> bool:
        motion = self.solids[index].motion
        return motion is not None and motion.moves

    def _pose(self, index: int, time: float) -> Pose:
        solid, dim = self.solids[index], self.grid.dim
        motion = solid.motion or Motion(solid.a or (0.0,) * dim)
        pose = motion.at(time)
        pose.require(dim, f"solids[{index}] at t = {time:.4g} s")
        return pose

    def _pivot(self, index: int) -> tuple[float, ...]:
        """What a solid turns about where its shape says that it is."""
        pose, motion = self._pose(index, 0.0), self.solids[index].motion
        return motion.pivot if isinstance(motion, Motion) else pose.pivot

    def _seen_from_box(self, pose: Pose, away: Sequence[float]) -> Pose:
        """The pose of one image: the pivot brought back into the box along periodic axes, then moved ``away``."""
        along = zip(pose.pivot, self.grid.origin, self.grid.size, self.walls.periodic, away, strict=True)
        pivot = tuple((low + (x - low) % size if p else x) + shift for x, low, size, p, shift in along)
        return pose._replace(pivot=pivot)

    def _place(self, index: int, pose: Pose) -> Placed:
        """A solid at a pose, its ends seen from its pivot."""
        solid, none = self.solids[index], (0.0,) * self.grid.dim
        if not isinstance(solid.shape, str):
            return Placed(solid, pose, none, none)
        pivot, a, b = self._pivots[index], solid.a, solid.b or self._pivots[index]
        rounded = solid.shape == "box" and solid.radius
        if not (self._moves(index) or rounded) and (pose.rotation == np.eye(self.grid.dim)).all():
            # One that stands on a side covers that as it covers the cells beside it.
            a, b = beyond_sides(self.grid, solid.shape, a, b, within=FLUSH, by=BEYOND, periodic=self.walls.periodic)
        a, b = np.subtract(a, pivot), b if solid.shape == "box" else np.subtract(b, pivot)
        return Placed(solid, pose, tuple(a.tolist()), tuple(map(float, b)))

    def _rasterize(self, index: int, row: int, placed: Placed, distance, owner, shift: float) -> list[float]:
        """Let a solid enter the distances at the cells' corners, moved by ``shift``; its row of the table of motions."""
        solid, pose, grid, dim = placed.solid, placed.pose, self.grid, self.grid.dim
        vector, ints = float_vector(dim), int_vector(dim)
        a, b = vector(*placed.a), vector(*placed.b)
        table, size, inv_spacing = self._nothing, ints(*(1,) * dim), 0.0
        if isinstance(solid.shape, str):
            kind, shape = "named", SHAPES[solid.shape]
        elif isinstance(solid.shape, SampledDistance):
            kind, shape = "sampled", None
            a, inv_spacing = vector(*solid.shape.origin), 1.0 / solid.shape.spacing
            table, size = self._tables[index], ints(*solid.shape.values.shape)
        else:
            kind, shape = "own", solid.shape
        kernels = shape_kernels(grid.costly_loops, shape, kind)
        origin, pivot, rotation = (x + shift for x in grid.origin), pose.pivot, kernels.Rotation(pose.rotation.tolist())
        where = (grid.n, row, vector(*origin), grid.dx, vector(*pivot), rotation)
        kernels.rasterize(distance, owner, *where, a, b, solid.radius, table, size, inv_spacing)
        pad = (0.0,) * (3 - dim)
        return [*pose.velocity, *pad, *pose.angular_velocity, *pose.pivot, *pad, float(solid.slip)]

    def arguments(self) -> tuple:
        """What a kernel makes its ``CutCells`` of."""
        grid, origin = self.grid, float_vector(self.grid.dim)(*self.grid.origin)
        return self.open, self.distance, self.owner, self.motions, grid.n, origin, grid.dx

    def enforce(self, velocity) -> None:
        """Give every closed face the velocity of its solid; where the fluid slips along that, only along the normal.

        Along the surface such a face has the velocity of the fluid beside it, so that paths close by meet no other.
        """
        self.grid.require(self.grid.dim, velocity=velocity)
        self._kernels.enforce(velocity, *self.arguments())
        if self.slips:
            self._wrap(velocity, self.grid.dim)
            self._kernels.extend_velocity(velocity, *self.arguments())

    def layers_until(self, time: float) -> int:
        """How many layers of cells deep the solids will be left at ``time``, s: 1 if they move, all of it if one goes away."""
        if all(self.solids[index].present(time) for index in self._seen or ()):
            return 1
        return 1 + math.ceil(max(-float(self.grid.to_numpy(self.distance).min()), 0.0) / self.grid.dx)

    def extend_scalar(self, array, offset: int = 0, layers: int = 1) -> None:
        """Continue a scalar so many cells into the solids, so that nothing is lost to them by interpolation."""
        self.grid.require(None, offset, array=array)
        known = self.fluid
        for layer in range(layers):
            if layer:
                before, known = known, self.grid.array()
                self._kernels.grow(before, known, self.grid.n)
            self._kernels.extend_scalar(array, known, self.grid.n, offset)

    def clear_scalar(self, array, offset: int = 0) -> None:
        """Set a scalar to 0 inside the solids."""
        self.grid.require(None, offset, array=array)
        self._kernels.clear_scalar(array, self.fluid, self.grid.n, offset)

    def at_corners(self, array) -> list[np.ndarray]:
        """``distance`` or ``owner`` at each corner of all cells: views of one copy, each shaped like the grid."""
        values = self.grid.to_numpy_padded(array)
        return [
            values[tuple(slice(step, step + n) for step, n in zip(steps, self.grid.shape, strict=True))]
            for steps in itertools.product((1, 2), repeat=self.grid.dim)
        ]
