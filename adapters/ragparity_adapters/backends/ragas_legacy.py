"""Ragas 0.4, the legacy API (the metric classes of `ragas.metrics`), behind our judge and embedder."""

from __future__ import annotations

from ragparity_adapters.backends._ragas_build import RagasBackend


def backend() -> RagasBackend:
    """The backend `ragas_legacy`. Nothing is imported from Ragas before the first score, or `prepare`."""
    return RagasBackend("ragas_legacy", ("legacy",))
