"""The HTTP/1.1 half of the fake server: one `Connection` per client, keep-alive, delays and accidents.

An asyncio protocol rather than streams: a reply without delay is then written without a task switch.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

from tests.fakewire import Reply, Request

PHRASES = {status.value: status.phrase for status in HTTPStatus}
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes out for one request, `latency` seconds after its turn has come.

    `headers` and the concatenated `pieces` are the response; each piece waits for its delay in
    `reply.chunk_delays`, of which there may be fewer.
    """

    reply: Reply
    headers: dict[str, str]
    pieces: tuple[bytes, ...]
    latency: float

    @property
    def at_once(self) -> bool:
        return not (self.latency or self.reply.hang or self.reply.chunk_delays)

    @property
    def status(self) -> int | None:
        """The status that the client gets; `None` where the connection is cut."""
        return self.reply.status if self.reply.drop is None else None

    def closes(self, request: Request) -> bool:
        """The client wants no further answers on this connection."""
        return request.headers["connection"].lower() == "close"

    def head(self, request: Request) -> bytes:
        status, size = self.reply.status, sum(map(len, self.pieces))
        lines = [f"HTTP/1.1 {status} {PHRASES.get(status, '')}", f"content-length: {size}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.closes(request):
            lines.append("connection: close")
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")

    def whole(self, request: Request) -> bytes:
        """Head and body, or head and half of the body."""
        body = b"".join(self.pieces)
        return self.head(request) + (body[: len(body) // 2] if self.reply.drop == "half" else body)


class App(Protocol):
    """What a connection needs to know of the server. All of it is used on the server's thread."""

    connections: set[Connection]
    turns: contextlib.AbstractAsyncContextManager[Any] | None

    def begin(self, request: Request) -> Answer | None:
        """Take a request in; `None` means the connection is reset."""

    def end(self, request: Request, status: int | None) -> None:
        """The request is over; `status` is `None` where nothing complete was sent."""


class Connection(asyncio.Protocol):
    """One client. Requests on it are answered one after the other."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.buffer = bytearray()
        self.transport: Any = None
        self.task: asyncio.Task[None] | None = None
        self.closing = False
        self.continued = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.app.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """A server notices that its client has gone and stops working for it."""
        self.app.connections.discard(self)
        self.closing = True
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        self.advance()

    def advance(self) -> None:
        """Handle what has arrived completely, unless a request is being worked on."""
        while self.task is None and not self.closing:
            request = self.next_request()
            if request is None:
                return
            self.handle(request)

    def next_request(self) -> Request | None:
        """The next complete request in the buffer."""
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        first, *lines = self.buffer[:end].decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        words, length = first.split(" "), headers.get("content-length", "0")
        if len(words) != 3 or not length.isdigit() or "transfer-encoding" in headers:
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self.close()
            return None
        stop = end + 4 + int(length)
        if len(self.buffer) < stop:
            if headers.get("expect", "").lower() == "100-continue" and not self.continued:
                self.continued = True
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return None
        raw = bytes(self.buffer[end + 4 : stop])
        del self.buffer[:stop]
        self.continued = False
        method, target, version = words
        path, _, query = target.partition("?")
        headers.setdefault("connection", "close" if version == "HTTP/1.0" else "keep-alive")
        return Request(method, unquote(path), dict(parse_qsl(query)), headers, raw)

    def handle(self, request: Request) -> None:
        answer = self.app.begin(request)
        if answer is None:
            self.app.end(request, None)
            self.reset()
        elif answer.at_once and self.app.turns is None:
            self.finish(request, answer, answer.whole(request))
        else:
            self.task = asyncio.get_running_loop().create_task(self.send_later(request, answer))

    def finish(self, request: Request, answer: Answer, rest: bytes) -> None:
        """Write the rest of an answer, or have the accident instead.

        The request counts as over before the last byte leaves, so that a client that has its answer finds the
        counters settled.
        """
        self.app.end(request, answer.status)
        if answer.reply.drop == "before":
            self.reset()
            return
        self.transport.write(rest)
        if answer.reply.drop == "half" or answer.closes(request):
            self.close()

    async def send_later(self, request: Request, answer: Answer) -> None:
        over = False
        try:
            async with self.app.turns or contextlib.nullcontext():
                await asyncio.sleep(answer.latency)
                if answer.reply.hang:
                    await asyncio.get_running_loop().create_future()
                rest = answer.whole(request)
                if answer.reply.chunk_delays and answer.reply.drop is None:
                    rest = await self.trickle(request, answer)
                over = True
                self.finish(request, answer, rest)
        finally:
            if not over:
                self.app.end(request, None)
            self.task = None
        self.advance()

    async def trickle(self, request: Request, answer: Answer) -> bytes:
        """Write the answer piece by piece; the last piece is given back when its time has come."""
        self.transport.write(answer.head(request))
        delays = answer.reply.chunk_delays
        for number, piece in enumerate(answer.pieces):
            await asyncio.sleep(delays[number] if number < len(delays) else 0)
            if number == len(answer.pieces) - 1:
                return piece
            self.transport.write(piece)
        return b""

    def close(self) -> None:
        """Hang up after what was written."""
        self.closing = True
        self.transport.close()

    def reset(self) -> None:
        """Hang up at once, in a way that the client sees as a reset."""
        self.closing = True
        raw = self.transport.get_extra_info("socket")
        if raw is not None and raw.fileno() >= 0:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.transport.abort()
