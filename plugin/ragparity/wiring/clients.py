"""The clients of a run, and evaluators bound to them: one endpoint and one lane per llm entry, shared by all."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragparity import wording
from ragparity.around import Around, model_settings, replies_of
from ragparity.config import OFFLINE
from ragparity.core.errors import ConfigError
from ragparity.middleware import Lane, Retrying, RetryingEmbedder
from ragparity.runner import Evaluator
from ragparity.spending import Spending
from ragparity.wiring.entries import NATIVE, judge_options, settings_of, spec_of, usable
from ragparity_adapters import embeddings, llms

if TYPE_CHECKING:
    from ragparity.core.ports import Embedder, Judge, Metric
    from ragparity.spending import Budget
    from ragparity.wiring import Plan, Planned
    from ragparity.wiring.rows import Rows
    from ragparity_adapters.endpoint import Endpoint


@dataclass(slots=True)
class Session:
    """The clients of one run, and the evaluators bound to them. It belongs to one event loop."""

    evaluators: list[Evaluator] = field(default_factory=list)
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    lanes: dict[str, Lane] = field(default_factory=dict)
    embedders: dict[str, Embedder] = field(default_factory=dict)
    bare_embedders: dict[str, Embedder] = field(default_factory=dict)
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    around: Around = field(default_factory=Around)

    async def aclose(self) -> None:
        """Close the connections of every client, and the cache."""
        try:
            for close in self.closing:
                await close()
        finally:
            self.around.close()

    def findings(self) -> list[str]:
        """What the endpoints have shown about themselves, and remarks on cache and budget, in sentences."""
        return [*(line for one in self.endpoints.values() for line in one.findings.said), *self.around.said()]

    def judges_json(self) -> dict[str, Any]:
        """Identity, rung and token parameter of every endpoint, for the manifest."""
        if not self.endpoints:  # nothing of a client is imported for a run that asks nobody
            return {}
        from ragparity_adapters.langchain import RUNGS

        return {
            name: {
                "identity": one.identity,
                "structured": RUNGS[one.findings.rung] if one.findings.rung_confirmed else None,
                "token_parameter": one.findings.token_param,
                "left_out": sorted(one.findings.dropped),
                "thinks": one.findings.thinks,
                "max_tokens": one.ceiling,
            }
            for name, one in self.endpoints.items()
        }


def open_session(plan: Plan, rows: Rows | None = None, *, budget: Budget | None = None) -> Session:
    """Build the clients that the plan's evaluators use, with the file's cache and budget; raises `ConfigError`.

    `budget` stands in place of the file's.
    """
    settings = plan.file.general.ragparity
    budget = settings.budget.as_limits() if budget is None else budget
    if problem := without_price(plan, budget):
        raise ConfigError(problem)
    session = Session(around=Around(spending=Spending(budget), replies=replies_of(settings.cache)))
    for one in plan.evaluators:
        view = rows.view_of[one.entry.name] if rows is not None else 0
        session.evaluators.append(bind(plan, one, session, view=view))
    return session


def bind(plan: Plan, one: Planned, session: Session, *, view: int = 0) -> Evaluator:
    """An evaluator on the clients of a session; those that it lacks are built, one per llm entry and embedder.

    Evaluators that are bound to one session share its clients and their limits. Raises `ConfigError`.
    """
    entry, concurrency = one.entry, plan.file.general.max_concurrency
    return Evaluator(
        name=entry.name,
        metric=one.metric,
        judge=_judge(plan, session, one, concurrency) if one.judged else None,
        embedder=_embedder(plan, session, one, concurrency) if one.embeds else None,
        policies=entry.policies,
        reps=entry.reps,
        threshold=entry.threshold,
        price=one.price,
        embedding_price=_embedding_price(plan, one),
        view=view,
        settings=_unnamed(plan, one),
    )


def _embedding_price(plan: Plan, one: Planned) -> float | None:
    """For a million tokens read by the embedder, where one is asked and that is known."""
    said = plan.file.general.ragparity.embedders.get(str(one.entry.embedder_name)) if one.embeds else None
    return said.price.input_per_1m if said and said.price else None


def _unnamed(plan: Plan, one: Planned) -> str:
    """What can change a score and shows in no identity: settings of the models, and the wording of prompts."""
    entries = [
        (one.judged, plan.file.llms.get(str(one.entry.llm_name))),
        (one.embeds, plan.file.embedders.get(str(one.entry.embedder_name))),
    ]
    said = [settings_of(plan.file, entry) for asked, entry in entries if asked and entry is not None]
    return " ".join((*said, prompt_digest(one.metric)))


def dry_evaluators(plan: Plan, rows: Rows) -> list[Evaluator]:
    """The plan's evaluators with a judge and an embedder that need no model: for what is to be expected of a run.

    Wrapped frameworks are left out: importing one takes seconds.
    """
    from ragparity_adapters.offline import OfflineJudge

    return [
        Evaluator(
            name=one.entry.name,
            metric=one.metric,
            judge=OfflineJudge() if one.judged else None,
            embedder=embeddings.HashingEmbedder() if one.embeds else None,
            policies=one.entry.policies,
            view=rows.view_of[one.entry.name],
        )
        for one in plan.evaluators
        if one.metric.backend == NATIVE
    ]


def without_price(plan: Plan, budget: Budget) -> str | None:
    """What is missing for a budget in money: the price of a judge, if it is not known."""
    for one in plan.evaluators:
        asked = one.judged and one.entry.llm_name != OFFLINE
        if budget.cost is not None and asked and one.price is None:
            where = f"eval.general.ragparity.judges.{one.entry.llm_name}.price"
            return f"budget: a limit of cost needs the price of every judge; set {where} (for {one.entry.name})"
    return None


def _judge(plan: Plan, session: Session, one: Planned, concurrency: int) -> Judge:
    name, said = str(one.entry.llm_name), one.entry.judge
    if name == OFFLINE:
        from ragparity_adapters.offline import OfflineJudge

        return OfflineJudge()
    if name not in session.endpoints:
        session.endpoints[name] = llms.build(spec_of(usable(plan.file, plan.file.llms[name])))
        session.closing.append(session.endpoints[name].aclose)
    if name not in session.lanes:
        session.lanes[name] = Lane(name, concurrency)
    settings = settings_of(plan.file, plan.file.llms[name]) if name in plan.file.llms else ""
    options = judge_options(said, one.metric.name)
    return bound_judge(
        session.endpoints[name], session.lanes[name], retries=said.retries, options=options,
        around=session.around, settings=settings, price=one.price,
    )  # fmt: skip


def bare_judge(session: Session, one: Planned, longest_s: float) -> Judge:
    """The judge of an evaluator without retries and cache; a reply is waited for `longest_s` at most."""
    from ragparity_adapters.langchain import JudgeOptions, LangChainJudge

    options = judge_options(one.entry.judge, one.metric.name)
    options["timeout_s"] = min(options["timeout_s"], longest_s)
    endpoint = session.endpoints[str(one.entry.llm_name)]
    return session.around.metered(LangChainJudge(endpoint, JudgeOptions(**options)), endpoint.name, one.price)


def bound_judge(
    endpoint: Endpoint, lane: Lane, *, retries: int, options: Mapping[str, Any], around: Around, settings: str = "",
    price: tuple[float, float] | None = None,
) -> Judge:  # fmt: skip
    """An endpoint under the options of one evaluator, behind its lane, with retries and what stands around them."""
    from ragparity_adapters.langchain import JudgeOptions, LangChainJudge

    judge = around.metered(LangChainJudge(endpoint, JudgeOptions(**options)), endpoint.name, price)
    return around.judge(Retrying(judge, lane, retries), settings)


def _embedder(plan: Plan, session: Session, one: Planned, concurrency: int) -> Embedder:
    name = str(one.entry.embedder_name)
    if name not in session.embedders:
        if name == OFFLINE:
            session.embedders[name] = embeddings.HashingEmbedder()
        else:
            entry = plan.file.embedders[name]
            made = embeddings.build(spec_of(usable(plan.file, entry)))
            session.closing.append(made.aclose)
            metered = session.around.metered_embedder(made, name, _embedding_price(plan, one))
            session.bare_embedders[name] = metered
            retrying = RetryingEmbedder(metered, Lane(name, concurrency), one.entry.judge.retries)
            session.embedders[name] = session.around.embedder(retrying, settings_of(plan.file, entry))
    return session.embedders[name]


# -- models that were made elsewhere


def judge_from(
    model: Any, concurrency: int, retries: int, options: Mapping[str, Any], around: Around
) -> tuple[Judge, Endpoint | None]:
    """A judge from a LangChain chat model, from `"offline"`, or from something that is a judge already.

    The endpoint is that of a chat model; whoever asked for it closes it.
    """
    if isinstance(model, str) and model == OFFLINE:
        from ragparity_adapters.offline import OfflineJudge

        return OfflineJudge(), None
    if callable(getattr(model, "ask", None)):
        return model if around.replies is None else around.judge(model), None
    if not hasattr(model, "ainvoke"):
        raise ConfigError(f'judge: expected a LangChain chat model or "offline", got {type(model).__name__}')
    endpoint = llms.from_model(model)
    settings = model_settings(llms.settings_on(model), ())
    judge = bound_judge(
        endpoint, Lane("judge", concurrency), retries=retries, options=options, around=around, settings=settings
    )
    return judge, endpoint


def embedder_from(model: Any, concurrency: int, retries: int, around: Around) -> Embedder:
    """An embedder from LangChain embeddings, from `"offline"`, or from something that is an embedder already."""
    if isinstance(model, str) and model == OFFLINE:
        return embeddings.HashingEmbedder()
    if callable(getattr(model, "embed", None)):
        return model if around.replies is None else around.embedder(model)
    if not hasattr(model, "aembed_documents"):
        raise ConfigError(f'embedder: expected LangChain embeddings or "offline", got {type(model).__name__}')
    made = RetryingEmbedder(embeddings.from_embeddings(model), Lane("embedder", concurrency), retries)
    return around.embedder(made, model_settings(llms.settings_on(model), ()))


def adopt_llm(session: Session, name: str, model: Any) -> None:
    """Take a LangChain chat model that was made elsewhere as the client of an llm entry; it is not closed here."""
    if not hasattr(model, "ainvoke"):
        raise ConfigError(f"llms.{name}: expected a LangChain chat model, got {type(model).__name__}")
    session.endpoints[name] = llms.from_model(model, name)


def adopt_embedder(session: Session, name: str, model: Any, *, concurrency: int, retries: int) -> None:
    """Take LangChain embeddings that were made elsewhere as the client of an embedder entry."""
    if not hasattr(model, "aembed_documents"):
        raise ConfigError(f"embedders.{name}: expected LangChain embeddings, got {type(model).__name__}")
    session.embedders[name] = RetryingEmbedder(
        embeddings.from_embeddings(model, name), Lane(name, concurrency), retries
    )


# -- provenance


def prompt_digest(metric: Metric) -> str:
    """A digest over every text that a metric can put into a question; of a wrapped framework, over its version."""
    if metric.backend == NATIVE:
        return wording.digest(type(metric))
    return hashlib.sha256(metric.version.encode()).hexdigest()[: wording.DIGITS]
