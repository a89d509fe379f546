"""Checkpoints: a scene and the state of its flow in one file, from which it goes on bit for bit.

The file is one of safetensors: a header of JSON and arrays, nothing that could be executed. Its metadata hold the scene as
TOML, the numbers of the state, and a checksum of all of that and the arrays, which is looked at before anything else is.
"""

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import save_file

from ..boundaries.sides import Side
from ..boundaries.solids import Solid
from ..scene import Scene
from ..simulation import Simulation
from ..simulation.kept import Arrays, HasState, Numbers
from ..simulation.snapshot import put_into, taken_from
from .files import whole_file
from .stored import FORMAT, MARK, NUMBERS, SCENE, SUM, CheckpointError, before, checksum, read


def save(simulation: Simulation, path: str | Path) -> Path:
    """Write the scene and the state of a simulation between two steps into a file.

    It is whole or not there, on the disk when this returns, and the one that was there before is kept beside it, with
    ``.before`` behind its name. Stages, forces and solids of one's own are code and not in it: give them again. What they
    remember is, where ``simulation.kept`` knows them by a name.

    Args:
        simulation: What to write.
        path: The file.

    Returns:
        The path.

    Raises:
        OSError: if it cannot be written; what was there before still is.
        RuntimeError: in the middle of a step, or if Taichi was re-initialised.
    """
    return write(contents_of(simulation), path)


Contents = tuple[Arrays, dict[str, str]]
"""What a checkpoint will hold: arrays, and the texts beside them but for the checksum."""


def contents_of(simulation: Simulation) -> Contents:
    """What ``save`` would write now, in the memory of the host.

    Raises:
        RuntimeError: as ``save`` does.
    """
    simulation.require_whole()
    arrays, numbers = taken_from(simulation)
    return arrays, {
        MARK: str(FORMAT),
        SCENE: simulation.scene.dumps(absolute=True),
        NUMBERS: json.dumps(numbers, allow_nan=False),
    }


def write(contents: Contents, path: str | Path) -> Path:
    """Write what ``contents_of`` has found into a file, as ``save`` does."""
    path, (arrays, texts) = Path(path), contents
    texts = {**texts, SUM: checksum(arrays, texts)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        try:
            save_file(
                {name: np.ascontiguousarray(values) for name, values in arrays.items()}, temporary, metadata=texts
            )
        except SafetensorError as error:  # which is what it makes of a full disk
            raise OSError(f"the checkpoint {str(path)!r}: {error}") from None
        _flush(temporary)
        if path.exists():
            os.replace(path, before(path))
    _flush(path.parent)
    return path


def load(
    path: str | Path,
    solids: Sequence[Solid] = (),
    sides: Mapping[tuple[int, int], Side] = MappingProxyType({}),
    kept: Mapping[str, HasState] = MappingProxyType({}),
) -> Simulation:
    """The simulation of a checkpoint, which goes on as the one that was written would have.

    On the backend and the machine that it was written on every bit is the same; on others numbers differ as they do between
    backends. Taichi must be running.

    Args:
        path: The file. If it is not whole, the one before it is taken, with a warning.
        solids: The caller's own, as they were given to ``Simulation``.
        sides: So are these.
        kept: Things that ``simulation.kept`` knew, such as the motion of a solid; they get their state back before the solids
            are placed. To one that needs the simulation first, ``simulation.kept.add`` gives it back.

    Raises:
        CheckpointError: if neither is a checkpoint, or if it is of another version.
    """
    return restored(path, *read(path), solids, sides, kept)


def restored(
    path: str | Path,
    scene: Scene,
    arrays: Arrays,
    numbers: Numbers,
    solids: Sequence[Solid] = (),
    sides: Mapping[tuple[int, int], Side] = MappingProxyType({}),
    kept: Mapping[str, HasState] = MappingProxyType({}),
) -> Simulation:
    """A simulation of a scene with what was ``read`` from a file of that path in it.

    Raises:
        CheckpointError: if they do not fit each other.
    """
    simulation = Simulation(scene, solids, sides)
    for name, thing in kept.items():
        simulation.kept.add(name, thing)
    try:
        put_into(simulation, arrays, numbers)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:  # somebody has written it anew
        raise CheckpointError(f"{str(path)!r} does not fit its scene: {error}.") from None
    return simulation


def _flush(path: Path) -> None:
    """Have the system write a file, or a folder's names, to the disk; where a folder cannot be opened it does so itself."""
    with contextlib.suppress(PermissionError if path.is_dir() else ()):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
