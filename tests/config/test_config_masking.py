"""No secret of an eval file reaches the manifest or a message."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragparity.config import clean, load_eval_file, masked
from ragparity.config.masking import is_secret_name
from ragparity.core.errors import ConfigError

SECRETS = st.text(
    st.characters(codec="utf-8", exclude_categories=["C"], exclude_characters="$\ue000\ue001"), min_size=8, max_size=30
).map(lambda text: f"S3cr{text}")
NAMES = st.sampled_from(
    [
        "api_key",
        "apiKey",
        "API-KEY",
        "token",
        "auth_token",
        "hf_token",
        "client_secret",
        "password",
        "Authorization",
        "x-api-key",
        "ocp-apim-subscription-key",
        "azure_ad_token",
    ]
)


def effective(tmp_path, llm, *overrides, general=None):
    path = tmp_path / "eval.json"
    evaluators = {"my_token_judge": {"_type": "ragparity", "metric": {"TokenF1": {"normalise": "full"}}}}
    text = {"llms": {"secret_judge": llm}, "eval": {"general": general or {}, "evaluators": evaluators}}
    path.write_text(json.dumps(text), encoding="utf-8")
    return load_eval_file(path, overrides)


def leaves(value):
    if isinstance(value, dict):
        return [text for inner in value.values() for text in leaves(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in leaves(inner)]
    return [str(value)]


def hidden(secret, file):
    return all(secret not in text for text in leaves(file.effective()))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(secret=SECRETS, name=NAMES, nest=st.sampled_from(["top", "kwargs", "list", "header", "elsewhere"]))
def test_the_masked_config_never_holds_the_secret(tmp_path, secret, name, nest):
    llm = {"_type": "openai", "model": "m", "base_url": "http://host:8000/v1"}
    llm |= {
        "top": {name: secret},
        "kwargs": {"model_kwargs": {"deep": {name: secret}}},
        "list": {name: [{"value": secret}, secret]},
        "header": {"default_headers": {"X-Anything": secret}},
        "elsewhere": {name: secret, "extra": f"before {secret} after", "more": [f"Bearer {secret}"]},
    }[nest]
    if not isinstance(llm.get("api_key"), str):
        llm.pop("api_key", None)
    file = effective(tmp_path, llm)
    assert hidden(secret, file)
    assert secret not in repr(file)
    assert file.effective()["llms"]["secret_judge"]["base_url"] == "http://host:8000/v1"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(secret=SECRETS, place=st.sampled_from(["password", "user", "query"]))
def test_the_masked_config_never_holds_a_secret_of_a_url(tmp_path, secret, place):
    written = quote(secret, safe="")
    url = {
        "password": f"https://me:{written}@host/v1",
        "user": f"https://{written}@host:8000/v1",
        "query": f"https://host/v1?api-version=1&api-key={written}",
    }[place]
    assert hidden(written, effective(tmp_path, {"_type": "openai", "model": "m", "base_url": url}))


def test_a_secret_from_the_environment_is_hidden_wherever_it_was_put(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "hush-hush-hush")
    file = effective(tmp_path, {"_type": "openai", "model": "m", "extra": "x-${MY_SECRET}-y"})
    assert file.llms["secret_judge"].options == {"extra": "x-hush-hush-hush-y"}
    assert file.effective()["llms"]["secret_judge"]["extra"] == "x-***-y"


def test_a_secret_from_the_command_line_is_hidden(tmp_path):
    file = effective(tmp_path, {"_type": "openai", "model": "m"}, ("llms.secret_judge.api_key", "sk-from-override"))
    assert file.llms["secret_judge"].api_key == "sk-from-override"
    assert file.effective()["llms"]["secret_judge"]["api_key"] == "***"
    assert file.effective(mask=False)["llms"]["secret_judge"]["api_key"] == "sk-from-override"


def test_settings_that_only_sound_like_secrets_stay_readable(tmp_path):
    llm = {"_type": "openai", "model": "m", "max_tokens": 8, "api_key": "${NO_SUCH_KEY}", "use_auth": True}
    general = {
        "dataset": {"_type": "json", "id_key": "n", "structure": {"question_key": "q"}},
        "ragparity": {"judges": {"secret_judge": {"max_tokens": 9}}},
    }
    shown = effective(tmp_path, llm, general=general).effective()
    assert shown["llms"]["secret_judge"] == llm  # an unset variable is no secret, and true is none
    assert shown["eval"]["general"]["dataset"] == general["dataset"]
    assert shown["eval"]["general"]["ragparity"] == general["ragparity"]
    assert shown["eval"]["evaluators"]["my_token_judge"]["metric"] == {"TokenF1": {"normalise": "full"}}


def test_sections_and_evaluators_of_the_toolkit_are_not_written(tmp_path):
    path = tmp_path / "eval.yml"
    path.write_text(
        "workflow: {_type: react_agent, x: hush}\neval: {evaluators: {t: {_type: trajectory, x: hush}}}",
        encoding="utf-8",
    )
    assert load_eval_file(path).effective() == {
        "eval": {"general": {"output_dir": "out", "max_concurrency": 8}, "evaluators": {}}
    }


def test_a_message_about_a_secret_does_not_show_it(tmp_path):
    with pytest.raises(ConfigError) as caught:
        effective(tmp_path, {"_type": "openai", "model": "m", "api_key": 123456789012})
    assert str(caught.value) == "llms.secret_judge.api_key: got a number; expected a text; put it into quotes"
    with pytest.raises(ConfigError) as caught:
        effective(
            tmp_path,
            {"_type": "openai", "model": "m", "base_url": "https://a:hush@h", "azure_endpoint": 5, "api_base": 7},
        )
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://host:8000/v1", "https://host:8000/v1"),
        ("http://host/v1?n=1&token=abc", "http://host/v1?n=1&token=***"),
        ("postgres://u:p@ss/w@host/db", "postgres://***@host/db"),
        ("https://u:123@host", "https://***@host"),
        ("write to me@host.org", "write to me@host.org"),
        ("Authorization: Bearer abcdefgh.ijk", "Authorization: Bearer ***"),
        ("the key sk-abcdefghijklmnop was", "the key *** was"),
    ],
)
def test_secrets_are_known_by_their_shape(text, shown):
    assert clean(text) == shown


@pytest.mark.parametrize(
    "name", ["key", "apikey", "SecretAccessKey", "aws_session_token", "proxy_headers", "cookie", "api_tokens"]
)
def test_names_that_say_secret(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["max_tokens", "max_completion_tokens", "monkey", "keywords", "id_key", "answer_key", "authority", "1"]
)
def test_names_that_do_not_say_secret(name):
    assert not is_secret_name(name)


def test_everything_under_a_secret_name_is_hidden_and_its_shape_kept():
    assert masked({"credentials": {"user": "u", "pins": [1, 2.5], "on": True, "none": None}}) == {
        "credentials": {"user": "***", "pins": ["***", "***"], "on": True, "none": None}
    }
