"""Environments of their own for what is measured: the peers, and ragparity as it is when people have installed it.

They lie in `.bench` in the project folder and are made when they are missing, which takes a few minutes and needs a
package index; `python -m tests.benchmarks.peers` makes them and prints the versions. ragparity is installed anew
whenever its sources have changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.benchmarks.processes import ROOT, environment

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = ROOT / ".bench"
PEERS = (
    "ragas==0.4.3",
    "nvidia-nat[eval]==1.9.0",
    "nvidia-nat-ragas==1.9.0",
    "nvidia-nat-langchain==1.9.0",
    # Ragas imports a module that langchain-community 0.4.2 has no longer. The other pins keep pip from going back to
    # clients of 2024 (it finds no other way through what Ragas and instructor ask for), so all sides have the same ones.
    "langchain-community==0.4.1",
    "langchain-core==1.8.3",
    "langchain-openai==1.7.4",
    "openai==3.3.0",
    "instructor==1.17.0",
)
OURS = (f"{ROOT}[nat]", "nvidia-nat==1.9.0", "langchain-core==1.8.3", "langchain-openai==1.7.4", "openai==3.3.0")
SOURCES = ("plugin", "adapters", "pyproject.toml")
SHOWN = ("ragparity", "ragas", "nvidia-nat", "nvidia-nat-ragas", "nvidia-nat-langchain", "langchain-openai", "openai")
VERSIONS = """
import importlib.metadata, json, platform, sys
found = {one.name.lower(): one.version for one in importlib.metadata.distributions()}
print(json.dumps({"Python": platform.python_version(), **{name: found[name] for name in sys.argv[1:] if name in found}}))
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment."""

    folder: Path

    @property
    def python(self) -> str:
        """Its interpreter."""
        return self.command("python")

    def command(self, name: str) -> str:
        """A command that is installed in it."""
        return str(self.folder / ("Scripts" if os.name == "nt" else "bin") / name)

    def versions(self) -> str:
        """Python and the packages that matter here, with their versions."""
        command = [self.python, "-c", VERSIONS, *SHOWN]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
        return ", ".join(f"{name} {version}" for name, version in json.loads(done.stdout).items())


def peers() -> Environment:
    """The environment that has Ragas, and the toolkit with NVIDIA's evaluator."""
    return _made("peers", PEERS, "")


def ours() -> Environment:
    """The environment that has ragparity, installed from a wheel with compiled bytecode, and the bare toolkit."""
    digest = hashlib.sha256()
    for path in sorted(path for name in SOURCES for path in [ROOT / name, *(ROOT / name).rglob("*.py")]):
        if path.is_file():
            digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return _made("ragparity", OURS, digest.hexdigest())


def _made(name: str, wanted: tuple[str, ...], sources: str) -> Environment:
    """The environment of this name, set up where it is missing or was made for something else."""
    made = Environment(FOLDER / name)
    stamp, said = made.folder / "made_for.txt", "\n".join((*wanted, sys.version, sources))
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == said:
        return made
    print(f"setting up .bench/{name} (needs a package index; the first time takes minutes)", flush=True)
    stamp.unlink(missing_ok=True)
    _install([sys.executable, "-m", "venv", str(made.folder)])
    pip = [made.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--compile"]
    _install([*pip, "--upgrade", "pip>=25.1"])
    _install([*pip, *wanted])
    stamp.write_text(said, encoding="utf-8")
    return made


def _install(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def both() -> tuple[Environment, Environment]:
    """That of ragparity and that of its peers, made where they are missing; prints the versions."""
    found = ours(), peers()
    for made in found:
        print(f"{made.folder.name}: {made.versions()}", flush=True)
    return found


if __name__ == "__main__":
    both()
