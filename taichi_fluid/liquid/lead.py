"""What makes the step of a liquid one of second order: how far velocities are ahead, in time, of what they move.

A step moves the liquid, and then changes its velocity. So that this is, in the next one, the velocity halfway, what changes
it acts for as long as from the middle of the one step to the middle of the other.

Particles keep their velocity on their way, and what forces and pressure do to it in a step comes at its end. Where the way
bends, the velocity should have turned along it: what goes round by an angle in a step would lose half of the square of that
of its speed. So particles set out with half of the change of the last step added, and faces have it taken off again when
they have been told by them: what is left is how it has been carried. It is the reflection of Narain, Zehnder and
Thomaszewski (2019), in place: what does not move, small waves too, goes as it did without.
"""

from .._ti import ti
from ..grid import Grid
from ..kernels import Array, cells_of, copy_values, kernel_family
from ..physics.advection import add_gain

PART, MOST = 0.2, 0.02
"""Of what the velocity is not halfway, as steps differ, the part that is made up for in each, and how much that is of a step at the most.
More, and the pressure would swing with the steps: what a stream turns by in one hangs on that alone."""


@ti.func
def _find_at(c, I, s, velocity: Array, lead: Array, ahead: Array, n, part):
    for axis in ti.static(range(n.n)):
        face = c + axis * cells_of(s, n)
        lead[face] = part * (velocity[face] - lead[face])
        ahead[face] = velocity[face] + lead[face]


@kernel_family
def lead_kernels(loops):
    IntVector = loops.IntVector

    @ti.kernel
    def find(velocity: Array, lead: Array, ahead: Array, n: IntVector, part: ti.f32):
        loops.each_cell_in(n * 0, n + 2, n, _find_at, (velocity, lead, ahead, n, part))

    return (find,)


class Lead:
    """By how much the particles of one grid are faster than its faces.

    Args:
        grid: A staggered grid.

    Attributes:
        wanted: Whether they are to be, from the next ``take_off`` or ``find`` on.
        velocity: By how much, m/s, on the faces; between ``take_off`` and ``find`` the velocity itself that a step begins with.
            None while there is none.
        ahead: By how many seconds it is ahead of where the liquid is.
        acts: For how many seconds forces, friction and pressure act in this step.
        middle: When the middle of that is, in seconds after the step has begun.
    """

    def __init__(self, grid: Grid):
        self.grid, self.wanted, self.velocity = grid, False, None
        self.ahead = self.acts = self.middle = self._half = 0.0

    @property
    def of_particles(self) -> float:
        """By how many seconds the velocities of the particles are ahead of where these are."""
        return self.ahead if self.velocity is None else self.ahead + self._half

    def allocate(self) -> None:
        """Have room for it, if there is none yet."""
        if self.velocity is None:
            self.velocity = self.grid.velocity()
            self.velocity.fill(0.0)

    def clear(self) -> None:
        """Have the particles as fast as the faces."""
        self._half = 0.0
        if self.velocity is not None:
            self.velocity.fill(0.0)

    def add(self, velocity, times: float) -> None:
        """Add it to a velocity, m/s, so many times."""
        if self.velocity is not None:
            add_gain(self.grid, velocity, self.velocity, times)

    def take_off(self, velocity, dt: float) -> None:
        """Take it off a velocity that particles have told after ``dt`` seconds, and begin with that what changes it."""
        self._half = 0.5 * dt
        lacks = self._half - self.ahead
        self.acts = dt + (max(min(PART * lacks, MOST * dt), -MOST * dt) if self.ahead else lacks)
        self.middle = self.ahead + 0.5 * self.acts
        self.ahead += self.acts - dt
        if self.wanted:
            self.allocate()
        if self.velocity is not None:
            self.add(velocity, -1.0)
            copy_values(velocity, self.velocity)

    @property
    def told(self):
        """Between ``take_off`` and ``find`` the velocity that a step begins with, to be continued as far as what it makes of that; or None."""
        return self.velocity if self.wanted else None

    def find(self, velocity, ahead):
        """Find it anew, at the end of a step that has made this velocity.

        Args:
            velocity: m/s, continued beyond the surface, as ``told`` is.
            ahead: An array to work in.

        Returns:
            What the particles are to have: ``ahead``, or the velocity where none is wanted.
        """
        if not self.wanted and self.velocity is not None:
            ti.sync()  # what is dropped here may be in use
            self.velocity = None
        if self.velocity is None:
            return velocity
        lead_kernels(self.grid.loops).find(velocity, self.velocity, ahead, self.grid.n, self._half / self.acts)
        return ahead
