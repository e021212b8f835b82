"""The table of a run for the terminal, and for logs without one."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ragparity.evaluation import Finished

PLAIN_WIDTH = 160
MOST_LISTED = 4


def console(file: IO[str]) -> Console:
    """A console for a stream: as wide as the terminal, wide enough for the table elsewhere."""
    return Console(file=file, width=None if file.isatty() else PLAIN_WIDTH, highlight=False, soft_wrap=False)


def summary_table(summaries: Mapping[str, Mapping[str, Any]], *, title: str | None = None) -> Table:
    """One row per evaluator: the mean with its interval, how many rows it rests on, what went wrong, what it cost."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("evaluator", no_wrap=True)
    table.add_column("metric", overflow="fold")
    table.add_column("mean", justify="right")
    table.add_column("95 % interval", justify="right", no_wrap=True)
    table.add_column("scored", justify="right", no_wrap=True)
    table.add_column("undefined", overflow="fold")
    table.add_column("failed", overflow="fold")
    table.add_column("calls", justify="right")
    table.add_column("tokens in / out", justify="right", no_wrap=True)
    for name, one in summaries.items():
        table.add_row(
            Text(name),
            Text(_metric(one)),
            _mean(one),
            _interval(one),
            f"{one['n_scored']}/{one['n_total']}",
            Text(_counts(one["undefined"]), style="yellow"),
            Text(_counts(one["errors"], not_run=one["n_not_run"]), style="red"),
            str(one["calls"]) if one["calls"] else "–",
            _tokens(one),
        )
    return table


def _metric(one: Mapping[str, Any]) -> str:
    shown = one["metric"].removesuffix("()")
    down = "" if one["higher_is_better"] else " ↓"
    return f"{shown}{down}" if one["backend"] == "native" else f"{one['backend']}/{shown}{down}"


def _mean(one: Mapping[str, Any]) -> Text:
    return Text("none", style="red") if one["mean"] is None else Text(f"{one['mean']:.4f}", style="bold")


def _interval(one: Mapping[str, Any]) -> str:
    return "–" if one["ci95"] is None else f"{one['ci95'][0]:.3f} … {one['ci95'][1]:.3f}"


def _counts(counts: Mapping[str, int], *, not_run: int = 0) -> str:
    parts = [f"{n} {what}" for what, n in sorted(counts.items(), key=lambda pair: -pair[1])]
    if not_run:
        parts.append(f"{not_run} not run")
    more = len(parts) - MOST_LISTED
    return ", ".join(parts[:MOST_LISTED]) + (f", … ({more} more)" if more > 0 else "") or "–"


def _tokens(one: Mapping[str, Any]) -> str:
    if not one["calls"]:
        return "–"
    sides = ("?" if one[name] is None else f"{one[name]:,}" for name in ("input_tokens", "output_tokens"))
    return " / ".join(sides)


def print_finished(finished: Finished, file: IO[str], *, folder: str) -> None:
    """The whole result of a run."""
    out = console(file)
    content = finished.as_json()
    out.print(summary_table(content["evaluators"]))
    for column, by_value in content.get("slices", {}).items():
        for value, summaries in by_value.items():
            out.print()
            out.print(summary_table(summaries, title=f"{column} = {value}"))
    judges = dict.fromkeys(one["judge"] for one in content["evaluators"].values() if one["judge"])
    out.print()
    for judge in judges:
        out.print(Text(f"judge: {judge}"))
    for check in finished.checks:
        out.print(Text(f"gate: {check.sentence()}", style="green" if check.passed else "red"))
    for name, one in content["evaluators"].items():
        if one["mean"] is None:
            out.print(Text(f"{name}: no row was scored", style="red"))
    out.print(Text(f"files: {folder}"))
