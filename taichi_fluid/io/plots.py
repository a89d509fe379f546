"""Probes over time, drawn by matplotlib (extra ``plot``)."""

from pathlib import Path
from typing import Any

import numpy as np

from .files import whole_file

PROFILES = 6
"""Times at which what lies along a line is drawn."""


def plot_probes(probes: Any, path: Path) -> None:
    """A panel for each probe: its columns over time, of a line its values along it at some times.

    Args:
        probes: ``simulation.probes.Probes`` that have measured.
        path: What to write, in the format of its suffix.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 2.6 * len(probes.probes)), layout="constrained")
    panels = figure.subplots(len(probes.probes), 1, squeeze=False)[:, 0]
    for panel, probe in zip(panels, probes.probes.values(), strict=True):
        columns = [name for name in probes.columns if name.partition(".")[0] == probe.name]
        if probe.kind == "line":
            _draw_profiles(panel, probe, columns, probes)
        else:
            for name in columns:
                panel.plot(*probes.series(name), label=name)
            panel.set(xlabel="t in s")
        panel.set(title=" ".join(filter(None, (f"{probe.name}:", probe.quantity, probe.kind))))
        panel.grid(alpha=0.3)
        if panel.lines:
            panel.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=130)


def _draw_profiles(panel: Any, probe: Any, columns: list[str], probes: Any) -> None:
    """Each component along the line; the last time is drawn darkest."""
    length = float(np.linalg.norm(np.subtract(probe.to, probe.at)))
    times = probes.series(columns[0])[0]
    for ending in dict.fromkeys(name.split(".", 2)[2] if name.count(".") > 1 else "" for name in columns):
        own = [name for name in columns if name.count(".") < 2 or name.split(".", 2)[2] == ending]
        values = np.array([probes.series(name)[1] for name in own])
        chosen = sorted({round(i) for i in np.linspace(0, len(times) - 1, PROFILES)})
        for rank, i in enumerate(chosen):
            label = f"{ending} t = {times[i]:.3g} s".strip()
            panel.plot(np.linspace(0, length, len(own)), values[:, i], label=label, alpha=(rank + 1) / len(chosen))
    panel.set(xlabel="m along the line")
