"""A small workflow for the toolkit, a retriever and an agent that asks it, and a provider of models."""

from collections.abc import AsyncIterator

from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import ConfigurableField
from nat.builder.builder import Builder
from nat.builder.framework_enum import LLMFrameworkEnum
from nat.builder.function_info import FunctionInfo
from nat.builder.llm import LLMProviderInfo
from nat.cli.register_workflow import register_function, register_llm_client, register_llm_provider
from nat.data_models.evaluator import EvalInputItem
from nat.data_models.function import FunctionBaseConfig
from nat.data_models.llm import LLMBaseConfig
from nat.retriever.models import Document, RetrieverOutput

PASSAGES = {
    "port": [("d1", "The Heron gateway listens on TCP port 7443."), ("d2", "Heron ships with a dark theme.")],
    "size": [("d3", "It is two metres long.")],
}


class RetrieverConfig(FunctionBaseConfig, name="heron_retriever"):
    pass


class PoetConfig(FunctionBaseConfig, name="heron_poet"):
    llm_name: str = "poet"


class AgentConfig(FunctionBaseConfig, name="heron_agent"):
    asks: str = "heron_retriever"
    answer: str = "Heron listens on port 7443."
    fails: bool = False


@register_function(config_type=RetrieverConfig, framework_wrappers=[LLMFrameworkEnum.LANGCHAIN])
async def retriever(config: RetrieverConfig, builder: Builder) -> AsyncIterator[FunctionInfo]:
    async def look_up(query: str) -> RetrieverOutput:
        found = PASSAGES["port" if "port" in query else "size"]
        return RetrieverOutput(
            results=[Document(page_content=text, metadata={"source": "manual"}, document_id=one) for one, text in found]
        )

    yield FunctionInfo.from_fn(look_up, description="Looks passages up.")


@register_function(config_type=PoetConfig)
async def poet(config: PoetConfig, builder: Builder) -> AsyncIterator[FunctionInfo]:
    async def write(question: str) -> str:
        return "Heron listens on port 7443, o muse."

    yield FunctionInfo.from_fn(write, description="Writes, as if a model did.")


@register_function(config_type=AgentConfig)
async def agent(config: AgentConfig, builder: Builder) -> AsyncIterator[FunctionInfo]:
    look_up = await builder.get_function(config.asks)

    async def answer(question: str) -> str:
        if config.fails:
            raise RuntimeError("the agent is out of order")
        await look_up.ainvoke(question)
        return config.answer

    yield FunctionInfo.from_fn(answer, description="Answers.")


class HouseConfig(LLMBaseConfig, name="house_llm"):
    said: str


@register_llm_provider(config_type=HouseConfig)
async def house_llm(config: HouseConfig, _builder: Builder) -> AsyncIterator[LLMProviderInfo]:
    yield LLMProviderInfo(config=config, description="A model of the house.")


@register_llm_client(config_type=HouseConfig, wrapper_type=LLMFrameworkEnum.LANGCHAIN)
async def house_client(config: HouseConfig, _builder: Builder) -> AsyncIterator[object]:
    model = FakeListChatModel(responses=[config.said])
    yield model.configurable_fields(sleep=ConfigurableField(id="sleep"))  # as the toolkit wraps its own clients


class BareConfig(LLMBaseConfig, name="bare_llm"):
    pass


@register_llm_provider(config_type=BareConfig)
async def bare_llm(config: BareConfig, _builder: Builder) -> AsyncIterator[LLMProviderInfo]:
    yield LLMProviderInfo(config=config, description="A provider for which no framework has a client here.")


def without_quotes(item: EvalInputItem) -> EvalInputItem:
    """What a user may have the toolkit do to every item before it is scored."""
    item.output_obj = item.output_obj.strip('"')
    return item
