"""Velocity and carried quantities of a flow, set as a whole: from numbers, expressions, functions and arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..carried import CARRIED
from ..scene import Initial
from ..scene.beginnings import BeginningError, Places, component_at, places_of, read_array
from ..scene.fields import NOT_CARRIED, ArrayFile
from .engine import Engine
from .liquids import begin_below

_PROJECTED_TO = 1e-5
"""Relative residual to which a velocity is projected that a flow begins with, unless its scene asks for less."""


def set_values(engine: Engine, *, velocity: Any = None, projected: bool = False, **carried: Any) -> None:
    """Set the velocity and carried quantities everywhere; between two steps, not in the middle of one.

    What has one component is a number; the text of an expression in x, y, z, in m, and t, the time in s
    (see ``Expression``); a function of arrays x, y and z that fit each other, which gives an array; or an array over the
    whole box, ``(n, …)``. What has more is a sequence of these, a function that gives such a sequence of arrays, or one
    array ``(components, n, …)``. An array of other cells than the grid's is interpolated linearly.

    Each component of a velocity is asked for where it lies: on the staggered grid on its own faces, those on the sides
    included. A sequence of arrays has them all; an array ``(dim, n, …)`` the lower ones, as ``to_numpy`` gives them.
    What sides and solids say of it holds, whatever is given.

    A liquid takes a velocity where it is, and has nothing else to set but its ``level_set``: a number below 0 where it
    is and above 0 where it is not, of any scale; there is no other liquid then.

    ``simulation.set(velocity=["sin(pi*x)*cos(pi*y)", "-cos(pi*x)*sin(pi*y)"], smoke=lambda x, y: x > 0.5)``

    Args:
        engine: The flow.
        velocity: m/s; left out, it stays as it is.
        projected: Make the velocity free of divergence.
        carried: What else to set, by name; it is carried from now on if it was not, until ``reset``.

    Raises:
        BeginningError: a ValueError, for what is none of these, naming it; nothing is changed then.
    """
    engine.grid.require_runtime()
    set_beginnings(engine, {**({} if velocity is None else {"velocity": velocity}), **carried}, projected)


def set_beginnings(
    engine: Engine, sources: dict[str, Any], projected: bool, where: str = "", *, beside: bool = False
) -> None:
    """The same for sources by name, which messages call by the name after ``where``; a liquid goes ``beside`` what there is."""
    grid, found = engine.grid, {}
    if engine.liquid is not None:
        for name in [name for name in sources if name not in NOT_CARRIED] + ["projected"] * projected:
            raise BeginningError(
                f"{where}{name} is given; of a flow with a liquid nothing but velocity and level_set can be set"
            )
    for name, source in sources.items():
        count = grid.dim if name == "velocity" else _components(engine, name)
        found[name] = _components_of(engine, source, count, name == "velocity", where + name)
    level = found.pop("level_set", None)
    if engine.liquid is not None and level is not None:
        before = engine.liquid.particles.count
        begin_below(
            engine.liquid,
            distance_from(level[0], grid.dx, engine.walls.periodic),
            engine.state.velocity.current,
            beside,
        )
        if beside and engine.liquid.particles.count == before:
            engine.dry.append(f"{where}level_set")
    engine.state.add([CARRIED[name] for name in found if name != "velocity" and name not in engine.state.carried])
    for name, values in found.items():
        if name != "velocity":
            grid.from_numpy(engine.state.carried[name].current, np.stack(values) if len(values) > 1 else values[0])
        elif grid.collocated:
            grid.from_numpy(engine.state.velocity.current, np.stack(values))
        else:
            grid.face_velocity_from_numpy(engine.state.velocity.current, values)
    engine.fill()
    if engine.liquid is not None:
        engine.liquid.take_velocity(engine.state.velocity.current)
    if projected:
        _project(engine)


def sources_of(initial: Initial, dim: int) -> dict[str, Any]:
    """What a scene begins with, by name, with its files read.

    Raises:
        BeginningError: for a file that has gone or changed since the scene was checked.
    """
    found = {}
    for name, value in initial.given.items():
        if isinstance(value, ArrayFile):
            try:
                value = read_array(value.file, dim, initial.components(name, dim))
            except BeginningError as error:
                raise BeginningError(f"initial.{name}.{error}") from None
        found[name] = value
    return found


def distance_from(level: np.ndarray, dx: float, periodic: Sequence[bool]) -> np.ndarray:
    """Nearly the distance to where a level set at the centres of cells is 0, m: by how steep it is there, across ``periodic`` axes too.

    That is, to the steeper side: what is no more than a cell's length from the surface, as a liquid's own, says nothing of
    that to the other. Where it is flat, it is as far as whoever takes it looks.
    """
    level = level / max(float(np.abs(level).max()), 1e-30)  # so that no square is beyond what a float can be
    square = np.zeros_like(level)
    for axis, wraps in enumerate(periodic):
        steps = np.square(np.diff(level, axis=axis) / np.float32(dx))
        ends = np.square((level.take([0], axis) - level.take([-1], axis)) / np.float32(dx)) * np.float32(wraps)
        before, after = (np.concatenate(pair, axis) for pair in ((ends, steps), (steps, ends)))
        square += np.maximum(before, after)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = level / np.sqrt(square)
    return np.where(level == 0, np.float32(0), distance)


def _components(engine: Engine, name: str) -> int:
    carried = engine.state.carried
    if name == "level_set" and engine.liquid is not None:
        return 1
    if name not in carried and name not in CARRIED:
        known = ", ".join(dict.fromkeys(["velocity", *CARRIED, *carried]))
        raise BeginningError(f"{name} is nothing that a flow carries; it must be one of {known}")
    return carried[name].components if name in carried else CARRIED[name].components


def _components_of(engine: Engine, source: Any, count: int, on_faces: bool, what: str) -> list[np.ndarray]:
    """Each component at its own places."""
    grid = engine.grid
    single = count == 1 and not on_faces
    stacked = isinstance(source, np.ndarray)
    if (
        isinstance(source, Sequence | np.ndarray)
        and not single
        and not isinstance(source, str)
        and len(source) != count
    ):
        raise BeginningError(f"{what} has {len(source)} components; it has {count} here")
    if not single and not (
        callable(source) or (isinstance(source, Sequence | np.ndarray) and not isinstance(source, str))
    ):
        raise BeginningError(
            f"{what} is {source!r}; it has {count} components: a sequence, a function or an array of them"
        )
    values = []
    for k in range(count):
        face = grid.place(k) if on_faces else -1

        def own(shape: Sequence[int], face: int = face) -> Places:
            cells = [n - (axis == face and not stacked) for axis, n in enumerate(shape)]
            if min(cells) < 1:
                raise BeginningError(f"{what} has an array of shape {tuple(shape)}; it has both ends along axis {face}")
            return places_of(cells, grid.size, face, both_ends=not stacked)

        part = source if single else _one_of(source, k, count, what) if callable(source) else source[k]
        name = what if single else f"{what}[{k}]"
        values.append(component_at(part, places_of(grid.shape, grid.size, face), own, engine.time, name))
    return values


def _one_of(function: Callable[..., Any], k: int, count: int, what: str) -> Callable[..., Any]:
    """Component ``k`` of what a function gives."""

    def component(*x: np.ndarray) -> Any:
        given = function(*x)
        if not isinstance(given, Sequence | np.ndarray) or len(given) != count:
            raise BeginningError(f"{what} is a function that must give {count} arrays, one for each component")
        return given[k]

    return component


def _project(engine: Engine) -> None:
    """Take the divergence off the velocity, and leave the pressure as it is."""
    solver, state = engine.scene.solver, engine.state
    pressure = state.pressure.to_numpy()
    state.pressure.fill(0.0)
    engine.projection.project(
        state.velocity.current,
        state.pressure,
        dt=1.0,
        rho=1.0,
        tolerance=min(solver.tolerance, _PROJECTED_TO),
        max_iterations=solver.max_iterations,
        sweeps=solver.sweeps,
    )
    state.pressure.from_numpy(pressure)
