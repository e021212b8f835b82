"""DeepEval itself: imported once, with its telemetry off, and with nothing read from or written to the work folder.

Importing takes seconds, so a plan is made without it: `missing` reads the version of the installed package. Left to
itself DeepEval counts what is measured and sends it, makes a folder `.deepeval`, and copies `.env` files and the keys
of that folder into the environment. Variables keep it from that; they stay set, since it reads some of them again
whenever it measures.
"""

from __future__ import annotations

import importlib
import os
import threading
import warnings
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from ragparity.core.errors import MissingExtra

if TYPE_CHECKING:
    from ragparity_adapters.backends._deepeval_judge import Session

REMEDY = "pip install 'ragparity[deepeval]', or set backend: native"
OLDEST, UNTRIED = Version("4.3"), Version("4.4")
"""DeepEval from the first to before the second of these is wrapped here.

Before 4.2 Hallucination counts the other way round, and before 4.3 the environment alone says who gives the verdicts.
"""
VERSIONS = f">={OLDEST},<{UNTRIED}"
QUIET = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "DEEPEVAL_DISABLE_DOTENV": "1",
    "DEEPEVAL_DISABLE_LEGACY_KEYFILE": "1",
    "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",
    "DEEPEVAL_GRPC_LOGGING": "1",
    "CONFIDENT_TRACE_INTERNAL": "0",
}
"""`DEEPEVAL_GRPC_LOGGING` is no wish for a log: it keeps DeepEval from setting two variables of gRPC. The last one
keeps the questions to the judge out of a trace that the caller makes with DeepEval."""
CANNOT_IMPORT = (ImportError, AttributeError, TypeError, ValueError, RuntimeError, SyntaxError, OSError)
"""What goes wrong when installed packages do not fit each other."""


@dataclass(frozen=True, slots=True, eq=False)
class DeepEval:
    """The parts of DeepEval that are used: the module with the metrics, its test case, errors, and a model of ours."""

    metrics: Any
    test_case: Any
    error: type[Exception]
    model: Any


_lock = threading.Lock()
_deepeval: DeepEval | None = None


def missing() -> str:
    """Why DeepEval cannot be used here, with the remedy; nothing where it can."""
    try:
        version = metadata.version("deepeval")
    except metadata.PackageNotFoundError:
        return f"DeepEval is not installed: {REMEDY}"
    if Version(version) < OLDEST:
        return f"DeepEval {version} is installed, but {OLDEST} is the oldest that can be wrapped: {REMEDY}"
    return ""


def load() -> DeepEval:
    """DeepEval, imported by the first call; raises `MissingExtra` with the real cause."""
    global _deepeval  # noqa: PLW0603  # one import per process is the point
    with _lock:
        found = _deepeval or _import()
        _deepeval = found
    return found


def _import() -> DeepEval:
    os.environ |= QUIET
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = DeepEval(
                metrics=importlib.import_module("deepeval.metrics"),
                test_case=importlib.import_module("deepeval.test_case").LLMTestCase,
                error=importlib.import_module("deepeval.errors").DeepEvalError,
                model=_model_class(importlib.import_module("deepeval.models").DeepEvalBaseLLM),
            )
        except CANNOT_IMPORT as error:
            text = f"DeepEval is installed but does not import: {type(error).__name__}: {error}: {REMEDY}"
            raise MissingExtra(text) from error
    version = metadata.version("deepeval")
    if Version(version) >= UNTRIED:
        text = f"DeepEval {version} is newer than the tested releases (below {UNTRIED}); scores may change"
        warnings.warn(text, stacklevel=4)
    return found


def _model_class(base: Any) -> Any:
    """A language model for DeepEval whose answers come from elsewhere: from a `Session`.

    Only the method that DeepEval's metrics await is served. What stands behind it in the base class puts a question
    again without its schema after a `TypeError`, which would be another question.
    """

    class AskedElsewhere(base):  # type: ignore[misc]  # imported late
        def __init__(self, session: Session | None) -> None:
            self._session = session
            super().__init__("ragparity")

        def load_model(self) -> None:
            """Nothing has to be loaded."""

        def get_model_name(self) -> str:
            return "ragparity"

        async def a_generate_with_schema(self, prompt: str, schema: Any) -> Any:
            if self._session is None:
                raise TypeError("this model belongs to no sample")
            return await self._session.answer(prompt, schema)

        async def a_generate(self, *_asked: Any, **_options: Any) -> Any:
            raise TypeError("only structured answers are asked for here")

        def generate(self, *_asked: Any, **_options: Any) -> Any:
            raise TypeError("only structured answers are asked for here, by coroutines")

    return AskedElsewhere
