"""Requests per second that the fake server carries, so that it is known not to be the bottleneck.

Run `python -m tests.benchmarks.bench_fakeserver` in the project folder. The client is as thin as can be
(fixed bytes over asyncio streams), the server a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import time
from urllib.parse import urlsplit

from tests.fakeserver import ServerProcess

SECONDS = 3.0
PASSAGE = "The tower was finished in 1889 and is 330 metres tall. " * 40
QUESTION = {
    "model": "fake-model",
    "max_completion_tokens": 8,
    "messages": [
        {"role": "system", "content": "Rate the answer with one number: 0, 2 or 4."},
        {"role": "user", "content": f"context: {json.dumps(PASSAGE)}"},
    ],
}


async def one_client(host: str, port: int, message: bytes, until: float) -> int:
    """Answers received on one keep-alive connection until a moment."""
    reader, writer = await asyncio.open_connection(host, port)
    answered = 0
    while time.monotonic() < until:
        writer.write(message)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        answered += 1
    writer.close()
    return answered


async def rate(base_url: str, connections: int) -> float:
    """Answers per second over this many connections."""
    address = urlsplit(base_url)
    body = json.dumps(QUESTION).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: fake\r\ncontent-length: {len(body)}\r\n\r\n"
    begun = time.monotonic()
    clients = [
        one_client(address.hostname or "", address.port or 0, head.encode() + body, begun + SECONDS)
        for _ in range(connections)
    ]
    answered = sum(await asyncio.gather(*clients))
    return answered / (time.monotonic() - begun)


def main() -> None:
    for latency, connections in ((0.0, 1), (0.0, 16), (0.0, 64), (0.02, 64)):
        with ServerProcess(latency=latency) as server:
            per_second = asyncio.run(rate(server.base_url, connections))
        print(f"latency {latency:g} s, {connections} connections: {per_second:.0f} requests/s")


if __name__ == "__main__":
    main()
