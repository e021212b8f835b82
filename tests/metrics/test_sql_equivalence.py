"""Equivalence of two queries: one verdict, with the schema where there is one."""

import pytest
from tests.metrics.judged import no_judge, outcome

from ragparity.core.errors import MalformedVerdict
from ragparity.core.sample import Sample
from ragparity.metrics.sql_equivalence import SQLSemanticEquivalence
from ragparity.registry import NativeBackend
from ragparity_adapters.scripted import ScriptedJudge

ONE, OTHER = "SELECT id FROM t WHERE a > 1 AND b = 2", "select id from t where b = 2 and a > 1"
SCHEMA = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT)"


def scored(verdict, schema=(SCHEMA,), **policies):
    judge = ScriptedJudge([{"reason": "The same rows.", "verdict": verdict}])
    sample = Sample(response=ONE, reference=OTHER, reference_contexts=schema)
    return outcome(SQLSemanticEquivalence(), sample, judge, **policies), judge


@pytest.mark.parametrize(("verdict", "value"), [("yes", 1.0), ("no", 0.0), (True, 1.0), (0, 0.0), (-1, 0.0)])
def test_the_verdict_is_the_score(verdict, value):
    found, _ = scored(verdict)
    assert (found.value, found.reason) == (value, "The same rows.")


def test_cannot_tell_is_undefined_where_it_does_not_count():
    assert scored("unknown", unknown_verdict="exclude")[0].why == "no_verdicts"


@pytest.mark.parametrize(
    ("schema", "shown"), [((SCHEMA,), [SCHEMA]), ((SCHEMA, " "), [SCHEMA]), (None, None), (("",), None)]
)
def test_the_schema_is_passed_and_not_demanded(schema, shown):
    found, judge = scored("yes", schema)
    assert judge.questions[0].prompt.data.get("schema") == shown
    assert found.detail["schema_shown"] is bool(shown)
    assert (judge.questions[0].prompt.data["query"], judge.questions[0].prompt.data["reference_query"]) == (ONE, OTHER)


def test_a_verdict_between_yes_and_no_is_a_failure():
    with pytest.raises(MalformedVerdict):
        scored(0.5)


def test_missing_queries_are_named_and_nothing_is_asked():
    for name in ("response", "reference"):
        sample = Sample(**{"response": ONE, "reference": OTHER, name: " "})
        assert outcome(SQLSemanticEquivalence(), sample, no_judge()).why == f"missing:{name}"


def test_the_name_of_the_older_api_is_an_alias():
    assert NativeBackend().find("LLMSQLEquivalence") is SQLSemanticEquivalence
