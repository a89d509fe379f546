"""Tables of rows with names: what the engine knows of a subject, and what others add to it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

Row = TypeVar("Row")


class Table(Mapping[str, Row], Generic[Row]):
    """Rows by their ``name``, in their order: the engine's own, which stay as they are, and those that were added.

    Args:
        subject: What a row is, for messages.
        rows: The engine's own.
    """

    def __init__(self, subject: str, rows: tuple[Row, ...]):
        self._subject = subject
        self._rows: dict[str, Any] = {row.name: row for row in rows}
        self._own = frozenset(self._rows)
        self._watchers: list[Callable[[], None]] = []

    def __getitem__(self, name: str) -> Row:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def is_own(self, name: str) -> bool:
        """Whether a row is the engine's own."""
        return name in self._own

    def add(self, row: Row) -> Row:
        """Add a row, for the whole process; it takes the place of one of that name that was added before.

        Scenes and simulations know it that are made from then on.

        Returns:
            The row.

        Raises:
            ValueError: for a name that is none, or taken by a row of the engine's own or by something else.
        """
        name = getattr(row, "name", None)
        if not isinstance(name, str) or not name:
            raise ValueError(f"a {self._subject} is called {name!r}; it must have a name")
        if self.is_own(name):
            raise ValueError(f"there is a {self._subject} {name!r} of the engine's own; choose another name")
        before = dict(self._rows)
        self._rows[name] = row
        self._changed(before)
        return row

    def remove(self, name: str) -> None:
        """Take away a row that was added; KeyError if there is none of that name."""
        if self.is_own(name):
            raise KeyError(f"the {self._subject} {name!r} is the engine's own and stays")
        before = dict(self._rows)
        del self._rows[name]
        self._changed(before)

    def watch(self, changed: Callable[[], None]) -> None:
        """Have ``changed`` called after each change; it may refuse one by a ValueError."""
        self._watchers.append(changed)

    def _changed(self, before: dict[str, Any]) -> None:
        try:
            for changed in self._watchers:
                changed()
        except ValueError:
            self._rows = before
            for changed in self._watchers:
                changed()
            raise
