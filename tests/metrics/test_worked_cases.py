"""Cases worked out by hand: what the judge says, and the score that must come out of it, exactly."""

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from tests.metrics.judged import outcome

from ragparity.core.sample import Sample
from ragparity.metrics.claims import Claims
from ragparity.registry import NativeBackend
from ragparity_adapters.scripted import ScriptedEmbedder, ScriptedJudge

FILE = Path(__file__).parents[1] / "cases" / "worked_cases.jsonl"
CASES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines() if line.strip()]
BACKEND = NativeBackend()

PUMP = {
    "user_input": "The coolant pump rattles: what should be done?",
    "reference": "Stop the pump. Check the oil. Replace the bearing. Note it in the log.",
    "response": "Stop the pump. Check the oil level. Tighten the belt. Note it in the log.",
    "retrieved_contexts": [
        "The pump was bought in 2019.",
        "When the pump rattles, stop it first.",
        "Check the oil level of the pump before a repair.",
    ],
}
"""The sample of the cases that come without one."""


def judge_of(case):
    """A judge that says what the case says."""
    said = case["judge_says"]

    def say(question):
        data = question.prompt.data
        if case["metric"] == "ContextPrecision":
            at = case_sample(case).retrieved_contexts.index(data["context"])
            return {"reason": "as worked out", "verdict": said["useful"][at]}
        if case["metric"] == "Faithfulness":
            texts = said.get("claims") or [f"Statement {number}." for number in range(1, len(said["supported"]) + 1)]
            if question.shape.schema is Claims:
                return {"refusal": False, "claims": texts}
            numbered = enumerate(said["supported"], start=1)
            return {"verdicts": [{"id": number, "evidence": "none", "verdict": one} for number, one in numbered]}
        if case["metric"] == "ContextRecall":
            texts = said.get("claims") or [f"Statement {number}." for number in range(1, len(said["attributed"]) + 1)]
            judged = zip(texts, said["attributed"], strict=True)
            return {"claims": [{"claim": text, "evidence": "none", "verdict": one} for text, one in judged]}
        questions = [
            {"question": f"question {number}", "noncommittal": bool(flag)}
            for number, flag in enumerate(said["noncommittal"])
        ]
        return {"questions": questions}

    return ScriptedJudge(say) if said else ScriptedJudge([])


def embedder_of(case):
    """Unit vectors whose cosines to the question's vector are those of the case."""
    cosines = (case["judge_says"] or {}).get("similarities", [])
    vectors = {f"question {number}": [one, math.sqrt(1 - one * one)] for number, one in enumerate(cosines)}
    return ScriptedEmbedder({case_sample(case).user_input: [1.0, 0.0], **vectors})


def case_sample(case):
    return Sample(id=case["id"], **(case["sample"] or PUMP))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_the_worked_score_comes_out(case):
    metric = BACKEND.build(case["metric"], {})
    result = outcome(metric, case_sample(case), judge_of(case), embedder=embedder_of(case))
    if "exact" in case:
        assert result.value == case["expect"] == float(Fraction(case["exact"]))
    else:
        assert result.value == pytest.approx(case["expect"], abs=case["tolerance"])


def test_all_cases_are_there():
    assert len(CASES) == len({case["id"] for case in CASES}) == 17
    assert all(("exact" in case) != ("tolerance" in case) for case in CASES)
