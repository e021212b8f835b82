"""A sample as Ragas takes it: arguments of a collections class, or a sample of the legacy API."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ragparity.core.errors import SampleError

if TYPE_CHECKING:
    from ragparity.core.sample import Sample
    from ragparity_adapters.backends._ragas_catalog import Entry
    from ragparity_adapters.backends._ragas_import import Ragas

_NUMBER = re.compile(r"\d+")


def grades_of(rubrics: Mapping[str, str] | None) -> tuple[int, ...] | None:
    """The grades that a rubric describes, from the numbers in its keys; `None` where a key has none.

    >>> grades_of({"score1_description": "bad", "score3_description": "good"})
    (1, 3)
    """
    found = [_NUMBER.search(str(key)) for key in rubrics or ()]
    if not found or not all(found):
        return None
    return tuple(sorted({int(one[0]) for one in found if one is not None}))


def texts_ahead(entry: Entry, sample: Sample) -> list[str]:
    """Texts whose vectors a class asks for without waiting; Ragas embeds a blank in place of an empty text."""
    return [sample.reference or " ", sample.response or " "] if entry.family == "similarity" else []


@lru_cache(maxsize=128)
def _parameters(cls: Any) -> tuple[str, ...]:
    return tuple(name for name in inspect.signature(cls.ascore).parameters if name != "self")


def arguments(ragas: Ragas, entry: Entry, class_name: str, sample: Sample) -> dict[str, Any]:
    """What the coroutine of a collections class is called with."""
    return {name: _value(ragas, entry, sample, name) for name in _parameters(ragas.collections[class_name])}


def single_turn_sample(ragas: Ragas, sample: Sample) -> Any:
    """The sample for a legacy class that judges one answer."""
    names = (
        "user_input", "response", "reference", "retrieved_contexts", "reference_contexts", "retrieved_context_ids",
        "reference_context_ids", "rubrics",
    )  # fmt: skip
    return ragas.schema.SingleTurnSample(**{name: _listed(getattr(sample, name)) for name in names})


def multi_turn_sample(ragas: Ragas, sample: Sample) -> Any:
    """The sample for a legacy class that judges a conversation; Ragas checks the order of its messages."""
    return ragas.schema.MultiTurnSample(
        user_input=messages(ragas, sample),
        reference=sample.reference,
        reference_tool_calls=_wanted_calls(ragas, sample),
        rubrics=_listed(sample.rubrics),
        reference_topics=_listed(sample.reference_topics),
    )


def _value(ragas: Ragas, entry: Entry, sample: Sample, name: str) -> Any:
    if name == "user_input" and entry.multi_turn == "yes":
        return messages(ragas, sample)
    if name == "reference_tool_calls":
        return _wanted_calls(ragas, sample)
    return _listed(getattr(sample, name))


def _listed(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def messages(ragas: Ragas, sample: Sample) -> list[Any]:
    """The conversation in Ragas' classes; it has none for system messages, so those are left out."""
    found = []
    for index, message in enumerate(sample.messages or ()):
        role, content = str(message.get("role", "")), str(message.get("content") or "")
        if role in ("user", "human"):
            found.append(ragas.messages.HumanMessage(content=content))
        elif role in ("assistant", "ai"):
            where = f"messages[{index}].tool_calls"
            calls = [_call(ragas, one, where) for one in message.get("tool_calls") or ()]
            found.append(ragas.messages.AIMessage(content=content, tool_calls=calls or None))
        elif role == "tool":
            found.append(ragas.messages.ToolMessage(content=content))
        elif role not in ("system", "developer"):
            raise SampleError(
                f"messages[{index}]: expected a role out of user, assistant, tool, system; found {role!r}"
            )
    return found


def _wanted_calls(ragas: Ragas, sample: Sample) -> list[Any] | None:
    if sample.reference_tool_calls is None:
        return None
    return [_call(ragas, one, "reference_tool_calls") for one in sample.reference_tool_calls]


def _call(ragas: Ragas, call: Mapping[str, Any], where: str) -> Any:
    """A tool call, also as OpenAI writes it: under `function`, the arguments as a JSON text."""
    inner = call.get("function")
    source = inner if isinstance(inner, Mapping) else call
    args = source.get("args", source.get("arguments"))
    if isinstance(args, str):
        try:
            args = json.loads(args) if args.strip() else {}
        except ValueError:
            args = {"arguments": args}
    if not isinstance(source.get("name"), str) or not isinstance(args, Mapping | None):
        raise SampleError(f"{where}: expected calls with a name and args, found the keys {', '.join(map(str, call))}")
    return ragas.messages.ToolCall(name=source["name"], args=dict(args or {}))
