"""Slices: a quantity on a plane, in colours."""

from .._ti import ti
from ..grid import Grid, given
from ..kernels import Array, float_vector, kernel_family
from ..operators.interpolation import inside_box, sample
from .colour_maps import mapped_colour
from .image import Image, fit_plane, write_pixel
from .ranges import Plane
from .surfaces import depth_at

SOLID_GREY = 0.45


@ti.func
def _slice_pixel(
    x, y, image: ti.template(), values: ti.template(), table: ti.template(), distance: ti.template(), n, dx, width,
    height, corner, across, upward, low, inv_range, shade,
    has_solids: ti.template(),
):  # fmt: skip
    q = corner + (ti.cast(x, ti.f32) + ti.f32(0.5)) * across + (ti.cast(height - y, ti.f32) - ti.f32(0.5)) * upward
    inside = inside_box(q, n)
    colour = ti.Vector([ti.f32(0.02), ti.f32(0.02), ti.f32(0.02)])
    if (q - inside).norm_sqr() < ti.f32(1e-6):
        value = (sample(values, 0, inside, n) - low) * inv_range
        colour = shade * mapped_colour(table, value)
        if ti.static(has_solids):
            covered = ti.f32(0.5) - depth_at(distance, inside, n, dx) / ti.sqrt(across.norm_sqr())
            colour += ti.min(ti.max(covered, ti.f32(0.0)), ti.f32(1.0)) * (ti.f32(SOLID_GREY) - colour)
    write_pixel(image, y * width + x, colour)


@kernel_family
def slice_kernels(loops, has_solids):
    IntVector, FloatVector, each_pixel = loops.IntVector, loops.FloatVector, loops.each_pixel

    @ti.kernel
    def colour_slice(
        image: Array, values: Array, table: Array, distance: Array, n: IntVector, dx: ti.f32, width: ti.i32,
        height: ti.i32, corner: FloatVector, across: FloatVector, upward: FloatVector, low: ti.f32, inv_range: ti.f32,
        shade: ti.f32,
    ):  # fmt: skip
        each_pixel(
            width, height, _slice_pixel,
            (image, values, table, distance, n, dx, width, height, corner, across, upward, low, inv_range, shade,
             has_solids),
        )  # fmt: skip

    return {"colour_slice": colour_slice}


def plane_window(grid: Grid, plane: Plane, image: Image) -> tuple:
    """What kernels need to find the point of a pixel on a plane.

    Returns:
        The lower left corner of the picture, and the ways to the next pixel right and up: vectors in cells.
    """
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
        shade: Brightness of the colours, from 0 to 1.
    """
    grid.require(values=values, **given(distance=distance))
    span = limits[1] - limits[0]
    solid = image.nothing[0] if distance is None else distance
    slice_kernels(grid.loops, distance is not None).colour_slice(
        image.array, values, table, solid, grid.n, grid.dx, image.width, image.height,
        *plane_window(grid, plane, image), limits[0], 1.0 / span if span else 0.0, shade,
    )  # fmt: skip
