"""Textbook rank metrics over retrieved ids: a passage is wanted or not, and it matters where it stands."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from ragparity.core.outcome import Scored, Undefined
from ragparity.metrics.id_overlap import Ids, read_ids
from ragparity.metrics.unjudged import Unjudged
from ragparity.registry import metric

if TYPE_CHECKING:
    from ragparity.core.sample import Sample

Cutoff = Annotated[int, Field(ge=1, strict=True)] | None
"""How many of the first ranks count; `None` is the whole ranking."""

Hits = Sequence[bool]
"""For each rank, from the first on, whether what stands there is wanted."""


def hit_rate(hits: Hits, k: Cutoff = None) -> float:
    """1 when a wanted passage stands among the first k, else 0.

    >>> hit_rate([False, False, True], 2)
    0.0
    """
    return 1.0 if any(hits[:k]) else 0.0


def precision_at(hits: Hits, k: Cutoff = None) -> float:
    """Wanted passages among the first k / k; without k, / passages (of which there must be one).

    >>> precision_at([False, True], 5)
    0.2
    """
    return float(Fraction(sum(hits[:k]), k or len(hits)))


def recall_at(hits: Hits, wanted: int, k: Cutoff = None) -> float:
    """Wanted passages among the first k / wanted passages (of which there must be one).

    >>> recall_at([False, True, False, True], 3, 2)
    0.3333333333333333
    """
    return float(Fraction(sum(hits[:k]), wanted))


def reciprocal_rank(hits: Hits, k: Cutoff = None) -> float:
    """1 / rank of the first wanted passage, 0 when none stands among the first k.

    >>> reciprocal_rank([False, False, True])
    0.3333333333333333
    """
    return next((float(Fraction(1, rank)) for rank, hit in enumerate(hits[:k], start=1) if hit), 0.0)


def average_precision(hits: Hits, of: int, k: Cutoff = None) -> float:
    """Σ over the wanted passages among the first k of precision at their rank / `of`; 0 when there is none.

    `of` is the number of wanted passages in information retrieval, and the number of those that were
    retrieved in Ragas' context precision.

    >>> average_precision([False, True, False, True], of=2)
    0.5
    """
    found = 0
    total = Fraction(0)
    for rank, hit in enumerate(hits[:k], start=1):
        if hit:
            found += 1
            total += Fraction(found, rank)
    return float(total / of) if found else 0.0


def ndcg(hits: Hits, wanted: int, k: Cutoff = None) -> float:
    """DCG / DCG of the best ranking, with gain 1 for each wanted passage and discount log2(1 + rank).

    Sums are rounded once (`math.fsum`), so that the best ranking gives exactly 1.

    >>> ndcg([True, True, False], 2)
    1.0
    """
    best = wanted if k is None else min(wanted, k)
    gained = math.fsum(1 / math.log2(1 + rank) for rank, hit in enumerate(hits[:k], start=1) if hit)
    return gained / math.fsum(1 / math.log2(1 + rank) for rank in range(1, best + 1))


@dataclass(frozen=True, repr=False)
class ByRank(Unjudged):
    """Base of the rank metrics: reads the ids, undefined where none is wanted."""

    k: Cutoff = None

    reads: ClassVar[tuple[str, ...]] = ("retrieved_context_ids", "reference_context_ids")

    @abstractmethod
    def value(self, hits: Hits, wanted: int) -> float:
        """The score of one ranking with `wanted` wanted ids."""

    def reason(self, hits: Hits, wanted: int) -> str:
        """One sentence on that score."""
        within = f" among the first {self.k}" if self.k else ""
        return f"{sum(hits[: self.k])} of {wanted} wanted ids stand{within or ' in the ranking'}"

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        ids = read_ids(sample)
        if isinstance(ids, Undefined):
            return ids
        return self.of(ids)

    def of(self, ids: Ids) -> Scored | Undefined:
        """The outcome for ids of which at least one is wanted."""
        hits, wanted = ids.hits, len(ids.wanted)
        ranks = [rank for rank, hit in enumerate(hits, start=1) if hit]
        detail = {**ids.detail, "ranks": ranks}
        return Scored(self.value(hits, wanted), self.reason(hits, wanted), detail)


def _first(hits: Hits, k: Cutoff) -> str:
    rank = next((rank for rank, hit in enumerate(hits[:k], start=1) if hit), None)
    if rank is None:
        return f"no wanted id stands among the first {k}" if k else "no wanted id was retrieved"
    return f"the first wanted id stands at rank {rank}"


@metric
@dataclass(frozen=True, repr=False)
class HitRate(ByRank):
    """1 when a wanted id stands among the first k retrieved ids, else 0.

    Reads: retrieved_context_ids, reference_context_ids.
    Asks: nothing.
    Range: 0 or 1, higher is better. Nothing retrieved is a miss: 0.
    Settings: k, a whole number from 1; without it the whole ranking counts. `HitRate@5` is k = 5.
    Undefined when: no id is wanted (`no_reference_ids`).
    Differs from its source in: a repeated id stands at its first rank only, the ranks behind it close up.
    Source: textbook; Success@k in trec_eval and ir_measures.

    Example::

        >>> hit_rate([False, False, True], k=2), hit_rate([False, False, True], k=3)
        (0.0, 1.0)
    """

    aliases: ClassVar[tuple[str, ...]] = ("Hit@k", "Success@k")

    def value(self, hits: Hits, wanted: int) -> float:  # noqa: ARG002  # one hit is enough
        """The score of one ranking."""
        return hit_rate(hits, self.k)

    def reason(self, hits: Hits, wanted: int) -> str:  # noqa: ARG002  # one hit is enough
        """One sentence on that score."""
        return _first(hits, self.k)


@metric
@dataclass(frozen=True, repr=False)
class PrecisionAtK(ByRank):
    """Wanted ids among the first k retrieved ids / k.

    Reads: retrieved_context_ids, reference_context_ids.
    Asks: nothing.
    Range: 0 to 1, higher is better. With fewer than k ids retrieved the divisor is still k.
    Settings: k, a whole number from 1; without it the divisor is the number of retrieved ids.
        `PrecisionAtK@5` and `Precision@5` are k = 5.
    Undefined when: no id is wanted (`no_reference_ids`); nothing was retrieved and there is no k
        (`no_retrieved_ids`).
    Differs from its source in: a repeated id stands at its first rank only, the ranks behind it close up.
    Source: textbook; P@k in trec_eval and ir_measures.

    Example::

        >>> precision_at([False, True, False, True], k=4), precision_at([False, True], k=4)
        (0.5, 0.25)
    """

    aliases: ClassVar[tuple[str, ...]] = ("Precision@k", "P@k")

    def value(self, hits: Hits, wanted: int) -> float:  # noqa: ARG002  # only the retrieved ids count
        """The score of one ranking."""
        return precision_at(hits, self.k)

    def reason(self, hits: Hits, wanted: int) -> str:  # noqa: ARG002  # only the retrieved ids count
        """One sentence on that score."""
        return f"{sum(hits[: self.k])} of the first {self.k or len(hits)} ids are wanted"

    def of(self, ids: Ids) -> Scored | Undefined:
        """The outcome for ids of which at least one is wanted."""
        if not ids.retrieved and self.k is None:
            return Undefined("no_retrieved_ids", "nothing was retrieved", ids.detail)
        return super().of(ids)


@metric
@dataclass(frozen=True, repr=False)
class RecallAtK(ByRank):
    """Wanted ids among the first k retrieved ids / wanted ids.

    Reads: retrieved_context_ids, reference_context_ids.
    Asks: nothing.
    Range: 0 to 1, higher is better; below 1 whenever more than k ids are wanted.
    Settings: k, a whole number from 1; without it the whole ranking counts. `RecallAtK@5` and
        `Recall@5` are k = 5.
    Undefined when: no id is wanted (`no_reference_ids`).
    Differs from its source in: a repeated id stands at its first rank only, the ranks behind it close up.
    Source: textbook; R@k in trec_eval and ir_measures.

    Example::

        >>> recall_at([False, True, False, True], wanted=3, k=2)
        0.3333333333333333
    """

    aliases: ClassVar[tuple[str, ...]] = ("Recall@k", "R@k")

    def value(self, hits: Hits, wanted: int) -> float:
        """The score of one ranking."""
        return recall_at(hits, wanted, self.k)


@metric
@dataclass(frozen=True, repr=False)
class NDCG(ByRank):
    """DCG / DCG of the best ranking; DCG = Σ over the wanted ids among the first k of 1 / log2(1 + rank).

    Reads: retrieved_context_ids, reference_context_ids.
    Asks: nothing.
    Range: 0 to 1, higher is better. The best ranking has every wanted id in front, k of them at most.
    Settings: k, a whole number from 1; without it the whole ranking counts. `NDCG@10` is k = 10.
    Undefined when: no id is wanted (`no_reference_ids`).
    Differs from its source in: ids are wanted or not, there are no grades; a repeated id stands at its
        first rank only, the ranks behind it close up.
    Source: Järvelin and Kekäläinen 2002 with the discount of trec_eval; nDCG@k in ir_measures.

    Example::

        >>> ndcg([False, True], wanted=1)  # (1 / log2(3)) / (1 / log2(2))
        0.6309297535714575
    """

    def value(self, hits: Hits, wanted: int) -> float:
        """The score of one ranking."""
        return ndcg(hits, wanted, self.k)


@metric
@dataclass(frozen=True, repr=False)
class ReciprocalRank(ByRank):
    """1 / rank of the first wanted id; 0 when none stands among the first k. Its mean is MRR.

    Reads: retrieved_context_ids, reference_context_ids.
    Asks: nothing.
    Range: 0 to 1, higher is better.
    Settings: k, a whole number from 1; without it the whole ranking counts. `ReciprocalRank@10` and
        `MRR@10` are k = 10.
    Undefined when: no id is wanted (`no_reference_ids`).
    Differs from its source in: a repeated id stands at its first rank only, the ranks behind it close up.
    Source: textbook; RR@k in ir_measures, recip_rank in trec_eval.

    Example::

        >>> reciprocal_rank([False, False, True])
        0.3333333333333333
    """

    aliases: ClassVar[tuple[str, ...]] = ("MRR", "RR")

    def value(self, hits: Hits, wanted: int) -> float:  # noqa: ARG002  # the first hit decides
        """The score of one ranking."""
        return reciprocal_rank(hits, self.k)

    def reason(self, hits: Hits, wanted: int) -> str:  # noqa: ARG002  # the first hit decides
        """One sentence on that score."""
        return _first(hits, self.k)


@metric
@dataclass(frozen=True, repr=False)
class AveragePrecision(ByRank):
    """Σ over the wanted ids among the first k of precision at their rank / wanted ids. Its mean is MAP.

    Reads: retrieved_context_ids, reference_context_ids.
    Asks: nothing.
    Range: 0 to 1, higher is better.
    Settings: k, a whole number from 1; without it the whole ranking counts. The divisor is the number of
        wanted ids, also with k. `AveragePrecision@10` and `MAP@10` are k = 10.
    Undefined when: no id is wanted (`no_reference_ids`).
    Differs from its source in: a repeated id stands at its first rank only, the ranks behind it close
        up. (Ragas' context precision divides by the useful passages that were retrieved, this by all
        wanted ones.)
    Source: textbook; AP@k in ir_measures, map and map_cut in trec_eval.

    Example::

        >>> average_precision([False, True, False, True], of=3)  # (1/2 + 2/4) / 3
        0.3333333333333333
    """

    aliases: ClassVar[tuple[str, ...]] = ("MAP", "AP")

    def value(self, hits: Hits, wanted: int) -> float:
        """The score of one ranking."""
        return average_precision(hits, wanted, self.k)
