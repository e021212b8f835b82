"""Secrets out of what is written or shown: by the name of a setting, by the shape of a text, by value.

Masking rather hides too much than too little: it is for the files and messages of a run, never for a client.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

MASK = "***"

_SECRET_WORDS = frozenset(
    {
        "secret",
        "secrets",
        "password",
        "passwords",
        "passwd",
        "pwd",
        "passphrase",
        "credential",
        "credentials",
        "auth",
        "authorization",
        "bearer",
        "cookie",
        "cookies",
        "apikey",
        "apikeys",
        "token",
        "signature",
        "sig",
        "sas",
        "jwt",
        "header",
        "headers",
    }
)
_RUN_TOGETHER = ("apikey", "accesskey", "secretkey", "privatekey", "authtoken", "accesstoken", "password", "secret")
_TOKEN_OWNERS = frozenset({"access", "api", "auth", "bearer", "refresh"})

COLUMN_KEYS = frozenset(
    {"id_key", "question_key", "answer_key", "generated_answer_key", "trajectory_key", "expected_trajectory_key"}
)
"""Settings that end in `key` and name a column of the data."""

_SHORTEST_SECRET = 8
"""A secret that is at least this long is also looked for inside other texts; `EMPTY` or `none` is not."""

_USER_IN_URL = re.compile(r"://(?:[^\s/?#@]*:(?!\d{1,5}(?:[/?#\s]|$))\S*|[^\s/?#]*)@")
_QUERY = re.compile(r"(?P<before>[?&;](?P<name>[^=&#\s]+)=)[^&#\s]+")
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]{6,}", re.IGNORECASE)
_KEY_SHAPES = re.compile(
    r"\b(?:sk-|nvapi-|hf_|gh[opsu]_|github_pat_|glpat-|xox[abp]-|AKIA|AIza|gsk_)[A-Za-z0-9_-]{12,}"
)
_VARIABLE = re.compile(r"\$\{\w+\}")


def is_secret_name(name: str) -> bool:
    """Whether a setting of this name holds a secret, judged by its words.

    >>> [is_secret_name(name) for name in ("api_key", "X-Auth-Token", "hfToken", "PGPASSWORD", "default_headers")]
    [True, True, True, True, True]
    >>> [is_secret_name(name) for name in ("max_tokens", "question_key", "keyword", "model_name")]
    [False, False, False, False]
    """
    if name in COLUMN_KEYS:
        return False
    words = [word.casefold() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]
    if not words:
        return False
    if _SECRET_WORDS.intersection(words) or words[-1] in ("key", "keys"):
        return True
    if "tokens" in words and _TOKEN_OWNERS.intersection(words):
        return True
    return "".join(words).endswith(_RUN_TOGETHER)


def clean(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without the given secrets, users and passwords in URLs, secret query values and bearer tokens.

    >>> clean("https://me:pw@host/v1?api-key=abc&n=1")
    'https://***@host/v1?api-key=***&n=1'
    """
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    text = _USER_IN_URL.sub(f"://{MASK}@", text)
    text = _QUERY.sub(
        lambda found: found["before"] + MASK if is_secret_name(found["name"]) else found[0],
        text,
    )
    text = _BEARER.sub(rf"\1 {MASK}", text)
    return _KEY_SHAPES.sub(MASK, text)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


Where = tuple[str, ...]


def _nowhere(_: Where) -> bool:
    return False


def secrets_in(value: Any, *, named: Callable[[Where], bool] = _nowhere, where: Where = ()) -> set[str]:
    """Every text that stands under a secret name and is long enough to be looked for elsewhere."""
    found: set[str] = set()
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if not named(where) and is_secret_name(str(name)):
                found.update(_texts(inner))
            else:
                found |= secrets_in(inner, named=named, where=(*where, str(name)))
    elif isinstance(value, list | tuple):
        for inner in value:
            found |= secrets_in(inner, named=named, where=(*where, "[]"))
    return {text for text in found if len(text) >= _SHORTEST_SECRET and not _VARIABLE.fullmatch(text)}


def masked(
    value: Any,
    secrets: Collection[str] = (),
    *,
    named: Callable[[Where], bool] = _nowhere,
    where: Where = (),
    hidden: bool = False,
) -> Any:
    """A copy in plain types with secrets replaced by `***`.

    `secrets` are texts to hide wherever they stand. `named` tells of the place of a mapping whether its
    keys are names that a user chose (`my_token_judge`), which say nothing. With `hidden`, everything in
    `value` is a secret. An unset `${VARIABLE}` holds none and stays; so do true, false and null.
    """
    if isinstance(value, Mapping):
        return {
            key: masked(
                inner,
                secrets,
                named=named,
                where=(*where, str(key)),
                hidden=hidden or (not named(where) and is_secret_name(str(key))),
            )
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [masked(inner, secrets, named=named, where=(*where, "[]"), hidden=hidden) for inner in value]
    if value is None or isinstance(value, bool):
        return value
    if hidden:
        return str(value) if _VARIABLE.fullmatch(str(value)) else MASK
    if isinstance(value, int | float):
        return value
    return clean(str(value), (secret for secret in secrets if len(secret) >= _SHORTEST_SECRET))
