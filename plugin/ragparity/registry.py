"""Native metrics by name: the base class, the decorator that registers one, and the `native` backend.

A file dropped into `ragparity/metrics/` is found and registered; nothing else has to be touched.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from abc import ABC, abstractmethod
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from ragparity.core.errors import ConfigError, UnknownMetric, did_you_mean
from ragparity.core.kwargs import refuse_swapped, refuse_unknown, wrong_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from ragparity.core.outcome import Scored, Undefined
    from ragparity.core.ports import Ask, Kit, Metric, Use
    from ragparity.core.sample import Sample

C = TypeVar("C", bound="type[NativeMetric]")

_REGISTERED: dict[str, type[NativeMetric]] = {}


class _FirstParagraph:
    """The formula of a metric: the first paragraph of its card; a setting of the same name stands before it."""

    def __get__(self, metric: NativeMetric | None, cls: type[NativeMetric]) -> str:
        return " ".join(inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0].split())


class NativeMetric(ABC):
    """Base of the native metrics: a subclass is a frozen dataclass whose fields are the metric's kwargs.

    The class says what it reads and uses; the docstring is its card, whose first paragraph is the
    definition. Subclasses implement `score` and, where a judge or an embedder is asked, `asks`.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    aliases: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ()
    may_read: ClassVar[tuple[str, ...]] = ()
    uses: ClassVar[frozenset[Use]] = frozenset()
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = True
    version: ClassVar[str] = "1"
    steps: ClassVar[int] = 0
    backend: ClassVar[str] = "native"
    definition: str = _FirstParagraph()  # type: ignore[assignment]  # read as a text

    @property
    def name(self) -> str:
        """The metric's name, without its settings."""
        return type(self).__name__

    def asks(self, sample: Sample) -> tuple[Ask, ...]:  # noqa: ARG002  # a metric without a judge asks nothing
        """The calls to expect for this sample."""
        return ()

    @abstractmethod
    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Score one admitted sample."""

    def __repr__(self) -> str:
        return spec_of(self)


def spec_of(metric: Any) -> str:
    """Name and settings that differ from the defaults, in the order of the constructor.

    >>> from ragparity.metrics.faithfulness import Faithfulness
    >>> Faithfulness()
    Faithfulness()
    """
    shown = []
    for one in fields(metric):
        value = getattr(metric, one.name)
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        if value != default:
            shown.append(f"{one.name}={value!r}")
    return f"{type(metric).__name__}({', '.join(shown)})"


def metric(cls: C) -> C:
    """Register a native metric under its class name and its aliases."""
    if not is_dataclass(cls):
        raise TypeError(f"{cls.__name__}: a metric is a frozen dataclass; put @metric above @dataclass(frozen=True)")
    for name in (cls.__name__, *cls.aliases):
        taken = _REGISTERED.setdefault(name.casefold(), cls)
        if taken is not cls:
            raise TypeError(f"{cls.__name__}: the name {name} is taken by {taken.__name__}")
    return cls


def build_kwargs(make: Callable[..., Any], name: str, kwargs: dict[str, Any], accepted: list[str]) -> Any:
    """Call a constructor with kwargs from an eval file; a wrong one is a `ConfigError` of one line."""
    refuse_unknown(name, kwargs, accepted)
    try:
        return make(kwargs)
    except ValidationError as error:
        raise wrong_value(name, error.errors(include_url=False)[0]) from None


def accepted_kwargs(cls: type[NativeMetric]) -> list[str]:
    """The names of a metric's kwargs, in the order of its constructor."""
    return [one.name for one in fields(cls)]  # type: ignore[arg-type]  # registered classes are dataclasses


def split_cutoff(name: str) -> tuple[str, int | None]:
    """A metric's name without its cut-off, and the cut-off.

    >>> split_cutoff("NDCG@10"), split_cutoff("NDCG")
    (('NDCG', 10), ('NDCG', None))
    """
    base, _, cutoff = name.rpartition("@")
    return (base, int(cutoff)) if base and cutoff.isascii() and cutoff.isdigit() else (name, None)


class NativeBackend:
    """The metrics of this package."""

    name = "native"

    def __init__(self) -> None:
        package = importlib.import_module("ragparity.metrics")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"ragparity.metrics.{module.name}")

    def classes(self) -> tuple[type[NativeMetric], ...]:
        """Every registered class once, by name."""
        return tuple(sorted(set(_REGISTERED.values()), key=lambda cls: cls.__name__))

    def names(self) -> tuple[str, ...]:
        """The names of the metrics, without their aliases."""
        return tuple(cls.__name__ for cls in self.classes())

    def find(self, name: str) -> type[NativeMetric]:
        """The class of this name or alias, case ignored; raises `UnknownMetric`.

        A cut-off may follow the name of a metric that has one: `HitRate@5`, `MRR@10`.
        """
        base, cutoff = split_cutoff(name)
        spelled = (base,) if cutoff is None else (f"{base}@k", base)
        found = next((_REGISTERED[key] for one in spelled if (key := one.casefold()) in _REGISTERED), None)
        if found is None:
            known = [alias for cls in self.classes() for alias in (cls.__name__, *cls.aliases)]
            raise UnknownMetric(
                f"metric {name!r}: the backend native has no such metric."
                f"{did_you_mean(spelled[0], known)} `ragparity list` shows all."
            )
        if cutoff is not None and "k" not in accepted_kwargs(found):
            raise UnknownMetric(f"metric {name!r}: {found.__name__} has no cut-off k; leave out @{cutoff}.")
        return found

    def build(self, name: str, kwargs: dict[str, Any]) -> Metric:
        """One metric; raises `UnknownMetric` or `ConfigError`. `HitRate@5` is `HitRate` with k = 5."""
        cls = self.find(name)
        cutoff = split_cutoff(name)[1]
        if cutoff is not None:
            if kwargs.get("k", cutoff) != cutoff:
                raise ConfigError(
                    f"metric {name}: k is {cutoff} in the name and {kwargs['k']!r} in the kwargs; leave out one."
                )
            kwargs = {**kwargs, "k": cutoff}
        make = TypeAdapter(cls).validate_python
        built: Metric = build_kwargs(make, cls.__name__, kwargs, accepted_kwargs(cls))
        refuse_swapped(cls.__name__, kwargs, {name: getattr(built, name) for name in kwargs})
        return built
