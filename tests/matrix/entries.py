"""What is tried: one environment without extras, one for each extra, one with all, the toolkit's releases, the Pythons.

The extras and the Pythons are those of pyproject.toml; a new extra needs a module in `jobs` of its name, unless it
is that of a backend.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

ROOT = Path(__file__).resolve().parents[2]
JOBS = Path(__file__).parent / "jobs"
BACKENDS = ROOT / "adapters/ragparity_adapters/backends"

TOOLKITS = ("1.6", "1.7", "1.8", "1.9")
"""Releases of the NeMo Agent Toolkit that the extra `nat` allows."""
COMPANIONS: Mapping[str, tuple[str, ...]] = {"stats": ("openevals",)}
"""Extras that the job of an extra needs too: two backends take a second one."""
INCUMBENT = ("nvidia-nat-ragas", "nvidia-nat-langchain")
"""NVIDIA's own plugin, and what it asks for only when it runs."""

Step = tuple[str, ...]
"""Arguments of the environment's Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One environment: the wheel with these extras and what else pip is told to install, and what is then run there."""

    name: str
    python: str
    extras: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    steps: tuple[Step, ...]

    @property
    def bracket(self) -> str:
        """The extras as they are written behind a name.

        >>> Entry(name="x", python="python3", extras=("nat", "ragas"), steps=()).bracket
        '[nat,ragas]'
        """
        return f"[{','.join(self.extras)}]" if self.extras else ""

    def __str__(self) -> str:
        return f"{self.name}: {' '.join((f'ragparity{self.bracket}', *self.also))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """An entry that cannot be tried here."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: skipped"


def entries(python: str, others: Mapping[str, str | None]) -> tuple[list[Entry], list[Absent]]:
    """What can be tried, and what cannot. `others`: the command of each further Python by version, None without one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = tuple(project["project"]["optional-dependencies"])
    test = [one for one in project["dependency-groups"]["test"] if re.match(r"(pytest|hypothesis)\b", one)]
    found = [Entry(name="base", python=python, steps=(job("base"),))]
    found += [extra_entry(name, python) for name in extras]
    found.append(
        Entry(
            name="all", python=python, extras=extras,
            steps=(job("imports"), *(step for name in extras for step in steps_of(name))),
        )
    )  # fmt: skip
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", f"-c{ROOT}/pyproject.toml")
    found += [
        Entry(
            name=f"toolkit-{version}", python=python, extras=("nat", "ragas"),
            also=(f"nvidia-nat[eval]=={version}.*", *test), steps=((*pytest, f"{ROOT}/tests/nat"),),
        )
        for version in TOOLKITS
    ]  # fmt: skip
    found.append(
        Entry(name="incumbent", python=python, extras=("nat", "ragas"), also=INCUMBENT, steps=(job("incumbent"),))
    )
    absent = []
    for version, command in others.items():
        if command is None:
            why = f"no python{version} on the PATH that runs"
            absent += [Absent(name=f"{name}-{version}", why=why) for name in ("base", "ragas")]
        else:
            found.append(Entry(name=f"base-{version}", python=command, steps=(job("base"),)))
            found.append(extra_entry("ragas", command, f"ragas-{version}"))
    return found, absent


def extra_entry(extra: str, python: str, name: str | None = None) -> Entry:
    """The environment of one extra."""
    extras = (extra, *COMPANIONS.get(extra, ()))
    return Entry(name=name or extra, python=python, extras=extras, steps=steps_of(extra))


def steps_of(extra: str) -> tuple[Step, ...]:
    """The job of its name, or one for each backend of its name; raises `KeyError` where there is neither."""
    if (JOBS / f"{extra}.py").exists():
        return (job(extra),)
    backends = backends_of(extra, (path.stem for path in BACKENDS.glob("*.py")))
    if not backends:
        raise KeyError(f"nothing is tried of the extra {extra}: write {JOBS.relative_to(ROOT)}/{extra}.py")
    return (job("backends", *backends),)


def backends_of(extra: str, modules: Iterable[str]) -> list[str]:
    """The backends that an extra brings.

    >>> backends_of("ragas", ["_ragas_build", "openevals", "ragas", "ragas_legacy"])
    ['ragas', 'ragas_legacy']
    """
    return sorted(name for name in modules if name == extra or name.startswith(f"{extra}_"))


def job(name: str, *arguments: str) -> Step:
    """A module of `jobs`."""
    return ("-m", f"tests.matrix.jobs.{name}", *arguments)


def pythons() -> dict[str, str | None]:
    """The command of every supported Python but this one, by version; None where it is not there or does not run."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [found[1] for one in project["classifiers"] if (found := re.search(r"Python :: (3\.\d+)$", one))]
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {version: _command(f"python{version}") for version in versions if version != own}


def _command(name: str) -> str | None:
    """The path of a Python that runs; a version manager may have a command for one that is not there."""
    path = shutil.which(name)
    if path is None:
        return None
    done = subprocess.run([path, "-c", "import ensurepip, venv"], capture_output=True, check=False)
    return path if done.returncode == 0 else None
