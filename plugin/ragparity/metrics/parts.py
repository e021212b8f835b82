"""Contexts that do not fit into the judge's window with their question: asked about in parts, joined by claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragparity.core.concurrency import together
from ragparity.core.errors import JudgeError
from ragparity.metrics.claims import Judged, judge_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ragparity.core.ports import Kit
    from ragparity.core.prompt import Prompt


def too_long(error: JudgeError) -> bool:
    """Whether a prompt and its answer do not fit into the judge's window."""
    return error.kind == "context_too_long"


async def judge_over(
    contexts: Sequence[str],
    pieces: Sequence[str],
    ask: Callable[[Sequence[str], dict[str, str]], Prompt],
    kit: Kit,
    *,
    what: str,
) -> tuple[list[Judged], int, int]:
    """Verdicts on pieces given contexts, how many verdicts belong to nothing, and in how many parts was asked.

    Contexts that are too long together are halved until each part fits; a piece is held when any part holds it. Raises
    the `JudgeError` of a context that is too long alone.
    """
    alone = len(contexts) < 2  # noqa: PLR2004  # one context cannot be halved
    try:
        judged, extra = await judge_pieces(pieces, lambda some: ask(contexts, some), kit, what=what, halve=alone)
    except JudgeError as error:
        if alone or not too_long(error):
            raise
    else:
        return judged, extra, 1
    middle = half(contexts)
    first, second = await together(
        judge_over(part, pieces, ask, kit, what=what) for part in (contexts[:middle], contexts[middle:])
    )
    joined = [either(one, other) for one, other in zip(first[0], second[0], strict=True)]
    return joined, first[1] + second[1], first[2] + second[2]


def half(contexts: Sequence[str]) -> int:
    """Where to halve contexts so that both parts are about equally long.

    >>> half(["a" * 10, "b", "c"]), half(["a", "b", "c" * 10]), half(["a", "b"])
    (1, 2, 1)
    """
    lengths = [len(one) for one in contexts]
    return min(range(1, len(contexts)), key=lambda at: abs(sum(lengths[:at]) - sum(lengths[at:])))


def either(one: Judged, other: Judged) -> Judged:
    """The verdict on a piece from two parts: yes from any, else "cannot tell" from any, else no.

    >>> either(Judged(1, "a", False, "none"), Judged(1, "a", True, "It says a.")).verdict
    True
    """
    for verdict in (True, None):
        found = next((judged for judged in (one, other) if judged.verdict is verdict), None)
        if found is not None:
            return found
    return one


def in_parts(parts: int) -> dict[str, object]:
    """What is kept about contexts that were asked about in parts."""
    return {"contexts_in_parts": parts} if parts > 1 else {}
