"""The multimodal classes: nothing is opened that is not on the list, and what is on it reaches the judge as an image."""

import base64
import threading
import zlib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from tests.adapters.backends.ragas_world import BOTH, outcome_of, row

from ragparity.core.errors import ConfigError, SampleError
from ragparity_adapters.backends._ragas_fetch import inlined
from ragparity_adapters.scripted import ScriptedJudge


def png():
    """One black pixel."""

    def chunk(kind, content):
        body = kind + content
        return len(content).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    head = (1).to_bytes(4, "big") * 2 + bytes([8, 0, 0, 0, 0])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


IMAGE = png()
URI = f"data:image/png;base64,{base64.b64encode(IMAGE).decode()}"


@contextmanager
def site():
    """A server with an image, a page, and a way back to itself; yields its address and the paths asked for."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(302 if self.path == "/moved" else 200)
            self.send_header("Content-Type", "image/png" if self.path == "/image.png" else "text/html")
            if self.path == "/moved":
                self.send_header("Location", "/image.png")
            self.send_header("Content-Length", str(len(IMAGE)))
            self.end_headers()
            self.wfile.write(IMAGE)

        def log_message(self, *_args):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def judge():
    return ScriptedJudge(
        lambda question: {name: "so" if name == "reason" else True for name in question.shape.schema.model_fields}
    )


@pytest.mark.parametrize("name", ["MultiModalFaithfulness", "MultiModalRelevance"])
@pytest.mark.parametrize("backend", BOTH, ids=lambda one: one.name)
def test_an_allowed_image_reaches_the_judge_in_the_message_and_nothing_else_is_opened(backend, name):
    asks = judge()
    with site() as (address, asked):
        sample = row(retrieved_contexts=(f"{address}/image.png", "The pump is red."))
        found = outcome_of(backend, name, asks, sample=sample, settings={"allow_fetch": ["127.0.0.1"]})
    assert (found.status, found.value) == ("scored", 1.0)
    assert asked == ["/image.png"]
    prompt = asks.questions[0].prompt
    assert [one["image_url"]["url"] for one in prompt.parts if one["type"] == "image_url"] == [URI]
    assert prompt.data == {"images": [URI]}
    assert "The pump is red." in prompt.text


@pytest.mark.parametrize("backend", BOTH, ids=lambda one: one.name)
@pytest.mark.parametrize("path", ["image.png", "moved"])
def test_a_host_that_is_not_on_the_list_and_a_redirect_are_failures_of_the_row(backend, path):
    asks = judge()
    with site() as (address, asked):
        allowed = ["images.example.com"] if path == "image.png" else ["127.0.0.1"]
        sample = row(retrieved_contexts=(f"{address}/{path}",))
        with pytest.raises(SampleError, match=r"not on allow_fetch|could not be fetched"):
            outcome_of(backend, "MultiModalFaithfulness", asks, sample=sample, settings={"allow_fetch": allowed})
    assert asked == ([] if path == "image.png" else ["/moved"])
    assert asks.questions == []


def test_files_are_read_only_below_a_folder_of_the_list(tmp_path):
    inside, outside = tmp_path / "images", tmp_path / "secret.png"
    inside.mkdir()
    (inside / "a.png").write_bytes(IMAGE)
    (inside / "note.txt").write_text("no image", encoding="utf-8")
    (inside / "way_out.png").symlink_to(outside)
    outside.write_bytes(IMAGE)

    def contexts(*texts):
        return inlined(row(retrieved_contexts=texts), [str(inside), "images.example.com"]).retrieved_contexts

    assert contexts(str(inside / "a.png"), "plain text", URI) == (URI, "plain text", URI)
    for refused in (outside, inside / "way_out.png", inside / ".." / "secret.png"):
        with pytest.raises(SampleError, match="not on allow_fetch"):
            contexts(str(refused))
    with pytest.raises(SampleError, match="is no image"):
        contexts(str(inside / "note.txt"))
    for refused in ("file:///etc/hostname", "ftp://images.example.com/a.png", "http://169.254.169.254/latest"):
        with pytest.raises(SampleError, match="not on allow_fetch"):
            contexts(refused)


def test_a_page_in_place_of_an_image_is_refused():
    with site() as (address, _asked), pytest.raises(SampleError, match=r"is no image \(text/html\)"):
        inlined(row(retrieved_contexts=(f"{address}/page",)), ["127.0.0.1"])


def test_an_empty_list_allows_nothing():
    with pytest.raises(ConfigError, match="allow_fetch"):
        BOTH[0].build("MultiModalFaithfulness", {"allow_fetch": []})
