"""One table from the errors of model clients to the errors of ragparity.

Clients are recognised by status code and by what the error says, not by class, so the OpenAI, Azure,
NVIDIA, Anthropic and HTTP libraries need not be importable here.

| what came back | error | kind |
|---|---|---|
| 401, 403 | `JudgeRejected`, ends the llm entry | `auth` |
| 404 | `JudgeRejected`, ends the llm entry | `rejected` |
| 400, 422 that speak of a content filter | `JudgeRefused` | `refused` |
| 400, 413, 422 that speak of the context length | `JudgeRejected` | `context_too_long` |
| other 400, 422 | `JudgeRejected` | `rejected` |
| 429 that speaks of a quota that is used up | `JudgeRejected`, ends the llm entry | `rate_limit` |
| 429 | `JudgeUnavailable` | `rate_limit` |
| 408, 409, 425, 5xx, no connection, a broken reply | `JudgeUnavailable` | `unavailable` |
| a time-out | `JudgeUnavailable` | `timeout` |
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ragparity.core.errors import JudgeError, JudgeRefused, JudgeRejected, JudgeUnavailable, MalformedVerdict

_CONTEXT = re.compile(
    r"context.{0,20}(length|window|size)|maximum context|too many (input )?tokens|prompt is too long|"
    r"exceed\w* .{0,40}context|input is too long",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content[_ ]filter|content management policy|ResponsibleAIPolicy", re.IGNORECASE)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_TIMEOUT = re.compile(r"Timeout|TimedOut|Deadline")
_NETWORK = re.compile(
    r"Connect|Network|Protocol|ReadError|WriteError|Transport|IncompleteRead|RemoteDisconnect|Unavailable|"
    r"InternalServer|Overloaded|ServerError|JSONDecode|Stream"
)
_SECRET = re.compile(r"(sk-|nvapi-|Bearer\s+|api[_-]?key[\"'=:\s]+)[\w\-*.]{6,}", re.IGNORECASE)
_LONGEST = 600

HTTP_BAD_REQUEST, HTTP_UNAUTHORIZED, HTTP_FORBIDDEN, HTTP_NOT_FOUND = 400, 401, 403, 404
HTTP_TIMEOUT, HTTP_CONFLICT, HTTP_TOO_LARGE, HTTP_UNPROCESSABLE = 408, 409, 413, 422
HTTP_TOO_EARLY, HTTP_TOO_MANY, HTTP_SERVER_ERROR = 425, 429, 500


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error carries, if any."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code", "http_status"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and 100 <= value < 600:  # noqa: PLR2004  # HTTP statuses
                return value
    return None


def text_of(error: BaseException) -> str:
    """What an error says, in one line, without anything that looks like a key."""
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, dict) else None
    text = " ".join(str(said or error or type(error).__name__).split())
    text = _SECRET.sub(lambda found: f"{found.group(1)}***", text)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def retry_after(error: BaseException) -> float | None:
    """Seconds that the endpoint asks to wait, from `retry-after-ms` or `Retry-After` (seconds or a date)."""
    headers: Any = getattr(getattr(error, "response", None), "headers", None) or {}
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        if value is None:
            return None
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(str(value)) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def translate(error: BaseException, judge: str) -> JudgeError | None:
    """The error of ragparity for an error of a client; `None` where it is no client error (a bug)."""
    status, text = status_of(error), text_of(error)
    if status is None:
        return _without_status(error, text, judge)
    message = f"{judge}: HTTP {status}: {text}"
    if status in (HTTP_UNAUTHORIZED, HTTP_FORBIDDEN):
        return JudgeRejected(f"{message} (check the api_key of this entry)", kind="auth", judge=judge, ends_entry=True)
    if status == HTTP_NOT_FOUND:
        hint = "check model_name and base_url of this entry"
        return JudgeRejected(f"{message} ({hint})", judge=judge, ends_entry=True)
    if status in (HTTP_BAD_REQUEST, HTTP_TOO_LARGE, HTTP_UNPROCESSABLE):
        if _FILTER.search(text) or _FILTER.search(str(getattr(error, "code", ""))):
            return JudgeRefused(message, judge=judge)
        too_long = _CONTEXT.search(text) or getattr(error, "code", None) == "context_length_exceeded"
        return JudgeRejected(message, kind="context_too_long" if too_long else "rejected", judge=judge)
    if status == HTTP_TOO_MANY:
        if _QUOTA.search(text) or getattr(error, "code", None) == "insufficient_quota":
            return JudgeRejected(message, kind="rate_limit", judge=judge, ends_entry=True)
        return JudgeUnavailable(message, kind="rate_limit", judge=judge, retry_after=retry_after(error))
    if status in (HTTP_TIMEOUT, HTTP_CONFLICT, HTTP_TOO_EARLY) or status >= HTTP_SERVER_ERROR:
        return JudgeUnavailable(message, judge=judge, retry_after=retry_after(error))
    return JudgeRejected(message, judge=judge)


def timed_out(name: str, seconds: float) -> JudgeUnavailable:
    """The error for a call that did not come back within our own deadline."""
    return JudgeUnavailable(f"{name}: no reply within {seconds:g} s (judge.timeout_s)", kind="timeout", judge=name)


def wrong_count(name: str, asked: int, given: int) -> MalformedVerdict:
    """The error for an embedder that gives more or fewer vectors than texts."""
    return MalformedVerdict(f"{name}: {given} vectors for {asked} texts", judge=name)


def _without_status(error: BaseException, text: str, judge: str) -> JudgeError | None:
    names = " ".join(cls.__name__ for cls in type(error).__mro__[:-2])
    cause = error.__cause__ or error.__context__
    detail = f"{text} ({type(cause).__name__}: {text_of(cause)})" if cause is not None else text
    message = f"{judge}: {detail}"
    if isinstance(error, TimeoutError) or _TIMEOUT.search(names):
        return JudgeUnavailable(message, kind="timeout", judge=judge)
    if isinstance(error, OSError) or _NETWORK.search(names):
        return JudgeUnavailable(message, judge=judge)
    return None
