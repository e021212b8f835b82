"""The one written policy for degenerate rows and odd answers, the same for native and wrapped metrics.

`score` is the only way a sample meets a metric: it admits the sample (nothing is asked about a row that
cannot be scored), lets the metric score it, settles several references, and checks the bounds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragparity.core.concurrency import together
from ragparity.core.outcome import Failed, Scored, Undefined
from ragparity.core.policies import Policies, without_claims
from ragparity.core.sample import CONTEXT_FIELDS, TEXT_FIELDS, Sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.ports import Kit, Metric

__all__ = ["Policies", "admit", "is_blank", "score", "within_bounds", "without_claims"]

DUST = 1e-9
"""Float rounding beyond a bound that is clamped; anything further outside is out of range."""


def is_blank(text: str) -> bool:
    """Nothing to read in it."""
    return not text.strip()


def admit(sample: Sample, metric: Metric, policies: Policies) -> tuple[Sample, dict[str, Any]] | Scored | Undefined:
    """The sample as the metric may see it, with what was changed; or the outcome without asking anything.

    Absent and blank text is `missing:<field>`; contexts that are empty or all blank are `blank_contexts`,
    with the policy `zero` a 0 where higher is better; blank passages among others are dropped and counted.
    """
    if _left_alone(metric, policies):
        return sample, {}
    changes: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    blank_contexts: str | None = None
    for name in (*metric.reads, *metric.may_read):
        needed = name in metric.reads
        value = getattr(sample, name)
        if value is None or (name in TEXT_FIELDS and is_blank(value)):
            if needed:
                return Undefined(f"missing:{name}", f"the row has no {name}")
            kept[name] = None
        elif name in CONTEXT_FIELDS:
            passages = tuple(passage for passage in value if not is_blank(passage))
            if len(passages) < len(value):
                changes[f"blank_{name}_dropped"] = len(value) - len(passages)
                kept[name] = passages
            if not passages:
                if needed:
                    blank_contexts = blank_contexts or name
                kept[name] = None
    if blank_contexts:
        reason = f"{blank_contexts} holds no text"
        if policies.blank_contexts == "zero" and metric.higher_is_better:  # else 0 would praise the row
            return Scored(0.0, reason, {"policy": "blank_contexts"})
        return Undefined("blank_contexts", reason)
    return (replace(sample, **kept) if kept else sample), changes


async def score(metric: Metric, sample: Sample, kit: Kit) -> Scored | Undefined | Failed:
    """Score one sample with one metric under the kit's policies. Raises `JudgeError` and `SampleError`."""
    if sample.references and len(sample.references) > 1 and "reference" in (*metric.reads, *metric.may_read):
        return await _several_references(metric, sample, sample.references, kit)
    return await _one(metric, sample, kit)


async def _one(metric: Metric, sample: Sample, kit: Kit) -> Scored | Undefined | Failed:
    admitted = admit(sample, metric, kit.policies)
    if not isinstance(admitted, tuple):
        return admitted
    ready, changes = admitted
    outcome = await metric.score(ready, kit)
    if changes:
        outcome = replace(outcome, detail={**outcome.detail, **changes})
    if isinstance(outcome, Scored) and not _left_alone(metric, kit.policies):
        return within_bounds(outcome, metric)
    return outcome


def _left_alone(metric: Metric, policies: Policies) -> bool:
    """Whether a wrapped metric is to show its framework's own result."""
    return policies.upstream and metric.backend != "native"


def within_bounds(outcome: Scored, metric: Metric) -> Scored | Failed:
    """The outcome with float dust beyond a bound clamped; a value further outside is a failure."""
    low, high = metric.bounds
    if low <= outcome.value <= high:
        return outcome
    clamped = min(max(outcome.value, low), high)
    if abs(clamped - outcome.value) <= DUST:
        return replace(outcome, value=clamped)
    message = f"{metric.name} gave {outcome.value!r}, outside its range {low:g} to {high:g}"
    return Failed("out_of_range", message, raw=repr(outcome.value), detail=outcome.detail)


async def _several_references(
    metric: Metric, sample: Sample, references: Sequence[str], kit: Kit
) -> Scored | Undefined | Failed:
    how = kit.policies.references
    usable = [text for text in references if not is_blank(text)]
    if how == "joined" or len(usable) <= 1:
        one = "\n".join(usable) or None
        return await _one(metric, replace(sample, reference=one, references=None), kit)
    outcomes = await together(_one(metric, replace(sample, reference=text, references=None), kit) for text in usable)
    if failed := next((one for one in outcomes if isinstance(one, Failed)), None):
        return failed
    scored = [(index, one) for index, one in enumerate(outcomes) if isinstance(one, Scored)]
    if not scored:
        return outcomes[0]
    if how == "mean":
        mean = sum(one.value for _, one in scored) / len(scored)
        detail = {"references": len(usable), "by_reference": [dict(one.detail) for _, one in scored]}
        return Scored(mean, f"mean over {len(scored)} references", detail)
    return _best(scored, metric, len(usable))


def _best(scored: list[tuple[int, Scored]], metric: Metric, n: int) -> Scored:
    pick = max if metric.higher_is_better else min
    index, best = pick(scored, key=lambda pair: pair[1].value)
    return replace(best, detail={**best.detail, "references": n, "reference_used": index})
