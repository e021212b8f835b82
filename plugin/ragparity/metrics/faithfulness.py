"""Faithfulness: how much of the response the contexts support.

Definition: supported claims / claims, over the claims extracted from the response.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragparity.registry import NativeMetric, metric


@metric
@dataclass(frozen=True, repr=False)
class Faithfulness(NativeMetric):
    """placeholder"""
