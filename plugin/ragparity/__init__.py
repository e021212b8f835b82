"""Score RAG and agent answers with LLM judges, through several implementations of each metric.

::

    from ragparity import evaluate

    results = evaluate(rows, metrics=["Faithfulness"], judge=chat_model)
    results.summary
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragparity.core.errors import (
    ConfigError,
    EvaluationError,
    JudgeError,
    MissingExtra,
    SampleError,
    UnknownBackend,
    UnknownMetric,
)
from ragparity.core.outcome import Failed, Outcome, Scored, Undefined
from ragparity.core.policy import Policies
from ragparity.core.sample import Sample

if TYPE_CHECKING:
    from ragparity.api import Results, aevaluate, evaluate
    from ragparity.crossvalidation import Crossvalidation
    from ragparity.crossvalidation_api import acrossvalidate, crossvalidate

__all__ = [
    "ConfigError",
    "Crossvalidation",
    "EvaluationError",
    "Failed",
    "JudgeError",
    "MissingExtra",
    "Outcome",
    "Policies",
    "Results",
    "Sample",
    "SampleError",
    "Scored",
    "Undefined",
    "UnknownBackend",
    "UnknownMetric",
    "acrossvalidate",
    "aevaluate",
    "crossvalidate",
    "evaluate",
]

_LATER = ("Results", "aevaluate", "evaluate")
_COMPARED = ("Crossvalidation", "acrossvalidate", "crossvalidate")


def __getattr__(name: str) -> Any:
    """The doors are imported when they are used, so that `import ragparity` stays light."""
    if name in _LATER:
        from ragparity import api

        return getattr(api, name)
    if name in _COMPARED:
        from ragparity import crossvalidation_api

        return getattr(crossvalidation_api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
