"""The table from errors of clients to errors of ragparity, row by row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import pytest
from langchain_core.exceptions import OutputParserException
from tests.adapters.wired import RATING, asked, built
from tests.fakeserver import (
    FakeServer,
    bad_request,
    content_filtered,
    context_too_long,
    failure,
    forbidden,
    model_not_found,
    quota_exhausted,
    rate_limited,
    server_error,
    unauthorized,
)

from ragparity.core.errors import JudgeRefused, JudgeRejected, JudgeUnavailable, MalformedVerdict
from ragparity_adapters import foreign_errors


class ClientError(Exception):
    """An error as clients make them: a status, a response with headers, a body."""

    def __init__(self, message="went wrong", *, status=None, headers=None, body=None, code=None):
        super().__init__(message)
        self.status_code = status
        self.body = body
        self.code = code
        self.response = SimpleNamespace(headers=headers or {})


def named(name, *bases, **fields):
    return type(name, bases or (Exception,), fields)


@pytest.mark.parametrize(
    ("reply", "error", "kind", "ends", "retryable"),
    [
        (unauthorized(), JudgeRejected, "auth", True, False),
        (forbidden(), JudgeRejected, "auth", True, False),
        (failure(402, {"error": {"message": "Insufficient balance"}}), JudgeRejected, "rejected", True, False),
        (model_not_found(), JudgeRejected, "rejected", True, False),
        (bad_request(), JudgeRejected, "rejected", False, False),
        (failure(413, {"error": {"message": "too large"}}), JudgeRejected, "rejected", False, False),
        (failure(422, {"detail": "no"}), JudgeRejected, "rejected", False, False),
        (content_filtered(), JudgeRefused, "refused", False, False),
        (context_too_long(), JudgeRejected, "context_too_long", False, False),
        (rate_limited(3), JudgeUnavailable, "rate_limit", False, True),
        (quota_exhausted(), JudgeRejected, "rate_limit", True, False),
        (failure(408, {}), JudgeUnavailable, "unavailable", False, True),
        (failure(409, {}), JudgeUnavailable, "unavailable", False, True),
        (failure(425, {}), JudgeUnavailable, "unavailable", False, True),
        (server_error(500), JudgeUnavailable, "unavailable", False, True),
        (server_error(503), JudgeUnavailable, "unavailable", False, True),
        (server_error(529), JudgeUnavailable, "unavailable", False, True),
    ],
    ids=lambda value: str(getattr(value, "status", "")) if hasattr(value, "status") else "",
)
def test_every_status_of_a_real_server_has_its_row(reply, error, kind, ends, retryable):
    with FakeServer(reply) as server:
        (seen,) = asked(built(server), RATING)
        assert type(seen) is error
        assert (seen.kind, seen.ends_entry, seen.retryable) == (kind, ends, retryable)
        assert str(seen).startswith(f"judge: HTTP {reply.status}")
        assert server.calls == 1


def test_a_server_that_is_not_there_is_unavailable():
    with FakeServer() as server:
        endpoint = built(server)
    (seen,) = asked(endpoint, RATING)
    assert (type(seen), seen.kind) == (JudgeUnavailable, "unavailable")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": "7.5"}, 7.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_in_seconds_and_milliseconds(headers, seconds):
    assert foreign_errors.retry_after(ClientError(headers=headers)) == seconds


def test_retry_after_as_a_date():
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 25 < foreign_errors.retry_after(ClientError(headers={"retry-after": soon})) <= 30
    past = format_datetime(datetime.now(UTC) - timedelta(seconds=30), usegmt=True)
    assert foreign_errors.retry_after(ClientError(headers={"retry-after": past})) == 0.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Rate limit reached. Please try again in 1.2s.", 1.2),
        ("Please try again in 350ms.", 0.35),
        ("Please retry after 12 seconds.", 12.0),
        ("Please try again later.", None),
    ],
)
def test_a_time_in_words_counts_where_no_header_says_one(text, seconds):
    assert foreign_errors.retry_after(ClientError(text)) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("error", "expected", "kind"),
    [
        (TimeoutError("slow"), JudgeUnavailable, "timeout"),
        (named("APITimeoutError")("slow"), JudgeUnavailable, "timeout"),
        (named("DeadlineExceeded")("slow"), JudgeUnavailable, "timeout"),
        (ConnectionRefusedError("no"), JudgeUnavailable, "unavailable"),
        (named("APIConnectionError")("no"), JudgeUnavailable, "unavailable"),
        (named("RemoteProtocolError")("no"), JudgeUnavailable, "unavailable"),
        (named("ServiceUnavailable")("no"), JudgeUnavailable, "unavailable"),
        (named("ThrottlingException")("slow down"), JudgeUnavailable, "rate_limit"),
        (named("ResourceExhausted")("slow down"), JudgeUnavailable, "rate_limit"),
        (named("PermissionDenied")("no"), JudgeRejected, "auth"),
        (named("Unauthenticated")("no"), JudgeRejected, "auth"),
        (OutputParserException("no JSON", llm_output="prose"), MalformedVerdict, "malformed"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_errors_without_a_status_are_known_by_their_name(error, expected, kind):
    seen = foreign_errors.translate(error, "judge")
    assert (type(seen), seen.kind) == (expected, kind)
    assert str(seen).startswith("judge: ")


def test_what_the_client_could_not_parse_is_kept():
    seen = foreign_errors.translate(OutputParserException("no JSON", llm_output="prose"), "judge")
    assert seen.raw == "prose"


def test_the_status_of_other_libraries_is_found():
    aws = ClientError("slow down")
    aws.response = {"ResponseMetadata": {"HTTPStatusCode": 429, "HTTPHeaders": {"Retry-After": "4"}}}
    seen = foreign_errors.translate(aws, "judge")
    assert (seen.kind, seen.retry_after) == ("rate_limit", 4.0)
    google = named("TooManyRequests", code=429)("slow down")
    assert foreign_errors.translate(google, "judge").kind == "rate_limit"
    assert foreign_errors.status_of(ClientError(code="invalid_api_key")) is None
    assert foreign_errors.status_of(ClientError(code=200)) is None


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), AttributeError("x"), RuntimeError("x"), KeyError("x")])
def test_a_bug_is_not_taken_for_an_error_of_the_endpoint(error):
    assert foreign_errors.translate(error, "judge") is None


def test_no_key_reaches_a_message():
    text = "Incorrect API key provided: sk-proj-abcdef123456. Authorization: Bearer eyJhbGciOi.x, api_key=nvapi-0123456789abcdef"
    said = foreign_errors.text_of(ClientError(text))
    assert not any(secret in said for secret in ("abcdef123456", "eyJhbGciOi", "0123456789abcdef"))
    assert said.startswith("Incorrect API key provided: sk-***")


def test_a_very_long_message_is_cut_and_put_on_one_line():
    said = foreign_errors.text_of(ClientError("line\n" * 1000))
    assert len(said) == 601 and "\n" not in said
