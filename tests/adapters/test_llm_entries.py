"""Llm and embedder entries: which client, which address, which key, which settings, over real HTTP where it matters."""

import asyncio
import ssl
import subprocess
import sys
import threading
from importlib.util import find_spec
from shutil import which

import pytest
from tests.fakeserver import FakeServer, server_error

from ragparity.core.errors import ConfigError, JudgeError, MissingExtra
from ragparity.core.ports import Question, Rating, Scale, Structured, Tally
from ragparity.core.prompt import Prompt
from ragparity_adapters import access, embeddings, llms, providers
from ragparity_adapters.langchain import LangChainJudge
from ragparity_adapters.llms import LlmSpec
from ragparity_adapters.schemas import rating_schema

SCALE = Scale((0, 2, 4))
NUMBER = Question(Prompt("Rate it.", data={"answer": "Oslo"}), Rating(SCALE), 8)
OBJECT = Question(Prompt("Judge it.", data={"answer": "Oslo"}), Structured(rating_schema(SCALE)), 100)
VARIABLES = (
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "NVIDIA_API_KEY", "NVIDIA_BASE_URL"),
    *("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_AD_TOKEN", "OPENAI_API_VERSION", "DYNAMO_API_KEY"),
)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def spec(type_="openai", **more):
    return LlmSpec(**{"name": "judge", "type": type_, "model_name": "m", **more})


def ask(entry, question=NUMBER):
    """The answer, and what was counted."""

    async def once():
        endpoint, tally = llms.build(entry), Tally()
        try:
            return await LangChainJudge(endpoint).ask(question, tally), tally
        finally:
            await endpoint.aclose()

    return asyncio.run(once())


def embed(entry, *texts):
    async def once():
        made = embeddings.build(entry)
        try:
            return await made.embed(texts, Tally())
        finally:
            await made.aclose()

    return asyncio.run(once())


def line_of(entry, check=llms.check):
    with pytest.raises(ConfigError) as caught:
        check(entry)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# -- Azure


def azure(server, **more):
    return spec("azure_openai", base_url=server.url, api_key="azure-key", azure_deployment="judge-1", **more)


def test_azure_is_asked_at_its_deployment_with_its_header_and_the_toolkits_api_version():
    with FakeServer(reply="4", personality="azure", api_key="azure-key") as server:
        answer, _ = ask(azure(server))
    request = server.requests[0]
    assert answer.value == 4
    assert request.deployment == "judge-1"
    assert "2025-04-01-preview" in request.query["api-version"]
    assert request.headers["api-key"] == "azure-key"
    assert request.body["max_completion_tokens"] == 8


def test_azure_gives_structured_answers():
    with FakeServer(reply={"reason": "as it says", "rating": 2}, personality="azure") as server:
        answer, _ = ask(azure(server), OBJECT)
    assert answer.value.rating == 2
    assert server.requests[0].body["response_format"]["type"] == "json_schema"


def test_an_azure_entry_may_name_the_deployment_or_the_model_and_another_api_version():
    with FakeServer(reply="4", personality="azure") as server:
        ask(
            spec(
                "azure_openai", base_url=server.url, api_key="k", model_name="only-a-name", options={"api_version": "1"}
            )
        )
    assert server.requests[0].deployment == "only-a-name"
    assert "1" in server.requests[0].query["api-version"]


def test_azure_does_not_retry_by_itself():
    with FakeServer(reply=lambda _: server_error(), personality="azure") as server:
        with pytest.raises(JudgeError):
            ask(azure(server))
        assert server.calls == 1


def test_azure_takes_address_and_key_from_its_own_variables_and_never_openais_key(monkeypatch):
    with FakeServer(reply="4", personality="azure") as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "from-the-environment")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
        monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
        ask(spec("azure_openai", model_name="m"))
    assert server.requests[0].headers["api-key"] == "from-the-environment"
    assert "sk-openai" not in str(server.requests[0].headers)


def test_an_azure_entry_without_key_or_address_is_named():
    assert line_of(spec("azure_openai", api_key="k")) == (
        "llms.judge: azure_endpoint is missing; set it there, or in the variable AZURE_OPENAI_ENDPOINT"
    )
    at = "https://me.openai.azure.com"
    assert "api_key is missing; set it there or in the variable AZURE_OPENAI_API_KEY" in line_of(
        spec("azure_openai", base_url=at)
    )
    llms.check(spec("azure_openai", base_url=at, options={"azure_ad_token": "t"}))


def test_azure_embeddings_go_to_their_deployment():
    with FakeServer(personality="azure", embeddings=4) as server:
        entry = spec("azure_openai", base_url=server.url, api_key="azure-key", azure_deployment="emb-1", model_name="e")
        vectors = embed(entry, "one", "two")
    assert [len(one) for one in vectors] == [4, 4]
    assert server.requests[0].deployment == "emb-1"
    assert server.requests[0].headers["api-key"] == "azure-key"


# -- keys


def test_a_key_from_the_environment_is_not_sent_to_another_host(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("NVIDIA_API_KEY", "nvapi-1")
    with FakeServer(reply="4", embeddings=4) as server:
        for type_ in ("openai", "nim"):
            ask(spec(type_, base_url=server.base_url))
            embed(spec(type_, base_url=server.base_url), "text")
        sent = [request.headers["authorization"] for request in server.requests]
    assert sent == ["Bearer none"] * 4


def test_a_key_in_the_entry_goes_wherever_the_entry_says():
    with FakeServer(reply="4", api_key="of-the-entry", embeddings=4) as server:
        assert ask(spec(base_url=server.base_url, api_key="of-the-entry"))[0].value == 4
        assert len(embed(spec(base_url=server.base_url, api_key="of-the-entry"), "text")) == 1


def test_address_and_key_of_one_environment_belong_together(monkeypatch):
    with FakeServer(reply="4", api_key="sk-gateway") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-gateway")
        assert ask(spec())[0].value == 4
        assert llms.identity(spec()) == f"openai/m at {server.base_url}"
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert llms.identity(spec()) == "openai/m"


@pytest.mark.parametrize(
    ("type_", "url", "sent"),
    [
        ("openai", None, True),
        ("openai", "https://eu.api.openai.com/v1", True),
        ("openai", "https://api.openai.com.evil.example/v1", False),
        ("openai", "https://evilapi.openai.com/v1", False),
        ("openai", "https://api.openai.com@evil.example/v1", False),
        ("nim", "https://integrate.api.nvidia.com/v1", True),
        ("nim", "https://nvidia.com.example/v1", False),
        ("azure_openai", "https://me.openai.azure.com", True),
        ("azure_openai", "https://azure.com.example", False),
    ],
)
def test_a_providers_own_hosts_are_told_from_those_that_look_alike(monkeypatch, type_, url, sent):
    monkeypatch.setenv(access.RULES[type_].key_variable, "secret")
    assert access.key_of(type_, url, None) == ("secret" if sent else None)


def test_the_user_is_told_that_a_key_was_not_sent_unless_the_server_is_on_this_machine(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    said = llms.build(spec(base_url="https://gateway.example/v1")).findings.said
    (line,) = said
    assert line.startswith("judge: the variable OPENAI_API_KEY is not sent to gateway.example; ")
    assert line.endswith("write api_key: ${OPENAI_API_KEY}")
    assert llms.build(spec(base_url="http://localhost:8000/v1")).findings.said == []


def test_openais_key_does_not_go_to_nvidia(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    assert line_of(spec("nim")) == "llms.judge: api_key is missing; set it there or in the variable NVIDIA_API_KEY"


def test_keys_and_addresses_do_not_show_in_a_repr():
    assert "secret" not in repr(spec(api_key="secret", base_url="http://me:secret@h/v1", options={"k": "secret"}))


# -- settings of the toolkit


def test_certificates_are_checked_unless_the_entry_says_otherwise(tmp_path):
    if which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [which("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    with FakeServer(reply="4", embeddings=4) as inner, _tls_in_front_of(inner.port, certificate, key) as port:
        url = f"https://localhost:{port}/v1"
        with pytest.raises(JudgeError):
            ask(spec(base_url=url))
        assert inner.calls == 0
        assert ask(spec(base_url=url, verify_ssl=False))[0].value == 4
        with pytest.raises(JudgeError):
            embed(spec(base_url=url), "text")
        assert len(embed(spec(base_url=url, verify_ssl=False), "text")) == 1


class _tls_in_front_of:  # noqa: N801  # a context manager that reads like one
    """A TLS listener that passes bytes on to a local port."""

    def __init__(self, port, certificate, key):
        self.to = port
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)

    def __enter__(self):
        ready = threading.Event()
        self.loop = asyncio.new_event_loop()

        async def passed_on(reader, writer):
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.to)

            async def copy(source, target):
                try:
                    while data := await source.read(65536):
                        target.write(data)
                        await target.drain()
                except OSError:
                    pass
                finally:
                    target.close()

            await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

        async def serve():
            self.server = await asyncio.start_server(passed_on, "127.0.0.1", 0, ssl=self.context)
            self.port = self.server.sockets[0].getsockname()[1]
            self.stop = asyncio.Event()
            ready.set()
            await self.stop.wait()
            self.server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0.05)

        self.thread = threading.Thread(target=lambda: self.loop.run_until_complete(serve()), daemon=True)
        self.thread.start()
        ready.wait(5)
        return self.port

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(5)
        self.loop.close()


@pytest.mark.parametrize(
    ("model", "thinking", "line"),
    [
        ("nvidia/nvidia-nemotron-nano-9b-v2", False, "/no_think"),
        ("nvidia/llama-3.3-nemotron-super-49b-v1", False, "detailed thinking off"),
        ("nvidia/llama-3.3-nemotron-super-49b-v1.5", True, "/think"),
    ],
)
def test_thinking_is_switched_in_the_system_message_of_every_question(model, thinking, line):
    entry = {"model_name": model, "thinking": thinking}
    with FakeServer(personality="nim", reply="4") as server:
        ask(spec("nim", base_url=server.base_url, **entry))
        verbatim = Question(Prompt.verbatim("Rate this text."), Rating(SCALE), 8)
        ask(spec("nim", base_url=server.base_url, **entry), verbatim)
    first, second = server.requests
    assert first.system.splitlines()[-1] == line
    assert second.system.splitlines()[-1] == line
    assert second.user == "Rate this text."
    assert f"thinking={thinking}" in llms.identity(spec("nim", **entry))


def test_a_model_that_is_told_to_think_gets_room_for_it_from_the_start():
    entry = spec("nim", base_url="http://localhost/v1", model_name="nvidia/nvidia-nemotron-nano-9b-v2", thinking=True)
    assert llms.build(entry).findings.thinks


def test_a_thinking_switch_that_could_not_work_is_refused():
    assert line_of(spec("openai", api_key="k", thinking=False)) == (
        "llms.judge.thinking: a switch is known for Nemotron models alone (nvidia/…nemotron…), not for m; leave it out, "
        "and say what its server takes, e.g. chat_template_kwargs: {enable_thinking: false}"
    )


def test_the_responses_api_is_refused_in_one_line():
    assert "chat completions" in line_of(spec(api_key="k", api_type="responses"))
    llms.check(spec(api_key="k", api_type="chat_completion"))


def test_the_entrys_own_time_out_and_retries_are_not_the_clients():
    options = {"request_timeout": 0.001, "max_retries": 7, "temperature": 0}
    with FakeServer(reply="4", latency=0.05) as server:
        assert ask(spec(base_url=server.base_url, options=options))[0].value == 4
        assert server.requests[0].body["temperature"] == 0
    assert llms.build(spec(base_url=server.base_url, options=options)).findings.said == [
        "judge: the entry's time-out is not used; judge.timeout_s bounds each call"
    ]


def test_keys_that_the_client_does_not_know_go_into_the_body():
    with FakeServer(reply="4", personality="nim") as server:
        ask(spec("nim", base_url=server.base_url, options={"chat_template_kwargs": {"enable_thinking": False}}))
    assert server.requests[0].body["chat_template_kwargs"] == {"enable_thinking": False}


def test_nim_embeddings_say_what_the_text_is_and_pass_unknown_keys_in_the_body():
    with FakeServer(embeddings=4) as server:
        embed(spec("nim", base_url=server.base_url, options={"truncate": "END"}), "text")
    assert (server.requests[0].body["input_type"], server.requests[0].body["truncate"]) == ("passage", "END")


def test_dynamos_routing_hints_stay_at_home():
    hints = {"enable_nvext_hints": True, "nvext_prefix_osl": 512, "prefix_template": "x", "temperature": 0}
    with FakeServer(reply="4") as server:
        ask(spec("dynamo", base_url=server.base_url, options=hints))
    assert set(server.requests[0].body) == {"model", "messages", "temperature", "max_tokens"}


# -- packages of their own


@pytest.mark.parametrize(("type_", "provider"), providers.LLMS.items())
def test_a_provider_whose_package_is_absent_is_named_with_its_install_line(type_, provider):
    if _is_there(provider.package):
        pytest.skip(f"{provider.package} is installed")
    with pytest.raises(MissingExtra) as caught:
        llms.check(spec(type_))
    assert str(caught.value).startswith(f"llms.judge._type: {type_} needs the package {provider.package}: pip install ")


def test_what_can_be_built_here_is_known_without_building_it():
    assert llms.can_build("azure_openai") and embeddings.can_build("azure_openai")
    assert not llms.can_build("nothing") and not embeddings.can_build("nothing")
    assert llms.can_build("oci") is _is_there("langchain_oci")
    assert embeddings.can_build("huggingface") is _is_there("langchain_huggingface")


def test_the_extra_of_litellm_is_named():
    assert providers.LLMS["litellm"].install == "pip install 'ragparity[litellm]'"


@pytest.mark.parametrize("type_", providers.EMBEDDERS)
def test_an_embedder_whose_package_is_absent_is_named_with_its_install_line(type_):
    if _is_there(providers.EMBEDDERS[type_].package):
        pytest.skip("it is installed")
    with pytest.raises(MissingExtra, match="pip install"):
        embeddings.check(spec(type_))


def _is_there(package):
    return find_spec(package) is not None


class _Recorder:
    """Stands for a package: its classes remember their arguments."""

    def __init__(self, *fields):
        self.fields = fields

    def __getattr__(self, name):
        made = type(name, (), {"model_fields": dict.fromkeys(self.fields, _Field())})

        def init(one, **arguments):
            one.arguments = arguments

        made.__init__ = init
        made.from_model_id = classmethod(lambda cls, **arguments: cls(**arguments))
        return made


class _Field:
    alias = None


@pytest.mark.parametrize(
    ("type_", "options", "expected"),
    [
        (
            "aws_bedrock",
            {"region_name": "None", "context_size": 1024, "temperature": 0.0},
            {"model": "m", "max_retries": 0, "temperature": 0.0},
        ),
        (
            "oci",
            {"region": "eu-frankfurt-1", "compartment_id": "c", "temperature": 0.0, "context_size": 9},
            {
                "model_id": "m",
                "compartment_id": "c",
                "service_endpoint": "https://inference.generativeai.eu-frankfurt-1.oci.oraclecloud.com",
                "model_kwargs": {"temperature": 0.0},
            },
        ),
    ],
)
def test_the_toolkits_keys_become_the_arguments_of_the_class(type_, options, expected):
    package = _Recorder("compartment_id", "temperature", "model_kwargs")
    assert providers.LLMS[type_].make(package, spec(type_, options=options)).arguments == expected


def test_litellm_gets_no_key_for_an_address_of_the_entrys_own():
    made = providers.LLMS["litellm"].make(
        _Recorder("temperature", "model_kwargs"), spec("litellm", base_url="http://h")
    )
    assert made.arguments["api_key"] == "none"
    assert made.arguments["api_base"] == "http://h"
    assert made.arguments["model_kwargs"] == {"max_retries": 0}


def test_hugging_face_entries_become_a_chat_model_over_an_endpoint_or_a_pipeline():
    entry = spec("huggingface_inference", api_key="hf", options={"max_new_tokens": 8, "timeout": 9.0})
    remote = providers.LLMS["huggingface_inference"].make(_Recorder(), entry).arguments["llm"].arguments
    assert remote == {
        "task": "text-generation",
        "repo_id": "m",
        "huggingfacehub_api_token": "hf",
        "max_new_tokens": 8,
    }
    local = providers.LLMS["huggingface"].make(_Recorder(), spec("huggingface", options={"temperature": 0.0}))
    assert local.arguments["llm"].arguments["pipeline_kwargs"] == {"do_sample": False}


def test_an_unknown_type_is_refused_with_the_known_ones():
    line = line_of(spec("opnai"))
    assert "known are openai, nim, azure_openai" in line and "Did you mean openai?" in line
    assert "Did you mean azure_openai?" in line_of(spec("azure_openi"), embeddings.check)


def test_verify_ssl_is_refused_where_it_could_not_take_effect():
    entry = spec("langchain", verify_ssl=False, options={"class": "langchain_openai.ChatOpenAI", "kwargs": {}})
    assert "say it in kwargs" in line_of(entry)


def test_building_an_entry_does_not_import_what_it_does_not_need():
    code = (
        "import sys\nfrom ragparity_adapters import llms\n"
        "llms.check(llms.LlmSpec(name='j', type='openai', model_name='m', api_key='k'))\n"
        "sys.exit('langchain_openai' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
