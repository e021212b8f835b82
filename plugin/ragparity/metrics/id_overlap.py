"""Retrieved ids against wanted ids, as sets: precision and recall without a judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ragparity.core.outcome import Scored, Undefined
from ragparity.metrics.unjudged import Unjudged
from ragparity.registry import metric

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ragparity.core.sample import Sample


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids of one sample: each once, in order of first appearance, blank ones left out."""

    retrieved: tuple[str, ...]
    wanted: tuple[str, ...]
    dropped: int
    """Retrieved ids left out because they are blank or repeat an earlier one."""

    @property
    def hits(self) -> tuple[bool, ...]:
        """For each retrieved id, by rank, whether it is wanted."""
        wanted = set(self.wanted)
        return tuple(one in wanted for one in self.retrieved)

    @property
    def detail(self) -> dict[str, Any]:
        """Which ids met and which did not."""
        retrieved, wanted = set(self.retrieved), set(self.wanted)
        found: dict[str, Any] = {
            "found": [one for one in self.retrieved if one in wanted],
            "not_wanted": [one for one in self.retrieved if one not in wanted],
            "missed": [one for one in self.wanted if one not in retrieved],
        }
        return {**found, "retrieved_ids_dropped": self.dropped} if self.dropped else found


def read_ids(sample: Sample) -> Ids | Undefined:
    """The ids of an admitted sample, as text and as written; undefined when none is wanted.

    A row that says which ids are wanted and names none has no right answer to compare with.
    """
    given = sample.retrieved_context_ids or ()
    retrieved = _each_once(given)
    wanted = _each_once(sample.reference_context_ids or ())
    if not wanted:
        return Undefined("no_reference_ids", "the row names no wanted id")
    return Ids(retrieved, wanted, len(given) - len(retrieved))


def _each_once(ids: Iterable[object]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(str.strip, map(str, ids))))


def share_of(part: Collection[str], whole: Collection[str]) -> float:
    """|part ∩ whole| / |whole|, as sets. `whole` must not be empty.

    >>> share_of(["b", "d", "z"], ["a", "b", "c", "d"])
    0.5
    """
    of = set(whole)
    return len(of.intersection(part)) / len(of)


@metric
@dataclass(frozen=True, repr=False)
class IDBasedContextPrecision(Unjudged):
    """|retrieved ∩ wanted| / |retrieved|, ids as text, as sets, rank ignored.

    Reads: retrieved_context_ids, reference_context_ids.
    Asks: nothing.
    Range: 0 to 1, higher is better.
    Undefined when: nothing was retrieved (`no_retrieved_ids`); no id is wanted (`no_reference_ids`).
    Differs from its source in: the two cases above, where Ragas gives NaN and 0; blank ids are left out.
    Source: Ragas 0.4.3, IDBasedContextPrecision.

    Example::

        >>> share_of({"b", "d", "z"}, {"a", "b", "c", "d"})  # 2 of the 4 retrieved ids are wanted
        0.5
    """

    reads: ClassVar[tuple[str, ...]] = ("retrieved_context_ids", "reference_context_ids")

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        ids = read_ids(sample)
        if isinstance(ids, Undefined):
            return ids
        if not ids.retrieved:
            return Undefined("no_retrieved_ids", "nothing was retrieved", ids.detail)
        detail = ids.detail
        reason = f"{len(detail['found'])} of {len(ids.retrieved)} retrieved ids are wanted"
        return Scored(share_of(ids.wanted, ids.retrieved), reason, detail)


@metric
@dataclass(frozen=True, repr=False)
class IDBasedContextRecall(Unjudged):
    """|retrieved ∩ wanted| / |wanted|, ids as text, as sets, rank ignored.

    Reads: retrieved_context_ids, reference_context_ids.
    Asks: nothing.
    Range: 0 to 1, higher is better. A row for which nothing was retrieved misses every wanted id: 0.
    Undefined when: no id is wanted (`no_reference_ids`).
    Differs from its source in: no wanted id, where Ragas gives NaN; blank ids are left out.
    Source: Ragas 0.4.3, IDBasedContextRecall.

    Example::

        >>> share_of({"a", "b", "c", "d"}, {"b", "d", "z"})  # 2 of the 3 wanted ids were retrieved
        0.6666666666666666
    """

    reads: ClassVar[tuple[str, ...]] = ("retrieved_context_ids", "reference_context_ids")

    def outcome(self, sample: Sample) -> Scored | Undefined:
        """Score one admitted sample."""
        ids = read_ids(sample)
        if isinstance(ids, Undefined):
            return ids
        detail = ids.detail
        reason = f"{len(detail['found'])} of {len(ids.wanted)} wanted ids were retrieved"
        return Scored(share_of(ids.retrieved, ids.wanted), reason, detail)
