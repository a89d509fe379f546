"""The stages of a step: two short lists, and the function that each names. No stencil stands here."""

from collections.abc import Iterator

from ..boundaries.walls import SCALAR
from ..carried import rate_of
from ..kernels import copy_values
from ..physics import forces
from ..physics.advection import Advection, add_gain, extrapolate, set_apart
from ..physics.friction import NEAREST, NEAREST_EXPLICIT
from ..pressure.solver import SolveResult
from ..scene.expressions import at_time
from ..tables import Table
from . import liquids, reactions
from .engine import Engine, Force, Stage

_FIRST_STEPS = 2
"""In which nothing that diffuses swings about what walls and solids hold."""


def move(engine: Engine, dt: float) -> None:
    """Move the solids; what one is about to leave is filled from beside it, on both ends of a periodic axis, and in ghosts.

    What they cover then and uncover is reckoned with by what keeps amounts. Of a liquid there is air where one is no more.
    """
    assert engine.solids is not None
    if engine.solids.moves:
        before = None
        if engine.liquid is not None and engine.solids.leaves(engine.time + dt):
            before = engine.solids.distance_at_centres()
        layers, was = engine.solids.layers_until(engine.time + dt), engine.state.scratch.first
        for quantity, offset in engine.state.scalars():
            engine.solids.extend_scalar(quantity.current, offset, layers)
            engine.walls.fill(quantity.current, SCALAR, offset, quantity.name)
        if engine.state.carried:
            engine.advection.note_parts(was)
        engine.place_solids(engine.time + dt)
        for quantity, offset in engine.state.scalars():
            engine.advection.cover(quantity.current, was, offset, quantity.name)
        if before is not None:
            liquids.leave_air(engine.liquid, before, engine.solids.distance_at_centres())


def halve(engine: Engine, dt: float) -> Iterator[None]:
    """Take the flow to the middle of the step, where ``solver.scheme`` asks for that.

    Forces and explicit diffusion of half a step, advection along the velocity that the step before has left, projection.
    Where friction is quick for such a step, what these add is not carried, see ``physics.advection.gain``.
    Sides and solids move as at its beginning for the first, as in its middle for the projection: of one that speeds up both
    pressures of the step hold the same.
    """
    engine.halved, engine.carrier = engine.reflects, engine.advection
    engine.nearest, engine.gain = 0.0, None
    if not engine.halved:
        return
    velocity, before, half = engine.state.velocity, engine.before, 0.5 * dt
    copy_values(velocity.current, before)
    viscosity = engine.scene.fluid.viscosity
    engine.move_as_at(engine.time)
    # An implicit beginning must know what friction is in balance with.
    early = engine.diffusion.balanced_part(viscosity, dt) if viscosity else 0.0
    yield from _begin_scalars(engine, dt)
    if early:
        if engine.steps == 0:
            _begin_pressure(engine, half)
        _push(engine, early)
        _press(engine, engine.lasting(early))
    if viscosity:
        _begin_friction(engine, viscosity, dt)
        yield
    if early:
        _press(engine, -engine.lasting(early))
    # For as long as friction has acted: what the two hold in balance is carried along as it is.
    engine.pushed = engine.diffusion.first_part(viscosity, dt, component=0) if viscosity else half
    _push(engine, engine.pushed - early)
    engine.move_as_at(engine.time + half)
    if viscosity and engine.diffusion.is_long(viscosity, dt):
        engine.gain = engine.gained
        set_apart(engine.grid, velocity.current, before, engine.gain)
    engine.fill_velocity()
    yield
    yield from _advect(engine, half, before, scalars=engine.advection.shares_paths)
    _add_gain(engine, 1.0)
    _project(engine, half)
    engine.move_as_at(engine.time + dt)


def advect(engine: Engine, dt: float) -> Iterator[None]:
    """Carry everything along a velocity that a projection has left.

    From the middle of a step the velocity that is carried is reflected. What carries it is that of the end, as far as the
    one of the middle tells it: as the first half went along that of the beginning, both together go along that of the middle.
    (Narain, Zehnder, Thomaszewski 2019.) Beside solids what lies at centres has paths of its own, and goes all the way along
    that one.
    """
    velocity = engine.state.velocity.current
    if not engine.halved:
        if engine.walls.has_open:
            copy_values(velocity, engine.before)
        yield from _advect(engine, dt, velocity)
        return
    together = _advection(engine).shares_paths
    if not together:
        yield from _advect_scalars(engine, dt)
    extrapolate(engine.grid, velocity, engine.before)
    yield from _advect(engine, 0.5 * dt, engine.before, scalars=together, reflected=True)
    _add_gain(engine, -1.0)


def _add_gain(engine: Engine, times: float) -> None:
    """Add what the first half of the step has set apart, if anything, so many times."""
    if engine.gain is not None:
        add_gain(engine.grid, engine.state.velocity.current, engine.gain, times)
        engine.fill_velocity()


def _advection(engine: Engine) -> Advection:
    """That of the step: one that its first half was made with carries the second too, whatever a new scene asks for."""
    return engine.carrier if engine.halved else engine.advection


def _press(engine: Engine, dt: float, fill: bool = True) -> None:
    """What the pressure as it is does in ``dt``, s: of the projection that has left it, the reflection; backwards, undone.

    ``fill`` asks for ghosts, for faces on the other side of a seam, and for those on open sides, which follow the inside.
    """
    velocity, pressure = engine.state.velocity.current, engine.state.pressure
    engine.projection.subtract_gradient(velocity, pressure, dt / (engine.scene.fluid.rho * engine.grid.dx))
    if fill:
        engine.fill_velocity()


def _begin_pressure(engine: Engine, dt: float) -> None:
    """Find the pressure of a flow that has made no step yet; the velocity stays that of ``before``."""
    velocity = engine.state.velocity.current
    _push(engine, dt)
    engine.fill_velocity()
    _project_velocity(engine, velocity, dt)
    copy_values(engine.before, velocity)


def _push(engine: Engine, dt: float) -> None:
    """Add those forces that act at both ends of a step."""
    for each in [each for each in engine.forces if each.halves]:
        each.add(engine, dt)


def _begin_friction(engine: Engine, viscosity: float, dt: float) -> None:
    """The first part of the diffusion of the velocity."""
    velocity, rubbed = engine.state.velocity.current, engine.rubbed if engine.solids else None
    if rubbed is not None:
        engine.nearest = NEAREST if engine.diffusion.begins_implicitly(viscosity, dt) else NEAREST_EXPLICIT
    engine.diffusion_results += engine.diffusion.advance_velocity(velocity, viscosity, dt, rubbed, engine.before)


def _begin_scalars(engine: Engine, dt: float) -> Iterator[None]:
    """The first part of the diffusion of what the velocity carries."""
    # A list, as between two parts a new scene may bring in more.
    for quantity, offset in list(engine.state.scalars()):
        if rate := rate_of(engine.scene.fluid, quantity.row, "diffusivity"):
            engine.diffusion.advance(
                quantity.current, rate, dt, SCALAR, offset, quantity.name, bounded=_is_bounded(engine, quantity)
            )
            yield


def _is_bounded(engine: Engine, quantity) -> bool:
    """Whether the explicit part of a quantity's diffusion leaves each value between those around it, however long the step.

    In two steps also of what may go beyond them later: what walls and solids hold is new to what lies beside them, and would swing
    about it for ten (Rannacher 1984).
    """
    return quantity.row.dilutes or engine.steps < _FIRST_STEPS


def advect_alone(engine: Engine, dt: float) -> Iterator[None]:
    """Carry the velocity and nothing else: on the collocated grid, which projects once more after it."""
    yield from _advect(engine, dt, engine.state.velocity.current, scalars=False)


def _advect(engine: Engine, dt: float, along, scalars: bool = True, reflected: bool = False) -> Iterator[None]:
    """Carry the velocity ``along`` one that it may itself be, ``reflected`` or not, and what lies at centres if ``scalars``."""
    # The same to the end, as between two parts a new scene may bring in another.
    advection, velocity = _advection(engine), engine.state.velocity
    together = scalars and advection.shares_paths
    if scalars and not together:
        yield from _advect_scalars(engine, dt)
    growth = _thin_out(engine, dt) if together else None
    advection.trace_paths(along, dt, faces=True, departure=velocity.next, growth=growth)
    yield
    if together:
        yield from _carry_scalars(engine, advection)
    if reflected:
        _press(engine, dt)
        _add_gain(engine, 1.0)
    out = velocity.current if advection.in_place else velocity.next
    for axis, offset in enumerate(velocity.begins()):
        advection.carry(velocity.current, out, axis, offset)
        yield
    if not advection.in_place:
        velocity.swap()


def _advect_scalars(engine: Engine, dt: float) -> Iterator[None]:
    """Carry what lies at centres, along paths of its own."""
    advection, velocity = _advection(engine), engine.state.velocity
    growth = _thin_out(engine, dt)
    advection.trace_paths(velocity.current, dt, departure=velocity.next, growth=growth)
    yield
    yield from _carry_scalars(engine, advection)


def _carry_scalars(engine: Engine, advection: Advection) -> Iterator[None]:
    # A list, as between two parts a new scene may bring in more.
    for quantity in list(engine.state.carried.values()):
        for offset in quantity.begins():
            advection.carry(quantity.current, quantity.next, SCALAR, offset, quantity.name)
        quantity.swap()
        yield


def _thin_out(engine: Engine, dt: float):
    """Make room for the volume that the velocity which is about to carry makes on the way; returns its divergence."""
    if engine.expansion is None:
        return None
    assert engine.flame is not None
    for quantity, offset in engine.state.scalars():
        if quantity.row.dilutes:
            engine.flame.dilute(quantity.current, dt, offset)
    engine.fill_scalars()
    return engine.flame.growth


def confine(engine: Engine, dt: float) -> None:
    """Vorticity confinement."""
    length, velocity, scratch = engine.scene.fluid.confinement, engine.state.velocity, engine.state.scratch
    if length:
        room = (scratch.vector, velocity.next, scratch.first)
        forces.add_confinement(engine.grid, engine.walls, velocity.current, length, dt, room)


def buoy(engine: Engine, dt: float) -> None:
    """What is carried lifts the fluid, or weighs it down."""
    scene, velocity = engine.scene, engine.state.velocity.current
    for column, sign in (("lift", -1.0), ("weight", 1.0)):
        for quantity in engine.state.carried.values():
            weight = sign * rate_of(scene.fluid, quantity.row, column)
            if weight:
                forces.add_buoyancy(engine.grid, velocity, quantity.current, scene.gravity, weight, dt)


def accelerate(engine: Engine, dt: float) -> None:
    """The scene's uniform body force; of a step that is not halved, as in the middle of what it acts for."""
    if engine.scene.fluid.body_force is not None:
        later = 0.0 if engine.halved else 0.5 * dt if engine.liquid is None else engine.liquid.kick.middle
        force = at_time(engine.scene.fluid.body_force, engine.time + later)
        forces.accelerate(engine.grid, engine.state.velocity.current, force, dt)


def fall(engine: Engine, dt: float) -> None:
    """Gravity, which a liquid feels; of a gas buoyancy is what is left of it."""
    if engine.liquid is not None:
        forces.accelerate(engine.grid, engine.state.velocity.current, engine.scene.gravity, dt)


def force_liquid(engine: Engine, dt: float) -> None:
    """Add all forces to the velocity of a liquid, for as long as pressure and friction act on it in this step."""
    assert engine.liquid is not None
    force(engine, engine.liquid.kick.acts)


def kick(engine: Engine, dt: float) -> Iterator[None]:
    """Find with what kick a first step of a liquid begins."""
    return liquids.find_kick(engine, dt, force)


FORCES = Table(
    "force",
    (
        Force("confinement", confine, halves=False),
        Force("buoyancy", buoy),
        Force("body force", accelerate),
        Force("gravity", fall),
    ),
)
"""The forces that a simulation begins with, in their order."""


def force(engine: Engine, dt: float) -> None:
    """Add all forces, one after the other; of a step that was halved what its first half has left of them.

    As of its end, where that has been half: so that all of them are on the mean as of the middle.
    """
    began = engine.time
    try:
        for each in list(engine.forces):
            late = engine.halved and each.halves
            rest = dt - engine.pushed if late else dt
            engine.time = began + 0.5 * dt * dt / rest if late else began
            each.add(engine, rest)
    finally:
        engine.time = began
    engine.fill_velocity()


def diffuse(engine: Engine, dt: float) -> Iterator[None]:
    """Diffuse the velocity, and what it carries."""
    if engine.scene.fluid.viscosity:
        engine.diffusion_results += _diffuse_rest(engine, dt) if engine.halved else _diffuse_velocity(engine, dt)
        yield
    yield from _diffuse_scalars(engine, dt)


def _diffuse_rest(engine: Engine, dt: float) -> list[SolveResult]:
    """Diffuse the velocity by what the first half of a step has left of it.

    Forces have acted for no longer than friction by then. Where that was less than half of the step, the pressure that holds them
    knows less of them than they do now, and what it lacks would rub against walls.
    """
    first = engine.diffusion.first_part(engine.scene.fluid.viscosity, dt, component=0)
    return _diffuse_held(engine, dt - first, (dt - 2.0 * first) * 0.5 * dt / first)


def _diffuse_held(engine: Engine, dt: float, held: float) -> list[SolveResult]:
    """Diffuse the velocity without what the pressure as it is takes off in ``held`` s; that is left in it."""
    if held:
        _press(engine, held)
    results = engine.diffusion.diffuse_velocity(engine.state.velocity.current, engine.scene.fluid.viscosity, dt)
    if held:
        _press(engine, -held)
    return results


def diffuse_alone(engine: Engine, dt: float) -> None:
    """Diffuse the velocity as it is: on the collocated grid, of which the first projection has made it."""
    velocity, viscosity = engine.state.velocity.current, engine.scene.fluid.viscosity
    engine.diffusion_results += engine.diffusion.diffuse_velocity(velocity, viscosity, dt)


def carry(engine: Engine, dt: float) -> Iterator[None]:
    """Diffuse and carry all but the velocity: on the collocated grid, along what the step has made of it."""
    yield from _diffuse_scalars(engine, dt)
    yield from _advect_scalars(engine, dt)


def _diffuse_scalars(engine: Engine, dt: float) -> Iterator[None]:
    fluid = engine.scene.fluid
    rates = [(*each, rate_of(fluid, each[0].row, "diffusivity")) for each in engine.state.scalars()]
    if not any(rate for *_, rate in rates):
        return
    diffusion = engine.diffusion
    for quantity, offset, rate in rates:
        first = (
            diffusion.first_part(rate, dt, SCALAR, quantity.name, bounded=_is_bounded(engine, quantity))
            if engine.halved
            else 0.0
        )
        result = diffusion.diffuse(quantity.current, rate, dt - first, SCALAR, offset, quantity.name)
        if result:
            engine.diffusion_results.append(result)
            yield


def _diffuse_velocity(engine: Engine, dt: float) -> list[SolveResult]:
    """Diffuse without what the pressure is about to take off, as far as that is known.

    Else a heavy fluid at rest, accelerated by gravity and not yet held by the pressure, would rub against its walls.
    """
    velocity = engine.state.velocity
    if engine.steps == 0:
        velocity.next.copy_from(velocity.current)
        _project_velocity(engine, velocity.next, dt)
    return _diffuse_held(engine, dt, engine.lasting(dt))


def project(engine: Engine, dt: float) -> None:
    """Make the velocity free of divergence, but for what expands."""
    if engine.halved or (engine.solids and engine.scene.fluid.viscosity):
        engine.keep_pressure(dt, 0.5 * dt if engine.halved else engine.lasting(dt))
    if engine.halved:
        # The whole pressure is solved for, of which that of the middle is a good guess.
        dt *= 0.5
        # A projection reads no ghosts but the faces on sides, and fills them.
        _press(engine, -dt, fill=any(engine.walls.periodic) or engine.walls.has_open)
        engine.halved = False
    _project(engine, dt)


def _project(engine: Engine, dt: float) -> None:
    # What has carried the velocity, as of the end of what this projects.
    was = engine.before if engine.walls.has_open and not engine.grid.collocated else None
    engine.walls.meet_outside(engine.state.velocity.current, dt, was)
    engine.pressed = dt
    result = _project_velocity(engine, engine.state.velocity.current, dt)
    engine.pressure_result = result if engine.pressure_result is None else engine.pressure_result.followed_by(result)


def _project_velocity(engine: Engine, velocity, dt: float) -> SolveResult:
    solver = engine.scene.solver
    if engine.grid.collocated:
        # Two different pressures in each step: neither is a good guess of the other.
        engine.state.pressure.fill(0.0)
    return engine.projection.project(
        velocity,
        engine.state.pressure,
        dt=dt,
        rho=engine.scene.fluid.rho,
        tolerance=solver.tolerance,
        max_iterations=solver.max_iterations,
        sweeps=solver.sweeps,
        expansion=engine.expansion,
    )


HALVE, ADVECT = Stage("halve", halve), Stage("advect", advect)

STAGGERED = (
    ADVECT,
    Stage("sources", reactions.emit),
    Stage("burn", reactions.burn),
    Stage("forces", force),
    Stage("diffuse", diffuse),
    Stage("project", project),
)

COLLOCATED = (
    Stage("sources", reactions.emit),
    Stage("burn", reactions.burn),
    Stage("forces", force),
    Stage("project", project),
    Stage("diffuse", diffuse_alone),
    Stage("advect", advect_alone),
    Stage("project again", project),
    Stage("carry", carry),
)


LIQUID = (
    Stage("carry", liquids.carry_liquid),
    Stage("sources", liquids.pour),
    Stage("gather", liquids.gather_liquid),
    Stage("forces", force_liquid),
    Stage("diffuse", liquids.diffuse_liquid),
    Stage("project", liquids.project_liquid),
    Stage("foam", liquids.make_foam),
)


def stages_of(engine: Engine) -> list[Stage]:
    """The step of a flow: that of its grid or of a liquid, and before it the motion of solids where there are any."""
    step = LIQUID if engine.liquid is not None else COLLOCATED if engine.grid.collocated else STAGGERED
    stages = [Stage("solids", move), *step] if engine.solids else [*step]
    if engine.liquid is not None:
        stages.insert(0, Stage("kick", kick))
    follow_scheme(engine, stages)
    return stages


def follow_scheme(engine: Engine, stages: list[Stage]) -> None:
    """Halve the step, or do so no longer, as ``solver.scheme`` says, wherever among ``stages`` its advection stands."""
    if HALVE in stages:
        stages.remove(HALVE)
    if ADVECT in stages and engine.reflects:
        stages.insert(stages.index(ADVECT), HALVE)
