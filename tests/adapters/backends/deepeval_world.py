"""What the tests of the backend `deepeval` share: a row, a judge that answers by the wanted field, and the skip."""

import asyncio

import pytest

from ragparity.core.policy import Policies, score
from ragparity.core.ports import Kit
from ragparity.core.sample import Sample
from ragparity_adapters.backends import deepeval
from ragparity_adapters.backends._deepeval_import import missing
from ragparity_adapters.scripted import ScriptedJudge

needs_it = pytest.mark.skipif(bool(missing()), reason=f"needs the extra deepeval: {missing()}")
BACKEND = deepeval.backend()
SAMPLE = Sample(
    user_input="Which {port}?", response='Port 7443 "it" is. It is red.', reference="7443. It is grey.",
    retrieved_contexts=("The gateway listens on 7443.", "It is grey.", "Apples ripen."),
)  # fmt: skip
YES, NO, BORDERLINE = ({"reason": f"why {word}", "verdict": word} for word in ("yes", "no", "borderline"))


def run(name, replies, *, sample=SAMPLE, policies=None, **settings):
    """The outcome, and the judge. `replies` are by the wanted field; the verdicts come one list after the other."""
    given = iter(replies.get("verdicts", ()))

    def say(question):
        (field,) = question.shape.schema.model_fields
        return {field: list(next(given)) if field == "verdicts" else replies[field]}

    judge = ScriptedJudge(say)
    found = asyncio.run(score(BACKEND.build(name, settings), sample, Kit(judge=judge, policies=policies or Policies())))
    return found, judge
