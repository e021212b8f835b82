"""A virtual environment of plain `venv` and `pip`, what is run in it, and the log of both."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.matrix.entries import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

PLACE = ROOT / ".matrix"
LONGEST = 3600
"""Seconds that one command may take; on an idle machine none takes a tenth of them."""
MOST_RELEASES = 30
"""Releases of one package that pip may look at. Half a year of weekly ones is what a cap costs; with more, pip is on its
way back to those of years ago."""
GUARD = Path(__file__).parent / "loopback_only.py"
LOOKED_AT = re.compile(
    r"^\s*(?:Downloading|Using cached|Processing) (?:\S*/)?([A-Za-z0-9_.]+)-(\d[^-\s]*?)(?:-\S+|\.tar\.gz)",
    re.MULTILINE,
)
NO_NETWORK = re.compile(r"NewConnectionError|NameResolutionError|Temporary failure in name|ConnectTimeout|ProxyError")
PRIVATE = re.compile(r".*_API_KEY|RAGPARITY_.*|JUDGE_.*|PYTHON.*")


class StepFailed(Exception):
    """Something did not end well; the text says what, in one line."""


class Environment:
    """The environment of one entry: made, filled, used, removed."""

    def __init__(self, name: str) -> None:
        self.folder = PLACE / "environments" / name
        self.work = PLACE / "work" / name
        self.log = PLACE / "logs" / f"{name}.log"
        self._python = str(self.folder / "bin/python")
        self._brought: set[str] = set()

    def create(self, python: str) -> str:
        """Make it anew with the pip that this Python brings, and an empty folder to work in; the version of Python."""
        self.remove()
        self.log.unlink(missing_ok=True)
        self.work.mkdir(parents=True)
        (self.work / "configs").symlink_to(ROOT / "configs")
        call([python, "-m", "venv", str(self.folder)], self.log, "making the environment failed")
        self._brought = set(self._names())
        script = "import platform; print(platform.python_version())"
        asked = subprocess.run([self._python, "-c", script], capture_output=True, text=True, check=True)
        return asked.stdout.strip()

    def install(self, requirements: Sequence[str]) -> None:
        """Install with one call of pip; from then on nothing but this machine can be reached from here."""
        pip = [self._python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
        call([*pip, *requirements], self.log, "pip failed")
        shutil.copy(GUARD, self._packages() / GUARD.name)
        (self._packages() / "loopback_only.pth").write_text("import loopback_only\n", encoding="utf-8")
        for name, found in releases(self.log.read_text(encoding="utf-8", errors="replace")).items():
            if len(found) > MOST_RELEASES:
                raise StepFailed(f"pip went back through {len(found)} releases of {name}, from {found[0]}")

    def run(self, *arguments: str) -> None:
        """Run its Python in its folder; the tests are importable there, the sources of the package are not."""
        reached = self.work / "reached.txt"
        reached.unlink(missing_ok=True)
        variables = clean() | {"HOME": str(self.work), "PYTHONPATH": str(ROOT), "REACHED": str(reached)}
        call([self._python, *arguments], self.log, f"{arguments[1]} failed", variables, self.work)
        if reached.exists():
            hosts = sorted(set(reached.read_text(encoding="utf-8").split()))
            raise StepFailed(f"{arguments[1]} asked for other hosts: {', '.join(hosts)}")

    def distributions(self) -> int:
        """How many were installed; pip and what else the environment came with are not counted."""
        return len(set(self._names()) - self._brought)

    def remove(self) -> None:
        """Remove everything but the log."""
        for folder in (self.folder, self.work):
            shutil.rmtree(folder, ignore_errors=True)

    def _packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def _names(self) -> list[str]:
        return [path.name for path in self._packages().glob("*.dist-info")]


def build_wheel(python: str) -> Path:
    """The wheel of the sources as they are, built with pip alone."""
    folder, log = PLACE / "wheel", PLACE / "logs/wheel.log"
    shutil.rmtree(folder, ignore_errors=True)
    log.unlink(missing_ok=True)
    call([python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], log, "pip failed")
    (wheel,) = folder.glob("*.whl")
    return wheel


def clean() -> dict[str, str]:
    """The variables of this process, without keys and settings that would change what a newcomer sees."""
    return {name: value for name, value in os.environ.items() if not PRIVATE.fullmatch(name)}


def call(
    command: Sequence[str], log: Path, what: str, variables: dict[str, str] | None = None, folder: Path = ROOT
) -> None:
    """Run a command, its output behind the log; raises `StepFailed` where it does not end with 0."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file:
        begin = file.tell()
        file.write(f"$ {' '.join(command)}\n")
        file.flush()
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=variables or clean(),
                cwd=folder, timeout=LONGEST, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise StepFailed(f"{what}: it did not end within {LONGEST} s") from None
    if done.returncode:
        raise StepFailed(f"{what}: {reason(log.read_bytes()[begin:].decode(errors='replace'), done.returncode)}")


def reason(said: str, code: int) -> str:
    """The last error of pip, else the last line of what a command said; what to do where nothing can be downloaded.

    >>> reason("$ command\\none\\ntwo\\n", 1)
    'two'
    """
    if NO_NETWORK.search(said):
        return (
            "nothing can be downloaded; a package index or a folder of wheels is needed "
            "(PIP_INDEX_URL, or PIP_NO_INDEX=1 with PIP_FIND_LINKS)"
        )
    lines = [line.strip() for line in said.splitlines()[1:] if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or [f"exit code {code}"])[-1]


def releases(log: str) -> dict[str, list[str]]:
    """The releases of each package that the output of pip names, in order of their first mention.

    >>> releases("  Using cached jiter-0.16.0-cp311.whl.metadata (5 kB)\\n  Downloading jiter-0.14.0.tar.gz (1 kB)\\n")
    {'jiter': ['0.16.0', '0.14.0']}
    """
    found: dict[str, dict[str, None]] = {}
    for name, version in LOOKED_AT.findall(log):
        found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), {})[version] = None
    return {name: list(versions) for name, versions in found.items()}
