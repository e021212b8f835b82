"""Thresholds on a summary: a run passes or fails, and says by which limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ROUNDING = 1e-9
"""A mean this close to a limit has reached it: it differs by float rounding only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one evaluator's summary must reach; `None` is no limit.

    `min_mean` is the worst mean allowed: a floor where higher is better, a ceiling where lower is. `max_drop` is
    how much worse than the baseline's mean it may be.
    """

    min_mean: float | None = None
    max_failed: int | None = None
    min_coverage: float | None = None
    max_drop: float | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One limit held against one figure. A figure that does not exist fails its limit, and `note` says why."""

    evaluator: str
    limit: str
    wanted: float
    figure: float | None
    passed: bool
    note: str | None = None

    def sentence(self) -> str:
        """In words, for the terminal.

        >>> Check("faithfulness", "failed rows at most", 0, 2, passed=False).sentence()
        'faithfulness: failed rows at most 0, here 2: FAILED'
        """
        seen = self.note if self.figure is None else f"here {_shown(self.figure)}"
        return f"{self.evaluator}: {self.limit} {self.wanted:g}, {seen}: {'passed' if self.passed else 'FAILED'}"

    def as_json(self) -> dict[str, Any]:
        """The entry of `summary.json`."""
        return {
            "evaluator": self.evaluator,
            "limit": self.limit,
            "wanted": self.wanted,
            "figure": self.figure,
            "passed": self.passed,
            "note": self.note,
        }


def _shown(figure: float) -> str:
    return str(figure) if isinstance(figure, int) else f"{figure:.4f}"


def judge_gate(
    evaluators: Mapping[str, Mapping[str, Any]],
    limits: Mapping[str, Limits],
    baseline: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Check]:
    """Every limit held against the summaries, with a baseline's summaries for `max_drop`.

    Rows that were not run count as failed.
    """
    checks: list[Check] = []
    for name, wanted in limits.items():
        summary = evaluators[name]
        mean, up = summary["mean"], summary["higher_is_better"]
        unscored = None if mean is not None else "nothing was scored"
        if wanted.min_mean is not None:
            reached = mean is not None and (mean - wanted.min_mean if up else wanted.min_mean - mean) >= -ROUNDING
            limit = "mean at least" if up else "mean at most"
            checks.append(Check(name, limit, wanted.min_mean, mean, reached, unscored))
        if wanted.max_failed is not None:
            failed = summary["n_failed"] + summary["n_not_run"]
            checks.append(Check(name, "failed rows at most", wanted.max_failed, failed, failed <= wanted.max_failed))
        if wanted.min_coverage is not None:
            coverage = summary["coverage"]
            reached = coverage is not None and coverage >= wanted.min_coverage - ROUNDING
            note = None if coverage is not None else "there are no rows"
            checks.append(Check(name, "coverage at least", wanted.min_coverage, coverage, reached, note))
        if wanted.max_drop is not None:
            before = None if baseline is None else baseline.get(name, {}).get("mean")
            drop = None if before is None or mean is None else (before - mean if up else mean - before)
            reached = drop is not None and drop <= wanted.max_drop + ROUNDING
            note = unscored or (_without(baseline) if before is None else None)
            checks.append(Check(name, "drop from the baseline at most", wanted.max_drop, drop, reached, note))
    return checks


def _without(baseline: Mapping[str, Any] | None) -> str:
    if baseline is None:
        return "no baseline is set (eval.general.ragparity.baseline)"
    return "the baseline has no mean of this evaluator"
