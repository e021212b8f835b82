"""What the toolkit loads at its start: the types of our entries, and the evaluators behind them.

`_type: ragas` is taken where nobody else has the name, so that files written for NVIDIA's own plugin run unchanged;
with that plugin installed it stays with it, unless `RAGPARITY_TAKE_OVER=ragas` is set. The toolkit refuses a file
that uses a name which is registered twice.
"""

from __future__ import annotations

import importlib
import logging
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from nat.cli.register_workflow import register_evaluator
from nat.data_models.evaluator import EvaluatorBaseConfig
from pydantic import ConfigDict, Field, model_validator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TAKE_OVER = "RAGPARITY_TAKE_OVER"
NVIDIA_RAGAS = "nat.plugins.ragas"

logger = logging.getLogger(__name__)


class EntryConfig(EvaluatorBaseConfig):  # type: ignore[misc]  # the toolkit is not installed where types are checked
    """What every entry of ours has. Unknown keys and wrong values are refused, with one line for each."""

    model_config = ConfigDict(extra="forbid")

    metric: str | dict[str, Any] = Field(description="Name, backend/Name, or {Name: {kwargs: {...}, skip: false}}.")
    llm_name: str | None = Field(None, description="The judge: an entry of llms, or offline (no model, no network).")
    embedder_name: str | None = Field(None, description="An entry of embedders, where the metric compares meanings.")
    input_obj_field: str | None = Field(None, description="The key that holds the question, of an input object.")
    enable_atif_evaluator: bool = Field(default=False, description="Score ATIF trajectories; columns are not in them.")
    fields: dict[str, Any] | None = Field(None, description="Field to path: {retrieved_contexts: 'docs[].body'}.")
    judge: dict[str, Any] | None = Field(None, description="How the judge is asked: output, max_tokens, retries, …")
    policies: dict[str, Any] | None = Field(None, description="What a degenerate row comes to: no_claims, …")
    reps: int | None = Field(None, description="How many times each row is judged.")
    threshold: float | None = Field(None, description="The score from which a row has passed.")
    all_failed_average: float | None = Field(None, description="The average where nothing has a score; default none.")
    do_auto_retry: bool | None = Field(None, description="False: no retries.")
    num_retries: int | None = Field(None, description="Attempts, the first one included.")
    retry_on_status_codes: Any = Field(None, description="Accepted, not used: what is asked again is fixed.")
    retry_on_errors: Any = Field(None, description="Accepted, not used: what is asked again is fixed.")

    @model_validator(mode="before")
    @classmethod
    def _as_the_command_reads_it(cls, raw: Any) -> Any:
        """The same checks as those of the `ragparity` command, so that one file means the same to both."""
        if isinstance(raw, dict):
            from ragparity.nat.entries import refuse_what_is_wrong

            refuse_what_is_wrong(raw, str(cls.static_type()))
        return raw


class EvaluatorConfig(EntryConfig, name="ragparity"):  # type: ignore[call-arg]  # as EntryConfig
    """Score rows with one metric of one backend; the default backend is `native`."""

    backend: str | None = Field(None, description="native, ragas, ragas_legacy, …")


class RagasConfig(EntryConfig, name="ragas"):  # type: ignore[call-arg]  # as EntryConfig
    """The entry of NVIDIA's own plugin, scored here; the default backend is `ragas`."""

    backend: str | None = Field(None, description="ragas, native, ragas_legacy, …")


class CrossvalidateConfig(EntryConfig, name="ragparity_crossvalidate"):  # type: ignore[call-arg]  # as EntryConfig
    """Score rows with one metric of several backends, side by side."""

    backends: Any = Field(None, description="Names of backends; default: every one that has the metric.")


async def evaluator(config: EntryConfig, builder: Any) -> AsyncIterator[Any]:
    """An evaluator for one entry. It never raises for a bad metric or a missing package: its items say so."""
    from ragparity.nat.evaluators import open_evaluator

    async with open_evaluator(config, builder) as info:
        yield info


def register() -> None:
    """Make the types known to the toolkit."""
    register_evaluator(config_type=EvaluatorConfig)(evaluator)
    register_evaluator(config_type=CrossvalidateConfig)(evaluator)
    if find_spec(NVIDIA_RAGAS) is None or _taken_over():
        register_evaluator(config_type=RagasConfig)(evaluator)


def _taken_over() -> bool:
    """Whether the name `ragas` was asked for, and NVIDIA's plugin has been made to give it up."""
    if os.environ.get(TAKE_OVER, "").casefold() != "ragas":
        return False
    from nat.cli.type_registry import GlobalTypeRegistry

    importlib.import_module(f"{NVIDIA_RAGAS}.register")  # registers once; loading its entry point later does nothing
    known = getattr(GlobalTypeRegistry.get(), "_registered_evaluator_infos", None)
    if not isinstance(known, dict):
        logger.warning("%s=ragas has no effect: this release of the toolkit keeps its evaluators elsewhere", TAKE_OVER)
        return False
    for config_type in [one for one in known if one.static_type() == "ragas"]:
        del known[config_type]
    return True


register()
