"""Arrows of the velocity on a plane, one in each tile of a chequerboard.

Every pixel belongs to one tile and no arrow is longer than its tile: a pixel has but one arrow to look at.
"""

from .._ti import argument, ti
from ..grid import Grid, given
from ..kernels import Array, float_vector, int_vector, kernel_family
from ..operators.interpolation import inside_box
from ..operators.vectors import length
from .image import Image, Screen
from .ranges import Flow, Plane
from .slices import Wet, Window, plane_window
from .surfaces import Obstacle

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


@argument
class Tiling:
    """The plane that arrows lie on: how many tiles along its edges, these in cells, and three unit vectors."""

    tiles: object
    extent: object
    horizontal: object
    vertical: object
    outwards: object

    @ti.func
    def along(self, vector):
        """The part of a vector along the plane."""
        return ti.Vector([vector.dot(self.horizontal), vector.dot(self.vertical)])

    @ti.func
    def to_middle(self, q, tile):
        """The way in cells from a point to the middle of its tile of this size."""
        place = self.along(q) - ti.f32(0.5)
        way = place
        for d in ti.static(range(2)):
            number = ti.min(ti.max(ti.cast(ti.floor(place[d] / tile[d]), ti.i32), 0), self.tiles[d] - 1)
            way[d] = (ti.cast(number, ti.f32) + ti.f32(0.5)) * tile[d] - place[d]
        return way


@ti.func
def _part_within(reach, distance):
    """Part of a pixel that lies within ``reach``, less half a pixel, of what is at this distance in pixels."""
    return ti.min(ti.max(ti.f32(reach) - distance, ti.f32(0.0)), ti.f32(1.0))


@ti.func
def _tint(lean):
    """Towards the eye warm, away from it cool: ``lean`` is the part of the longest arrow that points there."""
    towards, away = ti.min(ti.max(lean, ti.f32(0.0)), ti.f32(1.0)), ti.min(ti.max(-lean, ti.f32(0.0)), ti.f32(1.0))
    cool = ti.Vector([ti.f32(0.65), ti.f32(0.2), ti.f32(0.0)])
    warm = ti.Vector([ti.f32(0.0), ti.f32(0.4), ti.f32(0.75)])
    return ti.f32(1.0) - towards * warm - away * cool


@ti.func
def _arrow_pixel(x, y, screen, window, tiling, flow, inv_speed, obstacle, wet):
    """Blend the arrow of a pixel's tile over it; ``inv_speed`` is 1 over that of the longest arrow."""
    q = window.point(x, y, screen)
    inside = inside_box(q, flow.n)
    if (q - inside).norm_sqr() < ti.f32(1e-6):
        cells_per_pixel = window.cells_per_pixel()
        tile = tiling.extent / ti.cast(tiling.tiles, ti.f32)
        way = tiling.to_middle(q, tile)
        edge = ti.min(tile[0], tile[1]) / cells_per_pixel
        p = inside_box(q + way[0] * tiling.horizontal + way[1] * tiling.vertical, flow.n)
        v = flow.at(p) * inv_speed
        along_plane = tiling.along(v)
        speed = length(along_plane)
        long = ti.min(speed, ti.f32(1.0)) * ti.f32(LONGEST) * edge
        # Below two pixels an arrow is a dot: it fades out.
        visible = ti.min(ti.max(long - ti.f32(1.0), ti.f32(0.0)), ti.f32(1.0))
        if ti.static(wet.there):
            if wet.height_at(p) >= 0:
                visible = ti.f32(0.0)
        if ti.static(obstacle.there):
            if obstacle.depth_at(p) < 0:
                visible = ti.f32(0.0)
            visible *= _part_within(0.5, -obstacle.depth_at(inside) / cells_per_pixel)
        if visible > 0:
            direction, offset = along_plane / speed, -way / cells_per_pixel
            beside = ti.abs(offset[0] * direction[1] - offset[1] * direction[0])
            away = _arrow_distance(offset.dot(direction), beside, long, edge)
            ink = visible * _part_within(0.5, away)
            rim = visible * _part_within(0.5 + OUTLINE, away) * ti.f32(0.8)
            before = screen.colour(x, y) * (ti.f32(1.0) - rim)
            screen.put(x, y, before + ink * (_tint(v.dot(tiling.outwards)) - before))


@kernel_family
def arrow_kernels(loops, has_solids, has_liquid, on):
    Index, Point, each_pixel = loops.IntVector, loops.FloatVector, loops.each_pixel
    Size, Pair = int_vector(2), float_vector(2)

    @ti.kernel
    def blend_arrows(
        image: Array, size: Size, corner: Point, across: Point, upward: Point, tiles: Size, extent: Pair,
        horizontal: Point, vertical: Point, outwards: Point, velocity: Array, inv_speed: ti.f32, distance: Array,
        level: Array, n: Index, dx: ti.f32,
    ):  # fmt: skip
        screen, window, flow = Screen(image, size), Window(corner, across, upward), Flow(velocity, n, on)
        tiling, obstacle = Tiling(tiles, extent, horizontal, vertical, outwards), Obstacle(distance, n, dx, has_solids)
        wet = Wet(level, n, dx, has_liquid)
        each_pixel(size, _arrow_pixel, (screen, window, tiling, flow, inv_speed, obstacle, wet))

    return (blend_arrows,)


def arrow_tiles(extent: tuple[int, int], arrows: int) -> tuple[int, int]:
    """How many tiles lie along the two edges of a plane of ``extent`` cells, ``arrows`` along the longer one."""
    return tuple(max(1, round(arrows * edge / max(extent))) for edge in extent)


def render_arrows(
    grid: Grid, velocity, image: Image, plane: Plane, arrows: int, speed: float, distance=None, level=None
) -> None:
    """Draw arrows of the velocity along a plane over what ``image`` shows.

    Args:
        grid: The grid.
        velocity: On lower faces, m/s, ghosts filled.
        image: What to draw into.
        plane: Where; the velocity across it tints the arrows.
        arrows: How many along the longer edge.
        speed: That of the longest arrow, m/s.
        distance: To the nearest solid at the lower corners of the cells, m; solids hide arrows.
        level: Of a liquid, at cell centres, m, ghosts filled: the air has none.
    """
    grid.require(**given(distance=distance, level=level))
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
    tiling = (int_vector(2)(*arrow_tiles(extent, arrows)), float_vector(2)(*extent), *unit, outwards)
    bounds = *image.or_nothing(distance, level), grid.n, grid.dx
    arrow_kernels(grid.loops, distance is not None, level is not None, grid.placement).blend_arrows(
        *image.screen, *plane_window(grid, plane, image), *tiling, velocity, 1.0 / speed, *bounds
    )
