"""What acts on a gas where it is, in a step: it fades, sources bring in more, fuel burns, hot gas radiates.

What burns and radiates does so for half of the step before the others and for half of it after them, the other way about: so all
together are of second order in time (Strang 1968).
"""

from ..carried import rate_of
from ..physics.combustion import radiate
from ..physics.sources import decay, fade, kept_of_source
from .engine import Engine


def emit(engine: Engine, dt: float) -> None:
    """Burn and radiate for half of a step; then let what is carried fade, and sources bring in more."""
    if _burns(engine) or engine.scene.expands:
        engine.light().begin()
    _burn(engine, 0.5 * dt)
    _radiate(engine, 0.5 * dt)
    carried, fluid, velocity = engine.state.carried, engine.scene.fluid, engine.state.velocity
    for quantity, offset in engine.state.scalars():
        if rate := rate_of(fluid, quantity.row, "decay"):
            decay(engine.grid, quantity.current, rate, dt, offset)
        if lost := rate_of(fluid, quantity.row, "fade"):
            fade(engine.grid, quantity.current, lost * kept_of_source(rate, dt), dt, offset)
    driven = fluid.velocity_fade > 0
    if driven:
        for offset in velocity.begins():
            fade(engine.grid, velocity.current, fluid.velocity_fade, dt, offset)
    for source, emitter in zip(engine.scene.sources, engine.emitters, strict=True):
        lasts = source.lasts(engine.time, dt)
        if not lasts:
            continue
        for part, seconds in engine.emitting(source, emitter, lasts):
            for name, rates in source.rates.items():
                kept = seconds * kept_of_source(rate_of(fluid, carried[name].row, "decay"), lasts)
                for offset, rate in zip(carried[name].begins(), rates, strict=True):
                    if rate:
                        part.add(carried[name].current, rate, kept, engine.time, offset=offset)
            if source.velocity is not None:
                part.drive(velocity.current, source.velocity)
                driven = True
    engine.fill_scalars()
    # Advection left all ghosts filled, but on faces that solids close what it carried there.
    if driven or engine.solids:
        engine.fill_velocity()


def burn(engine: Engine, dt: float) -> None:
    """Radiate and burn for the other half of a step, and prescribe what expands in it."""
    radiates, burns = _radiate(engine, 0.5 * dt), _burn(engine, 0.5 * dt)
    engine.expansion = engine.flame.expansion if engine.flame and engine.scene.expands else None
    if engine.expansion is not None:
        _blast(engine, dt)
    if burns or radiates:
        engine.fill_scalars()


def _burns(engine: Engine) -> bool:
    return engine.scene.combustion.burn_rate > 0 and "fuel" in engine.state.carried


def _burn(engine: Engine, half: float) -> bool:
    """Burn for half of a step; what that makes room for takes all of it, at half the rate. Returns whether anything burns."""
    if not _burns(engine):
        return False
    carried, law = engine.state.carried, engine.scene.combustion.model_dump()
    smoke = carried["smoke"].current if "smoke" in carried else None
    law["expansion"] *= 0.5
    engine.light().burn(carried["fuel"].current, carried["temperature"].current, smoke, half, **law)
    return True


def _radiate(engine: Engine, half: float) -> bool:
    """Let hot gas radiate for half of a step; returns whether any does."""
    carried, rate = engine.state.carried, engine.scene.fluid.radiation
    radiates = rate > 0 and "temperature" in carried
    if radiates:
        radiate(engine.grid, carried["temperature"].current, rate, half)
    return radiates


def _blast(engine: Engine, dt: float) -> None:
    """Add the blasts of sources to the divergence that burning prescribes, as far as they last in a step."""
    assert engine.flame is not None
    for source, emitter in zip(engine.scene.sources, engine.emitters, strict=True):
        if source.blast and (lasts := source.lasts(engine.time, dt)):
            for part, seconds in engine.emitting(source, emitter, lasts):
                part.add(engine.flame.growth, source.blast, seconds / dt, engine.time)
    engine.flame.finish()
