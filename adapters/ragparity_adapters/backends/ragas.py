"""Ragas 0.4, the collections API (`ragas.metrics.collections`), behind our judge and embedder.

A name that only the legacy API has is taken from there; a metric's version, and `detail` of every record, say
which API it was.
"""

from __future__ import annotations

from ragparity_adapters.backends._ragas_build import RagasBackend


def backend() -> RagasBackend:
    """The backend `ragas`. Nothing is imported from Ragas before the first score, or `prepare`."""
    return RagasBackend("ragas", ("collections", "legacy"))
