"""Refusals: whether a response declines to answer, and whether it should have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from ragparity.core.errors import SampleError
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import RATING_TOKENS, Ask, Scale, Use
from ragparity.core.prompt import Prompt
from ragparity.core.text import words
from ragparity.core.verdicts import read_verdict
from ragparity.registry import NativeMetric, metric

if TYPE_CHECKING:
    from ragparity.core.ports import Kit
    from ragparity.core.sample import Sample

COLUMN = "answerable"
"""The column that says whether a question can be answered."""
MOST_OTHER_WORDS = 25
"""Words beside the refusing sentences (an apology, an offer, where else to ask) up to which a text is a refusal."""
LONGEST = 30
"""Words of a refusing sentence; a longer one says something besides."""

DECLINES = Prompt(
    task="Decide whether the answer declines to answer the question.",
    rules=(
        "1: it declines, says that it does not know, or says that the information is missing, and gives no answer.",
        "0: it gives an answer, even a partial, hedged or wrong one.",
    ),
)

_SOURCES = r"(?:contexts?|documents?|passages?|texts?|sources?|articles?|information|materials?|knowledge base)"
_REFUSING = re.compile(
    rf"""
    \bi\b(?:['’]m|['’]ve|\ (?:am|was|have))?\ (?:really\ |simply\ |also\ )?
        (?:do\ not|don['’]t|did\ not|didn['’]t|can\ ?not|can['’]t|could\ not|couldn['’]t|will\ not|won['’]t|unable\ to
          |not\ able\ to|must\ decline\ to)\ (?:really\ |currently\ )?
        (?:know|answer|find|found|tell|say|provide|determine|help|assist|locate|confirm|comply|see|share|discuss|have)\b
  | \bi(?:['’]m|\ am)\ not\ (?:sure|certain|aware)\b
  | \b(?:no|not\ enough|insufficient)\ (?:relevant\ |specific\ |sufficient\ |further\ )?(?:information|details?|data)\b
  | \b(?:is|are|was|were|been)\ not\ \w+\ (?:in|by|within|from)\ (?:the\ |these\ |any\ )?(?:\w+\ )?{_SOURCES}\b
  | \b{_SOURCES}(?:\ \w+)?\ (?:do|does|did)(?:\ not|n['’]t)\ (?:\w+\ )?
        (?:mention|say|specify|state|contain|provide|include|cover|answer|give|tell)\b
  | \b(?:can\ ?not|can['’]t|could\ not)\ be\ (?:answered|determined|found|established|inferred)\b
  | \bunanswerable\b | \bas\ an\ ai\b | \b(?:beyond|outside)\ (?:of\ )?my\ (?:knowledge|scope|training)\b
  | \bwei(?:ß|ss)\ (?:ich\ )?(?:es\ |das\ )?(?:leider\ )?nicht\b | \bkeine\ (?:informationen?|angaben?|auskunft|daten)\b
  | \bkann\b.{{0,40}}\bnicht\ (?:beantworten|sagen|finden|helfen)\b
  | \b(?:geht|lässt\ sich)\b.{{0,60}}\bnicht\ (?:hervor|beantworten|entnehmen)\b
  | \bje\ ne\ (?:sais|peux|trouve|dispose|suis)\b | \baucune\ information\b
  | \bn['’]est\ pas\ (?:mentionné|précisé|indiqué)
  | \bno\ (?:lo\ )?sé\b | \bno\ puedo\ (?:responder|contestar|ayudar|proporcionar)
  | \bno\ (?:hay|tengo|dispongo\ de|encuentro)\ (?:\w+\ )?información\b
  | \bnon\ (?:lo\ )?so\b | \bnon\ posso\ (?:rispondere|aiutar) | \b(?:nessuna|non\ ci\ sono)\ informazion
  | \bnão\ (?:sei|posso\ responder|consigo\ responder|há\ informaç|tenho\ informaç|encontrei)
  | \bik\ weet\ (?:het\ |dat\ )?niet\b | \bgeen\ informatie\b | \bkan\b.{{0,40}}\bniet\ beantwoorden\b
  | \bне\ знаю\b | \bне\ могу\ (?:ответить|помочь|найти|предоставить) | \bнет\ информации\b | \bне\ указано\b
  | 不知道 | 无法(?:回答|确定|提供) | 無法(?:回答|確定|提供) | 没有(?:相关)?(?:信息|资料|提到)
  | (?:分|わ)かりません | (?:お答え|回答)(?:が)?できません | 情報[がは](?:あり|見つかり|含まれてい)ません
  | 모르겠 | 답변(?:할|드릴|해\ 드릴)\ 수\ 없 | 정보가\ 없 | 알\ 수\ 없
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BUT = re.compile(
    r"[,;]?\s*\b(?:but|however|though|aber|mais|pero|ma|mas|maar|но)\b|但是?|ですが|しかし|하지만", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?:[^.!?。！？\n]|[.](?=\S))+[.!?。！？]*")


def is_refusal(text: str) -> bool:
    """Whether a text declines to answer, by its words: English and a dozen other languages, approximately.

    A sentence refuses when it says that something is not known, not found or not going to be said, and does not go on
    with a "but". A text is a refusal when a sentence of it refuses and the others are few words.

    >>> is_refusal("I'm sorry, I could not find this in the documents."), is_refusal("I am not sure, but it is Oslo.")
    (True, False)
    """
    sentences = [part.strip() for part in _SENTENCE.findall(text) if words(part)]
    others = [part for part in sentences if not _refuses(part)]
    return len(others) < len(sentences) and sum(len(words(part)) for part in others) <= MOST_OTHER_WORDS


def _refuses(sentence: str) -> bool:
    found = _REFUSING.search(sentence)
    if found is None or len(words(sentence)) > LONGEST:
        return False
    turn = _BUT.search(sentence, found.end())
    return turn is None or len(words(sentence[turn.end() :])) < 2 or bool(_REFUSING.search(sentence, turn.end()))  # noqa: PLR2004  # "but sorry"


class _UsesOfChoice:
    """A rating where the judge finds the refusals; nothing where their words do."""

    def __get__(self, metric: RefusalCorrectness | None, cls: type[RefusalCorrectness]) -> frozenset[Use]:
        return frozenset({"rating"}) if metric is not None and metric.by == "judge" else frozenset()


@metric
@dataclass(frozen=True, repr=False)
class RefusalCorrectness(NativeMetric):
    """1 when a refusal meets an unanswerable question or an answer an answerable one, else 0.

    Reads: response, and the column `answerable` (yes or no); user_input where present and a judge is asked.
    Asks: nothing; with `by: judge` 1 rating of 0 or 1.
    Range: 0 or 1, higher is better.
    Undefined when: the row says nothing about `answerable` (`missing:answerable`).
    Differs from its source in: no framework has it; refusals are measured apart from claims, where they are undefined.
    With `by: words` a refusal is found by its words, in English and a dozen other languages, approximately.
    Raises: `SampleError` for an `answerable` that is neither yes nor no.
    Source: ours; the task is that of SQuAD 2.0 (Rajpurkar et al. 2018), which has unanswerable questions.

    Example::

        answerable no, response "I could not find this in the documents." -> 1
    """

    by: Literal["words", "judge"] = "words"

    aliases: ClassVar[tuple[str, ...]] = ("refusal_correctness",)
    reads: ClassVar[tuple[str, ...]] = ("response",)
    may_read: ClassVar[tuple[str, ...]] = ("user_input",)
    uses: ClassVar[frozenset[Use]] = _UsesOfChoice()  # type: ignore[assignment]  # read as a set

    def asks(self, sample: Sample) -> tuple[Ask, ...]:
        """One rating, where the judge is asked."""
        return (Ask(1, "rating", RATING_TOKENS),) if self.by == "judge" and COLUMN in sample.extra else ()

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Find out whether the response is a refusal, and compare."""
        said = sample.extra.get(COLUMN)
        if said is None or said == "":
            return Undefined(f"missing:{COLUMN}", f"the row has no column {COLUMN}")
        try:
            answerable = read_verdict(said)
        except ValueError:
            raise SampleError(f"{COLUMN}: expected yes or no, got {said!r}") from None
        if answerable is None:
            return Undefined(f"missing:{COLUMN}", f"the row does not know whether its question is {COLUMN}")
        refusal = await self._is_refusal(sample, kit)
        right = refusal != answerable
        kind = "a refusal of" if refusal else "an answer to"
        question = "an answerable question" if answerable else "an unanswerable question"
        detail = {"refusal": refusal, "answerable": answerable, "found_by": self.by}
        return Scored(float(right), f"{kind} {question}", detail)

    async def _is_refusal(self, sample: Sample, kit: Kit) -> bool:
        if self.by == "words":
            return is_refusal(sample.response or "")
        question = {"question": sample.user_input} if sample.user_input else {}
        prompt = Prompt(DECLINES.task, DECLINES.rules, {**question, "answer": sample.response})
        return bool((await kit.rating(prompt, Scale((0, 1)))).value)
