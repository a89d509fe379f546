"""Slices: a quantity on a plane, in colours."""

from .._ti import argument, ti
from ..grid import Grid, given
from ..kernels import Array, float_vector, int_vector, kernel_family
from ..operators.interpolation import corner_weight, inside_box, place_of, sample, step_to_corner
from ..operators.shapes import coverage
from ..operators.vectors import length
from .colour_maps import Scale, scale_arguments
from .image import Image, Screen, fit_plane
from .ranges import Plane
from .surfaces import Obstacle

SOLID_GREY, AIR_GREY = 0.45, 0.14


@argument
class Window:
    """What a picture shows of a plane: its lower left corner, and the ways to the next pixel right and up, in cells."""

    corner: object
    across: object
    upward: object

    @ti.func
    def point(self, x, y, screen):
        """The point in the middle of a pixel, in the index space of cells."""
        return self.corner + (ti.cast(x, ti.f32) + ti.f32(0.5)) * self.across + screen.height_of(y) * self.upward

    @ti.func
    def cells_per_pixel(self):
        """Length of a pixel's edge."""
        return length(self.across)


@argument
class Wet:
    """Where a liquid is, by its level set at cell centres, m."""

    level: object
    n: object
    dx: object
    there: bool  # whether there is one; if not, all of a box is fluid, and nothing of this is read

    @ti.func
    def height_at(self, q):
        """Distance in cells from the point ``q`` to the surface, negative in the liquid."""
        return sample(self.level, 0, q, self.n) / self.dx

    @ti.func
    def covered_at(self, q, cells_per_pixel):
        """Part of the pixel around ``q`` that is liquid."""
        return coverage(self.height_at(q), ti.f32(1.0) / cells_per_pixel)

    @ti.func
    def value_at(self, values: ti.template(), q):
        """A quantity at ``q``, between the cells alone whose middle is in the liquid; 0 where none of them is."""
        place, total, weight = place_of(q, self.n), ti.f32(0.0), ti.f32(0.0)
        for corner in ti.static(range(2**q.n)):
            cell, part = place.first + step_to_corner(corner, place.s), corner_weight(place.fraction, corner)
            if self.level[cell] < 0:
                total += part * values[cell]
                weight += part
        return ti.select(weight > 0, total / ti.max(weight, ti.f32(1e-20)), ti.f32(0.0))


@ti.func
def _slice_pixel(x, y, screen, window, values: ti.template(), scale, shade, obstacle, wet):
    q = window.point(x, y, screen)
    inside = inside_box(q, obstacle.n)
    colour = ti.Vector([ti.f32(0.02), ti.f32(0.02), ti.f32(0.02)])
    if (q - inside).norm_sqr() < ti.f32(1e-6):
        if ti.static(wet.there):
            colour = shade * scale.colour(wet.value_at(values, inside))
            dry = ti.f32(1.0) - wet.covered_at(inside, window.cells_per_pixel())
            colour += dry * (ti.f32(AIR_GREY) - colour)
        else:
            colour = shade * scale.colour(sample(values, 0, inside, obstacle.n))
        if ti.static(obstacle.there):
            colour += obstacle.covered_at(inside, window.cells_per_pixel()) * (ti.f32(SOLID_GREY) - colour)
    screen.put(x, y, colour)


@kernel_family
def slice_kernels(loops, has_solids, has_liquid):
    Index, Point, Size = loops.IntVector, loops.FloatVector, int_vector(2)

    @ti.kernel
    def colour_slice(
        image: Array, size: Size, corner: Point, across: Point, upward: Point, table: Array, low: ti.f32,
        inv_range: ti.f32, shade: ti.f32, values: Array, distance: Array, level: Array, n: Index, dx: ti.f32,
    ):  # fmt: skip
        screen, window, scale = Screen(image, size), Window(corner, across, upward), Scale(table, low, inv_range)
        obstacle, wet = Obstacle(distance, n, dx, has_solids), Wet(level, n, dx, has_liquid)
        loops.each_pixel(size, _slice_pixel, (screen, window, values, scale, shade, obstacle, wet))

    return (colour_slice,)


def plane_window(grid: Grid, plane: Plane, image: Image) -> tuple:
    """As the kernels take it: the members of a ``Window`` that shows a whole plane."""
    extent = (grid.shape[plane.horizontal], grid.shape[plane.vertical])
    (left, low), cells_per_pixel = fit_plane(extent, image)
    corner, across, upward = ([0.0] * grid.dim for _ in range(3))
    corner[plane.horizontal], corner[plane.vertical] = 0.5 + left, 0.5 + low
    across[plane.horizontal] = upward[plane.vertical] = cells_per_pixel
    if grid.dim == 3:
        corner[plane.axis] = plane.place
    vector = float_vector(grid.dim)
    return vector(*corner), vector(*across), vector(*upward)


def render_slice(
    grid: Grid,
    values,
    image: Image,
    table,
    limits: tuple[float, float],
    plane: Plane,
    distance=None,
    level=None,
    shade: float = 1.0,
) -> None:
    """Show a quantity on a plane; a 2D grid is shown whole.

    Args:
        grid: The grid.
        values: A scalar at cell centres, ghosts filled.
        image: What to fill.
        table: A colour map on the device.
        limits: Values at its two ends.
        plane: Where.
        distance: To the nearest solid at the lower corners of the cells, m; solids are drawn in grey.
        level: Of a liquid, at cell centres, m, ghosts filled: only what it has is shown, and the air in a darker grey.
        shade: Brightness of the colours, from 0 to 1.
    """
    grid.require(values=values, **given(distance=distance, level=level))
    bounds = *image.or_nothing(distance, level), grid.n, grid.dx
    colours = (*scale_arguments(table, limits), shade)
    slice_kernels(grid.loops, distance is not None, level is not None).colour_slice(
        *image.screen, *plane_window(grid, plane, image), *colours, values, *bounds
    )
