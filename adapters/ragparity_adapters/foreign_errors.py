"""One table from the errors of model clients to the errors of ragparity.

Clients are recognised by status code and by what the error says, not by class, so the OpenAI, Azure,
NVIDIA, Anthropic, Google, AWS and HTTP libraries need not be importable here.

| what came back | error | kind |
|---|---|---|
| 401, 403 | `JudgeRejected`, ends the llm entry | `auth` |
| 402, 404 | `JudgeRejected`, ends the llm entry | `rejected` |
| 3xx that no client follows | `JudgeRejected`, ends the llm entry | `rejected` |
| 400, 422 that speak of a content filter | `JudgeRefused` | `refused` |
| 400, 413, 422 that speak of the context length | `JudgeRejected` | `context_too_long` |
| other 400, 422 | `JudgeRejected` | `rejected` |
| 429 that speaks of a quota that is used up | `JudgeRejected`, ends the llm entry | `rate_limit` |
| 429 | `JudgeUnavailable` | `rate_limit` |
| 408, 409, 425, 5xx, no connection | `JudgeUnavailable` | `unavailable` |
| a reply that is no chat completion | `JudgeUnavailable`, or by the status that it states | `unavailable` |
| a time-out | `JudgeUnavailable` | `timeout` |
| a client that could not parse the reply | `MalformedVerdict` | `malformed` |
| a client that does not take a keyword of the entry | `JudgeRejected`, ends the llm entry | `rejected` |
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from ragparity.core.errors import JudgeError, JudgeRefused, JudgeRejected, JudgeUnavailable, MalformedVerdict
from ragparity_adapters.held_secrets import hidden

_CONTEXT = re.compile(
    r"context.{0,20}(length|window|size)|maximum context|too many (input )?tokens|prompt is too long|"
    r"exceed\w* .{0,40}context|input (is too long|length)|reduce the length",
    re.IGNORECASE,
)
_FILTER = re.compile(
    r"content[_ ]filter|content management policy|ResponsibleAIPolicy|content[_ ]policy|data_inspection_failed|"
    r"flagged|moderation|blocked by .{0,20}(safety|policy)",
    re.IGNORECASE,
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing|insufficient balance", re.IGNORECASE)
_TIMEOUT = re.compile(r"Timeout|TimedOut|Deadline")
_RATE = re.compile(r"RateLimit|TooManyRequests|Throttl|ResourceExhausted")
_AUTH = re.compile(r"Authentication|Unauthenticated|PermissionDenied|Unauthorized|AccessDenied")
_NETWORK = re.compile(
    r"Connect|Network|Protocol|ReadError|WriteError|Transport|IncompleteRead|RemoteDisconnect|Unavailable|"
    r"InternalServer|Overloaded|ServerError|Stream"
)
_UNREADABLE = re.compile(r"OutputParser|ValidationError")
_SECRET = re.compile(r"(sk-|nvapi-|Bearer\s+|api[_-]?key[\"'=:\s]+)[\w\-*.]{6,}", re.IGNORECASE)
_WAIT_IN_WORDS = re.compile(r"(?:try again|retry)\w* (?:in|after) ([\d.]+) ?(ms|m?s\b|sec)", re.IGNORECASE)
_LONGEST = 600

HTTP_BAD_REQUEST, HTTP_UNAUTHORIZED, HTTP_NO_MONEY, HTTP_FORBIDDEN, HTTP_NOT_FOUND = 400, 401, 402, 403, 404
HTTP_TIMEOUT, HTTP_CONFLICT, HTTP_TOO_LARGE, HTTP_UNPROCESSABLE = 408, 409, 413, 422
HTTP_TOO_EARLY, HTTP_TOO_MANY, HTTP_SERVER_ERROR, HTTP_NOT_IMPLEMENTED = 425, 429, 500, 501


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error carries, if any."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code", "http_status"):
            if (value := _as_status(getattr(holder, name, None))) is not None:
                return value
        if isinstance(holder, Mapping) and isinstance(about := holder.get("ResponseMetadata"), Mapping):
            return _as_status(about.get("HTTPStatusCode"))
    return _as_status(_stated(error).get("code"))


def _as_status(value: Any) -> int | None:
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    is_status = isinstance(value, int) and not isinstance(value, bool) and 300 <= value < 600  # noqa: PLR2004  # HTTP statuses
    return int(value) if is_status else None


def _stated(error: BaseException) -> Mapping[str, Any]:
    """The error object that a server sent in place of a reply, under a status that says all is well."""
    stated = error.args[0] if isinstance(error, ValueError) and error.args else None
    return stated if isinstance(stated, Mapping) else {}


def text_of(error: BaseException, secrets: Collection[str] = ()) -> str:
    """What an error says, in one line, without these secrets and anything that looks like a key."""
    body = getattr(error, "body", None)
    about = body if isinstance(body, Mapping) else _stated(error)
    said = next((about[key] for key in ("message", "detail", "error", "msg") if about.get(key)), None)
    text = " ".join(hidden(str(said or error or type(error).__name__), secrets).split())
    text = _SECRET.sub(lambda found: f"{found.group(1)}***", text)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def retry_after(error: BaseException) -> float | None:
    """Seconds that the endpoint asks to wait: `retry-after-ms`, `Retry-After` (seconds or a date), or in words."""
    response: Any = getattr(error, "response", None)
    given: Any = getattr(response, "headers", None) or getattr(error, "headers", None) or {}
    if isinstance(response, Mapping):
        given = (response.get("ResponseMetadata") or {}).get("HTTPHeaders") or {}
    try:
        headers = {str(name).lower(): str(value) for name, value in given.items()}
    except AttributeError:
        headers = {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if name in headers and (seconds := _seconds(headers[name], unit)) is not None:
            return seconds
    if words := _WAIT_IN_WORDS.search(text_of(error)):
        return _seconds(words[1].rstrip("."), 0.001 if words[2].lower() == "ms" else 1.0)
    return None


def _seconds(value: str, unit: float) -> float | None:
    try:
        number = float(value) * unit
    except ValueError:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, TypeError):
            return None
        number = (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return max(0.0, number) if math.isfinite(number) else None


def is_unreadable(error: BaseException) -> bool:
    """Whether a client had a reply and could not parse it."""
    return any(_UNREADABLE.search(cls.__name__) for cls in type(error).__mro__) and status_of(error) is None


def is_about_prompt(error: BaseException) -> bool:
    """Whether a refusal speaks of the prompt: its length, or what it says."""
    text = f"{text_of(error)} {getattr(error, 'code', '')}"
    return bool(_CONTEXT.search(text) or _FILTER.search(text))


def translate(
    error: BaseException, judge: str, *, speaks_openai: bool = False, secrets: Collection[str] = ()
) -> JudgeError | None:
    """The error of ragparity for an error of a client; `None` where it is no client error (a bug).

    `speaks_openai`: the client is one that fails with plain Python errors over replies that are no chat completion.
    `secrets` are those that the client holds; no message repeats them.
    """
    status, text = status_of(error), text_of(error, secrets)
    if status is None:
        return _without_status(error, text, judge, speaks_openai=speaks_openai, secrets=secrets)
    message = f"{judge}: HTTP {status}: {text}"
    if status in (HTTP_UNAUTHORIZED, HTTP_FORBIDDEN):
        return JudgeRejected(f"{message} (check the api_key of this entry)", kind="auth", judge=judge, ends_entry=True)
    if status == HTTP_NO_MONEY:
        return JudgeRejected(message, judge=judge, ends_entry=True)
    if status == HTTP_NOT_FOUND or status < HTTP_BAD_REQUEST:
        elsewhere = "a redirect that leads nowhere: check base_url of this entry"
        hint = "check model_name and base_url of this entry" if status == HTTP_NOT_FOUND else elsewhere
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


def cut_off() -> ConnectionError:
    """The error for a call that was cancelled inside its client."""
    return ConnectionError("the client cancelled the call")


def timed_out(name: str, seconds: float) -> JudgeUnavailable:
    """The error for a call that did not come back within our own deadline."""
    return JudgeUnavailable(f"{name}: no reply within {seconds:g} s (judge.timeout_s)", kind="timeout", judge=name)


def wrong_count(name: str, asked: int, given: int) -> MalformedVerdict:
    """The error for an embedder that gives more or fewer vectors than texts."""
    return MalformedVerdict(f"{name}: {given} vectors for {asked} texts", judge=name)


def _without_status(
    error: BaseException, text: str, judge: str, *, speaks_openai: bool, secrets: Collection[str]
) -> JudgeError | None:
    names = " ".join(cls.__name__ for cls in type(error).__mro__[:-2])
    cause = error.__cause__ or error.__context__
    detail = f"{text} ({type(cause).__name__}: {text_of(cause, secrets)})" if cause is not None else text
    message = f"{judge}: {detail}"
    if isinstance(error, TimeoutError) or _TIMEOUT.search(names):
        return JudgeUnavailable(message, kind="timeout", judge=judge)
    if _RATE.search(names):
        return JudgeUnavailable(message, kind="rate_limit", judge=judge, retry_after=retry_after(error))
    if _AUTH.search(names):
        return JudgeRejected(message, kind="auth", judge=judge, ends_entry=True)
    if "JSONDecode" in names:
        return JudgeUnavailable(f"{judge}: the reply is no chat completion: it is not JSON ({text})", judge=judge)
    if isinstance(error, OSError) or _NETWORK.search(names):
        return JudgeUnavailable(message, judge=judge)
    if is_unreadable(error):
        said = getattr(error, "llm_output", None)
        return MalformedVerdict(message, judge=judge, raw=hidden(str(said), secrets) if said else None)
    if isinstance(error, TypeError) and "unexpected keyword argument" in text:
        return JudgeRejected(f"{message} (the client does not take it)", judge=judge, ends_entry=True)
    if speaks_openai and isinstance(error, KeyError | IndexError | TypeError | ValueError | AttributeError):
        return JudgeUnavailable(f"{judge}: the reply is no chat completion: {detail}", judge=judge)
    return None
