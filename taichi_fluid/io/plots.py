"""Probes and logs over time, drawn by matplotlib (extra ``plot``)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .files import whole_file

PROFILES = 6
"""Times at which what lies along a line is drawn."""
TITLES = {
    "cfl": "CFL number",
    "dt": "dt in s",
    "divergence": "divergence in 1/s",
    "ms": "ms a step",
    "kinetic_energy": "kinetic energy in J (2D: J/m)",
    "enstrophy": "enstrophy in m³/s² (2D: m²/s²)",
    "amount": "amount in m³ (2D: m²) times its unit",
    "liquid_volume": "volume of the liquid in m³ (2D: m²)",
}
"""Of what a log has, where the name alone does not say it."""


def plot_run(path: Path, probes: Any = None, log: Sequence[Mapping[str, float]] = ()) -> None:
    """A panel for each probe, and for each kind of number of a log.

    Args:
        path: What to write, in the format of its suffix.
        probes: ``simulation.probes.Probes`` that have measured: columns over time, of a line its values along it at some times.
        log: Rows as ``viewer.log.Log`` writes them, over time; amounts of several quantities share a panel.
    """
    from matplotlib.figure import Figure

    measured = [] if probes is None else list(probes.probes.values())
    logged = dict.fromkeys(name.partition(".")[0] for name in (log[0] if log else ()) if name not in ("time", "steps"))
    count = len(measured) + (len(logged) + 1) // 2
    figure = Figure(figsize=(8, 2.6 * count), layout="constrained")
    grid = figure.add_gridspec(max(count, 1), 2)
    for place, probe in enumerate(measured):
        _draw_probe(figure.add_subplot(grid[place, :]), probe, probes)
    for i, kind in enumerate(logged):
        _draw_logged(figure.add_subplot(grid[len(measured) + i // 2, i % 2]), kind, log)
    for panel in figure.axes:
        panel.grid(alpha=0.3)
        if panel.lines and any(not line.get_label().startswith("_") for line in panel.lines):
            panel.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        figure.savefig(temporary, dpi=130)


def _draw_logged(panel: Any, kind: str, log: Sequence[Mapping[str, float]]) -> None:
    """One kind of number over time; what spans more than two orders of magnitude by its logarithm."""
    times, names = [row["time"] for row in log], [name for name in log[0] if name.partition(".")[0] == kind]
    values = np.array([[row.get(name, np.nan) for name in names] for row in log])
    for name, column in zip(names, values.T, strict=True):
        panel.plot(times, column, label=name.partition(".")[2] or f"_{name}")
    positive = values[values > 0]
    if positive.size == np.isfinite(values).sum() > 0 and positive.max() > 100 * positive.min():
        panel.set_yscale("log")
    panel.set(title=TITLES.get(kind, kind.replace("_", " ")), xlabel="t in s")


def _draw_probe(panel: Any, probe: Any, probes: Any) -> None:
    columns = [name for name in probes.columns if name.partition(".")[0] == probe.name]
    if probe.kind == "line":
        _draw_profiles(panel, probe, columns, probes)
    else:
        for name in columns:
            panel.plot(*probes.series(name), label=name)
        panel.set(xlabel="t in s")
    unit = probe.unit(probes.simulation.grid.dim)
    panel.set(
        title=" ".join(
            filter(None, (f"{probe.name}:", probe.quantity, probe.kind, "" if unit == "1" else f"in {unit}"))
        )
    )


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
