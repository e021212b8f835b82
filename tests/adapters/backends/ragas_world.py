"""What the tests of the Ragas backends share: a row, ways to score it, and a judge that answers by the data."""

import asyncio
import json
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
def built(backend, name, settings="{}"):
    """A metric, built once; its settings as JSON."""
    return backend.build(name, json.loads(settings))


def outcome_of(backend, name, judge=None, *, sample=None, embedder=None, settings=(), tally=None, **policies):
    """The outcome of one sample, through the policy as in a run."""
    metric = built(backend, name, json.dumps(dict(settings)))
    kit = Kit(judge=judge, embedder=embedder, policies=Policies(**policies), tally=tally or Tally())
    return asyncio.run(score(metric, sample or row(), kit))


def fields_of(question):
    """The fields of the wanted object, `rating`, or `text`."""
    if isinstance(question.shape, Rating):
        return {"rating"}
    return {"text"} if isinstance(question.shape, Text) else set(question.shape.schema.model_fields)


class Knowing:
    """Answers to all that Ragas asks, whichever of its APIs does; one method per form, found by its fields.

    `claims` by text, else of every text; `verdicts` in the order of the claims, or a function of context and claim;
    `useful` in the order of the passages; `ratings`, `questions` and the like in the order of the calls.
    """

    def __init__(self, **known):
        self.known = {
            "claims": (), "verdicts": (), "useful": (), "ratings": (), "questions": (), "flags": (), "grade": 2,
            "classes": (2, 1, 1), "topics": (), "refused": (), "allowed": (), "entities": ((), ()), "answers": (),
            "verdict": 1, **known,
        }  # fmt: skip
        self.left = {name: iter(self.known[name]) for name in ("ratings", "refused", "entities")}
        self.drawn = iter(list(zip(self.known["questions"], self.known["flags"], strict=False)))
        self.forms = {
            ("rating",): self.rating,
            ("statements",): self.statements,
            ("claims",): lambda data: {"claims": self.claims_of(data["response"])},
            ("classifications",): self.classifications,
            ("reason", "verdict"): self.verdict,
            ("noncommittal", "question"): self.question,
            ("FN", "FP", "TP"): self.classes,
            ("entities",): lambda _data: {"entities": list(next(self.left["entities"]))},
            ("topics",): lambda _data: {"topics": list(self.known["topics"])},
            ("keyphrases",): lambda _data: {"keyphrases": ["k"]},
            ("questions",): lambda _data: {"questions": list(self.known["questions"])},
            ("answers",): lambda _data: {"answers": list(self.known["answers"])},
            ("refused_to_answer",): lambda _data: {"refused_to_answer": next(self.left["refused"])},
            ("end_state", "user_goal"): lambda _data: {"user_goal": "a table", "end_state": "a table is booked"},
            ("feedback", "score"): lambda _data: {"feedback": "so", "score": self.known["grade"]},
            ("reason", "score"): lambda _data: {"reason": "so", "score": self.known["grade"]},
        }

    def __call__(self, question):
        wanted = tuple(sorted(fields_of(question)))
        if wanted not in self.forms:
            return {name: bool(self.known["verdict"]) if name.startswith("equiv") else "so" for name in wanted}
        said = self.forms[wanted](question.prompt.data)
        return said["rating"] if isinstance(question.shape, Rating) else said

    def claims_of(self, text):
        claims = self.known["claims"]
        return list(claims.get(text, ()) if isinstance(claims, dict) else claims)

    def judged(self, claims, context, word):
        verdicts = self.known["verdicts"]
        return [
            {
                "statement": one,
                "reason": f"why {at}",
                word: verdicts(context, one) if callable(verdicts) else verdicts[at],
            }
            for at, one in enumerate(claims)
        ]

    def rating(self, _data):
        return {"rating": next(self.left["ratings"])}

    def statements(self, data):
        if "statements" in data:
            return {"statements": self.judged(data["statements"], data["context"], "verdict")}
        return {"statements": self.claims_of(data.get("answer", data.get("text")))}

    def classifications(self, data):
        if "topics" in data:
            return {"classifications": list(self.known["allowed"])}
        return {"classifications": self.judged(self.claims_of(data["answer"]), data["context"], "attributed")}

    def verdict(self, data):
        useful = self.known["useful"]
        if "context" not in data:
            said = self.known["verdict"]
            return {"reason": "so", "verdict": str(said) if "desired_outcome" in data else said}
        said = useful(data["context"]) if callable(useful) else useful[PASSAGES.index(data["context"])]
        return {"reason": "so", "verdict": said}

    def question(self, _data):
        asked, flag = next(self.drawn)
        return {"question": asked, "noncommittal": flag}

    def classes(self, _data):
        made = (f"Statement {n}." for n in range(99))
        named = zip(("TP", "FP", "FN"), self.known["classes"], strict=True)
        return {name: [{"statement": next(made), "reason": "so"} for _ in range(n)] for name, n in named}


def ragas_answers(**known):
    """A judge that knows these answers."""
    return ScriptedJudge(Knowing(**known))


def unit(text):
    """A vector of length one that differs by text."""
    return [1.0, 0.0] if len(text) % 2 else [0.6, 0.8]


def embedder(vectors=unit):
    return ScriptedEmbedder(vectors)
