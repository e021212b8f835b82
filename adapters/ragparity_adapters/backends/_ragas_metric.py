"""A Ragas class as a metric behind our ports."""

from __future__ import annotations

import asyncio
import copy
import json
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ragparity.core.errors import ConfigError, JudgeError, MissingExtra, SampleError
from ragparity.core.outcome import Undefined
from ragparity_adapters.backends import _ragas_catalog as catalog
from ragparity_adapters.backends._ragas_fetch import ALLOW_FETCH, inlined
from ragparity_adapters.backends._ragas_import import load, ready
from ragparity_adapters.backends._ragas_inputs import (
    arguments,
    grades_of,
    multi_turn_sample,
    single_turn_sample,
    texts_ahead,
)
from ragparity_adapters.backends._ragas_judge import (
    CollectionsJudge,
    Exchange,
    LegacyJudge,
    Manners,
    Session,
    SettledError,
    Vectors,
)
from ragparity_adapters.backends._ragas_outcomes import Found, nothing_to_judge, outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel

    from ragparity.core.outcome import Scored
    from ragparity.core.ports import Ask, Kit, Use
    from ragparity.core.sample import Sample
    from ragparity_adapters.backends._ragas_catalog import Api, Entry
    from ragparity_adapters.backends._ragas_import import Ragas

WRAPPER = "1"
"""Version of the reading of answers and outcomes; part of every metric's version."""
CANNOT_SCORE = (ValueError, TypeError, KeyError, AttributeError, AssertionError, ZeroDivisionError)
"""What Ragas raises for a row that it cannot score."""
WITHOUT_SIMILARITY: frozenset[Use] = frozenset({"structured"})


@dataclass(frozen=True, repr=False)
class RagasMetric:
    """A Ragas class behind our ports. `given` holds the settings that were set, as JSON.

    Its score is Ragas' own number; every answer passes through our judge, is read strictly and kept in `detail`.
    """

    concept: str
    class_name: str
    api: Api
    backend: str
    given: str
    ragas_version: str

    @property
    def entry(self) -> Entry:
        """What is known about the class."""
        return _entry(self.concept)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that were set."""
        found: dict[str, Any] = json.loads(self.given)
        return found

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.class_name

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields that it needs."""
        return self.entry.fields(self.api)

    @property
    def may_read(self) -> tuple[str, ...]:
        """The fields that it uses where they are present."""
        return self.entry.optional(self.api)

    @property
    def uses(self) -> frozenset[Use]:
        """What is asked for it; correctness without a weight on similarity asks for no vectors."""
        weights = self.settings.get("weights")
        return WITHOUT_SIMILARITY if weights is not None and not weights[1] else self.entry.uses

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest score: of the rubric, where one is set."""
        grades = grades_of(self.settings.get("rubrics"))
        if grades:
            return float(grades[0]), float(grades[-1])
        if weights := self.settings.get("weights"):
            return -weights[1] / sum(weights), 1.0
        return self.entry.bounds

    @property
    def higher_is_better(self) -> bool:
        """Whether a higher score is a better one."""
        return self.entry.higher_is_better

    @property
    def version(self) -> str:
        """The version of Ragas, which of its APIs, and the version of the wrapping."""
        return f"ragas {self.ragas_version} {self.api}, wrapping {WRAPPER}"

    @property
    def definition(self) -> str:
        """The formula in words."""
        return f"{self.entry.definition} (Ragas 0.4, {self.api} API)"

    @property
    def steps(self) -> int:
        """How many questions wait for one another."""
        return self.entry.steps

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{self.class_name}({shown})"

    def asks(self, sample: Sample) -> tuple[Ask, ...]:
        """The calls to expect for this sample."""
        asked = self.entry.asks(sample)
        if self.entry.family == "relevancy" and (strictness := self.settings.get("strictness")):
            asked = tuple(replace(one, calls=strictness) if one.shape == "structured" else one for one in asked)
        if self.entry.family == "factual" and self.settings.get("mode") == "precision":
            asked = asked[:2]
        return tuple(one for one in asked if one.shape != "embeddings" or "embeddings" in self.uses)

    def prepare(self) -> None:
        """Import Ragas and build the class once; raises `MissingExtra` or `ConfigError`."""
        _template(load(), self.api, self.class_name, self.given)

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Score one admitted sample; raises `JudgeError` or `SampleError`."""
        ragas = await ready()
        if self.entry.multi_turn == "both" and sample.response is None and not self._by_messages(sample):
            return Undefined("missing:response", "the row has no response")
        session = Session(kit, self._manners(sample, kit))
        about = {"api": self.api, "class": self.class_name}
        try:
            value, reason = await self._ask_ragas(ragas, sample, session)
        except SettledError as settled:
            known = settled.outcome
            return type(known)(**{**_parts(known), "detail": {**known.detail, **about}})
        except JudgeError as error:
            error.detail = {**error.detail, **about}
            raise
        except CANNOT_SCORE as error:
            if session.error is not None:
                session.error.detail = {**session.error.detail, **about}
                raise session.error from error
            text = f"{self.class_name} of Ragas ({self.api}) cannot score this row: {_said(error)}"
            raise SampleError(text) from error
        finally:
            await session.close()
        found = Found(
            entry=self.entry,
            api=self.api,
            settings=self.settings,
            sample=sample,
            policies=kit.policies,
            session=session,
            value=value,
            reason=reason,
        )
        return outcome(found, about)

    def _by_messages(self, sample: Sample) -> bool:
        return self.api == "legacy" and self.entry.multi_turn != "no" and bool(sample.messages)

    def _manners(self, sample: Sample, kit: Kit) -> Manners:
        entry, policies = self.entry, kit.policies

        def watch(exchange: Exchange) -> None:
            known = nothing_to_judge(exchange, entry, sample, policies)
            if known is not None:
                raise SettledError(known)

        return Manners(
            scale=entry.scale,
            grades=self._grades(sample),
            watch=watch,
            exclude_unknown=policies.unknown_verdict == "exclude" and entry.family in ("claims", "recall", "factual"),
            both_ratings=entry.family == "ratings" and policies.one_rating == "use",
            upstream=policies.upstream,
            data={name: _shown(getattr(sample, name)) for name in self.reads},
            embed_questions_with=sample.user_input if entry.family == "relevancy" else None,
        )

    def _grades(self, sample: Sample) -> tuple[int, ...] | None:
        """The grades that a judge may give: of the setting, of the row where the metric reads them, else 1 to 5."""
        if "rubrics" in self.reads:
            return grades_of(sample.rubrics)
        if self.entry.family != "graded" or self.entry.bounds == catalog.ANY_NUMBER:
            return None
        return grades_of(self.settings.get("rubrics")) or (1, 2, 3, 4, 5)

    async def _ask_ragas(self, ragas: Ragas, sample: Sample, session: Session) -> tuple[Any, str | None]:
        template, models = _template(ragas, self.api, self.class_name, self.given)
        metric = copy.copy(template)
        if hasattr(metric, "llm"):
            metric.llm = CollectionsJudge(session) if self.api == "collections" else LegacyJudge(session, models)
        if hasattr(metric, "embeddings") and "embeddings" in self.uses:
            metric.embeddings = Vectors(session)
            await session.embed(texts_ahead(self.entry, sample))
        if self.entry.fetches and not self.entry.fetches_from:
            sample = await asyncio.to_thread(inlined, sample, self.settings[ALLOW_FETCH])
        # A metric that asks nothing never lets go of the loop, so its warnings can be kept to itself.
        with nullcontext() if self.uses else warnings.catch_warnings():
            if not self.uses:
                warnings.simplefilter("ignore")
            if self.api == "collections":
                result = await metric.ascore(**arguments(ragas, self.entry, self.class_name, sample))
                return result.value, result.reason
            metric.init(ragas.run_config)
            if self.entry.multi_turn == "yes" or (self._by_messages(sample) and sample.response is None):
                return await metric.multi_turn_ascore(multi_turn_sample(ragas, sample)), None
            return await metric.single_turn_ascore(single_turn_sample(ragas, sample)), None


def _said(error: Exception) -> str:
    """An error in one line."""
    if isinstance(error, ValidationError):
        return str(error.errors(include_url=False)[0]["msg"])
    return f"{type(error).__name__}: {error}"


def _shown(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _parts(known: Any) -> dict[str, Any]:
    return {name: getattr(known, name) for name in known.__slots__}


@lru_cache(maxsize=64)
def _entry(concept: str) -> Entry:
    return next(one for one in catalog.ENTRIES if one.concept == concept)


@lru_cache(maxsize=128)
def _template(ragas: Ragas, api: Api, class_name: str, given: str) -> tuple[Any, Mapping[str, type[BaseModel]]]:
    """One instance of a class with its settings, copied for each sample; and the schemas of its prompts.

    Raises `ConfigError` where the class is gone or its constructor refuses what the catalogue lets through.
    """
    cls = (ragas.collections if api == "collections" else ragas.legacy).get(class_name)
    if cls is None:
        raise ConfigError(f"metric {class_name}: Ragas {ragas.version} has no such class in its {api} API")
    entry = catalog.find(class_name)
    settings = entry.settings.get(api, {}) if entry is not None else {}
    given_now = {name: value for name, value in json.loads(given).items() if name != ALLOW_FETCH}
    kwargs = {
        settings[name].argument or name: _handed_over(ragas, api, settings[name], value)
        for name, value in given_now.items()
    }
    if "name" in settings:
        kwargs.setdefault("name", settings["name"].default)
    if entry is not None and api == "collections":
        nobody = Session.__new__(Session)
        if entry.uses - {"embeddings"}:
            kwargs["llm"] = CollectionsJudge(nobody)
        if "embeddings" in entry.uses:
            kwargs["embeddings"] = Vectors(nobody)
    try:
        made = cls(**kwargs)
    except ImportError as error:
        raise MissingExtra(f"metric {class_name}: {error}") from error
    except (ValueError, TypeError) as error:
        raise ConfigError(f"metric {class_name}: Ragas refuses it: {error}") from error
    prompts = made.get_prompts() if callable(getattr(made, "get_prompts", None)) else {}
    schemas = {json.dumps(one.output_model.model_json_schema()): one.output_model for one in prompts.values()}
    return made, schemas


def _handed_over(ragas: Ragas, api: Api, setting: catalog.Setting, value: Any) -> Any:
    """A setting as the constructor takes it: a distance is an enumeration of the API, or a metric of strings."""
    if setting.hand_over == "as_is":
        return value
    measure = ragas.distances[api](value)
    if setting.hand_over == "distance":
        return measure
    return ragas.legacy["NonLLMStringSimilarity"](distance_measure=measure)
