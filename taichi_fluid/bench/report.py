"""What a benchmark has found, for a person: tables, ratios of two files, and a plot."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

Row = Mapping[str, Any]


def _key(row: Row) -> tuple:
    return row["scene"], tuple(row["resolution"]), tuple(row.get("settings", ()))


def _title(row: Row) -> str:
    shape = " x ".join(map(str, row["resolution"]))
    return ", ".join([row["scene"], f"{shape} cells", *row.get("settings", ())])


def _number(value: float | None, unit: str = "") -> str:
    """Three digits, or a dash where there is no number."""
    if value is None:
        return "-"
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text}{unit}"


def tables(rows: Sequence[Row]) -> RenderableType:
    """For each scene and resolution its arches side by side: the stages with ratios to the first arch, then the rest."""
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault(_key(row), []).append(row)
    parts: list[RenderableType] = []
    for group in groups.values():
        done = [row for row in group if "problem" not in row]
        if done:
            parts += [Text(_title(done[0]), style="italic"), _stage_table(done), _number_table(done)]
            if told := other_solvers(done, [row["arch"] for row in done]):
                parts.append(Text(told))
        parts += [Text(f"{row['arch']}, {_title(row)}: {row['problem']}") for row in group if "problem" in row]
    return Group(*parts)


def start_tables(rows: Sequence[Row]) -> RenderableType:
    """For each row its start part by part and kernel by kernel, cold and warm."""
    parts: list[RenderableType] = []
    for row in rows:
        title = f"{row['arch']}, {_title(row)}"
        if "problem" in row:
            parts.append(Text(f"{title}: {row['problem']}"))
            continue
        counted = "the median of each" if row["rounds"] > 1 else "one start of each"
        parts += [
            Text(f"{title}: {counted}", style="italic"),
            _start_table(row["startup"]),
            _kernel_table(row["startup"]),
            *map(Text, _not_in_all(row["startup"], row["rounds"])),
        ]
        parts.append(Text(f"load of the machine before: {_number(row['load'])}, device: {row['device'] or '-'}"))
    return Group(*parts)


def _start_table(startup: Row) -> Table:
    table = Table("")
    for temperature in startup:
        table.add_column(f"{temperature}: clock, s", justify="right")
        table.add_column("processor, s", justify="right")
    for part in startup["cold"]["clock_s"]:
        if part == "sum":
            table.add_section()
        table.add_row(
            part, *(f"{each[clock][part]:.2f}" for each in startup.values() for clock in ("clock_s", "processor_s"))
        )
    return table


def told_apart(kernels: Sequence[Row]) -> dict[tuple[str, int], Row]:
    """The kernels of a start by name, and by the how-many-eth of that name: one for each dimension, say."""
    found: dict[tuple[str, int], Row] = {}
    for kernel in kernels:
        count = sum(name == kernel["name"] for name, _ in found)
        found[kernel["name"], count] = kernel
    return found


def _not_in_all(startup: Row, rounds: int) -> Iterator[str]:
    """A sentence for each kernel that some starts have compiled and others not."""
    for temperature, each in startup.items():
        for kernel in each["kernels"]:
            if "starts" in kernel:
                yield f"{kernel['name']} was compiled in {kernel['starts']} of {rounds} {temperature} starts."


def _kernel_table(startup: Row) -> Table:
    """Milliseconds of the processors, the dearest kernels first; a dash where a start has not compiled one."""
    names = {"python_s": "Python", "code_s": "code", "launch_s": "first launch"}
    table = Table("kernel")
    for temperature in startup:
        for name in names.values():
            table.add_column(f"{temperature}: {name}, ms" if name == "Python" else name, justify="right")
    starts = [told_apart(each["kernels"]) for each in startup.values()]
    pairs = {kernel: [start.get(kernel) for start in starts] for start in starts for kernel in start}
    for (name, _), pair in sorted(pairs.items(), key=lambda item: -max(_seconds(each, names) for each in item[1])):
        table.add_row(name, *(_number(each and 1e3 * each[key]) for each in pair for key in names))
    table.add_section()
    sums = (1e3 * sum(kernel[key] for kernel in each["kernels"]) for each in startup.values() for key in names)
    counts = dict.fromkeys(str(len(start)) for start in starts)
    table.add_row(f"{' and '.join(counts)} kernels", *map(_number, sums))
    return table


def _seconds(kernel: Row | None, names: Iterable[str]) -> float:
    return sum(kernel[key] for key in names) if kernel else 0.0


def _stage_table(rows: Sequence[Row]) -> Table:
    table = Table()
    table.add_column("stage")
    for row in rows:
        table.add_column(f"{row['arch']}: ms", justify="right")
        for name in ("quartiles", "processor", "Mcells/s", "GB/s", "of copy"):
            table.add_column(name, justify="right")
        if row is not rows[0]:
            table.add_column(f"{row['arch']}/{rows[0]['arch']}", justify="right")
    names = list(dict.fromkeys(name for row in rows for name in row["stages"]))
    for name in names:
        cells = [name]
        for row in rows:
            cells += _stage_cells(row["stages"].get(name), rows[0]["stages"].get(name), row is not rows[0])
        table.add_row(*cells)
    cells = ["whole step"]
    for row in rows:
        whole = {**row, "median_ms": row["ms_per_step"]}
        cells += _stage_cells(whole, {"median_ms": rows[0]["ms_per_step"]}, row is not rows[0])
    table.add_section()
    table.add_row(*cells)
    return table


def _stage_cells(stage: Row | None, first: Row | None, ratio: bool) -> list[str]:
    if stage is None:
        return ["-"] * (7 if ratio else 6)
    low, high = stage["quartiles_ms"]
    share = stage.get("share_of_copy")
    cells = [
        _number(stage["median_ms"]),
        f"{_number(low)}–{_number(high)}",
        _number(stage["processor_ms"]),
        _number(1e-6 * stage["cells_per_s"]),
        _number(stage.get("gb_per_s")),
        "-" if share is None else f"{share:.1%}",
    ]
    if ratio:
        cells.append("-" if first is None else _number(stage["median_ms"] / first["median_ms"]))
    return cells


def _number_table(rows: Sequence[Row]) -> Table:
    table = Table("", *(row["arch"] for row in rows), show_header=len(rows) > 1)
    lines = {
        "pressure solver": lambda r: r.get("pressure_solver", "-"),
        "iterations": lambda r: _number(r["iterations"]),
        "relative residual, worst": lambda r: f"{r['relative_residual']:.1e}",
        "divergence left by the projection": lambda r: f"{r['divergence']['left']:.1e}",
        "divergence · dx / speed, largest": lambda r: f"{r['divergence']['max']:.1e}",
        "compiling, cold and warm": lambda r: _pair(r["compile_s"]),
        "first frame, cold and warm": lambda r: _pair(r["first_frame_s"]),
        "kernels, flow and picture": lambda r: f"{r['kernels']['flow']} and {r['kernels']['picture']}",
        "launches per step, from Python": lambda r: (
            f"{_number(r['launches_per_step'])}, {_number(r['calls_per_step'])}"
        ),
        "arrays, bytes per cell": lambda r: f"{_number(r['arrays_mb'])} MB, {_number(r['bytes_per_cell'])}",
        "particles": _particles,
        "peak memory": lambda r: (
            f"{_number(r['peak_memory_mb'])} MB, {'of the process' if r['arch'] == 'cpu' else 'of the arrays'}"
        ),
        "load of the machine before": lambda r: _number(r["load"]),
        "copy": lambda r: _number(r["copy_gb_per_s"], " GB/s"),
        "device": lambda r: r["device"] or "-",
    }
    for name, text in lines.items():
        table.add_row(name, *map(text, rows))
    uncounted = {name for row in rows for name in row["uncounted_kernels"]}
    if uncounted:
        families = ", ".join(sorted({name.partition("_kernels.")[0].replace("_", " ") for name in uncounted}))
        table.add_row("bytes not counted", *[f"of {len(uncounted)} kernels: {families}"] * len(rows))
    return table


def _particles(row: Row) -> str:
    particles = row.get("particles")
    return f"{particles['count']}, {particles['bytes_each']} bytes each" if particles else "-"


def other_solvers(rows: Sequence[Row], names: Sequence[str]) -> str:
    """What is to be known before times of rows are set beside each other; empty if all solve for the pressure in one way."""
    solvers = [row.get("pressure_solver", "an unnamed solver") for row in rows]
    if len(set(solvers)) < 2:
        return ""
    told = ", ".join(f"{name} by {solver}" for name, solver in zip(names, solvers, strict=True))
    return f"Not the same work: the pressure is solved for on {told}."


def _pair(value: Mapping[str, float]) -> str:
    return f"{_number(value['cold'], ' s')}, {_number(value['warm'], ' s')}"


def matched(before: Sequence[Row], after: Sequence[Row]) -> Iterator[tuple[Row, Row]]:
    """Rows of two files that measure the same: arch, scene, resolution and settings, and steps or a start."""
    latest = {(row["arch"], "startup" in row, *_key(row)): row for row in before if "problem" not in row}
    for row in after:
        first = latest.get((row["arch"], "startup" in row, *_key(row)))
        if first is not None and "problem" not in row:
            yield first, row


def _ratios(before: Row, after: Row) -> Iterator[tuple[str, float, float]]:
    if "startup" in after:
        yield from _start_ratios(before["startup"], after["startup"])
        return
    yield "ms per step", before["ms_per_step"], after["ms_per_step"]
    for name, stage in after["stages"].items():
        if name in before["stages"]:
            yield f"  {name}, ms", before["stages"][name]["median_ms"], stage["median_ms"]
    for name in (
        "processor_ms",
        "iterations",
        "relative_residual",
        "launches_per_step",
        "bytes_per_cell",
        "peak_memory_mb",
        "copy_gb_per_s",
    ):
        if name in before and name in after:
            yield name.replace("_", " "), before[name], after[name]
    if "divergence" in before and "divergence" in after:
        yield "divergence · dx / speed, largest", before["divergence"]["max"], after["divergence"]["max"]
    for name in ("compile_s", "first_frame_s"):
        for kind in ("cold", "warm"):
            if name in before and name in after:
                yield f"{name[:-2].replace('_', ' ')}, {kind}, s", before[name][kind], after[name][kind]


def _start_ratios(before: Row, after: Row) -> Iterator[tuple[str, float, float]]:
    for temperature, found in after.items():
        for clock, name in (("clock_s", "clock"), ("processor_s", "processor")):
            for part, seconds in found[clock].items():
                yield f"{part}, {temperature}, {name}, s", before[temperature][clock].get(part, 0.0), seconds


def comparison(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[RenderableType]:
    """Tables of ratios, after over before, for what both files have measured; empty where there is nothing."""
    parts: list[RenderableType] = []
    for first, second in matched(before["rows"], after["rows"]):
        table = Table("", "A", "B", "B/A")
        for name, a, b in _ratios(first, second):
            table.add_row(name, _number(a), _number(b), _number(b / a) if a else "-")
        parts += [Text(f"{second['arch']}, {_title(second)}", style="italic"), table]
        if "startup" in second:
            continue
        if told := other_solvers((first, second), ("A", "B")):
            parts.append(told)
    differing = [key for key in ("machine", "versions", "commit") if before.get(key) != after.get(key)]
    if parts and differing:
        parts.append(f"The two files differ in {' and '.join(differing)}.")
    return parts


def plot(rows: Sequence[Row], path: Path) -> None:
    """Time of a step over the number of cells, and where it goes; written by matplotlib in the format of the suffix."""
    from matplotlib.figure import Figure

    done = [row for row in rows if "stages" in row]
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    scaling, bars = figure.subplots(1, 2)
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in done:
        cells = math.prod(row["resolution"])
        label = ", ".join([row["arch"], row["scene"], *row.get("settings", ())])
        lines.setdefault(label, []).append((cells, row["ms_per_step"]))
    for label, points in lines.items():
        scaling.plot(*zip(*sorted(points), strict=True), "o-", label=label)
    scaling.set(xscale="log", yscale="log", xlabel="cells", ylabel="ms per step", title="time of a step")
    scaling.grid(alpha=0.3)
    scaling.legend()
    labels = [f"{row['arch']}\n{row['scene']}\n{'x'.join(map(str, row['resolution']))}" for row in done]
    bottom = [0.0] * len(done)
    for name in dict.fromkeys(name for row in done for name in row["stages"]):
        heights = [_share(row, name) for row in done]
        bars.bar(range(len(done)), heights, bottom=bottom, label=name)
        bottom = [b + h for b, h in zip(bottom, heights, strict=True)]
    bars.set(ylabel="share of the stages", title="where it goes", ylim=(0, 1))
    bars.set_xticks(range(len(done)), labels, fontsize=8)
    bars.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=130)


def _share(row: Row, name: str) -> float:
    total = sum(stage["median_ms"] for stage in row["stages"].values())
    return row["stages"][name]["median_ms"] / total if name in row["stages"] else 0.0
