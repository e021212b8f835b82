"""Asking several things at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

T = TypeVar("T")


async def together(asked: Iterable[Awaitable[T]]) -> list[T]:
    """The results in order, asked at the same time; the first failure in order is raised when all are done.

    Nothing is cancelled half way, since a reply that is under way is paid for and may be reused; a cancelled
    caller cancels them all.
    """
    results = await asyncio.gather(*asked, return_exceptions=True)
    done: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done


async def settled(asked: Iterable[Awaitable[T]]) -> list[T | BaseException]:
    """The results or errors in order, asked at the same time; a cancelled caller cancels them all."""
    return list(await asyncio.gather(*asked, return_exceptions=True))
