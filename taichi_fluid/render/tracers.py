"""Tracers: points without mass that drift with the flow, seen as short streaks of light.

Their births are hashes of their number and of how often they were born, so that the same pictures of the same flow
show them in the same places on every arch.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._ti import argument, ti
from ..boundaries.walls import Walls
from ..grid import Grid
from ..kernels import Array, IntArray, int_vector, kernel_family, loop_shape
from ..operators.interpolation import inside_box
from ..operators.noise import hash_01
from ..operators.vectors import length
from .camera import Eye, View
from .colour_maps import Scale, scale_arguments
from .dots import Dots, LightSum, eye_on, in_sight, on_screen, screen_pixel
from .image import Image, Screen
from .ranges import Flow
from .surfaces import Obstacle

CELLS_PER_STEP = 2.0
"""How many cells a tracer crosses in one step of its path."""
MOST_STEPS = 64
BIRTHS = 8
"""Places tried for a birth, until one lies in the fluid."""
STREAK = 0.02
"""Length of the fastest tracer's streak, in longest edges of the box."""
MOST_DOTS = 16
BRIGHTEN, FADE = 0.15, 0.25
"""Parts of its life in which a tracer appears and vanishes."""
BRIGHTNESS, LEAST = 2.2, 0.22
"""Light of one tracer, and what of it is white, so that the darkest colour is seen."""

_ARRAYS = ("places", "motions", "lives")


@argument
class Crowd:
    """The arrays of a ``Tracers``, how many there are of them, and how long each lives in seconds."""

    places: object
    motions: object
    lives: object
    count: object
    life: object

    @ti.func
    def births(self, k):
        """How often a tracer was born."""
        return ti.cast(self.lives[self.count + k], ti.i32)

    @ti.func
    def vector(self, values: ti.template(), k, n):
        """Place or motion of a tracer."""
        vector = ti.cast(n, ti.f32)
        for axis in ti.static(range(n.n)):
            vector[axis] = values[axis * self.count + k]
        return vector

    @ti.func
    def put(self, k, place, motion, age, births):
        """Remember all of a tracer."""
        for axis in ti.static(range(place.n)):
            self.places[axis * self.count + k] = place[axis]
            self.motions[axis * self.count + k] = motion[axis]
        self.lives[k] = age
        self.lives[self.count + k] = ti.cast(births, ti.f32)


@argument
class Sides:
    """Of each axis whether its sides are periodic, and whether fluid passes through the lower and the upper one."""

    wrap: object
    below: object
    above: object


@ti.func
def _random_place(k, births, attempt, n):
    """Anywhere in the box."""
    p = ti.cast(n, ti.f32)
    for axis in ti.static(range(n.n)):
        random = hash_01(ti.Vector([k, births, attempt, axis]))
        p[axis] = ti.f32(0.5) + random * ti.cast(n[axis], ti.f32)
    return p


@ti.func
def _birthplace(k, births, obstacle):
    """A random place in the fluid, and 1; or 0 if none was found."""
    p = ti.cast(obstacle.n, ti.f32)
    found = 0
    for attempt in range(BIRTHS):
        if found == 0:
            p = _random_place(k, births, attempt, obstacle.n)
            found = 1
            if ti.static(obstacle.there):
                if obstacle.depth_at(p) <= 0:
                    found = 0
    return p, found


@ti.func
def _entrance(k, births, flow, sides, obstacle, fastest, dt):
    """A random place where the fluid enters the box, likelier the faster it does, and 1; or 0 if none was found."""
    n = flow.n
    p = ti.cast(n, ti.f32)
    found = 0
    for attempt in range(2 * BIRTHS):
        if found == 0:
            p = _random_place(k, births, attempt, n)
            side = ti.cast(hash_01(ti.Vector([k, births, attempt, n.n])) * ti.f32(2.0 * n.n), ti.i32)
            least = hash_01(ti.Vector([k, births, attempt, n.n + 1])) * fastest
            for axis in ti.static(range(n.n)):
                for upper in ti.static(range(2)):
                    exits = sides.above[axis] if ti.static(upper) else sides.below[axis]
                    if side == ti.static(2 * axis + upper) and exits == 1:
                        depth = p[axis] - ti.f32(0.5)
                        inward = ti.f32(ti.static(1.0 - 2.0 * upper))
                        p[axis] = ti.f32(0.5) + ti.f32(ti.static(float(upper))) * ti.cast(n[axis], ti.f32)
                        speed = inward * flow.at(p)[axis]
                        if speed > least:
                            # As far in as it came since the last picture.
                            way = depth / ti.cast(n[axis], ti.f32) * speed * dt / obstacle.dx
                            p[axis] += inward * ti.min(way, ti.cast(n[axis], ti.f32))
                            found = 1
            if ti.static(obstacle.there):
                if found == 1 and obstacle.depth_at(p) <= 0:
                    found = 0
    return p, found


@ti.func
def _moved(p, duration, flow, sides, inv_dx):
    """Where a point is after ``duration`` seconds (midpoint rule), and 1; 0 once it has left the box."""
    q = p
    remaining = duration
    here = 1
    steps = 0
    while remaining > 0 and here == 1 and steps < MOST_STEPS:
        steps += 1
        v = flow.at(q) * inv_dx
        h = ti.min(remaining, ti.f32(CELLS_PER_STEP) / ti.max(length(v), ti.f32(1e-20)))
        q += h * flow.at(inside_box(q + ti.f32(0.5) * h * v, flow.n)) * inv_dx
        remaining -= h
        for axis in ti.static(range(q.n)):
            edge = ti.cast(flow.n[axis], ti.f32)
            if sides.wrap[axis] == 1:
                q[axis] -= edge * ti.floor((q[axis] - ti.f32(0.5)) / edge)
            else:
                below, above = q[axis] < ti.f32(0.5), q[axis] > edge + ti.f32(0.5)
                if (sides.below[axis] == 1 and below) or (sides.above[axis] == 1 and above):
                    here = 0
        q = inside_box(q, flow.n)
    return q, here


@ti.func
def _outside_solids(p, obstacle):
    """``p``, moved out of the solid that it may have entered by a rounding error of its path."""
    q = p
    away = obstacle.depth_at(q)
    if away < 0:
        q = inside_box(q + (ti.f32(0.02) - away) * obstacle.normal_at(q, ti.f32(0.5)), obstacle.n)
    return q


@ti.func
def _advance(k, crowd, flow, sides, obstacle, fastest, dt):
    """Age one tracer by ``dt``, let it be born again at the end of its life, and move it."""
    births = crowd.births(k)
    age = crowd.lives[k] + dt
    duration = dt
    p = crowd.vector(crowd.places, k, flow.n)
    here = 1
    if births == 0 or age >= crowd.life:
        if births == 0:
            age = crowd.life * hash_01(ti.Vector([k, 0]))
            duration = ti.f32(0.0)
        else:
            age -= crowd.life * ti.floor(age / crowd.life)
            duration = ti.min(age, dt)
        births += ti.i32(1)
        p, here = _birthplace(k, births, obstacle)
    if here == 1 and duration > 0:
        p, here = _moved(p, duration, flow, sides, ti.f32(1.0) / obstacle.dx)
    if ti.static(obstacle.there):
        p = _outside_solids(p, obstacle)
        if obstacle.depth_at(p) < 0:
            here = 0
    if here == 0:
        # What leaves the box is replaced by what enters it, in full light already; so the crowd stays even.
        births += ti.i32(1)
        age = ti.f32(BRIGHTEN) * crowd.life
        p, here = _entrance(k, births, flow, sides, obstacle, fastest, dt)
        if here == 0:
            age = ti.f32(0.0)
            p, here = _birthplace(k, births, obstacle)
        if here == 0:
            # Nowhere to be: it is past its life, which is not seen, and tries again.
            age = crowd.life
    crowd.put(k, p, flow.at(p), age, births)


@argument
class Streaks:
    """How tracers are drawn: the dots that a streak is made of, its seconds, and brightness."""

    dots: object
    seconds: object
    gain: object


@ti.func
def _draw_tracer(k, crowd, size, eye, scale, streaks, obstacle):
    p, v = crowd.vector(crowd.places, k, obstacle.n), crowd.vector(crowd.motions, k, obstacle.n)
    part = crowd.lives[k] / crowd.life
    weight = ti.min(part / ti.f32(BRIGHTEN), (ti.f32(1.0) - part) / ti.f32(FADE), ti.f32(1.0))
    place, depth = on_screen(p, size, eye)
    tail, tail_depth = on_screen(p - (streaks.seconds / obstacle.dx) * v, size, eye)
    if depth > ti.f32(0.01) and tail_depth > ti.f32(0.01) and weight > 0:
        if ti.static(obstacle.there and p.n == 3):
            weight *= ti.cast(in_sight(p, eye.place, obstacle), ti.f32)
        if weight > 0:
            streak = ti.min(length(tail - place) / streaks.dots.radius, ti.f32(MOST_DOTS - 1.0))
            dots = ti.cast(streak, ti.i32) + 1
            # A longer streak is fainter, but not as faint as its length would have it: the fast ones are worth seeing.
            shine = weight * streaks.gain / ti.sqrt(ti.cast(dots, ti.f32))
            colour = shine * (scale.colour(length(v)) + ti.f32(LEAST))
            for dot in range(dots):
                f = ti.cast(dot, ti.f32) / ti.cast(dots, ti.f32)
                streaks.dots.add(place + f * (tail - place), size, colour * (ti.f32(1.0) - ti.f32(0.7) * f))


@kernel_family
def tracer_kernels(loops, has_solids, on):
    Index, Point, each_pixel, Size = loops.IntVector, loops.FloatVector, loops.each_pixel, int_vector(2)

    @ti.kernel
    def advance(
        places: Array, motions: Array, lives: Array, count: ti.i32, life: ti.f32, velocity: Array, wrap: Index,
        below: Index, above: Index, distance: Array, n: Index, dx: ti.f32, fastest: ti.f32, dt: ti.f32,
    ):  # fmt: skip
        crowd, flow = Crowd(places, motions, lives, count, life), Flow(velocity, n, on)
        sides, obstacle = Sides(wrap, below, above), Obstacle(distance, n, dx, has_solids)
        for k in range(count):
            _advance(k, crowd, flow, sides, obstacle, fastest, dt)

    @ti.kernel
    def draw(
        image: Array, size: Size, places: Array, motions: Array, lives: Array, count: ti.i32, life: ti.f32, eye: Point,
        forward: Point, right: Point, up: Point, table: Array, low: ti.f32, inv_range: ti.f32, light: IntArray,
        streak: ti.f32, radius: ti.f32, gain: ti.f32, distance: Array, n: Index, dx: ti.f32,
    ):  # fmt: skip
        crowd, eye_of_picture = Crowd(places, motions, lives, count, life), Eye(eye, forward, right, up)
        scale, streaks = Scale(table, low, inv_range), Streaks(Dots(light, radius), streak, gain)
        obstacle = Obstacle(distance, n, dx, has_solids)
        for i in range(3 * size[0] * size[1]):
            light[i] = ti.i32(0)
        for k in range(count):
            _draw_tracer(k, crowd, size, eye_of_picture, scale, streaks, obstacle)
        each_pixel(size, screen_pixel, (Screen(image, size), light))

    return advance, draw


class Tracers:
    """A crowd of tracers in one grid.

    Attributes:
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
        self.grid, self.count = grid, count
        self.places, self.motions = (ti.ndarray(ti.f32, grid.dim * count) for _ in range(2))
        self.lives = ti.ndarray(ti.f32, 2 * count)
        self._obstacle = (ti.ndarray(ti.f32, 1) if distance is None else distance, grid.n, grid.dx)
        self._light = LightSum()
        vector = int_vector(grid.dim)
        exits = (vector(*(int(pair[side].passes) for pair in walls.sides)) for side in (0, 1))
        self._sides = (walls.wrap, *exits)
        self._kernels = tracer_kernels(loop_shape(grid.dim), distance is not None, grid.placement)
        self.restart()

    def restart(self) -> None:
        """Forget all tracers; the next ``advance`` seeds them anew."""
        self.time = None
        self.lives.fill(0.0)
        self.places.fill(1.0)

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """All of them: arrays, and numbers."""
        return {name: getattr(self, name).to_numpy() for name in _ARRAYS}, {"count": self.count, "time": self.time}

    def restore_state(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> None:
        """Be what ``state`` has found.

        Raises:
            ValueError: for arrays of another number of tracers.
        """
        for name in _ARRAYS:
            values, array = arrays.get(name), getattr(self, name)
            if values is None or values.shape != tuple(array.shape):
                raise ValueError(f"{name} of the tracers are missing, or of another number")
            array.from_numpy(np.ascontiguousarray(values))
        self.time = numbers["time"]

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
        crowd = self.places, self.motions, self.lives, self.count, life
        self._kernels.advance(*crowd, velocity, *self._sides, *self._obstacle, fastest, dt)

    def draw(self, image: Image, view: View | None, table, limits: tuple[float, float], life: float) -> None:
        """Add the tracers to what ``image`` shows; solids hide those behind them.

        Their colours are those of a ``table``, a colour map on the device with speeds at its ends, m/s; ``life`` is as in
        ``advance``. The view, in metres, is None in 2D.
        """
        grid = self.grid
        grid.require_runtime()
        fastest = max(abs(limits[0]), abs(limits[1]))
        streak = STREAK * max(grid.size) / fastest if fastest > 0 else 0.0
        radius = max(1.0, min(image.width, image.height) / 480)
        crowd = self.places, self.motions, self.lives, self.count, life
        drawn = (*scale_arguments(table, limits), self._light.fit(image), streak, radius, BRIGHTNESS)
        self._kernels.draw(*image.screen, *crowd, *eye_on(grid, image, view), *drawn, *self._obstacle)
