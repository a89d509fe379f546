"""Arrows of the velocity on a plane, one in each tile of a chequerboard.

Every pixel belongs to one tile and no arrow is longer than its tile: a pixel has but one arrow to look at.
"""

from .._ti import ti
from ..grid import Grid, given
from ..kernels import Array, float_vector, kernel_family
from ..operators.interpolation import inside_box
from .image import Image, write_pixel
from .ranges import Plane
from .slices import plane_window
from .surfaces import depth_at

LONGEST = 0.92
"""Length of the longest arrow, in tiles."""
SHAFT, HEAD, HEAD_WIDTH = 0.03, 0.36, 0.15
"""Half the thickness of a shaft, length of a head and half its width, in tiles."""
OUTLINE = 1.1
"""Width of the dark edge around an arrow, in pixels."""
SLOWEST = 1e-6
"""Boxes per second: what is slower than that is at rest."""


@ti.func
def _arrow_distance(along, beside, length, tile):
    """Signed distance in pixels from the outline of an arrow, roughly; negative inside.

    The arrow's middle is the origin; ``along`` it the head points to positive values, ``beside`` is 0 on its axis.
    """
    head = ti.min(ti.f32(HEAD) * tile, ti.f32(0.55) * length)
    half_width = head * ti.f32(HEAD_WIDTH / HEAD)
    shaft = ti.min(ti.max(ti.f32(SHAFT) * tile, ti.f32(0.55)), ti.max(ti.f32(0.6) * half_width, ti.f32(0.4)))
    neck = ti.f32(0.5) * length - head
    on_shaft = ti.max(beside - shaft, ti.max(-ti.f32(0.5) * length - along, along - neck))
    slant = ti.f32(1.0 / (1.0 + (HEAD_WIDTH / HEAD) ** 2) ** 0.5)
    edge = (beside - half_width * (ti.f32(0.5) * length - along) / ti.max(head, ti.f32(1e-6))) * slant
    return ti.min(on_shaft, ti.max(edge, neck - along))


@ti.func
def _arrow_pixel(
    x, y, image: ti.template(), velocity: ti.template(), distance: ti.template(), n, dx, width, height, corner, across,
    upward, tiles, extent, horizontal, vertical, outwards, inv_speed, has_solids: ti.template(), on: ti.template(),
):  # fmt: skip
    """Blend the arrow of a pixel's tile over it: ``tiles`` of them along the plane's ``extent`` in cells."""
    q = corner + (ti.cast(x, ti.f32) + ti.f32(0.5)) * across + (ti.cast(height - y, ti.f32) - ti.f32(0.5)) * upward
    inside = inside_box(q, n)
    if (q - inside).norm_sqr() < ti.f32(1e-6):
        cells_per_pixel = ti.sqrt(across.norm_sqr())
        # Place in the plane in cells, its tile, and the way from the tile's middle in pixels.
        place = ti.Vector([q.dot(horizontal) - ti.f32(0.5), q.dot(vertical) - ti.f32(0.5)])
        tile = extent / ti.cast(tiles, ti.f32)
        middle = place
        for d in ti.static(range(2)):
            number = ti.min(ti.max(ti.cast(ti.floor(place[d] / tile[d]), ti.i32), 0), tiles[d] - 1)
            middle[d] = (ti.cast(number, ti.f32) + ti.f32(0.5)) * tile[d]
        offset = (place - middle) / cells_per_pixel
        edge = ti.min(tile[0], tile[1]) / cells_per_pixel
        p = inside_box(q + (middle[0] - place[0]) * horizontal + (middle[1] - place[1]) * vertical, n)
        v = on.sample(velocity, p, n) * inv_speed
        flow = ti.Vector([v.dot(horizontal), v.dot(vertical)])
        speed = ti.sqrt(flow.norm_sqr())
        length = ti.min(speed, ti.f32(1.0)) * ti.f32(LONGEST) * edge
        # Below two pixels an arrow is a dot: it fades out.
        visible = ti.min(ti.max(length - ti.f32(1.0), ti.f32(0.0)), ti.f32(1.0))
        if ti.static(has_solids):
            if depth_at(distance, p, n, dx) < 0:
                visible = ti.f32(0.0)
            visible *= ti.min(
                ti.max(ti.f32(0.5) + depth_at(distance, inside, n, dx) / cells_per_pixel, ti.f32(0.0)), ti.f32(1.0)
            )
        if visible > 0:
            direction = flow / speed
            along = offset.dot(direction)
            beside = ti.abs(offset[0] * direction[1] - offset[1] * direction[0])
            away = _arrow_distance(along, beside, length, edge)
            ink = visible * ti.min(ti.max(ti.f32(0.5) - away, ti.f32(0.0)), ti.f32(1.0))
            rim = visible * ti.min(ti.max(ti.f32(0.5 + OUTLINE) - away, ti.f32(0.0)), ti.f32(1.0)) * ti.f32(0.8)
            # Towards the eye warm, away from it cool.
            lean = ti.min(ti.max(v.dot(outwards), ti.f32(-1.0)), ti.f32(1.0))
            tint = ti.Vector([ti.f32(1.0), ti.f32(1.0), ti.f32(1.0)])
            tint[0] -= ti.f32(0.65) * ti.max(-lean, ti.f32(0.0))
            tint[1] -= ti.f32(0.4) * ti.max(lean, ti.f32(0.0)) + ti.f32(0.2) * ti.max(-lean, ti.f32(0.0))
            tint[2] -= ti.f32(0.75) * ti.max(lean, ti.f32(0.0))
            colour = ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)])
            for channel in ti.static(range(3)):
                before = image[3 * (y * width + x) + channel] * (ti.f32(1.0) - rim)
                colour[channel] = before + ink * (tint[channel] - before)
            write_pixel(image, y * width + x, colour)


@kernel_family
def arrow_kernels(loops, has_solids, on):
    IntVector, FloatVector, each_pixel = loops.IntVector, loops.FloatVector, loops.each_pixel
    Pair, Count = ti.types.vector(2, ti.f32), ti.types.vector(2, ti.i32)

    @ti.kernel
    def blend_arrows(
        image: Array, velocity: Array, distance: Array, n: IntVector, dx: ti.f32, width: ti.i32, height: ti.i32,
        corner: FloatVector, across: FloatVector, upward: FloatVector, tiles: Count, extent: Pair,
        horizontal: FloatVector, vertical: FloatVector, outwards: FloatVector, inv_speed: ti.f32,
    ):  # fmt: skip
        each_pixel(
            width, height, _arrow_pixel,
            (image, velocity, distance, n, dx, width, height, corner, across, upward, tiles, extent, horizontal,
             vertical, outwards, inv_speed, has_solids, on),
        )  # fmt: skip

    return {"blend_arrows": blend_arrows, "Pair": Pair, "Count": Count}


def arrow_tiles(extent: tuple[int, int], arrows: int) -> tuple[int, int]:
    """How many tiles lie along the two edges of a plane of ``extent`` cells, ``arrows`` along the longer one."""
    return tuple(max(1, round(arrows * edge / max(extent))) for edge in extent)


def render_arrows(
    grid: Grid, velocity, image: Image, plane: Plane, arrows: int, speed: float, distance=None
) -> None:  # fmt: skip
    """Draw arrows of the velocity along a plane over what ``image`` shows.

    Args:
        grid: The grid.
        velocity: On lower faces, m/s, ghosts filled.
        image: What to draw into.
        plane: Where; the velocity across it tints the arrows.
        arrows: How many along the longer edge.
        speed: That of the longest arrow, m/s.
        distance: To the nearest solid at the lower corners of the cells, m; solids hide arrows.
    """
    grid.require(**given(distance=distance))
    grid.require(grid.dim, velocity=velocity)
    if not speed > SLOWEST * max(grid.size):
        return
    axes = plane.horizontal, plane.vertical
    extent = (grid.shape[axes[0]], grid.shape[axes[1]])
    vector = float_vector(grid.dim)
    unit = [vector(*(float(k == axis) for k in range(grid.dim))) for axis in axes]
    # To the right, upwards and to the eye make a right-handed triad on the plane of every axis but 0 and 1.
    towards = (-1.0 if plane.axis < 2 else 1.0) if grid.dim == 3 else 0.0
    outwards = vector(*(towards * (k == plane.axis) for k in range(grid.dim)))
    kernels = arrow_kernels(grid.loops, distance is not None, grid.placement)
    kernels.blend_arrows(
        image.array, velocity, image.nothing[0] if distance is None else distance, grid.n, grid.dx, image.width,
        image.height, *plane_window(grid, plane, image), kernels.Count(*arrow_tiles(extent, arrows)),
        kernels.Pair(*extent), *unit, outwards, 1.0 / speed,
    )  # fmt: skip
