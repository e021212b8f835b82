"""Our judge and embedder behind every contract of Ragas, for one sample.

A `Session` belongs to one sample and one metric. Ragas' prompt goes out byte for byte; what comes back is read
strictly (`_ragas_schemas`), kept for the outcome, and handed to Ragas as an object of its own schema, or as
JSON that its legacy parser cannot misread. Retries, cache and limits are those of the judge; so after a
question has failed for good, nothing else is asked for the sample and the same error is raised again, whatever
Ragas does with exceptions.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

from ragparity.core.concurrency import together
from ragparity.core.errors import JudgeError, MalformedVerdict
from ragparity.core.outcome import Scored, Undefined
from ragparity.core.ports import RATING_TOKENS
from ragparity.core.prompt import Prompt
from ragparity.core.text import normalised
from ragparity_adapters.backends._ragas_schemas import Kind, expected_items, kind_of, plain_answer, strict
from ragparity_adapters.backends._ragas_sizes import budget_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.outputs import LLMResult
    from pydantic import BaseModel

    from ragparity.core.ports import Kit, Scale

INPUT = "\ninput: "
OUTPUT = "\nOutput: "


Parts: TypeAlias = "Sequence[Mapping[str, Any]]"
"""Content blocks as OpenAI writes them."""


class SettledError(Exception):
    """The outcome is known before Ragas is done: there is nothing to judge. It ends the metric's coroutine."""

    def __init__(self, outcome: Scored | Undefined) -> None:
        super().__init__(type(outcome).__name__)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and its answer. `data` is the input in the prompt, `answer` as read strictly."""

    kind: Kind
    data: Mapping[str, Any]
    answer: Any
    reason: str | None = None


@dataclass(slots=True)
class Manners:
    """How one metric asks: the scale of its ratings, the grades of its rubric, what to do with an answer.

    `watch` sees every answer and may raise `SettledError`. `exclude_unknown` leaves out pieces on which the judge
    cannot tell. `upstream` leaves everything to Ragas. `both_ratings` says that one unreadable rating of two
    must not keep the other from being asked.
    """

    scale: Scale | None = None
    grades: tuple[int, ...] | None = None
    watch: Callable[[Exchange], None] = lambda _exchange: None
    exclude_unknown: bool = False
    both_ratings: bool = False
    upstream: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)
    embed_questions_with: str | None = None


class Session:
    """What one metric asks about one sample, and what came back."""

    def __init__(self, kit: Kit, manners: Manners) -> None:
        self.kit = kit
        self.manners = manners
        self.exchanges: list[Exchange] = []
        self.error: JudgeError | None = None
        self.extra_pieces = 0
        self._unreadable: dict[str, JudgeError] = {}
        self._draws: Counter[str] = Counter()
        self._vectors: dict[str, list[float]] = {}
        self._under_way: set[asyncio.Task[Any]] = set()

    # -- what Ragas asks

    async def answer(self, text: str, model: type[BaseModel], parts: Parts = ()) -> BaseModel:
        """An object of a Ragas schema; `parts` are the text with images in it. Raises `JudgeError`."""
        kind = kind_of(model)
        if kind == "rating" and self.manners.scale is not None and not self.manners.upstream:
            return model.model_validate({"rating": await self.rating(text)})
        data = {"images": images_in(parts)} if parts else input_of(text)
        prompt = Prompt.verbatim(text, data, parts)
        if self.manners.upstream:
            said: BaseModel = await self._ask(text, lambda draw: self._verdict(prompt, model, kind, draw))
            self._keep(Exchange(kind, data, said))
            return said
        schema = strict(model, expected_items(kind, data), self.manners.grades if kind == "graded" else None)
        found = await self._ask(text, lambda draw: self._verdict(prompt, schema, kind, draw))
        try:
            self._conditioned(kind, data, found)
        except JudgeError as error:
            self._failed(text, error)
            raise
        self._keep(Exchange(kind, data, found))
        return plain_answer(model, found)

    async def rating(self, text: str) -> int:
        """A rating on the metric's scale."""
        scale = self.manners.scale
        if scale is None:
            raise MalformedVerdict("Ragas asks for free text where no scale of ratings is known")
        prompt = Prompt.verbatim(text, input_of(text) or self.manners.data)
        found = await self._ask(text, lambda draw: self.kit.rating(prompt, scale, draw=draw))
        self._keep(Exchange("rating", prompt.data, int(found.value), found.reason))
        return int(found.value)

    async def text(self, text: str) -> str:
        """Free text, as Ragas itself would read it."""
        prompt = Prompt.verbatim(text, self.manners.data)
        said: str = await self._ask(text, lambda draw: self.kit.text(prompt, budget=RATING_TOKENS, draw=draw))
        self._keep(Exchange("other", prompt.data, said))
        return said

    def _verdict(self, prompt: Prompt, schema: type[BaseModel], kind: Kind, draw: int) -> Any:
        return self.kit.verdict(prompt, schema, budget=budget_of(kind, prompt.data), draw=draw)

    async def _ask(self, text: str, put: Callable[[int], Any]) -> Any:
        if self.error is not None and not (self.manners.both_ratings and text not in self._unreadable):
            raise self._unreadable.get(text, self.error)
        draw = self._draws[text]
        self._draws[text] += 1
        task = asyncio.current_task()
        if task is not None:
            self._under_way.add(task)
        try:
            return await put(draw)
        except JudgeError as error:
            self._failed(text, error)
            raise
        finally:
            if task is not None:
                self._under_way.discard(task)

    def _failed(self, text: str, error: JudgeError) -> None:
        self._unreadable[text] = error
        if self.error is None:
            self.error = error

    def _keep(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        if not self.manners.upstream:
            self.manners.watch(exchange)

    async def close(self) -> None:
        """Cancel what Ragas left under way when it was ended early."""
        left = [one for one in self._under_way if one is not asyncio.current_task() and not one.done()]
        for one in left:
            one.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    # -- answers

    def of(self, kind: Kind) -> list[Exchange]:
        """The exchanges of a kind, in the order of the answers."""
        return [one for one in self.exchanges if one.kind == kind]

    def _conditioned(self, kind: Kind, data: Mapping[str, Any], found: Any) -> None:
        """Leave out blank claims; put verdicts in the order of the claims; leave out what belongs to no claim."""
        if kind == "claims":
            (name,) = type(found).model_fields
            setattr(found, name, [one for one in getattr(found, name) if one.strip()])
        elif kind == "verdicts" and expected_items(kind, data) is not None:
            pieces = found.statements
            places = places_of(list(data["statements"]), [(one.statement, one.verdict) for one in pieces])
            self.extra_pieces += len(pieces) - len(places)
            found.statements = [pieces[place] for place in places]
        elif kind in ("in_topics", "answers"):
            (name,) = type(found).model_fields
            setattr(found, name, getattr(found, name)[: expected_items(kind, data)])
        if self.manners.exclude_unknown and kind == "verdicts":
            found.statements = [one for one in found.statements if one.verdict is not None]
        if self.manners.exclude_unknown and kind == "attributions":
            found.classifications = [one for one in found.classifications if one.attributed is not None]

    # -- vectors

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text; each text is embedded once for the sample."""
        missing = [one for one in dict.fromkeys(texts) if one not in self._vectors]
        if missing:
            try:
                vectors = await self.kit.embed(missing)
            except JudgeError as error:
                self.error = self.error or error
                raise
            if not self.manners.upstream and any(not any(one) for one in vectors):
                raise SettledError(self._without_direction())
            self._vectors |= dict(zip(missing, vectors, strict=True))
        return [self._vectors[one] for one in texts]

    def _without_direction(self) -> Scored | Undefined:
        """The outcome where the embedder gives a zero vector, which is similar to nothing."""
        asked = [one.answer for one in self.of("question")]
        detail = {"questions": [one.model_dump() for one in asked]} if asked else {}
        if asked and all(one.noncommittal for one in asked):
            return Scored(0.0, "the response is noncommittal", {**detail, "noncommittal": True})
        return Undefined("zero_vector", "the embedder gave a zero vector", detail)

    async def embed_ahead(self) -> None:
        """Embed the question and the questions made so far, for a metric that asks for vectors without waiting."""
        if self.manners.embed_questions_with is not None:
            made = [one.answer.question for one in self.of("question")]
            await self.embed([self.manners.embed_questions_with, *made])

    def vector(self, text: str) -> list[float]:
        """A vector that is there already."""
        return self._vectors[text]


def places_of(claims: Sequence[str], verdicts: Sequence[tuple[str, object]]) -> list[int]:
    """For each claim, the place of its verdict, by the text that the verdict repeats; raises `MalformedVerdict`.

    A claim whose text nobody repeats is paired with a verdict of an unknown text only where just as many are
    left on both sides, in order. Two different verdicts on one claim are refused.

    >>> places_of(["a", "b"], [("B.", True), ("A.", False)])
    [1, 0]
    >>> places_of(["a", "b"], [("a", True), ("something else", False), ("a", True)])
    [0, 1]
    """
    free: dict[str, list[int]] = {}
    for place, (said, _) in enumerate(verdicts):
        free.setdefault(normalised(said, "full"), []).append(place)
    found: dict[int, int] = {}
    for number, claim in enumerate(claims):
        if places := free.get(normalised(claim, "full")):
            found[number] = places.pop(0)
    known = {normalised(claim, "full") for claim in claims}
    _refuse_contradictions(claims, verdicts, known)
    strangers = [place for said, places in free.items() if said not in known for place in places]
    lacking = [number for number in range(len(claims)) if number not in found]
    if lacking and len(strangers) != len(lacking):
        text = f"the judge gave verdicts on {len(claims) - len(lacking)} of {len(claims)} statements"
        raise MalformedVerdict(text)
    found |= dict(zip(lacking, sorted(strangers), strict=False))
    return [found[number] for number in range(len(claims))]


def _refuse_contradictions(claims: Sequence[str], verdicts: Sequence[tuple[str, object]], known: set[str]) -> None:
    if len(verdicts) <= len(claims):
        return
    by_text: dict[str, object] = {}
    for said, verdict in verdicts:
        text = normalised(said, "full")
        if text in known and by_text.setdefault(text, verdict) != verdict:
            raise MalformedVerdict(f"two different verdicts for the statement {said!r}")


def text_in(parts: Parts) -> str:
    """The text of some content blocks, a line between two of them."""
    return "\n".join(str(one["text"]) for one in parts if one["type"] == "text")


def images_in(parts: Parts) -> list[str]:
    """The images of some content blocks, as data URIs."""
    return [str(one["image_url"]["url"]) for one in parts if one["type"] == "image_url"]


def input_of(prompt: str) -> dict[str, Any]:
    r"""The JSON input at the end of a Ragas prompt, or nothing where it cannot be read.

    JSON text holds no line that begins with `input:`, so the last such line begins the input.

    >>> input_of('Do it.\ninput: {"question": "x"}\nOutput: ')
    {'question': 'x'}
    """
    _, found, rest = prompt.rpartition(INPUT)
    if not found:
        return {}
    try:
        value = json.loads(rest.rpartition(OUTPUT)[0])
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def plain_json(value: Any) -> str:
    r"""JSON in which no string holds a bracket, a brace or a backquote, so that Ragas' parser finds its true end.

    >>> plain_json({"a": ["x } y"]})
    '{"a": ["x \\u007d y"]}'
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{plain_json(str(key))}: {plain_json(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(plain_json(one) for one in value) + "]"
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str):
        for sign in "{}[]`":
            text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


# -- the faces that Ragas sees


class CollectionsJudge:
    """The language model that the collections API talks to.

    Its multimodal classes go past `agenerate` to the client behind it, of which `client`, `provider` and `model`
    are what they use.
    """

    is_async = True
    provider = "openai"
    model = "judge"

    def __init__(self, session: Session) -> None:
        self._session = session
        self.client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=self._create)))

    def _map_provider_params(self) -> dict[str, Any]:
        """No settings: they are the judge's own matter."""
        return {}

    async def _create(
        self, *, messages: Sequence[Mapping[str, Any]], response_model: type[BaseModel], **_settings: object
    ) -> BaseModel:
        """An object of the schema, from one message with images."""
        parts = messages[0]["content"]
        return await self._session.answer(text_in(parts), response_model, parts)

    async def agenerate(self, prompt: str, response_model: type[BaseModel]) -> BaseModel:
        """An object of the schema."""
        return await self._session.answer(prompt, response_model)

    def generate(self, prompt: str, response_model: type[BaseModel]) -> BaseModel:
        """Never called by a metric's coroutine."""
        raise TypeError(f"only agenerate is served, not generate ({response_model.__name__}, {len(prompt)} characters)")


class LegacyJudge:
    """The language model that the legacy API talks to.

    `models` are the answer schemas of the metric's prompts by their JSON text, which stands in every prompt
    and tells which of them is wanted.
    """

    def __init__(self, session: Session, models: Mapping[str, type[BaseModel]]) -> None:
        self._session = session
        self._models = models

    async def generate(self, prompt: Any, n: int = 1, **_settings: object) -> LLMResult:
        """`n` separate draws of one question. Temperature, stop words and callbacks are the judge's own matter."""
        parts: Parts = () if hasattr(prompt, "text") else prompt.to_messages()[0].content
        text = text_in(parts) if parts else prompt.text
        model = self._model(text)
        if model is None:
            return await self.agenerate_text(prompt, n)
        answers = await together(self._session.answer(text, model, parts) for _ in range(n))
        await self._session.embed_ahead()
        return _result([plain_json(one.model_dump()) for one in answers])

    async def agenerate_text(self, prompt: Any, n: int = 1, **_settings: object) -> LLMResult:
        """Free text: the two ratings of NVIDIA's metrics."""
        said = await together(self._said(prompt.text) for _ in range(n))
        return _result(said)

    async def _said(self, text: str) -> str:
        manners = self._session.manners
        if manners.upstream or manners.scale is None:
            return await self._session.text(text)
        try:
            return str(await self._session.rating(text))
        except JudgeError:
            if manners.both_ratings:
                return ""
            raise

    def _model(self, text: str) -> type[BaseModel] | None:
        return next((model for schema, model in self._models.items() if schema in text), None)


def _result(texts: list[str]) -> LLMResult:
    from langchain_core.outputs import Generation, LLMResult

    return LLMResult(generations=[[Generation(text=one) for one in texts]])


class Vectors:
    """The embeddings of both APIs: those that wait, and those that must be there already."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def aembed_text(self, text: str, **_settings: object) -> list[float]:
        """One vector."""
        await self._session.embed_ahead()
        return (await self._session.embed([text]))[0]

    async def aembed_texts(self, texts: list[str], **_settings: object) -> list[list[float]]:
        """One vector per text."""
        return await self._session.embed(texts)

    async def aembed_query(self, text: str) -> list[float]:
        """One vector."""
        return await self.aembed_text(text)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text."""
        return await self.aembed_texts(texts)

    def embed_text(self, text: str, **_settings: object) -> list[float]:
        """A vector that was fetched before."""
        return self._session.vector(text)

    def embed_texts(self, texts: list[str], **_settings: object) -> list[list[float]]:
        """Vectors that were fetched before."""
        return [self._session.vector(one) for one in texts]

    def embed_query(self, text: str) -> list[float]:
        """A vector that was fetched before."""
        return self._session.vector(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors that were fetched before."""
        return self.embed_texts(texts)
