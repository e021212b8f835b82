"""The sections of the eval file that are plain settings: judge, run, data set, general.

Key by key they are the toolkit's where the toolkit has them (`dataset`, `output`); `ragparity` is ours.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path  # noqa: TC003  # pydantic reads the annotations at run time
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pydantic import BeforeValidator, Field, create_model

from ragparity.config.problems import Number, Section, Whole, Word
from ragparity.core.policy import Policies
from ragparity.spending import Budget

DEFAULT_OUTPUT = "./out"
DEFAULT_CONCURRENCY = 8
"""The toolkit's own default."""


def _off(value: Any) -> Any:
    # YAML 1.1 reads the bare word `off` as false.
    return "off" if value is False else value


class Price(Section):
    """What a judge costs, in any currency."""

    input_per_1m: Number = Field(ge=0, description="a price per million tokens read, 0 or more")
    output_per_1m: Number = Field(ge=0, description="a price per million tokens written, 0 or more")


class JudgeSettings(Section):
    """How a judge is asked. `model_fields_set` names what the file sets; the rest are defaults.

    `timeout_s` is in seconds and for one attempt; `retries` are those after the first attempt.
    """

    output: Literal["auto", "rating", "structured"] = "auto"
    max_tokens: Whole | None = Field(None, gt=0, description="a whole number of tokens, 1 or more")
    temperature: Number | None = Field(None, ge=0, description="a number, 0 or more")
    timeout_s: Number = Field(60.0, gt=0, description="seconds, more than 0")
    retries: Whole = Field(3, ge=0, description="a whole number, 0 or more: attempts after the first")
    reasoning: bool | None = Field(None, description="true or false")
    context_window: Whole | None = Field(None, gt=0, description="a whole number of tokens, 1 or more")
    structured: Literal["auto", "json_schema", "tool", "json_mode", "prompt"] = "auto"
    price: Price | None = None
    language: Word | None = Field(None, description="the name of a language")
    prompt: Word | None = Field(None, description="a text, or file:// and the path of a text file")

    def over(self, weaker: JudgeSettings) -> JudgeSettings:
        """These settings, and where they are silent the weaker ones.

        >>> JudgeSettings(retries=1).over(JudgeSettings(retries=9, output="rating")).set_by_user()
        {'output': 'rating', 'retries': 1}
        """
        return JudgeSettings.model_validate({**weaker.set_by_user(), **self.set_by_user()})

    def set_by_user(self) -> dict[str, Any]:
        """The settings that the file makes, as plain data."""
        return self.model_dump(exclude_unset=True)


class EmbedderPrice(Section):
    """What an embedder costs, in the currency of the judges' prices."""

    input_per_1m: Number = Field(ge=0, description="a price per million tokens read, 0 or more")


class EmbedderSettings(Section):
    """What a run should know about an embedder."""

    price: EmbedderPrice | None = None


class Cache(Section):
    """Judge replies on disk. `replay` asks nobody: a question without a stored reply is an error."""

    path: Path = Field(default=".cache/judge.sqlite", validate_default=True, description="the path of a file")
    mode: Annotated[Literal["off", "read_write", "read_only", "replay"], BeforeValidator(_off)] = "off"


class Save(Section):
    """What a run keeps besides its results."""

    samples: bool = Field(default=True, description="true or false")
    calls: Literal["none", "failed", "all"] = "failed"


class BudgetSection(Section):
    """Limits of one start of a run, its probe included; `cost` is in the currency of the prices."""

    calls: Whole | None = Field(None, ge=0, description="a whole number of judge calls, 0 or more")
    tokens: Whole | None = Field(None, ge=0, description="a whole number of tokens, read and written, 0 or more")
    cost: Number | None = Field(None, ge=0, description="a number, 0 or more")

    def as_limits(self) -> Budget:
        """The budget that these limits make."""
        return Budget(calls=self.calls, tokens=self.tokens, cost=self.cost)


class Gate(Section):
    """Limits that fail a run. `max_drop` is against the mean of the baseline."""

    min_mean: Number | None = Field(None, description="a number")
    max_failed: Whole | None = Field(None, ge=0, description="a whole number of rows, 0 or more")
    min_coverage: Number | None = Field(None, ge=0, le=1, description="a share of the rows, 0 to 1")
    max_drop: Number | None = Field(None, ge=0, description="a number, 0 or more")


class RunSettings(Section):
    """`eval.general.ragparity`: defaults for the evaluators, and the settings of a run."""

    backend: Word | None = Field(None, description="the name of a backend")
    fields: dict[str, Word] = Field(default_factory=dict, description="a mapping of field to path, both text")
    judges: dict[str, JudgeSettings] = Field(default_factory=dict)
    embedders: dict[str, EmbedderSettings] = Field(default_factory=dict)
    cache: Cache = Field(default_factory=Cache)
    save: Save = Field(default_factory=Save)
    budget: BudgetSection = Field(default_factory=BudgetSection)
    gate: dict[str, Gate] = Field(default_factory=dict)
    baseline: Path | None = Field(None, description="the path of a run folder")


class Structure(Section):
    """Which column holds what; `model_fields_set` names the columns that the file sets itself."""

    disable: bool = Field(default=False, description="true or false")
    question_key: Word = Field("question", description="the name of a column")
    answer_key: Word = Field("answer", description="the name of a column")
    generated_answer_key: Word = Field("generated_answer", description="the name of a column")
    trajectory_key: Word = Field("intermediate_steps", description="the name of a column")
    expected_trajectory_key: Word = Field("expected_intermediate_steps", description="the name of a column")


class FilterEntry(Section):
    """Values by column; `*` and `?` stand for any text and any letter, as in the toolkit."""

    field: dict[str, list[Any]] = Field(default_factory=dict, description="a mapping of column to a list of values")


class Filter(Section):
    """Rows to keep and rows to leave out."""

    allowlist: FilterEntry | None = None
    denylist: FilterEntry | None = None


class DatasetSection(Section):
    """`eval.general.dataset` without its type, as every loader has it."""

    file_path: Word | None = Field(None, description="the path of a file")
    id_key: Word = Field("id", description="the name of a column")
    structure: Structure = Field(default_factory=Structure)
    filter: Filter | None = None


class CustomDatasetSection(DatasetSection):
    """The same for `_type: custom`: a function that reads the file."""

    function: Word = Field(description="the import path of a function, package.module.function")
    kwargs: dict[str, Any] = Field(default_factory=dict, description="a mapping of arguments")


class OutputSection(Section):
    """`eval.general.output`; only `dir` is used here."""

    dir: Path | None = Field(None, description="the path of a folder")
    remote_dir: Any = None
    custom_pre_eval_process_function: Any = None
    custom_scripts: Any = None
    s3: Any = None
    cleanup: Any = None
    job_management: Any = None
    workflow_output_step_filter: Any = None
    write_atif_workflow_output: Any = None


class GeneralSection(Section):
    """`eval.general`; what only the toolkit uses is accepted and named."""

    max_concurrency: Whole = Field(DEFAULT_CONCURRENCY, gt=0, description="a whole number, 1 or more")
    output_dir: Path | None = Field(None, description="the path of a folder")
    output: OutputSection | None = None
    dataset: Any = None
    ragparity: Any = None
    workflow_alias: Any = None
    profiler: Any = None
    validate_llm_endpoints: Any = None
    per_input_user_id: Any = None


def _policy_section() -> type[Section]:
    hints = get_type_hints(Policies)
    wanted: dict[str, Any] = {one.name: (hints[one.name], one.default) for one in fields(Policies)}
    return create_model("PolicySection", __base__=Section, **wanted)


if TYPE_CHECKING:
    PolicySection = Section
else:
    PolicySection = _policy_section()
"""The policies as a section, made from `Policies` so that there is one list of them."""


class AnyEvaluatorSection(Section):
    """What every entry of `eval.evaluators` of ours has; the toolkit's keys are among them."""

    metric: Any = Field(description="a metric: Name, backend/Name or {Name: {kwargs: {...}}}")
    llm_name: Word | None = Field(None, description="the name of an entry of llms")
    embedder_name: Word | None = Field(None, description="the name of an entry of embedders")
    input_obj_field: Word | None = Field(None, description="the name of a key of the input object")
    enable_atif_evaluator: bool = Field(default=False, description="true or false")
    fields: dict[str, Word] = Field(default_factory=dict, description="a mapping of field to path, both text")
    judge: JudgeSettings = Field(default_factory=JudgeSettings)
    reps: Whole = Field(1, ge=1, description="a whole number, 1 or more")
    threshold: Number | None = Field(None, description="a number")
    all_failed_average: Number | None = Field(None, description="a number")
    policies: PolicySection = Field(default_factory=PolicySection)
    do_auto_retry: bool | None = Field(None, description="true or false")
    num_retries: Whole | None = Field(None, gt=0, description="a whole number of attempts, 1 or more")
    retry_on_status_codes: Any = None
    retry_on_errors: Any = None


class EvaluatorSection(AnyEvaluatorSection):
    """An entry of `_type: ragparity` or `ragas`, without its type."""

    backend: Word | None = Field(None, description="the name of a backend")


def _names(value: Any) -> Any:
    # `--override eval.evaluators.x.backends native,ragas` comes as one text.
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


class CrossvalidateSection(AnyEvaluatorSection):
    """An entry of `_type: ragparity_crossvalidate`; without `backends` it is for the caller to choose them."""

    backends: Annotated[list[Word], BeforeValidator(_names)] = Field(
        default_factory=list, description="a list of names of backends"
    )
