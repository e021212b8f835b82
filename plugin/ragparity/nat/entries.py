"""The toolkit's configuration as ours: the entry of an evaluator, and the llm and embedder entries it names.

Only what a user wrote counts, never a default of the toolkit's models (`nim` has `max_tokens: 300`, which nobody set):
a file must mean the same to `nat eval` and to `ragparity eval`.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from ragparity import wiring
from ragparity.config import OFFLINE, EmbedderEntry, EvalFile, General, LlmEntry, read_evaluator
from ragparity.config.entries import read_entries
from ragparity.config.problems import Problems
from ragparity.core.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ragparity.config import EvaluatorEntry

E = TypeVar("E", LlmEntry, EmbedderEntry)

LABEL = "this entry"
"""The toolkit does not tell an evaluator its name."""
CROSSVALIDATE = "ragparity_crossvalidate"
_FAULTS = (
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    ImportError,
    RuntimeError,
    NotImplementedError,
    AssertionError,
    OSError,
)
"""What a foreign client may raise while it is made."""

_SESSIONS: WeakKeyDictionary[Any, wiring.Session] = WeakKeyDictionary()

logger = logging.getLogger(__name__)


def session_of(builder: Any) -> wiring.Session:
    """The clients that all our evaluators of one builder share, and with them the limit of calls in flight."""
    return _SESSIONS.setdefault(builder, wiring.Session())


async def close_session(builder: Any) -> None:
    """Close the clients of a builder; the first evaluator that ends does it, since all end together."""
    session = _SESSIONS.pop(builder, None)
    if session is not None:
        await session.aclose()


def refuse_what_is_wrong(raw: Mapping[str, Any], type_: str) -> None:
    """Raise `ValueError` with a line per problem: unknown keys, wrong values, a metric in a wrong form."""
    try:
        read_evaluator(LABEL, _typed(raw, type_))
    except ConfigError as error:
        lines = [line.removeprefix(f"eval.evaluators.{LABEL}.") for line in str(error).splitlines()]
        shown = raw.get("metric")
        about = next(iter(shown), "no metric") if isinstance(shown, dict) else shown or "no metric"
        raise ValueError(f"evaluator {about} (_type: {type_}): {'; '.join(lines)}") from None


def _typed(raw: Mapping[str, Any], type_: str) -> dict[str, Any]:
    return {**{key: value for key, value in raw.items() if key not in ("type", "_type")}, "_type": type_}


def read_entry(config: Any, llms: Mapping[str, LlmEntry] | None = None) -> EvaluatorEntry:
    """The entry as the command would read it; the settings of an llm entry count where it is given."""
    raw = _typed(config.model_dump(exclude_unset=True), str(config.static_type()))
    return read_evaluator(LABEL, raw, llms=llms)


def file_of(
    entry: EvaluatorEntry, builder: Any, llms: Mapping[str, LlmEntry], embedders: Mapping[str, EmbedderEntry]
) -> EvalFile:
    """An eval file with this one evaluator in it."""
    general = General(output_dir=Path(builder.get_output_dir()), max_concurrency=builder.get_max_concurrency())
    return EvalFile(
        source=Path("nat eval"), llms=llms, embedders=embedders, general=general, evaluators={entry.name: entry}
    )


def written_by_user(config: Any) -> dict[str, Any]:
    """The keys of a toolkit configuration that the user wrote, secrets in clear, with the type.

    The toolkit leaves some of them out of its dumps (`num_retries`), so they are read one by one.
    """
    found: dict[str, Any] = {"_type": config.static_type()}
    for name in sorted(config.model_fields_set - {"type"}):
        value = getattr(config, name)
        reveal = getattr(value, "get_secret_value", None)
        found[name] = reveal() if callable(reveal) else value
    return found


def _entry(kind: type[E], name: str, config: Any) -> E:
    problems = Problems()
    found = read_entries({name: written_by_user(config)}, kind, problems)
    problems.stop()
    return found[name]


async def llm_entries(builder: Any, name: str | None) -> dict[str, LlmEntry]:
    """The llm entry of this name, with its client in the session where only the toolkit can make one."""
    if name is None or name == OFFLINE:
        return {}
    try:
        config = builder.get_llm_config(name)
    except (ValueError, KeyError):
        raise ConfigError(f"llm_name: no entry {name!r} under llms; name one of them, or {OFFLINE}") from None
    entry = _entry(LlmEntry, name, config)
    session = session_of(builder)
    if not wiring.is_buildable(entry) and name not in session.endpoints:
        made = await _from_toolkit(builder.get_llm, f"llms.{name}", name, entry.type)
        wiring.adopt_llm(session, name, _unwrapped(made))
    return {name: entry}


async def embedder_entries(builder: Any, name: str | None, retries: int) -> dict[str, EmbedderEntry]:
    """The same for an embedder."""
    if name is None or name == OFFLINE:
        return {}
    try:
        config = builder.get_embedder_config(name)
    except (ValueError, KeyError):
        raise ConfigError(f"embedder_name: no entry {name!r} under embedders; name one, or {OFFLINE}") from None
    entry = _entry(EmbedderEntry, name, config)
    session = session_of(builder)
    if not wiring.is_buildable(entry) and name not in session.embedders:
        made = await _from_toolkit(builder.get_embedder, f"embedders.{name}", name, entry.type)
        wiring.adopt_embedder(session, name, made, concurrency=builder.get_max_concurrency(), retries=retries)
    return {name: entry}


async def _from_toolkit(get: Callable[..., Awaitable[Any]], where: str, name: str, type_: str) -> Any:
    """A LangChain client made by the toolkit; raises `MissingExtra` or `ConfigError`."""
    from importlib.util import find_spec

    from nat.builder.framework_enum import LLMFrameworkEnum

    try:
        return await get(name, LLMFrameworkEnum.LANGCHAIN)
    except _FAULTS as error:
        if find_spec("nat.plugins.langchain") is None:
            raise MissingExtra(
                f"{where}: only the toolkit's LangChain package makes clients of type {type_}: "
                "pip install nvidia-nat-langchain"
            ) from error
        said = " ".join(str(error).split())
        raise ConfigError(f"{where}: the toolkit cannot make a client: {type(error).__name__}: {said[:300]}") from error


def _unwrapped(model: Any) -> Any:
    """The chat model inside what the toolkit gives out, a runnable with settings that can be changed later.

    The wrapper's retries and thinking do not reach every call, and ours would come on top: the bare model is asked.
    """
    return getattr(model, "default", model)
