"""A picture in another size: what was drawn coarsely is shown in full."""

from .._ti import ti
from ..kernels import Array, kernel_family, loop_shape
from .image import Image, write_pixel


@ti.func
def _enlarged_pixel(
    x, y, out: ti.template(), image: ti.template(), out_width, width, height, columns, rows
):  # fmt: skip
    """Linear interpolation between the four nearest pixels; ``columns`` and ``rows`` are old pixels per new one."""
    right, down = ti.cast(width - 1, ti.f32), ti.cast(height - 1, ti.f32)
    u = ti.min(ti.max((ti.cast(x, ti.f32) + ti.f32(0.5)) * columns - ti.f32(0.5), ti.f32(0.0)), right)
    v = ti.min(ti.max((ti.cast(y, ti.f32) + ti.f32(0.5)) * rows - ti.f32(0.5), ti.f32(0.0)), down)
    left, top = ti.cast(u, ti.i32), ti.cast(v, ti.i32)
    across = 3 * (ti.min(left + 1, width - 1) - left)
    below = 3 * width * (ti.min(top + 1, height - 1) - top)
    along, down_along = u - ti.cast(left, ti.f32), v - ti.cast(top, ti.f32)
    at = 3 * (top * width + left)
    colour = ti.Vector([ti.f32(0.0), ti.f32(0.0), ti.f32(0.0)])
    for channel in ti.static(range(3)):
        upper = image[at + channel] + along * (image[at + across + channel] - image[at + channel])
        lower = image[at + below + channel]
        lower += along * (image[at + below + across + channel] - lower)
        colour[channel] = upper + down_along * (lower - upper)
    write_pixel(out, y * out_width + x, colour)


@kernel_family
def enlarge_kernels(loops):
    each_pixel = loops.each_pixel

    @ti.kernel
    def enlarge(
        out: Array, image: Array, out_width: ti.i32, out_height: ti.i32, width: ti.i32, height: ti.i32,
        columns: ti.f32, rows: ti.f32,
    ):  # fmt: skip
        each_pixel(
            out_width, out_height, _enlarged_pixel, (out, image, out_width, width, height, columns, rows)
        )  # fmt: skip

    return {"enlarge": enlarge}


def enlarge(image: Image, out: Image) -> None:
    """Fill ``out`` with ``image``, scaled."""
    enlarge_kernels(loop_shape(2)).enlarge(
        out.array, image.array, out.width, out.height, image.width, image.height, image.width / out.width,
        image.height / out.height,
    )  # fmt: skip
