"""Evaluator names as file names."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')
_LONGEST = 120
"""Bytes; most file systems allow 255 for a name, and suffixes such as `_output.json` follow."""
_TAKEN = frozenset(
    ["con", "prn", "aux", "nul", "workflow", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))]
)
"""Device names of Windows, and `workflow`, whose `workflow_output.json` is a file of the toolkit."""


def file_stem(name: str) -> str:
    """The name with everything replaced that a file name cannot hold on some system.

    >>> file_stem("ragas/Faithfulness")
    'ragas_Faithfulness'
    >>> file_stem("..")
    '_'
    """
    stem = _UNSAFE.sub("_", name).rstrip(". ").lstrip(" ")
    stem = re.sub(r"^\.+", "_", stem) or "_"
    if len(stem.encode("utf-8", "surrogatepass")) > _LONGEST:
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        cut = stem.encode("utf-8", "surrogatepass")[: _LONGEST - 9].decode("utf-8", "ignore")
        stem = f"{cut}-{digest}"
    return f"{stem}_" if stem.split(".")[0].casefold() in _TAKEN else stem


def file_stems(names: Iterable[str]) -> dict[str, str]:
    """A stem for each name, no two alike even where upper and lower case are one.

    >>> file_stems(["a/b", "a_b", "A_B"])
    {'a/b': 'a_b-3', 'a_b': 'a_b', 'A_B': 'A_B-2'}
    """
    wanted = {name: file_stem(name) for name in names}
    found: dict[str, str] = {}
    taken: set[str] = set()
    # A name that needs no change keeps it, so that adding another evaluator does not rename its file.
    for name, stem in sorted(wanted.items(), key=lambda pair: pair[0] != pair[1]):
        free, n = stem, 1
        while free.casefold() in taken:
            n += 1
            free = f"{stem}-{n}"
        taken.add(free.casefold())
        found[name] = free
    return {name: found[name] for name in wanted}
