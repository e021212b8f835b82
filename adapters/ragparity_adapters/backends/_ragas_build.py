"""From a name and its settings in an eval file to a metric: both Ragas backends are made of this."""

from __future__ import annotations

import importlib.util
import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from ragparity.core.errors import ConfigError, MissingExtra, UnknownMetric, did_you_mean
from ragparity.core.kwargs import refuse_swapped, refuse_unknown, wrong_value
from ragparity_adapters.backends import _ragas_catalog as catalog
from ragparity_adapters.backends._ragas_fetch import ALLOW_FETCH
from ragparity_adapters.backends._ragas_import import REMEDY, check_installed, load
from ragparity_adapters.backends._ragas_metric import RagasMetric

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ragparity.core.ports import Metric
    from ragparity_adapters.backends._ragas_catalog import Api, Entry, Setting

FETCH = catalog.Setting(Annotated[list[str], Field(min_length=1)], None)
IN_THE_EXTRA = frozenset({"sacrebleu", "rouge_score"})


class RagasBackend:
    """The Ragas classes of one API, or of two, of which the first comes first."""

    def __init__(self, name: str, apis: Sequence[Api]) -> None:
        self.name = name
        self.apis = tuple(apis)

    def names(self) -> tuple[str, ...]:
        """Every class name, those that only the second API has at the end."""
        first, *others = self.apis
        found = dict.fromkeys(catalog.class_names(first))
        for entry in catalog.ENTRIES:
            if not entry.classes(first):
                found |= dict.fromkeys(name for api in others for name in entry.classes(api))
        return tuple(found)

    def find(self, name: str) -> tuple[Entry, Api, str]:
        """Entry, API and class for a name or alias, case ignored; raises `UnknownMetric`."""
        entry = catalog.find(name)
        if entry is None:
            known = [*(alias for one in catalog.ENTRIES for alias in one.aliases), *self.names()]
            hint = did_you_mean(name, known)
            raise UnknownMetric(
                f"metric {name!r}: the backend {self.name} has no such metric.{hint} `ragparity list` shows all."
            )
        for api in self.apis:
            if (class_name := catalog.class_of(name, entry, api)) is not None:
                return entry, api, class_name
        raise UnknownMetric(
            f"metric {name!r}: the {self.apis[0]} API of Ragas has no such class; the other has: set backend: ragas."
        )

    def has_own(self, name: str) -> bool:
        """Whether the first API has this metric itself: a comparison of implementations must not fall back."""
        entry = catalog.find(name)
        return entry is not None and bool(entry.classes(self.apis[0]))

    def build(self, name: str, kwargs: dict[str, Any]) -> Metric:
        """One metric, without importing Ragas; raises `UnknownMetric`, `MissingExtra` or `ConfigError`."""
        entry, api, class_name = self.find(name)
        given = checked(class_name, settings_of(entry, api), kwargs)
        version = check_installed()
        if entry.fetches and not _is_allowed(entry, given.get(ALLOW_FETCH)):
            wanted = entry.fetches_from or "images.example.com, ./images"
            raise ConfigError(
                f"metric {class_name}: it {entry.fetches}, so it is refused; to allow it, list hosts or folders: "
                f"{ALLOW_FETCH}: [{wanted}]"
            )
        _packages_for(class_name, entry, api)
        return RagasMetric(
            concept=entry.concept,
            class_name=class_name,
            api=api,
            backend=self.name,
            given=json.dumps(given, ensure_ascii=False, sort_keys=True),
            ragas_version=version,
        )

    def prepare(self) -> None:
        """Import Ragas; raises `MissingExtra`. Takes seconds, so not on an event loop."""
        load()

    def missing(self) -> str:
        """Why Ragas cannot be used here, with the remedy; nothing where it can."""
        try:
            check_installed()
        except MissingExtra as error:
            return str(error)
        return ""

    def about(self, name: str) -> tuple[str, str, str]:
        """Fields read, judge calls, and range of a metric, in words."""
        entry, api, _ = self.find(name)
        reads = [*entry.fields(api), *(f"{one}?" for one in entry.optional(api))]
        low, high = entry.bounds
        scale = "as its text says" if (low, high) == catalog.ANY_NUMBER else f"{low:g} to {high:g}"
        calls = entry.calls if api == self.apis[0] else f"{entry.calls} ({api} API only)"
        return ", ".join(reads), calls, scale + ("" if entry.higher_is_better else ", lower is better")

    def card(self, name: str) -> str:
        """The card of a metric: what it is, reads, asks and takes."""
        entry, api, class_name = self.find(name)
        reads, calls, scale = self.about(name)
        others = [one for one in (*entry.collections, *entry.legacy, *entry.aliases) if one != class_name]
        lines = [
            f"{self.name}/{class_name} (also {', '.join(dict.fromkeys(others))})",
            "",
            f"{entry.definition[:1].upper()}{entry.definition[1:]}.",
            "",
            f"Source: Ragas 0.4, {api} API.",
            f"Reads: {reads}.",
            f"Asks: {calls}.",
            f"Range: {scale}{', higher is better' if entry.higher_is_better else ''}.",
            "Undefined when: as the native metric; policies.upstream shows Ragas' own result.",
        ]
        if entry.fetches:
            lines.append(f"Refused unless {ALLOW_FETCH} lists what it may open: it {entry.fetches}.")
        settings = [_shown(key, one) for key, one in settings_of(entry, api).items()]
        return "\n".join([*lines, *(["", "Settings:", *settings] if settings else [])])


def _is_allowed(entry: Entry, allowed: list[str] | None) -> bool:
    return bool(allowed) and (not entry.fetches_from or entry.fetches_from in (allowed or ()))


def _shown(name: str, setting: Setting) -> str:
    default = "required" if setting.default is ... else f"{setting.default!r}"
    return f"  {name} = {default}"


def settings_of(entry: Entry, api: Api) -> dict[str, Setting]:
    """The settings of a class in an API."""
    found = dict(entry.settings.get(api, {}))
    return {**found, ALLOW_FETCH: FETCH} if entry.fetches else found


def checked(metric: str, settings: Mapping[str, Setting], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that were set and are no defaults, checked; raises `ConfigError`. `given` is left as it is."""
    refuse_unknown(metric, given, list(settings))
    model = _made(settings)
    try:
        found = model.model_validate(dict(given)).model_dump()
    except ValidationError as error:
        raise wrong_value(metric, error.errors(include_url=False)[0]) from None
    refuse_swapped(metric, given, found)
    return {name: found[name] for name in given if found[name] != settings[name].default}


def _made(settings: Mapping[str, Setting]) -> type[BaseModel]:
    fields: dict[str, Any] = {name: (one.type, one.default) for name, one in settings.items()}
    made: type[BaseModel] = create_model("Settings", __config__=ConfigDict(extra="forbid"), **fields)
    return made


def _packages_for(class_name: str, entry: Entry, api: Api) -> None:
    """Raise `MissingExtra` for a package that a class needs beyond Ragas itself."""
    if class_name == "DataCompyScore" and api == "legacy":
        raise ConfigError(f"metric {class_name}: the legacy class fits no current datacompy; set backend: ragas")
    for package in entry.needs:
        if importlib.util.find_spec(package) is None:
            line = REMEDY if package in IN_THE_EXTRA else f"pip install {_requirement(package)}"
            raise MissingExtra(f"metric {class_name} needs {package}: {line}")


def _requirement(package: str) -> str:
    return "'datacompy<1'" if package == "datacompy" else package
