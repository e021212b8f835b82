"""How far backends agree, for the terminal: a short table, what may be read from it, and where they differ most."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from ragparity.report.terminal import NOTHING, console, print_judges, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import Console

TOP = 5
"""Rows on which a pair differs most that are shown."""
MOST_PIECES = 3
LONGEST_TEXT = 90
LEFT_OUT = " is left out: "
PAIR_COLUMNS = (
    ("bias", "mean_diff"), ("MAE", "mae"), ("CCC", "ccc"), ("ρ", "spearman"), ("τ-b", "kendall"),
    ("κ", "kappa"), ("κ levels", "kappa_quadratic"),
)  # fmt: skip
PEOPLE_COLUMNS = (
    ("bal. acc.", "balanced_accuracy"), ("κ", "kappa"), ("AUROC", "auroc"), ("ρ", "spearman"), ("bias", "mean_diff"),
)  # fmt: skip


def print_agreement(content: Mapping[str, Any], file: IO[str], *, folder: str = "") -> None:
    """The content of `agreement.json` in words and tables."""
    out = console(file)
    with out.capture() as captured:
        for name, metric in content["metrics"].items():
            _metric(name, metric, content["tolerance"], out)
        print_judges([one for metric in content["metrics"].values() for one in metric["backends"].values()], out)
        for line in content.get("remarks", ()):
            if LEFT_OUT not in line:  # that stands with its metric
                out.print(wrapped(line, out.width, 0, "yellow"))
        if partial := content.get("partial"):
            out.print(wrapped(partial, out.width, 0, "bold yellow"))
        if folder:
            out.print(Text(f"files: {folder} (all pairs, intervals and rows: agreement.json)"))
    file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))
    file.flush()


def print_calibration(content: Mapping[str, Any], file: IO[str], *, folder: str = "") -> None:
    """A finished run against people, in words and tables."""
    out = console(file)
    with out.capture() as captured:
        _people({**content["people"], "backends": content["evaluators"]}, out, "evaluator")
        for line in content.get("remarks", ()):
            out.print(wrapped(line, out.width, 0, "yellow"))
        if folder:
            out.print(Text(f"files: {folder}/calibration.json"))
    file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))
    file.flush()


def _table(*heads: str, first: int = 1) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for at, head in enumerate(heads):
        table.add_column(head, justify="left" if at < first else "right", no_wrap=at >= first, overflow="fold")
    return table


def _metric(name: str, metric: Mapping[str, Any], tolerance: float, out: Console) -> None:
    out.print(Text(name, style="bold"))
    repeated = any("test_retest" in one for one in metric["backends"].values())
    more = ("test-retest", "flips") if repeated else ()
    table = _table("backend", "mean", "scored", "undefined", "failed", *more)
    for backend, one in metric["backends"].items():
        figures = [_number(one["mean"], 4), f"{one['n_scored']}/{one['n_total']}"]
        figures += [str(one[kind] or NOTHING) for kind in ("n_undefined", "n_failed")]
        if repeated:
            again = one.get("test_retest")
            figures += [_number(again and again[kind]["value"]) for kind in ("ccc", "flip_rate")]
        table.add_row(backend, *figures)
    out.print(table)
    for backend, why in metric["left_out"].items():
        out.print(wrapped(f"{backend}{LEFT_OUT}{why}", out.width, 0, "yellow"))
    out.print()
    _pairs(metric["pairs"], out)
    if (alpha := metric.get("krippendorff_alpha")) is not None:
        out.print(wrapped(f"Krippendorff's α ({alpha['note']}): {_estimate(alpha)}", out.width, 0))
    _definitions(metric, out)
    for one in metric["pairs"]:
        _about_pair(one, out)
    _notes(metric["pairs"], out)
    for one in metric["pairs"]:
        _differences(one, tolerance, out)
    if "people" in metric:
        _people(metric["people"], out, "backend")
    out.print()


def _pairs(pairs: Sequence[Mapping[str, Any]], out: Console) -> None:
    shown = [column for column in PAIR_COLUMNS if any(one.get(column[1]) is not None for one in pairs)]
    table = _table("pair", "definitions", "n", "no score", *(head for head, _ in shown), first=2)
    for one in pairs:
        table.add_row(
            f"{one['a']} – {one['b']}", one["relation"], str(one["n"]),
            f"{one['n_unscored_a']} / {one['n_unscored_b']}", *(_number(one.get(name)) for _, name in shown),
        )  # fmt: skip
    out.print(table)


def _definitions(metric: Mapping[str, Any], out: Console) -> None:
    """What the backends measure, those of one definition together, and how each arrives there."""
    measured: dict[str, list[str]] = {}
    for backend, one in metric["backends"].items():
        measured.setdefault(f"the {one['definition']['estimand']}", []).append(backend)
    for backend, one in metric["backends"].items():
        if said := one["definition"].get("differs"):
            measured.setdefault(said, []).append(backend)
    for said, backends in measured.items():
        out.print(wrapped(f"{', '.join(backends)}: {said}", out.width, 0, "dim"))


def _about_pair(one: Mapping[str, Any], out: Console) -> None:
    """What stands behind the figures of a pair: intervals, limits, and why a figure is missing."""
    parts = [f"{head} {low:.2f} … {high:.2f}" for head, (low, high) in _intervals(one)]
    if limits := one.get("limits_of_agreement"):
        parts.append(f"limits of agreement {limits[0]:+.2f} … {limits[1]:+.2f}")
    if (reach := one.get("attainable")) is not None:
        parts.append(f"attainable {_estimate(reach)}")
    if one.get("words"):
        parts.append(one["words"])
    lines = [f"95 %: {'; '.join(parts)}"] if parts else []
    lines += [f"{head}: {why}" for head, why in _reasons(one)]
    if one.get("refused"):
        lines.append(one["because"])
    for line in lines:
        out.print(wrapped(f"{one['a']} – {one['b']}: {line}", out.width, 0, "dim"))


def _notes(pairs: Sequence[Mapping[str, Any]], out: Console) -> None:
    """Cautions, each once. How many rows have no score stands in the table."""
    found: dict[str, list[str]] = {}
    for one in pairs:
        for note in one["notes"]:
            if not note.startswith("left out, not compared as 0"):
                found.setdefault(note, []).append(f"{one['a']} – {one['b']}")
    for note, where in found.items():
        whose = "" if len(where) == len(pairs) or note.startswith("ceiling") else f"{', '.join(where)}: "
        out.print(wrapped(f"{whose}{note}", out.width, 0, "yellow"))
    if hints := [one["hint"] for one in sorted(pairs, key=lambda one: int(one["n"])) if one.get("hint")]:
        out.print(wrapped(hints[0], out.width, 0, "dim"))


def _intervals(one: Mapping[str, Any]) -> Iterator[tuple[str, tuple[float, float]]]:
    known = one.get("ci95") or {}
    for head, name in PAIR_COLUMNS[:5]:
        if name in known:
            yield head, known[name]


def _reasons(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Why the chief statistics of a pair have no value, where that is not its relation."""
    reasons = one.get("why") or {}
    for head, name in PAIR_COLUMNS[:5]:
        why = reasons.get(name, "")
        if why and one.get(name) is None and not why.startswith("not computed: the definitions"):
            yield head, why


def _differences(one: Mapping[str, Any], tolerance: float, out: Console) -> None:
    rows = one["rows"]
    if not rows:
        return
    causes = ", ".join(f"{count} {cause.replace('_', ' ')}" for cause, count in one["causes"].items())
    title = f"{one['a']} – {one['b']}: {one['n_beyond']} rows differ by more than {tolerance:g} ({causes})"
    out.print(wrapped(title, out.width, 0, "bold"))
    for row in rows[:TOP]:
        gap = "" if row["difference"] is None else f" ({row['difference']:+.2f})"
        scores = f"{one['a']} {_score(row['a'])}, {one['b']} {_score(row['b'])}{gap}"
        cause = row["cause"].replace("_", " ")
        out.print(wrapped(f"row {row['id']}: {scores}: {cause}: {row['because']}", out.width, 2))
        deciding = [piece for piece in row.get("pieces", ()) if piece["decides"]]
        for piece in deciding[:MOST_PIECES]:
            out.print(wrapped(_piece(piece, one["a"], one["b"]), out.width, 6, "dim"))
        for side in "ab":
            told = any(piece[side] for piece in row.get("pieces", ()))
            if not told and row[side]["score"] is not None and (said := row[side].get("reason")):
                out.print(wrapped(f"{one[side]}: {_short(said)}", out.width, 6, "dim"))
    if len(rows) > TOP:
        out.print(Text(f"  … {len(rows) - TOP} more in agreement.json"))


def _piece(piece: Mapping[str, Any], a: str, b: str) -> str:
    left, right = piece["a"], piece["b"]
    if left and right:
        return f"“{_short(left['text'])}”: {a} {_verdict(left)}, {b} {_verdict(right)}"
    name, one = (a, left) if left else (b, right)
    return f"“{_short(one['text'])}”: {name} alone, {_verdict(one)}"


def _verdict(piece: Mapping[str, Any]) -> str:
    return "cannot tell" if piece["verdict"] is None else "yes" if piece["verdict"] else "no"


def _short(text: object) -> str:
    said = " ".join(str(text).split())
    return said if len(said) <= LONGEST_TEXT else f"{said[:LONGEST_TEXT]}…"


def _score(side: Mapping[str, Any]) -> str:
    return "no score" if side["score"] is None else f"{side['score']:.2f}"


def _people(people: Mapping[str, Any], out: Console, what: str) -> None:
    columns = ", ".join(one["column"] for one in people["annotators"])
    out.print(wrapped(f"against people ({columns})", out.width, 0, "bold"))
    table = _table(what, "n", "no score", "no label", *(head for head, _ in PEOPLE_COLUMNS), "pass", "people")
    for name, one in people["backends"].items():
        table.add_row(
            name, str(one["n"]), str(one["n_unscored"]), str(one["n_unlabelled"]),
            *(_number(one.get(key)) for _, key in PEOPLE_COLUMNS),
            _number(one.get("judge_pass_rate")), _number(one.get("human_pass_rate")),
        )  # fmt: skip
    out.print(table)
    for name, one in people["backends"].items():
        if counts := one["confusion"]:
            right = f"{counts['true_pass']} passed and {counts['true_fail']} failed by both"
            wrong = f"{counts['false_pass']} passed by the judge alone, {counts['false_fail']} by people alone"
            out.print(wrapped(f"{name}, from {one['threshold']:g} on: {right}; {wrong}", out.width, 0))
        for head, key in (("pass rate", "corrected_pass_rate"), ("mean", "corrected_mean")):
            if one.get(key) is not None and one["n_unlabelled"]:
                ends = one["ci95"].get(key)
                span = f" ({ends[0]:.2f} … {ends[1]:.2f})" if ends else ""
                out.print(wrapped(f"{head} over all rows as people would have it: {one[key]:.3f}{span}", out.width, 2))
        missing = {key: why for key, why in one["why"].items() if one.get(key) is None}
        reasons = [why for key, why in missing.items() if one["n_unlabelled"] or key != "corrected_pass_rate"]
        for reason in dict.fromkeys(why for why in reasons if why.startswith("undefined")):
            out.print(wrapped(reason, out.width, 2, "dim"))
        for note in one["notes"]:
            out.print(wrapped(note, out.width, 2, "dim"))
    if (ceiling := people["human_human"]) is not None:
        for one in ceiling["pairs"]:
            kappa, rho = _estimate(one["kappa"]), _estimate(one["spearman"])
            out.print(wrapped(f"people: {one['a']} – {one['b']}, {one['n']} rows: κ {kappa}, ρ {rho}", out.width, 0))
        out.print(wrapped(f"people: Krippendorff's α {_estimate(ceiling['krippendorff_alpha'])}", out.width, 0))


def _estimate(one: Mapping[str, Any]) -> str:
    if one["value"] is None:
        return one["why"] or NOTHING
    ends = "" if one["low"] is None else f" ({one['low']:.2f} … {one['high']:.2f})"
    return f"{one['value']:.2f}{ends}"


def _number(value: float | None, digits: int = 2) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"
