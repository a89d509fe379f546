"""Both flows of a comparison in one picture: the staggered grid on the left, the collocated one on the right."""

from .._ti import ti
from ..kernels import Array, int_vector, kernel_family, loop_shape
from ..scene import Look
from ..simulation import Simulation
from ..simulation.comparison import Comparison, left_in
from .image import Image, Screen
from .label import Label
from .legend import number_text
from .ranges import Smoothed
from .renderer import Pictures, Renderer

GAP = 2
"""Pixels between the halves, and one more where their widths would differ."""
BETWEEN = 0.3
"""Brightness of what lies between the halves."""


@ti.func
def _joined_pixel(x, y, screen, left, right):
    colour = ti.Vector([ti.f32(BETWEEN), ti.f32(BETWEEN), ti.f32(BETWEEN)])
    column = x - (screen.size[0] - right.size[0])
    if column >= 0:
        colour = right.colour(column, y)
    elif x < left.size[0]:
        colour = left.colour(x, y)
    screen.put(x, y, colour)


@kernel_family
def joining_kernels(loops):
    Size, each_pixel = int_vector(2), loops.each_pixel

    @ti.kernel
    def join(image: Array, size: Size, left: Array, left_size: Size, right: Array, right_size: Size):
        each_pixel(size, _joined_pixel, (Screen(image, size), Screen(left, left_size), Screen(right, right_size)))

    return (join,)


def half_width(width: int) -> int:
    """Width of each half of a picture, in pixels; the right one begins that far from the right edge."""
    return max((width - GAP) // 2, 1)


class SideBySide(Pictures):
    """Draws both simulations of a comparison into the halves of one picture, with what each leaves of its divergence.

    Colours and arrows mean the same in both halves.

    Args:
        comparison: What to draw.
        width, height: Of the picture, in pixels; left out, as the scene's output has them.
    """

    def __init__(self, comparison: Comparison, width: int | None = None, height: int | None = None):
        self.comparison = comparison
        wide, high = comparison.scene.picture_size
        self.image = Image(width or wide, height or high)
        spans: dict[str, Smoothed] = {}
        size = (half_width(self.image.width), self.image.height)
        self._halves = [Renderer(simulation, *size, spans) for simulation in comparison.simulations.values()]
        self._labels = [Label() for _ in self._halves]
        self._lines: list[list[str]] = []
        self._larger: list[Image] = []

    def resize(self, width: int, height: int) -> None:
        """Another picture size in pixels."""
        self.image.resize(width, height)
        for half in self._halves:
            half.resize(half_width(width), height)

    def prepare(self) -> None:
        """Copy what the next pictures show, and measure the divergence that is left."""
        self._lines = []
        for half in self._halves:
            half.prepare()
            left = left_in(half.simulation)
            numbers = [f"{number_text(left.max)}/s", f"{number_text(left.part)} speed/dx"]
            self._lines.append([half.simulation.scene.domain.grid, "divergence", *numbers])

    def keep_with_flow(self) -> None:
        """Nothing: there are no checkpoints of both."""

    def prepared_for(self, look: Look) -> bool:
        """Whether ``draw`` could show this look."""
        return all(half.prepared_for(look) for half in self._halves)

    def draw_image(self, finished: bool = True, smooth: bool = False) -> None:
        """Draw what was prepared into ``image``; else only the halves, for ``enlarge_into``."""
        if not self.prepared_for(self.comparison.scene.look):
            self.prepare()
        # Both before either is drawn: what one spans changes the colours of the other.
        for half in self._halves:
            half.measure()
        for half in self._halves:
            half.draw_image(finished, smooth)
        if finished:
            self._join([half.image for half in self._halves], self.image)

    def enlarge_into(self, image: Image) -> None:
        """Fill a larger image, with tracers, legends and labels."""
        size = (half_width(image.width), image.height)
        if not self._larger:
            self._larger = [Image(*size) for _ in self._halves]
        for half, larger in zip(self._halves, self._larger, strict=True):
            larger.resize(*size)
            half.enlarge_into(larger)
        self._join(self._larger, image)

    def _join(self, halves: list[Image], image: Image) -> None:
        for label, half, lines in zip(self._labels, halves, self._lines, strict=True):
            label.draw(half, lines)
        left, right = halves
        joining_kernels(loop_shape(2)).join(*image.screen, *left.screen, *right.screen)


def pictures_of(flow: Simulation | Comparison, width: int | None = None, height: int | None = None) -> Pictures:
    """What draws a flow: a ``Renderer``, or for a comparison a ``SideBySide``."""
    if isinstance(flow, Comparison):
        return SideBySide(flow, width, height)
    return Renderer(flow, width, height)
