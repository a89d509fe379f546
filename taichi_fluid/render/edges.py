"""Edges without stairs: where a picture's pixels differ from their neighbours, rays beside the middle are sent out too."""

from collections.abc import Iterator

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, IntArray, int_vector, kernel_family, loop_shape
from .camera import View
from .image import Image, Screen

BESIDE = ((0.125, 0.375), (-0.375, 0.125), (0.375, -0.125), (-0.125, -0.375))
"""Further rays of a pixel on an edge, in pixels from its middle: no two in a row or a column of it, nor with the first."""
CONTRAST = 0.05
"""Difference of red, green or blue, of 1, from which on there is an edge between two pixels."""


@ti.func
def sampled(x, y, screen, edges: IntArray, taken, colour_of: ti.template(), args: ti.template()):
    """A pixel that has ``taken`` so many rays gets the mean with one more, ``colour_of(x, y, *args)``, if it is on an edge.

    The first ray is that of every pixel.
    """
    wanted = taken == 0
    if not wanted:
        wanted = edges[y * screen.size[0] + x] == 1
    if wanted:
        colour = colour_of(x, y, *args)
        if taken > 0:
            before = screen.colour(x, y)
            colour = before + (colour - before) / ti.cast(taken + 1, ti.f32)
        screen.put(x, y, colour)


@ti.func
def _mark_edge(x, y, screen, edges: IntArray):
    own, most = screen.colour(x, y), ti.f32(0.0)
    for way in ti.static((-1, 1)):
        beside = ti.min(ti.max(x + way, 0), screen.size[0] - 1)
        above = ti.min(ti.max(y + way, 0), screen.size[1] - 1)
        most = ti.max(most, ti.abs(screen.colour(beside, y) - own).max(), ti.abs(screen.colour(x, above) - own).max())
    edges[y * screen.size[0] + x] = ti.cast(most > ti.f32(CONTRAST), ti.i32)


@kernel_family
def edge_kernels(loops):
    @ti.kernel
    def mark(image: Array, size: int_vector(2), edges: IntArray):
        loops.each_pixel(size, _mark_edge, (Screen(image, size), edges))

    return (mark,)


def rays_of(image: Image, view: View, grid: Grid) -> Iterator[tuple]:
    """Arguments for each time that the rays of a picture are sent out: an ``Eye``, where edges are, how many times before.

    A picture that is not ``smooth`` has one ray for each pixel; one that is has those ``BESIDE`` it on edges as well.
    """
    yield (*view.in_cells(grid), image.edges, 0)
    if image.smooth:
        edge_kernels(loop_shape(2)).mark(*image.screen, image.edges)
        for taken, (across, upward) in enumerate(BESIDE, 1):
            beside = view.turned(2 * across / image.width, 2 * upward / image.height)
            yield (*beside.in_cells(grid), image.edges, taken)
