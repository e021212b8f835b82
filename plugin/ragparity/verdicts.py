"""The verdict field of a judge's answer, for the schemas of the metrics.

::

    class Judged(BaseModel):
        reason: str
        verdict: Verdict

The reason stands first, so that it is written before the verdict and can inform it. The judge is shown three
words, because small judges keep to words better than to 1, 0 and -1; `read_verdict` accepts the numbers too.
The field has no default: an answer without a verdict is malformed, never a no and never a yes.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from ragparity.core.verdicts import read_verdict

SHOWN_TO_THE_JUDGE: dict[str, object] = {"type": "string", "enum": ["yes", "no", "unknown"]}
"""The JSON schema of a verdict. Change the words here; `read_verdict` must be able to read each of them."""

Verdict = Annotated[bool | None, BeforeValidator(read_verdict), WithJsonSchema(SHOWN_TO_THE_JUDGE)]
"""True, False, or None where the judge cannot tell."""
