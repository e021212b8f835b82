"""The fields of a sample as the data of a prompt, for metrics whose user chooses what the judge sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ragparity.core.sample import Sample

Readable = Literal["user_input", "response", "reference", "retrieved_contexts", "reference_contexts"]
"""A field that can be shown to a judge as it is."""

LABELS: dict[str, str] = {
    "user_input": "question",
    "response": "answer",
    "reference": "reference",
    "retrieved_contexts": "contexts",
    "reference_contexts": "reference_contexts",
}
"""Field -> the label under which the judge sees it."""


def check_reads(reads: tuple[str, ...]) -> None:
    """Raise `ValueError` for a list of fields that is empty or names one twice."""
    if not reads or len(set(reads)) < len(reads):
        raise ValueError(f"reads: expected one or more different fields, got {list(reads)}")


def data_of(sample: Sample, fields: tuple[str, ...]) -> dict[str, Any]:
    """The fields that the sample has, by label, in the order of `LABELS` (so that the order of `reads` is no matter).

    >>> from ragparity.core.sample import Sample
    >>> data_of(Sample(response="Oslo.", user_input="Where?"), ("response", "user_input"))
    {'question': 'Where?', 'answer': 'Oslo.'}
    """
    shown: dict[str, Any] = {}
    for name, label in LABELS.items():
        value = getattr(sample, name)
        if name in fields and value is not None:
            shown[label] = list(value) if isinstance(value, tuple) else value
    return shown


def names_of(fields: tuple[str, ...]) -> str:
    """The labels of the fields in words.

    >>> names_of(("response", "user_input"))
    'question and answer'
    """
    labels = [label.replace("_", " ") for name, label in LABELS.items() if name in fields]
    return labels[0] if len(labels) == 1 else f"{', '.join(labels[:-1])} and {labels[-1]}"
