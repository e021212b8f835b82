"""Equivalence of SQL queries: whether two queries give the same result on every state of the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ragparity.core.ports import Ask, Use
from ragparity.core.prompt import Prompt
from ragparity.metrics.one_verdict import TOKENS, Reasoned, scored
from ragparity.registry import NativeMetric, metric

if TYPE_CHECKING:
    from ragparity.core.outcome import Scored, Undefined
    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

SAME_RESULT = Prompt(
    task="Decide whether two SQL queries are equivalent: the same rows for every possible content of the database.",
    rules=(
        "`reason`: first what each query returns, then where they differ, if they do; few sentences.",
        '`verdict`: "yes" if no content of the database makes their results differ, else "no".',
        "Names of aliases, order of conditions, formatting and a different way to write the same thing do not matter.",
        "Filters, joins, grouping, duplicates, NULLs, and an order of rows that a query asks for do matter.",
        "Where a schema is given, keys and types in it count.",
    ),
)


@metric
@dataclass(frozen=True, repr=False)
class SQLSemanticEquivalence(NativeMetric):
    """1 when the query of the response and that of the reference are equivalent given the schema, else 0.

    Reads: response, reference; reference_contexts where present: the schema of the database.
    Asks: 1.
    Range: 0 or 1, higher is better.
    Undefined when: never, beyond missing fields.
    Differs from its source in: one reason before the verdict instead of two explanations; "cannot tell" is no (policy
    `unknown_verdict`); the schema is passed where there is one, and not demanded (one of the source's APIs demands it).
    Source: Ragas 0.4.3, SQLSemanticEquivalence (LLMSQLEquivalence).

    Example::

        "SELECT id FROM t WHERE a > 1 AND b = 2", "select id from t where b = 2 and a > 1" -> 1
    """

    aliases: ClassVar[tuple[str, ...]] = ("LLMSQLEquivalence", "sql_semantic_equivalence")
    reads: ClassVar[tuple[str, ...]] = ("response", "reference")
    may_read: ClassVar[tuple[str, ...]] = ("reference_contexts",)
    uses: ClassVar[frozenset[Use]] = frozenset({"structured"})
    steps: ClassVar[int] = 1

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # one verdict whatever the queries
        """One verdict."""
        return (Ask(1, "structured", TOKENS),)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Have the two queries compared."""
        data: dict[str, object] = {"query": sample.response, "reference_query": sample.reference}
        if sample.reference_contexts:
            data["schema"] = list(sample.reference_contexts)
        answer = await kit.verdict(Prompt(SAME_RESULT.task, SAME_RESULT.rules, data), Reasoned, budget=TOKENS)
        return scored(answer, kit.policies, {"schema_shown": bool(sample.reference_contexts)})
