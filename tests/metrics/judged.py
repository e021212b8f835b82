"""What the tests of judged metrics share: one way to score, and replies in the shape that the metrics ask for."""

import asyncio

from ragparity.core.policy import Policies, score
from ragparity.core.ports import Kit
from ragparity.core.sample import Sample
from ragparity_adapters.scripted import ScriptedJudge

PASSAGES = (
    "Parcels arrive three to five working days after the order.",
    "A sealed product can be sent back during the 30 days after delivery.",
)


def outcome(metric, sample, judge, *, embedder=None, tally=None, draw=0, **policies):
    """The outcome of one sample, through the policy as in a run."""
    more = {} if tally is None else {"tally": tally}
    kit = Kit(judge=judge, embedder=embedder, policies=Policies(**policies), draw=draw, **more)
    return asyncio.run(score(metric, sample, kit))


def no_judge():
    """A judge that must not be asked."""
    return ScriptedJudge([])


def claims(*texts, refusal=False):
    return {"refusal": refusal, "claims": list(texts)}


def verdicts(*said, first=1, evidence="none"):
    """Verdicts on the pieces `first`, `first` + 1, …"""
    return {
        "verdicts": [
            {"id": number, "evidence": evidence, "verdict": one} for number, one in enumerate(said, start=first)
        ]
    }


def row(**fields):
    """A complete sample; fields given replace its own."""
    whole = {
        "user_input": "How long can I send a sealed product back?",
        "response": "A sealed product can be sent back within 30 days. Parcels arrive in five days.",
        "reference": "Sealed products can be sent back for 30 days.",
        "retrieved_contexts": PASSAGES,
    }
    return Sample(**{**whole, **fields})


def tasks(judge):
    """What was asked, in order."""
    return [one.prompt.task for one in judge.questions]


def everything_shown(judge):
    """All text that left for the judge."""
    return "\n".join(f"{one.prompt.system()}\n{one.prompt.user()}" for one in judge.questions)
