"""Does a scene fit into this machine: asked before anything is allocated."""

import math
import os

from ..carried import CARRIED, rate_of
from ..limits import MAX_ARRAY_BYTES
from .rules import Scene
from .text import SceneError


def bytes_needed(scene: Scene) -> int:
    """Device memory that the scene takes, simulated on one grid or on both, in bytes; an estimate from above."""
    padded = math.prod(n + 2 for n in scene.domain.shape)
    dim = scene.dim
    words = 2 * dim + 2 * sum(scene.carried.values())  # velocity and what it carries, twice
    words += dim + 3 + (dim if scene.domain.grid == "collocated" else 1)  # room to work in
    reflects = scene.solver.scheme == "reflection"
    if reflects and scene.liquid is None and scene.domain.grid == "staggered":
        words += dim + 1  # the velocity that carries, the pressure of the first half
        words += dim if scene.fluid.viscosity else 0  # what is set apart from what is carried
    words += 1 + 1 + 3 + (6 if dim == 3 else 8) / 2  # pressure, its residual, finest and coarser levels
    if scene.expands or scene.combustion.burn_rate:
        words += 2  # the prescribed divergence, and what is left beside it
    if scene.solids:
        words += 3 + dim + dim * 1.34 + 2  # distance, owner, fluid, open faces, those of all levels, regions
        # For loads the pressure before, or the velocity that friction began with.
        words += (dim if reflects else 1) if scene.fluid.viscosity else 0
    sides = [side for pair in scene.domain.sides for side in pair]
    if any(side.is_open and side.parts for side in sides):
        words += dim + (0 if scene.solids else dim * 1.34 + 2)  # open faces, those of all levels, regions
        words += scene.liquid is not None  # where particles leave
    spreads = any(rate_of(scene.fluid, row, "diffusivity") for row in CARRIED.values())
    if (scene.fluid.viscosity and scene.liquid is None) or spreads:
        words += 2 + 4 + 3 + 4  # the same again for diffusion
        words += 1 if scene.solids else 0  # distance of the middles of faces
    if scene.solids and spreads:
        # Of a scalar once more, with where it is solved for, how much of a cell counts, and open faces of all levels.
        words += 4 + 3 + 4 + 2 + dim * 1.34
    if scene.liquid is not None:
        words += (
            3 + 2 * dim + (0 if scene.solids else dim + dim * 1.34) + 3
        )  # surface, where it came to, marks, faces of all levels, counts, places
        words += 4 * dim + dim * (dim - 1) // 2 + 1 if scene.fluid.viscosity else 0  # of the friction in it
        # Beside solids slopes are felt each for itself; and what they bear.
        words += dim + dim * (dim + 1) // 2 - 1 if scene.fluid.viscosity and scene.solids else 0
        words += bool(scene.liquid.surface_tension)  # curvature
        words += 4 if scene.liquid.band else 0  # what has no particles
        if reflects:
            words += 4 * dim + 1  # three of the kick, what particles have told, the pressure before
        elif scene.liquid.transfer == "flip":
            words += dim  # what particles have told
        words += 2 * dim if reflects and scene.fluid.viscosity else 0  # the kick of friction, and what that begins with
        words += most_particles(scene) * bytes_of_particle(dim) / 4 / padded
        # Counts and starts; of as many as cells at the most twice what each carries, its cell, its rank, its place in the order.
        words += 2 + 2 + 1.1 * (2 * (2 * dim + 1) + 3) if scene.liquid.foam else 0
    words += 4 + 1  # the picture's optical volume and light
    words += bool(scene.look.incandescence and "temperature" in scene.carried)  # the heat of its flame
    if scene.look.view in ("slice", "arrows", "tracers"):
        words += 1 + dim  # the quantity and the velocity that are shown
    if scene.look.view == "tracers":
        words += 8 * scene.look.tracers / padded
    picture = (3 + 1) * math.prod(scene.picture_size)  # colours, and where edges are
    grids = 2 if scene.look.compare else 1
    # The picture, and with two grids its halves; the rest: partial sums, scalars of the solvers.
    return grids * (int(4 * (words * padded + picture)) + 2**20)


def bytes_of_state(scene: Scene) -> int:
    """Of a copy of what a flow is between two steps; in bytes of the host, an estimate from above."""
    padded = math.prod(n + 2 for n in scene.domain.shape)
    dim = scene.dim
    words = dim + 1 + sum(scene.carried.values())  # velocity, pressure and what is carried
    words += 1 + (1 + dim if scene.solids else 0)  # what expands; for loads, the pressure before and a velocity
    if scene.liquid is not None:
        words += 3  # surface, what is made up for, marks
        if scene.solver.scheme == "reflection":
            words += 2 * dim + 1 + (dim if scene.fluid.viscosity else 0)  # two of the kick, its pressure, its friction
        words += dim if scene.fluid.viscosity and scene.solids else 0  # what solids know friction by
        words += (2 * dim + dim * dim) * most_particles(scene) / padded
        words += 1.1 * (2 * dim + 1) if scene.liquid.foam else 0
    if scene.look.view == "tracers":
        words += 8 * scene.look.tracers / padded
    return int(4 * words * padded)


def bytes_of_largest_array(scene: Scene) -> int:
    """Of one component for each axis, as a velocity has; in bytes."""
    return 12 * math.prod(n + 2 for n in scene.domain.shape)


def bytes_of_particle(dim: int) -> int:
    """Of a liquid: twice what a particle carries, its cell, its rank there and its place in the order."""
    return 4 * (2 * (2 * dim + dim * dim) + 3)


def most_particles(scene: Scene) -> float:
    """How many particles a liquid may come to have: those of its bodies, or of a box that is full, where more comes in."""
    box = math.prod(scene.domain.shape) * (9 if scene.dim == 2 else 8)
    if scene.liquid is None:
        return 0
    own = 0.0
    for body in scene.liquid.bodies:
        a, b, radius = body.geometry()
        if body.shape == "box":
            volume = math.prod(2 * half for half in b)
        else:
            volume = (2 * radius) ** (scene.dim - 1) * (2 * radius + math.dist(a, b))
        own += volume / scene.domain.dx**scene.dim * (9 if scene.dim == 2 else 8)
    sides = [side for pair in scene.domain.sides for side in pair]
    flows_in = any(patch.kind.through == "given" for side in sides for patch in side.patches)
    grows = scene.live.pour or flows_in or any(not source.sink for source in scene.sources)
    return 1.1 * min(box, box if grows else own)


def gib(count: float) -> str:
    """Bytes, for a person."""
    return f"{count / 2**30:.3g} GiB"


def _free_memory() -> int | None:
    """Memory that this process may still take, in bytes; None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as info:
            for line in info:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return memory_of_machine()


def memory_of_machine() -> int | None:
    """All memory of this machine, in bytes; None where the system does not say, as Windows."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def require_memory(scene: Scene, copies: int = 0) -> None:
    """Raise SceneError for a grid that this machine's own memory, or any array of a backend, cannot hold.

    So many ``copies`` of the flow's state are held beside it.
    """
    needed, free = bytes_needed(scene) + copies * bytes_of_state(scene), _free_memory()
    shape = " x ".join(map(str, scene.domain.shape))
    largest = bytes_of_largest_array(scene)
    if largest > MAX_ARRAY_BYTES:
        raise SceneError(
            f"domain.resolution is {scene.domain.resolution}: {shape} cells need {gib(needed)} and arrays of "
            f"{gib(largest)}; a backend holds arrays of less than 2 GiB, so choose a smaller resolution."
        )
    if free is not None and needed > free:
        raise SceneError(
            f"domain.resolution is {scene.domain.resolution}: {shape} cells need {gib(needed)} of memory; "
            f"{gib(free)} are free on this machine, so choose a smaller resolution."
        )
