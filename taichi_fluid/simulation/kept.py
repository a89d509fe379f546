"""Things beside a flow that have a state of their own, kept with its checkpoints under their names."""

import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np

Arrays = dict[str, np.ndarray]
Numbers = dict[str, Any]


class HasState(Protocol):
    """What has a state between two steps that does not follow from scene and time."""

    def state(self) -> tuple[Arrays, Numbers]:
        """Arrays by name, and what can be written as JSON."""
        ...

    def restore_state(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> None:
        """Be what ``state`` has found; ValueError if that does not fit."""
        ...


class Kept:
    """Such things by name, and what has been read of those that have not come yet."""

    def __init__(self):
        self._things: dict[str, Callable[[], HasState | None]] = {}
        self._awaited: dict[str, tuple[Arrays, Numbers]] = {}

    def add(self, name: str, thing: HasState, weakly: bool = False) -> None:
        """Keep a thing from now on, in place of one of that name; if its state was read before, that is put into it.

        ``weakly``, for as long as somebody else has it: for what has the flow itself, so that both are freed at once.
        """
        self._things[name] = weakref.ref(thing) if weakly else lambda: thing
        if name in self._awaited:
            thing.restore_state(*self._awaited.pop(name))

    def forget(self) -> None:
        """Forget what was read of things that have not come."""
        self._awaited.clear()

    def state(self) -> tuple[Arrays, Numbers]:
        """Of all of them; what has not come yet stays as it was read."""
        arrays, numbers = {}, {}
        here = {name: thing.state() for name, thing in self._here()}
        for name, (own, words) in {**self._awaited, **here}.items():
            arrays |= within(name, own)
            numbers[name] = words
        return arrays, numbers

    def restore_state(self, arrays: Mapping[str, np.ndarray], numbers: Mapping[str, Any]) -> None:
        """Be what ``state`` has found: at once in things that are here, later in others."""
        self._awaited = {name: (out_of(name, arrays), words) for name, words in numbers.items()}
        for name, thing in self._here():
            if name in self._awaited:
                thing.restore_state(*self._awaited.pop(name))

    def _here(self) -> Iterator[tuple[str, HasState]]:
        """Those that still are."""
        for name, look in self._things.items():
            if (thing := look()) is not None:
                yield name, thing


def within(name: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Arrays with a name before their own."""
    return {f"{name}/{each}": values for each, values in arrays.items()}


def out_of(name: str, arrays: Mapping[str, np.ndarray]) -> Arrays:
    """Those of them that have this name before their own, without it."""
    return {each.removeprefix(f"{name}/"): values for each, values in arrays.items() if each.startswith(f"{name}/")}
