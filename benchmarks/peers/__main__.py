"""``python -m benchmarks.peers``: which programs, on which grids, and the table of what was found."""

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from taichi_fluid.io.files import OutputError, require_writable, write_json

from .registry import OURS, PEERS, REQUIREMENTS, missing
from .turns import Problem, Worker, wavefront

RESOLUTIONS = {2: 256, 3: 64}
TOLERANCES = {2: 1e-4, 3: 1e-3}

WIDTH = 96
"""Columns of text that the table is given in a file or a pipe."""


def report(rows: list[dict[str, Any]], title: str) -> RenderableType:
    """Ours and theirs of each pair, and below the table what each of them solves."""
    found = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), caption="x ours: theirs over ours in the same turns; above 1 theirs is slower")  # fmt: skip
    found.add_column("program", no_wrap=True)
    for name in ("ms per\nstep", "quartiles", "processor\nms", "x ours", "x ours,\nprocessor", "divergence\nleft", "iter-\nations"):  # fmt: skip
        found.add_column(name, justify="right", no_wrap=True)
    notes, beside = [], None
    for row in sorted(rows, key=lambda row: list(OURS).index(row["beside"])):
        if "problem" in row:
            notes.append(Text(f"{row['peer']} has failed. {row['problem']}", style="red"))
            continue
        if row["beside"] != beside:
            beside = row["beside"]
            found.add_section()
            found.add_row(f"ours, {beside}", *_numbers(row["ours"]), style="bold")
            notes.append(Text(f"ours, {beside}: {OURS[beside].solves}; solved by {row['ours']['pressure_solver']}"))
        found.add_row(row["peer"], *_numbers(row["theirs"], (row["ratio"], row["processor_ratio"])))
        notes.append(Text(f"{row['peer']}: {row['solves']}"))
    return Group(found, *notes)


def _numbers(program: dict[str, Any], ratios: tuple[float, float] = (1.0, 1.0)) -> list[str]:
    iterations = program["iterations"]
    return [
        _short(program["ms"]), "–".join(map(_short, program["quartiles_ms"])), _short(program["processor_ms"]),
        *map(_short, ratios), f"{program['left']:.1e}", "-" if iterations is None else f"{iterations:g}",
    ]  # fmt: skip


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def compare(name: str, n: int, dim: int, rounds: int, seconds: float, options: dict[str, Any]) -> dict[str, Any]:
    """The row of one peer; ``problem``, a sentence, where it has no numbers."""
    entry = PEERS[name]
    row = {
        "peer": name,
        "beside": entry.beside,
        "dim": dim,
        "resolution": n,
        "solves": entry.solves,
        "options": options,
    }
    row["versions"] = {at_pypi: version(at_pypi) for at_pypi in entry.packages.values()}
    try:
        with Worker(peer=name, n=n, dim=dim) as theirs:
            row["their_warm_steps"] = theirs.warm_up()
            with Worker(ours=entry.beside, n=n, dim=dim, options=options) as ours:
                row["our_warm_steps"] = ours.warm_up()
                return {**row, **wavefront(ours, theirs, rounds, seconds)}
    except Problem as problem:
        return {**row, "problem": str(problem)}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--peer",
    "peers",
    multiple=True,
    type=click.Choice(list(PEERS)),
    help="Compare with this one. May be repeated; left out, with all.",
)
@click.option("--dim", type=click.Choice(["2", "3"]), default="3", show_default=True)
@click.option(
    "--resolution",
    "resolutions",
    multiple=True,
    type=click.IntRange(8, 1024),
    help="Cells along each axis. May be repeated; left out, 256 in 2D and 64 in 3D.",
)
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(1, 1000), help="Turns of each that count.")
@click.option(
    "--seconds",
    default=120.0,
    show_default=True,
    type=click.FloatRange(0),
    help="No round of a pair begins after so long, but for the first three.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(1e-7, 0.5),
    help="Relative residual of our pressure; left out, 1e-4 in 2D and 1e-3 in 3D.",
)
@click.option(
    "--pressure",
    type=click.Choice(["auto", "spectral", "multigrid-cg", "multigrid"]),
    default="auto",
    show_default=True,
    help="Our solver.",
)
@click.option("--arch", default="cpu", show_default=True, help="Our backend.")
@click.option(
    "--json",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write every step, versions and the machine.",
)
def main(peers, dim, resolutions, rounds, seconds, tolerance, pressure, arch, path) -> None:  # fmt: skip
    """Other fluid solvers from PyPI and ours, in turn: time and divergence left."""
    dim = int(dim)
    for name in peers:
        if dim not in PEERS[name].dims:
            _refuse(f"{name} has no {dim}D flow: take --dim {PEERS[name].dims[0]}.")
    names = list(peers) or [name for name, entry in PEERS.items() if dim in entry.dims]
    absent = missing(names)
    if absent:
        _refuse(f"these peers need {', '.join(absent)}: pip install -r {REQUIREMENTS}, or leave them out with --peer.")
    if path is not None:
        try:
            require_writable(path, "the file of --json")
        except OutputError as error:
            _refuse(str(error))
    options = {"arch": arch, "pressure": pressure, "tolerance": tolerance or TOLERANCES[dim]}
    console, rows = Console(), []
    if not console.is_terminal:
        console.width = max(console.width, WIDTH)
    for n in resolutions or (RESOLUTIONS[dim],):
        for name in names:
            with Console(stderr=True).status(f"{name}, {n}^{dim}"):
                rows.append(compare(name, n, dim, rounds, seconds, options))
            if path is not None:
                write_json(path, {"machine": _machine(), "rows": rows})
        here = [row for row in rows if row["resolution"] == n]
        shape = " x ".join([str(n)] * dim)
        console.print(report(here, f"{shape} cells, our pressure to {options['tolerance']:g}"))
    sys.exit(1 if any("problem" in row for row in rows) else 0)


def _machine() -> dict[str, Any]:
    import taichi_fluid._ti  # noqa: F401  (imports Taichi quietly)

    from ..common import machine

    return machine()


def _refuse(sentence: str) -> None:
    print(f"peers: {sentence}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.peers")
