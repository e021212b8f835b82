"""How many tokens a prompt has, estimated without a tokeniser and corrected by what the endpoint reports.

The first estimate is one token for four ASCII characters and 0.7 for every other one (English prose has about 4.2
characters a token, Chinese and Japanese about 1.4 with tokenisers of 100,000 entries or more). Each reported prompt
size corrects it: the factor is the sum of what was reported over the sum of what was estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PER_ASCII = 1 / 4
PER_OTHER = 0.7
AROUND = 8
"""Tokens that the chat template puts around each message."""
UNSURE = 1.2
"""By how much a prompt may be longer than estimated before anything was reported."""
SURE = 1.05
LEARNT_FROM = 300
"""Reported tokens from which on the correction is trusted."""
CUT_BELOW = 0.6
"""Share of the estimate below which a reported size means that the prompt was cut."""
CUT_FROM = 1000
"""Estimated tokens from which on a cut prompt is told from a bad estimate."""


@dataclass(slots=True)
class PromptSizes:
    """What one endpoint's prompts cost.

    `window` is its context window in tokens, once it is known; `cuts` whether it has cut a prompt without a word.
    """

    window: int | None = None
    reported: float = 0.0
    estimated: float = 0.0
    cuts: bool = False

    def plain(self, texts: Sequence[str]) -> float:
        """The first estimate of messages, uncorrected.

        >>> PromptSizes().plain(["a" * 400]), PromptSizes().plain(["東" * 10])
        (108.0, 15.0)
        """
        ascii_only = sum(len(text if text.isascii() else text.encode("ascii", "ignore")) for text in texts)
        others = sum(map(len, texts)) - ascii_only
        return ascii_only * PER_ASCII + others * PER_OTHER + AROUND * len(texts)

    @property
    def factor(self) -> float:
        """The correction: reported over estimated, 1 before enough was reported."""
        return self.reported / self.estimated if self.reported >= LEARNT_FROM else 1.0

    def expected(self, texts: Sequence[str]) -> int:
        """The tokens of these messages, most likely."""
        return round(self.plain(texts) * self.factor)

    def at_most(self, texts: Sequence[str]) -> int:
        """The tokens of these messages, with a margin."""
        return round(self.plain(texts) * self.factor * (SURE if self.reported >= LEARNT_FROM else UNSURE))

    def learn(self, texts: Sequence[str], tokens: int | None) -> bool:
        """Take in a reported prompt size; true where it shows for the first time that a prompt was cut.

        Nothing is learnt from a prompt that was cut.
        """
        if not tokens:
            return False
        plain = self.plain(texts)
        if plain * self.factor >= CUT_FROM and tokens < plain * self.factor * CUT_BELOW:
            first, self.cuts = not self.cuts, True
            return first
        self.reported += tokens
        self.estimated += plain
        return False
