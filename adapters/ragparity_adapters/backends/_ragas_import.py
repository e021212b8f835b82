"""Ragas itself: imported once, away from the event loop, with its telemetry off and nothing written at home.

Importing takes seconds, so a plan is made without it: `check_installed` compares what the installed packages
say about themselves, and imports Ragas only where that leaves a doubt, so that the real cause is known.

There is no stand-in for the Vertex AI module that Ragas 0.4.3 imports and langchain-community 0.4.2 no longer
has: the extra bounds langchain-community instead, and a mix that does not import is reported with the remedy.
The one private patch keeps Ragas from writing an id file into the home folder; see `_stay_out_of_home`.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import os
import sys
import threading
import warnings
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from packaging.requirements import Requirement
from packaging.version import Version

from ragparity.core.errors import MissingExtra
from ragparity_adapters.backends._ragas_catalog import class_names
from ragparity_adapters.backends._ragas_judge import CollectionsJudge, Vectors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ragparity_adapters.backends._ragas_catalog import Api

REMEDY = "pip install 'ragparity[ragas]', or set backend: native"
OLDEST, UNTRIED = Version("0.4"), Version("0.5")
"""Ragas from the first to before the second of these has the classes that are wrapped here."""
IMPORTED_BY_RAGAS = {"langchain-community": "langchain_community/chat_models/vertexai.py"}
"""Files that Ragas imports although later releases of their packages no longer have them."""
CANNOT_IMPORT = (ImportError, AttributeError, TypeError, ValueError, RuntimeError, SyntaxError, OSError)
"""What goes wrong when installed packages do not fit each other."""


@dataclass(frozen=True, slots=True, eq=False)
class Ragas:
    """The parts of Ragas that are used: its version, the classes by name, messages, samples and base classes."""

    version: str
    collections: Mapping[str, Any]
    legacy: Mapping[str, Any]
    distances: Mapping[Api, Any]
    messages: Any
    schema: Any
    run_config: Any


_lock = threading.Lock()
_ragas: Ragas | None = None


def load() -> Ragas:
    """Ragas, imported by the first call; raises `MissingExtra` with the real cause."""
    global _ragas  # noqa: PLW0603  # one import per process is the point
    with _lock:
        found = _ragas or _import()
        _ragas = found
    return found


async def ready() -> Ragas:
    """The same from a coroutine: the import runs in a thread, so that the event loop goes on."""
    if _ragas is not None:
        return _ragas
    return await asyncio.to_thread(load)


@lru_cache(maxsize=1)
def check_installed() -> str:
    """The version of Ragas; raises `MissingExtra` where it is absent or cannot be imported.

    Ragas is imported only where its own requirements are not met or cannot be read.
    """
    if "ragas" not in sys.modules and importlib.util.find_spec("ragas") is None:
        raise MissingExtra(f"Ragas is not installed: {REMEDY}")
    try:
        version = metadata.version("ragas")
        sound = not _unmet()
    except metadata.PackageNotFoundError:
        version, sound = "", False
    if version and Version(version) < OLDEST:
        raise MissingExtra(f"Ragas {version} is installed, but {OLDEST} is the oldest that can be wrapped: {REMEDY}")
    return version if sound else load().version


def _unmet() -> list[str]:
    """Requirements of Ragas that the installed packages do not meet."""
    unmet = []
    for line in metadata.requires("ragas") or ():
        needed = Requirement(line)
        if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
            continue
        try:
            found = metadata.distribution(needed.name)
        except metadata.PackageNotFoundError:
            unmet.append(needed.name)
            continue
        imported = IMPORTED_BY_RAGAS.get(needed.name)
        there = imported is None or Path(str(found.locate_file(imported))).exists()
        if not (there and needed.specifier.contains(found.version, prereleases=True)):
            unmet.append(needed.name)
    return unmet


def _import() -> Ragas:
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            package = importlib.import_module("ragas")
            collections = importlib.import_module("ragas.metrics.collections")
            legacy = importlib.import_module("ragas.metrics")
            analytics = importlib.import_module("ragas._analytics")
            importlib.import_module("ragas.llms.base").InstructorBaseRagasLLM.register(CollectionsJudge)
            importlib.import_module("ragas.embeddings.base").BaseRagasEmbedding.register(Vectors)
            found = Ragas(
                version=str(package.__version__),
                collections=_classes(collections, class_names("collections")),
                legacy=_classes(legacy, class_names("legacy")),
                distances={"collections": collections.DistanceMeasure, "legacy": legacy.DistanceMeasure},
                messages=importlib.import_module("ragas.messages"),
                schema=importlib.import_module("ragas.dataset_schema"),
                run_config=importlib.import_module("ragas.run_config").RunConfig(),
            )
        except CANNOT_IMPORT as error:
            _broken(error)
    _stay_out_of_home(analytics)
    # Without a handler of the host's own, what Ragas logs about a failed row would stand between the progress.
    logging.getLogger("ragas").addHandler(logging.NullHandler())
    if Version(found.version) >= UNTRIED:
        text = f"Ragas {found.version} is newer than the tested releases (below {UNTRIED}); scores may change"
        warnings.warn(text, stacklevel=2)
    return found


def _broken(error: Exception) -> NoReturn:
    versions = []
    for name in ("ragas", "langchain-community", "openai", "instructor"):
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    text = f"Ragas is installed but does not import: {type(error).__name__}: {error} ({', '.join(versions)}): {REMEDY}"
    raise MissingExtra(text) from error


def _classes(module: Any, names: Iterable[str]) -> dict[str, Any]:
    """The classes of these names that the module has."""
    return {name: found for name in names if (found := getattr(module, name, None)) is not None}


def _stay_out_of_home(analytics: Any) -> None:
    """The private patch: without it Ragas writes `uuid.json` under the home folder, even with telemetry off.

    `ragas._analytics.get_userid` asks `user_data_dir` where to keep the id and falls back to an id in memory
    when that fails; so the function fails. A Ragas without that name is left as it is.
    """
    if callable(getattr(analytics, "user_data_dir", None)):
        analytics.user_data_dir = _no_folder


def _no_folder(*_args: object, **_kwargs: object) -> NoReturn:
    raise OSError("ragparity keeps Ragas from writing an id file")
