"""All solids on one grid."""

import itertools
import math
from collections.abc import Sequence
from enum import Enum

import numpy as np

from ..._ti import ti
from ...grid import Grid
from ...kernels import array_of, float_vector, numbers_of, room_for_partials
from ...operators.ghosts import ghost_kernels
from ..walls import Walls
from .cut_cells import MOTION_ROW, solid_kernels
from .exact import function_of, row_length, row_of
from .motion import Motion, Pose
from .rasterise import SLIVER, raster_kernels
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
        self._rows = np.zeros((max(len(self.solids) * self.images, 1), MOTION_ROW), np.float32)
        self.motions = ti.ndarray(ti.f32, self._rows.size)
        self._kernels = solid_kernels(grid.costly_loops)
        functions = [function_of(solid.shape) for solid in self.solids]
        known = tuple(dict.fromkeys(each for each in functions if each is not None))
        self._which = [known.index(each) if each else len(known) for each in functions]
        self._table = ti.ndarray(ti.f32, row_length(grid.dim) * len(self._rows))
        self._shapes = (self._table, *self._lattices())
        voxels = self.faces is Faces.VOXELS
        self._raster = raster_kernels(grid.costly_loops, known, None in functions, voxels)
        self._seen: tuple | None = None
        self.placed: list[Placed] = []
        self._conditions = {}
        self._partials, self._out = room_for_partials(), ti.ndarray(ti.f32, 1)
        self.fastest = 0.0
        self.slips = any(solid.slip for solid in self.solids)

    def gives(self, name: str | None) -> bool:
        """Whether any solid holds a quantity at a value, or gives it."""
        return any(name in solid.values or name in solid.fluxes for solid in self.solids)

    def holds(self, name: str | None) -> bool:
        """Whether any solid holds a quantity at a value."""
        return any(name in solid.values for solid in self.solids)

    def held_range(self, name: str, k: int) -> tuple[float, float]:
        """Least and largest value of component ``k`` of a quantity that solids hold."""
        values = [float(np.ravel(solid.values[name])[k]) for solid in self.solids if name in solid.values]
        return min(values), max(values)

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
        grid, n, dx = self.grid, self.grid.n, self.grid.dx
        images = list(itertools.product(present, enumerate(self._shifts)))
        self.placed = [self._place(index, self._image(index, poses[index], away)) for index, (_, away) in images]
        rows = [index * self.images + image for index, (image, _) in images]
        self._set_motions(self._motions_of(rows))
        self._table.from_numpy(self._shapes_of(rows).ravel())
        samples = [(self.distance, self.owner, 0.0)]
        if self.faces is Faces.VOXELS:
            samples.append((*self._centres, 0.5))
        for distance, owner, shift in samples:
            distance.fill(FAR)
            owner.fill(0.0)
            self._raster.rasterize(distance, owner, *self._shapes, n, dx, shift, len(self._rows))
        self._raster.compute_open(*samples[-1][:2], *self._shapes, self.open, n, dx, self._sliver)
        self._wrap(self.open, grid.dim)
        self._raster.compute_fluid(self.open, self.distance, self.fluid, n, 1.0 / dx)
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

    def _image(self, index: int, pose: Pose, away: Sequence[float]) -> Pose:
        """The pose of one image: the middle of the solid brought back into the box along periodic axes, then moved ``away``.

        Not its pivot, which may be farther from it than the images are from each other.
        """
        grid, from_pivot = self.grid, self.solids[index].middle_from(self._pivots[index])
        middle = np.add(pose.pivot, pose.rotation @ from_pivot)
        within = np.add(grid.origin, np.mod(middle - grid.origin, grid.size))
        back = np.where(self.walls.periodic, within - middle, 0.0)
        return pose._replace(pivot=tuple((pose.pivot + back + away).tolist()))

    def _place(self, index: int, pose: Pose) -> Placed:
        """A solid at a pose, its ends seen from its pivot."""
        solid, none = self.solids[index], (0.0,) * self.grid.dim
        if not isinstance(solid.shape, str):
            return Placed(solid, pose, none, none)
        pivot, a, b = self._pivots[index], solid.a, solid.b or self._pivots[index]
        rounded = solid.shape == "box" and solid.radius
        if not rounded and (pose.rotation == np.eye(self.grid.dim)).all():
            # One that stands on a side covers that as it covers the cells beside it.
            periodic, stays = self.walls.periodic, not self._moves(index)
            a, b = beyond_sides(self.grid, solid.shape, a, b, FLUSH, BEYOND, periodic, stays)
        a, b = np.subtract(a, pivot), b if solid.shape == "box" else np.subtract(b, pivot)
        return Placed(solid, pose, tuple(a.tolist()), tuple(map(float, b)))

    def _motions_of(self, rows: Sequence[int]) -> np.ndarray:
        """The table of motions of what is placed, each in its row."""
        table = np.zeros_like(self._rows)
        pad = (0.0,) * (3 - self.grid.dim)
        for row, placed in zip(rows, self.placed, strict=True):
            pose = placed.pose
            table[row] = *pose.velocity, *pad, *pose.angular_velocity, *pose.pivot, *pad, float(placed.solid.slip)
        return table

    def _shapes_of(self, rows: Sequence[int]) -> np.ndarray:
        """The table of shapes of what is placed, each in its row, in metres from the lower corner of the box."""
        table = np.full((len(self._rows), row_length(self.grid.dim)), -1.0, np.float32)
        for row, placed in zip(rows, self.placed, strict=True):
            table[row] = row_of(self._which[row // self.images], placed, self.grid.origin, 1.0)
        return table

    def _lattices(self) -> tuple:
        """The values of all lattices, one after the other, and where those of each row begin."""
        starts, values = np.zeros(len(self._rows)), [np.zeros(0)]
        for index, solid in enumerate(self.solids):
            if isinstance(solid.shape, SampledDistance):
                starts[index * self.images : (index + 1) * self.images] = sum(part.size for part in values)
                values.append(np.ravel(solid.shape.values))
        return array_of(np.concatenate(values) if len(values) > 1 else np.zeros(1)), array_of(starts, ti.i32)

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

    def leaves(self, time: float) -> bool:
        """Whether one that stands where it does is there no more at ``time``, s."""
        return any(not self.solids[index].present(time) for index in self._seen or ())

    def distance_at_centres(self) -> np.ndarray:
        """The distance to the nearest solid, m."""
        return np.mean(self.at_corners(self.distance), axis=0)

    def at_corners(self, array) -> list[np.ndarray]:
        """``distance`` or ``owner`` at each corner of all cells: views of one copy, each shaped like the grid."""
        values = self.grid.to_numpy_padded(array)
        return [
            values[tuple(slice(step, step + n) for step, n in zip(steps, self.grid.shape, strict=True))]
            for steps in itertools.product((1, 2), repeat=self.grid.dim)
        ]
