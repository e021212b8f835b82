"""An OpenAI-compatible HTTP server for tests and benchmarks. Standard library only, one thread, one loop.

::

    with FakeServer(reply=lambda request: "4", latency=0.1, personality="openai-reasoning") as server:
        ...  # a client with base_url=server.base_url
    assert server.max_in_flight <= 8

`POST …/chat/completions` and `…/embeddings` under `/v1`, `/openai/v1` and Azure's
`/openai/deployments/NAME`, and `GET …/models`. Any other path is recorded and answered with 404.
`tests/personalities.py` holds the kinds of server, `tests/fakebrain.py` what is said without a `reply`,
`tests/fakewire.py` requests and replies. As a process of its own (for benchmarks; `ServerProcess` starts one)::

    python tests/fakeserver.py --port 0 --latency 0.1 --personality openai

prints its base_url as the first line; `GET /stats` there tells the counters.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import json
import re
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import Future
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

if __name__ == "__main__":  # started as a script: make the sibling modules importable by their usual names
    package = ModuleType("tests")
    package.__path__ = [str(Path(__file__).parent)]
    sys.modules["tests"] = package

from tests.fakebrain import default_reply
from tests.fakehttp import Answer, Connection
from tests.fakewire import (
    Reply,
    Request,
    bad_request,
    content_filtered,
    context_too_long,
    count_prompt,
    count_tokens,
    encoded,
    error_body,
    events,
    failure,
    forbidden,
    hash_vector,
    model_not_found,
    quota_exhausted,
    rate_limited,
    refused,
    server_error,
    split,
    text_of,
    unauthorized,
)
from tests.personalities import PERSONALITIES, Personality, azure_refusal, completion, like, refusal_of

__all__ = [
    "PERSONALITIES",
    "FakeServer",
    "Personality",
    "Reply",
    "Request",
    "ServerProcess",
    "bad_request",
    "content_filtered",
    "context_too_long",
    "count_prompt",
    "count_tokens",
    "failure",
    "forbidden",
    "hash_vector",
    "like",
    "model_not_found",
    "quota_exhausted",
    "rate_limited",
    "refused",
    "server_error",
    "stats_of",
    "unauthorized",
]

ROUTE = re.compile(r"/(?:openai/)?v1/(\w+(?:/\w+)*)|/openai/deployments/([^/]+)/(\w+(?:/\w+)*)")
KEEP: Any = object()
SCHEMA_KEYS = ("response_format", "tools", "nvext", "guided_json", "structured_outputs")
COUNTERS = (
    "calls",
    "embedding_calls",
    "served",
    "max_in_flight",
    "prompt_characters",
    "schema_characters",
    "completion_characters",
    "active_s",
)


def said_characters(choice: dict[str, Any]) -> int:
    """The length of what one choice of a completion says, arguments of tools included."""
    message = choice["message"]
    calls = message.get("tool_calls") or ()
    return len(message["content"] or "") + sum(len(one["function"]["arguments"]) for one in calls)


def stats_of(base_url: str) -> dict[str, Any]:
    """The counters of the server at this address."""
    with urllib.request.urlopen(base_url.removesuffix("/v1") + "/stats") as response:  # noqa: S310  # loopback
        return json.load(response)


class FakeServer:
    """The server; a context manager. `reply` is the model's brain, the personality its server.

    `reply`: a function of the `Request`, an iterable of replies consumed in order, or one constant reply. A
    reply is a `Reply`, text, a dict or list (sent as JSON), or `None` for the default of `fakebrain`; an
    iterable may hold functions too. The brain is asked once per chat request that the personality accepts,
    in order of arrival and on the server's thread (so it may count without locks, and must not block:
    a `Reply` has `latency`). What it raises is answered with 500 and raised again when the block ends, so an
    `assert` in it works; a sequence that has run out is answered with 400 and raised likewise.

    `latency`: seconds before each reply, or a function of the request. `parallel`: this many requests are
    worked on at a time, others wait. `models`: the models there are (`None`: every name is answered).
    `api_key`: the only key accepted. `embeddings`: the dimension of `hash_vector`, or a function from a text
    to a vector (or to a `Reply`, which is then the whole answer). `record=False` keeps counters only.
    `**quirks` change single fields of the personality.

    `requests` are all requests in order of arrival; `calls` and `embedding_calls` count those to the two
    endpoints, rejected ones included; `max_in_flight` is the most that were handled at the same time.
    `prompt_characters` are those of all chat messages, `schema_characters` those of the schemas and tools beside
    them (as JSON), `completion_characters` those of all that was said, `active_s` the seconds from the arrival of
    the first request to the end of the last answer.
    """

    def __init__(
        self,
        reply: Any = None,
        *,
        latency: float | Callable[[Request], float] = 0.0,
        personality: str | Personality = "openai",
        models: Sequence[str] | None = None,
        api_key: str | None = None,
        embeddings: int | Callable[[str], Any] = 64,
        parallel: int | None = None,
        port: int = 0,
        record: bool = True,
        **quirks: Any,
    ) -> None:
        self.personality = like(personality, **quirks)
        self.latency = latency or self.personality.latency
        self.models = models
        self.api_key = api_key
        self.embeddings = embeddings
        self.port = port
        self.record = record
        self.connections: set[Connection] = set()
        self.parallel = parallel
        self.turns: asyncio.Semaphore | None = None
        self.in_flight = 0
        self.served = 0
        self.reset(reply)
        self._thread: threading.Thread | None = None

    def reset(self, reply: Any = KEEP) -> None:
        """Forget requests, counters and problems; with a new `reply`, start it. Open requests go on."""
        self.requests: list[Request] = []
        self.calls = self.embedding_calls = 0
        self.prompt_characters = self.schema_characters = self.completion_characters = 0
        self.max_in_flight = self.in_flight
        self._first_arrival = self._last_answer = 0.0
        self.problems: list[BaseException] = []
        if reply is not KEEP:
            self.reply = reply

    @property
    def reply(self) -> Any:
        """The model's brain; may be set while the server runs."""
        return self._reply

    @reply.setter
    def reply(self, reply: Any) -> None:
        self._reply = reply
        constant = reply is None or callable(reply) or isinstance(reply, Reply | str | dict)
        self._replies = itertools.repeat(reply) if constant else iter(reply)

    @property
    def url(self) -> str:
        """The root, which Azure clients call the endpoint."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    # --- life --------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        ready: Future[int] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        self.port = ready.result()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        if kind is None and self.problems:
            raise self.problems[0]

    async def _serve(self, ready: Future[int]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.turns = asyncio.Semaphore(self.parallel) if self.parallel else None
        try:
            self._listener = await self._loop.create_server(
                lambda: Connection(self), "127.0.0.1", self.port, backlog=1024
            )
        except OSError as problem:
            ready.set_exception(problem)
            return
        ready.set_result(self._listener.sockets[0].getsockname()[1])
        await self._stop.wait()
        self._listener.close()
        for _ in range(3):  # what was accepted just now is a connection one round later
            for connection in list(self.connections):
                connection.transport.abort()
            await asyncio.sleep(0)  # connections learn that they are lost, and cancel what they work on

    # --- requests ----------------------------------------------------------------------------------

    def begin(self, request: Request) -> Answer | None:
        """Record a request and decide its answer; `None` resets the connection."""
        if request.path == "/stats":
            self.in_flight += 1
            return self._json(self.stats())
        dies_after = self.personality.dies_after
        if dies_after is not None and self.served >= dies_after:
            self._listener.close()
            self.in_flight += 1
            return None
        self.served += 1
        self._first_arrival = self._first_arrival or request.arrived
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        request.in_flight = self.in_flight
        if self.record:
            self.requests.append(request)
        try:
            return self._answer(request)
        except Exception as problem:  # noqa: BLE001  # a brain may raise anything; the test's block raises it again
            self.problems.append(problem)
            error = failure(500, error_body(f"the brain raised {problem!r}", "server_error"))
            return self._send(request, replace(error, latency=0.0))

    def end(self, request: Request, status: int | None) -> None:
        """A request is over."""
        self.in_flight -= 1
        request.status, request.answered = status, time.monotonic()
        if request.path != "/stats":
            self._last_answer = request.answered

    @property
    def active_s(self) -> float:
        return max(0.0, self._last_answer - self._first_arrival)

    def stats(self) -> dict[str, Any]:
        """The counters."""
        return {name: getattr(self, name) for name in COUNTERS}

    def _answer(self, request: Request) -> Answer:
        match = ROUTE.fullmatch(request.path)
        endpoint = (match[1] or match[3]) if match else ""
        request.deployment = (match[2] if match else None) or ""
        if (request.method, endpoint) not in {
            ("POST", "chat/completions"),
            ("POST", "embeddings"),
            ("GET", "models"),
        }:
            message = f"Invalid URL ({request.method} {request.path})"
            return self._send(request, failure(404, error_body(message, "invalid_request_error")))
        if endpoint == "chat/completions":
            request.index, self.calls = self.calls, self.calls + 1
        elif endpoint == "embeddings":
            request.index, self.embedding_calls = self.embedding_calls, self.embedding_calls + 1
        try:
            body = json.loads(request.raw) if request.raw else {}
        except ValueError:
            body = None
        if not isinstance(body, dict):
            return self._send(request, bad_request(message="We could not parse the JSON body of your request."))
        request.body = body
        if endpoint == "chat/completions":
            self.prompt_characters += sum(len(text_of(one.get("content"))) for one in request.messages)
            self.schema_characters += sum(len(json.dumps(body[key])) for key in SCHEMA_KEYS if body.get(key))
        if error := self._no_access(request, endpoint):
            return self._send(request, error)
        if endpoint == "models":
            return self._json(self._model_list())
        if endpoint == "embeddings":
            return self._embed(request)
        if error := refusal_of(request, self.personality):
            return self._send(request, error)
        return self._send(request, self._say(request))

    def _no_access(self, request: Request, endpoint: str) -> Reply | None:
        if self.personality.azure and (error := azure_refusal(request)):
            return error
        key = request.headers.get("api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.api_key is not None and key != self.api_key:
            return unauthorized()
        wanted = request.deployment or request.model
        if self.models is not None and endpoint != "models" and wanted not in self.models:
            if request.deployment:
                message = "The API deployment for this resource does not exist."
                return failure(404, {"error": {"code": "DeploymentNotFound", "message": message}})
            return model_not_found(wanted)
        return None

    def _model_list(self) -> dict[str, Any]:
        names = self.models or ["fake-model"]
        models = [{"id": name, "object": "model", "created": 0, "owned_by": self.personality.name} for name in names]
        return {"object": "list", "data": models}

    def _say(self, request: Request) -> Reply:
        """What the model says to a request."""
        said = next(self._replies, KEEP)
        if said is KEEP:
            message = f"the reply sequence has run out at request {request.index}"
            self.problems.append(RuntimeError(message))
            return bad_request(message=message)
        if callable(said):
            said = said(request)
        if said is None:
            return default_reply(request)
        return said if isinstance(said, Reply) else Reply(content=said)

    def _embed(self, request: Request) -> Answer:
        given = request.body.get("input")
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
            message = "'input' must be a text or a list of texts, none of them empty; token ids are not accepted."
            return self._send(request, bad_request(message=message, param="input"))
        if len(texts) > self.personality.embedding_batch:
            message = f"'input' may hold at most {self.personality.embedding_batch} texts, got {len(texts)}."
            return self._send(request, bad_request(message=message, param="input"))
        vectors = []
        for text in texts:
            if callable(self.embeddings):
                vector = self.embeddings(text)
                if isinstance(vector, Reply):
                    return self._send(request, vector)
            else:
                vector = hash_vector(text, request.body.get("dimensions") or self.embeddings)
            vectors.append(vector)
        if request.body.get("encoding_format") == "base64":
            vectors = [base64.b64encode(struct.pack(f"<{len(one)}f", *one)).decode() for one in vectors]
        data = [{"object": "embedding", "index": index, "embedding": one} for index, one in enumerate(vectors)]
        body: dict[str, Any] = {"object": "list", "data": data, "model": request.model}
        if self.personality.usage != "none":
            tokens = sum(map(count_prompt, texts))
            body["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
        return self._send(request, Reply(body=encoded(body)))

    # --- answers -----------------------------------------------------------------------------------

    def _json(self, body: Any) -> Answer:
        return Answer(Reply(), {"content-type": "application/json"}, (encoded(body),), 0.0)

    def _send(self, request: Request, reply: Reply) -> Answer:
        """The reply as bytes, with its headers and its delay."""
        identifier = f"chatcmpl-{request.echo or request.index}"
        headers = {"content-type": "application/json", "x-request-id": request.echo or identifier}
        pieces: tuple[bytes, ...]
        if reply.body is not None:
            pieces = split(reply.body, len(reply.chunk_delays))
        elif reply.status != HTTPStatus.OK:
            pieces = (encoded(error_body(str(reply.content), "server_error")),)
        else:
            body = completion(request, reply, self.personality, identifier)
            self.completion_characters += sum(map(said_characters, body["choices"]))
            if request.body.get("stream"):
                headers["content-type"] = "text/event-stream"
                pieces = events(body, request)
            else:
                pieces = split(encoded(body), len(reply.chunk_delays))
        latency = reply.latency
        if latency is None:
            latency = self.latency(request) if callable(self.latency) else self.latency
        return Answer(reply, {**headers, **reply.headers}, pieces, latency)


# --- a process of its own -----------------------------------------------------------------------------


class ServerProcess:
    """The same server in another process, so that it does not share the interpreter with a benchmark.

    Options are those of the command line (`latency=0.1, personality="nim", reply="4", parallel=4,
    dimension=64`), `quirks` a dict. It ends with the block, or with this process.
    """

    def __init__(self, *, quirks: dict[str, Any] | None = None, **options: Any) -> None:
        self.command = [sys.executable, __file__, "--until-eof"]
        for name, value in options.items():
            self.command += [f"--{name}", str(value)]
        for name, value in (quirks or {}).items():
            self.command += ["--quirk", f"{name}={json.dumps(value)}"]

    def __enter__(self) -> Self:
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.base_url = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *error: object) -> None:
        self.process.communicate(timeout=10)

    def stats(self) -> dict[str, Any]:
        """The counters of the server."""
        return stats_of(self.base_url)


def main(arguments: Iterable[str] | None = None) -> None:
    """The command line: run until interrupted."""
    parser = argparse.ArgumentParser(description="An OpenAI-compatible server that invents its answers.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each reply")
    parser.add_argument("--personality", choices=PERSONALITIES, default="openai")
    parser.add_argument("--reply", help="the text of every reply; otherwise one that fits the request")
    parser.add_argument("--parallel", type=int, help="requests worked on at a time")
    parser.add_argument("--dimension", type=int, default=64, help="of the embeddings")
    parser.add_argument("--quirk", action="append", default=[], metavar="NAME=JSON", help="a field of the personality")
    parser.add_argument("--until-eof", action="store_true", help="end with the standard input")
    chosen = parser.parse_args(None if arguments is None else list(arguments))
    quirks = {name: json.loads(value) for name, _, value in (quirk.partition("=") for quirk in chosen.quirk)}
    server = FakeServer(
        chosen.reply,
        latency=chosen.latency,
        personality=chosen.personality,
        parallel=chosen.parallel,
        port=chosen.port,
        embeddings=chosen.dimension,
        record=False,
        **quirks,
    )
    with server:
        print(server.base_url, flush=True)  # noqa: T201  # the caller reads it
        try:
            if chosen.until_eof:
                sys.stdin.read()
            else:
                threading.Event().wait()
        except KeyboardInterrupt:
            return


if __name__ == "__main__":
    main()
