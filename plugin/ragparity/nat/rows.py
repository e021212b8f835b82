"""The toolkit's items as rows, the same for both lanes, read like the rows of any data file.

The ordinary lane has every column of the data set and the recorded steps. A trajectory in the agent trajectory
interchange format (ATIF) has neither columns nor, without a user's step, the question.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ragparity.core.values import get

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

KEYS = {
    "question_key": "question",
    "answer_key": "answer",
    "generated_answer_key": "generated_answer",
    "trajectory_key": "intermediate_steps",
    "expected_trajectory_key": "expected_intermediate_steps",
}
"""The keys of `dataset.structure` and the toolkit's defaults."""

SPARSE = frozenset({"json", "jsonl"})
"""Data files in which each row has columns of its own; in the toolkit's frame a missing one is NaN."""

REQUESTS = "Tool calls: ["
REQUESTED = re.compile(r"'name': '([^']+)'")
"""How the toolkit writes the calls that a model asked for at the end of its message."""

GRAPH_STATE = "{'messages': ["
"""What a node of an agent's graph gives back: the whole conversation."""

RESPONSE_OF_A_WHOLE_ROW = "output_obj"
"""Where the answer stands beside a row that is the question as a whole."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the toolkit reads the data set: the structure's keys that the file sets, and its kind.

    `has_workflow`: the file has a workflow, so an item without an answer is one whose workflow gave none.
    `asks_model` says of a function of the file whether it is configured with a model.
    """

    structure: Mapping[str, Any] = field(default_factory=dict)
    id_key: str = "id"
    kind: str = ""
    has_workflow: bool = False
    asks_model: Callable[[str], bool] = lambda _name: False

    def key(self, name: str) -> str:
        """The column for a key of the structure."""
        return str(self.structure.get(name) or KEYS[name])

    @property
    def whole(self) -> bool:
        """Whether the row as a whole is the question (`structure.disable`)."""
        return bool(self.structure.get("disable"))


def layout_of(builder: Any) -> Layout:
    """The layout of the data set that a builder's evaluation uses."""

    @cache
    def asks_model(name: str) -> bool:
        try:
            return bool(getattr(builder.get_function_config(name), "llm_name", None))
        except (ValueError, AttributeError):
            return False

    found = Layout(has_workflow=_has_workflow(builder), asks_model=asks_model)
    dataset = getattr(getattr(builder, "eval_general_config", None), "dataset", None)
    if dataset is None:
        return found
    structure = dataset.structure.model_dump(exclude_unset=True)
    return replace(found, structure=structure, id_key=dataset.id_key, kind=str(dataset.static_type()))


def _has_workflow(builder: Any) -> bool:
    try:
        builder.get_workflow_config()
    except (ValueError, AttributeError):
        return False
    return True


def from_items(items: Sequence[Any], layout: Layout) -> list[dict[str, Any]]:
    """The rows of the ordinary lane: the data set's columns, with what the workflow gave in their places."""
    entries = [dict(one.full_dataset_entry) if isinstance(one.full_dataset_entry, Mapping) else {} for one in items]
    whole = _whole_number_columns(entries) if layout.kind in {*SPARSE, "csv", "xls"} else frozenset()
    return [_row(item, entry, layout, whole) for item, entry in zip(items, entries, strict=True)]


def _row(item: Any, entry: dict[str, Any], layout: Layout, whole: frozenset[str]) -> dict[str, Any]:
    row = {
        column: int(value) if column in whole and isinstance(value, float) and not math.isnan(value) else value
        for column, value in entry.items()
        if not (layout.kind in SPARSE and _is_nan(value))
    }
    if layout.whole:
        row[RESPONSE_OF_A_WHOLE_ROW] = None if _is_blank(item.output_obj) else item.output_obj
        return row
    _put(row, entry, layout.key("question_key"), item.input_obj)
    _put(row, entry, layout.key("answer_key"), item.expected_output_obj)
    answer = layout.key("generated_answer_key")
    _put(row, entry, answer, item.output_obj)
    if layout.has_workflow and answer not in row:
        row[answer] = None  # else a column called `answer` could pass for what the workflow should have said
    for key, steps in (("trajectory_key", item.trajectory), ("expected_trajectory_key", item.expected_trajectory)):
        row.pop(layout.key(key), None)
        if steps:
            row[layout.key(key)] = [*steps, *_models_asked(steps, layout)]
    return row


def _models_asked(steps: Sequence[Any], layout: Layout) -> Iterator[dict[str, Any]]:
    """A model's step for each function that is configured with one, since its calls need not be recorded."""
    names = {str(get(get(step, "payload"), "name")) for step in steps}
    for name in sorted(names):
        if layout.asks_model(name):
            yield {"payload": {"event_type": "LLM_END"}, "function_ancestry": {"function_name": name}}


def _put(row: dict[str, Any], entry: Mapping[str, Any], column: str, value: Any) -> None:
    """What an item says in place of what its row says; a blank where the row has no such column is nothing."""
    if column in entry:
        if not _same(value, entry[column]):
            row[column] = value
    elif not _is_blank(value):
        row[column] = value


def _same(one: Any, other: Any) -> bool:
    """Whether an item still has what its row had; arrays and the like only where they are one object."""
    if one is other or (_is_nan(one) and _is_nan(other)):
        return True
    return isinstance(one, str | bool | int | float) and isinstance(other, str | bool | int | float) and one == other


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_blank(value: Any) -> bool:
    return value is None or _is_nan(value) or (isinstance(value, str) and not value.strip())


def _whole_number_columns(entries: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Columns of whole numbers that became floats because a cell is missing: 4.0 was written as 4."""
    holes: set[str] = set()
    other: set[str] = set()
    for entry in entries:
        for column, value in entry.items():
            if _is_nan(value):
                holes.add(column)
            elif not (isinstance(value, float) and value.is_integer()):
                other.add(column)
    return frozenset(holes - other)


def why_no_passages(item: Any, layout: Layout) -> str:
    """Why an item of the ordinary lane has no retrieved contexts, as the end of a sentence."""
    steps = getattr(item, "trajectory", None) or ()
    if steps:
        kinds = sorted({str(getattr(one.event_type, "value", one.event_type)) for one in steps})
        return (
            f"no column holds any, and none of the {len(steps)} recorded steps is a tool's output ({', '.join(kinds)})"
        )
    if not layout.has_workflow:
        return "no column holds any, and the row has no recorded steps"
    if find_spec("nat.plugins.profiler") is None:
        return (
            "no column holds any, and no step was recorded: the tools of an agent framework are recorded only "
            "with the package nvidia-nat-profiler installed"
        )
    return "no column holds any, and the workflow recorded no step"


# -- ATIF


def from_trajectories(samples: Sequence[Any], layout: Layout) -> list[dict[str, Any]]:
    """The rows of the ATIF lane."""
    return [_trajectory_row(one, layout) for one in samples]


def _trajectory_row(sample: Any, layout: Layout) -> dict[str, Any]:
    asked = next((_text(step.message) for step in sample.trajectory.steps or () if step.source == "user"), "")
    said = {"user_input": asked, "response": sample.output_obj, "reference": sample.expected_output_obj}
    row: dict[str, Any] = {column: value for column, value in said.items() if not _is_blank(value)}
    if recorded := list(_recorded(sample.trajectory)):
        row["intermediate_steps"] = [*recorded, *_models_asked(recorded, layout)]
    return row


def _recorded(trajectory: Any) -> Iterator[dict[str, Any]]:
    """The steps of a trajectory as the toolkit's own steps, in the order in which they stand there.

    A trajectory does not tell a tool from any other part of an agent's framework that was watched (the nodes of a
    graph, a prompt); their outputs hold the question and the answer. So of what a framework ran only that is a tool
    which bears the name of a function of the toolkit, or which a model asked for. Where the trajectory was made of a
    recording without the workflow's own steps, that recording held tools alone.
    """
    steps = [step for step in trajectory.steps or () if step.source == "agent"]
    tools = None if len(steps) == len(trajectory.steps or ()) else _tool_names(trajectory, steps)
    for step in steps:
        if step.model_name:
            yield {"payload": {"event_type": "LLM_END"}, "function_ancestry": _extra(step, "ancestry")}
        outputs = {
            one.source_call_id: _text(one.content) for one in (step.observation.results if step.observation else ())
        }
        for call, caller, invocation in _calls(step):
            own = caller.get("function_name") == call.function_name
            if not own and tools is not None and invocation.get("framework") and call.function_name not in tools:
                continue
            output = outputs.get(call.tool_call_id)
            if output is not None and output.startswith(GRAPH_STATE):
                continue
            yield {
                "payload": {
                    "event_type": "FUNCTION_END" if own else "TOOL_END",
                    "name": call.function_name,
                    "data": {"input": call.arguments, "output": output},
                },
                "function_ancestry": caller,
            }


def _calls(step: Any) -> Iterator[tuple[Any, dict[str, Any], dict[str, Any]]]:
    """The calls of a step, each with who made it and how; these stand on the call or, in lists, on the step."""
    callers = _extra(step, "tool_ancestry", ())
    invocations = _extra(step, "tool_invocations", ())
    for number, call in enumerate(step.tool_calls or ()):
        caller = _extra(call, "ancestry") or (callers[number] if number < len(callers) else {})
        invocation = _extra(call, "invocation") or (invocations[number] if number < len(invocations) else {})
        yield call, dict(caller), dict(invocation or {})


def _tool_names(trajectory: Any, steps: Sequence[Any]) -> set[str]:
    """Names that are tools for certain: functions of the toolkit, and what a model was offered or asked for."""
    names = {
        call.function_name
        for step in steps
        for call, caller, _ in _calls(step)
        if caller.get("function_name") == call.function_name
    }
    for step in steps:
        names.update(REQUESTED.findall(_text(step.message).partition(REQUESTS)[2]))
    for offered in trajectory.agent.tool_definitions or ():
        names.add(str(get(get(offered, "function"), "name")))
    return names


def _extra(record: Any, name: str, default: Any = None) -> Any:
    found = (getattr(record, "extra", None) or {}).get(name)
    return ({} if default is None else default) if found is None else found


def _text(content: Any) -> str:
    """A message or an output: text, or the text of its parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content or () if getattr(part, "text", None))
