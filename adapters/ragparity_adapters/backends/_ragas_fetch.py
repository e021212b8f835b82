"""What a multimodal class may open: nothing, but for hosts and folders that the user lists.

Ragas opens every URL (following redirects) and every file that is named in `retrieved_contexts`. So the classes
are refused unless `allow_fetch` is set, and even then Ragas opens nothing: what is on the list is fetched here
and handed over as a data URI, and a row that names anything else fails.
"""

from __future__ import annotations

import base64
import mimetypes
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragparity.core.errors import SampleError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragparity.core.sample import Sample

ALLOW_FETCH = "allow_fetch"
LARGEST = 20 * 1024 * 1024
"""Bytes of one image."""
SECONDS = 10.0
LONGEST_PATH = 4096
"""Characters; a longer text is no path."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect leads away from the host that was allowed."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None


def inlined(sample: Sample, allowed: Sequence[str]) -> Sample:
    """The sample with every image as a data URI; raises `SampleError` for what is not on the list. Blocking."""
    return replace(sample, retrieved_contexts=tuple(_inlined(one, allowed) for one in sample.retrieved_contexts or ()))


def _inlined(text: str, allowed: Sequence[str]) -> str:
    if text.startswith("data:"):
        return text
    parts = urllib.parse.urlsplit(text.strip()) if "://" in text[:16] else None
    if parts is not None and parts.scheme:
        if parts.scheme not in ("http", "https") or parts.hostname not in allowed:
            raise SampleError(f"retrieved_contexts: {text[:80]!r} is not on allow_fetch ({', '.join(allowed)})")
        return _fetched(text.strip())
    if len(text) > LONGEST_PATH or "\n" in text or "\0" in text or not Path(text).is_file():
        return text
    path = Path(text).resolve()
    if not any(path.is_relative_to(Path(one).resolve()) for one in allowed if one.startswith(("/", "."))):
        raise SampleError(f"retrieved_contexts: the file {text[:80]!r} is not on allow_fetch ({', '.join(allowed)})")
    return _data_uri(path.read_bytes(), mimetypes.guess_type(path.name)[0], text)


def _fetched(url: str) -> str:
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(url, timeout=SECONDS) as reply:
            return _data_uri(reply.read(LARGEST + 1), reply.headers.get_content_type(), url)
    except urllib.error.HTTPError as error:
        error.close()
        raise SampleError(f"retrieved_contexts: {url[:80]!r} could not be fetched: {error}") from None
    except (OSError, ValueError) as error:
        raise SampleError(f"retrieved_contexts: {url[:80]!r} could not be fetched: {error}") from error


def _data_uri(content: bytes, kind: str | None, where: str) -> str:
    if kind is None or not kind.startswith("image/"):
        raise SampleError(f"retrieved_contexts: {where[:80]!r} is no image ({kind or 'unknown type'})")
    if len(content) > LARGEST:
        raise SampleError(f"retrieved_contexts: {where[:80]!r} is larger than {LARGEST} bytes")
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
