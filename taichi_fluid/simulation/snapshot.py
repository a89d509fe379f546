"""What a flow is between two steps: its arrays and its numbers, taken out and put in again.

What follows from the scene and the time (solids, noise, what stands on the sides) is not in it. A flow that goes on from
it on the backend that it was taken from has the bits of one that was never interrupted.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from ..carried import CARRIED, Carried
from .engine import Engine
from .kept import Arrays, Numbers, out_of, within


def taken_from(engine: Engine) -> tuple[Arrays, Numbers]:
    """Arrays and numbers of a flow between two steps, by name; numbers can be written as JSON."""
    engine.grid.require_runtime()
    state = engine.state
    arrays = {"velocity": state.velocity.current.to_numpy(), "pressure": state.pressure.to_numpy()}
    arrays |= within("carried", {name: each.current.to_numpy() for name, each in state.carried.items()})
    arrays |= within("outflow", {str(i): each for i, each in engine.walls.outflows.items()})
    numbers: Numbers = {
        "time": engine.time,
        "steps": engine.steps,
        "pressed": engine.pressed if math.isfinite(engine.pressed) else None,
        "carried": {name: each.components for name, each in state.carried.items()},
        "rows": {name: asdict(each.row) for name, each in state.carried.items() if name not in CARRIED},
        "own": engine.own,
    }
    if engine.flame is not None:
        arrays["growth"] = engine.flame.growth.to_numpy()
        numbers |= {"burnt": engine.flame.burnt, "expands": engine.expansion is not None}
    if engine.earlier is not None:
        arrays["earlier pressure"] = engine.earlier.pressure.to_numpy()
        steps, dt, halved, lasting, _, rubbed, nearest = engine.earlier
        numbers["earlier"] = [steps, dt, halved, lasting, nearest]
        if rubbed is not None:
            arrays["earlier rubbed"] = rubbed.to_numpy()
    if engine.liquid is not None:
        own, of_liquid = engine.liquid.state()
        arrays |= within("liquid", own)
        numbers["liquid"] = of_liquid
    own, numbers["kept"] = engine.kept.state()
    return arrays | within("kept", own), numbers


def put_into(engine: Engine, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> None:
    """Let a flow that was built from the same scene be what ``taken_from`` has found.

    Raises:
        ValueError: for arrays of another grid, some that are missing, or other solids of one's own; the flow is not to be used then.
        KeyError: for a number that is missing.
    """
    state = engine.state
    if (own := numbers.get("own", engine.own)) != engine.own:  # kept before that was written
        raise ValueError(f"of solids and sides of one's own it was written with {own}, and given are {engine.own}")
    state.add([Carried(**row) for name, row in numbers.get("rows", {}).items() if name not in CARRIED])
    state.add({name: count for name, count in numbers["carried"].items() if name not in state.carried})
    wanted = {"velocity": state.velocity.current, "pressure": state.pressure}
    wanted |= {f"carried/{name}": each.current for name, each in state.carried.items()}
    engine.time, engine.steps = float(numbers["time"]), int(numbers["steps"])
    engine.pressed = math.inf if numbers["pressed"] is None else float(numbers["pressed"])
    if "burnt" in numbers:
        flame = engine.light()
        flame.burnt = float(numbers["burnt"])
        wanted["growth"] = flame.growth
    if "earlier" in numbers:
        earlier = engine.begin_earlier(*numbers["earlier"])
        wanted["earlier pressure"] = earlier.pressure
        if earlier.rubbed is not None:
            wanted["earlier rubbed"] = earlier.rubbed
    for name, array in wanted.items():
        values = arrays.get(name)
        if values is None or values.shape != tuple(array.shape) or values.dtype != np.float32:
            raise ValueError(f"{name} is missing, or of another grid")
        array.from_numpy(np.ascontiguousarray(values))
    engine.kept.restore_state(out_of("kept", arrays), numbers["kept"])
    engine.place_solids(engine.time)  # of a cell that expands counts what they leave open
    if numbers.get("expands"):
        flame = engine.light()
        flame.finish()
        engine.expansion = flame.expansion
    if engine.liquid is not None:
        engine.liquid.restore_state(out_of("liquid", arrays), numbers["liquid"])
        engine.expansion = engine.liquid.expansion
    engine.walls.forget_outflow({int(place): each for place, each in out_of("outflow", arrays).items()})
    engine.move_as_at(engine.time)
