"""What cases have found, for a person: tables, a table in Markdown, plots."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..io.files import whole_file
from .cases import Outcome

Found = Mapping[str, Any]
"""What ``Outcome.to_dict`` gives, and a file holds."""

BEGIN, END = "<!-- Made by taichi-fluid validate --markdown. -->\n", "<!-- So far. -->\n"
"""What stands around the table in a document."""


class NoValidation(ValueError):
    """A file that does not hold what it should; the message says so in a sentence."""


def _figure(value: float | None) -> str:
    """Four digits, or what it is where it is no number."""
    return "not finite" if value is None or not math.isfinite(value) else f"{value:.4g}"


def _cost(found: Found) -> str:
    return f"{found['cells']} cells, {found['steps']} steps, {found['seconds']:.1f} s, {found['processor_s']:.1f} s of processors"


def _settings(found: Found) -> str:
    return "".join(f", {key} = {value}" for key, value in found["changes"].items())


def table(outcome: Outcome) -> RenderableType:
    """One case: its figures beside what they should be, and what it cost."""
    found = outcome.to_dict()
    plain = any(row["plain"] for row in found["rows"])
    rows = Table("quantity", "found", "should be", *(["a plain code"] if plain else []), "")
    rows.columns[1].justify = "right"
    for row in found["rows"]:
        verdict = "holds" if row["holds"] else "DOES NOT HOLD"
        reached = [row["plain"]] if plain else []
        rows.add_row(row["quantity"], _figure(row["found"]), row["reference"], *reached, verdict)
    title = Text(f"{found['case']}: {found['title']} ({found['source']}){_settings(found)}", style="italic")
    problem = [Text(f"It broke off: {found['problem']}")] if found["problem"] else []
    return Group(title, *([rows] if found["rows"] else []), *problem, Text(_cost(found)))


HEAD = "| case | quantity | found | should be | a plain code | |\n|---|---|--:|---|---|---|\n"


def in_markdown(cases: Sequence[Found], environment: Mapping[str, Any]) -> str:
    """A table of several cases, what each took, and where they were run."""
    lines = []
    for found in cases:
        settings = "".join(f" --set {key}={value}" for key, value in found["changes"].items())
        command = f"`taichi-fluid validate {found['case']}{settings}`"
        for row in found["rows"]:
            verdict = "holds" if row["holds"] else "**not met**"
            cells = (command, row["quantity"], _figure(row["found"]), row["reference"], row["plain"], verdict)
            lines.append("| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |\n")
            command = ""
        if found["problem"]:
            lines.append(f"| {command} | | | | | **broke off**: {found['problem']} |\n")
    rows = [row for found in cases for row in found["rows"]]
    met = sum(row["holds"] for row in rows)
    machine, versions = environment["machine"], environment["versions"]
    costs: dict[str, list[str]] = {}
    for found in cases:
        cost = f"- `{found['case']}`{_settings(found)}: {found['title']} ({found['source']}); {_cost(found)}.\n"
        processor = found.get("processor", machine["processor"]) or "an unnamed processor"
        where = f"{found['commit'] or 'unknown'} on {processor}, Taichi {versions['taichi']}, {environment['arch']}"
        costs.setdefault(where, []).append(cost)
    runs = [f"\nRun at commit {where}:\n\n{''.join(costs_there)}" for where, costs_there in costs.items()]
    return "".join([f"\n{met} of {len(rows)} rows hold.\n\n", HEAD, *lines, *runs, "\n"])


def around_table(document: Path) -> tuple[str, str]:
    """What stands in a document before and behind the table, both lines around it included; a new one has a heading.

    Raises:
        NoValidation: if the document has no place for a table.
    """
    text = document.read_text(encoding="utf-8") if document.exists() else f"# Validation\n\n{BEGIN}{END}"
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise NoValidation(f"{str(document)!r} has no lines {BEGIN.strip()!r} and {END.strip()!r} to write between.")
    return before + begin, end + after


def write_markdown(document: Path, cases: Sequence[Found], environment: Mapping[str, Any]) -> None:
    """Put the table into a document, in place of the one there; one that is not there yet is made.

    Raises:
        NoValidation: if the document has no place for it.
    """
    before, after = around_table(document)
    document.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(document) as temporary:
        temporary.write_text(f"{before}{in_markdown(cases, environment)}{after}", encoding="utf-8")


def plot(outcome: Outcome, path: Path) -> bool:
    """Draw the curves of a case beside published points, by matplotlib; False if it has none."""
    from matplotlib.figure import Figure

    curves = outcome.run.curves
    if not curves:
        return False
    figure = Figure(figsize=(5.0 * len(curves), 4.2), layout="constrained")
    for axes, curve in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves, strict=True):
        axes.plot(*curve.found, "-", label="here")
        if curve.points is not None:
            axes.plot(*curve.points, "o", mfc="none", label="published or exact")
        axes.set(title=curve.title, xlabel=curve.axes[0], ylabel=curve.axes[1])
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=130)
    return True
