"""Slices: a quantity on a plane, in colours."""

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, float_vector, kernel_family
from ..operators.interpolation import inside_box, sample
from . import colour_maps
from .image import Image, write_pixel
from .surfaces import depth_at
from .volume import fit_plane

SOLID_GREY = 0.45
_AXES = {0: (2, 1), 1: (0, 2), 2: (0, 1)}


@ti.func
def _slice_pixel(
    x, y, image: ti.template(), values: ti.template(), table: ti.template(), distance: ti.template(), n, dx, width,
    height, corner, across, upward, low, inv_range, has_solids: ti.template(),
):  # fmt: skip
    q = corner + (ti.cast(x, ti.f32) + ti.f32(0.5)) * across + (ti.cast(height - y, ti.f32) - ti.f32(0.5)) * upward
    inside = inside_box(q, n)
    colour = ti.Vector([ti.f32(0.02), ti.f32(0.02), ti.f32(0.02)])
    if (q - inside).norm_sqr() < ti.f32(1e-6):
        value = (sample(values, 0, inside, n) - low) * inv_range
        at = ti.min(ti.max(value, ti.f32(0.0)), ti.f32(1.0)) * ti.f32(colour_maps.ENTRIES - 1.0)
        entry = ti.min(ti.cast(at, ti.i32), colour_maps.ENTRIES - 2)
        fraction = at - ti.cast(entry, ti.f32)
        for channel in ti.static(range(3)):
            first, second = table[3 * entry + channel], table[3 * entry + 3 + channel]
            colour[channel] = first + fraction * (second - first)
        if ti.static(has_solids):
            covered = ti.f32(0.5) - depth_at(distance, inside, n, dx) / across.norm()
            colour += ti.min(ti.max(covered, ti.f32(0.0)), ti.f32(1.0)) * (ti.f32(SOLID_GREY) - colour)
    write_pixel(image, y * width + x, colour)


@kernel_family
def slice_kernels(loops, has_solids):
    IntVector, FloatVector, each_pixel = loops.IntVector, loops.FloatVector, loops.each_pixel

    @ti.kernel
    def colour_slice(
        image: Array, values: Array, table: Array, distance: Array, n: IntVector, dx: ti.f32, width: ti.i32,
        height: ti.i32, corner: FloatVector, across: FloatVector, upward: FloatVector, low: ti.f32, inv_range: ti.f32,
    ):  # fmt: skip
        each_pixel(
            width, height, _slice_pixel,
            (image, values, table, distance, n, dx, width, height, corner, across, upward, low, inv_range, has_solids),
        )  # fmt: skip

    return {"colour_slice": colour_slice}


def render_slice(
    grid: Grid, values, image: Image, colour_map: str, limits: tuple[float, float], axis: int = 2,
    position: float = 0.5, distance=None,
) -> None:  # fmt: skip
    """Show a quantity on a plane perpendicular to ``axis``; a 2D grid is shown whole.

    Args:
        grid: The grid.
        values: A scalar at cell centres, ghosts filled.
        image: What to fill.
        colour_map: Name of a colour map.
        limits: Values at its two ends.
        axis: Axis perpendicular to the plane.
        position: Place of the plane along that axis, from 0 to 1.
        distance: To the nearest solid at the lower corners of the cells, m; solids are drawn in grey.
    """
    grid.require_runtime()
    horizontal, vertical = _AXES[axis] if grid.dim == 3 else (0, 1)
    (left, low), cells_per_pixel = fit_plane((grid.shape[horizontal], grid.shape[vertical]), image)
    corner, across, upward = ([0.0] * grid.dim for _ in range(3))
    corner[horizontal], corner[vertical] = 0.5 + left, 0.5 + low
    across[horizontal] = upward[vertical] = cells_per_pixel
    if grid.dim == 3:
        corner[axis] = 0.5 + position * grid.shape[axis]
    table = ti.ndarray(ti.f32, 3 * colour_maps.ENTRIES)
    table.from_numpy(colour_maps.table(colour_map).reshape(-1))
    vector = float_vector(grid.dim)
    span = limits[1] - limits[0]
    solid = image.nothing[0] if distance is None else distance
    slice_kernels(grid.loops, distance is not None).colour_slice(
        image.array, values, table, solid, grid.n, grid.dx, image.width, image.height, vector(*corner), vector(*across),
        vector(*upward), limits[0], 1.0 / span if span else 0.0,
    )  # fmt: skip
    ti.sync()  # before the table is dropped: an array in use is never freed on Vulkan
