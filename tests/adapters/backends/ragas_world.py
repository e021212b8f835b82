"""What the tests of the Ragas backends share: a row, ways to score it, and a judge that answers by the data."""

import asyncio
from functools import cache

from ragparity.core.policies import Policies
from ragparity.core.policy import score
from ragparity.core.ports import Kit, Rating, Tally, Text
from ragparity.core.sample import Sample
from ragparity.registry import NativeBackend
from ragparity_adapters.backends import ragas, ragas_legacy
from ragparity_adapters.scripted import ScriptedEmbedder, ScriptedJudge

COLLECTIONS, LEGACY, NATIVE = ragas.backend(), ragas_legacy.backend(), NativeBackend()
BOTH = (COLLECTIONS, LEGACY)
ALL = (NATIVE, COLLECTIONS, LEGACY)

PASSAGES = ("The pump was bought in 2019.", "Check the oil level of the pump {before} a repair.")
CALLS = ({"name": "book", "args": {"table": 4, "name": "Ada"}},)
MESSAGES = (
    {"role": "system", "content": "You are polite.", "tool_calls": []},
    {"role": "user", "content": "Book a table for four.", "tool_calls": []},
    {"role": "assistant", "content": "One moment.", "tool_calls": list(CALLS)},
    {"role": "tool", "content": "Booked.", "tool_calls": []},
    {"role": "assistant", "content": "The table is booked.", "tool_calls": []},
)


def row(**fields):
    """A sample that holds every field; those given replace its own."""
    whole = {
        "user_input": "The pump rattles: what should be done?",
        "response": "Stop the pump. Tighten the belt.",
        "reference": "Stop the pump. Check the oil.",
        "retrieved_contexts": PASSAGES,
        "reference_contexts": ("Check the oil level of the pump before a repair.",),
        "retrieved_context_ids": ("a", "b"),
        "reference_context_ids": ("b", "c"),
        "messages": MESSAGES,
        "reference_tool_calls": CALLS,
        "reference_topics": ("restaurants",),
        "rubrics": {"score1_description": "wrong", "score2_description": "partly", "score3_description": "right"},
    }
    return Sample(**{**whole, **fields})


@cache
def built(backend, name, settings=()):
    """A metric, built once."""
    return backend.build(name, dict(settings))


def outcome_of(backend, name, judge=None, *, sample=None, embedder=None, settings=(), tally=None, **policies):
    """The outcome of one sample, through the policy as in a run."""
    metric = built(backend, name, tuple(dict(settings).items()))
    kit = Kit(judge=judge, embedder=embedder, policies=Policies(**policies), tally=tally or Tally())
    return asyncio.run(score(metric, sample or row(), kit))


def fields_of(question):
    """The fields of the wanted object, `rating`, or `text`."""
    if isinstance(question.shape, Rating):
        return {"rating"}
    return {"text"} if isinstance(question.shape, Text) else set(question.shape.schema.model_fields)


def ragas_answers(
    *, claims=(), verdicts=(), useful=(), ratings=(), questions=(), flags=(), classes=(2, 1, 1), grade=2, topics=(),
    refused=(), allowed=(), entities=((), ()), answers=(), verdict=1,
):  # fmt: skip
    """A judge that knows the answers to all that Ragas asks, whichever API does.

    `claims` by text, else by all texts; `verdicts` in the order of the claims, or a function of context and claim;
    `useful` in the order of the passages; `ratings` in the order of the questions.
    """
    ratings_left, drawn, refusals = iter(ratings), iter(zip(questions, flags, strict=False)), iter(refused)
    named = iter(entities)

    def claims_of(text):
        return list(claims.get(text, ()) if isinstance(claims, dict) else claims)

    def verdict_of(context, claim, at):
        return verdicts(context, claim) if callable(verdicts) else verdicts[at]

    def say(question):
        data, wanted = question.prompt.data, fields_of(question)
        if wanted == {"rating"}:
            said = next(ratings_left)
            return said if isinstance(question.shape, Rating) or isinstance(said, BaseException) else {"rating": said}
        if wanted == {"statements"} and "statements" in data:
            pieces = [
                {"statement": one, "reason": f"why {at}", "verdict": verdict_of(data["context"], one, at)}
                for at, one in enumerate(data["statements"])
            ]
            return {"statements": pieces}
        if wanted == {"statements"}:
            return {"statements": claims_of(data.get("answer", data.get("text")))}
        if wanted == {"claims"}:
            return {"claims": claims_of(data["response"])}
        if wanted == {"classifications"} and "topics" in data:
            return {"classifications": list(allowed)}
        if wanted == {"classifications"}:
            texts = claims_of(data["answer"])
            pieces = [
                {"statement": one, "reason": f"why {at}", "attributed": verdict_of(data["context"], one, at)}
                for at, one in enumerate(texts)
            ]
            return {"classifications": pieces}
        if wanted == {"reason", "verdict"} and "context" in data:
            at = row().retrieved_contexts.index(data["context"]) if not callable(useful) else data["context"]
            return {"reason": "so", "verdict": useful(at) if callable(useful) else useful[at]}
        if wanted == {"reason", "verdict"}:
            return {"reason": "so", "verdict": str(verdict) if "desired_outcome" in data else verdict}
        if wanted == {"question", "noncommittal"}:
            asked, flag = next(drawn)
            return {"question": asked, "noncommittal": flag}
        if wanted == {"TP", "FP", "FN"}:
            made = iter(f"Statement {n}." for n in range(99))
            return {
                name: [{"statement": next(made), "reason": "so"} for _ in range(n)]
                for name, n in zip(("TP", "FP", "FN"), classes, strict=True)
            }
        if "score" in wanted:
            return {(wanted - {"score"}).pop(): "so", "score": grade}
        if wanted == {"entities"}:
            return {"entities": list(next(named))}
        simple = {
            "topics": list(topics), "keyphrases": ["k"], "questions": list(questions), "answers": list(answers),
        }  # fmt: skip
        if len(wanted) == 1 and (name := next(iter(wanted))) in simple:
            return {name: simple[name]}
        if wanted == {"refused_to_answer"}:
            return {"refused_to_answer": next(refusals)}
        if wanted == {"user_goal", "end_state"}:
            return {"user_goal": "a table", "end_state": "a table is booked"}
        said = {name: "so" for name in wanted}
        return {name: bool(verdict) if name.startswith("equiv") else one for name, one in said.items()}

    return ScriptedJudge(say)


def unit(text):
    """A vector of length one that differs by text."""
    return [1.0, 0.0] if len(text) % 2 else [0.6, 0.8]


def embedder(vectors=unit):
    return ScriptedEmbedder(vectors)
