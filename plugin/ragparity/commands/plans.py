"""What `eval` and `check` read first: the plan and the rows of an eval file, and remarks on the file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ragparity.core.errors import EvaluationError

if TYPE_CHECKING:
    from pathlib import Path

    from ragparity.config import EvalFile
    from ragparity.wiring import Plan, Rows


def plan_and_rows(
    file: EvalFile, dataset_path: Path | None, backend: str | None, *, prepare: bool = False, keep_going: bool = False
) -> tuple[Plan, Rows | None]:
    """The plan and its rows, with every problem of both in the plan; before a run, what is wrapped is imported."""
    from ragparity import wiring

    plan = wiring.make_plan(file, default_backend=backend)
    if prepare and (keep_going or not plan.problems):
        plan = wiring.prepared(plan)
    try:
        return plan, wiring.open_rows(plan, file_path=dataset_path)
    except EvaluationError as error:
        return replace(plan, problems=(*plan.problems, *str(error).splitlines())), None


def foreign(file: EvalFile) -> list[str]:
    """Remarks on entries that are not scored, or not in the way that their type says."""
    skipped = [f"not ours, skipped: {'; '.join(file.skipped)}"] if file.skipped else []
    alone = [name for name, one in file.evaluators.items() if one.type == "ragparity_crossvalidate" and not one.skip]
    compares = f"`eval` scores {', '.join(alone)} with one backend; `ragparity crossvalidate` compares them"
    return [*skipped, *file.warnings, *([compares] if alone else [])]
