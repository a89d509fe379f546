"""How often a run writes a checkpoint."""

import re
from typing import NamedTuple


class Rhythm(NamedTuple):
    """How often a checkpoint is written: after so many steps, or seconds of the clock; never but at the end with neither."""

    steps: int = 0
    seconds: float = 0.0


def rhythm_of(text: str | None) -> Rhythm:
    """``"200"`` steps or ``"30s"``, or neither for None; ValueError for anything else."""
    if text is None:
        return Rhythm()
    found = re.fullmatch(r"([0-9]{1,9})|([0-9]{1,7}(?:\.[0-9]{1,6})?)s", text)
    if found is None or not float(found[1] or found[2]) > 0:
        raise ValueError(
            f"--checkpoint-every is {text[:40]!r}; it must be a number of steps, or of seconds such as 30s, above 0"
        )
    return Rhythm(int(found[1] or 0), float(found[2] or 0))
