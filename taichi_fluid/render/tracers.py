"""Tracers: points without mass that drift with the flow, seen as short streaks of light.

Their births are hashes of their number and of how often they were born, so that the same pictures of the same flow
show them in the same places on every arch.
"""

from .._ti import ti
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import Array, IntArray, float_vector, int_vector, kernel_family, loop_shape
from ..operators.interpolation import inside_box
from ..operators.noise import hash_01
from .camera import View
from .colour_maps import mapped_colour
from .image import Image, fit_plane
from .surfaces import depth_at
from .volume import box_span

CELLS_PER_STEP = 2.0
"""How many cells a tracer crosses in one step of its path."""
MOST_STEPS = 64
BIRTHS = 8
"""Places tried for a birth, until one lies in the fluid."""
STREAK = 0.02
"""Length of the fastest tracer's streak, in longest edges of the box."""
MOST_DOTS = 16
UNIT = 1024.0
"""Light is summed in whole numbers, this many to a unit: sums of integers do not depend on their order."""
BRIGHTEN, FADE = 0.15, 0.25
"""Parts of its life in which a tracer appears and vanishes."""
BRIGHTNESS, LEAST = 2.2, 0.22
"""Light of one tracer, and what of it is white, so that the darkest colour is seen."""
_BIRTHS = 1


@ti.func
def _birthplace(k, births, n, distance: ti.template(), dx, has_solids: ti.template()):
    """A random place in the fluid, and 1; or 0 if none was found."""
    p = ti.cast(n, ti.f32)
    found = 0
    for attempt in range(BIRTHS):
        if found == 0:
            for axis in ti.static(range(n.n)):
                random = hash_01(ti.Vector([k, births, attempt, axis]))
                p[axis] = ti.f32(0.5) + random * ti.cast(n[axis], ti.f32)
            found = 1
            if ti.static(has_solids):
                if depth_at(distance, p, n, dx) <= 0:
                    found = 0
    return p, found


@ti.func
def _entrance(
    k, births, velocity: ti.template(), fastest, dt, n, distance: ti.template(), dx, exits_below, exits_above,
    has_solids: ti.template(), on: ti.template(),
):  # fmt: skip
    """A random place where the fluid enters the box, likelier the faster it does, and 1; or 0 if none was found."""
    p = ti.cast(n, ti.f32)
    found = 0
    for attempt in range(2 * BIRTHS):
        if found == 0:
            chance = ti.Vector([ti.f32(0.0), ti.f32(0.0)])
            for d in ti.static(range(2)):
                chance[d] = hash_01(ti.Vector([k, births, attempt, n.n + d]))
            for axis in ti.static(range(n.n)):
                random = hash_01(ti.Vector([k, births, attempt, axis]))
                p[axis] = ti.f32(0.5) + random * ti.cast(n[axis], ti.f32)
            side = ti.cast(chance[0] * ti.f32(2.0 * n.n), ti.i32)
            for axis in ti.static(range(n.n)):
                for upper in ti.static(range(2)):
                    exits = exits_above[axis] if ti.static(upper) else exits_below[axis]
                    if side == ti.static(2 * axis + upper) and exits == 1:
                        depth = p[axis] - ti.f32(0.5)
                        inward = ti.f32(ti.static(1.0 - 2.0 * upper))
                        edge = ti.f32(0.5) + ti.f32(ti.static(float(upper))) * ti.cast(n[axis], ti.f32)
                        p[axis] = edge
                        speed = inward * on.sample(velocity, p, n)[axis]
                        if speed > chance[1] * fastest:
                            # As far in as it came since the last picture.
                            way = depth / ti.cast(n[axis], ti.f32) * speed * dt / dx
                            p[axis] += inward * ti.min(way, ti.cast(n[axis], ti.f32))
                            found = 1
            if ti.static(has_solids):
                if found == 1 and depth_at(distance, p, n, dx) <= 0:
                    found = 0
    return p, found


@ti.func
def _moved(p, velocity: ti.template(), duration, n, inv_dx, wrap, exits_below, exits_above, on: ti.template()):
    """Where a point is after ``duration`` seconds (midpoint rule), and 1; 0 once it has left the box."""
    q = p
    remaining = duration
    here = 1
    steps = 0
    while remaining > 0 and here == 1 and steps < MOST_STEPS:
        steps += 1
        v = on.sample(velocity, q, n) * inv_dx
        h = ti.min(remaining, ti.f32(CELLS_PER_STEP) / ti.max(ti.sqrt(v.norm_sqr()), ti.f32(1e-20)))
        middle = inside_box(q + ti.f32(0.5) * h * v, n)
        q += h * on.sample(velocity, middle, n) * inv_dx
        remaining -= h
        for axis in ti.static(range(n.n)):
            edge = ti.cast(n[axis], ti.f32)
            if wrap[axis] == 1:
                q[axis] -= edge * ti.floor((q[axis] - ti.f32(0.5)) / edge)
            else:
                below, above = q[axis] < ti.f32(0.5), q[axis] > edge + ti.f32(0.5)
                if (exits_below[axis] == 1 and below) or (exits_above[axis] == 1 and above):
                    here = 0
        q = inside_box(q, n)
    return q, here


@ti.func
def _outside_solids(p, distance: ti.template(), n, dx):
    """``p``, moved out of the solid that it may have entered by a rounding error of its path."""
    q = p
    away = depth_at(distance, q, n, dx)
    if away < 0:
        normal = q * ti.f32(0.0)
        for axis in ti.static(range(q.n)):
            before, behind = q, q
            before[axis] -= ti.f32(0.5)
            behind[axis] += ti.f32(0.5)
            normal[axis] = depth_at(distance, inside_box(behind, n), n, dx)
            normal[axis] -= depth_at(distance, inside_box(before, n), n, dx)
        normal /= ti.max(ti.sqrt(normal.norm_sqr()), ti.f32(1e-20))
        q = inside_box(q + (ti.f32(0.02) - away) * normal, n)
    return q


@ti.func
def _advance(
    k, count, places: ti.template(), motions: ti.template(), lives: ti.template(), velocity: ti.template(),
    distance: ti.template(), n, dx, dt, life, fastest, wrap, exits_below, exits_above, has_solids: ti.template(),
    on: ti.template(),
):  # fmt: skip
    """Age one tracer by ``dt``, let it be born again at the end of its life, and move it."""
    births = ti.cast(lives[ti.static(_BIRTHS) * count + k], ti.i32)
    age = lives[k] + dt
    duration = dt
    p = ti.cast(n, ti.f32)
    for axis in ti.static(range(n.n)):
        p[axis] = places[axis * count + k]
    here = 1
    if births == 0 or age >= life:
        if births == 0:
            age = life * hash_01(ti.Vector([k, 0]))
            duration = ti.f32(0.0)
        else:
            age -= life * ti.floor(age / life)
            duration = ti.min(age, dt)
        births += ti.i32(1)
        p, here = _birthplace(k, births, n, distance, dx, has_solids)
    if here == 1 and duration > 0:
        p, here = _moved(p, velocity, duration, n, ti.f32(1.0) / dx, wrap, exits_below, exits_above, on)
    if ti.static(has_solids):
        p = _outside_solids(p, distance, n, dx)
        if depth_at(distance, p, n, dx) < 0:
            here = 0
    if here == 0:
        # What leaves the box is replaced by what enters it, in full light already; so the crowd stays even.
        births += ti.i32(1)
        age = ti.f32(BRIGHTEN) * life
        p, here = _entrance(k, births, velocity, fastest, dt, n, distance, dx, exits_below, exits_above, has_solids, on)
        if here == 0:
            age = ti.f32(0.0)
            p, here = _birthplace(k, births, n, distance, dx, has_solids)
        if here == 0:
            # Nowhere to be: it is past its life, which is not seen, and tries again.
            age = life
    v = on.sample(velocity, p, n)
    for axis in ti.static(range(n.n)):
        places[axis * count + k] = p[axis]
        motions[axis * count + k] = v[axis]
    lives[k] = age
    lives[ti.static(_BIRTHS) * count + k] = ti.cast(births, ti.f32)


@ti.func
def _in_sight(p, eye, distance: ti.template(), n, dx):
    """1 unless a solid stands between a point and the eye."""
    length = ti.sqrt((eye - p).norm_sqr())
    way = (eye - p) * (ti.f32(1.0) / length)
    leave = ti.min(box_span(p, way, n)[1], length)
    t = ti.f32(0.0)
    clear = 1
    while t < leave and clear == 1:
        away = depth_at(distance, inside_box(p + t * way, n), n, dx)
        if away < 0:
            clear = 0
        t += ti.max(ti.f32(0.9) * away, ti.f32(0.33))
    return clear


@ti.func
def _on_screen(p, width, height, eye, forward, right, up, dim: ti.template()):
    """Pixel of a point, and its depth before the eye; in 2D ``eye`` is the lower left corner, in ``right[0]`` cells.

    The pixel's middle is half a pixel from its number.
    """
    place = ti.Vector([ti.f32(0.0), ti.f32(0.0)])
    depth = ti.f32(1.0)
    offset = p - eye
    if ti.static(dim == 3):
        depth = offset.dot(forward)
        safe = ti.max(depth, ti.f32(1e-3))
        place[0] = (ti.f32(0.5) + ti.f32(0.5) * offset.dot(right) / (safe * right.norm_sqr())) * ti.cast(width, ti.f32)
        place[1] = (ti.f32(0.5) - ti.f32(0.5) * offset.dot(up) / (safe * up.norm_sqr())) * ti.cast(height, ti.f32)
    else:
        place[0] = offset[0] / right[0]
        place[1] = ti.cast(height, ti.f32) - offset[1] / right[0]
    return place, depth


@ti.func
def _add_dot(light: ti.template(), place, width, height, radius, colour):
    """Add a round dot of light around a place.

    Several tracers may meet in one pixel, so this is an atomic sum; of integers, whose order does not matter.
    """
    reach = ti.cast(ti.ceil(radius), ti.i32)
    left, top = ti.cast(ti.floor(place[0]), ti.i32), ti.cast(ti.floor(place[1]), ti.i32)
    for y in range(top - reach, top + reach + 1):
        for x in range(left - reach, left + reach + 1):
            beside = ti.Vector([ti.cast(x, ti.f32), ti.cast(y, ti.f32)]) + ti.f32(0.5) - place
            weight = ti.f32(1.0) - ti.sqrt(beside.norm_sqr()) / radius
            if weight > 0 and x >= 0 and y >= 0 and x < width and y < height:
                for channel in ti.static(range(3)):
                    amount = ti.cast(ti.f32(UNIT) * weight * colour[channel] + ti.f32(0.5), ti.i32)
                    ti.atomic_add(light[3 * (y * width + x) + channel], amount)


@ti.func
def _draw_tracer(
    k, count, light: ti.template(), places: ti.template(), motions: ti.template(), lives: ti.template(),
    table: ti.template(), distance: ti.template(), n, dx, life, width, height, eye, forward, right, up, low, inv_range,
    streak, radius, gain, has_solids: ti.template(),
):  # fmt: skip
    p, v = ti.cast(n, ti.f32), ti.cast(n, ti.f32)
    for axis in ti.static(range(n.n)):
        p[axis] = places[axis * count + k]
        v[axis] = motions[axis * count + k]
    part = lives[k] / life
    weight = ti.min(part / ti.f32(BRIGHTEN), (ti.f32(1.0) - part) / ti.f32(FADE), ti.f32(1.0))
    place, depth = _on_screen(p, width, height, eye, forward, right, up, n.n)
    tail, tail_depth = _on_screen(p - (streak / dx) * v, width, height, eye, forward, right, up, n.n)
    if depth > ti.f32(0.01) and tail_depth > ti.f32(0.01) and weight > 0:
        if ti.static(has_solids and n.n == 3):
            weight *= ti.cast(_in_sight(p, eye, distance, n, dx), ti.f32)
        if weight > 0:
            length = ti.min(ti.sqrt((tail - place).norm_sqr()) / radius, ti.f32(MOST_DOTS - 1.0))
            dots = ti.cast(length, ti.i32) + 1
            # A longer streak is fainter, but not as faint as its length would have it: the fast ones are worth seeing.
            shine = weight * gain / ti.sqrt(ti.cast(dots, ti.f32))
            colour = shine * (mapped_colour(table, (ti.sqrt(v.norm_sqr()) - low) * inv_range) + ti.f32(LEAST))
            for dot in range(dots):
                f = ti.cast(dot, ti.f32) / ti.cast(dots, ti.f32)
                _add_dot(
                    light, place + f * (tail - place), width, height, radius, colour * (ti.f32(1.0) - ti.f32(0.7) * f)
                )


@ti.func
def _screen_pixel(x, y, image: ti.template(), light: ti.template(), width):
    """Light over a picture: neither can make the other darker, nor both together more than white."""
    pixel = 3 * (y * width + x)
    for channel in ti.static(range(3)):
        added = ti.exp(-ti.cast(light[pixel + channel], ti.f32) * ti.f32(1.0 / UNIT))
        image[pixel + channel] = ti.f32(1.0) - (ti.f32(1.0) - image[pixel + channel]) * added


@kernel_family
def tracer_kernels(loops, has_solids, on):
    IntVector, FloatVector, each_pixel = loops.IntVector, loops.FloatVector, loops.each_pixel

    @ti.kernel
    def advance(
        places: Array, motions: Array, lives: Array, velocity: Array, distance: Array, count: ti.i32, n: IntVector,
        dx: ti.f32, dt: ti.f32, life: ti.f32, fastest: ti.f32, wrap: IntVector, exits_below: IntVector, exits_above: IntVector,
    ):  # fmt: skip
        for k in range(count):
            _advance(
                k, count, places, motions, lives, velocity, distance, n, dx, dt, life, fastest, wrap, exits_below, exits_above,
                has_solids, on,
            )  # fmt: skip

    @ti.kernel
    def draw(
        image: Array, light: IntArray, places: Array, motions: Array, lives: Array, table: Array, distance: Array,
        count: ti.i32, n: IntVector, dx: ti.f32, life: ti.f32, width: ti.i32, height: ti.i32, eye: FloatVector,
        forward: FloatVector, right: FloatVector, up: FloatVector, low: ti.f32, inv_range: ti.f32, streak: ti.f32,
        radius: ti.f32, gain: ti.f32,
    ):  # fmt: skip
        for i in range(3 * width * height):
            light[i] = ti.i32(0)
        for k in range(count):
            _draw_tracer(
                k, count, light, places, motions, lives, table, distance, n, dx, life, width, height, eye, forward,
                right, up, low, inv_range, streak, radius, gain, has_solids,
            )  # fmt: skip
        each_pixel(width, height, _screen_pixel, (image, light, width))

    return {"advance": advance, "draw": draw}


class Tracers:
    """A crowd of tracers in one grid.

    Attributes:
        count: How many there are.
        places: In cells, component after component: ``dim`` times ``count`` numbers.
        motions: Velocities, m/s, in the same order.
        lives: Ages in seconds, then how often each was born.
        time: Simulated seconds that they have reached; None before the first.

    Args:
        grid: The grid.
        walls: Its sides: through some tracers leave, through periodic ones they come back.
        distance: To the nearest solid at the lower corners of the cells, m; None without solids.
        count: How many.
    """

    def __init__(self, grid: Grid, walls: Walls, distance, count: int):
        self.grid, self.count, self._distance = grid, count, distance
        self.places, self.motions = (ti.ndarray(ti.f32, grid.dim * count) for _ in range(2))
        self.lives = ti.ndarray(ti.f32, 2 * count)
        self._nothing = ti.ndarray(ti.f32, 1)
        self._light = None
        vector = int_vector(grid.dim)
        self._sides = (
            walls.wrap,
            *(vector(*(int(pair[side].kind.passes) for pair in walls.sides)) for side in (0, 1)),
        )
        self._kernels = tracer_kernels(loop_shape(grid.dim), distance is not None, grid.placement)
        self.restart()

    def restart(self) -> None:
        """Forget all tracers; the next ``advance`` seeds them anew."""
        self.time = None
        self.lives.fill(0.0)
        self.places.fill(1.0)

    def advance(self, velocity, time: float, life: float, fastest: float) -> None:
        """Let the tracers drift to ``time`` in a velocity that is taken as steady since they last did.

        Args:
            velocity: Of the grid, m/s, ghosts filled.
            time: Simulated seconds; if earlier than before, the tracers are seeded anew.
            life: How long a tracer lives, s.
            fastest: No fluid enters the box at a higher speed, m/s.
        """
        self.grid.require(self.grid.dim, velocity=velocity)
        if self.time is not None and time < self.time:
            self.restart()
        dt = 0.0 if self.time is None else time - self.time
        self.time = time
        distance = self._nothing if self._distance is None else self._distance
        self._kernels.advance(
            self.places, self.motions, self.lives, velocity, distance, self.count, self.grid.n, self.grid.dx, dt, life, fastest,
            *self._sides,
        )  # fmt: skip

    def draw(self, image: Image, view: View | None, table, limits: tuple[float, float], life: float) -> None:
        """Add the tracers to what ``image`` shows; solids hide those behind them.

        Args:
            image: What to draw into.
            view: The camera's view in metres; None in 2D.
            table: A colour map on the device.
            limits: Speeds at its two ends, m/s.
            life: As in ``advance``.
        """
        grid, vector = self.grid, float_vector(self.grid.dim)
        grid.require_runtime()
        size = image.array.shape[0]
        if self._light is None or self._light.shape[0] < size:
            ti.sync()  # an array in use is never freed on Vulkan
            self._light = ti.ndarray(ti.i32, size)
        if view is None:
            (left, low), cells_per_pixel = fit_plane(grid.shape, image)
            place = [(0.5 + left, 0.5 + low), (0.0, 0.0), (cells_per_pixel, 0.0), (0.0, cells_per_pixel)]
        else:
            place = [view.eye_in_cells(grid), view.forward, view.right, view.up]
        span = limits[1] - limits[0]
        fastest = max(abs(limits[0]), abs(limits[1]))
        streak = STREAK * max(grid.size) / fastest if fastest > 0 else 0.0
        radius = max(1.0, min(image.width, image.height) / 480)
        self._kernels.draw(
            image.array, self._light, self.places, self.motions, self.lives, table,
            self._nothing if self._distance is None else self._distance, self.count, grid.n, grid.dx, life,
            image.width, image.height, *(vector(*p) for p in place), limits[0], 1.0 / span if span else 0.0,
            streak, radius, BRIGHTNESS,
        )  # fmt: skip
