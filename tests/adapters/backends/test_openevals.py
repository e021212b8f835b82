"""openevals behind our judge: its prompts, its own code, our answers. What runs it is skipped where it is absent."""

import asyncio
from importlib.util import find_spec

import pytest
from tests.direction import good_minus_bad

from ragparity.core.errors import ConfigError, JudgeUnavailable, MissingExtra, UnknownMetric
from ragparity.core.ports import Kit
from ragparity.core.sample import Sample
from ragparity.definitions import CONCEPTS, definition_of, relation
from ragparity_adapters.backends import openevals
from ragparity_adapters.scripted import ScriptedJudge

INSTALLED = find_spec("openevals") is not None
needs_it = pytest.mark.skipif(not INSTALLED, reason="needs the extra openevals")
BACKEND = openevals.backend()
SAMPLE = Sample(
    user_input="Which port?", response="Port 7443 {it} is.", reference="7443",
    retrieved_contexts=("The gateway listens on 7443.", "It is grey."),
)  # fmt: skip


def metric(name, scale="continuous"):
    return openevals.OpenEvalsMetric(name, "openevals 0.2.2", scale)


@pytest.mark.parametrize("name", openevals.RUBRICS)
def test_every_rubric_is_near_the_native_metric_of_its_name(name):
    assert relation(definition_of(metric(name)), CONCEPTS[name]) == "near"
    assert definition_of(metric(name, "binary")).levels == (0.0, 1.0)


def test_names_and_aliases_are_found_whatever_their_case():
    assert BACKEND.about("faithfulness")[0] == "response, retrieved_contexts"
    assert "openevals/ResponseGroundedness" in BACKEND.card("Groundedness")
    with pytest.raises(UnknownMetric, match="Did you mean correctness"):
        BACKEND.about("corectness")
    with pytest.raises(UnknownMetric, match=r"Did you mean ContextRelevance\?"):
        BACKEND.about("contextrelevence")


@pytest.mark.skipif(INSTALLED, reason="openevals is installed")
def test_without_the_package_the_line_says_what_to_install():
    with pytest.raises(MissingExtra, match=r"pip install 'ragparity\[openevals\]'"):
        BACKEND.build("ResponseGroundedness", {})


def test_settings_are_checked():
    with pytest.raises(ConfigError, match="scale"):
        BACKEND.build("ResponseGroundedness", {"scale": "stars"})
    with pytest.raises(ConfigError, match="scales"):
        BACKEND.build("ResponseGroundedness", {"scales": "binary"})


@needs_it
@pytest.mark.parametrize(("scale", "said", "score"), [("continuous", 0.5, 0.5), ("binary", True, 1.0)])
@pytest.mark.parametrize("name", openevals.RUBRICS)
def test_its_own_prompt_carries_the_fields_and_our_judge_answers(name, scale, said, score):
    built = BACKEND.build(name, {"scale": scale})
    judge = ScriptedJudge([{"reasoning": "because", "score": said}])
    found = asyncio.run(built.score(SAMPLE, Kit(judge=judge)))
    assert (found.value, found.reason) == (score, "because")
    (question,) = judge.questions
    assert question.prompt.text is not None
    for field in built.reads:
        value = getattr(SAMPLE, field)
        for text in (value,) if isinstance(value, str) else value:
            assert text in question.prompt.text


@needs_it
@pytest.mark.parametrize("scale", ["continuous", "binary"])
@pytest.mark.parametrize("name", openevals.RUBRICS)
def test_a_good_sample_is_better_than_a_bad_one(name, scale):
    gap = good_minus_bad(BACKEND.build(name, {"scale": scale}))
    assert gap is not None and gap > 0


@needs_it
def test_an_error_of_the_judge_comes_through_as_it_is():
    built = BACKEND.build("ResponseGroundedness", {})
    with pytest.raises(JudgeUnavailable, match="no connection"):
        asyncio.run(built.score(SAMPLE, Kit(judge=ScriptedJudge([JudgeUnavailable("no connection")]))))
