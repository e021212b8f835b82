"""A finished run against people's labels, from the files in its folder alone."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragparity.calibration import AgainstPeople, calibrate
from ragparity.core.errors import ConfigError, did_you_mean
from ragparity.crossvalidation import by_evaluator, people_of, value_at
from ragparity.folder import MANIFEST, RESULTS, SAMPLES, SUMMARY, read_json, read_records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedRun:
    """The evaluators of a run against people, and remarks in sentences."""

    against: AgainstPeople
    remarks: Sequence[str] = ()

    def as_json(self) -> dict[str, Any]:
        """The content of `calibration.json`: `people`, `evaluators` by name, and `remarks`."""
        judges = {name: one.as_json() for name, one in self.against.judges.items()}
        return {"people": self.against.people.as_json(), "evaluators": judges, "remarks": list(self.remarks)}

    def plot(self, folder: str | Path) -> list[Path]:
        """Draw every evaluator against people into a folder, as `<evaluator>_labels.png` and `.svg`; gives the files.

        Raises `MissingExtra` without matplotlib.
        """
        from ragparity.report import plots

        return plots.draw_calibration(self.against, Path(folder))


def calibrate_run(
    run: Path,
    labels: Sequence[str],
    *,
    label_scale: tuple[float, float] | None = None,
    thresholds: Mapping[str, float] | None = None,
    seed: int = 0,
) -> CalibratedRun:
    """Every evaluator of a run against the labels in its rows.

    A threshold is the one given here, else that of the eval file. Raises `ConfigError` for a folder that is no run
    with its rows, labels that are none, and a threshold for an evaluator that is not there.
    """
    summary = read_json(run / SUMMARY)
    if summary is None or "evaluators" not in summary:
        raise ConfigError(f"{run}: no finished run (no {SUMMARY} in it)")
    samples = _samples(run)
    people, lines = people_of(
        {
            name: {row: value_at({**one, **(one.get("extra") or {})}, name) for row, one in samples.items()}
            for name in labels
        },
        label_scale,
    )
    if people is None:
        raise ConfigError("\n".join(lines))
    evaluators: Mapping[str, Any] = summary["evaluators"]
    given = thresholds or {}
    if strange := [name for name in given if name not in evaluators]:
        raise ConfigError(f"--threshold {strange[0]}: no evaluator of this name.{did_you_mean(strange[0], evaluators)}")
    written = _thresholds(read_json(run / MANIFEST) or {})
    records = by_evaluator(read_records(run))
    questions = {row: str(one["user_input"]) for row, one in samples.items() if one.get("user_input")}
    found = {}
    for name, one in evaluators.items():
        scores = {row: record.score for row, record in records.get(name, {}).items()}
        found[name] = calibrate(
            name, scores, people, threshold=given.get(name, written.get(name)),
            higher_is_better=one["higher_is_better"], bounds=_bounds(one), clusters=questions, seed=seed,
        )  # fmt: skip
    lines = [*lines, *_missing(evaluators, records)]
    return CalibratedRun(against=AgainstPeople(people=people, judges=found), remarks=lines)


def _missing(evaluators: Mapping[str, Any], records: Mapping[str, Any]) -> list[str]:
    """A line for each evaluator whose log holds fewer rows than the summary of the finished run counts."""
    short = []
    for name, one in evaluators.items():
        counted, held = one["n_total"] - one["n_not_run"], len(records.get(name, {}))
        if held < counted:
            short.append(
                f"{name}: {RESULTS} holds {held} of the {counted} rows that {SUMMARY} counts; it is damaged, "
                "score the rows again with --resume"
            )
    return short


def _bounds(summary: Mapping[str, Any]) -> tuple[float, float]:
    """0 to 1, or the ends of the scores where they go beyond it."""
    low, high = summary.get("min"), summary.get("max")
    if low is None or high is None or (low >= 0 and high <= 1):
        return 0.0, 1.0
    return (-math.inf, math.inf)


def _samples(run: Path) -> dict[str, dict[str, Any]]:
    try:
        with (run / SAMPLES).open(encoding="utf-8") as file:
            found = [json.loads(line) for line in file]
    except FileNotFoundError:
        raise ConfigError(
            f"{run}: no {SAMPLES} in it, so no labels; score again with eval.general.ragparity.save.samples: true"
        ) from None
    except ValueError:
        raise ConfigError(f"{run}/{SAMPLES}: not readable; score again") from None
    return {str(one["id"]): one for one in found}


def _thresholds(manifest: Mapping[str, Any]) -> dict[str, float]:
    """The thresholds that the eval file of a run set, by evaluator."""
    evaluation = (manifest.get("config") or {}).get("eval") or {}
    entries = evaluation.get("evaluators") or {}
    return {
        name: float(one["threshold"])
        for name, one in entries.items()
        if isinstance(one, dict) and isinstance(one.get("threshold"), int | float)
    }
