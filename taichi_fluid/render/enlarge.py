"""A picture in another size: what was drawn coarsely is shown in full."""

from .._ti import ti
from ..kernels import Array, float_vector, int_vector, kernel_family, loop_shape
from .image import Image, Screen


@ti.func
def _enlarged_pixel(x, y, screen, drawn, step):
    """Linear interpolation between the four nearest pixels of what is ``drawn``, which lie ``step`` apart."""
    place = ti.Vector([ti.cast(x, ti.f32), ti.cast(y, ti.f32)])
    place = ti.max((place + ti.f32(0.5)) * step - ti.f32(0.5), ti.f32(0.0))
    place = ti.min(place, ti.cast(drawn.size - 1, ti.f32))
    first = ti.cast(place, ti.i32)
    last, fraction = ti.min(first + 1, drawn.size - 1), place - ti.cast(first, ti.f32)
    upper, upper_right = drawn.colour(first[0], first[1]), drawn.colour(last[0], first[1])
    lower, lower_right = drawn.colour(first[0], last[1]), drawn.colour(last[0], last[1])
    upper += fraction[0] * (upper_right - upper)
    lower += fraction[0] * (lower_right - lower)
    screen.put(x, y, upper + fraction[1] * (lower - upper))


@kernel_family
def enlarge_kernels(loops):
    Size, Pair, each_pixel = int_vector(2), float_vector(2), loops.each_pixel

    @ti.kernel
    def enlarge(out: Array, out_size: Size, image: Array, size: Size, step: Pair):
        each_pixel(out_size, _enlarged_pixel, (Screen(out, out_size), Screen(image, size), step))

    return (enlarge,)


def enlarge(image: Image, out: Image) -> None:
    """Fill ``out`` with ``image``, scaled."""
    step = float_vector(2)(image.width / out.width, image.height / out.height)
    enlarge_kernels(loop_shape(2)).enlarge(*out.screen, *image.screen, step)
