"""The result of a run for the terminal, and for logs without one."""

from __future__ import annotations

import os
import textwrap
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ragparity.report.advice import advice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ragparity.evaluation import Finished

PLAIN_WIDTH = 160
"""Columns where the output is no terminal and COLUMNS says nothing."""
WIDE = 110
"""Columns from which on the metric has a column of its own."""
WIDER = 130
"""Columns from which on tokens are shown."""
LEAST = 40
"""Columns that text is wrapped to at least."""
MOST_SLICES = 20
MOST_REASONS = 8
LONGEST_MESSAGE = 300
OFFLINE = "offline lexical judge"
NOTHING = "–"


def console(file: IO[str]) -> Console:
    """A console for a stream: as wide as the terminal or as COLUMNS says, else wide enough for the table."""
    known = file.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(file=file, width=None if known else PLAIN_WIDTH, highlight=False, soft_wrap=False, emoji=False)


def summary_table(summaries: Mapping[str, Mapping[str, Any]], width: int, *, title: str | None = None) -> Table:
    """One row per evaluator: the mean with its interval, how many rows it rests on, and what is missing.

    `width` is that of the terminal: a narrow one gets no column for the metric (see `legend`) and no tokens. Columns
    that would be empty (passed, not run, cost) are left out.
    """
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    wide = width >= WIDE
    table.add_column("evaluator", overflow="fold")
    if wide:
        table.add_column("metric", overflow="fold")
    figures = list(_figures(list(summaries.values()), width))
    for head, _ in figures:
        table.add_column(head, justify="right", no_wrap=True)
    for name, one in summaries.items():
        names = (Text(name), Text(_metric(one))) if wide else (Text(name),)
        table.add_row(*names, *(show(one) for _, show in figures))
    return table


def _figures(
    every: Sequence[Mapping[str, Any]], width: int
) -> Iterator[tuple[str, Callable[[Mapping[str, Any]], Text]]]:
    """The columns with figures: the head, and what makes a cell of an entry."""
    yield "mean", _mean
    yield ("95 % interval", _interval) if width >= WIDE else ("± 95 %", _half)
    yield "scored", lambda one: Text(f"{one['n_scored']}/{one['n_total']}")
    yield "undefined", lambda one: _count(one["n_undefined"], "yellow")
    yield "failed", lambda one: _count(one["n_failed"], "red")
    if any(one["n_not_run"] for one in every):
        yield "not run", lambda one: _count(one["n_not_run"], "red")
    if any(one["passed"] is not None for one in every):
        yield "passed", _passed
    if any(one["calls"] for one in every):
        yield "calls", lambda one: _count(one["calls"], "")
        if width >= WIDER:
            yield "tokens in / out", _tokens
    if any(one["cost"] for one in every):
        yield "cost", lambda one: Text(NOTHING if not one["cost"] else f"{one['cost']:.4f}")


def _metric(one: Mapping[str, Any]) -> str:
    shown = one["metric"].removesuffix("()")
    down = "" if one["higher_is_better"] else " ↓"
    return f"{shown}{down}" if one["backend"] == "native" else f"{one['backend']}/{shown}{down}"


def legend(summaries: Mapping[str, Mapping[str, Any]]) -> str:
    """Which evaluator is which metric, where its name does not say it; for tables without a column for that."""
    other = {name: metric for name, one in summaries.items() if not _says(name, metric := _metric(one))}
    return ", ".join(f"{name} = {metric}" for name, metric in other.items())


def _says(name: str, metric: str) -> bool:
    return name.replace("_", "").casefold() == metric.casefold()


def _mean(one: Mapping[str, Any]) -> Text:
    return Text("none", style="red") if one["mean"] is None else Text(f"{one['mean']:.4f}", style="bold")


def _interval(one: Mapping[str, Any]) -> Text:
    return Text(NOTHING if one["ci95"] is None else f"{one['ci95'][0]:.3f} … {one['ci95'][1]:.3f}")


def _half(one: Mapping[str, Any]) -> Text:
    return Text(NOTHING if one["ci95"] is None else f"{(one['ci95'][1] - one['ci95'][0]) / 2:.3f}")


def _count(count: int, style: str) -> Text:
    return Text(f"{count:,}", style=style) if count else Text(NOTHING)


def _passed(one: Mapping[str, Any]) -> Text:
    return Text(NOTHING if one["passed"] is None else f"{one['passed']}/{one['n_scored']}")


def _tokens(one: Mapping[str, Any]) -> Text:
    if not one["calls"]:
        return Text(NOTHING)
    sides = ("?" if one[name] is None else f"{one[name]:,}" for name in ("input_tokens", "output_tokens"))
    return Text(" / ".join(sides))


def print_finished(finished: Finished, file: IO[str], *, folder: str) -> None:
    """The whole result of a run: the table, what is missing and why, who judged, the gate, where the files are."""
    out = console(file)
    with out.capture() as captured:
        _print_all(finished, out, folder)
    # Rich fills every line of a table with blanks; a log is better without them.
    file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))
    file.flush()


def _print_all(finished: Finished, out: Console, folder: str) -> None:
    content = finished.as_json()
    evaluators = content["evaluators"]
    out.print(summary_table(evaluators, out.width))
    if out.width < WIDE and (said := legend(evaluators)):
        out.print(wrapped(said, out.width, 0, "dim"))
    if not all(one["higher_is_better"] for one in evaluators.values()):
        out.print(Text("↓ lower is better", style="dim"))
    for column, by_value in content.get("slices", {}).items():
        for value, summaries in list(by_value.items())[:MOST_SLICES]:
            out.print()
            out.print(summary_table(summaries, out.width, title=f"{column} = {value}"))
        if len(by_value) > MOST_SLICES:
            out.print(Text(f"\n… {len(by_value) - MOST_SLICES} more values of {column} in {folder}/summary.json"))
    _print_troubles(finished, out)
    out.print()
    for name, one in evaluators.items():
        if one["mean"] is None:
            out.print(Text(f"{name}: no row was scored", style="red"))
    print_judges(evaluators.values(), out)
    for line in (*_beside_the_table(evaluators.values(), content.get("probe")), *_repetitions(evaluators)):
        out.print(wrapped(line, out.width, 0))
    for check in finished.checks:
        out.print(Text(f"gate: {check.sentence()}", style="green" if check.passed else "red"))
    out.print(Text(f"files: {folder} (every score with its reason: results.jsonl)"))


def print_judges(evaluators: Iterable[Mapping[str, Any]], out: Console) -> None:
    """Who scored; where it was nobody who understands, that is said."""
    judges = dict.fromkeys(part for one in evaluators if one["judge"] for part in one["judge"].split(" + "))
    for judge in judges:
        out.print(Text(f"judge: {judge}" if "embed" not in judge.casefold() else f"embedder: {judge}"))
    if any(judge.startswith(OFFLINE) for judge in judges):
        said = (
            "The offline judge compares words: its scores show that everything is wired up, not how good answers are."
        )
        out.print(Text(said, style="yellow"))


def _beside_the_table(evaluators: Iterable[Mapping[str, Any]], probe: Mapping[str, Any] | None) -> Iterator[str]:
    """Answers without a call of their own, requests for vectors, calls that belong to no row: where there are any."""
    every = list(evaluators)
    calls, cached, shared = (
        sum(one.get(name, 0) for one in every) for name in ("calls", "cached_calls", "shared_calls")
    )
    parts = [f"{cached} answers from the cache"] if cached else []
    parts += [f"{shared} shared with another that asked the same at the same time"] if shared else []
    if parts:
        yield f"calls: {calls} made, {', '.join(parts)}"
    if vectors := _vectors(every):
        yield f"vectors: {vectors}"
    if probe:
        asked = [f"{probe['calls']} calls, {_tokens(probe)} tokens in / out"] if probe["calls"] else []
        asked += [f"vectors: {vectors}"] if (vectors := _vectors([probe])) else []
        yield f"probe before the first row: {'; '.join(asked)}"


def _vectors(every: Sequence[Mapping[str, Any]]) -> str:
    """Requests to embedders with their tokens, where a model was asked."""
    requests = sum(one.get("embedding_calls", 0) for one in every)
    tokens = [one.get("embedding_tokens", 0) for one in every]
    known = None if None in tokens else sum(tokens)
    return f"{requests} requests, {'?' if known is None else f'{known:,}'} tokens" if requests and known != 0 else ""


def _repetitions(evaluators: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """How far the judge agreed with itself, for evaluators that asked more than once."""
    for name, one in evaluators.items():
        if (told := one.get("repetitions")) is None:
            continue
        parts = [f"scores of a row spread by {told['spread']:.3f} (standard deviation)"]
        if told["flip_rate"] is not None:
            parts.append(f"{told['flip_rate']:.1%} of its verdicts flip")
        if told["test_retest"] is not None:
            parts.append(f"test-retest reliability {told['test_retest']:.2f}")
        yield f"{name}, asked again: {', '.join(parts)}"


def _print_troubles(finished: Finished, out: Console) -> None:
    """Why scores are missing: each reason once, with its first case and what to do."""
    troubles = list(finished.troubles)
    if not troubles:
        return
    missing, total = sum(one.count for one in troubles), sum(one.n_total for one in finished.summaries.values())
    out.print()
    out.print(Text(f"without a score: {missing} of {total}; none of them counts in a mean", style="bold"))
    for one in troubles[:MOST_REASONS]:
        where = _listed([name for name in finished.summaries if name in one.evaluators])
        style = "red" if one.status == "failed" else "yellow"
        out.print(wrapped(f"{one.count} {one.status}: {one.word} ({where})", out.width, 2, style))
        message = " ".join(one.message.split())
        shown = message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"
        out.print(wrapped(f"first in row {one.id}: {shown}", out.width, 6))
        if said := advice(one.status, one.word):
            out.print(wrapped(f"→ {said}", out.width, 6))
    if len(troubles) > MOST_REASONS:
        out.print(Text(f"  … {len(troubles) - MOST_REASONS} more reasons in summary.json"))


def _listed(names: Sequence[str]) -> str:
    most = 3
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def wrapped(text: str, width: int, indent: int, style: str = "") -> Text:
    """A text over as many lines as it needs, all but the first indented a little further."""
    lines = textwrap.wrap(
        text, max(LEAST, width), initial_indent=" " * indent, subsequent_indent=" " * (indent + 2),
        break_on_hyphens=False,
    )  # fmt: skip
    return Text("\n".join(lines), style=style)
