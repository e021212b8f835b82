"""The common part of all that stands around a judge or an embedder."""

from __future__ import annotations

from typing import Generic, TypeVar

from ragparity.core.ports import Embedder, Judge

W = TypeVar("W", Judge, Embedder)


class Wrapper(Generic[W]):
    """Something around a judge or an embedder, under the identity of what is `within`."""

    within: W

    def __init__(self, within: W) -> None:
        self.within = within

    @property
    def identity(self) -> str:
        """That of the judge or the embedder within."""
        return self.within.identity
