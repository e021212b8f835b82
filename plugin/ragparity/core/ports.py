"""What a metric may ask for, and from whom.

`Judge` and `Embedder` are ports of one method each, so that retry, cache, limit and metering wrap them
once and serve every framework. A judge is handed a `Question` (prompt, shape of the answer, budget) and
gives an `Answer`; the three shapes are free text, one rating on a scale, and a structured verdict.
Metrics use the shorthands `text`, `rating`, `verdict` and `embed` of `Kit`.

(The first design had one method per shape on the judge; one method with the shape as data keeps every
middleware to one method as well, and lets the adapter decide how a rating is asked: bare or as JSON.)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from ragparity.core.policies import Policies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import BaseModel

    from ragparity.core.outcome import Scored, Undefined
    from ragparity.core.prompt import Prompt
    from ragparity.core.sample import Sample

M = TypeVar("M", bound="BaseModel")

RATING_TOKENS = 8
"""Tokens within which a bare rating comes back."""
RATED_WITH_REASON = 160
"""Tokens of a rating asked for as an object: a sentence of reason and the number."""
NEAR = 1e-9
"""What two numbers may differ by and still be the same point of a scale."""


LISTED = 11
"""Points of a scale that are listed one by one; a longer scale is named by its ends and its step."""
MOST_DIGITS = 999
"""The highest point of a scale that is asked for as a bare number."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The ratings that a judge may give, in ascending order.

    >>> Scale((0, 2, 4)).share(2), Scale.between(0.1, 0.9, 0.1).share(0.3)
    (0.5, 0.25)
    """

    points: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.points) < 2 or list(self.points) != sorted(set(self.points)):  # noqa: PLR2004  # two ends
            raise ValueError(f"expected two or more different points in ascending order, got {list(self.points)}")

    @classmethod
    def between(cls, low: float, high: float, step: float = 1) -> Scale:
        """The points from `low` to `high`; raises `ValueError` where the step does not lead from one to the other.

        >>> Scale.between(0, 1, 0.25).points
        (0, 0.25, 0.5, 0.75, 1)
        """
        steps = round((high - low) / step) if step > 0 else 0
        if steps < 1 or abs(low + steps * step - high) > NEAR:
            raise ValueError(
                f"expected a scale [min, max] and a step that leads from min to max, got {low}, {high}, {step}"
            )
        exact = (round(low + at * step, 9) for at in range(steps + 1))
        return cls(tuple(int(one) if one == int(one) else one for one in exact))

    @property
    def bare(self) -> bool:
        """Whether a point can be asked for as a bare number: whole numbers of up to three digits."""
        return all(isinstance(one, int) and 0 <= one <= MOST_DIGITS for one in self.points)

    @property
    def spelled(self) -> str:
        """The points in words.

        >>> Scale((0, 2, 4)).spelled, Scale.between(0, 100).spelled
        ('0, 2 or 4', 'a whole number from 0 to 100')
        """
        shown = [f"{one:g}" for one in self.points]
        if len(shown) <= LISTED:
            return f"{', '.join(shown[:-1])} or {shown[-1]}"
        step = self.points[1] - self.points[0]
        ends = f"from {shown[0]} to {shown[-1]}"
        return f"a whole number {ends}" if self.bare and step == 1 else f"a number {ends} in steps of {step:g}"

    @property
    def listed(self) -> str:
        """What a rating has to be, in words.

        >>> Scale((0, 2, 4)).listed
        'one of 0, 2, 4'
        """
        few = len(self.points) <= LISTED
        return f"one of {', '.join(f'{one:g}' for one in self.points)}" if few else self.spelled

    def point(self, rating: float) -> float | None:
        """The point that a number is, `None` where it is none of them."""
        return next((one for one in self.points if abs(one - rating) <= NEAR), None)

    def share(self, rating: float) -> float:
        """The rating as a share of the scale: 0 at its lowest point, 1 at its highest."""
        low, high, at = (Fraction(str(one)) for one in (self.points[0], self.points[-1], rating))
        return float((at - low) / (high - low))


@dataclass(frozen=True, slots=True)
class Text:
    """Free text is wanted."""


@dataclass(frozen=True, slots=True)
class Rating:
    """One of the points of a scale is wanted."""

    scale: Scale


@dataclass(frozen=True, slots=True)
class Structured:
    """An object of this pydantic model is wanted; its `reason` stands before its verdict."""

    schema: type[BaseModel]


Shape = Text | Rating | Structured


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `budget` is the number of tokens that the answer needs (not a reasoning allowance).

    `draw` tells repeated draws of the same question apart. `complaint` says what was wrong with the
    last reply; a retry replaces it, so that a question never grows.
    """

    prompt: Prompt
    shape: Shape
    budget: int
    draw: int = 0
    complaint: str = ""

    def again(self, complaint: str) -> Question:
        """The same question with a complaint about the last reply."""
        return replace(self, complaint=complaint)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the endpoint reports them; `None` is unknown, never 0."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A readable reply: `value` is a text, a rating or an object of the schema; `raw` is what was said."""

    value: Any
    raw: str
    reason: str | None = None
    usage: Usage = field(default_factory=Usage)


def known_sum(one: int | None, other: int | None) -> int | None:
    """The sum of two counts; unknown where one of them is."""
    return None if one is None or other is None else one + other


@dataclass(slots=True)
class Tally:
    """What one sample and one metric cost. Every request counts, the failed ones too.

    Token counts are sums over the calls that report them; they become `None` once a call does not. Those of an
    embedder are kept apart: they have another price, and are many.
    `cached_calls` are answers that came from the cache, `shared_calls` those that somebody else's call brought at
    the same time: neither is a call, and neither costs tokens. `stopped` says why no further call may be made, once
    a budget is spent: then nothing is recorded for this sample and metric. `forget` holds what makes a cache forget
    the answers that were counted here, for when they turn out to be of no use. `turn` is the place of the sample in
    the run: its questions go before those of later ones.
    """

    turn: int = field(default=0, compare=False)
    calls: int = 0
    embedding_calls: int = 0
    cached_calls: int = 0
    shared_calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    embedding_tokens: int | None = 0
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    stopped: str = ""
    notes: list[str] = field(default_factory=list)
    replies: list[dict[str, Any]] = field(default_factory=list)
    forget: list[Callable[[], None]] = field(default_factory=list, compare=False)

    def call(self, usage: Usage) -> None:
        """Count one request to a judge."""
        self.calls += 1
        self._tokens(usage)

    def embedding(self, tokens: int | None) -> None:
        """Count one request to an embedder."""
        self.embedding_calls += 1
        self.embedding_tokens = known_sum(self.embedding_tokens, tokens)

    def add(self, other: Tally) -> None:
        """Count all that another tally holds."""
        for name in ("calls", "embedding_calls", "cached_calls", "shared_calls"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self._tokens(other)
        self.embedding_tokens = known_sum(self.embedding_tokens, other.embedding_tokens)
        self.stopped = self.stopped or other.stopped
        self.notes += other.notes
        self.replies += other.replies
        self.forget += other.forget

    def _tokens(self, seen_in: Usage | Tally) -> None:
        for name in ("input_tokens", "output_tokens"):
            setattr(self, name, known_sum(getattr(self, name), getattr(seen_in, name)))
        for name in ("reasoning_tokens", "cached_tokens"):
            seen = getattr(seen_in, name)
            if seen is not None:
                setattr(self, name, (getattr(self, name) or 0) + seen)


class Judge(Protocol):
    """Answers one question or raises a `JudgeError`; `identity` tells judges and their settings apart."""

    @property
    def identity(self) -> str:
        """Provider, model, endpoint and settings, without secrets."""
        ...

    async def ask(self, question: Question, tally: Tally) -> Answer:
        """Put the question; every request made is counted in `tally`."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors of one length."""

    @property
    def identity(self) -> str:
        """Provider, model and endpoint, without secrets."""
        ...

    async def embed(self, texts: Sequence[str], tally: Tally) -> list[list[float]]:
        """One vector per text, in order; raises a `JudgeError`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """What a metric works with for one sample."""

    judge: Judge | None = None
    embedder: Embedder | None = None
    policies: Policies = field(default_factory=Policies)
    tally: Tally = field(default_factory=Tally)
    draw: int = 0

    async def text(self, prompt: Prompt, *, budget: int, draw: int = 0) -> str:
        """Free text from the judge."""
        answer = await self._ask(Question(prompt, Text(), budget, self.draw + draw))
        return str(answer.value)

    async def rating(self, prompt: Prompt, scale: Scale, *, draw: int = 0) -> Answer:
        """An answer whose `value` is one of the scale's points."""
        return await self._ask(Question(prompt, Rating(scale), RATING_TOKENS, self.draw + draw))

    async def verdict(self, prompt: Prompt, schema: type[M], *, budget: int, draw: int = 0) -> M:
        """An object of the schema."""
        answer = await self._ask(Question(prompt, Structured(schema), budget, self.draw + draw))
        return answer.value  # type: ignore[no-any-return]  # a judge gives an object of the schema it was handed

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text."""
        if self.embedder is None:
            raise ValueError("this kit has no embedder")
        return await self.embedder.embed(texts, self.tally)

    async def _ask(self, question: Question) -> Answer:
        if self.judge is None:
            raise ValueError("this kit has no judge")
        return await self.judge.ask(question, self.tally)


Use = Literal["rating", "structured", "text", "embeddings"]


@dataclass(frozen=True, slots=True)
class Ask:
    """Calls to expect: how many, of what shape, with answers of how many tokens."""

    calls: int
    shape: Literal["rating", "structured", "text", "embeddings"]
    budget: int = 0


class Metric(Protocol):
    """Frozen data that can score a sample. Its repr, without defaults, is its spec.

    `reads` are the fields it needs, `may_read` those it uses when present; `bounds` the lowest and the
    highest score; `steps` how many questions wait for one another.
    """

    @property
    def name(self) -> str:
        """Its name, without settings."""
        ...

    @property
    def backend(self) -> str:
        """The backend it comes from."""
        ...

    @property
    def reads(self) -> tuple[str, ...]:
        """Fields without which there is no score."""
        ...

    @property
    def may_read(self) -> tuple[str, ...]:
        """Fields it uses where they are present."""
        ...

    @property
    def uses(self) -> frozenset[Use]:
        """What it asks for."""
        ...

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest score."""
        ...

    @property
    def higher_is_better(self) -> bool:
        """The direction."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever a score could."""
        ...

    @property
    def definition(self) -> str:
        """The formula, in a sentence."""
        ...

    @property
    def steps(self) -> int:
        """How many questions wait for one another."""
        ...

    def asks(self, sample: Sample) -> tuple[Ask, ...]:
        """The calls to expect for this sample."""
        ...

    async def score(self, sample: Sample, kit: Kit) -> Scored | Undefined:
        """Score one admitted sample; raises `JudgeError` or `SampleError`."""
        ...


@runtime_checkable
class Prepared(Protocol):
    """A metric whose framework is imported before the first score; it takes seconds."""

    def prepare(self) -> None:
        """Import it; raises `MissingExtra` with the real cause, or `ConfigError`."""
        ...


class Backend(Protocol):
    """A family of metrics under one name. `native` is one like any other."""

    @property
    def name(self) -> str:
        """Its name, without settings."""
        ...

    def names(self) -> tuple[str, ...]:
        """The names of the metrics it has."""
        ...

    def build(self, name: str, kwargs: dict[str, Any]) -> Metric:
        """One metric; raises `UnknownMetric` or `ConfigError`."""
        ...
