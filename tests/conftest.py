"""Settings of all tests."""

from __future__ import annotations

import os
import signal
from functools import lru_cache

import pytest
from hypothesis import settings

settings.register_profile("busy", deadline=None)  # two cores are shared; how long one example takes is no fact
settings.load_profile("busy")


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once():
    """Every client reads the file of root certificates; hundreds of clients are made here, and once is enough."""
    try:
        import httpcore2
    except ImportError:  # an older OpenAI client brings another HTTP library
        yield
        return
    read = httpcore2.default_ssl_context

    @lru_cache(maxsize=8)
    def once(trust_env, file, folder):
        return read(_trust_env=trust_env)

    def cached(_trust_env=True):
        return once(_trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(httpcore2, "default_ssl_context", cached)
        yield


@pytest.fixture(scope="session", autouse=True)
def an_interrupt_reaches_what_is_started():
    """Where the tests run in the background, the shell has told them to ignore Ctrl-C, and children would too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
