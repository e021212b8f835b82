"""Rows through both doors and both lanes: the same file means the same everywhere."""

import json
from pathlib import Path

import pandas as pd
import pytest
from tests.nat import workflow  # registers the functions of the small workflow
from tests.nat.nateval import PORT, SIZE, eval_file, evaluate, items, other_door, scores

FAITH = {"faith": {"metric": "Faithfulness", "llm_name": "offline"}}
NO_CONTEXTS = {key: value for key, value in PORT.items() if key != "contexts"}


def written(kind):
    rows = [PORT, SIZE]
    if kind == "json":
        Path("rows.json").write_text(json.dumps(rows), encoding="utf-8")
    elif kind == "jsonl":
        Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif kind == "csv":
        pd.DataFrame([{**row, "contexts": json.dumps(row["contexts"])} for row in rows]).to_csv("rows.csv", index=False)
    else:
        pd.DataFrame(rows).to_parquet("rows.parquet")
    return {"_type": kind, "file_path": f"rows.{kind}"}


@pytest.mark.parametrize("kind", ["json", "jsonl", "csv", "parquet"])
def test_both_doors_give_the_same_scores_for_one_file(kind):
    embedded = {"metric": "AnswerRelevancy", "llm_name": "offline", "embedder_name": "offline"}
    exact = {"metric": "NonLLMStringSimilarity"}
    eval_file(
        FAITH | {"precision": {"metric": "ContextPrecision", "llm_name": "offline"}, "near": embedded, "exact": exact},
        dataset=written(kind),
    )
    there = evaluate()
    code, here = other_door()
    assert code == 0
    for name in ("faith", "precision", "near", "exact"):
        assert scores(there[name]) == {row: line["score"] for row, line in here[name].items()}, name
        assert None not in scores(there[name]).values()


def test_a_column_called_answer_is_the_response_where_the_reference_is_spelled_out():
    rows = [{"id": "a", "question": "q", "answer": "Paris", "ground_truth": "Paris", "contexts": ["Paris"]}]
    eval_file({"exact": {"metric": "ExactMatch"}}, rows=rows)
    assert scores(evaluate()["exact"]) == {"a": 1.0}
    assert other_door()[1]["exact"]["a"]["score"] == 1.0


def test_settings_of_the_structure_name_the_columns():
    rows = [{"key": "a", "ask": "q", "truth": "Paris", "said": "Paris", "answer": "Rome"}]
    Path("rows.json").write_text(json.dumps(rows), encoding="utf-8")
    structure = {"question_key": "ask", "answer_key": "truth", "generated_answer_key": "said"}
    dataset = {"_type": "json", "file_path": "rows.json", "id_key": "key", "structure": structure}
    eval_file({"exact": {"metric": "ExactMatch"}}, dataset=dataset)
    assert scores(evaluate()["exact"]) == {"a": 1.0}
    assert other_door()[1]["exact"]["a"]["score"] == 1.0


def test_contexts_deep_in_a_column_are_found_by_their_path():
    rows = [{**NO_CONTEXTS, "outputs": {"docs": [{"body": "Port 7443."}, {"body": "Dark theme."}]}}]
    eval_file({"faith": {**FAITH["faith"], "fields": {"retrieved_contexts": "outputs.docs[].body"}}}, rows=rows)
    (item,) = evaluate()["faith"]["eval_output_items"]
    assert item["reasoning"]["fields"]["retrieved_contexts"] == ["Port 7443.", "Dark theme."]


def test_a_path_that_matches_nothing_is_the_error_of_its_row():
    eval_file({"faith": {**FAITH["faith"], "fields": {"retrieved_contexts": "outputs.docs"}}}, rows=[PORT])
    (item,) = evaluate()["faith"]["eval_output_items"]
    assert item["score"] is None and "'outputs.docs' matches nothing" in item["error"]


def test_a_row_that_is_the_question_as_a_whole_has_no_response_of_its_own():
    Path("rows.json").write_text(json.dumps([PORT]), encoding="utf-8")
    dataset = {"_type": "json", "file_path": "rows.json", "structure": {"disable": True}}
    eval_file(FAITH, dataset=dataset)
    (item,) = evaluate()["faith"]["eval_output_items"]
    assert item["error"] == "undefined: missing:response"
    assert "7443" in item["reasoning"]["fields"]["user_input"]


def test_what_a_users_own_function_made_of_an_item_is_scored():
    rows = [{"id": "a", "question": "q", "answer": "Paris", "generated_answer": '"Paris"'}]
    exact = {"exact": {"metric": {"ExactMatch": {"normalise": "none"}}}}
    eval_file(exact, rows=rows)
    assert scores(evaluate()["exact"]) == {"a": 0.0}
    output = {"dir": "out", "custom_pre_eval_process_function": "tests.nat.workflow.without_quotes"}
    eval_file(exact, rows=rows, general={"output": output})
    assert scores(evaluate()["exact"]) == {"a": 1.0}


def test_repetitions_of_the_toolkit_keep_their_ids():
    eval_file({"exact": {"metric": "ExactMatch"}}, rows=[PORT], workflow={"_type": "heron_agent"},
              functions={"heron_retriever": {"_type": "heron_retriever"}})  # fmt: skip
    found = evaluate(skip_workflow=False, reps=2)["exact"]
    assert sorted(scores(found)) == ["port_rep0", "port_rep1"]


# -- recorded traces


def step(event, number, *, name=None, given=None, output=None):
    """One recorded step as a workflow output holds it."""
    return {
        "parent_id": "root",
        "function_ancestry": {"function_id": "f", "function_name": "agent", "parent_id": None, "parent_name": None},
        "payload": {
            "event_type": event,
            "event_timestamp": 100.0 + number,
            "span_event_timestamp": 99.5 + number if event.endswith("END") else None,
            "name": name,
            "UUID": f"u{number}",
            "data": {"input": given, "output": output},
        },
    }


MESSAGE = {
    "content": json.dumps({"results": [{"page_content": "Port 7443.", "document_id": "d1", "metadata": {}}]}),
    "type": "tool",
    "name": "look_up",
    "tool_call_id": "c1",
    "status": "success",
}
TRACE = [
    step("WORKFLOW_START", 0, given="Which port does the Heron gateway use?"),
    step("LLM_END", 1, name="m", output="Let me see: it must be port 9999."),
    step("TOOL_END", 2, name="look_up", given="{'query': 'port'}", output=MESSAGE),
    step("TOOL_END", 3, name="docs", given={"n": 2}, output=[{"page_content": 'It\'s "dark".', "metadata": {}}]),
    step("TOOL_END", 4, name="note", given="plain", output="Heron is a gateway.\nIt's small."),
    step("LLM_END", 5, name="m", output="Heron listens on port 7443."),
    step("WORKFLOW_END", 6, output="Heron listens on port 7443."),
]
CALLS = [
    {"name": "look_up", "args": {"query": "port"}},
    {"name": "docs", "args": {"n": 2}},
    {"name": "note", "args": {"input": "plain"}},
]


def of_the_trace(**more):
    return [{**NO_CONTEXTS, "intermediate_steps": TRACE, **more}]


def test_passages_come_from_tools_and_never_from_what_a_model_wrote():
    eval_file(FAITH, rows=of_the_trace())
    (item,) = evaluate()["faith"]["eval_output_items"]
    assert item["reasoning"]["fields"]["retrieved_contexts"] == [
        "Port 7443.",
        'It\'s "dark".',
        "Heron is a gateway.\nIt's small.",
    ]
    assert "9999" not in json.dumps(item)


def test_a_column_with_contexts_comes_before_the_trace():
    eval_file(FAITH, rows=of_the_trace(contexts=["From the column."]))
    (item,) = evaluate()["faith"]["eval_output_items"]
    assert item["reasoning"]["fields"]["retrieved_contexts"] == ["From the column."]


def test_both_lanes_see_the_same_in_one_trace():
    calls = {"metric": "ToolCallF1"}
    wanted = {"expected_intermediate_steps": [TRACE[2], TRACE[3]]}
    atif = {"enable_atif_evaluator": True}
    eval_file(
        {"faith": FAITH["faith"], "faith_atif": FAITH["faith"] | atif, "calls": calls, "calls_atif": calls | atif},
        rows=of_the_trace(**wanted),
    )
    found = evaluate()
    one, other = found["faith"]["eval_output_items"][0], found["faith_atif"]["eval_output_items"][0]
    assert one["reasoning"]["fields"] == other["reasoning"]["fields"]
    assert one["score"] == other["score"] is not None
    fields = items(found["calls"])["port"]["reasoning"]["fields"]
    made = [call for message in fields["messages"] for call in message["tool_calls"]]
    assert made == CALLS
    assert fields["reference_tool_calls"] == CALLS[:2]
    # Three calls made, two wanted and both among them: precision 2/3, recall 1.
    assert items(found["calls"])["port"]["score"] == pytest.approx(0.8)
    assert (
        items(found["calls_atif"])["port"]["error"] == "undefined: missing:reference_tool_calls, not in the ATIF lane"
    )


def test_a_trace_without_a_users_step_has_no_question_in_the_atif_lane():
    kept = [one for one in TRACE if one["payload"]["event_type"] in ("LLM_END", "TOOL_END")]
    relevance = {"metric": "ContextRelevance", "llm_name": "offline"}
    eval_file(
        {"ordinary": relevance, "atif": relevance | {"enable_atif_evaluator": True}},
        rows=of_the_trace(intermediate_steps=kept),
    )
    found = evaluate()
    assert items(found["ordinary"])["port"]["score"] is not None
    assert items(found["atif"])["port"]["error"] == "undefined: missing:user_input, not in the ATIF lane"
    assert found["atif"]["average_score"] is None


def test_a_trace_of_models_alone_says_that_no_step_is_a_tools_output():
    eval_file(FAITH, rows=of_the_trace(intermediate_steps=[TRACE[1], TRACE[5]]))
    (item,) = evaluate()["faith"]["eval_output_items"]
    assert item["error"] == (
        "undefined: missing:retrieved_contexts: no column holds any, "
        "and none of the 2 recorded steps is a tool's output (LLM_END)"
    )


def watched(event, number, name, output):
    """A step of an agent's framework that is watched: its function is the workflow, whatever its name."""
    found = step(event, number, name=name, output=output)
    found["payload"]["framework"] = "langchain"
    return found


GRAPH = [
    step("WORKFLOW_START", 0, given="Which port does the Heron gateway use?"),
    watched("FUNCTION_END", 1, "PromptPassthrough", "The question: which port?"),
    watched("LLM_END", 2, "m", "Tool calls: [{'name': 'look_up', 'args': {'query': 'port'}, 'id': 'c1'}]"),
    watched("FUNCTION_END", 3, "conditional_edge", "AgentDecision.TOOL"),
    watched("TOOL_END", 4, "look_up", MESSAGE),
    watched("LLM_END", 5, "m", "It is port 9999."),
    watched("FUNCTION_END", 6, "LangGraph", {"messages": ["It is port 9999."]}),
    step("WORKFLOW_END", 7, output="It is port 9999."),
]


@pytest.mark.parametrize("lane", [False, True], ids=["ordinary", "atif"])
def test_of_an_agents_graph_only_the_tools_are_evidence(lane):
    without_tool = [one for one in GRAPH if one["payload"]["event_type"] != "TOOL_END"]
    without_tool[2] = watched("LLM_END", 2, "m", "It is port 9999.")
    rows = [
        {**NO_CONTEXTS, "intermediate_steps": GRAPH},
        {**NO_CONTEXTS, "id": "guessed", "intermediate_steps": without_tool},
    ]
    eval_file({"faith": FAITH["faith"] | {"enable_atif_evaluator": lane}}, rows=rows)
    found = items(evaluate()["faith"])
    assert found["port"]["reasoning"]["fields"]["retrieved_contexts"] == ["Port 7443."]
    assert found["guessed"]["error"].startswith("undefined: missing:retrieved_contexts")


# -- a workflow that runs


def run_workflow(evaluators, *, rows=(NO_CONTEXTS,), **config):
    kept = [{key: value for key, value in row.items() if key != "generated_answer"} for row in rows]
    eval_file(
        evaluators,
        rows=kept,
        functions={name: {"_type": name} for name in ("heron_retriever", "heron_poet")},
        workflow={"_type": "heron_agent", **config},
    )
    return evaluate(skip_workflow=False)


def test_a_workflow_with_a_retriever_gives_its_documents_in_both_lanes():
    ids = {"metric": {"IDBasedContextPrecision": None}}
    found = run_workflow(
        {
            **FAITH,
            "atif": FAITH["faith"] | {"enable_atif_evaluator": True},
            "ids": ids,
            "recall": {"metric": "ContextRecall", "llm_name": "offline"},
        },
        rows=[{**NO_CONTEXTS, "reference_context_ids": ["d1"]}],
    )
    for lane in ("faith", "atif"):
        (item,) = found[lane]["eval_output_items"]
        fields = item["reasoning"]["fields"]
        assert fields["retrieved_contexts"] == [text for _, text in workflow.PASSAGES["port"]]
        assert fields["response"] == "Heron listens on port 7443."
        assert item["score"] == 1.0
    assert scores(found["ids"]) == {"port": 0.5}
    assert items(found["recall"])["port"]["score"] is not None


def test_an_invented_answer_of_a_workflow_is_not_its_own_evidence():
    found = run_workflow(FAITH, answer="Dune was written by Isaac Asimov on Mars.")
    assert scores(found["faith"]) == {"port": 0.0}


def test_what_a_function_with_a_model_of_its_own_wrote_is_no_evidence_in_either_lane():
    lanes = {**FAITH, "atif": FAITH["faith"] | {"enable_atif_evaluator": True}}
    found = run_workflow(lanes, asks="heron_poet")
    assert items(found["faith"])["port"]["error"].startswith(
        "undefined: missing:retrieved_contexts: no column holds any"
    )
    assert items(found["atif"])["port"]["error"] == "undefined: missing:retrieved_contexts, not in the ATIF lane"


def test_a_workflow_that_fails_has_no_response_whatever_its_row_is_called():
    rows = [{"id": "a", "question": "q port", "answer": "Paris", "ground_truth": "Paris"}]
    found = run_workflow({"exact": {"metric": "ExactMatch"}}, rows=rows, fails=True)
    assert items(found["exact"])["a"]["error"] == "undefined: missing:response"
