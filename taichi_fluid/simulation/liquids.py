"""A liquid in a flow: built as its scene says, and the stages of its step."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..pressure.solver import SolveResult
from ..scene import Liquid as LiquidConfig
from ..scene import Scene
from ..scene.expressions import at_time
from .remarks import is_overfull

if TYPE_CHECKING:
    from ..liquid.liquid import Liquid


def begin_liquid(liquid: "Liquid", config: LiquidConfig, velocity) -> list[str]:
    """Let there be the bodies of a scene, and nothing else; returns the keys of those that bring in none."""
    liquid.core.keep(config.band)
    liquid.clear()
    added = [liquid.add(body.shape, *body.geometry(), body.velocity) for body in config.bodies]
    liquid.find_surface()
    liquid.begin(velocity)
    return [f"liquid.bodies[{i}]" for i, count in enumerate(added) if count == 0]


def begin_below(liquid: "Liquid", distance: np.ndarray, velocity, beside: bool = False) -> None:
    """Let there be what lies below a surface, of a velocity on the faces, in place of what there is or ``beside`` it.

    Args:
        liquid: The liquid.
        distance: To the surface from the centres of the cells, m, negative in the liquid; right within a cell of it.
        velocity: m/s.
        beside: Whether what there is stays.
    """
    grid = liquid.grid
    level = np.clip(distance, -3 * grid.dx, 1.5 * grid.dx)
    if beside:
        level = np.minimum(level, grid.to_numpy(liquid.phi))
    _set_level(liquid, level)
    liquid.take_over(velocity)


def leave_air(liquid: "Liquid", was: np.ndarray, now: np.ndarray) -> None:
    """Let there be air where solids are no more: by the distances of all from the centres of the cells that ``was`` and is ``now``, m.

    Within them the surface is that of what they mirrored, and would count as deep liquid that no particle is in.
    """
    dx, level = liquid.grid.dx, liquid.grid.to_numpy(liquid.phi)
    # Another one that has moved meanwhile has gone less far than two cells.
    left = now > was + 2 * dx
    _set_level(liquid, np.where(left, np.maximum(level, np.minimum(-was, 1.5 * dx)), level))


def _set_level(liquid: "Liquid", level: np.ndarray) -> None:
    liquid.phi.from_numpy(np.pad(level, 1).astype(np.float32).ravel())
    liquid.motion.seams.mirror(liquid.phi)


def _pouring(engine: Any) -> dict[int, Any]:
    """The sources that pour now, by number."""
    return {i: each for i, each in enumerate(engine.scene.sources) if each.active(engine.time) and not each.sink}


def _pour(engine: Any, source: Any, time: float, dt: float) -> None:
    """Fill what a source covers at a ``time``, s, and what has come through it in the ``dt`` seconds before."""
    engine.liquid.pour(source.shape, *source.placed(time), source.velocity, time, None if source.moves else dt)


def _keep_told(engine: Any, dt: float) -> None:
    """Keep what the particles have told the faces, with which ``scatter`` compares what a step has made of it."""
    liquid, velocity = engine.liquid, engine.state.velocity.current
    liquid.kick.wanted = engine.reflects
    liquid.kick.begin(dt)
    if liquid.kick.wanted or _flip(engine) is not None:
        liquid.remember(velocity)


def _flip(engine: Any) -> float | None:
    """The ratio of FLIP; None by APIC."""
    config = engine.scene.liquid
    return config.flip if config.transfer == "flip" else None


def carry_liquid(engine: Any, dt: float) -> None:
    """Carry the particles along the velocity, which is theirs where they are poured."""
    liquid, scene = engine.liquid, engine.scene
    engine.move_as_at(engine.time)
    liquid.core.keep(scene.liquid.band)
    shapes = [(source.shape, *source.placed(engine.time + dt)) for source in scene.sources]
    liquid.shallow = [image for shape in shapes for image in liquid.motion.seams.images(*shape)]
    pouring = _pouring(engine)
    for i, source in pouring.items():
        if i not in liquid.pouring:  # what it covers when it begins flows on from then
            _pour(engine, source, engine.time, 0.0)
        liquid.drive(engine.state.velocity.current, source.shape, *source.placed(engine.time), source.velocity)
    liquid.pouring = set(pouring)
    liquid.drive_inlets(engine.state.velocity.current, engine.time, dt)
    liquid.carry(engine.state.velocity.current, dt)


def pour(engine: Any, dt: float) -> None:
    """Fill what sources cover, and what has come in through inflows, with liquid of their velocity; let sinks drain it."""
    end = engine.time + dt
    for source in _pouring(engine).values():
        _pour(engine, source, end, dt)
    engine.liquid.let_in(engine.time, dt)
    for source in engine.scene.sources:
        if source.active(engine.time) and source.sink:
            engine.liquid.drain(source.shape, *source.placed(end))
    if engine.overfull is None and is_overfull(engine):
        engine.overfull = end


def gather_liquid(engine: Any, dt: float) -> Iterator[None]:
    """Find the surface; the velocity of the particles, on the faces, is the new one.

    What it will be made to heed is how fast sides and solids are then.
    """
    force = pull_on(engine.scene, engine.time)
    withstands = engine.scene.liquid.surface_tension / engine.grid.dx
    engine.liquid.find_surface((engine.state.pressure, engine.state.velocity.current, force, withstands))
    yield
    cells = dt / engine.grid.dx
    engine.liquid.balance(engine.speed * cells)
    engine.liquid.gather(engine.state.velocity.current, dt, engine.speed * cells)
    _keep_told(engine, dt)
    engine.move_as_at(engine.time + dt)
    engine.fill_velocity()


def find_kick(engine: Any, dt: float, force: Callable[[Any, float], None]) -> Iterator[None]:
    """Find the kick of a first step: what forces, friction and pressure would make of the velocity where the liquid is."""
    liquid, velocity = engine.liquid, engine.state.velocity.current
    if liquid.kick.seconds or not engine.reflects:
        return
    liquid.kick.wanted = True
    liquid.kick.begin(dt)
    liquid.kick.middle = 0.0  # as of where it begins
    liquid.begin_kick(velocity, pull_on(engine.scene, engine.time))
    force(engine, dt)
    yield from diffuse_liquid(engine, dt)
    _project_rest(engine, dt)
    liquid.find_kick(velocity)
    engine.pressure_result = None
    engine.diffusion_results.clear()


def diffuse_liquid(engine: Any, dt: float) -> Iterator[None]:
    """Let friction act on the velocity that pressure and surface leave of that of the liquid.

    Else one at rest, accelerated by gravity and not yet held, would rub against its walls, and never be at rest (Batty and
    Bridson 2008 project before too). Nor would one that is pressed against walls feel what holds it there, so that pressure acts first
    too. Afterwards both are undone: the projection to come finds the whole.
    """
    if viscosity := engine.scene.fluid.viscosity:
        acts = engine.liquid.kick.acts
        velocity, liquid, most = engine.state.velocity.current, engine.liquid, engine.scene.solver.max_iterations
        scale = acts / (engine.scene.fluid.rho * engine.grid.dx)
        engine.pressure_result = _project(engine, acts)
        liquid.extend(velocity)
        engine.fill_velocity()
        yield
        liquid.viscosity.set_up(liquid.phi, viscosity, acts)
        liquid.viscosity.press(velocity, liquid.phi, scale)
        liquid.extend(velocity)
        engine.fill_velocity()
        if engine.solids is not None and liquid.kick.friction is None:
            liquid.viscosity.loads.clear()  # of that of the step before there is nothing in the kick
        liquid.kick.rub(velocity)
        engine.diffusion_results.append(liquid.diffuse(velocity, most))
        liquid.kick.rubbed(velocity)
        liquid.projection.subtract_gradient(velocity, engine.state.pressure, -scale)
        liquid.viscosity.pressure.release(velocity, engine.state.pressure)
        engine.fill_velocity()
        yield
    elif "viscosity" in vars(engine.liquid):
        engine.liquid.viscosity.pressure.clear()


def project_liquid(engine: Any, dt: float) -> Iterator[None]:
    """Make the velocity of the liquid free of divergence, and give the particles what of it is theirs."""
    liquid, first, acts = engine.liquid, engine.pressure_result, engine.liquid.kick.acts
    result = _project_rest(engine, acts)
    engine.pressure_result = result if first is None else first.followed_by(result)
    engine.expansion, engine.pressed = liquid.expansion, acts
    yield
    liquid.scatter(engine.state.velocity.current, _flip(engine))


def _project(engine: Any, dt: float, again: bool = False) -> SolveResult:
    """Project the velocity; ``again`` in a step, surface and solids are where they were, and tension has acted."""
    solver = engine.scene.solver
    if not again:
        engine.prepare()  # by the method that the scene asks for now
    return engine.liquid.project(
        engine.state.velocity.current,
        engine.state.pressure,
        dt=dt,
        rho=engine.scene.fluid.rho,
        tolerance=solver.tolerance,
        max_iterations=solver.max_iterations,
        tension=engine.scene.liquid.surface_tension,
        again=again,
    )


def _project_rest(engine: Any, dt: float) -> SolveResult:
    """Project the velocity, after friction for the second time; the pressure is then the mean of that and the one before."""
    liquid, pressure = engine.liquid, engine.state.pressure
    result = _project(engine, dt, again=engine.pressure_result is not None)
    if engine.pressure_result is not None:
        liquid.viscosity.pressure.settle(pressure, liquid.phi)
    liquid.kick.take_mean(pressure)
    return result


def make_foam(engine: Any, dt: float) -> None:
    """Move spray, foam and bubbles, and make more where the liquid is violent."""
    config, liquid = engine.scene.liquid, engine.liquid
    if config.foam or liquid.has_foam:
        liquid.foam.step(
            engine.state.velocity.current,
            liquid.phi,
            dt=dt,
            gravity=engine.scene.gravity,
            amount=config.foam,
            speed=config.foam_speed,
            lasts=config.foam_life,
            draw=liquid.steps,
        )


def pull_on(scene: Scene, time: float) -> Sequence[float]:
    """The acceleration of a liquid by gravity and a body force at a ``time``, s, in m/s²."""
    force = scene.fluid.body_force
    return scene.gravity if force is None else np.add(scene.gravity, at_time(force, time)).tolist()


def longest_dt(scene: Scene, time: float) -> float:
    """The longest step, s, that the shortest waves of a liquid allow at a ``time``, s.

    No wave that surface tension drives passes a cell in it (Brackbill, Kothe, Zemach 1992), and none that gravity and a
    body force drive a quarter of one: in three times as long a step the shortest of these would grow.
    """
    if scene.liquid is None:
        return math.inf
    dx, gravity, tension = scene.domain.dx, math.hypot(*pull_on(scene, time)), scene.liquid.surface_tension
    falling = math.sqrt(math.pi * dx / gravity) / 4 if gravity else math.inf
    return min(falling, math.sqrt(scene.fluid.rho * dx**3 / (4 * math.pi * tension)) if tension else math.inf)
